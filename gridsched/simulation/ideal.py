"""Simulate workloads on an ideal machine: what users call to bound the schemes of `simulate_grid`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.records import JOB
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers.ideal import IdealForm, ideal_times
from gridsched.simulation.clusters import check_clean, check_limits
from gridsched.traces.fusing import fuse
from gridsched.workloads.table import Workload


def simulate_ideal(
    workloads: Sequence[Workload],
    clusters: Sequence[Cluster],
    form: IdealForm,
    *,
    align: Literal["start", "clock", "none"] = "start",
) -> xr.Dataset:
    """Run the workloads of several clusters on an ideal machine, see `gridsched.schedulers.ideal`.

    Jobs that fit on none of the clusters are rejected, as by the scheme ``central``, although the pool could
    hold them: schemes are compared by the same jobs.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs that users submit to each cluster.
    clusters : sequence of Cluster
        The clusters, one for each workload.
    form : {"fcfs", "srpt"}
        Order of the jobs.
    align : {"start", "clock", "none"}
        How submit times of the workloads go together, see `gridsched.traces.fuse`.

    Returns
    -------
    xarray.Dataset
        Job variables as in `gridsched.results.run_dataset`, without estimate and segments, and home_cluster;
        cluster variables cluster_processors and cluster_speed. Run times are those on the home cluster. Start
        (when the job has the pool for the first time) and end have fractions of seconds; -1 if rejected.

    Raises
    ------
    WorkloadError
        If a workload is not clean.
    ConfigurationError
        If clusters and workloads do not go together, or the form is unknown.
    """
    if len(workloads) != len(clusters):
        raise ConfigurationError(
            f"{len(workloads)} workloads for {len(clusters)} clusters; give one for each"
        )
    for workload in workloads:
        check_clean(workload)
    merged, home = fuse(workloads, align=align)
    for cluster in clusters:
        check_limits(merged, cluster, merged.run_time, np.zeros_like(merged.run_time))
    accepted = merged.processors <= max(cluster.processors for cluster in clusters)
    jobs = np.zeros(int(accepted.sum()), JOB)
    jobs["submit"] = merged.submit_time[accepted]
    jobs["run"] = merged.run_time[accepted]
    jobs["processors"] = merged.processors[accepted]
    times = np.full((2, len(merged)), float(results.NO_TIME))
    times[:, accepted] = ideal_times(jobs, home[accepted], clusters, form)
    return _dataset(merged, clusters, home, times, form)


def _dataset(
    merged: Workload,
    clusters: Sequence[Cluster],
    home: NDArray[np.int64],
    times: NDArray[np.float64],
    form: IdealForm,
) -> xr.Dataset:
    """A run dataset without the segments, which are on no cluster."""
    dataset = results.run_dataset(
        merged,
        clusters,
        cluster=home,
        start_time=times[0].astype(np.int64),
        run_time=merged.run_time,
        estimate=merged.run_time,
        allocated=merged.processors,
        attributes={"scheme": f"ideal-{form}"},
    )
    dataset = dataset.drop_dims("segment").drop_vars("estimate")
    for name, values in zip(("start_time", "end_time"), times, strict=True):
        dataset[name] = ("job", values, dataset[name].attrs)
    dataset["run_time"].attrs["long_name"] = "run time on the home cluster"
    dataset["home_cluster"] = ("job", home, {"long_name": "index of the cluster of submission", "units": "1"})
    return dataset

"""Simulate workloads under imprecise calendars: what users call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.bookings import NOWHERE, REQUEST, Status
from gridsched.errors import ConfigurationError
from gridsched.platforms import Cluster
from gridsched.schedulers.calendars import (
    CalendarOptions,
    CalendarSchedule,
    Manager,
    clusters_of,
    describe,
    reach,
    schedule_calendars,
)
from gridsched.simulation.clusters import EstimateName, believed, check_clean, check_limits
from gridsched.traces.fusing import fuse
from gridsched.workloads.table import Workload

Reservations = Mapping[int, int] | Sequence[int] | NDArray[Any]


def simulate_calendars(
    workloads: Sequence[Workload],
    root: Manager | Cluster,
    options: CalendarOptions,
    *,
    estimates: EstimateName | NDArray[Any] = "actual",
    align: Literal["start", "clock", "none"] = "start",
    reservations: Reservations | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Run the workloads of several clusters under imprecise calendars, see `gridsched.schedulers.calendars`.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs that users submit to each cluster, in the order of the leaves of the tree.
    root : Manager or Cluster
        The tree of managers, or a single cluster.
    options : CalendarOptions
        Slots, resource threshold, and what happens to overruns and refused reservations.
    estimates : {"requested", "actual", "clairvoyant"} or array of seconds
        What the managers believe of run times, see `gridsched.simulate`; the paper used the actual ones.
    align : {"start", "clock", "none"}
        How submit times of the workloads go together, see `gridsched.traces.fuse`.
    reservations : mapping of int to int, or array, optional
        Requested start times in seconds, by index of the job in the merged workload, or one for each job, -1
        for none. They are multiples of the fundamental slot on the axis of the merged submit times.
    seed : int
        Seed of the choices of unbiased managers.

    Returns
    -------
    xarray.Dataset
        A run dataset, see `gridsched.results.run_dataset`, with several segments for jobs that span clusters
        or were suspended. Job variables besides: home_cluster, reach_processors (0 for a job that did not run
        because its reservation was refused), planned_start (as submitted), reservation_time (as
        requested), reserved (0 or 1), reserved_start (-1 without), earliest_time (of a refused reservation),
        killed. Cluster variables: supplied, consumed, local_work (processor-seconds). The counts of
        `gridsched.schedulers.calendars.COUNTS` are attributes.

    Raises
    ------
    WorkloadError
        If a workload is not clean.
    ConfigurationError
        If tree, workloads and reservations do not go together, or an option is unknown.
    """
    clusters = clusters_of(root)
    if len(workloads) != len(clusters):
        raise ConfigurationError(
            f"{len(workloads)} workloads for {len(clusters)} clusters; give one for each leaf of the tree"
        )
    for workload in workloads:
        check_clean(workload)
    merged, home = fuse(workloads, align=align)
    estimate = believed(merged.run_time, np.asarray(merged.requested_time, np.int64), estimates)
    for cluster in clusters:
        check_limits(merged, cluster, cluster.duration(merged.run_time), cluster.duration(estimate))
    jobs = np.zeros(len(merged), REQUEST)
    jobs["submit"] = merged.submit_time
    jobs["run"] = merged.run_time
    jobs["estimate"] = estimate
    jobs["nodes"] = merged.processors
    jobs["home"] = home
    jobs["reserved"] = _requested(reservations, len(merged))
    done = schedule_calendars(jobs, root, options, seed=seed)
    dataset = results.run_dataset(
        merged,
        clusters,
        cluster=home,
        start_time=done.start_time,
        run_time=done.run_time,
        estimate=estimate,
        allocated=merged.processors,
        attributes={
            "scheme": "calendars",
            "estimates": estimates if isinstance(estimates, str) else "given",
            "managers": "; ".join(describe(root)),
            "slots": str(options.slots),
            "low_water": options.low_water,
            "threshold": options.threshold,
            "overrun": options.overrun,
            "refused": options.refused,
            "seed": seed,
            "jobs_without_requested_time": int((merged.requested_time <= 0).sum()),
            "jobs_transferred": int(_moved(done, home).sum()),
            **done.counts,
        },
    )
    return _with_trade(_with_reservations(_with_segments(dataset, done), jobs, done, reach(root)), done, home)


def _requested(reservations: Reservations | None, jobs: int) -> NDArray[np.int64]:
    """Requested start of each job, or -1."""
    if reservations is None:
        return np.full(jobs, NOWHERE, np.int64)
    if isinstance(reservations, Mapping):
        requested = np.full(jobs, NOWHERE, np.int64)
        for job, time in reservations.items():
            if not 0 <= job < jobs:
                raise ConfigurationError(
                    f"reservations: no job at index {job}; there are {jobs}, from index 0"
                )
            requested[job] = time
        return requested
    requested = np.asarray(reservations)
    if requested.shape != (jobs,) or requested.dtype.kind not in "iu":
        raise ConfigurationError(
            f"reservations: {requested.dtype} values of shape {requested.shape} for {jobs} jobs; "
            "give whole seconds for each job, -1 for none"
        )
    return requested.astype(np.int64)


def _moved(done: CalendarSchedule, home: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a job ran elsewhere than at home, in whole or in part."""
    moved = np.zeros(len(home), np.bool_)
    elsewhere = done.segments["cluster"] != home[done.segments["job"]]
    moved[done.segments["job"][elsewhere]] = True
    return moved


def _with_segments(dataset: xr.Dataset, done: CalendarSchedule) -> xr.Dataset:
    """The executions as they were: several for jobs that span clusters or were suspended."""
    fields = {"job": "job", "cluster": "cluster", "processors": "nodes", "start": "start", "end": "end"}
    attributes = {name: dataset[f"segment_{name}"].attrs for name in fields}
    dataset = dataset.drop_dims("segment")
    for name, field in fields.items():
        dataset[f"segment_{name}"] = ("segment", done.segments[field].copy(), attributes[name])
    dataset["end_time"] = ("job", done.end_time, dataset["end_time"].attrs)
    dataset["run_time"].attrs["long_name"] = "run time as executed"
    return dataset


def _with_reservations(
    dataset: xr.Dataset, jobs: NDArray[Any], done: CalendarSchedule, nodes: int
) -> xr.Dataset:
    """What was reserved and refused, and what became of it."""
    reach_processors = np.where(done.status == Status.REFUSED, 0, nodes)
    reserved_start = np.where(done.reserved, jobs["reserved"], results.NO_TIME)
    for name, values, long_name, units in (
        ("home_cluster", jobs["home"], "index of the cluster of submission", "1"),
        (
            "reach_processors",
            reach_processors,
            "largest job that may run; 0 after a refused reservation",
            "1",
        ),
        ("planned_start", done.planned_start, "start that was planned at submission, -1 if none", "s"),
        ("reservation_time", jobs["reserved"], "requested start time, -1 if none", "s"),
        ("reserved", done.reserved.astype(np.int64), "whether a reservation was granted", "1"),
        ("reserved_start", reserved_start, "start time of the granted reservation, -1 if none", "s"),
        ("earliest_time", done.earliest_time, "earliest start that a refused reservation could have", "s"),
        ("killed", (done.status == Status.KILLED).astype(np.int64), "whether the job was killed", "1"),
    ):
        dataset[name] = ("job", values.copy(), {"long_name": long_name, "units": units})
    return dataset


def _with_trade(dataset: xr.Dataset, done: CalendarSchedule, home: NDArray[np.int64]) -> xr.Dataset:
    """The balance of trade: what clusters did for each other."""
    segments = done.segments
    work = segments["nodes"] * (segments["end"] - segments["start"])
    origin = home[segments["job"]]
    own = origin == segments["cluster"]
    for name, index, chosen, long_name in (
        ("supplied", segments["cluster"], ~own, "work for jobs of other clusters"),
        ("consumed", origin, ~own, "work of own jobs on other clusters"),
        ("local_work", origin, own, "work of own jobs at home"),
    ):
        total = np.zeros(dataset.sizes["cluster"], np.int64)
        np.add.at(total, index[chosen], work[chosen])
        dataset[name] = ("cluster", total, {"long_name": long_name, "units": "s"})
    return dataset

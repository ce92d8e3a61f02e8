"""The shape of simulation results: xarray datasets, netCDF files, and where they came from.

A *run* is one simulation. Its dataset has a dimension `job` (all jobs of the workload, in its order) and a
dimension `segment`: an execution of a job on some processors of one cluster for some time. With local
schedulers a job has one segment; systems that preempt, migrate or span clusters give it several.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import GridschedError
from gridsched.io import atomic_write
from gridsched.platforms import Cluster
from gridsched.workloads.table import Workload

NO_TIME = -1
"""Start and end of a job that was rejected."""

_LONG_NAMES: dict[str, tuple[str, str]] = {
    "submit_time": ("submit time", "s"),
    "run_time": ("run time on the cluster", "s"),
    "processors": ("requested processors", "1"),
    "estimate": ("estimated run time", "s"),
    "start_time": ("start time, -1 for a rejected job", "s"),
    "end_time": ("end time, -1 for a rejected job", "s"),
    "recorded_wait_time": ("wait time recorded in the log, -1 if unknown", "s"),
    "user": ("user number", "1"),
    "group": ("group number", "1"),
    "queue": ("queue number", "1"),
    "segment_job": ("index of the job that is executed", "1"),
    "segment_cluster": ("index of the cluster", "1"),
    "segment_processors": ("processors taken from the cluster", "1"),
    "segment_start": ("start of the execution", "s"),
    "segment_end": ("end of the execution", "s"),
    "cluster_processors": ("processors of the cluster", "1"),
}


def run_dataset(
    workload: Workload,
    cluster: Cluster,
    *,
    start_time: NDArray[np.int64],
    run_time: NDArray[np.int64],
    estimate: NDArray[np.int64],
    allocated: NDArray[np.int64],
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    """Dataset of one run in which each accepted job is executed once on one cluster.

    Parameters
    ----------
    workload : Workload
        The n jobs.
    cluster : Cluster
        Where they ran.
    start_time, run_time, estimate, allocated : int64[n]
        Start (-1 if rejected), duration and estimate in seconds, processors taken.
    attributes : mapping
        What else identifies the run.

    Returns
    -------
    xarray.Dataset
        Job variables submit_time, run_time, processors, estimate, start_time, end_time,
        recorded_wait_time, user, group, queue; segment variables segment_job, segment_cluster,
        segment_processors, segment_start, segment_end; cluster_processors.
    """
    executed = np.flatnonzero(start_time >= 0)
    end_time = np.where(start_time >= 0, start_time + run_time, NO_TIME)
    variables: dict[str, tuple[str, NDArray[Any]]] = {
        "submit_time": ("job", workload.submit_time),
        "run_time": ("job", run_time),
        "processors": ("job", workload.processors),
        "estimate": ("job", estimate),
        "start_time": ("job", start_time),
        "end_time": ("job", end_time),
        "recorded_wait_time": ("job", np.asarray(workload.wait_time, np.int64)),
        "user": ("job", workload.user),
        "group": ("job", workload.group),
        "queue": ("job", workload.queue),
        "segment_job": ("segment", executed),
        "segment_cluster": ("segment", np.zeros(len(executed), np.int64)),
        "segment_processors": ("segment", allocated[executed]),
        "segment_start": ("segment", start_time[executed]),
        "segment_end": ("segment", end_time[executed]),
        "cluster_processors": ("cluster", np.array([cluster.processors])),
    }
    dataset = xr.Dataset(
        variables,
        coords={"job": workload.job_number, "cluster": [cluster.name]},
        attrs={
            "title": f"{attributes.get('scheme', 'run')} on {workload.name}",
            "workload": workload.name,
            "workload_checksum": workload.checksum,
            "acknowledgement": workload.acknowledgement,
            "jobs_rejected": int((start_time < 0).sum()),
            **{f"left_out: {reason}": count for reason, count in workload.left_out.items()},
            **{f"repaired: {reason}": count for reason, count in workload.repaired.items()},
            **attributes,
            **provenance(),
        },
    )
    dataset["job"].attrs["long_name"] = "job number"
    for name, (long_name, units) in _LONG_NAMES.items():
        dataset[name].attrs.update(long_name=long_name, units=units)
    return dataset


def provenance() -> dict[str, str]:
    """Attributes that every dataset carries."""
    return {"Conventions": "CF-1.11", "source": f"gridsched {version('gridsched')}"}


def write(dataset: xr.Dataset, path: str | Path) -> None:
    """Write a dataset as compressed netCDF-4, whole or not at all."""
    encoding = {
        name: {"zlib": True, "complevel": 4, "shuffle": True}
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "iufb" and variable.ndim
    }
    with atomic_write(path) as temporary:
        dataset.to_netcdf(temporary, engine="netcdf4", encoding=encoding)


def read(path: str | Path) -> xr.Dataset:
    """Dataset of a netCDF file, in memory.

    Raises
    ------
    GridschedError
        If the file is missing or is not readable as netCDF.
    """
    try:
        return xr.load_dataset(path, engine="netcdf4")
    except FileNotFoundError:
        raise GridschedError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise GridschedError(
            f"{path}: not a readable netCDF file ({error}); delete it and run again"
        ) from None

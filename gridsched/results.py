"""The shape of simulation results: xarray datasets, netCDF files, and where they came from.

A *run* is one simulation. Its dataset has a dimension `job` (all jobs of the workload, in its order) and a
dimension `segment`: an execution of a job on some processors of one cluster for some time. With local
schedulers a job has one segment; systems that preempt, migrate or span clusters give it several.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, GridschedError
from gridsched.io import atomic_write, checksum
from gridsched.platform import Cluster
from gridsched.workloads.dependencies import DEPENDENCY
from gridsched.workloads.table import EXTRA_FIELDS, SWF_FIELDS, UNKNOWN, Workload

NO_TIME = -1
"""Start and end of a job that was rejected."""

REJECTED = 1
"""Value of the variable `fate` of a job that was rejected, where a run has it."""

_LONG_NAMES: dict[str, tuple[str, str]] = {
    "job_number": ("job number", "1"),
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
    "home_cluster": ("index of the cluster of submission, -1 for none", "1"),
    "segment_job": ("index of the job that is executed", "1"),
    "segment_cluster": ("index of the cluster", "1"),
    "segment_processors": ("processors taken from the cluster", "1"),
    "segment_start": ("start of the execution", "s"),
    "segment_end": ("end of the execution", "s"),
    "cluster_processors": ("processors of the cluster", "1"),
    "cluster_speed": ("speed of the cluster, in a unit that all clusters share", "1"),
}


SEGMENT = np.dtype(
    [
        ("job", np.int64),
        ("cluster", np.int64),
        ("processors", np.int64),
        ("start", np.int64),
        ("end", np.int64),
    ]
)
"""An execution of a job on some processors of one cluster for some time."""

Variable = tuple[str | tuple[str, ...], NDArray[Any], str, str]
"""Dimensions, values, long name and unit of a variable of a run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """What a scheduler decided.

    Parameters
    ----------
    start_time : [n]
        First start of each job in seconds, -1 for a job that did not run.
    run_time : int64[n]
        Seconds of execution.
    estimate : int64[n], optional
        Runtime estimates, seconds.
    segments : array of records
        Executions, with the fields of `SEGMENT`; None where no cluster can be named.
    end_time : [n], optional
        Last end of each job; by default start and run time together.
    variables : mapping of str to Variable
        What else is known of jobs, segments, clusters or the run as a whole.
    counters : mapping
        Attributes of the run: what happened how often.
    messages : float
        Messages that the scheduler needed, one for a question with its answer.
    """

    start_time: NDArray[Any]
    run_time: NDArray[np.int64]
    estimate: NDArray[np.int64] | None = None
    segments: NDArray[Any] | None = None
    end_time: NDArray[Any] | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    messages: float = 0.0


def described(
    dimension: str, meanings: Mapping[str, tuple[str, str]], columns: Any, prefix: str = ""
) -> dict[str, Variable]:
    """Variables of one dimension: columns by name, each with its long name and unit."""
    return {
        f"{prefix}{name}": (dimension, np.array(columns[name]), *meaning)
        for name, meaning in meanings.items()
    }


def of_tasks(tasks: NDArray[np.int64]) -> dict[str, Variable]:
    """The variable that says how many processors of its job each segment has; the others fill up nodes."""
    return {"segment_tasks": ("segment", tasks, "processors of the job among those taken", "1")}


def in_one_piece(
    start_time: NDArray[np.int64],
    run_time: NDArray[np.int64],
    cluster: NDArray[np.int64],
    allocated: NDArray[np.int64],
) -> NDArray[Any]:
    """Segments of jobs that run on one cluster each, from start to end; none for those that start at -1."""
    job = np.flatnonzero(start_time >= 0)
    segments = np.empty(len(job), SEGMENT)
    segments["job"] = job
    segments["cluster"] = cluster[job]
    segments["processors"] = allocated[job]
    segments["start"] = start_time[job]
    segments["end"] = start_time[job] + run_time[job]
    return segments


def run_dataset(
    workload: Workload,
    home: NDArray[np.int64],
    clusters: Sequence[Cluster],
    schedule: Schedule,
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    """Dataset of one run: the same variables for every scheduler, and those that it adds.

    Parameters
    ----------
    workload : Workload
        The n jobs in order of submission.
    home : int64[n]
        Index of the cluster where each job is submitted, -1 for none.
    clusters : sequence of Cluster
        Where they could run.
    schedule : Schedule
        What was decided.
    attributes : mapping
        What else identifies the run.

    Returns
    -------
    xarray.Dataset
        Job variables submit_time, run_time, processors, estimate, start_time, end_time,
        recorded_wait_time, user, group, queue, home_cluster; segment variables segment_job, segment_cluster,
        segment_processors, segment_start, segment_end; cluster_processors, cluster_speed; and the variables
        of the schedule.
    """
    ran = schedule.start_time >= 0
    end_time = schedule.end_time
    if end_time is None:
        end_time = np.where(ran, schedule.start_time + schedule.run_time, NO_TIME)
    columns: dict[str, tuple[str, NDArray[Any]]] = {
        "submit_time": ("job", workload.submit_time),
        "start_time": ("job", schedule.start_time),
        "end_time": ("job", end_time),
        "processors": ("job", workload.processors),
        "run_time": ("job", schedule.run_time),
    }
    if schedule.estimate is not None:
        columns["estimate"] = ("job", schedule.estimate)
    # What xarray shows of a dataset is its beginning and its end.
    columns |= {
        "home_cluster": ("job", home),
        "recorded_wait_time": ("job", np.asarray(workload.wait_time, np.int64)),
        "user": ("job", workload.user),
        "group": ("job", workload.group),
        "queue": ("job", workload.queue),
        "cluster_processors": ("cluster", np.array([cluster.processors for cluster in clusters])),
        "cluster_speed": ("cluster", np.array([cluster.speed for cluster in clusters], np.float64)),
    }
    if schedule.segments is not None:
        for name in SEGMENT.names or ():
            columns[f"segment_{name}"] = ("segment", schedule.segments[name].copy())
    fate = schedule.variables.get("fate")
    rejected = int((~ran).sum() if fate is None else (fate[1] == REJECTED).sum())
    dataset = xr.Dataset(
        columns,
        coords={
            "job_number": ("job", workload.job_number),
            "cluster": [cluster.name for cluster in clusters],
        },
        attrs={
            "title": _title(attributes.get("scheme", "run"), workload.name, len(workload), rejected),
            "workload": workload.name,
            "jobs_rejected": rejected,
            **{name: getattr(workload, name) for name in _CLOCK if getattr(workload, name) is not None},
            **{key: attributes[key] for key in _FIRST if key in attributes},
            **{f"left_out: {reason}": count for reason, count in workload.left_out.items()},
            **{f"repaired: {reason}": count for reason, count in workload.repaired.items()},
            **attributes,
            **schedule.counters,
            "messages": schedule.messages,
            "acknowledgement": workload.acknowledgement,
            "workload_checksum": workload.checksum,
            **provenance(),
        },
    )
    for name in columns:
        long_name, units = _LONG_NAMES[name]
        dataset[name].attrs.update(long_name=long_name, units=units)
    # One by one they would be aligned with all others each time
    return dataset.assign(
        {
            name: (dimensions, values, {"long_name": long_name, "units": units})
            for name, (dimensions, values, long_name, units) in schedule.variables.items()
        }
    )


_CLOCK = ("unix_start_time", "time_zone")
"""What a workload says of its clock, where it does."""

_FIRST = ("scheme", "estimates", "policies")
"""What a run shows first of the attributes that it is given."""


def _title(scheme: str, workload: str, jobs: int, rejected: int) -> str:
    """Title of a run: what ran, and how much of it."""
    title = f"{scheme} on {workload}: {jobs:,} {'job' if jobs == 1 else 'jobs'}"
    return f"{title}, {rejected:,} rejected" if rejected else title


def provenance() -> dict[str, str]:
    """Attributes that every dataset carries."""
    return {"Conventions": "CF-1.11", "source": f"gridsched {version('gridsched')}"}


_WORTH_COMPRESSING = 500
"""Values of a variable from which on compression saves more than its bookkeeping takes."""


def write(
    dataset: xr.Dataset, path: str | Path, *, before: Callable[[Path], None] = lambda written: None
) -> None:
    """Write a dataset as netCDF-4, its larger variables compressed, whole or not at all.

    Parameters
    ----------
    dataset : xarray.Dataset
        What is written.
    path : path
        Where.
    before : callable
        Called with the complete file before it takes its place.

    Raises
    ------
    GridschedError
        If netCDF cannot write it, for instance on a full disk.
    OSError
        If there is no place for it.
    """
    encoding = {
        name: {"zlib": True, "complevel": 4, "shuffle": True}
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "iufb" and variable.size >= _WORTH_COMPRESSING
    }
    with atomic_write(path) as temporary:
        try:
            dataset.to_netcdf(temporary, engine="netcdf4", encoding=encoding)
        except (RuntimeError, UnicodeError, OSError) as error:
            # The netCDF library tells the reasons of the operating system wrongly or not at all
            free = shutil.disk_usage(Path(path).parent).free // 2**20
            raise GridschedError(
                f"{path}: cannot be written ({error}); is the disk full, or the size of files limited? "
                f"{free:,} MiB are free"
            ) from error
        before(temporary)


def read(path: str | Path) -> xr.Dataset:
    """Dataset of a netCDF file, in memory.

    Raises
    ------
    GridschedError
        If the file is missing, is not readable as netCDF, or is not what its sidecar says that was written.
    """
    _check_sidecar(Path(path))
    try:
        # What is made of several files must not be written in the form of the first, which cuts longer texts
        return xr.load_dataset(path, engine="netcdf4").drop_encoding()
    except FileNotFoundError:
        raise GridschedError(f"{path}: no such file") from None
    except (OSError, ValueError, RuntimeError, AttributeError) as error:
        # The last two are how the netCDF library reports damage inside a file that it could open.
        raise GridschedError(
            f"{path}: not a readable netCDF file ({error}); delete it and run again"
        ) from None


def sidecar(path: str | Path) -> Path:
    """File beside a dataset of a study that says how this copy was made, and its checksum."""
    return Path(path).with_suffix(".made.json")


def _check_sidecar(path: Path) -> None:
    """Refuse a dataset that is not what was written: compression finds most damage, but not in texts."""
    try:
        expected = json.loads(sidecar(path).read_text(encoding="utf-8")).get("sha256", "")
        damaged = bool(expected) and checksum(path) != expected
    except FileNotFoundError:
        return
    except (ValueError, AttributeError):
        raise GridschedError(f"{sidecar(path)}: damaged; delete it and {path.name}, and run again") from None
    if damaged:
        raise GridschedError(f"{path}: not as it was written (SHA-256 differs); delete it and run again")


# --- several runs of one workload in one file -----------------------------------------------------

_PER_RUN = ("start_time", "end_time", "estimate", "fate", "killed", "extra_work", "eligible_time")
"""Job variables that differ between runs; the others are the same for all runs of a workload."""

_RUN_ATTRIBUTES = (
    "scheme",
    "parameter_policy",
    "policies",
    "estimates",
    "jobs_rejected",
    "jobs_killed",
    "corrections",
    "jobs_gave_up",
    "jobs_never_eligible",
    "jobs_lost",
    "jobs_starved",
    "executions_killed",
)
"""Attributes that differ between runs, kept as variables of the dimension `run`."""


def stack_runs(runs: Sequence[xr.Dataset], identifiers: Sequence[str]) -> xr.Dataset:
    """Put runs of one workload into one dataset with a dimension `run`.

    Start and end times follow from the segments, which stand one run after the other.

    Raises
    ------
    ConfigurationError
        If the runs differ in more than policy and estimates: in jobs, cluster or conventions.
    """
    first = runs[0]
    for run in runs[1:]:
        _check_comparable(first, run)
    stacked = first.drop_vars([name for name in first.data_vars if _is_segment(name) or name in _PER_RUN])
    lengths = np.array([run.sizes["segment"] for run in runs])
    for name in filter(_is_segment, first.data_vars):
        columns = [run[name].values for run in runs]
        if name == "piece_segment":
            begins = (np.cumsum(lengths) - lengths).tolist()
            columns = [own + begin for own, begin in zip(columns, begins, strict=True)]
        stacked[name] = (str(name).partition("_")[0], np.concatenate(columns), first[name].attrs)
    attributes = {"long_name": "index of the run", "units": "1"}
    stacked["segment_run"] = ("segment", np.repeat(np.arange(len(runs)), lengths), attributes)
    for name in _PER_RUN[2:]:
        if name in first:
            values = np.stack([run[name].values for run in runs])
            stacked[name] = (("run", "job"), values, first[name].attrs)
    for name in _RUN_ATTRIBUTES:
        if name in first.attrs:
            stacked[f"run_{name}"] = ("run", np.array([run.attrs[name] for run in runs]))
    stacked.attrs = {key: value for key, value in first.attrs.items() if key not in _RUN_ATTRIBUTES}
    stacked.attrs["title"] = f"runs on {first.attrs['workload']}"
    return stacked.assign_coords(run=("run", list(identifiers), {"long_name": "identifier of the run"}))


def _check_comparable(first: xr.Dataset, run: xr.Dataset) -> None:
    """Refuse runs that differ in what the stacked dataset holds once."""
    shared = [name for name in first.variables if not (_is_segment(name) or name in _PER_RUN)]
    attributes = set(first.attrs) - {"title", *_RUN_ATTRIBUTES}
    different = [str(name) for name in shared if name not in run or not first[name].equals(run[name])]
    different += sorted(name for name in attributes if first.attrs[name] != run.attrs.get(name))
    if different:
        raise ConfigurationError(
            f"runs of {first.attrs['workload']} differ in {', '.join(different)}; "
            "stack runs of the same jobs on the same cluster under the same conventions"
        )


def _is_segment(name: object) -> bool:
    return str(name).startswith(("segment_", "piece_"))


# --- workloads ------------------------------------------------------------------------------------

_CLUSTER_FIELDS = ("processors", "processors_per_node", "node_exclusive", "speed")


def workload_dataset(workload: Workload, cluster: Cluster) -> xr.Dataset:
    """Dataset of a workload and of the cluster that replays it."""
    attributes: dict[str, Any] = {
        "title": f"workload {workload.name}",
        "name": workload.name,
        "header": json.dumps(workload.header),
        "acknowledgement": workload.acknowledgement,
        "checksum": workload.checksum,
        "left_out": json.dumps(dict(workload.left_out)),
        "repaired": json.dumps(dict(workload.repaired)),
        **{f"cluster_{name}": _plain(getattr(cluster, name)) for name in _CLUSTER_FIELDS},
        **provenance(),
    }
    for name in ("processors_available", "unix_start_time", "time_zone"):
        value = getattr(workload, name)
        if value is not None:
            attributes[name] = value
    columns: dict[str, Any] = {**workload.columns, **workload.extra}
    dataset = xr.Dataset({name: ("job", column) for name, column in columns.items()}, attrs=attributes)
    if workload.dependencies is not None:
        for name in workload.dependencies.dtype.names or ():
            dataset[f"dependency_{name}"] = ("dependency", workload.dependencies[name].copy())
    return dataset


def workload_from_dataset(dataset: xr.Dataset) -> tuple[Workload, Cluster]:
    """The workload and the cluster of a dataset made by `workload_dataset`."""
    attributes = dataset.attrs
    optional: dict[str, Any] = {
        name: _unwrapped(attributes[name])
        for name in ("processors_available", "unix_start_time", "time_zone")
        if name in attributes
    }
    columns: dict[str, Any] = {name: dataset[name].values for name in SWF_FIELDS}
    columns |= {name: dataset[name].values for name in EXTRA_FIELDS if name in dataset}
    if "dependency_job" in dataset:
        table = np.empty(dataset.sizes["dependency"], DEPENDENCY)
        for name in DEPENDENCY.names or ():
            table[name] = dataset[f"dependency_{name}"].values
        columns["dependencies"] = table
    workload = Workload(
        **columns,
        **optional,
        name=attributes["name"],
        header=tuple(json.loads(attributes["header"])),
        acknowledgement=attributes["acknowledgement"],
        checksum=attributes["checksum"],
        left_out=json.loads(attributes["left_out"]),
        repaired=json.loads(attributes["repaired"]),
    )
    cluster = Cluster(
        processors=int(attributes["cluster_processors"]),
        processors_per_node=int(attributes["cluster_processors_per_node"]),
        node_exclusive=bool(attributes["cluster_node_exclusive"]),
        speed=float(attributes["cluster_speed"]),
        name=workload.name,
    )
    return workload, cluster


def grids_dataset(grids: Mapping[int, Sequence[tuple[Workload, Cluster]]]) -> xr.Dataset:
    """Dataset of the workloads and clusters of several replicates of a grid, one after the other.

    Parameters
    ----------
    grids : mapping of replicate to pairs
        The clusters of that replicate, each with its workload.

    Returns
    -------
    xarray.Dataset
        Columns of the jobs (those that are wholly unknown are left out), and for each cluster of each
        replicate, on the dimension `part`: replicate, number of jobs, and its other facts as JSON.
    """
    parts = [(replicate, *pair) for replicate, pairs in grids.items() for pair in pairs]
    described = [workload_dataset(workload, cluster) for _, workload, cluster in parts]
    # A part need not have columns beyond those of the format
    columns = {
        name: np.concatenate(
            [
                part[name].values if name in part else np.full(len(part["job_number"]), UNKNOWN)
                for part in described
            ]
        )
        for name in (*SWF_FIELDS, *EXTRA_FIELDS)
        if any(name in part for part in described)
    }
    facts = [json.dumps({key: _unwrapped(value) for key, value in part.attrs.items()}) for part in described]
    whole = xr.Dataset(
        {
            **{name: ("job", column) for name, column in columns.items() if (column != UNKNOWN).any()},
            "part_replicate": ("part", np.array([replicate for replicate, _, _ in parts])),
            "part_jobs": ("part", np.array([len(workload) for _, workload, _ in parts])),
            "part_facts": ("part", np.array(facts, dtype=object)),
        },
        attrs={"title": "workloads of a grid", **provenance()},
    )
    waiting = [part for part in described if "dependency" in part.sizes]
    if waiting:
        whole["part_dependencies"] = (
            "part",
            np.array([part.sizes.get("dependency", 0) for part in described]),
        )
        for name in DEPENDENCY.names or ():
            column = np.concatenate([part[f"dependency_{name}"].values for part in waiting])
            whole[f"dependency_{name}"] = ("dependency", column)
    return whole


def grids_from_dataset(dataset: xr.Dataset) -> dict[int, list[tuple[Workload, Cluster]]]:
    """The workloads and clusters of a dataset made by `grids_dataset`, by replicate.

    A workload of which no job has a value of a further column, or waits for another, is without these.
    """
    grids: dict[int, list[tuple[Workload, Cluster]]] = {}
    sizes = dataset["part_jobs"].values
    waiting = dataset["part_dependencies"].values if "part_dependencies" in dataset else np.zeros_like(sizes)
    begins = zip(np.cumsum(sizes) - sizes, np.cumsum(waiting) - waiting, strict=True)
    for part, (first, first_dependency) in enumerate(begins):
        jobs = int(sizes[part])
        own = dataset.isel(job=slice(int(first), int(first) + jobs), part=part)
        known = {name: ("job", own[name].values) for name in SWF_FIELDS if name in own}
        unknown = {name: ("job", np.full(jobs, UNKNOWN)) for name in SWF_FIELDS if name not in own}
        more = {
            name: ("job", own[name].values)
            for name in EXTRA_FIELDS
            if name in own and (own[name].values != UNKNOWN).any()
        }
        if waiting[part]:
            rows = slice(int(first_dependency), int(first_dependency + waiting[part]))
            more |= {
                f"dependency_{name}": ("dependency", dataset[f"dependency_{name}"].values[rows])
                for name in DEPENDENCY.names or ()
            }
        facts = json.loads(str(own["part_facts"].values))
        pair = workload_from_dataset(xr.Dataset({**known, **unknown, **more}, attrs=facts))
        grids.setdefault(int(own["part_replicate"]), []).append(pair)
    return grids


def _plain(value: Any) -> Any:
    """Value as netCDF can hold it."""
    return int(value) if isinstance(value, bool) else value


def _unwrapped(value: Any) -> Any:
    """Value without the NumPy type that netCDF gives it."""
    return value.item() if isinstance(value, np.generic) else value

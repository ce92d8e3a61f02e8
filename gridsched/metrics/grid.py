"""What a grid made of its jobs: the metrics of one run of a superscheduler or of an ideal machine.

Shan, Oliker and Biswas, "Job superscheduler architecture and performance in computational grid environments"
(SC 2003), section 3.2, with the usual metrics beside them. `summarise_grid` and `summarise_ideal` give the
same variables, so that runs of all schemes go into one dataset; NaN where a variable says nothing about a
scheme. Rejected jobs (start time -1) enter no metric and are counted in `rejected`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import ConfigurationError
from gridsched.metrics import jobs as metrics
from gridsched.platform import Cluster
from gridsched.traces.merging import merge_workloads
from gridsched.workloads.table import Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "jobs": ((), "jobs that ran", "1"),
    "rejected": ((), "jobs that fit nowhere", "1"),
    "wait_time_mean": ((), "mean wait time", "s"),
    "response_time_mean": ((), "mean response time", "s"),
    "wait_time_deviation": ((), "average wait time deviation as the paper defines it", "s"),
    "wait_time_std": ((), "standard deviation of the wait time", "s"),
    "wait_time_median": ((), "median wait time", "s"),
    "wait_time_p95": ((), "wait time that 95 % of the jobs do not exceed", "s"),
    "bounded_slowdown_mean": ((), "mean bounded slowdown", "1"),
    "bounded_slowdown_median": ((), "median bounded slowdown", "1"),
    "slowdown_mean": ((), "mean slowdown", "1"),
    "grid_efficiency": (
        (),
        "work done relative to what all processors could do, first to last submission",
        "1",
    ),
    "grid_efficiency_makespan": (
        (),
        "work done relative to what all processors could do over the makespan, as the paper defines it",
        "1",
    ),
    "transferred": ((), "share of the jobs that ran on another cluster than their home", "1"),
    "makespan": ((), "time from the first submission to the last end", "s"),
    "queries": ((), "predicted starts asked for", "1"),
    "corrections": ((), "times that a running job outran its expected end", "1"),
    "jobs_home": (("home",), "jobs submitted at the machine that ran", "1"),
    "wait_time_mean_home": (("home",), "mean wait time of the jobs submitted at the machine", "s"),
    "response_time_mean_home": (("home",), "mean response time of the jobs submitted at the machine", "s"),
    "run_time_mean_home": (
        ("home",),
        "mean time from start to end of the jobs submitted at the machine",
        "s",
    ),
    "bounded_slowdown_mean_home": (
        ("home",),
        "mean bounded slowdown of the jobs submitted at the machine",
        "1",
    ),
    "utilisation": (
        ("cluster",),
        "share of the processors that jobs asked for, first to last submission anywhere",
        "1",
    ),
    "utilisation_makespan": (
        ("cluster",),
        "share of the processors that jobs asked for, over the makespan",
        "1",
    ),
    "utilisation_own": (
        ("cluster",),
        "share of the processors that jobs asked for, from the first submission of a job that ran on the "
        "cluster to the last end there",
        "1",
    ),
    "occupied": (
        ("cluster",),
        "share of the processors allocated to jobs, first to last submission anywhere",
        "1",
    ),
    "occupied_makespan": (("cluster",), "share of the processors allocated to jobs, over the makespan", "1"),
    "flow_jobs": (("home", "cluster"), "jobs by home and by the cluster that ran them", "1"),
    "flow_work": (
        ("home", "cluster"),
        "processor-seconds that jobs asked for, by home and by the cluster that ran them",
        "s",
    ),
}
"""Variables of a summary: dimensions, long name and unit."""


class JobOptions(TypedDict, total=False):
    """Which jobs are measured, and how; see `gridsched.metrics.jobs.summarise`."""

    warm_up: float
    cool_down: float
    slowdown_threshold: float
    since: metrics.SinceName


def summarise_grid(run: xr.Dataset, **options: Unpack[JobOptions]) -> xr.Dataset:
    """Condense a run of a superscheduler to the variables of `VARIABLES`.

    Grid efficiency is a fraction: the sum over jobs of processors asked for x time on the cluster x speed of
    the cluster that ran the job, relative to time x the sum over clusters of processors x speed. The time is
    that from the first to the last submission, and only what is done in it counts, see
    `gridsched.metrics.jobs.utilisation`; in `grid_efficiency_makespan`, the paper's, it is the makespan.
    Slowdowns are relative to the run time on that cluster.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate` on several clusters. A job that ran in several pieces counts as
        transferred if one of them was elsewhere, and its flow is to the cluster of the last one.
    options
        warm_up, cool_down, slowdown_threshold and since, as of `gridsched.metrics.jobs.summarise`. All jobs
        are counted, and what clusters did is that of all jobs.

    Returns
    -------
    xarray.Dataset
        Dimensions `home` and `cluster` with the same labels; the attributes of the run.

    Raises
    ------
    ConfigurationError
        If the run lacks a variable.
    """
    _require(run, ("home_cluster", "cluster_speed", "cluster_processors", "segment_job"))
    values = _of_jobs(run, **options) | _of_clusters(run)
    for name in ("queries", "corrections"):
        values[name] = float(run.attrs.get(name, np.nan))
    return _summary(run, values)


def summarise_ideal(run: xr.Dataset, **options: Unpack[JobOptions]) -> xr.Dataset:
    """Condense a run of an ideal machine to the variables of `VARIABLES`.

    What concerns clusters, transfers and predictions is NaN. Slowdowns are relative to the run time on the
    home cluster, which the pool can undercut; `run_time_mean_home` counts interruptions. Work of a job counts
    as done evenly between its start and its end.

    Parameters
    ----------
    run : xarray.Dataset
        A run of an ideal machine, see `gridsched.systems.ideal`.
    options
        As in `summarise_grid`.

    Returns
    -------
    xarray.Dataset
        As `summarise_grid`.

    Raises
    ------
    ConfigurationError
        If the run lacks a variable.
    """
    _require(run, ("home_cluster", "cluster_speed", "cluster_processors"))
    ran = _ran(run)
    speed = run["cluster_speed"].to_numpy()[_home(run)]
    work = (run["processors"].to_numpy() * run["run_time"].to_numpy() * speed)[ran]
    efficiency = {
        "grid_efficiency": metrics.quotient(
            (work * _share_within(run)[ran]).sum(), _capacity(run) * _submission(run)
        ),
        "grid_efficiency_makespan": metrics.quotient(work.sum(), _capacity(run) * metrics.makespan(run)),
    }
    return _summary(run, _of_jobs(run, **options) | efficiency)


def _submission(run: xr.Dataset) -> float:
    """Seconds from the first to the last submission."""
    first, last = metrics.submitted(run)
    return last - first


def _share_within(run: xr.Dataset) -> Floats:
    """Share of the time between start and end of each job before the last submission."""
    start, end = run["start_time"].to_numpy(), run["end_time"].to_numpy()
    _, last = metrics.submitted(run)
    whole: Floats = np.clip(metrics.quotient(np.minimum(end, last) - start, end - start), 0.0, 1.0)
    return np.nan_to_num(whole)


def wait_time_deviation(wait_time: ArrayLike) -> float:
    """Average Wait Time Deviation of section 3.2: sqrt(sum(w^2) - sum(w / N)^2) / N.

    This is not the ordinary deviation s. With m the mean wait it equals sqrt(N s^2 + (N - 1) m^2) / N,
    nearly the root of the mean square divided by sqrt(N): it grows with the mean itself, and shrinks as a
    workload gets longer, so that only workloads of equally many jobs can be compared by it.

    Parameters
    ----------
    wait_time : array_like
        Seconds, one entry a job.

    Returns
    -------
    float
        Seconds; NaN without jobs.
    """
    wait = np.asarray(wait_time, np.float64)
    if not wait.size:
        return np.nan
    return float(np.sqrt(np.square(wait).sum() - wait.mean() ** 2) / wait.size)


def offered_loads(
    workloads: Sequence[Workload],
    clusters: Sequence[Cluster],
    *,
    align: Literal["start", "clock", "none"] = "start",
) -> xr.Dataset:
    """What users ask of each cluster, whoever will run it.

    Parameters
    ----------
    workloads : sequence of Workload
        Clean jobs that users submit to each cluster, also those that it cannot hold.
    clusters : sequence of Cluster
        The clusters, one for each workload.
    align : {"start", "clock", "none"}
        How submit times of the workloads go together, see `gridsched.traces.merge_workloads`.

    Returns
    -------
    xarray.Dataset
        On dimension `cluster`: offered_load, the sum of processors x run time relative to processors of the
        cluster x time from the first to the last submission anywhere (NaN if that is 0); jobs_submitted.

    Raises
    ------
    ConfigurationError
        If there is not one workload for each cluster.
    """
    if len(workloads) != len(clusters):
        raise ConfigurationError(
            f"{len(workloads)} workloads for {len(clusters)} clusters; give one for each"
        )
    merged, home = merge_workloads(workloads, align=align)
    work = np.bincount(home, merged.processors * merged.run_time.astype(np.float64), len(clusters))
    capacity = np.array([cluster.processors for cluster in clusters]) * np.ptp(merged.submit_time)
    submitted = np.array([len(workload) for workload in workloads], np.float64)
    return xr.Dataset(
        {
            "offered_load": (
                "cluster",
                metrics.quotient(work, capacity),
                {"long_name": "work submitted at the machine relative to its capacity", "units": "1"},
            ),
            "jobs_submitted": (
                "cluster",
                submitted,
                {"long_name": "jobs submitted at the machine", "units": "1"},
            ),
        },
        {"cluster": [cluster.name for cluster in clusters]},
    )


def _require(run: xr.Dataset, names: Iterable[str]) -> None:
    for name in names:
        if name not in run:
            raise ConfigurationError(
                f"run {run.attrs.get('title', '')!r}: no variable {name}; "
                "give a run on several clusters, or of an ideal machine"
            )


def _ran(run: xr.Dataset) -> NDArray[np.bool_]:
    return np.asarray(run["start_time"].to_numpy() != metrics.NOT_STARTED)


def _home(run: xr.Dataset) -> Integers:
    return np.asarray(run["home_cluster"].to_numpy(), np.int64)


def _capacity(run: xr.Dataset) -> float:
    """Work that all processors together can do in a second."""
    return float((run["cluster_processors"].to_numpy() * run["cluster_speed"].to_numpy()).sum())


def _of_jobs(
    run: xr.Dataset,
    *,
    warm_up: float = 0.0,
    cool_down: float = 0.0,
    slowdown_threshold: float = metrics.SLOWDOWN_THRESHOLD,
    since: metrics.SinceName = "submit",
) -> dict[str, Any]:
    """Counts of all jobs, and of those of each home; times of those that are measured."""
    ran, home, homes = _ran(run), _home(run), run.sizes["cluster"]
    counts = {
        "jobs": ran.sum(),
        "rejected": (~ran).sum(),
        "makespan": metrics.makespan(run),
        "jobs_home": np.bincount(home[ran], minlength=homes).astype(np.float64),
    }
    timed = metrics.measured_jobs(run, warm_up, cool_down)
    timed = timed[ran[timed]]
    of_jobs = metrics.job_metrics(run, slowdown_threshold=slowdown_threshold, since=since)
    columns = {name: values[timed] for name, values in of_jobs.items()}
    return counts | _job_level(columns) | _home_level(columns, home[timed], homes)


def _job_level(columns: Mapping[str, Floats]) -> dict[str, float]:
    wait, bounded = columns["wait_time"], columns["bounded_slowdown"]
    if not len(wait):
        return {}
    median, p95 = np.quantile(wait, (0.5, 0.95))
    return {
        "wait_time_mean": wait.mean(),
        "response_time_mean": columns["response_time"].mean(),
        "wait_time_deviation": wait_time_deviation(wait),
        "wait_time_std": wait.std(),
        "wait_time_median": median,
        "wait_time_p95": p95,
        "bounded_slowdown_mean": bounded.mean(),
        "bounded_slowdown_median": np.median(bounded),
        "slowdown_mean": columns["slowdown"].mean(),
    }


def _home_level(columns: Mapping[str, Floats], home: Integers, homes: int) -> dict[str, Floats]:
    jobs = np.bincount(home, minlength=homes).astype(np.float64)
    times = {name: columns[name] for name in ("wait_time", "response_time", "bounded_slowdown")}
    times["run_time"] = columns["response_time"] - columns["wait_time"]
    return {
        f"{name}_mean_home": metrics.quotient(np.bincount(home, values, homes), jobs)
        for name, values in times.items()
    }


def _of_clusters(run: xr.Dataset) -> dict[str, Any]:
    clusters = run.sizes["cluster"]
    job, cluster = run["segment_job"].to_numpy(), run["segment_cluster"].to_numpy()
    start, end = run["segment_start"].to_numpy(), run["segment_end"].to_numpy()
    seconds = (end - start).astype(np.float64)
    within = metrics.seconds_within(run, metrics.submitted(run))
    home, held = _home(run)[job], run["segment_processors"].to_numpy()
    # Whole nodes may be more than a job asks for, a piece on one of several clusters less
    sizes = np.minimum(run["processors"].to_numpy()[job], held)
    asked = sizes * seconds
    last = _last_pieces(job, end)
    moved = np.unique(job[cluster != home])

    pair = home * clusters + cluster
    flow_work = np.bincount(pair, asked, clusters**2).reshape(clusters, clusters)
    work = flow_work.sum(axis=0)
    work_done = np.bincount(cluster, sizes * within, clusters)
    processors, speed = run["cluster_processors"].to_numpy(), run["cluster_speed"].to_numpy()
    makespan, submission = metrics.makespan(run), _submission(run)
    return {
        "grid_efficiency": metrics.quotient((work_done * speed).sum(), _capacity(run) * submission),
        "grid_efficiency_makespan": metrics.quotient((work * speed).sum(), _capacity(run) * makespan),
        "transferred": metrics.quotient(len(moved), len(last)),
        "utilisation": metrics.quotient(work_done, processors * submission),
        "utilisation_makespan": metrics.quotient(work, processors * makespan),
        "utilisation_own": metrics.quotient(work, processors * _own_window(run, job, cluster, end)),
        "occupied": metrics.quotient(np.bincount(cluster, held * within, clusters), processors * submission),
        "occupied_makespan": metrics.quotient(
            np.bincount(cluster, held * seconds, clusters), processors * makespan
        ),
        "flow_jobs": np.bincount(pair[last], minlength=clusters**2).reshape(clusters, clusters),
        "flow_work": flow_work,
    }


def _last_pieces(job: Integers, end: Integers) -> Integers:
    """Index of the segment of each job that ends last."""
    order = np.lexsort((end, job))
    return np.asarray(order[np.append(np.diff(job[order]) > 0, True)] if len(job) else order)


def _own_window(run: xr.Dataset, job: Integers, cluster: Integers, end: Integers) -> Floats:
    """Seconds from the first submission of a job that ran on each cluster to the last end there."""
    first = np.full(run.sizes["cluster"], np.inf)
    last = np.full(run.sizes["cluster"], -np.inf)
    np.minimum.at(first, cluster, run["submit_time"].to_numpy()[job].astype(np.float64))
    np.maximum.at(last, cluster, end.astype(np.float64))
    return np.asarray(last - first)


def _summary(run: xr.Dataset, values: Mapping[str, Any]) -> xr.Dataset:
    """Dataset of all `VARIABLES`, NaN where there is no value."""
    labels = run["cluster"].to_numpy()
    variables = {}
    for name, (dims, long_name, units) in VARIABLES.items():
        shape = (len(labels),) * len(dims)
        data = np.broadcast_to(np.asarray(values.get(name, np.nan), np.float64), shape).copy()
        variables[name] = xr.Variable(dims, data, {"long_name": long_name, "units": units})
    coordinates = {
        "home": ("home", labels, {"long_name": "machine where jobs were submitted"}),
        "cluster": ("cluster", labels, {"long_name": "machine where jobs ran"}),
    }
    return xr.Dataset(variables, coordinates, run.attrs)

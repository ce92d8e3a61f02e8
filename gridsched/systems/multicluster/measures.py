"""Metrics of schedules with deadlines: over-deadline, idle time, MCP and PB.

He et al., "Hybrid performance-based workload management for multiclusters and grids" (IEE Proceedings -
Software 151, 2004), section 5. Each time jobs are handed to the clusters, the comprehensive performance CP of
each cluster is recorded (`titan`): over its jobs that have not started, from then on. A
cluster without such jobs has CP 0. A run is judged by the means of MCP and PB over these rounds; the less the
better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import ConfigurationError
from gridsched.metrics import jobs as metrics
from gridsched.metrics.measure import Measure

Floats = NDArray[np.float64]

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "jobs": ((), "jobs that ran", "1"),
    "rejected": ((), "jobs larger than every cluster", "1"),
    "rounds": ((), "times that jobs were handed to the clusters", "1"),
    "mcp_mean": ((), "mean comprehensive performance, mean over rounds", "s"),
    "pb_mean": ((), "performance balance factor, mean over rounds", "s"),
    "queue_mean": ((), "jobs collected for the next round, mean over time", "1"),
    "waiting_mean": ((), "jobs that have not started, mean over time", "1"),
    "makespan": ((), "time from the first submission to the last end", "s"),
    "over_deadline": ((), "time over deadlines, sum over jobs", "s"),
    "over_deadline_mean": ((), "time over the deadline, mean over jobs", "s"),
    "late": ((), "share of the jobs that end after their deadline", "1"),
    "wait_time_mean": ((), "mean wait time", "s"),
    "response_time_mean": ((), "mean response time", "s"),
    "idle_time": ((), "time that resources are not used until the last end, sum", "s"),
    "generations_mean": ((), "generations of the genetic algorithm, mean over its runs", "1"),
    "cp_mean_cluster": (("cluster",), "comprehensive performance, mean over rounds", "s"),
    "jobs_cluster": (("cluster",), "jobs that ran", "1"),
    "over_deadline_cluster": (("cluster",), "time over deadlines, sum over jobs", "s"),
    "utilisation_cluster": (
        ("cluster",),
        "share of the processors in use, first to last submission",
        "1",
    ),
}
"""Variables of a summary: dimensions, long name and unit."""


_HE = "He et al., IEE Proceedings - Software 151, 2004"

MEASURES: tuple[Measure, ...] = (
    Measure("mcp_mean", "mean comprehensive performance (MCP)", "s", "lower", source=f"{_HE}, equation (7)"),
    Measure("pb_mean", "performance balance (PB)", "s", "lower", source=f"{_HE}, equation (8)"),
    Measure("cp_mean", "comprehensive performance", "s", "lower", source=f"{_HE}, equation (1)"),
    Measure("rounds", "rounds"),
    Measure("queue_mean", "jobs collected"),
    Measure("queue_growth", "growth of the queue"),
    Measure("waiting_mean", "jobs not started"),
    Measure("over_deadline", "time over deadlines", "s", "lower"),
    Measure("over_deadline_mean", "mean time over the deadline", "s", "lower"),
    Measure("late", "share of late jobs", "1", "lower", share=True),
    Measure("idle_time", "idle time", "s", "lower"),
    Measure("generations_mean", "generations of the genetic algorithm"),
    Measure("rate", "arrivals in a unit of time"),
    Measure("calibrated_queue", "jobs in the queue for which the rate was set"),
    Measure("weight_over_deadline", "weight of the time over deadlines"),
    Measure("weight_makespan", "weight of the makespan"),
    Measure("weight_idle", "weight of the idle time"),
    Measure("cluster_processors", "processors of the cluster"),
    Measure("cluster_speed", "speed of the cluster"),
)
"""Measures of schedules with deadlines, for studies, tables and figures."""


def over_deadline(end_time: ArrayLike, deadline: ArrayLike) -> NDArray[np.int64]:
    """What each job ends after its deadline, 0 if it does not; seconds."""
    return np.maximum(np.asarray(end_time, np.int64) - np.asarray(deadline, np.int64), 0)


def mean_performance(performance: ArrayLike, jobs: ArrayLike) -> Floats:
    """Mean comprehensive performance (MCP), equation (7): the mean of CP, weighted with numbers of jobs.

    Parameters
    ----------
    performance, jobs : array_like
        CP and jobs, clusters on the last axis.

    Returns
    -------
    array of float64
        NaN where there are no jobs.
    """
    values, weights = np.asarray(performance, np.float64), np.asarray(jobs, np.float64)
    total = weights.sum(axis=-1)
    share = (values * weights).sum(axis=-1) / np.where(total > 0, total, np.nan)
    return np.asarray(share, np.float64)


def performance_balance(performance: ArrayLike, jobs: ArrayLike) -> Floats:
    """Performance balance factor (PB), equation (8): deviation of CP from MCP over the clusters.

    Clusters without jobs count, too, with what is given. The squares are divided by the number of clusters
    less one; NaN for one cluster.
    """
    values = np.asarray(performance, np.float64)
    apart = values - mean_performance(values, jobs)[..., np.newaxis]
    divisor = values.shape[-1] - 1
    return np.asarray(np.sqrt((apart**2).sum(axis=-1) / (divisor if divisor else np.nan)), np.float64)


def summarise_multicluster(run: xr.Dataset) -> xr.Dataset:
    """Condense a run to the variables of `VARIABLES`.

    Where the run has service classes, over_deadline_mean_class and late_class on dimension `class_name`
    besides.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `scheduler.Multicluster`.

    Raises
    ------
    ConfigurationError
        If the run lacks what such a run has.
    """
    for name in ("deadline", "comprehensive_performance", "round_jobs", "segment_cluster"):
        if name not in run:
            raise ConfigurationError(
                f"run {run.attrs.get('title', '')!r}: no variable {name}; "
                "give a run of Multicluster, measured"
            )
    values = _of_rounds(run) | _of_jobs(run) | _of_clusters(run)
    labels = {"cluster": run["cluster"].to_numpy()}
    variables = {
        name: (dims, np.asarray(values.get(name, np.nan), np.float64), {"long_name": words, "units": units})
        for name, (dims, words, units) in VARIABLES.items()
    }
    summary = xr.Dataset(variables, labels, run.attrs)
    return summary.assign(_of_classes(run)) if "service_class" in run else summary


def _of_rounds(run: xr.Dataset) -> dict[str, Any]:
    performance = run["comprehensive_performance"].to_numpy()
    generations = run["round_generations"].to_numpy()
    made = generations[generations > 0]
    return {
        "rounds": run.sizes["round"],
        "mcp_mean": _mean(run["mcp"].to_numpy()),
        "pb_mean": _mean(run["pb"].to_numpy()),
        "cp_mean_cluster": performance.mean(axis=0)
        if len(performance)
        else np.full(run.sizes["cluster"], np.nan),
        "generations_mean": made.mean() if len(made) else 0.0,
        "queue_mean": float(run["queue_mean"]),
        "waiting_mean": float(run["waiting_mean"]),
    }


def _mean(values: Floats) -> float:
    """Mean of the rounds that have a value; NaN if none has."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def _of_jobs(run: xr.Dataset) -> dict[str, Any]:
    ran = run["start_time"].to_numpy() >= 0
    over = over_deadline(run["end_time"].to_numpy(), run["deadline"].to_numpy())[ran]
    counts: dict[str, Any] = {"jobs": ran.sum(), "rejected": run.attrs["jobs_rejected"]}
    if not len(over):
        return counts
    columns = {name: values[ran] for name, values in metrics.job_metrics(run).items()}
    return counts | {
        "makespan": metrics.makespan(run),
        "over_deadline": over.sum(),
        "over_deadline_mean": over.mean(),
        "late": (over > 0).mean(),
        "wait_time_mean": columns["wait_time"].mean(),
        "response_time_mean": columns["response_time"].mean(),
    }


def _of_clusters(run: xr.Dataset) -> dict[str, Any]:
    clusters = run.sizes["cluster"]
    job, cluster = run["segment_job"].to_numpy(), run["segment_cluster"].to_numpy()
    seconds = run["segment_end"].to_numpy() - run["segment_start"].to_numpy()
    work = np.bincount(cluster, seconds * run["segment_processors"].to_numpy(), clusters)
    # a job that was killed counts where it was executed last
    last = run["segment_end"].to_numpy() == run["end_time"].to_numpy()[job]
    over = over_deadline(run["end_time"].to_numpy()[job], run["deadline"].to_numpy()[job])
    capacity = run["cluster_processors"].to_numpy() * metrics.makespan(run)
    window = metrics.submitted(run)
    within = metrics.seconds_within(run, window) * run["segment_processors"].to_numpy()
    used = np.bincount(cluster, within, clusters)
    possible = run["cluster_processors"].to_numpy() * (window[1] - window[0])
    return {
        "jobs_cluster": np.bincount(cluster[last], minlength=clusters),
        "over_deadline_cluster": np.bincount(cluster[last], over[last], clusters),
        "utilisation_cluster": used / np.where(possible > 0, possible, np.nan),
        "idle_time": (capacity - work).sum(),
    }


def _of_classes(run: xr.Dataset) -> dict[str, Any]:
    ran = run["start_time"].to_numpy() >= 0
    over = over_deadline(run["end_time"].to_numpy(), run["deadline"].to_numpy())[ran]
    index = run["service_class"].to_numpy()[ran]
    names = str(run.attrs["service_classes"]).split(", ")
    count = np.bincount(index, minlength=len(names)).astype(np.float64)
    count[count == 0] = np.nan
    totals = {
        "over_deadline_mean_class": (over, "time over the deadline, mean over jobs", "s"),
        "late_class": (over > 0, "share of the jobs that end after their deadline", "1"),
    }
    variables: dict[str, Any] = {
        name: xr.Variable(
            "class_name",
            np.bincount(index, values, len(names)) / count,
            {"long_name": long_name, "units": units},
        )
        for name, (values, long_name, units) in totals.items()
    }
    return variables | {"class_name": ("class_name", names)}

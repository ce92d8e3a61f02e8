"""What schedulers made of the jobs of several clusters: normalised queuing delays, trade, utilisation.

The normalised queuing delay of a job is the time from its submission to its completion over its execution
time, both of at least one second. Hollingsworth and Maneewongvatana (1999) print a weighted mean of it
without the weights, so there are four aggregates:

==================  =====================================================================
``mean``            mean over jobs
``work_weighted``   mean over jobs, weighted by processors x execution time
``ratio_of_means``  mean time from submission to completion over mean execution time
``geometric_mean``  geometric mean over jobs
==================  =====================================================================

Each is split into contributions of the jobs that were submitted in the same block of time; they add up to
it. The ratio of two sums over all blocks but one is then the ratio of two aggregates without the jobs of that
block (of the geometric mean to first order), from which intervals come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.systems.calendars.planning import COUNTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

AGGREGATES: tuple[str, ...] = ("mean", "work_weighted", "ratio_of_means", "geometric_mean")
"""Ways to condense delays."""

LENGTHS: tuple[str, ...] = ("all", "under 10 s", "10 to 100 s", "100 to 1000 s", "1000 s and more")
"""Classes of jobs by execution time; the first has them all."""

_BORDERS = (10, 100, 1000)
_HOUR = 3600.0

_Described = tuple[tuple[str, ...], str, str]

VARIABLES: dict[str, _Described] = {
    "delay": (("aggregate", "job_class"), "normalised queuing delay", "1"),
    "delay_by_block": (
        ("aggregate", "job_class", "block"),
        "contribution of the jobs submitted in the block to the normalised queuing delay",
        "1",
    ),
    "delay_by_cluster": (
        ("aggregate", "job_class", "cluster"),
        "normalised queuing delay of the jobs submitted to the cluster",
        "1",
    ),
    "delay_others": (
        ("aggregate",),
        "normalised queuing delay of the jobs that ask for no reservation in any run of the study",
        "1",
    ),
    "delay_others_by_block": (
        ("aggregate", "block"),
        "contribution of the jobs submitted in the block to the delay of the others",
        "1",
    ),
    "wait_time_mean": (("job_class",), "mean wait time", "s"),
    "wait_time_mean_by_cluster": (("cluster",), "mean wait time of the jobs submitted to the cluster", "s"),
    "jobs": (("job_class",), "jobs that ran", "1"),
    "jobs_by_cluster": (("cluster",), "jobs submitted to the cluster that ran", "1"),
    "jobs_others": ((), "jobs that ask for no reservation in any run of the study", "1"),
    "makespan": ((), "time from the first submission to the last end", "s"),
    "utilisation": (("cluster",), "work done on the cluster relative to its capacity in the makespan", "1"),
    "utilisation_total": ((), "work done relative to the capacity of all clusters in the makespan", "1"),
    "supplied": (("cluster",), "work done for jobs of other clusters", "h"),
    "consumed": (("cluster",), "work of own jobs done on other clusters", "h"),
    "balance": (("cluster",), "consumed less supplied work", "h"),
    "local_work": (("cluster",), "work of own jobs done at home", "h"),
    "supplied_total": ((), "work done on another cluster than the one of submission", "h"),
    "local_work_total": ((), "work done on the cluster of submission", "h"),
    "clusters_supplying": ((), "clusters that do more work for others than of their own jobs", "1"),
    "clusters_lending": ((), "clusters that supply more work than they consume", "1"),
    "delay_spread": (
        ("aggregate", "job_class"),
        "standard deviation of the delays of the clusters relative to their mean",
        "1",
    ),
    "transferred": ((), "jobs that ran elsewhere than at home, in whole or in part", "1"),
    "transferred_by_cluster": (("cluster",), "jobs of the cluster that ran elsewhere", "1"),
    "acceptance": ((), "share of the reservations that were granted", "1"),
    "postponement_mean": ((), "mean time from a refused start to the earliest that could be had", "s"),
    "failed_share": ((), "share of the inquiries that were declined at the time asked for", "1"),
    "touched_per_operation": ((), "slots looked at or changed per operation", "1"),
    **{name: ((), long_name, "1") for name, long_name in COUNTS.items()},
}
"""Measures of a run: dimensions, long name and unit. Counts of calendars are NaN for local policies."""


@dataclass(frozen=True, eq=False)
class JobOutcomes:
    """Outcomes of the jobs of several clusters; all arrays of jobs are in the same order.

    Parameters
    ----------
    submit_time, run_time, processors, home : int64[n]
        As submitted; home is the index of a cluster.
    start_time, end_time : int64[n]
        Seconds, -1 for a job that did not run.
    block : int64[n]
        Block of time of the submission, from 0.
    blocks : int
        Number of blocks.
    other : bool[n]
        Whether the job asks for no reservation in any run of the study.
    nodes : int64[m]
        Processors of each cluster.
    supplied, consumed, local : float64[m]
        Work of each cluster [processor-seconds]: for others, of own jobs elsewhere, of own jobs at home.
    moved : bool[n]
        Whether the job ran elsewhere than at home.
    postponed : float64[k]
        Seconds from the start asked for to the earliest possible one, of each refused reservation.
    counts : mapping of str to int
        `scheduler.COUNTS`; empty for local policies.
    """

    submit_time: Integers
    run_time: Integers
    processors: Integers
    home: Integers
    start_time: Integers
    end_time: Integers
    block: Integers
    blocks: int
    other: Flags
    nodes: Integers
    supplied: Floats
    consumed: Floats
    local: Floats
    moved: Flags
    postponed: Floats
    counts: Mapping[str, int]


def length_class(run_time: Integers) -> Integers:
    """Class of each job as an index of `LENGTHS`, 1 to 4."""
    return 1 + np.searchsorted(_BORDERS, run_time, side="right").astype(np.int64)


def contributions(response_time: Integers, run_time: Integers, processors: Integers) -> Floats:
    """Contribution of each job to each of `AGGREGATES`; they add up to it.

    Parameters
    ----------
    response_time, run_time : int64[n]
        Seconds from submission to completion, and of execution.
    processors : int64[n]

    Returns
    -------
    float64[4, n]
    """
    jobs = len(run_time)
    if not jobs:
        return np.empty((len(AGGREGATES), 0))
    run = np.maximum(run_time, 1).astype(np.float64)
    response = np.maximum(response_time, 1).astype(np.float64)
    delay = response / run
    work = run * processors
    logarithm = np.log(delay)
    mean = logarithm.mean()
    return np.stack(
        [
            delay / jobs,
            delay * work / work.sum(),
            response / run.sum(),
            np.exp(mean) * (1 + logarithm - mean) / jobs,
        ]
    )


def delays(response_time: Integers, run_time: Integers, processors: Integers) -> Floats:
    """Normalised queuing delay under each of `AGGREGATES`; NaN without jobs."""
    if not len(run_time):
        return np.full(len(AGGREGATES), np.nan)
    found: Floats = contributions(response_time, run_time, processors).sum(axis=1)
    return found


def measure(done: JobOutcomes) -> dict[str, float | Floats]:
    """Values of `VARIABLES` for one run."""
    ran = np.flatnonzero(done.start_time >= 0)
    response, run, size = done.end_time[ran] - done.submit_time[ran], done.run_time[ran], done.processors[ran]
    wait = (done.start_time - done.submit_time)[ran].astype(np.float64)
    home, block, length = done.home[ran], done.block[ran], length_class(run)
    clusters = len(done.nodes)
    classes = [np.ones(len(ran), np.bool_), *(length == number for number in range(1, len(LENGTHS)))]
    homes = [home == cluster for cluster in range(clusters)]

    def delay_of(jobs: Flags) -> Floats:
        return delays(response[jobs], run[jobs], size[jobs])

    def by_block(jobs: Flags) -> Floats:
        parts = contributions(response[jobs], run[jobs], size[jobs])
        return np.stack([np.bincount(block[jobs], part, done.blocks) for part in parts])

    by_cluster = np.stack(
        [np.stack([delay_of(jobs & own) for own in homes], axis=1) for jobs in classes], axis=1
    )
    return {
        "delay": np.stack([delay_of(jobs) for jobs in classes], axis=1),
        "delay_by_block": np.stack([by_block(jobs) for jobs in classes], axis=1),
        "delay_by_cluster": by_cluster,
        "delay_spread": _spread(by_cluster),
        "delay_others": delay_of(done.other[ran]),
        "delay_others_by_block": by_block(done.other[ran]),
        "wait_time_mean": np.array([_mean(wait[jobs]) for jobs in classes]),
        "wait_time_mean_by_cluster": np.array([_mean(wait[own]) for own in homes]),
        "jobs": np.array([jobs.sum() for jobs in classes], np.float64),
        "jobs_by_cluster": np.array([own.sum() for own in homes], np.float64),
        "jobs_others": float(done.other[ran].sum()),
        **_of_clusters(done, ran),
        **_of_calendars(done),
    }


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else np.nan


def _spread(values: Floats) -> Floats:
    """Standard deviation over the last axis relative to the mean; NaN where a value is unknown."""
    spread: Floats = values.std(axis=-1) / values.mean(axis=-1)
    return spread


def _share(part: float, whole: float) -> float:
    return part / whole if whole else np.nan


def _of_clusters(done: JobOutcomes, ran: Integers) -> dict[str, float | Floats]:
    """Makespan, utilisation and trade."""
    span = np.nan
    if len(ran):
        span = float(done.end_time[ran].max() - done.submit_time[ran].min())
    work = done.supplied + done.local
    moved = done.moved[ran]
    return {
        "makespan": span,
        "utilisation": work / (done.nodes * (span or np.nan)),
        "utilisation_total": _share(float(work.sum()), float(done.nodes.sum()) * span),
        "supplied": done.supplied / _HOUR,
        "consumed": done.consumed / _HOUR,
        "balance": (done.consumed - done.supplied) / _HOUR,
        "local_work": done.local / _HOUR,
        "supplied_total": float(done.supplied.sum()) / _HOUR,
        "local_work_total": float(done.local.sum()) / _HOUR,
        "clusters_supplying": float((done.supplied > done.local).sum()),
        "clusters_lending": float((done.supplied > done.consumed).sum()),
        "transferred": float(moved.sum()),
        "transferred_by_cluster": np.bincount(done.home[ran][moved], minlength=len(done.nodes)).astype(
            np.float64
        ),
    }


def _of_calendars(done: JobOutcomes) -> dict[str, float | Floats]:
    """Counts of the calendars, and what follows from them."""
    counts = {name: float(done.counts.get(name, np.nan)) for name in COUNTS}
    asked = counts["reservations_granted"] + counts["reservations_refused"]
    return {
        "acceptance": _share(counts["reservations_granted"], asked),
        "postponement_mean": _mean(done.postponed),
        "failed_share": _share(counts["failed_inquiries"], counts["inquiries"]),
        "touched_per_operation": _share(counts["slots_touched"], counts["operations"]),
        **counts,
    }

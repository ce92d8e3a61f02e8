"""What self-scheduling made of its jobs: measures of one schedule, as a whole, by centre and by week.

A schedule is measured by the jobs that every schedule it is compared with has run, see `cohort`. The metrics
of a job are those of `gridsched.metrics.jobs`, with its run time on the cluster that ran it. Functions take
plain arrays, since a study measures hundreds of schedules of a million jobs each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.metrics import jobs as metrics

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WEEK = 7 * 86400
"""Seconds of a week, counted from the first submission."""

METRICS: tuple[str, ...] = ("wait_time", "slowdown", "bounded_slowdown")
"""Metrics of jobs that are measured, see `gridsched.metrics.jobs.METRICS`."""

VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    name: described
    for metric in METRICS
    for label, unit in [metrics.METRICS[metric]]
    for name, described in {
        f"{metric}_mean": ((), f"mean {label}", unit),
        f"{metric}_mean_by_centre": (("centre",), f"mean {label} of the centre's jobs", unit),
        f"{metric}_p95_by_centre": (
            ("centre",),
            f"{label} that 95 % of the centre's jobs do not exceed",
            unit,
        ),
        f"{metric}_by_week": (("week",), f"sum of the {label} over the jobs submitted in the week", unit),
    }.items()
}
"""Variables of `measure`: dimensions, long name and unit."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """Jobs that are measured, centre by centre.

    Parameters
    ----------
    jobs : int64[m]
        Indices of the jobs; those of one centre stand together, in order of submission.
    borders : int64[centres + 1]
        Where the jobs of each centre begin among them, and where the last ones end.
    submit_time : int64[m]
        Seconds.
    week : int64[m]
        Week of submission, from 0.
    weeks : int
        Number of weeks.
    weight : float64[m], optional
        Weight of each job in means over all jobs and in sums by week, 1 on average; all equal by default.
    """

    jobs: Integers
    borders: Integers
    submit_time: Integers
    week: Integers
    weeks: int
    weight: Floats | None = None

    def jobs_by_centre(self) -> Integers:
        """Number of jobs of each centre."""
        return np.diff(self.borders)

    def jobs_by_week(self) -> Integers:
        """Number of jobs submitted in each week."""
        return np.bincount(self.week, minlength=self.weeks).astype(np.int64, copy=False)


@dataclass(frozen=True, kw_only=True)
class SlowdownOptions:
    """What slowdowns are relative to.

    Parameters
    ----------
    run_time : {"cluster", "log"}
        The run time that they divide by: that on the cluster that ran the job, or that of the log.
    threshold : int
        Run time [s] below which jobs count as equally short in the slowdown; no job has a slowdown below 1
        where it is more than 1.
    bounded_threshold : int
        The same for the bounded slowdown.

    Raises
    ------
    ConfigurationError
        If a threshold is less than a second.
    """

    run_time: Literal["cluster", "log"] = "cluster"
    threshold: int = 1
    bounded_threshold: int = metrics.SLOWDOWN_THRESHOLD

    def __post_init__(self) -> None:
        for name in ("threshold", "bounded_threshold"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} is {getattr(self, name)}; use 1 or more seconds")


def cohort(
    submit_time: Integers,
    centre: Integers,
    measured: NDArray[np.bool_],
    centres: int,
    weight: Floats | None = None,
) -> Cohort:
    """Group the jobs that are measured.

    Parameters
    ----------
    submit_time : int64[n]
        Seconds, in order of submission.
    centre : int[n]
        Index of the centre that each job comes from.
    measured : bool[n]
        Which jobs are measured: those that run in every schedule.
    centres : int
        Number of centres.
    weight : float64[n], optional
        Weight of each job, in any unit; all equal by default.
    """
    chosen = np.flatnonzero(measured)
    jobs = chosen[np.argsort(centre[chosen], kind="stable")]
    submitted = np.asarray(submit_time, np.int64)
    week = (submitted - submitted[:1]) // WEEK
    return Cohort(
        jobs=jobs,
        borders=np.searchsorted(centre[jobs], np.arange(centres + 1)),
        submit_time=submitted[jobs],
        week=week[jobs],
        weeks=int(week.max(initial=-1)) + 1,
        weight=None if weight is None else _normalised(weight[jobs]),
    )


def _normalised(weight: Floats) -> Floats:
    """Weights that are 1 on average; NaN where all are 0, so that nothing has a mean."""
    total = weight.sum()
    return weight * (len(weight) / total) if total > 0 else np.full(len(weight), np.nan)


def measure(
    jobs: Cohort,
    start_time: Integers,
    run_time: Integers,
    end_time: Integers,
    slowdowns: SlowdownOptions = SlowdownOptions(),
    logged: Integers | None = None,
) -> dict[str, float | Floats]:
    """Measures of a schedule.

    Parameters
    ----------
    jobs : Cohort
        The jobs that are measured; all of them run.
    start_time : int64[n]
        Start of every job [s], also of those that are not measured.
    run_time : int64[n]
        Seconds on the cluster that ran the job.
    end_time : int64[n]
        Last end of every job [s]; of one that was killed and ran again more than a run time after its start.
    slowdowns : SlowdownOptions
        What slowdowns are relative to.
    logged : int64[n], optional
        Run time of every job in its log [s], for slowdowns that are relative to it.

    Returns
    -------
    dict of str to float or float64 array
        Values of `VARIABLES`; NaN for means without jobs, 0 for sums.
    """
    reference = run_time if slowdowns.run_time == "cluster" or logged is None else logged
    values: dict[str, float | Floats] = {}
    for metric, each in _of_jobs(jobs, start_time, reference, end_time, slowdowns).items():
        weighted = each if jobs.weight is None else each * jobs.weight
        values[f"{metric}_mean"] = float(weighted.mean()) if len(each) else np.nan
        groups = np.split(each, jobs.borders[1:-1])
        values[f"{metric}_mean_by_centre"] = np.array([g.mean() if len(g) else np.nan for g in groups])
        values[f"{metric}_p95_by_centre"] = np.array(
            [np.quantile(g, 0.95) if len(g) else np.nan for g in groups]
        )
        by_week = np.bincount(jobs.week, weighted, jobs.weeks)
        values[f"{metric}_by_week"] = by_week.astype(np.float64, copy=False)
    return values


def _of_jobs(
    jobs: Cohort, start_time: Integers, run_time: Integers, end_time: Integers, slowdowns: SlowdownOptions
) -> dict[str, Floats]:
    """Metrics of each job; slowdowns are relative to these run times."""
    wait = metrics.wait_time(jobs.submit_time, start_time[jobs.jobs])
    run = run_time[jobs.jobs].astype(np.float64)
    response = (end_time[jobs.jobs] - jobs.submit_time).astype(np.float64)
    return {
        "wait_time": wait,
        "slowdown": metrics.slowdown(response, run)
        if slowdowns.threshold == 1
        else metrics.bounded_slowdown(response, run, slowdowns.threshold),
        "bounded_slowdown": metrics.bounded_slowdown(response, run, slowdowns.bounded_threshold),
    }


def makespan(submit_time: Integers, start_time: Integers, end_time: Integers) -> float:
    """Seconds from the first submission to the last end of the jobs that ran; NaN if none did."""
    ran = start_time != metrics.NOT_STARTED
    if not ran.any():
        return np.nan
    return float(end_time[ran].max() - submit_time[ran].min())


@dataclass(frozen=True, eq=False)
class Lessons:
    """Which finished jobs the predictions were learned from.

    Parameters
    ----------
    jobs : int64[n]
        Indices of jobs; those that share a history stand together, in order of submission.
    order : int64[f]
        Indices of jobs in the order in which their run times became known, history by history.
    first, stop : int64[p]
        The jobs that training i predicts are those from `first[i]` to before `stop[i]` of `jobs`.
    begin, end : int64[p]
        It learned from those from `begin[i]` to before `end[i]` of `order`.
    """

    jobs: Integers
    order: Integers
    first: Integers
    stop: Integers
    begin: Integers
    end: Integers


def unfinished(lessons: Lessons, submit_time: Integers, end_time: Integers) -> tuple[float, float]:
    """How far predictions rest on jobs whose run time is not known yet in a run.

    Predictions are made from what finished when in another schedule, that of each log on its own centre. A
    run time is known as in `gridsched.prediction.history`: from the end of the job on, but not to jobs
    that are submitted at the same second as itself.

    Parameters
    ----------
    lessons : Lessons
        What each prediction was learned from.
    submit_time, end_time : int64[n]
        Seconds in the run; end -1 for a job that does not run, whose run time never becomes known.

    Returns
    -------
    predictions : float
        Share of the jobs of this run whose prediction rests on at least one such job.
    of_window : float
        Mean over the predictions by a tree of the share of such jobs among those that it learned from; NaN if
        there is none.
    """
    never = np.iinfo(np.int64).max
    known = np.where(end_time >= 0, np.maximum(end_time, submit_time + 1), never)[lessons.order]
    late = np.zeros(len(lessons.jobs), np.int64)
    size = np.zeros(len(lessons.jobs), np.int64)
    asked = submit_time[lessons.jobs]
    for first, stop, begin, end in zip(
        *(each.tolist() for each in (lessons.first, lessons.stop, lessons.begin, lessons.end)), strict=True
    ):
        learned = known[begin:end]
        pending = np.sort(learned[learned > asked[first]])
        late[first:stop] = len(pending) - np.searchsorted(pending, asked[first:stop], side="right")
        size[first:stop] = end - begin
    ran = end_time[lessons.jobs] >= 0
    by_tree = ran & (size > 0)
    if not by_tree.any():
        return (0.0 if ran.any() else np.nan), np.nan
    return float((late[ran] > 0).mean()), float((late[by_tree] / size[by_tree]).mean())

"""What self-scheduling made of its jobs: measures of one schedule, as a whole, by centre and by week.

A schedule is measured by the jobs that every schedule it is compared with has run, see `cohort`. The metrics
of a job are those of `gridsched.metrics.jobs`, with its run time on the cluster that ran it. Functions take
plain arrays, since a study measures hundreds of schedules of a million jobs each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """

    jobs: Integers
    borders: Integers
    submit_time: Integers
    week: Integers
    weeks: int

    def jobs_by_centre(self) -> Integers:
        """Number of jobs of each centre."""
        return np.diff(self.borders)

    def jobs_by_week(self) -> Integers:
        """Number of jobs submitted in each week."""
        return np.bincount(self.week, minlength=self.weeks).astype(np.int64, copy=False)


def cohort(submit_time: Integers, centre: Integers, measured: NDArray[np.bool_], centres: int) -> Cohort:
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
    )


def measure(
    jobs: Cohort, start_time: Integers, run_time: Integers, end_time: Integers
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

    Returns
    -------
    dict of str to float or float64 array
        Values of `VARIABLES`; NaN for means without jobs, 0 for sums.
    """
    values: dict[str, float | Floats] = {}
    for metric, each in _of_jobs(jobs, start_time, run_time, end_time).items():
        values[f"{metric}_mean"] = float(each.mean()) if len(each) else np.nan
        groups = np.split(each, jobs.borders[1:-1])
        values[f"{metric}_mean_by_centre"] = np.array([g.mean() if len(g) else np.nan for g in groups])
        values[f"{metric}_p95_by_centre"] = np.array(
            [np.quantile(g, 0.95) if len(g) else np.nan for g in groups]
        )
        values[f"{metric}_by_week"] = np.bincount(jobs.week, each, jobs.weeks).astype(np.float64, copy=False)
    return values


def _of_jobs(jobs: Cohort, start_time: Integers, run_time: Integers, end_time: Integers) -> dict[str, Floats]:
    """Metrics of each job."""
    wait = metrics.wait_time(jobs.submit_time, start_time[jobs.jobs])
    run = run_time[jobs.jobs].astype(np.float64)
    response = (end_time[jobs.jobs] - jobs.submit_time).astype(np.float64)
    return {
        "wait_time": wait,
        "slowdown": metrics.slowdown(response, run),
        "bounded_slowdown": metrics.bounded_slowdown(response, run),
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

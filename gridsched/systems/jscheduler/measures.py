"""Measures of the JScheduler besides those of every scheduler, and how far predictions rest on other runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.metrics.measure import Measure

Integers = NDArray[np.int64]

MEASURES: tuple[Measure, ...] = (
    Measure("slowdown_p95", "95th percentile of the slowdown", "1", "lower"),
    Measure("requested_times_cut", "requested times cut at what the slowest cluster allows"),
    Measure(
        "predictions_on_unfinished", "share of jobs predicted from jobs that have not finished", share=True
    ),
    Measure(
        "predictions_unfinished_share", "unfinished share of the jobs that a prediction rests on", share=True
    ),
    Measure("relative_error", "error relative to requested times", "1", "lower"),
    Measure("correlation", "correlation of run times", "1", "higher"),
    Measure("under_predicted", "run times underestimated", "1", "lower", share=True),
)
"""Measures of runs, and of predictions of run times."""


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

"""Intervals of run time, the classes that the classification tree tells apart.

The predictor of Guim and Corbalan (described in section 2.1 of "The XtreemOS JScheduler", LASCO 2008) puts a
job into one of several intervals of run time, which were defined from the jobs that have finished, and
predicts the run time that stands for this interval. How the run times are cut, the paper leaves open; here:

``equal_frequency``
    Every interval holds the same number of finished jobs, as far as equal run times allow.
``log_width``
    From the shortest to the longest finished job, all intervals have the same width in logarithmic time.
``k_means``
    Clusters of the logarithms of run times: Lloyd's algorithm from equal frequency on, until nothing
    changes; cuts are half-way between the centres.
``mdl``
    Cuts after which a label of the jobs is better known (see `gridsched.prediction.mdl`). The classes of a
    supervised discretisation would be the intervals themselves, so another label must stand in: the user by
    default, since whose job it is says most about run times in all logs of the archive, and nearly all
    logs know it. Where all labels are the same, or no cut pays for its description, there is one interval.

Intervals without finished jobs join the next longer one. So there are never more intervals than different run
times in the history: one where all run times are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import to_int64
from gridsched.errors import WorkloadError
from gridsched.prediction.mdl import mdl_cuts
from gridsched.prediction.options import Discretisation, Representative

_MAX_ROUNDS = 300
"""Lloyd's algorithm ends by itself, in tens of rounds; this only bounds it."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Adjacent intervals of run time, in whole seconds.

    Parameters
    ----------
    upper : int64[k]
        Longest run time of each interval, increasing. The last one is the longest in the history; run times
        beyond it belong to the last interval too.
    representative : int64[k]
        Run time [s] that each interval stands for, at least 1.
    """

    upper: NDArray[np.int64]
    representative: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.upper)

    @property
    def lower(self) -> NDArray[np.int64]:
        """Shortest run time of each interval; the first begins at 0."""
        return np.concatenate([[0], self.upper[:-1] + 1])

    def index_of(self, run_time: NDArray[np.int64]) -> NDArray[np.int64]:
        """Index of the interval of each run time."""
        return np.asarray(np.searchsorted(self.upper[:-1], run_time, side="left"))


def discretise(
    run_time: NDArray[np.int64],
    discretisation: Discretisation,
    intervals: int,
    representative: Representative = "median",
    label: NDArray[np.int64] | None = None,
) -> Intervals:
    """Cut the run times of finished jobs into intervals.

    Parameters
    ----------
    run_time : int64[n]
        Run times of the finished jobs, in any order.
    discretisation : {"equal_frequency", "log_width", "k_means", "mdl"}
        How, see the module.
    intervals : int
        Number of intervals, or the most of them.
    representative : {"median", "mean", "upper"}
        Which run time stands for an interval; medians and means are rounded.
    label : int64[n], optional
        Label of each job, needed by "mdl" only.

    Returns
    -------
    Intervals
        At least 1 and at most `intervals`.

    Raises
    ------
    WorkloadError
        If there is no finished job, or no label for "mdl".
    """
    if not len(run_time):
        raise WorkloadError("no finished job to make intervals of run time from")
    ordered = np.sort(to_int64(run_time))
    if discretisation == "mdl":
        if label is None:
            raise WorkloadError("discretisation mdl needs a label of each finished job")
        cuts = mdl_cuts(run_time, label, intervals)
    else:
        cuts = _CUTS[discretisation](ordered, intervals)
    upper = _without_empty(cuts, ordered)
    return Intervals(upper, _representatives(upper, ordered, representative))


def _equal_frequency(ordered: NDArray[np.int64], intervals: int) -> NDArray[np.int64]:
    ranks = -(-len(ordered) * np.arange(1, intervals) // intervals)
    return ordered[ranks - 1]


def _log_width(ordered: NDArray[np.int64], intervals: int) -> NDArray[np.int64]:
    low, high = _logarithm(ordered[[0, -1]])
    return np.floor(np.exp(np.linspace(low, high, intervals + 1)[1:-1])).astype(np.int64)


def _k_means(ordered: NDArray[np.int64], intervals: int) -> NDArray[np.int64]:
    times = _logarithm(ordered)
    sums = np.concatenate([[0.0], np.cumsum(times)])
    middles = np.floor((np.arange(intervals) + 0.5) / intervals * len(times)).astype(np.int64)
    centres = np.unique(times[middles])
    for _ in range(_MAX_ROUNDS):
        ends = _ends_of_cells(times, centres)
        sizes = np.diff(ends)
        # a centre that has lost all its jobs stays where it is
        moved = np.where(sizes > 0, np.diff(sums[ends]) / np.maximum(sizes, 1), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    ends = _ends_of_cells(times, centres)[1:-1]
    return ordered[ends[ends > 0] - 1]


def _ends_of_cells(times: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where, in the sorted times, those nearest to each centre end; with a 0 before."""
    inner = np.searchsorted(times, (centres[1:] + centres[:-1]) / 2, side="right")
    return np.concatenate([[0], inner, [len(times)]])


_CUTS: dict[str, Callable[[NDArray[np.int64], int], NDArray[np.int64]]] = {
    "equal_frequency": _equal_frequency,
    "log_width": _log_width,
    "k_means": _k_means,
}


def _logarithm(seconds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Logarithm of times; less than a second counts as one."""
    return np.log(np.maximum(seconds, 1).astype(np.float64))


def _without_empty(cuts: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Upper bounds of the intervals that hold finished jobs."""
    ends = np.searchsorted(ordered, cuts, side="right")
    first_of_end = np.unique(ends, return_index=True)[1]
    kept = first_of_end[(ends[first_of_end] > 0) & (ends[first_of_end] < len(ordered))]
    return np.concatenate([cuts[kept], ordered[-1:]])


def _representatives(
    upper: NDArray[np.int64], ordered: NDArray[np.int64], representative: Representative
) -> NDArray[np.int64]:
    """Run time of each interval; medians of an even number of jobs are the mean of the middle two."""
    if representative == "upper":
        return np.maximum(upper, 1)
    ends = np.concatenate([[0], np.searchsorted(ordered, upper, side="right")])
    if representative == "mean":
        seconds = np.add.reduceat(ordered.astype(np.float64), ends[:-1]) / np.diff(ends)
    else:
        below, above = (ends[:-1] + ends[1:] - 1) // 2, (ends[:-1] + ends[1:]) // 2
        seconds = (ordered[below] + ordered[above]) / 2
    return np.maximum(np.rint(seconds), 1).astype(np.int64)

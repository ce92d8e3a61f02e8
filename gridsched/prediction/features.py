"""What is known of a job at its submission.

Categories become numbers as `gridsched.prediction.categories` says; numbers are -1 where they are not known.

=========================================  ===============================================================
``user``, ``group``, ``executable``,       categories, as the log numbers them
``queue``, ``partition``
``source``                                 log that the job comes from, where several share a history
``processors``                             processors asked for
``requested_time``                         s
``hour``, ``weekday``                      of the submission, in the log's local time; Monday is 0
``last_run_time``, ``previous_run_time``   of the two jobs of the user that finished last, s
``mean_run_time``                          of all finished jobs of the user, s
``jobs_finished``                          finished jobs of the user
``last_interval``                          index of the interval that ``last_run_time`` is in
``think_time``                             since the end of the user's job that finished last, s
``jobs_in_system``                         jobs of the user that are waiting or running
=========================================  ===============================================================

"Finished" is always before the submission of the job, see `gridsched.prediction.history`. A log without users
lacks the features of users, and so on: what is the same for all jobs of the history is left out of a tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.prediction.categories import Categories
from gridsched.prediction.history import FROM_HISTORY
from gridsched.prediction.intervals import Intervals
from gridsched.prediction.options import CATEGORIES
from gridsched.workloads.clock import wall_clock
from gridsched.workloads.table import UNKNOWN, Workload

SOURCE = "source"
"""Feature that tells logs apart which share a history."""

_HOUR, _DAY = 3600, 86400

_LARGEST_NAME = 2**31
"""Categories of several logs are put side by side in 64 bits, so each must be smaller than this."""


@dataclass(frozen=True, eq=False)
class JobTable:
    """Jobs in order of submission, in columns of what is known of each when it is submitted.

    Parameters
    ----------
    submit_time, run_time, end_time : int64[n]
        Seconds; the end is -1 for jobs that never end. Run and end are not known at submission, of course.
    requested_time : int64[n]
        Seconds, -1 where not known.
    user : int64[n]
        Users from 0 on, -1 where not known.
    categories : mapping of str to int64[n]
        Categories as the log writes them.
    numbers : mapping of str to array[n]
        Numbers, without those of the history.
    seen : SEEN[n]
        What submissions see of the history, see `gridsched.prediction.history`.
    """

    submit_time: NDArray[np.int64]
    run_time: NDArray[np.int64]
    end_time: NDArray[np.int64]
    requested_time: NDArray[np.int64]
    user: NDArray[np.int64]
    categories: Mapping[str, NDArray[np.int64]]
    numbers: Mapping[str, NDArray[np.int64]]
    seen: NDArray[Any]

    def __len__(self) -> int:
        return len(self.submit_time)

    def column(self, name: str) -> NDArray[Any]:
        """What is known of all jobs, as the feature `name` is made of it."""
        if name in self.categories:
            return self.categories[name]
        if name == "last_interval":
            return self.seen["last_run_time"]
        return self.seen[name] if name in FROM_HISTORY else self.numbers[name]

    def matrix(
        self,
        jobs: NDArray[np.int64] | slice,
        columns: Sequence[str],
        categories: Mapping[str, Categories],
        intervals: Intervals,
    ) -> NDArray[np.float32]:
        """Features of some jobs, one row a job, as trees take them."""
        matrix = np.empty((len(self.submit_time[jobs]), len(columns)), np.float32)
        for i, name in enumerate(columns):
            values = self.column(name)[jobs]
            if name in categories:
                values = categories[name].encode(values)
            elif name == "last_interval":
                values = np.where(values >= 0, intervals.index_of(values), UNKNOWN)
            matrix[:, i] = values
        return matrix


def submission_columns(
    workload: Workload, source: NDArray[np.int64] | None
) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.int64]], NDArray[np.int64]]:
    """Categories, numbers and user indices of all jobs, as far as they do not depend on other jobs.

    Parameters
    ----------
    workload : Workload
        The jobs.
    source : int64[n], optional
        Log that each job comes from, if several share a history: equal categories of different logs differ.

    Returns
    -------
    categories, numbers : dict
        By name.
    user : int64[n]
        Users from 0 on, -1 where not known.

    Raises
    ------
    WorkloadError
        If the time zone does not exist, or categories are too large to be distinguished by log.
    """
    categories = {name: _by_source(workload, name, source) for name in CATEGORIES}
    if source is not None:
        categories[SOURCE] = np.asarray(source, np.int64)
    clock = wall_clock(workload, np.asarray(workload.submit_time, np.int64))
    numbers = {
        "processors": workload.processors,
        "requested_time": _requested_time(workload),
        "hour": clock // _HOUR % 24,
        "weekday": (clock // _DAY + 3) % 7,
    }
    user = np.unique(categories["user"], return_inverse=True)[1].astype(np.int64)
    return categories, numbers, np.where(workload.user >= 0, user, UNKNOWN)


def _requested_time(workload: Workload) -> NDArray[np.int64]:
    return np.where(workload.requested_time > 0, workload.requested_time, UNKNOWN).astype(np.int64)


def _by_source(workload: Workload, name: str, source: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """A category, different in each log."""
    values = np.asarray(getattr(workload, name), np.int64)
    if source is None or not len(values):
        return values
    if max(int(values.max()), int(source.max())) >= _LARGEST_NAME or int(source.min()) < 0:
        raise WorkloadError(
            f"{workload.name}: {name} or source is not from 0 to {_LARGEST_NAME - 1}; "
            "number them anew to share a history"
        )
    return values + np.asarray(source, np.int64) * 2 * _LARGEST_NAME

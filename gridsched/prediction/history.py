"""What users have done so far, as known at the submission of each job: one pass in order of time.

A finished job is known from its end on, to the jobs that are submitted at that very second too, as
completions precede arrivals in every simulation; but never to jobs that are submitted at the same second as
itself. So a job is *known at* the later of its end and the second after its submission. Jobs that become
known together follow in order of their ends, then in the order of the workload.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import inline, jit

USER = np.dtype(
    [
        ("last", np.int64),
        ("previous", np.int64),
        ("total", np.int64),
        ("finished", np.int64),
        ("last_end", np.int64),
        ("in_system", np.int64),
    ]
)
"""State of a user: last and last-but-one run time, sum and number of finished jobs, end of the last one, and
the jobs in the system now."""

SEEN = np.dtype(
    [
        ("last_run_time", np.int64),
        ("previous_run_time", np.int64),
        ("mean_run_time", np.float64),
        ("jobs_finished", np.int64),
        ("think_time", np.int64),
        ("jobs_in_system", np.int64),
        ("all_finished", np.int64),
        ("all_run_time", np.int64),
    ]
)
"""What a job's submission sees: of its user (-1 where not known), and number and sum of all finished jobs."""

FROM_HISTORY: tuple[str, ...] = (
    "last_run_time",
    "previous_run_time",
    "mean_run_time",
    "jobs_finished",
    "think_time",
    "jobs_in_system",
)


def known_at(submit_time: NDArray[np.int64], end_time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Second from which the run time of each job is known; for jobs with an end only."""
    return np.maximum(end_time, submit_time + 1)


def finishing_order(submit_time: NDArray[np.int64], end_time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the jobs that end (end time not negative), in the order in which they become known."""
    jobs = np.flatnonzero(end_time >= 0)
    submit, end = submit_time[jobs], end_time[jobs]
    return jobs[np.lexsort((jobs, end, known_at(submit, end)))]


def new_users(count: int) -> NDArray[Any]:
    """State of users that have not submitted anything."""
    users = np.zeros(count, USER)
    for name in ("last", "previous", "last_end"):
        users[name] = -1
    return users


def replay(
    submit_time: NDArray[np.int64],
    run_time: NDArray[np.int64],
    end_time: NDArray[np.int64],
    user: NDArray[np.int64],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """What every submission sees of the jobs before it.

    Parameters
    ----------
    submit_time, run_time, end_time : int64[n]
        Seconds; jobs in order of submission. Jobs with a negative end time never end, and are in no
        system.
    user : int64[n]
        Users from 0 on; -1 where the user is not known.

    Returns
    -------
    seen : SEEN[n]
    order : int64[k]
        Jobs in the order in which they become known, see `finishing_order`.
    """
    order = finishing_order(submit_time, end_time)
    seen = np.empty(len(submit_time), SEEN)
    users = new_users(int(user.max(initial=-1)) + 1)
    known = known_at(submit_time, end_time)
    _replay(submit_time, run_time, end_time, known, order, user, users, new_users(1), seen)
    return seen, order


@jit
def finish_jobs(jobs: Any, run_time: Any, end_time: Any, user: Any, users: Any, everyone: Any) -> None:
    """Add jobs that have finished to the state of their users, in this order."""
    for job in jobs:
        _finish(users, everyone, user[job], run_time[job], end_time[job])


@jit
def see_jobs(jobs: Any, now: int, user: Any, users: Any, everyone: Any, seen: Any) -> None:
    """Write what jobs that are submitted now see, one after the other; they are in the system then."""
    for job in jobs:
        _see(users, everyone, user[job], now, seen, job)
        if user[job] >= 0:
            users[user[job]]["in_system"] += 1


@jit
def _replay(
    submit_time: Any,
    run_time: Any,
    end_time: Any,
    known: Any,
    order: Any,
    user: Any,
    users: Any,
    everyone: Any,
    seen: Any,
) -> None:
    finished = 0
    for job in range(len(submit_time)):
        now = submit_time[job]
        while finished < len(order) and known[order[finished]] <= now:
            other = order[finished]
            _finish(users, everyone, user[other], run_time[other], end_time[other])
            finished += 1
        _see(users, everyone, user[job], now, seen, job)
        if user[job] >= 0 and end_time[job] >= 0:
            users[user[job]]["in_system"] += 1


@inline
def _finish(users: Any, everyone: Any, user: int, run_time: int, end_time: int) -> None:
    everyone[0]["total"] += run_time
    everyone[0]["finished"] += 1
    if user < 0:
        return
    users[user]["previous"] = users[user]["last"]
    users[user]["last"] = run_time
    users[user]["total"] += run_time
    users[user]["finished"] += 1
    users[user]["last_end"] = end_time
    users[user]["in_system"] -= 1


@inline
def _see(users: Any, everyone: Any, user: int, now: int, seen: Any, job: int) -> None:
    seen[job]["all_finished"] = everyone[0]["finished"]
    seen[job]["all_run_time"] = everyone[0]["total"]
    if user < 0:
        seen[job]["last_run_time"] = -1
        seen[job]["previous_run_time"] = -1
        seen[job]["mean_run_time"] = -1.0
        seen[job]["jobs_finished"] = -1
        seen[job]["think_time"] = -1
        seen[job]["jobs_in_system"] = -1
        return
    finished = users[user]["finished"]
    seen[job]["last_run_time"] = users[user]["last"]
    seen[job]["previous_run_time"] = users[user]["previous"]
    seen[job]["jobs_finished"] = finished
    seen[job]["jobs_in_system"] = users[user]["in_system"]
    seen[job]["mean_run_time"] = -1.0
    seen[job]["think_time"] = -1
    if finished > 0:
        seen[job]["mean_run_time"] = users[user]["total"] / finished
        seen[job]["think_time"] = now - users[user]["last_end"]

"""Users who react: jobs are submitted some time after those before them ended, not when the log says.

The submit times of a log are what users did with the waits that they met there. Shmueli and Feitelson model
users instead ("Using site-level modeling to evaluate the performance of parallel system schedulers", MASCOTS
2006; "On simulation and design of parallel-systems schedulers: are we doing the right thing?", IEEE
Transactions on Parallel and Distributed Systems 20(7), 2009): they submit *batches* of jobs, think for a
while after a batch has ended and submit the next one; batches with short think times between them are a
*session*. Zakay and Feitelson take batches, think times and sessions from a log ("Preserving user behavior
characteristics in trace-based simulation of parallel job scheduling", MASCOTS 2014). Submissions then follow
the simulated ends: a slow scheduler gets them later, and fewer in the same time.

Think times become delays of dependencies, so that every scheduler that knows these can be studied. When a job
is submitted for its scheduler is the variable `eligible_time` of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.dependencies import DEPENDENCY, KINDS
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

Integers = NDArray[np.int64]

SessionName = Literal["clock", "think"]

THINK_TIME = 1200
"""Longest think time [s] within a session, by default."""


@dataclass(frozen=True)
class Sessions:
    """Batches and sessions of a log.

    Parameters
    ----------
    batch : int64[n]
        Batch of each job, numbered user by user in order of submission; -1 for jobs of unknown users.
    before : int64[b]
        The batch before each batch, of the same user; -1 for the first one of a user.
    think_time : int64[b]
        Seconds from the end of the batch before until the first submission of each; 0 for a first one.
    opens : bool[b]
        Whether each batch is the first one of a session.
    """

    batch: Integers
    before: Integers
    think_time: Integers
    opens: NDArray[np.bool_]

    @property
    def session(self) -> Integers:
        """Session of each batch, from 0."""
        numbers: Integers = np.cumsum(self.opens) - 1
        return numbers


def sessions_of(workload: Workload, *, think_time: int = THINK_TIME) -> Sessions:
    """Batches and sessions of the users of a log, by its recorded waits.

    A job that is submitted before all earlier jobs of its user have ended belongs to the batch of the one
    before it; else it opens a new batch. A batch that comes at most `think_time` after the end of all earlier
    jobs of its user continues the session.

    Parameters
    ----------
    workload : Workload
        Jobs in order of submission; unknown waits count as 0.
    think_time : int
        Longest think time within a session [s]; Shmueli and Feitelson (2006) take 20 minutes.
    """
    submit = np.asarray(workload.submit_time, np.int64)
    end = submit + np.maximum(workload.wait_time, 0).astype(np.int64) + workload.run_time.astype(np.int64)
    batch = np.full(len(workload), UNKNOWN, np.int64)
    before: list[int] = []
    thought: list[int] = []
    opens: list[bool] = []
    for own in _by_user(workload):
        last = UNKNOWN
        ended = 0
        for job in own:
            if last == UNKNOWN or submit[job] >= ended:
                gap = 0 if last == UNKNOWN else int(submit[job]) - ended
                before.append(last)
                thought.append(gap)
                opens.append(last == UNKNOWN or gap > think_time)
                last = len(before) - 1
            batch[job] = last
            ended = max(ended, int(end[job]))
    return Sessions(batch, np.array(before, np.int64), np.array(thought, np.int64), np.array(opens, np.bool_))


def _by_user(workload: Workload) -> list[Integers]:
    """Places of the jobs of each known user, in order of submission."""
    order = np.lexsort((workload.submit_time, workload.user))
    order = order[workload.user[order] >= 0]
    return [own for own in np.split(order, np.flatnonzero(np.diff(workload.user[order])) + 1) if len(own)]


def with_feedback(
    workload: Workload, *, think_time: int = THINK_TIME, sessions: SessionName = "clock"
) -> Workload:
    """The workload with dependencies that make its submissions follow the ends of earlier jobs.

    Every job of a batch becomes eligible when all jobs of the batch before have ended, the think time of the
    log has passed, and as much more as the log has between the first submission of the batch and its own.

    Parameters
    ----------
    workload : Workload
        Clean jobs of a log that names its users.
    think_time : int
        Longest think time within a session [s].
    sessions : {"clock", "think"}
        When a new session begins: when the log says, or once the jobs of the session before have ended, if
        that is later; or, as within sessions, after the time that passed in the log.

    Returns
    -------
    Workload
        Jobs of all but the first batch of a session, with "think" of all but the first batch of a user, are
        submitted when the first job of that session, or of that user, is, and wait for their dependencies.
        Jobs are in order of these submissions. `repaired` counts jobs that react.

    Raises
    ------
    WorkloadError
        If the log does not name its users or has no recorded waits, users give up waiting, or the rule is
        unknown.
    """
    if sessions not in get_args(SessionName):
        raise WorkloadError(f"sessions is {sessions!r}; use one of {', '.join(get_args(SessionName))}")
    if not (workload.user >= 0).any():
        raise WorkloadError(f"{workload.name}: the log does not name its users; feedback needs column user")
    if len(workload) and not (workload.wait_time >= 0).any():
        raise WorkloadError(f"{workload.name}: no recorded waits; feedback takes think times from them")
    if workload.gives_up_time is not None:
        raise WorkloadError(
            f"{workload.name}: users give up (gives_up_time) at times of a log without feedback"
        )
    found = sessions_of(workload, think_time=think_time)
    submit = np.asarray(workload.submit_time, np.int64)
    begin = np.full(len(found.before), np.iinfo(np.int64).max)
    known = found.batch >= 0
    np.minimum.at(begin, found.batch[known], submit[known])
    thinks = ~found.opens if sessions == "clock" else found.before >= 0
    # the batch whose first submission stands for that of each batch
    source = np.where(thinks, -1, np.arange(len(thinks)))
    source = np.maximum.accumulate(source) if len(source) else source
    moved = submit.copy()
    moved[known] = np.where(thinks[found.batch[known]], begin[source[found.batch[known]]], submit[known])
    members = np.argsort(found.batch, kind="stable")
    first = np.searchsorted(found.batch[members], np.arange(len(found.before) + 1))
    rows = []
    for job in np.flatnonzero(known):
        batch = found.batch[job]
        earlier = found.before[batch]
        if earlier >= 0:
            on = members[first[earlier] : first[earlier + 1]]
            table = np.empty(len(on), DEPENDENCY)
            table["job"], table["on"], table["kind"] = job, on, KINDS["afterany"]
            offset = submit[job] - begin[batch]
            table["delay"] = found.think_time[batch] + offset if thinks[batch] else offset
            rows.append(table)
    reacting = int(np.isin(found.batch, np.flatnonzero(found.before >= 0)).sum())
    given = [] if workload.dependencies is None else [workload.dependencies]
    changes = {"job submitted after earlier ones end": reacting}
    made = replace(
        workload,
        submit_time=moved,
        dependencies=np.concatenate([np.empty(0, DEPENDENCY), *given, *rows]),
        repaired=add_counts(workload.repaired, changes),
    )
    return made.select(np.argsort(moved, kind="stable"))

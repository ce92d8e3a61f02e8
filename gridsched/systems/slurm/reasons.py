"""Why a job waits, as `squeue` names it: what the controller's state says after each pass.

After a pass of the main loop the first job of a partition that does not fit waits for Resources, and those
behind it for Priority; who is over a limit, or waits for another job, is skipped and has a reason of its own.
Source: schedule() and job_reason_string() of Slurm 22.05. docs/slurm.md compares these reasons with those
that a controller showed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER
from gridsched.errors import ConfigurationError
from gridsched.results import Schedule
from gridsched.submission import Submission
from gridsched.systems.base import QueueReason
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.accounts import Owner
from gridsched.systems.slurm.controller import Controller
from gridsched.systems.slurm.jobs import ClusterJobs
from gridsched.systems.slurm.priority import Priorities
from gridsched.systems.slurm.scheduler import Slurm

NOT_TESTED, DEPENDENCY, NEVER, BEGIN_TIME = "None", "Dependency", "DependencyNeverSatisfied", "BeginTime"
RESOURCES, PRIORITY, NOT_AVAILABLE = "Resources", "Priority", "ReqNodeNotAvail"
ARRAY_LIMIT, LICENCES = "JobArrayTaskLimit", "Licenses"
TOO_FEW = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
"""What `squeue` shows of a job that wants more nodes of its partition than are in service and not kept for
jobs before it; its reason is Resources, of which this is the description (`_schedule`)."""

_RUNS, _ABSENT = "", "not submitted"
"""What is noted of a job that does not wait."""

_SHORT = {"jobs": "Jobs", "processors": "Cpu", "nodes": "Node", "memory": "Mem", "gpus": "GRES"}
_PLAIN = ("memory", "gpus")
"""Resources whose reasons do not end in Limit, unless they are of memory of a group."""


def limit_reason(key: Sequence[str]) -> str:
    """Name of the reason of a limit, by its key of `LimitsOfJobs.keys`."""
    kind, what = key[0], key[-1]
    who = key[2] if kind == "qos" else key[3]
    owner = "QOS" if kind == "qos" else "Assoc"
    way, _, resource = what.rpartition(" ")
    if way:
        minutes = "Minutes" if way == "used" else "RunMinutes"
        return (
            f"{owner}GrpCPU{minutes}Limit"
            if resource == "processors"
            else f"{owner}Grp{_SHORT[resource]}{minutes}"
        )
    if who == "group":
        return f"{owner}Grp{_SHORT[resource]}{'' if resource == 'gpus' else 'Limit'}"
    if kind != "qos" and resource == "jobs":
        return "AssocMaxJobsLimit"
    name = "Memory" if resource == "memory" else _SHORT[resource]
    if who == "account":
        return f"Max{name}PerAccount"
    return f"{owner}Max{name}PerUser{'' if resource in _PLAIN else 'Limit'}"


def watched(scheduler: Slurm, submission: Submission, job: int) -> tuple[Schedule, list[QueueReason]]:
    """The schedule, and the reasons of a job of one cluster."""
    watches: list[QueueWatch] = []
    rejected: list[str] = []

    class WatchedSlurm(Slurm):
        def controller(
            self, jobs: ClusterJobs, owners: Sequence[Owner], priorities: Priorities
        ) -> Controller:
            arrays = [ARRAY_LIMIT] * (len(jobs.machine.limits) - len(jobs.limit_keys))
            rejected.append(jobs.why_rejected(job))
            watches.append(QueueWatch([*arrays, *map(limit_reason, jobs.limit_keys)], [job]))
            return Controller(jobs.machine, jobs.tickets, self, priorities, watch=watches[-1])

    done = WatchedSlurm(**vars(scheduler)).schedule(submission)
    if rejected[0]:
        number = submission.workload.job_number[job]
        raise ConfigurationError(f"job {number} was rejected: {rejected[0]}")
    assert done.segments is not None
    own = done.segments["start"][done.segments["job"] == job]
    end = own if len(own) else done.segments["end"]
    submit = int(submission.workload.submit_time[job])
    return done, watches[0].reasons(job, submit, max(submit, int(end.max(initial=submit))))


class QueueWatch:
    """Notes how the queue shows some jobs after each pass: a watcher of a controller.

    Parameters
    ----------
    limits : sequence of str
        Name of the reason of each limit of the controller.
    jobs : collection of int
        The jobs.
    """

    def __init__(self, limits: Sequence[str], jobs: Collection[int]) -> None:
        self.limits = limits
        self.noted: dict[int, list[tuple[int, str, tuple[int, ...]]]] = {job: [] for job in jobs}
        """Instant [ticks] from which on a job has a reason, the reason, and who is ahead of it then."""

    def __call__(self, controller: Controller, now: int, kind: int) -> None:
        """Note the reasons after a pass."""
        for job, noted in self.noted.items():
            reason = self._reason(controller, job, now)
            if not noted or noted[-1][1] != reason:
                there = controller.tables.up != 0
                ahead = tuple(_ahead(controller, job, now, there)) if reason == PRIORITY else ()
                noted.append((now, reason, ahead))

    def reasons(self, job: int, submit: int, end: int, unit: int = 1) -> list[QueueReason]:
        """Reasons of a job from its submission until its last start, or an end [s]."""
        waited = [each for each in self.noted[job] if each[1] != _ABSENT]
        noted = [(submit * unit, NOT_TESTED, ()), *waited, (end * unit, _RUNS, ())]
        return [
            QueueReason(begin // unit, until // unit, reason, ahead)
            for (begin, reason, ahead), (until, *_) in pairwise(noted)
            if reason != _RUNS and until // unit > begin // unit
        ]

    def _reason(self, controller: Controller, job: int, now: int) -> str:
        """Reason of a job after a pass."""
        tables, life = controller.tables, controller.lifecycles.jobs[job]
        if controller.start[job] >= 0:
            return _RUNS
        if life["submit"] > now:
            return _ABSENT
        if job not in controller.queue[: controller.waiting]:
            if life["fate"] == Fate.NEVER_ELIGIBLE:
                return NEVER
            return DEPENDENCY if life["unmet"] > 0 else BEGIN_TIME
        limit = _limit_of(tables, job)
        if limit >= 0:
            return self.limits[limit]
        there = tables.up != 0
        if next(_ahead(controller, job, now, there), None) is not None:
            return PRIORITY
        record = tables.jobs[job]
        if _count(tables, record, there) < record["nodes"]:
            return TOO_FEW
        if not kernels.has_licences(tables, job):
            return LICENCES
        up = (tables.suits[record["kind"]] != 0) & (tables.up != 0)
        return RESOURCES if up.sum() >= record["nodes"] else NOT_AVAILABLE


def _ahead(controller: Controller, job: int, now: int, there: NDArray[np.bool_]) -> Iterator[int]:
    """Jobs before one in its partition, of other arrays, that close it if they do not fit.

    Nodes of partitions that jobs before it close are taken off `there`, those in service. Of a job that may
    run in several partitions it is the partition of its list that comes first.
    """
    tables, rules, second = controller.tables, controller.backfill, now // controller.unit
    for other in controller.queue[: controller.waiting].tolist():
        if other == job:
            return
        record = tables.jobs[other]
        if 0 <= tables.jobs[job]["array"] == record["array"] or kernels.over_limit(tables, other):
            continue
        closes = record["priority"] >= rules.least_priority and second - record["begin"] >= rules.least_age
        closes &= kernels.has_licences(tables, other)
        if closes or _count(tables, record, there) < record["nodes"]:
            there &= tables.reach[record["partition"]] == 0
            if record["partition"] == tables.jobs[job]["partition"]:
                yield int(record["of"])


def _count(tables: Any, record: Any, there: NDArray[np.bool_]) -> int:
    """How many of some nodes are in the partition of a job."""
    return int(np.count_nonzero(there & (tables.reach[record["partition"]] != 0)))


def _limit_of(tables: Any, job: int) -> int:
    """The first limit that a job is over, by its row, those of numbers of jobs first; -1 without one."""
    if not kernels.over_limit(tables, job):
        return -1
    rows = tables.limited[job].copy()
    try:
        own = [(tables.most[row, 0] == FOREVER, place) for place, row in enumerate(rows.tolist()) if row >= 0]
        for _, place in sorted(own):
            row = rows[place]
            tables.limited[job] = -1
            tables.limited[job, place] = row
            if kernels.over_limit(tables, job):
                return int(row)
    finally:
        tables.limited[job] = rows
    return -1

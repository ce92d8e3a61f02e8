"""Slurm's decisions while jobs run: a controller that is notified of jobs when they are submitted and end.

The controller has arrays for jobs that are still to come, and becomes a larger one when they are full. It
works up to the time of each question. Running jobs have no end until it is reported.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.platform import Cluster, Platform
from gridsched.policies.online import Decided, NewJob, Online
from gridsched.submission import submit
from gridsched.systems.slurm.accounts import Owner
from gridsched.systems.slurm.controller import APART, Controller, amounts_of
from gridsched.systems.slurm.jobs import ClusterJobs
from gridsched.systems.slurm.priority import Multifactor, Priorities, Shares
from gridsched.workloads.table import Workload

if TYPE_CHECKING:
    from gridsched.systems.slurm.scheduler import Slurm

Integers = NDArray[np.int64]

_NEVER = 2**61
"""Run time of a job whose end is not known."""

_FIRST_ROOM = 1024
"""Jobs that there is room for at first."""

_OF_JOBS = ("fixed", "early", "late", "usage_factor")
"""What priorities know of each job beside its owner."""


class OnlineSlurm(Online):
    """Slurm that decides for another simulator.

    Raises
    ------
    ConfigurationError
        If it would have to take jobs off their nodes, or needs to know beforehand who has jobs.
    """

    def __init__(self, scheduler: Slurm, processors: int) -> None:
        if scheduler.preempt_type != "none":
            raise ConfigurationError(
                "slurm with preempt_type cannot decide while jobs run: another simulator does not let jobs "
                "wait again; leave it out (PreemptType)"
            )
        if scheduler.enforce_limits and scheduler.accounting is not None:
            raise ConfigurationError(
                "slurm with limits of accounts cannot decide while jobs run: not built yet; leave accounting "
                "or enforce_limits (AccountingStorageEnforce) out"
            )
        looks_at = {
            "user": scheduler.priority_weight_fairshare or scheduler.bf_max_job_user,
            "group": scheduler.priority_weight_fairshare,
            "queue": scheduler.priority_weight_qos,
        }
        self.needs = frozenset(name for name, used in looks_at.items() if used)
        self._scheduler = scheduler
        self._cluster = Cluster(processors=processors, name="hosts")
        self._controller: Controller | None = None
        self._steps: Iterator[int] = iter(())
        self._jobs, self._placed = 0, 0
        self._users: dict[int, int] = {}
        self._owners: dict[Owner, None] = {}
        self._started: set[int] = set()

    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now, see `Online`."""
        rejected = self._admit(now, submitted) if submitted else []
        controller = self._controller
        if controller is None:
            return Decided()
        for job in ended:
            controller.end[job] = now
            heapq.heappush(controller.ends, (now, job))
            self._started.discard(job)
        controller.until = now
        wanted = next(self._steps)
        running = controller.tables.running[: controller.tables.counts[0]].tolist()
        started = sorted(set(running) - self._started)
        self._started.update(started)
        for job in started:
            if controller.start[job] != now:
                raise ScheduleError(
                    f"job {job} starts at {controller.start[job]} s, for which slurm asked to be called, and "
                    f"was not until {now} s"
                )
        # while nobody waits, what it does at times of its own can be made up for
        asks = controller.waiting > 0 and wanted < _NEVER
        return Decided(started, rejected, ask_again=wanted if asks else FOREVER)

    def _admit(self, now: int, submitted: Sequence[NewJob]) -> list[int]:
        """Take new jobs in; those that are rejected."""
        columns = {
            name: np.array(values, np.int64)
            for name, values in zip(NewJob._fields, zip(*submitted, strict=True), strict=True)
            if name != "run_time"
        }
        columns["submit_time"][:] = now
        jobs, owners, priorities = self._prepared(columns)
        records = jobs.tickets.jobs
        nodes = records["nodes"].astype(np.int64)
        controller = self._with_room(now, len(records), int(nodes.sum()))
        first = self._jobs
        rows = slice(first, first + len(records))
        records["of"] = first + np.arange(len(records))
        records["record"] = records["of"] * APART
        records["first"] = self._placed + np.cumsum(nodes) - nodes
        records["user"] = [
            self._users.setdefault(user, len(self._users)) for user in columns["user"].tolist()
        ]
        controller.tables.jobs[rows] = records
        controller.tables.amounts[rows] = amounts_of(records)
        controller.guess[rows] = records["limit"]
        controller.set_limits(records["of"].astype(np.int64))
        controller.lifecycles.jobs[rows] = jobs.tickets.lifecycles.jobs
        controller.look_at_lifecycles()
        if isinstance(priorities, Multifactor) and isinstance(controller.priorities, Multifactor):
            self._let_join(controller.priorities, owners)
            for name in _OF_JOBS:
                getattr(controller.priorities, name)[rows] = getattr(priorities, name)
            place = controller.priorities.shares.place
            controller.priorities.place[rows] = [place[account, user] for account, user, _ in owners]
        self._jobs += len(records)
        self._placed += int(nodes.sum())
        fates = jobs.tickets.lifecycles.jobs["fate"]
        return (first + np.flatnonzero(fates == int(Fate.REJECTED))).tolist()

    def _prepared(self, columns: dict[str, Any]) -> tuple[ClusterJobs, list[Owner], Priorities]:
        """Jobs by the columns of `NewJob`, as the controller wants them."""
        count = len(columns["submit_time"])
        workload = Workload(
            name="hosts",
            run_time=np.full(count, _NEVER),
            requested_time=columns.pop("estimate"),
            requested_processors=columns.pop("processors"),
            **columns,
        )
        platform = Platform([self._cluster])
        return self._scheduler.prepared(submit(workload, platform).at_home(), self._cluster, np.arange(count))

    def _with_room(self, now: int, jobs: int, nodes: int) -> Controller:
        """The controller, with room for so many jobs more that have so many nodes."""
        controller = self._controller
        if controller is not None:
            room = len(controller.of), len(controller.tables.placed) - 1
            if self._jobs + jobs <= room[0] and self._placed + nodes <= room[1]:
                return controller
        count = max(2 * (self._jobs + jobs), _FIRST_ROOM)
        processors = min(-(-2 * (self._placed + nodes) // count) + 1, self._cluster.processors)
        made, owners, priorities = self._prepared(
            {
                "submit_time": np.full(count, now),
                "estimate": np.ones(count, np.int64),
                "processors": np.full(count, processors),
                "user": np.arange(count),
            }
        )
        made.tickets.lifecycles.jobs["submit"] = FOREVER
        larger = self._scheduler.controller(made, owners, priorities)
        if controller is not None:
            _widen(controller, larger)
            return controller
        if isinstance(priorities, Multifactor):
            priorities.shares = self._shares()
        self._controller = larger
        phase = np.random.default_rng(0).random(3)
        self._steps = larger.steps(phase.tolist())
        return larger

    def _shares(self) -> Shares:
        """Fair shares of those who have had jobs, and of those in the accounting."""
        from gridsched.systems.slurm.scheduler import tree_of

        parameters = self._scheduler
        return Shares(
            tree_of(parameters, list(self._owners)),
            fair_tree=parameters.fair_tree,
            damping=parameters.fair_share_dampening_factor,
        )

    def _let_join(self, priorities: Multifactor, owners: Sequence[Owner]) -> None:
        """Give users their shares with their first jobs."""
        known = len(self._owners)
        self._owners.update(dict.fromkeys(owners))
        if len(self._owners) == known:
            return
        before, after = priorities.shares, self._shares()
        moved = np.array([after.place[who] for who in before.place], np.int64)
        after.used[moved] = before.used
        after.refresh()
        priorities.place[: self._jobs] = moved[priorities.place[: self._jobs]]
        priorities.shares = after


def _widen(held: Any, wide: Any) -> None:
    """Move a controller, or its priorities, to the larger arrays of another one."""
    for name, larger in vars(wide).items():
        before = getattr(held, name)
        if isinstance(larger, Priorities):
            _widen(before, larger)
        elif isinstance(larger, np.ndarray | list):
            _copy(before, larger)
            setattr(held, name, larger)
        elif isinstance(larger, tuple):
            for mine, its in zip(before, larger, strict=True):
                _copy(mine, its)
            setattr(held, name, larger)
        elif name.startswith("pinned_"):
            setattr(held, name, larger)


def _copy(before: Any, larger: Any) -> None:
    """Copy what there is into something larger."""
    if isinstance(larger, list):
        larger[: len(before)] = before
    elif isinstance(larger, np.ndarray) and larger.flags.writeable:
        larger[tuple(slice(length) for length in before.shape)] = before

"""Slurm's decisions while jobs run: a controller that is notified of jobs when they are submitted and end.

The controller has arrays for jobs that are still to come, and becomes a larger one when they are full. It
works up to the time of each question. Running jobs have no end until it is reported.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER
from gridsched.errors import ConfigurationError, ScheduleError
from gridsched.platform import Cluster, Platform
from gridsched.policies.online import FIRST_TEXT, Decided, NewJob, Online
from gridsched.submission import submit
from gridsched.systems.slurm.accounts import ROOT, Accounting, Owner, renamed, usage_factors
from gridsched.systems.slurm.controller import APART, Controller, amounts_of
from gridsched.systems.slurm.jobs import ClusterJobs
from gridsched.systems.slurm.kernels import AMOUNTS
from gridsched.systems.slurm.limits import unlimited
from gridsched.systems.slurm.priority import Multifactor, Priorities, Shares
from gridsched.workloads.table import UNKNOWN, Workload

if TYPE_CHECKING:
    from gridsched.systems.slurm.scheduler import Slurm

Integers = NDArray[np.int64]

_NEVER = 2**61
"""Run time of a job whose end is not known."""

_FIRST_ROOM = 1024
"""Jobs that there is room for at first."""

_KNOWN_KINDS = 4096
"""Kinds of jobs that are prepared once."""

_OF_JOBS = ("fixed", "early", "late", "usage_factor")
"""What priorities know of each job beside its owner."""


class OnlineSlurm(Online):
    """Slurm that decides for another simulator.

    Raises
    ------
    ConfigurationError
        If it would have to take jobs off their nodes.
    """

    def __init__(self, scheduler: Slurm, processors: int) -> None:
        if scheduler.preempt_type != "none":
            raise ConfigurationError(
                "slurm with preempt_type cannot decide while jobs run: another simulator does not let jobs "
                "wait again; leave it out (PreemptType)"
            )
        self.names: dict[tuple[str, str], int] = {}
        accounting, limited = scheduler.accounting, False
        if accounting is not None:
            accounting = renamed(accounting, self._number)
            scheduler, limited = replace(scheduler, accounting=accounting), scheduler.enforce_limits
        self._accounting = accounting or Accounting()
        if limited and not scheduler.safe_limits and _kills(self._accounting):
            raise ConfigurationError(
                "slurm with limits of used minutes (GrpTRESMins) cannot decide while jobs run: the running "
                "jobs of who has used them up would be killed, and their nodes used before another simulator "
                "has done so; have AccountingStorageEnforce=safe (safe_limits), or leave them out"
            )
        looks_at = {
            "user": scheduler.priority_weight_fairshare or scheduler.bf_max_job_user or limited,
            "group": scheduler.priority_weight_fairshare or limited,
            "queue": scheduler.priority_weight_qos or (limited and self._accounting.qualities),
        }
        self.needs = frozenset(name for name, used in looks_at.items() if used)
        # users submit the same job again and again
        self._prepared_job = lru_cache(_KNOWN_KINDS)(self._prepare_job)
        self._scheduler = scheduler
        self._cluster = Cluster(processors=processors, name="hosts")
        self._limits: dict[tuple[str, ...], int] = {}
        self._controller: Controller | None = None
        self._steps: Iterator[int] = iter(())
        self._jobs, self._placed = 0, 0
        self._users: dict[int, int] = {}
        self._owners: dict[Owner, None] = {}
        self._started: set[int] = set()

    def decide(self, now: int, submitted: Sequence[NewJob], ended: Sequence[int]) -> Decided:
        """What to do now, see `Online`."""
        rejected = [self._jobs - 1 for job in submitted if self._admit(now, job)]
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

    def _admit(self, now: int, job: NewJob) -> bool:
        """Take a new job in; whether it is rejected."""
        jobs, owners, priorities = self._prepared_job(job._replace(submit_time=0, run_time=UNKNOWN))
        records, lives = jobs.tickets.jobs, jobs.tickets.lifecycles.jobs
        controller = self._with_room(now, jobs)
        rows = slice(self._jobs, self._jobs + 1)
        # it may have been prepared for another one
        records["of"] = self._jobs
        records["record"] = self._jobs * APART
        records["first"] = self._placed
        records["user"] = self._users.setdefault(job.user, len(self._users))
        lives["submit"] = now
        controller.tables.jobs[rows] = records
        controller.tables.amounts[rows] = amounts_of(records)
        controller.guess[rows] = records["limit"]
        controller.set_limits(records["of"].astype(np.int64))
        controller.lifecycles.jobs[rows] = lives
        controller.look_at_lifecycles()
        self._hold_to_limits(controller, jobs, rows)
        minutes = controller.minutes
        if minutes is not None:
            minutes.take_in(rows, usage_factors(self._accounting, owners))
        held = controller.priorities if minutes is None else minutes.inner
        if isinstance(priorities, Multifactor) and isinstance(held, Multifactor):
            self._let_join(held, owners)
            for name in _OF_JOBS:
                getattr(held, name)[rows] = getattr(priorities, name)
            held.place[rows] = [held.shares.place[account, user] for account, user, _ in owners]
        self._jobs += 1
        self._placed += int(records["nodes"][0])
        return int(lives["fate"][0]) == int(Fate.REJECTED)

    def _prepare_job(self, job: NewJob) -> tuple[ClusterJobs, list[Owner], Priorities]:
        """A job that is submitted at 0 s, as the controller wants it."""
        known = job._asdict()
        del known["run_time"]
        return self._prepared({name: np.array([value]) for name, value in known.items()})

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

    def _hold_to_limits(self, controller: Controller, jobs: ClusterJobs, rows: slice) -> None:
        """Let jobs count for limits.

        Those of users who have not had jobs before are new; those of minutes are of accounts and qualities of
        service, which are all known.
        """
        tables, limits = controller.tables, jobs.machine.limits
        place = np.full(len(limits) + 1, -1)
        for k, key in enumerate(jobs.limit_keys):
            if key not in self._limits:
                row = self._limits[key] = len(self._limits)
                tables.limits[row] = limits[k]
                tables.most[row] = [limits[name][k] for name in AMOUNTS]
            place[k] = self._limits[key]
        limited = jobs.tickets.limited
        mine = tables.limited[rows]
        mine[:] = -1
        # `kernels.unchecked` on arrays
        mine[:, : limited.shape[1]] = np.where(limited < -1, -2 - place[-2 - limited], place[limited])

    def _with_room(self, now: int, jobs: ClusterJobs) -> Controller:
        """The controller, with room for more jobs, their nodes and their limits."""
        controller, width = self._controller, jobs.tickets.limited.shape[1]
        count = self._jobs + len(jobs.tickets.jobs)
        nodes = self._placed + int(jobs.tickets.jobs["nodes"].sum())
        limits = len(self._limits.keys() | set(jobs.limit_keys))
        if controller is not None:
            tables = controller.tables
            most, longest = tables.limited.shape
            fits = count <= most and nodes < len(tables.placed)
            if fits and limits <= len(tables.limits) and width <= longest:
                return controller
            width = max(width, longest)
        # those who are in the accounting come first: limits may begin with what they have used
        known = [each for each in self._accounting.associations if each.account != ROOT]
        queues = [int(name) for name in self._accounting.qualities] or [UNKNOWN]
        count = max(2 * count, _FIRST_ROOM) + max(len(known), len(queues))
        users, groups = np.arange(count), np.full(count, UNKNOWN)
        users[: len(known)] = [int(each.user or UNKNOWN) for each in known]
        groups[: len(known)] = [int(each.account) for each in known]
        made, owners, priorities = self._prepared(
            {
                "submit_time": np.full(count, now),
                "estimate": np.ones(count, np.int64),
                "processors": np.full(count, min(-(-2 * nodes // count) + 1, self._cluster.processors)),
                "user": users,
                "group": groups,
                "queue": np.resize(queues, count),
            }
        )
        made.tickets.lifecycles.jobs["submit"] = FOREVER
        more = np.concatenate([made.machine.limits, unlimited(2 * limits)])
        made = replace(
            made,
            machine=replace(made.machine, limits=more),
            tickets=replace(made.tickets, limited=np.full((count, width), -1)),
        )
        larger = self._scheduler.controller(made, owners, priorities)
        larger.tables.limits["held"] = -1  # hosts take one job each, so that none counts once for two
        if controller is not None:
            _widen(controller, larger)
            return controller
        self._limits = {key: row for row, key in enumerate(made.limit_keys)}
        if isinstance(priorities, Multifactor):
            priorities.shares = self._shares()
        self._controller = larger
        phase = np.random.default_rng(0).random(3)
        self._steps = larger.steps(phase.tolist())
        return larger

    def _number(self, kind: str, name: str) -> str:
        """The number of a user, group or queue, as text; nobody and the root stay."""
        if not name or name.removeprefix("-").isdigit() or (kind, name) == ("group", ROOT):
            return name
        return str(self.names.setdefault((kind, name), FIRST_TEXT + len(self.names)))

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
        after.effective[moved] = before.effective
        priorities.place[: self._jobs] = moved[priorities.place[: self._jobs]]
        priorities.shares = after


def _kills(accounting: Accounting) -> bool:
    """Whether anybody has minutes that can be used up."""
    limits = [each.limits for each in accounting.associations]
    limits += [each.limits for each in accounting.qualities.values()]
    return any(what.startswith("used ") for each in limits for _, what in each.running)


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

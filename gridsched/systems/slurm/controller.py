"""The controller: the treatment of the jobs, and the passes over its queue; `cadence` says when."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import job_lifecycle
from gridsched.engine.checkpoints import lengths_with_checkpoints, saved_work_of
from gridsched.engine.job_lifecycle import Fate, Lifecycles
from gridsched.engine.nodes.records import EventKind
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.engine.reference import pinned
from gridsched.nodes import RequeueName
from gridsched.systems.node_records import choices_of
from gridsched.systems.slurm import components, kernels, passes
from gridsched.systems.slurm.cadence import END, Cadence
from gridsched.systems.slurm.kernels import (
    EVERYWHERE,
    EXCLUSIVE,
    HETJOB,
    JOB,
    LIMIT,
    NOTED,
    WINDOW,
    Backfill,
    NoPreemption,
    Preemption,
    Room,
    Space,
    Tables,
)
from gridsched.systems.slurm.minutes import MinuteRules, Minutes
from gridsched.systems.slurm.parameters import SlurmParameters
from gridsched.systems.slurm.preempting import (
    CANCEL,
    NOBODY,
    PREEMPTION,
    SUSPEND,
    nodes_of,
    resumable,
)
from gridsched.systems.slurm.priority import FirstCome, Priorities

Integers = NDArray[np.int64]

MAIN, BACKFILL, SHORT = 0, 1, 2
"""Kinds of passes: of the main loop over the whole queue, of backfilling, and of the main loop over the first
`default_queue_depth` jobs and one more (`_schedule`: job_depth++ > def_job_limit)."""


Watcher = Callable[["Controller", int, int], None]
"""Who looks at each pass that was made: at the controller, the instant [ticks] and the kind of the pass."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SlurmCluster:
    """A cluster as the controller knows it.

    Parameters
    ----------
    nodes : NODE[m]
        Its nodes.
    reach : uint8[p, m]
        Nodes of each partition.
    tier : int64[p]
        PriorityTier of each partition.
    limits : LIMIT[...]
        What groups of jobs may have.
    events : sequence of (int, EventKind, int)
        What happens by time [ticks], and the node, or the reservation. Jobs on a node that is down are
        killed, and so are those on the nodes of a reservation at its CLOSE; without one they go on.
    windows : WINDOW[w]
        Reservations [s], which are known from ANNOUNCE to OPEN.
    reserved : uint8[w, m], optional
        Nodes of each reservation.
    lines : int64[m], optional
        Line of slurm.conf that each node is of; one for all by default.
    featured : int64[s, m], optional
        Sets of nodes that constraints of jobs allow, see `gridsched.nodes.nodes_with`; one of all nodes by
        default.
    numbers : int64[s, ...], optional
        Numbers of nodes that these constraints name, filled up with 0, see `gridsched.nodes.numbers_in`.
    licences : int64[l]
        How many licences of each kind there are.
    requeue : {"place", "end", "lost"}
        Where killed jobs wait.
    checkpoints : (int, int)
        Seconds of work between checkpoints, 0 for none, and what one takes.
    """

    nodes: RecordArray
    reach: NDArray[np.uint8]
    tier: Integers
    limits: RecordArray
    events: Sequence[tuple[int, EventKind, int]] = ()
    windows: RecordArray = field(default_factory=lambda: np.zeros(0, WINDOW))
    reserved: NDArray[np.uint8] | None = None
    lines: Integers | None = None
    featured: Integers | None = None
    numbers: Integers | None = None
    licences: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    requeue: RequeueName = "place"
    checkpoints: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tickets:
    """Jobs as they are submitted, in order of submission.

    Parameters
    ----------
    jobs : JOB[n + m]
        What the n jobs ask for, each in the first of its partitions, and in m further partitions. It is the
        controller's from then on: afterwards each job has the partition in which it ran last.
    run : int64[n]
        Ticks.
    licences : int64[n + m, l], optional
        How many licences of each kind each holds while it runs; none by default.
    limited : int64[n + m, k]
        Rows of `SlurmCluster.limits` that each is subject to, -1 for none.
    lifecycles : Lifecycles
        When they are submitted, and what else happens to them before they run.
    preemption : Preemption, optional
        Who preempts whom; nobody by default.
    minutes : MinuteRules, optional
        How minutes are counted, where some of the limits are of minutes.
    """

    jobs: RecordArray
    run: Integers
    limited: Integers
    lifecycles: Lifecycles
    preemption: Preemption | NoPreemption = NOBODY
    licences: Integers | None = None
    minutes: MinuteRules | None = None


_WAITS = FOREVER
"""Stands for a node in what happens to a job that was preempted: it waits again."""

_ENOUGH = 4
"""Backfill passes without a start or an event after which components that wait never start."""

APART = 2**24
"""Places of records from one job to the next one."""

EXECUTION = np.dtype(
    [
        ("job", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("first", np.int64),
        ("resumed", np.int64),
    ]
)
"""A job ran once [ticks], or went on after it was suspended; `first` is the place of its nodes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Outcomes of n jobs.

    Parameters
    ----------
    start : int64[n]
        When each started first [ticks]; -1 for jobs that never started.
    by : int64[n]
        MAIN or BACKFILL: the pass that started each first.
    placed, first : int64[...], int64[n]
        Nodes of jobs, one execution after the other, and where those of the last one of each job begin.
    fate, eligible : int64[n]
        Values of `gridsched.engine.job_lifecycle.Fate`, and when each could have started first [ticks].
    executions : EXECUTION[...]
        All times that jobs ran, by job and time.
    killed, extra : int64[n]
        How often each was killed, and the ticks that were lost or spent on checkpoints, less those of work
        that was not done.
    preemptions : PREEMPTION[...]
        Who gave way to whom, by time.
    timed_out : int
        Jobs that were killed since their group had used up its minutes.
    """

    start: Integers
    by: Integers
    placed: Integers
    first: Integers
    fate: Integers
    eligible: Integers
    executions: RecordArray
    killed: Integers
    extra: Integers
    preemptions: RecordArray
    timed_out: int = 0

    def nodes_of(self, job: int, count: int) -> list[int]:
        """Nodes of a job, by number."""
        return sorted(self.placed[self.first[job] : self.first[job] + count].tolist())


class Controller:
    """One run of the controller.

    Parameters
    ----------
    machine, tickets : SlurmCluster, Tickets
        The cluster and the jobs.
    parameters : SlurmParameters
        Parameters of the scheduler.
    priorities : Priorities, optional
        First come first served by default.
    unit : int
        Ticks a second.
    latency : int or int64[n]
        Ticks from the end of each job until its nodes can be used.
    departures : mapping of (int, int) to mapping of int to int, optional
        For a job and how often it was killed before: the ticks until it has left each node.
    watch : Watcher, optional
        Who looks at each pass.
    """

    def __init__(
        self,
        machine: SlurmCluster,
        tickets: Tickets,
        parameters: SlurmParameters,
        priorities: Priorities | None = None,
        *,
        unit: int = 1,
        latency: int | Integers = 0,
        departures: Mapping[tuple[int, int], Mapping[int, int]] | None = None,
        watch: Watcher | None = None,
    ) -> None:
        self.watch, self.linear = watch, parameters.select_type == "linear"
        jobs = tickets.jobs
        rows, count, nodes = len(jobs), len(tickets.run), len(machine.nodes)
        self.of = jobs["of"].astype(np.int64)
        # rows of jobs that have several, and the place of each row among those of equal priority
        self.rows: dict[int, list[int]] = {}
        for row in range(count, rows):
            self.rows.setdefault(int(self.of[row]), [int(self.of[row])]).append(row)
        # place of each row among those of its job
        self.choice = np.zeros(rows, np.int64)
        for own in self.rows.values():
            self.choice[own] = np.arange(len(own))
        self.place = np.argsort(np.argsort(self.of, kind="stable"), kind="stable")
        jobs["first"] = np.concatenate([[0], np.cumsum(jobs["nodes"])[:-1]]) if count else 0
        reach = np.ascontiguousarray(machine.reach, np.uint8)
        weight = machine.nodes["weight"].astype(np.int64)
        lines = np.stack([weight, np.zeros_like(weight) if machine.lines is None else machine.lines])
        order = kernels.MARK * (0 if parameters.select_type == "linear" else weight) + np.full(
            nodes, kernels.NO_MARK
        )
        rank = np.stack(
            [np.unique(each, axis=1, return_inverse=True)[1].reshape(-1) for each in (lines[:1], lines)]
        )
        linear = parameters.select_type == "linear"
        alone = jobs.copy()
        alone["whole"] |= EVERYWHERE * (alone["whole"] > 0) if linear else EVERYWHERE
        both = np.concatenate([jobs, alone])
        sets = (reach, machine.featured, machine.numbers)
        suits, kinds, choices, numbers = suits_of(both, machine.nodes, *sets)
        jobs["kind"], jobs["kind_alone"] = kinds.reshape(2, -1)
        tried = suits
        if not linear:
            # whether nodes have the GPUs is seen by the plugin only (job_req_node_filter, _build_node_list)
            both["gpus"] = 0
            open_nodes, of_kinds, others, _ = suits_of(both, machine.nodes, *sets)
            tried = np.zeros_like(suits)
            tried[kinds] = open_nodes[of_kinds]
            of_parts = numbers[choices[:, 0]] > 0
            for choice in range(int((choices[:, 1] + of_parts).max(initial=0))):
                own = ((choices[:, 1] + of_parts)[kinds] > choice) & (choices[kinds, 0] != kinds)
                tried[choices[kinds[own], 0] + choice] = open_nodes[others[of_kinds[own], 0] + choice]
        jobs["details"] = first_tasks(jobs)
        jobs["processors_alone"] = np.maximum(jobs["processors"], jobs["processors_alone"])
        if parameters.is_since("23.11"):
            # before, a job that was tried in an EXCLUSIVE partition has whole nodes in its others, too
            own = jobs["whole"] == EXCLUSIVE
            for name in ("kind", "processors"):
                jobs[name][own] = jobs[f"{name}_alone"][own]
            jobs["whole"][own] |= EVERYWHERE
        limits = machine.limits.copy() if len(machine.limits) else np.zeros(1, LIMIT)
        has_held = (limits["nodes"] < FOREVER) & (len(machine.limits) > 0)
        limits["held"] = np.where(has_held, np.cumsum(has_held) - 1, -1)
        hetjobs = np.zeros(int(jobs["hetjob"].max(initial=-1)) + 1, HETJOB)
        parts = jobs["hetjob"][:count][jobs["hetjob"][:count] >= 0]
        hetjobs["size"] = np.bincount(parts, minlength=len(hetjobs))
        self.tables = Tables(
            jobs=jobs,
            free=np.array([machine.nodes[name] for name in ("cores", "memory", "gpus")], np.int64),
            idle=np.ones(nodes, np.uint8),
            alone=np.zeros(nodes, np.int64),
            busy=np.zeros(nodes, np.int64),
            reach=reach,
            reach_bits=kernels.bits_of(reach),
            suits=suits,
            tried=tried,
            tried_bits=kernels.bits_of(tried),
            choices=choices,
            numbers=numbers,
            gpus=machine.nodes["gpus"].astype(np.int64),
            amounts=amounts_of(jobs),
            licences=np.zeros((rows, len(machine.licences)), np.int64)
            if tickets.licences is None
            else tickets.licences,
            unused=machine.licences.copy(),
            limits=limits,
            most=np.stack([limits[name] for name in kernels.AMOUNTS], axis=1),
            used=np.zeros((len(limits), len(kernels.AMOUNTS)), np.int64),
            held=np.zeros((int(has_held.sum()), nodes), np.int64),
            order=order,
            # numbered from 0 on without gaps, since kernels count by them
            lines=np.unique(lines[1], return_inverse=True)[1].reshape(-1),
            limited=np.ascontiguousarray(tickets.limited, np.int64),
            placed=np.full(int(jobs["nodes"].sum()) + 1, -1, np.int64),
            running=np.zeros(count + 1, np.int64),
            tasks=np.zeros(int(jobs["array"].max(initial=-1)) + 2, np.int64),
            hetjobs=hetjobs,
            up=np.ones(nodes, np.uint8),
            windows=machine.windows if len(machine.windows) else np.zeros(1, WINDOW),
            reserved=np.zeros((1, nodes), np.uint8)
            if machine.reserved is None
            else np.ascontiguousarray(machine.reserved, np.uint8),
            known=np.zeros(len(machine.windows) + 1, np.int64),
            counts=np.zeros(4, np.int64),
        )
        partitions = len(machine.reach)
        users = int(jobs["user"].max(initial=0)) + 1
        tasks = jobs["array"] >= 0
        streams = np.stack([jobs["array"], jobs["partition"]], axis=1)[tasks]
        counters = np.unique(streams, axis=0, return_inverse=True)[1].reshape(-1)
        jobs["counter"] = -1
        jobs["counter"][tasks] = partitions + users + counters
        words = self.tables.tried_bits.shape[1]
        self.room = Room(
            usable=np.zeros(nodes, np.uint8),
            fitting=np.zeros(nodes, np.uint8),
            chosen=np.zeros(nodes, np.int64),
            best=np.zeros(nodes, np.int64),
            kept=np.zeros(nodes, np.int64),
            taken=np.zeros(nodes, np.uint8),
            low=np.zeros(nodes, np.uint8),
            lost=np.zeros(nodes, np.uint8),
            free=np.zeros((3, nodes), np.int64),
            alone=np.zeros(nodes, np.int64),
            busy=np.zeros(nodes, np.int64),
            quiet=np.zeros(nodes, np.uint8),
            off=np.zeros(count, np.uint8),
            completing=np.zeros(nodes, np.int64),
            counted=np.zeros(
                (2, int(max(partitions + users, jobs["counter"].max(initial=-1) + 1))), np.int64
            ),
            planned=np.zeros(2, np.int64),
            passes=np.zeros(3, np.int64),
            parts=np.zeros(len(parts), np.int64),
            hetjobs=np.zeros(len(hetjobs), np.int64),
            failed=np.zeros(len(parts), np.int64),
            parts_starts=np.zeros((partitions, len(hetjobs)), np.int64),
            parts_counts=np.zeros(4, np.int64),
            begin=np.zeros(nodes, np.int64),
            end=np.zeros(nodes, np.int64),
            worth=np.zeros(nodes, np.int64),
            rank=np.stack([*rank, order.copy()]),
            ranks=np.append(rank.max(axis=1, initial=0) + 1, [has_held.any() and not linear, linear]),
            up=np.zeros(words, np.int64),
            allowed=np.zeros(words, np.int64),
            bits=np.zeros(words, np.int64),
            wanted=np.zeros(words, np.int64),
            # only rows that are used take memory
            idle=np.zeros((count + 1 if self.linear else 1, words), np.int64),
            fits=np.zeros((len(suits), words), np.int64),
            touched=np.zeros((1 if self.linear else count + 1, words), np.int64),
            moved=np.full((2, int(jobs["array"].max(initial=-1)) + 2), -1, np.int64),
            touched_since=np.zeros(1, np.int64),
            idle_since=np.zeros(1, np.int64),
            fits_since=np.zeros(len(suits), np.int64),
            changes=np.zeros(1, np.int64),
        )
        size = parameters.bf_node_space_size or parameters.bf_max_job_test or 2 * count + 1
        most = min(size, 2 * count + 1) + 3 if parameters.scheduler_type == "backfill" else 4
        self.space = Space(
            begin=np.zeros(most, np.int64),
            end=np.zeros(most, np.int64),
            free=np.zeros((most, words), np.int64),
            number=np.zeros(most, np.int64),
            opens=np.zeros(most, np.uint8),
            up=np.zeros(words, np.int64),
            order=np.zeros(most, np.int64),
            count=np.zeros(7, np.int64),
        )
        self.parameters, self.unit = parameters, unit
        self.latency: Integers = np.broadcast_to(np.asarray(latency, np.int64), count)
        self.preemption: Any = tickets.preemption
        self.has_parts = len(hetjobs) > 0
        self.preempts = isinstance(self.preemption, Preemption)
        # jobs with GPUs leave marks, those of partitions that are EXCLUSIVE stay alone
        self.tries = bool(
            not linear and ((jobs["gpus"] > 0) | (jobs["whole"] & EXCLUSIVE > 0) | has_held.any()).any()
        )
        self.gave_way: list[tuple[int, int, int, int]] = []
        # when jobs have left each node, and when those that were preempted may wait again
        self.leaving: list[tuple[int, int, int]] = []
        self.departures = departures or {}
        self.asleep: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.tier = np.asarray(machine.tier, np.int64)
        # fifo_sched of `_schedule` (job_scheduler.c of slurmctld, Slurm 22.05)
        basic = parameters.scheduler_type == "builtin" and parameters.priority_type == "basic"
        self.by_record = basic and len(set(self.tier.tolist())) <= 1
        self.priorities: Priorities = priorities or FirstCome(self.of)
        self.minutes = None
        if tickets.minutes is not None:
            self.priorities = self.minutes = Minutes(
                parameters, self.priorities, tickets.minutes, self.tables, unit
            )
        self.timed_out = 0
        self.backfill = Backfill(
            window=60 * parameters.bf_window,
            resolution=parameters.bf_resolution,
            most_tests=parameters.bf_max_job_test,
            max_per_user=parameters.bf_max_job_user,
            max_per_partition=parameters.bf_max_job_part,
            max_per_array=max(parameters.bf_max_job_array_resv, 1),
            most_starts=parameters.bf_max_job_start,
            least_priority=float(parameters.bf_min_prio_reserve),
            least_age=parameters.bf_min_age_reserve,
            one_plan=parameters.bf_one_resv_per_job,
            throttles=parameters.is_since("23.02"),
            ends_early=parameters.is_since("23.02"),
            rounds_up=parameters.is_since("24.05"),
            keeps_limits=parameters.is_since("24.05"),
            goes_far=parameters.is_since("24.11"),
            kill_wait=parameters.kill_wait,
            most_stretches=size,
            needs_idle=self.linear and not self.preempts,
        )
        self.lifecycles = tickets.lifecycles
        # bundles for kernels, which are called often
        self.pinned_tables, self.pinned_room = pinned(self.tables), pinned(self.room)
        self.pinned_space, self.pinned_preemption = pinned(self.space), pinned(self.preemption)
        self.pinned_lifecycles = pinned(self.lifecycles)
        self.listed = np.zeros(count + 1, np.int64)
        # who waits for nobody, and does not give up, needs no telling
        self.linked = len(self.lifecycles.dependents) > 0
        self.impatient = bool((self.lifecycles.jobs["gives_up"] < FOREVER).any())
        self.tables.jobs["record"] = self.of * APART
        self.submitted = 0
        self.until = FOREVER
        self.due = 0
        self.look_at_lifecycles()
        self.machine, self.happened = machine, 0
        self.checkpoints = tuple(unit * each for each in machine.checkpoints)
        # why each node takes no jobs: it is down, drained, or in so many reservations
        self.out = np.zeros((3, nodes), np.int64)
        self.closed: set[int] = set()
        self.ends: list[tuple[int, int]] = []
        self.end = np.full(count, -1, np.int64)
        self.queue = np.zeros(rows + 1, np.int64)
        self.waiting = self.ordered = 0  # rows in the queue, of which the first ones are in order
        # of a backfill pass that takes time: the rows that it looks at next; those that it has not looked at
        # yet, for which partition each is in it, and places of those that wait
        self.in_pass = np.zeros(rows + 1, np.int64)
        self.rest = self.partition_of_rest = self.still = np.zeros(0, np.int64)
        # jobs that wait for others, or are held
        self.dependent = tickets.lifecycles.jobs["unmet"] > 1
        self.unseen: list[int] = []  # rows of those, and of tasks of arrays, that no pass has seen
        self.started = np.zeros(count + 1, np.int64)
        self.start = np.full(count, -1, np.int64)
        # a job that was suspended has a start by which it would have run as long without that
        self.begun = self.start.copy()
        self.first_start, self.by = self.start.copy(), self.start.copy()
        self.work_left, self.guess = tickets.run.copy(), jobs["limit"][:count].astype(np.int64)
        self.least = jobs["least"].astype(np.int64)
        self.killed, self.extra = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.resumed = np.zeros(count, np.int64)
        self.cut_short: list[tuple[int, int, int, int, Integers]] = []
        self.set_limits(np.arange(rows))

    # --- what happens -----------------------------------------------------------------------------

    def next_event(self) -> int:
        """When something happens next to a job or a node [ticks]."""
        ends, leaving, events = self.ends, self.leaving, self.machine.events
        while ends and self.end[ends[0][1]] != ends[0][0]:
            heapq.heappop(ends)  # it was killed before
        first = self.due
        if ends and ends[0][0] < first:
            first = ends[0][0]
        if leaving and leaving[0][0] < first:
            first = leaving[0][0]
        if self.happened < len(events) and events[self.happened][0] < first:
            first = events[self.happened][0]
        return first

    def look_at_lifecycles(self) -> None:
        """See when something happens next to a job that does not run."""
        self.due = int(job_lifecycle.next_time(self.pinned_lifecycles))

    def process_events(self, until: int) -> None:
        """Let jobs end, nodes go and come, and jobs enter the queue and leave it up to an instant."""
        while (now := self.next_event()) <= until:
            if self.priorities.due() <= now:
                self.recalculate(self.priorities.due())
            elif self.ends and self.ends[0][0] == now:
                self._end(heapq.heappop(self.ends)[1], now)
            elif self.happened < len(self.machine.events) and self.machine.events[self.happened][0] == now:
                _, kind, which = self.machine.events[self.happened]
                self.happened += 1
                self._change(kind, which, now)
            elif self.leaving and self.leaving[0][0] == now:
                self._leave_or_wait(*heapq.heappop(self.leaving))
            else:
                self._come_and_go(now)

    def _end(self, job: int, now: int) -> None:
        """Let a job end by itself."""
        kernels.finish(self.pinned_tables, job)
        self.priorities.ended(job, now)
        self.end[job] = -1
        self.extra[job] += now - self.start[job] - self.work_left[job]
        if self.latency[job]:
            nodes = nodes_of(self.tables, job)
            self.room.completing[nodes] += 1
            self._leave(job, nodes, now, {})
        if self.linked:
            job_lifecycle.end(self.pinned_lifecycles, job, now, int(Fate.COMPLETED))
            self.look_at_lifecycles()
        self._resume_those_who_can(now)

    def _come_and_go(self, now: int) -> None:
        """Let jobs enter the queue, and users give up."""
        for job in self.listed[: job_lifecycle.enter(self.pinned_lifecycles, now, self.listed)].tolist():
            self.tables.jobs["begin"][self.rows.get(job, job)] = now // self.unit
            self._submit(job, now, int(self.lifecycles.jobs["submit"][job]))
        left = job_lifecycle.give_up(self.pinned_lifecycles, now, self.listed) if self.impatient else 0
        self.look_at_lifecycles()
        if left:
            self._keep(~np.isin(self.of[self.queue[: self.waiting]], self.listed[:left]))

    def _keep(self, waits: NDArray[np.bool_]) -> None:
        """Keep only some of the jobs in the queue."""
        kept = self.queue[: self.waiting][waits]
        self.ordered = int(np.count_nonzero(waits[: self.ordered]))
        self.waiting = len(kept)
        self.queue[: self.waiting] = kept

    def _submit(self, job: int, now: int, since: int) -> None:
        """Put a job into the queue as one that comes now, and is known since then or before."""
        rows = self.rows.get(job, [job])
        for row in rows:
            self.tables.jobs["priority"][row] = self.priorities.submitted(row, now, since)
            if self.tables.jobs["array"][row] >= 0 or self.dependent[job]:
                self.unseen.append(row)
        if self.tries:
            self._try(rows)
        self._put_back(job)

    def _try(self, rows: Sequence[int]) -> None:
        """Try a job that is submitted: in the first of its partitions, by tier, where it can run, or in all.

        Source: `_select_nodes_parts` of slurmctld (job_mgr.c), Slurm 22.05.
        """
        jobs = self.tables.jobs
        for row in sorted(rows, key=lambda row: -self.tier[jobs["partition"][row]]):
            if jobs["barred"][row] == 0:
                passes.try_submitted(self.pinned_tables, self.pinned_room, row)
                if not self.parameters.every_partition_admits:
                    break

    def _put_back(self, job: int) -> None:
        """Put a job into the queue by its priority, once for each of its partitions."""
        for row in self.rows.get(job, (job,)):
            self.queue[self.waiting] = row
            self.waiting += 1

    # --- nodes ------------------------------------------------------------------------------------

    def _change(self, kind: EventKind, which: int, now: int) -> None:
        """Let something happen to a node, or to the nodes of a reservation."""
        if kind in (EventKind.DOWN, EventKind.UP):
            self.out[0, which] = kind == EventKind.DOWN
        elif kind in (EventKind.DRAIN, EventKind.RESUME):
            self.out[1, which] = kind == EventKind.DRAIN
        else:
            self._reserve(kind, which)
        self.tables.up[:] = self.out.sum(axis=0) == 0
        if kind in (EventKind.DOWN, EventKind.CLOSE):
            nodes = [which] if kind == EventKind.DOWN else np.flatnonzero(self.tables.reserved[which])
            running = sorted(self.tables.running[: self.tables.counts[0]].tolist())
            hit = [job for job in running if np.isin(nodes_of(self.tables, job), nodes).any()]
            self._kill(hit, now, self.machine.requeue)

    def _reserve(self, kind: EventKind, which: int) -> None:
        """Let a reservation be known, begin, or be over."""
        known = set(self.tables.known[: self.tables.counts[1]].tolist())
        if kind == EventKind.ANNOUNCE:
            known.add(which)
        elif kind == EventKind.CLOSE:
            self.closed.add(which)
            self.out[2] += self.tables.reserved[which]
        else:
            known.discard(which)
            if which in self.closed:
                self.closed.remove(which)
                self.out[2] -= self.tables.reserved[which]
        self.tables.counts[1] = len(known)
        self.tables.known[: len(known)] = sorted(known)

    def _kill(self, jobs: Sequence[int], now: int, then: RequeueName) -> None:
        """Kill jobs that run, and let others have their nodes."""
        for job in jobs:
            kernels.finish(self.pinned_tables, job)
            self._interrupt(job, now, then)
        self._resume_those_who_can(now)

    def _interrupt(self, job: int, now: int, then: RequeueName | None) -> None:
        """Let a job be killed that is off its nodes: what its last checkpoint has is done.

        Then it waits again, at its place or as one that comes now, or is lost; None if it is held.
        """
        slept_since = self.asleep.pop(job, -1)
        if slept_since >= 0:
            self.preemption.suspended[job] = 0
            elapsed = slept_since - int(self.start[job])
        else:
            elapsed = now - int(self.start[job])
            self._cut_short(job, now)
        saved = saved_work_of(elapsed, *self.checkpoints)
        self.work_left[job] -= saved
        self.guess[job] = max(1, self.guess[job] - saved // self.unit)
        self.extra[job] += elapsed - saved
        self.killed[job] += 1
        self.start[job] = self.end[job] = -1
        self.set_limits(np.array(self.rows.get(job, [job])))
        if then == "lost":
            job_lifecycle.end(self.pinned_lifecycles, job, now, int(Fate.LOST))
            self.look_at_lifecycles()
            return
        self.tables.jobs["start"][job] = -1  # it can start again
        if then == "end":
            self._submit(job, now, now)
        elif then == "place":
            self._put_back(job)

    def set_limits(self, rows: Integers) -> None:
        """Work out how long jobs are expected to run, with their checkpoints."""
        guess = self.guess[self.of[rows]]
        least = np.minimum(np.where(self.least[rows] > 0, self.least[rows], guess), guess)
        for name, lengths in (("limit", guess), ("least", least)):
            self.tables.jobs[name][rows] = lengths_with_checkpoints(lengths, *self.machine.checkpoints)

    def _cut_short(self, job: int, now: int) -> None:
        """Note that a job does not run on from now on."""
        nodes = nodes_of(self.tables, job).copy()
        self.cut_short.append((job, int(self.begun[job]), now, int(self.resumed[job]), nodes))
        self.priorities.ended(job, now)

    # --- preemption -------------------------------------------------------------------------------

    def _let_go(self, now: int) -> None:
        """Let those jobs give way that a pass says."""
        done = self.preemption.counts[1]
        for job, by in zip(
            self.preemption.victims[:done].tolist(),
            self.of[self.preemption.by[:done]].tolist(),
            strict=True,
        ):
            mode = int(self.preemption.mode[job])
            self.gave_way.append((job, by, now, mode))
            if mode == SUSPEND:
                self._cut_short(job, now)
                self.asleep[job] = now
                self.end[job] = -1
                continue
            logged = self.departures.get((job, int(self.killed[job])), {})
            gone = self._leave(job, nodes_of(self.tables, job), now, logged)
            self._interrupt(job, now, "lost" if mode == CANCEL else None)
            if mode != CANCEL:
                self._hold(job, gone)
        self.preemption.counts[1] = 0
        if done:
            self._resume_those_who_can(now)

    def _hold(self, job: int, since: int) -> None:
        """Let a job wait again after the delay of requeued ones; it begins a whole second after that."""
        again = since // self.unit + self.parameters.requeue_delay + 1
        self.held[job] = again * self.unit
        heapq.heappush(self.leaving, (self.held[job], job, _WAITS))

    def _leave(self, job: int, nodes: Integers, now: int, logged: Mapping[int, int]) -> int:
        """Let nodes of a job that is off them be free some time later; when the last of them is."""
        gone = now
        for node in nodes.tolist():
            left = now + logged.get(node, int(self.latency[job]))
            heapq.heappush(self.leaving, (left, job, node))
            gone = max(gone, left)
        return gone

    def _leave_or_wait(self, now: int, job: int, node: int) -> None:
        """Let a node that a job had be free, or let a job that was preempted wait again."""
        if node == _WAITS:
            # components are tried, and can start or be held anew, while they are held
            if self.held.get(job) != now or self.start[job] >= 0:
                return
            for row in self.rows.get(job, (job,)):
                self.tables.jobs["begin"][row] = now // self.unit
                self.priorities.requeued(row, now)
                if self.parameters.is_since("24.05"):
                    # before, it keeps its old priority until priorities are calculated
                    self.tables.jobs["priority"][row] = self.priorities.submitted(row, now, now)
            self._put_back(job)
        else:
            self.room.completing[node] -= 1

    def _resume_those_who_can(self, now: int) -> None:
        """Let suspended jobs go on that have their nodes to themselves, those of higher levels first."""
        if not self.asleep:
            return
        record, level = self.tables.jobs["record"], self.preemption.level
        for job in sorted(self.asleep, key=lambda each: (-level[each], record[each])):
            if resumable(self.tables, list(self.asleep), job, self.machine.nodes["cores"]):
                slept = now - self.asleep.pop(job)
                self.preemption.suspended[job] = 0
                self.start[job] += slept
                self.begun[job], self.resumed[job] = now, 1
                self.tables.jobs["expected"][job] += slept // self.unit
                self._set_end(np.array([job]))
                self.priorities.started(job, now)
        running = self.tables.running[: self.tables.counts[0]]
        expected = self.tables.jobs["expected"][running]
        running[:] = running[np.lexsort((record[running], expected))]

    def _set_end(self, jobs: Integers) -> None:
        """Work out when jobs will end that start or go on."""
        self.end[jobs] = self.start[jobs] + self._lengths(jobs)
        for job in jobs.tolist():
            heapq.heappush(self.ends, (int(self.end[job]), job))

    def _lengths(self, jobs: Integers) -> Integers:
        """Ticks that jobs still have to run, with their checkpoints."""
        lengths: Integers = lengths_with_checkpoints(self.work_left[jobs], *self.checkpoints)
        return lengths

    # --- passes -----------------------------------------------------------------------------------

    def recalculate(self, now: int) -> None:
        """Give the waiting jobs new priorities."""
        waiting = self.queue[: self.waiting]
        self.tables.jobs["priority"][waiting] = self.priorities.recalculate(now, waiting)
        self.ordered = 0
        if self.minutes is not None:
            overdrawn = self.minutes.overdrawn()
            self._kill(overdrawn, now, "lost")
            self.timed_out += len(overdrawn)

    def run_pass(self, now: int, kind: int, depth: int = 0) -> int:
        """One pass of the main loop or of the backfill scheduler; how many jobs it started."""
        while self.priorities.due() <= now:
            self.recalculate(self.priorities.due())
        self.tables.counts[NOTED] = 0
        if not self.waiting:
            if kind == BACKFILL:
                self.space.count[passes.NEXT] = 0
            return 0
        self._order_queue()
        if self.unseen:
            # passes see that they are independent, which begins their wait (job_allocate, job_independent)
            self.tables.jobs["begin"][self.unseen] = now // self.unit
            self.priorities.begin(self.unseen, now)
            self.unseen = []
        self._note_full_arrays(now // self.unit)
        if self.submitted != (submitted := int(self.lifecycles.state["arrival"][0])):
            # records of tasks that are made now follow that of the youngest job
            self.submitted = submitted
            self.tables.counts[2] = (submitted - 1) * APART + 1
        if self.watch is None:
            return self._make_pass(now, kind, depth)
        self.tables.jobs["plan"] = 0
        count = self._make_pass(now, kind, depth)
        self.watch(self, now, kind)
        return count

    def _note_full_arrays(self, second: int) -> None:
        """Let the tasks of arrays of which as many run as may wait anew once fewer do.

        Source: job_array_start_test and job_independent of slurmctld (job_mgr.c), Slurm 22.05.
        """
        if self.backfill.least_age == 0:
            return  # it does not matter how long they wait
        jobs, waiting = self.tables.jobs, self.queue[: self.waiting]
        begin = jobs["begin"][waiting]
        full = self.tables.tasks[jobs["array"][waiting]] >= jobs["most_tasks"][waiting]
        jobs["begin"][waiting] = np.where(full, FOREVER, np.where(begin == FOREVER, second, begin))

    def _order_queue(self) -> None:
        """Have those who wait in order of tier, priority and number, or of their records."""
        if self.by_record:
            self._order_by_record()
        elif self.ordered == 0:
            waiting = self.queue[: self.waiting]
            priority = self.tables.jobs["priority"][waiting]
            tier = self.tier[self.tables.jobs["partition"][waiting]]
            self.queue[: self.waiting] = waiting[np.lexsort((self.place[waiting], -priority, -tier))]
        elif self.ordered < self.waiting:
            kernels.insert(self.pinned_tables, self.queue, self.tier, self.place, self.ordered, self.waiting)
        self.ordered = self.waiting

    def _order_by_record(self) -> None:
        """Have those who wait in order of their records: of what comes first, and for each by its partitions.

        The tasks of an array that wait have the record of the first, which is new when one of them started.
        """
        waiting = np.sort(self.queue[: self.waiting])
        job, jobs = self.of[waiting], self.tables.jobs
        together = np.where(jobs["array"][job] < 0, -1 - job, jobs["array"][job])
        _, first, same = np.unique(together, return_index=True, return_inverse=True)
        record = jobs["record"][job[first]][same.reshape(-1)]
        self.queue[: self.waiting] = waiting[np.lexsort((job, self.choice[waiting], record))]

    def _queue_of_pass(self, most: int) -> int:
        """Have the queue of a backfill pass that takes time: how much of `in_pass` it is.

        One that goes on has the rows behind those that it has looked at, but for jobs that do not wait now;
        none if it is to end (`END`).
        """
        jobs, next_row = self.tables.jobs, self.space.count[passes.NEXT : passes.NEXT + 1]
        if next_row[0] == 0:
            self.rest = self.queue[: self.waiting].copy()
            self.partition_of_rest = jobs["partition"][self.rest]
            self.still = np.arange(self.waiting)
            self.in_pass[: self.waiting] = self.rest
            return self.waiting
        # the row of a job that started meanwhile and waits again may have become that of another partition
        for k in np.flatnonzero(jobs["partition"][self.rest] != self.partition_of_rest):
            same = (jobs["of"] == jobs["of"][self.rest[k]]) & (jobs["partition"] == self.partition_of_rest[k])
            self.rest[k] = np.flatnonzero(same)[0]
        self.still = np.flatnonzero(np.isin(self.rest, self.queue[: self.waiting] if most != END else []))
        next_row[0], end = 1, 1 + len(self.still)
        self.in_pass[1:end] = self.rest[self.still]
        return end

    def _keep_rest(self, goes_on: bool) -> None:
        """Keep the rows that a backfill pass has not looked at when it was interrupted."""
        next_row = int(self.space.count[passes.NEXT])
        if next_row:
            done = int(self.still[next_row - goes_on])
            self.rest, self.partition_of_rest = self.rest[done:], self.partition_of_rest[done:]

    def _make_pass(self, now: int, kind: int, depth: int) -> int:
        """Let the passes' rules decide who starts."""
        second = now // self.unit
        if kind == MAIN:
            most = (depth, self.parameters.partition_job_depth, self.parameters.sched_max_job_start)
            count = passes.main_pass(
                self.pinned_tables,
                self.pinned_room,
                (self.backfill.least_priority, self.backfill.least_age),
                self.pinned_preemption,
                self.queue,
                self.waiting,
                second,
                most,
                self.started,
            )
        else:
            goes_on = bool(self.space.count[passes.NEXT])
            count = passes.backfill_pass(
                self.pinned_tables,
                self.pinned_room,
                self.pinned_space,
                self.backfill,
                self.pinned_preemption,
                self.queue,
                self.waiting,
                self.in_pass if depth else self.queue,
                self._queue_of_pass(depth) if depth else self.waiting,
                second,
                self.started,
                max(depth, 0),
            )
            self._keep_rest(goes_on)
        if count:
            started = self.started[:count]
            self.start[started] = self.begun[started] = now
            self.resumed[started] = 0
            first = started[self.first_start[started] < 0]
            self.first_start[first], self.by[first] = now, kind
            self._set_end(started)
            gone = 0
            for job in started.tolist():
                gone += len(self.rows.get(job, (job,)))
                # components start while they are held, and may be killed before that ends
                self.held.pop(job, None)
                self.priorities.started(job, now)
                if self.linked or self.impatient:
                    job_lifecycle.start(self.pinned_lifecycles, job, now)
                    self.look_at_lifecycles()
            self.waiting = self.ordered = kernels.leave(self.queue, self.waiting, self.of, self.start, gone)
            self._note_full_arrays(second)
        if kind == BACKFILL and (failed := int(self.room.parts_counts[components.FAILED])):
            # jobs that could not start together are held like those that are requeued
            self.room.parts_counts[components.FAILED] = 0
            self._keep(~np.isin(self.of[self.queue[: self.waiting]], self.room.failed[:failed]))
            for job in self.room.failed[:failed].tolist():
                self._hold(job, now)
        if self.preempts:
            self._let_go(now)
        return count

    # --- when -------------------------------------------------------------------------------------

    def follow(self, passes: Iterable[tuple[int, int]]) -> Outcome:
        """Work at the instants that are given.

        Parameters
        ----------
        passes : iterable of (int, int)
            Instant [ticks] and kind of each pass. What happens at such an instant is not known to it yet.
        """
        for now, kind in passes:
            self.process_events(now - 1)
            if kind == SHORT:
                self.run_pass(now, MAIN, self.parameters.default_queue_depth + 1)
            else:
                self.run_pass(now, kind)
        return self.outcome()

    def work(self, phase: Sequence[float] = (0.0, 0.0, 0.0), drift: float = 0.0) -> Outcome:
        """Work at the instants that the parameters say, until all jobs have ended.

        Parameters
        ----------
        phase : (float, float, float)
            Parts of a turn of the main loop, of an interval of the backfill scheduler and of one between
            passes over the whole queue that are over at the first submission.
        drift : float
            Seconds by which the controller wakes too late each time.
        """
        for _ in self.steps(phase, drift):
            pass  # all is known
        return self.outcome()

    def steps(self, phase: Sequence[float] = (0.0, 0.0, 0.0), drift: float = 0.0) -> Iterator[int]:
        """Work as `work` does, each time until `until` [ticks]; yield when there would be something to do.

        What is submitted or ends after `until` need not be known before it is moved on.
        """
        begin = self.next_event()
        if begin == FOREVER:
            return
        cadence = Cadence(self.parameters, self.unit, begin, phase, drift)
        while True:
            event, backfill = self.next_event(), cadence.next_backfill()
            # components that can start together do so by backfilling, at the latest in its third pass
            tried = not self.has_parts or backfill == FOREVER or cadence.fruitless > _ENOUGH
            nobody = cadence.settled or not self.waiting
            if event == FOREVER and nobody and tried and not self._may_be_freed():
                # nothing runs, and nothing that waits can ever start
                if self.until == FOREVER:
                    return
                yield FOREVER
                continue
            main = cadence.next_main()
            due = self.priorities.due() if self.waiting or self.minutes is not None else FOREVER
            now = min(event, main, backfill, due)
            if now > self.until:
                yield now
                continue
            if now in (event, due):
                cadence.resume(now)
            if event == now:
                self.process_events(now)
                cadence.change(now, True)
            elif due == now:
                killed = self.timed_out
                self.recalculate(now)
                cadence.change(now, self.timed_out > killed)
            elif main == now:
                self._main_pass(now, cadence)
            else:
                self._backfill_pass(now, cadence)

    def _main_pass(self, now: int, cadence: Cadence) -> None:
        """Make a pass of the main loop."""
        depth = 0 if cadence.is_full(now) else self.parameters.default_queue_depth + 1
        count = self.run_pass(now, MAIN, depth)
        # jobs may be preempted later that have run for some time then
        repeats = not (self.preempts and self.tables.counts[0])
        cadence.main_made(now, count, bool(self.tables.counts[NOTED]), repeats)

    def _backfill_pass(self, now: int, cadence: Cadence) -> None:
        """Make a backfill pass, or continue one that was interrupted."""
        duration, tries = cadence.duration, self.space.count
        before = 0 if duration.paused == FOREVER else int(tries[passes.TRIES])
        count = self.run_pass(now, BACKFILL, duration.jobs_to_try(now, cadence.changed))
        duration.spend(now, int(tries[passes.TRIES]) - before, bool(tries[passes.NEXT]))
        repeats = not self.has_parts and not duration.each
        cadence.backfill_made(now, count, bool(self.tables.counts[NOTED]), repeats)

    def _may_be_freed(self) -> bool:
        """Whether a job that waits may start although nothing happens, since what was used decays."""
        return self.minutes is not None and self.minutes.may_free(self.queue[: self.waiting])

    def outcome(self) -> Outcome:
        """Outcomes of the jobs."""
        fate = self.lifecycles.jobs["fate"].astype(np.int64)
        starved = (fate == int(Fate.COMPLETED)) & (self.start < 0)
        fate[starved] = int(Fate.STARVED)
        extra = self.extra.copy()
        undone = (starved | (fate == int(Fate.LOST))) & (self.first_start >= 0)
        extra[undone] -= self.work_left[undone]
        placed, executions = self._executions()
        return Outcome(
            start=self.first_start,
            by=self.by,
            placed=placed,
            first=self.tables.jobs["first"][: len(fate)].copy(),
            fate=fate,
            eligible=self.lifecycles.jobs["eligible"].astype(np.int64),
            executions=executions,
            killed=self.killed,
            extra=extra,
            preemptions=np.array(self.gave_way, PREEMPTION),
            timed_out=self.timed_out,
        )

    def _executions(self) -> tuple[Integers, RecordArray]:
        """Nodes of all executions one after the other, and the executions."""
        last = np.flatnonzero(self.start >= 0)
        found: RecordArray = np.zeros(len(self.cut_short) + len(last), EXECUTION)
        placed = [self.tables.placed]
        first = len(self.tables.placed)
        for k, (job, start, end, resumed, nodes) in enumerate(self.cut_short):
            found[k] = job, start, end, first, resumed
            placed.append(nodes)
            first += len(nodes)
        whole = found[len(self.cut_short) :]
        whole["job"], whole["start"] = last, self.begun[last]
        whole["end"] = self.start[last] + self._lengths(last)
        whole["first"] = self.tables.jobs["first"][last]
        whole["resumed"] = self.resumed[last]
        return np.concatenate(placed), found[np.lexsort((found["start"], found["job"]))]


def suits_of(
    jobs: RecordArray,
    nodes: RecordArray,
    reach: NDArray[np.uint8],
    featured: Integers | None = None,
    numbers: Integers | None = None,
) -> tuple[NDArray[np.uint8], Integers, Integers, Integers]:
    """Nodes that could hold a part of each kind of job, the kind of each job, and the choices of each kind.

    The first of these and their number (int64[kinds, 2]): kinds themselves, behind those of the jobs. Where
    jobs want numbers of nodes with features, parts are in place of choices, followed by the kind without
    features; at last these numbers.
    """
    featured = np.ones((1, len(nodes)), np.int64) if featured is None else featured
    numbers = np.zeros((len(featured), 1), np.int64) if numbers is None else numbers
    numbered = np.count_nonzero(numbers, axis=1)
    asked = ["partition", "cores", "memory", "gpus", "features", "whole"]
    kinds, kind = np.unique(jobs[asked], return_inverse=True)
    plain = [
        (reach[each["partition"]] != 0)
        * (nodes["cores"] >= each["cores"])
        * (nodes["memory"] >= each["memory"])
        * (nodes["gpus"] >= each["gpus"])
        for each in kinds
    ]
    rows = [featured[each["features"]] * where for each, where in zip(kinds, plain, strict=True)]
    many = np.where(numbered > 0, numbered, choices_of(featured))
    choices = np.column_stack([np.arange(len(kinds)), many[kinds["features"]]])
    wanted = [0] * len(kinds)
    for k in np.flatnonzero((choices[:, 1] > 1) | (numbered[kinds["features"]] > 0)).tolist():
        choices[k, 0] = len(rows)
        rows += [rows[k] >> choice & 1 for choice in range(choices[k, 1])]
        own = numbers[kinds["features"][k]]
        wanted += own[: choices[k, 1]].tolist() if own.any() else [0] * int(choices[k, 1])
        if own.any():  # without features, as backfilling plans the rest
            rows.append(plain[k])
            wanted.append(0)
    further = np.column_stack([np.arange(len(kinds), len(rows)), np.ones(len(rows) - len(kinds), np.int64)])
    suits = np.array(rows, np.int64).reshape(len(rows), len(nodes)) != 0
    together = np.concatenate([choices, further])
    return suits.astype(np.uint8), kind.reshape(-1), together, np.array(wanted, np.int64)


def first_tasks(jobs: RecordArray) -> Integers:
    """The first task of the job array of each row, or the job."""
    arrays, of = jobs["array"], jobs["of"].astype(np.int64)
    first = np.full(int(arrays.max(initial=-1)) + 1, len(jobs))
    np.minimum.at(first, arrays[arrays >= 0], of[arrays >= 0])
    found: Integers = np.where(arrays >= 0, first[arrays], of) if len(first) else of
    return found


def amounts_of(jobs: RecordArray) -> Integers:
    """`AMOUNTS` of jobs: what counts for limits."""
    parts = [jobs[name] for name in ("processors", "nodes")]
    parts += [jobs[name] * jobs["nodes"] for name in ("memory", "gpus")]
    return np.stack([np.ones(len(jobs), np.int64), *parts], axis=1)


def job_records(count: int) -> RecordArray:
    """Records of jobs that wait and ask for nothing yet."""
    jobs: RecordArray = np.zeros(count, JOB)
    jobs["of"] = np.arange(count)
    for name in ("start", "next_task", "array", "counter", "hetjob", "latest"):
        jobs[name] = -1
    jobs["most_tasks"] = FOREVER
    return jobs


def chain_tasks(jobs: RecordArray, array: Integers, most: Integers) -> None:
    """Let the tasks of each job array follow each other.

    Slurm has one record for the tasks that wait. When one of them starts, those that are left get a new
    record, which is younger than the jobs that came meanwhile. Among running jobs that have to end at one
    time it is taken off later.

    Parameters
    ----------
    jobs : JOB[n + m]
        The jobs in order of submission, and their further rows.
    array : int64[n]
        Number of the array of each job, -1 for none.
    most : int64[n]
        Tasks of its array that may run at once, 0 or less for any number.
    """
    within = array >= 0
    places = np.full(len(array), -1)
    places[within] = np.unique(array[within], return_inverse=True)[1].reshape(-1)
    jobs["array"] = places[jobs["of"]]
    jobs["most_tasks"] = np.where(within & (most > 0), most, FOREVER)[jobs["of"]]
    tasks = np.flatnonzero(array >= 0)
    tasks = tasks[np.argsort(array[tasks], kind="stable")]
    follows = array[tasks[1:]] == array[tasks[:-1]]
    jobs["next_task"][tasks[:-1][follows]] = tasks[1:][follows]

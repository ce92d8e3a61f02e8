"""Recorded schedules against the model: at the recorded passes, or at passes of the model's own.

Closed loop: submissions, run times and the instants of the controller's passes are given, and its priorities
if it logged them; every start is predicted. Open loop: only submissions, configuration and run times are
given.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import LIFE, Lifecycles
from gridsched.engine.nodes.records import EventKind
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.nodes import nodes_with
from gridsched.systems.job_outcomes import dependents_of
from gridsched.systems.node_records import numbers_of
from gridsched.systems.slurm.accounts import Accounting, Owner, read_accounting, read_usage, usage_factors
from gridsched.systems.slurm.conf import SlurmConfiguration, read_configuration
from gridsched.systems.slurm.controller import (
    Controller,
    Outcome,
    SlurmCluster,
    Tickets,
    Watcher,
    chain_tasks,
    job_records,
)
from gridsched.systems.slurm.hostlist import compress_hosts
from gridsched.systems.slurm.kernels import (
    BY_ACCOUNT,
    BY_LIMIT,
    BY_MEMORY,
    BY_QUALITY,
    BY_TIME,
    BY_WALL,
    EVERYWHERE,
    EXCLUSIVE,
    NODE,
    WINDOW,
)
from gridsched.systems.slurm.limits import LimitsOfJobs, limits_of_jobs, unlimited
from gridsched.systems.slurm.minutes import MinuteRules
from gridsched.systems.slurm.preempting import preemption_of
from gridsched.systems.slurm.priority import FirstCome, Multifactor, Priorities, Resets
from gridsched.systems.slurm.recording import STAMPED, RecordedJob, Recording, read_recording
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.workloads.dependencies import dependency_table

Integers = NDArray[np.int64]

MILLISECONDS = 1000
"""Ticks a second."""

NEVER = -1
"""A partition does not have a job in its queue at all."""


class LoggedPriorities(Priorities):
    """The priorities that a controller logged, each from the instant on at which it was given.

    Parameters
    ----------
    rows : int
        How many rows of jobs there are, of which each has its own.
    log : list of (int, int, float)
        Instant, row, priority; by instant.
    """

    def __init__(self, rows: int, log: list[tuple[int, int, float]]) -> None:
        super().__init__([0.0] * rows)
        self.log, self.next = log, 0

    def due(self) -> int:
        """When priorities change next [ticks]."""
        return self.log[self.next][0] if self.next < len(self.log) else FOREVER

    def recalculate(self, now: int, waiting: Integers) -> NDArray[np.float64]:
        """New priorities of the waiting jobs."""
        while self.due() <= now:
            _, row, self.priority[row] = self.log[self.next]
            self.next += 1
        return super().recalculate(now, waiting)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """A recording with the input of the controller.

    Parameters
    ----------
    recording : Recording
        What it did.
    scheduler : Slurm
        Its parameters.
    configuration : SlurmConfiguration
        Its nodes and partitions.
    accounting : Accounting
        Shares and limits.
    """

    recording: Recording
    scheduler: Slurm
    configuration: SlurmConfiguration
    accounting: Accounting

    @classmethod
    def of(cls, folder: str | Path) -> Replay:
        """A folder with slurm.conf and what `read_recording` wants.

        Where there are sacctmgr_dump.cfg, qos.txt and sshare.txt, they say what accounts and users have.

        Raises
        ------
        TraceError, ConfigurationError
            If a file is missing or cannot be read.
        """
        folder = Path(folder)
        configuration = read_configuration(folder / "slurm.conf")
        accounting = Accounting()
        if (folder / "sacctmgr_dump.cfg").exists():
            qualities = folder / "qos.txt"
            accounting = read_accounting(
                folder / "sacctmgr_dump.cfg", qualities if qualities.exists() else None
            )
            if (folder / "sshare.txt").exists():
                accounting = read_usage(folder / "sshare.txt", accounting)
        return cls(
            recording=read_recording(folder),
            scheduler=Slurm(**configuration.parameters, accounting=accounting),
            configuration=configuration,
            accounting=accounting,
        )

    def closed_loop(self, *, priorities: str | Priorities = "logged", latency: int | None = None) -> Outcome:
        """Starts at the recorded passes.

        Parameters
        ----------
        priorities : {"logged", "computed"} or Priorities
            Where priorities come from.
        latency : int, optional
            Milliseconds from the end of a job until its nodes can be used; by default those of the log, and
            none where it does not say.
        """
        return self.controller(priorities, latency).follow(self.recording.passes)

    def open_loop(
        self, phase: tuple[float, float, float], *, latency: int = 8, drift: float = 0.001
    ) -> Outcome:
        """Starts at passes of the model's own.

        Parameters
        ----------
        phase : (float, float, float)
            See `Controller.work`.
        latency : int
            Milliseconds from the end of a job until its nodes can be used.
        drift : float
            See `Controller.work`.
        """
        return self.controller("computed", latency).work(phase, drift)

    # --- what the controller knows ----------------------------------------------------------------

    @property
    def owners(self) -> list[Owner]:
        """Account, user and quality of service of each row."""
        jobs = [self.recording.jobs[k] for k, _ in self.rows]
        return [(job.account, job.user, job.qos) for job in jobs]

    @property
    def constraints(self) -> list[str]:
        """Constraints of jobs, each once."""
        return sorted({job.constraint for job in self.recording.jobs})

    @property
    def partitions(self) -> dict[str, int]:
        """Place of each partition."""
        return {each.name: k for k, each in enumerate(self.configuration.partitions)}

    @property
    def rows(self) -> list[tuple[int, int]]:
        """Jobs once for each of their partitions: places of both, first the first that admits each."""
        jobs, places = self.recording.jobs, self.partitions
        first, others = [], []
        for k, job in enumerate(jobs):
            listed = [places[name] for name in job.listed if name in places]
            if job.partition not in job.listed:
                listed = [self.place_of(job), *listed]
            # those that do not admit a job do not have it in their queues
            admit = [place for place in listed if self.barred(job, place) != NEVER]
            first.append((k, (admit or listed)[0]))
            others += [(k, place) for place in admit[1:]]
        return first + others

    def barred(self, job: RecordedJob, place: int) -> int:
        """What keeps a job from starting in a partition, by its place: as `kernels.JOB` says, or `NEVER`."""
        partition = self.configuration.partitions[place]
        most = len(partition.nodes) if partition.most_nodes is None else partition.most_nodes
        longest = FOREVER if partition.time_limit is None else partition.time_limit
        if (
            not partition.least_nodes <= job.nodes <= min(most, len(partition.nodes))
            or (job.least or job.limit) > longest
            or partition.name in job.barred
        ):
            return NEVER
        for what, name, why in (("qos", job.qos, BY_QUALITY), ("accounts", job.account, BY_ACCOUNT)):
            allowed = partition.admission.get(f"allow{what}")
            denied = partition.admission.get(f"deny{what}", ())
            if name in denied if allowed is None else name not in allowed:
                return NEVER if self.configuration.enforces_partitions else why
        return BY_TIME if job.limit > longest else 0

    def place_of(self, job: RecordedJob) -> int:
        """Place of the partition of a job: its own, else the default one.

        Raises
        ------
        ConfigurationError
            If there is no such partition.
        """
        if job.partition in self.partitions:
            return self.partitions[job.partition]
        if job.partition:
            raise ConfigurationError(
                f"{self.recording.folder}: job {job.number} is in partition {job.partition}, which "
                "slurm.conf does not have; give the configuration of that time"
            )
        chosen = [k for k, each in enumerate(self.configuration.partitions) if each.default]
        return chosen[0] if chosen else 0

    def machine(self, limits: RecordArray) -> SlurmCluster:
        """The cluster."""
        nodes = np.array(
            [(each.cores, each.memory, each.gpus, each.weight) for each in self.configuration.nodes], NODE
        )
        places = {node.name: k for k, node in enumerate(self.configuration.nodes)}
        named = {name for *_, name in self.recording.node_events}
        named |= {name for each in self.recording.reservations for name in each.nodes}
        if unknown := sorted(named - set(places)):
            raise ConfigurationError(
                f"{self.recording.folder}: the log names node {unknown[0]}, which slurm.conf does not have; "
                "give the configuration of that time"
            )
        events = [(0, EventKind.DRAIN, k) for k, node in enumerate(self.configuration.nodes) if node.out]
        events += [(at, kind, places[name]) for at, kind, name in self.recording.node_events]
        reserved = np.zeros((len(self.recording.reservations), len(nodes)), np.uint8)
        windows: RecordArray = np.zeros(len(reserved), WINDOW)
        for k, each in enumerate(self.recording.reservations):
            events += [(each.announced, EventKind.ANNOUNCE, k), (each.end, EventKind.OPEN, k)]
            windows[k] = each.start // MILLISECONDS, each.end // MILLISECONDS
            reserved[k, [places[name] for name in each.nodes]] = 1
        return SlurmCluster(
            nodes=nodes,
            events=sorted(events),
            windows=windows,
            reserved=reserved if len(reserved) else None,
            lines=np.array([each.line for each in self.configuration.nodes], np.int64),
            featured=np.array(
                [
                    nodes_with(each, [node.features for node in self.configuration.nodes])
                    for each in self.constraints
                ]
            ),
            numbers=numbers_of(self.constraints),
            licences=np.array(list(self.configuration.licences.values()), np.int64),
            reach=np.array(
                [
                    [node.name in set(each.nodes) for node in self.configuration.nodes]
                    for each in self.configuration.partitions
                ],
                np.uint8,
            ),
            tier=np.array([each.tier for each in self.configuration.partitions], np.int64),
            limits=limits,
        )

    def records(self) -> RecordArray:
        """What the jobs ask for."""
        rows = self.rows
        jobs = job_records(len(rows))
        users = sorted({job.user for job in self.recording.jobs})
        cores = {node.name: node.cores for node in self.configuration.nodes}
        for k, (of, place) in enumerate(rows):
            job, partition = self.recording.jobs[of], self.configuration.partitions[place]
            linear = self.scheduler.select_type == "linear"
            everywhere = linear or job.whole
            whole = EVERYWHERE * everywhere | EXCLUSIVE * (partition.exclusive and not linear)
            each = cores[partition.nodes[0]] if whole else max(job.cores, 1)
            memory = 0 if whole or not self.scheduler.memory_is_consumed else job.memory
            jobs[k]["nodes"], jobs[k]["cores"], jobs[k]["memory"] = job.nodes, each, memory
            jobs[k]["gpus"], jobs[k]["whole"], jobs[k]["limit"] = job.gpus, whole, job.limit
            jobs[k]["of"], jobs[k]["least"] = of, job.least
            jobs[k]["partition"], jobs[k]["user"] = place, users.index(job.user)
            jobs[k]["processors"], jobs[k]["wanted"] = each * job.nodes, max(job.cores, 1) * job.nodes
            jobs[k]["processors_alone"] = cores[partition.nodes[0]] * job.nodes
            jobs[k]["late"], jobs[k]["barred"] = self._late(job), self.barred(job, place)
            jobs[k]["features"] = self.constraints.index(job.constraint)
        of_array = [job.array if job.task >= 0 else -1 for job in self.recording.jobs]
        most = [job.array_limit for job in self.recording.jobs]
        chain_tasks(jobs, np.array(of_array, np.int64), np.array(most, np.int64))
        return jobs

    def _limits(self) -> tuple[RecordArray, Integers, LimitsOfJobs]:
        """Limits of qualities of service, associations and arrays, and those of each job."""
        jobs = self.recording.jobs
        enforced = self.accounting if self.scheduler.enforce_limits else Accounting()
        partitions = self.configuration.partitions
        of_jobs = limits_of_jobs(enforced, self.owners, [partitions[place].quality for _, place in self.rows])
        of_arrays = {job.array: job.array_limit for job in jobs if job.array_limit}
        arrays = unlimited(len(of_arrays))
        arrays["jobs"] = list(of_arrays.values())
        places = {array: len(of_jobs.rows) + k for k, array in enumerate(of_arrays)}
        own = [places[jobs[k].array] if jobs[k].array_limit else -1 for k, _ in self.rows]
        return (
            np.concatenate([of_jobs.table(safe=self.scheduler.safe_limits), arrays]),
            np.ascontiguousarray(np.column_stack([of_jobs.limited, np.array(own, np.int64)])),
            of_jobs,
        )

    def controller(
        self, priorities: str | Priorities, latency: int | None = None, *, watch: Watcher | None = None
    ) -> Controller:
        """The controller with its jobs, before it does anything; see `closed_loop`."""
        records = self.records()
        if isinstance(priorities, str):
            priorities = self._priorities(priorities, records)
        limits, limited, of_jobs = self._limits()
        asked = {name: records[name] for name in ("processors", "nodes")}
        asked["gpus"] = records["gpus"] * records["nodes"]
        # who names no memory asks for that of whole nodes
        memory = max((each.memory for each in self.configuration.nodes), default=0)
        named = np.array([self.recording.jobs[of].memory for of in records["of"]], np.int64)
        asked["memory"] = np.where(named > 0, named, memory) * records["nodes"]
        if not self.scheduler.memory_is_consumed:
            too_much = of_jobs.too_much({"memory": asked.pop("memory")})
            records["barred"][too_much & (records["barred"] == 0)] = BY_MEMORY
        records["barred"][of_jobs.too_much(asked)] = BY_LIMIT
        records["barred"][of_jobs.too_much({"wall": records["limit"]})] = BY_WALL
        jobs, partitions = self.recording.jobs, self.configuration.partitions
        machine = self.machine(limits)
        minutes = None
        if of_jobs.has_minutes:
            minutes = MinuteRules(
                factor=usage_factors(self.accounting, self.owners),
                keeps=np.concatenate([of_jobs.keeps, np.zeros(len(limits) - len(of_jobs.keeps), np.bool_)]),
                begin=self._begin(
                    "minutes of groups are limited, and the log does not say when they were counted"
                ),
                resets=Resets(period=self.scheduler.priority_usage_reset_period),
            )
        preemption = preemption_of(
            self.scheduler,
            len(machine.nodes),
            records["partition"],
            machine.tier,
            [each.preempt_mode or self.scheduler.preempt_mode for each in partitions],
            [name for *_, name in self.owners],
        )
        made = Controller(
            machine,
            Tickets(
                jobs=records,
                run=np.array([job.end - job.last_start for job in jobs], np.int64),
                limited=limited,
                licences=self._licences()[records["of"]],
                lifecycles=self._lifecycles(),
                preemption=preemption,
                minutes=minutes,
            ),
            self.scheduler,
            priorities,
            unit=MILLISECONDS,
            latency=self._latency() if latency is None else latency,
            departures=self._departures() if latency is None else None,
            watch=watch,
        )
        made.dependent |= np.array([job.held for job in jobs], np.bool_)
        return made

    def _late(self, job: RecordedJob) -> int:
        """Seconds from the pass that started a job to the second of its start in the accounting."""
        at = max((at for at, _ in self.recording.passes if at <= job.start), default=-1)
        return job.noted - at // MILLISECONDS if 0 <= job.start <= at + STAMPED else 0

    def _latency(self) -> Integers:
        """Milliseconds from the end of each job until its nodes are free; 0 where the log does not say."""
        told = [
            job.freed - job.end if job.start >= 0 and job.freed >= 0 else 0 for job in self.recording.jobs
        ]
        return np.maximum(np.array(told, np.int64), 0)

    def _departures(self) -> dict[tuple[int, int], dict[int, int]]:
        """Milliseconds until jobs that were killed have left each node, by how often they were before."""
        places = {node.name: k for k, node in enumerate(self.configuration.nodes)}
        return {
            (k, nth): {places[name]: at - each.end for name, at in each.left.items()}
            for k, job in enumerate(self.recording.jobs)
            for nth, each in enumerate(job.interruptions)
        }

    def _licences(self) -> Integers:
        """Licences of each job.

        Raises
        ------
        ConfigurationError
            If it asks for some that there are none of.
        """
        kinds = list(self.configuration.licences)
        found = np.zeros((len(self.recording.jobs), len(kinds)), np.int64)
        for k, job in enumerate(self.recording.jobs):
            for name, number in job.licences.items():
                if name not in kinds:
                    raise ConfigurationError(
                        f"{self.recording.folder}: job {job.number} asks for licence {name}, which "
                        "slurm.conf does not have; give the configuration of that time"
                    )
                found[k, kinds.index(name)] += number
        return found

    def _begin(self, problem: str) -> int:
        """Instant [ms] from which on the controller counts what jobs use."""
        if self.recording.priorities_since is None:
            raise ConfigurationError(
                f"{self.recording.folder}: {problem} first; log from the start of the controller on"
            )
        return self.recording.priorities_since

    def _lifecycles(self) -> Lifecycles:
        """When jobs may start, for whom they wait, and when they were cancelled."""
        jobs = self.recording.jobs
        table = self._dependencies()
        made: RecordArray = np.zeros(len(jobs), LIFE)
        made["submit"] = [job.submit for job in jobs]
        made["gives_up"] = [job.cancelled if job.cancelled >= 0 else FOREVER for job in jobs]
        made["unmet"] = 1 + np.bincount(table["job"], minlength=len(jobs))
        never = [self.barred(job, place) == NEVER for job, (_, place) in zip(jobs, self.rows, strict=False)]
        made["eligible"] = [
            FOREVER if out or (job.held and job.released < 0) else max(job.eligible, job.released, 0)
            for job, out in zip(jobs, never, strict=True)
        ]
        made["failed"] = [job.failed for job in jobs]
        return job_lifecycle.allocate(made, *dependents_of(table, len(jobs)))

    def _dependencies(self) -> RecordArray:
        """Who waits for whom.

        Raises
        ------
        ConfigurationError
            If a job waits for one that the recording does not have.
        """
        named: dict[str, list[int]] = {}
        for k, job in enumerate(self.recording.jobs):
            named.setdefault(job.name, []).append(k)
        found = []
        for k, job in enumerate(self.recording.jobs):
            for kind, name in job.dependencies:
                if name not in named:
                    raise ConfigurationError(
                        f"{self.recording.folder}: job {job.number} waits for {name}, of which there is "
                        "no row in outcome.csv; add it"
                    )
                found += [(k, on, kind) for on in named[name]]
        return dependency_table(found)

    def _priorities(self, priorities: str, records: RecordArray) -> Priorities:
        if self.scheduler.priority_type == "basic":
            come = [max(job.submit, job.released) for job in self.recording.jobs]
            rank = np.empty(len(come), np.int64)
            rank[np.argsort(come, kind="stable")] = np.arange(len(come))
            nice = np.array([job.nice for job in self.recording.jobs], np.int64)
            return FirstCome(records["of"], rank, nice, records["array"])
        if priorities == "computed":
            return self.multifactor(records)
        # the tasks of an array that wait have one record, which has the number of the array
        found: dict[tuple[int, str], list[int]] = {}
        for row, (k, place) in enumerate(self.rows):
            job, name = self.recording.jobs[k], self.configuration.partitions[place].name
            for number in {job.number, job.array}:
                found.setdefault((number, ""), []).append(row)
                found.setdefault((number, name), []).append(row)
        given = [(at, number, {"": value}) for at, number, value in self.recording.priorities]
        log = [
            (at, row, value)
            for at, number, values in [*given, *self.recording.priorities_of_partitions]
            for name, value in values.items()
            for row in found.get((number, name), ())
        ]
        return LoggedPriorities(len(self.rows), sorted(log))

    def multifactor(self, records: RecordArray | None = None) -> Multifactor:
        """Priorities from shares, ages and sizes, by default for rows that nobody changes.

        Raises
        ------
        ConfigurationError
            If the log does not say when the controller began to calculate priorities.
        """
        records = self.records() if records is None else records
        machine = self.machine(unlimited(0))
        jobs = [self.recording.jobs[k] for k in records["of"]]
        linear = self.scheduler.select_type == "linear"
        asked = np.array([1 if linear else max(job.cores, 1) for job in jobs], np.int64)
        return Multifactor(
            self.scheduler,
            records,
            self.owners,
            self.accounting,
            factor=np.array([each.job_factor for each in self.configuration.partitions], np.int64),
            nice=np.array([job.nice for job in jobs], np.int64),
            early_processors=asked * records["nodes"],
            asked_memory=np.array([job.memory for job in jobs], np.int64),
            held=np.array([job.held for job in jobs]),
            nodes=machine.nodes,
            reach=machine.reach,
            unit=MILLISECONDS,
            begin=self._begin("the log does not say when priorities were calculated"),
            resets=Resets(period=self.scheduler.priority_usage_reset_period),
            billing=[each.billing for each in self.configuration.partitions],
        )

    # --- what came out ----------------------------------------------------------------------------

    def executions(self, outcome: Outcome) -> dict[int, list[tuple[int, tuple[str, ...]]]]:
        """Start [ms] and nodes of each execution, by the place of the job."""
        found: dict[int, list[tuple[int, tuple[str, ...]]]] = {}
        for each in outcome.executions:
            nodes = outcome.placed[each["first"] : each["first"] + self.recording.jobs[each["job"]].nodes]
            names = tuple(sorted(self.configuration.nodes[node].name for node in nodes))
            found.setdefault(int(each["job"]), []).append((int(each["start"]), names))
        return found

    def differences(self, outcome: Outcome, tolerance: int = 200) -> list[str]:
        """Executions at another time [ms] or on other nodes than recorded: a line each, in order of time."""
        found = []
        predicted = self.executions(outcome)
        for k, job in enumerate(self.recording.jobs):
            recorded = [(each.start, each.where) for each in job.interruptions]
            recorded += [(job.last_start, job.where)] if job.start >= 0 else []
            for real, model in zip_longest(recorded, predicted.get(k, []), fillvalue=(-1, ())):
                same = min(real[0], model[0]) >= 0 and abs(real[0] - model[0]) <= tolerance
                if not same or real[1] != model[1]:
                    words = f"job {job.number} started {_when(*real)}, predicted {_when(*model)}"
                    found.append((min(each[0] for each in (real, model) if each[0] >= 0), words))
        return [line for _, line in sorted(found)]

    def measures(self, outcome: Outcome) -> dict[str, float]:
        """How near starts are to recorded ones: parts within 0.2, 1, 3 s; mean waits [s]; swapped pairs."""
        real = np.array([job.start for job in self.recording.jobs], np.int64)
        away = np.abs(outcome.start - real)
        away[(outcome.start < 0) & (real >= 0)] = FOREVER
        ran = np.flatnonzero((real >= 0) & (outcome.start >= 0))
        starts, real = outcome.start[ran], real[ran]
        submit = np.array([self.recording.jobs[k].submit for k in ran], np.int64)
        here, there = np.triu_indices(len(real), 1)
        before, after = real[here] - real[there], starts[here] - starts[there]
        swapped = (before * after < 0) & (np.abs(before) > 500) & (np.abs(after) > 500)
        return {
            "within_0.2": float((away <= 200).mean()),
            "within_1": float((away <= 1000).mean()),
            "within_3": float((away <= 3000).mean()),
            "mean_wait": float((starts - submit).mean() / 1000),
            "recorded_mean_wait": float((real - submit).mean() / 1000),
            "pairs_swapped": float(swapped.mean()) if len(swapped) else 0.0,
        }


def _when(start: int, where: tuple[str, ...]) -> str:
    """A start [ms] and nodes in words."""
    return f"at {start / 1000:.3f} on {compress_hosts(where)}" if start >= 0 else "never"

"""Recorded schedules against the model: at the recorded passes, or at passes of the model's own.

Closed loop: submissions, run times and the instants of the controller's passes are given, and its priorities
if it logged them; every start is predicted. Open loop: only submissions, configuration and run times are
given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import LIFE, Lifecycles
from gridsched.engine.nodes.records import EventKind
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.systems.job_outcomes import dependents_of
from gridsched.systems.slurm.accounts import Accounting, read_accounting, read_usage
from gridsched.systems.slurm.conf import SlurmConfiguration, read_configuration
from gridsched.systems.slurm.controller import (
    NEVER,
    Controller,
    FirstCome,
    Outcome,
    SlurmCluster,
    Tickets,
    Watcher,
    chain_tasks,
    job_records,
)
from gridsched.systems.slurm.kernels import LIMIT, NODE, WINDOW
from gridsched.systems.slurm.limits import LimitsOfJobs, limits_of_jobs, unlimited
from gridsched.systems.slurm.preempting import PreemptionRules
from gridsched.systems.slurm.priority import Multifactor, Priorities, Resets, Shares
from gridsched.systems.slurm.recording import RecordedJob, Recording, read_recording
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.workloads.dependencies import dependency_table

Integers = NDArray[np.int64]

MILLISECONDS = 1000
"""Ticks a second."""


class LoggedPriorities:
    """The priorities that a controller logged, each from the instant on at which it was given.

    Parameters
    ----------
    log : list of (int, int, float)
        Instant, place of the job, priority; by instant.
    """

    def __init__(self, log: list[tuple[int, int, float]]) -> None:
        self.log, self.next = log, 0
        self.known: dict[int, float] = {}

    def submitted(self, job: int, now: int) -> float:
        """Priority of a job that is submitted at `now` [ticks]."""
        return self.known.get(job, 0.0)

    def requeued(self, job: int, now: int) -> None:
        """A job that was preempted waits again."""

    def started(self, job: int, now: int) -> None:
        """A job starts."""

    def ended(self, job: int, now: int) -> None:
        """A job ends."""

    def due(self) -> int:
        """When priorities change next [ticks]."""
        return self.log[self.next][0] if self.next < len(self.log) else NEVER

    def recalculate(self, now: int, waiting: Integers) -> NDArray[np.float64]:
        """New priorities of the waiting jobs."""
        while self.due() <= now:
            _, job, priority = self.log[self.next]
            self.known[job] = priority
            self.next += 1
        return np.array([self.known.get(job, 0.0) for job in waiting.tolist()])


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

    def closed_loop(self, *, priorities: str = "logged", latency: int = 0) -> Outcome:
        """Starts at the recorded passes.

        Parameters
        ----------
        priorities : {"logged", "computed"}
            Where priorities come from.
        latency : int
            Milliseconds from the end of a job until its nodes can be used.
        """
        return self.follow(self._priorities(priorities), latency=latency)

    def follow(self, priorities: Priorities, *, latency: int = 0) -> Outcome:
        """Starts at the recorded passes under some priorities."""
        return self._controller(priorities, latency).follow(self.recording.passes)

    def controller(self, priorities: str, latency: int, *, watch: Watcher | None = None) -> Controller:
        """The controller with its jobs, before it does anything; see `closed_loop`."""
        return self._controller(self._priorities(priorities), latency, watch)

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
        return self._controller(self._priorities("computed"), latency).work(phase, drift)

    # --- what the controller knows ----------------------------------------------------------------

    @property
    def partitions(self) -> dict[str, int]:
        """Place of each partition."""
        return {each.name: k for k, each in enumerate(self.configuration.partitions)}

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
        nodes: RecordArray = np.zeros(len(self.configuration.nodes), NODE)
        for name in ("cores", "memory", "gpus"):
            values = [getattr(node, name) for node in self.configuration.nodes]
            nodes[name] = values
        places = {node.name: k for k, node in enumerate(self.configuration.nodes)}
        named = {name for *_, name in self.recording.node_events}
        named |= {name for each in self.recording.reservations for name in each.nodes}
        if unknown := sorted(named - set(places)):
            raise ConfigurationError(
                f"{self.recording.folder}: the log names node {unknown[0]}, which slurm.conf does not have; "
                "give the configuration of that time"
            )
        events = [(at, kind, places[name]) for at, kind, name in self.recording.node_events]
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
        jobs = job_records(len(self.recording.jobs))
        users = sorted({job.user for job in self.recording.jobs})
        cores = {node.name: node.cores for node in self.configuration.nodes}
        for k, job in enumerate(self.recording.jobs):
            partition = self.configuration.partitions[self.place_of(job)]
            whole = self.scheduler.select_type == "linear" or partition.exclusive
            each = cores[partition.nodes[0]] if whole else max(job.cores, 1)
            memory = 0 if whole or not self.scheduler.memory_is_consumed else job.memory
            jobs[k]["nodes"], jobs[k]["cores"], jobs[k]["memory"] = job.nodes, each, memory
            jobs[k]["gpus"], jobs[k]["whole"], jobs[k]["limit"] = job.gpus, whole, job.limit
            jobs[k]["partition"], jobs[k]["user"] = self.place_of(job), users.index(job.user)
            jobs[k]["processors"] = each * job.nodes
        of_array = [job.array if job.task >= 0 else -1 for job in self.recording.jobs]
        most = [job.array_limit for job in self.recording.jobs]
        chain_tasks(jobs, np.array(of_array, np.int64), np.array(most, np.int64))
        return jobs

    def _limits(self) -> tuple[RecordArray, Integers, LimitsOfJobs]:
        """Limits of qualities of service, associations and arrays, and those of each job."""
        jobs = self.recording.jobs
        enforced = self.accounting if self.scheduler.enforce_limits else Accounting()
        of_jobs = limits_of_jobs(enforced, [(job.account, job.user, job.qos) for job in jobs])
        of_arrays = {job.array: job.array_limit for job in jobs if job.array_limit}
        arrays = unlimited(len(of_arrays))
        arrays["jobs"] = list(of_arrays.values())
        places = {array: len(of_jobs.rows) + k for k, array in enumerate(of_arrays)}
        own = [places[job.array] if job.array_limit else -1 for job in jobs]
        return (
            np.concatenate([of_jobs.table(safe=self.scheduler.safe_limits), arrays]),
            np.ascontiguousarray(np.column_stack([of_jobs.limited, np.array(own, np.int64)])),
            of_jobs,
        )

    def _controller(self, priorities: Priorities, latency: int, watch: Watcher | None = None) -> Controller:
        limits, limited, of_jobs = self._limits()
        jobs = self.recording.jobs
        minutes = None
        if of_jobs.has_minutes:
            if self.recording.priorities_since is None:
                raise ConfigurationError(
                    f"{self.recording.folder}: minutes of groups are limited, and the log does not say when "
                    "they were counted first; log from the start of the controller on"
                )
            factor = {name: each.usage_factor for name, each in self.accounting.qualities.items()}
            minutes = self.scheduler.minute_rules(
                np.array([factor.get(job.qos, 1.0) for job in jobs]),
                np.concatenate([of_jobs.keeps, np.zeros(len(limits) - len(of_jobs.keeps), np.bool_)]),
                self.recording.priorities_since,
                Resets(period=self.scheduler.priority_usage_reset_period),
            )
        return Controller(
            self.machine(limits),
            Tickets(
                jobs=self.records(),
                submit=np.array([job.submit for job in jobs], np.int64),
                run=np.array([job.end - job.start for job in jobs], np.int64),
                limited=limited,
                lifecycles=self._lifecycles(),
                preemption=self._preemption(),
                minutes=minutes,
            ),
            self.scheduler.cadence,
            priorities,
            unit=MILLISECONDS,
            latency=latency,
            watch=watch,
        )

    def _preemption(self) -> PreemptionRules | None:
        """Who preempts whom."""
        partitions = self.configuration.partitions
        place = np.array([self.place_of(job) for job in self.recording.jobs], np.int64)
        return self.scheduler.preemption_rules(
            place,
            np.array([each.tier for each in partitions], np.int64),
            [each.preempt_mode or self.scheduler.preempt_mode for each in partitions],
            [job.qos for job in self.recording.jobs],
        )

    def _lifecycles(self) -> Lifecycles:
        """When jobs may start, for whom they wait, and when they were cancelled."""
        jobs = self.recording.jobs
        table = self._dependencies()
        made: RecordArray = np.zeros(len(jobs), LIFE)
        made["submit"] = [job.submit for job in jobs]
        made["gives_up"] = [job.cancelled if job.cancelled >= 0 else FOREVER for job in jobs]
        made["unmet"] = 1 + np.bincount(table["job"], minlength=len(jobs))
        made["eligible"] = [max(job.eligible, job.released, 0) for job in jobs]
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

    def _priorities(self, priorities: str) -> Priorities:
        if self.scheduler.priority_type == "basic":
            come = [max(job.submit, job.released) for job in self.recording.jobs]
            rank = np.empty(len(come), np.int64)
            rank[np.argsort(come, kind="stable")] = np.arange(len(come))
            nice = np.array([job.nice for job in self.recording.jobs], np.int64)
            return FirstCome(len(come), rank, nice)
        if priorities == "computed":
            return self.multifactor()
        place = {job.number: k for k, job in enumerate(self.recording.jobs)}
        log = [
            (at, place[number], given) for at, number, given in self.recording.priorities if number in place
        ]
        return LoggedPriorities(sorted(log))

    def multifactor(self) -> Multifactor:
        """Priorities from shares, ages and sizes.

        Raises
        ------
        ConfigurationError
            If the log does not say when the controller began to calculate priorities.
        """
        jobs, records = self.recording.jobs, self.records()
        if self.recording.priorities_since is None:
            raise ConfigurationError(
                f"{self.recording.folder}: the log does not say when priorities were calculated first; log "
                "from the start of the controller on"
            )
        shares = Shares(
            self.accounting,
            fair_tree=self.scheduler.fair_tree,
            damping=self.scheduler.fair_share_dampening_factor,
        )
        qualities = self.accounting.qualities
        highest = max((each.priority for each in qualities.values()), default=0)
        quality = [qualities[job.qos].priority if job.qos in qualities else 0 for job in jobs]
        factor = np.array([each.job_factor for each in self.configuration.partitions], np.float64)
        nodes = self.machine(np.zeros(0, LIMIT)).nodes
        return Multifactor(
            self.scheduler.weights,
            records,
            place=np.array([shares.place.get((job.account, job.user), -1) for job in jobs], np.int64),
            quality=np.array(quality, np.float64) / max(highest, 1),
            partition=factor[records["partition"]] / max(factor.max(initial=0), 1),
            nice=np.array([job.nice for job in jobs], np.int64),
            early_processors=np.where(records["whole"] != 0, records["nodes"], records["processors"]),
            nodes=nodes,
            shares=shares,
            unit=MILLISECONDS,
            begin=self.recording.priorities_since,
            usage_factor=np.array(
                [qualities[job.qos].usage_factor if job.qos in qualities else 1.0 for job in jobs]
            ),
            resets=Resets(period=self.scheduler.priority_usage_reset_period),
        )

    # --- what came out ----------------------------------------------------------------------------

    def differences(self, outcome: Outcome, tolerance: int = 200) -> list[str]:
        """Jobs that started at another time than recorded, in order of the earlier start: a line each."""
        found = []
        for k, job in enumerate(self.recording.jobs):
            start = int(outcome.start[k])
            if min(start, job.start) < 0 <= max(start, job.start) or abs(start - job.start) > tolerance:
                first = min(each for each in (start, job.start) if each >= 0)
                found.append(
                    (first, f"job {job.number} started {_when(job.start)}, predicted {_when(start)}")
                )
        return [line for _, line in sorted(found)]

    def measures(self, outcome: Outcome) -> dict[str, float]:
        """How near starts are to recorded ones: parts within 0.2, 1, 3 s; mean waits [s]; swapped pairs."""
        real = np.array([job.start for job in self.recording.jobs], np.int64)
        away = np.abs(outcome.start - real)
        away[(outcome.start < 0) & (real >= 0)] = NEVER
        ran = np.flatnonzero((real >= 0) & (outcome.start >= 0))
        starts, real = outcome.start[ran], real[ran]
        submit = np.array([self.recording.jobs[k].submit for k in ran], np.int64)
        here, there = np.triu_indices(len(real), 1)
        before, after = real[here] - real[there], starts[here] - starts[there]
        swapped = (before * after < 0) & (np.abs(before) > 500) & (np.abs(after) > 500)
        same = [
            tuple(self.configuration.nodes[n].name for n in outcome.nodes_of(k, job.nodes))
            == tuple(sorted(job.where))
            for k, job in enumerate(self.recording.jobs)
            if job.start >= 0
        ]
        return {
            "within_0.2": float((away <= 200).mean()),
            "within_1": float((away <= 1000).mean()),
            "within_3": float((away <= 3000).mean()),
            "same_nodes": float(np.mean(same)),
            "mean_wait": float((starts - submit).mean() / 1000),
            "recorded_mean_wait": float((real - submit).mean() / 1000),
            "pairs_swapped": float(swapped.mean()) if len(swapped) else 0.0,
        }


def _when(start: int) -> str:
    """A start [ms] in words."""
    return f"at {start / 1000:.3f}" if start >= 0 else "never"

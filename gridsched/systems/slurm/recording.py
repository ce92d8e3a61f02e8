"""Schedules that a real Slurm controller made: what was submitted, when it worked, and what it started."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.nodes.records import EventKind
from gridsched.engine.records import FOREVER
from gridsched.errors import TraceError
from gridsched.systems.slurm.conf import licences_of
from gridsched.systems.slurm.controller import BACKFILL, MAIN, SHORT
from gridsched.systems.slurm.hostlist import expand_hosts
from gridsched.workloads.dependencies import KINDS

Integers = NDArray[np.int64]

_LINE = re.compile(r"\[(\S+)\] (.*)")
_PRIORITY = re.compile(r"Job (\d+) priority: .* = ([\d.]+)")
_PRIORITIES = re.compile(r"JobId=(\d+)\S* multi-partition priorities: (.*)")
_INITIAL = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)")
_STATE = re.compile(r"update_node: node (\S+) state set to (\w+)")
_RESPONDS = re.compile(r"Node (\S+) now responding")
_RESERVED = re.compile(r"Created reservation=(\S+) .*nodes=(\S+) .*start=(\S+) end=(\S+)")
_NOT_KNOWN = re.compile(r"(?:Updated|Deleted) reservation=(\S+)|(\S+) reservation (\S+) advanced by")
_RELEASED = re.compile(r"_release_job_rec: release hold on JobId=(\d+)")
_KILLED = re.compile(r"job_signal: 9 of running JobId=(?:\d+_\d+\()?(\d+)")
_CANCELLED = re.compile(r"job_signal: 9 of pending JobId=(\d+)")
_CLEARED = re.compile(r"_slurm_rpc_epilog_complete: JobId=(?:\d+_\d+\()?(\d+)\)? Node=(\S+)")
_BARRED = re.compile(
    r"JobId=(?:\d+_[\d*]+\()?(\d+)\S* can't run in partition (\S+): User's group not permitted"
)
_ANSWERED = re.compile(r"node_did_resp (\S+)")

STAMPED = 200
"""Milliseconds from a pass to the stamps of the starts that it makes, at most."""

_FAILED = ("FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")
"""States of jobs that did not end well."""


@dataclass(frozen=True, kw_only=True)
class RecordedInterruption:
    """A job ran and was killed to run again; times in milliseconds of Unix time.

    `left` says when it had left each node, as far as the log does; `by` is the job that preempted it.
    """

    start: int
    end: int
    where: tuple[str, ...]
    left: Mapping[str, int]
    by: int


@dataclass(frozen=True, kw_only=True)
class RecordedJob:
    """A job of a recording; times in milliseconds of Unix time, -1 for never, the limit in seconds.

    `start` is its first start, which the accounting has as second `noted`; `last_start` is that of the
    execution that `end` and `where` are of, after its `interruptions`. `number` and `task` are those of
    the log, the task -1 without an array. Of an array `array_limit` tasks may run at once, 0 for any
    number. `eligible` is its begin time, `released` when its hold ended, `cancelled` when it was
    cancelled while it waited, `freed` when all its nodes could be used by others. `dependencies` are
    kinds and names of jobs. `nice` is taken off its priority. `constraint` is about features of nodes,
    `licences` are names with numbers, `listed` the partitions in which it might run, if it named some.
    `whole` says whether it asked for whole nodes, `least` for which shortest limit [s], 0 for none, `held`
    whether it was submitted with a hold. The groups of its user bar it from the partitions `barred`.
    """

    number: int
    array: int
    task: int
    name: str
    user: str
    account: str
    partition: str
    qos: str
    nodes: int
    cores: int
    memory: int
    gpus: int
    limit: int
    submit: int
    start: int
    end: int
    by: int
    where: tuple[str, ...]
    last_start: int
    noted: int
    interruptions: tuple[RecordedInterruption, ...] = ()
    failed: bool = False
    eligible: int = -1
    released: int = -1
    cancelled: int = -1
    freed: int = -1
    array_limit: int = 0
    dependencies: tuple[tuple[str, str], ...] = ()
    nice: int = 0
    constraint: str = ""
    licences: Mapping[str, int] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    whole: bool = False
    least: int = 0
    held: bool = False
    barred: frozenset[str] = frozenset()

    @property
    def identifier(self) -> str:
        """Its ID as users know it."""
        return f"{self.array}_{self.task}" if self.task >= 0 else str(self.number)


@dataclass(frozen=True, kw_only=True)
class RecordedReservation:
    """Nodes that were reserved for others than the jobs; times in milliseconds of Unix time."""

    name: str
    announced: int
    start: int
    end: int
    nodes: tuple[str, ...]


@dataclass(kw_only=True)
class Recording:
    """What a controller did, as its log says it; numbers of jobs are those of the log.

    Parameters
    ----------
    folder : Path
        Where it was read.
    jobs : list of RecordedJob
        In order of submission.
    passes : list of (int, int)
        Instant [ms] and kind of each pass.
    priorities : list of (int, int, float)
        Instant [ms], number of a job, and the priority that it was given.
    priorities_of_partitions : list of (int, int, dict of str to float)
        The same of a job that may run in several partitions: its priority in each.
    priorities_since : int, optional
        Instant [ms] at which priority/multifactor began; it calculates all priorities each period from then.
    node_events : list of (int, EventKind, str)
        Instant [ms], DRAIN or RESUME, and the node.
    reservations : list of RecordedReservation
        Reservations of nodes.
    released, cancelled, killed : dict of int to int
        Instants [ms] at which jobs were released from a hold, and were cancelled while they waited or ran.
    cleared : dict of (int, str) to list of int
        Instants [ms] at which jobs had left a node.
    answers : dict of str to list of int
        Instants [ms] at which nodes answered the controller, also that they are free.
    barred : dict of int to set of str
        Partitions of which jobs may not use the nodes since their users are not in AllowGroups.
    known : dict of int to int
        Place in `passes` of the first pass that follows the line that says that a job was submitted.
    """

    folder: Path
    jobs: list[RecordedJob] = field(default_factory=list)
    passes: list[tuple[int, int]] = field(default_factory=list)
    priorities: list[tuple[int, int, float]] = field(default_factory=list)
    priorities_of_partitions: list[tuple[int, int, dict[str, float]]] = field(default_factory=list)
    priorities_since: int | None = None
    node_events: list[tuple[int, EventKind, str]] = field(default_factory=list)
    reservations: list[RecordedReservation] = field(default_factory=list)
    released: dict[int, int] = field(default_factory=dict)
    cancelled: dict[int, int] = field(default_factory=dict)
    killed: dict[int, int] = field(default_factory=dict)
    cleared: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    answers: dict[str, list[int]] = field(default_factory=dict)
    barred: dict[int, set[str]] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)


def milliseconds(stamp: str) -> int:
    """Unix time of a time stamp of a log, which names no time zone and is in UTC."""
    moment = datetime.fromisoformat(stamp)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def read_recording(folder: str | Path) -> Recording:
    """Read `outcome.csv`, `slurmctld.log` or `.gz` of a folder, and `submissions.csv` and `executions.csv`.

    The latter two may be missing.

    Raises
    ------
    TraceError
        If a file or a column is missing.
    """
    folder = Path(folder)
    asked = {row["jobid"]: row for row in _rows(folder / "submissions.csv", missing_ok=True)}
    recording = _read_log(folder)
    executions: dict[str, list[dict[str, str]]] = {}
    for row in _rows(folder / "executions.csv", missing_ok=True):
        executions.setdefault(row["jobid"], []).append(row)
    for row in _rows(folder / "outcome.csv"):
        try:
            asks = asked.get(row["jobid"].partition("_")[0], {})
            job = _job_of(row, asks, executions.get(row["jobid"], []), recording)
            recording.jobs.append(job)
        except (KeyError, ValueError) as error:
            raise TraceError(f"{folder / 'outcome.csv'}: job {row.get('jobid')}: {error!r}") from None
    recording.jobs.sort(key=lambda job: (job.submit, job.array, job.task))
    recording.jobs = [replace(job, freed=_freed(job, recording)) for job in recording.jobs]
    return recording


def _freed(job: RecordedJob, recording: Recording) -> int:
    """When the nodes of a job could be used by others [ms]; -1 where the log does not say.

    That is when each of them has answered that the job is gone, or before that at the pass that gave one of
    them to another job.
    """
    latest, used = -1, -1
    for node in job.where:
        answer = min((at for at in recording.answers.get(node, ()) if at >= job.end), default=-1)
        if answer < 0:
            return -1
        answer -= 1  # it is free before that is logged
        for other in recording.jobs:
            if job.end <= other.start <= answer + STAMPED and node in other.where:
                given = max(
                    (at for at, _ in recording.passes if job.end < at <= other.start), default=job.end + 1
                )
                used = max(used, min(answer, given - 1))
        latest = max(latest, answer)
    return latest if used < 0 else used


def _read_log(folder: Path) -> Recording:
    """Read the controller's log."""
    log = Recording(folder=folder)
    instants = {_RELEASED: log.released, _CANCELLED: log.cancelled, _KILLED: log.killed}
    away: set[str] = set()
    latest = ""
    for stamp, text in log_lines(folder):
        if found := _INITIAL.search(text):
            log.known[int(found[1])] = len(log.passes)
        if "Running job scheduler for" in text:
            log.passes.append((milliseconds(stamp), SHORT if "default depth" in text else MAIN))
        elif "_attempt_backfill: beginning" in text:
            log.passes.append((milliseconds(stamp), BACKFILL))
        elif "Priority MULTIFACTOR plugin loaded" in text:
            log.priorities_since = milliseconds(stamp)
        elif found := _PRIORITIES.search(text):
            pairs = dict(each.split("=") for each in found[2].split(", "))
            of_partitions = {name: float(value) for name, value in pairs.items()}
            log.priorities_of_partitions.append((milliseconds(stamp), int(found[1]), of_partitions))
            latest = found[1]
        elif found := _PRIORITY.search(text) or _INITIAL.search(text):
            if found[1] == latest:
                continue  # one of those of its partitions
            log.priorities.append((milliseconds(stamp), int(found[1]), float(int(float(found[2])))))
        elif found := _STATE.search(text):
            # what is resumed takes jobs again when it has answered
            if found[2] not in ("IDLE", "ALLOCATED", "MIXED") and found[1] not in away:
                away.add(found[1])
                log.node_events.append((milliseconds(stamp), EventKind.DRAIN, found[1]))
        elif found := _RESPONDS.search(text):
            if found[1] in away:
                away.remove(found[1])
                log.node_events.append((milliseconds(stamp), EventKind.RESUME, found[1]))
        elif found := _CLEARED.search(text):
            log.cleared.setdefault((int(found[1]), found[2]), []).append(milliseconds(stamp))
        elif found := _ANSWERED.search(text):
            log.answers.setdefault(found[1], []).append(milliseconds(stamp))
        elif found := _BARRED.search(text):
            log.barred.setdefault(int(found[1]), set()).add(found[2])
        elif found := _RESERVED.search(text):
            log.reservations.append(
                RecordedReservation(
                    name=found[1],
                    announced=milliseconds(stamp),
                    start=milliseconds(found[3]),
                    end=milliseconds(found[4]),
                    nodes=tuple(expand_hosts(found[2])),
                )
            )
        elif found := _NOT_KNOWN.search(text):
            raise TraceError(
                f"{folder}: reservation {found[1] or found[3]} was changed at {stamp}, which is not "
                "modelled; record without that"
            )
        else:
            for pattern, jobs in instants.items():
                if found := pattern.search(text):
                    jobs[int(found[1])] = milliseconds(stamp)
    return log


def _interruption(row: dict[str, str], number: int, log: Recording) -> RecordedInterruption:
    end, where = _instant(row["end_ms"], -1), tuple(sorted(expand_hosts(row["nodelist"])))
    after = {node: [at for at in log.cleared.get((number, node), ()) if at >= end] for node in where}
    return RecordedInterruption(
        start=_instant(row["start_ms"], -1),
        end=end,
        where=where,
        left={node: min(instants) - 1 for node, instants in after.items() if instants},
        by=int(row["preempted_by"] or -1),
    )


def _job_of(
    row: dict[str, str], asked: dict[str, str], executions: list[dict[str, str]], log: Recording
) -> RecordedJob:
    start, number = _instant(row["start_ms"], -1), int(row["jobidraw"])
    array, _, task = row["jobid"].partition("_")
    listed = (asked.get("partition") or "").split(",")
    # what was asked for beside resources: a word, and what follows its first colon
    wish, _, rest = (asked.get("extra") or "").partition(":")
    extra = {wish: rest}
    # a job that was cut at the end of the recording was to run as long as planned
    end = start + _instant(row.get("planned_runtime", ""), 0)
    where = tuple(sorted(expand_hosts(row["nodelist"]))) if start >= 0 else ()
    left = [at for node in where for at in log.cleared.get((number, node), ())]
    if left and row.get("state", "").startswith("TIMEOUT"):
        end = max(left)
    if row.get("state", "").startswith("CANCELLED"):
        end = log.killed.get(number, end)
    end = _instant(row["done_ms"], end)
    # the order of lines says more than their stamps, of which two can be the same
    following = log.passes[log.known.get(int(array), len(log.passes)) :][:1]
    submit = min(_instant(row["submit_ms"], -1), *(at - 1 for at, _ in following), FOREVER)
    interruptions = tuple(_interruption(each, number, log) for each in executions[:-1])
    first = interruptions[0].start if interruptions else start
    return RecordedJob(
        number=number,
        array=int(array),
        task=int(task or -1),
        name=row.get("name") or row["jobid"],
        user=row.get("user", ""),
        account=row.get("account", ""),
        partition=row.get("partition", ""),
        qos=row.get("qos", ""),
        nodes=int(row["nnodes"]),
        cores=int(asked.get("cpus_per_task") or 0),
        memory=int(asked.get("mem_mb") or 0),
        gpus=int(asked.get("gpus") or 0),
        # backfilling starts a job that names a shortest limit with that one
        limit=60 * int((asked.get("time_min") and asked.get("time_limit_min")) or row["time_limit_min"]),
        submit=submit,
        start=first,
        end=end,
        by=BACKFILL if (executions or [row])[0].get("by") == "backfill" else MAIN,
        where=where,
        last_start=start,
        noted=int(row["start"]) if row.get("start", "").isdigit() and not interruptions else first // 1000,
        interruptions=interruptions,
        failed=row.get("state", "").split(" ")[0] in _FAILED,
        eligible=_instant(row.get("eligible", ""), -1) if "begin" in extra else -1,
        released=log.released.get(number, -1),
        cancelled=log.cancelled.get(number, -1),
        array_limit=int(extra.get("array", "").partition("%")[2] or 0),
        dependencies=_dependencies(extra.get("dep", "")),
        nice=int(extra.get("nice") or asked.get("nice") or 0),
        constraint=asked.get("constraint") or "",
        licences=licences_of(asked.get("licenses") or "", "licenses"),
        listed=tuple(name for name in listed if name),
        whole=(asked.get("exclusive") or "0") not in ("0", "False", "no"),
        least=60 * int(asked.get("time_min") or 0),
        held="hold" in extra,
        barred=frozenset(log.barred.get(number, ())) | frozenset(log.barred.get(int(array), ())),
    )


def _dependencies(text: str) -> tuple[tuple[str, str], ...]:
    """Kinds and jobs of a dependency such as afterany:j6:j3.

    Raises
    ------
    ValueError
        If its kind is not modelled.
    """
    kind, *on = text.split(":")
    if kind and kind not in KINDS:
        raise ValueError(f"dependency {kind} is not modelled; use one of {', '.join(KINDS)}")
    return tuple((kind, name) for name in on)


def _instant(text: str, otherwise: int) -> int:
    return round(float(text) * 1000) if text else otherwise


def _rows(path: Path, *, missing_ok: bool = False) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            return []
        raise TraceError(f"{path}: cannot be read ({error})") from None


def log_lines(folder: Path) -> list[tuple[str, str]]:
    """Time stamps and texts of the controller's log."""
    for name, opener in (("slurmctld.log.gz", gzip.open), ("slurmctld.log", open)):
        if (folder / name).exists():
            with opener(folder / name, "rt", encoding="utf-8", errors="replace") as file:
                return [(found[1], found[2]) for line in file if (found := _LINE.match(line))]
    raise TraceError(f"{folder}: no slurmctld.log or slurmctld.log.gz; keep the controller's log")

"""Reading exports of Slurm's accounting: what `sacct --parsable2` prints.

The first line names the columns; any order and any further columns will do. One job of the workload is one
line that stands for an allocation which ran: steps, jobs that never started and repeated lines are left
out, and all is counted. Conventions:

- *Job arrays*: each task is a job. A line of tasks that have not started (`123_[5-9]`) is left out.
- *Jobs cancelled before they started* are left out, or wait until their End (`cancelled="wait"`). They have
  the status 5, no run time, and a wait until then; `gridsched.clean` gives them a run time.
- *Dependencies* are those of the column Dependency, else what the command line of SubmitLine asks for.
- *Heterogeneous jobs*: each component (`123+1`) is a job; `component_of` says which belong together.
- *Command lines* (SubmitLine) say in which partitions a job might run (`-p a,b`), how many tasks of its
  array at once (`%4`), and whether it asked for whole nodes (`--exclusive`), for a shorter time limit
  (`--time-min`) or for licences, which ReqTRES may have too. A list of partitions without the one in which
  the job ran is left aside; of jobs without nodes the column Partition may be such a list.
- *Requeued jobs*: each run is a job of its own, submitted when it was put back (`--duplicates` shows all).
- *Processors* are the CPUs that were allocated, or the nodes; what a job held counts, not what it asked for.
- *Memory, GPUs and nodes* are those of AllocTRES, or of ReqTRES where a line has no AllocTRES; memory is
  shared out evenly among the processors, in whole KiB, rounded down.
- *Run time* is `Elapsed`, in which the time of suspension does not count: a suspended job releases its CPUs.
- *Running jobs* are taken to end when the export was made.
- *Times* are what the clock of the site showed (`time_zone`), or Unix times (SLURM_TIME_FORMAT=%s), which are
  never ambiguous. A time that the clock showed twice is the first, unless a job would then start before it
  was submitted, end before it started, or run for another time than is recorded.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, TraceError, check_choice
from gridsched.traces._delimited import read_lines, without_mark
from gridsched.traces._sacct_table import COMMAND, LISTS, NAMED, TIMES, WAITING_TASKS, AccountingTable
from gridsched.traces._slurm_dependencies import dependencies_of
from gridsched.traces._slurm_nodes import has_nodes
from gridsched.traces._slurm_values import (
    UNKNOWN_TIME,
    SlurmTimes,
    leading_numbers,
    per_processor,
    to_unix,
    unique_numbers,
)
from gridsched.traces.cleaning import CANCELLED
from gridsched.workloads.clock import named_zone
from gridsched.workloads.dependencies import circle, singleton_dependencies
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

__all__ = ["COMMAND", "AccountingLog", "is_sacct", "read_accounting", "read_sacct"]

Unit = Literal["cpus", "nodes"]
Beginning = Literal["submit", "eligible"]
Cancelled = Literal["recorded", "wait"]

_STATUS = {
    "COMPLETED": 1,
    "CANCELLED": CANCELLED,
    "RUNNING": UNKNOWN,
    "SUSPENDED": UNKNOWN,
    "REQUEUED": UNKNOWN,
}
_FAILED = 0
_LEFT_QUEUE = ("CANCELLED", "DEADLINE")
_ENDED_IN_QUEUE = (*_LEFT_QUEUE, "REVOKED")
NO_NAME = "runs one at a time with jobs of one name, which the export lacks (JobName)"
"""What is said of singletons without names of jobs."""

_SUFFIXES = re.compile(r"(\.(txt|csv|psv|log|out|sacct|gz|zst|bz2))+$", re.IGNORECASE)


COMMAND_LINE = "SubmitLine"
"""Column of the command lines."""

WITHOUT_COMMAND_LINES = "no such column: what jobs request beside their size is not known"


@dataclass(frozen=True, kw_only=True)
class AccountingLog:
    """A workload from Slurm's accounting with the names that it has numbers for, and what else the site did.

    Parameters
    ----------
    workload : Workload
        The jobs that ran, in order of submission, and those that were cancelled before, where they are asked
        for. User, group (of the column Account, else Group), queue (of QOS) and partition are indices of
        `names`, and so are constraints.
    names : mapping of str to tuple of str
        Names of "user", "group", "queue", "partition" and "constraint" by number; empty where there is no
        such column. Also lists of "partitions" and "licences", where jobs ask for some.
    identifiers : bytes[n]
        Job ID of each job as sacct writes it, like 123_4.
    flags : mapping of str to bool[n]
        Jobs that something held for which a simulation does not know, such as "suspended".
    suspended : int64[n]
        Seconds for which each job was suspended.
    states : tuple of str
        Names of the states in which jobs ended, such as FAILED.
    state : int64[n]
        Index of the state of each job.
    idle_states : mapping of str to int
        Lines of jobs that are not in the workload, most of which never ran, by state; array tasks that wait
        in one line are not among them.
    gpus : int64[n]
        GPUs that each job held; -1 where no column has resources.
    absent : mapping of str to bytes[...]
        Job IDs of the lines that are no job of the workload, by reason.
    without_zone : bool
        Whether the times are those of a clock in a zone that was not named.
    without_command_lines : bool
        Whether this is an export without the column SubmitLine.
    node_lists : tuple of str
        Lists of nodes such as cn[001-004], see `gridsched.traces.infer_nodes`; empty without such a column.
    node_list : int64[n]
        Index of the list of each job; -1 for one that had no nodes.
    """

    workload: Workload
    names: Mapping[str, tuple[str, ...]]
    identifiers: NDArray[np.bytes_]
    flags: Mapping[str, NDArray[np.bool_]]
    suspended: NDArray[np.int64]
    states: tuple[str, ...]
    state: NDArray[np.int64]
    idle_states: Mapping[str, int]
    gpus: NDArray[np.int64]
    absent: Mapping[str, NDArray[np.bytes_]]
    without_zone: bool = False
    without_command_lines: bool = False
    node_lists: tuple[str, ...] = ()
    node_list: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def rows(self, workload: Workload) -> NDArray[np.int64]:
        """Index in this log of each job of a part of its workload."""
        order = np.argsort(self.workload.job_number, kind="stable")
        return order[np.searchsorted(self.workload.job_number, workload.job_number, sorter=order)]


def is_sacct(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like an export of sacct rather than a log in the Standard Workload Format."""
    try:
        _, text = next(read_lines(Path(path), None, hashlib.sha256()))
    except (StopIteration, TraceError):
        return False
    first = without_mark(text).lstrip(b"\r\n")[:4096].partition(b"\n")[0]
    return any(name in first.lower().split(b";")[0] for name in (b"jobid", b"sacct", b"|"))


def read_sacct(
    path: str | os.PathLike[str],
    *,
    time_zone: str | None = None,
    unit: Unit = "cpus",
    begin: Beginning = "submit",
    cancelled: Cancelled = "recorded",
    name: str | None = None,
    max_bytes: int | None = None,
) -> Workload:
    r"""Workload of an export of Slurm's accounting; see `read_accounting`, which also gives the names.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> rows = ["JobIDRaw|JobID|User|Submit|Start|End|State|AllocCPUS|ReqCPUS|Timelimit|NodeList|Partition"]
    >>> rows += [
    ...     f"{n}|{n}|ada|{day}T0{n}:00:00|{day}T0{n}:10:00|{day}T0{n}:40:00|COMPLETED|8|8|01:00:00|n{n}|all"
    ...     for n, day in ((1, "2024-05-06"), (2, "2024-05-06"))
    ... ]
    >>> _ = Path("jobs.txt").write_text("\n".join(rows))
    >>> gs.read_sacct("jobs.txt", time_zone="Europe/Rome").wait_time
    array([600, 600])
    """
    return read_accounting(
        path,
        time_zone=time_zone,
        unit=unit,
        begin=begin,
        cancelled=cancelled,
        name=name,
        max_bytes=max_bytes,
    ).workload


def read_accounting(
    path: str | os.PathLike[str],
    *,
    time_zone: str | None = None,
    unit: Unit = "cpus",
    begin: Beginning = "submit",
    cancelled: Cancelled = "recorded",
    name: str | None = None,
    max_bytes: int | None = None,
) -> AccountingLog:
    r"""Read what `sacct --parsable2` printed, plain or compressed; `COMMAND` prints all that is used.

    Parameters
    ----------
    path : path-like
        The export, or several behind one another.
    time_zone : str, optional
        IANA name of the site's zone, such as Europe/Rome. Without it the times are read as if they were
        UTC, so that waits over a change of clocks are an hour wrong; the notes say so.
    unit : {"cpus", "nodes"}
        What a processor of the workload is.
    begin : {"submit", "eligible"}
        When a job enters the queue: when it was submitted, or when it became eligible (its dependencies
        were met, its begin time came, it was released). With the second no job waits for another one.
    cancelled : {"recorded", "wait"}
        Treatment of jobs that were cancelled before they started. As they are recorded, they never ran
        and are left out. Else they are jobs with the status 5, an unknown run time and their End as the time
        at which their users gave up, for `gridsched.clean(..., cancelled="wait")`.
    name : str, optional
        Name of the workload; the file name without suffixes if not given.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, or a value is none; the message names the line.
    ConfigurationError
        If the time zone or an option is unknown.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> rows = ["JobIDRaw|JobID|User|Submit|Start|End|State|AllocCPUS|ReqCPUS|Timelimit|NodeList|Partition"]
    >>> rows += [
    ...     f"{n}|{n}|ada|{day}T0{n}:00:00|{day}T0{n}:10:00|{day}T0{n}:40:00|COMPLETED|8|8|01:00:00|n{n}|all"
    ...     for n, day in ((1, "2024-05-06"), (2, "2024-05-06"))
    ... ]
    >>> _ = Path("jobs.txt").write_text("\n".join(rows))
    >>> from gridsched.traces import read_accounting
    >>> read_accounting("jobs.txt", time_zone="Europe/Rome").names["user"]
    ('ada',)
    """
    check_choice("unit", unit, get_args(Unit))
    check_choice("begin", begin, get_args(Beginning))
    check_choice("cancelled", cancelled, get_args(Cancelled))
    file = Path(path)
    zone = zone_of(time_zone)
    table = AccountingTable(file)
    digest = hashlib.sha256()
    for line, text in read_lines(file, max_bytes, digest):
        table.add(line, text)
    columns = table.columns(needed=unit)
    log = log_of(
        Records(columns, table.names(), zone, unit),
        file,
        begin,
        cancelled,
        left_out=table.left_out,
        waiting_tasks=table.waiting_tasks,
        name=_SUFFIXES.sub("", file.name) if name is None else name,
        time_zone=time_zone or "UTC",
        checksum=digest.hexdigest(),
    )
    return replace(log, without_command_lines=not table.has("command_line"))


def log_of(
    records: Records,
    file: Path,
    begin: Beginning = "submit",
    cancelled: Cancelled = "recorded",
    *,
    left_out: Mapping[str, int] | None = None,
    waiting_tasks: Sequence[bytes] = (),
    **facts: Any,
) -> AccountingLog:
    """Log of the records that are jobs which ran; the others are counted beside what was left out before.

    Raises
    ------
    TraceError
        If no job ran, or jobs depend on each other in a circle.
    """
    keep, absent = records.selection(cancelled)
    total = add_counts(left_out or {}, {reason: len(lines) for reason, lines in absent.items()})
    if not (keep & ~records.left_queue).any():
        counts = ", ".join(f"{count:,} {reason}" for reason, count in total.items())
        raise TraceError(f"{file}: no job that ran ({counts}); export another time")
    absent = {**absent, WAITING_TASKS: np.array(waiting_tasks, np.bytes_)}
    return records.log(keep, begin, absent, file, left_out=total, **facts)


def zone_of(name: str | None) -> ZoneInfo | None:
    return None if name is None else named_zone(name, error=ConfigurationError)


class Records:
    """Lines of an export that may be jobs: which ran, when, how long and on how many processors."""

    def __init__(
        self,
        columns: dict[str, NDArray[Any]],
        names: dict[str, tuple[str, ...]],
        zone: ZoneInfo | None,
        unit: Unit,
    ) -> None:
        self._columns = columns
        self._names = names
        self._lines = len(columns["line"])
        self._without_zone = zone is None and bool(columns["submit local"].any())
        self._suspended = np.maximum(self._get("suspended", 0), 0)
        elapsed = self._get("elapsed_seconds", UNKNOWN_TIME)
        self._elapsed = np.where(elapsed < 0, self._get("elapsed", UNKNOWN_TIME), elapsed)
        self._allocated = self._get(unit, UNKNOWN)
        self._requested = self._get(f"requested_{unit}", UNKNOWN)
        self._set_times(zone)
        between = np.where(
            (self._end >= 0) & (self._start >= 0), self._end - self._start - self._suspended, -1
        )
        self._duration = np.where(self._elapsed >= 0, self._elapsed, between)
        self._started = self._has_started()
        stopped = self._in_state(*_LEFT_QUEUE)
        self.left_queue = ~self._started & stopped & (self._submit >= 0) & (self._end >= self._submit)
        """Lines of jobs that left the queue before they started, at a known time."""

    def _get(self, key: str, default: int) -> NDArray[np.int64]:
        column = self._columns.get(key)
        return np.full(self._lines, default) if column is None else column

    def _set_times(self, zone: ZoneInfo | None) -> None:
        """Unix times; see the conventions of the module for those that the clock showed twice."""
        clock = {}
        for key in TIMES:
            local = self._columns.get(f"{key} local", np.zeros(self._lines, np.bool_))
            seconds = self._get(key, UNKNOWN_TIME)
            clock[key] = to_unix(SlurmTimes(seconds, local, np.zeros_like(local)), zone)
        submit, eligible, start, end = (clock[key] for key in TIMES)
        self._submit = submit.first
        self._eligible = np.where(eligible.first < self._submit, eligible.second, eligible.first)
        self._start = np.where(start.first < self._submit, start.second, start.first)
        self._end = np.where(end.first < self._start, end.second, end.first)
        lasted = self._elapsed + self._suspended
        known = (self._elapsed >= 0) & (self._start >= 0) & (self._end >= 0)
        for starts, ends in (
            (start.first, end.second),
            (start.second, end.first),
            (start.second, end.second),
        ):
            wrong = abs(self._end - self._start - lasted)
            better = known & (starts >= self._submit) & (abs(ends - starts - lasted) < wrong)
            self._start = np.where(better, starts, self._start)
            self._end = np.where(better, ends, self._end)
        self._ambiguous = np.any([times.first != times.second for times in clock.values()], axis=0)
        self._skipped = np.any([times.skipped for times in clock.values()], axis=0)

    def _in_state(self, *states: str) -> NDArray[np.bool_]:
        """Lines of jobs in one of these states."""
        codes = [code for code, name in enumerate(self._names["state"]) if name in states]
        return np.isin(self._columns["state"], codes)

    def _has_started(self) -> NDArray[np.bool_]:
        """Lines of jobs that started."""
        waiting, stopped = self._in_state("PENDING"), self._in_state(*_ENDED_IN_QUEUE)
        started: NDArray[np.bool_] = (self._start >= 0) & ~waiting & (self._allocated != 0)
        # NNodes does not say what was allocated: of a job that never ran it is what it asked for.
        held = [self._get(key, UNKNOWN) for key in ("cpus", "allocated_nodes")]
        started &= np.all([column != 0 for column in held], axis=0)
        if not any((column > 0).any() for column in held):
            # Where it is not known what was allocated, a job that ended as it started never did.
            started &= ~(stopped & (self._duration <= 0))
        return started

    def selection(self, cancelled: Cancelled) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.bytes_]]]:
        """Lines that are jobs, and job IDs of the others, by the first reason that holds."""
        keep = np.ones(self._lines, np.bool_)
        absent: dict[str, NDArray[np.bytes_]] = {}
        for reason, lines in self._unfit(self.left_queue & (cancelled == "wait")):
            absent[reason] = self._columns["identifier"][keep & lines]
            keep &= ~lines
        return keep, absent

    def _unfit(self, gave_up: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Reasons to leave lines out, with the lines for which they hold; some jobs gave up and are kept."""
        yield "repeated line of a job", self._repeated()
        yield "no submit time", self._submit < 0
        never = ~self._started & ~gave_up
        yield "waiting when the export was made", never & self._in_state("PENDING")
        yield "cancelled before it started", never & self._in_state(*_ENDED_IN_QUEUE)
        yield "never started", never
        yield "still running, for an unknown time", (self._end < 0) & (self._duration < 0)
        yield "ends before it starts", (self._duration < 0) & ~gave_up
        yield "no size", self._processors() <= 0

    def _repeated(self) -> NDArray[np.bool_]:
        """Lines that a later one replaces: job ID and submit time together name one run of a job.

        Tasks of an array that all have the ID of the array are distinguished by their number in the file.
        """
        identifiers = self._columns["identifier"].astype(object)
        task = self._get("unnamed task", 0)
        keys = pd.DataFrame({"identifier": identifiers, "submit": self._submit, "task": task})
        return np.asarray(keys.duplicated(keep="last"))

    def _processors(self) -> NDArray[np.int64]:
        """What a job held, else what it asked for."""
        return np.where(self._allocated > 0, self._allocated, self._requested)

    def log(
        self,
        keep: NDArray[np.bool_],
        begin: Beginning,
        absent: Mapping[str, NDArray[np.bytes_]],
        file: Path,
        **facts: Any,
    ) -> AccountingLog:
        """The jobs of the lines that are kept, in order of submission."""
        submit, late = self._submit, self._eligible > self._submit
        gave_up = self.left_queue
        left = np.where(gave_up, self._end, self._start)
        usable = late & (self._eligible <= left)
        if begin == "eligible":
            submit = np.where(usable, self._eligible, submit)
        jobs = np.flatnonzero(keep)
        jobs = jobs[np.lexsort((self._columns["number"][jobs], submit[jobs]))]
        numbers, renumbered = unique_numbers(self._columns["number"][jobs])
        early = (~gave_up & (self._start < submit))[jobs]
        still = (self._end < 0)[jobs]
        origin = int(submit[jobs[0]])
        limit = self._get("limit_minutes", UNKNOWN_TIME)
        limit = np.where(self._get("limit", UNKNOWN_TIME) >= 0, self._get("limit", UNKNOWN_TIME), 60 * limit)
        by_state = np.array([_STATUS.get(state, _FAILED) for state in self._names["state"]])
        status = np.where(gave_up, CANCELLED, by_state[self._columns["state"]])
        named: dict[str, Any] = {key: self._get(key, UNKNOWN)[jobs] for key in NAMED}
        named["constraint"] = self._constraints(jobs)
        named |= self._requests(jobs)
        if gave_up[jobs].any():
            named["gives_up_time"] = np.where(gave_up, self._end - origin, UNKNOWN)[jobs]
        workload = Workload(
            job_number=numbers,
            submit_time=submit[jobs] - origin,
            wait_time=np.maximum(left - submit, 0)[jobs],
            run_time=np.where(gave_up, UNKNOWN, self._duration)[jobs],
            allocated_processors=self._allocated[jobs],
            requested_processors=self._processors()[jobs],
            requested_time=np.where(limit > 0, limit, UNKNOWN)[jobs],
            status=status[jobs],
            **named,
            **self._asked(jobs),
            unix_start_time=origin,
            repaired=add_counts(
                {},
                {
                    "still running, taken to end at the export": int(np.count_nonzero(still)),
                    "started before it was submitted, wait taken as 0": int(np.count_nonzero(early)),
                    "job number of another job, made unique": renumbered,
                },
            ),
            **facts,
        )
        flags = {name: flag[jobs] for name, flag in self._flags(late).items() if flag[jobs].any()}
        if begin == "submit":
            workload = self._with_dependencies(workload, jobs, file)
        return AccountingLog(
            workload=workload,
            names={key: self._names.get(key, ()) for key in NAMED}
            | {key: self._names[key] for key in LISTS if named.get(key) is not None},
            identifiers=self._columns["identifier"][jobs],
            flags=flags,
            suspended=self._suspended[jobs],
            states=self._names["state"],
            state=self._columns["state"][jobs],
            idle_states=self._idle_states(keep),
            gpus=self._get("gpus", UNKNOWN)[jobs],
            absent={reason: lines for reason, lines in absent.items() if len(lines)},
            without_zone=self._without_zone,
            node_lists=self._names.get("node_list", ()),
            node_list=self._node_list()[jobs],
        )

    def _constraints(self, jobs: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Number of the constraint of each job, -1 without one; nothing where no job has one."""
        empty = [code for code, text in enumerate(self._names.get("constraint", ())) if not text.strip()]
        codes = self._get("constraint", UNKNOWN)[jobs]
        codes = np.where(np.isin(codes, empty), UNKNOWN, codes)
        return codes if (codes >= 0).any() else None

    def _requests(self, jobs: NDArray[np.int64]) -> dict[str, Any]:
        """Columns of what command lines and job IDs tell, those that say something of any job."""
        base, _ = leading_numbers(self._columns["identifier"])
        tasks, parts = self._columns["array task"], self._columns["component"]
        asked = {name: self._get(name, 0) for name in ("tasks", "least", "exclusive", *LISTS)}
        columns = {
            "array": np.where(tasks, base, UNKNOWN),
            "array_limit": np.where(tasks & (asked["tasks"] > 0), asked["tasks"], UNKNOWN),
            "component_of": np.where(parts, base, UNKNOWN),
            "whole_nodes": np.where(asked["exclusive"] > 0, 1, UNKNOWN),
            "least_time": np.where(asked["least"] > 0, asked["least"], UNKNOWN),
            **{name: np.where(asked[name] > 0, asked[name], UNKNOWN) for name in LISTS},
        }
        lists, names = self._names.get("partitions", ()), self._names.get("partition", ())
        ran = self._get("partition", UNKNOWN)
        for code in np.unique(columns["partitions"][columns["partitions"] >= 0]).tolist():
            listed = [number for number, name in enumerate(names) if name in lists[code].split(",")]
            columns["partitions"][(columns["partitions"] == code) & ~np.isin(ran, listed)] = UNKNOWN
        known = {name: column[jobs] for name, column in columns.items()}
        return {name: column for name, column in known.items() if (column >= 0).any()}

    def _node_list(self) -> NDArray[np.int64]:
        """Index of the list of nodes of each line; -1 where it names none."""
        texts = self._names.get("node_list", ())
        named = np.array([has_nodes(text.encode()) for text in texts] or [False])
        code = self._get("node_list", 0)
        return np.where(named[code], code, UNKNOWN)

    def _with_dependencies(self, workload: Workload, jobs: NDArray[np.int64], file: Path) -> Workload:
        """The workload with what its jobs wait for, where the export tells."""
        if "dependency" not in self._columns:
            return workload
        texts = [text.encode("latin-1", "replace") for text in self._names["dependency"]]
        codes = self._columns["dependency"][jobs]
        table, single, counts = dependencies_of(
            [texts[code] for code in codes.tolist()], self._columns["identifier"][jobs], workload.job_number
        )
        if single.any() and "executable" in self._columns:
            names = replace(workload, executable=self._columns["executable"][jobs])
            table = np.concatenate([table, singleton_dependencies(names, single)])
        elif single.any():
            counts[NO_NAME] = int(single.sum())
        around = circle(table)
        if around:
            lines = ", ".join(str(line) for line in self._columns["line"][jobs[around]].tolist()[:8])
            raise TraceError(
                f"{file}:{self._columns['line'][jobs[around[0]]]}: a circle of dependencies (lines {lines}); "
                "fix one of these lines, or leave out the column"
            )
        repaired = add_counts(workload.repaired, counts)
        return replace(workload, dependencies=table if len(table) else None, repaired=repaired)

    def _asked(self, jobs: NDArray[np.int64]) -> dict[str, Any]:
        """Columns of memory, nodes and GPUs, those that say something of any job."""
        columns = {
            "requested_memory": per_processor(self._get("asked memory", UNKNOWN), self._processors()),
            "requested_nodes": self._get("asked nodes", UNKNOWN),
            "requested_gpus": self._get("asked gpus", UNKNOWN),
        }
        known = {name: np.where(column > 0, column, UNKNOWN)[jobs] for name, column in columns.items()}
        return {name: column for name, column in known.items() if (column > 0).any()}

    def _idle_states(self, keep: NDArray[np.bool_]) -> dict[str, int]:
        """Lines that are no jobs of the workload and stand for a job of their own, by state."""
        counts = np.bincount(self._columns["state"][~keep & ~self._repeated()])
        return {self._names["state"][code]: int(count) for code, count in enumerate(counts) if count}

    def _flags(self, late: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
        """Lines for which something held that a simulation does not know."""
        none = np.zeros(self._lines, np.bool_)
        lasted = abs(self._end - self._start - self._suspended - self._duration)
        asked = (self._requested > 0) & (self._allocated > self._requested)
        return {
            "array task": self._columns["array task"],
            "component of a heterogeneous job": self._columns["component"],
            "eligible after submission": late,
            "suspended": self._suspended > 0,
            "requeued": self._in_state("REQUEUED"),
            "preempted": self._in_state("PREEMPTED"),
            "resized": self._in_state("RESIZING"),
            "node failure": self._in_state("NODE_FAIL", "BOOT_FAIL"),
            "out of memory": self._in_state("OUT_OF_MEMORY"),
            "generic resources": self._columns.get("resources", none),
            "reservation": self._columns.get("reservation", none),
            "more processors than requested": asked,
            "elapsed time other than from start to end": (self._end >= 0) & (lasted > 1) & ~self.left_queue,
            "time that the clock showed twice": self._ambiguous,
            "time that the clock never showed": self._skipped,
        }

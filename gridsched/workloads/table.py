"""The workload: jobs as columns, with what is known of the log they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.columns import TIMES, numbers
from gridsched.workloads.dependencies import check_dependencies, select_dependencies

if TYPE_CHECKING:
    import pandas as pd

SWF_FIELDS: tuple[str, ...] = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
"""Names of the 18 fields of the Standard Workload Format, version 2.2, in file order."""

NOTICES: tuple[str, ...] = ("response_limit", "returns_at", "away_days")
"""Further columns that say when users notice that jobs have ended; the first one needs the others."""

EXTRA_FIELDS: tuple[str, ...] = (
    "home",
    "deadline",
    "reserved_start",
    "gives_up_time",
    "requested_nodes",
    "requested_gpus",
    "gpu_share",
    "constraint",
    "array",
    "array_limit",
    "partitions",
    "licences",
    "whole_nodes",
    "least_time",
    "component_of",
    "nice",
    *NOTICES,
    "recorded_submit",
)
"""Columns beside those of the Standard Workload Format, which a workload need not have."""

UNKNOWN = -1
"""What the Standard Workload Format writes for a value that is not known."""

_EMPTY: NDArray[Any] = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Parallel jobs in the columns of the Standard Workload Format (SWF).

    All columns have one entry a job; times are seconds, submit times since `unix_start_time`. A
    column that is not given is filled with -1 (unknown), job numbers with 1, 2, 3 ... Columns are
    int64, except where a log has fractions (then float64; in the archive only average CPU times).
    Columns of times may be given as timedelta64, which becomes seconds.

    Parameters
    ----------
    name : str
        Short name of the log or model, used in figures and file names.
    processors_available : int, optional
        Processors of the cluster (`MaxProcs` of the header, else `MaxNodes`).
    unix_start_time : int, optional
        Unix time of submit time 0.
    time_zone : str, optional
        IANA name of the log's time zone.
    header : tuple of str
        Comment lines of the log, without line ends.
    acknowledgement : str
        Whom the log asks to acknowledge.
    checksum : str
        SHA-256 of the uncompressed log, or of the parameters of a synthetic workload.
    left_out, repaired : mapping of str to int
        Number of jobs left out or changed since the log was read, by reason.
    home : int64[n], optional
        Index of the cluster where each job is submitted, -1 for none; for workloads of several clusters.
    deadline : int64[n], optional
        When each job should have ended, on the clock of the submit times.
    reserved_start : int64[n], optional
        When each job asks to start, on the clock of the submit times; -1 for as soon as possible.
    gives_up_time : int64[n], optional
        When the user of each job cancels it if it still waits, by the clock of submit times; -1 for never.
    requested_nodes : int64[n], optional
        Nodes over which each job spreads its processors and GPUs evenly; -1 for any number.
    requested_gpus : int64[n], optional
        Whole GPUs of each job; -1 for none.
    gpu_share : int64[n], optional
        Thousandths of one GPU that each job asks for beside no whole one; -1 for none.
    constraint : int64[n], optional
        Number of what each job asks of the features of its nodes, see `Cluster.constraints`; -1 for nothing.
    array : int64[n], optional
        Number of the job array that each job is a task of; -1 for none.
    array_limit : int64[n], optional
        Most tasks of its array that may run at once, the same for all of one array; -1 for any number.
    partitions : int64[n], optional
        Number of the list of partitions in any of which each job may run, see `read_slurm_site`; -1 for its
        partition alone.
    licences : int64[n], optional
        Number of the licences that each job holds while it runs, see `read_slurm_site`; -1 for none.
    whole_nodes : int64[n], optional
        1 for jobs whose nodes run nothing else (`--exclusive` of Slurm); -1 for the others.
    least_time : int64[n], optional
        Shortest time limit [s] with which each job may start (`--time-min` of Slurm); -1 for its own limit.
    component_of : int64[n], optional
        Number of the heterogeneous job of which each is a component; -1 for none.
    nice : int64[n], optional
        What each job takes off its priority where there are priorities (`--nice` of Slurm); -1 for nothing.
    response_limit : int64[n], optional
        Seconds from when each job is submitted, or its dependencies are met, to its end from which on its
        user has gone away: what depends on its end does so once the user is back. -1 for any number.
    returns_at : int64[n], optional
        An instant at the time of the day at which the user is back then: the first such time from the end on.
    away_days : int64[n], optional
        Full days by which that is later.
    recorded_submit : int64[n], optional
        Submit times of the log, where others stand for when jobs could be submitted first.
    dependencies : DEPENDENCY[...], optional
        Which jobs wait for which, see `gridsched.workloads.dependencies`.

    Raises
    ------
    WorkloadError
        If columns differ in length, or hold what are no numbers: points in time, texts, labels that are NaN.
    """

    name: str
    job_number: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    submit_time: NDArray[Any]
    wait_time: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    run_time: NDArray[Any]
    allocated_processors: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    average_cpu_time: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    used_memory: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    requested_processors: NDArray[Any]
    requested_time: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    requested_memory: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    status: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    user: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    group: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    executable: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    queue: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    partition: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    preceding_job: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    think_time: NDArray[Any] = field(default_factory=lambda: _EMPTY)
    processors_available: int | None = None
    unix_start_time: int | None = None
    time_zone: str | None = None
    header: tuple[str, ...] = ()
    acknowledgement: str = ""
    checksum: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    home: NDArray[Any] | None = None
    deadline: NDArray[Any] | None = None
    reserved_start: NDArray[Any] | None = None
    gives_up_time: NDArray[Any] | None = None
    requested_nodes: NDArray[Any] | None = None
    requested_gpus: NDArray[Any] | None = None
    gpu_share: NDArray[Any] | None = None
    constraint: NDArray[Any] | None = None
    array: NDArray[Any] | None = None
    array_limit: NDArray[Any] | None = None
    partitions: NDArray[Any] | None = None
    licences: NDArray[Any] | None = None
    whole_nodes: NDArray[Any] | None = None
    least_time: NDArray[Any] | None = None
    component_of: NDArray[Any] | None = None
    nice: NDArray[Any] | None = None
    response_limit: NDArray[Any] | None = None
    returns_at: NDArray[Any] | None = None
    away_days: NDArray[Any] | None = None
    recorded_submit: NDArray[Any] | None = None
    dependencies: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        jobs = len(self.submit_time)
        for name in SWF_FIELDS:
            column = getattr(self, name)
            if column is _EMPTY and jobs:
                column = np.arange(1, jobs + 1) if name == "job_number" else np.full(jobs, UNKNOWN)
            column = self._numbers(name, column)
            if column.shape != (jobs,):
                raise WorkloadError(
                    f"{self.name}: column {name} has shape {column.shape}, submit_time has {jobs} jobs"
                )
            object.__setattr__(self, name, column)
        for name, given in self.extra.items():
            column = self._numbers(name, given)
            if column.shape != (jobs,) or column.dtype.kind not in "iu":
                raise WorkloadError(
                    f"{self.name}: column {name} has shape {column.shape} and type {column.dtype}; "
                    f"give whole numbers for each of the {jobs} jobs"
                )
            object.__setattr__(self, name, column)
        if self.dependencies is not None:
            check_dependencies(self.name, self.dependencies, jobs)

    def _numbers(self, name: str, given: Any) -> NDArray[Any]:
        try:
            return numbers(name, given)
        except WorkloadError as error:
            raise WorkloadError(f"{self.name}: {error}") from None

    def __len__(self) -> int:
        return len(self.submit_time)

    def __repr__(self) -> str:
        lines = [f"Workload {self.name!r}: {', '.join(_facts(self))}"]
        for what, counts in (("left out", self.left_out), ("repaired", self.repaired)):
            if counts:
                listed = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
                lines.append(f"  {what}: {listed}")
        if self.extra:
            lines.append(f"  also: {', '.join(self.extra)}")
        return "\n".join(lines)

    @classmethod
    def from_dataframe(
        cls,
        frame: pd.DataFrame,
        *,
        columns: Mapping[str, str] | None = None,
        ignore: bool = False,
        name: str | None = None,
        processors_available: int | None = None,
        unix_start_time: int | None = None,
        time_zone: str | None = None,
    ) -> Workload:
        """Workload of a table with one row a job.

        Columns have the names of `SWF_FIELDS` and `EXTRA_FIELDS`, or `processors` for `requested_processors`.
        Needed are `submit_time`, `run_time` and processors, requested or allocated. Missing values (None,
        NaN, NaT, NA) are unknown, -1. Nothing else is cleaned, see `gridsched.clean`.

        Parameters
        ----------
        frame : pandas.DataFrame
            Times are numbers of seconds or lengths of time (Timedelta). Submit times, deadlines and requested
            starts may be points in time (Timestamp), with a time zone or of the clock of `time_zone`.
        columns : mapping of str to str, optional
            The name here of columns that have another name in the frame, as in `DataFrame.rename`.
        ignore : bool
            Whether columns of other names are left aside rather than refused.
        name : str, optional
            Name of the workload; "workload" if not given.
        processors_available : int, optional
            Processors of the cluster.
        unix_start_time : int, optional
            Unix time of submit time 0; of the first submission, if submit times are points in time.
        time_zone : str, optional
            IANA name; by default that of the submit times, where they have one.

        Returns
        -------
        Workload
            Jobs in the order of the rows. What is not given is taken from a frame that `to_dataframe` made.

        Raises
        ------
        WorkloadError
            If a column is missing, unknown or given twice, or a value cannot be read: the message names
            column, type, row and what to do.
        """
        from gridsched.workloads.frames import from_dataframe

        return from_dataframe(
            frame,
            columns=columns or {},
            ignore=ignore,
            name=name,
            processors_available=processors_available,
            unix_start_time=unix_start_time,
            time_zone=time_zone,
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Table with one row a job: the 18 columns, in SWF order, and the extra ones that there are.

        All other fields are in the attribute `attrs` of the table, where `from_dataframe` finds them, except
        for dependencies: these name places of jobs, which change with the rows of a table.
        """
        from gridsched.workloads.frames import to_dataframe

        return to_dataframe(self)

    @property
    def processors(self) -> NDArray[np.int64]:
        """Processors of each job: requested, else allocated; -1 where neither is known."""
        requested = np.where(
            self.requested_processors > 0, self.requested_processors, self.allocated_processors
        )
        return np.where(requested > 0, requested, UNKNOWN).astype(np.int64)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The 18 columns by name, in SWF order; not copied."""
        return {name: getattr(self, name) for name in SWF_FIELDS}

    def moved_times(self, delta: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Extra columns that are times, each moved by int64[n] seconds; unknown times stay unknown."""
        return {
            name: np.where(column == UNKNOWN, UNKNOWN, column + delta)
            for name, column in self.extra.items()
            if name in TIMES
        }

    @property
    def extra(self) -> dict[str, NDArray[Any]]:
        """The columns beside those of SWF that the workload has; not copied."""
        given = {name: getattr(self, name) for name in EXTRA_FIELDS}
        return {name: column for name, column in given.items() if column is not None}

    def select(self, jobs: NDArray[Any] | slice, **changes: Any) -> Workload:
        """Workload of the jobs that a mask, index array or slice picks; `changes` replace other fields."""
        chosen = {name: column[jobs] for name, column in {**self.columns, **self.extra}.items()}
        if self.dependencies is not None:
            chosen["dependencies"] = select_dependencies(self.dependencies, np.arange(len(self))[jobs])
        return replace(self, **{**chosen, **changes})

    def equals(self, other: Workload) -> bool:
        """Whether every column, value by value, and every other field is the same."""
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))


def _facts(workload: Workload) -> list[str]:
    """What there is to say of a workload in one line."""
    jobs = len(workload)
    facts = [f"{jobs:,} {'job' if jobs == 1 else 'jobs'}"]
    if not jobs:
        return facts
    # A log that is not clean may have any numbers.
    with np.errstate(all="ignore"):
        first, last = float(workload.submit_time.min()), float(workload.submit_time.max())
        size = workload.processors
        run_time = workload.run_time.astype(np.float64)
        work = float(np.sum(size * run_time, where=(size > 0) & (run_time >= 0)))
    facts[0] += f" submitted over {_duration(last - first)}"
    if workload.unix_start_time is not None:
        facts[0] += f" from {_date(workload.unix_start_time + first, workload.time_zone)}"
    if (size > 0).any():
        smallest, largest = int(size[size > 0].min()), int(size.max())
        facts.append(f"{f'{smallest:,} to ' if smallest < largest else ''}{largest:,} processors")
    if workload.processors_available:
        facts.append(f"cluster of {workload.processors_available:,}")
        if last > first:
            facts.append(f"load {work / (workload.processors_available * (last - first)):.3g}")
    return facts


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:{',.1f' if seconds < 1e12 else '.3g'}} {unit}"
    return f"{seconds:g} s"


def _date(unix: float, time_zone: str | None) -> str:
    try:
        return f"{datetime.fromtimestamp(unix, ZoneInfo(time_zone or 'UTC')):%Y-%m-%d}"
    except (KeyError, ValueError, OverflowError, OSError):
        return f"Unix time {unix:.0f}" if abs(unix) < 1e12 else f"Unix time {unix:g}"


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) != isinstance(right, np.ndarray):
        return False
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return bool(left == right)


def add_counts(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Sum of two tables of counts, without the entries that are zero."""
    total = {reason: counts.get(reason, 0) + more.get(reason, 0) for reason in (*counts, *more)}
    return {reason: count for reason, count in total.items() if count}

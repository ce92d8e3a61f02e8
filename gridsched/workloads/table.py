"""The workload: jobs as columns, with what is known of the log they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError

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

UNKNOWN = -1
"""What the Standard Workload Format writes for a value that is not known."""

_EMPTY: NDArray[Any] = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Parallel jobs in the columns of the Standard Workload Format (SWF).

    All columns have one entry a job; times are seconds, submit times since `unix_start_time`. A
    column that is not given is filled with -1 (unknown), job numbers with 1, 2, 3 ... Columns are
    int64, except where a log has fractions (then float64; in the archive only average CPU times).

    Parameters
    ----------
    name : str
        Short name of the log or model, used in figures and file names.
    processors_available : int, optional
        Processors of the machine (`MaxProcs` of the header, else `MaxNodes`).
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

    def __post_init__(self) -> None:
        jobs = len(self.submit_time)
        for name in SWF_FIELDS:
            column = np.asarray(getattr(self, name))
            if column is _EMPTY and jobs:
                column = np.arange(1, jobs + 1) if name == "job_number" else np.full(jobs, UNKNOWN)
            elif column.dtype != np.float64:
                column = column.astype(np.int64, copy=False)
            if column.shape != (jobs,):
                raise WorkloadError(
                    f"{self.name}: column {name} has shape {column.shape}, submit_time has {jobs} jobs"
                )
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.submit_time)

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

    def select(self, jobs: NDArray[Any] | slice, **changes: Any) -> Workload:
        """Workload of the jobs that a mask, index array or slice picks; `changes` replace other fields."""
        chosen = {name: column[jobs] for name, column in self.columns.items()}
        return replace(self, **{**chosen, **changes})

    def equals(self, other: Workload) -> bool:
        """Whether every column, value by value, and every other field is the same."""
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return bool(left == right)


def add_counts(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Sum of two tables of counts, without the entries that are zero."""
    total = {reason: counts.get(reason, 0) + more.get(reason, 0) for reason in (*counts, *more)}
    return {reason: count for reason, count in total.items() if count}

"""Several workloads as one stream of submissions, for grids where each belongs to a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.columns import TIMES
from gridsched.workloads.table import EXTRA_FIELDS, UNKNOWN, Workload, add_counts


def merge_workloads(
    workloads: Sequence[Workload], *, align: Literal["start", "clock", "none"] = "start"
) -> tuple[Workload, NDArray[np.int64]]:
    """Merge workloads in order of submission.

    Parameters
    ----------
    workloads : sequence of Workload
        The workloads; jobs submitted at the same time keep this order.
    align : {"start", "clock", "none"}
        Whether the first jobs of all are submitted at time 0, at the time that the clocks of the logs say
        (time 0 is the earliest start of a log), or submit times stay as they are.

    Returns
    -------
    merged : Workload
        All jobs, with the numbers of jobs, users, groups and queues of their logs, which may repeat: where
        users of two logs have the same number, policies that look at users take them for one.
    origin : int64[n]
        Index of the workload that each job comes from.

    Raises
    ------
    WorkloadError
        If there is none, or a clock is to be used that a log does not tell.

    Examples
    --------
    >>> import gridsched as gs
    >>> merged, origin = gs.merge_workloads([gs.synthesise(name, jobs=3, seed=1) for name in ("M1", "M2")])
    >>> origin
    array([0, 1, 0, 0, 1, 1])
    """
    if not workloads:
        raise WorkloadError("no workloads to merge")
    shifts = _shifts(workloads, align)
    columns: dict[str, Any] = {
        name: np.concatenate([workload.columns[name] for workload in workloads])
        for name in workloads[0].columns
    }
    columns |= _extra_columns(workloads, shifts)
    columns["dependencies"] = _dependencies(workloads)
    columns["submit_time"] = np.concatenate(
        [workload.submit_time + shift for workload, shift in zip(workloads, shifts, strict=True)]
    )
    origin = np.repeat(np.arange(len(workloads)), [len(workload) for workload in workloads])
    order = np.argsort(columns["submit_time"], kind="stable")
    counts: dict[str, dict[str, int]] = {"left_out": {}, "repaired": {}}
    for workload in workloads:
        for kind, total in counts.items():
            named = {f"{workload.name}: {reason}": n for reason, n in getattr(workload, kind).items()}
            counts[kind] = add_counts(total, named)
    merged = Workload(
        name="+".join(workload.name for workload in workloads),
        acknowledgement="; ".join(dict.fromkeys(w.acknowledgement for w in workloads if w.acknowledgement)),
        checksum=hashlib.sha256("\n".join(w.checksum for w in workloads).encode()).hexdigest(),
        **columns,
        left_out=counts["left_out"],
        repaired=counts["repaired"],
    )
    return merged.select(order), origin[order]


def _extra_columns(workloads: Sequence[Workload], shifts: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """Further columns of all jobs, times by the common clock; homes follow from the workloads."""
    columns = {}
    for name in EXTRA_FIELDS[1:]:
        given = [workload.extra.get(name) for workload in workloads]
        if all(column is None for column in given):
            continue
        parts: list[NDArray[np.int64]] = []
        for workload, column, shift in zip(workloads, given, shifts, strict=True):
            if column is None and name == "deadline":
                raise WorkloadError(
                    f"{workload.name}: its jobs have no deadlines, others have; give them to all"
                )
            values = np.full(len(workload), UNKNOWN) if column is None else column
            moved = values + shift if name in TIMES else values
            if name in ("array", "component_of"):
                # those of two logs are not the same ones
                moved = values + 1 + max((int(part.max(initial=-1)) for part in parts), default=-1)
            parts.append(np.where(values == UNKNOWN, UNKNOWN, moved))
        columns[name] = np.concatenate(parts)
    return columns


def _dependencies(workloads: Sequence[Workload]) -> NDArray[Any] | None:
    """Dependencies of all jobs, by their places one workload after the other."""
    parts, first = [], 0
    for workload in workloads:
        if workload.dependencies is not None:
            part = workload.dependencies.copy()
            part["job"] += first
            part["on"] += first
            parts.append(part)
        first += len(workload)
    return np.concatenate(parts) if parts else None


def _shifts(workloads: Sequence[Workload], align: str) -> list[int]:
    """Seconds to add to the submit times of each workload."""
    if align == "start":
        return [
            -int(workload.submit_time.min(initial=2**62)) if len(workload) else 0 for workload in workloads
        ]
    if align == "none":
        return [0] * len(workloads)
    starts = []
    for workload in workloads:
        if workload.unix_start_time is None:
            raise WorkloadError(f"{workload.name}: the log does not say when it starts (UnixStartTime)")
        starts.append(workload.unix_start_time)
    return [start - min(starts) for start in starts]

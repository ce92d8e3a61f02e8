"""Leaving out the jobs of a log that cannot be simulated, and repairing those that can; all are counted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import LARGEST
from gridsched.errors import TraceError, WorkloadError
from gridsched.workloads.columns import LONGEST_TIME
from gridsched.workloads.table import SWF_FIELDS, UNKNOWN, Workload, add_counts

LONGEST_LIMIT = 366 * 86400
"""Seconds from which on a requested time says that there is no limit, such as 2**31 - 1."""

MAX_PROCESSORS = 2**31 - 1
"""Processors that a job may ask for."""

_TIMES = ("submit_time", "wait_time", "run_time", "requested_time")
_SIZES = ("requested_processors", "allocated_processors")
CANCELLED = 5
"""Status of cancelled jobs (SWF)."""

NEVER_RAN = "cancelled before it started"
"""Reason to leave out a job of which a reader tells when its user gave up."""

_UNKNOWN_IF_NEGATIVE = tuple(
    field for field in SWF_FIELDS if field not in ("job_number", "submit_time", "run_time")
)


def clean(
    workload: Workload,
    *,
    processors: int | None = None,
    statuses: Collection[int] = frozenset(),
    cancelled: Literal["recorded", "wait"] = "recorded",
) -> Workload:
    """Workload that can be simulated: in order of submit time, every job with a size and a run time.

    Left out, each job under the first reason that holds: "no submit time" (negative), "no size"
    (neither requested nor allocated processors), "cancelled before it started" (of logs that tell),
    "no run time" (negative; jobs of zero length stay), "larger than the machine", "status N" and "duplicate
    job number" (the first job stays).

    Repaired: "negative value made unknown" (numbers below -1 where -1 means unknown), "fractional
    time rounded" (submit time down, run and requested time up to whole seconds; these columns are int64
    then), "time limit beyond 2,147,483,647 s taken as that" (the longest estimate of a simulation; there is
    no limit) and "out of order" (a job submitted before one that precedes it in the log; the sort is stable).

    Parameters
    ----------
    workload : Workload
        As read from a log.
    processors : int, optional
        Processors of the cluster; `workload.processors_available` if not given. Without either, no job is
        larger than the cluster.
    statuses : collection of int, optional
        Status codes of jobs to leave out, such as 5 for cancelled jobs.
    cancelled : {"recorded", "wait"}
        Treatment of jobs that were cancelled before they ran (status 5 without a run time, and a known
        wait). As they are recorded, they are left out (negative run time) or take no time (0). Else they wait
        until their users gave up by the log, submit and wait time together (`gives_up_time`). Should they
        start before, they run for the part of their requested time that the jobs which ran took of theirs,
        all together; those without a requested time, or with one of more than a year, which is no limit, are
        left out.

    Returns
    -------
    Workload
        The jobs that remain, with the counts added to `left_out` and `repaired`.

    Raises
    ------
    TraceError
        If a time exceeds 2**40 s, or a size 2**31 - 1 processors, in any job.
    WorkloadError
        If no job remains.

    Examples
    --------
    >>> import gridsched as gs
    >>> log = gs.Workload(
    ...     name="lab", submit_time=[0, 5, 9], run_time=[60, -1, 30], requested_processors=[1, 2, 4]
    ... )
    >>> gs.clean(log, processors=2).left_out
    {'no run time': 1, 'larger than the machine': 1}
    """
    _check_sizes(workload)
    if cancelled == "wait":
        workload = _with_cancelled_jobs(workload)
    available = workload.processors_available if processors is None else processors
    keep = np.ones(len(workload), np.bool_)
    left_out: dict[str, int] = {}
    for reason, unfit in _unfit_jobs(workload, available, statuses):
        left_out[reason] = int(np.count_nonzero(keep & unfit))
        keep &= ~unfit
    repeated = np.flatnonzero(keep)[_repeated(workload.job_number[keep])]
    left_out["duplicate job number"] = repeated.size
    keep[repeated] = False
    if not keep.any():
        counts = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
        raise WorkloadError(f"{workload.name}: no job remains after cleaning ({counts}); use another log")
    made = _repaired(workload.select(keep, left_out=add_counts(workload.left_out, left_out)))
    gives_up = made.gives_up_time
    return made if gives_up is None or (gives_up >= 0).any() else replace(made, gives_up_time=None)


def never_ran(workload: Workload) -> NDArray[np.bool_]:
    """Jobs that, by the log, were cancelled before they ran, also if `clean` makes them wait until then."""
    return np.asarray(wait_until_cancelled(workload) >= 0, np.bool_)


def wait_until_cancelled(workload: Workload) -> NDArray[np.int64]:
    """Seconds after which the users of jobs that never ran by the log cancelled them; -1 for other jobs."""
    waited = np.where(cancelled_unstarted(workload), np.maximum(workload.wait_time, UNKNOWN), UNKNOWN)
    if workload.gives_up_time is not None:
        told = (workload.status == CANCELLED) & (workload.wait_time < 0) & (workload.gives_up_time >= 0)
        waited = np.where(told, np.maximum(workload.gives_up_time - workload.submit_time, 0), waited)
    return waited.astype(np.int64)


def without_limit(workload: Workload) -> NDArray[np.bool_]:
    """Jobs whose requested time is so long that there is no limit."""
    return np.asarray(workload.requested_time > LONGEST_LIMIT, np.bool_)


def cancelled_unstarted(workload: Workload) -> NDArray[np.bool_]:
    """Jobs that were cancelled and have no run time; one that used a processor had started."""
    idle = (workload.run_time <= 0) & (workload.average_cpu_time <= 0)
    return np.asarray((workload.status == CANCELLED) & idle, np.bool_)


def _with_cancelled_jobs(workload: Workload) -> Workload:
    """Let jobs that were cancelled before they ran wait until then."""
    gave_up = cancelled_unstarted(workload) & (workload.wait_time >= 0)
    endless = without_limit(workload)
    unknown = gave_up & (endless | (workload.requested_time <= 0))
    ran = (workload.run_time > 0) & (workload.requested_time > 0) & ~endless
    taken = float(workload.run_time[ran].sum()) / max(float(workload.requested_time[ran].sum()), 1.0)
    run_time = np.where(gave_up, np.ceil(min(taken, 1.0) * workload.requested_time), workload.run_time)
    already = workload.gives_up_time
    known = np.full(len(workload), UNKNOWN) if already is None else already
    until = np.floor(workload.submit_time + workload.wait_time).astype(np.int64)
    waiting = replace(
        workload,
        run_time=run_time,
        wait_time=np.where(gave_up, UNKNOWN, workload.wait_time),
        gives_up_time=np.where(gave_up, until, known),
        repaired=add_counts(
            workload.repaired, {"cancelled before it ran, waits until then": int((gave_up & ~unknown).sum())}
        ),
    )
    return waiting.select(
        ~unknown,
        left_out=add_counts(
            workload.left_out,
            {
                "cancelled before it ran, requested time unknown": int((unknown & ~endless).sum()),
                "cancelled before it ran, requested time unlimited": int((unknown & endless).sum()),
            },
        ),
    )


def _check_sizes(workload: Workload) -> None:
    """Refuse numbers that no job can have; compared so that NaN is refused too."""
    for names, most in ((_TIMES, LONGEST_TIME), (_SIZES, MAX_PROCESSORS)):
        for name in names:
            column = getattr(workload, name)
            wrong = np.flatnonzero(~(column <= most))
            if wrong.size:
                job = workload.job_number[wrong[0]]
                raise TraceError(
                    f"{workload.name}: job {job:.0f} has {name} {column[wrong[0]]}, beyond {most} "
                    f"({wrong.size:,} such jobs); correct the log or remove these lines"
                )


def _unfit_jobs(
    workload: Workload, available: int | None, statuses: Collection[int]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Reasons to leave jobs out, with the jobs for which they hold."""
    processors = workload.processors
    yield "no submit time", workload.submit_time < 0
    yield "no size", processors <= 0
    if workload.gives_up_time is not None:
        yield NEVER_RAN, (workload.gives_up_time >= 0) & (workload.run_time < 0)
    yield "no run time", workload.run_time < 0
    if available is not None:
        yield "larger than the machine", processors > available
    for status in sorted(statuses):
        yield f"status {status}", workload.status == status


def _repeated(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the entries that are equal to an earlier one."""
    repeated = np.ones(numbers.size, np.bool_)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    return repeated


def _repaired(workload: Workload) -> Workload:
    """Workload with unknown values as -1, whole seconds, and jobs in order of submit time."""
    jobs = len(workload)
    negative = np.zeros(jobs, np.bool_)
    rounded = np.zeros(jobs, np.bool_)
    columns = workload.columns
    for name in _UNKNOWN_IF_NEGATIVE:
        wrong = (columns[name] < 0) & (columns[name] != UNKNOWN)
        if wrong.any():
            columns[name] = np.where(wrong, columns[name].dtype.type(UNKNOWN), columns[name])
            negative |= wrong
    for name, whole in (("submit_time", np.floor), ("run_time", np.ceil), ("requested_time", np.ceil)):
        if columns[name].dtype == np.float64:
            seconds = whole(columns[name])
            rounded |= seconds != columns[name]
            columns[name] = seconds.astype(np.int64)
    endless = columns["requested_time"] > LARGEST
    if endless.any():
        columns["requested_time"] = np.minimum(columns["requested_time"], LARGEST)
    submit = columns["submit_time"]
    late = int(np.count_nonzero(submit < np.maximum.accumulate(submit)))
    order = np.argsort(submit, kind="stable") if late else slice(None)
    counts = {
        "negative value made unknown": int(np.count_nonzero(negative)),
        "fractional time rounded": int(np.count_nonzero(rounded)),
        f"time limit beyond {LARGEST:,} s taken as that": int(np.count_nonzero(endless)),
        "out of order": late,
    }
    return workload.select(
        order,
        **{name: column[order] for name, column in columns.items()},
        repaired=add_counts(workload.repaired, counts),
    )

"""Jobs that wait for other jobs: which for which, and from which end on.

A dependency names two jobs by their places in the workload. It is met when the first one starts ("after"),
ends in any way ("afterany"), ends well ("afterok") or does not ("afternotok"), and a delay later. A job that
was cancelled or rejected did not end well. A job with a dependency that can no longer be met never runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Dependency
from gridsched.engine.records import RecordArray
from gridsched.errors import WorkloadError, check_choice

if TYPE_CHECKING:
    from gridsched.workloads.table import Workload

DEPENDENCY = np.dtype([("job", np.int64), ("on", np.int64), ("kind", np.int64), ("delay", np.int64)])
"""A job, the job that it waits for, a value of `KINDS`, and seconds that have to pass after that."""

KINDS: dict[str, int] = {
    "after": int(Dependency.AFTER),
    "afterany": int(Dependency.AFTER_ANY),
    "afterok": int(Dependency.AFTER_OK),
    "afternotok": int(Dependency.AFTER_NOT_OK),
}
"""Kinds of dependencies, by Slurm's names."""

FEWEST_ALIKE = 100
"""Jobs with one and the same preceding job, and none with another, from which on it is a placeholder."""

_SEVERAL = "preceding job whose number several jobs have"

FAILED_STATUS = (0, 5)
"""Status of jobs that ended, but not well: failed, and cancelled (SWF)."""


def dependency_table(entries: Iterable[tuple[int, int, str] | tuple[int, int, str, int]]) -> RecordArray:
    """Dependencies of (job, on, kind) or (job, on, kind, delay in seconds).

    Raises
    ------
    WorkloadError
        If a kind is unknown.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gridsched as gs
    >>> jobs = gs.Workload(name="two", submit_time=[0, 0], run_time=[60, 60], requested_processors=[1, 1])
    >>> chain = replace(jobs, dependencies=gs.dependency_table([(1, 0, "afterok")]))
    >>> gs.simulate(chain, 4).start_time.values
    array([ 0, 60])
    """
    rows = []
    for job, on, kind, *delay in entries:
        check_choice(f"dependency of job {job}: kind", kind, KINDS, WorkloadError)
        rows.append((job, on, KINDS[str(kind)], delay[0] if delay else 0))
    return np.array(rows, DEPENDENCY)


def check_dependencies(name: str, table: RecordArray, jobs: int) -> None:
    """Refuse dependencies of jobs that are none, on themselves in a circle, or with negative delays."""
    if table.dtype != DEPENDENCY:
        raise WorkloadError(f"{name}: dependencies have type {table.dtype}; make them with dependency_table")
    for key in ("job", "on"):
        wrong = (table[key] < 0) | (table[key] >= jobs)
        if wrong.any():
            raise WorkloadError(
                f"{name}: a dependency names the job at index {table[key][np.argmax(wrong)]}, "
                f"but there are {jobs} jobs"
            )
    if (table["delay"] < 0).any() or not np.isin(table["kind"], list(KINDS.values())).all():
        raise WorkloadError(f"{name}: a dependency has a negative delay or an unknown kind")
    around = circle(table)
    if around:
        raise WorkloadError(f"{name}: the job at index {around[0]} depends on itself through others")


def circle(table: RecordArray) -> list[int]:
    """Places of jobs that depend on each other in a circle; none if there is no circle."""
    if (table["on"] < table["job"]).all():
        return []
    import networkx as nx

    try:
        found = nx.find_cycle(nx.DiGraph(zip(table["job"].tolist(), table["on"].tolist(), strict=True)))
    except nx.NetworkXNoCycle:
        return []
    return [job for job, _ in found]


def select_dependencies(table: RecordArray, chosen: NDArray[Any]) -> RecordArray:
    """Dependencies among the chosen jobs, in their new places; those on other jobs count as met."""
    largest = max(int(each.max(initial=-1)) for each in (table["job"], table["on"], chosen))
    place = np.full(largest + 1, -1)
    place[chosen] = np.arange(len(chosen))
    moved = table.copy()
    moved["job"], moved["on"] = place[table["job"]], place[table["on"]]
    return moved[(moved["job"] >= 0) & (moved["on"] >= 0)]


def with_preceding_jobs(workload: Workload) -> Workload:
    """The workload with the dependencies of its fields 17 and 18: preceding job, think time after its end.

    Preceding jobs that are not in the workload, or do not come before the job, count as met, and so do all
    where the field is a placeholder: one value in all jobs that have any, although it stands in a job that
    it does not precede, or in 100 jobs. All are counted in `repaired`.

    Raises
    ------
    WorkloadError
        If several jobs have the number of a preceding job, as in merged logs.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.Workload(
    ...     name="two",
    ...     submit_time=[0, 0],
    ...     run_time=[60, 60],
    ...     requested_processors=[1, 1],
    ...     preceding_job=[-1, 1],
    ...     think_time=[-1, 30],
    ... )
    >>> gs.simulate(gs.with_preceding_jobs(jobs), 4).start_time.values
    array([ 0, 90])
    """
    from dataclasses import replace

    from gridsched.workloads.table import add_counts

    job, on, wrong = preceding_jobs(workload)
    if wrong.get(_SEVERAL):
        raise WorkloadError(
            f"{workload.name}: {wrong[_SEVERAL]:,} jobs have a {_SEVERAL}; "
            "take preceding jobs before logs are merged"
        )
    table = np.empty(len(job), DEPENDENCY)
    table["job"], table["on"], table["kind"] = job, on, KINDS["afterany"]
    table["delay"] = np.maximum(workload.think_time[job], 0)
    if workload.dependencies is not None:
        table = np.concatenate([workload.dependencies, table])
    return replace(workload, dependencies=table, repaired=add_counts(workload.repaired, wrong))


def preceding_jobs(workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]]:
    """Jobs with a preceding job by field 17, the preceding jobs, and counts of those that are not taken."""
    named = workload.preceding_job
    jobs = np.flatnonzero(named > 0)
    number, order = workload.job_number, np.argsort(workload.job_number, kind="stable")
    first, after = (np.searchsorted(number, named[jobs], side, sorter=order) for side in ("left", "right"))
    on = order[np.maximum(after - 1, 0)]
    there, several = after > first, after > first + 1
    wrong = there & (on >= jobs)
    alike = len(jobs) > 1 and bool((named[jobs] == named[jobs[0]]).all())
    if alike and (wrong.any() or len(jobs) >= FEWEST_ALIKE):
        return (
            jobs[:0],
            on[:0],
            {f"preceding job {named[jobs[0]]:.0f} in every job that has one, a placeholder": len(jobs)},
        )
    counts = {
        "preceding job that does not precede it": int((wrong & ~several).sum()),
        "preceding job not in the log": int((~there).sum()),
        _SEVERAL: int(several.sum()),
    }
    taken = there & ~several & ~wrong
    return jobs[taken], on[taken], counts


def singleton_dependencies(workload: Workload, jobs: NDArray[np.bool_]) -> RecordArray:
    """Dependencies of jobs that run one at a time with all earlier ones of the same user and executable.

    Parameters
    ----------
    workload : Workload
        The jobs.
    jobs : bool[n]
        Those that wait for all before them (Slurm's "singleton").

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gridsched as gs
    >>> import numpy as np
    >>> jobs = gs.Workload(
    ...     name="two",
    ...     submit_time=[0, 0],
    ...     run_time=[60, 60],
    ...     requested_processors=[1, 1],
    ...     user=[7, 7],
    ...     executable=[3, 3],
    ... )
    >>> one_at_a_time = gs.singleton_dependencies(jobs, np.array([False, True]))
    >>> gs.simulate(replace(jobs, dependencies=one_at_a_time), 4).start_time.values
    array([ 0, 60])
    """
    last: dict[tuple[int, int], list[int]] = {}
    rows = []
    for job, key in enumerate(zip(workload.user.tolist(), workload.executable.tolist(), strict=True)):
        earlier = last.setdefault(key, [])
        if jobs[job]:
            rows += [(job, on, KINDS["afterany"], 0) for on in earlier]
            # who waits for this one waits for those too
            earlier.clear()
        earlier.append(job)
    return np.array(rows, DEPENDENCY)

"""Which parallel jobs fill a space of resources together, and which cluster gets them.

Algorithms 1 to 4 of He et al. (see `packing`); what is repaired in them is listed in
`muscle`. Jobs are numbered in the order in which they were collected.

A resource is a processor, or a node where a cluster gives whole nodes to jobs. So the resources that a job
needs depend on the *unit* of the cluster, the processors of a resource, and there is a table for each unit.
All tables are searched for the same jobs: what is allocated by one counts as allocated in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles
from gridsched.engine.bundles import column
from gridsched.engine.jit import inline, jit, noinline
from gridsched.systems.multicluster.kernels.genetic import below
from gridsched.systems.multicluster.kernels.packing import WORD, bit

NOWHERE = -1
"""Cluster of a job that is larger than every cluster; no composition."""


class CompositionTable(NamedTuple):
    """Composition tables, one for each unit: row r lists compositions of jobs of r resources together.

    Row 0 has the composition without jobs.
    """

    rows: Any = column(np.int32, "units", "rows", "jobs")  # compositions; a job is in a row once
    lengths: Any = column(np.int32, "units", "rows")  # how many compositions a row has
    members: Any = column(np.int32, "units", "members")  # jobs of one composition after the other
    first: Any = column(np.int32, "units", "members + 2")  # where each composition begins in `members`
    containing: Any = column(np.int32, "units", "jobs", "rows")  # compositions in which a job is
    places: Any = column(np.int32, "units", "jobs")  # how many these are


STATE = np.dtype([("attempt", np.int64), ("stack", np.int64), ("found", np.int64)])
"""Number of the present attempt to fill a row, and counters of its search."""


class Search(NamedTuple):
    """What the allocation of the jobs has come to, and room for the search."""

    taken: Any = column(np.bool_, "jobs")  # that are allocated, or found for the present space
    counts: Any = column(np.int32, "units", "compositions")  # taken jobs of each composition
    visited: Any = column(np.int32, "units", "compositions")  # number of the last attempt that looked at each
    stack: Any = column(np.int32, "members")  # jobs to be taken or replaced, the next one last
    found: Any = column(np.int32, "jobs")  # jobs for the present space
    free: Any = column(np.int32, "units", "sizes")  # jobs of each size that are not taken
    reached: Any = column(np.bool_, "rows")  # whether free jobs need so many resources together
    used: Any = column(np.int32, "rows")  # room to find that out
    state: Any = column(STATE, "one")


CLUSTER = np.dtype(
    [
        ("processors", np.int64),
        ("unit", np.int64),  # processors of a resource
        ("table", np.int64),  # the table for this unit
        ("jobs", np.int64),  # p_i: jobs of the workload of the cluster
        ("run_time", np.int64),  # etSum_i
        ("size", np.int64),  # sizeSum_i, processors
        ("slack", np.int64),  # slkSum_i, each slack at least 1 s
        ("closed", np.bool_),  # whether no job left can use it
    ]
)
"""A cluster as the allocation sees and changes it."""


class Allocation(NamedTuple):
    """What MUSCLE decided for p jobs."""

    cluster: Any = column(np.int32, "jobs", fill=NOWHERE)  # index of the cluster of each job
    start: Any = column(np.int64, "jobs")  # when it starts in the seed schedule, seconds
    masks: Any = column(np.uint64, "jobs", "words")  # its resources, as bits (see `packing`)
    sequence: Any = column(np.int32, "jobs")  # jobs in the order in which they were allocated

    def of(self, cluster: int) -> Any:
        """Jobs of a cluster in the order in which they were allocated, which is that of their starts."""
        return self.sequence[self.cluster[self.sequence] == cluster]


# --- Algorithm 1: the table -----------------------------------------------------------------------


def tables_for(units: int, jobs: int, rows: int) -> CompositionTable:
    """Room for the tables of so many jobs."""
    sizes = {"units": units, "jobs": jobs, "rows": rows + 1, "members": rows * jobs}
    return bundles.allocate(CompositionTable, sizes | {"members + 2": rows * jobs + 2})


@inline
def _join(table: CompositionTable, g: int, made: int, row: int, job: int, other: int, present: Any) -> None:
    """Append a job together with the jobs of another composition to a row."""
    end = table.first[g, made]
    table.members[g, end] = job
    end += 1
    for k in range(table.first[g, other], table.first[g, other + 1]):
        table.members[g, end] = table.members[g, k]
        end += 1
    for k in range(table.first[g, made], end):
        member = table.members[g, k]
        present[row, member] = True
        table.containing[g, member, table.places[g, member]] = made
        table.places[g, member] += 1
    table.first[g, made + 1] = end
    table.rows[g, row, table.lengths[g, row]] = made
    table.lengths[g, row] += 1


@inline
def _shares_a_job(table: CompositionTable, g: int, composition: int, row: int, present: Any) -> bool:
    """Whether a job of a composition is in a row already."""
    for k in range(table.first[g, composition], table.first[g, composition + 1]):
        if present[row, table.members[g, k]]:
            return True
    return False


@jit
def build(table: CompositionTable, g: int, processors: Any) -> int:
    """Fill in table g for jobs of so many resources; return the number of compositions.

    A row never loses a job, so a composition that shares a job with another row is never of use to that row
    again: for each pair of rows, which jobs of one size join, the search goes on where it ended before.
    """
    rows = table.lengths.shape[1] - 1
    present = np.zeros((rows + 1, len(processors)), np.bool_)
    sizes = np.unique(processors)
    looked_at = np.zeros((len(sizes), rows + 1), np.int32)
    table.lengths[g, 0] = 1
    made = 1
    for job in range(len(processors)):
        before, size = made, processors[job]
        number = np.searchsorted(sizes, size)
        for row in range(size, rows + 1):
            source, k = row - size, looked_at[number, row]
            while k < table.lengths[g, source] and _shares_a_job(
                table, g, table.rows[g, source, k], row, present
            ):
                k += 1
            looked_at[number, row] = k
            # What was made since `before` holds the job itself.
            if k < table.lengths[g, source] and table.rows[g, source, k] < before:
                _join(table, g, made, row, job, table.rows[g, source, k], present)
                made += 1
    return made


# --- Algorithms 2 and 3: the search ---------------------------------------------------------------


@inline
def _count(table: CompositionTable, search: Search, processors: Any, job: int, more: int) -> None:
    """Count a job as taken (1) or as free again (-1), in all tables."""
    search.taken[job] = more > 0
    for g in range(len(processors)):
        search.free[g, processors[g, job]] -= more
        for k in range(table.places[g, job]):
            search.counts[g, table.containing[g, job, k]] += more


@inline
def _least_allocated(table: CompositionTable, search: Search, g: int, row: int, without: int) -> int:
    """First composition of a row with the fewest allocated jobs, of those not looked at in this attempt.

    The composition that is a certain job alone is left out.
    """
    best, attempt = NOWHERE, search.state[0]["attempt"]
    for n in range(table.lengths[g, row]):
        composition = table.rows[g, row, n]
        if (
            search.visited[g, composition] == attempt
            or table.members[g, table.first[g, composition]] == without
        ):
            continue
        if best == NOWHERE or search.counts[g, composition] < search.counts[g, best]:
            best = composition
    return best


@inline
def _push(table: CompositionTable, search: Search, g: int, composition: int) -> None:
    """Put the jobs of a composition on the stack, the first one last."""
    state = search.state[0]
    search.visited[g, composition] = state["attempt"]
    first = table.first[g, composition]
    for place in range(table.first[g, composition + 1] - 1, first - 1, -1):
        search.stack[state["stack"]] = table.members[g, place]
        state["stack"] += 1


@inline
def reach(free: Any, most: int, used: Any, reached: Any) -> None:
    """Which sums of sizes up to `most` there are: `free[s]` of size s can be had; `used` is room to work."""
    reached[: most + 1] = False
    reached[0] = True
    for size in range(1, most + 1):
        if free[size] == 0:
            continue
        used[: most + 1] = 0
        for total in range(size, most + 1):
            before = total - size
            if not reached[total] and reached[before] and used[before] < free[size]:
                reached[total] = True
                used[total] = used[before] + 1


@inline
def _find_alternatives(
    table: CompositionTable, search: Search, g: int, processors: Any, composition: int
) -> bool:
    """Algorithm 2: the free jobs of a composition, and alternatives for the others; whether there are any."""
    state = search.state[0]
    state["stack"] = 0
    _push(table, search, g, composition)
    while state["stack"] > 0:
        state["stack"] -= 1
        job = search.stack[state["stack"]]
        if not search.taken[job]:
            _count(table, search, processors, job, 1)
            search.found[state["found"]] = job
            state["found"] += 1
            continue
        if not search.reached[processors[g, job]]:
            return False
        other = _least_allocated(table, search, g, processors[g, job], job)
        if other == NOWHERE:
            return False
        _push(table, search, g, other)
    return True


@noinline
def fill(table: CompositionTable, search: Search, g: int, processors: Any, space: int) -> None:
    """Algorithm 3: jobs for a space of so many resources, the most that can be filled.

    What is found in place of a composition are free jobs that need as much together. Where no free jobs do,
    the search would look at all compositions in vain, which takes most of the time when few of many jobs are
    left.

    Parameters
    ----------
    table : CompositionTable
        The tables.
    search : Search
        What is allocated; `found` are the jobs for this space, then.
    g : int
        The table of the space.
    processors : int64[g, p]
        Resources of each job in units of each table.
    space : int
        Resources of the space.
    """
    state = search.state[0]
    state["found"] = 0
    reach(search.free[g], space, search.used, search.reached)
    for row in range(space, 0, -1):
        if not search.reached[row]:
            continue
        state["attempt"] += 1
        composition = _least_allocated(table, search, g, row, NOWHERE)
        if composition != NOWHERE and _find_alternatives(table, search, g, processors, composition):
            return
        while state["found"] > 0:
            state["found"] -= 1
            _count(table, search, processors, search.found[state["found"]], -1)


# --- Algorithm 4: the allocation ------------------------------------------------------------------


@inline
def epsilon(cluster: Any) -> float:
    """Equation (3); 0 for a cluster without jobs, infinite for one that is closed."""
    if cluster["closed"]:
        return np.inf
    if cluster["jobs"] == 0:
        return 0.0
    load = float(cluster["jobs"]) * float(cluster["run_time"]) * float(cluster["size"])
    return load / (float(cluster["slack"]) * float(cluster["processors"]))


@jit
def _first_clusters(clusters: Any) -> Any:
    """The clusters of the smallest epsilon, of these the largest; none if all are closed."""
    epsilons = np.empty(len(clusters))
    for i in range(len(clusters)):
        epsilons[i] = epsilon(clusters[i])
    first = np.flatnonzero((epsilons == epsilons.min()) & (epsilons < np.inf))
    sizes = clusters["processors"][first]
    return first[sizes == sizes.max()] if len(first) > 1 else first


@inline
def _add_to_workload(cluster: Any, size: int, duration: int, slack: int) -> None:
    """Count a job as workload of a cluster."""
    cluster["jobs"] += 1
    cluster["run_time"] += duration
    cluster["size"] += size * cluster["unit"]
    cluster["slack"] += max(slack, 1)


@jit
def allocate(
    table: CompositionTable,
    search: Search,
    clusters: Any,
    free: Any,
    processors: Any,
    durations: Any,
    slacks: Any,
    found: Allocation,
    random: Any,
) -> None:
    """Algorithm 4 without its first steps: allocate all jobs of the tables to clusters.

    Parameters
    ----------
    table, search
        The tables of all units, and room for the search in them.
    clusters : CLUSTER[n]
        State of the clusters, which changes.
    free : int64[n, m]
        When each of their resources becomes available, which changes; what a cluster lacks is not looked at.
    processors : int64[g, p]
        Resources of each job in units of each table; one of the clusters has so many.
    durations, slacks : int64[n, p]
        Expected run time of each job on each cluster; its deadline minus that and its submission.
    found : Allocation
        Result.
    random : uint64[2]
        Stream of random numbers, for ties.
    """
    done = 0
    while done < processors.shape[1]:
        first = _first_clusters(clusters)
        if len(first) == 0:
            break
        i = first[below(random, len(first))] if len(first) > 1 else first[0]
        cluster = clusters[i]
        available = free[i, : cluster["processors"] // cluster["unit"]]
        time = available.min()
        places = np.flatnonzero(available == time)
        fill(table, search, cluster["table"], processors, len(places))
        if search.state[0]["found"] == 0:
            # The space merges with the next release; the cluster is closed if it is the whole of it.
            later = available[available > time]
            cluster["closed"] = len(later) == 0
            available[places] = later.min() if len(later) else time
        for job in search.found[: search.state[0]["found"]]:
            size, duration = processors[cluster["table"], job], durations[i, job]
            for resource in places[:size]:
                # Not free at this time any more, even if the job takes no time.
                available[resource] = time + max(duration, 1)
                found.masks[job, resource // WORD] |= bit(resource)
            places = places[size:]
            found.cluster[job], found.start[job], found.sequence[done] = i, time, job
            _add_to_workload(cluster, size, duration, slacks[i, job])
            done += 1


def build_tables(processors: Any, rows: int) -> tuple[CompositionTable, Search]:
    """Tables of jobs of so many resources of each unit (int64[g, p]), and room for the search in them."""
    units, jobs = processors.shape
    table = tables_for(units, jobs, rows)
    compositions = max(build(table, g, processors[g]) for g in range(units))
    widest = max(rows, int(processors.max(initial=0)))
    free = np.stack([np.bincount(each, minlength=widest + 1) for each in processors]).astype(np.int32)
    sizes = {"units": units, "jobs": jobs, "rows": rows + 1, "compositions": compositions, "one": 1}
    return table, bundles.allocate(Search, sizes | {"members": int(table.first.max())}, free=free)

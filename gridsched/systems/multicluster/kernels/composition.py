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
from gridsched.engine.jit import inline, jit, noinline, unchecked
from gridsched.engine.records import FOREVER
from gridsched.systems.multicluster.kernels.genetic import below
from gridsched.systems.multicluster.kernels.packing import bit

NOWHERE = -1


class CompositionTable(NamedTuple):
    """Composition tables: row r lists compositions of jobs of r resources together.

    There is one for each unit; a single one has no dimension for these.
    """

    rows: Any = column(np.int32, "units", "rows", "jobs")  # compositions; a job is in a row once
    lengths: Any = column(np.int32, "units", "rows")  # how many compositions a row has
    members: Any = column(np.int32, "units", "members")  # jobs of one composition after the other
    first: Any = column(np.int32, "units", "members + 1")  # where each composition begins in `members`
    containing: Any = column(np.int32, "units", "jobs", "rows")  # compositions in which a job is
    places: Any = column(np.int32, "units", "jobs")  # how many these are


STATE = np.dtype([("stack", np.int64), ("found", np.int64)])
"""Counters of a search."""


class Search(NamedTuple):
    """What the allocation of the jobs has come to; for a single table without the dimension of units."""

    taken: Any = column(np.bool_, "jobs")  # that are allocated, or found for the present space
    counts: Any = column(np.int32, "units", "compositions")  # taken jobs of each composition
    visited: Any = column(np.int32, "units", "compositions")  # number of the last attempt that looked at each
    stack: Any = column(np.int32, "compositions + 1", "pair")  # those that are worked on, and how far
    found: Any = column(np.int32, "jobs")  # jobs for the present space
    free: Any = column(np.int32, "units", "sizes")  # free jobs of each size; those just found count
    reached: Any = column(np.bool_, "rows")  # whether free jobs need so many resources together
    used: Any = column(np.int32, "rows")  # room to find that out
    state: Any = column(STATE, "one")


class Clusters(NamedTuple):
    """Clusters as the allocation sees and changes them."""

    processors: Any  # int64[n]
    unit: Any  # int64[n], processors of a resource
    table: Any  # int64[n], the table for this unit
    free: Any  # int64[n, m], when each resource becomes available; what a cluster lacks is never looked at
    jobs: Any  # int64[n], p_i: jobs of the workload of each cluster
    run_time: Any  # int64[n], etSum_i
    size: Any  # int64[n], sizeSum_i, processors
    slack: Any  # int64[n], slkSum_i, each slack at least 1 s
    closed: Any  # bool[n], clusters that no job left can use


class Seeds(NamedTuple):
    """Result of the allocation."""

    cluster: Any  # int32[p]
    start: Any  # int64[p]
    masks: Any  # uint64[p, w]
    sequence: Any  # int32[p], jobs in the order in which they were allocated


# --- Algorithm 1: the table -----------------------------------------------------------------------


def tables_for(units: int, jobs: int, rows: int) -> CompositionTable:
    """Room for the tables of so many jobs."""
    sizes = {"units": units, "jobs": jobs, "rows": rows + 1, "members": rows * jobs}
    return bundles.allocate(CompositionTable, sizes | {"members + 1": rows * jobs + 1})


def only(tables: CompositionTable, g: int) -> CompositionTable:
    """One of several tables."""
    return CompositionTable(*(each[g] for each in tables))


@inline
def _join(table: CompositionTable, made: int, row: int, job: int, other: int, present: Any) -> int:
    """Append a job and the jobs of another composition, if any, to a row; return how many there are then."""
    end = table.first[made]
    table.members[end] = job
    end += 1
    if other != NOWHERE:
        for k in range(table.first[other], table.first[other + 1]):
            table.members[end] = table.members[k]
            end += 1
    for k in range(table.first[made], end):
        member = table.members[k]
        present[row, member] = True
        table.containing[member, table.places[member]] = made
        table.places[member] += 1
    table.first[made + 1] = end
    table.rows[row, table.lengths[row]] = made
    table.lengths[row] += 1
    return made + 1


@inline
def _shares_a_job(table: CompositionTable, composition: int, row: int, present: Any) -> bool:
    """Whether a job of a composition is in a row already."""
    for k in range(table.first[composition], table.first[composition + 1]):
        if present[row, table.members[k]]:
            return True
    return False


@inline
def _number_sizes(processors: Any, numbers: Any) -> int:
    """Number the sizes of jobs that have a row from 0, where there is NOWHERE; return how many they are."""
    count = 0
    for job in range(len(processors)):
        size = processors[job]
        if size < len(numbers) and numbers[size] == NOWHERE:
            numbers[size] = count
            count += 1
    return count


@jit
def build(table: CompositionTable, processors: Any) -> int:
    """Fill in the table of jobs of so many resources; return the number of compositions.

    A row never loses a job, so a composition that shares a job with another row is never of use to that row
    again: for each pair of rows, which jobs of one size join, the search goes on where it ended before.
    """
    jobs, rows = len(processors), len(table.lengths) - 1
    present = np.zeros((rows + 1, jobs), np.bool_)
    numbers = np.full(rows + 1, NOWHERE, np.int32)
    looked_at = np.zeros((_number_sizes(processors, numbers), rows + 1), np.int32)
    made = 0
    for job in range(jobs):
        size = processors[job]
        if size > rows:
            continue
        made = _join(table, made, size, job, NOWHERE, present)
        for row in range(size + 1, rows + 1):
            source = row - size
            k = looked_at[numbers[size], row]
            while k < table.lengths[source] and _shares_a_job(table, table.rows[source, k], row, present):
                k += 1
            looked_at[numbers[size], row] = k
            # A composition that holds the job itself is the last of its row and begins with it.
            if k < table.lengths[source] and table.members[table.first[table.rows[source, k]]] != job:
                made = _join(table, made, row, job, table.rows[source, k], present)
    return made


# --- Algorithms 2 and 3: the search ---------------------------------------------------------------


@inline
def _take(table: CompositionTable, search: Search, job: int) -> None:
    """Count a job as allocated, and put it behind the others found."""
    state = search.state[0]
    search.taken[job] = True
    search.found[state["found"]] = job
    state["found"] += 1
    for k in range(table.places[job]):
        search.counts[table.containing[job, k]] += 1


@inline
def _give_back(table: CompositionTable, search: Search) -> None:
    """Undo what was found."""
    state = search.state[0]
    for n in range(state["found"]):
        job = search.found[n]
        search.taken[job] = False
        for k in range(table.places[job]):
            search.counts[table.containing[job, k]] -= 1
    state["found"] = 0


@inline
def _least_allocated(table: CompositionTable, search: Search, row: int, attempt: int, without: int) -> int:
    """First composition of a row with the fewest allocated jobs, of those not looked at in this attempt.

    The composition that is a certain job alone is left out.
    """
    best = NOWHERE
    for n in range(table.lengths[row]):
        composition = table.rows[row, n]
        if search.visited[composition] == attempt or table.members[table.first[composition]] == without:
            continue
        if best == NOWHERE or search.counts[composition] < search.counts[best]:
            best = composition
    return best


@inline
def _take_all(table: CompositionTable, search: Search, composition: int) -> None:
    for k in range(table.first[composition], table.first[composition + 1]):
        _take(table, search, table.members[k])


@inline
def _push(search: Search, composition: int, attempt: int) -> None:
    state = search.state[0]
    search.visited[composition] = attempt
    search.stack[state["stack"], 0] = composition
    search.stack[state["stack"], 1] = 0
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
    table: CompositionTable, search: Search, processors: Any, composition: int, attempt: int
) -> bool:
    """Algorithm 2: the free jobs of a composition, and alternatives for the others; whether there are any."""
    state = search.state[0]
    state["stack"] = 0
    _push(search, composition, attempt)
    while state["stack"] > 0:
        top = state["stack"] - 1
        current, member = search.stack[top, 0], search.stack[top, 1]
        place = table.first[current] + member
        if place == table.first[current + 1]:
            state["stack"] -= 1
            continue
        search.stack[top, 1] += 1
        job = table.members[place]
        if not search.taken[job]:
            _take(table, search, job)
            continue
        if not search.reached[processors[job]]:
            return False
        other = _least_allocated(table, search, processors[job], attempt, job)
        if other == NOWHERE:
            return False
        if search.counts[other] == 0:
            search.visited[other] = attempt
            _take_all(table, search, other)
        else:
            _push(search, other, attempt)
    return True


@noinline
def fill(table: CompositionTable, search: Search, processors: Any, space: int, attempt: int) -> int:
    """Algorithm 3: jobs for a space of so many resources, the most that can be filled.

    What is found in place of a composition are free jobs that need as much together. Where no free jobs do,
    the search would look at all compositions in vain, which takes most of the time when few of many jobs are
    left.

    Parameters
    ----------
    table : CompositionTable
        The table.
    search : Search
        What is allocated; `found` are the jobs for this space, then.
    processors : int64[p]
        Resources of each job.
    space : int
        Resources of the space.
    attempt : int
        Number of the last attempt.

    Returns
    -------
    int
        Number of the last attempt, then.
    """
    state = search.state[0]
    state["found"] = 0
    most = min(space, len(table.lengths) - 1)
    reach(search.free, most, search.used, search.reached)
    for row in range(most, 0, -1):
        if not search.reached[row]:
            continue
        attempt += 1
        composition = _least_allocated(table, search, row, attempt, NOWHERE)
        if composition == NOWHERE:
            continue
        if search.counts[composition] == 0:
            _take_all(table, search, composition)
            return attempt
        if _find_alternatives(table, search, processors, composition, attempt):
            return attempt
        _give_back(table, search)
    return attempt


# --- Algorithm 4: the allocation ------------------------------------------------------------------


@inline
def epsilon(clusters: Clusters, i: int) -> float:
    """Equation (3); 0 for a cluster without jobs."""
    if clusters.jobs[i] == 0:
        return 0.0
    load = float(clusters.jobs[i]) * float(clusters.run_time[i]) * float(clusters.size[i])
    return load / (float(clusters.slack[i]) * float(clusters.processors[i]))


@inline
def _comes_first(clusters: Clusters, i: int, j: int) -> bool:
    """Whether a cluster has a smaller epsilon than another, or the same and more resources."""
    one, other = epsilon(clusters, i), epsilon(clusters, j)
    return one < other or (one == other and clusters.processors[i] > clusters.processors[j])


@inline
def _first_cluster(clusters: Clusters, random: Any) -> int:
    """The cluster of the smallest epsilon, the largest of equals, and one of those at random."""
    best, equals = NOWHERE, 0
    for i in range(len(clusters.processors)):
        if clusters.closed[i]:
            continue
        if best == NOWHERE or _comes_first(clusters, i, best):
            best, equals = i, 1
        elif not _comes_first(clusters, best, i):
            equals += 1
    if equals < 2:
        return best
    chosen = below(random, equals)
    for i in range(best, len(clusters.processors)):
        if not clusters.closed[i] and not _comes_first(clusters, best, i):
            if chosen == 0:
                return i
            chosen -= 1
    return best


@inline
def _resources(clusters: Clusters, i: int) -> int:
    """How many resources a cluster has."""
    return clusters.processors[i] // clusters.unit[i]


@inline
def _earliest_space(clusters: Clusters, i: int) -> tuple[int, int]:
    """When the first resources of a cluster become available, and how many do."""
    time, resources = FOREVER, 0
    for r in range(_resources(clusters, i)):
        free = clusters.free[i, r]
        if free < time:
            time, resources = free, 0
        if free == time:
            resources += 1
    return time, resources


@inline
def _least_size(taken: Any, processors: Any) -> int:
    """Resources of the smallest job that is not allocated."""
    least = FOREVER
    for job in range(len(processors)):
        if not taken[job]:
            least = min(least, processors[job])
    return least


@inline
def _wait_for_more(clusters: Clusters, i: int, time: int) -> None:
    """Merge a space that no job fits with the next release, or close the cluster if it is the whole of it."""
    release = FOREVER
    for r in range(_resources(clusters, i)):
        if clusters.free[i, r] > time:
            release = min(release, clusters.free[i, r])
    if release == FOREVER:
        clusters.closed[i] = True
        return
    for r in range(_resources(clusters, i)):
        clusters.free[i, r] = max(clusters.free[i, r], release)


@inline
def _allocate_job(
    clusters: Clusters, i: int, job: int, size: int, duration: int, slack: int, time: int, seeds: Seeds
) -> None:
    """Put a job on the lowest resources of a space, and count it as workload of the cluster."""
    missing = size
    resource = 0
    while missing > 0:
        if clusters.free[i, unchecked(resource)] == time:
            # Not free at this time any more, even if the job takes no time.
            clusters.free[i, unchecked(resource)] = time + max(duration, 1)
            seeds.masks[job, resource >> 6] |= bit(resource)
            missing -= 1
        resource += 1
    seeds.cluster[job] = i
    seeds.start[job] = time
    clusters.jobs[i] += 1
    clusters.run_time[i] += duration
    clusters.size[i] += size * clusters.unit[i]
    clusters.slack[i] += max(slack, 1)


@inline
def _tell_all(tables: CompositionTable, searches: Search, processors: Any, job: int, g: int) -> None:
    """Let a job that was found in one table be allocated in all."""
    for h in range(len(processors)):
        searches.free[h, processors[h, job]] -= 1
        if h != g:
            for k in range(tables.places[h, job]):
                searches.counts[h, tables.containing[h, job, k]] += 1


@jit
def allocate(
    tables: CompositionTable,
    searches: Search,
    clusters: Clusters,
    processors: Any,
    durations: Any,
    slacks: Any,
    seeds: Seeds,
    random: Any,
) -> int:
    """Algorithm 4 without its first steps: allocate all jobs of the tables to clusters.

    Parameters
    ----------
    tables, searches
        The tables of all units, and room for the search in them.
    clusters : Clusters
        State of the clusters, which changes.
    processors : int64[g, p]
        Resources of each job in units of each table; one of the clusters has so many.
    durations, slacks : int64[n, p]
        Expected run time of each job on each cluster; its deadline minus that and its submission.
    seeds : Seeds
        Result.
    random : uint64[2]
        Stream of random numbers, for ties.

    Returns
    -------
    int
        Jobs that were allocated: all, unless some are larger than every cluster.
    """
    state = searches.state[0]
    done, attempt = 0, 0
    least = np.empty(len(processors), np.int64)
    for g in range(len(processors)):
        least[g] = _least_size(searches.taken, processors[g])
    while done < processors.shape[1]:
        i = _first_cluster(clusters, random)
        if i == NOWHERE:
            break
        time, space = _earliest_space(clusters, i)
        g = clusters.table[i]
        if space < least[g]:
            # No composition of free jobs is so small, so the search would be in vain
            _wait_for_more(clusters, i, time)
            continue
        # Helpers cannot return arrays, so that the table for this unit is taken out here
        table = CompositionTable(
            tables.rows[g],
            tables.lengths[g],
            tables.members[g],
            tables.first[g],
            tables.containing[g],
            tables.places[g],
        )
        search = Search(
            searches.taken,
            searches.counts[g],
            searches.visited[g],
            searches.stack,
            searches.found,
            searches.free[g],
            searches.reached,
            searches.used,
            searches.state,
        )
        attempt = fill(table, search, processors[g], space, attempt)
        if state["found"] == 0:
            _wait_for_more(clusters, i, time)
        for n in range(state["found"]):
            job = searches.found[n]
            _tell_all(tables, searches, processors, job, g)
            size, duration = processors[g, job], durations[i, job]
            _allocate_job(clusters, i, job, size, duration, slacks[i, job], time, seeds)
            seeds.sequence[done] = job
            done += 1
        for h in range(len(processors)):
            least[h] = _least_size(searches.taken, processors[h])
    return done


def build_tables(processors: Any, rows: int) -> tuple[CompositionTable, Search]:
    """Tables of jobs of so many resources of each unit (int64[g, p]), and room for the search in them."""
    units, jobs = processors.shape
    tables = tables_for(units, jobs, rows)
    compositions = max(build(only(tables, g), processors[g]) for g in range(units))
    widest = max(rows, int(processors.max(initial=0)))
    free = np.stack([np.bincount(each, minlength=widest + 1) for each in processors]).astype(np.int32)
    sizes = {"units": units, "jobs": jobs, "rows": rows + 1, "compositions": compositions}
    sizes |= {"compositions + 1": compositions + 1, "pair": 2, "one": 1}
    return tables, bundles.allocate(Search, sizes, free=free)

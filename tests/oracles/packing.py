"""Slow, plain forms of placement, comprehensive performance, and MUSCLE's algorithms: oracles of the engine.

Everything is looked up anew each time, sets of resources are sets, idle time is counted second by second. It
shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import NamedTuple


class PackedJob(NamedTuple):
    """A job of a schedule; seconds and resources."""

    duration: int
    deadline: int
    processors: int


def place(
    order: Sequence[int],
    resources: Sequence[set[int]],
    durations: Sequence[int],
    base: Sequence[int],
    now: int,
) -> list[int]:
    """Start of each job: when all of its resources were left by the jobs before it in the order."""
    starts: dict[int, int] = {}
    for job in order:
        before = [other for other in starts if resources[other] & resources[job]]
        ends = [starts[other] + durations[other] for other in before]
        starts[job] = max([now, *ends, *(base[r] for r in resources[job])])
    return [starts[job] for job in range(len(order))]


def metrics(
    starts: Sequence[int],
    resources: Sequence[set[int]],
    jobs: Sequence[PackedJob],
    base: Sequence[int],
    now: int,
    idle_time: str,
) -> tuple[int, int, int]:
    """Makespan, idle time and over-deadline."""
    ends = [start + job.duration for start, job in zip(starts, jobs, strict=True)]
    last = max([now, *ends])
    idle = 0
    for r, available in enumerate(base):
        own = [(starts[j], ends[j]) for j in range(len(jobs)) if r in resources[j]]
        until = last if idle_time == "makespan" else max([available, *(end for _, end in own)])
        idle += sum(
            not any(start <= second < end for start, end in own) for second in range(available, until)
        )
    late = sum(max(0, end - job.deadline) for end, job in zip(ends, jobs, strict=True))
    return last - now, idle, late


def performance(found: tuple[int, int, int], weights: tuple[float, float, float]) -> float:
    """CP of makespan, idle time and over-deadline, with their weights in the same order."""
    return sum(w * value for w, value in zip(weights, found, strict=True)) / sum(weights)


def every_schedule(jobs: Sequence[PackedJob], width: int) -> Iterator[tuple[tuple[int, ...], list[set[int]]]]:
    """All orders with all choices of resources."""

    def choices(job: int) -> Iterator[list[set[int]]]:
        if job == len(jobs):
            yield []
            return
        for own in combinations(range(width), jobs[job].processors):
            for others in choices(job + 1):
                yield [set(own), *others]

    allocations = list(choices(0))
    for order in permutations(range(len(jobs))):
        for resources in allocations:
            yield order, resources


def optimum(
    jobs: Sequence[PackedJob],
    base: Sequence[int],
    now: int,
    weights: tuple[float, float, float],
    idle_time: str,
) -> float:
    """The least CP of all schedules."""
    best = float("inf")
    durations = [job.duration for job in jobs]
    for order, resources in every_schedule(jobs, len(base)):
        starts = place(order, resources, durations, base, now)
        best = min(best, performance(metrics(starts, resources, jobs, base, now, idle_time), weights))
    return best


# --- MUSCLE ---------------------------------------------------------------------------------------

Table = list[list[list[int]]]
"""Compositions of each row, row 0 being empty."""


def composition_table(sizes: Sequence[int], rows: int) -> Table:
    """Algorithm 1, repaired: a composition that holds the job itself is not joined with it."""
    table: Table = [[] for _ in range(rows + 1)]
    for job, size in enumerate(sizes):
        for row in range(1, rows + 1):
            if size == row:
                table[row].append([job])
            elif size < row:
                present = {member for composition in table[row] for member in composition}
                for composition in table[row - size]:
                    if job not in composition and not present & set(composition):
                        table[row].append([job, *composition])
                        break
    return table


def reachable(sizes: Sequence[int], rows: int) -> set[int]:
    """Rows that some jobs fill exactly."""
    sums = {0}
    for size in sizes:
        sums |= {total + size for total in sums}
    return {total for total in sums if 0 < total <= rows}


def alternatives(
    table: Table,
    sizes: Sequence[int],
    composition: list[int],
    allocated: set[int],
    q: list[int],
    seen: list[list[int]],
) -> bool:
    """Algorithm 2, repaired: no composition twice, and what is in q is allocated."""
    seen.append(composition)
    for job in composition:
        if job not in allocated and job not in q:
            q.append(job)
            continue
        others = [c for c in table[sizes[job]] if c != [job] and c not in seen]
        if not others:
            return False
        other = min(others, key=lambda c: count(c, allocated, q))
        if count(other, allocated, q) == 0:
            seen.append(other)
            q.extend(other)
        elif not alternatives(table, sizes, other, allocated, q, seen):
            return False
    return True


def count(composition: list[int], allocated: set[int], q: list[int]) -> int:
    return sum(job in allocated or job in q for job in composition)


def fill(table: Table, sizes: Sequence[int], space: int, allocated: set[int]) -> list[int]:
    """Algorithm 3, repaired: jobs for a space, none if no job fits."""
    for row in range(min(space, len(table) - 1), 0, -1):
        if not table[row]:
            continue
        q: list[int] = []
        composition = min(table[row], key=lambda c: count(c, allocated, []))
        if count(composition, allocated, []) == 0:
            return list(composition)
        if alternatives(table, sizes, composition, allocated, q, []):
            return q
    return []


@dataclass
class NaiveCluster:
    """A cluster of algorithm 4, with the jobs of its workload by run time, processors and slack.

    Its resources have `unit` processors each, and jobs take whole ones.
    """

    free: list[int]
    workload: list[tuple[int, int, int]] = field(default_factory=list)
    unit: int = 1

    def processors(self) -> int:
        return len(self.free) * self.unit

    def size(self, processors: int) -> int:
        """Resources of a job."""
        return next(size for size in range(processors + 1) if size * self.unit >= processors)

    def epsilon(self) -> float:
        if not self.workload:
            return 0.0
        run_times, sizes, slacks = (sum(column) for column in zip(*self.workload, strict=True))
        return float(len(self.workload) * run_times * sizes / (slacks * self.processors()))


class NaiveSeed(NamedTuple):
    cluster: int
    start: int
    resources: list[int]


def allocate(
    processors: Sequence[int],
    durations: Sequence[Sequence[int]],
    slacks: Sequence[Sequence[int]],
    clusters: list[NaiveCluster],
    draw: Callable[[int], int],
) -> dict[int, NaiveSeed]:
    """Algorithm 4, repaired; seeds by job in the order of allocation. `draw(k)` chooses among k equals.

    Every cluster has a table of its own, of jobs as large as they are there.
    """
    most = max(len(cluster.free) for cluster in clusters)
    wanted = [[cluster.size(each) for each in processors] for cluster in clusters]
    tables = [composition_table(sizes, most) for sizes in wanted]
    seeds: dict[int, NaiveSeed] = {}
    while len(seeds) < len(processors):
        smallest = min(size for job, size in enumerate(processors) if job not in seeds)
        usable = [i for i, cluster in enumerate(clusters) if cluster.processors() >= smallest]
        least = min(clusters[i].epsilon() for i in usable)
        usable = [i for i in usable if clusters[i].epsilon() == least]
        widest = max(clusters[i].processors() for i in usable)
        usable = [i for i in usable if clusters[i].processors() == widest]
        i = usable[draw(len(usable))]
        cluster, sizes = clusters[i], wanted[i]
        time = min(cluster.free)
        space = [r for r, free in enumerate(cluster.free) if free == time]
        found = fill(tables[i], sizes, len(space), set(seeds))
        if not found:
            release = min(free for free in cluster.free if free > time)
            cluster.free = [max(free, release) for free in cluster.free]
        for job in found:
            own, space = space[: sizes[job]], space[sizes[job] :]
            for r in own:
                cluster.free[r] = time + durations[i][job]
            seeds[job] = NaiveSeed(i, time, own)
            taken = sizes[job] * cluster.unit
            cluster.workload.append((durations[i][job], taken, max(slacks[i][job], 1)))
    return seeds

"""Slurm's main loop and backfilling, pass by pass, with sets of nodes and lists of jobs; no shared code."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple


class Job(NamedTuple):
    """A job: parts of equal size on `nodes` nodes."""

    submit: int
    run: int
    limit: int
    nodes: int
    cores: int = 1
    memory: int = 0
    gpus: int = 0
    whole: bool = False
    partition: int = 0
    user: int = 0
    priority: float = 0.0
    groups: tuple[int, ...] = ()
    array: int = -1


class Node(NamedTuple):
    """What a node has."""

    cores: int
    memory: int
    gpus: int


class Outage(NamedTuple):
    """A node takes no jobs from one instant to another; those that run there are killed, or go on."""

    node: int
    begin: int
    end: int
    kills: bool


class Reservation(NamedTuple):
    """Nodes that are kept free from one second to another, which is known from an instant on."""

    known: int
    begin: int
    end: int
    nodes: frozenset[int]


class Limit(NamedTuple):
    """What a group may have at once."""

    jobs: float = float("inf")
    cores: float = float("inf")


@dataclass
class Cluster:
    """Nodes, partitions with their tiers, limits, and the parameters of the passes."""

    nodes: list[Node]
    partitions: list[set[int]]
    tiers: list[int]
    limits: list[Limit] = field(default_factory=list)
    depth: int = 0
    partition_depth: int = 0
    most_started: int = 0
    window: int = 86400
    resolution: int = 1
    tests: int = 0
    tests_of_user: int = 0
    tests_of_partition: int = 0
    most_backfilled: int = 0
    least_priority: float = 0.0
    least_age: int = 0
    kill_wait: int = 30
    plans_of_array: int = 20
    array_limits: dict[int, int] = field(default_factory=dict)
    outages: list[Outage] = field(default_factory=list)
    reservations: list[Reservation] = field(default_factory=list)


class Started(NamedTuple):
    """When and where a job started, and by which pass."""

    time: int
    by: int
    nodes: list[int]


class Controller:
    """The jobs, and what became of them so far."""

    def __init__(self, jobs: list[Job], cluster: Cluster) -> None:
        self.jobs, self.cluster = jobs, cluster
        self.started: dict[int, Started] = {}
        self.killed: list[tuple[int, Started]] = []
        self.records: dict[int, tuple[int, int]] = {j: (j, 0) for j in range(len(jobs))}
        self.split: set[int] = set()

    def work(self, passes: list[tuple[int, int]]) -> dict[int, Started]:
        """Have all passes: instants and kinds, 0 for the main loop and 1 for backfilling."""
        failures = sorted((each for each in self.cluster.outages if each.kills), key=lambda each: each.begin)
        for now, kind in passes:
            while failures and failures[0].begin < now:
                self.fail(failures.pop(0))
            (self.backfill if kind else self.main)(now)
        return self.started

    def fail(self, failure: Outage) -> None:
        """Kill the jobs that run on a node; they wait again."""
        for j, done in list(self.started.items()):
            if failure.node in done.nodes and done.time + self.jobs[j].run > failure.begin:
                self.killed.append((j, self.started.pop(j)))

    def up(self, now: int) -> set[int]:
        """Nodes that take jobs."""
        out = {each.node for each in self.cluster.outages if each.begin < now <= each.end}
        return set(range(len(self.cluster.nodes))) - out

    def hindering(self, j: int, now: int, moment: int) -> list[Reservation]:
        """Known reservations that a job would run into that starts at a moment."""
        return [
            each
            for each in self.cluster.reservations
            if each.known < now <= each.end and each.begin < moment + self.jobs[j].limit and each.end > moment
        ]

    def reserved(self, j: int, now: int, moment: int) -> set[int]:
        """Nodes that a job may not have that starts at a moment."""
        return {node for each in self.hindering(j, now, moment) for node in each.nodes}

    def of_all(self, j: int, now: int, moment: int) -> list[int]:
        """Ends of hindering reservations that have all nodes of the partition of a job."""
        partition = self.cluster.partitions[self.jobs[j].partition]
        return [each.end for each in self.hindering(j, now, moment) if partition <= each.nodes]

    # --- what there is at an instant --------------------------------------------------------------

    def running(self, now: int) -> list[int]:
        """Jobs that run, by the time when they have to end."""
        on = [j for j, done in self.started.items() if done.time + self.jobs[j].run >= now]
        return sorted(on, key=lambda j: (self.started[j].time + self.jobs[j].limit, self.records[j]))

    def waiting(self, now: int) -> list[int]:
        """Jobs that wait, by tier, priority and number."""
        there = [j for j, job in enumerate(self.jobs) if job.submit < now and j not in self.started]
        tiers = self.cluster.tiers
        return sorted(there, key=lambda j: (-tiers[self.jobs[j].partition], -self.jobs[j].priority, j))

    def over_limit(self, j: int, now: int) -> bool:
        """Whether a group or the array of the job has too much running."""
        if self.tasks(j, now) + 1 > self.most_tasks(j):
            return True
        for group in self.jobs[j].groups:
            members = [self.jobs[k] for k in self.running(now) if group in self.jobs[k].groups]
            cores = sum(job.cores * job.nodes for job in [*members, self.jobs[j]])
            limit = self.cluster.limits[group]
            if len(members) + 1 > limit.jobs or cores > limit.cores:
                return True
        return False

    def most_tasks(self, j: int) -> float:
        """Tasks of the array of a job that may run at once."""
        return self.cluster.array_limits.get(self.jobs[j].array, float("inf"))

    def tasks(self, j: int, now: int) -> int:
        """Tasks of the array of a job that run."""
        array = self.jobs[j].array
        return sum(array >= 0 and self.jobs[k].array == array for k in self.running(now))

    def left(self, node: int, on: list[int]) -> Node | None:
        """What a node has left beside some running jobs; None if one of them has it to itself."""
        there = [self.jobs[k] for k in on if node in self.started[k].nodes]
        if any(job.whole for job in there):
            return None
        kind = self.cluster.nodes[node]
        return Node(
            kind.cores - sum(job.cores for job in there),
            kind.memory - sum(job.memory for job in there),
            kind.gpus - sum(job.gpus for job in there),
        )

    def fits(self, j: int, node: int, on: list[int]) -> bool:
        """Whether a part of a job fits on a node beside some running jobs."""
        job = self.jobs[j]
        if job.whole and any(node in self.started[k].nodes for k in on):
            return False
        left = self.left(node, on)
        return (
            left is not None
            and left.cores >= job.cores
            and left.memory >= job.memory
            and left.gpus >= job.gpus
        )

    def suits(self, j: int) -> set[int]:
        """Nodes of its partition that could hold a part of a job if nothing else ran."""
        return {node for node in self.cluster.partitions[self.jobs[j].partition] if self.fits(j, node, [])}

    def start(self, j: int, now: int, by: int, nodes: list[int]) -> None:
        """Start a job."""
        self.started[j] = Started(now, by, nodes)
        if self.jobs[j].array >= 0 and j not in self.split:
            # the tasks that are left get a new record
            self.split.add(j)
            tasks = [k for k in range(j + 1, len(self.jobs)) if self.jobs[k].array == self.jobs[j].array]
            if tasks and tasks[0] not in self.started:
                youngest = max(k for k, job in enumerate(self.jobs) if job.submit < now)
                self.records[tasks[0]] = (youngest, len(self.split))

    # --- which nodes ------------------------------------------------------------------------------

    def pick(self, j: int, usable: set[int], on: list[int]) -> list[int] | None:
        """Nodes of a job among usable ones beside some running jobs: best-fit runs of neighbours."""
        job = self.jobs[j]
        fitting = {node for node in usable if self.fits(j, node, on)}
        if len(fitting) < job.nodes:
            return None
        runs: list[list[int]] = []
        for node in sorted(fitting):
            if runs and runs[-1][-1] == node - 1:
                runs[-1].append(node)
            else:
                runs.append([node])

        def free(node: int) -> int:
            left = self.left(node, on)
            assert left is not None
            return left.cores

        def worth(run: list[int]) -> int:
            if job.whole:
                return len(run)
            return job.cores * len(run) if job.gpus else sum(map(free, run))

        chosen: list[int] = []
        while len(chosen) < job.nodes:
            need = job.nodes - len(chosen)
            enough = [run for run in runs if len(run) >= need]
            best = min(enough, key=worth) if enough else max(runs, key=worth)
            if need == 1 and not job.whole and not job.gpus:
                chosen.append(min(best, key=free))
            else:
                chosen += best[:need]
            runs.remove(best)
        return chosen

    # --- passes -----------------------------------------------------------------------------------

    def main(self, now: int) -> None:
        """The first job of a partition that does not fit closes it and takes its nodes from the others."""
        cluster = self.cluster
        closed: set[int] = set()
        lost: set[int] = set()
        looked: dict[int, int] = {}
        count = 0
        for k, j in enumerate(self.waiting(now)):
            if cluster.depth and k >= cluster.depth:
                return
            if cluster.most_started and count >= cluster.most_started:
                return
            p = self.jobs[j].partition
            if p in closed:
                continue
            looked[p] = looked.get(p, 0) + 1
            if (cluster.partition_depth and looked[p] > cluster.partition_depth) or self.over_limit(j, now):
                continue
            if self.of_all(j, now, now):
                continue
            there = (self.suits(j) & self.up(now)) - lost - self.reserved(j, now, now)
            nodes = self.pick(j, there, self.running(now))
            if nodes is None:
                closed.add(p)
                lost |= cluster.partitions[p]
            else:
                self.start(j, now, 0, nodes)
                count += 1

    def backfill(self, now: int) -> None:
        """Each job starts or is planned, such that it delays no plan before it."""
        cluster = self.cluster
        begin = now // cluster.resolution * cluster.resolution
        end = (now + cluster.window) // cluster.resolution * cluster.resolution
        stretches: list[tuple[int, int, set[int]]] = [(begin, end, self.up(now))]
        of_user: dict[int, int] = {}
        of_partition: dict[int, int] = {}
        of_array: dict[int, int] = {}
        rejected: set[int] = set()
        tests = count = 0
        for j in self.waiting(now):
            job = self.jobs[j]
            if cluster.tests and tests >= cluster.tests:
                return
            if self.over_limit(j, now):
                continue
            if (
                cluster.tests_of_partition
                and of_partition.get(job.partition, 0) >= cluster.tests_of_partition
            ):
                continue
            if cluster.tests_of_user and of_user.get(job.user, 0) >= cluster.tests_of_user:
                continue
            if job.array in rejected:
                continue
            planned = of_array.get(job.array, 0)
            if planned and (
                planned >= cluster.plans_of_array or planned + self.tasks(j, now) >= self.most_tasks(j)
            ):
                continue
            tests += 1
            of_partition[job.partition] = of_partition.get(job.partition, 0) + 1
            of_user[job.user] = of_user.get(job.user, 0) + 1
            before = stretches
            stretches = self.test(j, now, stretches)
            if job.array >= 0 and j not in self.started:
                if stretches is before:
                    rejected.add(job.array)
                else:
                    of_array[job.array] = planned + 1
            if j in self.started:
                count += 1
                if cluster.most_backfilled and count >= cluster.most_backfilled:
                    return

    def test(
        self, j: int, now: int, stretches: list[tuple[int, int, set[int]]]
    ) -> list[tuple[int, int, set[int]]]:
        """Start or plan a job; the stretches with its plan."""
        job, cluster = self.jobs[j], self.cluster
        no_plan = job.priority < cluster.least_priority or now - job.submit < cluster.least_age
        moment = now
        while True:
            while ends := self.of_all(j, now, moment):
                moment = max(ends)
            if moment > now + cluster.window:
                return stretches
            usable, later = self.usable(j, now, moment, stretches)
            found = self.earliest(j, usable, now, no_plan) if len(usable) >= job.nodes else None
            if found is None:
                if later is None or no_plan:
                    return stretches
                moment = later
                continue
            begin, nodes = max(found[0], moment), found[1]
            if begin <= now:
                if not self.over_limit(j, now):
                    self.start(j, now, 1, nodes)
                return stretches
            if no_plan:
                return stretches
            if later is not None and begin > later:
                moment = later
                continue
            if begin > now + cluster.window:
                return stretches
            unit = cluster.resolution
            first = begin // unit * unit
            last = max((begin + job.limit) // unit * unit, first + unit)
            if any(e > first and b < last and not set(nodes) <= free for b, e, free in stretches):
                moment = begin if begin > moment else begin + unit
                continue
            return stretches if self.over_limit(j, now) else planned(stretches, nodes, first, last)

    def usable(
        self, j: int, now: int, moment: int, stretches: list[tuple[int, int, set[int]]]
    ) -> tuple[set[int], int | None]:
        """Nodes that no plan has from a moment on until the job would end, and when to try again."""
        suits = (self.suits(j) & self.up(now)) - self.reserved(j, now, moment)
        usable, later = set(suits), None
        for k, (begin, end, free) in enumerate(stretches):
            if end <= moment:
                continue
            if later is None and k + 1 < len(stretches):
                following = suits & stretches[k + 1][2]
                if not following <= usable & free:
                    later = end
            if begin > moment + self.jobs[j].limit:
                break
            usable &= free
        if self.reserved(j, now, moment) & self.cluster.partitions[self.jobs[j].partition]:
            known = [each.end for each in self.cluster.reservations if each.known < now <= each.end]
            unit = self.cluster.resolution
            reopened = -(-min(end for end in known if end >= moment) // unit) * unit + 1
            if reopened < now + self.cluster.window and (later is None or reopened < later):
                later = reopened
        return usable, later

    def earliest(self, j: int, usable: set[int], now: int, now_only: bool) -> tuple[int, list[int]] | None:
        """When a job could start on usable nodes if no other came, and where."""
        job = self.jobs[j]
        left = self.running(now)
        nodes = self.pick(j, usable, left)
        if nodes is not None:
            return now, nodes
        if now_only:
            return None
        ends = {k: self.started[k].time + self.jobs[k].limit for k in left}
        if job.whole:
            while left:
                k = left.pop(0)
                nodes = self.pick(j, usable, left)
                if nodes is not None:
                    return max(ends[k], now + 1), nodes
            return None
        # jobs that are in nobody's way stay in the list: they can end a stretch of time
        off: list[int] = []
        bound, step = None, 30
        while left:
            group: list[int] = []
            while left:
                k = left.pop(0)
                if not usable & set(self.started[k].nodes):
                    continue
                if bound is None:
                    bound = (ends[k] // 30 + 1) * 30
                group.append(k)
                if (left and ends[left[0]] > bound + step) or len(group) > 201:
                    break
            if not group:
                return None
            off += group
            assert bound is not None
            if len(group) > 201:
                continue
            step *= 2
            while left and ends[left[0]] > bound + step:
                step *= 2
            nodes = self.pick(j, usable, [k for k in self.running(now) if k not in off])
            if nodes is not None:
                end = ends[group[-1]]
                return (end if end > now else max(end + self.cluster.kill_wait, now + 1)), nodes
        return None


def planned(
    stretches: list[tuple[int, int, set[int]]], nodes: list[int], begin: int, end: int
) -> list[tuple[int, int, set[int]]]:
    """Stretches without some nodes between two moments; the first pair of alike neighbours becomes one."""
    begin = max(begin, stretches[0][0])
    cut: list[tuple[int, int, set[int]]] = []
    for b, e, free in stretches:
        marks = [b, *[moment for moment in (begin, end) if b < moment < e], e]
        for x, y in itertools.pairwise(marks):
            cut.append((x, y, free - set(nodes) if x >= begin and y <= end else set(free)))
    for k in range(len(cut) - 1):
        if cut[k][2] == cut[k + 1][2]:
            return [*cut[:k], (cut[k][0], cut[k + 1][1], cut[k][2]), *cut[k + 2 :]]
    return cut

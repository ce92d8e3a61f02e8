"""Slurm's main loop and backfilling, pass by pass, with sets of nodes and lists of jobs; no shared code."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

YEAR = 365 * 86400


class Job(NamedTuple):
    """A job: parts of equal size on `nodes` nodes of its partition, or of one of `others`."""

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
    factor: float = 1.0
    features: int = 0
    licences: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    least: int = 0
    # the heterogeneous job of which it is a component
    hetjob: int = -1
    # what keeps it from starting: "time", "quality", "account", "wall", "resources" or "memory"
    barred: str = ""
    # processors that it asks for, whatever its nodes give
    wanted: int = 0


class Node(NamedTuple):
    """What a node has."""

    cores: int
    memory: int
    gpus: int
    weight: int = 1
    line: int = 0


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


class Rules(NamedTuple):
    """Who preempts whom: groups of jobs, and how jobs give way: "keep", "kill", "cancel" or "suspend"."""

    group: list[int]
    may: set[tuple[int, int]]
    level: list[int]
    way: list[str]
    exempt: list[int]
    linear: bool
    youngest: bool
    strict: bool
    reorder: int
    patience: int
    hold: int


class Limit(NamedTuple):
    """What a group may have at once; or minutes of a resource that it may use.

    `way` is "running" (those that running jobs may still use), "spent" (those that were used), or "safe"
    (such that jobs can run to their limits); `before` is what was used before [s].
    """

    jobs: float = float("inf")
    cores: float = float("inf")
    # different ones that its jobs have
    nodes: float = float("inf")
    minutes: float = float("inf")
    resource: str = "processors"
    way: str = "running"
    keeps: bool = False
    before: float = 0.0


@dataclass
class Cluster:
    """Nodes, partitions with their tiers, limits, and the parameters of the passes."""

    nodes: list[Node]
    partitions: list[set[int]]
    tiers: list[int]
    limits: list[Limit] = field(default_factory=list)
    depth: int = 100
    partition_depth: int = 0
    most_started: int = 0
    window: int = 86400
    resolution: int = 1
    tests: int = 0
    stretches: int = 0
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
    rules: Rules | None = None
    calculations: list[int] = field(default_factory=list)
    half_life: float = float("inf")
    resets: list[int] = field(default_factory=list)
    linear: bool = False
    featured: list[set[int]] = field(default_factory=list)
    # choices of some of them, of which a job has one
    choices: dict[int, list[set[int]]] = field(default_factory=dict)
    # some of them: nodes of each part of a job, how many it has there, the rest on all nodes of the set
    numbered: dict[int, list[tuple[set[int], int]]] = field(default_factory=dict)
    licences: tuple[int, ...] = ()
    one_plan: bool = False
    # release whose rules hold
    version: str = "22.05"
    # partitions whose jobs have whole nodes, and whether a submitted job is tried in all of its partitions
    exclusive: list[bool] = field(default_factory=list)
    tries_all: bool = False
    # whether the order of the jobs is that of their records
    fifo: bool = False
    # groups for which jobs count that run in each partition, and what its jobs have more of priority
    groups: list[tuple[int, ...]] = field(default_factory=list)
    bonus: list[float] = field(default_factory=list)

    def since(self, release: str) -> bool:
        """Whether rules hold that came with a release."""
        return float(self.version) >= float(release)

    def end_of_plan(self, moment: int) -> int:
        """End of a plan for a job that would end at a moment."""
        up = self.resolution - 1 if self.since("24.05") else 0
        return (moment + up) // self.resolution * self.resolution


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
        # jobs that are lost, that ended, that are held until when, that sleep since when, that slept how long
        self.over: set[int] = set()
        self.ended: set[int] = set()
        self.begin = {j: job.submit for j, job in enumerate(jobs)}
        self.asleep: dict[int, int] = {}
        self.slept: dict[int, int] = dict.fromkeys(range(len(jobs)), 0)
        self.again: dict[int, int] = {}
        self.ghosts: set[int] = set()
        self.leaving: set[int] = set()
        self.failures = sorted((each for each in cluster.outages if each.kills), key=lambda each: each.begin)
        self.given_way: list[tuple[int, int, int]] = []
        self.cut_short: list[tuple[int, int, int]] = []
        self.calculations = list(cluster.calculations)
        self.choice: dict[int, int] = {}
        # nodes that a part of a job may have
        self.part: dict[int, set[int]] = {}
        self.marks: dict[int, int] = dict.fromkeys(range(len(cluster.nodes)), 0)
        # nodes that are heavier by one, since the groups of the job that was tried last there lack them
        self.heavier: set[int] = set()
        # jobs, or arrays, that were tried in an exclusive partition
        self.stay_alone: set[tuple[str, int]] = set()
        # those that have whole nodes since then
        self.given_alone: set[int] = set()
        self.seen: set[int] = set()
        # passes that changed what the controller notes of jobs
        self.noted: list[int] = []
        # jobs once for each of their partitions; the one of those that each job is looked at in, or runs in
        self.rows = [(j, job.partition) for j, job in enumerate(jobs)]
        self.rows += [(j, partition) for j, job in enumerate(jobs) for partition in job.others]
        self.row = {j: j for j in range(len(jobs))}
        self.first = dict(self.row)
        # how long each has to run, where the last pass looked at it or it runs
        self.span = {j: job.limit for j, job in enumerate(jobs)}
        # the limits that jobs have while they wait
        self.limit = dict(self.span)
        self.tests_made = 0
        self.killing: set[int] = set()
        self.planned: set[int] = set()
        # components: earliest starts and rows that passes know, floors of their jobs, and how many passes
        self.starts: dict[int, tuple[int, int]] = {}
        self.floors: dict[int, int] = {}
        self.hetjobs: list[int] = []
        self.backfilled = 0
        # when passes saw tasks first; those that wait while as many run as may, and since when they wait anew
        self.first_seen: dict[int, int] = {}
        self.held_back: set[int] = set()
        self.since: dict[int, int] = {}
        # a backfill pass that was interrupted
        self.rest: Generator[None, int, None] | None = None

    def look_at(self, row: int) -> int:
        """Look at a job in a partition; the job."""
        j = self.rows[row][0]
        self.row[j] = row
        return j

    def partition(self, j: int) -> int:
        """The partition that a job is looked at in, or runs in."""
        return self.rows[self.row[j]][1]

    def groups(self, j: int) -> tuple[int, ...]:
        """Groups for which a job counts."""
        return (
            *self.jobs[j].groups,
            *(self.cluster.groups[self.partition(j)] if self.cluster.groups else ()),
        )

    def priority(self, row: int) -> float:
        """Priority of a job in a partition."""
        j, partition = self.rows[row]
        return self.jobs[j].priority + (self.cluster.bonus[partition] if self.cluster.bonus else 0.0)

    def is_elsewhere(self, j: int, now: int) -> bool:
        """Whether a job started, was killed again, or has others killed, in another of its partitions."""
        return j in self.started or j in self.killing or j in self.over or self.begin[j] >= now

    def work(self, passes: Sequence[tuple[int, ...]]) -> dict[int, Started]:
        """Have all passes: instants and kinds: 0 the main loop, 1 backfilling, 2 the main loop to a depth.

        Backfill passes that take time have a third number: jobs that are tried before others work, or -1 if
        one that was interrupted goes on no more.
        """
        for now, kind, *most in passes:
            self.advance(now)
            self.killing = set()
            self.see_arrays(now)
            if kind == 1:
                self.backfill(now, *most)
            else:
                self.main(now, self.cluster.depth + 1 if kind == 2 else 0)
            self.see_arrays(now)
            self.wake(now)
        return self.started

    def submit(self, j: int, now: int) -> None:
        """Try a job in the first of its partitions where it could run, or in all of them, on empty nodes."""
        rows = [row for row, (k, _) in enumerate(self.rows) if k == j]
        for row in sorted(rows, key=lambda row: -self.cluster.tiers[self.rows[row][1]]):
            if self.jobs[j].barred:
                continue
            self.look_at(row)
            if not self.over_count(j, now):
                self.try_alone(j)
                self.unmark(j, self.tried_on(j), now)
                for _ in self.each_choice(j):
                    nodes = self.tried_on(j)
                    there = self.not_alone(j, nodes & self.up(now), now)
                    enough = len(there & self.suits(j)) >= self.jobs[j].nodes
                    self.mark_empty(j, there if enough else nodes)
                    if enough:
                        break
                self.choice.pop(j, None)
            if not self.cluster.tries_all:
                return

    def not_alone(self, j: int, nodes: set[int], now: int) -> set[int]:
        """Nodes where no job has everything; for a job of whole nodes those where none runs."""
        found = set(nodes)
        for k in self.running(now):
            if self.whole(k) or self.whole(j):
                found -= set(self.started[k].nodes)
        return found

    def details(self, j: int) -> tuple[str, int]:
        """What the tasks of an array have in common."""
        return ("array", self.jobs[j].array) if self.jobs[j].array >= 0 else ("job", j)

    def is_exclusive(self, j: int) -> bool:
        """Whether the partition in which a job is looked at gives whole nodes."""
        return bool(self.cluster.exclusive) and self.cluster.exclusive[self.partition(j)]

    def everywhere(self, j: int) -> bool:
        """Whether a job has whole nodes in each of its partitions."""
        return self.jobs[j].whole or (j in self.given_alone if j in self.started else self.tried_alone(j))

    def tried_alone(self, j: int) -> bool:
        """Whether a job was tried in an exclusive partition; since 23.11 whether it is looked at in one."""
        return self.is_exclusive(j) if self.cluster.since("23.11") else self.details(j) in self.stay_alone

    def whole(self, j: int) -> bool:
        """Whether a job has, or would get, whole nodes."""
        return self.everywhere(j) or (j not in self.started and self.is_exclusive(j))

    def try_alone(self, j: int) -> None:
        """Note that a job is tried in its partition, if that has nodes for it."""
        if self.is_exclusive(j) and not self.jobs[j].whole and self.tried_on(j):
            self.stay_alone.add(self.details(j))

    def pick_alone(self, j: int, usable: set[int], on: list[int]) -> list[int] | None:
        """Nodes of a job that is tried in its partition."""
        self.try_alone(j)
        return self.pick(j, usable, on)

    def see_arrays(self, now: int) -> None:
        """See tasks of arrays for the first time, and which arrays have as many running as may.

        Tasks that wait then wait anew once fewer run.
        """
        waiting = {self.rows[row][0] for row in self.waiting(now)}
        for j, job in enumerate(self.jobs):
            if job.array >= 0 and job.submit < now:
                self.first_seen.setdefault(j, now)
            if self.tasks(j, now) >= self.most_tasks(j):
                self.held_back |= waiting & {j}
            elif j in self.held_back:
                self.held_back.remove(j)
                self.since[j] = now

    def advance(self, now: int) -> None:
        """Let all happen before an instant; what was used is counted until then, and then jobs end first."""
        while True:
            awake = [j for j in self.running(now) if j not in self.asleep]
            ends = {j: self.started[j].time + self.jobs[j].run + self.slept[j] for j in awake}
            moments = [(time, 0) for time in self.calculations[:1] if time <= now]
            moments += [(time, 1) for time in ends.values() if time < now]
            moments += [(failure.begin, 2) for failure in self.failures[:1] if failure.begin < now]
            comes = len(self.seen)
            moments += [(job.submit, 3) for job in self.jobs[comes : comes + 1] if job.submit < now]
            if not moments:
                return
            moment, kind = min(moments)
            if kind == 0:
                self.overdraw(self.calculations.pop(0))
            elif kind == 1:
                self.ended.add(min(j for j in awake if ends[j] == moment))
                self.wake(moment)
            elif kind == 2:
                self.fail(self.failures.pop(0))
                self.wake(moment)
            else:
                self.seen.add(comes)
                self.submit(comes, int(moment) + 1)

    def fail(self, failure: Outage) -> None:
        """Kill the jobs that run on a node; they wait again."""
        for j in sorted(self.running(failure.begin)):
            if failure.node in self.started[j].nodes:
                self.cut_short.append((j, self.started[j].time, failure.begin))
                self.stop(j)

    # --- minutes ----------------------------------------------------------------------------------

    def amount(self, j: int, resource: str) -> int:
        """What a job has of a resource."""
        job = self.jobs[j]
        each = {"processors": job.cores, "nodes": 1, "memory": job.memory, "gpus": job.gpus}
        return each[resource] * job.nodes

    def overdraw(self, now: int) -> None:
        """Kill the running jobs of groups that have used up their minutes; they are lost."""
        lost = set()
        for group, limit in enumerate(self.cluster.limits):
            if limit.way == "spent" and self.spent(group, now) // 60 >= limit.minutes:
                members = [k for k in self.running(now) if group in self.jobs[k].groups]
                lost |= {k for k in members if self.amount(k, limit.resource)}
        for j in lost:
            self.cut_short.append((j, self.started[j].time, now))
            self.killed.append((j, self.started.pop(j)))
            self.over.add(j)

    def spent(self, group: int, now: int) -> float:
        """Seconds that a group has used of its resource: counted at calculations, and when jobs end."""
        limit = self.cluster.limits[group]
        decay = 1.0 if limit.keeps else 1 - 0.693 / self.cluster.half_life
        ran = [*self.cut_short, *((j, s.time, s.time + self.jobs[j].run) for j, s in self.started.items())]
        ran = [each for each in ran if group in self.jobs[each[0]].groups]
        used, last = limit.before, 0
        for moment in [*(each for each in self.cluster.calculations if each <= now), now + 0.5]:
            calculated = moment <= now
            pieces = []
            for j, begin, end in ran:
                counts = last < end < min(moment, now) or (calculated and begin < moment <= end)
                seconds = min(end, moment) - max(begin, last)
                if counts and seconds > 0:
                    size = self.amount(j, limit.resource) * self.jobs[j].factor
                    pieces.append((calculated and end >= moment, seconds * decay**seconds * size))
            used += sum(piece for running, piece in pieces if not running)
            if calculated:
                if moment in self.cluster.resets:
                    used = 0.0
                used = used * decay ** (moment - last) + sum(piece for running, piece in pieces if running)
                last = int(moment)
        return used

    def promised(self, group: int, now: int) -> int:
        """Seconds that the running jobs of a group may still use of its resource, as counted last."""
        last = max((each for each in self.cluster.calculations if each <= now), default=0)
        total = 0
        for k in self.running(now):
            if group in self.jobs[k].groups:
                left = max(-(-self.jobs[k].limit // 60) * 60 - max(last - self.started[k].time, 0), 0)
                total += int(left * self.jobs[k].factor) * self.amount(k, self.cluster.limits[group].resource)
        return total

    def over_minutes(self, j: int, group: int, now: int) -> bool:
        """Whether a group has no minutes for a job."""
        limit, job = self.cluster.limits[group], self.jobs[j]
        wanted = -(-job.limit // 60) * self.amount(j, limit.resource)
        if wanted == 0 or job.factor == 0 or limit.minutes == float("inf"):
            return False
        promised = self.promised(group, now) // 60
        if limit.way == "running":
            return promised + wanted > limit.minutes
        left = limit.minutes - self.spent(group, now) // 60
        return left <= 0 or (limit.way == "safe" and promised + wanted > left)

    def up(self, now: int) -> set[int]:
        """Nodes that take jobs."""
        out = {each.node for each in self.cluster.outages if each.begin < now <= each.end}
        return set(range(len(self.cluster.nodes))) - out

    def hindering(self, j: int, now: int, moment: int) -> list[Reservation]:
        """Known reservations that a job would run into that starts at a moment."""
        return [
            each
            for each in self.cluster.reservations
            if each.known < now <= each.end and each.begin < moment + self.span[j] and each.end > moment
        ]

    def reserved(self, j: int, now: int, moment: int) -> set[int]:
        """Nodes that a job may not have that starts at a moment."""
        return {node for each in self.hindering(j, now, moment) for node in each.nodes}

    def of_all(self, j: int, now: int, moment: int) -> list[int]:
        """Ends of hindering reservations that have all nodes of the partition of a job."""
        partition = self.cluster.partitions[self.partition(j)]
        return [each.end for each in self.hindering(j, now, moment) if partition <= each.nodes]

    # --- what there is at an instant --------------------------------------------------------------

    def running(self, now: int) -> list[int]:
        """Jobs that run, by the time when they have to end."""
        on = [j for j in self.started if j not in self.ended]
        return sorted(on, key=lambda j: (self.must_end(j), self.records[j]))

    def must_end(self, j: int) -> int:
        """When a running job has to end."""
        return self.started[j].time + self.span[j] + self.slept[j]

    def waiting(self, now: int) -> list[int]:
        """Jobs that wait, once for each of their partitions: by tier, priority, number, and last run."""
        there = [
            row
            for row, (j, _) in enumerate(self.rows)
            if self.begin[j] < now and j not in self.started and j not in self.over
        ]
        tiers, rows = self.cluster.tiers, self.rows
        if self.cluster.fifo:
            return sorted(there, key=lambda row: self.place_of_record(row, there))
        return sorted(
            there,
            key=lambda row: (
                -tiers[rows[row][1]],
                -self.priority(row),
                rows[row][0],
                row != self.first[rows[row][0]],
                row,
            ),
        )

    def place_of_record(self, row: int, there: list[int]) -> tuple[tuple[int, int], bool, int]:
        """Place of a job in a partition by its record; the tasks that wait have that of the first of them."""
        j = self.rows[row][0]
        array, waiting = self.jobs[j].array, {self.rows[other][0] for other in there}
        head = min(k for k in waiting if k == j or self.jobs[k].array == array >= 0)
        return self.records[head], row != self.first[j], j

    def over_count(self, j: int, now: int) -> bool:
        """Whether a group or the array of the job has too many jobs running, or it may not run so long."""
        if self.tasks(j, now) + 1 > self.most_tasks(j) or self.jobs[j].barred == "wall":
            return True
        limits = self.cluster.limits
        members = {g: sum(g in self.groups(k) for k in self.running(now)) for g in self.groups(j)}
        return any(count + 1 > limits[group].jobs for group, count in members.items())

    def nodes_of(self, group: int, now: int) -> set[int]:
        """Nodes that the jobs of a group have."""
        return {node for k in self.running(now) if group in self.groups(k) for node in self.started[k].nodes}

    def over_limit(self, j: int, now: int, where: list[int] | None = None) -> bool:
        """Whether it or a group of the job has too much running; it may be known which nodes it would get."""
        return self.over_count(j, now) or self.over_amounts(j, now, where)

    def over_amounts(self, j: int, now: int, where: list[int] | None = None) -> bool:
        """Whether it or a group of the job has too much of what is no number of jobs."""
        if self.jobs[j].barred in ("wall", "resources"):
            return True
        for group in self.groups(j):
            members = [self.jobs[k] for k in self.running(now) if group in self.groups(k)]
            cores = sum(job.cores * job.nodes for job in [*members, self.jobs[j]])
            limit = self.cluster.limits[group]
            if cores > limit.cores:
                return True
            own = self.nodes_of(group, now)
            need = self.jobs[j].nodes
            more = len(set(where) - own) if where is not None else need
            # components of which it is seen whether they could start have no nodes yet
            without = [k for k in self.running(now) if group in self.groups(k) and not self.started[k].nodes]
            used = len(own) + sum(self.jobs[k].nodes for k in without)
            if need > limit.nodes or used + more > limit.nodes:
                return True
            if self.over_minutes(j, group, now):
                return True
        return False

    def most_tasks(self, j: int) -> float:
        """Tasks of the array of a job that may run at once."""
        return self.cluster.array_limits.get(self.jobs[j].array, float("inf"))

    def tasks_left(self, array: int, now: int) -> set[int]:
        """Tasks of an array that wait."""
        return {self.rows[row][0] for row in self.waiting(now) if self.jobs[self.rows[row][0]].array == array}

    def tasks(self, j: int, now: int) -> int:
        """Tasks of the array of a job that run."""
        array = self.jobs[j].array
        return sum(array >= 0 and self.jobs[k].array == array for k in self.running(now))

    def left(self, node: int, on: list[int]) -> Node | None:
        """What a node has left beside some running jobs; None if one of them has it to itself."""
        those = [k for k in on if node in self.started[k].nodes]
        if any(self.whole(k) and k not in self.ghosts for k in those):
            return None
        return self.beside(node, on)

    def beside(self, node: int, on: list[int]) -> Node:
        """What a node has left beside what some running jobs asked for."""
        those = [k for k in on if node in self.started[k].nodes]
        there = [self.jobs[k] for k in those]
        kind = self.cluster.nodes[node]
        return Node(
            kind.cores - sum(self.jobs[k].cores for k in those if k not in self.ghosts),
            kind.memory - sum(job.memory for job in there),
            kind.gpus - sum(job.gpus for job in there),
        )

    def fits(self, j: int, node: int, on: list[int]) -> bool:
        """Whether a part of a job fits on a node beside some running jobs."""
        job = self.jobs[j]
        if self.whole(j) and any(node in self.started[k].nodes for k in on if k not in self.ghosts):
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
        there = {node for node in self.cluster.partitions[self.partition(j)] if self.fits(j, node, [])}
        return there & self.featured(j) if self.cluster.featured else there

    def featured(self, j: int) -> set[int]:
        """Nodes that the constraint of a job allows: of the choice or the part that is tried, else of all."""
        row = self.jobs[j].features
        if j in self.part:
            return self.part[j]
        return self.cluster.choices[row][self.choice[j]] if j in self.choice else self.cluster.featured[row]

    def each_choice(self, j: int) -> Iterator[int]:
        """Try one choice of nodes of a job after the other."""
        row = self.jobs[j].features
        for k in range(len(self.cluster.choices.get(row, [0]))):
            if row in self.cluster.choices:
                self.choice[j] = k
            yield k
        self.choice.pop(j, None)

    def as_part(self, j: int, nodes: set[int], count: int, ask: Callable[[], Any]) -> Any:
        """The answer to a question about a job as if it wanted so many of some nodes."""
        job, self.part[j] = self.jobs[j], nodes
        self.jobs[j] = job._replace(nodes=count)
        answer = ask()
        self.jobs[j] = job
        del self.part[j]
        return answer

    def parts(self, j: int) -> list[tuple[set[int], int]]:
        """Parts of a job with numbers of nodes."""
        return self.cluster.numbered.get(self.jobs[j].features, []) if self.cluster.featured else []

    def parts_now(
        self, j: int, there: set[int], on: list[int]
    ) -> tuple[list[int] | None, set[int], set[int], int]:
        """Nodes of a job that starts; else taken ones, those of the part that lacks some, how many."""
        parts, taken = self.parts(j), list[int]()
        for nodes, count in parts:
            found: list[int] | None = None
            for other, _ in parts:
                if found is None:
                    ask = partial(self.pick_now, j, (there & nodes & other) - set(taken), on)
                    found = self.as_part(j, nodes & other, count, ask)
            if found is None:
                return None, set(taken), nodes, count
            taken += found
        left, all_nodes = self.jobs[j].nodes - len(taken), self.featured(j)
        rest: list[int] | None = []
        if left:
            ask = partial(self.pick_beside, j, (there & all_nodes) - set(taken), set(taken), on)
            rest = self.as_part(j, all_nodes, left, ask) if left > 0 else None
        if rest is None:
            return None, set(taken), all_nodes, left
        return taken + rest, set(taken), set(), 0

    def pick_beside(self, j: int, usable: set[int], taken: set[int], on: list[int]) -> list[int] | None:
        """Nodes for the rest of a job, at first in the runs that have taken nodes."""
        kinds, wanted = self.cluster.nodes, self.jobs[j].nodes
        fitting = self.tried(j, usable, on)
        if len(fitting) < wanted:
            return None
        if self.cluster.linear:
            groups = {node: (kinds[node].weight, kinds[node].line) for node in fitting}
            enough = [
                g for g in sorted(set(groups.values())) if sum(v <= g for v in groups.values()) >= wanted
            ]
            fitting = {node for node in fitting if groups[node] <= enough[0]}
        runs: list[list[int]] = []
        weight: Any = None  # of the run, if it has a fitting node; "new" after a run of other weight
        for node in range(len(kinds)):
            if node not in fitting | taken:
                continue
            heavy = self.weight_of(node)
            if not runs or runs[-1][-1] != node - 1:
                runs.append([node])
                weight = None
            elif weight == "new":
                runs[-1] = [node]
            elif weight is not None and weight != heavy:
                runs.append([node])
                weight = "new"
            else:
                runs[-1].append(node)
            if node in fitting:
                weight = heavy
        chosen: list[int] = []
        while len(chosen) < wanted:
            need = wanted - len(chosen)
            best: Any = None
            for run in runs:
                fit = [node for node in run if node in fitting and node not in chosen]
                if not fit:
                    continue
                first = next((node for node in run if node in taken), None)
                cores = [self.left(node, on).cores for node in fit]  # type: ignore[union-attr]
                worth = len(fit) if self.cluster.linear else sum(cores)
                if self.jobs[j].gpus and not self.cluster.linear:
                    worth = self.jobs[j].cores * len(fit)
                this = (self.weight_of(fit[0]), worth, first, len(fit) >= need, fit, run)
                if (
                    best is None
                    or (best[2] is None and first is not None)
                    or this[0] < best[0]
                    or (this[0] == best[0] and this[3] and (not best[3] or worth < best[1]))
                    or (this[0] == best[0] and not this[3] and worth > best[1])
                ):
                    best = this
            *_, first, _, fit, run = best
            start = run[0] if first is None else first
            chosen += ([n for n in fit if n >= start] + [n for n in fit[::-1] if n < start])[:need]
        return chosen

    def weight_of(self, node: int) -> tuple[int, int]:
        """Weight of a node with its marks; of no account with select/linear."""
        weight = self.cluster.nodes[node].weight + (node in self.heavier)
        return (0, 0) if self.cluster.linear else (weight, self.marks[node])

    def parts_later(
        self, j: int, now: int, moment: int, stretches: list[tuple[int, int, set[int]]], now_only: bool
    ) -> tuple[int, list[int]] | None:
        """When each part of a job could start, and on which nodes, which may be more than it wants."""
        job, everything = self.jobs[j], set(range(len(self.cluster.nodes)))
        most = job.nodes
        least = most if job.wanted > most else -(-most // max(job.cores, 1))
        begin, nodes = None, list[int]()

        def place(count: int) -> tuple[int, list[int]] | None:
            there = self.usable(j, now, moment, stretches)[0] - set(nodes)
            return self.earliest(j, there, now, now_only) if len(there) >= count else None

        for where, number in self.parts(j):
            count = max(number, least)
            found = None
            if count <= most:
                found = self.as_part(j, where, count, partial(place, count))
            if found is None:
                break
            nodes += found[1]
            begin = max(begin or 0, found[0])
        complete = found is not None
        if begin is None or (not complete and len(nodes) >= most):
            return None
        if len(nodes) < most:
            count = max(most - len(nodes), least)
            if count > most - len(nodes):
                return None
            rest = self.as_part(j, everything, count, partial(place, count))
            if rest is None:
                return None
            nodes += rest[1]
        return begin, nodes

    def tried_on(self, j: int) -> set[int]:
        """Nodes on which a job is tried: those that suit it, or would if they had the GPUs."""
        if self.cluster.linear:
            return self.suits(j)
        job, found = self.jobs[j], set(self.cluster.partitions[self.partition(j)])
        if self.cluster.featured:
            found &= self.featured(j)
        kinds = self.cluster.nodes
        return {n for n in found if kinds[n].cores >= job.cores and kinds[n].memory >= job.memory}

    def unmark(self, j: int, nodes: set[int], now: int) -> None:
        """Forget which jobs with GPUs were tried on nodes, and prefer those that the groups of a job have."""
        self.marks |= dict.fromkeys(nodes, 0)
        self.heavier -= nodes
        held = [g for g in self.groups(j) if self.cluster.limits[g].nodes < float("inf")]
        own = {node for group in held for node in self.nodes_of(group, now)}
        lines = {self.cluster.nodes[node].line for node in nodes & own}
        self.heavier |= {node for node in nodes - own if self.cluster.nodes[node].line in lines}

    def mark(self, j: int, nodes: set[int]) -> None:
        """Note that a job with GPUs was tried on some nodes, which makes them lighter."""
        gpus = self.jobs[j].gpus
        if gpus:
            kinds = self.cluster.nodes
            self.marks |= {node: -(kinds[node].gpus if self.everywhere(j) else gpus) for node in nodes}

    def mark_empty(self, j: int, nodes: set[int]) -> None:
        """The same for nodes where it was tried as if nothing else ran."""
        self.mark(j, {node for node in nodes if self.cluster.nodes[node].gpus >= self.jobs[j].gpus})

    def mark_tested(self, j: int, there: set[int], here: set[int], now: int) -> None:
        """The same for a job that could not start: in service, or anywhere if too few nodes are left."""
        need = self.jobs[j].nodes
        available = len(self.not_alone(j, there, now)) >= need
        if available:
            self.mark_empty(j, here)
        if not available or len(here & self.suits(j)) < need:
            self.mark_empty(j, self.tried_on(j))

    def has_licences(self, j: int, now: int) -> bool:
        """Whether there are licences for a job."""
        held = [self.jobs[k].licences for k in [*self.running(now), j] if self.jobs[k].licences]
        return all(sum(each[k] for each in held) <= most for k, most in enumerate(self.cluster.licences))

    def start(self, j: int, now: int, by: int, nodes: list[int]) -> None:
        """Start a job."""
        self.given_alone -= {j}
        if self.whole(j):
            self.given_alone.add(j)
        self.started[j] = Started(now, by, nodes)
        self.first[j] = self.row[j]
        if self.jobs[j].array >= 0 and j not in self.split:
            # the tasks that are left get a new record
            self.split.add(j)
            tasks = [k for k in range(j + 1, len(self.jobs)) if self.jobs[k].array == self.jobs[j].array]
            if tasks and tasks[0] not in self.started:
                youngest = max(k for k, job in enumerate(self.jobs) if job.submit < now)
                self.records[tasks[0]] = (youngest, len(self.split))

    # --- preemption -------------------------------------------------------------------------------

    def stop(self, j: int) -> None:
        """Kill a running job."""
        self.asleep.pop(j, None)
        self.slept[j] = 0
        self.killed.append((j, self.started.pop(j)))

    def wake(self, now: int) -> None:
        """Let those go on who have their cores again."""
        rules = self.cluster.rules
        if rules is None:
            return
        for j in sorted(self.asleep, key=lambda j: (-rules.level[self.row[j]], self.records[j])):
            awake = [k for k in self.running(now) if k not in self.asleep]
            free = True
            for node in self.started[j].nodes:
                there = [k for k in awake if node in self.started[k].nodes]
                others = [self.jobs[k] for k in there]
                taken = sum(job.cores for job in others)
                free &= not others if self.whole(j) else not any(self.whole(k) for k in there)
                free &= self.whole(j) or taken + self.jobs[j].cores <= self.cluster.nodes[node].cores
            if free:
                self.slept[j] += now - self.asleep.pop(j)

    def candidates(self, j: int, now: int) -> list[int]:
        """Running jobs that may give way, the first ones first."""
        rules = self.cluster.rules
        if rules is None:
            return []
        found = []
        for k in self.running(now):
            ran = now - self.started[k].time
            if (
                rules.way[self.row[k]] == "keep"
                or (rules.group[self.row[j]], rules.group[self.row[k]]) not in rules.may
            ):
                continue
            if rules.way[self.row[k]] != "suspend" and ran < rules.exempt[self.row[k]]:
                continue
            if set(self.started[k].nodes) & self.cluster.partitions[self.partition(j)]:
                found.append(k)
        if rules.youngest:
            return sorted(found, key=lambda k: (-self.started[k].time, self.records[k]))
        return sorted(found, key=lambda k: (rules.level[self.row[k]], self.jobs[k].nodes, self.records[k]))

    def without(self, j: int, usable: set[int], now: int, out: list[int]) -> list[int] | None:
        """Nodes of a job if some running jobs were out of its way."""
        rules = self.cluster.rules
        assert rules is not None
        self.ghosts = {k for k in out if rules.way[self.row[k]] == "suspend"}
        on = [k for k in self.running(now) if k not in out or k in self.ghosts]
        nodes = self.pick(j, usable, on)
        self.ghosts = set()
        return nodes

    def room(self, j: int, usable: set[int], now: int) -> tuple[list[int], list[int]] | None:
        """Nodes of a job, and who gives way for it."""
        rules = self.cluster.rules
        queue = self.candidates(j, now)
        if rules is None or not queue:
            return None

        def on(nodes: list[int], k: int) -> int:
            return len(set(nodes) & set(self.started[k].nodes))

        if rules.linear:
            for turn in range(2):
                gave = {}
                nodes = None
                for count, k in enumerate(queue, 1):
                    nodes = self.without(j, usable, now, queue[:count])
                    sleep = {each for each in queue[:count] if rules.way[self.row[each]] == "suspend"}
                    away = set(queue[:count]) - sleep
                    on_them = [each for each in self.running(now) if each not in away]
                    self.ghosts = sleep
                    gave[k] = sum(
                        node in usable and self.fits(j, node, on_them) for node in self.started[k].nodes
                    )
                    self.ghosts = set()
                    if nodes is not None:
                        break
                if nodes is None:
                    return None
                if turn == 0 and len(queue) > 1:
                    last = queue[count - 1]
                    others = sorted(queue[: count - 1], key=lambda k: -gave[k])
                    useful = [k for k in others if gave[k]]
                    useless = [k for k in others if not gave[k]]
                    queue = [last, *useful, *useless, *queue[count:]]
                    continue
                if nodes is not None:
                    hit = [k for k in queue if on(nodes, k)]
                    dead = [k for k in hit if rules.way[self.row[k]] != "suspend"]
                    return nodes, dead or [k for k in hit if k not in self.asleep]
            return None
        sleepers = [k for k in queue if rules.way[self.row[k]] == "suspend"]
        levels = sorted({rules.level[self.row[k]] for k in sleepers}, reverse=True)
        nodes = self.without(j, usable, now, sleepers)
        if nodes is not None and sleepers:
            for level in levels:
                fewer = [k for k in sleepers if rules.level[self.row[k]] < level]
                other = self.without(j, usable, now, fewer)
                if other is None:
                    break
                sleepers, nodes = fewer, other
            return nodes, self.put_to_sleep(j, nodes, sleepers, now)
        mortal = [k for k in queue if rules.way[self.row[k]] != "suspend"]
        passes, total = 0, len(queue)
        order = list(queue)
        while mortal:
            gone: list[int] = []
            nodes = None
            for k in order:
                if k in mortal and on(list(usable), k):
                    gone.append(k)
                    nodes = self.without(j, usable, now, gone)
                    if nodes is not None:
                        break
            if nodes is None:
                return None
            passes += 1
            if passes > rules.reorder + 1 or passes >= total:
                return nodes, [k for k in gone if on(nodes, k)]
            last = gone[-1]
            place = order.index(last)
            before = order[:place] if rules.strict else sorted(order[:place], key=lambda k: -on(nodes, k))
            behind = order[place + 1 :]
            if not rules.strict:
                # those of which no node is used do not go before those behind
                before = [k for k in before if on(nodes, k)] + [k for k in before if not on(nodes, k)]
            order = [last, *before, *behind]
        return None

    def put_to_sleep(self, j: int, nodes: list[int], sleepers: list[int], now: int) -> list[int]:
        """Who has to sleep for a job on its nodes."""
        job, fallen = self.jobs[j], []
        for node in nodes:
            here = [k for k in sleepers if node in self.started[k].nodes]
            everybody = [k for k in self.running(now) if node in self.started[k].nodes]
            still = [k for k in everybody if k not in here or not (k in self.asleep or k in fallen)]
            for k in here:
                if k not in still:
                    continue
                free = self.cluster.nodes[node].cores - sum(self.jobs[o].cores for o in still)
                if free >= job.cores and (not self.whole(j) or not still) and not self.whole(k):
                    continue
                still.remove(k)
                fallen.append(k)
        return fallen

    def make_room(self, j: int, usable: set[int], now: int) -> list[int] | None:
        """Let others give way; nodes of the job if it can start at once."""
        rules = self.cluster.rules
        found = self.room(j, usable, now)
        if rules is None or found is None:
            return None
        nodes, victims = found
        if not victims or rules.way[self.row[victims[0]]] == "suspend":
            for k in victims:
                self.asleep[k] = now
                self.given_way.append((k, j, now))
            return nodes
        if now < self.again.get(j, 0):
            return None
        self.again[j] = now + rules.patience
        self.killing.add(j)
        for k in victims:
            self.given_way.append((k, j, now))
            self.leaving |= set(self.started[k].nodes)
            self.stop(k)
            if rules.way[self.row[k]] == "cancel":
                self.over.add(k)
            self.begin[k] = now + rules.hold + 1
        return None

    # --- which nodes ------------------------------------------------------------------------------

    def pick(self, j: int, usable: set[int], on: list[int]) -> list[int] | None:
        """Nodes of a job among usable ones beside some running jobs: best-fit runs of neighbours."""
        fitting = self.tried(j, usable, on)
        return self.best(j, fitting, on) if len(fitting) >= self.jobs[j].nodes else None

    def pick_now(self, j: int, usable: set[int], on: list[int]) -> list[int] | None:
        """The same for a job that starts: of the lightest groups of nodes that are enough."""
        job, nodes = self.jobs[j], self.cluster.nodes
        if not self.cluster.linear:
            return self.pick(j, usable, on)
        fitting = self.tried(j, usable, on)
        groups = {node: (nodes[node].weight, nodes[node].line) for node in fitting}
        for group in sorted(set(groups.values())):
            lightest = {node for node in fitting if groups[node] <= group}
            if len(lightest) >= job.nodes:
                return self.best(j, lightest, on)
        return None

    def tried(self, j: int, usable: set[int], on: list[int]) -> set[int]:
        """Usable nodes where a part of a job fits; it leaves marks where it has memory and GPUs."""
        job = self.jobs[j]
        lefts = {node: self.beside(node, on) for node in usable}
        marked = set()
        for node, left in lefts.items():
            others = [k for k in on if node in self.started[k].nodes and k not in self.ghosts]
            alone = any(map(self.whole, others)) or (self.is_exclusive(j) and others)
            least = self.cluster.nodes[node].gpus if self.everywhere(j) else 0
            if left.memory >= job.memory and left.gpus >= max(job.gpus, least) and not alone:
                marked.add(node)
        self.mark(j, marked)
        return {node for node in usable if self.fits(j, node, on)}

    def best(self, j: int, fitting: set[int], on: list[int]) -> list[int]:
        """Nodes among those that fit."""
        job = self.jobs[j]

        def order(node: int) -> tuple[int, int]:
            weight = self.cluster.nodes[node].weight + (node in self.heavier)
            return (0, 0) if self.cluster.linear else (weight, self.marks[node])

        runs: list[list[int]] = []
        for node in sorted(fitting):
            if runs and runs[-1][-1] == node - 1 and order(node) == order(node - 1):
                runs[-1].append(node)
            else:
                runs.append([node])

        def free(node: int) -> int:
            left = self.left(node, on)
            assert left is not None
            return left.cores

        def worth(run: list[int]) -> int:
            if self.cluster.linear:
                return len(run)
            return job.cores * len(run) if job.gpus else sum(map(free, run))

        chosen: list[int] = []
        while len(chosen) < job.nodes:
            need = job.nodes - len(chosen)
            light = [run for run in runs if order(run[0]) == min(order(each[0]) for each in runs)]
            enough = [run for run in light if len(run) >= need]
            best = min(enough, key=worth) if enough else max(light, key=worth)
            if not self.cluster.linear:
                # one that is too short, but worth more than the best before it, takes its place
                best = light[0]
                for run in light[1:]:
                    if len(run) < need:
                        better = worth(run) > worth(best)
                    else:
                        better = len(best) < need or worth(run) < worth(best)
                    best = run if better else best
            if need == 1 and not self.cluster.linear and not job.gpus:
                chosen.append(min(best, key=free))
            else:
                chosen += best[:need]
            runs.remove(best)
        return chosen

    # --- passes -----------------------------------------------------------------------------------

    def main(self, now: int, most: int) -> None:
        """The first job of a partition that does not fit closes it and takes its nodes from the others."""
        cluster = self.cluster
        self.leaving = set()
        closed: set[int] = set()
        lost: set[int] = set()
        looked: dict[int, int] = {}
        rejected: set[tuple[int, int]] = set()
        count = depth = 0
        for row in self.waiting(now):
            if cluster.most_started and count >= cluster.most_started:
                return
            j = self.rows[row][0]
            if self.is_elsewhere(j, now) or self.jobs[j].barred == "time":
                continue
            self.look_at(row)
            self.span[j] = self.limit[j]
            p, array = self.partition(j), self.jobs[j].array
            if self.jobs[j].hetjob >= 0:
                closed.add(p)
                lost |= cluster.partitions[p]
                continue
            if (array, p) in rejected:
                continue
            if array >= 0:
                rejected.add((array, p))
                if self.tasks(j, now) >= self.most_tasks(j):
                    continue
            looked[p] = looked.get(p, 0) + 1
            if cluster.partition_depth and looked[p] > cluster.partition_depth:
                continue
            depth += 1
            if most and depth > most:
                return
            if p in closed:
                self.noted.append(now)
                continue
            if self.over_count(j, now):
                continue
            if self.jobs[j].nodes > len(cluster.partitions[p] & self.up(now) - lost):
                self.noted.append(now)
                closed.add(p)
                lost |= cluster.partitions[p]
                continue
            if self.jobs[j].barred in ("quality", "account") or not self.has_licences(j, now):
                continue
            self.try_alone(j)
            self.unmark(j, self.tried_on(j), now)
            if self.of_all(j, now, now):
                continue
            over, able, waits = False, False, False
            nodes: list[int] | None = None
            for _ in self.each_choice(j):
                here = (self.tried_on(j) & self.up(now)) - lost - self.reserved(j, now, now)
                there = here - self.leaving
                if self.parts(j):
                    nodes, taken, lacking, number = self.parts_now(j, there, self.running(now))
                else:
                    nodes = self.pick_now(j, there, self.running(now))
                over = self.over_limit(j, now, nodes)
                over |= self.jobs[j].barred == "memory" and nodes is None
                if nodes is None and not over and not self.parts(j):
                    nodes = self.make_room(j, there, now)
                if nodes is not None:
                    break
                self.mark_tested(j, there, here, now)
                if self.parts(j):
                    suits = self.as_part(j, lacking, number, partial(self.suits, j)) - taken
                    tried = (here & self.as_part(j, lacking, number, partial(self.tried_on, j))) - taken
                    able = len(suits) >= number
                    waits = len(tried & suits) >= number or self.busy(j, tried, now)
                    break
                need = self.jobs[j].nodes
                in_service = len(here & self.suits(j))
                able |= len(self.suits(j)) >= need
                waits |= in_service >= need or self.busy(j, here, now)
                if self.is_elsewhere(j, now):
                    break
            self.choice.pop(j, None)
            if over:
                continue
            if nodes is None:
                if able and waits and self.gets_plan(j, now):
                    closed.add(p)
                    lost |= cluster.partitions[p]
            else:
                self.start(j, now, 0, nodes)
                rejected.discard((array, p))
                count += 1

    def busy(self, j: int, there: set[int], now: int) -> bool:
        """Whether a job has some of the nodes, alone if this one would share them, or is leaving them."""
        alone = self.whole(j) or self.cluster.linear
        own = [self.started[k].nodes for k in self.running(now) if alone or self.whole(k)]
        return bool(there & self.leaving) or any(there & set(nodes) for nodes in own)

    def gets_plan(self, j: int, now: int) -> bool:
        """Whether nodes are kept for a job that cannot start."""
        cluster = self.cluster
        enough = self.priority(self.row[j]) >= cluster.least_priority
        begin = max(self.begin[j], self.first_seen.get(j, 0), self.since.get(j, 0))
        return enough and now - begin >= cluster.least_age

    # --- components of heterogeneous jobs -----------------------------------------------------------

    def learn(self, row: int, begin: int) -> None:
        """Note when a component could start, if that is earlier than what is known."""
        j = self.rows[row][0]
        if self.jobs[j].hetjob not in self.hetjobs:
            self.hetjobs.append(self.jobs[j].hetjob)
        if j not in self.starts or begin < self.starts[j][0]:
            self.starts[j] = (begin, row)

    def known(self, hetjob: int, but: int = -1) -> dict[int, tuple[int, int]]:
        """What is known of the components of a job."""
        return {k: v for k, v in self.starts.items() if self.jobs[k].hetjob == hetjob and k != but}

    def floor(self, hetjob: int, but: int = -1) -> int:
        """Before when no component starts, for the others."""
        return max([self.floors.get(hetjob, 0), *(begin for begin, _ in self.known(hetjob, but).values())])

    def deadlock(self, j: int, begin: int) -> bool:
        """Whether two jobs would wait for each other in two partitions."""
        own, mine = self.partition(j), self.jobs[j].hetjob
        table = self.planned_parts
        table[own, mine] = max(table.get((own, mine), 0), begin)
        for p in range(len(self.cluster.partitions)):
            for other in self.hetjobs:
                late = table.get((own, other), 0) > table[own, mine]
                early = 0 < table.get((p, other), 0) < table[own, mine]
                if p != own and (p, mine) in table and late and early:
                    return True
        return False

    def start_together(self, now: int) -> None:
        """Start the jobs of which all components can at once."""
        cluster = self.cluster
        for hetjob in self.hetjobs:
            if cluster.most_backfilled and self.count >= cluster.most_backfilled:
                return
            # one that was killed in this pass does not wait yet, one that is lost no more
            gone = {k for k, _, when in self.given_way if when == now} | set(self.started) | self.over
            known = {k: row for k, (_, row) in self.known(hetjob).items() if k not in gone}
            begin = self.floor(hetjob)
            if len(known) < sum(job.hetjob == hetjob for job in self.jobs):
                begin = now + YEAR
            if begin <= now:
                counted = []
                for k, row in known.items():
                    self.look_at(row)
                    if self.over_limit(k, now):
                        begin = now + YEAR
                        break
                    self.started[k] = Started(now, 1, [])
                    counted.append(k)
                for k in counted:
                    del self.started[k]
            self.floors[hetjob] = min(begin, now + YEAR)
            if begin <= now:
                self.start_parts(known, now)

    def start_parts(self, known: dict[int, int], now: int) -> None:
        """Start components one after the other, or none of them."""
        taken: set[int] = set()
        done: list[int] = []
        for k, row in known.items():
            self.look_at(row)
            self.span[k] = self.jobs[k].limit
            self_fits = self.has_licences(k, now)
            if self_fits:
                self.try_alone(k)
            self_fits = self_fits and not self.of_all(k, now, now)
            nodes = None
            if self_fits:
                self.unmark(k, self.tried_on(k), now)
                for _ in self.each_choice(k):
                    kept = taken | self.leaving | self.reserved(k, now, now)
                    there = self.tried_on(k) & self.up(now) - kept
                    if self.parts(k):
                        nodes = self.parts_now(k, there, self.running(now))[0]
                    else:
                        nodes = self.pick_now(k, there, self.running(now))
                    if nodes is not None:
                        break
                self.choice.pop(k, None)
            if nodes is None:
                for each in done:
                    del self.started[each]
                    self.begin[each] = now + (self.cluster.rules.hold if self.cluster.rules else 120) + 1
                return
            self.start(k, now, 1, nodes)
            done.append(k)
            taken |= set(nodes)
        self.count += len(done)

    def backfill(self, now: int, most: int = 0) -> None:
        """Each job starts or is planned, such that it delays no plan before it; components start last."""
        if not self.waiting(now):
            self.rest = None
            return
        self.most, self.before = most, self.tests_made
        try:
            if self.rest is None:
                if self.backfilled % 2 == 0:
                    self.starts, self.floors = {}, {}
                self.backfilled += 1
                self.planned_parts: dict[tuple[int, int], int] = {}
                self.planned, self.count = set(), 0
                self.rest = self.plan_all(now)
                next(self.rest)
            elif most >= 0:
                self.rest.send(now)
        except StopIteration:
            most = -1
        if most < 0:
            self.rest = None
            self.start_together(now)

    def plan_all(self, now: int) -> Generator[None, int, None]:
        """Start and plan jobs, but for components, which are planned only."""
        cluster = self.cluster
        self.leaving = set()
        self.made, self.full = 1, False
        begin = now // cluster.resolution * cluster.resolution
        end = (now + cluster.window) // cluster.resolution * cluster.resolution
        stretches: list[tuple[int, int, set[int]]] = [(begin, end, self.up(now))]
        of_user: dict[int, int] = {}
        of_partition: dict[int, int] = {}
        of_array: dict[tuple[int, int], int] = {}
        moved: dict[int, int] = {}
        last, chain = -1, 0
        cut, whole = -1, 0
        rejected: set[tuple[int, int]] = set()
        self.tests_made = self.before = 0
        queue = self.waiting(now)
        still = set(queue)
        for row in queue:
            if row not in still:
                continue
            # of an array one task is seen to be within limits of numbers of jobs
            if (
                cluster.tests
                and self.tests_made >= cluster.tests
                and not self.is_further(row, of_array, moved, rejected)
            ):
                return
            if self.most > 0 and self.tests_made - self.before >= self.most:
                now = yield
                self.leaving = set()
                still = set(self.waiting(now))
            if row not in still:
                continue
            j = self.rows[row][0]
            if self.is_elsewhere(j, now):
                continue
            self.look_at(row)
            self.span[j] = self.jobs[j].least or self.jobs[j].limit
            job, p = self.jobs[j], self.partition(j)
            if job.hetjob >= 0:
                self.learn(row, now + YEAR)
                if self.floor(job.hetjob, j) > now + cluster.window:
                    continue
            further = self.is_further(row, of_array, moved, rejected)
            over = self.tasks(j, now) >= self.most_tasks(j) if further else self.over_count(j, now)
            if job.barred == "quality" or over:
                continue
            if cluster.tests_of_partition and of_partition.get(p, 0) >= cluster.tests_of_partition:
                continue
            if cluster.tests_of_user and of_user.get(job.user, 0) >= cluster.tests_of_user:
                continue
            if (job.array, p) in rejected or moved.get(job.array, p) != p:
                continue
            planned = of_array.get((job.array, p), 0)
            row_of_plans = chain if last == job.array else 0
            if planned and max(planned, row_of_plans) >= cluster.plans_of_array:
                continue
            if planned and planned < row_of_plans:
                mates = [k for k in still if self.jobs[self.rows[k][0]].array == job.array]
                if chain >= len({self.rows[k][0] for k in mates} - set(self.started)):
                    continue
            if cluster.since("23.02") and planned and planned + self.tasks(j, now) >= self.most_tasks(j):
                continue
            of_partition[p] = of_partition.get(p, 0) + 1
            of_user[job.user] = of_user.get(job.user, 0) + 1
            before = stretches
            if cut >= 0 and cut == job.array and self.has_licences(j, now):
                # the task behind one that started with the shortest limit is tested with its own
                self.limit |= dict.fromkeys(self.tasks_left(cut, now), whole)
                cut = -1
            limit = self.limit[j]
            stretches = self.test(j, now, stretches) if self.has_licences(j, now) else stretches
            if self.full:
                return
            if job.array >= 0 and j not in self.started:
                if stretches is before:
                    rejected.add((job.array, p))
                else:
                    of_array[job.array, p] = planned + 1
                    chain = chain + 1 if last == job.array else 1
                    last = job.array
            if j in self.started:
                stretches = self.keep_running(j, now, stretches)
                if job.array >= 0:
                    moved[job.array] = p
                    if (job.least or job.limit) < limit and not cluster.since("24.05"):
                        self.limit |= dict.fromkeys(self.tasks_left(job.array, now), job.least or job.limit)
                        cut, whole = job.array, limit
                self.count += 1
                if cluster.most_backfilled and self.count >= cluster.most_backfilled:
                    return
                if cluster.since("23.02") and cluster.tests and self.tests_made >= cluster.tests:
                    return

    def is_further(
        self,
        row: int,
        of_array: dict[tuple[int, int], int],
        moved: dict[int, int],
        rejected: set[tuple[int, int]],
    ) -> bool:
        """Whether a task is tried behind another one of its array that has started or got a plan."""
        j, p = self.rows[row]
        array = self.jobs[j].array
        planned = of_array.get((array, p), 0) > 0 and (array, p) not in rejected
        return array >= 0 and (planned or array in moved)

    def keep_running(
        self, j: int, now: int, stretches: list[tuple[int, int, set[int]]]
    ) -> list[tuple[int, int, set[int]]]:
        """Stretches without the nodes of a job that started and shares none of them, until it has to end."""
        cluster = self.cluster
        gives_way = cluster.rules is not None and cluster.rules.way[self.row[j]] != "keep"
        size = cluster.stretches or cluster.tests or 2 * len(self.jobs) + 1
        if cluster.linear or gives_way or not self.whole(j) or self.made >= size:
            return stretches
        first = stretches[0][0]
        last = max(cluster.end_of_plan(now + self.span[j]), first + cluster.resolution)
        self.made += cuts(stretches, first, last)
        return planned(stretches, self.started[j].nodes, first, last)

    def test(
        self, j: int, now: int, stretches: list[tuple[int, int, set[int]]]
    ) -> list[tuple[int, int, set[int]]]:
        """Start or plan a job; the stretches with its plan."""
        job, cluster = self.jobs[j], self.cluster
        again = cluster.one_plan and j in self.planned
        no_plan = not self.gets_plan(j, now) or again
        floor = self.floor(job.hetjob, j) if job.hetjob >= 0 else now
        moment = now
        is_tried = False
        while True:
            moment = max(moment, floor)
            while ends := self.of_all(j, now, moment):
                moment = max(ends)
            if moment > now + cluster.window:
                return stretches
            usable: set[int] = set()
            later, found, enough = None, None, False
            for _ in self.each_choice(j):
                there, later = self.usable(j, now, moment, stretches)
                if self.parts(j):
                    every = set(range(len(cluster.nodes)))
                    ask = partial(self.usable, j, now, moment, stretches)
                    enough |= len(self.as_part(j, every, job.nodes, ask)[0]) >= job.nodes
                    if enough:
                        found = self.parts_later(j, now, moment, stretches, no_plan)
                    usable = there
                    continue
                enough |= len(there) >= job.nodes
                place = self.earliest(j, there, now, no_plan) if len(there) >= job.nodes else None
                if place is not None and (found is None or place[0] < found[0]):
                    found, usable = place, there
            if enough and not is_tried:
                self.tests_made += 1
                is_tried = True
            if found is None or (no_plan and found[0] > now):
                if later is None or no_plan:
                    return stretches
                moment = later
                continue
            if moment > found[0]:
                self.noted.append(now)
            begin, nodes = max(found[0], moment), found[1]
            if begin <= now and set(nodes) & self.leaving:
                begin, later = now + 1, None
            if job.hetjob >= 0:
                self.learn(self.row[j], begin)
            elif begin <= now:
                if job.barred == "account" or self.over_count(j, now):
                    if self.over_amounts(j, now):
                        return stretches
                    at_once = None
                elif self.parts(j):
                    self.try_alone(j)
                    self.unmark(j, usable, now)
                    at_once = self.parts_now(j, usable, self.running(now))[0]
                    if at_once is not None and self.over_limit(j, now, at_once):
                        return stretches
                elif self.pick_alone(j, usable, self.running(now)) is not None:
                    self.unmark(j, usable, now)
                    lightest = self.pick_now(j, usable, self.running(now))
                    assert lightest is not None
                    if self.over_limit(j, now, lightest):
                        return stretches
                    self.start(j, now, 1, lightest)
                    return stretches
                elif self.over_limit(j, now, nodes):
                    return stretches
                else:
                    at_once = self.make_room(j, usable, now)
                if at_once is not None:
                    self.start(j, now, 1, at_once)
                    return stretches
                later = None
            if no_plan and (begin > now or again):
                self.planned.add(j)
                return stretches
            if later is not None and begin > later:
                moment = later
                continue
            if begin > now + cluster.window:
                self.planned.add(j)
                return stretches
            unit = cluster.resolution
            first = begin // unit * unit
            last = max(cluster.end_of_plan(begin + self.span[j]), first + unit)
            if begin > now and any(
                e > first and b < last and not set(nodes) <= free for b, e, free in stretches
            ):
                moment = begin if begin > moment else begin + unit
                continue
            if job.hetjob >= 0 and self.deadlock(j, begin):
                return stretches
            self.planned.add(j)
            if self.over_amounts(j, now) or job.barred == "memory":
                return stretches
            size = cluster.stretches or cluster.tests or 2 * len(self.jobs) + 1
            self.full = self.made >= size
            self.made += cuts(stretches, first, last)
            return stretches if self.full else planned(stretches, nodes, first, last)

    def usable(
        self, j: int, now: int, moment: int, stretches: list[tuple[int, int, set[int]]]
    ) -> tuple[set[int], int | None]:
        """Nodes that no plan has from a moment on until the job would end, and when to try again."""
        partition = self.cluster.partitions[self.partition(j)]
        suits = (partition & self.up(now)) - self.reserved(j, now, moment)
        usable, later = set(suits), None
        for k, (begin, end, free) in enumerate(stretches):
            if end <= moment:
                continue
            if later is None and k + 1 < len(stretches):
                following = suits & stretches[k + 1][2]
                if not following <= usable & free:
                    later = end
            if begin > moment + self.span[j]:
                if later is None and k + 2 < len(stretches) and self.cluster.since("24.11"):
                    later = stretches[k + 1][1]
                break
            usable &= free
        if self.reserved(j, now, moment) & self.cluster.partitions[self.partition(j)]:
            known = [each.end for each in self.cluster.reservations if each.known < now <= each.end]
            unit = self.cluster.resolution
            reopened = -(-min(end for end in known if end >= moment) // unit) * unit + 1
            if reopened < now + self.cluster.window and (later is None or reopened < later):
                later = reopened
        return usable & self.tried_on(j), later

    def earliest(self, j: int, usable: set[int], now: int, now_only: bool) -> tuple[int, list[int]] | None:
        """When a job could start on usable nodes if no other came, and where."""
        left = self.running(now)
        nodes = self.pick(j, usable, left)
        # nobody gives way to a part of a job that wants numbers of nodes
        aside = [] if nodes is not None or j in self.part else self.candidates(j, now)
        if aside:
            nodes = self.without(j, usable, now, aside)
        if nodes is not None:
            return now, nodes
        # with select/cons_tres a job with GPUs leaves marks wherever it is tried, whatever the answer is for
        if now_only and (self.cluster.linear or not self.jobs[j].gpus):
            return None
        left = [k for k in left if k not in aside]
        ghosts = [
            k
            for k in aside
            if self.cluster.rules is not None and self.cluster.rules.way[self.row[k]] == "suspend"
        ]
        ends = {k: self.must_end(k) for k in left}
        if self.cluster.linear:
            while left:
                k = left.pop(0)
                self.ghosts = set(ghosts)
                nodes = self.pick(j, usable, [*left, *ghosts])
                self.ghosts = set()
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
            self.ghosts = set(ghosts)
            still = [k for k in self.running(now) if k not in off and (k not in aside or k in ghosts)]
            nodes = self.pick(j, usable, still)
            self.ghosts = set()
            if nodes is not None:
                end = ends[group[-1]]
                return (end if end > now else max(end + self.cluster.kill_wait, now + 1)), nodes
        return None


def cuts(stretches: list[tuple[int, int, set[int]]], begin: int, end: int) -> int:
    """How many stretches a plan divides in two."""
    begin = max(begin, stretches[0][0])
    return sum(b < moment < e for b, e, _ in stretches for moment in {begin, end})


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

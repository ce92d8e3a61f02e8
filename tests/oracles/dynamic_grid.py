"""A slow, plain simulator of a dynamic grid: the oracle of `gridsched.systems.dynamic_grid.kernels.loop`.

Everything is looked at anew at every instant: all clusters, all queues from their beginning, all cliques
found by trying all sets of clusters. Work is counted in fractions of seconds at speed 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Literal, NamedTuple

from tests.oracles.local import Occupation, Policy

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


class DynamicJob(NamedTuple):
    """A job; `home` is the cluster whose local scheduler gets it, or None for the grid scheduler."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int
    home: int | None


class MemberEvent(NamedTuple):
    """A cluster joins, renews its lease, or leaves; `lease` is the end of the lease from then on."""

    time: int
    cluster: int
    kind: Literal["join", "renew", "leave"]
    lease: float = math.inf


class Rules(NamedTuple):
    """Parameters of `gridsched.systems.dynamic_grid.scheduler.DynamicGrid`, same names, and `overrun`."""

    overhead: Fraction = Fraction(5, 4)
    delta_t: float = 600
    superstep: int = 10
    migration_cost: Fraction = Fraction(1, 10)
    resume_cost: Fraction = Fraction(1, 10)
    status_period: int = 60
    migration: bool = True
    checkpoint: bool = True
    prefer: str = "wait"
    victims: str = "fitting"
    placement: str = "tightest"
    new_jobs: str = "any"
    priority: str = "blocked"
    offers: str = "unclaimed"
    release: str = "suspended"
    most_sites: float = math.inf
    heed_leases: bool = False
    policy: Policy = Policy("fcfs", "none")
    overrun: str = "doubling"


class Segment(NamedTuple):
    """Processors that a job had for some time; `held` if it did not run."""

    job: int
    cluster: int
    processors: int
    start: int
    end: int
    held: bool
    tasks: int


@dataclass
class State:
    """What has become of a job."""

    left: Fraction
    state: str = "ahead"
    clusters: dict[int, int] = field(default_factory=dict)
    begin: int = 0
    resume: int = 0
    length: int = 0
    start: int | None = None
    finish: int | None = None
    headed: int | None = None
    yielded: int | None = None
    sent: int | None = None
    suspensions: int = 0
    migrations: int = 0
    tasks_moved: int = 0
    lost: Fraction = Fraction(0)


@dataclass
class Cluster:
    """A cluster."""

    processors: int
    node: int = 1  # processors that jobs take at a time
    speed: Fraction = Fraction(1)
    queue: list[int] = field(default_factory=list)
    local: list[int] = field(default_factory=list)
    parts: dict[int, int] = field(default_factory=dict)  # tasks of each job
    holds: list[tuple[int, int]] = field(default_factory=list)
    marked: set[int] = field(default_factory=set)
    member: bool = False
    lease: float = math.inf
    in_time: bool = False
    yielding: bool = False
    view: int | None = None

    def whole(self, tasks: int) -> int:
        """Processors that so many tasks of a job take."""
        taken = 0
        while taken < tasks:
            taken += self.node
        return taken


def expected_end(start: int, estimate: int, overrun: str, not_before: int) -> int:
    """First time at or after another at which a job is expected to end."""
    end, count = start + estimate, 0
    while end < not_before:
        if overrun == "doubling":
            end = start + estimate * 2 ** (count + 1)
        else:
            end += INCREMENTS[min(count, len(INCREMENTS) - 1)]
        count += 1
    return end


class Oracle:
    """The simulation; `run` it, and read the rest.

    Parameters
    ----------
    jobs : sequence of DynamicJob
        By submit time.
    processors : sequence of int
        Of the clusters.
    edges : set of pairs of int
        Neighbours.
    events : sequence of MemberEvent
        By time and cluster.
    rules : Rules
        The options.
    nodes : sequence of int
        Processors of a node of each cluster that gives whole nodes, else 1.
    speeds : sequence of Fraction
        Speed of each cluster; run times are as at speed 1.
    """

    def __init__(
        self,
        jobs: Sequence[DynamicJob],
        processors: Sequence[int],
        edges: set[tuple[int, int]],
        events: Sequence[MemberEvent],
        rules: Rules,
        nodes: Sequence[int] = (),
        speeds: Sequence[Fraction] = (),
    ) -> None:
        self.jobs = jobs
        self.rules = rules
        self.clusters = [Cluster(count) for count in processors]
        for cluster, node in zip(self.clusters, nodes, strict=False):
            cluster.node = node
        for cluster, speed in zip(self.clusters, speeds, strict=False):
            cluster.speed = speed
        self.edges = edges | {(j, i) for i, j in edges}
        self.cliques = self.find_cliques()
        self.events = list(events)
        self.coming = list(range(len(jobs)))
        self.states = [State(Fraction(job.run_time)) for job in jobs]
        self.new: list[int] = []
        self.in_progress: list[int] = []
        self.segments: list[Segment] = []
        self.proxies: list[tuple[int, int, int, int, int]] = []
        self.open_proxies: dict[int, list[tuple[int, int, int]]] = {}
        self.departures: dict[int, int] = {}
        self.left_at: dict[tuple[int, int], int] = {}
        self.count = dict.fromkeys(("inquiries", "asked", "refused", "sent", "evictions"), 0)
        self.seen: list[object] = [None] * len(processors)
        self.backfilled = False
        self.now = -1
        self.unreported = False

    def find_cliques(self) -> list[tuple[int, ...]]:
        """The maximal cliques in lexicographic order."""
        everyone = range(len(self.clusters))
        cliques = [
            some
            for size in range(1, len(self.clusters) + 1)
            for some in combinations(everyone, size)
            if all(pair in self.edges for pair in combinations(some, 2))
        ]
        return sorted(some for some in cliques if not any(set(some) < set(other) for other in cliques))

    # Time

    def run(self) -> None:
        while True:
            instants = self.future_instants()
            period = self.rules.status_period
            if period and (instants or self.unreported):
                instants.append((self.now // period + 1) * period)
            if not instants:
                return
            self.now = min(instants)
            self.happen()

    def future_instants(self) -> list[int]:
        instants = [self.jobs[j].submit_time for j in self.coming] + [event.time for event in self.events]
        for cluster in self.clusters:
            instants += [until for until, _ in cluster.holds]
        for i in range(len(self.clusters)):
            instants += [self.boundary(j) for j in self.wanted(i)]
        for j in self.running():
            instants += [self.end(j), self.expected(j)]
        return [time for time in instants if time > self.now]

    def running(self) -> list[int]:
        return [j for j, state in enumerate(self.states) if state.state in ("local run", "grid run")]

    def happen(self) -> None:
        """All that happens at this instant."""
        self.complete()
        while self.events and self.events[0].time == self.now:
            self.change(self.events.pop(0))
        while self.coming and self.jobs[self.coming[0]].submit_time == self.now:
            self.arrive(self.coming.pop(0))
        first = True
        before = None
        while before != self.picture():
            before = self.picture()
            self.settle()
            self.report(first)
            first = False
            self.grid_pass()
            self.complete()
            self.note_departures()

    def picture(self) -> tuple[object, ...]:
        """What changes if anything happens."""
        return (
            [
                (state.state, dict(state.clusters), state.suspensions, state.migrations)
                for state in self.states
            ],
            [(list(cluster.queue), set(cluster.marked), list(cluster.holds)) for cluster in self.clusters],
        )

    def complete(self) -> None:
        for j in self.running():
            if self.end(j) == self.now:
                self.unreported = True
                state = self.states[j]
                if state.state == "local run":
                    home = self.jobs[j].home
                    assert home is not None
                    self.clusters[home].local.remove(j)
                    state.left = Fraction(0)
                else:
                    self.end_spell(j)
                    self.drop(j)
                    self.close_proxies(j)
                state.state, state.finish = "finished", self.now
        for cluster in self.clusters:
            self.unreported |= any(until == self.now for until, _ in cluster.holds)
            cluster.holds = [(until, count) for until, count in cluster.holds if until > self.now]

    def change(self, event: MemberEvent) -> None:
        cluster = self.clusters[event.cluster]
        self.unreported = True
        if event.kind == "leave":
            cluster.member = False
            self.departures[event.cluster] = event.time
        else:
            cluster.lease = event.lease
        if event.kind == "join":
            cluster.member, cluster.view = True, None
            self.departures.pop(event.cluster, None)

    def note_departures(self) -> None:
        for i, time in list(self.departures.items()):
            if not self.clusters[i].parts and not self.clusters[i].holds:
                self.left_at[i, time] = self.now
                del self.departures[i]

    def arrive(self, j: int) -> None:
        job, state = self.jobs[j], self.states[j]
        self.unreported = True
        reach = max(self.most_processors(clique) for clique in self.cliques)
        if job.home is not None and job.processors <= self.clusters[job.home].processors:
            self.clusters[job.home].queue.append(j)
            state.state = "local queue"
        elif job.processors > reach or (job.home is not None and not self.clusters[job.home].member):
            state.state = "rejected"
        else:
            self.send_to_grid(j)

    def could_hold(self, j: int) -> bool:
        """Whether clusters that are in the grid could hold a job if they were idle."""
        here = [tuple(i for i in clique if self.clusters[i].member) for clique in self.cliques]
        return self.jobs[j].processors <= max(self.most_processors(clique) for clique in here)

    def most_processors(self, clique: tuple[int, ...]) -> int:
        sizes = sorted((self.clusters[i].processors for i in clique), reverse=True)
        return sum(size for k, size in enumerate(sizes) if k < self.rules.most_sites)

    def send_to_grid(self, j: int) -> None:
        self.states[j].state, self.states[j].sent = "grid queue", self.now
        self.new.append(j)

    # Jobs that run

    def end(self, j: int) -> int:
        state = self.states[j]
        if state.state == "local run":
            return state.resume + self.at_home(j, self.jobs[j].run_time)
        return state.resume + math.ceil(state.left / self.rate(j))

    def at_home(self, j: int, seconds: int) -> int:
        """Whole seconds of a local job at the speed of its cluster, which is divided by as it is written."""
        home = self.jobs[j].home
        assert home is not None
        return math.ceil(seconds / float(self.clusters[home].speed))

    def taken(self, j: int) -> int:
        """Processors that a local job takes."""
        home = self.jobs[j].home
        assert home is not None
        return self.clusters[home].whole(self.jobs[j].processors)

    def taken_by_part(self, j: int, i: int) -> int:
        return self.clusters[i].whole(self.clusters[i].parts[j])

    def expected(self, j: int) -> int:
        """The next expected end, after now."""
        state = self.states[j]
        return expected_end(state.resume, state.length, self.rules.overrun, self.now + 1)

    def rate(self, j: int) -> Fraction:
        return self.rate_on(list(self.states[j].clusters))

    def rate_on(self, clusters: list[int]) -> Fraction:
        """Seconds at speed 1 that a grid job does in a second on some clusters."""
        slowest = min(self.clusters[i].speed for i in clusters)
        return slowest / self.rules.overhead if len(clusters) > 1 else slowest

    def free(self, i: int) -> int:
        cluster = self.clusters[i]
        local = sum(self.taken(j) for j in cluster.local)
        parts = sum(self.taken_by_part(j, i) for j in cluster.parts)
        return cluster.processors - local - parts - sum(count for _, count in cluster.holds)

    def boundary(self, j: int) -> int:
        """The first end of a superstep that is not before now."""
        time = self.states[j].resume + self.rules.superstep
        while time < self.now:
            time += self.rules.superstep
        return time

    def estimated(self, j: int) -> Fraction:
        """Seconds of work that a job is expected to have left."""
        done = self.jobs[j].run_time - self.states[j].left
        estimate = expected_end(0, self.jobs[j].estimate, self.rules.overrun, math.floor(done) + 1)
        return estimate - done

    def begin_spell(self, j: int, cost: int) -> None:
        state = self.states[j]
        state.state, state.begin, state.resume = "grid run", self.now, self.now + cost
        state.length = math.ceil(self.estimated(j) / self.rate(j))
        if state.start is None:
            state.start = self.now

    def end_spell(self, j: int) -> None:
        state = self.states[j]
        for i, tasks in state.clusters.items():
            count = self.clusters[i].whole(tasks)
            if state.begin < state.resume:
                self.segments.append(Segment(j, i, count, state.begin, state.resume, True, tasks))
            self.segments.append(Segment(j, i, count, state.resume, self.now, False, tasks))
        state.left = max(Fraction(0), state.left - (self.now - state.resume) * self.rate(j))

    def drop(self, j: int) -> None:
        for i in self.states[j].clusters:
            del self.clusters[i].parts[j]
        self.states[j].clusters.clear()

    def put(self, j: int, i: int, count: int) -> None:
        self.states[j].clusters[i] = self.states[j].clusters.get(i, 0) + count
        self.clusters[i].parts[j] = self.clusters[i].parts.get(j, 0) + count

    def close_proxies(self, j: int) -> None:
        for i, tasks, begin in self.open_proxies.pop(j, []):
            self.proxies.append((j, i, tasks, begin, self.now))

    # Local schedulers

    def offer(self, i: int) -> int:
        cluster = self.clusters[i]
        claimed = bool(cluster.queue) and not (self.rules.offers == "all" and cluster.in_time)
        return self.free(i) if cluster.member and not claimed else 0

    def settle(self) -> None:
        before = None
        while before != self.picture():
            before = self.picture()
            changed = [i for i in range(len(self.clusters)) if self.has_changed(i)]
            for i in changed:
                self.start_first(i)
            for i in changed:
                self.look_after(i)
                self.seen[i] = self.picture_of(i)
                if self.backfilled:
                    self.seen[i] = None
            for i in range(len(self.clusters)):
                self.make_place(i)

    def has_changed(self, i: int) -> bool:
        """Whether a local scheduler has a pass. It matters only where the queue order changes with time."""
        if self.rules.policy.order not in ("lxf", "lxwf"):
            return True
        ends = any(self.boundary(j) == self.now for j in self.wanted(i))
        return ends or self.seen[i] != self.picture_of(i)

    def picture_of(self, i: int) -> object:
        """What makes a local scheduler have a pass if it changes."""
        cluster = self.clusters[i]
        jobs = [*cluster.local, *cluster.parts]
        return (
            [(j, self.states[j].begin, self.expected(j)) for j in jobs],
            (list(cluster.queue), dict(cluster.parts), list(cluster.holds), cluster.member, cluster.lease),
            sum(segment.cluster == i for segment in self.segments),
        )

    def start_first(self, i: int) -> None:
        cluster = self.clusters[i]
        while cluster.queue and self.taken(self.queue(i)[0]) <= self.free(i):
            self.start(i, self.queue(i)[0])
            cluster.yielding = False
            cluster.marked.clear()

    def start(self, i: int, j: int) -> None:
        cluster, state = self.clusters[i], self.states[j]
        self.unreported = True
        cluster.queue.remove(j)
        cluster.local.append(j)
        state.state, state.start, state.resume = "local run", self.now, self.now
        state.length = self.at_home(j, self.jobs[j].estimate)

    def expected_frees(self, i: int) -> list[tuple[int, int]]:
        """When how many processors of a cluster are expected to be free, by time."""
        cluster = self.clusters[i]
        frees = [(self.expected(j), self.taken(j)) for j in cluster.local]
        frees += [(self.expected(j), self.taken_by_part(j, i)) for j in cluster.parts]
        return sorted(frees + cluster.holds)

    def free_by(self, i: int, time: float) -> int:
        return self.free(i) + sum(count for end, count in self.expected_frees(i) if end <= time)

    def look_after(self, i: int) -> None:
        cluster = self.clusters[i]
        self.start_first(i)
        self.backfilled = cluster.in_time = False
        while cluster.queue:
            j = self.queue(i)[0]
            state = self.states[j]
            if state.headed is None:
                state.headed = self.now
            decision = self.decide(i, j)
            if decision == "yield":
                cluster.yielding = True
                if state.yielded is None:
                    state.yielded = self.now
                self.mark(i, j)
                return
            cluster.yielding = False
            cluster.marked.clear()
            if decision == "wait":
                cluster.in_time = True
                self.backfill(i)
                return
            cluster.queue.remove(j)
            self.count["sent"] += 1
            self.send_to_grid(j)
            self.start_first(i)

    def decide(self, i: int, j: int) -> str:
        cluster, needed = self.clusters[i], self.taken(j)
        if not cluster.member:
            return "wait"
        leaving = sum(count for _, count in cluster.holds)
        can_yield = self.free(i) + leaving + sum(self.taken_by_part(o, i) for o in cluster.parts) >= needed
        headed = self.states[j].headed
        assert headed is not None
        in_time = self.rules.delta_t == math.inf or (self.free_by(i, headed + self.rules.delta_t) >= needed)
        if cluster.yielding and can_yield:
            return "yield"
        choices = [("wait", in_time), ("yield", can_yield)]
        if self.rules.prefer == "migrate":
            choices.reverse()
        return next((what for what, possible in choices if possible), "send")

    def mark(self, i: int, j: int) -> None:
        cluster = self.clusters[i]
        while True:
            sizes = {other: self.taken_by_part(other, i) for other in cluster.parts}
            gained = sum(sizes[other] for other in cluster.marked if other in cluster.parts)
            leaving = sum(count for _, count in cluster.holds)
            missing = self.taken(j) - self.free(i) - leaving - gained
            if missing <= 0:
                return
            # the one that came last first
            others = [other for other in reversed(cluster.parts) if other not in cluster.marked]
            enough = [other for other in others if sizes[other] >= missing]
            if self.rules.victims == "latest":
                cluster.marked.add(others[0])
            elif enough:
                cluster.marked.add(min(enough, key=sizes.__getitem__))
            else:
                cluster.marked.add(max(others, key=sizes.__getitem__))

    def queue(self, i: int) -> list[int]:
        return self.ordered(i, self.rules.policy.order)

    def ordered(self, i: int, order: str | object) -> list[int]:
        """Jobs of a local queue in an order; ties by submission."""
        assert isinstance(order, str)
        return sorted(self.clusters[i].queue, key=lambda j: (self.rank(j, order), j))

    def rank(self, j: int, order: str) -> float:
        """What an order sorts by, smallest first."""
        wait = self.now - self.jobs[j].submit_time
        estimate = self.at_home(j, self.jobs[j].estimate)
        expansion = (wait + estimate) / estimate
        ranks: dict[str, float] = {
            "fcfs": j,
            "shortest": estimate,
            "smallest": self.taken(j),
            "smallest_area": estimate * self.taken(j),
            "lxf": -expansion,
            "lxwf": -(expansion + 0.02 * wait / 3600),
        }
        return ranks[order]

    def backfill(self, i: int) -> None:
        """Start jobs behind the first one, which does not fit; conservative plans are made anew."""
        policy, before = self.rules.policy, len(self.clusters[i].queue)
        if policy.backfilling == "none":
            return
        reserved: list[Occupation] = []
        if policy.backfilling in ("easy", "conservative"):
            most = math.inf if policy.backfilling == "conservative" else policy.reservations
            for j in self.queue(i):
                if len(reserved) < most:
                    begin = self.earliest_place(i, j, reserved)
                    if begin == self.now:
                        self.start(i, j)
                    else:
                        reserved.append(self.occupation(j, begin))
        order = policy.order if policy.backfill_order == "queue" else policy.backfill_order
        for j in self.ordered(i, order):
            fits = self.taken(j) <= self.free(i)
            if policy.backfilling != "first_fit":
                fits = self.is_place(i, self.occupation(j, self.now), reserved)
            if fits:
                self.start(i, j)
        self.backfilled = len(self.clusters[i].queue) < before

    def occupation(self, j: int, begin: int) -> Occupation:
        return Occupation(begin, begin + self.at_home(j, self.jobs[j].estimate), self.taken(j))

    def is_place(self, i: int, place: Occupation, reserved: list[Occupation]) -> bool:
        """Whether processors are free for the whole time, beside what runs and what is reserved."""
        others = [Occupation(self.now, end, count) for end, count in self.expected_frees(i)] + reserved
        times = {place.begin} | {time for other in others for time in (other.begin, other.end)}
        return all(
            place.processors + sum(o.processors for o in others if o.begin <= time < o.end)
            <= self.clusters[i].processors
            for time in times
            if place.begin <= time < place.end
        )

    def earliest_place(self, i: int, j: int, reserved: list[Occupation]) -> int:
        ends = [end for end, _ in self.expected_frees(i)] + [other.end for other in reserved]
        times = sorted({self.now} | {end for end in ends if end > self.now})
        return next(time for time in times if self.is_place(i, self.occupation(j, time), reserved))

    # Grid jobs that have to leave

    def wanted(self, i: int) -> list[int]:
        """Jobs whose tasks have to leave a cluster."""
        cluster = self.clusters[i]
        return [j for j in cluster.parts if j in cluster.marked or not cluster.member]

    def make_place(self, i: int) -> None:
        while True:
            due = [j for j in self.wanted(i) if self.boundary(j) == self.now]
            if not due:
                return
            self.evict(due[0])

    def evict(self, j: int) -> None:
        state = self.states[j]
        self.unreported = True
        leaving = [i for i in state.clusters if j in self.wanted(i)]
        self.count["evictions"] += len(leaving)
        targets = self.find_neighbours(j, leaving) if self.rules.migration else None
        self.end_spell(j)
        for i in leaving:
            self.clusters[i].marked.discard(j)
        if targets is None:
            for i in state.clusters:
                self.clusters[i].marked.discard(j)
            self.drop(j)
            self.close_proxies(j)
            state.suspensions += 1
            state.state = "grid queue"
            if not self.rules.checkpoint:
                state.lost += self.jobs[j].run_time - state.left
                state.left = Fraction(self.jobs[j].run_time)
            self.in_progress.append(j)
            return
        moved = {i: state.clusters[i] for i in leaving}
        cost = math.ceil(sum(moved.values()) * self.rules.migration_cost)
        for i, tasks in moved.items():
            del state.clusters[i], self.clusters[i].parts[j]
            if self.rules.release == "moved" and cost:
                count = self.clusters[i].whole(tasks)
                self.clusters[i].holds.append((self.now + cost, count))
                self.segments.append(Segment(j, i, count, self.now, self.now + cost, True, tasks))
            self.open_proxies.setdefault(j, []).append((i, tasks, self.now))
            self.put(j, targets[i], tasks)
        state.migrations += 1
        state.tasks_moved += sum(moved.values())
        self.begin_spell(j, cost)

    def find_neighbours(self, j: int, leaving: list[int]) -> dict[int, int] | None:
        """A neighbour for each cluster that the job has to leave; None if one is not found."""
        stays = [i for i in self.states[j].clusters if i not in leaving]
        targets: dict[int, int] = {}
        for i in leaving:
            tasks = self.states[j].clusters[i]
            there = set(stays) | set(targets.values())
            neighbours = [
                t for t in range(len(self.clusters)) if (i, t) in self.edges and self.clusters[t].member
            ]
            self.count["inquiries"] += len(neighbours)
            own = {t: self.states[j].clusters[t] if t in stays else 0 for t in neighbours}
            promised = {
                t: own[t] + sum(self.states[j].clusters[k] for k, target in targets.items() if target == t)
                for t in neighbours
            }
            before = {t: self.offer(t) + self.clusters[t].whole(own[t]) for t in neighbours}
            has = {t: before[t] - self.clusters[t].whole(promised[t]) for t in neighbours}
            able = [
                t
                for t in neighbours
                if before[t] >= self.clusters[t].whole(promised[t] + tasks)
                and all(k == t or (k, t) in self.edges for k in there)
            ]
            if not able:
                return None
            sign = 1 if self.rules.placement == "tightest" else -1
            targets[i] = min(able, key=lambda t: (t not in there, sign * has[t], t))
        return targets

    # The grid scheduler

    def report(self, first: bool) -> None:
        period = self.rules.status_period
        for i, cluster in enumerate(self.clusters):
            if period == 0 or (first and self.now % period == 0) or (first and cluster.view is None):
                cluster.view = self.offer(i)
        if period and first and self.now % period == 0:
            self.unreported = False

    def grid_pass(self) -> None:
        while True:
            chosen = self.candidate()
            if chosen is None:
                return
            queue, j, shares = chosen
            confirmed = True
            for i, count in shares.items():
                self.count["asked"] += 1
                self.clusters[i].view = self.offer(i)
                if self.offer(i) < self.clusters[i].whole(count):
                    self.count["refused"] += 1
                    confirmed = False
            if confirmed:
                queue.remove(j)
                self.unreported = True
                cost = self.cost(j)
                for i, count in shares.items():
                    self.put(j, i, count)
                    view = self.clusters[i].view
                    assert view is not None
                    self.clusters[i].view = view - self.clusters[i].whole(count)
                self.begin_spell(j, cost)

    def candidate(self) -> tuple[list[int], int, dict[int, int]] | None:
        """A job with the clusters that are chosen for it."""
        in_progress = [j for j in self.in_progress if self.could_hold(j)]
        new = [j for j in self.new if self.could_hold(j)]
        for j in in_progress[:1]:
            shares = self.choose(j)
            if shares:
                return self.in_progress, j, shares
        if in_progress and self.rules.priority == "strict":
            return None
        for j in new if self.rules.new_jobs == "any" else new[:1]:
            shares = self.choose(j)
            if shares:
                return self.new, j, shares
        return None

    def cost(self, j: int) -> int:
        """Seconds until a job that is sent to clusters runs."""
        resumes = self.rules.checkpoint and self.states[j].start is not None
        return math.ceil(self.jobs[j].processors * self.rules.resume_cost) if resumes else 0

    def believed(self, i: int, until: int) -> int:
        cluster = self.clusters[i]
        stays = not self.rules.heed_leases or cluster.lease >= until
        return cluster.view if cluster.member and stays and cluster.view is not None else 0

    def choose(self, j: int) -> dict[int, int] | None:
        """Clusters for a job and their shares; None if there are none."""
        needed = self.jobs[j].processors
        ready = self.now + self.cost(j)
        has = {
            i: self.believed(i, ready + math.ceil(self.estimated(j) / self.rate_on([i])))
            for i in range(len(self.clusters))
        }
        sign = 1 if self.rules.placement == "tightest" else -1
        able = [i for i in has if has[i] >= self.clusters[i].whole(needed)]
        if able:
            return {min(able, key=lambda i: (sign * has[i], i)): needed}
        choices = []
        for clique in self.cliques:
            idle = [i for i in clique if self.believed(i, 0)]
            if not idle:
                continue
            slowest = min(self.clusters[i].speed for i in idle)
            together = ready + math.ceil(self.estimated(j) * self.rules.overhead / slowest)
            has = {i: self.believed(i, together) for i in clique}
            shares: dict[int, int] = {}
            for i in sorted(clique, key=lambda i: (-has[i], i)):
                if sum(shares.values()) < needed and has[i] > 0:
                    assert has[i] % self.clusters[i].node == 0
                    shares[i] = min(has[i], needed - sum(shares.values()))
            if sum(shares.values()) == needed and len(shares) <= self.rules.most_sites:
                choices.append(shares)
        return min(choices, key=len) if choices else None

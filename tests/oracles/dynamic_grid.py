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
    sites: dict[int, int] = field(default_factory=dict)
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
class Site:
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
        self.sites = [Site(count) for count in processors]
        for site, node in zip(self.sites, nodes, strict=False):
            site.node = node
        for site, speed in zip(self.sites, speeds, strict=False):
            site.speed = speed
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
        everyone = range(len(self.sites))
        cliques = [
            some
            for size in range(1, len(self.sites) + 1)
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
        for site in self.sites:
            instants += [until for until, _ in site.holds]
        for i in range(len(self.sites)):
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
            [(state.state, dict(state.sites), state.suspensions, state.migrations) for state in self.states],
            [(list(site.queue), set(site.marked), list(site.holds)) for site in self.sites],
        )

    def complete(self) -> None:
        for j in self.running():
            if self.end(j) == self.now:
                self.unreported = True
                state = self.states[j]
                if state.state == "local run":
                    home = self.jobs[j].home
                    assert home is not None
                    self.sites[home].local.remove(j)
                    state.left = Fraction(0)
                else:
                    self.end_spell(j)
                    self.drop(j)
                    self.close_proxies(j)
                state.state, state.finish = "finished", self.now
        for site in self.sites:
            self.unreported |= any(until == self.now for until, _ in site.holds)
            site.holds = [(until, count) for until, count in site.holds if until > self.now]

    def change(self, event: MemberEvent) -> None:
        site = self.sites[event.cluster]
        self.unreported = True
        if event.kind == "leave":
            site.member = False
            self.departures[event.cluster] = event.time
        else:
            site.lease = event.lease
        if event.kind == "join":
            site.member, site.view = True, None
            self.departures.pop(event.cluster, None)

    def note_departures(self) -> None:
        for i, time in list(self.departures.items()):
            if not self.sites[i].parts and not self.sites[i].holds:
                self.left_at[i, time] = self.now
                del self.departures[i]

    def arrive(self, j: int) -> None:
        job, state = self.jobs[j], self.states[j]
        self.unreported = True
        reach = max(self.most_processors(clique) for clique in self.cliques)
        if job.home is not None and job.processors <= self.sites[job.home].processors:
            self.sites[job.home].queue.append(j)
            state.state = "local queue"
        elif job.processors > reach or (job.home is not None and not self.sites[job.home].member):
            state.state = "rejected"
        else:
            self.send_to_grid(j)

    def could_hold(self, j: int) -> bool:
        """Whether clusters that are in the grid could hold a job if they were idle."""
        here = [tuple(i for i in clique if self.sites[i].member) for clique in self.cliques]
        return self.jobs[j].processors <= max(self.most_processors(clique) for clique in here)

    def most_processors(self, clique: tuple[int, ...]) -> int:
        sizes = sorted((self.sites[i].processors for i in clique), reverse=True)
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
        return math.ceil(seconds / float(self.sites[home].speed))

    def taken(self, j: int) -> int:
        """Processors that a local job takes."""
        home = self.jobs[j].home
        assert home is not None
        return self.sites[home].whole(self.jobs[j].processors)

    def taken_by_part(self, j: int, i: int) -> int:
        return self.sites[i].whole(self.sites[i].parts[j])

    def expected(self, j: int) -> int:
        """The next expected end, after now."""
        state = self.states[j]
        return expected_end(state.resume, state.length, self.rules.overrun, self.now + 1)

    def rate(self, j: int) -> Fraction:
        return self.rate_on(list(self.states[j].sites))

    def rate_on(self, sites: list[int]) -> Fraction:
        """Seconds at speed 1 that a grid job does in a second on some clusters."""
        slowest = min(self.sites[i].speed for i in sites)
        return slowest / self.rules.overhead if len(sites) > 1 else slowest

    def free(self, i: int) -> int:
        site = self.sites[i]
        local = sum(self.taken(j) for j in site.local)
        parts = sum(self.taken_by_part(j, i) for j in site.parts)
        return site.processors - local - parts - sum(count for _, count in site.holds)

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
        for i, tasks in state.sites.items():
            count = self.sites[i].whole(tasks)
            if state.begin < state.resume:
                self.segments.append(Segment(j, i, count, state.begin, state.resume, True, tasks))
            self.segments.append(Segment(j, i, count, state.resume, self.now, False, tasks))
        state.left = max(Fraction(0), state.left - (self.now - state.resume) * self.rate(j))

    def drop(self, j: int) -> None:
        for i in self.states[j].sites:
            del self.sites[i].parts[j]
        self.states[j].sites.clear()

    def put(self, j: int, i: int, count: int) -> None:
        self.states[j].sites[i] = self.states[j].sites.get(i, 0) + count
        self.sites[i].parts[j] = self.sites[i].parts.get(j, 0) + count

    def close_proxies(self, j: int) -> None:
        for i, tasks, begin in self.open_proxies.pop(j, []):
            self.proxies.append((j, i, tasks, begin, self.now))

    # Local schedulers

    def offer(self, i: int) -> int:
        site = self.sites[i]
        claimed = bool(site.queue) and not (self.rules.offers == "all" and site.in_time)
        return self.free(i) if site.member and not claimed else 0

    def settle(self) -> None:
        before = None
        while before != self.picture():
            before = self.picture()
            changed = [i for i in range(len(self.sites)) if self.has_changed(i)]
            for i in changed:
                self.start_first(i)
            for i in changed:
                self.look_after(i)
                self.seen[i] = self.picture_of(i)
                if self.backfilled:
                    self.seen[i] = None
            for i in range(len(self.sites)):
                self.make_place(i)

    def has_changed(self, i: int) -> bool:
        """Whether a local scheduler has a pass. It matters only where the queue order changes with time."""
        if self.rules.policy.order not in ("lxf", "lxwf"):
            return True
        ends = any(self.boundary(j) == self.now for j in self.wanted(i))
        return ends or self.seen[i] != self.picture_of(i)

    def picture_of(self, i: int) -> object:
        """What makes a local scheduler have a pass if it changes."""
        site = self.sites[i]
        jobs = [*site.local, *site.parts]
        return (
            [(j, self.states[j].begin, self.expected(j)) for j in jobs],
            (list(site.queue), dict(site.parts), list(site.holds), site.member, site.lease),
            sum(segment.cluster == i for segment in self.segments),
        )

    def start_first(self, i: int) -> None:
        site = self.sites[i]
        while site.queue and self.taken(self.queue(i)[0]) <= self.free(i):
            self.start(i, self.queue(i)[0])
            site.yielding = False
            site.marked.clear()

    def start(self, i: int, j: int) -> None:
        site, state = self.sites[i], self.states[j]
        self.unreported = True
        site.queue.remove(j)
        site.local.append(j)
        state.state, state.start, state.resume = "local run", self.now, self.now
        state.length = self.at_home(j, self.jobs[j].estimate)

    def expected_frees(self, i: int) -> list[tuple[int, int]]:
        """When how many processors of a cluster are expected to be free, by time."""
        site = self.sites[i]
        frees = [(self.expected(j), self.taken(j)) for j in site.local]
        frees += [(self.expected(j), self.taken_by_part(j, i)) for j in site.parts]
        return sorted(frees + site.holds)

    def free_by(self, i: int, time: float) -> int:
        return self.free(i) + sum(count for end, count in self.expected_frees(i) if end <= time)

    def look_after(self, i: int) -> None:
        site = self.sites[i]
        self.start_first(i)
        self.backfilled = site.in_time = False
        while site.queue:
            j = self.queue(i)[0]
            state = self.states[j]
            if state.headed is None:
                state.headed = self.now
            decision = self.decide(i, j)
            if decision == "yield":
                site.yielding = True
                if state.yielded is None:
                    state.yielded = self.now
                self.mark(i, j)
                return
            site.yielding = False
            site.marked.clear()
            if decision == "wait":
                site.in_time = True
                self.backfill(i)
                return
            site.queue.remove(j)
            self.count["sent"] += 1
            self.send_to_grid(j)
            self.start_first(i)

    def decide(self, i: int, j: int) -> str:
        site, needed = self.sites[i], self.taken(j)
        if not site.member:
            return "wait"
        leaving = sum(count for _, count in site.holds)
        can_yield = self.free(i) + leaving + sum(self.taken_by_part(o, i) for o in site.parts) >= needed
        headed = self.states[j].headed
        assert headed is not None
        in_time = self.rules.delta_t == math.inf or (self.free_by(i, headed + self.rules.delta_t) >= needed)
        if site.yielding and can_yield:
            return "yield"
        choices = [("wait", in_time), ("yield", can_yield)]
        if self.rules.prefer == "migrate":
            choices.reverse()
        return next((what for what, possible in choices if possible), "send")

    def mark(self, i: int, j: int) -> None:
        site = self.sites[i]
        while True:
            sizes = {other: self.taken_by_part(other, i) for other in site.parts}
            gained = sum(sizes[other] for other in site.marked if other in site.parts)
            leaving = sum(count for _, count in site.holds)
            missing = self.taken(j) - self.free(i) - leaving - gained
            if missing <= 0:
                return
            # the one that came last first
            others = [other for other in reversed(site.parts) if other not in site.marked]
            enough = [other for other in others if sizes[other] >= missing]
            if self.rules.victims == "latest":
                site.marked.add(others[0])
            elif enough:
                site.marked.add(min(enough, key=sizes.__getitem__))
            else:
                site.marked.add(max(others, key=sizes.__getitem__))

    def queue(self, i: int) -> list[int]:
        return self.ordered(i, self.rules.policy.order)

    def ordered(self, i: int, order: str | object) -> list[int]:
        """Jobs of a local queue in an order; ties by submission."""
        assert isinstance(order, str)
        return sorted(self.sites[i].queue, key=lambda j: (self.rank(j, order), j))

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
        policy, before = self.rules.policy, len(self.sites[i].queue)
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
        self.backfilled = len(self.sites[i].queue) < before

    def occupation(self, j: int, begin: int) -> Occupation:
        return Occupation(begin, begin + self.at_home(j, self.jobs[j].estimate), self.taken(j))

    def is_place(self, i: int, place: Occupation, reserved: list[Occupation]) -> bool:
        """Whether processors are free for the whole time, beside what runs and what is reserved."""
        others = [Occupation(self.now, end, count) for end, count in self.expected_frees(i)] + reserved
        times = {place.begin} | {time for other in others for time in (other.begin, other.end)}
        return all(
            place.processors + sum(o.processors for o in others if o.begin <= time < o.end)
            <= self.sites[i].processors
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
        site = self.sites[i]
        return [j for j in site.parts if j in site.marked or not site.member]

    def make_place(self, i: int) -> None:
        while True:
            due = [j for j in self.wanted(i) if self.boundary(j) == self.now]
            if not due:
                return
            self.evict(due[0])

    def evict(self, j: int) -> None:
        state = self.states[j]
        self.unreported = True
        leaving = [i for i in state.sites if j in self.wanted(i)]
        self.count["evictions"] += len(leaving)
        targets = self.find_neighbours(j, leaving) if self.rules.migration else None
        self.end_spell(j)
        for i in leaving:
            self.sites[i].marked.discard(j)
        if targets is None:
            for i in state.sites:
                self.sites[i].marked.discard(j)
            self.drop(j)
            self.close_proxies(j)
            state.suspensions += 1
            state.state = "grid queue"
            if not self.rules.checkpoint:
                state.lost += self.jobs[j].run_time - state.left
                state.left = Fraction(self.jobs[j].run_time)
            self.in_progress.append(j)
            return
        moved = {i: state.sites[i] for i in leaving}
        cost = math.ceil(sum(moved.values()) * self.rules.migration_cost)
        for i, tasks in moved.items():
            del state.sites[i], self.sites[i].parts[j]
            if self.rules.release == "moved" and cost:
                count = self.sites[i].whole(tasks)
                self.sites[i].holds.append((self.now + cost, count))
                self.segments.append(Segment(j, i, count, self.now, self.now + cost, True, tasks))
            self.open_proxies.setdefault(j, []).append((i, tasks, self.now))
            self.put(j, targets[i], tasks)
        state.migrations += 1
        state.tasks_moved += sum(moved.values())
        self.begin_spell(j, cost)

    def find_neighbours(self, j: int, leaving: list[int]) -> dict[int, int] | None:
        """A neighbour for each cluster that the job has to leave; None if one is not found."""
        stays = [i for i in self.states[j].sites if i not in leaving]
        targets: dict[int, int] = {}
        for i in leaving:
            tasks = self.states[j].sites[i]
            there = set(stays) | set(targets.values())
            neighbours = [t for t in range(len(self.sites)) if (i, t) in self.edges and self.sites[t].member]
            self.count["inquiries"] += len(neighbours)
            own = {t: self.states[j].sites[t] if t in stays else 0 for t in neighbours}
            promised = {
                t: own[t] + sum(self.states[j].sites[k] for k, target in targets.items() if target == t)
                for t in neighbours
            }
            before = {t: self.offer(t) + self.sites[t].whole(own[t]) for t in neighbours}
            has = {t: before[t] - self.sites[t].whole(promised[t]) for t in neighbours}
            able = [
                t
                for t in neighbours
                if before[t] >= self.sites[t].whole(promised[t] + tasks)
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
        for i, site in enumerate(self.sites):
            if period == 0 or (first and self.now % period == 0) or (first and site.view is None):
                site.view = self.offer(i)
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
                self.sites[i].view = self.offer(i)
                if self.offer(i) < self.sites[i].whole(count):
                    self.count["refused"] += 1
                    confirmed = False
            if confirmed:
                queue.remove(j)
                self.unreported = True
                cost = self.cost(j)
                for i, count in shares.items():
                    self.put(j, i, count)
                    view = self.sites[i].view
                    assert view is not None
                    self.sites[i].view = view - self.sites[i].whole(count)
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
        site = self.sites[i]
        stays = not self.rules.heed_leases or site.lease >= until
        return site.view if site.member and stays and site.view is not None else 0

    def choose(self, j: int) -> dict[int, int] | None:
        """Clusters for a job and their shares; None if there are none."""
        needed = self.jobs[j].processors
        ready = self.now + self.cost(j)
        has = {
            i: self.believed(i, ready + math.ceil(self.estimated(j) / self.rate_on([i])))
            for i in range(len(self.sites))
        }
        sign = 1 if self.rules.placement == "tightest" else -1
        able = [i for i in has if has[i] >= self.sites[i].whole(needed)]
        if able:
            return {min(able, key=lambda i: (sign * has[i], i)): needed}
        choices = []
        for clique in self.cliques:
            idle = [i for i in clique if self.believed(i, 0)]
            if not idle:
                continue
            slowest = min(self.sites[i].speed for i in idle)
            together = ready + math.ceil(self.estimated(j) * self.rules.overhead / slowest)
            has = {i: self.believed(i, together) for i in clique}
            shares: dict[int, int] = {}
            for i in sorted(clique, key=lambda i: (-has[i], i)):
                if sum(shares.values()) < needed and has[i] > 0:
                    assert has[i] % self.sites[i].node == 0
                    shares[i] = min(has[i], needed - sum(shares.values()))
            if sum(shares.values()) == needed and len(shares) <= self.rules.most_sites:
                choices.append(shares)
        return min(choices, key=len) if choices else None

"""A slow, plain simulator of a dynamic grid: the oracle of `gridsched.systems.dynamic_grid.kernels.loop`.

Everything is looked at anew at every instant: all clusters, all queues from their beginning, all cliques
found by trying all sets of clusters. Work is counted in fractions of seconds at speed 1. Whether a job is
eligible and whether a processor is closed is worked out anew, too, from what has happened so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Literal, NamedTuple

from gridsched.platform import Cluster as Machine
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.systems.job_outcomes import outages_of
from tests.oracles.local import Policy
from tests.oracles.orders import corrected, lengthened, rank, saved, worked
from tests.oracles.users import Submission, Users

FAR = 2**62


class Occupation(NamedTuple):
    """Processors held in [begin, end) by a running job (until its expected end) or a reservation."""

    begin: int
    end: int
    processors: int


class DynamicJob(NamedTuple):
    """A job; `home` is the cluster whose local scheduler gets it, or None for the grid scheduler."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int
    home: int | None
    there: tuple[int, int] | None = None  # run time and estimate at home, where they are given so


class MemberEvent(NamedTuple):
    """A cluster joins, renews its lease, or leaves; `lease` is the end of the lease from then on."""

    time: int
    cluster: int
    kind: Literal["join", "renew", "leave"]
    lease: float = math.inf


class Outage(NamedTuple):
    """A time in which processors from `first` to before `end` are out, in order of start, cluster, first."""

    cluster: int
    first: int
    end: int
    start: int
    until: float
    announced: int
    drained: bool

    @property
    def known(self) -> bool:
        """Whether it is maintenance that is known before it begins."""
        return self.announced < self.start and not self.drained

    def closes(self, superstep: int) -> int:
        """When nothing starts there any more."""
        return max(self.announced, self.start - superstep) if self.known else self.start


class Repairs(NamedTuple):
    """What becomes of jobs that are killed on a cluster, and how they save their work there."""

    requeue: str = "place"
    interval: int = 0
    pause: int = 0


class Hold(NamedTuple):
    """Processors of tasks on their way."""

    until: int
    processors: int
    job: int


Holder = tuple[str, int]
"""Who has a processor: "local", "part" or "hold", and the job."""


class Segment(NamedTuple):
    """Processors that a job had for some time; `held` if it did not run."""

    job: int
    cluster: int
    processors: int
    start: int
    end: int
    held: bool
    tasks: int
    killed: bool = False


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
    work: int = 0  # seconds left of a local job, without checkpoints
    guess: int = 0  # seconds that are expected to be left
    interval: int = 0
    pause: int = 0
    entry: int = 0
    killed: int = 0


@dataclass
class Cluster:
    """A cluster."""

    processors: int
    node: int  # processors that jobs take at a time
    speed: Fraction
    repairs: Repairs
    queue: list[int] = field(default_factory=list)
    local: list[int] = field(default_factory=list)
    parts: dict[int, int] = field(default_factory=dict)  # tasks of each job
    holds: list[Hold] = field(default_factory=list)
    owner: dict[int, Holder] = field(default_factory=dict)
    gaps: list[tuple[float, int]] = field(default_factory=list)
    fleeing: set[int] = field(default_factory=set)
    marked: set[int] = field(default_factory=set)
    member: bool = False
    lease: float = math.inf
    in_time: bool = False
    yielding: bool = False
    view: int | None = None

    @classmethod
    def of(cls, machine: Machine, speed: Fraction) -> Cluster:
        """A cluster as it is given; only where nodes fail does it matter how jobs save their work."""
        cost = machine.checkpoint_cost if machine.checkpoint_interval else 0
        repairs = Repairs(machine.requeue, machine.checkpoint_interval, cost)
        node = machine.processors_per_node if machine.node_exclusive else 1
        return cls(machine.processors, node, speed, repairs if machine.events else Repairs())

    def whole(self, tasks: int) -> int:
        """Processors that so many tasks of a job take."""
        taken = 0
        while taken < tasks:
            taken += self.node
        return taken


FCFS = Policy("fcfs", "none")
DEFAULT = DynamicGrid()


def _exact(cost: float) -> Fraction:
    """A number with at most three decimals."""
    return Fraction(round(1000 * cost), 1000)


class Oracle:
    """The simulation; `run` it, and read the rest.

    Parameters
    ----------
    jobs : sequence of DynamicJob
        By submit time.
    machines : sequence of Cluster
        The clusters; run times are as at speed 1, or as there where all speeds are the same.
    edges : set of pairs of int
        Neighbours.
    events : sequence of MemberEvent
        By time and cluster.
    rules : DynamicGrid
        The options.
    policy : Policy
        Local policy of all clusters.
    overrun : str
        What a job that reaches its expected end is expected to do.
    lives : sequence of Submission
        What the jobs live through, if anything.
    """

    def __init__(
        self,
        jobs: Sequence[DynamicJob],
        machines: Sequence[Machine],
        edges: set[tuple[int, int]],
        events: Sequence[MemberEvent] = (),
        rules: DynamicGrid = DEFAULT,
        policy: Policy = FCFS,
        overrun: str = "doubling",
        lives: Sequence[Submission] = (),
    ) -> None:
        self.jobs = jobs
        told = zip(lives or [Submission(0)] * len(jobs), jobs, strict=True)
        self.users = Users([life._replace(submit=job.submit_time) for life, job in told])
        self.outages = [Outage(*row[: len(Outage._fields)]) for row in outages_of(tuple(machines)).tolist()]
        self.rules, self.policy, self.how_overrun = rules, policy, overrun
        self.overhead, self.migration_cost = _exact(rules.overhead), _exact(rules.migration_cost)
        self.resume_cost = self.migration_cost if rules.resume_cost is None else _exact(rules.resume_cost)
        self.delta_t = math.inf if rules.delta_t is None else rules.delta_t
        self.most_sites = rules.most_sites or math.inf
        speeds = [Fraction(str(machine.speed)) for machine in machines]
        if len(set(speeds)) == 1:
            speeds = [Fraction(1)] * len(machines)
        self.clusters = [Cluster.of(*each) for each in zip(machines, speeds, strict=True)]
        self.entries = 0
        self.edges = edges | {(j, i) for i, j in edges}
        self.cliques = self.find_cliques()
        self.events = list(events)
        self.states = [State(Fraction(job.run_time)) for job in jobs]
        for j, job in enumerate(jobs):
            if job.home is not None:
                there = job.there or (self.at_home(j, job.run_time), self.at_home(j, job.estimate))
                self.states[j].work, self.states[j].guess = there
        self.new: list[int] = []
        self.in_progress: list[int] = []
        self.segments: list[Segment] = []
        self.proxies: list[tuple[int, int, int, int, int]] = []
        self.open_proxies: dict[int, list[tuple[int, int, int]]] = {}
        self.departures: dict[int, int] = {}
        self.left_at: dict[tuple[int, int], int] = {}
        self.count = dict.fromkeys(("inquiries", "asked", "refused", "sent", "evictions"), 0)
        self.seen: list[object] = [None] * len(machines)
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
            self.process_events()

    def future_instants(self) -> list[int]:
        instants: list[float] = [event.time for event in self.events]
        instants += self.users.times()
        instants += [time for outage in self.outages for time in self.times_of(outage)]
        for cluster in self.clusters:
            instants += [hold.until for hold in cluster.holds]
        for i in range(len(self.clusters)):
            instants += [self.boundary(j) for j in self.wanted(i)]
        for j in self.running():
            instants += [self.end(j), self.expected(j)]
        return [int(time) for time in instants if self.now < time < FAR]

    def times_of(self, outage: Outage) -> tuple[float, float, float]:
        """When the processors of an outage are closed, whoever is there is killed, and they are open."""
        return outage.closes(self.rules.superstep), outage.start, outage.until

    def running(self) -> list[int]:
        return [j for j, state in enumerate(self.states) if state.state in ("local run", "grid run")]

    def process_events(self) -> None:
        """All that happens at this instant."""
        self.complete()
        self.process_node_events()
        while self.events and self.events[0].time == self.now:
            self.change(self.events.pop(0))
        first = True
        while first or self.users.is_due(self.now):
            self.let_in_and_out()
            before = None
            while before != self.picture():
                before = self.picture()
                self.settle()
                self.report(first)
                first = False
                self.grid_pass()
                self.complete()
                self.note_departures()
        self.place()

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
                    home = self.home(j)
                    self.clusters[home].local.remove(j)
                    self.disown(home, ("local", j))
                    tasks = self.jobs[j].processors
                    self.segments.append(
                        Segment(j, home, self.taken(j), state.resume, self.now, False, tasks)
                    )
                    state.left = Fraction(0)
                else:
                    self.end_spell(j)
                    self.drop(j)
                    self.close_proxies(j)
                state.state, state.finish = "finished", self.now
                self.users.leave(j, self.now, "completed")
        for cluster in self.clusters:
            for hold in [hold for hold in cluster.holds if hold.until == self.now]:
                self.unreported = True
                cluster.holds.remove(hold)
                self.disown(self.clusters.index(cluster), ("hold", hold.job))

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
        self.entries += 1
        state.entry = self.entries
        reach = max(self.most_processors(clique) for clique in self.cliques)
        if job.home is not None and job.processors <= self.clusters[job.home].processors:
            self.clusters[job.home].queue.append(j)
            state.state = "local queue"
        elif job.processors > reach or (job.home is not None and not self.clusters[job.home].member):
            state.state = "rejected"
            self.users.leave(j, self.now, "rejected")
        else:
            self.send_to_grid(j)

    def could_hold(self, j: int) -> bool:
        """Whether clusters that are in the grid could hold a job if they were idle."""
        here = [tuple(i for i in clique if self.clusters[i].member) for clique in self.cliques]
        return self.jobs[j].processors <= max(self.most_processors(clique, True) for clique in here)

    def most_processors(self, clique: tuple[int, ...], open_ones: bool = False) -> int:
        closed = {i: len(self.closed(i)) if open_ones else 0 for i in clique}
        sizes = sorted((self.clusters[i].processors - closed[i] for i in clique), reverse=True)
        return sum(size for k, size in enumerate(sizes) if k < self.most_sites)

    def send_to_grid(self, j: int) -> None:
        self.states[j].state, self.states[j].sent = "grid queue", self.now
        self.new.append(j)

    # Jobs that run

    def end(self, j: int) -> int:
        state = self.states[j]
        if state.state == "local run":
            repairs = self.repairs_of(j)
            return state.resume + lengthened(state.work, repairs.interval, repairs.pause)
        work = math.ceil(state.left / self.rate(j))
        return state.resume + lengthened(work, state.interval, state.pause)

    def home(self, j: int) -> int:
        """Cluster of a local job."""
        home = self.jobs[j].home
        assert home is not None
        return home

    def at_home(self, j: int, seconds: int) -> int:
        """Whole seconds of a local job at the speed of its cluster, which is divided by as it is written."""
        return math.ceil(seconds / float(self.clusters[self.home(j)].speed))

    def taken(self, j: int) -> int:
        """Processors that a local job takes."""
        return self.clusters[self.home(j)].whole(self.jobs[j].processors)

    def taken_by_part(self, j: int, i: int) -> int:
        return self.clusters[i].whole(self.clusters[i].parts[j])

    def expected(self, j: int) -> int:
        """The next expected end, after now."""
        state = self.states[j]
        return state.resume + corrected(state.length, self.now - state.resume, self.how_overrun)

    def rate(self, j: int) -> Fraction:
        return self.rate_on(list(self.states[j].clusters))

    def rate_on(self, clusters: list[int]) -> Fraction:
        """Seconds at speed 1 that a grid job does in a second on some clusters."""
        slowest = min(self.clusters[i].speed for i in clusters)
        return slowest / self.overhead if len(clusters) > 1 else slowest

    def free(self, i: int) -> int:
        """Processors that nobody has nor will have at the end of the instant, and that are not closed."""
        cluster = self.clusters[i]
        idle = cluster.processors - len(set(cluster.owner) | self.closed(i))
        return idle - sum(self.missing(i).values())

    def boundary(self, j: int) -> int:
        """The first end of a superstep that is not before now."""
        time = self.states[j].resume + self.rules.superstep
        while time < self.now:
            time += self.rules.superstep
        return time

    def estimated(self, j: int) -> Fraction:
        """Seconds of work that a job is expected to have left."""
        done = self.jobs[j].run_time - self.states[j].left
        return corrected(self.jobs[j].estimate, math.floor(done), self.how_overrun) - done

    def begin_spell(self, j: int, cost: int) -> None:
        state = self.states[j]
        state.state, state.begin, state.resume = "grid run", self.now, self.now + cost
        repairs = [self.clusters[i].repairs for i in state.clusters]
        state.interval = min((each.interval for each in repairs if each.interval), default=0)
        state.pause = max(each.pause for each in repairs)
        work = math.ceil(self.estimated(j) / self.rate(j))
        state.length = lengthened(work, state.interval, state.pause)
        self.note_start(j)

    def note_start(self, j: int) -> None:
        self.users.start(j, self.now)
        self.states[j].start = self.users.started[j]

    def end_spell(self, j: int, killed: bool = False) -> None:
        state = self.states[j]
        for i, tasks in state.clusters.items():
            count = self.clusters[i].whole(tasks)
            if state.begin < state.resume:
                until = min(state.resume, self.now)
                self.segments.append(Segment(j, i, count, state.begin, until, True, tasks))
            if not killed or state.resume < self.now:
                self.segments.append(Segment(j, i, count, state.resume, self.now, False, tasks, killed))
        elapsed = max(0, self.now - state.resume)
        done = (saved if killed else worked)(elapsed, state.interval, state.pause)
        state.left = max(Fraction(0), state.left - done * self.rate(j))

    def drop(self, j: int) -> None:
        for i in self.states[j].clusters:
            self.disown(i, ("part", j))
            self.clusters[i].fleeing.discard(j)
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
        if self.policy.order not in ("lxf", "lxwf", "critical"):
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
            self.count_node_events(i),
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
        state.state, state.resume = "local run", self.now
        self.note_start(j)
        state.length = self.guessed(j)

    def guessed(self, j: int) -> int:
        """Seconds that a local job is expected to run."""
        repairs = self.repairs_of(j)
        return lengthened(self.states[j].guess, repairs.interval, repairs.pause)

    def repairs_of(self, j: int) -> Repairs:
        return self.clusters[self.home(j)].repairs

    def expected_frees(self, i: int) -> list[tuple[float, int]]:
        """When how many processors of a cluster are expected to be free, by time.

        What leaves closed processors within an instant is not planned with before its end.
        """
        cluster = self.clusters[i]
        frees: list[tuple[float, int]] = [(self.expected(j), self.taken(j)) for j in cluster.local]
        frees += [(self.expected(j), self.taken_by_part(j, i)) for j in cluster.parts]
        frees += [(hold.until, hold.processors) for hold in cluster.holds]
        idle = len(self.closed(i) - set(cluster.owner))
        loose = idle - sum(count for _, count in cluster.gaps)
        return sorted([*frees, *cluster.gaps, (FAR, loose)])

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
        can_yield = self.free(i) + self.leaving(i) + sum(self.gain(o, i) for o in cluster.parts) >= needed
        headed = self.states[j].headed
        assert headed is not None
        in_time = self.delta_t == math.inf or (self.free_by(i, headed + self.delta_t) >= needed)
        if cluster.yielding and can_yield:
            return "yield"
        choices = [("wait", in_time), ("yield", can_yield)]
        if self.rules.prefer == "migrate":
            choices.reverse()
        return next((what for what, possible in choices if possible), "send")

    def gain(self, j: int, i: int) -> int:
        """Processors that others may have when a part leaves."""
        return self.taken_by_part(j, i) - self.closed_of(i, ("part", j))

    def leaving(self, i: int) -> int:
        """Processors that others may have when tasks that are on their way have left."""
        holds = self.clusters[i].holds
        return sum(hold.processors - self.closed_of(i, ("hold", hold.job)) for hold in holds)

    def mark(self, i: int, j: int) -> None:
        cluster = self.clusters[i]
        while True:
            sizes = {other: self.gain(other, i) for other in cluster.parts}
            gained = sum(sizes[other] for other in cluster.marked if other in cluster.parts)
            missing = self.taken(j) - self.free(i) - self.leaving(i) - gained
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
        return self.ordered(i, self.policy.order)

    def ordered(self, i: int, order: str | object) -> list[int]:
        """Jobs of a local queue in an order; ties by submission."""
        assert isinstance(order, str)

        def key(j: int) -> tuple[float, int]:
            entered, size = self.users.entered[j], self.taken(j)
            if order == "fcfs":
                return self.states[j].entry, j
            return rank(order, self.now, entered, self.guessed(j), size), j

        return sorted(self.clusters[i].queue, key=key)

    def backfill(self, i: int) -> None:
        """Start jobs behind the first one, which does not fit; conservative plans are made anew."""
        policy, before = self.policy, len(self.clusters[i].queue)
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
        return Occupation(begin, begin + self.guessed(j), self.taken(j))

    def is_place(self, i: int, place: Occupation, reserved: list[Occupation]) -> bool:
        """Whether processors are free for the whole time, beside what runs and what is reserved."""
        others = [Occupation(self.now, int(end), count) for end, count in self.expected_frees(i)] + reserved
        times = {place.begin} | {time for other in others for time in (other.begin, other.end)}
        return all(
            place.processors + sum(o.processors for o in others if o.begin <= time < o.end)
            <= self.clusters[i].processors
            for time in times
            if place.begin <= time < place.end
        )

    def earliest_place(self, i: int, j: int, reserved: list[Occupation]) -> int:
        ends = [int(end) for end, _ in self.expected_frees(i)] + [other.end for other in reserved]
        times = sorted({self.now} | {end for end in ends if end > self.now})
        return next(time for time in times if self.is_place(i, self.occupation(j, time), reserved))

    # Which processors everybody has

    def closed(self, i: int) -> set[int]:
        """Processors on which nothing starts."""
        return {p for outage in self.going_on(i) for p in range(outage.first, outage.end)}

    def going_on(self, i: int) -> list[Outage]:
        here = [outage for outage in self.outages if outage.cluster == i and outage.start < outage.until]
        return [each for each in here if each.closes(self.rules.superstep) <= self.now < each.until]

    def closed_of(self, i: int, holder: Holder) -> int:
        owner = self.clusters[i].owner
        return sum(owner.get(p) == holder for p in self.closed(i))

    def missing(self, i: int) -> dict[Holder, int]:
        """Processors that those who are new on a cluster are to have, by job number."""
        cluster = self.clusters[i]
        sizes: dict[Holder, int] = {("local", j): self.taken(j) for j in cluster.local}
        sizes |= {("part", j): self.taken_by_part(j, i) for j in cluster.parts}
        has = list(cluster.owner.values())
        by_number = sorted(sizes, key=lambda holder: holder[1])
        return {holder: sizes[holder] - has.count(holder) for holder in by_number}

    def disown(self, i: int, holder: Holder) -> None:
        owner = self.clusters[i].owner
        for p in [p for p in owner if owner[p] == holder]:
            del owner[p]

    def place(self) -> None:
        """Give processors to who is new, the lowest first; then local schedulers plan with what is closed."""
        for i, cluster in enumerate(self.clusters):
            idle = [p for p in range(cluster.processors) if p not in cluster.owner | self.closed_map(i)]
            for holder, count in self.missing(i).items():
                for _ in range(count):
                    cluster.owner[idle.pop(0)] = holder
            back = [self.back(i, p) for p in sorted(self.closed(i) - set(cluster.owner))]
            cluster.gaps = [(time, back.count(time)) for time in set(back)]

    def closed_map(self, i: int) -> dict[int, Holder]:
        return dict.fromkeys(self.closed(i), ("closed", -1))

    def back(self, i: int, p: int) -> float:
        """When a closed processor is expected to be back."""
        here = [outage for outage in self.going_on(i) if outage.first <= p < outage.end]
        return max(outage.until if outage.known else FAR for outage in here)

    # Nodes

    def count_node_events(self, i: int) -> int:
        """How much has happened to the nodes of a cluster."""
        here = [outage for outage in self.outages if outage.cluster == i]
        return sum(time <= self.now for outage in here for time in self.times_of(outage))

    def process_node_events(self) -> None:
        if not any(self.now in self.times_of(outage) for outage in self.outages):
            self.place()
            return
        self.unreported = True
        for outage in self.outages:
            if outage.known and outage.closes(self.rules.superstep) == self.now:
                cluster = self.clusters[outage.cluster]
                there = {cluster.owner.get(p) for p in range(outage.first, outage.end)}
                cluster.fleeing |= {j for j in cluster.parts if ("part", j) in there}
        for outage in self.outages:
            if outage.start == self.now and not outage.drained:
                owner = self.clusters[outage.cluster].owner
                hit = {owner[p][1] for p in range(outage.first, outage.end) if p in owner}
                for j in sorted(hit):
                    self.kill(j, outage.cluster)
        self.place()

    def kill(self, j: int, i: int) -> None:
        state, cluster = self.states[j], self.clusters[i]
        state.killed += 1
        is_lost = cluster.repairs.requeue == "lost"
        if state.state == "grid run":
            for k, other in enumerate(self.clusters):
                for hold in [hold for hold in other.holds if hold.job == j]:
                    other.holds.remove(hold)
                    self.disown(k, ("hold", j))
                    self.cut(j, k, hold)
            self.end_spell(j, killed=True)
            self.come_back(j)
            if is_lost:
                self.in_progress.remove(j)
                state.suspensions -= 1
        else:
            self.kill_local(j, i, is_lost)
        if is_lost:
            state.state, state.finish = "gone", self.now
            self.users.leave(j, self.now, "lost")

    def cut(self, j: int, i: int, hold: Hold) -> None:
        """Let tasks be on their way no longer than until now."""
        for k, segment in enumerate(self.segments):
            if (segment.job, segment.cluster, segment.end, segment.held) == (j, i, hold.until, True):
                self.segments[k] = segment._replace(end=self.now)

    def kill_local(self, j: int, i: int, is_lost: bool) -> None:
        state, cluster = self.states[j], self.clusters[i]
        cluster.local.remove(j)
        self.disown(i, ("local", j))
        segment = Segment(
            j, i, self.taken(j), state.resume, self.now, False, self.jobs[j].processors, killed=True
        )
        self.segments.append(segment)
        kept = saved(self.now - state.resume, cluster.repairs.interval, cluster.repairs.pause)
        state.work -= kept
        state.guess = max(1, state.guess - kept)
        if self.rules.checkpoint:
            state.left = max(Fraction(0), state.left - kept * cluster.speed)
        if not is_lost:
            state.state, state.headed = "local queue", None
            if cluster.repairs.requeue == "end":
                self.entries += 1
                state.entry = self.entries
            cluster.queue.append(j)

    # Jobs that enter and leave

    def let_in_and_out(self) -> None:
        """Those who enter because somebody gave up do so before the next one does."""
        changed = True
        while changed:
            entering = self.users.enter(self.now)
            for j in entering:
                self.arrive(j)
            leaving = None if entering else self.users.give_up(self.now)
            if leaving is not None:
                self.give_up(leaving)
            changed = bool(entering) or leaving is not None

    def give_up(self, j: int) -> None:
        state = self.states[j]
        if state.state == "local queue":
            home = self.home(j)
            cluster = self.clusters[home]
            if cluster.yielding and self.queue(home)[0] == j:
                cluster.yielding = False
                cluster.marked.clear()
            cluster.queue.remove(j)
            self.unreported = True
        elif state.state == "grid queue":
            self.new.remove(j)
        state.state = "gone"

    # Grid jobs that have to leave

    def wanted(self, i: int) -> list[int]:
        """Jobs whose tasks have to leave a cluster."""
        cluster = self.clusters[i]
        told = cluster.marked | cluster.fleeing
        return [j for j in cluster.parts if j in told or not cluster.member]

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
            self.come_back(j)
            return
        moved = {i: state.clusters[i] for i in leaving}
        cost = math.ceil(sum(moved.values()) * self.migration_cost)
        for i, tasks in moved.items():
            del state.clusters[i], self.clusters[i].parts[j]
            self.clusters[i].fleeing.discard(j)
            if self.rules.release == "moved" and cost:
                count = self.clusters[i].whole(tasks)
                self.clusters[i].holds.append(Hold(self.now + cost, count, j))
                owner = self.clusters[i].owner
                owner.update({p: ("hold", j) for p in owner if owner[p] == ("part", j)})
                self.segments.append(Segment(j, i, count, self.now, self.now + cost, True, tasks))
            self.disown(i, ("part", j))
            self.open_proxies.setdefault(j, []).append((i, tasks, self.now))
            self.put(j, targets[i], tasks)
        state.migrations += 1
        state.tasks_moved += sum(moved.values())
        self.begin_spell(j, cost)

    def come_back(self, j: int) -> None:
        """Give a job back to the grid scheduler."""
        state = self.states[j]
        self.drop(j)
        self.close_proxies(j)
        state.suspensions += 1
        state.state = "grid queue"
        if not self.rules.checkpoint:
            state.lost += self.jobs[j].run_time - state.left
            state.left = Fraction(self.jobs[j].run_time)
        self.in_progress.append(j)

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
        resumes = self.rules.checkpoint and self.states[j].left < self.jobs[j].run_time
        return math.ceil(self.jobs[j].processors * self.resume_cost) if resumes else 0

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
            together = ready + math.ceil(self.estimated(j) * self.overhead / slowest)
            has = {i: self.believed(i, together) for i in clique}
            shares: dict[int, int] = {}
            for i in sorted(clique, key=lambda i: (-has[i], i)):
                if sum(shares.values()) < needed and has[i] > 0:
                    assert has[i] % self.clusters[i].node == 0
                    shares[i] = min(has[i], needed - sum(shares.values()))
            if sum(shares.values()) == needed and len(shares) <= self.most_sites:
                choices.append(shares)
        return min(choices, key=len) if choices else None

"""Least load and MUSCLE over clusters with plans or local policies: the plain oracle of `multicluster`.

Local policies are those of `tests.oracles.nodes`; what MUSCLE allocates is left to the oracle of its
algorithms. Jobs are killed by outages, given up, or wait for others. Resources are sets of numbers. Jobs run
at least 1 s, since a round is over before anything else happens.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.oracles import nodes
from tests.oracles.local import Policy
from tests.oracles.orders import corrected, lengthened, saved
from tests.oracles.packing import NaiveCluster, NaiveSeed, allocate
from tests.oracles.users import NEVER, Users

FOREVER = 10**9
"""When an outage ends that has no end."""


class Resize(NamedTuple):
    """From a time on a cluster has so many processors, the lowest ones."""

    time: int
    cluster: int
    processors: int


class InterruptedJob(NamedTuple):
    """A job; times in seconds, run time and estimate as at speed 1.

    It waits for (job, kind, delay); `delay` is how long after its entry it is announced.
    """

    submit: int
    run: int
    estimate: int
    processors: int
    due: int
    delay: int = 0
    gives_up: int = NEVER
    failed: bool = False
    after: tuple[tuple[int, str, int], ...] = ()


class Site(NamedTuple):
    """A cluster of resources of `unit` processors each; without a policy it follows plans."""

    resources: int
    unit: int = 1
    speed: float = 1.0
    policy: Policy | None = None
    requeue: str = "place"
    interval: int = 0
    cost: int = 0


class Outage(NamedTuple):
    """Resources of a cluster that are out for a time, or drained."""

    cluster: int
    first: int
    end: int
    start: int
    until: int
    drained: bool


class Execution(NamedTuple):
    """A job on a cluster, on some of its resources, from its start to its end."""

    job: int
    cluster: int
    resources: frozenset[int]
    start: int
    end: int


class InterruptedMulticluster:
    """Goes from instant to instant, and asks anew at each of them what can happen."""

    def __init__(
        self,
        jobs: Sequence[InterruptedJob],
        sites: Sequence[Site],
        *,
        outages: Sequence[Outage] = (),
        changes: Sequence[Resize] = (),
        overrun: str = "doubling",
        dispatcher: str = "muscle",
        seeding: str = "muscle",
        rounds: str = "collected",
        ends: str = "all",
        threshold: int = 0,
        load: str = "unfinished",
        draw: Callable[[int, int], int],
    ) -> None:
        self.jobs, self.sites, self.outages, self.changes = jobs, sites, outages, list(changes)
        self.overrun, self.dispatcher, self.seeding = overrun, dispatcher, seeding
        self.collects, self.ends, self.threshold, self.counted = rounds == "collected", ends, threshold, load
        self.draw = draw
        self.drawn: dict[int, float] = {}
        self.now = -1
        self.rounds = 0
        self.work = [[self.seconds(job.run, site) for site in sites] for job in jobs]
        self.guess = [[self.seconds(job.estimate, site) for site in sites] for job in jobs]
        large = [j for j, job in enumerate(jobs) if job.processors > self.reach()]
        self.users = Users(jobs, large)
        self.fate = self.users.fate
        self.turn: dict[int, int] = {}
        self.turns = 0
        self.kills = dict.fromkeys(range(len(jobs)), 0)
        self.failed_at = -1
        self.collected: list[int] = []
        self.announced: list[tuple[int, int, int]] = []
        self.executions: list[Execution] = []
        self.clusters: list[NaiveSite] = [
            (PlannedSite if site.policy is None else QueueSite)(self, index, site)
            for index, site in enumerate(sites)
        ]

    @staticmethod
    def seconds(length: int, site: Site) -> int:
        return max(1, math.ceil(length / site.speed))

    def reach(self) -> int:
        """Processors of the largest cluster when that is smallest, if nothing is out."""
        present = [site.resources * site.unit for site in self.sites]
        largest = [max(present)]
        for time in sorted({change.time for change in self.changes}):
            for change in self.changes:
                if change.time == time:
                    present[change.cluster] = change.processors
            largest.append(max(present))
        return min(largest)

    def length(self, work: int, m: int) -> int:
        """Seconds that work takes on a cluster."""
        return lengthened(work, self.sites[m].interval, self.sites[m].cost)

    def actual(self, j: int, m: int) -> int:
        return self.length(self.work[j][m], m)

    def expected(self, j: int, m: int) -> int:
        return self.length(self.guess[j][m], m)

    def slack(self, j: int, m: int) -> int:
        return self.jobs[j].due - self.expected(j, m) - self.users.entered[j]

    def run(self) -> InterruptedMulticluster:
        while len(self.fate) < len(self.jobs):
            times = [time for time in self.times() if self.now < time < FOREVER]
            if not times:
                break
            self.now = min(times)
            before: tuple[int, ...] = ()
            while before != (before := self.state()):
                self.instant()
        for j in range(len(self.jobs)):
            self.fate.setdefault(j, "starved")
        return self

    def times(self) -> list[int]:
        """When something may happen."""
        times = self.users.times() + [time for time, _, _ in self.announced]
        times += [change.time for change in self.changes]
        times += [time for each in self.outages for time in (each.start, each.until)]
        for cluster in self.clusters:
            times += [end for _, end, _ in cluster.running.values()] + cluster.times()
            times += [cluster.planned_end[j] - self.threshold for j in cluster.waiting]
        return times

    def state(self) -> tuple[int, ...]:
        """Changes whenever something happens."""
        running = sum(len(cluster.running) for cluster in self.clusters)
        entered = len(self.users.entered)
        return self.now, self.rounds, entered, len(self.fate), len(self.executions), running

    def instant(self) -> None:
        for cluster in self.clusters:
            cluster.let_end()
        disturbed = self.let_fail()
        self.live()
        for cluster in self.clusters:
            cluster.let_start()
        resized = self.change()
        fitting = [j for j in self.collected if any(cluster.holds(j) for cluster in self.clusters)]
        if resized:
            is_due = self.may_start()
        elif fitting:
            is_due = bool(disturbed) or not self.collects or self.is_over()
        else:
            is_due = any(self.clusters[m].waiting for m in disturbed)
        if is_due:
            self.collected = [j for j in self.collected if j not in fitting]
            self.hand_over(fitting, disturbed | resized)
        for cluster in self.clusters:
            cluster.let_start()

    def may_start(self) -> bool:
        waiting = [j for cluster in self.clusters for j in cluster.waiting]
        ahead = [j for j in range(len(self.jobs)) if j not in self.fate and j not in self.users.entered]
        return bool(waiting or ahead or self.collected or self.announced)

    def is_over(self) -> bool:
        """Whether the clusters have too little to do for the collection to go on."""
        over = [cluster.has_little(self.threshold) for cluster in self.clusters if cluster.places()]
        return any(over) if self.ends == "any" else all(over)

    # what happens to resources

    def let_fail(self) -> set[int]:
        if self.failed_at == self.now:
            return set()
        self.failed_at = self.now
        disturbed: dict[int, set[int]] = {}
        for each in self.outages:
            if self.now in (each.start, each.until):
                fails = self.now == each.start and not each.drained
                failing = set(range(each.first, each.end)) if fails else set()
                disturbed.setdefault(each.cluster, set()).update(failing)
        handed_back = [j for m in sorted(disturbed) for j in self.clusters[m].disturb(disturbed[m])]
        self.collected = handed_back + self.collected
        return set(disturbed)

    def change(self) -> set[int]:
        changed, handed_back = set(), []
        while self.changes and self.changes[0].time == self.now:
            change = self.changes.pop(0)
            cluster = self.clusters[change.cluster]
            cluster.present = change.processors // cluster.site.unit
            handed_back += cluster.rearrange([], at_end=False)
            changed.add(change.cluster)
        self.collected = handed_back + self.collected
        return changed

    def lose(self, j: int, m: int, elapsed: int) -> bool:
        """Let a job be killed; whether it waits again."""
        site = self.sites[m]
        kept = saved(elapsed, site.interval, site.cost)
        for k, other in enumerate(self.sites):
            done = kept if k == m else int(kept * site.speed / other.speed)
            self.work[j][k] = max(1, self.work[j][k] - done)
            self.guess[j][k] = max(1, self.guess[j][k] - done)
        self.kills[j] += 1
        if site.requeue == "lost":
            self.users.leave(j, self.now, "lost")
        elif site.requeue == "end":
            self.number(j)
        return site.requeue != "lost"

    def number(self, j: int) -> None:
        self.turn[j] = self.turns
        self.turns += 1

    # what happens to jobs

    def live(self) -> None:
        entering, leaving = self.users.look(self.now)
        for j in entering:
            self.number(j)
            self.announced.append((self.now + self.jobs[j].delay, self.turn[j], j))
        for j in leaving:
            self.collected = [other for other in self.collected if other != j]
            self.announced = [each for each in self.announced if each[2] != j]
            for cluster in self.clusters:
                if j in cluster.waiting:
                    cluster.withdraw(j)
        due = sorted(each for each in self.announced if each[0] <= self.now)
        self.announced = [each for each in self.announced if each not in due]
        self.collected += [j for _, _, j in due]

    # rounds

    def hand_over(self, arrived: list[int], again: set[int]) -> None:
        given = self.dispatch(arrived) if arrived else {}
        self.rounds += 1
        for m, cluster in enumerate(self.clusters):
            own = [j for j, seed in given.items() if seed.cluster == m]
            if cluster.places() and (self.collects or own or m in again):
                cluster.plan(own, {j: given[j].resources for j in own})

    def dispatch(self, arrived: list[int]) -> dict[int, NaiveSeed]:
        """Cluster of each job, and resources by their places among those that take jobs."""
        if self.dispatcher == "muscle":
            clusters = [NaiveCluster(each.left(), each.workload(), each.site.unit) for each in self.clusters]
            seeds = allocate(
                [self.jobs[j].processors for j in arrived],
                [[self.expected(j, m) for j in arrived] for m in range(len(self.sites))],
                [[self.slack(j, m) for j in arrived] for m in range(len(self.sites))],
                clusters,
                lambda equals: self.draw(self.rounds, equals),
            )
            return {arrived[k]: seed for k, seed in seeds.items()}
        choose = self.lightest if self.dispatcher == "dll" else self.any_of
        return {j: NaiveSeed(m, 0, []) for j, m in choose(arrived).items()}

    def lightest(self, arrived: list[int]) -> dict[int, int]:
        loads = {m: each.load(self.counted) for m, each in enumerate(self.clusters) if each.places()}
        added = dict.fromkeys(loads, 0.0)
        chosen = {}
        for j in arrived:
            able = [m for m in loads if self.clusters[m].holds(j)]
            best = min(able, key=lambda m: (loads[m] + added[m], m))
            chosen[j] = best
            cluster = self.clusters[best]
            added[best] += self.expected(j, best) * cluster.taken(j) / cluster.processors()
        return chosen

    def any_of(self, arrived: list[int]) -> dict[int, int]:
        chosen = {}
        for j in arrived:
            able = [m for m, cluster in enumerate(self.clusters) if cluster.holds(j)]
            shares = [self.clusters[m].processors() * self.sites[m].speed for m in able]
            place = self.drawn[j] * sum(shares)
            chosen[j] = next(m for k, m in enumerate(able) if sum(shares[: k + 1]) > place)
        return chosen


class NaiveSite(ABC):
    """What the clusters have in common."""

    def __init__(self, run: InterruptedMulticluster, index: int, site: Site) -> None:
        self.run, self.index, self.site = run, index, site
        self.present = site.resources
        self.waiting: list[int] = []
        self.running: dict[int, tuple[int, int, set[int]]] = {}
        self.planned_end: dict[int, int] = {}

    def places(self) -> list[int]:
        """Resources that take jobs."""
        now = self.run.now
        out = [each for each in self.run.outages if each.cluster == self.index]
        out = [each for each in out if each.start <= now < each.until]
        return [r for r in range(self.present) if not any(each.first <= r < each.end for each in out)]

    def processors(self) -> int:
        return len(self.places()) * self.site.unit

    def size(self, j: int) -> int:
        return math.ceil(self.run.jobs[j].processors / self.site.unit)

    def taken(self, j: int) -> int:
        return self.size(j) * self.site.unit

    def holds(self, j: int) -> bool:
        return self.size(j) <= len(self.places())

    def load(self, counted: str) -> float:
        jobs = [*self.running, *self.waiting] if counted == "unfinished" else self.waiting
        return sum(self.run.expected(j, self.index) * self.taken(j) for j in jobs) / self.processors()

    def workload(self) -> list[tuple[int, int, int]]:
        m = self.index
        slacks = {j: max(self.run.slack(j, m), 1) for j in self.waiting}
        return [(self.run.expected(j, m), self.taken(j), slack) for j, slack in slacks.items()]

    def has_little(self, threshold: int) -> bool:
        return max((self.planned_end[j] for j in self.waiting), default=0) - self.run.now <= threshold

    def begin(self, j: int, resources: set[int]) -> None:
        now = self.run.now
        assert not any(resources & held for _, _, held in self.running.values())
        self.running[j] = (now, now + self.run.actual(j, self.index), resources)
        self.run.users.start(j, now)

    def leave(self, j: int) -> int:
        """Note that a job runs no longer; return when it had started."""
        start, _, resources = self.running.pop(j)
        self.run.executions.append(Execution(j, self.index, frozenset(resources), start, self.run.now))
        return start

    def let_end(self) -> None:
        for j in [j for j, (_, end, _) in self.running.items() if end == self.run.now]:
            self.leave(j)
            self.run.users.leave(j, self.run.now, "completed")

    def disturb(self, failing: set[int]) -> list[int]:
        again = []
        for j in [j for j, (_, _, held) in self.running.items() if held & failing]:
            start = self.leave(j)
            if self.run.lose(j, self.index, self.run.now - start):
                again.append(j)
        return self.rearrange(again, at_end=self.site.requeue == "end")

    def times(self) -> list[int]:
        """When something may happen besides ends."""
        return []

    def expected_end(self, j: int) -> int:
        """When a running job is expected to end, seen from now."""
        start = self.running[j][0]
        return start + corrected(self.run.expected(j, self.index), self.run.now - start, self.run.overrun)

    def free(self) -> dict[int, int]:
        """When each resource is expected to be left by the running jobs."""
        held = {r: self.expected_end(j) for j, (_, _, own) in self.running.items() for r in own}
        return {r: held.get(r, self.run.now) for r in self.places()}

    @abstractmethod
    def rearrange(self, again: list[int], *, at_end: bool) -> list[int]:
        """Go on with other resources; killed jobs wait again. Who is too large from now on."""

    @abstractmethod
    def withdraw(self, j: int) -> None:
        """Let a job wait no longer."""

    @abstractmethod
    def let_start(self) -> None:
        """Start what starts now."""

    @abstractmethod
    def plan(self, new: list[int], seeds: dict[int, list[int]]) -> None:
        """Take jobs over, and plan anew."""

    @abstractmethod
    def left(self) -> list[int]:
        """When each resource is left if the waiting jobs run as planned."""


class PlannedSite(NaiveSite):
    """Jobs start in the order of a plan, each when its resources are free."""

    def __init__(self, run: InterruptedMulticluster, index: int, site: Site) -> None:
        super().__init__(run, index, site)
        self.where: dict[int, set[int]] = {}

    def follow(self, chosen: dict[int, set[int]]) -> dict[int, int]:
        """When each resource is left if the waiting jobs run as planned; those not chosen for choose."""
        left = self.free()
        self.where = {}
        for j in self.waiting:
            first = sorted(left, key=lambda r: (left[r], r))[: self.size(j)]
            self.where[j] = own = chosen.get(j, set(first))
            end = max(left[r] for r in own) + self.run.expected(j, self.index)
            self.planned_end[j] = end
            left |= dict.fromkeys(own, end)
        return left

    def left(self) -> list[int]:
        ends = dict(self.planned_end)
        left = list(self.follow(self.where).values())
        self.planned_end = ends
        return left

    def rearrange(self, again: list[int], *, at_end: bool) -> list[int]:
        jobs = self.waiting + again if at_end else again + self.waiting
        self.waiting = [j for j in jobs if self.holds(j)]
        self.follow({})
        return [j for j in jobs if not self.holds(j)]

    def withdraw(self, j: int) -> None:
        self.waiting.remove(j)

    def plan(self, new: list[int], seeds: dict[int, list[int]]) -> None:
        places = self.places()
        self.waiting += new
        chosen = dict(self.where)
        if self.run.seeding == "arrival":
            self.waiting.sort(key=lambda j: self.run.turn[j])
            chosen = {}
        elif self.run.seeding == "muscle":
            chosen |= {j: {places[k] for k in seeds[j]} for j in new}
        else:
            chosen = {j: own for j, own in chosen.items() if j not in new}
        self.follow(chosen)

    def let_start(self) -> None:
        taken = {r for _, _, held in self.running.values() for r in held}
        for j in list(self.waiting):
            own = self.where[j]
            if not own & taken:
                self.waiting.remove(j)
                self.begin(j, own)
            taken |= own


class QueueSite(NaiveSite):
    """A local policy; jobs take the lowest resources that are free."""

    def __init__(self, run: InterruptedMulticluster, index: int, site: Site) -> None:
        super().__init__(run, index, site)
        assert site.policy is not None
        policy = nodes.Policy(*site.policy, overrun=run.overrun)
        self.cluster = nodes.Cluster(
            [nodes.Node(site.resources)], [nodes.Job(0, 0, 1)] * len(run.jobs), policy
        )
        self.waiting = self.cluster.waiting

    def times(self) -> list[int]:
        return self.cluster.times()

    def let_end(self) -> None:
        super().let_end()
        self.cluster.now = self.run.now
        self.cluster.finish()
        for j in self.cluster.outrun():
            self.cluster.correct(j)

    def disturb(self, failing: set[int]) -> list[int]:
        for j, (_, _, held) in self.running.items():
            if held & failing:
                self.cluster.running.pop(j)
        return super().disturb(failing)

    def rearrange(self, again: list[int], *, at_end: bool) -> list[int]:
        cluster, places = self.cluster, set(self.places())
        large = [j for j in self.waiting if not self.holds(j)]
        tired = [j for j in again if not self.holds(j)]
        again = [j for j in again if self.holds(j)]
        for j in large:
            self.withdraw(j)
        cluster.nodes = [nodes.Node(len(places))]
        for j, (_, _, held) in self.running.items():
            cluster.running[j] = [nodes.Part(0, 1, len(held & places), 0, {})]
        for j in again:
            self.enter(j, at_end=at_end)
        if again:
            # all of them are planned in the order of the queue
            cluster.placed = list(self.waiting)
        cluster.broken = cluster.changed = True
        return large + tired if at_end else tired + large

    def enter(self, j: int, *, at_end: bool) -> None:
        """Put a job into the queue, at its old place or behind all others."""
        cluster, m = self.cluster, self.index
        work, guess = self.run.actual(j, m), self.run.expected(j, m)
        cluster.jobs[j] = nodes.Job(self.run.users.entered[j], work, guess, cores=self.size(j), most=1)
        cluster.work[j], cluster.guess[j], cluster.predicted[j] = work, guess, guess
        if at_end:
            cluster.entry.pop(j, None)
        cluster.enter(j)
        self.planned_end[j] = NEVER

    def withdraw(self, j: int) -> None:
        self.cluster.forget(j)

    def let_start(self) -> None:
        for j in self.cluster.one_pass():
            self.begin(j, self.lowest({k: held for k, (_, _, held) in self.running.items()}, j))

    def lowest(self, held: dict[int, set[int]], j: int) -> set[int]:
        taken = {r for own in held.values() for r in own}
        return set([r for r in self.places() if r not in taken][: self.size(j)])

    def plan(self, new: list[int], seeds: dict[int, list[int]]) -> None:
        for j in new:
            self.enter(j, at_end=True)
        self.let_start()
        starts, _ = self.foresee()
        for j in self.waiting:
            self.planned_end[j] = starts[j] + self.run.expected(j, self.index)

    def left(self) -> list[int]:
        return list(self.foresee()[1].values())

    def foresee(self) -> tuple[dict[int, int], dict[int, int]]:
        """When jobs start and resources are left if all estimates are right and nobody comes."""
        ahead, left = self.cluster.as_expected(), self.free()
        held = {j: own for j, (_, _, own) in self.running.items()}
        starts: dict[int, int] = {}
        while ahead.waiting:
            ahead.now = min(ahead.times())
            for j in ahead.finish():
                del held[j]
            ahead.changed = True
            for j in ahead.one_pass():
                starts[j], held[j] = ahead.now, self.lowest(held, j)
                left |= dict.fromkeys(held[j], ahead.now + self.run.expected(j, self.index))
        return starts, left

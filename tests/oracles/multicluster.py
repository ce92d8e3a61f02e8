"""Least load and MUSCLE over clusters with local policies, in plain form: the oracle of `multicluster`.

Clusters are those of `tests.oracles.local`; what MUSCLE allocates is left to the oracle of its algorithms. A
job is handed over when it arrives. Resources are sets of numbers. Jobs run at least 1 s, since a round is
over before anything else happens.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.oracles.local import INCREMENTS, REJECTED, Cluster, Job, Policy
from tests.oracles.packing import NaiveCluster, NaiveSeed, allocate


class DueJob(NamedTuple):
    """A job with its deadline; run time and estimate [s] are those on every cluster."""

    job: Job
    due: int


class Resize(NamedTuple):
    """From a time on a cluster has so many processors, the lowest ones."""

    time: int
    cluster: int
    processors: int


class Multicluster:
    """The state of a simulation; jobs are named by their index."""

    def __init__(
        self,
        jobs: Sequence[DueJob],
        clusters: Sequence[tuple[int, Policy]],
        changes: Sequence[Resize],
        overrun: str,
        dispatcher: str,
        draw: Callable[[int, int], int],
    ) -> None:
        assert dispatcher in ("muscle", "dll")
        self.jobs = jobs
        self.clusters = [Cluster(processors, policy, overrun) for processors, policy in clusters]
        self.changes = list(changes)
        self.dispatcher = dispatcher
        self.draw = draw
        self.rounds = 0
        self.coming = list(range(len(jobs)))
        self.numbers: list[dict[int, int]] = [{} for _ in clusters]
        self.held: list[dict[int, set[int]]] = [{} for _ in clusters]

    def run(self) -> list[tuple[int, int]]:
        """Cluster and start of each job."""
        while instants := self.instants():
            now = min(instants)
            for m, cluster in enumerate(self.clusters):
                cluster.now = now
                self.go_on(m)
            changed, again = self.change(now)
            arrived = again + [j for j in self.coming if self.jobs[j].job.submit_time == now]
            self.coming = [j for j in self.coming if j not in arrived]
            if not arrived and not changed:
                continue
            given = self.dispatch(arrived, now) if arrived else {}
            self.rounds += 1
            for m, cluster in enumerate(self.clusters):
                own = [j for j, chosen in given.items() if chosen == m]
                for j in own:
                    self.numbers[m][j] = cluster.enter(self.jobs[j].job)
                if own or m in changed:
                    self.schedule(m)
        places: dict[int, tuple[int, int]] = {}
        for m, numbers in enumerate(self.numbers):
            places |= {j: (m, self.clusters[m].start[number]) for j, number in numbers.items()}
        assert all(start != REJECTED for _, start in places.values())
        return [places[j] for j in range(len(self.jobs))]

    def instants(self) -> list[int]:
        happening = [time for cluster in self.clusters for time in cluster.future_instants()]
        arriving = [self.jobs[j].job.submit_time for j in self.coming]
        return happening + arriving + [change.time for change in self.changes]

    def go_on(self, m: int) -> None:
        """Ends, corrections and planned starts of this instant, and the pass that follows."""
        cluster = self.clusters[m]
        ended = cluster.completions_now()
        for number in ended:
            cluster.complete(number)
            del self.held[m][number]
        # MUSCLE asks when jobs are expected to end, also where the local policy does not look at it
        outrun = cluster.overruns_now()
        for number in outrun:
            cluster.correct(number)
        if ended or (outrun and cluster.uses_expected_ends()) or cluster.start_is_planned_now():
            self.schedule(m)

    def schedule(self, m: int) -> None:
        """A scheduling pass; jobs take the lowest resources that are free, in order of entry."""
        cluster = self.clusters[m]
        cluster.schedule()
        for number in sorted(set(cluster.running) - set(self.held[m])):
            self.held[m][number] = self.lowest(m, self.held[m], self.size(m, number))

    def size(self, m: int, number: int) -> int:
        return next(self.jobs[j].job.processors for j, own in self.numbers[m].items() if own == number)

    def lowest(self, m: int, held: dict[int, set[int]], size: int) -> set[int]:
        taken = {r for own in held.values() for r in own}
        return set([r for r in range(self.clusters[m].processors) if r not in taken][:size])

    def change(self, now: int) -> tuple[set[int], list[int]]:
        """Clusters that change, and the jobs that become too large for them."""
        changed, again = set(), []
        while self.changes and self.changes[0].time == now:
            change = self.changes.pop(0)
            m, cluster = change.cluster, self.clusters[change.cluster]
            changed.add(m)
            cluster.processors = change.processors
            for number in list(cluster.waiting):
                if cluster.jobs[number].processors > change.processors:
                    j = next(j for j, own in self.numbers[m].items() if own == number)
                    again.append(j)
                    del self.numbers[m][j]
                    cluster.waiting.remove(number)
                    cluster.planned.pop(number, None)
                    cluster.arrived_since_pass = [n for n in cluster.arrived_since_pass if n != number]
            for number, own in self.held[m].items():
                here = len([r for r in own if r < change.processors])
                cluster.jobs[number] = cluster.jobs[number]._replace(processors=here)
            cluster.corrected_since_pass = True
        return changed, again

    def dispatch(self, arrived: list[int], now: int) -> dict[int, int]:
        """Cluster of each job, in the order in which they are handed over."""
        if self.dispatcher == "dll":
            added = [0.0] * len(self.clusters)
            chosen = {}
            for j in arrived:
                job = self.jobs[j].job
                able = [m for m, c in enumerate(self.clusters) if c.processors >= job.processors]
                loads = {m: self.load(m) + added[m] for m in able}
                chosen[j] = min(able, key=lambda m: (loads[m], m))
                added[chosen[j]] += job.estimate * job.processors / self.clusters[chosen[j]].processors
            return chosen
        seeds = allocate(
            [self.jobs[j].job.processors for j in arrived],
            [[self.jobs[j].job.estimate for j in arrived] for _ in self.clusters],
            [[self.slack(j) for j in arrived] for _ in self.clusters],
            [NaiveCluster(self.free(m, now), self.workload(m)) for m in range(len(self.clusters))],
            lambda equals: self.draw(self.rounds, equals),
        )
        return {arrived[k]: seed.cluster for k, seed in seeds.items()}

    def slack(self, j: int) -> int:
        job, due = self.jobs[j]
        return due - job.estimate - job.submit_time

    def load(self, m: int) -> float:
        cluster = self.clusters[m]
        there = cluster.running + cluster.waiting
        work = sum(cluster.jobs[number].estimate * self.size(m, number) for number in there)
        return work / cluster.processors

    def workload(self, m: int) -> list[tuple[int, int, int]]:
        waiting = [j for j, number in self.numbers[m].items() if number in self.clusters[m].waiting]
        jobs = [self.jobs[j].job for j in waiting]
        slacks = [max(self.slack(j), 1) for j in waiting]
        return [(job.estimate, job.processors, slack) for job, slack in zip(jobs, slacks, strict=True)]

    def free(self, m: int, now: int) -> list[int]:
        """When each resource is left by the jobs that the cluster has, if all estimates are right."""
        cluster = self.clusters[m]
        left = [now] * cluster.processors
        ahead, held = cluster.as_expected(), dict(self.held[m])
        for number in cluster.running:
            for r in held[number]:
                if r < cluster.processors:
                    left[r] = cluster.expected_end[number]
        while ahead.waiting:
            ahead.now = min(ahead.future_instants())
            for number in ahead.completions_now():
                ahead.complete(number)
                del held[number]
            ahead.schedule()
            for number in sorted(set(ahead.running) - set(held)):
                held[number] = self.lowest(m, held, ahead.jobs[number].processors)
                for r in held[number]:
                    left[r] = ahead.now + ahead.jobs[number].estimate
        return left


# --- with failures, users who give up, and jobs that wait for others ------------------------------


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
    gives_up: int | None = None
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


NEVER = 10**9


class InterruptedMulticluster:
    """Goes from second to second, and asks anew at each of them what can happen."""

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
        self.now = 0
        self.rounds = 0
        self.work = [[self.seconds(job.run, site) for site in sites] for job in jobs]
        self.guess = [[self.seconds(job.estimate, site) for site in sites] for job in jobs]
        self.fate: dict[int, str] = {}
        self.entered: dict[int, int] = {}
        self.turn: dict[int, int] = {}
        self.turns = 0
        self.first_start: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.kills = dict.fromkeys(range(len(jobs)), 0)
        self.submitted: set[int] = set()
        self.failed_at = -1
        self.collected: list[int] = []
        self.announced: list[tuple[int, int, int]] = []
        self.executions: list[Execution] = []
        self.clusters: list[NaiveSite] = [
            (PlannedSite if site.policy is None else QueueSite)(self, index, site)
            for index, site in enumerate(sites)
        ]
        for j, job in enumerate(jobs):
            if job.processors > self.reach():
                self.fate[j] = "rejected"

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
        """Seconds that work takes on a cluster with a checkpoint after each interval but the last."""
        site = self.sites[m]
        checkpoints = len(range(site.interval, work, site.interval)) if site.interval else 0
        return work + site.cost * checkpoints

    def actual(self, j: int, m: int) -> int:
        return self.length(self.work[j][m], m)

    def expected(self, j: int, m: int) -> int:
        return self.length(self.guess[j][m], m)

    def slack(self, j: int, m: int) -> int:
        return self.jobs[j].due - self.expected(j, m) - self.entered[j]

    def run(self) -> InterruptedMulticluster:
        times = [job.submit + job.delay + sum(pause for _, _, pause in job.after) for job in self.jobs]
        times += [job.gives_up or 0 for job in self.jobs] + [change.time for change in self.changes]
        times += [time for each in self.outages for time in (each.start, each.until) if time < NEVER]
        rest = sum(max(self.actual(j, m) for m in range(len(self.sites))) for j in range(len(self.jobs)))
        for now in range(sum(times) + 2 * rest * (1 + len(self.outages))):
            self.now = now
            before: tuple[int, ...] = ()
            while before != (before := self.state()):
                self.instant()
            if len(self.fate) == len(self.jobs) or (self.now > max(times) and not self.is_moving()):
                break
        for j in range(len(self.jobs)):
            self.fate.setdefault(j, "starved")
        return self

    def state(self) -> tuple[int, ...]:
        """Changes whenever something happens."""
        running = sum(len(cluster.running) for cluster in self.clusters)
        return self.now, self.rounds, len(self.entered), len(self.fate), len(self.executions), running

    def is_moving(self) -> bool:
        """Whether something is still to happen after all that comes from outside."""
        moving = [j for cluster in self.clusters for j in (*cluster.running, *cluster.waiting)]
        waiting = [j for j in range(len(self.jobs)) if j not in self.fate and j not in self.entered]
        return bool(moving or self.announced or any(self.now <= self.eligible(j) < NEVER for j in waiting))

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
        ahead = [j for j in range(len(self.jobs)) if j not in self.fate and j not in self.entered]
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
        saved = site.interval * (elapsed // (site.interval + site.cost)) if site.interval else 0
        for k, other in enumerate(self.sites):
            done = saved if k == m else int(saved * site.speed / other.speed)
            self.work[j][k] = max(1, self.work[j][k] - done)
            self.guess[j][k] = max(1, self.guess[j][k] - done)
        self.kills[j] += 1
        if site.requeue == "lost":
            self.fate[j], self.gone[j] = "lost", self.now
        elif site.requeue == "end":
            self.number(j)
        return site.requeue != "lost"

    def number(self, j: int) -> None:
        self.turn[j] = self.turns
        self.turns += 1

    # what happens to jobs

    def met_at(self, on: int, kind: str) -> int:
        """When a dependency is met; a second before NEVER while that is not known."""
        fate = self.fate.get(on)
        if kind == "after" and on in self.first_start:
            return self.first_start[on]
        if on not in self.gone:
            return NEVER - 1
        is_ok = fate == "completed" and not self.jobs[on].failed
        never = fate == "never eligible" or (kind == "afterok" and not is_ok)
        return NEVER if never or (kind == "afternotok" and is_ok) else self.gone[on]

    def eligible(self, j: int) -> int:
        """When a job may start by its dependencies and submission."""
        times = [self.jobs[j].submit]
        for on, kind, pause in self.jobs[j].after:
            met = self.met_at(on, kind)
            times.append(met if met >= NEVER - 1 else met + pause)
        return max(times)

    def live(self) -> None:
        before: tuple[int, ...] = ()
        while before != (before := (len(self.gone), len(self.entered))):
            coming = [
                j for j, job in enumerate(self.jobs) if j not in self.entered and job.submit <= self.now
            ]
            # those that were submitted before come first
            for j in sorted(coming, key=lambda j: (j not in self.submitted, j)):
                self.enter(j)
            for j, job in enumerate(self.jobs):
                there = j not in self.fate and j in self.submitted and j not in self.first_start
                if there and job.gives_up is not None and job.gives_up <= self.now:
                    self.give_up(j)
                    break
        due = sorted(each for each in self.announced if each[0] <= self.now)
        self.announced = [each for each in self.announced if each not in due]
        self.collected += [j for _, _, j in due]

    def enter(self, j: int) -> None:
        if self.fate.get(j) == "rejected":
            self.gone.setdefault(j, self.now)
        elif j not in self.fate and self.eligible(j) == NEVER:
            self.fate[j], self.gone[j] = "never eligible", self.now
        elif j not in self.fate and self.eligible(j) <= self.now:
            self.entered[j] = self.now
            self.number(j)
            self.announced.append((self.now + self.jobs[j].delay, self.turn[j], j))
        self.submitted.add(j)

    def give_up(self, j: int) -> None:
        self.fate[j], self.gone[j] = "gave up", self.now
        self.collected = [other for other in self.collected if other != j]
        self.announced = [each for each in self.announced if each[2] != j]
        for cluster in self.clusters:
            if j in cluster.waiting:
                cluster.withdraw(j)

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
        self.run.first_start.setdefault(j, now)

    def leave(self, j: int) -> int:
        """Note that a job runs no longer; return when it had started."""
        start, _, resources = self.running.pop(j)
        self.run.executions.append(Execution(j, self.index, frozenset(resources), start, self.run.now))
        return start

    def let_end(self) -> None:
        for j in [j for j, (_, end, _) in self.running.items() if end == self.run.now]:
            self.leave(j)
            self.run.fate[j], self.run.gone[j] = "completed", self.run.now

    def disturb(self, failing: set[int]) -> list[int]:
        again = []
        for j in [j for j, (_, _, held) in self.running.items() if held & failing]:
            start = self.leave(j)
            if self.run.lose(j, self.index, self.run.now - start):
                again.append(j)
        return self.rearrange(again, at_end=self.site.requeue == "end")

    def expected_end(self, j: int) -> int:
        """When a running job is expected to end, seen from now."""
        start, length = self.running[j][0], self.run.expected(j, self.index)
        if self.run.overrun == "doubling":
            while start + length <= self.run.now:
                length *= 2
            return start + length
        steps = iter(INCREMENTS)
        while start + length <= self.run.now:
            length += next(steps)
        return start + length

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
        self.cluster = Cluster(site.resources, site.policy, run.overrun)
        self.numbers: dict[int, int] = {}
        self.entry: dict[int, int] = {}
        self.entries = 0
        self.dirty = False

    def let_end(self) -> None:
        super().let_end()
        cluster = self.cluster
        cluster.now = self.run.now
        ended = cluster.completions_now()
        for number in ended:
            cluster.complete(number)
        outrun = cluster.overruns_now()
        for number in outrun:
            cluster.correct(number)
        self.dirty |= bool(ended) or (bool(outrun) and cluster.uses_expected_ends())
        self.dirty |= cluster.start_is_planned_now()

    def disturb(self, failing: set[int]) -> list[int]:
        for j, (_, _, held) in self.running.items():
            if held & failing:
                self.cluster.running.remove(self.numbers[j])
        return super().disturb(failing)

    def rearrange(self, again: list[int], *, at_end: bool) -> list[int]:
        cluster, places = self.cluster, set(self.places())
        large = [j for j in self.waiting if not self.holds(j)]
        for j in large:
            self.withdraw(j)
        tired = [j for j in again if not self.holds(j)]
        again = [j for j in again if self.holds(j)]
        cluster.processors = len(places)
        for j, (_, _, held) in self.running.items():
            number = self.numbers[j]
            cluster.jobs[number] = cluster.jobs[number]._replace(processors=len(held & places))
        cluster.corrected_since_pass = True
        self.dirty = True
        if again:
            if at_end:
                self.count(again)
            jobs = sorted([*self.waiting, *again], key=lambda j: self.entry[j])
            for j in self.waiting[:]:
                self.withdraw(j)
            for j in jobs:
                self.enter(j)
            # all of them are planned in the order of the queue
            cluster.arrived_since_pass = []
        return large + tired if at_end else tired + large

    def count(self, jobs: list[int]) -> None:
        for j in jobs:
            self.entry[j] = self.entries
            self.entries += 1

    def enter(self, j: int) -> None:
        m = self.index
        job = Job(self.run.entered[j], self.run.actual(j, m), self.run.expected(j, m), self.size(j))
        self.numbers[j] = self.cluster.enter(job)
        self.waiting.append(j)
        self.planned_end[j] = NEVER
        self.dirty = True

    def withdraw(self, j: int) -> None:
        cluster, number = self.cluster, self.numbers.pop(j)
        if number not in cluster.arrived_since_pass:
            cluster.ended_early_since_pass = True
        self.waiting.remove(j)
        cluster.waiting.remove(number)
        cluster.planned.pop(number, None)
        cluster.arrived_since_pass = [other for other in cluster.arrived_since_pass if other != number]
        self.dirty = True

    def let_start(self) -> None:
        if not self.dirty:
            return
        self.dirty = False
        self.cluster.schedule()
        for j in [j for j in self.waiting if self.numbers[j] in self.cluster.running]:
            self.waiting.remove(j)
            self.begin(j, self.lowest({j: held for j, (_, _, held) in self.running.items()}, j))

    def lowest(self, held: dict[int, set[int]], j: int) -> set[int]:
        taken = {r for own in held.values() for r in own}
        return set([r for r in self.places() if r not in taken][: self.size(j)])

    def plan(self, new: list[int], seeds: dict[int, list[int]]) -> None:
        self.count(new)
        for j in new:
            self.enter(j)
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
            ahead.now = min(ahead.future_instants())
            for number in ahead.completions_now():
                ahead.complete(number)
                held = {j: own for j, own in held.items() if self.numbers[j] != number}
            ahead.schedule()
            for j in [j for j in self.waiting if j not in starts and self.numbers[j] in ahead.running]:
                starts[j], held[j] = ahead.now, self.lowest(held, j)
                left |= dict.fromkeys(held[j], ahead.now + self.run.expected(j, self.index))
        return starts, left

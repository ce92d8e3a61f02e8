"""A slow, plain simulator of grids of clusters of nodes: the oracle of grid schedulers on nodes.

Clusters are those of `tests.oracles.nodes`, to which jobs are sent one by one; superschedulers decide as in
`tests.oracles.grid`. A start is predicted by copying a cluster, forgetting what nobody knows of, letting the
job enter the copy, and running it with the expected ends as real ends.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tests.oracles import nodes as single
from tests.oracles.grid import WAIT, _Grid, _Options
from tests.oracles.nodes import NEVER


@dataclass
class NodeGridJob:
    """A job of the grid, with times as on its home cluster; `asked` is what it is on each cluster."""

    home: int
    job: single.Job
    asked: list[dict[str, Any]]


@dataclass
class SiteDescription:
    """A cluster of the grid."""

    nodes: list[single.Node]
    policy: single.Policy
    speed: float = 1.0
    allowed: list[set[int]] | None = None
    events: list[single.Event] = field(default_factory=list)
    limits: list[single.Limit] = field(default_factory=list)

    @property
    def processors(self) -> int:
        return sum(node.cores for node in self.nodes)


class Site(single.Cluster):
    """A cluster to which jobs are sent one by one; expected ends are always known."""

    def __init__(self, description: SiteDescription) -> None:
        super().__init__(
            description.nodes,
            [],
            description.policy,
            allowed=description.allowed,
            events=description.events,
            limits=description.limits,
        )
        self.watched = self.track
        self.track = True
        self.behind: dict[int, int] = {}

    def add(self, job: single.Job) -> int:
        """Know a job; its number here."""
        self.jobs.append(job)
        self.work.append(job.run)
        for column in (self.guess, self.given, self.predicted):
            column.append(job.estimate)
        self.fate.append("completed")
        for column in (self.entry, self.start, self.first_start, self.end):
            column.append(-1)
        for column in (self.kills, self.extra, self.unmet, self.eligible):
            column.append(0)
        return len(self.jobs) - 1

    def ordered(self, order: str, jobs: list[int]) -> list[int]:
        """Jobs of other homes may come behind."""
        return sorted(super().ordered(order, jobs), key=lambda j: self.behind.get(j, 0))

    def holds(self, job: single.Job) -> bool:
        """Whether the empty nodes have room for a job, and limits allow it alone."""
        other = copy.copy(self)
        other.jobs = [job]
        room = sum(other.units_empty(0, n) for n in range(len(self.nodes))) >= job.units
        size, length = job.units * job.cores, self.length(job.estimate)
        limits = [self.limits[group] for group in job.groups]
        return room and all(size <= limit.cores and size * length <= limit.seconds for limit in limits)

    def forget(self, number: int) -> None:
        """Let a job wait no longer."""
        self.waiting.remove(number)
        if number in self.placed:
            self.placed.remove(number)
        if self.planned.pop(number, None):
            self.early = True
        self.changed = True

    def finish(self) -> list[int]:
        """Ends of this instant."""
        ended = sorted(j for j in self.running if self.end[j] == self.now)
        for j in ended:
            self.extra[j] += self.length(self.work[j]) - self.work[j]
            self.learn(j)
            self.stop(j)
        return ended

    def correct_all(self) -> None:
        for j in sorted(j for j in self.running if self.expected[j] == self.now):
            self.correct(j)

    def process_instant(self) -> None:
        while self.pending_events and self.pending_events[0].time == self.now:
            self.process_event(self.pending_events.pop(0))

    def one_pass(self) -> list[int]:
        """A scheduling pass if something changed; who started."""
        before = set(self.waiting)
        self.changed |= any(time <= self.now for time, _ in self.planned.values())
        if self.changed:
            if self.policy.backfilling == "conservative":
                self.conservative_pass()
            else:
                self.queue_pass()
        self.changed = False
        return [j for j in sorted(before) if j not in self.waiting]

    def instants(self) -> list[int]:
        times = [self.end[j] for j in self.running] + [self.expected[j] for j in self.running]
        times += [event.time for event in self.pending_events]
        return times + [time for time, _ in self.planned.values()]

    def as_expected(self) -> Site:
        """A copy in which all estimates are right, and nothing happens but what is announced."""
        ahead = copy.deepcopy(self)
        for j in ahead.running:
            ahead.end[j] = ahead.expected[j]
        known = {(window.node, window.start, window.end) for window in self.windows}
        ahead.pending_events = [
            event
            for event in self.pending_events
            if event.kind in ("close", "open") and (event.node, event.start, event.end) in known
        ]
        ahead.take_as_expected()
        return ahead

    def take_as_expected(self) -> None:
        for j in self.waiting:
            self.work[j] = self.guess[j]

    def fits_now(self, number: int) -> bool:
        return self.within_limits(number) and self.fits(number, self.now)

    def predicted_start(self, job: single.Job) -> float:
        """When a job that entered now would start as far as is known; infinite if never as things are."""
        ahead = self.as_expected()
        number = ahead.add(job)
        ahead.predict(number)
        ahead.enter(number)
        while True:
            ahead.changed = True
            ahead.one_pass()
            if ahead.start[number] >= 0:
                return ahead.start[number]
            times = [ahead.end[j] for j in ahead.running] + [event.time for event in ahead.pending_events]
            times += [time for time, _ in ahead.planned.values()]
            if not times:
                return math.inf
            ahead.now = min(times)
            ahead.finish()
            ahead.process_instant()
            ahead.take_as_expected()

    def planned_start(self, job: single.Job) -> float:
        """Earliest place that a plan of all who wait leaves."""
        ahead = self.as_expected()
        number = ahead.add(job)
        ahead.predict(number)
        if not ahead.waiting and ahead.fits_now(number):
            return self.now
        ahead.planned = {}
        for waiting in ahead.queue(ahead.waiting):
            ahead.plan(waiting)
        time = ahead.earliest(number)
        return math.inf if time is None else time

    # how busy

    def held(self) -> int:
        return sum(part.cores for parts in self.running.values() for part in parts)

    def is_open(self, n: int) -> bool:
        return not self.free_at(n, self.now)[0]

    def capacity(self) -> int:
        """Cores of open nodes, and those that jobs hold on others."""
        total = 0
        for n, node in enumerate(self.nodes):
            held = sum(p.cores for parts in self.running.values() for p in parts if p.node == n)
            total += node.cores if self.is_open(n) else held
        return total


class Users(single.Cluster):
    """Who submits which job when, who gives up, and who waits for whom."""

    def __init__(self, jobs: list[single.Job], rejected: Collection[int]) -> None:
        super().__init__([single.Node(0)], [], single.Policy())
        self.jobs = jobs
        self.unmet = [1 + len(job.after) for job in jobs]
        self.eligible = [0] * len(jobs)
        self.coming = list(range(len(jobs)))
        self.fate = ["rejected" if j in rejected else "completed" for j in range(len(jobs))]
        self.entering: list[int] = []
        self.leaving: list[int] = []
        self.started: set[int] = set()

    def predict(self, j: int) -> None:
        """Users leave that to clusters."""

    def enter(self, j: int) -> None:
        self.entering.append(j)

    def give_up(self, j: int) -> None:
        if j not in self.started and self.fate[j] == "completed":
            self.fate[j] = "gave up"
            self.leaving.append(j)
            self.notify_end(j, False)

    def look(self) -> None:
        """Who enters and who leaves now."""
        self.entering, self.leaving = [], []
        while self.due_timers((0,)):
            pass
        while self.coming and self.jobs[self.coming[0]].submit == self.now:
            self.submit(self.coming.pop(0))
        while self.due_timers((0, 1)):
            pass
        self.entering = [j for j in self.entering if j not in self.leaving]

    def start_job(self, j: int) -> None:
        if j in self.started:
            return
        self.started.add(j)
        for other, job in enumerate(self.jobs):
            for on, kind, delay in job.after:
                if on == j and kind == "after":
                    self.meet(other, self.now + delay)


class NodeSites:
    """Clusters of nodes and users, driven from outside."""

    def __init__(
        self, jobs: list[NodeGridJob], descriptions: list[SiteDescription], predictions: str = "exact"
    ) -> None:
        self.jobs: Any = jobs
        self.descriptions: Any = descriptions
        self.predictions = predictions
        self.now = 0
        self.clusters: Any = [Site(description) for description in descriptions]
        self.place: dict[Any, tuple[int, int]] = {}
        self.name: list[dict[int, Any]] = [{} for _ in descriptions]
        self.history = [[(0, 0, description.processors)] for description in descriptions]
        self.last_real = 0

    def set_up_users(self, rejected: Collection[int]) -> None:
        self.users = Users([each.job for each in self.jobs], rejected)

    def user_of(self, name: Any) -> int:
        """The job, as its user sees it, of a job of the grid."""
        return int(name)

    def set_time(self, now: int) -> None:
        self.now = now
        for cluster in [*self.clusters, self.users]:
            cluster.now = now

    def time_on(self, time: int, j: int, m: int) -> int:
        home = self.jobs[j].home
        if m == home:
            return time
        speed: float = self.descriptions[home].speed if home < len(self.descriptions) else 1.0
        there: float = self.descriptions[m].speed
        return math.ceil(time * speed / there)

    def job_on(self, j: int, m: int) -> Any:
        base = self.jobs[j].job
        run, estimate = self.time_on(base.run, j, m), max(1, self.time_on(base.estimate, j, m))
        return replace(base, run=run, estimate=estimate, after=[], gives_up=NEVER, **self.jobs[j].asked[m])

    def holds(self, j: int, m: int) -> bool:
        held: bool = self.clusters[m].holds(self.job_on(j, m))
        return held

    def real_instants(self) -> list[int]:
        """When something happens to jobs or nodes, as long as there are jobs."""
        times = [time for time, _, _ in self.users.timers]
        times += [self.users.jobs[j].submit for j in self.users.coming]
        if times or any(cluster.waiting or cluster.running for cluster in self.clusters) or self.has_more():
            times += [time for cluster in self.clusters for time in cluster.instants()]
        return times

    def has_more(self) -> bool:
        """Whether jobs wait elsewhere than on clusters."""
        return False

    def finish(self) -> None:
        """What happens before decisions."""
        for m, cluster in enumerate(self.clusters):
            for number in cluster.finish():
                self.users.notify_end(self.user_of(self.name[m][number]), True)
        for cluster in self.clusters:
            cluster.correct_all()
        for m, cluster in enumerate(self.clusters):
            cluster.process_instant()
            for number, fate in enumerate(cluster.fate):
                j = self.user_of(self.name[m][number])
                if fate == "lost" and self.users.fate[j] == "completed":
                    self.users.fate[j] = "lost"
                    self.users.notify_end(j, True)
        self.users.look()

    def send(self, job: single.Job, m: int, name: Any) -> int:
        number: int = self.clusters[m].add(job)
        self.clusters[m].predict(number)
        self.name[m][number] = name
        self.clusters[m].enter(number)
        return number

    def start_on(self, job: single.Job, m: int) -> Any:
        site = self.clusters[m]
        return site.planned_start(job) if self.predictions == "plan" else site.predicted_start(job)

    def passes(self) -> None:
        for m, cluster in enumerate(self.clusters):
            for number in cluster.one_pass():
                self.users.start_job(self.user_of(self.name[m][number]))

    def load(self, m: int) -> Fraction | float:
        """Seconds that the work on a cluster keeps its cores busy that are up."""
        site = self.clusters[m]
        if site.capacity() == 0:
            return math.inf
        work = 0
        for j, parts in site.running.items():
            work += sum(part.cores for part in parts) * (site.expected[j] - self.now)
        for j in site.waiting:
            work += site.jobs[j].units * site.jobs[j].cores * site.length(site.guess[j])
        return Fraction(work, site.capacity())

    def note_use(self) -> None:
        for m, cluster in enumerate(self.clusters):
            held, capacity = cluster.held(), cluster.capacity()
            self.history[m].append((self.now, held, capacity) if capacity else (self.now, 1, 1))

    def result(self) -> dict[str, Any]:
        """First start, cluster, fate, kills of each job, and executions with their clusters."""
        count = len(self.jobs)
        start, where, kills, fate = [-1] * count, [-1] * count, [0] * count, list(self.users.fate)
        predicted = [0] * count
        executions = []
        done = set()
        for m, cluster in enumerate(self.clusters):
            for execution in cluster.executions:
                j = self.user_of(self.name[m][execution.job])
                where[j] = m
                executions.append((m, *execution._replace(job=j)))
            for number, name in self.name[m].items():
                j = self.user_of(name)
                kills[j] += cluster.kills[number]
                first = cluster.first_start[number]
                if first >= 0:
                    start[j], predicted[j] = first, cluster.predicted[number]
                if first >= 0 and number not in cluster.waiting:
                    done.add(j)
        for j in range(count):
            if fate[j] == "completed" and j not in done:
                fate[j] = "starved"
        return {
            "start": start,
            "cluster": where,
            "fate": fate,
            "predicted": predicted,
            "kills": kills,
            "executions": sorted(executions),
            "corrections": sum(c.corrections for c in self.clusters if c.watched),
        }


class SuperschedulerOnNodes(NodeSites, _Grid):
    """Superschedulers of `tests.oracles.grid` on clusters of nodes."""

    def __init__(
        self,
        jobs: list[NodeGridJob],
        descriptions: list[SiteDescription],
        options: _Options,
        predictions: str,
    ) -> None:
        NodeSites.__init__(self, jobs, descriptions, predictions)
        self.options = options
        self.scheme = options.scheme
        self.grid_queues: list[list[int]] = [[] for _ in descriptions]
        self.marked: set[int] = set()
        self.insistent: set[int] = set()
        self.volunteers: set[int] = set()
        self.accepted: set[int] = set()
        self.requests: dict[int, tuple[int, int, int]] = {}
        self.transits: dict[int, tuple[int, int]] = {}
        self.checked = -1
        rejected = [j for j in range(len(jobs)) if not any(self.holds(j, m) for m in self.reach(j))]
        self.set_up_users(rejected)

    def simulate(self) -> dict[str, Any]:
        while instants := self.future_instants():
            self.set_time(min(instants))
            self.process_events()
            self.note_use()
        return self.result()

    def has_more(self) -> bool:
        return any(self.grid_queues) or bool(self.transits)

    def future_instants(self) -> list[int]:
        real = self.real_instants()
        others = [time for time, _, _ in self.requests.values()]
        others += [time for time, _ in self.transits.values()]
        others.append((self.now // self.options.sigma + 1) * self.options.sigma)
        if not real and not (any(self.grid_queues) or self.transits or self.requests):
            return []
        if real:
            self.last_real = max(self.last_real, min(real))
        silent = [until for each in self.options.silent for _, until in each]
        patience = 10 * self.options.sigma + 50 * self.options.message_delay
        patience += self.options.migration_delay
        if not real and min(others) > max([self.last_real, *silent]) + patience:
            return []
        return real + others

    def is_check(self) -> bool:
        return super().is_check() and self.checked < self.now

    def process_events(self) -> None:
        self.finish()
        for j in self.users.leaving:
            self.leave(j)
        self.land()
        if self.is_check():
            self.check()
        self.reconsider()
        self.checked = self.now
        if self.options.standing == "at-check":
            self.volunteers = set()
        for j in self.users.entering:
            self.arrive(j)
        self.passes()

    def leave(self, j: int) -> None:
        """Let a job leave wherever it waits; who waits for answers about it goes on to wait."""
        home = self.jobs[j].home
        if j in self.grid_queues[home]:
            self.grid_queues[home].remove(j)
        self.marked.discard(j)
        self.insistent.discard(j)
        self.transits.pop(j, None)
        if j in self.place:
            m, number = self.place[j]
            self.clusters[m].forget(number)
        for other, (time, asking, _) in self.requests.items():
            if asking == j:
                self.requests[other] = time, j, WAIT

    def arrive_at(self, j: int, m: int) -> None:
        self.place[j] = m, self.send(self.job_on(j, m), m, j)

    def fits(self, j: int, m: int) -> bool:
        return self.holds(j, m)

    def awt(self, j: int, m: int) -> float:
        if not self.fits(j, m):
            return math.inf
        start: float = self.start_on(self.job_on(j, m), m)
        return start - self.now

    def att(self, j: int, m: int) -> float:
        site = self.clusters[m]
        length: int = site.length(self.job_on(j, m).estimate)
        return self.awt(j, m) + length

    def cheapest(self, j: int, candidates: Collection[int]) -> int:
        able = {m for m in candidates if self.awt(j, m) < math.inf}
        return super().cheapest(j, able) if able else WAIT

    def is_better(self, j: int, volunteer: int, home: int) -> bool:
        if volunteer == WAIT:
            return False
        there, here = self.att(j, volunteer), self.att(j, home)
        if there < here - self.options.epsilon:
            return True
        near = here < math.inf and abs(there - here) <= self.options.epsilon
        return near and self.rus(volunteer) < self.rus(home)

    def rus(self, m: int) -> float:
        cluster = self.clusters[m]
        if self.options.busy == "now":
            capacity = cluster.capacity()
            return cluster.held() / capacity if capacity else 1.0
        if self.now == 0:
            return 0.0
        begin = max(time for time in range(0, self.now, self.options.sigma))
        used = offered = 0
        history = self.history[m]
        for (time, held, capacity), after in zip(history, [*history[1:], (self.now, 0, 0)], strict=True):
            seconds = max(0, min(after[0], self.now) - max(time, begin))
            used += held * seconds
            offered += capacity * seconds
        return used / offered


class JSchedulerOnNodes(NodeSites):
    """Every job goes to the cluster of its sample where its metric is best."""

    def __init__(
        self,
        jobs: list[NodeGridJob],
        descriptions: list[SiteDescription],
        metric: str,
        predictions: str,
    ) -> None:
        super().__init__(jobs, descriptions, predictions)
        self.metric = metric

    def simulate(self, samples: list[list[int]]) -> dict[str, Any]:
        """Run the jobs; a sample has the clusters that a job may ask, none if it is rejected."""
        self.set_up_users([j for j, sample in enumerate(samples) if not sample])
        while instants := self.real_instants():
            self.set_time(min(instants))
            self.finish()
            for j in self.users.leaving:
                if j in self.place:
                    m, number = self.place[j]
                    self.clusters[m].forget(number)
            for j in self.users.entering:
                m = self.choice(j, samples[j])
                self.place[j] = m, self.send(self.job_on(j, m), m, j)
            self.passes()
        return self.result()

    def choice(self, j: int, sample: list[int]) -> int:
        if len(sample) == 1:
            return sample[0]
        costs = {m: self.cost(j, m) for m in sample}
        return min(sample, key=lambda m: (costs[m], sample.index(m)))

    def cost(self, j: int, m: int) -> tuple[Fraction | float, float]:
        site, job = self.clusters[m], self.job_on(j, m)
        if self.metric == "queued-jobs":
            return Fraction(len(site.waiting)), 0
        if self.metric == "work-left":
            return self.load(m), 0
        start, length = self.start_on(job, m), site.length(job.estimate)
        if start == math.inf:
            return math.inf, 0
        wait = start - self.now
        costs = {
            "wait": Fraction(wait),
            "slowdown": Fraction(wait + length, length),
            "response": Fraction(wait + length),
        }
        return costs[self.metric], start + length


class MultipleRequestsOnNodes(NodeSites):
    """Every job waits on k clusters at once."""

    def __init__(
        self, jobs: list[NodeGridJob], descriptions: list[SiteDescription], k: int, home_first: bool
    ) -> None:
        super().__init__(jobs, descriptions)
        self.k, self.home_first = k, home_first
        self.requests: dict[int, dict[int, int]] = {}

    def simulate(self) -> dict[str, Any]:
        clusters = range(len(self.clusters))
        self.set_up_users([j for j in range(len(self.jobs)) if not any(self.holds(j, m) for m in clusters)])
        while instants := self.real_instants():
            self.set_time(min(instants))
            self.finish()
            for j in self.users.leaving:
                self.withdraw(j, -1)
            for j in self.users.entering:
                self.request(j)
            self.pass_everywhere()
        return self.result()

    def request(self, j: int) -> None:
        able = [m for m in range(len(self.clusters)) if self.holds(j, m)]
        loads = {m: self.load(m) for m in able}
        home = self.jobs[j].home
        self.requests[j] = {}
        for m in sorted(able, key=lambda m: (loads[m], m != home, m))[: self.k]:
            number = len(self.clusters[m].jobs)
            self.clusters[m].behind[number] = int(self.home_first and m != home)
            self.requests[j][m] = self.send(self.job_on(j, m), m, j)

    def withdraw(self, j: int, kept: int) -> None:
        for m, number in self.requests.pop(j, {}).items():
            if m != kept:
                self.clusters[m].forget(number)

    def pass_everywhere(self) -> None:
        again = True
        while again:
            for m, cluster in enumerate(self.clusters):
                for number in cluster.one_pass():
                    j = self.name[m][number]
                    self.users.start_job(j)
                    self.withdraw(j, m)
            again = any(cluster.changed for cluster in self.clusters)

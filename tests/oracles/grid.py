"""A slow, plain simulator of grids of clusters under grid schedulers, and two ideal machines: the oracle.

Clusters are those of `tests.oracles.nodes`, which know all jobs as they would be there. A start is predicted
by copying a cluster, forgetting what nobody knows of, letting the job enter the copy, and running it with the
expected ends as real ends; or it is the place of the job in a plan of the cluster, see `StandingPlan`.
Clusters whose processors are counted are single nodes: `counted` makes a grid of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from tests.oracles import nodes as single
from tests.oracles.local import Policy
from tests.oracles.nodes import Cluster
from tests.oracles.orders import Score
from tests.oracles.users import NEVER, Users

SCHEMES = ("local", "central", "s-i", "r-i", "sy-i")
"""The schemes of the paper."""

WAIT = -1
ASK_ALL = -2
"""What a decision may be besides a cluster: wait in the grid queue, or ask all partners next."""


class GridJob(NamedTuple):
    """A job of a grid of counted processors; run time and estimate [s] are those on its home cluster."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int
    home: int


class GridCluster(NamedTuple):
    """A cluster of counted processors: its size, its clock speed (of any unit) and its local policy."""

    processors: int
    processors_per_node: int = 1
    node_exclusive: bool = False
    speed: float = 1.0
    order: str | Score = "fcfs"
    backfilling: str = "easy"
    reservations: int = 1
    backfill_order: str = "queue"


@dataclass
class AskedJob:
    """A job of a grid, with times as on its home cluster; `asked` is what it is on each cluster.

    Where there is no cluster of the number of its home, times are those at speed 1.
    """

    home: int
    job: single.Job
    asked: list[dict[str, Any]]


class StandingPlan(Cluster):
    """A cluster of counted processors with a conservative plan beside its scheduler, whatever the policy.

    The plan gives a start to waiting jobs. Together with the running jobs, each until its expected end,
    these occupy the cluster; a place for a job is a time from which its processors are free beside all of
    them for its whole estimate. The plan is up to date or not; at first it is.

    - A job that asks starts now if nobody waits and its processors are free. Else the plan is made anew
      if it is not up to date, and the job would start at its earliest place.
    - To make it anew, the waiting jobs get, in queue order, each its earliest place from now on.
    - A job that enters the queue gets its earliest place if the plan is up to date; else none.
    - The plan is no longer up to date once a job
      (1) ends before its expected end while others wait (the job's rest is free at once in any case),
      (2) runs on at its expected end, or
      (3) starts at another time than it gives, or does not start at the time that it gives.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.standing: dict[int, tuple[int, list[single.Part]]] = {}
        self.kept = True

    def plan_of_queue(self) -> dict[int, tuple[int, list[single.Part]]]:
        if not self.is_up_to_date():
            self.standing = super().plan_of_queue()
            self.kept = True
        return dict(self.standing)

    def is_up_to_date(self) -> bool:
        """Whether it is, now that some planned starts may have passed."""
        self.kept &= all(start >= self.now for start, _ in self.standing.values())
        return self.kept

    def complete(self, j: int) -> None:
        is_early = self.expected[j] > self.now
        self.kept &= not (is_early and self.waiting) and self.expected[j] >= self.now
        super().complete(j)

    def correct(self, j: int) -> None:
        super().correct(j)
        self.kept = False

    def enter(self, j: int) -> None:
        if self.is_up_to_date():
            ahead = self.as_expected()
            ahead.planned = self.standing
            ahead.plan(j)
        super().enter(j)

    def schedule(self) -> None:
        super().schedule()
        if self.is_up_to_date():
            for j, (start, _) in list(self.standing.items()):
                started = j not in self.waiting
                self.kept &= started == (start == self.now)
                if started:
                    del self.standing[j]


@dataclass
class SiteDescription:
    """A cluster of a grid."""

    nodes: list[single.Node]
    policy: single.Policy
    speed: float = 1.0
    allowed: list[set[int]] | None = None
    events: list[single.Event] = field(default_factory=list)
    limits: list[single.Limit] = field(default_factory=list)
    typical: list[single.Typical] = field(default_factory=list)
    kind: type[Cluster] = Cluster
    either: dict[int, list[set[int]]] | None = None
    numbered: dict[int, list[tuple[set[int], int]]] | None = None


def counted(
    jobs: Sequence[tuple[int, ...]],
    home: Sequence[int],
    clusters: Sequence[GridCluster],
    overrun: str = "doubling",
    predictions: str = "exact",
) -> tuple[list[AskedJob], list[SiteDescription], str]:
    """Jobs, given by submit time, run time, estimate and processors, and clusters of counted processors."""
    assert [job[0] for job in jobs] == sorted(job[0] for job in jobs)
    kind = StandingPlan if predictions == "plan" else Cluster
    sites = []
    for cluster in clusters:
        policy = single.Policy(*Policy(*cluster[4:]), overrun=overrun)
        sites.append(SiteDescription([single.Node(cluster.processors)], policy, cluster.speed, kind=kind))
    # whole nodes
    units = [cluster.processors_per_node if cluster.node_exclusive else 1 for cluster in clusters]
    asked = []
    for j, (submit, run, estimate, processors, *_) in enumerate(jobs):
        taken = [math.ceil(Fraction(processors, unit)) * unit for unit in units]
        job = single.Job(submit, run, estimate, cores=processors, most=1)
        asked.append(AskedJob(home[j], job, [{"cores": cores} for cores in taken]))
    return asked, sites, predictions


def places(done: dict[str, Any]) -> list[tuple[int, int]]:
    """Start time [s] and cluster of each job; (-1, -1) for a job that fits nowhere."""
    return list(zip(done["start"], done["cluster"], strict=True))


class Grid:
    """Clusters and users, driven by a grid scheduler; jobs and clusters are named by their index."""

    def __init__(
        self, jobs: Sequence[AskedJob], descriptions: Sequence[SiteDescription], predictions: str = "exact"
    ) -> None:
        assert predictions in ("exact", "plan")
        self.jobs, self.descriptions, self.predictions = jobs, descriptions, predictions
        self.now = 0
        self.clusters = [
            d.kind(
                d.nodes,
                [self.job_on(j, m) for j in range(len(jobs))],
                d.policy,
                allowed=d.allowed,
                either=d.either,
                numbered=d.numbered,
                events=d.events,
                limits=d.limits,
                typical=d.typical,
            )
            for m, d in enumerate(descriptions)
        ]
        self.users = Users([])
        self.where: dict[int, int] = {}

    def job_on(self, j: int, m: int) -> single.Job:
        """A job as it is on a cluster; times in float64, like this, by definition."""
        home, base, speed = self.jobs[j].home, self.jobs[j].job, self.descriptions[m].speed
        here = self.descriptions[home].speed if home < len(self.descriptions) else 1.0

        def seconds(time: int) -> int:
            return time if speed == here else math.ceil(time * here / speed)

        run, estimate = seconds(base.run), max(1, seconds(base.estimate))
        return replace(base, run=run, estimate=estimate, after=[], gives_up=NEVER, **self.jobs[j].asked[m])

    def fits(self, j: int, m: int) -> bool:
        """Whether the empty nodes have room for a job, and limits allow it alone."""
        cluster = self.clusters[m]
        limits = [cluster.limits[group] for group in cluster.jobs[j].groups]
        size, length = cluster.size(j), cluster.length(cluster.jobs[j].estimate)
        return cluster.holds(j) and all(
            size <= limit.cores and size * length <= limit.seconds for limit in limits
        )

    def run(self, rejected: Collection[int]) -> dict[str, Any]:
        self.users = Users([each.job for each in self.jobs], rejected)
        while times := self.times():
            self.now = min(times)
            for cluster in self.clusters:
                cluster.now = self.now
            self.instant()
        return self.result()

    def times(self) -> list[int]:
        """When something happens to jobs or nodes, as long as there are jobs."""
        times = self.users.times()
        if times or any(cluster.waiting or cluster.running for cluster in self.clusters):
            times += [time for cluster in self.clusters for time in cluster.times()]
        return times

    def instant(self) -> None:
        """All that happens at this instant."""
        for cluster in self.clusters:
            for j in cluster.finish():
                self.users.leave(j, self.now, "completed")
        # Everywhere, since starts are predicted from expected ends
        for cluster in self.clusters:
            for j in cluster.outrun():
                cluster.correct(j)
        for cluster in self.clusters:
            for j in cluster.change_nodes():
                self.users.leave(j, self.now, "lost")
        entering, leaving = self.users.look(self.now)
        for j in leaving:
            self.leave(j)
        self.look()
        for j in entering:
            self.arrive(j)
        self.passes()

    def look(self) -> None:
        """What a grid scheduler does before jobs arrive."""

    def arrive(self, j: int) -> None:
        """A job is submitted."""
        raise NotImplementedError

    def leave(self, j: int) -> None:
        """A user gives up."""
        if j in self.where:
            self.clusters[self.where[j]].forget(j)

    def send(self, j: int, m: int) -> None:
        """Put a job into a local queue."""
        self.where[j] = m
        self.clusters[m].predict(j)
        self.clusters[m].enter(j)

    def start_on(self, j: int, m: int) -> float:
        """When a job that entered a local queue now would start, as far as it is known there."""
        cluster = self.clusters[m]
        return cluster.planned_start(j) if self.predictions == "plan" else cluster.predicted_start(j)

    def passes(self) -> None:
        for cluster in self.clusters:
            for j in cluster.one_pass():
                self.users.start(j, self.now)

    def work_left(self, m: int) -> int:
        """Processor-seconds that the jobs of a cluster are expected to take still."""
        cluster = self.clusters[m]
        work = [cluster.size(j) * cluster.length(cluster.guess[j]) for j in cluster.waiting]
        for j, parts in cluster.running.items():
            work += [part.cores * (cluster.expected[j] - self.now) for part in parts]
        return sum(work)

    def load(self, m: int) -> Fraction | float:
        """Seconds that the work on a cluster keeps its cores busy that are up."""
        capacity = self.clusters[m].capacity()
        return Fraction(self.work_left(m), capacity) if capacity else math.inf

    def result(self) -> dict[str, Any]:
        """First start, cluster, fate, kills of each job, and executions with their clusters."""
        everyone = range(len(self.jobs))
        executions = sorted((m, *each) for m, c in enumerate(self.clusters) for each in c.executions)
        where = {j: m for m, j, *_ in executions}
        return {
            "start": [max((c.first_start[j] for c in self.clusters), default=-1) for j in everyone],
            "cluster": [where.get(j, -1) for j in everyone],
            "fate": [self.users.fate.get(j, "starved") for j in everyone],
            "predicted": [self.clusters[where.get(j, 0)].predicted[j] for j in everyone],
            "kills": [sum(c.kills[j] for c in self.clusters) for j in everyone],
            "executions": executions,
            "corrections": sum(c.corrections for c in self.clusters),
        }


def simulate_grid(
    jobs: list[GridJob],
    clusters: list[GridCluster],
    *,
    scheme: str,
    overrun: str = "doubling",
    predictions: str = "exact",
    **options: Any,
) -> list[tuple[int, int]]:
    """Start time [s] and cluster of each job; (-1, -1) for a job that fits nowhere in its reach.

    Parameters
    ----------
    jobs : list of GridJob
        By submit time, never decreasing.
    clusters : list of GridCluster
        The grid.
    scheme : str
        One of `SCHEMES`.
    overrun : str
        What a job that reaches its expected end is expected to do: `doubling` or `increments`.
    predictions : str
        Where predicted waits come from: `exact` simulation or the `plan` of the cluster.
    **options
        Those of `Options`.
    """
    grid = counted(jobs, [job.home for job in jobs], clusters, overrun, predictions)
    return places(Superscheduler(*grid, Options(scheme, **options)).simulate())


class Options(NamedTuple):
    """The options of a superscheduler.

    Parameters
    ----------
    phi : float
        A job stays at home where its approximate wait [s] is below this; positive, since a job that
        is never content at home might wait for a volunteer forever.
    sigma : int
        Time [s] between checks of `r-i` and `sy-i`.
    delta : float
        A cluster whose utilisation is below this at a check is a volunteer; positive, for the same reason.
    epsilon : float
        Turnaround times [s] that differ by no more count as equal.
    partners : sequence of collections of int, optional
        For each home the clusters that it deals with; all others by default.
    message_delay : int
        Time [s] from a request to the answers, in which the grid scheduler of the home sends no other.
    migration_delay : int
        Time [s] that a job is in transit to another cluster than its home.
    silent : sequence of collections of (int, int), optional
        For each cluster the intervals [s] in which its grid scheduler does not answer or volunteer; each
        without its last second.
    transfers : str
        Whether a volunteer takes `one` job or `all` until the next check.
    no_gain : str
        Whether a job of `sy-i` that no volunteer helps is to `wait` in the grid queue or `ask` all partners.
    busy : str
        Whether utilisation is that of `now`, or the average over the `interval` since the last multiple of
        sigma before now.
    standing : str
        Whether volunteers are known `until-check` or only `at-check`.
    """

    scheme: str
    phi: float = 60
    sigma: int = 300
    delta: float = 0.7
    epsilon: float = 0.0
    partners: Sequence[Collection[int]] | None = None
    message_delay: int = 0
    migration_delay: int = 0
    silent: Sequence[Collection[tuple[int, int]]] | None = None
    transfers: str = "one"
    no_gain: str = "wait"
    busy: str = "now"
    standing: str = "until-check"


class Superscheduler(Grid):
    """Jobs wait in grid queues, and go where they are expected to end first."""

    def __init__(
        self,
        jobs: Sequence[AskedJob],
        descriptions: Sequence[SiteDescription],
        predictions: str,
        options: Options,
    ) -> None:
        super().__init__(jobs, descriptions, predictions)
        self.options = options
        self.scheme = options.scheme
        everyone = set(range(len(descriptions)))
        chosen = [everyone] * len(everyone) if options.partners is None else options.partners
        self.partners = [set(some) - {home} for home, some in enumerate(chosen)]
        self.silent = options.silent or [[] for _ in everyone]
        self.grid_queues: list[list[int]] = [[] for _ in descriptions]
        # Jobs of the grid queues that want to be decided as soon as their grid scheduler is free.
        self.marked: set[int] = set()
        # Jobs of the grid queues that no volunteer has helped, and that ask all partners next.
        self.insistent: set[int] = set()
        self.volunteers: set[int] = set()
        self.accepted: set[int] = set()
        # For each home whose grid scheduler is occupied: when the answers are there, for which job, and
        # what they make it do.
        self.requests: dict[int, tuple[int, int, int]] = {}
        # For each job in transit: when it arrives, and where.
        self.transits: dict[int, tuple[int, int]] = {}
        self.checked = -1
        # Cores that jobs held, and those that there were, from when on.
        self.history = [[(0, 0, cluster.capacity())] for cluster in self.clusters]
        self.last_real = 0

    def simulate(self) -> dict[str, Any]:
        everyone = range(len(self.jobs))
        return self.run([j for j in everyone if not any(self.fits(j, m) for m in self.reach(j))])

    # Time

    def times(self) -> list[int]:
        queued = any(self.grid_queues) or bool(self.transits)
        real = self.users.times()
        if real or queued or any(cluster.waiting or cluster.running for cluster in self.clusters):
            real += [time for cluster in self.clusters for time in cluster.times()]
        if not (real or queued or self.requests):
            return []
        others = [time for time, _, _ in self.requests.values()]
        others += [time for time, _ in self.transits.values()]
        # With no job to decide on, it makes no difference who is a volunteer.
        still = any(j not in self.users.entered | self.users.gone for j in range(len(self.jobs)))
        if any(self.grid_queues) or (self.has_volunteers() and still):
            others.append((self.now // self.options.sigma + 1) * self.options.sigma)
        if real:
            self.last_real = max(self.last_real, min(real))
        elif min(others) > self.patience():
            return []
        return real + others

    def patience(self) -> int:
        """When jobs in grid queues will wait forever."""
        until = max([self.last_real, *(until for each in self.silent for _, until in each)])
        options = self.options
        return until + 10 * options.sigma + 50 * options.message_delay + options.migration_delay

    def has_volunteers(self) -> bool:
        return self.scheme in ("r-i", "sy-i")

    def is_check(self) -> bool:
        return self.now > 0 and self.now % self.options.sigma == 0 and self.checked < self.now

    def look(self) -> None:
        self.land()
        if self.is_check():
            self.check()
        self.reconsider()
        self.checked = self.now
        if self.options.standing == "at-check":
            self.volunteers = set()

    def passes(self) -> None:
        super().passes()
        for m, cluster in enumerate(self.clusters):
            held = sum(part.cores for parts in cluster.running.values() for part in parts)
            capacity = cluster.capacity()
            self.history[m].append((self.now, held, capacity) if capacity else (self.now, 1, 1))

    def leave(self, j: int) -> None:
        """Let a job leave wherever it waits; who waits for answers about it goes on to wait."""
        super().leave(j)
        home = self.jobs[j].home
        if j in self.grid_queues[home]:
            self.grid_queues[home].remove(j)
        self.marked.discard(j)
        self.insistent.discard(j)
        self.transits.pop(j, None)
        for other, (time, asking, _) in self.requests.items():
            if asking == j:
                self.requests[other] = time, j, WAIT

    # A job on a cluster

    def awt(self, j: int, m: int) -> float:
        """Approximate wait time [s]."""
        return self.start_on(j, m) - self.now if self.fits(j, m) else math.inf

    def att(self, j: int, m: int) -> float:
        """Approximate turnaround time [s]."""
        return self.awt(j, m) + self.clusters[m].length(self.clusters[m].jobs[j].estimate)

    def rus(self, m: int) -> float:
        """Resource utilisation status: the part of the processors that jobs hold, or have held."""
        if self.options.busy == "now":
            capacity = self.clusters[m].capacity()
            held = sum(part.cores for parts in self.clusters[m].running.values() for part in parts)
            return held / capacity if capacity else 1.0
        if self.now == 0:
            return 0.0
        begin = max(time for time in range(0, self.now, self.options.sigma))
        used = offered = 0
        history = [*self.history[m], (self.now, 0, 0)]
        for (time, held, capacity), (until, _, _) in itertools.pairwise(history):
            seconds = max(0, until - max(time, begin))
            used += held * seconds
            offered += capacity * seconds
        return used / offered

    def cheapest(self, j: int, candidates: Collection[int]) -> int:
        """The cluster with the smallest turnaround time, of nearly equal ones the least utilised."""
        att = {m: self.att(j, m) for m in sorted(candidates)}
        near = [m for m in att if att[m] <= min(att.values()) + self.options.epsilon and att[m] < math.inf]
        return min(near, key=lambda m: (self.rus(m), m), default=WAIT)

    # Decisions

    def reach(self, j: int) -> set[int]:
        """The clusters to which the scheme may send a job."""
        home = self.jobs[j].home
        if self.scheme == "central":
            return set(range(len(self.descriptions)))
        return {home} if self.scheme == "local" else {home} | self.partners[home]

    def arrive(self, j: int) -> None:
        self.grid_queues[self.jobs[j].home].append(j)
        self.decide(j)

    def land(self) -> None:
        """Answers are there, and transits end, in the order of the jobs."""
        answered = {j: home for home, (time, j, _) in self.requests.items() if time == self.now}
        arrived = {j for j, (time, _) in self.transits.items() if time == self.now}
        for j in sorted(set(answered) | arrived):
            if j in answered:
                _, _, outcome = self.requests.pop(answered[j])
                self.carry_out(j, outcome)
            else:
                _, m = self.transits.pop(j)
                self.send(j, m)

    def check(self) -> None:
        """Renew the volunteers; every job in a grid queue wants to be decided."""
        self.volunteers = {
            m for m in range(len(self.clusters)) if self.rus(m) < self.options.delta and not self.is_silent(m)
        }
        self.accepted = set()
        self.marked.update(*self.grid_queues)

    def reconsider(self) -> None:
        """Decide on jobs that have waited in the grid queues and want it."""
        looks_at_home = self.is_check() and self.has_volunteers()
        for j in sorted(self.insistent):
            self.decide(j)
        for home, queue in enumerate(self.grid_queues):
            for j in list(queue):
                wants = j in self.marked and not self.awaits_answers(j)
                if wants and (looks_at_home or home not in self.requests):
                    self.decide(j)

    def awaits_answers(self, j: int) -> bool:
        return any(j == asking for _, asking, _ in self.requests.values())

    def decide(self, j: int) -> None:
        """Decide on a job of a grid queue: it is sent off, stays, or its grid scheduler asks others."""
        home = self.jobs[j].home
        self.marked.discard(j)
        if self.scheme == "local":
            self.carry_out(j, home)
        elif self.scheme == "central":
            self.carry_out(j, self.cheapest(j, self.reach(j)))
        elif self.awt(j, home) < self.options.phi:
            self.carry_out(j, home)
        elif self.options.message_delay == 0 or not self.asked(j):
            self.carry_out(j, self.outcome(j))
        elif home in self.requests:
            self.marked.add(j)
        else:
            self.requests[home] = self.now + self.options.message_delay, j, self.outcome(j)
            self.insistent.discard(j)

    def asks_all(self, j: int) -> bool:
        """Whether a job asks all partners of its home, not only volunteers."""
        volunteers = self.volunteers & self.partners[self.jobs[j].home]
        if self.options.no_gain == "ask":
            volunteers -= self.accepted
        return self.scheme == "s-i" or j in self.insistent or (self.scheme == "sy-i" and not volunteers)

    def asked(self, j: int) -> set[int]:
        """The clusters whose grid schedulers a job asks."""
        partners = self.partners[self.jobs[j].home]
        return partners if self.asks_all(j) else (self.volunteers - self.accepted) & partners

    def outcome(self, j: int) -> int:
        """What the answers of now make a job do: the cluster where it should go, WAIT or ASK_ALL."""
        home = self.jobs[j].home
        able = {m for m in self.asked(j) if self.fits(j, m) and not self.is_silent(m)}
        if self.asks_all(j):
            able |= {home} if self.fits(j, home) else set()
            return self.cheapest(j, able) if able else WAIT
        volunteer = self.cheapest(j, able) if able else None
        if volunteer is not None and self.is_better(j, volunteer, home):
            if self.options.transfers == "one":
                self.accepted.add(volunteer)
            return volunteer
        return ASK_ALL if self.scheme == "sy-i" and self.options.no_gain == "ask" else WAIT

    def carry_out(self, j: int, outcome: int) -> None:
        """Let a decision take effect."""
        self.insistent.discard(j)
        home = self.jobs[j].home
        if outcome == WAIT:
            return
        if outcome == ASK_ALL:
            self.insistent.add(j)
            if self.options.message_delay == 0:
                self.decide(j)
            return
        self.grid_queues[home].remove(j)
        self.marked.discard(j)
        if self.options.migration_delay > 0 and outcome != home:
            self.transits[j] = self.now + self.options.migration_delay, outcome
        else:
            self.send(j, outcome)

    def is_silent(self, m: int) -> bool:
        return any(begin <= self.now < until for begin, until in self.silent[m])

    def is_better(self, j: int, volunteer: int, home: int) -> bool:
        if volunteer == WAIT:
            return False
        there, here = self.att(j, volunteer), self.att(j, home)
        if there < here - self.options.epsilon:
            return True
        near = here < math.inf and abs(there - here) <= self.options.epsilon
        return near and self.rus(volunteer) < self.rus(home)


METRICS = ("wait", "slowdown", "response", "queued-jobs", "work-left")
"""What a job may want to be small; the last two look at what is on a cluster, and predict nothing."""

Own = Callable[..., float]
"""A cost of one's own, of the parameters of `gridsched.systems.jscheduler.costs` without labels."""


class Choices(NamedTuple):
    """Start time [s] and resource of each job, -1 for both where none holds it; and how many were asked."""

    places: list[tuple[int, int]]
    queries: int


def self_schedule(
    jobs: Sequence[tuple[int, ...]],
    resources: list[GridCluster],
    *,
    samples: Sequence[Sequence[int]],
    metrics: Sequence[str | Own],
    predictions: str = "exact",
    overrun: str = "doubling",
    home: Sequence[int] = (),
    ties: str = "completion",
) -> Choices:
    """Let every job go to the resource of its sample where its metric is best; see `SelfScheduling`.

    Run times and estimates [s] are those on a machine of speed 1.
    """
    nowhere = [len(resources)] * len(jobs)
    grid = SelfScheduling(*counted(jobs, nowhere, resources, overrun, predictions))
    grid.ties, grid.places = ties, home
    return Choices(places(grid.simulate(samples, metrics)), grid.queries)


class SelfScheduling(Grid):
    """Every job goes to the cluster of its sample where its metric is best.

    Parameters
    ----------
    samples : sequence of sequences of int
        For each job the clusters that it asks, in this order; all hold it. A sample of one is not asked, and
        without any a job is rejected.
    metrics : sequence of str
        For each job one of `METRICS`, or a cost of its own.
    ties : str
        What decides between equally good clusters: the predicted `completion`, or that it is the `first` of
        the sample.
    places : sequence of int, optional
        For each job the cluster where it is submitted, or -1.
    """

    samples: Sequence[Sequence[int]]
    metrics: Sequence[str | Own]
    ties = "completion"
    places: Sequence[int] = ()
    queries = 0

    def simulate(self, samples: Sequence[Sequence[int]], metrics: Sequence[str | Own]) -> dict[str, Any]:
        assert len(samples) == len(metrics) == len(self.jobs)
        self.samples, self.metrics = samples, metrics
        return self.run([j for j, sample in enumerate(samples) if not sample])

    def arrive(self, j: int) -> None:
        """Send a job to the best cluster; of equal ones to the first of the sample."""
        sample = self.samples[j]
        best = sample[0]
        if len(sample) > 1:
            self.queries += len(sample)
            parts = 1 if self.ties == "first" else 2
            best = min(sample, key=lambda m: (self.cost(j, m)[:parts], sample.index(m)))
        self.send(j, best)

    def cost(self, j: int, m: int) -> tuple[Fraction | float, float]:
        """What a job wants to be small, and what decides where it is equal."""
        cluster, metric = self.clusters[m], self.metrics[j]
        if metric == "queued-jobs":
            return Fraction(len(cluster.waiting)), 0
        if metric == "work-left":
            return self.load(m), 0
        start, length = self.start_on(j, m), cluster.length(cluster.jobs[j].estimate)
        if start == math.inf:
            return math.inf, 0
        wait = int(start) - self.now
        if not isinstance(metric, str):
            own = metric(
                now=self.now,
                wait=wait,
                estimate=length,
                processors=self.jobs[j].job.cores,
                waiting=len(cluster.waiting),
                work_left=self.work_left(m),
                idle=cluster.free(),
                size=cluster.capacity(),
                at_home=int(self.places[j] == m),
            )
            return own, start + length
        costs = {
            "wait": Fraction(wait),
            "slowdown": Fraction(wait + length, length),
            "response": Fraction(wait + length),
        }
        return costs[metric], start + length


def request_on_several(
    jobs: Sequence[tuple[int, ...]],
    home: Sequence[int],
    clusters: list[GridCluster],
    k: int,
    *,
    home_first: bool,
) -> list[tuple[int, int]]:
    """Start time [s] and cluster of each job that waits on k clusters at once."""
    sites = counted(jobs, home, clusters)
    return places(MultipleRequests(*sites, k=k, home_first=home_first).simulate())


class MultipleRequests(Grid):
    """Every job waits on k clusters at once."""

    def __init__(
        self,
        jobs: Sequence[AskedJob],
        descriptions: Sequence[SiteDescription],
        predictions: str = "exact",
        *,
        k: int,
        home_first: bool,
    ) -> None:
        super().__init__(jobs, descriptions, predictions)
        self.k, self.home_first = k, home_first
        self.requests: dict[int, list[int]] = {}

    def simulate(self) -> dict[str, Any]:
        everywhere = range(len(self.clusters))
        return self.run([j for j in range(len(self.jobs)) if not any(self.fits(j, m) for m in everywhere)])

    def arrive(self, j: int) -> None:
        loads = {m: self.load(m) for m in range(len(self.clusters)) if self.fits(j, m)}
        home = self.jobs[j].home
        self.requests[j] = sorted(loads, key=lambda m: (loads[m], m != home, m))[: self.k]
        for m in self.requests[j]:
            if self.home_first and m != home:
                self.clusters[m].behind.add(j)
            self.send(j, m)

    def leave(self, j: int, kept: int = -1) -> None:
        for m in self.requests.pop(j, ()):
            if m != kept:
                self.clusters[m].forget(j)

    def passes(self) -> None:
        again = True
        while again:
            for m, cluster in enumerate(self.clusters):
                for j in cluster.one_pass():
                    self.users.start(j, self.now)
                    self.leave(j, m)
            again = any(cluster.changed for cluster in self.clusters)


# Ideal machines: one pool of all processors, each counted with its speed, of which a job may use the whole.


def ideal_fcfs(jobs: list[GridJob], clusters: list[GridCluster]) -> list[float]:
    """Completion times [s] where jobs run one after the other, in submit order, each on the whole pool."""
    now = Fraction(0)
    completions = []
    for job in jobs:
        now = max(now, Fraction(job.submit_time)) + _time_on_pool(job, clusters)
        completions.append(float(now))
    return completions


def ideal_srpt(jobs: list[GridJob], clusters: list[GridCluster]) -> list[float]:
    """Completion times [s] where the job with the least remaining work has the whole pool, preemptively.

    Ties go to the earlier job.
    """
    remaining = {j: _time_on_pool(job, clusters) for j, job in enumerate(jobs)}
    completions = [math.nan] * len(jobs)
    now = Fraction(0)
    while remaining:
        present = [j for j in remaining if jobs[j].submit_time <= now]
        next_arrival = min(
            (jobs[j].submit_time for j in remaining if jobs[j].submit_time > now), default=None
        )
        if not present:
            assert next_arrival is not None
            now = Fraction(next_arrival)
            continue
        shortest = min(present, key=lambda j: (remaining[j], j))
        end = now + remaining[shortest]
        if next_arrival is not None and next_arrival < end:
            remaining[shortest] -= next_arrival - now
            now = Fraction(next_arrival)
        else:
            now = end
            completions[shortest] = float(now)
            del remaining[shortest]
    return completions


def _time_on_pool(job: GridJob, clusters: list[GridCluster]) -> Fraction:
    """Time [s] in which the whole pool does the work of a job (its processors, not whole nodes)."""
    capacity = sum((c.processors * Fraction(c.speed) for c in clusters), Fraction(0))
    return job.run_time * job.processors * Fraction(clusters[job.home].speed) / capacity

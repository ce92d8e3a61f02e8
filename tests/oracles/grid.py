"""A slow, plain simulator of a grid of clusters under a superscheduler, and two ideal machines: the oracle.

Clusters are those of `tests.oracles.local`. A wait is predicted by copying a cluster, letting the job enter
the copy, and running the copy with the expected ends as real ends until the job starts; or it is the place of
the job in a plan of the cluster, see `StandingPlan`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

from tests.oracles.local import REJECTED, Cluster, Job, Occupation, Policy, Score

SCHEMES = ("local", "central", "s-i", "r-i", "sy-i")
"""The schemes of the paper."""

WAIT = -1
ASK_ALL = -2
"""What a decision may be besides a cluster: wait in the grid queue, or ask all partners next."""


class GridJob(NamedTuple):
    """A job of the grid; run time and estimate [s] are those on its home cluster."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int
    home: int


class GridCluster(NamedTuple):
    """A cluster of the grid: its size, its clock speed (of any unit) and its local policy."""

    processors: int
    processors_per_node: int = 1
    node_exclusive: bool = False
    speed: float = 1.0
    order: str | Score = "fcfs"
    backfilling: str = "easy"
    reservations: int = 1
    backfill_order: str = "queue"


def simulate_grid(
    jobs: list[GridJob],
    clusters: list[GridCluster],
    *,
    scheme: str,
    phi: float = 60,
    sigma: int = 300,
    delta: float = 0.7,
    epsilon: float = 0.0,
    partners: Sequence[Collection[int]] | None = None,
    overrun: str = "doubling",
    message_delay: int = 0,
    migration_delay: int = 0,
    silent: Sequence[Collection[tuple[int, int]]] | None = None,
    transfers: str = "one",
    no_gain: str = "wait",
    busy: str = "now",
    standing: str = "until-check",
    predictions: str = "exact",
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
    overrun : str
        What a job that reaches its expected end is expected to do: `doubling` or `increments`.
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
    predictions : str
        Where predicted waits come from: `exact` simulation or the `plan` of the cluster.
    """
    assert scheme in SCHEMES
    assert phi > 0
    assert sigma >= 1
    assert delta > 0
    assert epsilon >= 0
    assert [job.submit_time for job in jobs] == sorted(job.submit_time for job in jobs)
    everyone = set(range(len(clusters)))
    chosen = [everyone] * len(clusters) if partners is None else [set(some) for some in partners]
    others = [some - {home} for home, some in enumerate(chosen)]
    assert message_delay >= 0
    assert migration_delay >= 0
    assert transfers in ("one", "all")
    assert no_gain in ("wait", "ask")
    assert busy in ("now", "interval")
    assert standing in ("until-check", "at-check")
    options = _Options(
        scheme,
        phi,
        sigma,
        delta,
        epsilon,
        others,
        message_delay,
        migration_delay,
        [[] for _ in clusters] if silent is None else silent,
        transfers,
        no_gain,
        busy,
        standing,
    )
    return _Grid(jobs, clusters, options, overrun, predictions).run()


class _Options(NamedTuple):
    """The arguments of `simulate_grid`, with partners and silences for each cluster."""

    scheme: str
    phi: float
    sigma: int
    delta: float
    epsilon: float
    partners: list[set[int]]
    message_delay: int
    migration_delay: int
    silent: Sequence[Collection[tuple[int, int]]]
    transfers: str
    no_gain: str
    busy: str
    standing: str


def predicted_start(cluster: Cluster, job: Job) -> int:
    """When a job that entered now would start, if nothing else came and all estimates were right."""
    ahead = cluster.as_expected()
    number = ahead.enter(job)
    ahead.schedule()
    while ahead.start[number] == REJECTED:
        ahead.now = min(ahead.future_instants())
        for ended in ahead.completions_now():
            ahead.complete(ended)
        ahead.schedule()
    return ahead.start[number]


class StandingPlan:
    """A conservative plan of a cluster, kept beside its scheduler whatever the policy.

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

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.start: dict[int, int] = {}
        self.up_to_date = True

    def predicted_start(self, job: Job) -> int:
        if not self.cluster.waiting and job.processors <= self.cluster.free():
            return self.cluster.now
        if not self.is_up_to_date():
            self.make_anew()
        asking = self.cluster.as_expected()
        return asking.earliest_place(asking.enter(job), self.occupations())

    def make_anew(self) -> None:
        self.start = {}
        for number in self.cluster.queue():
            self.start[number] = self.cluster.earliest_place(number, self.occupations())
        self.up_to_date = True

    def is_up_to_date(self) -> bool:
        """Whether it is, now that some planned starts may have passed."""
        self.up_to_date &= all(start >= self.cluster.now for start in self.start.values())
        return self.up_to_date

    def occupations(self) -> list[Occupation]:
        waiting = [self.cluster.occupation(number, start) for number, start in self.start.items()]
        return self.cluster.running_occupations() + waiting

    def before_completion(self, number: int) -> None:
        expected_end = self.cluster.expected_end[number]
        early = expected_end > self.cluster.now
        if (early and self.cluster.waiting) or expected_end < self.cluster.now:
            self.up_to_date = False

    def after_correction(self) -> None:
        self.up_to_date = False

    def after_entry(self, number: int) -> None:
        if self.is_up_to_date():
            self.start[number] = self.cluster.earliest_place(number, self.occupations())

    def after_pass(self) -> None:
        if not self.is_up_to_date():
            return
        for number, start in list(self.start.items()):
            started = number not in self.cluster.waiting
            self.up_to_date &= started == (start == self.cluster.now)
            if started:
                del self.start[number]


class Clusters:
    """The clusters of a grid, driven from outside, with the present time in `now`; named by their index."""

    def __init__(self, descriptions: list[GridCluster], overrun: str, predictions: str) -> None:
        assert predictions in ("exact", "plan")
        self.descriptions = descriptions
        self.predictions = predictions
        self.now = 0
        self.clusters = [
            Cluster(d.processors, Policy(d.order, d.backfilling, d.reservations, d.backfill_order), overrun)
            for d in descriptions
        ]
        self.plans = [StandingPlan(cluster) for cluster in self.clusters]
        self.changed: set[int] = set()

    def set_time(self, now: int) -> None:
        self.now = now
        for cluster in self.clusters:
            cluster.now = now

    def future_instants(self) -> list[int]:
        return [time for cluster in self.clusters for time in cluster.future_instants()]

    def complete(self) -> None:
        for m, cluster in enumerate(self.clusters):
            for number in cluster.completions_now():
                self.plans[m].before_completion(number)
                cluster.complete(number)
                self.changed.add(m)

    def correct(self) -> None:
        """Correct expected ends: everywhere, since waits are predicted from them.

        To a policy that does not look at expected ends, this is no change that calls for a pass.
        """
        for m, cluster in enumerate(self.clusters):
            for number in cluster.overruns_now():
                cluster.correct(number)
                self.plans[m].after_correction()
                if cluster.uses_expected_ends():
                    self.changed.add(m)

    def schedule(self) -> None:
        """Passes where something changed, again and again while jobs of no length end at once."""
        self.schedule_once()
        while any(cluster.completions_now() for cluster in self.clusters):
            self.complete()
            self.schedule_once()

    def schedule_once(self) -> None:
        for m, cluster in enumerate(self.clusters):
            if m in self.changed or cluster.start_is_planned_now():
                cluster.schedule()
                self.plans[m].after_pass()
            assert not cluster.start_is_planned_now()
        self.changed.clear()

    def enter(self, job: Job, m: int) -> int:
        """Put a job into a local queue; its number there."""
        number = self.clusters[m].enter(job)
        self.plans[m].after_entry(number)
        self.changed.add(m)
        return number

    def predicted_start(self, job: Job, m: int) -> int:
        """When a job that entered a local queue now would start, as far as it is known there."""
        if self.predictions == "plan":
            return self.plans[m].predicted_start(job)
        return predicted_start(self.clusters[m], job)

    def allocation(self, processors: int, m: int) -> int:
        """Processors that a job holds on a cluster."""
        if not self.descriptions[m].node_exclusive:
            return processors
        node = self.descriptions[m].processors_per_node
        return math.ceil(Fraction(processors, node)) * node


class _Grid(Clusters):
    """The state of a simulation; jobs are named by their index."""

    def __init__(
        self,
        jobs: list[GridJob],
        descriptions: list[GridCluster],
        options: _Options,
        overrun: str,
        predictions: str,
    ) -> None:
        super().__init__(descriptions, overrun, predictions)
        self.jobs = jobs
        self.options = options
        self.scheme = options.scheme
        self.coming = [j for j in range(len(jobs)) if any(self.fits(j, m) for m in self.reach(j))]
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
        # The cluster of each job, and its number there.
        self.place: dict[int, tuple[int, int]] = {}

    def run(self) -> list[tuple[int, int]]:
        while instants := self.future_instants():
            self.set_time(min(instants))
            self.process_events()
        assert not any(self.grid_queues)
        assert not any(cluster.waiting for cluster in self.clusters)
        return [self.start_and_cluster(j) for j in range(len(self.jobs))]

    def start_and_cluster(self, j: int) -> tuple[int, int]:
        if j not in self.place:
            return REJECTED, REJECTED
        m, number = self.place[j]
        return self.clusters[m].start[number], m

    # Time

    def future_instants(self) -> list[int]:
        instants = super().future_instants()
        instants += [self.jobs[j].submit_time for j in self.coming]
        instants += [time for time, _, _ in self.requests.values()]
        instants += [time for time, _ in self.transits.values()]
        # With no job to decide on, it makes no difference who is a volunteer.
        if any(self.grid_queues) or (self.has_volunteers() and self.coming):
            instants.append((self.now // self.options.sigma + 1) * self.options.sigma)
        return instants

    def has_volunteers(self) -> bool:
        return self.scheme in ("r-i", "sy-i")

    def is_check(self) -> bool:
        return self.now > 0 and self.now % self.options.sigma == 0

    def process_events(self) -> None:
        """All that happens at this instant."""
        self.complete()
        self.correct()
        self.land()
        if self.is_check():
            self.check()
        self.reconsider()
        if self.options.standing == "at-check":
            self.volunteers = set()
        while self.coming and self.jobs[self.coming[0]].submit_time == self.now:
            self.arrive(self.coming.pop(0))
        self.schedule()

    # A job on a cluster

    def fits(self, j: int, m: int) -> bool:
        return self.allocation(self.jobs[j].processors, m) <= self.descriptions[m].processors

    def time_on(self, time: int, j: int, m: int) -> int:
        """What a time on the home cluster becomes on a cluster; in float64, like this, by definition."""
        home = self.jobs[j].home
        if m == home:
            return time
        return math.ceil(time * self.descriptions[home].speed / self.descriptions[m].speed)

    def job_on(self, j: int, m: int) -> Job:
        job = self.jobs[j]
        run_time = self.time_on(job.run_time, j, m)
        estimate = max(1, self.time_on(job.estimate, j, m))
        return Job(job.submit_time, run_time, estimate, self.allocation(job.processors, m))

    def awt(self, j: int, m: int) -> float:
        """Approximate wait time [s]."""
        if not self.fits(j, m):
            return math.inf
        return self.predicted_start(self.job_on(j, m), m) - self.now

    def att(self, j: int, m: int) -> float:
        """Approximate turnaround time [s]."""
        return self.awt(j, m) + self.job_on(j, m).estimate

    def rus(self, m: int) -> float:
        """Resource utilisation status: the part of the processors that running jobs hold, or have held."""
        cluster = self.clusters[m]
        if self.options.busy == "now":
            return (cluster.processors - cluster.free()) / cluster.processors
        if self.now == 0:
            return 0.0
        begin = max(time for time in range(0, self.now, self.options.sigma))
        return self.work(cluster, begin) / (cluster.processors * (self.now - begin))

    def work(self, cluster: Cluster, begin: int) -> int:
        """Processor-seconds that jobs have held since a time."""
        total = 0
        for number, job in enumerate(cluster.jobs):
            if cluster.start[number] != REJECTED:
                first = max(begin, cluster.start[number])
                last = min(self.now, cluster.end(number))
                total += job.processors * max(0, last - first)
        return total

    def cheapest(self, j: int, candidates: Collection[int]) -> int:
        """The cluster with the smallest turnaround time, of nearly equal ones the least utilised."""
        att = {m: self.att(j, m) for m in sorted(candidates) if self.fits(j, m)}
        near = [m for m in att if att[m] <= min(att.values()) + self.options.epsilon]
        return min(near, key=lambda m: (self.rus(m), m))

    # Decisions

    def reach(self, j: int) -> set[int]:
        """The clusters to which the scheme may send a job."""
        home = self.jobs[j].home
        if self.scheme == "local":
            return {home}
        if self.scheme == "central":
            return set(range(len(self.descriptions)))
        return {home} | self.options.partners[home]

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
                self.arrive_at(j, m)

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
        volunteers = self.volunteers & self.options.partners[self.jobs[j].home]
        if self.options.no_gain == "ask":
            volunteers -= self.accepted
        return self.scheme == "s-i" or j in self.insistent or (self.scheme == "sy-i" and not volunteers)

    def asked(self, j: int) -> set[int]:
        """The clusters whose grid schedulers a job asks."""
        partners = self.options.partners[self.jobs[j].home]
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
            self.arrive_at(j, outcome)

    def arrive_at(self, j: int, m: int) -> None:
        """Put a job into a local queue."""
        self.place[j] = m, self.enter(self.job_on(j, m), m)

    def is_silent(self, m: int) -> bool:
        return any(begin <= self.now < until for begin, until in self.options.silent[m])

    def is_better(self, j: int, volunteer: int, home: int) -> bool:
        there, here = self.att(j, volunteer), self.att(j, home)
        if there < here - self.options.epsilon:
            return True
        near = abs(there - here) <= self.options.epsilon
        return near and self.rus(volunteer) < self.rus(home)


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

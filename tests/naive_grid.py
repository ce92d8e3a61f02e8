"""A slow, plain simulator of a grid of clusters under a superscheduler, and two ideal machines: the oracle.

Clusters are those of `tests.naive`. A wait is predicted by copying a cluster, letting the job enter
the copy, and running the copy with the expected ends as real ends until the job starts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

from tests.naive import REJECTED, Cluster, Job, Policy, Score

SCHEMES = ("local", "central", "s-i", "r-i", "sy-i")


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
    return _Grid(jobs, clusters, scheme, phi, sigma, delta, epsilon, others, overrun).run()


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


class _Grid:
    """The state of a simulation; jobs and clusters are named by their index."""

    def __init__(
        self,
        jobs: list[GridJob],
        descriptions: list[GridCluster],
        scheme: str,
        phi: float,
        sigma: int,
        delta: float,
        epsilon: float,
        partners: list[set[int]],
        overrun: str,
    ) -> None:
        self.jobs = jobs
        self.descriptions = descriptions
        self.scheme = scheme
        self.phi = phi
        self.sigma = sigma
        self.delta = delta
        self.epsilon = epsilon
        self.partners = partners
        self.now = 0
        self.clusters = [
            Cluster(d.processors, Policy(d.order, d.backfilling, d.reservations, d.backfill_order), overrun)
            for d in descriptions
        ]
        self.coming = [j for j in range(len(jobs)) if any(self.fits(j, m) for m in self.reach(j))]
        self.grid_queues: list[list[int]] = [[] for _ in descriptions]
        self.volunteers: set[int] = set()
        self.accepted: set[int] = set()
        self.changed: set[int] = set()
        # The cluster of each job, and its number there.
        self.place: dict[int, tuple[int, int]] = {}

    def run(self) -> list[tuple[int, int]]:
        while instants := self.future_instants():
            self.now = min(instants)
            self.happen()
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
        instants = [self.jobs[j].submit_time for j in self.coming]
        for cluster in self.clusters:
            instants += cluster.future_instants()
        # With no job to decide on, it makes no difference who is a volunteer.
        if self.has_checks() and (self.coming or any(self.grid_queues)):
            instants.append((self.now // self.sigma + 1) * self.sigma)
        return instants

    def has_checks(self) -> bool:
        return self.scheme in ("r-i", "sy-i")

    def happen(self) -> None:
        """All that happens at this instant."""
        for cluster in self.clusters:
            cluster.now = self.now
        self.complete()
        self.correct()
        if self.has_checks() and self.now > 0 and self.now % self.sigma == 0:
            self.check()
        while self.coming and self.jobs[self.coming[0]].submit_time == self.now:
            self.arrive(self.coming.pop(0))
        self.schedule()
        while any(cluster.completions_now() for cluster in self.clusters):
            self.complete()
            self.schedule()

    def complete(self) -> None:
        for m, cluster in enumerate(self.clusters):
            for number in cluster.completions_now():
                cluster.complete(number)
                self.changed.add(m)

    def correct(self) -> None:
        """Correct expected ends: everywhere, since waits are predicted from them.

        To a policy that does not look at expected ends, this is no change that calls for a pass.
        """
        for m, cluster in enumerate(self.clusters):
            for number in cluster.overruns_now():
                cluster.correct(number)
                if cluster.uses_expected_ends():
                    self.changed.add(m)

    def schedule(self) -> None:
        for m, cluster in enumerate(self.clusters):
            if m in self.changed or cluster.start_is_planned_now():
                cluster.schedule()
            assert not cluster.start_is_planned_now()
        self.changed.clear()

    # A job on a cluster

    def allocation(self, j: int, m: int) -> int:
        """Processors that a job holds on a cluster."""
        if not self.descriptions[m].node_exclusive:
            return self.jobs[j].processors
        node = self.descriptions[m].processors_per_node
        return math.ceil(Fraction(self.jobs[j].processors, node)) * node

    def fits(self, j: int, m: int) -> bool:
        return self.allocation(j, m) <= self.descriptions[m].processors

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
        return Job(job.submit_time, run_time, estimate, self.allocation(j, m))

    def awt(self, j: int, m: int) -> float:
        """Approximate wait time [s]."""
        if not self.fits(j, m):
            return math.inf
        return predicted_start(self.clusters[m], self.job_on(j, m)) - self.now

    def att(self, j: int, m: int) -> float:
        """Approximate turnaround time [s]."""
        return self.awt(j, m) + self.job_on(j, m).estimate

    def rus(self, m: int) -> float:
        """Resource utilisation status: the part of the processors that running jobs hold now."""
        cluster = self.clusters[m]
        return (cluster.processors - cluster.free()) / cluster.processors

    def cheapest(self, j: int, candidates: Collection[int]) -> int:
        """The cluster with the smallest turnaround time, of nearly equal ones the least utilised."""
        att = {m: self.att(j, m) for m in sorted(candidates) if self.fits(j, m)}
        near = [m for m in att if att[m] <= min(att.values()) + self.epsilon]
        return min(near, key=lambda m: (self.rus(m), m))

    # Decisions

    def reach(self, j: int) -> set[int]:
        """The clusters to which the scheme may send a job."""
        home = self.jobs[j].home
        if self.scheme == "local":
            return {home}
        if self.scheme == "central":
            return set(range(len(self.descriptions)))
        return {home} | self.partners[home]

    def arrive(self, j: int) -> None:
        if not self.settle(j):
            self.grid_queues[self.jobs[j].home].append(j)

    def check(self) -> None:
        """Renew the volunteers, then decide anew on the jobs in the grid queues."""
        self.volunteers = {m for m in range(len(self.clusters)) if self.rus(m) < self.delta}
        self.accepted = set()
        for queue in self.grid_queues:
            queue[:] = [j for j in queue if not self.settle(j)]

    def settle(self, j: int) -> bool:
        """Put a job into the local queue that the scheme chooses for it, if any."""
        m = self.choice(j)
        if m is None:
            return False
        self.place[j] = m, self.clusters[m].enter(self.job_on(j, m))
        self.changed.add(m)
        return True

    def choice(self, j: int) -> int | None:
        """The cluster whose local queue a job should enter now; None if it should wait in the grid queue."""
        home = self.jobs[j].home
        if self.scheme == "local":
            return home
        if self.scheme == "central":
            return self.cheapest(j, self.reach(j))
        if self.awt(j, home) < self.phi:
            return home
        nobody_volunteers = not self.volunteers & self.partners[home]
        if self.scheme == "s-i" or (self.scheme == "sy-i" and nobody_volunteers):
            return self.cheapest(j, self.reach(j))
        return self.try_volunteers(j)

    def try_volunteers(self, j: int) -> int | None:
        """The cheapest volunteer, if it is better than home; it takes no other job until the next check."""
        home = self.jobs[j].home
        willing = (self.volunteers & self.partners[home]) - self.accepted
        candidates = {m for m in willing if self.fits(j, m)}
        if not candidates:
            return None
        volunteer = self.cheapest(j, candidates)
        if not self.is_better(j, volunteer, home):
            return None
        self.accepted.add(volunteer)
        return volunteer

    def is_better(self, j: int, volunteer: int, home: int) -> bool:
        there, here = self.att(j, volunteer), self.att(j, home)
        if there < here - self.epsilon:
            return True
        return abs(there - here) <= self.epsilon and self.rus(volunteer) < self.rus(home)


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

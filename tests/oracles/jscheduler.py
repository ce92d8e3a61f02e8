"""A slow, plain simulator of jobs that choose among resources themselves: the oracle of self-scheduling.

Resources are clusters of `tests.oracles.grid`, and predicted starts those of that module. Every job asks all
resources of its sample about everything, and compares exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from tests.oracles.grid import Clusters, GridCluster
from tests.oracles.local import REJECTED, Cluster, Job

METRICS = ("wait", "slowdown", "response", "queued-jobs", "work-left")
"""What a job may want to be small; the last two look at what is on a cluster, and predict nothing."""

Own = Callable[..., float]
"""A cost of one's own, of the parameters of `gridsched.systems.jscheduler.costs` without labels."""


class Choices(NamedTuple):
    """Start time [s] and resource of each job, -1 for both where none holds it; and how many were asked."""

    places: list[tuple[int, int]]
    queries: int


def self_schedule(
    jobs: list[Job],
    resources: list[GridCluster],
    *,
    samples: Sequence[Sequence[int]],
    metrics: Sequence[str | Own],
    predictions: str = "exact",
    overrun: str = "doubling",
    home: Sequence[int] | None = None,
    ties: str = "completion",
) -> Choices:
    """Let every job go to the resource of its sample where its metric is best.

    Parameters
    ----------
    jobs : list of Job
        By submit time, never decreasing; run times and estimates [s] on a machine of speed 1.
    resources : list of GridCluster
        The grid.
    samples : sequence of sequences of int
        For each job the resources that it asks, in this order; all hold it. A sample of one is not asked.
    metrics : sequence of str
        For each job one of `METRICS`, or a cost of its own.
    predictions : str
        Where predicted starts come from: `exact` simulation or the `plan` of the resource.
    overrun : str
        What a job that reaches its expected end is expected to do: `doubling` or `increments`.
    home : sequence of int, optional
        For each job the resource where it is submitted, or -1.
    ties : str
        What decides between equally good resources: the predicted `completion`, or that it is the `first` of
        the sample.
    """
    assert [job.submit_time for job in jobs] == sorted(job.submit_time for job in jobs)
    assert len(samples) == len(metrics) == len(jobs)
    assert all(callable(metric) or metric in METRICS for metric in metrics)
    home = [-1] * len(jobs) if home is None else home
    return _Simulation(jobs, resources, samples, metrics, predictions, overrun, home, ties).run()


def work_left(cluster: Cluster) -> int:
    """Processor-seconds that the jobs of a cluster are expected to take still."""
    running = [cluster.jobs[j].processors * (cluster.expected_end[j] - cluster.now) for j in cluster.running]
    waiting = [cluster.jobs[j].processors * cluster.jobs[j].estimate for j in cluster.waiting]
    return sum(running) + sum(waiting)


class _Simulation(Clusters):
    """The state of a simulation; jobs and resources are named by their index."""

    def __init__(
        self,
        jobs: list[Job],
        resources: list[GridCluster],
        samples: Sequence[Sequence[int]],
        metrics: Sequence[str | Own],
        predictions: str,
        overrun: str,
        home: Sequence[int],
        ties: str,
    ) -> None:
        super().__init__(resources, overrun, predictions)
        self.jobs = jobs
        self.samples = samples
        self.metrics = metrics
        self.home = home
        self.ties = ties
        self.coming = list(range(len(jobs)))
        self.queries = 0
        # The resource of each job, and its number there.
        self.place: dict[int, tuple[int, int]] = {}

    def run(self) -> Choices:
        while instants := self.future_instants():
            self.set_time(min(instants))
            self.complete()
            self.correct()
            while self.coming and self.jobs[self.coming[0]].submit_time == self.now:
                self.submit(self.coming.pop(0))
            self.schedule()
        assert not any(cluster.waiting for cluster in self.clusters)
        return Choices([self.start_and_resource(j) for j in range(len(self.jobs))], self.queries)

    def future_instants(self) -> list[int]:
        return super().future_instants() + [self.jobs[j].submit_time for j in self.coming]

    def start_and_resource(self, j: int) -> tuple[int, int]:
        if j not in self.place:
            return REJECTED, REJECTED
        m, number = self.place[j]
        return self.clusters[m].start[number], m

    def submit(self, j: int) -> None:
        if self.samples[j]:
            m = self.choice(j)
            self.place[j] = m, self.enter(self.job_on(j, m), m)

    def job_on(self, j: int, m: int) -> Job:
        """A job as it is on a cluster; times in float64, like this, by definition."""
        job, speed = self.jobs[j], self.descriptions[m].speed
        return Job(
            job.submit_time,
            math.ceil(job.run_time / speed),
            max(1, math.ceil(job.estimate / speed)),
            self.allocation(job.processors, m),
        )

    def choice(self, j: int) -> int:
        """The best resource; of equal ones the first of the sample."""
        sample = self.samples[j]
        if len(sample) == 1:
            return sample[0]
        self.queries += len(sample)
        parts = 1 if self.ties == "first" else 2
        return min(sample, key=lambda m: (self.cost(j, m)[:parts], sample.index(m)))

    def cost(self, j: int, m: int) -> tuple[Fraction | float, int]:
        """What a job wants to be small, and what decides where it is equal."""
        cluster, metric = self.clusters[m], self.metrics[j]
        if metric == "queued-jobs":
            return Fraction(len(cluster.waiting)), 0
        if metric == "work-left":
            return Fraction(work_left(cluster), cluster.processors), 0
        job = self.job_on(j, m)
        start = self.predicted_start(job, m)
        wait, completion = start - self.now, start + job.estimate
        if not isinstance(metric, str):
            own = metric(
                now=self.now,
                wait=wait,
                estimate=job.estimate,
                processors=self.jobs[j].processors,
                waiting=len(cluster.waiting),
                work_left=work_left(cluster),
                idle=cluster.free(),
                size=cluster.processors,
                at_home=int(self.home[j] == m),
            )
            return own, completion
        if metric == "wait":
            return Fraction(wait), completion
        if metric == "slowdown":
            return Fraction(wait + job.estimate, job.estimate), completion
        return Fraction(wait + job.estimate), completion

"""Grids: jobs a second and time of a question while every job asks some clusters when it would start.

Ten of 25 clusters, or up to 55 of the 199 clusters of the platform of the JScheduler paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.experiments.kinds.jscheduler.platforms import load_platform
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.systems.jscheduler.scheduler import JScheduler, PredictionsName
from gridsched.systems.superscheduler.scheduler import Superscheduler
from tests.benchmarks import workload
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table
from tests.support.grids import schedule_grid
from tests.support.jscheduler import Submissions, self_schedule

CLUSTERS = [
    Cluster(name=f"c{k}", processors=int(size)) for k, size in enumerate(np.geomspace(64, 25_000, 25).round())
]
POLICIES = [named_policy("easy")] * len(CLUSTERS)
ASKED = 10
WIDEST = 250
"""Processors of the largest job on the platform of the paper: half of its resources are of this size."""
JOBS = 200_000
ROUNDS = 3

MAX_NANOSECONDS = 60
"""Time of a question in plan mode at load 0.9, everything included."""
LEAST_SHARE = 0.5
"""Jobs a second in plan mode at load 0.9 relative to those that ask nobody."""
LEAST_EXACT = 50_000
"""Jobs a second in exact mode at load 1.1."""


@cache
def jobs_of(load: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Jobs that offer so much load to all clusters together, each with a home of random processors."""
    jobs = workload.synthetic(load, JOBS).jobs.copy()
    sizes = np.array([cluster.processors for cluster in CLUSTERS])
    jobs["submit"] = jobs["submit"] * workload.PROCESSORS // sizes.sum()
    random = np.random.default_rng(3)
    # Of those that hold the job, a cluster with a chance in proportion to its processors
    first = np.searchsorted(sizes, jobs["processors"])
    before = np.append(0, np.cumsum(sizes))
    drawn = before[first] + random.random(JOBS) * (before[-1] - before[first])
    return jobs, np.searchsorted(before, drawn, side="right") - 1


@cache
def measure_local(load: float) -> float:
    """Least CPU time [s] where every job stays at its home."""
    jobs, home = jobs_of(load)
    scheduler = Superscheduler(scheme="local")
    return best_time(lambda: schedule_grid(jobs, home, CLUSTERS, POLICIES, scheduler), 0.0, ROUNDS)


def measure_asking(
    jobs: NDArray[Any], resources: Sequence[Cluster], policies: Sequence[LocalPolicy], jscheduler: JScheduler
) -> tuple[float, int]:
    """Least CPU time [s] where every job asks, and how many were asked."""
    names = ("submit", "run", "estimate", "processors")
    submitted = Submissions(*(jobs[name].astype(np.int64) for name in names))
    asked = partial(self_schedule, submitted, resources, policies, jscheduler, seed=1)
    return best_time(asked, 0.0, ROUNDS), asked().queries


def measure(load: float, predictions: PredictionsName) -> tuple[float, int]:
    """Least CPU time [s] where jobs ask ten of 25 clusters for their response time, and the questions."""
    jscheduler = JScheduler(metric="response", k=ASKED, predictions=predictions)
    return measure_asking(jobs_of(load)[0], CLUSTERS, POLICIES, jscheduler)


@pytest.mark.parametrize("load", [0.9, 1.1])
def test_without_questions(load: float, table: Table) -> None:
    rate = JOBS / measure_local(load)
    table.add(f"grid of 25 clusters, EASY, load {load}, nobody asked", rate, "jobs/s")


@pytest.mark.parametrize("load", [0.9, 1.1])
def test_plan(load: float, table: Table) -> None:
    seconds, queries = measure(load, "plan")
    what = f"grid, plan, {ASKED} asked, load {load}"
    most, least = (MAX_NANOSECONDS, LEAST_SHARE) if load < 1 else (None, None)
    table.add(f"{what}, time of a question", 1e9 * seconds / queries, "ns", at_most=most)
    share = measure_local(load) / seconds
    table.add(f"{what}, against nobody asked", share, "times the rate", digits=2, at_least=least)
    table.add(what, JOBS / seconds, "jobs/s")


@pytest.mark.parametrize(("load", "least"), [(0.9, None), (1.1, LEAST_EXACT)])
def test_exact(load: float, least: float | None, table: Table) -> None:
    seconds, queries = measure(load, "exact")
    what = f"grid, exact, {ASKED} asked, load {load} ({1e9 * seconds / queries:.0f} ns a question)"
    table.add(what, JOBS / seconds, "jobs/s", at_least=least)


@pytest.mark.parametrize("k", [1, 10, 55])
@pytest.mark.parametrize("predictions", ["plan", "exact"])
def test_many_resources(predictions: PredictionsName, k: int, table: Table) -> None:
    """The platform of the paper with its local policies, all run times alike everywhere, at load 0.9."""
    resources, policies, _ = load_platform().resources("none")
    jobs = workload.synthetic(0.9, JOBS).jobs.copy()
    jobs["processors"] = jobs["processors"].clip(max=WIDEST)
    work = (jobs["run"] * jobs["processors"]).sum()
    processors = sum(resource.processors for resource in resources)
    jobs["submit"] = jobs["submit"] * (work / (0.9 * processors * jobs["submit"][-1]))
    jscheduler = JScheduler(k=k, predictions=predictions)
    seconds, queries = measure_asking(jobs, resources, policies, jscheduler)
    asked = f", {queries / seconds:,.0f} questions/s" if queries else ", nobody asked"
    table.add(f"{len(resources)} clusters, {predictions}, k = {k}{asked}", JOBS / seconds, "jobs/s")

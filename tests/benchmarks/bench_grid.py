"""Grids: jobs a second and time of a question while every job asks ten of 25 clusters when it would start."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.platforms import Cluster
from gridsched.schedulers.local import named_policy
from gridsched.schedulers.superscheduler import PredictionsName, SchemeName, Superscheduler, schedule_grid
from tests.benchmarks import workload
from tests.benchmarks.table import Table

CLUSTERS = [
    Cluster(name=f"c{k}", processors=int(size)) for k, size in enumerate(np.geomspace(64, 25_000, 25).round())
]
ASKED = 10
JOBS = 200_000
ROUNDS = 3

MOST_NANOSECONDS = 60
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
def measure(load: float, scheme: SchemeName, predictions: PredictionsName) -> tuple[float, int]:
    """Least CPU time of a simulation [s], and its questions."""
    jobs, home = jobs_of(load)
    superscheduler = Superscheduler(scheme=scheme, predictions=predictions, k=ASKED, seed=1)
    policies = [named_policy("easy")] * len(CLUSTERS)
    best, queries = np.inf, 0
    for _ in range(ROUNDS):
        begin = time.process_time()
        queries = schedule_grid(jobs, home, CLUSTERS, policies, superscheduler).queries
        best = min(best, time.process_time() - begin)
    return best, queries


@pytest.mark.parametrize("load", [0.9, 1.1])
def test_without_questions(load: float, table: Table) -> None:
    seconds, _ = measure(load, "local", "exact")
    table.add(f"grid of 25 clusters, EASY, load {load}, nobody asked", f"{JOBS / seconds:,.0f} jobs/s")


@pytest.mark.parametrize("load", [0.9, 1.1])
def test_plan(load: float, table: Table) -> None:
    seconds, queries = measure(load, "sampled", "plan")
    each = 1e9 * seconds / queries
    what = f"grid, plan, {ASKED} asked, load {load}"
    if load < 1:
        share = measure(load, "local", "exact")[0] / seconds
        table.add_target(
            f"{what}, time of a question", f"{each:.0f} ns", value=each, at_most=MOST_NANOSECONDS, unit=" ns"
        )
        table.add_target(f"{what}, against nobody asked", f"{share:.2f}", value=share, at_least=LEAST_SHARE)
    table.add(what, f"{JOBS / seconds:,.0f} jobs/s")


@pytest.mark.parametrize("load", [0.9, 1.1])
def test_exact(load: float, table: Table) -> None:
    seconds, queries = measure(load, "sampled", "exact")
    rate = JOBS / seconds
    what = f"grid, exact, {ASKED} asked, load {load} ({1e9 * seconds / queries:.0f} ns a question)"
    if load > 1:
        table.add_target(what, f"{rate:,.0f} jobs/s", value=rate, at_least=LEAST_EXACT, unit=" jobs/s")
    else:
        table.add(what, f"{rate:,.0f} jobs/s")

"""Dynamic grids: jobs a second on six clusters and on a hundred, with and without churn."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.platform import Cluster
from gridsched.systems.dynamic_grid.graphs import GraphName, grid_graph
from gridsched.systems.dynamic_grid.membership import draw_membership
from gridsched.systems.dynamic_grid.planning import GRID, WORK, schedule_dynamic_grid
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table
from tests.benchmarks.workload import arrivals

JOBS = 200_000
ROUNDS = 3
SIX = (100, 128, 240, 338, 1024, 1152)
HUNDRED = tuple(int(size) for size in np.geomspace(16, 1024, 100).round())

LONGEST_RUN = 5.0
"""Seconds that 200,000 jobs on six clusters may take."""


@cache
def jobs_of(sizes: tuple[int, ...], load: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Jobs that offer so much load to all clusters together; a fifth goes to the grid scheduler."""
    random = np.random.default_rng(11)
    homes = random.choice(len(sizes), JOBS, p=np.array(sizes) / sum(sizes))
    jobs = np.empty(JOBS, WORK)
    jobs["processors"] = np.exp2(random.uniform(0, np.log2(np.array(sizes)[homes]))).astype(np.int64)
    jobs["run"] = np.clip(random.lognormal(np.log(900), 1.8, JOBS), 1, 48 * 3600)
    jobs["estimate"] = jobs["run"] * random.uniform(1, 5, JOBS) + 1
    jobs["home_run"], jobs["home_estimate"] = jobs["run"], jobs["estimate"]
    work = (jobs["run"] * jobs["processors"]).sum()
    jobs["submit"] = arrivals(random, JOBS, work, load * sum(sizes))
    return jobs, np.where(random.random(JOBS) < 0.2, GRID, homes)


def measure(
    sizes: tuple[int, ...], load: float, kind: GraphName, options: DynamicGrid, *, churn: bool
) -> float:
    """Least CPU time of a simulation [s]."""
    jobs, home = jobs_of(sizes, load)
    clusters = [Cluster(name=f"c{i}", processors=size) for i, size in enumerate(sizes)]
    names = [cluster.name for cluster in clusters]
    graph = grid_graph(names, kind, mean_degree=6 if kind == "random" else None)
    horizon = int(jobs["submit"][-1])
    stays = draw_membership(names, horizon, mean_stay=horizon / 20, mean_absence=86_400) if churn else None
    simulated = partial(schedule_dynamic_grid, jobs, home, clusters, graph, options, stays)
    return best_time(simulated, 0.0, ROUNDS)


@pytest.mark.parametrize("load", [0.7, 1.0])
@pytest.mark.parametrize("kind", ["ring", "complete"])
@pytest.mark.parametrize("churn", [False, True])
def test_six_clusters(load: float, kind: GraphName, churn: bool, table: Table) -> None:
    seconds = measure(SIX, load, kind, DynamicGrid(migration_cost=1.0), churn=churn)
    what = f"dynamic grid of 6 clusters, {kind}, load {load}{', churn' if churn else ''}"
    table.add(what, seconds, "s", digits=2, at_most=LONGEST_RUN, note=f", {JOBS / seconds:,.0f} jobs/s")


@pytest.mark.parametrize("kind", ["random", "complete"])
def test_hundred_clusters(kind: GraphName, table: Table) -> None:
    seconds = measure(HUNDRED, 0.9, kind, DynamicGrid(migration_cost=1.0), churn=True)
    table.add(f"dynamic grid of 100 clusters, {kind}, load 0.9, churn", JOBS / seconds, "jobs/s")

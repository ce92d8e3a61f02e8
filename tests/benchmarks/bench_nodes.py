"""Clusters of nodes with three resources: jobs simulated a second by load and placement, and memory."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gridsched.nodes import NodeType, PlacementName
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.workloads import Workload
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table
from tests.benchmarks.workload import arrivals

JOBS = 8_000
NODES = [
    NodeType(name="cpu", count=1_000, cores=64, memory=256 * 1024),
    NodeType(name="gpu", count=500, cores=64, memory=512 * 1024, gpus=4),
]
LEAST_JOBS = {("first_fit", 0.7): 100_000.0}
"""Jobs a second that are wanted, by placement and load; others are for comparison."""


@cache
def jobs_at(load: float) -> Workload:
    """Poisson stream of jobs on one to sixteen nodes, a fifth with GPUs, half with much memory."""
    random = np.random.default_rng(7)
    run = np.clip(np.ceil(random.lognormal(np.log(900), 1.5, JOBS)), 1, 86_400).astype(np.int64)
    gpus = np.where(random.random(JOBS) < 0.2, 2 ** random.integers(0, 3, JOBS), 0)
    nodes = np.where(gpus > 0, 1, 2 ** random.integers(0, 5, JOBS))
    cores = 2 ** random.integers(2, 7, JOBS)
    total = sum(kind.count * kind.cores for kind in NODES)
    return Workload(
        name=f"synthetic {load:g}",
        submit_time=arrivals(random, JOBS, (run * nodes * cores).sum(), load * total),
        run_time=run,
        requested_time=(run * random.uniform(1, 4, JOBS)).astype(np.int64) + 1,
        requested_processors=nodes * cores,
        requested_nodes=nodes,
        requested_gpus=gpus,
        requested_memory=np.where(random.random(JOBS) < 0.5, 4, 1) * 1024 * 1024,
    )


@pytest.mark.parametrize("placement", ["first_fit", "best_fit"])
@pytest.mark.parametrize("load", [0.7, 0.9, 1.1])
def test_easy_on_nodes(load: float, placement: PlacementName, table: Table) -> None:
    workload, cluster = jobs_at(load), Cluster(nodes=NODES, placement=placement)
    best = best_time(lambda: simulate(workload, cluster, "easy"))
    what = f"EASY on 1,500 nodes with three resources, {placement}, load {load:g}"
    table.add(what, JOBS / best, "jobs/s", at_least=LEAST_JOBS.get((placement, load)))


def test_conservative_on_nodes(table: Table) -> None:
    workload, cluster = jobs_at(1.1), Cluster(nodes=NODES)
    best = best_time(lambda: simulate(workload, cluster, "conservative"))
    what = "conservative backfilling on 1,500 nodes with three resources, load 1.1"
    table.add(what, JOBS / best, "jobs/s")

"""Slurm at the size of a site: CPU seconds for jobs of whole nodes, with long queues and many plans."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.workloads import Workload
from tests.benchmarks.table import Table

JOBS, NODES = 100_000, 2_000
MAX_SECONDS = {0.8: 60.0}
"""CPU seconds that are wanted, by load; others are for comparison."""


def jobs_at(load: float, jobs: int = JOBS) -> Workload:
    """Poisson stream of jobs on 1 to 300 nodes."""
    random = np.random.default_rng(7)
    run = np.clip(np.ceil(random.lognormal(np.log(1800), 1.4, jobs)), 1, 86_400).astype(np.int64)
    nodes = random.integers(1, 301, jobs)
    gaps = random.exponential(size=jobs)
    work = float((run * nodes).sum())
    return Workload(
        name=f"synthetic {load:g}",
        submit_time=np.cumsum(gaps * (work / gaps.sum() / (load * NODES))).astype(np.int64),
        run_time=run,
        requested_time=np.minimum((run * random.uniform(1, 4, jobs)).astype(np.int64) + 60, 172_800),
        requested_processors=nodes,
    )


@pytest.mark.parametrize("load", [0.7, 0.8])
def test_slurm_at_the_size_of_a_site(load: float, table: Table) -> None:
    scheduler, cluster = Slurm(select_type="linear"), Cluster(processors=NODES)
    simulate(jobs_at(load, 100), cluster, scheduler)
    workload = jobs_at(load)
    before = time.process_time()
    run = simulate(workload, cluster, scheduler)
    seconds = time.process_time() - before
    wait = float((run["start_time"] - run["submit_time"]).mean())
    what = f"Slurm, {JOBS:,} jobs on {NODES:,} nodes, load {load:g}, mean wait {wait / 60:.0f} min"
    if load in MAX_SECONDS:
        table.add_target(what, f"{seconds:.0f} s", value=seconds, at_most=MAX_SECONDS[load], unit=" s")
    else:
        table.add(what, f"{seconds:.0f} s")

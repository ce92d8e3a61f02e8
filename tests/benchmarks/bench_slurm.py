"""Slurm at the size of a site: CPU seconds for jobs of whole nodes, with long queues and many plans."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np
import pytest

from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.workloads import Workload
from tests.benchmarks.table import Table
from tests.benchmarks.workload import arrivals

JOBS, NODES = 100_000, 2_000
MAX_SECONDS = {0.7: 15.0, 0.8: 60.0}
"""CPU seconds that are wanted, by load."""

_PLAIN = Slurm(select_type="linear")


def jobs_at(load: float, jobs: int = JOBS) -> Workload:
    """Poisson stream of jobs on 1 to 300 nodes."""
    random = np.random.default_rng(7)
    run = np.clip(np.ceil(random.lognormal(np.log(1800), 1.4, jobs)), 1, 86_400).astype(np.int64)
    nodes = random.integers(1, 301, jobs)
    return Workload(
        name=f"synthetic {load:g}",
        submit_time=arrivals(random, jobs, (run * nodes).sum(), load * NODES),
        run_time=run,
        requested_time=np.minimum((run * random.uniform(1, 4, jobs)).astype(np.int64) + 60, 172_800),
        requested_processors=nodes,
    )


SITE_JOBS, SITE_NODES, SITE_LOAD = 600_000, 5_860, 0.8
MAX_SITE_SECONDS, MAX_SITE_GIGABYTES = 600.0, 8.0
_LIMITS = np.array([30, 60, 120, 240, 480, 720, 1440, 2880]) * 60


def jobs_of_site(jobs: int = SITE_JOBS, nodes: int = SITE_NODES, load: float = SITE_LOAD) -> Workload:
    """Jobs like those of a large site.

    Half of them have up to three nodes, one in a hundred 200 and more; users round limits up, and submit
    three times as much in the afternoon as at night.
    """
    random = np.random.default_rng(11)
    run = np.clip(np.ceil(random.lognormal(np.log(1200), 1.7, jobs)), 1, 172_800).astype(np.int64)
    size = np.clip(np.ceil(random.lognormal(np.log(2.5), 1.9, jobs)), 1, nodes // 2).astype(np.int64)
    wanted = np.minimum(run * random.uniform(1, 4, jobs), _LIMITS[-1])
    length = float((run * size).sum()) / (load * nodes)
    hours = np.arange(int(length // 3600) + 1)
    weight = 1 + 0.5 * np.sin((hours % 24 - 9) * np.pi / 12)
    hour = np.sort(random.choice(hours, jobs, p=weight / weight.sum()))
    return Workload(
        name="site",
        submit_time=np.sort(hour * 3600 + random.integers(0, 3600, jobs)),
        run_time=run,
        requested_time=_LIMITS[np.searchsorted(_LIMITS, wanted)],
        requested_processors=size,
        user=random.zipf(1.6, jobs).clip(1, 800),
    )


_SIZES = np.repeat([1, 2, 3, 4, 6, 8, 12, 16], [10, 7, 3, 5, 2, 3, 1, 1])
DAY_NODES = 320
_FREQUENT = Slurm(
    select_type="linear",
    priority_type="basic",
    batch_sched_delay=1,
    sched_interval=5,
    bf_interval=2,
    bf_resolution=1,
    bf_window=120,
    bf_continue=True,
    kill_wait=5,
)
"""The configuration of w2."""


def jobs_of_day(hours: float = 24.0) -> Workload:
    """Ten times the arrivals of the recording w2 (110 jobs in 180 s) for a day: 528,000 jobs.

    Sizes, run times and limits are drawn as its were. On ten times its nodes the load is 1.9 as there, so
    that the queue grows all day.
    """
    random = np.random.default_rng(1)
    seconds = round(3600 * hours)
    jobs = round(10 * 110 / 180 * seconds)
    run = np.exp(random.uniform(np.log(8), np.log(60), jobs))
    return Workload(
        name="day",
        submit_time=np.sort(random.integers(0, seconds, jobs)),
        run_time=np.ceil(run).astype(np.int64),
        requested_time=60 * np.ceil(run * random.uniform(1, 5, jobs) / 60).astype(np.int64),
        requested_processors=random.choice(_SIZES, jobs),
        user=random.integers(1, 4, jobs),
    )


def measured(workload: Workload, few: Workload, nodes: int, scheduler: Slurm) -> tuple[float, str]:
    """CPU seconds of a run, after one of few jobs, and its mean wait."""
    cluster = Cluster(processors=nodes)
    simulate(few, cluster, scheduler)
    before = time.process_time()
    run = simulate(workload, cluster, scheduler)
    seconds = time.process_time() - before
    wait = float((run["start_time"] - run["submit_time"]).mean())
    return seconds, f"mean wait {wait / 60:.0f} min"


@pytest.mark.parametrize(
    ("what", "made", "nodes", "scheduler"),
    [
        ("jobs of a site", jobs_of_site, SITE_NODES, _PLAIN),
        ("jobs in a day", jobs_of_day, DAY_NODES, _FREQUENT),
    ],
    ids=("site", "day"),
)
def test_slurm_of_a_large_site(
    what: str, made: Callable[[], Workload], nodes: int, scheduler: Slurm, table: Table
) -> None:
    jobs = made()
    seconds, waits = measured(jobs, jobs_of_day(0.1), nodes, scheduler)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    note = f", {len(jobs) / seconds:,.0f} jobs/s, {peak:.1f} GiB"
    what = f"Slurm, {len(jobs):,} {what} on {nodes:,} nodes, {waits}"
    table.add(what, seconds, "s", at_most=MAX_SITE_SECONDS, note=note)
    assert peak <= MAX_SITE_GIGABYTES


@pytest.mark.parametrize("load", MAX_SECONDS)
def test_slurm_at_the_size_of_a_site(load: float, table: Table) -> None:
    seconds, waits = measured(jobs_at(load), jobs_at(load, 100), NODES, _PLAIN)
    what = f"Slurm, {JOBS:,} jobs on {NODES:,} nodes, load {load:g}, {waits}"
    table.add(what, seconds, "s", at_most=MAX_SECONDS[load])

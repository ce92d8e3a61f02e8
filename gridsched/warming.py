"""Compiling kernels ahead of the first simulation, with all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from gridsched.platform import Cluster
from gridsched.policies.local import POLICIES
from gridsched.simulation import simulate
from gridsched.systems.registry import names
from gridsched.verification import verify
from gridsched.workloads.table import Workload


def warm() -> Iterator[str]:
    """Names of the schedulers whose kernels are compiled and stored, each when it is done.

    Every scheduler of the registry runs a few jobs, in as many processes as there are cores; those that need
    the same kernel wait for one another.

    Raises
    ------
    GridschedError
        If a simulation fails.
    """
    wanted = [*dict.fromkeys([*POLICIES, *names()])]
    # Forked processes would have the kernels that this one has loaded
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(wanted), os.cpu_count() or 1), mp_context=context) as pool:
        done = {pool.submit(_simulate, name): name for name in wanted}
        for future in as_completed(done):
            future.result()
            yield done[future]


def _simulate(name: str) -> None:
    """Run a few jobs on two clusters, or on one under a local policy."""
    jobs = [
        Workload(
            name=f"jobs-{k}",
            submit_time=np.array([0, 0, 1, 5]),
            run_time=np.array([10, 20, 5, 5]),
            requested_processors=np.array([2, 3, 1, 4]),
            requested_time=np.array([20, 20, 10, 5]),
        )
        for k in range(2)
    ]
    if name in POLICIES:
        verify(simulate(jobs[0], Cluster(processors=4), name))
        return
    verify(simulate(jobs, [Cluster(processors=4, name=f"cluster-{k}") for k in range(2)], name))

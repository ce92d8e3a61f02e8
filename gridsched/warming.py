"""Compiling kernels ahead of the first simulation, with all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from gridsched.engine.kernel_cache import telling
from gridsched.platform import Cluster
from gridsched.policies.local import POLICIES
from gridsched.simulation import simulate
from gridsched.systems.registry import names
from gridsched.verification import verify
from gridsched.workloads.table import Workload


def schedulers() -> list[str]:
    """Names of all schedulers that have kernels."""
    return [*dict.fromkeys([*names(), *POLICIES])]


def warm(wanted: Sequence[str] | None = None) -> Iterator[tuple[str, int]]:
    """Compile and store kernels: each scheduler when it is done, and how many kernels had to be compiled.

    Every scheduler runs a few jobs. There are twice as many processes as cores, since those that need the
    same kernel wait for one another.

    Parameters
    ----------
    wanted : sequence of str, optional
        Names of schedulers; all of them if not given.

    Raises
    ------
    GridschedError
        If a simulation fails.
    """
    wanted = schedulers() if wanted is None else wanted
    # Forked processes would have the kernels that this one has loaded
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(wanted), 2 * usable_cores()), mp_context=context) as pool:
        done = {pool.submit(_compiled, name): name for name in wanted}
        for future in as_completed(done):
            yield done[future], future.result()


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compiled(name: str) -> int:
    """How many kernels were compiled, here or by another process meanwhile, to simulate with a scheduler."""
    kernels: list[str] = []
    with telling(kernels.append):
        _simulate(name)
    return len(kernels)


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

"""Rates of arrivals at which so many jobs are in the queue on average: workload levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import xarray as xr

from gridsched.errors import WorkloadError
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.multicluster.jobs import MulticlusterModel, synthesise_multicluster
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.workloads.deadlines import ServiceClass, draw_deadlines

_FIRST_LOADS = (0.6, 0.8, 0.9, 1.0, 1.2, 1.6, 2.5, 5.0, 20.0)
"""Work that arrives relative to what the clusters can do: tried one by one until the queue is long enough."""

LevelName = Literal["collected", "handed over", "waiting"]
"""What counts as the queue at a workload level."""

_SHORTEST_QUEUE = 1e-3
"""Shorter queues count as this, so that they have a logarithm."""

_TOLERANCE = 0.05
"""Relative deviation from a level that is good enough."""

_EVALUATIONS = 8
"""Most rates that are tried between two whose queues enclose the level."""


def calibrate_rate(
    level: float,
    model: MulticlusterModel,
    clusters: Sequence[Cluster],
    *,
    jobs: int,
    seeds: Sequence[int],
    scheduler: Multicluster,
    counts: LevelName = "collected",
) -> tuple[float, float]:
    """Arrival rate at which so many jobs are in the queue, on average.

    This sets the workload levels of a study, by MUSCLE as a rule; other policies then replay the same jobs.
    Every rate is tried on the same jobs, whose arrivals it stretches alone, and the mean is taken over the
    seeds. The queue grows with the rate, though not smoothly, since a small change of arrivals can change all
    later rounds: a search by false position in logarithms ends when a queue differs from the level by no more
    than the tolerance, or after so many further rates; the nearest of all counts.

    Parameters
    ----------
    level : float
        Wanted mean number of jobs.
    model : MulticlusterModel
        Distributions of the jobs.
    clusters : sequence of Cluster
        The clusters.
    jobs : int
        Jobs of a workload; the queue of a crowded multicluster grows with it.
    seeds : sequence of int
        Seeds of the workloads and deadlines, which have the default range.
    scheduler : Multicluster
        By which the level is set; without weights of single clusters.
    counts : {"collected", "handed over", "waiting"}
        Which jobs are in the queue: those collected for the next round, on average over time; those that a
        round hands over, on average over rounds; or those that have not started, on average over time.

    Returns
    -------
    tuple of float
        Arrivals in a unit of time, and the mean queue that was simulated with them. The same arguments give
        the same, bit for bit.

    Raises
    ------
    WorkloadError
        If no rate gives such a queue.
    """
    capacity = sum(cluster.processors * cluster.speed for cluster in clusters) / model.mean_work
    tried = {0.0: 0.0}

    def excess(load: float) -> float:
        """Logarithm of the queue under a load relative to the level."""
        if load not in tried:
            rate = load * capacity
            queues = [_queues(model, tuple(clusters), jobs, seed, scheduler, rate) for seed in seeds]
            tried[load] = float(np.mean([each[counts] for each in queues]))
        return float(np.log(max(tried[load], _SHORTEST_QUEUE) / level))

    around = next((pair for pair in pairwise((0.0, *_FIRST_LOADS)) if excess(pair[1]) >= 0), None)
    if around is None:
        raise WorkloadError(
            f"no rate of arrivals lets {level:g} of {jobs} jobs be in the queue on average; "
            f"the most is {max(tried.values()):.3g}: use more jobs"
        )
    _false_position(excess, *around)
    nearest = min(tried, key=lambda load: abs(excess(load)))
    return nearest * capacity, tried[nearest]


@lru_cache(maxsize=10_000)
def _queues(
    model: MulticlusterModel,
    clusters: tuple[Cluster, ...],
    jobs: int,
    seed: int,
    scheduler: Multicluster,
    rate: float,
) -> dict[LevelName, float]:
    """Mean queues at a rate, which searches for other levels of the same jobs ask for again."""
    workload = synthesise_multicluster(model, jobs=jobs, rate=rate, seed=seed)
    slowest = min(cluster.speed for cluster in clusters)
    due = draw_deadlines(workload, [ServiceClass()], seed=seed, slowest=slowest)
    return mean_queues(simulate(replace(workload, deadline=due), clusters, scheduler))


def mean_queues(run: xr.Dataset) -> dict[LevelName, float]:
    """Mean queues of a run of `Multicluster`, by what counts as the queue; see `calibrate_rate`."""
    given = run["round_collected"].values
    return {
        "collected": float(run["queue_mean"]),
        "handed over": float(given[given > 0].mean()) if given.any() else 0.0,
        "waiting": float(run["waiting_mean"]),
    }


def _false_position(excess: Callable[[float], float], low: float, high: float) -> None:
    """Look for a zero of a function between two points of different sign (regula falsi, Illinois variant)."""
    ends, values = [low, high], [excess(low), excess(high)]
    found, replaced = min(map(abs, values)), -1
    for _ in range(_EVALUATIONS):
        if abs(found) <= np.log1p(_TOLERANCE):
            return
        middle = (ends[0] * values[1] - ends[1] * values[0]) / (values[1] - values[0])
        found = excess(middle)
        side = int(found > 0)
        ends[side], values[side] = middle, found
        if side == replaced:
            values[1 - side] /= 2
        replaced = side

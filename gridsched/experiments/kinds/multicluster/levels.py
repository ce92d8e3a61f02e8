"""Rates of arrivals at which so many jobs are in the queue on average: workload levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

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


class CalibratedRate(NamedTuple):
    """Arrivals in a unit of time, and the mean queue that was simulated with them."""

    rate: float
    queue: float


def calibrate_rates(
    levels: Sequence[float],
    model: MulticlusterModel,
    clusters: Sequence[Cluster],
    *,
    jobs: int,
    seeds: Sequence[int],
    classes: Sequence[ServiceClass] | None = None,
    scheduler: Multicluster | None = None,
    counts: LevelName = "collected",
    tolerance: float = 0.05,
    evaluations: int = 8,
) -> list[CalibratedRate]:
    """Arrival rates at which so many jobs are in the queue, on average.

    This sets the workload levels of a study, by MUSCLE as a rule; other policies then replay the same jobs.
    Every rate is tried on the same jobs, whose arrivals it stretches alone, and the mean is taken over the
    seeds. The queue grows with the rate, though not smoothly, since a small change of arrivals can change all
    later rounds: a search by false position in logarithms ends when a queue differs from the level by no more
    than the tolerance, or after so many further rates; the nearest of all counts.

    Parameters
    ----------
    levels : sequence of float
        Wanted mean numbers of jobs.
    model : MulticlusterModel
        Distributions of the jobs.
    clusters : sequence of Cluster
        The clusters.
    jobs : int
        Jobs of a workload; the queue of a crowded multicluster grows with it.
    seeds : sequence of int
        Seeds of the workloads and deadlines.
    classes : sequence of ServiceClass, optional
        Range of the deadlines, the first of them; the default range if not given.
    scheduler : Multicluster, optional
        By which the levels are set; MUSCLE with TITAN if not given.
    counts : {"collected", "handed over", "waiting"}
        Which jobs are in the queue: those collected for the next round, on average over time; those that a
        round hands over, on average over rounds; or those that have not started, on average over time.
    tolerance : float
        Relative deviation from a level that is good enough.
    evaluations : int
        Most rates that are tried for a level between two that enclose it.

    Returns
    -------
    list of CalibratedRate
        One for each level. The same arguments give the same, bit for bit.

    Raises
    ------
    WorkloadError
        If a level is not positive, there is no seed, or no rate gives such a queue.
    """
    for level in levels:
        if not (level > 0 and np.isfinite(level)):
            raise WorkloadError(f"workload level is {level}; give a positive number of jobs")
    if not len(seeds):
        raise WorkloadError("workload levels: there are no seeds; give one for each replicate")
    capacity = _capacity(model, clusters)
    scheduler = scheduler or Multicluster()
    if isinstance(scheduler.weights, Sequence):
        scheduler = replace(scheduler, weights=tuple(scheduler.weights))
    promised = (classes or [ServiceClass(name="all")])[0]

    def queue(load: float) -> float:
        lengths = [
            _lengths(model, tuple(clusters), jobs, seed, promised, scheduler, load)[counts] for seed in seeds
        ]
        return float(np.mean(lengths))

    tried = {0.0: 0.0}
    found = []
    for level in levels:
        load = _load_of(level, queue, tried, tolerance, evaluations, jobs)
        found.append(CalibratedRate(load * capacity, tried[load]))
    return found


@lru_cache(maxsize=10_000)
def _lengths(
    model: MulticlusterModel,
    clusters: tuple[Cluster, ...],
    jobs: int,
    seed: int,
    promised: ServiceClass,
    scheduler: Multicluster,
    load: float,
) -> dict[LevelName, float]:
    """Mean queues under a load, which searches for other levels of the same jobs ask for again."""
    slowest = min(cluster.speed for cluster in clusters)
    workload = synthesise_multicluster(model, jobs=jobs, rate=load * _capacity(model, clusters), seed=seed)
    due = draw_deadlines(workload, [promised], seed=seed, slowest=slowest)
    run = simulate(replace(workload, deadline=due), clusters, scheduler)
    return {name: queue_length(run, name) for name in get_args(LevelName)}


def _capacity(model: MulticlusterModel, clusters: Sequence[Cluster]) -> float:
    """Jobs that the clusters can do in a unit of time."""
    return sum(cluster.processors * cluster.speed for cluster in clusters) / model.mean_work


def queue_length(run: xr.Dataset, counts: LevelName) -> float:
    """Mean queue of a run of `Multicluster`; see `calibrate_rates`."""
    if counts == "handed over":
        given = run["round_collected"].values
        return float(given[given > 0].mean()) if given.any() else 0.0
    return float(run["queue_mean" if counts == "collected" else "waiting_mean"])


def _load_of(
    level: float,
    queue: Callable[[float], float],
    tried: dict[float, float],
    tolerance: float,
    evaluations: int,
    jobs: int,
) -> float:
    """The tried load whose queue is nearest to a level, after a search that adds to what was tried."""

    def excess(load: float) -> float:
        tried[load] = queue(load) if load else 0.0
        return float(np.log(max(tried[load], _SHORTEST_QUEUE) / level))

    for load in _FIRST_LOADS:
        if max(tried.values()) >= level:
            break
        excess(load)
    else:
        if max(tried.values()) < level:
            raise WorkloadError(
                f"no rate of arrivals lets {level:g} of {jobs} jobs be in the queue on average; "
                f"the most is {max(tried.values()):.3g}: use more jobs"
            )
    high = min(load for load in tried if tried[load] >= level)
    low = max(load for load in tried if load < high)
    _false_position(excess, low, high, tolerance, evaluations)
    return min(tried, key=lambda load: abs(excess(load)))


def _false_position(
    excess: Callable[[float], float], low: float, high: float, tolerance: float, evaluations: int
) -> None:
    """Look for a zero of a function between two points of different sign (regula falsi, Illinois variant)."""
    below, above = excess(low), excess(high)
    found = min(abs(below), abs(above))
    side = 0
    for _ in range(evaluations):
        if abs(found) <= np.log1p(tolerance):
            return
        middle = (low * above - high * below) / (above - below)
        found = excess(middle)
        if found > 0:
            high, above = middle, found
            below = below / 2 if side > 0 else below
            side = 1
        else:
            low, below = middle, found
            above = above / 2 if side < 0 else above
            side = -1

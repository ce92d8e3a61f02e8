"""TITAN: the scheduler of one cluster, a genetic algorithm over schedules on particular resources.

He, Jarvis, Spooner, Chen and Nudd, "Hybrid performance-based workload management for multiclusters and grids"
(IEE Proceedings - Software 151, 2004), section 3. A schedule is good if its comprehensive performance (CP),
equation (1), is small: the weighted mean of

==============  ========================================================================================
makespan        from when TITAN gets the jobs to the end of the last one
idle time       time that resources are not used between when they become available and the end of the
                last job that each of them runs (``holes``), or the makespan (``makespan``), summed up
over-deadline   what jobs end after their deadlines, summed up
==============  ========================================================================================

over the jobs that have not started. The paper pairs its symbols with the weights of other metrics; here each
metric has the weight that bears its name. In equation (2) best and worst must change places, so that the best
schedule has fitness 1. Open in the paper, and options here: the size of the population, the probabilities of
the operators, and when performance counts as stable. How the operators work, and how a schedule is executed,
is said in `kernels.genetic` and `packing`; the given schedule is read by the same rules as all
others.

Where a cluster gives whole nodes to jobs, the resources of its schedules are the nodes, and a job uses as
many as hold its processors. Idle time counts for each processor of a node, so that it is the same as if jobs
asked for the processors that they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.systems.base import check_choices, check_values
from gridsched.systems.multicluster.kernels import genetic, packing

IdleName = Literal["holes", "makespan"]


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What a cluster wants of its schedules: the weights of equation (1), of which only the ratios matter.

    Parameters
    ----------
    over_deadline, makespan, idle : float
        W^o, W^m and W^i; not negative, not all 0.
    idle_time : {"holes", "makespan"}
        Up to when the idle time of a resource counts: its last job, or the makespan.

    Raises
    ------
    ConfigurationError
        If a weight is out of range or the name unknown.
    """

    over_deadline: float = 4.0
    makespan: float = 3.0
    idle: float = 1.0
    idle_time: IdleName = "holes"

    def __post_init__(self) -> None:
        weights = {key: getattr(self, key) for key in ("over_deadline", "makespan", "idle")}
        check_choices(self, "weights: ")
        check_values(
            self,
            {key: (np.isfinite(w) and w >= 0, "0 or a positive number") for key, w in weights.items()},
            "weights: ",
        )
        if not sum(weights.values()) > 0:
            raise ConfigurationError("weights: all are 0; give over_deadline, makespan or idle some weight")

    @property
    def goal(self) -> packing.Goal:
        """The weights as the engine wants them."""
        return packing.Goal(
            float(self.makespan), float(self.idle), float(self.over_deadline), self.idle_time == "makespan", 1
        )

    def performance(self, makespan: Any, idle: Any, over_deadline: Any) -> Any:
        """Comprehensive performance, equation (1), of numbers or arrays, seconds."""
        total = self.makespan * makespan + self.idle * idle + self.over_deadline * over_deadline
        return total / (self.makespan + self.idle + self.over_deadline)


@dataclass(frozen=True, kw_only=True)
class Titan:
    """Parameters of the genetic algorithm.

    Parameters
    ----------
    population : int
        Schedules of a generation, at least 2.
    generations : int
        Most generations after the first.
    crossover : float
        Probability that a child has two parents instead of one.
    swap : float
        Probability that two jobs of a child change places in its order, and of each further such change;
        less than 1.
    move : float
        Probability that one job of a child changes one of its resources, likewise.
    window : int
        Generations over which the improvement of the best schedule is looked at.
    threshold : float, optional
        The algorithm stops once the best schedule has improved over a window by less than this share. With
        None it makes all generations.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    population: int = 50
    generations: int = 100
    crossover: float = 0.8
    swap: float = 0.3
    move: float = 0.3
    window: int = 30
    threshold: float | None = 0.001

    def __post_init__(self) -> None:
        check_values(
            self,
            {
                "population": (self.population >= 2, "2 or more"),
                "generations": (self.generations >= 0, "0 or more"),
                "window": (self.window >= 1, "1 or more"),
                "crossover": (0 <= self.crossover <= 1, "a probability from 0 to 1"),
                "swap": (0 <= self.swap < 1, "a probability of less than 1"),
                "move": (0 <= self.move < 1, "a probability of less than 1"),
                "threshold": (
                    self.threshold is None or 0 <= self.threshold < 1,
                    "a share from 0 to less than 1",
                ),
            },
            "titan: ",
        )

    @property
    def options(self) -> genetic.GeneticOptions:
        """The parameters as the engine wants them."""
        return genetic.GeneticOptions(
            generations=int(self.generations),
            window=int(self.window),
            threshold=-1.0 if self.threshold is None else float(self.threshold),
            crossover=float(self.crossover),
            swap=float(self.swap),
            move=float(self.move),
        )


@dataclass(frozen=True)
class Coding:
    """A schedule of n jobs in two parts.

    Parameters
    ----------
    order : int32[n]
        Jobs in the order in which they are placed.
    masks : uint64[n, w]
        Resources of each job, as bits (`kernels.packing`).
    """

    order: NDArray[np.int32]
    masks: NDArray[np.uint64]

    @classmethod
    def in_turn(cls, masks: NDArray[np.uint64]) -> Coding:
        """The schedule that places jobs in the order in which they are numbered."""
        return cls(np.arange(len(masks), dtype=np.int32), masks)

    def resources(self, count: int) -> NDArray[np.bool_]:
        """Which of this number of resources each job has; shape (n, count)."""
        return resources_of(self.masks, count)


@dataclass(frozen=True)
class Optimised:
    """What the genetic algorithm found: the schedule, its CP in seconds, and how many generations it took."""

    coding: Coding
    performance: float
    generations: int


def packed(durations: Any, deadlines: Any, processors: Any) -> NDArray[Any]:
    """Jobs of a schedule: expected run time and deadline in seconds, resources."""
    jobs = np.empty(len(processors), packing.PACKED)
    jobs["duration"] = durations
    jobs["deadline"] = deadlines
    jobs["processors"] = processors
    return jobs


def stream(seed: int, *key: int) -> NDArray[np.uint64]:
    """Random numbers of one schedule: independent of those of every other key."""
    state = np.random.SeedSequence(seed, spawn_key=key).generate_state(2, np.uint64).astype(np.uint64)
    # A generator that only shifts would never leave 0
    return state if state.any() else np.ones(2, np.uint64)


def optimise(
    jobs: NDArray[Any],
    free: NDArray[np.int64],
    now: int,
    weights: Weights,
    titan: Titan,
    random: NDArray[np.uint64],
    seeds: Sequence[Coding] = (),
    unit: int = 1,
) -> Optimised:
    """Look for a schedule with a small CP.

    Parameters
    ----------
    jobs : PACKED[n]
        The jobs, see `packed`; at least one.
    free : int64[m]
        When each resource becomes available, seconds.
    now : int
        Present time: no job starts before, and from here the makespan counts.
    weights : Weights
        What to look for.
    titan : Titan
        Parameters.
    random : uint64[2]
        Random numbers, see `stream`; used up.
    seeds : sequence of Coding
        Schedules of the first population; the others are drawn.
    unit : int
        Processors of a resource.

    Returns
    -------
    Optimised
        Never worse than the best of the seeds.

    Raises
    ------
    ConfigurationError
        If there is no job, a job is larger than the cluster, or there are more seeds than individuals.
    """
    if not len(jobs):
        raise ConfigurationError("titan: there are no jobs to schedule; give at least one")
    if jobs["processors"].max() > len(free) or jobs["processors"].min() < 1:
        raise ConfigurationError(
            f"titan: jobs use {jobs['processors'].min()} to {jobs['processors'].max()} resources; "
            f"use 1 to {len(free)}, which the cluster has"
        )
    if len(seeds) > titan.population:
        raise ConfigurationError(f"titan: {len(seeds)} seeds; use at most {titan.population}, the population")
    given = genetic.population(len(seeds), len(jobs), len(free))
    for i, seed in enumerate(seeds):
        given.order[i], given.masks[i] = seed.order, seed.masks
    available = np.maximum(free, now)
    order, masks, performance, generations = genetic.evolve(
        given.order,
        given.masks,
        int(titan.population),
        jobs,
        available,
        np.sort(available),
        int(now),
        weights.goal._replace(unit=int(unit)),
        titan.options,
        random,
    )
    return Optimised(Coding(order, masks), float(performance), int(generations))


def in_order(
    order: NDArray[Any],
    durations: NDArray[np.int64],
    processors: NDArray[np.int64],
    free: NDArray[np.int64],
    now: int,
    kept: NDArray[np.uint64] | None = None,
) -> Coding:
    """Schedule in a given order: each job takes the resources that are free first, the lowest of equals.

    Parameters
    ----------
    order : int[n]
        Jobs in the order of placement.
    durations, processors : int64[n]
        Expected run time in seconds, and resources, of each job.
    free : int64[m]
        When each resource becomes available, seconds.
    now : int
        No job starts before.
    kept : uint64[k, w], optional
        Resources that the first k jobs of the order keep, in that order.
    """
    coding = Coding(
        np.ascontiguousarray(order, np.int32), np.zeros((len(order), packing.words(len(free))), np.uint64)
    )
    count = 0 if kept is None else len(kept)
    if kept is not None:
        coding.masks[coding.order[:count]] = kept
    available = np.maximum(free, now)
    packing.append_earliest(coding.order, coding.masks, count, durations, processors, available, int(now))
    return coding


def starts(
    coding: Coding, durations: NDArray[np.int64], free: NDArray[np.int64], now: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When each job starts, and when each resource is left by its last job, seconds."""
    begin, left = packing.place(coding.order, coding.masks, durations, free, int(now))
    return begin, left


def measured(
    begin: NDArray[np.int64],
    left: NDArray[np.int64],
    jobs: NDArray[Any],
    free: NDArray[np.int64],
    now: int,
    weights: Weights,
    unit: int,
) -> tuple[int, int, int]:
    """Metrics of a schedule.

    Parameters
    ----------
    begin, left : int64[n], int64[m]
        When each job starts, and when each resource is left by its last job, see `starts`.
    jobs : PACKED[n]
        The jobs.
    free : int64[m]
        When each resource becomes available, not before now.
    now : int
        From when on the makespan counts.
    weights : Weights
        Which say what idle time is.
    unit : int
        Processors of a resource.

    Returns
    -------
    tuple of int
        Makespan, idle time of processors and over-deadline, seconds.
    """
    makespan, idle, late = packing.measure(begin, left, jobs, free, int(now), weights.goal.to_makespan)
    return int(makespan), int(idle) * unit, int(late)


def resources_of(masks: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Which of this number of resources are in each set; shape (n, count)."""
    place = np.arange(count)
    shift = (place % packing.WORD).astype(np.uint64)
    return (masks[:, place // packing.WORD] >> shift & np.uint64(1)).astype(np.bool_)


def masks_of(resources: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Sets of resources as bits; the inverse of `resources_of`."""
    sets, count = resources.shape
    padded = np.zeros((sets, packing.words(count) * packing.WORD), np.bool_)
    padded[:, :count] = resources
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)

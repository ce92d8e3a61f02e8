"""The genetic algorithm: operators keep schedules valid, never worse than the seed, finds small optima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.systems.multicluster.kernels import genetic, packing
from gridsched.systems.multicluster.kernels.genetic import Population
from gridsched.systems.multicluster.titan import (
    Coding,
    Optimised,
    Titan,
    Weights,
    in_order,
    optimise,
    packed,
    stream,
)
from tests.oracles import packing as naive_packing
from tests.oracles.packing import PackedJob
from tests.support.errors import refused
from tests.systems.multicluster.test_packing import packing_performance

FREE = np.array([3, 0, 1, 0, 2], np.int64)


@st.composite
def queues(draw: st.DrawFn, max_jobs: int = 12) -> tuple[NDArray[Any], int]:
    """Jobs and the resources of their cluster."""
    width = draw(st.sampled_from([1, 2, 5, 16, 64, 70, 129]))
    count = draw(st.integers(1, max_jobs))
    sizes = draw(
        st.lists(st.sampled_from([1, width]) | st.integers(1, width), min_size=count, max_size=count)
    )
    durations = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    deadlines = draw(st.lists(st.integers(0, 200), min_size=count, max_size=count))
    return packed(durations, deadlines, sizes), width


def individuals(jobs: NDArray[Any], width: int, count: int, random: NDArray[np.uint64]) -> Population:
    population = genetic.population(count, len(jobs), width)
    for i in range(count):
        genetic.draw_individual(population, i, jobs, width, random)
    return population


def assert_valid(population: Population, jobs: NDArray[Any], width: int) -> None:
    """Every order is a permutation, and every job has as many resources as it needs, all existing."""
    for order, masks in zip(population.order, population.masks, strict=True):
        assert sorted(order.tolist()) == list(range(len(jobs)))
        assert [sum(int(w).bit_count() for w in row) for row in masks] == jobs["processors"].tolist()
        assert not (masks & ~full(width)).any()


def full(width: int) -> NDArray[np.uint64]:
    return np.array([packing.every(width, w) for w in range(packing.words(width))], np.uint64)


def crossed(one: list[int], other: list[int], processors: int, random: NDArray[np.uint64]) -> list[int]:
    """Each resource as one of the parents has it, at random; then as many as the job needs."""
    child = [
        a ^ ((a ^ b) & int(genetic.draw(random))) if a != b else a for a, b in zip(one, other, strict=True)
    ]
    while (surplus := sum(word.bit_count() for word in child) - processors) != 0:
        differing = [
            (w, 1 << k)
            for w, (a, b) in enumerate(zip(one, other, strict=True))
            for k in range(64)
            if (a ^ b) >> k & 1 and (child[w] >> k & 1) == (surplus > 0)
        ]
        w, resource = differing[int(genetic.below(random, len(differing)))]
        child[w] ^= resource
    return child


@given(queues(), st.integers(0, 10**6))
@settings(max_examples=60)
def test_operators_keep_schedules_valid(queue: tuple[NDArray[Any], int], seed: int) -> None:
    jobs, width = queue
    random = stream(seed)
    parents = individuals(jobs, width, 3, random)
    assert_valid(parents, jobs, width)
    children = genetic.population(4, len(jobs), width)
    taken = np.empty(len(jobs), np.bool_)
    before = random.copy()
    genetic.cross(children, 0, parents, 0, 1, jobs, taken, random)
    for _ in ("first", "last"):  # of the places in the order
        genetic.below(before, len(jobs))
    assert children.masks[0].tolist() == [
        crossed(one, other, processors, before)
        for one, other, processors in zip(
            parents.masks[0].tolist(), parents.masks[1].tolist(), jobs["processors"].tolist(), strict=True
        )
    ]
    genetic.cross(children, 1, parents, 2, 2, jobs, taken, random)
    for i in (2, 3):
        genetic.copy(children, i, parents, 2)
        genetic.swap(children, i, random)
        genetic.move(children, i, jobs, width, random)
    assert_valid(children, jobs, width)
    # A schedule crossed with itself stays as it is.
    assert (children.masks[1] == parents.masks[2]).all()
    assert (children.order[1] == parents.order[2]).all()
    # A mutation exchanges two places, and one resource of one job.
    assert (children.order[2] != parents.order[2]).sum() in (0, 2)
    changed = children.masks[2] ^ parents.masks[2]
    assert sum(int(word).bit_count() for word in changed.ravel()) in (0, 2)
    assert changed.any(axis=1).sum() <= 1


@given(st.integers(1, 12), st.data())
def test_order_crossover(count: int, data: st.DataObject) -> None:
    a, b = (np.array(data.draw(st.permutations(range(count))), np.int32) for _ in range(2))
    first = data.draw(st.integers(0, count - 1))
    last = data.draw(st.integers(first + 1, count))
    child = np.empty((1, count), np.int32)
    genetic.cross_orders(child, 0, np.stack([a, b]), 0, 1, first, last, np.empty(count, np.bool_))
    assert child[0, first:last].tolist() == a[first:last].tolist()
    others = [*child[0, :first].tolist(), *child[0, last:].tolist()]
    assert others == [job for job in b.tolist() if job not in a[first:last].tolist()]


def test_random_numbers_are_spread_evenly() -> None:
    random = stream(5, 1, 2)
    drawn = np.bincount([genetic.below(random, 10) for _ in range(20_000)], minlength=10)
    assert len(drawn) == 10
    # 99.9 % quantile of chi-square with 9 degrees of freedom
    assert ((drawn - 2000) ** 2 / 2000).sum() < 27.9
    shares = np.array([genetic.uniform(random) for _ in range(20_000)])
    assert shares.min() >= 0
    assert shares.max() < 1
    assert abs(shares.mean() - 0.5) < 0.01


def test_random_sets_are_spread_evenly() -> None:
    jobs, random = packed([1], [1], [2]), stream(3)
    population = individuals(jobs, 5, 5000, random)
    used = np.stack([Coding(population.order[i], population.masks[i]).resources(5)[0] for i in range(5000)])
    assert (used.sum(axis=1) == 2).all()
    assert np.allclose(used.mean(axis=0), 0.4, atol=0.03)


@given(queues(), st.integers(0, 99), st.sampled_from([None, 0.001, 0.5]))
@settings(max_examples=40)
def test_never_worse_than_its_seed(
    queue: tuple[NDArray[Any], int], seed: int, threshold: float | None
) -> None:
    jobs, width = queue
    free = np.zeros(width, np.int64)
    first = in_order(np.arange(len(jobs)), jobs["duration"].copy(), jobs["processors"].copy(), free, 0)
    titan = Titan(population=8, generations=12, window=3, threshold=threshold)
    done = optimise(jobs, free, 0, Weights(), titan, stream(seed), [first])
    before, after = packing_performance([first, done.coding], jobs, free, 0, Weights())
    assert done.performance == after <= before
    assert_valid(
        Population(done.coding.order[np.newaxis], done.coding.masks[np.newaxis], np.empty(1)), jobs, width
    )
    if threshold is None:
        assert done.generations == 12


SMALL = {
    "a hole cannot be avoided": [PackedJob(4, 9, 2), PackedJob(3, 3, 1), PackedJob(5, 20, 3)],
    "two late jobs": [PackedJob(6, 2, 1), PackedJob(2, 2, 1), PackedJob(4, 4, 2), PackedJob(1, 1, 1)],
    "wide jobs": [PackedJob(3, 9, 3), PackedJob(2, 2, 3), PackedJob(5, 6, 2), PackedJob(1, 50, 1)],
}


@pytest.mark.parametrize("idle_time", ["holes", "makespan"])
@pytest.mark.parametrize("name", SMALL)
def test_finds_the_optimum_of_small_instances(name: str, idle_time: Any) -> None:
    base = [0, 2, 0]
    weights = Weights(over_deadline=4, makespan=3, idle=1, idle_time=idle_time)
    best = naive_packing.optimum(SMALL[name], base, 0, (3, 1, 4), idle_time)
    jobs = packed(*np.array(SMALL[name]).T)
    titan = Titan(generations=2000, threshold=None)
    for seed in range(3):
        done = optimise(jobs, np.array(base), 0, weights, titan, stream(seed))
        assert done.performance == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("idle_time", ["holes", "makespan"])
@given(queue=queues(max_jobs=3), base=st.lists(st.integers(0, 30), min_size=5, max_size=5))
def test_no_schedule_is_better_than_the_bound(
    queue: tuple[NDArray[Any], int], base: list[int], idle_time: Any
) -> None:
    jobs = queue[0]
    jobs["processors"] = np.minimum(jobs["processors"], len(base))
    listed = [PackedJob(*map(int, job)) for job in jobs.tolist()]
    weights = Weights(over_deadline=4, makespan=3, idle=1, idle_time=idle_time)
    best = naive_packing.optimum(listed, base, 0, (3, 1, 4), idle_time)
    least = genetic.least_performance(jobs, np.sort(base), 0, weights.goal)
    assert least <= best
    if len(jobs) == 1 and idle_time == "holes":
        assert least == best


def test_generations_that_cannot_improve_count() -> None:
    done = optimise(packed([5], [9], [2]), FREE, 0, Weights(), Titan(window=4), stream(1))
    assert done.generations == 4
    assert done.coding.resources(5)[0].tolist() == [False, True, False, True, False]


def run(seed: int, **options: Any) -> Optimised:
    generator = np.random.default_rng(7)
    jobs = packed(
        generator.integers(5, 90, 25), generator.integers(10, 300, 25), generator.integers(1, 6, 25)
    )
    return optimise(jobs, FREE, 0, Weights(), Titan(**options), stream(seed))


def test_the_same_seed_gives_the_same_schedule() -> None:
    first, second = run(1), run(1)
    assert (first.coding.order == second.coding.order).all()
    assert (first.coding.masks == second.coding.masks).all()
    assert first.performance == second.performance
    assert (run(2).coding.order != first.coding.order).any()


def test_the_plateau_ends_it() -> None:
    longest = run(1, threshold=None)
    assert longest.generations == 100
    stopped = run(1, window=5, threshold=0.01)
    assert 5 <= stopped.generations < 100
    assert longest.performance < stopped.performance
    assert run(1, generations=0).generations == 0


ONE = packed([1], [1], [1])
SEED = Coding(np.zeros(1, np.int32), np.ones((1, 1), np.uint64))


def improved(jobs: NDArray[Any], seeds: list[Coding], **options: Any) -> object:
    return optimise(jobs, FREE, 0, Weights(), Titan(**options), stream(0), seeds)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Weights(over_deadline=0, makespan=0, idle=0), "weights: all are 0"),
        (lambda: Weights(idle=-1), "weights: idle is -1"),
        (lambda: Weights(makespan=float("nan")), "weights: makespan is nan"),
        (lambda: Weights(idle_time=cast(Any, "none")), "use one of holes, makespan"),
        (lambda: Titan(population=1), "titan: population is"),
        (lambda: Titan(generations=-1), "titan: generations is"),
        (lambda: Titan(crossover=1.5), "titan: crossover is"),
        (lambda: Titan(threshold=2), "titan: threshold is"),
        (lambda: Titan(window=0), "titan: window is"),
        (lambda: improved(packed([], [], []), []), "no jobs to schedule"),
        (
            lambda: improved(packed([1, 1], [1, 1], [1, 6]), []),
            "jobs use 1 to 6 resources; use 1 to 5",
        ),
        (lambda: improved(ONE, [SEED] * 3, population=2), "3 seeds; use at most 2"),
    ],
)
def test_mistakes_are_named(wrong: Callable[[], object], message: str) -> None:
    with refused(message):
        wrong()

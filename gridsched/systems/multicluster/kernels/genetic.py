"""A genetic algorithm over schedules of one cluster (TITAN's, section 3 of the paper that `packing` names).

An individual is a schedule. Each generation keeps the best individual as it is. The others are children: two
parents are drawn in proportion to their fitness, which is 1 for the best and 0 for the worst of the
generation. A child takes a section of the order from the first parent and the other jobs in the order of the
second (linear order crossover), and each resource of each job from either parent, corrected to as many
resources as the job needs. Then jobs may change places, and jobs may change resources; each change may be
followed by another, so that every schedule can come from every other one.

Random numbers come from a stream of the schedule's own, so that nothing depends on which thread works on
which schedule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.jit import inline, jit, noinline, unchecked
from gridsched.systems.multicluster.kernels import packing
from gridsched.systems.multicluster.kernels.packing import NOTHING, ONE, WORD, Goal


class GeneticOptions(NamedTuple):
    """Parameters of the algorithm."""

    generations: int
    window: int  # generations over which the improvement is looked at
    threshold: float  # relative improvement over a window below which it stops; negative: never
    crossover: float  # probability that a child has two parents
    swap: float  # probability that two jobs of a child change places, and of each further such change
    move: float  # probability that a job of a child changes a resource, likewise


class Population(NamedTuple):
    """Individuals of one generation; the best one is the first, except while they are made."""

    order: Any  # int32[p, n], jobs in the order of placement
    masks: Any  # uint64[p, n, w], resources of each job
    performance: Any  # float64[p], CP of each individual


def allocate(individuals: int, jobs: int, resources: int) -> Population:
    """Room for so many individuals."""
    return Population(
        order=np.empty((individuals, jobs), np.int32),
        masks=np.empty((individuals, jobs, packing.words(resources)), np.uint64),
        performance=np.empty(individuals, np.float64),
    )


# --- random numbers -------------------------------------------------------------------------------


@inline
def draw(random: Any) -> Any:
    """Next 64 random bits of a stream, uint64[2] and not all 0.

    Marsaglia's xorshift generator of 128 bits (J. Statistical Software 8(14), 2003) with the shifts 23, 18,
    5.
    """
    word = random[0]
    random[0] = random[1]
    word ^= word << np.uint64(23)
    random[1] = word ^ random[1] ^ (word >> np.uint64(18)) ^ (random[1] >> np.uint64(5))
    return random[1]


@inline
def below(random: Any, limit: int) -> int:
    """Random whole number from 0 to `limit` - 1, for limits up to 2**31."""
    return int(np.int64(((draw(random) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)))


@inline
def uniform(random: Any) -> float:
    """Random number from 0 to less than 1."""
    return float(np.int64(draw(random) >> np.uint64(11))) * 2.0**-53


# --- sets of resources ----------------------------------------------------------------------------


@inline
def _nth(word: Any, n: int) -> Any:
    """The bit that has n lower ones in a word, as a word."""
    for _ in range(n):
        word &= word - ONE
    return word & (~word + ONE)


@inline
def _find(pool: Any, n: int) -> tuple[int, Any]:
    """The n-th resource of a set, as the place of a word and a bit in it."""
    w = 0
    ones = packing.count(pool[w])
    while n >= ones:
        n -= ones
        w += 1
        ones = packing.count(pool[w])
    return w, _nth(pool[w], n)


@inline
def _mix(child: Any, i: int, parents: Any, a: int, b: int, job: int, random: Any) -> int:
    """Take each resource of a job from either parent; return how many the job has, -1 if all are the same."""
    differ = False
    size = 0
    for w in range(child.shape[2]):
        left, right = parents[a, job, w], parents[b, job, w]
        word = left
        if left != right:
            differ = True
            word ^= (left ^ right) & draw(random)
        child[i, job, w] = word
        size += packing.count(word)
    return size if differ else -1


@inline
def _cross_job(
    child: Any, i: int, parents: Any, a: int, b: int, job: int, processors: int, pool: Any, random: Any
) -> None:
    """Take each resource of a job from either parent, and correct their number with those of one only."""
    size = _mix(child, i, parents, a, b, job, random)
    if size < 0 or size == processors:
        return
    possible = 0
    for w in range(child.shape[2]):
        left, right, own = parents[a, job, w], parents[b, job, w], child[i, job, w]
        pool[w] = (left ^ right) & (own if size > processors else ~own)
        possible += packing.count(pool[w])
    for _ in range(abs(size - processors)):
        w, resource = _find(pool, below(random, possible))
        pool[w] ^= resource
        child[i, job, w] ^= resource
        possible -= 1


@inline
def _draw_resources(masks: Any, i: int, job: int, processors: int, resources: int, random: Any) -> None:
    """A random set of so many resources: the smaller of it and its complement is drawn one by one."""
    few = 2 * processors <= resources
    for w in range(masks.shape[2]):
        masks[i, job, w] = NOTHING if few else packing.every(resources, w)
    size = 0 if few else resources
    while size != processors:
        resource = below(random, resources)
        word = resource // WORD
        if (masks[i, job, word] & packing.bit(resource) == NOTHING) == few:
            masks[i, job, word] ^= packing.bit(resource)
            size += 1 if few else -1


# --- operators ------------------------------------------------------------------------------------


@noinline
def draw_individual(population: Population, i: int, jobs: Any, resources: int, random: Any) -> None:
    """A random order and random resources."""
    for k in range(len(jobs)):
        other = below(random, k + 1)
        population.order[i, k] = population.order[i, other]
        population.order[i, other] = k
        _draw_resources(population.masks, i, k, jobs[k]["processors"], resources, random)


@inline
def cross_orders(child: Any, i: int, parents: Any, a: int, b: int, first: int, last: int, taken: Any) -> None:
    """Places `first` to `last` - 1 from one parent, the other jobs in the order of the other one."""
    jobs = child.shape[1]
    for k in range(jobs):
        taken[k] = False
    for k in range(first, last):
        job = parents[a, k]
        child[i, k] = job
        taken[unchecked(job)] = True
    place = 0 if first > 0 else last
    for k in range(jobs):
        job = parents[b, k]
        if not taken[unchecked(job)]:
            child[i, place] = job
            place += 1
            if place == first:
                place = last


@noinline
def cross(
    child: Population,
    i: int,
    parents: Population,
    a: int,
    b: int,
    jobs: Any,
    taken: Any,
    pool: Any,
    random: Any,
) -> None:
    """Make a child of two parents."""
    n = len(jobs)
    first, last = below(random, n), below(random, n)
    cross_orders(child.order, i, parents.order, a, b, min(first, last), max(first, last) + 1, taken)
    for job in range(n):
        _cross_job(child.masks, i, parents.masks, a, b, job, jobs[job]["processors"], pool, random)


@inline
def copy(child: Population, i: int, parents: Population, a: int) -> None:
    """Make a child that is as its parent."""
    for job in range(child.order.shape[1]):
        child.order[i, job] = parents.order[a, job]
        for w in range(child.masks.shape[2]):
            child.masks[i, job, w] = parents.masks[a, job, w]


@inline
def swap(population: Population, i: int, random: Any) -> None:
    """Let two jobs change places."""
    n = population.order.shape[1]
    first, second = below(random, n), below(random, n)
    job = population.order[i, first]
    population.order[i, first] = population.order[i, second]
    population.order[i, second] = job


@noinline
def move(population: Population, i: int, jobs: Any, resources: int, pool: Any, random: Any) -> None:
    """Let a job leave one of its resources for another, if there is another."""
    job = below(random, len(jobs))
    processors = jobs[job]["processors"]
    if processors == resources:
        return
    for w in range(len(pool)):
        pool[w] = packing.every(resources, w) & ~population.masks[i, job, w]
    new, added = _find(pool, below(random, resources - processors))
    for w in range(len(pool)):
        pool[w] = population.masks[i, job, w]
    old, dropped = _find(pool, below(random, processors))
    population.masks[i, job, new] ^= added
    population.masks[i, job, old] ^= dropped


# --- the algorithm --------------------------------------------------------------------------------


@inline
def _share(performance: Any, sums: Any) -> float:
    """Fill in the running sums of the fitness, equation (2) times a constant; return the last."""
    worst = performance[0]
    for i in range(len(performance)):
        worst = max(worst, performance[i])
    total = 0.0
    for i in range(len(performance)):
        total += worst - performance[i]
        sums[i] = total
    return total


@inline
def _select(sums: Any, random: Any) -> int:
    """An individual, with a probability in proportion to its fitness; any one if all are equal."""
    last = len(sums) - 1
    if not sums[last] > 0:
        return below(random, len(sums))
    wanted = uniform(random) * sums[last]
    low, high = 0, last
    while low < high:
        middle = (low + high) >> 1
        if sums[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@inline
def _best_first(population: Population) -> None:
    """Exchange the first individual and the best, the first of equals."""
    best = 0
    for i in range(len(population.performance)):
        if population.performance[i] < population.performance[best]:
            best = i
    if best == 0:
        return
    for job in range(population.order.shape[1]):
        kept = population.order[0, job]
        population.order[0, job] = population.order[best, job]
        population.order[best, job] = kept
        for w in range(population.masks.shape[2]):
            word = population.masks[0, job, w]
            population.masks[0, job, w] = population.masks[best, job, w]
            population.masks[best, job, w] = word
    performance = population.performance[0]
    population.performance[0] = population.performance[best]
    population.performance[best] = performance


@jit
def evolve(
    now_living: Population,
    next_living: Population,
    seeds: int,
    jobs: Any,
    base: Any,
    now: int,
    goal: Goal,
    options: GeneticOptions,
    random: Any,
) -> int:
    """Improve schedules until they improve no more.

    Parameters
    ----------
    now_living, next_living : Population
        Room for two generations. The first `seeds` individuals of `now_living` are given, the others are
        drawn. In the end the best is the first of both.
    seeds : int
        How many individuals are given.
    jobs : PACKED[n]
        The jobs, at least one, none larger than the cluster.
    base : int64[m]
        When each resource becomes available, not before now.
    now : int
        Present time, seconds.
    goal : Goal
        What to minimise.
    options : GeneticOptions
        Parameters of the algorithm.
    random : uint64[2]
        Stream of random numbers.

    Returns
    -------
    int
        Generations that were made after the first.
    """
    individuals, resources = len(now_living.performance), len(base)
    free = np.empty_like(base)
    taken = np.empty(len(jobs), np.bool_)
    pool = np.empty(now_living.masks.shape[2], np.uint64)
    sums = np.empty(individuals, np.float64)
    bests = np.empty(options.generations + 1, np.float64)
    one, two = now_living, next_living
    for i in range(individuals):
        if i >= seeds:
            draw_individual(one, i, jobs, resources, random)
        one.performance[i] = packing.performance(one.order, one.masks, i, jobs, base, now, goal, free)
    _best_first(one)
    bests[0] = one.performance[0]
    done = 0
    while done < options.generations:
        if done >= options.window:
            before = bests[done - options.window]
            if before - bests[done] < options.threshold * abs(before):
                break
        _share(one.performance, sums)
        copy(two, 0, one, 0)
        two.performance[0] = one.performance[0]
        for i in range(1, individuals):
            a = _select(sums, random)
            if uniform(random) < options.crossover:
                cross(two, i, one, a, _select(sums, random), jobs, taken, pool, random)
            else:
                copy(two, i, one, a)
            while uniform(random) < options.swap:
                swap(two, i, random)
            while uniform(random) < options.move:
                move(two, i, jobs, resources, pool, random)
            two.performance[i] = packing.performance(two.order, two.masks, i, jobs, base, now, goal, free)
        _best_first(two)
        one, two = two, one
        done += 1
        bests[done] = one.performance[0]
    copy(two, 0, one, 0)
    two.performance[0] = one.performance[0]
    return done

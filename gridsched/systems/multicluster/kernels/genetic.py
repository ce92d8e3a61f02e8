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

from gridsched.engine.jit import inline, jit, unchecked
from gridsched.systems.multicluster.kernels import packing
from gridsched.systems.multicluster.kernels.packing import NOTHING, WORD, Goal


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


@jit
def population(individuals: int, jobs: int, resources: int) -> Population:
    """Room for so many individuals."""
    return Population(
        np.zeros((individuals, jobs), np.int32),
        np.zeros((individuals, jobs, packing.words(resources)), np.uint64),
        np.full(individuals, np.inf),
    )


# --- random numbers -------------------------------------------------------------------------------


@inline
def _following(earlier: Any, latest: Any) -> Any:
    """The 64 random bits after two others, not all 0.

    Marsaglia's xorshift generator of 128 bits (J. Statistical Software 8(14), 2003) with the shifts 23, 18,
    5.
    """
    word = earlier ^ (earlier << np.uint64(23))
    return word ^ latest ^ (word >> np.uint64(18)) ^ (latest >> np.uint64(5))


@inline
def draw(random: Any) -> Any:
    """Next 64 random bits of a stream, uint64[2], which keeps the last two."""
    random[0], random[1] = random[1], _following(random[0], random[1])
    return random[1]


@inline
def _scaled(word: Any, limit: int) -> int:
    """Whole number from 0 to `limit` - 1 that random bits stand for, for limits up to 2**31."""
    return int(np.int64(((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)))


@inline
def below(random: Any, limit: int) -> int:
    """Random whole number from 0 to `limit` - 1."""
    return _scaled(draw(random), limit)


@inline
def uniform(random: Any) -> float:
    """Random number from 0 to less than 1."""
    return float(np.int64(draw(random) >> np.uint64(11))) * 2.0**-53


# --- sets of resources ----------------------------------------------------------------------------


@inline
def _cross_narrow(child: Any, i: int, parents: Any, a: int, b: int, jobs: Any, random: Any) -> None:
    """`_cross_wide` where a set is one word: it does all in registers, and so in two thirds of the time.

    Whether parents differ is as good as random, so that a branch would cost more than to draw in vain.
    """
    earlier, latest = random[0], random[1]
    for job in range(len(jobs)):
        word = parents[a, unchecked(job), 0]
        apart = word ^ parents[b, unchecked(job), 0]
        following = _following(earlier, latest)
        earlier = latest if apart != NOTHING else earlier
        latest = following if apart != NOTHING else latest
        word ^= apart & latest
        surplus = packing.count(word) - jobs[unchecked(job)]["processors"]
        if surplus != 0:
            pool = apart & (word if surplus > 0 else ~word)
            possible = packing.count(pool)
            for k in range(abs(surplus)):
                earlier, latest = latest, _following(earlier, latest)
                resource = packing.nth(pool, _scaled(latest, possible - k))
                pool ^= resource
                word ^= resource
        child[i, unchecked(job), 0] = word
    random[0], random[1] = earlier, latest


@inline
def _change_one(child: Any, i: int, parents: Any, a: int, b: int, job: int, n: int, missing: Any) -> None:
    """Let a job lose or, if it is `missing` some, get the n-th resource that only one of its parents has."""
    for w in range(child.shape[2]):
        pool = (parents[a, job, w] ^ parents[b, job, w]) & (child[i, job, w] ^ missing)
        if n < packing.count(pool):
            child[i, job, w] ^= packing.nth(pool, n)
            return
        n -= packing.count(pool)


@inline
def _cross_wide(child: Any, i: int, parents: Any, a: int, b: int, jobs: Any, random: Any) -> None:
    """Take each resource of a job from either parent, and correct their number with those of one only."""
    for job in range(len(jobs)):
        surplus, gained, lost = -jobs[job]["processors"], 0, 0
        for w in range(child.shape[2]):
            word = parents[a, job, w]
            apart = word ^ parents[b, job, w]
            if apart != NOTHING:
                word ^= apart & draw(random)
            child[i, job, w] = word
            surplus += packing.count(word)
            gained += packing.count(apart & word)
            lost += packing.count(apart & ~word)
        possible = gained if surplus > 0 else lost
        missing = NOTHING if surplus > 0 else ~NOTHING
        for k in range(abs(surplus)):
            _change_one(child, i, parents, a, b, job, below(random, possible - k), missing)


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


@inline
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
    taken[:] = False
    for k in range(first, last):
        job = parents[a, unchecked(k)]
        child[i, unchecked(k)] = job
        taken[unchecked(job)] = True
    place = 0 if first > 0 else last
    k = 0
    # without branches, which nobody could predict: a job that is taken is overwritten by the next one
    while place < jobs:
        job = parents[b, unchecked(k)]
        child[i, unchecked(place)] = job
        place += 1 - taken[unchecked(job)]
        place = last if place == first else place
        k += 1


@inline
def cross(
    child: Population, i: int, parents: Population, a: int, b: int, jobs: Any, taken: Any, random: Any
) -> None:
    """Make a child of two parents."""
    n = len(jobs)
    first, last = below(random, n), below(random, n)
    cross_orders(child.order, i, parents.order, a, b, min(first, last), max(first, last) + 1, taken)
    if child.masks.shape[2] == 1:
        _cross_narrow(child.masks, i, parents.masks, a, b, jobs, random)
    else:
        _cross_wide(child.masks, i, parents.masks, a, b, jobs, random)


@inline
def copy(child: Population, i: int, parents: Population, a: int) -> None:
    """Make a child that is as its parent."""
    for job in range(child.order.shape[1]):
        child.order[i, job] = parents.order[a, job]
        for w in range(child.masks.shape[2]):
            child.masks[i, job, w] = parents.masks[a, job, w]
    child.performance[i] = parents.performance[a]


@inline
def swap(population: Population, i: int, random: Any) -> None:
    """Let two jobs change places."""
    n = population.order.shape[1]
    first, second = below(random, n), below(random, n)
    order = population.order
    order[i, first], order[i, second] = order[i, second], order[i, first]


@inline
def _find(masks: Any, i: int, job: int, n: int, other: Any, resources: int) -> tuple[int, Any]:
    """The n-th resource that a job has, or lacks, as the place of a word and a bit in it."""
    w = 0
    pool = (masks[i, job, w] ^ other) & packing.every(resources, w)
    while n >= packing.count(pool):
        n -= packing.count(pool)
        w += 1
        pool = (masks[i, job, w] ^ other) & packing.every(resources, w)
    return w, packing.nth(pool, n)


@inline
def move(population: Population, i: int, jobs: Any, resources: int, random: Any) -> None:
    """Let a job leave one of its resources for another, if there is another."""
    job = below(random, len(jobs))
    processors = jobs[job]["processors"]
    if processors == resources:
        return
    masks = population.masks
    new, added = _find(masks, i, job, below(random, resources - processors), ~NOTHING, resources)
    old, dropped = _find(masks, i, job, below(random, processors), NOTHING, resources)
    masks[i, job, new] ^= added
    masks[i, job, old] ^= dropped


# --- the algorithm --------------------------------------------------------------------------------


@inline
def _share(performance: Any, sums: Any) -> None:
    """Fill in the running sums of the fitness, equation (2) times a constant."""
    worst, total = performance.max(), 0.0
    for i in range(len(performance)):
        total += worst - performance[i]
        sums[i] = total


@inline
def _select(sums: Any, random: Any) -> int:
    """An individual, with a probability in proportion to its fitness; any one if all are equal."""
    last = len(sums) - 1
    if not sums[last] > 0:
        return below(random, len(sums))
    wanted = uniform(random) * sums[last]
    place = 0
    for i in range(last):  # all of them, without branches: quicker than a search
        place += sums[unchecked(i)] <= wanted
    return place


@inline
def _best_first(population: Population) -> None:
    """Exchange the first individual and the best."""
    order, masks, performance = population.order, population.masks, population.performance
    best = np.argmin(performance)
    for job in range(order.shape[1]):
        order[0, job], order[best, job] = order[best, job], order[0, job]
        for w in range(masks.shape[2]):
            masks[0, job, w], masks[best, job, w] = masks[best, job, w], masks[0, job, w]
    performance[0], performance[best] = performance[best], performance[0]


@inline
def least_performance(jobs: Any, base: Any, now: int, goal: Goal) -> float:
    """A comprehensive performance that no schedule can be better than, and the best of a single job.

    `base` is in order. Each job has as many resources as it needs at once, and none is idle; a single
    job on the resource that is free last of those that it has must let the others be idle until then.
    """
    if len(jobs) > 1:
        last, late = now, 0
        for job in range(len(jobs)):
            end = base[jobs[job]["processors"] - 1] + jobs[job]["duration"]
            last = max(last, end)
            late += max(end - jobs[job]["deadline"], 0)
        return packing.combine(goal, last - now, 0, late)
    least = np.inf
    size = jobs[0]["processors"]
    for r in range(size - 1, len(base)):
        idle = base[r] * (size - 1) - base[r - size + 1 : r].sum()
        end = base[r] + jobs[0]["duration"]
        over = max(end - jobs[0]["deadline"], 0)
        least = min(least, packing.combine(goal, end - now, 0 if goal.to_makespan else idle, over))
    return least


@inline
def _make_children(
    two: Population,
    one: Population,
    jobs: Any,
    resources: int,
    options: GeneticOptions,
    sums: Any,
    taken: Any,
    random: Any,
) -> None:
    """Make the next generation of one, whose best individual stays as it is."""
    _share(one.performance, sums)
    copy(two, 0, one, 0)
    for i in range(1, len(sums)):
        a = _select(sums, random)
        if uniform(random) < options.crossover:
            cross(two, i, one, a, _select(sums, random), jobs, taken, random)
        else:
            copy(two, i, one, a)
        while uniform(random) < options.swap:
            swap(two, i, random)
        while uniform(random) < options.move:
            move(two, i, jobs, resources, random)


@inline
def _is_stable(bests: Any, done: int, options: GeneticOptions) -> bool:
    """Whether the best individual has hardly improved over the last generations."""
    if done < options.window:
        return False
    before = bests[done - options.window]
    return before - bests[done] < options.threshold * abs(before)


@jit
def evolve(
    seed_orders: Any,
    seed_masks: Any,
    individuals: int,
    jobs: Any,
    base: Any,
    ordered: Any,
    now: int,
    goal: Goal,
    options: GeneticOptions,
    random: Any,
) -> tuple[Any, Any, float, int]:
    """Improve schedules until they improve no more.

    Parameters
    ----------
    seed_orders, seed_masks : int32[s, n], uint64[s, n, w]
        Individuals of the first generation that are given; the others are drawn.
    individuals : int
        Individuals of a generation.
    jobs : PACKED[n]
        The jobs, at least one, none larger than the cluster.
    base : int64[m]
        When each resource becomes available, not before now.
    ordered : int64[m]
        The same, the first first.
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
    order, masks, performance : int32[n], uint64[n, w], float
        The best schedule.
    generations : int
        How many were made after the first. Those that could not improve the best individual any more count,
        but are not worked out.
    """
    least = least_performance(jobs, ordered, now, goal)
    taken = np.empty(len(jobs), np.bool_)
    sums = np.empty(individuals, np.float64)
    bests = np.empty(options.generations + 1, np.float64)
    one = population(individuals, len(jobs), len(base))
    two = population(individuals, len(jobs), len(base))
    room, seeds = packing.lanes_for(len(jobs), len(base)), len(seed_orders)
    one.order[:seeds], one.masks[:seeds] = seed_orders, seed_masks
    packing.evaluate(one.order, one.masks, 0, jobs, base, now, goal, one.performance[:seeds], room)
    if one.performance.min() > least:
        for i in range(seeds, len(sums)):
            draw_individual(one, i, jobs, len(base), random)
        packing.evaluate(one.order, one.masks, seeds, jobs, base, now, goal, one.performance, room)
    _best_first(one)
    bests[0] = one.performance[0]
    done = 0
    while done < options.generations and not _is_stable(bests, done, options):
        if bests[done] > least:
            _make_children(two, one, jobs, len(base), options, sums, taken, random)
            packing.evaluate(two.order, two.masks, 1, jobs, base, now, goal, two.performance, room)
            _best_first(two)
            one, two = two, one
        done += 1
        bests[done] = one.performance[0]
    return one.order[0].copy(), one.masks[0].copy(), one.performance[0], done

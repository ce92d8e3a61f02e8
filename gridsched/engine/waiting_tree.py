"""Waiting jobs by size and by position in an order, for the search of the first one that fits.

A tree is a segment tree of minima over positions. Leaf `p` is the job at position `p`; a node holds the
smallest processors and the smallest estimate below it, so that a search can skip subtrees in which
no job fits. `tree[1]` is the root, leaves begin at half the length.

The two minima of a node may come from different jobs, a wide short one and a narrow long one, so that a
node can pass and disappoint. In one tree over all jobs of a saturated system that is the rule, and made
its simulation 20 times slower. `Waiting` therefore has a tree for each size class, the jobs of 2**k to
2**(k + 1) - 1 processors. Classes half as wide halve the time where sizes are spread evenly and the system
is saturated, but cost 2 to 14 % on archive logs and at ordinary load.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.jit import inline, jit, unchecked
from gridsched.engine.records import LARGEST

NODE = np.dtype([("processors", np.int32), ("estimate", np.int32)])
"""Smallest processors and smallest estimate below a node."""

CLASS = np.dtype(
    [
        ("smallest", np.int64),  # processors that a job of this class has at least
        ("base", np.int64),  # where its tree begins in `Waiting.nodes`
        ("length", np.int64),  # of its tree
        ("first", np.int64),  # where its part of `Waiting.ranks` begins
        ("found", np.int64),  # rank of its first job that fits, see `search_classes`
    ]
)
"""A size class that has jobs."""

PLACE = np.dtype([("size_class", np.int32), ("position", np.int32)])
"""Class of a job and its position in the tree of this class."""

NOWHERE = 2**62
"""Rank of no job."""


class Waiting(NamedTuple):
    """Waiting jobs in size classes; a rank is a position in the order of all jobs."""

    classes: Any  # CLASS[...], from small jobs to large ones
    nodes: Any  # NODE[...], the trees one after the other
    places: Any  # PLACE[n], by job
    ranks: Any  # int32[n], class by class the rank of the job at each position


def allocate(positions: int) -> Any:
    """Tree without jobs for positions 0 .. positions - 1."""
    return _no_jobs(2 * _leaves(np.array(positions)))


def _leaves(positions: Any) -> Any:
    """Smallest power of two that is no smaller."""
    return 2 ** np.ceil(np.log2(np.maximum(positions, 1))).astype(np.int64)


def _no_jobs(nodes: int) -> Any:
    """Nodes without jobs below them; both fields are filled at once because NumPy fills records slowly."""
    return np.full(2 * nodes, LARGEST, np.int32).view(NODE)


def allocate_classes(processors: Any, jobs_in_order: Any) -> Waiting:
    """Size classes without waiting jobs, for jobs of these processors in an order of all of them."""
    # processors < 2**class, and at least half of it: `np.frexp` with less to do
    class_of_job = (processors.astype(np.float64).view(np.int64) >> 52) - 1022
    numbers = np.bincount(class_of_job)
    used = np.flatnonzero(numbers)
    classes = np.zeros(len(used), CLASS)
    classes["smallest"] = 2 ** (used - 1)
    classes["length"] = 2 * _leaves(numbers[used])
    classes["base"] = np.cumsum(classes["length"]) - classes["length"]
    classes["first"] = np.cumsum(numbers[used]) - numbers[used]
    waiting = Waiting(
        classes=classes,
        nodes=_no_jobs(classes["length"].sum()),
        places=np.empty(len(processors), PLACE),
        ranks=np.empty(len(processors), np.int32),
    )
    _assign_places(waiting, class_of_job, np.cumsum(numbers > 0) - 1, jobs_in_order)
    return waiting


def allocate_nothing() -> Waiting:
    """Size classes for no jobs at all, where a policy never searches them."""
    return Waiting(np.empty(0, CLASS), np.empty(0, NODE), np.empty(0, PLACE), np.empty(0, np.int32))


@jit
def _assign_places(w: Waiting, class_of_job: Any, index_of_class: Any, jobs_in_order: Any) -> None:
    """Give each job, in order, the next position of its class."""
    taken = np.zeros(len(w.classes), np.int64)
    first = w.classes["first"].copy()
    for rank in range(len(jobs_in_order)):
        j = jobs_in_order[unchecked(rank)]
        k = index_of_class[unchecked(class_of_job[unchecked(j)])]
        position = taken[unchecked(k)]
        w.places[unchecked(j)]["size_class"] = k
        w.places[unchecked(j)]["position"] = position
        w.ranks[unchecked(first[unchecked(k)] + position)] = rank
        taken[unchecked(k)] = position + 1


@inline
def insert(tree: Any, position: int, processors: int, estimate: int) -> None:
    """Put a waiting job at its position."""
    node = (len(tree) >> 1) + position
    while node > 0:
        smaller = False
        if processors < tree[unchecked(node)]["processors"]:
            tree[unchecked(node)]["processors"] = processors
            smaller = True
        if estimate < tree[unchecked(node)]["estimate"]:
            tree[unchecked(node)]["estimate"] = estimate
            smaller = True
        if not smaller:
            return
        node >>= 1


@inline
def remove(tree: Any, position: int) -> None:
    """Take the job at a position out."""
    node = (len(tree) >> 1) + position
    tree[unchecked(node)]["processors"] = LARGEST
    tree[unchecked(node)]["estimate"] = LARGEST
    node >>= 1
    while node > 0:
        processors = min(tree[unchecked(2 * node)]["processors"], tree[unchecked(2 * node + 1)]["processors"])
        estimate = min(tree[unchecked(2 * node)]["estimate"], tree[unchecked(2 * node + 1)]["estimate"])
        if (
            tree[unchecked(node)]["processors"] == processors
            and tree[unchecked(node)]["estimate"] == estimate
        ):
            return
        tree[unchecked(node)]["processors"] = processors
        tree[unchecked(node)]["estimate"] = estimate
        node >>= 1


@inline
def next_fit(tree: Any, position: int, narrow: int, wide: int, window: int) -> int:
    """First position at or after `position` whose job fits; -1 if there is none.

    A job fits if it needs at most `narrow` processors, or at most `wide` and its estimate is at most
    `window`. The walk goes down where a node passes, and on to its right where it does not.
    """
    leaves = len(tree) >> 1
    if position >= leaves:
        return -1
    node = leaves + position if position > 0 else 1
    while True:
        processors = tree[unchecked(node)]["processors"]
        if processors <= narrow or (processors <= wide and tree[unchecked(node)]["estimate"] <= window):
            if node >= leaves:
                return node - leaves
            node = 2 * node
        else:
            while node & 1:
                node >>= 1
            if node == 0:
                return -1
            node += 1


@inline
def enter(w: Waiting, j: int, processors: int, estimate: int) -> None:
    """Let a job wait."""
    place = w.places[unchecked(j)]
    own = w.classes[unchecked(place["size_class"])]
    insert(w.nodes[own["base"] : own["base"] + own["length"]], place["position"], processors, estimate)


@inline
def leave(w: Waiting, j: int) -> None:
    """Let a job wait no longer."""
    place = w.places[unchecked(j)]
    own = w.classes[unchecked(place["size_class"])]
    remove(w.nodes[own["base"] : own["base"] + own["length"]], place["position"])


@inline
def _search_class(w: Waiting, size_class: int, narrow: int, wide: int, window: int) -> None:
    """Find the first job of a class that fits, as in `next_fit`."""
    own = w.classes[unchecked(size_class)]
    own["found"] = NOWHERE
    root = w.nodes[unchecked(own["base"] + 1)]
    if root["processors"] > narrow and (root["processors"] > wide or root["estimate"] > window):
        return  # as in most searches: before the tree is set up for a walk
    position = next_fit(w.nodes[own["base"] : own["base"] + own["length"]], 0, narrow, wide, window)
    if position >= 0:
        own["found"] = int(w.ranks[unchecked(own["first"] + position)])


@inline
def search_classes(w: Waiting, narrow: int, wide: int, window: int) -> int:
    """Find the first job that fits in each class of small enough jobs; return the number of these classes."""
    count = 0
    while count < len(w.classes) and w.classes[unchecked(count)]["smallest"] <= wide:
        _search_class(w, count, narrow, wide, window)
        count += 1
    return count


@inline
def search_on(w: Waiting, j: int, count: int, narrow: int, wide: int, window: int) -> int:
    """Find the next job that fits in the class of `j`, as `search_classes` did in the first `count` classes.

    Return how many of these are of jobs that are still small enough.
    """
    while count > 0 and w.classes[unchecked(count - 1)]["smallest"] > wide:
        count -= 1
    size_class = int(w.places[unchecked(j)]["size_class"])
    if size_class < count:
        _search_class(w, size_class, narrow, wide, window)
    return count


@inline
def first_found(w: Waiting, count: int) -> int:
    """Smallest rank found in the first `count` classes; NOWHERE if there is none."""
    first = NOWHERE
    for size_class in range(count):
        first = min(first, w.classes[unchecked(size_class)]["found"])
    return first

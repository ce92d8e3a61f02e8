"""Waiting jobs by position in an order, as a segment tree of minima.

Leaf `p` is the job at position `p`; a node holds the smallest processors, the smallest estimate and the
smallest work (processors times estimate) below it, so that a search can skip subtrees in which no job
fits. The work tells a short narrow job from a narrow long one beside a wide short one, which
saves half of the steps in a saturated system. `tree[1]` is the root, leaves begin at half the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine.jit import leaf
from gridsched.engine.records import LARGEST, NODE


def allocate(positions: int) -> Any:
    """Tree without jobs for positions 0 .. positions - 1."""
    leaves = 1
    while leaves < positions:
        leaves *= 2
    return np.full(2 * leaves, np.array((LARGEST, LARGEST, np.inf), NODE), NODE)


@leaf
def insert(tree: Any, position: int, processors: int, estimate: int) -> None:
    """Put a waiting job at its position."""
    node = (len(tree) >> 1) + position
    work = np.float32(processors) * np.float32(estimate)
    while node > 0:
        smaller = False
        if work < tree[node]["work"]:
            tree[node]["work"] = work
            smaller = True
        if processors < tree[node]["processors"]:
            tree[node]["processors"] = processors
            smaller = True
        if estimate < tree[node]["estimate"]:
            tree[node]["estimate"] = estimate
            smaller = True
        if not smaller:
            return
        node >>= 1


@leaf
def remove(tree: Any, position: int) -> None:
    """Take the job at a position out."""
    node = (len(tree) >> 1) + position
    tree[node]["processors"] = LARGEST
    tree[node]["estimate"] = LARGEST
    tree[node]["work"] = np.inf
    node >>= 1
    while node > 0:
        processors = min(tree[2 * node]["processors"], tree[2 * node + 1]["processors"])
        estimate = min(tree[2 * node]["estimate"], tree[2 * node + 1]["estimate"])
        work = min(tree[2 * node]["work"], tree[2 * node + 1]["work"])
        if (
            tree[node]["processors"] == processors
            and tree[node]["estimate"] == estimate
            and tree[node]["work"] == work
        ):
            return
        tree[node]["work"] = work
        tree[node]["processors"] = processors
        tree[node]["estimate"] = estimate
        node >>= 1


@leaf
def next_fit(tree: Any, position: int, narrow: int, wide: int, window: int) -> int:
    """First position at or after `position` whose job fits; -1 if there is none.

    A job fits if it needs at most `narrow` processors, or at most `wide` and its estimate is at most
    `window`. The minima of a node may come from different jobs, so a node that passes can
    disappoint; the walk then goes on to its right. Work is kept rounded, hence the slack.
    """
    leaves = len(tree) >> 1
    if position >= leaves:
        return -1
    node = leaves + position
    most = np.float32(wide) * np.float32(window) * np.float32(1.00001)
    while True:
        processors = tree[node]["processors"]
        if processors <= narrow or (
            processors <= wide and tree[node]["estimate"] <= window and tree[node]["work"] <= most
        ):
            if node >= leaves:
                return node - leaves
            node = 2 * node
        else:
            while node & 1:
                node >>= 1
            if node == 0:
                return -1
            node += 1


@leaf
def first_waiting(tree: Any, position: int) -> int:
    """First position at or after `position` with a waiting job; -1 if there is none."""
    return next_fit(tree, position, LARGEST - 1, 0, 0)

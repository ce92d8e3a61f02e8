"""When something is due on each of many clusters: a tree of minima, whose root is the first of these times.

Node i has the earlier of the times of nodes 2 i and 2 i + 1; the leaves are the clusters in order. To look
through all clusters at every instant would take longer than what happens on the few that are due.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine.jit import inline, unchecked
from gridsched.engine.records import FOREVER


def allocate(times: Any) -> Any:
    """Tree of the times of some clusters, with a leaf behind the last one."""
    width = 1 << len(times).bit_length()
    due = np.full(2 * width, FOREVER, np.int64)
    due[width : width + len(times)] = times
    for i in range(width - 1, 0, -1):
        due[i] = due[2 * i : 2 * i + 2].min()
    return due


@inline
def first(due: Any) -> int:
    """The first of all times."""
    return due[1]


@inline
def of(due: Any, m: int) -> int:
    """Time of a cluster."""
    return due[(len(due) >> 1) + m]


@inline
def put(due: Any, m: int, time: int) -> None:
    """Let something be due on a cluster at a time, and not before."""
    i = (len(due) >> 1) + m
    due[unchecked(i)] = time
    while i > 1:
        time = min(due[unchecked(i)], due[unchecked(i ^ 1)])
        i >>= 1
        due[unchecked(i)] = time


@inline
def next_at(due: Any, m: int, now: int) -> int:
    """First cluster from m on whose time is now; beyond the last one if there is none. No time is earlier."""
    width = len(due) >> 1
    i = width + m
    while due[unchecked(i)] != now:
        while i & 1:
            i >>= 1
        if i == 0:
            return width
        i += 1
    while i < width:
        i *= 2
        i += int(due[unchecked(i)] != now)
    return i - width

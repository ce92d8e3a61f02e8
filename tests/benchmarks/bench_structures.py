"""The data structures on their own: nanoseconds an operation beside the C++ yardstick, with equal results.

Each loop below has a twin in yardstick.cpp with the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.engine import heap, profile, running, waiting_tree
from gridsched.engine.jit import jit
from gridsched.engine.records import ENTRY, FOREVER, LARGEST, RUN, STEP
from tests.benchmarks import workload
from tests.benchmarks.measure import best_times
from tests.benchmarks.table import Table
from tests.benchmarks.yardstick import Yardstick

LIVE = 1000
NUMBER = 200_000
PROFILE_QUERIES = 20_000


@jit
def heap_changes(entries: Any, runs: Any, live: int, number: int) -> int:
    size = 0
    for j in range(live):
        size = heap.push(entries, size, runs[j]["end"], j)
    now = 0
    for j in range(live, number):
        now = entries[0]["key"]
        size = heap.pop(entries, size)
        size = heap.push(entries, size, now + runs[j]["end"], j)
    return now


@jit
def running_changes(blocks: Any, storage: Any, runs: Any, live: int, number: int) -> int:
    count = 0
    total = 0
    for j in range(number):
        count = running.insert(blocks, storage, count, runs[j]["end"], j, runs[j]["processors"])
        if j >= live:
            old = j - live
            count = running.remove(blocks, storage, count, runs[old]["end"], old, runs[old]["processors"])
        total += storage[blocks[0]["slot"] * running.SIZE]["end"]
    return total


@jit
def running_shadow(blocks: Any, storage: Any, runs: Any, live: int, number: int) -> int:
    count = 0
    for j in range(live):
        count = running.insert(blocks, storage, count, runs[j]["end"], j, runs[j]["processors"])
    total = 0
    for j in range(live, number):
        time, available = running.shadow(blocks, storage, count, 0, 8 * runs[j]["processors"])
        total += time + available
    return total


@jit
def waiting_changes(waiting: Any, jobs: Any, live: int, number: int) -> int:
    for j in range(number):
        waiting_tree.enter(waiting, j, jobs[j]["processors"], jobs[j]["estimate"])
        if j >= live:
            waiting_tree.leave(waiting, j - live)
    count = waiting_tree.search_classes(waiting, LARGEST - 1, LARGEST - 1, 0)
    return waiting_tree.first_found(waiting, count)


@jit
def waiting_searches(waiting: Any, jobs: Any, live: int, number: int) -> int:
    for j in range(live):
        waiting_tree.enter(waiting, j, jobs[j]["processors"], jobs[j]["estimate"])
    total = 0
    for j in range(live, number):
        window = jobs[j]["estimate"] // 64
        count = waiting_tree.search_classes(waiting, 0, jobs[j]["processors"], window)
        total += min(waiting_tree.first_found(waiting, count), LARGEST)
    return total


@jit
def profile_fits(steps: Any, high: int, jobs: Any, number: int) -> int:
    total = 0
    for j in range(number):
        processors = jobs[j]["processors"]
        total += profile.earliest_fit(
            steps, 0, high, steps[0]["time"], processors, jobs[j]["estimate"], FOREVER
        )
    return total


@jit
def profile_changes(steps: Any, high: int, jobs: Any, number: int) -> int:
    for j in range(number):
        start = jobs[j]["submit"]
        end = start + jobs[j]["estimate"]
        high = profile.change(steps, 0, high, start, end, -jobs[j]["processors"])
        high = profile.change(steps, 0, high, start, end, jobs[j]["processors"])
    return high


@jit
def pack(steps: Any, jobs: Any, most: int) -> int:
    """Reserve the earliest place for one job after the other until the profile has so many steps."""
    high = 1
    for j in range(len(jobs)):
        processors = jobs[j]["processors"]
        run = jobs[j]["run"]
        start = profile.earliest_fit(steps, 0, high, 0, processors, run, FOREVER)
        high = profile.change(steps, 0, high, start, start + run, -processors)
        if high >= most:
            break
    return high


@cache
def jobs() -> NDArray[Any]:
    return workload.synthetic(1.0, NUMBER).jobs


@cache
def runs() -> NDArray[Any]:
    """Jobs as running ones; their run times serve as ends."""
    records = np.empty(NUMBER, RUN)
    records["end"] = jobs()["run"]
    records["job"] = np.arange(NUMBER)
    records["processors"] = jobs()["processors"]
    return records


@cache
def packed() -> tuple[NDArray[Any], int]:
    """A profile of a thousand steps with room for more, and its length."""
    steps = np.empty(4 * LIVE, STEP)
    steps[0] = (0, workload.PROCESSORS)
    high = int(pack(steps, jobs(), LIVE))
    assert high >= LIVE
    return steps, high


def compare(
    what: str,
    operations: int,
    ours: Callable[[], int],
    theirs: Callable[[], int],
    table: Table,
    at_most: float | None = None,
) -> None:
    """Time both, which must give the same."""
    assert ours() == theirs()
    our_time, their_time = best_times([ours, theirs], seconds=1.0)
    ratio = our_time / their_time
    nanoseconds = [f"{1e9 * seconds / operations:,.1f} ns" for seconds in (our_time, their_time)]
    if at_most is None:
        table.add(what, nanoseconds[0], yardstick=nanoseconds[1], ratio=f"{ratio:.2f}")
    else:
        table.add_target(
            what,
            nanoseconds[0],
            yardstick=nanoseconds[1],
            ratio=f"{ratio:.2f}",
            value=ratio,
            at_most=at_most,
        )


@pytest.mark.parametrize("live", [64, LIVE])
def test_heap(live: int, yardstick: Yardstick, table: Table) -> None:
    entries = np.empty(live + 1, ENTRY)
    compare(
        f"heap of {live:,} ends: pop and push",
        NUMBER,
        lambda: heap_changes(entries, runs(), live, NUMBER),
        lambda: yardstick.loop("heap_changes", runs(), live, NUMBER),
        table,
    )


@pytest.mark.parametrize("live", [64, LIVE])
def test_running_changes(live: int, yardstick: Yardstick, table: Table) -> None:
    compare(
        f"{live:,} running jobs: insert and remove",
        NUMBER,
        lambda: running_changes(*running.allocate(live + 1), runs(), live, NUMBER),
        lambda: yardstick.loop("running_changes", runs(), live, NUMBER),
        table,
    )


def test_running_shadow(yardstick: Yardstick, table: Table) -> None:
    sizes = runs()
    needed = sizes.copy()
    needed["processors"][LIVE:] %= sizes["processors"][:LIVE].sum() // 8
    compare(
        f"{LIVE:,} running jobs: shadow time",
        NUMBER,
        lambda: running_shadow(*running.allocate(LIVE), needed, LIVE, NUMBER),
        lambda: yardstick.loop("running_shadow", needed, LIVE, NUMBER),
        table,
    )


def test_waiting_changes(yardstick: Yardstick, table: Table) -> None:
    order = np.arange(NUMBER, dtype=np.int32)
    sizes = jobs()["processors"]
    compare(
        f"{LIVE:,} waiting jobs: insert and remove",
        NUMBER,
        lambda: waiting_changes(waiting_tree.allocate_classes(sizes, order), jobs(), LIVE, NUMBER),
        lambda: yardstick.loop("waiting_changes", jobs(), LIVE, NUMBER),
        table,
    )


def test_waiting_searches(yardstick: Yardstick, table: Table) -> None:
    order = np.arange(NUMBER, dtype=np.int32)
    sizes = jobs()["processors"]
    compare(
        f"{LIVE:,} waiting jobs: search",
        NUMBER,
        lambda: waiting_searches(waiting_tree.allocate_classes(sizes, order), jobs(), LIVE, NUMBER),
        lambda: yardstick.loop("waiting_searches", jobs(), LIVE, NUMBER),
        table,
    )


def test_profile_fits(yardstick: Yardstick, table: Table) -> None:
    steps, high = packed()
    wanted = jobs()[-PROFILE_QUERIES:].copy()
    compare(
        f"profile of {LIVE:,} steps: earliest fit",
        PROFILE_QUERIES,
        lambda: profile_fits(steps, high, wanted, PROFILE_QUERIES),
        lambda: yardstick.loop("profile_fits", steps, high, wanted, PROFILE_QUERIES),
        table,
        at_most=1.7,
    )


def test_profile_changes(yardstick: Yardstick, table: Table) -> None:
    steps, high = packed()
    reserved = jobs()[-PROFILE_QUERIES:].copy()
    reserved["submit"] = reserved["submit"] % steps[high // 2]["time"]
    compare(
        f"profile of {LIVE:,} steps: reserve and give back",
        PROFILE_QUERIES,
        lambda: profile_changes(steps.copy(), high, reserved, PROFILE_QUERIES),
        lambda: yardstick.loop("profile_changes", steps, high, reserved, PROFILE_QUERIES),
        table,
        at_most=1.2,
    )

"""Availability profile: how many processors are expected to be free from which time on.

`steps[low:high]` are the steps in order of time; the last one lasts forever. Linear sorted arrays beat
trees here, because a search in a packed profile alternates between enough and too few at almost every
step.
Functions that change the number of steps return the new `high`.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import running
from gridsched.engine.jit import inline, shift, unchecked


def steps_for(jobs: int) -> int:
    """Steps for so many jobs: two each, twice so that the profile can wander through the array."""
    return 4 * jobs + 16


@inline
def find(steps: Any, low: int, high: int, time: int) -> int:
    """Index of the last step at or before `time`; there must be one."""
    while high - low > 1:
        middle = (low + high) >> 1
        if steps[middle]["time"] <= time:
            low = middle
        else:
            high = middle
    return low


@inline
def earliest_fit(
    steps: Any, low: int, high: int, now: int, processors: int, duration: int, limit: int
) -> int:
    """Earliest time at or after `now` from which `processors` are free for `duration` seconds.

    What comes at or after `limit` is not looked at, and `limit` is returned if there is no such time before
    it. With FOREVER as limit the profile must end with a step of enough processors; with the
    start of a job's own reservation this is the earliest place to which the job can move, because its
    own processors serve it from there on.
    """
    step = low
    start = now
    while start < limit:
        while steps[unchecked(step)]["free"] < processors:
            step += 1
            if step == high:
                return limit
            start = steps[unchecked(step)]["time"]
        end = min(start + duration, limit)
        step += 1
        while (
            step < high
            and steps[unchecked(step)]["time"] < end
            and steps[unchecked(step)]["free"] >= processors
        ):
            step += 1
        if step >= high or steps[unchecked(step)]["time"] >= end:
            return min(start, limit)
    return limit


@inline
def _cut(steps: Any, low: int, high: int, time: int) -> tuple[int, int]:
    """Make sure that a step begins at `time`; return its index and the new `high`."""
    step = find(steps, low, high, time)
    if steps[step]["time"] == time:
        return step, high
    step += 1
    shift(steps, step + 1, step, high - step)
    steps[step]["time"] = time
    steps[step]["free"] = steps[step - 1]["free"]
    return step, high + 1


@inline
def _join(steps: Any, low: int, high: int, step: int) -> int:
    """Drop a step that is no different from the one before it."""
    if step <= low or step >= high or steps[step]["free"] != steps[step - 1]["free"]:
        return high
    shift(steps, step, step + 1, high - step - 1)
    return high - 1


@inline
def change(steps: Any, low: int, high: int, start: int, end: int, processors: int) -> int:
    """Add `processors` (negative to reserve) to what is free in [start, end)."""
    first, high = _cut(steps, low, high, start)
    last, high = _cut(steps, low, high, end)
    for step in range(first, last):
        steps[step]["free"] += processors
    high = _join(steps, low, high, last)
    return _join(steps, low, high, first)


@inline
def forget_past(steps: Any, bounds: Any, now: int) -> None:
    """Let the first step be the one that holds now, and begin now; `bounds` are a record of `low` and `high`.

    The profile is moved to the front of its array before it runs over the end.
    """
    low, high = bounds["low"], bounds["high"]
    while low + 1 < high and steps[low + 1]["time"] <= now:
        low += 1
    steps[low]["time"] = now
    bounds["low"] = low
    if low > len(steps) // 2:
        shift(steps, 0, low, high - low)
        bounds["low"], bounds["high"] = 0, high - low


@inline
def from_running(steps: Any, blocks: Any, runs: Any, count: int, free: int, now: int) -> int:
    """Write the profile of the running jobs alone from step 0 on; return its `high`."""
    steps[0]["time"] = now
    steps[0]["free"] = free
    high = 1
    for block in range(count):
        base = blocks[block]["slot"] * running.SIZE
        for k in range(base, base + blocks[block]["count"]):
            end = runs[k]["end"]
            free += runs[k]["processors"]
            if steps[high - 1]["time"] == end:
                steps[high - 1]["free"] = free
            else:
                steps[high]["time"] = end
                steps[high]["free"] = free
                high += 1
    return high

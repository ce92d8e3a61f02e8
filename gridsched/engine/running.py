"""Running jobs in order of (expected end, job), kept in blocks so that each change costs O(sqrt n).

`runs` stores the blocks, `SIZE` entries each; `blocks[:count]` is their directory in order of time,
and `blocks[k]["slot"]` beyond `count` are the free slots. Functions that change the
number of blocks return the new one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine.jit import inline, shift, unchecked
from gridsched.engine.records import BLOCK, RUN

SIZE = 128
"""Entries of a block; 64 to 256 measure alike."""


def allocate(most: int) -> tuple[Any, Any]:
    """Directory and storage for up to `most` running jobs.

    Neighbouring blocks hold more than SIZE / 2 entries together (see `remove`), which bounds their number.
    """
    number = 4 * most // SIZE + 4
    blocks = np.zeros(number, BLOCK)
    blocks["slot"] = np.arange(number)
    return blocks, np.empty(number * SIZE, RUN)


@inline
def _last_job(blocks: Any, runs: Any, block: int) -> int:
    """Job of the last entry of a block."""
    job: int = runs[blocks[unchecked(block)]["slot"] * SIZE + blocks[unchecked(block)]["count"] - 1]["job"]
    return job


@inline
def _find_block(blocks: Any, runs: Any, count: int, end: int, job: int) -> int:
    """Index of the first block whose last entry is at or after (end, job); the last block if none is."""
    low = 0
    high = count - 1
    while low < high:
        middle = (low + high) >> 1
        last = blocks[unchecked(middle)]["last"]
        if last < end or (last == end and _last_job(blocks, runs, middle) < job):
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _find_entry(runs: Any, base: int, length: int, end: int, job: int) -> int:
    """Index of the first entry of a block at or after (end, job); the block's end if there is none."""
    low = base
    high = base + length
    while low < high:
        middle = (low + high) >> 1
        middle_end = runs[unchecked(middle)]["end"]
        if middle_end < end or (middle_end == end and runs[unchecked(middle)]["job"] < job):
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _split(blocks: Any, runs: Any, count: int, block: int) -> int:
    """Move the upper half of a full block into a new block behind it."""
    half = SIZE // 2
    slot = blocks[count]["slot"]
    shift(blocks, block + 2, block + 1, count - block - 1)
    old = blocks[unchecked(block)]["slot"] * SIZE
    new = slot * SIZE
    moved = 0
    for k in range(half):
        runs[new + k]["end"] = runs[old + half + k]["end"]
        runs[new + k]["job"] = runs[old + half + k]["job"]
        runs[new + k]["processors"] = runs[old + half + k]["processors"]
        moved += runs[new + k]["processors"]
    blocks[block + 1]["slot"] = slot
    blocks[block + 1]["count"] = SIZE - half
    blocks[block + 1]["last"] = blocks[unchecked(block)]["last"]
    blocks[block + 1]["processors"] = moved
    blocks[unchecked(block)]["count"] = half
    blocks[unchecked(block)]["last"] = runs[old + half - 1]["end"]
    blocks[unchecked(block)]["processors"] -= moved
    return count + 1


@inline
def _drop_block(blocks: Any, count: int, block: int) -> int:
    """Take a block out of the directory and put its slot among the free ones."""
    slot = blocks[unchecked(block)]["slot"]
    shift(blocks, block, block + 1, count - block - 1)
    blocks[count - 1]["slot"] = slot
    return count - 1


@inline
def insert(blocks: Any, runs: Any, count: int, end: int, job: int, processors: int) -> int:
    """Add a running job that is expected to end at `end`."""
    if count == 0:
        blocks[0]["count"] = 0
        blocks[0]["processors"] = 0
        count = 1
    block = _find_block(blocks, runs, count, end, job)
    if blocks[unchecked(block)]["count"] == SIZE:
        count = _split(blocks, runs, count, block)
        block = _find_block(blocks, runs, count, end, job)
    base = blocks[unchecked(block)]["slot"] * SIZE
    length = blocks[unchecked(block)]["count"]
    place = _find_entry(runs, base, length, end, job)
    shift(runs, place + 1, place, base + length - place)
    runs[unchecked(place)]["end"] = end
    runs[unchecked(place)]["job"] = job
    runs[unchecked(place)]["processors"] = processors
    blocks[unchecked(block)]["count"] = length + 1
    blocks[unchecked(block)]["processors"] += processors
    blocks[unchecked(block)]["last"] = runs[unchecked(base + length)]["end"]
    return count


@inline
def remove(blocks: Any, runs: Any, count: int, end: int, job: int, processors: int) -> int:
    """Take out the running job that was expected to end at `end`."""
    block = _find_block(blocks, runs, count, end, job)
    base = blocks[unchecked(block)]["slot"] * SIZE
    length = blocks[unchecked(block)]["count"]
    place = _find_entry(runs, base, length, end, job)
    shift(runs, place, place + 1, base + length - place - 1)
    length -= 1
    blocks[unchecked(block)]["count"] = length
    blocks[unchecked(block)]["processors"] -= processors
    if length == 0:
        return _drop_block(blocks, count, block)
    blocks[unchecked(block)]["last"] = runs[unchecked(base + length - 1)]["end"]
    if block + 1 < count and length + blocks[block + 1]["count"] <= SIZE // 2:
        return _merge(blocks, runs, count, block)
    if block > 0 and length + blocks[block - 1]["count"] <= SIZE // 2:
        return _merge(blocks, runs, count, block - 1)
    return count


@inline
def _merge(blocks: Any, runs: Any, count: int, block: int) -> int:
    """Append the next block to this one, so that sparse blocks cannot pile up."""
    base = blocks[unchecked(block)]["slot"] * SIZE + blocks[unchecked(block)]["count"]
    other = blocks[block + 1]["slot"] * SIZE
    length = blocks[block + 1]["count"]
    for k in range(length):
        runs[base + k]["end"] = runs[other + k]["end"]
        runs[base + k]["job"] = runs[other + k]["job"]
        runs[base + k]["processors"] = runs[other + k]["processors"]
    blocks[unchecked(block)]["count"] += length
    blocks[unchecked(block)]["processors"] += blocks[block + 1]["processors"]
    blocks[unchecked(block)]["last"] = blocks[block + 1]["last"]
    return _drop_block(blocks, count, block + 1)


@inline
def shadow(blocks: Any, runs: Any, count: int, free: int, needed: int) -> tuple[int, int]:
    """Time at which `needed` processors are expected to be free, and how many are free then.

    Every job that is expected to end at or before that time counts as ended.
    """
    available = free
    block = 0
    while available + blocks[unchecked(block)]["processors"] < needed:
        available += blocks[unchecked(block)]["processors"]
        block += 1
    entry = blocks[unchecked(block)]["slot"] * SIZE
    time = runs[unchecked(entry)]["end"]
    while available < needed:
        time = runs[unchecked(entry)]["end"]
        available += runs[unchecked(entry)]["processors"]
        entry += 1
    behind = entry - blocks[unchecked(block)]["slot"] * SIZE
    while block < count:
        base = blocks[unchecked(block)]["slot"] * SIZE
        for k in range(base + behind, base + blocks[unchecked(block)]["count"]):
            if runs[unchecked(k)]["end"] > time:
                return time, available
            available += runs[unchecked(k)]["processors"]
        behind = 0
        block += 1
    return time, available

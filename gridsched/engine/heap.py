"""Binary min-heap of records with a `key` (time or score); equal keys come out in job order."""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import inline, unchecked
from gridsched.engine.records import FOREVER


@inline
def first_time(heap: Any, size: int) -> int:
    """Key of the first of so many entries that are ordered by time; FOREVER if there are none."""
    return heap[0]["key"] if size > 0 else FOREVER


@inline
def push(heap: Any, size: int, key: float, job: int) -> int:
    """Add an entry to the first `size` entries; return the new size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        parent_key = heap[unchecked(parent)]["key"]
        parent_job = heap[unchecked(parent)]["job"]
        if parent_key < key or (parent_key == key and parent_job < job):
            break
        heap[unchecked(hole)]["key"] = parent_key
        heap[unchecked(hole)]["job"] = parent_job
        hole = parent
    heap[unchecked(hole)]["key"] = key
    heap[unchecked(hole)]["job"] = job
    return size + 1


@inline
def pop(heap: Any, size: int) -> int:
    """Remove the first entry, which the caller has read; return the new size."""
    size -= 1
    key = heap[unchecked(size)]["key"]
    job = heap[unchecked(size)]["job"]
    hole = 0
    child = 1
    while child < size:
        # The entry to be placed still stands behind the last child, which thus always has a neighbour; and
        # without short circuits the smaller of two children is found without a branch to mispredict.
        key_left = heap[unchecked(child)]["key"]
        key_right = heap[unchecked(child + 1)]["key"]
        job_left = heap[unchecked(child)]["job"]
        job_right = heap[unchecked(child + 1)]["job"]
        child += int((key_right < key_left) | ((key_right == key_left) & (job_right < job_left)))
        child_key = heap[unchecked(child)]["key"]
        child_job = heap[unchecked(child)]["job"]
        if (key < child_key) | ((key == child_key) & (job <= child_job)):
            break
        heap[unchecked(hole)]["key"] = child_key
        heap[unchecked(hole)]["job"] = child_job
        hole = child
        child = 2 * hole + 1
    heap[unchecked(hole)]["key"] = key
    heap[unchecked(hole)]["job"] = job
    return size


@inline
def is_sorted(heap: Any, size: int) -> bool:
    """Whether the entries stand in the order in which they would come out."""
    for k in range(1, size):
        before, after = heap[k - 1]["key"], heap[k]["key"]
        if after < before or (after == before and heap[k]["job"] < heap[k - 1]["job"]):
            return False
    return True


@inline
def without(heap: Any, size: int, job: int) -> int:
    """Take the entry of a job out, wherever it is; return the new size."""
    kept = 0
    for k in range(size):
        # what is read is never in front of what is written
        key, other = heap[k]["key"], heap[k]["job"]
        if other != job:
            kept = push(heap, kept, key, other)
    return kept

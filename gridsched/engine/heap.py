"""Binary min-heap of records with a `key` (time or score); equal keys come out in job order."""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import leaf


@leaf
def push(heap: Any, size: int, key: float, job: int) -> int:
    """Add an entry to the first `size` entries; return the new size."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        parent_key = heap[parent]["key"]
        parent_job = heap[parent]["job"]
        if parent_key < key or (parent_key == key and parent_job < job):
            break
        heap[hole]["key"] = parent_key
        heap[hole]["job"] = parent_job
        hole = parent
    heap[hole]["key"] = key
    heap[hole]["job"] = job
    return size + 1


@leaf
def pop(heap: Any, size: int) -> int:
    """Remove the first entry, which the caller has read; return the new size."""
    size -= 1
    key = heap[size]["key"]
    job = heap[size]["job"]
    hole = 0
    child = 1
    while child < size:
        child_key = heap[child]["key"]
        child_job = heap[child]["job"]
        if child + 1 < size:
            other_key = heap[child + 1]["key"]
            other_job = heap[child + 1]["job"]
            if other_key < child_key or (other_key == child_key and other_job < child_job):
                child += 1
                child_key = other_key
                child_job = other_job
        if key < child_key or (key == child_key and job < child_job):
            break
        heap[hole]["key"] = child_key
        heap[hole]["job"] = child_job
        hole = child
        child = 2 * hole + 1
    heap[hole]["key"] = key
    heap[hole]["job"] = job
    return size

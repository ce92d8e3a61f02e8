"""Bundles of arrays are allocated and grown as their fields are declared."""

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine.bundles import allocate, column, grow
from gridsched.engine.jit import jit
from gridsched.engine.records import ENTRY, FOREVER


class _Queue(NamedTuple):
    jobs: Any
    waiting: Any = column(np.int64, "rows", "room", fill=-1)
    heap: Any = column(ENTRY, "room")
    planned: Any = column(np.int64, "rows", fill=FOREVER)


def _new() -> _Queue:
    return allocate(_Queue, {"rows": 2, "room": 3}, jobs=np.arange(4))


def test_allocates_what_is_declared_and_not_given() -> None:
    queue = _new()
    assert queue.jobs.tolist() == [0, 1, 2, 3]
    assert queue.waiting.tolist() == [[-1, -1, -1]] * 2
    assert queue.heap.dtype == ENTRY
    assert queue.heap.tolist() == [(0, 0)] * 3
    assert queue.planned.tolist() == [FOREVER, FOREVER]


def test_a_given_field_is_taken_as_it_is() -> None:
    waiting = np.zeros((2, 9), np.int64)
    assert allocate(_Queue, {"rows": 2, "room": 3}, jobs=None, waiting=waiting).waiting is waiting


def test_growing_keeps_what_was_there() -> None:
    queue = _new()
    queue.waiting[:] = [[1, 2, 3], [4, 5, 6]]
    longer = grow(queue, {"room": 5})
    assert longer.waiting.tolist() == [[1, 2, 3, -1, -1], [4, 5, 6, -1, -1]]
    assert len(longer.heap) == 5
    assert longer.jobs is queue.jobs
    assert longer.planned is queue.planned


def test_growing_never_shortens() -> None:
    queue = _new()
    assert grow(queue, {"room": 1}).waiting is queue.waiting


@jit
def _sum(queue: _Queue) -> int:
    return int(queue.waiting[0, 0] + len(queue.heap))


def test_kernels_take_bundles() -> None:
    assert _sum(_new()) == 2

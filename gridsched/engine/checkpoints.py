"""Checkpoints of jobs: after each `interval` seconds of work one is written, which takes `cost` seconds.

An interval of 0 means that there are none. None is written at the end of a job.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsched.engine.jit import inline


@inline
def with_checkpoints(work: int, interval: int, cost: int) -> int:
    """Seconds that so much work takes, checkpoints included."""
    if interval <= 0 or work <= 0:
        return work
    return work + cost * ((work - 1) // interval)


@inline
def saved_work(elapsed: int, interval: int, cost: int) -> int:
    """Seconds of work that the last checkpoint of an execution has, so many seconds after its start."""
    return interval * (elapsed // (interval + cost)) if interval > 0 else 0


@inline
def work_done(elapsed: int, interval: int, cost: int) -> int:
    """Seconds of work that an execution has done so many seconds after its start."""
    if interval <= 0:
        return elapsed
    return saved_work(elapsed, interval, cost) + min(elapsed % (interval + cost), interval)


# a few calls are not worth a compilation
saved_work_of: Any = getattr(saved_work, "py_func", saved_work)
"""`saved_work` for callers that are not compiled."""


def lengths_with_checkpoints(work: Any, interval: int, cost: int) -> Any:
    """`with_checkpoints` of many jobs, for callers that are not compiled."""
    return work if interval <= 0 else work + cost * np.maximum((work - 1) // interval, 0)

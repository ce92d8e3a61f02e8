"""Record types of the engine. Few arrays of records, not many plain arrays: see `jit` for why.

Fields are read as `array[i]["field"]`, which works compiled and with the JIT off alike.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

RecordArray: TypeAlias = Any
"""An array of records. NumPy's types do not know what fields hold: to check arithmetic of columns without
types takes mypy a minute, and finds nothing."""

JOB = np.dtype([("submit", np.int64), ("run", np.int64), ("estimate", np.int32), ("processors", np.int32)])
"""What the engine needs of a job: seconds, and the processors that the cluster loses while it runs."""

LABELS = np.dtype(
    [
        ("user", np.int64),
        ("group", np.int64),
        ("queue", np.int64),
        ("processors", np.int64),  # that the job asks for; on whole nodes it may have more
        ("number", np.int64),  # of the job, for messages
    ]
)
"""What else a score may look at, and what a job is called."""


def unlabelled(jobs: RecordArray) -> RecordArray:
    """LABELS of jobs of nobody, which ask for what they take and are numbered from 1."""
    labels = np.full(len(jobs), -1, LABELS)
    labels["processors"], labels["number"] = jobs["processors"], np.arange(1, len(jobs) + 1)
    return labels


ENTRY = np.dtype([("key", np.int64), ("job", np.int64)])
"""Heap entry ordered by whole seconds, then job."""

SCORED = np.dtype([("key", np.float64), ("job", np.int64)])
"""Heap entry ordered by a score, then job."""

RUN = np.dtype([("end", np.int64), ("job", np.int32), ("processors", np.int32)])
"""A running job with its expected end."""

BLOCK = np.dtype([("last", np.int64), ("processors", np.int64), ("slot", np.int32), ("count", np.int32)])
"""A block of running jobs: largest expected end, sum of processors, where it is stored, how many."""

STEP = np.dtype([("time", np.int64), ("free", np.int64)])
"""From `time` on, `free` processors are available."""

FOREVER = 2**62
"""A time after every event. Twice this still fits into int64."""

LARGEST = 2**31 - 1
"""Largest estimate and number of processors that the engine holds."""


class Backfilling(IntEnum):
    """What a pass does once the first waiting job does not fit."""

    NONE = 0
    FIRST_FIT = 1
    EASY = 2
    CONSERVATIVE = 3


NO_BACKFILLING, FIRST_FIT_BACKFILLING, EASY, CONSERVATIVE = map(int, Backfilling)


class Overrun(IntEnum):
    """How the expected end of a job that outruns its estimate is corrected."""

    DOUBLING = 0
    INCREMENTS = 1


OVERRUN_DOUBLES, OVERRUN_INCREMENTS = map(int, Overrun)


class Prediction(IntEnum):
    """What a local scheduler takes for the run time of a job."""

    ESTIMATE = 0
    DOUBLE = 1
    ACTUAL = 2
    RECENT = 3


BY_ESTIMATE, BY_DOUBLE, BY_ACTUAL, BY_RECENT = map(int, Prediction)


class Correction(IntEnum):
    """How a prediction is corrected that a job outruns."""

    DOUBLING = 0
    REQUESTED = 1
    INCREMENTS = 2


CORRECTION_DOUBLES, CORRECTION_REQUESTS, CORRECTION_INCREMENTS = map(int, Correction)

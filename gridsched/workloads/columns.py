"""Columns of a workload from what is given as one: whole numbers, fractions, or lengths of time."""

from __future__ import annotations

from datetime import date, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError

LONGEST_TIME = 2**40
"""Seconds that a time may have (35,000 years); sums of more could overflow in a simulation."""

TIMES: tuple[str, ...] = (
    "submit_time",
    "wait_time",
    "run_time",
    "average_cpu_time",
    "requested_time",
    "think_time",
    "deadline",
    "reserved_start",
    "gives_up_time",
    "returns_at",
    "recorded_submit",
)
"""Columns in seconds."""

LABELS: tuple[str, ...] = ("user", "group", "executable", "queue", "partition")
"""Columns whose numbers stand for names."""

_LARGEST = np.iinfo(np.int64).max
_NANOSECONDS = 10**9


def numbers(name: str, given: ArrayLike) -> NDArray[Any]:
    """Column as int64, or as float64 if it was given in floating point.

    Lengths of time (timedelta64, `datetime.timedelta`) become seconds: whole ones if all are whole. Points in
    time and texts are refused: as numbers they would be those of another unit.

    Parameters
    ----------
    name : str
        Name of the column.
    given : array_like
        Its values.

    Raises
    ------
    WorkloadError
        If the values are no numbers that the column can hold.
    """
    values = np.asarray(given)
    if values.dtype.kind == "O":
        values = _of_objects(name, values)
    kind = values.dtype.kind
    if kind == "M":
        raise WorkloadError(
            f"column {name} has points in time (dtype {values.dtype}), not seconds; "
            "Workload.from_dataframe reads them"
        )
    if kind == "m":
        if name not in TIMES:
            raise WorkloadError(f"column {name} has lengths of time (dtype {values.dtype}); give numbers")
        values = seconds(name, values)
    elif kind not in "biuf":
        raise WorkloadError(f"column {name} has dtype {values.dtype}; give numbers")
    if kind == "u" and values.size and values.max() > _LARGEST:
        raise WorkloadError(f"column {name} has {values.max()}; give numbers below 2**63")
    column = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
    if name in LABELS and column.dtype == np.float64 and not np.isfinite(column).all():
        where = int(np.argmin(np.isfinite(column)))
        raise WorkloadError(
            f"column {name} has {column[where]} at index {where}; give whole numbers, -1 for unknown"
        )
    return column


def seconds(name: str, lengths: NDArray[Any]) -> NDArray[Any]:
    """Seconds of lengths of time (timedelta64): int64 if all are whole, else float64.

    Raises
    ------
    WorkloadError
        If a length is not known (NaT).
    """
    unknown = np.isnat(lengths)
    if unknown.any():
        raise WorkloadError(
            f"column {name} has NaT at index {int(np.argmax(unknown))}; give a length, -1 s for unknown"
        )
    whole = lengths.astype("timedelta64[s]")
    if (whole == lengths).all():
        return whole.astype(np.int64)
    return np.asarray(lengths.astype("timedelta64[ns]").astype(np.int64) / _NANOSECONDS)


def _of_objects(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Array of a type of its own of what NumPy has no common type for: Python's numbers and times."""
    flat = values.ravel().tolist()
    # A datetime is a date; a Timestamp of pandas is a datetime, its Timedelta a timedelta.
    lengths = any(isinstance(value, timedelta) for value in flat)
    if not lengths and any(isinstance(value, date) for value in flat):
        return np.empty(values.shape, "datetime64[ns]")
    wanted = timedelta if lengths else Real
    for where, value in enumerate(flat):
        if isinstance(value, bool) or not isinstance(value, wanted):
            what = "lengths of time, as in other jobs" if lengths else "numbers"
            raise WorkloadError(f"column {name} has {value!r} at index {where}; give {what}")
    if lengths:
        return _lengths(name, flat).reshape(values.shape)
    whole = all(isinstance(value, Integral) for value in flat)
    try:
        return np.array(flat, np.int64 if whole else np.float64).reshape(values.shape)
    except OverflowError:
        raise WorkloadError(f"column {name} has a number of more than 64 bits; give smaller ones") from None


def _lengths(name: str, values: list[timedelta]) -> NDArray[Any]:
    """Lengths of time as timedelta64, with the nanoseconds that those of pandas have."""
    try:
        nanoseconds = np.array(
            [
                (value.days * 86400 + value.seconds) * _NANOSECONDS
                + value.microseconds * 1000
                + int(getattr(value, "nanoseconds", 0))
                for value in values
            ],
            np.int64,
        )
    except OverflowError:
        raise WorkloadError(f"column {name} has a length of more than 290 years; give seconds") from None
    return nanoseconds.astype("timedelta64[ns]")

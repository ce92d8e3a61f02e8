"""What the fields of Slurm's accounting mean: times, durations, numbers of jobs, states."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Integers = NDArray[np.int64]

UNKNOWN_TIME = -1
"""Time that the accounting does not know, such as the end of a running job."""

_STANDARD = len("2024-01-31T23:59:59")
_LATEST = 4_102_444_800
"""Start of the year 2100: later times are errors."""

_LONGEST_NUMBER = 12
_ZERO = ord("0")
_QUARTER = 900
"""Seconds; clocks are changed at multiples of a quarter of an hour."""

_NOT_KNOWN = frozenset({b"", b"Unknown", b"None", b"N/A", b"0"})
_NO_LIMIT = frozenset({"", "unlimited", "partition_limit", "unknown", "none", "n/a", "invalid", "not_set"})
_DURATION = re.compile(r"(?:(\d{1,7})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d{1,2})(?:\.\d{1,9})?", re.ASCII)
_MEMORY = re.compile(rb"(?:^|,)\s*mem=([^,]*)")
_AMOUNT = re.compile(rb"(\d{1,15})(?:\.(\d{1,3})\d*)?([KMGTP]?)", re.IGNORECASE)
_KIBIBYTES = {b"K": 1, b"": 1024, b"M": 1024, b"G": 1024**2, b"T": 1024**3, b"P": 1024**4}
_LARGEST_MEMORY = 2**50
"""KiB; more memory is an error."""
_NODES = re.compile(rb"(?:^|,)\s*node=(\d{1,9})(?=\D|$)")
_GPUS = re.compile(rb"(?:^|,)\s*gres/gpu(:[^=,]*)?=(\d{1,9})(?=\D|$)")
_NUMBER = re.compile(r"(\d{1,12})(?:\.0{1,3})?", re.ASCII)


class SlurmTimes(NamedTuple):
    """Times as they stand in an export.

    Parameters
    ----------
    seconds : int64[n]
        Unix time, or that of a clock in UTC which shows the same; -1 if unknown.
    local : bool[n]
        Whether it is what a clock shows, rather than Unix time.
    bad : bool[n]
        What is no time.
    """

    seconds: Integers
    local: NDArray[np.bool_]
    bad: NDArray[np.bool_]


def parse_times(texts: NDArray[np.bytes_]) -> SlurmTimes:
    """Times like 2024-01-31T23:59:59 on the clock of the site, Unix times in seconds, or unknown ones."""
    count = len(texts)
    seconds = np.full(count, UNKNOWN_TIME)
    rows = _rows(texts)
    standard = np.zeros(count, np.bool_)
    if rows.shape[1] >= _STANDARD:
        standard = _is_standard(rows)
        seconds[standard] = _standard_seconds(texts[standard].astype(f"S{_STANDARD}"))
    others, codes = np.unique(texts[~standard], return_inverse=True)
    values = np.array([_other_time(text) for text in others.tolist()], np.int64).reshape(-1)
    seconds[~standard] = values[codes] if len(values) else 0
    bad = (seconds < UNKNOWN_TIME) | (seconds >= _LATEST)
    return SlurmTimes(seconds, standard & ~bad, bad)


_BAD = -2


def _rows(texts: NDArray[np.bytes_]) -> NDArray[np.uint8]:
    width = texts.dtype.itemsize
    return np.ascontiguousarray(texts).view(np.uint8).reshape(len(texts), width)


def _is_standard(rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether rows of characters look like 2024-01-31T23:59:59."""
    fits = np.ones(len(rows), np.bool_) if rows.shape[1] == _STANDARD else ~rows[:, _STANDARD:].any(axis=1)
    for place, expected in enumerate("0000-00-00T00:00:00"):
        column = rows[:, place]
        # A difference of unsigned numbers is large where the character is below the digit 0.
        fits &= column - np.uint8(_ZERO) < 10 if expected == "0" else column == ord(expected)
    return np.asarray(fits)


def _standard_seconds(texts: NDArray[np.bytes_]) -> Integers:
    """Seconds of times whose characters are right; what no calendar has is bad."""
    try:
        seconds = texts.astype("datetime64[s]").astype(np.int64)
    except ValueError:
        seconds = np.array([_one_standard(text) for text in texts.tolist()], np.int64)
    return np.where(seconds < 0, _BAD, seconds)


def _one_standard(text: bytes) -> int:
    try:
        return int(datetime.fromisoformat(text.decode()).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return _BAD


def _other_time(text: bytes) -> int:
    """Unix time in seconds, unknown, or bad."""
    if text in _NOT_KNOWN:
        return UNKNOWN_TIME
    return int(text) if text.isdigit() and len(text) <= _LONGEST_NUMBER else _BAD


class OnClock(NamedTuple):
    """Unix times of what a clock shows; where it shows it twice, both, and once where never."""

    first: Integers
    second: Integers
    skipped: NDArray[np.bool_]


def to_unix(times: SlurmTimes, zone: ZoneInfo | None) -> OnClock:
    """Unix times; `second` is later where clocks are set back, `skipped` where they are set forward.

    Without a zone the clock is taken to show UTC.
    """
    first, second = times.seconds.copy(), times.seconds.copy()
    skipped = np.zeros(len(first), np.bool_)
    if zone is None or not times.local.any():
        return OnClock(first, second, skipped)
    shown = times.seconds[times.local]
    quarters, codes = np.unique(shown // _QUARTER, return_inverse=True)
    offsets = np.array([_offsets(quarter * _QUARTER, zone) for quarter in quarters.tolist()])[codes]
    first[times.local] = shown - offsets[:, 0]
    second[times.local] = np.maximum(shown - offsets[:, 1], shown - offsets[:, 0])
    skipped[times.local] = offsets[:, 1] > offsets[:, 0]
    return OnClock(first, second, skipped)


def _offsets(seconds: int, zone: ZoneInfo) -> tuple[int, int]:
    """Seconds east of UTC of what a clock shows, at the first and the second time that it shows it."""
    shown = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=zone)
    both = (shown.utcoffset(), shown.replace(fold=1).utcoffset())
    first, second = (int(offset.total_seconds()) if offset else 0 for offset in both)
    return first, second


def parse_duration(text: str) -> int | None:
    """Seconds of a duration like 1-12:00:00, 12:00:00 or 30:00; -1 without one, None for what is none."""
    if text.strip().lower() in _NO_LIMIT:
        return UNKNOWN_TIME
    match = _DURATION.fullmatch(text.strip())
    if not match:
        return None
    days, hours, minutes, seconds = (int(part) if part else 0 for part in match.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds


_TIME_LIMIT = re.compile(
    r"(?:(\d{1,6})-(\d{1,6})(?::(\d{1,6})(?::(\d+))?)?|(?:(\d{1,6}):)??(\d{1,6})(?::(\d+))?)"
)


def parse_time_limit(text: str) -> int:
    """Seconds, in whole minutes, of a limit as sbatch takes it: 90 (minutes), 1:30:00 or 1-12; 0 for none."""
    match = _TIME_LIMIT.fullmatch(text.strip())
    if not match:
        return 0
    day, of_day, minute, second, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = ((24 * day + of_day + hours) * 60 + minute + minutes) * 60 + second + seconds
    return -(-total // 60) * 60


def parse_number(text: str) -> int | None:
    """Whole number; -1 without one, None for what is none."""
    if text.strip().lower() in _NO_LIMIT:
        return UNKNOWN_TIME
    match = _NUMBER.fullmatch(text.strip())
    return int(match[1]) if match else None


def parse_gpus(text: bytes) -> int:
    """GPUs of resources like cpu=4,gres/gpu=2,gres/gpu:a100=2: the total, else the sum of the types."""
    found = _GPUS.findall(text)
    totals = [int(count) for kind, count in found if not kind]
    return totals[0] if totals else sum(int(count) for _, count in found)


def parse_nodes(text: bytes) -> int:
    """Nodes of resources like cpu=4,node=2; -1 where they are not among them."""
    found = _NODES.search(text)
    return int(found[1]) if found else UNKNOWN_TIME


def parse_memory(text: bytes) -> int | None:
    """Memory [KiB] of resources like cpu=4,mem=4000M; -1 without any, None for what is no amount.

    Slurm writes K, M, G, T or P, each 1024 of the one before, and means M where it writes none. Fractions
    of a KiB are cut off.
    """
    found = _MEMORY.search(text)
    if not found:
        return UNKNOWN_TIME
    match = _AMOUNT.fullmatch(found[1].strip())
    if not match:
        return None
    thousandths = 1000 * int(match[1]) + int((match[2] or b"").ljust(3, b"0"))
    memory = thousandths * _KIBIBYTES[match[3].upper()] // 1000
    return memory if memory < _LARGEST_MEMORY else None


def per_processor(memory: Integers, processors: Integers) -> Integers:
    """Memory of a job [KiB] shared out among its processors, -1 where it asks for none.

    Whole KiB, rounded down: a job that just fits into the memory of a node fits there as well by this
    number, and asks for less than a KiB a processor too little.
    """
    known = (memory > 0) & (processors > 0)
    return np.where(known, memory // np.maximum(processors, 1), -1)


def unique_numbers(numbers: Integers) -> tuple[Integers, int]:
    """Job numbers with new ones for those that occurred before, and how many these are."""
    repeated = np.asarray(pd.Series(numbers).duplicated())
    count = int(np.count_nonzero(repeated))
    unique = numbers.copy()
    unique[repeated] = numbers.max() + 1 + np.arange(count)
    return unique, count


def parse_state(text: str) -> str:
    """State without what follows it: "CANCELLED by 1000" and "CANCELLED+" are CANCELLED."""
    words = text.split()
    return words[0].rstrip("+").upper() if words else ""


def leading_numbers(texts: NDArray[np.bytes_]) -> tuple[Integers, Integers]:
    """Number that each text begins with, and how many digits it has; 0 digits if they are more than 18."""
    rows = _rows(texts)
    numbers = np.zeros(len(texts), np.int64)
    digits = np.zeros(len(texts), np.int64)
    inside = np.ones(len(texts), np.bool_)
    for place in range(rows.shape[1]):
        inside &= rows[:, place] - np.uint8(_ZERO) < 10
        if not inside.any():
            break
        if place >= 18:
            digits[inside] = 0
            break
        value = rows[:, place].astype(np.int64) - _ZERO
        numbers = np.where(inside, numbers * 10 + value, numbers)
        digits += inside
    return numbers, digits

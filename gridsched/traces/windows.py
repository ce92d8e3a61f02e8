"""Parts of a log: calendar months, its first months, intervals of time, and runs of consecutive jobs.

Submit times keep their origin, the start of the log, so that a window is still dated by
`unix_start_time`. Jobs without a submit time are in no month and in no interval. All functions count the jobs
that they leave out as "outside the window" in `Workload.left_out`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.workloads.clock import zone_of
from gridsched.workloads.table import Workload, add_counts

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)
OUTSIDE = "outside the window"


def select_window(
    workload: Workload,
    *,
    month: str | None = None,
    months: tuple[str, str] | None = None,
    interval: tuple[float, float] | None = None,
    jobs: tuple[int, int] | None = None,
    first_months: int | None = None,
) -> Workload:
    """Part of a log as a study's configuration names it; the whole log if it names none.

    Parameters
    ----------
    workload : Workload
        The log.
    month : str, optional
        Calendar month in the log's time zone, like "1996-10"; see `by_month`.
    months : (str, str), optional
        First and last of several consecutive months; see `by_months`.
    interval : (float, float), optional
        Start and end in seconds since the start of the log; see `by_interval`.
    jobs : (int, int), optional
        Index of the first job, from 0, and number of jobs; see `by_count`.
    first_months : int, optional
        Number of months from the first job on; see `by_first_months`.

    Raises
    ------
    ConfigurationError
        If more than one window is given, the month is not written as year and month, or there are fewer
        than one of the first months.
    WorkloadError
        If the window is empty, or the log does not say what is needed to find it.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=1500, seed=1)
    >>> gs.select_window(jobs, jobs=(100, 50)).job_number[[0, -1]]
    array([101, 150])
    """
    given = {
        "month": month,
        "months": months,
        "interval": interval,
        "jobs": jobs,
        "first_months": first_months,
    }
    named = [key for key, value in given.items() if value is not None]
    if len(named) > 1:
        raise ConfigurationError(f"{workload.name}: a window by {' and '.join(named)}; give only one of them")
    if month is not None:
        return by_month(workload, *_year_and_month(workload, month))
    if months is not None:
        first, last = (_year_and_month(workload, each) for each in months)
        return by_months(workload, first, last)
    if interval is not None:
        return by_interval(workload, *interval)
    if first_months is not None:
        return by_first_months(workload, first_months)
    return workload if jobs is None else by_count(workload, *jobs)


def _year_and_month(workload: Workload, text: str) -> tuple[int, int]:
    """Year and month of a text like 1996-10."""
    match = _MONTH.fullmatch(text)
    if not match:
        raise ConfigurationError(f"{workload.name}: month {text!r} is no month; write it like 1996-10")
    return int(match[1]), int(match[2])


def months(workload: Workload) -> dict[str, int]:
    """Number of jobs submitted in each calendar month of the log, in its own time zone.

    Keys are like "1996-10", from the first to the last month with a job; months between without jobs count 0.
    Errors are those of `by_month`.
    """
    zone, origin = _calendar(workload)
    submit = _known(workload.submit_time)
    if not submit.size:
        return {}
    try:
        first, last = (datetime.fromtimestamp(origin + float(t), zone) for t in (submit.min(), submit.max()))
    except (OverflowError, ValueError, OSError) as error:
        raise WorkloadError(f"{workload.name}: submit times beyond the year 9999; correct the log") from error
    indices = range(12 * first.year + first.month - 1, 12 * last.year + last.month)
    edges = [_month_start(workload, index // 12, index % 12 + 1) for index in (*indices, indices.stop)]
    counts = np.diff(np.searchsorted(np.sort(submit), edges))
    labels = (f"{index // 12:04d}-{index % 12 + 1:02d}" for index in indices)
    return dict(zip(labels, counts.tolist(), strict=True))


def by_month(workload: Workload, year: int, month: int) -> Workload:
    """Jobs submitted in one calendar month, in the log's own time zone.

    Raises
    ------
    WorkloadError
        If the log has no job in that month, or lacks its start (`UnixStartTime`) or time zone.
    """
    return by_months(workload, (year, month), (year, month))


def by_months(workload: Workload, first: tuple[int, int], last: tuple[int, int]) -> Workload:
    """Jobs submitted in consecutive calendar months, both inside, in the log's own time zone.

    Parameters
    ----------
    workload : Workload
        The log.
    first, last : (int, int)
        Year and month.

    Raises
    ------
    ConfigurationError
        If there is no such month, or the last comes before the first.
    WorkloadError
        If the log has no job in these months, or lacks its start (`UnixStartTime`) or time zone.
    """
    for year, month in (first, last):
        if not (1 <= month <= 12 and 1 <= year <= 9998):
            raise ConfigurationError(f"{workload.name}: no month {month} of year {year}; months are 1 to 12")
    asked = " to ".join(dict.fromkeys(f"{year:04d}-{month:02d}" for year, month in (first, last)))
    if last < first:
        raise ConfigurationError(f"{workload.name}: months {asked}: the last comes before the first")
    start = _month_start(workload, *first)
    end = _month_start(workload, last[0] + last[1] // 12, last[1] % 12 + 1)
    mask = _within(workload, start, end)
    if not mask.any():
        found = list(months(workload))
        has = f"{found[0]} to {found[-1]}" if found else "no job with a submit time"
        raise WorkloadError(f"{workload.name}: no job in {asked}; the log has {has}")
    return _selected(workload, mask)


def by_first_months(workload: Workload, count: int) -> Workload:
    """Jobs submitted in the first months of a log: from its first submission, in its own time zone.

    The window ends before the same day of the month and time of day `count` months later, or before that
    time on the last day of a month that is too short. A log that is shorter is in it as a whole.

    Raises
    ------
    ConfigurationError
        If the count is less than 1.
    WorkloadError
        If no job has a submit time, or the log lacks its start (`UnixStartTime`) or time zone.
    """
    if count < 1:
        raise ConfigurationError(f"{workload.name}: first_months is {count}; give at least 1")
    zone, origin = _calendar(workload)
    known = _known(workload.submit_time)
    if not known.size:
        raise WorkloadError(f"{workload.name}: no first months; the log has no job with a submit time")
    try:
        first = datetime.fromtimestamp(origin + float(known.min()), zone)
        year, month = divmod(12 * first.year + first.month - 1 + count, 12)
        day = min(first.day, monthrange(year, month + 1)[1])
        # Only the calendar moves on: a change to or from summer time in between keeps the time of day.
        end = first.replace(year=year, month=month + 1, day=day).timestamp() - origin
    except (OverflowError, ValueError, OSError) as error:
        raise WorkloadError(
            f"{workload.name}: {count} months from the first job on end beyond the year 9999; "
            "give fewer months or correct the log"
        ) from error
    return _selected(workload, _within(workload, 0, end))


def by_interval(workload: Workload, start: float, end: float) -> Workload:
    """Jobs with start <= submit time < end, in seconds since the start of the log.

    Raises
    ------
    WorkloadError
        If there is no such job.
    """
    mask = _within(workload, start, end)
    if not mask.any():
        known = _known(workload.submit_time)
        has = f"{known.min()} to {known.max()} s" if known.size else "no job with a submit time"
        raise WorkloadError(
            f"{workload.name}: no job is submitted from {start} to {end} s; the log has {has}"
        )
    return _selected(workload, mask)


def by_count(workload: Workload, first: int, count: int) -> Workload:
    """The `count` jobs from index `first` (from 0) on, in the order of the workload.

    Raises
    ------
    WorkloadError
        If the workload does not have all of them.
    """
    if first < 0 or count < 1 or first + count > len(workload):
        raise WorkloadError(
            f"{workload.name}: no {count} jobs from index {first} on; it has {len(workload)}, from index 0"
        )
    jobs = np.arange(len(workload))
    return _selected(workload, (jobs >= first) & (jobs < first + count))


def _selected(workload: Workload, mask: NDArray[np.bool_]) -> Workload:
    outside = {OUTSIDE: int(np.count_nonzero(~mask))}
    return workload.select(mask, left_out=add_counts(workload.left_out, outside))


def _known(submit_time: NDArray[np.int64]) -> NDArray[np.int64]:
    return submit_time[submit_time >= 0]


def _within(workload: Workload, start: float, end: float) -> NDArray[np.bool_]:
    submit = workload.submit_time
    return np.asarray((submit >= max(start, 0)) & (submit < end))


def _month_start(workload: Workload, year: int, month: int) -> int:
    """Midnight of the first day of a month, in seconds since the start of the log."""
    zone, origin = _calendar(workload)
    return int(datetime(year, month, 1, tzinfo=zone).timestamp()) - origin


def _calendar(workload: Workload) -> tuple[ZoneInfo, int]:
    """Time zone of the log and Unix time of its start."""
    if workload.unix_start_time is None:
        raise WorkloadError(
            f"{workload.name}: months need the log's start; add '; UnixStartTime: SECONDS' to it"
        )
    if not workload.time_zone:
        raise WorkloadError(
            f"{workload.name}: months need the log's time zone; add '; TimeZoneString: AREA/CITY' to it"
        )
    return zone_of(workload), workload.unix_start_time

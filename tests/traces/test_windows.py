"""Windows: months in the log's own time zone, intervals, and runs of jobs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.traces import (
    by_count,
    by_first_months,
    by_interval,
    by_month,
    months,
    read_swf,
    select_window,
)
from gridsched.workloads.table import Workload
from tests.support.errors import each_refused
from tests.support.fields import assert_fields
from tests.support.traces import workload

ZONES = ("Europe/Stockholm", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "Etc/GMT+5")


@settings(deadline=None)
@given(
    st.sampled_from(ZONES),
    st.integers(0, 2_000_000_000),
    st.lists(st.integers(-1, 40_000_000), min_size=1, max_size=12),
)
def test_months_are_those_of_the_local_calendar(zone: str, start: int, submit: list[int]) -> None:
    log = workload(submit_time=submit, unix_start_time=start, time_zone=zone)
    labels = [
        None if time < 0 else datetime.fromtimestamp(start + time, ZoneInfo(zone)).strftime("%Y-%m")
        for time in submit
    ]
    found = months(log)
    assert list(found) == sorted(found)
    assert {month: jobs for month, jobs in found.items() if jobs} == {
        label: labels.count(label) for label in labels if label
    }
    for month, jobs in found.items():
        if not jobs:
            with pytest.raises(WorkloadError, match=f"no job in {month}; the log has {next(iter(found))} to"):
                select_window(log, month=month)
            continue
        part = select_window(log, month=month)
        assert part.job_number.tolist() == [n for n, label in enumerate(labels, 1) if label == month]
        assert sum(part.left_out.values()) == len(submit) - jobs


def test_month_begins_at_local_midnight_in_winter_and_summer() -> None:
    stockholm = ZoneInfo("Europe/Stockholm")
    start = 843480031
    edges = [int(datetime(1996, month, 1, tzinfo=stockholm).timestamp()) - start for month in (10, 11, 12)]
    log = workload(
        submit_time=[edges[0] - 1, edges[0], edges[1] - 1, edges[1], edges[2]],
        unix_start_time=start,
        time_zone="Europe/Stockholm",
    )
    assert edges[1] - edges[0] == 31 * 86400 + 3600
    assert months(log) == {"1996-09": 1, "1996-10": 2, "1996-11": 1, "1996-12": 1}
    assert by_month(log, 1996, 12).submit_time.tolist() == [edges[2]]


def test_kth_log_of_the_archive_by_month(archive_mirror: Path) -> None:
    log = read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")
    october, november = (select_window(log, month=month) for month in ("1996-10", "1996-11"))
    assert (len(october), len(november)) == (2407, 1984)
    assert october.left_out == {"outside the window": 28476 - 2407}
    assert sum(months(log).values()) == len(log)


@given(
    st.sampled_from(ZONES),
    st.integers(0, 2_000_000_000),
    st.lists(st.integers(-1, 40_000_000), min_size=1, max_size=12),
    st.integers(1, 14),
)
def test_first_months_end_at_the_same_local_time(
    zone: str, start: int, submit: list[int], count: int
) -> None:
    log = workload(submit_time=submit, unix_start_time=start, time_zone=zone)
    known = [time for time in submit if time >= 0]
    if not known:
        with pytest.raises(WorkloadError, match="example: no first months; the log has no job with a submit"):
            by_first_months(log, count)
        return
    first = datetime.fromtimestamp(start + min(known), ZoneInfo(zone))
    # The calendar of pandas is one of its own; it clips the day as we do.
    local = (pd.Timestamp(first.replace(tzinfo=None)) + pd.DateOffset(months=count)).to_pydatetime()
    end = local.replace(tzinfo=ZoneInfo(zone), fold=first.fold).timestamp() - start
    part = select_window(log, first_months=count)
    assert part.submit_time.tolist() == [time for time in submit if 0 <= time < end]
    assert len(part) + part.left_out.get("outside the window", 0) == len(submit)
    assert min(known) in part.submit_time


@pytest.mark.parametrize(
    ("first", "count", "end"),
    [
        ("1996-01-31T10:00", 1, "1996-02-29T10:00"),
        ("1997-01-31T10:00", 1, "1997-02-28T10:00"),
        ("1996-10-31T23:59", 8, "1997-06-30T23:59"),
        ("1996-05-01T00:00", 8, "1997-01-01T00:00"),
        ("1996-02-29T12:00", 12, "1997-02-28T12:00"),
        ("1996-12-15T12:00", 1, "1997-01-15T12:00"),
        # 2:30 does not exist on that day, and is an hour later.
        ("1996-02-29T02:30", 1, "1996-03-29T02:30"),
        ("1996-01-31T02:30", 2, "1996-03-31T03:30"),
    ],
)
def test_first_months_end_on_the_last_day_of_a_short_month(first: str, count: int, end: str) -> None:
    zone = ZoneInfo("Europe/Stockholm")
    start, stop = (
        int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) for text in (first, end)
    )
    log = workload(
        submit_time=[100, 100 + stop - start - 1, 100 + stop - start, -1],
        unix_start_time=start - 100,
        time_zone="Europe/Stockholm",
        left_out={"outside the window": 1},
    )
    assert_fields(
        by_first_months(log, count),
        submit_time=[100, 100 + stop - start - 1],
        left_out={"outside the window": 3},
        unix_start_time=start - 100,
    )


def test_first_months_of_a_shorter_log_are_the_whole_log() -> None:
    log = workload(unix_start_time=0, time_zone="Etc/GMT")
    assert by_first_months(log, 8).equals(log)


def test_first_months_of_logs_of_the_archive(archive_mirror: Path) -> None:
    kth = read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")
    part = select_window(kth, first_months=8)
    # From Monday 30 September 1996, 12:38:01, to 30 May 1997 at the same time
    zone = ZoneInfo("Europe/Stockholm")
    end = datetime(1997, 5, 30, 12, 38, 1, tzinfo=zone).timestamp() - 843480031
    assert datetime.fromtimestamp(843480031 + 599850, zone).isoformat() == "1996-09-30T12:38:01+02:00"
    assert len(part) == np.count_nonzero(kth.submit_time < end) == 21548
    nasa = read_swf(archive_mirror / "NASA-iPSC-1993-3.1-cln.swf.gz")
    assert select_window(nasa, first_months=8).equals(nasa)
    assert sum(months(nasa).values()) == len(nasa)


def test_interval_is_half_open_and_keeps_its_origin() -> None:
    log = workload(submit_time=[-1, 0, 5, 9, 10, 11], left_out={"outside the window": 1})
    assert_fields(by_interval(log, 0, 10), submit_time=[0, 5, 9], left_out={"outside the window": 4})
    assert select_window(log, interval=(-5, 10)).submit_time.tolist() == [0, 5, 9]
    each_refused(
        (
            WorkloadError,
            "no job is submitted from 12 to 20 s; the log has 0 to 11 s",
            lambda: by_interval(log, 12, 20),
        ),
        (
            WorkloadError,
            "the log has no job with a submit time",
            lambda: by_interval(workload(submit_time=[-1, -1]), 0, 20),
        ),
    )


def test_jobs_by_index() -> None:
    log = workload(submit_time=[0, 1, 2, 3, 4])
    assert by_count(log, 1, 3).job_number.tolist() == [2, 3, 4]
    assert select_window(log, jobs=(0, 5)).left_out == {}
    for first, count in ((0, 6), (5, 1), (-1, 2), (0, 0)):
        with pytest.raises(WorkloadError, match="it has 5, from index 0"):
            by_count(log, first, count)


def test_no_window_is_the_whole_log() -> None:
    log = workload()
    assert select_window(log) is log


@pytest.mark.parametrize(
    "window",
    [
        {"month": "1996-13"},
        {"month": "1996-1"},
        {"month": "October"},
        {"month": "0000-01"},
        {"month": "9999-12"},
        {"month": "1996-10", "jobs": (0, 1)},
        {"interval": (0, 1), "jobs": (0, 1)},
        {"first_months": 0},
        {"first_months": -8},
        {"first_months": 8, "month": "1970-01"},
    ],
)
def test_windows_that_make_no_sense(window: dict[str, Any]) -> None:
    log = workload(unix_start_time=0, time_zone="Etc/GMT")
    with pytest.raises(ConfigurationError, match=r"^example: "):
        select_window(log, **window)


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        ({"time_zone": "Europe/Paris"}, "UnixStartTime"),
        ({"unix_start_time": 0}, "TimeZoneString"),
        ({"unix_start_time": 0, "time_zone": "Mars/Olympus"}, "'Mars/Olympus' is unknown"),
        ({"unix_start_time": 0, "time_zone": "Europe"}, "'Europe' is unknown"),
        ({"unix_start_time": 0, "time_zone": "../etc"}, "is unknown"),
        ({"unix_start_time": 2**60, "time_zone": "Etc/GMT"}, "beyond the year 9999"),
    ],
)
def test_months_need_start_and_zone(known: dict[str, Any], problem: str) -> None:
    for window in (months, lambda log: by_first_months(log, 8)):
        with pytest.raises(WorkloadError, match=f"^example: .*{problem}"):
            window(workload(**known))


@pytest.mark.parametrize("count", [8030 * 12, 2**62, 10**30])
def test_first_months_end_before_the_year_10000(count: int) -> None:
    log = workload(unix_start_time=0, time_zone="Etc/GMT")
    assert len(by_first_months(log, 8000 * 12)) == len(log)
    with pytest.raises(WorkloadError, match=f"^example: {count} months .* beyond the year 9999"):
        by_first_months(log, count)


def test_log_without_submit_times_has_no_months() -> None:
    log: Workload = workload(submit_time=np.full(3, -1), unix_start_time=0, time_zone="Etc/GMT")
    assert months(log) == {}
    with pytest.raises(WorkloadError, match="the log has no job with a submit time"):
        by_month(log, 1970, 1)

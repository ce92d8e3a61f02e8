"""The characterisation of workloads against loops over jobs and over time."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import WorkloadError
from gridsched.workloads import Workload, characterise
from tests.support.errors import each_refused

# Late in March 2002, so that many random workloads cross a change to summer time.
START = int(datetime(2002, 3, 27, 20, 17, 5, tzinfo=UTC).timestamp())

job = st.tuples(
    st.integers(0, 12 * 86400),
    st.integers(-1, 5000),
    st.integers(-1, 70),
    st.sampled_from([-1, 0, 1, 60, 3600]),
)
workloads = st.builds(
    lambda jobs, zone, start: Workload(
        name="random",
        submit_time=np.array([j[0] for j in jobs]),
        run_time=np.array([j[1] for j in jobs]),
        requested_processors=np.array([j[2] for j in jobs]),
        requested_time=np.array([j[3] for j in jobs]),
        processors_available=64,
        unix_start_time=start,
        time_zone=zone if start is not None else None,
    ),
    st.lists(job, min_size=1, max_size=30),
    st.sampled_from([None, "Europe/Stockholm", "America/Los_Angeles", "Asia/Kolkata"]),
    st.sampled_from([None, START]),
)


def local(workload: Workload, second: int) -> datetime:
    """Local time of a second of the workload; a workload without a start begins on a Monday."""
    if workload.unix_start_time is None:
        return datetime(2001, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    zone = ZoneInfo(workload.time_zone) if workload.time_zone else UTC
    return datetime.fromtimestamp(workload.unix_start_time + second, zone)


def quarters(workload: Workload) -> list[datetime]:
    """Beginnings of all quarters of an hour from the first submission to the last."""
    start = workload.unix_start_time or 0
    first, last = int(workload.submit_time.min()) + start, int(workload.submit_time.max()) + start
    return [local(workload, q - start) for q in range(first // 900 * 900, last + 1, 900)]


@settings(max_examples=60, deadline=None)
@given(workloads)
def test_arrivals_follow_the_local_clock(workload: Workload) -> None:
    data = characterise(workload)
    submitted = [local(workload, int(s)) for s in workload.submit_time]
    observed = quarters(workload)
    for found, unit, quarters_in in (
        (data.arrivals_hour, lambda t: t.hour, 4),
        (data.arrivals_weekday, lambda t: t.weekday(), 96),
    ):
        jobs, seen = Counter(map(unit, submitted)), Counter(map(unit, observed))
        expected = [quarters_in * jobs[k] / seen[k] if seen[k] else np.nan for k in range(len(found))]
        np.testing.assert_allclose(found, expected)
    mondays = Counter((t - timedelta(days=t.weekday())).date() for t in submitted)
    weeks = [min(mondays) + timedelta(weeks=k) for k in range(data.sizes["week"])]
    assert data.jobs_per_week.values.tolist() == [mondays[monday] for monday in weeks]
    assert sum(mondays.values()) == len(workload)


@settings(max_examples=60, deadline=None)
@given(workloads)
def test_sizes_and_load_by_a_loop(workload: Workload) -> None:
    data = characterise(workload)
    jobs: Counter[str] = Counter()
    work: Counter[str] = Counter()
    for processors, run in zip(workload.processors.tolist(), workload.run_time.tolist(), strict=True):
        if processors <= 0:
            continue
        high = 1
        while high < processors:
            high *= 2
        label = str(high) if high <= 2 else f"{high // 2 + 1}-{high}"
        jobs[label] += 1
        work[label] += processors * max(run, 0)
    assert int(data.unknown_size) == len(workload) - jobs.total()
    for shares, of in ((data.size_share, jobs), (data.work_share, work)):
        if of.total():
            np.testing.assert_allclose(shares, [of[label] / of.total() for label in data.size_class.values])
    span = int(workload.submit_time.max() - workload.submit_time.min())
    load = work.total() / (64 * span) if span else np.nan
    assert float(data.offered_load) == pytest.approx(load, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(workloads)
def test_times_and_accuracy_by_a_loop(workload: Workload) -> None:
    data = characterise(workload)
    pairs = list(zip(workload.run_time.tolist(), workload.requested_time.tolist(), strict=True))
    known = [(run, asked) for run, asked in pairs if run >= 0 and asked > 0]
    bins = [
        20 if run > asked else next(b for b in range(19, -1, -1) if b == 0 or 20 * run >= b * asked)
        for run, asked in known
    ]
    assert int(data.unknown_accuracy) == len(pairs) - len(known)
    shares = [bins.count(b) / len(bins) if bins else np.nan for b in range(21)]
    np.testing.assert_allclose(data.estimate_accuracy_share, shares)
    for variable, values in (
        ("run_time_quantile", [run for run, _ in pairs if run >= 0]),
        ("requested_time_quantile", [asked for _, asked in pairs if asked > 0]),
        ("interarrival_quantile", np.diff(sorted(workload.submit_time)).tolist()),
    ):
        expected = np.quantile(values, (0.5, 0.999)) if values else [np.nan, np.nan]
        np.testing.assert_allclose(data[variable].sel(quantile=[0.5, 0.999]), expected)
        assert values or data[variable].isnull().all()


def small(**changes: Any) -> Workload:
    columns: dict[str, Any] = {
        "name": "small",
        "submit_time": np.array([0, 3600]),
        "run_time": np.array([10, 20]),
        "requested_processors": np.array([1, 2]),
    }
    return Workload(**{**columns, **changes})


def test_every_variable_says_what_it_is_and_survives_a_file(tmp_path: Path) -> None:
    data = characterise(small())
    assert all({"long_name", "units"} <= set(variable.attrs) for variable in data.variables.values())
    data.to_netcdf(tmp_path / "small.nc")
    with xr.open_dataset(tmp_path / "small.nc") as stored:
        xr.testing.assert_identical(stored.load(), data)


def test_the_clock_is_stated() -> None:
    assert "not known" in characterise(small()).clock
    assert characterise(small(unix_start_time=0)).clock.startswith("UTC")
    assert characterise(small(unix_start_time=0, time_zone="Europe/Oslo")).clock == "Europe/Oslo"


def test_mistakes_are_named() -> None:
    each_refused(
        (WorkloadError, "no jobs", lambda: characterise(small().select(slice(0)))),
        (
            WorkloadError,
            r"small: time zone 'Mars/Olympus' is unknown",
            lambda: characterise(small(unix_start_time=0, time_zone="Mars/Olympus")),
        ),
    )

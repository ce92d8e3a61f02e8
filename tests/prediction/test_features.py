"""Features: each as its definition says, and nothing that a submission cannot know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import WorkloadError
from gridsched.prediction.categories import learn_categories
from gridsched.prediction.features import submission_columns
from gridsched.prediction.intervals import Intervals
from gridsched.prediction.prequential import job_table
from gridsched.workloads.table import Workload
from tests.support.fields import assert_fields
from tests.support.prediction import Ends, naive_features, naive_knowledge, small_logs, workload_of


@given(small_logs())
def test_history_is_what_the_definitions_say(log: tuple[Workload, Ends]) -> None:
    workload, end = log
    table, order = job_table(workload, end, None)
    for job in range(len(workload)):
        known = naive_knowledge(workload, end, job)
        assert order[: len(known)].tolist() == known
        assert table.seen["all_finished"][job] == len(known)
        assert table.seen["all_run_time"][job] == sum(workload.run_time[known].tolist())
        for name, value in naive_features(workload, end, job).items():
            assert table.column(name)[job] == value, name


@given(small_logs(), st.integers(0, 29))
@settings(max_examples=40)
def test_history_counts_users_of_different_logs_apart(log: tuple[Workload, Ends], seed: int) -> None:
    workload, end = log
    source = np.random.default_rng(seed).integers(0, 2, len(workload))
    renamed = workload.select(slice(None), user=np.where(workload.user < 0, -1, workload.user + 10 * source))
    table, _ = job_table(workload, end, source)
    for job in range(len(workload)):
        for name, value in naive_features(renamed, end, job).items():
            assert table.column(name)[job] == value, name


@pytest.mark.parametrize("zone", ["US/Pacific", "Europe/Stockholm", "Asia/Kolkata"])
def test_clock_is_local_also_when_it_changes(zone: str) -> None:
    start = int(datetime(1996, 10, 26, tzinfo=UTC).timestamp())
    submit = np.arange(0, 3 * 86400, 1700)
    workload = workload_of(submit, submit, unix_start_time=start, time_zone=zone)
    numbers = submission_columns(workload, None)[1]
    local = [datetime.fromtimestamp(start + int(second), ZoneInfo(zone)) for second in submit]
    assert_fields(numbers, hour=[each.hour for each in local], weekday=[each.weekday() for each in local])


@pytest.mark.parametrize(
    ("columns", "source", "message"),
    [
        *(
            ({"unix_start_time": 0, "time_zone": zone}, None, f"time zone '{zone}' is unknown")
            for zone in ("Mars/Base", "Europe", "../UTC")
        ),
        # categories of several logs
        ({"user": [2**31, 1]}, np.array([0, 1]), "user"),
    ],
)
def test_what_cannot_be_read_is_refused(columns: dict[str, Any], source: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        submission_columns(workload_of([0, 1], [1, 1], **columns), source)


def test_clock_without_zone_is_utc_and_without_start_begins_on_monday() -> None:
    submit = np.array([0, 3600, 86400])
    unix = submission_columns(workload_of(submit, submit, unix_start_time=86400 * 10 + 7200), None)[1]
    assert_fields(unix, hour=[2, 3, 2], weekday=[6, 6, 0])
    assert_fields(submission_columns(workload_of(submit, submit), None)[1], hour=[0, 1, 0], weekday=[0, 0, 1])


def test_requested_times_of_zero_are_unknown() -> None:
    numbers = submission_columns(workload_of([0, 1, 2], [1, 1, 1], requested_time=[0, -1, 60]), None)[1]
    assert numbers["requested_time"].tolist() == [-1, -1, 60]


def test_matrix_has_the_columns_that_are_asked_for() -> None:
    workload = workload_of([0, 100, 200], [10, 90, 1], user=[4, 4, 4], queue=[7, 8, 9])
    table, _ = job_table(workload, np.array([10, 190, 201]), None)
    queues = learn_categories(np.array([7, 7, 8]), np.array([1, 1, 1]), "frequency", rare=1)
    intervals = Intervals(np.array([50, 100]), np.array([25, 75]))
    matrix = table.matrix(
        slice(1, 3), ["queue", "last_interval", "last_run_time"], {"queue": queues}, intervals
    )
    assert matrix.dtype == np.float32
    assert matrix.tolist() == [[1, 0, 10], [-1, 1, 90]]
    assert table.matrix(np.array([0]), ["last_interval"], {}, intervals).tolist() == [[-1]]


# --- categories -----------------------------------------------------------------------------------


def test_categories_by_frequency() -> None:
    codes = learn_categories(np.array([5, 9, 9, -1, 9, 5, 7]), np.arange(7), "frequency", rare=1)
    assert codes.encode(np.array([9, 5, -1, 7, 1000])).tolist() == [0, 1, 2, 3, -1]


def test_categories_by_target() -> None:
    run_time = np.expm1([1.0, 2.0, 4.0, 6.0])
    codes = learn_categories(np.array([5, 5, 9, 9]), run_time, "target", rare=1)
    np.testing.assert_allclose(codes.encode(np.array([9, 5, 6])), [5, 1.5, -1])


def test_rare_categories_are_unknown() -> None:
    for encoding in ("frequency", "target"):
        codes = learn_categories(np.array([1, 1, 1, 2, 2]), np.arange(5), encoding, rare=3)
        assert (codes.encode(np.array([1, 2])) == -1).tolist() == [False, True]
        nothing = learn_categories(np.array([1, 2]), np.arange(2), encoding, rare=3)
        assert nothing.encode(np.array([1, 2])).tolist() == [-1, -1]

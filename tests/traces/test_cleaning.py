"""Cleaning: what is left out and repaired, and that all of it is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import TraceError, WorkloadError
from gridsched.traces import clean
from gridsched.traces.cleaning import wait_until_cancelled
from gridsched.workloads.table import Workload
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.support.traces import workload

small = st.integers(-2, 4)


@st.composite
def dirty_workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.integers(1, 8))

    def column(values: st.SearchStrategy[Any] = small) -> np.ndarray[Any, Any]:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)))

    times = small | st.sampled_from([-0.5, 0.5, 2.5, 3.25])
    return Workload(
        name="dirty",
        job_number=column(st.integers(1, 6)),
        submit_time=column(times),
        run_time=column(times),
        requested_time=column(times),
        requested_processors=column(),
        allocated_processors=column(),
        status=column(),
        processors_available=draw(st.sampled_from([None, 3])),
    )


def naive_reason(job: dict[str, Any], machine: int | None, statuses: set[int], seen: set[int]) -> str | None:
    """First reason to leave a job out; `seen` has the numbers of the jobs kept before."""
    if job["submit_time"] < 0:
        return "no submit time"
    requested, allocated = job["requested_processors"], job["allocated_processors"]
    size = requested if requested > 0 else allocated
    if size <= 0:
        return "no size"
    if job["run_time"] < 0:
        return "no run time"
    if machine is not None and size > machine:
        return "larger than the machine"
    if job["status"] in statuses:
        return f"status {job['status']}"
    return "duplicate job number" if job["job_number"] in seen else None


def rows(of: Workload) -> list[dict[str, Any]]:
    names, columns = zip(*of.columns.items(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in zip(*(c.tolist() for c in columns), strict=True)]


@settings(deadline=None)
@given(dirty_workloads(), st.sets(small, max_size=2), st.sampled_from([None, 2]))
def test_same_jobs_and_counts_as_one_job_after_the_other(
    dirty: Workload, statuses: set[int], processors: int | None
) -> None:
    machine = dirty.processors_available if processors is None else processors
    left_out: dict[str, int] = {}
    kept: list[dict[str, Any]] = []
    for job in rows(dirty):
        reason = naive_reason(job, machine, statuses, {other["job_number"] for other in kept})
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            kept.append(job)
    if not kept:
        with pytest.raises(WorkloadError, match="no job remains"):
            clean(dirty, processors=processors, statuses=statuses)
        return
    cleaned = clean(dirty, processors=processors, statuses=statuses)
    assert cleaned.left_out == left_out
    kept.sort(key=lambda job: job["submit_time"] // 1)
    assert_fields(
        cleaned,
        job_number=[job["job_number"] for job in kept],
        submit_time=[job["submit_time"] // 1 for job in kept],
        run_time=[-(-job["run_time"] // 1) for job in kept],
    )
    expected = [max(-1, -(-job["requested_time"] // 1)) if job["requested_time"] >= 0 else -1 for job in kept]
    assert cleaned.requested_time.tolist() == expected
    assert {cleaned.submit_time.dtype, cleaned.run_time.dtype} == {np.dtype(np.int64)}


@settings(deadline=None)
@given(dirty_workloads())
def test_cleaning_twice_is_cleaning_once(dirty: Workload) -> None:
    try:
        once = clean(dirty)
    except WorkloadError:
        return
    assert clean(once).equals(once)


def test_repairs_are_counted() -> None:
    repaired = clean(
        workload(
            submit_time=[5, 3, 9.5, 4, 9, 10],
            run_time=[0, 1.5, 1, 1, 1, 1],
            requested_time=[1, -1, 2.5, -7, 0, 3],
            user=[-1, -9, 0, 1, 2, 3],
        )
    )
    assert_fields(
        repaired,
        repaired={
            "negative value made unknown": 2,
            "fractional time rounded": 2,
            "out of order": 2,
        },
        job_number=[2, 4, 1, 3, 5, 6],
        submit_time=[3, 4, 5, 9, 9, 10],
        run_time=[2, 1, 0, 1, 1, 1],
        requested_time=[-1, -1, 1, 3, 0, 3],
        user=[-1, 1, -1, 0, 2, 3],
        left_out={},
    )


def test_counts_add_to_those_before() -> None:
    before = workload(run_time=[1, -1, 1, 1], left_out={"no run time": 4, "other": 1}, repaired={"x": 2})
    assert_fields(clean(before), left_out={"no run time": 5, "other": 1}, repaired={"x": 2})


def test_clean_log_is_unchanged() -> None:
    assert clean(workload()).equals(workload())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"run_time": [1, 2**40 + 1, 1, 2**50]}, r"job 2 has run_time 1099511627777, .*\(2 such jobs\)"),
        ({"submit_time": [0.0, 1e300, 1.0, 2.0]}, "job 2 has submit_time"),
        ({"requested_time": [1.0, np.nan, 1.0, 1.0]}, "job 2 has requested_time nan"),
        ({"requested_processors": [1, 1, 2**31, 1]}, "job 3 has requested_processors 2147483648"),
        ({"allocated_processors": [1e300, 1.0, 1.0, 1.0]}, "job 1 has allocated_processors"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(TraceError, match=f"^example: {problem}"):
        clean(workload(**changes))


def test_largest_sensible_values_stay() -> None:
    assert len(clean(workload(run_time=[2**40] * 4, requested_processors=[2**31 - 1] * 4))) == 4


def test_cancelled_jobs_wait_until_their_users_gave_up() -> None:
    log = Workload(
        name="cancelled",
        submit_time=np.array([0, 10, 20, 30, 40]),
        wait_time=np.array([0, 100, 200, 300, 5]),
        run_time=np.array([50, 0, -1, 0, 60]),
        requested_time=np.array([100, 200, 300, -1, 120]),
        requested_processors=np.ones(5, np.int64),
        status=np.array([1, 5, 5, 5, 5]),
    )
    assert_fields(clean(log), run_time=[50, 0, 0, 60], gives_up_time=None)
    waiting = clean(log, cancelled="wait")
    # 110 of 220 s were used by those that ran
    assert_fields(
        waiting,
        run_time=[50, 100, 150, 60],
        gives_up_time=[-1, 110, 220, -1],
        wait_time=[0, -1, -1, 5],
        left_out={"cancelled before it ran, requested time unknown": 1},
        repaired={"cancelled before it ran, waits until then": 2},
    )


def test_what_a_cancelled_job_would_have_run_is_not_taken_from_an_unlimited_request() -> None:
    log = jobs_of(
        name="unlimited",
        submit_time=[0, 10, 20, 30],
        wait_time=[0, 100, 200, 0],
        run_time=[50, -1, -1, 10],
        requested_time=[100, 200, 2**31 - 1, 2**32 - 1],
        requested_processors=[1] * 4,
        status=[1, 5, 5, 1],
    )
    assert_fields(
        clean(log, cancelled="wait"),
        run_time=[50, 100, 10],
        left_out={"cancelled before it ran, requested time unlimited": 1},
        requested_time=[100, 200, 2**31 - 1],
    )


def test_a_job_that_used_a_processor_had_started() -> None:
    log = workload(
        status=[5] * 4,
        run_time=[0] * 4,
        wait_time=[7] * 4,
        average_cpu_time=[-1, 0, 3, -1],
        requested_time=[9] * 4,
    )
    for made in (log, clean(log, cancelled="wait")):
        assert sorted(wait_until_cancelled(made).tolist()) == [-1, 7, 7, 7]

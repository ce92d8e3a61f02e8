"""What users got done: sessions and weeks of users, on runs that are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from gridsched.metrics.users import WEEK, jobs_per_session, jobs_per_user_week, user_measures


def run_of(*jobs: tuple[int, int, int, int]) -> xr.Dataset:
    """A run of jobs that are eligible, start and end, of a user each."""
    eligible, start, end, user = np.array(jobs, np.int64).reshape(-1, 4).T
    columns = {
        "submit_time": eligible,
        "eligible_time": eligible,
        "start_time": start,
        "end_time": end,
        "user": user,
    }
    return xr.Dataset({name: ("job", column) for name, column in columns.items()})


def test_sessions_end_where_users_think_longer() -> None:
    run = run_of((0, 0, 10, 1), (100, 100, 200, 1), (5_000, 5_000, 5_010, 1), (0, 0, 10, 2))
    assert jobs_per_session(run) == pytest.approx(4 / 3)
    assert jobs_per_session(run, think_time=10_000) == pytest.approx(2.0)


def test_weeks_of_users_count_from_the_first_job_to_the_last_end() -> None:
    # the second user is there for half a week, though the last job that he submits ends first
    run = run_of((0, 0, WEEK, 1), (0, 0, WEEK // 2, 2), (10, 20, 30, 2), (5, -1, -1, 1), (0, 0, 9 * WEEK, -1))
    assert jobs_per_user_week(run) == pytest.approx(3 / 1.5)
    assert jobs_per_user_week(run.drop_vars("eligible_time")) == pytest.approx(3 / 1.5)


def test_users_of_different_homes_are_different() -> None:
    """Logs number their users each by itself: user 1 of one is not user 1 of the other."""
    run = run_of((0, 0, WEEK, 1), (0, 0, WEEK, 1), (WEEK, WEEK, 2 * WEEK, 2))
    run["home_cluster"] = ("job", [0, 1, 1])
    assert jobs_per_user_week(run) == pytest.approx(3 / 3)
    assert jobs_per_session(run) == pytest.approx(1.0)


def test_without_jobs_there_is_nothing_to_tell() -> None:
    assert all(np.isnan(value) for value in user_measures(run_of((0, -1, -1, 1))).values())

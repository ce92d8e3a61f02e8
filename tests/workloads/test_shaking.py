"""Small random changes of submit times."""

from __future__ import annotations

import numpy as np
import pytest

import gridsched as gs
from gridsched.errors import WorkloadError
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.shaking import shake


def jobs(count: int = 2000) -> gs.Workload:
    """Jobs that come within seconds of each other, some with deadlines, each tenth after the one before."""
    submit = np.sort(np.random.default_rng(1).integers(500, 20_000, count))
    return gs.Workload(
        name="x",
        submit_time=submit,
        run_time=np.arange(count),
        requested_processors=np.ones(count, np.int64),
        deadline=np.where(np.arange(count) % 3 == 0, submit + 100, -1),
        dependencies=dependency_table([(job, job - 1, "afterany") for job in range(1, count, 10)]),
    )


def test_each_job_moves_by_itself_and_takes_its_times_along() -> None:
    plain = jobs()
    made = shake(plain, seed=2, seconds=60)
    assert (np.diff(made.submit_time) >= 0).all()
    # run times tell jobs apart
    moved = made.submit_time - plain.submit_time[made.run_time]
    assert sorted(made.run_time.tolist()) == plain.run_time.tolist()
    late = plain.submit_time[made.run_time] > 560
    assert (moved[late].min(), moved[late].max()) == (-60, 60)
    assert abs(moved[late].mean()) < 3
    assert made.submit_time.min() >= plain.submit_time.min()
    assert made.deadline is not None
    has = made.run_time % 3 == 0
    assert (made.deadline[has] == made.submit_time[has] + 100).all()
    assert (made.deadline[~has] == -1).all()
    assert made.dependencies is not None
    pairs = {(int(made.run_time[row["job"]]), int(made.run_time[row["on"]])) for row in made.dependencies}
    assert pairs == {(job, job - 1) for job in range(1, 2000, 10)}


def test_seed_decides_and_no_seconds_change_nothing() -> None:
    plain = jobs()
    assert shake(plain, seed=2).equals(shake(plain, seed=2))
    assert not np.array_equal(shake(plain, seed=2).submit_time, shake(plain, seed=3).submit_time)
    assert np.array_equal(shake(plain, seed=2, seconds=0).submit_time, plain.submit_time)
    with pytest.raises(WorkloadError, match="seconds is -1"):
        shake(plain, seed=2, seconds=-1)
    with pytest.raises(WorkloadError, match="seed is -2"):
        shake(plain, seed=-2)

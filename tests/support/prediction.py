"""Workloads for tests of prediction, and plain definitions of what a submission knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.workloads.table import Workload

Ends = NDArray[np.int64]


def workload_of(submit_time: Any, run_time: Any, **columns: Any) -> Workload:
    """Workload of one-processor jobs with the given columns."""
    ones = np.ones(len(submit_time), np.int64)
    facts = {name: value for name, value in columns.items() if isinstance(value, str | int)}
    given = {name: np.asarray(value) for name, value in columns.items() if name not in facts}
    every: dict[str, Any] = {"requested_processors": ones, **given, **facts}
    return Workload(
        name="made up",
        submit_time=np.asarray(submit_time, np.int64),
        run_time=np.asarray(run_time, np.int64),
        **every,
    )


def regular_users(users: int, jobs: int, seed: int = 1) -> tuple[Workload, Ends]:
    """Jobs without waits of users who always run the same time: 10 s, 100 s, 1000 s ..."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, jobs)
    submit = np.cumsum(rng.integers(0, 600, jobs))
    run_time = 10 ** (user + 1)
    workload = workload_of(submit, run_time, user=user, requested_time=np.full(jobs, 10 ** (users + 1)))
    return workload, submit + run_time


def busy_log(jobs: int, seed: int = 1) -> tuple[Workload, Ends]:
    """A log in which everything is known and run times depend on several features, with their ends."""
    rng = np.random.default_rng(seed)
    user, queue = rng.integers(0, 12, jobs), rng.integers(0, 3, jobs)
    submit = np.cumsum(rng.integers(0, 900, jobs))
    typical = np.exp(3 + user % 5 + queue)
    run_time = np.ceil(typical * rng.lognormal(0, 0.5, jobs)).astype(np.int64)
    workload = workload_of(
        submit,
        run_time,
        user=user,
        group=user // 4,
        queue=queue,
        executable=rng.integers(0, 40, jobs),
        partition=rng.integers(0, 2, jobs),
        requested_processors=2 ** rng.integers(0, 5, jobs),
        requested_time=np.ceil(run_time * rng.uniform(0.9, 5, jobs)).astype(np.int64),
        unix_start_time=800_000_000,
        time_zone="Europe/Stockholm",
    )
    return workload, submit + rng.integers(0, 3600, jobs) + run_time


@st.composite
def small_logs(draw: st.DrawFn, max_jobs: int = 20) -> tuple[Workload, Ends]:
    """Few jobs with many coincidences, unknown values, and jobs that never end."""
    jobs = draw(st.integers(1, max_jobs))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 5, 40]), min_size=jobs, max_size=jobs))
    submit = np.cumsum(gaps)

    def column(values: st.SearchStrategy[int]) -> NDArray[np.int64]:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), np.int64)

    run_time = column(st.sampled_from([0, 1, 1, 5, 20, 100, 1000]))
    wait = column(st.sampled_from([0, 0, 1, 5, 40, -1]))
    workload = workload_of(
        submit,
        run_time,
        user=column(st.sampled_from([-1, 3, 3, 7])),
        queue=column(st.sampled_from([-1, 1, 2])),
        executable=column(st.integers(-1, 4)),
        requested_time=column(st.sampled_from([-1, 0, 1, 10, 200])),
    )
    return workload, np.where(wait >= 0, submit + wait + run_time, -1)


def naive_knowledge(workload: Workload, end: Ends, job: int) -> list[int]:
    """Jobs that are known to have finished when `job` is submitted, the latest last."""
    now = workload.submit_time[job]
    finished = [
        other
        for other in range(len(workload))
        if end[other] >= 0 and (end[other] < now or (end[other] == now and workload.submit_time[other] < now))
    ]
    since = {other: max(end[other], workload.submit_time[other] + 1) for other in finished}
    return sorted(finished, key=lambda other: (since[other], end[other], other))


def naive_features(workload: Workload, end: Ends, job: int) -> dict[str, float]:
    """Features of a job that depend on its user, by definition."""
    names = ("last_run_time", "previous_run_time", "mean_run_time", "jobs_finished", "think_time")
    user = workload.user[job]
    if user < 0:
        return dict.fromkeys((*names, "jobs_in_system"), -1)
    finished = naive_knowledge(workload, end, job)
    own = [other for other in finished if workload.user[other] == user]
    times = [int(workload.run_time[other]) for other in own]
    present = [
        other
        for other in range(job)
        if workload.user[other] == user and end[other] >= 0 and other not in finished
    ]
    return {
        "last_run_time": times[-1] if times else -1,
        "previous_run_time": times[-2] if len(times) > 1 else -1,
        "mean_run_time": sum(times) / len(times) if times else -1,
        "jobs_finished": len(times),
        "think_time": workload.submit_time[job] - end[own[-1]] if own else -1,
        "jobs_in_system": len(present),
    }

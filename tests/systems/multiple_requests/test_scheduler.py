"""Multiple simultaneous requests against a plain simulation, and what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.summary import summarise
from gridsched.systems.multiple_requests.scheduler import MultipleRequests
from gridsched.verification import verify
from gridsched.workloads.table import Workload
from tests.oracles.grid import GridCluster, request_on_several
from tests.oracles.local import POLICIES, Job
from tests.support.fields import assert_fields


def workload_of(jobs: list[Job], home: list[int]) -> Workload:
    return Workload(
        name="requests",
        submit_time=np.array([job.submit_time for job in jobs]),
        run_time=np.array([job.run_time for job in jobs]),
        requested_time=np.array([job.estimate for job in jobs]),
        requested_processors=np.array([job.processors for job in jobs]),
        home=np.array(home),
    )


def platform_of(processors: list[int], speeds: list[float], policy: str) -> Platform:
    clusters = [
        Cluster(name=f"c{i}", processors=p, speed=s, policy=policy)
        for i, (p, s) in enumerate(zip(processors, speeds, strict=True))
    ]
    return Platform(clusters)


@st.composite
def submissions(draw: Any) -> tuple[list[Job], list[int], list[int], list[float]]:
    processors = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    speeds = draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=len(processors), max_size=len(processors)))
    jobs: list[Job] = []
    submit = 0
    for _ in range(draw(st.integers(1, 25))):
        submit += draw(st.integers(0, 4))
        run = draw(st.integers(0, 12))
        estimate = max(1, run + draw(st.integers(0, 8)))
        jobs.append(Job(submit, run, estimate, draw(st.integers(1, 8))))
    home = draw(st.lists(st.integers(0, len(processors) - 1), min_size=len(jobs), max_size=len(jobs)))
    return jobs, home, processors, speeds


@given(submissions(), st.integers(1, 4), st.sampled_from(["fcfs", "ff", "easy"]), st.booleans())
@settings(max_examples=150)
def test_schedules_are_those_of_a_plain_simulation(
    drawn: tuple[list[Job], list[int], list[int], list[float]], k: int, policy: str, dual: bool
) -> None:
    jobs, home, processors, speeds = drawn
    scheduler = MultipleRequests(k=k, priority="home" if dual else "equal")
    run = simulate(workload_of(jobs, home), platform_of(processors, speeds, policy), scheduler)
    verify(run)
    where = np.full(len(jobs), -1)
    where[run["segment_job"].values] = run["segment_cluster"].values
    backfilling = POLICIES[policy].backfilling
    clusters = [
        GridCluster(p, speed=s, backfilling=backfilling) for p, s in zip(processors, speeds, strict=True)
    ]
    expected = request_on_several(jobs, home, clusters, k, home_first=dual)
    assert list(zip(run["start_time"].values.tolist(), where.tolist(), strict=True)) == expected


@given(submissions(), st.sampled_from(["conservative", "sjf", "sjbf", "easy(3)", "lxf"]))
@settings(max_examples=60)
def test_every_local_policy_gives_schedules(
    drawn: tuple[list[Job], list[int], list[int], list[float]], policy: str
) -> None:
    jobs, home, processors, speeds = drawn
    run = simulate(workload_of(jobs, home), platform_of(processors, speeds, policy), "multiple-requests")
    verify(run)
    summary = summarise(run)
    fitting = sum(job.processors <= max(processors) for job in jobs)
    assert int(summary["jobs"].sel(job_class="all")) == fitting == run.sizes["segment"]


def test_one_request_at_home_is_every_cluster_alone() -> None:
    rng = np.random.default_rng(3)
    jobs = [Job(int(t), int(r), int(r) + 5, int(p)) for t, r, p in rng.integers(1, 40, (60, 3))]
    jobs.sort(key=lambda job: job.submit_time)
    workload = workload_of(jobs, [0] * len(jobs))
    single = platform_of([40], [1.0], "easy")
    asked = simulate(workload, single, MultipleRequests(k=1))
    alone = simulate(workload, single, "local")
    assert asked["start_time"].equals(alone["start_time"])


def test_more_requests_do_not_make_single_processor_jobs_wait_longer() -> None:
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, 300, 400))
    jobs = [Job(int(t), int(r), int(r), 1) for t, r in zip(submit, rng.integers(1, 60, 400), strict=True)]
    home = rng.integers(0, 4, 400).tolist()
    platform = platform_of([8, 8, 8, 8], [1.0] * 4, "fcfs")
    waits = []
    for k in (1, 4):
        run = simulate(workload_of(jobs, home), platform, MultipleRequests(k=k))
        waits.append(float((run["start_time"] - run["submit_time"]).mean()))
        assert_fields(run, requests=400 * k, requests_cancelled=400 * (k - 1))
    assert waits[1] <= waits[0]


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1.5}, {"priority": "local"}])
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        MultipleRequests(**wrong)


def test_home_jobs_first_needs_an_order_with_keys() -> None:
    jobs = [Job(0, 5, 5, 1)]
    with pytest.raises(ConfigurationError, match="lxf"):
        simulate(workload_of(jobs, [0]), platform_of([4], [1.0], "lxf"), "multiple-requests-dual")

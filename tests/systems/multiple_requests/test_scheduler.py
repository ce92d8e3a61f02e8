"""Multiple simultaneous requests against a plain simulation, and what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.systems.multiple_requests.scheduler import MultipleRequests
from tests.oracles.grid import GridCluster, GridJob, request_on_several
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.support.strategies import grids
from tests.systems.superscheduler.test_scheduler import run_under, with_one_score


@given(case=grids(max_clusters=4), k=st.integers(1, 4), dual=st.booleans())
@settings(max_examples=300)
def test_schedules_are_those_of_a_plain_simulation(
    case: tuple[list[GridJob], list[GridCluster]], k: int, dual: bool
) -> None:
    jobs, clusters = case[0], with_one_score(case[1])
    if dual:
        # home jobs first needs an order with keys
        clusters = [each._replace(order="fcfs") if each.order == "lxf" else each for each in clusters]
    found = run_under(MultipleRequests(k=k, priority="home" if dual else "equal"), jobs, clusters)
    home = [job.home for job in jobs]
    assert found == request_on_several(jobs, home, clusters, k, home_first=dual)


def test_more_requests_do_not_make_single_processor_jobs_wait_longer() -> None:
    rng = np.random.default_rng(1)
    jobs = jobs_of(
        submit_time=np.sort(rng.integers(0, 300, 400)),
        run_time=rng.integers(1, 60, 400),
        requested_processors=np.ones(400, np.int64),
        home=rng.integers(0, 4, 400),
    )
    clusters = [gs.Cluster(name=name, processors=8, policy="fcfs") for name in "abcd"]
    waits = []
    for k in (1, 4):
        run = gs.simulate(jobs, clusters, MultipleRequests(k=k))
        waits.append(float((run["start_time"] - run["submit_time"]).mean()))
        assert_fields(run, requests=400 * k, requests_cancelled=400 * (k - 1))
    assert waits[1] <= waits[0]


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1.5}, {"priority": "local"}])
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with refused(next(iter(wrong))):
        MultipleRequests(**wrong)


def test_home_jobs_first_needs_an_order_with_keys() -> None:
    jobs = jobs_of(submit_time=[0], run_time=[5], requested_processors=[1], home=[0])
    with refused("lxf"):
        gs.simulate(jobs, [gs.Cluster(name="a", processors=4, policy="lxf")], "multiple-requests-dual")

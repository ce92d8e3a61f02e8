"""Policies that are told what happens start jobs when the engine, which knows all jobs, does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.policies.local import Conventions, LocalPolicy, named_policy
from gridsched.policies.online import NewJob, OnlinePolicy
from gridsched.simulation import simulate
from tests.oracles.local import Job
from tests.support import strategies
from tests.support.hosts import starts_under
from tests.support.nodes import workload_of


def by_user(submit_time: int, user: int) -> float:
    """A score that looks at users."""
    return -user - 1e-9 * submit_time


def small_first(submit_time: int, processors: int) -> float:
    """A score of a user."""
    return -processors - 1e-9 * submit_time


KNOWN = [
    *map(named_policy, ("fcfs", "ff", "sjf", "easy", "sjbf", "lxf", "lxwf", "creasy", "conservative")),
    named_policy("easy(3)"),
    LocalPolicy(order="f2", backfilling="conservative"),
    LocalPolicy(order=small_first, backfilling="easy", backfill_order=small_first),
    LocalPolicy(backfilling="easy", prediction="double"),
    LocalPolicy(backfilling="easy", prediction="actual"),
    LocalPolicy(order=by_user, backfilling="easy"),
    named_policy("easy++"),
    LocalPolicy(backfilling="easy", prediction="recent", correction="doubling"),
    LocalPolicy(backfilling="easy", prediction="recent", correction="requested"),
]


@given(
    case=strategies.workloads().filter(lambda case: case[0]),
    policy=st.sampled_from(KNOWN),
    overrun=st.sampled_from(["doubling", "increments"]),
)
def test_jobs_start_when_the_engine_starts_them(
    case: tuple[list[Job], int], policy: LocalPolicy, overrun: Any
) -> None:
    jobs = replace(workload_of(case[0]), user=np.arange(len(case[0])) % 3)
    starts = starts_under(OnlinePolicy(policy, case[1], Conventions(overrun)), jobs)
    expected = simulate(jobs, case[1], policy, overrun=overrun).start_time
    assert starts.tolist() == expected.values.tolist()


@pytest.mark.parametrize("trace", ["KTH-SP2-1996-2.1-cln", "HPC2N-2002-2.2-cln"])
@pytest.mark.parametrize("policy", KNOWN, ids=lambda policy: policy.name)
def test_jobs_of_a_log_start_when_the_engine_starts_them(
    archive_mirror: Path, trace: str, policy: LocalPolicy
) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / f"{trace}.swf.gz"))
    first = jobs.select(np.arange(len(jobs)) < 5000)
    processors = int(jobs.processors_available or 0)
    starts = starts_under(OnlinePolicy(policy, processors), first)
    assert starts.tolist() == simulate(first, processors, policy).start_time.values.tolist()


@pytest.mark.parametrize(
    ("policy", "needs"),
    [
        (named_policy("lxf"), set()),
        (named_policy("easy++"), {"user"}),
        (LocalPolicy(order=by_user), {"user"}),
        (LocalPolicy(backfilling="easy", prediction="actual"), {"run_time"}),
    ],
)
def test_what_policies_have_to_know(policy: LocalPolicy, needs: set[str]) -> None:
    assert OnlinePolicy(policy, 8).needs == needs


def test_there_is_one_pass_an_instant() -> None:
    with pytest.raises(ConfigurationError, match="'easy' cannot decide while jobs run: passes are 'event'"):
        OnlinePolicy(named_policy("easy"), 8, Conventions(passes="event"))


def test_a_call_at_which_nothing_has_happened_changes_nothing() -> None:
    """From 13 s on the third job has a larger expansion factor than the second, which it would overtake."""
    online = OnlinePolicy(named_policy("lxf"), 4)
    jobs = [NewJob(0, 100, 3), NewJob(0, 1000, 4), NewJob(10, 200, 1)]
    assert online.decide(0, jobs[:2], []).started == [0]
    assert online.decide(10, jobs[2:], []).started == []
    assert online.decide(20, [], []).started == []
    assert online.decide(21, [NewJob(21, 1000, 4)], []).started == [2]

"""Explanations of single jobs, held against the plain simulator and against worked examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.explanation import Explanation, expected_end, explain, explain_counted, reservations
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.simulation import simulate
from tests.oracles import local as naive
from tests.oracles.conformance import read_plain
from tests.oracles.local import Job

NAMES = ("fcfs", "ff", "sjf", "easy", "easy(2)", "sjbf", "lxf", "lxwf", "conservative")
MACHINE = 8


def simulated(jobs: list[Job], processors: int, policy: str, overrun: str = "doubling") -> Any:
    columns = np.array(jobs, np.int64).reshape(-1, 4).T
    workload = gs.Workload(
        name="example",
        submit_time=columns[0],
        run_time=columns[1],
        requested_time=columns[2],
        requested_processors=columns[3],
    )
    return simulate(workload, gs.Cluster(processors=processors), policy, overrun=overrun)  # type: ignore[arg-type]


def told(jobs: list[Job], processors: int, policy: str, job: int, overrun: str = "doubling") -> Explanation:
    return explain_counted(simulated(jobs, processors, policy, overrun), job, named_policy(policy))


class Watched(naive._Cluster):
    """The plain simulator, which notes what it sees after the last pass of each instant."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: dict[int, tuple[list[int], int, list[int], dict[int, int]]] = {}
        self.places: dict[int, dict[int, int]] = {}

    def schedule(self) -> None:
        super().schedule()
        queue = self.queue()
        self.seen[self.now] = (queue, self.free(), list(self.running), dict(self.planned))
        self.places[self.now] = {}
        if self.policy.backfilling == "easy":
            held = self.running_occupations()
            for job in queue[: self.policy.reservations]:
                self.places[self.now][job] = self.earliest_place(job, held)
                held.append(self.occupation(job, self.places[self.now][job]))


def watch(jobs: list[Job], policy: str, overrun: str = "doubling") -> Watched:
    cluster = Watched(jobs, MACHINE, naive.POLICIES[policy], overrun, "instant")
    cluster.run()
    return cluster


JOBS = st.lists(
    st.builds(Job, st.integers(0, 60), st.integers(0, 40), st.integers(1, 40), st.integers(1, MACHINE)),
    min_size=1,
    max_size=14,
).map(lambda jobs: sorted(jobs, key=lambda job: job.submit_time))


@given(JOBS, st.sampled_from(NAMES), st.data())
@settings(max_examples=100)
def test_phases_are_what_the_plain_simulator_sees(jobs: list[Job], policy: str, data: st.DataObject) -> None:
    overrun = data.draw(st.sampled_from(["doubling", "increments"]))
    job = data.draw(st.integers(0, len(jobs) - 1))
    found = told(jobs, MACHINE, policy, job, overrun)
    seen = watch(jobs, policy, overrun)
    assert found.start_time == seen.start[job]
    length = found.start_time - found.submit_time
    assert sum(phase.end - phase.start for phase in found.phases) == length
    for phase in found.phases:
        inside = [now for now in seen.seen if phase.start <= now < phase.end]
        for now in inside:
            queue, free, _, _ = seen.seen[now]
            assert phase.first == (queue[0] == job)
            assert phase.enough == (free >= jobs[job].processors)
    firsts = [now for now, (queue, *_) in seen.seen.items() if queue and queue[0] == job]
    assert found.first_at == (min(firsts) if firsts else None)


@given(JOBS, st.sampled_from(NAMES), st.data())
@settings(max_examples=100)
def test_expectations_and_reservations(jobs: list[Job], policy: str, data: st.DataObject) -> None:
    job = data.draw(st.integers(0, len(jobs) - 1))
    found = told(jobs, MACHINE, policy, job)
    seen = watch(jobs, policy)
    # The same jobs up to this one, in a simulator that stops at its arrival and goes on as expected.
    clone = naive._Cluster(jobs[: job + 1], MACHINE, naive.POLICIES[policy], "doubling", "instant")
    assert found.expected_start == until_then_as_expected(clone, jobs[job].submit_time, job)
    reserved = [now for now, places in seen.places.items() if job in places]
    if found.phases and policy in ("easy", "easy(2)", "sjbf", "lxf", "lxwf"):
        assert found.reserved_at == (min(reserved) if reserved else None)
        if reserved:
            assert found.reserved_for == seen.places[min(reserved)][job]
    elif found.phases and policy == "conservative":
        assert found.reserved_for == found.expected_start
        if all(other.submit_time != jobs[job].submit_time for other in jobs[job + 1 :]):
            assert found.reserved_for == seen.seen[found.submit_time][3][job]
    else:
        assert found.reserved_at is None
    if found.phases:
        moment = next(t for t in (found.reserved_at, found.first_at, found.submit_time) if t is not None)
        running = seen.seen[moment][2]
        assert sorted(holder.job for holder in found.holders) == sorted(running)


@given(JOBS, st.sampled_from(NAMES))
@settings(max_examples=60)
def test_first_reservations_of_all_jobs(jobs: list[Job], policy: str) -> None:
    run = simulated(jobs, MACHINE, policy)
    each = [told(jobs, MACHINE, policy, job) for job in range(len(jobs))]
    assert [(one.job, one.reserved_at, one.reserved_for) for one in reservations(run)] == [
        (one.job, one.reserved_at, one.reserved_for) for one in each if one.reserved_at is not None
    ]


def until_then_as_expected(cluster: naive._Cluster, now: int, job: int) -> int:
    """Start of the last job when all that run or wait at its arrival end as expected then."""
    while True:
        cluster.now = min(cluster.future_instants() + [each.submit_time for each in cluster.coming])
        if cluster.now == now:
            break
        while (events := cluster.events_now()) or cluster.start_is_planned_now():
            for process in events:
                process()
            cluster.schedule()
    for process in cluster.events_now():
        process()
    # Policies that look at no expected ends have not corrected them.
    for overrun in cluster.overruns_now():
        cluster.correct(overrun)
    twin = cluster.as_expected()
    twin.schedule()
    while job in twin.waiting:
        twin.now = min(time for time in twin.future_instants() if time > twin.now)
        for ended in twin.completions_now():
            twin.complete(ended)
        twin.schedule()
    return twin.start[job]


@given(JOBS, st.sampled_from(NAMES), st.data())
@settings(max_examples=100)
def test_who_overtakes_whom(jobs: list[Job], policy: str, data: st.DataObject) -> None:
    job = data.draw(st.integers(0, len(jobs) - 1))
    found = told(jobs, MACHINE, policy, job)
    seen = watch(jobs, policy)
    cluster = naive._Cluster(jobs, MACHINE, naive.POLICIES[policy], "doubling", "instant")
    cluster.jobs = jobs

    def is_ahead(other: int, now: int) -> bool:
        cluster.now = now
        return cluster.ordered(naive.POLICIES[policy].order, [other, job])[0] == other

    start, submit = seen.start[job], jobs[job].submit_time
    others = [other for other in range(len(jobs)) if other != job]
    assert found.passed_over.tolist() == [
        other
        for other in others
        if jobs[other].submit_time <= start < seen.start[other] and is_ahead(other, start)
    ]
    assert found.overtaken_by.tolist() == [
        other
        for other in others
        if submit <= seen.start[other] < start and not is_ahead(other, seen.start[other])
    ]
    running = [o for o in others if seen.start[o] < submit < seen.start[o] + jobs[o].run_time]
    assert found.free == MACHINE - sum(jobs[other].processors for other in running)
    queued = [o for o in others if (jobs[o].submit_time, o) < (submit, job) and seen.start[o] >= submit]
    assert found.waiting == len(queued)
    assert found.ahead == sum(is_ahead(other, submit) for other in queued)


def test_the_shadow_time_of_the_conformance_case() -> None:
    """The head of `shadow_time` has its place at 10, and job 4 is backfilled past it."""
    case = read_plain("shadow_time")
    head = told(case.jobs, case.processors, "easy", 2)
    assert (head.reserved_for, head.first_at) == (10, head.reserved_at)
    assert head.start_time == 10
    assert head.overtaken_by.tolist() == [3, 5]
    assert [phase.first for phase in head.phases] == [True]
    small = told(case.jobs, case.processors, "easy", 3)
    assert small.start_time == 2
    assert small.passed_over.tolist() == [2]


def test_a_blocked_head_blocks() -> None:
    """In `sjf_blocked_head` job 3 waits although a processor is free."""
    case = read_plain("sjf_blocked_head")
    found = told(case.jobs, case.processors, "sjf", 2)
    assert found.start_time == 20
    assert found.reserved_at is None
    assert found.seconds(first=False, enough=True) > 0


def test_a_reservation_that_early_ends_move_forward() -> None:
    jobs = [Job(0, 10, 100, 8), Job(1, 5, 5, 8)]
    for policy in ("easy", "conservative"):
        found = told(jobs, MACHINE, policy, 1)
        assert (found.reserved_at, found.reserved_for, found.start_time) == (1, 100, 10)
        assert found.freed_by.tolist() == [0]
        (holder,) = found.holders
        assert (holder.job, holder.processors, holder.expected_end, holder.end) == (0, 8, 100, 10)


@pytest.mark.parametrize(
    ("start", "estimate", "now", "overrun", "end"),
    [
        (0, 100, 0, "doubling", 100),
        (0, 100, 99, "doubling", 100),
        (0, 100, 100, "doubling", 200),
        (5, 1, 1005, "doubling", 1029),
        (0, 100, 100, "increments", 160),
        (0, 100, 160, "increments", 460),
        (0, 1, 10_000_000, "increments", 10_039_861),
    ],
)
def test_expected_ends(start: int, estimate: int, now: int, overrun: str, end: int) -> None:
    assert expected_end(start, estimate, now, overrun) == end
    job = Job(start, now + 1, estimate, 1)
    cluster = naive.Cluster(1, naive.POLICIES["easy"], overrun)
    cluster.now = start
    number = cluster.enter(job)
    cluster.begin(number)
    while cluster.expected_end[number] <= now:
        cluster.now = cluster.expected_end[number]
        cluster.correct(number)
    assert cluster.expected_end[number] == end


def test_jobs_that_cannot_be_explained() -> None:
    run = simulated([Job(0, 5, 5, 9), Job(0, 5, 5, 1)], MACHINE, "easy")
    assert explain(run, 1, named_policy("easy")).job == 1
    with pytest.raises(ConfigurationError, match="larger than the cluster"):
        explain(run, 0, named_policy("easy"))
    with pytest.raises(ConfigurationError, match="has 2 jobs"):
        explain(run, 2, named_policy("easy"))
    with pytest.raises(ConfigurationError, match="not that of the run"):
        explain(run, 1, named_policy("fcfs"))
    own = LocalPolicy(name="easy", order=lambda submit_time: -submit_time, backfilling="easy")
    with pytest.raises(ConfigurationError, match="is a function"):
        explain(run, 1, own)


def test_a_run_of_a_cluster_with_its_own_policy_is_explained() -> None:
    jobs = gs.Workload(
        name="example",
        submit_time=np.array([0, 1]),
        run_time=np.array([10, 10]),
        requested_processors=np.array([5, 5]),
    )
    run = simulate(jobs, gs.Cluster(processors=MACHINE, policy="sjf"))
    assert run.attrs["scheme"] == "local"
    assert explain_counted(run, 1, named_policy("sjf")).start_time == 10
    assert (
        explain(run, 1, "sjf").phases == explain(run, 1).phases == explain(run, 1, named_policy("sjf")).phases
    )
    with pytest.raises(ConfigurationError, match="'easy' is not that of the run, 'sjf'"):
        explain(run, 1, "easy")
    with pytest.raises(ConfigurationError, match="unknown policy 'esy'"):
        explain(run, 1, "esy")

"""Explanations of single jobs, held against the plain simulators and against worked examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.explanation import Explanation, expected_end, explain, reservations
from gridsched.nodes import Limit, NodeEvent, NodeType, Partition
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.simulation import simulate
from gridsched.workloads.dependencies import dependency_table
from tests.oracles import nodes as oracle
from tests.oracles import orders
from tests.oracles.conformance import read_plain
from tests.oracles.grid import Grid
from tests.oracles.local import POLICIES as NAMED
from tests.oracles.local import CountedProcessors, Job
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.node_cases import CAPABILITIES, Case, some_case
from tests.support.nodes import jobs_of, workload_of

COMPLETED, REJECTED, GAVE_UP, NEVER_ELIGIBLE, LOST, STARVED = range(6)
NAMES = ("fcfs", "ff", "sjf", "easy", "easy(2)", "sjbf", "lxf", "lxwf", "conservative")
MACHINE = 8


def simulated(jobs: list[Job], processors: int, policy: str, overrun: str = "doubling") -> Any:
    return simulate(workload_of(jobs), gs.Cluster(processors=processors), policy, overrun=overrun)  # type: ignore[arg-type]


def told(jobs: list[Job], processors: int, policy: str, job: int, overrun: str = "doubling") -> Explanation:
    return explain(simulated(jobs, processors, policy, overrun), job, named_policy(policy))


class Watched(CountedProcessors):
    """The plain simulator, which notes what it sees after the last pass of each instant."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.seen: dict[int, tuple[list[int], int, list[int], dict[int, int]]] = {}
        self.places: dict[int, dict[int, int]] = {}

    def schedule(self) -> None:
        super().schedule()
        queue = self.queue()
        planned = {job: time for job, (time, _) in self.planned.items()}
        self.seen[self.now] = (queue, self.free(), list(self.running), planned)
        self.places[self.now] = {}
        if self.policy.backfilling == "easy":
            for job in queue[: self.policy.reservations]:
                self.plan(job)
            self.places[self.now] = {job: time for job, (time, _) in self.planned.items()}
            self.planned = {}


def watch(jobs: list[Job], policy: str, overrun: str = "doubling") -> Watched:
    return Watched(jobs, MACHINE, NAMED[policy], overrun=overrun).simulate()


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
    assert found.start_time == seen.first_start[job]
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
def test_delays_follow_from_who_runs(jobs: list[Job], policy: str, data: st.DataObject) -> None:
    """At every second of the wait, from starts and ends alone."""
    job = data.draw(st.integers(0, len(jobs) - 1))
    found = told(jobs, MACHINE, policy, job)
    start, end = (found.run[f"{name}_time"].values.tolist() for name in ("start", "end"))
    size = [each.processors for each in jobs]
    assert sum(each.end - each.start for each in found.delays) == found.wait_time
    for delay in found.delays:
        for now in range(delay.start, delay.end):
            running = {k for k in range(len(jobs)) if start[k] <= now < end[k]}
            free = MACHINE - sum(size[k] for k in running)
            assert (delay.kind == "kept") == (free >= size[job])
            if delay.kind == "kept":
                continue
            came = {k for k in running if k > job or k in found.overtaken_by}
            late = {k for k in running - came if start[k] + jobs[k].estimate <= now}
            kinds = {"overtaken": came, "late": late, "both": came | late}
            fits = (kind for kind, gone in kinds.items() if free + sum(size[k] for k in gone) >= size[job])
            assert delay.kind == next(fits, "before")
            assert set(delay.jobs) == kinds.get(delay.kind, running - came - late)


@given(JOBS, st.sampled_from(NAMES), st.data())
@settings(max_examples=100)
def test_expectations_and_reservations(jobs: list[Job], policy: str, data: st.DataObject) -> None:
    job = data.draw(st.integers(0, len(jobs) - 1))
    found = told(jobs, MACHINE, policy, job)
    seen = watch(jobs, policy)
    # The same jobs up to this one, in a simulator that stops at its arrival and goes on as expected.
    clone = CountedProcessors(jobs[: job + 1], MACHINE, NAMED[policy])
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


def until_then_as_expected(cluster: CountedProcessors, now: int, job: int) -> float:
    """Start of the last job when all that run or wait at its arrival end as expected then."""
    while (time := min(cluster.users.times() + cluster.times())) < now:
        cluster.now = time
        cluster.instant()
    cluster.now = now
    cluster.finish()
    for j in cluster.outrun():
        cluster.correct(j)
    for j in cluster.users.enter(now):
        if j != job:
            cluster.enter(j)
    return cluster.predicted_start(job)


@given(JOBS, st.sampled_from(NAMES), st.data())
@settings(max_examples=100)
def test_who_overtakes_whom(jobs: list[Job], policy: str, data: st.DataObject) -> None:
    job = data.draw(st.integers(0, len(jobs) - 1))
    found = told(jobs, MACHINE, policy, job)
    seen = watch(jobs, policy)
    cluster = CountedProcessors(jobs, MACHINE, NAMED[policy])
    cluster.entry = {job: job for job in range(len(jobs))}

    def is_ahead(other: int, now: int) -> bool:
        cluster.now = now
        return cluster.ordered(NAMED[policy].order, [other, job])[0] == other

    start, submit = seen.first_start[job], jobs[job].submit_time
    others = [other for other in range(len(jobs)) if other != job]
    assert found.passed_over.tolist() == [
        other
        for other in others
        if jobs[other].submit_time <= start < seen.first_start[other] and is_ahead(other, start)
    ]
    assert found.overtaken_by.tolist() == [
        other
        for other in others
        if submit <= seen.first_start[other] < start and not is_ahead(other, seen.first_start[other])
    ]
    running = [o for o in others if seen.first_start[o] < submit < seen.first_start[o] + jobs[o].run_time]
    assert found.free == MACHINE - sum(jobs[other].processors for other in running)
    queued = [o for o in others if (jobs[o].submit_time, o) < (submit, job) and seen.first_start[o] >= submit]
    assert found.waiting == len(queued)
    assert found.ahead == sum(is_ahead(other, submit) for other in queued)


SHADOW, BLOCKED = read_plain("shadow_time"), read_plain("sjf_blocked_head")
EARLY = [Job(0, 10, 100, 8), Job(1, 5, 5, 8)]


@pytest.mark.parametrize(
    ("jobs", "processors", "policy", "job", "expected"),
    [
        # The head has its place at 10, and job 4 is backfilled past it
        (
            SHADOW.jobs,
            SHADOW.processors,
            "easy",
            2,
            {"reserved_for": 10, "start_time": 10, "overtaken_by": [3, 5]},
        ),
        (SHADOW.jobs, SHADOW.processors, "easy", 3, {"start_time": 2, "passed_over": [2]}),
        # A blocked head blocks: the job waits although a processor is free
        (BLOCKED.jobs, BLOCKED.processors, "sjf", 2, {"start_time": 20, "reserved_at": None}),
        # A reservation that early ends move forward
        *(
            (
                EARLY,
                MACHINE,
                policy,
                1,
                {"reserved_at": 1, "reserved_for": 100, "start_time": 10, "freed_by": [0]},
            )
            for policy in ("easy", "conservative")
        ),
    ],
)
def test_explanations_by_hand(
    jobs: list[Job], processors: int, policy: str, job: int, expected: dict[str, Any]
) -> None:
    assert_fields(told(jobs, processors, policy, job), **expected)


def test_phases_and_holders_by_hand() -> None:
    head = told(SHADOW.jobs, SHADOW.processors, "easy", 2)
    assert head.first_at == head.reserved_at
    assert [phase.first for phase in head.phases] == [True]
    assert told(BLOCKED.jobs, BLOCKED.processors, "sjf", 2).seconds(first=False, enough=True) > 0
    (holder,) = told(EARLY, MACHINE, "easy", 1).holders
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
    assert start + orders.corrected(estimate, now - start, overrun) == end


COUNTED = simulated([Job(0, 5, 5, 9), Job(0, 5, 5, 1)], MACHINE, "easy")
OWN = LocalPolicy(name="easy", order=lambda submit_time: -submit_time, backfilling="easy")


@pytest.mark.parametrize(
    ("job", "policy", "complaint"),
    [
        (0, named_policy("easy"), "larger than the cluster"),
        (2, named_policy("easy"), "has 2 jobs"),
        (1, named_policy("fcfs"), "not that of the run"),
        (1, OWN, "is a function"),
        (1, "fcfs", "'fcfs' is not that of the run, 'easy'"),
        (1, "esy", "unknown policy 'esy'"),
    ],
)
def test_jobs_that_cannot_be_explained(job: int, policy: Any, complaint: str) -> None:
    assert explain(COUNTED, 1, named_policy("easy")).job == 1
    with refused(complaint):
        explain(COUNTED, job, policy)


def test_a_policy_of_the_same_name_is_not_that_of_the_run() -> None:
    own = LocalPolicy(name="easy", order="shortest", backfilling="easy")
    run = simulate(jobs_of(submit_time=[0, 1], run_time=[9, 9], requested_processors=[5, 5]), MACHINE, own)
    with refused("which is of the same name; give policy=LocalPolicy(name='easy', order='shortest'"):
        explain(run, 1)
    with refused("which is of the same name"):
        gs.forecast(run, 5, adjust=0)
    assert explain(run, 1, own).job == 1
    assert gs.forecast(run, 5, policy=own, adjust=0).sizes["job"] == 1


def test_runs_of_grids_cannot_be_explained() -> None:
    jobs = jobs_of(submit_time=[0, 1], run_time=[10, 10], requested_processors=[5, 5])
    clusters = [gs.Cluster(processors=MACHINE, name=name) for name in "ab"]
    for scheduler in ("easy", "central"):
        run = simulate([jobs, jobs], clusters, scheduler)
        with refused("explain a run of a local policy on one cluster"):
            explain(run, 1)


def test_a_run_of_a_cluster_with_its_own_policy_is_explained() -> None:
    jobs = jobs_of(submit_time=[0, 1], run_time=[10, 10], requested_processors=[5, 5])
    run = simulate(jobs, gs.Cluster(processors=MACHINE, policy="sjf"))
    assert run.attrs["scheme"] == "local"
    found = [explain(run, 1, named_policy("sjf")), explain(run, 1, "sjf"), explain(run, 1)]
    assert found[0].start_time == 10
    assert found[0].phases == found[1].phases == found[2].phases


# --- on nodes -------------------------------------------------------------------------------------


def told_on_nodes(run: xr.Dataset, job: int) -> Explanation:
    found = gs.explain(run, job)
    assert not found.counted
    return found


def parts(found: Explanation) -> list[tuple[int, int, tuple[str, ...]]]:
    return [(phase.start, phase.end, phase.reasons) for phase in found.phases]


# --- reasons, by hand -----------------------------------------------------------------------------

TWO: dict[str, Any] = {
    "submit_time": [0, 5],
    "run_time": [100, 10],
    "requested_time": [100, 10],
    "requested_processors": [4, 4],
    "user": [1, 1],
}
ONE_NODE = {"nodes": [NodeType(cores=8, memory=8, gpus=2)]}
MEBIBYTE = 1024


@pytest.mark.parametrize(
    ("columns", "cluster", "expected"),
    [
        ({"requested_processors": [6, 4]}, ONE_NODE, [(5, 100, ("cores",))]),
        ({"requested_memory": [2 * MEBIBYTE, MEBIBYTE]}, ONE_NODE, [(5, 100, ("memory",))]),
        ({"requested_gpus": [1, 2]}, ONE_NODE, [(5, 100, ("gpus",))]),
        ({"gpu_share": [600, 600]}, {"nodes": [NodeType(cores=8, gpus=1)]}, [(5, 100, ("gpus",))]),
        (
            {"requested_processors": [8, 4], "requested_gpus": [2, 1]},
            ONE_NODE,
            [(5, 100, ("cores", "gpus"))],
        ),
        ({}, {"nodes": [NodeType(cores=8)], "node_exclusive": True}, [(5, 100, ("nodes",))]),
        ({}, {"nodes": [NodeType(cores=8)], "limits": [Limit(jobs=1)]}, [(5, 100, ("limit",))]),
        ({}, {"nodes": [NodeType(cores=8)], "limits": [Limit(processors=7)]}, [(5, 100, ("limit",))]),
        ({}, {"nodes": [NodeType(cores=8)], "limits": [Limit(processor_minutes=7)]}, [(5, 100, ("limit",))]),
        ({"array": [3, 3], "array_limit": [1, 1]}, {"processors": 8}, [(5, 100, ("limit",))]),
        (
            {},
            {
                "nodes": [NodeType(cores=4, name="a"), NodeType(cores=4, name="b")],
                "partitions": [Partition(number=1, nodes=["a"])],
            },
            [(5, 100, ("partition",))],
        ),
        (
            {},
            {
                "nodes": [NodeType(cores=8)],
                "events": [NodeEvent(time=0, kind="maintenance", start=105, end=110)],
            },
            [],
        ),
        (
            {"requested_time": [100, 101]},
            {
                "nodes": [NodeType(cores=8)],
                "events": [NodeEvent(time=0, kind="maintenance", start=105, end=110)],
            },
            [(5, 110, ("maintenance",))],
        ),
        (
            {"submit_time": [0, 5], "run_time": [3, 10]},
            {
                "nodes": [NodeType(cores=8)],
                "events": [NodeEvent(time=4, kind="drain"), NodeEvent(time=60, kind="resume")],
            },
            [(5, 60, ("outage",))],
        ),
        (
            {"submit_time": [0, 5], "run_time": [3, 10]},
            {
                "nodes": [NodeType(cores=8)],
                "events": [NodeEvent(time=4, kind="down"), NodeEvent(time=60, kind="up")],
            },
            [(5, 60, ("outage",))],
        ),
        (
            {"dependencies": dependency_table([(1, 0, "afterok", 7)])},
            {"nodes": [NodeType(cores=8)]},
            [(5, 107, ("dependency",))],
        ),
        ({"requested_processors": [4, 4]}, {"nodes": [NodeType(cores=8)]}, []),
    ],
)
def test_reasons(columns: dict[str, Any], cluster: dict[str, Any], expected: list[Any]) -> None:
    """The second job waits for the first, or for nodes."""
    run = gs.simulate(jobs_of(**{**TWO, **columns}), gs.Cluster(**cluster), "easy")
    gs.verify(run)
    found = told_on_nodes(run, 1)
    assert parts(found) == expected
    assert found.starts == (expected[0][1] if expected else 5,)
    assert found.wait_time == sum(end - start for start, end, _ in expected)


def test_enough_of_all_but_not_on_the_same_nodes() -> None:
    """A node has GPUs and no processors left, the other processors and no GPU."""
    jobs = jobs_of(
        submit_time=[0, 0, 1],
        run_time=[50, 80, 10],
        requested_time=[50, 80, 10],
        requested_processors=[4, 4, 2],
        requested_gpus=[-1, 1, 1],
        requested_memory=[-1, 512, -1],
    )
    kinds = [NodeType(cores=4, gpus=1, memory=0, name="a"), NodeType(cores=8, gpus=1, memory=8, name="b")]
    run = gs.simulate(jobs, gs.Cluster(nodes=kinds), "easy")
    gs.verify(run)
    found = told_on_nodes(run, 2)
    assert parts(found) == [(1, 50, ("together",))]
    assert_fields(found, freed_by=[0], nodes=(0,))


@pytest.mark.parametrize("cluster", [{"processors": 4}, {"nodes": [NodeType(cores=4)]}])
def test_who_had_the_place_of_a_job_by_time(cluster: dict[str, Any]) -> None:
    """The first job is a minute late; the third takes the place of the second for two hours."""
    jobs = jobs_of(
        submit_time=[0, 5, 10],
        run_time=[160, 10, 7200],
        requested_time=[100, 10, 7200],
        requested_processors=[3, 4, 1],
    )
    found = gs.explain(gs.simulate(jobs, gs.Cluster(**cluster), "ff"), 1)
    held = [(each.start, each.end, each.kind, each.jobs) for each in found.delays]
    assert held == [
        (5, 10, "before", (0,)),
        (10, 100, "before", (0,)),
        (100, 160, "both", (0, 2)),
        (160, 7210, "overtaken", (2,)),
    ]
    assert found.delayed("overtaken") == {2: 7050}
    assert "came later, or overtook it" in str(found)


def test_a_missed_reservation_is_put_down_to_those_who_had_the_place() -> None:
    """The first job is a minute late; then short jobs that came later go first under lxf."""
    jobs = jobs_of(
        submit_time=[0, 1, 50, 60],
        run_time=[160, 1000, 300, 10],
        requested_time=[100, 1000, 300, 10],
        requested_processors=[4, 4, 4, 4],
    )
    found = gs.explain(gs.simulate(jobs, 4, "lxf"), 1)
    assert (found.reserved_for, found.start_time) == (100, 470)
    assert found.delayed("overtaken") == {2: 300, 3: 10}
    assert (
        "its place had for 5 min 10 s jobs that came later, or overtook it, for 1 min jobs that ran longer"
        in str(found)
    )


def test_jobs_ahead() -> None:
    """The third would fit, but the second is first in the queue and keeps the nodes; then it waits itself."""
    jobs = jobs_of(
        submit_time=[0, 1, 2, 3],
        run_time=[50, 20, 60, 10],
        requested_time=[50, 20, 60, 10],
        requested_processors=[6, 8, 2, 2],
    )
    run = gs.simulate(jobs, gs.Cluster(nodes=[NodeType(cores=8)]), "easy")
    assert run["start_time"].values.tolist() == [0, 50, 70, 3]
    found = told_on_nodes(run, 2)
    assert parts(found) == [
        (2, 3, ("queue",)),
        (3, 13, ("cores",)),
        (13, 50, ("queue",)),
        (50, 70, ("cores",)),
    ]
    assert found.phases[0].ahead == (1,)
    assert found.seconds("queue") == 38
    fcfs = gs.simulate(jobs, gs.Cluster(nodes=[NodeType(cores=8)]), "sjf")
    assert told_on_nodes(fcfs, 1).phases[0].ahead == ()


def test_partitions_of_higher_priority_are_ahead() -> None:
    jobs = jobs_of(
        submit_time=[0, 1, 2],
        run_time=[50, 20, 20],
        requested_processors=[4, 4, 4],
        partition=[0, 0, 1],
    )
    partitions = [Partition(number=0), Partition(number=1, priority=1)]
    cluster = gs.Cluster(nodes=[NodeType(cores=4)], partitions=partitions)
    run = gs.simulate(jobs, cluster, "fcfs")
    assert [phase.ahead for phase in told_on_nodes(run, 1).phases] == [()]
    assert told_on_nodes(run, 2).phases[0].ahead == ()
    run = gs.simulate(replace(jobs, submit_time=np.array([0, 2, 2])), cluster, "fcfs")
    assert told_on_nodes(run, 1).phases[0].ahead == (2,)


def test_killed_jobs_wait_again() -> None:
    events = [NodeEvent(time=50, kind="down"), NodeEvent(time=70, kind="up")]
    cluster = gs.Cluster(nodes=[NodeType(cores=4)], events=events, requeue="end")
    run = gs.simulate(jobs_of(**TWO), cluster, "fcfs")
    killed = told_on_nodes(run, 0)
    assert killed.starts == (0, 80)
    assert parts(killed) == [(50, 70, ("outage",)), (70, 80, ("cores",))]
    # it waits at the end of the queue now
    assert killed.phases[0].ahead == (1,)


def test_jobs_that_never_ran() -> None:
    jobs = jobs_of(
        submit_time=[0, 1, 2, 3, 4],
        run_time=[100] * 5,
        requested_processors=[4, 4, 99, 4, 1],
        gives_up_time=[-1, 31, -1, 20, -1],
        status=[0, 1, 1, 1, 1],
        dependencies=dependency_table([(3, 0, "afterany"), (4, 0, "afterok")]),
    )
    run = gs.simulate(jobs, gs.Cluster(nodes=[NodeType(cores=4)]), "easy")
    assert_fields(run, fate=[COMPLETED, GAVE_UP, REJECTED, GAVE_UP, NEVER_ELIGIBLE])
    second, fourth, fifth = (told_on_nodes(run, job) for job in (1, 3, 4))
    assert parts(second) == [(1, 31, ("cores",))]
    assert_fields(second, starts=(), freed_by=[])
    # its user gave up before what it waited for was over
    assert parts(fourth) == [(3, 20, ("dependency",))]
    assert_fields(fourth, eligible_time=-1, depends_on=(0,))
    assert parts(fifth) == []
    assert fifth.depends_on == (0,)
    for ask, complaint in (
        (lambda: gs.explain(run, 2), "rejected"),
        (lambda: gs.explain(run, 5), "5 jobs"),
        (lambda: reservations(run), "reservations"),
    ):
        with refused(complaint):
            ask()


# --- reasons, random cases ------------------------------------------------------------------------


class WatchedNodes(oracle.Simulation):
    """The plain simulator, which notes at each instant why each waiting job does not run."""

    def instant(self) -> None:
        super().instant()
        # after jobs without run time there is another pass at the same instant
        for seen in self.seen.values():
            seen.pop(self.now, None)
        for j in self.waiting:
            self.seen.setdefault(j, {})[self.now] = (self.why(j), self.ahead_of(j))

    seen: dict[int, dict[int, tuple[tuple[str, ...], tuple[int, ...]]]]

    def ahead_of(self, j: int) -> tuple[int, ...]:
        queue = self.queue()
        return tuple(queue[: queue.index(j)])

    def why(self, j: int) -> tuple[str, ...]:
        kept = self.planned, self.windows, self.down, self.drained, self.jobs[j]
        self.planned = {}
        found = self._why(j)
        self.planned, self.windows, self.down, self.drained, self.jobs[j] = kept
        return found

    def _why(self, j: int) -> tuple[str, ...]:
        job, windows, down, drained = self.jobs[j], self.windows, self.down, self.drained
        if not self.within_limits(j):
            return ("limit",)
        if self.fits(j, self.now):
            return ("queue",)
        self.windows = []
        if self.fits(j, self.now):
            return ("maintenance",)
        self.down, self.drained = set(), set()
        if self.fits(j, self.now):
            return ("outage",)
        self.windows, self.down, self.drained = windows, down, drained
        self.allowed.append(set(range(len(self.nodes))))
        self.jobs[j] = replace(job, where=len(self.allowed) - 1)
        elsewhere = self.fits(j, self.now)
        self.allowed.pop()
        if elsewhere:
            return ("partition",)
        nothing: dict[str, Any] = {"cores": 0, "memory": 0, "gpus": 0, "share": 0, "whole": False}
        alone: dict[str, tuple[str, ...]] = {
            "nodes": ("whole",),
            "cores": ("cores",),
            "memory": ("memory",),
            "gpus": ("gpus", "share"),
        }
        short = []
        if not job.whole:
            del alone["nodes"]
        for name, fields in alone.items():
            self.jobs[j] = replace(job, **{**nothing, **{each: getattr(job, each) for each in fields}})
            if not self.fits(j, self.now):
                short.append(name)
        return ("nodes",) if "nodes" in short else tuple(short) or ("together",)


def watched(case: Case) -> WatchedNodes:
    """The plain simulator of a case of one cluster, which has run."""
    (site,) = case.sites
    jobs = [replace(each.job, **each.asked[0]) for each in case.jobs]
    known: dict[str, Any] = {"allowed": site.allowed, "either": site.either, "numbered": site.numbered}
    known |= {"events": site.events, "limits": site.limits}
    made, grid = WatchedNodes(site.nodes, jobs, site.policy, **known), Grid(case.jobs, case.sites)
    made.users.fate |= {j: "rejected" for j in range(len(jobs)) if not grid.fits(j, 0)}
    made.seen = {}
    return made.simulate()


@pytest.mark.random_cases(50)
def test_reasons_are_those_that_the_plain_simulator_sees(seed: int) -> None:
    case = some_case(seed, CAPABILITIES[:-1], most_clusters=1, number=(10, 30))
    run = gs.simulate(case.workload, case.platform, "local", overrun=case.overrun)
    gs.verify(run)
    seen = watched(case)
    assert run["start_time"].values.tolist() == seen.first_start
    for job in np.flatnonzero(run["fate"].values != REJECTED).tolist():
        found = gs.explain(run, job, case.platform.policies[0])
        assert not found.counted
        starts = run["segment_start"].values[run["segment_job"].values == job]
        assert found.starts == tuple(sorted(starts.tolist()))
        in_queue = [phase for phase in found.phases if phase.reasons != ("dependency",)]
        for now, (reasons, ahead) in seen.seen.get(job, {}).items():
            if now >= int(run["segment_end"].values.max(initial=0)):
                continue
            (phase,) = [each for each in in_queue if each.start <= now < each.end]
            assert phase.reasons == reasons, (seed, job, now)
            if phase.start == now:
                assert phase.ahead == ahead, (seed, job, now)
        # nobody waits in phases who does not wait in the plain simulator
        for phase in in_queue:
            assert any(now <= phase.start for now in seen.seen[job]), (seed, job, phase)


def test_what_ended_on_another_cluster_freed_no_place() -> None:
    first = jobs_of(submit_time=[0, 1], run_time=[100, 10], requested_processors=[4, 4])
    other = jobs_of(submit_time=[0], run_time=[100], requested_processors=[1])
    clusters = [gs.Cluster(name=name, nodes=[NodeType(cores=4, name=name)]) for name in "ab"]
    found = explain(simulate([first, other], clusters, "easy"), 2)
    assert found.freed_by.tolist() == [0]

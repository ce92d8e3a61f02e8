"""Dynamic grids whose nodes fail, whose users give up, whose jobs wait for others: against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine import job_lifecycle as engine_lifecycles
from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import JOB
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.systems.dynamic_grid.graphs import graph_of_edges
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.membership import Stay
from gridsched.systems.dynamic_grid.planning import GRID, DynamicSchedule, schedule_dynamic_grid
from gridsched.systems.dynamic_grid.rules import dynamic_violations
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.systems.job_outcomes import outages_of
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.dependencies import DEPENDENCY
from tests.oracles.dynamic_grid import DynamicJob, Life, Outage, Repairs
from tests.oracles.local import POLICIES as NAIVE_POLICIES
from tests.oracles.users import NEVER
from tests.support.engine import KINDS, lifecycles
from tests.systems.dynamic_grid.test_scheduler import (
    COMPOSED,
    SIMPLE,
    Case,
    cases,
    changed,
    job,
    local_policy,
    names_of,
    of_engine,
    of_oracle,
    oracle,
)

FATES = {
    "completed": Fate.COMPLETED,
    "rejected": Fate.REJECTED,
    "gave up": Fate.GAVE_UP,
    "never eligible": Fate.NEVER_ELIGIBLE,
    "lost": Fate.LOST,
}


class FailureCase(NamedTuple):
    """A grid whose clusters fail, and what its jobs live through."""

    case: Case
    clusters: list[Cluster]
    lifecycles: list[Life]
    local: str


@st.composite
def node_events(draw: st.DrawFn, nodes: int) -> list[NodeEvent]:
    """What happens to the nodes of a cluster; now and then to all of them at once."""
    events: list[NodeEvent] = []
    times = st.integers(0, 60)
    name = st.sampled_from([*(f"node{k}" for k in range(nodes)), "*"])
    for _ in range(draw(st.integers(1, 4))):
        node, begin = draw(name), draw(times)
        kinds = draw(
            st.sampled_from([("down", "up"), ("down", "up"), ("drain", "resume"), ("maintenance", "")])
        )
        length = draw(st.sampled_from([0, 1, 5, 20]))
        if kinds[0] == "maintenance":
            start = begin + draw(st.sampled_from([0, 1, 4, 10, 30]))
            window = {"start": start, "end": start + length + 1}
            events.append(NodeEvent(time=begin, node=node, kind="maintenance", **window))
            continue
        events.append(NodeEvent(time=begin, node=node, kind=kinds[0]))  # type: ignore[arg-type]
        if draw(st.integers(0, 5)):
            events.append(NodeEvent(time=begin + length, node=node, kind=kinds[1]))  # type: ignore[arg-type]
    return events


@st.composite
def failure_cases(draw: st.DrawFn, *, fails: bool, jobs_live: bool) -> FailureCase:
    """Small grids as those of `cases`, with failures, or users who give up and dependencies, or both."""
    case = draw(cases(alike=draw(st.booleans())))
    clusters = []
    for i, processors in enumerate(case.processors):
        node = case.nodes[i]
        per_node = node if node > 1 else draw(st.sampled_from([k for k in (1, 2, 3) if processors % k == 0]))
        events = draw(node_events(processors // per_node)) if fails and draw(st.integers(0, 3)) else []
        clusters.append(
            Cluster(
                name=f"c{i}",
                processors=processors,
                processors_per_node=per_node,
                node_exclusive=node > 1,
                speed=float(case.speeds[i]),
                events=events,
                requeue=draw(st.sampled_from(["place", "place", "end", "lost"])),
                checkpoint_interval=draw(st.sampled_from([0, 0, 1, 3, 7])),
                checkpoint_cost=draw(st.sampled_from([0, 1, 2])),
            )
        )
    lifecycles = []
    for j, each in enumerate(case.jobs):
        gives_up = NEVER
        needs: list[tuple[int, str, int]] = []
        if jobs_live:
            gives_up = draw(st.sampled_from([NEVER, NEVER, each.submit_time + draw(st.integers(-2, 20))]))
            others = draw(st.lists(st.integers(0, j - 1), max_size=2, unique=True)) if j else []
            if draw(st.booleans()):
                delays = st.sampled_from([0, 0, 3])
                needs = [(on, draw(st.sampled_from(list(KINDS))), draw(delays)) for on in others]
        lifecycles.append(Life(max(gives_up, 0), jobs_live and draw(st.integers(0, 4)) == 4, tuple(needs)))
    local = draw(
        st.sampled_from(["fcfs", "easy", "conservative"]) | st.sampled_from([*NAIVE_POLICIES, *COMPOSED])
    )
    return FailureCase(case, clusters, lifecycles, local)


def life_records(case: Case, lives: Sequence[Life]) -> engine_lifecycles.Lifecycles:
    """Lifecycles as the engine has them."""
    jobs = zip(case.jobs, lives, strict=True)
    return lifecycles([life._replace(submit=job.submit_time) for job, life in jobs], ())


def scheduled(failing: FailureCase) -> tuple[DynamicSchedule, engine_lifecycles.Lifecycles]:
    case = failing.case
    names = names_of(len(case.processors))
    lives = life_records(case, failing.lifecycles)
    done = schedule_dynamic_grid(
        np.array([(j.submit_time, j.run_time, j.estimate, j.processors) for j in case.jobs], JOB),
        np.array([GRID if j.home is None else j.home for j in case.jobs], np.int64),
        failing.clusters,
        graph_of_edges(names, [(names[i], names[j]) for i, j in case.edges]),
        case.options,
        case.membership,
        policies=[local_policy(failing.local)] * len(names),
        overrun=case.overrun,
        lifecycles=lives,
    )
    return done, lives


def naive_outages(clusters: Sequence[Cluster]) -> list[Outage]:
    rows = outages_of(tuple(clusters))
    return [Outage._make(row[: len(Outage._fields)]) for row in rows.tolist()]


def naive_repairs(clusters: Sequence[Cluster]) -> list[Repairs]:
    """How clusters whose nodes fail treat jobs that are killed."""
    return [
        Repairs(
            each.requeue, each.checkpoint_interval, each.checkpoint_cost if each.checkpoint_interval else 0
        )
        if each.events
        else Repairs()
        for each in clusters
    ]


@pytest.mark.parametrize(("fails", "jobs_live"), [(True, False), (False, True), (True, True)])
@given(data=st.data())
@settings(max_examples=120)
def test_engine_equals_the_oracle(fails: bool, jobs_live: bool, data: st.DataObject) -> None:
    failing = data.draw(failure_cases(fails=fails, jobs_live=jobs_live))
    naive = oracle(
        failing.case,
        failing.local,
        lifecycles=failing.lifecycles,
        outages=naive_outages(failing.clusters),
        repairs=naive_repairs(failing.clusters),
    )
    done, lives = scheduled(failing)
    assert of_engine(done, naive) == of_oracle(naive)
    fates = [naive.users.fate.get(j, "completed") for j in range(len(naive.states))]
    assert lives.jobs["fate"].tolist() == [int(FATES[fate]) for fate in fates]
    assert done.grid.progress["killed"].tolist() == [state.killed for state in naive.states]
    entered = np.array([state.entry > 0 for state in naive.states], np.bool_)
    eligible: Any = lives.jobs["eligible"][entered]
    assert eligible.tolist() == [naive.users.eligible(j) for j in np.flatnonzero(entered).tolist()]


# --- whole runs -----------------------------------------------------------------------------------


def workload_of(failing: FailureCase, own: Sequence[int]) -> Workload:
    """Some of the jobs, with those of their dependencies that are among them."""
    jobs, lifecycles = [failing.case.jobs[j] for j in own], [failing.lifecycles[j] for j in own]
    needs = [
        (own.index(j), own.index(on), int(KINDS[kind]), delay)
        for j, life in zip(own, lifecycles, strict=True)
        for on, kind, delay in life.after
        if on in own
    ]
    table = np.zeros(len(needs), DEPENDENCY)
    for name, values in zip(("job", "on", "kind", "delay"), zip(*needs, strict=True), strict=False):
        table[name] = values
    return Workload(
        name="users",
        submit_time=np.array([each.submit_time for each in jobs]),
        run_time=np.array([each.run_time for each in jobs]),
        requested_time=np.array([each.estimate for each in jobs]),
        requested_processors=np.array([each.processors for each in jobs]),
        status=np.array([0 if life.failed else 1 for life in lifecycles]),
        gives_up_time=np.array([-1 if life.gives_up == NEVER else life.gives_up for life in lifecycles]),
        dependencies=table,
    )


def run_of(failing: FailureCase) -> xr.Dataset:
    """The run of a case with all that a run says."""
    case = failing.case
    homes = [*range(len(failing.clusters)), None]
    own = [[j for j, each in enumerate(case.jobs) if each.home == home] for home in homes]
    workloads = [workload_of(failing, jobs) if jobs else None for jobs in own]
    names = names_of(len(failing.clusters))
    links = graph_of_edges(names, [(names[i], names[j]) for i, j in case.edges])
    platform = Platform(failing.clusters, links=links, membership=case.membership)
    return simulate(workloads, platform, case.options, align="none")


@given(data=st.data())
@settings(max_examples=60)
def test_runs_keep_all_rules(data: st.DataObject) -> None:
    failing = data.draw(failure_cases(fails=True, jobs_live=True).filter(lambda each: bool(each.case.jobs)))
    options = replace(
        failing.case.options,
        stop_factor=data.draw(st.sampled_from([None, 1.0, 1.5])),
        grid_share=data.draw(st.sampled_from([0.0, 0.5])),
    )
    run = run_of(failing._replace(case=failing.case._replace(options=options)))
    verify(run)
    DynamicGrid.measures(run)


# --- worked examples ------------------------------------------------------------------------------


def down(time: int, node: str = "node0", back: int | None = None) -> list[NodeEvent]:
    events = [NodeEvent(time=time, node=node, kind="down")]
    return events if back is None else [*events, NodeEvent(time=back, node=node, kind="up")]


def small(
    jobs: list[DynamicJob],
    events: Sequence[Sequence[NodeEvent]],
    options: DynamicGrid = SIMPLE,
    lifecycles: Sequence[Life] = (),
    edges: frozenset[tuple[int, int]] = frozenset({(0, 1)}),
    **cluster: Any,
) -> xr.Dataset:
    """A verified run on clusters of four processors, a node each."""
    clusters = [Cluster(name=f"c{i}", processors=4, events=own, **cluster) for i, own in enumerate(events)]
    case = Case(jobs, [4] * len(clusters), set(edges) if len(clusters) > 1 else set(), {}, options)
    run = run_of(FailureCase(case, clusters, list(lifecycles) or [Life()] * len(jobs), "fcfs"))
    verify(run)
    return run


def executions(run: xr.Dataset) -> list[tuple[int, ...]]:
    """Cluster, start, end and whether it was killed, of each segment."""
    names = ("cluster", "start", "end", "killed")
    return sorted(zip(*(run[f"segment_{name}"].values.tolist() for name in names), strict=True))


def test_conformance_killed_local_job_goes_on_from_its_checkpoint() -> None:
    """Checkpoints are at 3 and 7 s, a second each; at 9 s, 6 of 10 s of work are saved."""
    saving: dict[str, Any] = {"checkpoint_interval": 3, "checkpoint_cost": 1}
    run = small([job(0, 10, 2, 0)], [down(9, back=9)], replace(SIMPLE, delta_t=None), **saving)
    assert executions(run) == [(0, 0, 9, 1), (0, 9, 14, 0)]
    assert run["lost_work"].values.tolist() == [2 * 3]


@pytest.mark.parametrize(
    ("requeue", "ends"), [("place", [13, 14, 19]), ("end", [13, 28, 18]), ("lost", [13, 3, 18])]
)
def test_conformance_place_of_a_killed_local_job(requeue: Any, ends: list[int]) -> None:
    """The first two jobs share the cluster; a processor of the second one is out from 3 to 4 s."""
    jobs = [job(0, 13, 2, 0), job(0, 10, 2, 0), job(1, 5, 4, 0)]
    run = small(jobs, [down(3, "node2", back=4)], replace(SIMPLE, delta_t=None), requeue=requeue)
    assert run["end_time"].values.tolist() == ends
    assert run["fate"].values[1] == (Fate.LOST if requeue == "lost" else Fate.COMPLETED)


@pytest.mark.parametrize(("interval", "end"), [(0, 25), (2, 21)])
def test_conformance_grid_job_that_loses_its_site_goes_on_elsewhere(interval: int, end: int) -> None:
    """From its last checkpoint, after 4 s of work, or anew."""
    run = small([job(0, 20, 4)], [down(5), []], checkpoint_interval=interval)
    assert executions(run) == [(0, 0, 5, 1), (1, 5, end, 0)]


def test_conformance_grid_job_keeps_what_it_had_done_before_it_moved() -> None:
    """A local job makes it move after 5 s, its new site fails at 8 s, and the local job ends at 15 s."""
    jobs = [job(0, 20, 4), job(5, 10, 4, 0)]
    options = replace(SIMPLE, prefer="migrate")
    run = small(jobs, [[], down(8)], options)
    assert executions(run) == [(0, 0, 5, 0), (0, 5, 15, 0), (0, 15, 30, 0), (1, 5, 8, 1)]
    anew = small(jobs, [[], down(8)], replace(options, checkpoint=False))
    assert executions(anew)[-2:] == [(0, 15, 35, 0), (1, 5, 8, 1)]


def test_conformance_grid_job_that_loses_one_of_its_sites_stops_on_all() -> None:
    run = small([job(0, 20, 8)], [down(5, back=6), []])
    assert executions(run) == [(0, 0, 5, 1), (0, 6, 26, 0), (1, 0, 5, 1), (1, 6, 26, 0)]


def test_conformance_who_is_hit_has_the_lowest_processors_that_were_free() -> None:
    run = small([job(0, 20, 1), job(0, 20, 2), job(0, 20, 1)], [down(5, "node2")])
    assert run["killed"].values.tolist() == [0, 1, 0]


def test_conformance_closed_processors_are_not_offered() -> None:
    """The second cluster is down: the first one alone cannot hold the job before it is back."""
    run = small([job(1, 5, 6)], [[], down(0, "*", back=9)])
    assert run["start_time"].values.tolist() == [9]


def test_conformance_grid_tasks_leave_before_maintenance_without_loss() -> None:
    """Supersteps end at 3, 6, 9 s; the window begins at 8 s."""
    window = NodeEvent(time=0, node="node1", kind="maintenance", start=8, end=20)
    run = small([job(0, 20, 3)], [[window], []], replace(SIMPLE, superstep=3))
    assert executions(run) == [(0, 0, 6, 0), (1, 6, 20, 0)]
    assert (run.attrs["executions_killed"], int(run["migrations"].sum())) == (0, 1)


def test_conformance_local_job_is_killed_by_maintenance() -> None:
    window = NodeEvent(time=0, node="node1", kind="maintenance", start=8, end=20)
    run = small([job(0, 10, 4, 0)], [[window]], replace(SIMPLE, delta_t=None))
    assert executions(run) == [(0, 0, 8, 1), (0, 20, 30, 0)]


def test_conformance_drained_processors_are_left_and_not_taken() -> None:
    events = [NodeEvent(time=2, node="node0", kind="drain"), NodeEvent(time=20, node="node0", kind="resume")]
    run = small([job(0, 10, 4, 0), job(1, 5, 4, 0)], [events], replace(SIMPLE, delta_t=None))
    assert run["start_time"].values.tolist() == [0, 20]
    assert run.attrs["executions_killed"] == 0


def test_conformance_killed_local_job_may_go_to_the_grid() -> None:
    """The whole cluster is down, and its first job may not wait."""
    run = small([job(0, 10, 2, 0)], [down(4, "*"), []], checkpoint_interval=2)
    assert executions(run) == [(0, 0, 4, 1), (1, 4, 10, 0)]
    assert run["sent_time"].values.tolist() == [4]


@pytest.mark.parametrize("home", [None, 0])
def test_conformance_users_give_up_in_local_queues_and_in_nj(home: int | None) -> None:
    jobs = [job(0, 10, 4, 0), job(0, 10, 4, 1), job(1, 5, 4, home), job(2, 5, 4, home)]
    lifecycles = [Life(), Life(), Life(gives_up=6), Life()]
    run = small(jobs, [[], []], replace(SIMPLE, delta_t=None), lifecycles)
    waiting = run["submit_time"].values.tolist().index(1)
    assert run["fate"].values[waiting] == int(Fate.GAVE_UP)
    assert sorted(run["start_time"].values.tolist()) == [-1, 0, 0, 10]


def test_conformance_job_that_was_suspended_or_killed_does_not_give_up() -> None:
    jobs = [job(0, 20, 4), job(5, 10, 4, 0)]
    run = small(jobs, [[]], lifecycles=[Life(gives_up=8), Life()])
    assert run["fate"].values.tolist() == [0, 0]
    killed = small([job(0, 10, 4, 0)], [down(5, back=9)], replace(SIMPLE, delta_t=None), [Life(gives_up=7)])
    assert killed["fate"].values.tolist() == [0]


def test_conformance_jobs_enter_when_they_are_eligible() -> None:
    jobs = [job(0, 10, 1, 0), job(0, 5, 1, 0), job(1, 5, 1, 0)]
    lifecycles = [Life(failed=True), Life(after=((0, "afterany", 3),)), Life(after=((0, "afterok", 0),))]
    run = small(jobs, [[]], lifecycles=lifecycles)
    assert run["start_time"].values.tolist() == [0, 13, -1]
    assert run["eligible_time"].values.tolist()[:2] == [0, 13]
    assert run["fate"].values.tolist() == [0, 0, int(Fate.NEVER_ELIGIBLE)]


def test_broken_kills_are_found() -> None:
    run = small([job(0, 20, 4)], [down(5, back=50), []], checkpoint_interval=2)
    killed = int(np.argmax(run["segment_killed"].values))
    elsewhere = changed(run, "closure_start", 0, 6)
    assert any("no processor fails" in line for line in dynamic_violations(elsewhere))
    unsaved = changed(run, "cluster_checkpoint_interval", 0, 0)
    assert any("does not do the work" in line for line in dynamic_violations(unsaved))
    whole = changed(run, "segment_killed", killed, 0)
    assert any("within a superstep" in line or "work" in line for line in dynamic_violations(whole))


def test_conformance_a_cluster_has_left_when_tasks_have_left_its_drained_nodes() -> None:
    """The tasks are on their way for a second, on a processor that is drained."""
    cluster = Cluster(name="c1", processors=1, events=[NodeEvent(time=2, node="node0", kind="drain")])
    case = Case(
        [job(0, 3, 4, 0), job(0, 20, 1)],
        [4, 1],
        {(0, 1)},
        {"c1": [Stay(begin=0, end=5)]},
        replace(SIMPLE, migration_cost=0.3, release="moved"),
    )
    clusters = [Cluster(name="c0", processors=4), cluster]
    done, _ = scheduled(FailureCase(case, clusters, [Life()] * 2, "fcfs"))
    left = done.grid.events[done.grid.events["kind"] == dynamic_state.LEAVE]
    assert left[["cluster", "time", "done"]].tolist() == [(1, 5, 6)]

"""Dynamic grids whose nodes fail, whose users give up, whose jobs wait for others: against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import ANY

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.engine import job_lifecycle as engine_lifecycles
from gridsched.engine.job_lifecycle import Fate
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.systems.dynamic_grid.graphs import graph_of_edges
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.membership import Stay
from gridsched.systems.dynamic_grid.planning import DynamicSchedule
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
from tests.support.fields import assert_fields, field
from tests.support.strategies import node_events
from tests.systems.dynamic_grid.test_scheduler import (
    COMPOSED,
    Case,
    Change,
    cases,
    changed,
    grid,
    job,
    names_of,
    of_engine,
    of_oracle,
    oracle,
    schedule,
    where,
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


def dependencies(lifecycles: Sequence[Life], own: Sequence[int]) -> NDArray[np.void]:
    """Dependencies among some of the jobs, by their indices there."""
    needs = [
        (own.index(j), own.index(on), int(KINDS[kind]), delay)
        for j in own
        for on, kind, delay in lifecycles[j].after
        if on in own
    ]
    table = np.zeros(len(needs), DEPENDENCY)
    for name, values in zip(("job", "on", "kind", "delay"), zip(*needs, strict=True), strict=False):
        table[name] = values
    return table


def life_records(case: Case, lives: Sequence[Life]) -> engine_lifecycles.Lifecycles:
    """Lifecycles as the engine has them."""
    jobs = zip(case.jobs, lives, strict=True)
    return lifecycles([life._replace(submit=job.submit_time) for job, life in jobs], ())


def scheduled(failing: FailureCase) -> tuple[DynamicSchedule, engine_lifecycles.Lifecycles]:
    lives = life_records(failing.case, failing.lifecycles)
    return schedule(failing.case, failing.local, clusters=failing.clusters, lifecycles=lives), lives


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
    assert done.grid.lifecycles.jobs["killed"].tolist() == [state.killed for state in naive.states]
    entered = np.array([state.entry > 0 for state in naive.states], np.bool_)
    eligible: Any = lives.jobs["eligible"][entered]
    assert eligible.tolist() == [naive.users.eligible(j) for j in np.flatnonzero(entered).tolist()]


# --- whole runs -----------------------------------------------------------------------------------


def workload_of(failing: FailureCase, own: Sequence[int]) -> Workload:
    """Some of the jobs, with those of their dependencies that are among them."""
    jobs, lifecycles = [failing.case.jobs[j] for j in own], [failing.lifecycles[j] for j in own]
    return Workload(
        name="users",
        submit_time=np.array([each.submit_time for each in jobs]),
        run_time=np.array([each.run_time for each in jobs]),
        requested_time=np.array([each.estimate for each in jobs]),
        requested_processors=np.array([each.processors for each in jobs]),
        status=np.array([0 if life.failed else 1 for life in lifecycles]),
        gives_up_time=np.array([-1 if life.gives_up == NEVER else life.gives_up for life in lifecycles]),
        dependencies=dependencies(failing.lifecycles, own),
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
    lifecycles: Sequence[Life] = (),
    *,
    cluster: dict[str, Any] | None = None,
    **options: Any,
) -> FailureCase:
    """Jobs on neighbours of four processors, a node each; `options` are those of the scheduler."""
    clusters = [
        Cluster(name=f"c{i}", processors=4, events=own, **(cluster or {})) for i, own in enumerate(events)
    ]
    edges = [(0, 1)] if len(clusters) > 1 else []
    case = grid(jobs, [4] * len(clusters), edges, **options)
    return FailureCase(case, clusters, list(lifecycles) or [Life()] * len(jobs), "fcfs")


WINDOW = NodeEvent(time=0, node="node1", kind="maintenance", start=8, end=20)
DRAINED = [NodeEvent(time=2, node="node0", kind="drain"), NodeEvent(time=20, node="node0", kind="resume")]
SAVING = {"checkpoint_interval": 2}
WORKED: dict[str, tuple[FailureCase, dict[str, Any]]] = {
    # Checkpoints are at 3 and 7 s, a second each; at 9 s, 6 of 10 s of work are saved
    "killed local job goes on from its checkpoint": (
        small(
            [job(0, 10, 2, 0)],
            [down(9, back=9)],
            delta_t=None,
            cluster={"checkpoint_interval": 3, "checkpoint_cost": 1},
        ),
        {"executions": [(0, 0, 9, 1), (0, 9, 14, 0)], "lost_work": [2 * 3]},
    ),
    # The first two jobs share the cluster; a processor of the second one is out from 3 to 4 s
    **{
        f"place of a killed local job: {requeue}": (
            small(
                [job(0, 13, 2, 0), job(0, 10, 2, 0), job(1, 5, 4, 0)],
                [down(3, "node2", back=4)],
                delta_t=None,
                cluster={"requeue": requeue},
            ),
            {"end_time": ends, "fate": [Fate.COMPLETED, fate, Fate.COMPLETED]},
        )
        for requeue, ends, fate in (
            ("place", [13, 14, 19], Fate.COMPLETED),
            ("end", [13, 28, 18], Fate.COMPLETED),
            ("lost", [13, 3, 18], Fate.LOST),
        )
    },
    "grid job that loses its site begins anew elsewhere": (
        small([job(0, 20, 4)], [down(5), []]),
        {"executions": [(0, 0, 5, 1), (1, 5, 25, 0)]},
    ),
    "grid job that loses its site goes on from its last checkpoint, after 4 s of work": (
        small([job(0, 20, 4)], [down(5), []], cluster=SAVING),
        {"executions": [(0, 0, 5, 1), (1, 5, 21, 0)]},
    ),
    # A local job makes it move after 5 s, its new site fails at 8 s, and the local job ends at 15 s
    **{
        f"grid job keeps what it had done before it moved: {checkpoint}": (
            small([job(0, 20, 4), job(5, 10, 4, 0)], [[], down(8)], prefer="migrate", checkpoint=checkpoint),
            {"executions": [(0, 0, 5, 0), (0, 5, 15, 0), (0, 15, end, 0), (1, 5, 8, 1)]},
        )
        for checkpoint, end in ((True, 30), (False, 35))
    },
    "grid job that loses one of its sites stops on all": (
        small([job(0, 20, 8)], [down(5, back=6), []]),
        {"executions": [(0, 0, 5, 1), (0, 6, 26, 0), (1, 0, 5, 1), (1, 6, 26, 0)]},
    ),
    "who is hit has the lowest processors that were free": (
        small([job(0, 20, 1), job(0, 20, 2), job(0, 20, 1)], [down(5, "node2")]),
        {"killed": [0, 1, 0]},
    ),
    # The second cluster is down: the first one alone cannot hold the job before it is back
    "closed processors are not offered": (
        small([job(1, 5, 6)], [[], down(0, "*", back=9)]),
        {"start_time": [9]},
    ),
    # Supersteps end at 3, 6, 9 s; the window begins at 8 s
    "grid tasks leave before maintenance without loss": (
        small([job(0, 20, 3)], [[WINDOW], []], superstep=3),
        {"executions": [(0, 0, 6, 0), (1, 6, 20, 0)], "executions_killed": 0, "migrations": [1]},
    ),
    "local job is killed by maintenance": (
        small([job(0, 10, 4, 0)], [[WINDOW]], delta_t=None),
        {"executions": [(0, 0, 8, 1), (0, 20, 30, 0)]},
    ),
    "drained processors are left and not taken": (
        small([job(0, 10, 4, 0), job(1, 5, 4, 0)], [DRAINED], delta_t=None),
        {"start_time": [0, 20], "executions_killed": 0},
    ),
    # The whole cluster is down, and its first job may not wait
    "killed local job may go to the grid": (
        small([job(0, 10, 2, 0)], [down(4, "*"), []], cluster=SAVING),
        {"executions": [(0, 0, 4, 1), (1, 4, 10, 0)], "sent_time": [4]},
    ),
    **{
        f"users give up in the queue of {home}": (
            small(
                [job(0, 10, 4, 0), job(0, 10, 4, 1), job(1, 5, 4, home), job(2, 5, 4, home)],
                [[], []],
                [Life(), Life(), Life(gives_up=6), Life()],
                delta_t=None,
            ),
            {"by submit time": [(0, 0, 0), (0, 0, 0), (1, -1, Fate.GAVE_UP), (2, 10, 0)]},
        )
        for home in (None, 0)
    },
    "job that was suspended does not give up": (
        small([job(0, 20, 4), job(5, 10, 4, 0)], [[]], [Life(gives_up=8), Life()]),
        {"fate": [0, 0]},
    ),
    "job that was killed does not give up": (
        small([job(0, 10, 4, 0)], [down(5, back=9)], [Life(gives_up=7)], delta_t=None),
        {"fate": [0]},
    ),
    "jobs enter when they are eligible": (
        small(
            [job(0, 10, 1, 0), job(0, 5, 1, 0), job(1, 5, 1, 0)],
            [[]],
            [Life(failed=True), Life(after=((0, "afterany", 3),)), Life(after=((0, "afterok", 0),))],
        ),
        {"start_time": [0, 13, -1], "fate": [0, 0, Fate.NEVER_ELIGIBLE], "eligible_time": [0, 13, ANY]},
    ),
}
"""Cases with what comes out: variables of the run, and of each segment cluster, start, end and whether it
was killed."""


@pytest.mark.parametrize(("failing", "expected"), WORKED.values(), ids=WORKED)
def test_conformance_worked_example(failing: FailureCase, expected: dict[str, Any]) -> None:
    run = run_of(failing)
    verify(run)

    def rows(*names: str) -> list[tuple[int, ...]]:
        return sorted(zip(*(run[name].values.tolist() for name in names), strict=True))

    found = {
        **{name: field(run, name) for name in {*run.variables, *run.attrs}},
        "executions": rows("segment_cluster", "segment_start", "segment_end", "segment_killed"),
        "by submit time": rows("submit_time", "start_time", "fate"),
    }
    assert_fields(found, **expected)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda run: changed(run, "closure_start", 0, 6), "no processor fails"),
        (lambda run: changed(run, "cluster_checkpoint_interval", 0, 0), "does not do the work"),
        (lambda run: where(run, "segment_killed", run["segment_killed"], 0), "work"),
    ],
)
def test_broken_kills_are_found(change: Change, complaint: str) -> None:
    run = run_of(small([job(0, 20, 4)], [down(5, back=50), []], cluster=SAVING))
    verify(run)
    assert any(complaint in line for line in dynamic_violations(change(run)))


def test_conformance_a_cluster_has_left_when_tasks_have_left_its_drained_nodes() -> None:
    """The tasks are on their way for a second, on a processor that is drained."""
    drained = [NodeEvent(time=2, node="node0", kind="drain")]
    clusters = [Cluster(name="c0", processors=4), Cluster(name="c1", processors=1, events=drained)]
    case = grid(
        [job(0, 3, 4, 0), job(0, 20, 1)],
        [4, 1],
        [(0, 1)],
        members={"c1": [Stay(begin=0, end=5)]},
        migration_cost=0.3,
        release="moved",
    )
    done, _ = scheduled(FailureCase(case, clusters, [Life()] * 2, "fcfs"))
    left = done.grid.events[done.grid.events["kind"] == dynamic_state.LEAVE]
    assert left[["cluster", "time", "done"]].tolist() == [(1, 5, 6)]

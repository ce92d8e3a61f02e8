"""Dynamic grids whose nodes fail, whose users give up, whose jobs wait for others: against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.engine.job_lifecycle import Fate
from gridsched.nodes import NodeEvent
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.membership import Stay
from gridsched.systems.dynamic_grid.rules import dynamic_violations
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.verification import verify
from tests.oracles.dynamic_grid import DynamicJob
from tests.oracles.users import Submission
from tests.support.fields import assert_fields, field
from tests.systems.dynamic_grid.cases import Case, cases, changed, grid, job, run_of, schedule, where
from tests.systems.dynamic_grid.test_scheduler import Change


@given(data=st.data())
@settings(max_examples=60)
def test_runs_keep_all_rules(data: st.DataObject) -> None:
    case = data.draw(cases(fails=True, lives=True, least=1))
    options = replace(
        case.options,
        stop_factor=data.draw(st.sampled_from([None, 1.0, 1.5])),
        grid_share=data.draw(st.sampled_from([0.0, 0.5])),
    )
    run = run_of(case._replace(options=options))
    verify(run)
    DynamicGrid.measures(run)


# --- worked examples ------------------------------------------------------------------------------


def down(time: int, node: str = "node0", back: int | None = None) -> list[NodeEvent]:
    events = [NodeEvent(time=time, node=node, kind="down")]
    return events if back is None else [*events, NodeEvent(time=back, node=node, kind="up")]


def small(
    jobs: list[DynamicJob],
    events: Sequence[Sequence[NodeEvent]],
    lifecycles: Sequence[Submission] = (),
    *,
    cluster: dict[str, Any] | None = None,
    **options: Any,
) -> Case:
    """Jobs on neighbours of four processors, a node each; `options` are those of the scheduler."""
    edges = [(0, 1)] if len(events) > 1 else []
    case = grid(jobs, [4] * len(events), edges, lives=lifecycles or [Submission(0)] * len(jobs), **options)
    clusters = zip(case.clusters, events, strict=True)
    return case._replace(clusters=[replace(each, events=own, **(cluster or {})) for each, own in clusters])


WINDOW = NodeEvent(time=0, node="node1", kind="maintenance", start=8, end=20)
DRAINED = [NodeEvent(time=2, node="node0", kind="drain"), NodeEvent(time=20, node="node0", kind="resume")]
SAVING = {"checkpoint_interval": 2}
WORKED: dict[str, tuple[Case, dict[str, Any]]] = {
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
                [Submission(0), Submission(0), Submission(0, gives_up=6), Submission(0)],
                delta_t=None,
            ),
            {"by submit time": [(0, 0, 0), (0, 0, 0), (1, -1, Fate.GAVE_UP), (2, 10, 0)]},
        )
        for home in (None, 0)
    },
    "job that was suspended does not give up": (
        small([job(0, 20, 4), job(5, 10, 4, 0)], [[]], [Submission(0, gives_up=8), Submission(0)]),
        {"fate": [0, 0]},
    ),
    "job that was killed does not give up": (
        small([job(0, 10, 4, 0)], [down(5, back=9)], [Submission(0, gives_up=7)], delta_t=None),
        {"fate": [0]},
    ),
    "jobs enter when they are eligible": (
        small(
            [job(0, 10, 1, 0), job(0, 5, 1, 0), job(1, 5, 1, 0)],
            [[]],
            [
                Submission(0, failed=True),
                Submission(0, after=((0, "afterany", 3),)),
                Submission(0, after=((0, "afterok", 0),)),
            ],
        ),
        {"start_time": [0, 13, -1], "fate": [0, 0, Fate.NEVER_ELIGIBLE], "eligible_time": [0, 13, ANY]},
    ),
}
"""Cases with what comes out: variables of the run, and of each segment cluster, start, end and whether it
was killed."""


@pytest.mark.parametrize(("failing", "expected"), WORKED.values(), ids=WORKED)
def test_conformance_worked_example(failing: Case, expected: dict[str, Any]) -> None:
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
    case = grid(
        [job(0, 3, 4, 0), job(0, 20, 1)],
        [4, 1],
        [(0, 1)],
        members={"c1": [Stay(begin=0, end=5)]},
        migration_cost=0.3,
        release="moved",
    )
    failing = [case.clusters[0], replace(case.clusters[1], events=drained)]
    done = schedule(case._replace(clusters=failing))
    left = done.grid.events[done.grid.events["kind"] == dynamic_state.LEAVE]
    assert left[["cluster", "time", "done"]].tolist() == [(1, 5, 6)]

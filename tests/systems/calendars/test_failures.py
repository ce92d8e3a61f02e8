"""Calendars where nodes fail, users give up and jobs wait for others: against the oracle, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gridsched.engine.job_lifecycle import Fate
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan, clusters_of
from gridsched.verification import verify
from gridsched.workloads.dependencies import dependency_table
from tests.oracles.calendars import Job
from tests.oracles.users import NEVER
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.systems.calendars.cases import TENS, check_worked, problems, run
from tests.systems.calendars.test_managers import local


@pytest.mark.parametrize("failing", [True, False])
@given(data=st.data())
@settings(max_examples=60)
def test_every_run_passes_the_verifier(failing: bool, data: st.DataObject) -> None:
    jobs, root, options, _, seed = data.draw(problems(failing=failing))
    assume(jobs)
    reach = sum(cluster.processors for cluster in clusters_of(root))
    workload = jobs_of(
        submit_time=[job.submit_time for job in jobs],
        run_time=[job.run_time for job in jobs],
        requested_time=[job.estimate for job in jobs],
        requested_processors=[job.processors for job in jobs],
        status=[0 if job.failed else 1 for job in jobs],
        home=[job.home for job in jobs],
        reserved_start=[job.reserved if job.processors <= reach else -1 for job in jobs],
        gives_up_time=[-1 if job.gives_up == NEVER else job.gives_up for job in jobs],
        dependencies=dependency_table(
            [(j, on, kind, delay) for j, job in enumerate(jobs) for on, kind, delay in job.needs]
        ),
    )
    times: Any = "unit" if all(job.speed == 1.0 for job in jobs) else "home"
    done = simulate(workload, clusters_of(root), replace(options, managers=root), times=times, seed=seed)
    verify(done)
    assert done["supplied"].sum() == done["consumed"].sum()


# --- worked examples ------------------------------------------------------------------------------

FOUR = Cluster(name="a", processors=4, processors_per_node=2)
"""Two nodes of two processors."""


def event(time: int, kind: Any, node: str = "node0", **window: int) -> NodeEvent:
    return NodeEvent(time=time, kind=kind, node=node, **window)


def fails(*events: NodeEvent, **more: Any) -> Cluster:
    """The cluster of two nodes with events."""
    return replace(FOUR, events=events, **more)


ALL = "*"
SAVING: dict[str, Any] = {"checkpoint_interval": 10, "checkpoint_cost": 1}
DOWN, TWO_OF_ONE = event(15, "down"), {"processors": 2, "processors_per_node": 1}
FOR_ONE_NODE = [Job(0, 40, 40, 1), Job(0, 20, 20, 1), Job(0, 40, 40, 1), Job(0, 40, 40, 1)]
KILLING = replace(TENS, overrun="kill")
COARSE = Calendars(slots=SlotPlan(levels=[(1, 10), (None, 40)]), low_water=0)


def after(on: int, kind: str, delay: int = 0) -> dict[str, Any]:
    return {"needs": ((on, kind, delay),)}


WORKED: dict[str, tuple[list[Job], Manager | Cluster, Calendars, dict[str, Any]]] = {
    # The first job has the lowest processors: it is killed at 15 s, and there is room once the second is
    # done. The third needs all nodes, and waits for the repair
    "a failing node kills its jobs and takes its processors with it": (
        [Job(0, 40, 40, 2), Job(0, 40, 40, 2), Job(1, 10, 10, 4)],
        fails(DOWN, event(52, "up")),
        TENS,
        {
            "planned_start": [0, 0, 40],
            "spans": [(0, 2, 0, 15), (0, 2, 40, 80), (1, 2, 0, 40), (2, 4, 80, 90)],
            "total_outage_displaced": 1,
            "killed": [1, 0, 0],
            "extra_work": [2 * 15, 0, 0],
        },
    ),
    # Two checkpoints by 22 s; then 20 s are left, with one more between them
    "the rest is requested from the last checkpoint": (
        [Job(0, 40, 40, 2)],
        fails(event(25, "down"), **SAVING),
        TENS,
        {
            "spans": [(0, 2, 0, 25), (0, 2, 30, 51)],
            "run_time": [40],
            "extra_work": [2 * (25 - 20 + 1)],
        },
    ),
    # With one node for three jobs, the slots of those who wait are overdrawn from 40 s on
    "the killed job comes first when all are placed anew": (
        FOR_ONE_NODE,
        fails(DOWN, requeue="place", **TWO_OF_ONE),
        TENS,
        {
            "planned_start": [0, 0, 20, 40],
            "spans": [(0, 1, 0, 15), (0, 1, 20, 60), (1, 1, 0, 20), (2, 1, 60, 100), (3, 1, 100, 140)],
        },
    ),
    "the killed job comes last when all are placed anew": (
        FOR_ONE_NODE,
        fails(DOWN, requeue="end", **TWO_OF_ONE),
        TENS,
        {
            "planned_start": [0, 0, 20, 40],
            "spans": [(0, 1, 0, 15), (0, 1, 100, 140), (1, 1, 0, 20), (2, 1, 20, 60), (3, 1, 60, 100)],
        },
    ),
    "a lost job leaves its slots": (
        [Job(0, 40, 40, 4), Job(0, 10, 10, 4)],
        fails(DOWN, event(17, "up"), requeue="lost"),
        TENS,
        {"fate": [Fate.LOST, Fate.COMPLETED], "spans": [(0, 4, 0, 15), (1, 4, 20, 30)]},
    ),
    # The window takes the slots from 50 to 80 s. The third job would not be done before; at 20 s it is known
    # that there is no room beside the window
    "announced windows are planned around": (
        [Job(0, 30, 30, 4), Job(1, 20, 20, 4), Job(2, 10, 10, 4), Job(6, 20, 20, 4)],
        fails(event(5, "maintenance", ALL, start=52, end=71)),
        TENS,
        {"planned_start": [0, 30, 50, 90], "start_time": [0, 30, 80, 90], "killed": [0] * 4},
    ),
    # The lowest processors would be taken away from a job that is planned beyond the start of the window
    "jobs start where no window comes": (
        [Job(0, 30, 30, 2), Job(0, 20, 20, 2)],
        fails(event(0, "maintenance", start=20, end=40)),
        TENS,
        {"spans": [(0, 2, 0, 30), (1, 2, 0, 20)]},
    ),
    # The first job will be killed when the window begins; that is no reason to put off the third
    "what a running job has of a window counts once": (
        [Job(0, 60, 60, 2), Job(0, 30, 30, 2), Job(1, 30, 30, 2)],
        fails(event(5, "maintenance", start=40, end=60)),
        TENS,
        {
            "spans": [(0, 2, 0, 40), (0, 2, 60, 120), (1, 2, 0, 30), (2, 2, 30, 60)],
            "total_outage_displaced": 0,
        },
    ),
    "who still runs when a window begins is killed": (
        [Job(0, 30, 30, 4)],
        fails(event(5, "maintenance", ALL, start=20, end=40)),
        TENS,
        {"spans": [(0, 4, 0, 20), (0, 4, 40, 70)]},
    ),
    # The job on the drained node goes on, beyond its estimate even, and counts once
    "drained nodes take no more jobs": (
        [Job(0, 35, 10, 2), Job(6, 10, 10, 2), Job(6, 10, 10, 2), Job(6, 10, 10, 4)],
        fails(event(5, "drain"), event(55, "resume")),
        TENS,
        {"start_time": [0, 10, 20, 60], "end_time": [35, 20, 30, 70], "total_delayed": 0},
    ),
    # The first job waits at home no longer than its node is up; the third spans what is left
    "what is too large for the nodes that are up goes up": (
        [Job(6, 10, 10, 4), Job(7, 10, 10, 2), Job(8, 10, 10, 6)],
        Manager(
            name="root",
            children=[Manager(name="home", children=[fails(event(5, "down"))]), replace(FOUR, name="b")],
        ),
        TENS,
        {
            "spans": [(0, 4, 10, 20), (1, 2, 10, 20), (2, 2, 20, 30), (2, 4, 20, 30)],
            "clusters": [1, 0, 0, 1],
            "total_forwarded": 2,
        },
    ),
    "who needs nodes that never come back starves": (
        [Job(6, 10, 10, 4), Job(6, 10, 10, 2), Job(6, 10, 10, 5)],
        fails(event(5, "down")),
        TENS,
        {"fate": [Fate.STARVED, Fate.COMPLETED, Fate.REJECTED], "planned_start": [-1, 10, -1]},
    ),
    "reservations are kept where others can give way": (
        [
            Job(0, 30, 30, 2),
            Job(1, 30, 30, 2),
            Job(1, 10, 10, 2, reserved=30),
            Job(1, 10, 10, 4, reserved=70),
        ],
        fails(event(25, "down", "node1")),
        TENS,
        {
            "planned_start": [0, 10, 30, 70],
            "spans": [(0, 2, 0, 30), (1, 2, 10, 25), (1, 2, 40, 70), (2, 2, 30, 40)],
            "broken": [False, False, False, True],
            "total_reservations_broken": 1,
            "fate": [Fate.COMPLETED] * 3 + [Fate.STARVED],
        },
    ),
    # The last one would have started at 40 s
    "slots of who gives up are there for others": (
        [
            Job(0, 30, 30, 4),
            Job(1, 50, 50, 4, gives_up=25),
            Job(2, 10, 10, 4),
            Job(3, 10, 10, 4, gives_up=30),
        ],
        FOUR,
        TENS,
        {
            "planned_start": [0, 30, 80, 90],
            "fate": [Fate.COMPLETED, Fate.GAVE_UP, Fate.COMPLETED, Fate.GAVE_UP],
            "start_time": [0, -1, 30, -1],
        },
    ),
    # The second is eligible at 17 s, after the third had asked; what the last one reserves is over by then
    "jobs make their requests when they are eligible": (
        [
            Job(0, 12, 30, 4),
            Job(1, 10, 10, 4, **after(0, "afterok", 5)),
            Job(14, 10, 10, 4),
            Job(15, 10, 10, 4, **after(0, "afternotok")),
            Job(15, 10, 10, 1, reserved=20, **after(1, "afterany")),
        ],
        FOUR,
        TENS,
        {
            "start_time": [0, 30, 20, -1, -1],
            "fate": [Fate.COMPLETED] * 3 + [Fate.NEVER_ELIGIBLE, Fate.REJECTED],
            "eligible_time": [ANY, 17, ANY, ANY, ANY],
        },
    ),
    "a job that is killed at the end of its slots did not end well": (
        [
            Job(0, 35, 10, 4),
            Job(0, 10, 10, 4, reserved=10),
            Job(0, 5, 5, 1, **after(0, "afterok")),
            Job(0, 5, 5, 1, **after(0, "afternotok")),
        ],
        FOUR,
        KILLING,
        {
            "fate": [Fate.COMPLETED, Fate.COMPLETED, Fate.NEVER_ELIGIBLE, Fate.COMPLETED],
            "end_time": [10, 20, -1, 25],
        },
    ),
    # They learn by the period what is booked, but at once which nodes are gone
    "stale managers know who is up": (
        [Job(6, 10, 10, 2, home=2), Job(6, 10, 10, 4, home=2)],
        Manager(
            name="root",
            children=[
                fails(event(5, "down", ALL)),
                replace(FOUR, name="b"),
                local("c", 1, promote_duration=0),
            ],
            period=1000,
        ),
        TENS,
        {
            "spans": [(0, 2, 10, 20), (1, 4, 20, 30)],
            "clusters": [1, 1],
            "total_failed_inquiries": 0,
        },
    ),
    # The window takes a slot of 40 s at first, and only its own 10 s when that is split
    "outages of coarse slots give back what they do not need": (
        [Job(1, 10, 10, 4)],
        fails(event(0, "maintenance", ALL, start=20, end=30)),
        COARSE,
        {"planned_start": [50], "start_time": [10]},
    ),
}
"""Jobs, clusters, options, and columns of the jobs, counts (`total_`), and of each execution job, nodes,
start and end (`spans`) and the cluster (`clusters`)."""


@pytest.mark.parametrize(("jobs", "root", "options", "expected"), WORKED.values(), ids=WORKED)
def test_worked_example(
    jobs: list[Job], root: Manager | Cluster, options: Calendars, expected: dict[str, Any]
) -> None:
    check_worked(run(jobs, root, options), **expected)


def test_broken_reservations_are_told() -> None:
    cluster = fails(event(5, "down"), event(90, "up"))
    jobs = jobs_of(
        submit_time=[0, 1],
        run_time=[10, 10],
        requested_time=[10, 10],
        requested_processors=[2, 4],
        reserved_start=[30, 60],
    )
    done = simulate(jobs, cluster, TENS)
    verify(done)
    assert_fields(
        done,
        start_time=[30, 90],
        reserved=[1, 1],
        reservation_broken=[0, 1],
        reserved_start=[30, -1],
        reservations_broken=1,
    )


def test_the_clusters_of_a_tree_have_to_be_those_of_the_platform() -> None:
    jobs = jobs_of(submit_time=[0], run_time=[10], requested_processors=[2])
    with refused("a has 8 processors there and 4 on the platform"):
        simulate(jobs, fails(DOWN), replace(TENS, managers=replace(FOUR, processors=8)))

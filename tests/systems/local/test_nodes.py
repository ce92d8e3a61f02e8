"""Local policies on clusters of nodes, as users ask for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import gridsched as gs
from gridsched import results
from gridsched.errors import ScheduleError, WorkloadError
from gridsched.nodes import (
    Limit,
    NodeEvent,
    NodeType,
    Partition,
    draw_failures,
    read_events,
)
from gridsched.policies.local import POLICIES
from gridsched.traces import merge_workloads
from gridsched.workloads.dependencies import (
    dependency_table,
    singleton_dependencies,
    with_preceding_jobs,
)
from tests.support.errors import refused
from tests.support.fields import assert_fields, assert_stacked, field
from tests.support.nodes import crowd, jobs_of

COMPLETED, REJECTED, GAVE_UP, NEVER_ELIGIBLE, LOST, STARVED = range(6)


def verified(jobs: gs.Workload, cluster: gs.Cluster, policy: str | gs.LocalPolicy = "easy") -> Any:
    run = gs.simulate(jobs, cluster, policy)
    gs.verify(run)
    return run


def _spoiled(run: Any, name: str, value: Any) -> Any:
    """The run with another value at the first place that is not -1."""
    spoiled = run.copy(deep=True)
    values = spoiled[name].to_numpy()
    values[np.flatnonzero(values >= 0)[0]] = value
    return spoiled


# --- job arrays -----------------------------------------------------------------------------------


def test_so_many_tasks_of_an_array_run_at_once() -> None:
    jobs = jobs_of(
        submit_time=[0] * 7,
        run_time=[10, 20, 10, 10, 10, 10, 10],
        requested_processors=[1] * 7,
        array=[5, 5, 5, 5, 8, 8, -1],
        array_limit=[2, 2, 2, 2, -1, -1, -1],
    )
    run = verified(jobs, gs.Cluster(processors=16), "fcfs")
    assert_fields(run, start_time=[0, 0, 10, 20, 0, 0, 0], limit_jobs=[2])
    with refused("limit", error=ScheduleError):
        gs.verify(_spoiled(run, "limit_jobs", 1))
    # tasks of an array of another log are another array
    merged, _ = merge_workloads([jobs, jobs])
    assert_fields(verified(merged, gs.Cluster(processors=16)), limit_jobs=[2, 2])


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"array": [1, 1], "array_limit": [2, 3]}, "2 and 3 for jobs of array 1"),
        ({"array": [1, -1], "array_limit": [2, 2]}, "index 1"),
        ({"array_limit": [-1, 2]}, "index 1"),
        ({"array": [1, 1], "array_limit": [0, 0]}, "array_limit is 0"),
    ],
)
def test_limits_of_arrays_that_cannot_be(columns: dict[str, Any], found: str) -> None:
    jobs = jobs_of(submit_time=[0, 0], run_time=[5, 5], requested_processors=[1, 1], **columns)
    with refused(found, error=WorkloadError):
        gs.simulate(jobs, 4, "easy")


# --- by hand --------------------------------------------------------------------------------------

TWO = {
    "submit_time": [0, 1],
    "run_time": [100, 10],
    "requested_time": [100, 10],
    "requested_processors": [4, 4],
}
PENDING = {"submit_time": [0, 10], "run_time": [20, 20], "requested_processors": [4, 4], "partition": [0, 0]}
GROUPS = {
    "submit_time": [0, 1, 2, 3],
    "run_time": [100] * 4,
    "requested_processors": [1] * 4,
    "user": [1, 1, 2, 1],
}
A_AND_B = [NodeType(cores=4, name="a"), NodeType(cores=4, name="b")]
ONLY_A = [Partition(number=0, nodes=["a"])]
A_IS_DOWN = [NodeEvent(time=5, node="a0", kind="down"), NodeEvent(time=60, node="a0", kind="up")]
FAILING = gs.Cluster(
    processors=4,
    processors_per_node=4,
    events=[NodeEvent(time=50, node="node0", kind="down"), NodeEvent(time=70, node="node0", kind="up")],
)
WINDOW = NodeEvent(time=0, node="node0", kind="maintenance", start=60, end=90)
TOO_LARGE = "rejected: no nodes that it may use can hold it"

BY_HAND: dict[str, tuple[dict[str, Any], gs.Cluster, str, dict[str, Any]]] = {
    # Memory of two nodes for the second, a GPU of each of two nodes for the fourth
    "jobs that no node can hold are rejected by reason": (
        {
            "submit_time": [0] * 5,
            "run_time": [10] * 5,
            "requested_time": [10, 10, 10, 10, 5000],
            "requested_processors": [4, 4, 9, 4, 1],
            "requested_memory": [1024, 2 * 1024, -1, -1, -1],
            "requested_gpus": [-1, -1, -1, 2, -1],
            "user": [1] * 5,
        },
        gs.Cluster(
            nodes=[NodeType(count=2, cores=4, memory=4, gpus=1)],
            partitions=[Partition(number=1, time_limit=3600)],
            limits=[Limit(processors=4)],
        ),
        "easy",
        {
            "fate": [COMPLETED, COMPLETED, REJECTED, COMPLETED, REJECTED],
            "jobs_rejected": 2,
            "pieces": [(0, 0), (1, 0), (1, 1), (3, 0), (3, 1)],
            TOO_LARGE: 1,
            "rejected: over a limit of its partition": 1,
        },
    ),
    "requested nodes are spread evenly": (
        {
            "submit_time": [0],
            "run_time": [10],
            "requested_processors": [6],
            "requested_nodes": [3],
            "requested_gpus": [3],
        },
        gs.Cluster(nodes=[NodeType(count=4, cores=8, gpus=2)]),
        "easy",
        {
            "piece_cores": [2, 2, 2],
            "pieces": [(0, 0), (0, 1), (0, 2)],
            "piece_devices": [1, 1, 1],
        },
    ),
    "higher partitions come first and others wait for their nodes only": (
        {**GROUPS, "requested_processors": [4] * 4, "queue": [0, 0, 7, 1]},
        gs.Cluster(
            nodes=A_AND_B,
            partitions=[
                Partition(number=0, nodes=["a"]),
                Partition(number=1, nodes=["a0"], priority=3),
                Partition(number=7, nodes=["b"]),
            ],
            partition_of="queue",
        ),
        "fcfs",
        {"start_time": [0, 200, 2, 100]},
    ),
    "limits hold up nobody else": (
        GROUPS,
        gs.Cluster(processors=8, limits=[Limit(by="user", jobs=1)]),
        "fcfs",
        {"start_time": [0, 100, 2, 200]},
    ),
    "limits of one user hold up nobody else": (
        GROUPS,
        gs.Cluster(processors=8, limits=[Limit(by="user", of=1, processor_minutes=4)]),
        "easy",
        {"start_time": [0, 1, 2, 100]},
    ),
    "killed jobs keep their place": (
        TWO,
        FAILING,
        "fcfs",
        {"end_time": [170, 180], "fate": [COMPLETED, COMPLETED], "killed": [1, 0]},
    ),
    "killed jobs go to the end": (
        TWO,
        replace(FAILING, requeue="end"),
        "fcfs",
        {"end_time": [180, 80], "fate": [COMPLETED, COMPLETED], "killed": [1, 0]},
    ),
    "killed jobs are lost": (
        TWO,
        replace(FAILING, requeue="lost"),
        "fcfs",
        {"end_time": [50, 80], "fate": [LOST, COMPLETED], "killed": [1, 0]},
    ),
    # Two checkpoints of 20 s of work and 2 s each before the failure, two after it
    "killed jobs go on from a checkpoint": (
        TWO,
        replace(FAILING, checkpoint_interval=20, checkpoint_cost=2),
        "fcfs",
        {"end_time": [134, 144], "fate": [COMPLETED, COMPLETED], "killed": [1, 0]},
    ),
    "pending jobs wait for their node": (
        PENDING,
        gs.Cluster(nodes=A_AND_B, partitions=ONLY_A, events=A_IS_DOWN),
        "easy",
        {"end_time": [80, 100]},
    ),
    "pending jobs go elsewhere": (
        PENDING,
        gs.Cluster(nodes=A_AND_B, events=A_IS_DOWN),
        "easy",
        {"end_time": [25, 45]},
    ),
    "pending jobs never run where their node is never up again": (
        PENDING,
        gs.Cluster(nodes=A_AND_B, partitions=ONLY_A, events=A_IS_DOWN[:1]),
        "easy",
        {"fate": [STARVED, STARVED]},
    ),
    # A job that would not end before a window is not started, one that does is, and nothing is killed
    **{
        f"announced maintenance is planned around: {policy}": (
            {**TWO, "run_time": [61, 50], "requested_time": [61, 50]},
            gs.Cluster(processors=4, processors_per_node=4, events=[WINDOW]),
            policy,
            {"start_time": [90, second], "killed": [0, 0]},
        )
        for policy, second in {"fcfs": 151, "ff": 1, "easy": 1, "conservative": 1}.items()
    },
    "dependencies are met in time or never": (
        {
            "submit_time": [0, 1, 2, 3, 4, 5],
            "run_time": [100] * 6,
            "requested_processors": [1] * 6,
            "status": [1, 0, 1, 1, 1, 1],
            "dependencies": dependency_table(
                [(2, 0, "afterany", 7), (3, 1, "afterok"), (4, 3, "afterany"), (5, 0, "after")]
            ),
        },
        gs.Cluster(processors=8),
        "easy",
        {
            "start_time": [0, 1, 107, -1, -1, 5],
            "fate": [0, 0, 0, NEVER_ELIGIBLE, NEVER_ELIGIBLE, 0],
            "jobs_never_eligible": 2,
        },
    ),
    "who waits for the start of a job that is never eligible is not either": (
        {
            "submit_time": [0, 1, 2],
            "run_time": [10] * 3,
            "requested_processors": [1] * 3,
            "status": [0, 1, 1],
            "dependencies": dependency_table([(1, 0, "afterok"), (2, 1, "after")]),
        },
        gs.Cluster(processors=4),
        "easy",
        {"fate": [COMPLETED, NEVER_ELIGIBLE, NEVER_ELIGIBLE]},
    ),
}
"""Jobs, cluster, policy, and variables, with the job and the node of each piece."""


@pytest.mark.parametrize(("columns", "cluster", "policy", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_runs_by_hand(
    columns: dict[str, Any], cluster: gs.Cluster, policy: str, expected: dict[str, Any]
) -> None:
    run = verified(jobs_of(**columns), cluster, policy)
    found = {name: field(run, name) for name in {*run.variables, *run.attrs}}
    if "piece" in run.dims:
        jobs = run["segment_job"].values[run["piece_segment"].values].tolist()
        found["pieces"] = sorted(zip(jobs, run["piece_node"].values.tolist(), strict=True))
    assert_fields(found, **expected)


# --- failures -------------------------------------------------------------------------------------


def test_failures_are_drawn_as_asked_and_the_rules_are_kept() -> None:
    names = [f"node{k}" for k in range(4)]
    events = draw_failures(names, until=20_000, mean_time_between=2000, mean_repair=300, rack=2, seed=3)
    assert [event.time for event in events if event.node == "node0"] == [
        event.time for event in events if event.node == "node1"
    ]
    many = draw_failures(names[:1], until=10**7, mean_time_between=1000, mean_repair=500, shape=0.7, seed=1)
    down = np.array([event.time for event in many if event.kind == "down"])
    assert 1400 < np.diff(down).mean() < 1600
    cluster = gs.Cluster(
        processors=16, processors_per_node=4, events=events, checkpoint_interval=30, checkpoint_cost=1
    )
    for policy in POLICIES:
        run = verified(crowd(), cluster, policy)
        assert run["killed"].sum() > 0


# --- users who give up, dependencies --------------------------------------------------------------


def test_preceding_jobs_of_logs_are_dependencies() -> None:
    jobs = jobs_of(
        job_number=[10, 11, 12],
        submit_time=[0, 5, 9],
        run_time=[50] * 3,
        requested_processors=[1] * 3,
        preceding_job=[-1, 10, 99],
        think_time=[-1, 20, -1],
    )
    made = with_preceding_jobs(jobs)
    run = verified(made, gs.Cluster(processors=4))
    assert run["start_time"].values.tolist() == [0, 70, 9]
    part = made.select(np.array([1, 2]))
    assert part.dependencies is not None
    assert len(part.dependencies) == 0


@pytest.mark.parametrize(
    ("preceding", "taken", "repaired"),
    [
        (
            [2, 1, 9, 1],
            [1, 3],
            {"preceding job that does not precede it": 1, "preceding job not in the log": 1},
        ),
        ([-1, -1, 1, 1], [2, 3], {}),  # two jobs may follow one
        ([2, 2, 2, 2], [], {"preceding job 2 in every job that has one, a placeholder": 4}),
        ([-1, *[1] * 99], [*range(1, 100)], {}),
        ([-1, *[1] * 100], [], {"preceding job 1 in every job that has one, a placeholder": 100}),
    ],
)
def test_preceding_jobs_that_cannot_be(preceding: list[int], taken: list[int], repaired: Any) -> None:
    count = len(preceding)
    jobs = jobs_of(
        submit_time=np.arange(count),
        run_time=[5] * count,
        requested_processors=[1] * count,
        preceding_job=preceding,
    )
    made = with_preceding_jobs(jobs)
    assert made.dependencies is not None
    assert made.dependencies["job"].tolist() == taken
    assert made.repaired == repaired


def test_preceding_jobs_are_taken_before_logs_are_merged() -> None:
    jobs = jobs_of(submit_time=[0, 5], run_time=[50] * 2, requested_processors=[1] * 2, preceding_job=[-1, 1])
    with refused("1 jobs have a preceding job whose number several jobs have", error=WorkloadError):
        with_preceding_jobs(merge_workloads([jobs, jobs.select(slice(1))])[0])
    merged, _ = merge_workloads([with_preceding_jobs(jobs)] * 2)
    assert merged.dependencies is not None
    assert merged.dependencies[["job", "on"]].tolist() == [(2, 0), (3, 1)]


def test_singletons_run_one_at_a_time() -> None:
    jobs = jobs_of(
        submit_time=[0, 0, 0, 0],
        run_time=[10] * 4,
        requested_processors=[1] * 4,
        user=[1, 1, 1, 2],
        executable=[5, 5, 5, 5],
    )
    table = singleton_dependencies(jobs, np.array([False, True, True, True]))
    run = verified(replace(jobs, dependencies=table), gs.Cluster(processors=8))
    assert run["start_time"].values.tolist() == [0, 10, 20, 0]


# --- the verifier ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("piece_cores", 99),
        ("piece_units", 5),
        ("piece_memory", 10**9),
        ("piece_devices", 2),
        ("piece_share", 7),
        ("fate", GAVE_UP),
        ("outage_start", 0),
        ("gives_up_time", 0),
        ("dependency_delay", 10**6),
        ("node_reach", 0),
    ],
)
def test_the_verifier_sees_what_cannot_be(name: str, value: int) -> None:
    jobs = jobs_of(
        submit_time=[0, 0],
        run_time=[50, 50],
        requested_processors=[2, 2],
        requested_gpus=[1, 1],
        requested_memory=[512, 512],
        gives_up_time=[500, 500],
        dependencies=dependency_table([(1, 0, "after")]),
    )
    window = NodeEvent(time=0, node="node0", kind="maintenance", start=1000, end=1100)
    cluster = gs.Cluster(nodes=[NodeType(cores=4, gpus=1, memory=4, count=2)], events=[window])
    run = verified(jobs, cluster)
    with pytest.raises(ScheduleError):
        gs.verify(_spoiled(run, name, value))


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: gs.Cluster(nodes=[NodeType(cores=4)], processors=5), "processors"),
        (lambda: gs.Cluster(nodes=[NodeType(cores=4), NodeType(cores=8)]), "one name"),
        (lambda: gs.Cluster(processors=4, partitions=[Partition(number=1, nodes=["gpu"])]), "gpu"),
        (
            lambda: gs.Cluster(processors=4, events=[NodeEvent(time=1, node="node9", kind="down")]),
            "node9",
        ),
        (lambda: gs.Cluster(processors=4, placement=cast(Any, "anywhere")), "placement"),
        (lambda: gs.Cluster(processors=4, checkpoint_interval=-1), "checkpoint_interval"),
        (lambda: NodeType(cores=0), ""),
        (lambda: NodeType(cores=4, memory=-1), ""),
        (lambda: Limit(by="user"), ""),
        (lambda: NodeEvent(time=10, kind="maintenance", start=5, end=20), ""),
        (lambda: NodeEvent(time=-1, kind="down"), ""),
        (lambda: draw_failures(["node0"], until=10, mean_time_between=0, mean_repair=1), ""),
    ],
)
def test_clusters_and_values_that_cannot_be(make: Callable[[], object], found: str) -> None:
    with refused(found):
        make()


def test_circles_of_dependencies_are_refused() -> None:
    with refused("itself", error=WorkloadError):
        crowd(dependencies=dependency_table([(1, 2, "afterok"), (2, 3, "afterok"), (3, 1, "afterok")]))


def test_events_come_from_files(tmp_path: Any) -> None:
    path = tmp_path / "events.csv"
    path.write_text("time,node,kind,start,end\n5,node1,down,,\n6,*,maintenance,10,20\n")
    assert read_events(path) == [
        NodeEvent(time=5, node="node1", kind="down"),
        NodeEvent(time=6, node="*", kind="maintenance", start=10, end=20),
    ]
    path.write_text("time,node,kind\n1970-01-02T00:00,node1,down\n1970-01-02T00:00+01:00,node1,up\n")
    dated = read_events(path, unix_start_time=3600, time_zone="Europe/Rome")
    assert [event.time for event in dated] == [86400 - 7200, 86400 - 7200]
    with refused("date"):
        read_events(path)
    for rows, found in (
        ("5,node1,down,,\nsoon,node1,up,,\n", ":3: time"),
        ("5,node1,maintenance,3,9\n", ":2:"),
    ):
        path.write_text(f"time,node,kind,start,end\n{rows}")
        with refused(found):
            read_events(path)


def test_runs_on_nodes_are_stacked() -> None:
    cluster = gs.Cluster(nodes=[NodeType(count=4, cores=4, gpus=1)])
    jobs = crowd(5, gives_up_time=crowd(5).submit_time + 60)
    runs = [verified(jobs, cluster, policy) for policy in ("easy", "fcfs", "ff")]
    stacked = results.stack_runs(runs, ["easy", "fcfs", "ff"])
    for index, run in enumerate(runs):
        assert_stacked(stacked, index, run)
        assert stacked["run_jobs_gave_up"][index] == run.attrs["jobs_gave_up"] > 0


def test_gantt_charts_show_runs_on_nodes() -> None:
    figure = gs.plot.gantt(verified(crowd(jobs=10), gs.Cluster(nodes=[NodeType(cores=16)])))
    assert figure is not None


def test_summaries_count_who_gave_up_and_what_was_lost() -> None:
    jobs = jobs_of(
        submit_time=[0, 0, 0],
        run_time=[100, 50, 50],
        requested_time=[100, 50, 50],
        requested_processors=[4, 4, 4],
        gives_up_time=[-1, 30, -1],
    )
    down = NodeEvent(time=40, node="node0", kind="down")
    up = NodeEvent(time=60, node="node0", kind="up")
    run = verified(jobs, gs.Cluster(processors=4, processors_per_node=4, events=[down, up]), "fcfs")
    assert run["start_time"].values.tolist() == [0, -1, 160]
    summary = gs.summarise(run)
    assert_fields(
        summary, gave_up_share=pytest.approx(1 / 3), killed=1, extra_work_share=pytest.approx(40 / 150)
    )
    # two wait until the second gives up at 30, one until it starts at 160, of 210 s
    assert float(summary["queue_length_mean"]) == pytest.approx((2 * 30 + 130) / 210)

"""Local policies on clusters of nodes, as users ask for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched import results
from gridsched.errors import ConfigurationError, ScheduleError, WorkloadError
from gridsched.nodes import (
    PLACEMENTS,
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
from tests.oracles import nodes as oracle
from tests.support.fields import assert_fields

COMPLETED, REJECTED, GAVE_UP, NEVER_ELIGIBLE, LOST, STARVED = range(6)


def log(**columns: Any) -> gs.Workload:
    """A workload of lists."""
    return gs.Workload(**columns)


def workload(seed: int = 0, jobs: int = 80, **columns: Any) -> gs.Workload:
    """Jobs that queue up on 16 processors, some of which outrun their requested times."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 200, jobs)
    return gs.Workload(
        name="drawn",
        submit_time=np.sort(rng.integers(0, 20 * jobs, jobs)),
        run_time=run,
        requested_time=np.maximum(run + rng.integers(-30, 200, jobs), 1),
        requested_processors=rng.integers(1, 9, jobs),
        user=rng.integers(0, 4, jobs),
        **columns,
    )


def verified(jobs: gs.Workload, cluster: gs.Cluster, policy: str | gs.LocalPolicy = "easy") -> Any:
    run = gs.simulate(jobs, cluster, policy)
    gs.verify(run)
    return run


@pytest.mark.parametrize("policy", [*POLICIES, "easy(3)"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_one_node_is_a_number_of_processors(policy: str, seed: int) -> None:
    """On a cluster of one node jobs start when they do on as many processors."""
    jobs = workload(seed)
    plain = gs.simulate(jobs, 16, policy)
    nodes = verified(jobs, gs.Cluster(nodes=[NodeType(cores=16)]), policy)
    np.testing.assert_array_equal(plain["start_time"], nodes["start_time"])
    assert plain.attrs["corrections"] == nodes.attrs["corrections"]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_placements_keep_the_rules(placement: Any) -> None:
    rng = np.random.default_rng(1)
    share = rng.choice([-1, -1, 300, 600], 80)
    jobs = workload(
        requested_memory=rng.integers(0, 3, 80) * 1024,
        requested_gpus=np.where(share < 0, rng.choice([-1, 1, 2], 80), -1),
        gpu_share=share,
    )
    kinds = [
        NodeType(count=2, cores=8, gpus=2, memory=16, name="gpu"),
        NodeType(count=2, cores=8, memory=32, name="cpu", weight=1.0),
    ]
    run = verified(jobs, gs.Cluster(nodes=kinds, placement=placement))
    assert (run["start_time"] >= 0).mean() > 0.9


def test_jobs_that_no_node_can_hold_are_rejected_by_reason() -> None:
    jobs = log(
        name="large",
        submit_time=[0, 0, 0, 0, 0],
        run_time=[10] * 5,
        requested_time=[10, 10, 10, 10, 5000],
        requested_processors=[4, 4, 9, 4, 1],
        requested_memory=[1024, 2 * 1024, -1, -1, -1],
        requested_gpus=[-1, -1, -1, 2, -1],
        user=[1] * 5,
    )
    cluster = gs.Cluster(
        nodes=[NodeType(count=2, cores=4, memory=4, gpus=1)],
        partitions=[Partition(number=1, time_limit=3600)],
        limits=[Limit(processors=4)],
    )
    run = verified(jobs, cluster)
    assert_fields(run, fate=[COMPLETED, COMPLETED, REJECTED, COMPLETED, REJECTED], jobs_rejected=2)
    # memory of two nodes for the second, a GPU of each of two nodes for the fourth
    assert sorted(run["piece_node"].values[run["piece_segment"].values == 1]) == [0, 1]
    assert run.attrs["rejected: larger than the nodes that it may use"] == 1
    assert run.attrs["rejected: over a limit of its partition"] == 1


def test_requested_nodes_are_spread_evenly() -> None:
    jobs = log(
        name="spread",
        submit_time=[0],
        run_time=[10],
        requested_processors=[6],
        requested_nodes=[3],
        requested_gpus=[3],
    )
    run = verified(jobs, gs.Cluster(nodes=[NodeType(count=4, cores=8, gpus=2)]))
    assert run["piece_cores"].values.tolist() == [2, 2, 2]
    assert sorted(run["piece_node"].values) == [0, 1, 2]
    assert run["piece_devices"].values.tolist() == [1, 1, 1]


@pytest.mark.parametrize("policy", ["fcfs", "ff", "sjf"])
def test_whole_nodes_are_shared_with_nobody(policy: str) -> None:
    """Without reservations, which name nodes, jobs start when they do where nodes are only counted."""
    cluster = gs.Cluster(processors=16, processors_per_node=4, node_exclusive=True)
    jobs = workload(3)
    plain = gs.simulate(jobs, cluster, policy)
    # an event that touches nobody makes nodes matter
    event = NodeEvent(time=10**6, node="node0", kind="drain")
    nodes = verified(jobs, replace(cluster, events=[event]), policy)
    np.testing.assert_array_equal(plain["start_time"], nodes["start_time"])


def test_higher_partitions_come_first_and_others_wait_for_their_nodes_only() -> None:
    jobs = log(
        name="queues",
        submit_time=[0, 1, 2, 3],
        run_time=[100] * 4,
        requested_processors=[4, 4, 4, 4],
        queue=[0, 0, 7, 1],
    )
    kinds = [NodeType(cores=4, name="a"), NodeType(cores=4, name="b")]
    partitions = [
        Partition(number=0, nodes=["a"]),
        Partition(number=1, nodes=["a0"], priority=3),
        Partition(number=7, nodes=["b"]),
    ]
    cluster = gs.Cluster(nodes=kinds, partitions=partitions, partition_of="queue")
    run = verified(jobs, cluster, "fcfs")
    assert run["start_time"].values.tolist() == [0, 200, 2, 100]


def test_limits_hold_up_nobody_else() -> None:
    jobs = log(
        name="groups",
        submit_time=[0, 1, 2, 3],
        run_time=[100] * 4,
        requested_processors=[1] * 4,
        user=[1, 1, 2, 1],
    )
    run = verified(jobs, gs.Cluster(processors=8, limits=[Limit(by="user", jobs=1)]), "fcfs")
    assert run["start_time"].values.tolist() == [0, 100, 2, 200]
    run = verified(jobs, gs.Cluster(processors=8, limits=[Limit(by="user", of=1, processor_minutes=4)]))
    assert run["start_time"].values.tolist() == [0, 1, 2, 100]


# --- job arrays -----------------------------------------------------------------------------------


def test_so_many_tasks_of_an_array_run_at_once() -> None:
    jobs = log(
        name="arrays",
        submit_time=[0] * 7,
        run_time=[10, 20, 10, 10, 10, 10, 10],
        requested_processors=[1] * 7,
        array=[5, 5, 5, 5, 8, 8, -1],
        array_limit=[2, 2, 2, 2, -1, -1, -1],
    )
    run = verified(jobs, gs.Cluster(processors=16), "fcfs")
    assert_fields(run, start_time=[0, 0, 10, 20, 0, 0, 0], limit_jobs=[2])
    spoiled = run.copy(deep=True)
    spoiled["limit_jobs"][0] = 1
    with pytest.raises(ScheduleError, match="limit"):
        gs.verify(spoiled)
    # tasks of an array of another log are another array
    merged, _ = merge_workloads([jobs, jobs])
    assert verified(merged, gs.Cluster(processors=16))["limit_jobs"].values.tolist() == [2, 2]


@pytest.mark.random_cases(25)
@pytest.mark.parametrize("backfilling", ["none", "first_fit", "easy", "conservative"])
def test_arrays_are_groups_of_the_plain_simulator(backfilling: Any, seed: int) -> None:
    """Beside a limit of each user, on nodes and on plain processors."""
    rng = np.random.default_rng(seed)
    jobs = workload(seed, 30)
    array, most = rng.integers(-1, 3, 30), rng.integers(1, 4, 3)
    jobs = replace(jobs, array=array, array_limit=np.where(array >= 0, most[array], -1))
    nodes = [NodeType(count=1 if seed % 2 else 4, cores=16 if seed % 2 else 4)]
    cluster = gs.Cluster(nodes=nodes, limits=[Limit(by="user", jobs=3)])
    policy = gs.LocalPolicy(name="tried", backfilling=backfilling)
    run = verified(jobs, cluster, policy)
    naive = oracle.Simulation(
        [oracle.Node(nodes[0].cores)] * nodes[0].count,
        [
            oracle.Job(
                int(jobs.submit_time[j]),
                int(jobs.run_time[j]),
                int(jobs.requested_time[j]),
                units=int(jobs.requested_processors[j]),
                groups=[int(jobs.user[j])] + ([4 + int(array[j])] if array[j] >= 0 else []),
            )
            for j in range(30)
        ],
        oracle.Policy(backfilling=backfilling),
        limits=[*[oracle.Limit(jobs=3)] * 4, *(oracle.Limit(jobs=int(each)) for each in most)],
    )
    naive.simulate()
    assert run["start_time"].values.tolist() == naive.first_start


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
    columns = {name: np.array(column) for name, column in columns.items()}
    jobs = log(name="wrong", submit_time=[0, 0], run_time=[5, 5], requested_processors=[1, 1], **columns)
    with pytest.raises(WorkloadError, match=found):
        gs.simulate(jobs, 4, "easy")


# --- failures -------------------------------------------------------------------------------------


def _failing(**options: Any) -> gs.Cluster:
    events = [
        NodeEvent(time=50, node="node0", kind="down"),
        NodeEvent(time=70, node="node0", kind="up"),
    ]
    return gs.Cluster(processors=4, processors_per_node=4, events=events, **options)


TWO = log(
    name="two",
    submit_time=[0, 1],
    run_time=[100, 10],
    requested_time=[100, 10],
    requested_processors=[4, 4],
)


@pytest.mark.parametrize(
    ("options", "ends", "fates"),
    [
        ({}, [170, 180], [COMPLETED, COMPLETED]),
        ({"requeue": "end"}, [180, 80], [COMPLETED, COMPLETED]),
        ({"requeue": "lost"}, [50, 80], [LOST, COMPLETED]),
        # two checkpoints of 20 s of work and 2 s each before the failure, two after it
        ({"checkpoint_interval": 20, "checkpoint_cost": 2}, [134, 144], [COMPLETED, COMPLETED]),
    ],
)
def test_what_becomes_of_jobs_on_failing_nodes(
    options: dict[str, Any], ends: list[int], fates: list[int]
) -> None:
    run = verified(TWO, _failing(**options), "fcfs")
    assert_fields(run, end_time=ends, fate=fates, killed=[1, 0])


def test_pending_jobs_whose_node_fails_wait_for_it_go_elsewhere_or_never_run() -> None:
    """The three meanings of a failure for who waits: nothing, another node, and no node ever again."""
    down = NodeEvent(time=5, node="a0", kind="down")
    up = NodeEvent(time=60, node="a0", kind="up")
    jobs = log(
        name="pending",
        submit_time=[0, 10],
        run_time=[20, 20],
        requested_processors=[4, 4],
        partition=[0, 0],
    )
    kinds = [NodeType(cores=4, name="a"), NodeType(cores=4, name="b")]
    only = [Partition(number=0, nodes=["a"])]
    waits = verified(jobs, gs.Cluster(nodes=kinds, partitions=only, events=[down, up]))
    assert waits["end_time"].values.tolist() == [80, 100]
    elsewhere = verified(jobs, gs.Cluster(nodes=kinds, events=[down, up]))
    assert elsewhere["end_time"].values.tolist() == [25, 45]
    never = verified(jobs, gs.Cluster(nodes=kinds, partitions=only, events=[down]))
    assert never["fate"].values.tolist() == [STARVED, STARVED]


@pytest.mark.parametrize("policy", ["fcfs", "ff", "easy", "conservative"])
def test_announced_maintenance_is_planned_around(policy: str) -> None:
    """A job that would not end before a window is not started, one that does is, and nothing is killed."""
    window = NodeEvent(time=0, node="node0", kind="maintenance", start=60, end=90)
    cluster = gs.Cluster(processors=4, processors_per_node=4, events=[window])
    jobs = log(
        name="window",
        submit_time=[0, 1],
        run_time=[61, 50],
        requested_time=[61, 50],
        requested_processors=[4, 4],
    )
    run = verified(jobs, cluster, policy)
    expected = {"fcfs": [90, 151], "ff": [90, 1], "easy": [90, 1], "conservative": [90, 1]}
    assert run["start_time"].values.tolist() == expected[policy]
    assert run["killed"].sum() == 0


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
        run = verified(workload(), cluster, policy)
        assert run["killed"].sum() > 0


# --- users who give up, dependencies --------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_users_who_give_up_leave_the_queue(seed: int) -> None:
    jobs = workload(seed)
    patient = gs.simulate(jobs, 16, "fcfs")
    leaving = replace(jobs, gives_up_time=jobs.submit_time + 40)
    run = verified(leaving, gs.Cluster(processors=16), "fcfs")
    waits = (run["start_time"] - run["submit_time"]).values[run["fate"].values == COMPLETED]
    assert (waits < 40).all()
    assert run.attrs["jobs_rejected"] == 0
    # whoever waits less than the first to give up starts as if nobody did
    first = np.flatnonzero(run["fate"].values == GAVE_UP)
    until = int(jobs.submit_time[first[0]]) + 40 if len(first) else 10**9
    before = patient["start_time"].values < until
    np.testing.assert_array_equal(run["start_time"].values[before], patient["start_time"].values[before])


def test_dependencies_are_met_in_time_or_never() -> None:
    jobs = log(
        name="chain",
        submit_time=[0, 1, 2, 3, 4, 5],
        run_time=[100] * 6,
        requested_processors=[1] * 6,
        status=[1, 0, 1, 1, 1, 1],
        dependencies=dependency_table(
            [(2, 0, "afterany", 7), (3, 1, "afterok"), (4, 3, "afterany"), (5, 0, "after")]
        ),
    )
    run = verified(jobs, gs.Cluster(processors=8))
    assert_fields(
        run,
        start_time=[0, 1, 107, -1, -1, 5],
        fate=[0, 0, 0, NEVER_ELIGIBLE, NEVER_ELIGIBLE, 0],
        jobs_never_eligible=2,
    )


def test_who_waits_for_the_start_of_a_job_that_is_never_eligible_is_not_either() -> None:
    jobs = log(
        name="after",
        submit_time=[0, 1, 2],
        run_time=[10] * 3,
        requested_processors=[1] * 3,
        status=[0, 1, 1],
        dependencies=dependency_table([(1, 0, "afterok"), (2, 1, "after")]),
    )
    run = verified(jobs, gs.Cluster(processors=4))
    assert run["fate"].values.tolist() == [COMPLETED, NEVER_ELIGIBLE, NEVER_ELIGIBLE]


def test_preceding_jobs_of_logs_are_dependencies() -> None:
    jobs = log(
        name="log",
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


def test_singletons_run_one_at_a_time() -> None:
    jobs = log(
        name="singletons",
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


def _spoiled(run: Any, name: str, value: Any) -> Any:
    spoiled = run.copy(deep=True)
    values = spoiled[name].to_numpy()
    values[np.flatnonzero(spoiled[name].to_numpy() >= 0)[0]] = value
    return spoiled


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
    jobs = log(
        name="spoiled",
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
    ("options", "found"),
    [
        ({"nodes": [NodeType(cores=4)], "processors": 5}, "processors"),
        ({"nodes": [NodeType(cores=4), NodeType(cores=8)]}, "one name"),
        ({"processors": 4, "partitions": [Partition(number=1, nodes=["gpu"])]}, "gpu"),
        ({"processors": 4, "events": [NodeEvent(time=1, node="node9", kind="down")]}, "node9"),
        ({"processors": 4, "placement": "anywhere"}, "placement"),
        ({"processors": 4, "checkpoint_interval": -1}, "checkpoint_interval"),
    ],
)
def test_clusters_that_cannot_be(options: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigurationError, match=found):
        gs.Cluster(**options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: NodeType(cores=0),
        lambda: NodeType(cores=4, memory=-1),
        lambda: Limit(by="user"),
        lambda: NodeEvent(time=10, kind="maintenance", start=5, end=20),
        lambda: NodeEvent(time=-1, kind="down"),
        lambda: draw_failures(["node0"], until=10, mean_time_between=0, mean_repair=1),
    ],
)
def test_values_out_of_range(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_circles_of_dependencies_are_refused() -> None:
    with pytest.raises(WorkloadError, match="itself"):
        workload(dependencies=dependency_table([(1, 2, "afterok"), (2, 3, "afterok"), (3, 1, "afterok")]))


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
    with pytest.raises(ConfigurationError, match="date"):
        read_events(path)
    path.write_text("time,node,kind,start,end\n5,node1,down,,\nsoon,node1,up,,\n")
    with pytest.raises(ConfigurationError, match=":3: time"):
        read_events(path)
    path.write_text("time,node,kind,start,end\n5,node1,maintenance,3,9\n")
    with pytest.raises(ConfigurationError, match=":2:"):
        read_events(path)


def test_runs_on_nodes_are_stacked_and_come_back() -> None:
    cluster = gs.Cluster(nodes=[NodeType(count=4, cores=4, gpus=1)])
    jobs = workload(5, gives_up_time=workload(5).submit_time + 60)
    runs = [verified(jobs, cluster, policy) for policy in ("easy", "fcfs", "ff")]
    stacked = results.stack_runs(runs, ["easy", "fcfs", "ff"])
    for index, run in enumerate(runs):
        back = results.unstack_run(stacked, index)
        gs.verify(back)
        for name in run.data_vars:
            np.testing.assert_array_equal(back[name], run[name], err_msg=str(name))
        assert back.attrs["jobs_gave_up"] == run.attrs["jobs_gave_up"] > 0


def test_gantt_charts_show_runs_on_nodes() -> None:
    figure = gs.plot.gantt(verified(workload(jobs=10), gs.Cluster(nodes=[NodeType(cores=16)])))
    assert figure is not None


def test_summaries_count_who_gave_up_and_what_was_lost() -> None:
    jobs = log(
        name="measured",
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

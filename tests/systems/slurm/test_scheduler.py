"""Slurm on workloads: cadence, whole and shared nodes, limits, priorities, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsched.engine.job_lifecycle import Fate
from gridsched.nodes import Limit, NodeEvent, NodeType, Partition, draw_failures
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.systems.slurm.accounts import Accounting, Quality
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.verification import verify, violations
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.table import Workload
from tests.support.errors import refused
from tests.support.fields import assert_fields, field
from tests.support.nodes import jobs_of


def workload(rows: list[tuple[int, int, int]], **columns: Any) -> Workload:
    """Jobs of (submit time, run time, processors) that ask for what they need."""
    submit, run, size = zip(*rows, strict=True)
    requested = [max(each, 60) for each in run]
    given = {"submit_time": submit, "run_time": run, "requested_processors": size}
    return jobs_of(**{**given, "requested_time": requested, **columns})


def starts(*arguments: Any, **options: Any) -> Any:
    """Start times [s] of a verified run."""
    run = simulate(*arguments, **options)
    verify(run)
    return run["start_time"].to_numpy()


def mixed(count: int = 300, seed: int = 1) -> Workload:
    """Jobs of many kinds."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 7200, count)
    return Workload(
        name="mixed",
        submit_time=np.sort(rng.integers(0, 86400, count)),
        run_time=run,
        requested_time=np.maximum(run * 2, 60),
        requested_processors=rng.choice([1, 4, 8, 32], count),
        requested_memory=rng.choice([1, 2, 8], count) * 2**20,
        requested_gpus=rng.choice([-1, -1, 1, 2], count),
        requested_nodes=rng.choice([-1, 2], count),
        user=rng.integers(0, 10, count),
        group=rng.integers(0, 3, count),
        queue=rng.integers(0, 2, count),
    )


NODES = [
    NodeType(name="gpu", count=4, cores=32, memory=256 * 1024, gpus=4),
    NodeType(name="cpu", count=8, cores=64, memory=128 * 1024),
]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"select_type": "linear"},
        {"scheduler_type": "builtin"},
        {"memory_is_consumed": True, "bf_max_job_test": 5, "bf_resolution": 1},
        {"priority_weight_age": 1000, "priority_weight_fairshare": 5000, "priority_weight_job_size": 100},
        {"priority_weight_partition": 100, "priority_weight_tres": {"cpu": 50.0}, "enforce_limits": True},
    ],
)
def test_runs_on_nodes_keep_the_rules(parameters: dict[str, Any]) -> None:
    cluster = Cluster(
        nodes=NODES,
        partitions=[Partition(number=0), Partition(number=1, nodes=["gpu"], priority=5)],
        partition_of="queue",
        limits=[Limit(by="user", processors=128), Limit(by="queue", of=1, jobs=6)],
    )
    run = simulate(mixed(), cluster, Slurm(**parameters))
    verify(run)
    assert int((run["start_time"] >= 0).sum()) == 300 - run.attrs["jobs_rejected"]
    assert run.attrs["jobs_rejected"] < 20


def test_runs_repeat_themselves_and_the_seed_moves_the_phase() -> None:
    cluster = Cluster(processors=64, processors_per_node=8)
    one, again, other = (starts(mixed(), cluster, "slurm", seed=seed) for seed in (3, 3, 4))
    assert (one == again).all()
    assert (one != other).any()


def test_every_cluster_of_a_platform_has_a_controller() -> None:
    clusters = [Cluster(processors=64, processors_per_node=8, name=name) for name in ("north", "south")]
    run = simulate([mixed(seed=1), mixed(seed=2)], Platform(clusters), "slurm")
    verify(run)
    assert set(run["segment_cluster"].to_numpy().tolist()) == {0, 1}


@pytest.mark.parametrize(
    "apart",
    [
        {"batch_sched_delay": 7, "sched_interval": 1000},
        {"sched_min_interval": 7_000_000, "batch_sched_delay": 0, "sched_interval": 1000},
        {"sched_min_interval": 7_000_000, "batch_sched_delay": 0, "sched_interval": 2},
    ],
)
def test_a_job_waits_for_the_next_turn_of_the_main_loop(apart: dict[str, Any]) -> None:
    # Passes are so far apart where jobs come, though nobody is in the way.
    jobs = workload([(second, 10, 1) for second in range(100, 200)])
    run = simulate(jobs, 64, Slurm(scheduler_type="builtin", **apart))
    waits = (run["start_time"] - run["submit_time"]).to_numpy()
    assert waits.max() == 6
    assert 14 <= len(np.unique(run["start_time"])) <= 17


def test_the_main_loop_looks_at_the_whole_queue_only_now_and_then() -> None:
    # The second job is in a partition of its own, but deeper in the queue than passes look.
    jobs = workload([(0, 5000, 64), (1, 60, 64), (2, 60, 4)], queue=[0, 0, 1])
    names = [f"n{k}" for k in range(68)]
    partitions = [Partition(number=0, nodes=names[:64]), Partition(number=1, nodes=names[64:])]
    nodes = [NodeType(count=68, cores=1, name="n")]
    cluster = Cluster(nodes=nodes, partitions=partitions, partition_of="queue")
    deep = Slurm(scheduler_type="builtin", sched_interval=1000)
    assert starts(jobs, cluster, deep)[2] < 10
    assert starts(jobs, cluster, replace(deep, default_queue_depth=0))[2] > 10


def test_backfilling_fills_holes_that_the_main_loop_leaves() -> None:
    jobs = workload([(0, 1000, 6), (10, 1000, 8), (20, 600, 2)])
    backfilled = simulate(jobs, 8, Slurm())
    assert_fields(backfilled, started_by=[0, 0, 1])
    assert backfilled["start_time"][2] < 60
    assert starts(jobs, 8, Slurm(scheduler_type="builtin"))[2] > 1000


def test_a_narrow_window_plans_nothing_beyond_it() -> None:
    # With a plan for the second job the third may not run over it; beyond the window there is none.
    jobs = workload([(0, 3000, 6), (10, 1000, 8), (20, 6000, 2)])
    wide, narrow = (starts(jobs, 8, Slurm(bf_window=window)) for window in (1440, 10))
    assert narrow[2] < 100 < wide[2]


def test_shares_decide_who_comes_first() -> None:
    users = np.arange(60) % 2
    jobs = workload([(0, 600, 8)] * 60, user=users, group=users)
    scheduler = Slurm(
        priority_weight_fairshare=10000,
        account_shares={0: 9, 1: 1},
        enforce_limits=True,
        priority_calc_period=60,
    )
    start = starts(jobs, 8, scheduler)
    assert start[users == 0].mean() < start[users == 1].mean() - 600


def test_a_job_that_no_nodes_can_hold_is_rejected_with_a_reason() -> None:
    cluster = Cluster(nodes=NODES, limits=[Limit(by="user", processors=100)])
    jobs = workload([(0, 10, 1000), (0, 10, 128), (0, 10, 1)], user=[0] * 3)
    run = simulate(jobs, cluster, "slurm")
    verify(run)
    assert run.attrs["rejected: no nodes that it may use can hold it"] == 1
    assert run.attrs["rejected: over a limit of its group, association or QOS"] == 1


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"scheduler_type": "wiki"}, "backfill, builtin"),
        ({"select_type": "serial"}, "cons_tres, linear"),
        ({"bf_interval": 0}, "bf_interval is 0"),
        ({"default_queue_depth": -1}, "default_queue_depth is -1"),
        ({"priority_weight_tres": {"licenses": 5}}, "licenses"),
        ({"preempt_mode": "requeue"}, "contradict each other"),
        ({"preempt_type": "partition_prio"}, "contradict each other"),
        ({"preempt_type": "qos", "preempt_mode": "cancel"}, "give accounting"),
        ({"preempt_type": "qos", "preempt_mode": "gang"}, "off, requeue, cancel, suspend"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], named: str) -> None:
    with refused(named):
        Slurm(**parameters)


def test_jobs_wait_for_others_and_users_give_up() -> None:
    jobs = mixed()
    table = dependency_table(
        [(5, 2, "afterok"), (9, 5, "afterany", 600), (20, 19, "after"), (30, 0, "afternotok")]
    )
    jobs = replace(jobs, gives_up_time=jobs.submit_time + 3600, dependencies=table)
    run = simulate(jobs, Cluster(nodes=NODES), Slurm(select_type="linear"))
    verify(run)
    assert run.attrs["jobs_gave_up"] > 10
    assert run.attrs["jobs_never_eligible"] >= 1


def test_only_some_tasks_of_an_array_run_at_once() -> None:
    rows = [(0, 600, 1) for _ in range(6)]
    jobs = workload(rows, array=[0] * 6, array_limit=[2] * 6)
    run = simulate(jobs, Cluster(processors=8), Slurm())
    verify(run)
    start, end = run["start_time"].values, run["end_time"].values
    assert max(int(((start <= now) & (now < end)).sum()) for now in start) == 2


def failing(rng: np.random.Generator, **changes: Any) -> Cluster:
    """A cluster whose nodes fail, are drained and maintained at random."""
    names = [name for kind in NODES for name in kind.nodes]
    events = draw_failures(
        names, until=86400, mean_time_between=6 * 3600, mean_repair=1800, seed=int(rng.integers(99))
    )
    for name in rng.choice(names, 3, replace=False).tolist():
        begin = int(rng.integers(0, 60000))
        events.append(NodeEvent(time=begin, node=name, kind="drain"))
        events.append(NodeEvent(time=begin + 9000, node=name, kind="resume"))
    for node in ("cpu", "gpu", "*"):
        known = int(rng.integers(0, 40000))
        start = known + int(rng.integers(0, 20000))
        events.append(NodeEvent(time=known, node=node, kind="maintenance", start=start, end=start + 5000))
    return Cluster(nodes=NODES, events=events, **changes)


@pytest.mark.random_cases(12)
def test_runs_with_failures_keep_the_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = failing(
        rng,
        requeue=["place", "end", "lost"][seed % 3],
        checkpoint_interval=[0, 900][seed % 2],
        checkpoint_cost=20,
        node_exclusive=seed % 4 == 3,
    )
    parameters: dict[str, Any] = {"priority_weight_age": 1000, "priority_weight_fairshare": 500}
    scheduler = Slurm(enforce_limits=True, **parameters if seed % 5 else {})
    run, again = (simulate(mixed(seed=seed), cluster, scheduler) for _ in range(2))
    verify(run)
    assert run.attrs["executions_killed"] > 10
    assert (run.attrs["jobs_lost"] > 0) == (cluster.requeue == "lost")
    assert (run["start_time"] == again["start_time"]).all()


@pytest.mark.parametrize(
    ("requeue", "order"), [("place", [0, 0, 1, 2]), ("end", [0, 1, 2, 0]), ("lost", [0, 1, 2])]
)
def test_a_killed_job_goes_back_to_its_place_or_to_the_end(requeue: Any, order: list[int]) -> None:
    jobs = workload([(0, 1000, 1), (10, 1000, 1), (20, 1000, 1)])
    events = [NodeEvent(time=500, kind="down"), NodeEvent(time=600, kind="up")]
    cluster = Cluster(processors=1, processors_per_node=1, events=events, requeue=requeue)
    run = simulate(jobs, cluster, Slurm())
    verify(run)
    assert_fields(run.sortby("segment_start"), segment_job=order)


def test_no_job_starts_that_would_run_into_maintenance() -> None:
    jobs = workload([(0, 500, 2), (10, 3000, 4), (20, 3000, 2), (30, 100, 2)])
    upgrade = NodeEvent(time=0, node="*", kind="maintenance", start=2000, end=4000)
    run = simulate(jobs, Cluster(processors=4, processors_per_node=1, events=[upgrade]), Slurm())
    verify(run)
    start = run["start_time"].to_numpy()
    # the short job does not wait for those that have to wait for the end of the window
    assert start[3] < 100
    assert start[1] >= 4000
    assert start[2] >= 4000
    assert run.attrs["executions_killed"] == 0


def test_jobs_that_no_node_comes_back_for_starve() -> None:
    cluster = Cluster(processors=4, processors_per_node=1, events=[NodeEvent(time=5, kind="drain")])
    run = simulate(workload([(0, 100, 4), (1, 100, 4)]), cluster, Slurm())
    verify(run)
    assert_fields(run, fate=[0, Fate.STARVED])


@pytest.mark.parametrize(
    ("nice", "array", "parameters", "order"),
    [
        ([-1, 100, -1, -1], -1, {"priority_weight_job_size": 1000}, [0, 2, 3, 1]),
        ([-1, -1, -100, 50], -1, {}, [0, 2, 1, 3]),
        ([-1, 100, -1, -1], -1, {"priority_type": "basic"}, [0, 2, 3, 1]),
        ([-1, -1, -1, -100], -1, {"priority_type": "basic"}, [0, 3, 1, 2]),
        ([-1, 2, -1, -1], -1, {"priority_type": "basic"}, [0, 2, 1, 3]),
        # the order of their records
        ([-1, 100, -1, -1], -1, {"priority_type": "basic", "scheduler_type": "builtin"}, [0, 1, 2, 3]),
        # one record, and one priority
        ([-1, 2, -1, -1], 7, {"priority_type": "basic"}, [0, 2, 3, 1]),
    ],
)
def test_nice_jobs_let_others_go_before_them(
    nice: list[int], array: int, parameters: dict[str, Any], order: list[int]
) -> None:
    """The first job runs when the others come, of which the last two may be an array."""
    table = [(0, 600, 8), (10, 600, 8), (20, 600, 8), (30, 600, 8)]
    jobs = workload(table, nice=nice, array=[-1, -1, array, array])
    assert np.argsort(starts(jobs, 8, Slurm(**parameters)), kind="stable").tolist() == order


GATED = Cluster(
    nodes=NODES,
    partitions=[Partition(number=0), Partition(number=1, priority=5)],
    partition_of="queue",
)


@pytest.mark.parametrize("select", ["linear", "cons_tres"])
@pytest.mark.parametrize("mode", ["requeue", "cancel", "suspend"])
def test_runs_with_preemption_keep_the_rules(mode: Any, select: Any) -> None:
    names = {"requeue": "requeued", "cancel": "cancelled", "suspend": "suspended"}
    for seed in range(4):
        scheduler = Slurm(
            preempt_type="partition_prio",
            preempt_mode=mode,
            select_type=select,
            memory_is_consumed=True,
            preempt_exempt_time=[0, 600][seed % 2],
            priority_weight_age=1000,
            priority_weight_fairshare=500,
        )
        cluster = replace(
            failing(np.random.default_rng(seed)), partitions=GATED.partitions, partition_of="queue"
        )
        cluster = GATED if seed < 2 else cluster
        run = simulate(mixed(seed=seed), cluster, scheduler)
        verify(run)
        assert run.attrs[f"preempted: {names[mode]}"] > 0
        assert sum(run.attrs[f"preempted: {name}"] for name in names.values()) == run.sizes["preemption"]
        assert (run.attrs["jobs_lost"] > 0) == (mode == "cancel")


def test_who_is_preempted_waits_is_lost_or_sleeps() -> None:
    jobs = workload([(0, 1000, 4), (300, 100, 4)], queue=[0, 1])
    cluster = replace(GATED, nodes=(), processors=4)

    def segments(**parameters: Any) -> list[tuple[int, int]]:
        scheduler = Slurm(preempt_type="partition_prio", batch_sched_delay=1, **parameters)
        run = simulate(jobs, cluster, scheduler)
        verify(run)
        first = run.isel(segment=run["segment_job"] == 0)
        return list(zip(field(first, "segment_start"), field(first, "segment_end"), strict=True))

    requeued = segments(preempt_mode="requeue", requeue_delay=600)
    assert len(requeued) == 2
    assert 300 <= requeued[0][1] < 310
    assert requeued[0][1] + 600 <= requeued[1][0] < requeued[0][1] + 670
    assert requeued[1][1] - requeued[1][0] == 1000
    assert len(segments(preempt_mode="cancel")) == 1
    slept = segments(preempt_mode="suspend")
    assert sum(end - start for start, end in slept) == 1000
    assert 400 <= slept[1][0] < 410
    assert segments(preempt_mode="requeue", preempt_exempt_time=2000) == segments(
        preempt_mode="requeue", partition_preempt_modes={0: "off"}
    )
    assert segments(preempt_mode="suspend", preempt_exempt_time=2000) == slept
    assert len(segments(preempt_mode="suspend", preempt_exempt_time=2000, version="26.05")) == 1
    assert len(segments(preempt_mode="requeue", preempt_exempt_time=2000)) == 1


def test_qualities_of_service_name_whom_they_preempt() -> None:
    jobs = workload([(0, 1000, 4), (300, 100, 4), (320, 50, 4)], queue=[0, 1, 2])
    qualities = {
        "0": Quality(name="0"),
        "1": Quality(name="1", priority=5, preempts=("0",), preempt_mode="cancel"),
        "2": Quality(name="2", priority=9),
    }
    scheduler = Slurm(
        preempt_type="qos",
        preempt_mode="requeue",
        accounting=Accounting(qualities=qualities),
        requeue_delay=10,
    )
    run = simulate(jobs, 4, scheduler)
    verify(run)
    assert_fields(run, preemption_job=[0], preemption_by=[1])
    spared = replace(qualities["0"], preempt_exempt_time=5000)
    accounting = Accounting(qualities={**qualities, "0": spared})
    assert simulate(jobs, 4, replace(scheduler, accounting=accounting)).sizes["preemption"] == 0


def test_a_false_preemption_is_found() -> None:
    run = simulate(mixed(), GATED, Slurm(preempt_type="partition_prio", preempt_mode="requeue"))
    verify(run)
    by, of = run["preemption_by"], run["preemption_job"]
    first = np.arange(run.sizes["preemption"]) == 0
    for changes, complaint in (
        (
            {"preemption_by": by.where(~first, of), "preemption_job": of.where(~first, by)},
            "may not preempt it",
        ),
        ({"preemption_time": run["preemption_time"] + first}, "does not run until then"),
        ({"preemption_exempt": run["preemption_exempt"] * 0 + 10**6}, "is exempt for longer"),
        ({"preemption_until": run["preemption_until"] * 0 + 10**9}, "and held, but starts before"),
    ):
        wrong = run.assign(changes)
        assert any(complaint in line for line in violations(wrong) + Slurm.rules(wrong)), complaint


def test_limits_that_the_controller_does_not_know_are_refused() -> None:
    cluster = Cluster(processors=8, limits=[Limit(by="user", processor_minutes=60)])
    with refused("processor_minutes"):
        simulate(workload([(0, 600, 1)]), cluster, Slurm())


def test_jobs_that_get_a_whole_gpu_for_a_part_are_counted() -> None:
    jobs = workload([(0, 600, 1)] * 3, gpu_share=[300, 300, -1])
    run = simulate(jobs, Cluster(nodes=[NodeType(count=1, cores=4, gpus=1)]), Slurm())
    verify(run)
    assert run.attrs["whole GPUs for parts"] == 2
    start = run["start_time"].to_numpy()
    assert abs(start[1] - start[0]) >= 600


_SLOW = {"bf_time_per_job": 1_000_000}


@pytest.mark.parametrize(
    ("parameters", "arrivals", "low", "high"),
    [
        # thirty jobs are tested before the one that fits
        ({}, 0, 0, 31),
        # a second each: a pass ends after bf_interval, unless it may take longer
        (_SLOW, 0, 3600, 10**5),
        (_SLOW | {"bf_max_time": 60}, 0, 30, 90),
        ({"bf_time_per_job": 10_000}, 0, 0, 32),
        # jobs that arrive while it lets others work end it, unless it goes on or does not let them
        (_SLOW | {"bf_max_time": 60}, 400, 1200, 1400),
        (_SLOW | {"bf_max_time": 60, "bf_continue": True}, 400, 30, 90),
        (_SLOW | {"bf_max_time": 60, "bf_yield_interval": 90_000_000}, 400, 30, 90),
    ],
)
def test_backfill_passes_that_take_time(
    parameters: dict[str, Any], arrivals: int, low: int, high: int
) -> None:
    # one of two nodes is taken for an hour, jobs on both wait, and one on the other follows them
    submit = np.concatenate([[0], np.full(30, 1), [2], 3 + 3 * np.arange(arrivals)])
    size = np.concatenate([[1], np.full(30, 2), [1], np.full(arrivals, 2)])
    length = np.where(np.arange(len(size)) == 0, 3600, 600)
    jobs = jobs_of(submit_time=submit, run_time=length, requested_time=length, requested_processors=size)
    scheduler = Slurm(select_type="linear", **parameters)
    run = simulate(jobs, Cluster(processors=2), scheduler)
    start = int(run["start_time"][31])
    assert low <= start <= high

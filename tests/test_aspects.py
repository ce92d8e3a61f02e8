"""What a simulation takes into account, and what is left when one of it is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

import gridsched as gs
from gridsched.aspects import ASPECTS, aspects_of, pools_of, without
from gridsched.cli import options
from gridsched.comparison import EVERYTHING, FATES, compare, fates_of, left_aside, what_each_changes
from gridsched.errors import ConfigurationError
from gridsched.nodes import Limit, NodeEvent, NodeType, Partition
from gridsched.workloads.dependencies import dependency_table
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of


def site(seed: int = 1, count: int = 150) -> tuple[gs.Workload, gs.Cluster]:
    """Jobs and a cluster with everything."""
    rng = np.random.default_rng(seed)
    run = rng.integers(60, 4000, count)
    never = rng.random(count) < 0.2
    submit = np.sort(rng.integers(0, 40_000, count))
    gpus = np.where(rng.random(count) < 0.3, 1, -1)
    workload = gs.Workload(
        name="site",
        submit_time=submit,
        run_time=run,
        requested_time=run * 2,
        requested_processors=rng.choice([1, 2, 4], count),
        requested_memory=rng.choice([-1, 1024, 4096], count),
        requested_gpus=gpus,
        partition=(gpus > 0).astype(int),
        user=rng.integers(0, 5, count),
        constraint=np.where((gpus < 0) & (run % 5 == 0), 0, -1),
        wait_time=np.where(never, -1, rng.integers(0, 1000, count)),
        status=np.where(never, 5, 1),
        gives_up_time=np.where(never, submit + rng.integers(0, 3000, count), -1),
        dependencies=dependency_table([(job, job - 1, "afterany") for job in range(10, count, 10)]),
    )
    cluster = gs.Cluster(
        nodes=[
            NodeType(name="c", count=2, cores=8, memory=24, features=["big"]),
            NodeType(name="g", cores=4, memory=16, gpus=2),
        ],
        partitions=[Partition(number=0, name="all"), Partition(number=1, name="gpu", nodes=["g"])],
        limits=[Limit(by="user", jobs=6)],
        constraints={0: "big"},
    )
    return workload, cluster


def test_all_of_it_is_there_and_can_be_left_out() -> None:
    workload, cluster = site()
    assert aspects_of(workload, cluster) == tuple(ASPECTS)
    for name in ASPECTS:
        there = set(aspects_of(*without(workload, cluster, [name])))
        gone = {"nodes", "memory", "gpus", "partitions", "constraints"} if name == "nodes" else {name}
        assert there == set(ASPECTS) - gone
    plain, pool = without(workload, cluster, ASPECTS)
    assert aspects_of(plain, pool) == ()
    assert pool.processors == cluster.processors
    assert not pool.has_nodes
    # what never started is no job without cancellations
    assert plain.job_number.tolist() == workload.job_number[workload.status != 5].tolist()


def test_the_command_line_knows_the_names() -> None:
    assert tuple(ASPECTS) == options.ASPECTS


def test_what_is_not_there_may_be_left_out_and_what_is_unknown_may_not() -> None:
    workload, _ = site()
    bare = replace(workload, gives_up_time=None, dependencies=None)
    same, cluster = without(bare, gs.Cluster(processors=4), ASPECTS)
    assert len(same) == len(bare)
    assert cluster == gs.Cluster(processors=4)
    with pytest.raises(ConfigurationError, match="nothing is called 'memry'; did you mean memory"):
        without(bare, cluster, ["memry"])


def test_nodes_with_events_stay() -> None:
    workload, cluster = site()
    named = replace(cluster, events=[NodeEvent(time=5, node="g", kind="down")])
    with pytest.raises(ConfigurationError, match="leave out the events too"):
        without(workload, named, ["nodes"])
    assert "nodes" not in what_each_changes(workload, named, "easy")["left_out"].values
    everywhere = replace(cluster, events=[NodeEvent(time=5, kind="down"), NodeEvent(time=9, kind="up")])
    assert not without(workload, everywhere, ["nodes"])[1].nodes


def test_each_row_is_a_run_without_one_of_it() -> None:
    workload, cluster = site()
    changes = what_each_changes(workload, cluster, "easy", warm_up=0.1)
    assert changes["left_out"].values.tolist() == [EVERYTHING, *ASPECTS]
    waits: dict[str, Any] = {}
    for name in changes["left_out"].values.tolist():
        jobs, where = without(workload, cluster, [] if name == EVERYTHING else [name])
        run = gs.simulate(jobs, where, "easy")
        started = run["start_time"].values >= 0
        wait = np.where(started, run["start_time"] - run["submit_time"], np.nan)
        waits[name] = dict(zip(jobs.job_number.tolist(), wait.tolist(), strict=True))
        one = changes.sel(left_out=name)
        assert_fields(
            one, jobs_gave_up=run.attrs.get("jobs_gave_up", 0), jobs_rejected=run.attrs["jobs_rejected"]
        )
    measured = [
        number
        for place, number in enumerate(workload.job_number.tolist())
        if place >= 15
        and workload.status[place] != 5
        and all(not np.isnan(each.get(number, np.nan)) for each in waits.values())
    ]
    assert changes.attrs["jobs_measured"] == len(measured) > 50
    for name, each in waits.items():
        mean = np.mean([each[number] for number in measured])
        assert float(changes["wait_time_mean"].sel(left_out=name)) == pytest.approx(mean)
    first = changes["wait_time_mean"] - changes["wait_time_mean"][0]
    assert np.allclose(changes["wait_time_difference"], first)
    assert (np.abs(changes["wait_time_difference"].values[1:]) > 0).any()


def test_jobs_that_never_started_are_not_measured_and_counted() -> None:
    workload, cluster = site()
    found = compare(workload, cluster, ["easy", "fcfs"])
    never = int((workload.status == 5).sum())
    assert found["scheme"].values.tolist() == ["recorded", "easy", "fcfs"]
    assert found["jobs_gave_up"].values[0] == never
    run = gs.simulate(workload, cluster, "fcfs")
    for name in FATES:
        assert int(found[name].sel(scheme="fcfs")) == run.attrs.get(name, 0)
    assert found.attrs["jobs_measured"] <= len(workload) - never
    assert np.isfinite(found["utilisation"].values).all()


@pytest.mark.parametrize(("mode", "lost"), [("requeue", 0), ("cancel", 1), ("suspend", 0)])
def test_preempted_jobs_are_not_put_down_to_failing_nodes(mode: Any, lost: int) -> None:
    jobs = jobs_of(
        submit_time=[0, 100],
        run_time=[1000, 50],
        requested_processors=[4, 4],
        partition=[0, 1],
    )
    tiers = [Partition(number=0), Partition(number=1, priority=5)]
    cluster = gs.Cluster(processors=4, partitions=tiers)
    scheduler = gs.Slurm(preempt_type="partition_prio", preempt_mode=mode)
    run = gs.simulate(jobs, cluster, scheduler)
    assert (run.attrs["executions_killed"], run.attrs["jobs_lost"]) == (int(mode != "suspend"), lost)
    found = {name: count for name, count in fates_of(run).items() if count}
    assert list(found.values()) == [1]
    assert FATES[next(iter(found))].startswith(f"preempted and {mode}")


def test_waits_for_other_jobs_are_part_of_the_wait() -> None:
    workload = gs.Workload(
        name="x",
        submit_time=np.array([0, 0]),
        run_time=np.array([100, 10]),
        requested_processors=np.array([1, 1]),
        wait_time=np.array([0, 100]),
        dependencies=dependency_table([(1, 0, "afterok")]),
    )
    found = compare(workload, gs.Cluster(processors=4), ["easy"])
    assert found["wait_time_mean"].values.tolist() == [50, 50]


def test_what_is_used_is_not_left_aside() -> None:
    workload, cluster = site()
    down = replace(cluster, events=[NodeEvent(time=5, kind="down"), NodeEvent(time=9, kind="up")])
    used = dict(left_aside(workload, None, down))
    assert {"partitions", "memory, GPUs", "nodes", "outages", "dependencies", "cancellations"}.isdisjoint(
        used
    )
    pool = dict(left_aside(workload))
    assert {"partitions", "memory, GPUs", "nodes", "outages"} <= set(pool)
    assert "request GPUs" in pool["memory, GPUs"]
    assert "request memory" in pool["memory, GPUs"]


@pytest.mark.random_cases(5)
def test_pools_are_partitions_that_share_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [gs.NodeType(name=name, count=2, cores=int(rng.integers(1, 9))) for name in "abcdef"]
    chosen = [rng.choice(["a", "b", "c0", "d", "e", "f1"], rng.integers(1, 3)).tolist() for _ in range(5)]
    partitions = [gs.Partition(number=number, nodes=nodes) for number, nodes in enumerate(chosen)]
    cluster = gs.Cluster(nodes=kinds, partitions=partitions)
    jobs = replace(gs.synthesise("M3", jobs=40, seed=1), partition=np.arange(40) % 7)
    graph = nx.Graph(
        [(number, f"{node}{k}"[:2]) for number in range(5) for node in chosen[number] for k in "01"]
    )
    expected = []
    for part in nx.connected_components(graph):
        mine = {number for number in part if isinstance(number, int)}
        cores = sum(kind.cores for kind in kinds for node in kind.nodes if node in part)
        number = np.where(jobs.partition < 5, jobs.partition, 0)
        expected.append((sorted(mine), cores, np.isin(number, list(mine)).tolist()))
    found = [
        (sorted(each.number for each in pool.partitions), pool.processors, pool.jobs.tolist())
        for pool in pools_of(jobs, cluster)
    ]
    assert sorted(found) == sorted(expected)

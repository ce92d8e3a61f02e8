"""Thousands of small clusters and queues: every start, pass and node as in the naive twin."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gridsched.engine.nodes.records import Happening
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.controller import (
    NEVER,
    Controller,
    SlurmCluster,
    Tickets,
    chain_tasks,
    job_records,
)
from gridsched.systems.slurm.scheduler import Slurm
from tests.oracles import slurm as naive


class Given:
    """Priorities that do not change."""

    def __init__(self, priorities: list[float]) -> None:
        self.priorities = priorities

    def submitted(self, job: int, now: int) -> float:
        return self.priorities[job]

    def requeued(self, job: int, now: int) -> None: ...

    def started(self, job: int, now: int) -> None: ...

    def ended(self, job: int, now: int) -> None: ...

    def due(self) -> int:
        return NEVER

    def recalculate(self, now: int, waiting: NDArray[np.int64]) -> NDArray[np.float64]:
        raise AssertionError("they do not change")


def draw(
    rng: np.random.Generator, whole: str
) -> tuple[list[naive.Job], naive.Cluster, list[tuple[int, int]]]:
    """Jobs, a cluster and passes."""

    def number(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    count = number(2, 8)
    alike = rng.random() < 0.6
    kinds = [naive.Node(number(2, 6), number(2, 8), number(0, 3)) for _ in range(count)]
    nodes = [kinds[0]] * count if alike else kinds
    everywhere = set(range(count))
    partitions = [everywhere]
    if rng.random() < 0.5:
        partitions.append(set(range(number(0, count - 1), count)))
    limits = [
        naive.Limit(jobs=number(1, 3)) if rng.random() < 0.5 else naive.Limit(cores=number(4, 16))
        for _ in range(number(0, 2))
    ]
    jobs = []
    for _ in range(number(4, 24)):
        run = number(0, 300)
        jobs.append(
            naive.Job(
                submit=number(0, 300),
                run=run,
                limit=max(run + number(-30, 200), 1),
                nodes=number(1, max(count // 2, 1)) if rng.random() < 0.8 else count,
                cores=number(1, 4),
                memory=number(0, 4),
                gpus=number(0, 2) if rng.random() < 0.4 else 0,
                whole={"all": True, "none": False}.get(whole, rng.random() < 0.4),
                partition=number(0, len(partitions) - 1),
                user=number(0, 2),
                priority=float(number(0, 3)),
                groups=tuple(g for g in range(len(limits)) if rng.random() < 0.5),
                array=number(0, 1) if rng.random() < 0.3 else -1,
            )
        )
    jobs.sort(key=lambda job: job.submit)
    cluster = naive.Cluster(
        nodes=nodes,
        partitions=partitions,
        tiers=[number(0, 2) for _ in partitions],
        limits=limits,
        window=60 * number(2, 30),
        resolution=int(rng.choice([1, 1, 30, 60])),
        kill_wait=number(0, 40),
    )
    for key, high in (
        ("partition_depth", 4),
        ("most_started", 3),
        ("tests", 6),
        ("tests_of_user", 3),
        ("tests_of_partition", 4),
        ("most_backfilled", 3),
        ("least_priority", 3),
        ("least_age", 60),
    ):
        if rng.random() < 0.15:
            setattr(cluster, key, number(1, high))
    cluster.array_limits = {array: number(1, 3) for array in (0, 1) if rng.random() < 0.4}
    cluster.plans_of_array = number(1, 3) if rng.random() < 0.3 else 20
    for node in range(count):
        if rng.random() < 0.3:
            begin = number(0, 600)
            kills = rng.random() < 0.5
            cluster.outages.append(naive.Outage(node, begin, begin + number(1, 300), kills))
    for _ in range(number(-2, 2)):
        known, some = number(0, 400), rng.random(count) < rng.choice([0.3, 0.7, 1.0])
        begin = known + number(0, 200)
        held = frozenset(np.flatnonzero(some).tolist())
        cluster.reservations.append(naive.Reservation(known, begin, begin + number(1, 300), held))
    instants = sorted({number(1, 900) for _ in range(number(10, 60))})
    return jobs, cluster, [(now, number(0, 1)) for now in instants]


def controller_of(jobs: list[naive.Job], cluster: naive.Cluster) -> Controller:
    """The same for the package."""
    nodes = np.array(cluster.nodes, kernels.NODE)
    reach = np.array(
        [[n in partition for n in range(len(nodes))] for partition in cluster.partitions], np.uint8
    )
    limits = np.zeros(len(cluster.limits) + len(cluster.array_limits), kernels.LIMIT)
    for name in ("jobs", "processors", "nodes", "memory", "gpus"):
        limits[name] = NEVER
    for k, limit in enumerate(cluster.limits):
        limits[k]["jobs"] = min(limit.jobs, NEVER)
        limits[k]["processors"] = min(limit.cores, NEVER)
    for k, most_tasks in enumerate(cluster.array_limits.values(), len(cluster.limits)):
        limits[k]["jobs"] = most_tasks
    records = job_records(len(jobs))
    limited = np.full((len(jobs), 3), -1, np.int64)
    for k, job in enumerate(jobs):
        for name in ("nodes", "cores", "memory", "gpus", "whole", "limit", "partition", "user"):
            records[k][name] = getattr(job, name)
        records[k]["processors"] = job.cores * job.nodes
        limited[k, : len(job.groups)] = job.groups
        if job.array in cluster.array_limits:
            limited[k, 2] = len(cluster.limits) + list(cluster.array_limits).index(job.array)
    most = np.array([cluster.array_limits.get(job.array, 0) for job in jobs])
    chain_tasks(records, np.array([job.array for job in jobs]), most)
    events = []
    for out in cluster.outages:
        kinds = (Happening.DOWN, Happening.UP) if out.kills else (Happening.DRAIN, Happening.RESUME)
        events += [(out.begin, kinds[0], out.node), (out.end, kinds[1], out.node)]
    for k, each in enumerate(cluster.reservations):
        events += [(each.known, Happening.ANNOUNCE, k), (each.end, Happening.OPEN, k)]
    held = [[n in each.nodes for n in range(len(nodes))] for each in cluster.reservations]
    return Controller(
        SlurmCluster(
            nodes=nodes,
            reach=reach,
            tier=np.array(cluster.tiers),
            limits=limits,
            events=sorted(events),
            windows=np.array([(each.begin, each.end) for each in cluster.reservations], kernels.WINDOW),
            reserved=np.array(held, np.uint8) if held else None,
        ),
        Tickets(
            jobs=records,
            submit=np.array([job.submit for job in jobs]),
            run=np.array([job.run for job in jobs]),
            limited=limited,
        ),
        Slurm(
            partition_job_depth=cluster.partition_depth,
            sched_max_job_start=cluster.most_started,
            bf_window=cluster.window // 60,
            bf_resolution=cluster.resolution,
            bf_max_job_test=cluster.tests,
            bf_max_job_user=cluster.tests_of_user,
            bf_max_job_part=cluster.tests_of_partition,
            bf_max_job_array_resv=cluster.plans_of_array,
            bf_max_job_start=cluster.most_backfilled,
            bf_min_prio_reserve=int(cluster.least_priority),
            bf_min_age_reserve=cluster.least_age,
            kill_wait=cluster.kill_wait,
        ).cadence,
        Given([job.priority for job in jobs]),
    )


def compare(seed: int, whole: str) -> tuple[int, int]:
    """Compare one case; how many jobs started, and how many were killed."""
    jobs, cluster, passes = draw(np.random.default_rng(seed), whole)
    twin = naive.Controller(jobs, cluster)
    twin.work(passes)
    expected = [*twin.killed, *twin.started.items()]
    outcome = controller_of(jobs, cluster).follow(passes)
    found = [
        (int(job), int(start), sorted(outcome.placed[first : first + jobs[job].nodes].tolist()))
        for job, start, _, first in outcome.executions
    ]
    assert found == sorted((j, done.time, sorted(done.nodes)) for j, done in expected), seed
    never_killed = {j: done.by for j, done in twin.started.items() if outcome.killed[j] == 0}
    assert {j: int(outcome.by[j]) for j in never_killed} == never_killed, seed
    return len(found), len(twin.killed)


@pytest.mark.parametrize("block", [0])
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_every_start_is_that_of_the_naive_twin(whole: str, block: int) -> None:
    seeds = range(500 * block, 500 * (block + 1))
    started, killed = np.sum([compare(seed, whole) for seed in seeds], axis=0)
    assert started > 2500
    assert killed > 50

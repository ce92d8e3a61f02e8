"""Random workloads on small clusters of nodes, with all that can happen there."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import gridsched as gs
from gridsched.nodes import Limit, NodeEvent, NodeType, Partition
from tests.oracles import nodes as oracle


def jobs_of(**columns: Any) -> gs.Workload:
    """A workload of lists."""
    return gs.Workload(**{"name": "listed", **columns})


def workload_of(jobs: Sequence[tuple[Any, ...]], **columns: Any) -> gs.Workload:
    """Jobs of the oracles as a workload: submit time, run time, requested time and processors come first."""
    table = np.array([job[:4] for job in jobs], np.int64).reshape(-1, 4).T
    names = ("submit_time", "run_time", "requested_time", "requested_processors")
    return jobs_of(**dict(zip(names, table, strict=True)), **columns)


def crowd(
    seed: int = 0, jobs: int = 80, *, longest: int = 200, widest: int = 8, **columns: Any
) -> gs.Workload:
    """Jobs that queue up, some of which outrun their requested times."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, longest, jobs)
    return gs.Workload(
        name=f"crowd{seed}",
        submit_time=np.sort(rng.integers(0, 20 * jobs, jobs)),
        run_time=run,
        requested_time=np.maximum(run + rng.integers(-longest // 6, longest, jobs), 1),
        requested_processors=rng.integers(1, widest + 1, jobs),
        user=rng.integers(0, 4, jobs),
        **columns,
    )


def some_jobs(rng: np.random.Generator, jobs: int, *, gpus: bool = True, **columns: Any) -> gs.Workload:
    """Jobs with memory, some of which want whole GPUs, and some a part of one."""
    run = rng.integers(0, 60, jobs)
    share = rng.choice([-1, -1, -1, 1, 300, 600] if gpus else [-1], jobs)
    return gs.Workload(
        name="drawn",
        submit_time=np.sort(rng.integers(0, 8 * jobs, jobs)),
        run_time=run,
        requested_time=np.maximum(run + rng.integers(-10, 60, jobs), 1),
        requested_processors=rng.integers(1, 7, jobs),
        requested_memory=rng.integers(0, 3, jobs) * 1024,
        requested_gpus=np.where(share < 0, rng.choice([-1, -1, 1, 2] if gpus else [-1], jobs), -1),
        gpu_share=share,
        user=rng.integers(0, 3, jobs),
        partition=rng.integers(0, 2, jobs),
        **columns,
    )


def some_events(draw: random.Random, names: Sequence[str], first: int = 0) -> list[NodeEvent]:
    """What happens to nodes about a time; many at few times, and now and then to all at once."""
    found: list[NodeEvent] = []
    for _ in range(draw.choice([0, 1, 1, 2, 3, 6])):
        node = draw.choice([*names, *names, *names, "*"])
        time, length = max(first - 10, 0) + draw.randint(0, 70), draw.choice([0, 1, 3, 8, 20, 60])
        kind: Any = draw.choice(["down", "down", "maintenance", "maintenance", "drain"])
        if kind == "maintenance":
            start = time + draw.choice([0, 0, 1, 7, 30])
            found.append(NodeEvent(time=time, node=node, kind=kind, start=start, end=start + length + 1))
            continue
        back: Any = {"down": "up", "drain": "resume"}[kind]
        found.append(NodeEvent(time=time, node=node, kind=kind))
        if draw.randint(0, 5):
            found.append(NodeEvent(time=time + length, node=node, kind=back))
    return found


def some_cluster(rng: np.random.Generator, *, gpus: bool = True, events: bool = True) -> gs.Cluster:
    """Five nodes of two kinds, in overlapping partitions, some of which are out for some time."""
    nodes = [
        NodeType(count=2, cores=8, gpus=2 if gpus else 0, memory=16, name="gpu"),
        NodeType(count=3, cores=6, memory=12 if rng.random() < 0.5 else None, name="cpu"),
    ]
    happened = []
    kind: Any
    back: Any
    for node in ("gpu0", "gpu1", "cpu0", "cpu1") if events else ():
        kind = rng.choice(["down", "drain", "maintenance"]).item()
        begin, length = int(rng.integers(0, 150)), int(rng.integers(1, 60))
        if kind == "maintenance":
            happened.append(NodeEvent(time=begin // 2, node=node, kind=kind, start=begin, end=begin + length))
        else:
            back = {"down": "up", "drain": "resume"}[kind]
            happened.append(NodeEvent(time=begin, node=node, kind=kind))
            if rng.random() < 0.8:
                happened.append(NodeEvent(time=begin + length, node=node, kind=back))
    return gs.Cluster(
        nodes=nodes,
        events=happened,
        partitions=[Partition(number=0), Partition(number=1, nodes=["gpu", "cpu0"])],
        limits=[Limit(by="user", of=1, jobs=2)],
        placement=rng.choice(["first_fit", "best_fit", "spread"]).item(),
    )


def oracle_events(events: Iterable[NodeEvent], nodes: list[str]) -> list[oracle.Event]:
    """The same events for the plain simulator, which numbers the nodes."""
    return [
        oracle.Event(
            event.time,
            n,
            "window" if event.kind == "maintenance" else event.kind,
            event.start,
            event.end,
        )
        for event in events
        for n, node in enumerate(nodes)
        if event.node in (node, "*")
    ]

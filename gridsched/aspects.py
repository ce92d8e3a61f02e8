"""What a simulation of a log takes into account beside processors, and how to leave one of it out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, meant
from gridsched.nodes import Partition
from gridsched.platform import Cluster
from gridsched.traces.cleaning import NEVER_RAN, never_ran
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

ASPECTS: dict[str, str] = {
    "nodes": "on which nodes jobs run, and with them memory, GPUs and partitions",
    "memory": "memory of jobs and nodes",
    "gpus": "GPUs of jobs and nodes",
    "partitions": "which nodes jobs may use, and what they may ask for",
    "constraints": "features that nodes of jobs must have",
    "limits": "what users, job arrays and other groups may have at once",
    "cancellations": "jobs that were cancelled before they started, and users who give up",
    "dependencies": "jobs that wait for other jobs",
}
"""What can be left out, by name."""


def aspects_of(workload: Workload, cluster: Cluster) -> tuple[str, ...]:
    """What a simulation of these jobs on this cluster takes into account, in the order of `ASPECTS`.

    Examples
    --------
    >>> import gridsched as gs
    >>> from gridsched.aspects import aspects_of
    >>> jobs = gs.with_patience(gs.synthesise("M3", jobs=50, seed=1), gs.Weibull(scale=7200, shape=1.0))
    >>> aspects_of(jobs, gs.Cluster(processors=1152))
    ('cancellations',)
    """
    asked = (workload.requested_gpus, workload.gpu_share)
    there = {
        "nodes": bool(cluster.nodes),
        "memory": any(kind.memory is not None for kind in cluster.nodes)
        and bool((workload.requested_memory > 0).any()),
        "gpus": any(kind.gpus for kind in cluster.nodes)
        and any(column is not None and bool((column > 0).any()) for column in asked),
        "partitions": bool(cluster.partitions),
        "constraints": bool(cluster.constraints) and workload.constraint is not None,
        "limits": bool(cluster.limits) or workload.array_limit is not None,
        "cancellations": workload.gives_up_time is not None and bool((workload.gives_up_time >= 0).any()),
        "dependencies": workload.dependencies is not None and bool(len(workload.dependencies)),
    }
    return tuple(name for name in ASPECTS if there[name])


def without(workload: Workload, cluster: Cluster, names: Iterable[str]) -> tuple[Workload, Cluster]:
    """Jobs and cluster with some of what `ASPECTS` names left out.

    Parameters
    ----------
    workload : Workload
        Clean jobs. Without cancellations, those that never started by the log are not among them any more.
    cluster : Cluster
        Where they run. Without nodes it is one pool of as many processors.
    names : iterable of str
        What to leave out; what is not there may be named.

    Raises
    ------
    ConfigurationError
        If a name is unknown, or nodes that have events are to be left out.

    Examples
    --------
    >>> import gridsched as gs
    >>> from gridsched.aspects import without
    >>> jobs = gs.with_patience(gs.synthesise("M3", jobs=50, seed=1), gs.Weibull(scale=7200, shape=1.0))
    >>> patient, cluster = without(jobs, gs.Cluster(processors=1152), ["cancellations"])
    >>> patient.gives_up_time is None
    True
    """
    for name in names:
        if name not in ASPECTS:
            instead = meant(name, ASPECTS) or f"; use {', '.join(ASPECTS)}"
            raise ConfigurationError(f"nothing is called {name!r}{instead}")
        workload, cluster = _without(workload, cluster, name)
    return workload, cluster


def _without(workload: Workload, cluster: Cluster, name: str) -> tuple[Workload, Cluster]:
    if name == "nodes" and cluster.nodes and any(event.node != "*" for event in cluster.events):
        raise ConfigurationError(
            f"cluster {cluster.name}: its events name nodes, which cannot be left out then; "
            "leave out the events too"
        )
    match name:
        case "nodes":
            return workload, replace(cluster, nodes=(), partitions=(), constraints={})
        case "partitions":
            return workload, replace(cluster, partitions=())
        case "constraints":
            return replace(workload, constraint=None), cluster
        case "limits":
            return replace(workload, array_limit=None), replace(cluster, limits=())
        case "memory":
            return replace(workload, requested_memory=np.full(len(workload), UNKNOWN)), cluster
        case "gpus":
            return replace(workload, requested_gpus=None, gpu_share=None), cluster
        case "dependencies":
            return replace(workload, dependencies=None), cluster
    never = never_ran(workload)
    counts = add_counts(workload.left_out, {NEVER_RAN: int(never.sum())})
    return replace(workload.select(~never, left_out=counts), gives_up_time=None), cluster


class Pool(NamedTuple):
    """Partitions that share nodes with one another, and with no other partition."""

    jobs: NDArray[np.bool_]  # those of the workload that run there
    processors: int
    partitions: tuple[Partition, ...]  # none where the cluster has none


def pools_of(workload: Workload, cluster: Cluster) -> list[Pool]:
    """Pools of processors that the partitions of a cluster make: those that share a node are in one.

    Jobs of a partition that the cluster does not have are in the pool of the first one. Nodes of no
    partition are in no pool.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> import gridsched as gs
    >>> from gridsched.aspects import pools_of
    >>> cluster = gs.Cluster(
    ...     nodes=[gs.NodeType(name="cpu", count=4, cores=8), gs.NodeType(name="gpu", cores=16)],
    ...     partitions=[gs.Partition(number=0, nodes=["cpu"]), gs.Partition(number=1, nodes=["gpu"])],
    ... )
    >>> jobs = gs.synthesise("M3", jobs=50, seed=1)
    >>> jobs = replace(jobs, partition=np.arange(50) % 2)
    >>> [(pool.processors, int(pool.jobs.sum())) for pool in pools_of(jobs, cluster)]
    [(32, 25), (16, 25)]
    """
    if not cluster.partitions:
        return [Pool(np.ones(len(workload), np.bool_), cluster.processors, ())]
    cores = {name: kind.cores for kind in cluster.node_types for name in kind.nodes}
    named = {kind.name: kind.nodes for kind in cluster.node_types}
    found: list[tuple[set[str], tuple[Partition, ...]]] = []
    for partition in cluster.partitions:
        nodes = {node for name in partition.nodes for node in named.get(name, [name])} or set(cores)
        shared = [pool for pool in found if pool[0] & nodes]
        found = [pool for pool in found if not pool[0] & nodes]
        members = [member for _, own in shared for member in own]
        found.append((nodes.union(*(own for own, _ in shared)), (*members, partition)))
    asked = getattr(workload, cluster.partition_of)
    known = np.isin(asked, [partition.number for partition in cluster.partitions])
    asked = np.where(known, asked, cluster.partitions[0].number)
    return [
        Pool(
            np.isin(asked, [member.number for member in members]),
            sum(cores[node] for node in nodes),
            members,
        )
        for nodes, members in found
    ]

"""Jobs and nodes of a cluster as the controller wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.nodes import Limit
from gridsched.platform import Cluster
from gridsched.submission import Submission
from gridsched.systems.fates import lives_of
from gridsched.systems.slurm.controller import NEVER, Machine, Tickets, job_records
from gridsched.systems.slurm.kernels import LIMIT, NODE
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]

_KIBIBYTES = 1024
_UNLIMITED = 2**51
"""Memory [KiB] of a node that does not say how much it has."""

TOO_LARGE = "larger than the nodes that it may use"
OVER_PARTITION = "over a limit of its partition"
OVER_LIMIT = "over a limit of its group"


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterJobs:
    """The jobs of one cluster, and what they run on.

    Parameters
    ----------
    machine, tickets : Machine, Tickets
        For the controller.
    reasons : dict of str to int
        How many jobs were rejected why.
    node_names : list of str
        Names of the nodes.
    factor : int64[...]
        Priority of each partition.
    """

    machine: Machine
    tickets: Tickets
    reasons: dict[str, int]
    node_names: list[str]
    factor: Integers


def cluster_jobs(
    submission: Submission,
    own: Integers,
    cluster: Cluster,
    *,
    whole: bool,
    memory_is_consumed: bool,
) -> ClusterJobs:
    """Jobs of a cluster in Slurm's terms: nodes, and what each of them gives.

    A job that names a number of nodes spreads over so many. Any other one gets the fewest that can hold its
    processors and GPUs.

    Parameters
    ----------
    submission : Submission
        The jobs of all clusters.
    own : int64[n]
        Those of this one.
    cluster : Cluster
        The cluster.
    whole : bool
        Whether jobs get whole nodes.
    memory_is_consumed : bool
        Whether memory is given to jobs.
    """
    workload = submission.workload.select(own)
    nodes = _nodes(cluster)
    names = cluster.node_names
    reach = _reach(cluster, names)
    where = _partition_of(workload, cluster)
    records = _records(
        workload,
        nodes,
        reach,
        where,
        has_nodes=cluster.has_nodes,
        whole=whole,
        memory_is_consumed=memory_is_consumed,
    )
    records["limit"] = submission.estimate[own]
    rejected, reasons = _rejected(records, workload, cluster, nodes, reach)
    limits, limited = _limits(workload, cluster.limits)
    priority = np.array([each.priority for each in cluster.partitions] or [1], np.int64)
    return ClusterJobs(
        machine=Machine(nodes=nodes, reach=reach, tier=priority, limits=limits),
        tickets=Tickets(
            jobs=records,
            submit=np.asarray(workload.submit_time, np.int64),
            run=submission.run_time[own],
            limited=limited,
            lives=lives_of(replace(submission, workload=workload), rejected),
        ),
        reasons=reasons,
        node_names=names,
        factor=priority,
    )


def _nodes(cluster: Cluster) -> NDArray[Any]:
    kinds = cluster.node_types
    which = np.repeat(np.arange(len(kinds)), [kind.count for kind in kinds])
    nodes = np.zeros(len(which), NODE)
    memory = [_UNLIMITED if kind.memory is None else kind.memory * _KIBIBYTES for kind in kinds]
    nodes["cores"] = np.array([kind.cores for kind in kinds])[which]
    nodes["memory"] = np.array(memory)[which]
    nodes["gpus"] = np.array([kind.gpus for kind in kinds])[which]
    return nodes


def _reach(cluster: Cluster, names: list[str]) -> NDArray[np.uint8]:
    """Nodes of each partition; all nodes of the only one if none is given."""
    kinds = [kind.name for kind in cluster.node_types for _ in range(kind.count)]
    rows = []
    for partition in cluster.partitions:
        chosen = set(partition.nodes)
        rows.append(
            [not chosen or bool({name, kind, "*"} & chosen) for name, kind in zip(names, kinds, strict=True)]
        )
    return np.array(rows or [[True] * len(names)], np.uint8)


def _partition_of(workload: Workload, cluster: Cluster) -> Integers:
    """Place of each job's partition among those of the cluster, the first for those of another number."""
    numbers = np.array([partition.number for partition in cluster.partitions], np.int64)
    if not len(numbers):
        return np.zeros(len(workload), np.int64)
    asked = np.asarray(getattr(workload, cluster.partition_of), np.int64)
    place: Integers = np.argmax(asked[:, np.newaxis] == numbers, axis=1)
    return place


def _column(workload: Workload, name: str) -> Integers:
    """A column of numbers of which unknown ones are none."""
    column = getattr(workload, name)
    return (
        np.zeros(len(workload), np.int64) if column is None else np.maximum(np.asarray(column, np.int64), 0)
    )


def _records(
    workload: Workload,
    nodes: NDArray[Any],
    reach: NDArray[np.uint8],
    where: Integers,
    *,
    has_nodes: bool,
    whole: bool,
    memory_is_consumed: bool,
) -> NDArray[Any]:
    """What each job asks for."""
    size = np.maximum(np.asarray(workload.processors, np.int64), 1)
    records = job_records(len(workload))
    records["partition"] = where
    records["whole"] = whole
    records["user"] = np.unique(workload.user, return_inverse=True)[1].reshape(-1)
    asked_for = {
        name: _column(workload, name) if has_nodes else np.zeros_like(size)
        for name in ("requested_gpus", "gpu_share", "requested_memory", "requested_nodes")
    }
    gpus = asked_for["requested_gpus"] + (asked_for["gpu_share"] > 0)
    per_processor = asked_for["requested_memory"] * memory_is_consumed
    spread = np.minimum(asked_for["requested_nodes"], size)
    asked = np.stack([size, gpus, per_processor, spread, where], axis=1)
    kinds, which = np.unique(asked, axis=0, return_inverse=True)
    shapes = np.array([_shape(kind.tolist(), nodes, reach) for kind in kinds], np.int64)
    for k, name in enumerate(("nodes", "cores", "memory", "gpus")):
        records[name] = shapes[which.reshape(-1), k]
    records["processors"] = shapes[which.reshape(-1), 4] if whole else size
    return records


def _shape(
    asked: Sequence[int], nodes: NDArray[Any], reach: NDArray[np.uint8]
) -> tuple[int, int, int, int, int]:
    """Nodes of a job; processors, memory [KiB] and GPUs of each; processors of all if they are whole."""
    size, gpus, per_processor, spread, where = asked
    mine = nodes[reach[where] != 0]
    tries = [spread] if spread else []
    if not spread:
        for cores in np.unique(mine["cores"])[::-1].tolist():
            most = int(mine["gpus"][mine["cores"] >= cores].max(initial=0))
            tries.append(max(-(-size // cores), -(-gpus // most) if most else 1))
    for count in tries:
        cores, devices = -(-size // count), -(-gpus // count)
        memory = per_processor * cores
        fits = (mine["cores"] >= cores) & (mine["memory"] >= memory) & (mine["gpus"] >= devices)
        shape = (count, cores, memory, devices, count * int(mine["cores"][fits].max(initial=cores)))
        if fits.sum() >= count:
            break
    return shape


def _rejected(
    records: NDArray[Any],
    workload: Workload,
    cluster: Cluster,
    nodes: NDArray[Any],
    reach: NDArray[np.uint8],
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Which jobs can never run, and how many there are for each reason."""
    over_partition = np.zeros(len(records), np.bool_)
    for index, each in enumerate(cluster.partitions):
        mine = records["partition"] == index
        for values, most in (
            (np.asarray(workload.requested_time, np.int64), each.time_limit),
            (np.asarray(workload.processors, np.int64), each.most_processors),
            (records["nodes"], each.most_nodes),
        ):
            if most is not None:
                over_partition |= mine & (values > most)
    names = ["nodes", "cores", "memory", "gpus", "partition"]
    kinds, which = np.unique(records[names], return_inverse=True)
    large = [
        (
            (reach[kind["partition"]] != 0)
            & (nodes["cores"] >= kind["cores"])
            & (nodes["memory"] >= kind["memory"])
            & (nodes["gpus"] >= kind["gpus"])
        ).sum()
        < kind["nodes"]
        for kind in kinds
    ]
    too_large = np.array(large, np.bool_)[which.reshape(-1)]
    over_limit = np.zeros(len(records), np.bool_)
    for limit in cluster.limits:
        if limit.processors is not None:
            over_limit |= (_groups(workload, limit) >= 0) & (records["processors"] > limit.processors)
    rejected, reasons = np.zeros(len(records), np.bool_), {}
    for reason, unfit in ((OVER_PARTITION, over_partition), (TOO_LARGE, too_large), (OVER_LIMIT, over_limit)):
        count = int((unfit & ~rejected).sum())
        rejected |= unfit
        if count:
            reasons[reason] = count
    return rejected, reasons


def _groups(workload: Workload, limit: Limit) -> Integers:
    """Group of each job under a limit; -1 for those that it does not concern."""
    values = np.asarray(getattr(workload, limit.by), np.int64)
    if limit.of is not None:
        return np.where(values == limit.of, 0, -1)
    known = values >= 0
    return np.where(known, np.unique(np.where(known, values, -1), return_inverse=True)[1].reshape(-1), -1)


def _limits(workload: Workload, limits: Sequence[Limit]) -> tuple[NDArray[Any], Integers]:
    """Limits, one row for each group, and those that each job is subject to."""
    limited = np.full((len(workload), max(len(limits), 1)), -1, np.int64)
    rows = 0
    tables = []
    for k, limit in enumerate(limits):
        groups = _groups(workload, limit)
        limited[:, k] = np.where(groups >= 0, groups + rows, -1)
        table = unlimited(int(groups.max(initial=-1)) + 1)
        table["jobs"] = NEVER if limit.jobs is None else limit.jobs
        table["processors"] = NEVER if limit.processors is None else limit.processors
        tables.append(table)
        rows += len(table)
    return np.concatenate(tables) if tables else np.zeros(0, LIMIT), limited


def unlimited(count: int) -> NDArray[Any]:
    """So many rows of limits that limit nothing yet."""
    table = np.zeros(count, LIMIT)
    for name in ("jobs", "processors", "nodes", "memory", "gpus"):
        table[name] = NEVER
    return table

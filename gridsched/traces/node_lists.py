"""The nodes of a cluster as the accounting of its jobs shows them: which, and at least how large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.nodes import NodeType, Partition
from gridsched.traces._slurm_nodes import node_names
from gridsched.traces.sacct import AccountingLog
from gridsched.workloads.table import Workload
from gridsched.workloads.usage import peaks

__all__ = ["InferredNodes", "infer_nodes"]

Integers = NDArray[np.int64]

_KIB_PER_MIB = 1024
_MAX_GPUS = 62


@dataclass(frozen=True, kw_only=True)
class InferredNodes:
    """Nodes and partitions that jobs of a log used.

    Parameters
    ----------
    nodes : tuple of NodeType
        Nodes by name, those together of which the same was used.
    partitions : tuple of Partition
        Partitions that do not have all nodes, and those beside them; none where every one has all. Numbers
        are those of the column `partition`.
    without_nodes : int
        Jobs that ran, and have no list of nodes.
    """

    nodes: tuple[NodeType, ...]
    partitions: tuple[Partition, ...]
    without_nodes: int


def infer_nodes(log: AccountingLog, workload: Workload | None = None) -> InferredNodes:
    r"""Nodes that the jobs of an export of sacct ran on, from its column NodeList.

    A node has as many processors, memory and GPUs as jobs held there at once, at most: each job is taken to
    hold an equal share on each of its nodes, rounded up, as in a simulation. A node may have more than was
    ever used; where no job says what memory it held, nodes have enough. The nodes of a partition are those on
    which its jobs ran, all nodes if none did; one that is several ("a,b") has the nodes of each.

    Parameters
    ----------
    log : AccountingLog
        The export.
    workload : Workload, optional
        Jobs of it that count; all by default.

    Raises
    ------
    WorkloadError
        If no job that ran has a list of nodes.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> rows = ["JobIDRaw|JobID|User|Submit|Start|End|State|AllocCPUS|ReqCPUS|Timelimit|NodeList|Partition"]
    >>> rows += [
    ...     f"{n}|{n}|ada|{day}T0{n}:00:00|{day}T0{n}:10:00|{day}T0{n}:40:00|COMPLETED|8|8|01:00:00|n{n}|all"
    ...     for n, day in ((1, "2024-05-06"), (2, "2024-05-06"))
    ... ]
    >>> _ = Path("jobs.txt").write_text("\n".join(rows))
    >>> from gridsched.traces import read_accounting
    >>> found = gs.infer_nodes(read_accounting("jobs.txt", time_zone="Europe/Rome"))
    >>> gs.Cluster(nodes=found.nodes).processors
    16
    """
    jobs = log.workload if workload is None else workload
    lists = np.full(len(jobs), -1) if not len(log.node_list) else log.node_list[log.rows(jobs)]
    ran = (jobs.run_time >= 0) & (jobs.processors > 0)
    known = ran & (lists >= 0)
    if not known.any():
        raise WorkloadError(f"{jobs.name}: no job that ran has a list of nodes; export the column NodeList")
    rows = np.flatnonzero(known)
    names, of_list = _names_of_lists(log.node_lists, np.unique(lists[rows]))
    held = _held(jobs, rows, [of_list[which] for which in lists[rows].tolist()])
    most = np.stack([_most(held, amount, len(names)) for amount in held.amounts], axis=1)
    return InferredNodes(
        nodes=_types(names, most),
        partitions=_partitions(log, jobs, held, names),
        without_nodes=int(np.count_nonzero(ran & ~known)),
    )


@dataclass(frozen=True, eq=False)
class _Held:
    """Jobs on nodes: one entry for each job and node."""

    job: Integers
    node: Integers
    start: Integers
    end: Integers
    amounts: tuple[Integers, Integers, Integers]


def _names_of_lists(
    texts: tuple[str, ...], wanted: NDArray[np.int64]
) -> tuple[list[str], dict[int, Integers]]:
    """Names of all nodes, sorted, and the places of those of each list that is wanted."""
    expanded = {which: node_names(texts[which]) for which in wanted.tolist()}
    names = sorted({name for each in expanded.values() for name in each}, key=lambda name: (len(name), name))
    place = {name: index for index, name in enumerate(names)}
    return names, {
        which: np.array([place[name] for name in dict.fromkeys(each)], np.int64)
        for which, each in expanded.items()
    }


def _held(jobs: Workload, rows: Integers, nodes: list[Integers]) -> _Held:
    """What each job held on each of its nodes, and when."""
    count = np.array([len(each) for each in nodes])
    which = np.repeat(np.arange(len(rows)), count)
    cores: Integers = -(-jobs.processors[rows] // count)
    memory = np.maximum(jobs.requested_memory[rows], 0) * cores
    asked = jobs.requested_gpus
    gpus = np.zeros(len(rows), np.int64) if asked is None else -(-np.maximum(asked[rows], 0) // count)
    start = jobs.submit_time[rows] + np.maximum(jobs.wait_time[rows], 0)
    end = start + jobs.run_time[rows]
    return _Held(
        job=rows[which],
        node=np.concatenate(nodes),
        start=start[which],
        end=end[which],
        amounts=(cores[which], memory[which], gpus[which]),
    )


def _most(held: _Held, amount: Integers, nodes: int) -> Integers:
    """Most of a resource that was held at once on each node."""
    most = peaks(held.start, held.end, amount, held.node, nodes)
    np.maximum.at(most, held.node, amount)  # a job that ran no time at all held it too
    return most


def _types(names: list[str], most: Integers) -> tuple[NodeType, ...]:
    """Node types, those that are first in the list first."""
    sizes, first, which = np.unique(most, axis=0, return_index=True, return_inverse=True)
    types = []
    for index in np.argsort(first, kind="stable").tolist():
        cores, memory, gpus = sizes[index].tolist()
        mebibytes = -(-memory // _KIB_PER_MIB)
        members = [names[place] for place in np.flatnonzero(which.reshape(-1) == index).tolist()]
        label = f"{cores} cores, {mebibytes} MiB" + (f", {gpus} GPUs" if gpus else "")
        types.append(
            NodeType(
                name=label,
                cores=cores,
                memory=mebibytes if memory else None,
                gpus=min(gpus, _MAX_GPUS),
                names=members,
            )
        )
    return tuple(types)


def _partitions(log: AccountingLog, jobs: Workload, held: _Held, names: list[str]) -> tuple[Partition, ...]:
    """Partitions with the nodes on which their jobs ran; none if all have all nodes."""
    labels = log.names["partition"]
    used: dict[str, set[int]] = {}
    of_job = jobs.partition[held.job]
    for number in np.unique(of_job[of_job >= 0]).tolist():
        nodes = set(np.unique(held.node[of_job == number]).tolist())
        for label in labels[number].split(","):
            used.setdefault(label, set()).update(nodes if "," not in labels[number] else ())
    partitions = []
    for number, label in enumerate(labels):
        members = set().union(*(used.get(part, ()) for part in label.split(",")))
        everywhere = not members or len(members) == len(names)
        nodes_of = () if everywhere else tuple(names[place] for place in sorted(members))
        partitions.append(Partition(number=number, name=label, nodes=nodes_of))
    return tuple(partitions) if any(each.nodes for each in partitions) else ()

"""Clusters of nodes as the engine wants them, what jobs ask for there, and how a run tells of nodes.

Every system that runs jobs on nodes uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.checkpoints import lengths_with_checkpoints
from gridsched.engine.nodes.records import EVENT, JOB, LIMIT, NODE, WINDOW, EventKind
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.nodes import MOST_NUMBERED, UNLIMITED_MEMORY, Limit, Outage, Partition, nodes_with, numbers_in
from gridsched.platform import Cluster
from gridsched.policies.nodes import affinities
from gridsched.results import SEGMENT, Variable, described, of_tasks
from gridsched.systems.job_outcomes import JobOutcome, named_nodes, outcome_variables, times_out
from gridsched.workloads.arrays import limited_arrays
from gridsched.workloads.table import Workload

Integers = NDArray[np.int64]

_KIBIBYTES = 1024

TOO_LARGE = "no nodes that it may use can hold it"
OVER_PARTITION = "over a limit of its partition"
OVER_LIMIT = "over a limit of its group"

REASONS = (OVER_PARTITION, TOO_LARGE, OVER_LIMIT)
"""Why a cluster cannot hold a job."""

ASKED_NAMES = ["units", "cores", "memory", "gpus", "share", "most", "whole", "where"]
"""Common requests of jobs of one shape."""


def needs_nodes(cluster: Cluster, workload: Workload) -> bool:
    """Whether a cluster has to be simulated node by node, or its jobs leave the queue or wait for others."""
    asked = (workload.gives_up_time, workload.dependencies, workload.array_limit)
    return cluster.has_nodes or bool(cluster.limits) or any(column is not None for column in asked)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterNodes:
    """The nodes of one cluster, what happens to them, and which of them jobs may use.

    Parameters
    ----------
    nodes, names
        What each node has, and its name.
    allowed : int64[w, ...]
        Sets of nodes that jobs may use, see `gridsched.nodes.nodes_with`.
    numbers : int64[w, MOST_NUMBERED]
        How many parts of a job have nodes of each bit there, filled up with 0, see
        `gridsched.nodes.numbers_in`.
    events, windows
        What happens to single nodes, by time, and their maintenance windows.
    outages : int64[..., 5]
        When nodes are out, with the fields of `_OUTAGE`.
    """

    nodes: RecordArray
    names: list[str]
    allowed: Integers
    numbers: Integers
    events: RecordArray
    windows: RecordArray
    outages: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeUse:
    """What jobs had of the nodes of one cluster; jobs and nodes are named by their places there."""

    site: ClusterNodes
    segments: RecordArray
    pieces: dict[str, Integers]
    asked: dict[str, Integers]
    limits: RecordArray
    limited: Integers
    priority: Integers


Uses = Sequence[tuple[int, Cluster, Integers, NodeUse]]
"""For each cluster its index, itself, the jobs that it is about, and what they had there."""


# --- nodes and jobs -------------------------------------------------------------------------------


def nodes_for(cluster: Cluster, workload: Workload) -> tuple[ClusterNodes, Integers]:
    """The nodes of a cluster for the jobs of a workload, and the row of `allowed` of each job."""
    nodes, names = _nodes_of(cluster)
    allowed, numbers, where = reach_of(cluster, names, workload)
    events, windows, outages = events_of(cluster)
    site = ClusterNodes(
        nodes=nodes,
        names=names,
        allowed=allowed,
        numbers=numbers,
        events=events,
        windows=windows,
        outages=outages,
    )
    return site, where


def _nodes_of(cluster: Cluster) -> tuple[RecordArray, list[str]]:
    """Nodes and their names; one node where nodes do not matter."""
    if not cluster.has_nodes:
        nodes: RecordArray = np.zeros(1, NODE)
        nodes["cores"], nodes["memory"] = cluster.processors, UNLIMITED_MEMORY
        return nodes, [cluster.name]
    return typed_nodes(cluster), cluster.node_names


def typed_nodes(cluster: Cluster) -> RecordArray:
    """Nodes of a cluster by their types."""
    kinds = cluster.node_types
    nodes: RecordArray = np.zeros(sum(kind.count for kind in kinds), NODE)
    which = np.repeat(np.arange(len(kinds)), [kind.count for kind in kinds])
    memory = [UNLIMITED_MEMORY if kind.memory is None else kind.memory * _KIBIBYTES for kind in kinds]
    nodes["cores"] = np.array([kind.cores for kind in kinds])[which]
    nodes["memory"] = np.array(memory)[which]
    nodes["gpus"] = np.array([kind.gpus for kind in kinds])[which]
    nodes["weight"] = np.array([kind.weight for kind in kinds])[which]
    return nodes


def column_of(workload: Workload, name: str) -> Integers:
    """A column of numbers of which unknown ones are none."""
    column = getattr(workload, name)
    return (
        np.zeros(len(workload), np.int64) if column is None else np.maximum(np.asarray(column, np.int64), 0)
    )


_ASKING = ("requested_nodes", "requested_gpus", "gpu_share", "requested_memory", "constraint")
"""Columns that say what jobs ask for, beside processors and partition."""


def asking_columns(workload: Workload, clusters: Sequence[Cluster]) -> list[Integers]:
    """Columns of which jobs that ask for the same on all clusters have the same values."""
    names = [*_ASKING, *dict.fromkeys(each.partition_of for each in clusters if each.partitions)]
    columns = [getattr(workload, name) for name in ("processors", *names)]
    return [np.asarray(column, np.int64) for column in columns if column is not None]


def asked_for(workload: Workload, cluster: Cluster, site: ClusterNodes, where: Integers) -> RecordArray:
    """What jobs ask for on a cluster, as the engine wants it: equal units, each on one node.

    A job that names a number of nodes has a unit on each; one that asks for GPUs alone has one unit where
    some node has as many, else a unit a GPU; any other one has a unit a processor.
    """
    unit = 1 if cluster.has_nodes else cluster.unit
    size = -(-workload.processors // unit) * unit
    jobs: RecordArray = np.zeros(len(workload), JOB)
    spread = np.minimum(column_of(workload, "requested_nodes"), size)
    gpus, share = column_of(workload, "requested_gpus"), column_of(workload, "gpu_share")
    if not cluster.has_nodes:
        spread, gpus, share = 0 * spread, 0 * gpus, 0 * share
    together = (spread == 0) & ((gpus > 0) | (share > 0))
    one_each = together & (gpus > site.nodes["gpus"].max())
    units = np.where(spread > 0, spread, np.where(one_each, gpus, np.where(together, 1, size)))
    jobs["units"] = np.maximum(units, 1)
    jobs["cores"] = -(-size // jobs["units"])
    jobs["gpus"] = -(-gpus // jobs["units"])
    jobs["share"] = share
    jobs["memory"] = column_of(workload, "requested_memory") * jobs["cores"] if cluster.has_nodes else 0
    jobs["most"] = np.where((spread > 0) | (share > 0), 1, jobs["units"])
    jobs["whole"] = cluster.node_exclusive and cluster.has_nodes
    jobs["affinity"] = affinities(jobs)
    for name in ("entry", "piece", "start", "end"):
        jobs[name] = -1
    jobs["plan"], jobs["where"] = FOREVER, where
    numbered = np.count_nonzero(site.numbers, axis=1)[where]
    jobs["parts"] = np.where(numbered > 0, numbered + 1, 0)
    jobs["choice"] = 1
    jobs["choices"] = np.where(numbered > 0, 1, choices_of(site.allowed)[where])
    return jobs


def user_numbers(workload: Workload) -> Integers:
    """Number of the user of each job, from 0 on; -1 where it is not known."""
    users = np.asarray(workload.user, np.int64)
    return np.where(users < 0, -1, np.unique(users, return_inverse=True)[1].reshape(-1))


def predicted_variable(predicted: Integers) -> Variable:
    """What local policies took for run times when jobs entered their queues, of runs where some predict."""
    return "job", predicted, "run time predicted at submission", "s"


def with_checkpoints(work: Integers, cluster: Cluster) -> Integers:
    """Seconds that work takes on a cluster with its checkpoints."""
    length: Integers = lengths_with_checkpoints(work, cluster.checkpoint_interval, cluster.checkpoint_cost)
    return length


def partitions_of(workload: Workload, cluster: Cluster) -> Integers:
    """Place of each job's partition among those of the cluster, the first for those of another number."""
    numbers = np.array([partition.number for partition in cluster.partitions], np.int64)
    asked = np.asarray(getattr(workload, cluster.partition_of), np.int64)
    if not len(numbers):
        return np.zeros(len(workload), np.int64)
    place: Integers = np.argmax(asked[:, np.newaxis] == numbers, axis=1)
    return place


def priorities_of(workload: Workload, cluster: Cluster) -> Integers:
    """Priority of each job on a cluster, by its partition."""
    levels = np.array([each.priority for each in cluster.partitions] or [0], np.int64)
    priority: Integers = levels[partitions_of(workload, cluster)]
    return priority


def reach_of(cluster: Cluster, names: list[str], workload: Workload) -> tuple[Integers, Integers, Integers]:
    """Sets of nodes that jobs may use, by partition and constraint, their numbers, and each job's set."""
    partitions, featured = partition_sets(cluster, names), constraint_sets(cluster, names)
    numbers = constraint_numbers(cluster)
    where, which = partitions_of(workload, cluster), constraints_of(workload, cluster)
    if len(featured) == 1:
        return partitions.astype(np.int64), np.repeat(numbers, len(partitions), axis=0), where
    pairs, row = np.unique(np.stack([where, which]), axis=1, return_inverse=True)
    return partitions[pairs[0]] * featured[pairs[1]], numbers[pairs[1]], row.reshape(-1)


def partition_sets(cluster: Cluster, names: list[str]) -> NDArray[np.bool_]:
    """Nodes of each partition; all nodes where there is none."""
    sets = [named_nodes(cluster, each.nodes) for each in cluster.partitions]
    return np.array(sets or [np.ones(len(names), np.bool_)])


def constraint_sets(cluster: Cluster, names: list[str]) -> Integers:
    """Nodes that jobs without a constraint may have, and those that each constraint allows."""
    features = [kind.features for kind in cluster.node_types for _ in range(kind.count)]
    allowed = [
        nodes_with(each, features) for each in (cluster.constraints.values() if cluster.has_nodes else ())
    ]
    return np.array([np.ones(len(names), np.int64), *allowed])


def constraint_numbers(cluster: Cluster) -> Integers:
    """Numbers of nodes that jobs without a constraint want, none, and those that each constraint asks for."""
    return numbers_of(["", *(cluster.constraints.values() if cluster.has_nodes else ())])


def numbers_of(constraints: Sequence[str]) -> Integers:
    """Numbers of nodes that each constraint asks for, filled up with 0."""
    numbers = np.zeros((len(constraints), MOST_NUMBERED), np.int64)
    for row, text in enumerate(constraints):
        wanted = numbers_in(text)
        numbers[row, : len(wanted)] = wanted
    return numbers


def choices_of(allowed: Integers) -> Integers:
    """How many choices of nodes there are in each set of nodes, of which a job has one."""
    bits = np.bitwise_or.reduce(allowed, axis=1, initial=1)
    return np.array([int(each).bit_length() for each in bits], np.int64)


def constraints_of(workload: Workload, cluster: Cluster) -> Integers:
    """Row of `constraint_sets` of each job."""
    numbers = np.array([-1, *cluster.constraints], np.int64)
    if workload.constraint is None or len(numbers) == 1 or not cluster.has_nodes:
        return np.zeros(len(workload), np.int64)
    row: Integers = np.argmax(np.asarray(workload.constraint)[:, np.newaxis] == numbers, axis=1)
    return row


def reasons_against(
    jobs: RecordArray, workload: Workload, cluster: Cluster, site: ClusterNodes, requested_time: Integers
) -> NDArray[np.int8]:
    """Why a cluster cannot hold each job, by the first of `REASONS` that there is, from 1 on; else 0."""
    against = (
        _over_partition(jobs, requested_time, cluster.partitions, partitions_of(workload, cluster)),
        ~fits_empty_nodes(jobs, site),
        _over_limit(jobs, cluster.limits, workload),
    )
    return np.select(against, list(range(1, len(against) + 1)), 0).astype(np.int8)


def fits_empty_nodes(jobs: RecordArray, site: ClusterNodes) -> NDArray[np.bool_]:
    """Whether all units of each job fit on the nodes that it may use, if nothing else runs there."""
    kinds, which = np.unique(site.nodes[["cores", "memory", "gpus"]], return_inverse=True)
    of_kind = which.reshape(-1, 1) == np.arange(len(kinds))
    fitting = np.empty((len(jobs), len(kinds)), np.int64)
    for k, kind in enumerate(kinds):
        units = np.minimum(jobs["most"], jobs["units"])
        for name in ("cores", "memory", "gpus"):
            asked = jobs[name]
            units = np.where(asked > 0, np.minimum(units, kind[name] // np.maximum(asked, 1)), units)
        fitting[:, k] = np.where((jobs["share"] > 0) & (kind["gpus"] == 0), 0, units)
    enough = np.zeros(len(jobs), np.bool_)
    for row, choices in enumerate(choices_of(site.allowed).tolist()):
        mine, numbers = jobs["where"] == row, site.numbers[row][site.numbers[row] > 0]
        choices = len(numbers) + 1 if len(numbers) else choices
        units = jobs["units"][mine]
        # each choice alone; of numbered parts all that there are of some of them
        bits = np.arange(1, 1 << choices) if len(numbers) else 1 << np.arange(choices)
        counts = (site.allowed[row] & bits[:, np.newaxis] != 0).astype(np.int64) @ of_kind
        room = fitting[mine] @ counts.T
        if len(numbers):
            parts = np.column_stack([np.tile(numbers, (len(units), 1)), units - numbers.sum()])
            wanted = parts @ (bits[:, np.newaxis] >> np.arange(choices) & 1).T
            enough[mine] = (room >= wanted).all(axis=1) & (parts[:, -1] >= 0)
        else:
            enough[mine] = (room >= units[:, np.newaxis]).any(axis=1)
    return enough


def _over_partition(
    jobs: RecordArray, requested_time: Integers, partitions: Any, partition: Integers
) -> NDArray[np.bool_]:
    """Jobs that ask for more than their partition gives."""
    over = np.zeros(len(jobs), np.bool_)
    nodes = np.where(jobs["most"] == 1, jobs["units"], 0)
    for index, each in enumerate(partitions):
        assert isinstance(each, Partition)
        mine = partition == index
        for values, most in (
            (requested_time, each.time_limit),
            (jobs["units"] * jobs["cores"], each.most_processors),
            (nodes, each.most_nodes),
        ):
            if most is not None:
                over |= mine & (values > most)
    return over


def groups_of(workload: Workload, limit: Limit) -> Integers:
    """Group of each job under a limit; -1 for those that it does not concern."""
    values = np.asarray(getattr(workload, limit.by), np.int64)
    if limit.of is not None:
        return np.where(values == limit.of, 0, -1)
    known = values >= 0
    return np.where(known, np.unique(np.where(known, values, -1), return_inverse=True)[1].reshape(-1), -1)


def limit_values(limit: Limit) -> tuple[int, int, int]:
    """Jobs, processors, and processor-seconds that a group may have."""
    minutes = limit.processor_minutes
    return (
        FOREVER if limit.jobs is None else limit.jobs,
        FOREVER if limit.processors is None else limit.processors,
        FOREVER if minutes is None else 60 * minutes,
    )


def _over_limit(jobs: RecordArray, limits: Any, workload: Workload) -> NDArray[np.bool_]:
    """Jobs that are over a limit of their group alone."""
    over = np.zeros(len(jobs), np.bool_)
    size = jobs["units"] * jobs["cores"]
    for limit in limits:
        _, processors, seconds = limit_values(limit)
        over |= (groups_of(workload, limit) >= 0) & (
            (size > processors) | (size * jobs["estimate"] > seconds)
        )
    return over


def limits_of(workload: Workload, limits: Any) -> tuple[RecordArray, Integers]:
    """Limits, one for each group and each job array, and those that each job is subject to."""
    table: list[tuple[int, ...]] = []
    columns = []
    for limit in limits:
        groups = groups_of(workload, limit)
        columns.append(np.where(groups >= 0, groups + len(table), -1))
        table += [(*limit_values(limit), 0, 0, 0)] * int(groups.max(initial=-1) + 1)
    of_array, most = limited_arrays(workload)
    if len(most):
        columns.append(np.where(of_array >= 0, of_array + len(table), -1))
        table += [(jobs, FOREVER, FOREVER, 0, 0, 0) for jobs in most.tolist()]
    limited = np.array(columns, np.int64).reshape(len(columns), len(workload)).T
    return np.array(table, LIMIT), np.ascontiguousarray(limited)


def events_of(cluster: Cluster) -> tuple[RecordArray, RecordArray, Integers]:
    """Events by time and node, maintenance windows, and outages with the fields of `_OUTAGE`."""
    events: list[tuple[int, int, int, int]] = []
    windows: list[tuple[int, int, int, int]] = []
    for event in cluster.events:
        for node in np.flatnonzero(named_nodes(cluster, (event.node,))).tolist():
            if event.kind == "maintenance":
                w = len(windows)
                windows.append((node, event.start, event.end, -1))
                events.append((event.time, node, int(EventKind.ANNOUNCE), w))
                events.append((event.start, node, int(EventKind.CLOSE), w))
                events.append((event.end, node, int(EventKind.OPEN), w))
            else:
                events.append((event.time, node, int(EventKind[event.kind.upper()]), -1))
    events.sort(key=lambda each: each[:2])
    out = np.array(sorted(times_out(cluster)), np.int64).reshape(-1, len(_OUTAGE))
    return np.array(events, EVENT), np.array(windows, WINDOW), out


# --- results --------------------------------------------------------------------------------------


def executed(log: RecordArray, cluster: int) -> tuple[RecordArray, dict[str, Integers]]:
    """Segments and their pieces, of what was executed on a cluster, in the order in which it was."""
    # pieces of one execution were written one after the other
    changes = [np.diff(log[name]) != 0 for name in ("job", "start", "end")]
    new = np.append(True, np.any(changes, axis=0))[: len(log)]
    segment = np.cumsum(new) - 1
    first = log[new]
    segments: RecordArray = np.empty(len(first), SEGMENT)
    segments["job"], segments["cluster"] = first["job"], cluster
    segments["start"], segments["end"] = first["start"], first["end"]
    segments["processors"] = np.bincount(segment, weights=log["cores"], minlength=len(first)).astype(np.int64)
    pieces = {name: log[name].astype(np.int64) for name in ("node", "units", "cores", "memory", "devices")}
    return segments, pieces | {"segment": segment.astype(np.int64), "share": log["share"].astype(np.int64)}


def times_of(segments: RecordArray, jobs: int) -> tuple[Integers, Integers]:
    """First start and last end of each job; -1 for those that never ran."""
    start = np.full(jobs, 2**62)
    end = np.full(jobs, -1)
    np.minimum.at(start, segments["job"], segments["start"])
    np.maximum.at(end, segments["job"], segments["end"])
    return np.where(start == 2**62, -1, start), end


PIECES: dict[str, tuple[str, str]] = {
    "segment": ("index of the segment", "1"),
    "node": ("index of the node", "1"),
    "units": ("parts of the job that run on the node", "1"),
    "cores": ("processors of the node that it has", "1"),
    "memory": ("memory of the node that it has", "KiB"),
    "devices": ("GPUs of which it has something, one bit each", "1"),
    "share": ("thousandths of each of these GPUs that it has", "1"),
}
REACH_TEXT = (
    "1 for the nodes that jobs may use; or a bit for each choice, of which a job has one; or a bit for each "
    "of reach_numbers and one for its other parts"
)
NUMBER_TEXT = "parts of a job that are on nodes with each bit of node_reach; 0 where bits are choices"
ASKED_TEXTS: dict[str, tuple[str, str]] = {
    "units": ("equal parts of a job, each on one node", "1"),
    "cores": ("processors of a part", "1"),
    "memory": ("memory of a part", "KiB"),
    "gpus": ("whole GPUs of a part", "1"),
    "share": ("thousandths of one GPU of a part", "1"),
    "most": ("most parts on one node", "1"),
    "whole": ("1 if its nodes run nothing else", "1"),
    "where": ("index of the nodes that it may use, see node_reach", "1"),
}


_OUTAGE = {
    "node": ("index of the node that was out", "1"),
    "start": ("start of an outage", "s"),
    "end": ("end of an outage", "s"),
    "kind": (f"why: {', '.join(f'{each.value} {each.name.lower()}' for each in Outage)}", "1"),
    "announced": ("when it was known", "s"),
}

_LIMIT = {
    "jobs": ("most jobs of a group at once, -1 for any number", "1"),
    "cores": ("most processors of a group at once, -1 for any number", "1"),
    "seconds": ("most processors times estimated seconds of a group at once, -1 for any number", "s"),
}

_AFTER_FAILURES = {
    "requeue": ("where a job waits whose node failed", "1"),
    "checkpoint_interval": ("interval of checkpoints", "s"),
    "checkpoint_cost": ("cost of checkpoints", "s"),
}


def node_results(
    workload: Workload,
    clusters: Sequence[Cluster],
    uses: Uses,
    outcomes: JobOutcome,
    against: NDArray[np.integer[Any]],
) -> tuple[RecordArray, dict[str, Variable], dict[str, int]]:
    """Segments, variables and counters of a run on nodes; `against` is by `reasons_against`."""
    segments = np.concatenate([use.segments for *_, use in uses])
    size = np.asarray(workload.processors, np.int64)
    told, counted = outcome_variables(workload, outcomes)
    variables = {
        **of_tasks(size[segments["job"]]),
        **node_variables(uses, clusters, len(workload)),
        **told,
    }
    codes = np.bincount(against, minlength=len(REASONS) + 1)[1:].tolist()
    rejected = {f"rejected: {reason}": n for reason, n in zip(REASONS, codes, strict=True) if n}
    return segments, variables, counted | rejected


def node_variables(runs: Uses, clusters: Sequence[Cluster], jobs: int) -> dict[str, Variable]:
    """What runs on nodes say of jobs, pieces, nodes and outages; jobs of other clusters ask for nothing."""
    variables: dict[str, Variable] = {}
    segment_offset, node_offset, row_offset = 0, 0, 0
    pieces: dict[str, list[Integers]] = {name: [] for name in PIECES}
    owner, names, outages = [], [], []
    asked = {name: np.zeros(jobs, np.int64) for name in ASKED_TEXTS}
    few = all(run.site.allowed.max(initial=0) < 128 for *_, run in runs)
    rows, columns = (sum(run.site.allowed.shape[k] for *_, run in runs) for k in (0, 1))
    reach = np.zeros((rows, columns), np.int8 if few else np.int64)
    numbers = np.concatenate([run.site.numbers for *_, run in runs])
    for index, cluster, own, run in runs:
        site = run.site
        for name, parts in pieces.items():
            shift = {"segment": segment_offset, "node": node_offset}.get(name, 0)
            parts.append(run.pieces[name] + shift if shift else run.pieces[name])
        for name, values in asked.items():
            values[own] = run.asked[name] + (row_offset if name == "where" else 0)
        owner.append(np.full(len(site.nodes), index))
        prefix = f"{cluster.name}/" if len(runs) > 1 else ""
        names += [prefix + name for name in site.names]
        outages.append(site.outages + np.array([node_offset] + [0] * (len(_OUTAGE) - 1)))
        rows, columns = site.allowed.shape
        reach[row_offset : row_offset + rows, node_offset : node_offset + columns] = site.allowed
        segment_offset += len(run.segments)
        node_offset += columns
        row_offset += rows
    for name, parts in pieces.items():
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)  # there may be very many
        variables[f"piece_{name}"] = ("piece", values, *PIECES[name])
    table = np.concatenate([run.site.nodes for *_, run in runs])
    out = dict(zip(_OUTAGE, np.concatenate(outages).T, strict=True))
    variables |= {
        **described("job", ASKED_TEXTS, asked, "asked_"),
        "node_name": ("node", np.array(names), "name of the node", "1"),
        "node_cluster": ("node", np.concatenate(owner), "index of the cluster", "1"),
        "node_cores": ("node", table["cores"].copy(), "processors of the node", "1"),
        "node_memory": ("node", table["memory"].copy(), "memory of the node", "KiB"),
        "node_gpus": ("node", table["gpus"].copy(), "GPUs of the node", "1"),
        "node_reach": (("reach", "node"), reach, REACH_TEXT, "1"),
        **described("outage", _OUTAGE, out, "outage_"),
    }
    if numbers.any():
        variables["reach_numbers"] = (("reach", "feature"), numbers, NUMBER_TEXT, "1")
    return variables | _limit_variables(runs, jobs) | _priority(runs, jobs) | _after_failures(clusters)


def _limit_variables(runs: Uses, jobs: int) -> dict[str, Variable]:
    """Limits and who is subject to them, where there are any."""
    limits = np.concatenate([run.limits for *_, run in runs])
    if not len(limits):
        return {}
    limited = np.full((jobs, max(run.limited.shape[1] for *_, run in runs)), -1, np.int64)
    offset = 0
    for _, _, own, run in runs:
        limited[own, : run.limited.shape[1]] = np.where(run.limited >= 0, run.limited + offset, -1)
        offset += len(run.limits)
    most = {name: np.where(limits[name] == FOREVER, -1, limits[name]) for name in _LIMIT}
    subject = (("job", "subject"), limited, "indices of the limits of the job, -1 for none", "1")
    return {"limited": subject, **described("limit", _LIMIT, most, "limit_")}


def _after_failures(clusters: Sequence[Cluster]) -> dict[str, Variable]:
    """Treatment of jobs whose nodes fail, where some do or checkpoints are written."""
    if not any(cluster.events or cluster.checkpoint_interval for cluster in clusters):
        return {}
    names = ("requeue", "checkpoint_interval", "checkpoint_cost")
    columns = {name: np.array([getattr(each, name) for each in clusters]) for name in names}
    return described("cluster", _AFTER_FAILURES, columns, "cluster_")


def _priority(runs: Uses, jobs: int) -> dict[str, Variable]:
    """Priority of each job by its partition, where some have another than others."""
    priority = np.zeros(jobs, np.int64)
    for _, _, own, run in runs:
        priority[own] = run.priority
    if not priority.any():
        return {}
    return {"partition_priority": ("job", priority, "jobs of higher priority come first", "1")}

"""The cluster that a command simulates: as its operator or an export says, or a pool of processors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gridsched.cli.logs import Log
from gridsched.cli.options import names_of_aspects
from gridsched.cli.printing import jobs
from gridsched.errors import ConfigurationError, WorkloadError, meant

if TYPE_CHECKING:
    from gridsched.nodes import NodeEvent, NodeType
    from gridsched.platform import Cluster
    from gridsched.traces.node_files import SiteNodes
    from gridsched.workloads import Workload


@dataclass(frozen=True)
class Setting:
    """Jobs and cluster that are simulated, and what there is to say of how they came about."""

    workload: Workload
    cluster: Cluster
    notes: Sequence[tuple[str, str]] = ()


def cluster_of(
    log: Log, workload: Workload, options: argparse.Namespace, configured: Cluster | None = None
) -> tuple[Cluster, list[tuple[str, str]]]:
    """The cluster, and where its nodes are from.

    Parameters
    ----------
    log : Log
        The log.
    workload : Workload
        Its jobs, or those of the chosen partitions.
    options : argparse.Namespace
        What was said on the command line.
    configured : Cluster, optional
        What its configuration says; options go before it.
    """
    from gridsched.platform import Cluster

    site, notes = _nodes(log, workload, options, configured)
    if site is not None:
        shape: dict[str, Any] = {
            "nodes": site.nodes,
            "partitions": site.partitions,
            "partition_of": site.partition_of,
            "limits": site.limits,
            "placement": site.placement,
            "constraints": site.constraints,
        }
    else:
        processors = options.processors or workload.processors_available or _most_in_use(workload, options)
        shape = {"processors": processors, "processors_per_node": options.processors_per_node}
    cluster = Cluster(
        **shape,
        node_exclusive=options.node_exclusive or (configured is not None and configured.node_exclusive),
        speed=options.speed,
        name=workload.name,
        events=[*_configured(configured, shape), *_events(workload, options, shape)],
        requeue=options.requeue,
    )
    return cluster, notes


def _configured(configured: Cluster | None, shape: dict[str, Any]) -> list[NodeEvent]:
    """Events of nodes that a configuration has, where its nodes are simulated."""
    used = configured is not None and shape.get("nodes") == configured.nodes
    return list(configured.events) if configured is not None and used else []


def _nodes(
    log: Log, workload: Workload, options: argparse.Namespace, configured: Cluster | None
) -> tuple[SiteNodes | None, list[tuple[str, str]]]:
    """Nodes that are given, configured, or shown by an export; none if none of them is there."""
    from gridsched.traces.node_files import SiteNodes
    from gridsched.traces.node_lists import infer_nodes

    given = [
        option
        for option, value in (("--nodes", options.nodes), ("--node-type", options.node_type))
        if value is not None
    ]
    pool = [
        option
        for option, value in (
            ("--processors", options.processors),
            ("--processors-per-node", None if options.processors_per_node == 1 else 1),
        )
        if value is not None
    ]
    if len(given) > 1 or (given and pool):
        raise ConfigurationError(f"{given[0]} and {[*given[1:], *pool][0]}: give one of the two")
    if options.nodes is not None:
        site = _from_file(log, options)
        notes = [("nodes", f"as in {options.nodes}"), *_strangers(log, workload, site)]
        return site, notes + _unconstrained(log, workload, site)
    if options.node_type is not None:
        return SiteNodes(nodes=_types(options.node_type)), []
    if configured is not None and not pool and "nodes" not in names_of_aspects(options.without):
        site = SiteNodes(
            nodes=tuple(configured.nodes),
            partitions=tuple(configured.partitions),
            constraints=configured.constraints,
        )
        # with one partition it does not matter what jobs call it
        strangers = _strangers(log, workload, site) if len(site.partitions) > 1 else []
        return site, [("nodes", "as configured"), *strangers, *_unconstrained(log, workload, site)]
    if (
        log.accounting is None
        or not len(log.accounting.node_list)
        or "nodes" in names_of_aspects(options.without)
    ):
        return None, _unknown(log, workload, options)
    if pool:
        told = f"leave {pool[0]} out to simulate the nodes of the column NodeList"
        return None, [("nodes", f"one pool of processors; {told}")]
    try:
        found = infer_nodes(log.accounting, workload)
    except WorkloadError:
        return None, _unknown(log, workload, options)
    notes = [
        (
            "nodes",
            "those of the column NodeList, each with the most that jobs held there at once; see --nodes",
        )
    ]
    if found.without_nodes:
        notes.append(("", f"{jobs(found.without_nodes)} without a list of nodes"))
    if found.partitions:
        notes.append(("partitions", "have the nodes on which their jobs ran"))
    return SiteNodes(nodes=found.nodes, partitions=found.partitions), notes


def _from_file(log: Log, options: argparse.Namespace) -> SiteNodes:
    """Nodes of a YAML file, or of the list of a trace of pods."""
    from gridsched.traces.gpu_clusters import gpu_partitions, read_gpu_nodes
    from gridsched.traces.node_files import SiteNodes, read_nodes

    if not options.nodes.exists():
        raise ConfigurationError(
            f"--nodes {options.nodes}: no such file; give a file of nodes, or equal nodes as "
            "--node-type COUNT,CORES[,MEMORY[,GPUS]]"
        )
    if options.nodes.suffix.lower() in (".yaml", ".yml"):
        return read_nodes(options.nodes, log.names)
    nodes = read_gpu_nodes(options.nodes)
    if log.format != "gpu-pods":
        return SiteNodes(nodes=nodes)
    models = log.names["partition"]
    return SiteNodes(nodes=nodes, partitions=gpu_partitions(options.nodes, models) if len(models) > 1 else ())


def _types(given: Sequence[tuple[Any, ...]]) -> tuple[NodeType, ...]:
    """Node types of the command line; several have names of their own."""
    from gridsched.nodes import NodeType

    return tuple(
        NodeType(
            name="node" if len(given) == 1 else f"type{place}-",
            count=count,
            cores=cores,
            memory=memory,
            gpus=gpus or 0,
        )
        for place, (count, cores, memory, gpus) in enumerate(given)
    )


def _strangers(log: Log, workload: Workload, site: SiteNodes) -> list[tuple[str, str]]:
    """What is said of jobs whose partition is not in the file."""
    import numpy as np

    if not site.partitions:
        return []
    asked = getattr(workload, site.partition_of)
    unknown = ~np.isin(asked, [partition.number for partition in site.partitions])
    if not unknown.any():
        return []
    named = sorted({log.name(site.partition_of, int(number)) for number in asked[unknown]})
    return [
        (
            "partitions",
            f"{jobs(int(unknown.sum()))} of partitions that the file does not have "
            f"({', '.join(named[:5])}), taken as of {site.partitions[0].label}",
        )
    ]


def _unconstrained(log: Log, workload: Workload, site: SiteNodes) -> list[tuple[str, str]]:
    """What is said of jobs whose constraints are not modelled, where those of others are."""
    import numpy as np

    if workload.constraint is None or not site.constraints:
        return []
    left = (workload.constraint >= 0) & ~np.isin(workload.constraint, list(site.constraints))
    if not left.any():
        return []
    named = sorted({log.name("constraint", int(number)) for number in workload.constraint[left]})
    return [
        ("constraints", f"{jobs(int(left.sum()))} may have any node: not modelled are {', '.join(named[:5])}")
    ]


def _unknown(log: Log, workload: Workload, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What is said where jobs have memory or GPUs, and nodes are not known."""
    left = names_of_aspects(options.without)
    if log.format == "gpu-jobs":
        return [("processors", "are GPUs, one pool of them; give nodes with --nodes or --node-type")]
    asked: dict[str, list[Any]] = {
        "memory": [workload.requested_memory],
        "gpus": [workload.requested_gpus, workload.gpu_share],
    }
    shown = [
        {"memory": "memory", "gpus": "GPUs"}[name]
        for name, columns in asked.items()
        if name not in left and any(column is not None and bool((column > 0).any()) for column in columns)
    ]
    if not shown or "nodes" in left:
        return []
    what = " and ".join(shown)
    return [("left out", f"{what}: the log does not say what nodes there are; give them with --nodes")]


def _known_nodes(shape: dict[str, Any]) -> set[str]:
    """Names by which events may call nodes of a cluster of this shape."""
    from gridsched.platform import Cluster

    bare = Cluster(**{key: shape[key] for key in shape if key not in ("partitions", "limits", "constraints")})
    return {"*", *bare.node_names, *(kind.name for kind in bare.node_types)}


def _events(workload: Workload, options: argparse.Namespace, shape: dict[str, Any]) -> list[NodeEvent]:
    """Events of nodes, on the clock of the log."""
    from gridsched.nodes import read_events

    if not options.events:
        return []
    events = read_events(
        options.events, unix_start_time=workload.unix_start_time, time_zone=workload.time_zone
    )
    known = _known_nodes(shape)
    for line, event in enumerate(events, start=2):
        if event.node not in known:
            raise ConfigurationError(
                f"{options.events}:{line}: node is {event.node!r}: no node and no node type of the cluster"
                f"{meant(event.node, known)}"
            )
    return events


def _most_in_use(workload: Workload, options: argparse.Namespace) -> int:
    """Processors that the log shows in use at once, in whole nodes."""
    from gridsched.comparison import recorded_peak

    most = recorded_peak(workload)
    if most is None:
        raise WorkloadError(
            f"{workload.name}: the log does not say how many processors its cluster has; use --processors, "
            "or --nodes"
        )
    node: int = options.processors_per_node
    return -(-most // node) * node

"""What a simulation of a log takes into account beside processors, and how to leave one of it out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gridsched.errors import ConfigurationError, meant
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

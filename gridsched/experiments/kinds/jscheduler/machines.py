"""The platform of a study of the JScheduler: its clusters, its centres, and their nodes that fail.

Each processor is a node. A processor of a centre fails at the same times whether the clusters of the centre
are one pool, as in the original scenario, or by themselves, as in the grid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridsched.experiments.machines import machines_of_stream, shifted
from gridsched.experiments.parts import ClusterConfig, FailuresConfig
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.systems.jscheduler.centres import CentrePlatform, Reading
from gridsched.workloads import Workload


def resources_of(
    platform: CentrePlatform,
    factor: Reading,
    submit_time: NDArray[np.int64],
    failures: FailuresConfig | None,
    seed: int,
) -> tuple[list[Cluster], list[LocalPolicy]]:
    """Every cluster of the grid with its failures, and its policy.

    Parameters
    ----------
    platform : CentrePlatform
        The platform.
    factor : {"multiply", "divide", "none"}
        Reading of the CPU factor.
    submit_time : int64[n]
        Of all jobs, in order [s]; failures begin with the first.
    failures : FailuresConfig, optional
        Failures of all nodes.
    seed : int
        Seed of the whole configuration.
    """
    resources, policies, _ = platform.resources(factor)
    configs = [ClusterConfig(name="all", failures=failures)] * len(resources)
    return machines_of_stream(submit_time, resources, configs, seed), policies


def pool_of(
    platform: CentrePlatform,
    centre: str,
    factor: Reading,
    jobs: Workload,
    failures: FailuresConfig | None,
    seed: int,
) -> tuple[Cluster, LocalPolicy]:
    """All processors of a centre as one cluster, which fail as in its clusters, by the clock of its log.

    Parameters
    ----------
    platform, factor, failures, seed
        As for `resources_of`.
    centre : str
        Name of the centre.
    jobs : Workload
        The log of the centre.
    """
    pool, policy = platform.pool(centre, factor)
    if failures is None:
        return pool, policy
    first = int(jobs.submit_time[0])
    alone = replace(platform, centres=(platform.centre(centre),))
    clusters, _ = resources_of(alone, factor, jobs.submit_time - first, failures, seed)
    nodes = iter(pool.node_names)
    events: list[NodeEvent] = []
    for cluster in clusters:
        own = dict(zip(cluster.node_names, nodes, strict=False))
        events += [
            replace(event, node=node)
            for event in cluster.events
            for node in ([own[event.node]] if event.node in own else own.values())
        ]
    failing = replace(
        pool,
        events=shifted(sorted(events, key=lambda event: event.time), first),
        requeue=failures.requeue,
        checkpoint_interval=failures.checkpoint_interval,
        checkpoint_cost=failures.checkpoint_cost,
    )
    return failing, policy

"""The platform of a study of the JScheduler: its clusters, its centres, and their nodes that fail.

Each processor is a node. A processor of a centre fails at the same times whether the clusters of the centre
are one pool, as in the original scenario, or by themselves, as in the grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.experiments.machines import machines_of_stream, shifted
from gridsched.experiments.parts import ClusterConfig, FailuresConfig
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.systems.jscheduler.centres import Centre, CentrePlatform, Reading
from gridsched.workloads import Workload


def platform_of(centres: Sequence[Mapping[str, Any]]) -> CentrePlatform:
    """The platform of a task, whose arguments are plain values."""
    return CentrePlatform(
        tuple(
            Centre(**{**each, "resources": tuple((number, size) for number, size in each["resources"])})
            for each in centres
        )
    )


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
    return _failing(resources, submit_time, failures, seed), policies


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
    resources, _, index = platform.resources(factor)
    names = [each.name for each in platform.centres]
    own = [each for each, place in zip(resources, index, strict=True) if names[place] == centre]
    first = int(jobs.submit_time[0])
    failing = _failing(own, jobs.submit_time - first, failures, seed)
    alike = failing[0]
    return (
        replace(
            pool,
            events=shifted(_of_pool(pool, failing), first),
            requeue=alike.requeue,
            checkpoint_interval=alike.checkpoint_interval,
            checkpoint_cost=alike.checkpoint_cost,
        ),
        policy,
    )


def _failing(
    resources: list[Cluster], submit_time: NDArray[np.int64], failures: FailuresConfig | None, seed: int
) -> list[Cluster]:
    """Clusters with their failures, if they have any."""
    if failures is None:
        return resources
    config = ClusterConfig(name="all", failures=failures)
    return machines_of_stream(submit_time, resources, [config] * len(resources), seed)


def _of_pool(pool: Cluster, failing: Sequence[Cluster]) -> list[NodeEvent]:
    """Events of clusters as those of the nodes of their pool, in order of time."""
    names, begin, events = pool.node_names, 0, []
    for resource in failing:
        own = names[begin : begin + resource.processors]
        begin += resource.processors
        known = dict(zip(resource.node_names, own, strict=True))
        for event in resource.events:
            nodes = [known[event.node]] if event.node in known else own
            events += [replace(event, node=node) for node in nodes]
    return sorted(events, key=lambda event: event.time)

"""The platform of a study of self-scheduling whose nodes fail: its clusters, and its centres by themselves.

Each processor is a node. A processor of a centre fails at the same times whether the clusters of the centre
are one pool, as in the original scenario, or by themselves, as in the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridsched.experiments.machines import machines_of_stream, shifted
from gridsched.nodes import NodeEvent
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.systems.jscheduler.centres import Reading
from gridsched.systems.jscheduler.study.config import SelfSchedulingStudy
from gridsched.workloads import Workload


def resources_of(
    study: SelfSchedulingStudy, factor: Reading, submit_time: NDArray[np.int64], seed: int
) -> tuple[list[Cluster], list[LocalPolicy]]:
    """Every cluster of the grid with the failures of the first scenario, and its policy.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study.
    factor : {"multiply", "divide", "none"}
        Reading of the CPU factor.
    submit_time : int64[n]
        Of all jobs, in order [s]; failures begin with the first.
    seed : int
        Seed of the whole configuration.
    """
    resources, policies, _ = study.grid.resources(factor)
    return _failing(study, resources, submit_time, seed), policies


def pool_of(
    study: SelfSchedulingStudy, centre: str, factor: Reading, jobs: Workload, seed: int
) -> tuple[Cluster, LocalPolicy]:
    """All processors of a centre as one cluster, which fail as in its clusters, by the clock of its log.

    Parameters
    ----------
    study : SelfSchedulingStudy
        The study.
    centre : str
        Name of the centre.
    factor : {"multiply", "divide", "none"}
        Reading of the CPU factor.
    jobs : Workload
        The log of the centre.
    seed : int
        Seed of the whole configuration.
    """
    pool, policy = study.grid.pool(centre, factor)
    if study.scenarios[0].failures is None:
        return pool, policy
    resources, _, index = study.grid.resources(factor)
    names = [each.name for each in study.grid.centres]
    own = [each for each, place in zip(resources, index, strict=True) if names[place] == centre]
    first = int(jobs.submit_time[0])
    failing = _failing(study, own, jobs.submit_time - first, seed)
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
    study: SelfSchedulingStudy, resources: list[Cluster], submit_time: NDArray[np.int64], seed: int
) -> list[Cluster]:
    """Clusters with the failures of the first scenario of a study, if it has any."""
    (config,) = study.scenarios[0].machines
    if config.failures is None:
        return resources
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

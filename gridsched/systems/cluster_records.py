"""Clusters of a grid and their local policies as the engine wants them, for every grid scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import clusters as grid
from gridsched.engine.records import Backfilling, Overrun
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import AS_QUEUE, ORDERS, LocalPolicy, OverrunName


def cluster_records(
    clusters: Sequence[Cluster], policies: Sequence[LocalPolicy]
) -> tuple[NDArray[Any], scores.Score]:
    """Clusters and their policies as the engine wants them, and the score of those that change with time.

    Raises
    ------
    ConfigurationError
        If they do not go together.
    """
    if not clusters or len(clusters) != len(policies):
        raise ConfigurationError(
            f"{len(clusters)} clusters and {len(policies)} policies; give one policy for each cluster"
        )
    names = [cluster.name for cluster in clusters]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"clusters are called {', '.join(names)}; give each a name of its own")
    records = np.zeros(len(clusters), grid.CLUSTER)
    changing: set[scores.Score] = set()
    for record, cluster, policy in zip(records, clusters, policies, strict=True):
        record["processors"] = cluster.processors
        record["processors_per_node"] = cluster.processors_per_node
        record["node_exclusive"] = cluster.node_exclusive
        record["speed"] = cluster.speed
        record["order"] = _order(policy.order, changing)
        record["backfilling"] = Backfilling[policy.backfilling.upper()]
        record["reservations"] = policy.reservations
        record["queue_as_order"] = policy.backfill_order == AS_QUEUE
        if policy.backfill_order != AS_QUEUE:
            record["backfill_order"] = _backfill_order(policy)
    if len(changing) > 1:
        raise ConfigurationError("the clusters of a grid may have only one order that is a score")
    return records, changing.pop() if changing else scores.largest_expansion_factor


def _order(order: str | scores.Score, changing: set[scores.Score]) -> int:
    """Order of a local queue as the engine knows it; a score is collected, to be asked at each pass."""
    if isinstance(order, str) and order.upper() in grid.Order.__members__:
        return int(grid.Order[order.upper()])
    changing.add(ORDERS[order] if isinstance(order, str) else order)
    return int(grid.Order.SCORE)


def _backfill_order(policy: LocalPolicy) -> int:
    """Backfill order as the engine knows it."""
    if not isinstance(policy.backfill_order, str):
        raise ConfigurationError(
            f"policy {policy.name!r}: on the clusters of a grid backfill_order is a name, not a score"
        )
    return int(grid.Order[policy.backfill_order.upper()])


def overrun_code(overrun: OverrunName) -> int:
    """What happens to exceeded estimates, as the engine knows it."""
    return int(Overrun[overrun.upper()])

"""Clusters of a grid, be they numbers of processors (`clusters`) or nodes (`node_clusters`).

`grid.NAME(g, local, ...)` is the function of that name of one of the two, by what `local` is. Where it is
`clusters.LocalArrays`, jobs enter when they are submitted and leave when they have run, and nothing of
`node_clusters` is compiled.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import clusters, node_clusters
from gridsched.engine.clusters import LocalArrays
from gridsched.engine.node_clusters import NodeClusters
from gridsched.engine.type_dispatch import ModuleDispatch

Local = LocalArrays | NodeClusters
"""Local schedulers of either kind."""

_both = ModuleDispatch(clusters, node_clusters, NodeClusters)


def __getattr__(name: str) -> Any:
    """The function of either kind."""
    return getattr(_both, name)

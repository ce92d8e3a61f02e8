"""Clusters, and platforms of several: what jobs run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.policies.local import LocalPolicy, named_policy


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A space-shared cluster with a local scheduler.

    Parameters
    ----------
    processors : int
        Processors that jobs can use.
    processors_per_node : int
        Processors of one node.
    node_exclusive : bool
        Whether a node runs one job only, so that a job takes whole nodes.
    speed : float
        Speed, in a unit that all clusters of a platform share: run times and estimates as at speed 1 are
        divided by it and rounded up to whole seconds.
    name : str
        Name in results.
    policy : str or LocalPolicy
        Its local policy, see `gridsched.policies.local`.

    Raises
    ------
    ConfigurationError
        If a value is out of range, or the policy unknown.
    """

    processors: int
    processors_per_node: int = 1
    node_exclusive: bool = False
    speed: float = 1.0
    name: str = "cluster"
    policy: str | LocalPolicy = "easy"

    def __post_init__(self) -> None:
        named_policy(self.policy)
        if self.processors < 1:
            raise ConfigurationError(f"cluster {self.name}: processors is {self.processors}; give at least 1")
        if self.processors_per_node < 1 or self.processors % self.processors_per_node:
            raise ConfigurationError(
                f"cluster {self.name}: {self.processors} processors are not whole nodes of "
                f"{self.processors_per_node}; fix processors or processors_per_node"
            )
        if not (np.isfinite(self.speed) and self.speed > 0):
            raise ConfigurationError(f"cluster {self.name}: speed is {self.speed}; give a positive number")

    @property
    def unit(self) -> int:
        """Processors that jobs take at a time: those of a node where a job takes whole nodes, else one."""
        return self.processors_per_node if self.node_exclusive else 1

    def allocation(self, processors: NDArray[Any]) -> NDArray[np.int64]:
        """Processors that the cluster loses to jobs that ask for `processors`."""
        wanted = np.asarray(processors, np.int64)
        return -(-wanted // self.unit) * self.unit

    def duration(self, seconds: NDArray[Any]) -> NDArray[np.int64]:
        """Whole seconds that work of so many seconds takes on this cluster."""
        if self.speed == 1.0:
            return np.asarray(seconds, np.int64)
        with np.errstate(over="ignore"):
            lengths = np.asarray(seconds) / self.speed
        # More than any simulation takes, but still a whole number.
        return np.ceil(np.minimum(lengths, 2.0**62)).astype(np.int64)


class ResourceChange(NamedTuple):
    """From a time on [s], a cluster has so many processors; the highest are added or removed.

    A job that runs on a removed one runs to its end.
    """

    time: int
    cluster: str
    processors: int


@dataclass(frozen=True, eq=False)
class Platform:
    """Clusters with what connects and changes them.

    Parameters
    ----------
    clusters : sequence of Cluster
        The clusters, each with a name of its own.
    links : networkx.Graph, optional
        Which clusters are neighbours, by name. Only schedulers that use a graph look at it.
    membership : mapping of cluster name to stays, optional
        When clusters belong to the grid, see `gridsched.systems.dynamic_grid.membership`; always by default.
    changes : sequence of ResourceChange
        Processors that are added and removed.

    Raises
    ------
    ConfigurationError
        If there is no cluster, or two have the same name.
    """

    clusters: Sequence[Cluster]
    links: Any = field(default=None, kw_only=True)
    membership: Mapping[str, Any] | None = field(default=None, kw_only=True)
    changes: Sequence[ResourceChange] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "clusters", tuple(self.clusters))
        if not self.clusters:
            raise ConfigurationError("platform: no clusters; give at least one")
        names = self.names
        if len(set(names)) < len(names):
            raise ConfigurationError(f"clusters are called {', '.join(names)}; give each a name of its own")

    def __len__(self) -> int:
        return len(self.clusters)

    @property
    def names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in self.clusters]

    @property
    def policies(self) -> list[LocalPolicy]:
        """Local policy of each cluster."""
        return [named_policy(cluster.policy) for cluster in self.clusters]

    def with_policy(self, policy: str | LocalPolicy | Sequence[str | LocalPolicy]) -> Platform:
        """The platform with another local policy on all clusters, or on each."""
        given = [policy] * len(self) if isinstance(policy, str | LocalPolicy) else policy
        if len(given) != len(self):
            raise ConfigurationError(
                f"{len(self)} clusters and {len(given)} policies; give one policy for each cluster"
            )
        clusters = [replace(cluster, policy=own) for cluster, own in zip(self.clusters, given, strict=True)]
        return replace(self, clusters=clusters)


def platform_of(platform: Any) -> Platform:
    """Platform of a cluster, of several, of a number of processors; a platform is returned as it is.

    Raises
    ------
    ConfigurationError
        If it is something else.
    """
    if isinstance(platform, Platform):
        return platform
    if isinstance(platform, Cluster):
        return Platform([platform])
    if isinstance(platform, Integral) and not isinstance(platform, bool):
        return Platform([Cluster(processors=int(platform))])
    if isinstance(platform, Sequence) and all(isinstance(each, Cluster) for each in platform):
        return Platform(platform)
    raise ConfigurationError(
        f"platform is {platform!r}; give a Cluster, a sequence of them, a Platform, or a number of processors"
    )

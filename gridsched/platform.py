"""Clusters, and platforms of several: what jobs run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, check_choice, check_number
from gridsched.nodes import (
    Limit,
    NodeEvent,
    NodeType,
    Partition,
    PlacementName,
    RequeueName,
    nodes_with,
)
from gridsched.policies.local import LocalPolicy, named_policy


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A space-shared cluster with a local scheduler.

    Parameters
    ----------
    processors : int
        Processors that jobs can use; of `nodes`, where these are given, it is the sum.
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
    nodes : sequence of NodeType, optional
        Its nodes, where cores, memory and GPUs matter, see `gridsched.nodes`.
    placement : str
        Which nodes jobs get: a key of `gridsched.nodes.PLACEMENTS`.
    partitions : sequence of Partition, optional
        Nodes that jobs may use, by the number in their column `partition_of`. Jobs of another number use the
        first partition.
    partition_of : {"partition", "queue"}
        Column of the workload that names the partition of a job.
    constraints : mapping of int to str, optional
        Features that nodes of jobs must have, by the number in their column `constraint`: names of features
        with `&` (and), `|` (or) and parentheses; of those in brackets, `[a|b]`, all nodes of a job have the
        same; `[a*2&b*1]` asks for so many nodes with each, see `gridsched.nodes.nodes_with`. Jobs of another
        number may have any node.
    limits : sequence of Limit, optional
        What groups of jobs may have at once.
    events : sequence of NodeEvent, optional
        Failures and maintenance. A cluster without `nodes` has nodes of `processors_per_node`, called
        `node0`, `node1` ...
    requeue : {"place", "end", "lost"}
        Treatment of a job whose node fails: it waits again at its place in the queue, or at the end, or
        it is lost.
    checkpoint_interval, checkpoint_cost : int
        Seconds of work between checkpoints (0 for none), and seconds that one takes. A job that is killed
        goes on from its last one.

    Raises
    ------
    ConfigurationError
        If a value is out of range, or the policy unknown.
    """

    processors: int = 0
    processors_per_node: int = 1
    node_exclusive: bool = False
    speed: float = 1.0
    name: str = "cluster"
    policy: str | LocalPolicy = "easy"
    nodes: Sequence[NodeType] = ()
    placement: PlacementName = "first_fit"
    partitions: Sequence[Partition] = ()
    partition_of: Literal["partition", "queue"] = "partition"
    constraints: Mapping[int, str] = field(default_factory=dict, hash=False)
    limits: Sequence[Limit] = ()
    events: Sequence[NodeEvent] = ()
    requeue: RequeueName = "place"
    checkpoint_interval: int = 0
    checkpoint_cost: int = 0

    def __post_init__(self) -> None:
        named_policy(self.policy)
        for key in ("nodes", "partitions", "limits", "events"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        self._add_up_nodes()
        check_number(f"cluster {self.name}: processors", self.processors, least=1)
        if self.processors_per_node < 1 or self.processors % self.processors_per_node:
            raise ConfigurationError(
                f"cluster {self.name}: {self.processors} processors are not whole nodes of "
                f"{self.processors_per_node}; fix processors or processors_per_node"
            )
        check_number(f"cluster {self.name}: speed", self.speed, above=0)
        self._check_words()
        if self.has_nodes:
            self._check_nodes()

    def _add_up_nodes(self) -> None:
        """Let the processors be those of the nodes, where these are given."""
        total = sum(kind.count * kind.cores for kind in self.nodes)
        if self.nodes and self.processors not in (0, total):
            raise ConfigurationError(
                f"cluster {self.name}: processors is {self.processors}, its nodes have {total}; "
                "give one of the two"
            )
        if self.nodes:
            object.__setattr__(self, "processors", total)

    def _check_nodes(self) -> None:
        """Refuse names that are none, or used twice."""
        names = self.node_names
        if len(set(names)) < len(names):
            raise ConfigurationError(f"cluster {self.name}: two nodes have one name; name the node types")
        known = {*names, *(kind.name for kind in self.nodes)}
        for what, wanted in (
            *((f"partition {each.label}", each.nodes) for each in self.partitions),
            *((f"the event at {each.time} s", [each.node]) for each in self.events if each.node != "*"),
        ):
            unknown = [name for name in wanted if name not in known]
            if unknown:
                raise ConfigurationError(
                    f"cluster {self.name}: {what} names {unknown[0]!r}, which is no node and no node type"
                )
        for text in self.constraints.values():
            nodes_with(text, ())
        numbers = [partition.number for partition in self.partitions]
        if len(set(numbers)) < len(numbers):
            raise ConfigurationError(f"cluster {self.name}: two partitions have one number")

    def _check_words(self) -> None:
        """Refuse words and lengths of time that are none."""
        for key, words in (
            ("placement", get_args(PlacementName)),
            ("requeue", get_args(RequeueName)),
            ("partition_of", ("partition", "queue")),
        ):
            check_choice(f"cluster {self.name}: {key}", getattr(self, key), words)
        for key in ("checkpoint_interval", "checkpoint_cost"):
            check_number(f"cluster {self.name}: {key}", getattr(self, key), least=0)

    @property
    def has_nodes(self) -> bool:
        """Whether it matters which nodes jobs run on."""
        return bool(self.nodes or self.partitions or self.events)

    @property
    def node_types(self) -> tuple[NodeType, ...]:
        """Its nodes; of a cluster that gives only their size, nodes of this size."""
        if self.nodes:
            return tuple(self.nodes)
        size = self.processors_per_node
        return (NodeType(count=self.processors // size, cores=size),)

    @property
    def node_names(self) -> list[str]:
        """Names of its nodes."""
        return [name for kind in self.node_types for name in kind.nodes]

    @property
    def unit(self) -> int:
        """Processors that jobs take at a time: those of a node where a job takes whole nodes, else one."""
        return self.processors_per_node if self.node_exclusive else 1

    def allocation(self, processors: NDArray[Any]) -> NDArray[np.int64]:
        """Processors that the cluster loses to jobs that ask for `processors`."""
        wanted = np.asarray(processors, np.int64)
        return -(-wanted // self.unit) * self.unit

    def duration(self, seconds: NDArray[Any]) -> NDArray[np.int64]:
        """Whole seconds that work of this number of seconds takes on this cluster."""
        return seconds_at(self.speed, seconds)


def seconds_at(
    speed: float | NDArray[np.float64], seconds: NDArray[Any], given: float | NDArray[np.float64] = 1.0
) -> NDArray[np.int64]:
    """Whole seconds that times at the speed `given` take at another speed; unknown ones stay unknown."""
    times = np.asarray(seconds, np.int64)
    with np.errstate(over="ignore"):
        # more than any simulation takes, but still a whole number
        moved = np.ceil(np.minimum(times * given / speed, 2.0**62)).astype(np.int64)
    return np.where((given == speed) | (times <= 0), times, moved)


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

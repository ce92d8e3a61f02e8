"""Clusters: space-shared machines with one local scheduler each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A space-shared machine.

    Parameters
    ----------
    processors : int
        Processors that jobs can use.
    processors_per_node : int
        Processors of one node.
    node_exclusive : bool
        Whether a node runs one job only, so that a job takes whole nodes.
    speed : float
        Speed relative to the machine of the workload: run times and estimates are divided by it and
        rounded up to whole seconds.
    name : str
        Name in results.
    """

    processors: int
    processors_per_node: int = 1
    node_exclusive: bool = False
    speed: float = 1.0
    name: str = "cluster"

    def __post_init__(self) -> None:
        if self.processors < 1:
            raise ConfigurationError(f"cluster {self.name}: processors is {self.processors}; give at least 1")
        if self.processors_per_node < 1 or self.processors % self.processors_per_node:
            raise ConfigurationError(
                f"cluster {self.name}: {self.processors} processors are not whole nodes of "
                f"{self.processors_per_node}; mend processors or processors_per_node"
            )
        if not (np.isfinite(self.speed) and self.speed > 0):
            raise ConfigurationError(f"cluster {self.name}: speed is {self.speed}; give a positive number")

    def allocation(self, processors: NDArray[Any]) -> NDArray[np.int64]:
        """Processors that the cluster loses to jobs that ask for `processors`."""
        wanted = np.asarray(processors, np.int64)
        if not self.node_exclusive:
            return wanted
        return -(-wanted // self.processors_per_node) * self.processors_per_node

    def duration(self, seconds: NDArray[Any]) -> NDArray[np.int64]:
        """Whole seconds that work of so many seconds takes on this cluster."""
        if self.speed == 1.0:
            return np.asarray(seconds, np.int64)
        with np.errstate(over="ignore"):
            lengths = np.asarray(seconds) / self.speed
        # More than any simulation takes, but still a whole number.
        return np.ceil(np.minimum(lengths, 2.0**62)).astype(np.int64)

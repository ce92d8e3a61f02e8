"""The nodes and pods of a cluster with GPUs, from the two tables of the public trace."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.nodes import NodeType
from gridsched.traces import read_gpu_nodes, read_gpu_pods
from gridsched.workloads import Workload

FOLDER = "GRIDSCHED_MULTI_RESOURCE"
"""Environment variable: a folder that has the tables."""

SOURCE = "alibaba/clusterdata, cluster-trace-gpu-v2023"
"""Where the tables are published."""

WHOLE = 1000
"""Parts of a GPU that pods ask for."""

Integers = NDArray[np.int64]


def located(path: str) -> str:
    """The path itself if there is such a file, else the one in the folder that the environment names."""
    folder = os.environ.get(FOLDER)
    elsewhere = Path(folder) / path if folder else Path(path)
    return str(elsewhere) if not Path(path).is_file() and elsewhere.is_file() else path


def check_file(key: str, path: str) -> None:
    """Refuse a table that is not there.

    Raises
    ------
    ConfigurationError
        One line that says where to get it.
    """
    if not Path(located(path)).is_file():
        raise ConfigurationError(
            f"{key}: found {path!r}; there is no such file, seen from {Path.cwd()}: get it from the public "
            f"trace ({SOURCE}) and name its folder in {FOLDER}"
        )


def read_cluster(nodes: str | Path, pods: str | Path) -> tuple[list[NodeType], Workload]:
    """The nodes that have GPUs and all pods, in the order of their files.

    Raises
    ------
    GridschedError
        If a table cannot be read, lacks a column, or no node or no pod has a GPU.
    """
    machines = [node for node in read_gpu_nodes(nodes) if node.gpus]
    if not machines:
        raise ConfigurationError(f"{nodes}: no node has GPUs")
    asked = read_gpu_pods(pods)
    if not gpus_of(asked).any():
        raise ConfigurationError(f"{pods}: no pod asks for GPUs")
    return machines, asked.select(np.argsort(asked.job_number))


def gpus_of(pods: Workload) -> Integers:
    """Thousandths of GPUs that each pod asks for."""
    whole, share = (
        np.zeros(len(pods), np.int64) if column is None else np.maximum(column, 0)
        for column in (pods.requested_gpus, pods.gpu_share)
    )
    return np.asarray(WHOLE * whole + share, np.int64)

"""The nodes and pods of a cluster with GPUs, from the two tables of the public trace."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from gridsched.errors import ConfigurationError

FOLDER = "GRIDSCHED_MULTI_RESOURCE"
"""Environment variable: a folder that has the tables."""

SOURCE = "alibaba/clusterdata, cluster-trace-gpu-v2023"
"""Where the tables are published."""

NODE_COLUMNS = ["sn", "cpu_milli", "memory_mib", "gpu"]
POD_COLUMNS = ["cpu_milli", "memory_mib", "num_gpu", "gpu_milli"]


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


def read_cluster(nodes: str | Path, pods: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of the nodes that have GPUs and of all pods, in the order of their files.

    Returns
    -------
    tuple of DataFrame
        Nodes: sn, cpu_milli, memory_mib, gpu. Pods: cpu_milli, memory_mib, num_gpu, gpu_milli.

    Raises
    ------
    ConfigurationError
        If a table cannot be read, lacks a column, or no node or no pod has a GPU.
    """
    machines, asked = _table(nodes, NODE_COLUMNS), _table(pods, POD_COLUMNS)
    machines = machines[machines["gpu"] > 0]
    if machines.empty:
        raise ConfigurationError(f"{nodes}: no node has GPUs")
    if not (asked["num_gpu"] * asked["gpu_milli"]).sum() > 0:
        raise ConfigurationError(f"{pods}: no pod asks for GPUs")
    return machines, asked


def _table(path: str | Path, columns: list[str]) -> pd.DataFrame:
    """Some columns of a CSV file, all of them known numbers but the names of nodes."""
    try:
        table = pd.read_csv(path, usecols=columns, dtype={name: "int64" for name in columns if name != "sn"})
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{path}: not a table of {', '.join(columns)} ({reason})") from None
    return table

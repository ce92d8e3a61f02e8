"""The stages of a study of placements: one cluster that fills up, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.placements.config import NodeOrderName, PlacementStudy
from gridsched.experiments.placements.trace import WHOLE, gpus_of, read_cluster
from gridsched.nodes import NodeType, PlacementName
from gridsched.platform import Cluster
from gridsched.replication import mean_interval
from gridsched.simulation import simulate
from gridsched.verification import verify
from gridsched.workloads import Workload

Integers = NDArray[np.int64]

STEPS = 100
"""Points of a curve until as many GPUs as the cluster has were asked for."""


# --- runs -----------------------------------------------------------------------------------------


def run_placement(
    placement: PlacementName,
    node_order: NodeOrderName,
    seed: int,
    arrived: float,
    nodes: str | Path,
    pods: str | Path,
    target: str | Path,
) -> None:
    """Fill a cluster with pods, none of which leaves, and see how many of its GPUs become allocated.

    Parameters
    ----------
    placement : str
        Name of `gridsched.nodes.PLACEMENTS`.
    node_order : {"random", "name", "reverse"}
        Order of the nodes.
    seed : int
        Of the pods that are drawn, of a random order of nodes and of a random placement.
    arrived : float
        GPUs that pods ask for, relative to those of the cluster.
    nodes, pods : path
        Tables as of `gridsched.experiments.placements.trace.read_cluster`.
    target : path
        Dataset to write: on `arrived` the share of GPUs that is allocated and that pods wait for, and how
        many pods have arrived and were placed; allocated_full, cluster_nodes and cluster_gpus.
    """
    machines, asked = read_cluster(nodes, pods)
    total = sum(node.gpus for node in machines) * WHOLE
    pods_drawn = draw_pods(asked, arrived * total, seed)
    cluster = Cluster(nodes=ordered(machines, node_order, seed), placement=placement)
    run = simulate(pods_drawn, cluster, "ff", seed=seed)
    verify(run)
    whole = _measured(run["start_time"].values, gpus_of(pods_drawn), total, arrived)
    for name, count in (("nodes", len(machines)), ("gpus", total // WHOLE)):
        whole[f"cluster_{name}"] = ((), count, {"long_name": f"{name} of the cluster", "units": "1"})
    whole.attrs = {"placement": placement, "node_order": node_order, "seed": seed, **results.provenance()}
    files.write(whole, target)


def draw_pods(pods: Workload, enough: float, seed: int) -> Workload:
    """All pods in random order, then others with replacement until they ask for enough GPUs.

    One comes a second, and all end together after the last has come.

    Parameters
    ----------
    pods : Workload
        The pods.
    enough : float
        Thousandths of GPUs; pods of the table all come, even if they ask for more.
    seed : int
        Of what is drawn.
    """
    rng = np.random.default_rng(seed)
    places = rng.permutation(len(pods)).tolist()
    gpus = gpus_of(pods)
    sum_asked = int(gpus.sum())
    while sum_asked < enough:
        place = int(rng.integers(len(pods)))
        places.append(place)
        sum_asked += int(gpus[place])
    arrival = np.arange(len(places))
    stay = 2 * len(places) - arrival
    return pods.select(
        np.array(places, np.int64), name="pods", submit_time=arrival, run_time=stay, requested_time=stay
    )


def ordered(nodes: Sequence[NodeType], node_order: NodeOrderName, seed: int) -> list[NodeType]:
    """Nodes in an order; a random one depends on the seed."""
    if node_order == "random":
        places = pd.Series(range(len(nodes))).sample(frac=1, random_state=seed)
        return [nodes[place] for place in places.tolist()]
    return sorted(nodes, key=lambda node: node.name, reverse=node_order == "reverse")


def _measured(start: Integers, gpus: Integers, total: int, arrived: float) -> xr.Dataset:
    """What is allocated when pods have come that ask for a share of all GPUs, by this share."""
    shares = np.arange(1, int(round(arrived * STEPS, 6)) + 1) / STEPS
    # A pod is placed when it comes or never, since nothing leaves before the last has come
    placed = (start >= 0) & (start <= len(gpus))
    come = np.searchsorted(np.cumsum(gpus), shares * total)
    sum_asked = np.append(0, np.cumsum(gpus))[come]
    allocated = np.append(0, np.cumsum(gpus * placed))[come] / total
    columns = {
        "allocated": (allocated, "share of the GPUs that is allocated"),
        "waiting": (
            sum_asked / total - allocated,
            "GPUs that pods wait for which were not placed, relative to all GPUs",
        ),
        "pods_arrived": (come, "pods that have arrived"),
        "pods_placed": (np.append(0, np.cumsum(placed))[come], "pods that were placed"),
    }
    whole = xr.Dataset(
        {name: ("arrived", data, _meaning(text)) for name, (data, text) in columns.items()},
        coords={"arrived": ("arrived", shares, _meaning("GPUs asked for by then, relative to all GPUs"))},
    )
    text = "share of the GPUs that is allocated when as many as there are were asked for"
    whole["allocated_full"] = ((), float(allocated[STEPS - 1]), _meaning(text))
    return whole


def _meaning(long_name: str) -> dict[str, str]:
    return {"long_name": long_name, "units": "1"}


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_placement_study(
    study: PlacementStudy, runs: Mapping[str, Mapping[str, Sequence[str | Path]]], target: str | Path
) -> None:
    """Put all runs into the dataset of the study.

    Parameters
    ----------
    study : PlacementStudy
        The study.
    runs : mapping of placement to mapping of order of nodes to paths
        Results of `run_placement`, in the order of the replicates.
    target : path
        The dataset: variables of the runs on `placement`, `node_order` and `replicate`.
    """
    read = {
        placement: [_together([results.read(path) for path in paths], "replicate") for paths in each.values()]
        for placement, each in runs.items()
    }
    rows = [_together(parts, "node_order", study.node_orders) for parts in read.values()]
    whole = _together(rows, "placement", study.placements)
    facts = ["cluster_nodes", "cluster_gpus"]
    whole = whole.assign({name: whole[name].isel(placement=0, node_order=0, replicate=0) for name in facts})
    whole.attrs = {
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "configuration_hash": study.checksum(),
        "seed": study.seed,
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


def _together(parts: Sequence[xr.Dataset], dimension: str, labels: Sequence[Any] | None = None) -> xr.Dataset:
    """Parts along a new dimension, with numbers from 0 unless they have labels."""
    index = pd.Index(list(range(len(parts)) if labels is None else labels), name=dimension)
    return xr.concat(parts, dim=index, combine_attrs="drop_conflicts")


def means_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each placement and order of nodes: shares of GPUs and pods when 100 % have arrived."""
    rows = []
    for order in whole["node_order"].values.tolist():
        for placement in whole["placement"].values.tolist():
            part = whole.sel(placement=placement, node_order=order)
            interval = mean_interval(part["allocated_full"].values)
            full = part.isel(arrived=STEPS - 1)
            rows.append(
                {
                    "node_order": order,
                    "placement": placement,
                    "replicates": part.sizes["replicate"],
                    **{side: float(value) for side, value in interval._asdict().items()},
                    "pods_arrived": float(full["pods_arrived"].mean()),
                    "pods_placed": float(full["pods_placed"].mean()),
                }
            )
    return pd.DataFrame(rows)

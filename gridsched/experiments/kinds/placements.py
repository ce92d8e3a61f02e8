"""Studies of placements: how many GPUs of a cluster they leave in pieces that nobody can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.collection import labelled
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import check_located, located
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import Replicates
from gridsched.experiments.tasks import Experiment, OwnFile, Task
from gridsched.nodes import NodeType, Partition, PlacementName
from gridsched.platform import Cluster
from gridsched.presentation.sentences import estimate_text, joined, percent
from gridsched.simulation import simulate
from gridsched.traces import gpu_partitions, read_gpu_nodes, read_gpu_pod_log
from gridsched.validation import Different, Number, PathText, Whole
from gridsched.verification import verify
from gridsched.workloads import Workload

NodeOrderName = Literal["random", "name", "reverse"]
Integers = NDArray[np.int64]

_HERE = "gridsched.experiments.kinds.placements"

SCENARIOS: Mapping[NodeOrderName, str] = {
    "random": "nodes in random order",
    "name": "nodes by name",
    "reverse": "nodes by name, backwards",
}
"""Labels of scenarios, by the order in which schedulers know the nodes."""

STEPS = 100
"""Points of a curve until as many GPUs as the cluster has were asked for."""

_SHOWN_FROM = 0.7
"""Share of the GPUs from which on curves are drawn; before, hardly a pod waits."""

_SHOWN_EVERY = 2
"""Steps between the points that are drawn."""

_BEHIND = 0.01
"""A placement has fallen behind once pods wait for so many of the GPUs, by the lower bound of the mean."""


class PlacementStudy(Study):
    """A study of placements: shares of the GPUs of a cluster that they allocate while pods keep arriving."""

    refuses = dict.fromkeys(
        VARYING,
        "pods are drawn anew in each replicate, one after the other, without times of submission",
    )

    kind: Literal["placements"]
    """What is studied."""
    nodes: PathText = "openb_node_list_all_node.csv.gz"
    """Table of the nodes, as CSV; those without GPUs are left out. Its path, or its name in the folder that
    the environment variable `GRIDSCHED_MULTI_RESOURCE` names."""
    pods: PathText = "openb_pod_list_default.csv.gz"
    """Table of the pods, likewise."""
    placements: Annotated[tuple[PlacementName, ...], Field(min_length=1), Different] = (
        "random",
        "dot_product",
        "clustered",
        "packed",
        "best_fit",
        "fragments",
    )
    """Placements that are compared."""
    node_orders: Annotated[tuple[NodeOrderName, ...], Field(min_length=1), Different] = ("random",)
    """Orders in which schedulers know the nodes: another random one in each replicate, by name, or by name
    backwards. Where a placement scores several nodes alike, the first of them is taken."""
    replicates: Replicates = 10
    """How often pods, and random orders of nodes, are drawn."""
    arrived: Annotated[Number, Field(ge=1, le=10)] = 1.3
    """GPUs that pods ask for until the last has arrived, relative to those of the cluster."""
    seed: Annotated[Whole, Field(ge=0, le=2**31)] = 42
    """Seed of the first replicate, whatever that of the configuration; each other one has the next number."""

    def check_files(self) -> None:
        """Refuse tables that are not there."""
        for key in ("nodes", "pods"):
            check_located(key, getattr(self, key), FOLDER, f"from the public trace ({SOURCE})")

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study, which has a seed of its own."""
        return self.collected(
            {
                "runs": [
                    self._run(order, placement, number)
                    for order, placement, number in product(
                        self.node_orders, self.placements, range(self.replicates)
                    )
                ],
                "labels": {
                    "scenario": [SCENARIOS[order] for order in self.node_orders],
                    "scheduler": [label_of(placement) for placement in self.placements],
                    "estimates": ["requested"],
                },
                "attributes": self.described(reference=label_of(self.placements[0]), seed=self.seed),
            }
        )

    def _run(self, node_order: NodeOrderName, placement: PlacementName, number: int) -> Task:
        """One replicate under a placement."""
        scenario, scheduler = SCENARIOS[node_order], label_of(placement)
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{scenario}, {scheduler}, replicate {number}",
            function=f"{_HERE}:run_placement",
            arguments={
                "placement": placement,
                "node_order": node_order,
                "replicate": number,
                "seed": self.seed + number,
                "arrived": self.arrived,
                "nodes": OwnFile(located(self.nodes, FOLDER)),
                "pods": OwnFile(located(self.pods, FOLDER)),
            },
            labels={"scenario": scenario, "scheduler": scheduler, "replicate": number},
            cost=6.0 if placement == "fragments" else 1.0,
        )

    @property
    def specifications(self) -> list[Specification]:
        """Placements compared, the effect of the order of nodes, and pods that wait for GPUs."""
        steps = range(round(_SHOWN_FROM * STEPS), int(round(self.arrived * STEPS, 6)) + 1, _SHOWN_EVERY)
        ranking: dict[str, Any] = {
            "form": "ranking",
            "measures": ("allocated_full",),
            "relation": "difference",
        }
        orders = Specification(
            name="node-orders",
            title="Effect of the order of nodes",
            **ranking,
            facets="baseline",
            lanes="scenario",
            reference="scenario",
            finding=f"{_HERE}:order_effects",
        )
        return [
            Specification(
                name="ranking",
                title="GPUs allocated when 100 % have been requested",
                **ranking,
                caption="The rest is free, but in pieces or on nodes that no waiting pod can use.",
            ),
            *([orders] if {"random"} < set(self.node_orders) else []),
            Specification(
                name="waiting",
                form="response",
                title="GPUs that pods wait for",
                measures=("waiting",),
                x="arrived",
                reference="",
                where={"arrived": [step / STEPS for step in steps]},
                caption="Arrived: GPUs requested so far, relative to those of the cluster.",
                finding=f"{_HERE}:falling_behind",
            ),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How placements were simulated: a sentence each."""
        nodes, gpus = (int(dataset[f"cluster_{name}"].values[0]) for name in ("nodes", "gpus"))
        pods = dataset["pods_arrived"].isel(arrived=-1)
        return [
            f"{nodes:,} nodes with {gpus:,} GPUs; {int(pods.min()):,} to {int(pods.max()):,} pods in each of "
            f"{dataset.sizes['replicate']} replicates, the same for all placements.",
            "A pod arrives every second and none ends: one without a place waits, and smaller ones pass it.",
            "Where a placement scores nodes equally, the first of them is taken.",
            f"Nodes and pods: {SOURCE}, unless the study names other tables.",
        ]


def label_of(placement: str) -> str:
    """Label of a placement."""
    return placement.replace("_", " ")


def order_effects(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """Under which placements another order of nodes changes significantly what is allocated."""
    lines = []
    for scenario, part in numbers[numbers["scenario"] != numbers["baseline"]].groupby("scenario", sort=False):
        effects = [
            f"{row['scheduler']} ({estimate_text(row, share=True, of='difference')})"
            for row in part[part["significant"] != 0].to_dict("records")
        ]
        lines.append(
            f"With {scenario} instead of in random order, the share of GPUs allocated changes significantly "
            f"under {joined(effects) or 'no placement'}."
        )
    return lines


def falling_behind(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """From which share of the GPUs on pods wait, under the first placement to fall behind and the last."""
    lines = []
    for scenario, part in numbers[numbers["low"] > _BEHIND].groupby("scenario", sort=False):
        when = part.groupby("scheduler", sort=False)["arrived"].min().sort_values(kind="stable")
        last = f", under {when.index[-1]} once {percent(when.iloc[-1])} are" if len(when) > 1 else ""
        lines.append(
            f"{str(scenario).capitalize()}: under {when.index[0]} pods wait for {percent(_BEHIND)} of "
            f"the GPUs once {percent(when.iloc[0])} are requested{last}."
        )
    return lines or [f"Pods wait for less than {percent(_BEHIND)} of the GPUs."]


# --- runs -----------------------------------------------------------------------------------------


def run_placement(
    placement: PlacementName,
    node_order: NodeOrderName,
    replicate: int,
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
    replicate : int
        Number of the replicate.
    seed : int
        Of the pods that are drawn, of a random order of nodes and of a random placement.
    arrived : float
        GPUs that pods ask for, relative to those of the cluster.
    nodes, pods : path
        Tables as of `read_cluster`.
    target : path
        Measures to write: `allocated_full`, and on `arrived` the share of GPUs that is allocated and that
        pods wait for, and how many pods have arrived and were placed.
    """
    machines, partitions, asked = read_cluster(nodes, pods)
    total = sum(node.gpus for node in machines) * WHOLE
    pods_drawn = draw_pods(asked, arrived * total, seed)
    in_order = ordered(machines, node_order, seed)
    cluster = Cluster(nodes=in_order, partitions=partitions, placement=placement)
    run = simulate(pods_drawn, cluster, "ff", seed=seed)
    verify(run)
    made = labelled(
        _measured(run["start_time"].values, gpus_of(pods_drawn), total, arrived),
        scenario=SCENARIOS[node_order],
        scheduler=label_of(placement),
        replicate=replicate,
        scenario_parameters={
            "node_order": node_order,
            "baseline": SCENARIOS["random"],
            "cluster_nodes": len(machines),
            "cluster_gpus": total // WHOLE,
        },
    )
    files.write(made, target)


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
        places.append(int(rng.integers(len(pods))))
        sum_asked += int(gpus[places[-1]])
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
    return xr.Dataset(
        {
            "allocated_full": float(allocated[STEPS - 1]),
            "allocated": ("arrived", allocated),
            "waiting": ("arrived", sum_asked / total - allocated),
            "pods_arrived": ("arrived", come),
            "pods_placed": ("arrived", np.append(0, np.cumsum(placed))[come]),
        },
        {"arrived": shares},
    )


# --- the trace ------------------------------------------------------------------------------------

FOLDER = "GRIDSCHED_MULTI_RESOURCE"
"""Environment variable: a folder that has the tables."""

SOURCE = "alibaba/clusterdata, cluster-trace-gpu-v2023"
"""Where the tables are published."""

WHOLE = 1000
"""Parts of a GPU that pods ask for."""


def read_cluster(nodes: str | Path, pods: str | Path) -> tuple[list[NodeType], Sequence[Partition], Workload]:
    """The nodes that have GPUs and all pods, in the order of their files, and between them partitions.

    These are the nodes whose models of GPUs some pods may use; there are none where no pod names a model.

    Raises
    ------
    GridschedError
        If a table cannot be read, lacks a column, or no node or no pod has a GPU.
    """
    machines = [node for node in read_gpu_nodes(nodes) if node.gpus]
    if not machines:
        raise ConfigurationError(f"{nodes}: no node has GPUs")
    log = read_gpu_pod_log(pods)
    asked, models = log.workload, log.names["partition"]
    if not gpus_of(asked).any():
        raise ConfigurationError(f"{pods}: no pod asks for GPUs")
    names = {node.name for node in machines}
    partitions = [
        replace(each, nodes=[name for name in each.nodes if name in names])
        for each in (gpu_partitions(nodes, models) if len(models) > 1 else ())
    ]
    for each in partitions:
        if each.name and not each.nodes:
            raise ConfigurationError(f"{nodes}: no node of the models {each.name} of {pods} has GPUs")
    return machines, partitions, asked.select(np.argsort(asked.job_number))


def gpus_of(pods: Workload) -> Integers:
    """Thousandths of GPUs that each pod asks for."""
    whole, share = (
        np.zeros(len(pods), np.int64) if column is None else np.maximum(column, 0)
        for column in (pods.requested_gpus, pods.gpu_share)
    )
    return np.asarray(WHOLE * whole + share, np.int64)

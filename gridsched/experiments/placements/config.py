"""What studies of placements are made of: a table of nodes, one of pods, placements, orders of nodes."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.placements.trace import check_file, located
from gridsched.experiments.study import Replicates
from gridsched.experiments.tasks import Experiment, OwnFile, StudyTable, Task
from gridsched.experiments.validation import Number, PathText, Whole, unique
from gridsched.nodes import PlacementName

NodeOrderName = Literal["random", "name", "reverse"]

_STAGES = "gridsched.experiments.placements.stages"


class PlacementStudy(Study):
    """A study of placements: shares of the GPUs of a cluster that they allocate while pods keep arriving."""

    catalogue = "gridsched.experiments.placements.figures:PLACEMENT_FIGURES"
    figures = ("placement_shares", "placement_curves")
    view = "gridsched.experiments.placements.report:placements_view"
    main_figure = "placement_shares"
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
    placements: Annotated[tuple[PlacementName, ...], Field(min_length=1)] = (
        "random",
        "dot_product",
        "clustered",
        "packed",
        "best_fit",
        "fragments",
    )
    """Placements that are compared."""
    node_orders: Annotated[tuple[NodeOrderName, ...], Field(min_length=1)] = ("random",)
    """Orders in which schedulers know the nodes: another random one in each replicate, by name, or by name
    backwards. Where a placement scores several nodes alike, the first of them is taken."""
    replicates: Replicates = 10
    """How often pods, and random orders of nodes, are drawn."""
    arrived: Annotated[Number, Field(ge=1, le=10)] = 1.3
    """GPUs that pods ask for until the last has arrived, relative to those of the cluster."""
    seed: Annotated[Whole, Field(ge=0, le=2**31)] = 42
    """Seed of the first replicate, whatever that of the configuration; each other one has the next number."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique("placements", list(self.placements))
        unique("node_orders", list(self.node_orders))
        return self

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study: pods are none."""
        return ()

    def check_files(self) -> None:
        """Refuse tables that are not there."""
        check_file("nodes", self.nodes)
        check_file("pods", self.pods)

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study, which has a seed of its own."""
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function=f"{_STAGES}:aggregate_placement_study",
            arguments={
                "study": self.values(),
                "runs": {
                    placement: {
                        order: [self._run(placement, order, number) for number in range(self.replicates)]
                        for order in self.node_orders
                    }
                    for placement in self.placements
                },
            },
        )
        return Experiment(
            datasets=[study],
            figures=self.drawn(study),
            tables=[StudyTable("means", f"{_STAGES}:means_table", "placement_means")],
        )

    def _run(self, placement: PlacementName, node_order: NodeOrderName, number: int) -> Task:
        """One replicate under a placement."""
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{placement}, {node_order} order, replicate {number}",
            function=f"{_STAGES}:run_placement",
            arguments={
                "placement": placement,
                "node_order": node_order,
                "seed": self.seed + number,
                "arrived": self.arrived,
                "nodes": OwnFile(located(self.nodes)),
                "pods": OwnFile(located(self.pods)),
            },
            labels={"placement": placement, "node_order": node_order, "replicate": number},
            cost=6.0 if placement == "fragments" else 1.0,
        )

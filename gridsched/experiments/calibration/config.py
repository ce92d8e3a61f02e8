"""What studies of calibration are made of: logs, layers, rungs of the fit."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from gridsched.calibration.fitting import RUNGS
from gridsched.experiments.config import Study
from gridsched.experiments.inputs import expected_jobs, log_of, plain
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.experiments.validation import Count, unique

LayerName = Literal[
    "queues",
    "shares",
    "limits",
    "calendar",
    "outages",
    "holds",
    "fair share",
    "processors",
    "order",
    "draining",
]

_STAGES = "gridsched.experiments.calibration.stages"


class CalibrationStudy(Study):
    """A study of calibration: layers of a present policy, fitted on one half of logs, judged on the other."""

    view = "gridsched.experiments.calibration.report:calibration_view"
    main_figure = "calibration_overview"

    kind: Literal["calibration"]
    """What is studied."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1)]
    """The logs."""
    layers: Annotated[tuple[LayerName, ...], Field(min_length=1)] = get_args(LayerName)
    """Layers that are fitted, each alone and all together."""
    batches: Annotated[Count, Field(le=64)] = 4
    """Tasks among which the candidates of each rung are divided."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique("workloads", [workload.name for workload in self.workloads])
        unique("layers", list(self.layers))
        for workload in self.workloads:
            if not workload.is_log:
                raise ValueError(
                    f"workloads: {workload.name}: only a log (archive or file) has recorded waits"
                )
            if workload.nodes or workload.failures is not None:
                raise ValueError(
                    f"workloads: {workload.name}: nodes and failures are not fitted; leave them out"
                )
        return self

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return self.workloads

    @property
    def study_figures(self) -> list[str]:
        """Figures of the study: one of all logs, one of each."""
        return ["calibration_overview", *(f"calibration_layers-{each.name}" for each in self.workloads)]

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; candidates are drawn from the seed."""
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function=f"{_STAGES}:aggregate_calibration_study",
            arguments={
                "study": self.values(),
                "judged": {workload.name: self._judged(workload, seed) for workload in self.workloads},
            },
        )
        catalogue = "gridsched.experiments.calibration.figures:CALIBRATION_FIGURES"
        figures = [
            Figure(
                name=name,
                catalogue=catalogue,
                dataset=study,
                parameters={"workload": name.partition("-")[2]} if "-" in name else {},
                title=name.partition("-")[2],
            )
            for name in self.study_figures
        ]
        return Experiment(
            datasets=[study],
            figures=figures,
            tables=[StudyTable("layers", f"{_STAGES}:layers_table", "calibration_layers_table")],
        )

    def _judged(self, workload: WorkloadConfig, seed: int) -> Task:
        """What the layers of a log explain, alone and together."""
        size = expected_jobs(workload) / 100_000
        site = Task(
            stage="prepare",
            study=self.name,
            name=f"site {workload.name}",
            function=f"{_STAGES}:prepare_site",
            arguments={"workload": plain(workload), "log": log_of(workload)},
            cost=1 + 2 * size,
        )
        alone = {
            layer: Task(
                stage="simulate",
                study=self.name,
                name=f"{workload.name}, {layer} alone",
                function=f"{_STAGES}:fit_one_layer",
                arguments={"site": site, "layer": layer, "seed": seed},
                labels={"workload": workload.name, "layers": layer},
                cost=1 + 10 * size,
            )
            for layer in self.layers
        }
        before: list[Task] = []
        for number, rung in enumerate(RUNGS):
            before = [
                Task(
                    stage="simulate",
                    study=self.name,
                    name=f"{workload.name}, all layers, rung {number}, batch {batch}",
                    function=f"{_STAGES}:fit_batch",
                    arguments={
                        "site": site,
                        "layers": list(self.layers),
                        "number": number,
                        "batch": batch,
                        "batches": self.batches,
                        "seed": seed,
                        "before": before,
                    },
                    labels={"workload": workload.name, "layers": "all", "rung": number, "batch": batch},
                    cost=1 + rung.part * (rung.kept + rung.made) / self.batches * size,
                )
                for batch in range(self.batches)
            ]
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{workload.name}, judged",
            function=f"{_STAGES}:judge",
            arguments={"site": site, "alone": alone, "together": before, "seed": seed},
            labels={"workload": workload.name, "layers": "judged"},
            cost=2 + 40 * size,
        )

"""What studies of calibration are made of: logs, layers, rungs of the fit."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from gridsched.calibration.fitting import USUAL
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import expected_jobs, log_of, plain
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.experiments.validation import Count, unique

LayerName = Literal[
    "queues",
    "shares",
    "pools",
    "limits",
    "idle jobs",
    "calendar",
    "outages",
    "holds",
    "idle waits",
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
    refuses = dict.fromkeys(
        VARYING, "layers are fitted to the waits that were recorded, which other submissions do not have"
    )

    kind: Literal["calibration"]
    """What is studied."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1)]
    """The logs."""
    layers: Annotated[tuple[LayerName, ...], Field(min_length=1)] = get_args(LayerName)
    """Layers that are tried, each alone, and then one after the other."""
    batches: Annotated[Count, Field(le=64)] = 2
    """Tasks among which the layers of each round are divided."""
    reverse: bool = True
    """Whether the second half is fitted too, and judged on the first: does a fit carry over either way?"""

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

    @property
    def fitted_halves(self) -> tuple[str, ...]:
        """Halves that are fitted."""
        return ("first", "second") if self.reverse else ("first",)

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
        fitted = {half: self._rounds(workload, site, half, seed, size) for half in self.fitted_halves}
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{workload.name}, judged",
            function=f"{_STAGES}:judge",
            arguments={"site": site, "fitted": fitted, "seed": seed},
            labels={"workload": workload.name, "layers": "judged"},
            cost=2 + 40 * size,
        )

    def _rounds(
        self, workload: WorkloadConfig, site: Task, half: str, seed: int, size: float
    ) -> list[list[Task]]:
        """Tasks of each round of a fit."""
        rounds: list[list[Task]] = []
        for number in range(USUAL.rounds):
            rounds.append(
                [
                    Task(
                        stage="simulate",
                        study=self.name,
                        name=f"{workload.name}, {half} half, round {number}, batch {batch}",
                        function=f"{_STAGES}:fit_round",
                        arguments={
                            "site": site,
                            "layers": list(self.layers),
                            "half": half,
                            "batch": batch,
                            "batches": self.batches,
                            "seed": seed,
                            "before": list(rounds),
                        },
                        labels={"workload": workload.name, "half": half, "round": number, "batch": batch},
                        cost=1 + (100 if number == 0 else 40) / self.batches * size,
                    )
                    for batch in range(self.batches)
                ]
            )
        return rounds

"""Studies of workload models: a log fitted by size classes, beside the published fit of its machine."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import expected_jobs, log_of
from gridsched.experiments.parts import MachineName, WorkloadConfig
from gridsched.experiments.tasks import Experiment, StudyTable, Task


class ModelStudy(Study):
    """A study of workload models: a log fitted by size classes, beside the published fit of its machine."""

    catalogue = "gridsched.experiments.models.figures:MODEL_FIGURES"
    figures = ("model_shares", "model_quantiles", "size_spread")
    view = "gridsched.experiments.models.report:models_view"
    refuses = dict.fromkeys(VARYING, "the models are fitted to the log as it is")

    kind: Literal["workload-models"]
    """What is studied."""
    workload: WorkloadConfig
    """The log."""
    machine: MachineName = "M3"
    """Machine of `resources/superscheduler.yaml` whose published models stand beside it."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.workload.is_log:
            raise ValueError("workload: only a log (archive or file) can be fitted")
        return self

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return (self.workload,)

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; nothing of it is drawn at random."""
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function="gridsched.experiments.models.stages:aggregate_model_study",
            arguments={"study": self.values(), "log": log_of(self.workload)},
            cost=5 + expected_jobs(self.workload) / 5_000,
        )
        return Experiment(
            datasets=[study],
            figures=self.drawn(study),
            tables=[
                StudyTable("table_four", "gridsched.workloads.model_comparison:table_four", "table_four")
            ],
        )

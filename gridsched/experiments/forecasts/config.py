"""What studies of forecasts are made of: logs, what counts as truth, a policy, how many forecasts."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import prepared_workload
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.tasks import Experiment, StudyTable, Task
from gridsched.experiments.validation import Count, unique
from gridsched.policies.local import POLICIES

TruthName = Literal["simulated", "recorded"]

_STAGES = "gridsched.experiments.forecasts.stages"


class ForecastStudy(Study):
    """A study of forecasts: how many jobs start in the interval that was told, and how wide it is."""

    catalogue = "gridsched.experiments.forecasts.figures:FORECAST_FIGURES"
    figures = ("forecast_coverage", "forecast_horizons")
    view = "gridsched.experiments.forecasts.report:forecasts_view"
    main_figure = "forecast_coverage"
    refuses = dict.fromkeys(
        VARYING, "forecasts are judged by the starts of the jobs of a log, or of a replay of it as it is"
    )

    kind: Literal["forecast"]
    """What is studied."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1)]
    """The logs."""
    truths: Annotated[tuple[TruthName, ...], Field(min_length=1)] = ("simulated", "recorded")
    """What is forecast: the simulation of the log under the policy, or the starts that the log has recorded,
    of whose policy nothing is known."""
    policy: str = "easy"
    """Local policy of the futures, and of simulated truth."""
    calibrate: bool = False
    """Whether the futures of recorded starts go on under a present policy that is fitted to the first half of
    each log, see docs/calibration.md, in place of `policy`."""
    instants: Annotated[Count, Field(ge=20)] = 300
    """Times at which jobs that wait are forecast, drawn evenly over the time in which somebody waits."""
    jobs: Count = 8
    """Most jobs that are forecast at one time, drawn among those that wait."""
    futures: Annotated[Count, Field(ge=9)] = 100
    """Simulated futures of each forecast."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique("workloads", [workload.name for workload in self.workloads])
        unique("truths", list(self.truths))
        if self.policy not in POLICIES:
            raise ValueError(f"policy: found {self.policy!r}; use one of {', '.join(POLICIES)}")
        if self.calibrate and self.truths != ("recorded",):
            raise ValueError("calibrate: only recorded starts have a policy to be fitted; truths: [recorded]")
        for workload in self.workloads:
            if "recorded" in self.truths and not workload.is_log:
                raise ValueError(f"workloads: {workload.name}: only a log has recorded starts")
        return self

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return self.workloads

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        workloads = {each.name: prepared_workload(self.name, each, seed) for each in self.workloads}
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function=f"{_STAGES}:aggregate_forecast_study",
            arguments={
                "study": self.values(),
                "runs": {
                    name: [self._run(name, truth, task, seed) for truth in self.truths]
                    for name, task in workloads.items()
                },
            },
        )
        return Experiment(
            datasets=[study],
            figures=self.drawn(study),
            tables=[StudyTable("coverage", f"{_STAGES}:coverage_table", "forecast_coverages")],
        )

    def _run(self, name: str, truth: TruthName, workload: Task, seed: int) -> Task:
        """All forecasts of one log and truth."""
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{name}, {truth} starts",
            function=f"{_STAGES}:run_forecasts",
            arguments={
                "workload": workload,
                "truth": truth,
                "policy": self.policy,
                "calibrated": self.calibrate,
                "instants": self.instants,
                "jobs": self.jobs,
                "futures": self.futures,
                "seed": seed,
            },
            labels={"workload": name, "truth": truth},
            cost=(5 if self.calibrate else 1) * self.instants * self.futures / 2000,
        )

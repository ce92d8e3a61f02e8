"""What studies of self-scheduling are made of: readings of the platform, and how run times are predicted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, PrivateAttr, StrictBool, model_validator

from gridsched.errors import GridschedError
from gridsched.experiments.config import VARYING
from gridsched.experiments.derived import part_model
from gridsched.experiments.inputs import event_files, failure_seed, prepared_workload
from gridsched.experiments.parts import (
    ClusterConfig,
    FailuresConfig,
    ScenarioChoice,
    Window,
    WorkloadConfig,
    label_of,
)
from gridsched.experiments.schedulers import Written, scheduler_made, scheduler_models
from gridsched.experiments.study import SchedulerStudy, function_files
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.experiments.validation import ConfigModel, Label, PathText, Whole, suggestion, unique
from gridsched.prediction.options import PredictorOptions
from gridsched.systems.jscheduler.centres import (
    Centre,
    CentrePlatform,
    Factor,
    PolicyName,
    Reading,
    Resources,
    check_size,
    load_platform,
)
from gridsched.systems.jscheduler.measures import SlowdownOptions

PREDICTION_FIGURES: tuple[str, ...] = ("prediction_quality", "prediction_intervals")
"""Figures of how good predictions are."""

_STUDY = "gridsched.systems.jscheduler.study"


RuntimeEstimate = Literal["predicted", "requested", "actual", "retrained"]
"""Runtime estimates of the schedulers."""

Weights = Literal["jobs", "centres", "work", "light"]
"""How jobs are weighted in means over all of them."""

RuntimeEstimates = Annotated[tuple[RuntimeEstimate, ...], Field(min_length=1)]


_AS_RECORDED = (
    "trees learn from each log as it ends on its own centre, and jobs are compared with those there; use a "
    "study of kind arena, which runs jscheduler on clusters of any logs"
)


class ReadingConfig(ScenarioChoice):
    """The platform under one reading of its CPU factors, and what runs there."""

    factor: Reading = "multiply"
    """What a cluster's CPU factor does to run times: multiply or divide them, or nothing."""
    original_factor: Reading | None = None
    """The same in the original scenario; by default as on the grid."""
    failures: FailuresConfig | None = None
    """Failures of the nodes of all clusters; each of their processors is a node. The same nodes fail at the
    same times in the original scenario. Events of a file happen to each cluster, by a clock that shows 0 when
    the first jobs are submitted."""
    # Models are frozen, so a narrower type than the base's is safe; mypy takes fields for writable.
    estimates: RuntimeEstimates | None = None  # type: ignore[assignment]
    """Runtime estimates of the schedulers here; by default as the study says."""

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> Self:
        if self.failures is not None and self.failures.requeue == "lost":
            raise ValueError(
                "failures.requeue: found 'lost'; runs are compared by jobs that end in all of them, use "
                "'place' or 'end'"
            )
        return self

    @property
    def machines(self) -> Sequence[ClusterConfig]:
        """What is configured of each cluster."""
        return (ClusterConfig(name="all", failures=self.failures),)

    @property
    def case(self) -> str:
        """Label of the platform: the reading of its CPU factors, and the scenario where nodes fail."""
        at_home = "" if self.at_home == self.factor else f", {self.at_home} at home"
        return f"{self.factor}{at_home}" if self.failures is None else f"{self.factor}{at_home}, {self.name}"

    @property
    def at_home(self) -> Reading:
        """What a CPU factor does to run times in the original scenario."""
        return self.original_factor or self.factor

    def alone(self) -> Self:
        """What a run depends on: the name only where it is part of the case."""
        name = "any" if self.failures is None else self.name
        return type(self)(
            name=name, factor=self.factor, original_factor=self.original_factor, failures=self.failures
        )


@dataclass(frozen=True)
class JSchedulerRun:
    """A scheduler on the platform under some estimates.

    Parameters
    ----------
    case : str
        Label of the platform, see `ReadingConfig.case`.
    estimates : str
        Runtime estimates of the schedulers.
    scheduler : str
        Its label.
    """

    case: str
    estimates: RuntimeEstimate
    scheduler: str

    @property
    def title(self) -> str:
        """Name for people."""
        return f"factor {self.case}, {self.scheduler}, {self.estimates} run times"


_ANYTHING = scheduler_models()["jscheduler"].model_validate(
    {"name": "any", "scheduler": "jscheduler", "k": 1}
)
"""A scheduler for stages that depend on none."""

PredictorConfig: Any = part_model(PredictorOptions)
"""How run times are predicted."""


SlowdownConfig: Any = part_model(SlowdownOptions)
"""What slowdowns are relative to."""


class RowConfig(ConfigModel):
    """What is different of a centre."""

    resources: Resources | None = None
    """How many clusters, and processors of each; several pairs where they differ."""
    factor: Factor | None = None
    """CPU factor of all clusters."""
    policy: PolicyName | None = None
    """Local policy of all clusters, by name."""

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        check_size(self.resources or ())
        return self


class SelfSchedulingStudy(SchedulerStudy):
    """A study of self-scheduling: jobs choose among clusters; against every log on its own centre."""

    catalogue = "gridsched.systems.jscheduler.figures:SELF_SCHEDULING_FIGURES"
    view = "gridsched.systems.jscheduler.report:self_scheduling_view"
    main_figure = "improvement_bounded_slowdown"
    refuses: ClassVar[Mapping[str, str]] = dict.fromkeys(VARYING, _AS_RECORDED)

    kind: Literal["self-scheduling"]
    """What is studied."""
    platform: PathText | None = None
    """Path of a platform file of one's own; by default the platform of `resources/jscheduler.yaml`."""
    rows: dict[Label, RowConfig] = Field({})
    """By name of a centre, what is different from its row in the platform."""
    logs: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Names of the centres whose logs are merged; by default all that have one."""
    align: Literal["start", "clock"] = "start"
    """Whether the first jobs of all logs are submitted at the same time, or each when its clock says."""
    leave_out_status: tuple[Annotated[Whole, Field(ge=-1, le=5)], ...] = ()
    """SWF status codes of jobs that are left out of all logs (0 failed, 5 cancelled)."""
    window: Window | None = Window(first_months=8)
    """Part of each log that is used; null for whole logs."""
    scenarios: Annotated[tuple[ReadingConfig, ...], Field(min_length=1)]
    """The scenarios: readings of the CPU factor, which may choose among schedulers and estimates."""
    # as above: models are frozen
    estimates: RuntimeEstimates = ("predicted",)  # type: ignore[assignment]
    """Runtime estimates of the schedulers: what a classification tree predicts, requested times, actual run
    times, or `retrained`, predictions of trees that learn from what finishes in the run itself. Otherwise
    they learn from each log on its own centre."""
    predictor: PredictorConfig = PredictorConfig()
    """How run times are predicted."""
    weights: Weights = "jobs"
    """How jobs count in means over all of them, and in sums by week: all alike; so that each centre counts as
    much as the others; by processors x run time in the log; or alike, and those of overloaded centres not at
    all."""
    slowdowns: SlowdownConfig = SlowdownConfig()
    """What slowdowns are relative to."""
    evaluate: StrictBool = False
    """Whether predictions are compared with those of other methods, log by log, which takes long."""
    _platform: CentrePlatform = PrivateAttr()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        try:
            platform = load_platform(self.platform)
        except GridschedError as error:
            raise ValueError(f"platform: {error}") from None
        try:
            self._platform = platform.changed(
                {
                    name: {key: value for key, value in row if value is not None}
                    for name, row in self.rows.items()
                }
            )
        except GridschedError as error:
            raise ValueError(f"rows: {error}") from None
        if self.align == "clock" and any(scenario.failures is not None for scenario in self.scenarios):
            raise ValueError(
                "align, failures: failures begin with the first job of all logs; use align: start"
            )
        self._check_logs()
        resources = self.resource_count
        for scheduler in self.schedulers:
            made: Any = scheduler_made(scheduler)
            if made.system != "jscheduler":
                raise ValueError(
                    f"schedulers: {label_of(scheduler)!r} lets no job choose; give the scheduler jscheduler"
                )
            if made.k > resources:
                raise ValueError(
                    f"schedulers[{label_of(scheduler)}].k: found {made.k}; the platform has {resources} "
                    f"resources, use 1 to {resources}"
                )
        return self

    def _check_logs(self) -> None:
        absent = {centre.name: centre.absent for centre in self._platform.centres}
        usable = [name for name, reason in absent.items() if not reason]
        if not usable:
            raise ValueError("platform: no centre has a log that can be used; give log or file to one")
        unique("logs", list(self.logs or ()))
        for name in self.logs or ():
            if name not in usable:
                reason = absent.get(name, "the platform has no such centre")
                raise ValueError(
                    f"logs: no log of {name!r} can be used: {reason}; {suggestion(name, usable)}"
                )

    @property
    def grid(self) -> CentrePlatform:
        """The platform."""
        return self._platform

    @property
    def resource_count(self) -> int:
        """Number of clusters of the platform."""
        return sum(number for centre in self._platform.centres for number, _ in centre.resources)

    @property
    def centres(self) -> tuple[Centre, ...]:
        """Centres whose logs are used, in the order of the platform."""
        return tuple(
            centre
            for centre in self._platform.centres
            if not centre.absent and (self.logs is None or centre.name in self.logs)
        )

    @property
    def cases(self) -> dict[str, ReadingConfig]:
        """Scenarios in which the platform differs, by `case`; the paper's reading of the factor first."""
        order = get_args(Reading)
        cases: dict[str, ReadingConfig] = {}
        for scenario in sorted(
            self.scenarios, key=lambda each: (order.index(each.factor), each.at_home != each.factor)
        ):
            cases.setdefault(scenario.case, scenario)
        return cases

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return tuple(self._workload(centre) for centre in self.centres)

    def _workload(self, centre: Centre) -> WorkloadConfig:
        """Log of a centre with all jobs that its own machine could hold, whatever its size on this platform.

        The header of a log of one's own may not say how large its machine is, so all jobs stay that the whole
        platform could hold.
        """
        everything = sum(number * size for each in self._platform.centres for number, size in each.resources)
        return WorkloadConfig(
            name=centre.name,
            archive=centre.log,
            file=centre.file,
            window=self.window,
            leave_out_status=self.leave_out_status,
            processors=everything if centre.file is not None else None,
        )

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        return f"{self.platform}: centres[{workload.name}]"

    def checksum(self) -> str:
        """SHA-256 of everything the study and its platform say."""
        return hashlib.sha256(f"{super().checksum()}\n{self._platform!r}".encode()).hexdigest()

    def machines(self, *names: str) -> list[dict[str, Any]]:
        """What simulations depend on of all centres, or of some, as plain values."""
        keys = ("name", "resources", "factor", "policy")
        return [
            {key: getattr(centre, key) for key in keys}
            for centre in self._platform.centres
            if not names or centre.name in names
        ]

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        workloads = {each.name: prepared_workload(self.name, each, seed) for each in self.all_workloads}
        originals = {
            (case, name): self._original(case, name, workload, seed)
            for case in self.cases
            for name, workload in workloads.items()
        }
        streams = {case: self._stream(case, workloads, originals, seed) for case in self.cases}
        study = self.study_task(
            f"{_STUDY}.aggregation:aggregate_self_scheduling_study",
            arguments={
                "seed": seed,
                "runs": [self._run(run, seed, streams[run.case], workloads) for run in self.runs],
                "streams": streams,
                "workloads": workloads,
            },
            also={"platform": repr(self._platform)},
            memory=2000,
        )
        figures = self.drawn(study)
        datasets = [study]
        if self.evaluate:
            prediction = self._prediction(workloads, originals)
            datasets.append(prediction)
            figures += [
                Figure(
                    name=name,
                    catalogue="gridsched.figures.prediction:PREDICTION_FIGURES",
                    dataset=prediction,
                    part="Predictions",
                )
                for name in PREDICTION_FIGURES
            ]
        return Experiment(
            datasets=datasets,
            figures=figures,
            tables=[
                StudyTable("means", f"{_STUDY}.aggregation:means_table", "self_scheduling_means"),
                StudyTable("table_two", f"{_STUDY}.aggregation:table_two_of", "table_two"),
            ],
        )

    @property
    def runs(self) -> list[JSchedulerRun]:
        """Every run of all scenarios, each once whatever its scheduler is called, by reading."""
        runs: dict[tuple[Any, ...], JSchedulerRun] = {}
        for scenario in self.scenarios:
            for estimates, label in product(self._runtime_estimates(scenario), self.labels_in(scenario)):
                what = scenario.case, estimates, *parameters(self.scheduler(label)).values()
                runs.setdefault(what, JSchedulerRun(scenario.case, estimates, label))
        order = list(self.cases)
        return sorted(runs.values(), key=lambda run: order.index(run.case))

    def _runtime_estimates(self, scenario: ReadingConfig) -> Sequence[RuntimeEstimate]:
        return scenario.estimates or self.estimates

    def _original(self, case: str, centre: str, workload: Task, seed: int) -> Task:
        """A log on its own centre."""
        scenario = self.cases[case]
        return Task(
            stage="predict",
            study=self.name,
            name=f"{centre} on its own, factor {case}",
            function=f"{_STUDY}.stages:simulate_original",
            arguments={
                "study": self._basis(
                    logs=(centre,),
                    rows={name: row for name, row in self.rows.items() if name == centre},
                    scenarios=_failures_alone(scenario),
                ).values(),
                "factor": scenario.at_home,
                "centre": centre,
                "workload": workload,
                **failure_seed(scenario.machines, seed),
            },
            also={"machines": self.machines(centre), **_event_files(scenario)},
            cost=10 * workload.cost,
        )

    def _stream(
        self, case: str, workloads: Mapping[str, Task], originals: Mapping[tuple[str, str], Task], seed: int
    ) -> Task:
        """All logs merged."""
        scenario = self.cases[case]
        return Task(
            stage="predict",
            study=self.name,
            name=f"all logs, factor {case}",
            function=f"{_STUDY}.stages:fuse_stream",
            arguments={
                "study": self._basis(
                    logs=self.logs, align=self.align, scenarios=_failures_alone(scenario)
                ).values(),
                "factor": scenario.factor,
                **({} if scenario.at_home == scenario.factor else {"original_factor": scenario.at_home}),
                "workloads": dict(workloads),
                "originals": {name: originals[case, name] for name in workloads},
                **failure_seed(scenario.machines, seed),
            },
            also={"machines": self.machines(), **_event_files(scenario)},
            cost=5 * sum(task.cost for task in workloads.values()),
            memory=1500,
        )

    def _run(self, run: JSchedulerRun, seed: int, stream: Task, workloads: Mapping[str, Task]) -> Task:
        """Simulation of one run: it takes longer the more clusters a job asks, and in exact mode."""
        scenario, scheduler = self.cases[run.case], self.scheduler(run.scheduler)
        made: Any = scheduler_made(scheduler)
        retrained = run.estimates == "retrained"
        slow = (20 if made.predictions == "exact" else 1) * (10 if retrained else 1)
        slow *= 1 if scenario.failures is None else 10
        return Task(
            stage="simulate",
            study=self.name,
            name=run.title,
            function=f"{_STUDY}.stages:simulate_run",
            arguments={
                "study": self._basis(
                    scenarios=(scenario.alone(),),
                    schedulers=(scheduler,),
                    estimates=(run.estimates,),
                    align=self.align if retrained else "start",
                    weights=self.weights,
                    slowdowns=self.slowdowns,
                ).values(),
                "seed": seed,
                "stream": stream,
                "workloads": list(workloads.values()) if retrained else [],
            },
            also={
                "machines": self.machines(),
                "files": [*function_files(scheduler), *event_files(scenario.machines)],
            },
            labels={"factor": run.case, **parameters(scheduler), "estimates": run.estimates},
            cost=0.2 + slow * (1 + made.k / 10) * sum(task.cost for task in workloads.values()) / 14,
            memory=2500,
        )

    def _prediction(self, workloads: Mapping[str, Task], originals: Mapping[tuple[str, str], Task]) -> Task:
        """How good predictions are, log by log, on the first platform."""
        first = next(iter(self.cases))
        evaluated = [
            Task(
                stage="predict",
                study=self.name,
                name=f"predictions of {name}",
                function=f"{_STUDY}.stages:evaluate_prediction",
                arguments={
                    "study": self._basis(logs=(name,)).values(),
                    "centre": name,
                    "workload": workload,
                    "original": originals[first, name],
                },
                also={"machines": self.machines(name)},
                cost=60 * workload.cost,
            )
            for name, workload in workloads.items()
        ]
        return Task(
            stage="collect",
            study=self.name,
            name="prediction",
            function=f"{_STUDY}.stages:stack_predictions",
            arguments={"predictions": evaluated},
        )

    def _basis(self, **changes: Any) -> Self:
        """The study without sweeps and what is common to all stages but not given."""
        plain: dict[str, Any] = {
            "logs": None,
            "align": "start",
            "window": None,
            "leave_out_status": (),
            "weights": "jobs",
            "slowdowns": SlowdownConfig(),
            "scenarios": (ReadingConfig(name="any"),),
            "schedulers": (_ANYTHING,),
            "estimates": ("predicted",),
            "reference": None,
            "evaluate": False,
        }
        return self.without_words(**{**plain, **changes})

    @property
    def study_figures(self) -> list[str]:
        """Figures of the whole study; what has nothing to compare is not drawn."""
        estimates = {run.estimates for run in self.runs}
        figures = ["improvement_bounded_slowdown", "improvement_wait_time", "offered_loads", "centre_table"]
        if len(estimates - {"retrained"}) > 1:
            figures.append("prediction_worth")
        if len({parameters(scheduler)["mode"] for scheduler in self.schedulers}) > 1:
            figures.append("plan_and_exact")
        if "retrained" in estimates:
            figures.append("retraining_effect")
        return figures


def _failures_alone(scenario: ReadingConfig) -> tuple[ReadingConfig]:
    """What the original scenario depends on beside the reading, which its tasks are given by itself."""
    return (ReadingConfig(name="any", failures=scenario.failures),)


def _event_files(scenario: ReadingConfig) -> dict[str, Any]:
    """Files of failures that a task depends on, where there are any."""
    files = event_files(scenario.machines)
    return {"files": files} if files else {}


def parameters(scheduler: Written) -> dict[str, Any]:
    """What schedulers differ in, by dimension of the dataset."""
    made: Any = scheduler_made(scheduler)
    metric = made.metric if isinstance(made.metric, str) else label_of(scheduler)
    return {"mode": made.predictions, "metric": metric, "k": int(made.k)}

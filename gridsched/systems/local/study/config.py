"""Studies of local policies: every policy on every workload under every kind of estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, model_validator

from gridsched.experiments.inputs import (
    event_files,
    expected_jobs,
    failure_seed,
    prepared_workload,
    varied_keys,
    without_machine,
)
from gridsched.experiments.parts import (
    BaselineConfig,
    ClusterConfig,
    MetricsConfig,
    VariedConfig,
    WorkloadConfig,
    label_of,
)
from gridsched.experiments.schedulers import Written, scheduler_made
from gridsched.experiments.study import SchedulerStudy, families, function_files
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.policies.local import PassName
from gridsched.submission import EstimateName

RECORDED = "recorded"
"""Label of the waits that a log has recorded."""

SMALL = 40
"""Most jobs of a workload whose schedules are drawn as Gantt charts."""

_STAGES = "gridsched.systems.local.study.stages"

_FIGURES = "gridsched.systems.local.figures.catalogue:FIGURES"


class LocalScenario(WorkloadConfig, BaselineConfig, VariedConfig):
    """A cluster by itself and the workload that its users submit."""

    @property
    def machines(self) -> Sequence[ClusterConfig]:
        """The cluster."""
        return (self,)

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn."""
        return (self,)

    @property
    def workload(self) -> Self:
        """What of it jobs depend on."""
        return self.model_copy(update={"baseline": None, "resampling": None, "shaking": None})


@dataclass(frozen=True)
class LocalRun:
    """A scheduler on a workload under some estimates.

    Parameters
    ----------
    scenario, scheduler, estimates : str
        What it is, for people.
    number : int
        Place among the runs of the study, from 1.
    """

    scenario: str
    scheduler: str
    estimates: EstimateName
    number: int

    @property
    def title(self) -> str:
        """Name for people."""
        return f"{self.scenario}, {self.scheduler}, {self.estimates} run times"

    @property
    def gantt(self) -> str:
        """Name of the figure of its schedule."""
        return f"gantt-{self.scenario}-{self.number}"


class LocalStudy(SchedulerStudy):
    """A study of one cluster at a time: every scheduler on every workload under every kind of estimate."""

    catalogue = _FIGURES
    view = "gridsched.systems.local.report:local_view"
    main_figure = "policies_differences"

    kind: Literal["local-policies"] = "local-policies"
    """What is studied."""
    scenarios: Annotated[tuple[LocalScenario, ...], Field(min_length=1)]
    """The scenarios: clusters, each by itself with its workload."""
    kill: StrictBool = False
    """Whether jobs end at their requested time."""
    passes: PassName = "instant"
    """Whether a scheduling pass follows all events of an instant, or each event."""
    metrics: MetricsConfig = MetricsConfig()
    """How runs are measured."""
    pairs: StrictBool = False
    """Whether every two policies are set against each other on each workload: which one is surely better,
    after Holm's correction for all pairs of a workload."""

    @model_validator(mode="after")
    def _local_policies(self) -> Self:
        if RECORDED in self.labels:
            raise ValueError(
                f"schedulers: the name {RECORDED!r} stands for the waits of the log; choose another"
            )
        for scheduler in self.schedulers:
            if scheduler_made(scheduler).system != "local":
                raise ValueError(f"schedulers: {label_of(scheduler)!r} schedules grids; give a local policy")
        return self

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        return f"scenarios[{workload.name}]"

    def _jobs_of(self, scenario: LocalScenario) -> Any:
        """What tells whether two scenarios have the same jobs: those of one log have, by their numbers."""
        changes = {"name": "any", "cancelled": "recorded", "preceding": False, "leave_out_status": ()}
        workload = without_machine(scenario.workload).model_copy(update=changes)
        return workload.model_copy(
            update=dict.fromkeys(("processors", "processors_per_node", "node_exclusive"))
        )

    # --- what is made ---------------------------------------------------------------------------------

    @property
    def runs(self) -> list[LocalRun]:
        """Every run: workloads x estimates x schedulers, in this order."""
        names = [scenario.name for scenario in self.scenarios]
        return [
            LocalRun(scenario, scheduler, estimates, number)
            for number, (scenario, estimates, scheduler) in enumerate(
                product(names, self.estimates, self.labels), start=1
            )
        ]

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        workloads = {
            each.name: prepared_workload(self.name, each.workload, seed, baseline=each.baseline)
            for each in self.scenarios
        }
        runs = {run: self._run(run, workloads[run.scenario], seed) for run in self.runs}
        summaries = {name: self._summary(name, runs) for name in workloads}
        comparisons = [self._comparison(names, runs) for names in families(self.scenarios).values()]
        replicates = {
            each.name: [self._replicates(run, runs[run], seed) for run in runs if run.scenario == each.name]
            for each in self.scenarios
            if each.variation is not None
        }
        study = self.study_task(
            f"{_STAGES}:aggregate_study",
            arguments={
                "summaries": summaries,
                "workloads": workloads,
                "comparisons": comparisons,
                **({"replicates": replicates} if replicates else {}),
            },
        )
        return Experiment(
            datasets=[study],
            figures=[
                *self.drawn(study),
                *(
                    Figure(
                        name=f"{kind}-{name}",
                        catalogue=_FIGURES,
                        dataset=dataset,
                        parameters=parameters,
                        part=part,
                        title=name,
                    )
                    for name in self.shown_workloads
                    for kind, dataset, parameters, part in (
                        ("load", study, {"workload": name}, "Load over time"),
                        ("workload", self._character(workloads[name]), {}, "Workloads"),
                    )
                ),
                *(
                    Figure(
                        name=run.gantt,
                        catalogue=_FIGURES,
                        dataset=runs[run],
                        part="Schedules",
                        title=run.title,
                    )
                    for run in self.gantt_runs
                ),
            ],
            tables=[StudyTable("means", f"{_STAGES}:means_table", "means")],
        )

    def _run(self, run: LocalRun, workload: Task, seed: int) -> Task:
        """Simulation of one run; what it does not depend on is as by default."""
        scenario, scheduler = self.scenario(run.scenario).workload, self.scheduler(run.scheduler)
        return Task(
            stage="simulate",
            study=self.name,
            name=run.title,
            function=f"{_STAGES}:simulate_run",
            arguments={
                "study": self.of_run(
                    scenario, scheduler, estimates=(run.estimates,), metrics=MetricsConfig()
                ),
                "workload": workload,
                **failure_seed([scenario], seed),
            },
            also={"files": [*function_files(scheduler), *event_files([scenario])]},
            labels={"scenario": run.scenario, "scheduler": run.scheduler, "estimates": run.estimates},
            cost=0.1 + _slowness(scenario, scheduler) * expected_jobs(scenario) / 300_000,
            memory=2000,
        )

    def _replicates(self, run: LocalRun, plain: Task, seed: int) -> Task:
        """Measures of a run on replicates of its log; `plain` is the run on the log as it is."""
        scenario, scheduler = self.scenario(run.scenario), self.scheduler(run.scheduler)
        what = "resampled" if scenario.resampling else "shaken"
        number = scenario.variation.replicates
        own = self.of_run(scenario.workload, scheduler, estimates=(run.estimates,))
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{run.title}, {number} {what} logs",
            function=f"{_STAGES}:simulate_replicates",
            arguments={
                **plain.arguments,
                "study": {**own, "metrics": self.metrics.model_dump(mode="json", exclude_defaults=True)},
                "seed": seed,
                **varied_keys(scenario),
            },
            also=plain.also,
            labels={**plain.labels, "scenario": f"{run.scenario}, {number} {what} logs"},
            cost=0.5 + number * plain.cost,
            memory=2000,
        )

    def _summary(self, workload: str, runs: dict[LocalRun, Task]) -> Task:
        """Metrics of the runs of a workload."""
        own = [task for run, task in runs.items() if run.scenario == workload]
        measured = self.without_words(scenarios=(self.scenario(workload).workload,), reference=None)
        return Task(
            stage="simulate",
            study=self.name,
            name=f"measures of {workload}",
            function=f"{_STAGES}:summarise_workload",
            arguments={"study": measured.values(), "runs": own},
            cost=sum(task.cost for task in own) / 2,
            memory=1500,
        )

    def _comparison(self, names: Sequence[str], runs: dict[LocalRun, Task]) -> Task:
        """Runs of scenarios that have the same jobs, the baseline first, on these."""
        own = {name: [task for run, task in runs.items() if run.scenario == name] for name in names}
        kept = tuple(self.scenario(name).workload for name in names)
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{names[0]} under other conditions",
            function=f"{_STAGES}:compare_conditions",
            arguments={"study": self.without_words(scenarios=kept).values(), "runs": own},
            cost=sum(task.cost for tasks in own.values() for task in tasks) / 4,
            memory=1500,
        )

    def _character(self, workload: Task) -> Task:
        """What a workload looks like."""
        return Task(
            stage="prepare",
            study=self.name,
            name=f"character of {workload.name}",
            function=f"{_STAGES}:characterise_workload",
            arguments={"workload": workload},
            cost=workload.cost,
        )

    @property
    def study_figures(self) -> list[str]:
        """Figures of the whole study: small workloads have no statistics, only logs have recorded waits."""
        if not self.large_workloads:
            return ["policies_means"]
        if families(self.scenarios):
            return ["conditions_effects", "conditions_ranking"]
        figures = ["policies_means", "policies_differences", "policies_distribution", "policies_classes"]
        if self.pairs:
            figures.insert(0, "policies_ranking")
        if any(workload.is_log for workload in self.scenarios):
            figures.append("recorded_waits")
        if sum(each.resampling is not None for each in self.scenarios) > 1:
            figures.append("resampled_means")
        reacting = [each for each in self.scenarios if each.feedback is not None]
        if any(each.resampling is not None for each in reacting):
            figures.append("users_productivity")
        if any(each.feedback.sessions == "leave" for each in reacting if each.feedback is not None):
            figures.append("users_going_on")
        return figures

    @property
    def large_workloads(self) -> list[str]:
        """Names of the workloads that are shown by statistics, not job by job."""
        return [workload.name for workload in self.scenarios if _known_size(workload) > SMALL]

    @property
    def shown_workloads(self) -> list[str]:
        """Those of them that are looked at one by one: not again under other conditions, or varied."""
        again = {name for names in families(self.scenarios).values() for name in names[1:]}
        logs: list[LocalScenario] = []
        for scenario in self.scenarios:
            log = scenario.model_copy(update={"name": "", "resampling": None, "shaking": None})
            if scenario.variation is not None and log in logs:
                again.add(scenario.name)
            logs.append(log)
        return [name for name in self.large_workloads if name not in again]

    @property
    def gantt_runs(self) -> list[LocalRun]:
        """Runs whose schedules are small enough to be drawn job by job."""
        large = self.large_workloads
        return [run for run in self.runs if run.scenario not in large]


def _slowness(scenario: LocalScenario, scheduler: Written) -> float:
    """How much longer than others a run takes."""
    return (5 if "conservative" in str(scheduler) else 1) * (5 if scenario.asks_for else 1)


def _known_size(workload: WorkloadConfig) -> float:
    """Jobs of a workload as far as the configuration says."""
    if workload.synthetic is not None and workload.synthetic.jobs is not None:
        return workload.synthetic.jobs
    if workload.jobs is not None:
        return len(workload.jobs)
    if workload.window is not None and workload.window.jobs is not None:
        return workload.window.jobs[1]
    return float("inf")

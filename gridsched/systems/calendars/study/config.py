"""What studies of imprecise calendars are made of: cases, partitions, reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gridsched.experiments.inputs import (
    drawing_seed,
    event_files,
    expected_jobs,
    logs_of,
    plain,
    without_machine,
)
from gridsched.experiments.parts import BlocksConfig, ClusterConfig, ScenarioConfig, WorkloadConfig
from gridsched.experiments.schedulers import Written, scheduler_made
from gridsched.experiments.study import FROM_SUBMISSION, SchedulerStudy, alone, function_files
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.experiments.validation import ConfigModel, Duration, Number, Whole, suggestion, unique_files
from gridsched.submission import AlignName, EstimateName
from gridsched.systems.base import Scheduler
from gridsched.systems.calendars.scheduler import Calendars

MAX_CASES = 6
"""Cases that one figure can show with all their schedulers."""

_STUDY = "gridsched.systems.calendars.study"

_FIGURES = "gridsched.systems.calendars.figures"

TableName = Literal["figure-3-october", "figure-3-november", "figure-7", "figure-9"]
"""Tables of the paper in `resources/calendars.yaml`."""

_ONE_STREAM = (
    "schedulers are compared block by block of the same submissions; use a study of kind arena, which runs "
    "calendars on replicates of logs"
)

# --- cases ----------------------------------------------------------------------------------------


class ReservationsConfig(ConfigModel):
    """Which jobs ask for a reservation, drawn at random."""

    share: Annotated[Number, Field(ge=0, le=1)]
    """Share of the jobs. With a larger share the same jobs ask, and more."""
    lead: tuple[Duration, Duration] = (3600, 86400)
    """From how many to how many seconds after its submission a job is to start, all equally probable;
    rounded up to a multiple of the fundamental slot."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.lead[0] > self.lead[1]:
            raise ValueError("lead: the second must not be less than the first")
        return self


class PartitionsConfig(ConfigModel):
    """A cluster divided into partitions: a job of its log goes to the smallest that can hold it."""

    workload: WorkloadConfig
    """The log of the cluster."""
    clusters: Annotated[tuple[ClusterConfig, ...], Field(min_length=1, max_length=1000)]
    """The partitions, with their processors."""
    alike: Literal["turns", "users"] = "turns"
    """Which of several partitions of the same size a job goes to: they take turns, job by job or user by
    user."""
    run_time: Literal["wall", "cpu"] = "wall"
    """Run time of a job: its wall-clock time, or its average CPU time (field 6 of the format)."""
    unknown: Literal["leave-out", "wall"] = "leave-out"
    """What to do with a job whose CPU time is not known: leave it out, or take its wall-clock time."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("clusters", [cluster.name for cluster in self.clusters])
        for cluster in self.clusters:
            if cluster.size is None:
                raise ValueError(f"clusters[{cluster.name}].processors: missing")
        if not self.workload.is_log:
            raise ValueError("workload: only a log (archive or file) can be divided")
        if self.unknown != "leave-out" and self.run_time == "wall":
            raise ValueError("unknown: wall-clock times are always known; give it with run_time: cpu")
        return self


class PaperConfig(ConfigModel):
    """What the paper printed for a case."""

    table: TableName
    """Table that the report shows beside ours."""
    alone: str | None = None
    """Scheduler that stands for clusters by themselves in the table."""
    together: str | None = None
    """Scheduler that stands for clusters under managers."""


class CaseConfig(ScenarioConfig, BlocksConfig):
    """Clusters with what their users submit."""

    clusters: Annotated[tuple[WorkloadConfig, ...], Field(max_length=1000)] = ()
    """The clusters, each with its own workload. Jobs larger than their cluster are left out."""
    partitions: PartitionsConfig | None = None
    """Or partitions of one cluster, among which its log is divided by job size."""
    scale: Annotated[Whole, Field(ge=1, le=1_000_000)] = 1
    """How many times more processors clusters and jobs have than configured."""
    paper: PaperConfig | None = None
    """What the paper printed for this case."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.clusters) == (self.partitions is not None):
            raise ValueError(
                f"give exactly one of clusters, partitions (found {'both' if self.clusters else 'none'})"
            )
        if self.partitions is not None and self.align != "start":
            raise ValueError("align: partitions keep the submit times of their log; leave it out")
        if self.partitions is not None and self.partitions.workload.asks_for:
            key = next(iter(self.partitions.workload.asks_for.values()))
            raise ValueError(f"partitions.workload.{key}: only for clusters with workloads of their own")
        return self

    @property
    def machines(self) -> Sequence[ClusterConfig]:
        """The clusters, or the partitions."""
        return self.clusters if self.partitions is None else self.partitions.clusters

    @property
    def without_machines(self) -> Self:
        """What workloads depend on."""
        clusters = tuple(map(without_machine, self.clusters))
        if self.partitions is None:
            return self.model_copy(update={"clusters": clusters})
        parts = tuple(map(without_machine, self.partitions.clusters))
        return self.model_copy(update={"partitions": self.partitions.model_copy(update={"clusters": parts})})

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn."""
        return self.clusters if self.partitions is None else (self.partitions.workload,)

    @property
    def cluster_names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in (self.partitions or self).clusters]

    @property
    def time_alignment(self) -> AlignName:
        """How submit times go together."""
        return "none" if self.partitions else self.align


# --- the study ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CalendarRun:
    """A scheduler in a case under some estimates."""

    case: str
    scheduler: str
    estimates: EstimateName

    @property
    def title(self) -> str:
        """Name for people."""
        return f"{self.case}, {self.scheduler}, {self.estimates} run times"


class CalendarStudy(SchedulerStudy):
    """A study of imprecise calendars: schedulers on cases, each a set of clusters with their workloads."""

    catalogue = f"{_FIGURES}:CALENDAR_FIGURES"
    view = "gridsched.systems.calendars.report:calendar_view"
    main_figure = "calendar_delays"
    refuses: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("resampling", "shaking"), _ONE_STREAM),
        "feedback": FROM_SUBMISSION,
    }

    kind: Literal["calendars"]
    """What is studied."""
    scenarios: Annotated[tuple[CaseConfig, ...], Field(min_length=1)]
    """The cases: clusters with what their users submit."""
    reservations: dict[str, ReservationsConfig] = Field({})
    """Which jobs ask for a reservation under a scheduler, by its name; none by default."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        named: dict[str, list[str | None]] = {"reservations": list(self.reservations)}
        for case in self.scenarios:
            if case.paper is not None:
                for key in ("alone", "together"):
                    named[f"scenarios[{case.name}].paper.{key}"] = [getattr(case.paper, key)]
        for key, names in named.items():
            for name in names:
                if name is not None and name not in self.labels:
                    raise ValueError(f"{key}: found {name!r}; {suggestion(name, self.labels)}")
        for name in self.reservations:
            if "reservations" in self.made[name].cannot:
                raise ValueError(
                    f"reservations: {name!r} grants none; {self.made[name].cannot['reservations']}"
                )
        return self

    @property
    def made(self) -> dict[str, Scheduler]:
        """The schedulers by their labels."""
        return {label: scheduler_made(self.scheduler(label)) for label in self.labels}

    @property
    def calendars(self) -> dict[str, Calendars]:
        """The schedulers that have calendars, by their labels."""
        return {label: made for label, made in self.made.items() if isinstance(made, Calendars)}

    def share(self, label: str) -> float:
        """Share of the jobs that ask for a reservation under a scheduler."""
        return self.reservations[label].share if label in self.reservations else 0.0

    @property
    def largest_share(self) -> float:
        """Largest share of jobs that ask for a reservation in any run."""
        return max(map(self.share, self.labels))

    # --- what is made ---------------------------------------------------------------------------------

    def runs(self, case: CaseConfig) -> list[CalendarRun]:
        """Every run of a case: estimates x schedulers."""
        known: Sequence[Any] = self.estimates_in(case)
        return [
            CalendarRun(case.name, label, estimates)
            for estimates, label in product(known, self.labels_in(case))
        ]

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        cases = {case.name: self._case(case, seed) for case in self.scenarios}
        study = self.study_task(
            f"{_STUDY}.aggregation:aggregate_calendar_study",
            arguments={
                "seed": seed,
                "runs": [
                    self._run(run, seed, cases[case.name])
                    for case in self.scenarios
                    for run in self.runs(case)
                ],
                "cases": cases,
            },
        )
        return Experiment(
            datasets=[study],
            figures=[
                *self.drawn(study),
                *(
                    Figure(
                        name=f"{kind}-{case}",
                        catalogue=f"{_FIGURES}:CASE_FIGURES",
                        dataset=study,
                        parameters={"case": case},
                        part="Cases",
                        title=case,
                    )
                    for kind, case in self.case_figures
                ),
            ],
            tables=[
                StudyTable("means", f"{_STUDY}.aggregation:delays_table", "calendar_means"),
                StudyTable("clusters", f"{_STUDY}.aggregation:clusters_table", "calendar_cluster_table"),
            ],
        )

    def _case(self, case: CaseConfig, seed: int) -> Task:
        """Clusters of a case with their workloads."""
        return Task(
            stage="prepare",
            study=self.name,
            name=f"case {case.name}",
            function=f"{_STUDY}.stages:prepare_case",
            arguments={
                "case": plain(alone(case.without_machines), paper=None),
                "seed": drawing_seed(seed, *case.workloads),
                "logs": logs_of(case.workloads),
            },
            cost=0.5 + sum(map(expected_jobs, case.workloads)) / 50_000,
        )

    def _run(self, run: CalendarRun, seed: int, case: Task) -> Task:
        """Simulation of one run; what it does not depend on is as by default."""
        conditions: CaseConfig = self.scenario(run.case).model_copy(update={"paper": None})
        scheduler: Written = self.scheduler(run.scheduler)
        asking = {label: each for label, each in self.reservations.items() if label == run.scheduler}
        return Task(
            stage="simulate",
            study=self.name,
            name=run.title,
            function=f"{_STUDY}.stages:simulate_run",
            arguments={
                "study": self.of_run(conditions, scheduler, estimates=(run.estimates,), reservations=asking),
                "seed": seed,
                "case": case,
                "largest_share": self.largest_share,
            },
            also={"files": [*function_files(scheduler), *event_files(conditions.machines)]},
            labels={"case": run.case, "scheduler": run.scheduler, "estimates": run.estimates},
            cost=0.2 + sum(map(expected_jobs, conditions.workloads)) / 25_000,
        )

    @property
    def study_figures(self) -> list[str]:
        """Figures of the whole study; what has nothing to compare is not drawn."""
        calendars = self.calendars.values()
        figures = ["calendar_delays"] if len(self.scenarios) <= MAX_CASES else []
        if len({each.slots for each in calendars}) > 1:
            figures.append("calendar_cost")
        if len({self.share(label) for label in self.labels}) > 1:
            figures.append("calendar_reservations")
        if len({longest_period(each) for each in calendars}) > 1:
            figures.append("calendar_staleness")
        if any(len({getattr(each, key) for each in calendars}) > 1 for key in ("threshold", "low_water")):
            figures.append("calendar_options")
        return figures

    @property
    def case_figures(self) -> list[tuple[str, str]]:
        """Figures of single cases, each with the name of the case; none where there are many cases."""
        if len(self.scenarios) > MAX_CASES:
            return []
        of_clusters = ["calendar_clusters", "calendar_trade"]
        named = [
            (case.name, ["calendar_classes"] if len(case.cluster_names) == 1 else of_clusters)
            for case in self.scenarios
        ]
        return [(figure, case) for case, figures in named for figure in figures]


def longest_period(calendars: Calendars) -> int:
    """Longest time between updates of shadow calendars, seconds."""
    return max((level.period for level in calendars.levels or ()), default=0)

"""The configuration as typed models: validation, defaults, JSON schema and documentation come from here."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, PrivateAttr, StrictBool, field_validator, model_validator

from gridsched.centres import Centre, Platform, Reading, load_platform
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.io import read_yaml, shown
from gridsched.schedulers.local import OverrunName, PassName
from gridsched.simulation.clusters import EstimateName
from gridsched.study.arena_config import AnyContender
from gridsched.study.calendar_config import CalendarKeys
from gridsched.study.dynamic_config import DynamicGridParts
from gridsched.study.multicluster_config import (
    AxisName,
    ConditionsConfig,
    Dispatch,
    PointConfig,
    checked_points,
    completed,
    dispatch_of,
)
from gridsched.study.parts import (
    ClusterConfig,
    MachineName,
    Metrics,
    Policy,
    ScenarioConfig,
    Scheme,
    Window,
    WorkloadConfig,
    label_of,
)
from gridsched.study.sweeps import PredictorConfig, SweepConfig
from gridsched.study.validation import (
    Count,
    Label,
    Model,
    Number,
    PathText,
    Slug,
    Text,
    Whole,
    suggestion,
    unique,
    unique_files,
    validated,
)

RECORDED = "recorded"
"""Scheme name of the waits that a log has recorded."""

RESERVED = (
    "archive",
    "benchmarks",
    "claims.csv",
    "logs",
    "rates",
    "report.html",
    "report.log",
    "snakemake-report.html",
)
"""Names in the folder of results that are taken, so that no study can have them."""


class Study(Model):
    """What every study says of itself."""

    name: Slug
    """Name of the study and of its folder of results."""
    title: Label
    """Title in the report."""
    description: Text = ""
    """What the reader of the report should know first."""

    @field_validator("name")
    @classmethod
    def _free_name(cls, name: str) -> str:
        if name.casefold() in RESERVED:
            raise ValueError("this name is taken in the folder of results; choose another")
        return name

    def checksum(self) -> str:
        """SHA-256 of everything the study says."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()

    @property
    @abstractmethod
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""

    def find_workload(self, name: str) -> WorkloadConfig:
        """The workload of a name."""
        return next(workload for workload in self.all_workloads if workload.name == name)

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        return f"workloads[{workload.name}]"

    def _without_words(self, **changes: Any) -> Self:
        """The study without what only the report shows."""
        return self.model_copy(update={"title": self.name, "description": "", **changes})


class LocalStudy(Study):
    """A study of one machine at a time: every policy on every workload under every kind of estimate."""

    kind: Literal["local-policies"] = "local-policies"
    """What is studied."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1)]
    """The workloads."""
    policies: Annotated[tuple[Policy, ...], Field(min_length=1)]
    """Policies by name (fcfs, ff, sjf, easy, easy(r), sjbf, lxf, lxwf, conservative) or by their parts."""
    estimates: Annotated[tuple[EstimateName, ...], Field(min_length=1)] = ("requested",)
    """What the scheduler believes of run times."""
    reference: str | None = None
    """Policy that the others are compared with; the first one by default."""
    kill: StrictBool = False
    """Whether jobs end at their requested time."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""
    passes: PassName = "instant"
    """Whether a scheduling pass follows all events of an instant, or each event."""
    metrics: Metrics = Metrics()
    """How runs are measured."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("workloads", [workload.name for workload in self.workloads])
        unique("policies", self.schemes)
        unique("estimates", list(self.estimates))
        if RECORDED in self.schemes:
            raise ValueError(
                f"policies: the name {RECORDED!r} stands for the waits of the log; choose another"
            )
        if self.reference is not None and self.reference not in self.schemes:
            raise ValueError(f"reference: {self.reference!r} is not one of {', '.join(self.schemes)}")
        return self

    @property
    def schemes(self) -> list[str]:
        """Names of the policies."""
        return [policy if isinstance(policy, str) else policy.name for policy in self.policies]

    @property
    def reference_scheme(self) -> str:
        """The policy that the others are compared with."""
        return self.reference or self.schemes[0]

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return self.workloads

    def simulated(self, workload: str) -> Self:
        """As much of the study as the runs of one workload depend on; the rest is as by default.

        A change of the rest, such as another title or a further workload, leaves these runs as they are.
        """
        return self.measured(workload).model_copy(update={"metrics": Metrics()})

    def measured(self, workload: str) -> Self:
        """As much of the study as the runs of one workload and their metrics depend on."""
        return self._without_words(workloads=(self.find_workload(workload),), reference=None)


class GridStudy(Study):
    """A study of grids: every scheme under every local policy on every scenario, with replicates."""

    kind: Literal["grid"]
    """What is studied."""
    scenarios: Annotated[tuple[ScenarioConfig, ...], Field(min_length=1)]
    """The scenarios: machines with their workloads."""
    schemes: Annotated[tuple[Scheme, ...], Field(min_length=1)]
    """Grid schedulers by name (local, central, s-i, r-i, sy-i, ideal-fcfs, ideal-srpt) or with parameters."""
    policies: Annotated[tuple[Policy, ...], Field(min_length=1)] = ("easy",)
    """Local policies; each is that of all machines in its runs."""
    replicates: Annotated[Whole, Field(ge=1, le=10_000)] = 1
    """How often synthetic workloads are drawn; a log is the same in every replicate."""
    reference: str | None = None
    """Scheme that the others are compared with; the first one by default."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""
    schedules: Literal["first", "all", "none"] = "first"
    """Replicates whose start times and machines are kept, job by job; measured are all."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("scenarios", [scenario.name for scenario in self.scenarios])
        unique("schemes", self.scheme_labels)
        unique("policies", self.policy_labels)
        if self.reference is not None and self.reference not in self.scheme_labels:
            raise ValueError(f"reference: {self.reference!r} is not one of {', '.join(self.scheme_labels)}")
        for scenario in self.scenarios:
            self._check_partners(scenario)
        return self

    def _check_partners(self, scenario: ScenarioConfig) -> None:
        machines = [machine.name for machine in scenario.machines]
        for scheme in self.schemes:
            partners = {} if isinstance(scheme, str) else scheme.partners or {}
            for name in (name for home, others in partners.items() for name in (home, *others)):
                if name not in machines:
                    raise ValueError(
                        f"schemes: partners of {label_of(scheme)!r}: scenario {scenario.name} has no machine "
                        f"{name!r}; {suggestion(name, machines)}"
                    )

    @property
    def scheme_labels(self) -> list[str]:
        """Labels of the schemes."""
        return [label_of(scheme) for scheme in self.schemes]

    @property
    def policy_labels(self) -> list[str]:
        """Labels of the local policies."""
        return [label_of(policy) for policy in self.policies]

    @property
    def reference_scheme(self) -> str:
        """The scheme that the others are compared with."""
        return self.reference or self.scheme_labels[0]

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return tuple(machine for scenario in self.scenarios for machine in scenario.machines)

    def scenario(self, name: str) -> ScenarioConfig:
        """The scenario of a name."""
        return next(scenario for scenario in self.scenarios if scenario.name == name)

    def simulated(self, scenario: str) -> Self:
        """As much of the study as the runs of one scenario depend on; the rest is as by default."""
        return self._without_words(scenarios=(self.scenario(scenario),), reference=None)


class ModelStudy(Study):
    """A study of workload models: a log fitted by size classes, beside the published fit of its machine."""

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


class SelfSchedulingStudy(Study):
    """A study of self-scheduling: jobs choose among resources; against every log on its own centre."""

    kind: Literal["self-scheduling"]
    """What is studied."""
    platform: PathText | None = None
    """Path of a platform file of one's own; by default the platform of `resources/jscheduler.yaml`."""
    logs: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Names of the centres whose logs are fused; by default all that have one."""
    first_months: Annotated[Whole, Field(ge=1, le=1200)] | None = 8
    """How many months of each log are used, from its first job on; null for whole logs."""
    sweeps: Annotated[tuple[SweepConfig, ...], Field(min_length=1)]
    """What is run: the union of the sweeps."""
    predictor: PredictorConfig = PredictorConfig()
    """How run times are predicted."""
    evaluate: StrictBool = False
    """Whether predictions are compared with those of other methods, log by log, which takes long."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""
    _platform: Platform = PrivateAttr()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        try:
            self._platform = load_platform(self.platform)
        except GridschedError as error:
            raise ValueError(f"platform: {error}") from None
        self._check_logs()
        resources = self.resource_count
        for number, sweep in enumerate(self.sweeps, start=1):
            most = max(sweep.numbers)
            if most > resources:
                raise ValueError(
                    f"sweeps[item {number}].k: found {most}; the platform has {resources} resources, "
                    f"use 1 to {resources}"
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
    def grid(self) -> Platform:
        """The platform."""
        return self._platform

    @property
    def resource_count(self) -> int:
        """Number of resources of the platform."""
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
    def factors(self) -> tuple[Reading, ...]:
        """Readings of the CPU factor that are run, the paper's first."""
        used = {factor for sweep in self.sweeps for factor in sweep.factors}
        return tuple(factor for factor in get_args(Reading) if factor in used)

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
            window=None if self.first_months is None else Window(first_months=self.first_months),
            cluster=ClusterConfig(processors=everything) if centre.file is not None else ClusterConfig(),
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

    def original(self, centre: str) -> Self:
        """As much of the study as the original scenario of a centre depends on; the rest is as by default."""
        return self._basis(logs=(centre,), predictor=self.predictor)

    def fused(self) -> Self:
        """As much of the study as the stream of all jobs depends on."""
        return self._basis(logs=self.logs, predictor=self.predictor)

    def simulated(self) -> Self:
        """As much of the study as runs on a given stream depend on, besides their own parameters."""
        return self._basis(predictor=self.predictor)

    def _basis(self, **changes: Any) -> Self:
        """The study without sweeps and what is common to all stages but not given."""
        anything = SweepConfig.model_validate({"k": [1]})
        plain: dict[str, Any] = {"logs": None, "first_months": None, "sweeps": (anything,), "evaluate": False}
        return self._without_words(**{**plain, **changes})


class ArenaScenario(Model):
    """Machines of a grid with what their users submit, and how days go together in comparisons."""

    name: Slug
    """Name in figures and file names."""
    machines: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1, max_length=1000)]
    """The machines, each with the workload that is submitted to it."""
    align: Literal["start", "clock", "none"] = "start"
    """How submit times go together: all begin at once, by the clock of the logs, or as they are written."""
    block_days: Annotated[Number, Field(gt=0, le=365)] = 7
    """Contenders are compared on blocks of jobs: those submitted within so many days, or a replicate."""

    @property
    def scenario(self) -> ScenarioConfig:
        """The machines as in studies of grids."""
        return ScenarioConfig(name=self.name, machines=self.machines, align=self.align)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        # What is wrong with the machines shows when they are made
        _ = self.scenario
        return self


class ArenaStudy(Study):
    """A study of the arena: grid schedulers of all systems on the same machines, jobs and beliefs."""

    kind: Literal["arena"]
    """What is studied."""
    scenarios: Annotated[tuple[ArenaScenario, ...], Field(min_length=1)]
    """The scenarios: machines with their workloads."""
    contenders: Annotated[tuple[AnyContender, ...], Field(min_length=2)]
    """Grid schedulers: schemes as in studies of grids, or other systems with their parameters."""
    policy: Policy = "easy"
    """Local policy of all machines, where a system leaves it open."""
    reference: str | None = None
    """Contender that the others are compared with; the first one by default."""
    replicates: Annotated[Whole, Field(ge=1, le=10_000)] = 1
    """How often synthetic workloads are drawn; only scenarios of synthetic workloads alone have several."""
    loads: Annotated[tuple[Annotated[Number, Field(ge=0.01, le=100)], ...], Field(min_length=1)] = (1.0,)
    """Loads, relative to the workloads as they are: times between submissions are divided by this."""
    estimate_errors: Annotated[tuple[Annotated[Number, Field(ge=0, le=100)], ...], Field(min_length=1)] = (
        1.0,
    )
    """Share of the difference between requested times and run times that is left in estimates: 0 for perfect
    estimates, 1 for requested times."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("scenarios", [scenario.name for scenario in self.scenarios])
        unique("contenders", self.labels)
        for key in ("loads", "estimate_errors"):
            unique(key, [str(value) for value in getattr(self, key)])
            if 1.0 not in getattr(self, key):
                raise ValueError(f"{key}: give 1 too, which the others are compared with")
        if self.reference is not None and self.reference not in self.labels:
            raise ValueError(f"reference: {self.reference!r} is not one of {', '.join(self.labels)}")
        return self

    @property
    def labels(self) -> list[str]:
        """Labels of the contenders."""
        return [each if isinstance(each, str) else each.name for each in self.contenders]

    @property
    def reference_label(self) -> str:
        """The contender that the others are compared with."""
        return self.reference or self.labels[0]

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return tuple(machine for scenario in self.scenarios for machine in scenario.machines)

    def arena_scenario(self, name: str) -> ArenaScenario:
        """The scenario of a name."""
        return next(scenario for scenario in self.scenarios if scenario.name == name)

    def scenario(self, name: str) -> ScenarioConfig:
        """The machines of the scenario of a name."""
        return self.arena_scenario(name).scenario

    def draws(self, scenario: str) -> int:
        """How many replicates a scenario has: one if it replays a log."""
        machines = self.arena_scenario(scenario).machines
        return self.replicates if all(machine.synthetic is not None for machine in machines) else 1

    def played(self, scenario: str, contender: int) -> Self:
        """As much of the study as the runs of one contender on one scenario depend on, and a rival."""
        unseen = next(name for name in ("local", "central") if name != self.labels[contender])
        return self._without_words(
            scenarios=(self.arena_scenario(scenario),),
            contenders=(self.contenders[contender], unseen),
            reference=None,
        )


class CalendarStudy(CalendarKeys, Study):
    """A study of imprecise calendars: schedulers on cases, each a set of clusters with their workloads."""

    def simulated(self, case: str, schedulers: Sequence[str]) -> Self:
        """As much of the study as some runs of a case depend on; the rest is as by default."""
        chosen = tuple(each for each in self.schedulers if each.name in schedulers)
        slots = {name: slots for name, slots in self.slots.items() if name in {e.slots for e in chosen}}
        own = self.case(case).model_copy(update={"schedulers": None, "paper": None})
        plain = {"cases": (own,), "schedulers": chosen, "slots": slots or self.slots, "reference": None}
        return self._without_words(**plain)


class DynamicGridStudy(DynamicGridParts, Study):
    """A study of dynamic grids: sites with users of their own that run grid jobs, join and leave."""

    def simulated(self) -> Self:
        """As much of the study as runs depend on besides their own parameters."""
        return self._without_words(sweeps=(), replicates=1, departure=None)


class MulticlusterStudy(Study):
    """A study of a multicluster: every scheme on every point, with replicates."""

    kind: Literal["multicluster"]
    """What is studied."""
    common: ConditionsConfig = ConditionsConfig()
    """What all points have that do not say otherwise."""
    points: Annotated[tuple[PointConfig, ...], Field(min_length=1)]
    """The points."""
    schemes: Annotated[tuple[Dispatch, ...], Field(min_length=1)] = ("muscle", "dll", "wrand")
    """Schemes by name (muscle, dll, wrand; with +seed or +easy for another local scheduler) or by parts."""
    replicates: Annotated[Whole, Field(ge=1, le=10_000)] = 10
    """How often jobs and deadlines are drawn; the jobs of a log are the same in every replicate."""
    reference: str | None = None
    """Scheme whose advantage over the others is measured; the first one by default."""
    axis: AxisName = "none"
    """What figures have on their horizontal axis: workload level, largest deadline ratio, number of clusters,
    or nothing, if points have nothing of the kind in common."""
    worked_example: StrictBool = False
    """Whether the report shows the worked example of the paper besides."""

    @model_validator(mode="before")
    @classmethod
    def _with_common(cls, values: Any) -> Any:
        return completed(values)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("points", [point.name for point in self.points])
        unique("schemes", self.scheme_labels)
        if self.reference is not None and self.reference not in self.scheme_labels:
            raise ValueError(f"reference: {self.reference!r} is not one of {', '.join(self.scheme_labels)}")
        checked_points(self.points, self.scheme_labels, self.reference_scheme, self.axis)
        return self

    @property
    def scheme_labels(self) -> list[str]:
        """Labels of the schemes."""
        return [dispatch_of(scheme).name for scheme in self.schemes]

    @property
    def reference_scheme(self) -> str:
        """The scheme whose advantage over the others is measured."""
        return self.reference or self.scheme_labels[0]

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Logs of the study."""
        return tuple(point.jobs.log for point in self.points if point.jobs.log is not None)

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a log is configured, for messages."""
        return f"jobs.log[{workload.name}]"

    def point(self, name: str) -> PointConfig:
        """The point of a name."""
        return next(point for point in self.points if point.name == name)

    def schemes_at(self, point: str) -> list[str]:
        """Labels of the schemes that are run at a point."""
        chosen = self.point(point).schemes
        plain = [label for label in self.scheme_labels if not set(label) & set(",+")]
        return [label for label in self.scheme_labels if label in (plain if chosen is None else chosen)]

    def simulated(self, point: str) -> Self:
        """As much of the study as the runs of one point depend on; the rest is as by default."""
        own = self.point(point).model_copy(update={"schemes": tuple(self.schemes_at(point))})
        schemes = tuple(each for each in self.schemes if dispatch_of(each).name in (own.schemes or ()))
        return self._without_words(
            common=ConditionsConfig(),
            points=(own,),
            schemes=schemes,
            reference=None if self.reference is None else self.reference_scheme,
            axis="none",
            worked_example=False,
        )


KINDS: dict[str, type[Study]] = {
    "local-policies": LocalStudy,
    "grid": GridStudy,
    "self-scheduling": SelfSchedulingStudy,
    "arena": ArenaStudy,
    "calendars": CalendarStudy,
    "dynamic-grid": DynamicGridStudy,
    "multicluster": MulticlusterStudy,
    "workload-models": ModelStudy,
}
"""Kinds of studies."""


class Config(Model):
    """The whole configuration of a workflow run."""

    studies: Annotated[tuple[str, ...], Field(min_length=1)]
    """Paths of study files."""
    results: PathText = "results"
    """Folder of everything that is made."""
    seed: Whole = Field(1, ge=0, lt=2**63)
    """Seed from which every random draw is spawned."""
    mirrors: tuple[Text, ...] = ()
    """Folders or addresses that hold archive logs, tried before `GRIDSCHED_MIRRORS` and the archive."""
    chunk_size: Count = 20
    """Largest number of simulations of one workload or scenario that one workflow job carries out, if it has
    more than one replicate."""
    replicates: Annotated[Whole, Field(ge=1, le=10_000)] | None = None
    """Largest number of replicates of any study, for a quick look."""


def load_study(path: str | Path) -> Study:
    """Study of a YAML file; paths in it are relative to the working directory.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or says something that is not allowed; names file and key.
    """
    values = read_yaml(path)
    study = validated(_kind_of(values, path), values, str(path))
    for workload in study.all_workloads:
        if workload.file is not None and not Path(workload.file).is_file():
            raise ConfigurationError(
                f"{path}: {study.place_of(workload)}.file: found {shown(workload.file)}; there is no such "
                f"file, seen from {Path.cwd()}"
            )
    return study


def _quick(study: Study, replicates: int | None) -> Study:
    """The study with no more replicates than these."""
    if not isinstance(study, GridStudy | ArenaStudy | DynamicGridStudy | MulticlusterStudy):
        return study
    if replicates is None or study.replicates <= replicates:
        return study
    return study.model_copy(update={"replicates": replicates})


def study_from(values: Mapping[str, Any]) -> Study:
    """Study of values that have been validated before, as workflow rules hand them on."""
    return KINDS[values["kind"]].model_validate(values)


def _kind_of(values: Any, path: str | Path) -> type[Study]:
    """Model of the kind of study that the values say they are."""
    kind = values.get("kind", "local-policies") if isinstance(values, dict) else "local-policies"
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigurationError(f"{path}: kind: found {shown(kind)}; {suggestion(str(kind), KINDS)}")
    return KINDS[kind]


def load_config(
    values: dict[str, Any] | str | Path, where: str = "configuration"
) -> tuple[Config, dict[str, Study]]:
    """Configuration and its studies by name, from a YAML file or its content.

    Parameters
    ----------
    values : dict or path
        What the configuration says, or the file that says it.
    where : str
        Name of the content in messages.

    Raises
    ------
    ConfigurationError
        If anything in it is not allowed; names file and key.
    """
    if isinstance(values, dict):
        config = validated(Config, values, where)
    else:
        config = validated(Config, read_yaml(values), str(values))
    studies: dict[str, Study] = {}
    files: dict[str, str] = {}
    for path in config.studies:
        study = load_study(path)
        other = files.setdefault(study.name.casefold(), path)
        if study.name.casefold() in map(str.casefold, studies):
            raise ConfigurationError(
                f"{path}: name: found {study.name!r}; the study of {other} has this name already, "
                "and both would write to the same folder"
            )
        studies[study.name] = _quick(study, config.replicates)
    return config, studies

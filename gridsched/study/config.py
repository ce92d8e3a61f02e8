"""The configuration as typed models: validation, defaults, JSON schema and documentation come from here."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, field_validator, model_validator

from gridsched.errors import ConfigurationError
from gridsched.schedulers.local import OverrunName, PassName
from gridsched.simulation import EstimateName
from gridsched.study.parts import (
    MachineName,
    Metrics,
    Policy,
    ScenarioConfig,
    Scheme,
    WorkloadConfig,
    label_of,
)
from gridsched.study.validation import (
    Count,
    Label,
    Model,
    PathText,
    Slug,
    Text,
    Whole,
    read_yaml,
    shown,
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


KINDS: dict[str, type[Study]] = {
    "local-policies": LocalStudy,
    "grid": GridStudy,
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
                f"{path}: workloads[{workload.name}].file: found {shown(workload.file)}; there is no such "
                f"file, seen from {Path.cwd()}"
            )
    return study


def _quick(study: Study, replicates: int | None) -> Study:
    """The study with no more replicates than these."""
    if replicates is None or not isinstance(study, GridStudy) or study.replicates <= replicates:
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

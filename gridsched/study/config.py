"""The configuration as typed models: validation, defaults, JSON schema and documentation come from here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from gridsched.errors import ConfigurationError, GridschedError
from gridsched.platforms import Cluster
from gridsched.schedulers.local import BackfillingName, LocalPolicy, OverrunName, PassName, named_policy
from gridsched.schedulers.scores import load_score
from gridsched.simulation import EstimateName

Slug = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
"""Name that is also a file name."""

Fraction = Annotated[float, Field(ge=0, lt=0.5)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[int, Field(ge=0)]

RECORDED = "recorded"
"""Scheme name of the waits that a log has recorded."""


class Model(BaseModel):
    """Base: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


ModelType = TypeVar("ModelType", bound=Model)


class Window(Model):
    """Part of a log; one of the three keys."""

    month: str | None = Field(None, pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """Calendar month in the log's own time zone, such as 1996-10."""
    interval: tuple[float, float] | None = None
    """Start and end in seconds since the start of the log."""
    jobs: tuple[int, int] | None = None
    """Index of the first job, from 0, and number of jobs."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one(self, "month", "interval", "jobs")
        return self


class Estimates(Model):
    """Model of requested times for synthetic jobs."""

    model: Literal["modal", "f-model", "multiple"] = "modal"
    """`modal` (Tsafrir et al. 2005: few round values), `f-model` (uniform between the run time and f + 1
    times it, Mu'alem and Feitelson 2001), or `multiple` (f times the run time)."""
    f: float = Field(1.0, ge=0)
    """The factor of `f-model` and `multiple`."""
    max_estimate: int | None = Field(None, ge=1)
    """Longest requested time of `modal`, seconds; by default the longest run time in full hours."""
    longer: Literal["cut", "raise", "exempt"] = "exempt"
    """What `modal` does with jobs that run longer than `max_estimate`: cut their run time, raise the
    limit, or let them request what they run."""


class Sizes(Model):
    """Spread of job sizes inside a size class."""

    weighting: Literal["power-law", "log-uniform", "uniform"] = "power-law"
    """Weight of a number of nodes: a negative power of it, its inverse, or the same for all."""
    exponent: float | None = None
    """Exponent of the power law; by default the one that makes the offered load meet the local
    utilisation that the paper states for the machine."""
    fill: Literal["powers", "whole", "partial"] = "powers"
    """Processors within the last node: powers of two in jobs of one node and whole nodes beyond, whole
    nodes always, or any number."""


class Synthetic(Model):
    """A workload drawn from the hyper-Erlang models of `resources/superscheduler.yaml`."""

    machine: str = "M3"
    """Machine whose models are used."""
    jobs: Positive | None = None
    """Number of jobs to draw; this or `duration`."""
    duration: float | None = Field(None, gt=0)
    """Seconds during which jobs arrive; this or `jobs`."""
    load_scale: float = Field(1.0, gt=0)
    """Inter-arrival times are divided by this."""
    sizes: Sizes = Sizes()
    """Spread of sizes inside the classes."""
    estimates: Estimates = Estimates()
    """Model of the requested times."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one(self, "jobs", "duration")
        return self


class ClusterConfig(Model):
    """The machine that replays a workload; what is not given is taken from the log or the model."""

    processors: Positive | None = None
    """Processors that jobs can use."""
    processors_per_node: Positive | None = None
    """Processors of one node."""
    node_exclusive: bool | None = None
    """Whether a node runs one job only."""
    speed: float = Field(1.0, gt=0)
    """Speed relative to the machine of the workload."""

    def cluster(self, default: Cluster) -> Cluster:
        """The cluster, with what is not configured taken from `default`."""
        given = self.model_dump(exclude_none=True)
        known = {
            key: getattr(default, key) for key in ("processors", "processors_per_node", "node_exclusive")
        }
        return Cluster(name=default.name, **{**known, **given})


class WorkloadConfig(Model):
    """A workload: one of `archive`, `file`, `synthetic` and `jobs`."""

    name: Slug
    """Name in figures and file names."""
    archive: str | None = None
    """Log of the Parallel Workloads Archive, by name (see `resources/archive.yaml`)."""
    file: str | None = None
    """Path of an SWF file of one's own, plain or compressed."""
    synthetic: Synthetic | None = None
    """Model to draw the workload from."""
    jobs: tuple[tuple[Seconds, Seconds, Seconds, Positive], ...] | None = Field(None, min_length=1)
    """Jobs written out, in order of submission: submit time, run time, requested time, processors."""
    window: Window | None = None
    """Part of the log to use; all of it by default."""
    leave_out_status: tuple[int, ...] = ()
    """SWF status codes of jobs to leave out (0 failed, 5 cancelled)."""
    leave_out_queue: tuple[int, ...] = ()
    """Queue numbers of jobs to leave out."""
    cluster: ClusterConfig = ClusterConfig()
    """Machine that replays the workload."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        _exactly_one(self, "archive", "file", "synthetic", "jobs")
        if self.window and not self.is_log:
            raise ValueError("window: only a log has one")
        if self.jobs and self.cluster.processors is None:
            raise ValueError("cluster: give the processors of the machine for jobs that are written out")
        return self

    @property
    def is_log(self) -> bool:
        """Whether the workload is read from an SWF file."""
        return self.archive is not None or self.file is not None


class PolicyConfig(Model):
    """A local policy composed of its parts."""

    name: str = Field(min_length=1, max_length=40)
    """Label in figures."""
    order: str = "fcfs"
    """Queue order: fcfs, shortest, smallest, smallest_area, lxf, lxwf, or path/to/file.py:function."""
    backfilling: BackfillingName = "none"
    """What happens once the first waiting job does not fit."""
    reservations: Positive = 1
    """Number of waiting jobs that EASY protects from delay."""
    backfill_order: str = "queue"
    """Order in which later jobs are tried: queue, or as `order` (but not one that changes with time)."""

    def policy(self) -> LocalPolicy:
        """The policy, with score functions loaded from their files."""
        parts = self.model_dump()
        for key in ("order", "backfill_order"):
            if ":" in parts[key]:
                parts[key] = load_score(parts[key])
        return LocalPolicy(**parts)


class JobClasses(Model):
    """Borders of the job classes (short and long, narrow and wide)."""

    long: Positive = 3600
    """A job that runs longer than so many seconds is long."""
    wide: Positive = 8
    """A job of more than so many processors is wide."""


class Metrics(Model):
    """How runs are measured."""

    warm_up: Fraction = 0.0
    """Fraction of jobs, in order of submission, left out of job metrics at the beginning."""
    cool_down: Fraction = 0.0
    """Fraction left out at the end."""
    batches: int = Field(30, ge=2)
    """Number of batches of consecutive jobs for the intervals of means."""
    bins: Positive = 200
    """Number of time bins of the series of utilisation and queue length."""
    classes: JobClasses = JobClasses()
    """Borders of the job classes."""


class StudyConfig(Model):
    """A study: every policy on every workload under every kind of estimate."""

    name: Slug
    """Name of the study and of its folder of results."""
    kind: Literal["local-policies"] = "local-policies"
    """What is studied."""
    title: str = Field(min_length=1)
    """Title in the report."""
    description: str = ""
    """What the reader of the report should know first."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1)]
    """The workloads."""
    policies: Annotated[tuple[str | PolicyConfig, ...], Field(min_length=1)]
    """Policies by name (fcfs, ff, sjf, easy, easy(r), sjbf, lxf, lxwf, conservative) or by their parts."""
    estimates: Annotated[tuple[EstimateName, ...], Field(min_length=1)] = ("requested",)
    """What the scheduler believes of run times."""
    reference: str | None = None
    """Policy that the others are compared with; the first one by default."""
    kill: bool = False
    """Whether jobs end at their requested time."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""
    passes: PassName = "instant"
    """Whether a scheduling pass follows all events of an instant, or each event."""
    metrics: Metrics = Metrics()
    """How runs are measured."""

    @field_validator("policies")
    @classmethod
    def _known_policies(cls, policies: tuple[str | PolicyConfig, ...]) -> tuple[str | PolicyConfig, ...]:
        for policy in policies:
            try:
                local_policy(policy)
            except GridschedError as error:
                raise ValueError(str(error)) from None
        return policies

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _unique("workloads", [workload.name for workload in self.workloads])
        _unique("policies", self.schemes)
        _unique("estimates", list(self.estimates))
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

    def workload(self, name: str) -> WorkloadConfig:
        """The workload of a name."""
        return next(workload for workload in self.workloads if workload.name == name)

    def checksum(self) -> str:
        """SHA-256 of everything the study says."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()


class Config(Model):
    """The whole configuration of a workflow run."""

    studies: Annotated[tuple[str, ...], Field(min_length=1)]
    """Paths of study files."""
    results: str = "results"
    """Folder of everything that is made."""
    seed: int = Field(1, ge=0)
    """Seed from which every random draw is spawned."""
    mirrors: tuple[str, ...] = ()
    """Folders or addresses that hold archive logs, tried before `GRIDSCHED_MIRRORS` and the archive."""
    chunk_size: Positive = 20
    """Simulations of one workload that one workflow job carries out."""


def local_policy(policy: str | PolicyConfig) -> LocalPolicy:
    """Policy of a study's configuration."""
    return named_policy(policy) if isinstance(policy, str) else policy.policy()


def load_study(path: str | Path) -> StudyConfig:
    """Study of a YAML file.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or says something that is not allowed; names file and key.
    """
    return _validated(StudyConfig, _read_yaml(path), str(path))


def load_config(values: dict[str, Any] | str | Path) -> tuple[Config, dict[str, StudyConfig]]:
    """Configuration and its studies by name, from a YAML file or its content.

    Raises
    ------
    ConfigurationError
        If anything in it is not allowed; names file and key.
    """
    if isinstance(values, dict):
        config = _validated(Config, values, "configuration")
    else:
        config = _validated(Config, _read_yaml(values), str(values))
    studies: dict[str, StudyConfig] = {}
    for path in config.studies:
        study = load_study(path)
        if study.name in studies:
            raise ConfigurationError(f"{path}: name: another study is called {study.name!r} too")
        studies[study.name] = study
    return config, studies


def _read_yaml(path: str | Path) -> Any:
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigurationError(f"{path}{line}: not YAML ({getattr(error, 'problem', error)})") from None


def _validated(model: type[ModelType], values: Any, where: str) -> ModelType:
    if not isinstance(values, dict):
        raise ConfigurationError(f"{where}: found {values!r}; write key: value lines")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        raise ConfigurationError(f"{where}: {_explain(first, model)}{more}") from None


def _explain(error: Any, model: type[Model]) -> str:
    """One validation error as: key: what was found; what is allowed."""
    key = ".".join(str(part) for part in error["loc"]) or "configuration"
    if error["type"] == "extra_forbidden":
        known = ", ".join(_keys_beside(model, error["loc"]))
        return f"{key}: unknown key; known keys are {known}"
    if error["type"] == "missing":
        return f"{key}: missing"
    message = error["msg"].removeprefix("Value error, ")
    found = "" if isinstance(error["input"], dict | list | tuple) else f"found {error['input']!r}; "
    return f"{key}: {found}{message[0].lower()}{message[1:]}"


def _keys_beside(model: type[Model], location: tuple[int | str, ...]) -> list[str]:
    """Keys that are known where an unknown one was found."""
    current: Any = model
    for part in location[:-1]:
        field = getattr(current, "model_fields", {}).get(part)
        if field is None:
            continue
        for candidate in (field.annotation, *_nested(field.annotation)):
            if isinstance(candidate, type) and issubclass(candidate, Model):
                current = candidate
    return list(current.model_fields)


def _nested(annotation: Any) -> list[Any]:
    """All types inside a generic annotation."""
    inside = list(getattr(annotation, "__args__", ()))
    return inside + [deeper for part in inside for deeper in _nested(part)]


def _exactly_one(model: BaseModel, *keys: str) -> None:
    given = [key for key in keys if getattr(model, key) is not None]
    if len(given) != 1:
        raise ValueError(f"give exactly one of {', '.join(keys)} (found {', '.join(given) or 'none'})")


def _unique(key: str, names: list[Any]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{key}: {sorted(twice)[0]!r} is there twice")

"""The configuration as typed models: validation, defaults, JSON schema and documentation come from here."""

from __future__ import annotations

import difflib
import hashlib
import json
import unicodedata
from collections.abc import Hashable, Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.platforms import Cluster
from gridsched.schedulers.local import (
    POLICIES,
    BackfillingName,
    LocalPolicy,
    OverrunName,
    PassName,
    named_policy,
)
from gridsched.schedulers.scores import load_score
from gridsched.simulation import EstimateName
from gridsched.traces import find_log
from gridsched.traces.cleaning import LONGEST_TIME
from gridsched.workloads import Machine, load_machines

RECORDED = "recorded"
"""Scheme name of the waits that a log has recorded."""

RESERVED = ("archive", "benchmarks", "logs", "report.html", "report.log", "snakemake-report.html")
"""Names in the folder of results that are taken, so that no study can have them."""

_SLUG = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_MONTH = r"^\d{4}-(0[1-9]|1[0-2])$"
_PATH = r"^[^{}]+$"
_PATTERNS = {
    _SLUG: "use letters, digits, '.', '_' and '-', and begin with a letter or digit",
    _MONTH: "write it like 1996-10",
    _PATH: "a path has no braces and is not empty",
}
"""What the patterns of this module mean, for messages."""


def _text(value: str) -> str:
    """Text that files and figures can hold."""
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cn", "Co") and character not in "\n\t":
            raise ValueError(f"the character {character!r} is not allowed")
    return value


def _label(value: str) -> str:
    """Text of one line, as figures show it."""
    if not value.isprintable() or value != value.strip():
        raise ValueError("write printable characters on one line, without blanks at the ends")
    return value


def _known_log(name: str) -> str:
    """Name of a log that the registry knows."""
    try:
        find_log(name)
    except GridschedError as error:
        raise ValueError(str(error)) from None
    return name


def _known_machine(name: str) -> str:
    """Name of a machine that has workload models."""
    if name not in _machines():
        raise ValueError(f"unknown machine; {_suggestion(name, _machines())}")
    return name


@cache
def _machines() -> dict[str, Machine]:
    return load_machines()


def _suggestion(wrong: str, known: Iterable[str]) -> str:
    """What to use instead of an unknown name."""
    names = list(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    return (f"did you mean {close[0]}? " if close else "") + f"known are {', '.join(names)}"


# Numbers are strict: text, and true or false, are no numbers, whatever Python would make of them. Bounds
# keep out what no machine could hold, so that a digit too many fails here and not after hours.
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Fraction = Annotated[Number, Field(ge=0, lt=0.5)]
Factor = Annotated[Number, Field(ge=0.001, le=1000)]
Count = Annotated[Whole, Field(ge=1, le=LARGEST)]
Instant = Annotated[Whole, Field(ge=0, le=LONGEST_TIME)]
Duration = Annotated[Whole, Field(ge=0, le=LARGEST)]
Slug = Annotated[str, Field(pattern=_SLUG, max_length=60)]
"""Name that is also a file name."""
PathText = Annotated[str, Field(pattern=_PATH), AfterValidator(_text)]
Text = Annotated[str, AfterValidator(_text)]


class Model(BaseModel):
    """Base: unknown keys are errors, values do not change, exactly one of `alternatives` is given."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=False
    )
    alternatives: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _one_alternative(self) -> Self:
        given = [key for key in self.alternatives if getattr(self, key) is not None]
        if self.alternatives and len(given) != 1:
            raise ValueError(
                f"give exactly one of {', '.join(self.alternatives)} (found {', '.join(given) or 'none'})"
            )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Schema that knows the alternatives too; null stands for a key that is not given."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.alternatives:
            schema["oneOf"] = [
                {"required": [key], "properties": {key: {"not": {"type": "null"}}}}
                for key in cls.alternatives
            ]
        return schema


ModelType = TypeVar("ModelType", bound=Model)


class Window(Model):
    """Part of a log."""

    alternatives = ("month", "interval", "jobs")

    month: str | None = Field(None, pattern=_MONTH)
    """Calendar month in the log's own time zone, such as 1996-10."""
    interval: tuple[Number, Number] | None = None
    """Start and end in seconds since the start of the log."""
    jobs: tuple[Instant, Count] | None = None
    """Index of the first job, from 0, and number of jobs."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.interval and self.interval[0] >= self.interval[1]:
            raise ValueError("interval: the end must come after the start")
        return self


class Estimates(Model):
    """Model of requested times for synthetic jobs."""

    model: Literal["modal", "f-model", "multiple"] = "modal"
    """`modal` (Tsafrir et al. 2005: few round values), `f-model` (uniform between the run time and f + 1
    times it, Mu'alem and Feitelson 2001), or `multiple` (f times the run time)."""
    f: Number = Field(1.0, ge=0, le=1000)
    """The factor of `f-model` and `multiple`; at least 1 for `multiple`."""
    max_estimate: Count | None = None
    """Longest requested time of `modal`, seconds; by default the longest run time in full hours."""
    longer: Literal["cut", "raise", "exempt"] = "exempt"
    """What `modal` does with jobs that run longer than `max_estimate`: cut their run time, raise the
    limit, or let them request what they run."""

    @model_validator(mode="after")
    def _upper_bound(self) -> Self:
        if self.model == "multiple" and self.f < 1:
            raise ValueError("f: at least 1 for the model `multiple`")
        return self


class Sizes(Model):
    """Spread of job sizes inside a size class."""

    weighting: Literal["power-law", "log-uniform", "uniform"] = "power-law"
    """Weight of a number of nodes: a negative power of it, its inverse, or the same for all."""
    exponent: Number | None = Field(None, ge=-30, le=30)
    """Exponent of the power law; by default the one that makes the offered load meet the local
    utilisation that the paper states for the machine."""
    fill: Literal["powers", "whole", "partial"] = "powers"
    """Processors within the last node: powers of two in jobs of one node and whole nodes beyond, whole
    nodes always, or any number."""


class Synthetic(Model):
    """A workload drawn from the hyper-Erlang models of `resources/superscheduler.yaml`."""

    alternatives = ("jobs", "duration")

    machine: Annotated[str, AfterValidator(_known_machine)] = "M3"
    """Machine whose models are used."""
    jobs: Whole | None = Field(None, ge=1, le=100_000_000)
    """Number of jobs to draw."""
    duration: Number | None = Field(None, gt=0, le=1e10)
    """Seconds during which jobs arrive."""
    load_scale: Factor = 1.0
    """Inter-arrival times are divided by this."""
    sizes: Sizes = Sizes()
    """Spread of sizes inside the classes."""
    estimates: Estimates = Estimates()
    """Model of the requested times."""


class ClusterConfig(Model):
    """The machine that replays a workload; what is not given is taken from the log or the model."""

    processors: Count | None = None
    """Processors that jobs can use."""
    processors_per_node: Count | None = None
    """Processors of one node."""
    node_exclusive: StrictBool | None = None
    """Whether a node runs one job only."""
    speed: Factor = 1.0
    """Speed relative to the machine of the workload."""

    def cluster(self, default: Cluster) -> Cluster:
        """The cluster, with what is not configured taken from `default`."""
        given = self.model_dump(exclude_none=True)
        known = {
            key: getattr(default, key) for key in ("processors", "processors_per_node", "node_exclusive")
        }
        return Cluster(name=default.name, **{**known, **given})


class WorkloadConfig(Model):
    """A workload and the machine that replays it."""

    alternatives = ("archive", "file", "synthetic", "jobs")

    name: Slug
    """Name in figures and file names."""
    archive: Annotated[str, AfterValidator(_known_log)] | None = None
    """Log of the Parallel Workloads Archive, by name (see `resources/archive.yaml`)."""
    file: PathText | None = None
    """Path of an SWF file of one's own, plain or compressed."""
    synthetic: Synthetic | None = None
    """Model to draw the workload from."""
    jobs: tuple[tuple[Instant, Duration, Duration, Count], ...] | None = Field(None, min_length=1)
    """Jobs written out, in order of submission: submit time, run time, requested time (seconds),
    processors."""
    window: Window | None = None
    """Part of the log to use; all of it by default."""
    leave_out_status: tuple[Annotated[Whole, Field(ge=-1, le=5)], ...] = ()
    """SWF status codes of jobs to leave out (0 failed, 5 cancelled)."""
    leave_out_queue: tuple[Annotated[Whole, Field(ge=-1, le=LARGEST)], ...] = ()
    """Queue numbers of jobs to leave out."""
    cluster: ClusterConfig = ClusterConfig()
    """Machine that replays the workload."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.is_log:
            for key in ("window", "leave_out_status", "leave_out_queue"):
                if getattr(self, key):
                    raise ValueError(f"{key}: only a log (archive or file) has one")
        if self.jobs and self.cluster.processors is None:
            raise ValueError("cluster: give the processors of the machine for jobs that are written out")
        self._check_nodes()
        return self

    def _check_nodes(self) -> None:
        """Processors in whole nodes, as far as they are known before the log is read."""
        machine = _machines()[self.synthetic.machine] if self.synthetic else None
        processors = self.cluster.processors or (machine.processors if machine else None)
        per_node = self.cluster.processors_per_node or (machine.processors_per_node if machine else 1)
        if processors is not None and processors % per_node:
            raise ValueError(
                f"cluster: {processors} processors are not whole nodes of {per_node}; "
                "mend processors or processors_per_node"
            )

    @property
    def is_log(self) -> bool:
        """Whether the workload is read from an SWF file."""
        return self.archive is not None or self.file is not None


class PolicyConfig(Model):
    """A local policy composed of its parts."""

    name: Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_label)]
    """Label in figures."""
    order: str = "fcfs"
    """Queue order: fcfs, shortest, smallest, smallest_area, lxf, lxwf, or path/to/file.py:function."""
    backfilling: BackfillingName = "none"
    """What happens once the first waiting job does not fit."""
    reservations: Count = 1
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

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.policy()
        except GridschedError as error:
            raise ValueError(str(error)) from None
        return self


def _known_policy(name: str) -> str:
    """Name of a policy."""
    try:
        named_policy(name)
    except GridschedError:
        raise ValueError(f"unknown policy; {_suggestion(name, [*POLICIES, 'easy(r)'])}") from None
    return name


_BY_NAME, _BY_PARTS = "by name", "by parts"
"""Tags of the two ways to write a policy; no key has a blank in it."""


def _kind_of_policy(value: Any) -> Hashable:
    """Which of the two ways to write a policy is meant, so that an error speaks of that one."""
    return _BY_PARTS if isinstance(value, dict | PolicyConfig) else _BY_NAME


Policy = Annotated[
    Annotated[str, AfterValidator(_known_policy), Tag(_BY_NAME)] | Annotated[PolicyConfig, Tag(_BY_PARTS)],
    Discriminator(_kind_of_policy),
]


class JobClasses(Model):
    """Borders of the job classes (short and long, narrow and wide)."""

    long: Count = 3600
    """A job that runs longer than so many seconds is long."""
    wide: Count = 8
    """A job of more than so many processors is wide."""


class Metrics(Model):
    """How runs are measured."""

    warm_up: Fraction = 0.0
    """Fraction of jobs, in order of submission, left out of job metrics at the beginning."""
    cool_down: Fraction = 0.0
    """Fraction left out at the end."""
    batches: Whole = Field(30, ge=2, le=100_000)
    """Number of batches of consecutive jobs for the intervals of means."""
    bins: Whole = Field(200, ge=1, le=100_000)
    """Number of time bins of the series of utilisation and queue length."""
    classes: JobClasses = JobClasses()
    """Borders of the job classes."""


class StudyConfig(Model):
    """A study: every policy on every workload under every kind of estimate."""

    name: Slug
    """Name of the study and of its folder of results."""
    kind: Literal["local-policies"] = "local-policies"
    """What is studied."""
    title: Annotated[str, Field(min_length=1), AfterValidator(_label)]
    """Title in the report."""
    description: Text = ""
    """What the reader of the report should know first."""
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

    @field_validator("name")
    @classmethod
    def _free_name(cls, name: str) -> str:
        if name.casefold() in RESERVED:
            raise ValueError("this name is taken in the folder of results; choose another")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _unique_files("workloads", [workload.name for workload in self.workloads])
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

    def simulated(self, workload: str) -> Self:
        """As much of the study as the runs of one workload depend on; the rest is as by default.

        A change of the rest, such as another title or a further workload, leaves these runs as they are.
        """
        return self.measured(workload).model_copy(update={"metrics": Metrics()})

    def measured(self, workload: str) -> Self:
        """As much of the study as the runs of one workload and their metrics depend on."""
        rest = {"title": self.name, "description": "", "reference": None}
        return self.model_copy(update={"workloads": (self.workload(workload),), **rest})

    def checksum(self) -> str:
        """SHA-256 of everything the study says."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()


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
    """Largest number of simulations of one workload that one workflow job carries out."""


def local_policy(policy: str | PolicyConfig) -> LocalPolicy:
    """Policy of a study's configuration."""
    return named_policy(policy) if isinstance(policy, str) else policy.policy()


def load_study(path: str | Path) -> StudyConfig:
    """Study of a YAML file; paths in it are relative to the working directory.

    Raises
    ------
    ConfigurationError
        If the file cannot be read or says something that is not allowed; names file and key.
    """
    study = _validated(StudyConfig, _read_yaml(path), str(path))
    for workload in study.workloads:
        if workload.file is not None and not Path(workload.file).is_file():
            raise ConfigurationError(
                f"{path}: workloads[{workload.name}].file: found {_shown(workload.file)}; there is no such "
                f"file, seen from {Path.cwd()}"
            )
    return study


def load_config(
    values: dict[str, Any] | str | Path, where: str = "configuration"
) -> tuple[Config, dict[str, StudyConfig]]:
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
        config = _validated(Config, values, where)
    else:
        config = _validated(Config, _read_yaml(values), str(values))
    studies: dict[str, StudyConfig] = {}
    files: dict[str, str] = {}
    for path in config.studies:
        study = load_study(path)
        other = files.setdefault(study.name.casefold(), path)
        if study.name.casefold() in map(str.casefold, studies):
            raise ConfigurationError(
                f"{path}: name: found {study.name!r}; the study of {other} has this name already, "
                "and both would write to the same folder"
            )
        studies[study.name] = study
    return config, studies


# --- reading --------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """YAML in which a key that is there twice is an error: the first would be lost silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Mapping of a node."""
        seen = []
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark
                )
            seen.append(key.value)
        return super().construct_mapping(node, deep)


def _read_yaml(path: str | Path) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file, seen from {Path.cwd()}") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 text ({error.reason}, byte {error.start})") from None
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigurationError(f"{path}{line}: not YAML ({error.problem or error.context})") from None
    except yaml.reader.ReaderError as error:
        line = f":{text.count(chr(10), 0, error.position) + 1}"
        raise ConfigurationError(f"{path}{line}: not YAML ({error.reason})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: a value that YAML cannot hold ({error})") from None


# --- messages -------------------------------------------------------------------------------------


def _validated(model: type[ModelType], values: Any, where: str) -> ModelType:
    if not isinstance(values, dict):
        found = "nothing in it" if values is None else f"found {_shown(values)}"
        raise ConfigurationError(f"{where}: {found}; write key: value lines")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        raise ConfigurationError(f"{where}: {_explain(first, model, values)}{more}") from None


_ALLOWED = {
    "string_type": "write text, in quotes if it looks like a number or a date",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "float_type": "write a number, with a point and a sign if it has an exponent (1.0e+5)",
    "bool_type": "write true or false",
    "tuple_type": "write a list, such as [a, b]",
    "model_type": "write key: value lines",
    "finite_number": "write a finite number",
    "string_unicode": "write text without broken characters",
}
"""What is allowed, by type of error."""


def _explain(error: Any, model: type[Model], values: dict[str, Any]) -> str:
    """One validation error as: key: what was found; what is allowed."""
    kind, location = error["type"], error["loc"]
    key = _place(location, values)
    if kind == "extra_forbidden":
        return f"{key}: unknown key; {_suggestion(str(location[-1]), _keys_beside(model, location))}"
    if kind == "missing":
        return f"{key}: missing"
    if kind == "value_error":
        allowed = error["msg"].removeprefix("Value error, ")
    elif kind == "string_pattern_mismatch":
        allowed = _PATTERNS[error["ctx"]["pattern"]]
    elif kind in ("too_short", "too_long"):
        limit = error["ctx"].get("min_length", error["ctx"].get("max_length"))
        allowed = f"write at {'least' if kind == 'too_short' else 'most'} {limit}"
    else:
        message = error["msg"]
        allowed = _ALLOWED.get(kind, f"{message[0].lower()}{message[1:]}")
    found = error["input"]
    whole = isinstance(found, dict) or (kind == "value_error" and isinstance(found, list | tuple))
    # Errors of a whole section name the key in it
    start = f"{key}: " if key else ""
    return f"{start}{allowed}" if whole else f"{start}found {_shown(found)}; {allowed}"


def _place(location: tuple[int | str, ...], values: Any) -> str:
    """Location of a key, with the items of lists by their names: workloads[KTH].window.month."""
    place, inside = "", values
    for part in location:
        if isinstance(part, int):
            inside = inside[part] if isinstance(inside, list | tuple) and part < len(inside) else None
            name = inside.get("name") if isinstance(inside, dict) else None
            place += f"[{name}]" if isinstance(name, str) and name.isprintable() else f"[item {part + 1}]"
        elif part not in (_BY_NAME, _BY_PARTS):
            inside = inside.get(part) if isinstance(inside, dict) else None
            shown = part if part.isprintable() else repr(part)
            place += f".{shown}" if place else shown
    return place


def _keys_beside(model: type[Model], location: tuple[int | str, ...]) -> list[str]:
    """Keys that are known where an unknown one was found."""
    current: Any = model
    for part in location[:-1]:
        field = current.model_fields.get(part)
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


def _shown(value: Any) -> str:
    """Value on one line of a message."""
    try:
        text = repr(value) if isinstance(value, str | bool | int | float | list | dict) else str(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:80]}..."


def _unique(key: str, names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{key}: {twice[0]!r} is there twice")


def _unique_files(key: str, names: list[str]) -> None:
    """Names that stay different as file names where case does not count."""
    _unique(key, names)
    folded = [name.casefold() for name in names]
    alike = [name for name in names if folded.count(name.casefold()) > 1]
    if alike:
        raise ValueError(f"{key}: {alike[0]!r} and {alike[1]!r} would be one file where case does not count")

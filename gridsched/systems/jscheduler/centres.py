"""Platforms of many centres: resources with a CPU factor and a local policy, and the log submitted there.

The one that comes with gridsched, `resources/jscheduler.yaml`, is Table 1 of Guim, Garcia, Rodero and
Corbalan, "The XtreemOS JScheduler: using self-scheduling techniques in large computing architectures" (2008).
By section 6.3.1 a job takes its run time in the log times the CPU factor of its resource. Many centres would
then be offered several times the work that they can do; so a factor has three readings:

============  ====================================================
``multiply``  run time x factor, as the paper says
``divide``    run time / factor: a larger factor is a faster cluster
``none``      run time as in the log
============  ====================================================
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from gridsched.engine.records import LARGEST
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.io import read_yaml, resource, shown
from gridsched.platform import Cluster
from gridsched.policies.local import POLICIES, LocalPolicy, named_policy
from gridsched.traces import find_log
from gridsched.workloads.table import Workload

Reading = Literal["multiply", "divide", "none"]
"""What a CPU factor does to run times."""

NO_LOG = "the platform names none"
"""Why the log of a centre is not used that has neither a log nor another reason."""


@dataclass(frozen=True, kw_only=True)
class Centre:
    """A centre of a grid.

    Parameters
    ----------
    name : str
        Name in results and file names.
    log : str, optional
        Log of the archive that is submitted there, by name.
    file : str, optional
        Path of an SWF file of one's own instead, relative to the working directory.
    resources : tuple of (int, int)
        How many resources, and processors of each; several pairs where they differ.
    factor : float
        CPU factor of all resources; see `Reading`.
    policy : str
        Local policy of all resources, by name (`gridsched.policies.local.POLICIES`).
    paper : mapping of str to float, optional
        What the paper measured when each centre had its own log (Table 2): ``wait_mean`` and ``wait_p95``
        [s], ``slowdown_mean`` and ``slowdown_p95``; p95 are 95th percentiles.
    absent : str
        Why jobs of the log are not used; "" if they are.
    """

    name: str
    log: str | None = None
    file: str | None = None
    resources: tuple[tuple[int, int], ...]
    factor: float
    policy: str
    paper: Mapping[str, float] | None = None
    absent: str = ""

    @property
    def processors(self) -> int:
        """Processors of all its resources."""
        return _processors(self.resources)


@dataclass(frozen=True)
class CentrePlatform:
    """Centres of a grid.

    Parameters
    ----------
    centres : tuple of Centre
        The centres, in the order of the file.
    source : str
        Where the platform comes from, in one line.
    """

    centres: tuple[Centre, ...]
    source: str = ""

    def centre(self, name: str) -> Centre:
        """Centre of this name.

        Raises
        ------
        ConfigurationError
            If there is none.
        """
        centres = {centre.name: centre for centre in self.centres}
        if name not in centres:
            raise ConfigurationError(f"the platform has no centre {name!r}; {_suggestion(name, centres)}")
        return centres[name]

    def changed(self, rows: Mapping[str, Mapping[str, Any]]) -> CentrePlatform:
        """A platform of which some centres are different.

        Parameters
        ----------
        rows : mapping of str to mapping
            By name of the centre, what is different: values of `Centre`, such as `policy`.

        Raises
        ------
        ConfigurationError
            If there is no such centre.
        """
        for name in rows:
            self.centre(name)
        return replace(
            self, centres=tuple(replace(centre, **rows.get(centre.name, {})) for centre in self.centres)
        )

    def resources(self, reading: Reading) -> tuple[list[Cluster], list[LocalPolicy], NDArray[np.int64]]:
        """Every resource of the grid by itself.

        Parameters
        ----------
        reading : {"multiply", "divide", "none"}
            What a CPU factor does to run times.

        Returns
        -------
        clusters : list of Cluster
            Named after the centre, and numbered where it has several: LPC/01, LPC/02 ...
        policies : list of LocalPolicy
            Policy of each.
        centre_index : int64[m]
            Index of the centre of each.

        Raises
        ------
        ConfigurationError
            If there is no such reading.
        """
        clusters, policies, centre_index = [], [], []
        for index, centre in enumerate(self.centres):
            processors = [each for number, each in centre.resources for _ in range(number)]
            speed, policy = _speed(centre.factor, reading), named_policy(centre.policy)
            for name, each in zip(_names(centre.name, len(processors)), processors, strict=True):
                clusters.append(Cluster(processors=each, speed=speed, name=name))
                policies.append(policy)
                centre_index.append(index)
        return clusters, policies, np.array(centre_index, np.int64)

    def pool(self, name: str, reading: Reading) -> tuple[Cluster, LocalPolicy]:
        """All processors of a centre as one cluster, and its policy.

        Parameters
        ----------
        name : str
            The centre.
        reading : {"multiply", "divide", "none"}
            What its CPU factor does to run times.

        Raises
        ------
        ConfigurationError
            If there is no such centre or reading.
        """
        centre = self.centre(name)
        speed = _speed(centre.factor, reading)
        return Cluster(processors=centre.processors, speed=speed, name=name), named_policy(centre.policy)


def _speed(factor: float, reading: Reading) -> float:
    """Speed of a cluster with a CPU factor, relative to that of its log."""
    if reading not in get_args(Reading):
        raise ConfigurationError(f"reading is {reading!r}; use one of {', '.join(get_args(Reading))}")
    return {"multiply": 1 / factor, "divide": float(factor), "none": 1.0}[reading]


def _processors(resources: tuple[tuple[int, int], ...]) -> int:
    return sum(number * processors for number, processors in resources)


def check_size(resources: tuple[tuple[int, int], ...]) -> None:
    """Refuse a centre with more processors than can be simulated."""
    processors = _processors(resources)
    if processors > LARGEST:
        raise ValueError(f"resources: {processors} processors; a centre can have {LARGEST}")


def _names(centre: str, number: int) -> list[str]:
    """Names of the resources of a centre, all of the same length."""
    if number == 1:
        return [centre]
    digits = len(str(number))
    return [f"{centre}/{place:0{digits}d}" for place in range(1, number + 1)]


def offered_load(workload: Workload, cluster: Cluster) -> float:
    """Work that is submitted, relative to what a cluster can do from the first submission to the last.

    Parameters
    ----------
    workload : Workload
        Clean jobs. Those that the cluster cannot hold are not counted.
    cluster : Cluster
        The cluster; jobs take its processors and its run times.

    Returns
    -------
    float
        Infinite if all jobs are submitted at one instant, 0 if none fits.
    """
    allocated = cluster.allocation(workload.processors)
    fits = allocated <= cluster.processors
    work = float(allocated[fits] @ cluster.duration(workload.run_time[fits]).astype(np.float64))
    capacity = cluster.processors * float(np.ptp(workload.submit_time)) if len(workload) else 0.0
    if capacity == 0:
        return float("inf") if work else 0.0
    return work / capacity


# --- files ----------------------------------------------------------------------------------------


def _known_log(name: str) -> str:
    """Name of a log in the registry, as it is written there."""
    try:
        return find_log(name).name
    except GridschedError as error:
        raise ValueError(str(error)) from None


def _known_policy(name: str) -> str:
    """Name of a local policy; logs that are fused name no users, from whose jobs one could predict."""
    try:
        policy = named_policy(name)
    except GridschedError:
        raise ValueError(f"unknown policy; {_suggestion(name, (*POLICIES, 'easy(r)'))}") from None
    if policy.predicts:
        known = ", ".join((*POLICIES, "easy(r)"))
        raise ValueError(f"predicts run times by user, and fused logs name no users; use one of {known}")
    return policy.name


def _one_line(text: str) -> str:
    """Text as figures and tables show it."""
    if not text.isprintable() or not text.strip():
        raise ValueError("write printable characters on one line")
    return text.strip()


# Numbers are strict: text, and true or false, are no numbers, whatever Python would make of them
Count = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Number = Annotated[int, Field(strict=True, ge=1, le=2**15 - 1)]
"""Of resources; more cannot be simulated."""
Factor = Annotated[float, Field(strict=True, ge=0.001, le=1000, allow_inf_nan=False)]
Resources = Annotated[tuple[tuple[Number, Count], ...], Field(min_length=1)]
PolicyName = Annotated[str, AfterValidator(_known_policy)]
_Result = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
_Line = Annotated[str, AfterValidator(_one_line)]
_FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
_Path = Annotated[str, Field(pattern=r"^[^{}]+$")]


class _Entry(BaseModel):
    """What every entry of a platform file has in common."""

    model_config = ConfigDict(extra="forbid")


class _Paper(_Entry):
    """Row of Table 2."""

    wait_mean: _Result
    wait_p95: _Result
    slowdown_mean: _Result
    slowdown_p95: _Result


class _CentreEntry(_Entry):
    """A centre as a platform file writes it."""

    name: _FileName
    resources: Resources
    factor: Factor
    policy: PolicyName
    log: Annotated[str, AfterValidator(_known_log)] | None = None
    file: _Path | None = None
    absent: _Line | None = None
    paper: _Paper | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.log is not None and self.file is not None:
            raise ValueError("log, file: give one of them")
        check_size(self.resources)
        return self

    def build(self) -> Centre:
        """The centre."""
        unnamed = NO_LOG if self.log is None and self.file is None else ""
        own = {key: getattr(self, key) for key in ("name", "log", "file", "resources", "factor", "policy")}
        paper = None if self.paper is None else self.paper.model_dump()
        return Centre(**own, paper=paper, absent=self.absent or unnamed)


class _PlatformFile(_Entry):
    """A platform file."""

    source: _Line | None = None
    centres: Annotated[tuple[_CentreEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _different_files(self) -> Self:
        # Results of a centre are files with its name, and there are systems where case does not count
        seen: dict[str, str] = {}
        for name in (centre.name for centre in self.centres):
            other = seen.get(name.casefold())
            if other == name:
                raise ValueError(f"centres: {name!r} is there twice; choose another name")
            if other is not None:
                raise ValueError(f"centres: {other!r} and {name!r} would be one file; choose another name")
            seen[name.casefold()] = name
        return self


def load_platform(path: str | Path | None = None) -> CentrePlatform:
    """Read a platform from a YAML file.

    Parameters
    ----------
    path : path-like, optional
        File of the form of `resources/jscheduler.yaml`, which is the default. A file of one's own may name
        `file`, the path of an SWF file, instead of `log`, or neither; it needs no `source` and no `paper`.

    Returns
    -------
    CentrePlatform
        Every centre has a log or file to use, or says in `absent` why not.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or a value is not allowed; names file, key, value and what is allowed.
    """
    return _shipped() if path is None else _platform(Path(path))


@cache
def _shipped() -> CentrePlatform:
    """The platform that comes with gridsched, read once: every task of a study needs it."""
    source = resource("resources", "jscheduler.yaml")
    platform = _platform(source)
    _check_checksums(source, platform.centres)
    return platform


def _platform(source: Path) -> CentrePlatform:
    """Platform of a file."""
    file = _read(source)
    return CentrePlatform(tuple(entry.build() for entry in file.centres), file.source or source.name)


def _check_checksums(source: Path, centres: Iterable[Centre]) -> None:
    """Refuse logs that could not be verified once they are fetched: results would rest on anything."""
    for centre in centres:
        log = find_log(centre.log) if centre.log and not centre.absent else None
        if log is not None and not (log.sha256_gz or log.sha256_content):
            raise ConfigurationError(
                f"{source}: centres[{centre.name}].log: found {log.name!r}; the registry has no checksum of "
                "it: say so in absent"
            )


def _read(source: Path) -> _PlatformFile:
    """Content of a platform file."""
    values = read_yaml(source)
    if not isinstance(values, dict):
        raise ConfigurationError(f"{source}: found {shown(values)}; write key: value lines")
    try:
        return _PlatformFile.model_validate(values)
    except ValidationError as error:
        # A misprinted key is also a missing one; the misprint says more
        first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        key = _place(first["loc"], values)
        raise ConfigurationError(f"{source}: {key and f'{key}: '}{_problem(first)}") from None


def _place(location: tuple[int | str, ...], values: dict[str, Any]) -> str:
    """Key of a value, centres by their names: centres[KTH-SP2].policy."""
    place = ""
    for depth, part in enumerate(location):
        if isinstance(part, str):
            place += f".{part}" if place else part
            continue
        entry = values["centres"][part] if depth == 1 else None
        name = entry.get("name") if isinstance(entry, dict) else None
        place += f"[{name}]" if isinstance(name, str) and name.isprintable() else f"[item {part + 1}]"
    return place


_ALLOWED = {
    "float_type": "write a number",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "model_type": "write key: value lines",
    "string_type": "write text",
    "tuple_type": "write a list",
    "too_long": "write pairs [how many, processors each]",
    "too_short": "write at least 1",
}
"""What is allowed, by type of error."""

_PATTERNS = {
    "name": "use letters, digits, '.', '_' and '-', and begin with a letter or digit",
    "file": "a path has no braces and is not empty",
}
"""What is allowed, by key."""


def _problem(error: Any) -> str:
    """What is wrong with a value, and what is allowed."""
    kind, key, found = error["type"], error["loc"][-1] if error["loc"] else "", error["input"]
    if kind == "missing":
        return "missing"
    if kind == "extra_forbidden":
        models: dict[int, type[_Entry]] = {1: _PlatformFile, 3: _CentreEntry, 4: _Paper}
        return f"unknown key; {_suggestion(str(key), models[len(error['loc'])].model_fields)}"
    message = error["msg"].removeprefix("Value error, ")
    if kind == "value_error" and isinstance(found, dict):
        return str(message)
    if kind == "string_pattern_mismatch":
        message = _PATTERNS[key]
    message = _ALLOWED.get(kind, message)
    return f"found {shown(found)}; {message[0].lower()}{message[1:]}"


def _suggestion(wrong: str, known: Iterable[str]) -> str:
    """What to use instead of an unknown name."""
    names = list(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    return (f"did you mean {close[0]}? " if close else "") + f"known are {', '.join(names)}"

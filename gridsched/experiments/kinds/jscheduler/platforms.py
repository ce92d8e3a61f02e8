"""Platform files of JScheduler studies: centres with their resources, policies and logs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from gridsched.errors import ConfigurationError, GridschedError
from gridsched.io import read_yaml, resource
from gridsched.policies.local import POLICIES, named_policy
from gridsched.systems.jscheduler.centres import Centre, CentrePlatform, check_size
from gridsched.traces import find_log
from gridsched.validation import (
    ConfigModel,
    Count,
    DifferentFiles,
    Factor,
    Label,
    Number,
    PathText,
    Slug,
    Whole,
    suggestion,
    validated,
)

NO_LOG = "the platform names none"
"""Why the log of a centre is not used that has neither a log nor another reason."""


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
        raise ValueError(f"unknown policy; {suggestion(name, (*POLICIES, 'easy(r)'))}") from None
    if policy.predicts:
        known = ", ".join((*POLICIES, "easy(r)"))
        raise ValueError(f"predicts run times by user, and fused logs name no users; use one of {known}")
    return policy.name


Resources = Annotated[
    tuple[tuple[Annotated[Whole, Field(ge=1, le=2**15 - 1)], Count], ...], Field(min_length=1)
]
"""Pairs of how many, of which more cannot be simulated, and processors of each."""
PolicyName = Annotated[str, AfterValidator(_known_policy)]
_Result = Annotated[Number, Field(ge=0)]


class _Paper(ConfigModel):
    """Row of Table 2."""

    wait_mean: _Result
    wait_p95: _Result
    slowdown_mean: _Result
    slowdown_p95: _Result


class _CentreEntry(ConfigModel):
    """A centre as a platform file writes it."""

    name: Slug
    resources: Resources
    factor: Factor
    policy: PolicyName
    log: Annotated[str, AfterValidator(_known_log)] | None = None
    file: PathText | None = None
    absent: Label | None = None
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


class _PlatformFile(ConfigModel):
    """A platform file."""

    source: Label | None = None
    centres: Annotated[tuple[_CentreEntry, ...], Field(min_length=1), DifferentFiles]
    """Centres, whose results are files with their names."""


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
    file = validated(_PlatformFile, read_yaml(source), str(source))
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

"""The conformance cases: workloads, clusters, and what each pins down."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import yaml
from pydantic import BaseModel, ConfigDict

from gridsched.errors import ConfigurationError
from gridsched.io import UniqueKeyLoader, resource

Kind = Literal["cluster", "superscheduler", "self-scheduling", "calendars", "dynamic-grid", "nodes"]
KINDS: tuple[str, ...] = get_args(Kind)

POLICIES = ("fcfs", "ff", "sjf", "easy", "easy(2)", "sjbf", "lxf", "lxwf", "conservative")
"""The local policies of the cases of one cluster, as the stored schedules order them."""

PASSES = ("instant", "event", "arrivals-first")
"""One scheduling pass after all events of an instant, or one after every event, or so with arrivals first."""

GRID = "grid"
"""Home of a job that is submitted to the grid scheduler."""

NONE = -1
"""No reservation; no start, of a job that does not run."""


class Job(NamedTuple):
    """A job of a case; times in seconds, `home` a cluster, `grid`, or nothing where there is one cluster.

    Of `memory` and `gives_up_time` -1 stands for none, and for never.
    """

    number: int
    submit_time: int
    run_time: int
    requested_time: int
    processors: int
    home: str = ""
    reservation: int = NONE
    memory: int = NONE  # MiB for each processor
    gives_up_time: int = NONE


class Part(NamedTuple):
    """Processors of a cluster that a job had for some time."""

    cluster: str
    processors: int
    start_time: int
    end_time: int


class CaseSchedule(NamedTuple):
    """What a variant makes of the jobs, by number."""

    parts: dict[int, tuple[Part, ...]]
    earliest: dict[int, int]
    """Earliest time that a refused reservation could have had; of these jobs alone."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Exercise(_Strict):
    """A question about a case with some jobs changed, and its answer."""

    question: str
    answer: str
    variant: str
    change: dict[int, dict[str, int]]
    starts: dict[int, int]


class CaseCluster(_Strict):
    """A cluster of a case, or a node; memory in MiB, by default as much as is asked for."""

    processors: int
    speed: float = 1.0
    memory: int | None = None


class Variant(_Strict):
    """A scheduler, or options of one, under which a case of several clusters is run."""

    options: dict[str, Any] = {}
    steps: tuple[str, ...]


class Case(_Strict):
    """A case.

    Parameters
    ----------
    name, title : str
        Names for files and for readers.
    kind : str
        What schedules: the policy of one cluster, also on nodes, or one of the grid schedulers.
    convention : str
        What the case pins down, one sentence.
    account : str
        How, with numbers worked out by hand.
    exercises : sequence of Exercise
        Questions, with answers.
    clusters : mapping of name to CaseCluster
        The platform; in cases of kind "nodes" the nodes of one cluster.
    links : sequence of pairs of names
        Neighbours in a dynamic grid.
    overrun : str
        Where jobs of one cluster exceed their requested time: the convention about their expected ends.
    options : mapping
        Of the scheduler, for all variants.
    variants : mapping of name to Variant
        Of cases of several clusters.
    jobs : sequence of Job
        The workload.
    """

    name: str
    title: str
    kind: Kind = "cluster"
    convention: str
    account: str
    exercises: tuple[Exercise, ...]
    clusters: dict[str, CaseCluster]
    links: tuple[tuple[str, str], ...] = ()
    overrun: str = "doubling"
    options: dict[str, Any] = {}
    variants: dict[str, Variant] = {}
    jobs: tuple[Job, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """What the case has schedules for: `policy:passes`, or the names of its variants."""
        if self.kind != "cluster":
            return tuple(self.variants)
        return tuple(f"{policy}:{passes}" for policy in POLICIES for passes in PASSES)

    @property
    def outruns(self) -> bool:
        """Whether a job exceeds its requested time, so that the convention about that matters."""
        return any(job.run_time > job.requested_time for job in self.jobs)

    def options_of(self, variant: str) -> dict[str, Any]:
        """Options of the scheduler in a variant."""
        return {**self.options, **self.variants[variant].options}

    def changed(self, change: Mapping[int, Mapping[str, int]]) -> Case:
        """The case with other values of some jobs."""
        values = {number: dict[str, Any](fields) for number, fields in change.items()}
        jobs = tuple(job._replace(**values.get(job.number, {})) for job in self.jobs)
        return self.model_copy(update={"jobs": jobs})


def names() -> list[str]:
    """All cases, in the order of the page."""
    return list(_described())


def read_case(name: str) -> Case:
    """A case by its name.

    Raises
    ------
    ConfigurationError
        If there is no such case.
    """
    described = _described()
    if name not in described:
        raise ConfigurationError(f"there is no case {name!r}; the cases are {', '.join(described)}")
    lines = workload_path(name).read_text(encoding="utf-8").splitlines()
    header = dict(line.removeprefix("# ").split(": ") for line in lines if line.startswith("#"))
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    given: dict[str, Any] = {"name": name, "jobs": tuple(_job(row) for row in rows), **described[name]}
    if "processors" in header:
        given["clusters"] = {"": {"processors": int(header["processors"])}}
        given["overrun"] = header["overrun"]
    return Case.model_validate(given)


def read_cases() -> list[Case]:
    """All cases."""
    return [read_case(name) for name in names()]


def workload_path(name: str) -> Path:
    """File of the jobs of a case."""
    return resource("resources", "conformance", "workloads", f"{name}.csv")


def schedule_path(name: str) -> Path:
    """File of the exact schedules of a case."""
    return resource("resources", "conformance", "schedules", f"{name}.csv")


@functools.cache
def _described() -> dict[str, dict[str, Any]]:
    text = resource("resources", "conformance", "cases.yaml").read_text(encoding="utf-8")
    described: dict[str, dict[str, Any]] = yaml.load(text, Loader=UniqueKeyLoader)
    return described


def _job(row: dict[str, str]) -> Job:
    return Job(
        int(row["job"]),
        int(row["submit_time"]),
        int(row["run_time"]),
        int(row["requested_time"]),
        int(row["processors"]),
        row.get("home", ""),
        int(row.get("reservation", NONE)),
        int(row.get("memory", NONE)),
        int(row.get("gives_up_time", NONE)),
    )


# --- schedules ------------------------------------------------------------------------------------


def normalised(parts: list[Part]) -> tuple[Part, ...]:
    """Parts in order of time, with those that follow each other on the same processors put together."""
    merged: list[Part] = []
    for part in sorted(parts, key=lambda part: (part.cluster, part.processors, part.start_time)):
        last = merged[-1] if merged else None
        if last and last[:2] == part[:2] and last.end_time == part.start_time:
            merged[-1] = last._replace(end_time=part.end_time)
        else:
            merged.append(part)
    return tuple(sorted(merged, key=lambda part: (part.start_time, part.cluster)))

"""What a study consists of: tasks that make datasets, figures and tables of them.

A task calls one function of the library with plain values and the files of other tasks. Its *key* is a hash
of everything that its result depends on; the result is stored under that key, so that it is made once,
whatever else of a study changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from gridsched.io import checksum

CONVENTIONS = 1
"""Raised when simulations come to other results although their configuration is the same."""

Stage = Literal["prepare", "predict", "simulate", "collect"]

FOLDERS: dict[Stage, str] = {"prepare": "prepared", "predict": "predicted", "simulate": "runs"}
"""Folders of the stages whose results are stored by key."""


@dataclass(frozen=True)
class ArchiveFile:
    """A log of the Parallel Workloads Archive, fetched by the workflow.

    Parameters
    ----------
    name : str
        Name of its file in the archive, which has its version.
    """

    name: str

    @property
    def key(self) -> str:
        """What tells it from other files."""
        return self.name

    def path(self, results: str) -> str:
        """Where it is once fetched."""
        return f"{results}/archive/{self.name}"


@dataclass(frozen=True)
class OwnFile:
    """A file of the user's, with its content as it was when this was first asked.

    Parameters
    ----------
    file : str
        Its path.
    """

    file: str

    @property
    def key(self) -> str:
        """Its checksum; empty without a file."""
        return _content(str(Path(self.file).resolve()))

    def path(self, results: str) -> str:
        """Where it is, whatever the folder of results."""
        return self.file


@cache
def _content(path: str) -> str:
    return checksum(path) if Path(path).is_file() else ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """One call of a function of the library that makes a dataset.

    Parameters
    ----------
    stage : {"prepare", "predict", "simulate", "collect"}
        Results of the first three are stored by key, those of the last one by name.
    study : str
        Study that it belongs to, which is the name of a folder.
    name : str
        Name for people; of a collected dataset the name of its file.
    function : str
        Place of the function, module:name. It takes the arguments and `target`, the file to write.
    arguments : dict
        By name of the parameter: plain values, in which tasks and files may stand for their paths.
    also : dict
        What else the result depends on, of the same kind as the arguments.
    labels : mapping
        What a run is, for the table of runs; nothing for a task that is no run.
    outputs : tuple of str
        Names of parameters for further files beside the target.
    cost : float
        Expected time [CPU s]; roughly right is enough.
    memory : int
        Expected memory [MB].
    """

    stage: Stage
    study: str
    name: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict)
    also: dict[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    cost: float = 1.0
    memory: int = 1000

    @cached_property
    def key(self) -> str:
        """Hash of all that the result depends on."""
        words = {
            "conventions": CONVENTIONS,
            "function": self.function,
            "arguments": replaced(self.arguments, lambda used: used.key),
            "also": replaced(self.also, lambda used: used.key),
        }
        return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:16]

    @cached_property
    def inputs(self) -> list[Task | ArchiveFile | OwnFile]:
        """Tasks and files that it uses, each once."""
        found: dict[Task | ArchiveFile | OwnFile, None] = {}
        replaced([self.arguments, self.also], lambda used: found.setdefault(used))
        return list(found)

    def path(self, results: str) -> str:
        """The dataset that it makes."""
        if self.stage == "collect":
            return f"{results}/{self.study}/{self.name}.nc"
        return f"{results}/{self.study}/{FOLDERS[self.stage]}/{self.key}.nc"

    def further(self, results: str) -> dict[str, str]:
        """Files beside the dataset, by parameter."""
        stem = self.path(results).removesuffix(".nc")
        return {name: f"{stem}.{name}.nc" for name in self.outputs}

    def call(self, results: str) -> dict[str, Any]:
        """The task as plain values, as workflow rules hand it on."""
        return {
            "study": self.study,
            "name": self.name,
            "function": self.function,
            "arguments": {
                **replaced(self.arguments, lambda used: used.path(results)),
                **self.further(results),
                "target": self.path(results),
            },
            "outputs": [*self.further(results).values(), self.path(results)],
            "inputs": [used.path(results) for used in self.inputs],
            "checksums": {used.file: used.key for used in self.inputs if isinstance(used, OwnFile)},
        }


def replaced(value: Any, by: Callable[[Any], Any]) -> Any:
    """Value with something else in place of the tasks and files in it, such as their paths."""
    if isinstance(value, _USABLE):
        return by(value)
    if isinstance(value, dict):
        return {key: replaced(part, by) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [replaced(part, by) for part in value]
    return value


_USABLE = (Task, ArchiveFile, OwnFile)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a study.

    Parameters
    ----------
    name : str
        Name of its files; what stands before the first hyphen is its kind, which has the caption.
    dataset : Task
        What is drawn.
    output : str
        Name of the further file of the task that is drawn; its dataset by default.
    specification : mapping
        What is shown, see `gridsched.experiments.specification`.
    part : str
        What is drawn of the study: the category in the report of Snakemake.
    title : str
        What of the part is drawn, for people.
    """

    name: str
    dataset: Task
    output: str = ""
    specification: Mapping[str, Any]
    part: str = "Whole study"
    title: str = ""

    @property
    def kind(self) -> str:
        """Kind of figure."""
        return self.name.partition("-")[0]

    def call(self, results: str) -> dict[str, Any]:
        """The figure as plain values, as workflow rules hand it on."""
        return {
            "name": self.name,
            "kind": self.kind,
            "specification": dict(self.specification),
            "dataset": self.dataset.further(results)[self.output]
            if self.output
            else self.dataset.path(results),
        }


@dataclass(frozen=True)
class StudyTable:
    """A table of the dataset of a study.

    Parameters
    ----------
    name : str
        Name of its file.
    function : str
        Place of the function that makes it of the dataset, module:name.
    kind : str
        Name of its caption in the report of Snakemake; none for a table that is too long for it.
    """

    name: str
    function: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What a study comes to.

    Parameters
    ----------
    datasets : sequence of Task
        Collected datasets, that of the study first.
    figures : sequence of Figure
        Figures, those of the whole study first.
    tables : sequence of StudyTable
        Tables of the dataset of the study.
    """

    datasets: Sequence[Task]
    figures: Sequence[Figure]
    tables: Sequence[StudyTable]

    @cached_property
    def tasks(self) -> list[Task]:
        """Every task whose result is stored by key, once, each after those that it uses."""
        found: dict[str, Task] = {}

        @cache
        def visit(task: Task) -> None:
            for used in task.inputs:
                if isinstance(used, Task):
                    visit(used)
            if task.stage != "collect":
                found.setdefault(task.path(""), task)

        for task in (*self.datasets, *(figure.dataset for figure in self.figures)):
            visit(task)
        return list(found.values())

    def runs(self) -> list[dict[str, Any]]:
        """One row a run: its key, the study, what it is made of, and its dataset."""
        return [
            {"run": task.key, "study": task.study, **task.labels, "dataset": task.path("").lstrip("/")}
            for task in self.tasks
            if task.labels
        ]


def function_at(place: str) -> Any:
    """What a module:name stands for."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)

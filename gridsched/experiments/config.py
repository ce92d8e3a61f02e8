"""The configuration as typed models: the whole of it, the head that all studies share, and loading.

What a study of some kind says besides is in the room of its system; `registry` knows the place.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import xarray as xr
from pydantic import Field, field_validator, model_validator

from gridsched.errors import ConfigurationError
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.registry import KINDS, study_kind
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.io import read_yaml, shown
from gridsched.validation import (
    ConfigModel,
    Count,
    Label,
    PathText,
    Slug,
    Text,
    Whole,
    suggestion,
    validated,
)

DEFAULT_KIND = "local-policies"
"""Kind of a study that does not say its own."""

RESERVED = (
    "archive",
    "batches",
    "benchmarks",
    "claims.csv",
    "logs",
    "rates",
    "report.html",
    "report.log",
    "snakemake-report.html",
)
"""Names in the folder of results that are taken, so that no study can have them."""


TABLES = (StudyTable("measures", "gridsched.experiments.collection:measures_table"),)
"""Tables of every study that has the table of measures."""

VARYING: tuple[str, ...] = ("resampling", "shaking", "feedback")
"""Keys of scenarios that change when jobs are submitted, in every run or from replicate to replicate."""


class Study(ConfigModel):
    """What every study says of itself."""

    name: Slug
    """Name of the study and of its folder of results."""
    title: Label
    """Title in the report."""
    question: Text = ""
    """What the study asks, in one sentence."""
    description: Text = ""
    """What the reader of the report should know first."""
    verdicts: ClassVar[str] = ""
    """Place of the function that says, given the dataset, what the ledger shows beside its verdicts: a table
    with columns paper and id of claims, robustness, share, readings and condition."""
    simulates: ClassVar[bool] = True
    """Whether its numbers are those of simulated schedules, whose pitfalls the page names."""
    refuses: ClassVar[Mapping[str, str]] = {}
    """Which of `VARYING` have no meaning in studies of this kind, with the reason."""

    @field_validator("name")
    @classmethod
    def _free_name(cls, name: str) -> str:
        if name.casefold() in RESERVED:
            raise ValueError("this name is taken in the folder of results; choose another")
        return name

    @model_validator(mode="after")
    def _users_do_not_react(self) -> Self:
        for where, workload in self._places():
            if workload.feedback is not None and "feedback" in self.refuses:
                raise ValueError(f"{where}.feedback: {self.refuses['feedback']}")
        return self

    def _places(self) -> Iterator[tuple[str, WorkloadConfig]]:
        """Every workload of the study, with what it belongs to."""
        for workload in self.all_workloads:
            yield f"workloads[{workload.name}]", workload

    def values(self) -> dict[str, Any]:
        """The study as plain values without those that are as by default."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def checksum(self) -> str:
        """SHA-256 of everything the study says."""
        return hashlib.sha256(json.dumps(self.values(), sort_keys=True).encode()).hexdigest()

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study; none where its workloads are those of other studies."""
        return tuple(getattr(self, "workloads", ()))

    @property
    def specifications(self) -> list[Specification]:
        """Figures of the whole study, the one that says most first."""
        return []

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        return []

    def described(self, **more: Any) -> dict[str, Any]:
        """Attributes of the dataset: names, the checksum of the study, and more."""
        return {
            "title": self.title,
            "study": self.name,
            "description": self.description,
            "configuration_hash": self.checksum(),
            **more,
        }

    def page_tables(self, dataset: xr.Dataset) -> list[Any]:
        """Tables of the page (`presentation.tables.PageTable`); the first stands where no ranking does."""
        return []

    def cautions(self, dataset: xr.Dataset) -> list[str]:
        """Limits of studies of this kind: a sentence each."""
        return []

    def drawn(self, dataset: Task) -> list[Figure]:
        """Figures of the whole study, of its dataset."""
        return [
            Figure(name=each.name, dataset=dataset, specification=each.values())
            for each in self.specifications
        ]

    def collected(
        self,
        arguments: Mapping[str, Any],
        function: str = "gridsched.experiments.collection:collect_study",
        *,
        before: Sequence[Figure] = (),
        after: Sequence[Figure] = (),
        further: Sequence[Task] = (),
        tables: Sequence[StudyTable] = TABLES,
        **options: Any,
    ) -> Experiment:
        """All that the study comes to: its dataset, made by a function, and further ones; figures; tables."""
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function=function,
            arguments={**arguments},
            **options,
        )
        return Experiment(
            datasets=[study, *further], figures=[*before, *self.drawn(study), *after], tables=tables
        )

    @abstractmethod
    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; random numbers are spawned from this seed."""

    def check_files(self) -> None:
        """Refuse to begin without files that are no workloads, with a `ConfigurationError`."""

    def with_fewer(self, replicates: int) -> Self:
        """The study with no more replicates than these."""
        if getattr(self, "replicates", 0) <= replicates:
            return self
        return self.model_copy(update={"replicates": replicates})

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        return f"workloads[{workload.name}]"


class Config(ConfigModel):
    """The whole configuration of a workflow run."""

    studies: Annotated[tuple[str, ...], Field(min_length=1)]
    """Paths of study files."""
    results: PathText = "results"
    """Folder of everything that is made."""
    seed: Whole = Field(1, ge=0, lt=2**63)
    """Seed from which every random draw is spawned."""
    mirrors: tuple[Text, ...] = ()
    """Folders or addresses that hold archive logs, tried before `GRIDSCHED_MIRRORS` and the archive."""
    batch_seconds: Annotated[Count, Field(le=1_000_000)] = 300
    """Expected time, in CPU seconds, of the tasks that one workflow job carries out, one after the other."""
    chunk_size: Count | None = None
    """Largest number of tasks of one workflow job, whatever their time."""
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


def study_from(values: Mapping[str, Any]) -> Study:
    """Study of values that have been validated before, as workflow rules hand them on."""
    return study_kind(values.get("kind", DEFAULT_KIND)).model_validate(values)


def _kind_of(values: Any, path: str | Path) -> type[Study]:
    """Model of the kind of study that the values say they are."""
    kind = values.get("kind", DEFAULT_KIND) if isinstance(values, dict) else DEFAULT_KIND
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigurationError(f"{path}: kind: found {shown(kind)}; {suggestion(str(kind), KINDS)}")
    return study_kind(kind)


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
    if not isinstance(values, dict):
        values, where = read_yaml(values), str(values)
    config = validated(Config, values, where)
    studies: dict[str, Study] = {}
    files: dict[str, str] = {}
    for path in config.studies:
        study = load_study(path)
        folder = study.name.casefold()
        if folder in files:
            raise ConfigurationError(
                f"{path}: name: found {study.name!r}; the study of {files[folder]} has this name already, "
                "and both would write to the same folder"
            )
        files[folder] = path
        studies[study.name] = study if config.replicates is None else study.with_fewer(config.replicates)
    return config, studies

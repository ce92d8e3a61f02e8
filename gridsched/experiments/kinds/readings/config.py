"""Studies of readings: every claim of a paper under many values of what the paper leaves open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import xarray as xr
from pydantic import Field, StrictBool, model_validator

from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import load_claims, studies_of
from gridsched.experiments.config import VARYING, Study, load_study
from gridsched.experiments.kinds.readings import tables
from gridsched.experiments.kinds.readings.choices import (
    ChoiceValue,
    ClaimLabels,
    PaperReadings,
    TestableClaim,
    draw_design,
    load_readings,
    name_of,
    together,
    with_changes,
)
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Experiment, OwnFile, StudyTable, Task, replaced
from gridsched.inference import share
from gridsched.io import resource
from gridsched.presentation.sentences import count, percent
from gridsched.presentation.tables import PageTable
from gridsched.validation import (
    ConfigModel,
    Label,
    PathText,
    Text,
    Whole,
    suggestion,
    unique,
    validated,
)

_HERE = "gridsched.experiments.kinds.readings"

_CLASSES = (
    "Robust: at least 90 % of the interpretations drawn reproduce the claim; contradicted: at most 5 % do; "
    "contingent: in between."
)


class BaseStudyConfig(ConfigModel):
    """A study of the paper, or a part of it, of which every reading makes a variation."""

    study: PathText
    """Path of its file."""
    keep: dict[str, tuple[Label, ...]] = Field({})
    """By key with a list, such as `scenarios` or `schedulers`, the names of the members that are kept; all by
    default. Claims about others are not judged."""
    changes: dict[str, Any] = Field({})
    """What is changed in all readings, to make it smaller: path of a key, as in files of readings, and its
    value."""
    claims: ClaimLabels = ClaimLabels()
    """Which labels claims about it are about in all readings, because it is smaller; before what values of
    choices change."""


class ReadingsStudy(Study):
    """A study of readings: every claim of a paper under many combinations of what the paper leaves open."""

    verdicts = f"{_HERE}.tables:verdicts_table"
    refuses = dict.fromkeys(VARYING, "the studies that it varies say it, in their scenarios")

    question: Text = "Which claims of the paper depend on how it is interpreted, and on what?"
    """What the study asks, in one sentence."""
    kind: Literal["readings"]
    """What is studied."""
    readings: PathText
    """The open choices: name of a paper whose readings come with gridsched, or path of a file."""
    studies: Annotated[tuple[BaseStudyConfig, ...], Field(min_length=1)]
    """Studies that answer the claims of the paper."""
    claims: PathText | None = None
    """Path of a file of claims; by default those of the paper that come with gridsched."""
    leave_out: tuple[Label, ...] = ()
    """Claims that the smaller studies cannot answer, such as numbers of jobs: their ids, or what several ids
    begin with up to a hyphen."""
    partial: StrictBool = False
    """Whether a claim about several labels, such as the points of a figure, is judged on those of them that
    are kept; else it is left out unless all are kept."""
    runs: Annotated[Whole, Field(ge=2, le=100_000)] = 200
    """Readings that are drawn, besides the default one: Latin hypercubes of 100 in which each value of a
    choice is as frequent as the others. More of them contain those of fewer hundreds."""
    seed: Annotated[Whole, Field(ge=0, le=2**31)] = 1
    """Seed of the readings that are drawn, whatever that of the configuration."""

    @model_validator(mode="after")
    def _files_differ(self) -> Self:
        unique("studies", [base.study for base in self.studies])
        return self

    def check_files(self) -> None:
        """Refuse readings and studies that do not go together, and files that are not there."""
        for base in self.bases.values():
            base.check_files()
        for choice in self.paper.choices:
            for value in choice.values:
                where = f"{self.readings_file}: choices[{choice.name}].values[{value.name}].changes"
                for name, changes in value.changes.items():
                    if name not in self.bases:
                        raise ConfigurationError(f"{where}: found {name!r}; {suggestion(name, self.bases)}")
                    self._changed(name, changes, f"{where}.{name}")

    # --- what is read ---------------------------------------------------------------------------------

    @property
    def readings_file(self) -> Path:
        """File of the open choices.

        Raises
        ------
        ConfigurationError
            If there is none.
        """
        shipped = {path.stem: path for path in sorted(resource("resources", "readings").glob("*.yaml"))}
        found = Path(self.readings) if Path(self.readings).is_file() else shipped.get(self.readings)
        if found is None:
            raise ConfigurationError(
                f"readings: found {self.readings!r}; there is no such file, seen from {Path.cwd()}, "
                f"and {suggestion(self.readings, shipped)}"
            )
        return found

    @cached_property
    def paper(self) -> PaperReadings:
        """The open choices of the paper."""
        return load_readings(self.readings_file)

    @cached_property
    def bases(self) -> dict[str, Study]:
        """The studies, as far as they are kept, by name."""
        return dict(map(self._base, self.studies))

    def _base(self, config: BaseStudyConfig) -> tuple[str, Study]:
        """Name of a study, and what is kept of it."""
        whole = load_study(config.study)
        where = f"studies[{config.study}]"
        values = whole.values()
        for key, names in config.keep.items():
            members = values.get(key)
            if not isinstance(members, list):
                raise ConfigurationError(f"{where}.keep: {key}: the study has no such list")
            known = [name_of(member) for member in members]
            for name in (name for name in names if name not in known):
                raise ConfigurationError(f"{where}.keep.{key}: found {name!r}; {suggestion(name, known)}")
            values[key] = [member for member in members if name_of(member) in names]
        changed = with_changes(values, config.changes, f"{where}.changes")
        return whole.name, validated(type(whole), changed, where)

    def _changed(self, name: str, changes: Mapping[str, Any], where: str) -> Study:
        """A study with changes."""
        base = self.bases[name]
        return validated(type(base), with_changes(base.values(), changes, where), where) if changes else base

    @property
    def claims_file(self) -> Path:
        """File of the claims that are judged."""
        return Path(self.claims or resource("resources", "claims") / f"{self.paper.paper}.yaml")

    @cached_property
    def judged(self) -> dict[tuple[str, ...], list[TestableClaim]]:
        """Claims with a value of ours, by the studies that they are about, all of which are here."""
        claims = [
            claim
            for claim in load_claims([self.claims_file])
            if isinstance(claim, TestableClaim) and set(studies_of(claim)) <= set(self.bases)
        ]
        stems = {
            claim.id: [stem for stem in self.leave_out if f"{claim.id}-".startswith(f"{stem}-")]
            for claim in claims
        }
        for stem in sorted(set(self.leave_out).difference(*stems.values())):
            raise ConfigurationError(
                f"leave_out: found {stem!r}; no claim that could be judged has an id that begins with it"
            )
        found: dict[tuple[str, ...], list[TestableClaim]] = {}
        for claim in claims:
            if not stems[claim.id]:
                found.setdefault(tuple(studies_of(claim)), []).append(claim)
        if not found:
            raise ConfigurationError(f"{self.claims_file}: no claim is about {', '.join(self.bases)} alone")
        return found

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; the studies have the seed of the configuration."""
        places = draw_design(self.paper, self.runs, self.seed)
        variations: dict[tuple[str, str], Task] = {}
        return self.collected(
            {
                "study": self.values(),
                "readings": places,
                "parts": [
                    [self._judgement(reading, names, seed, variations) for names in self.judged]
                    for reading in places
                ],
            },
            f"{_HERE}.stages:aggregate_readings_study",
            also={"readings": OwnFile(str(self.readings_file)), "claims": OwnFile(str(self.claims_file))},
            tables=[
                StudyTable("claims", f"{_HERE}.tables:claims_of_readings", "readings_claims"),
                StudyTable("importance", f"{_HERE}.tables:importance_table", "readings_importance"),
                StudyTable("readings", f"{_HERE}.tables:readings_table", "readings"),
            ],
        )

    @property
    def specifications(self) -> list[Specification]:
        """Claims by class, claims by the choices that matter for them, every outcome."""
        return [
            Specification(
                name="claims",
                form="composition",
                title="Robust, contingent and contradicted claims",
                measures=("claims", "claims_missed"),
                hue="table",
                lanes="robustness_class",
                facets="",
                reference="",
                caption=_CLASSES,
                finding=f"{_HERE}.findings:robust_claims",
            ),
            Specification(
                name="choices",
                form="composition",
                title="Contingent claims by the importance of each choice",
                measures=("claims_decided",),
                hue="choice",
                lanes="effect",
                facets="",
                reference="",
                caption=(
                    "Importance: decrease of the accuracy with which trees predict whether a claim holds, "
                    "when the values of the choice are permuted. Significant: the interval, simultaneous for "
                    "the choices of a claim (not for all claims), excludes 0. Claims for which a choice "
                    "cannot matter are left out."
                ),
                finding=f"{_HERE}.findings:deciding_choices",
            ),
            Specification(
                name="outcomes",
                form="map",
                title="Outcome of every claim under every interpretation",
                reference="",
                caption=(
                    "Rows: claims, by table of the paper; pale where an interpretation means another claim. "
                    "Columns: interpretations. Right: share of the interpretations that reproduce the claim, "
                    "with lines at 5 % and 90 %; its 95 % interval (Wilson) is in the numbers."
                ),
                own=f"{_HERE}.drawing:outcome_map",
                finding=f"{_HERE}.findings:outcomes",
            ),
        ]

    def page_tables(self, dataset: xr.Dataset) -> list[PageTable]:
        """Tables of the page, that of claims first."""
        return [
            tables.of_tables(dataset),
            tables.choices(self.paper, dataset),
            tables.best(dataset),
            tables.directions(dataset),
            *([tables.pairs(dataset)] if dataset.sizes["pair"] else []),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How claims were judged: a sentence each."""
        return [
            f"An interpretation is one value of each open choice. {self.runs} were drawn (Latin hypercubes "
            "of 100), besides the default, which the studies of the paper have.",
            "Each claim is judged under each interpretation by the code that judges the ledger.",
            _CLASSES,
            "Shares have Wilson's intervals. A condition is found on half of the interpretations and counted "
            "on the others, or on a single choice counted on all; conditions are corrected (Holm) for the "
            "number of claims.",
        ]

    def cautions(self, dataset: xr.Dataset) -> list[str]:
        """What limits the study: a sentence each."""
        width = share(self.runs / 2, self.runs)
        left = int(dataset.attrs["claims_left_out"])
        return [
            "Shares measure how much a claim depends on what is open, not how probable it is.",
            f"The 95 % interval of a share is up to {percent(float(width.high - width.low))} wide.",
            *([f"Not judged, for want of runs: {count(left, 'claim')}."] if left else []),
        ]

    def _judgement(
        self,
        reading: Sequence[int],
        names: Sequence[str],
        seed: int,
        variations: dict[tuple[str, str], Task],
    ) -> Task:
        """Claims about some studies, judged under a reading; one task for all that have the same there."""
        values = self.paper.values(reading)
        bases = [base for name, base in zip(self.bases, self.studies, strict=True) if name in names]
        labels = together([*(base.claims for base in bases), *(value.claims for value in values)])
        return Task(
            stage="simulate",
            study=self.name,
            name=f"claims about {', '.join(names)}",
            function=f"{_HERE}.stages:judge_claims",
            arguments={
                "claims": OwnFile(str(self.claims_file)),
                "labels": labels.model_dump(mode="json", exclude_defaults=True),
                **({"partial": True} if self.partial else {}),
                "datasets": {name: self._variation(name, values, seed, variations) for name in names},
            },
            cost=0.3,
        )

    def _variation(
        self, name: str, values: Sequence[ChoiceValue], seed: int, variations: dict[tuple[str, str], Task]
    ) -> Task:
        """Dataset of a study under a reading."""
        changes = {path: value for each in values for path, value in each.changes.get(name, {}).items()}
        key = name, json.dumps(changes, sort_keys=True)
        if key not in variations:
            changed = self._changed(name, changes, f"{self.readings_file}: {name}")
            # Words that only the report shows change no result
            words = {"title": changed.name, "question": "", "description": ""}
            made = changed.model_copy(update=words).experiment(seed)
            variations[key] = self._stored_by_key(made.datasets[0], name)
        return variations[key]

    def _stored_by_key(self, task: Task, name: str) -> Task:
        """A collected dataset as one that is stored by its key, with the collected ones that it uses."""

        def stored(used: Any) -> Any:
            is_collected = isinstance(used, Task) and used.stage == "collect"
            return self._stored_by_key(used, name) if is_collected else used

        return replace(
            task,
            stage="simulate",
            study=self.name,
            name=f"a variation of {name}",
            arguments=replaced(task.arguments, stored),
            also=replaced(task.also, stored),
        )

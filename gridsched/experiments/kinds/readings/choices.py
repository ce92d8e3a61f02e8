"""What a paper leaves open: choices with their values, and how each value changes studies and claims.

A file of readings (`resources/readings/*.yaml`) lists the open choices of one paper. The default value of a
choice changes nothing: it is what the studies of the paper have. A *reading* is one value of each choice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, StrictBool, model_validator
from scipy.stats import qmc

from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import Claim, OrderClaim, Source, studies_of
from gridsched.experiments.validation import ConfigModel, Label, Slug, Text, suggestion, unique, validated
from gridsched.io import read_yaml, resource

Scalar = str | int | float


class ClaimLabels(ConfigModel):
    """How a value changes which labels of the datasets claims are about."""

    without: dict[str, tuple[Label, ...]] = Field({})
    """By dimension, labels that are not meant where a claim names several: a claim of one of them alone does
    not belong to the reading. Under `variable`, variables."""
    instead: dict[str, dict[Label, Label]] = Field({})
    """By dimension, other labels that stand for those that claims name; under `variable`, other variables."""


class ChoiceValue(ConfigModel):
    """A value of an open choice."""

    name: Label
    """Name in figures and sentences."""
    meaning: Text = ""
    """What it means."""
    likelier: Text = ""
    """Which other source makes it likelier than the other values, and why."""
    changes: dict[Slug, dict[str, Any]] = Field({})
    """By study, what it changes there: path of a key, such as `schedulers[combined].levels.0.bump`, and its
    value. In brackets stands the name of a member of a list, `key=value` for all members with this value, or
    `*` for all; a number is the place of a member, from 0."""
    claims: ClaimLabels = ClaimLabels()
    """How it changes which labels claims are about."""
    drawn: StrictBool = True
    """Whether readings are drawn that have it; the default of the ledger need not be a possible reading."""

    @property
    def changes_nothing(self) -> bool:
        """Whether the studies and the ledger have it as they are."""
        return not self.changes and self.claims == ClaimLabels()


class Choice(ConfigModel):
    """Something that a paper leaves open."""

    name: Label
    """Name in figures and sentences."""
    question: Text
    """What is open."""
    where: Label
    """Section, table or figure that leaves it open."""
    silence: Text
    """What the paper says of it, in our own words."""
    default: Label
    """Value that the studies of the paper have, which changes nothing."""
    values: Annotated[tuple[ChoiceValue, ...], Field(min_length=2)]
    """The values."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [value.name for value in self.values]
        unique("values", names)
        if self.default not in names:
            raise ValueError(f"default: found {self.default!r}; {suggestion(self.default, names)}")
        for value in self.values:
            if (value.name == self.default) != value.changes_nothing:
                what = "something" if value.name == self.default else "nothing"
                raise ValueError(
                    f"values[{value.name}]: changes {what}; the default, and only the default, is what the "
                    "studies have"
                )
        if not self.drawn:
            raise ValueError("values: no reading is drawn that has any of them; let some be drawn")
        return self

    @property
    def drawn(self) -> list[int]:
        """Places of the values that readings are drawn of."""
        return [place for place, value in enumerate(self.values) if value.drawn]

    @property
    def default_place(self) -> int:
        """Place of the default among the values."""
        return [value.name for value in self.values].index(self.default)


class PaperReadings(ConfigModel):
    """The open choices of one paper."""

    paper: Slug
    """Name of the paper, as in the names of its claims."""
    choices: Annotated[tuple[Choice, ...], Field(min_length=1)]
    """The choices."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        unique("choices", [choice.name for choice in self.choices])
        return self

    def values(self, reading: Sequence[int]) -> list[ChoiceValue]:
        """Values of a reading, which is a place in the values of each choice."""
        return [choice.values[place] for choice, place in zip(self.choices, reading, strict=True)]


def readings_file(name: str) -> Path:
    """File of a paper whose readings come with gridsched, by its name, or a file of one's own, by its path.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    if Path(name).is_file():
        return Path(name)
    shipped = {path.stem: path for path in sorted(resource("resources", "readings").glob("*.yaml"))}
    if name not in shipped:
        raise ConfigurationError(
            f"readings: found {name!r}; there is no such file, seen from {Path.cwd()}, "
            f"and {suggestion(name, shipped)}"
        )
    return shipped[name]


def load_readings(path: str | Path) -> PaperReadings:
    """Open choices of a file.

    Raises
    ------
    ConfigurationError
        If it cannot be read or says something that is not allowed; names file and key.
    """
    return validated(PaperReadings, read_yaml(path), str(path))


# --- what a value changes in studies --------------------------------------------------------------

_STEPS = re.compile(r"\[([^\[\]]+)\]|\.?([^.\[\]]+)")


def with_changes(values: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Values of a study with others at some paths.

    Parameters
    ----------
    values : mapping
        What the study says.
    changes : mapping
        By path (see `ChoiceValue.changes`) the value there.
    where : str
        Beginning of messages.

    Raises
    ------
    ConfigurationError
        If a path leads nowhere; names it.
    """
    changed = deepcopy(dict(values))
    for path, value in changes.items():
        steps = [(selector, key) for selector, key in _STEPS.findall(path)]
        if "".join(f"[{selector}]" if selector else f".{key}" for selector, key in steps) not in (
            path,
            f".{path}",
        ):
            raise ConfigurationError(f"{where}: {path}: write a path such as schedulers[easy].reservations")
        _put(changed, steps, value, f"{where}: {path}")
    return changed


def _put(inside: Any, steps: Sequence[tuple[str, str]], value: Any, where: str) -> None:
    """Put a value at the end of some steps."""
    (selector, key), *rest = steps
    for place in _members(inside, selector, where) if selector else [_place(inside, key, where)]:
        if not rest:
            inside[place] = deepcopy(value)
            continue
        if isinstance(inside, dict) and inside.get(place) is None:
            inside[place] = {}
        if isinstance(inside[place], str):
            # A scheduler that is written as a name
            inside[place] = {"name": inside[place], "scheduler": inside[place]}
        _put(inside[place], rest, value, where)


def _place(inside: Any, key: str, where: str) -> Any:
    """Place of a step by key, or by number in a list."""
    if isinstance(inside, dict):
        return key
    if isinstance(inside, list) and key.isdigit() and int(key) < len(inside):
        return int(key)
    found = f"a list of {len(inside)}" if isinstance(inside, list) else "a value without keys"
    raise ConfigurationError(f"{where}: there is no {key!r} in {found}")


def _members(inside: Any, selector: str, where: str) -> list[int]:
    """Places of the members of a list that are meant."""
    if not isinstance(inside, list):
        raise ConfigurationError(f"{where}: [{selector}] stands for members of a list, and here is none")
    key, equals, wanted = selector.partition("=")
    if selector == "*":
        found = list(range(len(inside)))
    elif equals:
        written = [each if isinstance(each, dict) else {"scheduler": each} for each in inside]
        found = [i for i, each in enumerate(written) if str(each.get(key)) == wanted]
    else:
        found = [i for i, each in enumerate(inside) if name_of(each) == selector]
    if not found:
        known = suggestion(selector, map(name_of, inside))
        raise ConfigurationError(f"{where}: there is no [{selector}]; {known}")
    return found


def name_of(member: Any) -> str:
    """Name of a scenario or scheduler as it is written."""
    return str(member.get("name", member.get("scheduler", ""))) if isinstance(member, dict) else str(member)


# --- what a value changes in claims ---------------------------------------------------------------


def together(parts: Sequence[ClaimLabels]) -> ClaimLabels:
    """What several changes of labels come to, made one after the other: those of all values of a reading.

    A label that stands for another one may be replaced by a later change: "policy easy, graph complete" by
    "graph complete", and that by "default".
    """
    without: dict[str, tuple[str, ...]] = {}
    instead: dict[str, dict[str, str]] = {}
    for part in parts:
        without |= part.without
        for dimension, labels in part.instead.items():
            before = {own: labels.get(label, label) for own, label in instead.get(dimension, {}).items()}
            instead[dimension] = {**labels, **before}
    return ClaimLabels(without=without, instead=instead)


def read_as(claim: Claim, labels: ClaimLabels) -> Claim:
    """A claim about the labels that a reading means."""
    source = claim.source
    if source is None:
        return claim
    changes: dict[str, Any] = {"ours": _source_as(source, labels)}
    if isinstance(claim, OrderClaim):
        changes["chain"] = tuple(_select_as(member, labels) for member in claim.chain)
    return claim.model_copy(update=changes)


def on_what_is_kept(claim: Claim, known: Mapping[str, Mapping[str, Collection[Any]]]) -> tuple[Claim, str]:
    """A claim about several labels, of which the studies have only some, as one about these.

    Parameters
    ----------
    claim : Claim
        The claim.
    known : mapping
        By study and dimension, the labels that it has.

    Returns
    -------
    Claim, str
        The claim, and the labels that are left, if any are lacking; as it was where it would be about
        nothing.
    """
    source = claim.source
    if source is None:
        return claim, ""
    left: list[str] = []

    def kept(select: Mapping[str, Any]) -> dict[str, Any]:
        """The selection with those labels that the study has; without a dimension of which it has none."""
        labels = known.get(str(select.get("study", source.study)), {})
        made: dict[str, Any] = {}
        for name, chosen in select.items():
            several = isinstance(chosen, tuple)
            own = tuple(
                label for label in (chosen if several else (chosen,)) if label in labels.get(name, (label,))
            )
            if several and own and own != chosen:
                left.extend(map(str, own))
            if own:
                made[name] = own if several else own[0]
        return made

    select = {**source.select, **kept(source.select)}
    changes: dict[str, Any] = {"ours": source.model_copy(update={"select": select})}
    if isinstance(claim, OrderClaim):
        found = [kept(member) for member in claim.chain]
        members = [one for one, whole in zip(found, claim.chain, strict=True) if one.keys() == whole.keys()]
        if len(members) > 1:
            changes["chain"] = tuple(members)
            if len(members) < len(claim.chain):
                left.extend(str(label) for member in members for label in member.values())
    return (claim.model_copy(update=changes), ", ".join(dict.fromkeys(left))) if left else (claim, "")


def belongs(claim: Claim, labels: ClaimLabels) -> bool:
    """Whether a claim, as the ledger has it, belongs to a reading: it is not about another label alone."""
    if claim.source is None:
        return True
    chosen = {**claim.source.select, "variable": claim.source.variable}
    return all(chosen.get(dimension) not in others for dimension, others in labels.without.items())


def can_matter(choice: Choice, claim: Claim) -> bool:
    """Whether some value of a choice changes a study that a claim is about, or which labels it is about."""
    if any(set(studies_of(claim)) & set(value.changes) for value in choice.values):
        return True
    return any(read_as(claim, value.claims) != claim for value in choice.values)


def _source_as(source: Source, labels: ClaimLabels) -> Source:
    variable = _select_as({"variable": source.variable}, labels)
    changes: dict[str, Any] = {**variable, "select": _select_as(source.select, labels)}
    if source.relative_to is not None:
        changes["relative_to"] = _select_as(source.relative_to, labels)
    return source.model_copy(update=changes)


def _select_as(select: Mapping[str, Any], labels: ClaimLabels) -> dict[str, Any]:
    """Selection in which other labels stand for some, and one for several where one is meant."""
    made: dict[str, Any] = {}
    for dimension, chosen in select.items():
        several = isinstance(chosen, tuple)
        instead = labels.instead.get(dimension, {})
        own = tuple(instead.get(label, label) for label in (chosen if several else (chosen,)))
        others = labels.without.get(dimension, ())
        meant = tuple(dict.fromkeys(label for label in own if label not in others)) or own
        made[dimension] = meant if several else own[0]
    return made


# --- readings that are drawn ------------------------------------------------------------------------

SLICE = 100
"""Readings of a Latin hypercube; a larger design is several, so that it contains the smaller ones."""


def draw_design(paper: PaperReadings, runs: int, seed: int) -> list[list[int]]:
    """Readings as places among the values of each choice.

    The unit interval of each dimension of a Latin hypercube (McKay, Beckman and Conover, Technometrics 21,
    1979) is divided evenly among the values of a choice: in every hundred readings each is as frequent as the
    others, but for one.

    Parameters
    ----------
    paper : PaperReadings
        The choices.
    runs : int
        Readings that are drawn.
    seed : int
        Of what is drawn.

    Returns
    -------
    list of list of int
        The default reading, then those that are drawn; a place for each choice.
    """
    sampler = qmc.LatinHypercube(d=len(paper.choices), rng=np.random.default_rng(seed))
    points = np.concatenate([sampler.random(min(SLICE, runs - done)) for done in range(0, runs, SLICE)])
    drawn = [
        np.array(choice.drawn)[(column * len(choice.drawn)).astype(np.int64)]
        for choice, column in zip(paper.choices, points.T, strict=True)
    ]
    return [[choice.default_place for choice in paper.choices], *np.stack(drawn, axis=1).tolist()]

"""What a paper leaves open: choices with their values, and how each value changes studies and claims.

A file of readings (`resources/readings/*.yaml`) lists the open choices of one paper. The default value of a
choice changes nothing: it is what the studies of the paper have. A *reading* is one value of each choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, StrictBool, model_validator
from scipy.stats import qmc

from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import BoundClaim, OrderClaim, ValueClaim, studies_of
from gridsched.io import read_yaml
from gridsched.validation import (
    ConfigModel,
    Different,
    Label,
    Slug,
    Text,
    check_known,
    suggestion,
    validated,
)

TestableClaim = ValueClaim | OrderClaim | BoundClaim
"""A claim with a value of ours."""


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
    values: Annotated[tuple[ChoiceValue, ...], Field(min_length=2), Different]
    """The values."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_known("default", self.default, [value.name for value in self.values])
        for value in self.values:
            changes = "something" if value.changes or value.claims != ClaimLabels() else "nothing"
            if (value.name == self.default) != (changes == "nothing"):
                raise ValueError(
                    f"values[{value.name}]: changes {changes}; the default, and only the default, is what "
                    "the studies have"
                )
        if not self.drawn:
            raise ValueError("values: no reading is drawn that has any of them; let some be drawn")
        return self

    @property
    def drawn(self) -> list[int]:
        """Places of the values that readings are drawn of."""
        return [place for place, value in enumerate(self.values) if value.drawn]


class PaperReadings(ConfigModel):
    """The open choices of one paper."""

    paper: Slug
    """Name of the paper, as in the names of its claims."""
    choices: Annotated[tuple[Choice, ...], Field(min_length=1), Different]
    """The choices."""

    def values(self, reading: Sequence[int]) -> list[ChoiceValue]:
        """Values of a reading, which is a place in the values of each choice."""
        return [choice.values[place] for choice, place in zip(self.choices, reading, strict=True)]


def load_readings(path: str | Path) -> PaperReadings:
    """Open choices of a file.

    Raises
    ------
    ConfigurationError
        If it cannot be read or says something that is not allowed; names file and key.
    """
    return validated(PaperReadings, read_yaml(path), str(path))


# --- what a value changes in studies --------------------------------------------------------------

_STEP = r"\[([^\[\]]+)\]|(?:\.|^)([^.\[\]]+)"
"""A selector in brackets, or a key."""


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
        if not re.fullmatch(f"(?:{_STEP})+", path):
            raise ConfigurationError(f"{where}: {path}: write a path such as schedulers[easy].reservations")
        _put(changed, re.findall(_STEP, path), value, f"{where}: {path}")
    return changed


def _put(inside: Any, steps: Sequence[tuple[str, str]], value: Any, where: str) -> None:
    """Put a value at the end of some steps."""
    (selector, key), *rest = steps
    for place in _members(inside, selector, where) if selector else [_place(inside, key, where)]:
        if not rest:
            inside[place] = deepcopy(value)
        else:
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
    values = [str(_written(each).get(key)) if equals else name_of(each) for each in inside]
    found = [i for i, value in enumerate(values) if selector == "*" or value == (wanted if equals else key)]
    if not found:
        raise ConfigurationError(
            f"{where}: there is no [{selector}]; {suggestion(selector, map(name_of, inside))}"
        )
    return found


def _written(member: Any) -> dict[str, Any]:
    """A scenario or scheduler as it is written, a name as that of a scheduler."""
    return member if isinstance(member, dict) else {"scheduler": member}


def name_of(member: Any) -> str:
    """Name of a scenario or scheduler as it is written."""
    return str(_written(member).get("name", _written(member).get("scheduler", "")))


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
            before = instead.get(dimension, {})
            instead[dimension] = labels | {own: labels.get(label, label) for own, label in before.items()}
    return ClaimLabels(without=without, instead=instead)


def read_as(claim: TestableClaim, labels: ClaimLabels) -> TestableClaim:
    """A claim about the labels that a reading means."""

    def meant(dimension: str, written: Sequence[Any]) -> Collection[Any]:
        instead, others = labels.instead.get(dimension, {}), labels.without.get(dimension, ())
        own = [instead.get(label, label) for label in written]
        return dict.fromkeys(label for label in own if label not in others) or own

    source = claim.ours
    return _about(
        claim,
        [_relabelled(member, meant) for member in _chain(claim)],
        **_relabelled({"variable": source.variable}, meant),
        select=_relabelled(source.select, meant),
        relative_to=_relabelled(source.relative_to or {}, meant) or None,
    )


def on_what_is_kept(
    claim: TestableClaim, known: Mapping[str, Mapping[str, Collection[Any]]]
) -> tuple[TestableClaim, str]:
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
    left: list[Any] = []

    def kept(select: Mapping[str, Any]) -> dict[str, Any]:
        """The selection with those labels that the study has; without a dimension of which it has none."""
        own = known.get(str(select.get("study", claim.ours.study)), {})
        made = _relabelled(
            select,
            lambda dimension, written: [label for label in written if label in own.get(dimension, (label,))],
        )
        left.extend(label for name, labels in made.items() if labels != select[name] for label in labels)
        return made

    select = {**claim.ours.select, **kept(claim.ours.select)}
    chain = _chain(claim)
    members = [
        made for made, whole in zip(map(kept, chain), chain, strict=True) if made.keys() == whole.keys()
    ]
    if 1 < len(members) < len(chain):
        left.extend(label for member in members for label in member.values())
    made = _about(claim, members if len(members) > 1 else chain, select=select)
    return made, ", ".join(dict.fromkeys(map(str, left)))


def belongs(claim: TestableClaim, labels: ClaimLabels) -> bool:
    """Whether a claim, as the ledger has it, belongs to a reading: it is not about another label alone."""
    chosen = {**claim.ours.select, "variable": claim.ours.variable}
    return all(chosen.get(dimension) not in others for dimension, others in labels.without.items())


def can_matter(choice: Choice, claim: TestableClaim) -> bool:
    """Whether some value of a choice changes a study that a claim is about, or which labels it is about."""
    about = set(studies_of(claim))
    return any(about & set(value.changes) or read_as(claim, value.claims) != claim for value in choice.values)


def _relabelled(
    select: Mapping[str, Any], labels: Callable[[str, Sequence[Any]], Iterable[Any]]
) -> dict[str, Any]:
    """Selection with other labels, of which a list stays a list; without dimensions that have none."""
    made = {
        dimension: tuple(labels(dimension, written if isinstance(written, tuple) else (written,)))
        for dimension, written in select.items()
    }
    return {key: own if isinstance(select[key], tuple) else own[0] for key, own in made.items() if own}


def _chain(claim: TestableClaim) -> Sequence[Mapping[str, Any]]:
    return claim.chain if isinstance(claim, OrderClaim) else ()


def _about(claim: TestableClaim, chain: Sequence[Mapping[str, Any]], **ours: Any) -> TestableClaim:
    """A claim with another source, and with another chain if it has one."""
    own = {"chain": tuple(chain)} if chain else {}
    return claim.model_copy(update={"ours": claim.ours.model_copy(update=ours), **own})


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
    default = [[value.name for value in each.values].index(each.default) for each in paper.choices]
    return [default, *np.stack(drawn, axis=1).tolist()]

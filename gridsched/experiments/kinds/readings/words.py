"""Sentences about claims and readings, made from numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gridsched.experiments.claims import BoundClaim, Claim, ValueClaim
from gridsched.experiments.kinds.readings.analysis import ClaimCondition, Importance
from gridsched.experiments.kinds.readings.choices import Choice
from gridsched.figures.style import number


def condition_text(found: ClaimCondition | None, decided: Importance, choices: Sequence[Choice]) -> str:
    """When a claim holds, with the counts that say so, and which choice decides it."""
    most = _deciding(decided, choices)
    if found is None or not found.is_sure:
        return f"No condition on the choices tells when it holds.{most or ' No choice is surely important.'}"
    where = " and ".join(_part_text(choices[choice], places) for choice, places in found.parts)
    kind = "more often"
    if found.is_necessary:
        kind = "if, and only if," if found.is_sufficient else "only if"
    elif found.is_sufficient:
        kind = "surely if"
    inside, outside = (f"{met} of {count}" for met, count in (found.inside, found.outside))
    text = f"Holds {kind} {where}" if kind != "more often" else f"Holds more often if {where}"
    return f"{text}: in {inside} such readings, in {outside} others.{most}"


def _part_text(choice: Choice, places: Sequence[int]) -> str:
    """A choice with the values that a condition names, or with those that it does not, if these are fewer."""
    names = [choice.values[place].name for place in places]
    others = [choice.values[place].name for place in choice.drawn if place not in places]
    if len(others) < len(names):
        return f"{choice.name} is not {_alternatives(others)}"
    return f"{choice.name} is {_alternatives(names)}"


def _alternatives(names: Sequence[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} or {last}" if some else last


def _deciding(decided: Importance, choices: Sequence[Choice]) -> str:
    """The choice that matters most, where its interval says that it does."""
    if np.isnan(decided.mean).all():
        return ""
    first = int(np.nanargmax(decided.mean))
    if not decided.low[first] > 0:
        return ""
    low, high = (100 * bound[first] for bound in (decided.low, decided.high))
    return (
        f" {choices[first].name[:1].upper()}{choices[first].name[1:]} decides most: without it the outcome "
        f"is told {100 * decided.mean[first]:.0f} points worse ({low:.0f} to {high:.0f})."
    )


def contradicted_text(claim: Claim, ours: NDArray[np.float64], met: int, partly: int) -> str:
    """What speaks against a claim that hardly any reading reproduces."""
    known = ours[np.isfinite(ours)]
    text = ""
    if len(known) and isinstance(claim, ValueClaim | BoundClaim):
        nearest = known[np.argmin(np.abs(known - claim.paper_value))]
        text = (
            f"Ours lies between {number(float(known.min()))} and {number(float(known.max()))}, "
            f"at the nearest {number(float(nearest))}."
        )
    elif len(known):
        text = f"The difference lies between {number(float(known.min()))} and {number(float(known.max()))}."
    return f"{text} {met} of {len(ours)} readings reproduce it, {partly} at least partly.".strip()

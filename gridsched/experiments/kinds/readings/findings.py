"""Sentences about claims and readings, made from numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridsched.experiments.claims import BoundClaim, ValueClaim
from gridsched.experiments.kinds.readings.analysis import CLASSES, ClaimCondition, Floats
from gridsched.experiments.kinds.readings.choices import Choice, TestableClaim
from gridsched.experiments.specification import Specification
from gridsched.presentation.findings import NOTHING
from gridsched.presentation.sentences import estimate_text, joined, listed, value_text

Attributes = Mapping[str, Any]

EFFECTS = ("largest importance", "significant", "not significant")
"""What the importance of a choice for a contingent claim is among those of all choices."""


# --- of figures -----------------------------------------------------------------------------------


def robust_claims(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How many claims are of each class, of all and of those that the default misses; what decides."""
    lines: list[str] = []
    kinds = {"claims": "claims", "claims_missed": "claims that the default interpretation does not reproduce"}
    for measure, words in kinds.items():
        own = numbers[numbers["measure"] == measure].groupby("robustness_class")["value"].sum()
        known = [(own[name], name) for name in CLASSES if own.get(name)]
        if known:
            each = joined([f"{number:.0f} {'is' if number == 1 else 'are'} {name}" for number, name in known])
            lines.append(f"Of {'the ' if lines else ''}{own.sum():.0f} {words}, {each}.")
    return [*lines, str(attributes["most_important"])] if lines else NOTHING


def deciding_choices(
    numbers: pd.DataFrame, specification: Specification, attributes: Attributes
) -> list[str]:
    """Which choices matter most for most claims, and which for none."""
    counts = numbers[numbers["effect"].isin(EFFECTS[:2])].groupby("choice", sort=False)["value"].sum()
    none = counts.index[counts == 0].tolist() if numbers["value"].sum() else []
    without = [f"Without significant importance for any claim: {listed(none, 12)}."] if none else []
    return [str(attributes["most_important"]), *without]


def most_important(largest: Mapping[Any, int], total: int) -> str:
    """Choices by the number of contingent claims for which the importance of each is the largest.

    Parameters
    ----------
    largest : mapping of str to int
        By choice the number of claims for which its importance is significant and the largest.
    total : int
        Number of contingent claims.
    """
    if not total:
        return "No claim is contingent, so no choice decides any."
    first = sorted(largest, key=lambda name: -largest[name])
    known, others = sum(largest.values()), sum(largest[name] for name in first[3:])
    if not known:
        return f"None of the {total} contingent claims depends significantly on a choice."
    parts = [f"{largest[name]} on {name}" for name in first[:3] if largest[name]]
    which = joined([*parts, *([f"{others} on others"] if others else [])]).replace(" on ", " most on ", 1)
    return (
        f"{known} of {total} contingent claims depend{'s' * (known == 1)} significantly on a choice: {which}."
    )


def outcomes(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How many of the claims that the default reproduces are not robust, and which is the least robust."""
    own = numbers[numbers["default"] == "reproduced"]
    fragile = own[own["robustness"] != "robust"].sort_values("value", kind="stable").to_dict("records")
    if own.empty:
        return ["The default interpretation reproduces no claim."]
    if not fragile:
        return [f"All {len(own)} claims that the default interpretation reproduces are robust."]
    return [
        f"{len(fragile)} of {len(own)} claims that the default interpretation reproduces are not robust.",
        f"The least robust of them is {fragile[0]['claim']}: {estimate_text(fragile[0], share=True)} of the "
        "interpretations reproduce it.",
    ]


# --- of claims ------------------------------------------------------------------------------------


def condition_text(found: ClaimCondition | None, weights: Floats, choices: Sequence[Choice]) -> str:
    """When a claim holds, with the counts that support it, and the most important choice.

    Parameters
    ----------
    found : ClaimCondition, optional
        A significant condition.
    weights : float64[3, k]
        Importance of each choice, see `analysis.importance`.
    choices : sequence of Choice
        The choices.
    """
    most = _most_important(weights, choices)
    if found is None:
        return f"No significant condition.{most or ' No choice has a significant importance.'}"
    where = " and ".join(_part_text(choices[choice], places) for choice, places in found.parts)
    link = {
        (True, True): "if and only if",
        (True, False): "only if",
        (False, True): "if",
        (False, False): "significantly more often if",
    }[found.is_necessary, found.is_sufficient]
    (inside, met), (outside, others) = found.inside, found.outside
    counts = f"in {inside} of {met} such interpretations and {outside} of {others} others"
    return f"Holds {link} {where}: {counts}{' (held out)' if found.tried == 1 else ''}.{most}"


def _part_text(choice: Choice, places: Sequence[int]) -> str:
    """A choice with the values that a condition names, or with those that it does not, if these are fewer."""
    names = [choice.values[place].name for place in places]
    others = [choice.values[place].name for place in choice.drawn if place not in places]
    is_not = "is not" if len(others) < len(names) else "is"
    return f"{choice.name} {is_not} {joined(min(names, others, key=len), 'or')}"


def _most_important(weights: Floats, choices: Sequence[Choice]) -> str:
    """The choice that matters most, where its interval excludes 0."""
    first = int(np.nan_to_num(weights[0], nan=-np.inf).argmax())
    row = dict(zip(("value", "low", "high"), weights[:, first], strict=True))
    if not row["low"] > 0:
        return ""
    return f" Largest importance: {choices[first].name}, {estimate_text(row, share=True)}."


def contradicted_text(claim: TestableClaim, ours: Floats) -> str:
    """What results instead of a claim that hardly any reading reproduces."""
    known = ours[np.isfinite(ours)]
    if not len(known):
        return ""
    low, high = value_text(float(known.min())), value_text(float(known.max()))
    if not isinstance(claim, ValueClaim | BoundClaim):
        return f"The difference ranges from {low} to {high}."
    nearest = known[np.argmin(np.abs(known - claim.paper_value))]
    return f"Our value ranges from {low} to {high}; the closest is {value_text(float(nearest))}."

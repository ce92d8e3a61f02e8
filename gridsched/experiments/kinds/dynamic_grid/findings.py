"""What studies of dynamic grids show, in sentences that the tests of the very pairs support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from gridsched.experiments.collection import ALL
from gridsched.experiments.specification import Specification
from gridsched.presentation.sentences import (
    count,
    estimate_text,
    known_measure,
    listed,
    name,
    percent,
    value_text,
)
from gridsched.systems.dynamic_grid.measures import GRID_USERS

Attributes = Mapping[str, Any]

_SIDES = {-1: "lower", 1: "higher"}


def _signs(rows: pd.DataFrame, labels: Sequence[Any]) -> dict[int, list[str]]:
    """Labels of rows that differ significantly below (-1) or above (1), or do not (0)."""
    found: dict[int, list[str]] = {-1: [], 1: [], 0: []}
    for label, sign in zip(labels, rows["significant"].astype(int), strict=True):
        found[int(sign)].append(str(label))
    return found


def of_users(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How the grid changes a measure for all users, and for which of them it does so significantly."""
    own = numbers[numbers["scheduler"] != attributes.get("reference")]
    words = known_measure(specification.measures[0]).words
    scenarios = list(dict.fromkeys(own["scenario"])) if "scenario" in own else []
    headlines, lines = [], []
    for scenario in scenarios:
        part = own[own["scenario"] == scenario]
        part = part[part["scheduler"] == part["scheduler"].iloc[0]]
        place = f"{name(scenario)}: the" if len(scenarios) > 1 else "The"
        headlines.append(_of_everybody(part[part["group"] == ALL], words, place))
        tested = part[part["probability"].notna() & (part["group"] != ALL)]
        signs = _signs(tested, tested["group"].tolist())
        texts = [
            f"significantly {_SIDES[sign]} for {listed(signs[sign], 6)}" for sign in (-1, 1) if signs[sign]
        ]
        if signs[0]:
            texts.append(f"not significantly different for {listed(signs[0], 6)}")
        if texts:
            lines.append(f"{place} {words} is {'; '.join(texts)}.")
    return [*headlines, *lines] or ["Nothing is compared."]


def _of_everybody(rows: pd.DataFrame, words: str, place: str) -> str:
    """The headline: all users against every cluster on its own."""
    if rows.empty or pd.isna(rows["probability"].iloc[0]):
        reason = str(rows["ratio_reason"].iloc[0]) if len(rows) and "ratio_reason" in rows else "no values"
        return f"{place} effect of the grid on the {words} is not estimable: {reason}."
    row = rows.iloc[0].to_dict()
    if not row["significant"]:
        return f"{place} {words} in the grid does not differ significantly from that of clusters alone."
    verb = "lowers" if row["significant"] < 0 else "raises"
    size = f"{estimate_text(row, of='ratio')} of that of clusters alone"
    return f"{place} grid {verb} the {words} of all jobs to {size}."


def joining(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Whose users have longer or shorter responses where their cluster stays out, and what others have."""
    own = numbers[numbers["scenario"] == numbers["scenario"].iloc[0]] if len(numbers) else numbers
    own = own[own["probability"].notna()] if len(own) else own
    if own.empty:
        return ["No effect of a cluster that stays out is estimable."]
    words = known_measure(specification.measures[0]).words
    cluster = own["scheduler"].str.removeprefix("without ")
    mine = own["group"] == "users of " + cluster
    signs = _signs(own[mine], cluster[mine].tolist())
    lines = [
        f"The {words} is significantly {_SIDES[sign]} for users of {listed(signs[sign])} if these stay out."
        for sign in (1, -1)
        if signs[sign]
    ]
    if signs[0]:
        lines.append(f"Staying out makes no significant difference for users of {listed(signs[0])}.")
    for sign in (1, -1):
        others = own[~mine & (own["significant"] == sign)].groupby(cluster, sort=False)
        parts = [f"{count(len(part), 'other group')} without {name(who)}" for who, part in others]
        if parts:
            lines.append(f"The {words} is significantly {_SIDES[sign]} for {listed(parts)}.")
    return lines


def flows(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which share of the work of clusters' users is done elsewhere, and for whom the share is largest."""
    lines = []
    for case, part in numbers[numbers["users"] != GRID_USERS].groupby("scheduler", sort=False):
        work = part.groupby("users", sort=False)["work"].sum()
        away = part[part["users"] != part["cluster"]].groupby("users", sort=False)["work"].sum() / work
        total = float((away * work).sum() / work.sum())
        most = str(away.idxmax())
        lines.append(
            f"{name(case)}: {percent(total)} of the work of the clusters' users is done elsewhere, "
            f"of users of {name(most)} {percent(float(away[most]))}."
        )
    return lines or ["No cluster has users."]


def departure(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """What had to move when a cluster left, and for how long the last grid job stayed."""
    row = numbers.iloc[0]
    there = numbers[(numbers["use"] == "grid") & (numbers["time"] <= 0)]
    if there.empty or there["processors"].iloc[-1] == 0:
        return [f"No grid job runs on {name(row['site'])} when it leaves."]
    moved, suspended = count(int(row["tasks_moved"]), "task"), count(int(row["jobs_suspended"]), "job")
    lines = [f"Moved to neighbours when {name(row['site'])} leaves: {moved}; suspended: {suspended}."]
    if not pd.isna(row["duration"]):
        lines.append(f"The last grid job is gone after {value_text(row['duration'], 's')}.")
    return lines

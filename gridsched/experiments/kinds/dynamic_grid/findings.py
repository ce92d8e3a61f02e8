"""What studies of dynamic grids show, in sentences that the tests of the very pairs support."""

from __future__ import annotations

from collections.abc import Mapping
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

_SIDES = {1: "higher", -1: "lower"}
_EFFECTS = {-1: "significantly lower", 1: "significantly higher", 0: "not significantly different"}


def _by_sign(rows: pd.DataFrame, labels: pd.Series[str]) -> dict[int, list[str]]:
    """Labels of rows that differ significantly below (-1) or above (1), or do not (0)."""
    return {sign: labels[rows["significant"] == sign].tolist() for sign in _EFFECTS}


def of_users(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How the grid changes a measure for all users, and for which of them it does so significantly."""
    own = numbers[numbers["scheduler"] != attributes.get("reference")]
    words = known_measure(specification.measures[0]).words
    headlines, lines = [], []
    for scenario, rows in own.groupby("scenario", sort=False):
        part = rows[rows["scheduler"] == rows["scheduler"].iloc[0]]
        place = f"{name(scenario)}: the" if own["scenario"].nunique() > 1 else "The"
        headlines.append(_of_everybody(part[part["group"] == ALL], words, place))
        tested = part[part["probability"].notna() & (part["group"] != ALL)]
        signs = _by_sign(tested, tested["group"])
        effects = [f"{_EFFECTS[sign]} for {listed(who, 6)}" for sign, who in signs.items() if who]
        if effects:
            lines.append(f"{place} {words} is {'; '.join(effects)}.")
    return [*headlines, *lines] or ["Nothing is compared."]


def _of_everybody(rows: pd.DataFrame, words: str, place: str) -> str:
    """The headline: all users against every cluster on its own."""
    row = next(iter(rows.to_dict("records")), {})
    if pd.isna(row.get("probability")):
        reason = row.get("ratio_reason", "no values")
        return f"{place} effect of the grid on the {words} is not estimable: {reason}."
    if not row["significant"]:
        return f"{place} {words} in the grid does not differ significantly from that of clusters alone."
    verb = "lowers" if row["significant"] < 0 else "raises"
    size = f"{estimate_text(row, of='ratio')} of that of clusters alone"
    return f"{place} grid {verb} the {words} of all jobs to {size}."


def joining(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Whose users have longer or shorter responses where their cluster stays out, and what others have."""
    own = numbers[numbers["scenario"] == numbers["scenario"].iloc[0]] if len(numbers) else numbers
    tested = own[own["probability"].notna()] if len(own) else own
    if tested.empty:
        return ["No effect of a cluster that stays out is estimable."]
    words = known_measure(specification.measures[0]).words
    cluster = tested["scheduler"].str.removeprefix("without ")
    mine = tested["group"] == "users of " + cluster
    signs = _by_sign(tested[mine], cluster[mine])
    lines = [
        f"The {words} is significantly {side} for users of {listed(signs[sign])} if these stay out."
        for sign, side in _SIDES.items()
        if signs[sign]
    ]
    if signs[0]:
        lines.append(f"Staying out makes no significant difference for users of {listed(signs[0])}.")
    for sign, side in _SIDES.items():
        others = tested[~mine & (tested["significant"] == sign)].groupby(cluster, sort=False)
        parts = [f"{count(len(part), 'other group')} without {name(who)}" for who, part in others]
        if parts:
            lines.append(f"The {words} is significantly {side} for {listed(parts)}.")
    return lines


def flows(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which share of the work of clusters' users is done elsewhere, and for whom the share is largest."""
    lines = []
    for case, part in numbers[numbers["users"] != GRID_USERS].groupby("scheduler", sort=False):
        work = part.groupby("users", sort=False)["work"].sum()
        moved = part[part["users"] != part["cluster"]].groupby("users", sort=False)["work"].sum()
        share = moved.reindex(work.index, fill_value=0.0) / work
        lines.append(
            f"{name(case)}: {percent(moved.sum() / work.sum())} of the work of the clusters' users is done "
            f"elsewhere, of users of {name(share.idxmax())} {percent(share.max())}."
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

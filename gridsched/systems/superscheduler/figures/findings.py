"""What the figures of a study of grids show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import (
    Finding,
    against,
    by_part,
    extremes,
    known,
    listed,
    name,
    percent,
    sentences,
    shown,
)
from gridsched.figures.style import duration, number

_WHO = "scheme"


def _moving(numbers: pd.DataFrame) -> list[str]:
    """Schemes that have clusters: of ideal ones nobody knows where jobs ran."""
    return list(dict.fromkeys(known(numbers[numbers["metric"] == "transferred"])[_WHO]))


def overview(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who shortens mean response most against the reference, how many jobs it moves, and who loses by it."""
    moving = _moving(numbers)
    rows = known(numbers[(numbers["metric"] == "response_time_mean") & numbers[_WHO].isin(moving)])
    if rows.empty:
        return findings.NOTHING
    reference = str(rows["relative_to"].iloc[0])
    others = rows[rows[_WHO] != reference]
    moved = numbers[numbers["metric"] == "transferred"].set_index(["scenario", _WHO])["mean"]

    def tell(part: pd.DataFrame) -> str:
        best = findings.records(part.sort_values("mean", kind="stable"))[0]
        share = float(moved.get((best["scenario"], best[_WHO]), np.nan))
        text = against(part, _WHO, f"mean response relative to {name(reference)}", 1.0)
        known_share = f"{name(best[_WHO])} moves {percent(share)} of the jobs." if np.isfinite(share) else ""
        homes = numbers[(numbers["scenario"] == best["scenario"]) & numbers[_WHO].isin(moving)]
        return sentences(text, _home_users(homes, reference), findings.detail(known_share))

    return by_part(others, "scenario", tell)


def _home_users(rows: pd.DataFrame, reference: str) -> str:
    """Whose waiting the mean of all stands for, and who waits longer than without the grid."""
    shares = known(rows[rows["metric"] == "waiting_share"])
    compared = rows[rows[_WHO] != reference]
    waits = known(compared[compared["metric"] == "wait_time_mean_home"])
    others = known(compared[compared["metric"] == "wait_time_mean_others"])
    parts = []
    if len(shares) and findings.highest(shares)["mean"] > _MOST and len(others):
        most = findings.highest(shares)
        worst = findings.highest(others)
        unsure = "" if not findings.is_open(worst, 1) else ", not sure"
        whose = (
            f"Under {name(reference)} users of {name(most['home'])} do {percent(most['mean'])} of the "
            f"waiting; those of all other clusters together wait up to {shown(worst)} times as long as under "
            f"{name(reference)}{unsure}, under {name(worst[_WHO])}."
        )
        parts.append(findings.detail(whose))
    losing = waits[waits["low"] > 1]
    if len(losing):
        worst = findings.highest(losing)
        parts.append(
            f"Users of {listed(dict.fromkeys(losing['home']), 6)} surely wait longer under some scheme, most "
            f"at {name(worst['home'])} under {name(worst[_WHO])}: {shown(worst)} times."
        )
    return sentences(*parts)


_MOST = 0.5
"""A cluster with a larger share of all waiting decides the mean of all."""


def policies(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which local policy gains most from the grid, and which has the shortest mean wait in it."""
    waits = numbers[numbers["metric"] == "wait_time_mean"]
    ratios = known(waits[waits["relative_to"] != ""])
    ratios = ratios[ratios[_WHO] != ratios["relative_to"]]
    absolute = known(waits[waits["relative_to"] == ""])
    if ratios.empty:
        return findings.NOTHING
    scheme, reference = str(ratios[_WHO].iloc[0]), str(ratios["relative_to"].iloc[0])
    absolute = absolute[absolute[_WHO] == scheme]

    def tell(part: pd.DataFrame) -> str:
        own = absolute[absolute["scenario"].isin(part["scenario"])]
        return sentences(
            extremes(own, "policy", f"mean wait under {name(scheme)}", duration),
            against(part, "policy", f"mean wait relative to {name(reference)} with the same policy", 1.0),
        )

    return by_part(ratios, "scenario", tell)


def sensitivity(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which variants surely differ from their base scheme, and which of them most."""
    if numbers.empty:
        return findings.NOTHING
    rows = known(numbers[numbers["relative_to"] != ""], "difference")

    def tell(part: pd.DataFrame) -> str:
        sure = part[part["clear"].astype(bool)]
        if sure.empty:
            return f"None of {findings.counted(len(part), 'variant')} surely differs from its base scheme."
        base = part_means.loc[part.index]
        effect = (sure["mean"] / base.loc[sure.index] - 1).sort_values()
        parts = [
            f"{len(sure)} of {findings.counted(len(part), 'variant')} surely differ from their base scheme."
        ]
        for side, index in (("shortens", effect.index[0]), ("lengthens", effect.index[-1])):
            change = float(effect.loc[index])
            if (change < 0) == (side == "shortens") and np.isfinite(change):
                parts.append(
                    f"{name(sure.loc[index, _WHO])} {side} the mean most, by {percent(abs(change))}."
                )
        return sentences(*parts)

    part_means = _of_base(numbers[numbers["relative_to"] != ""])
    return by_part(rows, "scenario", tell)


def _of_base(rows: pd.DataFrame) -> pd.Series[float]:
    """Mean of the base scheme of each row."""
    keys = ["scenario", "policy", "base"]
    base = rows[rows[_WHO] == rows["base"]].set_index(keys)["mean"]
    base = base[~base.index.duplicated()]
    places = pd.MultiIndex.from_frame(rows[keys])
    return pd.Series(base.reindex(places).to_numpy(np.float64), index=rows.index)


def waits(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Under which scheme no cluster surely loses, and who loses most."""
    rows = known(numbers[numbers["relative_to"] != ""])
    is_ideal = rows[_WHO].map(findings.is_ideal).astype(bool)
    without = "Ideal machines are left out." if is_ideal.any() else ""
    rows = rows[~is_ideal]
    if rows.empty:
        return findings.NOTHING
    losing = rows[rows["low"] > 1].sort_values("mean", kind="stable", ascending=False)
    reference = name(rows["relative_to"].iloc[0])
    if not findings.has_intervals(rows):
        worst = findings.records(rows.sort_values("mean", kind="stable"))[-1]
        return sentences(
            f"The largest mean wait relative to {reference} is {number(worst['mean'])}, at "
            f"{name(worst['home'])} under {name(worst[_WHO])}.",
            findings.NO_INTERVALS,
        )
    if losing.empty:
        return sentences(
            f"At no cluster do users surely wait longer than under {reference}.", _most_unsure(rows), without
        )
    worst = findings.records(losing)[0]
    count = losing.groupby(_WHO, sort=False)["home"].nunique()
    safe = [who for who in dict.fromkeys(rows[_WHO]) if who not in count.index]
    return sentences(
        f"Users of {listed(dict.fromkeys(losing['home']), 6)} surely lose under some scheme, most at "
        f"{name(worst['home'])} under {name(worst[_WHO])}: {shown(worst)} times the mean wait under "
        f"{reference}.",
        _most_unsure(rows[rows[_WHO].isin(safe)]) if safe else "",
        without,
    )


def _most_unsure(rows: pd.DataFrame) -> str:
    """The largest loss under schemes under which none is sure."""
    worst = findings.highest(rows)
    schemes = list(dict.fromkeys(rows[_WHO]))
    if worst["mean"] <= 1:
        return f"Under {listed(schemes)} nobody loses on average."
    where = name(worst["home"]) + (f" under {name(worst[_WHO])}" if len(schemes) > 1 else "")
    return (
        f"Under {listed(schemes)} no loss is sure, which does not mean that there is none: the largest is "
        f"{shown(worst)} times at {where}."
    )


def utilisation(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How far apart clusters are under the reference and under the scheme that evens them most."""
    rows = known(numbers[numbers["metric"] == "utilisation"])
    if rows.empty:
        return findings.NOTHING
    grouped = rows.groupby(_WHO, sort=False)["mean"]
    spread = (grouped.max() - grouped.min()).sort_values(kind="stable")
    even, uneven = str(spread.index[0]), str(spread.index[-1])
    over = known(numbers[numbers["metric"] == "offered_load"])
    over = over[over["mean"] > 1]
    more = "are offered more than they" if len(over) > 1 else "is offered more than it"
    return sentences(
        f"Over the whole run clusters are used most alike under {name(even)}, {_range(grouped, even)}, "
        f"and least under {name(uneven)}, {_range(grouped, uneven)}."
        if len(spread) > 1
        else f"Under {name(even)} clusters are used {_range(grouped, even)}.",
        f"{listed(over['cluster'])} {more} can do." if len(over) else "",
    )


def _range(grouped: Any, who: str) -> str:
    return f"{percent(float(grouped.min()[who]))} to {percent(float(grouped.max()[who]))}"


def flows(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which share of the work ran elsewhere under each scheme."""
    rows = known(numbers[numbers["metric"] == "work_moved"])
    moved = rows[rows["mean"] > 0]
    if moved.empty:
        return "All work stayed at home." if len(rows) else findings.NOTHING
    text = extremes(moved, _WHO, "share of the work that ran elsewhere", percent, highest_first=True)
    still = [who for who in rows[_WHO] if who not in set(moved[_WHO])]
    return sentences(text, f"All stayed at home under {listed(still)}." if still else "")


FINDINGS: dict[str, Finding] = {
    "grid_overview": overview,
    "grid_policies": policies,
    "grid_sensitivity": sensitivity,
    "grid_waits": waits,
    "grid_utilisation": utilisation,
    "grid_flows": flows,
}
"""Findings by kind of figure."""

"""What the figures of a study of sequences show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, counted, detail, known, name, sentences, shown

_EXACT = 0.005
"""Published numbers have two decimals."""

_PLACES = ["workload", "backfilling"]


def slowdowns(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How many published means come out, and how the ranking changes when scores know the true waits."""
    rows = known(numbers)
    if rows.empty:
        return findings.NOTHING
    return sentences(_beside_published(rows), _true_waits(rows), detail(_doubt(rows)))


def _beside_published(rows: pd.DataFrame) -> str:
    """How many means are those published, to the printed decimals."""
    table = known(rows[rows["waits"] == "unset"], "published")
    if table.empty:
        return ""
    equal = (table["mean"] - table["published"]).abs() <= _EXACT
    others = [
        f"{name(row['order'])} on {name(row['workload'])}, backfilling {row['backfilling']}: "
        f"{row['mean']:.2f}, published {row['published']:.2f}"
        for row in findings.records(table[~equal])
    ]
    apart = f" The others: {'; '.join(others)}." if others else ""
    return f"{int(equal.sum())} of {counted(len(table), 'published mean')} come out to two decimals.{apart}"


def _true_waits(rows: pd.DataFrame) -> str:
    """Which order is best in each place, as published and with true waits."""
    best: dict[str, dict[tuple[str, ...], str]] = {"unset": {}, "true": {}}
    for waits, found in best.items():
        for place, own in rows[rows["waits"] == waits].groupby(_PLACES, sort=False):
            found[tuple(map(str, place))] = str(findings.lowest(own)["order"])
    both = [place for place in best["unset"] if place in best["true"]]
    if not both:
        return ""
    changed = [place for place in both if best["unset"][place] != best["true"][place]]
    told = [
        f"{best['true'][place]} instead of {best['unset'][place]} on {place[0]} "
        f"({'with' if place[1] == 'shadow' else 'without'} backfilling)"
        for place in changed
    ]
    if not told:
        return f"With true waits the best order stays the same in all {len(both)} places."
    return (
        f"With true waits another order has the lowest mean bounded slowdown in {len(changed)} of "
        f"{len(both)} places: {'; '.join(told)}."
    )


def _doubt(rows: pd.DataFrame) -> str:
    """How little a mean over so few sequences says."""
    table = rows[rows["high"] > rows["low"]]
    if table.empty:
        return findings.NO_INTERVALS
    widest = findings.highest(table.assign(width=table["high"] / table["mean"]), "width")
    return (
        "Means over few sequences are uncertain: the widest interval is that of "
        f"{name(widest['order'])} on {name(widest['workload'])}, {shown(widest)}."
    )


FINDINGS: dict[str, Finding] = {"sequence_slowdowns": slowdowns}
"""Findings by kind of figure."""

"""What the figures of a study of placements show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, counted, known, listed, records, sentences

_BEHIND = 0.01
"""A placement has fallen behind once pods surely wait for so many of the GPUs."""

_ORDERS = {"random": "in random order", "name": "by name", "reverse": "by name, backwards"}


def shares(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who allocates most, how far that is from what is published, and what the order of nodes does."""
    rows = _readable(known(numbers))
    if rows.empty:
        return findings.NOTHING
    first = rows["node_order"].iloc[0]
    own = rows[rows["node_order"] == first]
    best = findings.extremes(own, "placement", "share allocated", _share, highest_first=True)
    others = [order for order in dict.fromkeys(rows["node_order"]) if order != first]
    return sentences(
        f"Nodes {_ORDERS[str(first)]}: {best[:1].lower()}{best[1:]}" if others else best,
        _beside_published(own),
        *(_changed(rows[rows["node_order"] == order], str(order), str(first)) for order in others),
    )


def _beside_published(rows: pd.DataFrame) -> str:
    """How far means lie from published ones; nothing where none is."""
    table = known(rows, "published")
    if table.empty:
        return ""
    apart = (table["mean"] - table["published"]).abs()
    inside = int(((table["low"] <= table["published"]) & (table["published"] <= table["high"])).sum())
    farthest = table["placement"].iloc[int(apart.argmax())]
    return (
        f"The largest difference from a published mean is {_points(float(apart.max()))}, of {farthest}; "
        f"{inside} of {counted(len(table), 'interval')} hold the published mean."
    )


def _changed(rows: pd.DataFrame, order: str, first: str) -> str:
    """Which placements another order of nodes surely helps or hurts, by pairs of replicates."""
    sides: dict[str, list[str]] = {"less": [], "more": [], "open": []}
    for row in records(known(rows, "change")):
        side = "less" if row["change_high"] < 0 else "more" if row["change_low"] > 0 else "open"
        size = f" ({_points(abs(row['change']))})" if side != "open" else ""
        sides[side].append(f"{row['placement']}{size}")
    parts = [
        f"surely less is allocated under {listed(sides['less'], 9)}" if sides["less"] else "",
        f"surely more is allocated under {listed(sides['more'], 9)}" if sides["more"] else "",
        f"not sure: {listed(sides['open'], 9)}" if sides["open"] else "",
    ]
    told = "; ".join(part for part in parts if part)
    return f"With nodes {_ORDERS[order]} instead of {_ORDERS[first]}: {told}." if told else ""


def curves(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who falls behind what arrives first and last, and who has allocated most in the end."""
    rows = _readable(known(numbers))
    if rows.empty:
        return findings.NOTHING
    own = rows[rows["node_order"] == rows["node_order"].iloc[0]]
    end = own[own["arrived"] == own["arrived"].max()]
    last = findings.extremes(end, "placement", "share allocated", _share, highest_first=True)
    arrived = f"{100 * float(end['arrived'].iloc[0]):.0f} %"
    return sentences(_falling_behind(own), f"When {arrived} have arrived: {last[:1].lower()}{last[1:]}")


def _falling_behind(rows: pd.DataFrame) -> str:
    """From when on pods surely wait under the placement that falls behind first, and under the last."""
    behind = rows[rows["waiting_low"] > _BEHIND]
    when = behind.groupby("placement", sort=False)["arrived"].min().sort_values(kind="stable")
    if when.empty:
        return ""
    names = when.index.tolist()
    earliest, latest = (f"{100 * float(at):.0f} %" for at in (when.iloc[0], when.iloc[-1]))
    text = (
        f"Under {names[0]} pods surely wait for {findings.percent(_BEHIND)} of the GPUs once {earliest} have "
        "arrived"
    )
    return f"{text}, under {names[-1]} once {latest} have." if len(names) > 1 else f"{text}."


def _readable(numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers with names of placements as people read them."""
    return numbers.assign(placement=[str(name).replace("_", " ") for name in numbers["placement"]])


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(difference: float) -> str:
    """A difference of shares in points of a hundred."""
    text = f"{100 * difference:.2f}" if np.isfinite(difference) else "unknown"
    return f"{text} points"


FINDINGS: dict[str, Finding] = {"placement_shares": shares, "placement_curves": curves}
"""Findings by kind of figure."""

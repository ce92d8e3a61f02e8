"""What the figures of a study of self-scheduling show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, by_part, known, listed, name, percent, sentences, shown
from gridsched.figures.style import number

_WORDS = {"wait_time": "mean wait", "bounded_slowdown": "mean bounded slowdown"}


_PAPER, _ORIGINAL = "paper", "original scenario"


def improvement(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Largest improvement over the original scenario, and where jobs fare worse."""
    return by_part(known(numbers), "factor", _improvement)


def _improvement(rows: pd.DataFrame) -> str:
    what = _WORDS[str(rows["measure"].iloc[0])]
    best = findings.highest(rows)
    worse = rows[rows["high"] < 1]
    sure = ", not sure" if findings.is_open(best, 1) else ""
    parts = [
        f"The {what} improves most when jobs want the smallest {name(best['metric'])} of {best['k']} "
        f"clusters: {shown(best)} times{sure}."
    ]
    if len(worse):
        parts.append(f"It is surely worse than in the original scenario in {len(worse)} of {len(rows)} runs.")
    return sentences(*parts)


def prediction_worth(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which kind of estimates serves jobs best at the largest number of clusters."""
    rows = known(numbers)
    rows = rows[rows["measure"] == "wait_time"] if len(rows) else rows

    def tell(part: pd.DataFrame) -> str:
        at = part[part["k"] == part["k"].max()]
        own = at[at["metric"] == at["metric"].iloc[0]]
        what = f"improvement of the mean wait with {int(own['k'].iloc[0])} clusters"
        return findings.extremes(own, "estimates", what, highest_first=True)

    return by_part(rows, "factor", tell)


def ratios(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """In how many runs a ratio is surely below or above 1, and the largest deviation."""
    rows = known(numbers[numbers["measure"].isin(_WORDS)]) if len(numbers) else numbers
    if rows.empty:
        return findings.NOTHING
    parts = []
    for measure, own in rows.groupby("measure", sort=False):
        above, below = int((own["low"] > 1).sum()), int((own["high"] < 1).sum())
        row = findings.records(own.loc[[(own["mean"] - 1).abs().idxmax()]])[0]
        parts.append(
            f"The ratio of the {_WORDS[str(measure)]} is surely above 1 in {above} and surely below 1 in "
            f"{below} of {findings.counted(len(own), 'run')}; farthest from 1 is {shown(row)}, under "
            f"{name(row['metric'])} with {row['k']} clusters."
        )
    return sentences(*parts)


def retraining(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """As `ratios`, and how many predictions rest on jobs that had not finished."""
    early = known(numbers[numbers["measure"] == "predictions_on_unfinished"]) if len(numbers) else numbers
    more = ""
    if len(early):
        low, high = float(early["mean"].min()), float(early["mean"].max())
        more = f"{percent(low)} to {percent(high)} of the predictions rest on a job that had not finished."
    return sentences(ratios(numbers, attributes), more)


def centres(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which centres lose in mean wait by sharing, and how far ours lies from the paper's."""
    waits = known(numbers)
    waits = waits[(waits["measure"] == "wait_time") & (waits["statistic"] == "mean")] if len(waits) else waits
    if waits.empty:
        return findings.NOTHING
    table = waits.pivot_table(index="centre", columns="source", values="mean", sort=False)
    ours = [str(each) for each in table.columns if each not in (_PAPER, _ORIGINAL)]
    parts = []
    if _ORIGINAL in table and ours:
        largest = max(ours, key=lambda text: int(text.split()[-1]))
        both = table[[_ORIGINAL, largest]].dropna()
        lose = both[both[largest] > both[_ORIGINAL]].index
        parts.append(
            f"With {name(largest)} the mean wait is longer than alone at {listed(lose)}."
            if len(lose)
            else f"With {name(largest)} no centre has a longer mean wait than alone."
        )
    if _ORIGINAL in table and _PAPER in table:
        both = table[[_ORIGINAL, _PAPER]].dropna()
        both = both[(both > 0).all(axis=1)]
        ratio = both[_ORIGINAL] / both[_PAPER]
        if len(ratio):
            parts.append(
                f"Mean waits alone are {number(float(ratio.min()))} to {number(float(ratio.max()))} times "
                "those that the paper printed."
            )
    return sentences(*parts, findings.NO_INTERVALS)


def loads(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which centres are overloaded under each reading."""
    rows = known(numbers, "load")
    if rows.empty:
        return "No centre has a log."
    told = []
    for factor, own in rows.groupby("factor", sort=False):
        full = own[own["load"] > 1].sort_values("load", kind="stable", ascending=False)
        most = findings.highest(own, "load")
        told.append(
            f"{name(factor)}: {len(full)} of {len(own)} centres are offered more than they can do, most "
            f"{name(most['centre'])} ({number(float(most['load']))})."
        )
    return sentences(*told)


FINDINGS: dict[str, Finding] = {
    "improvement_bounded_slowdown": improvement,
    "improvement_wait_time": improvement,
    "prediction_worth": prediction_worth,
    "plan_and_exact": ratios,
    "retraining_effect": retraining,
    "centre_table": centres,
    "offered_loads": loads,
}
"""Findings by kind of figure."""

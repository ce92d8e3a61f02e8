"""What the figures of a study of forecasts show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, known, name, sentences
from gridsched.figures.style import duration

_GOAL = (0.77, 0.83)
_RAW, _CORRECTED = "raw", "as it goes"


def coverage(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Where intervals cover what they say, and how wide they are beside those of the null model."""
    rows = known(numbers, "coverage")
    if rows.empty:
        return findings.NOTHING
    told = []
    for truth in dict.fromkeys(rows["truth"]):
        own = rows[rows["truth"] == truth]
        told.append(_of_truth(own, f"Of {truth} starts, futures as they are", "futures", _RAW))
        told.append(_of_truth(own, "Corrected, with history, they", "combined", _CORRECTED))
    return sentences(*told)


def _of_truth(rows: pd.DataFrame, who: str, method: str, correction: str) -> str:
    """Coverage of a way to tell, log by log, and its width beside that of the null model as it is."""
    ours = rows[(rows["predictor"] == method) & (rows["correction"] == correction)]
    null = rows[(rows["predictor"] == "null") & (rows["correction"] == correction)].set_index("workload")
    if ours.empty:
        return ""
    inside = ours["coverage"].between(*_GOAL)
    told = "; ".join(
        f"{name(row['workload'])} {findings.percent(row['coverage'])}" for row in findings.records(ours)
    )
    ratios = (ours.set_index("workload")["width"] / null["width"]).dropna()
    wide = ""
    if len(ratios):
        low, high = (findings.percent(float(ratio)) for ratio in (ratios.min(), ratios.max()))
        wide = (
            f", with {low} of the mean width" if low == high else f", with {low} to {high} of the mean width"
        )
        wide += " of waits of like jobs"
    return (
        f"{who} hold 77 to 83 % in the interval of 80 % on {int(inside.sum())} of "
        f"{findings.counted(len(ours), 'log')} ({told}){wide}."
    )


def horizons(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which horizons are covered least, and how wide intervals are there."""
    rows = known(numbers, "coverage")
    own = rows[rows["predictor"] == "combined"]
    if own.empty:
        return findings.NOTHING
    parts = []
    for truth in dict.fromkeys(own["truth"]):
        here = own[own["truth"] == truth]
        row = findings.records(here[here["coverage"] == here["coverage"].min()])[0]
        parts.append(
            f"Of {truth} starts, futures with history cover least on {name(row['workload'])} where they "
            f"expect {row['range']}: {findings.percent(row['coverage'])}, with a median width of "
            f"{duration(row['median_width'])}."
        )
    return sentences(*parts)


FINDINGS: dict[str, Finding] = {"forecast_coverage": coverage, "forecast_horizons": horizons}
"""Findings by kind of figure."""

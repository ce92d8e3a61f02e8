"""What the figures of a study of forecasts show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, detail, known, listed, name, sentences
from gridsched.figures.style import duration

_GOAL = (0.77, 0.83)
_RAW, _CORRECTED = "raw", "as it goes"


def coverage(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Where intervals cover what they say, and how wide they are beside those of the null model."""
    rows = known(numbers, "coverage")
    if rows.empty:
        return findings.NOTHING
    return sentences(
        *(_of_truth(rows[rows["truth"] == truth], str(truth)) for truth in dict.fromkeys(rows["truth"])),
        detail(_alone(rows)),
    )


def _of_truth(rows: pd.DataFrame, truth: str) -> str:
    """Coverage and width of the corrected combination, log by log."""
    own = rows[rows["correction"] == _CORRECTED]
    ours, null = (
        own[own["predictor"] == method].set_index("workload", drop=False) for method in ("combined", "null")
    )
    if ours.empty:
        return ""
    inside = ours["coverage"].between(*_GOAL)
    told = [
        f"{name(row['workload'])} {findings.percent(row['coverage'])}"
        for row in findings.records(ours[~inside])
    ]
    apart = f" (others: {'; '.join(told)})" if told else ""
    ratios = (ours["width"] / null["width"].reindex(ours.index)).dropna()
    wide = ""
    if len(ratios):
        wide = (
            f" Their mean width is {findings.percent(float(ratios.min()))} to "
            f"{findings.percent(float(ratios.max()))} of that of waits of like jobs."
        )
    return (
        f"Of {truth} starts, corrected intervals of 80 % from futures and history hold 77 to 83 % on "
        f"{int(inside.sum())} of {findings.counted(len(ours), 'log')}{apart}.{wide}"
    )


def _alone(rows: pd.DataFrame) -> str:
    """What futures cover before any correction."""
    raw = rows[(rows["predictor"] == "futures") & (rows["correction"] == _RAW)]
    told = [
        f"{findings.percent(row['coverage'])} of {row['truth']} starts on {name(row['workload'])}"
        for row in findings.records(raw)
    ]
    return f"Before any correction futures hold {listed(told, 20)}." if told else ""


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
            f"Of {truth} starts, futures with history cover least on {name(row['workload'])} for starts "
            f"in {row['range']}: {findings.percent(row['coverage'])}, with a median width of "
            f"{duration(row['median_width'])}."
        )
    return sentences(*parts)


FINDINGS: dict[str, Finding] = {"forecast_coverage": coverage, "forecast_horizons": horizons}
"""Findings by kind of figure."""

"""What the figures of a study of workload models show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, known, listed, name, percent, sentences
from gridsched.figures.style import number

_KINDS = {"interarrival": "times between arrivals", "service": "run times"}
_LOG, _PAPER = "log", "paper"
_FAR = 1.25
"""Numbers of log and paper that differ by a larger factor are named."""


def quantiles(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How far the models lie from the log, by kind of times."""
    rows = known(numbers, "ks").drop_duplicates(["kind", "size_class", "source"])
    told = []
    for kind, own in rows.groupby("kind", sort=False):
        means = own.groupby("source", sort=False)["ks"].mean().sort_values(kind="stable")
        worst = findings.highest(own, "ks")
        sides = listed(f"{number(float(ks))} for {_source(source)}" for source, ks in means.items())
        told.append(
            f"For {_KINDS.get(str(kind), str(kind))} the mean distance from the log over the size classes is "
            f"{sides}; the largest is {number(float(worst['ks']))}, of jobs with {name(worst['size_class'])} "
            "processors."
        )
    return sentences(*told) or findings.NOTHING


def _source(source: object) -> str:
    return {_LOG: "the model fitted to it", _PAPER: "the published one"}.get(str(source), name(source))


def shares(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """In which classes log and paper are far apart."""
    table = known(numbers, "value").pivot_table(
        index=["quantity", "size_class"], columns="source", values="value", sort=False
    )
    if not {_LOG, _PAPER} <= set(table.columns):
        return findings.NOTHING
    both = table[[_LOG, _PAPER]].dropna().reset_index()
    both = both[(both[_LOG] > 0) & (both[_PAPER] > 0)]
    if both.empty:
        return findings.NOTHING
    ratio = both[_LOG] / both[_PAPER]
    both = both.assign(factor=ratio.where(ratio > 1, 1 / ratio))
    far = both[both["factor"] > _FAR]
    near = (
        f"{len(both) - len(far)} of {len(both)} numbers of the log lie within {percent(_FAR - 1)} of the "
        "paper's."
    )
    if far.empty:
        return near
    row = findings.highest(far, "factor")
    return (
        f"{near} Farthest apart is the {row['quantity'].replace('_', ' ')} of jobs with "
        f"{name(row['size_class'])} processors, by a factor of {number(row['factor'])}."
    )


def spread(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How much the assumed spread of sizes changes the offered load."""
    rows = known(numbers[numbers["quantity"] == "offered_load"], "value")
    if rows.empty:
        return findings.NOTHING
    grouped = rows.groupby("machine", sort=False)["value"]
    ratio = grouped.max() / grouped.min()
    machine = str(ratio.idxmax())
    own = rows[rows["machine"] == machine].sort_values("value", kind="stable")
    low, high = own.iloc[0], own.iloc[-1]
    return (
        f"The spread matters most at {name(machine)}: the offered load is {number(float(low['value']))} with "
        f"{name(low['spread'])} sizes and {number(float(high['value']))} with {name(high['spread'])} ones."
    )


FINDINGS: dict[str, Finding] = {
    "model_shares": shares,
    "model_quantiles": quantiles,
    "size_spread": spread,
}
"""Findings by kind of figure."""

"""What the figures of studies of a multicluster and of the worked example show of their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import (
    Finding,
    against,
    known,
    listed,
    name,
    percent,
    sentences,
    shown,
)
from gridsched.figures.style import duration, number

_WHO = "scheme"
_MCP, _PB = "mcp", "pb"
_GROWS = 1.5
"""A queue that is so many times as long in the second half of the submissions does not settle."""


def curves(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """The scheme with the lowest MCP at the ends of the axis, and whether PB agrees."""
    rows = known(numbers)
    told = [_at_ends(rows[rows["measure"] == measure], measure.upper()) for measure in (_MCP, _PB)]
    return sentences(*told, _unsettled(rows)) or findings.NOTHING


def _unsettled(rows: pd.DataFrame) -> str:
    """Whose queues may grow, so that MCP and PB do not settle either."""
    growth = rows[(rows["measure"] == "growth") & (rows["mean"] > _GROWS)]
    if growth.empty:
        return ""
    return (
        f"Queues of {listed(dict.fromkeys(growth[_WHO]))} may grow as long as jobs arrive: then these values "
        "depend on the number of jobs."
    )


def _at_ends(rows: pd.DataFrame, what: str) -> str:
    """Lowest at the first and the last point of the axis."""
    if rows.empty:
        return ""
    first = rows[rows["group"] == rows["group"].iloc[0]]
    ends = [first[first["x"] == x] for x in dict.fromkeys([first["x"].min(), first["x"].max()])]
    best = [findings.lowest(end) for end in ends]
    sure = [_is_apart(end, row) for end, row in zip(ends, best, strict=True)]
    if len(best) == 2 and best[0][_WHO] == best[1][_WHO]:
        values = " and ".join(shown(row, duration) for row in best)
        doubt = "" if all(sure) else "; not sure, as intervals overlap"
        return f"{what} is lowest under {name(best[0][_WHO])} at both ends of the axis: {values}{doubt}."
    told = [
        f"At {name(row['point'])} {what} is lowest under {name(row[_WHO])}, {shown(row, duration)}"
        f"{'' if is_sure else '; not sure, as intervals overlap'}."
        for row, is_sure in zip(best, sure, strict=True)
    ]
    return sentences(*told)


def _is_apart(rows: pd.DataFrame, best: Mapping[str, Any]) -> bool:
    """Whether the interval of the best overlaps with no other; without intervals nobody knows."""
    others = rows[rows[_WHO] != best[_WHO]]
    return bool((others["low"] > best["high"]).all())


def advantage(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Largest and smallest advantage of the reference, and whether it is sure everywhere."""
    rows = known(numbers)
    reference = str(attributes.get("reference", ""))
    rows = rows[rows[_WHO] != reference]
    parts = []
    for measure in (_MCP, _PB):
        own = rows[rows["measure"] == measure]
        if len(own):
            told = sentences(
                against(
                    own,
                    [_WHO, "point"],
                    f"advantage of {name(reference or 'the reference')} in {measure.upper()}",
                    0.0,
                    percent,
                    highest_first=True,
                    word="over",
                ),
                _losses(own, reference, measure),
            )
            parts.append(told if measure == _MCP else findings.detail(told))
    return sentences(*parts, _unsettled(known(numbers))) or findings.NOTHING


def _losses(rows: pd.DataFrame, reference: str, measure: str) -> str:
    """To whom the reference surely loses, and where."""
    told = [
        f"{name(row[_WHO])} at {name(row['point'])}, by {percent(-row['mean'])}"
        for row in findings.records(rows)
        if findings.is_below(row, 0) and row[_WHO] != reference
    ]
    return f"In {measure.upper()} {name(reference)} is surely worse than {'; '.join(told)}." if told else ""


def queues(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whose queues do not settle."""
    growth = known(numbers[numbers["measure"] == "growth"])
    if growth.empty:
        return findings.NOTHING
    growing = growth[growth["low"].where(growth["low"].notna(), growth["mean"]) > _GROWS]
    if growing.empty:
        unsure = growth[growth["mean"] > _GROWS]
        more = (
            f"Those of {listed(dict.fromkeys(unsure[_WHO]))} may grow at some points, which is not sure."
            if len(unsure)
            else "The largest growth from first to second half is "
            f"{number(float(growth['mean'].max()))} times."
        )
        return sentences("No queue surely grows as long as jobs arrive.", more)
    points = growth["point"].nunique()
    told = [
        f"{name(who)} at {own['point'].nunique()} of {points} points"
        for who, own in growing.groupby(_WHO, sort=False)
    ]
    return (
        f"Queues surely grow as long as jobs arrive under {listed(told)}: means of these depend on the "
        "number of jobs."
    )


def points(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """As `advantage`, point by point."""
    return advantage(numbers, attributes)


def schemes(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Best and worst scheme relative to the reference at the first point with variants."""
    rows = known(numbers[numbers["measure"] == _MCP])
    if rows.empty:
        return findings.NOTHING
    reference = str(attributes.get("reference", ""))
    point = rows["point"].iloc[0]
    own = rows[(rows["point"] == point) & (rows[_WHO] != reference)]
    text = against(own, _WHO, f"MCP relative to {name(reference or 'the reference')}", 1.0)
    return f"At {name(point)}: {text[:1].lower()}{text[1:]}" if rows["point"].nunique() > 1 else text


def example(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """When each cluster is done, and how many jobs end late."""
    if numbers.empty:
        return "No job has a place."
    ends = numbers.groupby("cluster", sort=False)["end_time"].max()
    told = [f"{name(cluster)} at {number(float(end))} s" for cluster, end in ends.items()]
    late = numbers[numbers["late"].astype(bool)]["job_number"].nunique()
    words = (
        f"{findings.counted(late, 'job')} end after their deadline."
        if late
        else "No job ends after its deadline."
    )
    same = "changed" in numbers and not numbers["changed"].any()
    return sentences(
        "TITAN changes nothing here: these are the schedules that it is given." if same else "",
        f"The last jobs end on {listed(told)}. {words}",
    )


FINDINGS: dict[str, Finding] = {
    "multicluster_curves": curves,
    "multicluster_advantage": advantage,
    "multicluster_queues": queues,
    "multicluster_points": points,
    "multicluster_schemes": schemes,
    "example_handed_over": example,
    "example_improved": example,
}
"""Findings by kind of figure."""

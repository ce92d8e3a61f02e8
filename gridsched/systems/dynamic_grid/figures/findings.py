"""What the figures of a study of dynamic grids show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, against, known, listed, name, percent, sentences, shown
from gridsched.figures.style import duration, number
from gridsched.systems.dynamic_grid.figures.numbers import CLUSTER_USERS, DEFAULT, group_name, line_names
from gridsched.systems.dynamic_grid.measures import GRID_USERS

_RESPONSE = "response_time"


def clusters(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who gains and who loses in response time against every cluster on its own."""
    rows = known(numbers[(numbers["metric"] == _RESPONSE) & (numbers["case"] == DEFAULT)])
    if rows.empty:
        return findings.NOTHING
    rows = rows.assign(group=[group_name(str(group)) for group in rows["group"]])
    everybody = group_name(CLUSTER_USERS)
    parts = [
        f"Mean response of the users of all clusters, each on its own{_alone(attributes)}, is {shown(row)} "
        f"times that in the grid"
        f"{', which is not sure to be a gain or a loss' if findings.is_open(row, 1) else ''}."
        for row in findings.records(rows[rows["group"] == everybody])
    ]
    single = rows[~rows["group"].isin([everybody, group_name("all")])]
    told = findings.records(single.sort_values("mean", kind="stable", ascending=False))
    # A ratio can be sure while the difference of the same means is not: the table has both
    gain = [row["group"] for row in told if findings.is_above(row, 1) and not row.get("gain_low", 1) <= 0]
    lose = [row["group"] for row in told if findings.is_below(row, 1) and not row.get("gain_high", -1) >= 0]
    unsure = [row["group"] for row in told if row["group"] not in (*gain, *lose)]
    by_ratio = [row["group"] for row in told if row["group"] in unsure and not findings.is_open(row, 1)]
    parts += [f"Shorter in the grid, by their intervals: {listed(gain, 6)}."] if gain else []
    parts += [f"Longer: {listed(lose, 6)}."] if lose else []
    doubt = f"; by ratios alone {listed(by_ratio, 6)} would be" if by_ratio else ""
    parts += [f"Not sure: {listed(unsure, 6)}{doubt}."] if unsure else []
    return sentences(*parts, _saturated(rows[rows["group"] == everybody]))


_LONG_QUEUE = 86400.0
"""Seconds of mean response from which on queues connect the weeks of which intervals are made."""


def _saturated(rows: pd.DataFrame) -> str:
    """Whether intervals over weeks deserve trust."""
    longest = float(rows["alone"].max()) if "alone" in rows else 0.0
    if not longest > _LONG_QUEUE:
        return ""
    return (
        f"Alone, mean response is {duration(longest)}: queues last for days, so weeks are not independent "
        "and all these intervals are too narrow."
    )


def _alone(attributes: Mapping[str, Any]) -> str:
    """Which local policy clusters have, which says much about what there is to gain."""
    policy = attributes.get("policy")
    return f" under {name(policy)}" if policy else ""


def joining(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whom it helps most that a cluster joins, and whom it harms."""
    rows = known(numbers[numbers["metric"] == _RESPONSE]) if len(numbers) else numbers
    if rows.empty:
        return "No grid without one of its clusters was run."
    label = ["site", "line"] if rows["line"].nunique() > 1 else ["site"]
    what = "ratio of mean response without a cluster to that with it"
    parts = []
    for party, who in (("own", "its own users"), ("others", "all others")):
        text = against(rows[rows["party"] == party], label, what, 1.0, highest_first=True)
        parts.append(f"For {who} {text[:1].lower()}{text[1:]}")
    return sentences(*parts)


def lines(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """What the users of the clusters and of the grid see at the value that changes most."""
    if numbers.empty:
        return "No such factor was swept."
    rows = known(numbers)
    rows = rows[rows["case"] != rows["relative_to"]]
    parts: list[str] = []
    for (factor, group), own in rows.groupby(["factor", "group"], sort=False):
        if len(parts) < _MAX_PARTS:
            parts.append(_largest(own, str(factor), group_name(str(group))))
    return sentences(*parts) or findings.NOTHING


_MAX_PARTS = 4
_SMALL = 0.02
"""A change by a smaller share is called none."""


def _largest(rows: pd.DataFrame, factor: str, group: str) -> str:
    """The value of a factor at which the mean response of a group differs most from the default."""
    what = factor.replace("_", " ")
    change = (rows["mean"] - 1).abs()
    if float(change.max()) < _SMALL:
        return f"For {group} {what} changes mean response by less than {percent(_SMALL)}."
    row = findings.records(rows.loc[[change.idxmax()]])[0]
    lines_of = line_names(list(dict.fromkeys(rows["line"])))
    line = lines_of.get(row["line"], "")
    where = f" ({name(line)})" if line else ""
    sure = ", not sure" if findings.is_open(row, 1) else ""
    return (
        f"For {group} mean response differs most from the default at {what} {_text(row)}{where}: "
        f"{shown(row)} times{sure}."
    )


def _text(row: Mapping[str, Any]) -> str:
    seconds = row["factor"] in ("mean_stay", "mean_absence", "lease", "delta_t", "superstep", "status_period")
    return duration(row["value"]) if seconds and row["value"] == row["value"] else name(row["text"])


def variants(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which change helps and which harms the users of the clusters most."""
    if numbers.empty:
        return "No such factor was changed."
    rows = known(numbers[numbers["group"] == CLUSTER_USERS])
    return against(rows, "case", "mean response of the users of the clusters, relative to the default,", 1.0)


def flows(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whose work runs elsewhere, and who does most for others."""
    rows = known(numbers, "work")
    first = rows[rows["case"] == rows["case"].iloc[0]] if len(rows) else rows
    moved = first[(first["users"] != first["cluster"]) & (first["users"] != GRID_USERS)]
    if moved.empty or not moved["work"].sum() > 0:
        return "No cluster does work for users of another."
    away = moved.groupby("users", sort=False)["share"].sum().sort_values(kind="stable", ascending=False)
    largest = findings.highest(moved, "work")
    grid = first[(first["users"] == GRID_USERS) & (first["work"] > 0)]
    host = findings.highest(grid, "work") if len(grid) else None
    return sentences(
        f"Users of {name(away.index[0])} have the largest share of their work done elsewhere, "
        f"{percent(float(away.iloc[0]))}; the widest arrow between clusters is work of "
        f"{name(largest['users'])} at {name(largest['cluster'])}.",
        f"Of the work of the grid's own users, {name(host['cluster'])} has the largest share, "
        f"{percent(host['share'])}."
        if host
        else "",
    )


def departure(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whether grid jobs were there when the cluster left, and how long the last one stayed."""
    rows = known(numbers, "processors")
    cluster = name(attributes.get("departure_site", "the cluster"))
    grid = rows[rows["use"] == "grid"].sort_values("time", kind="stable")
    before = grid[grid["time"] <= 0]
    absence = float(attributes.get("departure_absence", float("nan")))
    there = float(before["processors"].iloc[-1]) if len(before) else 0.0
    gone = f"{cluster} leaves the grid for {duration(absence)}" if absence == absence else f"{cluster} leaves"
    if not there:
        return f"{gone}. No grid job runs on it at that moment, so nothing has to move."
    left = grid[(grid["time"] > 0) & (grid["processors"] == 0)]
    clear = f" The last has gone {duration(float(left['time'].iloc[0]))} later." if len(left) else ""
    proxies = rows[(rows["use"] == "proxies") & (rows["time"] > 0)]
    stay = float(proxies["processors"].max()) if len(proxies) else 0.0
    kept = f" At most {number(stay)} proxies stay behind." if stay else ""
    return f"{gone}, while grid jobs hold {number(there)} of its processors.{clear}{kept}"


FINDINGS: dict[str, Finding] = {
    "dynamic_map": flows,
    "dynamic_sites": clusters,
    "dynamic_joining": joining,
    "dynamic_overhead": lines,
    "dynamic_churn": lines,
    "dynamic_sweeps": lines,
    "dynamic_variants": variants,
    "dynamic_departure": departure,
}
"""Findings by kind of figure."""

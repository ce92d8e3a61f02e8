"""What the figures of a study of the arena show of its data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridsched.experiments.arena.grids import IDEAL_MACHINE
from gridsched.figures import findings
from gridsched.figures.findings import Finding, by_part, known, listed, name, percent, sentences, shown
from gridsched.figures.style import number

_WHO = "scheduler"
_SMALL = 0.05
"""A change of a mean by a smaller share is called none."""


def ranking(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """The best scheduler of each scenario, who is not surely worse, the worst, and who cannot."""
    reference = name(attributes.get("reference", "the reference"))
    schedulers = numbers[numbers["system"] != IDEAL_MACHINE].assign(mean=lambda rows: rows["ratio"])
    return by_part(schedulers, "scenario", lambda part: _ranking(part, reference))


def _ranking(rows: pd.DataFrame, reference: str) -> str:
    ordered = findings.records(known(rows).sort_values("mean", kind="stable"))
    if not ordered:
        return findings.NOTHING
    best, worst = ordered[0], ordered[-1]
    parts = [
        f"{name(best[_WHO])} has the shortest mean response of "
        f"{findings.counted(len(ordered), 'scheduler')}: {shown(best)} times that of {reference}."
    ]
    others = ordered[1:-1] if len(ordered) > 2 else ordered[1:]
    equals = [row[_WHO] for row in others if row["beaten_by"] == 0]
    if not findings.has_intervals(rows):
        parts.append(findings.NO_INTERVALS)
    elif equals:
        parts.append(f"Not surely worse: {listed(equals, 3)}.")
    elif len(ordered) > 1 and worst["beaten_by"]:
        parts.append("All others are surely worse.")
    if len(ordered) > 2:
        unsure = findings.has_intervals(rows) and not worst["beaten_by"]
        longest = (
            f"The longest is that of {name(worst[_WHO])}: {shown(worst)}"
            f"{', which is not surely worse either' if unsure else ''}."
        )
        parts.append(findings.detail(longest))
    without = findings.missing(rows, _WHO, "cannot schedule this grid")
    return sentences(*parts, *_families(ordered), findings.detail(without))


_VALUE = re.compile(r"(?P<stem>.+), (?P<key>\w+) (?P<value>\d+(\.\d+)?)")
"""Label of a scheduler that was swept over values of a parameter."""


def _families(ordered: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """From which value of a parameter on a scheduler that was swept is about as good as with the best one."""
    families: dict[tuple[str, str], dict[float, Mapping[str, Any]]] = {}
    for row in ordered:
        if label := _VALUE.fullmatch(str(row[_WHO])):
            family = families.setdefault((label["stem"], label["key"]), {})
            family[float(label["value"])] = row
    for (stem, key), found in families.items():
        if len(found) > 1:
            rows = dict(sorted(found.items()))
            told = [f"{number(row['mean'])} with {key} {value:g}" for value, row in rows.items()]
            yield f"{name(stem)} has {listed(told, 6)}: {_enough(key, rows)}"


def _enough(key: str, rows: Mapping[float, Mapping[str, Any]]) -> str:
    """The smallest value that is about as good as the best, or how much worse the next to the largest is."""
    least = min(row["mean"] for row in rows.values())
    enough = next(value for value, row in rows.items() if row["mean"] <= (1 + _SMALL) * least)
    *_, before, largest = rows
    if enough < largest:
        return f"by these means {key} {enough:g} is enough to be within {percent(_SMALL)} of the best."
    clusters = rows[largest].get("clusters", np.nan)
    what = "which asks every cluster" if key == "k" and largest >= clusters else "the largest that was run"
    more = rows[before]["mean"] / rows[largest]["mean"] - 1
    unsure = ", but that is not sure" if findings.overlap(rows[before], rows[largest]) else ""
    return (
        f"{key} {largest:g}, {what}, has the shortest mean; with {key} {before:g} it is {percent(more)} "
        f"longer{unsure}."
    )


def cost(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Messages of the best scheduler, and who sends fewest of those than which nobody is surely better."""
    rows = known(numbers.assign(mean=numbers["ratio"]))

    def tell(part: pd.DataFrame) -> str:
        asking = known(part, "messages_per_job")
        if asking.empty:
            return findings.NOTHING
        best = findings.records(asking.sort_values("mean", kind="stable"))[0]
        text = (
            f"{name(best[_WHO])}, with the shortest mean response ({number(best['mean'])} times the "
            f"reference), sends {number(best['messages_per_job'])} messages a job and moves "
            f"{_moved(best['moved'])} of the jobs."
        )
        if not findings.has_intervals(asking):
            return sentences(text, findings.NO_INTERVALS)
        return sentences(text, _fewest(asking, best))

    return by_part(rows, "scenario", tell)


def _fewest(rows: pd.DataFrame, best: Mapping[str, Any]) -> str:
    """Who gains without a surely better rival, and sends fewest messages for it."""
    unbeaten = rows[(rows["beaten_by"] == 0) & (rows["mean"] < 1)]
    fewest = findings.lowest(unbeaten, "messages_per_job") if len(unbeaten) else best
    if fewest["messages_per_job"] >= best["messages_per_job"]:
        return "All that send fewer are surely worse than some scheduler, or not better than the reference."
    unsure = ", not surely better than the reference" if findings.is_open(fewest, 1) else ""
    return (
        f"{name(fewest[_WHO])} sends fewest of those than which no scheduler is surely better: "
        f"{number(fewest['messages_per_job'])} a job, with {shown(fewest)}{unsure}."
    )


def _moved(share: float) -> str:
    return percent(share) if np.isfinite(share) else "an unknown share"


def loads(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who is best at which load, and which lines lie on each other."""
    schedulers = numbers[numbers["system"] != IDEAL_MACHINE]
    return by_part(known(schedulers, "response_time_mean"), "scenario", _loads)


def _loads(rows: pd.DataFrame) -> str:
    table = rows.pivot_table(index=_WHO, columns="load", values="response_time_mean", sort=False)
    table = table[sorted(table.columns)].dropna()
    if table.empty:
        return findings.NOTHING
    best = table.idxmin()
    names = list(dict.fromkeys(best))
    if len(names) == 1:
        text = f"{name(names[0])} has the shortest mean response at every rate of arrivals by these means."
    else:
        at = [
            f"{name(who)} at {listed(f'{load:g}' for load in best.index[best == who])} times the arrivals"
            for who in names
        ]
        text = f"By these means the shortest mean response is that of {'; '.join(at)}."
    low, high = table.columns[0], table.columns[-1]
    growth = (table[high] / table[low]).sort_values()
    spread = (
        f"From {low:g} to {high:g} times the arrivals, mean response grows least under "
        f"{name(growth.index[0])}, to {number(float(growth.iloc[0]))} times, and most under "
        f"{name(growth.index[-1])}, to {number(float(growth.iloc[-1]))} times."
    )
    return sentences(text, _unsure_best(rows, best), spread, _sure_changes(rows))


def _unsure_best(rows: pd.DataFrame, best: pd.Series[Any]) -> str:
    """At which loads the best may be another one, and at which not even the reference is surely worse."""
    if not findings.has_intervals(rows):
        return ""
    near, neutral = [], []
    for load, who in best.items():
        own, others = (
            findings.records(part) for _, part in rows[rows["load"] == load].groupby(rows[_WHO] != who)
        )
        near += [f"{load:g}"] if any(findings.overlap(own[0], other) for other in others) else []
        neutral += [f"{load:g}"] if findings.is_open(own[0], 1) else []
    return sentences(
        f"That is not sure at {listed(near)}, where intervals overlap." if near else "",
        f"At {listed(neutral)} it is not even surely shorter than under the reference." if neutral else "",
    )


def _sure_changes(rows: pd.DataFrame) -> str:
    """Whose intervals relative to the reference lie apart at the lowest and the highest load."""
    if not findings.has_intervals(rows):
        return findings.NO_INTERVALS
    ends = [rows[rows["load"] == load].set_index(_WHO) for load in (rows["load"].min(), rows["load"].max())]
    apart = [
        who
        for who in ends[0].index.intersection(ends[1].index)
        if ends[0].loc[who, "high"] < ends[1].loc[who, "low"]
        or ends[1].loc[who, "high"] < ends[0].loc[who, "low"]
    ]
    if apart:
        return f"Relative to the reference {listed(apart)} surely change with the arrivals."
    return "Relative to the reference nobody surely changes with the arrivals."


def estimates(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whom users' estimates hurt most, who gains, and to whom they make no difference."""
    schedulers = numbers[numbers["system"] != IDEAL_MACHINE]
    return by_part(known(schedulers), "scenario", _estimates)


def _estimates(rows: pd.DataFrame) -> str:
    largest = rows["estimate_error"].max()
    change = rows[rows["estimate_error"] == largest].set_index(_WHO)["mean"].sort_values() - 1
    what = "users' requested times" if largest == 1 else f"{largest:g} of users' errors"
    hurt, gain = change[change > _SMALL], change[change < -_SMALL]
    parts = []
    if len(hurt):
        parts.append(
            f"With {what} instead of perfect estimates, mean response grows most under "
            f"{name(hurt.index[-1])}: by {percent(float(hurt.iloc[-1]))}."
        )
    if len(gain):
        parts.append(
            f"With {what} it is shorter under {listed(gain.index)}, by up to {percent(-float(gain.iloc[0]))}."
        )
    same = len(change) - len(hurt) - len(gain)
    if same:
        who = f"{same} of {len(change)}" if same < len(change) else "all"
        parts.append(f"Under {who} it changes by less than {percent(_SMALL)}.")
    return sentences(*parts, findings.NO_INTERVALS)


def effects(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whom other conditions hurt least and most, and whom surely less or more than the reference."""
    reference = str(attributes.get("reference", ""))
    schedulers = numbers[numbers["system"] != IDEAL_MACHINE]
    return by_part(known(schedulers), "scenario", lambda part: _effects(part, reference))


def _effects(rows: pd.DataFrame, reference: str) -> str:
    against = f"mean response relative to {name(rows['baseline'].iloc[0])}"
    text = findings.against(rows, _WHO, against, 1.0)
    own = findings.records(rows[rows[_WHO] == reference])
    others = findings.records(rows[rows[_WHO] != reference])
    parts = []
    if own and others and findings.has_intervals(rows):
        less = [row[_WHO] for row in others if findings.is_below(row, own[0]["low"])]
        more = [row[_WHO] for row in others if findings.is_above(row, own[0]["high"])]
        told = f"By intervals that lie apart it is less than under {name(reference)}, {shown(own[0])},"
        parts.append(f"{told} under {_those(less)}, and more under {_those(more)}.")
    return sentences(text, *parts, findings.detail(_killed(rows)))


def _those(labels: Sequence[str]) -> str:
    return listed(labels) if labels else "none"


def _killed(rows: pd.DataFrame) -> str:
    """Under whom failing nodes killed fewest and most executions, and what that cost at most."""
    told = known(rows, "killed")
    if told.empty or not told["killed"].max():
        return ""
    few, many = findings.lowest(told, "killed"), findings.highest(told, "killed")
    lost = percent(float(told["extra_work"].max()))
    count = f"{many['killed']:,.0f}"
    if few["killed"] < many["killed"]:
        count = f"from {few['killed']:,.0f} under {name(few[_WHO])} to {count} under {name(many[_WHO])}"
    return (
        f"Executions that failing nodes killed: {count}; work that was lost or spent on checkpoints is up to "
        f"{lost} of that of the jobs."
    )


FINDINGS: dict[str, Finding] = {
    "arena_ranking": ranking,
    "arena_cost": cost,
    "arena_loads": loads,
    "arena_estimates": estimates,
    "arena_effects": effects,
}
"""Findings by kind of figure."""

"""What the figures of a study of imprecise calendars show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import (
    Finding,
    against,
    by_part,
    detail,
    extremes,
    known,
    listed,
    name,
    percent,
    sentences,
)
from gridsched.figures.style import duration, number

_WHO = "scheduler"
_MEAN, _WORK = "mean", "work_weighted"
_ALL = "all"
_PAPER = "paper"
_WORDS = {
    "mean": "the mean over jobs",
    "work_weighted": "the mean weighted by work",
    "ratio_of_means": "the ratio of the means",
    "geometric_mean": "the geometric mean",
}


def _first_estimates(numbers: pd.DataFrame) -> pd.DataFrame:
    """Rows with the first kind of estimates."""
    rows = known(numbers)
    return rows.loc[rows["estimates"] == rows["estimates"].iloc[0]] if len(rows) else rows


def delays(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """The best and worst scheduler, whether the four aggregates agree on the best, and what asking costs."""

    def tell(part: pd.DataFrame) -> str:
        asking = part["asks"].astype(bool)
        means = part[part["aggregate"] == _MEAN]
        if asking.all() or not asking.any():
            return sentences(_lowest(means, ""), detail(_agreement(part)))
        # A reserved job waits for the time that it asks for, so these delays do not compare
        reserved = findings.records(means[means["asks"].astype(bool)])
        told = [f"{number(row['mean'])} under {name(row[_WHO])}" for row in reserved]
        return sentences(
            _lowest(means[~means["asks"].astype(bool)], " without reservations"),
            detail(_agreement(part[~asking])),
            detail(
                f"With reservations it is {listed(told)}, as jobs wait for the later start that they ask for."
            ),
        )

    doubt = findings.NO_INTERVALS if len(numbers) and known(numbers, "to_best_low").empty else ""
    return sentences(by_part(_first_estimates(numbers), "case", tell), doubt)


def _lowest(means: pd.DataFrame, of: str) -> str:
    """Lowest and highest delay, and whose is not surely higher than the lowest."""
    text = extremes(means, _WHO, f"normalised queuing delay{of}, as the mean over jobs,")
    near = _near(means)
    return sentences(text, f"That of {listed(near)} is not surely higher than the lowest." if near else "")


def _near(rows: pd.DataFrame) -> list[str]:
    """Schedulers that are not surely worse than the best of an aggregate, where intervals are known."""
    if "to_best_low" not in rows:
        return []
    best = findings.lowest(rows)[_WHO]
    return [str(who) for who in rows.loc[(rows["to_best_low"] <= 1) & (rows[_WHO] != best), _WHO]]


def _agreement(rows: pd.DataFrame) -> str:
    """Whether all aggregates have the same best, and whether that is sure by all of them."""
    by_aggregate = {str(aggregate): own for aggregate, own in rows.groupby("aggregate", sort=False)}
    best = {aggregate: str(findings.lowest(own)[_WHO]) for aggregate, own in by_aggregate.items()}
    names = dict.fromkeys(best.values())
    if len(best) < 2:
        return ""
    if len(names) == 1:
        unsure = [_WORDS.get(aggregate, aggregate) for aggregate, own in by_aggregate.items() if _near(own)]
        by = "any of them" if len(unsure) == len(best) else listed(unsure)
        sure = f", but not surely by {by}" if unsure else ""
        return f"All {len(best)} aggregates have the same lowest{sure}."
    told = [
        f"{name(who)} by {listed(_WORDS.get(a, a) for a, w in best.items() if w == who)}" for who in names
    ]
    return f"Aggregates disagree on the best: {'; '.join(told)}."


def classes(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which class of jobs is delayed most, and where schedulers differ most."""
    rows = known(numbers[(numbers["aggregate"] == _MEAN) & (numbers["job_class"] != _ALL)])
    if rows.empty:
        return findings.NOTHING
    worst = findings.highest(rows)
    grouped = rows.groupby("job_class", sort=False)["mean"]
    spread = grouped.max() / grouped.min()
    widest, most = str(spread.idxmax()), float(spread.max())
    return sentences(
        f"Jobs of {name(worst['job_class'])} under {name(worst[_WHO])} have the largest mean delay, "
        f"{number(worst['mean'])}.",
        f"Schedulers differ most for jobs of {name(widest)}: {number(most)} times between best and worst."
        if rows[_WHO].nunique() > 1
        else "",
        findings.NO_INTERVALS,
    )


def clusters(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Cluster with the longest delays, and where the scheduler matters most."""
    shown = numbers["drawn"].astype(bool) & (numbers["aggregate"] == _MEAN)
    rows = known(numbers[shown & (numbers["cluster"] != _ALL)])
    if "job_class" in rows:
        rows = rows[rows["job_class"] == _ALL]
    if rows.empty:
        return findings.NOTHING
    worst = findings.highest(rows)
    grouped = rows.groupby("cluster", sort=False)["mean"]
    spread = grouped.max() / grouped.min()
    widest = str(spread.idxmax())
    own = rows[rows["cluster"] == widest]
    return sentences(
        f"The largest mean normalised delay is {number(worst['mean'])}, of jobs of {name(worst['cluster'])} "
        f"under {name(worst[_WHO])}.",
        f"The scheduler matters most at {name(widest)}: from {number(float(own['mean'].min()))} to "
        f"{number(float(own['mean'].max()))}."
        if own[_WHO].nunique() > 1
        else "",
        findings.NO_INTERVALS,
    )


def trade(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who gains and who gives most work."""
    rows = known(numbers[(numbers["measure"] == "balance") & (numbers["scheduler"] != _PAPER)])
    if rows.empty:
        return "No cluster works for another."
    gain, loss = findings.highest(rows), findings.lowest(rows)
    printed = (numbers["scheduler"] == _PAPER).any()
    return sentences(
        f"{name(gain['cluster'])} gains most work from others, {number(gain['mean'])} processor-hours under "
        f"{name(gain[_WHO])}; {name(loss['cluster'])} gives most, {number(-loss['mean'])} processor-hours "
        f"under {name(loss[_WHO])}.",
        "Hollow stars are what the paper printed." if printed else "",
    )


def cost(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Largest and smallest calendars, and operations a job."""
    rows = known(numbers)
    slots, operations = (
        rows[rows["measure"] == measure].groupby(_WHO, sort=False)["mean"].mean().reset_index()
        for measure in ("slots_max", "operations_per_job")
    )
    if slots.empty:
        return findings.NOTHING
    return sentences(
        extremes(slots, _WHO, "number of slots of a calendar"),
        extremes(operations, _WHO, "number of operations a job") if len(operations) else "",
    )


def reservations(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How many reservations are granted, and whether the other jobs pay."""
    granted = known(numbers[numbers["measure"] == "acceptance"])
    granted = granted[granted["value"] > 0]
    if granted.empty:
        return "No job asks for a reservation."
    ratios = known(numbers[(numbers["measure"] == "delay_others_ratio") & (numbers["aggregate"] == _MEAN)])
    largest = ratios[ratios["value"] == ratios["value"].max()]
    low, high = float(granted["mean"].min()), float(granted["mean"].max())
    shares = percent(low) if percent(low) == percent(high) else f"{percent(low)} to {percent(high)}"
    return sentences(f"{shares} of the reservations are granted.", _payers(largest))


def _payers(rows: pd.DataFrame) -> str:
    """What the others pay at the largest share, case by case."""
    if rows.empty:
        return ""
    share = percent(float(rows["value"].iloc[0]))
    if len(rows) == 1:
        row = findings.records(rows)[0]
        sure = (
            "their mean delay grows"
            if findings.is_above(row, 1)
            else "their mean delay falls, as jobs that reserve ask to start later and leave room till then"
            if findings.is_below(row, 1)
            else "whether it grows is not sure"
        )
        return (
            f"Where {share} of the jobs ask, the mean delay of the others is {findings.shown(row)} times "
            f"that without: {sure}."
        )
    return against(rows, "case", f"mean delay of the others where {share} of the jobs ask", 1.0)


def staleness(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How many inquiries are declined at the longest period, and what it does to delays."""
    rows = known(numbers)
    failed = rows[rows["measure"] == "failed_share"].sort_values("value", kind="stable")
    if failed.empty:
        return findings.NOTHING
    failed = failed[failed["case"] == failed["case"].iloc[0]]
    longest = findings.records(failed)[-1]
    ratios = rows[(rows["measure"] == "delay_ratio") & (rows["value"] == longest["value"])]
    ratios = ratios[(ratios["case"] == longest["case"]) & (ratios["aggregate"] == _MEAN)]
    told = [
        f"The mean delay is then {findings.shown(row)} times that with fresh calendars"
        f"{', which is not sure' if findings.is_open(row, 1) else ''}."
        for row in findings.records(ratios)
    ]
    return sentences(
        f"With {duration(longest['value'])} between updates {percent(longest['mean'])} of the inquiries are "
        "declined.",
        *told,
    )


def options(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whether any setting surely changes the mean delay."""
    rows = known(numbers)
    rows = rows[rows["aggregate"] == _MEAN] if len(rows) else rows
    reference = attributes.get("reference", "")
    rows = rows[rows[_WHO] != reference] if len(rows) else rows
    if rows.empty:
        return findings.NOTHING
    labelled = rows.assign(
        setting=[
            f"{str(p).replace('_', ' ')} {v:g}" for p, v in zip(rows["parameter"], rows["value"], strict=True)
        ]
    )
    several = labelled["case"].nunique() > 1
    return against(labelled, ["case", "setting"] if several else "setting", "relative mean delay", 1.0)


FINDINGS: dict[str, Finding] = {
    "calendar_delays": delays,
    "calendar_classes": classes,
    "calendar_clusters": clusters,
    "calendar_trade": trade,
    "calendar_cost": cost,
    "calendar_reservations": reservations,
    "calendar_staleness": staleness,
    "calendar_options": options,
}
"""Findings by kind of figure."""

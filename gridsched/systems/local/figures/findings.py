"""What the figures of a study of local policies show of its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, by_part, extremes, known, listed, name, percent, sentences
from gridsched.figures.style import duration, number
from gridsched.metrics.jobs import RECORDED

_WHO = "scheme"
_FORMS = {"wait_time": duration, "bounded_slowdown": number}
_NAMES = {"wait_time": "mean wait", "bounded_slowdown": "mean bounded slowdown"}
_RARE = 0.99
"""Quantile that stands for the unluckiest jobs."""


def means(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Shortest and longest mean wait, and what the kind of estimates changes most."""
    rows = known(numbers[numbers["metric"] == "wait_time"])
    simulated = rows[rows[_WHO] != RECORDED]

    def tell(part: pd.DataFrame) -> str:
        first = part[part["estimate"] == part["estimate"].iloc[0]]
        what = f"mean wait with {name(first['estimate'].iloc[0])} run times"
        return sentences(
            extremes(first, _WHO, what, duration),
            _estimates(part) if alone else "",
            "" if findings.has_intervals(first) or len(first) < 2 else findings.NO_INTERVALS,
        )

    alone = simulated["workload"].nunique() == 1
    return by_part(simulated, "workload", tell)


def _estimates(rows: pd.DataFrame) -> str:
    """To which policy another kind of estimates makes most difference."""
    table = rows.pivot_table(index=_WHO, columns="estimate", values="mean", sort=False)
    if table.shape[1] < 2:
        return ""
    first = str(rows["estimate"].iloc[0])
    change = table.drop(columns=first).div(table[first], axis=0) - 1
    told = known(change.reset_index().melt(_WHO, value_name="mean"))
    if told.empty:
        return ""
    row = findings.highest(told.assign(size=told["mean"].abs()), "size")
    who, kind, largest = row[_WHO], row["estimate"], row["mean"]
    if abs(largest) < 0.005:
        return f"With {listed(table.columns.drop(first))} run times waits are the same."
    side = "longer" if largest > 0 else "shorter"
    return f"With {name(kind)} run times waits change most under {name(who)}: {percent(abs(largest))} {side}."


def differences(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who surely waits less and more than under the reference, and by how much at most."""
    reference = name(attributes.get("reference", "the reference"))
    rows = known(numbers[numbers["metric"] == "wait_time"])

    def tell(part: pd.DataFrame) -> str:
        first = part[part["estimate"] == part["estimate"].iloc[0]]
        return _against(first, reference)

    return by_part(rows, "workload", tell)


def _against(rows: pd.DataFrame, reference: str) -> str:
    if not findings.has_intervals(rows):
        # Differences of exactly nothing have intervals without width
        if (rows["mean"] == 0).all():
            return f"No other policy changes the mean wait of {reference}."
        return sentences(_step(rows, reference), findings.NO_INTERVALS)
    told = findings.records(rows.sort_values("mean", kind="stable"))
    less = [row for row in told if findings.is_below(row, 0)]
    more = [row for row in reversed(told) if findings.is_above(row, 0)]
    unsure = [str(row[_WHO]) for row in told if findings.is_open(row, 0)]
    parts: list[str] = []
    for side, ones in (("shorter", less), ("longer", more)):
        if ones:
            others = f", and also under {listed(row[_WHO] for row in ones[1:])}" if len(ones) > 1 else ""
            start = "It is" if parts else f"Against {reference} the mean wait is"
            parts.append(f"{start} {side} under {name(ones[0][_WHO])}, by {_size(ones[0])}{others}.")
    if not parts:
        parts.append(f"By its interval no policy differs from {reference} in mean wait.")
    open_ = f"Not sure: {listed(unsure, 2)}." if unsure else ""
    many = "resampled" in rows and rows["resampled"].all()
    return sentences(*parts, findings.detail(sentences(open_, _MANY_LOGS if many else _ONE_LOG)))


_ONE_LOG = (
    "This holds for these jobs: the intervals come from parts of one workload, "
    "and are too narrow where queues last longer than a part."
)


_MANY_LOGS = "The intervals are of the mean over logs resampled by users: they hold for these users."


def _step(rows: pd.DataFrame, reference: str) -> str:
    ordered = findings.records(rows.sort_values("mean", kind="stable"))
    best, worst = ordered[0], ordered[-1]
    return (
        f"Against {reference} the mean wait changes from {_signed(best['mean'])} under {name(best[_WHO])} "
        f"to {_signed(worst['mean'])} under {name(worst[_WHO])}."
    )


def _signed(seconds: float) -> str:
    return ("+" if seconds > 0 else "") + duration(seconds)


def _size(row: Mapping[str, Any]) -> str:
    """Size of a difference whose sign is said in words."""
    low, high = sorted((abs(row["low"]), abs(row["high"])))
    return f"{duration(abs(row['mean']))} ({duration(low)} to {duration(high)})"


def distribution(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """What the unluckiest jobs wait."""
    rows = numbers[(numbers["metric"] == "wait_time") & np.isclose(numbers["quantile"], _RARE)]
    rows = known(rows[rows[_WHO] != RECORDED], "value").assign(mean=lambda part: part["value"])

    def tell(part: pd.DataFrame) -> str:
        few = ""
        if "beyond" in part and len(part):
            few = f"Only {int(part['beyond'].min())} jobs wait longer, and there are no intervals."
        return sentences(extremes(part, _WHO, "wait that one job in 100 exceeds", duration), few)

    if rows.empty and len(numbers):
        return "Too few jobs to tell what one in 100 waits."
    return by_part(rows, "workload", tell)


def classes(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """The class that is slowed down most, and the one to which the policy matters most."""
    rows = known(numbers[(numbers["job_class"] != "all") & (numbers[_WHO] != RECORDED)])

    def tell(part: pd.DataFrame) -> str:
        worst = findings.highest(part)
        best, longest = (part.groupby("job_class")["mean"].agg(kind) for kind in ("min", "max"))
        spread = longest / best
        most = str(spread.idxmax())
        return sentences(
            f"The largest mean bounded slowdown is {number(worst['mean'])}, of {name(worst['job_class'])} "
            f"jobs under {name(worst[_WHO])}.",
            f"The policy matters most to {name(most)} jobs: from {number(float(best[most]))} to "
            f"{number(float(longest[most]))}."
            if spread[most] > 1.005
            else "",
        )

    return by_part(rows, "workload", tell)


def recorded(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How the simulated mean waits lie beside the recorded one."""
    rows = known(numbers[numbers["statistic"] == "mean"], "value") if len(numbers) else numbers
    if rows.empty:
        return "No log of this study recorded its wait times."

    def tell(part: pd.DataFrame) -> str:
        logged = part.loc[part[_WHO] == RECORDED, "value"]
        others = part[part[_WHO] != RECORDED].sort_values("value", kind="stable")
        if logged.empty or others.empty:
            return findings.NOTHING
        low, high = findings.records(others)[0], findings.records(others)[-1]
        return (
            f"The log recorded a mean wait of {duration(float(logged.iloc[0]))}; simulated ones go from "
            f"{duration(low['value'])} under {name(low[_WHO])} to {duration(high['value'])} under "
            f"{name(high[_WHO])}."
        )

    return by_part(rows, "workload", tell)


def load(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Whose queues are shortest and longest on average, and whether queues grow to the end."""
    rows = known(numbers[numbers[_WHO] != RECORDED], "queue_length")
    if rows.empty:
        return findings.NOTHING
    mean = rows.groupby(_WHO, sort=False)["queue_length"].mean().reset_index()
    text = extremes(mean.rename(columns={"queue_length": "mean"}), _WHO, "mean number of waiting jobs")
    growing = [str(who) for who, own in rows.groupby(_WHO, sort=False) if _grows(own["queue_length"])]
    every = mean[_WHO].nunique()
    if not growing:
        return text
    who = "all policies" if len(growing) == every and every > 1 else listed(growing)
    return sentences(
        text,
        f"Under {who} queues grow from quarter to quarter until they are longest, and never empty again: "
        "means depend on the length of the log.",
    )


def _grows(queue: pd.Series[float]) -> bool:
    """Whether a queue is longer in each quarter of the time, and never as short, as in the one before.

    The time in which the queue only drains, behind its longest, does not count.
    """
    values = queue.to_numpy(np.float64)
    values = values[: int(values.argmax()) + 1] if len(values) else values
    if len(values) < 8:
        return False
    quarters = np.array_split(values, 4)
    return all(
        float(later.mean()) > float(before.mean()) and float(later.min()) > float(before.min())
        for before, later in pairwise(quarters)
    )


def workload(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Busiest hour, largest part of the work, and how well users estimate."""
    hours = known(numbers[numbers["variable"] == "arrivals_hour"], "value")
    work = known(numbers[numbers["variable"] == "work_share"], "value")
    jobs = known(numbers[numbers["variable"] == "size_share"], "value")
    parts = []
    if len(work):
        most = findings.highest(work, "value")
        same = jobs[jobs["label"] == most["label"]]["value"]
        share = f" ({percent(float(same.iloc[0]))} of the jobs)" if len(same) else ""
        parts.append(
            f"Jobs of {name(most['label'])} processors{share} have the largest share of the work, "
            f"{percent(float(most['value']))}."
        )
    if len(hours) and hours["value"].max() > hours["value"].mean() * 1.25:
        busiest = findings.highest(hours, "value")
        times = float(busiest["value"]) / float(hours["value"].mean())
        parts.append(
            f"The busiest hour begins at {name(busiest['label'])} h, {number(times)} times the mean."
        )
    elif len(hours):
        parts.append("Jobs come about evenly over the day.")
    return sentences(*parts) or "This log does not say what the panels would show."


def gantt(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """When all is done, how full the cluster is until then, and who starts last."""
    if numbers.empty:
        return "No job ran."
    first, last = int(numbers["start_time"].min()), int(numbers["end_time"].max())
    work = float((numbers["processors"] * (numbers["end_time"] - numbers["start_time"])).sum())
    sizes = (numbers["first_processor"] + numbers["processors"]).groupby(numbers["cluster"]).max().sum()
    starts = numbers.groupby("job_number")["start_time"].min()
    latest = starts[starts == starts.max()].index.tolist()
    full = percent(work / (float(sizes) * (last - first))) if last > first else "all"
    return (
        f"All {findings.counted(len(starts), 'job')} have ended after {duration(last - first)}; until then "
        f"{full} of the processor time is used. {_jobs(latest)} start{'s' if len(latest) == 1 else ''} last, "
        f"{duration(int(starts.max()) - first)} after the first start."
    )


def _jobs(labels: list[Any]) -> str:
    return f"Job{'s' if len(labels) > 1 else ''} {listed(labels)}"


_METRIC = "response_time"
"""Metric that findings on conditions tell of."""


def effects(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Where and under whom other conditions change the mean response least and most."""
    rows = known(numbers[numbers["metric"] == _METRIC])

    def tell(part: pd.DataFrame) -> str:
        what = f"mean response time relative to {name(part['baseline'].iloc[0])}"
        case = part[_WHO].astype(str) + " in " + part["workload"].astype(str)
        told = findings.against(part.assign(case=case), "case", what, 1.0)
        return sentences(told, findings.detail(_killed(part)))

    return _first_and_others(rows, tell)


def _first_and_others(rows: pd.DataFrame, tell: Callable[[pd.DataFrame], str]) -> str:
    """What there is to tell of the first baseline, and as details of the others."""
    told = [
        f"{name(baseline)}: {tell(part)}" if rows["baseline"].nunique() > 1 else tell(part)
        for baseline, part in rows.groupby("baseline", sort=False)
    ]
    return sentences(told[0], *map(findings.detail, told[1:])) if told else findings.NOTHING


def _killed(rows: pd.DataFrame) -> str:
    """How many executions failing nodes killed at most, and what that cost."""
    told = known(rows, "killed")
    if told.empty or not told["killed"].max():
        return ""
    most = findings.highest(told, "killed")
    where = f"in {name(most['workload'])} under {name(most[_WHO])}"
    return (
        f"Failing nodes killed most executions {where}, {int(most['killed']):,}; work that was lost or spent "
        f"on checkpoints is up to {percent(float(told['extra_work'].max()))} of that of the jobs."
    )


def rankings(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which pairs of policies change places under other conditions, and for which that is sure."""
    rows = known(numbers[numbers["metric"] == _METRIC])
    return _first_and_others(rows, _ranking)


def _ranking(rows: pd.DataFrame) -> str:
    baseline = str(rows["baseline"].iloc[0])
    orders = {
        str(scenario): {str(row[_WHO]): row for row in findings.records(part)}
        for scenario, part in rows.groupby("workload", sort=False)
    }
    first = orders.pop(baseline)
    pairs = [
        (one, other) for one, other in permutations(first, 2) if first[one]["mean"] < first[other]["mean"]
    ]
    changed: list[str] = []
    sure: list[str] = []
    for scenario, order in orders.items():
        for one, other in pairs:
            if order[other]["mean"] < order[one]["mean"]:
                told = f"{name(other)} before {name(one)} in {name(scenario)}"
                changed.append(told)
                if other in _ahead(first[one]) and one in _ahead(order[other]):
                    sure.append(told)
    best = min(first, key=lambda who: float(first[who]["mean"]))
    text = (
        f"{name(best)} has the shortest mean response time in {name(baseline)}, of {len(first)} policies. "
        f"In {len(orders)} other {'scenario' if len(orders) == 1 else 'scenarios'} "
    )
    if not changed:
        return f"{text}the order of the policies is the same."
    total = findings.counted(len(pairs) * len(orders), "pair")
    certain = f"surely so: {listed(sure)}" if sure else "for none of them surely in both"
    return sentences(
        f"{text}{len(changed)} of {total} change places, {certain}.",
        findings.detail(f"They are {listed(changed, 3)}." if len(changed) > 1 else f"It is {changed[0]}."),
    )


def ranking(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which policy is best how often, and which pairs are surely ordered, the same way on all workloads."""
    rows = known(numbers[numbers["metric"] == "bounded_slowdown"])
    best: dict[str, int] = {}
    same: list[str] = []
    beaten: dict[tuple[str, str], int] = {}
    for workload, part in rows.groupby("workload", sort=False):
        if number(part["value"].min()) == number(part["value"].max()):
            same.append(str(workload))
            continue
        first = str(findings.lowest(part, "value")[_WHO])
        best[first] = best.get(first, 0) + 1
        for row in findings.records(part):
            for other in filter(None, str(row["beats"]).split(";")):
                pair = str(row[_WHO]), other
                beaten[pair] = beaten.get(pair, 0) + 1
    if not best:
        return findings.NOTHING
    lowest = [f"{name(who)} on {best[who]}" for who in sorted(best, key=lambda who: -best[who])]
    one_way = sorted((pair for pair in beaten if pair[::-1] not in beaten), key=lambda pair: -beaten[pair])
    either = [pair for pair in beaten if pair[::-1] in beaten and pair < pair[::-1]]
    pairs = findings.counted(rows[_WHO].nunique() * (rows[_WHO].nunique() - 1) // 2, "pair")
    always = [f"{name(one)} beats {name(other)} ({beaten[one, other]})" for one, other in one_way]
    contrary = [f"{name(one)} and {name(other)}" for one, other in either]
    return sentences(
        f"Of {findings.counted(sum(best.values()), 'workload')}, {listed(lowest)} "
        f"{'has' if len(lowest) == 1 else 'have'} the lowest mean bounded slowdown.",
        f"{len(always)} of {pairs} are surely ordered somewhere, and nowhere surely the other way round"
        f"{': ' if always else ''}{listed(always, 6)}.",
        findings.detail(
            f"{len(contrary)} are surely ordered one way on some and the other way on others: "
            f"{listed(contrary, 6)}."
            if contrary
            else ""
        ),
        findings.detail(f"All policies are alike on {listed(same)}." if same else ""),
    )


def _ahead(row: Mapping[str, Any]) -> list[str]:
    """Policies whose mean is surely larger."""
    return str(row["ahead_of"]).split(";")


def going_on(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How often sessions go on after the shortest and the longest responses."""

    def tell(part: pd.DataFrame) -> str:
        shortest, longest = part.iloc[0], part.iloc[-1]
        half = part[part["share"] <= part["share"].iloc[0] / 2]
        return sentences(
            f"After responses of less than {duration(float(part['response'].iloc[1]))} "
            f"{percent(float(shortest['share']))} of the sessions go on, "
            f"after {duration(longest['response'])} and more {percent(float(longest['share']))}.",
            f"From {duration(float(half['response'].iloc[0]))} on it is at most half of the first share."
            if len(half)
            else "",
        )

    return by_part(known(numbers, "share"), "workload", tell)


def resampled(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Under which policy jobs wait least in each scenario, and where policies change places."""
    rows = known(numbers[numbers["metric"] == "wait_time"])
    if rows.empty:
        return findings.NOTHING
    first = {
        str(workload): findings.lowest(part)[_WHO] for workload, part in rows.groupby("workload", sort=False)
    }
    told = [
        f"{listed([scenario for scenario, who in first.items() if who == best])} ({name(best)})"
        for best in dict.fromkeys(first.values())
    ]
    same = len(told) == 1
    return (
        f"{name(next(iter(first.values())))} has the shortest mean wait in all {len(first)} scenarios."
        if same
        else f"The policy with the shortest mean wait is not the same in all scenarios: {listed(told)}."
    )


def productivities(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Who surely gets more done than under the reference, and whether jobs wait longer for it."""
    reference = name(attributes.get("reference", "the reference"))
    rows = known(numbers)
    done = rows[rows["metric"] == "productivity"]
    if done.empty:
        return findings.NOTHING

    def tell(part: pd.DataFrame) -> str:
        more = [row for row in findings.records(part) if findings.is_above(row, 1)]
        if not more:
            return f"Under no policy do users surely get more done than under {reference}."
        told = [f"{name(row[_WHO])} {_more(row)}" for row in sorted(more, key=lambda row: -row["mean"])]
        waits = rows[(rows["metric"] == "wait_time") & (rows["workload"] == part["workload"].iloc[0])]
        longer = [
            str(row[_WHO])
            for row in findings.records(waits)
            if row["mean"] > 1 and row[_WHO] in {each[_WHO] for each in more}
        ]
        return sentences(
            f"Users surely get more done than under {reference} with {listed(told)}.",
            f"Mean waits are longer all the same under {listed(longer)}." if longer else "",
        )

    return by_part(done, "workload", tell)


def _more(row: Mapping[str, Any]) -> str:
    return f"(+{percent(row['mean'] - 1)}, {percent(row['low'] - 1)} to {percent(row['high'] - 1)})"


FINDINGS: dict[str, Finding] = {
    "resampled_means": resampled,
    "users_going_on": going_on,
    "users_productivity": productivities,
    "conditions_effects": effects,
    "conditions_ranking": rankings,
    "policies_means": means,
    "policies_ranking": ranking,
    "policies_differences": differences,
    "policies_distribution": distribution,
    "policies_classes": classes,
    "recorded_waits": recorded,
    "load": load,
    "workload": workload,
    "gantt": gantt,
}
"""Findings by kind of figure."""

"""Sentences about calendars: averages of the delay, and what clusters do for each other."""

from __future__ import annotations

import pandas as pd

from gridsched.experiments.specification import Specification
from gridsched.presentation.findings import NOTHING
from gridsched.presentation.sentences import Attributes, count, extremes, listed, name, percent, value_text


def averages(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which schedulers have a significantly lower delay than the reference by all averages, or by some."""
    own = numbers[numbers["scheduler"] != attributes["reference"]]
    if "significant" not in own or own["probability"].isna().all():
        return ["No difference in any of the averages is estimable."]
    reference, several = name(attributes["reference"]), own["scenario"].nunique() > 1
    lines = []
    for scenario, part in own.groupby("scenario", sort=False):
        told = [
            text for side, sign in (("lower", -1), ("higher", 1)) if (text := _by_averages(part, side, sign))
        ]
        place = f"{name(scenario)}: the" if several else "The"
        lines.append(
            f"{place} delay is significantly {' and '.join(told)}."
            if told
            else f"{place} delay of no scheduler differs significantly from {reference} by any average."
        )
    return lines


def _by_averages(part: pd.DataFrame, side: str, sign: int) -> str:
    """Who has a lower or a higher delay, by all averages and by some of them."""
    total = part["measure"].nunique()
    number = (part["significant"] == sign).groupby(part["scheduler"], sort=False).sum()
    by_all, by_some = number.index[number == total], number.index[(number > 0) & (number < total)]
    told = [
        *([f"for {listed(by_all, 3)} by all {count(total)} averages"] if len(by_all) else []),
        *([f"for {listed(by_some, 3)} by some averages"] if len(by_some) else []),
    ]
    return f"{side} {', '.join(told)}" if told else ""


def trade(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The share of the work that clusters do for users of others, and who does most of it."""
    table = numbers.pivot_table(index=["scheduler", "group"], columns="measure", values="value", sort=False)
    if not {"supplied", "local_work"} <= set(table):
        return NOTHING
    total = table.groupby(level="scheduler", sort=False).sum()
    share = (total["supplied"] / (total["supplied"] + total["local_work"])).rename("share").sort_values()
    low, high = share.iloc[0], share.iloc[-1]
    if not high:
        return ["No cluster works for users of another."]
    who, most = name(share.index[-1]), table.loc[share.index[-1]]["supplied"]
    ends = extremes(share.reset_index(), lambda row: percent(row["share"]))
    return [
        f"{percent(high)} of the work is done for users of another cluster under {who}."
        if percent(low) == percent(high)
        else f"The share of the work that is done for users of another cluster ranges from {ends}.",
        f"Under {who}, {str(most.idxmax()).removeprefix('cluster ')} does most of it "
        f"({value_text(most.max(), 'h')}).",
    ]

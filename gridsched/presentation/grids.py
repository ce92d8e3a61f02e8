"""What grids show besides the usual forms: flows, users of clusters, effects of conditions, messages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gridsched.experiments.specification import Specification
from gridsched.figures import style
from gridsched.inference import IDENTICAL
from gridsched.presentation.findings import NOTHING, facets_of, without_bounds
from gridsched.presentation.forms import MOST_PANELS
from gridsched.presentation.sentences import (
    Attributes,
    count,
    estimate_text,
    extremes,
    first_measure,
    listed,
    name,
    percent,
    value_text,
)

NOTHING_COMPARED = ["Nothing is compared."]

_BETWEEN = " to "


# --- flows between clusters -----------------------------------------------------------------------


def flow_tables(numbers: pd.DataFrame, facets: str) -> dict[str, pd.DataFrame]:
    """What went from each cluster (rows) to each (columns), for facets in which something moved."""
    found = {}
    for label, part in numbers.groupby(facets, sort=False):
        ends = part["group"].str.split(_BETWEEN, n=1, expand=True)
        table = part.assign(home=ends[0], cluster=ends[1]).pivot_table(
            index="home", columns="cluster", values="value", sort=False
        )
        table = table.reindex(columns=table.index).fillna(0.0)
        if table.to_numpy().sum() > np.trace(table.to_numpy()) * (1 + 1e-9):
            found[str(label)] = table
    return found


def flow_map(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> Figure:
    """Shares of the work of each cluster's users by the cluster that ran it, a panel each facet."""
    tables = dict(list(flow_tables(numbers, specification.facets).items())[:MOST_PANELS])
    if not tables:
        figure = style.new_figure(1.0)
        style.no_data(figure.subplots(), "no job ran elsewhere than at home")
        return figure
    size = max(len(table) for table in tables.values())
    columns = min(3 if size <= 6 else 2, len(tables))
    lines = -(-len(tables) // columns)
    figure = style.new_figure(lines * style.WIDTH / columns + 0.2)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, (label, table) in zip(grid.flat, tables.items(), strict=False):
        shares = table.div(table.sum(axis=1).replace(0.0, np.nan), axis=0).to_numpy()
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="equal")
        names = [style.plain(each, 8) for each in table.index]
        axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 3 else 0)
        axes.set_yticks(range(len(names)), names)
        axes.grid(visible=False)
        axes.set_title(style.plain(label, 26))
        for i, j in np.argwhere(shares >= 0.005) if size <= 6 else ():
            ink = "white" if shares[i, j] > 0.6 else style.INK
            axes.text(j, i, f"{100 * shares[i, j]:.0f}", ha="center", va="center", color=ink)
    for axes in grid[:, 0]:
        axes.set_ylabel("users of")
    for axes in grid.flat[len(tables) :]:
        axes.set_axis_off()
    figure.supxlabel("cluster that ran the work [% of the row]", fontsize=8.5)
    return figure


def flows(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which scheduler moves most and least of the work, and which cluster sends most."""
    if numbers.empty:
        return NOTHING
    tables = flow_tables(numbers, specification.facets)
    if not tables:
        return ["No job ran elsewhere than at home."]
    at_home = {label: np.trace(table) / table.to_numpy().sum() for label, table in tables.items()}
    moved = 1 - pd.Series(at_home, name="moved").rename_axis("scheduler")
    moved = moved.sort_values(kind="stable")
    most = moved.index[-1]
    ends = extremes(moved.reset_index(), lambda row: percent(row["moved"]))
    sent = (tables[most].sum(axis=1) - np.diag(tables[most].to_numpy())).sort_values()
    share = percent(float(sent.iloc[-1] / sent.sum()))
    return [
        f"The share of the work that runs elsewhere ranges from {ends}."
        if len(moved) > 1
        else f"{name(most)} moves {percent(moved[most])} of the work to other clusters.",
        f"{share} of what {name(most)} moves comes from users of {name(sent.index[-1])}.",
    ]


# --- users of clusters ----------------------------------------------------------------------------


def of_users(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Under how many schedulers the users of each cluster gain or lose significantly."""
    if numbers.empty or specification.relation not in numbers:
        return NOTHING_COMPARED
    reference, words = name(attributes.get("reference", "")), first_measure(numbers)[1].words
    own = without_bounds(numbers, attributes, attributes.get("reference"))
    own = own[own["probability"].notna()]
    if own.empty:
        return [f"No difference from {reference} in {words} is estimable."]
    by_effect: dict[str, list[str]] = {}
    for labels, part in own.groupby(_places(own, "group"), sort=False):
        effect = listed(_changed(part, {-1: "lower", 1: "higher"}))
        by_effect.setdefault(effect and f"{effect} of {count(len(part), 'scheduler')}", []).append(
            ", ".join(map(name, reversed(labels)))
        )
    unchanged = by_effect.pop("", [])
    lines = [f"The {words} is significantly {key}: {'; '.join(who)}." for key, who in by_effect.items()]
    if unchanged:
        lines.append(f"No significant difference from {reference} for {'; '.join(unchanged)}.")
    return lines


def _places(own: pd.DataFrame, axis: str) -> list[str]:
    """What sentences tell apart: labels of an axis, and scenarios where there are several."""
    several = axis != "scenario" and own["scenario"].nunique() > 1
    return [axis, *(["scenario"] if several else [])]


def _changed(part: pd.DataFrame, sides: Mapping[int, str]) -> list[str]:
    """Under how many schedulers a measure is significantly lower or higher, as parts of a sentence."""
    numbers = {side: int((part["significant"] == sign).sum()) for sign, side in sides.items()}
    return [f"{side} under {count(number)}" for side, number in numbers.items() if number]


# --- effects of conditions ------------------------------------------------------------------------


def effects(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How far each condition changes a measure against its baseline: extremes, and how many significantly."""
    axis, relation = specification.reference, specification.relation
    if relation not in numbers or numbers.empty:
        return NOTHING_COMPARED
    own, known = first_measure(numbers)
    own = without_bounds(own[own[relation].notna()], attributes)
    lines = []
    for labels, part in own.groupby(_places(own, axis), sort=False):
        place = ", ".join(map(name, reversed(labels)))
        before = part["baseline"].iloc[0] if axis == "scenario" else attributes["first_estimates"]
        effect = _effect(part.sort_values(relation), name(before), known.words, relation)
        lines.append(f"{place}: {effect}.")
    return lines or NOTHING_COMPARED


def _effect(part: pd.DataFrame, baseline: str, words: str, relation: str) -> str:
    """What is said of one condition."""
    tested = part[part["probability"].notna()]
    if tested.empty:
        reason = next((str(each) for each in part[f"{relation}_reason"] if each), "no intervals")
        if reason.startswith(IDENTICAL):
            return f"the {words} is identical to that under {baseline}"
        return f"the effect on the {words} is not estimable: {reason}"
    parts = _changed(tested, {1: "significantly higher", -1: "significantly lower"})
    of = f" of {count(len(tested))} schedulers" if len(tested) > 1 else ""
    which = f"{listed(parts)}{of}" if parts else f"no significant change{of and f' under any{of}'}"
    if len(tested) == 1:
        size = estimate_text(tested.iloc[0].to_dict(), of=relation)
    else:
        size = extremes(tested, lambda row: value_text(row[relation]))
    return f"{words} {size} of that under {baseline}, {which}"


# --- gain against messages ------------------------------------------------------------------------


def gain_against_cost(
    numbers: pd.DataFrame, specification: Specification, attributes: Attributes
) -> list[str]:
    """Between which values messages lie, and whom nobody surpasses in both by the means."""
    x = specification.x
    own = without_bounds(numbers[numbers[x].notna() & numbers["value"].notna()], attributes)
    if own.empty:
        return ["No scheduler reports its messages."]
    facets = facets_of(own, specification)
    lines = []
    for facet, part in facets:
        ordered = part.sort_values([x, "value"], kind="stable")
        front = ordered[ordered["value"] < ordered["value"].cummin().shift(fill_value=np.inf)]
        words = first_measure(ordered)[1].words
        place = f"{name(facet)}: by" if len(facets) > 1 else "By"
        who = listed(front["scheduler"], 6)
        lines.append(f"{place} the means, none has both fewer messages and a lower {words} than {who}.")
    ends = extremes(own.sort_values(x, kind="stable"), lambda row: value_text(row[x]))
    return [f"The number of messages per job ranges from {ends}.", *lines]

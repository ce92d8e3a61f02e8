"""What grids show besides the usual forms: flows, users of clusters, effects of conditions, messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gridsched.experiments.specification import Specification
from gridsched.figures import style
from gridsched.presentation.sentences import (
    count,
    estimate_text,
    known_measure,
    listed,
    name,
    percent,
    value_text,
)

Attributes = Mapping[str, Any]

MOST_PANELS = 6
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
        for i, j in np.ndindex(*shares.shape) if size <= 6 else ():
            if shares[i, j] >= 0.005:
                ink = "white" if shares[i, j] > 0.6 else style.INK
                axes.text(j, i, f"{100 * shares[i, j]:.0f}", ha="center", va="center", color=ink)
    for axes in grid[:, 0]:
        axes.set_ylabel("users of")
    for axes in list(grid.flat)[len(tables) :]:
        axes.set_axis_off()
    figure.supxlabel("cluster that ran the work [% of the row]", fontsize=8.5)
    return figure


def flows(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which scheduler moves most and least of the work, and which cluster sends most."""
    tables = flow_tables(numbers, specification.facets)
    if not tables:
        return ["No job ran elsewhere than at home."]
    moved = {
        label: 1 - float(np.trace(table.to_numpy()) / table.to_numpy().sum())
        for label, table in tables.items()
    }
    ordered = sorted(moved, key=lambda label: moved[label])
    low, high = ordered[0], ordered[-1]
    table = tables[high]
    sent = (table.sum(axis=1) - np.diag(table.to_numpy())).sort_values()
    ends = f"{percent(moved[low])} ({name(low)}) to {percent(moved[high])} ({name(high)})"
    lines = [
        f"{name(high)} moves {percent(moved[high])} of the work to other clusters."
        if low == high
        else f"The share of the work that runs elsewhere ranges from {ends}."
    ]
    share = percent(float(sent.iloc[-1] / sent.sum()))
    return [*lines, f"{share} of what {name(high)} moves comes from users of {name(sent.index[-1])}."]


# --- users of clusters ----------------------------------------------------------------------------


def of_users(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Under how many schedulers the users of each cluster gain or lose significantly."""
    relation = specification.relation
    if numbers.empty or relation not in numbers:
        return ["Nothing is compared."]
    reference = name(attributes.get("reference", ""))
    left_out = [attributes.get("reference"), *attributes.get("bounds", [])]
    own = numbers[numbers["probability"].notna() & ~numbers["scheduler"].isin(left_out)]
    words = known_measure(str(numbers["measure"].iloc[0])).words
    found: dict[str, list[str]] = {}
    unchanged = []
    places = ["scenario", "group"] if own["scenario"].nunique() > 1 else ["group"]
    for labels, part in own.groupby(places, sort=False):
        who, signs = ", ".join(name(label) for label in labels), part["significant"].tolist()
        sides = {"lower": signs.count(-1), "higher": signs.count(1)}
        if not any(sides.values()):
            unchanged.append(who)
            continue
        parts = [f"{side} under {count(number)}" for side, number in sides.items() if number]
        found.setdefault(f"{listed(parts)} of {count(len(part), 'scheduler')}", []).append(who)
    lines = [
        f"The {words} is significantly {effect}: {'; '.join(several)}." for effect, several in found.items()
    ]
    if own.empty:
        return [f"No difference from {reference} in {words} is estimable."]
    if unchanged:
        lines.append(f"No significant difference from {reference} for {'; '.join(unchanged)}.")
    return lines


# --- effects of conditions ------------------------------------------------------------------------


def effects(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How far each condition changes a measure against its baseline: extremes, and how many significantly."""
    axis, relation = specification.reference, specification.relation
    if relation not in numbers or numbers.empty:
        return ["Nothing is compared."]
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]]
    bounds = attributes.get("bounds", [])
    own = own[own[relation].notna() & ~own["scheduler"].isin(bounds)]
    known = known_measure(str(numbers["measure"].iloc[0]))
    places = [axis, *(["scenario"] if axis != "scenario" and own["scenario"].nunique() > 1 else [])]
    lines = []
    for labels, part in own.groupby(places, sort=False):
        place = ", ".join(map(name, reversed(labels)))
        before = part["baseline"].iloc[0] if axis == "scenario" else attributes["first_estimates"]
        lines.append(_effect(part.sort_values(relation), place, name(before), known.words, relation))
    return lines or ["Nothing is compared."]


def _effect(part: pd.DataFrame, place: str, baseline: str, words: str, relation: str) -> str:
    """The sentence of one condition."""
    tested = part[part["probability"].notna()]
    if tested.empty:
        reason = next((str(each) for each in part[f"{relation}_reason"] if each), "no intervals")
        if reason.startswith("identical"):
            return f"{place}: the {words} is identical to that under {baseline}."
        return f"{place}: the effect on the {words} is not estimable: {reason}."
    longer, shorter = (int((tested["significant"] == sign).sum()) for sign in (1, -1))
    parts = [
        f"significantly {side} under {count(number)}"
        for number, side in ((longer, "higher"), (shorter, "lower"))
        if number
    ]
    of = f" of {count(len(tested))} schedulers" if len(tested) > 1 else ""
    which = f"{listed(parts)}{of}" if parts else f"no significant change{of and f' under any{of}'}"
    low, high = tested.iloc[0].to_dict(), tested.iloc[-1].to_dict()
    if len(tested) == 1:
        size = f"{estimate_text(low, of=relation)} of that under {baseline}"
    else:
        ends = [f"{value_text(row[relation])} ({name(row['scheduler'])})" for row in (low, high)]
        size = f"{' to '.join(ends)} of that under {baseline}"
    return f"{place}: {words} {size}, {which}."


# --- gain against messages ------------------------------------------------------------------------


def gain_against_cost(
    numbers: pd.DataFrame, specification: Specification, attributes: Attributes
) -> list[str]:
    """Between which values messages lie, and whom nobody surpasses in both by the means."""
    x = specification.x
    own = numbers[numbers[x].notna() & numbers["value"].notna()]
    own = own[~own["scheduler"].isin(attributes.get("bounds", []))]
    if own.empty:
        return ["No scheduler reports its messages."]
    lines = []
    facets = own.groupby(specification.facets, sort=False) if specification.facets in own else [("", own)]
    for facet, part in facets:
        ordered = part.sort_values([x, "value"], kind="stable")
        front = ordered[ordered["value"] < ordered["value"].cummin().shift(fill_value=np.inf)]
        words = known_measure(str(ordered["measure"].iloc[0])).words
        place = f"{name(facet)}: by" if own[specification.facets].nunique() > 1 else "By"
        who = listed(front["scheduler"], 6)
        lines.append(f"{place} the means, none has both fewer messages and a lower {words} than {who}.")
    ordered = own.sort_values(x, kind="stable")
    low, high = ordered.iloc[0].to_dict(), ordered.iloc[-1].to_dict()
    ends = [f"{value_text(row[x])} ({name(row['scheduler'])})" for row in (low, high)]
    return [f"The number of messages per job ranges from {' to '.join(ends)}.", *lines]

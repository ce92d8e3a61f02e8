"""Figures of a study of placements: the share of GPUs allocated, as pods arrive and when 100 % have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gridsched.experiments.claims import ValueClaim, load_claims
from gridsched.experiments.placements.findings import FINDINGS as FINDINGS
from gridsched.figures import panels, style
from gridsched.replication import difference_interval, mean_interval

_COLUMNS = 3
_BEHIND = 0.01
"""Curves are shown from where so many of the GPUs are waited for under some placement ..."""

_BEFORE = 0.1
"""... and a bit before."""

_PUBLISHED = "published"
_PUBLISHED_OPTIONS: dict[str, Any] = {
    "color": style.INK,
    "linestyle": "",
    "marker": "|",
    "markeredgewidth": 1.8,
    "markersize": 15,
    "zorder": 1.5,
}
_OTHERS: dict[str, Any] = {"color": "#c8c8c8", "linewidth": 1}
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.5, 1.5)))

FINAL = "allocated_full"
"""Variable of the share of GPUs that is allocated when 100 % have arrived."""


@style.styled
def placement_curves(study: xr.Dataset) -> style.Drawing:
    """Share of the GPUs that is allocated, against what has arrived; one panel a placement.

    Parameters
    ----------
    study : xarray.Dataset
        A study of placements.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns placement, node_order, arrived, mean, low, high, and waiting_mean, waiting_low and
        waiting_high of the GPUs that pods wait for; from a bit before the first curve falls behind.
    """
    numbers = _curves(study)
    names, orders = panels.labels(study, "placement"), panels.labels(study, "node_order")
    looks = style.scheme_styles(names)
    rows = -(-len(names) // _COLUMNS)
    figure = style.new_figure(1.75 * rows + 0.7)
    grid = figure.subplots(rows, min(len(names), _COLUMNS), sharex=True, sharey=True, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place < len(names):
            _curve_panel(axes, numbers, names[place], orders, looks[names[place]].color)
        else:
            axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("GPUs allocated")
    for axes in grid[-1]:
        axes.set_xlabel("GPUs asked for so far")
    lines = [Line2D([], [], color=style.INK, linestyle=dash) for dash in _DASHES[: len(orders)]]
    entries = [
        *zip(lines, map(order_text, orders), strict=True),
        (Line2D([], [], **_OTHERS), "other placements"),
        (Line2D([], [], color=style.FAINT, linewidth=0.8), "all that has arrived"),
    ]
    style.entries_below(figure, entries)
    return figure, numbers


def _curves(study: xr.Dataset) -> pd.DataFrame:
    """Means with intervals of all curves, from a bit before the first falls behind."""
    arrived = study["arrived"].to_numpy()
    most = study["waiting"].mean("replicate").max(["placement", "node_order"]).to_numpy()
    behind = arrived[most > _BEHIND]
    begin = float(behind.min()) - _BEFORE if len(behind) else 0.0
    part = study.isel(arrived=np.flatnonzero(arrived >= begin))
    columns: dict[str, Any] = {}
    for name, prefix in (("allocated", ""), ("waiting", "waiting_")):
        values = part[name].transpose("placement", "node_order", "arrived", "replicate")
        sides = mean_interval(values.to_numpy())._asdict()
        columns |= {f"{prefix}{side}": bound.ravel() for side, bound in sides.items()}
    index = pd.MultiIndex.from_product(
        [part[name].to_numpy().tolist() for name in values.dims[:-1]], names=list(values.dims[:-1])
    )
    table: pd.DataFrame = index.to_frame(index=False)
    return table.assign(**columns)


def _curve_panel(axes: Axes, numbers: pd.DataFrame, own: str, orders: Sequence[str], color: str) -> None:
    """One placement with its intervals, in front of the others."""
    axes.set_title(style.plain(placement_text(own)))
    first = numbers[numbers["node_order"] == orders[0]]
    for name, curve in first[first["placement"] != own].groupby("placement", sort=False):
        axes.plot(curve["arrived"], curve["mean"], label=f"_{name}", **_OTHERS)
    mine = numbers[numbers["placement"] == own]
    ends = [numbers["arrived"].min(), min(1.0, numbers["arrived"].max())]
    axes.plot(ends, ends, color=style.FAINT, linewidth=0.8)
    for order, dash in zip(orders, _DASHES, strict=False):
        curve = mine[mine["node_order"] == order]
        axes.fill_between(curve["arrived"], curve["low"], curve["high"], color=color, alpha=0.25, lw=0)
        axes.plot(curve["arrived"], curve["mean"], color=color, linestyle=dash)
    style.set_axis(axes.xaxis, numbers["arrived"], "1", ticks=5)
    style.set_axis(axes.yaxis, numbers["mean"], "1", ticks=5)
    style.set_percent(axes.xaxis)
    style.set_percent(axes.yaxis)


@style.styled
def placement_shares(study: xr.Dataset) -> style.Drawing:
    """Share of the GPUs that is allocated when 100 % have arrived, beside what is published of it.

    Parameters
    ----------
    study : xarray.Dataset
        A study of placements.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns placement, node_order, mean, low, high, published, and against the first order of nodes, by
        pairs of replicates, change, change_low and change_high.
    """
    numbers = _shares(study)
    orders = panels.labels(study, "node_order")
    best_first = numbers[numbers["node_order"] == orders[0]].sort_values(
        "mean", ascending=False, kind="stable"
    )
    names = best_first["placement"].tolist()
    looks = style.scheme_styles(orders)
    figure = style.new_figure(0.34 * len(names) + 1.1)
    axes = figure.subplots()
    places = panels.scheme_rows(axes, names)
    axes.set_yticks(range(len(names)), [style.plain(placement_text(name)) for name in names])
    shift = dict(zip(orders, panels.offsets(len(orders), 0.4), strict=True))
    for row in panels.each_row(numbers):
        y, color = places[row.placement] + shift[row.node_order], looks[row.node_order].color
        axes.plot([row.low, row.high], [y, y], color=color, linewidth=1.1)
        axes.plot([row.mean], [y], marker=looks[row.node_order].marker, color=color, markersize=4.5)
    known = numbers.dropna(subset=["published"]).drop_duplicates("placement")
    for row in panels.each_row(known):
        axes.plot([row.published], [places[row.placement]], **_PUBLISHED_OPTIONS)
    style.set_axis(axes.xaxis, numbers[["mean", "low", "high", "published"]], "1", ticks=7)
    style.set_percent(axes.xaxis)
    axes.set_xlabel("GPUs allocated when 100 % have arrived")
    entries: list[tuple[Any, str]] = [
        (Line2D([], [], color=looks[order].color, marker=looks[order].marker), order_text(order))
        for order in orders
    ]
    if len(known):
        entries.append((Line2D([], [], **_PUBLISHED_OPTIONS | {"markersize": 9}), _PUBLISHED))
    style.entries_below(figure, entries)
    return figure, numbers


def _shares(study: xr.Dataset) -> pd.DataFrame:
    """One row a placement and order of nodes."""
    published = published_shares(str(study.attrs["study"]))
    orders, rows = panels.labels(study, "node_order"), []
    for name in panels.labels(study, "placement"):
        values = study[FINAL].sel(placement=name).transpose("node_order", "replicate").to_numpy()
        interval, change = mean_interval(values), difference_interval(values, values[:1])
        for place, order in enumerate(orders):
            rows.append(
                {
                    "placement": name,
                    "node_order": order,
                    **{side: bound[place] for side, bound in interval._asdict().items()},
                    "published": published.get(name, np.nan),
                    "change": change.mean[place],
                    "change_low": change.low[place],
                    "change_high": change.high[place],
                }
            )
    return pd.DataFrame(rows)


def published_shares(study: str) -> Mapping[str, float]:
    """Published shares by placement, as the ledger of claims has them for a study of this name."""
    return {
        str(claim.ours.select["placement"]): claim.paper_value
        for claim in load_claims()
        if isinstance(claim, ValueClaim) and claim.ours.study == study and claim.ours.variable == FINAL
    }


def placement_text(placement: str) -> str:
    """A placement as people read it."""
    return placement.replace("_", " ")


def order_text(node_order: str) -> str:
    """An order of nodes as people read it."""
    return {
        "random": "nodes in random order",
        "name": "nodes by name",
        "reverse": "nodes by name, backwards",
    }[node_order]


PLACEMENT_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "placement_shares": placement_shares,
    "placement_curves": placement_curves,
}
"""Figures of a study of placements by name."""

"""Figures of a study of readings: claims by readings, and which choices matter."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from gridsched.experiments.kinds.readings.analysis import CONTRADICTED, ROBUST, UNKNOWN
from gridsched.experiments.kinds.readings.findings import FINDINGS as FINDINGS
from gridsched.experiments.kinds.readings.stages import WORDS
from gridsched.figures import panels, style

_LOOKS = {
    "not": "#d55e00",
    "partly": "#f0d9a8",
    "reproduced": "#0173b2",
    "not judged here": "#f4f4f4",
}
"""Colours of outcomes, told apart in grey by their lightness."""

_ROW = 0.055
"""Height of a claim in inches."""

_LEAST = 0.11
"""Height of a table in inches, whose name has to be read."""


_SEEN = (-0.25, 0.75)
"""Importance is drawn as far as means lie, and intervals at least within this; what goes on is marked."""


@style.styled
def readings_claims(study: xr.Dataset) -> style.Drawing:
    """Outcome of every claim under every reading.

    Parameters
    ----------
    study : xarray.Dataset
        A study of readings.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns claim, where, robustness, mean, low, high (share of the readings drawn that reproduce it) and
        default, in the order of the figure.
    """
    numbers = _claims(study)
    place = {name: i for i, name in enumerate(study["claim"].values.tolist())}
    order = np.array([place[name] for name in numbers["claim"]])
    agree = study["agreement_mean"].to_numpy()[1:]
    columns = 1 + np.argsort(-agree, kind="stable")
    codes = study["outcome"].to_numpy()[np.ix_(columns, order)].T.astype(np.int64)
    mine = study["belongs"].to_numpy()[np.ix_(columns, order)].T == 1
    shown = np.where(mine & (codes != UNKNOWN), codes, len(_LOOKS) - 1)
    tables = [(name, len(list(rows))) for name, rows in groupby(numbers["where"])]
    heights = np.concatenate([np.full(count, max(_ROW, _LEAST / count)) for _, count in tables])
    edges = np.append(0, np.cumsum(heights))
    figure = style.new_figure(float(edges[-1]) + 1.1)
    left, right = figure.subplots(1, 2, width_ratios=(5, 1), sharey=True)
    left.pcolormesh(
        np.arange(len(columns) + 1),
        edges,
        shown,
        cmap=ListedColormap(list(_LOOKS.values())),
        vmin=-0.5,
        vmax=len(_LOOKS) - 0.5,
        rasterized=True,
    )
    _name_tables(left, tables, edges)
    left.set_xlabel("readings, those that agree most first")
    left.set_xticks([])
    middle = (edges[1:] + edges[:-1]) / 2
    right.barh(middle, numbers["mean"], heights, color=_LOOKS["reproduced"], linewidth=0)
    for share in (ROBUST, CONTRADICTED):
        right.axvline(share, color=style.INK, linewidth=0.6, linestyle=(0, (3, 2)))
    right.set_xlim(0, 1)
    right.set_xticks([0, 0.5, 1])
    style.set_percent(right.xaxis)
    right.set_xlabel("reproduced")
    right.tick_params(axis="y", length=0, labelleft=False)
    right.grid(visible=False, axis="y")
    style.entries_below(figure, [(Patch(color=color), name) for name, color in _LOOKS.items()])
    return figure, numbers


def _claims(study: xr.Dataset) -> pd.DataFrame:
    """Claims in the order of the figure: by table, in each the most robust first."""
    table = study[["where", "robustness", "share", "share_low", "share_high"]].to_dataframe().reset_index()
    table["default"] = [WORDS[code] for code in study["outcome"].sel(reading=0).values.tolist()]
    place = {name: i for i, name in enumerate(study["table"].values.tolist())}
    table["place"] = table["where"].map(place)
    table = table.sort_values(["place", "share"], ascending=[True, False], kind="stable")
    names = {"share": "mean", "share_low": "low", "share_high": "high"}
    return table.drop(columns="place").rename(columns=names)


def _name_tables(axes: Any, tables: list[tuple[str, int]], edges: np.ndarray) -> None:
    """Names of tables beside their claims, with lines between them."""
    ends = np.cumsum([count for _, count in tables])
    starts = np.append(0, ends[:-1])
    axes.set_ylim(edges[-1], 0)
    axes.set_yticks(
        [(edges[a] + edges[b]) / 2 for a, b in zip(starts, ends, strict=True)],
        [style.plain(name) for name, _ in tables],
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    for end in ends[:-1]:
        axes.axhline(edges[end], color="white", linewidth=1.0)


@style.styled
def readings_choices(study: xr.Dataset) -> style.Drawing:
    """How important each choice is for each contingent claim.

    Parameters
    ----------
    study : xarray.Dataset
        A study of readings.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns choice, claim, where, mean, low and high of the importance, of contingent claims.
    """
    numbers = _importance(study)
    names = study["choice"].values.tolist()
    figure = style.new_figure(0.34 * len(names) + 0.9)
    axes = figure.subplots()
    total = numbers.assign(sure=numbers["low"] > 0).groupby("choice")["sure"].sum()
    names = sorted(names, key=lambda name: -int(total.get(name, 0)))
    places = panels.scheme_rows(axes, names)
    # Intervals of rare outcomes would press the others into a corner
    bounds = numbers[["low", "high"]].clip(*_SEEN).to_numpy().ravel()
    style.set_axis(axes.xaxis, np.concatenate([bounds, numbers["mean"], [0.0]]), "1", ticks=panels.room(axes))
    axes.set_yticks(range(len(names)), [style.plain(name) for name in names])
    cut = False
    for name in names:
        own = numbers[numbers["choice"] == name].sort_values("mean")
        spread = np.linspace(-0.3, 0.3, len(own)) if len(own) > 1 else np.zeros(len(own))
        for row, shift in zip(panels.each_row(own), spread, strict=True):
            sure = row.low > 0
            color = _LOOKS["reproduced"] if sure else style.FAINT
            y = places[name] + shift
            cut |= panels.interval_line(axes, row.low, row.high, y, color, linewidth=0.5)
            axes.plot([row.mean], [y], marker="o", markersize=2.2, color=color, linestyle="")
    axes.axvline(0, color=style.INK, linewidth=0.6)
    axes.set_xlabel("importance: how much worse it is told whether a claim holds, without the choice")
    style.set_percent(axes.xaxis)
    entries = [
        (panels.dot("o", _LOOKS["reproduced"]), "surely important"),
        (panels.dot("o"), "not surely"),
        *panels.cut_entry(cut),
    ]
    style.entries_below(figure, entries)
    return figure, numbers


def _importance(study: xr.Dataset) -> pd.DataFrame:
    """One row for each choice and contingent claim."""
    names = {"importance": "mean", "importance_low": "low", "importance_high": "high"}
    table = study[list(names)].to_dataframe(dim_order=["choice", "claim"]).reset_index().rename(columns=names)
    where = study["where"].to_series()
    table.insert(2, "where", table["claim"].map(where))
    known: pd.DataFrame = table[np.isfinite(table["mean"])]
    return known


READINGS_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "readings_claims": readings_claims,
    "readings_choices": readings_choices,
}
"""Figures of a study of readings by name."""

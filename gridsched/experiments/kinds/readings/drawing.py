"""The map of claims by readings, which no common form shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from gridsched.experiments.kinds.readings.analysis import CONTRADICTED, ROBUST, UNKNOWN
from gridsched.experiments.kinds.readings.tables import claims_of_readings
from gridsched.figures import style

_LOOKS = {"not": "#d55e00", "partly": "#f0d9a8", "reproduced": "#0173b2", "not judged": "#f4f4f4"}
"""Colours of outcomes, which differ in lightness too."""

_ROW = 0.055
"""Height of a claim in inches."""

_LEAST = 0.15
"""Least height of a table in inches, so that its name is legible."""


@style.styled
def outcome_map(study: xr.Dataset) -> style.Drawing:
    """Outcome of every claim under every reading, with the share of the readings that reproduce it.

    Parameters
    ----------
    study : xarray.Dataset
        A study of readings.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns measure, claim, where, robustness, value, low, high (share of the readings drawn that
        reproduce it) and default, in the order of the figure: by table, the most robust first.
    """
    numbers = _numbers(study)
    order = study.indexes["claim"].get_indexer(pd.Index(numbers["claim"]))
    columns = 1 + np.argsort(-study["agreement_mean"].to_numpy()[1:], kind="stable")
    codes, belongs = (study[name].to_numpy()[np.ix_(columns, order)].T for name in ("outcome", "belongs"))
    shown = np.where((belongs == 1) & (codes != UNKNOWN), codes, len(_LOOKS) - 1)
    tables = numbers.groupby("where", sort=False).size()
    heights = np.repeat(np.maximum(_ROW, _LEAST / tables), tables)
    edges = np.append(0, np.cumsum(heights))
    borders = edges[np.append(0, np.cumsum(tables))]
    figure = style.new_figure(float(edges[-1]) + 1.1)
    left, right = figure.subplots(1, 2, width_ratios=(5, 1), sharey=True)
    left.pcolormesh(
        np.arange(len(columns) + 1),
        edges,
        shown,
        cmap=ListedColormap(list(_LOOKS.values())),
        vmin=-0.5,
        vmax=3.5,
        rasterized=True,
    )
    left.set(ylim=(edges[-1], 0), xlabel="interpretations, highest agreement first", xticks=[])
    left.set_yticks((borders[1:] + borders[:-1]) / 2, [style.plain(name, 26) for name in tables.index])
    left.tick_params(axis="y", length=0)
    left.grid(visible=False)
    for border in borders[1:-1]:
        left.axhline(border, color="white", linewidth=1.0)
    right.barh(
        (edges[1:] + edges[:-1]) / 2, numbers["value"], heights, color=_LOOKS["reproduced"], linewidth=0
    )
    for share in (ROBUST, CONTRADICTED):
        right.axvline(share, color=style.INK, linewidth=0.6, linestyle=(0, (3, 2)))
    right.set(xlim=(0, 1), xticks=[0, 0.5, 1], xlabel="reproduced")
    style.set_percent(right.xaxis)
    right.tick_params(axis="y", length=0, labelleft=False)
    right.grid(visible=False, axis="y")
    style.entries_below(figure, [(Patch(color=color), name) for name, color in _LOOKS.items()])
    return figure, numbers


def _numbers(study: xr.Dataset) -> pd.DataFrame:
    """Claims by table, in each the most robust first."""
    by_table = claims_of_readings(study).groupby("where", sort=False)
    table = pd.concat(own.sort_values("share", ascending=False, kind="stable") for _, own in by_table)
    names = {"share": "value", "share_low": "low", "share_high": "high"}
    columns = ["measure", "claim", "where", "robustness", *names.values(), "default"]
    return table.assign(measure="share").rename(columns=names)[columns]

"""The map of claims by readings, which no common form shows."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from gridsched.experiments.kinds.readings.analysis import CONTRADICTED, ROBUST, UNKNOWN
from gridsched.experiments.kinds.readings.tables import OUTCOMES
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
    codes = study["outcome"].to_numpy()[np.ix_(columns, order)].T
    belongs = study["belongs"].to_numpy()[np.ix_(columns, order)].T == 1
    shown = np.where(belongs & (codes != UNKNOWN), codes, len(_LOOKS) - 1)
    tables = [(name, len(list(rows))) for name, rows in groupby(numbers["where"])]
    heights = np.concatenate([np.full(count, max(_ROW, _LEAST / count)) for _, count in tables])
    edges = np.append(0, np.cumsum(heights))
    figure = style.new_figure(float(edges[-1]) + 1.1)
    left, right = figure.subplots(1, 2, width_ratios=(5, 1), sharey=True)
    colors = ListedColormap(list(_LOOKS.values()))
    left.pcolormesh(
        np.arange(len(columns) + 1), edges, shown, cmap=colors, vmin=-0.5, vmax=3.5, rasterized=True
    )
    ends = np.cumsum([count for _, count in tables])
    starts = np.append(0, ends[:-1])
    left.set_ylim(edges[-1], 0)
    names = [style.plain(name, 26) for name, _ in tables]
    left.set_yticks([(edges[a] + edges[b]) / 2 for a, b in zip(starts, ends, strict=True)], names)
    left.tick_params(axis="y", length=0)
    left.grid(visible=False)
    for end in ends[:-1]:
        left.axhline(edges[end], color="white", linewidth=1.0)
    left.set_xlabel("interpretations, highest agreement first")
    left.set_xticks([])
    middle = (edges[1:] + edges[:-1]) / 2
    right.barh(middle, numbers["value"], heights, color=_LOOKS["reproduced"], linewidth=0)
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


def _numbers(study: xr.Dataset) -> pd.DataFrame:
    """Claims by table, in each the most robust first."""
    table = study[["where", "robustness", "share", "share_low", "share_high"]].to_dataframe().reset_index()
    table["default"] = [OUTCOMES[code] for code in study["outcome"].sel(reading=0).values.tolist()]
    table["place"] = study.indexes["table"].get_indexer(pd.Index(table["where"]))
    table = table.sort_values(["place", "share"], ascending=[True, False], kind="stable").drop(
        columns="place"
    )
    table.insert(0, "measure", "share")
    return table.rename(columns={"share": "value", "share_low": "low", "share_high": "high"})

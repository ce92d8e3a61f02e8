"""The figure of a study of sequences: mean bounded slowdown by log and order, beside published means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.lines import Line2D

from gridsched.experiments.claims import ValueClaim, load_claims
from gridsched.experiments.sequences.findings import FINDINGS as FINDINGS
from gridsched.experiments.sequences.stages import means_table
from gridsched.figures import panels, style

_PUBLISHED: dict[str, Any] = {
    "color": style.INK,
    "linestyle": "",
    "marker": "|",
    "markeredgewidth": 1.6,
    "markersize": 13,
    "zorder": 1.5,
}
_WAITS = {"unset": "waits as published", "true": "true waits"}
_BACKFILLING = {"none": "no backfilling", "shadow": "backfilling"}

MEASURE = "bounded_slowdown"


@style.styled
def sequence_slowdowns(study: xr.Dataset) -> style.Drawing:
    """Mean bounded slowdown by queue order, a panel for each log and kind of backfilling.

    Parameters
    ----------
    study : xarray.Dataset
        A study of sequences.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, backfilling, order, waits, mean, low, high over sequences, and published.
    """
    numbers = _numbers(study)
    workloads, sides, orders, waits = (
        panels.labels(study, name) for name in ("workload", "backfilling", "order", "waits")
    )
    looks = style.scheme_styles(waits)
    figure = style.new_figure(len(workloads) * (0.2 * len(orders) + 0.45) + 0.7)
    grid = figure.subplots(len(workloads), len(sides), squeeze=False)
    shift = dict(zip(waits, panels.offsets(len(waits), 0.4), strict=True))
    for i, workload in enumerate(workloads):
        own = numbers[numbers["workload"] == workload]
        for k, side in enumerate(sides):
            axes = grid[i, k]
            places = panels.scheme_rows(axes, orders)
            axes.set_yticks(range(len(orders)), orders if k == 0 else [])
            axes.set_title(style.plain(f"{workload}, {_BACKFILLING[side]}"))
            here = own[own["backfilling"] == side]
            for row in panels.each_row(here):
                y, look = places[row.order] + shift[row.waits], looks[row.waits]
                axes.plot([row.low, row.high], [y, y], color=look.color, linewidth=1.1)
                axes.plot([row.mean], [y], marker=look.marker, color=look.color, markersize=4)
                if row.waits == "unset" and np.isfinite(row.published):
                    axes.plot([row.published], [y], **_PUBLISHED)
            style.set_axis(axes.xaxis, here[["mean", "low", "high"]], "1", ticks=4, log=True)
    for axes in grid[-1]:
        axes.set_xlabel("mean bounded slowdown")
    entries: list[tuple[Any, str]] = [
        (Line2D([], [], color=looks[each].color, marker=looks[each].marker), _WAITS[each]) for each in waits
    ]
    if np.isfinite(numbers["published"].to_numpy(np.float64)).any():
        entries.append((Line2D([], [], **_PUBLISHED | {"markersize": 9}), "published"))
    style.entries_below(figure, entries)
    return figure, numbers


def _numbers(study: xr.Dataset) -> pd.DataFrame:
    """One row a mean, with what is published of it."""
    published = {
        tuple(sorted(claim.ours.select.items())): claim.paper_value
        for claim in load_claims()
        if isinstance(claim, ValueClaim)
        and claim.ours.study == study.attrs["study"]
        and claim.ours.variable == MEASURE
    }
    table = means_table(study).rename(columns={MEASURE: "mean"})
    keys = ("workload", "backfilling", "order", "waits")
    found = [
        published.get(tuple(sorted((key, row[key]) for key in keys)), np.nan)
        for row in table[list(keys)].to_dict("records")
    ]
    return table[[*keys, "mean", "low", "high"]].assign(published=found)


SEQUENCE_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "sequence_slowdowns": sequence_slowdowns
}
"""Figures of a study of sequences by name."""

"""Waits under other policies beside those that a log recorded, and who waits more or less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gridsched.figures import style

MAX_NAMES = 8
"""Users or groups that gain, and as many that lose, which the figure shows."""

_HOUR = 3600
_QUANTILES = {"median": 0.5, "90 %": 0.9, "99 %": 0.99}
"""Quantiles of the wait that are shown beside its mean."""

_MARKERS = {"median": "|", "mean": "D", "90 %": "o", "99 %": "s"}
_COLUMNS = ["panel", "name", "scheme", "statistic", "value", "low", "high"]


@style.styled
def comparison(compared: xr.Dataset) -> style.Drawing:
    """Waits of every scheme, differences from one of them, and the users and groups that gain and lose most.

    Parameters
    ----------
    compared : xarray.Dataset
        What `gridsched.comparison.compare` or `what_if` gives. Differences are those from its attribute
        `reference`, users and groups those of the scheme of its attribute `shown`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns panel, name, scheme, statistic, value (seconds; hours of users and groups), low, high.
    """
    schemes = _labels(compared, "scheme")
    numbers = pd.concat([_waits(compared), _differences(compared), *_changes(compared)], ignore_index=True)
    rows = max((numbers["panel"] == kind).sum() for kind in ("user", "group"))
    heights = [0.45 + 0.2 * max(len(schemes), 2), *([0.3 + 0.15 * rows] if rows else [])]
    figure = style.new_figure(sum(heights) + 0.9)
    grid = figure.subplots(len(heights), 2, squeeze=False, height_ratios=heights)
    styles = style.scheme_styles(schemes)
    of = dict(list(numbers.groupby("panel")))
    reference = compared.attrs["reference"]
    _waits_panel(grid[0, 0], of["wait"], schemes, styles)
    _differences_panel(grid[0, 1], of.get("difference"), schemes, styles, reference)
    if rows:
        for axes, kind in zip(grid[1], ("user", "group"), strict=True):
            _changes_panel(axes, of.get(kind), kind, styles, reference)
        grid[1, 1].set_visible(not one_user_each(compared))
    # What the markers of waits are; those of means are filled
    looks: dict[str, Any] = {"linestyle": "", "color": style.FAINT}
    entries = [(Line2D([], [], **looks, **_marker(name, style.FAINT)), name) for name in _MARKERS]
    style.entries_below(figure, entries)
    return figure, numbers[_COLUMNS]


def _labels(compared: xr.Dataset, dimension: str) -> list[str]:
    return [str(label) for label in compared[dimension].to_numpy()]


def _marker(statistic: str, color: str) -> dict[str, Any]:
    """Marker of a statistic of the wait; that of the mean is filled."""
    return {"marker": _MARKERS[statistic], "markerfacecolor": color if statistic == "mean" else "white"}


def _waits(compared: xr.Dataset) -> pd.DataFrame:
    """Mean and some quantiles of the waits of each scheme."""
    values = {"mean": compared["wait_time_mean"].to_numpy()}
    for statistic, quantile in _QUANTILES.items():
        values[statistic] = compared["wait_time_quantile"].sel(quantile=quantile).to_numpy()
    rows = pd.DataFrame(values, index=_labels(compared, "scheme")).stack().reset_index()
    rows.columns = pd.Index(["scheme", "statistic", "value"])
    return rows.assign(panel="wait", name="", low=np.nan, high=np.nan)


def _differences(compared: xr.Dataset) -> pd.DataFrame:
    """How the mean wait of each scheme differs from that of the reference."""
    bounds = {"value": "", "low": "_low", "high": "_high"}
    values = {name: compared[f"wait_time_difference{end}"].to_numpy() for name, end in bounds.items()}
    rows = pd.DataFrame({"scheme": _labels(compared, "scheme"), **values})
    others: pd.DataFrame = rows[rows["scheme"] != compared.attrs["reference"]]
    return others.assign(panel="difference", name="", statistic="difference of the mean")


def _changes(compared: xr.Dataset) -> Iterator[pd.DataFrame]:
    """Who gains and who loses most under the scheme that is shown."""
    shown = compared.attrs["shown"]
    for kind in ("user", "group"):
        if compared.sizes["scheme"] > 1 and not (kind == "group" and one_user_each(compared)):
            change = compared[f"{kind}_wait_time_change"].sel(scheme=shown).to_numpy()
            chosen = extremes(change, MAX_NAMES)
            names = np.array(_labels(compared, kind), object)[chosen]
            rows = pd.DataFrame({"name": names, "value": change[chosen], "panel": kind, "scheme": shown})
            yield rows.assign(statistic="change in all [h]", low=np.nan, high=np.nan)


def one_user_each(compared: xr.Dataset) -> bool:
    """Whether the log has a group for every user, which is no news."""
    users, groups = compared["user_work"].values, compared["group_work"].values
    return len(users) > 1 and sorted(users.tolist()) == sorted(groups.tolist())


def extremes(change: np.ndarray, most: int) -> list[int]:
    """Indices of the largest falls, then of the largest rises, from one end to the other.

    All that change are taken if they are no more than so many falls and as many rises.
    """
    order = np.argsort(change, kind="stable")
    gains, losses = order[change[order] < 0], order[change[order] > 0]
    if len(gains) + len(losses) > 2 * most:
        gains, losses = gains[:most], losses[-most:]
    return [*gains.tolist(), *losses.tolist()]


def _waits_panel(
    axes: Axes, rows: pd.DataFrame, schemes: list[str], styles: dict[str, style.SchemeStyle]
) -> None:
    """Median, mean, 90 % and 99 % quantile of the wait of each scheme, joined by a line."""
    style.label_rows(axes, schemes)
    style.set_axis(axes.xaxis, rows["value"], "s", log=style.needs_log(rows["value"]), ticks=4, floor=0.0)
    for scheme, part in rows.groupby("scheme", sort=False):
        values = part.set_index("statistic")["value"]
        place, color = schemes.index(str(scheme)), styles[str(scheme)].color
        axes.hlines(place, values["median"], values["99 %"], color=color, linewidth=1)
        for name in _MARKERS:
            axes.plot([values[name]], [place], color=color, clip_on=False, **_marker(name, color))
    axes.set_xlabel("wait time")


def _differences_panel(
    axes: Axes,
    rows: pd.DataFrame | None,
    schemes: list[str],
    styles: dict[str, style.SchemeStyle],
    reference: str,
) -> None:
    if rows is None:
        style.no_data(axes, "nothing to compare with")
        return
    style.label_rows(axes, schemes)
    style.set_axis(axes.xaxis, np.append(rows[["value", "low", "high"]], 0.0), "s", ticks=4)
    axes.axvline(0, color=style.INK, linewidth=0.8)
    for row in rows.to_dict("records"):
        place, color = schemes.index(row["scheme"]), styles[row["scheme"]].color
        axes.hlines(place, row["low"], row["high"], color=color, linewidth=1.6)
        axes.plot([row["value"]], [place], marker="D", color=color)
    axes.tick_params(labelleft=False)
    axes.set_xlabel(f"mean wait, change from {style.plain(reference)}")


def _changes_panel(
    axes: Axes, rows: pd.DataFrame | None, kind: str, styles: dict[str, style.SchemeStyle], reference: str
) -> None:
    if rows is None:
        style.no_data(axes, f"no {kind} waits more or less")
        return
    style.label_rows(axes, rows["name"].tolist(), 18)
    shown, seconds = str(rows["scheme"].iloc[0]), rows["value"] * _HOUR
    axes.barh(range(len(rows)), seconds, color=styles[shown].color, alpha=0.75, height=0.7)
    style.set_axis(axes.xaxis, np.append(seconds, 0.0), "s", ticks=4)
    axes.axvline(0, color=style.INK, linewidth=0.8)
    axes.set_title(f"{kind}s that gain and lose most under {style.plain(shown)}", fontweight="normal")
    axes.set_xlabel(f"waiting of all jobs, change from {style.plain(reference)}")

"""Waits under other policies beside those that a log recorded, and who waits more or less."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from gridsched.figures import panels, style

MAX_NAMES = 8
"""Users or groups that gain, and as many that lose, which the figure shows."""

_HOUR = 3600
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
    schemes = panels.labels(compared, "scheme")
    numbers = pd.concat([_waits(compared), _differences(compared), *_changes(compared)], ignore_index=True)
    changes = [kind for kind in ("user", "group") if (numbers["panel"] == kind).any()]
    rows = max((int((numbers["panel"] == kind).sum()) for kind in changes), default=0)
    heights = [0.45 + 0.2 * max(len(schemes), 2), *([0.3 + 0.15 * rows] if rows else [])]
    figure = style.new_figure(sum(heights) + 0.9)
    grid = figure.subplots(len(heights), 2, squeeze=False, height_ratios=heights)
    styles = style.scheme_styles(schemes)
    _waits_panel(grid[0, 0], numbers[numbers["panel"] == "wait"], schemes, styles)
    reference = compared.attrs["reference"]
    _differences_panel(grid[0, 1], numbers[numbers["panel"] == "difference"], schemes, styles, reference)
    if rows:
        for axes, kind in zip(grid[1], ("user", "group"), strict=True):
            _changes_panel(axes, numbers[numbers["panel"] == kind], kind, styles, reference)
        if one_user_each(compared):
            grid[1, 1].set_visible(False)
    panels.wait_legend(figure)
    return figure, numbers[_COLUMNS]


def _waits(compared: xr.Dataset) -> pd.DataFrame:
    """Mean and some quantiles of the waits of each scheme."""
    values = {"mean": compared["wait_time_mean"].to_numpy()}
    for statistic, quantile in panels.WAIT_QUANTILES.items():
        values[statistic] = compared["wait_time_quantile"].sel(quantile=quantile).to_numpy()
    rows = pd.DataFrame(values, index=panels.labels(compared, "scheme")).stack().reset_index()
    rows.columns = pd.Index(["scheme", "statistic", "value"])
    return rows.assign(panel="wait", name="", low=np.nan, high=np.nan)


def _differences(compared: xr.Dataset) -> pd.DataFrame:
    """How the mean wait of each scheme differs from that of the reference."""
    rows = pd.DataFrame(
        {
            "scheme": panels.labels(compared, "scheme"),
            "value": compared["wait_time_difference"].to_numpy(),
            "low": compared["wait_time_difference_low"].to_numpy(),
            "high": compared["wait_time_difference_high"].to_numpy(),
        }
    )
    others = rows["scheme"] != compared.attrs["reference"]
    chosen: pd.DataFrame = rows.loc[others]
    return chosen.assign(panel="difference", name="", statistic="difference of the mean")


def _changes(compared: xr.Dataset) -> list[pd.DataFrame]:
    """Who gains and who loses most under the scheme that is shown."""
    schemes = panels.labels(compared, "scheme")
    shown = compared.attrs["shown"]
    parts = []
    for kind in ("user", "group"):
        if len(schemes) < 2 or not compared.sizes[kind] or (kind == "group" and one_user_each(compared)):
            continue
        change = compared[f"{kind}_wait_time_change"].isel(scheme=schemes.index(shown)).to_numpy()
        chosen = extremes(change, MAX_NAMES)
        names = [panels.labels(compared, kind)[index] for index in chosen]
        parts.append(
            pd.DataFrame({"name": names, "value": change[chosen]}).assign(
                panel=kind, scheme=shown, statistic="change in all [h]", low=np.nan, high=np.nan
            )
        )
    return parts


def one_user_each(compared: xr.Dataset) -> bool:
    """Whether the log has a group for every user, which is no news."""
    users, groups = compared["user_work"].values, compared["group_work"].values
    return len(users) > 1 and sorted(users.tolist()) == sorted(groups.tolist())


def extremes(change: np.ndarray, most: int) -> list[int]:
    """Indices of the largest falls, then of the largest rises, from one end to the other.

    All that change are taken if they are no more than so many falls and as many rises.
    """
    order = np.argsort(change, kind="stable").tolist()
    changed = [index for index in order if change[index] < 0 or change[index] > 0]
    if len(changed) <= 2 * most:
        return changed
    gains = [index for index in order if change[index] < 0][:most]
    losses = [index for index in order if change[index] > 0][-most:]
    return gains + losses


def _waits_panel(
    axes: Axes, rows: pd.DataFrame, schemes: list[str], styles: dict[str, style.SchemeStyle]
) -> None:
    places = panels.scheme_rows(axes, schemes)
    log = style.needs_log(rows["value"])
    style.set_axis(axes.xaxis, rows["value"], "s", log=log, ticks=4, floor=0.0)
    panels.wait_markers(axes, rows, places, styles)
    axes.set_xlabel("wait time")


def _differences_panel(
    axes: Axes,
    rows: pd.DataFrame,
    schemes: list[str],
    styles: dict[str, style.SchemeStyle],
    reference: str,
) -> None:
    if rows.empty:
        style.no_data(axes, "nothing to compare with")
        return
    places = panels.scheme_rows(axes, schemes)
    style.set_axis(axes.xaxis, np.append(rows[["value", "low", "high"]], 0.0), "s", ticks=4)
    axes.axvline(0, color=style.INK, linewidth=0.8)
    for row in panels.each_row(rows):
        place, color = places[row.scheme], styles[row.scheme].color
        axes.hlines(place, row.low, row.high, color=color, linewidth=1.6)
        axes.plot([row.value], [place], marker="D", color=color)
    axes.tick_params(labelleft=False)
    axes.set_xlabel(f"mean wait, change from {style.plain(reference)}")


def _changes_panel(
    axes: Axes, rows: pd.DataFrame, kind: str, styles: dict[str, style.SchemeStyle], reference: str
) -> None:
    if rows.empty:
        style.no_data(axes, f"no {kind} waits more or less")
        return
    places = np.arange(len(rows))
    shown = str(rows["scheme"].iloc[0])
    color = styles[shown].color
    axes.barh(places, rows["value"] * _HOUR, color=color, alpha=0.75, height=0.7)
    style.set_axis(axes.xaxis, np.append(rows["value"] * _HOUR, 0.0), "s", ticks=4)
    axes.axvline(0, color=style.INK, linewidth=0.8)
    axes.set_yticks(places, [style.plain(name, 18) for name in rows["name"]])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_title(f"{kind}s that gain and lose most under {style.plain(shown)}", fontweight="normal")
    axes.set_xlabel(f"waiting of all jobs, change from {style.plain(reference)}")

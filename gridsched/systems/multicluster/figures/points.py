"""Figures of studies of a multicluster: MCP and PB against an axis, advantages, queues, points and schemes.

They show what L. He, S.A. Jarvis, D.P. Spooner, X. Chen and G.R. Nudd, "Hybrid performance-based workload
management for multiclusters and grids" (IEE Proceedings - Software 151, 2004), has in its Figures 4 to 7, and
what stands behind: whose queues settle, and what each level of scheduling contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWN, CARETUP
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from gridsched.figures import grid_panels, panels, style
from gridsched.replication import mean_interval, times_interval
from gridsched.systems.multicluster.figures.findings import FINDINGS as FINDINGS

MEASURES: dict[str, str] = {"mcp": "MCP", "pb": "PB"}
"""Measures that are compared, as the paper calls them."""

AXES: dict[str, tuple[str, str]] = {
    "level": ("level", "workload level (wanted mean queue)"),
    "deadlines": ("largest_ratio", "largest deadline ratio"),
    "clusters": ("cluster_count", "clusters"),
}
"""Axes of a study: the variable of the points, and its name."""

LATE = "share of jobs late"

_KEYS = ["point", "scheme", "measure", "group", "x"]
_VALUE = ["mean", "low", "high"]
_PANEL_HEIGHT = 2.3
_DODGE = 0.05
"""Room for the schemes at one place of an axis, beside each other, as a share of the axis."""
_LEAST, _MOST = -1.0, 1.0
"""What an axis of advantages shows at most: a scheme that is twice as good, one that is infinitely worse."""


def reference_of(study: xr.Dataset) -> str:
    """The scheme whose advantage over the others is measured."""
    return panels.choose(study, "scheme", str(study.attrs.get("reference", "muscle")))


def is_variant(scheme: str) -> bool:
    """Whether a scheme is one of those that are run at some points only: "muscle+easy", "dll, no seed"."""
    return bool(set(scheme) & set(",+"))


# --- numbers --------------------------------------------------------------------------------------


def _runs(study: xr.Dataset, name: str) -> xr.DataArray:
    return study[name].transpose("point", "scheme", "replicate")


def _table(study: xr.Dataset, parts: Sequence[Any], measure: str) -> pd.DataFrame:
    """One row a point and scheme with a value; arrays of both with the mean and its bounds are given."""
    points, schemes = panels.labels(study, "point"), panels.labels(study, "scheme")
    rows = pd.MultiIndex.from_product([points, schemes], names=["point", "scheme"]).to_frame(index=False)
    for column, values in zip(_VALUE, parts, strict=True):
        rows[column] = np.asarray(values, np.float64).ravel()
    places = _places(study)
    rows = rows.assign(
        measure=measure,
        group=[places[point][0] for point in rows["point"]],
        x=[places[point][1] for point in rows["point"]],
    )
    return rows.dropna(subset=["mean"]).reset_index(drop=True)[[*_KEYS, *_VALUE]]


def _places(study: xr.Dataset) -> dict[str, tuple[str, float]]:
    """Group of each point, those of one workload level unless that is the axis, and its place on the axis."""
    axis = str(study.attrs.get("axis", "none"))
    levels = study["level"].to_numpy()
    values = study[AXES[axis][0]].to_numpy() if axis in AXES else np.arange(len(levels), dtype=np.float64)
    groups = [
        f"workload level {level:g}" if axis == "deadlines" and np.isfinite(level) else "" for level in levels
    ]
    points = panels.labels(study, "point")
    return {point: (group, float(x)) for point, group, x in zip(points, groups, values, strict=True)}


def _means(study: xr.Dataset, name: str, measure: str) -> pd.DataFrame:
    return _table(study, mean_interval(_runs(study, name).to_numpy()), measure)


def _advantages(study: xr.Dataset) -> pd.DataFrame:
    """By which share the reference is better than each other scheme."""
    found = []
    for measure in MEASURES:
        names = [f"{measure}_advantage{bound}" for bound in ("", "_low", "_high")]
        parts = [study[name].transpose("point", "scheme").to_numpy() for name in names]
        found.append(_table(study, parts, measure))
    return pd.concat(found, ignore_index=True)


def _plain(study: xr.Dataset, numbers: pd.DataFrame) -> pd.DataFrame:
    """Rows of the schemes that are run everywhere."""
    return numbers[~numbers["scheme"].map(is_variant)].reset_index(drop=True)


def _looks(study: xr.Dataset) -> dict[str, style.SchemeStyle]:
    """How the schemes that are run everywhere are drawn, in all figures alike."""
    return style.scheme_styles(scheme for scheme in panels.labels(study, "scheme") if not is_variant(scheme))


# --- against an axis ------------------------------------------------------------------------------


@style.styled
def multicluster_curves(study: xr.Dataset) -> style.Drawing:
    """MCP and PB of each scheme against the axis of the study, the paper's Figures 4 to 7.

    Parameters
    ----------
    study : xarray.Dataset
        A study of a multicluster with an axis.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns point, scheme, measure, group (workload level, where that is not the axis), x, mean, low,
        high. Told beside the figure is also how much longer the queue is in the second half of the
        submissions (growth).
    """
    parts = [_means(study, f"{measure}_mean", measure) for measure in MEASURES]
    figure, numbers = _curves(study, _plain(study, pd.concat(parts)), MEASURES, _duration_axis)
    return figure, _with_growth(study, numbers)


def _with_growth(study: xr.Dataset, numbers: pd.DataFrame) -> pd.DataFrame:
    """Rows that say whether queues settle, without which means depend on the number of jobs."""
    growth = _plain(study, _means(study, "queue_growth", "growth"))
    return numbers if numbers.empty else pd.concat([numbers, growth], ignore_index=True)


@style.styled
def multicluster_advantage(study: xr.Dataset) -> style.Drawing:
    """Share by which MCP and PB of the reference are less than those of the other schemes.

    Parameters and results as of `multicluster_curves`.
    """
    reference = reference_of(study)
    names = {
        measure: f"{label}: advantage of {style.plain(reference, 22)}" for measure, label in MEASURES.items()
    }
    figure, numbers = _curves(study, _plain(study, _advantages(study)), names, _advantage_axis)
    return figure, _with_growth(study, numbers)


@style.styled
def multicluster_queues(study: xr.Dataset) -> style.Drawing:
    """Mean number of collected jobs of each scheme, and whether it settles.

    Parameters and results as of `multicluster_curves`; the measures are queue and growth.
    """
    names = {"queue": "mean queue", "growth": "queue, second half / first"}
    parts = [_means(study, "queue_mean", "queue"), _means(study, "queue_growth", "growth")]
    figure, numbers = _curves(study, _plain(study, pd.concat(parts)), names, _number_axis)
    return figure, numbers


def _curves(
    study: xr.Dataset,
    numbers: pd.DataFrame,
    names: Mapping[str, str],
    set_axis: Callable[[Axes, pd.DataFrame], None],
) -> style.Drawing:
    """A panel a measure, and a column of them a group of points."""
    numbers = numbers.reset_index(drop=True)
    if numbers.empty:
        return grid_panels.nothing("no such runs"), numbers
    groups = list(dict.fromkeys(numbers["group"]))
    looks = {name: look for name, look in _looks(study).items() if name in set(numbers["scheme"])}
    figure, grid = _grid(list(names), groups)
    for (measure, group), axes in grid.items():
        rows = numbers[(numbers["measure"] == measure) & (numbers["group"] == group)]
        _panel(axes, rows, looks, set_axis)
        axes.set_title(names[measure] + (f", {group}" if group else ""))
        axes.set_xlabel(
            AXES[str(study.attrs.get("axis"))][1] if str(study.attrs.get("axis")) in AXES else "point"
        )
        if measure == "queue":
            _wanted(axes, study, group)
    more = [(Line2D([], [], color=style.INK, linewidth=0.9), "wanted")] if "queue" in names else []
    _legend(figure, looks, numbers, more)
    return figure, numbers


def _grid(measures: Sequence[str], groups: Sequence[str]) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Measures beside each other for one group, else below each other."""
    rows = 1 if len(groups) == 1 else len(measures)
    columns = len(measures) if len(groups) == 1 else len(groups)
    figure = style.new_figure(rows * _PANEL_HEIGHT + 0.9)
    flat = figure.subplots(rows, columns, squeeze=False).ravel()
    places = [(measure, group) for measure in measures for group in groups]
    return figure, dict(zip(places, flat, strict=True))


def _panel(
    axes: Axes,
    rows: pd.DataFrame,
    looks: Mapping[str, style.SchemeStyle],
    set_axis: Callable[[Axes, pd.DataFrame], None],
) -> None:
    if rows.empty:
        style.no_data(axes, "no data")
        return
    set_axis(axes, rows)
    places = sorted(set(rows["x"]))
    style.set_axis(axes.xaxis, places, "1")
    axes.xaxis.set_major_locator(FixedLocator(places))
    width = (places[-1] - places[0]) or 1.0
    for shift, (scheme, look) in zip(panels.offsets(len(looks), _DODGE * width), looks.items(), strict=True):
        own = rows[rows["scheme"] == scheme].sort_values("x")
        _line(axes, own.assign(x=own["x"] + shift), look)


def _line(axes: Axes, rows: pd.DataFrame, look: style.SchemeStyle) -> None:
    """Means as a line with upright intervals; what lies or goes on beyond the axis ends in a triangle."""
    bottom, top = axes.get_ylim()
    axes.plot(rows["x"], rows["mean"], **style.line_options(look))
    for row in panels.each_row(rows):
        axes.vlines(row.x, max(row.low, bottom), min(row.high, top), color=look.color, linewidth=1.0)
        for beyond, at, marker in ((row.low < bottom, bottom, CARETDOWN), (row.high > top, top, CARETUP)):
            if beyond:
                size = 5 if not bottom <= row.mean <= top else 2.5
                axes.plot([row.x], [at], marker=marker, color=look.color, markersize=size, clip_on=False)


def _wanted(axes: Axes, study: xr.Dataset, group: str) -> None:
    """Line of the queue that the rate was set for."""
    places = _places(study)
    levels = dict(zip(panels.labels(study, "point"), study["level"].to_numpy(), strict=True))
    own = sorted((places[point][1], level) for point, level in levels.items() if places[point][0] == group)
    axes.plot([x for x, _ in own], [level for _, level in own], color=style.INK, linewidth=0.9, zorder=0.7)


def _seen(rows: pd.DataFrame) -> list[float]:
    """Means and intervals, the latter as far as they do not press the means together."""
    positive = rows["mean"][rows["mean"] > 0]
    low = rows["low"].clip(lower=positive.min() / 2 if len(positive) else 0.0)
    high = rows["high"].clip(upper=2 * rows["mean"].max())
    return [*rows["mean"], *low.dropna(), *high.dropna()]


def _duration_axis(axes: Axes, rows: pd.DataFrame) -> None:
    log = style.needs_log(rows["mean"])
    style.set_axis(axes.yaxis, _seen(rows), "s", log=log, ticks=6, floor=None if log else 0.0)


def _number_axis(axes: Axes, rows: pd.DataFrame) -> None:
    log = style.needs_log(rows["mean"])
    style.set_axis(axes.yaxis, _seen(rows), "1", log=log, ticks=6, floor=None if log else 0.0)


def _advantage_axis(axes: Axes, rows: pd.DataFrame) -> None:
    style.set_axis(axes.yaxis, _seen_advantages(rows), "1", ticks=6)
    axes.yaxis.set_major_formatter(_PER_CENT)
    axes.axhline(0, color=style.INK, linewidth=0.8, zorder=0.6)


def _seen_advantages(rows: pd.DataFrame) -> list[float]:
    """What an axis of advantages has to hold."""
    return [0.0, *rows[_VALUE].to_numpy().clip(_LEAST, _MOST).ravel().tolist()]


_PER_CENT = FuncFormatter(lambda share, _: f"{100 * share:.3g} %".replace("-", "\N{MINUS SIGN}"))


def _legend(
    figure: Figure,
    looks: Mapping[str, style.SchemeStyle],
    numbers: pd.DataFrame,
    more: Iterable[tuple[Any, str]] = (),
) -> None:
    lines = [(style.scheme_handle(look), scheme) for scheme, look in looks.items()]
    style.entries_below(figure, [*lines, *more, *grid_panels.interval_entry(numbers)], columns=6)


# --- points and schemes ---------------------------------------------------------------------------


@style.styled
def multicluster_points(study: xr.Dataset) -> style.Drawing:
    """Advantages of the reference over the other schemes at each point of a study without an axis.

    Parameters and results as of `multicluster_curves`.
    """
    numbers = _plain(study, _advantages(study))
    if numbers.empty:
        return grid_panels.nothing("no other scheme"), numbers
    points = grid_panels.known(study, "point", numbers)
    looks = {name: look for name, look in _looks(study).items() if name in set(numbers["scheme"])}
    figure = style.new_figure(grid_panels.row_height(len(looks)) * len(points) + 1.2)
    pair = figure.subplots(1, len(MEASURES), sharey=True, squeeze=False)[0]
    for axes, (measure, label) in zip(pair, MEASURES.items(), strict=True):
        rows = numbers[numbers["measure"] == measure]
        grid_panels.label_rows(axes, [style.plain(point, 22) for point in points])
        style.set_axis(axes.xaxis, _seen_advantages(rows), "1", ticks=6)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(_PER_CENT)
        axes.axvline(0, color=style.INK, linewidth=0.8, zorder=0.6)
        grid_panels.dots(axes, rows, ("point", points), ("scheme", looks))
        axes.set_title(f"{label}: advantage of {style.plain(reference_of(study), 22)}")
    grid_panels.legend(figure, {f"over {name}": look for name, look in looks.items()}, numbers)
    return figure, numbers


@style.styled
def multicluster_schemes(study: xr.Dataset) -> style.Drawing:
    """MCP and PB relative to the reference, and late jobs, of all schemes at points with variants of schemes.

    Parameters
    ----------
    study : xarray.Dataset
        A study of a multicluster.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns as of `multicluster_curves`; the measures mcp and pb are ratios to the reference.
    """
    numbers = _relative(study)
    shown = [
        point for point, rows in numbers.groupby("point", sort=False) if rows["scheme"].map(is_variant).any()
    ]
    numbers = numbers[numbers["point"].isin(shown)].reset_index(drop=True)
    if numbers.empty:
        return grid_panels.nothing("no variants of schemes"), numbers
    blocks = {
        point: grid_panels.known(study, "scheme", numbers[numbers["point"] == point])
        for point in grid_panels.known(study, "point", numbers)
    }
    heights = [len(schemes) + 0.6 for schemes in blocks.values()]
    figure = style.new_figure(0.165 * sum(heights) + 0.45 * len(blocks) + 0.5)
    grid = figure.subplots(
        len(blocks), 3, squeeze=False, sharex="col", gridspec_kw={"height_ratios": heights}
    )
    for row, (point, schemes) in zip(grid, blocks.items(), strict=True):
        own = numbers[numbers["point"] == point]
        _block(row, own, numbers, schemes, point)
    for axes in grid[-1, :2]:
        axes.set_xlabel(f"relative to {style.plain(reference_of(study), 22)}")
    grid_panels.legend(figure, {}, numbers)
    return figure, numbers


def _relative(study: xr.Dataset) -> pd.DataFrame:
    parts = []
    for measure in MEASURES:
        values = _runs(study, f"{measure}_mean")
        against = np.broadcast_to(values.sel(scheme=[reference_of(study)]).to_numpy(), values.shape)
        parts.append(_table(study, times_interval(values.to_numpy(), against), measure))
    parts.append(_means(study, "late", "late"))
    return pd.concat(parts, ignore_index=True)


def _block(
    row: Sequence[Axes], own: pd.DataFrame, everywhere: pd.DataFrame, schemes: list[str], point: str
) -> None:
    """Panels of one point: two of ratios, one of shares."""
    look = {"": style.SchemeStyle(grid_panels.shade_looks(["dark", "light"])["dark"].color, "o", ())}
    titles = {**MEASURES, "late": LATE}
    for axes, (measure, title) in zip(row, titles.items(), strict=True):
        rows = own[own["measure"] == measure].assign(hue="")
        grid_panels.label_rows(axes, [style.plain(scheme, 34) for scheme in schemes])
        scale = everywhere[everywhere["measure"] == measure]
        if measure == "late":
            grid_panels.share_axis(axes, scale, 4)
        else:
            grid_panels.ratio_axis(axes, scale, 4)
        grid_panels.dots(axes, rows, ("scheme", schemes), ("hue", look), one_lane=True)
        axes.set_title(f"{style.plain(point, 22)}: {title}" if measure == "mcp" else title)


MULTICLUSTER_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "multicluster_curves": multicluster_curves,
    "multicluster_advantage": multicluster_advantage,
    "multicluster_queues": multicluster_queues,
    "multicluster_points": multicluster_points,
    "multicluster_schemes": multicluster_schemes,
}
"""Figures of a study of a multicluster by name."""

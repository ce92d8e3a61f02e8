"""What the figures of grids share: numbers with intervals, a look for each label, lanes of markers, axes.

A row of a panel is a scheme, a policy or a cluster. It has a lane for each marker that stands in it, so that
intervals never cover each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.markers import CARETLEFT, CARETRIGHT
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from gridsched.figures import panels, style
from gridsched.replication import Interval, difference_interval, mean_interval, ratio_interval

INTERVAL = ["mean", "low", "high", "replicates"]
"""Columns of a number over replicates."""

TITLE_SIZE = 8.5
"""Points of a title."""

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">")
_STEPS = (1, 2, 5, 10)

_LANE = 0.068
"""Inches from a marker to the next of the same row."""

_SMALLEST_RATIO, _SHORTEST_WAIT = 1e-4, 1.0
"""What a logarithmic axis shows at least; anything smaller is a triangle at its edge."""

_FARTHEST_BOUND = 2.5
"""An axis follows intervals up to so many times its largest mean, and down to its smallest one by so much."""


# --- numbers --------------------------------------------------------------------------------------


def reference_of(study: xr.Dataset) -> str:
    """The scheme that the study compares the others with.

    Raises
    ------
    ConfigurationError
        If the study has no such scheme.
    """
    return panels.choose(study, "scheme", str(study.attrs.get("reference", "local")))


def of_scenario(study: xr.Dataset, scenario: str, policy: str | None) -> xr.Dataset:
    """One scenario and one policy of the study; both dimensions stay."""
    return study.sel(
        scenario=[panels.choose(study, "scenario", scenario)],
        policy=[panels.choose(study, "policy", policy)],
    )


def means(study: xr.Dataset, metric: str) -> pd.DataFrame:
    """Means of a metric over replicates, one row for each combination of labels that was run.

    Returns
    -------
    DataFrame
        The labels, metric, relative_to (empty), mean, low, high, replicates.
    """
    values = study[metric]
    return _rows(values, values, mean_interval(_last(values)), metric, "")


def ratios(study: xr.Dataset, metric: str, reference: str) -> pd.DataFrame:
    """Rows as of `means`: ratios of means to the reference scheme, paired by replicate.

    The mean is NaN where that of the reference is 0.
    """
    values = study[metric]
    return ratio_rows(values, values.sel(scheme=reference, drop=True), metric, reference)


def ratio_rows(
    values: xr.DataArray, against: xr.DataArray, metric: str, relative_to: str = ""
) -> pd.DataFrame:
    """Rows as of `means`: ratios of the means of two arrays, paired by replicate."""
    values, against = xr.broadcast(values, against)
    interval = ratio_interval(_last(values), _last(against))
    return _rows(values, against, interval, metric, relative_to)


def differences(study: xr.Dataset, metric: str, reference: str) -> pd.DataFrame:
    """Rows as of `means`: means of the differences from the reference scheme, paired by replicate."""
    values, against = xr.broadcast(study[metric], study[metric].sel(scheme=reference, drop=True))
    interval = difference_interval(_last(values), _last(against))
    return _rows(values, against, interval, metric, reference)


def _last(values: xr.DataArray) -> np.ndarray:
    """Numbers with the replicates on the last axis."""
    array: np.ndarray = values.transpose(..., "replicate").to_numpy()
    return array


def _rows(
    values: xr.DataArray, against: xr.DataArray, interval: Interval, metric: str, relative_to: str
) -> pd.DataFrame:
    dimensions = [str(dimension) for dimension in values.dims if dimension != "replicate"]
    labels = [[str(label) for label in values[dimension].to_numpy()] for dimension in dimensions]
    rows = pd.MultiIndex.from_product(labels, names=dimensions).to_frame(index=False)
    count = np.sum(~np.isnan(_last(values)) & ~np.isnan(_last(against)), axis=-1)
    rows = rows.assign(metric=metric, relative_to=relative_to)
    for column, data in zip(INTERVAL, (*interval, count), strict=True):
        rows[column] = data.ravel()
    return rows[rows["replicates"] > 0].reset_index(drop=True)


def known(study: xr.Dataset, dimension: str, rows: pd.DataFrame) -> list[str]:
    """Labels that occur in the rows, in the order of the study."""
    present = set(rows[dimension])
    return [label for label in panels.labels(study, dimension) if label in present]


# --- looks ----------------------------------------------------------------------------------------


def base_of(scheme: str) -> str:
    """The scheme that a label such as "s-i, epsilon 60 s" is a variant of: what precedes the first comma."""
    return scheme.split(",", 1)[0].strip()


def scheme_looks(study: xr.Dataset) -> dict[str, style.SchemeStyle]:
    """How each scheme is drawn in all figures of the study; variants have the colour of their base."""
    schemes = panels.labels(study, "scheme")
    bases = style.scheme_styles(dict.fromkeys(base_of(scheme) for scheme in schemes))
    return {
        scheme: replace(bases[base_of(scheme)], marker=_MARKERS[place % len(_MARKERS)])
        for place, scheme in enumerate(schemes)
    }


def shade_looks(labels: Sequence[str]) -> dict[str, style.SchemeStyle]:
    """Dark to light shades for labels that are no schemes, whose colours have a meaning of their own."""
    shades = sns.color_palette("viridis", as_cmap=True)(np.linspace(0.0, 0.78, max(len(labels), 2)))
    return {
        label: style.SchemeStyle(to_hex(shade), _MARKERS[i % len(_MARKERS)], ())
        for i, (label, shade) in enumerate(zip(labels, shades, strict=False))
    }


def handle(look: style.SchemeStyle) -> Line2D:
    """Marker of a legend."""
    return Line2D([], [], linestyle="", marker=look.marker, color=look.color, markersize=4.5)


def legend(
    figure: Figure,
    looks: Mapping[str, style.SchemeStyle],
    numbers: pd.DataFrame,
    more: Iterable[tuple[Any, str]] = (),
) -> None:
    """Legend below all panels: labels, other entries, and what the lines are if there are any."""
    entries = [*((handle(look), label) for label, look in looks.items()), *more, *interval_entry(numbers)]
    style.entries_below(figure, entries, columns=6)


def marker_legend(figure: Figure, looks: Mapping[str, style.SchemeStyle], *, columns: int = 5) -> None:
    """Legend below all panels of a marker for each label."""
    style.entries_below(figure, [(handle(look), label) for label, look in looks.items()], columns=columns)


def interval_entry(numbers: pd.DataFrame) -> list[tuple[Any, str]]:
    """Entry of a legend for the intervals, if any is known."""
    line = Line2D([], [], color=style.FAINT, linewidth=1.4)
    return [(line, "95 % interval")] if np.isfinite(numbers["low"]).any() else []


def cut_entry(is_cut: bool) -> list[tuple[Any, str]]:
    """Entry of a legend for intervals of which a part is out of sight, if there are any."""
    return [(panels.dot(">"), "interval goes on")] if is_cut else []


def text_width(text: str, size: float = 7.0, weight: str = "normal") -> float:
    """Inches that a text takes; one that is empty takes none."""
    # The full stop gives blank texts an outline, whose width is then taken off again.
    outlines = (
        TextPath((0, 0), part, prop=FontProperties(size=size, weight=weight)) for part in (text + ".", ".")
    )
    whole, stop = (float(outline.get_extents().x1) for outline in outlines)
    return (whole - stop) / 72


def fitting(text: str, inches: float, size: float = 7.0, weight: str = "normal") -> str:
    """The text as `style.plain` gives it, shortened until it takes at most so many inches."""
    shown = style.plain(text)
    for limit in range(len(shown) - 1, 0, -1):
        if text_width(shown, size, weight) <= inches:
            break
        shown = style.plain(text, limit)
    return shown


def title_across(axes: Sequence[Axes], text: str, inches: float) -> None:
    """Title of several panels beside each other, which may be wider than the first of them."""
    # The layout would keep a title of the panel itself clear of the next panel.
    axes[0].set_title(" ")
    title = axes[0].annotate(
        fitting(text, inches, TITLE_SIZE, "bold"),
        (0.0, 1.0),
        xytext=(0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=TITLE_SIZE,
        fontweight="bold",
    )
    title.set_in_layout(False)


def scenario_title(study: xr.Dataset, chosen: xr.Dataset) -> str:
    """Title: scenario, and local policy where the study has several."""
    scenario, policy = str(chosen["scenario"].item()), str(chosen["policy"].item())
    several = study.sizes["policy"] > 1
    return style.plain(scenario) + (f", local policy {style.plain(policy, 22)}" if several else "")


def nothing(text: str) -> Figure:
    """Figure that says why it is empty."""
    figure = style.new_figure(1.0)
    style.no_data(figure.subplots(), text)
    return figure


# --- rows and lanes -------------------------------------------------------------------------------


def row_height(lanes: int) -> float:
    """Inches of a row with so many lanes."""
    return 0.125 + _LANE * max(lanes, 1)


def label_rows(axes: Axes, texts: Sequence[str], *, shaded: bool = True) -> None:
    """Make the y axis one row a text, the first at the top; every other one is shaded."""
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.set_yticks(range(len(texts)), texts)
    axes.tick_params(axis="y", length=0, labelleft=panels.is_left(axes))
    axes.grid(visible=False, axis="y")
    for row in range(1, len(texts), 2) if shaded else ():
        shade(axes, row, row + 1)


def shade(axes: Axes, first: int, end: int) -> None:
    """Shade the rows from `first` to before `end`."""
    axes.axhspan(first - 0.5, end - 0.5, color=style.PALE, alpha=0.45, zorder=0.1, linewidth=0)


def dots(
    axes: Axes,
    numbers: pd.DataFrame,
    rows: tuple[str, Sequence[str]],
    hues: tuple[str, Mapping[str, style.SchemeStyle]],
    *,
    one_lane: bool = False,
) -> None:
    """A marker with its interval for each number; a dash in rows without any.

    Numbers beyond the axis are a triangle at its edge, intervals that go on beyond it end in a small one.
    Markers are hollow where a column `clear` is false.

    Parameters
    ----------
    axes : Axes
        With its limits set.
    numbers : DataFrame
    rows : tuple of str and sequence of str
        Column that tells the row of a number, and its labels from top to bottom.
    hues : tuple of str and mapping
        Column that tells the look of a number, and the look of each label.
    one_lane : bool
        Draw all hues at the same height; otherwise each has its lane.
    """
    (row_of, labels), (hue_of, looks) = rows, hues
    places = {label: place for place, label in enumerate(labels)}
    lanes = len(looks)
    spread = 0.0 if one_lane else _LANE * (lanes - 1) / row_height(lanes)
    shifts = dict(zip(looks, np.linspace(-spread / 2, spread / 2, lanes), strict=True))
    drawn = numbers[np.isfinite(numbers["mean"])]
    for record in drawn.to_dict("records"):
        label, hue = record[row_of], record[hue_of]
        _dot(axes, record, places[label] + (shifts[hue] if lanes > 1 else 0.0), looks[hue])
    for label in labels:
        if label not in set(drawn[row_of]):
            _dash(axes, places[label])


def interval_line(
    axes: Axes, low: float, high: float, y: float, color: str, *, linewidth: float = 1.4
) -> bool:
    """Draw an interval as far as the axis goes, with a small triangle at the edge where it goes on.

    Parameters
    ----------
    axes : Axes
        With its limits set.
    low, high : float
        Bounds; nothing is drawn where one is unknown.
    y : float
        Height.
    color : str
    linewidth : float

    Returns
    -------
    bool
        Whether a part of it is out of sight.
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return False
    left, right = axes.get_xlim()
    axes.hlines(y, max(low, left), min(high, right), color=color, linewidth=linewidth)
    beyond = [side for side, cut in ((False, low < left), (True, high > right)) if cut]
    for side in beyond:
        at_edge(axes, y, color, 2.5, right=side)
    return bool(beyond)


def _dot(axes: Axes, record: Mapping[Any, Any], y: float, look: style.SchemeStyle) -> None:
    left, right = axes.get_xlim()
    mean, low, high = record["mean"], record["low"], record["high"]
    if not left <= mean <= right:
        at_edge(axes, y, look.color, 4, right=mean > right)
        return
    interval_line(axes, low, high, y, look.color)
    face = look.color if record.get("clear", True) else "white"
    axes.plot(
        [mean],
        [y],
        marker=look.marker,
        markersize=4,
        color=look.color,
        markerfacecolor=face,
        clip_on=False,
    )


def at_edge(axes: Axes, y: float, color: str, size: float, *, right: bool) -> None:
    """A triangle at the left or right edge of a panel: what it stands for lies or goes on beyond."""
    left_edge, right_edge = axes.get_xlim()
    marker, x = (CARETRIGHT, right_edge) if right else (CARETLEFT, left_edge)
    axes.plot([x], [y], marker=marker, color=color, markersize=size, clip_on=False)


def _dash(axes: Axes, place: int) -> None:
    axes.annotate(
        "\N{EN DASH}",
        (0.0, place),
        xytext=(4, 0),
        textcoords="offset points",
        xycoords=("axes fraction", "data"),
        va="center",
        color=style.FAINT,
    )


# --- axes -----------------------------------------------------------------------------------------


def ratio_axis(axes: Axes, rows: pd.DataFrame, ticks: int) -> None:
    """An x axis of ratios with a line at 1; logarithmic where they span more than a decade."""
    log = style.needs_log(_from(rows["mean"], _SMALLEST_RATIO))
    seen = np.append(_seen(rows, _SMALLEST_RATIO if log else 0.0), 1.0)
    style.set_axis(axes.xaxis, seen, "1", log=log, ticks=ticks, floor=0.0)
    if not log:
        axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=_STEPS))
    axes.axvline(1, color=style.INK, linewidth=0.8, zorder=0.6)


def time_axis(axes: Axes, rows: pd.DataFrame, ticks: int, *, log: bool | None = None) -> None:
    """An x axis of durations; logarithmic if wished, or where they span more than a decade."""
    log = style.needs_log(_from(rows["mean"], _SHORTEST_WAIT)) if log is None else log
    seen = _seen(rows, _SHORTEST_WAIT if log else 0.0)
    style.set_axis(axes.xaxis, seen, "s", log=log and len(seen) > 0, ticks=ticks, floor=0.0)


def share_axis(axes: Axes, rows: pd.DataFrame, ticks: int) -> None:
    """An x axis of fractions, in per cent from 0."""
    style.set_axis(axes.xaxis, _seen(rows, 0.0), "1", ticks=ticks, floor=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=_STEPS))
    style.set_percent(axes.xaxis)


def _from(values: pd.Series, smallest: float) -> np.ndarray:
    """The values that are not below the smallest one that an axis shows."""
    array = values.to_numpy(np.float64)
    return array[array >= smallest]


def _seen(rows: pd.DataFrame, smallest: float) -> np.ndarray:
    """What an axis has to hold: all means, and intervals as far as they do not press the means together."""
    centre = _from(rows["mean"], smallest)
    if not len(centre):
        return centre
    low = rows["low"].clip(lower=centre.min() / _FARTHEST_BOUND)
    high = rows["high"].clip(upper=centre.max() * _FARTHEST_BOUND)
    return np.concatenate([centre, low, high])

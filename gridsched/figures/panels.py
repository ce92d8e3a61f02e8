"""Panels of a study's figures: one or two workloads a row, one panel a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETLEFT, CARETRIGHT

from gridsched.errors import ConfigurationError
from gridsched.figures import style
from gridsched.metrics.jobs import RECORDED


@dataclass(frozen=True)
class ShownMetric:
    """A job-level metric as figures show it."""

    name: str
    label: str
    unit: style.Unit
    smallest: float


SHOWN = (
    ShownMetric("wait_time", "wait time", "s", 0.0),
    ShownMetric("bounded_slowdown", "bounded slowdown", "1", 1.0),
)
"""Metrics of the figures that compare schemes, one panel each."""

WAIT_QUANTILES = {"median": 0.5, "90 %": 0.9, "99 %": 0.99}
"""Quantiles of the wait that are shown beside its mean."""

_KEYS = ("workload", "scheme", "estimate")
_WAIT_MARKERS = {"median": "|", "mean": "D", "90 %": "o", "99 %": "s"}


def labels(study: xr.Dataset, dimension: str) -> list[str]:
    """Labels of a dimension of the study, in its order."""
    return [str(label) for label in study[dimension].to_numpy()]


def choose(study: xr.Dataset, dimension: str, label: str | None) -> str:
    """The label if the study has it, its first one if none is given.

    Raises
    ------
    ConfigurationError
        If the study has no such label.
    """
    known = labels(study, dimension)
    if label is None:
        return known[0]
    if label not in known:
        raise ConfigurationError(f"the study has no {dimension} {label!r}; it has {', '.join(known)}")
    return label


def tidy(
    study: xr.Dataset, columns: dict[str, str], metrics: tuple[ShownMetric, ...] = SHOWN
) -> pd.DataFrame:
    """One row a metric and combination of labels, with the variables `{metric}_{suffix}` as columns.

    Parameters
    ----------
    study : xarray.Dataset
    columns : dict
        Column name by suffix of the variable. Rows in which the first is unknown are left out.
    metrics : tuple of ShownMetric

    Returns
    -------
    pandas.DataFrame
        Recorded waits depend on no estimates and occur once for each workload.
    """
    return pd.concat([_tidy_one(study, columns, metric) for metric in metrics], ignore_index=True)


def _tidy_one(study: xr.Dataset, columns: dict[str, str], metric: ShownMetric) -> pd.DataFrame:
    names = {f"{metric.name}_{suffix}": column for suffix, column in columns.items()}
    frame = study[list(names)].rename(names).reset_coords(drop=True).to_dataframe().reset_index()
    frame = frame.dropna(subset=[next(iter(columns.values()))])
    keys = [*_KEYS, *(key for key in frame.columns if key not in _KEYS and key not in columns.values())]
    frame = frame[[*keys, *columns.values()]]
    frame.insert(len(_KEYS), "metric", metric.name)
    is_recorded = frame["scheme"] == RECORDED
    once = frame[is_recorded].drop_duplicates([key for key in keys if key != "estimate"])
    return pd.concat([frame[~is_recorded], once.assign(estimate="")])


def is_left(axes: Axes) -> bool:
    """Whether a panel stands in the first column of the figure."""
    place = axes.get_subplotspec()
    return place is not None and place.is_first_col()


def room(axes: Axes) -> int:
    """For how many labels the x axis of a panel has room."""
    place = axes.get_subplotspec()
    columns = 1 if place is None else place.get_gridspec().ncols
    return {1: 9, 2: 6}.get(columns, 4)


def scheme_rows(axes: Axes, schemes: list[str]) -> dict[str, int]:
    """Make the y axis one row a scheme, the first at the top; returns the rows."""
    axes.set_ylim(len(schemes) - 0.5, -0.5)
    axes.set_yticks(range(len(schemes)), [style.plain(scheme, 22) for scheme in schemes])
    axes.tick_params(axis="y", length=0, labelleft=is_left(axes))
    axes.grid(visible=False, axis="y")
    return {scheme: row for row, scheme in enumerate(schemes)}


def each_row(numbers: pd.DataFrame) -> Iterator[Any]:
    """Rows of a table, with the columns as attributes."""
    return iter(numbers.itertuples(index=False))


def offsets(count: int, room: float = 0.5) -> list[float]:
    """Places within a row for so many markers."""
    return list(np.linspace(-room / 2, room / 2, count)) if count > 1 else [0.0]


def dot(marker: str, face: str = style.FAINT) -> Line2D:
    """Marker of a legend that stands for no scheme."""
    return Line2D([], [], linestyle="", marker=marker, color=style.FAINT, markerfacecolor=face)


def wait_markers(
    axes: Axes, rows: pd.DataFrame, places: Mapping[str, int], styles: Mapping[str, style.SchemeStyle]
) -> None:
    """Median, mean, 90 % and 99 % quantile of the wait of each scheme, joined by a line.

    Parameters
    ----------
    axes : Axes
    rows : DataFrame
        Columns scheme, statistic, value.
    places : mapping
        Row of each scheme.
    styles : mapping
        Style of each scheme.
    """
    for scheme, part in rows.groupby("scheme", sort=False):
        values = part.set_index("statistic")["value"]
        place, color = places[str(scheme)], styles[str(scheme)].color
        axes.hlines(place, values["median"], values["99 %"], color=color, linewidth=1)
        for statistic, marker in _WAIT_MARKERS.items():
            face = color if statistic == "mean" else "white"
            axes.plot(
                [values[statistic]], [place], marker=marker, color=color, markerfacecolor=face, clip_on=False
            )


def wait_legend(figure: Figure) -> None:
    """Legend below all panels: what the markers of `wait_markers` are."""
    entries = [
        (dot(marker, style.FAINT if statistic == "mean" else "white"), statistic)
        for statistic, marker in _WAIT_MARKERS.items()
    ]
    style.entries_below(figure, entries)


def cut_entry(is_cut: bool) -> list[tuple[Any, str]]:
    """Entry of a legend for intervals of which a part is out of sight, if there are any."""
    return [(dot(">"), "interval goes on")] if is_cut else []


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


def at_edge(axes: Axes, y: float, color: str, size: float, *, right: bool) -> None:
    """A triangle at the left or right edge of a panel: what it stands for lies or goes on beyond."""
    left_edge, right_edge = axes.get_xlim()
    marker, x = (CARETRIGHT, right_edge) if right else (CARETLEFT, left_edge)
    axes.plot([x], [y], marker=marker, color=color, markersize=size, clip_on=False)

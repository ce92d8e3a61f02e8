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


def schemes_in(study: xr.Dataset, numbers: pd.DataFrame) -> list[str]:
    """Schemes that occur in the numbers, in the order of the study, recorded waits last."""
    present = set(numbers["scheme"])
    found = [scheme for scheme in labels(study, "scheme") if scheme in present]
    return sorted(found, key=lambda scheme: scheme == RECORDED)


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


def for_estimate(numbers: pd.DataFrame, estimate: str) -> pd.DataFrame:
    """Rows of one kind of estimates, with the recorded waits, which depend on none."""
    return numbers[(numbers["estimate"] == estimate) | (numbers["scheme"] == RECORDED)]


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


def workload_panels(
    workloads: list[str], columns: int, height: float, extra: float = 0.7
) -> tuple[Figure, dict[str, list[Axes]]]:
    """Figure with `columns` panels for each workload, its name above the first of them.

    More than three workloads stand two in a row.

    Parameters
    ----------
    workloads : list of str
    columns : int
        Panels of a workload.
    height : float
        Inches of a row of panels.
    extra : float
        Inches for what all panels share.
    """
    across = 2 if len(workloads) > 3 else 1
    rows = -(-len(workloads) // across)
    figure = style.new_figure(rows * height + extra)
    grid = figure.subplots(rows, across * columns, squeeze=False)
    flat = grid.reshape(rows * across, columns)
    for unused in flat[len(workloads) :].flat:
        unused.set_visible(False)
    panels = {workload: list(flat[index]) for index, workload in enumerate(workloads)}
    for workload, axes in panels.items():
        axes[0].set_title(style.plain(workload))
    return figure, panels


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

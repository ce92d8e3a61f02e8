"""Panels of a study's figures: one or two workloads a row, one panel a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gridsched.figures import style


@dataclass(frozen=True)
class ShownMetric:
    """A job-level metric as figures show it."""

    name: str
    label: str
    unit: style.Unit
    smallest: float


WAIT_QUANTILES = {"median": 0.5, "90 %": 0.9, "99 %": 0.99}
"""Quantiles of the wait that are shown beside its mean."""

_WAIT_MARKERS = {"median": "|", "mean": "D", "90 %": "o", "99 %": "s"}


def labels(study: xr.Dataset, dimension: str) -> list[str]:
    """Labels of a dimension of the study, in its order."""
    return [str(label) for label in study[dimension].to_numpy()]


def is_left(axes: Axes) -> bool:
    """Whether a panel stands in the first column of the figure."""
    place = axes.get_subplotspec()
    return place is not None and place.is_first_col()


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

"""Figures of a study of forecasts: coverage and width of intervals by method, and against the horizon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gridsched.experiments.forecasts.findings import FINDINGS as FINDINGS
from gridsched.experiments.forecasts.stages import coverage_table
from gridsched.figures import panels, style
from gridsched.forecasting.judging import CORRECTIONS, RANGES

GOAL = (0.77, 0.83)
"""What an interval of 80 % may cover."""

SHOWN = ("futures", "combined", "null", "estimates")
"""Methods that are shown against the horizon."""

FEWEST = 20
"""Ranges of horizons with fewer forecasts of a method are not drawn."""

_AS_IT_GOES = CORRECTIONS[-1]
_RAW = CORRECTIONS[0]


_TICKS = ("< 10 min", "1 h", "6 h", "1 d", "> 1 d")
"""Where the ranges of horizons end."""


@style.styled
def forecast_coverage(study: xr.Dataset) -> style.Drawing:
    """Coverage and mean width of the 80 % intervals by method; two panels a log and truth.

    Parameters
    ----------
    study : xarray.Dataset
        A study of forecasts.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, truth, predictor, correction, forecasts, coverage, its bounds, width
        [s] and score [s].
    """
    table = coverage_table(study)
    numbers = table[(table["range"] == RANGES[0]) & (table["correction"] != CORRECTIONS[1])]
    columns = ["workload", "truth", "predictor", "correction", "forecasts"]
    numbers = numbers[[*columns, "coverage", "coverage_low", "coverage_high", "width", "score"]]
    workloads, truths, methods = (panels.labels(study, name) for name in ("workload", "truth", "predictor"))
    looks = style.scheme_styles(truths)
    figure = style.new_figure(len(workloads) * (0.2 * len(methods) + 0.5) + 0.9)
    grid = figure.subplots(len(workloads), 2, squeeze=False)
    shift = dict(zip(truths, panels.offsets(len(truths), 0.4), strict=True))
    for row, workload in enumerate(workloads):
        own = numbers[numbers["workload"] == workload]
        left, right = grid[row]
        for axes in (left, right):
            places = panels.scheme_rows(axes, methods)
            axes.set_title(style.plain(workload))
        left.axvspan(*GOAL, color=style.PALE, lw=0)
        # Points have no width, and a corrected interval that spans years says only that there is none.
        widths = own[own["width"] > 0]
        for each in panels.each_row(own):
            y, look = places[each.predictor] + shift[each.truth], looks[each.truth]
            face = look.color if each.correction == _AS_IT_GOES else "white"
            dot: dict[str, Any] = {
                "marker": look.marker,
                "color": look.color,
                "markerfacecolor": face,
                "markersize": 4,
            }
            left.plot([each.coverage], [y], **dot)
            if each.correction == _AS_IT_GOES:
                left.plot([each.coverage_low, each.coverage_high], [y, y], color=look.color, linewidth=1)
            if each.width > 0:
                right.plot([each.width], [y], **dot)
        style.set_axis(left.xaxis, [0, 1], "1", ticks=6)
        style.set_percent(left.xaxis)
        style.set_axis(right.xaxis, widths["width"], "s", ticks=5, log=True)
    grid[-1, 0].set_xlabel("starts in the interval of 80 %")
    grid[-1, 1].set_xlabel("mean width of the interval")
    style.entries_below(figure, _legend(looks, truths))
    return figure, numbers.reset_index(drop=True)


def _legend(looks: Any, truths: list[str]) -> list[tuple[Any, str]]:
    entries: list[tuple[Any, str]] = [
        (
            Line2D([], [], color=looks[truth].color, marker=looks[truth].marker, linestyle=""),
            f"{truth} starts",
        )
        for truth in truths
    ]
    plain: dict[str, Any] = {"color": style.INK, "linestyle": "", "marker": "o", "markersize": 4}
    entries.append((Line2D([], [], **plain, markerfacecolor="white"), "as they are"))
    entries.append((Line2D([], [], **plain), "corrected as it goes"))
    return entries


@style.styled
def forecast_horizons(study: xr.Dataset) -> style.Drawing:
    """Coverage and median width against the median forecast; corrected as it goes.

    Parameters
    ----------
    study : xarray.Dataset
        A study of forecasts.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, truth, predictor, range, forecasts, coverage, coverage_low, coverage_high and
        median_width [s].
    """
    table = coverage_table(study)
    chosen = (
        (table["correction"] == _AS_IT_GOES)
        & table["predictor"].isin(SHOWN)
        & (table["range"] != RANGES[0])
        & (table["forecasts"] >= FEWEST)
    )
    columns = ["workload", "truth", "predictor", "range", "forecasts"]
    numbers = table[chosen][[*columns, "coverage", "coverage_low", "coverage_high", "median_width"]]
    workloads, truths = (panels.labels(study, name) for name in ("workload", "truth"))
    looks = style.scheme_styles(SHOWN)
    figure = style.new_figure(1.25 * len(workloads) + 1.2)
    grid = figure.subplots(len(workloads), 2 * len(truths), squeeze=False, sharex=True)
    for row, workload in enumerate(workloads):
        for column, truth in enumerate(truths):
            own = numbers[(numbers["workload"] == workload) & (numbers["truth"] == truth)]
            left, right = grid[row][2 * column : 2 * column + 2]
            left.axhspan(*GOAL, color=style.PALE, lw=0)
            _lines(left, own, "coverage", looks)
            _lines(right, own, "median_width", looks)
            style.set_axis(left.yaxis, [0, 1], "1", ticks=4)
            style.set_percent(left.yaxis)
            style.set_axis(right.yaxis, own["median_width"], "s", ticks=4, log=True)
            if row == 0:
                left.set_title(f"{truth}: coverage")
                right.set_title(f"{truth}: width")
        grid[row][0].set_ylabel(style.plain(workload))
    for axes in grid[-1]:
        axes.set_xticks(range(len(_TICKS)), _TICKS)
        axes.set_xlabel("median forecast")
    entries = [(Line2D([], [], **style.line_options(looks[name])), name) for name in SHOWN]
    style.entries_below(figure, entries)
    return figure, numbers.reset_index(drop=True)


def _lines(axes: Axes, own: pd.DataFrame, name: str, looks: Any) -> None:
    """One line a method over the ranges."""
    for method in SHOWN:
        values = own[own["predictor"] == method].set_index("range")[name].reindex(RANGES[1:])
        axes.plot(np.arange(len(values)), values.to_numpy(), **style.line_options(looks[method]))


FORECAST_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "forecast_coverage": forecast_coverage,
    "forecast_horizons": forecast_horizons,
}
"""Figures of a study of forecasts by name."""

"""Figures of a study of calibration: before and after for all logs, and every layer of one log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gridsched.calibration.measures import LEAST_CORRELATION, RATIOS
from gridsched.experiments.calibration.findings import FINDINGS as FINDINGS
from gridsched.experiments.calibration.stages import ALL, HALVES, MEAN, NULL, PLAIN
from gridsched.figures import panels, style

_LABELS = {
    "correlation": "rank correlation of waits",
    "ratio": "mean simulated / mean recorded wait",
}
_GOALS = {"correlation": (LEAST_CORRELATION,), "ratio": RATIOS}
_HALVES = {"first": "first half, which was fitted", "second": "second half"}


def _table(study: xr.Dataset, workload: str, names: list[str]) -> pd.DataFrame:
    """One row for each set of layers and half of a log."""
    rows = []
    for name in names:
        for half in HALVES:
            part = study.sel(workload=workload, layers=name, half=half)
            values = {measure: float(part[measure]) for measure in ("ratio", "correlation", "near")}
            if np.isfinite(values["ratio"]):
                rows.append({"workload": workload, "layers": name, "half": half, **values})
    return pd.DataFrame(rows, columns=["workload", "layers", "half", "ratio", "correlation", "near"])


@style.styled
def calibration_overview(study: xr.Dataset) -> style.Drawing:
    """Rank correlation and ratio of waits on the second half of every log, before and after.

    Parameters
    ----------
    study : xarray.Dataset
        A study of calibration.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, layers (EASY, calibrated, mean of shaken, null model), half, ratio, correlation,
        near.
    """
    workloads, names = panels.labels(study, "workload"), [PLAIN, ALL, MEAN, NULL]
    numbers = pd.concat([_table(study, each, names) for each in workloads], ignore_index=True)
    shown = numbers[numbers["half"] == "second"]
    told = {PLAIN: PLAIN, ALL: ALL, MEAN: "mean of shaken replays", NULL: NULL}
    figure = style.new_figure(0.32 * len(workloads) + 1.1)
    _draw(figure, shown, ("workload", workloads), ("layers", told), size=5.5)
    return figure, numbers


@style.styled
def calibration_layers(study: xr.Dataset, *, workload: str) -> style.Drawing:
    """Rank correlation and ratio of waits of one log: layers alone, calibrated, and that without each layer.

    Parameters
    ----------
    study : xarray.Dataset
        A study of calibration.
    workload : str
        The log.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, layers, half, ratio, correlation, near.
    """
    numbers = _table(study, workload, panels.labels(study, "layers"))
    names = list(dict.fromkeys(numbers["layers"]))
    figure = style.new_figure(0.2 * len(names) + 1.1)
    _draw(figure, numbers, ("layers", names), ("half", {half: _HALVES[half] for half in HALVES}), size=4.5)
    return figure, numbers


def _draw(
    figure: Figure,
    numbers: pd.DataFrame,
    rows: tuple[str, list[str]],
    marks: tuple[str, Mapping[str, str]],
    *,
    size: float,
) -> None:
    """Both measures beside each other, with lines where waits count as explained.

    Rows and marks are a column each with its labels, those of the marks with what the legend says.
    """
    (along, labels), (kind, told) = rows, marks
    looks = style.scheme_styles(list(told))
    for axes, measure in zip(figure.subplots(1, 2, sharey=True), _LABELS, strict=True):
        places = panels.scheme_rows(axes, labels)
        for value in _GOALS[measure]:
            axes.axvline(value, color=style.FAINT, linewidth=0.8, zorder=0)
        for row in panels.each_row(numbers):
            look = looks[getattr(row, kind)]
            axes.plot(
                [getattr(row, measure)],
                [places[getattr(row, along)]],
                marker=look.marker,
                color=look.color,
                linestyle="",
                markersize=size,
            )
        style.set_axis(
            axes.xaxis, [*numbers[measure], *_GOALS[measure]], "1", ticks=5, log=measure == "ratio"
        )
        axes.set_xlabel(_LABELS[measure])
    entries: list[tuple[Any, str]] = [
        (Line2D([], [], linestyle="", marker=looks[name].marker, color=looks[name].color), text)
        for name, text in told.items()
    ]
    style.entries_below(figure, entries)


CALIBRATION_FIGURES: dict[str, Callable[..., style.Drawing]] = {
    "calibration_overview": calibration_overview,
    "calibration_layers": calibration_layers,
}
"""Figures of a study of calibration by name."""

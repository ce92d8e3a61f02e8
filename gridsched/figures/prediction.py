"""Figures of run time prediction: how good several methods are, and which intervals they mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, PercentFormatter

from gridsched.errors import ConfigurationError
from gridsched.figures import findings, panels, style
from gridsched.prediction.methods import CLASSIFICATION, REQUESTED

_RELATIVE = "relative_mean_absolute_error"
_PANELS: dict[str, tuple[str, str]] = {
    _RELATIVE: ("Mean absolute error", f"relative to that\nof the {REQUESTED}"),
    "correlation": ("Correlation", "of predicted and\nactual run time"),
    "under_predicted": ("Under-predictions", "jobs that run longer\nthan predicted"),
}
_SHARES = ("under_predicted",)
_COLORS = "YlGnBu"
_EDGE_LABELS = 7
_ROWS_HEIGHT = 8.5
"""Largest height of all rows of workloads, in inches; a page holds no more."""


@style.styled
def prediction_quality(dataset: xr.Dataset) -> style.Drawing:
    """Mean absolute error, correlation and under-predictions of the methods, one row a workload.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of `gridsched.prediction.evaluate` or `gridsched.prediction.stack_workloads`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns measure ("relative_mean_absolute_error", "correlation", "under_predicted"), workload,
        predictor, value. Workloads without requested times have no relative error.
    """
    stacked = _by_workload(dataset)
    numbers = _quality(stacked)
    workloads, methods = panels.labels(stacked, "workload"), panels.labels(stacked, "predictor")
    looks = style.scheme_styles(methods)
    height = (0.17 + 0.075 * len(methods)) * max(len(workloads), 2)
    figure = style.new_figure(1.15 + min(height, _ROWS_HEIGHT))
    grid = figure.subplots(1, len(_PANELS), squeeze=False)[0]
    for axes, (measure, (title, text)) in zip(grid, _PANELS.items(), strict=True):
        axes.set_title(title)
        axes.set_xlabel(text)
        _quality_panel(axes, numbers[numbers["measure"] == measure], workloads, looks)
    handles = [Line2D([], [], **_marker(looks[method])) for method in methods]
    style.legend_below(figure, handles, methods, columns=6)
    return figure, numbers


def _by_workload(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset with a dimension of workloads, also where it is of one."""
    return (
        dataset if "workload" in dataset.dims else dataset.expand_dims(workload=[dataset.attrs["workload"]])
    )


def _quality(stacked: xr.Dataset) -> pd.DataFrame:
    """One row a measure, workload and method."""
    error = stacked["mean_absolute_error"]
    base = error.sel(predictor=REQUESTED, drop=True)
    values = {
        _RELATIVE: error / base.where(base > 0),
        "correlation": stacked["correlation"],
        "under_predicted": stacked["under_predicted"],
    }
    parts = [
        value.transpose("workload", "predictor")
        .rename("value")
        .to_dataframe()
        .reset_index()
        .assign(measure=name)
        for name, value in values.items()
    ]
    together = pd.concat(parts, ignore_index=True)
    return together[["measure", "workload", "predictor", "value"]].dropna(subset=["value"])


def _quality_panel(
    axes: Axes, numbers: pd.DataFrame, workloads: list[str], looks: dict[str, style.SchemeStyle]
) -> None:
    """A row for each workload, in it a marker for each method, one below the other."""
    places = panels.scheme_rows(axes, workloads)
    for edge in np.arange(len(workloads) - 1) + 0.5:
        axes.axhline(edge, color=style.PALE, lw=0.6)
    for label in sorted(set(workloads) - set(numbers["workload"]), key=workloads.index):
        axes.text(
            0.02,
            places[label],
            "no requested times",
            color=style.FAINT,
            fontsize=6.5,
            va="center",
            transform=axes.get_yaxis_transform(),
        )
    shift = dict(zip(looks, panels.offsets(len(looks), 0.75), strict=False))
    for row in panels.each_row(numbers):
        axes.plot([row.value], [places[row.workload] + shift[row.predictor]], **_marker(looks[row.predictor]))
    if numbers.empty:
        axes.set_xticks([])
        return
    _quality_axis(axes, str(numbers["measure"].iloc[0]), numbers["value"])


def _quality_axis(axes: Axes, measure: str, values: pd.Series[float]) -> None:
    if measure == _RELATIVE:
        axes.axvline(1.0, color=style.FAINT, lw=0.8)
        style.set_axis(axes.xaxis, [*values, 1.0], "1", ticks=5, floor=0.0)
        return
    style.set_axis(axes.xaxis, [*values, 0.0], "1", ticks=5, floor=0.0 if values.min() >= 0 else None)
    if measure in _SHARES:
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _marker(look: style.SchemeStyle) -> dict[str, Any]:
    return {**style.line_options(look), "linestyle": "", "markersize": 4.5}


@style.styled
def prediction_intervals(
    dataset: xr.Dataset,
    *,
    workload: str | None = None,
    methods: Sequence[str] = (CLASSIFICATION, REQUESTED),
) -> style.Drawing:
    """Which intervals of run time are predicted for jobs of each actual interval, one panel a method.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of `gridsched.prediction.evaluate` or `gridsched.prediction.stack_workloads`.
    workload : str, optional
        One of the dataset's; if not given, the one with the most jobs that all of the methods predict.
    methods : sequence of str
        Methods of the dataset.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns predictor, actual_interval, predicted_interval, lower, upper (s, of the actual interval),
        jobs, share (of the jobs of the actual interval).

    Raises
    ------
    ConfigurationError
        If the dataset has no such workload or method, or no method is named.
    """
    if not methods:
        raise ConfigurationError("prediction_intervals: no methods; name at least one")
    stacked = _by_workload(dataset)
    names = [panels.choose(stacked, "predictor", name) for name in methods]
    chosen = stacked.sel(workload=panels.choose(stacked, "workload", workload or _largest(stacked, names)))
    numbers = pd.concat([_shares(chosen, name) for name in names], ignore_index=True)
    figure = style.new_figure(1.1 + 6.0 / max(len(names), 2))
    figure.suptitle(style.plain(str(chosen["workload"].item())), x=0.01, ha="left", fontsize=8.5)
    grid = figure.subplots(1, max(len(names), 2), squeeze=False)[0]
    for unused in grid[len(names) :]:
        unused.set_visible(False)
    for axes, name in zip(grid, names, strict=False):
        axes.set_title(style.plain(name))
        _confusion_panel(axes, numbers[numbers["predictor"] == name])
    grid[0].set_ylabel("actual run time")
    bar = figure.colorbar(
        ScalarMappable(Normalize(0, 1), _COLORS),
        ax=list(grid[: len(names)]),
        location="bottom",
        aspect=50,
        shrink=0.6,
        label="share of the jobs of the actual interval",
    )
    bar.ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    return figure, numbers


def _largest(stacked: xr.Dataset, methods: Sequence[str]) -> str:
    """Workload with the most jobs that all methods predict; requested times are not known everywhere."""
    jobs = stacked["confusion"].sel(predictor=list(methods)).sum(["actual_interval", "predicted_interval"])
    return panels.labels(stacked, "workload")[int(jobs.min("predictor").argmax("workload"))]


def _shares(chosen: xr.Dataset, method: str) -> pd.DataFrame:
    """One row a pair of intervals, of the actual intervals that have jobs."""
    jobs = chosen["confusion"].sel(predictor=method, drop=True)
    total = jobs.sum("predicted_interval")
    table = xr.Dataset(
        {
            "lower": chosen["interval_lower"],
            "upper": chosen["interval_upper"],
            "jobs": jobs,
            "share": jobs / total.where(total > 0),
        }
    ).reset_coords(drop=True)
    rows = table.to_dataframe().reset_index().dropna(subset=["share"])
    rows.insert(0, "predictor", method)
    keys = ["predictor", "actual_interval", "predicted_interval"]
    return rows[[*keys, "lower", "upper", "jobs", "share"]].sort_values(keys[1:])


def _confusion_panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Shares as colours, short run times at the lower left; the diagonal is right predictions."""
    if rows.empty:
        style.no_data(axes, "no data")
        return
    table = rows.pivot(index="actual_interval", columns="predicted_interval", values="share")
    intervals = int(table.index.max()) + 1
    table = table.reindex(index=range(intervals), columns=range(intervals))
    axes.grid(visible=False)
    axes.pcolormesh(table.to_numpy(), cmap=_COLORS, vmin=0, vmax=1, rasterized=True)
    axes.plot([0, intervals], [0, intervals], color=style.FAINT, lw=0.6, ls=(0, (2, 3)))
    axes.set(aspect="equal", facecolor=style.PALE, xlabel="predicted run time")
    upper = rows.drop_duplicates("actual_interval").set_index("actual_interval")["upper"]
    step = -(-intervals // _EDGE_LABELS)
    labelled = [k for k in range(step - 1, intervals, step) if k in upper.index]
    texts = [style.duration(float(upper[k])) for k in labelled]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([k + 1 for k in labelled]))
    axes.set_xticklabels(texts, rotation=45, ha="right")
    axes.set_yticklabels(texts)
    axes.tick_params(labelleft=panels.is_left(axes))


PREDICTION_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "prediction_quality": prediction_quality,
    "prediction_intervals": prediction_intervals,
}
"""Figures of run time prediction by name."""


# --- findings -------------------------------------------------------------------------------------


def _quality_finding(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which method has the smallest error, and how many logs say so."""
    rows = findings.known(numbers[numbers["measure"] == _RELATIVE], "value")
    if rows.empty:
        return "No log has requested times to compare with."
    best = rows.loc[rows.groupby("workload", sort=False)["value"].idxmin()]
    wins = best["predictor"].value_counts(sort=True)
    logs = len(best)
    mean = rows.groupby("predictor", sort=False)["value"].median().rename("mean").reset_index()
    others = mean[mean["predictor"] != REQUESTED]
    return findings.sentences(
        f"{findings.name(wins.index[0])} has the smallest mean absolute error on {int(wins.iloc[0])} of "
        f"{findings.counted(logs, 'log')}.",
        findings.extremes(others, "predictor", f"median error relative to {REQUESTED}"),
    )


def _interval_finding(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Share of the jobs whose interval each method hits, and on which side it errs."""
    told = []
    for method, rows in numbers.groupby("predictor", sort=False):
        jobs = rows["jobs"].to_numpy(np.float64)
        actual, predicted = (rows[f"{side}_interval"].to_numpy() for side in ("actual", "predicted"))
        total = jobs.sum()
        if total > 0:
            right, long = (jobs[chosen].sum() / total for chosen in (actual == predicted, predicted > actual))
            told.append(
                f"{findings.name(method)} hits the interval of {findings.percent(float(right))} of the "
                f"jobs and is too long for {findings.percent(float(long))}."
            )
    return findings.sentences(*told) or findings.NOTHING


FINDINGS: dict[str, findings.Finding] = {
    "prediction_quality": _quality_finding,
    "prediction_intervals": _interval_finding,
}
"""Findings by kind of figure."""

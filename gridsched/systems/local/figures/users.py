"""Figures of resampled logs, and of users who react: means, when users go away, what they get done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gridsched.figures import grid_panels, panels, style
from gridsched.figures.panels import SHOWN
from gridsched.metrics.jobs import RECORDED

_MEASURES = {
    "wait_time": "mean wait",
    "bounded_slowdown": "mean bounded slowdown",
    "productivity": "productivity",
    "jobs_per_user_week": "jobs a user week",
}
"""Measures of replicates that are set against the reference, with their labels."""

_LANE = 0.1
"""Inches from a marker to the next of the same row."""


@style.styled
def resampled_means(study: xr.Dataset, *, estimate: str | None = None) -> style.Drawing:
    """Means over resampled logs with intervals, scenario by scenario.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset in which logs are resampled.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, metric, mean, low, high (seconds for times).
    """
    chosen = study.sel(estimate=panels.choose(study, "estimate", estimate), job_class="all")
    chosen = chosen.isel(workload=(chosen["variation"] == "resampling").values)
    numbers = _numbers(chosen, {metric.name: f"{metric.name}_varied" for metric in SHOWN})
    numbers = numbers[numbers["scheme"] != RECORDED]
    figure, shown = _rows(study, numbers, [metric.name for metric in SHOWN])
    for axes, metric in zip(shown, SHOWN, strict=True):
        own = numbers[numbers["metric"] == metric.name]
        style.set_axis(
            axes.xaxis,
            own[["mean", "low", "high"]].to_numpy(np.float64).ravel(),
            metric.unit,
            log=style.needs_log(own["mean"]),
            ticks=panels.room(axes),
            floor=0.0,
        )
        axes.set_xlabel(f"mean {metric.label}")
    _legend(figure, study, numbers, "mean over resampled logs")
    return figure, numbers


def _numbers(chosen: xr.Dataset, variables: Mapping[str, str]) -> pd.DataFrame:
    """One row for each workload, policy and metric with a value."""
    parts = []
    for metric, variable in variables.items():
        names = {f"{variable}{end}": side for end, side in _SIDES.items()}
        frame = chosen[list(names)].rename(names).reset_coords(drop=True)
        parts.append(frame.to_dataframe(dim_order=["workload", "scheme"]).reset_index().assign(metric=metric))
    numbers = pd.concat(parts, ignore_index=True)
    return numbers[numbers["mean"].notna()][["workload", "scheme", "metric", "mean", "low", "high"]]


def _rows(study: xr.Dataset, numbers: pd.DataFrame, metrics: Sequence[str]) -> tuple[Figure, Sequence[Axes]]:
    """A panel for each metric, two side by side, in it a row for each workload with a marker a policy."""
    schemes, workloads = panels.schemes_in(study, numbers), list(dict.fromkeys(numbers["workload"]))
    looks = style.scheme_styles(panels.labels(study, "scheme"))
    lanes = dict(zip(schemes, panels.offsets(len(schemes), 0.66), strict=True))
    lines = (len(metrics) + 1) // 2
    figure = style.new_figure(lines * (0.45 + len(workloads) * (_LANE * len(schemes) + 0.12)) + 0.8)
    shown = figure.subplots(lines, 2, squeeze=False).ravel()
    for axes, metric in zip(shown, metrics, strict=True):
        places = panels.scheme_rows(axes, workloads)
        for row in panels.each_row(numbers[numbers["metric"] == metric]):
            look, at = looks[row.scheme], places[row.workload] + lanes[row.scheme]
            axes.hlines(at, row.low, row.high, color=look.color, linewidth=1.3)
            axes.plot([row.mean], [at], marker=look.marker, color=look.color, markersize=4)
    return figure, list(shown)


def _legend(figure: Figure, study: xr.Dataset, numbers: pd.DataFrame, title: str) -> None:
    looks = style.scheme_styles(panels.labels(study, "scheme"))
    schemes = panels.schemes_in(study, numbers)
    handles = [
        Line2D([], [], color=looks[scheme].color, marker=looks[scheme].marker, linestyle="")
        for scheme in schemes
    ]
    interval = Line2D([], [], color=style.FAINT, linewidth=1.4)
    style.legend_below(figure, [*handles, interval], [*schemes, "95 % interval"], title=title)


@style.styled
def users_going_on(study: xr.Dataset) -> style.Drawing:
    """Share of batches after which the session goes on, by response, beside a published curve.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset with `going_on_share`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload (the first of those of one log), response (lower bound of the class, seconds), middle
        (of the class), batches, mean (the share of the log), low, high, share (that falls with the
        response), published.
    """
    names = {
        "going_on_batches": "batches",
        "going_on": "mean",
        "going_on_low": "low",
        "going_on_high": "high",
        "going_on_share": "share",
    }
    rows = study[list(names)].rename(names).to_dataframe(dim_order=["workload", "response"]).reset_index()
    rows = rows[rows["share"].notna()]
    # scenarios of one log have the same users
    first = {tuple(own["batches"]): name for name, own in reversed([*rows.groupby("workload", sort=False)])}
    rows = rows[rows["workload"].isin(first.values())]
    # the middle of a class by its logarithm; the first begins at nothing, the last has no end
    middle = np.maximum(rows["response"], 30.0) * np.where(rows["response"] > 0, np.sqrt(2), 1.0)
    numbers = rows.assign(middle=middle, published=0.8 / (0.05 * middle / 60 + 1))
    numbers = numbers[["workload", "response", "middle", *names.values(), "published"]]
    figure = style.new_figure(2.6)
    axes = figure.subplots()
    looks = style.scheme_styles(list(dict.fromkeys(numbers["workload"])))
    style.set_axis(axes.xaxis, np.append(middle, 2 * middle.max()), "s", log=True, ticks=9)
    handles, texts = [], []
    for workload, own in numbers.groupby("workload", sort=False):
        look = looks[str(workload)]
        edges = np.append(np.maximum(own["response"], 21.0), 2 * own["response"].max())
        axes.stairs(own["share"], edges, color=look.color, linewidth=1.3, baseline=None)
        axes.vlines(own["middle"], own["low"], own["high"], color=look.color, linewidth=1)
        axes.plot(
            own["middle"], own["mean"], marker=look.marker, color=look.color, linestyle="", markersize=4
        )
        handles.append(Line2D([], [], color=look.color, marker=look.marker))
        texts.append(f"{workload}: log, and steps that fall")
    curve = np.geomspace(30, 2 * middle.max(), 200)
    (published,) = axes.plot(curve, 0.8 / (0.05 * curve / 60 + 1), color=style.INK, linestyle=(0, (4, 2)))
    style.legend_below(figure, [*handles, published], [*texts, "0.8 / (0.05 min + 1), published"])
    axes.set_ylim(0, 1)
    style.set_percent(axes.yaxis)
    axes.set_xlabel("response of a batch of jobs")
    axes.set_ylabel("session goes on")
    return figure, numbers


@style.styled
def users_productivity(study: xr.Dataset, *, estimate: str | None = None) -> style.Drawing:
    """Waits and what users got done relative to the reference policy, over resampled logs, with intervals.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset in which users react in replicates of a log.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, metric, mean (the ratio), low, high.
    """
    chosen = study.sel(estimate=panels.choose(study, "estimate", estimate))
    numbers = _numbers(chosen, {metric: f"{metric}_varied_ratio" for metric in _MEASURES})
    numbers = numbers[numbers["scheme"] != study.attrs["reference"]]
    if numbers.empty:
        return grid_panels.nothing("no log with users who react is resampled"), numbers
    figure, shown = _rows(study, numbers, list(_MEASURES))
    for axes, (metric, label) in zip(shown, _MEASURES.items(), strict=True):
        own = numbers[numbers["metric"] == metric]
        seen = np.append(own[["mean", "low", "high"]].to_numpy(np.float64).ravel(), 1.0)
        style.set_axis(axes.xaxis, seen, "1", log=True, ticks=panels.room(axes))
        axes.axvline(1.0, color=style.INK, linewidth=0.8, zorder=1)
        axes.set_xlabel(label)
    reference = style.plain(study.attrs["reference"], 20)
    _legend(figure, study, numbers, f"relative to {reference} on the same resampled logs")
    return figure, numbers


_SIDES = {"": "mean", "_low": "low", "_high": "high"}

USER_FIGURES = {
    "resampled_means": resampled_means,
    "users_going_on": users_going_on,
    "users_productivity": users_productivity,
}
"""Figures of resampled logs and of users who react, by kind."""

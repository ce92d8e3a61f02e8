"""Figures that compare schemes: means, distributions, job classes, differences, recorded waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gridsched.figures import grid_panels, panels, style
from gridsched.figures.panels import SHOWN, ShownMetric
from gridsched.metrics.jobs import RECORDED

_ROW = 0.19
_ESTIMATE_MARKERS = ("o", "s", "^", "D", "v", "P")
_TABLE_COLORS = sns.color_palette("YlGnBu", as_cmap=True)
_OUTLYING = 8
"""A difference so many times the median one would hide all others: its value is written at the edge."""


@style.styled
def policies_means(study: xr.Dataset, *, job_class: str = "all") -> style.Drawing:
    """Mean wait and mean bounded slowdown of every scheme, with intervals.

    One panel a workload and metric, one row a scheme; kinds of estimates differ by marker. Recorded means
    are a vertical line with their interval behind it. A scenario of resampled logs has means over these.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset.
    job_class : str
        Class of jobs, see `gridsched.metrics.jobs.JOB_CLASSES`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, estimate, metric, mean, low, high (seconds for times).
    """
    chosen = _over_logs(study).sel(job_class=panels.choose(study, "job_class", job_class))
    numbers = panels.tidy(chosen, {"mean": "mean", "mean_low": "low", "mean_high": "high"})
    schemes = [scheme for scheme in panels.schemes_in(study, numbers) if scheme != RECORDED]
    figure, grid = _scheme_panels(study, schemes, len(_estimates(study, numbers)))
    for column, metric in enumerate(SHOWN):
        rows = numbers[numbers["metric"] == metric.name]
        log = any(style.needs_log(part["mean"]) for _, part in rows.groupby("workload"))
        for workload, axes in grid.items():
            _means_panel(axes[column], study, rows[rows["workload"] == workload], schemes, metric, log)
    _label_columns(grid, [f"mean {metric.label}" for metric in SHOWN])
    interval = Line2D([], [], color=style.FAINT, linewidth=1.6)
    more = [(interval, f"{100 * study.attrs.get('confidence', 0.95):.3g} % interval")]
    _estimate_legend(figure, study, numbers, more)
    return figure, numbers


def _means_panel(
    axes: Axes, study: xr.Dataset, rows: pd.DataFrame, schemes: list[str], metric: ShownMetric, log: bool
) -> None:
    places = panels.scheme_rows(axes, schemes)
    if rows.empty:
        style.no_data(axes, "no data")
        return
    # The lower bound of a wide interval may be near or below zero: it runs out of the panel.
    lows = rows["low"].clip(lower=max(metric.smallest, rows["mean"].min() / 3))
    seen = pd.concat([rows["mean"], lows, rows["high"]])
    style.set_axis(axes.xaxis, seen, metric.unit, log=log, ticks=panels.room(axes), floor=0.0)
    known = rows[rows["scheme"] == RECORDED]
    for recorded in panels.each_row(known):
        axes.axvspan(recorded.low, recorded.high, color=style.PALE, zorder=0.5, linewidth=0)
        axes.axvline(recorded.mean, color=style.INK, linestyle=(0, (4, 2)), linewidth=1, zorder=0.6)
    _markers(axes, study, rows[rows["scheme"] != RECORDED], places, metric.unit)


def _markers(
    axes: Axes, study: xr.Dataset, rows: pd.DataFrame, places: dict[str, int], unit: style.Unit
) -> None:
    """A marker with its interval for each row; hollow where a column `clear` says that zero is possible."""
    styles = style.scheme_styles(panels.labels(study, "scheme"))
    estimates = panels.labels(study, "estimate")
    present = _estimates(study, rows)
    shift = dict(zip(present, panels.offsets(len(present), 0.42), strict=True))
    left, right = axes.get_xlim()
    for row in panels.each_row(rows):
        y = places[row.scheme] + shift[row.estimate]
        color = styles[row.scheme].color
        if not left <= row.mean <= right:
            _off_panel(axes, row, y, color, unit)
            continue
        grid_panels.interval_line(axes, row.low, row.high, y, color, linewidth=1.6)
        axes.plot(
            [row.mean],
            [y],
            marker=_ESTIMATE_MARKERS[estimates.index(row.estimate) % len(_ESTIMATE_MARKERS)],
            markersize=4.5 if len(present) > 1 else 5.5,
            color=color,
            markerfacecolor=color if getattr(row, "clear", True) else "white",
        )


def _off_panel(axes: Axes, row: Any, y: float, color: str, unit: style.Unit) -> None:
    """Arrow at the edge of a panel with the value that lies beyond it, in brackets where zero is possible."""
    text = style.duration(row.mean) if unit == "s" else style.number(row.mean)
    text = text if getattr(row, "clear", True) else f"({text})"
    right = row.mean > axes.get_xlim()[1]
    arrow = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}" if right else "\N{BLACK LEFT-POINTING SMALL TRIANGLE}"
    axes.annotate(
        f"{text} {arrow}" if right else f"{arrow} {text}",
        (1.0 if right else 0.0, y),
        xycoords=("axes fraction", "data"),
        ha="right" if right else "left",
        va="center_baseline",
        fontsize=6.5,
        color=color,
    )


def _estimates(study: xr.Dataset, rows: pd.DataFrame) -> list[str]:
    found = set(rows.loc[rows["scheme"] != RECORDED, "estimate"])
    return [estimate for estimate in panels.labels(study, "estimate") if estimate in found]


def _scheme_panels(
    study: xr.Dataset, schemes: list[str], estimates: int
) -> tuple[Figure, dict[str, list[Axes]]]:
    row = _ROW * (1 + 0.35 * (estimates - 1))
    height = 0.55 + row * max(len(schemes), 2)
    return panels.workload_panels(panels.labels(study, "workload"), len(SHOWN), height)


def _label_columns(grid: dict[str, list[Axes]], texts: Sequence[str]) -> None:
    """Label the x axes of the lowest panel of each column."""
    last = list(grid.values())[-2:] if len(grid) > 3 else list(grid.values())[-1:]
    for axes in last:
        for panel, text in zip(axes, texts, strict=True):
            panel.set_xlabel(text)


def _estimate_legend(
    figure: Figure,
    study: xr.Dataset,
    numbers: pd.DataFrame,
    more: Sequence[tuple[Artist, str]] = (),
    title: str | None = None,
) -> None:
    """What markers and the recorded line mean, where there is more than one thing to tell."""
    estimates = panels.labels(study, "estimate")
    present = _estimates(study, numbers)
    entries: list[tuple[Artist, str]] = [
        (
            panels.dot(_ESTIMATE_MARKERS[estimates.index(estimate) % len(_ESTIMATE_MARKERS)]),
            f"estimates: {estimate}",
        )
        for estimate in present
    ]
    if (numbers["scheme"] == RECORDED).any():
        line = Line2D([], [], color=style.INK, linestyle=(0, (4, 2)), linewidth=1)
        entries.append((line, "recorded in the log"))
    entries.extend(more)
    style.entries_below(figure, entries, columns=4, title=title)


@style.styled
def policies_differences(study: xr.Dataset, *, job_class: str = "all") -> style.Drawing:
    """Paired differences of the means from the reference scheme, with intervals.

    Left of zero is better than the reference. A marker is filled where the interval excludes zero.
    Differences far beyond the others are written at the edge of the panel, in brackets where zero is
    possible. A scenario of resampled logs has means over these.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset with attribute `reference`.
    job_class : str
        Class of jobs, see `gridsched.metrics.jobs.JOB_CLASSES`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, estimate, metric, mean (of the difference), low, high, clear (whether the
        interval excludes zero), resampled (whether it is a mean over resampled logs).
    """
    chosen = _over_logs(study).sel(job_class=panels.choose(study, "job_class", job_class))
    columns = {"difference": "mean", "difference_low": "low", "difference_high": "high"}
    numbers = panels.tidy(chosen, columns)
    reference = str(study.attrs.get("reference", ""))
    numbers = numbers[~numbers["scheme"].isin([reference, RECORDED])]
    numbers = numbers.assign(
        clear=(numbers["low"] > 0) | (numbers["high"] < 0),
        resampled=numbers["workload"].isin(_resampled(study)),
    )
    schemes = panels.schemes_in(study, numbers)
    figure, grid = _scheme_panels(study, schemes, len(_estimates(study, numbers)))
    for column, metric in enumerate(SHOWN):
        rows = numbers[numbers["metric"] == metric.name]
        for workload, axes in grid.items():
            _differences_panel(axes[column], study, rows[rows["workload"] == workload], schemes, metric)
    _label_columns(grid, [f"mean {metric.label}" for metric in SHOWN])
    # Swatches and no markers, whose shapes stand for kinds of estimates
    more = [
        (Patch(color=style.FAINT), "filled: interval excludes zero"),
        (Patch(facecolor="white", edgecolor=style.FAINT), "hollow: contains zero, or unknown"),
    ]
    title = f"difference from {style.plain(reference)} (left of zero: better)"
    _estimate_legend(figure, study, numbers, more, title)
    return figure, numbers


def _differences_panel(
    axes: Axes, study: xr.Dataset, rows: pd.DataFrame, schemes: list[str], metric: ShownMetric
) -> None:
    places = panels.scheme_rows(axes, schemes)
    if rows.empty:
        style.no_data(axes, "no data")
        return
    reach = _OUTLYING * max(float(rows["mean"].abs().median()), 1e-9)
    inside = rows[rows["mean"].abs() <= reach]
    bounds = pd.concat([inside["low"], inside["high"]]).clip(-reach, reach)
    seen = pd.concat([inside["mean"], bounds, pd.Series([0.0])])
    style.set_axis(axes.xaxis, seen, metric.unit, ticks=panels.room(axes))
    axes.axvline(0, color=style.INK, linewidth=0.9, zorder=1)
    _markers(axes, study, rows, places, metric.unit)


@style.styled
def policies_distribution(
    study: xr.Dataset, *, estimate: str | None = None, job_class: str = "all"
) -> style.Drawing:
    """What half, a tenth, a hundredth and a thousandth of the jobs wait, or are slowed down, at least.

    A row is a scheme, in it a marker a quantile, joined by a line.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.
    job_class : str
        Class of jobs, see `gridsched.metrics.jobs.JOB_CLASSES`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, estimate, metric, quantile, value (seconds for times), beyond: jobs that
        exceed it. Quantiles above the median that fewer than 10 jobs exceed are left out.
    """
    study = _logs_once(study)
    chosen = study.sel(job_class=panels.choose(study, "job_class", job_class))
    chosen = chosen.sel(quantile=list(_TAIL), method="nearest").assign_coords(quantile=list(_TAIL))
    numbers = panels.for_estimate(
        panels.tidy(chosen, {"quantile": "value"}), panels.choose(study, "estimate", estimate)
    )
    jobs = chosen["jobs"].rename("jobs").reset_coords(drop=True).to_dataframe().reset_index()
    numbers = numbers.merge(jobs.groupby(["workload", "scheme"])["jobs"].max().reset_index(), how="left")
    numbers["beyond"] = ((1 - numbers["quantile"]) * numbers.pop("jobs")).round()
    schemes = panels.schemes_in(study, numbers)
    # The median stays, so that every policy has a value
    enough = (numbers["quantile"] <= min(_TAIL)) | ~(numbers["beyond"] < _FEWEST_BEYOND)
    numbers = numbers[enough].reset_index(drop=True)
    styles = style.scheme_styles(panels.labels(study, "scheme"))
    height = 0.55 + _ROW * max(len(schemes), 2)
    figure, grid = panels.workload_panels(panels.labels(study, "workload"), len(SHOWN), height)
    for column, metric in enumerate(SHOWN):
        rows = numbers[numbers["metric"] == metric.name]
        log = style.needs_log(rows["value"])
        for workload, axes in grid.items():
            _tail_panel(axes[column], rows[rows["workload"] == workload], schemes, styles, metric, log)
    _label_columns(grid, [metric.label for metric in SHOWN])
    drawn = set(numbers["quantile"])
    entries = [(panels.dot(marker, style.FAINT), text) for at, (marker, text) in _TAIL.items() if at in drawn]
    style.entries_below(figure, entries, title="jobs that wait longer, or are slowed down more")
    return figure, numbers


_TAIL = {0.5: ("|", "half"), 0.9: ("o", "1 in 10"), 0.99: ("s", "1 in 100"), 0.999: ("D", "1 in 1000")}
"""Quantiles that are shown, with the marker of each and the share of the jobs beyond it."""

_FEWEST_BEYOND = 10
"""A quantile that fewer jobs exceed says more about these jobs than about the policy."""


def _tail_panel(
    axes: Axes,
    rows: pd.DataFrame,
    schemes: list[str],
    styles: dict[str, style.SchemeStyle],
    metric: ShownMetric,
    log: bool,
) -> None:
    places = panels.scheme_rows(axes, schemes)
    if rows.empty:
        style.no_data(axes, "no data")
        return
    seen = np.append(rows["value"].to_numpy(), metric.smallest)
    style.set_axis(
        axes.xaxis,
        seen,
        metric.unit,
        log=log,
        ticks=panels.room(axes),
        floor=None if log else metric.smallest,
    )
    for scheme, own in rows.groupby("scheme", sort=False):
        place, color = places[str(scheme)], styles[str(scheme)].color
        axes.hlines(place, own["value"].min(), own["value"].max(), color=color, linewidth=1)
        for quantile, (marker, _) in _TAIL.items():
            at = own.loc[own["quantile"] == quantile, "value"]
            if at.empty:  # a line of no points that is not clipped lies at the corner of the figure
                continue
            axes.plot(at, [place] * len(at), linestyle="", marker=marker, color=color, clip_on=False)


@style.styled
def policies_classes(study: xr.Dataset, *, estimate: str | None = None) -> style.Drawing:
    """Mean bounded slowdown by scheme and job class as a table in colours, one a workload.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, estimate, metric, job_class, mean, jobs.
    """
    study = _logs_once(study)
    metric = SHOWN[1]
    numbers = panels.for_estimate(
        panels.tidy(study, {"mean": "mean"}, (metric,)), panels.choose(study, "estimate", estimate)
    )
    counts = study["jobs"].max(["scheme", "estimate"]).to_series().rename("jobs").reset_index()
    numbers = numbers.merge(counts, how="left", on=["workload", "job_class"])
    schemes = panels.schemes_in(study, numbers)
    largest = max(10.0, float(numbers["mean"].max())) if len(numbers) else 10.0
    norm = LogNorm(1.0, largest)
    workloads = panels.labels(study, "workload")
    across = 1 if len(workloads) < 3 else 2
    figure, grid = _table_panels(workloads, across, 0.62 + 0.19 * max(len(schemes), 2))
    for workload, axes in grid.items():
        _class_table(axes, study, numbers[numbers["workload"] == workload], schemes, norm)
    bar = figure.colorbar(
        ScalarMappable(norm, _TABLE_COLORS),
        ax=list(grid.values()),
        location="bottom",
        fraction=0.03,
        pad=0.02,
        aspect=50,
        shrink=0.6,
        label="mean bounded slowdown",
    )
    style.set_axis(bar.ax.xaxis, [1.0, largest], "1", log=True, ticks=8)
    bar.ax.set_xlim(1.0, largest)
    return figure, numbers


def _table_panels(workloads: list[str], across: int, height: float) -> tuple[Figure, dict[str, Axes]]:
    rows = -(-len(workloads) // across)
    figure = style.new_figure(rows * height + 0.6)
    flat = list(figure.subplots(rows, across, squeeze=False).flat)
    for unused in flat[len(workloads) :]:
        unused.set_visible(False)
    for workload, axes in zip(workloads, flat, strict=False):
        axes.set_title(style.plain(workload))
    return figure, dict(zip(workloads, flat, strict=False))


def _class_table(
    axes: Axes, study: xr.Dataset, rows: pd.DataFrame, schemes: list[str], norm: LogNorm
) -> None:
    if rows.empty:
        style.no_data(axes, "no data")
        return
    classes = panels.labels(study, "job_class")
    table = rows.pivot(index="scheme", columns="job_class", values="mean").reindex(schemes, columns=classes)
    texts = table.map(lambda value: style.number(value, zeros=True))
    sns.heatmap(
        table,
        ax=axes,
        annot=texts,
        fmt="",
        norm=norm,
        cmap=_TABLE_COLORS,
        cbar=False,
        linewidths=0.8,
        annot_kws={"fontsize": 6.5},
    )
    for row, column in np.argwhere(table.isna().to_numpy()):
        axes.text(column + 0.5, row + 0.5, "\N{EN DASH}", ha="center", va="center", fontsize=6.5)
    counts = rows.drop_duplicates("job_class").set_index("job_class")["jobs"].reindex(classes).fillna(0)
    heads = [f"{str(name).replace(' ', chr(10))}\n({count:.0f})" for name, count in counts.items()]
    axes.set_xticks(axes.get_xticks(), heads, rotation=0, fontsize=6.5)
    axes.set_yticks(axes.get_yticks(), [style.plain(scheme, 22) for scheme in schemes], rotation=0)
    axes.tick_params(length=0, labelleft=panels.is_left(axes))
    axes.set(xlabel="", ylabel="", facecolor=style.PALE)


@style.styled
def recorded_waits(
    study: xr.Dataset, *, estimate: str | None = None, job_class: str = "all"
) -> style.Drawing:
    """Simulated beside recorded waits, for the workloads whose log recorded them.

    A row shows median, mean, 90 % and 99 % quantile of a scheme, joined by a line.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.
    job_class : str
        Class of jobs, see `gridsched.metrics.jobs.JOB_CLASSES`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, estimate, metric, statistic, value (seconds). Without a log that recorded
        waits the figure says so, and there are no rows.
    """
    study = _logs_once(study)
    chosen = study.sel(job_class=panels.choose(study, "job_class", job_class))
    numbers = panels.for_estimate(_statistics(chosen), panels.choose(study, "estimate", estimate))
    known = set(numbers.loc[numbers["scheme"] == RECORDED, "workload"])
    numbers = numbers[numbers["workload"].isin(known)]
    workloads = [workload for workload in panels.labels(study, "workload") if workload in known]
    if not workloads:
        figure = style.new_figure(1.0)
        style.no_data(figure.subplots(), "no log of this study recorded its wait times")
        return figure, numbers
    schemes = [RECORDED, *(s for s in panels.schemes_in(study, numbers) if s != RECORDED)]
    figure, grid = panels.workload_panels(workloads, 1, 0.5 + _ROW * len(schemes))
    styles = style.scheme_styles(panels.labels(study, "scheme"))
    log = style.needs_log(numbers["value"])
    for workload, (axes,) in grid.items():
        _waits_panel(axes, numbers[numbers["workload"] == workload], schemes, styles, log)
    _label_columns(grid, ["wait time"])
    panels.wait_legend(figure)
    return figure, numbers


def _statistics(study: xr.Dataset) -> pd.DataFrame:
    """Mean and some quantiles of the wait, one row each."""
    wait = SHOWN[:1]
    parts = [panels.tidy(study, {"mean": "value"}, wait).assign(statistic="mean")]
    for statistic, quantile in panels.WAIT_QUANTILES.items():
        at = study.sel(quantile=quantile, method="nearest")
        parts.append(panels.tidy(at, {"quantile": "value"}, wait).assign(statistic=statistic))
    columns = ["workload", "scheme", "estimate", "metric", "statistic", "value"]
    return pd.concat(parts, ignore_index=True)[columns]


def _waits_panel(
    axes: Axes, rows: pd.DataFrame, schemes: list[str], styles: dict[str, style.SchemeStyle], log: bool
) -> None:
    places = panels.scheme_rows(axes, schemes)
    style.set_axis(axes.xaxis, rows["value"], "s", log=log, ticks=panels.room(axes), floor=0.0)
    axes.axhspan(-0.5, 0.5, color=style.PALE, zorder=0.4, linewidth=0)
    panels.wait_markers(axes, rows, places, styles)


def _resampled(study: xr.Dataset) -> list[str]:
    """Scenarios of resampled logs."""
    if "variation" not in study:
        return []
    return [str(name) for name in study["workload"].values[study["variation"].values == "resampling"]]


def _over_logs(study: xr.Dataset) -> xr.Dataset:
    """The study with means over the logs of a resampled scenario in place of those of the log itself."""
    if "variation" not in study:
        return study
    many = study["variation"] == "resampling"
    names = {
        f"{metric.name}_{own}{end}": f"{metric.name}_{other}{end}"
        for metric in SHOWN
        for own, other in (("mean", "varied"), ("difference", "varied_difference"))
        for end in ("", "_low", "_high")
    }
    return study.assign({own: study[own].where(~many, study[other]) for own, other in names.items()})


def _logs_once(study: xr.Dataset) -> xr.Dataset:
    """The study without scenarios that have the log of an earlier one and differ in how it is varied."""
    if "variation" not in study:
        return study
    names = [f"{metric.name}_mean" for metric in SHOWN]
    logs: list[xr.Dataset] = []
    kept: list[int] = []
    for place, variation in enumerate(study["variation"].values):
        log = study[names].isel(workload=place).reset_coords(drop=True)
        if not variation or not any(log.equals(other) for other in logs):
            kept.append(place)
        logs.append(log)
    return study.isel(workload=kept)


POLICY_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "policies_means": policies_means,
    "policies_differences": policies_differences,
    "policies_distribution": policies_distribution,
    "policies_classes": policies_classes,
    "recorded_waits": recorded_waits,
}
"""Figures of a study of local policies by name."""

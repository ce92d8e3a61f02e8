"""Figures of single runs, without a study: load over time, and several runs of the same jobs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.figures import panels, style
from gridsched.figures.panels import ShownMetric
from gridsched.metrics.jobs import (
    NOT_STARTED,
    batch_means,
    busy_processors,
    job_metrics,
    observed,
    queue_length,
    relaxations,
    steps,
    time_average,
)
from gridsched.metrics.nodes import RESOURCES, ResourceUse, fragmentation, resource_use

Floats = NDArray[np.float64]

MAX_CLUSTERS = 12
"""Most clusters whose load one figure shows."""

MAX_RUNS = 20
"""Most runs that one figure compares."""

_MEANS = (
    ShownMetric("wait_time", "mean wait", "s", 0.0),
    ShownMetric("response_time", "mean response", "s", 0.0),
    ShownMetric("bounded_slowdown", "mean bounded slowdown", "1", 1.0),
)
_MAX_POINTS = 2000
"""Steps of a distribution that can be told apart."""


# --- load -----------------------------------------------------------------------------------------


@style.styled
def load(run: xr.Dataset, clusters: Sequence[str] = (), bins: int = 200) -> style.Drawing:
    """Utilisation and waiting jobs over time, of the whole platform or a row for each of some clusters.

    Parameters
    ----------
    run : xarray.Dataset
        A run with at least one job that ran.
    clusters : sequence of str
        Clusters to show; none for all together. The jobs that wait for a cluster are those that start on it
        in the end.
    bins : int
        Equal parts of the time for which averages are shown.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns cluster ("" for all), bin_time (left edge, s), utilisation, waiting_jobs.
    """
    started = run["start_time"].to_numpy() != NOT_STARTED
    if not started.any():
        raise ConfigurationError("no job of this run was started: there is no load to show")
    first = float(run["submit_time"].to_numpy()[started].min())
    last = float(run["end_time"].to_numpy()[started].max())
    edges = np.linspace(first, max(last, first + 1), bins + 1)
    parts = [_series(run, name, edges) for name in clusters or ("",)]
    numbers = pd.concat(parts, ignore_index=True)
    rows = len(parts)
    figure = style.new_figure(3.4 if rows == 1 else 0.9 + 0.95 * rows, dense=rows > 1)
    _title(figure, str(run.attrs.get("title", "")))
    shape = (2, 1) if rows == 1 else (rows, 2)
    grid = figure.subplots(*shape, sharex=True, sharey=False if rows == 1 else "col", squeeze=False)
    looks = style.scheme_styles(clusters or [""])
    most_waiting = max(1.0, float(numbers["waiting_jobs"].max()))
    for part, row in zip(parts, [grid[:, 0]] if rows == 1 else grid, strict=True):
        name = str(part["cluster"].iloc[0])
        color = looks[name].color
        _share_panel(row[0], part, edges, color)
        _steps(row[1], part["waiting_jobs"].to_numpy(), edges, color)
        _count_axis(row[1], most_waiting)
        if name:
            row[0].set_title(style.plain(name))
    for axes in grid[-1]:
        style.set_axis(axes.xaxis, edges, "s", ticks=9 if rows == 1 else 5)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("time")
    if rows == 1:
        grid[0, 0].set_ylabel("utilisation")
        grid[1, 0].set_ylabel("waiting jobs")
        figure.align_ylabels()
    else:
        grid[0, 0].set_title("utilisation", loc="right", fontweight="normal")
        grid[0, 1].set_title("waiting jobs, by where they start", loc="right", fontweight="normal")
    return figure, numbers


def _series(run: xr.Dataset, cluster: str, edges: Floats) -> pd.DataFrame:
    """Averages of a cluster, or of all, between the edges."""
    part, size = run, float(run["cluster_processors"].sum())
    if cluster:
        index = [str(name) for name in run["cluster"].to_numpy()].index(cluster)
        size = float(run["cluster_processors"].to_numpy()[index])
        inside = np.flatnonzero(run["segment_cluster"].to_numpy() == index)
        part = run.isel(segment=inside, job=_started_on(run, index))
    known = "segment_job" in run
    busy = time_average(busy_processors(part), edges) / size if known else np.full(len(edges) - 1, np.nan)
    return pd.DataFrame(
        {
            "cluster": cluster,
            "bin_time": edges[:-1],
            "utilisation": busy,
            "waiting_jobs": time_average(queue_length(part), edges),
        }
    )


def _started_on(run: xr.Dataset, cluster: int) -> NDArray[np.int64]:
    """Jobs whose first execution is on a cluster; a job that spans several counts on each."""
    job, start = run["segment_job"].to_numpy(), run["segment_start"].to_numpy()
    here = (run["segment_cluster"].to_numpy() == cluster) & (start == run["start_time"].to_numpy()[job])
    return np.unique(job[here])


def _share_panel(axes: Axes, part: pd.DataFrame, edges: Floats, color: str) -> None:
    values = part["utilisation"].to_numpy()
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_ylim(0, max(1.0, float(np.nanmax(values, initial=0.0))) * 1.04)
    if np.isnan(values).all():
        text = "not known: the run does not say on which processors jobs run"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=style.FAINT)
        return
    _steps(axes, values, edges, color)


def _steps(axes: Axes, values: Floats, edges: Floats, color: str) -> None:
    closed = np.append(values, values[-1])
    axes.fill_between(edges, closed, step="post", color=color, alpha=0.35, linewidth=0)
    axes.step(edges, closed, where="post", color=color, linewidth=0.8)


def _count_axis(axes: Axes, most: float) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    axes.set_ylim(0, most * 1.06)


# --- use of resources -----------------------------------------------------------------------------


@style.styled
def utilisation(run: xr.Dataset, bins: int = 200) -> style.Drawing:
    """Use of each resource over time, relative to all nodes, beside what is not out, and fragmentation.

    Parameters
    ----------
    run : xarray.Dataset
        A run that names clusters, with at least one job that ran.
    bins : int
        Equal parts of the time for which averages are shown.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns bin_time (left edge, s), resource, used, there (relative to what all nodes have), share (of
        what is there that is used). Rows of the resource "fragmentation" have what is of no use to typical
        jobs as used, what is free as there.
    """
    first, last = observed(run)
    if np.isnan(first):
        raise ConfigurationError("no job of this run was started: there is no use to show")
    edges = np.linspace(first, max(last, first + 1), bins + 1)
    parts, titles = _resources(run, edges)
    figure = style.new_figure(0.8 + 1.15 * len(parts))
    _title(figure, str(run.attrs.get("title", "")))
    grid = figure.subplots(len(parts), 1, sharex=True, squeeze=False)[:, 0]
    looks = style.scheme_styles(list(titles))
    for axes, (name, part) in zip(grid, parts.items(), strict=True):
        color = looks[name].color
        drawn = part["share"] if name == "fragmentation" else part["used"]
        _percent_axis(axes)
        _steps(axes, drawn.to_numpy(), edges, color)
        if name != "fragmentation" and (part["there"] < 1 - 1e-9).any():
            there = np.append(part["there"].to_numpy(), part["there"].iloc[-1])
            axes.step(edges, there, where="post", color=style.INK, linewidth=0.8, linestyle=(0, (3, 1.5)))
            axes.fill_between(
                edges,
                there,
                1.0,
                step="post",
                facecolor="none",
                edgecolor=style.FAINT,
                hatch="////",
                linewidth=0,
            )
        axes.set_title(titles[name])
    style.set_axis(grid[-1].xaxis, edges, "s", ticks=9)
    grid[-1].set_xlim(edges[0], edges[-1])
    grid[-1].set_xlabel("time")
    return figure, pd.concat(parts.values(), ignore_index=True)


def _resources(run: xr.Dataset, edges: Floats) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Averages between edges and the title of the panel of each resource, and of fragmentation."""
    whole = np.array([edges[0], edges[-1]])
    if "piece_segment" not in run:
        size = int(run["cluster_processors"].sum())
        always = ResourceUse(busy_processors(run), steps([min(0, int(edges[0]))], [size]))
        uses = {"cores": always}
        most = {"cores": float(size)}
    else:
        uses = resource_use(run)
        most = {name: float(use.whole.value[0]) for name, use in uses.items()}
    titles = {
        name: f"{RESOURCES[name]} in use: {100 * use.share(whole)[0]:.1f} %"
        + (" of what is not out (hatched: out)" if (use.whole.value < most[name]).any() else "")
        for name, use in uses.items()
    }
    if "piece_segment" in run:
        resource, uses["fragmentation"] = fragmentation(run)
        most["fragmentation"] = most[resource]
        share = uses["fragmentation"].share(whole)[0]
        mean = "none was free" if np.isnan(share) else f"{100 * share:.1f} %"
        titles["fragmentation"] = f"free {RESOURCES[resource]} of no use to typical jobs: {mean}"
    parts = {
        name: pd.DataFrame(
            {
                "bin_time": edges[:-1],
                "resource": name,
                "used": time_average(use.part, edges) / most[name],
                "there": time_average(use.whole, edges) / most[name],
                "share": use.share(edges),
            }
        )
        for name, use in uses.items()
    }
    return parts, titles


def _percent_axis(axes: Axes) -> None:
    """Let the y axis be shares of a whole."""
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_ylim(0, 1.04)


# --- several runs ---------------------------------------------------------------------------------


@style.styled
def compare(runs: Mapping[str, xr.Dataset]) -> style.Drawing:
    """Means of several runs of the same jobs with their intervals, and the distribution of the waits.

    Parameters
    ----------
    runs : mapping of str to xarray.Dataset
        Runs by label. Jobs that not all of them ran are left out of all.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns run, measure, mean, low, high, jobs: means with 95% intervals from blocks of jobs, NaN where
        there is no valid interval.
    """
    labels = list(runs)
    values = {label: job_metrics(run) for label, run in runs.items()}
    common = ~np.any([np.isnan(metrics["wait_time"]) for metrics in values.values()], axis=0)
    if not common.any():
        raise ConfigurationError("no job was started in all of these runs: there is nothing to compare")
    numbers = _means(values, common, {label: relaxations(run) for label, run in runs.items()})
    height = 0.5 + 0.21 * max(len(labels), 2)
    figure = style.new_figure(height + 3.2)
    workloads = dict.fromkeys(str(run.attrs.get("workload", "")) for run in runs.values())
    _title(figure, f"{', '.join(workloads)}: {_counted(common)}")
    grid = figure.add_gridspec(2, 1, height_ratios=[height, 2.7])
    upper = grid[0].subgridspec(1, len(_MEANS))
    styles = style.scheme_styles(labels)
    for column, metric in enumerate(_MEANS):
        axes = figure.add_subplot(upper[column])
        _means_panel(axes, numbers[numbers["measure"] == metric.name], metric, labels, styles)
    waits = {label: np.sort(metrics["wait_time"][common]) for label, metrics in values.items()}
    axes = figure.add_subplot(grid[1])
    _waits_panel(axes, waits, styles)
    style.entries_below(figure, list(zip(axes.get_lines(), labels, strict=True)), columns=4)
    return figure, numbers


def _title(figure: Figure, text: str) -> None:
    figure.suptitle(style.plain(text, 100), x=0.01, ha="left", fontsize=8.5, fontweight="bold")


def _counted(common: NDArray[np.bool_]) -> str:
    """How many jobs are compared, and how many not."""
    left_out = int(np.count_nonzero(~common))
    text = f"{np.count_nonzero(common):,} jobs"
    return f"{text}, without {left_out:,} that not all runs started" if left_out else text


def _means(
    values: Mapping[str, Mapping[str, Floats]], common: NDArray[np.bool_], memory: Mapping[str, float]
) -> pd.DataFrame:
    rows = []
    for label, metrics in values.items():
        for metric in _MEANS:
            found = inference.mean(
                *batch_means(metrics[metric.name][common]), serial=True, relaxations=memory[label]
            )
            bounds = (float(found.value), float(found.low), float(found.high))
            rows.append((label, metric.name, *bounds, int(np.count_nonzero(common))))
    return pd.DataFrame(rows, columns=["run", "measure", "mean", "low", "high", "jobs"])


def _means_panel(
    axes: Axes,
    rows: pd.DataFrame,
    metric: ShownMetric,
    labels: list[str],
    styles: Mapping[str, style.SchemeStyle],
) -> None:
    places = panels.scheme_rows(axes, labels)
    # Labels of runs are longer than those of schemes.
    axes.set_yticks(range(len(labels)), [style.plain(label, 32) for label in labels])
    shown = rows[["mean", "low", "high"]].to_numpy(np.float64)
    log = style.needs_log(shown[:, 0], 30)
    shown = np.maximum(shown, metric.smallest)
    style.set_axis(axes.xaxis, shown, metric.unit, log=log, ticks=4, floor=None if log else metric.smallest)
    for row in panels.each_row(rows):
        place, look = places[row.run], styles[row.run]
        axes.hlines(place, max(row.low, metric.smallest), row.high, color=look.color, linewidth=1.4)
        axes.plot([row.mean], [place], marker=look.marker, color=look.color, clip_on=False)
    axes.set_xlabel(metric.label)


def _waits_panel(axes: Axes, waits: Mapping[str, Floats], styles: Mapping[str, style.SchemeStyle]) -> None:
    """Share of the jobs that waited no longer than so long."""
    together = np.concatenate([*waits.values()])
    log = style.needs_log(together, 100)
    low, high = style.set_axis(axes.xaxis, together, "s", log=log, ticks=9, floor=None if log else 0.0)
    for label, ordered in waits.items():
        look = style.line_options(styles[label]) | {"marker": ""}
        times, shares = _distribution(ordered)
        axes.step([low, *times, high], [0.0, *shares, 1.0], where="post", **look)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel("wait time")
    axes.set_ylabel("jobs that waited no longer")


def _distribution(ordered: Floats) -> tuple[Floats, Floats]:
    """Times and shares of the jobs that waited no longer, at most so many as can be told apart."""
    last = np.append(ordered[1:] != ordered[:-1], True)
    times, shares = ordered[last], (np.flatnonzero(last) + 1) / len(ordered)
    if len(times) > _MAX_POINTS:
        kept = np.unique(np.linspace(0, len(times) - 1, _MAX_POINTS).astype(np.int64))
        times, shares = times[kept], shares[kept]
    return times, shares

"""Figures of single runs, without a study: load over time, and several runs of the same jobs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.figures import style
from gridsched.metrics.jobs import (
    batch_means,
    busy_processors,
    job_metrics,
    observed,
    queue_length,
    relaxations,
    time_average,
)
from gridsched.metrics.nodes import RESOURCES, ResourceUse, fragmentation, resource_use
from gridsched.workloads.usage import steps

Floats = NDArray[np.float64]

MAX_CLUSTERS = 12
"""Most clusters whose load one figure shows."""

MAX_RUNS = 20
"""Most runs that one figure compares."""

_MEANS: dict[str, tuple[str, style.Unit, float]] = {
    "wait_time": ("mean wait", "s", 0.0),
    "response_time": ("mean response", "s", 0.0),
    "bounded_slowdown": ("mean bounded slowdown", "1", 1.0),
}
"""Label, unit and smallest possible value of each measure whose means are compared."""

_MAX_POINTS = 2000
"""Steps of a distribution that can be told apart."""

_FRAGMENTATION = "fragmentation"


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
    edges = _edges(run, bins)
    names = clusters or [""]
    parts = [_series(run, name, edges) for name in names]
    numbers = pd.concat(parts, ignore_index=True)
    one, rows = len(names) == 1, len(names)
    figure = style.new_figure(3.4 if one else 0.9 + 0.95 * rows, dense=not one)
    style.headline(figure, style.plain(run.attrs.get("title", ""), 100))
    shape = (2, 1) if one else (rows, 2)
    grid = figure.subplots(*shape, sharex=True, sharey=False if one else "col", squeeze=False)
    looks = style.scheme_styles(names)
    for name, part, (use, queue) in zip(names, parts, grid.reshape(rows, 2), strict=True):
        _shares(use, part["utilisation"], edges, looks[name].color)
        if part["utilisation"].isna().all():
            text = "not known: the run does not say on which processors jobs run"
            use.text(0.5, 0.5, text, transform=use.transAxes, ha="center", va="center", color=style.FAINT)
        _steps(queue, part["waiting_jobs"], edges, looks[name].color)
        queue.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        queue.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
        queue.set_ylim(0, max(1.0, numbers["waiting_jobs"].max()) * 1.06)
        use.set_title(style.plain(name))
    for axes in grid[-1]:
        _time_axis(axes, edges, 9 if one else 5)
    if one:
        grid[0, 0].set_ylabel("utilisation")
        grid[1, 0].set_ylabel("waiting jobs")
        figure.align_ylabels()
    else:
        grid[0, 0].set_title("utilisation", loc="right", fontweight="normal")
        grid[0, 1].set_title("waiting jobs, by where they start", loc="right", fontweight="normal")
    return figure, numbers


def _edges(run: xr.Dataset, bins: int) -> Floats:
    """Edges of equal parts of the time from the first submission to the last end."""
    first, last = observed(run)
    if np.isnan(first):
        raise ConfigurationError("no job of this run was started: there is nothing to show over time")
    return np.linspace(first, max(last, first + 1), bins + 1)


def _series(run: xr.Dataset, cluster: str, edges: Floats) -> pd.DataFrame:
    """Averages of a cluster, or of all, between the edges."""
    part = run
    if cluster:
        index = run["cluster"].to_numpy().astype(str).tolist().index(cluster)
        inside = run["segment_cluster"].to_numpy() == index
        job, start = run["segment_job"].to_numpy(), run["segment_start"].to_numpy()
        # A job waits where its first execution is; one that spans several clusters, on each
        begun = np.unique(job[inside & (start == run["start_time"].to_numpy()[job])])
        part = run.isel(cluster=[index], segment=np.flatnonzero(inside), job=begun)
    busy: Floats | float = np.nan
    if "segment_job" in run:
        busy = time_average(busy_processors(part), edges) / float(part["cluster_processors"].sum())
    return pd.DataFrame(
        {
            "cluster": cluster,
            "bin_time": edges[:-1],
            "utilisation": busy,
            "waiting_jobs": time_average(queue_length(part), edges),
        }
    )


def _shares(axes: Axes, values: pd.Series, edges: Floats, color: str) -> None:
    """Steps of shares of a whole."""
    _steps(axes, values, edges, color)
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    style.set_percent(axes.yaxis)
    axes.set_ylim(0, np.nanmax([*values, 1.0]) * 1.04)


def _steps(axes: Axes, values: pd.Series, edges: Floats, color: str) -> None:
    closed = np.append(values, values.iloc[-1])
    axes.fill_between(edges, closed, step="post", color=color, alpha=0.35, linewidth=0)
    axes.step(edges, closed, where="post", color=color, linewidth=0.8)


def _time_axis(axes: Axes, edges: Floats, ticks: int) -> None:
    style.set_axis(axes.xaxis, edges, "s", ticks=ticks)
    axes.set(xlim=(edges[0], edges[-1]), xlabel="time")


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
    edges = _edges(run, bins)
    uses = _uses(run, edges)
    figure = style.new_figure(0.8 + 1.15 * len(uses))
    style.headline(figure, style.plain(run.attrs.get("title", ""), 100))
    grid = figure.subplots(len(uses), 1, sharex=True, squeeze=False)[:, 0]
    looks = style.scheme_styles(uses)
    parts = []
    for axes, (name, (use, most, title)) in zip(grid, uses.items(), strict=True):
        used, there = (time_average(each, edges) / most for each in use)
        columns = {"used": used, "there": there, "share": use.share(edges)}
        part = pd.DataFrame({"bin_time": edges[:-1], "resource": name, **columns})
        parts.append(part)
        axes.set_title(title)
        _shares(axes, part["share" if name == _FRAGMENTATION else "used"], edges, looks[name].color)
        if name != _FRAGMENTATION and (there < 1 - 1e-9).any():
            closed = np.append(there, there[-1])
            axes.step(edges, closed, where="post", color=style.INK, linewidth=0.8, linestyle=(0, (3, 1.5)))
            out = {"facecolor": "none", "edgecolor": style.FAINT, "hatch": "////", "linewidth": 0}
            axes.fill_between(edges, closed, 1.0, step="post", **out)
    _time_axis(grid[-1], edges, 9)
    return figure, pd.concat(parts, ignore_index=True)


def _uses(run: xr.Dataset, edges: Floats) -> dict[str, tuple[ResourceUse, float, str]]:
    """Use of each resource, what there is of it where nothing is out, and a title with the mean."""
    whole, on_nodes = edges[[0, -1]], "piece_segment" in run
    if on_nodes:
        resources = resource_use(run)
    else:
        size = int(run["cluster_processors"].sum())
        always = steps([min(0, int(edges[0]))], [size])
        resources = {"cores": ResourceUse(busy_processors(run), always)}
    uses = {}
    for name, use in resources.items():
        most = float(use.whole.value[0])
        out = " of what is not out (hatched: out)" if (use.whole.value < most).any() else ""
        uses[name] = (use, most, f"{RESOURCES[name]} in use: {100 * use.share(whole)[0]:.1f} %{out}")
    if on_nodes:
        name, use = fragmentation(run)
        share = use.share(whole)[0]
        mean = "none was free" if np.isnan(share) else f"{100 * share:.1f} %"
        title = f"free {RESOURCES[name]} of no use to typical jobs: {mean}"
        uses[_FRAGMENTATION] = (use, uses[name][1], title)
    return uses


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
    jobs = int(common.sum())
    if not jobs:
        raise ConfigurationError("no job was started in all of these runs: there is nothing to compare")
    rows = []
    for label, run in runs.items():
        memory = relaxations(run)
        for name in _MEANS:
            batches = batch_means(values[label][name][common])
            found = inference.mean(*batches, serial=True, relaxations=memory)
            rows.append((label, name, float(found.value), float(found.low), float(found.high), jobs))
    numbers = pd.DataFrame(rows, columns=["run", "measure", "mean", "low", "high", "jobs"])
    height = 0.5 + 0.21 * max(len(labels), 2)
    figure = style.new_figure(height + 3.2)
    workloads = dict.fromkeys(str(run.attrs.get("workload", "")) for run in runs.values())
    without = f", without {len(common) - jobs:,} that not all runs started" if jobs < len(common) else ""
    style.headline(figure, style.plain(f"{', '.join(workloads)}: {jobs:,} jobs{without}", 100))
    grid = figure.add_gridspec(2, 1, height_ratios=[height, 2.7])
    styles = style.scheme_styles(labels)
    upper = grid[0].subgridspec(1, len(_MEANS)).subplots(sharey=True, squeeze=False)[0]
    for axes, name in zip(upper, _MEANS, strict=True):
        _means_panel(axes, numbers[numbers["measure"] == name], name, styles)
    axes = figure.add_subplot(grid[1])
    _waits_panel(axes, {label: metrics["wait_time"][common] for label, metrics in values.items()}, styles)
    style.entries_below(figure, list(zip(axes.get_lines(), labels, strict=True)), columns=4)
    return figure, numbers


def _means_panel(
    axes: Axes, rows: pd.DataFrame, measure: str, styles: Mapping[str, style.SchemeStyle]
) -> None:
    label, unit, smallest = _MEANS[measure]
    # Labels of runs are longer than those of schemes.
    style.label_rows(axes, rows["run"].tolist(), 32)
    log = style.needs_log(rows["mean"], 30)
    shown = rows[["mean", "low", "high"]].clip(lower=smallest)
    style.set_axis(axes.xaxis, shown, unit, log=log, ticks=4, floor=None if log else smallest)
    looks = [styles[run] for run in rows["run"]]
    colors = [look.color for look in looks]
    axes.hlines(range(len(rows)), shown["low"], rows["high"], colors=colors, linewidth=1.4)
    for place, (mean, look) in enumerate(zip(rows["mean"], looks, strict=True)):
        axes.plot([mean], [place], marker=look.marker, color=look.color, clip_on=False)
    axes.set_xlabel(label)


def _waits_panel(axes: Axes, waits: Mapping[str, Floats], styles: Mapping[str, style.SchemeStyle]) -> None:
    """Share of the jobs that waited no longer than so long."""
    together = np.concatenate([*waits.values()])
    log = style.needs_log(together, 100)
    low, high = style.set_axis(axes.xaxis, together, "s", log=log, ticks=9, floor=None if log else 0.0)
    for label, own in waits.items():
        times, shares = _distribution(own)
        look = style.line_options(styles[label]) | {"marker": ""}
        axes.step([low, *times, high], [0.0, *shares, 1.0], where="post", **look)
    style.set_percent(axes.yaxis)
    axes.set(ylim=(0, 1.02), xlabel="wait time", ylabel="jobs that waited no longer")


def _distribution(waits: Floats) -> tuple[Floats, Floats]:
    """Times and shares of the jobs that waited no longer, at most so many as can be told apart."""
    times, counts = np.unique(waits, return_counts=True)
    kept = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MAX_POINTS)).astype(np.int64))
    return times[kept], np.cumsum(counts)[kept] / len(waits)

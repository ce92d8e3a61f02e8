"""Figures of studies of self-scheduling: improvement over the original scenario, predictions, centres, loads.

They show what F. Guim, M. Garcia, I. Rodero and J. Corbalan, "The XtreemOS JScheduler: using self-scheduling
techniques in large computing architectures" (LASCO 2008), has in its Figures 4 and 5 and its Table 2, and
what stands behind: what estimates of run times are worth, how starts and run times are predicted, and which
centres are overloaded. In the original scenario every log runs on its own centre, with requested times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from gridsched.figures import curves, grid_panels, panels, style
from gridsched.replication import times_interval
from gridsched.systems.jscheduler.findings import FINDINGS as FINDINGS

METRIC_NAMES: dict[str, str] = {
    "wait": "LWT-pred",
    "slowdown": "LSLD-pred",
    "response": "Less-ResponseTime",
    "queued-jobs": "Less-Queued-Jobs",
    "work-left": "Less-WorkLeft",
}
"""What jobs want smallest, as the papers call it."""

FACTOR_NAMES: dict[str, str] = {
    "multiply": "run time \N{MULTIPLICATION SIGN} CPU factor",
    "divide": "run time \N{DIVISION SIGN} CPU factor",
    "none": "without CPU factor",
}
"""Readings of the CPU factor of a centre."""

BASELINES = ("queued-jobs", "work-left")
"""Metrics without predicted waits, drawn as dashed lines."""

SHOWN_K = 10
"""Number of clusters that is looked at most closely, with the largest one."""

PREDICTED, REQUESTED, RETRAINED = "predicted", "requested", "retrained"
PLAN, EXACT = "plan", "exact"

_MEASURES = {"wait_time": "mean wait", "bounded_slowdown": "mean bounded slowdown"}
_RUN = ["factor", "mode", "estimates", "metric", "k"]
_VALUE = ["mean", "low", "high"]
_LOOKS = style.scheme_styles(METRIC_NAMES)
_WIDE = 4
_ALL_LABELLED = 8
_K_LABELS = [factor * 10**power for power in range(5) for factor in (1, 2, 5)]
_STEPS = [1, 2, 5, 10]
_PANEL_HEIGHT = 2.25
_EXACT_OPTIONS: dict[str, Any] = {"linestyle": "", "markersize": 5, "markerfacecolor": "white"}
_EXACT_TEXT = "exact predicted starts"


# --- improvement over the original scenario -------------------------------------------------------


@style.styled
def improvement_bounded_slowdown(study: xr.Dataset, *, estimates: str | None = None) -> style.Drawing:
    """Improvement of the mean bounded slowdown against the number of clusters asked, the paper's Figure 4.

    The improvement is the mean of the original scenario over that of a run, over the same jobs. One panel a
    reading of the CPU factor, one line a metric. Lines are runs with starts predicted from a plan; hollow
    markers are runs with starts predicted exactly.

    Parameters
    ----------
    study : xarray.Dataset
        A study of self-scheduling.
    estimates : str, optional
        Runtime estimates of the schedulers; "predicted" if not given, or the first of the study where it
        has no such runs.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns factor, mode, estimates, metric, k, measure, mean, low, high.

    Raises
    ------
    ConfigurationError
        If the study has no such estimates.
    """
    return _improvement(study, "bounded_slowdown", estimates)


@style.styled
def improvement_wait_time(study: xr.Dataset, *, estimates: str | None = None) -> style.Drawing:
    """Improvement of the mean wait against the number of clusters asked, the paper's Figure 5.

    Parameters, results and errors as of `improvement_bounded_slowdown`.
    """
    return _improvement(study, "wait_time", estimates)


def _improvement(study: xr.Dataset, measure: str, estimates: str | None) -> style.Drawing:
    numbers = _improvements(_of_estimates(study, estimates), [measure])
    if numbers.empty:
        return grid_panels.nothing("no such runs"), numbers
    factors = _known(study, "factor", numbers)
    figure = style.new_figure(3.3)
    grid = figure.subplots(1, len(factors), squeeze=False)[0]
    for axes, factor in zip(grid, factors, strict=True):
        axes.set_title(factor_name(factor))
        _ratio_panel(axes, numbers[numbers["factor"] == factor], "metric", _LOOKS)
        axes.set_xlabel("clusters asked (K)")
    grid[0].set_ylabel(_improvement_text(measure))
    _legend(figure, numbers, "metric", _LOOKS, METRIC_NAMES)
    return figure, numbers


def _improvement_text(measure: str) -> str:
    return f"improvement of the\n{_MEASURES[measure]}"


def _improvements(study: xr.Dataset, measures: Iterable[str]) -> pd.DataFrame:
    """One row a run and measure: improvement over the original scenario, with its interval."""
    parts = [_rows(study, f"{measure}_improvement").assign(measure=measure) for measure in measures]
    return pd.concat(parts, ignore_index=True)[[*_RUN, "measure", *_VALUE]]


def _rows(study: xr.Dataset, name: str) -> pd.DataFrame:
    """One row a run for which a variable is known, with the bounds of its interval."""
    named = {name: "mean", f"{name}_low": "low", f"{name}_high": "high"}
    frame = study[list(named)].rename(named).reset_coords(drop=True).to_dataframe()
    return frame.reset_index().dropna(subset=["mean"])[[*_RUN, *_VALUE]]


def _of_estimates(study: xr.Dataset, estimates: str | None) -> xr.Dataset:
    """Runs with one kind of estimates; all dimensions stay."""
    chosen = estimates or preferred(study, "estimates", PREDICTED)
    return study.sel(estimates=[panels.choose(study, "estimates", chosen)])


def preferred(study: xr.Dataset, dimension: str, label: str) -> str:
    """The label if the study has it, else its first one."""
    known = panels.labels(study, dimension)
    return label if label in known else known[0]


def _known(study: xr.Dataset, dimension: str, numbers: pd.DataFrame) -> list[str]:
    """Labels that occur in the numbers, in the order of the study."""
    return grid_panels.known(study, dimension, numbers)


def factor_name(case: str) -> str:
    """What a reading of the CPU factor is called, with the scenario where nodes fail."""
    reading, _, scenario = case.partition(", ")
    name = FACTOR_NAMES.get(reading, style.plain(reading))
    return f"{name}, {style.plain(scenario)}" if scenario else name


# --- panels of ratios against the number of clusters ---------------------------------------------


def _ratio_panel(
    axes: Axes,
    numbers: pd.DataFrame,
    hue: str,
    looks: Mapping[str, style.SchemeStyle],
    *,
    log: bool = True,
) -> None:
    """Ratios against the number of clusters, one line a label of a column, with a line at 1."""
    if numbers.empty:
        style.no_data(axes, "no data")
        return
    style.set_axis(axes.yaxis, [*curves.seen(numbers), 1.0], "1", log=log, ticks=6)
    if not log:
        # Ratios may differ in their fourth digit only
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=_STEPS))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.6g}"))
    _k_axis(axes, numbers["k"])
    axes.axhline(1, color=style.INK, linewidth=0.8, zorder=0.6)
    for label, rows in numbers.groupby(hue, sort=False):
        _curve(axes, rows, looks[str(label)], dashed=label in BASELINES)


def _k_axis(axes: Axes, numbers: Iterable[int]) -> None:
    asked = sorted({int(number) for number in numbers})
    style.set_axis(axes.xaxis, asked, "1", log=True)
    # A number of clusters is whole
    axes.xaxis.set_major_locator(FixedLocator(asked if asked[-1] <= _ALL_LABELLED else _K_LABELS))


def _curve(axes: Axes, rows: pd.DataFrame, look: style.SchemeStyle, *, dashed: bool) -> None:
    """A line with its band for planned starts, hollow markers with their intervals for exact ones."""
    planned, exact = (rows[rows["mode"] == mode].sort_values("k") for mode in (PLAN, EXACT))
    if len(planned):
        curves.curve(axes, planned, "k", _line(look, len(planned), dashed=dashed))
    if len(exact):
        known = exact.dropna(subset=["low", "high"])
        axes.vlines(known["k"], known["low"], known["high"], color=look.color, linewidth=0.8)
        axes.plot(exact["k"], exact["mean"], color=look.color, marker=look.marker, **_EXACT_OPTIONS)


_FEW = 12
"""Up to so many values have a marker each."""


def _line(look: style.SchemeStyle, count: int, *, dashed: bool) -> dict[str, Any]:
    """Keyword arguments of a line with so many values: solid, or dashed."""
    options = style.line_options(replace(look, dashes=(4, 2) if dashed else ()))
    return options if count <= _FEW else {**options, "marker": ""}


def _legend(
    figure: Figure,
    numbers: pd.DataFrame,
    hue: str,
    looks: Mapping[str, style.SchemeStyle],
    names: Mapping[str, str] | None = None,
) -> None:
    """Legend below all panels: lines, markers of exact predictions, intervals, as far as they occur."""
    entries: list[tuple[Any, str]] = []
    for label, look in looks.items():
        rows = numbers[numbers[hue] == label]
        if len(rows):
            count = rows.loc[rows["mode"] == PLAN, "k"].nunique()
            line = Line2D([], [], **_line(look, count, dashed=label in BASELINES))
            entries.append((line, (names or {}).get(label, label)))
    if (numbers["mode"] == EXACT).any():
        marker = Line2D([], [], color=style.FAINT, marker="o", **_EXACT_OPTIONS)
        entries.append((marker, _EXACT_TEXT))
    style.entries_below(figure, [*entries, *curves.band_entry(numbers)], columns=6)


# --- what estimates and predictions change --------------------------------------------------------


@style.styled
def prediction_worth(study: xr.Dataset) -> style.Drawing:
    """Improvement against the number of clusters by the runtime estimates of the schedulers.

    One column of panels a metric that was run with several kinds of estimates, a row a measure, and again for
    each reading of the CPU factor. The original scenario keeps requested times.

    Parameters
    ----------
    study : xarray.Dataset
        A study of self-scheduling.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns as of `improvement_bounded_slowdown`.
    """
    numbers = _improvements(study, _MEASURES)
    several = numbers.groupby(["factor", "mode", "metric"])["estimates"].transform("nunique") > 1
    # One mode says it all; the plan has more values of K.
    chosen = numbers[several & (numbers["mode"] == preferred(study, "mode", PLAN))].reset_index(drop=True)
    if chosen.empty:
        return grid_panels.nothing("no runs that differ in their estimates only"), chosen
    looks = grid_panels.shade_looks(_known(study, "estimates", chosen))
    factors, metrics = _known(study, "factor", chosen), _known(study, "metric", chosen)
    figure, grid = _grid([(factor, measure) for factor in factors for measure in _MEASURES], metrics)
    for (factor, measure, metric), axes in grid.items():
        rows = chosen[(chosen["factor"] == factor) & (chosen["measure"] == measure)]
        _ratio_panel(axes, rows[rows["metric"] == metric], "estimates", looks)
        name = METRIC_NAMES[metric].removesuffix("-pred")
        axes.set_title(name if len(factors) == 1 else f"{name}, {factor_name(factor)}")
        if panels.is_left(axes):
            axes.set_ylabel(_improvement_text(measure))
    _legend(figure, chosen, "estimates", looks)
    return figure, chosen


@style.styled
def plan_and_exact(study: xr.Dataset, *, estimates: str | None = None) -> style.Drawing:
    """What it changes to predict starts exactly and not from a plan: ratios of the means, exact over plan.

    Only numbers of clusters with runs of both are shown. One row of panels a reading of the CPU factor.

    Parameters, results and errors as of `improvement_bounded_slowdown`; the mean is that of the ratio.
    """
    return _comparison(_of_estimates(study, estimates), "mode", (EXACT, PLAN), "exact / plan")


@style.styled
def retraining_effect(study: xr.Dataset) -> style.Drawing:
    """What it changes to learn run times in the run itself and not from the original scenario.

    Ratios of the means, trees retrained in the run over trees that learned from the original scenario, at the
    numbers of clusters with runs of both. The last panel says which share of the latter's predictions rests
    on a job that had not finished in the run, and which share of the jobs behind a prediction had not.

    Parameters
    ----------
    study : xarray.Dataset
        A study of self-scheduling.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns as of `improvement_bounded_slowdown`; further measures are "predictions_on_unfinished" and
        "predictions_unfinished_share", both shares.
    """
    return _comparison(study, "estimates", (RETRAINED, PREDICTED), "retrained / before", shares=True)


def _comparison(
    study: xr.Dataset, dimension: str, pair: tuple[str, str], text: str, *, shares: bool = False
) -> style.Drawing:
    """Panels of ratios of two labels of a dimension, and of the share of early predictions if wanted."""
    numbers = _pair_ratios(study, dimension, pair)
    if numbers.empty:
        return grid_panels.nothing(f"no runs of both kinds, {pair[0]} and {pair[1]}"), numbers
    if shares:
        numbers = pd.concat([numbers, _early_predictions(study, numbers)], ignore_index=True)
    # A comparison of both modes has no mode of its own
    drawn = numbers.assign(mode=PLAN) if dimension == "mode" else numbers
    contents = {**_PANELS, **(_SHARE_PANEL if shares else {})}
    factors = _known(study, "factor", numbers)
    figure, grid = _grid([(factor,) for factor in factors], list(contents))
    for (factor, title), axes in grid.items():
        rows = drawn[(drawn["factor"] == factor) & drawn["measure"].isin(contents[title])]
        (_share_panel if title in _SHARE_PANEL else _pair_panel)(axes, rows)
        axes.set_title(title)
        if panels.is_left(axes):
            axes.set_ylabel(text if len(factors) == 1 else f"{factor_name(factor)}\n{text}")
    _legend(figure, drawn, "metric", _LOOKS, METRIC_NAMES)
    return figure, numbers


_ANY_EARLY, _EARLY = "predictions_on_unfinished", "predictions_unfinished_share"
_PANELS = {"Mean wait": ["wait_time"], "Mean bounded slowdown": ["bounded_slowdown"]}
_SHARE_PANEL = {"Rest on unfinished jobs": [_ANY_EARLY, _EARLY]}
"""Measures of each panel, by its title."""


def _pair_ratios(study: xr.Dataset, dimension: str, pair: tuple[str, str]) -> pd.DataFrame:
    """One row a measure and run of the first label that has a run of the second: ratio, paired by week."""
    empty = pd.DataFrame(columns=[*_RUN, "measure", *_VALUE])
    if not set(pair) <= set(panels.labels(study, dimension)):
        return empty
    parts = [empty.iloc[:0]]
    for measure in _MEASURES:
        values = study[f"{measure}_by_week"].where(study["jobs_by_week"] > 0)
        left, right = (values.sel({dimension: label}, drop=True) for label in pair)
        ratios = weekly_ratios(left, right).assign(**{dimension: pair[0]}, measure=measure)
        parts.append(ratios[[*_RUN, "measure", *_VALUE]])
    return pd.concat([part for part in parts if len(part)] or [empty], ignore_index=True)


def weekly_ratios(left: xr.DataArray, right: xr.DataArray) -> pd.DataFrame:
    """Ratios of the sums over all weeks, paired by week; one row a combination of labels."""
    left, right = xr.broadcast(left, right)
    dimensions = [str(dimension) for dimension in left.dims if dimension != "week"]
    sums, against = (side.transpose(*dimensions, "week").to_numpy() for side in (left, right))
    interval = times_interval(sums, against)
    table = xr.Dataset(
        {name: (dimensions, values) for name, values in zip(_VALUE, interval, strict=True)},
        {dimension: left[dimension] for dimension in dimensions},
    )
    return table.to_dataframe().reset_index().dropna(subset=["mean"])


def _early_predictions(study: xr.Dataset, numbers: pd.DataFrame) -> pd.DataFrame:
    """Rows of the shares of predictions that rest on unfinished jobs, in the runs of the ratios' metrics."""
    keys = ["factor", "mode", "metric"]
    compared = numbers[keys].drop_duplicates()
    parts = []
    for measure in (_ANY_EARLY, _EARLY):
        shares = study[measure].sel(estimates=[PREDICTED]).rename("mean").reset_coords(drop=True)
        rows = shares.to_dataframe().reset_index().dropna(subset=["mean"]).merge(compared, on=keys)
        parts.append(rows.assign(measure=measure, low=np.nan, high=np.nan)[[*_RUN, "measure", *_VALUE]])
    return pd.concat(parts, ignore_index=True)


def _pair_panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Ratios of two runs; logarithmic where they span much."""
    log = len(rows) > 0 and style.needs_log(curves.seen(rows), _WIDE)
    _ratio_panel(axes, rows, "metric", _LOOKS, log=log)


def _share_panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Shares against the number of clusters, in per cent from 0; those of jobs, not predictions, dashed."""
    if rows.empty:
        style.no_data(axes, "no data")
        return
    style.set_axis(axes.yaxis, [*rows["mean"], 0.0], "1", ticks=6, floor=0.0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=_STEPS))
    style.set_percent(axes.yaxis)
    _k_axis(axes, rows["k"])
    for (metric, measure), part in rows.groupby(["metric", "measure"], sort=False):
        _curve(axes, part, _LOOKS[str(metric)], dashed=measure == _EARLY)


def _grid(
    rows: Sequence[tuple[str, ...]], columns: Sequence[str]
) -> tuple[Figure, dict[tuple[str, ...], Axes]]:
    """Figure with a panel for each row and column, by the labels of both."""
    figure = style.new_figure(_PANEL_HEIGHT * len(rows) + 0.8)
    grid = figure.subplots(len(rows), max(len(columns), 2), squeeze=False)
    for unused in grid[:, len(columns) :].flat:
        unused.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("clusters asked (K)")
    labels = [(*row, column) for row in rows for column in columns]
    return figure, dict(zip(labels, grid[:, : len(columns)].flat, strict=True))


# --- centres --------------------------------------------------------------------------------------

_STATISTICS = (("wait_time", "mean"), ("wait_time", "p95"), ("slowdown", "mean"), ("slowdown", "p95"))
"""Measure and statistic of each panel of the centres."""

_WANTED = {"wait_time": "wait", "slowdown": "slowdown"}
"""Metric whose runs a panel shows, by its measure."""

_TITLES = {"mean": "Mean", "p95": "95th percentile"}

_PAPER, _ORIGINAL = "paper", "original scenario"
_ROWS_HEIGHT = 8.4


@style.styled
def centre_table(study: xr.Dataset, *, factor: str | None = None, k: int = SHOWN_K) -> style.Drawing:
    """Waits and slowdowns of the jobs of each centre: the paper's Table 2, ours, and under self-scheduling.

    A row is a centre. Under self-scheduling the jobs are those of the centre's log, wherever they ran; waits
    are from the runs in which jobs want the shortest wait, slowdowns from those in which they want the
    smallest slowdown.

    Parameters
    ----------
    study : xarray.Dataset
        A study of self-scheduling.
    factor : str, optional
        Reading of the CPU factor; the first of the study if not given.
    k : int
        Number of clusters asked, besides the largest; the nearest that was run is taken.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns centre, measure ("wait_time", "slowdown"), statistic ("mean", "p95"), source ("paper",
        "original scenario", "K = 10"), mean, in seconds for waits.

    Raises
    ------
    ConfigurationError
        If the study has no such reading.
    """
    chosen = study.sel(factor=panels.choose(study, "factor", factor), drop=True)
    parts = [_statistic_rows(chosen, *statistic, k) for statistic in _STATISTICS]
    numbers = pd.concat(parts, ignore_index=True).dropna(subset=["mean"]).reset_index(drop=True)
    if numbers.empty:
        return grid_panels.nothing("no runs with this reading of the CPU factor"), numbers
    centres = _known(study, "centre", numbers)
    looks = _source_looks(numbers)
    height = min(grid_panels.row_height(len(looks)) * max(len(centres), 3), _ROWS_HEIGHT)
    figure = style.new_figure(height + 1.1)
    for axes, (measure, statistic) in zip(figure.subplots(1, 4), _STATISTICS, strict=True):
        rows = numbers[(numbers["measure"] == measure) & (numbers["statistic"] == statistic)]
        axes.set_title(_TITLES[statistic])
        axes.set_xlabel(_WANTED[measure])
        _centre_panel(axes, rows.assign(low=np.nan, high=np.nan), centres, looks, measure)
    grid_panels.marker_legend(figure, looks)
    return figure, numbers


def _statistic_rows(chosen: xr.Dataset, measure: str, statistic: str, k: int) -> pd.DataFrame:
    """Rows of one panel, one a centre and source."""
    name = f"{measure}_{statistic}_by_centre"
    original = chosen[f"original_{name}"].sel(estimates=preferred(chosen, "estimates", REQUESTED))
    sources = {_PAPER: chosen[f"paper_{measure}_{statistic}"], _ORIGINAL: original}
    runs = chosen[name].sel(
        mode=preferred(chosen, "mode", PLAN),
        estimates=preferred(chosen, "estimates", PREDICTED),
        metric=preferred(chosen, "metric", _WANTED[measure]),
    )
    sources |= {f"K = {number}": runs.sel(k=number) for number in _shown_numbers(runs, k)}
    parts = [
        values.rename("mean").reset_coords(drop=True).to_dataframe().reset_index().assign(source=source)
        for source, values in sources.items()
    ]
    rows = pd.concat(parts, ignore_index=True).assign(measure=measure, statistic=statistic)
    return rows[["centre", "measure", "statistic", "source", "mean"]]


def _shown_numbers(runs: xr.DataArray, k: int) -> list[int]:
    """The number of clusters nearest to the wanted one, and the largest, of those that were run."""
    known = [int(number) for number in runs["k"].values if runs.sel(k=number).notnull().any()]
    if not known:
        return []
    return list(dict.fromkeys([min(known, key=lambda number: abs(number - k)), max(known)]))


def _source_looks(numbers: pd.DataFrame) -> dict[str, style.SchemeStyle]:
    """Looks of the paper, the original scenario and the numbers of clusters, in this order."""
    sources = sorted(set(numbers["source"]) - {_PAPER, _ORIGINAL}, key=lambda text: int(text.split()[-1]))
    ours = [_ORIGINAL, *sources]
    looks = {_PAPER: style.SchemeStyle(style.INK, "*", ()), **style.scheme_styles(ours)}
    present = set(numbers["source"])
    return {name: looks[name] for name in (_PAPER, *ours) if name in present}


def _centre_panel(
    axes: Axes,
    rows: pd.DataFrame,
    centres: Sequence[str],
    looks: Mapping[str, style.SchemeStyle],
    measure: str,
) -> None:
    if rows.empty:
        style.no_data(axes, "no data")
        return
    grid_panels.label_rows(axes, [style.plain(centre, 16) for centre in centres])
    if measure == "wait_time":
        grid_panels.time_axis(axes, rows, 3, log=True)
    else:
        style.set_axis(axes.xaxis, rows["mean"], "1", log=True, ticks=4)
    grid_panels.dots(axes, rows, ("centre", centres), ("source", looks))


@style.styled
def offered_loads(study: xr.Dataset) -> style.Drawing:
    """Offered load of every centre that has a log, under each reading of the CPU factor.

    The work of the jobs that fit, over what the centre can do between the first and the last submission.
    Where it is above 1 the queue grows with the length of the log.

    Parameters
    ----------
    study : xarray.Dataset
        A study of self-scheduling.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns factor, centre, processors, cpu_factor, load.
    """
    loads = study[["offered_load_by_reading", "processors", "cpu_factor"]].reset_coords(drop=True)
    loads = loads.rename(offered_load_by_reading="load", reading="factor")
    table = loads.to_dataframe().reset_index().dropna(subset=["load"])
    numbers = table[["factor", "centre", "processors", "cpu_factor", "load"]]
    if numbers.empty:
        return grid_panels.nothing("no centre has a log"), numbers
    centres = _known(study, "centre", numbers)
    factors = list(dict.fromkeys(numbers["factor"]))
    looks = dict(zip(factors, grid_panels.shade_looks(factors).values(), strict=True))
    figure = style.new_figure(grid_panels.row_height(len(looks)) * max(len(centres), 3) + 1.0)
    axes = figure.subplots()
    grid_panels.label_rows(axes, [style.plain(centre, 22) for centre in centres])
    style.set_axis(axes.xaxis, [*numbers["load"], 1.0], "1", log=True, ticks=9)
    axes.axvline(1, color=style.INK, linewidth=0.8, zorder=0.6)
    axes.set_xlabel("offered load")
    marked = numbers.assign(mean=numbers["load"], low=np.nan, high=np.nan)
    grid_panels.dots(axes, marked, ("centre", centres), ("factor", looks))
    grid_panels.marker_legend(figure, {factor_name(factor): look for factor, look in looks.items()})
    return figure, numbers


SELF_SCHEDULING_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "improvement_bounded_slowdown": improvement_bounded_slowdown,
    "improvement_wait_time": improvement_wait_time,
    "prediction_worth": prediction_worth,
    "plan_and_exact": plan_and_exact,
    "retraining_effect": retraining_effect,
    "centre_table": centre_table,
    "offered_loads": offered_loads,
}
"""Figures of a study of self-scheduling by name."""

"""Figures of studies of imprecise calendars: delays, trade, reservations, stale knowledge, options, cost.

They show what J. K. Hollingsworth and S. Maneewongvatana, "Imprecise calendars: an approach to scheduling
computational grids" (ICDCS 1999), has in its Figures 2, 5, 6 and 8 and in the tables of its Figures 7 and 9,
and what the paper describes without numbers. Since the paper does not say how it weights delays, every delay
is shown under the same four aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from gridsched.figures import curves, grid_panels, panels, style
from gridsched.replication import times_interval
from gridsched.systems.calendars.findings import FINDINGS as FINDINGS

AGGREGATE_NAMES: dict[str, str] = {
    "mean": "mean over jobs",
    "work_weighted": "weighted by work",
    "ratio_of_means": "ratio of the means",
    "geometric_mean": "geometric mean",
}
"""Ways to condense delays."""

ALL = "all"
_DELAY = "normalised queuing delay"
_PAPER = "paper"
_BOUNDS = ["mean", "low", "high"]
_LOOKS = style.scheme_styles(AGGREGATE_NAMES)


# --- delays ---------------------------------------------------------------------------------------


@style.styled
def calendar_delays(study: xr.Dataset) -> style.Drawing:
    """Delay of all jobs under every scheduler, a row of panels a case, a column an aggregate.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns case, scheduler, estimates, aggregate, mean, asks: whether jobs ask for start times, and
        to_best, to_best_low and to_best_high: the delay relative to the smallest of the schedulers whose jobs
        do not ask, with its interval, for the first kind of estimates.
    """
    numbers = _rows(study["delay"].sel(job_class=ALL, drop=True))
    asking = set(panels.labels(study.sel(scheduler=study["reserved_share"].values > 0), "scheduler"))
    numbers = numbers.assign(asks=numbers["scheduler"].isin(asking))
    numbers = numbers.merge(_to_best(study, numbers), how="left")
    if numbers.empty:
        return grid_panels.nothing("no job has run"), numbers
    cases = grid_panels.known(study, "case", numbers)
    looks = _estimate_looks(panels.labels(study, "estimates"))
    rows = {case: _of_case(study, numbers, case) for case in cases}
    heights = [0.35 + grid_panels.row_height(len(looks)) * len(names) for names in rows.values()]
    figure = style.new_figure(sum(heights) + 0.75)
    grid = figure.subplots(len(cases), len(AGGREGATE_NAMES), squeeze=False, height_ratios=heights)
    for (case, names), line in zip(rows.items(), grid, strict=True):
        for axes, (aggregate, title) in zip(line, AGGREGATE_NAMES.items(), strict=True):
            shown = numbers[(numbers["case"] == case) & (numbers["aggregate"] == aggregate)]
            grid_panels.label_rows(axes, [style.plain(name) for name in names])
            style.set_axis(axes.xaxis, shown["mean"], "1", log=True, ticks=4)
            grid_panels.dots(axes, _unbounded(shown), ("scheduler", names), ("estimates", looks))
            if case == cases[-1]:
                axes.set_xlabel(title)
        line[0].set_title(style.plain(case))
    grid_panels.marker_legend(figure, {f"{name} run times": look for name, look in looks.items()})
    return figure, numbers


def _to_best(study: xr.Dataset, numbers: pd.DataFrame) -> pd.DataFrame:
    """Delays relative to the smallest of their case and aggregate, where jobs do not ask for start times."""
    names = {side: f"to_best{end}" for side, end in zip(_BOUNDS, ("", "_low", "_high"), strict=True)}
    keys = ["case", "scheduler", "aggregate"]
    plain = numbers[~numbers["asks"] & (numbers["estimates"] == str(study["estimates"].values[0]))]
    best = plain.loc[plain.groupby(["case", "aggregate"])["mean"].idxmin()]
    parts = [pd.DataFrame(columns=[*keys, *names.values(), "estimates"])]
    for label, places in best.groupby("scheduler"):
        rows = _ratio_rows(study, "delay_by_block", list(plain["scheduler"]), str(label))
        parts.append(rows.merge(places[["case", "aggregate", "estimates"]]).rename(columns=names))
    return pd.concat(parts[1:] or parts, ignore_index=True)[[*keys, *names.values(), "estimates"]]


def _chosen(study: xr.Dataset, case: str | None) -> xr.Dataset:
    """One case, the first if none is given, with the first kind of estimates."""
    return study.sel(case=panels.choose(study, "case", case), drop=True).isel(estimates=0, drop=True)


def _rows(values: xr.DataArray) -> pd.DataFrame:
    """One row for each known value."""
    frame = values.rename("mean").reset_coords(drop=True).to_dataframe().reset_index()
    return frame.dropna(subset=["mean"]).reset_index(drop=True)


def _unbounded(numbers: pd.DataFrame) -> pd.DataFrame:
    return numbers.assign(low=np.nan, high=np.nan)


def _of_case(study: xr.Dataset, numbers: pd.DataFrame, case: str) -> list[str]:
    """Schedulers of a case in the order of the study."""
    return grid_panels.known(study, "scheduler", numbers[numbers["case"] == case])


def _estimate_looks(estimates: Sequence[str]) -> dict[str, style.SchemeStyle]:
    return {name: look for name, look in style.scheme_styles(estimates).items() if name in estimates}


def _panels_of_aggregates(height: float) -> tuple[Figure, dict[str, Axes]]:
    """Figure with one panel an aggregate, two a row."""
    figure = style.new_figure(height)
    grid = dict(zip(AGGREGATE_NAMES, figure.subplots(2, 2).flat, strict=True))
    for aggregate, axes in grid.items():
        axes.set_title(AGGREGATE_NAMES[aggregate][0].upper() + AGGREGATE_NAMES[aggregate][1:])
        if panels.is_left(axes):
            axes.set_ylabel(_DELAY)
    return figure, grid


@style.styled
def calendar_classes(study: xr.Dataset, *, case: str | None = None) -> style.Drawing:
    """Delay by class of execution time as bars, the paper's Figures 2 and 5; one panel an aggregate.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars.
    case : str, optional
        The case; the first one if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scheduler, aggregate, job_class, mean, with the first kind of estimates of the study.

    Raises
    ------
    ConfigurationError
        If the study has no such case.
    """
    chosen = _chosen(study, case)
    numbers = _rows(chosen["delay"])
    if numbers.empty:
        return grid_panels.nothing("no job has run"), numbers
    schedulers = grid_panels.known(study, "scheduler", numbers)
    classes = grid_panels.known(study, "job_class", numbers)
    shades = list(grid_panels.shade_looks(classes[1:]).values())
    colors = dict(zip(classes, [style.INK, *(look.color for look in shades)], strict=True))
    figure, grid = _panels_of_aggregates(5.6)
    width = 0.82 / len(classes)
    for aggregate, axes in grid.items():
        rows = numbers[numbers["aggregate"] == aggregate]
        # The smallest delay is 1
        style.set_axis(axes.yaxis, [*rows["mean"], 1.0], "1", log=True, ticks=5)
        axes.set_ylim(1.0, axes.get_ylim()[1])
        for place, label in enumerate(classes):
            heights = rows[rows["job_class"] == label].set_index("scheduler")["mean"].reindex(schedulers)
            left = np.arange(len(schedulers)) + (place - (len(classes) - 1) / 2) * width
            axes.bar(left, heights - 1, width, bottom=1.0, color=colors[label], linewidth=0)
        _name_columns(axes, schedulers)
    handles = [Patch(color=color) for color in colors.values()]
    style.legend_below(figure, handles, list(colors), columns=6)
    return figure, numbers


def _name_columns(axes: Axes, names: Sequence[str], limit: int = 18) -> None:
    """Names below groups of bars or markers."""
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), [style.plain(name, limit) for name in names])
    axes.grid(visible=False, axis="x")
    if max(map(len, names)) > 5 or len(names) > 12:
        axes.tick_params(axis="x", labelrotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


@style.styled
def calendar_clusters(study: xr.Dataset, *, case: str | None = None) -> style.Drawing:
    """Delay of the jobs of each cluster under every scheduler, the paper's Figures 6 and 8.

    Parameters, results and errors as of `calendar_classes`, with columns cluster, "all" for all of them, and
    drawn: of many schedulers only some are.
    """
    chosen = _chosen(study, case)
    numbers = pd.concat(
        [_rows(chosen["delay"]).assign(cluster=ALL), _rows(chosen["delay_by_cluster"])], ignore_index=True
    )[["scheduler", "aggregate", "job_class", "cluster", "mean"]]
    if numbers.empty:
        return grid_panels.nothing("no job has run"), numbers.assign(drawn=False)
    schedulers = _most_telling(study, chosen, numbers)
    numbers = numbers.assign(drawn=numbers["scheduler"].isin(schedulers))
    clusters = list(dict.fromkeys(numbers["cluster"]))
    looks = _scheduler_looks(study, schedulers)
    figure, grid = _panels_of_aggregates(5.8)
    shifts = dict(zip(schedulers, panels.offsets(len(schedulers), 0.66), strict=True))
    for aggregate, axes in grid.items():
        shown = numbers["scheduler"].isin(schedulers) & (numbers["job_class"] == ALL)
        rows = numbers[shown & (numbers["aggregate"] == aggregate)]
        style.set_axis(axes.yaxis, rows["mean"], "1", log=style.needs_log(rows["mean"], _WIDE), ticks=5)
        for scheduler, look in looks.items():
            own = rows[rows["scheduler"] == scheduler]
            values = own.set_index("cluster")["mean"].reindex(clusters)
            places = np.arange(len(clusters)) + shifts[scheduler]
            axes.plot(places, values, linestyle="", marker=look.marker, color=look.color, markersize=3.4)
        _name_columns(axes, clusters)
        axes.axvline(0.5, color=style.INK, linewidth=0.8)
        for place in range(2, len(clusters), 2):
            axes.axvspan(place - 0.5, place + 0.5, color=style.PALE, alpha=0.45, zorder=0.1, linewidth=0)
    grid_panels.marker_legend(figure, looks, columns=3)
    return figure, numbers


_WIDE = 4
"""Delays that span a larger factor stand on a logarithmic axis."""

_MAX_SCHEDULERS = 5
"""Schedulers whose markers can stand beside each other."""


def _most_telling(study: xr.Dataset, chosen: xr.Dataset, numbers: pd.DataFrame) -> list[str]:
    """A few of the schedulers: those of the paper's figure and the reference, then as in the study."""
    known = grid_panels.known(study, "scheduler", numbers)
    first = [str(chosen["paper_alone"].values), str(chosen["paper_together"].values)]
    wanted = dict.fromkeys([*first, str(study.attrs["reference"]), *known])
    shown = [name for name in wanted if name in known][:_MAX_SCHEDULERS]
    return [name for name in known if name in shown]


def _scheduler_looks(study: xr.Dataset, schedulers: Sequence[str]) -> dict[str, style.SchemeStyle]:
    """Looks of some schedulers, the same in every figure of the study."""
    looks = style.scheme_styles(panels.labels(study, "scheduler"))
    return {name: looks[name] for name in schedulers}


# --- trade ----------------------------------------------------------------------------------------

_TRADE = {"balance": "balance of trade", "utilisation": "utilisation"}


@style.styled
def calendar_trade(study: xr.Dataset, *, case: str | None = None) -> style.Drawing:
    """Balance of trade and utilisation of each cluster, beside the tables of the paper's Figures 7 and 9.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars.
    case : str, optional
        The case; the first one if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scheduler ("paper" for what it printed), cluster, measure ("balance" in hours, "utilisation"),
        mean.

    Raises
    ------
    ConfigurationError
        If the study has no such case.
    """
    chosen = _chosen(study, case)
    parts = [_rows(chosen[measure]).assign(measure=measure) for measure in _TRADE]
    traded = chosen["supplied_total"] > 0
    numbers = pd.concat(parts, ignore_index=True)
    trading = set(panels.labels(study.sel(scheduler=traded.values), "scheduler"))
    together = str(chosen["paper_together"].values)
    shown = numbers[numbers["scheduler"].isin(trading)]
    paper = [
        _rows(chosen[f"paper_{name}"]).assign(measure=measure, scheduler=_PAPER)
        for measure, name in (("balance", "balance"), ("utilisation", "utilisation_together"))
    ]
    numbers = pd.concat([shown, *(paper if together in trading else [])], ignore_index=True)
    numbers = numbers[["scheduler", "cluster", "measure", "mean"]]
    if numbers.empty:
        return grid_panels.nothing("no cluster works for another"), numbers
    clusters = grid_panels.known(study, "cluster", numbers)
    looks = _scheduler_looks(study, [name for name in panels.labels(study, "scheduler") if name in trading])
    if (numbers["scheduler"] == _PAPER).any():
        looks = {_PAPER: style.SchemeStyle(style.INK, "*", ()), **looks}
    figure = style.new_figure(grid_panels.row_height(len(looks)) * max(len(clusters), 3) + 1.1)
    for axes, (measure, title) in zip(figure.subplots(1, 2), _TRADE.items(), strict=True):
        rows = _unbounded(numbers[numbers["measure"] == measure]).assign(clear=True)
        rows["clear"] = rows["scheduler"] != _PAPER
        grid_panels.label_rows(axes, [style.plain(cluster, 20) for cluster in clusters])
        if measure == "utilisation":
            grid_panels.share_axis(axes, rows, 6)
        else:
            style.set_axis(axes.xaxis, [*rows["mean"], 0.0], "1", ticks=5)
            axes.axvline(0, color=style.INK, linewidth=0.8, zorder=0.6)
        axes.set_xlabel(f"{title}{' [processor-hours]' if measure == 'balance' else ''}")
        grid_panels.dots(axes, rows, ("cluster", clusters), ("scheduler", looks))
    grid_panels.marker_legend(figure, looks, columns=4)
    return figure, numbers


# --- sweeps ---------------------------------------------------------------------------------------

_PARAMETERS = ("policy", "slots", "manager_levels", "low_water", "threshold", "period", "reserved_share")
"""What schedulers differ in."""


def _alike(study: xr.Dataset, scheduler: str, varied: str) -> list[str]:
    """Schedulers that differ from one in a single parameter only, and the one itself, by that parameter."""
    own = study.sel(scheduler=scheduler)
    fixed = [name for name in _PARAMETERS if name != varied]
    same = np.ones(study.sizes["scheduler"], np.bool_)
    for name in fixed:
        same &= study[name].values == own[name].values
    names = [name for name, chosen in zip(panels.labels(study, "scheduler"), same, strict=True) if chosen]
    return sorted(names, key=lambda name: float(study[varied].sel(scheduler=name)))


def _ratio_rows(study: xr.Dataset, name: str, schedulers: Sequence[str], reference: str) -> pd.DataFrame:
    """One row a case, scheduler and aggregate: ratio of delays to those of a scheduler, with its interval."""
    parts = study[name].isel(estimates=0, drop=True)
    if "job_class" in parts.dims:
        parts = parts.sel(job_class=ALL, drop=True)
    dims = [str(dim) for dim in parts.dims]
    against = parts.sel(scheduler=reference, drop=True).broadcast_like(parts).transpose(*dims)
    interval = times_interval(parts.values, against.values)
    table = xr.Dataset(
        {column: (dims[:-1], values) for column, values in zip(_BOUNDS, interval, strict=True)},
        {dim: study[dim].values for dim in dims[:-1]},
    )
    frame = table.to_dataframe().reset_index().dropna(subset=["mean"])
    return frame[frame["scheduler"].isin(schedulers)]


def _with_parameter(study: xr.Dataset, numbers: pd.DataFrame, parameter: str) -> pd.DataFrame:
    """Numbers with the value of a parameter of their schedulers, in its order."""
    values = study[parameter].to_series()
    table = numbers.assign(parameter=parameter, value=numbers["scheduler"].map(values))
    return table.sort_values("value", kind="stable")


def _ratio_panel(axes: Axes, rows: pd.DataFrame, *, log: bool = False) -> None:
    """Ratios of delays against a parameter, a line an aggregate, with a line at 1."""
    if rows.empty:
        style.no_data(axes, "no data")
        return
    seen = [*curves.seen(rows), 1.0]
    wide = log or style.needs_log(seen, 4)
    style.set_axis(axes.yaxis, seen, "1", log=wide, ticks=6)
    if not wide:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.axhline(1, color=style.INK, linewidth=0.8, zorder=0.6)
    for aggregate, own in rows.groupby("aggregate", sort=False):
        curves.curve(axes, own, "value", style.line_options(_LOOKS[str(aggregate)]))


def _aggregate_legend(figure: Figure) -> None:
    entries = [(style.scheme_handle(_LOOKS[name]), text) for name, text in AGGREGATE_NAMES.items()]
    style.entries_below(figure, [*entries, curves.band()])


@style.styled
def calendar_reservations(study: xr.Dataset) -> style.Drawing:
    """What reservations get, and what they cost the jobs that have none, against the share of jobs that ask.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns case, scheduler, value (the share), measure ("acceptance", "postponement_mean" in seconds,
        "delay_others_ratio"), aggregate, mean, low, high.
    """
    reference = str(study.attrs["reference"])
    names = _alike(study, reference, "reserved_share")
    parts = [
        _rows(study[measure].isel(estimates=0, drop=True)).assign(measure=measure, aggregate="")
        for measure in ("acceptance", "postponement_mean")
    ]
    ratios = _ratio_rows(study, "delay_others_by_block", names, reference)
    parts.append(ratios.assign(measure="delay_others_ratio"))
    numbers = pd.concat(parts, ignore_index=True)
    numbers = _with_parameter(study, numbers[numbers["scheduler"].isin(names)], "reserved_share")
    numbers = numbers[["case", "scheduler", "value", "measure", "aggregate", *_BOUNDS]]
    accepted = numbers[numbers["measure"] == "acceptance"]
    if accepted.empty:
        return grid_panels.nothing("no reservations"), numbers
    # A single share is no curve, if others have one
    shares = accepted.groupby("case")["value"].nunique()
    numbers = numbers[numbers["case"].isin(shares.index[shares > min(1, shares.max() - 1)])]
    cases = grid_panels.known(study, "case", numbers)
    looks = {case: style.scheme_styles(cases)[case] for case in cases}
    figure = style.new_figure(2.4 * (1 + -(-len(cases) // 2)) + 0.6)
    grid = list(figure.subplots(1 + -(-len(cases) // 2), 2, squeeze=False).flat)
    first, second, *others = grid
    for axes, measure, title in (
        (first, "acceptance", "Granted reservations"),
        (second, "postponement_mean", "How much later a refused one could begin"),
    ):
        rows = numbers[numbers["measure"] == measure]
        unit: style.Unit = "1" if measure == "acceptance" else "s"
        style.set_axis(axes.yaxis, [*rows["mean"], 0.0], unit, ticks=5, floor=0.0)
        if measure == "acceptance":
            style.set_percent(axes.yaxis)
        for case, own in rows.groupby("case", sort=False):
            axes.plot(own["value"], own["mean"], label=case, **style.line_options(looks[str(case)]))
        axes.set_title(title)
        if measure != "acceptance" and len(rows) == 1:  # a single marker is no curve
            later, share = (float(rows[column].iloc[0]) for column in ("mean", "value"))
            axes.clear()
            axes.set_title(title)
            style.no_data(
                axes, f"some are refused at {100 * share:.0f} % only:\n{style.duration(later)} later"
            )
        if len(cases) > 1:
            axes.legend([style.plain(case) for case in rows["case"].unique()], fontsize=7)
    for axes, case in zip(others, cases, strict=False):
        of_case = (numbers["case"] == case) & (numbers["measure"] == "delay_others_ratio")
        _ratio_panel(axes, numbers[of_case])
        axes.set_title(f"Delay of the others, {style.plain(case)}")
    for unused in others[len(cases) :]:
        unused.set_visible(False)
    asked = sorted(set(numbers["value"]))
    for axes in [axes for axes in grid if axes.has_data()]:
        style.set_axis(axes.xaxis, asked, "1")
        axes.xaxis.set_major_locator(FixedLocator(_apart(asked, 5)))
        style.set_percent(axes.xaxis)
    for axes in grid[-2:]:
        axes.set_xlabel("share of the jobs that ask for a reservation")
    _aggregate_legend(figure)
    return figure, numbers


def _apart(values: Sequence[float], most: int) -> list[float]:
    """Values of which none is closer to the one before than a share of the whole, so that labels fit."""
    kept: list[float] = []
    for value in values:
        if not kept or value - kept[-1] >= (values[-1] - values[0]) / most:
            kept.append(value)
    return kept


@style.styled
def calendar_staleness(study: xr.Dataset) -> style.Drawing:
    """Declined inquiries, and delays relative to fresh knowledge, against the time between updates.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars. The schedulers with the most different periods are shown, those that
        differ in nothing else.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns case, scheduler, value (seconds), measure ("failed_share", "delay_ratio"), aggregate, mean,
        low, high.
    """
    groups = [_alike(study, name, "period") for name in panels.labels(study, "scheduler")]
    names = max(groups, key=len)
    if len(names) < 2:
        empty = ["case", "scheduler", "value", "measure", "aggregate", *_BOUNDS]
        return grid_panels.nothing("no schedulers that differ in their period only"), pd.DataFrame(
            columns=empty
        )
    failed = _rows(study["failed_share"].isel(estimates=0, drop=True)).assign(measure="failed_share")
    ratios = _ratio_rows(study, "delay_by_block", names, names[0]).assign(measure="delay_ratio")
    numbers = pd.concat([failed.assign(aggregate=""), ratios], ignore_index=True)
    numbers = _with_parameter(study, numbers[numbers["scheduler"].isin(names)], "period")
    numbers = numbers[["case", "scheduler", "value", "measure", "aggregate", *_BOUNDS]]
    case = grid_panels.known(study, "case", numbers)[0]
    rows = numbers[numbers["case"] == case]
    figure = style.new_figure(3.0)
    left, right = figure.subplots(1, 2)
    shares = rows[rows["measure"] == "failed_share"]
    style.set_axis(left.yaxis, [*shares["mean"], 0.0], "1", ticks=6, floor=0.0)
    style.set_percent(left.yaxis)
    left.plot(shares["value"], shares["mean"], color=style.INK, marker="o", markersize=3.5)
    left.set_title(f"Declined inquiries, {style.plain(case)}")
    _ratio_panel(right, rows[rows["measure"] == "delay_ratio"])
    right.set_title("Delay relative to fresh shadow calendars")
    for axes in (left, right):
        style.set_axis(axes.xaxis, shares["value"], "s", log=True, ticks=5)
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(shares["value"]))))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("time between updates")
    _aggregate_legend(figure)
    return figure, numbers


_OPTIONS = {"threshold": "resource threshold", "low_water": "low-water mark"}


@style.styled
def calendar_options(study: xr.Dataset) -> style.Drawing:
    """Delays against the resource threshold and the low-water mark, relative to those of the reference.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns case, scheduler, parameter, value, aggregate, mean, low, high.
    """
    reference = str(study.attrs["reference"])
    parts = []
    for parameter in _OPTIONS:
        names = _alike(study, reference, parameter)
        if len(names) > 1:
            ratios = _ratio_rows(study, "delay_by_block", names, reference)
            parts.append(_with_parameter(study, ratios, parameter))
    columns = ["case", "scheduler", "parameter", "value", "aggregate", *_BOUNDS]
    if not parts:
        return grid_panels.nothing("no schedulers that differ in these only"), pd.DataFrame(columns=columns)
    numbers = pd.concat(parts, ignore_index=True)[columns]
    several = numbers.groupby(["case", "parameter"])["value"].transform("nunique") > 1
    numbers = numbers[several].reset_index(drop=True)
    cases = grid_panels.known(study, "case", numbers)
    parameters = [name for name in _OPTIONS if name in set(numbers["parameter"])]
    figure = style.new_figure(2.3 * len(cases) + 0.7)
    grid = figure.subplots(len(cases), 2, squeeze=False)
    for line, case in zip(grid, cases, strict=True):
        for axes, parameter in zip(line, parameters, strict=False):
            _ratio_panel(axes, numbers[(numbers["case"] == case) & (numbers["parameter"] == parameter)])
            axes.set_xlabel(_OPTIONS[parameter])
        line[0].set_title(style.plain(case))
        line[0].set_ylabel("relative delay")
        for unused in line[len(parameters) :]:
            unused.set_visible(False)
    _aggregate_legend(figure)
    return figure, numbers


# --- cost -----------------------------------------------------------------------------------------

_COSTS = {
    "slots_max": "slots of a calendar",
    "touched_per_operation": "slots per operation",
    "operations_per_job": "operations per job",
}


@style.styled
def calendar_cost(study: xr.Dataset) -> style.Drawing:
    """Slots of a calendar and operations on it, a row a scheduler, a marker a case.

    Parameters
    ----------
    study : xarray.Dataset
        A study of imprecise calendars.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns case, scheduler, measure, mean.
    """
    chosen = study.isel(estimates=0, drop=True)
    jobs = chosen["jobs"].sel(job_class=ALL, drop=True)
    chosen = chosen.assign(operations_per_job=chosen["operations"] / jobs)
    parts = [_rows(chosen[measure]).assign(measure=measure) for measure in _COSTS]
    numbers = pd.concat(parts, ignore_index=True)[["case", "scheduler", "measure", "mean"]]
    if numbers.empty:
        return grid_panels.nothing("no calendars"), numbers
    schedulers = grid_panels.known(study, "scheduler", numbers)
    cases = grid_panels.known(study, "case", numbers)
    looks = grid_panels.shade_looks(cases)
    figure = style.new_figure(grid_panels.row_height(len(cases)) * max(len(schedulers), 3) + 1.2)
    for axes, (measure, title) in zip(figure.subplots(1, 3), _COSTS.items(), strict=True):
        rows = numbers[numbers["measure"] == measure]
        grid_panels.label_rows(axes, [style.plain(name) for name in schedulers])
        style.set_axis(axes.xaxis, rows["mean"], "1", log=True, ticks=4)
        axes.set_xlabel(title)
        grid_panels.dots(axes, _unbounded(rows), ("scheduler", schedulers), ("case", looks))
    grid_panels.marker_legend(figure, looks)
    return figure, numbers


CALENDAR_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "calendar_delays": calendar_delays,
    "calendar_reservations": calendar_reservations,
    "calendar_staleness": calendar_staleness,
    "calendar_options": calendar_options,
    "calendar_cost": calendar_cost,
}
"""Figures of a study of imprecise calendars by name."""

CASE_FIGURES: dict[str, Callable[..., style.Drawing]] = {
    "calendar_classes": calendar_classes,
    "calendar_clusters": calendar_clusters,
    "calendar_trade": calendar_trade,
}
"""Figures of one case, given as `case`."""

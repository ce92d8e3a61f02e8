"""Figures of a study of the arena: who is best, what it costs, and what changes under other conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gridsched.experiments.arena.findings import FINDINGS as FINDINGS
from gridsched.experiments.arena.grids import IDEAL_MACHINE
from gridsched.figures import grid_panels, style

_USUAL = 1.0
"""Load and error of estimates under which schedulers are ranked."""

_ROW = 0.2
"""Inches of a row of a scheduler."""

_COLUMNS = 3
"""Panels beside each other."""

_FAR = 4.0
"""A mean that differs from that of the reference by a larger factor stands at the edge, with its ratio."""


def _usual(study: xr.Dataset) -> xr.Dataset:
    return study.sel(load=_USUAL, estimate_error=_USUAL)


def ranked(study: xr.Dataset, measure: str = "response_time") -> list[str]:
    """Schedulers from the best to the worst: geometric mean over scenarios of the ratio to the reference.

    One that cannot schedule some scenario is ranked by the others.
    """
    ratio = _usual(study)[f"{measure}_ratio"].transpose("scheduler", "scenario").values
    with np.errstate(divide="ignore"):
        logarithms = np.log(ratio)
    known = ~np.isnan(logarithms)
    mean = np.where(known, logarithms, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    mean[~known.any(axis=1)] = np.inf
    return [str(label) for label in study["scheduler"].values[np.argsort(mean, kind="stable")]]


@style.styled
def arena_ranking(study: xr.Dataset, *, measure: str = "response_time") -> style.Drawing:
    """Means of all schedulers relative to the reference, with simultaneous intervals.

    Parameters
    ----------
    study : xarray.Dataset
        A study of the arena.
    measure : str
        Measure of `gridsched.experiments.arena.stages.MEASURES`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, scheduler, system, ratio, low, high, beats, beaten_by, clusters.
    """
    usual, order = _usual(study), ranked(study, measure)
    numbers = _ranking_numbers(usual, measure, order)
    looks = _system_looks(study)
    scenarios = [str(name) for name in study["scenario"].values]
    rows = -(-len(scenarios) // _COLUMNS)
    figure = style.new_figure(rows * (len(order) * _ROW + 0.7) + 0.5)
    panels = figure.subplots(rows, min(len(scenarios), _COLUMNS), sharey=True, squeeze=False)
    cut = False
    for position, axes in enumerate(panels.flat):
        if position < len(scenarios):
            own = numbers[numbers["scenario"] == scenarios[position]]
            cut |= _ranking_panel(axes, own, order, looks)
            axes.set_title(style.plain(scenarios[position]))
            against = style.plain(study.attrs["reference"], 20)
            axes.set_xlabel(f"mean {measure.replace('_', ' ')} relative to {against}")
        else:
            axes.set_axis_off()
    dot = partial(Line2D, [], [], color=style.FAINT, marker="o", linestyle="")
    entries = [(dot(), "no scheduler is surely better"), (dot(markerfacecolor="white"), "some surely is")]
    entries = [*entries, *grid_panels.interval_entry(numbers), *grid_panels.cut_entry(cut)]
    style.entries_below(figure, entries)
    return figure, numbers


def _ranking_numbers(usual: xr.Dataset, measure: str, order: Sequence[str]) -> pd.DataFrame:
    rows = []
    for scenario in usual["scenario"].values:
        for label in order:
            part = usual.sel(scenario=scenario, scheduler=label)
            rows.append(
                {
                    "scenario": str(scenario),
                    "scheduler": label,
                    "system": str(part["system"].values),
                    **_ratio_of(part, measure),
                    "clusters": float(part["clusters"]),
                }
            )
    return pd.DataFrame(rows)


def _ratio_of(part: xr.Dataset, measure: str) -> dict[str, float]:
    """Ratio of a scheduler to the reference, and how many are surely worse and better than it."""
    names = {f"{measure}_ratio{end}": side for end, side in {**_ENDS, "": "ratio"}.items()}
    names |= {f"{measure}_{side}": side for side in ("beats", "beaten_by")}
    return {side: float(part[variable]) for variable, side in names.items()}


def _system_looks(study: xr.Dataset) -> dict[str, str]:
    """Colour of each system, in the order of the study."""
    systems = list(dict.fromkeys(str(name) for name in study["system"].values))
    return {name: look.color for name, look in style.scheme_styles(systems).items() if name in systems}


def _ranking_panel(axes: Axes, rows: pd.DataFrame, order: Sequence[str], looks: dict[str, str]) -> bool:
    """Draw a panel; says whether an interval goes on beyond its axis."""
    place = {label: i for i, label in enumerate(order)}
    near = rows.loc[_is_near(rows["ratio"]), ["ratio", "low", "high"]].to_numpy(np.float64)
    # Bounds far outside would press the markers into a corner
    ratios = np.append(near[:, 0], 1.0)
    shown = np.clip(near, ratios.min() / 1.5, ratios.max() * 1.5)
    style.set_axis(axes.xaxis, np.append(shown.ravel(), 1.0), "1", log=True, ticks=6)
    cut = False
    for row in rows.to_dict("records"):
        y, color = place[row["scheduler"]], looks[row["system"]]
        if np.isnan(row["ratio"]):
            axes.annotate(
                "cannot", (0.02, y), xycoords=("axes fraction", "data"), va="center", color=style.FAINT
            )
        elif not _is_near(row["ratio"]):
            _at_edge(axes, y, row["ratio"], color)
        else:
            cut |= grid_panels.interval_line(axes, row["low"], row["high"], y, color, linewidth=1.1)
            filled = color if row["beaten_by"] == 0 else "white"
            axes.plot([row["ratio"]], [y], "o", color=color, markerfacecolor=filled, markersize=4.5)
    axes.axvline(1.0, color=style.FAINT, linewidth=0.8)
    axes.set_yticks(range(len(order)), [style.plain(label, 30) for label in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    return cut


def _is_near(ratio: pd.Series[float]) -> pd.Series[bool]:
    return (ratio >= 1 / _FAR) & (ratio <= _FAR)


def _at_edge(axes: Axes, y: float, ratio: float, color: str) -> None:
    """An arrow at the side to which a ratio is out of sight, with the ratio."""
    side, marker, aligned = (0.025, "<", "left") if ratio < 1 else (0.975, ">", "right")
    inwards = 0.04 if ratio < 1 else -0.04
    within = axes.get_yaxis_transform()
    axes.plot([side], [y], marker, color=color, markersize=4.5, transform=within)
    axes.text(side + inwards, y, style.number(ratio), transform=within, va="center", ha=aligned)


@style.styled
def arena_cost(study: xr.Dataset, *, measure: str = "response_time") -> style.Drawing:
    """Gain of each scheduler against the messages that it needs; ideal machines are none.

    Parameters
    ----------
    study : xarray.Dataset
        A study of the arena.
    measure : str
        Measure of the gain.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, scheduler, messages_per_job, moved, ratio, low, high, beats, beaten_by.
    """
    usual = _usual(study)
    looks = style.scheme_styles([str(label) for label in study["scheduler"].values])
    is_scheduler = study["system"].values != IDEAL_MACHINE
    labels = [str(label) for label in study["scheduler"].values[is_scheduler]]
    rows = [
        {
            "scenario": str(scenario),
            "scheduler": label,
            "messages_per_job": float(usual["messages_per_job"].sel(scenario=scenario, scheduler=label)),
            "moved": float(usual["moved"].sel(scenario=scenario, scheduler=label)),
            **_ratio_of(usual.sel(scenario=scenario, scheduler=label), measure),
        }
        for scenario in usual["scenario"].values
        for label in labels
    ]
    numbers = pd.DataFrame(rows)
    figure, panels = _panels(study, 2.6)
    for axes, scenario in panels:
        own = numbers[(numbers["scenario"] == scenario) & numbers["ratio"].notna()]
        near = own.loc[_is_near(own["ratio"]), "ratio"]
        style.set_axis(axes.xaxis, np.append(own["messages_per_job"], 0.0), "1", log=True, ticks=5)
        least, most = style.set_axis(axes.yaxis, np.append(near, 1.0), "1", log=True, ticks=5)
        for row in own.to_dict("records"):
            x, ratio, look = row["messages_per_job"], row["ratio"], looks[row["scheduler"]]
            y = min(max(ratio, least), most)
            axes.plot([x], [y], marker=look.marker, color=look.color, markersize=5, clip_on=False)
            if y != ratio:
                axes.annotate(style.number(ratio), (x, y), (5, 0), textcoords="offset points", va="center")
        axes.axhline(1.0, color=style.FAINT, linewidth=0.8)
        axes.set_xlabel("messages a job")
        axes.set_ylabel(f"relative to {style.plain(study.attrs['reference'], 20)}")
    handles = [
        Line2D([], [], color=looks[label].color, marker=looks[label].marker, linestyle="") for label in labels
    ]
    style.legend_below(figure, handles, labels, columns=4)
    return figure, numbers


@style.styled
def arena_loads(study: xr.Dataset) -> style.Drawing:
    """Mean response time relative to that of the reference under the same load, with simultaneous intervals.

    Parameters
    ----------
    study : xarray.Dataset
        A study of the arena with several loads.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, scheduler, system, load, response_time_mean (s), mean (the ratio), low, high.
    """
    names = {f"response_time_ratio{end}": side for end, side in _ENDS.items()}
    part = study[["response_time_mean", *names]].sel(estimate_error=_USUAL).rename(names)
    numbers = _condition_rows(study, part, "load")
    text = f"relative to {style.plain(study.attrs['reference'], 20)} under the same load"
    return _conditions(study, numbers, "load", text, "{:g} times the arrivals".format)


@style.styled
def arena_estimates(study: xr.Dataset) -> style.Drawing:
    """Mean response time with worse estimates, relative to that with the best estimates.

    Parameters
    ----------
    study : xarray.Dataset
        A study of the arena with several errors of estimates.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, scheduler, system, estimate_error, response_time_mean (s), mean (the ratio), low and
        high (not known).
    """
    part = study[["response_time_mean"]].sel(load=_USUAL)
    best = float(study["estimate_error"].min())
    unknown = xr.full_like(part["response_time_mean"], np.nan)
    ratio = part["response_time_mean"] / part["response_time_mean"].sel(estimate_error=best, drop=True)
    numbers = _condition_rows(study, part.assign(mean=ratio, low=unknown, high=unknown), "estimate_error")
    drawn = numbers[numbers["estimate_error"] != best]
    figure, _ = _conditions(
        study, drawn, "estimate_error", f"mean response relative to that with {_errors(best)}", _errors
    )
    return figure, numbers


@style.styled
def arena_effects(study: xr.Dataset) -> style.Drawing:
    """Mean response time of each scheduler under other conditions, relative to its own in the baseline.

    Parameters
    ----------
    study : xarray.Dataset
        A study of the arena in which some scenarios have a baseline.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, scheduler, system, baseline, response_time_mean (s), mean (the ratio), low, high,
        killed, extra_work, moved, moved_before.
    """
    conditioned = study.isel(scenario=(study["baseline"] != "").values)
    usual, chosen = _usual(study), _usual(conditioned)
    names = {f"response_time_effect{end}": side for end, side in _ENDS.items()}
    names |= {"executions_killed": "killed", "extra_work_share": "extra_work"}
    known = {variable: column for variable, column in names.items() if variable in chosen}
    part = chosen[["response_time_mean", "baseline", "moved", *known]].rename(known)
    before = usual["moved"].sel(scenario=chosen["baseline"].values).assign_coords(scenario=chosen["scenario"])
    part["moved_before"] = before
    numbers = _condition_rows(
        study, part, "baseline", [name for name in (*known.values(), "moved", "moved_before") if name in part]
    )
    label = "mean response relative to the baseline"
    figure, _ = _conditions(conditioned, numbers, "baseline", label, "against {}".format)
    return figure, numbers


def _errors(error: float) -> str:
    """Estimates by the share of users' errors that they have."""
    return {0.0: "perfect estimates", 1.0: "requested times"}.get(error, f"{error:g} of users' errors")


_ENDS = {"": "mean", "_low": "low", "_high": "high"}


def _condition_rows(
    study: xr.Dataset, part: xr.Dataset, along: str, more: Sequence[str] = ()
) -> pd.DataFrame:
    """One row a scenario, scheduler and condition that has a value."""
    if along in part.dims:
        part = part.sortby(along)
    frame = part.reset_coords(drop=True).to_dataframe().reset_index()
    systems = study["system"].to_series()
    frame["system"] = frame["scheduler"].map(systems)
    columns = ["scenario", "scheduler", "system", along, "response_time_mean", *_ENDS.values()]
    columns += [name for name in more if name not in columns]
    return frame.dropna(subset=["mean"])[columns].reset_index(drop=True)


def _conditions(
    study: xr.Dataset, numbers: pd.DataFrame, along: str, label: str, entry: Callable[[Any], str]
) -> style.Drawing:
    """A row a scheduler, a lane in it a condition, a panel a scenario."""
    order = [each for each in ranked(study) if each in set(numbers["scheduler"])]
    scenarios = [str(name) for name in study["scenario"].values]
    values = sorted(set(numbers[along]))
    texts = {value: entry(value) for value in values}
    looks = grid_panels.shade_looks([*texts.values()])
    rows = -(-len(scenarios) // _COLUMNS)
    height = grid_panels.row_height(len(values)) * max(len(order), 3) + 0.7
    figure = style.new_figure(rows * height + 0.5)
    grid = figure.subplots(rows, min(len(scenarios), _COLUMNS), squeeze=False)
    for axes in list(grid.flat)[len(scenarios) :]:
        axes.set_axis_off()
    for axes, scenario in zip(grid.flat, scenarios, strict=False):
        own = numbers[numbers["scenario"] == scenario].assign(hue=lambda part: part[along].map(texts))
        near = own[_is_near(own["mean"])]
        grid_panels.label_rows(axes, [style.plain(each, 30) for each in order])
        if len(near):
            values_near = near[[*_ENDS.values()]].to_numpy(np.float64)
            seen = np.clip(values_near, near["mean"].min() / 1.5, near["mean"].max() * 1.5)
            style.set_axis(axes.xaxis, np.append(seen.ravel(), 1.0), "1", log=True, ticks=6)
        axes.axvline(1.0, color=style.INK, linewidth=0.8, zorder=0.6)
        grid_panels.dots(axes, own, ("scheduler", order), ("hue", looks))
        _write_far(axes, own, order)
        axes.set_title(style.plain(scenario))
    for axes in grid[-1]:
        axes.set_xlabel(label)
    entries = [(grid_panels.handle(look), text) for text, look in looks.items()]
    style.entries_below(figure, [*entries, *grid_panels.interval_entry(numbers)])
    return figure, numbers


def _write_far(axes: Axes, rows: pd.DataFrame, order: Sequence[str]) -> None:
    """Numbers beyond the axis, in words at its edge."""
    left, right = axes.get_xlim()
    for scheduler, own in rows[(rows["mean"] > right) | (rows["mean"] < left)].groupby("scheduler"):
        inwards = bool(own["mean"].iloc[0] > right)
        axes.annotate(
            ", ".join(style.number(value) for value in own["mean"]),
            (1.0 if inwards else 0.0, order.index(str(scheduler))),
            (-6 if inwards else 6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right" if inwards else "left",
            va="center",
            fontsize=6.5,
        )


def _panels(study: xr.Dataset, height: float) -> tuple[Figure, list[tuple[Axes, str]]]:
    """A panel for each scenario, with its title."""
    scenarios = [str(name) for name in study["scenario"].values]
    columns = min(len(scenarios), _COLUMNS)
    rows = -(-len(scenarios) // columns)
    figure = style.new_figure(rows * height + 0.2 * (1 + study.sizes["scheduler"] // 4))
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[len(scenarios) :]:
        axes.set_axis_off()
    for axes, name in zip(grid, scenarios, strict=False):
        axes.set_title(style.plain(name))
    return figure, list(zip(grid, scenarios, strict=False))


ARENA_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "arena_ranking": arena_ranking,
    "arena_cost": arena_cost,
    "arena_loads": arena_loads,
    "arena_estimates": arena_estimates,
    "arena_effects": arena_effects,
}
"""Figures of a study of the arena by name."""

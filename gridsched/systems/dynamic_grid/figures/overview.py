"""Figures of studies of dynamic grids: what users gain, what clusters bring, what each factor does.

A. Goldman and C. Queiroz, "A model for parallel job scheduling on dynamic computer grids", has no results;
the figures answer what it leaves open. The map and the cluster that leaves are in `dynamic_maps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from gridsched.figures import curves, grid_panels, style
from gridsched.systems.dynamic_grid.figures import numbers as numbers_of
from gridsched.systems.dynamic_grid.figures.findings import FINDINGS as FINDINGS
from gridsched.systems.dynamic_grid.figures.maps import dynamic_departure, dynamic_map
from gridsched.systems.dynamic_grid.figures.numbers import CHURN, DEFAULT, NONE, VALUE, group_name

_METRICS = {"response_time": "response time", "bounded_slowdown": "bounded slowdown"}
_SECONDS = ("delta_t", "superstep", "migration_cost", "resume_cost", "status_period", *CHURN)
"""Factors whose values are times."""

_FACTOR_NAMES = {
    "overhead": "overhead",
    "delta_t": "longest wait as first in line (delta_t)",
    "superstep": "length of a superstep",
    "migration_cost": "time to move a task",
    "status_period": "time between reports",
    "grid_share": "share submitted to the grid",
    "mean_stay": "mean time until a cluster leaves",
    "mean_absence": "mean time until a cluster comes back",
    "lease": "length of a lease",
    "most_sites": "clusters over which a job may run",
}
_ROW_HEIGHT = 1.75
_TICK_SIZE = 6.5
_JOIN = ["site", "line", "party", "metric", *VALUE]


# --- against every cluster on its own -------------------------------------------------------------


@style.styled
def dynamic_sites(study: xr.Dataset) -> style.Drawing:
    """What users gain against every cluster on its own: ratios of means, by group of users.

    Parameters
    ----------
    study : xarray.Dataset
        A study of dynamic grids.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns case, group, metric, mean, low, high: the mean of every cluster on its own over that of
        the case; gain_low and gain_high: the interval of their difference; alone: the mean of every cluster
        on its own.
    """
    cases = numbers_of.differing_in(study, "policy", "graph")
    table = numbers_of.parameters(study)
    graphs = [table[DEFAULT]["graph"], "complete"]
    cases = [case for case in cases if table[case]["graph"] in graphs]
    parts = []
    for metric in _METRICS:
        names = dict(zip((f"{metric}_factor{end}" for end in ("", "_low", "_high")), VALUE, strict=True))
        names |= {f"{metric}_gain{end}": f"gain{end}" for end in ("_low", "_high")}
        part = study[list(names)].rename(names).sel(case=cases).reset_coords(drop=True)
        alone = study[f"alone_{metric}_mean"].sel(
            policy=xr.DataArray([table[case]["policy"] for case in cases], dims="case")
        )
        part = part.assign(alone=alone.reset_coords(drop=True).assign_coords(case=cases))
        parts.append(part.to_dataframe().reset_index().assign(metric=metric))
    numbers = pd.concat(parts, ignore_index=True).dropna(subset=["mean"])
    numbers = numbers[["case", "group", "metric", *VALUE, "gain_low", "gain_high", "alone"]]
    rows = [str(group) for group in study["group"].values if group in set(numbers["group"])]
    looks = style.scheme_styles(cases)
    looks = {case: looks[case] for case in cases}
    figure = style.new_figure(grid_panels.row_height(len(looks)) * max(len(rows), 3) + 1.0)
    for axes, (metric, label) in zip(figure.subplots(1, 2), _METRICS.items(), strict=True):
        own = numbers[numbers["metric"] == metric]
        axes.set_title(f"Mean {label}, alone / grid")
        grid_panels.label_rows(axes, [style.plain(group_name(group), 24) for group in rows])
        _ratio_limits(axes, own)
        grid_panels.dots(axes, own, ("group", rows), ("case", looks))
    names_of = {case: _sharing_name(table[case]) for case in cases}
    entries = [(grid_panels.handle(look), names_of[case]) for case, look in looks.items()]
    style.entries_below(figure, [*entries, *grid_panels.interval_entry(numbers)])
    return figure, numbers


def _sharing_name(row: Mapping[str, str]) -> str:
    return f"{row['graph']}, {row['policy']}"


def _ratio_limits(axes: Axes, rows: pd.DataFrame, *, ticks: int = 6) -> None:
    """An x axis of ratios, logarithmic, with a line at 1."""
    style.set_axis(axes.xaxis, [*curves.seen(rows), 1.0], "1", log=True, ticks=ticks)
    axes.axvline(1, color=style.INK, linewidth=0.8, zorder=0.6)


# --- joining --------------------------------------------------------------------------------------


@style.styled
def dynamic_joining(study: xr.Dataset) -> style.Drawing:
    """What it brings to a cluster and to the others that it joins: means without it over means with it.

    Parameters
    ----------
    study : xarray.Dataset
        A study of dynamic grids with a sweep of `without`.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns site, line, party ("own", "others"), metric, mean, low, high. Further metrics are work_given
        and work_received, as shares of what the cluster's processors could do, in the default case.
    """
    parts = [
        _joining(study, sweep) for sweep, factor in numbers_of.sweeps_of(study).items() if factor == "without"
    ]
    numbers = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_JOIN)
    if numbers.empty:
        return grid_panels.nothing("no grid without one of its clusters was run"), numbers
    shares = _shares(study)
    clusters = [str(cluster) for cluster in study["cluster"].values if cluster in set(numbers["site"])]
    lines = list(dict.fromkeys(numbers["line"]))
    looks = grid_panels.shade_looks(lines)
    figure = style.new_figure(grid_panels.row_height(max(len(lines), 2)) * max(len(clusters), 3) + 1.1)
    panels_of = figure.subplots(1, 3)
    titles = {"own": "Its own users", "others": "All other users"}
    for axes, (party, title) in zip(panels_of[:2], titles.items(), strict=True):
        rows = numbers[numbers["party"] == party]
        axes.set_title(title)
        axes.set_xlabel("mean response, without / with")
        grid_panels.label_rows(axes, [style.plain(cluster, 14) for cluster in clusters])
        _ratio_limits(axes, rows, ticks=4)
        grid_panels.dots(axes, rows, ("site", clusters), ("line", looks))
    names = numbers_of.line_names(lines)
    entries = [(grid_panels.handle(look), names[line] or "default") for line, look in looks.items()]
    entries += [*grid_panels.interval_entry(numbers), *_share_bars(panels_of[2], shares, clusters)]
    style.entries_below(figure, entries)
    return figure, pd.concat([numbers, shares], ignore_index=True)


def _joining(study: xr.Dataset, sweep: str) -> pd.DataFrame:
    """Factors of one sweep over the clusters that are left out."""
    table = numbers_of.points(study, sweep)
    table = table[table["text"] != NONE]
    rows = []
    for record in table.to_dict("records"):
        for party in study["party"].values:
            bounds = [
                float(study[f"response_time_joining_factor{end}"].sel(case=record["case"], party=party))
                for end in ("", "_low", "_high")
            ]
            rows.append((record["text"], record["line"], str(party), "response_time", *bounds))
    return pd.DataFrame(rows, columns=_JOIN)


def _shares(study: xr.Dataset) -> pd.DataFrame:
    """Work that each cluster gave and received in the default case, over what its processors could do."""
    case = study.sel(case=DEFAULT).mean("replicate", skipna=True)
    capacity = study["machine_processors"].sel(users=study["cluster"].values).values * float(case["makespan"])
    rows = [
        (str(cluster), "", party, name, float(case[name].sel(cluster=cluster)) / capacity[i], np.nan, np.nan)
        for i, cluster in enumerate(study["cluster"].values)
        for party, name in (("own", "work_received"), ("others", "work_given"))
    ]
    return pd.DataFrame(rows, columns=_JOIN)


_SHARE_COLORS = {"work_given": "#b9b9b9", "work_received": "#444444"}


def _share_bars(axes: Axes, shares: pd.DataFrame, clusters: Sequence[str]) -> list[tuple[Any, str]]:
    """Bars of the work given and received; their entries of the legend."""
    axes.set_title("Work of a cluster")
    axes.set_xlabel("share of its capacity")
    grid_panels.label_rows(axes, [style.plain(cluster, 14) for cluster in clusters])
    style.set_axis(axes.xaxis, [0.0, *shares["mean"]], "1", ticks=4, floor=0.0)
    style.set_percent(axes.xaxis)
    for lane, (name, color) in zip((-0.18, 0.18), _SHARE_COLORS.items(), strict=True):
        rows = shares[shares["metric"] == name].set_index("site")
        places = np.arange(len(clusters)) + lane
        axes.barh(places, rows["mean"].reindex(list(clusters)).to_numpy(float), 0.3, color=color)
    return [(Patch(color=color), name.replace("_", " ")) for name, color in _SHARE_COLORS.items()]


# --- one factor at a time -------------------------------------------------------------------------


@style.styled
def dynamic_overhead(study: xr.Dataset) -> style.Drawing:
    """Mean response against the overhead of running on several clusters.

    Parameters
    ----------
    study : xarray.Dataset
        A study of dynamic grids.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns sweep, factor, line, text, value, case, group, relative_to, metric, mean, low, high: ratios of
        means to those of the default case under the same local policy.
    """
    return _lines(study, lambda factor: factor == "overhead")


@style.styled
def dynamic_churn(study: xr.Dataset) -> style.Drawing:
    """Mean response against the time that clusters stay, and against leases; as `dynamic_overhead`."""
    return _lines(study, lambda factor: factor in CHURN)


@style.styled
def dynamic_sweeps(study: xr.Dataset) -> style.Drawing:
    """Mean response against every other factor that is a number; results as `dynamic_overhead`."""
    return _lines(study, lambda factor: factor not in ("overhead", *CHURN))


def _lines(study: xr.Dataset, wanted: Callable[[str], bool]) -> style.Drawing:
    """A row of panels for each sweep of such factors whose values are numbers."""
    chosen = [
        sweep
        for sweep, factor in numbers_of.sweeps_of(study).items()
        if wanted(factor) and numbers_of.is_numeric(study, sweep)
    ]
    if not chosen:
        return grid_panels.nothing("no such factor was swept"), pd.DataFrame(columns=["sweep", *VALUE])
    numbers = pd.concat([numbers_of.swept(study, sweep) for sweep in chosen], ignore_index=True)
    groups = numbers_of.groups(study)
    figure = style.new_figure(_ROW_HEIGHT * len(chosen) + 0.6)
    grid = figure.subplots(len(chosen), 2, squeeze=False)
    for row, sweep in zip(grid, chosen, strict=True):
        own = numbers[numbers["sweep"] == sweep]
        lines = list(dict.fromkeys(own["line"]))
        looks = style.scheme_styles(lines)
        for axes, group in zip(row, groups, strict=False):
            _line_panel(axes, own[own["group"] == group], {line: looks[line] for line in lines})
            axes.set_title(group_name(group).capitalize())
        for unused in row[len(groups) :]:
            unused.set_axis_off()
        row[0].set_ylabel("mean response /\nthat of the default")
        if len(lines) > 1:
            names = numbers_of.line_names(lines)
            handles = [style.scheme_handle(looks[line]) for line in lines]
            texts = [style.plain(names[line], 24) for line in lines]
            row[-1].legend(handles, texts, loc="center left", bbox_to_anchor=(1.0, 0.5))
    style.entries_below(figure, curves.band_entry(numbers))
    return figure, numbers


def _line_panel(axes: Axes, rows: pd.DataFrame, looks: Mapping[str, style.SchemeStyle]) -> None:
    """Ratios against the values of a factor; a value that is not there stands last."""
    factor = str(rows["factor"].iloc[0])
    values, ticks, texts = _positions(rows)
    seen = [*curves.seen(rows), 1.0]
    style.set_axis(axes.yaxis, seen, "1", log=style.needs_log(seen, 3), ticks=5)
    axes.axhline(1, color=style.INK, linewidth=0.8, zorder=0.6)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.set_xticks(ticks, texts, fontsize=_TICK_SIZE)
    axes.set_xlim(-0.3, max(ticks) + 0.3)
    axes.set_xlabel(_FACTOR_NAMES.get(factor, factor.replace("_", " ")))
    for line, look in looks.items():
        own = (
            rows[rows["line"] == line]
            .assign(place=lambda frame: frame["text"].map(values))
            .sort_values("place")
        )
        curves.curve(axes, own, "place", style.line_options(look))


def _positions(rows: pd.DataFrame) -> tuple[dict[str, float], list[float], list[str]]:
    """Evenly spaced places of the values of a factor by their texts; ticks and their labels."""
    table = rows[["text", "value", "factor"]].drop_duplicates("text").sort_values("value", na_position="last")
    is_time = str(table["factor"].iloc[0]) in _SECONDS
    places = {text: float(i) for i, text in enumerate(table["text"])}
    texts = [
        (style.duration(value) if is_time else f"{value:g}")
        if np.isfinite(value)
        else _absent_text(text, factor)
        for text, value, factor in table.itertuples(index=False)
    ]
    return places, list(places.values()), texts


def _absent_text(text: str, factor: str) -> str:
    return {"mean_stay": "never", "delta_t": "\N{INFINITY}", "most_sites": "all"}.get(factor, text)


@style.styled
def dynamic_variants(study: xr.Dataset) -> style.Drawing:
    """Mean response relative to that of the default case for every factor that is no number.

    Parameters and results as of `dynamic_overhead`.
    """
    chosen = [
        sweep
        for sweep, factor in numbers_of.sweeps_of(study).items()
        if factor != "without" and not numbers_of.is_numeric(study, sweep)
    ]
    if not chosen:
        return grid_panels.nothing("no such factor was swept"), pd.DataFrame(columns=["sweep", *VALUE])
    numbers = pd.concat([numbers_of.swept(study, sweep) for sweep in chosen], ignore_index=True)
    numbers = numbers[numbers["case"] != numbers["relative_to"]].drop_duplicates(["case", "group"])
    rows = list(dict.fromkeys(numbers["case"]))
    groups = numbers_of.groups(study)
    looks = dict(zip(groups, style.scheme_styles(groups).values(), strict=False))
    figure = style.new_figure(grid_panels.row_height(len(groups)) * max(len(rows), 3) + 0.9)
    axes = figure.subplots()
    grid_panels.label_rows(axes, [style.plain(row, 60) for row in rows])
    _ratio_limits(axes, numbers, ticks=8)
    axes.set_xlabel("mean response / that of the default")
    grid_panels.dots(axes, numbers, ("case", rows), ("group", looks))
    entries: list[tuple[Line2D, str]] = [
        (grid_panels.handle(look), group_name(g)) for g, look in looks.items()
    ]
    style.entries_below(figure, [*entries, *grid_panels.interval_entry(numbers)])
    return figure, numbers


DYNAMIC_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "dynamic_map": dynamic_map,
    "dynamic_sites": dynamic_sites,
    "dynamic_joining": dynamic_joining,
    "dynamic_overhead": dynamic_overhead,
    "dynamic_churn": dynamic_churn,
    "dynamic_sweeps": dynamic_sweeps,
    "dynamic_variants": dynamic_variants,
    "dynamic_departure": dynamic_departure,
}
"""Figures of a study of dynamic grids by name."""

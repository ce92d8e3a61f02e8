"""Figures of the same jobs under other conditions: what these cost each policy, and who is ahead of whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gridsched.figures import grid_panels, panels, style
from gridsched.metrics.jobs import METRICS
from gridsched.systems.local.study.stages import CONDITIONED

_LANE = 0.085
"""Inches from a marker to the next of the same row."""

_FAR = 1.5
"""An axis follows intervals up to so many times its largest mean, and down to its smallest one by so much."""


@style.styled
def conditions_effects(study: xr.Dataset, *, estimate: str | None = None) -> style.Drawing:
    """Means under other conditions relative to those in the baseline, policy by policy, with intervals.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset in which some workloads have a baseline.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns baseline, workload, scheme, metric, mean (the ratio), low, high, killed, extra_work.
    """
    numbers = _numbers(study, "effect", estimate)
    numbers = numbers[numbers["workload"] != numbers["baseline"]]
    return _panels_of(
        study, numbers, "relative to the same policy in the scenario above the panels", joined=False
    )


@style.styled
def conditions_ranking(study: xr.Dataset, *, estimate: str | None = None) -> style.Drawing:
    """Means relative to the reference policy, scenario by scenario, with intervals: who is ahead of whom.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset in which some workloads have a baseline.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns baseline, workload, scheme, metric, mean (the ratio), low, high, ahead_of: the policies whose
        mean is surely larger, each behind a semicolon.
    """
    numbers = _numbers(study, "against", estimate)
    reference = style.plain(study.attrs["reference"], 20)
    return _panels_of(study, numbers, f"relative to {reference} in the same scenario", joined=True)


@style.styled
def policies_ranking(study: xr.Dataset, *, estimate: str | None = None) -> style.Drawing:
    """Means relative to the reference policy, workload by workload, with intervals: who beats whom where.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset in which all pairs are compared.
    estimate : str, optional
        Kind of estimates; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns baseline (the kind of estimates), workload, scheme, metric, mean (the ratio), low, high, value
        (the mean itself), beats: the policies whose mean is surely larger, each with a semicolon behind it.
    """
    chosen = study.sel(estimate=panels.choose(study, "estimate", estimate), job_class="all")
    parts = []
    for metric in CONDITIONED:
        names = {f"{metric}_ratio{end}": side for end, side in _SIDES.items()}
        columns = {**names, f"{metric}_mean": "value", f"{metric}_beats": "beats"}
        frame = chosen[list(columns)].rename(columns).reset_coords(drop=True)
        parts.append(frame.to_dataframe(dim_order=["workload", "scheme"]).reset_index().assign(metric=metric))
    whole = pd.concat(parts, ignore_index=True).assign(baseline=f"{chosen['estimate'].item()} run times")
    keys = ["baseline", "workload", "scheme", "metric"]
    numbers = whole[whole["mean"].notna()]
    numbers = numbers[[*keys, *(name for name in numbers.columns if name not in keys)]]
    reference = style.plain(study.attrs["reference"], 20)
    return _panels_of(study, numbers, f"relative to {reference} on the same workload", joined=False)


def _numbers(study: xr.Dataset, what: str, estimate: str | None) -> pd.DataFrame:
    """One row for each metric, scenario and policy that has a value."""
    chosen = study.sel(estimate=panels.choose(study, "estimate", estimate))
    chosen = chosen.isel(workload=chosen["jobs_shared"].notnull().values)
    parts = []
    for metric in CONDITIONED:
        names = {f"{metric}_{what}{end}": side for end, side in _SIDES.items()}
        more = {f"{metric}_ahead_of": "ahead_of"} if what == "against" else _of_failures(chosen)
        columns = {**names, **more, "baseline": "baseline"}
        frame = chosen[list(columns)].rename(columns).reset_coords(drop=True)
        parts.append(frame.to_dataframe(dim_order=["workload", "scheme"]).reset_index().assign(metric=metric))
    whole = pd.concat(parts, ignore_index=True)
    keys = ["baseline", "workload", "scheme", "metric"]
    return whole[whole["mean"].notna()][[*keys, *(name for name in whole.columns if name not in keys)]]


def _of_failures(study: xr.Dataset) -> dict[str, str]:
    """Columns by variable that say what failing nodes did, where the study knows it."""
    names = {"executions_killed": "killed", "extra_work_share": "extra_work"}
    return {variable: column for variable, column in names.items() if variable in study}


_SIDES = {"": "mean", "_low": "low", "_high": "high"}


def _panels_of(study: xr.Dataset, numbers: pd.DataFrame, against: str, *, joined: bool) -> style.Drawing:
    """A row of panels for each baseline, a panel for each metric, in it a row for each scenario."""
    if numbers.empty:
        return grid_panels.nothing("no job is the same and ends under all conditions"), numbers
    schemes = panels.schemes_in(study, numbers)
    looks = style.scheme_styles(panels.labels(study, "scheme"))
    families = {
        str(name): list(dict.fromkeys(part["workload"]))
        for name, part in numbers.groupby("baseline", sort=False)
    }
    heights = [0.35 + len(rows) * (_LANE * len(schemes) + 0.09) for rows in families.values()]
    figure = style.new_figure(sum(heights) + 1.0)
    grid = figure.subplots(
        len(families), len(CONDITIONED), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    cut = False
    for row, (baseline, scenarios) in zip(grid, families.items(), strict=True):
        for axes, metric in zip(row, CONDITIONED, strict=True):
            own = numbers[(numbers["baseline"] == baseline) & (numbers["metric"] == metric)]
            cut |= _panel(axes, own, scenarios, schemes, looks, joined=joined)
        row[0].set_title(style.plain(baseline))
    for axes, metric in zip(grid[-1], CONDITIONED, strict=True):
        axes.set_xlabel(f"mean {METRICS[metric][0]}")
    handles = [
        Line2D([], [], color=looks[scheme].color, marker=looks[scheme].marker, linestyle="")
        for scheme in schemes
    ]
    entries = [*zip(handles, schemes, strict=True), *grid_panels.interval_entry(numbers)]
    style.entries_below(figure, [*entries, *grid_panels.cut_entry(cut)], title=against)
    return figure, numbers


def _panel(
    axes: Axes,
    numbers: pd.DataFrame,
    scenarios: Sequence[str],
    schemes: Sequence[str],
    looks: Mapping[str, style.SchemeStyle],
    *,
    joined: bool,
) -> bool:
    """Draw a panel; says whether an interval goes on beyond its axis."""
    places = panels.scheme_rows(axes, list(scenarios))
    lanes = dict(zip(schemes, panels.offsets(len(schemes), 0.66), strict=True))
    means = np.append(numbers["mean"].to_numpy(np.float64), 1.0)
    bounds = numbers[["low", "high"]].to_numpy(np.float64)
    seen = np.append(np.clip(bounds.ravel(), means.min() / _FAR, means.max() * _FAR), means)
    style.set_axis(axes.xaxis, seen, "1", log=True, ticks=panels.room(axes))
    axes.axvline(1.0, color=style.INK, linewidth=0.8, zorder=1)
    for place in range(1, len(scenarios)):
        axes.axhline(place - 0.5, color=style.PALE, linewidth=0.6, zorder=0.5)
    cut = False
    for scheme in schemes:
        look = looks[scheme]
        own = numbers[numbers["scheme"] == scheme]
        y = [places[name] + lanes[scheme] for name in own["workload"]]
        if joined:
            axes.plot(own["mean"], y, color=look.color, linewidth=0.7, alpha=0.5)
        for row, at in zip(panels.each_row(own), y, strict=True):
            cut |= grid_panels.interval_line(axes, row.low, row.high, at, look.color)
            axes.plot([row.mean], [at], marker=look.marker, color=look.color, markersize=4)
    return cut


CONDITION_FIGURES = {
    "conditions_effects": conditions_effects,
    "conditions_ranking": conditions_ranking,
    "policies_ranking": policies_ranking,
}
"""Figures of studies that have a baseline, or compare all pairs, by kind."""

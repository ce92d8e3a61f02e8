"""Figures of one scenario of a grid study, cluster by cluster: waits and utilisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gridsched.figures import grid_panels, panels, style

_UTILISATIONS = {
    "utilisation": "utilisation over the run of the whole grid",
    "utilisation_own": "utilisation over the cluster's own time",
}
_LARGEST_LOAD = 1.25
"""Largest offered load that an axis of utilisations shows."""


# --- waits ----------------------------------------------------------------------------------------


@style.styled
def grid_waits(study: xr.Dataset, *, scenario: str, policy: str | None = None) -> style.Drawing:
    """Mean wait of the jobs submitted at each cluster under every scheme: who gains by joining the grid.

    The left panel has the waits, the right one their ratios to the reference scheme, paired by replicate. A
    row is a cluster, a marker in it a scheme.

    Parameters
    ----------
    study : xarray.Dataset
        A grid study; its attribute `reference` names the scheme to compare with.
    scenario : str
        Scenario of the study.
    policy : str, optional
        Local policy; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, policy, scheme, home, metric, relative_to (the reference scheme, or empty), mean
        (s, or a ratio), low, high, replicates.

    Raises
    ------
    ConfigurationError
        If the study has no such scenario or policy, or not the reference scheme.
    """
    chosen = grid_panels.of_scenario(study, scenario, policy)
    reference = grid_panels.reference_of(study)
    waits = grid_panels.means(chosen, "wait_time_mean_home")
    ratios = grid_panels.ratios(chosen, "wait_time_mean_home", reference)
    ratios = ratios[ratios["scheme"] != reference]
    numbers = pd.concat([waits, ratios], ignore_index=True)
    if numbers.empty:
        return grid_panels.nothing(f"no scheme was run in {style.plain(scenario)}"), numbers
    clusters = grid_panels.known(study, "home", waits)
    looks = _looks(study, waits)
    jobs = grid_panels.means(chosen, "jobs_home").groupby("home")["mean"].max()
    texts = [_with_count(cluster, jobs.get(cluster, np.nan), "jobs") for cluster in clusters]
    figure, (left, right) = _two_panels(grid_panels.scenario_title(study, chosen), len(clusters), len(looks))
    for axes in (left, right):
        grid_panels.label_rows(axes, texts)
    grid_panels.time_axis(left, waits, 6, log=True)
    grid_panels.ratio_axis(right, ratios, 6)
    grid_panels.dots(left, waits, ("home", clusters), ("scheme", looks))
    grid_panels.dots(right, ratios, ("home", clusters), ("scheme", looks))
    left.set_xlabel("mean wait of the jobs submitted there")
    right.set_xlabel(f"mean wait relative to {grid_panels.fitting(reference, 0.6)} (right of 1: loses)")
    grid_panels.legend(figure, looks, numbers)
    return figure, numbers


# --- utilisation ----------------------------------------------------------------------------------


@style.styled
def grid_utilisation(study: xr.Dataset, *, scenario: str, policy: str | None = None) -> style.Drawing:
    """Utilisation of each cluster under each scheme, with the load that its own users offer.

    The left panel divides by the time from the first submission to the last end on the whole grid, the
    right one by the time from the first submission to the last end of the jobs that ran on the cluster. A
    row is a cluster, a marker in it a scheme, an upright line the offered load; one above 125 % is written
    at the edge of the panel. Ideal schemes have no clusters and do not occur.

    Parameters
    ----------
    study : xarray.Dataset
        A grid study.
    scenario : str
        Scenario of the study.
    policy : str, optional
        Local policy; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, policy, scheme, cluster, metric (utilisation, utilisation_own or offered_load),
        relative_to (empty), mean (fraction), low, high, replicates. Offered load has no policy and scheme.

    Raises
    ------
    ConfigurationError
        If the study has no such scenario or policy.
    """
    chosen = grid_panels.of_scenario(study, scenario, policy)
    used = pd.concat([grid_panels.means(chosen, metric) for metric in _UTILISATIONS], ignore_index=True)
    if used.empty:
        return grid_panels.nothing(f"no scheme was run on clusters in {style.plain(scenario)}"), used
    clusters = grid_panels.known(study, "cluster", used)
    offered = grid_panels.means(chosen, "offered_load").assign(policy="", scheme="")
    numbers = pd.concat([used, offered[offered["cluster"].isin(clusters)]], ignore_index=True)
    looks = _looks(study, used)
    sizes = study["cluster_processors"].to_series()
    texts = [_with_count(cluster, sizes[cluster], "processors") for cluster in clusters]
    figure, grid = _two_panels(grid_panels.scenario_title(study, chosen), len(clusters), len(looks))
    for axes, (metric, label) in zip(grid, _UTILISATIONS.items(), strict=True):
        rows = numbers[numbers["metric"] == metric]
        loads = numbers[numbers["metric"] == "offered_load"]
        near = loads.assign(mean=loads["mean"].clip(upper=_LARGEST_LOAD), low=np.nan, high=np.nan)
        grid_panels.label_rows(axes, texts)
        grid_panels.share_axis(axes, pd.concat([used, near]), 7)
        _offered_loads(axes, loads, clusters)
        grid_panels.dots(axes, rows, ("cluster", clusters), ("scheme", looks))
        axes.set_xlabel(label)
    tick = Line2D([], [], linestyle="", marker="|", markersize=9, color=style.INK, markeredgewidth=1.1)
    grid_panels.legend(figure, looks, used, [(tick, "load offered by its users")])
    return figure, numbers


def _offered_loads(axes: Axes, rows: pd.DataFrame, clusters: Sequence[str]) -> None:
    """An upright line at each load; one beyond the axis is written at its edge."""
    for row in panels.each_row(rows):
        place = clusters.index(row.cluster)
        if row.mean <= _LARGEST_LOAD:
            axes.vlines(row.mean, place - 0.44, place + 0.44, color=style.INK, linewidth=1.1, zorder=0.7)
            continue
        text = f"{100 * row.mean:.0f} % \N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
        top = (1.0, place - 0.44)
        axes.annotate(
            text, top, xycoords=("axes fraction", "data"), ha="right", va="top", fontsize=6.5, color=style.INK
        )


# --- what both share ------------------------------------------------------------------------------


def _looks(study: xr.Dataset, rows: pd.DataFrame) -> dict[str, style.SchemeStyle]:
    looks = grid_panels.scheme_looks(study)
    return {scheme: looks[scheme] for scheme in grid_panels.known(study, "scheme", rows)}


def _with_count(cluster: str, count: float, what: str) -> str:
    """Label of a cluster with a number that tells how large it is, if that is known."""
    name = style.plain(cluster, 16)
    return f"{name}\n{count:,.0f} {what}" if np.isfinite(count) else name


def _two_panels(title: str, rows: int, lanes: int) -> tuple[Figure, list[Axes]]:
    height = max(grid_panels.row_height(lanes), 0.34) * max(rows, 2)
    figure = style.new_figure(height + 1.1)
    grid = list(figure.subplots(1, 2))
    grid[0].set_title(title)
    return figure, grid

"""Maps of dynamic grids: who runs whose jobs, and what happens where a cluster leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Patch
from matplotlib.ticker import MaxNLocator

from gridsched.figures import style
from gridsched.systems.dynamic_grid.measures import GRID_USERS

_HOUR = 3600
_PANEL_HEIGHT = 2.85
_WIDEST_ARROW, _THINNEST_ARROW = 7.0, 0.25
"""Points."""

_LARGEST_CIRCLE = 0.25
_ROOM, _HEADROOM = 2.05, 0.5
"""Half of the width of a map, and room above and below the clusters, in radii of the ring of clusters."""

_USES = {
    "local": ("local jobs", "#0173b2"),
    "grid": ("grid jobs", "#de8f05"),
    "held": ("tasks on their way", style.INK),
}
_VISIBLE = 0.002
"""Share of the axis that a use of processors takes at least to be seen, and to stand in the legend."""

_LINK = (0, (3, 2))
"""Dashes, which stay visible over the arrows that bend around them."""

_ZOOM = (-30.0, 150.0)
"""Seconds around a departure that are shown closely."""


@style.styled
def grid_map(
    study: xr.Dataset, *, scenario: str, cases: Sequence[str], names: Sequence[str]
) -> style.Drawing:
    """Map of the grid for some graphs: clusters, fast links, and the work of users that others executed.

    Parameters
    ----------
    study : xarray.Dataset
        The dataset of a study of dynamic grids.
    scenario : str
        Label of the scenario.
    cases : sequence of str
        Labels of the cases.
    names : sequence of str
        Names of the clusters.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scheduler, users, cluster, work (processor-seconds, mean over replicates), share (of the work
        of the users), and links, which is 1 where the two are neighbours in some replicate.
    """
    part = study.sel(scenario=scenario)
    numbers = pd.concat([_flows(part, case, names) for case in cases], ignore_index=True)
    sizes = part["cluster_processors"].sel(group=[f"cluster {name}" for name in names])
    processors = sizes.max([dim for dim in sizes.dims if dim != "group"]).values.astype(np.float64)
    size = dict(zip(names, processors, strict=True))
    across = min(len(cases), 2)
    down = -(-len(cases) // across)
    tall = _PANEL_HEIGHT if len(names) > 3 else 0.85 * _PANEL_HEIGHT
    figure = style.new_figure(tall * down + 0.5)
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    most = float(numbers.loc[numbers["users"] != numbers["cluster"], "work"].max())
    for axes in grid:
        axes.set_axis_off()
    for axes, case in zip(grid, cases, strict=False):
        axes.set_title(style.plain(case))
        _map(axes, size, numbers[numbers["scheduler"] == case], most)
    _map_legend(figure, max(processors), most)
    return figure, numbers


def _flows(study: xr.Dataset, case: str, names: Sequence[str]) -> pd.DataFrame:
    """Work from the users of each cluster and of the grid to each cluster under a case."""
    mean = study[["flow_work", "adjacent"]].sel(scheduler=case)
    mean = mean.mean([dim for dim in mean.dims if dim != "group"])
    rows = []
    for users in (*names, GRID_USERS):
        for cluster in names:
            pair = mean.sel(group=f"{users} to {cluster}")
            rows.append((case, users, cluster, float(pair["flow_work"]), int(pair["adjacent"] > 0)))
    work = pd.DataFrame(rows, columns=["scheduler", "users", "cluster", "work", "links"])
    total = work.groupby("users")["work"].transform("sum")
    return work.assign(share=work["work"] / total.where(total > 0))


def _places(clusters: list[str]) -> dict[str, tuple[float, float]]:
    """Clusters on a ring, the first at the top, clockwise; the grid's own users in the middle."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(clusters)) / max(len(clusters), 1)
    places = {
        cluster: (float(np.cos(a)), float(np.sin(a))) for cluster, a in zip(clusters, angles, strict=True)
    }
    return {**places, GRID_USERS: (0.0, 0.0)}


def _colors(clusters: list[str]) -> dict[str, str]:
    """Colour of the users of each cluster and of the grid."""
    looks = style.scheme_styles(clusters)
    return {**{cluster: looks[cluster].color for cluster in clusters}, GRID_USERS: style.INK}


def _map(axes: Axes, processors: Mapping[str, float], flows: pd.DataFrame, most: float) -> None:
    """Links, arrows of work and clusters."""
    clusters, largest = list(processors), max(processors.values())
    places, colors = _places(clusters), _colors(clusters)
    radius = {name: _LARGEST_CIRCLE * float(np.sqrt(size / largest)) for name, size in processors.items()}
    radius[GRID_USERS] = 0.05
    heights = [y for _, y in places.values()]
    limits = min(heights) - _HEADROOM, max(heights) + _HEADROOM
    axes.set(xlim=(-_ROOM, _ROOM), ylim=limits, aspect="equal", anchor="N")
    links = flows[(flows["links"] > 0) & (flows["users"] < flows["cluster"])]
    for one, other in zip(links["users"], links["cluster"], strict=True):
        (x0, y0), (x1, y1) = places[one], places[other]
        axes.plot([x0, x1], [y0, y1], color=style.FAINT, linewidth=1.2, linestyle=_LINK, zorder=3.5)
    moved = flows[(flows["users"] != flows["cluster"]) & (flows["work"] > 0)]
    for users, target, work in zip(moved["users"], moved["cluster"], moved["work"], strict=True):
        width = _WIDEST_ARROW * work / most
        if width >= _THINNEST_ARROW:
            _arrow(axes, places[users], places[target], radius[users], radius[target], width, colors[users])
    for cluster in clusters:
        own = flows[(flows["users"] == cluster) & (flows["cluster"] == cluster)]
        axes.add_patch(Circle(places[cluster], radius[cluster], color=colors[cluster], zorder=4, linewidth=0))
        _cluster_text(axes, cluster, places[cluster], radius[cluster], float(own["share"].sum()))
    if (flows["users"] == GRID_USERS).any() and flows.loc[flows["users"] == GRID_USERS, "work"].sum() > 0:
        axes.add_patch(Circle(places[GRID_USERS], radius[GRID_USERS], color=colors[GRID_USERS], zorder=4))


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    away: float,
    short: float,
    width: float,
    color: str,
) -> None:
    """A bent arrow from the rim of one circle to that of another."""
    (x0, y0), (x1, y1) = start, end
    length = float(np.hypot(x1 - x0, y1 - y0))
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    axes.add_patch(
        FancyArrowPatch(
            (x0 + away * ux, y0 + away * uy),
            (x1 - (short + 0.03) * ux, y1 - (short + 0.03) * uy),
            connectionstyle="arc3,rad=0.16",
            arrowstyle=f"-|>,head_width={0.8 + 0.45 * width},head_length={1.8 + 0.7 * width}",
            mutation_scale=1,
            linewidth=width,
            color=color,
            joinstyle="miter",
            shrinkA=0,
            shrinkB=0,
            zorder=3,
        )
    )


def _cluster_text(
    axes: Axes, cluster: str, place: tuple[float, float], radius: float, at_home: float
) -> None:
    """Name of a cluster and the share of its users' work that was done at home, outside the ring."""
    x, y = place
    length = float(np.hypot(x, y)) or 1.0
    far = radius + 0.06
    side = "center" if abs(x) < 0.3 else "left" if x > 0 else "right"
    edge = "center" if abs(x) >= 0.3 else "bottom" if y > 0 else "top"
    text = axes.text(
        x + far * x / length,
        y + far * y / length,
        f"{style.plain(cluster, 12)}\n{100 * at_home:.0f} % at home",
        ha=side,
        va=edge,
        fontsize=7,
    )
    # the panel has room for it
    text.set_in_layout(False)


def _map_legend(figure: Any, largest: float, most: float) -> None:
    """What lines and circles mean, with a scale of both."""
    widest = Line2D([], [], color=style.FAINT, linewidth=_WIDEST_ARROW, solid_capstyle="butt")
    entries = [
        (Line2D([], [], color=style.FAINT, linewidth=1.2, linestyle=_LINK), "fast link"),
        (widest, f"{style.number(most / _HOUR)} processor-hours"),
        (
            Line2D([], [], color=style.FAINT, linewidth=_WIDEST_ARROW / 4, solid_capstyle="butt"),
            "a quarter of that",
        ),
        (
            Line2D([], [], linestyle="", color=style.FAINT, marker="o", markersize=9),
            f"{largest:,.0f} processors",
        ),
        (Line2D([], [], color=style.FAINT, linewidth=2, marker=">", markersize=4), "work done elsewhere"),
        (Line2D([], [], color=style.INK, linewidth=2, marker=">", markersize=4), "by grid users"),
    ]
    style.entries_below(figure, entries)


# --- a departure ----------------------------------------------------------------------------------


@style.styled
def departure(study: xr.Dataset) -> style.Drawing:
    """What the processors of a cluster are used for while it leaves the grid and comes back.

    Parameters
    ----------
    study : xarray.Dataset
        What `stages.simulate_departure` writes.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns site, use ("local", "grid", "held", "proxies"), time [s] from the departure, and processors,
        or the number of proxies, from then on; tasks_moved, jobs_suspended and duration [s] of the leave.
    """
    cluster = str(study.attrs["site"])
    used = study["departure_used"].sel(cluster=cluster)
    time = study["change"].values.astype(np.float64)
    numbers = used.rename("processors").reset_coords(drop=True).to_dataframe().reset_index()
    proxies = pd.DataFrame(
        {"use": "proxies", "change": time, "processors": study["departure_proxies"].values}
    )
    numbers = pd.concat([numbers, proxies], ignore_index=True).rename(columns={"change": "time"})
    numbers = numbers.assign(site=cluster)[["site", "use", "time", "processors"]]
    processors = float(study["departure_processors"].sel(cluster=cluster))
    absence = float(study.attrs["absence"])
    stacks = {str(use): used.sel(use=use).values for use in used["use"].values}
    there = bool(np.any((time <= 0) & (np.append(time[1:], np.inf) > 0) & (stacks["grid"] > 0)))
    figure = style.new_figure(4.6)
    # Where nothing has to move, there is nothing to look at closely
    below = ["close", "proxies"] if there else ["proxies", "proxies"]
    grid = figure.subplot_mosaic([["whole", "whole"], [*below]], height_ratios=[1.25, 1.0])
    _stack(grid["whole"], time, stacks, processors)
    for axes in (grid["whole"], grid["proxies"]):
        style.set_axis(
            axes.xaxis, [time.min(), time.max()], "s", ticks=5 if there and axes is grid["proxies"] else 9
        )
        axes.set_xlim(time.min(), time.max())
        axes.axvspan(0, absence, color=style.PALE, alpha=0.5, zorder=0.1, linewidth=0)
    grid["whole"].set_title(
        style.plain(f"{cluster} is not in the grid for {style.duration(absence)} (shaded)", 60)
    )
    if there:
        _stack(grid["close"], time, stacks, processors)
        style.set_axis(grid["close"].xaxis, _ZOOM, "s", ticks=6)
        grid["close"].set_xlim(*_ZOOM)
        grid["close"].axvline(0, color=style.INK, linewidth=0.8)
        grid["close"].set_title(_what_happened(study))
    alive = study["departure_proxies"].values
    grid["proxies"].step(time, alive, where="post", color=style.INK, linewidth=1.0)
    grid["proxies"].set_ylim(0, max(float(alive.max()) * 1.1, 1.0))
    grid["proxies"].yaxis.set_major_locator(MaxNLocator(4, integer=True))
    grid["proxies"].set_title("Proxies on the cluster")
    for name in ("whole", "close") if there else ("whole",):
        grid[name].set_ylabel("processors")
        grid[name].set_xlabel("time since the cluster left")
    if there:
        grid["close"].set_xlabel(_until_gone(study))
    grid["proxies"].set_xlabel("time since the cluster left")
    lasting = np.diff(time) / (time[-1] - time[0])
    drawn = [use for use in _USES if there or lasting[stacks[use][:-1] > 0].sum() > _VISIBLE]
    entries = [(Patch(color=_USES[use][1]), _USES[use][0]) for use in drawn]
    style.entries_below(figure, entries)
    happened = {
        "tasks_moved": float(study["departure_tasks_moved"].sum()),
        "jobs_suspended": float(study["departure_jobs_suspended"]),
        "duration": float(study["departure_duration"]),
    }
    return figure, numbers.assign(**happened)


def _stack(axes: Axes, time: np.ndarray, stacks: Mapping[str, np.ndarray], processors: float) -> None:
    """Processors in use, one kind of use on top of another."""
    below = np.zeros(len(time))
    for use, (_, color) in _USES.items():
        above = below + stacks[use]
        axes.fill_between(time, below, above, step="post", color=color, linewidth=0)
        below = above
    axes.axhline(processors, color=style.FAINT, linewidth=0.8)
    axes.set_ylim(0, processors * 1.05)


def _what_happened(study: xr.Dataset) -> str:
    moved = float(study["departure_tasks_moved"].sum())
    suspended = float(study["departure_jobs_suspended"])
    return f"Tasks moved: {moved:.0f}, jobs suspended: {suspended:.0f}"


def _until_gone(study: xr.Dataset) -> str:
    seconds = float(study["departure_duration"])
    gone = "" if np.isnan(seconds) else f", the last grid job after {style.duration(seconds)}"
    return f"time since the cluster left{gone}"

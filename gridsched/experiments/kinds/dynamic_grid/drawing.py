"""Maps of dynamic grids: who runs whose jobs, and what happens where a cluster leaves."""

from __future__ import annotations

from collections.abc import Sequence
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

_SINCE = "time since the cluster left"


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
    processors = sizes.max([dim for dim in sizes.dims if dim != "group"]).to_numpy()
    marks = _marks(names, processors)
    across = min(len(cases), 2)
    down = -(-len(cases) // across)
    tall = _PANEL_HEIGHT if len(names) > 3 else 0.85 * _PANEL_HEIGHT
    figure = style.new_figure(tall * down + 0.5)
    most = float(numbers.loc[numbers["users"] != numbers["cluster"], "work"].max())
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, (case, flows) in zip(grid, numbers.groupby("scheduler", sort=False), strict=False):
        axes.set_title(style.plain(case))
        _map(axes, marks, flows, most)
    looks: list[tuple[dict[str, Any], str]] = [
        ({"linewidth": 1.2, "linestyle": _LINK}, "fast link"),
        (
            {"linewidth": _WIDEST_ARROW, "solid_capstyle": "butt"},
            f"{style.number(most / _HOUR)} processor-hours",
        ),
        ({"linewidth": _WIDEST_ARROW / 4, "solid_capstyle": "butt"}, "a quarter of that"),
        ({"linestyle": "", "marker": "o", "markersize": 9}, f"{processors.max():,.0f} processors"),
        ({"linewidth": 2, "marker": ">", "markersize": 4}, "work done elsewhere"),
        ({"linewidth": 2, "marker": ">", "markersize": 4, "color": style.INK}, "by grid users"),
    ]
    style.entries_below(
        figure, [(Line2D([], [], **{"color": style.FAINT, **look}), text) for look, text in looks]
    )
    return figure, numbers


def _flows(study: xr.Dataset, case: str, names: Sequence[str]) -> pd.DataFrame:
    """Work from the users of each cluster and of the grid to each cluster under a case."""
    mean = study[["flow_work", "adjacent"]].sel(scheduler=case)
    mean = mean.mean([dim for dim in mean.dims if dim != "group"])
    pairs = [(users, cluster) for users in (*names, GRID_USERS) for cluster in names]
    own = mean.sel(group=[f"{users} to {cluster}" for users, cluster in pairs])
    work = pd.DataFrame(pairs, columns=["users", "cluster"]).assign(
        work=own["flow_work"].to_numpy(), links=(own["adjacent"] > 0).to_numpy().astype(int)
    )
    total = work.groupby("users")["work"].transform("sum")
    work.insert(0, "scheduler", case)
    return work.assign(share=work["work"] / total.where(total > 0))


def _marks(names: Sequence[str], processors: np.ndarray) -> pd.DataFrame:
    """Place, radius and colour of clusters on a ring, the first at the top, clockwise; grid users inside."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    looks = style.scheme_styles(names)
    return pd.DataFrame(
        {
            "x": [*np.cos(angle), 0.0],
            "y": [*np.sin(angle), 0.0],
            "radius": [*(_LARGEST_CIRCLE * np.sqrt(processors / processors.max())), 0.05],
            "color": [*(looks[name].color for name in names), style.INK],
        },
        index=[*names, GRID_USERS],
    )


def _map(axes: Axes, marks: pd.DataFrame, flows: pd.DataFrame, most: float) -> None:
    """Links, arrows of work and clusters."""
    limits = marks["y"].min() - _HEADROOM, marks["y"].max() + _HEADROOM
    axes.set(xlim=(-_ROOM, _ROOM), ylim=limits, aspect="equal", anchor="N")
    for pair in flows[(flows["links"] > 0) & (flows["users"] < flows["cluster"])].to_dict("records"):
        ends = marks.loc[[pair["users"], pair["cluster"]]]
        axes.plot(ends["x"], ends["y"], color=style.FAINT, linewidth=1.2, linestyle=_LINK, zorder=3.5)
    moved = flows[(flows["users"] != flows["cluster"]) & (flows["work"] > 0)]
    moved = moved.assign(width=_WIDEST_ARROW * moved["work"] / most)
    for pair in moved[moved["width"] >= _THINNEST_ARROW].to_dict("records"):
        axes.add_patch(_arrow(marks.loc[pair["users"]], marks.loc[pair["cluster"]], pair["width"]))
    of_grid = flows.loc[flows["users"] == GRID_USERS, "work"].sum() > 0
    for name, mark in (marks if of_grid else marks.drop(GRID_USERS)).iterrows():
        circle = {"color": mark["color"], "zorder": 4, **({} if name == GRID_USERS else {"linewidth": 0})}
        axes.add_patch(Circle((mark["x"], mark["y"]), mark["radius"], **circle))
    for own in flows[flows["users"] == flows["cluster"]].to_dict("records"):
        _name(axes, style.plain(own["cluster"], 12), marks.loc[own["cluster"]], np.nan_to_num(own["share"]))


def _arrow(start: Any, end: Any, width: float) -> FancyArrowPatch:
    """A bent arrow from the rim of one circle to that of another."""
    places = np.array([(mark["x"], mark["y"]) for mark in (start, end)])
    way = (places[1] - places[0]) / np.hypot(*(places[1] - places[0]))
    return FancyArrowPatch(
        tuple(places[0] + start["radius"] * way),
        tuple(places[1] - (end["radius"] + 0.03) * way),
        connectionstyle="arc3,rad=0.16",
        arrowstyle=f"-|>,head_width={0.8 + 0.45 * width},head_length={1.8 + 0.7 * width}",
        mutation_scale=1,
        linewidth=width,
        color=start["color"],
        joinstyle="miter",
        shrinkA=0,
        shrinkB=0,
        zorder=3,
    )


def _name(axes: Axes, name: str, mark: Any, at_home: float) -> None:
    """Name of a cluster and the share of its users' work that was done at home, outside the ring."""
    x, y, far = mark["x"], mark["y"], 1 + mark["radius"] + 0.06
    beside = abs(x) >= 0.3
    text = axes.text(
        far * x,
        far * y,
        f"{name}\n{100 * at_home:.0f} % at home",
        ha=("left" if x > 0 else "right") if beside else "center",
        va="center" if beside else "bottom" if y > 0 else "top",
        fontsize=7,
    )
    # the panel has room for it
    text.set_in_layout(False)


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
    cluster, absence = str(study.attrs["site"]), float(study.attrs["absence"])
    study = study.assign_coords(change=study["change"].astype(np.float64))
    used, alive = study["departure_used"].sel(cluster=cluster), study["departure_proxies"]
    time = study["change"].to_numpy()
    moved, suspended, duration = (
        float(study[f"departure_{what}"].sum(skipna=False))
        for what in ("tasks_moved", "jobs_suspended", "duration")
    )
    numbers = (
        pd.concat([used.to_series(), alive.expand_dims(use=["proxies"]).to_series()])
        .rename_axis(["use", "time"])
        .reset_index(name="processors")
    )
    numbers.insert(0, "site", cluster)
    there = bool(used.sel(use="grid").sel(change=0, method="ffill") > 0)
    processors = float(study["departure_processors"].sel(cluster=cluster))
    figure = style.new_figure(4.6)
    # Where nothing has to move, there is nothing to look at closely
    grid = figure.subplot_mosaic(
        [["whole", "whole"], ["close" if there else "proxies", "proxies"]], height_ratios=[1.25, 1.0]
    )
    away = f"{cluster} is not in the grid for {style.duration(absence)} (shaded)"
    _stack(grid["whole"], used, processors, style.plain(away, 60))
    grid["proxies"].step(time, alive, where="post", color=style.INK, linewidth=1.0)
    most = max(float(alive.max()) * 1.1, 1.0)
    grid["proxies"].set(ylim=(0, most), title="Proxies on the cluster", xlabel=_SINCE)
    grid["proxies"].yaxis.set_major_locator(MaxNLocator(4, integer=True))
    for axes, ticks in ((grid["whole"], 9), (grid["proxies"], 5 if there else 9)):
        style.set_axis(axes.xaxis, [time.min(), time.max()], "s", ticks=ticks)
        axes.set_xlim(time.min(), time.max())
        axes.axvspan(0, absence, color=style.PALE, alpha=0.5, zorder=0.1, linewidth=0)
    if there:
        gone = "" if np.isnan(duration) else f", the last grid job after {style.duration(duration)}"
        _stack(grid["close"], used, processors, f"Tasks moved: {moved:.0f}, jobs suspended: {suspended:.0f}")
        style.set_axis(grid["close"].xaxis, _ZOOM, "s", ticks=6)
        grid["close"].set(xlim=_ZOOM, xlabel=f"{_SINCE}{gone}")
        grid["close"].axvline(0, color=style.INK, linewidth=0.8)
    lasting = np.diff(time) / (time[-1] - time[0])
    entries = [
        (Patch(color=color), text)
        for use, (text, color) in _USES.items()
        if there or lasting[used.sel(use=use)[:-1] > 0].sum() > _VISIBLE
    ]
    style.entries_below(figure, entries)
    return figure, numbers.assign(tasks_moved=moved, jobs_suspended=suspended, duration=duration)


def _stack(axes: Axes, used: xr.DataArray, processors: float, title: str) -> None:
    """Processors in use, one kind of use on top of another."""
    colors = [color for _, color in _USES.values()]
    axes.stackplot(used["change"], used.sel(use=list(_USES)), colors=colors, step="post", linewidth=0)
    axes.axhline(processors, color=style.FAINT, linewidth=0.8)
    axes.set(ylim=(0, processors * 1.05), title=title, xlabel=_SINCE, ylabel="processors")

"""Who ran whose jobs in one scenario of a grid study: work that stayed at home, and work that moved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch, Rectangle
from matplotlib.path import Path

from gridsched.errors import ConfigurationError
from gridsched.figures import grid_panels, panels, style

_BAND = 0.13
"""Inches of a row of a flow panel besides its bands: room for its label."""

_HEAD, _GAP, _FOOT, _PAGE = 0.18, 0.25, 0.65, 9.5
"""Inches: head of a flow panel and the gap above it, legend and title of the figure, height of a page."""

_BAR, _NARROWEST, _LONGEST_NAME = 0.07, 1.35, 0.95
"""Inches: width of the bars of clusters, of bands with bars and shares at least, of names at most."""

_STAYED = "#b9b9b9"


class _Slots(NamedTuple):
    """Where clusters stand in a flow panel: middle of each [inches from the top], inches per unit of work."""

    middle: dict[str, float]
    scale: float


@style.styled
def grid_flows(
    study: xr.Dataset, *, scenario: str, policy: str | None = None, schemes: Sequence[str] | None = None
) -> style.Drawing:
    """Who ran whose jobs: work from the clusters where it was submitted to those that ran it.

    A panel a scheme, homes on the left, clusters on the right, bands as wide as their work in
    processor-seconds of the cluster that ran it; all panels have the same scale. Grey bands stayed at home;
    the share of its work that did is written beside each home. Ideal schemes have no clusters and do not
    occur.

    Parameters
    ----------
    study : xarray.Dataset
        A grid study.
    scenario : str
        Scenario of the study.
    policy : str, optional
        Local policy; the first of the study if not given.
    schemes : sequence of str, optional
        Schemes to show; all that have flows if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, policy, scheme, home, cluster, metric, relative_to (empty), mean, low, high,
        replicates. Metrics are flow_work (processor-seconds), flow_jobs, work_share (flow_work as a fraction
        of the work of the home) and work_moved (fraction of all work that did not run at home; its home and
        cluster are empty).

    Raises
    ------
    ConfigurationError
        If the study has no such scenario, policy or scheme, or a scheme that is asked for has no flows.
    """
    chosen = grid_panels.of_scenario(study, scenario, policy)
    numbers = _flow_numbers(chosen)
    wanted = grid_panels.known(study, "scheme", numbers)
    if schemes is not None:
        wanted = _with_flows([panels.choose(study, "scheme", scheme) for scheme in schemes], wanted, scenario)
        numbers = numbers[numbers["scheme"].isin(wanted)]
    if not wanted:
        return grid_panels.nothing(f"no scheme was run on clusters in {style.plain(scenario)}"), numbers
    work = numbers[numbers["metric"] == "flow_work"]
    clusters = [m for m in panels.labels(study, "home") if m in {*work["home"], *work["cluster"]}]
    names = {cluster: grid_panels.fitting(cluster, _LONGEST_NAME) for cluster in clusters}
    down, across, height = _flow_layout(names.values(), len(wanted))
    slots = _slots(work, clusters, height)
    colors = {name: look.color for name, look in grid_panels.shade_looks(clusters).items()}
    figure, grid = _flow_panels(grid_panels.scenario_title(study, chosen), wanted, (down, across), height)
    for scheme, axes in grid.items():
        _flow_panel(axes, numbers[numbers["scheme"] == scheme], slots, colors, names)
    _flow_legend(figure, colors)
    return figure, numbers


def _flow_numbers(chosen: xr.Dataset) -> pd.DataFrame:
    work = chosen["flow_work"]
    of_home = work.sum("cluster", min_count=1)
    moved = work.where(work["home"] != work["cluster"], 0.0).where(work.notnull())
    flows = [grid_panels.means(chosen, metric) for metric in ("flow_work", "flow_jobs")]
    shares = grid_panels.ratio_rows(work, of_home, "work_share")
    everywhere = ["home", "cluster"]
    total = grid_panels.ratio_rows(
        moved.sum(everywhere, min_count=1), work.sum(everywhere, min_count=1), "work_moved"
    )
    numbers = pd.concat([*flows, shares, total], ignore_index=True)
    numbers[everywhere] = numbers[everywhere].fillna("")
    return numbers


def _with_flows(schemes: Sequence[str], known: Sequence[str], scenario: str) -> list[str]:
    for scheme in schemes:
        if scheme not in known:
            raise ConfigurationError(
                f"scheme {scheme!r} has no flows between clusters in {scenario}; those with flows are "
                f"{', '.join(known) or 'none'}"
            )
    return list(schemes)


def _slots(work: pd.DataFrame, clusters: Sequence[str], height: float) -> _Slots:
    """Rows as high as the most work that a cluster sends or runs under any scheme, and a label."""
    sides = [
        work.groupby(["scheme", side])["mean"].sum().groupby(level=1).max() for side in ("home", "cluster")
    ]
    most = pd.concat(sides, axis=1).max(axis=1).reindex(list(clusters)).fillna(0.0)
    scale = (height - _BAND * len(clusters)) / max(most.sum(), 1e-9)
    heights = _BAND + scale * most
    middle = (heights.cumsum() - heights / 2).tolist()
    return _Slots(dict(zip(clusters, middle, strict=True)), scale)


def _flow_layout(names: Collection[str], schemes: int) -> tuple[int, int, float]:
    """Rows and columns of panels, and inches of a panel: room for bands between the names, all on a page."""
    most = int(style.WIDTH // (2 * _widest(names) + _NARROWEST))
    most = min(max(most, 1), 3 if schemes < 10 else 4)
    down = -(-schemes // most)
    usual, least = 0.7 + 0.26 * len(names), 0.4 + _BAND * len(names)
    return down, -(-schemes // down), max(min(usual, (_PAGE - _FOOT) / down - _HEAD - _GAP), least)


def _flow_panels(
    title: str, schemes: Sequence[str], grid: tuple[int, int], height: float
) -> tuple[Figure, dict[str, Axes]]:
    """A panel a scheme, with inches as coordinates, downwards."""
    down, across = grid
    figure = style.new_figure(down * (height + _HEAD + _GAP) + _FOOT)
    figure.suptitle(title, x=0.01, ha="left", fontsize=grid_panels.TITLE_SIZE, fontweight="bold")
    flat = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in flat:
        axes.set_axis_off()
    width = style.WIDTH / across - 0.15
    for axes, scheme in zip(flat, schemes, strict=False):
        axes.set(xlim=(0, width), ylim=(height, -_HEAD))
        axes.set_title(grid_panels.fitting(scheme, width - 0.2, grid_panels.TITLE_SIZE, "bold"))
    return figure, dict(zip(schemes, flat, strict=False))


def _widest(names: Iterable[str]) -> float:
    """Inches of the longest name, with a little room."""
    return max(grid_panels.text_width(name) for name in names) + 0.05


def _flow_panel(
    axes: Axes,
    rows: pd.DataFrame,
    slots: _Slots,
    colors: Mapping[str, str],
    names: Mapping[str, str],
) -> None:
    """Bars of homes and clusters, bands between them, names, and the shares that stayed."""
    work = rows[rows["metric"] == "flow_work"].set_index(["home", "cluster"])["mean"]
    stayed = rows[(rows["metric"] == "work_share") & (rows["home"] == rows["cluster"])]
    moved = float(rows.loc[rows["metric"] == "work_moved", "mean"].sum())
    room = _widest(names.values())
    left, right = room + 0.46, axes.get_xlim()[1] - room - 0.08
    axes.text(0, -_HEAD, f"{_percent(moved)} of the work moved", va="top", fontsize=7)
    bands = work[work > 0].sort_values(ascending=False, kind="stable").index
    starts, ends = _stacked(work, slots, "home"), _stacked(work, slots, "cluster")
    for home, cluster in sorted(bands, key=lambda band: band[0] != band[1]):
        width = slots.scale * work[home, cluster]
        color = _STAYED if home == cluster else colors[home]
        _band(axes, (left, starts[home, cluster]), (right, ends[home, cluster]), width, color)
    shares = stayed.set_index("home")["mean"].dropna()
    for cluster, middle in slots.middle.items():
        for x, side in ((left - _BAR, "home"), (right, "cluster")):
            total = work[work.index.get_level_values(side) == cluster].sum() * slots.scale
            corner = (x, middle - total / 2)
            axes.add_patch(Rectangle(corner, _BAR, total, color=colors[cluster], linewidth=0.4))
        share = _percent(shares[cluster]) if cluster in shares else ""
        _cluster_texts(axes, names[cluster], share, (left - _BAR, right + _BAR), middle)


def _cluster_texts(axes: Axes, name: str, share: str, sides: tuple[float, float], y: float) -> None:
    """Name of a cluster on both sides, and the share that stayed beside its bar on the left."""
    left, right = sides
    for x, text, side in (
        (left - 0.04, share, "right"),
        (left - 0.41, name, "right"),
        (right + 0.04, name, "left"),
    ):
        axes.text(x, y, text, ha=side, va="center_baseline", fontsize=7)


def _percent(share: float) -> str:
    """Whole per cent, but no 0 or 100 where it is not exactly that."""
    text = f"{100 * share:.0f}"
    if text in ("0", "100") and share not in (0.0, 1.0):
        text = "<1" if share < 0.5 else ">99"
    return f"{text} %"


def _stacked(work: pd.Series, slots: _Slots, side: str) -> dict[tuple[str, str], float]:
    """Top of each band where it leaves its home, or reaches its cluster: one below the other, centred."""
    tops: dict[tuple[str, str], float] = {}
    for cluster, middle in slots.middle.items():
        widths = work[work.index.get_level_values(side) == cluster] * slots.scale
        edges = middle - widths.sum() / 2 + np.append(0.0, widths.cumsum())
        tops.update(zip(widths.index, edges.tolist(), strict=False))
    return tops


def _band(axes: Axes, start: tuple[float, float], end: tuple[float, float], width: float, color: str) -> None:
    """A curved band that leaves and arrives level; its outline keeps the thinnest visible."""
    (x0, y0), (x1, y1) = start, end
    middle = (x0 + x1) / 2
    upper = [(x0, y0), (middle, y0), (middle, y1), (x1, y1)]
    lower = [(x1, y1 + width), (middle, y1 + width), (middle, y0 + width), (x0, y0 + width)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    path = Path([*upper, *lower, (x0, y0)], codes)
    axes.add_patch(PathPatch(path, facecolor=color, edgecolor=color, alpha=0.75, linewidth=0.4))


def _flow_legend(figure: Figure, colors: Mapping[str, str]) -> None:
    moved = Patch(facecolor=next(iter(colors.values())), alpha=0.75, linewidth=0)
    stayed = Patch(facecolor=_STAYED, alpha=0.75, linewidth=0)
    figure.legend(
        [stayed, moved],
        ["ran at home, with the share of the home's work", "moved, in the colour of its home"],
        loc="outside lower center",
        ncols=2,
        title="left: where jobs were submitted; right: where they ran; width: processor-seconds",
        title_fontsize=7.5,
    )

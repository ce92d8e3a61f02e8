"""Gantt chart of a small run on nodes: a row for each node, with its processors and its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from gridsched.errors import ConfigurationError
from gridsched.figures import gantt_blocks, style
from gridsched.figures.gantt import chart
from gridsched.figures.gantt_blocks import CORES, GanttBlock, Lane
from gridsched.metrics.nodes import WHOLE_GPU
from gridsched.nodes import Outage

MAX_NODES = 40
"""Most nodes that a Gantt chart can show legibly."""

_ROW, _LANE, _APART, _GAP = 0.34, 0.12, 0.025, 0.09
"""Inches: processors of a node, one of its GPUs, what is between them, and between two nodes."""

_HATCHES = {Outage.DOWN: "xxxx", Outage.MAINTENANCE: "////", Outage.DRAINED: "...."}
_GPUS: dict[str, Any] = {"facecolor": "#f1f1f1", "edgecolor": style.FAINT, "linewidth": 0.6}

Spans = dict[int, tuple[float, float]]
"""Lower and upper end of each node that is shown [inches from the bottom], the first on top."""


def has_nodes(run: xr.Dataset) -> bool:
    """Whether a run says which nodes jobs had, and it matters: there are several, or they have GPUs."""
    return "piece_segment" in run and bool(
        run.sizes["node"] > run.sizes["cluster"] or run["node_gpus"].to_numpy().any()
    )


@style.styled
def gantt_of_nodes(
    run: xr.Dataset, *, nodes: Sequence[str] = (), until: float | None = None
) -> style.Drawing:
    """Gantt chart by node: time from left to right, a row for each node, jobs as rectangles.

    The height of a row is the processors of its node, that of a rectangle those that the job has. Which
    processors these are is not known; it is drawn on the lowest that are free. GPUs are known: each has a
    lane above the processors, in which a job takes the share of the GPU that it has. Times at which a node
    is out are hatched.

    Parameters
    ----------
    run : xarray.Dataset
        A run with pieces, of at most 60 jobs.
    nodes : sequence of str
        Names of the nodes that are shown, at most 40; all by default.
    until : float, optional
        Time [s] at which the axis ends; the last end if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns cluster, node, job_number, resource ("cores", "gpu0" ...), first, amount (processors, or
        thousandths of the GPU), start_time, end_time: one row a rectangle.

    Raises
    ------
    ConfigurationError
        If there are too many jobs or nodes, or a node is unknown.
    """
    shown = _shown(run, nodes)
    spans, lanes = _layout(run, shown)
    figure, (axes,) = chart(run, until, [spans[shown[0]][1]], 0.9)
    names = [str(name) for name in run["node_name"].to_numpy()]
    packed = gantt_blocks.packed(run, _pieces(run, spans), lanes, names)
    blocks = sorted(packed, key=lambda block: shown.index(block.cluster))
    job_numbers = run["job_number"].to_numpy()
    _frame(axes, spans, lanes, names)
    out = _outages(axes, run, spans)
    gantt_blocks.draw(axes, blocks, job_numbers, width=0.5, nodes=names)
    with_gpus = any(resource != CORES for _, resource in lanes)
    entries = [(Patch(**_GPUS), "GPUs, a lane each")] if with_gpus else []
    entries += [(Patch(**_hatched(kind)), kind.name.lower()) for kind in out]
    style.entries_below(figure, entries)
    # Rectangles are labelled last: what fits depends on the final layout.
    figure.draw_without_rendering()
    gantt_blocks.label(axes, [block for block in blocks if block.resource == CORES], job_numbers)
    return figure, _table(run, blocks, names)


def _shown(run: xr.Dataset, wanted: Sequence[str]) -> list[int]:
    """Indices of the nodes that are shown."""
    names = [str(name) for name in run["node_name"].to_numpy()]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ConfigurationError(f"no node {unknown[0]!r}; there are {', '.join(names[:6])} ...")
    shown = [names.index(name) for name in wanted] if wanted else list(range(len(names)))
    if len(shown) > MAX_NODES:
        raise ConfigurationError(
            f"a Gantt chart shows at most {MAX_NODES} nodes, these are {len(shown)}: name some, such as "
            f"nodes={names[:2]}"
        )
    return shown


def _layout(run: xr.Dataset, shown: list[int]) -> tuple[Spans, dict[tuple[int, str], Lane]]:
    """Where nodes are, and lanes: of the processors of each, and above of its GPUs."""
    cores, gpus = run["node_cores"].to_numpy(), run["node_gpus"].to_numpy()
    spans: Spans = {}
    lanes, base = {}, 0.0
    for node in reversed(shown):
        lanes[node, CORES] = Lane(base, _ROW / int(cores[node]), int(cores[node]))
        top = base + _ROW
        for gpu in range(gpus[node]):
            lanes[node, f"gpu{gpu}"] = Lane(base + _ROW + _APART + _LANE * gpu, _LANE / WHOLE_GPU, WHOLE_GPU)
            top = base + _ROW + _APART + _LANE * (gpu + 1)
        spans[node] = (base, top)
        base = top + _GAP
    return spans, lanes


def _pieces(run: xr.Dataset, spans: Spans) -> Iterator[tuple[int, int, str, int]]:
    """What segments have of the nodes that are shown: processors, and the same share of some GPUs."""
    columns = ("segment", "node", "cores", "devices", "share")
    rows = zip(*(run[f"piece_{name}"].to_numpy().tolist() for name in columns), strict=True)
    for segment, node, cores, devices, share in rows:
        if node in spans:
            yield segment, node, CORES, cores
            gpus = [gpu for gpu in range(devices.bit_length()) if devices >> gpu & 1]
            yield from ((segment, node, f"gpu{gpu}", share) for gpu in gpus)


def _table(run: xr.Dataset, blocks: Sequence[GanttBlock], names: list[str]) -> pd.DataFrame:
    of_nodes = {"cluster": "node", "first_processor": "first", "processors": "amount"}
    table = gantt_blocks.table(blocks, names, run["job_number"].to_numpy()).rename(columns=of_nodes)
    clusters = run["cluster"].to_numpy()[run["node_cluster"].to_numpy()]
    table.insert(0, "cluster", [str(clusters[block.cluster]) for block in blocks])
    table.insert(3, "resource", [block.resource for block in blocks])
    return table.drop(columns="late")


# --- drawing --------------------------------------------------------------------------------------


def _frame(axes: Axes, spans: Spans, lanes: Mapping[tuple[int, str], Lane], names: list[str]) -> None:
    """Let the y axis be nodes, with lines around each, and lanes of GPUs on another ground."""
    left, right = axes.get_xlim()
    bases, tops = np.array([*spans.values()]).T
    axes.set_ylim(-_GAP / 2, tops[-1] + _GAP / 2)
    axes.set_yticks((bases + tops) / 2, [style.plain(names[node], 18) for node in spans])
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    axes.grid(visible=False, axis="y")
    axes.spines[["left", "bottom"]].set_visible(False)
    whole: dict[str, Any] = {"width": right - left, "left": left, "align": "edge"}
    axes.barh(bases + _ROW, height=tops - bases - _ROW, **whole, **_GPUS | {"linewidth": 0})
    lines = [*(bases + _ROW), *(lane.bottom for lane in lanes.values())]
    axes.hlines(lines, left, right, color=style.PALE, linewidth=0.6, zorder=1)
    axes.barh(bases, height=tops - bases, fill=False, edgecolor=style.FAINT, linewidth=0.6, **whole)


def _hatched(kind: Outage) -> dict[str, Any]:
    """How the time is drawn in which a node is out."""
    return {"facecolor": "none", "edgecolor": style.FAINT, "hatch": _HATCHES[kind], "linewidth": 0}


def _outages(axes: Axes, run: xr.Dataset, spans: Spans) -> list[Outage]:
    """Hatch the times at which nodes are out; kinds of outages that are seen."""
    seen = set()
    left, right = axes.get_xlim()
    columns = (run[f"outage_{name}"].to_numpy().tolist() for name in ("node", "start", "end", "kind"))
    for node, start, end, kind in zip(*columns, strict=True):
        begin, back = max(start, left), min(end, right)
        if node in spans and begin < back:
            seen.add(Outage(kind))
            base, top = spans[node]
            looks = _hatched(Outage(kind))
            axes.add_patch(Rectangle((begin, base), back - begin, top - base, zorder=1.5, **looks))
    return sorted(seen)

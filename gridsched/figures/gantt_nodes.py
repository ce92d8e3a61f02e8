"""Gantt chart of a small run on nodes: a row for each node, with its processors and its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.figures import gantt_blocks, hover, style
from gridsched.figures.gantt import (
    check_jobs,
    places,
    submitted_levels,
    submitted_panel,
    time_limits,
)
from gridsched.nodes import Outage

MAX_NODES = 40
"""Most nodes that a Gantt chart can show legibly."""

CORES = "cores"
"""Resource of a block that is of processors; GPUs are called gpu0, gpu1 ..."""

_ROW, _LANE, _APART, _GAP = 0.34, 0.12, 0.025, 0.09
"""Inches: processors of a node, one of its GPUs, what is between them, and between two nodes."""

_WHOLE = 1000
_HATCHES = {Outage.DOWN: "xxxx", Outage.MAINTENANCE: "////", Outage.DRAINED: "...."}
_TINT = "#f1f1f1"


@dataclass(frozen=True)
class NodeBlock:
    """What a job had of a node: units `first` to `first + amount - 1` of processors or of one GPU."""

    node: int
    job: int
    resource: str
    first: int
    amount: int
    start: int
    end: int


def has_nodes(run: xr.Dataset) -> bool:
    """Whether a run says which nodes jobs had, and it matters: there are several, or they have GPUs."""
    if "piece_segment" not in run:
        return False
    return run.sizes["node"] > run.sizes["cluster"] or bool(run["node_gpus"].to_numpy().any())


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
    check_jobs(run)
    shown = _shown(run, nodes)
    blocks = [block for node in shown for block in _blocks(run, node)]
    limits = time_limits(run)
    limits[1] = max(limits[1], until or 0.0)
    levels = submitted_levels(run, limits)
    strip = 0.1 + 0.12 * (1 + max(levels, default=0))
    gpus = run["node_gpus"].to_numpy()[shown]
    rows = _Rows(shown, gpus.tolist())
    figure = style.new_figure(strip + rows.height + 0.9)
    grid = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [strip, rows.height]})
    upper, lower = grid
    style.set_axis(lower.xaxis, limits, "s", ticks=8, floor=limits[0])
    names = [str(name) for name in run["node_name"].to_numpy()]
    _frame(lower, run, rows, names)
    out = _outages(lower, run, rows, lower.get_xlim())
    _draw(lower, run, rows, blocks, names)
    submitted_panel(upper, run, levels)
    lower.set_xlabel("time")
    _legend(figure, out, bool(gpus.any()))
    # Rectangles are labelled last: what fits depends on the final layout.
    figure.draw_without_rendering()
    numbers = run["job_number"].to_numpy()
    for block in blocks:
        if block.resource == CORES:
            low, height = rows.place(run, block)
            gantt_blocks.label_in(
                lower, (block.start, block.end), (low, low + height), str(numbers[block.job])
            )
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


class _Rows:
    """Where nodes are: processors of each from `base` on, lanes of its GPUs above; inches from the bottom."""

    def __init__(self, shown: list[int], gpus: list[int]) -> None:
        self.shown = shown
        sizes = np.array([_ROW + (_APART + _LANE * count if count else 0) for count in gpus])
        # the first node is on top
        tops = np.cumsum((sizes + _GAP)[::-1])[::-1] - _GAP
        self.base = dict(zip(shown, (tops - sizes).tolist(), strict=True))
        self.top = dict(zip(shown, tops.tolist(), strict=True))
        self.height = float(tops[0]) if len(tops) else _ROW

    def lanes(self, node: int) -> float:
        """Lower end of the first GPU of a node."""
        return float(self.base[node]) + _ROW + _APART

    def place(self, run: xr.Dataset, block: NodeBlock) -> tuple[float, float]:
        """Lower end and height of a block."""
        base = self.base[block.node]
        if block.resource == CORES:
            unit = _ROW / int(run["node_cores"].to_numpy()[block.node])
            return base + unit * block.first, unit * block.amount
        lane = self.lanes(block.node) + _LANE * int(block.resource.removeprefix("gpu"))
        return lane + _LANE * block.first / _WHOLE, _LANE * block.amount / _WHOLE


# --- which processors and GPUs --------------------------------------------------------------------


def _blocks(run: xr.Dataset, node: int) -> Iterator[NodeBlock]:
    """Rectangles of a node: on the lowest processors that are free, and on its GPUs."""
    pieces = np.flatnonzero(run["piece_node"].to_numpy() == node)
    segment = run["piece_segment"].to_numpy()[pieces]
    start, end = run["segment_start"].to_numpy()[segment], run["segment_end"].to_numpy()[segment]
    never = np.iinfo(np.int64).min
    cores = np.full(int(run["node_cores"].to_numpy()[node]), never)
    gpus = np.full((int(run["node_gpus"].to_numpy()[node]), _WHOLE), never)
    # A segment of no duration frees what it has for others that start at the same instant.
    for k in np.lexsort((end > start, start)).tolist():
        piece, job = pieces[k], int(run["segment_job"].to_numpy()[segment[k]])
        times = int(start[k]), int(end[k])
        lanes: list[tuple[str, NDArray[np.int64], int]] = [
            (CORES, cores, int(run["piece_cores"].to_numpy()[piece]))
        ]
        bits, share = (int(run[f"piece_{name}"].to_numpy()[piece]) for name in ("devices", "share"))
        lanes += [(f"gpu{d}", lane, share) for d, lane in enumerate(gpus) if bits >> d & 1]
        for resource, free_at, wanted in lanes:
            for first, amount in places(free_at <= times[0], wanted):
                free_at[first : first + amount] = times[1]
                yield NodeBlock(node, job, resource, first, amount, *times)


def _table(run: xr.Dataset, blocks: Sequence[NodeBlock], names: list[str]) -> pd.DataFrame:
    columns = ["cluster", "node", "job_number", "resource", "first", "amount", "start_time", "end_time"]
    clusters = [str(name) for name in run["cluster"].to_numpy()]
    owner, numbers = run["node_cluster"].to_numpy(), run["job_number"].to_numpy()
    rows = [
        (
            clusters[owner[b.node]],
            names[b.node],
            int(numbers[b.job]),
            b.resource,
            b.first,
            b.amount,
            b.start,
            b.end,
        )
        for b in blocks
    ]
    return pd.DataFrame(rows, columns=columns)


# --- drawing --------------------------------------------------------------------------------------


def _frame(axes: Axes, run: xr.Dataset, rows: _Rows, names: list[str]) -> None:
    """Let the y axis be nodes, with lines around each, and lanes of GPUs on another ground."""
    left, right = axes.get_xlim()
    axes.set_ylim(-_GAP / 2, rows.height + _GAP / 2)
    centres = [(rows.base[node] + rows.top[node]) / 2 for node in rows.shown]
    axes.set_yticks(centres, [style.plain(names[node], 18) for node in rows.shown])
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    axes.grid(visible=False, axis="y")
    axes.spines[["left", "bottom"]].set_visible(False)
    for node in rows.shown:
        base, top = rows.base[node], rows.top[node]
        gpus = int(run["node_gpus"].to_numpy()[node])
        axes.add_patch(
            Rectangle((left, base + _ROW), right - left, top - base - _ROW, color=_TINT, linewidth=0)
        )
        lines = [base, base + _ROW, *(base + _ROW + _LANE * (d + 1) for d in range(gpus))]
        axes.hlines(lines, left, right, color=style.PALE, linewidth=0.6, zorder=1)
        axes.add_patch(
            Rectangle(
                (left, base), right - left, top - base, fill=False, edgecolor=style.FAINT, linewidth=0.6
            )
        )


def _outages(axes: Axes, run: xr.Dataset, rows: _Rows, limits: tuple[float, float]) -> list[Outage]:
    """Hatch the times at which nodes are out; kinds of outages that are seen."""
    seen = set()
    columns = [run[f"outage_{name}"].to_numpy().tolist() for name in ("node", "start", "end", "kind")]
    for node, start, end, kind in zip(*columns, strict=True):
        begin, back = max(start, limits[0]), min(end, limits[1])
        if node not in rows.base or begin >= back:
            continue
        seen.add(Outage(kind))
        patch = Rectangle(
            (begin, rows.base[node]),
            back - begin,
            rows.top[node] - rows.base[node],
            facecolor="none",
            edgecolor=style.FAINT,
            hatch=_HATCHES[Outage(kind)],
            linewidth=0,
            zorder=1.5,
        )
        axes.add_patch(patch)
    return sorted(seen)


def _draw(axes: Axes, run: xr.Dataset, rows: _Rows, blocks: Sequence[NodeBlock], names: list[str]) -> None:
    """Rectangles in the colours of their jobs, which say what they are."""
    numbers = run["job_number"].to_numpy()
    rectangles, texts = [], []
    for block in blocks:
        low, height = rows.place(run, block)
        rectangles.append(Rectangle((block.start, low), block.end - block.start, height))
        what = f"{block.amount:,} processors"
        if block.resource != CORES:
            part = "" if block.amount == _WHOLE else f"{block.amount / 10:g} % of "
            what = f"{part}GPU {block.resource.removeprefix('gpu')}"
        length = style.duration(block.end - block.start)
        texts.append(
            f"job {numbers[block.job]}: {what} of {names[block.node]}\n"
            f"{block.start:,} to {block.end:,} s, runs {length}"
        )
    drawn = PatchCollection(
        rectangles,
        facecolor=[gantt_blocks.color(block.job) for block in blocks],
        edgecolor=style.INK,
        linewidth=0.5,
        zorder=2,
    )
    hover.say(drawn, texts)
    axes.add_collection(drawn, autolim=False)


def _legend(figure: Figure, out: Sequence[Outage], with_gpus: bool) -> None:
    """Say what hatches and lanes are."""
    words = {Outage.DOWN: "down", Outage.MAINTENANCE: "maintenance", Outage.DRAINED: "drained"}
    entries: list[tuple[Patch, str]] = []
    if with_gpus:
        entries.append((Patch(facecolor=_TINT, edgecolor=style.FAINT, linewidth=0.6), "GPUs, a lane each"))
    entries += [
        (
            Patch(facecolor="none", edgecolor=style.FAINT, hatch=_HATCHES[kind], linewidth=0),
            words[kind],
        )
        for kind in out
    ]
    style.entries_below(figure, entries)

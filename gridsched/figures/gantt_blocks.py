"""What Gantt charts share: rectangles of jobs, where they are, what they say, and numbers where they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from colorsys import hls_to_rgb
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.figures import hover, style
from gridsched.metrics.nodes import WHOLE_GPU

CORES = "cores"
"""Resource of a rectangle that is of processors; GPUs are called gpu0, gpu1 ..."""

_GOLDEN = 0.618034
"""Share of the circle of hues from one job to the next: no two of some dozens are the same."""


class Lane(NamedTuple):
    """Processors of a cluster or a node, or thousandths of a GPU, drawn one upon the other."""

    bottom: float = 0.0
    unit: float = 1.0
    size: int = 0


class GanttBlock(NamedTuple):
    """A rectangle of the chart: units `first` to `first + processors - 1` of a lane from start to end.

    The lane is that of a resource of a cluster, or of a node where nodes are drawn.
    """

    cluster: int
    job: int
    first: int
    processors: int
    start: int
    end: int
    late: bool = False
    resource: str = CORES
    lane: Lane = Lane()

    @property
    def rows(self) -> tuple[float, float]:
        """Where it begins and ends upwards."""
        low = self.lane.bottom + self.lane.unit * self.first
        return low, low + self.lane.unit * self.processors


# --- which processors -----------------------------------------------------------------------------


def packed(
    run: xr.Dataset,
    pieces: Iterable[tuple[int, int, str, int]],
    lanes: Mapping[tuple[int, str], Lane],
    names: Sequence[str],
) -> Iterator[GanttBlock]:
    """Rectangles of pieces, on the lowest units of their lanes that are free.

    Parameters
    ----------
    run : xarray.Dataset
        A run that names clusters.
    pieces : iterable of tuples
        Segment, cluster or node, resource, and how many units of it the segment has there.
    lanes : mapping
        Lane of each resource of each cluster or node.
    names : sequence of str
        Names of the clusters or nodes.

    Raises
    ------
    ConfigurationError
        If more is used than there is.
    """
    start, end, job = (run[f"segment_{name}"].to_numpy().tolist() for name in ("start", "end", "job"))
    free_at = {key: np.full(lane.size, np.iinfo(np.int64).min) for key, lane in lanes.items()}
    # A segment of no duration frees what it has for others that start at the same instant.
    ordered = sorted(pieces, key=lambda piece: (start[piece[0]], end[piece[0]] > start[piece[0]]))
    for segment, owner, resource, wanted in ordered:
        lane = free_at[owner, resource]
        free = lane <= start[segment]
        if free.sum() < wanted:
            raise ConfigurationError(
                f"{names[owner]} has {free.sum()} free {resource} at {start[segment]} s, but job "
                f"{job[segment]} runs on {wanted}: the run is not a valid schedule"
            )
        for first, count in _places(free, wanted):
            lane[first : first + count] = end[segment]
            where = (owner, job[segment], first, count, start[segment], end[segment])
            yield GanttBlock(*where, resource=resource, lane=lanes[owner, resource])


def _places(free: NDArray[np.bool_], wanted: int) -> list[tuple[int, int]]:
    """The lowest gap that is wide enough as (first, count); else the lowest free units in pieces."""
    fitting = [(first, wanted) for first, width in runs(free) if width >= wanted]
    return fitting[:1] or runs(free & (np.cumsum(free) <= wanted))


def runs(chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Neighbouring processors that are chosen, as (first, count), the lowest first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return [(int(first), int(beyond - first)) for first, beyond in edges.reshape(-1, 2)]


def table(blocks: Iterable[GanttBlock], names: Sequence[str], job_numbers: NDArray[np.int64]) -> pd.DataFrame:
    """One row a rectangle, with the names of clusters and the numbers of jobs."""
    columns = ["cluster", "job_number", "first_processor", "processors", "start_time", "end_time", "late"]
    rows = [
        (names[b.cluster], int(job_numbers[b.job]), b.first, b.processors, b.start, b.end, b.late)
        for b in blocks
    ]
    return pd.DataFrame(rows, columns=columns)


# --- drawing --------------------------------------------------------------------------------------


def color(job: int) -> str:
    """Colour of a job; no other of a small run has it."""
    lightness = (0.72, 0.8, 0.87)[job % 3]
    return str(to_hex(hls_to_rgb((0.58 + job * _GOLDEN) % 1.0, lightness, 0.6)))


def frame(axes: Axes, processors: int, title: str) -> None:
    """Make the y axis the processors of a cluster."""
    axes.set(ylim=(0, processors), ylabel="processors", title=title)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.spines["top"].set_visible(True)


def draw(
    axes: Axes,
    blocks: Sequence[GanttBlock],
    job_numbers: NDArray[np.int64],
    edge: str = style.INK,
    width: float = 0.6,
    *,
    nodes: Sequence[str] = (),
) -> None:
    """Rectangles in the colours of their jobs, which say what they are, and where if there are nodes."""
    drawn = PatchCollection(
        [Rectangle((b.start, b.rows[0]), b.end - b.start, b.rows[1] - b.rows[0]) for b in blocks],
        facecolor=[color(b.job) for b in blocks],
        edgecolor=edge,
        linewidth=width,
        zorder=2,
    )
    texts = [
        f"job {job_numbers[b.job]}: {_amount(b)}{f' of {nodes[b.cluster]}' if nodes else ''}\n"
        f"{b.start:,} to {b.end:,} s, runs {style.duration(b.end - b.start)}"
        + ("\nends after its deadline" if b.late else "")
        for b in blocks
    ]
    hover.say(drawn, texts)
    axes.add_collection(drawn, autolim=False)


def _amount(block: GanttBlock) -> str:
    """What a job has, in words."""
    if block.resource == CORES:
        return f"{block.processors:,} processors"
    share = "" if block.processors == WHOLE_GPU else f"{100 * block.processors / WHOLE_GPU:g} % of "
    return f"{share}GPU {block.resource.removeprefix('gpu')}"


def label(
    axes: Axes, blocks: Iterable[GanttBlock], job_numbers: NDArray[np.int64], *, may_stand: bool = False
) -> None:
    """Write job numbers where they fit, smaller in small rectangles, upright in narrow ones if they may."""
    for block in blocks:
        text, times = str(job_numbers[block.job]), (block.start, block.end)
        corners = axes.transData.transform(np.column_stack([times, block.rows]))
        width, height = (corners[1] - corners[0]) * 72 / axes.figure.dpi
        upright = may_stand and width < height and width < 0.7 * 7 * len(text)
        along, across = (height, width) if upright else (width, height)
        size = min(7.0, across * 0.9, along / (0.7 * len(text)))
        if size >= 3.5:
            turn, middle = (90, "center") if upright else (0, "center_baseline")
            place = (sum(times) / 2, sum(block.rows) / 2)
            axes.text(*place, text, fontsize=size, rotation=turn, ha="center", va=middle)

"""What Gantt charts share: rectangles of jobs, the panel of a cluster, and numbers of jobs where they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gridsched.figures import hover, style

_GOLDEN = 0.618034
"""Share of the circle of hues from one job to the next: no two of some dozens are the same."""


@dataclass(frozen=True)
class GanttBlock:
    """A rectangle of the chart: processors `first` to `first + processors - 1` from start to end."""

    cluster: int
    job: int
    first: int
    processors: int
    start: int
    end: int
    late: bool = False


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


def color(job: int) -> str:
    """Colour of a job; no other of a small run has it."""
    lightness = (0.72, 0.8, 0.87)[job % 3]
    return str(to_hex(hls_to_rgb((0.58 + job * _GOLDEN) % 1.0, lightness, 0.6)))


def frame(axes: Axes, processors: int, title: str) -> None:
    """Make the y axis the processors of a cluster."""
    axes.set_ylim(0, processors)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylabel("processors")
    axes.set_title(title)
    axes.spines["top"].set_visible(True)


def draw(
    axes: Axes,
    blocks: Sequence[GanttBlock],
    job_numbers: NDArray[np.int64],
    edge: str = style.INK,
    width: float = 0.6,
) -> None:
    """Rectangles in the colours of their jobs, which say what they are."""
    rectangles = [Rectangle((b.start, b.first), b.end - b.start, b.processors) for b in blocks]
    faces = [color(block.job) for block in blocks]
    drawn = PatchCollection(rectangles, facecolor=faces, edgecolor=edge, linewidth=width)
    hover.say(
        drawn,
        [
            f"job {job_numbers[b.job]}: {b.processors:,} processors\n"
            f"{b.start:,} to {b.end:,} s, runs {style.duration(b.end - b.start)}"
            + ("\nends after its deadline" if b.late else "")
            for b in blocks
        ],
    )
    axes.add_collection(drawn, autolim=False)


def label(
    axes: Axes, blocks: Iterable[GanttBlock], job_numbers: NDArray[np.int64], *, may_stand: bool = False
) -> None:
    """Write job numbers where they fit, smaller in small rectangles, upright in narrow ones if they may."""
    for block in blocks:
        rows = (block.first, block.first + block.processors)
        label_in(axes, (block.start, block.end), rows, str(job_numbers[block.job]), may_stand=may_stand)


def label_in(
    axes: Axes,
    times: tuple[float, float],
    rows: tuple[float, float],
    text: str,
    *,
    may_stand: bool = False,
) -> None:
    """Write a text into a rectangle if it fits."""
    corners = axes.transData.transform(np.column_stack([times, rows]))
    width, height = (corners[1] - corners[0]) * 72 / axes.figure.dpi
    upright = may_stand and width < height and width < 0.7 * 7 * len(text)
    along, across = (height, width) if upright else (width, height)
    size = min(7.0, across * 0.9, along / (0.7 * len(text)))
    if size < 3.5:
        return
    axes.text(
        sum(times) / 2,
        sum(rows) / 2,
        text,
        fontsize=size,
        rotation=90 if upright else 0,
        ha="center",
        va="center_baseline" if not upright else "center",
    )

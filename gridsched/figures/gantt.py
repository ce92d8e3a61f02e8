"""Gantt chart of a small run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import count, repeat

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridsched.errors import ConfigurationError
from gridsched.explanation import PlannedStart, reservations
from gridsched.figures import gantt_blocks, hover, style
from gridsched.figures.gantt_blocks import CORES, Lane
from gridsched.metrics.jobs import waits
from gridsched.runs import name_of_run

MAX_JOBS = 60
"""Most jobs that a Gantt chart can show legibly."""

_MAX_LEVELS = 16
_FATES = ("", "is rejected", "its user gives up", "may never start", "is lost", "waits for ever")
"""Outcomes of jobs that did not run, in words, by fate."""


@style.styled
def gantt(run: xr.Dataset, *, until: float | None = None) -> style.Drawing:
    """Gantt chart: time from left to right, processors from bottom to top, jobs as rectangles.

    A run says how many processors a job has, not which. Each segment takes the lowest contiguous
    processors that are free; where no gap is wide enough it is drawn in several rectangles.

    Parameters
    ----------
    run : xarray.Dataset
        A run dataset of at most 60 jobs. Reservations are drawn where one cluster schedules by a policy that
        has a name.
    until : float, optional
        Time [s] at which the axis ends, so that charts can be compared; the last end if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns cluster, job_number, first_processor, processors, start_time, end_time: one row a rectangle.

    Raises
    ------
    ConfigurationError
        If the run has more than 60 jobs, or a cluster runs more processors than it has.
    """
    sizes = run["cluster_processors"].to_numpy().tolist()
    names = [str(name) for name in run["cluster"].to_numpy()]
    heights = [float(np.clip(0.16 * size, 1.0, 3.2)) for size in sizes]
    figure, panels = chart(run, until, heights, 0.3 * len(sizes) + 0.4)
    lanes = {(cluster, CORES): Lane(size=size) for cluster, size in enumerate(sizes)}
    clusters, amounts = (run[f"segment_{name}"].to_numpy().tolist() for name in ("cluster", "processors"))
    pieces = zip(count(), clusters, repeat(CORES), amounts, strict=False)
    blocks = list(gantt_blocks.packed(run, pieces, lanes, names))
    own = [[block for block in blocks if block.cluster == cluster] for cluster in range(len(sizes))]
    job_numbers = run["job_number"].to_numpy()
    for axes, inside, size, name in zip(panels, own, sizes, names, strict=True):
        gantt_blocks.frame(axes, size, style.plain(name) if len(sizes) > 1 else "")
        gantt_blocks.draw(axes, inside, job_numbers)
    # Rectangles are labelled last: what fits depends on the final layout.
    figure.draw_without_rendering()
    for axes, inside in zip(panels, own, strict=True):
        gantt_blocks.label(axes, inside, job_numbers, may_stand=True)
    return figure, gantt_blocks.table(blocks, names, job_numbers).drop(columns="late")


def gantt_of_run(run: xr.Dataset) -> style.Drawing:
    """Schedule of a run, with a time axis that is the same for most policies on the same jobs.

    They are made apart, yet compared. The axis ends at the first of 1, 1.5, 2... times the shortest possible
    schedule that is not before the last end.
    """
    first, last = float(run["submit_time"].min()), float(run["segment_end"].max())
    length = run["segment_end"] - run["segment_start"]
    work = float((run["segment_processors"] * length).sum())
    shortest = max(work / float(run["cluster_processors"].sum()), float(length.max()), 1.0)
    return gantt(run, until=first + shortest * math.ceil(2 * (last - first) / shortest) / 2)


def chart(
    run: xr.Dataset, until: float | None, heights: Sequence[float], margin: float
) -> tuple[Figure, list[Axes]]:
    """Panels of some heights [inches] with a margin, over one axis of time; above is when jobs wait."""
    if run.sizes["job"] > MAX_JOBS:
        raise ConfigurationError(
            f"{name_of_run(run)}: a Gantt chart shows at most {MAX_JOBS} jobs, this run has "
            f"{run.sizes['job']:,}; use gridsched.plot.load, or simulate fewer jobs, such as "
            f"workload.select(slice({MAX_JOBS})), or a shorter window"
        )
    submits = run["submit_time"].to_numpy().tolist()
    first = float(min(submits, default=0))
    last = float(max(until or 0, 0, *run["segment_end"].to_numpy().tolist(), *submits))
    levels = _levels(run, last - first)
    strip = 0.1 + 0.12 * (1 + max(levels, default=0))
    figure = style.new_figure(strip + sum(heights) + margin)
    upper, *panels = figure.subplots(1 + len(heights), 1, sharex=True, height_ratios=[strip, *heights])
    style.set_axis(panels[-1].xaxis, [first, last], "s", ticks=8, floor=first)
    panels[-1].set_xlabel("time")
    _submitted_panel(upper, run, levels)
    _reservations_panel(upper, run, levels, last)
    return figure, panels


# --- waits ----------------------------------------------------------------------------------------


def _levels(run: xr.Dataset, length: float) -> list[int]:
    """For each job the line of the strip of submissions on which its number and its wait have room."""
    seconds_a_point = length / (0.85 * 72 * style.WIDTH)
    _, submits, until = waits(run, "submit")
    job_numbers = run["job_number"].to_numpy()
    levels = [0] * len(submits)
    taken = [-np.inf] * _MAX_LEVELS
    for job in np.argsort(submits, kind="stable").tolist():
        # The number stands before the marker, where its own wait is not
        text_begins = float(submits[job]) - (4.2 * len(str(job_numbers[job])) + 4) * seconds_a_point
        level = next((k for k, end in enumerate(taken) if end <= text_begins), int(np.argmin(taken)))
        taken[level] = max(float(submits[job]), float(until[job])) + 4 * seconds_a_point
        levels[job] = level
    return levels


def _submitted_panel(axes: Axes, run: xr.Dataset, levels: list[int]) -> None:
    """Strip with a marker and the number of each job at its submission, and a line until it starts.

    The marker of a job that never ran is white.
    """
    rejected = run["start_time"].to_numpy() < 0
    known = run["fate"].to_numpy().tolist() if "fate" in run else [1] * len(levels)
    fates = [_FATES[fate] for fate in known]
    _, submits, until = waits(run, "submit")
    colors = [gantt_blocks.color(job) for job in range(len(levels))]
    ends = np.maximum(submits, until)
    axes.hlines(-np.array(levels), submits, ends, colors=colors, linewidth=3, zorder=1)
    for job, (level, number) in enumerate(zip(levels, run["job_number"].to_numpy(), strict=True)):
        (marker,) = axes.plot(
            [submits[job]],
            [-level],
            marker="v",
            markersize=3.5,
            markeredgewidth=0.6,
            color=style.INK,
            markerfacecolor="white" if rejected[job] else colors[job],
            clip_on=False,
        )
        outcome = fates[job] if rejected[job] else f"waits {style.duration(until[job] - submits[job])}"
        hover.say(marker, [f"job {number}: submitted at {submits[job]:,} s, {outcome}"])
        axes.annotate(
            str(number),
            (submits[job], -level),
            (-4, 0),
            textcoords="offset points",
            fontsize=6,
            ha="right",
            va="center_baseline",
        )
    axes.set(ylim=(-max(levels, default=0) - 0.6, 0.6), yticks=[])
    # what is there of several fates is said by the markers
    white = {fates[job] for job in np.flatnonzero(rejected).tolist()}
    only = "rejected" if white == {"is rejected"} else "did not run"
    note = f"waits\n(white: {only})" if white else "waits"
    axes.set_ylabel(note, rotation=0, ha="right", va="center", fontsize=7, labelpad=16)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0, labelbottom=False)


def _reservations_panel(axes: Axes, run: xr.Dataset, levels: list[int], last: float) -> None:
    """Bars across the lines of waits at the start reserved first; arrows where that is not shown."""
    planned: list[PlannedStart] = []
    # Those of a policy without a name, of one that orders by a function, and of nodes are not known
    with suppress(ConfigurationError):
        if run.attrs.get("system") == "local" and run.sizes["cluster"] == 1:
            planned = reservations(run)
    starts, job_numbers = run["start_time"].to_numpy(), run["job_number"].to_numpy()
    for each in planned:
        (marker,) = axes.plot(
            [min(each.reserved_for, last)],
            [-levels[each.job]],
            marker="|" if each.reserved_for <= last else ">",
            markersize=6,
            markeredgewidth=1.2,
            color=style.INK,
            clip_on=False,
            zorder=2,
        )
        early = each.reserved_for - int(starts[each.job])
        sooner = f"{style.duration(abs(early))} {'earlier' if early > 0 else 'later'}" if early else "then"
        text = f"at {each.reserved_at:,} s reserved for {each.reserved_for:,} s; starts {sooner}"
        hover.say(marker, [f"job {job_numbers[each.job]}: {text}"])
    if planned:
        # Not by `set_ylabel`, which would centre it
        axes.yaxis.label.set_text(f"{axes.get_ylabel()}\n| reserved")

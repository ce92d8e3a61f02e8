"""Gantt chart of a small run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.explanation import PlannedStart, reservations
from gridsched.figures import gantt_blocks, hover, style
from gridsched.figures.gantt_blocks import GanttBlock
from gridsched.metrics.jobs import GAVE_UP

MAX_JOBS = 60
"""Most jobs that a Gantt chart can show legibly."""

_MAX_LEVELS = 16


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
    check_jobs(run)
    sizes = run["cluster_processors"].to_numpy().tolist()
    blocks = list(_blocks(run, sizes))
    heights = [float(np.clip(0.16 * size, 1.0, 3.2)) for size in sizes]
    limits = time_limits(run)
    limits[1] = max(limits[1], until or 0.0)
    planned = _reservations(run)
    levels = submitted_levels(run, limits)
    strip = 0.1 + 0.12 * (1 + max(levels, default=0))
    figure = style.new_figure(strip + sum(heights) + 0.3 * len(sizes) + 0.4)
    grid = figure.subplots(
        len(sizes) + 1, 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": [strip, *heights]}
    )[:, 0]
    style.set_axis(grid[-1].xaxis, limits, "s", ticks=8, floor=limits[0])
    names = (
        [str(name) for name in run["cluster"].to_numpy()] if "cluster" in run.coords else [""] * len(sizes)
    )
    job_numbers = run["job_number"].to_numpy()
    for cluster, axes in enumerate(grid[1:]):
        title = style.plain(names[cluster]) if len(sizes) > 1 else ""
        gantt_blocks.frame(axes, sizes[cluster], title)
        gantt_blocks.draw(axes, [block for block in blocks if block.cluster == cluster], job_numbers)
    submitted_panel(grid[0], run, levels)
    _reservations_panel(grid[0], run, planned, levels, limits[1])
    grid[-1].set_xlabel("time")
    # Rectangles are labelled last: what fits depends on the final layout.
    figure.draw_without_rendering()
    for cluster, axes in enumerate(grid[1:]):
        own = [block for block in blocks if block.cluster == cluster]
        gantt_blocks.label(axes, own, job_numbers, may_stand=True)
    named = names if "cluster" in run.coords else [str(cluster) for cluster in range(len(sizes))]
    return figure, gantt_blocks.table(blocks, named, job_numbers).drop(columns="late")


def gantt_of_run(run: xr.Dataset) -> style.Drawing:
    """Schedule of a run."""
    return gantt(run, until=_common_end(run))


def _common_end(run: xr.Dataset) -> float:
    """End of the time axis, the same for most policies on the same jobs: they are made apart, yet compared.

    It is the first of 1, 1.5, 2... times the shortest possible schedule that is not before the last end.
    """
    first, last = float(run["submit_time"].min()), float(run["segment_end"].max())
    length = run["segment_end"] - run["segment_start"]
    work = float((run["segment_processors"] * length).sum())
    shortest = max(work / float(run["cluster_processors"].sum()), float(length.max()), 1.0)
    return first + shortest * math.ceil(2 * (last - first) / shortest) / 2


def check_jobs(run: xr.Dataset) -> None:
    """Refuse a run of too many jobs."""
    jobs = run.sizes["job"]
    if jobs > MAX_JOBS:
        raise ConfigurationError(
            f"a Gantt chart shows at most {MAX_JOBS} jobs, this run has {jobs}: simulate a shorter window"
        )


def time_limits(run: xr.Dataset) -> list[float]:
    """First submission and last end."""
    ends = run["segment_end"].to_numpy()
    submits = run["submit_time"].to_numpy()
    last = max([0, *ends.tolist(), *submits.tolist()])
    return [float(min(submits.tolist(), default=0)), float(last)]


# --- which processors -----------------------------------------------------------------------------


def _blocks(run: xr.Dataset, sizes: Sequence[int]) -> Iterator[GanttBlock]:
    """Rectangles of all segments, on the lowest processors that are free."""
    start, end = run["segment_start"].to_numpy(), run["segment_end"].to_numpy()
    free_at = [np.full(size, np.iinfo(np.int64).min) for size in sizes]
    # A segment of no duration frees its processors for others that start at the same instant.
    for segment in np.lexsort((end > start, start)).tolist():
        cluster = int(run["segment_cluster"].to_numpy()[segment])
        job = int(run["segment_job"].to_numpy()[segment])
        wanted = int(run["segment_processors"].to_numpy()[segment])
        begins, ends = int(start[segment]), int(end[segment])
        free = free_at[cluster] <= begins
        if free.sum() < wanted:
            raise ConfigurationError(
                f"cluster {cluster} has {int(free.sum())} free processors at {begins} s, "
                f"but job {job} runs on {wanted}: the run is not a valid schedule"
            )
        for first, count in places(free, wanted):
            free_at[cluster][first : first + count] = ends
            yield GanttBlock(cluster, job, first, count, begins, ends)


def places(free: NDArray[np.bool_], wanted: int) -> Iterator[tuple[int, int]]:
    """The lowest gap that is wide enough as (first, count); else the lowest free processors in pieces."""
    gaps = gantt_blocks.runs(free)
    for first, width in gaps:
        if width >= wanted:
            yield first, wanted
            return
    for first, width in gaps:
        if wanted > 0:
            yield first, min(width, wanted)
            wanted -= width


# --- drawing --------------------------------------------------------------------------------------


def submitted_levels(run: xr.Dataset, limits: list[float]) -> list[int]:
    """For each job the line of the strip of submissions on which its number and its wait have room."""
    seconds_a_point = (limits[1] - limits[0]) / (0.85 * 72 * style.WIDTH)
    submits, job_numbers = run["submit_time"].to_numpy(), run["job_number"].to_numpy()
    starts = _waits_until(run)
    levels = [0] * len(submits)
    taken = [-np.inf] * _MAX_LEVELS
    for job in np.argsort(submits, kind="stable").tolist():
        # The number stands before the marker, where its own wait is not
        text_begins = float(submits[job]) - (4.2 * len(str(job_numbers[job])) + 4) * seconds_a_point
        level = next((k for k, end in enumerate(taken) if end <= text_begins), int(np.argmin(taken)))
        taken[level] = max(float(submits[job]), float(starts[job])) + 4 * seconds_a_point
        levels[job] = level
    return levels


def submitted_panel(axes: Axes, run: xr.Dataset, levels: list[int]) -> None:
    """Strip with a marker and the number of each job at its submission, and a line until it starts.

    The marker of a job that never ran is white.
    """
    rejected = run["start_time"].to_numpy() < 0
    starts, fates = _waits_until(run), _fates(run)
    submits, job_numbers = run["submit_time"].to_numpy(), run["job_number"].to_numpy()
    for job, level in enumerate(levels):
        if starts[job] > submits[job]:
            color = gantt_blocks.color(job)
            axes.hlines(-level, submits[job], starts[job], color=color, linewidth=3, zorder=1)
        (marker,) = axes.plot(
            [submits[job]],
            [-level],
            marker="v",
            markersize=3.5,
            markeredgewidth=0.6,
            color=style.INK,
            markerfacecolor="white" if rejected[job] else gantt_blocks.color(job),
            clip_on=False,
        )
        outcome = fates[job] if rejected[job] else f"waits {style.duration(starts[job] - submits[job])}"
        hover.say(marker, [f"job {job_numbers[job]}: submitted at {submits[job]:,} s, {outcome}"])
        axes.annotate(
            str(job_numbers[job]),
            (submits[job], -level),
            (-4, 0),
            textcoords="offset points",
            fontsize=6,
            ha="right",
            va="center_baseline",
        )
    axes.set_ylim(-max(levels, default=0) - 0.6, 0.6)
    axes.set_yticks([])
    # what is there of several fates is said by the markers
    white = {fates[job] for job in np.flatnonzero(rejected).tolist()}
    only = "rejected" if white == {"is rejected"} else "did not run"
    note = f"waits\n(white: {only})" if white else "waits"
    axes.set_ylabel(note, rotation=0, ha="right", va="center", fontsize=7, labelpad=16)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0, labelbottom=False)


def _waits_until(run: xr.Dataset) -> NDArray[np.int64]:
    """Until when each job waits: its first start, or when its user gives up; -1 where neither happens."""
    starts: NDArray[np.int64] = run["start_time"].to_numpy()
    if "gives_up_time" not in run:
        return starts
    gave_up = run["fate"].to_numpy() == GAVE_UP
    return np.where(gave_up, np.maximum(run["gives_up_time"], run["submit_time"]), starts)


def _fates(run: xr.Dataset) -> list[str]:
    """What became of jobs that did not run, in words."""
    words = ("", "is rejected", "its user gives up", "may never start", "is lost", "waits for ever")
    if "fate" not in run:
        return ["is rejected"] * run.sizes["job"]
    return [words[fate] for fate in run["fate"].to_numpy().tolist()]


def _reservations(run: xr.Dataset) -> list[PlannedStart]:
    """First reservations, where they can be told from the schedule."""
    if run.attrs.get("system") != "local" or run.sizes["cluster"] > 1:
        return []
    try:
        return reservations(run)
    except ConfigurationError:  # the policy has no name, or orders by a function
        return []


def _reservations_panel(
    axes: Axes, run: xr.Dataset, planned: Sequence[PlannedStart], levels: list[int], last: float
) -> None:
    """Bars across the lines of waits at the start reserved first; arrows where that is not shown."""
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
        outcome = (
            "starts then"
            if early == 0
            else f"starts {style.duration(abs(early))} {'earlier' if early > 0 else 'later'}"
        )
        text = f"at {each.reserved_at:,} s reserved for {each.reserved_for:,} s; {outcome}"
        hover.say(marker, [f"job {job_numbers[each.job]}: {text}"])
    if planned:
        # Not by `set_ylabel`, which would centre it
        axes.yaxis.label.set_text(f"{axes.get_ylabel()}\n| reserved")

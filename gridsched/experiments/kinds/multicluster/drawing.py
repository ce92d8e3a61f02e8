"""Gantt chart of schedules on particular resources, one panel a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from gridsched.errors import ConfigurationError
from gridsched.experiments.kinds.multicluster.example import handed_over
from gridsched.experiments.specification import Specification
from gridsched.figures import gantt_blocks, style
from gridsched.figures.gantt_blocks import GanttBlock
from gridsched.presentation.sentences import listed

MAX_JOBS = 120
"""Most jobs that can be shown legibly."""

_LATE = "#b2182b"


@style.styled
def schedule_gantt(schedules: xr.Dataset) -> style.Drawing:
    """Gantt chart of what TITAN plans: time from left to right, resources from bottom to top.

    A job is drawn on the resources that it has, in several rectangles where they are not neighbours. Jobs
    that end after their deadline have a red edge; resources that are not available yet are grey.

    Parameters
    ----------
    schedules : xarray.Dataset
        What `muscle.schedule_queue` returns, of at most 120 jobs.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns cluster, job_number, first_processor, processors, start_time, end_time, late: one row a
        rectangle.

    Raises
    ------
    ConfigurationError
        If there are more than 120 jobs.
    """
    jobs = schedules.sizes["job"]
    if jobs > MAX_JOBS:
        raise ConfigurationError(
            f"a Gantt chart shows at most {MAX_JOBS} jobs, this one has {jobs}: select a part of the queue"
        )
    blocks = list(_blocks(schedules))
    available = schedules["available"].to_numpy()
    sizes = (available >= 0).sum(axis=1).tolist()
    names = [str(name) for name in schedules["cluster"].to_numpy()]
    heights = [float(np.clip(0.12 * size, 1.0, 4.0)) for size in sizes]
    figure = style.new_figure(sum(heights) + 0.35 * len(sizes) + 0.7)
    grid = figure.subplots(len(sizes), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})
    now = float(schedules.attrs["now"])
    last = max([now + 1, *(float(block.end) for block in blocks)])
    style.set_axis(grid[-1, 0].xaxis, [now, last], "s", ticks=8, floor=now)
    job_numbers = schedules["job_number"].to_numpy()
    for cluster, axes in enumerate(grid[:, 0]):
        gantt_blocks.frame(axes, sizes[cluster], style.plain(names[cluster]))
        for late, edge, width in ((False, style.INK, 0.6), (True, _LATE, 1.2)):
            own = [block for block in blocks if block.cluster == cluster and block.late == late]
            gantt_blocks.draw(axes, own, job_numbers, edge, width)
        # Grey up to when resources become available
        bars = [
            Rectangle((now, resource), time - now, 1)
            for resource, time in enumerate(available[cluster, : sizes[cluster]].tolist())
            if time > now
        ]
        axes.add_collection(
            PatchCollection(bars, facecolor=style.PALE, edgecolor="none", zorder=0.5), autolim=False
        )
    grid[-1, 0].set_xlabel("time")
    if any(block.late for block in blocks):
        marked = Patch(facecolor="white", edgecolor=_LATE, linewidth=1.2)
        style.entries_below(figure, [(marked, "ends after its deadline")])
    # Rectangles are labelled last: what fits depends on the final layout.
    figure.draw_without_rendering()
    for cluster, axes in enumerate(grid[:, 0]):
        gantt_blocks.label(axes, [block for block in blocks if block.cluster == cluster], job_numbers)
    return figure, gantt_blocks.table(blocks, names, job_numbers)


def _blocks(schedules: xr.Dataset) -> Iterator[GanttBlock]:
    columns = ("cluster_index", "start_time", "end_time", "deadline")
    jobs = zip(*(schedules[name].to_numpy().tolist() for name in columns), strict=True)
    used = schedules["resources"].to_numpy() > 0
    for job, (cluster, start, end, deadline) in enumerate(jobs):
        # Jobs that no cluster holds have no resources
        for first, count in gantt_blocks.runs(used[job]):
            yield GanttBlock(cluster, job, first, count, start, end, end > deadline)


def example_handed_over(example: xr.Dataset) -> style.Drawing:
    """Schedules that MUSCLE hands over in the worked example."""
    return schedule_gantt(handed_over(example))


def example_improved(example: xr.Dataset) -> style.Drawing:
    """Schedules after TITAN; column changed says whether they differ from those that it is given."""
    figure, numbers = schedule_gantt(example)
    _, given = example_handed_over(example)
    return figure, numbers.assign(changed=not numbers.equals(given))


def example_finding(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """When each cluster is done, how many jobs are late, and whether TITAN changes anything."""
    ends = numbers.groupby("cluster", sort=False)["end_time"].max().items()
    done = listed(f"{name} at {end:g}" for name, end in ends)
    late = int(numbers.loc[numbers["late"], "job_number"].nunique())
    lines = [f"The last jobs end on {done}; {late or 'no'} late job{'' if late == 1 else 's'}."]
    if "changed" in numbers:
        lines.append(f"TITAN changes {'the schedules' if numbers['changed'].any() else 'nothing'}.")
    return lines

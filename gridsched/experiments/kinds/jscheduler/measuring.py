"""Measures of one schedule of the stream of all logs: over all jobs, and over those of each centre's users.

A schedule is measured by the jobs that every schedule it is compared with has run. Their run times are those
on the cluster that ran them. Blocks of consecutive jobs are replicates; what exists once a run stands at the
first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import check_number
from gridsched.experiments.collection import ALL, grouped
from gridsched.experiments.measuring import BLOCKS, block_of, in_blocks, statistic
from gridsched.metrics import jobs as metrics

Weights = Literal["jobs", "centres", "work", "light"]
"""How jobs are weighted in means over all of them."""


@dataclass(frozen=True, kw_only=True)
class SlowdownOptions:
    """What slowdowns are relative to.

    Parameters
    ----------
    run_time : {"cluster", "log"}
        The run time that they divide by: that on the cluster that ran the job, or that of the log.
    threshold : int
        Run time [s] below which jobs count as equally short in the slowdown; no job has a slowdown below 1
        where it is more than 1.
    bounded_threshold : int
        The same for the bounded slowdown.

    Raises
    ------
    ConfigurationError
        If a threshold is less than a second.
    """

    run_time: Literal["cluster", "log"] = "cluster"
    threshold: int = 1
    bounded_threshold: int = metrics.SLOWDOWN_THRESHOLD

    def __post_init__(self) -> None:
        for name in ("threshold", "bounded_threshold"):
            check_number(name, getattr(self, name), least=1)


def measured_schedule(
    stream: xr.Dataset, run: xr.Dataset, once: xr.Dataset, weights: Weights, slowdowns: SlowdownOptions
) -> xr.Dataset:
    """Measures of a schedule by block of jobs and group.

    Parameters
    ----------
    stream : xarray.Dataset
        Jobs of all logs, see `stages.fuse_stream`.
    run : xarray.Dataset
        Submission, first start, last end and run time on its cluster of every job [s].
    once : xarray.Dataset
        What is known of the whole run, as a summary that `grouped` takes.
    weights : str
        How jobs count in means over all of them. The measure `jobs` is then the weight of each block, in
        units of a job; in groups of users jobs count alike.
    slowdowns : SlowdownOptions
        What slowdowns are relative to.

    Returns
    -------
    xarray.Dataset
        Measures on `group` and `replicate`.
    """
    jobs = np.flatnonzero(stream["measured"].values)
    centre = stream["centre_index"].values[jobs]
    members = {ALL: jobs} | {
        f"users of {name}": jobs[centre == index] for index, name in enumerate(stream["centre"].values)
    }
    run_time = (run if slowdowns.run_time == "cluster" else stream)["run_time"]
    values = metrics.job_metrics(
        run.assign(run_time=run_time), slowdown_threshold=slowdowns.bounded_threshold
    )
    if slowdowns.threshold > 1:
        values["slowdown"] = metrics.bounded_slowdown(values["response_time"], run_time, slowdowns.threshold)

    blocks = in_blocks(
        values,
        members,
        block_of(jobs, BLOCKS, len(run_time)),
        {ALL: _weight(stream, jobs, weights)},
    )
    tails = xr.Dataset(
        {
            f"{name}_p95": (
                "group",
                [statistic("p95", np.sort(values[name][own])) for own in members.values()],
            )
            for name in ("wait_time", "slowdown")
        },
        {"group": list(members)},
    )
    summary = grouped(once)
    groups = list(dict.fromkeys([*members, *summary["group"].values.tolist()]))
    known = summary.merge(tails, join="outer").expand_dims(replicate=[0])
    # The number of jobs is the first of the measures
    return blocks[["jobs"]].merge(blocks).merge(known, join="outer").reindex(group=groups)


def _weight(stream: xr.Dataset, jobs: NDArray[np.int64], weights: Weights) -> NDArray[np.float64]:
    """Weight of each job, 1 on average over those that are measured; 0 where none of these has any."""
    centre = stream["centre_index"].values.astype(np.int64)
    numbers = np.bincount(centre[jobs], minlength=stream.sizes["centre"])
    own: NDArray[np.float64] = {
        "jobs": np.ones(len(centre)),
        "centres": 1.0 / np.maximum(numbers, 1)[centre],
        "work": stream["processors"].values * stream["run_time"].values.astype(np.float64),
        "light": (stream["offered_load"].values < 1).astype(np.float64)[centre],
    }[weights]
    total = own[jobs].sum()
    return own * (len(jobs) / total) if total > 0 else own

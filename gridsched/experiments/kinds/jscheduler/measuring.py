"""Measures of one schedule of the stream of all logs: over all jobs, and over those of each centre's users.

A schedule is measured by the jobs that every schedule it is compared with has run. Their run times are those
on the cluster that ran them. Blocks of consecutive jobs are replicates; what exists once a run stands at the
first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.experiments.collection import ALL
from gridsched.experiments.measuring import BLOCKS
from gridsched.metrics import jobs as metrics

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} is {getattr(self, name)}; use 1 or more seconds")


def measured_schedule(
    stream: xr.Dataset,
    start_time: Integers,
    run_time: Integers,
    end_time: Integers,
    weights: Weights = "jobs",
    slowdowns: SlowdownOptions = SlowdownOptions(),
    once: Mapping[str, Mapping[str, float]] | None = None,
) -> xr.Dataset:
    """Measures of a schedule by block of jobs and group.

    Parameters
    ----------
    stream : xarray.Dataset
        Jobs of all logs, see `stages.fuse_stream`.
    start_time, run_time, end_time : int64[n]
        First start, run time on its cluster and last end of every job [s].
    weights : str
        How jobs count in means over all of them. The measure `jobs` is then the weight of each block, in
        units of a job; in groups of users jobs count alike.
    slowdowns : SlowdownOptions
        What slowdowns are relative to.
    once : mapping of measure to mapping of group to number, optional
        What is known of the whole run.

    Returns
    -------
    xarray.Dataset
        Measures on `group` and `replicate`.
    """
    jobs = np.flatnonzero(stream["measured"].values)
    centre = stream["centre_index"].values[jobs]
    names = [f"users of {name}" for name in stream["centre"].values]
    values = _of_jobs(stream, jobs, start_time, run_time, end_time, slowdowns)
    number = max(min(BLOCKS, len(jobs) // 2), 1)
    block = np.arange(len(jobs)) * number // max(len(jobs), 1)
    members = {ALL: np.arange(len(jobs))}
    members |= {name: np.flatnonzero(centre == index) for index, name in enumerate(names)}
    weight = {name: np.ones(len(jobs)) for name in members} | {ALL: _weight(stream, jobs, weights)}

    totals = {
        group: np.bincount(block[own], weight[group][own], number).astype(np.float64)
        for group, own in members.items()
    }
    whole = {"jobs": np.array(list(totals.values()))}
    for name, of_jobs in values.items():
        sums = [
            np.bincount(block[own], of_jobs[own] * weight[group][own], number)
            for group, own in members.items()
        ]
        count = np.where(whole["jobs"] > 0, whole["jobs"], np.nan)
        whole[f"{name}_mean"] = np.array(sums) / count
    blocks = xr.Dataset(
        {name: (("group", "replicate"), table) for name, table in whole.items()},
        {"group": list(members), "replicate": np.arange(number)},
    )
    known = {**(once or {}), **_percentiles(values, members)}
    groups = list(dict.fromkeys([*members, *(group for each in known.values() for group in each)]))
    blocks = blocks.reindex(group=groups)
    for name, each in known.items():
        table = np.full((len(groups), number), np.nan)
        table[:, 0] = [each.get(group, np.nan) for group in groups]
        blocks[name] = (("group", "replicate"), table)
    return blocks


def _of_jobs(
    stream: xr.Dataset,
    jobs: Integers,
    start_time: Integers,
    run_time: Integers,
    end_time: Integers,
    slowdowns: SlowdownOptions,
) -> dict[str, Floats]:
    """Metrics of each job that is measured."""
    submit = stream["submit_time"].values[jobs]
    reference = run_time if slowdowns.run_time == "cluster" else stream["run_time"].values
    run = reference[jobs].astype(np.float64)
    response = (end_time[jobs] - submit).astype(np.float64)
    return {
        "wait_time": metrics.wait_time(submit, start_time[jobs]),
        "response_time": response,
        "slowdown": metrics.slowdown(response, run)
        if slowdowns.threshold == 1
        else metrics.bounded_slowdown(response, run, slowdowns.threshold),
        "bounded_slowdown": metrics.bounded_slowdown(response, run, slowdowns.bounded_threshold),
    }


def _percentiles(
    values: Mapping[str, Floats], members: Mapping[str, Integers]
) -> dict[str, dict[str, float]]:
    return {
        f"{name}_p95": {
            group: float(np.quantile(values[name][own], 0.95)) for group, own in members.items() if len(own)
        }
        for name in ("wait_time", "slowdown")
    }


def _weight(stream: xr.Dataset, jobs: Integers, weights: Weights) -> Floats:
    """Weight of each job that is measured, 1 on average; 0 where none has any."""
    centre = stream["centre_index"].values[jobs].astype(np.int64)
    own = np.ones(len(jobs))
    if weights == "centres":
        own = 1.0 / np.maximum(np.bincount(centre, minlength=stream.sizes["centre"]), 1)[centre]
    elif weights == "work":
        own = (stream["processors"].values * stream["run_time"].values.astype(np.float64))[jobs]
    elif weights == "light":
        own = (stream["offered_load"].values < 1).astype(np.float64)[centre]
    total = own.sum()
    return own * (len(own) / total) if total > 0 else own


def utilisation(
    window: tuple[float, float],
    start_time: NDArray[Any],
    end_time: NDArray[Any],
    processors: NDArray[Any],
    centre: Integers,
    capacity: Mapping[str, int],
) -> dict[str, float]:
    """Share of the processors of each centre, and of all, that executions take in a window.

    Parameters
    ----------
    window : (float, float)
        Begin and end [s].
    start_time, end_time, processors, centre : array[m]
        Executions, and the index of the centre where each is.
    capacity : mapping of str to int
        Processors of each centre, in order.
    """
    begin, end = window
    inside = np.maximum(np.minimum(end_time, end) - np.maximum(start_time, begin), 0)
    work = np.bincount(centre, inside.astype(np.float64) * processors, len(capacity))
    if not end > begin:
        return {}
    found = {
        f"cluster {name}": float(each) / (size * (end - begin))
        for (name, size), each in zip(capacity.items(), work, strict=True)
    }
    return {ALL: float(work.sum()) / (sum(capacity.values()) * (end - begin)), **found}

"""Whether a schedule of a dynamic grid keeps the rules of the model: checks that know no scheduler.

They come besides those of `gridsched.verification`, and look only at the segments of a run, the graph,
and when clusters joined and left.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER

Integers = NDArray[np.int64]

_UNIT = 1000
"""Overheads are multiples of 1 / _UNIT."""

_JOIN, _LEAVE = 0, 2
_FINISHED, _STOPPED = 1, 2


def dynamic_violations(dataset: xr.Dataset) -> list[str]:
    """What is wrong with the schedule of a dynamic grid: one line a broken rule, none where all is well.

    The rules:

    - a job that was not sent to the grid scheduler runs once, at home, in one piece; where nodes fail, once
      besides the times when it was killed;
    - the clusters on which a job has tasks at the same time are neighbours of each other;
    - tasks of grid jobs are sent only to clusters that belong to the grid, and have gone when a cluster
      that left says so;
    - grid jobs do all their work: with w the overhead, what a job executes after the last time that its work
      was lost, divided by w where it was on several clusters, is its run time, up to the last second. Where
      speeds differ (the run has `work_time`, as at speed 1), that times the speed of the slowest cluster is
      the work, and local jobs run at the speed of their clusters;
    - grid jobs are stopped only after whole supersteps;
    - where nodes fail: of a time that a failure ended, what counts as work is what its last checkpoint has,
      and checkpoints are no work; nobody is killed but where processors go out of order.

    Parameters
    ----------
    dataset : xarray.Dataset
        A run of `scheduler.DynamicGrid`.

    Returns
    -------
    list of str
        Each line names the rule's first offending job by its number, and counts the others.
    """
    segments, number = _segments(dataset), dataset["job_number"].to_numpy()
    found = ((np.unique(rule(dataset, segments)), what) for rule, what in _RULES)
    return [
        f"job {number[jobs[0]]} {what}" + (f" (and {len(jobs) - 1} more jobs)" if len(jobs) > 1 else "")
        for jobs, what in found
        if len(jobs)
    ]


def _segments(dataset: xr.Dataset) -> Any:
    """Columns of the segments of a run by job and start, with what is known of the spell of each.

    job, start, held, cluster, end, killed
        As in the run.
    grid
        Whether it is one of a grid job; a local job that was killed may become one.
    spell, clusters
        Segments of the same spell have the same number; how many these are.
    pace
        Work that a segment does in a second, relative to that at the speed of which run times are: where
        speeds differ that of the slowest cluster of the spell, in 1 / _UNIT.
    worked
        Seconds of work that count, without checkpoints.
    begin
        Start, or that of the time before it in which tasks were on their way.
    """
    names = ["job", "start", "held", "cluster", "end", "killed"]
    known = {name: dataset[f"segment_{name}"] for name in names if f"segment_{name}" in dataset}
    s = pd.DataFrame(known).reindex(columns=names, fill_value=0).sort_values(names[:4], ignore_index=True)
    sent = dataset["sent_time"].to_numpy()[s["job"]]
    s["grid"] = (sent >= 0) & (s["start"] >= sent)
    s["pace"] = 1
    if "work_time" in dataset:
        speed = np.maximum(np.rint(dataset["cluster_speed"].to_numpy() * _UNIT), 1).astype(np.int64)
        s["pace"] = speed[s["cluster"]]
    spells = s.groupby(names[:3])
    s["spell"], s["clusters"] = spells.ngroup(), spells["job"].transform("size")
    s["pace"] = spells["pace"].transform("min")
    s["worked"] = s["end"] - s["start"]
    if "cluster_checkpoint_interval" in dataset:
        s["worked"] = _without_checkpoints(dataset, s)
    before = s.sort_values(["job", "cluster", "start"]).groupby(["job", "cluster"]).shift().sort_index()
    awaited = (before["held"] != 0) & (before["end"] == s["start"])
    s["begin"] = s["start"].where(~awaited, before["start"]).astype(np.int64)
    return SimpleNamespace(**{str(name): column.to_numpy() for name, column in s.items()})


def _without_checkpoints(dataset: xr.Dataset, s: pd.DataFrame) -> Any:
    """Seconds of work in each segment that count, where clusters save work."""
    given = dataset["cluster_checkpoint_interval"].to_numpy()
    saving = np.where(given > 0, given, FOREVER)
    interval = pd.Series(saving[s["cluster"]], s.index).groupby(s["spell"]).transform("min")
    cost = pd.Series(dataset["cluster_checkpoint_cost"].to_numpy()[s["cluster"]], s.index)
    rounds, since = divmod(s["worked"], interval + cost.groupby(s["spell"]).transform("max"))
    # of who never saves there are no rounds
    return rounds * interval + np.where(s["killed"] == 0, np.minimum(since, interval), 0)


Rule = Callable[[xr.Dataset, Any], Any]
"""Jobs that break a rule, some perhaps more than once."""


def _local_jobs_in_peace(dataset: xr.Dataset, s: Any) -> Any:
    """Local jobs are neither preempted nor moved."""
    local = ~s.grid
    count = np.bincount(s.job[local & (s.killed == 0)], minlength=dataset.sizes["job"])
    astray = (s.cluster != dataset["home_cluster"].to_numpy()[s.job]) | (count[s.job] > 1) | (s.held != 0)
    return s.job[local & astray]


def _cliques(dataset: xr.Dataset, s: Any) -> Any:
    """Grid jobs run on cliques."""
    adjacent = dataset["adjacent"].to_numpy() != 0
    # what holds the processors that tasks leave has no others beside it
    offending = []
    for apart in range(1, int(s.clusters.max(initial=1))):
        one, other = np.arange(len(s.job) - apart), np.arange(apart, len(s.job))
        pair = (s.spell[one] == s.spell[other]) & ~adjacent[s.cluster[one], s.cluster[other]]
        offending.append(s.job[one[pair & (s.held[one] == 0)]])
    return np.concatenate([np.empty(0, np.int64), *offending])


def _only_on_members(dataset: xr.Dataset, s: Any) -> Any:
    """Grid jobs are sent to members, and leave clusters that leave."""
    kind, cluster = dataset["event_kind"].to_numpy(), dataset["event_cluster"].to_numpy()
    time, gone = dataset["event_time"].to_numpy(), dataset["event_done"].to_numpy()
    offending = []
    for i in range(dataset.sizes["cluster"]):
        joins = time[(cluster == i) & (kind == _JOIN)]
        leaves = time[(cluster == i) & (kind == _LEAVE)]
        done = gone[(cluster == i) & (kind == _LEAVE)]
        leaves, done = _padded(leaves, len(joins)), _padded(done, len(joins))
        own = np.flatnonzero(s.grid & (s.cluster == i))
        stay = np.searchsorted(joins, s.begin[own], side="right") - 1
        known = stay >= 0
        late = np.zeros(len(own), np.bool_)
        # processors that tasks leave may still be held after the cluster has left
        starts = s.begin[own][known] >= leaves[stay[known]]
        late[known] = (starts & (s.held[own][known] == 0)) | (
            (done[stay[known]] >= 0) & (s.end[own][known] > done[stay[known]])
        )
        offending.append(s.job[own[~known | late]])
    return np.concatenate([np.empty(0, np.int64), *offending])


def _padded(times: Integers, length: int) -> Integers:
    """Times, and after them one that never comes."""
    return np.append(times, np.full(length - len(times), np.iinfo(np.int64).max))


def _work_is_done(dataset: xr.Dataset, s: Any) -> Any:
    """Grid jobs do all their work."""
    scale = round(float(dataset.attrs["parameter_overhead"]) * _UNIT)
    first = np.append(True, s.spell[1:] != s.spell[:-1])[: len(s.spell)]
    counts = first & (s.held == 0) & (s.start >= dataset["kept_from"].to_numpy()[s.job])
    if not dataset.attrs["parameter_checkpoint"]:
        counts &= s.grid
    rate = np.where(s.clusters == 1, scale, _UNIT)
    done, served, last = np.zeros((3, dataset.sizes["job"]), np.int64)
    np.add.at(done, s.job[counts], (s.worked * rate * s.pace)[counts])
    np.add.at(served, s.job[counts], (s.worked * rate)[counts])
    last[:] = scale
    np.maximum.at(last, s.job[counts], (rate * s.pace)[counts])
    wanted = run_time = dataset["run_time"].to_numpy() * scale
    if "work_time" in dataset:
        wanted = dataset["work_time"].to_numpy() * scale * _UNIT
    ended = np.isin(dataset["outcome"].to_numpy(), (_FINISHED, _STOPPED))
    wrong = (done < wanted) | (done >= wanted + last)
    if "work_time" in dataset:
        wrong |= (run_time < served) | (run_time >= served + scale)
    wrong &= ended & (dataset["sent_time"].to_numpy() >= 0)
    return np.flatnonzero(wrong)


def _local_speed(dataset: xr.Dataset, s: Any) -> Any:
    """Local jobs do all their work, at the speed of their clusters where speeds differ."""
    done = np.zeros(dataset.sizes["job"], np.int64)
    np.add.at(done, s.job, s.worked)
    wanted = dataset["run_time"].to_numpy()[s.job]
    outcome = dataset["outcome"].to_numpy()[s.job]
    local = (dataset["sent_time"].to_numpy()[s.job] < 0) & np.isin(outcome, (_FINISHED, _STOPPED))
    wrong = wanted != done[s.job]
    if "work_time" in dataset:
        # Whole seconds at one speed, rounded up, are less than a second at either too many at the other; a
        # job that is stopped far over its estimate is so in whole seconds of either
        speed = dataset["cluster_speed"].to_numpy()[s.cluster]
        too_many = np.abs(done[s.job] * speed - dataset["work_time"].to_numpy()[s.job])
        wrong |= (outcome == _FINISHED) & (too_many >= np.maximum(speed, 1.0))
    return s.job[local & wrong]


def _whole_supersteps(dataset: xr.Dataset, s: Any) -> Any:
    """Grid jobs are stopped after whole supersteps."""
    length = s.end - s.start
    superstep = int(dataset.attrs["parameter_superstep"])
    ended = np.isin(dataset["outcome"].to_numpy(), (_FINISHED, _STOPPED))[s.job]
    stopped = (
        s.grid & (s.held == 0) & (s.killed == 0) & ~(ended & (s.end == dataset["end_time"].to_numpy()[s.job]))
    )
    return s.job[stopped & ((length % superstep != 0) | (length == 0))]


def _where_nodes_fail(dataset: xr.Dataset, s: Any) -> Any:
    """Who is killed has processors on a cluster of which some go out of order then."""
    if "segment_killed" not in dataset:
        return np.empty(0, np.int64)
    out = set(
        zip(dataset["closure_cluster"].values.tolist(), dataset["closure_start"].values.tolist(), strict=True)
    )
    hit = np.array([pair in out for pair in zip(s.cluster.tolist(), s.end.tolist(), strict=True)], np.bool_)
    return s.job[(s.killed != 0) & ~np.isin(s.spell, s.spell[hit])]


_RULES: tuple[tuple[Rule, str], ...] = (
    (_local_jobs_in_peace, "is a local job, but does not run at home in one piece"),
    (_cliques, "runs on clusters that are no neighbours"),
    (_only_on_members, "runs on a cluster that is not in the grid"),
    (_work_is_done, "does not do the work that it has"),
    (_local_speed, "does not run at the speed of its cluster"),
    (_whole_supersteps, "is stopped within a superstep"),
    (_where_nodes_fail, "is killed where no processor fails"),
)
"""Rules, and what is said of a job that breaks one."""

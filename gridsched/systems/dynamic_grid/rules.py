"""Whether a schedule of a dynamic grid keeps the rules of the model: checks that know no scheduler.

They come besides those of `gridsched.verification`, and look only at the segments of a run, the graph,
and when clusters joined and left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import NDArray

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
    segments, number = _Segments(dataset), dataset["job_number"].to_numpy()
    found = ((np.unique(rule(dataset, segments)), what) for rule, what in _RULES)
    return [
        f"job {number[jobs[0]]} {what}" + (f" (and {len(jobs) - 1} more jobs)" if len(jobs) > 1 else "")
        for jobs, what in found
        if len(jobs)
    ]


class _Segments:
    """Segments of a run by job and start, with what is known of the spell that each belongs to."""

    def __init__(self, dataset: xr.Dataset) -> None:
        columns = [
            dataset[f"segment_{name}"].to_numpy() for name in ("job", "start", "cluster", "end", "held")
        ]
        fails = "segment_killed" in dataset
        columns.append(dataset["segment_killed"].to_numpy() if fails else np.zeros_like(columns[0]))
        order = np.lexsort((columns[2], columns[4], columns[1], columns[0]))
        self.job, self.start, self.cluster, self.end, self.held, self.killed = (
            column[order] for column in columns
        )
        sent = dataset["sent_time"].to_numpy()[self.job]
        self.grid = (sent >= 0) & (self.start >= sent)
        """Whether it is one of a grid job; a local job that was killed may become one."""
        same = (self.job[1:] == self.job[:-1]) & (self.start[1:] == self.start[:-1])
        first = np.append(True, ~(same & (self.held[1:] == self.held[:-1])))[: len(self.job)]
        self.spell = np.cumsum(first) - 1
        """Segments of the same spell have the same number."""
        self.clusters = np.bincount(self.spell)[self.spell] if len(self.spell) else self.spell
        self.pace = self._pace(dataset)
        """Work that a segment does in a second, relative to that at the speed of which run times are."""
        self.worked = self._worked(dataset)
        """Seconds of work in each segment that count, without checkpoints."""
        self.begin = self._begin()
        """Start of each segment, or of the time before it in which tasks were on their way."""

    def jobs_of(self, chosen: NDArray[np.bool_]) -> Integers:
        """Jobs of some of the segments."""
        jobs: Integers = self.job[chosen]
        return jobs

    def _pace(self, dataset: xr.Dataset) -> Integers:
        """Speed of the slowest cluster of each spell, in 1 / _UNIT; 1 where speeds are the same."""
        if "work_time" not in dataset:
            return np.ones_like(self.spell)
        speed = np.maximum(np.rint(dataset["cluster_speed"].to_numpy() * _UNIT), 1).astype(np.int64)
        return self._in_spell(np.minimum, speed[self.cluster])

    def _in_spell(self, reduce: np.ufunc, values: Integers) -> Integers:
        """Smallest or largest value of all segments of the spell of each."""
        first = np.flatnonzero(np.diff(self.spell, prepend=-1))
        found: Integers = reduce.reduceat(values, first)[self.spell]
        return found

    def _worked(self, dataset: xr.Dataset) -> Integers:
        seconds: Integers = self.end - self.start
        if "cluster_checkpoint_interval" not in dataset:
            return seconds
        none = np.iinfo(np.int64).max
        given = dataset["cluster_checkpoint_interval"].to_numpy()
        interval = self._in_spell(np.minimum, np.where(given > 0, given, none)[self.cluster])
        pause = self._in_spell(np.maximum, dataset["cluster_checkpoint_cost"].to_numpy()[self.cluster])
        saves = interval < none
        every = np.where(saves, interval, 1)
        rounds = seconds // (every + pause)
        since = np.where(saves, np.minimum(seconds - rounds * (every + pause), every), seconds)
        worked: Integers = np.where(saves, rounds * every, 0) + np.where(self.killed != 0, 0, since)
        return worked

    def _begin(self) -> Integers:
        order = np.lexsort((self.start, self.cluster, self.job))
        before, after = order[:-1], order[1:]
        same = (self.job[before] == self.job[after]) & (self.cluster[before] == self.cluster[after])
        awaited = same & (self.held[before] != 0) & (self.end[before] == self.start[after])
        begin = self.start.copy()
        begin[after[awaited]] = self.start[before[awaited]]
        return begin


Rule = Callable[[xr.Dataset, _Segments], Integers]
"""Jobs that break a rule, some perhaps more than once."""


def _local_jobs_in_peace(dataset: xr.Dataset, s: _Segments) -> Integers:
    """Local jobs are neither preempted nor moved."""
    local = ~s.grid
    count = np.bincount(s.job[local & (s.killed == 0)], minlength=dataset.sizes["job"])
    astray = (s.cluster != dataset["home_cluster"].to_numpy()[s.job]) | (count[s.job] > 1) | (s.held != 0)
    return s.jobs_of(local & astray)


def _cliques(dataset: xr.Dataset, s: _Segments) -> Integers:
    """Grid jobs run on cliques."""
    adjacent = dataset["adjacent"].to_numpy() != 0
    # what holds the processors that tasks leave has no others beside it
    offending = []
    for apart in range(1, int(s.clusters.max(initial=1))):
        one, other = np.arange(len(s.job) - apart), np.arange(apart, len(s.job))
        pair = (s.spell[one] == s.spell[other]) & ~adjacent[s.cluster[one], s.cluster[other]]
        offending.append(s.job[one[pair & (s.held[one] == 0)]])
    return np.concatenate([np.empty(0, np.int64), *offending])


def _only_on_members(dataset: xr.Dataset, s: _Segments) -> Integers:
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


def _work_is_done(dataset: xr.Dataset, s: _Segments) -> Integers:
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


def _local_speed(dataset: xr.Dataset, s: _Segments) -> Integers:
    """Local jobs do all their work, at the speed of their clusters where speeds differ."""
    done = np.zeros(dataset.sizes["job"], np.int64)
    np.add.at(done, s.job, s.worked)
    wanted = dataset["run_time"].to_numpy()[s.job].astype(np.float64)
    # A job that is stopped far over its estimate is so in whole seconds of either speed
    ends: tuple[int, ...] = (_FINISHED, _STOPPED)
    if "work_time" in dataset:
        wanted = dataset["work_time"].to_numpy()[s.job] / dataset["cluster_speed"].to_numpy()[s.cluster]
        ends = (_FINISHED,)
    local = (dataset["sent_time"].to_numpy()[s.job] < 0) & np.isin(dataset["outcome"].to_numpy()[s.job], ends)
    wrong = local & (np.ceil(wanted) != done[s.job])
    return s.jobs_of(wrong)


def _whole_supersteps(dataset: xr.Dataset, s: _Segments) -> Integers:
    """Grid jobs are stopped after whole supersteps."""
    length = s.end - s.start
    superstep = int(dataset.attrs["parameter_superstep"])
    ended = np.isin(dataset["outcome"].to_numpy(), (_FINISHED, _STOPPED))[s.job]
    stopped = (
        s.grid & (s.held == 0) & (s.killed == 0) & ~(ended & (s.end == dataset["end_time"].to_numpy()[s.job]))
    )
    wrong = stopped & ((length % superstep != 0) | (length == 0))
    return s.jobs_of(wrong)


def _killed_by_failures(dataset: xr.Dataset, s: _Segments) -> Integers:
    """Who is killed has processors on a cluster of which some go out of order then."""
    if "segment_killed" not in dataset:
        return np.empty(0, np.int64)
    out = set(
        zip(dataset["closure_cluster"].values.tolist(), dataset["closure_start"].values.tolist(), strict=True)
    )
    hit = np.array([pair in out for pair in zip(s.cluster.tolist(), s.end.tolist(), strict=True)], np.bool_)
    spells = np.zeros(int(s.spell.max(initial=-1)) + 1, np.bool_)
    np.logical_or.at(spells, s.spell, hit)
    wrong = (s.killed != 0) & ~spells[s.spell]
    return s.jobs_of(wrong)


_RULES: tuple[tuple[Rule, str], ...] = (
    (_local_jobs_in_peace, "is a local job, but does not run at home in one piece"),
    (_cliques, "runs on clusters that are no neighbours"),
    (_only_on_members, "runs on a cluster that is not in the grid"),
    (_work_is_done, "does not do the work that it has"),
    (_local_speed, "does not run at the speed of its cluster"),
    (_whole_supersteps, "is stopped within a superstep"),
    (_killed_by_failures, "is killed where no processor fails"),
)
"""Rules, and what is said of a job that breaks one."""

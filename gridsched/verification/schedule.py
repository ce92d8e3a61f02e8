"""Whether a schedule is one that the clusters could have executed: checks that know no scheduler.

The schedule is given by the *segments* in which jobs were executed (a job that is not preempted, not
moved and on one cluster has one segment). The checks use sorted arrays only, and share no code with
the simulators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ScheduleError
from gridsched.runs import check_run
from gridsched.systems.registry import class_of
from gridsched.verification.job_outcomes import outcome_violations
from gridsched.verification.nodes import node_violations
from gridsched.verification.reporting import report

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_NONE = -1
"""What start, end, reserved start and tasks are where there are none."""

_EXCUSED = (1, 2, 3, 4, 5, 6)
"""Fates of jobs that need not have run; see `fate` of the run."""

_VARIABLES = (
    "job_number",
    "submit_time",
    "run_time",
    "processors",
    "start_time",
    "end_time",
    "segment_job",
    "segment_cluster",
    "segment_processors",
    "segment_start",
    "segment_end",
    "cluster_processors",
)


def verify(dataset: xr.Dataset) -> None:
    """Raise an error unless the schedule of a run keeps every rule.

    Parameters
    ----------
    dataset : xarray.Dataset
        A run, see `violations`; the rules of the system that made it are checked besides.

    Raises
    ------
    ScheduleError
        One line: for each broken rule the first offending job (and time), and how many there are.
    ConfigurationError
        If it is no run.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=500, seed=1), scheduler="easy")
    >>> gs.verify(run)
    >>> try:
    ...     gs.verify(run.assign(start_time=run.start_time - 1))
    ... except gs.GridschedError as error:
    ...     print(str(error)[:40])
    the schedule of M3-synthetic breaks 2 ru
    """
    check_run(dataset)
    scheduler = class_of(dataset)
    found = violations(dataset) if scheduler is None or scheduler.names_clusters else []
    if scheduler is not None and not found:
        found = scheduler.rules(dataset)
    if found:
        name = dataset.attrs.get("workload", "this run")
        raise ScheduleError(f"the schedule of {name} breaks {len(found)} rule(s): {'; '.join(found)}")


def violations(dataset: xr.Dataset) -> list[str]:
    """What is wrong with the schedule of a run: one line a broken rule, none where all is well.

    The rules:

    - segments name existing jobs and clusters, take at least one processor, and do not end before
      they start;
    - no cluster ever uses more processors than it has. A processor is free from the end of a segment
      on. Segments without length hold nothing, but must fit beside those that run through their instant;
    - no job starts before its submit time;
    - a rejected job (start -1) has no end and no segment, and is larger than every cluster, or than every
      one that it may use where the run says how large that is (`reach_processors`);
    - every other job is executed exactly once: it has a segment, its `start_time` is the first start
      and its `end_time` the last end of its segments, and the segments' work is `run_time` x `processors`.
      A segment counts with the job's processors where it has more (whole nodes), or with what the run says
      that it has of them (`segment_tasks`), so the length of one
      segment, or the lengths of several after each other, add up to the run time. Where a run says that a
      job was executed for longer (`extra_work`: overhead, or work that was lost), that is added;
    - where a run says how many processors of its job a segment has, these are one or more, and not more than
      it takes;
    - a segment has at least the processors of its job, unless the job has segments on several clusters
      (then parts may run beside each other, never with more processors together than the job asks for);
    - segments of a job on one cluster do not overlap;
    - segments in which processors are only held (`segment_held`: tasks are on their way) take processors, but
      are no execution;
    - a job with a `reserved_start` starts then;
    - where a run says the outcomes of jobs, the rules of `job_outcomes.outcome_violations`; where it says
      which nodes they had, those of `nodes.node_violations`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Dimensions `job`, `segment`, `cluster`. On `job`: job_number, submit_time, run_time (as executed),
        processors, start_time (-1 rejected), end_time, and, if there were reservations for a given
        time, reserved_start (-1 none), reach_processors if not every job may use every cluster, and
        extra_work (processor-seconds) if jobs are executed for longer than their run times.
        On `segment`: segment_job, segment_cluster (indices), segment_processors, segment_start,
        segment_end, segment_held (0 or 1) if processors are held without execution, and segment_tasks (the
        processors of the job among those taken) if jobs span clusters that give whole nodes. On `cluster`:
        cluster_processors. Times in s.

    Returns
    -------
    list of str
        Each line names the rule's first offending job by its number, and counts the others.

    Raises
    ------
    ScheduleError
        If variables are missing, or are no whole numbers.

    Notes
    -----
    Later rules are checked on what the earlier leave: a segment of a job that does not exist is reported
    as such and otherwise ignored. Without `segment_tasks`, jobs that span node-exclusive clusters cannot be
    distinguished from jobs that are executed in part twice, since the effect of rounding is not known.
    """
    schedule = _Schedule.of(dataset)
    broken = [line for rule in _SEGMENT_RULES for line in rule(schedule)]
    sound = schedule.only(schedule.is_sound())
    broken += [line for rule in _RULES for line in rule(sound)]
    if not broken and "fate" in dataset:
        broken = outcome_violations(dataset)
    return broken if broken or "node_name" not in dataset else node_violations(dataset)


@dataclass(frozen=True)
class _Schedule:
    """The variables of a run that matter here, as plain arrays."""

    job_number: Integers
    submit_time: Integers
    run_time: Integers
    processors: Integers
    start_time: Integers
    end_time: Integers
    reserved_start: Integers
    reach_processors: Integers
    extra_work: Integers
    job: Integers
    cluster: Integers
    segment_processors: Integers
    start: Integers
    end: Integers
    held: Integers
    tasks: Integers
    excused: Flags
    cluster_processors: Integers
    cluster_name: NDArray[Any]

    @classmethod
    def of(cls, dataset: xr.Dataset) -> _Schedule:
        missing = [name for name in _VARIABLES if name not in dataset]
        if missing:
            raise ScheduleError(f"cannot verify a run without the variable(s) {', '.join(missing)}")

        def column(name: str) -> Integers:
            values = dataset[name].to_numpy()
            if values.dtype.kind not in "iu":
                raise ScheduleError(f"cannot verify a run whose {name} is {values.dtype}: give whole numbers")
            return values.astype(np.int64, copy=False)

        def optional(name: str, like: str, otherwise: int) -> Integers:
            return column(name) if name in dataset else np.full_like(column(like), otherwise)

        cluster_processors = column("cluster_processors")
        largest = cluster_processors.max(initial=0)
        known = "cluster" in dataset.coords
        return cls(
            job_number=column("job_number"),
            submit_time=column("submit_time"),
            run_time=column("run_time"),
            processors=column("processors"),
            start_time=column("start_time"),
            end_time=column("end_time"),
            reserved_start=optional("reserved_start", "job_number", _NONE),
            reach_processors=optional("reach_processors", "job_number", largest),
            extra_work=optional("extra_work", "job_number", 0),
            job=column("segment_job"),
            cluster=column("segment_cluster"),
            segment_processors=column("segment_processors"),
            start=column("segment_start"),
            end=column("segment_end"),
            held=optional("segment_held", "segment_job", 0),
            tasks=optional("segment_tasks", "segment_job", _NONE),
            excused=np.isin(optional("fate", "job_number", 0), _EXCUSED),
            cluster_processors=cluster_processors,
            cluster_name=dataset["cluster"].to_numpy() if known else np.arange(len(cluster_processors)),
        )

    def has_job(self) -> Flags:
        """Whether the job of each segment exists."""
        return (self.job >= 0) & (self.job < len(self.job_number))

    def has_cluster(self) -> Flags:
        """Whether the cluster of each segment exists."""
        return (self.cluster >= 0) & (self.cluster < len(self.cluster_processors))

    def is_sound(self) -> Flags:
        """Whether a segment keeps the rules that the other checks build on."""
        return self.has_job() & self.has_cluster() & (self.end >= self.start) & (self.segment_processors >= 1)

    def only(self, segments: Flags) -> _Schedule:
        """The schedule with some of its segments."""
        if segments.all():
            return self
        return replace(
            self,
            job=self.job[segments],
            cluster=self.cluster[segments],
            segment_processors=self.segment_processors[segments],
            start=self.start[segments],
            end=self.end[segments],
            held=self.held[segments],
            tasks=self.tasks[segments],
        )

    def executing(self) -> _Schedule:
        """The schedule without the segments in which processors are only held."""
        return self.only(self.held == 0)

    def rejected(self) -> Flags:
        """Whether each job was rejected."""
        return np.equal(self.start_time, _NONE)

    def segments_per_job(self) -> Integers:
        """How many segments each job has."""
        return np.bincount(self.job, minlength=len(self.job_number)).astype(np.int64, copy=False)

    def share(self) -> Integers:
        """Processors of each segment without those that only rounding to whole nodes adds."""
        rounded = np.minimum(self.segment_processors, self.processors[self.job])
        return np.where(self.tasks == _NONE, rounded, self.tasks)

    def of_divided_jobs(self) -> _Schedule:
        """The schedule with only the segments of jobs that have several, without those of no length."""
        return self.only((self.segments_per_job() > 1)[self.job] & (self.end > self.start))


Rule = Callable[[_Schedule], Iterator[str]]


# Rules of single segments.


def _existing_jobs(s: _Schedule) -> Iterator[str]:
    """Segments name existing jobs."""
    yield from report(
        np.flatnonzero(~s.has_job()),
        lambda k: f"segment {k} names job index {s.job[k]}, but there are {len(s.job_number)} jobs",
        "segments",
    )


def _existing_clusters(s: _Schedule) -> Iterator[str]:
    """Segments name existing clusters."""
    yield from report(
        np.flatnonzero(s.has_job() & ~s.has_cluster()),
        lambda k: (
            f"job {s.job_number[s.job[k]]} runs on cluster index {s.cluster[k]}, "
            f"but there are {len(s.cluster_processors)} clusters"
        ),
        "segments",
    )


def _forward(s: _Schedule) -> Iterator[str]:
    """No segment ends before it starts."""
    yield from report(
        np.flatnonzero(s.has_job() & (s.end < s.start)),
        lambda k: f"job {s.job_number[s.job[k]]} has a segment from {s.start[k]} s back to {s.end[k]} s",
        "segments",
    )


def _at_least_one_processor(s: _Schedule) -> Iterator[str]:
    """Segments take at least one processor."""
    yield from report(
        np.flatnonzero(s.has_job() & (s.segment_processors < 1)),
        lambda k: (
            f"job {s.job_number[s.job[k]]} has a segment with {s.segment_processors[k]} processors "
            f"at {s.start[k]} s"
        ),
        "segments",
    )


def _tasks_among_processors(s: _Schedule) -> Iterator[str]:
    """Where it is said how many processors of its job a segment has, it takes as many at least."""
    wrong = (s.tasks < 1) | (s.tasks > s.segment_processors)
    yield from report(
        np.flatnonzero(s.has_job() & (s.tasks != _NONE) & wrong),
        lambda k: (
            f"job {s.job_number[s.job[k]]} has {s.tasks[k]} tasks on {s.segment_processors[k]} processors "
            f"at {s.start[k]} s"
        ),
        "segments",
    )


_SEGMENT_RULES: tuple[Rule, ...] = (
    _existing_jobs,
    _existing_clusters,
    _forward,
    _at_least_one_processor,
    _tasks_among_processors,
)


# Rules of the whole schedule; they see sound segments only.


def _capacity(s: _Schedule) -> Iterator[str]:
    """No cluster uses more processors than it has at any instant.

    The events of a cluster in order of time are, at one instant: ends, segments without length, starts.
    Over each cluster the changes add up to nothing, so that one cumulative sum serves all clusters.
    """
    empty = np.flatnonzero(s.end == s.start)
    long = np.flatnonzero(s.end > s.start)
    taken, nothing = s.segment_processors[long], np.zeros(len(empty), np.int64)
    segment = np.concatenate([long, empty, long])
    time = np.concatenate([s.end[long], s.start[empty], s.start[long]])
    change = np.concatenate([-taken, nothing, taken])
    passing = np.concatenate([np.zeros_like(taken), s.segment_processors[empty], np.zeros_like(taken)])

    # The sort is stable: it keeps the order of the kinds of events at one instant. Short integers save time.
    cluster = s.cluster.astype(np.min_scalar_type(len(s.cluster_processors)))
    order = np.lexsort((time, cluster[segment]))
    segment, time = segment[order], time[order]
    used = np.cumsum(change[order]) + passing[order]
    over = used > s.cluster_processors[s.cluster[segment]]
    # A cluster that is still too full after an end was reported when it became so.
    offending = np.flatnonzero(over & (change[order] >= 0))
    yield from report(
        offending,
        lambda k: (
            f"cluster {s.cluster_name[s.cluster[segment[k]]]} uses {used[k]} of its "
            f"{s.cluster_processors[s.cluster[segment[k]]]} processors at {time[k]} s, "
            f"when job {s.job_number[s.job[segment[k]]]} starts"
        ),
        "starts",
    )


def _after_submission(s: _Schedule) -> Iterator[str]:
    """No job starts before its submit time."""
    yield from report(
        np.flatnonzero(~s.rejected() & (s.start_time < s.submit_time)),
        lambda j: f"job {s.job_number[j]} starts at {s.start_time[j]} s, submitted at {s.submit_time[j]} s",
        "jobs",
    )


def _rejected_jobs_do_not_run(s: _Schedule) -> Iterator[str]:
    """Rejected jobs have no segment and no end."""
    runs = (s.segments_per_job() > 0) | (s.end_time != _NONE)
    yield from report(
        np.flatnonzero(s.rejected() & runs),
        lambda j: f"job {s.job_number[j]} is rejected (start -1), but has a segment or an end",
        "jobs",
    )


def _only_large_jobs_are_rejected(s: _Schedule) -> Iterator[str]:
    """A job that fits a cluster is not rejected: this finds jobs that were lost.

    Where a run says the outcomes of its jobs, `nodes` looks at those that did not run.
    """
    yield from report(
        np.flatnonzero(s.rejected() & ~s.excused & (s.processors <= s.reach_processors)),
        lambda j: (
            f"job {s.job_number[j]} was never started: it asks for {s.processors[j]} processors, "
            f"and a cluster has {s.reach_processors[j]}"
        ),
        "jobs",
    )


def _accepted_jobs_run(s: _Schedule) -> Iterator[str]:
    """Accepted jobs have a segment."""
    yield from report(
        np.flatnonzero(~s.rejected() & (s.segments_per_job() == 0)),
        lambda j: f"job {s.job_number[j]} starts at {s.start_time[j]} s, but has no segment",
        "jobs",
    )


def _first_start(s: _Schedule) -> Iterator[str]:
    """The start time of a job is the first start of its segments."""
    first = np.full(len(s.job_number), np.iinfo(np.int64).max)
    np.minimum.at(first, s.job, s.start)
    runs = ~s.rejected() & (s.segments_per_job() > 0)
    yield from report(
        np.flatnonzero(runs & (s.start_time != first)),
        lambda j: (
            f"job {s.job_number[j]} has start_time {s.start_time[j]} s, "
            f"but its first segment starts at {first[j]} s"
        ),
        "jobs",
    )


def _last_end(s: _Schedule) -> Iterator[str]:
    """The end time of a job is the last end of its segments."""
    last = np.full(len(s.job_number), np.iinfo(np.int64).min)
    np.maximum.at(last, s.job, s.end)
    runs = ~s.rejected() & (s.segments_per_job() > 0)
    yield from report(
        np.flatnonzero(runs & (s.end_time != last)),
        lambda j: (
            f"job {s.job_number[j]} has end_time {s.end_time[j]} s, but its last segment ends at {last[j]} s"
        ),
        "jobs",
    )


def _work(s: _Schedule) -> Iterator[str]:
    """The segments of a job add up to its work."""
    s = s.executing()
    done = np.zeros(len(s.job_number), np.int64)
    np.add.at(done, s.job, (s.end - s.start) * s.share())
    work = s.run_time * s.processors + s.extra_work
    runs = ~s.rejected() & (s.segments_per_job() > 0)
    yield from report(
        np.flatnonzero(runs & (done != work)),
        lambda j: (
            f"job {s.job_number[j]} is executed for {done[j]} processor-seconds instead of {work[j]} "
            f"({s.run_time[j]} s on {s.processors[j]} processors{_and_more(int(s.extra_work[j]))})"
        ),
        "jobs",
    )


def _and_more(extra_work: int) -> str:
    return f" and {extra_work} processor-seconds more" if extra_work else ""


def _enough_processors(s: _Schedule) -> Iterator[str]:
    """A segment has the processors of its job, unless the job spans clusters."""
    s = s.executing()
    lowest = np.full(len(s.job_number), len(s.cluster_processors))
    highest = np.full(len(s.job_number), -1)
    np.minimum.at(lowest, s.job, s.cluster)
    np.maximum.at(highest, s.job, s.cluster)
    on_one_cluster = (lowest == highest)[s.job]
    yield from report(
        np.flatnonzero(on_one_cluster & (s.share() < s.processors[s.job])),
        lambda k: (
            f"job {s.job_number[s.job[k]]} runs on {s.share()[k]} processors from {s.start[k]} s, "
            f"but asks for {s.processors[s.job[k]]}"
        ),
        "segments",
    )


def _no_overlap_on_a_cluster(s: _Schedule) -> Iterator[str]:
    """Segments of a job on one cluster do not overlap: by start, none starts before the last one's end."""
    d = s.of_divided_jobs()
    order = np.lexsort((d.start, d.cluster, d.job))
    before, after = order[:-1], order[1:]
    same = (d.job[before] == d.job[after]) & (d.cluster[before] == d.cluster[after])
    offending = after[same & (d.start[after] < d.end[before])]
    yield from report(
        offending,
        lambda k: (
            f"job {d.job_number[d.job[k]]} has a segment from {d.start[k]} s on cluster "
            f"{d.cluster_name[d.cluster[k]]} while an earlier one there still runs"
        ),
        "segments",
    )


def _never_more_than_asked(s: _Schedule) -> Iterator[str]:
    """The segments of a job at one instant have no more processors than it asks for together.

    Else a job or a part of it is executed twice. Ends come before starts of the same instant.
    """
    d = s.executing().of_divided_jobs()
    segment = np.tile(np.arange(len(d.job)), 2)
    time = np.concatenate([d.end, d.start])
    change = np.concatenate([-d.share(), d.share()])
    order = np.lexsort((time, d.job[segment]))
    used = np.cumsum(change[order])
    job = d.job[segment[order]]
    yield from report(
        np.flatnonzero((used > d.processors[job]) & (change[order] > 0)),
        lambda k: (
            f"job {d.job_number[job[k]]} runs on {used[k]} processors at once at {time[order[k]]} s, "
            f"but asks for {d.processors[job[k]]}"
        ),
        "starts",
    )


def _reservations_kept(s: _Schedule) -> Iterator[str]:
    """Jobs with a reservation start when it begins."""
    yield from report(
        np.flatnonzero((s.reserved_start != _NONE) & (s.start_time != s.reserved_start)),
        lambda j: (
            f"job {s.job_number[j]} starts at {s.start_time[j]} s, "
            f"but is reserved for {s.reserved_start[j]} s"
        ),
        "jobs",
    )


_RULES: tuple[Rule, ...] = (
    _capacity,
    _after_submission,
    _rejected_jobs_do_not_run,
    _only_large_jobs_are_rejected,
    _accepted_jobs_run,
    _first_start,
    _last_end,
    _work,
    _enough_processors,
    _no_overlap_on_a_cluster,
    _never_more_than_asked,
    _reservations_kept,
)

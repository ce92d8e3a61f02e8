"""Clusters under MUSCLE or its rivals: what waits, what runs, and what each local scheduler plans.

A `Site` holds the jobs of one cluster that have not started, with a plan for them. The plan is executed as it
is: jobs start in its order, each when its resources are free in fact. Where jobs do not run as long as
expected, starts shift, but order and resources stay until the next plan. Started jobs never move.

Baselines, section 5 of He et al. (see `muscle`), give a job to a cluster when it arrives:

=========  ============================================================================================
``dll``    dynamic least load, equation (6): the cluster with the least sum of run time x size / resources
           over its jobs that have not ended (or not started), the first of equals
``wrand``  weighted random: a cluster with a probability in proportion to resources x speed
=========  ============================================================================================

both among the clusters that can hold the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import packing
from gridsched.schedulers.muscle import Backlog
from gridsched.schedulers.titan import Coding, Titan, Weights, in_order, optimise, packed, starts, stream

LocalName = Literal["titan", "seed", "easy"]
SeedingName = Literal["muscle", "arrival", "last", "none"]
LoadName = Literal["unfinished", "unstarted"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Jobs:
    """Jobs of a run in order of submission, as n clusters see them.

    Parameters
    ----------
    submit, deadline, processors : int64[p]
        Seconds, and resources.
    actual, expected : int64[n, p]
        Run time on each cluster, in fact and as predicted, at least 1 s.
    """

    submit: Integers
    deadline: Integers
    processors: Integers
    actual: Integers
    expected: Integers


class Started(NamedTuple):
    """Jobs that have started, when, and on which resources."""

    jobs: Integers
    start: Integers
    masks: NDArray[np.uint64]


class Metrics(NamedTuple):
    """Makespan, idle time and over-deadline of the jobs of a cluster that have not started, seconds."""

    makespan: int
    idle: int
    over_deadline: int


@dataclass(frozen=True)
class Scheduling:
    """How clusters are scheduled.

    Parameters
    ----------
    local : {"titan", "seed", "easy"}
        Genetic algorithm, the schedule it would start from, or EASY backfilling.
    seeding : {"muscle", "arrival", "last", "none"}
        What the first population holds besides random schedules: what MUSCLE hands over; all jobs in order
        of arrival; jobs that waited already as in the last plan, and new ones behind them in order of
        arrival; nothing.
    titan : Titan
        Parameters of the genetic algorithm.
    seed : int
        Seed of its random numbers.
    """

    local: LocalName
    seeding: SeedingName
    titan: Titan
    seed: int


class Site:
    """One cluster: its resources, the jobs that wait there, and the plan for them.

    Parameters
    ----------
    index : int
        Which of the clusters it is.
    processors, widest : int
        Resources now, and at most at any time.
    jobs : Jobs
        All jobs of the run.
    weights : Weights
        What the cluster wants.
    scheduling : Scheduling
        How it is scheduled.
    """

    def __init__(
        self, index: int, processors: int, widest: int, jobs: Jobs, weights: Weights, scheduling: Scheduling
    ) -> None:
        self.index = index
        self.processors = processors
        self.weights = weights
        self._all = jobs
        self._scheduling = scheduling
        self._actual, self._expected = jobs.actual[index], jobs.expected[index]
        self._occupants = np.zeros(widest, packing.OCCUPANT)
        self._occupants["end"] = np.iinfo(np.int64).min
        nothing = np.empty(0, np.int64)
        self.waiting: Integers = nothing
        """Jobs that have not started, in the order of the plan."""
        self._masks = np.empty((0, packing.words(widest)), np.uint64)
        self._start, self._planned_end = nothing, nothing
        self._running_end, self._running = nothing, nothing
        self.metrics = Metrics(0, 0, 0)
        self.generations = 0

    def advance(self, now: int) -> Started:
        """Let time pass; return the jobs that have started since the last time."""
        began = self._start <= now
        started = Started(self.waiting[began], self._start[began], self._masks[began])
        if len(started.jobs):
            coding = Coding(np.arange(len(started.jobs), dtype=np.int32), started.masks)
            packing.begin(
                *coding.arrays,
                started.start,
                self._actual[started.jobs],
                self._expected[started.jobs],
                int(now),
                self._occupants,
            )
            self._running = np.concatenate([self._running, started.jobs])
            ends = started.start + self._actual[started.jobs]
            self._running_end = np.concatenate([self._running_end, ends])
            self._keep(~began)
        still = self._running_end > now
        self._running, self._running_end = self._running[still], self._running_end[still]
        return started

    def _keep(self, jobs: NDArray[np.bool_]) -> None:
        self.waiting, self._masks = self.waiting[jobs], self._masks[jobs]
        self._start, self._planned_end = self._start[jobs], self._planned_end[jobs]

    def _releases(self, now: int) -> tuple[Integers, Integers]:
        """When each resource will be free, in fact and as far as is known."""
        actual, expected = np.empty((2, self.processors), np.int64)
        packing.releases(self._occupants, int(now), actual, expected)
        return actual, expected

    def backlog(self, now: int) -> Backlog:
        """What the cluster has to do before it can run more jobs; call `advance` before."""
        _, free = self._releases(now)
        jobs = self.waiting
        durations = self._expected[jobs]
        if len(jobs):
            coding = Coding(np.arange(len(jobs), dtype=np.int32), self._masks)
            _, free = starts(coding, durations, free, now)
        slack = self._all.deadline[jobs] - durations - self._all.submit[jobs]
        return Backlog(
            free,
            jobs=len(jobs),
            run_time=int(durations.sum()),
            size=int(self._all.processors[jobs].sum()),
            slack=int(np.maximum(slack, 1).sum()),
        )

    def load(self, times: Integers, counted: LoadName) -> NDArray[np.float64]:
        """Load of equation (6) at given times until the next plan, seconds."""
        jobs, gone = self.waiting, self._start
        if counted == "unfinished":
            jobs = np.concatenate([self._running, self.waiting])
            gone = np.concatenate([self._running_end, self._start + self._actual[self.waiting]])
        order = np.argsort(gone)
        work = (self._expected[jobs] * self._all.processors[jobs])[order]
        left = np.append(work[::-1].cumsum()[::-1], 0)
        share: NDArray[np.float64] = left[np.searchsorted(gone[order], times, side="right")] / self.processors
        return share

    def falls_to(self, threshold: int, now: int) -> int:
        """When the expected makespan of the jobs that have not started falls to a threshold.

        Their expected ends are those of the last plan; that a job starts is known at once.
        """
        if not len(self.waiting):
            return now
        order = np.argsort(self._start, kind="stable")
        start = self._start[order]
        last_end = np.maximum.accumulate(self._planned_end[order][::-1])[::-1]
        reached = np.maximum(np.append(now, start[:-1]), last_end - threshold)
        early = reached[reached < start]
        return int(early[0] if len(early) else start[-1])

    def resize(self, processors: int, now: int) -> Integers:
        """Add or remove the highest resources; return the jobs that are too large for the cluster now.

        A job that runs on a removed resource runs to its end. The others that wait keep their order.
        """
        self.processors = processors
        fits = self._all.processors[self.waiting] <= processors
        handed_back = self.waiting[~fits]
        self._keep(fits)
        if len(self.waiting):
            coding = self._in_order(self.waiting, now)
            self._masks[:] = 0
            self._masks[:, : coding.masks.shape[1]] = coding.masks
        return handed_back

    def _in_order(
        self, jobs: Integers, now: int, order: Integers | None = None, kept: NDArray[np.uint64] | None = None
    ) -> Coding:
        places = np.arange(len(jobs)) if order is None else order
        _, free = self._releases(now)
        return in_order(places, self._expected[jobs], self._all.processors[jobs], free, now, kept)

    # --- planning ---------------------------------------------------------------------------------

    def plan(self, new: Integers, masks: NDArray[np.uint64] | None, now: int, number: int) -> None:
        """Plan all jobs that have not started.

        Parameters
        ----------
        new : int64[k]
            Jobs that the cluster is given now.
        masks : uint64[k, w], optional
            Their resources in the schedule that MUSCLE hands over.
        now : int
            Present time, after `advance`.
        number : int
            Number of the round, which names the stream of random numbers.
        """
        jobs = np.concatenate([self.waiting, new])
        if not len(jobs):
            self.metrics, self.generations = Metrics(0, 0, 0), 0
            return
        actual_free, free = self._releases(now)
        actual, expected = self._actual[jobs], self._expected[jobs]
        if self._scheduling.local == "easy":
            coding, planned = self._easy(jobs, expected, free, now)
            metrics = self._measure(coding, planned, jobs, free, now)
            coding, begin = self._easy(jobs, actual, actual_free, now)
        else:
            coding = self._coding(jobs, new, masks, free, now, number)
            planned, _ = starts(coding, expected, free, now)
            metrics = self._measure(coding, planned, jobs, free, now)
            begin, _ = starts(coding, actual, actual_free, now)
        self.metrics = metrics
        self.waiting = jobs[coding.order]
        self._masks = np.zeros((len(jobs), self._masks.shape[1]), np.uint64)
        self._masks[:, : coding.masks.shape[1]] = coding.masks[coding.order]
        self._start = begin[coding.order]
        self._planned_end = (planned + expected)[coding.order]

    def measure(self, now: int) -> None:
        """Update the metrics of a cluster whose plan stays as it is; call `advance` before."""
        self.generations = 0
        if not len(self.waiting):
            self.metrics = Metrics(0, 0, 0)
            return
        _, free = self._releases(now)
        expected = self._expected[self.waiting]
        if self._scheduling.local == "easy":
            coding, planned = self._easy(self.waiting, expected, free, now)
        else:
            coding = Coding(np.arange(len(self.waiting), dtype=np.int32), self._masks)
            planned, _ = starts(coding, expected, free, now)
        self.metrics = self._measure(coding, planned, self.waiting, free, now)

    def _packed(self, jobs: Integers) -> NDArray[np.void]:
        return packed(self._expected[jobs], self._all.deadline[jobs], self._all.processors[jobs])

    def _measure(self, coding: Coding, begin: Integers, jobs: Integers, free: Integers, now: int) -> Metrics:
        found = packing.metrics(
            begin,
            coding.masks[np.newaxis],
            self._packed(jobs),
            free,
            int(now),
            self.weights.goal.to_makespan,
        )
        return Metrics(*found)

    def _coding(
        self,
        jobs: Integers,
        new: Integers,
        masks: NDArray[np.uint64] | None,
        free: Integers,
        now: int,
        number: int,
    ) -> Coding:
        """Order and resources of the jobs, those that waited already being the first."""
        scheduling = self._scheduling
        seed = self._seed(jobs, len(new), masks, now)
        if scheduling.local == "seed":
            assert seed is not None
            return seed
        best = optimise(
            self._packed(jobs),
            free,
            now,
            self.weights,
            scheduling.titan,
            stream(scheduling.seed, number, self.index),
            [] if seed is None else [seed],
        )
        self.generations = best.generations
        return best.coding

    def _seed(self, jobs: Integers, new: int, masks: NDArray[np.uint64] | None, now: int) -> Coding | None:
        seeding = self._scheduling.seeding
        words = packing.words(self.processors)
        if seeding == "muscle":
            assert masks is not None
            both = np.concatenate([self._masks[:, :words], masks[:, :words]])
            return Coding(np.arange(len(jobs), dtype=np.int32), both)
        if seeding == "last":
            return self._in_order(jobs, now, kept=np.ascontiguousarray(self._masks[:, :words]))
        if seeding == "arrival":
            return self._in_order(jobs, now, np.argsort(jobs, kind="stable"))
        return None

    def _easy(self, jobs: Integers, run_time: Integers, free: Integers, now: int) -> tuple[Coding, Integers]:
        """What EASY backfilling does if jobs run for so long, and resources become free then."""
        occupants = self._occupants[: self.processors].copy()
        occupants["end"] = np.where(free > now, free, occupants["end"])
        begin = np.empty(len(jobs), np.int64)
        masks = np.zeros((len(jobs), packing.words(self.processors)), np.uint64)
        coding = Coding(np.arange(len(jobs), dtype=np.int32), masks)
        sizes = self._all.processors[jobs]
        packing.easy(*coding.arrays, run_time, self._expected[jobs], sizes, occupants, int(now), begin)
        return coding, begin


# --- baselines ------------------------------------------------------------------------------------


def least_load(
    jobs: Jobs, arrived: Integers, times: Integers, sites: Sequence[Site], counted: LoadName
) -> Integers:
    """Cluster of each job by equation (6), in order of arrival.

    Parameters
    ----------
    jobs : Jobs
        All jobs of the run.
    arrived, times : int64[k]
        The jobs, and when each is dispatched.
    sites : sequence of Site
        State of the clusters since their last plan.
    counted : {"unfinished", "unstarted"}
        Which jobs are load.
    """
    load = np.stack(
        [site.load(times, counted) if site.processors else np.zeros(len(times)) for site in sites]
    )
    widths = np.array([site.processors for site in sites])
    added = np.zeros(len(sites))
    chosen = np.empty(len(arrived), np.int64)
    for k, job in enumerate(arrived.tolist()):
        present = np.where(widths >= jobs.processors[job], load[:, k] + added, np.inf)
        i = int(np.argmin(present))
        chosen[k] = i
        added[i] += jobs.expected[i, job] * jobs.processors[job] / widths[i]
    return chosen


def weighted_random(
    jobs: Jobs, arrived: Integers, sites: Sequence[Site], speeds: Sequence[float], drawn: NDArray[np.float64]
) -> Integers:
    """Cluster of each job with a probability in proportion to resources x speed.

    Parameters
    ----------
    jobs : Jobs
        All jobs of the run.
    arrived : int64[k]
        The jobs.
    sites : sequence of Site
        The clusters.
    speeds : sequence of float
        Speed of each.
    drawn : float64[k]
        A random number from 0 to less than 1 for each job.
    """
    widths = np.array([site.processors for site in sites])
    fits = widths[:, np.newaxis] >= jobs.processors[arrived]
    edges = np.cumsum(np.where(fits, (widths * np.asarray(speeds))[:, np.newaxis], 0.0), axis=0)
    return np.asarray(np.argmax(edges > drawn * edges[-1], axis=0), np.int64)

"""Clusters under MUSCLE or its rivals: what waits, what runs, and what TITAN plans.

A `ManagedCluster` is one cluster. A `PlannedCluster` holds the jobs that have not started with a plan for
them, made by TITAN. The plan is executed as it is: jobs start in its order, each when its resources are free
in fact. Where jobs do not run as long as expected, or a user gives up, starts shift, but order and resources
stay until the next plan. Started jobs never move. Clusters under any other local policy are in `queues`.

Resources may be added and removed, and may be out for a while. Plans know only those that take jobs now, by
their places among them; `Placed` has those of jobs that have started by their own numbers.

Baselines, section 5 of He et al. (see `muscle`), give a job to a cluster when it arrives:

=========  ============================================================================================
``dll``    dynamic least load, equation (6): the cluster with the least sum of run time x size / resources
           over its jobs that have not ended (or not started) at the round, the first of equals
``wrand``  weighted random: a cluster with a probability in proportion to resources x speed
=========  ============================================================================================

both among the clusters that can hold the job, or among those that are larger than it, if there are any.
Resources are processors here, of which a job takes those of whole nodes where a cluster gives them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER
from gridsched.systems.multicluster.kernels import packing
from gridsched.systems.multicluster.muscle import Backlog
from gridsched.systems.multicluster.titan import (
    Coding,
    Optimised,
    Weights,
    in_order,
    masks_of,
    measured,
    optimise,
    packed,
    resources_of,
    starts,
    stream,
)

if TYPE_CHECKING:
    from gridsched.systems.multicluster.scheduler import Multicluster

SeedingName = Literal["muscle", "arrival", "last", "none"]
LoadName = Literal["unfinished", "unstarted"]
FitName = Literal["exact", "larger"]

Integers = NDArray[np.int64]

NOBODY: Integers = np.empty(0, np.int64)

Outlook = tuple[Integers, Integers, Integers]
"""When each job that waits starts, and when each resource is free without and after them, as far as known."""


@dataclass(frozen=True)
class MulticlusterJobs:
    """Jobs of a run in order of submission, as n clusters see them.

    Parameters
    ----------
    submit, deadline, processors : int64[p]
        Seconds, and processors that are asked for.
    since : int64[p]
        From when on the deadline was promised, and slack counts, seconds.
    resources : int64[n, p]
        Resources of each cluster that hold them: processors, or nodes where a cluster gives whole nodes.
    actual, expected : int64[n, p]
        Run time on each cluster, in fact and as predicted, at least 1 s.
    turn : int64[p]
        Place of each in the order of arrival.
    """

    submit: Integers
    deadline: Integers
    since: Integers
    processors: Integers
    resources: Integers
    actual: Integers
    expected: Integers
    turn: Integers


class Placed(NamedTuple):
    """Jobs with their starts and ends, in fact or as expected, and the resources of each as bits."""

    jobs: Integers
    start: Integers
    end: Integers
    masks: NDArray[np.uint64]

    def only(self, some: NDArray[np.bool_]) -> Placed:
        """Some of the jobs."""
        return Placed(self.jobs[some], self.start[some], self.end[some], self.masks[some])


class ManagedCluster(ABC):
    """One cluster: its resources, and the jobs that wait there.

    Parameters
    ----------
    index : int
        Which of the clusters it is.
    resources, widest : int
        Resources that take jobs now, and all that there are at any time.
    jobs : MulticlusterJobs
        All jobs of the run.
    weights : Weights
        What the cluster wants.
    overrun : int
        What happens to exceeded estimates, a value of `Overrun`.
    unit : int
        Processors of a resource.
    counted : {"unstarted", "unfinished"}
        Which of its jobs count in epsilon.
    """

    def __init__(
        self,
        index: int,
        resources: int,
        widest: int,
        jobs: MulticlusterJobs,
        weights: Weights,
        overrun: int,
        unit: int = 1,
        counted: LoadName = "unstarted",
    ) -> None:
        self.index = index
        self._counted = counted
        self.resources = resources
        self.unit = unit
        self.weights = weights
        self._all = jobs
        self._overrun = overrun
        self._actual, self._expected = jobs.actual[index], jobs.expected[index]
        self._sizes: Integers = jobs.resources[index]
        self._present, self._out = resources, np.zeros(widest, np.int64)
        self._places: Integers | slice = slice(resources)
        self.words = packing.words(widest)
        self._occupants = np.zeros(widest, packing.OCCUPANT)
        self._occupants["end"] = np.iinfo(np.int64).min
        self._plan = self._running = self._nobody = self._unplaced(NOBODY)
        self._looked: tuple[int, Placed, Placed, Outlook] | None = None
        self.metrics = (0, 0, 0)
        """Makespan, idle time and over-deadline of the jobs that have not started, seconds."""
        self.generations = 0

    @property
    def widest(self) -> int:
        """All resources that there are at any time."""
        return len(self._out)

    @property
    def waiting(self) -> Integers:
        """Jobs that have not started, in order."""
        return self._plan.jobs

    @property
    def running(self) -> Integers:
        """Jobs that run."""
        return self._running.jobs

    @property
    def processors(self) -> int:
        """Processors of the cluster now."""
        return self.resources * self.unit

    def taken(self, jobs: Integers) -> Integers:
        """Processors that each of some jobs takes here."""
        taken: Integers = self._sizes[jobs] * self.unit
        return taken

    @abstractmethod
    def advance(self, now: int) -> Placed:
        """Let time pass; return the jobs that have started since the last time."""

    @abstractmethod
    def _starts_in_fact(self, now: int) -> Integers:
        """When each job that waits will start if no other comes."""

    @abstractmethod
    def _as_expected(self, now: int) -> Outlook:
        """What happens if all estimates are right."""

    def _outlook(self, now: int) -> Outlook:
        """What `_as_expected` says, which stays while no job comes, starts, ends or is expected to end."""
        if self._looked:
            then, plan, running, (start, free, left) = self._looked
            stays = plan is self._plan and running is self._running
            if stays and not ((free > then) & (free <= now)).any():
                outlook = start, np.maximum(free, now), np.maximum(left, now)
                self._looked = now, plan, running, outlook
                return outlook
        outlook = self._as_expected(now)
        self._looked = now, self._plan, self._running, outlook
        return outlook

    def falls_to(self, threshold: int, now: int) -> int:
        """When the expected makespan of the jobs that have not started falls to a threshold.

        Their expected ends are those of the last plan; that a job starts is known at once.
        """
        if not len(self.waiting):
            return now
        return first_fall(self._starts_in_fact(now), self._plan.end, threshold, now)

    def keeps_waiting(self, now: int) -> bool:
        """Whether a job waits that does not start now."""
        return bool(len(self.waiting)) and bool((self._starts_in_fact(now) > now).any())

    def resize(self, resources: int, now: int) -> Integers:
        """Add or remove the highest resources; return the jobs that are too large for the cluster now.

        A job that runs on a removed resource runs to its end. The others that wait keep their order.
        """
        self._present = resources
        return self.rearrange(now)

    def rearrange(
        self, now: int, killed: Integers = NOBODY, again: Integers = NOBODY, *, at_end: bool = False
    ) -> Integers:
        """Let jobs take the resources that are there and not out, and no others.

        Parameters
        ----------
        now : int
            Present time.
        killed : int64[k]
            Jobs that have been killed.
        again : int64[k]
            Those of them that wait again: before those that have not started (in a local queue at the places
            that they had), or `at_end` behind all others.
        at_end : bool
            Where these wait.

        Returns
        -------
        int64[...]
            Jobs that are too large for the cluster now, in order; they wait there no more.
        """
        places = np.flatnonzero(self._out[: self._present] == 0)
        self.resources = len(places)
        # what is looked up through a slice is not copied
        self._places = slice(self.resources) if self.resources == self._present else places
        jobs = np.concatenate([self.waiting, again] if at_end else [again, self.waiting])
        fits = self.holds(jobs)
        self._wait_anew(jobs[fits], killed, again if at_end else NOBODY, now)
        return jobs[~fits]

    @abstractmethod
    def _wait_anew(self, jobs: Integers, killed: Integers, last: Integers, now: int) -> None:
        """Let these jobs wait, and no others, some of them behind all that ever waited; others are killed."""

    @abstractmethod
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

    def measure(self, now: int, *, is_new: bool = False) -> None:
        """Update the metrics of the jobs that wait; call `advance` before.

        Of a plan that is new, when they are expected to end is noted, too.
        """
        self.metrics, self.generations = (0, 0, 0), 0
        if not len(self.waiting):
            return
        start, free, left = self._outlook(now)
        jobs = self._packed(self.waiting)
        self.metrics = measured(start, left, jobs, free, now, self.weights, self.unit)
        if is_new:
            self._plan = self._plan._replace(end=start + jobs["duration"])

    # --- failures and users who give up: only where time goes on from one instant to the next -------------

    @abstractmethod
    def next_instant(self) -> int:
        """When a job starts or ends next, if nothing else happens; `FOREVER` if none does."""

    def withdraw(self, jobs: Integers, now: int) -> None:
        """Let jobs wait there no more; the others keep their order and resources."""
        self._plan = self._plan.only(~np.isin(self.waiting, jobs))

    def finish(self, now: int) -> Placed:
        """Let jobs end now, but none start; return those that have ended."""
        ended = self._running.end <= now
        over, self._running = self._running.only(ended), self._running.only(~ended)
        return over

    def take_off(self, resources: NDArray[np.bool_], now: int) -> Placed:
        """Take the jobs that run on some resources off all that they have; return them by their starts.

        `rearrange` has to follow.
        """
        used = resources_of(self._running.masks, len(resources))
        hit: NDArray[np.bool_] = np.any(used & resources, axis=1)
        killed, self._running = self._running.only(hit), self._running.only(~hit)
        self._occupants["end"][resources_of(killed.masks, len(resources)).any(axis=0)] = now
        return killed

    def put_out(self, first: int, end: int, more: int) -> None:
        """Let resources be out once more, or once less often; call `rearrange` then."""
        self._out[first:end] += more

    def holds(self, jobs: Integers) -> NDArray[np.bool_]:
        """Whether the cluster is large enough for each of some jobs now."""
        large: NDArray[np.bool_] = self._sizes[jobs] <= self.resources
        return large

    # --- what kinds of clusters have in common ----------------------------------------------------

    def load(self, counted: LoadName) -> float:
        """Load of equation (6), seconds; call `advance` before."""
        jobs = self._there(counted)
        return float((self._expected[jobs] * self.taken(jobs)).sum() / self.processors)

    def _there(self, counted: LoadName) -> Integers:
        """Jobs of the cluster that have not ended, or not started."""
        return np.concatenate([self.running, self.waiting]) if counted == "unfinished" else self.waiting

    def _unplaced(self, jobs: Integers) -> Placed:
        """Jobs of which nobody knows yet when and where they run."""
        never = np.full(len(jobs), FOREVER)
        return Placed(jobs, never, never, np.zeros((len(jobs), self.words), np.uint64))

    def _begin(self, started: Placed, still: NDArray[np.bool_], now: int) -> Placed:
        """Let jobs that have started be among those that run and not wait, and forget those that have ended.

        Parameters
        ----------
        started : Placed
            The jobs, with their resources by places.
        still : bool[k]
            Which of the jobs that wait they are not.
        now : int
            Present time.

        Returns
        -------
        Placed
            The jobs, with their resources by numbers.
        """
        if len(started.jobs):
            self._plan = self._plan.only(still)
            end, masks = started.start + self._actual[started.jobs], self._by_number(started.masks)
            started = started._replace(end=end, masks=masks)
            packing.begin(masks, started.start, end, self._expected[started.jobs], self._occupants)
            both = zip(self._running, started, strict=True)
            self._running = Placed(*(np.concatenate(pair) for pair in both))
        runs = self._running.end > now
        if not runs.all():
            self._running = self._running.only(runs)
        return started

    def _by_number(self, masks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Sets of resources that are given by their places among those that take jobs, by their numbers."""
        if isinstance(self._places, slice):
            return masks
        spread = np.zeros((len(masks), len(self._out)), np.bool_)
        spread[:, self._places] = resources_of(masks, self.resources)
        return masks_of(spread)

    def _releases(self, now: int) -> Any:
        """When each resource will be free, in fact and as far as is known."""
        return packing.releases(self._occupants[self._places], int(now), self._overrun)

    def backlog(self, now: int) -> Backlog:
        """What the cluster has to do before it can run more jobs; call `advance` before."""
        _, _, free = self._outlook(now)
        jobs = self._there(self._counted)
        durations = self._expected[jobs]
        slack = self._all.deadline[jobs] - durations - self._all.since[jobs]
        return Backlog(
            free,
            jobs=len(jobs),
            run_time=int(durations.sum()),
            size=int(self.taken(jobs).sum()),
            slack=int(np.maximum(slack, 1).sum()),
            unit=self.unit,
        )

    def _packed(self, jobs: Integers) -> NDArray[np.void]:
        return packed(self._expected[jobs], self._all.deadline[jobs], self._sizes[jobs])


def first_fall(start: Integers, end: Integers, threshold: int, now: int) -> int:
    """When the makespan of the jobs that have not started falls to a threshold.

    Parameters
    ----------
    start, end : int64[k]
        When each job will start in fact, and is expected to end, seconds; at least one.
    threshold : int
        Seconds.
    now : int
        Present time.
    """
    order = np.argsort(start, kind="stable")
    begin = start[order]
    last_end = np.maximum.accumulate(end[order][::-1])[::-1]
    reached = np.maximum(np.append(now, begin[:-1]), last_end - threshold)
    early = reached[reached < begin]
    return int(early[0] if len(early) else begin[-1])


# --- TITAN ----------------------------------------------------------------------------------------


class PlannedCluster(ManagedCluster):
    """A cluster that runs its jobs as TITAN has planned; parameters of `ManagedCluster`.

    Besides, who makes the plans, and the seed of random numbers.
    """

    def __init__(self, *cluster: Any, policy: Multicluster, seed: int) -> None:
        super().__init__(*cluster)
        self._policy, self._seed = policy, seed

    def advance(self, now: int) -> Placed:
        """Let time pass; return the jobs that have started since the last time."""
        still = self._plan.start > now
        started = self._nobody if still.all() else self._plan.only(~still)
        return self._begin(started, still, now)

    def _starts_in_fact(self, now: int) -> Integers:
        return self._plan.start

    def _as_expected(self, now: int) -> Outlook:
        _, free = self._releases(now)
        if not len(self.waiting):
            return NOBODY, free, free
        start, left = starts(Coding.in_turn(self._plan.masks), self._expected[self.waiting], free, now)
        return start, free, left

    def next_instant(self) -> int:
        """When a job starts or ends next, if nothing else happens."""
        return int(min(self._plan.start.min(initial=FOREVER), self._running.end.min(initial=FOREVER)))

    def withdraw(self, jobs: Integers, now: int) -> None:
        """Let jobs wait there no more; the others start when their resources are free in fact."""
        super().withdraw(jobs, now)
        self._set_starts(now)

    def _set_starts(self, now: int) -> None:
        """Let the jobs of the plan start when their resources are free in fact."""
        free, _ = self._releases(now)
        start, _ = starts(Coding.in_turn(self._plan.masks), self._actual[self.waiting], free, now)
        self._plan = self._plan._replace(start=start)

    def _lay_out(self, jobs: Integers, coding: Coding, now: int) -> None:
        """Let jobs wait as a schedule says."""
        self._plan = self._unplaced(jobs[coding.order])
        self._plan.masks[:, : coding.masks.shape[1]] = coding.masks[coding.order]
        self._set_starts(now)
        self.measure(now, is_new=True)

    def _wait_anew(self, jobs: Integers, killed: Integers, last: Integers, now: int) -> None:
        """All choose their resources again, in order."""
        self._lay_out(jobs, self._in_order(jobs, np.arange(len(jobs)), now), now)

    def _in_order(
        self, jobs: Integers, order: Integers, now: int, kept: NDArray[np.uint64] | None = None
    ) -> Coding:
        _, free = self._releases(now)
        return in_order(order, self._expected[jobs], self._sizes[jobs], free, now, kept)

    # --- planning ---------------------------------------------------------------------------------

    def plan(self, new: Integers, masks: NDArray[np.uint64] | None, now: int, number: int) -> None:
        """Plan all jobs that have not started."""
        jobs = np.concatenate([self.waiting, new])
        if not len(jobs):
            self.measure(now)
            return
        seeds = self._seeds(jobs, masks, now)
        if self._policy.local == "seed":
            best = Optimised(seeds[0], np.nan, 0)
        else:
            best = optimise(
                self._packed(jobs),
                self._releases(now)[1],
                now,
                self.weights,
                self._policy.titan,
                stream(self._seed, number, self.index),
                seeds,
                self.unit,
            )
        self._lay_out(jobs, best.coding, now)
        self.generations = best.generations

    def _seeds(self, jobs: Integers, masks: NDArray[np.uint64] | None, now: int) -> list[Coding]:
        """What the first population holds besides random schedules."""
        seeding, words = self._policy.seeding, packing.words(self.resources)
        kept = np.ascontiguousarray(self._plan.masks[:, :words])
        if seeding == "muscle":
            assert masks is not None
            return [Coding.in_turn(np.concatenate([kept, masks[:, :words]]))]
        if seeding == "last":
            return [self._in_order(jobs, np.arange(len(jobs)), now, kept)]
        if seeding == "arrival":
            return [self._in_order(jobs, np.argsort(self._all.turn[jobs], kind="stable"), now)]
        return []


# --- baselines ------------------------------------------------------------------------------------


def least_load(
    jobs: MulticlusterJobs,
    arrived: Integers,
    clusters: Sequence[ManagedCluster],
    counted: LoadName,
    fit: FitName = "exact",
) -> Integers:
    """Cluster of each job by equation (6), in order of arrival.

    Parameters
    ----------
    jobs : MulticlusterJobs
        All jobs of the run.
    arrived : int64[k]
        The jobs.
    clusters : sequence of ManagedCluster
        The clusters.
    counted : {"unfinished", "unstarted"}
        Which jobs are load.
    fit : {"exact", "larger"}
        Which clusters a job may have, see `_able`.
    """
    load = np.array([cluster.load(counted) if cluster.processors else 0.0 for cluster in clusters])
    widths = np.array([cluster.processors for cluster in clusters])
    taken = np.stack([cluster.taken(arrived) for cluster in clusters])
    able = _able(widths, taken, fit)
    added = np.zeros(len(clusters))
    chosen = np.empty(len(arrived), np.int64)
    for k, job in enumerate(arrived.tolist()):
        present = np.where(able[:, k], load + added, np.inf)
        i = int(np.argmin(present))
        chosen[k] = i
        added[i] += jobs.expected[i, job] * taken[i, k] / widths[i]
    return chosen


def weighted_random(
    arrived: Integers,
    clusters: Sequence[ManagedCluster],
    speeds: Sequence[float],
    drawn: NDArray[np.float64],
    fit: FitName = "exact",
) -> Integers:
    """Cluster of each job with a probability in proportion to processors x speed.

    Parameters
    ----------
    arrived : int64[k]
        The jobs.
    clusters : sequence of ManagedCluster
        The clusters.
    speeds : sequence of float
        Speed of each.
    drawn : float64[k]
        A random number from 0 to less than 1 for each job.
    fit : {"exact", "larger"}
        Which clusters a job may have, see `_able`.
    """
    widths = np.array([cluster.processors for cluster in clusters])
    fits = _able(widths, np.stack([cluster.taken(arrived) for cluster in clusters]), fit)
    edges = np.cumsum(np.where(fits, (widths * np.asarray(speeds))[:, np.newaxis], 0.0), axis=0)
    return np.asarray(np.argmax(edges > drawn * edges[-1], axis=0), np.int64)


def _able(widths: Integers, taken: Integers, fit: FitName) -> NDArray[np.bool_]:
    """Which clusters each job may have: those that hold it, or of these the ones that are larger than it.

    A job that is as large as the largest cluster that holds it may have that one in any case.
    """
    holds: NDArray[np.bool_] = widths[:, np.newaxis] >= taken
    if fit == "exact":
        return holds
    larger: NDArray[np.bool_] = widths[:, np.newaxis] > taken
    return np.where(larger.any(axis=0), larger, holds)

"""Clusters under local policies below MUSCLE or its rivals.

The local schedulers are those of the engine (`gridsched.engine.clusters`), with any local policy and rule
for exceeded estimates. Jobs enter the queue of a cluster in the order in which they are allocated. A job
takes the lowest resources that are free when it starts.

The information of MUSCLE about a cluster, and what is measured, is what the local scheduler would do with its
jobs if all estimates were right.

Where processors fail, or users give up, time goes on from one instant to the next: what ends, what happens to
processors and jobs, then the scheduling passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import clusters as grid
from gridsched.engine.records import FOREVER, JOB
from gridsched.platform import Cluster
from gridsched.policies import scores
from gridsched.policies.local import LocalPolicy
from gridsched.systems.cluster_records import cluster_records
from gridsched.systems.grids import FIRST_ROOM
from gridsched.systems.multicluster.kernels import packing, queues
from gridsched.systems.multicluster.managed_cluster import (
    NOBODY,
    BacklogMetrics,
    Integers,
    ManagedCluster,
    MulticlusterJobs,
    Started,
    first_fall,
)
from gridsched.systems.multicluster.muscle import Backlog
from gridsched.systems.multicluster.titan import Coding, resources_of


class LocalSchedulers:
    """The local schedulers of all clusters.

    Parameters
    ----------
    jobs : MulticlusterJobs
        All jobs of the run.
    labels : LABELS[p]
        User, group and queue of each.
    clusters : sequence of Cluster
        The clusters as they are at first.
    widest : sequence of int
        Most processors that each has at any time.
    policies : sequence of LocalPolicy
        Local policy of each.
    overrun : int
        What happens to exceeded estimates, a value of `Overrun`.

    Raises
    ------
    ConfigurationError
        If the policies do not go together.
    """

    def __init__(
        self,
        jobs: MulticlusterJobs,
        labels: NDArray[Any],
        clusters: Sequence[Cluster],
        widest: Sequence[int],
        policies: Sequence[LocalPolicy],
        overrun: int,
    ) -> None:
        self._all = jobs
        requests = np.zeros(len(jobs.submit), JOB)
        requests["submit"], requests["processors"] = jobs.submit, jobs.processors
        records, score = cluster_records(clusters, policies)
        records["processors"] = widest
        self._order, self._score = score, scores.SCORE.compile(score)
        self._now = -1
        self._room = FIRST_ROOM
        self._options = grid.GridOptions(overrun, int(grid.StartPredictions.EXACT))
        home = np.zeros(len(requests), np.int64)
        self._grid, self._local = grid.allocate(
            requests, labels, home, records, self._room, self._options.predictions
        )
        present = [cluster.processors for cluster in clusters]
        self._grid.clusters["processors"] = present
        self._grid.state["free"][:-1, 0] = present
        self._local.steps["free"][:-1, 0] = present

    def advance(self, now: int) -> None:
        """Let happen on all clusters what happens up to a time, if no job comes."""
        if now > self._now:
            self._now = min(int(now), FOREVER - 1)
            queues.advance(self._grid, self._local, self._now, self._options, self._score)
            scores.check_order(self._order, self._grid.state)

    def finish(self, now: int) -> None:
        """Let jobs end now, on all clusters; `advance` starts what can start now."""
        self._now = int(now) - 1
        queues.finish(self._grid, self._local, int(now), self._options)

    def next_instant(self) -> int:
        """When something happens on any cluster next, if no job comes."""
        return int(queues.next_instant(self._grid))

    def receive(self, jobs: Integers, cluster: int, now: int) -> None:
        """Let jobs enter the queue of a cluster, and start there what can start now."""
        self._describe(jobs, cluster)
        queues.receive(self._grid, self._local, jobs, cluster, int(now), self._options, self._score)

    def requeue(self, jobs: Integers, cluster: int, now: int) -> None:
        """Let jobs wait behind the others on a cluster of which the processors have changed."""
        self._describe(jobs, cluster)
        queues.requeue(self._grid, self._local, jobs, cluster, int(now), self._options, self._score)

    def take_off(self, jobs: Integers, cluster: int, now: int) -> None:
        """Let killed jobs run on a cluster no longer."""
        queues.take_off(self._grid, self._local, jobs, cluster, int(now), self._options)

    def _describe(self, jobs: Integers, cluster: int) -> None:
        """Say what jobs are on the cluster that they are about to enter."""
        self._make_room(len(jobs))
        requests = self._grid.requests
        requests["submit"][jobs] = self._all.submit[jobs]
        requests["run"][jobs] = self._all.actual[cluster, jobs]
        requests["estimate"][jobs] = self._all.expected[cluster, jobs]
        # run times are those on the cluster
        self._grid.home[jobs] = cluster

    def _make_room(self, coming: int) -> None:
        """Make space for more jobs in a queue, and entries, of which handed back jobs have several."""
        clock = self._grid.clock[0]
        while clock["longest"] + coming >= self._room:
            self._room *= 2
            self._local = grid.with_room(self._grid, self._local, self._room, self._options.predictions)
        entries = int(clock["entered"]) + coming
        if entries > len(self._local.labels):
            self._local = grid.with_entries(self._local, 2 * entries)

    def withdraw(self, jobs: Integers, cluster: int, now: int) -> None:
        """Let jobs wait no longer on a cluster."""
        queues.withdraw(self._grid, self._local, jobs, cluster, int(now))

    def resize(self, cluster: int, processors: int, running: Integers, held: Integers, now: int) -> None:
        """Let a cluster have so many processors, of which each running job holds some."""
        by_entry = np.zeros(len(self._local.labels), np.int64)
        by_entry[self._grid.entry[running]] = held
        queues.resize(self._grid, self._local, cluster, processors, by_entry, int(now))

    def starts(self, jobs: Integers) -> Integers:
        """When each of some jobs has started, -1 if it waits."""
        begun: Integers = self._local.starts[0, self._grid.entry[jobs]]
        return begun

    def foreseen(self, jobs: Integers, cluster: int, now: int, *, in_fact: bool) -> Integers:
        """When each of the jobs of a cluster has started or will start, if no other comes.

        Every job is as long as it is expected to be, or `in_fact` as long as it is. What happens now has
        happened already.
        """
        begun = self.starts(jobs)
        if not len(jobs):
            return begun
        ahead = begun < 0
        if ahead.any():
            queues.foresee(
                self._grid, self._local, cluster, int(now), in_fact, self._options.overrun, self._score
            )
            begun[ahead] = self._local.starts[1, self._grid.entry[jobs[ahead]]]
        return begun


class QueueCluster(ManagedCluster):
    """A cluster under a local policy; parameters as of `ManagedCluster`, and the local schedulers.

    With `foresees` every plan is measured, and says when jobs are expected to end.
    """

    def __init__(self, *cluster: Any, schedulers: LocalSchedulers, foresees: bool) -> None:
        super().__init__(*cluster)
        self._schedulers = schedulers
        self._foresees = foresees
        self._planned_end = np.empty(0, np.int64)
        self._entered = 0
        self._entry = np.empty(len(self._all.submit), np.int64)

    def advance(self, now: int) -> Started:
        """Let time pass; return the jobs that have started since the last time."""
        self._schedulers.advance(now)
        start = self._schedulers.starts(self.waiting)
        began = start >= 0
        occupants = self._occupants[self._places]
        started = self._placed(self.waiting[began], start[began], self._actual, occupants)
        if len(started.jobs):
            self._occupants[self._places] = occupants
            started = started._replace(masks=self._by_number(started.masks))
            self.waiting, self._planned_end = self.waiting[~began], self._planned_end[~began]
        self._run(started, now)
        return started

    def _placed(
        self, jobs: Integers, start: Integers, durations: Integers, occupants: NDArray[np.void]
    ) -> Started:
        """Jobs with their starts, on the lowest resources that are free then."""
        masks = np.zeros((len(jobs), self.words), np.uint64)
        if len(jobs):
            order = np.argsort(start, kind="stable")
            jobs, start = jobs[order], start[order]
            estimates, sizes = self._expected[jobs], self._sizes[jobs]
            packing.take_lowest(start, durations[jobs], estimates, sizes, occupants, masks)
        return Started(jobs, start, masks)

    def _as_expected(self, now: int) -> tuple[Integers, Started, Integers, Integers]:
        """When the jobs that wait start if all estimates are right.

        Also where, in order of starts, and when resources are free without them and after them.
        """
        _, free = self._releases(now)
        occupants = np.zeros(self.resources, packing.OCCUPANT)
        occupants["end"] = free
        start = self._schedulers.foreseen(self.waiting, self.index, now, in_fact=False)
        placed = self._placed(self.waiting, start, self._expected, occupants)
        return start, placed, free, occupants["end"]

    def backlog(self, now: int) -> Backlog:
        """What the cluster has to do before it can run more jobs; call `advance` before."""
        return self._backlog(self._as_expected(now)[3])

    def falls_to(self, threshold: int, now: int) -> int:
        """When the expected makespan of the jobs that have not started falls to a threshold."""
        if not len(self.waiting):
            return now
        start = self._schedulers.foreseen(self.waiting, self.index, now, in_fact=True)
        return first_fall(start, self._planned_end, threshold, now)

    def rearrange(self, now: int, again: Integers = NOBODY, *, at_end: bool = False) -> Integers:
        """Let jobs take the resources that are there and not out; every local plan is recomputed."""
        self._find_places()
        fits = self.holds(self.waiting)
        small, large = again[self.holds(again)], again[~self.holds(again)]
        handed_back: Integers = np.concatenate(
            [self.waiting[~fits], large] if at_end else [large, self.waiting[~fits]]
        )
        self.withdraw(self.waiting[~fits], now)
        held = resources_of(self._running.masks, len(self._out))[:, self._places].sum(axis=1) * self.unit
        self._schedulers.resize(self.index, self.processors, self._running.jobs, held, now)
        if len(small):
            self._wait_again(small, now, at_end)
        return handed_back

    def _wait_again(self, jobs: Integers, now: int, at_end: bool) -> None:
        """Let jobs wait again, at the places in the queue that they had or at its end."""
        if at_end:
            self._number(jobs)
        else:
            # a queue is in order of entry, so that all that waits enters anew
            waiting = self.waiting
            self._schedulers.withdraw(waiting, self.index, now)
            jobs = np.concatenate([waiting, jobs])
            self.waiting = NOBODY
        jobs = jobs[np.argsort(self._entry[jobs])]
        self._schedulers.requeue(jobs, self.index, now)
        self.waiting = np.concatenate([self.waiting, jobs])
        self._planned_end = np.full(len(self.waiting), FOREVER)

    def _number(self, jobs: Integers) -> None:
        """Number jobs that enter the queue behind all others."""
        self._entry[jobs] = self._entered + np.arange(len(jobs))
        self._entered += len(jobs)

    def next_instant(self) -> int:
        """When something happens next, on this cluster or on another one."""
        return self._schedulers.next_instant()

    def withdraw(self, jobs: Integers, now: int) -> None:
        """Let jobs wait there no more."""
        stay = ~np.isin(self.waiting, jobs)
        self._schedulers.withdraw(jobs, self.index, now)
        self.waiting, self._planned_end = self.waiting[stay], self._planned_end[stay]

    def finish(self, now: int) -> Started:
        """Let jobs end now, but none start; return those that have ended."""
        self._schedulers.finish(now)
        return super().finish(now)

    def _take_off(self, jobs: Integers, now: int) -> None:
        """Let the local scheduler know that jobs run no longer."""
        self._schedulers.take_off(jobs, self.index, now)

    def plan(self, new: Integers, masks: NDArray[np.uint64] | None, now: int, number: int) -> None:
        """Let new jobs enter the queue, and foresee what happens to all that wait."""
        self._number(new)
        self._schedulers.receive(new, self.index, now)
        self.waiting = np.concatenate([self.waiting, new])
        self._planned_end = np.full(len(self.waiting), FOREVER)
        if self._foresees:
            planned = self._foresee(now)
            self._planned_end = planned + self._expected[self.waiting]

    def measure(self, now: int) -> None:
        """Update the metrics of a cluster that is given no jobs; call `advance` before."""
        self._foresee(now)

    def _foresee(self, now: int) -> Integers:
        """Measure what happens if all estimates are right; return when each waiting job starts then."""
        start, placed, free, _ = self._as_expected(now)
        self.metrics = BacklogMetrics(0, 0, 0)
        if len(self.waiting):
            coding = Coding(np.arange(len(placed.jobs), dtype=np.int32), placed.masks)
            self.metrics = self._measured(coding, placed.start, placed.jobs, free, now)
        return start

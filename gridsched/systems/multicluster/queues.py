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
    Integers,
    ManagedCluster,
    MulticlusterJobs,
    Outlook,
    Placed,
)
from gridsched.systems.multicluster.titan import resources_of


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
        self._order, self.score = score, scores.SCORE.compile(score)
        self._now = -1
        self._room = FIRST_ROOM
        self.options = grid.GridOptions(overrun, int(grid.StartPredictions.EXACT))
        given, home = np.ones(len(requests)), np.full(len(requests), -1)
        self.grid, self.local = grid.allocate(
            requests, labels, given, home, records, self._room, self.options.predictions
        )
        present = [cluster.processors for cluster in clusters]
        self.grid.clusters["processors"] = present
        self.grid.state["free"][:-1, 0] = present
        self.local.steps["free"][:-1, 0] = present

    def advance(self, now: int) -> None:
        """Let happen on all clusters what happens up to a time, if no job comes."""
        if now > self._now:
            self._now = min(int(now), FOREVER - 1)
            queues.advance(self.grid, self.local, self._now, self.options, self.score)
            scores.check_order(self._order, self.grid.state)

    def finish(self, now: int) -> None:
        """Let jobs end now, on all clusters; `advance` starts what can start now."""
        self._now = int(now) - 1
        queues.finish(self.grid, self.local, int(now), self.options)

    def expect(self, jobs: Integers, cluster: int) -> None:
        """Make ready for jobs that are about to enter a cluster: what they are there, and room for them."""
        clock = self.grid.clock[0]
        while clock["longest"] + len(jobs) >= self._room:
            self._room *= 2
            self.local = grid.with_room(self.grid, self.local, self._room, self.options.predictions)
        entries = int(clock["entered"]) + len(jobs)
        if entries > len(self.local.labels):
            # jobs that are handed back enter several times
            self.local = grid.with_entries(self.local, 2 * entries)
        requests = self.grid.requests
        requests["submit"][jobs] = self._all.submit[jobs]
        requests["run"][jobs] = self._all.actual[cluster, jobs]
        requests["estimate"][jobs] = self._all.expected[cluster, jobs]
        # run times are those on the cluster
        self.grid.given_speed[jobs] = self.grid.clusters["speed"][cluster]

    def starts(self, jobs: Integers) -> Integers:
        """When each of some jobs has started, -1 if it waits."""
        begun: Integers = self.local.starts[0, self.grid.entry[jobs]]
        return begun

    def foreseen(self, jobs: Integers, cluster: int, now: int, *, in_fact: bool) -> Integers:
        """When each of the jobs of a cluster has started or will start, if no other comes.

        Every job is as long as it is expected to be, or `in_fact` as long as it is. What happens now has
        happened already.
        """
        begun = self.starts(jobs)
        ahead = begun < 0
        if ahead.any():
            queues.foresee(
                self.grid, self.local, cluster, int(now), in_fact, self.options.overrun, self.score
            )
            begun[ahead] = self.local.starts[1, self.grid.entry[jobs[ahead]]]
        return begun


class QueueCluster(ManagedCluster):
    """A cluster under a local policy; parameters as of `ManagedCluster`, and the local schedulers.

    With `foresees` every plan is measured, and says when jobs are expected to end.
    """

    def __init__(self, *cluster: Any, schedulers: LocalSchedulers, foresees: bool) -> None:
        super().__init__(*cluster)
        self._schedulers = schedulers
        self._foresees = foresees
        self._entered = 0
        self._entry = np.empty(len(self._all.submit), np.int64)

    def advance(self, now: int) -> Placed:
        """Let time pass; return the jobs that have started since the last time."""
        self._schedulers.advance(now)
        start = self._schedulers.starts(self.waiting)
        still = start < 0
        if still.all():
            return self._begin(self._nobody, still, now)
        began = np.flatnonzero(~still)
        began = began[np.argsort(start[began], kind="stable")]
        free = self._occupants["end"][self._places].copy()
        return self._begin(self._placed(self.waiting[began], start[began], self._actual, free), still, now)

    def _placed(self, jobs: Integers, start: Integers, durations: Integers, free: Integers) -> Placed:
        """Jobs with their starts, on the lowest resources that are free then; `free` changes."""
        placed = self._unplaced(jobs)._replace(start=start)
        if len(jobs):
            order = np.argsort(start, kind="stable")
            packing.take_lowest(order, start, durations[jobs], self._sizes[jobs], free, placed.masks)
        return placed

    def _as_expected(self, now: int) -> Outlook:
        _, free = self._releases(now)
        left = free.copy()
        start = self._schedulers.foreseen(self.waiting, self.index, now, in_fact=False)
        self._placed(self.waiting, start, self._expected, left)
        return start, free, left

    def _starts_in_fact(self, now: int) -> Integers:
        return self._schedulers.foreseen(self.waiting, self.index, now, in_fact=True)

    def _wait_anew(self, jobs: Integers, killed: Integers, last: Integers, now: int) -> None:
        """A queue is in order of entry, so that all that waits enters anew; every plan is recomputed."""
        self._number(last)
        jobs = jobs[np.argsort(self._entry[jobs])]
        own, running = self._schedulers, self._running
        own.expect(jobs, self.index)
        held = np.zeros(len(own.local.labels), np.int64)
        used = resources_of(running.masks, self.widest)[:, self._places]
        held[own.grid.entry[running.jobs]] = used.sum(axis=1) * self.unit
        queues.rearrange(
            own.grid,
            own.local,
            killed,
            self.waiting,
            jobs,
            self.index,
            self.processors,
            held,
            int(now),
            own.options,
            own.score,
        )
        self._plan = self._unplaced(jobs)

    def _number(self, jobs: Integers) -> None:
        """Number jobs that enter the queue behind all others."""
        self._entry[jobs] = self._entered + np.arange(len(jobs))
        self._entered += len(jobs)

    def next_instant(self) -> int:
        """When something happens next, on this cluster or on another one."""
        return int(queues.next_instant(self._schedulers.grid))

    def withdraw(self, jobs: Integers, now: int) -> None:
        """Let jobs wait there no more."""
        queues.withdraw(self._schedulers.grid, self._schedulers.local, jobs, self.index, int(now))
        super().withdraw(jobs, now)

    def finish(self, now: int) -> Placed:
        """Let jobs end now, but none start; return those that have ended."""
        self._schedulers.finish(now)
        return super().finish(now)

    def plan(self, new: Integers, masks: NDArray[np.uint64] | None, now: int, number: int) -> None:
        """Let new jobs enter the queue, and foresee what happens to all that wait."""
        self._number(new)
        own = self._schedulers
        own.expect(new, self.index)
        queues.receive(own.grid, own.local, new, self.index, int(now), own.options, own.score)
        self._plan = self._unplaced(np.concatenate([self.waiting, new]))
        if self._foresees:
            self.measure(now, is_new=True)

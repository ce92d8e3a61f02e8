"""Rounds: when collected jobs are handed to the clusters, what happens then, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.platform import ResourceChange
from gridsched.policies.local import named_policy
from gridsched.results import Variable, in_one_piece
from gridsched.submission import Submission, labels_of
from gridsched.systems.cluster_records import overrun_code
from gridsched.systems.multicluster.kernels import packing
from gridsched.systems.multicluster.managed_cluster import (
    Integers,
    ManagedCluster,
    MulticlusterJobs,
    PlannedCluster,
    Planning,
    Started,
    least_load,
    weighted_random,
)
from gridsched.systems.multicluster.muscle import allocate
from gridsched.systems.multicluster.queues import LocalSchedulers, QueueCluster
from gridsched.systems.multicluster.titan import Weights, stream

if TYPE_CHECKING:
    from gridsched.systems.multicluster.scheduler import Multicluster

PLANNED: tuple[str, ...] = ("titan", "seed")
"""Values of `local` that make TITAN's plans."""

OWN = "policy"
"""Value of `local` that leaves each cluster its local policy."""


class Round(NamedTuple):
    """What is recorded of a round: lists have one entry a cluster."""

    time: int
    collected: int
    jobs: list[int]
    metrics: list[tuple[int, int, int]]
    generations: list[int]


class RoundsOutcome(NamedTuple):
    """Outcomes of p jobs: when they first started and last ended, how long they worked, and where last.

    Segments name jobs by their places among the p, and have the resources of each as bits.
    """

    start: Integers
    end: Integers
    run_time: Integers
    cluster: Integers
    segments: NDArray[Any]
    masks: NDArray[np.uint64]


class Run:
    """State of a simulation: the clusters, and the jobs that are not allocated yet."""

    def __init__(
        self,
        policy: Multicluster,
        submission: Submission,
        jobs: MulticlusterJobs,
        accepted: Integers,
        announced: Integers,
        weights: Sequence[Weights],
        changes: Sequence[ResourceChange],
        pool: ThreadPoolExecutor | None,
    ) -> None:
        clusters, count = submission.clusters, len(jobs.submit)
        most = {cluster.name: cluster.processors for cluster in clusters}
        for change in changes:
            most[change.cluster] = max(most[change.cluster], change.processors)
        self.jobs, self.policy, self._seed = jobs, policy, submission.seed
        self._submission, self._accepted, self._delay = submission, accepted, announced - jobs.submit
        self._promised = jobs.deadline - jobs.submit
        self.widest = most
        overrun = overrun_code(submission.conventions.overrun)
        managed: Callable[..., ManagedCluster] = _kind_of_cluster(
            policy, submission, jobs, accepted, list(most.values()), overrun
        )
        self.clusters = [
            managed(
                i,
                cluster.processors // cluster.unit,
                most[cluster.name] // cluster.unit,
                jobs,
                weights[i],
                overrun,
                cluster.unit,
                policy.epsilon,
            )
            for i, cluster in enumerate(clusters)
        ]
        self._names = [cluster.name for cluster in clusters]
        self._speeds = [cluster.speed for cluster in clusters]
        self._order = np.argsort(announced, kind="stable")
        self._announced = announced[self._order]
        self._seen = 0
        self._changes = list(changes)
        # local schedulers share their arrays, and need no threads
        self._pool = pool if policy.local in PLANNED else None
        self.measured = policy.measure
        generator = np.random.default_rng(np.random.SeedSequence(submission.seed, spawn_key=(len(clusters),)))
        self._drawn = generator.random(count) if policy.dispatcher == "wrand" else np.empty(0)
        self.cluster, self.start, self.round = np.full((3, count), -1, np.int64)
        self.handed_over = np.zeros(count, np.int64)
        widest = max((most[cluster.name] // cluster.unit for cluster in clusters), default=1)
        self.masks = np.zeros((count, packing.words(widest)), np.uint64)
        self.rounds: list[Round] = []

    def execute(self) -> None:
        """Run to the start of the last job."""
        now = self._next_round(np.iinfo(np.int64).min)
        while now is not None:
            self._hold_round(now)
            now = self._next_round(now)
        for cluster in self.clusters:
            self._note(cluster, cluster.advance(np.iinfo(np.int64).max))

    def _next_round(self, now: int) -> int | None:
        """Time of the next round; None if all jobs are allocated and nothing changes that concerns them."""
        arrival = int(self._announced[self._seen]) if self._seen < len(self._announced) else None
        time = None
        if arrival is not None:
            collects = self.policy.rounds == "collected"
            time = max(self._collection_ends(now), arrival) if collects else arrival
        if not self._changes or (time is not None and time < self._changes[0].time):
            return time
        if time is None and all(cluster.falls_to(0, now) <= now for cluster in self.clusters):
            return None
        return max(self._changes[0].time, now)

    def _collection_ends(self, now: int) -> int:
        choose: Callable[[list[int]], int] = min if self.policy.ends == "any" else max
        return choose(
            [cluster.falls_to(self.policy.threshold, now) for cluster in self.clusters if cluster.processors]
        )

    def _hold_round(self, now: int) -> None:
        for cluster in self.clusters:
            self._note(cluster, cluster.advance(now))
        resized, handed_back = self._change_resources(now)
        end = int(np.searchsorted(self._announced, now, side="right"))
        arrived = np.concatenate([handed_back, self._order[self._seen : end]])
        self._seen = end
        self._hand_over(arrived, resized, now)

    def _hand_over(self, arrived: Integers, resized: set[int], now: int) -> None:
        """Allocate jobs, let the clusters plan, those with other resources than before in any case."""
        if self.policy.due_from == "round":
            new = arrived[self.round[arrived] < 0]
            self.jobs.since[new] = now
            self.jobs.deadline[new] = now + self._promised[new]
        given = self._allocate(arrived, now)
        number = len(self.rounds)
        all_again = self.policy.rounds == "collected"

        def plan(cluster: ManagedCluster) -> None:
            new, masks = given[cluster.index]
            if cluster.processors and (all_again or len(new) or cluster.index in resized):
                cluster.plan(new, masks, now, number)
            elif self.measured:
                cluster.measure(now)

        list((self._pool.map if self._pool else map)(plan, self.clusters))
        self.round[arrived] = number
        self.handed_over[arrived] = now
        self.rounds.append(
            Round(
                now,
                len(arrived),
                [len(cluster.waiting) for cluster in self.clusters],
                [cluster.metrics for cluster in self.clusters],
                [cluster.generations for cluster in self.clusters],
            )
        )

    def _note(self, cluster: ManagedCluster, started: Started) -> None:
        self.cluster[started.jobs] = cluster.index
        self.start[started.jobs] = started.start
        self.masks[started.jobs, : started.masks.shape[1]] = started.masks

    def _change_resources(self, now: int) -> tuple[set[int], Integers]:
        """Clusters whose resources change now, and the jobs that become too large for them."""
        resized: set[int] = set()
        handed_back = [np.empty(0, np.int64)]
        while self._changes and self._changes[0].time <= now:
            change = self._changes.pop(0)
            cluster = self.clusters[self._names.index(change.cluster)]
            handed_back.append(cluster.resize(change.processors // cluster.unit, now))
            resized.add(cluster.index)
        return resized, np.concatenate(handed_back)

    def _allocate(self, arrived: Integers, now: int) -> list[tuple[Integers, NDArray[np.uint64] | None]]:
        """Jobs that each cluster is given, and their resources if MUSCLE has chosen them."""
        if not len(arrived):
            return [(arrived, np.empty((0, self.masks.shape[1]), np.uint64))] * len(self.clusters)
        if self.policy.dispatcher != "muscle":
            chosen = self._dispatch(arrived)
            return [(arrived[chosen == cluster.index], None) for cluster in self.clusters]
        jobs = self.jobs
        durations = jobs.expected[:, arrived]
        done = allocate(
            jobs.processors[arrived],
            durations,
            jobs.deadline[arrived] - durations - jobs.since[arrived],
            [cluster.backlog(now) for cluster in self.clusters],
            stream(self._seed, len(self.rounds), len(self.clusters)),
        )
        return [
            (arrived[done.of(cluster.index)], done.masks[done.of(cluster.index)]) for cluster in self.clusters
        ]

    def _dispatch(self, arrived: Integers) -> Integers:
        if self.policy.dispatcher == "wrand":
            drawn = self._drawn[arrived]
            return weighted_random(arrived, self.clusters, self._speeds, drawn, self.policy.fit)
        return least_load(self.jobs, arrived, self.clusters, self.policy.load, self.policy.fit)

    # --- job outcomes ----------------------------------------------------------------------------

    def outcome(self) -> RoundsOutcome:
        """Outcomes of the jobs: each has run in one piece."""
        jobs = np.arange(len(self.start))
        run_time, taken = self.jobs.actual[self.cluster, jobs], self._taken()[self.cluster, jobs]
        return RoundsOutcome(
            self.start,
            self.start + run_time,
            run_time,
            self.cluster,
            in_one_piece(self.start, run_time, self.cluster, taken),
            self.masks[self.start >= 0],
        )

    def told(self) -> tuple[Mapping[str, Variable], Mapping[str, int]]:
        """Variables and counters of the run that with further outcomes of all jobs: nothing else can."""
        return {}, {}

    def _taken(self) -> Integers:
        """Processors that each job takes on each cluster."""
        return np.stack([cluster.taken(np.arange(len(self.start))) for cluster in self.clusters])

    def queued(self) -> tuple[Integers, Integers, Integers]:
        """From when on each job is waited for, and until it is handed over, and has started."""
        return self.jobs.submit, self.handed_over, self.start


def _kind_of_cluster(
    policy: Multicluster,
    submission: Submission,
    jobs: MulticlusterJobs,
    accepted: Integers,
    widest: Sequence[int],
    overrun: int,
) -> Callable[..., ManagedCluster]:
    """What makes clusters with the local scheduler of a policy."""
    if policy.local in PLANNED:
        assert policy.seeding is not None
        planning = Planning(policy.local == "titan", policy.seeding, policy.titan, submission.seed)
        return partial(PlannedCluster, planning=planning)
    clusters, locals_ = submission.clusters, submission.policies
    if policy.local != OWN:
        locals_ = [named_policy(policy.local)] * len(clusters)
    schedulers = LocalSchedulers(
        jobs, labels_of(submission.workload)[accepted], clusters, widest, locals_, overrun
    )
    foresees = policy.measure or policy.rounds == "collected"
    return partial(QueueCluster, schedulers=schedulers, foresees=foresees)

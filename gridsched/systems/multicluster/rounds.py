"""Rounds: when collected jobs are handed to the clusters, what happens then, and what is recorded of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER, RecordArray
from gridsched.platform import ResourceChange
from gridsched.policies.local import named_policy
from gridsched.results import SEGMENT, Variable, in_one_piece
from gridsched.submission import Submission, labels_of
from gridsched.systems.cluster_records import overrun_code
from gridsched.systems.multicluster.managed_cluster import (
    NOBODY,
    Integers,
    ManagedCluster,
    MulticlusterJobs,
    Placed,
    PlannedCluster,
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


class RoundsOutcome(NamedTuple):
    """Outcomes of p jobs: when they last ended and how long they worked; segments name them by their places.

    Segments have the resources of each as bits.
    """

    end: Integers
    run_time: Integers
    segments: RecordArray
    masks: NDArray[np.uint64]


def first_time(queue: deque[Any]) -> int:
    """Time of the first of some tuples that begin with their times, in order; `FOREVER` if there is none."""
    return int(queue[0][0]) if queue else FOREVER


def take_due(queue: deque[Any], now: int) -> list[Any]:
    """Take those off some tuples that begin with times up to now."""
    due = []
    while first_time(queue) <= now:
        due.append(queue.popleft())
    return due


class Run:
    """A simulation, which goes from one instant to the next at which something has to be decided.

    At an instant happens what is not decided here; jobs start that are due to start; resources are added and
    removed; then there is a round, if one is due. Where nothing can come between what is planned, all
    instants are rounds; where it can, see `interruptions`.
    """

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
        self.jobs, self.policy, self._submission = jobs, policy, submission
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
        order = np.argsort(announced, kind="stable")
        self._coming: deque[tuple[int, ...]] = deque(
            zip(announced[order].tolist(), order.tolist(), strict=True)
        )
        """Jobs that will be collected, in order; after the time of each, and behind it the job."""
        self._changes = deque(changes)
        # local schedulers share their arrays, and need no threads
        self._pool = pool if policy.local in PLANNED else None
        generator = np.random.default_rng(np.random.SeedSequence(submission.seed, spawn_key=(len(clusters),)))
        self._drawn = generator.random(count) if policy.dispatcher == "wrand" else np.empty(0)
        self.cluster, self.start, self.begin, self.end, self.round = np.full((5, count), -1, np.int64)
        """Where each job was last, when it started first and last (-1 after it was killed) and was killed
        last, and which round allocated it last."""
        self.handed_over, self._left = np.zeros(count, np.int64), jobs.submit.copy()
        self.masks = np.zeros((count, max(cluster.words for cluster in self.clusters)), np.uint64)
        self._killed_segments, self._killed_masks = [np.empty(0, SEGMENT)], [self.masks[:0]]
        self._rounds: list[tuple[Any, ...]] = []
        self._collected: Integers = NOBODY
        self._collection_end: int | None = None
        self._now = int(np.iinfo(np.int64).min)

    def execute(self) -> None:
        """Run until nothing is left to be decided."""
        while (now := self._next_instant()) < FOREVER:
            self._process_events(now)
        self._let_start(FOREVER - 1)

    def _next_instant(self) -> int:
        """When there is a round next: for jobs, or since resources change that a job is to use."""
        change = first_time(self._changes)
        due = max(self._collected_until(self._now), first_time(self._coming))
        if due < change or not self._may_start():
            return due
        return max(change, self._now)

    def _may_start(self) -> bool:
        """Whether jobs wait to start, or come."""
        return bool(self._coming) or any(cluster.keeps_waiting(self._now) for cluster in self.clusters)

    def _collected_until(self, now: int) -> int:
        """When jobs that are collected now are handed over if nothing else happens."""
        if self.policy.rounds == "arrival":
            return now
        if self._collection_end is None:
            choose: Callable[[list[int]], int] = min if self.policy.ends == "any" else max
            there = [cluster for cluster in self.clusters if cluster.processors]
            self._collection_end = choose([each.falls_to(self.policy.threshold, now) for each in there])
        return self._collection_end

    def _process_events(self, now: int) -> None:
        """All that happens at an instant."""
        self._now = now
        disturbed = self._let_happen(now)
        self._let_start(now)
        resized = self._change_resources(now)
        if self._is_due(disturbed, resized, now):
            fitting = self._fitting()
            arrived, self._collected = self._collected[fitting], self._collected[~fitting]
            self._hand_over(arrived, disturbed | resized, now)
            self._collection_end = None

    def _let_happen(self, now: int) -> set[int]:
        """Collect what has been announced; return the clusters whose resources fail or are there again."""
        arrived = [job for *_, job in take_due(self._coming, now)]
        self._collected = np.concatenate([self._collected, np.array(arrived, np.int64)])
        return set()

    def _is_due(self, disturbed: set[int], resized: set[int], now: int) -> bool:
        """Whether there is a round now."""
        return True

    def _fitting(self) -> NDArray[np.bool_]:
        """Which of the collected jobs some cluster is large enough for now."""
        fitting: NDArray[np.bool_] = np.any([each.holds(self._collected) for each in self.clusters], axis=0)
        return fitting

    def _hand_over(self, arrived: Integers, resized: set[int], now: int) -> None:
        """Allocate jobs, let the clusters plan, those with other resources than before in any case."""
        if self.policy.due_from == "round":
            new = arrived[self.round[arrived] < 0]
            self.jobs.since[new] = now
            self.jobs.deadline[new] = now + self._promised[new]
        given = self._allocate(arrived, now)
        number = len(self._rounds)
        all_again = self.policy.rounds == "collected"

        def plan(cluster: ManagedCluster) -> None:
            new, masks = given[cluster.index]
            if cluster.processors and (all_again or len(new) or cluster.index in resized):
                cluster.plan(new, masks, now, number)
            elif self.policy.measure:
                cluster.measure(now)

        list((self._pool.map if self._pool else map)(plan, self.clusters))
        self.round[arrived] = number
        self.handed_over[arrived] = now
        self._rounds.append(
            (
                now,
                len(arrived),
                [len(cluster.waiting) for cluster in self.clusters],
                [cluster.metrics for cluster in self.clusters],
                [cluster.generations for cluster in self.clusters],
            )
        )

    @property
    def rounds(self) -> RecordArray:
        """What is recorded of each round, with an element a cluster where clusters differ."""
        count = len(self.clusters)
        shapes = {"time": (), "collected": (), "jobs": count, "metrics": (count, 3), "generations": count}
        return np.array(self._rounds, [(name, np.int64, shape) for name, shape in shapes.items()])

    def _let_start(self, now: int) -> None:
        """Let jobs start that are due to."""
        for cluster in self.clusters:
            started = cluster.advance(now)
            if len(started.jobs):
                self._note_starts(cluster, started)

    def _note_starts(self, cluster: ManagedCluster, started: Placed) -> None:
        """Note which jobs have started."""
        jobs = started.jobs
        self.cluster[jobs], self.begin[jobs] = cluster.index, started.start
        self.start[jobs] = np.where(self.start[jobs] < 0, started.start, self.start[jobs])
        self.masks[jobs, : started.masks.shape[1]] = started.masks

    def _note_killed(self, cluster: ManagedCluster, jobs: Integers, now: int) -> None:
        """Note that running jobs are taken off their cluster before their ends."""
        segments = in_one_piece(
            self.begin[jobs], now - self.begin[jobs], self.cluster[jobs], cluster.taken(jobs)
        )
        segments["job"] = jobs
        self._killed_segments.append(segments)
        self._killed_masks.append(self.masks[jobs])
        self.begin[jobs], self.end[jobs] = -1, now

    def _change_resources(self, now: int) -> set[int]:
        """Add and remove resources, and collect the jobs that become too large; return where it happens."""
        resized: set[int] = set()
        handed_back = []
        for change in take_due(self._changes, now):
            cluster = self.clusters[self._names.index(change.cluster)]
            handed_back.append(cluster.resize(change.processors // cluster.unit, now))
            resized.add(cluster.index)
        if resized:
            self._collection_end = None
            self._collected = np.concatenate([*handed_back, self._collected])
        return resized

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
            stream(self._submission.seed, len(self._rounds), len(self.clusters)),
        )
        given = [done.of(cluster.index) for cluster in self.clusters]
        return [(arrived[own], done.masks[own]) for own in given]

    def _dispatch(self, arrived: Integers) -> Integers:
        if self.policy.dispatcher == "wrand":
            drawn, speeds = self._drawn[arrived], [each.speed for each in self._submission.clusters]
            return weighted_random(arrived, self.clusters, speeds, drawn, self.policy.fit)
        return least_load(self.jobs, arrived, self.clusters, self.policy.load, self.policy.fit)

    # --- job outcomes ----------------------------------------------------------------------------

    def outcome(self) -> RoundsOutcome:
        """Outcomes of the jobs; those that were never killed have run in one piece."""
        jobs = np.arange(len(self.start))
        length, finished = self.jobs.actual[self.cluster, jobs], self.begin >= 0
        taken = np.stack([cluster.taken(jobs) for cluster in self.clusters])[self.cluster, jobs]
        whole = in_one_piece(self.begin, length, self.cluster, taken)
        segments: RecordArray = np.concatenate([whole, *self._killed_segments])
        order = np.lexsort((segments["start"], segments["job"]))
        masks = np.concatenate([self.masks[finished], *self._killed_masks])
        end = np.where(finished, self.begin + length, self.end)
        return RoundsOutcome(end, self._worked(), segments[order], masks[order])

    def _worked(self) -> Integers:
        """Seconds for which each job has worked in the end, where it was last."""
        worked: Integers = self.jobs.actual[self.cluster, np.arange(len(self.cluster))]
        return worked

    def told(self, outcome: RoundsOutcome) -> tuple[Mapping[str, Variable], Mapping[str, int]]:
        """Variables and counters of the run that with further outcomes of all jobs: nothing else can."""
        return {}, {}

    def queued(self) -> tuple[Integers, Integers, Integers]:
        """From when on each job is waited for, and until it is handed over, and has started, or has left."""
        handed_over = np.where(self.round >= 0, self.handed_over, self._left)
        return self.jobs.submit, handed_over, np.where(self.start >= 0, self.start, self._left)


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
        return partial(PlannedCluster, policy=policy, seed=submission.seed)
    clusters, locals_ = submission.clusters, submission.policies
    if policy.local != OWN:
        locals_ = [named_policy(policy.local)] * len(clusters)
    schedulers = LocalSchedulers(
        jobs, labels_of(submission.workload)[accepted], clusters, widest, locals_, overrun
    )
    foresees = policy.measure or policy.rounds == "collected"
    return partial(QueueCluster, schedulers=schedulers, foresees=foresees)

"""Runs in which resources fail, users give up, or jobs wait for others.

Time goes on from one instant to the next. At an instant jobs end; resources fail or are there again; jobs
become eligible or are submitted, and users give up; jobs start that are due to start; resources are added and
removed; then there is a round, if one is due, and jobs start that it lets start at once.

A failing resource kills its job. It waits again on its cluster, first or last, or is lost; a cluster that has
become too small for jobs hands them back, as when resources are removed. There is a round if jobs wait on
the cluster or are collected. A job that is larger than what is there of every cluster stays among the
collected ones until some cluster is large enough; rounds pass it by, and do not wait for it. Maintenance is
met as a failure that nobody knew: in TITAN's schedules a resource is there from some time on, for good.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER, LARGEST, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.results import SEGMENT, Variable
from gridsched.systems.job_outcomes import (
    JobOutcome,
    lifecycles_of,
    outage_variables,
    outages_of,
    outcome_variables,
)
from gridsched.systems.multicluster.managed_cluster import (
    NOBODY,
    Integers,
    ManagedCluster,
    MulticlusterJobs,
    Started,
)
from gridsched.systems.multicluster.rounds import RoundsOutcome, Run

_COMPLETED, _LOST, _STARVED = int(Fate.COMPLETED), int(Fate.LOST), int(Fate.STARVED)


class Progress:
    """How much work jobs have left, where they are killed and go on from checkpoints.

    A checkpoint goes with its job: work that was done on one cluster is done on all, by their speeds.

    Parameters
    ----------
    jobs : MulticlusterJobs
        The jobs. Their run times change: they are those of the work that is left, with its checkpoints.
    clusters : sequence of Cluster
        The clusters.
    """

    def __init__(self, jobs: MulticlusterJobs, clusters: tuple[Cluster, ...]) -> None:
        self._jobs = jobs
        self._intervals = np.array([cluster.checkpoint_interval for cluster in clusters])
        self._costs = np.array([cluster.checkpoint_cost for cluster in clusters])
        self._speeds = np.array([cluster.speed for cluster in clusters])
        self.work, self._guess = jobs.actual.copy(), jobs.expected.copy()
        self.saved = np.zeros(len(jobs.submit), np.int64)
        """Seconds of work of each job that checkpoints of its killed executions have."""
        self._set_lengths(np.arange(len(jobs.submit)))
        if (jobs.expected > LARGEST).any():
            raise ConfigurationError(
                f"checkpoints let a job of {self._guess.max()} s take more than {LARGEST} s; make them fewer"
            )

    def _set_lengths(self, jobs: Integers) -> None:
        """Let jobs take as long as the work that is left, and checkpoints between the parts of it."""
        interval = np.maximum(self._intervals, 1)[:, np.newaxis]
        cost = np.where(self._intervals > 0, self._costs, 0)[:, np.newaxis]
        for length, work in ((self._jobs.actual, self.work), (self._jobs.expected, self._guess)):
            length[:, jobs] = work[:, jobs] + cost * ((work[:, jobs] - 1) // interval)

    def lose(self, job: int, cluster: int, elapsed: int) -> None:
        """Let a job be killed after it has run for some seconds."""
        interval = int(self._intervals[cluster])
        saved = interval * (elapsed // (interval + int(self._costs[cluster]))) if interval else 0
        self.saved[job] += saved
        for column in (self.work, self._guess):
            done = (saved * self._speeds[cluster] / self._speeds).astype(np.int64)
            done[cluster] = saved
            column[:, job] = np.maximum(column[:, job] - done, 1)
        self._set_lengths(np.array([job]))


class FailureAwareRun(Run):
    """A run that goes from instant to instant; parameters as of `Run`."""

    def __init__(self, *run: Any) -> None:
        super().__init__(*run)
        submission, jobs, accepted = self._submission, self.jobs, self._accepted
        rejected = np.ones(len(submission), np.bool_)
        rejected[accepted] = False
        self._lifecycles = lifecycles_of(submission, rejected)
        self._listed = np.empty(len(submission), np.int64)
        self._places_of = np.full(len(submission), -1)
        self._places_of[accepted] = np.arange(len(accepted))
        self._entered = 0
        self._coming: list[tuple[int, int, int]] = []
        self._collected: Integers = NOBODY
        self._outages = outages_of(tuple(submission.clusters))
        self._beginning = list(range(len(self._outages)))
        self._ending = sorted(self._beginning, key=lambda k: int(self._outages["until"][k]))
        self._requeue = [cluster.requeue for cluster in submission.clusters]
        self._progress = Progress(jobs, tuple(submission.clusters))
        self._killed, self._last_end = np.zeros((2, len(accepted)), np.int64)
        self._left = jobs.submit.copy()
        self._done = np.zeros(len(accepted), np.bool_)
        self._segments: list[tuple[int, int, int, int, int]] = []
        self._segment_masks: list[NDArray[np.uint64]] = []
        self._collection_end: int | None = None
        self._now = 0

    # --- from instant to instant ------------------------------------------------------------------

    def execute(self) -> None:
        """Run until all jobs are done with, or nothing happens any more."""
        while self._has_jobs() and (now := self._next_instant()) < FOREVER:
            self._process_events(now)

    def _has_jobs(self) -> bool:
        """Whether jobs run, or may start."""
        return self._may_start() or any(len(cluster.running) for cluster in self.clusters)

    def _may_start(self) -> bool:
        """Whether jobs wait somewhere, or may enter."""
        if self._coming or len(self._collected) or any(len(cluster.waiting) for cluster in self.clusters):
            return True
        ahead = self._left < FOREVER
        return bool((self._lifecycles.jobs["fate"][self._accepted[ahead]] == _COMPLETED).any())

    def _next_instant(self) -> int:
        times = [
            int(job_lifecycle.next_time(self._lifecycles)),
            *(cluster.next_instant() for cluster in self.clusters),
        ]
        if self._coming:
            times.append(self._coming[0][0])
        if self._changes:
            times.append(self._changes[0].time)
        if self._beginning:
            times.append(int(self._outages["start"][self._beginning[0]]))
        if self._ending:
            times.append(int(self._outages["until"][self._ending[0]]))
        if self._fitting().any():
            times.append(self._collected_until(self._now))
        return min(times)

    def _process_events(self, now: int) -> None:
        """All that happens at an instant."""
        self._now = now
        for cluster in self.clusters:
            over = cluster.finish(now)
            self._note_ends(cluster, over, now)
            for job in over.jobs.tolist():
                self._done[job] = True
                job_lifecycle.end(self._lifecycles, self._accepted[job], now, _COMPLETED)
        disturbed = self._let_fail(now)
        self._apply_events(now)
        self._let_start(now)
        resized, handed_back = self._change_resources(now)
        self._collected = np.concatenate([handed_back, self._collected])
        if resized:
            self._collection_end = None
        if self._is_due(disturbed, resized, now):
            fitting = self._fitting()
            arrived, self._collected = self._collected[fitting], self._collected[~fitting]
            self._hand_over(arrived, disturbed | resized, now)
            self._collection_end = None
            self._let_start(now)

    def _is_due(self, disturbed: set[int], resized: set[int], now: int) -> bool:
        """Whether there is a round now."""
        if resized:
            return self._may_start()
        if self._fitting().any():
            return bool(disturbed) or self._collected_until(now) <= now
        return any(len(self.clusters[index].waiting) for index in disturbed)

    def _fitting(self) -> NDArray[np.bool_]:
        """Which of the collected jobs some cluster is large enough for now."""
        fitting: NDArray[np.bool_] = np.any([each.holds(self._collected) for each in self.clusters], axis=0)
        return fitting

    def _collected_until(self, now: int) -> int:
        """When jobs that are collected now are handed over if nothing else happens."""
        if self.policy.rounds == "arrival":
            return now
        if self._collection_end is None:
            self._collection_end = self._collection_ends(now)
        return self._collection_end

    # --- what happens to resources ----------------------------------------------------------------

    def _let_fail(self, now: int) -> set[int]:
        """Let outages begin and end; return the clusters where they do."""
        begin, end = self._due(self._beginning, "start", now), self._due(self._ending, "until", now)
        if not begin and not end:
            return set()
        self._collection_end = None
        disturbed = sorted({int(index) for index in self._outages["cluster"][[*begin, *end]]})
        handed_back = [self._disturb(self.clusters[index], begin, end, now) for index in disturbed]
        self._collected = np.concatenate([*handed_back, self._collected])
        return set(disturbed)

    def _due(self, order: list[int], name: str, now: int) -> list[int]:
        """Take the outages off a list that begin, or end, up to now."""
        due = []
        while order and self._outages[name][order[0]] <= now:
            due.append(order.pop(0))
        return due

    def _disturb(self, cluster: ManagedCluster, begin: list[int], end: list[int], now: int) -> Integers:
        """Let outages of a cluster begin and end; return the jobs for which it is too small then."""
        fails = np.zeros(cluster.widest, np.bool_)
        for rows, more in ((begin, 1), (end, -1)):
            for row in self._outages[rows]:
                if row["cluster"] == cluster.index:
                    first, last = row["first"] // cluster.unit, row["end"] // cluster.unit
                    cluster.put_out(first, last, more)
                    fails[first:last] |= more > 0 and not row["drained"]
        killed = cluster.kill(fails, now)
        self._note_ends(cluster, killed, now)
        again = self._let_be_killed(cluster, killed, now)
        return cluster.rearrange(now, again, at_end=self._requeue[cluster.index] == "end")

    def _let_be_killed(self, cluster: ManagedCluster, killed: Started, now: int) -> Integers:
        """Take away what the killed jobs have done since their last checkpoints; return who waits again."""
        self._killed[killed.jobs] += 1
        for job, start in zip(killed.jobs.tolist(), killed.start.tolist(), strict=True):
            self._progress.lose(job, cluster.index, now - start)
            if self._requeue[cluster.index] == "end":
                self._number(job)
        if self._requeue[cluster.index] != "lost":
            return killed.jobs
        for job in killed.jobs.tolist():
            job_lifecycle.end(self._lifecycles, self._accepted[job], now, _LOST)
        return NOBODY

    # --- what happens to jobs ---------------------------------------------------------------------

    def _apply_events(self, now: int) -> None:
        """Let jobs enter and users give up; collect what has been announced."""
        while job_lifecycle.next_time(self._lifecycles) <= now:
            count = job_lifecycle.enter(self._lifecycles, now, self._listed)
            for job in self._places_of[self._listed[:count]].tolist():
                self.jobs.submit[job] = self.jobs.since[job] = now
                self._left[job] = FOREVER
                heapq.heappush(self._coming, (now + int(self._delay[job]), self._number(job), job))
            count = job_lifecycle.give_up(self._lifecycles, now, self._listed)
            if count:
                self._let_leave(self._places_of[self._listed[:count]], now)
        arrived = []
        while self._coming and self._coming[0][0] <= now:
            arrived.append(heapq.heappop(self._coming)[2])
        self._collected = np.concatenate([self._collected, np.array(arrived, np.int64)])

    def _number(self, job: int) -> int:
        """Number a job that comes after all others."""
        self.jobs.turn[job] = self._entered
        self._entered += 1
        return self._entered

    def _let_leave(self, jobs: Integers, now: int) -> None:
        """Let jobs whose users give up wait no more, wherever they do."""
        self._left[jobs] = np.minimum(self._left[jobs], now)
        self._collected = self._collected[~np.isin(self._collected, jobs)]
        self._coming = [each for each in self._coming if each[2] not in jobs]
        heapq.heapify(self._coming)
        for cluster in self.clusters:
            own = cluster.waiting[np.isin(cluster.waiting, jobs)]
            if len(own):
                cluster.withdraw(own, now)
                self._collection_end = None

    def _let_start(self, now: int) -> None:
        """Let jobs start that are due to."""
        for cluster in self.clusters:
            started = cluster.advance(now)
            self.cluster[started.jobs] = cluster.index
            first = self.start[started.jobs] < 0
            self.start[started.jobs[first]] = started.start[first]
            for job in started.jobs.tolist():
                job_lifecycle.start(self._lifecycles, self._accepted[job], now)

    def _note_ends(self, cluster: ManagedCluster, over: Started, now: int) -> None:
        """Note that jobs run no longer."""
        self._last_end[over.jobs] = now
        taken = cluster.taken(over.jobs).tolist()
        for job, start, mask, processors in zip(
            over.jobs.tolist(), over.start.tolist(), over.masks, taken, strict=True
        ):
            self._segments.append((job, cluster.index, processors, start, now))
            padded = np.zeros(self.masks.shape[1], np.uint64)
            padded[: len(mask)] = mask
            self._segment_masks.append(padded)

    # --- job outcomes ----------------------------------------------------------------------------

    def outcome(self) -> RoundsOutcome:
        """Outcomes of the jobs: how they were executed, in pieces where they were killed."""
        order = sorted(range(len(self._segments)), key=lambda k: (self._segments[k][0], self._segments[k][3]))
        ran = np.flatnonzero(self.start >= 0)
        run_time = np.zeros(len(self.start), np.int64)
        run_time[ran] = self._progress.saved[ran] + self._progress.work[self.cluster[ran], ran]
        return RoundsOutcome(
            self.start,
            self._last_end,
            run_time,
            self.cluster,
            np.array([self._segments[k] for k in order], SEGMENT),
            np.array([self._segment_masks[k] for k in order], np.uint64).reshape(-1, self.masks.shape[1]),
        )

    def queued(self) -> tuple[Integers, Integers, Integers]:
        """From when on each job is waited for, and until it is handed over, and has started, or has left."""
        handed_over = np.where(self.round >= 0, self.handed_over, self._left)
        return self.jobs.submit, handed_over, np.where(self.start >= 0, self.start, self._left)

    def told(self) -> tuple[Mapping[str, Variable], Mapping[str, int]]:
        """Variables and counters of the run that with the outcomes of jobs, and what was out when."""
        workload, jobs, accepted = self._submission.workload, self._lifecycles.jobs, self._accepted
        fate = jobs["fate"].copy()
        unfinished = np.zeros(len(fate), np.bool_)
        unfinished[accepted] = ~self._done
        fate[unfinished & (fate == _COMPLETED)] = _STARVED
        outcome = self.outcome()
        segments: RecordArray = outcome.segments
        executed = np.bincount(
            segments["job"], segments["end"] - segments["start"], minlength=len(accepted)
        ).astype(np.int64)
        killed, extra = np.zeros((2, len(fate)), np.int64)
        killed[accepted] = self._killed
        extra[accepted] = np.where(self.start >= 0, executed - outcome.run_time, 0)
        outcomes = JobOutcome(
            fate=fate,
            killed=killed,
            extra_work=extra * np.asarray(workload.processors, np.int64),
            eligible_time=jobs["eligible"].copy(),
        )
        told, counted = outcome_variables(workload, outcomes)
        return {**told, **(outage_variables(self._outages) if len(self._outages) else {})}, counted

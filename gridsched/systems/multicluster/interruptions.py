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

from bisect import insort
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from gridsched.engine import job_lifecycle
from gridsched.engine.checkpoints import lengths_with_checkpoints, saved_work_of
from gridsched.engine.job_lifecycle import COMPLETED, Requeue
from gridsched.engine.records import FOREVER, LARGEST, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.results import Variable
from gridsched.systems.job_outcomes import (
    lifecycles_of,
    outage_variables,
    outages_of,
    outcome_variables,
    outcomes_of,
)
from gridsched.systems.multicluster.managed_cluster import (
    NOBODY,
    Integers,
    ManagedCluster,
    MulticlusterJobs,
    Placed,
)
from gridsched.systems.multicluster.rounds import RoundsOutcome, Run, first_time, take_due


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
        self._checkpoints = [(each.checkpoint_interval, each.checkpoint_cost) for each in clusters]
        self._speeds = np.array([cluster.speed for cluster in clusters])
        self.work, self._guess = jobs.actual.copy(), jobs.expected.copy()
        self.saved = np.zeros(len(jobs.submit), np.int64)
        """Seconds of work of each job that checkpoints of its killed executions have."""
        self._set_lengths(slice(None))
        if (jobs.expected > LARGEST).any():
            raise ConfigurationError(
                f"checkpoints let a job of {self._guess.max()} s take more than {LARGEST} s; make them fewer"
            )

    def _set_lengths(self, some: slice) -> None:
        """Let jobs take as long as the work that is left, and checkpoints between the parts of it."""
        for lengths, work in ((self._jobs.actual, self.work), (self._jobs.expected, self._guess)):
            for m, (interval, cost) in enumerate(self._checkpoints):
                lengths[m, some] = lengths_with_checkpoints(work[m, some], interval, cost)

    def lose(self, job: int, cluster: int, elapsed: int) -> None:
        """Let a job be killed after it has run for some seconds."""
        saved = saved_work_of(elapsed, *self._checkpoints[cluster])
        self.saved[job] += saved
        for column in (self.work, self._guess):
            done = (saved * self._speeds[cluster] / self._speeds).astype(np.int64)
            done[cluster] = saved
            column[:, job] = np.maximum(column[:, job] - done, 1)
        self._set_lengths(slice(job, job + 1))


class FailureAwareRun(Run):
    """A run that goes from instant to instant; parameters as of `Run`."""

    def __init__(self, *run: Any) -> None:
        super().__init__(*run)
        _, submission, jobs, accepted, announced, *_ = run
        self._accepted, self._delay = accepted, announced - jobs.submit
        rejected = np.isin(np.arange(len(submission)), accepted, invert=True)
        self._lifecycles = lifecycles_of(submission, rejected)
        self._listed = np.empty(len(submission), np.int64)
        self._entered = 0
        self._coming = deque()
        self._outages = outages_of(tuple(submission.clusters))
        begin, end = (self._outages[name].tolist() for name in ("start", "until"))
        signs = [(time, k, sign) for times, sign in ((begin, 1), (end, -1)) for k, time in enumerate(times)]
        self._outage_events = deque(sorted(signs))
        self._requeue = [Requeue[cluster.requeue.upper()] for cluster in submission.clusters]
        self._progress = Progress(jobs, tuple(submission.clusters))
        self._now = 0

    # --- from instant to instant ------------------------------------------------------------------

    def _next_instant(self) -> int:
        """When anything happens next; `FOREVER` once all jobs are done with."""
        if not self._may_start() and not any(len(cluster.running) for cluster in self.clusters):
            return FOREVER
        return min(
            int(job_lifecycle.next_time(self._lifecycles)),
            *(cluster.next_instant() for cluster in self.clusters),
            *(first_time(queue) for queue in (self._coming, self._changes, self._outage_events)),
            self._collected_until(self._now) if self._fitting().any() else FOREVER,
        )

    def _may_start(self) -> bool:
        """Whether jobs wait somewhere, or may enter."""
        if self._coming or len(self._collected) or any(len(cluster.waiting) for cluster in self.clusters):
            return True
        ahead = self._left < FOREVER
        return bool((self._lifecycles.jobs["fate"][self._accepted[ahead]] == COMPLETED).any())

    def _let_happen(self, now: int) -> set[int]:
        """Let jobs end, outages begin and end, and jobs enter and leave; return the clusters with outages."""
        for cluster in self.clusters:
            for job in cluster.finish(now).jobs.tolist():
                job_lifecycle.end(self._lifecycles, self._accepted[job], now, COMPLETED)
        disturbed = self._let_fail(now)
        self._apply_events(now)
        return disturbed

    def _is_due(self, disturbed: set[int], resized: set[int], now: int) -> bool:
        """Whether there is a round now."""
        if resized:
            return self._may_start()
        if self._fitting().any():
            return bool(disturbed) or self._collected_until(now) <= now
        return any(len(self.clusters[index].waiting) for index in disturbed)

    def _hand_over(self, arrived: Integers, resized: set[int], now: int) -> None:
        """Allocate jobs and let clusters plan; those jobs start that can start at once."""
        super()._hand_over(arrived, resized, now)
        self._let_start(now)

    # --- what happens to resources ----------------------------------------------------------------

    def _let_fail(self, now: int) -> set[int]:
        """Let outages begin and end; return the clusters where they do."""
        events = take_due(self._outage_events, now)
        if not events:
            return set()
        self._collection_end = None
        disturbed = {int(self._outages["cluster"][k]) for _, k, _ in events}
        handed_back = [self._disturb(self.clusters[index], events, now) for index in sorted(disturbed)]
        self._collected = np.concatenate([*handed_back, self._collected])
        return disturbed

    def _disturb(self, cluster: ManagedCluster, events: list[tuple[int, int, int]], now: int) -> Integers:
        """Let outages of a cluster begin and end; return the jobs for which it is too small then."""
        fails = np.zeros(cluster.widest, np.bool_)
        for _, k, more in events:
            row = self._outages[k]
            if row["cluster"] == cluster.index:
                first, last = row["first"] // cluster.unit, row["end"] // cluster.unit
                cluster.put_out(first, last, more)
                fails[first:last] |= more > 0 and not row["drained"]
        killed = cluster.take_off(fails, now)
        self._note_killed(cluster, killed.jobs, now)
        again = self._let_be_killed(cluster, killed, now)
        at_end = self._requeue[cluster.index] == Requeue.END
        return cluster.rearrange(now, killed.jobs, again, at_end=at_end)

    def _let_be_killed(self, cluster: ManagedCluster, killed: Placed, now: int) -> Integers:
        """Take away what the killed jobs have done since their last checkpoints; return who waits again."""
        rule = self._requeue[cluster.index]
        for job, start in zip(killed.jobs.tolist(), killed.start.tolist(), strict=True):
            self._progress.lose(job, cluster.index, now - start)
            job_lifecycle.take_back(self._lifecycles, self._accepted[job], int(rule), now)
            if rule == Requeue.END:
                self._number(job)
        return NOBODY if rule == Requeue.LOST else killed.jobs

    # --- what happens to jobs ---------------------------------------------------------------------

    def _apply_events(self, now: int) -> None:
        """Let jobs enter and users give up; collect what has been announced."""
        while job_lifecycle.next_time(self._lifecycles) <= now:
            count = job_lifecycle.enter(self._lifecycles, now, self._listed)
            for job in self._places(count).tolist():
                self.jobs.submit[job] = self.jobs.since[job] = now
                self._left[job] = FOREVER
                insort(self._coming, (now + int(self._delay[job]), self._number(job), job))
            count = job_lifecycle.give_up(self._lifecycles, now, self._listed)
            if count:
                self._let_leave(self._places(count), now)
        super()._let_happen(now)

    def _places(self, count: int) -> Integers:
        """Places, among the accepted jobs, of those that are listed."""
        return np.searchsorted(self._accepted, self._listed[:count])

    def _number(self, job: int) -> int:
        """Number a job that comes after all others."""
        self.jobs.turn[job] = self._entered
        self._entered += 1
        return self._entered

    def _let_leave(self, jobs: Integers, now: int) -> None:
        """Let jobs whose users give up wait no more, wherever they do."""
        self._left[jobs] = np.minimum(self._left[jobs], now)
        self._collected = self._collected[~np.isin(self._collected, jobs)]
        self._coming = deque(each for each in self._coming if each[2] not in jobs)
        for cluster in self.clusters:
            own = cluster.waiting[np.isin(cluster.waiting, jobs)]
            if len(own):
                cluster.withdraw(own, now)
                self._collection_end = None

    def _note_starts(self, cluster: ManagedCluster, started: Placed) -> None:
        """Note which jobs have started, and tell those that depend on them."""
        super()._note_starts(cluster, started)
        for job in started.jobs.tolist():
            job_lifecycle.start(self._lifecycles, self._accepted[job], self._now)

    # --- job outcomes ----------------------------------------------------------------------------

    def _worked(self) -> Integers:
        """Seconds for which each job has worked in the end, what checkpoints have saved included."""
        return self._progress.saved + self._progress.work[self.cluster, np.arange(len(self.cluster))]

    def told(self, outcome: RoundsOutcome) -> tuple[Mapping[str, Variable], Mapping[str, int]]:
        """Variables and counters of the run that with the outcomes of jobs, and what was out when."""
        workload, jobs, accepted = self._submission.workload, self._lifecycles.jobs, self._accepted
        segments: RecordArray = outcome.segments
        seconds = segments["end"] - segments["start"]
        executed = np.bincount(segments["job"], seconds, len(accepted)).astype(np.int64)
        ended, extra = np.zeros(len(jobs), np.bool_), np.zeros(len(jobs), np.int64)
        # after its last start a job is killed, or ends
        ended[accepted] = self.begin >= 0
        extra[accepted] = np.where(self.start >= 0, executed - outcome.run_time, 0)
        outcomes = outcomes_of(jobs, ended, extra * np.asarray(workload.processors, np.int64))
        told, counted = outcome_variables(workload, outcomes)
        return {**told, **(outage_variables(self._outages) if len(self._outages) else {})}, counted

"""A slow, plain simulator of one cluster for the whole policy space: the oracle of the engine.

It keeps no structure between passes that it could recompute: free processors are added up from the
running jobs each time, and a place for a job is found by trying every candidate time against every
instant at which the occupation changes. It shares no code with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import NamedTuple

Score = Callable[[int, int, int, int], float]
"""`score(now, submit_time, estimate, processors)`: the waiting job with the highest goes first."""

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds that successive corrections add (Tsafrir, Etsion, Feitelson 2007)."""

REJECTED = -1


class Job(NamedTuple):
    """A job as the cluster sees it; times in seconds, `estimate` >= 1, `run_time` >= 0."""

    submit_time: int
    run_time: int
    estimate: int
    processors: int


class Occupation(NamedTuple):
    """Processors held in [begin, end) by a running job (until its expected end) or a reservation."""

    begin: int
    end: int
    processors: int


class Policy(NamedTuple):
    """A point of the policy space."""

    order: str | Score
    backfilling: str
    reservations: int = 1
    backfill_order: str = "queue"


POLICIES: dict[str, Policy] = {
    "fcfs": Policy("fcfs", "none"),
    "ff": Policy("fcfs", "first_fit"),
    "sjf": Policy("shortest", "none"),
    "easy": Policy("fcfs", "easy"),
    "easy(2)": Policy("fcfs", "easy", reservations=2),
    "sjbf": Policy("fcfs", "easy", backfill_order="shortest"),
    "lxf": Policy("lxf", "easy"),
    "lxwf": Policy("lxwf", "easy"),
    "creasy": Policy("critical", "easy"),
    "conservative": Policy("fcfs", "conservative"),
}
"""The policies that have names."""


def simulate(
    jobs: list[Job],
    processors: int,
    *,
    order: str | Score,
    backfilling: str,
    reservations: int = 1,
    backfill_order: str = "queue",
    overrun: str = "doubling",
    passes: str = "instant",
) -> list[int]:
    """Start times [s] of the jobs on one cluster; -1 for a job that is larger than the cluster.

    Parameters
    ----------
    jobs : list of Job
        By submit time, never decreasing.
    processors : int
        Processors of the cluster.
    order : str or Score
        `fcfs`, `shortest`, `smallest`, `smallest_area`, `lxf`, `lxwf`, or a score.
    backfilling : str
        `none`, `first_fit`, `easy` or `conservative`.
    reservations : int
        How many waiting jobs hold a reservation in a pass of `easy`.
    backfill_order : str
        `queue`, or a name of `order` that is no score.
    overrun : str
        What a job that reaches its expected end is expected to do: `doubling` or `increments`.
    passes : str
        One scheduling pass an `instant`, or one an `event`, or one an event with `arrivals-first`.
    """
    assert all(job.run_time >= 0 and job.estimate >= 1 and job.processors >= 1 for job in jobs)
    assert [job.submit_time for job in jobs] == sorted(job.submit_time for job in jobs)
    policy = Policy(order, backfilling, reservations, backfill_order)
    return _Cluster(jobs, processors, policy, overrun, passes).run()


def simulate_policy(
    jobs: list[Job], processors: int, policy: str, overrun: str = "doubling", passes: str = "instant"
) -> list[int]:
    """Start times [s] of the jobs under a named policy."""
    order, backfilling, reservations, backfill_order = POLICIES[policy]
    return simulate(
        jobs,
        processors,
        order=order,
        backfilling=backfilling,
        reservations=reservations,
        backfill_order=backfill_order,
        overrun=overrun,
        passes=passes,
    )


class Cluster:
    """A cluster that is driven from outside, step by step, with the present time in `now`.

    Jobs are numbered in the order in which they enter the queue; ties go by this number.
    """

    def __init__(self, processors: int, policy: Policy, overrun: str) -> None:
        assert policy.backfilling in ("none", "first_fit", "easy", "conservative")
        assert overrun in ("doubling", "increments")
        self.processors = processors
        self.policy = policy
        self.overrun = overrun
        self.now = 0
        self.jobs: list[Job] = []
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.start: list[int] = []
        self.expected_end: dict[int, int] = {}
        self.corrections: dict[int, int] = {}
        # What conservative backfilling keeps between passes.
        self.planned: dict[int, int] = {}
        self.arrived_since_pass: list[int] = []
        self.corrected_since_pass = False
        self.ended_early_since_pass = False
        # What only `arrivals-first` needs: jobs that have left before their end is handled, and for
        # when and as which one a start was planned.
        self.arrivals_first = False
        self.left: list[int] = []
        self.promised: dict[int, tuple[int, int]] = {}

    def as_expected(self) -> Cluster:
        """A copy in which every job runs exactly until its expected end."""
        twin = copy(self)
        vars(twin).update({k: v.copy() for k, v in vars(self).items() if isinstance(v, list | dict)})
        twin.jobs = [job._replace(run_time=job.estimate) for job in self.jobs]
        for j in self.running:
            twin.jobs[j] = self.jobs[j]._replace(run_time=self.expected_end[j] - self.start[j])
        return twin

    # Events

    def end(self, job: int) -> int:
        return self.start[job] + self.jobs[job].run_time

    def uses_expected_ends(self) -> bool:
        return self.policy.backfilling in ("easy", "conservative")

    def future_instants(self) -> list[int]:
        """All times at which something is known to happen."""
        ends = [self.end(job) for job in self.running]
        expected_ends = [self.expected_end[job] for job in self.running if self.uses_expected_ends()]
        return ends + expected_ends + list(self.planned.values())

    def completions_now(self) -> list[int]:
        """The jobs that end at this instant, in job order or in that in which they were started."""
        order = self.running if self.arrivals_first else sorted(self.running)
        return [job for job in order if self.end(job) == self.now]

    def overruns_now(self) -> list[int]:
        """The jobs that run on although they are expected to have ended."""
        return [
            job
            for job in sorted(self.running)
            if self.expected_end[job] <= self.now and self.end(job) > self.now
        ]

    def start_is_planned_now(self) -> bool:
        return self.now in self.planned.values()

    def enter(self, job: Job) -> int:
        """Put a job into the queue; its number."""
        number = len(self.jobs)
        self.jobs.append(job)
        self.start.append(REJECTED)
        self.waiting.append(number)
        self.arrived_since_pass.append(number)
        return number

    def complete(self, job: int) -> None:
        self.running.remove(job)
        if self.expected_end[job] > self.now or self.arrivals_first:
            self.ended_early_since_pass = True

    def correct(self, job: int) -> None:
        """Give a job that runs on a later expected end."""
        if self.overrun == "doubling":
            expected_run_time = self.jobs[job].estimate
            while self.start[job] + expected_run_time <= self.now:
                expected_run_time *= 2
            self.expected_end[job] = self.start[job] + expected_run_time
        else:
            while self.expected_end[job] <= self.now:
                already = self.corrections.get(job, 0)
                self.expected_end[job] += INCREMENTS[min(already, len(INCREMENTS) - 1)]
                self.corrections[job] = already + 1
        self.corrected_since_pass = True

    def begin(self, job: int) -> None:
        assert self.jobs[job].processors <= self.free()
        self.waiting.remove(job)
        self.planned.pop(job, None)
        self.running.append(job)
        self.start[job] = self.now
        self.expected_end[job] = self.now + self.jobs[job].estimate

    # Orders

    def ordered(self, order: str | Score, jobs: list[int]) -> list[int]:
        """Jobs in an order; ties by their number."""
        return sorted(jobs, key=lambda j: (self.rank(order, j), j))

    def rank(self, order: str | Score, j: int) -> float:
        """What the order sorts by: smallest first."""
        job = self.jobs[j]
        wait = self.now - job.submit_time
        expansion = (wait + job.estimate) / job.estimate
        if callable(order):
            return -order(self.now, job.submit_time, job.estimate, job.processors)
        ranks: dict[str, float] = {
            "fcfs": j,
            "shortest": job.estimate,
            "smallest": job.processors,
            "smallest_area": job.estimate * job.processors,
            "lxf": -expansion,
            "lxwf": -(expansion + 0.02 * wait / 3600),
        }
        return ranks[order] if order in ranks else self.rank_of_papers(order, job, wait)

    @staticmethod
    def rank_of_papers(order: str, job: Job, wait: int) -> float:
        """Orders of papers; submit times count from 1."""
        stays = 1 / (0.05 * (wait + job.estimate) / 60 + 1)
        run, size, age = job.estimate, job.processors, math.log10(max(job.submit_time, 1))
        ranks: dict[str, float] = {
            "critical": -(stays * stays + wait / 86400),
            "wfp3": -((wait / run) ** 3) * size,
            "unicep": -(wait + 1e-15) / (math.log2(size + 1e-15) * run),
            "f1": math.log10(run) * size + 870 * age,
            "f2": math.sqrt(run) * size + 25_600 * age,
            "f3": run * size + 6_860_000 * age,
            "f4": run * math.sqrt(size) + 530_000 * age,
        }
        return ranks[order]

    def queue(self) -> list[int]:
        return self.ordered(self.policy.order, self.waiting)

    def in_backfill_order(self, queue: list[int]) -> list[int]:
        """The jobs of a queue in the order in which they may backfill."""
        if self.policy.backfill_order == "queue":
            return list(queue)
        assert self.policy.backfill_order in ("fcfs", "shortest", "smallest", "smallest_area")
        return self.ordered(self.policy.backfill_order, queue)

    # Processors

    def free(self) -> int:
        """Processors that no running job holds at this moment."""
        holding = [job for job in self.running if job not in self.left]
        return self.processors - sum(self.jobs[job].processors for job in holding)

    def fits_now(self, job: int) -> bool:
        return self.jobs[job].processors <= self.free()

    def occupation(self, job: int, begin: int) -> Occupation:
        """What a job is expected to occupy from a time on."""
        return Occupation(begin, begin + self.jobs[job].estimate, self.jobs[job].processors)

    def running_occupations(self) -> list[Occupation]:
        return [
            Occupation(self.start[j], self.expected_end[j], self.jobs[j].processors) for j in self.running
        ]

    def is_place(self, place: Occupation, others: list[Occupation]) -> bool:
        """Whether the place is free for its whole time beside the others."""
        breakpoints = {place.begin} | {time for other in others for time in (other.begin, other.end)}
        return all(
            place.processors + sum(o.processors for o in others if o.begin <= time < o.end) <= self.processors
            for time in breakpoints
            if place.begin <= time < place.end
        )

    def earliest_place(self, job: int, others: list[Occupation]) -> int:
        """The earliest time from now on at which a job has a place beside the others.

        Processors become free only where something ends, so no other time can be the earliest.
        """
        candidates = sorted({self.now} | {other.end for other in others if other.end > self.now})
        return next(time for time in candidates if self.is_place(self.occupation(job, time), others))

    # Passes

    def schedule(self) -> None:
        passes = {
            "none": self.pass_none,
            "first_fit": self.pass_first_fit,
            "easy": self.pass_easy,
            "conservative": self.pass_conservative,
        }
        passes[self.policy.backfilling]()
        self.arrived_since_pass = []
        self.corrected_since_pass = False
        self.ended_early_since_pass = False

    def pass_none(self) -> None:
        for job in self.queue():
            if not self.fits_now(job):
                return
            self.begin(job)

    def pass_first_fit(self) -> None:
        queue = self.queue()
        while queue and self.fits_now(queue[0]):
            self.begin(queue.pop(0))
        for job in self.in_backfill_order(queue):
            if self.fits_now(job):
                self.begin(job)

    def pass_easy(self) -> None:
        queue = self.queue()
        reserved: list[Occupation] = []
        while queue and len(reserved) < self.policy.reservations:
            job = queue.pop(0)
            place = self.earliest_place(job, self.running_occupations() + reserved)
            if place == self.now and self.fits_now(job):
                self.begin(job)
            else:
                reserved.append(self.occupation(job, place))
        for job in self.in_backfill_order(queue):
            others = self.running_occupations() + reserved
            if self.is_place(self.occupation(job, self.now), others) and self.fits_now(job):
                self.begin(job)

    def pass_conservative(self) -> None:
        moved = [job for job in self.queue() if job not in self.arrived_since_pass]
        if self.corrected_since_pass:
            self.planned = {}
            for job in moved:
                self.plan(job)
        elif self.ended_early_since_pass:
            for job in moved:
                before = self.planned.pop(job)
                self.plan(job)
                assert self.planned[job] <= before
        for job in self.arrived_since_pass:
            self.plan(job)
        for job in sorted(self.planned, key=lambda j: self.promised[j][1] if self.arrivals_first else j):
            # With a pass an event, the processors may belong to a job whose end at this instant has
            # not been handled: the planned job keeps its place, and another pass follows.
            if self.planned[job] == self.now and self.fits_now(job):
                self.begin(job)

    def plan(self, job: int) -> None:
        planned = [self.occupation(other, begin) for other, begin in self.planned.items()]
        place = self.earliest_place(job, self.running_occupations() + planned)
        self.planned[job] = place
        if job not in self.promised or self.promised[job][0] != place:
            turn = 1 + max((turn for _, turn in self.promised.values()), default=0)
            self.promised[job] = (place, turn)


class _Cluster(Cluster):
    """A cluster with its whole workload: the simulation itself."""

    def __init__(self, jobs: list[Job], processors: int, policy: Policy, overrun: str, passes: str) -> None:
        assert passes in ("instant", "event", "arrivals-first")
        super().__init__(processors, policy, overrun)
        self.workload = jobs
        self.passes = passes
        self.arrivals_first = passes == "arrivals-first"
        self.coming = [job for job in jobs if job.processors <= processors]

    def run(self) -> list[int]:
        while instants := self.future_instants() + [job.submit_time for job in self.coming]:
            self.now = min(instants)
            if self.arrivals_first:
                self.left = [job for job in self.completions_now() if self.expected_end[job] == self.now]
            while (events := self.events_now()) or self.start_is_planned_now():
                for process in events if self.passes == "instant" else events[:1]:
                    process()
                still_waiting = len(self.waiting)
                self.schedule()
                assert events or len(self.waiting) < still_waiting, "a planned start that never happens"
        assert not self.waiting
        starts = iter(self.start)
        return [next(starts) if job.processors <= self.processors else REJECTED for job in self.workload]

    def events_now(self) -> list[Callable[[], None]]:
        """The events of this instant that have not happened, in their order."""
        completions = [partial(self.complete, job) for job in self.completions_now()]
        corrections = [partial(self.correct, job) for job in self.overruns_now() if self.uses_expected_ends()]
        arrivals = [self.arrive for job in self.coming if job.submit_time == self.now]
        if self.arrivals_first:
            return [*corrections, *arrivals, *completions]
        return [*completions, *corrections, *arrivals]

    def arrive(self) -> None:
        self.enter(self.coming.pop(0))

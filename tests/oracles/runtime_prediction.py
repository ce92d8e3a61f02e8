"""Naive EASY with run times that are predicted at submission: lists that are searched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds by which a prediction is lengthened at its first, second, ... correction."""


class Job(NamedTuple):
    """Times in seconds; a user of -1 is not known."""

    submit: int
    run: int
    estimate: int
    processors: int
    user: int


class Predicting:
    """A cluster that predicts; `passes` is instant, event or arrivals-first."""

    def __init__(
        self, jobs: list[Job], processors: int, *, shortest_first: bool, correction: str, passes: str
    ) -> None:
        self.jobs, self.processors, self.correction, self.passes = jobs, processors, correction, passes
        self.shortest_first = shortest_first
        self.coming = list(range(len(jobs)))
        self.waiting: list[int] = []
        self.running: list[int] = []  # in the order in which they were started
        self.left: set[int] = set()  # running jobs that have left their processors
        self.history: dict[int, list[int]] = {}
        self.prediction: dict[int, int] = {}
        self.expected: dict[int, list[int]] = {}  # run times expected one after the other
        self.start: dict[int, int] = {}
        self.now = 0

    def run(self) -> list[int]:
        """Start time of each job."""
        while times := self.instants():
            self.now = min(times)
            if self.passes == "arrivals-first":
                on_time = [j for j in self.running if self.end(j) == self.now == self.expected_end(j)]
                self.left.update(on_time)
            while events := self.events():
                together = events if self.passes == "instant" else events[:1]
                asked_for = [process() for process in together]
                if any(asked_for):
                    self.schedule()
        return [self.start[j] for j in range(len(self.jobs))]

    def instants(self) -> list[int]:
        """Times at which something happens."""
        submissions = [self.jobs[j].submit for j in self.coming]
        return submissions + [t for j in self.running for t in (self.end(j), self.expected_end(j))]

    def end(self, j: int) -> int:
        return self.start[j] + self.jobs[j].run

    def expected_end(self, j: int) -> int:
        return self.start[j] + self.expected[j][-1]

    def events(self) -> list[Callable[[], bool]]:
        """What still happens now, in its order; each says whether a pass has to follow."""
        first = self.passes == "arrivals-first"
        running = self.running if first else sorted(self.running)
        ends = [partial(self.complete, j) for j in running if self.end(j) == self.now]
        late = [j for j in sorted(self.running) if self.expected_end(j) <= self.now < self.end(j)]
        corrections = [partial(self.correct, j) for j in late]
        arrivals = [partial(self.submit, j) for j in self.coming if self.jobs[j].submit == self.now]
        return [*corrections, *arrivals, *ends] if first else [*ends, *corrections, *arrivals]

    def submit(self, j: int) -> bool:
        self.coming.remove(j)
        job = self.jobs[j]
        known = self.history.get(job.user, [])
        self.prediction[j] = job.estimate
        if job.user >= 0 and len(known) > 1:
            self.prediction[j] = max(1, min(sum(known[-2:]) // 2, job.estimate))
        self.waiting.append(j)
        return self.passes != "arrivals-first" or self.shortest_first or job.processors <= self.free()

    def complete(self, j: int) -> bool:
        self.running.remove(j)
        self.left.discard(j)
        self.history.setdefault(self.jobs[j].user, []).append(self.jobs[j].run)
        return True

    def correct(self, j: int) -> bool:
        """Lengthen what is expected of a job; beyond its estimate by doubling."""
        past, limit = self.expected[j], self.jobs[j].estimate
        while past[-1] <= self.now - self.start[j]:
            if self.correction == "doubling" or past[-1] >= limit:
                past.append(2 * past[-1])
            elif self.correction == "increments" and len(past) <= len(INCREMENTS):
                past.append(min(past[0] + INCREMENTS[len(past) - 1], limit))
            else:
                past.append(limit)
        return self.passes != "arrivals-first"

    def free(self) -> int:
        """Processors that nobody holds now."""
        return self.processors - sum(self.jobs[j].processors for j in self.running if j not in self.left)

    def room(self, time: int) -> int:
        """Processors that are expected to be free at a time, if nothing else starts."""
        holding = [j for j in self.running if j not in self.left and self.expected_end(j) > time]
        return self.processors - sum(self.jobs[j].processors for j in holding)

    def begin(self, j: int) -> None:
        self.waiting.remove(j)
        self.running.append(j)
        self.start[j] = self.now
        self.expected[j] = [self.prediction[j]]

    def schedule(self) -> None:
        while self.waiting and self.jobs[self.waiting[0]].processors <= self.free():
            self.begin(self.waiting[0])
        if not self.waiting:
            return
        head, *others = self.waiting
        needed = self.jobs[head].processors
        ends = [self.expected_end(j) for j in self.running if j not in self.left]
        shadow = min(time for time in ends if self.room(time) >= needed)
        if self.shortest_first:
            others.sort(key=lambda j: self.prediction[j])
        for j in others:
            processors = self.jobs[j].processors
            in_time = self.now + self.prediction[j] <= shadow
            if processors <= self.free() and (in_time or processors + needed <= self.room(shadow)):
                self.begin(j)

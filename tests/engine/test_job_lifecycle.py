"""Lifecycles of jobs: who enters and who gives up at which instant, against a naive clock of seconds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import DEPENDENT, LIFE, Dependency, Fate
from gridsched.engine.records import FOREVER

_LENGTH = 12


class _Naive:
    """Jobs on as many processors as they want, looked at second by second."""

    def __init__(self, rng: random.Random) -> None:
        self.jobs = range(rng.randint(1, 7))
        self.submit = sorted(rng.randint(0, 6) for _ in self.jobs)
        self.run = [rng.randint(0, 4) for _ in self.jobs]
        self.pause = [rng.randint(0, 3) for _ in self.jobs]
        self.gives_up = [rng.choice([FOREVER, rng.randint(0, 12)]) for _ in self.jobs]
        self.failed = [rng.random() < 0.2 for _ in self.jobs]
        self.rejected = [rng.random() < 0.1 for _ in self.jobs]
        self.needs = [
            (job, on, rng.choice(list(Dependency)), rng.choice([0, 0, 1, 3]))
            for job in self.jobs
            for on in range(job)
            if rng.random() < 0.4
        ]
        self.limit = [rng.choice([FOREVER, rng.randint(0, 6)]) for _ in self.jobs]
        self.returns = [rng.randint(0, 24) for _ in self.jobs]
        self.away = [rng.choice([0, 0, 0, 1]) for _ in self.jobs]
        self.entered: dict[int, int] = {}
        self.started: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.gone: dict[int, tuple[int, Fate]] = {}

    def _met_at(self, on: int, kind: Dependency) -> int | None:
        """When a dependency is met; None if not yet, FOREVER if never."""
        if kind == Dependency.AFTER and on in self.started:
            return self.started[on]
        if on in self.ended:
            is_ok = not self.failed[on]
            wrong = (kind == Dependency.AFTER_OK and not is_ok) or (kind == Dependency.AFTER_NOT_OK and is_ok)
            return FOREVER if wrong else self.ended[on]
        if on in self.gone:
            time, fate = self.gone[on]
            return FOREVER if fate == Fate.NEVER_ELIGIBLE or kind == Dependency.AFTER_OK else time
        return None

    def _noticed(self, on: int, met: int) -> int:
        """When the user of a job knows that what it waits for has happened."""
        if self.limit[on] == FOREVER or on not in self.ended or met == FOREVER:
            return met
        if met - self.entered[on] < self.limit[on]:
            return met
        days = -((self.returns[on] - met) // 86_400)
        return self.returns[on] + (days + self.away[on]) * 86_400

    def _eligible(self, job: int) -> int:
        """When a job may start, FOREVER if never; a second less while that is not known."""
        times = [self.submit[job]]
        for other, on, kind, delay in self.needs:
            if other == job:
                met = self._met_at(on, kind)
                if met is None:
                    times.append(FOREVER - 1)
                else:
                    seen = met if kind == Dependency.AFTER else self._noticed(on, met)
                    times.append(met if met == FOREVER else seen + delay)
        return max(times)

    def second(self, now: int) -> None:
        """All that happens at an instant; a start may let others enter at the same one."""
        before = -1
        while before != len(self.started):
            before = len(self.started)
            self._turn(now)

    def _turn(self, now: int) -> None:
        """Ends, then entries and users who give up until nothing changes, then starts."""
        for job, start in self.started.items():
            if job not in self.ended and max(start + self.run[job], start + 1) <= now:
                self.ended[job] = now
        before = -1
        while before != len(self.entered) + len(self.gone):
            before = len(self.entered) + len(self.gone)
            for job in self.jobs:
                if job in self.gone or job in self.entered:
                    continue
                if self.rejected[job]:
                    if self.submit[job] <= now:
                        self.gone[job] = (now, Fate.REJECTED)
                elif self._eligible(job) == FOREVER:
                    self.gone[job] = (now, Fate.NEVER_ELIGIBLE)
                elif self._eligible(job) <= now:
                    self.entered[job] = now
            for job in self.jobs:
                left = job in self.gone or job in self.started or self.submit[job] > now
                if not left and self.gives_up[job] <= now:
                    self.gone[job] = (now, Fate.GAVE_UP)
                    break
        for job, time in self.entered.items():
            if job not in self.gone and job not in self.started and now >= time + self.pause[job]:
                self.started[job] = now


def _simulated(case: _Naive) -> tuple[dict[int, int], dict[int, int], list[int]]:
    """Entries, starts and fates by the engine."""
    number = len(case.jobs)
    jobs = np.zeros(number, LIFE)
    jobs["submit"], jobs["gives_up"], jobs["failed"] = case.submit, case.gives_up, case.failed
    jobs["unmet"] = [1 + sum(need[0] == job for need in case.needs) for job in case.jobs]
    jobs["fate"] = np.where(case.rejected, int(Fate.REJECTED), int(Fate.COMPLETED))
    by_other = sorted(case.needs, key=lambda need: need[1])
    rows = [
        (job, int(kind), delay, case.limit[on], case.returns[on], case.away[on])
        for job, on, kind, delay in by_other
    ]
    dependents = np.array(rows, DEPENDENT)
    first = np.searchsorted([need[1] for need in by_other], range(number + 1)).astype(np.int64)
    state = job_lifecycle.allocate(jobs, dependents, first)
    entered: dict[int, int] = {}
    started: dict[int, int] = {}
    ended: set[int] = set()
    found = np.empty(number, np.int64)
    for now in range(_LENGTH * 6):
        for job, start in list(started.items()):
            if job not in ended and max(start + case.run[job], start + 1) <= now:
                ended.add(job)
                job_lifecycle.end(state, job, now, int(Fate.COMPLETED))
        again = True
        while again:
            while job_lifecycle.next_time(state) == now:
                for job in found[: job_lifecycle.enter(state, now, found)].tolist():
                    entered[job] = now
                job_lifecycle.give_up(state, now, found)
            for job, time in entered.items():
                waits = jobs["fate"][job] == int(Fate.COMPLETED) and job not in started
                if waits and now >= time + case.pause[job]:
                    started[job] = now
                    job_lifecycle.start(state, job, now)
            again = job_lifecycle.next_time(state) == now
    return entered, started, jobs["fate"].tolist()


@pytest.mark.random_cases(20)
def test_lives_are_those_of_a_naive_clock(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        case = _Naive(rng)
        for now in range(_LENGTH * 6):
            case.second(now)
        entered, started, fate = _simulated(case)
        assert started == case.started
        gone = {job: int(case.gone[job][1]) if job in case.gone else 0 for job in case.jobs}
        assert fate == [gone[job] for job in case.jobs]
        assert entered.items() >= {job: case.entered[job] for job in started}.items()

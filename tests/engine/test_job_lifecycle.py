"""Lifecycles of jobs: who enters and who gives up at which instant, against a naive clock of seconds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import Fate
from gridsched.engine.records import FOREVER
from tests.oracles.users import NEVER, Submission, Users
from tests.support.engine import KINDS, lifecycles

_LENGTH = 12


class _Naive(Users):
    """Jobs on as many processors as they want, looked at second by second; users may notice ends late."""

    def __init__(self, rng: random.Random) -> None:
        number = rng.randint(1, 7)
        jobs = [
            Submission(
                submit,
                rng.choice([NEVER, rng.randint(0, 12)]),
                rng.random() < 0.2,
                tuple(
                    (on, rng.choice(list(KINDS)), rng.choice([0, 0, 1, 3]))
                    for on in range(job)
                    if rng.random() < 0.4
                ),
            )
            for job, submit in enumerate(sorted(rng.randint(0, 6) for _ in range(number)))
        ]
        super().__init__(jobs, [job for job in range(number) if rng.random() < 0.1])
        self.run = [rng.randint(0, 4) for _ in jobs]
        self.pause = [rng.randint(0, 3) for _ in jobs]
        self.limit = [rng.choice([FOREVER, rng.randint(0, 6)]) for _ in jobs]
        self.returns = [rng.randint(0, 24) for _ in jobs]
        self.away = [rng.choice([0, 0, 0, 1]) for _ in jobs]

    def met_at(self, on: int, kind: str) -> int:
        """When the user of a job knows that what it waits for has happened."""
        met = super().met_at(on, kind)
        if kind == "after" or self.fate.get(on) != "completed" or met == NEVER:
            return met
        if met - self.entered[on] < self.limit[on]:
            return met
        days = -((self.returns[on] - met) // 86_400)
        return self.returns[on] + (days + self.away[on]) * 86_400

    def second(self, now: int) -> None:
        """All that happens at an instant: ends, entries, starts, which may let others enter."""
        before = -1
        while before != (before := len(self.started)):
            for job, start in self.started.items():
                if job not in self.gone and max(start + self.run[job], start + 1) <= now:
                    self.leave(job, now, "completed")
            self.look(now)
            for job, time in self.entered.items():
                if job not in self.gone and job not in self.started and now >= time + self.pause[job]:
                    self.start(job, now)


def _simulated(case: _Naive) -> tuple[dict[int, int], dict[int, int], list[int]]:
    """Entries, starts and fates by the engine."""
    number = len(case.jobs)
    state = lifecycles(case.jobs, case.fate, list(zip(case.limit, case.returns, case.away, strict=True)))
    jobs = state.jobs
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
        entered, started, fate = _simulated(case)
        for now in range(_LENGTH * 6):
            case.second(now)
        assert started == case.started
        names = [case.fate.get(job, "completed") for job in range(len(case.jobs))]
        assert fate == [int(Fate[name.upper().replace(" ", "_")]) for name in names]
        assert entered.items() >= {job: case.entered[job] for job in started}.items()

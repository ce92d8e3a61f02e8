"""A scheduler that commits itself to a job: the engine does what the naive one does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gridsched.engine import committed
from gridsched.engine.records import JOB, LABELS
from gridsched.policies import scores
from gridsched.policies.local import ORDERS
from tests.oracles.committed import Job, simulate

PROCESSORS = 6


def _jobs(rng: random.Random) -> list[Job]:
    submits = sorted(rng.randint(0, 60) for _ in range(rng.randint(1, 25)))
    found = []
    for submit in submits:
        run = rng.randint(0, 12)
        found.append(Job(submit, run, max(1, run + rng.choice([0, 0, 3, -2])), rng.randint(1, PROCESSORS)))
    return found


def _starts(jobs: list[Job], order: str, *, backfills: bool, knows_time: bool) -> list[int]:
    table = np.array(jobs, JOB)
    state = committed.allocate(table, np.zeros(len(jobs), LABELS), PROCESSORS)
    committed.schedule(state, backfills, knows_time, scores.SCORE.compile(ORDERS[order]))
    return [int(start) for start in state.starts[0]]


@pytest.mark.random_cases(4)
@pytest.mark.parametrize("knows_time", [True, False])
@pytest.mark.parametrize("backfills", [True, False])
@pytest.mark.parametrize("order", ["fcfs", "shortest", "wfp3", "unicep", "f1"])
def test_starts_are_those_of_a_naive_scheduler(
    order: str, backfills: bool, knows_time: bool, seed: int
) -> None:
    score = ORDERS[order]
    names = scores.SCORE.parameters_of(score)

    def key(job: Job, now: int) -> float:
        values = {
            "now": now,
            "submit_time": job.submit,
            "estimate": job.estimate,
            "processors": job.processors,
        }
        return -float(score(**{name: values[name] for name in names}))

    rng = random.Random(seed)
    for _ in range(100):
        jobs = _jobs(rng)
        expected = simulate(jobs, PROCESSORS, key, backfills=backfills, knows_time=knows_time)
        assert _starts(jobs, order, backfills=backfills, knows_time=knows_time) == expected


def test_it_does_not_take_a_choice_back() -> None:
    """The second job is chosen and waits; the short third one comes too late to be chosen before it."""
    jobs = [Job(0, 10, 10, 4), Job(1, 5, 5, 4), Job(2, 1, 1, 4)]
    assert _starts(jobs, "shortest", backfills=False, knows_time=True) == [0, 10, 15]


def test_only_what_ends_before_the_shadow_starts_in_it() -> None:
    """The second job could start at 10 s, in the shadow there is room for 2 processors until just before."""
    jobs = [Job(0, 10, 10, 4), Job(1, 5, 5, 6), Job(2, 8, 8, 2), Job(3, 6, 6, 2)]
    assert _starts(jobs, "fcfs", backfills=True, knows_time=True) == [0, 10, 15, 3]

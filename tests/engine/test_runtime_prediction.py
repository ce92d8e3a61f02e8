"""Expected ends, and EASY that predicts run times while it runs: as the naive scheduler has them."""

from __future__ import annotations

import random
from typing import NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.engine import overrun
from gridsched.engine.records import JOB, LABELS, Correction, Overrun
from gridsched.engine.runtime_prediction import corrected_end
from gridsched.policies.local import (
    Conventions,
    CorrectionName,
    LocalPolicy,
    PassName,
    schedule_with_predictions,
)
from tests.oracles import local as naive
from tests.oracles.local import CountedProcessors, Policy
from tests.oracles.orders import corrected


class Job(NamedTuple):
    """Times in seconds; a user of -1 is not known."""

    submit: int
    run: int
    estimate: int
    processors: int
    user: int


PASSES: tuple[PassName, ...] = get_args(PassName)
CORRECTIONS: tuple[CorrectionName, ...] = get_args(CorrectionName)


def _jobs(rng: random.Random, processors: int) -> list[Job]:
    """Jobs in whole units, so that ends, expected ends and submissions meet; some outrun their estimates."""
    unit = rng.choice([1, 5, 60])
    longest = rng.choice([4, 12, 40])
    apart = rng.choice([0, 1, 3, 8])
    users = rng.randint(1, 3)
    submit, found = 0, []
    for _ in range(rng.randint(1, 40)):
        submit += unit * rng.randint(0, apart)
        run = unit * rng.randint(0, longest) + rng.choice([0, 0, 0, 1])
        estimate = max(1, run + unit * rng.choice([0, 0, 1, 5, 100, -1]))
        found.append(Job(submit, run, estimate, rng.randint(1, processors), rng.randint(-1, users)))
    return found


def _simulated(
    jobs: list[Job], processors: int, *, shortest_first: bool, correction: CorrectionName, passes: PassName
) -> tuple[list[int], list[int]]:
    """Starts and predictions by the engine."""
    records, labels = np.array([job[:4] for job in jobs], JOB), np.zeros(len(jobs), LABELS)
    labels["user"] = [7 * job.user if job.user > 0 else job.user for job in jobs]
    policy = LocalPolicy(
        backfilling="easy",
        backfill_order="shortest" if shortest_first else "queue",
        prediction="recent",
        correction=correction,
    )
    given = records.copy()
    starts, _, predictions = schedule_with_predictions(
        records, processors, policy, Conventions("doubling", passes), labels
    )
    assert (records == given).all()
    return starts.tolist(), predictions.tolist()


@pytest.mark.random_cases(3)
@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("shortest_first", [True, False])
def test_starts_and_predictions_are_those_of_a_naive_scheduler(
    shortest_first: bool, correction: CorrectionName, passes: PassName, seed: int
) -> None:
    rng = random.Random(seed)
    corrected = predicted = 0
    for _ in range(50):
        processors = rng.choice([1, 2, 3, 5, 8])
        jobs = _jobs(rng, processors)
        done = CountedProcessors(
            [naive.Job(*job[:4]) for job in jobs],
            processors,
            Policy("fcfs", "easy", 1, "shortest" if shortest_first else "queue"),
            users=[job.user for job in jobs],
            prediction="recent",
            correction=correction,
            passes=passes,
        ).simulate()
        found = _simulated(
            jobs, processors, shortest_first=shortest_first, correction=correction, passes=passes
        )
        assert found == (done.first_start, done.predicted), jobs
        corrected += done.corrections
        predicted += sum(each < job.estimate for each, job in zip(done.predicted, jobs, strict=True))
    assert corrected > 0
    assert predicted > 0


def test_a_prediction_is_the_mean_of_the_last_two_jobs_of_the_user() -> None:
    """The fourth job knows the second and the third; the fifth, of another user, knows nothing."""
    jobs = [Job(0, 50, 100, 1, 1), Job(60, 11, 100, 1, 1), Job(80, 20, 100, 1, 1)]
    jobs += [Job(200, 9, 100, 1, 1), Job(200, 9, 70, 1, 2), Job(200, 9, 12, 1, 1)]
    _, predictions = _simulated(jobs, 8, shortest_first=True, correction="requested", passes="arrivals-first")
    assert predictions == [100, 100, 30, 15, 70, 12]


def test_jobs_of_an_unknown_user_are_not_those_of_one_user() -> None:
    jobs = [Job(k * 100, 10, 90, 1, -1) for k in range(4)]
    _, predictions = _simulated(jobs, 1, shortest_first=True, correction="doubling", passes="instant")
    assert predictions == [90] * 4


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ("doubling", [10, 20, 40, 80, 160, 320, 640, 1280]),
        ("requested", [10, 1000, 2000]),
        ("increments", [10, 70, 310, 910, 1000, 2000]),
    ],
)
def test_corrections_go_on_beyond_the_estimate(correction: CorrectionName, expected: list[int]) -> None:
    """Increments count from the prediction, and lead up to the estimate; beyond, the convention rules."""
    code = int(Correction[correction.upper()])
    found, end = [], 0
    while end <= 1000:
        end = corrected_end(5, 10, 1000, code, int(Overrun.DOUBLING), 5 + end + 1) - 5
        found.append(end)
    assert found == expected


@pytest.mark.parametrize("rule", Overrun)
@given(st.integers(0, 100), st.integers(1, 5000), st.integers(0, 2_000_000))
def test_expected_ends_follow_the_rule(rule: Overrun, start: int, estimate: int, not_before: int) -> None:
    found = overrun.expected_end(start, estimate, int(rule), not_before)
    assert found == start + corrected(estimate, not_before - 1 - start, rule.name.lower())

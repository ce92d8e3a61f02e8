"""Expected ends, and EASY that predicts run times while it runs: as the naive scheduler has them."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
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
from tests.oracles.local import CountedProcessors, Job, Policy
from tests.oracles.orders import corrected
from tests.support import strategies

PASSES: tuple[PassName, ...] = get_args(PassName)
CORRECTIONS: tuple[CorrectionName, ...] = get_args(CorrectionName)


def _simulated(
    jobs: list[Job], users: list[int], processors: int, policy: LocalPolicy, passes: PassName
) -> tuple[list[int], list[int]]:
    """Starts and predictions by the engine; a user of -1 is not known."""
    records, labels = np.array(jobs, JOB), np.zeros(len(jobs), LABELS)
    labels["user"] = [7 * user if user > 0 else user for user in users]
    given = records.copy()
    conventions = Conventions("doubling", passes)
    starts, _, predictions = schedule_with_predictions(records, processors, policy, conventions, labels)
    assert (records == given).all()
    return starts.tolist(), predictions.tolist()


def _policy(correction: CorrectionName, order: Any = "shortest") -> LocalPolicy:
    """EASY that predicts."""
    return LocalPolicy(backfilling="easy", backfill_order=order, prediction="recent", correction=correction)


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("correction", CORRECTIONS)
@given(
    workload=strategies.workloads(max_jobs=40).filter(lambda workload: bool(workload[0])),
    users=st.lists(st.integers(-1, 2), min_size=40, max_size=40),
    order=st.sampled_from(["queue", "shortest"]),
)
@settings(max_examples=150)
def test_starts_and_predictions_are_those_of_a_naive_scheduler(
    correction: CorrectionName,
    passes: PassName,
    workload: tuple[list[Job], int],
    users: list[int],
    order: str,
) -> None:
    jobs, processors = workload
    done = CountedProcessors(
        jobs,
        processors,
        Policy("fcfs", "easy", 1, order),
        users=users,
        prediction="recent",
        correction=correction,
        passes=passes,
    ).simulate()
    found = _simulated(jobs, users[: len(jobs)], processors, _policy(correction, order), passes)
    assert found == (done.first_start, done.predicted)


def test_a_prediction_is_the_mean_of_the_last_two_jobs_of_the_user() -> None:
    """The fourth job knows the second and the third; the fifth, of another user, knows nothing."""
    jobs = [Job(0, 50, 100, 1), Job(60, 11, 100, 1), Job(80, 20, 100, 1)]
    jobs += [Job(200, 9, 100, 1), Job(200, 9, 70, 1), Job(200, 9, 12, 1)]
    _, predictions = _simulated(jobs, [1, 1, 1, 1, 2, 1], 8, _policy("requested"), "arrivals-first")
    assert predictions == [100, 100, 30, 15, 70, 12]


def test_jobs_of_an_unknown_user_are_not_those_of_one_user() -> None:
    jobs = [Job(k * 100, 10, 90, 1) for k in range(4)]
    assert _simulated(jobs, [-1] * 4, 1, _policy("doubling"), "instant")[1] == [90] * 4


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

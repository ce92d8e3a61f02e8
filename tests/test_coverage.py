"""How often each kind of interval holds the truth, on synthetic truth; `slow/slow_coverage.py` has more."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.comparison import by_weeks
from gridsched.metrics.jobs import batch_means_interval, paired_difference
from gridsched.replication import (
    Interval,
    difference_interval,
    holm,
    mean_interval,
    ratio_interval,
    times_interval,
    times_significance,
)
from tests.support.queues import mean_wait, waits

AT_LEAST = 0.93
"""Coverage that an interval of nominally 95 % has to have."""

SAMPLES = 6000


def coverage(interval: Interval, truth: float) -> float:
    """Share of intervals that hold the truth."""
    return float(((interval.low <= truth) & (truth <= interval.high)).mean())


@pytest.mark.parametrize("replicates", [10, 30])
def test_intervals_over_replicates_hold_what_they_say(replicates: int) -> None:
    """Means that vary by a third from replicate to replicate, most of which both sides have in common."""
    draws = np.random.default_rng(3)
    shape = (SAMPLES, replicates)
    load = draws.gamma(12, 1 / 12, shape)
    reference = 100 * load * draws.gamma(30, 1 / 30, shape)
    values = 40 * load * draws.gamma(30, 1 / 30, shape)
    found = {
        "mean": coverage(mean_interval(values), 40),
        "signed": coverage(mean_interval(values, signed=True), 40),
        "difference": coverage(difference_interval(values, reference), -60),
        "ratio": coverage(ratio_interval(values, reference), 0.4),
        "times": coverage(times_interval(values, reference), 0.4),
    }
    assert min(found.values()) > AT_LEAST, found
    assert max(found.values()) < 0.97, found


def test_weeks_of_unequal_numbers_of_jobs_hold_what_they_say() -> None:
    draws = np.random.default_rng(5)
    held = []
    for _ in range(1500):
        jobs = draws.poisson(30, 26)
        week = np.repeat(np.arange(26), jobs)
        values = (draws.gamma(12, 1 / 12, 26)[week] * draws.exponential(100, len(week)))[np.newaxis]
        held.append(coverage(by_weeks(values, week), 100))
    assert np.mean(held) > AT_LEAST - 0.01


@pytest.mark.parametrize("replicates", [12, 30])
def test_any_false_finding_among_many_is_as_rare_as_one(replicates: int) -> None:
    """Six schemes that do not differ: all pairs by Holm, all against the first by Bonferroni."""
    draws = np.random.default_rng(6)
    first, second = np.triu_indices(6, 1)
    pairs = against = 0
    samples = 1500
    for _ in range(samples):
        values = draws.gamma(12, 1 / 12, replicates) * draws.gamma(30, 1 / 30, (6, replicates))
        pairs += bool((holm(times_significance(values[first], values[second])) < 0.05).any())
        times = times_interval(values[1:], values[0], 1 - 0.05 / 5)
        against += bool(((times.low > 1) | (times.high < 1)).any())
    assert pairs / samples < 1 - AT_LEAST + 0.01
    assert against / samples < 1 - AT_LEAST + 0.01


def test_batches_that_are_long_against_the_memory_of_a_queue_hold_what_they_say() -> None:
    """A queue of one server at 60 % load, whose mean wait is known: 400 logs of 15,000 jobs."""
    draws = np.random.default_rng(7)
    gaps, lengths = draws.exponential(1.0, (400, 15_000)), draws.exponential(1.0, (400, 15_000))
    slow, fast = (waits(gaps, load * lengths, load, draws.random((2, 400))) for load in (0.6, 0.5))
    truth = {load: mean_wait(load) for load in (0.5, 0.6)}
    means = [batch_means_interval(row) for row in slow]
    assert np.mean([each.low <= truth[0.6] <= each.high for each in means]) > AT_LEAST - 0.02
    apart = [paired_difference(one, other) for one, other in zip(fast, slow, strict=True)]
    wanted = truth[0.5] - truth[0.6]
    assert np.mean([each.low <= wanted <= each.high for each in apart]) > AT_LEAST - 0.02
    width = np.mean([each.high - each.low for each in means])
    assert np.mean([each.high - each.low for each in apart]) < 0.6 * width

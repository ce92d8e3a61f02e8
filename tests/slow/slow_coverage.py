"""Coverage of intervals where each sample is dear: long logs of a queue, logs that are resampled by users."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gridsched as gs
from gridsched.metrics.jobs import batch_means_interval, paired_difference
from gridsched.replication import mean_interval
from tests.support.queues import mean_wait, waits

WEEK, DAY = 7 * 86_400, 86_400


@pytest.mark.parametrize(("load", "jobs"), [(0.5, 20_000), (0.7, 60_000)])
def test_batch_means_of_long_logs_hold_what_they_say(load: float, jobs: int) -> None:
    draws = np.random.default_rng(11)
    found = []
    for _ in range(5):
        gaps, lengths = draws.exponential(1.0, (200, jobs)), draws.exponential(1.0, (200, jobs))
        rows = waits(gaps, load * lengths, load, draws.random((2, 200)))
        found += [each.low <= mean_wait(load) <= each.high for each in map(batch_means_interval, rows)]
    assert np.mean(found) > 0.93


def test_resampled_logs_hold_the_mean_of_these_users_with_half_the_width() -> None:
    """Four sites; of each the mean over 200 resampled logs stands for the truth.

    An interval from the batches of one resampled log, and one over ten of them, are for the same truth.
    """
    narrower, held = [], []
    for number in range(4):
        log = _site(np.random.default_rng(50 + number))
        means, differences = [], []
        alone: dict[str, list[tuple[float, float]]] = {"mean": [], "difference": []}
        for seed in range(200):
            jobs = gs.resample(log, seed=seed)
            easy, sjbf = _waits(jobs, "easy"), _waits(jobs, "sjbf")
            means.append(easy.mean())
            differences.append((easy - sjbf).mean())
            alone["mean"].append(batch_means_interval(easy)[1:])
            alone["difference"].append(paired_difference(easy, sjbf)[1:])
        for name, values in (("mean", np.array(means)), ("difference", np.array(differences))):
            truth = values.mean()
            order = np.random.default_rng(1).permuted(np.tile(values, (20, 1)), axis=1)
            over = mean_interval(order.reshape(-1, 10), signed=True)
            low, high = np.array(alone[name]).T
            covered = float(((over.low <= truth) & (truth <= over.high)).mean())
            assert covered > np.mean((low <= truth) & (truth <= high))
            held.append(covered)
            narrower.append(np.median(high - low) / np.median(over.high - over.low))
    assert np.mean(held) > 0.93
    assert np.median(narrower) > 2


def _waits(jobs: gs.Workload, policy: str) -> NDArray[np.float64]:
    run = gs.simulate(jobs, 64, policy)
    found: NDArray[np.float64] = (run["start_time"] - run["submit_time"]).to_numpy().astype(np.float64)
    return found


def _site(draws: np.random.Generator, weeks: int = 26, before: int = 60) -> gs.Workload:
    """A log of users who come as a Poisson process, for some weeks or for long, to 64 processors."""
    rows = []
    number = 0
    for week in range(-before, weeks):
        for _ in range(draws.poisson(4.0)):
            number += 1
            own = _user(draws, before)
            own[:, 0] += week * WEEK
            own[:, 3] = number
            rows.append(own[(own[:, 0] >= 0) & (own[:, 0] < weeks * WEEK)])
    jobs = np.concatenate(rows)
    jobs = jobs[np.argsort(jobs[:, 0], kind="stable")]
    return gs.Workload(
        name="site",
        submit_time=jobs[:, 0],
        run_time=jobs[:, 1],
        requested_time=2 * jobs[:, 1],
        requested_processors=jobs[:, 2],
        user=jobs[:, 3],
        processors_available=64,
    )


def _user(draws: np.random.Generator, longest: int) -> NDArray[np.int64]:
    """Jobs of a user from week 0 on: submit time, run time, processors, and room for a number."""
    lasting = draws.random() < 0.3
    stay = int(draws.integers(13, longest + 1)) if lasting else min(int(draws.geometric(1 / 4)), 12)
    rate, size, length = draws.lognormal(0.8, 0.7), draws.choice([1, 2, 4, 8, 16]), draws.lognormal(7.6, 0.8)
    submit = [np.empty(0, np.int64)]
    for week in range(stay):
        if draws.random() >= 0.3:
            count = draws.poisson(3 * rate)
            day = draws.integers(0, 5, count)
            hour = draws.normal(13, 3, count).clip(0, 23.9)
            submit.append((week * WEEK + day * DAY + hour * 3600).astype(np.int64))
    times = np.concatenate(submit)
    run = np.maximum(1, draws.exponential(length, len(times))).astype(np.int64)
    wide = np.minimum(32, size * draws.choice([1, 1, 2], len(times)))
    return np.stack([times, run, wide, np.zeros(len(times), np.int64)], axis=1)

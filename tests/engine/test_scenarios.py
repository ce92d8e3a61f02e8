"""The kernel of many scenarios, against the scenarios simulated one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsched.engine.scenarios import DAY
from gridsched.forecasting.scenarios import Scenarios
from gridsched.forecasting.snapshot import RECORD, Snapshot
from gridsched.policies.local import Conventions, named_policy

PROCESSORS = 20


def some_queue(rng: np.random.Generator) -> Snapshot:
    """Jobs of ten days, of which some run, some wait, and the rest has finished; many at one instant."""
    count, now = int(rng.integers(5, 60)), 10 * DAY
    past = np.zeros(count, RECORD)
    past["submit"] = np.sort(rng.integers(0, 241, count) * (DAY // 24))
    past["estimate"] = rng.integers(1, 30, count) * 3600
    past["processors"] = rng.integers(1, PROCESSORS // 2, count)
    past["start"] = np.minimum(past["submit"] + rng.integers(0, DAY, count), now)
    past["end"] = past["start"] + rng.integers(0, 30 * 3600, count)
    waits = rng.random(count) < 0.4
    past["start"][waits] = past["end"][waits] = -1
    running = np.flatnonzero(past["end"] > now)
    total = np.cumsum(past["processors"][running])
    past["end"][running] = np.where(total <= PROCESSORS, -1, now)
    return Snapshot(now, PROCESSORS, past, "easy")


def drawn(rng: np.random.Generator, queue: Snapshot, count: int) -> tuple[Any, Any]:
    """Run times that may outrun estimates, and days that repeat those of the past, or are empty."""
    age = queue.now - queue.past["start"][queue.running]
    least = np.concatenate([age + 1, np.ones(len(queue.waiting), np.int64)])
    run_time = least + rng.integers(0, 40 * 3600, (count, len(least)))
    days = np.arange(1, 9)
    back = (days + rng.integers(0, 3, (count, 8))) * DAY
    return run_time, np.where(rng.random((count, 8)) < 0.8, back, 0)


@pytest.mark.parametrize("policy", ["easy", "ff", "fcfs"])
@pytest.mark.parametrize("overrun", ["doubling", "increments"])
def test_many_at_once_are_those_one_by_one(policy: str, overrun: Any) -> None:
    rng = np.random.default_rng(11)
    late = 0
    for _ in range(40):
        queue = some_queue(rng)
        if not len(queue.waiting):
            continue
        run_time, back = drawn(rng, queue, 6)
        if rng.random() < 0.2:
            back = back[:, :0]  # nobody comes
        made = Scenarios(queue, named_policy(policy), Conventions(overrun))
        asked = np.flatnonzero(rng.random(len(queue.waiting)) < 0.7)
        expected = np.empty((6, len(asked)), np.int64)
        made._one_by_one(run_time, back, asked, 9 * DAY, 0, 6, expected)
        for span, threads in ((9 * DAY, 1), (1, 1), (int(rng.integers(1, 9 * DAY)), 2)):
            found = made._simulated(run_time, back, asked, span, threads)
            np.testing.assert_array_equal(found, expected)
        late += int((expected > queue.now).sum())
    assert late > 200


def test_futures_end_at_the_last_day() -> None:
    """What has not started by then has no start."""
    past = np.zeros(3, RECORD)
    past["submit"], past["estimate"], past["processors"] = [0, 1, 2], 3600, 20
    past["start"], past["end"] = [5, -1, -1], [-1, -1, -1]
    made = Scenarios(Snapshot(10, 20, past, "easy"), named_policy("easy"), Conventions())
    run_time = np.array([[DAY // 2, DAY, 1]])
    found = made._simulated(run_time, np.zeros((1, 1), np.int64), np.arange(2), 1, 1)
    assert found.tolist() == [[5 + DAY // 2, -1]]
    found = made._simulated(run_time, np.zeros((1, 0), np.int64), np.arange(2), 1, 1)
    assert found.tolist() == [[5 + DAY // 2, 5 + DAY + DAY // 2]]

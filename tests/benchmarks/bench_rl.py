"""The environment of queue orders: steps a second of copies in one kernel, with the Python around it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import gridsched as gs
from gridsched import rl
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table

STEPS = 256
LEAST_STEPS_PER_SECOND = 300_000


def steps_per_second(clusters: int, **parameters: Any) -> float:
    """Random valid actions; sequences follow one another."""
    jobs = gs.LublinModel.published(256).synthesise(jobs=10_000, seed=1)
    envs = gymnasium.make_vec(rl.ID, clusters, workload=jobs, processors=256, **parameters)
    _, infos = envs.reset(seed=1)
    draws = np.random.default_rng(1).random((STEPS, clusters))

    def steps() -> None:
        nonlocal infos
        for draw in draws:
            *_, infos = envs.step((draw * infos["action_mask"].sum(axis=1)).astype(np.int64))

    return clusters * STEPS / best_time(steps)


@pytest.mark.parametrize("backfilling", ["none", "shadow"])
@pytest.mark.parametrize("clusters", [64, 1024])
def test_copies_that_step_in_one_kernel(clusters: int, backfilling: str, table: Table) -> None:
    """Sequences of 256 jobs, of which 128 are seen."""
    rate = steps_per_second(clusters, backfilling=backfilling)
    what = f"queue orders, {clusters} environments, backfilling {backfilling}"
    table.add(what, rate, "steps/s", at_least=LEAST_STEPS_PER_SECOND)


def test_a_single_environment(table: Table) -> None:
    """One copy, for its overhead."""
    table.add("queue orders, 1 environment", steps_per_second(1), "steps/s")

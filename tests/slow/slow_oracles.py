"""More of the random cases that `make test` compares with naive simulators."""

from __future__ import annotations

from typing import Any

import pytest

import gridsched as gs
from tests import test_node_explanation as explanation
from tests.oracles.grid import SCHEMES
from tests.oracles.jscheduler import METRICS
from tests.systems import test_node_grids as grids
from tests.systems.local import test_nodes as nodes
from tests.systems.slurm import test_naive as slurm


@pytest.mark.parametrize("block", range(1, 6))
@pytest.mark.parametrize("backfilling", ["none", "first_fit", "easy", "conservative"])
def test_arrays(backfilling: Any, block: int) -> None:
    nodes.test_arrays_are_groups_of_the_plain_simulator(backfilling, block)


@pytest.mark.parametrize("block", range(1, 6))
@pytest.mark.parametrize("policy", explanation.POLICIES, ids=lambda policy: str(policy.name))
def test_reasons(policy: gs.LocalPolicy, block: int) -> None:
    explanation.test_reasons_are_those_that_the_plain_simulator_sees(policy, block)


@pytest.mark.parametrize("wanted", grids.WANTED)
@pytest.mark.parametrize("priority", ["equal", "home"])
def test_multiple_requests(priority: str, wanted: tuple[str, ...]) -> None:
    for seed in range(12, 80):
        grids.multiple_requests_case(seed, priority, wanted)


@pytest.mark.parametrize("wanted", grids.WANTED)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_superschedulers(scheme: str, wanted: tuple[str, ...]) -> None:
    for seed in range(12, 32):
        grids.superscheduler_case(seed, scheme, wanted)


@pytest.mark.parametrize("wanted", grids.WANTED)
@pytest.mark.parametrize("metric", METRICS)
def test_jscheduler(metric: str, wanted: tuple[str, ...]) -> None:
    for seed in range(12, 32):
        grids.jscheduler_case(seed, metric, wanted)


@pytest.mark.parametrize("block", range(1, 12))
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_slurm(whole: str, block: int) -> None:
    slurm.test_every_start_is_that_of_the_naive_twin(whole, block)


@pytest.mark.parametrize("block", range(1, 4))
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_slurm_preemption(whole: str, block: int) -> None:
    slurm.test_who_gives_way_is_as_in_the_naive_twin(whole, block)


@pytest.mark.parametrize("block", range(1, 6))
@pytest.mark.parametrize("whole", ["all", "none", "some"])
def test_slurm_minutes(whole: str, block: int) -> None:
    slurm.test_minutes_are_kept_as_in_the_naive_twin(whole, block)

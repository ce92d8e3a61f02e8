"""Clusters of nodes: local policies do what the naive simulator does, in random cases of every kind."""

from __future__ import annotations

from typing import Any

import pytest

import gridsched as gs
from gridsched.nodes import PLACEMENTS
from tests.oracles.grid import Options, Superscheduler
from tests.support.node_cases import CAPABILITIES, check, some_case

SHARING: dict[str, Any] = {"number": (8, 24), "sharing": 0.5}
"""Queues of jobs of which half share GPUs."""


def compare(seed: int, wanted: tuple[str, ...] = (), **chosen: Any) -> None:
    """Check that engine and oracle come to the same on one cluster."""
    case = some_case(seed, wanted, most_clusters=1, **chosen)
    run = gs.simulate(case.workload, case.platform, "local", overrun=case.overrun)
    check(run, Superscheduler(case.jobs, case.sites, "exact", Options("local")).simulate())


@pytest.mark.random_cases(40)
@pytest.mark.parametrize("placement", [name for name in PLACEMENTS if name != "random"])
def test_placements(placement: str, seed: int) -> None:
    """Under each placement, every job gets the nodes and GPUs that the naive simulator gives it."""
    compare(seed, placement=placement, **SHARING)


@pytest.mark.random_cases(40)
def test_random_placements_keep_the_rules(seed: int) -> None:
    case = some_case(seed, most_clusters=1, placement="random", **SHARING)
    gs.verify(gs.simulate(case.workload, case.platform, "local", overrun=case.overrun))


@pytest.mark.random_cases(100)
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_capabilities(capability: str, seed: int) -> None:
    """Partitions, limits, users who give up, dependencies, failures and predictions, one at a time."""
    compare(seed, (capability,), number=(1, 24))


@pytest.mark.random_cases(15)
@pytest.mark.parametrize("wanted", [(), ("partitions",), ("failures",), CAPABILITIES])
def test_plans_of_long_queues(wanted: tuple[str, ...], seed: int) -> None:
    """Under conservative backfilling the earliest place is found among many plans."""
    compare(seed, wanted, backfilling="conservative", number=(20, 40))


@pytest.mark.random_cases(200)
def test_all_at_once(seed: int) -> None:
    """Everything that can happen in one workload."""
    compare(seed, CAPABILITIES)

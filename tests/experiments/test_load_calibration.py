"""Calibration of sizes to a simulated wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gridsched.errors import WorkloadError
from gridsched.experiments.load_calibration import EXPONENT_BOUND, calibrate_exponent_to_wait, local_waits
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.workloads import HyperErlang, Machine, SizeClass, SizeModel, load_machines, synthesise

# One class on ten nodes of two processors, with a load of about 0.2 to 2.
SERVICE = HyperErlang(1, 1 / 900, 1 / 100, 0.5)
MACHINE = Machine("ten", 10, 2, 1.0, (SizeClass(1, 20, HyperErlang(2, 0.01, 0.01, 1.0), SERVICE),))
OPTIONS: dict[str, Any] = {"duration": 400_000.0, "seeds": range(4)}


def test_waits_are_those_of_the_simulated_replicates() -> None:
    sizes = SizeModel(exponent=0.5)
    waits = local_waits(MACHINE, sizes, **OPTIONS)
    cluster = Cluster(processors=20, processors_per_node=2, node_exclusive=True)
    for seed, wait in enumerate(waits):
        run = simulate(synthesise(MACHINE, seed=seed, duration=400_000.0, sizes=sizes), cluster, "easy")
        assert wait == np.mean(run["start_time"].values - run["submit_time"].values)


@pytest.mark.parametrize("policy", ["easy", "fcfs"])
@pytest.mark.parametrize("target", [500.0, 3000.0])
def test_calibration_meets_the_target(policy: str, target: float) -> None:
    found = calibrate_exponent_to_wait(MACHINE, target, **OPTIONS, policy=policy)
    assert found.wait_time == pytest.approx(target, rel=0.05)
    sizes = SizeModel(exponent=found.exponent)
    assert found.wait_time == local_waits(MACHINE, sizes, **OPTIONS, policy=policy).mean()
    assert found == calibrate_exponent_to_wait(MACHINE, target, **OPTIONS, policy=policy)


def test_a_longer_wait_needs_larger_jobs() -> None:
    long, short = (calibrate_exponent_to_wait(MACHINE, wait, **OPTIONS).exponent for wait in (4000.0, 50.0))
    assert -EXPONENT_BOUND < long < short < EXPONENT_BOUND


@pytest.mark.parametrize(
    ("target", "options", "named"),
    [
        (1e9, {}, "ten: no exponent gives a mean wait of 1,000,000,000 s; sizes inside the classes allow"),
        (0.0, {}, "target wait is 0.0 s, it must be positive"),
        (np.inf, {}, "target wait is inf"),
        (60.0, {"seeds": []}, "there are no seeds"),
    ],
)
def test_targets_that_cannot_be_met_are_named(target: float, options: dict[str, Any], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        calibrate_exponent_to_wait(MACHINE, target, **(OPTIONS | options))


def test_exponent_of_the_heavily_loaded_m1() -> None:
    """M1 of Table 6 waits 254,797 s; sizes that do that load it two and a half times over."""
    machine = load_machines()["M1"]
    target = 254_797.0
    seconds = 14 * 86400.0
    near = local_waits(machine, SizeModel(exponent=-2.115162), duration=seconds, seeds=range(20))
    assert near.mean() == pytest.approx(target, rel=0.01)
    light = local_waits(machine, SizeModel(exponent=0.0), duration=seconds, seeds=range(5))
    assert light.max() < 200_000

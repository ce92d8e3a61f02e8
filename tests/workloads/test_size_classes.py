"""Sizes inside classes, offered loads, calibration, and the machines of the superscheduler paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import WorkloadError
from gridsched.workloads import (
    HyperErlang,
    Machine,
    SizeClass,
    SizeModel,
    calibrate_exponent,
    load_machines,
    offered_load,
)
from gridsched.workloads.size_classes import DEFAULT_EXPONENT, Fill, Weighting
from tests.support.errors import refused

MACHINES = load_machines()
SECOND = HyperErlang(1, 1.0, 1.0, 1.0)


def size_class(low: int, high: int) -> SizeClass:
    return SizeClass(low, high, SECOND, SECOND)


def naive_sizes(model: SizeModel, c: SizeClass, per_node: int) -> dict[int, float]:
    """Probability of each number of processors, one node count after another."""
    exponent = {"uniform": 0.0, "log-uniform": 1.0, "power-law": model.exponent}[model.weighting]
    weights: dict[int, float] = {}
    for nodes in range(1, c.high + 1):
        fitting = [p for p in range(c.low, c.high + 1) if -(-p // per_node) == nodes]
        if not fitting:
            continue
        powers = [p for p in fitting if p & (p - 1) == 0]
        if model.fill == "whole" or (model.fill == "powers" and (nodes > 1 or not powers)):
            fitting = fitting[-1:]
        elif model.fill == "powers":
            fitting = powers
        for p in fitting:
            weights[p] = nodes**-exponent / len(fitting)
    total = sum(weights.values())
    return {p: w / total for p, w in weights.items()}


@given(
    st.integers(1, 60),
    st.integers(0, 60),
    st.integers(1, 9),
    st.sampled_from(["power-law", "log-uniform", "uniform"]),
    st.sampled_from(["powers", "whole", "partial"]),
    st.floats(-3, 3),
)
def test_sizes_are_those_of_the_definition(
    low: int, more: int, per_node: int, weighting: Weighting, fill: Fill, exponent: float
) -> None:
    c, model = size_class(low, low + more), SizeModel(weighting, exponent, fill)
    processors, probability = model.distribution(c, per_node)
    expected = naive_sizes(model, c, per_node)
    assert processors.tolist() == sorted(expected)
    np.testing.assert_allclose(probability, [expected[p] for p in processors.tolist()])


def test_extreme_exponents_choose_the_ends_of_a_class() -> None:
    for exponent, size in ((1e4, 16), (-1e4, 80)):
        processors, probability = SizeModel(exponent=exponent).distribution(size_class(9, 80), 8)
        assert processors[np.argmax(probability)] == size
        assert probability.max() == pytest.approx(1)


def test_offered_load_of_a_machine_by_hand() -> None:
    small = SizeClass(1, 4, HyperErlang(1, 0.1, 0.1, 1.0), HyperErlang(1, 0.5, 0.5, 1.0))
    machine = Machine("two", 4, 4, 1.0, (small,))
    # One job in 10 s, 2 s long, of 1, 2 or 4 processors, on 16 processors.
    assert offered_load(machine) == pytest.approx(0.1 * 2 * 7 / 3 / 16)
    assert offered_load(machine, occupied=True) == pytest.approx(0.1 * 2 * 4 / 16)


def test_machines_are_those_of_table_1() -> None:
    shapes = {name: (m.nodes, m.processors_per_node, m.mhz) for name, m in MACHINES.items()}
    assert shapes == {
        "M1": (192, 16, 375),
        "M2": (305, 4, 332),
        "M3": (144, 8, 375),
        "M4": (8, 16, 1300),
        "M5": (74, 4, 375),
        "M6": (180, 4, 375),
    }
    assert [len(MACHINES[name].classes) for name in ("M1", "M2", "M3")] == [6, 13, 7]


@pytest.mark.parametrize("name", ["M1", "M2", "M3"])
def test_classes_tile_the_machine(name: str) -> None:
    machine = MACHINES[name]
    assert machine.classes[0].low == 1
    assert machine.classes[-1].high == machine.processors
    for left, right in zip(machine.classes, machine.classes[1:], strict=False):
        assert right.low == left.high + 1
        assert left.high % machine.processors_per_node == 0


@pytest.mark.parametrize(("name", "jobs"), [("M1", 132_069), ("M2", 42_339), ("M3", 36_131)])
def test_published_shares_and_job_counts_follow_from_the_arrival_rates(name: str, jobs: int) -> None:
    machine = MACHINES[name]
    rates = machine.arrival_rates
    published = np.array([c.share for c in machine.classes])
    np.testing.assert_allclose(rates / rates.sum(), published, atol=0.0015)
    assert rates.sum() * 184 * 86400 == pytest.approx(jobs, rel=0.011)


@pytest.mark.parametrize("name", ["M1", "M2", "M3"])
@pytest.mark.parametrize("fill", ["powers", "whole", "partial"])
def test_calibration_gives_the_wanted_load(name: str, fill: Fill) -> None:
    machine = MACHINES[name]
    assert machine.utilisation is not None
    exponent = calibrate_exponent(machine, machine.utilisation, fill=fill)
    load = offered_load(machine, SizeModel(exponent=exponent, fill=fill))
    assert load == pytest.approx(machine.utilisation, abs=1e-6)


def test_default_exponent_is_the_calibration_of_m3() -> None:
    assert calibrate_exponent(MACHINES["M3"], 0.79) == pytest.approx(DEFAULT_EXPONENT, abs=0.01)


def test_derived_machines_have_the_rates_of_their_share_of_processors() -> None:
    small, model = MACHINES["M4"], MACHINES["M1"]
    assert [c.high for c in small.classes] == [16, 32, 48, 112]
    np.testing.assert_allclose(small.arrival_rates, model.arrival_rates[:4] / 24)
    assert [c.service for c in small.classes] == [c.service for c in model.classes[:4]]


def machine_file(high: int, order: int) -> str:
    """A file with one machine of four processors and one class."""
    distribution = "rate_1: 1, rate_2: 1, p: 1}"
    return (
        "machines: {A: {nodes: 2, processors_per_node: 2, mhz: 1, size_classes: [{"
        f"processors: [1, {high}], interarrival: {{order: {order}, {distribution}, "
        f"service: {{order: 1, {distribution}}}]}}}}"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("machines: [", "not YAML"),
        ("machines: {A: {nodes: 2}}", "machines.A.processors_per_node: missing"),
        ("machines: {A: {nodes: 2, processors_per_node: 2, mhz: 1, like: B}}", "A is like B"),
        ("machines: {A: {nodes: 2, processors_per_node: 2, mhz: 1}}", "no size class"),
        (machine_file(high=2, order=0), "order is 0"),
        (machine_file(high=9, order=1), "reaches 9 processors"),
    ],
)
def test_mistakes_in_a_machine_file_are_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "machines.yaml"
    path.write_text(content)
    with refused(message, str(path)):
        load_machines(path)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: SizeModel(weighting="zipf"), "weighting is 'zipf'"),  # type: ignore[arg-type]
        (lambda: SizeModel(fill="half"), "fill is 'half'"),  # type: ignore[arg-type]
        (lambda: SizeModel(exponent=np.nan), "exponent is nan"),
        (lambda: size_class(5, 4), r"size class 5-4"),
        (
            lambda: calibrate_exponent(MACHINES["M3"], 3.0),
            r"M3: no exponent gives load 3; .* 0\.7108 to 1\.326",
        ),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        call()

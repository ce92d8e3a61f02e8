"""Synthetic workloads: reproducible, stable under extension, and like their models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import WorkloadError
from gridsched.workloads import (
    LublinModel,
    SizeModel,
    Workload,
    calibrate_exponent,
    load_machines,
    offered_load,
    synthesise,
)
from gridsched.workloads.estimates import Modal, Multiple
from tests.workloads.test_lublin import KINDS, load

MACHINES = load_machines()
COLUMNS = ("submit_time", "run_time", "requested_processors")
GENERATORS: dict[str, Callable[..., Workload]] = {
    **{name: partial(synthesise, machine) for name, machine in MACHINES.items()},
    **{kind: LublinModel.published(128, kind).synthesise for kind in KINDS},
}
ONE_OF_EACH = pytest.mark.parametrize("draw", [GENERATORS["M1"], GENERATORS["all"]])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(GENERATORS)), st.integers(0, 2**32), st.integers(1, 3000))
def test_columns_are_whole_sorted_and_fit_the_machine(name: str, seed: int, jobs: int) -> None:
    draw = GENERATORS[name]
    drawn = draw(seed=seed, jobs=jobs)
    assert len(drawn) == jobs
    assert np.all(np.diff(drawn.submit_time, prepend=0) >= 0)
    assert drawn.run_time.min() >= 1
    assert drawn.processors_available is not None
    assert np.all((drawn.processors >= 1) & (drawn.processors <= drawn.processors_available))
    assert np.all(drawn.requested_time >= drawn.run_time)
    assert all(column.dtype == np.int64 for column in drawn.columns.values())
    assert drawn.equals(draw(seed=seed, jobs=jobs))
    assert drawn.checksum != draw(seed=seed + 1, jobs=jobs).checksum


@ONE_OF_EACH
def test_a_longer_workload_begins_with_the_shorter_one(draw: Callable[..., Workload]) -> None:
    short = draw(seed=4, jobs=300)
    for longer in (draw(seed=4, jobs=9000), draw(seed=4, duration=90 * 86_400.0)):
        assert len(longer) > 300
        for name in COLUMNS:
            assert np.array_equal(getattr(longer, name)[:300], getattr(short, name))


@ONE_OF_EACH
def test_duration_cuts_by_time(draw: Callable[..., Workload]) -> None:
    drawn, more = (draw(seed=2, duration=days * 86_400.0) for days in (14, 30))
    assert drawn.submit_time[-1] < 14 * 86_400 <= more.submit_time[len(drawn)]


@ONE_OF_EACH
def test_load_scale_compresses_arrivals_only(draw: Callable[..., Workload]) -> None:
    plain, scaled = (draw(seed=1, jobs=20_000, load_scale=scale) for scale in (1.0, 2.0))
    assert scaled.submit_time[-1] == pytest.approx(plain.submit_time[-1] / 2, rel=0.05)
    for name in COLUMNS[1:]:
        assert np.array_equal(getattr(scaled, name), getattr(plain, name))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "either jobs or duration"),
        ({"jobs": 1, "duration": 1.0}, "either jobs or duration"),
        ({"jobs": 0}, "jobs is 0"),
        ({"jobs": 1.5}, "jobs is 1.5"),
        ({"jobs": 5, "seed": -1}, "seed is -1"),
        ({"jobs": 5, "seed": 0.5}, "seed is 0.5"),
        ({"duration": -1.0}, "duration is -1"),
        ({"duration": 1e-9}, "no job arrives"),
        ({"jobs": 5, "load_scale": 0.0}, "load_scale"),
    ],
)
@ONE_OF_EACH
def test_bad_options_are_named(draw: Callable[..., Workload], options: dict[str, Any], named: str) -> None:
    with pytest.raises(WorkloadError, match=f"(M1|Lublin model): .*{named}"):
        draw(**{"seed": 1, **options})


@ONE_OF_EACH
def test_whole_numbers_may_be_floats(draw: Callable[..., Workload]) -> None:
    assert draw(seed=1.0, jobs=1e3).equals(draw(seed=1, jobs=1000))


def test_a_further_class_leaves_the_others_as_they_are() -> None:
    machine = MACHINES["M3"]
    fewer = replace(machine, classes=machine.classes[:-1])
    all_classes = synthesise(machine, seed=9, duration=30 * 86_400.0)
    without = synthesise(fewer, seed=9, duration=30 * 86_400.0)
    kept = all_classes.processors <= fewer.classes[-1].high
    for name in COLUMNS:
        assert np.array_equal(getattr(all_classes, name)[kept], getattr(without, name))


def test_options_of_one_kind_leave_other_columns_as_they_are() -> None:
    plain = synthesise(MACHINES["M3"], seed=9, jobs=2000)
    other = synthesise(
        MACHINES["M3"], seed=9, jobs=2000, sizes=SizeModel("uniform", fill="partial"), estimates=Multiple(2)
    )
    assert np.array_equal(plain.submit_time, other.submit_time)
    assert np.array_equal(plain.run_time, other.run_time)
    assert not np.array_equal(plain.processors, other.processors)
    assert np.array_equal(other.requested_time, 2 * other.run_time)
    assert plain.checksum != other.checksum


def test_machines_with_the_same_model_have_streams_of_their_own() -> None:
    twin = replace(MACHINES["M3"], name="twin")
    first = synthesise(MACHINES["M3"], seed=1, jobs=100)
    assert not np.array_equal(first.run_time, synthesise(twin, seed=1, jobs=100).run_time)


def test_class_shares_of_m3_are_those_of_table_4() -> None:
    machine = MACHINES["M3"]
    drawn = synthesise(machine, seed=5, jobs=400_000, estimates=Multiple())
    bounds = [c.high for c in machine.classes]
    shares = np.bincount(np.searchsorted(bounds, drawn.processors)) / len(drawn)
    published = np.array([c.share for c in machine.classes], np.float64)
    np.testing.assert_allclose(shares, published, atol=0.005)


def test_run_times_of_a_class_have_its_moments() -> None:
    machine = MACHINES["M3"]
    drawn = synthesise(machine, seed=6, jobs=300_000, estimates=Multiple())
    for c in machine.classes:
        run = drawn.run_time[(drawn.processors >= c.low) & (drawn.processors <= c.high)]
        # Rounding up adds half a second on average.
        assert abs(run.mean() - 0.5 - c.service.mean) < 4 * c.service.cv * c.service.mean / np.sqrt(len(run))


@pytest.mark.parametrize("name", ["M1", "M3"])
def test_a_long_workload_has_the_calibrated_load(name: str) -> None:
    machine = MACHINES[name]
    sizes = SizeModel(exponent=calibrate_exponent(machine, 0.8))
    assert offered_load(machine, sizes) == pytest.approx(0.8)
    drawn = synthesise(machine, seed=8, jobs=1_000_000, sizes=sizes, estimates=Multiple())
    assert load(drawn) == pytest.approx(0.8, rel=0.04)


def test_cut_run_times_are_counted() -> None:
    drawn = synthesise(MACHINES["M3"], seed=3, jobs=5000, estimates=Modal(max_estimate=12 * 3600))
    cut = int(np.count_nonzero(synthesise(MACHINES["M3"], seed=3, jobs=5000).run_time > 12 * 3600))
    assert drawn.repaired["run time cut at the longest estimate"] == cut > 0
    assert drawn.run_time.max() == 12 * 3600

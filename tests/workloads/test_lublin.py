"""The Lublin-Feitelson model: its definition, and two logs that the authors' program made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gridsched.errors import WorkloadError
from gridsched.traces import read_swf
from gridsched.workloads import LublinModel, Workload
from gridsched.workloads.estimates import Multiple
from gridsched.workloads.lublin import LONGEST_RUN_TIME, Kind

KINDS: tuple[Kind, ...] = ("batch", "interactive", "all")


def test_shares_of_sizes() -> None:
    model = LublinModel.published(128)
    size = model.sample(200_000, seed=1).processors
    # A power-of-two size 2**k for k from 2 to 4: one of the 3.8 units of the lower stage.
    power = model.power_of_two * 0.875 / 3.8
    for k in (3, 4):
        other = (1 - model.serial - model.power_of_two) * 0.875 / 3.8 * np.log2((2**k + 0.5) / (2**k - 0.5))
        assert np.mean(size == 2**k) == pytest.approx(power + other, abs=4 * np.sqrt(0.15 * 0.85 / len(size)))
    assert np.mean(size == 1) == pytest.approx(model.serial, abs=0.004)
    assert np.mean(size > 2**5.5) == pytest.approx((1 - model.serial) * 0.125 * 0.75, abs=0.004)


@pytest.mark.parametrize("kind", KINDS)
def test_run_times_are_hyper_gamma_given_the_size(kind: Kind) -> None:
    """Against draws by rejection, as the model is defined."""
    model = replace(
        LublinModel.published(64, kind), serial=0.5, power_of_two=0.5, size_low=6.0, size_medium=6.0
    )
    drawn = model.sample(60_000, seed=3)
    rng = np.random.default_rng(5)
    for size in (1, 64):
        short = rng.random(200_000) < float(np.clip(model.slope * size + model.intercept, 0, 1))
        first = rng.gamma(model.run_shape_1, model.run_scale_1, 200_000)
        expected = np.where(short, first, rng.gamma(model.run_shape_2, model.run_scale_2, 200_000))
        found = np.log(drawn.run_time[drawn.processors == size])
        assert stats.ks_2samp(found, expected[expected <= LONGEST_RUN_TIME]).pvalue > 1e-3


def test_probability_of_short_jobs_can_follow_the_binary_logarithm() -> None:
    model = LublinModel.published(1024)
    assert model.short_probability(np.array([1, 100, 1000])) == pytest.approx([0.6956, 0.3986, 0])
    logarithmic = replace(model, dependence="log2", slope=-0.05)
    assert logarithmic.short_probability(np.array([1, 1024])) == pytest.approx([0.6986, 0.1986])


def naive_arrivals(gaps: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> list[float]:
    """Pay for every gap with the seconds of half hours that count more or less, one job after another."""
    now, left, times = 0.0, 1800.0, []
    for gap in gaps.tolist():
        weight = weights[int(now / 1800 + 1e-9) % 48]
        while gap > left * weight:
            gap -= left * weight
            now, left = now + left, 1800.0
            weight = weights[int(now / 1800 + 1e-9) % 48]
        now, left = now + gap / weight, left - gap / weight
        times.append(now)
    return times


def test_arrivals_follow_the_daily_cycle() -> None:
    model = LublinModel.published(128)
    flat = replace(model, cycle_shape=1.0, cycle_scale=1e9)
    gaps = np.diff(flat.sample(400, seed=6).submit_time, prepend=0.0)
    expected = naive_arrivals(gaps, model.daily_cycle)
    np.testing.assert_allclose(model.sample(400, seed=6).submit_time, expected, rtol=1e-6)


def test_daily_cycle_is_low_before_dawn_and_high_after_noon() -> None:
    for kind in KINDS:
        cycle = LublinModel.published(128, kind).daily_cycle
        assert cycle.mean() == pytest.approx(1)
        assert cycle.argmin() in (9, 10)
        assert 22 <= cycle.argmax() <= 28


@pytest.mark.parametrize("processors", [256, 1024])
def test_statistics_are_those_of_the_authors_program(archive_mirror: Path, processors: int) -> None:
    """The archive's files have the parameters of logs without kinds."""
    log = read_swf(archive_mirror / f"lublin_{processors}-synthetic.swf.gz")
    model = LublinModel.published(processors, "all")
    drawn = model.synthesise(seed=1, jobs=200_000, estimates=Multiple())
    for size in 2 ** np.arange(processors.bit_length()):
        error = np.sqrt(np.mean(drawn.processors == size) / len(log))
        assert abs(np.mean(log.processors == size) - np.mean(drawn.processors == size)) < 4 * error
    assert stats.ks_2samp(log.processors, drawn.processors).pvalue > 1e-3
    wide = [w.run_time[w.processors > 64] for w in (log, drawn)]
    narrow = [w.run_time[w.processors <= 64] for w in (log, drawn)]
    for found, expected in (wide, narrow):
        assert stats.ks_2samp(found, expected).pvalue > 1e-3
    assert log.run_time.mean() == pytest.approx(drawn.run_time.mean(), rel=0.03)
    assert stats.ks_2samp(np.diff(log.submit_time), np.diff(drawn.submit_time)).statistic < 0.02


@pytest.mark.parametrize("processors", [256, 1024])
def test_daily_cycle_is_that_of_the_authors_program(archive_mirror: Path, processors: int) -> None:
    """After the half second a job by which the program's cycle moves is added again."""
    log = read_swf(archive_mirror / f"lublin_{processors}-synthetic.swf.gz")
    model = LublinModel.published(processors, "all")
    expected = model.sample(400_000, seed=1).submit_time % 86400

    def distance(submit_time: np.ndarray[Any, Any]) -> float:
        return float(stats.ks_2samp(submit_time % 86400, expected).statistic)

    # Arrivals come in bursts: logs of the model itself tell how far one of this length may be off.
    own = [distance(model.sample(len(log), seed=seed).submit_time) for seed in range(20)]
    assert distance(log.submit_time + 0.5 * np.arange(len(log))) <= max(own)
    assert distance(log.submit_time) > max(own) or processors == 256


def load(workload: Workload) -> float:
    assert workload.processors_available is not None
    work = float(workload.processors @ workload.run_time.astype(float))
    return work / workload.processors_available / float(workload.submit_time[-1])


def test_offered_load_is_near_that_of_the_authors_program(archive_mirror: Path) -> None:
    log = read_swf(archive_mirror / "lublin_1024-synthetic.swf.gz")
    drawn = LublinModel.published(1024, "all").synthesise(seed=1, jobs=200_000, estimates=Multiple())
    assert load(drawn) == pytest.approx(load(log), rel=0.1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"processors": 0}, "processors is 0"),
        ({"processors": 128.5}, "processors is 128.5"),
        ({"serial": 0.7}, "shares of serial"),
        ({"size_share": 2.0}, "size_share is 2"),
        ({"size_low": 6.0}, "must rise"),
        ({"size_high": 8.0}, "too much for 128 processors"),
        ({"run_scale_1": 0.0}, "run_scale_1 is 0"),
        ({"slope": np.nan}, "slope is nan"),
        ({"dependence": "sqrt"}, "dependence is .sqrt."),
    ],
)
def test_bad_parameters_are_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(WorkloadError, match=f"Lublin model: .*{named}"):
        replace(LublinModel.published(128), **change)


@pytest.mark.parametrize(("processors", "kind"), [(9, "batch"), (11, "interactive"), (9, "all")])
def test_machines_too_small_for_the_published_sizes_are_named(processors: int, kind: Kind) -> None:
    with pytest.raises(WorkloadError, match="machine is too small"):
        LublinModel.published(processors, kind)

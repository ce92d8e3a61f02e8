"""Intervals over replicates against plain Python, examples worked out by hand, and simulated coverage."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import fmean, stdev

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from gridsched.errors import ConfigurationError
from gridsched.replication import (
    Interval,
    difference_interval,
    mean_interval,
    ratio_interval,
    sign,
    times_interval,
)

NAN = math.nan
# The 97.5 % quantiles of Student's t, from the usual tables.
T1, T2 = 12.706205, 4.302653

# Whole numbers up to a scale: exact in fractions, and with ties and equal replicates.
NUMBERS = st.integers(0, 50) | st.integers(0, 10**6)


def numbers(interval: Interval) -> tuple[float, float, float]:
    """The three numbers of an interval of one case."""
    return float(interval.mean), float(interval.low), float(interval.high)


def near(expected: tuple[float, float, float]) -> object:
    return pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)


def naive_mean(values: list[float], confidence: float) -> tuple[float, float, float]:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return NAN, NAN, NAN
    centre = fmean(known)
    if len(known) < 2:
        return centre, NAN, NAN
    half = float(stats.t.ppf((1 + confidence) / 2, len(known) - 1)) * stdev(known) / math.sqrt(len(known))
    return centre, centre - half, centre + half


def naive_ratio(pairs: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Jackknife in exact fractions; the means without one replicate must not be zero."""
    n = len(pairs)
    total, reference = sum(x for x, _ in pairs), sum(y for _, y in pairs)
    without = [Fraction(total - x, reference - y) for x, y in pairs]
    centre = sum(without, Fraction(0)) / n
    error = math.sqrt(Fraction(n - 1, n) * sum((ratio - centre) ** 2 for ratio in without))
    half = float(stats.t.ppf(0.975, n - 1)) * error
    return total / reference, total / reference - half, total / reference + half


@given(
    rows=st.integers(0, 8).flatmap(
        lambda n: st.lists(st.lists(NUMBERS | st.just(NAN), min_size=n, max_size=n), min_size=1, max_size=3)
    ),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_means_equal_the_textbook_formula(rows: list[list[float]], confidence: float) -> None:
    interval = mean_interval(rows, confidence, signed=True)
    assert interval.mean.shape == (len(rows),)
    for row, *found in zip(rows, *interval, strict=True):
        assert tuple(found) == near(naive_mean(row, confidence))


@given(pairs=st.lists(st.tuples(NUMBERS | st.just(NAN), NUMBERS | st.just(NAN)), min_size=1, max_size=8))
def test_differences_are_paired(pairs: list[tuple[float, float]]) -> None:
    values, reference = map(list, zip(*pairs, strict=True))
    expected = naive_mean([x - y for x, y in pairs], 0.95)
    assert numbers(difference_interval(values, reference)) == near(expected)


@given(pairs=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=8), absent=st.integers(0, 2))
def test_ratios_equal_a_jackknife_in_fractions(pairs: list[tuple[int, int]], absent: int) -> None:
    reference = sum(y for _, y in pairs)
    assume(all(y < reference for _, y in pairs))
    values = [float(x) for x, _ in pairs] + [NAN, 7.0][:absent]
    others = [float(y) for _, y in pairs] + [5.0, NAN][:absent]
    assert numbers(ratio_interval(values, others, signed=True)) == near(naive_ratio(pairs))


@given(
    pairs=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=2, max_size=8),
    absent=st.integers(0, 2),
)
def test_times_equal_a_jackknife_of_logarithms(pairs: list[tuple[int, int]], absent: int) -> None:
    n, total, reference = len(pairs), sum(x for x, _ in pairs), sum(y for _, y in pairs)
    without = [math.log((total - x) / (reference - y)) for x, y in pairs]
    error = math.sqrt((n - 1) / n * sum((ratio - fmean(without)) ** 2 for ratio in without))
    spread = math.exp(float(stats.t.ppf(0.975, n - 1)) * error)
    values = [float(x) for x, _ in pairs] + [NAN, 7.0][:absent]
    others = [float(y) for _, y in pairs] + [5.0, NAN][:absent]
    times = total / reference
    assert numbers(times_interval(values, others)) == near((times, times / spread, times * spread))
    back = times_interval(others, values)
    assert numbers(back) == near((1 / times, 1 / (times * spread), spread / times))


def test_times_that_are_not_positive_have_no_bounds() -> None:
    assert numbers(times_interval([3, 0], [1, 1])) == near((1.5, NAN, NAN))
    assert numbers(times_interval([3, 3], [1, 0])) == near((6, NAN, NAN))
    assert numbers(times_interval([3, 3], [0, 0])) == near((NAN, NAN, NAN))
    assert numbers(times_interval([6], [3])) == near((2, NAN, NAN))


@given(rows=st.lists(st.floats(0, 1e6), min_size=2, max_size=8))
def test_what_cannot_be_negative_has_no_interval_below_zero(rows: list[float]) -> None:
    plain, bounded = mean_interval(rows, signed=True), mean_interval(rows)
    assert bounded.mean == plain.mean
    if plain.low >= 0:
        assert numbers(bounded) == numbers(plain)
    elif sum(value > 0 for value in rows) < 2:
        assert numbers(bounded) == near((float(plain.mean), NAN, NAN))
    else:
        assert numbers(bounded) == near(numbers(times_interval(rows, [1.0] * len(rows))))
        assert not bounded.low < 0
    mean, low, high = numbers(bounded)
    assert numbers(ratio_interval(rows, [2.0] * len(rows))) == near((mean / 2, low / 2, high / 2))


def test_negative_values_keep_a_symmetric_interval() -> None:
    for rows in ([-1.0, 0.0, 5.0], [-3.0, -1.0]):
        assert numbers(mean_interval(rows)) == numbers(mean_interval(rows, signed=True))


def test_intervals_worked_out_by_hand() -> None:
    # Mean 4, deviation 2, three replicates.
    half = T2 * 2 / math.sqrt(3)
    assert numbers(mean_interval([2, 4, 6], signed=True)) == near((4, 4 - half, 4 + half))
    # Differences 1 and 3: deviation sqrt(2), half width t * 1.
    assert numbers(difference_interval([11, 23], [10, 20])) == near((2, 2 - T1, 2 + T1))
    # Ratios 4/4 and 2/1 without one of the two: error sqrt(1/2 * 1/2).
    assert numbers(ratio_interval([2, 4], [1, 4], signed=True)) == near((1.2, 1.2 - T1 / 2, 1.2 + T1 / 2))


@given(
    value=st.floats(0.1, 1e9),
    reference=st.floats(0.1, 1e9),
    replicates=st.integers(2, 20),
    absent=st.integers(0, 3),
)
def test_equal_replicates_leave_no_doubt(
    value: float, reference: float, replicates: int, absent: int
) -> None:
    values = [value] * replicates + [NAN] * absent
    others = [reference] * replicates + [NAN] * absent
    assert numbers(mean_interval(values)) == (value, value, value)
    assert numbers(difference_interval(values, others)) == (value - reference,) * 3
    assert numbers(ratio_interval(values, others)) == (value / reference,) * 3


@given(st.lists(st.floats(0.1, 1e9), min_size=2, max_size=20))
def test_a_scheme_is_no_better_than_itself(values: list[float]) -> None:
    assert numbers(difference_interval(values, values)) == (0, 0, 0)
    assert numbers(ratio_interval(values, values)) == (1, 1, 1)


def test_too_few_replicates_have_no_bounds() -> None:
    assert numbers(mean_interval([5, NAN])) == near((5, NAN, NAN))
    assert numbers(mean_interval([NAN, NAN])) == near((NAN, NAN, NAN))
    assert numbers(mean_interval([])) == near((NAN, NAN, NAN))
    # Replicates that only one side has do not count.
    assert numbers(difference_interval([5, 6, NAN], [3, NAN, 4])) == near((2, NAN, NAN))
    assert numbers(ratio_interval([6, 6, NAN], [3, NAN, 4])) == near((2, NAN, NAN))
    assert numbers(ratio_interval([6, NAN], [NAN, 4])) == near((NAN, NAN, NAN))


def test_ratios_to_zero_are_unknown() -> None:
    assert numbers(ratio_interval([1, 2], [0, 0])) == near((NAN, NAN, NAN))
    assert numbers(ratio_interval([1, 2], [0, 3])) == near((1, NAN, NAN))
    assert numbers(ratio_interval([0, 0], [2, 3])) == (0, 0, 0)


def test_axes_broadcast_and_replicates_must_match() -> None:
    schemes = np.arange(24.0).reshape(2, 3, 4)
    for compare in (difference_interval, ratio_interval):
        whole = compare(schemes, schemes[:, :1])
        for scenario in range(2):
            for scheme in range(3):
                alone = compare(schemes[scenario, scheme], schemes[scenario, 0])
                assert [part[scenario, scheme] for part in whole] == list(alone)
        with pytest.raises(ConfigurationError, match="4 of the values and 1 of the reference"):
            compare(schemes, schemes[..., :1])
        with pytest.raises(ConfigurationError, match="do not broadcast"):
            compare(schemes, np.ones((5, 4)))


def test_xarray_applies_intervals_along_a_named_dimension() -> None:
    study = xr.DataArray(np.arange(10.0, 16.0).reshape(3, 2), dims=("replicate", "scheme"))
    mean, low, high = xr.apply_ufunc(
        mean_interval, study, input_core_dims=[["replicate"]], output_core_dims=[[], [], []]
    )
    half = T2 * 2 / math.sqrt(3)
    assert mean.dims == ("scheme",)
    assert mean.values.tolist() == [12, 13]
    assert low.values == pytest.approx([12 - half, 13 - half])
    assert high.values == pytest.approx([12 + half, 13 + half])


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigurationError, match="values: a single number"):
        mean_interval(3.0)
    with pytest.raises(ConfigurationError, match="reference: 1 infinite replicates"):
        ratio_interval([1, 2], [math.inf, 1])
    for confidence in (0.0, 1.0, 95.0):
        with pytest.raises(ConfigurationError, match="between 0 and 1"):
            mean_interval([1, 2], confidence)


def test_signs_need_an_interval_on_one_side() -> None:
    low = np.array([1.0, -3.0, -1.0, 0.0, NAN, 0.0, 2.0])
    high = np.array([2.0, -1.0, 1.0, 1.0, NAN, 0.0, 2.0])
    interval = Interval((low + high) / 2, low, high)
    assert sign(interval).tolist() == [1, -1, 0, 0, 0, 0, 1]
    assert sign(interval, against=1.5).tolist() == [0, -1, -1, -1, 0, -1, 1]


@pytest.mark.parametrize("replicates", [5, 20])
def test_intervals_cover_the_truth_as_often_as_they_say(replicates: int) -> None:
    """Skewed values with a common factor, as waits under two schemes of the same workloads have."""
    draws = np.random.default_rng(8)
    shape = (4000, replicates)
    load = draws.gamma(8, 1 / 8, shape)
    reference = 100 * load * draws.gamma(20, 1 / 20, shape)
    values = 40 * load * draws.gamma(20, 1 / 20, shape)

    def coverage(interval: Interval, truth: float) -> float:
        return float(((interval.low <= truth) & (truth <= interval.high)).mean())

    assert 0.91 < coverage(mean_interval(reference), 100) < 0.97
    assert 0.91 < coverage(difference_interval(values, reference), -60) < 0.97
    assert 0.91 < coverage(ratio_interval(values, reference), 0.4) < 0.97
    normal = mean_interval(draws.normal(3, 1, shape), confidence=0.8)
    assert coverage(normal, 3) == pytest.approx(0.8, abs=0.025)


def test_pairing_narrows_ratios() -> None:
    draws = np.random.default_rng(2)
    load = draws.gamma(4, 1, 20)
    reference, values = load * draws.normal(10, 0.1, 20), load * draws.normal(5, 0.1, 20)
    paired, shuffled = ratio_interval(values, reference), ratio_interval(values, reference[::-1])
    assert paired.high - paired.low < 0.2 * (shuffled.high - shuffled.low)

"""Estimates, comparisons and tables of `gridsched.inference`: what they promise whatever the estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.inference import Estimate, serial

positive = st.floats(0.1, 1e6)
units = arrays(np.float64, st.tuples(st.integers(2, 4), st.integers(5, 12)), elements=positive)


def draws(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).gamma(9.0, 100 / 9, shape)


# --- estimates ------------------------------------------------------------------------------------


def test_values_are_plain_means_differences_and_ratios() -> None:
    left, right = draws(1, 3, 10), draws(2, 10)
    assert inference.mean(left).value == pytest.approx(left.mean(axis=1))
    assert inference.difference(left, right).value == pytest.approx(left.mean(axis=1) - right.mean())
    assert inference.ratio(left, right).value == pytest.approx(left.mean(axis=1) / right.mean())


def test_units_count_by_their_weights() -> None:
    values, weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([5.0, 1.0, 1.0, 1.0, 0.0])
    found = inference.mean(values, weights)
    assert found.value == pytest.approx(np.average(values, weights=weights))
    assert found.number == 4  # a unit without jobs is none


def test_only_units_that_both_sides_have_count() -> None:
    left, right = draws(3, 10), draws(4, 10)
    left[2], right[7] = np.nan, np.nan
    both = np.delete(np.stack([left, right]), [2, 7], axis=1)
    for paired in (inference.difference, inference.ratio):
        found, wanted = paired(left, right), paired(*both)
        assert found.number == 8
        assert float(found.low) == pytest.approx(float(wanted.low))
        assert float(found.high) == pytest.approx(float(wanted.high))


@pytest.mark.parametrize("serial", [False, True])
def test_intervals_hold_the_estimate_and_widen_with_confidence(serial: bool) -> None:
    left, right = draws(5, 40, 64), draws(6, 40, 64)
    for function, given_units in (
        (inference.mean, (left,)),
        (inference.difference, (left, right)),
        (inference.ratio, (left, right)),
    ):
        narrow, wide = (function(*given_units, serial=serial, confidence=level) for level in (0.9, 0.99))
        shown = narrow.reason == ""
        assert shown.sum() >= 30
        for found in (narrow, wide):
            assert (found.low <= found.value)[shown].all()
            assert (found.value <= found.high)[shown].all()
            assert np.isnan(found.low[~shown]).all()
        assert (wide.high - wide.low > narrow.high - narrow.low)[shown].all()


def test_what_cannot_be_negative_has_no_bound_below_0() -> None:
    values = np.random.default_rng(7).exponential(1.0, (500, 5)) ** 3
    found = inference.mean(values)
    shown = found.reason == ""
    assert (found.low[shown] >= 0).all()


def test_a_share_has_no_bound_above_the_whole() -> None:
    values = np.random.default_rng(7).uniform(0.2, 1.0, (500, 5))
    free, cut = inference.mean(values), inference.mean(values, largest=1.0)
    assert (free.high > 1).any()
    np.testing.assert_array_equal(cut.high, np.minimum(free.high, 1.0))
    np.testing.assert_array_equal((cut.value, cut.low), (free.value, free.low))


@pytest.mark.parametrize(
    ("values", "reference", "reason"),
    [
        ([3.0, 4.0, 5.0], [1.0, 1.5, 2.0], "3 replicates; at least 5 are needed"),
        ([np.nan] * 6, [1.0] * 6, "no replicates"),
        ([1.0, 2.0, 3.0, 4.0, 5.0], [0.0] * 5, "the reference is 0"),
        ([0.0, 0.0, 0.0, 0.0, 5.0], [1.0, 2.0, 1.0, 2.0, 3.0], "too few replicates above 0"),
    ],
)
def test_why_there_is_no_interval(values: list[float], reference: list[float], reason: str) -> None:
    found = inference.ratio(values, reference)
    assert found.reason == reason
    assert np.isnan([found.low, found.high]).all()


def test_identical_units_have_the_value_as_bounds_and_say_so() -> None:
    same = np.full(6, 0.1)
    for found, reason in (
        (inference.mean(same), "identical"),
        (inference.ratio(draws(1, 6), draws(1, 6)), "identical"),
        (inference.difference(draws(1, 6), draws(1, 6)), "identical"),
        (inference.difference(same * 3, same), "the same difference"),
        (inference.ratio(draws(1, 6) / 2, draws(1, 6)), "the same ratio"),
        (inference.ratio(np.zeros(6), np.ones(6)), "the same ratio"),
    ):
        assert found.reason == f"{reason} in all replicates"
        assert found.low == found.value == found.high


def test_copies_of_one_run_say_nothing_of_a_difference() -> None:
    found = inference.compare([[3.0] * 6], [2.0] * 6)
    assert found.significant.tolist() == [0]
    assert np.isnan(found.probability).all()


@pytest.mark.parametrize(
    ("given_units", "message"),
    [
        (((1.0,)), "last axis"),
        (((np.array([1.0, np.inf]),)), "infinite"),
        (((np.ones(3), np.array([1.0, -1.0, 2.0]))), "not negative"),
        (((np.ones(3), np.ones(4))), "same units"),
        (((np.ones((2, 3)), np.ones((4, 3)))), "broadcast"),
    ],
)
def test_errors_say_what_is_wrong(given_units: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        inference.mean(*given_units)


@given(units, st.integers(-3, 3))
def test_estimates_scale_with_the_unit_of_measurement(values: np.ndarray, power: int) -> None:
    factor = 2.0**power
    for one, other in ((inference.mean(values), inference.mean(values * factor)),):
        assert (one.reason == other.reason).all()
        for bound in ("value", "low", "high"):
            assert getattr(other, bound) == pytest.approx(getattr(one, bound) * factor, nan_ok=True)


@given(units)
def test_a_ratio_turned_around_has_the_inverse_bounds(values: np.ndarray) -> None:
    one, other = inference.ratio(values[0], values[1]), inference.ratio(values[1], values[0])
    assert one.reason == other.reason
    assert float(one.low) == pytest.approx(float(1 / other.high), nan_ok=True)
    assert float(one.high) == pytest.approx(float(1 / other.low), nan_ok=True)


# --- against formulas ------------------------------------------------------------------------------


def reach_of(number: int) -> float:
    return float(stats.t.ppf(0.975, number - 2))


def pseudo_values(*sides: np.ndarray) -> np.ndarray:
    """Jackknife pseudo-values of the logarithm of a mean, or of a ratio of means."""

    def logarithm(kept: list[int]) -> float:
        return float(np.log([side[kept].mean() for side in sides]) @ [1, -1][: len(sides)])

    everyone = list(range(len(sides[0])))
    rest = [logarithm([k for k in everyone if k != left_out]) for left_out in everyone]
    return len(everyone) * logarithm(everyone) - (len(everyone) - 1) * np.array(rest)


def test_intervals_of_means_and_ratios_by_the_jackknife() -> None:
    left, right = draws(21, 10), draws(22, 10)
    signed = inference.mean(left, signed=True)
    half = reach_of(10) * left.std(ddof=1) / np.sqrt(10)
    assert [signed.low, signed.high] == pytest.approx([left.mean() - half, left.mean() + half])
    for found, sides in (
        (inference.mean(left), (left,)),
        (inference.ratio(left, right), (left, right)),
    ):
        half = reach_of(10) * pseudo_values(*sides).std(ddof=1) / np.sqrt(10)
        assert [found.low, found.high] == pytest.approx(found.value * np.exp([-half, half]))


def test_intervals_of_differences_by_all_directions() -> None:
    """Both logarithms lie in an ellipse; the bounds are the extremes of the difference on its edge."""
    for seed in range(10):
        power = 1 + seed // 5  # units that scatter little, and much
        left, right = draws(seed + 30, 10) ** power * (seed + 1), draws(seed + 40, 10) ** power
        spread = np.linalg.cholesky(np.cov([pseudo_values(left), pseudo_values(right)]) / 10)
        angle = np.linspace(0, 2 * np.pi, 1_000_001)
        off = reach_of(10) * spread @ [np.cos(angle), np.sin(angle)]
        first, second = np.exp(off) * [[left.mean()], [right.mean()]]
        found = inference.difference(left, right)
        wanted = [(first - second).min(), (first - second).max()]
        assert [found.low, found.high] == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize(
    ("points", "correlation"),
    [
        ([1.0, 1.0, -1.0, -1.0], 0.25 + (1 + 4 * 0.25) / 4),
        ([2.0, 2.0, 2.0, 0.0, -2.0, -2.0, -2.0, 0.0], 0.99),  # the most that is taken for it
        ([1.0, -1.0, 1.0, -1.0], 0.0),
    ],
)
def test_dependence_of_blocks_as_by_hand(points: list[float], correlation: float) -> None:
    found = serial.dependence(np.array(points), np.ones(len(points), np.bool_))
    assert found == pytest.approx((1 + correlation) / (1 - correlation))


@pytest.mark.parametrize(("fine", "growth"), [(0.5, 1.0), (1.0, 1.0), (3.0, 1 + serial.SHORTAGE * 2 / 20)])
def test_few_blocks_that_depend_on_each_other_widen_the_interval(fine: float, growth: float) -> None:
    points = np.tile([1.0, -1.0], 8)
    of_points = serial.corrected(
        points, np.ones(16, np.bool_), np.array(fine), np.array(20), relaxations=(None, None)
    )
    assert of_points[0] == pytest.approx(growth)
    assert of_points[1] == ""


@given(st.integers(0, 300), st.integers(1, 40))
def test_blocks_are_as_long_as_each_other(length: int, size: int) -> None:
    lengths = np.diff([*serial.in_blocks(length, size), length])
    assert len(lengths) == (min(length, size) or 1)
    assert lengths.max() - lengths.min() <= 1


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ratio", "difference"])
@given(units)
def test_interval_and_significance_never_contradict_each_other(
    form: inference.Form, values: np.ndarray
) -> None:
    found = inference.compare(values[1:], values[0], form)
    neutral = 1.0 if form == "ratio" else 0.0
    shown = found.reason == ""
    outside = (found.low > neutral).astype(int) - (found.high < neutral)
    assert found.significant[shown].tolist() == outside[shown].tolist()
    assert not found.significant[~shown].any()
    assert ((found.probability < 0.05) == (found.significant != 0))[shown].all()


def test_more_comparisons_widen_the_intervals() -> None:
    left, right = draws(8, 4, 10), draws(9, 10)
    few, many = (inference.compare(left, right, comparisons=count) for count in (4, 40))
    assert (many.high / many.low > few.high / few.low).all()
    assert inference.compare(left, right).low.tolist() == few.low.tolist()


@pytest.mark.parametrize("form", ["ratio", "difference"])
@given(units)
def test_pairs_are_antisymmetric_and_two_are_one_comparison(form: inference.Form, values: np.ndarray) -> None:
    pairs = inference.compare_pairs(values, form)
    assert (pairs.significant == -pairs.significant.T).all()
    assert not np.diag(pairs.significant).any()
    inverse = 1 / pairs.value if form == "ratio" else -pairs.value
    assert pytest.approx(inverse) == pairs.value.T
    alone = inference.compare(values[:1], values[1], form)
    two = inference.compare_pairs(values[:2], form)
    assert two.significant[0, 1] == alone.significant[0]
    assert two.probability[0, 1] == pytest.approx(alone.probability[0], nan_ok=True)


def test_best_are_those_that_do_not_differ_from_the_lowest() -> None:
    base = draws(10, 10)
    values = np.stack([base * 3, base, base + np.tile([1, -1], 5), base * 2])
    assert sorted(inference.best(values).tolist()) == [1, 2]
    assert inference.best(np.full((2, 6), np.nan)).tolist() == []


def test_holm_as_by_hand() -> None:
    assert inference.holm([0.01, np.nan, 0.04, 0.03]) == pytest.approx(
        [0.03, np.nan, 0.06, 0.06], nan_ok=True
    )


# --- blocks of one log ----------------------------------------------------------------------------


def test_blocks_with_a_trend_have_no_interval() -> None:
    rising = np.arange(64.0) + np.random.default_rng(12).normal(0, 1, 64)
    found = inference.mean(rising, serial=True)
    assert found.reason != ""
    assert np.isnan(found.low)


# --- tables ---------------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    rows = [
        (scenario, scheduler, replicate, value, 10)
        for (scenario, scheduler), values in {
            ("busy", "easy"): draws(1, 6),
            ("busy", "fcfs"): draws(1, 6) * 3 + draws(2, 6) / 10,
            ("idle", "fcfs"): draws(3, 6),
        }.items()
        for replicate, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["scenario", "scheduler", "replicate", "value", "number"])


def test_a_table_without_its_reference_is_not_compared() -> None:
    alone = table().query("scenario == 'idle'")
    found = inference.summary(alone, ["scenario", "scheduler"], {"scheduler": "easy"})
    assert found["value"].notna().all()
    assert found["ratio"].isna().all()


def test_a_table_is_compared_within_each_scenario() -> None:
    found = inference.summary(table(), ["scenario", "scheduler"], {"scheduler": "easy"})
    assert found["ratio"].round(6).tolist()[0] == 1.0
    assert found["significant"].tolist() == [0, 1, 0]
    assert found["ratio_reason"].tolist() == ["identical in all replicates", "", "no reference"]
    assert found["reason"].tolist() == ["", "", ""]
    alone = inference.ratio(draws(1, 6) * 3 + draws(2, 6) / 10, draws(1, 6))
    assert found["ratio_low"][1] == pytest.approx(alone.low)


@pytest.mark.parametrize(("weighted", "serial"), [(True, False), (False, True)])
def test_units_of_a_table_count_by_their_numbers(weighted: bool, serial: bool) -> None:
    values, numbers = draws(5, 60), np.arange(1.0, 61.0)
    rows = {"scheduler": "easy", "replicate": range(60), "value": values, "number": numbers}
    found = inference.summary(pd.DataFrame(rows), ["scheduler"], weighted=weighted, serial=serial)
    assert found["value"].tolist() == [pytest.approx(np.average(values, weights=numbers))]
    plain = inference.summary(pd.DataFrame(rows), ["scheduler"])
    assert plain["value"].tolist() == [pytest.approx(values.mean())]


def test_a_table_does_not_depend_on_the_order_of_its_rows() -> None:
    by, reference = ["scenario", "scheduler"], {"scheduler": "easy"}
    one = inference.summary(table(), by, reference)
    other = inference.summary(table().sample(frac=1, random_state=1), by, reference)
    pd.testing.assert_frame_equal(
        one.sort_values(by, ignore_index=True), other.sort_values(by, ignore_index=True)
    )


def test_two_values_of_one_replicate_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="two values for scheduler easy"):
        inference.summary(table().replace("idle", "busy").replace("fcfs", "easy"), ["scheduler"])
    with pytest.raises(ConfigurationError, match="no column 'cluster'"):
        inference.summary(table(), ["cluster"])


def test_estimates_of_no_rows_are_empty() -> None:
    found = inference.mean(np.empty((0, 5)))
    assert isinstance(found, Estimate)
    assert found.value.shape == found.low.shape == found.reason.shape == (0,)
    assert inference.summary(table().iloc[:0], ["scheduler"], {"scheduler": "easy"}).empty


# --- shares ---------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.floats(0, 1), st.floats(0.5, 0.999))
def test_shares_have_the_interval_of_wilson(trials: int, part: float, confidence: float) -> None:
    met = round(part * trials)
    found = inference.share(met, trials, confidence=confidence)
    expected = stats.binomtest(met, trials).proportion_ci(confidence, method="wilson")
    assert float(found.value) == met / trials
    assert float(found.low) == pytest.approx(expected.low, abs=1e-9)
    assert float(found.high) == pytest.approx(expected.high, abs=1e-9)


def test_intervals_of_shares_hold_the_truth() -> None:
    """The exact coverage, averaged over the truth."""
    counts = np.arange(201)
    found = inference.share(counts, 200)
    truth = np.linspace(0.02, 0.98, 193)[:, np.newaxis]
    held = (found.low <= truth) & (truth <= found.high)
    coverage = (stats.binom.pmf(counts, 200, truth) * held).sum(axis=1)
    assert 0.94 < coverage.mean() < 0.96
    assert coverage.min() > 0.92


def test_a_share_of_no_trials_is_unknown_and_more_successes_than_trials_are_refused() -> None:
    found = inference.share([0, 1], [0, 2])
    assert np.isnan([found.value[0], found.low[0], found.high[0]]).all()
    assert found.reason.tolist() == ["no trials", ""]
    with pytest.raises(ConfigurationError, match="successes"):
        inference.share(3, 2)


def test_the_difference_of_a_further_run_lies_where_it_is_said() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        values, reference = rng.normal(5, 3, 12), rng.normal(2, 1, 12)
        value, low, high = inference.next_difference(values, reference)
        assert value == pytest.approx(values.mean() - reference.mean())
        held += low < rng.normal(5, 3) - rng.normal(2, 1) < high
    assert 0.93 <= held / 400 <= 0.99


def test_moving_blocks_see_dependence() -> None:
    rng = np.random.default_rng(5)
    means, independent, errors = [], [], []
    for _ in range(300):
        noise = rng.normal(size=400)
        means.append(np.convolve(noise, np.ones(5) / 5, "valid").mean())
        series = np.convolve(noise, np.ones(5) / 5, "valid")
        independent.append(inference.moving_block_error(series, 1))
        errors.append(inference.moving_block_error(series, 25))
    assert np.mean(independent) == pytest.approx(np.std(series) / np.sqrt(len(series)), rel=0.2)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.2)
    assert np.mean(independent) < 0.6 * np.std(means)

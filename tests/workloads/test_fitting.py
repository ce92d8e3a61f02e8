"""Fits to three moments: exact recovery, smallest order, fallbacks, published tables, goodness of fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from gridsched.errors import WorkloadError
from gridsched.workloads import (
    HyperErlang,
    fit_hyper_erlang,
    goodness,
    hyper_erlang_quantile,
    load_machines,
    non_central_moments,
)

PUBLISHED = {
    f"{name} {c.low}-{c.high} {kind}": getattr(c, kind)
    for name, machine in load_machines().items()
    if name in ("M1", "M2", "M3")
    for c in machine.classes
    for kind in ("interarrival", "service")
}

rates = st.floats(1e-4, 1e4)
distributions = st.builds(HyperErlang, st.integers(1, 12), rates, rates, st.floats(0.001, 0.999))


def naive_feasible(moments: np.ndarray[Any, Any], order: int) -> bool:
    """Whether two positive stage means with these moments exist, by the roots of their polynomial."""
    m1, m2, m3 = (
        moments[k - 1] / np.prod([float(order + i) for i in range(k)]) / (moments[0] / order) ** k
        for k in (1, 2, 3)
    )
    a, b = np.linalg.solve([[m1, -1.0], [m2, -m1]], [m2, m3])
    roots = np.roots([1.0, -a, b])
    low, high = sorted(roots.real)
    return bool(np.isreal(roots).all() and 1e-7 < low < 1 < high)


@pytest.mark.parametrize("row", PUBLISHED)
def test_exact_moments_of_the_published_rows_return_their_parameters(row: str) -> None:
    published = PUBLISHED[row]
    fit = fit_hyper_erlang(published.moments(3))
    assert (fit.matched, fit.order) == (3, published.order)
    for name in ("rate_1", "rate_2", "p"):
        assert getattr(fit.distribution, name) == pytest.approx(getattr(published, name), rel=1e-6)


def test_a_million_draws_of_each_published_row_have_its_moments() -> None:
    size = 1_000_000
    rng = np.random.default_rng(2002)
    for row, d in PUBLISHED.items():
        drawn = non_central_moments(d.sample(size, rng))
        for k in (1, 2):
            error = np.sqrt((d.moment(2 * k) - d.moment(k) ** 2) / size)
            assert abs(drawn[k - 1] - d.moment(k)) < 4 * error, row
        assert fit_hyper_erlang(drawn).distribution.moments(3) == pytest.approx(drawn, rel=1e-9), row


@settings(max_examples=300)
@given(distributions)
def test_fit_has_the_moments_it_was_given(d: HyperErlang) -> None:
    fit = fit_hyper_erlang(d.moments(3))
    assert fit.matched == 3
    m1, m2, m3 = d.moments(3)
    n = d.order
    spread, skew = m2 / m1**2 * n / (n + 1) - 1, m1 * m3 / m2**2 * (n + 1) / (n + 2) - 1
    # Nearer to the border of the order, the rounding of the moments decides.
    if min(spread, skew) > 1e-8:
        assert fit.order <= d.order
    assert fit.distribution.moments(3) == pytest.approx(d.moments(3), rel=1e-6)
    assert fit.distribution.rate_1 <= fit.distribution.rate_2


@settings(max_examples=100)
@given(st.lists(st.floats(0.01, 100), min_size=3, max_size=12, unique=True))
def test_order_is_the_smallest_of_those_that_meet_the_moments(times: list[float]) -> None:
    moments = non_central_moments(times)
    assume(np.std(times) > 0.15 * np.mean(times))
    fit = fit_hyper_erlang(moments, max_order=60)
    feasible = [order for order in range(1, 61) if naive_feasible(moments, order)]
    if fit.matched == 3:
        assert fit.order == feasible[0]
        assert fit.distribution.moments(3) == pytest.approx(moments, rel=1e-6)
    else:
        assert not feasible


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), st.integers(1, 20))
def test_every_fit_meets_the_moments_that_it_says(times: list[float], max_order: int) -> None:
    moments = non_central_moments(times)
    fit = fit_hyper_erlang(moments, max_order=max_order)
    assert fit.order <= max_order
    matched = slice(0, fit.matched)
    assert fit.distribution.moments(3)[matched] == pytest.approx(moments[matched], rel=1e-6)
    assert ("max_order" in fit.reason) == (fit.matched < 3)


@pytest.mark.parametrize("order", [1, 2, 7, 40])
def test_moments_of_an_erlang_distribution_give_one_path(order: int) -> None:
    fit = fit_hyper_erlang(HyperErlang(order, 0.02, 5.0, 1.0).moments(3))
    assert (fit.matched, fit.order, fit.distribution.p) == (3, order, 1.0)
    assert fit.distribution.rate_1 == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("times", "max_order", "matched", "order", "reason"),
    [
        # Half of the times 1, half 1.8: the skewness of a hyper-Erlang distribution of order 14 is higher.
        ([1.0, 1.8], 14, 2, 13, "three moments need an order above"),
        ([99.0, 101.0], 50, 1, 50, "two moments need an order above 1e+04, max_order is 50"),
        ([7.0, 7.0, 7.0], 1000, 1, None, "infinite order"),
        ([0.0, 0.0, 0.0, 9.0], 1000, 2, 1, "infinite order"),
    ],
)
def test_fits_fall_back_to_fewer_moments(
    times: list[float], max_order: int, matched: int, order: int | None, reason: str
) -> None:
    fit = fit_hyper_erlang(non_central_moments(times, allow_zero=True), max_order=max_order)
    assert (fit.matched, fit.order) == (matched, order or fit.order)
    assert reason in fit.reason
    assert fit.distribution.mean == pytest.approx(np.mean(times))


def test_of_two_moments_the_third_is_that_of_the_gamma_distribution() -> None:
    moments = non_central_moments([1.0, 1.8])
    shape = moments[0] ** 2 / (moments[1] - moments[0] ** 2)
    expected = stats.gamma(shape, scale=moments[0] / shape).moment(3)
    assert fit_hyper_erlang(moments, max_order=14).distribution.moment(3) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("function", "argument", "options", "named"),
    [
        (fit_hyper_erlang, [1.0, 0.9, 2.0], {}, "second moment 0.9 is below the square"),
        (fit_hyper_erlang, [1.0, 2.0, 3.0], {}, "third moment 3 is below 4"),
        (fit_hyper_erlang, [0.0, 1.0, 1.0], {}, "positive and finite"),
        (fit_hyper_erlang, [1.0, np.nan, 1.0], {}, "positive and finite"),
        (fit_hyper_erlang, [1.0, 2.0], {}, "shape"),
        (fit_hyper_erlang, [1.0, 2.0, 6.0], {"max_order": 0}, "max_order is 0"),
        (non_central_moments, [], {"what": "gaps"}, "gaps: there are none"),
        (non_central_moments, [1.0, -1.0], {}, "1 of 2 are negative"),
        (non_central_moments, [1.0, 0.0, 0.0], {}, "2 of 3 are zero"),
        (non_central_moments, [1.0, np.inf], {}, "1 of 2 are not finite"),
        (non_central_moments, [0.0, 0.0], {"allow_zero": True}, "all 2 are zero"),
        *(
            (partial(hyper_erlang_quantile, HyperErlang(1, 1.0, 1.0, 1.0)), probability, {}, "probabilities")
            for probability in (0.0, 1.0, -0.5, np.nan)
        ),
    ],
)
def test_what_has_no_fit_is_named(
    function: Callable[..., Any], argument: Any, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(WorkloadError, match=named):
        function(argument, **options)


@given(distributions)
def test_quantiles_invert_the_distribution_function(d: HyperErlang) -> None:
    probability = np.array([1e-6, 0.01, 0.5, 0.99, 1 - 1e-6])
    np.testing.assert_allclose(d.cdf(hyper_erlang_quantile(d, probability)), probability, rtol=1e-9)


def test_quantiles_of_one_path_are_those_of_scipy() -> None:
    probability = np.linspace(0.01, 0.99, 9)
    expected = stats.gamma(3, scale=5.0).ppf(probability)
    quantiles = hyper_erlang_quantile(HyperErlang(3, 0.2, 0.2, 1.0), probability)
    np.testing.assert_allclose(quantiles, expected, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(distributions, st.integers(0, 1000))
def test_goodness_is_that_of_the_definition(d: HyperErlang, seed: int) -> None:
    values = np.round(d.sample(60, np.random.default_rng(seed)) * d.mean**-1 * 20) + 1
    model = fit_hyper_erlang(non_central_moments(values))
    result = goodness(model, values)
    ordered = np.unique(values)
    at = np.array([np.mean(values <= x) for x in ordered])
    before = np.array([np.mean(values < x) for x in ordered])
    cdf = model.distribution.cdf(ordered)
    assert result.ks_distance == pytest.approx(max(np.abs(at - cdf).max(), np.abs(before - cdf).max()))
    np.testing.assert_allclose(result.sample_quantile, np.quantile(values, result.probability))
    matched = slice(model.matched)
    np.testing.assert_allclose(result.model_moments[matched], result.sample_moments[matched], rtol=1e-6)


def test_goodness_of_draws_from_the_model_itself() -> None:
    d = HyperErlang(2, 1e-4, 3e-3, 0.3)
    result = goodness(d, d.sample(200_000, np.random.default_rng(1)))
    assert result.ks_distance < 0.005
    inner = (result.probability > 0.02) & (result.probability < 0.98)
    np.testing.assert_allclose(result.model_quantile[inner], result.sample_quantile[inner], rtol=0.03)

"""The bounded Pareto distribution against scipy's Pareto cut at both ends, and numerical integration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from gridsched.errors import WorkloadError
from gridsched.workloads import BoundedPareto

distributions = st.builds(
    lambda shape, low, ratio: BoundedPareto(shape, low, low * ratio),
    st.one_of(st.floats(0.1, 4), st.sampled_from([1.0, 2.0, 3.0])),
    st.floats(1e-2, 1e3),
    st.floats(1.5, 1e5),
)


@given(distributions)
def test_distribution_is_that_of_a_cut_pareto(d: BoundedPareto) -> None:
    x = np.concatenate(
        [[-1.0, 0.0, d.low / 2], np.geomspace(d.low * 1.001, d.high * 0.999, 20), [d.high * 2]]
    )
    whole = stats.pareto(d.shape, scale=d.low)
    total = whole.cdf(d.high)
    np.testing.assert_allclose(d.cdf(x), np.minimum(whole.cdf(x) / total, 1), rtol=1e-9, atol=1e-15)


@given(distributions, st.integers(1, 3))
def test_moments_are_those_of_the_density(d: BoundedPareto, k: int) -> None:
    whole = stats.pareto(d.shape, scale=d.low)
    # In the logarithm of the value, where the integrand is smooth over all magnitudes.
    integral, _ = integrate.quad(
        lambda t: float(np.exp((k + 1) * t) * whole.pdf(np.exp(t))), np.log(d.low) + 1e-12, np.log(d.high)
    )
    assert d.moment(k) == pytest.approx(integral / whole.cdf(d.high), rel=1e-5)
    assert d.moments(3)[k - 1] == d.moment(k)


@given(distributions, st.floats(0, 1))
def test_quantile_inverts_the_distribution(d: BoundedPareto, probability: float) -> None:
    value = d.quantile(probability)
    assert d.low <= value <= d.high
    assert d.cdf(value) == pytest.approx(probability, abs=1e-9)


def test_draws_follow_the_distribution() -> None:
    d = BoundedPareto(1.1, 10.0, 1e5)
    drawn = d.sample(200_000, np.random.default_rng(3))
    assert stats.kstest(drawn, d.cdf).pvalue > 1e-3
    assert abs(drawn.mean() - d.mean) < 4 * np.sqrt(d.variance / len(drawn))
    assert np.array_equal(d.sample(9, np.random.default_rng(3)), drawn[:9])


@pytest.mark.parametrize(
    ("parameters", "named"),
    [((0.0, 1.0, 2.0), "shape is 0"), ((1.0, 0.0, 2.0), "low is 0"), ((1.0, 2.0, 2.0), "high is 2")],
)
def test_bad_parameters_are_named(parameters: tuple[float, float, float], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        BoundedPareto(*parameters)

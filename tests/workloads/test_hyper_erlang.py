"""The hyper-Erlang distribution against numerical integration, scipy's Erlang and its own draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gridsched.errors import WorkloadError
from gridsched.workloads import HyperErlang
from tests.support.fields import assert_fields

rates = st.floats(1e-5, 10)
distributions = st.builds(HyperErlang, st.integers(1, 8), rates, rates, st.floats(0, 1))


def integral(d: HyperErlang, power: int) -> float:
    """Integral of x**power times the density, piece by piece, to far beyond the slower path."""
    edges = np.concatenate(
        [[0.0], np.geomspace(1e-3 / max(d.rate_1, d.rate_2), 300 / min(d.rate_1, d.rate_2), 40)]
    )
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + nodes)
    return float((half * weights * x**power * d.pdf(x)).sum())


@settings(max_examples=40, deadline=None)
@given(distributions)
def test_moments_are_those_of_the_density(d: HyperErlang) -> None:
    assert integral(d, 0) == pytest.approx(1)
    for k, moment in enumerate(d.moments(4), start=1):
        assert moment == pytest.approx(integral(d, k), rel=1e-6)


@given(distributions)
def test_density_and_distribution_are_mixtures_of_gamma(d: HyperErlang) -> None:
    x = np.concatenate([[-1.0, 0.0], np.geomspace(1e-3, 1e7, 50)])
    first = stats.gamma(d.order, scale=1 / d.rate_1)
    second = stats.gamma(d.order, scale=1 / d.rate_2)
    np.testing.assert_allclose(
        d.pdf(x), d.p * first.pdf(x) + (1 - d.p) * second.pdf(x), rtol=1e-9, atol=1e-300
    )
    np.testing.assert_allclose(d.cdf(x), d.p * first.cdf(x) + (1 - d.p) * second.cdf(x), rtol=1e-9)


@pytest.mark.parametrize(
    "d", [HyperErlang(1, 2.75e-4, 4.71e-3, 0.0197), HyperErlang(3, 2.01e-4, 2.13e-2, 0.6043)]
)
def test_drawn_moments_lie_within_four_standard_errors(d: HyperErlang) -> None:
    size = 500_000
    values = d.sample(size, np.random.default_rng(7))
    for k in (1, 2, 3):
        error = np.sqrt((d.moment(2 * k) - d.moment(k) ** 2) / size)
        assert abs(np.mean(values**k) - d.moment(k)) < 4 * error
    assert stats.kstest(values[:20_000], d.cdf).pvalue > 1e-4


@given(distributions, st.floats(1e-3, 1e3))
def test_scaling_keeps_the_shape(d: HyperErlang, factor: float) -> None:
    assert_fields(d.scaled(factor), mean=pytest.approx(factor * d.mean), cv=pytest.approx(d.cv))


def test_one_path_is_an_erlang_distribution() -> None:
    assert HyperErlang(4, 0.5, 9.0, 1.0).cv == pytest.approx(0.5)
    assert HyperErlang(4, 0.5, 9.0, 1.0).mean == pytest.approx(8)
    order: Any = 4.0
    assert HyperErlang(order, 0.5, 9.0, 1.0).mean == pytest.approx(8)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ((0, 1, 1, 0.5), "order"),
        ((1.5, 1, 1, 0.5), "order is 1.5"),
        ((1, 0, 1, 0.5), "rate_1"),
        ((1, 1, np.inf, 0.5), "rate_2"),
        ((1, 1, 1, 1.5), "p is"),
    ],
)
def test_bad_parameters_are_named(parameters: tuple[Any, float, float, float], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        HyperErlang(*parameters)

"""Fit of the hyper-Erlang distribution of common order to three moments, and how good a fit is.

For a given order n the moments of a stage's mean are two-point moments, so that the two means are the roots
of a quadratic (Johnson and Taaffe, Stochastic Models 5(4), 1989). A pair of positive roots exists where
n > 1/cv**2 and n > (2 - x) / (x - 1), with x = mu_1 mu_3 / mu_2**2: every spread and skewness that positive
times can have is met from some order on, and the smallest one is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError, check_whole
from gridsched.workloads.hyper_erlang import HyperErlang

MAX_ORDER = 100
"""Largest order that is tried by default: a coefficient of variation down to 0.1."""

PROBABILITIES = np.concatenate([[0.001, 0.005], np.arange(1, 100) / 100, [0.995, 0.999]])
"""Probabilities of the points of a quantile plot."""

_TOLERANCE = 1e-9
"""Relative distance from the border of what an order can meet within which rounding decides."""

_BISECTIONS = 80
"""Halvings of the bracket of a quantile, in logarithms: enough for the last digit of any double."""


@dataclass(frozen=True)
class HyperErlangFit:
    """A fitted distribution and what it meets.

    Parameters
    ----------
    distribution : HyperErlang
        The first path is the slower one.
    matched : {3, 2, 1}
        How many of the moments it meets, from the first on.
    reason : str
        Why this order, and why not all moments where it does not meet them.
    """

    distribution: HyperErlang
    matched: Literal[1, 2, 3]
    reason: str

    @property
    def order(self) -> int:
        """Stages of each path."""
        return self.distribution.order


@dataclass(frozen=True)
class Goodness:
    """A distribution beside the times that it models.

    Parameters
    ----------
    sample_moments, model_moments : array of float
        First three non-central moments; shape (3,).
    ks_distance : float
        Kolmogorov-Smirnov distance: largest difference of the distribution functions.
    probability, sample_quantile, model_quantile : array of float
        Points of a quantile plot, quantiles in the unit of the times.
    """

    sample_moments: NDArray[np.float64]
    model_moments: NDArray[np.float64]
    ks_distance: float
    probability: NDArray[np.float64]
    sample_quantile: NDArray[np.float64]
    model_quantile: NDArray[np.float64]


def non_central_moments(
    times: ArrayLike, *, what: str = "times", allow_zero: bool = False
) -> NDArray[np.float64]:
    """First three non-central moments of observed times: the means of t, t**2 and t**3.

    Parameters
    ----------
    times : array_like
        Times in seconds; shape (n,).
    what : str
        How errors call the times.
    allow_zero : bool
        Accept times of zero, such as the time between two submissions in the same second.

    Returns
    -------
    array of float64
        Shape (3,).

    Raises
    ------
    WorkloadError
        Where there are no times, or they are not finite, negative, zero without `allow_zero`, or all zero.
    """
    values = np.asarray(times, np.float64)
    if not values.size:
        raise WorkloadError(f"{what}: there are none, so they have no moments")
    for wrong, name in (
        (~np.isfinite(values), "not finite"),
        (values < 0, "negative"),
        ((values == 0) & (not allow_zero), "zero"),
    ):
        if wrong.any():
            raise WorkloadError(
                f"{what}: {np.count_nonzero(wrong):,} of {values.size:,} are {name}; "
                "leave them out or repair them"
            )
    if not values.any():
        raise WorkloadError(f"{what}: all {values.size:,} are zero, no distribution fits them")
    return np.array([np.mean(values**k) for k in (1, 2, 3)])


def fit_hyper_erlang(moments: ArrayLike, *, max_order: int = MAX_ORDER) -> HyperErlangFit:
    """Hyper-Erlang distribution of the smallest order that meets three moments.

    Parameters
    ----------
    moments : array_like
        First three non-central moments of times; shape (3,).
    max_order : int
        Largest order allowed.

    Returns
    -------
    HyperErlangFit
        Where no allowed order meets all three moments, `matched` is 2: the first two, and the third of the
        gamma distribution that has these two, which an order above 1/cv**2 always meets. Where
        no allowed order has so little spread, `matched` is 1: the Erlang distribution of the largest order.

    Raises
    ------
    WorkloadError
        Where these cannot be the moments of any positive times, or `max_order` is below 1.

    Notes
    -----
    M. A. Johnson and M. R. Taaffe, Stochastic Models 5(4), 1989. Moments of an Erlang distribution lie on the
    border of its order and give one path (p = 1).
    """
    mu = _checked(moments)
    max_order = check_whole("hyper-Erlang: max_order", max_order, least=1, error=WorkloadError)
    three = _smallest_order(mu, max_order)
    if three is not None:
        return HyperErlangFit(three, 3, f"order {three.order} is the smallest that meets three moments")
    two = _smallest_order(_with_gamma_skewness(mu), max_order)
    if two is not None:
        reason = f"three moments need {_needed(_skew_bound(mu))}, max_order is {max_order}"
        return HyperErlangFit(two, 2, f"{reason}: two are met, the third is that of a gamma distribution")
    rate = float(max_order / mu[0])
    reason = f"two moments need {_needed(_spread_bound(mu))}, max_order is {max_order}"
    return HyperErlangFit(
        HyperErlang(int(max_order), rate, rate, 1.0), 1, f"{reason}: the mean is met, with the least spread"
    )


def _checked(moments: ArrayLike) -> NDArray[np.float64]:
    """Three moments that positive times can have."""
    mu = np.asarray(moments, np.float64)
    if mu.shape != (3,):
        raise WorkloadError(f"hyper-Erlang: moments have shape {mu.shape}, give the first three")
    if not (np.isfinite(mu).all() and (mu > 0).all()):
        raise WorkloadError(f"hyper-Erlang: moments are {mu.tolist()}, they must be positive and finite")
    if mu[1] < mu[0] ** 2 * (1 - _TOLERANCE):
        raise WorkloadError(
            f"hyper-Erlang: second moment {mu[1]:g} is below the square of the mean {mu[0]:g}; "
            "no times have that"
        )
    if mu[0] * mu[2] < mu[1] ** 2 * (1 - _TOLERANCE):
        raise WorkloadError(
            f"hyper-Erlang: third moment {mu[2]:g} is below {mu[1] ** 2 / mu[0]:g}, the least that positive "
            "times with the first two can have"
        )
    return mu


def _spread_bound(mu: NDArray[np.float64]) -> float:
    """1 / cv**2: the order of an Erlang distribution with this spread."""
    excess = mu[1] / mu[0] ** 2 - 1
    return 1 / excess if excess > _TOLERANCE else math.inf


def _skew_bound(mu: NDArray[np.float64]) -> float:
    """Order that the first three moments need at least; the border itself is excluded."""
    x = mu[0] * mu[2] / mu[1] ** 2
    return max(_spread_bound(mu), (2 - x) / (x - 1) if x - 1 > _TOLERANCE else math.inf)


def _needed(bound: float) -> str:
    return f"an order above {bound:.4g}" if math.isfinite(bound) else "an infinite order"


def _with_gamma_skewness(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """First two moments, and the third of the gamma distribution with these two."""
    relative = mu[1] / mu[0] ** 2
    return np.array([mu[0], mu[1], mu[0] ** 3 * relative * (2 * relative - 1)])


def _smallest_order(mu: NDArray[np.float64], max_order: int) -> HyperErlang | None:
    fits = (_of_order(mu, order) for order in range(1, max_order + 1))
    return next((fit for fit in fits if fit is not None), None)


def _of_order(mu: NDArray[np.float64], order: int) -> HyperErlang | None:
    """Distribution of an order that has the three moments, None if there is none.

    A path has the mean of its stages, t, with n t for the mean of the path. In units in which E[t] = 1, the
    two values of t are 1 + half +- root below, written so that no digits cancel.
    """
    mean, square, cube = mu.tolist()
    rate = order / mean
    second = square / mean**2 * order / (order + 1)
    third = cube / mean**3 * order**2 / ((order + 1) * (order + 2))
    variance = second - 1
    if abs(variance) <= _TOLERANCE and abs(third - 1) <= _TOLERANCE:
        return HyperErlang(order, rate, rate, 1.0)
    product = third - second**2
    if variance <= _TOLERANCE or product <= _TOLERANCE * third:
        return None
    half = (third - 3 * second + 2) / (2 * variance)
    root = math.hypot(half, math.sqrt(variance))
    wide = root + abs(half)
    above, below = (wide, variance / wide) if half >= 0 else (variance / wide, wide)
    slow = 1 + above
    fast = product / variance / slow
    return HyperErlang(order, rate / slow, rate / fast, below / (above + below))


def goodness(fit: HyperErlangFit | HyperErlang, samples: ArrayLike) -> Goodness:
    """Compare a distribution with the times that it models.

    Parameters
    ----------
    fit : HyperErlangFit or HyperErlang
    samples : array_like
        Observed times, s; zeros count as they are.

    Returns
    -------
    Goodness

    Raises
    ------
    WorkloadError
        Where there are no times, or some are negative.
    """
    model = fit.distribution if isinstance(fit, HyperErlangFit) else fit
    moments = non_central_moments(samples, what="samples", allow_zero=True)
    values = np.asarray(samples, np.float64)
    return Goodness(
        sample_moments=moments,
        model_moments=model.moments(3),
        ks_distance=float(scipy.stats.ks_1samp(values, model.cdf, method="asymp").statistic),
        probability=PROBABILITIES,
        sample_quantile=np.quantile(values, PROBABILITIES),
        model_quantile=hyper_erlang_quantile(model, PROBABILITIES),
    )


def hyper_erlang_quantile(model: HyperErlang, probability: ArrayLike) -> NDArray[np.float64]:
    """Quantiles of a hyper-Erlang distribution by bisection; same shape as `probability`, in (0, 1)."""
    wanted = np.asarray(probability, np.float64)
    if not ((wanted > 0) & (wanted < 1)).all():
        raise WorkloadError("hyper-Erlang: probabilities of quantiles must be above 0 and below 1")
    stages = scipy.special.gammaincinv(model.order, wanted)
    # The quantile of a mixture lies between those of its parts.
    low = np.log(stages / max(model.rate_1, model.rate_2))
    high = np.log(stages / min(model.rate_1, model.rate_2))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = model.cdf(np.exp(middle)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.exp((low + high) / 2), np.float64)

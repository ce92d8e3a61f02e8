"""Forecasts that are corrected by what became of earlier ones: conformal quantile regression.

Each quantile of the time until a start is moved by a factor such that, among earlier forecasts with about the
same quantile whose outcome is known, the share of jobs that started before it was what its level says. This
is the conformal correction of Romano, Patterson and Candes ("Conformalized quantile regression", NeurIPS
2019), one-sided at each level, on the logarithm of the time, and local as that of Guan ("Localized conformal
prediction", Biometrika 110(1), 2023). It holds for whatever made the quantiles, however wrong they are, as
long as the next forecasts err like those before; it makes them honest, not sharp.

Where the policy is not known well, what earlier jobs have waited tells more than the queue does. So a
forecast can be one between two: at each level the weighted mean of the logarithms of both quantiles, with the
weight that would have been best
for the earlier forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS: NDArray[np.float64] = np.arange(1, 20) / 20
"""Levels of the quantiles that stand for a forecast."""

MEDIAN = 9
"""Place of the median among them."""

LOW, HIGH = 1, 17
"""Places of the 10 % and 90 % quantiles among them."""

LEAST = 100
"""So many earlier forecasts a correction needs, and so many neighbours each part of it has at least."""

LAG = 2 * 86400
"""Seconds that a forecast is old at least before its outcome is looked at; else only short waits were known.

A job that still waits then counts as starting at that time.
"""

WEIGHTS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Weights of a forecast against the other one that are tried."""

MISS = 0.2
"""What an interval of 80 % leaves out."""

KNOTS = 15
"""Places along the forecast time at which a correction is worked out; it is interpolated between them."""

SOFTENING = 60.0
"""Seconds that are added before logarithms are taken."""

_NEIGHBOURS = 0.15
_LONGEST = 1e9
"""Seconds that stand for a start beyond all horizons."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Corrections of quantiles.

    Parameters
    ----------
    place : float64[19, k]
        Logarithms of forecast times, increasing, at which each level is corrected.
    shift : float64[19, k]
        What is added there.
    forecasts : int
        Earlier forecasts that this comes from.
    weight : float
        Of the forecast against the other one that is taken with it.
    longest : float
        Seconds: no quantile is moved beyond twice the longest outcome that was known.
    """

    place: NDArray[np.float64]
    shift: NDArray[np.float64]
    forecasts: int
    weight: float = 1.0
    longest: float = np.inf

    def apply(
        self, remaining: NDArray[np.float64], other: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Corrected quantiles.

        Parameters
        ----------
        remaining : float64[n, 19]
            Quantiles of the time until the start, seconds, at `LEVELS`.
        other : float64[n, 19], optional
            Those of the other forecast, if the correction was fitted with one.

        Returns
        -------
        float64[n, 19]
            Seconds, at least 0 and not decreasing with the level.
        """
        told = _between(remaining, other, self.weight)
        moved = np.empty_like(told)
        for level in range(len(LEVELS)):
            moved[:, level] = told[:, level] + np.interp(told[:, level], self.place[level], self.shift[level])
        seconds = (
            np.exp(np.minimum(moved, np.maximum(told, np.log(2 * self.longest + SOFTENING)))) - SOFTENING
        )
        return np.maximum.accumulate(np.maximum(seconds, 0.0), axis=1)


def fit_adjustment(
    remaining: NDArray[np.float64],
    truth: NDArray[np.float64],
    other: NDArray[np.float64] | None = None,
    *,
    levels: NDArray[np.float64] = LEVELS,
) -> Adjustment:
    """Corrections from forecasts whose outcome is known.

    Parameters
    ----------
    remaining : float64[n, 19]
        Quantiles of the time until the start, seconds, at `LEVELS`.
    truth : float64[n]
        The time until the start, seconds.
    other : float64[n, 19], optional
        Quantiles of another forecast that the first can be mixed with.
    levels : float64[19]
        What share of these truths is to lie below each quantile: another than `LEVELS` where the next
        forecasts are known to err more, or less, than these.

    Returns
    -------
    Adjustment
        The one of the best interval score of 80 % for these forecasts; of no effect where there are too few
        to tell.
    """
    if len(truth) < LEAST:
        nothing = np.zeros((len(LEVELS), 1))
        return Adjustment(nothing, nothing, len(truth))
    weights = WEIGHTS if other is not None else (1.0,)
    tried = [_fitted(remaining, truth, other, weight, levels) for weight in weights]
    if other is None:
        return tried[0]
    scores = [interval_score(each.apply(remaining, other), truth).mean() for each in tried]
    return tried[int(np.argmin(scores))]


def _fitted(
    remaining: NDArray[np.float64],
    truth: NDArray[np.float64],
    other: NDArray[np.float64] | None,
    weight: float,
    levels: NDArray[np.float64],
) -> Adjustment:
    """Correction of forecasts of some weight."""
    told, true = _between(remaining, other, weight), logarithm(truth)
    count = len(truth)
    window = max(LEAST, int(_NEIGHBOURS * count))
    first = np.unique(np.linspace(0, count - window, KNOTS).astype(np.int64))
    places, shifts = [], []
    for column, level in enumerate(levels):
        order = np.argsort(told[:, column], kind="stable")
        near = order[first[:, np.newaxis] + np.arange(window)]
        places.append(np.median(told[near, column], axis=1))
        shifts.append(np.quantile(true[near] - told[near, column], level, axis=1, method="higher"))
    return Adjustment(np.array(places), np.array(shifts), count, weight, float(truth.max()))


def _between(
    remaining: NDArray[np.float64], other: NDArray[np.float64] | None, weight: float
) -> NDArray[np.float64]:
    """Logarithms of the quantiles between those of two forecasts."""
    if other is None or weight == 1.0:
        return logarithm(remaining)
    return weight * logarithm(remaining) + (1.0 - weight) * logarithm(other)


def interval_score(remaining: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Score of the 80 % intervals: their width, and ten times how far the truth lies outside.

    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", Journal of the American
    Statistical Association 102(477), 2007; smaller is better.

    Parameters
    ----------
    remaining : float64[n, 19]
        Quantiles at `LEVELS`, seconds.
    truth : float64[n]
        What came true, seconds.

    Returns
    -------
    float64[n]
        Seconds.
    """
    low, high = remaining[:, LOW], remaining[:, HIGH]
    miss = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return np.asarray(high - low + 2 / MISS * miss)


def logarithm(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of times until starts."""
    return np.asarray(np.log(np.minimum(seconds, _LONGEST) + SOFTENING))

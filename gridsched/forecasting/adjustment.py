"""Forecasts that are corrected by what became of earlier ones: conformal quantile regression.

Each quantile of the time until a start is moved by a factor such that, among earlier forecasts whose outcome is
known, the share of jobs that started before it was what the quantile says. This is the conformal correction of Romano,
Patterson and Candes ("Conformalized quantile regression", NeurIPS 2019), one-sided at each level, on the logarithm of
the time and with one factor for each range of forecast horizons. It holds for whatever made the quantiles, however wrong
they are, as long as the next forecasts err like those before; it makes them honest, not sharp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS: NDArray[np.float64] = np.arange(1, 20) / 20
"""Levels of the quantiles that stand for a forecast."""

MEDIAN = 9
"""Place of the median among them."""

HORIZONS = (600, 3600, 6 * 3600, 86400)
"""Bounds of the ranges of the forecast median, seconds until the start, that are corrected apart."""

LEAST = 100
"""So many forecasts a range needs for a correction of its own."""

SOFTENING = 60.0
"""Seconds that are added before logarithms are taken."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Corrections of quantiles by range of horizons.

    Parameters
    ----------
    shift : float64[5, 19]
        What is added to the logarithm of each quantile of each range.
    jobs : int64[5]
        Forecasts that each row comes from.
    """

    shift: NDArray[np.float64]
    jobs: NDArray[np.int64]

    def apply(
        self, remaining: NDArray[np.float64], levels: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Corrected quantiles.

        Parameters
        ----------
        remaining : float64[n, k]
            Quantiles of the time until the start, seconds, at `levels`.
        levels : float64[k], optional
            `LEVELS` by default; between these the correction is interpolated, beyond it is that of the last.

        Returns
        -------
        float64[n, k]
            Seconds, at least 0 and not decreasing with the level.
        """
        if levels is None:
            levels, shift = LEVELS, self.shift
        else:
            shift = np.array([np.interp(levels, LEVELS, row) for row in self.shift])
        middle = remaining[:, int(np.argmin(abs(levels - 0.5)))]
        moved = np.exp(logarithm(remaining) + shift[horizon_range(middle)]) - SOFTENING
        return np.maximum.accumulate(np.maximum(moved, 0.0), axis=1)


def fit_adjustment(remaining: NDArray[np.float64], truth: NDArray[np.float64]) -> Adjustment:
    """Corrections from forecasts whose outcome is known.

    Parameters
    ----------
    remaining : float64[n, 19]
        Quantiles of the time until the start, seconds, at `LEVELS`.
    truth : float64[n]
        The time until the start, seconds.

    Returns
    -------
    Adjustment
        Of no effect where there are too few forecasts to tell.
    """
    remaining = np.minimum(remaining, _LONGEST)
    missing = logarithm(truth)[:, np.newaxis] - logarithm(remaining)
    ranges = horizon_range(remaining[:, MEDIAN])
    whole = _quantiles(missing) if len(truth) >= LEAST else np.zeros(len(LEVELS))
    rows, jobs = [], []
    for each in range(len(HORIZONS) + 1):
        own = ranges == each
        enough = np.count_nonzero(own) >= LEAST
        rows.append(_quantiles(missing[own]) if enough else whole)
        jobs.append(np.count_nonzero(own))
    return Adjustment(np.array(rows), np.array(jobs, np.int64))


_LONGEST = 1e9
"""Seconds that stand for a start beyond all horizons."""


def logarithm(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithm of times until starts."""
    return np.asarray(np.log(seconds + SOFTENING))


def horizon_range(median: NDArray[np.float64]) -> NDArray[np.int64]:
    """Range of horizons that a forecast with this median belongs to."""
    return np.asarray(np.searchsorted(HORIZONS, median, "right"))


def _quantiles(missing: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each column the quantile of its level."""
    return np.array(
        [np.quantile(missing[:, place], level, method="higher") for place, level in enumerate(LEVELS)]
    )

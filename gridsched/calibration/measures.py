"""How well simulated waits explain recorded ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CLOSE = 300
"""Seconds by which a simulated wait may differ and is near the recorded one all the same ..."""

FACTOR = 2
"""... or this factor."""

LEAST_CORRELATION = 0.5
"""Rank correlation from which waits count as explained, unless the null model's is higher ..."""

RATIOS = (0.6, 1.67)
"""... if the ratio of the means lies between these: with both, intervals hold known truth (`make trust`)."""

WIDEST_RATIOS = (0.5, 2.0)
"""Ratios outside of which waits are not explained at all."""

EXPLAINED, PARTLY, NOT = "explained", "explained in part only", "not explained"
"""Headlines."""

WEIGHTS = (0.5, 0.5)
"""Weights of the logarithm of the ratio of means, and of jobs that are not near, in `loss_of`; that of the
rank correlation is 1."""


class Explained(NamedTuple):
    """Simulated waits beside recorded ones.

    Parameters
    ----------
    ratio : float
        Mean simulated wait over mean recorded wait.
    correlation : float
        Spearman's rank correlation of the waits of jobs; tied ranks are averaged.
    near : float
        Share of the jobs whose simulated wait is within five minutes or a factor of two of the recorded one.
    """

    ratio: float
    correlation: float
    near: float

    def headline(self, null: Explained) -> str:
        """What the measures say of the simulated waits, beside those of the null model."""
        ranked = self.correlation >= null.correlation or np.isnan(null.correlation)
        if not (ranked and WIDEST_RATIOS[0] <= self.ratio <= WIDEST_RATIOS[1]):
            return NOT
        good = self.correlation >= LEAST_CORRELATION and RATIOS[0] <= self.ratio <= RATIOS[1]
        return EXPLAINED if good else PARTLY


def loss_of(correlation: float, near: float, ratio: float) -> float:
    """What a fit makes small: 1 less the rank correlation, half of 1 less near, half of |log(ratio)|.

    A rank correlation or share that is not there, since all waits are equal, counts as 0.
    """
    correlation, near = np.nan_to_num([correlation, near]).tolist()
    return float(1 - correlation + WEIGHTS[1] * (1 - near) + WEIGHTS[0] * abs(np.log(max(ratio, 1e-9))))


UNKNOWN = Explained(np.nan, np.nan, np.nan)
"""Of waits that were not simulated."""


def explained(simulated: NDArray[Any], recorded: NDArray[Any]) -> Explained:
    """Measures of simulated waits beside recorded ones, both in seconds, one for each job."""
    from scipy.stats import rankdata

    simulated, recorded = np.asarray(simulated, np.float64), np.asarray(recorded, np.float64)
    if len(recorded) < 2 or recorded.sum() == 0:
        return UNKNOWN
    apart = np.abs(simulated - recorded) <= CLOSE
    alike = (simulated <= FACTOR * recorded) & (recorded <= FACTOR * simulated)
    ranks = [rankdata(values) for values in (simulated, recorded)]
    constant = any(each.min() == each.max() for each in ranks)
    return Explained(
        ratio=float(simulated.mean() / recorded.mean()),
        correlation=np.nan if constant else float(np.corrcoef(*ranks)[0, 1]),
        near=float((apart | alike).mean()),
    )


def readings(present: float, after: float, recorded: float) -> tuple[float, float, float]:
    """Change of a recorded mean wait in three readings of two simulated ones [s].

    They are the simulated change; the simulated relative change, of the recorded mean; and the simulated mean
    after the change less the recorded one. They are one where the present is simulated as recorded; none is
    right in general where it is not, since the error may be the same after the change, in proportion, or
    absent.
    """
    change = after - present
    return change, change * (recorded / present if present > 0 else 1.0), after - recorded

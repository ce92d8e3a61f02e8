"""The bounded Pareto distribution: a power law between two limits, for heavy-tailed sizes and times."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError, check_number
from gridsched.workloads.moments import Moments


@dataclass(frozen=True)
class BoundedPareto(Moments):
    """Pareto distribution cut off at both ends (M. Harchol-Balter, J. ACM 49(2), 2002).

    Parameters
    ----------
    shape : float
        Exponent of the tail, alpha: the density falls as x**(-alpha - 1).
    low, high : float
        Smallest and largest value, 0 < low < high.

    Raises
    ------
    WorkloadError
        Where a parameter is outside its range.
    """

    shape: float
    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("bounded Pareto: shape", self.shape, above=0, error=WorkloadError)
        check_number("bounded Pareto: low", self.low, above=0, error=WorkloadError)
        check_number("bounded Pareto: high", self.high, above=self.low, error=WorkloadError)

    @property
    def _range(self) -> float:
        """Logarithm of high / low."""
        return math.log(self.high / self.low)

    @property
    def _inside(self) -> float:
        """Probability that the unbounded distribution has below `high`."""
        return -math.expm1(-self.shape * self._range)

    def moment(self, k: int) -> float:
        """Non-central moment E[X^k], also where k is the shape."""
        growth = self._range * float(scipy.special.exprel((k - self.shape) * self._range))
        return self.shape * self.low**k * growth / self._inside

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Probability of a value up to `x`; same shape as `x`."""
        values = np.clip(np.asarray(x, np.float64), self.low, self.high)
        return np.asarray(-np.expm1(-self.shape * np.log(values / self.low)) / self._inside, np.float64)

    def quantile(self, probability: ArrayLike) -> NDArray[np.float64]:
        """Value below which a share `probability`, in [0, 1], of the values lies; same shape."""
        share = np.asarray(probability, np.float64)
        with np.errstate(divide="ignore"):  # where all of the distribution is inside but for rounding
            values = self.low * np.exp(-np.log1p(-share * self._inside) / self.shape)
        # Rounding may pass the limit by the last digit.
        return np.asarray(np.clip(values, self.low, self.high), np.float64)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw `size` independent values; shape (size,)."""
        return self.quantile(rng.random(size))

"""The hyper-Erlang distribution of common order, which models inter-arrival and service times.

A customer takes one of two paths, the first with probability p; both paths have n exponential stages, each
path with a rate of its own. Three moments fix the distribution once n is chosen (Johnson and Taaffe,
Stochastic Models 5(4), 1989); Jann et al. (JSSPP 1997) fitted workloads of parallel machines with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError, check_number, check_whole
from gridsched.workloads.moments import Moments


@dataclass(frozen=True)
class HyperErlang(Moments):
    """Mixture of two Erlang distributions with the same number of stages.

    Parameters
    ----------
    order : int
        Stages of each path, n.
    rate_1, rate_2 : float
        Rate of a stage of the first and of the second path, 1/s for times in seconds.
    p : float
        Probability of the first path.

    Raises
    ------
    WorkloadError
        Where a parameter is outside its range.
    """

    order: int
    rate_1: float
    rate_2: float
    p: float

    def __post_init__(self) -> None:
        order = check_whole("hyper-Erlang: order", self.order, least=1, error=WorkloadError)
        object.__setattr__(self, "order", order)
        for name in ("rate_1", "rate_2"):
            check_number(f"hyper-Erlang: {name}", getattr(self, name), above=0, error=WorkloadError)
        check_number("hyper-Erlang: p", self.p, least=0, most=1, error=WorkloadError)

    def moment(self, k: int) -> float:
        """Non-central moment E[X^k]: the mixture of the Erlang moments n (n+1) ... (n+k-1) / rate^k."""
        rising = math.prod(range(self.order, self.order + k))
        return rising * (self.p / self.rate_1**k + (1 - self.p) / self.rate_2**k)

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation divided by the mean."""
        return math.sqrt(self.variance) / self.mean

    def scaled(self, factor: float) -> HyperErlang:
        """Distribution of `factor` times the variable: the same shape, other rates."""
        check_number("hyper-Erlang: scale factor", factor, above=0, error=WorkloadError)
        return HyperErlang(self.order, self.rate_1 / factor, self.rate_2 / factor, self.p)

    def pdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Probability density at `x`; same shape as `x`."""
        paths = (scipy.stats.gamma(self.order, scale=1 / rate) for rate in (self.rate_1, self.rate_2))
        first, second = (path.pdf(x) for path in paths)
        return np.asarray(self.p * first + (1 - self.p) * second, np.float64)

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Probability of a value up to `x`; same shape as `x`."""
        positive: NDArray[Any] = np.maximum(x, 0)
        first = scipy.special.gammainc(self.order, self.rate_1 * positive)
        second = scipy.special.gammainc(self.order, self.rate_2 * positive)
        return np.asarray(self.p * first + (1 - self.p) * second, np.float64)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw `size` independent values; shape (size,)."""
        rate = np.where(rng.random(size) < self.p, self.rate_1, self.rate_2)
        return rng.standard_gamma(self.order, size) / rate

"""What follows from the moments of a distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray


class Moments(ABC):
    """A distribution whose non-central moments are known."""

    @abstractmethod
    def moment(self, k: int) -> float:
        """Non-central moment E[X^k]."""

    def moments(self, k: int = 3) -> NDArray[np.float64]:
        """First k non-central moments, E[X] to E[X^k]; shape (k,)."""
        return np.array([self.moment(i) for i in range(1, k + 1)])

    @property
    def mean(self) -> float:
        """Mean, in the unit of the values."""
        return self.moment(1)

    @property
    def variance(self) -> float:
        """Variance, in the square of the mean's unit."""
        return self.moment(2) - self.mean**2

"""Units of both sides in one shape, and what each of them contributes to an estimate.

An estimate is a mean, a difference of means or a ratio of means, where means are weighted. The jackknife
makes all of them a plain mean of *pseudo-values*, one a unit: n times the estimate less n - 1 times the
estimate without the unit (Miller, "The jackknife - a review", Biometrika 61, 1974).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import ConfigurationError

Floats = NDArray[np.float64]


class Side(NamedTuple):
    """Sums and weights of units on the last axis; both 0 where a unit is absent."""

    sums: Floats
    weights: Floats

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which units there are."""
        return self.weights > 0

    @property
    def units(self) -> Floats:
        """Value of each unit; NaN where it is absent."""
        return divide(self.sums, self.weights)

    @property
    def value(self) -> Floats:
        """Weighted mean over the units; NaN without any."""
        return divide(self.sums.sum(axis=-1), self.weights.sum(axis=-1))

    @property
    def without(self) -> Floats:
        """Weighted mean over the other units, for each unit; NaN where there is no other."""
        weights = self.weights.sum(axis=-1, keepdims=True) - self.weights
        others = np.count_nonzero(self.weights, axis=-1)[..., np.newaxis] - self.present
        return divide(self.sums.sum(axis=-1, keepdims=True) - self.sums, np.where(others > 0, weights, 0.0))

    def pseudo_values(self, is_log: NDArray[np.bool_]) -> Floats:
        """What each unit contributes to the mean, less the mean of that; 0 where a unit is absent.

        Parameters
        ----------
        is_log : bool array
            Where the logarithm of the mean is estimated rather than the mean.
        """
        present = self.present
        number = np.count_nonzero(present, axis=-1, keepdims=True)
        without = self.without
        scaled = np.where(is_log[..., np.newaxis], logarithm(without), without)
        points = np.where(present & ~np.isnan(scaled), -(number - 1.0) * scaled, 0.0)
        centre = points.sum(axis=-1, keepdims=True) / np.maximum(number, 1)
        return np.where(present, points - centre, 0.0)

    def merged(self, edges: NDArray[np.int64]) -> Side:
        """Sides whose units are runs of consecutive units, which begin at these."""
        return Side(*(np.add.reduceat(part, edges, axis=-1) for part in self))


def sides(
    values: ArrayLike,
    reference: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reference_weights: ArrayLike | None = None,
) -> tuple[Side, Side]:
    """Both sides in one shape, without the units that one of them lacks; 0 as reference where there is none.

    Parameters
    ----------
    values, reference : array_like
        Units on the last axis, NaN where absent; the other axes broadcast.
    weights, reference_weights : array_like, optional
        Number of jobs behind each unit; a unit of weight 0 or NaN is absent. By default all count alike. The
        reference has the weights of the values where it has none of its own.

    Raises
    ------
    ConfigurationError
        If there is no axis of units, a number is infinite, a weight negative, or shapes do not fit.
    """
    compared = {
        "reference": reference,
        "reference_weights": weights if reference_weights is None else reference_weights,
    }
    given = {"values": values, "weights": weights, **({} if reference is None else compared)}
    arrays = {name: _array(name, part) for name, part in given.items() if part is not None}
    lengths = {name: part.shape[-1] for name, part in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length} of the {name}" for name, length in lengths.items())
        raise ConfigurationError(f"units on the last axis: {found}; give the same units of each")
    try:
        shape = np.broadcast_shapes(*(part.shape for part in arrays.values()))
    except ValueError:
        found = ", ".join(f"{name} {part.shape}" for name, part in arrays.items())
        raise ConfigurationError(f"shapes do not broadcast: {found}") from None
    parts = {name: np.broadcast_to(part, shape) for name, part in arrays.items()}
    present = np.logical_and.reduce(
        [part > 0 if name.endswith("weights") else ~np.isnan(part) for name, part in parts.items()]
    )

    def side(name: str, by: str) -> Side:
        counted = np.where(present, parts.get(by, 1.0), 0.0)
        return Side(np.where(present, parts[name], 0.0) * counted, counted)

    left = side("values", "weights")
    if reference is None:
        return left, Side(np.zeros_like(left.sums), left.weights)
    return left, side("reference", "reference_weights")


def _array(name: str, values: ArrayLike) -> Floats:
    data = np.asarray(values, np.float64)
    if not data.ndim:
        raise ConfigurationError(f"{name}: a single number; give an array with the units on the last axis")
    if np.isinf(data).any():
        raise ConfigurationError(f"{name}: {int(np.isinf(data).sum())} infinite units; give numbers or NaN")
    if name.endswith("weights") and (data < 0).any():
        raise ConfigurationError(f"{name}: {data[data < 0][0]:g}; numbers of jobs are not negative")
    return data


def divide(left: Floats, right: Floats) -> Floats:
    """Quotients, NaN where the divisor is 0."""
    usable = right != 0
    return np.where(usable, left / np.where(usable, right, 1.0), np.nan)


def logarithm(values: Floats) -> Floats:
    """Natural logarithms, NaN of what is not positive."""
    positive = values > 0
    return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)

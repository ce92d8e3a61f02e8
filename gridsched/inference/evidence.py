"""What an interval and a probability are made from, so that the two never contradict each other.

Means of what cannot be negative, and ratios of them, are estimated on the scale of the logarithm: their
errors come from the jackknife of the logarithm, bounds from Student's t with two degrees of freedom less than
there are units. One that is lost accounts for skewness that the logarithm leaves; see ``docs/statistics.md``.
A difference of two such means has as bounds the smallest and largest difference in the ellipse of those
logarithms that lie at most t errors off. It touches 0 when the interval of the ratio touches 1: the two have
the same test. Means that may have either sign have the plain t interval.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import check_choice, check_number
from gridsched.inference.serial import BLOCKS, FEWEST_BLOCKS, corrected, dependence, in_blocks
from gridsched.inference.units import Floats, Side, divide, logarithm, sides

Form = Literal["difference", "ratio"]

Relaxations = tuple[ArrayLike | None, ArrayLike | None]
"""How many times the memory of its queue the log holds, on both sides."""

FEWEST = 5
"""Replicates that an interval needs."""

IDENTICAL = "identical in all"
"""How the reason begins where there is nothing to estimate: all units, or both sides, are identical."""

_SCATTER = 1.0
"""Standard error of a logarithm above which bounds would be further apart than is of use."""

_ROUNDING = 1e-12
_ANGLES = 64


Spread = tuple[Floats, Floats, Floats]
"""Ellipse of the logarithms of two means: standard errors along its half axes in triangular form."""


class Evidence(NamedTuple):
    """An estimate on the scale of its test."""

    value: Floats
    """The estimate, on its own scale."""
    centre: Floats
    """What is 0 if there is no effect: the estimate, or its logarithm."""
    error: Floats
    """Standard error of the centre."""
    freedom: Floats
    """Degrees of freedom."""
    is_log: NDArray[np.bool_]
    number: NDArray[np.int64]
    reason: NDArray[Any]
    identical: NDArray[np.bool_]
    """Where the estimate is the same without any unit."""
    copies: NDArray[np.bool_]
    """Where the units themselves are all the same, so that nothing is known of what would vary."""
    ellipse: tuple[tuple[Floats, Floats], Spread] | None = None
    """Logarithms of both means, and how far these may be off, where their difference is estimated."""

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Bounds at a nominal coverage, on the scale of the estimate."""
        from scipy.special import stdtrit  # takes long to load, and simulations do without

        check_number("confidence", confidence, above=0, below=1)
        reach = stdtrit(self.freedom, 0.5 + confidence / 2)
        low, high = self.centre - reach * self.error, self.centre + reach * self.error
        if self.ellipse is not None:
            found = _extremes(*self.ellipse, reach)
            low, high = (np.where(self.is_log, *each) for each in zip(found, (low, high), strict=True))
        else:
            with np.errstate(over="ignore"):
                low, high = (np.where(self.is_log, np.exp(bound), bound) for bound in (low, high))
        valid = self.reason == ""
        low, high = (np.where(valid, bound, np.nan) for bound in (low, high))
        return np.where(self.identical, self.value, low), np.where(self.identical, self.value, high)

    def probability(self) -> Floats:
        """Two-sided probability of an estimate this far from no effect; NaN where it is not estimable."""
        from scipy.special import stdtr

        effect = 2 * stdtr(self.freedom, -np.abs(divide(self.centre, self.error)))
        exact = np.where(np.abs(self.centre) <= _ROUNDING, 1.0, np.where(self.copies, np.nan, 0.0))
        return np.where(self.identical, exact, np.where(self.reason == "", effect, np.nan))


class _Moments(NamedTuple):
    """Variances and covariance of the estimates of both sides, and the variance of what is compared."""

    first: Floats
    both: Floats
    second: Floats
    apart: Floats
    freedom: Floats
    reason: NDArray[Any]


def of_mean(
    values: ArrayLike,
    weights: ArrayLike | None,
    *,
    serial: bool,
    signed: bool,
    relaxations: ArrayLike | None = None,
) -> Evidence:
    """Evidence of a mean; `signed` if it may be negative although no unit is."""
    left, nothing = sides(values, None, weights)
    is_log = np.asarray(~((left.sums < 0).any(axis=-1) | signed))
    moments = _moments((left, nothing), is_log, (1.0, 0.0), serial=serial, relaxations=(relaxations, None))
    centre = np.where(is_log, logarithm(left.value), left.value)
    return _evidence("mean", left.value, centre, moments, is_log, (left,), serial=serial)


def of_pair(
    form: Form,
    values: ArrayLike,
    reference: ArrayLike,
    weights: ArrayLike | None,
    reference_weights: ArrayLike | None,
    *,
    serial: bool,
    relaxations: Relaxations = (None, None),
) -> Evidence:
    """Evidence of a paired difference or ratio."""
    check_choice("form", form, get_args(Form))
    left, right = both = sides(values, reference, weights, reference_weights)
    negative = (left.sums < 0).any(axis=-1) | (right.sums < 0).any(axis=-1)
    one, other = left.value, right.value
    if form == "ratio":
        value, is_log = divide(one, other), np.ones(np.shape(one), np.bool_)
        moments = _moments(both, is_log, (1.0, 1.0), serial=serial, relaxations=relaxations)
        why = np.where(negative, "a ratio needs values that are not negative", moments.reason)
        moments = moments._replace(reason=why)
    else:
        value, is_log = one - other, np.asarray((one > 0) & (other > 0) & ~negative)
        scales = (np.where(is_log, mean, 1.0)[..., np.newaxis] for mean in (one, other))
        moments = _moments(both, is_log, tuple(scales), serial=serial, relaxations=relaxations)
    logarithms = logarithm(one), logarithm(other)
    centre = np.where(is_log, logarithms[0] - logarithms[1], value)
    found = _evidence(form, value, centre, moments, is_log, both, serial=serial)
    if form == "ratio":
        return found
    along = np.sqrt(moments.first)
    shared = np.nan_to_num(divide(moments.both, along))
    rest = np.sqrt(np.maximum(moments.second - shared**2, 0.0))
    return found._replace(ellipse=(logarithms, (along, shared, rest)))


def _moments(
    both: tuple[Side, Side],
    is_log: NDArray[np.bool_],
    scales: tuple[Any, ...],
    *,
    serial: bool,
    relaxations: Relaxations,
) -> _Moments:
    """How far the estimates of both sides may be off.

    Of blocks the dependence is that of the quantity that is estimated: the first side less the second, each
    in proportion to its scale.
    """

    def points(parts: tuple[Side, Side]) -> tuple[Floats, Floats]:
        return parts[0].pseudo_values(is_log), parts[1].pseudo_values(is_log)

    def quantity(first: Floats, second: Floats) -> Floats:
        return np.asarray(first * scales[0] - second * scales[1])

    present = both[0].present
    number = np.count_nonzero(present, axis=-1)
    if not serial:
        reason = np.full(np.shape(number), "", object)
        return _moments_of(*points(both), np.ones(np.shape(number)), number, reason)
    fine = dependence(quantity(*points(both)), present)
    found = []
    for size in BLOCKS:
        edges = in_blocks(present.shape[-1], size)
        long = both[0].merged(edges), both[1].merged(edges)
        first, second = points(long)
        inflation, reason = corrected(quantity(first, second), long[0].present, fine, number, relaxations)
        counted = np.count_nonzero(long[0].present, axis=-1)
        found.append(_moments_of(first, second, inflation, counted, reason))
    # of a mean the second side is 0, so that what is apart is the first
    return _wider(*found)


def _moments_of(
    first: Floats, second: Floats, inflation: Floats, number: NDArray[np.int64], reason: NDArray[Any]
) -> _Moments:
    """Moments of centred pseudo-values that are 0 where absent."""
    scale = inflation / np.maximum(number * (number - 1.0), 1.0)
    return _Moments(
        scale * (first * first).sum(axis=-1),
        scale * (first * second).sum(axis=-1),
        scale * (second * second).sum(axis=-1),
        scale * ((first - second) ** 2).sum(axis=-1),
        np.maximum(number - 2.0, 1.0),
        reason,
    )


def _wider(one: _Moments, other: _Moments) -> _Moments:
    """Of two estimates of the same the one with the wider interval."""
    from scipy.special import stdtrit

    widths = [stdtrit(each.freedom, 0.975) ** 2 * each.apart for each in (one, other)]
    wider = [np.where(widths[0] > widths[1], *parts) for parts in zip(one[:-1], other[:-1], strict=True)]
    return _Moments._make([*wider, np.where(one.reason == "", other.reason, one.reason)])


def _evidence(
    form: Literal["mean"] | Form,
    value: Floats,
    centre: Floats,
    moments: _Moments,
    is_log: NDArray[np.bool_],
    sides: tuple[Side, ...],
    *,
    serial: bool,
) -> Evidence:
    """Evidence with the reasons that are the same for all."""
    name, fewest = ("blocks", FEWEST_BLOCKS) if serial else ("replicates", FEWEST)
    error = np.sqrt(moments.apart)
    number = np.count_nonzero(sides[0].present, axis=-1)
    undefined = np.zeros(np.shape(value), np.bool_)
    copies, size = np.ones(np.shape(value), np.bool_), np.zeros(np.shape(value))
    for side in sides:
        undefined |= is_log & (side.present & ~(side.without > 0)).any(axis=-1)
        copies &= _extent(side.units) <= _ROUNDING * np.abs(side.value)
        size = np.maximum(size, np.abs(np.where(is_log, 1.0, side.value)))
    identical = (number > 1) & ~np.isnan(value) & (copies | (~undefined & (error <= _ROUNDING * size)))
    few = [
        f"{count} {name if count > 1 else name.removesuffix('s')}; at least {fewest} are needed"
        for count in range(fewest)
    ]
    # of several reasons the first one is given
    reasons: list[tuple[Any, Any]] = [
        (number == 0, f"no {name}"),
        (np.isnan(value), "the reference is 0"),
        (identical & ((form == "mean") | (np.abs(centre) <= _ROUNDING)), f"{IDENTICAL} {name}"),
        (identical, f"the same {form} in all {name}"),
        (number < fewest, np.array(few, object)[np.minimum(number, fewest - 1)]),
        (moments.reason != "", moments.reason),
        (undefined, f"too few {name} above 0"),
        (is_log & (error > _SCATTER), f"the {name} scatter too much"),
    ]
    reason = np.select([where for where, _ in reasons], [why for _, why in reasons], "")
    return Evidence(
        np.asarray(value),
        np.asarray(centre),
        np.asarray(error),
        np.asarray(moments.freedom),
        is_log,
        np.asarray(number),
        np.asarray(reason, object),
        np.asarray(identical),
        np.asarray(copies),
    )


def _extremes(logarithms: tuple[Floats, Floats], spread: Spread, reach: Floats) -> tuple[Floats, Floats]:
    """Smallest and largest difference of two means whose logarithms lie in an ellipse.

    On its edge the difference is a smooth function of one angle: the best of some angles, then Newton's
    steps.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        one, other = (each[..., np.newaxis] for each in logarithms)
        along, shared, rest = (reach[..., np.newaxis] * each[..., np.newaxis] for each in spread)

        def at(angle: Floats) -> tuple[Floats, Floats, Floats]:
            cosine, sine = np.cos(angle), np.sin(angle)
            first, second = along * cosine, shared * cosine + rest * sine
            slopes = -along * sine, rest * cosine - shared * sine
            left, right = np.exp(one + first), np.exp(other + second)
            value = left - right
            slope = left * slopes[0] - right * slopes[1]
            bend = left * (slopes[0] ** 2 - first) - right * (slopes[1] ** 2 - second)
            return value, slope, bend

        angles = np.linspace(0.0, 2 * np.pi, _ANGLES, endpoint=False)
        values = at(angles)[0]
        bounds = []
        for place, better in ((values.argmin(axis=-1), np.fmin), (values.argmax(axis=-1), np.fmax)):
            angle = angles[place][..., np.newaxis]
            best = at(angle)[0]
            for _ in range(6):
                _, slope, bend = at(angle)
                angle = angle - np.clip(np.nan_to_num(divide(slope, bend)), -0.1, 0.1)
                best = better(best, at(angle)[0])
            bounds.append(best[..., 0])
    return bounds[0], bounds[1]


def _extent(units: Floats) -> Floats:
    """Largest less smallest of what is known; infinite without anything."""
    high = np.fmax.reduce(units, axis=-1, initial=-np.inf)
    # without anything -inf less inf
    return np.asarray(np.abs(high - np.fmin.reduce(units, axis=-1, initial=np.inf)))

"""Forecasts that are corrected by the outcomes of earlier ones: conformal regression, followed online.

Each quantile of the time until a start is moved by a factor such that, among earlier forecasts with about the
same quantile whose outcome is known, the share of jobs that started before it was what its level says. This
is the conformal correction of Romano, Patterson and Candes ("Conformalized quantile regression", NeurIPS
2019), one-sided at each level, on the logarithm of the time, and local as that of Guan ("Localized conformal
prediction", Biometrika 110(1), 2023). It holds for whatever made the quantiles, however wrong they are, as
long as the next forecasts err like those before; it makes them honest, not sharp.

Of a job that still waits it is known only that it has not started yet. Its forecast is censored at that time:
the share of jobs that start before a quantile is that of Kaplan and Meier ("Nonparametric estimation from
incomplete observations", Journal of the American Statistical Association 53(282), 1958). To leave such jobs
out, or to let them start now, would make long waits look rare.

The next forecasts do not err like those before where a site changes. So both ends of the intervals are
followed: one that was missed more often than its level says is moved outwards, one that was missed less often
inwards (quantile tracking: Angelopoulos, Candes and Tibshirani, "Conformal PID control for time series
prediction", NeurIPS 2023, section 2.1). In the long run the share of misses is then what it should be,
whatever the site does. An end counts as held or missed as soon as this is known: at the start of the job, or
when the job waits beyond it.

Where the policy is not known well, what earlier jobs have waited tells more than the queue does. So a
forecast can be one between two: at each level the weighted mean of the logarithms of both quantiles, with the
weight that would have been best for the earlier forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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

LATEST = 1000
"""How many of the last forecasts a correction comes from."""

LAG = 2 * 86400
"""Seconds that a forecast is old at least before its score counts; a job that still waits starts then."""

WEIGHTS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Weights of a forecast against the other one that are tried."""

MISS = 0.2
"""What an interval of 80 % leaves out."""

PACE = 0.2
"""How far an end moves, as a logarithm, for each instant at which all jobs missed it; see `follow`."""

FARTHEST = 1.5
"""How far ends of learned forecasts are moved at most, as a logarithm: a factor of 4.5. Without this bound
bursts of misses, which are known days later, made intervals a hundred times as long on some logs."""

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
        Seconds: no quantile is moved beyond twice the longest outcome that was known, and one beyond all
        futures is there.
    followed : tuple of float
        How far the lower and the upper end are moved outwards besides, as logarithms; levels between an end
        and the median are moved in proportion.
    """

    place: NDArray[np.float64]
    shift: NDArray[np.float64]
    forecasts: int
    weight: float = 1.0
    longest: float = np.inf
    followed: tuple[float, float] = (0.0, 0.0)

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
        issued = _between(_bounded(remaining, self.longest), other, self.weight)
        moved = np.empty_like(issued)
        low, high = self.followed
        outwards = np.interp(LEVELS, (LEVELS[LOW], 0.5, LEVELS[HIGH]), (-low, 0.0, high))
        for level in range(len(LEVELS)):
            moved[:, level] = issued[:, level] + np.interp(
                issued[:, level], self.place[level], self.shift[level]
            )
        moved += outwards
        seconds = (
            np.exp(np.minimum(moved, np.maximum(issued, np.log(2 * self.longest + SOFTENING)))) - SOFTENING
        )
        if not np.isfinite(self.longest):
            seconds = np.where(np.isfinite(remaining), seconds, np.inf)
        return np.maximum.accumulate(np.maximum(seconds, 0.0), axis=1)


@dataclass(frozen=True, eq=False)
class IssuedForecasts:
    """Forecasts that were made, in order of time, and their outcomes.

    Parameters
    ----------
    now : int64[n]
        When each was made, seconds.
    remaining : float64[n, 19]
        Quantiles of the time until the start, seconds, at `LEVELS`.
    truth : float64[n]
        The time until the start, seconds.
    other : float64[n, 19], optional
        Quantiles of another forecast that the first can be mixed with.
    """

    now: NDArray[np.int64]
    remaining: NDArray[np.float64]
    truth: NDArray[np.float64]
    other: NDArray[np.float64] | None = None

    def apply(self, fitted: Adjustment, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Corrected quantiles of some of them."""
        return fitted.apply(self.remaining[rows], None if self.other is None else self.other[rows])

    def fit(self, moment: int, most: int = LATEST) -> Adjustment:
        """Correction by the last forecasts that were made before a time, as far as their outcome was known.

        Parameters
        ----------
        moment : int
            The time, seconds.
        most : int
            How many forecasts at most.

        Returns
        -------
        Adjustment
            The one of the best interval score of 80 % for these forecasts; of no effect where there are too
            few to tell.
        """
        known = np.flatnonzero(self.now < moment)[-most:]
        if len(known) < LEAST:
            return unmoved(len(known))
        age = (moment - self.now[known]).astype(np.float64)
        waited = np.minimum(self.truth[known], age)
        waits = self.truth[known] > age
        remaining = _bounded(self.remaining[known], float(waited.max()))
        other = None if self.other is None else self.other[known]
        weights = WEIGHTS if other is not None else (1.0,)
        tried = [_fitted(_between(remaining, other, each), waited, waits, each) for each in weights]
        if other is None:
            return tried[0]
        old = age >= LAG
        scores = [interval_score(each.apply(remaining[old], other[old]), waited[old]).sum() for each in tried]
        return tried[int(np.argmin(scores))]

    def unmoved(self, moment: int) -> Adjustment:
        """What moves no level, with the longest outcome that was known at a time."""
        known = self.now < moment
        waited = np.minimum(self.truth[known], moment - self.now[known])
        return unmoved(len(waited), float(waited.max(initial=0.0)))


def unmoved(forecasts: int = 0, longest: float = np.inf) -> Adjustment:
    """A correction that moves no level."""
    nothing = np.zeros((len(LEVELS), 1))
    return Adjustment(nothing, nothing, forecasts, longest=longest)


def follow(
    issued: IssuedForecasts, until: int, *, renewals: int, conformal: bool = True
) -> tuple[NDArray[np.float64], Adjustment]:
    """Correct each forecast by those before it, as their outcomes become known.

    Parameters
    ----------
    issued : IssuedForecasts
        The forecasts.
    until : int
        A time after all of them, seconds.
    renewals : int
        How often the correction is recomputed, after equal numbers of instants.
    conformal : bool
        Whether all levels are moved to what they should have been, before the ends are followed. If not, as
        for learned forecasts, ends are moved by `FARTHEST` at most.

    Returns
    -------
    quantiles : float64[n, 19]
        Corrected quantiles, seconds; the forecasts themselves where too few were known.
    adjustment : Adjustment
        The correction at that time.
    """
    moments, number = np.unique(issued.now, return_inverse=True)
    step = max(1, -(-len(moments) // renewals))
    size = np.bincount(number)
    fit, farthest = (issued.fit, np.inf) if conformal else (issued.unmoved, FARTHEST)
    made = issued.remaining.copy()
    followed = np.zeros(2)
    open_ends = np.zeros((len(issued.now), 2), bool)
    for part, moment in enumerate([*moments[::step].tolist(), until]):
        followed += _moves(issued, moment, made, open_ends, number, size)
        followed = np.clip(followed, -farthest, farthest)
        fitted = replace(fit(moment), followed=(float(followed[0]), float(followed[1])))
        rows = np.flatnonzero(number // step == part)
        if fitted.forecasts >= LEAST:
            made[rows] = issued.apply(fitted, rows)
            open_ends[rows] = True
    return made, fitted


def _moves(
    issued: IssuedForecasts,
    moment: int,
    made: NDArray[np.float64],
    open_ends: NDArray[np.bool_],
    number: NDArray[np.int64],
    size: NDArray[np.int64],
) -> NDArray[np.float64]:
    """How far both ends are moved at a time; ends of which is known enough are no longer open.

    `number` is the instant of each forecast, and `size` how many were made at each.
    """
    moves = np.zeros(2)
    for side, column in enumerate((LOW, HIGH)):
        end = made[:, column]
        seen = np.flatnonzero(open_ends[:, side] & (issued.now + np.minimum(issued.truth, end) < moment))
        missed = issued.truth[seen] < end[seen] if side == 0 else issued.truth[seen] > end[seen]
        moves[side] = PACE * ((missed - MISS / 2) / size[number[seen]]).sum()
        open_ends[seen, side] = False
    return moves


def _fitted(
    issued: NDArray[np.float64], waited: NDArray[np.float64], waits: NDArray[np.bool_], weight: float
) -> Adjustment:
    """Correction of forecasts, logarithms, of jobs of which some still wait."""
    count = len(waited)
    window = max(LEAST, int(_NEIGHBOURS * count))
    first = np.unique(np.linspace(0, count - window, KNOTS).astype(np.int64))
    true = logarithm(waited)
    places, shifts = [], []
    for column, level in enumerate(LEVELS):
        order = np.argsort(issued[:, column], kind="stable")
        near = order[first[:, np.newaxis] + np.arange(window)]
        places.append(np.median(issued[near, column], axis=1))
        shifts.append(censored_quantile(true[near] - issued[near, column], waits[near], float(level)))
    return Adjustment(np.array(places), np.array(shifts), count, weight, float(waited.max()))


def censored_quantile(
    values: NDArray[np.float64], censored: NDArray[np.bool_], level: float
) -> NDArray[np.float64]:
    """Quantile of each row, of which some values are only known to be larger, by Kaplan and Meier.

    Parameters
    ----------
    values : float64[r, n]
        What is known.
    censored : bool[r, n]
        Where the true value is larger, nobody knows by how much.
    level : float
        Above 0 and below 1.

    Returns
    -------
    float64[r]
        The smallest value at which the estimated distribution function reaches the level; the largest one
        where it does not.
    """
    count = values.shape[1]
    # of equal values those that are censored are larger
    order = np.lexsort((censored, values), axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    left = np.arange(count, 0, -1)
    beyond = np.cumprod(np.where(np.take_along_axis(censored, order, axis=1), 1.0, 1.0 - 1.0 / left), axis=1)
    # without censoring this is k / n, up to rounding
    reached = 1.0 - beyond >= level - 1e-9
    place = np.where(reached.any(axis=1), reached.argmax(axis=1), count - 1)
    return np.asarray(ordered[np.arange(len(values)), place])


def _bounded(remaining: NDArray[np.float64], longest: float) -> NDArray[np.float64]:
    """Quantiles of which those beyond all futures are twice the longest outcome that was known."""
    return np.where(np.isfinite(remaining), remaining, 2 * longest)


def _between(
    remaining: NDArray[np.float64], other: NDArray[np.float64] | None, weight: float
) -> NDArray[np.float64]:
    """Logarithms of the quantiles between those of two forecasts."""
    if other is None or weight == 1.0:
        return logarithm(remaining)
    return weight * logarithm(remaining) + (1.0 - weight) * logarithm(other)


def mixed(remaining: NDArray[np.float64], other: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Quantiles between those of two forecasts [s]; the first ones where others are beyond all futures."""
    made = np.exp(_between(remaining, other, weight)) - SOFTENING
    return np.where(np.isfinite(other) & (weight < 1.0), made, remaining)


def best_weight(
    remaining: NDArray[np.float64], other: NDArray[np.float64], truth: NDArray[np.float64]
) -> float:
    """Weight of the first of two forecasts, of `WEIGHTS`, by the score of 80 % intervals of logarithms."""
    tried = (logarithm(mixed(remaining, other, each)) for each in WEIGHTS)
    return WEIGHTS[int(np.argmin([interval_score(each, logarithm(truth)).mean() for each in tried]))]


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

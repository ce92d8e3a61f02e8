"""Waits that are learned from earlier forecasts: a forest of randomised trees for all quantiles.

Extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63(1), 2006) learn the logarithm of
the time until the start from `gridsched.forecasting.features`, simulated futures among them. A forecast is
the distribution of the outcomes in the leaves that a job falls into, as in the quantile regression forests of
Meinshausen (Journal of Machine Learning Research 7, 2006).

Of a job that still waits it is not known when it starts. To leave it out would make long waits look rare. So
each known outcome is weighted by the inverse of the share of forecasts that are old enough for such a wait to
be known (inverse probability of censoring: Robins and Rotnitzky, in AIDS Epidemiology, 1992).

Forecasts of the past are made by forests that had learned only what was known before them, mixed with the
simulated futures as had the best interval score up to then. The ends of their intervals are followed as in
`gridsched.forecasting.adjustment.follow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.forecasting.adjustment import (
    LEAST,
    LEVELS,
    Adjustment,
    IssuedForecasts,
    best_weight,
    follow,
    logarithm,
    mixed,
)

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor

ROUNDS = 12
"""Parts of the past; a forest is trained anew for each."""

TREES = 30
"""Trees of a forest."""

LEAF = 10
"""Outcomes that a leaf has at least."""

_RAREST = 0.02
"""Least share of old forecasts by whose inverse an outcome is weighted."""

_BATCH = 500


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees that tell which earlier outcomes a job is like.

    Parameters
    ----------
    trees : ExtraTreesRegressor
        Fitted to the logarithms of the outcomes.
    outcome : float64[n]
        The outcomes, increasing, seconds.
    share : sparse float64[leaves, n]
        What each outcome has of the weight of each leaf.
    """

    trees: ExtraTreesRegressor
    outcome: NDArray[np.float64]
    share: Any

    def quantiles(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of the time until the start at `LEVELS`, seconds, of jobs with these features."""
        leaves = _leaves(self.trees, matrix)
        made = np.empty((len(matrix), len(LEVELS)))
        for first in range(0, len(matrix), _BATCH):
            rows = slice(first, first + _BATCH)
            reached = np.cumsum((leaves[rows] @ self.share).toarray(), axis=1)
            reached /= reached[:, -1:]
            places = [np.searchsorted(row, LEVELS) for row in reached]
            made[rows] = self.outcome[np.minimum(places, len(self.outcome) - 1)]
        return made


def fit(matrix: NDArray[np.float64], waited: NDArray[np.float64], age: NDArray[np.float64]) -> Forest | None:
    """Learn from forecasts of which some outcomes are known.

    Parameters
    ----------
    matrix : float64[n, m]
        Features when they were made.
    waited : float64[n]
        Time until the start, seconds; beyond `age` it is not looked at.
    age : float64[n]
        How long ago each was made, seconds.

    Returns
    -------
    Forest or None
        None where too few outcomes are known.
    """
    from scipy import sparse
    from sklearn.ensemble import ExtraTreesRegressor

    known = np.flatnonzero(waited <= age)
    if len(known) < LEAST:
        return None
    known = known[np.argsort(waited[known], kind="stable")]
    outcome = waited[known]
    old_enough = 1.0 - np.searchsorted(np.sort(age), outcome) / len(age)
    weight = 1.0 / np.maximum(old_enough, _RAREST)
    trees = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, max_features=1.0, random_state=0)
    trees.fit(matrix[known], logarithm(outcome), sample_weight=weight)
    weighted = sparse.diags_array(weight) @ _leaves(trees, matrix[known])
    total = np.asarray(weighted.sum(axis=0)).ravel()
    share = weighted @ sparse.diags_array(1.0 / np.where(total > 0, total, 1.0))
    return Forest(trees, outcome, share.T.tocsr())


def walk(
    now: NDArray[np.int64],
    matrix: NDArray[np.float64],
    futures: NDArray[np.float64],
    truth: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Forecasts of the past, each by what was known before: of a forest, and of simulated futures.

    Parameters
    ----------
    now : int64[n]
        When each forecast is made, increasing, seconds.
    matrix : float64[n, m]
        Features at that time.
    futures : float64[n, 19]
        Quantiles at `LEVELS` in simulated futures, seconds.
    truth : float64[n]
        Time until the start, seconds; infinite where it is not known yet.

    Returns
    -------
    made : float64[n, 19]
        Quantiles, seconds; not a number where too little was known.
    of_forests : float64[n, 19]
        Those of the forests alone.
    """
    made, of_forests = np.full((2, len(now), len(LEVELS)), np.nan)
    moments = np.unique(now)
    for part in np.array_split(moments, ROUNDS)[1:]:
        if not len(part):
            continue
        before, rows = now < part[0], (now >= part[0]) & (now <= part[-1])
        age = (part[0] - now[before]).astype(np.float64)
        forest = fit(matrix[before], truth[before], age)
        if forest is not None:
            weight = weight_of_forests(of_forests[before], futures[before], truth[before], age)
            of_forests[rows] = forest.quantiles(matrix[rows])
            made[rows] = mixed(of_forests[rows], futures[rows], weight)
    return made, of_forests


def weight_of_forests(
    of_forests: NDArray[np.float64],
    futures: NDArray[np.float64],
    truth: NDArray[np.float64],
    age: NDArray[np.float64],
) -> float:
    """Weight of forests beside simulated futures, by earlier forecasts with known outcomes.

    It is 1 on recorded starts of most sites, whose waits have reasons that a policy does not know, and less
    where the policy of the futures is the cluster's.
    """
    known = np.isfinite(of_forests[:, 0]) & (truth <= age)
    if known.sum() < LEAST:
        return 1.0
    return best_weight(of_forests[known], futures[known], truth[known])


def followed(
    now: NDArray[np.int64], made: NDArray[np.float64], truth: NDArray[np.float64], until: int
) -> tuple[NDArray[np.float64], Adjustment]:
    """Forecasts of the past with the ends of their intervals followed, and how far they are moved at a time.

    Parameters
    ----------
    now, made, truth
        As in `walk`, and what it returns.
    until : int
        The time, seconds.
    """
    learned = np.isfinite(made[:, 0])
    issued = IssuedForecasts(now[learned], made[learned], truth[learned])
    moved = made.copy()
    renewals = len(np.unique(issued.now))
    moved[learned], last = follow(issued, until, renewals=max(renewals, 1), conformal=False)
    return moved, last


def _leaves(trees: ExtraTreesRegressor, matrix: NDArray[np.float64]) -> Any:
    """Which leaf of each tree jobs are in: sparse float64[n, leaves], the leaves of all trees in a row."""
    from scipy import sparse

    counts = [each.tree_.node_count for each in trees.estimators_]
    place = trees.apply(matrix) + (np.cumsum(counts) - counts)
    count, several = place.shape
    pointers = np.arange(0, count * several + 1, several)
    return sparse.csr_array((np.ones(place.size), place.ravel(), pointers), (count, sum(counts)))

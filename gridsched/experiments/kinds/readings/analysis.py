"""Analysis of verdicts: how robust claims are, which choices matter, when claims hold, which contradict.

All functions take plain arrays: the *design* has a row a reading and a column a choice, with the place of the
value; *outcomes* have a row a reading and a column a claim (`NOT`, `PARTLY`, `REPRODUCED`, or `UNKNOWN` where
a claim could not be judged).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.preprocessing import OneHotEncoder

from gridsched.inference import holm, mean

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Parts = dict[int, tuple[int, ...]]
"""Places of the values of each choice that a condition names."""

UNKNOWN, NOT, PARTLY, REPRODUCED = -1, 0, 1, 2
"""Outcomes of a claim under a reading."""

ROBUST, CONTRADICTED = 0.9, 0.05
"""Shares of readings from which on, and up to which, a claim is called so."""

CLASSES = ("robust", "contingent", "contradicted")
"""What claims are called, from the largest share of readings that reproduce them to the smallest."""


def robustness(share: Floats | float) -> NDArray[np.str_]:
    """What claims are called that these shares of the readings reproduce; nothing where none was judged."""
    return np.select(
        [share >= ROBUST, share <= CONTRADICTED, np.isfinite(share)],
        ["robust", "contradicted", "contingent"],
        "",
    )


# --- which choice matters -------------------------------------------------------------------------

TREES = 40
FOLDS = 5
REPEATS = 4


def importance(design: Integers, holds: Flags, seed: int = 1) -> Floats:
    """Importance of each choice: by how much a forest predicts a claim worse once its values are permuted.

    Extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006) learn the outcome from
    a part of the readings. On the others the share of correct predictions, the mean of the shares of either
    outcome, falls by the importance when the column of a choice is permuted (Breiman, Machine Learning 45,
    2001). It is 0 for a choice without effect and at most 0.5 for one that decides alone.

    Parameters
    ----------
    design : int64[n, k]
        Readings.
    holds : bool[n]
        Whether the claim holds; both outcomes occur.
    seed : int
        Of folds, forests and permutations.

    Returns
    -------
    float64[3, k]
        Mean over folds and permutations, and the bounds of its interval over the folds: 95 % for all choices
        together, by Bonferroni's correction. NaN where an outcome is too rare.
    """
    rng = np.random.default_rng(seed)
    encoder = OneHotEncoder(sparse_output=False)
    features = encoder.fit_transform(design)
    owner = np.repeat(np.arange(design.shape[1]), [len(values) for values in encoder.categories_])
    fold = np.empty(len(holds), np.int64)
    for outcome in (False, True):
        # Each fold has its share of either outcome
        own = rng.permutation(np.flatnonzero(holds == outcome))
        fold[own] = (np.arange(len(own)) + (FOLDS - 1) * outcome) % FOLDS
    drops = []
    for number in range(FOLDS):
        test = fold == number
        if all(len(np.unique(holds[part])) == 2 for part in (test, ~test)):
            trees = ExtraTreesClassifier(
                TREES, class_weight="balanced", random_state=seed, min_samples_leaf=2
            )
            forest = trees.fit(features[~test], holds[~test])
            drops.append(_drops(forest, features[test], owner, holds[test], rng))
    if not drops:
        return np.full((3, design.shape[1]), np.nan)
    found = mean(np.transpose(drops), signed=True, confidence=1 - 0.05 / design.shape[1])
    return np.where(np.isfinite(found.low), found[:3], np.nan)


def _drops(
    forest: ExtraTreesClassifier, features: Floats, owner: Integers, holds: Flags, rng: np.random.Generator
) -> Floats:
    """Mean fall of the accuracy when the columns of each choice are permuted together."""
    choices, rows = int(owner.max()) + 1, len(features)
    shuffled = np.tile(features, (1 + choices * REPEATS, 1, 1))
    for copy, choice in enumerate(np.repeat(np.arange(choices), REPEATS), 1):
        mine = owner == choice
        shuffled[copy][:, mine] = features[rng.permutation(rows)][:, mine]
    correct = forest.predict(shuffled.reshape(-1, features.shape[1])).reshape(-1, rows) == holds
    right = (correct[:, holds].mean(axis=1) + correct[:, ~holds].mean(axis=1)) / 2
    return np.asarray(right[0] - right[1:].reshape(choices, REPEATS).mean(axis=1), np.float64)


# --- when a claim holds ---------------------------------------------------------------------------

MAX_PARTS = 3
"""Choices that a condition names at most."""

LEVEL = 0.05
"""Probability of any significant condition among all claims if none depended on a choice."""

_CLEAR = 1e-4
"""Probability of a condition that stays significant among some hundred claims."""

_GAIN = 0.03
"""How much better a condition must be for one more choice in it."""


@dataclass(frozen=True)
class ClaimCondition:
    """Values of some choices under which a claim holds.

    Parameters
    ----------
    parts : tuple of (choice, places)
        Places of the values of each choice that is named.
    inside, outside : tuple of int
        Readings in which the claim holds, and all readings, that fulfil the condition and that do not; of
        those with which it is tested.
    tried : int
        Conditions among which it is the best in the readings with which it is tested; 1 where it was found
        with others.
    """

    parts: tuple[tuple[int, tuple[int, ...]], ...]
    inside: tuple[int, int]
    outside: tuple[int, int]
    tried: int = 1

    @property
    def probability(self) -> float:
        """Of the claim holding so much more often where it is fulfilled by chance alone: Fisher's exact test.

        Corrected (Bonferroni) for the conditions that were tried, and for the two ways of finding one.
        """
        table = [[met, count - met] for met, count in (self.inside, self.outside)]
        single = float(stats.fisher_exact(table, alternative="greater").pvalue)
        return min(1.0, 2 * self.tried * single)

    @property
    def is_sufficient(self) -> bool:
        """Whether the claim is robust where the condition is fulfilled."""
        return self.inside[1] > 0 and self.inside[0] >= ROBUST * self.inside[1]

    @property
    def is_necessary(self) -> bool:
        """Whether the claim is contradicted where the condition is not fulfilled."""
        return self.outside[1] > 0 and self.outside[0] <= CONTRADICTED * self.outside[1]


def condition(design: Integers, holds: Flags) -> ClaimCondition | None:
    """The condition that predicts best when a claim holds.

    One on up to three choices, found on every second reading and counted on the others. Where that is not
    clear, the best one on a single choice, counted on all readings and corrected for all such conditions.

    Returns
    -------
    ClaimCondition or None
        None where the claim holds in all readings or in none.
    """
    if not holds.any() or holds.all():
        return None
    known = [each for each in (_grown(design, holds), _on_one_choice(design, holds)) if each is not None]
    clear = [each for each in known if each.tried == 1 and each.probability < _CLEAR]
    return min(clear or known, key=lambda each: each.probability, default=None)


def significant(found: Sequence[ClaimCondition | None]) -> list[bool]:
    """Whether each condition is significant, corrected (Holm) for all claims that have one."""
    corrected = holm([np.nan if each is None else each.probability for each in found])
    return [bool(probability < LEVEL) for probability in corrected]


def _grown(design: Integers, holds: Flags) -> ClaimCondition | None:
    """A condition on several choices, found on every second reading and counted on the others.

    It grows by one choice at a time, with those of its values under which the claim holds most often, as long
    as the harmonic mean of two shares grows: how many readings that fulfil it reproduce the claim, and how
    many that reproduce the claim fulfil it.
    """
    half, held = design[::2], holds[::2]
    parts: Parts = {}
    for _ in range(MAX_PARTS):
        # of several as good ones, one that names fewer values
        best = max(
            _extended(half, held, parts),
            key=lambda one: (_merit(half, held, one), -sum(map(len, one.values()))),
            default=parts,
        )
        if _merit(half, held, best) < _merit(half, held, parts) + _GAIN:
            break
        parts = best
    return _counted(design[1::2], holds[1::2], parts) if parts else None


def _on_one_choice(design: Integers, holds: Flags) -> ClaimCondition | None:
    """The condition on one choice that is least probable by chance, with all readings."""
    # Every set of values of a choice could have come out as the one under which the claim holds most often
    tried = sum(2 ** len(np.unique(places)) - 2 for places in design.T)
    found = [_counted(design, holds, parts, tried) for parts in _extended(design, holds, {})]
    return min(found, key=lambda one: one.probability, default=None)


def _extended(design: Integers, holds: Flags, parts: Parts) -> Iterator[Parts]:
    """Conditions on one choice more, with the values under which a claim holds most often.

    The first of them, the first two, ..., not all.
    """
    within = fulfilled(design, parts)
    for choice in range(design.shape[1]):
        if choice not in parts:
            places = np.unique(design[:, choice])
            having = [within & (design[:, choice] == place) for place in places]
            shares = [holds[own].sum() / max(1, own.sum()) for own in having]
            order = places[np.argsort(shares, kind="stable")[::-1]].tolist()
            for count in range(1, len(order)):
                yield {**parts, choice: tuple(sorted(order[:count]))}


def _counted(design: Integers, holds: Flags, parts: Parts, tried: int = 1) -> ClaimCondition:
    """A condition with how often the claim holds where it is fulfilled, and where it is not."""
    met = fulfilled(design, parts)
    inside, outside = ((int(holds[own].sum()), int(own.sum())) for own in (met, ~met))
    return ClaimCondition(tuple(parts.items()), inside, outside, tried)


def fulfilled(design: Integers, parts: Mapping[int, Sequence[int]]) -> Flags:
    """Whether each reading has one of the values of every choice that is named."""
    met = [np.isin(design[:, choice], places) for choice, places in parts.items()]
    return np.asarray(np.all([np.ones(len(design), np.bool_), *met], axis=0), np.bool_)


def _merit(design: Integers, holds: Flags, parts: Parts) -> float:
    """Harmonic mean of the two shares, which a condition that is always fulfilled has, too."""
    met = fulfilled(design, parts)
    return 2 * int((met & holds).sum()) / max(1, int(met.sum()) + int(holds.sum()))


# --- which reading agrees most --------------------------------------------------------------------


def agreement(reproduced: Flags, counts: Flags, tables: Sequence[str]) -> tuple[list[str], Floats]:
    """Share of the claims of each table that each reading reproduces.

    Parameters
    ----------
    reproduced : bool[n, m]
        By reading and claim.
    counts : bool[n, m]
        Whether the claim belongs to the reading and was judged.
    tables : sequence of str
        Table of each claim.

    Returns
    -------
    list of str, float64[n, t]
        Tables in the order in which they come, and the shares; NaN where a table has no claim that counts.
    """
    met, number = (
        pd.DataFrame(each.T).groupby(list(tables), sort=False).sum() for each in (reproduced & counts, counts)
    )
    # Means over tables depend, in the last digit, on the layout in memory
    return list(met.index), np.ascontiguousarray((met / number).T, np.float64)


def halves(sizes: Sequence[int]) -> Flags:
    """Tables in two halves with about as many claims, largest first: whether each is in the first half."""
    first = np.zeros(len(sizes), np.bool_)
    ahead = 0
    for place in np.argsort(-np.array(sizes), kind="stable"):
        first[place] = ahead <= 0
        ahead += sizes[place] if first[place] else -sizes[place]
    return first


def not_dominated(shares: Floats) -> Flags:
    """Whether no other reading agrees at least as well with every table, and better with one."""
    # Nothing is less or more than NaN: only tables that both readings are about count
    exceeded = [((shares > own).any(axis=1) & ~(shares < own).any(axis=1)).any() for own in shares]
    return ~np.array(exceeded, np.bool_)


def choose(shares: Floats, first: Flags) -> pd.DataFrame:
    """Choose the reading that agrees best with one half of the tables, judge it on the other, both ways.

    Parameters
    ----------
    shares : float64[n, t]
        See `agreement`; the first row is the default reading.
    first : bool[t]
        See `halves`.

    Returns
    -------
    DataFrame
        A row for each half that has tables: `chosen_reading`, and mean shares of claims: of this reading
        where it was `chosen_on` and on the other half, where it is `judged_on`; there also of the default
        (`judged_default`), over all readings that were drawn (`judged_average`) and of the best reading
        (`judged_best`).
    """
    found = []
    for chosen_on in (first, ~first) if first.any() and not first.all() else ():
        # Mean share of the tables that have claims, for each reading
        here, there = (
            np.ma.masked_invalid(shares[:, half]).mean(axis=1).filled(0.0) for half in (chosen_on, ~chosen_on)
        )
        best = int(np.argmax(here))
        found.append((best, here[best], there[best], there[0], there[1:].mean(), there.max()))
    return pd.DataFrame(found, columns=["chosen_reading", *CHOSEN])


CHOSEN = ("chosen_on", "judged_on", "judged_default", "judged_average", "judged_best")
"""Mean shares of claims in the table of `choose`."""


# --- which claims contradict ------------------------------------------------------------------------

ENOUGH = 5.0
"""Readings that would reproduce two claims if these were independent, from which on none is no chance (its
probability is below 0.01)."""


def contradictions(reproduced: Flags, counts: Flags) -> pd.DataFrame:
    """Pairs of claims, each reproduced by some reading, that none reproduces together.

    Parameters
    ----------
    reproduced, counts : bool[n, m]
        See `agreement`.

    Returns
    -------
    DataFrame
        A row for each pair: its claims `one` and `other`, the readings that reproduce each (`one_alone`,
        `other_alone`) and the readings that would reproduce both if these were independent (`expected`);
        those of which most would come first.
    """
    met, asked = (reproduced & counts).astype(np.float64), counts.astype(np.float64)
    together, alone, both = met.T @ met, met.T @ asked, asked.T @ asked
    expected = alone * alone.T / np.maximum(both, 1)
    one, other = np.nonzero(np.triu((expected >= ENOUGH) & (together == 0), 1))
    found = {
        "one": one,
        "other": other,
        "one_alone": alone[one, other].astype(np.int64),
        "other_alone": alone[other, one].astype(np.int64),
        "expected": expected[one, other],
    }
    return pd.DataFrame(found).sort_values("expected", ascending=False, kind="stable")

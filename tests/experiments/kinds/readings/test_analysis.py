"""Analysis of verdicts: classes, importance of choices, conditions, agreement, contradictions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from gridsched.experiments.kinds.readings import analysis
from gridsched.experiments.kinds.readings.analysis import ClaimCondition

RNG = np.random.default_rng(3)
DESIGN = np.array([*product(range(3), range(4), range(2))] * 5)[RNG.permutation(120)]
NAN = np.nan


@pytest.mark.parametrize(
    ("share", "name"),
    [(1.0, "robust"), (0.9, "robust"), (0.89, "contingent"), (0.05, "contradicted"), (0.051, "contingent")],
)
def test_borders_belong_to_robust_and_contradicted(share: float, name: str) -> None:
    assert analysis.robustness(share) == name
    assert analysis.robustness(NAN) == ""


def test_the_choice_that_decides_is_the_important_one() -> None:
    average, low, _ = analysis.importance(DESIGN, DESIGN[:, 1] >= 2)
    assert average[1] > 0.4
    assert low[1] > 0
    assert (np.abs(np.delete(average, 1)) < 0.05).all()


def test_no_choice_is_important_for_what_is_chance() -> None:
    rng = np.random.default_rng(8)
    false = 0
    for seed in range(20):
        design = rng.integers(0, [2, 3, 3, 4, 2, 2, 3, 2], (100, 8))
        false += bool((analysis.importance(design, rng.random(100) < 0.5, seed)[1] > 0).any())
    assert false <= 3


def test_importance_is_unknown_where_one_outcome_is_too_rare() -> None:
    assert np.isnan(analysis.importance(DESIGN, np.arange(len(DESIGN)) == 0)).all()


def naive_counts(
    design: NDArray[np.int64],
    holds: NDArray[np.bool_],
    parts: dict[int, tuple[int, ...]],
    readings: range | None = None,
) -> tuple[tuple[int, int], tuple[int, int]]:
    sides: dict[bool, list[bool]] = {True: [], False: []}
    for reading in readings or range(1, len(design), 2):
        met = all(design[reading, choice] in places for choice, places in parts.items())
        sides[met].append(bool(holds[reading]))
    inside, outside = sides[True], sides[False]
    return (sum(inside), len(inside)), (sum(outside), len(outside))


@pytest.mark.parametrize(
    "parts", [{1: (2, 3)}, {0: (1,)}, {0: (0, 2), 1: (1,)}, {0: (1,), 1: (0, 3), 2: (1,)}]
)
def test_a_conjunction_of_values_is_found(parts: dict[int, tuple[int, ...]]) -> None:
    holds = analysis.fulfilled(DESIGN, parts)
    found = analysis.condition(DESIGN, holds)
    assert found is not None
    assert dict(found.parts) == parts
    assert (found.inside, found.outside) == naive_counts(DESIGN, holds, parts)
    assert found.is_necessary
    assert found.is_sufficient


def test_conditions_of_noisy_outcomes_are_counted_on_the_other_half() -> None:
    for _ in range(50):
        holds = RNG.random(len(DESIGN)) < np.where(DESIGN[:, 0] == 1, 0.8, 0.2)
        found = analysis.condition(DESIGN, holds)
        assert found is not None
        if found.tried == 1:
            assert (found.inside, found.outside) == naive_counts(DESIGN, holds, dict(found.parts))


def test_what_half_of_the_readings_cannot_tell_all_of_them_can() -> None:
    design = DESIGN[:100]
    holds = np.zeros(100, np.bool_)
    holds[np.flatnonzero(design[:, 0] == 1)[::3]] = True
    assert 8 <= holds.sum() <= 16
    found = analysis.condition(design, holds)
    assert found is not None
    assert found.parts == ((0, (1,)),)
    assert found.probability < 1e-4
    assert found.is_necessary
    assert (found.inside, found.outside) == naive_counts(design, holds, {0: (1,)}, range(100))


def test_conditions_are_hardly_ever_significant_by_chance() -> None:
    """Of claims that depend on nothing, any is significant in at most 5 % of studies."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(40):
        design = rng.integers(0, [2, 3, 3, 4, 2, 2, 3, 2], (100, 8))
        claims = [rng.random(100) < rng.uniform(0.1, 0.9) for _ in range(8)]
        false += any(analysis.significant([analysis.condition(design, holds) for holds in claims]))
    assert false <= 4


def test_conditions_are_corrected_for_their_number() -> None:
    clear = ClaimCondition(((0, (1,)),), inside=(20, 20), outside=(0, 30))
    weak = ClaimCondition(((0, (1,)),), inside=(12, 20), outside=(6, 30))
    assert 0.005 < weak.probability < 0.05
    assert analysis.significant([weak]) == [True]
    assert analysis.significant([clear, weak, None]) == [True, True, False]
    assert analysis.significant([clear, *[weak] * 12]) == [True, *[False] * 12]


def test_there_is_no_condition_for_what_always_or_never_holds() -> None:
    assert analysis.condition(DESIGN, np.ones(len(DESIGN), np.bool_)) is None
    assert analysis.condition(DESIGN, np.zeros(len(DESIGN), np.bool_)) is None


def test_necessary_and_sufficient_are_two_things() -> None:
    only_if = ClaimCondition(((0, (1,)),), inside=(40, 80), outside=(1, 80))
    surely = ClaimCondition(((0, (1,)),), inside=(72, 80), outside=(40, 80))
    assert (only_if.is_necessary, only_if.is_sufficient) == (True, False)
    assert (surely.is_necessary, surely.is_sufficient) == (False, True)


def test_a_table_without_claims_dominates_nobody() -> None:
    """Readings are compared on the tables that both are about."""
    shares = np.array([[0.5, np.nan], [0.5, 0.1], [0.4, 0.1]])
    assert analysis.not_dominated(shares).tolist() == [True, True, False]


def test_agreement_is_a_share_of_what_counts() -> None:
    reproduced = np.array([[True, False, True], [True, True, True]])
    counts = np.array([[True, True, False], [False, True, False]])
    tables, shares = analysis.agreement(reproduced, counts, ["a", "a", "b"])
    assert tables == ["a", "b"]
    np.testing.assert_array_equal(shares, [[0.5, NAN], [1.0, NAN]])


def test_halves_have_about_as_many_claims() -> None:
    sizes = [40, 3, 9, 22, 30, 1, 11]
    side = sum(size for size, own in zip(sizes, analysis.halves(sizes), strict=True) if own)
    assert abs(2 * side - sum(sizes)) <= 4


def test_not_dominated_as_by_definition() -> None:
    for _ in range(200):
        shares = RNG.integers(0, 4, (8, 3)) / 4
        expected = [
            not any((other >= own).all() and (other > own).any() for other in shares) for own in shares
        ]
        assert analysis.not_dominated(shares).tolist() == expected


def test_a_reading_is_chosen_on_one_half_and_judged_on_the_other() -> None:
    shares = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.75]])
    one, other = analysis.choose(shares, np.array([True, False])).to_dict("records")
    assert one == {
        "chosen_reading": 1,
        "chosen_on": 1.0,
        "judged_on": 0.0,
        "judged_default": 0.5,
        "judged_average": 0.375,
        "judged_best": 0.75,
    }
    assert (other["chosen_reading"], other["chosen_on"], other["judged_on"]) == (2, 0.75, 0.0)
    assert other["judged_average"] == 0.5
    assert analysis.choose(shares, np.array([True, True])).empty


def test_contradictions_as_by_definition() -> None:
    met = RNG.random((60, 7)) < 0.4
    met[:, 1] = ~met[:, 0]
    counts = RNG.random((60, 7)) < 0.9
    table = analysis.contradictions(met, counts)
    assert table["expected"].is_monotonic_decreasing
    found = {
        (row["one"], row["other"]): (row["one_alone"], row["other_alone"]) for row in table.to_dict("records")
    }
    expected = {}
    for one in range(7):
        for other in range(one + 1, 7):
            both = counts[:, one] & counts[:, other]
            alone = int((met[:, one] & both).sum()), int((met[:, other] & both).sum())
            chance = alone[0] * alone[1] / both.sum()
            if not (met[:, one] & met[:, other] & both).any() and chance >= analysis.ENOUGH:
                expected[one, other] = alone
    assert found == expected
    assert (0, 1) in found


def test_the_probability_of_a_condition_is_that_of_fishers_test() -> None:
    found = ClaimCondition(((0, (1,)),), inside=(9, 10), outside=(5, 40), tried=3)
    # at least 9 of the 14 that hold among the 10 that fulfil it
    assert found.probability == pytest.approx(2 * 3 * stats.hypergeom(50, 14, 10).sf(8))
    assert ClaimCondition(((0, (1,)),), inside=(0, 10), outside=(30, 40)).probability == 1

"""Intervals of run time: worked examples, plain definitions, and what always holds."""

from __future__ import annotations

import math
from collections import Counter
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from gridsched.errors import WorkloadError
from gridsched.prediction.intervals import discretise
from gridsched.prediction.mdl import mdl_cuts
from gridsched.prediction.options import Discretisation, Representative
from tests.support.errors import each_refused
from tests.support.fields import assert_fields

HISTORY = np.array([1, 2, 3, 10, 20, 30, 100, 200, 300, 1000])


def test_equal_frequency_of_ten_jobs() -> None:
    assert_fields(
        discretise(HISTORY, "equal_frequency", 5),
        upper=[2, 10, 30, 200, 1000],
        lower=[0, 3, 11, 31, 201],
        representative=[2, 6, 25, 150, 650],
    )


def test_equal_frequency_keeps_equal_run_times_together() -> None:
    assert discretise(np.array([5, 5, 5, 5, 9, 9]), "equal_frequency", 3).upper.tolist() == [5, 9]


def test_log_width_of_three_decades() -> None:
    intervals = discretise(HISTORY, "log_width", 3)
    assert intervals.upper.tolist() in ([10, 100, 1000], [9, 99, 1000], [10, 99, 1000], [9, 100, 1000])
    assert len(discretise(np.array([1, 1000]), "log_width", 6)) == 2


def test_log_width_cuts_at_the_roots_of_the_range() -> None:
    """16 parts of the range from 1 to 2**16 s are a doubling each; the cuts are off the history's values."""
    history = np.repeat(2 ** np.arange(17), 2) + np.tile([0, 1], 17)
    upper = discretise(history, "log_width", 16).upper
    assert len(upper) == 16
    assert np.all(np.abs(np.diff(np.log2(upper[3:-1])) - 1) < 0.15)


def test_k_means_finds_three_groups() -> None:
    assert_fields(
        discretise(np.array([1, 1, 2, 90, 100, 110, 9000, 10000, 11000]), "k_means", 3),
        upper=[2, 110, 11000],
        representative=[1, 100, 10000],
    )


@pytest.mark.random_cases(5)
def test_k_means_ends_where_a_library_does_not_move_it(seed: int) -> None:
    history = np.ceil(np.random.default_rng(seed).lognormal(5, 2, 400)).astype(np.int64)
    intervals = discretise(history, "k_means", 7)
    times = np.log(history)
    index = intervals.index_of(history)
    centres = np.array([times[index == k].mean() for k in range(len(intervals))])
    again = KMeans(len(centres), init=centres[:, np.newaxis], n_init=1, max_iter=1).fit(times[:, np.newaxis])
    np.testing.assert_array_equal(again.labels_, index)


def test_representatives() -> None:
    history = np.array([10, 20, 90, 1000, 3000])
    shown = {kind: discretise(history, "log_width", 2, kind) for kind in get_args(Representative)}
    assert shown["median"].representative.tolist() == [20, 2000]
    assert shown["mean"].representative.tolist() == [40, 2000]
    assert shown["upper"].representative.tolist() == shown["upper"].upper.tolist() == [173, 3000]


def test_nothing_can_be_made_of_no_jobs() -> None:
    each_refused(
        (WorkloadError, "no finished job", lambda: discretise(np.empty(0, np.int64), "log_width", 5)),
        (WorkloadError, "label", lambda: discretise(HISTORY, "mdl", 5)),
    )


@pytest.mark.parametrize("kind", get_args(Discretisation))
def test_constant_run_times_make_one_interval(kind: Discretisation) -> None:
    for value in (0, 7):
        assert_fields(
            discretise(np.full(50, value), kind, 10, label=np.arange(50) % 2),
            upper=[value],
            representative=[max(value, 1)],
        )


@given(
    history=st.lists(st.integers(0, 50) | st.integers(0, 10**6), min_size=1, max_size=60),
    kind=st.sampled_from(get_args(Discretisation)),
    wanted=st.integers(1, 12),
    representative=st.sampled_from(get_args(Representative)),
)
def test_every_interval_has_history_and_a_run_time_of_its_own(
    history: list[int], kind: Discretisation, wanted: int, representative: Representative
) -> None:
    run_time = np.array(history)
    label = run_time % 3
    intervals = discretise(run_time, kind, wanted, representative, label)
    assert 1 <= len(intervals) <= min(wanted, len(set(history)))
    assert (np.diff(intervals.upper) > 0).all()
    assert intervals.upper[-1] == run_time.max()
    index = intervals.index_of(run_time)
    assert set(index.tolist()) == set(range(len(intervals)))
    assert (run_time >= intervals.lower[index]).all()
    assert (run_time <= intervals.upper[index]).all()
    assert (intervals.representative >= np.maximum(intervals.lower, 1)).all()
    assert (intervals.representative <= np.maximum(intervals.upper, 1)).all()
    assert intervals.index_of(np.array([10**9])).tolist() == [len(intervals) - 1]
    backwards = discretise(run_time[::-1], kind, wanted, representative, label[::-1])
    np.testing.assert_array_equal(backwards.upper, intervals.upper)


# --- minimum description length -------------------------------------------------------------------


def entropy(labels: list[int]) -> float:
    return -sum(n / len(labels) * math.log2(n / len(labels)) for n in Counter(labels).values())


def bits_saved(jobs: list[tuple[int, int]], place: int) -> float:
    """N times the gain of a cut before `place` beyond what Fayyad and Irani's criterion asks for."""
    labels = [label for _, label in jobs]
    parts = (labels[:place], labels[place:])
    size, kinds = len(labels), len(set(labels))
    gain = entropy(labels) - sum(len(part) / size * entropy(part) for part in parts)
    described = kinds * entropy(labels) - sum(len(set(part)) * entropy(part) for part in parts)
    return size * gain - math.log2(size - 1) - (math.log2(3**kinds - 2) - described)


def naive_mdl(jobs: list[tuple[int, int]]) -> set[int]:
    """All accepted cuts, by recursion; each is the largest value below it."""
    places = [i for i in range(1, len(jobs)) if jobs[i - 1][0] != jobs[i][0]]
    if not places:
        return set()
    best = max(places, key=lambda place: (round(certainty(jobs, place), 9), -place))
    if bits_saved(jobs, best) <= 1e-9:
        return set()
    return {jobs[best - 1][0]} | naive_mdl(jobs[:best]) | naive_mdl(jobs[best:])


def certainty(jobs: list[tuple[int, int]], place: int) -> float:
    """Minus the class entropy after a cut, times the jobs: the largest decides where to cut."""
    labels = [label for _, label in jobs]
    return -place * entropy(labels[:place]) - (len(jobs) - place) * entropy(labels[place:])


def test_mdl_cuts_between_two_users() -> None:
    run_time = np.array([1, 2, 3, 4, 50, 60, 70, 80])
    user = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    # gain 1 bit; it must exceed (log2(7) + log2(7) - 2) / 8 = 0.45
    assert mdl_cuts(run_time, user, 10).tolist() == [4]
    assert discretise(run_time, "mdl", 10, label=user).representative.tolist() == [2, 65]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=40))
def test_mdl_accepts_what_the_definition_accepts(jobs: list[tuple[int, int]]) -> None:
    ordered = sorted(jobs, key=lambda job: job[0])
    values, labels = (np.array(column) for column in zip(*jobs, strict=True))
    assert set(mdl_cuts(values, labels, 100).tolist()) == naive_mdl(ordered)


def test_mdl_takes_more_labels_than_fit_into_a_power() -> None:
    cuts: NDArray[np.int64] = mdl_cuts(np.arange(3000), np.arange(3000) // 4, 5)
    assert len(cuts) < 5

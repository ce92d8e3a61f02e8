"""Estimate models: feasible, modal, reproducible, and honest about what they change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads import FModel, Modal, Multiple, Workload, with_estimates
from gridsched.workloads.deadlines import ServiceClass, draw_deadlines
from gridsched.workloads.estimates import (
    POPULARITY,
    EstimateModel,
    _shuffle_feasibly,
    with_prediction_errors,
)
from gridsched.workloads.patience import Weibull, with_patience
from tests.support.errors import each_refused

run_times = st.lists(st.integers(0, 400_000), max_size=300).map(lambda v: np.array(v, np.int64))
models = st.one_of(
    st.builds(Multiple, st.floats(1, 20)),
    st.builds(FModel, st.floats(0, 20)),
    st.builds(
        Modal,
        max_estimate=st.none() | st.integers(1, 200_000),
        max_share=st.none() | st.floats(0.01, 0.5),
        head_share=st.floats(0.5, 1),
        distinct=st.none() | st.integers(1, 60),
        longer=st.sampled_from(["cut", "raise", "exempt"]),
    ),
)


@settings(deadline=None)
@given(run_times, models, st.integers(0, 2**32))
def test_no_job_outruns_its_estimate(run: NDArray[np.int64], model: EstimateModel, seed: int) -> None:
    drawn = model.draw(run, np.random.default_rng(seed))
    again = model.draw(run, np.random.default_rng(seed))
    assert drawn.requested_time.dtype == np.int64
    assert np.all(drawn.requested_time >= np.maximum(drawn.run_time, 1))
    assert np.all(drawn.run_time <= run)
    assert np.count_nonzero(drawn.run_time < run) == drawn.jobs_cut
    assert np.array_equal(drawn.requested_time, again.requested_time)


@settings(deadline=None)
@given(run_times.filter(len), st.integers(1, 40), st.integers(0, 2**32), st.integers(1, 100_000))
def test_values_are_few_and_none_is_beyond_the_longest(
    run: NDArray[np.int64], distinct: int, seed: int, longest: int
) -> None:
    drawn = Modal(max_estimate=longest, distinct=distinct).draw(run, np.random.default_rng(seed))
    assert len(np.unique(drawn.requested_time)) <= distinct
    assert drawn.requested_time.max() <= longest
    assert drawn.jobs_cut == np.count_nonzero(run > longest)


@given(st.integers(1, 3000), st.integers(1, 300_000), st.integers(0, 2**32))
def test_frequencies_are_those_of_all_jobs(jobs: int, longest: int, seed: int) -> None:
    values, counts = Modal().frequencies(jobs, longest, np.random.default_rng(seed))
    assert counts.sum() == jobs
    assert np.all(counts >= 0)
    assert np.all(np.diff(values) > 0)
    assert values[0] > 0
    assert values[-1] == longest


def test_twenty_values_hold_most_jobs_and_the_longest_is_the_most_popular() -> None:
    values, counts = Modal().frequencies(20_000, 18 * 3600, np.random.default_rng(3))
    assert np.sort(counts)[-20:].sum() == pytest.approx(0.89 * 20_000, rel=0.01)
    assert counts.argmax() == len(counts) - 1
    assert counts[-1] == pytest.approx(0.217 * 20_000, rel=0.01)
    assert 90 < len(values) <= 132
    popular = set(values[np.argsort(-counts)[:20]].tolist())
    assert {300, 600, 900, 1800, 3600, 7200, 4 * 3600, 12 * 3600} < popular


def test_share_of_the_longest_can_be_given() -> None:
    values, counts = Modal(max_share=0.4).frequencies(10_000, 36 * 3600, np.random.default_rng(0))
    assert counts[values == 36 * 3600] == 4000
    assert np.sort(counts)[-20:].sum() == pytest.approx(8900, abs=20)


def test_estimates_that_are_too_short_are_raised_and_counted() -> None:
    drawn = Modal(max_estimate=7200).draw(np.full(100, 3600), np.random.default_rng(0))
    values, counts = Modal(max_estimate=7200).frequencies(100, 7200, np.random.default_rng(0))
    assert drawn.jobs_raised == counts[values < 3600].sum() > 0
    assert drawn.requested_time.min() == 3600


def test_exempt_jobs_request_their_own_hours() -> None:
    run = np.array([100, 7201, 50_000])
    drawn = Modal(max_estimate=7200, longer="exempt").draw(run, np.random.default_rng(0))
    assert drawn.run_time.tolist() == run.tolist()
    assert drawn.requested_time[1:].tolist() == [3 * 3600, 14 * 3600]
    assert (drawn.jobs_exempt, drawn.jobs_cut) == (2, 0)


def test_every_feasible_assignment_is_equally_likely() -> None:
    run, estimates = np.array([30, 20, 10, 0]), np.array([40, 30, 25, 5])
    rng = np.random.default_rng(11)
    seen: Counter[tuple[int, ...]] = Counter()
    draws = 8000
    for _ in range(draws):
        permuted = estimates.copy()
        _shuffle_feasibly(run, permuted, rng.random(4))
        assert np.all(permuted >= run)
        seen[tuple(permuted.tolist())] += 1
    # Two choices for the longest job, two for the second, one for the third, one for the last.
    assert len(seen) == 4
    assert all(abs(count - draws / 4) < 5 * np.sqrt(draws / 4) for count in seen.values())


def test_f_model_spreads_uniformly_up_to_f_plus_one() -> None:
    factor = FModel(4).draw(np.full(20_000, 1000), np.random.default_rng(5)).requested_time / 1000
    assert 1 <= factor.min() < 1.01
    assert 4.99 < factor.max() <= 5
    assert factor.mean() == pytest.approx(3, abs=4 * np.sqrt(16 / 12 / 20_000) + 1e-3)


def test_multiples_are_exact_and_rounded_up() -> None:
    drawn = Multiple(1.5).draw(np.array([0, 1, 2, 100]), np.random.default_rng(0))
    assert drawn.requested_time.tolist() == [1, 2, 3, 150]


def workload(run_time: list[int]) -> Workload:
    jobs = len(run_time)
    return Workload(
        name="small",
        submit_time=np.arange(jobs),
        run_time=np.array(run_time),
        requested_processors=np.ones(jobs, np.int64),
    )


def test_a_log_gets_estimates_and_counts_what_was_cut() -> None:
    drawn = with_estimates(workload([10, 20_000, 30]), Modal(max_estimate=3600), seed=1)
    assert drawn.run_time.tolist() == [10, 3600, 30]
    assert drawn.repaired["run time cut at the longest estimate"] == 1
    assert np.all(drawn.requested_time >= drawn.run_time)
    longest: Any = 3600.0
    again = with_estimates(workload([10, 20_000, 30]), Modal(max_estimate=longest), seed=1)
    assert again.equals(drawn)


def test_seeds_are_whole_numbers_from_0_on() -> None:
    jobs = workload([10, 20])
    patience = Weibull(scale=10.0, shape=1.0)
    each_refused(
        (WorkloadError, "small: seed is -1", lambda: with_estimates(jobs, Multiple(), seed=-1)),
        (WorkloadError, "seed is -1", lambda: with_prediction_errors(jobs, 0.5, seed=-1)),
        (WorkloadError, "small: seed is -1", lambda: with_patience(jobs, patience, seed=-1)),
        (WorkloadError, "seed is -1", lambda: draw_deadlines(jobs, [ServiceClass()], seed=-1)),
    )


def test_a_log_with_unknown_run_times_is_refused() -> None:
    with pytest.raises(WorkloadError, match="small: 1 jobs have no run time"):
        with_estimates(workload([10, -1]), Multiple(), seed=1)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_estimate": 0}, "max_estimate"),
        ({"max_estimate": 1.5}, "max_estimate is 1.5"),
        ({"max_share": 0.95}, "max_share"),
        ({"head_share": 0}, "head_share"),
        ({"distinct": 0}, "distinct"),
        ({"longer": "drop"}, "longer"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(WorkloadError, match=named):
        Modal(**options)


def test_factors_below_one_are_named() -> None:
    each_refused(
        (WorkloadError, "factor", lambda: Multiple(0.5)),
        (WorkloadError, "f is", lambda: FModel(-1)),
    )


@pytest.mark.parametrize(
    ("row", "log", "limit"),
    [
        (0, "SDSC-SP2-1998-4.2-cln", None),
        (1, "CTC-SP2-1996-3.1-cln", None),
        (2, "KTH-SP2-1996-2.1-cln", 4 * 3600),
        (3, "SDSC-BLUE-2000-4.2-cln", None),
    ],
)
def test_popularity_table_is_that_of_the_logs(
    archive_mirror: Path, row: int, log: str, limit: int | None
) -> None:
    # The requested time is field 9 of the Standard Workload Format.
    requested = pd.read_csv(
        archive_mirror / f"{log}.swf.gz", comment=";", sep=r"\s+", header=None, usecols=[8]
    ).iloc[:, 0]
    requested = requested[(requested > 0) & (requested <= (limit or requested.max()))]
    popular = requested.value_counts().index[:20].tolist()
    longest = max(popular)
    by_length = [longest, *sorted(value for value in popular if value != longest)]
    assert [popular.index(value) + 1 for value in by_length] == POPULARITY[row].tolist()

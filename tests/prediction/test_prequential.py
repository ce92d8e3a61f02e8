"""Prequential prediction: right where it can be, never from what is not known yet, the same everywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.prediction import (
    FEATURES,
    METHODS,
    Predictions,
    PredictorOptions,
    predict_by_method,
    predict_prequential,
    recorded_end_time,
)
from gridsched.prediction.rules import KINDS
from gridsched.traces import by_count, clean, merge_workloads, read_swf
from gridsched.workloads.table import Workload
from tests.conftest import REPOSITORY
from tests.support.errors import each_refused, refused
from tests.support.fields import assert_fields
from tests.support.prediction import (
    Ends,
    busy_log,
    naive_knowledge,
    regular_users,
    small_logs,
    workload_of,
)

SOON = PredictorOptions(minimum_history=20, min_samples_leaf=3, retrain_seconds=14_400)
EAGER = PredictorOptions(
    minimum_history=1, min_samples_leaf=1, rare=1, intervals=3, window=8, retrain_seconds=20
)


def same(left: Predictions, right: Predictions, jobs: Any = slice(None)) -> bool:
    """Whether the predictions of some jobs are exactly the same."""
    names = ("run_time", "interval", "lower", "upper", "kind", "trained_at")
    return all(np.array_equal(getattr(left, name)[jobs], getattr(right, name)[jobs]) for name in names)


# --- what is predicted ----------------------------------------------------------------------------


@pytest.mark.parametrize("features", [("user",), ("last_run_time",), FEATURES])
def test_users_who_always_run_the_same_time_are_predicted_exactly(features: tuple[str, ...]) -> None:
    workload, end = regular_users(4, 1500)
    predictions = predict_prequential(workload, end, replace(SOON, features=features))
    late = np.arange(len(workload)) > 500
    assert (predictions.kind[late] == KINDS.index("tree")).all()
    known = late if features == ("user",) else late & (np.arange(len(workload)) > 700)
    assert (predictions.run_time[known] == workload.run_time[known]).all()
    assert (predictions.lower[known] <= workload.run_time[known]).all()
    assert (predictions.upper[known] >= workload.run_time[known]).all()


def test_new_habits_are_learned() -> None:
    """Users swap their run times; the window forgets what was before."""
    first, _ = regular_users(2, 1200)
    swapped = np.where(np.arange(1200) < 600, first.run_time, 110 - first.run_time)
    workload = first.select(slice(None), run_time=swapped)
    end = workload.submit_time + swapped
    options = replace(SOON, features=("user",), window=100)
    assert (predict_prequential(workload, end, options).run_time[800:] == swapped[800:]).all()
    remembering = predict_prequential(workload, end, replace(options, window=10_000)).run_time
    assert not (remembering[800:] == swapped[800:]).all()


def test_predictions_stand_for_their_interval() -> None:
    workload, end = busy_log(800)
    predictions = predict_prequential(workload, end, replace(SOON, bounded_by_request=False))
    tree = predictions.kind == KINDS.index("tree")
    assert tree.sum() > 600
    assert (predictions.run_time[tree] >= predictions.lower[tree]).all()
    assert (predictions.run_time[tree] <= predictions.upper[tree]).all()
    assert (predictions.interval[tree] >= 0).all()
    for name in ("interval", "lower", "upper", "trained_at"):
        assert (getattr(predictions, name)[~tree] == -1).all()


def test_predictions_are_cut_at_the_requested_time_and_counted() -> None:
    workload, end = busy_log(800)
    free = predict_prequential(workload, end, replace(SOON, bounded_by_request=False))
    bounded = predict_prequential(workload, end, SOON)
    np.testing.assert_array_equal(bounded.run_time, np.minimum(free.run_time, workload.requested_time))
    cut = int((free.run_time > workload.requested_time).sum())
    assert bounded.counts["cut at the requested time"] == cut > 0
    assert free.counts["cut at the requested time"] == 0


def test_fallbacks_by_hand() -> None:
    workload = workload_of([0, 0, 100, 200], [30, 40, 5, 5], requested_time=[-1, 60, -1, 0])
    end = workload.submit_time + workload.run_time
    predictions = predict_prequential(workload, end, PredictorOptions(constant=77))
    assert predictions.run_time.tolist() == [77, 60, 35, 25]
    assert [KINDS[kind] for kind in predictions.kind] == ["constant", "requested time", "mean", "mean"]
    expected = {"tree": 0, "requested time": 1, "mean": 2, "constant": 1}
    assert_fields(
        predictions, counts={**expected, "cut at the requested time": 0, "without an end": 0}, retrainings=0
    )


def test_fewer_jobs_than_intervals() -> None:
    workload = workload_of(np.arange(0, 120, 10), [5] * 12, requested_time=[100] * 12)
    options = PredictorOptions(minimum_history=1, retrain_seconds=30, intervals=50)
    assert_fields(
        predict_prequential(workload, workload.submit_time + 5, options),
        run_time=[100] * 3 + [5] * 9,
        interval=[-1] * 3 + [0] * 9,
    )


def test_log_that_knows_next_to_nothing() -> None:
    """Neither users nor requested times, as a synthetic log; queues still tell run times."""
    queue = np.arange(400) % 2
    workload = workload_of(np.arange(400) * 100, 10 + 80 * queue, queue=queue)
    predictions = predict_prequential(workload, workload.submit_time + workload.run_time, SOON)
    assert set(FEATURES) - set(predictions.features_absent) == {"queue", "hour"}
    assert (predictions.run_time[200:] == workload.run_time[200:]).all()


def test_jobs_without_an_end_teach_nothing() -> None:
    workload, end = regular_users(3, 400)
    lost = np.arange(400) % 5 == 0
    odd = workload.select(slice(None), run_time=np.where(lost, 999_999, workload.run_time))
    predictions = predict_prequential(odd, np.where(lost, -1, end), replace(SOON, features=("user",)))
    assert predictions.counts["without an end"] == 80
    assert (predictions.run_time[200:] == workload.run_time[200:]).all()


def test_recorded_ends() -> None:
    workload = workload_of([0, 5, 9], [10, 20, 30], wait_time=[1, -1, 0])
    assert recorded_end_time(workload).tolist() == [11, -1, 39]


# --- when it is trained ---------------------------------------------------------------------------


@given(small_logs(), st.sampled_from([None, 1, 7, 20]), st.sampled_from([None, 1, 3]), st.integers(1, 4))
def test_trees_are_trained_on_schedule(
    log: tuple[Workload, Ends], seconds: int | None, jobs: int | None, least: int
) -> None:
    """The last scheduled instant before which something finished, if enough has finished by then."""
    workload, end = log
    if seconds is None and jobs is None:
        seconds = 20
    options = replace(EAGER, retrain_seconds=seconds, retrain_jobs=jobs, minimum_history=least)
    predictions = predict_prequential(workload, end, options)
    submit = workload.submit_time
    since = np.sort(np.maximum(end, submit + 1)[end >= 0]).tolist()
    by_time = range(submit[0] + seconds, submit[-1] + 1, seconds) if seconds else ()
    instants = sorted({*by_time, *(since[jobs - 1 :: jobs] if jobs else ())})
    for job in range(len(workload)):
        expected, before = -1, 0
        for instant in instants:
            finished = sum(each <= instant for each in since)
            if instant <= submit[job] and finished >= least and finished > before:
                expected = instant
            before = finished
        assert predictions.trained_at[job] == expected


def test_growth_leaves_trainings_out() -> None:
    workload, end = busy_log(1000)
    often = predict_prequential(workload, end, SOON)
    seldom = predict_prequential(workload, end, replace(SOON, retrain_growth=0.5))
    assert 3 < seldom.retrainings < often.retrainings / 3
    assert often.retrainings == len(set(often.trained_at[often.trained_at >= 0].tolist()))


# --- no knowledge of the future -------------------------------------------------------------------


@st.composite
def two_futures(
    draw: st.DrawFn, max_jobs: int = 20
) -> tuple[tuple[Workload, Ends], tuple[Workload, Ends], int]:
    """Two logs that are the same as far as can be known at some instant, and the jobs submitted by then."""
    workload, end = draw(small_logs(max_jobs))
    now = draw(st.sampled_from(workload.submit_time.tolist()))
    past = workload.submit_time <= now
    open_end = past & (end >= 0) & (np.maximum(end, workload.submit_time + 1) > now)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    run_time = np.where(open_end, rng.integers(0, 5000, len(past)), workload.run_time)
    later = np.maximum(now + rng.integers(1, 5000, len(past)), workload.submit_time)
    ends = np.where(open_end, later, end)
    # what comes after is another log altogether
    extra = draw(st.integers(0, 8))
    kept = workload.select(past, run_time=run_time[past])
    future: dict[str, Any] = {
        name: np.concatenate([column, rng.integers(-1, 90, extra)]) for name, column in kept.columns.items()
    }
    future["submit_time"][len(kept) :] = now + 1 + np.cumsum(rng.integers(0, 40, extra))
    future["run_time"][len(kept) :] = rng.integers(0, 900, extra)
    other = kept.select(slice(None), **future) if not extra else replace(kept, **future)
    other_end = np.concatenate([ends[past], other.submit_time[len(kept) :] + other.run_time[len(kept) :]])
    return (workload, end), (other, other_end), len(kept)


OPTIONS = st.builds(
    lambda **changes: replace(EAGER, **changes),
    discretisation=st.sampled_from(["equal_frequency", "log_width", "k_means", "mdl"]),
    encoding=st.sampled_from(["frequency", "target"]),
    window=st.sampled_from([3, 100]),
    retrain_jobs=st.sampled_from([None, 1, 4]),
    retrain_growth=st.sampled_from([0.0, 0.3]),
    bounded_by_request=st.booleans(),
)


@given(two_futures(), OPTIONS)
@settings(max_examples=80)
def test_predictions_do_not_depend_on_the_future(
    logs: tuple[tuple[Workload, Ends], tuple[Workload, Ends], int], options: PredictorOptions
) -> None:
    first, second, jobs = logs
    one, other = predict_prequential(*first, options), predict_prequential(*second, options)
    assert same(one, other, slice(jobs))


@given(two_futures(12))
@settings(max_examples=12)
def test_no_method_depends_on_the_future(
    logs: tuple[tuple[Workload, Ends], tuple[Workload, Ends], int],
) -> None:
    first, second, jobs = logs
    one, other = predict_by_method(*first, EAGER), predict_by_method(*second, EAGER)
    for method in METHODS:
        np.testing.assert_array_equal(one[method][:jobs], other[method][:jobs])


def test_knowledge_matters_as_soon_as_it_is_there() -> None:
    """The counterpart: predictions do change with what has finished before."""
    workload, end = regular_users(3, 300)
    longer = workload.select(slice(None), run_time=workload.run_time * 3)
    one, other = (predict_prequential(log, end, SOON).run_time for log in (workload, longer))
    changed = np.flatnonzero(one != other)
    assert len(changed) > 100
    assert all(naive_knowledge(workload, end, job) for job in changed.tolist())


# --- several logs ---------------------------------------------------------------------------------


def two_logs() -> tuple[Workload, Ends, np.ndarray[Any, np.dtype[np.int64]]]:
    """Two logs whose users have the same numbers and other run times."""
    first, _ = regular_users(3, 400, seed=1)
    second, _ = regular_users(3, 400, seed=2)
    second = second.select(slice(None), run_time=second.run_time * 7)
    merged, source = merge_workloads([first, second], align="none")
    return merged, merged.submit_time + merged.run_time, source


def test_each_log_has_its_own_history_by_default() -> None:
    merged, end, source = two_logs()
    together = predict_prequential(merged, end, SOON, source)
    for log in (0, 1):
        own = source == log
        alone = predict_prequential(merged.select(own), end[own], SOON)
        assert same(alone, replace(together, **{n: getattr(together, n)[own] for n in PARTS}))


PARTS = ("run_time", "interval", "lower", "upper", "kind", "trained_at")


def test_a_global_history_tells_users_of_different_logs_apart() -> None:
    merged, end, source = two_logs()
    options = replace(SOON, scope="global", features=("user",), intervals=60)
    predictions = predict_prequential(merged, end, options, source)
    assert (predictions.run_time[300:] == merged.run_time[300:]).all()
    confused = predict_prequential(merged, end, options)
    assert not (confused.run_time[300:] == merged.run_time[300:]).all()


# --- the same everywhere --------------------------------------------------------------------------


def digest(threads: int) -> str:
    """Hash of the predictions of all methods."""
    times = predict_by_method(*busy_log(700), replace(SOON, retrain_seconds=40_000), threads=threads)
    return hashlib.sha256(b"".join(times[method].tobytes() for method in METHODS)).hexdigest()


def test_predictions_are_the_same_in_every_process() -> None:
    """With other numbers of threads, another order of sets, and without compiled kernels."""
    code = "from tests.prediction import test_prequential as test; print(test.digest(threads=2))"
    changes = {"OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "5", "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    assert done.stdout.strip() == digest(threads=1)


def test_kth_window(archive_mirror: Path) -> None:
    """On real jobs the tree is nearer to run times than the requests are, from the third week on."""
    log = by_count(clean(read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")), 0, 3000)
    predictions = predict_prequential(log, recorded_end_time(log))
    assert_fields(
        predictions,
        features_absent=("executable", "queue", "partition"),
        retrainings=len(set(predictions.trained_at.tolist()) - {-1}),
    )
    late = slice(1500, None)
    accuracy = {}
    for name, times in (("tree", predictions.run_time), ("requested", log.requested_time)):
        ratio = np.minimum(times, log.run_time) / np.maximum(times, log.run_time)
        accuracy[name] = ratio[late].mean()
    assert accuracy["tree"] > accuracy["requested"]


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discretisation": "magic"}, "discretisation is 'magic'; use one of equal_frequency"),
        ({"intervals": 0}, "intervals is 0"),
        ({"features": ()}, "name at least one"),
        ({"features": ("user", "colour")}, "features are user"),
        ({"retrain_seconds": None, "retrain_jobs": None}, "retrain_seconds or retrain_jobs"),
        ({"retrain_jobs": 0}, "retrain_jobs is 0"),
        ({"window": 0}, "window is 0"),
        ({"intervals": 20.5}, "intervals is 20.5; it must be a whole number"),
        ({"random_state": 2**32}, "random_state is 4294967296"),
        ({"retrain_growth": -1.0}, "retrain_growth is -1.0"),
        ({"encoding": "x"}, "encoding"),
        ({"scope": "x"}, "scope"),
        ({"mdl_label": "hour"}, "mdl_label"),
    ],
)
def test_options_that_make_no_sense(change: dict[str, Any], message: str) -> None:
    with refused(message, error=ConfigurationError, one_line=True):
        PredictorOptions(**change)


def test_inputs_that_make_no_sense() -> None:
    workload, end = regular_users(2, 10)
    each_refused(
        (WorkloadError, "one for each", lambda: predict_prequential(workload, end[1:])),
        (
            WorkloadError,
            "whole seconds",
            lambda: predict_prequential(workload, cast(Any, end / np.where(np.arange(10) == 3, np.nan, 1))),
        ),
        (
            WorkloadError,
            "before its submission",
            lambda: predict_prequential(workload, np.where(np.arange(10) == 3, 0, end)),
        ),
        (
            ConfigurationError,
            "source",
            lambda: predict_prequential(workload, end, source=np.zeros(3, np.int64)),
        ),
        (
            WorkloadError,
            "order of submission",
            lambda: predict_prequential(workload.select(slice(None, None, -1)), end[::-1]),
        ),
        (
            WorkloadError,
            "clean the workload",
            lambda: predict_prequential(workload.select(slice(None), run_time=np.full(10, -1)), end),
        ),
        (WorkloadError, "no jobs", lambda: predict_prequential(workload.select(slice(0)), end[:0])),
    )

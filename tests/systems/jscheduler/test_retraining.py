"""Predictions made in a run: from what has finished in that very run, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platform import Cluster
from gridsched.prediction import PredictorOptions, predict_prequential
from gridsched.results import Schedule
from gridsched.systems.jscheduler.retraining import REFRESH, retrained_schedule
from gridsched.systems.jscheduler.scheduler import JScheduler, draw_samples
from gridsched.traces import merge_workloads
from gridsched.workloads.table import Workload
from tests.support.jscheduler import Submissions, in_short, self_schedule
from tests.support.prediction import busy_log, small_logs

EAGER = PredictorOptions(
    minimum_history=1,
    min_samples_leaf=1,
    rare=1,
    intervals=3,
    window=8,
    retrain_seconds=20,
    retrain_jobs=None,
    retrain_growth=0.0,
)
SOON = PredictorOptions(minimum_history=20, min_samples_leaf=3, retrain_seconds=14_400, retrain_jobs=None)
GRID = [
    Cluster(name="small", processors=2),
    Cluster(name="slow", processors=4, speed=1 / 3),
    Cluster(name="other", processors=3),
]
"""Resources for small logs, whose jobs may be larger than all of them."""

MACHINES = [Cluster(name=f"m{k}", processors=16, speed=1 / (1 + k % 2)) for k in range(4)]
"""Resources for busy logs."""


def retrained(
    logs: list[Workload],
    resources: list[Cluster] = GRID,
    options: PredictorOptions = EAGER,
    *,
    refresh: int = 0,
    **changes: Any,
) -> Schedule:
    jscheduler = JScheduler(**{"metric": "slowdown", "k": 2, "predictions": "plan", **changes})
    return retrained_schedule(
        logs, resources, ["easy"] * len(resources), jscheduler, options=options, refresh=refresh
    )


def ends(done: Schedule) -> NDArray[np.int64]:
    """When each job ended in a run, by the clock of the merged logs; -1 for rejected ones."""
    starts = done.start_time
    return np.where(starts >= 0, starts + done.run_time, -1)


def estimates_of(done: Schedule) -> NDArray[np.int64]:
    """What was predicted of each job."""
    assert done.estimate is not None
    return done.estimate


def prequential(logs: list[Workload], done: Schedule, options: PredictorOptions) -> NDArray[Any]:
    """Predictions of each job from the ends of a run."""
    merged, source = merge_workloads(logs)
    if options.scope == "global":
        return predict_prequential(merged, ends(done), options, source).run_time
    predicted = np.empty(len(merged), np.int64)
    for index, log in enumerate(logs):
        end = ends(done)[source == index]
        own_clock = np.where(end >= 0, end + log.submit_time[0], -1)
        predicted[source == index] = predict_prequential(log, own_clock, options).run_time
    return predicted


@st.composite
def streams(draw: st.DrawFn, max_logs: int = 3, shortest: int = 0) -> list[Workload]:
    """A few small logs that begin at some time; a job may be larger than all resources."""
    logs = []
    for _ in range(draw(st.integers(1, max_logs))):
        log, _ = draw(small_logs())
        sizes = st.lists(st.integers(1, 5), min_size=len(log), max_size=len(log))
        changes = {
            "submit_time": log.submit_time + draw(st.sampled_from([0, 1, 50_000])),
            "run_time": np.maximum(log.run_time, shortest),
            "requested_processors": np.array(draw(sizes)),
        }
        logs.append(log.select(slice(None), **changes))
    return logs


def busy_logs(number: int = 2, jobs: int = 400) -> list[Workload]:
    return [busy_log(jobs, seed)[0] for seed in range(number)]


# --- what is predicted ----------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["source", "global"])
@given(logs=streams(shortest=1), growth=st.sampled_from([0.0, 0.3]), least=st.sampled_from([1, 4]))
@settings(max_examples=60)
def test_predictions_are_those_from_the_ends_of_the_run(
    scope: Any, logs: list[Workload], growth: float, least: int
) -> None:
    """Jobs of no length aside: one that has waited ends after the submissions of that instant, not before."""
    options = replace(EAGER, scope=scope, retrain_growth=growth, minimum_history=least)
    done = retrained(logs, options=options)
    np.testing.assert_array_equal(estimates_of(done), prequential(logs, done, options))


@pytest.mark.parametrize("scope", ["source", "global"])
@pytest.mark.parametrize("number", [1, 2])
def test_predictions_of_longer_logs_are_those_from_the_ends_of_the_run(number: int, scope: Any) -> None:
    logs = busy_logs(number)
    options = replace(SOON, scope=scope)
    done = retrained(logs, MACHINES, options)
    np.testing.assert_array_equal(estimates_of(done), prequential(logs, done, options))
    assert done.counters["trainings"] > 10
    assert (done.start_time < 0).sum() == 0


@given(logs=streams(), refresh=st.sampled_from([0, 1, 15]), mode=st.sampled_from(["exact", "plan"]))
@settings(max_examples=30)
def test_jobs_choose_by_what_is_predicted(logs: list[Workload], refresh: int, mode: Any) -> None:
    """The schedule is that of the predictions given in advance; rejected jobs stay out of it."""
    done = retrained(logs, refresh=refresh, predictions=mode)
    merged, _ = merge_workloads(logs)
    jobs = Submissions(merged.submit_time, merged.run_time, estimates_of(done), merged.processors)
    jscheduler = JScheduler(metric="slowdown", k=2, predictions=mode)
    given_before = self_schedule(jobs, GRID, ["easy"] * 3, jscheduler)
    for name in ("start_time", "resource", "run_time"):
        np.testing.assert_array_equal(getattr(in_short(done), name), getattr(given_before, name))
    assert in_short(done).queries == given_before.queries
    assert ((in_short(done).resource < 0) == (merged.processors > 4)).all()
    assert (estimates_of(done) >= 1).all()


@pytest.mark.parametrize("refresh", [0, REFRESH])
def test_others_are_predicted_as_if_rejected_jobs_had_not_been_submitted(refresh: int) -> None:
    log, _ = busy_log(300)
    rejected = np.arange(300) % 5 == 2
    sizes = np.where(rejected, 99, 1)
    crowded = log.select(slice(None), requested_processors=sizes, user=np.zeros(300, np.int64))
    options = replace(SOON, features=("jobs_in_system",))
    samples = draw_samples(crowded.processors, MACHINES, JScheduler(k=2), seed=0)
    policies, jscheduler = ["easy"] * len(MACHINES), JScheduler(k=2)
    both, alone = (
        retrained_schedule(
            [crowded.select(jobs)],
            MACHINES,
            policies,
            jscheduler,
            options=options,
            refresh=refresh,
            samples=samples[jobs],
        )
        for jobs in (np.full(300, True), ~rejected)
    )
    assert (both.start_time[rejected] == -1).all()
    np.testing.assert_array_equal(estimates_of(both)[~rejected], estimates_of(alone))
    np.testing.assert_array_equal(both.start_time[~rejected], alone.start_time)
    assert both.counters["trainings"] == alone.counters["trainings"] > 0


def test_samples_and_what_a_job_wants_are_kept() -> None:
    logs = busy_logs(1, 100)
    samples = np.tile(np.array([3, 1], np.int16), (100, 1))
    jscheduler = JScheduler(k=2)
    done = retrained_schedule(logs, MACHINES, ["easy"] * 4, jscheduler, options=SOON, samples=samples)
    assert set(in_short(done).resource.tolist()) == {1, 3}


# --- when it is predicted -------------------------------------------------------------------------


def looks(merged: Workload, refresh: int, retrain: int) -> list[int]:
    """When the predictor looks at what has finished [s]."""
    first, last = int(merged.submit_time[0]), int(merged.submit_time[-1])
    if refresh:
        return list(range(first, last + 1, refresh))
    return sorted({*merged.submit_time.tolist(), *range(first, last + 1, retrain)})


@pytest.mark.parametrize("scope", ["source", "global"])
@given(data=st.data(), logs=streams(2), refresh=st.sampled_from([0, 1, 7, 30]))
@settings(max_examples=60)
def test_nothing_is_known_of_jobs_that_run(
    scope: Any, data: st.DataObject, logs: list[Workload], refresh: int
) -> None:
    """Another run time of a job that has not ended at a look changes nothing predicted up to then."""
    options = replace(EAGER, scope=scope, retrain_jobs=3)
    done = retrained(logs, options=options, refresh=refresh)
    merged, source = merge_workloads(logs)
    times = looks(merged, refresh, 20)
    index = data.draw(st.integers(0, len(times) - 1))
    look = times[index]
    open_jobs = np.flatnonzero((ends(done) < 0) | (ends(done) > look))
    if not len(open_jobs):
        return
    job = data.draw(st.sampled_from(open_jobs.tolist()))
    start = int(done.start_time[job])
    # On the slowest cluster a second is three.
    least = max(0, look - start + 1) if 0 <= start <= look else 0
    changed = [log.run_time.copy() for log in logs]
    place = np.flatnonzero(source == source[job]).tolist().index(job)
    changed[source[job]][place] = least + data.draw(st.integers(0, 500))
    others = [log.select(slice(None), run_time=run) for log, run in zip(logs, changed, strict=True)]
    after = times[index + 1] if index + 1 < len(times) else int(merged.submit_time[-1]) + 1
    predicted = merged.submit_time < after
    again = retrained(others, options=options, refresh=refresh)
    np.testing.assert_array_equal(estimates_of(again)[predicted], estimates_of(done)[predicted])


def test_nothing_is_known_between_two_looks() -> None:
    """By default looks are an hour apart; what has ended since the last one is not known."""
    logs = busy_logs(2)
    merged, source = merge_workloads(logs)
    done = retrained(logs, MACHINES, SOON, refresh=REFRESH)
    default = retrained_schedule(
        logs,
        MACHINES,
        ["easy"] * 4,
        JScheduler(metric="slowdown", k=2, predictions="plan"),
        options=SOON,
    )
    np.testing.assert_array_equal(estimates_of(default), estimates_of(done))
    job = int(np.argmax((source == 0) & (np.arange(len(merged)) > 300) & (merged.run_time > 3600)))
    look = int(ends(done)[job] - 1) // REFRESH * REFRESH
    changed = logs[0].run_time.copy()
    changed[int((source[:job] == 0).sum())] += 100_000
    again = retrained(
        [logs[0].select(slice(None), run_time=changed), logs[1]], MACHINES, SOON, refresh=REFRESH
    )
    differs = estimates_of(again) != estimates_of(done)
    assert not differs[merged.submit_time < look + REFRESH].any()
    assert differs.any()


def test_seldom_looks_train_seldom() -> None:
    logs = busy_logs(1)
    trainings = [
        retrained(logs, MACHINES, SOON, refresh=step).counters["trainings"] for step in (3600, 60_000, 10**9)
    ]
    assert trainings[0] > trainings[1] > trainings[2] == 0


def test_trainings_by_number_of_jobs() -> None:
    options = replace(SOON, retrain_seconds=None, retrain_jobs=50)
    assert 3 <= retrained(busy_logs(1), MACHINES, options).counters["trainings"] <= 8


def test_runs_are_the_same_again() -> None:
    logs = busy_logs(2, 200)
    one, other = (retrained(logs, MACHINES, SOON, refresh=REFRESH) for _ in range(2))
    np.testing.assert_array_equal(estimates_of(one), estimates_of(other))
    np.testing.assert_array_equal(one.start_time, other.start_time)
    assert one.counters["trainings"] == other.counters["trainings"] > 0


# --- mistakes -------------------------------------------------------------------------------------


def test_inputs_that_make_no_sense() -> None:
    (log,) = busy_logs(1, 10)
    with pytest.raises(ConfigurationError, match="refresh is -1; use 0 or more seconds"):
        retrained([log], MACHINES, refresh=-1)
    with pytest.raises(WorkloadError, match="clean the workload"):
        retrained([log.select(slice(None), run_time=np.full(10, -1))], MACHINES)
    with pytest.raises(WorkloadError):
        retrained([], MACHINES)

"""The predictor inside a simulation: it predicts what the prequential one does, whoever drives it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, GridschedError, WorkloadError
from gridsched.prediction import Predictor, PredictorOptions, predict_prequential
from gridsched.workloads.table import Workload
from tests.support.errors import each_refused
from tests.support.prediction import Ends, busy_log, naive_features, small_logs, workload_of

OPTIONS = PredictorOptions(
    minimum_history=1, min_samples_leaf=1, rare=1, intervals=4, window=12, retrain_seconds=15
)


def drive(
    workload: Workload, end: Ends, options: PredictorOptions, source: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Predictions of a simulation with these ends: at one instant ends, then a training, then arrivals.

    Jobs that never end are dropped as soon as they are predicted. Jobs of zero length end after they arrive.
    """
    predictor = Predictor(workload, options, source)
    predicted = np.full(len(workload), -1, np.int64)
    submit = workload.submit_time
    step = options.retrain_seconds or 1
    trainings = set(range(int(submit[0]) + step, int(submit[-1]) + 1, step))
    for now in sorted({*submit.tolist(), *end[end >= 0].tolist(), *trainings}):
        predictor.finish(np.flatnonzero((end == now) & (submit < now)), now)
        if now in trainings:
            predictor.retrain(now)
        for job in np.flatnonzero(submit == now):
            predicted[job] = predictor.predict(np.array([job]), now)[0]
            if end[job] < 0:
                predictor.drop(np.array([job]))
        predictor.finish(np.flatnonzero((end == now) & (submit == now)), now)
    return predicted


@given(small_logs(), st.booleans())
@settings(max_examples=40)
def test_predictor_and_prequential_prediction_agree(log: tuple[Workload, Ends], pooled: bool) -> None:
    workload, end = log
    source = np.arange(len(workload)) % 2
    # With a schedule for each log, instants count from the first submission of each.
    source[workload.submit_time == workload.submit_time[0]] = 0
    options = replace(OPTIONS, scope="global" if pooled else "source")
    chosen = source if pooled else None
    expected = predict_prequential(workload, end, options, chosen).run_time
    np.testing.assert_array_equal(drive(workload, end, options, chosen), expected)


def test_logs_have_their_own_models() -> None:
    workload, end = busy_log(200)
    predictor = Predictor(workload, replace(OPTIONS, minimum_history=60), np.arange(200) % 2)
    assert predictor.models == (None, None)
    now = int(end.max())
    predictor.predict(np.arange(200), now)
    predictor.finish(np.arange(0, 200, 2), now)
    predictor.finish(np.arange(1, 100, 2), now)
    predictor.retrain(now)
    assert [model is not None for model in predictor.models] == [True, False]
    requested = np.minimum(workload.requested_time, 10**9)
    assert predictor.predict(np.array([1]), now).tolist() == [requested[1]]
    assert predictor.predict(np.array([0, 1]), now)[1] == requested[1]


def test_asking_again_uses_the_newest_tree_and_the_old_features() -> None:
    workload = workload_of([0, 1, 2, 3, 50], [5, 5, 5, 5, 7], requested_time=[60] * 5, user=[1] * 5)
    predictor = Predictor(workload, replace(OPTIONS, minimum_history=3))
    assert predictor.predict(np.arange(4), 3).tolist() == [60] * 4
    predictor.finish(np.array([0, 1, 2]), 40)
    predictor.retrain(41)
    assert predictor.predict(np.array([3, 4]), 50).tolist() == [5, 5]
    assert predictor.predict(np.array([3, 3]), 50).tolist() == [5, 5]
    assert naive_features(workload, np.array([40, 40, 40, 99, 99]), 4)["jobs_in_system"] == 1


def test_mistakes_of_the_caller() -> None:
    workload, _ = busy_log(10)
    predictor = Predictor(workload)
    with pytest.raises(GridschedError, match="not in the system"):
        predictor.finish(np.array([3]), 100)
    predictor.predict(np.array([3]), 100)
    with pytest.raises(GridschedError, match="not in the system"):
        predictor.finish(np.array([3, 3]), 100)
    predictor.finish(np.array([3]), 100)
    each_refused(
        (GridschedError, "not in the system", lambda: predictor.finish(np.array([3]), 101)),
        (GridschedError, "time goes back from 101 s to 99 s", lambda: predictor.predict(np.array([4]), 99)),
        (ConfigurationError, "source", lambda: Predictor(workload, source=np.zeros(2, np.int64))),
        (WorkloadError, "no jobs", lambda: Predictor(workload.select(slice(0)))),
    )

"""What trees are trained on, and histories that have little to learn from."""

from __future__ import annotations

import numpy as np

from gridsched.prediction import PredictorOptions
from gridsched.prediction.prequential import job_table
from gridsched.prediction.training import train, training_set
from tests.support.prediction import regular_users, workload_of


def test_one_user_at_one_hour_has_one_interval() -> None:
    table, _ = job_table(*regular_users(1, 20), None)
    model = train(table, np.arange(20), PredictorOptions(features=("user", "hour")))
    assert model.classify(table, slice(None)).tolist() == [0] * 20


def test_what_is_the_same_for_all_jobs_is_left_out() -> None:
    workload = workload_of(
        np.arange(50) * 10, np.arange(50), queue=np.arange(50) % 2, requested_time=[60] * 50
    )
    table, _ = job_table(workload, workload.submit_time + workload.run_time, None)
    history = training_set(table, np.arange(50), PredictorOptions())
    assert history.columns == ("queue",)
    assert history.matrix.shape == (50, 1)


def test_a_history_of_equal_jobs_can_be_trained_on() -> None:
    workload = workload_of(np.arange(50), np.full(50, 5))
    table, _ = job_table(workload, workload.submit_time + 5, None)
    model = train(table, np.arange(50), PredictorOptions())
    assert model.classify(table, slice(None)).tolist() == [0] * 50
    assert model.intervals.representative.tolist() == [5]

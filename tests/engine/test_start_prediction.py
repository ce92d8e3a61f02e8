"""Predicted starts where many jobs run, and for a long time; the oracle test is that of superschedulers."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.engine.records import JOB
from gridsched.platform import Cluster
from gridsched.policies.local import named_policy
from gridsched.systems import grids
from gridsched.systems.jscheduler import scheduler as jscheduler
from gridsched.systems.superscheduler import scheduler as grid
from tests.oracles.local import Job
from tests.support import engine
from tests.support.grids import schedule_grid
from tests.support.jscheduler import Submissions, in_short, simulation_of


def test_a_prediction_that_holds_for_long_drops_the_passes_that_are_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A job of 10 s comes every 5 s. The two processors fall free in turn, 3 s after such a time: a job waits
    # for 8 s, behind nobody, and all goes as expected.
    monkeypatch.setattr(grids, "FIRST_ROOM", 4)
    number = 60
    submit = 5 * np.arange(number) - 5
    submit[0] = 0
    run_time = np.full(number, 10)
    run_time[:2] = (13, 18)
    simulation = simulation_of(
        Submissions(submit, run_time, run_time, np.ones_like(submit)),
        [Cluster(name=name, processors=1) for name in ("a", "b")],
        ["ff", "ff"],
        jscheduler.JScheduler(k=2),
    )
    simulation.run(int(submit[-1]) + 1)
    # A prediction begins at the submission that asks for it, a multiple of 5. All the passes that are kept
    # are at ends: it was never made anew, and has lost those at its front.
    predictions = simulation._grid.local.start_predictions
    assert predictions.passes.shape[1] < number // 4
    assert predictions.state["valid"].all()
    for kept, state in zip(predictions.passes, predictions.state[:, 0], strict=True):
        times = kept["time"][: state["passes"]]
        assert (times % 5 == 3).all()
        assert times[0] > submit[number // 2]
        assert (np.diff(times) == 10).all()
    simulation.run()
    done = in_short(simulation.result())
    assert done.start_time.tolist() == [0, 0, *(submit[2:] + 8)]
    assert (done.resource[2:] != done.resource[1:-1]).all()


@pytest.mark.parametrize("policy", ["easy", "fcfs", "ff", "sjf", "conservative"])
def test_hundreds_of_running_jobs(policy: str) -> None:
    # More than one block of running jobs; two clusters that differ in name only, of which one gets them all.
    random = np.random.default_rng(3)
    number, processors = 600, 300
    jobs = np.empty(number, JOB)
    jobs["submit"] = np.sort(random.integers(0, 2000, number))
    jobs["run"] = random.integers(0, 1500, number)
    jobs["estimate"] = np.maximum(jobs["run"] // random.integers(1, 3, number), 1)
    jobs["processors"] = random.integers(1, 3, number)
    clusters = [Cluster(name=name, processors=processors) for name in ("a", "b")]
    done = schedule_grid(
        jobs,
        np.zeros(number, np.int64),
        clusters,
        [named_policy(policy)] * 2,
        grid.Superscheduler(scheme="s-i", phi=10**9),
    )
    alone = [Job(*(int(value) for value in job)) for job in jobs.tolist()]
    assert done.start_time.tolist() == engine.simulate(alone, processors, named_policy(policy))

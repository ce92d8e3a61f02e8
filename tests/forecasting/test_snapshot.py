"""Simulations that begin with a queue, against the naive oracle of the whole run."""

from __future__ import annotations

import numpy as np
import pytest

import gridsched as gs
from gridsched.engine.records import FOREVER, JOB
from gridsched.engine.snapshot import Beginning
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.forecasting.snapshot import Timeline, recorded_timeline, timeline_of_run
from gridsched.policies.local import Conventions, OverrunName, named_policy, schedule_from
from tests.oracles.local import Job, simulate_policy
from tests.support.errors import each_refused
from tests.support.fields import assert_fields

EXACT = ("fcfs", "ff", "sjf", "easy", "easy(2)", "sjbf", "lxf", "lxwf")
PROCESSORS = 8


def some_jobs(rng: np.random.Generator, *, exact: bool) -> list[Job]:
    """A few jobs on a busy cluster, with many coincidences and outrun estimates."""
    count = int(rng.integers(2, 25))
    submit = np.sort(rng.integers(0, 40, count)).tolist()
    run = rng.integers(1 if exact else 0, 20, count).tolist()  # estimates are 1 s at least
    estimate = [max(1, each if exact else each + int(rng.integers(-6, 12))) for each in run]
    return [
        Job(*each) for each in zip(submit, run, estimate, rng.integers(1, 9, count).tolist(), strict=True)
    ]


def resumed(
    jobs: list[Job], starts: list[int], now: int, policy: str, conventions: Conventions
) -> tuple[list[int], list[int], bool]:
    """Jobs that wait at a time, when they start from there on, and whether all did."""
    places = range(len(jobs))
    running = [k for k in places if starts[k] <= now < starts[k] + jobs[k].run_time]
    running.sort(key=lambda k: (starts[k], k))
    waiting = [k for k in places if jobs[k].submit_time <= now < starts[k]]
    later = [k for k in places if jobs[k].submit_time > now]
    records = np.array([tuple(jobs[k]) for k in (*running, *waiting, *later)], JOB)
    begin = Beginning(now, len(running), len(waiting), FOREVER - 1, True)
    begun = np.array([starts[k] for k in running], np.int64)
    found, complete = schedule_from(records, begun, PROCESSORS, named_policy(policy), begin, conventions)
    return waiting, found[len(running) : len(running) + len(waiting)].tolist(), complete


@pytest.mark.parametrize("policy", [*EXACT, "conservative"])
def test_what_is_known_exactly_comes_true(policy: str) -> None:
    """With the actual run times and submissions, waiting jobs start when they do in the whole run."""
    rng = np.random.default_rng(20)
    waited = 0
    for trial in range(150):
        jobs = some_jobs(rng, exact=policy == "conservative")
        overrun: OverrunName = "doubling" if trial % 2 else "increments"
        starts = simulate_policy(jobs, PROCESSORS, policy, overrun)
        for now in rng.integers(0, max(starts) + 1, 3).tolist():
            waiting, found, complete = resumed(jobs, starts, now, policy, Conventions(overrun))
            assert complete
            assert found == [starts[k] for k in waiting], (trial, now)
            waited += len(waiting)
    assert waited > 500


def test_nothing_after_the_horizon_is_simulated() -> None:
    records = np.array([(0, 50, 60, 8), (10, 5, 5, 8), (11, 5, 5, 8)], JOB)
    begun = np.zeros(1, np.int64)
    for horizon, expected in ((49, [-1, -1]), (50, [50, -1]), (54, [50, -1]), (55, [50, 55])):
        begin = Beginning(20, 1, 2, horizon, True)
        starts, complete = schedule_from(records, begun, 8, named_policy("easy"), begin)
        assert starts[1:].tolist() == expected
        assert complete == (horizon == 55)


# --- what is known at a time ----------------------------------------------------------------------


def run_of(jobs: list[Job], policy: str = "easy") -> gs.Workload:
    return gs.Workload(
        name="drawn",
        submit_time=np.array([job.submit_time for job in jobs]),
        run_time=np.array([job.run_time for job in jobs]),
        requested_time=np.array([job.estimate for job in jobs]),
        requested_processors=np.array([job.processors for job in jobs]),
        processors_available=PROCESSORS,
    )


def test_a_snapshot_tells_nothing_of_what_comes() -> None:
    """Snapshots of two runs that differ only later are the same."""
    workload = run_of(some_jobs(np.random.default_rng(3), exact=False))
    run = gs.simulate(workload, PROCESSORS, "easy")
    timeline = timeline_of_run(run)
    for now in (10, 20, 30, 60):
        later = run["start_time"].to_numpy() + run["run_time"].to_numpy() > now
        changed = np.where(later, workload.run_time + 100, workload.run_time)
        other = gs.simulate(
            gs.Workload(
                name="drawn",
                submit_time=workload.submit_time,
                requested_time=workload.requested_time,
                run_time=changed,
                requested_processors=workload.requested_processors,
            ),
            PROCESSORS,
            "easy",
        )
        assert np.array_equal(timeline.at(now).past, timeline_of_run(other).at(now).past)


def test_a_snapshot_says_who_waits_and_runs() -> None:
    workload = run_of([Job(0, 50, 60, 6), Job(5, 10, 10, 2), Job(6, 5, 5, 8), Job(90, 5, 5, 8)])
    snapshot = timeline_of_run(gs.simulate(workload, PROCESSORS, "easy")).at(10)
    assert_fields(snapshot.past, number=[1, 2, 3], end=[-1, -1, -1])
    assert (snapshot.running.tolist(), snapshot.waiting.tolist(), snapshot.free) == ([0, 1], [2], 0)


def test_recorded_starts_are_a_timeline() -> None:
    workload = gs.Workload(
        name="logged",
        submit_time=np.array([0, 10, 20, 30]),
        wait_time=np.array([0, 40, -1, 5]),
        run_time=np.array([50, 10, 10, 10]),
        requested_time=np.array([100, -1, 10, 10]),
        requested_processors=np.array([8, 8, 1, 9]),
        processors_available=8,
    )
    timeline = recorded_timeline(workload)
    assert timeline.jobs["start"].tolist() == [0, 50]
    assert timeline.jobs["estimate"].tolist() == [100, 100], "nobody knew that it would run for 10 s"
    assert timeline.left_out == {"without recorded wait": 1, "larger than the cluster": 1}
    with pytest.raises(WorkloadError, match="no recorded waits"):
        recorded_timeline(run_of([Job(0, 50, 60, 6)]))


def test_a_log_with_too_many_in_use() -> None:
    """A cluster is as large as what is in use."""
    whole = timeline_of_run(gs.simulate(run_of([Job(0, 50, 60, 6), Job(5, 10, 10, 6)]), 12, "easy"))
    assert Timeline("small", 8, whole.jobs).at(7).processors == 12


def test_other_runs_are_refused() -> None:
    workload = run_of([Job(0, 50, 60, 6)])
    two = gs.simulate([workload, workload], [gs.Cluster(processors=8, name=name) for name in "ab"], "local")
    each_refused(
        (ConfigurationError, "2 clusters", lambda: timeline_of_run(two)),
        (
            ConfigurationError,
            "counted",
            lambda: timeline_of_run(gs.simulate(workload, 8, "easy").assign(fate=("job", [0]))),
        ),
        (
            ConfigurationError,
            "passes 'event'",
            lambda: timeline_of_run(gs.simulate(workload, 8, "easy", passes="event")),
        ),
        (
            ConfigurationError,
            "no job has been submitted",
            lambda: timeline_of_run(gs.simulate(run_of([Job(9, 5, 6, 6)]), 8)).at(8),
        ),
    )

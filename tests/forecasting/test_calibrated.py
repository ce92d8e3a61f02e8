"""Futures under a calibrated policy: EASY where nothing was fitted, and what layers do from a queue on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import gridsched as gs
from gridsched.calibration.fitting import Effort
from gridsched.calibration.site import site_of
from gridsched.errors import ConfigurationError, TraceError, WorkloadError
from gridsched.forecasting import CalibratedPolicy, Scenarios, calibrate, continue_log, recorded_timeline
from gridsched.policies.local import Conventions, named_policy
from tests.support.errors import each_refused

PROCESSORS = 16
CONVENTIONS = Conventions()


@pytest.fixture(scope="module")
def log() -> gs.Workload:
    """A log whose recorded starts are those under EASY; it is busy, and users outrun what they request."""
    rng = np.random.default_rng(1)
    count = 1200
    run_time = rng.integers(60, 20_000, count)
    size = rng.integers(1, 12, count)
    columns: dict[str, Any] = {
        "submit_time": np.sort(rng.integers(0, int((run_time * size).sum() / PROCESSORS), count)),
        "run_time": run_time,
        "requested_time": np.maximum(60, run_time + rng.integers(-500, 9000, count)),
        "requested_processors": size,
        "user": rng.integers(0, 6, count),
        "queue": rng.integers(1, 3, count),
        "processors_available": PROCESSORS,
    }
    run = gs.simulate(gs.Workload(name="log", **columns), PROCESSORS, "easy")
    return gs.Workload(name="log", wait_time=(run["start_time"] - run["submit_time"]).to_numpy(), **columns)


def policy_of(log: gs.Workload, **calibration: float) -> CalibratedPolicy:
    return CalibratedPolicy(
        site_of(log, PROCESSORS, seen_outages=False), calibration, np.arange(len(log.submit_time))
    )


def moments(log: gs.Workload) -> list[int]:
    """Times at which many wait."""
    timeline = recorded_timeline(log)
    found = [int(each) for each in np.asarray(log.submit_time)[300::60]]
    return [each for each in found if len(timeline.at(each).waiting) > 3][:8]


def test_without_layers_it_is_easy(log: gs.Workload) -> None:
    timeline = recorded_timeline(log)
    assert len(moments(log)) == 8
    for now in moments(log):
        snapshot = timeline.at(now)
        easy, calibrated = (
            Scenarios(snapshot, policy, CONVENTIONS) for policy in (named_policy("easy"), policy_of(log))
        )
        np.testing.assert_array_equal(easy.expected, calibrated.expected)
        np.testing.assert_array_equal(easy.starts(5, 3), calibrated.starts(5, 3))


def test_jobs_are_held_as_layers_say(log: gs.Workload) -> None:
    """Where all jobs are long, and have one processor together, each starts when others have ended."""
    timeline = recorded_timeline(log)
    serial = policy_of(log, long=1.0, long_share=0.0, daytime=0.0)
    longer = 0
    for now in moments(log):
        snapshot = timeline.at(now)
        free = Scenarios(snapshot, named_policy("easy"), CONVENTIONS).expected
        alone = Scenarios(snapshot, serial, CONVENTIONS).expected
        jobs = snapshot.past[snapshot.waiting]
        order = np.argsort(alone)
        assert (alone[order][1:] >= (alone + jobs["estimate"])[order][:-1]).all()
        longer += int(alone.max() > free.max())
    assert longer >= 4


def test_other_layers_go_on_from_a_queue(log: gs.Workload) -> None:
    """Priorities of queues and fair share change who starts when, and nobody is lost."""
    timeline = recorded_timeline(log)
    now = moments(log)[2]
    plain = Scenarios(timeline.at(now), policy_of(log), CONVENTIONS).starts(4)
    for calibration in ({"priority 2": 500.0}, {"fair": 500.0, "half_life": 2.0}):
        made = Scenarios(timeline.at(now), policy_of(log, **calibration), CONVENTIONS).starts(4)
        assert np.isfinite(made).all()
        assert (made >= now).all()
        assert (made != plain).any(), calibration


def test_jobs_wait_for_seconds_in_any_case(log: gs.Workload) -> None:
    """As like jobs did, on an empty cluster too; those that wait already have waited for that."""
    held = log.select(slice(None), wait_time=log.wait_time + 120)
    now = moments(held)[0]
    snapshot = recorded_timeline(held).at(now)
    policy = policy_of(held, held=0.5)
    waiting = int(snapshot.waiting[0])
    which, submit = np.array([5, waiting]), np.array([now + 1000, int(held.submit_time[waiting])])
    starts = policy.starts(snapshot, which, submit, np.array([10, 10]))
    assert 120 <= starts[0] - submit[0] < 600
    assert starts[1] == max(now, submit[1] + starts[0] - submit[0])


def test_jobs_of_prompt_queues_start_now_at_the_earliest(log: gs.Workload) -> None:
    """Jobs of a queue that starts its jobs at once go on from now where they wait longer."""
    prompt = log.queue == 1
    waits = np.where(prompt, 0, log.wait_time)
    late = int(np.flatnonzero(prompt)[800 // 2])
    waits[late] = 5000
    odd = log.select(slice(None), wait_time=waits)
    now = int(odd.submit_time[late]) + 1000
    snapshot = recorded_timeline(odd, 10 * PROCESSORS).at(now)
    assert late in snapshot.waiting
    policy = policy_of(odd, apart=1.0)
    assert policy.site.history.apart[0]
    place = int(np.flatnonzero(snapshot.waiting == late)[0])
    assert (Scenarios(snapshot, policy, CONVENTIONS).starts(4)[:, place] == now).all()


def test_nothing_later_is_known_to_a_fit(log: gs.Workload) -> None:
    now = int(log.submit_time[900])
    effort = Effort(drawn=2, kept=1, varied=1, rounds=1, layers=2)
    fitted = calibrate(log, PROCESSORS, now=now, effort=effort)
    started = np.asarray(log.submit_time) + log.wait_time <= now
    ended = np.asarray(log.submit_time) + log.wait_time + log.run_time <= now
    other = log.select(
        slice(None),
        wait_time=np.where(started, log.wait_time, log.wait_time + 9999),
        run_time=np.where(ended, log.run_time, log.run_time + 99_999),
    )
    assert fitted.calibration == calibrate(other, PROCESSORS, now=now, effort=effort).calibration
    issued = gs.forecast(log, now, policy=fitted, adjust=0, futures=9)
    assert issued.attrs["policies"] == "calibrated"
    assert issued.sizes["job"] == len(recorded_timeline(log).at(now).waiting)


def test_mistakes(log: gs.Workload) -> None:
    run = gs.simulate(log, PROCESSORS, "easy")
    each_refused(
        (
            ConfigurationError,
            "recorded queues",
            lambda: gs.forecast(run, int(log.submit_time[900]), policy=policy_of(log)),
        ),
        (WorkloadError, "no queueing", lambda: calibrate(log, PROCESSORS, now=int(log.submit_time[3]))),
        (WorkloadError, "later time", lambda: calibrate(log, PROCESSORS, now=-1)),
    )


def queue_of(log: gs.Workload, now: int) -> pd.DataFrame:
    """The queue of a log at a time, as a table that tells nothing of later."""
    start = log.submit_time + log.wait_time
    there = np.flatnonzero((log.submit_time <= now) & (start + log.run_time > now))
    runs = start[there] <= now
    return pd.DataFrame(
        {
            "JOBID": log.job_number[there],
            "STATE": np.where(runs, "RUNNING", "PENDING"),
            "TIME": np.where(runs, now - start[there], 0),
            "CPUS": log.processors[there],
            "TIME_LIMIT": np.maximum(log.requested_time, log.run_time)[there],
            "USER": [f"u{user}" for user in log.user[there]],
            "QOS": [f"q{queue}" for queue in log.queue[there]],
            "SUBMIT_TIME": log.submit_time[there],
        }
    )


NAMES = {"user": [f"u{user}" for user in range(6)], "queue": ["-", "q1", "q2"]}


def test_a_queue_behind_its_history_is_the_log(log: gs.Workload) -> None:
    """With the same correction, and under the same calibrated policy."""
    asked = log.select(slice(None), requested_time=np.maximum(log.requested_time, log.run_time))
    for now in moments(asked)[4:6]:
        known = continue_log(asked, queue_of(asked, now), PROCESSORS, now=now, names=NAMES)
        assert (known.submit_time <= now).all()
        policies = [
            None,
            *(policy_of(each, long=3600.0, long_share=0.5, daytime=0.0) for each in (asked, known)),
        ]
        whole = gs.forecast(asked, now, futures=9, adjust=6)
        issued = gs.forecast(recorded_timeline(known, PROCESSORS), now, futures=9, adjust=6)
        assert whole.identical(issued)
        whole = gs.forecast(asked, now, policy=policies[1], adjust=9, futures=9)
        issued = gs.forecast(
            recorded_timeline(known, PROCESSORS), now, policy=policies[2], adjust=9, futures=9
        )
        assert whole.sizes["job"] > 3
        assert whole.identical(issued)


def test_a_history_goes_on(log: gs.Workload) -> None:
    """Users, queues and times of a queue on the clock of the log, strangers apart."""
    history = log.select(slice(None), unix_start_time=86_400, time_zone="Europe/Rome")
    now = int((log.submit_time + log.wait_time + log.run_time).max()) + 7200
    date = str(pd.Timestamp(86_400 + now - 60, unit="s", tz="Europe/Rome").tz_localize(None))
    rows = [("1", "R", "10", 9, "1:00:00", "u4", "q2", date), ("2", "PD", "0", 1, "60", "eve", "q9", date)]
    table = pd.DataFrame(
        rows, columns=["job", "st", "time", "cpus", "timelimit", "user", "qos", "submit_time"]
    )
    known = continue_log(history, table, PROCESSORS, now=now, names=NAMES)
    assert len(known) == len(log) + 2
    assert known.submit_time[-2:].tolist() == [now - 60, now - 60]
    assert known.user[-2:].tolist() == [4, -2]
    assert known.queue[-2:].tolist() == [2, -2]
    snapshot = recorded_timeline(known, PROCESSORS).at(now)
    assert snapshot.past["start"][-2:].tolist() == [now - 10, -1]
    each_refused(
        (
            TraceError,
            "later than now",
            lambda: continue_log(history, table, PROCESSORS, now=now - 61, names=NAMES),
        ),
        (
            TraceError,
            "give a date",
            lambda: continue_log(history, table.assign(submit_time="soon"), PROCESSORS, now=now),
        ),
    )

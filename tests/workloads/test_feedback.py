"""Users who react: batches, sessions and submissions against a twin, and logs that reproduce themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import WorkloadError
from gridsched.metrics.jobs import productivity, summarise
from gridsched.workloads.feedback import sessions_of, with_feedback
from tests.oracles import feedback as oracle

JOB = st.tuples(
    st.integers(0, 200), st.integers(0, 60), st.integers(1, 60), st.integers(-1, 2), st.integers(0, 90)
)


def log(rows: Any) -> gs.Workload:
    """Jobs of one processor with recorded waits, in order of submission."""
    submit, wait, run, user = np.array([row[:4] for row in sorted(rows)], np.int64).T
    return gs.Workload(
        name="log",
        submit_time=submit,
        wait_time=wait,
        run_time=run,
        requested_time=run,
        requested_processors=np.ones(len(run), np.int64),
        user=user,
        processors_available=1000,
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=14), st.integers(0, 40))
def test_batches_and_sessions_are_those_of_the_twin(rows: list[tuple[int, ...]], think_time: int) -> None:
    workload = log(rows)
    found = sessions_of(workload, think_time=think_time)
    end = (workload.submit_time + workload.wait_time + workload.run_time).tolist()
    expected = oracle.batches(workload.submit_time.tolist(), end, workload.user.tolist(), think_time)
    flat = [batch for made in expected for batch in made]
    assert [np.flatnonzero(found.batch == number).tolist() for number in range(len(flat))] == [
        jobs for jobs, _, _ in flat
    ]
    assert found.think_time.tolist() == [gap for _, gap, _ in flat]
    assert found.opens.tolist() == [opens for _, _, opens in flat]
    assert found.before.tolist() == [
        place - 1 if index else -1
        for made, first in zip(expected, np.cumsum([0, *map(len, expected)]), strict=False)
        for index, place in enumerate(range(first, first + len(made)))
    ]
    assert (found.batch >= 0).tolist() == (workload.user >= 0).tolist()


@settings(max_examples=300, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=14), st.integers(0, 40), st.sampled_from(["clock", "think"]))
def test_submissions_follow_ends_as_the_twin_says(
    rows: list[tuple[int, ...]], think_time: int, sessions: Any
) -> None:
    if not any(row[3] >= 0 for row in rows):
        return
    workload = log(rows)
    made = with_feedback(workload, think_time=think_time, sessions=sessions)
    assert made.dependencies is not None
    place = {int(number): index for index, number in enumerate(made.job_number)}
    waits = [row[4] for row in sorted(rows)]
    columns = [getattr(workload, name).tolist() for name in ("submit_time", "run_time", "user")]
    submit, run, user = columns
    end = [a + b + c for a, b, c in zip(submit, workload.wait_time.tolist(), run, strict=True)]
    expected = oracle.submissions(submit, end, run, user, think_time, sessions, waits)
    # eligible when submitted and all dependencies have ended, one job after the other
    eligible: dict[int, int] = {}
    while len(eligible) < len(waits):
        for job in range(len(waits)):
            own = made.dependencies[made.dependencies["job"] == job]
            if job not in eligible and all(int(on) in eligible for on in own["on"]):
                source = int(made.job_number[job]) - 1
                since = [int(made.submit_time[job])]
                for on, delay in zip(own["on"].tolist(), own["delay"].tolist(), strict=True):
                    other = int(made.job_number[on]) - 1
                    since.append(eligible[on] + waits[other] + run[other] + delay)
                eligible[job] = max(since)
                assert place[source + 1] == job
    assert [eligible[place[number + 1]] for number in range(len(waits))] == expected


@pytest.mark.parametrize("sessions", ["clock", "think"])
def test_a_log_of_a_policy_reproduces_itself_under_this_policy(sessions: Any) -> None:
    rng = np.random.default_rng(4)
    jobs = 400
    run_time = rng.integers(50, 3000, jobs)
    plain = gs.Workload(
        name="log",
        submit_time=np.sort(rng.choice(200_000, jobs, replace=False)),
        run_time=run_time,
        requested_time=run_time * 2,
        requested_processors=rng.choice([1, 2, 4, 8], jobs),
        user=rng.integers(0, 9, jobs),
        processors_available=16,
    )
    first = gs.simulate(plain, scheduler="easy")
    recorded = replace(plain, wait_time=(first["start_time"] - first["submit_time"]).values)
    reacting = with_feedback(recorded, sessions=sessions)
    again = gs.simulate(reacting, scheduler="easy")
    gs.verify(again)
    order = np.argsort(reacting.job_number)
    assert again["eligible_time"].values[order].tolist() == plain.submit_time.tolist()
    assert again["start_time"].values[order].tolist() == first["start_time"].values.tolist()
    wait = summarise(again, since="eligible")["wait_time_mean"].sel(job_class="all")
    assert float(wait) == pytest.approx(float((first["start_time"] - first["submit_time"]).mean()))


def test_productivity_counts_the_jobs_that_ended_in_time() -> None:
    workload = log([(0, 0, 10, 1, 0), (50, 0, 10, 1, 0), (86_400, 0, 10, 1, 0)])
    assert productivity(gs.simulate(workload, scheduler="fcfs")) == pytest.approx(2.0)


def test_what_cannot_react_is_refused() -> None:
    rows = [(0, 0, 10, 1), (50, 0, 10, 1)]
    with pytest.raises(WorkloadError, match="use one of clock, think"):
        with_feedback(log(rows), sessions="never")  # type: ignore[arg-type]
    with pytest.raises(WorkloadError, match="does not name its users"):
        with_feedback(log([(0, 0, 10, -1)]))
    with pytest.raises(WorkloadError, match="no recorded waits"):
        with_feedback(log([(0, -1, 10, 1)]))

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
from gridsched.workloads.feedback import (
    LIMITS,
    Continuation,
    _falling,
    continuation_of,
    sessions_of,
    with_feedback,
)
from tests.oracles import feedback as oracle
from tests.support.errors import each_refused
from tests.support.fields import assert_fields

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
    assert_fields(
        found,
        think_time=[gap for _, gap, _ in flat],
        opens=[opens for _, _, opens in flat],
        before=[
            place - 1 if index else -1
            for made, first in zip(expected, np.cumsum([0, *map(len, expected)]), strict=False)
            for index, place in enumerate(range(first, first + len(made)))
        ],
    )
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


@pytest.mark.parametrize("sessions", ["clock", "think", "leave"])
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
    each_refused(
        (WorkloadError, "use one of clock, think, leave", lambda: with_feedback(log(rows), sessions="never")),  # type: ignore[arg-type]
        (WorkloadError, "does not name its users", lambda: with_feedback(log([(0, 0, 10, -1)]))),
        (WorkloadError, "no recorded waits", lambda: with_feedback(log([(0, -1, 10, 1)]))),
        (WorkloadError, "seed is -1", lambda: with_feedback(log(rows), seed=-1)),
    )


# --- users who leave ------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9))
def test_shares_fall_as_those_of_the_twin(pairs: list[tuple[int, int]]) -> None:
    trials = [hit + miss for hit, miss in pairs]
    hits = [hit for hit, _ in pairs]
    found = _falling(np.array(hits), np.array(trials))
    assert found.tolist() == pytest.approx(oracle.falling_shares(hits, trials))


def users_log(seed: int, jobs: int = 60) -> gs.Workload:
    """Jobs of a few users with all kinds of waits and pauses, some of which overlap."""
    rng = np.random.default_rng(seed)
    now, user = np.zeros(4, np.int64), rng.integers(0, 4, jobs)
    columns = []
    for name in user.tolist():
        pause = int(rng.choice([-200, 0, 60, 700, 5_000, 50_000, 200_000]))
        submit = max(0, int(now[name]) + pause)
        wait, run = int(rng.choice([0, 100, 4_000, 40_000])), int(rng.integers(1, 9_000))
        now[name] = max(int(now[name]), submit + wait + run)
        columns.append((submit, wait, run, name))
    return replace(log(columns), processors_available=2)


@pytest.mark.random_cases(40)
def test_who_leaves_agrees_with_the_log(seed: int) -> None:
    workload = users_log(seed)
    found = sessions_of(workload)
    made = with_feedback(workload, sessions="leave", seed=seed)
    assert made.response_limit is not None
    limit = dict(zip(made.job_number.tolist(), made.response_limit.tolist(), strict=True))
    fitted = continuation_of(workload)
    end = workload.submit_time + workload.wait_time + workload.run_time
    counts = {True: [0] * (len(LIMITS) + 1), False: [0] * (len(LIMITS) + 1)}
    for batch in range(len(found.before)):
        own = np.flatnonzero(found.batch == batch)
        response = int(end[own].max() - workload.submit_time[own[0]])
        after = np.flatnonzero(found.before == batch)
        goes_on = len(after) > 0 and not found.opens[after[0]]
        counts[goes_on][sum(response >= bound for bound in LIMITS.tolist())] += 1
        first = limit[int(workload.job_number[own[0]])]
        if len(after) and goes_on:
            assert first < 0 or response < first
        elif len(after):
            assert 0 <= first <= response
        for job in own.tolist():
            offset = int(workload.submit_time[job] - workload.submit_time[own[0]])
            assert limit[int(workload.job_number[job])] == (max(first - offset, 0) if first >= 0 else -1)
    assert fitted.continued.tolist() == counts[True]
    assert (fitted.batches - fitted.continued).tolist() == counts[False]


@pytest.mark.random_cases(12)
@pytest.mark.parametrize("scheduler", ["fcfs", "central"])
def test_users_leave_and_come_back_as_the_twin_says(seed: int, scheduler: str) -> None:
    workload = users_log(seed)
    found = sessions_of(workload)
    made = with_feedback(workload, sessions="leave", seed=seed)
    clusters = [gs.Cluster(name=name, processors=1) for name in ("one", "two")]
    given: Any = (made, clusters[0]) if scheduler == "fcfs" else ([made, None], clusters)
    run = gs.simulate(given[0], given[1], scheduler, align="none")
    gs.verify(run)
    place = {int(number): index for index, number in enumerate(made.job_number)}
    at = [place[int(number)] for number in workload.job_number]
    eligible, end = run["eligible_time"].values[at].tolist(), run["end_time"].values[at].tolist()
    columns = [
        np.asarray(made.extra[name])[at].tolist() for name in ("response_limit", "returns_at", "away_days")
    ]
    assert made.dependencies is not None
    table, left = made.dependencies, 0
    for batch, before in enumerate(found.before.tolist()):
        own = np.flatnonzero(found.batch == batch).tolist()
        if before < 0:
            assert eligible[own[0]] == workload.submit_time[own[0]]
            continue
        earlier = np.flatnonzero(found.batch == before).tolist()
        ended = max(end[job] for job in earlier)
        response = ended - eligible[earlier[0]]
        limit, returns, away = (column[earlier[0]] for column in columns)
        knows = oracle.noticed(ended, response, limit, returns, away)
        left += knows > ended
        think = int(table["delay"][table["job"] == at[own[0]]].min())
        assert think <= 1200
        if not found.opens[batch]:
            assert think == found.think_time[batch]
        for job in own:
            offset = int(workload.submit_time[job] - workload.submit_time[own[0]])
            assert eligible[job] == knows + think + offset
    assert left > 0


def test_shorter_responses_keep_sessions_going() -> None:
    workload = users_log(3, 200)
    nothing = np.zeros(len(LIMITS) + 1, np.int64)
    impatient = Continuation(LIMITS, nothing, nothing, np.linspace(0.95, 0.05, len(LIMITS) + 1))
    made = with_feedback(workload, sessions="leave", continuation=impatient)
    free = gs.simulate(made, gs.Cluster(processors=200), "fcfs")
    scarce = gs.simulate(made, gs.Cluster(processors=1), "fcfs")
    assert float(free["end_time"].max()) < float(scarce["end_time"].max())
    lasted = [
        sessions_of(
            replace(
                made,
                submit_time=run["eligible_time"].values,
                wait_time=(run["start_time"] - run["eligible_time"]).values,
                dependencies=None,
            ).select(np.argsort(run["eligible_time"].values, kind="stable"))
        ).opens.sum()
        for run in (free, scarce)
    ]
    assert lasted[0] < lasted[1]

"""Logs put together anew from the histories of their users, against a twin that goes job by job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gridsched as gs
from gridsched.errors import WorkloadError
from gridsched.workloads.dependencies import dependency_table
from gridsched.workloads.resampling import (
    DAY,
    PLACEMENT,
    WEEK,
    assembled,
    histories,
    placements,
    resample,
)
from tests.oracles import resampling as oracle
from tests.support.fields import assert_fields


def log(submit: Any, user: Any, **more: Any) -> gs.Workload:
    """Jobs of some users, on a clock that begins on a Monday, 0:00."""
    submit = np.asarray(submit, np.int64)
    return gs.Workload(
        name="log",
        submit_time=submit,
        run_time=np.full(len(submit), 600),
        requested_processors=np.ones(len(submit), np.int64),
        user=np.asarray(user),
        processors_available=8,
        **more,
    )


def busy_log(seed: int = 1, weeks: int = 30, users: int = 25) -> gs.Workload:
    """Users who come and go, with jobs in the hours of a working day, and a little every day at both ends."""
    rng = np.random.default_rng(seed)
    rows = [(0, 0), (weeks * WEEK - 1, 0)]
    for user in range(1, users + 1):
        first = int(rng.integers(weeks))
        for week in range(first, min(weeks, first + int(rng.choice([1, 3, weeks])))):
            days = rng.integers(0, 5, rng.integers(1, 6))
            rows += [(int(week * WEEK + day * DAY + rng.integers(8, 18) * 3600), user) for day in days]
    submit, user = np.array(sorted(rows)).T
    return log(submit, user)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_placements_are_put_together_as_job_by_job(data: st.DataObject) -> None:
    weeks = data.draw(st.integers(2, 4))
    count = data.draw(st.integers(1, 12))
    clock = sorted(data.draw(st.lists(st.integers(0, weeks * WEEK - 1), min_size=count, max_size=count)))
    clock = [0, *clock, weeks * WEEK - 1]
    user = data.draw(st.lists(st.integers(1, 3), min_size=len(clock), max_size=len(clock)))
    due = data.draw(st.lists(st.integers(-1, 5), min_size=len(clock), max_size=len(clock)))
    deadline = [-1 if each < 0 else time + each for each, time in zip(due, clock, strict=True)]
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, len(clock) - 1)] * 2), max_size=8, unique=True))
    pairs = [(job, on) for job, on in pairs if on < job]
    length = data.draw(st.integers(1, 6))
    part = st.tuples(
        st.integers(1, 3), st.integers(-4, 6), st.integers(0, weeks), st.integers(0, weeks), st.integers(1, 9)
    )
    placed = data.draw(st.lists(part, max_size=8))
    workload = log(
        clock,
        user,
        deadline=np.array(deadline),
        dependencies=dependency_table([(job, on, "afterok", 7) for job, on in pairs]),
    )
    found = histories(workload)
    assert found.weeks == weeks
    made = assembled(workload, found, np.array(placed, PLACEMENT), length)
    jobs = [
        {"clock": each, "user": of, "deadline": by, "on": [on for job, on in pairs if job == index]}
        for index, (each, of, by) in enumerate(zip(clock, user, deadline, strict=True))
    ]
    expected = oracle.resampled(jobs, placed, length)
    assert_fields(
        made, submit_time=[job["submit"] for job in expected], user=[job["user"] for job in expected]
    )
    assert made.extra["deadline"].tolist() == [job["deadline"] for job in expected]
    assert made.dependencies is not None
    table = {(int(row["job"]), int(row["on"])) for row in made.dependencies}
    assert table == {(place, on) for place, job in enumerate(expected) for on in job["on"]}
    assert len(made.dependencies) == len(table)


def test_hours_and_days_stay_and_histories_stay_together() -> None:
    workload = busy_log()
    made = resample(workload, seed=3, weeks=20)
    assert set((made.submit_time % WEEK).tolist()) <= set((workload.submit_time % WEEK).tolist())
    assert (np.diff(made.submit_time) >= 0).all()
    assert (made.submit_time < 20 * WEEK).all()

    # distances between jobs of a user in one week are those of a user of the log
    def gaps(jobs: gs.Workload) -> set[tuple[int, ...]]:
        weeks: dict[tuple[int, int], list[int]] = {}
        for user, time in zip(jobs.user.tolist(), jobs.submit_time.tolist(), strict=True):
            weeks.setdefault((user, time // WEEK), []).append(time % WEEK)
        return {tuple(times) for times in weeks.values()}

    assert gaps(made) <= gaps(workload)
    assert (made.wait_time == -1).all()
    assert made.unix_start_time is None


def test_seed_decides_everything() -> None:
    workload = busy_log()
    one, other = resample(workload, seed=3), resample(workload, seed=3)
    assert one.equals(other)
    whole: Any = {"weeks": 30.0, "temporary_weeks": 12.0}
    assert resample(workload, seed=3, **whole).equals(one)
    assert not np.array_equal(one.submit_time, resample(workload, seed=4).submit_time)
    assert one.checksum != resample(workload, seed=4).checksum


@pytest.mark.parametrize("users", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("weeks", [7, 30, 50])
def test_load_is_that_of_the_log_times_the_users(users: float, weeks: int) -> None:
    workload = busy_log(users=60)
    found = histories(workload)
    counts = []
    rng = np.random.default_rng(7)
    for _ in range(120):
        placed = placements(found, weeks, users, 12, rng)
        counts.append(len(assembled(workload, found, placed, weeks)))
    expected = len(workload) / found.weeks * weeks * users
    assert abs(np.mean(counts) - expected) < 4 * (np.std(counts) / np.sqrt(len(counts))) + 1e-9


def test_long_term_users_are_there_once_and_temporary_ones_from_their_first_week_on() -> None:
    found = histories(busy_log())
    placed = placements(found, 30, 1.0, 12, np.random.default_rng(2))
    long_term = found.users[found.last - found.first >= 12]
    by_number: dict[int, list[Any]] = {}
    for place in placed:
        by_number.setdefault(int(place["number"]), []).append(place)
    kinds = {number: {int(place["user"]) for place in own} for number, own in by_number.items()}
    assert all(len(kind) == 1 for kind in kinds.values())
    lasting = [next(iter(kind)) for kind in kinds.values() if kind <= set(long_term.tolist())]
    assert sorted(lasting) == long_term.tolist()
    for own in by_number.values():
        if int(own[0]["user"]) in long_term:
            covered = sorted(
                int(week + place["shift"]) for place in own for week in range(place["first"], place["last"])
            )
            assert covered == list(range(30))
        else:
            assert (int(own[0]["first"]), int(own[0]["last"])) == (0, found.weeks)


def test_histories_of_long_term_users_go_round_lap_by_lap() -> None:
    found = histories(busy_log(weeks=20))
    placed = placements(found, 65, 1.0, 1, np.random.default_rng(2))
    lasting = [int(user) for user in found.users[found.first < found.last]]
    for number in range(1, len(lasting) + 1):
        weeks = {
            int(week + place["shift"]): int(week)
            for place in placed[placed["number"] == number]
            for week in range(place["first"], place["last"])
        }
        assert [weeks[week] for week in range(65)] == [(weeks[0] + week) % 20 for week in range(65)]


def test_weeks_that_a_log_has_in_part_are_left_out_and_counted() -> None:
    times = [3 * DAY, WEEK + 100, 2 * WEEK + 5, 3 * WEEK - 10, 3 * WEEK + 4 * DAY]
    workload = log(times, [1, 1, 2, 2, 2])
    assert_fields(histories(workload), weeks=2, week=[-1, 0, 1, 1, 2])
    assert resample(workload, seed=1, weeks=8).left_out["in a week that the log has in part"] == 2
    begun = replace(
        workload, submit_time=np.array([DAY, WEEK + 100, 2 * WEEK + 5, 3 * WEEK - 10, 4 * WEEK - DAY])
    )
    assert histories(begun).weeks == 4


def test_local_weeks_count() -> None:
    # Monday, 1996-09-23, 0:00 in Stockholm is Sunday, 22:00 UTC
    start = 843_429_600
    workload = log(
        np.arange(0, 3 * WEEK, 3600), [1] * (3 * 168), unix_start_time=start, time_zone="Europe/Stockholm"
    )
    found = histories(workload)
    assert (found.weeks, found.week[0], found.offset[0]) == (3, 0, 0)


@pytest.mark.parametrize(
    ("changes", "options", "expected"),
    [
        ({}, {"weeks": 0}, "weeks is 0"),
        ({}, {"weeks": 2.5}, "weeks is 2.5"),
        ({}, {"seed": -1}, "seed is -1"),
        ({}, {"users": 0.0}, "users is 0.0"),
        ({}, {"temporary_weeks": 0}, "temporary_weeks is 0"),
        ({}, {"temporary_weeks": 2.5}, "temporary_weeks is 2.5"),
        ({"user": [-1, -1, -1]}, {}, "does not name its users"),
        ({"submit": [0, 5, DAY]}, {}, "0 whole weeks"),
    ],
)
def test_what_cannot_be_resampled_is_refused(
    changes: dict[str, Any], options: dict[str, Any], expected: str
) -> None:
    values = {"submit": [0, WEEK, 2 * WEEK], "user": [1, 2, 3], **changes}
    with pytest.raises(WorkloadError, match=expected):
        resample(log(values["submit"], values["user"]), **{"seed": 1, **options})


def test_tasks_of_an_array_stay_in_an_array_of_their_own() -> None:
    workload = log(
        [0, 10, WEEK, WEEK + 5, 2 * WEEK - 1],
        [1, 1, 1, 1, 1],
        array=np.array([4, 4, 4, 9, -1]),
        array_limit=np.array([2, 2, 2, 1, -1]),
        job_number=np.arange(5) + 100,
        preceding_job=np.array([-1, 100, 101, -1, 103]),
    )
    placed = np.array([(1, 0, 0, 2, 1), (1, 3, 0, 1, 2)], PLACEMENT)
    made = assembled(workload, histories(workload), placed, 5)
    assert made.array is not None
    assert made.array.tolist()[-1] == made.array.tolist()[-2]
    groups = [made.array.tolist().index(number) for number in made.array.tolist()]
    assert groups == [0, 0, 0, 3, 4, 5, 5]
    assert made.array.tolist()[4] == -1
    assert made.preceding_job.tolist() == [-1, 1, 2, -1, 4, -1, 6]

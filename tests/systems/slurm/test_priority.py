"""Fair shares and priorities, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gridsched.engine.nodes.records import NODE
from gridsched.engine.records import FOREVER
from gridsched.systems.slurm.accounts import ROOT, USE_PARENT, Accounting, Association, Quality
from gridsched.systems.slurm.controller import job_records
from gridsched.systems.slurm.parameters import ResetPeriod
from gridsched.systems.slurm.priority import Multifactor, Resets, Shares
from gridsched.systems.slurm.scheduler import Slurm
from tests.support.errors import refused


def tree(*rows: tuple[str, str, str, int]) -> Accounting:
    """Associations of (account, user, parent, shares)."""
    made = [
        Association(account=account, user=user, parent=parent, shares=shares)
        for account, user, parent, shares in rows
    ]
    return Accounting(associations=(Association(account=ROOT), *made))


TWO = tree(
    ("a", "", ROOT, 60),
    ("a", "ann", "a", 3),
    ("a", "bob", "a", 1),
    ("b", "", ROOT, 40),
    ("b", "cleo", "b", 1),
)


def factors(shares: Shares, **used: float) -> dict[str, float]:
    """Fair share of each user after some use."""
    for (_, user), place in shares.place.items():
        if user in used:
            shares.add(place, used[user])
    shares.refresh()
    for place in shares.place.values():
        shares.see(place)
    return {user: float(shares.factor[place]) for (_, user), place in shares.place.items() if user}


EQUAL = tree(
    ("a", "", ROOT, 1), ("a", "ann", "a", 1), ("a", "bob", "a", 1), ("b", "", ROOT, 1), ("b", "cleo", "b", 1)
)
NO_SHARES = tree(("a", "", ROOT, 1), ("a", "ann", "a", 0), ("a", "bob", "a", 1))
OF_PARENT = tree(
    ("a", "", ROOT, 1), ("a", "ann", "a", USE_PARENT), ("a", "bob", "a", USE_PARENT), ("b", "", ROOT, 1)
)
USED = {"ann": 100.0, "bob": 200.0, "cleo": 100.0}
CLASSIC: dict[str, Any] = {"fair_tree": False}


@pytest.mark.parametrize(
    ("accounting", "options", "used", "expected"),
    [
        # With nothing used all are first
        (TWO, {}, {}, {"ann": 1.0, "bob": 1.0, "cleo": 1.0}),
        # Fair tree ranks users below the better account first: b: 0.4 of the shares by 0.25 of the use is
        # 1.6; a: 0.6 by 0.75 is 0.8; in it ann 0.75 by 1/3, bob 0.25 by 2/3
        (TWO, {}, USED, {"cleo": 1.0, "ann": 2 / 3, "bob": 1 / 3}),
        # Fair tree merges accounts that tie: both accounts used as much: ann, who used nothing, is before
        # cleo, and cleo before bob
        (EQUAL, {}, {"bob": 50.0, "cleo": 50.0}, {"ann": 1.0, "cleo": 2 / 3, "bob": 1 / 3}),
        # Fair tree gives no shares the last rank
        (NO_SHARES, {}, {"ann": 1.0, "bob": 99.0}, {"bob": 1.0, "ann": 0.5}),
        # The classic formula: the use of a is 0.75; that of ann, with what a used beside her, 0.25 +
        # (0.75 - 0.25) * 3 / 4
        (
            TWO,
            CLASSIC,
            USED,
            {"ann": 2 ** -((0.25 + 0.5 * 0.75) / (0.6 * 0.75)), "cleo": 2 ** -((0.25 + 0.0 * 1) / 0.4)},
        ),
        (TWO, {**CLASSIC, "damping": 2}, USED, {"cleo": 2 ** -((0.25 + 0.0 * 1) / 0.4 / 2)}),
    ],
)
def test_fair_shares_by_hand(
    accounting: Accounting, options: dict[str, Any], used: dict[str, float], expected: dict[str, float]
) -> None:
    found = factors(Shares(accounting, **options), **used)
    assert {user: found[user] for user in expected} == pytest.approx(expected)


def test_users_with_the_shares_of_their_account_have_its_fair_share() -> None:
    found = factors(Shares(OF_PARENT, fair_tree=False), ann=10.0)
    assert found["ann"] == found["bob"]


def multifactor(
    resets: Resets | None = None, billing: list[dict[str, float]] | None = None, **parameters: Any
) -> Multifactor:
    """Priorities of two jobs of ann and bob on 4 nodes of 8 processors, one with 2 nodes, one with 1 of 2."""
    jobs = job_records(2)
    jobs["nodes"], jobs["cores"], jobs["processors"], jobs["limit"] = [2, 1], 8, [16, 8], [600, 60]
    jobs["partition"], jobs["memory"], jobs["gpus"], jobs["sized"] = [0, 1], 4096, 1, 1
    nodes = np.zeros(4, NODE)
    nodes["cores"] = 8
    return Multifactor(
        Slurm(**parameters),
        jobs,
        [("a", "ann", "high"), ("a", "bob", "")],
        replace(TWO, qualities={"high": Quality(name="high", priority=7)}),
        factor=np.array([1, 2]),
        nice=np.array([0, 10]),
        early_processors=np.array([2, 1]),
        nodes=nodes,
        reach=np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.uint8),
        begin=0,
        resets=resets or Resets(),
        billing=billing or (),
        mebibyte=1024,
    )


@pytest.mark.parametrize(
    ("weights", "most", "billed"),
    [
        ({}, False, 16),
        ({"cpu": 0.5}, False, 8),
        ({"cpu": 1.0, "mem": 2.0, "gres/gpu": 10.0}, False, 16 + 16 + 20),
        ({"cpu": 1.0, "mem": 2.0, "gres/gpu": 10.0}, True, 20),
        ({"node": 100.0}, True, 200),
    ],
)
def test_usage_is_what_a_job_is_billed_for(weights: dict[str, float], most: bool, billed: float) -> None:
    priorities = multifactor(
        billing=[weights, {"cpu": 1000.0}],
        priority_weight_fairshare=1,
        priority_decay_half_life=0,
        max_tres=most,
    )
    priorities.started(0, 0)
    priorities.recalculate(300, np.array([1]))
    assert priorities.shares.used[priorities.place[0]] == pytest.approx(300 * billed)


def test_the_size_is_known_in_full_once_nodes_were_found() -> None:
    priorities = multifactor(priority_weight_job_size=1000)
    early = math.floor(1000 * (2 / 4 + 2 / 32) / 2)
    assert priorities.submitted(0, 5, 5) == early
    assert priorities.recalculate(300, np.array([0])).tolist() == [500.0]
    priorities.jobs["sized"] = 0
    assert priorities.recalculate(600, np.array([0])).tolist() == [early]
    # with whole nodes only, the test at submission does it
    priorities = multifactor(priority_weight_job_size=1000, select_type="linear")
    priorities.jobs["sized"] = 0
    assert priorities.recalculate(300, np.array([0])).tolist() == [500.0]
    # but one that is held is not tested then
    assert priorities.submitted(0, 305, 5) == 500.0
    priorities.held[0] = True
    assert priorities.submitted(0, 305, 5) == early


def test_classic_fair_shares_know_what_was_used_before_they_are_needed() -> None:
    """That of accounts is worked out before a calculation counts what jobs used."""
    priorities = multifactor(
        priority_weight_fairshare=1000, priority_decay_half_life=0, fair_tree=False, priority_calc_period=100
    )
    priorities.started(0, 0)
    priorities.jobs["record"] = [0, 1]
    # nothing was used before the first calculation
    assert priorities.recalculate(100, np.array([1])).tolist() == [1000.0 - 10]
    # then all of it by ann: bob is held to his part of what their account used
    second = 2 ** -((0 + (1 - 0) * 1 / 4) / (0.6 * 1 / 4))
    assert priorities.recalculate(200, np.array([1])).tolist() == [math.floor(1000 * second - 10)]


def test_small_jobs_can_be_favoured() -> None:
    priorities = multifactor(priority_weight_job_size=1000, priority_favor_small=True)
    assert priorities.recalculate(300, np.array([0, 1])).tolist() == [500.0, 740.0]


def test_age_grows_up_to_its_maximum_at_each_calculation() -> None:
    priorities = multifactor(priority_weight_age=100, priority_max_age=1000, priority_calc_period=250)
    assert priorities.submitted(0, 0, 0) == 1.0
    assert priorities.due() == 250
    assert [priorities.recalculate(now, np.array([0]))[0] for now in (250, 500, 2000)] == [25.0, 50.0, 100.0]


def test_partition_quality_resources_and_nice_add_up() -> None:
    priorities = multifactor(
        priority_weight_partition=100, priority_weight_qos=1000, priority_weight_tres={"cpu": 64.0}
    )
    # 2 of 32 processors, and 1 of the 16 of the other partition
    assert [priorities.submitted(job, 0, 0) for job in (0, 1)] == [50 + 1000 + 4, 100 + 4 - 10]


def test_what_was_used_decays_by_half_in_the_half_life() -> None:
    priorities = multifactor(
        priority_weight_fairshare=100, priority_decay_half_life=600, priority_calc_period=60
    )
    for job in (0, 1):
        priorities.submitted(job, 0, 0)
    priorities.started(0, 0)
    priorities.recalculate(60, np.array([1]))
    place = priorities.shares.place["a", "ann"]
    used = priorities.shares.used[place]
    assert used == pytest.approx(60 * 16 * (1 - 0.693 / 600) ** 60)
    assert priorities._sum(0.0, 0.0, np.array([0, 1])).tolist() == [33.0, 56.0]
    priorities.ended(0, 60)
    for now in range(120, 720, 60):
        priorities.recalculate(now, np.array([1]))
    assert priorities.shares.used[place] == pytest.approx(used / 2, rel=0.01)


@pytest.mark.parametrize(("counted", "expected"), [(True, 30 * 16), (False, 0)])
def test_the_end_of_a_job_is_counted_where_limits_are_enforced(counted: bool, expected: int) -> None:
    priorities = multifactor(priority_weight_fairshare=1, priority_decay_half_life=0, enforce_limits=counted)
    priorities.submitted(0, 0, 0)
    priorities.started(0, 10)
    priorities.ended(0, 40)
    assert priorities.shares.used[priorities.shares.place[ROOT, ""]] == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome"])
def test_what_was_used_is_forgotten_at_the_beginning_of_periods(zone: str) -> None:
    origin = 1_700_000_000
    periods: dict[ResetPeriod, Callable[[datetime], bool]] = {
        "daily": lambda day: True,
        "weekly": lambda day: day.weekday() == 6,
        "monthly": lambda day: day.day == 1,
        "quarterly": lambda day: day.day == 1 and day.month in (1, 4, 7, 10),
        "yearly": lambda day: day.day == 1 and day.month == 1,
    }
    for period, begins in periods.items():
        resets = Resets(period=period, origin=origin, zone=zone)
        found, second = [], 0
        while (second := resets.after(second)) < 800 * 86400:
            found.append(second)
        hours = [datetime.fromtimestamp(origin + s, ZoneInfo(zone)) for s in found]
        assert {(each.hour, each.minute, each.second) for each in hours} == {(0, 0, 0)}
        first = datetime.fromtimestamp(origin, ZoneInfo(zone)).date()
        days = [first + timedelta(days=k) for k in range(1, 801)]
        expected = [day for day in days if begins(datetime(day.year, day.month, day.day))]
        assert [each.date() for each in hours] == expected[: len(hours)]
        assert len(hours) >= len(expected) - 1
    assert Resets().after(0) == Resets(period="now").after(0) == FOREVER
    with refused("time zone 'Mars'"):
        Resets(period="daily", zone="Mars").after(0)


def test_fair_shares_forget_what_was_used() -> None:
    priorities = multifactor(
        Resets(period="daily"),
        priority_weight_fairshare=100,
        priority_decay_half_life=0,
        priority_calc_period=43200,
    )
    for job in (0, 1):
        priorities.submitted(job, 0, 0)
    priorities.started(0, 0)
    root = priorities.shares.place[ROOT, ""]
    for now, used in ((43200, 43200 * 16), (86400, 43200 * 16), (129600, 86400 * 16)):
        priorities.recalculate(now, np.array([1]))
        assert priorities.shares.used[root] == used

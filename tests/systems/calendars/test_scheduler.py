"""Calendars of one cluster: against the oracle, worked out by hand, and what they promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched.errors import GridschedError, WorkloadError
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import simulate
from gridsched.systems.calendars import planning
from gridsched.systems.calendars.kernels import managers
from gridsched.systems.calendars.planning import prepare
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Level, Manager, SlotPlan
from gridsched.traces import clean, read_swf, select_window
from gridsched.verification import verify
from gridsched.workloads import Workload
from tests.oracles import local as naive
from tests.oracles.calendars import Job
from tests.support import engine
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import workload_of
from tests.systems.calendars.cases import (
    TENS,
    check_against_oracle,
    check_worked,
    problems,
    records,
    run,
    slots_of,
)

# --- against the oracle ---------------------------------------------------------------------------


KINDS: dict[str, dict[str, Any]] = {
    "one cluster": {"depth": 0},
    "accurate": {"accurate": True},
    "outrun": {},
    "failing cluster": {"depth": 0, "failing": True},
    "failing": {"failing": True},
    "failing, accurate": {"failing": True, "accurate": True},
}
"""What is drawn."""


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=100)
def test_schedules_equal_the_oracle(kind: str, data: st.DataObject) -> None:
    check_against_oracle(data.draw(problems(**KINDS[kind])))


@st.composite
def slotted_streams(draw: st.DrawFn) -> tuple[list[naive.Job], int, int]:
    """Jobs whose times are all multiples of a slot, nodes, and the slot."""
    slot, nodes = draw(st.sampled_from([1, 5, 40])), draw(st.sampled_from([1, 2, 4, 7]))
    jobs: list[naive.Job] = []
    submit = 0
    for _ in range(draw(st.integers(0, 20))):
        submit += slot * draw(st.sampled_from([0, 0, 1, 3]))
        estimate = draw(st.integers(1, 8))
        run_time = draw(st.just(estimate) | st.integers(1, estimate))
        jobs.append(naive.Job(submit, slot * run_time, slot * estimate, draw(st.integers(1, nodes))))
    return jobs, nodes, slot


@given(problem=slotted_streams())
@settings(max_examples=60)
def test_slots_of_one_size_are_conservative_backfilling(problem: tuple[list[naive.Job], int, int]) -> None:
    jobs, nodes, slot = problem
    requests = [Job(*job) for job in jobs]
    done = run(requests, nodes, SlotPlan(levels=[(None, slot)]))
    assert done.jobs["start_time"].tolist() == engine.simulate_policy(jobs, nodes, "conservative")


# --- worked examples ------------------------------------------------------------------------------

MINUTE = 60
HALF_HOUR = SlotPlan(levels=[(1, 450), (None, 1800)])
"""One slot of 7.5 min, then slots of 30 min, as in Figure 1."""


def test_figure_1_of_the_paper() -> None:
    """A task of half an hour on two of four nodes: one slot of 30 min, then four of 7.5 min."""
    jobs = [Job(1, 30 * MINUTE, 30 * MINUTE, 2), Job(1, 450, 450, 1)]
    tree, outages = prepare(records(jobs), Cluster(processors=4), Calendars(slots=HALF_HOUR, low_water=0))
    managers.schedule(tree, outages, 1)
    # The second task takes the whole slot, too.
    assert slots_of(tree) == [(0, 450, 4), (450, 2250, 1)]
    managers.schedule(tree, outages, 1)
    assert slots_of(tree) == [(450, 900, 1), (900, 1350, 2), (1350, 1800, 2), (1800, 2250, 2)]
    assert tree.plans["start"].tolist() == [450, 450]


SPLIT_LATE = Calendars(slots=SlotPlan(levels=[(1, 10), (None, 40)]), low_water=0)
LATE = [Job(1, 40, 40, 2), Job(1, 40, 40, 1), Job(1, 40, 40, 4)]
REFUSING = Calendars(slots=SlotPlan(levels=[(2, 10), (None, 40)]))
ASKING = [Job(0, 35, 35, 2), Job(1, 10, 10, 1, reserved=20), Job(1, 10, 10, 1, reserved=70)]
OVERRUN = [Job(0, 35, 10, 1), Job(0, 10, 10, 1)]
OVERRUN_RESERVED = [Job(0, 35, 10, 1), Job(0, 10, 10, 1, reserved=20)]

WORKED: dict[str, tuple[list[Job], Cluster | int, Calendars, dict[str, Any]]] = {
    "a reservation for second 0 is kept or refused": (
        [Job(0, 5, 5, 1), Job(0, 5, 5, 1, reserved=0), Job(0, 5, 5, 1, reserved=0)],
        2,
        TENS,
        {"start_time": [0, 0, -1]},
    ),
    # One node for 30 min and four nodes for 7.5 min: their sum fits the slot, but not any order of them
    "the unschedulable example of section 2.3": (
        [Job(1, 30 * MINUTE, 30 * MINUTE, 1), Job(1, 450, 450, 4)],
        4,
        Calendars(slots=HALF_HOUR, low_water=0),
        {"planned_start": [450, 2250], "start_time": [450, 2250]},
    ),
    # What a short job does not need of a coarse slot is there for others once the slot is split
    "a split lets jobs move forward": (
        [Job(1, 10, 10, 4)] * 3,
        4,
        SPLIT_LATE,
        {"planned_start": [10, 50, 90], "start_time": [10, 20, 30], "total_moves": 2},
    ),
    "early exits release slots": (
        [Job(0, 15, 100, 2), Job(0, 10, 10, 2)],
        2,
        TENS,
        {"planned_start": [0, 100], "start_time": [0, 20], "total_early_exits": 1},
    ),
    "a job submitted at a boundary starts there": (
        [Job(40, 5, 5, 1), Job(41, 5, 5, 1), Job(79, 0, 1, 1)],
        1,
        Calendars(slots=SlotPlan(levels=[(None, 40)])),
        {"start_time": [40, 80, 120]},
    ),
    # The second job is refused in the first coarse slot, but finds room once that slot is split; the last one
    # is alone in its own
    "the threshold keeps nodes for late jobs": (
        LATE,
        4,
        replace(SPLIT_LATE, threshold=0.5),
        {"planned_start": [10, 50, 90], "start_time": [10, 10, 50]},
    ),
    "without a threshold there is room at once": (
        LATE,
        4,
        SPLIT_LATE,
        {"planned_start": [10, 10, 50]},
    ),
    # The third job fits before it
    "reservations are exact even inside coarse slots": (
        [Job(3, 15, 15, 3, reserved=230), Job(4, 400, 400, 1), Job(5, 10, 10, 2)],
        4,
        Calendars(slots=SlotPlan(levels=[(2, 10), (2, 40), (None, 160)])),
        {"start_time": [230, 10, 10], "reserved": [True, False, False]},
    ),
    "a refusal says when it could be accepted": (
        ASKING,
        2,
        REFUSING,
        {
            "start_time": [0, -1, 70],
            "earliest_time": [-1, 60, -1],
            "total_reservations_refused": 1,
        },
    ),
    "asked for that time, it is accepted": (
        [ASKING[0], ASKING[1]._replace(reserved=60), ASKING[2]],
        2,
        REFUSING,
        {"start_time": [0, 60, 70]},
    ),
    "who is refused may be queued": (
        ASKING,
        2,
        replace(REFUSING, refused="queue"),
        {"start_time": [0, 40, 70], "reserved": [False, False, True]},
    ),
    "an overrunner takes the next slots if they are free": (
        OVERRUN,
        2,
        TENS,
        {"end_time": [35, 10], "total_delayed": 0},
    ),
    "waiting jobs give way to an overrunner": (
        OVERRUN,
        1,
        TENS,
        {"planned_start": [0, 10], "start_time": [0, 40], "total_displaced": 3, "total_delayed": 3},
    ),
    "reservations do not give way: the overrunner is killed": (
        OVERRUN_RESERVED,
        1,
        replace(TENS, overrun="kill"),
        {
            "start_time": [0, 20],
            "end_time": [20, 30],
            "run_time": [20, 10],
            "total_killed": 1,
            "total_suspended": 0,
        },
    ),
    "reservations do not give way: the overrunner is suspended": (
        OVERRUN_RESERVED,
        1,
        replace(TENS, overrun="suspend"),
        {
            "start_time": [0, 20],
            "end_time": [45, 30],
            "run_time": [35, 10],
            "total_killed": 0,
            "total_suspended": 1,
        },
    ),
    "speed divides run times and estimates": (
        [Job(0, 15, 40, 1), Job(0, 9, 9, 1)],
        Cluster(processors=1, speed=2.0),
        Calendars(slots=HALF_HOUR),
        {"run_time": [8, 5]},
    ),
}


@pytest.mark.parametrize(("jobs", "cluster", "options", "expected"), WORKED.values(), ids=WORKED)
def test_worked_example(
    jobs: list[Job], cluster: Cluster | int, options: Calendars, expected: dict[str, Any]
) -> None:
    check_worked(run(jobs, cluster, options), **expected)


def test_low_water_marks_decide_when_slots_are_split() -> None:
    plan = SlotPlan(levels=[(4, 10), (2, 40), (None, 80)])
    jobs = [Job(0, 1, 1, 1), Job(25, 1, 1, 1)]
    tree, outages = prepare(records(jobs), Cluster(processors=1), Calendars(slots=plan))

    def levels() -> list[int]:
        return [int(level["end"] - level["first"]) for level in tree.calendars.levels[:-1]]

    assert levels() == [4, 2]
    while managers.schedule(tree, outages, 1) < 20:
        pass
    # Two of four are left: the first slot of 40 s makes four, one is left, so that 80 s make two
    assert levels() == [2 + 4, 2 - 1 + 2]


# --- how many slots -------------------------------------------------------------------------------

ROWS: dict[int, list[tuple[int | None, int]]] = {
    1: [(None, 40)],
    2: [(64, 40), (None, 2560)],
    3: [(8, 40), (8, 320), (None, 2560)],
    4: [(2, 40), (2, 1280), (None, 2560)],
    5: [(2, 10), (2, 1280), (None, 2560)],
    6: [(32, 10), (8, 320), (None, 2560)],
}
"""Figure 4 of the paper."""

HORIZON = 100_000 * 40


def test_slots_of_the_configurations_of_the_paper() -> None:
    """Row 6 covers 100,000 slots of 40 s by 1,602; the paper says 1,511."""
    needed = {row: SlotPlan(levels=levels).slots_within(HORIZON) for row, levels in ROWS.items()}
    assert needed[1] == 100_000
    assert needed[6] == 32 + 8 + 1562 == 1602
    assert min(needed.values()) > 1500


@pytest.mark.parametrize(("row", "slots"), [(1, 100_000), (6, 1602)])
def test_a_far_reservation_makes_a_calendar_grow(row: int, slots: int) -> None:
    options = Calendars(slots=SlotPlan(levels=ROWS[row]))
    jobs = [Job(0, 40, 40, 1, reserved=HORIZON - 40), Job(0, 40, 40, 1)]
    tree, outages = prepare(records(jobs), Cluster(processors=1), options, room=2**17)
    managers.schedule(tree, outages, 1)
    assert len(slots_of(tree)) == slots
    # With less room at first the simulation begins anew.
    assert run(jobs, 1, options).jobs["start_time"].tolist() == [HORIZON - 40, 0]


def test_room_does_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job(k, 30 + k % 7, 30 + 5 * (k % 5), 1 + k % 3) for k in range(60)]
    options = Calendars(slots=SlotPlan(levels=[(2, 5), (None, 10)]))
    wide = run(jobs, 3, options)
    monkeypatch.setattr(planning, "FIRST_ROOM", 2)
    narrow = run(jobs, 3, options)
    assert narrow.jobs["start_time"].tolist() == wide.jobs["start_time"].tolist()
    assert narrow.counts == wide.counts


def test_doubling() -> None:
    plan = SlotPlan.doubling(10, 2, 4)
    assert plan.levels == ((4, 10), (4, 20), (4, 40), (None, 80))
    assert plan.slots_within(4 * 70 + 1) == 13
    assert str(plan) == "<4, 10 s>, <4, 20 s>, <4, 40 s>, <*, 80 s>"


# --- mistakes -------------------------------------------------------------------------------------


def plan(*levels: Any) -> SlotPlan:
    return SlotPlan(levels=levels)


def with_slots(**options: Any) -> Calendars:
    return Calendars(slots=HALF_HOUR, **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: plan(), "0 levels"),
        (lambda: plan((2, 10), (None, 25)), "25 s are no larger multiple of 10 s"),
        (lambda: plan((2, 10), (None, 10)), "10 s are no larger multiple of 10 s"),
        (lambda: plan((0, 10), (None, 20)), "level 0 has 0 slots"),
        (lambda: plan((None, 10), (None, 20)), "level 0 has None slots"),
        (lambda: plan((2, 10), (4, 20)), "the last level has 4 slots"),
        (lambda: plan((2, 0), (None, 20)), "slots of 0 s"),
        (lambda: plan((2, 2.5), (None, 5)), "slots of 2.5 s"),
        (lambda: plan((2, 10, 1), (None, 20)), "level 0 is (2, 10, 1)"),
        (lambda: with_slots(low_water=1.0), "low_water is 1.0"),
        (lambda: with_slots(low_water=float("nan")), "low_water is nan"),
        (lambda: with_slots(threshold=0), "threshold is 0"),
        (lambda: with_slots(overrun="stop"), "overrun is 'stop'; use one of kill, suspend"),
        (lambda: with_slots(refused="drop"), "refused is 'drop'; use one of reject, queue"),
        (lambda: with_slots(promote_share=0), "promote_share is 0"),
        (lambda: with_slots(placement="best"), "placement is 'best'; use one of lowest, unbiased"),
        (
            lambda: run([Job(20, 5, 5, 1, reserved=10)], 2, TENS),
            "to start at 10 s, before it is submitted at 20 s",
        ),
        (
            lambda: run([Job(0, 5, 5, 1, reserved=15)], 2, TENS),
            "use a multiple of the fundamental slot of 10 s",
        ),
        (lambda: run([Job(0, 5, 5, 3, reserved=10)], 2, TENS), "asks for 3 nodes, and there are 2"),
        (lambda: run([Job(0, 1, 2**31 - 1, 1)], 1, plan((None, 1))), "slots of the last level"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Callable[[], object], message: str) -> None:
    with refused(message):
        wrong()


# --- from workloads to datasets -------------------------------------------------------------------


def workload(name: str, *jobs: tuple[int, int, int, int], **columns: Any) -> Workload:
    """Jobs by submit time, run time, requested time and processors, and other columns."""
    return workload_of(jobs, name=name, **columns)


def test_a_workload_becomes_a_dataset() -> None:
    jobs = workload("a", (0, 35, 10, 1), (5, 10, 10, 2), (5, 10, 10, 2), (6, 10, 10, 1), (7, 5, 5, 3))
    cluster = Cluster(processors=2, name="north")
    asking = replace(jobs, reserved_start=np.array([-1, 20, -1, 20, -1]))
    run = simulate([asking], cluster, TENS)
    verify(run)
    # The first job is suspended at 20 s; the reservation of the fourth is refused, the last is too large.
    assert_fields(
        run,
        start_time=[0, 20, 30, -1, -1],
        end_time=[55, 30, 40, -1, -1],
        segment_job=[0, 0, 1, 2],
        segment_start=[0, 40, 20, 30],
        segment_end=[20, 55, 30, 40],
        planned_start=[0, 20, 10, -1, -1],
        reservation_time=[-1, 20, -1, 20, -1],
        reserved_start=[-1, 20, -1, -1, -1],
        reserved=[0, 1, 0, 0, 0],
        earliest_time=[-1, -1, -1, 30, -1],
        reach_processors=[2, 2, 2, 0, 2],
        run_time=[35, 10, 10, 10, 5],
        local_work=[35 + 20 + 20],
        suspended=1,
        jobs_rejected=2,
        reservations_refused=1,
    )
    assert set(planning.COUNTS) <= set(run.attrs)
    as_list: Any = [-1, 20, -1, 20, -1]
    again = simulate([replace(jobs, reserved_start=as_list)], cluster, TENS)
    assert run.identical(again)


LISTED = workload("a", (0, 35, 10, 1))
SINGLE = Cluster(processors=1)
PAIR = [Cluster(name="a", processors=1), Cluster(name="b", processors=1)]


@pytest.mark.parametrize(
    ("jobs", "clusters", "options", "parts"),
    [
        ([LISTED] * 3, SINGLE, {}, ["3 workloads for 1 clusters; give one"]),
        ([LISTED], PAIR, {}, ["1 workloads for 2 clusters; give one"]),
        ([LISTED] * 3, PAIR, {}, ["1 jobs are submitted at no cluster"]),
        (LISTED, PAIR, {}, ["1 jobs are submitted at no cluster"]),
        ([workload("b")], SINGLE, {}, ["no jobs to simulate"]),
        ([LISTED], SINGLE, {"estimates": "best"}, ["estimates is 'best'"]),
        *(
            ([LISTED] * 2, PAIR, {"managers": tree}, ["managers: the leaves are", "in their order: a, b"])
            for tree in (SINGLE, Manager(name="top", children=PAIR[::-1]))
        ),
    ],
)
def test_mistakes_of_workloads_are_named(
    jobs: Any, clusters: Any, options: dict[str, Any], parts: list[str]
) -> None:
    with refused(*parts, error=GridschedError):
        simulate(jobs, clusters, with_slots(managers=options.pop("managers", None)), **options)


@pytest.mark.parametrize("wrong", [np.array([450, 450]), np.array([450.0])])
def test_columns_of_requested_starts_are_whole_numbers(wrong: NDArray[Any]) -> None:
    with refused("column reserved_start has shape", "for each of the 1 jobs", error=WorkloadError):
        replace(LISTED, reserved_start=wrong)


def test_submit_times_and_boundaries_share_an_axis() -> None:
    """Slots begin at multiples of the fundamental slot, also where a log does not begin at 0."""
    run = simulate([workload("a", (1003, 5, 5, 1))], SINGLE, TENS, align="none")
    assert run["start_time"].values.tolist() == [1010]


def test_requested_starts_move_with_submit_times() -> None:
    """They are on the clock of their workload; -1 stays -1."""
    jobs = workload("a", (1000, 5, 5, 1), (1004, 5, 5, 1), reserved_start=np.array([-1, 1030]))
    run = simulate([jobs], SINGLE, TENS)
    assert_fields(run, submit_time=[0, 4], reservation_time=[-1, 30], start_time=[0, 30])


def test_functions_are_recorded_by_name() -> None:
    """What a run says of its parameters is the same in every process."""

    def last_first(submit_time: int) -> int:
        return submit_time

    policy = LocalPolicy(name="last", order=last_first)
    cluster = Cluster(processors=1, policy=policy)
    run = simulate(workload("a", (0, 5, 5, 1)), cluster, Calendars(managers=cluster))
    assert "last_first" in run.attrs["parameter_managers"]
    assert " at 0x" not in str(run.attrs)


def test_a_month_of_kth(archive_mirror: Path) -> None:
    """October 1996: every configuration of the paper gives a sound schedule, and keeps its promises."""
    month = select_window(clean(read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")), month="1996-10")
    cluster = Cluster(processors=100)
    conservative = simulate(month, cluster, "conservative", estimates="actual")
    for levels in ROWS.values():
        options = Calendars(slots=SlotPlan(levels=levels))
        run = simulate([month], cluster, options, estimates="actual")
        verify(run)
        assert (run["start_time"] <= run["planned_start"]).all()
        assert run.attrs["delayed"] == 0
        # Slots cost each job a little; none of the configurations is far from backfilling
        assert run["end_time"].max() < 1.1 * conservative["end_time"].max()


def test_managers_that_place_at_random_draw() -> None:
    clusters = [Cluster(name=name, processors=4) for name in "ab"]
    tree = Manager(name="all", children=clusters, placement="unbiased")
    assert [
        Calendars(placement="lowest", levels=levels).draws
        for levels in (None, [Level(), Level(placement="lowest")], [Level(), Level(placement="unbiased")])
    ] == [False, "unbiased" in {Level().placement}, True]
    assert Calendars(placement="lowest", managers=tree).draws

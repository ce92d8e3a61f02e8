"""Every simulator gives exactly the stored schedules, and these keep the claims worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gridsched.conformance.answers import read_schedules
from gridsched.conformance.cases import PASSES, Case, CaseSchedule, names, read_case
from gridsched.conformance.running import run_case, schedule_of
from gridsched.io import resource
from gridsched.verification import verify
from tests.oracles.conformance import simulate_plainly


def simulate(case: Case, column: str) -> CaseSchedule:
    return schedule_of(run_case(case, column))


SIMULATORS: dict[str, Callable[[Case, str], CaseSchedule]] = {
    "naive": simulate_plainly,
    "gridsched": simulate,
}

GRIDS = [name for name in names() if read_case(name).kind != "cluster"]

# case: policy (all conventions) or policy:convention: {job number: start time}
CLAIMS: dict[str, dict[str, dict[int, int]]] = {
    "arrivals_first": {
        "easy:instant": {3: 10, 4: 20, 8: 120, 9: 125, 12: 210, 13: 215},
        "easy:event": {3: 10, 4: 20, 8: 120, 9: 125, 12: 220, 13: 210},
        "easy:arrivals-first": {3: 20, 4: 10, 8: 130, 9: 120, 12: 220, 13: 210},
        "fcfs": {3: 10, 4: 20, 8: 128, 9: 133, 12: 210, 13: 215},
    },
    "correction_after_completion": {
        "easy:instant": {4: 10, 5: 20, 3: 30},
        "easy:event": {5: 10, 3: 30, 4: 40},
        "conservative:instant": {4: 10, 5: 20, 3: 30},
        "conservative:event": {5: 10, 3: 30, 4: 40},
    },
    "early_ends": {
        "conservative:instant": {4: 10, 3: 30, 8: 103, 7: 110, 6: 130},
        "conservative:event": {4: 10, 3: 30, 8: 103, 7: 110, 6: 130},
        "conservative:arrivals-first": {4: 10, 3: 20, 8: 103, 7: 110, 6: 130},
        "easy": {4: 10, 3: 20},
    },
    "easy_or_conservative": {
        "easy": {4: 3, 3: 33},
        "easy(2)": {3: 20, 4: 30},
        "conservative": {3: 20, 4: 30},
    },
    "equal_submits": {"sjf:instant": {4: 0, 2: 0, 3: 2, 1: 7}, "sjf:event": {1: 0, 4: 0, 2: 10, 3: 10}},
    "event_or_instant": {
        "sjf:instant": {3: 10, 2: 15},
        "sjf:event": {2: 10, 3: 20},
        "fcfs": {2: 10, 4: 50, 5: 60},
    },
    "expansion_factor": {
        "fcfs": {2: 360000, 3: 720000, 4: 720500},
        "lxf": {3: 360000, 4: 360500, 2: 360510},
        "lxwf": {2: 360000, 4: 720000, 3: 720010},
    },
    "full_machine": {"easy": {3: 50, 4: 6, 5: 60}, "ff": {4: 6, 5: 30, 3: 130}, "fcfs": {3: 50, 4: 60}},
    "late_times": {
        "easy": {1: 2**24, 2: 2**24 + 103, 3: 2**24 + 153},
        "conservative": {1: 2**24, 2: 2**24 + 103, 3: 2**24 + 153},
        "ff": {1: 2**24, 3: 2**24, 2: 2**24 + 104},
        "sjf:instant": {2: 2**24, 1: 2**24 + 50, 3: 2**24 + 50},
    },
    "one_processor": {
        "fcfs": {2: 10, 3: 15, 4: 18},
        "ff": {2: 10, 3: 15, 4: 18},
        "easy": {2: 10, 3: 15, 4: 18},
        "sjbf": {2: 10, 3: 15, 4: 18},
        "conservative": {2: 10, 3: 15, 4: 18},
        "sjf": {4: 10, 2: 11, 3: 16},
    },
    "overrun_doubling": {"easy": {4: 110, 3: 200, 2: 330}},
    "overrun_increments": {"easy": {3: 160, 4: 290, 2: 350}, "sjbf": {4: 160, 3: 220}},
    "shadow_time": {"easy": {4: 2, 6: 3, 3: 10, 5: 30}},
    "sjf_blocked_head": {"sjf": {4: 5, 2: 20, 3: 20}, "ff": {3: 1, 4: 11, 2: 20}},
    "two_reservations": {"easy(2)": {5: 4, 3: 20, 4: 54}, "conservative": {4: 30, 5: 40}},
    "zero_run_times": {
        "fcfs": {2: 10, 3: 10, 4: 10},
        "sjf:instant": {5: 25, 6: 25, 7: 20},
        "sjf:event": {5: 20, 6: 20, 7: 25},
    },
}

# case: variant: {job number: [(cluster, processors, start, end), ...], or the earliest time of a refusal}
GRID_CLAIMS: dict[str, dict[str, dict[int, list[tuple[str, int, int, int]] | int]]] = {
    "who_asks_whom": {
        "local": {2: [("a", 4, 20, 30)], 3: [("a", 2, 30, 33)], 4: [("b", 4, 12, 16)]},
        "central": {1: [("a", 4, 0, 20)], 2: [("b", 4, 1, 11)], 3: [("b", 2, 11, 14)], 4: [("b", 4, 14, 18)]},
        "s-i": {1: [("a", 4, 0, 20)], 2: [("b", 4, 1, 11)], 3: [("b", 2, 11, 14)], 4: [("b", 4, 14, 18)]},
        "r-i": {1: [("a", 4, 0, 20)], 2: [("b", 4, 10, 20)], 3: [("a", 2, 20, 23)], 4: [("b", 4, 20, 24)]},
        "sy-i": {1: [("a", 4, 0, 20)], 2: [("b", 4, 1, 11)], 3: [("b", 2, 11, 14)], 4: [("b", 4, 14, 18)]},
    },
    "turnaround_ties": {
        "local": {4: [("a", 2, 11, 21)]},
        "central": {
            2: [("b", 1, 1, 11)],
            3: [("c", 1, 2, 12)],
            4: [("a", 2, 3, 13)],
            5: [("a", 1, 200, 201)],
        },
        "s-i": {2: [("a", 1, 1, 11)], 3: [("a", 1, 2, 12)], 4: [("b", 2, 3, 13)], 6: [("c", 1, 210, 211)]},
    },
    "speed": {
        "local": {2: [("a", 4, 10, 19)], 3: [("b", 4, 2, 8)], 4: [("a", 4, 19, 20)]},
        "central": {1: [("b", 4, 0, 7)], 2: [("a", 4, 1, 10)], 3: [("b", 4, 7, 13)], 4: [("a", 4, 10, 11)]},
        "s-i": {1: [("a", 4, 0, 10)], 2: [("b", 4, 1, 7)], 3: [("b", 4, 7, 13)], 4: [("a", 4, 10, 11)]},
    },
    "choose_for_itself": {
        "wait": {1: [("a", 4, 0, 20)], 2: [("b", 4, 1, 21)], 3: [("a", 2, 20, 24)], 4: [("b", 4, 21, 31)]},
        "slowdown": {2: [("b", 4, 1, 21)], 3: [("b", 2, 21, 29)], 4: [("b", 4, 29, 39)]},
        "response": {2: [("b", 4, 1, 21)], 3: [("a", 2, 20, 24)], 4: [("a", 4, 24, 29)]},
    },
    "reservation_kept": {
        "reject": {2: [("a", 4, 20, 30)], 3: [("a", 3, 30, 50)], 4: 50, 5: [("a", 1, 30, 40)]},
        "queue": {2: [("a", 4, 20, 30)], 3: [("a", 3, 30, 50)], 4: [("a", 3, 10, 20)]},
    },
    "coarse_slots": {
        "coarse": {1: [("a", 4, 0, 20)], 2: [("a", 4, 20, 25)], 3: 40, 4: [("a", 4, 30, 35)]},
        "fine": {2: [("a", 4, 20, 25)], 3: [("a", 4, 30, 35)], 4: [("a", 4, 40, 45)]},
    },
    "overrun_slots": {
        "suspend": {1: [("a", 4, 0, 10), ("a", 4, 30, 35)], 2: [("a", 4, 10, 20)], 3: [("a", 4, 20, 30)]},
        "kill": {1: [("a", 4, 0, 10)], 2: [("a", 4, 10, 20)], 3: [("a", 4, 20, 30)]},
    },
    "spanning": {
        "tree": {
            2: [("a", 4, 10, 20), ("b", 2, 10, 20)],
            3: [("b", 2, 10, 20)],
            4: [("b", 4, 20, 30)],
            5: 20,
        },
    },
    "eviction_at_superstep": {
        "keep": {1: [("a", 4, 0, 8), ("a", 4, 18, 30)], 2: [("a", 6, 8, 18)], 3: [("a", 2, 18, 23)]},
        "restart": {1: [("a", 4, 0, 8), ("a", 4, 18, 38)], 2: [("a", 6, 8, 18)]},
        "wait": {1: [("a", 4, 0, 20)], 2: [("a", 6, 20, 30)], 3: [("a", 2, 30, 35)]},
    },
    "migration": {
        "free": {1: [("a", 4, 0, 5), ("b", 4, 5, 12), ("a", 4, 15, 23)], 3: [("b", 4, 12, 22)]},
        "costly": {1: [("a", 4, 0, 5), ("b", 4, 5, 12), ("a", 4, 15, 31)], 2: [("a", 6, 5, 15)]},
        "restart": {1: [("a", 4, 0, 5), ("b", 4, 5, 12), ("a", 4, 15, 35)]},
    },
    "two_sites": {
        "overhead": {1: [("a", 4, 0, 15), ("b", 3, 0, 15)], 3: [], 4: [("a", 4, 15, 21), ("b", 1, 15, 21)]},
        "no_overhead": {1: [("a", 4, 0, 10), ("b", 3, 0, 10)], 4: [("a", 4, 10, 14), ("b", 1, 10, 14)]},
        "one_site": {1: [], 2: [("a", 4, 1, 5)], 3: [], 4: []},
    },
}

# the same, on the nodes of one cluster
NODE_CLAIMS: dict[str, dict[str, dict[int, list[tuple[str, int, int, int]] | int]]] = {
    "requeued_at_its_place": {
        "fcfs": {
            1: [("a", 4, 0, 50), ("b", 4, 50, 150)],
            2: [("a", 4, 150, 190), ("b", 4, 150, 190)],
            3: [("a", 4, 190, 220)],
        },
        "easy": {1: [("a", 4, 0, 50), ("b", 4, 50, 150)], 3: [("b", 4, 2, 32)]},
        "conservative": {2: [("a", 4, 150, 190), ("b", 4, 150, 190)], 3: [("b", 4, 2, 32)]},
    },
    "requeued_at_the_end": {
        "fcfs": {
            1: [("a", 4, 0, 50), ("b", 4, 110, 210)],
            2: [("a", 4, 70, 110), ("b", 4, 70, 110)],
            3: [("a", 4, 110, 140)],
        },
        "easy": {1: [("a", 4, 0, 50), ("b", 4, 50, 150)], 2: [("a", 4, 150, 190), ("b", 4, 150, 190)]},
        "conservative": {1: [("a", 4, 0, 50), ("b", 4, 50, 150)], 3: [("b", 4, 2, 32)]},
    },
    "lost_with_its_node": {
        "fcfs": {1: [("a", 4, 0, 50)], 2: [("a", 4, 70, 110), ("b", 4, 70, 110)], 3: [("a", 4, 110, 140)]},
        "easy": {1: [("a", 4, 0, 50)], 2: [("a", 4, 70, 110), ("b", 4, 70, 110)], 3: [("b", 4, 2, 32)]},
        "conservative": {1: [("a", 4, 0, 50)], 3: [("b", 4, 2, 32)]},
    },
    "only_nodes_down": {
        "elsewhere": {1: [("a", 4, 0, 5), ("b", 4, 5, 25)], 2: [("b", 4, 25, 45)]},
        "waits": {1: [("a", 4, 0, 5), ("a", 4, 60, 80)], 2: [("a", 4, 80, 100)]},
        "never": {1: [("a", 4, 0, 5)], 2: []},
    },
    "user_gives_up": {
        "fcfs": {2: [], 3: [("a", 2, 30, 90)], 4: [("a", 2, 50, 70)], 5: []},
        "easy": {2: [], 3: [("a", 2, 30, 90)], 4: [("a", 2, 3, 23)], 5: []},
        "conservative": {2: [], 3: [("a", 2, 30, 90)], 4: [("a", 2, 3, 23)], 5: []},
    },
    "jobs_that_wait_for_others": {
        "fcfs": {3: [("a", 4, 37, 47)], 4: [], 5: [("a", 2, 47, 87)], 6: [], 8: [("a", 2, 47, 50)]},
        "easy": {3: [("a", 4, 37, 47)], 4: [], 6: [], 7: [("a", 4, 31, 37)], 8: [("a", 2, 28, 31)]},
        "conservative": {5: [("a", 2, 47, 87)], 7: [("a", 4, 31, 37)], 8: [("a", 2, 28, 31)]},
    },
    "maintenance_window": {
        "fcfs": {2: [("a", 2, 5, 60), ("a", 2, 90, 160)], 3: [("a", 2, 90, 130)], 4: [("a", 2, 130, 135)]},
        "easy": {2: [("a", 2, 5, 60), ("a", 2, 90, 160)], 4: [("a", 2, 55, 60)]},
        "conservative": {3: [("a", 2, 90, 130)], 4: [("a", 2, 55, 60)]},
    },
    "memory_and_processors": {
        "fcfs": {
            2: [("a", 2, 30, 50)],
            3: [("a", 2, 30, 40), ("b", 2, 30, 40)],
            4: [("a", 1, 40, 80), ("b", 1, 40, 80)],
        },
        "easy": {3: [("a", 2, 2, 12), ("b", 2, 2, 12)], 4: [("a", 1, 12, 52), ("b", 1, 12, 52)]},
        "conservative": {2: [("a", 2, 30, 50)], 4: [("a", 1, 12, 52), ("b", 1, 12, 52)]},
    },
}

IN_PARTS = {**GRID_CLAIMS, **NODE_CLAIMS}


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("name", names())
def test_simulator_gives_the_stored_schedules(name: str, simulator: str) -> None:
    case, stored = read_case(name), read_schedules(read_case(name))
    assert tuple(stored) == case.columns
    for column in case.columns:
        found = SIMULATORS[simulator](case, column)
        if case.kind == "cluster":
            starts = {job: parts[0].start_time for job, parts in stored[column].parts.items()}
            assert {job: parts[0].start_time for job, parts in found.parts.items()} == starts, column
        else:
            assert found == stored[column], column


def test_every_case_has_claims_and_is_explained() -> None:
    assert sorted([*CLAIMS, *IN_PARTS]) == sorted(names())
    explained = resource("resources", "conformance", "README.md").read_text(encoding="utf-8")
    missing = [name for name in names() if f"| `{name}` | {read_case(name).convention} |" not in explained]
    assert missing == []
    counts = f"{len(CLAIMS)} on one cluster, {len(GRID_CLAIMS)} on several, {len(NODE_CLAIMS)} on nodes"
    assert counts in explained


@pytest.mark.parametrize("name", CLAIMS)
def test_stored_schedules_keep_the_claims_worked_out_by_hand(name: str) -> None:
    schedules = read_schedules(read_case(name))
    for column, starts in CLAIMS[name].items():
        for full in [column] if ":" in column else [f"{column}:{each}" for each in PASSES]:
            assert {job: schedules[full].parts[job][0].start_time for job in starts} == starts, full


@pytest.mark.parametrize("name", IN_PARTS)
def test_schedules_in_parts_keep_the_claims_worked_out_by_hand(name: str) -> None:
    schedules = read_schedules(read_case(name))
    assert set(IN_PARTS[name]) == set(schedules)
    for variant, jobs in IN_PARTS[name].items():
        for job, claim in jobs.items():
            if isinstance(claim, int):
                assert schedules[variant].parts[job] == ()
                assert schedules[variant].earliest[job] == claim
            else:
                assert [tuple(part) for part in schedules[variant].parts[job]] == claim, (variant, job)


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("name", names())
def test_answers_of_exercises_are_right(name: str, simulator: str) -> None:
    case = read_case(name)
    assert case.exercises
    for exercise in case.exercises:
        changed = case.changed(exercise.change)
        assert changed != case
        parts = SIMULATORS[simulator](changed, exercise.variant).parts
        starts = {job: parts[job][0].start_time if parts[job] else -1 for job in exercise.starts}
        assert starts == exercise.starts, exercise.question


@pytest.mark.parametrize("name", GRIDS)
def test_runs_of_grids_and_nodes_are_valid(name: str) -> None:
    case = read_case(name)
    for variant in case.columns:
        run = run_case(case, variant)
        if case.kind not in ("calendars", "dynamic-grid"):
            verify(run)
        assert run["job_number"].values.tolist() == [job.number for job in case.jobs]

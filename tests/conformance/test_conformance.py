"""Every simulator gives exactly the stored schedules, and these keep the claims worked out by hand."""

from __future__ import annotations

import pytest

from tests import engine
from tests.conformance.cases import FOLDER, Simulator, names, read_case, read_schedules, simulate_case
from tests.naive import simulate_policy

SIMULATORS: dict[str, Simulator] = {"naive": simulate_policy, "gridsched": engine.simulate_policy}

# case: policy (both conventions) or policy:convention: {job number: start time}
CLAIMS: dict[str, dict[str, dict[int, int]]] = {
    "correction_after_completion": {
        "easy:instant": {4: 10, 5: 20, 3: 30},
        "easy:event": {5: 10, 3: 30, 4: 40},
        "conservative:instant": {4: 10, 5: 20, 3: 30},
        "conservative:event": {5: 10, 3: 30, 4: 40},
    },
    "early_ends": {"conservative": {4: 10, 3: 30, 8: 103, 7: 110, 6: 130}, "easy": {4: 10, 3: 20}},
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


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize("name", names())
def test_simulator_gives_the_stored_schedules(name: str, simulator: str) -> None:
    assert simulate_case(read_case(name), SIMULATORS[simulator]) == read_schedules(name)


def test_every_case_has_claims_and_is_explained() -> None:
    assert sorted(CLAIMS) == names()
    explained = (FOLDER / "README.md").read_text()
    assert [name for name in names() if f"`{name}`" not in explained] == []


@pytest.mark.parametrize("name", CLAIMS)
def test_stored_schedules_keep_the_claims_worked_out_by_hand(name: str) -> None:
    schedules = read_schedules(name)
    for column, starts in CLAIMS[name].items():
        for full in [column] if ":" in column else [f"{column}:instant", f"{column}:event"]:
            assert {job: schedules[full][job - 1] for job in starts} == starts, full

"""The vocabulary that all studies share: what is common, lists of values, and what scenarios choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.grid import GridStudy
from gridsched.experiments.kinds.jscheduler.config import JSchedulerStudy
from gridsched.experiments.parts import label_of
from gridsched.experiments.schedulers import expanded, scheduler_made
from gridsched.experiments.study import merged
from tests.conftest import REPOSITORY

M4 = {"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}}
M5 = {"name": "M5", "synthetic": {"machine": "M5", "jobs": 40}}


def grid(**changes: Any) -> GridStudy:
    """A study of a grid."""
    study = {"name": "tiny", "kind": "grid", "title": "Tiny", "common": {"clusters": [M4, M5]}}
    plain: dict[str, Any] = {"scenarios": [{"name": "one"}], "schedulers": ["local", "s-i"]}
    return GridStudy.model_validate({**study, **plain, **changes})


def test_scenarios_have_what_is_common_and_say_otherwise_key_by_key() -> None:
    study = grid(scenarios=[{"name": "both"}, {"name": "alone", "clusters": [M5]}])
    assert [[cluster.name for cluster in each.clusters] for each in study.scenarios] == [["M4", "M5"], ["M5"]]
    common = {"jobs": {"count": 3, "load": 0.5}, "stream": {"archive": "a"}}
    own = {"name": "x", "jobs": {"load": None}, "stream": {"file": "b"}}
    assert merged(common, own) == {
        "name": "x",
        "jobs": {"count": 3, "load": None},
        "stream": {"file": "b"},
    }


def test_a_list_makes_a_scenario_of_each_value() -> None:
    study = grid(scenarios=[{"name": "one", "align": ["start", "none"]}])
    assert [(each.name, each.align) for each in study.scenarios] == [
        ("one-start", "start"),
        ("one-none", "none"),
    ]


def test_lists_make_a_scheduler_of_each_combination_and_a_range_is_a_list() -> None:
    written = {
        "name": "s",
        "scheduler": "jscheduler",
        "metric": ["wait", "slowdown"],
        "k": {"from": 2, "to": 4},
    }
    study = grid(schedulers=["local", written])
    assert study.labels == ["local"] + [
        f"s, metric {metric}, k {k}" for metric in ("wait", "slowdown") for k in (2, 3, 4)
    ]
    made: Any = scheduler_made(study.scheduler("s, metric slowdown, k 3"))
    assert (made.metric, made.k) == ("slowdown", 3)


def test_a_scenario_chooses_all_that_a_list_makes_by_its_name() -> None:
    study = grid(
        scenarios=[{"name": "one", "schedulers": ["patient", "local"]}],
        schedulers=["local", {"name": "patient", "scheduler": "s-i", "phi": [60, 600]}, "s-i"],
    )
    assert study.labels_in(study.scenarios[0]) == ["local", "patient, phi 60", "patient, phi 600"]
    assert {task.labels["scheduler"] for task in study.experiment(1).tasks if task.labels} == set(
        study.labels_in(study.scenarios[0])
    )


def test_local_policies_are_written_as_schedulers_are() -> None:
    study = grid(policies=["easy(2)", {"name": "easy", "scheduler": "easy", "reservations": [3, 4]}])
    assert [*map(label_of, study.policies)] == ["easy(2)", "easy, reservations 3", "easy, reservations 4"]
    made: Any = scheduler_made(study.policies[2])
    assert (made.policy.backfilling, made.policy.reservations) == ("easy", 4)


@pytest.mark.parametrize(
    "file", sorted((REPOSITORY / "config" / "studies").glob("*.yaml")), ids=lambda file: file.stem
)
def test_plain_values_give_a_study_back(file: Path) -> None:
    study = load_study(file)
    again = type(study).model_validate(study.values())
    assert (again, again.checksum()) == (study, study.checksum())


@pytest.mark.parametrize("name", ["dll", "wrand", "sjbf", "multiple-requests-dual"])
def test_a_name_keeps_its_parameters_when_a_study_is_handed_on(name: str) -> None:
    """What a name stands for is no default of its class, and has to survive."""
    study = grid(schedulers=["local", {"name": "x", "scheduler": name}])
    again = GridStudy.model_validate(study.values())
    assert again == study
    assert scheduler_made(again.scheduler("x")) == scheduler_made(name) or name == "sjbf"


def test_the_same_run_under_two_names_is_made_once() -> None:
    one = {"scheduler": "jscheduler", "predictions": "plan"}
    study = JSchedulerStudy.model_validate(
        {
            "name": "tiny",
            "kind": "self-scheduling",
            "title": "Tiny",
            "scenarios": [{"name": "a"}, {"name": "b"}],
            "schedulers": [{"name": "x", **one, "k": [1, 2]}, {"name": "y", **one, "k": 2}],
        }
    )
    assert [scheduler for _, scheduler, _ in study.runs] == ["wait, k 1", "wait, k 2"]


def test_a_name_stands_for_all_schedulers_that_have_it() -> None:
    several = {"name": "s-i", "scheduler": "s-i", "phi": [2, 3]}
    made, labels = expanded(["local", "s-i", several, {"name": "s-i", "scheduler": "s-i", "phi": [4, 5]}])
    assert len(made) == 6
    assert labels["s-i"] == ["s-i", *(f"s-i, phi {phi}" for phi in (2, 3, 4, 5))]


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"warm_up": 0.005}, "The first 0.5% of the jobs enter no mean."),
        ({"cool_down": 0.1}, "The last 10% of the jobs enter no mean."),
        ({"warm_up": 0.1, "cool_down": 0.25}, "The first 10% and the last 25% of the jobs enter no mean."),
    ],
)
def test_the_ends_that_are_cut_are_said(metrics: dict[str, float], told: str) -> None:
    assert told in grid(metrics=metrics).conventions(xr.Dataset())


BROKEN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "scheduler", "k", "schedulers", "from", "to"]), inside, max_size=3
        )
    ),
    max_leaves=8,
)


@given(BROKEN, BROKEN, BROKEN)
def test_broken_values_are_left_to_the_models(scenarios: Any, schedulers: Any, common: Any) -> None:
    GridStudy.completed({"scenarios": scenarios, "schedulers": schedulers, "common": common})
    expanded(schedulers)

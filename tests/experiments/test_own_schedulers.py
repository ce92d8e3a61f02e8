"""Schedulers of users in studies: classes in files, with parameters, checked and made anew with the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import yaml

from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.local_policies import LocalStudy
from gridsched.experiments.schedulers import scheduler_made
from gridsched.experiments.tasks import OwnFile
from tests.conftest import REPOSITORY
from tests.support.errors import says
from tests.support.studies import message_about, run_study

EXAMPLE = "config/schedulers/example.py"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of files are seen from the working directory."""
    monkeypatch.chdir(REPOSITORY)


def study_with(*schedulers: Any, **changes: Any) -> dict[str, Any]:
    """A small study of local policies."""
    return {
        "name": "own",
        "title": "Own",
        "question": "Is it there?",
        "scenarios": [{"name": "busy", "synthetic": {"machine": "M3", "jobs": 80, "load_scale": 1.3}}],
        "schedulers": ["easy", *schedulers],
        "replicates": 2,
        **changes,
    }


def test_a_place_alone_is_a_scheduler_with_the_name_of_its_class() -> None:
    study = LocalStudy.model_validate(study_with(f"{EXAMPLE}:Easy"))
    assert study.labels == ["easy", "Easy"]
    made: Any = scheduler_made(study.schedulers[1])
    assert made.depth == 1000


def test_a_list_of_values_makes_a_scheduler_of_each() -> None:
    written = {"name": "limited", "scheduler": f"{EXAMPLE}:Easy", "depth": [1, 5]}
    study = LocalStudy.model_validate(study_with(written))
    assert study.labels == ["easy", "limited, depth 1", "limited, depth 5"]
    made: list[Any] = [scheduler_made(each) for each in study.schedulers[1:]]
    assert [each.depth for each in made] == [1, 5]


def test_it_runs_and_equals_the_built_in_policy(tmp_path: Path) -> None:
    dataset = run_study(LocalStudy.model_validate(study_with(f"{EXAMPLE}:Easy")), tmp_path, seed=1)
    waits = dataset.wait_time_mean.sel(group="all jobs")
    assert (waits.sel(scheduler="Easy") == waits.sel(scheduler="easy")).all()


def test_its_file_is_an_input_of_its_tasks() -> None:
    study = LocalStudy.model_validate(study_with(f"{EXAMPLE}:Easy"))
    inputs = {
        each.file
        for task in study.experiment(1).tasks
        if "Easy" in task.name
        for each in task.inputs
        if isinstance(each, OwnFile)
    }
    assert inputs == {EXAMPLE}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"scheduler": f"{EXAMPLE}:Easy", "depht": 3}, "depht: unknown key; did you mean depth?"),
        ({"scheduler": f"{EXAMPLE}:Easy", "depth": "deep"}, "depth: found 'deep'; write a whole number"),
        ({"scheduler": f"{EXAMPLE}:Hard"}, "has no class Hard"),
        ({"scheduler": "nowhere.py:Easy"}, "there is no file nowhere.py"),
    ],
)
def test_mistakes_are_said(written: dict[str, Any], found: str, tmp_path: Path) -> None:
    says(message_about(tmp_path, study_with({"name": "mine", **written})), "schedulers[mine]", found)


def arena_with(folder: Path, *schedulers: dict[str, Any], replicates: int = 1) -> xr.Dataset:
    """An arena of two clusters in which local scheduling and others run."""
    machines = {"A": "M4", "B": "M5"}
    clusters = [
        {"name": name, "synthetic": {"machine": machine, "jobs": 60}} for name, machine in machines.items()
    ]
    study = {
        "name": "own-arena",
        "title": "Own",
        "question": "Is it there?",
        "kind": "arena",
        "scenarios": [{"name": "two", "clusters": clusters}],
        "schedulers": ["local", *schedulers],
        "replicates": replicates,
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    return run_study(load_study(folder / "study.yaml"), folder, seed=1)


def test_a_grid_scheduler_goes_into_the_arena(tmp_path: Path) -> None:
    mine = {"name": "mine", "scheduler": f"{EXAMPLE}:ShortestWait", "patience": 60}
    dataset = arena_with(tmp_path, mine, replicates=2)
    assert (dataset.response_time_mean.sel(scheduler="mine", group="all jobs") > 0).all()

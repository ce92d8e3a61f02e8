"""An arena on which nodes fail: what it does to each scheduler, and who cannot take part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched import results
from gridsched.experiments.arena.figures import arena_effects
from gridsched.experiments.arena.report import arena_view
from gridsched.experiments.config import study_from
from gridsched.replication import times_interval
from gridsched.systems.ideal.scheduler import Ideal
from tests.support.studies import made, run_study

SCHEDULERS = ["local", "sjbf", "ideal-fcfs"]
CALM, FAILING = "calm", "failing"


def study() -> Any:
    """Two machines of a node for each processor, which fail every other hour."""
    rng = np.random.default_rng(3)
    clusters = []
    for name in ("A", "B"):
        submit = np.sort(rng.integers(0, 200_000, 120)).tolist()
        lengths = rng.integers(60, 4000, 120).tolist()
        sizes = rng.integers(1, 5, 120).tolist()
        jobs = [[s, run, 2 * run, size] for s, run, size in zip(submit, lengths, sizes, strict=True)]
        clusters.append({"name": name, "processors": 8, "jobs": jobs})
    return study_from(
        {
            "name": "arena-failures",
            "kind": "arena",
            "title": "Failures",
            "common": {"clusters": clusters, "block": 20_000},
            "scenarios": [
                {"name": CALM},
                {"name": FAILING, "baseline": CALM, "failures": {"mean_time_between": 90_000}},
            ],
            "schedulers": SCHEDULERS,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the study with its results, figures too."""
    here = tmp_path_factory.mktemp("failures")
    run_study(study(), here, 1, shown=True)
    return here


@pytest.fixture(scope="module")
def dataset(folder: Path) -> xr.Dataset:
    """The dataset of the study under usual conditions."""
    return results.read(folder / "arena-failures" / "study.nc").sel(load=1.0, estimate_error=1.0)


def test_effects_are_ratios_on_the_same_jobs(folder: Path, dataset: xr.Dataset) -> None:
    sums = {}
    for scenario in (CALM, FAILING):
        for label in SCHEDULERS[:2]:
            run = results.read(made(folder, f"{scenario}, {label}")).isel(load=0, estimate_error=0)
            grid = [cluster.jobs for cluster in study().scenarios[0].clusters]
            submit = np.sort(np.concatenate([np.array(jobs)[:, 0] - jobs[0][0] for jobs in grid]))
            assert (run["start_time"] >= 0).all()
            response = (run["end_time"].values - submit).astype(np.float64)
            sums[scenario, label] = np.bincount(submit // 20_000, response, 10)
    for label in SCHEDULERS[:2]:
        expected = times_interval(sums[FAILING, label], sums[CALM, label], 1 - 0.05 / 2)
        found = dataset.sel(scenario=FAILING, scheduler=label)
        for suffix, value in zip(("", "_low", "_high"), expected, strict=True):
            assert found[f"response_time_effect{suffix}"].item() == pytest.approx(float(value))
        assert found["response_time_effect"] > 1
        assert found["executions_killed"] > 0
        assert found["extra_work_share"] > 0
        assert found["jobs_lost"] == 0
    assert dataset["response_time_effect"].sel(scenario=CALM).isnull().all()
    assert dataset["executions_killed"].sel(scenario=CALM, scheduler="local").isnull()


def test_who_cannot_is_said_to_with_the_reason(dataset: xr.Dataset) -> None:
    unfit = dataset["unfit"].sel(scheduler="ideal-fcfs")
    assert Ideal.cannot["failures"] in str(unfit.sel(scenario=FAILING).values)
    assert str(unfit.sel(scenario=CALM).values) == ""
    assert dataset["response_time_effect"].sel(scheduler="ideal-fcfs").isnull().all()


def test_figure_and_page_tell_of_those_who_can(folder: Path) -> None:
    whole = results.read(folder / "arena-failures" / "study.nc")
    _, numbers = arena_effects(whole)
    assert sorted(numbers["scheduler"]) == ["local", "sjbf"]
    assert set(numbers["scenario"]) == {FAILING}
    assert (numbers["baseline"] == CALM).all()
    assert (numbers["moved_before"] == 0).all()
    finding = (folder / "arena-failures" / "figures" / "arena_effects.txt").read_text()
    assert "Executions that failing nodes killed" in finding
    view = arena_view(study(), folder / "arena-failures")
    assert view["fates"]
    rows = {row.scheduler: row for row in view["tables"][1]["rows"]}
    assert int(rows["local"].killed.replace(",", "")) > 0
    assert rows["ideal-fcfs"].unfit


def test_scenarios_share_what_does_not_depend_on_failures() -> None:
    tasks = {task.name: task for task in study().experiment(1).tasks}
    other = {task.name: task for task in study().experiment(2).tasks}
    grids = [task for name, task in tasks.items() if task.stage == "prepare"]
    assert all(task.key == other[task.name].key for task in grids)
    assert "failures" not in str([task.arguments for task in grids])
    assert tasks[f"{FAILING}, local"].key != other[f"{FAILING}, local"].key

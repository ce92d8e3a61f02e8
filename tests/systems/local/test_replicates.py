"""Studies of local policies on resampled and shaken logs, beside the log as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml

from gridsched import results
from gridsched.experiments.config import load_config, study_from
from gridsched.experiments.prepare import derived_seed
from gridsched.metrics import jobs as metrics
from gridsched.replication import difference_interval, mean_interval
from gridsched.presentation.page import build_report
from gridsched.report.parts import UNSTABLE
from gridsched.simulation import simulate
from gridsched.systems.local.figures.policies import (
    policies_classes,
    policies_differences,
    policies_distribution,
    policies_means,
    recorded_waits,
)
from gridsched.systems.local.report import local_view
from gridsched.systems.local.study.config import LocalStudy
from gridsched.workloads.resampling import resample
from gridsched.workloads.shaking import shake
from tests.support.studies import log_text, made, message_about, read_page, run_study

SEED = 5
RESAMPLING = {"replicates": 3, "weeks": 4, "users": 1.5}
SHAKING = {"replicates": 4, "seconds": 900}


def values(file: Path, **scenarios: Any) -> dict[str, Any]:
    """A study of a log as it is, and with replicates."""
    listed = {"plain": {}, "users": {"resampling": RESAMPLING}, "shaken": {"shaking": SHAKING}, **scenarios}
    return {
        "name": "replicated",
        "title": "Replicated",
        "scenarios": [
            {"name": name, "file": str(file), "processors": 8, **more} for name, more in listed.items()
        ],
        "schedulers": ["fcfs", "easy"],
        "reference": "easy",
        "metrics": {"batches": 10, "warm_up": 0.1},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the study with its results."""
    here = tmp_path_factory.mktemp("replicates")
    (here / "log.swf").write_text(log_text(1, 300, 8), encoding="utf-8")
    run_study(study_from(values(here / "log.swf")), here, SEED, shown=True)
    return here


@pytest.fixture(scope="module")
def dataset(folder: Path) -> xr.Dataset:
    """The dataset of the study."""
    return results.read(folder / "replicated" / "study.nc")


def test_replicates_are_varied_logs_and_have_intervals(folder: Path, dataset: xr.Dataset) -> None:
    workload, cluster = results.workload_from_dataset(results.read(made(folder, "workload users")))
    expected: dict[str, list[list[float]]] = {"users": [], "shaken": []}
    for policy in ("fcfs", "easy"):
        for name, count in (("users", 3), ("shaken", 4)):
            own = []
            for number in range(count):
                seed = derived_seed(SEED, f"{name}\n{number}")
                jobs = (
                    resample(workload, seed=seed, weeks=4, users=1.5)
                    if name == "users"
                    else shake(workload, seed=seed, seconds=900)
                )
                summary = metrics.summarise(simulate(jobs, cluster, policy), warm_up=0.1, batches=10)
                own.append(float(summary["wait_time_mean"].sel(job_class="all")))
            expected[name].append(own)
    for name, waits in expected.items():
        found = dataset.sel(workload=name, estimate="requested", job_class="all", scheme=["fcfs", "easy"])
        count = len(waits[0])
        np.testing.assert_allclose(found["wait_time_replicates"].values[:, :count], waits)
        for ending, bound in zip(("", "_low", "_high"), mean_interval(waits), strict=True):
            np.testing.assert_allclose(found[f"wait_time_varied{ending}"], bound)
        against = difference_interval(waits, waits[1])
        for ending, bound in zip(("", "_low", "_high"), against, strict=True):
            np.testing.assert_allclose(found[f"wait_time_varied_difference{ending}"], bound)
        low, high = np.quantile(waits, (0.025, 0.975), axis=1)
        np.testing.assert_allclose(found["wait_time_spread"], (high - low) / np.mean(waits, axis=1))
    plain = dataset.sel(workload="plain")
    assert plain["wait_time_varied"].isnull().all()
    assert dataset["variation"].values.tolist() == ["", "resampling", "shaking"]


def test_the_log_itself_is_simulated_as_without_replicates(folder: Path, dataset: xr.Dataset) -> None:
    for name in ("users", "shaken"):
        xr.testing.assert_equal(
            dataset["wait_time_mean"].sel(workload=name, drop=True),
            dataset["wait_time_mean"].sel(workload="plain", drop=True),
        )
    with_keys = study_from(values(folder / "log.swf")).experiment(SEED)
    written = values(folder / "log.swf")
    for scenario in written["scenarios"]:
        scenario.pop("resampling", None)
        scenario.pop("shaking", None)
    without = study_from(written).experiment(SEED)
    keys = {task.key for task in with_keys.tasks}
    assert {task.key for task in without.tasks if task.stage == "simulate"} < keys


def test_tables_have_both_intervals_and_mark_the_unstable(folder: Path, dataset: xr.Dataset) -> None:
    study = study_from(values(folder / "log.swf"))
    assert isinstance(study, LocalStudy)
    view = local_view(study, folder / "replicated")
    rows = {table["workload"]: table["rows"] for table in view["tables"]}
    assert [table["variation"] for table in view["tables"]] == ["", "resampled", "shaken"]
    assert all(
        row.varied.wait_interval and row.wait_interval for row in rows["users"] if row.scheme != "recorded"
    )
    assert not any(row.varied.wait for row in rows["plain"])
    for row in rows["shaken"]:
        if row.scheme == "recorded":
            continue
        at = dataset.sel(workload="shaken", scheme=row.scheme, estimate="requested", job_class="all")
        assert ("mean wait" in row.varied.unstable) == (float(at["wait_time_spread"]) > UNSTABLE)
    table = pd.read_csv(folder / "replicated" / "tables" / "means.csv")
    own = table[(table["workload"] == "users") & (table["job_class"] == "all")]
    assert own["wait_time_varied"].notna().sum() == 2
    build_report([study], folder / "report.html")
    words = read_page(folder / "report.html").words
    assert "mean wait, resampled logs" in words
    assert "3 logs of 4 weeks resampled by users, with 1.5 times the users" in words


def test_figures_of_resampled_scenarios_are_about_all_of_their_logs(dataset: xr.Dataset) -> None:
    at = dataset.sel(estimate="requested", job_class="all")
    for draw, one, many in (
        (policies_means, "mean", "varied"),
        (policies_differences, "difference", "varied_difference"),
    ):
        for row in draw(dataset)[1].to_dict("records"):
            measure = many if row["workload"] == "users" else one
            own = at.sel(workload=row["workload"], scheme=row["scheme"])
            assert row["mean"] == float(own[f"{row['metric']}_{measure}"])
    for show in (policies_distribution, policies_classes, recorded_waits):
        assert set(show(dataset)[1]["workload"]) <= {"plain"}, "the same log again"


def test_mistakes_are_told_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 20, 8), encoding="utf-8")
    both = values(tmp_path / "log.swf", both={"resampling": RESAMPLING, "shaking": SHAKING})
    assert "resampling, shaking: give one of them" in message_about(tmp_path, both)
    few = values(tmp_path / "log.swf", few={"resampling": {"replicates": 1}})
    assert "scenarios[few].resampling.replicates" in message_about(tmp_path, few)
    drawn = values(tmp_path / "log.swf")
    drawn["scenarios"] = [{"name": "a", "synthetic": {"jobs": 10}, "shaking": SHAKING}]
    assert "only a log" in message_about(tmp_path, drawn)
    events = values(tmp_path / "log.swf")
    events["scenarios"][1]["failures"] = {"events": "events.csv"}
    assert "draw failures" in message_about(tmp_path, events)


def test_a_quick_look_has_fewer_replicates(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 20, 8), encoding="utf-8")
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(values(tmp_path / "log.swf")), encoding="utf-8")
    _, studies = load_config({"studies": [str(file)], "replicates": 1})
    study = studies["replicated"]
    assert isinstance(study, LocalStudy)
    assert [each.variation and each.variation.replicates for each in study.scenarios] == [None, 2, 2]

"""Resampled and shaken logs as replicates of grids: what is drawn, by which keys, and who refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsched import results
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import study_from
from gridsched.experiments.prepare import derived_seed
from gridsched.experiments.study import SchedulerStudy
from gridsched.workloads.resampling import WEEK, resample
from tests.support.errors import says
from tests.support.studies import changed, log_text, made, message_about, run_study

RESAMPLING = {"replicates": 3, "weeks": 2}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A log."""
    path = tmp_path / "log.swf"
    path.write_text(log_text(1, 200, 8), encoding="utf-8")
    return path


def study(kind: str, file: Path, **scenario: Any) -> dict[str, Any]:
    """A study of two clusters, of which one replays a log."""
    clusters = [
        {"name": "L", "file": str(file), "processors": 8, "speed": 375},
        {"name": "S", "synthetic": {"machine": "M3", "jobs": 30}},
    ]
    return {
        "name": kind,
        "title": kind,
        "kind": kind,
        **({"replicates": 4} if kind in ("grid", "arena") else {}),
        "scenarios": [
            {"name": "plain", "clusters": clusters},
            {"name": "varied", "clusters": clusters, **scenario},
        ],
        "schedulers": ["local", "central"],
    }


@pytest.mark.parametrize("kind", ["grid", "arena"])
def test_replicates_of_a_grid_are_resampled_logs(kind: str, file: Path, tmp_path: Path) -> None:
    whole = study_from(study(kind, file, resampling=RESAMPLING))
    assert isinstance(whole, SchedulerStudy)
    dataset = run_study(whole, tmp_path, 3)
    grids = results.grids_from_dataset(results.read(made(tmp_path, "varied, replicates 0 to 2")))
    plain = results.grids_from_dataset(results.read(made(tmp_path, "plain, replicates 0 to 3")))
    (log, _), (drawn, _) = plain[0]
    expected = resample(log, seed=derived_seed(3, "L\n2"), weeks=2)
    (varied, _), (other, _) = grids[2]
    assert varied.equals(expected)
    assert varied.submit_time.max() < 2 * WEEK
    assert not np.array_equal(other.submit_time, drawn.submit_time)
    counts = dataset["wait_time_mean"].sel(scheduler="local", group=ALL).notnull().sum("replicate")
    assert counts.values.ravel().tolist() == [4, 3]
    assert dataset["replicates_are"].values.tolist() == ["draws", "resampled logs"]
    assert any("3 logs resampled by users" in line for line in whole.conventions(dataset))


def test_scenarios_without_replicates_keep_their_keys(file: Path) -> None:
    listed: list[dict[str, Any]] = [{"shaking": {}}, {}]
    for kind in ("grid", "arena"):
        own, other = (
            {task.name: task.key for task in study_from(study(kind, file, **varied)).experiment(3).tasks}
            for varied in listed
        )
        assert all(own[name] == key for name, key in other.items() if name.startswith("plain"))
        changed = [name for name, key in other.items() if name.startswith("varied") and own.get(name) != key]
        assert changed


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *((kind, "feedback") for kind in ("calendars", "dynamic-grid", "multicluster", "grid")),
        *(("self-scheduling", key) for key in ("resampling", "shaking", "feedback")),
    ],
)
def test_kinds_in_which_it_has_no_meaning_say_why(kind: str, key: str, file: Path, tmp_path: Path) -> None:
    says(message_about(tmp_path, study(kind, file, **{key: {}})), f"scenarios[varied].{key}: ", "arena")


def test_feedback_of_a_single_cluster_is_refused_too(file: Path, tmp_path: Path) -> None:
    values = changed(study("grid", file), "scenarios.1.clusters.0.feedback", {})
    assert "scenarios[plain].feedback: times of this kind" in message_about(tmp_path, values)


@pytest.mark.parametrize(
    ("kind", "more", "reason"),
    [
        ("forecast", {}, "forecasts are judged"),
        ("sequences", {"starts": [0, 9], "length": 5}, "the published numbers"),
        ("calibration", {}, "layers are fitted"),
        ("workload-models", {}, "the models are fitted"),
    ],
)
def test_feedback_is_refused_where_it_has_no_meaning(
    file: Path, tmp_path: Path, kind: str, more: dict[str, Any], reason: str
) -> None:
    log = {"name": "log", "file": str(file), "feedback": {}}
    jobs = {"workload": log} if kind == "workload-models" else {"workloads": [log]}
    message = message_about(tmp_path, {"name": "own", "title": "Own", "kind": kind, **jobs, **more})
    assert f"workloads[log].feedback: {reason}" in message


def test_streams_of_multiclusters_are_resampled(file: Path, tmp_path: Path) -> None:
    point = {
        "clusters": [{"name": name, "processors": 8} for name in ("A", "B")],
        "stream": {"name": "own", "file": str(file)},
    }
    values: dict[str, Any] = {
        "name": "many",
        "title": "Many",
        "kind": "multicluster",
        "replicates": 3,
        "scenarios": [
            {"name": "plain", **point},
            {"name": "varied", **point, "resampling": {"replicates": 3, "weeks": 2}},
        ],
        "schedulers": [{"name": "muscle", "scheduler": "muscle", "local": "fcfs"}],
    }
    run_study(study_from(values), tmp_path, 3)
    drawn = [results.read(made(tmp_path, f"jobs of varied, replicate {number}")) for number in range(3)]
    same = [results.read(made(tmp_path, f"jobs of plain, replicate {number}")) for number in range(3)]
    assert len({each.attrs["repaired"] + each.attrs["checksum"] for each in drawn}) == 3
    assert len({each.attrs["checksum"] for each in same}) == 1
    assert all(int(each["submit_time"].max()) < 2 * WEEK for each in drawn)
    values["scenarios"][1]["resampling"]["replicates"] = 5
    assert "resampling.replicates: found 5" in message_about(tmp_path, values)

"""Studies of local policies with users who react."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gridsched import results
from gridsched.experiments.config import study_from
from gridsched.metrics import jobs as metrics
from gridsched.simulation import simulate
from gridsched.systems.local.study.config import LocalStudy
from tests.support.studies import log_text, made, message_about, run_study


def values(file: Path, **more: Any) -> dict[str, Any]:
    """A study of a log whose users react, as it is and resampled."""
    return {
        "name": "reacting",
        "title": "Reacting",
        "common": {"processors": 8, "feedback": {"think_time": 600}, **more},
        "scenarios": [
            {"name": "once", "file": str(file)},
            {"name": "often", "file": str(file), "resampling": {"replicates": 2, "weeks": 3}},
        ],
        "schedulers": ["fcfs", "easy"],
        "metrics": {"batches": 10},
    }


def test_waits_count_from_when_jobs_are_eligible(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 300, 8), encoding="utf-8")
    study = study_from(values(tmp_path / "log.swf"))
    assert isinstance(study, LocalStudy)
    dataset = run_study(study, tmp_path, 1)
    workload, cluster = results.workload_from_dataset(results.read(made(tmp_path, "workload once")))
    assert workload.dependencies is not None
    assert len(workload.dependencies)
    for policy in ("fcfs", "easy"):
        run = simulate(workload, cluster, policy)
        waits = run["start_time"] - run["eligible_time"]
        found = dataset.sel(workload="once", scheme=policy, estimate="requested")
        assert float(found["wait_time_mean"].sel(job_class="all")) == float(waits.mean())
        assert float(found["productivity"]) == metrics.productivity(run)
    assert "recorded" not in dataset["scheme"].values
    often = dataset.sel(workload="often", scheme="easy", estimate="requested")
    assert often["productivity_replicates"].notnull().sum() == 2
    assert np.isfinite(often["wait_time_varied"].sel(job_class="all"))


def test_scenarios_keep_their_keys_without_feedback(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 60, 8), encoding="utf-8")
    keys = []
    listed: list[dict[str, Any] | None] = [None, {}]
    for feedback in listed:
        written = values(tmp_path / "log.swf", feedback=feedback)
        keys.append({task.name: task.key for task in study_from(written).experiment(1).tasks})
    written = values(tmp_path / "log.swf")
    del written["common"]["feedback"]
    assert {task.name: task.key for task in study_from(written).experiment(1).tasks} == keys[0]
    assert all(keys[0][name] != key for name, key in keys[1].items())


def test_users_who_give_up_do_not_react(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 60, 8), encoding="utf-8")
    written = values(tmp_path / "log.swf", cancelled="wait")
    assert "feedback, cancelled" in message_about(tmp_path, written)
    written = values(tmp_path / "log.swf", feedback={"sessions": "think"})
    assert "use 'clock'" in message_about(tmp_path, written)


def test_a_grid_says_it_for_all_clusters(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 200, 8), encoding="utf-8")
    clusters = [{"name": name, "file": str(tmp_path / "log.swf"), "processors": 8} for name in ("A", "B")]
    study = {
        "name": "grid",
        "title": "Grid",
        "kind": "arena",
        "scenarios": [{"name": "x", "clusters": clusters, "feedback": {"think_time": 900}}],
        "schedulers": ["local", "central"],
    }
    grid = study_from(study)
    assert [each.feedback and each.feedback.think_time for each in grid.all_workloads] == [900, 900]

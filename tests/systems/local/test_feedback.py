"""Studies of local policies with users who react."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridsched as gs
from gridsched import results
from gridsched.experiments.config import study_from
from gridsched.metrics import jobs as metrics
from gridsched.metrics.users import user_measures
from gridsched.platform import Platform
from gridsched.simulation import simulate
from gridsched.systems.local.figures.catalogue import FIGURES, FINDINGS
from gridsched.systems.local.study.config import LocalStudy
from gridsched.workloads.feedback import sessions_of, with_feedback
from gridsched.workloads.resampling import WEEK, squeezed
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
    assert "use 'clock' or 'leave'" in message_about(tmp_path, written)
    written = values(tmp_path / "log.swf")
    written["scenarios"][1]["resampling"]["squeeze"] = 1.1
    assert "resampling.squeeze" in message_about(tmp_path, written)
    written = values(tmp_path / "log.swf", feedback={"seed": 1})
    assert "only users who leave are drawn" in message_about(tmp_path, written)


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


def test_an_arena_tells_productivity_where_users_react(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 200, 8), encoding="utf-8")
    clusters = [{"name": name, "file": str(tmp_path / "log.swf"), "processors": 8} for name in ("A", "B")]
    written: dict[str, Any] = {
        "name": "grid",
        "title": "Grid",
        "kind": "arena",
        "scenarios": [{"name": "x", "clusters": clusters, "feedback": {"sessions": "leave"}}],
        "schedulers": ["local", "central"],
    }
    dataset = run_study(study_from(written), tmp_path, 1)
    (pairs,) = results.grids_from_dataset(results.read(made(tmp_path, "x, replicate 0"))).values()
    for scheduler in ("local", "central"):
        run = simulate(
            [workload for workload, _ in pairs],
            Platform([cluster for _, cluster in pairs]).with_policy("easy"),
            scheduler,
        )
        found = float(dataset["productivity"].sel(scheduler=scheduler, scenario="x").item())
        assert found == pytest.approx(metrics.productivity(run))
    del written["scenarios"][0]["feedback"]
    written["name"] = "plain"
    assert "productivity" not in run_study(study_from(written), tmp_path, 1)


def test_users_who_leave_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(log_text(1, 300, 8), encoding="utf-8")
    written = values(tmp_path / "log.swf", feedback={"sessions": "leave", "seed": 3, "think_time": 600})
    written["scenarios"].append(
        {**written["scenarios"][1], "name": "more", "resampling": {"replicates": 2, "users": 1.5}}
    )
    study = study_from(written)
    assert isinstance(study, LocalStudy)
    dataset = run_study(study, tmp_path, 1)
    workload, cluster = results.workload_from_dataset(results.read(made(tmp_path, "workload once")))
    assert workload.response_limit is not None
    assert workload.recorded_submit is not None
    run = simulate(workload, cluster, "easy")
    once = dataset.sel(workload="once", scheme="easy", estimate="requested")
    for name, value in user_measures(run, think_time=600).items():
        assert float(once[name]) == value
    assert int(once["going_on_batches"].sum()) == len(sessions_of(log_of(workload), think_time=600).before)
    assert (once["going_on_share"].diff("response") <= 0).all()
    often = dataset.sel(workload="often", estimate="requested")
    done = often["productivity_replicates"].mean("replicate")
    ratio = float(done.sel(scheme="easy") / done.sel(scheme="fcfs"))  # the first policy is the reference
    assert float(often["productivity_varied_ratio"].sel(scheme="easy")) == pytest.approx(ratio)
    assert {"resampled_means", "users_productivity", "users_going_on"} <= {*study.study_figures}
    for name in ("resampled_means", "users_productivity", "users_going_on"):
        figure, numbers = FIGURES[name](dataset)
        assert len(numbers)
        assert findings_of(name, numbers, dataset)
        assert figure.axes


def log_of(workload: gs.Workload) -> gs.Workload:
    """The log of which a workload was made whose users leave."""
    assert workload.recorded_submit is not None
    whole = replace(workload, submit_time=workload.recorded_submit, dependencies=None)
    return whole.select(np.argsort(workload.recorded_submit, kind="stable"))


def findings_of(name: str, numbers: Any, dataset: Any) -> str:
    """What is said of a figure."""
    return FINDINGS[name](numbers, dataset.attrs)


def test_histories_of_users_who_leave_can_be_resampled() -> None:
    rng = np.random.default_rng(2)
    submit = np.sort(rng.integers(0, 8 * WEEK, 300))
    plain = gs.Workload(
        name="log",
        submit_time=submit,
        wait_time=rng.integers(0, 500, 300),
        run_time=rng.integers(1, 20_000, 300),
        requested_processors=np.ones(300, np.int64),
        user=rng.integers(0, 6, 300),
        processors_available=20,
    )
    made = gs.resample(with_feedback(plain, sessions="leave"), seed=4)
    assert made.recorded_submit is not None
    assert made.dependencies is not None
    waits = np.isin(np.arange(len(made)), made.dependencies["job"])
    assert (made.submit_time[~waits] == made.recorded_submit[~waits]).all()
    assert (made.submit_time[waits] <= made.recorded_submit[waits]).all()
    # by their recorded times the jobs are those of the plain log, resampled
    other = gs.resample(plain, seed=4)
    assert np.sort(made.recorded_submit).tolist() == other.submit_time.tolist()
    order = np.lexsort((made.run_time, made.recorded_submit))
    expected = np.lexsort((other.run_time, other.submit_time))
    assert made.run_time[order].tolist() == other.run_time[expected].tolist()
    gs.verify(gs.simulate(made, scheduler="easy"))


def test_squeezing_keeps_all_but_the_times_between_submissions() -> None:
    plain = gs.Workload(
        name="log",
        submit_time=np.array([100, 150, 400]),
        run_time=np.array([5, 6, 7]),
        requested_processors=np.array([1, 1, 1]),
        gives_up_time=np.array([130, -1, 500]),
    )
    made = squeezed(plain, 2.0)
    assert made.submit_time.tolist() == [100, 125, 250]
    assert made.gives_up_time is not None
    assert made.gives_up_time.tolist() == [130, -1, 350]
    assert made.run_time.tolist() == [5, 6, 7]

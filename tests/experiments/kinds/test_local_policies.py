"""Studies of local policies: replicates, logs in blocks, other conditions, users who react."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml

import gridsched as gs
from gridsched import results
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import load_config, study_from
from gridsched.experiments.kinds.local_policies import RECORDED, LocalStudy
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.prepare import derived_seed, selected_jobs
from gridsched.metrics import jobs as metrics
from gridsched.metrics.users import user_measures
from gridsched.simulation import simulate
from gridsched.workloads.feedback import with_feedback
from gridsched.workloads.resampling import WEEK, resample, squeezed
from gridsched.workloads.shaking import shake
from tests.support.fields import assert_fields
from tests.support.studies import changed, log_text, made, message_about, run_study

SEED = 5
RESAMPLING = {"replicates": 3, "weeks": 4, "users": 1.5}
SHAKING = {"replicates": 4, "seconds": 900}

JOBS = 400


def log(path: Path) -> None:
    """A log of a crowded cluster of 16 processors, in which some jobs were cancelled while they waited."""
    rng = np.random.default_rng(5)
    bounds = ((0, 500), (60, 2000), (0, 3000))
    submit, run, wait = (rng.integers(*each, JOBS) for each in bounds)
    cancelled = np.arange(1, JOBS + 1) % 10 == 0
    jobs = gs.Workload(
        name="log",
        submit_time=np.cumsum(submit),
        wait_time=wait,
        run_time=np.where(cancelled, -1, run),
        requested_processors=rng.choice([1, 2, 4, 8], JOBS),
        requested_time=np.full(JOBS, 2500),
        requested_memory=rng.choice([100, 900], JOBS) * 1024,
        status=np.where(cancelled, 5, 1),
        processors_available=16,
    )
    gs.write_swf(jobs, path)


# --- synthetic workloads --------------------------------------------------------------------------


def drawn(**more: Any) -> LocalStudy:
    """A study of a synthetic workload."""
    synthetic = {"machine": "M3", "jobs": 150}
    values = {
        "name": "drawn",
        "title": "Drawn",
        "scenarios": [{"name": "M3", "synthetic": synthetic}],
        "schedulers": ["fcfs", "easy"],
        "reference": "easy",
        **more,
    }
    study = study_from(values)
    assert isinstance(study, LocalStudy)
    return study


def test_synthetic_workloads_are_replicated_by_default(tmp_path: Path) -> None:
    dataset = run_study(drawn(), tmp_path, SEED)
    assert dataset.sizes["replicate"] == 10
    assert dataset["replicates_are"].values.tolist() == ["draws"]
    waits = dataset["wait_time_mean"].sel(scheduler="easy", group=ALL).values.ravel()
    assert len(set(waits.tolist())) == 10
    assert len(set(str(dataset["workload_checksum"].values.item()).split())) == 10


def test_every_replicate_is_the_simulation_of_its_draw(tmp_path: Path) -> None:
    dataset = run_study(drawn(replicates=3), tmp_path, SEED)
    grids = results.grids_from_dataset(results.read(made(tmp_path, "M3, replicates 0 to 2")))
    for replicate, pairs in grids.items():
        ((workload, cluster),) = pairs
        for policy in ("fcfs", "easy"):
            run = simulate(workload, cluster, policy)
            wait = (run["start_time"] - run["submit_time"]).values.mean()
            found = dataset["wait_time_mean"].sel(scheduler=policy, replicate=replicate, group=ALL)
            assert float(found.item()) == pytest.approx(wait)
    assert "schedule" not in dataset


# --- logs -----------------------------------------------------------------------------------------


def conditions(here: Path) -> LocalStudy:
    """A log under four conditions."""
    file = str(here / "log.swf")
    nodes = [{"count": 4, "cores": 4, "memory": 2048}]
    study = study_from(
        {
            "name": "conditions",
            "title": "Conditions",
            "common": {"baseline": "plain"},
            "scenarios": [
                {"name": "plain", "file": file, "baseline": None},
                {"name": "wait", "file": file, "cancelled": "wait"},
                {"name": "fail", "file": file, "failures": {"mean_time_between": 40_000}},
                {"name": "memory", "file": file, "nodes": nodes},
            ],
            "schedulers": ["fcfs", "easy"],
            "reference": "easy",
        }
    )
    assert isinstance(study, LocalStudy)
    return study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a study of conditions with its results, figures too."""
    here = tmp_path_factory.mktemp("conditions")
    log(here / "log.swf")
    run_study(conditions(here), here, 1, shown=True)
    return here


@pytest.fixture(scope="module")
def dataset(folder: Path) -> xr.Dataset:
    """The dataset of the study."""
    return results.read(folder / "conditions" / "study.nc")


def test_a_log_is_measured_in_blocks_of_its_jobs(folder: Path, dataset: xr.Dataset) -> None:
    assert set(dataset["replicates_are"].values.tolist()) == {"blocks"}
    own = dataset.sel(scenario="plain", scheduler="fcfs", estimates="requested", group=ALL)
    ((workload, cluster),) = results.grids_from_dataset(results.read(made(folder, "plain, replicate 0")))[0]
    run = simulate(workload, cluster, "fcfs")
    wait = (run["start_time"] - run["submit_time"]).values
    assert float(own["jobs"].sum()) == len(wait)
    assert float((own["wait_time_mean"] * own["jobs"]).sum() / own["jobs"].sum()) == pytest.approx(
        wait.mean()
    )


def test_recorded_waits_stand_beside_simulated_ones(dataset: xr.Dataset) -> None:
    own = dataset.sel(scenario="plain", scheduler=RECORDED, estimates="requested", group=ALL)
    assert float(own["jobs"].sum()) > 0
    assert own["queue_length_mean"].notnull().any()
    assert dataset.sel(scenario="memory", scheduler=RECORDED, group=ALL)["jobs"].isnull().all()


def test_job_outcomes_are_counted_by_scenario(dataset: xr.Dataset) -> None:
    first = dataset.sel(scheduler="fcfs", estimates="requested", group=ALL).isel(replicate=0)
    assert first["executions_killed"].sel(scenario="fail") > 0
    assert first["jobs_gave_up"].sel(scenario="wait") > 0
    assert np.isnan(first["executions_killed"].sel(scenario="plain"))
    assert set(dataset["baseline"].values.tolist()) == {"plain"}


def test_conditions_are_compared_with_their_baseline(folder: Path) -> None:
    from gridsched import presentation

    effects = next(each for each in conditions(folder).specifications if each.name == "effects")
    numbers = presentation.numbers(effects, results.read(folder / "conditions" / "study.nc"))
    assert set(numbers["scenario"]) == {"wait", "fail", "memory"}
    assert (folder / "conditions" / "figures" / "effects.svg").is_file()


def test_failures_depend_on_the_seed(folder: Path) -> None:
    keys = {
        seed: {task.name: task.key for task in conditions(folder).experiment(seed).tasks} for seed in (1, 2)
    }
    assert keys[1] != keys[2]


def log_of(folder: Path, jobs: int = 300) -> Path:
    """A log of several users."""
    file = folder / "log.swf"
    file.write_text(log_text(1, jobs, 8), encoding="utf-8")
    return file


def values(file: Path) -> dict[str, Any]:
    """A study of a log as it is, and with replicates."""
    listed: dict[str, dict[str, Any]] = {
        "plain": {},
        "users": {"resampling": RESAMPLING},
        "shaken": {"shaking": SHAKING},
    }
    return {
        "name": "replicated",
        "title": "Replicated",
        "scenarios": [
            {"name": name, "file": str(file), "processors": 8, **more} for name, more in listed.items()
        ],
        "schedulers": ["fcfs", "easy"],
        "reference": "easy",
        "metrics": {"warm_up": 0.1},
    }


def test_replicates_of_a_log_are_varied_logs(tmp_path: Path) -> None:
    whole = run_study(study_from(values(log_of(tmp_path))), tmp_path, SEED)
    kinds = dict(zip(whole["scenario"].values.tolist(), whole["replicates_are"].values.tolist(), strict=True))
    assert kinds == {"plain": "blocks", "users": "resampled logs", "shaken": "shaken logs"}
    ((workload, cluster),) = results.grids_from_dataset(results.read(made(tmp_path, "plain, replicate 0")))[0]
    for name, number in (("users", 3), ("shaken", 4)):
        found = whole["wait_time_mean"].sel(scenario=name, scheduler="easy", estimates="requested", group=ALL)
        assert int(found.notnull().sum()) == number
        seed = derived_seed(SEED, f"{name}\n1")
        jobs = (
            resample(workload, seed=seed, weeks=4, users=1.5)
            if name == "users"
            else shake(workload, seed=seed, seconds=900)
        )
        expected = metrics.summarise(simulate(jobs, cluster, "easy"), warm_up=0.1)
        mean = float(expected["wait_time_mean"].sel(job_class="all"))
        assert float(found.sel(replicate=1)) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("reacts", "path", "value", "expected"),
    [
        (False, "scenarios.1.shaking", SHAKING, "resampling, shaking: give one of them"),
        (False, "scenarios.1.resampling", {"replicates": 1}, "scenarios[users].resampling.replicates"),
        (
            False,
            "scenarios",
            [{"name": "a", "synthetic": {"jobs": 10}, "shaking": SHAKING}],
            "only a log",
        ),
        (False, "scenarios.1.failures", {"events": "events.csv"}, "draw failures"),
        (True, "common.cancelled", "wait", "feedback, cancelled"),
        (True, "common.feedback", {"sessions": "think"}, "use 'clock' or 'leave'"),
        (True, "scenarios.1.resampling.squeeze", 1.1, "resampling.squeeze"),
        (True, "common.feedback", {"seed": 1}, "only users who leave are drawn"),
    ],
)
def test_mistakes_are_told_on_one_line(
    tmp_path: Path, reacts: bool, path: str, value: Any, expected: str
) -> None:
    file = log_of(tmp_path, 20)
    study = reacting(file) if reacts else values(file)
    assert expected in message_about(tmp_path, changed(study, path, value))


def test_a_quick_look_has_fewer_replicates(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(values(log_of(tmp_path, 20))), encoding="utf-8")
    study: Any = load_config({"studies": [str(file)], "replicates": 1})[1]["replicated"]
    assert [each.variation and each.variation.replicates for each in study.scenarios] == [None, 2, 2]


# --- users who react ------------------------------------------------------------------------------


def reacting(file: Path, **more: Any) -> dict[str, Any]:
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
    }


@pytest.mark.parametrize(("sessions", "think_time"), [("clock", 600), ("leave", 600), ("think", 0)])
def test_waits_of_users_who_react_count_from_when_jobs_are_eligible(
    tmp_path: Path, sessions: str, think_time: int
) -> None:
    written = reacting(log_of(tmp_path), feedback={"think_time": think_time, "sessions": sessions})
    written["scenarios"] = written["scenarios"][: 1 if sessions == "think" else 2]
    whole = run_study(study_from(written), tmp_path, 1)
    ((workload, cluster),) = results.grids_from_dataset(results.read(made(tmp_path, "once, replicate 0")))[0]
    assert workload.dependencies is not None
    run = simulate(workload, cluster, "easy")
    waits = (run["start_time"] - run["eligible_time"]).values
    own = whole.sel(scenario="once", scheduler="easy", estimates="requested", group=ALL)
    assert float((own["wait_time_mean"] * own["jobs"]).sum() / own["jobs"].sum()) == pytest.approx(
        waits.mean()
    )
    expected = user_measures(run, think_time=think_time)
    first = own.isel(replicate=0)
    assert float(first["productivity"]) == pytest.approx(expected["productivity"])
    assert np.isfinite(float(first["jobs_per_session"])) == (sessions == "leave")
    often = whole["productivity"].sel(scenario=whole["scenario"] == "often", scheduler="easy", group=ALL)
    assert int(often.notnull().sum()) == (0 if sessions == "think" else 2)


def test_where_no_user_has_two_jobs_nobody_reacts(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    gs.write_swf(replace(gs.read_swf(log_of(tmp_path)), user=np.arange(300)), file)
    written = reacting(file)
    written["scenarios"] = written["scenarios"][:1]
    whole = run_study(study_from(written), tmp_path, 1)
    own = whole.sel(scenario="once", scheduler="easy", estimates="requested", group=ALL)
    assert float(own["jobs"].sum()) == 300
    assert float(own["productivity"].isel(replicate=0)) > 0


def test_a_grid_says_it_for_all_clusters(tmp_path: Path) -> None:
    file = str(log_of(tmp_path))
    clusters = [{"name": name, "file": file, "processors": 8} for name in ("A", "B")]
    study = {
        "name": "grid",
        "title": "Grid",
        "kind": "arena",
        "scenarios": [{"name": "x", "clusters": clusters, "feedback": {"think_time": 900}}],
        "schedulers": ["local", "central"],
    }
    assert [each.feedback and each.feedback.think_time for each in study_from(study).all_workloads] == [
        900,
        900,
    ]


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
    assert_fields(
        squeezed(plain, 2.0), submit_time=[100, 125, 250], gives_up_time=[130, -1, 350], run_time=[5, 6, 7]
    )


def test_a_log_can_be_replayed_without_incomplete_jobs(tmp_path: Path) -> None:
    lines = [f"{j} {j} 0 {run} 1 -1 -1 1 {asked} {' -1' * 9}" for j, run, asked in JOBS_OF_LOG]
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n", encoding="utf-8")
    config = WorkloadConfig(name="log", file=str(tmp_path / "log.swf"), leave_out_incomplete=True)
    made = selected_jobs(config, tmp_path / "log.swf")
    assert made.job_number.tolist() == [1, 4]
    assert (made.left_out["run time 0"], made.left_out["no requested time"]) == (2, 1)


JOBS_OF_LOG = [(1, 5, 10), (2, 0, 10), (3, 5, -1), (4, 50, 10), (5, 0, -1)]
"""Job number, run time, requested time."""


def test_failures_have_the_clock_of_the_jobs(tmp_path: Path) -> None:
    """Nodes fail while the jobs of a log run, however late its first job is."""
    lines = [f"{n} {10**7 + 500 * n} 1 3000 4 -1 -1 4 4000 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 101)]
    (tmp_path / "late.swf").write_text("\n".join(["; MaxProcs: 16", *lines]) + "\n", encoding="utf-8")
    scenario = {
        "name": "late",
        "file": str(tmp_path / "late.swf"),
        "failures": {"mean_time_between": 20_000, "mean_repair": 600},
    }
    values = {"name": "late", "title": "Late", "scenarios": [scenario], "schedulers": ["easy"]}
    study = study_from({**values, "estimates": ["actual"]})
    killed = run_study(study, tmp_path / "made", SEED)["executions_killed"]
    assert float(killed.sel(group=ALL).sum()) > 0

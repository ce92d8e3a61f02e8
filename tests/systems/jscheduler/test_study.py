"""Studies of self-scheduling: configuration, measures, stages, and what must not depend on chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gridsched import results
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.experiments.config import load_study
from gridsched.experiments.prepare import derived_seed
from gridsched.metrics import jobs as metrics
from gridsched.platform import Platform
from gridsched.prediction import predict_prequential
from gridsched.prediction.prequential import streams
from gridsched.replication import times_interval
from gridsched.simulation import simulate
from gridsched.systems.jscheduler.measures import (
    METRICS,
    WEEK,
    Lessons,
    SlowdownOptions,
    cohort,
    makespan,
    measure,
    unfinished,
)
from gridsched.systems.jscheduler.retraining import retrained_schedule
from gridsched.systems.jscheduler.scheduler import JScheduler, Submissions, draw_samples, self_schedule
from gridsched.systems.jscheduler.study.aggregation import first_better
from gridsched.systems.jscheduler.study.config import SelfSchedulingStudy
from gridsched.systems.jscheduler.study.failing import pool_of, resources_of
from gridsched.traces import merge_workloads
from gridsched.workloads import Workload
from tests.support.studies import changed, log_text, made, message_about, run_study

SEED = 5
PLATFORM: dict[str, Any] = {
    "source": "a test",
    "centres": [
        {"name": "north", "resources": [[2, 8]], "factor": 2, "policy": "easy", "file": "north.swf"},
        {"name": "south", "resources": [[1, 6]], "factor": 4, "policy": "sjf", "file": "south.swf"},
        {"name": "idle", "resources": [[1, 12], [1, 3]], "factor": 1, "policy": "fcfs"},
        {
            "name": "lost",
            "resources": [[1, 10]],
            "factor": 3,
            "policy": "lxwf",
            "log": "KTH-SP2-1996",
            "absent": "not needed",
        },
    ],
}
PLAN = {"scheduler": "jscheduler", "predictions": "plan"}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "self-scheduling",
    "title": "Tiny",
    "platform": "platform.yaml",
    "window": {"first_months": 1},
    "scenarios": [
        {"name": "paper", "factor": "multiply", "schedulers": ["plan"]},
        {"name": "logged", "factor": "none", "schedulers": ["plan"]},
        {"name": "exact", "factor": "multiply", "schedulers": ["exact"], "estimates": ["actual"]},
        {
            "name": "older",
            "factor": "multiply",
            "schedulers": ["plan three", "older"],
            "estimates": ["predicted"],
        },
    ],
    "schedulers": [
        {"name": "plan", **PLAN, "metric": ["wait", "slowdown"], "k": {"from": 1, "to": 3}},
        {"name": "exact", "scheduler": "jscheduler", "k": [2, 5]},
        {"name": "plan three", **PLAN, "k": 3},
        {"name": "older", **PLAN, "metric": "queued-jobs", "k": 3},
    ],
    "estimates": ["predicted", "requested"],
    "predictor": {"intervals": 5, "retrain_seconds": None, "retrain_jobs": 50},
    "evaluate": True,
}


def write_inputs(folder: Path) -> None:
    """Platform and logs of the study."""
    (folder / "platform.yaml").write_text(yaml.safe_dump(PLATFORM), encoding="utf-8")
    (folder / "north.swf").write_text(log_text(1, 260, largest=20), encoding="utf-8")
    (folder / "south.swf").write_text(log_text(2, 240, largest=7), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with platform and logs."""
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("scenarios", [], ["scenarios: found []; write at least 1"]),
        ("scenarios.0.factor", "twice", ["scenarios[paper].factor: found 'twice'", "'divide'"]),
        ("scenarios.0.estimates", ["perfect"], ["[paper].estimates[item 1]: found 'perfect'", "'retrained'"]),
        (
            "scenarios.0.schedulers",
            ["plann"],
            ["[paper].schedulers: found 'plann'; known are plan, "],
        ),
        ("schedulers.2.k", 0, ["schedulers[plan three]: k is 0; use a whole number from 1 on"]),
        ("schedulers.2.k", 7, ["schedulers[plan three].k: found 7; the platform has 6", "use 1 to 6"]),
        ("schedulers.1.k", [2, 7], ["schedulers[exact, k 7].k: found 7", "use 1 to 6"]),
        ("schedulers.1.k", [], ["schedulers[exact].k: found []; write a whole number"]),
        ("schedulers.1.k", [2, "x"], ["schedulers[exact, k x].k: found 'x'; write a whole number"]),
        ("schedulers.0.k", {"from": 3, "to": 2}, ["[plan, metric wait].k: write a whole number"]),
        ("schedulers.2.metric", "waits", ["[plan three].metric: found 'waits'; did you mean wait", "queued"]),
        ("schedulers.2.predictions", "guess", ["[plan three].predictions: found 'guess'", "'plan'"]),
        ("schedulers.2.metrics", "wait", ["[plan three].metrics: unknown key; did you mean metric?"]),
        ("schedulers", ["easy"], ["scenarios[paper].schedulers: found 'plan'"]),
        ("estimates", ["perfect"], ["estimates[item 1]: found 'perfect'", "'retrained'"]),
        (
            "logs",
            ["north", "nord"],
            ["logs: no log of 'nord' can be used: the platform has no", "did you mean north?"],
        ),
        ("logs", ["idle"], ["logs: no log of 'idle' can be used: "]),
        ("logs", ["lost"], ["logs: no log of 'lost' can be used: not needed", "north, south"]),
        ("logs", ["north", "north"], ["logs: 'north' is there twice"]),
        ("logs", [], ["logs: found []; write at least 1"]),
        ("platform", "nowhere.yaml", ["platform: ", "nowhere.yaml"]),
        ("window.first_months", 0, ["window.first_months: found 0"]),
        ("predictor.intervals", 0, ["predictor: intervals is 0"]),
        ("predictor.scope", "user", ["predictor.scope: found 'user'", "'global'"]),
        ("predictor.retrain_jobs", None, ["predictor: retrain_seconds is None; give retrain_seconds or"]),
        ("overrun", "tripling", ["overrun: found 'tripling'"]),
        (
            "rows",
            {"nort": {"policy": "easy"}},
            ["rows: the platform has no centre 'nort'; did you mean north?"],
        ),
        ("rows", {"north": {"policy": "eazy"}}, ["rows.north.policy: ", "did you mean easy?"]),
        ("rows", {"north": {"log": "x"}}, ["rows.north.log: unknown key"]),
        (
            "rows",
            {"north": {"resources": [[2, 2**31 - 1]]}},
            ["rows.north: resources: 4294967294 processors"],
        ),
        ("align", "date", ["align: found 'date'", "'clock'"]),
        ("weights", "users", ["weights: found 'users'", "'centres'"]),
        ("slowdowns.threshold", 0, ["slowdowns: threshold is 0; use 1 or more seconds"]),
        ("schedulers.2.ties", "any", ["[plan three].ties: found 'any'", "'first'"]),
        ("workloads", [], ["workloads: unknown key"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    message = message_about(folder, changed(STUDY, path, value))
    for part in expected:
        assert part in message


def runs_of(estimates: list[str], k: list[int], *factors: str) -> dict[str, Any]:
    """Scenarios and schedulers of few runs."""
    return {
        "scenarios": [{"name": "few", "factor": list(factors or ("multiply",))}],
        "schedulers": [{"name": "plan", **PLAN, "k": k}],
        "estimates": estimates,
    }


def study_of(**changes: Any) -> SelfSchedulingStudy:
    """The study with other values of some keys; the working directory has its inputs."""
    return SelfSchedulingStudy.model_validate({**STUDY, **changes})


def test_log_must_exist(folder: Path) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    (folder / "south.swf").unlink()
    with pytest.raises(ConfigurationError, match=r"platform.yaml: centres\[south\].file: found 'south.swf'"):
        load_study("study.yaml")


def test_workloads_are_the_logs_of_the_platform(folder: Path) -> None:
    north, south = study_of().all_workloads
    assert (north.name, north.file, south.file) == ("north", "north.swf", "south.swf")
    assert north.window is not None
    assert north.window.first_months == 1
    assert north.processors == 16 + 6 + 15 + 10
    assert [each.name for each in study_of(logs=["south"]).all_workloads] == ["south"]
    assert study_of(window=None).all_workloads[0].window is None


def test_platform_of_the_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    study = study_of(platform=None)
    assert study.resource_count == sum(
        number for centre in study.grid.centres for number, _ in centre.resources
    )
    archived = [workload for workload in study.all_workloads if workload.archive is not None]
    assert len(archived) == len(study.centres) > 10
    assert not [centre for centre in study.centres if centre.absent]


def test_range_stands_for_its_numbers(folder: Path) -> None:
    listed = study_of(**changed(STUDY, "schedulers.0.k", [1, 2, 3]))
    assert listed == study_of()
    assert listed.checksum() == study_of().checksum()


def test_plain_values_give_the_study_back(folder: Path) -> None:
    study = study_of()
    assert SelfSchedulingStudy.model_validate(study.values()) == study


def test_checksum_depends_on_the_platform(folder: Path) -> None:
    before = study_of()
    text = yaml.safe_dump(changed(PLATFORM, "centres.2.factor", 3))
    (folder / "platform.yaml").write_text(text, encoding="utf-8")
    after = study_of()
    assert before.checksum() != after.checksum()
    assert before.machines() != after.machines()
    assert before.machines("north") == after.machines("north")
    ours, theirs = ({task.name: task.key for task in each.experiment(SEED).tasks} for each in (before, after))
    changed_ones = {name for name in ours if ours[name] != theirs[name]}
    assert "north on its own, factor multiply" not in changed_ones
    assert "all logs, factor multiply" in changed_ones


def test_a_run_is_made_once(folder: Path) -> None:
    runs = study_of().runs
    assert len(runs) == len(set(runs))
    assert len([run for run in runs if run.case == "multiply"]) == 2 * 2 * 3 + 2 + 1
    assert len([run for run in runs if run.case == "none"]) == 12


def test_figures_that_a_study_needs(folder: Path) -> None:
    experiment = study_of().experiment(SEED)
    names = {figure.name for figure in experiment.figures}
    assert {"improvement_wait_time", "prediction_worth", "plan_and_exact", "prediction_quality"} <= names
    assert [table.name for table in experiment.tables] == ["means", "table_two"]
    few = study_of(**runs_of(["retrained"], [1]), evaluate=False)
    drawn = [figure.name for figure in few.experiment(SEED).figures]
    assert "retraining_effect" in drawn
    assert not {"prediction_worth", "plan_and_exact", "prediction_quality"} & set(drawn)


# --- measures of one schedule ---------------------------------------------------------------------


JOBS = st.lists(
    st.tuples(
        st.integers(0, 3 * WEEK),  # submit time
        st.integers(0, WEEK),  # wait
        st.integers(0, 1000),  # run time
        st.integers(0, 3),  # centre
        st.booleans(),  # measured
    ),
    min_size=1,
    max_size=30,
)


@given(JOBS)
def test_measures_are_those_of_the_jobs_one_by_one(jobs: list[tuple[int, int, int, int, bool]]) -> None:
    rows = sorted(jobs)
    submit, wait, run, centre = (np.array([row[i] for row in rows]) for i in range(4))
    measured = np.array([row[4] for row in rows])
    group = cohort(submit, centre, measured, 5)
    values = measure(group, np.where(measured, submit + wait, -1), run, submit + wait + run)
    chosen = [row for row in rows if row[4]]
    weeks = (rows[-1][0] - rows[0][0]) // WEEK + 1
    naive: dict[str, Any] = {
        "wait_time": lambda row: float(row[1]),
        "slowdown": lambda row: (row[1] + row[2]) / max(row[2], 1),
        "bounded_slowdown": lambda row: max(1.0, (row[1] + row[2]) / max(row[2], 10)),
    }
    for metric in METRICS:
        each = [(naive[metric](row), row) for row in chosen]
        np.testing.assert_allclose(values[f"{metric}_mean"], mean([value for value, _ in each]))
        for c in range(5):
            own = [value for value, row in each if row[3] == c]
            np.testing.assert_allclose(np.asarray(values[f"{metric}_mean_by_centre"])[c], mean(own))
            p95 = np.percentile(own, 95) if own else np.nan
            np.testing.assert_allclose(np.asarray(values[f"{metric}_p95_by_centre"])[c], p95)
        assert len(np.atleast_1d(values[f"{metric}_by_week"])) == weeks
        for w in range(weeks):
            total = sum(value for value, row in each if (row[0] - rows[0][0]) // WEEK == w)
            np.testing.assert_allclose(np.asarray(values[f"{metric}_by_week"])[w], total)
    assert group.jobs_by_centre().tolist() == [sum(row[3] == c for row in chosen) for c in range(5)]
    assert group.jobs_by_week().sum() == len(chosen)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else np.nan


@given(JOBS, st.integers(2, 60), st.integers(1, 60), st.sampled_from(["cluster", "log"]), st.integers(0, 9))
def test_weights_and_what_slowdowns_are_relative_to(
    jobs: list[tuple[int, int, int, int, bool]], threshold: int, bounded: int, relative_to: Any, seed: int
) -> None:
    rows = sorted(jobs)
    submit, wait, run, centre = (np.array([row[i] for row in rows]) for i in range(4))
    measured = np.array([row[4] for row in rows])
    weight = np.random.default_rng(seed).integers(1, 9, len(rows)).astype(float)
    logged = 3 * run
    group = cohort(submit, centre, measured, 5, weight)
    options = SlowdownOptions(run_time=relative_to, threshold=threshold, bounded_threshold=bounded)
    values = measure(group, submit + wait, run, submit + wait + run, options, logged)
    divisor = logged if relative_to == "log" else run
    expected = {
        "wait_time": wait,
        "slowdown": np.maximum(1, (wait + run) / np.maximum(divisor, threshold)),
        "bounded_slowdown": np.maximum(1, (wait + run) / np.maximum(divisor, bounded)),
    }
    for metric, each in expected.items():
        if measured.any():
            average = np.average(each[measured], weights=weight[measured])
            np.testing.assert_allclose(values[f"{metric}_mean"], average)
            np.testing.assert_allclose(np.sum(values[f"{metric}_by_week"]), average * measured.sum())
        own = [each[i] for i in np.flatnonzero(measured & (centre == 0))]
        np.testing.assert_allclose(np.asarray(values[f"{metric}_mean_by_centre"])[0], mean(own))


def test_makespan_is_that_of_the_jobs_that_run() -> None:
    submit, start, run = np.array([0, 5, 6]), np.array([-1, 9, 7]), np.array([100, 3, 9])
    assert makespan(submit, start, start + run) == 11
    assert np.isnan(makespan(submit[:1], start[:1], start[:1] + run[:1]))


@given(
    jobs=st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 40)), min_size=1, max_size=20),
    cuts=st.lists(st.integers(0, 20), max_size=6),
    window=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_unfinished_jobs_of_the_training_windows(
    jobs: list[tuple[int, int]], cuts: list[int], window: int, seed: int
) -> None:
    submit = np.array(sorted(time for time, _ in jobs))
    end = np.array([-1 if run < 0 else time + run for time, (_, run) in zip(submit, jobs, strict=True)])
    order = np.random.default_rng(seed).permutation(len(jobs))
    first = np.array(sorted({cut for cut in cuts if cut < len(jobs)}), np.int64)
    stop = np.append(first[1:], len(jobs))[: len(first)]
    finished = np.minimum(first + 1, len(jobs))
    begin = np.maximum(finished - window, 0)
    lessons = Lessons(np.arange(len(jobs)), order, first, stop, begin, finished)
    shares = []
    for job in np.flatnonzero(end >= 0):
        trainings = [t for t in range(len(first)) if first[t] <= job < stop[t]]
        learned = [other for t in trainings for other in order[begin[t] : finished[t]]]
        late = [end[o] < 0 or max(end[o], submit[o] + 1) > submit[job] for o in learned]
        shares.append(np.mean(late) if late else np.nan)
    predictions, of_window = unfinished(lessons, submit, end)
    np.testing.assert_allclose(predictions, mean([float(share > 0) for share in shares]))
    known = [float(share) for share in shares if not np.isnan(share)]
    np.testing.assert_allclose(of_window, mean(known))


@given(st.lists(st.sampled_from([1.0, 0.0, -1.0, np.nan]), min_size=1, max_size=8))
def test_first_k_that_is_better_for_good(gain: list[float]) -> None:
    k = 2 * np.arange(len(gain)) + 3
    candidates = [
        i
        for i in range(len(gain))
        if not np.isnan(gain[i]) and all(np.isnan(other) or other > 0 for other in gain[i:])
    ]
    none = np.nan if np.isnan(gain).all() else 0
    expected = k[candidates[0]] if candidates else none
    np.testing.assert_equal(first_better(np.array([gain]), k), [expected])


# --- stages ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the inputs and of the results of the study, every factor in one chunk."""
    folder = tmp_path_factory.mktemp("finished")
    write_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_study(study_of(), folder, SEED)
    return folder


@pytest.fixture
def study(finished: Path, monkeypatch: pytest.MonkeyPatch) -> SelfSchedulingStudy:
    """The study, in the working directory of its inputs."""
    monkeypatch.chdir(finished)
    return study_of()


@pytest.fixture
def dataset(finished: Path) -> xr.Dataset:
    return results.read(finished / "tiny" / "study.nc")


def logs_of(finished: Path) -> list[Workload]:
    paths = [made(finished, f"workload {name}") for name in ("north", "south")]
    return [results.workload_from_dataset(results.read(path))[0] for path in paths]


def test_original_scenario_is_each_log_on_its_own_pool(study: SelfSchedulingStudy, finished: Path) -> None:
    for log in logs_of(finished):
        alone = results.read(made(finished, f"{log.name} on its own, factor multiply"))
        pool, policy = study.grid.pool(log.name, "multiply")
        run = simulate(log, pool, policy)
        np.testing.assert_array_equal(alone["start_requested"], run["start_time"])
        predicted = predict_prequential(log, run["end_time"].values, study.predictor.made())
        np.testing.assert_array_equal(alone["predicted"], predicted.run_time)
        assert (predicted.trained_at >= 0).any()
        under = simulate(log, pool, policy, estimates=predicted.run_time)
        np.testing.assert_array_equal(alone["start_predicted"], under["start_time"])
        assert alone.attrs["corrections_predicted"] == under.attrs["corrections"]


def test_stream_has_the_jobs_of_all_logs_from_their_start_on(
    study: SelfSchedulingStudy, finished: Path
) -> None:
    logs = logs_of(finished)
    stream = results.read(made(finished, "all logs, factor multiply"))
    submit = stream["submit_time"].values
    assert (np.diff(submit) >= 0).all()
    for index, log in enumerate(logs):
        own = stream["centre_index"].values == index
        begin = log.submit_time[0]
        assert begin > 0
        np.testing.assert_array_equal(submit[own], log.submit_time - begin)
        np.testing.assert_array_equal(stream["processors"].values[own], log.processors)
        alone = results.read(made(finished, f"{log.name} on its own, factor multiply"))
        starts = alone["start_actual"].values
        np.testing.assert_array_equal(
            stream["start_actual"].values[own], np.where(starts < 0, -1, starts - begin)
        )
        requested = np.where(log.requested_time > 0, log.requested_time, log.run_time)
        np.testing.assert_array_equal(stream["requested"].values[own], np.maximum(requested, 1))


def test_lessons_are_the_windows_of_the_predictor(study: SelfSchedulingStudy, finished: Path) -> None:
    stream = results.read(made(finished, "all logs, factor multiply"))
    options = study.predictor.made()
    origin = stream["centre_index"].values
    found = []
    for first, stop, begin, end in zip(
        *(stream[f"lessons_{name}"].values for name in ("first", "stop", "begin", "end")), strict=True
    ):
        jobs = stream["lessons_jobs"].values[first:stop].tolist()
        found.append((jobs, stream["lessons_order"].values[begin:end].tolist()))
    expected = []
    for index, log in enumerate(logs_of(finished)):
        pool, policy = study.grid.pool(log.name, "multiply")
        ends = simulate(log, pool, policy)["end_time"].values
        (own,) = streams(log, ends, options)
        place = np.flatnonzero(origin == index)
        for period in own.periods:
            learned = place[own.history(period, options.window)].tolist()
            expected.append((place[period.jobs].tolist(), learned))
    assert found == expected
    assert len(found) > 2


def test_runs_are_those_of_the_scheduler(
    study: SelfSchedulingStudy, finished: Path, dataset: xr.Dataset
) -> None:
    logs = logs_of(finished)
    merged, origin = merge_workloads(logs)
    resources, policies, _ = study.grid.resources("multiply")
    jscheduler = JScheduler(metric="slowdown", k=2, predictions="plan")
    platform = Platform(resources).with_policy(policies)
    run = simulate(merged, platform, jscheduler, seed=derived_seed(SEED, "tiny"))
    place: dict[str, Any] = {
        "factor": "multiply",
        "mode": "plan",
        "estimates": "requested",
        "metric": "slowdown",
        "k": 2,
    }
    here = dataset.sel(place)
    alone = {
        log.name: simulate(log, *study.grid.pool(log.name, "multiply"))["start_time"].values for log in logs
    }
    fits = np.empty(len(merged), np.bool_)
    for index, log in enumerate(logs):
        fits[origin == index] = alone[log.name] >= 0
    jobs = fits & (run["start_time"].values >= 0)
    assert 0 < jobs.sum() < len(merged)
    columns = metrics.job_metrics(run)
    for metric in METRICS:
        values = columns[metric]
        assert float(here[f"{metric}_mean"]) == pytest.approx(values[jobs].mean())
        own = values[jobs & (origin == 1)]
        assert float(here[f"{metric}_p95_by_centre"].sel(centre="south")) == pytest.approx(
            np.quantile(own, 0.95)
        )
    assert float(here["queries"]) == run.attrs["queries"]
    assert float(here["corrections"]) == run.attrs["corrections"]
    assert float(here["makespan"]) == metrics.makespan(run)
    for index, name in enumerate(("north", "south")):
        counts = dataset.sel(factor="multiply", centre=name)
        own = origin == index
        assert int(counts["jobs"]) == jobs[own].sum()
        assert int(counts["jobs_rejected_original"]) == (~fits[own]).sum() > 0
        assert int(counts["jobs_rejected"]) == (run["start_time"].values[own] < 0).sum()
    assert int(dataset["jobs_rejected"].sel(factor="multiply", centre="north")) > 0
    assert int(dataset["jobs_rejected"].sel(factor="multiply", centre="south")) == 0


def test_improvements_follow_from_the_means(dataset: xr.Dataset) -> None:
    before = dataset.sel(estimates="requested", drop=True)
    for metric in METRICS:
        own = dataset[f"{metric}_mean"]
        ratio = before[f"original_{metric}_mean"] / own.where(own > 0)
        xr.testing.assert_allclose(
            dataset[f"{metric}_improvement"], ratio.transpose(*dataset[f"{metric}_mean"].dims)
        )
        low, high = (dataset[f"{metric}_improvement_{end}"] for end in ("low", "high"))
        assert bool((low <= dataset[f"{metric}_improvement"]).any())
        assert bool((low <= high).where(low.notnull(), True).all())
    place: dict[str, Any] = {
        "factor": "none",
        "mode": "plan",
        "estimates": "predicted",
        "metric": "wait",
        "k": 3,
    }
    weeks = dataset["jobs_by_week"].sel(factor="none").values > 0
    expected = times_interval(
        dataset["original_slowdown_by_week"].sel(factor="none", estimates="requested").values[weeks],
        dataset["slowdown_by_week"].sel(place).values[weeks],
    )
    assert float(dataset["slowdown_improvement_low"].sel(place)) == pytest.approx(float(expected.low))
    by_centre = float(
        before["original_wait_time_mean_by_centre"].sel(factor="none").mean()
        / dataset["wait_time_mean_by_centre"].sel(place).mean()
    )
    assert float(dataset["wait_time_improvement_centres"].sel(place)) == pytest.approx(by_centre)


def test_improvement_without_overloaded_centres(dataset: xr.Dataset) -> None:
    place = {"factor": "multiply", "mode": "plan", "estimates": "predicted", "metric": "wait", "k": 2}
    sums = np.zeros(2)
    for centre in dataset["centre"].values:
        here = dataset.sel(factor="multiply", centre=centre)
        if float(here["offered_load"]) < 1:
            before = here["original_bounded_slowdown_mean_by_centre"].sel(estimates="requested")
            after = dataset["bounded_slowdown_mean_by_centre"].sel(place | {"centre": centre})
            sums += float(here["jobs"]) * np.array([float(before), float(after)])
    expected = sums[0] / sums[1] if sums[1] > 0 else np.nan
    got = float(dataset["bounded_slowdown_improvement_light"].sel(place))
    np.testing.assert_allclose(got, expected)


def test_dimensions_and_what_was_not_run(dataset: xr.Dataset) -> None:
    assert dataset["factor"].values.tolist() == ["multiply", "none"]
    assert dataset["mode"].values.tolist() == ["plan", "exact"]
    assert dataset["estimates"].values.tolist() == ["predicted", "requested", "actual"]
    assert dataset["metric"].values.tolist() == ["wait", "slowdown", "queued-jobs"]
    assert dataset["k"].values.tolist() == [1, 2, 3, 5]
    assert dataset["resource_centre"].values.tolist() == ["north", "south", "idle", "lost"]
    assert str(dataset["absent"].sel(resource_centre="lost").values) == "not needed"
    known = dataset["wait_time_mean"].notnull()
    assert int(known.sum()) == 27
    assert bool(known.sel(factor="multiply", mode="exact", estimates="actual", metric="wait", k=5))
    rests = dataset["predictions_on_unfinished"]
    assert bool((rests.notnull() == known).sel(estimates="predicted").all())
    assert not bool(rests.notnull().sel(estimates=["requested", "actual"]).any())
    assert dataset["offered_load"].sel(centre="south", factor="multiply") > 0
    assert dataset.attrs["months"] == 1
    assert dataset.attrs["seed"] == SEED
    assert np.isnan(dataset["paper_wait_time_mean"]).all()


def test_window_and_unknown_requests_are_counted(study: SelfSchedulingStudy, dataset: xr.Dataset) -> None:
    north = dataset.sel(centre="north")
    outside = int(north["left_out"].sel(left_out_reason="outside the window"))
    measured = int(north["jobs"].sel(factor="none")) + int(north["jobs_rejected_original"].sel(factor="none"))
    assert outside > 0
    assert outside + measured == 260
    assert int(north["jobs_without_requested_time"]) > 0
    assert "a user" in str(north["acknowledgement"].values)


def test_tables(finished: Path, dataset: xr.Dataset) -> None:
    folder = finished / "tiny"
    runs = pd.read_csv(folder / "runs.csv")
    assert len(runs) == 27
    assert runs["run"].is_unique
    means = pd.read_csv(folder / "tables" / "means.csv")
    rows = means[(means["measure"] == "wait_time_mean") & (means["mode"] != "original")]
    assert len(rows) == 27
    row = rows[(rows["factor"] == "none") & (rows["k"] == 2) & (rows["estimates"] == "predicted")].iloc[0]
    place: dict[str, Any] = {
        "factor": "none",
        "mode": "plan",
        "estimates": "predicted",
        "metric": row["metric"],
        "k": 2,
    }
    assert row["value"] == pytest.approx(float(dataset["wait_time_mean"].sel(place)))
    assert row["low"] == pytest.approx(float(dataset["wait_time_improvement_low"].sel(place)))
    table = pd.read_csv(folder / "tables" / "table_two.csv")
    assert table[["factor", "centre"]].to_numpy().tolist() == [
        [factor, centre] for factor in ("multiply", "none") for centre in ("north", "south")
    ]
    assert table["original_wait_time_mean"].notna().all()


def test_paper_stands_beside_the_original_scenario(folder: Path) -> None:
    paper = {"wait_mean": 12.5, "wait_p95": 20, "slowdown_mean": 3, "slowdown_p95": 4.5}
    text = yaml.safe_dump(changed(PLATFORM, "centres.1.paper", paper))
    (folder / "platform.yaml").write_text(text, encoding="utf-8")
    whole = run_study(study_of(**runs_of(["requested"], [1])), folder, SEED)
    assert whole["paper_wait_time_mean"].values.tolist()[1] == 12.5
    assert whole["paper_slowdown_p95"].values.tolist()[1] == 4.5
    south = pd.read_csv(folder / "tiny" / "tables" / "table_two.csv").iloc[1]
    assert south["centre"] == "south"
    assert south["difference_slowdown_mean"] == pytest.approx(south["original_slowdown_mean"] - 3)


def test_all_logs_may_share_a_history(folder: Path) -> None:
    predictor = {**STUDY["predictor"], "scope": "global"}
    study = study_of(predictor=predictor, **runs_of(["predicted"], [2]))
    whole = run_study(study, folder, SEED)
    stream = results.read(made(folder, "all logs, factor multiply"))
    merged, origin = merge_workloads(logs_of(folder))
    starts, lengths = stream["start_requested"].values, stream["original_run_time"].values
    ends = np.where(starts >= 0, starts + lengths, -1)
    predicted = predict_prequential(merged, ends, study.predictor.made(), origin).run_time
    np.testing.assert_array_equal(stream["predicted"], predicted)
    assert whole["original_wait_time_mean"].sel(estimates="predicted").notnull().all()
    assert whole["predictions_on_unfinished"].notnull().any()


def test_rows_are_what_is_different_of_the_platform(folder: Path) -> None:
    rows = {"south": {"policy": "fcfs"}, "north": {"resources": [[1, 5], [2, 9]], "factor": 3}}
    grid = study_of(rows=rows).grid
    assert grid.centre("south").policy == "fcfs"
    assert grid.centre("south").resources == ((1, 6),)
    assert grid.centre("north").resources == ((1, 5), (2, 9))
    assert grid.pool("north", "divide")[0].speed == 3
    assert study_of(rows=rows).checksum() != study_of().checksum()


def test_a_row_changes_the_original_scenario_of_its_centre_alone(folder: Path) -> None:
    def originals(study: SelfSchedulingStudy) -> dict[str, str]:
        return {task.name: task.key for task in study.experiment(SEED).tasks if "on its own" in task.name}

    plain, changed_ = originals(study_of()), originals(study_of(rows={"south": {"policy": "fcfs"}}))
    assert {name.split()[0] for name in plain if plain[name] != changed_[name]} == {"south"}


def test_factors_may_count_on_the_grid_alone(folder: Path) -> None:
    runs = runs_of(["predicted"], [2])
    runs["scenarios"] = [{"name": "grid", "factor": "multiply", "original_factor": "none"}]
    whole = run_study(study_of(**runs), folder, SEED)
    case = "multiply, none at home"
    assert whole["factor"].values.tolist() == [case]
    stream = results.read(made(folder, f"all logs, factor {case}"))
    np.testing.assert_array_equal(stream["original_run_time"], stream["run_time"])
    np.testing.assert_array_equal(
        whole["offered_load"].sel(factor=case), whole["offered_load_by_reading"].sel(reading="none")
    )
    slowed = run_study(study_of(**runs_of(["predicted"], [2])), folder / "slowed", SEED)
    before = [each["original_wait_time_mean"].sel(estimates="requested").item() for each in (whole, slowed)]
    assert before[0] < before[1]
    exact = {"estimates": ["actual"]}
    alike = [
        run_study(study_of(**{**changes, **exact}), folder / name, SEED)["wait_time_by_week"].squeeze()
        for name, changes in (("grid alone", runs), ("everywhere", runs_of(["actual"], [2])))
    ]
    one, other = (each.sel(estimates="actual") for each in alike)
    np.testing.assert_array_equal(one, other)


def test_logs_may_be_merged_by_their_clocks(folder: Path) -> None:
    text = (folder / "south.swf").read_text(encoding="utf-8")
    text = text.replace("UnixStartTime: 800000000", "UnixStartTime: 900000000")
    (folder / "south.swf").write_text(text, encoding="utf-8")
    run_study(study_of(align="clock", **runs_of(["predicted"], [2])), folder, SEED)
    logs = logs_of(folder)
    stream = results.read(made(folder, "all logs, factor multiply"))
    submit = stream["submit_time"].values
    for index, (log, shift) in enumerate(zip(logs, (0, 100_000_000), strict=True)):
        own = stream["centre_index"].values == index
        np.testing.assert_array_equal(submit[own], log.submit_time + shift)
        alone = results.read(made(folder, f"{log.name} on its own, factor multiply"))
        starts = alone["start_requested"].values
        np.testing.assert_array_equal(
            stream["start_requested"].values[own], np.where(starts < 0, -1, starts + shift)
        )


def test_means_may_weigh_centres_or_work(folder: Path) -> None:
    found = {
        weights: run_study(study_of(weights=weights, **runs_of(["requested"], [2])), folder / weights, SEED)
        for weights in ("jobs", "centres", "work", "light")
    }
    at = {"estimates": "requested", "factor": "multiply"}
    number = found["jobs"]["jobs"].sel(factor="multiply")
    for name in ("wait_time_mean", "original_wait_time_mean"):
        mean_of = {weights: whole[name].sel(at).item() for weights, whole in found.items()}
        by_centre = found["jobs"][f"{name}_by_centre"].sel(at).squeeze()
        np.testing.assert_allclose(mean_of["jobs"], (by_centre * number).sum() / number.sum())
        np.testing.assert_allclose(mean_of["centres"], by_centre.mean())
        assert mean_of["work"] not in (mean_of["jobs"], mean_of["centres"])
    loads = found["jobs"]["offered_load"].sel(factor="multiply")
    own = found["jobs"]["wait_time_mean_by_centre"].sel(at).squeeze()[loads.values < 1]
    own_number = number[loads.values < 1]
    light = found["light"]["wait_time_mean"].sel(at).item()
    np.testing.assert_allclose(light, (own * own_number).sum() / own_number.sum())


def test_jobs_at_home_ask_their_own_centre(folder: Path) -> None:
    plan = {"name": "plan", **PLAN, "k": 1, "sampling": "home"}
    changes = {"scenarios": [{"name": "a", "factor": "none"}], "schedulers": [plan], "estimates": ["actual"]}
    whole = run_study(study_of(**changes), folder, SEED)
    # South has one cluster, where its jobs run as in the original scenario; the two of north are no pool
    alone, at_home = (
        whole[f"{name}wait_time_mean_by_centre"].sel(centre="south") for name in ("original_", "")
    )
    assert at_home.sel(estimates="actual").item() == alone.sel(estimates="actual").item()


def test_predictors_may_learn_inside_a_run(folder: Path) -> None:
    study = study_of(**runs_of(["predicted", "retrained"], [1, 2]))
    whole = run_study(study, folder, SEED)
    assert whole["estimates"].values.tolist() == ["predicted", "requested", "actual", "retrained"]
    resources, policies, _ = study.grid.resources("multiply")
    logs = logs_of(folder)
    seed = derived_seed(SEED, "tiny")
    samples = draw_samples(merge_workloads(logs)[0].processors, resources, JScheduler(k=2), seed)
    done = retrained_schedule(
        logs,
        resources,
        policies,
        JScheduler(k=2, predictions="plan"),
        options=study.predictor.made(),
        samples=samples,
    ).schedule
    here = whole.sel(factor="multiply", mode="plan", estimates="retrained", metric="wait", k=2)
    assert float(here["corrections"]) == done.corrections
    assert float(here["makespan"]) == makespan(
        merge_workloads(logs)[0].submit_time, done.start_time, done.start_time + done.run_time
    )
    assert np.isnan(here["predictions_on_unfinished"])
    assert np.isnan(here["original_wait_time_mean"])


def test_requested_times_of_decades_are_cut_and_counted(folder: Path) -> None:
    lines = (folder / "south.swf").read_text(encoding="utf-8").splitlines()
    fields = lines[10].split()
    fields[8] = str(2**31 - 10)
    lines[10] = " ".join(fields)
    (folder / "south.swf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    changes = runs_of(["requested", "retrained"], [2], "multiply", "none")
    whole = run_study(study_of(**changes), folder, SEED)
    assert whole["requested_times_cut"].sel(centre="south").values.tolist() == [1, 0]
    assert whole["requested_times_cut"].sel(centre="north").values.tolist() == [0, 0]
    longest = results.read(made(folder, "all logs, factor multiply"))["requested"].max()
    assert int(longest) == 2**31 // 4 - 2
    assert int(results.read(made(folder, "all logs, factor none"))["requested"].max()) == 2**31 - 10


def test_predictions_are_compared_log_by_log(study: SelfSchedulingStudy, finished: Path) -> None:
    found = results.read(finished / "tiny" / "prediction.nc")
    assert found["workload"].values.tolist() == ["north", "south"]
    log = logs_of(finished)[1]
    predicted = results.read(made(finished, "south on its own, factor multiply"))["predicted"].values
    error = np.abs(predicted - log.run_time).mean()
    mean = found["mean_absolute_error"].sel(workload="south", predictor="classification tree")
    assert float(mean) == pytest.approx(error)


def test_same_sample_serves_every_run(
    study: SelfSchedulingStudy, finished: Path, dataset: xr.Dataset
) -> None:
    """A run with few resources asks the first of those that one with more asks."""
    stream = results.read(made(finished, "all logs, factor none"))
    resources, policies, _ = study.grid.resources("none")
    submitted = Submissions(
        *(stream[name].values for name in ("submit_time", "run_time", "predicted", "processors"))
    )
    seed = derived_seed(SEED, "tiny")
    done = self_schedule(submitted, resources, policies, JScheduler(k=1, predictions="plan"), seed=seed)
    wait = waits(done.start_time, stream)
    here = dataset["wait_time_mean"].sel(
        factor="none", mode="plan", estimates="predicted", metric="wait", k=1
    )
    assert float(here) == pytest.approx(wait.mean())


def waits(start_time: NDArray[np.int64], stream: xr.Dataset) -> NDArray[np.int64]:
    """Waits of the jobs that are measured."""
    wait: NDArray[np.int64] = (start_time - stream["submit_time"].values)[stream["measured"].values == 1]
    return wait


# --- real logs ------------------------------------------------------------------------------------


# --- nodes that fail ------------------------------------------------------------------------------

FAILURES = {"mean_time_between": 60_000, "mean_repair": 4000, "checkpoint_interval": 600}


def failing(**failures: Any) -> SelfSchedulingStudy:
    """A study with the same reading of the CPU factor with and without failures."""
    calm = {"name": "calm", "factor": "none", "schedulers": ["plan three"], "estimates": ["predicted"]}
    return study_of(scenarios=[calm, {**calm, "name": "failing", "failures": {**FAILURES, **failures}}])


def test_processors_fail_alike_in_the_grid_and_in_the_pool_of_their_centre(folder: Path) -> None:
    study = failing()
    alone = study.model_copy(update={"scenarios": study.scenarios[1:]})
    jobs = Workload(
        name="jobs",
        submit_time=np.array([500, 90_500]),
        run_time=np.array([1, 1]),
        requested_time=np.array([1, 1]),
        requested_processors=np.array([1, 1]),
    )
    resources, _ = resources_of(alone, "none", jobs.submit_time - 500, SEED)
    pool, policy = pool_of(alone, "north", "none", jobs, SEED)
    assert policy.name == "easy"
    assert (pool.processors, pool.checkpoint_interval) == (16, 600)
    first, second = (
        {(each.time, each.node, each.kind) for each in resource.events} for resource in resources[:2]
    )
    assert first
    assert first != second
    expected = {(time + 500, node, kind) for time, node, kind in first}
    expected |= {(time + 500, f"node{int(node[4:]) + 8}", kind) for time, node, kind in second}
    assert {(each.time, each.node, each.kind) for each in pool.events} == expected
    calm = study.model_copy(update={"scenarios": study.scenarios[:1]})
    assert not pool_of(calm, "north", "none", jobs, SEED)[0].events


def test_events_of_a_file_are_by_the_clock_of_the_stream(folder: Path) -> None:
    (folder / "events.csv").write_text("time,node,kind,start,end\n100,*,maintenance,200,300\n")
    study = study_of(scenarios=[{"name": "f", "schedulers": ["plan"], "failures": {"events": "events.csv"}}])
    log = Workload(
        name="log",
        submit_time=np.array([500]),
        run_time=np.array([1]),
        requested_time=np.array([1]),
        requested_processors=np.array([1]),
    )
    pool, _ = pool_of(study, "north", "none", log, SEED)
    assert {(each.time, each.start, each.end) for each in pool.events} == {(600, 700, 800)}
    assert {each.node for each in pool.events} == set(pool.node_names)
    (folder / "events.csv").unlink()
    with pytest.raises(ConfigurationError, match=r"scenarios\[f\].*events.csv"):
        study.check_files()


def test_jobs_that_never_end_in_a_run_are_an_error(folder: Path) -> None:
    (folder / "north.swf").write_text(log_text(1, 60, largest=8), encoding="utf-8")
    (folder / "events.csv").write_text("time,node,kind\n0,node2,down\n")
    scenario = {"name": "f", "factor": "none", "failures": {"events": "events.csv"}}
    one = {"name": "one", **PLAN, "k": 1}
    study = study_of(scenarios=[scenario], schedulers=[one], estimates=["requested"], evaluate=False)
    with pytest.raises(GridschedError, match=r"jobs never end.*'f'"):
        run_study(study, folder, SEED)


def test_what_does_not_fail_does_not_depend_on_failures(folder: Path) -> None:
    calm = {
        task.name: task.key
        for task in study_of(scenarios=[{"name": "calm", "factor": "none"}]).experiment(SEED).tasks
    }
    both = {task.name: task.key for task in failing().experiment(SEED).tasks}
    shared = {name for name in both if "failing" not in name and both[name] == calm.get(name)}
    assert {"north on its own, factor none", "all logs, factor none"} <= shared
    other = {task.name: task.key for task in failing().experiment(SEED + 1).tasks}
    changed_ones = {name for name in both if both[name] != other[name]}
    assert "north on its own, factor none, failing" in changed_ones
    assert not changed_ones & {"north on its own, factor none", "all logs, factor none"}


def test_jobs_are_not_lost_where_runs_are_compared_job_by_job(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"requeue: found 'lost'.*'place'"):
        failing(requeue="lost")

"""Studies of the JScheduler: configuration, measures, stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gridsched import presentation, results
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.jscheduler.config import JSchedulerStudy
from gridsched.experiments.kinds.jscheduler.machines import pool_of, resources_of
from gridsched.experiments.kinds.jscheduler.measuring import SlowdownOptions, measured_schedule
from gridsched.experiments.prepare import derived_seed
from gridsched.metrics import jobs as metrics
from gridsched.platform import Platform
from gridsched.prediction import predict_prequential
from gridsched.prediction.prequential import streams
from gridsched.presentation.showing import attributes_of
from gridsched.simulation import simulate
from gridsched.systems.jscheduler.measures import Lessons, unfinished
from gridsched.systems.jscheduler.retraining import retrained_schedule
from gridsched.systems.jscheduler.scheduler import JScheduler, draw_samples
from gridsched.traces import merge_workloads
from gridsched.workloads import Workload
from tests.support.errors import says
from tests.support.studies import changed, log_text, made, message_about, run_study, study_in

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
    "question": "Does the JScheduler help?",
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


def write_inputs(folder: Path) -> Path:
    """Platform and logs of the study."""
    (folder / "platform.yaml").write_text(yaml.safe_dump(PLATFORM), encoding="utf-8")
    (folder / "north.swf").write_text(log_text(1, 260, largest=20), encoding="utf-8")
    (folder / "south.swf").write_text(log_text(2, 240, largest=7), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with platform and logs."""
    monkeypatch.chdir(write_inputs(tmp_path))
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
        ("slowdowns.threshold", 0, ["slowdowns: threshold is 0"]),
        ("schedulers.2.ties", "any", ["[plan three].ties: found 'any'", "'first'"]),
        ("workloads", [], ["workloads: unknown key"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    says(message_about(folder, changed(STUDY, path, value)), *expected)


def runs_of(estimates: list[str], k: list[int], *factors: str) -> dict[str, Any]:
    """Scenarios and schedulers of few runs."""
    return {
        "scenarios": [{"name": "few", "factor": list(factors or ("multiply",))}],
        "schedulers": [{"name": "plan", **PLAN, "k": k}],
        "estimates": estimates,
    }


def study_of(**changes: Any) -> JSchedulerStudy:
    """The study with other values of some keys; the working directory has its inputs."""
    return JSchedulerStudy.model_validate({**STUDY, **changes})


def test_log_must_exist(folder: Path) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    (folder / "south.swf").unlink()
    with pytest.raises(ConfigurationError, match=r"platform.yaml: centres\[south\].file: found 'south.swf'"):
        load_study("study.yaml")


def test_workloads_are_the_logs_of_the_platform(folder: Path) -> None:
    north, south = study_of().all_workloads
    assert (north.name, north.file, south.file) == ("north", "north.swf", "south.swf")
    assert north.window == study_of().window
    assert north.processors == 16 + 6 + 15 + 10
    assert [each.name for each in study_of(logs=["south"]).all_workloads] == ["south"]
    assert study_of(window=None).all_workloads[0].window is None


def test_platform_of_the_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    study = study_of(platform=None)
    assert len(study.grid.resources("none")[0]) == sum(
        number for centre in study.grid.centres for number, _ in centre.resources
    )
    archived = [workload for workload in study.all_workloads if workload.archive is not None]
    assert len(archived) == len(study.centres) > 10
    assert not [centre for centre in study.centres if centre.absent]


def test_a_range_stands_for_its_numbers_and_plain_values_give_the_study_back(folder: Path) -> None:
    study = study_of()
    for same in (study_of(**changed(STUDY, "schedulers.0.k", [1, 2, 3])), study_of(**study.values())):
        assert (same, same.checksum()) == (study, study.checksum())


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
    assert "north on its own, paper" not in changed_ones
    assert "all logs, paper" in changed_ones


def test_a_run_is_made_once(folder: Path) -> None:
    runs = study_of().runs
    assert len(runs) == len(set(runs))
    assert len([run for run in runs if run[0] == "paper"]) == 2 * 2 * 3 + 2 + 1
    assert len([run for run in runs if run[0] == "logged"]) == 12
    assert {run[1] for run in runs} >= {"wait, k 3", "wait, exact, k 5", "queued-jobs, k 3"}


def test_schedulers_that_differ_in_what_labels_leave_out_keep_their_names(folder: Path) -> None:
    two = [
        {"name": name, **PLAN, "k": 2, "ties": ties} for name, ties in (("a", "first"), ("b", "completion"))
    ]
    study = study_of(schedulers=two, scenarios=[{"name": "s", "factor": "none"}])
    assert study.dataset_labels == ["original", "a", "b"]


def test_another_reference_is_compared_and_named_by_its_label_in_the_dataset(folder: Path) -> None:
    study = study_of(reference="plan, metric wait, k 2")
    assert study.reference_label == "wait, k 2"
    compared = [each for each in study.specifications if each.reference]
    assert {each.name for each in compared} == {"ranking", "response-k", "centres"}
    for each in compared:
        assert "wait, k 2" in each.where.get("scheduler", study.dataset_labels)
        assert each.caption.startswith("Relative to 'wait, k 2', ")


def test_original_is_no_name_of_a_scheduler(folder: Path) -> None:
    values = {"schedulers": [{"name": "original", **PLAN, "k": 1}], "scenarios": [{"name": "s"}]}
    assert "stands for the original scenario" in message_about(folder, {**STUDY, **values})


# --- measures of one schedule ---------------------------------------------------------------------


JOBS = st.lists(
    st.tuples(
        st.integers(0, 9000),  # submit time
        st.integers(0, 9000),  # wait
        st.integers(0, 1000),  # run time
        st.integers(0, 3),  # centre
        st.booleans(),  # measured
    ),
    min_size=1,
    max_size=150,
)
LOADS = np.array([0.5, 2.0, 0.9, 1.0])


@given(
    JOBS,
    st.sampled_from(["jobs", "centres", "work", "light"]),
    st.integers(1, 60),
    st.integers(1, 60),
    st.sampled_from(["cluster", "log"]),
)
def test_measures_are_those_of_the_jobs_one_by_one(
    jobs: list[tuple[int, int, int, int, bool]], weights: Any, threshold: int, bounded: int, divisor: Any
) -> None:
    rows = sorted(jobs)
    submit, wait, run, centre = (np.array([row[i] for row in rows]) for i in range(4))
    chosen = np.array([row[4] for row in rows])
    stream = xr.Dataset(
        {
            "submit_time": ("job", submit),
            "run_time": ("job", 3 * run),
            "processors": ("job", 1 + run % 5),
            "centre_index": ("job", centre),
            "measured": ("job", chosen.astype(np.int8)),
            "offered_load": ("centre", LOADS),
        },
        {"centre": list("abcd")},
    )
    options = SlowdownOptions(run_time=divisor, threshold=threshold, bounded_threshold=bounded)
    schedule = xr.Dataset(
        {
            "submit_time": ("job", submit),
            "start_time": ("job", submit + wait),
            "end_time": ("job", submit + wait + run),
            "run_time": ("job", run),
        }
    )
    found = measured_schedule(stream, schedule, xr.Dataset(), weights, options)
    known = 3 * run if divisor == "log" else run
    response = wait + run
    bounds = {"slowdown": threshold, "bounded_slowdown": bounded}
    naive = {"wait_time": wait, "response_time": response} | {
        name: np.maximum(1, response / np.maximum(known, bound)) for name, bound in bounds.items()
    }
    if threshold == 1:
        naive["slowdown"] = response / np.maximum(known, 1)
    own = {
        "jobs": np.ones(len(rows)),
        "centres": np.array(
            [1 / sum(chosen & (centre == c)) if any(chosen & (centre == c)) else 0 for c in centre]
        ),
        "work": (1 + run % 5) * 3.0 * run,
        "light": (LOADS < 1)[centre].astype(float),
    }[weights]
    weight = np.where(chosen, own, 0.0)
    count = found["jobs"]
    for name, each in naive.items():
        means = (found[f"{name}_mean"] * count).sum("replicate") / count.sum("replicate")
        overall = (each * weight).sum() / weight.sum() if weight.any() else np.nan
        np.testing.assert_allclose(means.sel(group=ALL), overall)
        for c, label in enumerate("abcd"):
            here = chosen & (centre == c)
            assert count.sel(group=f"users of {label}").sum() == here.sum()
            if here.any():
                np.testing.assert_allclose(means.sel(group=f"users of {label}"), each[here].mean())
                if name in ("wait_time", "slowdown"):
                    p95 = found[f"{name}_p95"].sel(group=f"users of {label}", replicate=0)
                    np.testing.assert_allclose(p95, np.percentile(each[here], 95))
    np.testing.assert_allclose(count.sel(group=ALL).sum(), chosen.sum() if weight.any() else 0)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else np.nan


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


# --- stages ---------------------------------------------------------------------------------------


def known(dataset: xr.Dataset, measure: str, scheduler: str = "original", **where: Any) -> float:
    """The only value of a measure, over all blocks, of all jobs unless a group is given."""
    chosen = dataset[[measure, "jobs"]].sel({"group": ALL, "scheduler": scheduler, **where})
    value, weight = chosen[measure], chosen["jobs"]
    once = value.notnull().sum("replicate") <= 1
    mean_of_blocks = (value * weight).sum("replicate") / weight.sum("replicate")
    whole = value.sum("replicate", min_count=1).where(once, mean_of_blocks)
    values = whole.values[~np.isnan(whole.values)]
    assert len(values) <= 1
    return float(values[0]) if len(values) else np.nan


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the inputs and of the results of the study, every factor in one chunk."""
    return study_in(write_inputs(tmp_path_factory.mktemp("finished")), study_of, SEED, results="")


@pytest.fixture
def study(finished: Path, monkeypatch: pytest.MonkeyPatch) -> JSchedulerStudy:
    """The study, in the working directory of its inputs."""
    monkeypatch.chdir(finished)
    return study_of()


@pytest.fixture
def dataset(finished: Path) -> xr.Dataset:
    return results.read(finished / "tiny" / "study.nc")


def logs_of(finished: Path) -> list[Workload]:
    paths = [made(finished, f"workload {name}") for name in ("north", "south")]
    return [results.workload_from_dataset(results.read(path))[0] for path in paths]


def test_original_scenario_is_each_log_on_its_own_pool(study: JSchedulerStudy, finished: Path) -> None:
    for log in logs_of(finished):
        alone = results.read(made(finished, f"{log.name} on its own, paper"))
        pool, policy = study.grid.pool(log.name, "multiply")
        run = simulate(log, pool, policy)
        np.testing.assert_array_equal(alone["start_requested"], run["start_time"])
        predicted = predict_prequential(log, run["end_time"].values, study.predictor.made())
        np.testing.assert_array_equal(alone["predicted"], predicted.run_time)
        assert (predicted.trained_at >= 0).any()
        under = simulate(log, pool, policy, estimates=predicted.run_time)
        np.testing.assert_array_equal(alone["start_predicted"], under["start_time"])
        assert alone.attrs["corrections_predicted"] == under.attrs["corrections"]


def test_stream_has_the_jobs_of_all_logs_from_their_start_on(study: JSchedulerStudy, finished: Path) -> None:
    logs = logs_of(finished)
    stream = results.read(made(finished, "all logs, paper"))
    submit = stream["submit_time"].values
    assert (np.diff(submit) >= 0).all()
    for index, log in enumerate(logs):
        own = stream["centre_index"].values == index
        begin = log.submit_time[0]
        assert begin > 0
        np.testing.assert_array_equal(submit[own], log.submit_time - begin)
        np.testing.assert_array_equal(stream["processors"].values[own], log.processors)
        alone = results.read(made(finished, f"{log.name} on its own, paper"))
        starts = alone["start_actual"].values
        np.testing.assert_array_equal(
            stream["start_actual"].values[own], np.where(starts < 0, -1, starts - begin)
        )
        requested = np.where(log.requested_time > 0, log.requested_time, log.run_time)
        np.testing.assert_array_equal(stream["requested"].values[own], np.maximum(requested, 1))


def test_lessons_are_the_windows_of_the_predictor(study: JSchedulerStudy, finished: Path) -> None:
    stream = results.read(made(finished, "all logs, paper"))
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
        (own,) = streams(log, simulate(log, pool, policy)["end_time"].values, options)
        place = np.flatnonzero(origin == index)
        for period in own.periods:
            learned = place[own.history(period, options.window)].tolist()
            expected.append((place[period.jobs].tolist(), learned))
    assert found == expected
    assert len(found) > 2


def test_runs_are_those_of_the_scheduler(study: JSchedulerStudy, finished: Path, dataset: xr.Dataset) -> None:
    logs = logs_of(finished)
    merged, origin = merge_workloads(logs)
    resources, policies, _ = study.grid.resources("multiply")
    jscheduler = JScheduler(metric="slowdown", k=2, predictions="plan")
    platform = Platform(resources).with_policy(policies)
    run = simulate(merged, platform, jscheduler, seed=derived_seed(SEED, "tiny"))
    here = dataset.sel(scenario=["paper"], estimates=["requested"])
    alone = {log.name: simulate(log, *study.grid.pool(log.name, "multiply")) for log in logs}
    fits = np.empty(len(merged), np.bool_)
    before = np.empty(len(merged))
    for index, log in enumerate(logs):
        fits[origin == index] = alone[log.name]["start_time"].values >= 0
        before[origin == index] = metrics.job_metrics(alone[log.name])["wait_time"]
    jobs = fits & (run["start_time"].values >= 0)
    assert 0 < jobs.sum() < len(merged)
    columns, label = metrics.job_metrics(run), "slowdown, k 2"
    for metric in ("wait_time", "response_time", "slowdown", "bounded_slowdown"):
        values = columns[metric]
        assert known(here, f"{metric}_mean", label) == pytest.approx(values[jobs].mean())
        own = values[jobs & (origin == 1)]
        assert known(here, f"{metric}_mean", label, group="users of south") == pytest.approx(own.mean())
    assert known(here, "wait_time_mean") == pytest.approx(before[jobs].mean())
    assert known(here, "slowdown_p95", label, group="users of south") == pytest.approx(
        np.quantile(columns["slowdown"][jobs & (origin == 1)], 0.95)
    )
    assert known(here, "queries", label) == run.attrs["queries"]
    assert known(here, "corrections", label) == run.attrs["corrections"]
    assert known(here, "makespan", label) == metrics.makespan(run)
    for index, name in enumerate(("north", "south")):
        own = origin == index
        group = f"users of {name}"
        assert here["jobs"].sel(scheduler=label, group=group).sum() == jobs[own].sum()
        assert known(here, "rejected", group=group) == (~fits[own]).sum() > 0
        assert known(here, "rejected", label, group=group) == (run["start_time"].values[own] < 0).sum()
    begin, end = merged.submit_time[0], merged.submit_time[-1]
    seconds = np.minimum(run["segment_end"], end) - np.minimum(run["segment_start"], end)
    work = float((seconds * run["segment_processors"]).sum())
    total = work / (float(run["cluster_processors"].sum()) * (end - begin))
    assert known(here, "utilisation", label) == pytest.approx(total)


def test_every_figure_has_numbers_a_drawing_and_a_finding(
    study: JSchedulerStudy, finished: Path, dataset: xr.Dataset
) -> None:
    names = [each.name for each in study.specifications]
    assert names[:3] == ["ranking", "response-k", "estimates"]
    for each in study.specifications:
        numbers = presentation.numbers(each, dataset)
        assert numbers["value"].notna().any(), each.name
        presentation.draw(each, numbers, attributes_of(dataset))
        assert presentation.finding(each, numbers, attributes_of(dataset))
    figures = study.experiment(SEED).figures
    assert {"prediction-quality", "prediction-intervals"} < {figure.name for figure in figures}
    quality = next(figure for figure in figures if figure.name == "prediction-quality")
    evaluated = results.read(finished / "tiny" / "prediction.nc")
    specification = presentation.Specification(**quality.specification)
    table = presentation.numbers(specification, evaluated).set_index(["measure", "predictor"])["value"]
    error = evaluated["mean_absolute_error"]
    ratio = (error / error.sel(predictor="requested time")).mean("workload")
    for method in evaluated["predictor"].values:
        assert table["relative_error", method] == pytest.approx(float(ratio.sel(predictor=method)))
    assert len(study.conventions(dataset)) <= 8


def test_all_logs_may_share_a_history(folder: Path) -> None:
    predictor = {**STUDY["predictor"], "scope": "global"}
    study = study_of(predictor=predictor, **runs_of(["predicted"], [2]))
    whole = run_study(study, folder, SEED)
    stream = results.read(made(folder, "all logs, few-multiply"))
    merged, origin = merge_workloads(logs_of(folder))
    starts, lengths = stream["start_requested"].values, stream["original_run_time"].values
    ends = np.where(starts >= 0, starts + lengths, -1)
    np.testing.assert_array_equal(ends, stream["end_requested"])
    predicted = predict_prequential(merged, ends, study.predictor.made(), origin).run_time
    np.testing.assert_array_equal(stream["predicted"], predicted)
    assert known(whole.sel(estimates=["predicted"]), "wait_time_mean") >= 0
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
    def originals(study: JSchedulerStudy) -> dict[str, str]:
        return {task.name: task.key for task in study.experiment(SEED).tasks if "on its own" in task.name}

    plain, changed_ = originals(study_of()), originals(study_of(rows={"south": {"policy": "fcfs"}}))
    assert {name.split()[0] for name in plain if plain[name] != changed_[name]} == {"south"}


def test_factors_may_count_on_the_grid_alone(folder: Path) -> None:
    runs = runs_of(["predicted"], [2])
    runs["scenarios"] = [{"name": "grid", "factor": "multiply", "original_factor": "none"}]
    whole = run_study(study_of(**runs), folder, SEED)
    assert whole["factor_at_home"].values.tolist() == ["none"]
    stream = results.read(made(folder, "all logs, grid"))
    np.testing.assert_array_equal(stream["original_run_time"], stream["run_time"])
    slowed = run_study(study_of(**runs_of(["predicted"], [2])), folder / "slowed", SEED)
    here, there = (each.sel(estimates=["requested"]) for each in (whole, slowed))
    assert known(here, "wait_time_mean") < known(there, "wait_time_mean")
    assert known(here, "offered_load", group="users of south") < known(
        there, "offered_load", group="users of south"
    )
    exact = {"estimates": ["actual"]}
    one, other = (
        run_study(study_of(**{**changes, **exact}), folder / name, SEED)
        for name, changes in (("grid alone", runs), ("everywhere", runs_of(["actual"], [2])))
    )
    waits = [
        each["wait_time_mean"].sel(scheduler="wait, k 2", estimates="actual").values for each in (one, other)
    ]
    np.testing.assert_array_equal(waits[0], waits[1])


def test_logs_may_be_merged_by_their_clocks(folder: Path) -> None:
    text = (folder / "south.swf").read_text(encoding="utf-8")
    text = text.replace("UnixStartTime: 800000000", "UnixStartTime: 900000000")
    (folder / "south.swf").write_text(text, encoding="utf-8")
    run_study(study_of(align="clock", **runs_of(["predicted"], [2])), folder, SEED)
    logs = logs_of(folder)
    stream = results.read(made(folder, "all logs, few-multiply"))
    submit = stream["submit_time"].values
    for index, (log, shift) in enumerate(zip(logs, (0, 100_000_000), strict=True)):
        own = stream["centre_index"].values == index
        np.testing.assert_array_equal(submit[own], log.submit_time + shift)
        alone = results.read(made(folder, f"{log.name} on its own, few-multiply"))
        starts = alone["start_requested"].values
        np.testing.assert_array_equal(
            stream["start_requested"].values[own], np.where(starts < 0, -1, starts + shift)
        )


def test_jobs_at_home_ask_their_own_centre(folder: Path) -> None:
    plan = {"name": "plan", **PLAN, "k": 1, "sampling": "home"}
    changes = {"scenarios": [{"name": "a", "factor": "none"}], "schedulers": [plan], "estimates": ["actual"]}
    whole = run_study(study_of(**changes), folder, SEED).sel(estimates=["actual"])
    # South has one cluster, where its jobs run as in the original scenario; the two of north are no pool
    alone, at_home = (
        known(whole, "wait_time_mean", label, group="users of south") for label in ("original", "wait, k 1")
    )
    assert at_home == alone


def test_predictors_may_learn_inside_a_run(folder: Path) -> None:
    study = study_of(**runs_of(["predicted", "retrained"], [1, 2]))
    whole = run_study(study, folder, SEED)
    assert set(whole["estimates"].values.tolist()) == {"predicted", "requested", "actual", "retrained"}
    resources, policies, _ = study.grid.resources("multiply")
    logs = logs_of(folder)
    merged = merge_workloads(logs)[0]
    samples = draw_samples(merged.processors, resources, JScheduler(k=2), derived_seed(SEED, "tiny"))
    done = retrained_schedule(
        logs,
        resources,
        policies,
        JScheduler(k=2, predictions="plan"),
        options=study.predictor.made(),
        samples=samples,
    )
    here = whole.sel(estimates=["retrained"])
    assert known(here, "corrections", "wait, k 2") == done.counters["corrections"]
    stream = results.read(made(folder, "all logs, few-multiply"))
    waits = (done.start_time - merged.submit_time)[stream["measured"].values == 1]
    assert known(here, "wait_time_mean", "wait, k 2") == pytest.approx(waits.mean())
    assert np.isnan(known(here, "predictions_on_unfinished", "wait, k 2"))
    assert np.isnan(known(here, "wait_time_mean"))


def test_requested_times_of_decades_are_cut_and_counted(folder: Path) -> None:
    lines = (folder / "south.swf").read_text(encoding="utf-8").splitlines()
    fields = lines[10].split()
    fields[8] = str(2**31 - 10)
    lines[10] = " ".join(fields)
    (folder / "south.swf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    changes = runs_of(["requested", "retrained"], [2], "multiply", "none")
    whole = run_study(study_of(**changes), folder, SEED)
    for scenario, cut in (("few-multiply", 1), ("few-none", 0)):
        here = whole.sel(scenario=[scenario])
        assert known(here, "requested_times_cut", group="users of south") == cut
        assert known(here, "requested_times_cut", group="users of north") == 0
    longest = results.read(made(folder, "all logs, few-multiply"))["requested"].max()
    assert int(longest) == 2**31 // 4 - 2
    assert int(results.read(made(folder, "all logs, few-none"))["requested"].max()) == 2**31 - 10


def test_a_log_of_one_instant_has_no_offered_load(folder: Path) -> None:
    lines = [f"{number} 1000 1 60 2 -1 -1 2 90 -1 1 1 1 1 1 1 -1 -1" for number in range(1, 40)]
    (folder / "north.swf").write_text("\n".join(["; UnixStartTime: 800000000", *lines, ""]), encoding="utf-8")
    whole = run_study(study_of(window=None, **runs_of(["requested"], [1])), folder, SEED, shown=True)
    load = whole["offered_load"].max(["scenario", "scheduler", "estimates", "replicate"])
    known = load.sel(group=["users of north", "users of south"]).notnull().values
    assert known.tolist() == [False, True]
    assert (folder / "tiny" / "figures" / "offered-load.svg").is_file()


# --- nodes that fail ------------------------------------------------------------------------------

FAILURES = {"mean_time_between": 60_000, "mean_repair": 4000, "checkpoint_interval": 600}


def failing(**failures: Any) -> JSchedulerStudy:
    """A study with the same reading of the CPU factor with and without failures."""
    calm = {"name": "calm", "factor": "none", "schedulers": ["plan three"], "estimates": ["predicted"]}
    return study_of(scenarios=[calm, {**calm, "name": "failing", "failures": {**FAILURES, **failures}}])


def test_processors_fail_alike_in_the_grid_and_in_the_pool_of_their_centre(folder: Path) -> None:
    study = failing()
    failures = study.scenarios[1].failures
    jobs = Workload(
        name="jobs",
        submit_time=np.array([500, 90_500]),
        run_time=np.array([1, 1]),
        requested_time=np.array([1, 1]),
        requested_processors=np.array([1, 1]),
    )
    resources, _ = resources_of(study.grid, "none", jobs.submit_time - 500, failures, SEED)
    pool, policy = pool_of(study.grid, "north", "none", jobs, failures, SEED)
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
    assert not pool_of(study.grid, "north", "none", jobs, None, SEED)[0].events


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
    pool, _ = pool_of(study.grid, "north", "none", log, study.scenarios[0].failures, SEED)
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
    assert {"north on its own, calm", "all logs, calm"} <= shared
    other = {task.name: task.key for task in failing().experiment(SEED + 1).tasks}
    changed_ones = {name for name in both if both[name] != other[name]}
    assert "north on its own, failing" in changed_ones
    assert not changed_ones & {"north on its own, calm", "all logs, calm"}


def test_jobs_are_not_lost_where_runs_are_compared_job_by_job(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"requeue: found 'lost'.*'place'"):
        failing(requeue="lost")

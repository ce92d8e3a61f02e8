"""Studies of a multicluster: configuration, stages, the worked example, and what chunks must not change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml

from gridsched import presentation, results
from gridsched.experiments import files
from gridsched.experiments.collection import ALL, grouped
from gridsched.experiments.config import load_config, study_from
from gridsched.experiments.kinds.multicluster.config import MulticlusterStudy
from gridsched.experiments.kinds.multicluster.drawing import schedule_gantt
from gridsched.experiments.kinds.multicluster.example import handed_over, worked_example
from gridsched.experiments.kinds.multicluster.levels import calibrate_rate
from gridsched.experiments.kinds.multicluster.stages import (
    calibrate_level,
    queue_growth,
)
from gridsched.experiments.prepare import derived_seed
from gridsched.platform import Cluster
from gridsched.presentation.page import build_report
from gridsched.simulation import simulate
from gridsched.systems.multicluster.measures import summarise_multicluster
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.systems.multicluster.titan import Titan, Weights
from tests.presentation.test_page import NASTY
from tests.support.fields import assert_fields
from tests.support.studies import changed, made, message_about, read_page, run_study
from tests.systems.multicluster.test_muscle import PAPER, RUN_TIMES, SIZES

LOG = """\
; MaxProcs: 64
; UnixStartTime: 0
; TimeZoneString: America/Los_Angeles
; Acknowledge: <img src=x onerror=alert(2)> of "Växjö"
1 10 5 900 4 -1 -1 4 2000 -1 1 1 1 -1 1 -1 -1 -1
2 20 0 500 8 -1 -1 8 600 -1 1 1 1 -1 1 -1 -1 -1
3 31 0 300 2 -1 -1 2 -1 -1 1 1 1 -1 1 -1 -1 -1
4 40 7 100 2 -1 -1 2 300 -1 1 1 1 -1 1 -1 -1 -1
5 50 7 100 9 -1 -1 9 300 -1 1 1 1 -1 1 -1 -1 -1
"""

QUICK = {"population": 6, "generations": 5, "window": 2}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "multicluster",
    "title": NASTY.replace("\n", " "),
    "description": NASTY,
    "replicates": 3,
    "worked_example": True,
    "schedulers": [
        {"name": "muscle", "scheduler": "muscle", "titan": QUICK},
        {"name": "dll+seed", "scheduler": "dll", "local": "seed"},
        {"name": "wrand", "scheduler": "wrand", "titan": QUICK},
        {"name": "muscle, no seed", "scheduler": "muscle", "seeding": "none", "titan": QUICK},
    ],
    "common": {
        "clusters": [{"name": "C1", "processors": 8}, {"name": "C2", "processors": 5, "speed": 1.3}],
        "schedulers": ["muscle", "wrand"],
        "parameters": {"weights": {"over_deadline": 8}},
        "jobs": {"count": 60, "load": 0.8, "largest": 5, "unit": 10},
    },
    "scenarios": [
        {"name": "plain"},
        {"name": "level", "jobs": {"load": None, "level": 3}},
        {
            "name": "harder",
            "clusters": [
                {"name": "C1", "processors": 8},
                {"name": "C3", "processors": 9},
            ],
            "estimates": [{"deviation": 0.5}],
            "jobs": {"at_clusters": 0.5, "sizes": "log"},
            "parameters": {"weights": [{"idle": 4}, {"over_deadline": 8}], "announcement_delay": 30},
            "changes": [[200, "C3", 2]],
            "schedulers": ["muscle", "dll+seed", "muscle, no seed"],
        },
        {
            "name": "log",
            "stream": {"name": "own", "file": "own.swf"},
            "jobs": {"load": None, "speed_up": 2.0},
            "classes": [{"name": "gold", "high": 1}, {"name": "silver", "low": 1, "share": 3}],
        },
    ],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the log of the study."""
    (tmp_path / "own.swf").write_text(LOG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("scenarios.1.name", "Plain", ["would be one file where case does not count"]),
        ("scenarios", [], ["scenarios: found []; write at least 1"]),
        ("common.clusters", [], ["scenarios[plain].clusters: found []; write at least 1"]),
        ("common.clusters.1.name", "C1", ["scenarios[plain].clusters: 'C1' is there twice"]),
        ("common.clusters.0.processors", 0, ["clusters[C1].processors: found 0"]),
        ("common.clusters.0.processors", None, ["clusters[C1]: processors: missing"]),
        ("common.clusters.0.processors_per_node", 3, ["clusters[C1]: processors: 8 are not whole nodes"]),
        ("common.jobs.largest", 9, ["jobs.largest: 9, but the largest cluster has 8 processors"]),
        ("common.jobs.load", None, ["give one of jobs.level, jobs.load, stream (found none)"]),
        ("scenarios.1.jobs.level", 0, ["scenarios[level].jobs.level: found 0; input should be greater"]),
        ("scenarios.1.jobs.load", 0.5, ["give one of jobs.level, jobs.load, stream (found jobs.level, jobs"]),
        (
            "common.jobs.run_time",
            {"shape": 1.0, "low": 5.0, "high": 1.0},
            ["high is 1.0; it must be above 5"],
        ),
        ("common.jobs.smallest", 6, ["scenarios[plain].jobs: sizes from 6 to 5"]),
        ("common.parameters", {"weights": {"over_deadline": 0, "makespan": 0, "idle": 0}}, ["all are 0"]),
        (
            "common.parameters",
            {"end": "any"},
            ["[plain].parameters.end: unknown key; did you mean ends"],
        ),
        ("common.parameters", {"ends": "some"}, ["scenarios[plain].parameters: muscle: ends: "]),
        ("scenarios.2.parameters.weights", [{}], ["[harder].parameters: muscle: 1 weights for 2 clusters"]),
        ("scenarios.2.changes", [[200, "C2", 2]], ["changes: found 'C2'; known are C1, C3"]),
        (
            "scenarios.2.schedulers.1",
            "dll",
            ["scenarios[harder].schedulers: found 'dll'; known are muscle, dll+seed"],
        ),
        ("scenarios.2.schedulers", ["dll+seed"], ["scenarios[harder].schedulers: muscle is missing"]),
        ("scenarios.3.classes.0.low", 3.0, ["high is 1.0"]),
        ("scenarios.3.classes.1.name", "gold", ["classes: 'gold' is there twice"]),
        (
            "scenarios.3.stream",
            {"name": "x", "synthetic": {"jobs": 3}},
            ["only a log (archive or file) can be used here"],
        ),
        ("scenarios.3.stream.file", "other.swf", ["scenarios[log].stream.file: found 'other.swf'; there is"]),
        (
            "schedulers.1.local",
            "sjff",
            ["schedulers[dll+seed]: local is 'sjff'", "use one of titan, seed, policy, fcfs"],
        ),
        (
            "schedulers.1",
            {"name": "dll+seed", "scheduler": "local"},
            ["schedulers: 'dll+seed' is none of a multicluster"],
        ),
        ("schedulers.1.name", "muscle", ["schedulers: 'muscle' is there twice"]),
        ("schedulers.2.seeding", "muscle", ["seeding is 'muscle', but dispatcher is 'wrand'"]),
        ("schedulers.0.titan.population", 1, ["schedulers[muscle].titan: titan: population is 1"]),
        ("axis", "level", ["scenarios[plain].jobs.level: missing, but the axis is level"]),
        ("reference", "easy", ["reference: found 'easy'; known are muscle, dll+seed"]),
        ("replicates", 0, ["replicates: found 0"]),
        ("common.job", {}, ["scenarios[plain].job: unknown key; did you mean jobs?"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    message = message_about(folder, changed(STUDY, path, value))
    assert not [part for part in expected if part not in message], message


def test_quick_look_has_fewer_replicates(folder: Path) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    study = load_config({"studies": ["study.yaml"], "replicates": 2})[1]["tiny"]
    assert isinstance(study, MulticlusterStudy)
    assert study.replicates == 2


def test_points_have_what_is_common_key_by_key(study: MulticlusterStudy) -> None:
    level, harder = study.scenario("level"), study.scenario("harder")
    assert (level.jobs.count, level.jobs.level, level.jobs.load) == (60, 3, None)
    assert study.made(level, "muscle").weights == Weights(over_deadline=8)
    assert study.made(harder, "muscle").weights == (Weights(idle=4), Weights(over_deadline=8))
    assert [member.name for member in harder.clusters] == ["C1", "C3"]


def test_a_study_survives_being_handed_on(study: MulticlusterStudy) -> None:
    again = study_from(json.loads(json.dumps(study.model_dump(mode="json"))))
    assert again == study
    assert again.checksum() == study.checksum()


def keys(study: MulticlusterStudy) -> dict[str, str]:
    """Keys of the tasks of a study by name."""
    return {task.name: task.key for task in study.experiment(5).tasks}


def test_runs_of_a_point_depend_on_nothing_else(study: MulticlusterStudy) -> None:
    other = MulticlusterStudy.model_validate(
        changed(
            STUDY, "scenarios", [STUDY["scenarios"][0], {**STUDY["scenarios"][1], "classes": [{"high": 2}]}]
        )
    )
    ours, theirs = keys(study), keys(other)
    assert ours["plain, muscle, replicate 1"] == theirs["plain, muscle, replicate 1"]
    assert ours["level, muscle, replicate 1"] != theirs["level, muscle, replicate 1"]


def test_a_rate_is_shared_by_points_that_differ_in_weights_and_deadlines(study: MulticlusterStudy) -> None:
    points = changed(STUDY, "scenarios.1.classes", [{"high": 1}])
    points["common"]["parameters"] = {"weights": {"idle": 9}}
    others = {"count": 61, "level_of": "dll", "level_counts": "waiting"}
    studies = [
        STUDY,
        points,
        *(changed(STUDY, f"scenarios.1.jobs.{key}", each) for key, each in others.items()),
    ]
    tasks = [MulticlusterStudy.model_validate(each).experiment(5).tasks for each in studies]
    rates = [next(task.key for task in each if task.study == "rates") for each in tasks]
    assert rates[0] == rates[1]
    assert len(set(rates)) == 4
    assert study.scenario("plain").calibration("muscle") is None


def test_clusters_have_the_nodes_that_are_configured() -> None:
    own: dict[str, Any] = {"name": "C1", "processors": 8, "processors_per_node": 4, "node_exclusive": True}
    study = MulticlusterStudy.model_validate(changed(STUDY, "common.clusters.0", own))
    level = study.scenario("level")
    assert level.platform[0] == level.calibration("muscle").platform[0] == Cluster(**own)


def test_replicates_of_a_log_are_named_after_what_differs(folder: Path) -> None:
    log = changed(STUDY, "scenarios.3.schedulers", ["muscle"])["scenarios"][3]
    quick = {
        **STUDY,
        "schedulers": STUDY["schedulers"][:1],
        "worked_example": False,
        "common": {**STUDY["common"], "schedulers": ["muscle"]},
        "replicates": 2,
    }
    varied = [log, {**log, "name": "shaken", "shaking": {"replicates": 2, "seconds": 3}}]
    study = MulticlusterStudy.model_validate({**quick, "scenarios": varied})
    dataset = run_study(study, folder / "results", 1)
    assert dataset["replicates_are"].values.tolist() == ["draws", "shaken logs"]
    assert study.conventions(dataset)[:2] == [
        "log: the log as it is, whose deadlines are drawn 2 times, the same for all schedulers.",
        "shaken: 2 shaken logs with deadlines that are drawn, the same for all schedulers.",
    ]


def test_nothing_is_merged_where_values_are_broken() -> None:
    broken: list[Any] = [None, [], {}, {"common": 3}, {"scenarios": 3}, {"scenarios": [3]}]
    for values in broken:
        assert MulticlusterStudy.completed(values) == values


def test_parameters_of_a_point_hold_for_all_schedulers() -> None:
    values = changed(STUDY, "scenarios.0.parameters", {"ends": "any", "threshold": 7})
    study = MulticlusterStudy.model_validate(values)
    plain = study.scenario("plain")
    expected = Multicluster(titan=Titan(**QUICK), ends="any", threshold=7, weights=Weights(over_deadline=8))
    assert study.made(plain, "muscle") == expected
    assert study.made(plain, "wrand") == replace(expected, dispatcher="wrand", seeding="arrival")


# --- stages ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study() -> MulticlusterStudy:
    return MulticlusterStudy.model_validate(STUDY)


@pytest.fixture(scope="module")
def finished(study: MulticlusterStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the results of the study."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "own.swf").write_text(LOG, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_study(study, folder / "results", 5, shown=True)
    return folder / "results" / "tiny"


def test_measures_are_those_of_a_simulation(study: MulticlusterStudy, finished: Path) -> None:
    dataset = results.read(finished / "study.nc")
    drawn = results.read(made(finished, "jobs of plain, replicate 1"))
    workload, _ = results.workload_from_dataset(drawn)
    point = study.scenario("plain")
    policy = Multicluster(titan=Titan(**QUICK), weights=Weights(over_deadline=8))
    assert policy == study.made(point, "muscle")
    run = simulate(workload, point.platform, policy, seed=int(drawn["policy_seed"]), times="unit")
    expected = grouped(summarise_multicluster(run))
    own = dataset.sel(scenario="plain", scheduler="muscle", replicate=1, estimates="requested")
    for name in expected.data_vars:
        for group in ("all jobs", "cluster C1", "cluster C2"):
            value = expected[name].sel(group=group)
            if np.isfinite(value):
                assert float(own[name].sel(group=group)) == pytest.approx(float(value)), (name, group)
    assert float(own["jobs"].sel(group=ALL)) == 60
    assert float(own["queue_growth"].sel(group=ALL)) == queue_growth(run)


def test_jobs_are_as_the_points_say(finished: Path) -> None:
    plain, level, harder, log = (
        xr.concat(
            [results.read(made(finished, f"jobs of {name}, replicate {number}")) for number in range(3)],
            dim="replicate",
            combine_attrs="override",
        )
        for name in ("plain", "level", "harder", "log")
    )
    assert float(plain["rate"][0]) == pytest.approx(0.8 * 14.5 / (15.77 * 3), rel=0.01)
    assert abs(float(plain["offered_load"].mean()) - 0.8) < 0.3
    # The same draws, at another rate
    assert np.array_equal(plain["run_time"], level["run_time"])
    assert np.array_equal(plain["run_time"], harder["run_time"])
    ratio = level["submit_time"] / plain["submit_time"].where(plain["submit_time"] > 100)
    assert float(ratio.max() - ratio.min()) < 0.02 * float(ratio.mean())
    assert (plain["home"] == -1).all()
    assert 10 < int((harder["home"].sel(replicate=0) >= 0).sum()) < 50
    assert not np.array_equal(harder["requested_time"], harder["run_time"])
    assert log["submit_time"].sel(replicate=0).values.tolist() == [0, 5, 10, 15]
    assert log["requested_time"].sel(replicate=1).values.tolist()[:2] == [2000, 600]
    assert json.loads(log.attrs["left_out"]) == {"larger than the machine": 1}
    assert set(log["service_class"].values.ravel().tolist()) == {0, 1}
    assert (log["deadline"] >= log["submit_time"] + log["run_time"]).all()


def test_a_level_is_met_with_two_replicates(finished: Path) -> None:
    dataset = results.read(finished / "study.nc").sel(scenario="level", scheduler="muscle", group=ALL)
    dataset = dataset.isel(replicate=0, estimates=0)
    (rate,) = finished.parent.glob("rates/prepared/*.nc")
    assert_fields(
        dataset, rate=float(results.read(rate)["rate"]), calibrated_queue=float(results.read(rate)["queue"])
    )
    assert 1 < float(dataset["calibrated_queue"]) < 9


def test_a_level_can_be_that_of_another_scheme(tmp_path: Path) -> None:
    """The rate is the one at which DLL itself collects so many jobs."""
    rival = changed(STUDY, "scenarios.1.jobs.level_of", "dll")
    point = MulticlusterStudy.model_validate(rival).scenario("level")
    calibration = point.calibration("muscle")
    assert calibration is not None
    calibrate_level(calibration, 5, tmp_path / "rate.nc")
    found = results.read(tmp_path / "rate.nc")
    seeds = [derived_seed(5, f"multicluster\n{replicate}") for replicate in range(2)]
    own = calibrate_rate(
        3,
        point.jobs.made(),
        point.platform,
        jobs=60,
        seeds=seeds,
        scheduler=Multicluster(dispatcher="dll"),
    )
    assert (float(found["rate"]), float(found["queue"])) == own


def test_each_scheme_can_meet_a_level_itself(tmp_path: Path) -> None:
    """Jobs are those of a study in which one scheme after the other meets the level."""
    values = changed(
        STUDY, "scenarios", [{**STUDY["scenarios"][1], "jobs": {"level": 3, "level_of": "each"}}]
    )
    values |= {"schedulers": values["schedulers"][:3], "replicates": 2}
    values["common"]["jobs"]["load"] = None
    for point in values["scenarios"]:
        point["schedulers"] = ["muscle", "dll+seed", "wrand"]
    whole = run_study(MulticlusterStudy.model_validate(values), tmp_path / "each", 5)
    for scheme, name in (("muscle", "muscle"), ("dll+seed", "dll"), ("wrand", "wrand")):
        values["scenarios"][0]["jobs"] = {"level": 3, "level_of": name}
        alone = run_study(MulticlusterStudy.model_validate(values), tmp_path / name, 5)
        for measure in ("mcp_mean", "queue_mean", "makespan"):
            mine, theirs = (each[measure].sel(scheduler=scheme, group=ALL).values for each in (whole, alone))
            np.testing.assert_array_equal(mine, theirs)
        rates = [each["rate"].sel(scheduler=scheme, group=ALL).values.tolist() for each in (whole, alone)]
        assert rates[0] == rates[1]


def test_a_level_can_be_a_batch(tmp_path: Path) -> None:
    """Every round has as many jobs and begins on idle clusters; whose level it is does not matter."""
    values = changed(STUDY, "scenarios", [{**STUDY["scenarios"][1], "jobs": {"level": 20}}])
    values |= {"replicates": 2}
    values["common"]["jobs"] |= {"load": None, "level_counts": "batch"}
    study = MulticlusterStudy.model_validate(values)
    names = [task.name for task in study.experiment(5).tasks]
    assert not any("rate of arrivals" in name for name in names)
    values["common"]["jobs"]["level_of"] = "each"
    each = MulticlusterStudy.model_validate(values)
    assert keys(each).items() == keys(study).items()
    whole = run_study(study, tmp_path, 5)
    met = whole.sel(scheduler=["muscle", "wrand"], group=ALL)
    assert (met["rounds"] == 3).all()
    assert np.isnan(whole["rate"]).all()
    assert (met["mcp_mean"] > 0).all()
    with pytest.raises(ValueError, match=r"level: 2\.5, but a batch has a whole number of jobs"):
        MulticlusterStudy.model_validate(changed(values, "scenarios.0.jobs.level", 2.5))


def test_absent_runs_and_clusters_are_unknown(finished: Path) -> None:
    whole = results.read(finished / "study.nc")
    dataset = whole.sel(estimates="requested")
    harder = whole.sel(scenario="harder", estimates="actual, errors with deviation 0.5")
    mcp = dataset["mcp_mean"].sel(group=ALL)
    assert mcp.sel(scenario="harder").isnull().all()
    assert harder["mcp_mean"].sel(group=ALL, scheduler="wrand").isnull().all()
    assert mcp.sel(scenario="plain", scheduler="muscle, no seed").isnull().all()
    assert harder["mcp_mean"].sel(group=ALL, scheduler="muscle, no seed").notnull().all()
    assert harder["cp_mean"].sel(group="cluster C2").isnull().all()
    sizes = harder["cluster_processors"].sel(scheduler="muscle").isel(replicate=0)
    assert sizes.sel(group=["cluster C1", "cluster C3"]).values.tolist() == [8, 9]
    late = dataset["late"].sel(scheduler="muscle", group="class silver")
    assert late.sel(scenario="log").notnull().any()
    assert late.sel(scenario="plain").isnull().all()


def test_growth_compares_the_halves_of_the_submissions() -> None:
    def growth(*handed_over: int) -> float:
        columns = {"submit_time": ("job", [0, 10, 60, 100]), "job_round": ("job", [0, 1, 2, 3])}
        return queue_growth(xr.Dataset({**columns, "round_time": ("round", [*handed_over])}))

    # First half: 10 s and 10 s of waiting for the round; second half: 40 s
    assert growth(10, 20, 100, 100) == pytest.approx(2.0)
    # A job that is collected over the middle counts in both
    assert growth(10, 80, 60, 100) == pytest.approx(30 / 50)
    assert np.isnan(growth(0, 10, 70, 100))


def test_table_of_runs_names_every_run_and_its_dataset(finished: Path) -> None:
    runs = pd.read_csv(finished / "runs.csv")
    assert len(runs) == 3 * (2 + 2 + 3 + 2)
    assert runs["run"].is_unique
    assert all((finished.parent / dataset).is_file() for dataset in runs["dataset"])


# --- the worked example ---------------------------------------------------------------------------


def test_the_example_is_that_of_the_paper() -> None:
    example = worked_example()
    assert_fields(
        example,
        processors=SIZES,
        run_time=RUN_TIMES,
        cluster_processors=[cluster.processors for cluster in PAPER],
        compositions=[
            "J2; J5",
            "J1; J5, J2; J6",
            "J2, J1; J4; J6, J5",
            "J3; J4, J2; J6, J1",
            "J3, J2; J4, J1",
            "J3, J1; J6, J4, J2",
        ],
        row_code=[205, 105206, 2104065, 3042061, 32041, 310642],
        seed_start_time=[0, 0, 0, 0, 4, 2],
        seed_holes=[0, 0],
        seed_makespan=[6, 6],
    )
    assert (example["comprehensive_performance"] <= example["seed_comprehensive_performance"]).all()


def test_the_example_is_drawn_as_it_is_handed_over() -> None:
    _, blocks = schedule_gantt(handed_over(worked_example()))
    columns = ["job_number", "cluster", "first_processor", "start_time", "end_time"]
    found = blocks[columns].to_numpy().tolist()
    assert [5, "C1", 3, 4, 6] in found
    assert [6, "C2", 4, 2, 6] in found


# --- figures and report ---------------------------------------------------------------------------


def test_report_shows_a_multicluster_and_takes_text_literally(
    study: MulticlusterStudy, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.parent.parent)
    target = finished.parent / "report.html"
    build_report([study], target)
    page = read_page(target)
    assert not page.open
    assert page.foreign == []
    assert "onerror" not in {name for _, attributes in page.tags for name in attributes}
    for text in ("muscle, no seed", "Växjö", "1 larger than the machine", "TITAN", "drawn 3 times"):
        assert text in page.words, text


@pytest.mark.parametrize("axis", ["level", "deadlines", "clusters", "none"])
def test_figures_follow_the_axis(study: MulticlusterStudy, finished: Path, axis: str) -> None:
    dataset = results.read(finished / "study.nc")
    varied = study.model_copy(update={"axis": axis})
    names = [each.name for each in varied.specifications]
    assert ("response" in names) == (axis != "none")
    ranking = presentation.numbers(varied.specifications[0], dataset)
    own = ranking[(ranking["scenario"] == "plain") & (ranking["measure"] == "mcp_mean")]
    assert set(own["scheduler"]) == {"muscle", "wrand"}
    values = dataset["mcp_mean"].sel(scenario="plain", group=ALL).mean("replicate").sel(estimates="requested")
    ratio = float(values.sel(scheduler="wrand") / values.sel(scheduler="muscle"))
    assert own.set_index("scheduler").loc["wrand", "ratio"] == pytest.approx(ratio)


def test_sidecars_stand_beside_all_datasets(finished: Path) -> None:
    for dataset in finished.rglob("*.nc"):
        assert files.sidecar(dataset).is_file()

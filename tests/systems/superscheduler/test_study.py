"""Studies of grids: configuration, stages, and what must not depend on how runs are divided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gridsched import results
from gridsched.errors import ConfigurationError
from gridsched.experiments import files
from gridsched.experiments.config import load_config, load_study
from gridsched.platform import Cluster, Platform
from gridsched.presentation.page import build_report
from gridsched.simulation import simulate
from gridsched.systems.superscheduler.study.config import GridStudy
from gridsched.workloads import Workload
from tests.presentation.test_page import NASTY
from tests.support.studies import changed, made, message_about, read_page, run_study

LOG = """\
; MaxProcs: 64
; UnixStartTime: 0
; TimeZoneString: America/Los_Angeles
; Acknowledge: <img src=x onerror=alert(2)> of "Växjö"
1 0 5 900 40 -1 -1 40 2000 -1 1 1 1 -1 1 -1 -1 -1
2 10 0 500 64 -1 -1 64 600 -1 1 1 1 -1 1 -1 -1 -1
3 20 0 300 8 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1
4 30 7 100 2 -1 -1 2 300 -1 1 1 1 -1 0 -1 -1 -1
5 40 7 100 99 -1 -1 99 300 -1 1 1 1 -1 1 -1 -1 -1
"""

M4 = {"name": "M4", "synthetic": {"machine": "M4", "jobs": 40}}
M5 = {"name": "M5", "synthetic": {"machine": "M5", "jobs": 60, "sizes": {"exponent": 2}}}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "grid",
    "title": NASTY.replace("\n", " "),
    "description": NASTY,
    "scenarios": [
        {"name": "drawn", "clusters": [M4, M5]},
        {
            "name": "with-a-log",
            "estimates": ["actual"],
            "clusters": [
                M4,
                {
                    "name": "own",
                    "file": "own.swf",
                    "leave_out_queue": [0],
                    "processors_per_node": 8,
                    "node_exclusive": True,
                    "speed": 500,
                },
            ],
        },
    ],
    "schedulers": ["local", "s-i", {"name": "r-i, often", "scheduler": "r-i", "sigma": 60}, "ideal-srpt"],
    "policies": ["easy", "sjf"],
    "replicates": 3,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the log of the study."""
    (tmp_path / "own.swf").write_text(LOG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("scenarios.0.clusters.1.name", "M4", ["scenarios[drawn]: clusters: 'M4' is there twice"]),
        ("scenarios.1.name", "Drawn", ["would be one file where case does not count"]),
        ("scenarios.0.clusters", [], ["scenarios[drawn].clusters: found []; write at least 1"]),
        ("scenarios.1.clusters.1.speed", None, ["own has no speed", "clock speed in MHz"]),
        ("scenarios.0.estimates", ["predicted"], ["scenarios[drawn].estimates[item 1]: found 'predicted'"]),
        (
            "schedulers.1",
            "si",
            ["schedulers[item 2]: found 'si'; unknown scheduler; did you mean", "ideal-srpt"],
        ),
        ("schedulers.1", "local", ["schedulers: 'local' is there twice"]),
        ("schedulers.2.sigma", 0, ["schedulers[r-i, often]: sigma is 0"]),
        ("schedulers.2.delta", 0, ["schedulers[r-i, often]: delta is 0"]),
        ("schedulers.2.tau", 3, ["schedulers[r-i, often].tau: unknown key"]),
        ("schedulers.2.scheduler", "ideal-srpt", ["schedulers[r-i, often].sigma: unknown key"]),
        ("schedulers.2.partners", {"M4": ["M9"]}, ["scenario drawn has no cluster 'M9'; known are M4, M5"]),
        ("reference", "central", ["reference: found 'central'", "known are local, s-i, r-i, often"]),
        ("replicates", 0, ["replicates: found 0"]),
        ("policies", ["easy", "best"], ["policies[item 2]: found 'best'"]),
        ("schedules", "some", ["schedules: found 'some'", "'first', 'all' or 'none'"]),
        ("workloads", [], ["workloads: unknown key"]),
        ("scenarios.0.estimates", ["requested", "actual"], ["scenarios[drawn].estimates: give one"]),
        ("scenarios.0.schedulers", ["s-j"], ["scenarios[drawn].schedulers: found 's-j'; did you mean s-i"]),
        ("scenarios.0.clusters.0.synthetic.sizes", {"exponent": 1, "utilisation": 0.5}, ["give one of them"]),
        (
            "scenarios.0.clusters.0.synthetic.sizes",
            {"weighting": "uniform", "utilisation": 0.5},
            ["'uniform' has nothing to adjust"],
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_mistake_in_a_study(folder: Path, path: str, value: Any, expected: list[str]) -> None:
    message = message_about(folder, changed(STUDY, path, value))
    for part in expected:
        assert part in message


def test_log_of_a_machine_must_exist(folder: Path) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    load_study("study.yaml")
    (folder / "own.swf").unlink()
    with pytest.raises(
        ConfigurationError,
        match=r"scenarios\[with-a-log\].clusters\[own\].file: found 'own.swf'; there is no such",
    ):
        load_study("study.yaml")


def test_quick_look_has_fewer_replicates(folder: Path) -> None:
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")

    def replicates(**config: int) -> int:
        study = load_config({"studies": ["study.yaml"], **config})[1]["tiny"]
        assert isinstance(study, GridStudy)
        return study.replicates

    assert replicates() == 3
    assert replicates(replicates=2) == 2
    assert replicates(replicates=9) == 3


# --- stages ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study() -> GridStudy:
    return GridStudy.model_validate(STUDY)


@pytest.fixture(scope="module")
def finished(study: GridStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the results of the study."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "own.swf").write_text(LOG, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_study(study, folder / "results", 5, shown=True)
    return folder / "results" / "tiny"


def grid(finished: Path, scenario: str, replicate: int) -> list[tuple[Workload, Cluster]]:
    """Machines of a scenario with their workloads."""
    dataset = results.read(made(finished, f"{scenario}, replicate {replicate}"))
    return results.grids_from_dataset(dataset)[replicate]


def test_measures_are_those_of_a_simulation(finished: Path) -> None:
    dataset = results.read(finished / "study.nc")
    pairs = grid(finished, "drawn", 2)
    platform = Platform([cluster for _, cluster in pairs]).with_policy("sjf")
    run = simulate([workload for workload, _ in pairs], platform, "s-i")
    wait = (run["start_time"] - run["submit_time"]).values
    measured = dataset.sel(scenario="drawn", policy="sjf", scheme="s-i", replicate=2)
    assert float(measured["wait_time_mean"]) == pytest.approx(wait.mean())
    assert float(measured["transferred"]) == run.attrs["jobs_transferred"] / run.sizes["job"]
    assert float(measured["jobs"]) == 100


def test_machines_are_as_the_study_says(finished: Path) -> None:
    pairs = [grid(finished, "with-a-log", replicate) for replicate in range(3)]
    workload, cluster = pairs[1][1]
    assert cluster == Cluster(
        processors=64, processors_per_node=8, node_exclusive=True, speed=500.0, name="own"
    )
    assert workload.submit_time.tolist() == [0, 10, 20]
    assert workload.left_out == {"queue 0": 1, "larger than the machine": 1}
    assert pairs[0][0][1].speed == 1300.0
    assert pairs[0][1][0].equals(workload)
    assert not np.array_equal(pairs[0][0][0].submit_time, pairs[1][0][0].submit_time)


def test_same_machine_has_the_same_draws_in_every_scenario(finished: Path) -> None:
    first, second = (grid(finished, name, 1)[0][0] for name in ("drawn", "with-a-log"))
    assert first.equals(second)


def test_facts_of_the_machines_are_kept(finished: Path) -> None:
    dataset = results.read(finished / "study.nc")
    own = dataset.sel(scenario="with-a-log", home="own")
    assert int(own["left_out"].sel(left_out_reason="queue 0")) == 3
    assert "Växjö" in str(own["acknowledgement"].values)
    assert len(str(own["workload_checksum"].values)) == 64
    assert len(str(dataset["workload_checksum"].sel(scenario="drawn", home="M4").values).split()) == 3
    assert str(dataset["workload_checksum"].sel(scenario="drawn", home="own").values) == ""


def test_schedules_of_the_first_replicate_are_kept(finished: Path) -> None:
    kept = [results.read(path) for path in finished.glob("runs/*.schedule.nc")]
    assert len(kept) == 2 * 8
    dataset = results.read(finished / "study.nc")
    for run in kept:
        place = {name: run.attrs[name] for name in ("policy", "scheme", "replicate")}
        assert place["replicate"] == 0
        if run.attrs["scenario"] == "drawn":
            mean = float(dataset["wait_time_mean"].sel(scenario="drawn", **place))
            assert float((run["start_time"] - run["submit_time"]).mean()) == pytest.approx(mean)


def test_no_schedules_and_one_replicate(folder: Path) -> None:
    study = GridStudy.model_validate(
        {**STUDY, "schedules": "none", "replicates": 1, "schedulers": ["central"]}
    )
    dataset = run_study(study, folder, 5)
    assert not list(folder.rglob("*.schedule.nc"))
    assert dataset.sizes["replicate"] == 1
    means = pd.read_csv(folder / "tiny" / "tables" / "means.csv")
    assert means["mean"].notna().all()
    assert means["low"].isna().all()


def test_table_of_runs_names_every_run_and_its_dataset(finished: Path) -> None:
    runs = pd.read_csv(finished / "runs.csv")
    assert len(runs) == 2 * 2 * 4 * 3
    assert runs["run"].is_unique
    assert all((finished.parent / dataset).is_file() for dataset in runs["dataset"])
    assert set(runs["scheduler"]) == {"local", "s-i", "r-i, often", "ideal-srpt"}


def test_table_of_means(finished: Path) -> None:
    means = pd.read_csv(finished / "tables" / "means.csv")
    keys = [" ".join(row) for row in means[["scenario", "policy", "scheme", "measure"]].to_numpy()]
    local = means.loc[keys.index("drawn easy local wait_time_mean")]
    dataset = results.read(finished / "study.nc")
    values = dataset["wait_time_mean"].sel(scenario="drawn", policy="easy", scheme="local").values
    assert local["mean"] == pytest.approx(values.mean())
    assert local["low"] <= local["mean"] <= local["high"]
    assert local["ratio_mean"] == 1
    assert local["difference_mean"] == 0
    assert "drawn easy ideal-srpt transferred" not in keys


def test_report_shows_a_grid_and_takes_text_literally(
    study: GridStudy, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished.parent.parent)
    target = finished.parent / "report.html"
    build_report([study], target)
    page = read_page(target)
    assert not page.open
    assert page.foreign == []
    assert "onerror" not in {name for _, attributes in page.tags for name in attributes}
    assert NASTY.split()[1] in page.text
    for text in ("drawn, local policy easy", "with-a-log, local policy sjf", "r-i, often", "Växjö"):
        assert text in page.words
    assert "3 replicates" in page.words
    assert "requested in drawn, actual in with-a-log" in page.words
    assert "Waits are predicted by simulating the local policy on" in page.words


def test_sidecars_stand_beside_all_datasets(finished: Path) -> None:
    for dataset in finished.rglob("*.nc"):
        assert files.sidecar(dataset).is_file()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=8))
def test_workloads_of_a_grid_come_back(jobs: list[tuple[int, int, int]]) -> None:
    submit, run, size = np.array(sorted(jobs)).T
    empty = np.empty(0, np.int64)
    first = Workload(name="a", submit_time=submit, run_time=run, requested_processors=size)
    second = Workload(name="b", submit_time=empty, run_time=empty, requested_processors=empty, header=("x",))
    clusters = [Cluster(processors=4, name="a"), Cluster(processors=8, speed=2.5, name="b")]
    pairs = list(zip([first, second], clusters, strict=True))
    back = results.grids_from_dataset(results.grids_dataset({3: pairs, 5: pairs[:1]}))
    assert list(back) == [3, 5]
    for found, given_pair in zip([*back[3], *back[5]], [*pairs, pairs[0]], strict=True):
        assert found[0].equals(given_pair[0])
        assert found[1] == given_pair[1]


def test_a_killed_job_counts_as_one_with_all_of_its_pieces(tmp_path: Path) -> None:
    jobs = [[0, 5000, 5000, 1], [10, 400, 400, 4], [900, 3000, 3000, 2], [4000, 900, 900, 4]]
    clusters = [{"name": name, "processors": 4, "jobs": jobs} for name in ("A", "B")]
    scenario = {"name": "one", "clusters": clusters, "failures": {"mean_time_between": 9000}}
    values = {"name": "s", "kind": "grid", "title": "S", "scenarios": [scenario], "schedulers": ["local"]}
    study = GridStudy.model_validate(values)
    whole = run_study(study, tmp_path, 1).squeeze()
    assert whole["executions_killed"] > 0
    assert whole["jobs"] == 2 * len(jobs)
    work = sum(run * size for _, run, _, size in jobs)
    total = float((whole["utilisation"] * whole["cluster_processors"]).sum() * whole["makespan"])
    assert total == pytest.approx(2 * work * (1 + float(whole["extra_work_share"])))

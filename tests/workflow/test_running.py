"""The workflow from configuration to report: complete, repeatable, interruptible, and no more than needed."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gridsched import results
from tests.workflow.workspace import (
    SCORES,
    TARGET,
    Workspace,
    bits_of_files,
    bits_of_runs,
)

DRAWN = {"name": "drawn", "synthetic": {"machine": "M3", "jobs": 50}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A configuration that ran to the report."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    output = workspace.run()
    assert "(100%) done" in output
    assert "profile" in output, "the default profile was not found"
    return workspace


@pytest.fixture(scope="module")
def reference(finished: Workspace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Bits of the finished configuration: of its runs, and of the other datasets up to the study."""
    files = bits_of_files(finished.results)
    return bits_of_runs(finished.results), {
        name: content for name, content in files.items() if "characterisation" not in name
    }


def test_everything_is_there(finished: Workspace) -> None:
    folder = finished.results
    study = results.read(folder / "tiny" / "study.nc")
    assert study["workload"].values.tolist() == ["listed", "own"]
    assert study["scheme"].values.tolist() == ["easy", "widest", "recorded"]
    assert len(bits_of_runs(folder)) == 4
    drawn = {path.stem for path in (folder / "tiny" / "figures").glob("*.svg")}
    assert {"policies_means", "recorded_waits", "load-own", "workload-own"} <= drawn
    assert not {"load-listed", "workload-listed"} & drawn, "statistics of three jobs"
    for figure in (folder / "tiny" / "figures").glob("*.svg"):
        assert figure.with_suffix(".png").stat().st_size
        assert figure.with_suffix(".csv").stat().st_size
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert not list(folder.rglob(".*")), "temporary files are left"


def test_every_job_has_a_log_without_an_error(finished: Workspace) -> None:
    logs = list((finished.results / "logs").rglob("*.log"))
    assert len(logs) == 19
    assert not [log for log in logs if "rror" in log.read_text(encoding="utf-8")]


def test_repeated_run_does_nothing(finished: Workspace) -> None:
    assert "Nothing to be done" in finished.run()


def test_report_of_snakemake_is_one_file(finished: Workspace) -> None:
    target = finished.folder / "snakemake-report.html"
    finished.run("--report", str(target))
    page = target.read_text(encoding="utf-8")
    assert "policies_means" in page

    class Loads(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            loaded = {"script": "src", "img": "src", "link": "href", "iframe": "src"}.get(tag)
            addresses = [value or "" for name, value in attrs if name == loaded]
            assert all(address.startswith(("data:", "#")) for address in addresses), addresses

    Loads().feed(page)


def test_another_folder_and_chunk_size_give_the_same_bits(
    tmp_path: Path, kernel_cache: Path, reference: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    workspace = Workspace(tmp_path / "elsewhere", kernel_cache)
    workspace.write(chunk_size=1)
    workspace.run(TARGET, cores=1)
    assert len(list(workspace.results.glob("tiny/runs/*/*.nc"))) == 4
    assert bits_of_runs(workspace.results) == reference[0]
    assert bits_of_files(workspace.results) == reference[1]


def test_killed_runs_resume_and_give_the_same_bits(
    tmp_path: Path, kernel_cache: Path, reference: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    workspace = Workspace(tmp_path / "killed", kernel_cache)
    workspace.write(chunk_size=1)
    moments = [
        ".snakemake/locks/*",  # it has only just begun
        "results/tiny/workloads/*.nc",  # while a dataset is written: its hidden file matches too
        "results/logs/tiny/runs/*/*.log",  # in a simulation
        "results/tiny/runs/*/[0-9]*.nc",  # a dataset is there, but Snakemake has not noted it down
        "results/logs/tiny/summaries/*.log",
    ]
    for number, moment in enumerate(moments):
        workspace.run_until(moment, TARGET)
        if number == 2:  # the first kills may come before the locks are written
            assert "--unlock" in workspace.run(TARGET, fails=True)
        workspace.run("--unlock")
    assert not (workspace.folder / TARGET).exists()
    workspace.run(TARGET)
    assert bits_of_runs(workspace.results) == reference[0]
    assert bits_of_files(workspace.results) == reference[1]
    assert workspace.planned(TARGET) == set()


# --- what a change leads to -----------------------------------------------------------------------

STUDY_AGAIN = "tiny: putting all workloads together"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A configuration that ran to the dataset of its study, with a workload that is drawn."""
    workspace = Workspace(tmp_path_factory.mktemp("measured") / "work", kernel_cache)
    listed = workspace.study["workloads"][0]
    workspace.write(study={"workloads": [listed, DRAWN]})
    workspace.run(TARGET)
    return workspace


@pytest.fixture
def copy(measured: Workspace, tmp_path: Path) -> Workspace:
    """Copy of the finished folder, with times of files."""
    workspace = Workspace(tmp_path / "copy", measured.cache, measured.study, measured.config)
    shutil.rmtree(workspace.folder)
    shutil.copytree(measured.folder, workspace.folder)
    return workspace


def simulated(*workloads: str) -> set[str]:
    """Messages of the jobs that follow once runs of some workloads are made anew."""
    messages = {STUDY_AGAIN}
    for workload in workloads:
        messages |= {f"tiny: simulating {workload}, chunk 0", f"tiny: measuring the runs of {workload}"}
    return messages


def test_nothing_changed(copy: Workspace) -> None:
    copy.write(mirrors=["/another/mirror"])
    assert copy.planned(TARGET) == set()


def test_changed_title(copy: Workspace) -> None:
    copy.write(study={"title": "Another", "reference": "widest"})
    assert copy.planned(TARGET) == {STUDY_AGAIN}


def test_changed_metrics(copy: Workspace) -> None:
    copy.write(study={"metrics": {"batches": 3}})
    measured = {f"tiny: measuring the runs of {name}" for name in ("listed", "drawn")}
    assert copy.planned(TARGET) == {STUDY_AGAIN, *measured}


def test_changed_seed(copy: Workspace) -> None:
    copy.write(seed=2)
    assert copy.planned(TARGET) == {"tiny: preparing workload drawn", *simulated("drawn")}


def test_changed_score_file(copy: Workspace) -> None:
    (copy.folder / "scores.py").write_text(SCORES.replace("return ", "return -"), encoding="utf-8")
    assert copy.planned(TARGET) == simulated("listed", "drawn")


def test_further_workload(copy: Workspace) -> None:
    own = {"name": "own", "file": "logs/own.swf"}
    copy.write(study={"workloads": [*copy.study["workloads"], own]})
    assert copy.planned(TARGET) == {"tiny: preparing workload own", *simulated("own")}


def test_changed_policy(copy: Workspace) -> None:
    before = bits_of_runs(copy.results)
    copy.write(study={"policies": ["sjf", *copy.study["policies"]]})
    assert copy.planned(TARGET) == simulated("listed", "drawn")
    copy.run(TARGET)
    after = bits_of_runs(copy.results)
    assert len(after) == len(before) + 2
    for identifier, run in before.items():
        assert {key: value for key, value in run.items() if key != "attribute configuration_hash"} == {
            key: value for key, value in after[identifier].items() if key != "attribute configuration_hash"
        }

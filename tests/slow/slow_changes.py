"""What a change of a study, of its files or of its results leads to: what depends on it is made anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.workspace import AGAIN, SCORES, TARGET, Bits, Workspace, bits_of_files, bits_of_runs

DRAWN = {"name": "drawn", "synthetic": {"machine": "M3", "jobs": 50}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A configuration that ran to the report."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    workspace.run()
    return workspace


@pytest.fixture(scope="module")
def reference(finished: Workspace) -> dict[str, Bits]:
    """Bits of all datasets of the finished configuration."""
    return bits_of_files(finished.results)


def test_result_that_was_deleted_is_made_again(
    tmp_path: Path, finished: Workspace, reference: dict[str, Bits]
) -> None:
    workspace = copied(finished, tmp_path)
    lost = next(workspace.results.glob("tiny/runs/[0-9a-f]*.nc"))
    lost.unlink()
    assert workspace.planned(TARGET) == set(), "nobody needs it while the dataset is there"
    (workspace.folder / TARGET).unlink()
    assert AGAIN in workspace.planned(TARGET)
    workspace.run(TARGET)
    assert lost.exists()
    assert bits_of_files(workspace.results) == reference


def copied(finished: Workspace, folder: Path) -> Workspace:
    """Copy of a finished folder, with times of files."""
    workspace = Workspace(folder / "copy", finished.cache, finished.study, finished.config)
    shutil.rmtree(workspace.folder)
    shutil.copytree(finished.folder, workspace.folder)
    return workspace


# --- what a change leads to -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A configuration that ran to the dataset of its study, with a workload that is drawn."""
    workspace = Workspace(tmp_path_factory.mktemp("measured") / "work", kernel_cache)
    listed = workspace.study["scenarios"][0]
    workspace.write(study={"scenarios": [listed, DRAWN]})
    workspace.run(TARGET)
    return workspace


@pytest.fixture
def copy(measured: Workspace, tmp_path: Path) -> Workspace:
    return copied(measured, tmp_path)


def simulated(*workloads: str, schemes: tuple[str, ...] = ("easy", "widest")) -> set[str]:
    """Names of the tasks that follow once runs of some workloads are made anew."""
    return {f"{name}, {scheme}, requested run times" for name in workloads for scheme in schemes}


CHARACTERS = {"character of drawn"}
"""Tasks that only figures need, which the target does not."""


def test_nothing_changed(copy: Workspace) -> None:
    copy.write(mirrors=["/another/mirror"])
    assert copy.missing() == set()
    assert copy.planned(TARGET) == set()


@pytest.mark.parametrize(
    ("study", "anew"),
    [
        ({"title": "Another", "description": "Other words", "reference": "widest"}, set()),
        ({"metrics": {"bins": 5}}, simulated("listed", "drawn")),
        ({"overrun": "doubling", "kill": False, "estimates": ["requested"]}, set()),
        ({"overrun": "increments"}, simulated("listed", "drawn")),
    ],
    ids=["words", "metrics", "defaults", "overrun"],
)
def test_changed_study(copy: Workspace, study: dict[str, object], anew: set[str]) -> None:
    copy.write(study=study)
    assert copy.missing() == anew
    planned = copy.planned(TARGET)
    assert (AGAIN in planned) == (bool(anew) or "title" in study)
    assert bool(planned - {AGAIN}) == bool(anew)


def test_changed_seed(copy: Workspace) -> None:
    copy.write(seed=2)
    assert copy.missing() == {"drawn, replicates 0 to 9", *CHARACTERS, *simulated("drawn")}


def test_changed_score_file(copy: Workspace) -> None:
    (copy.folder / "scores.py").write_text(SCORES.replace("return ", "return -"), encoding="utf-8")
    assert copy.missing() == simulated("listed", "drawn", schemes=("widest",))


def test_touched_score_file(copy: Workspace) -> None:
    (copy.folder / "scores.py").touch()
    assert copy.planned(TARGET) == set()


def test_further_workload(copy: Workspace) -> None:
    own = {"name": "own", "file": "logs/own.swf"}
    copy.write(study={"scenarios": [*copy.study["scenarios"], own]})
    assert copy.missing() == {
        *("own, replicate 0", "character of own", "recorded waits of own"),
        *simulated("own"),
    }


def test_further_policy(copy: Workspace) -> None:
    before = bits_of_runs(copy.results)
    copy.write(study={"schedulers": ["sjf", *copy.study["schedulers"]]})
    assert copy.missing() == simulated("listed", "drawn", schemes=("sjf",))
    times = {path: path.stat().st_mtime_ns for path in copy.results.glob("tiny/runs/*.nc")}
    copy.run(TARGET)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    after = bits_of_runs(copy.results)
    assert len(after) == len(before) + 2
    assert before.items() <= after.items()

"""Outputs that are lost or damaged are made again, with what is made of them and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.workspace import Workspace, bits_of_files

SIMULATED = "tiny: simulating listed, easy, requested run times and 4 more"
COLLECTED = "tiny: putting all of study together"
DRAWN = "tiny: drawing figures and writing tables"
CLAIMS = "setting the claims of the papers against the results"
REPORT = "building the report"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A configuration that ran to the report."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    workspace.run()
    return workspace


@pytest.fixture
def copy(finished: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the finished folder."""
    workspace = Workspace(tmp_path / "copy", finished.cache)
    shutil.rmtree(workspace.folder)
    shutil.copytree(finished.folder, workspace.folder)
    return workspace


def lost(path: Path) -> None:
    path.unlink()


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


Harm = Callable[[Path], None]


@pytest.mark.parametrize(
    ("harm", "output", "planned"),
    [
        (damaged, "tiny/runs/*.nc", {SIMULATED, COLLECTED, DRAWN, CLAIMS, REPORT}),
        (lost, "tiny/study.nc", {COLLECTED, DRAWN, CLAIMS, REPORT}),
        (damaged, "tiny/study.nc", {COLLECTED, DRAWN, CLAIMS, REPORT}),
        (emptied, "tiny/study.made.json", {COLLECTED, DRAWN, CLAIMS, REPORT}),
        (lost, "tiny/figures/ranking.svg", {DRAWN, REPORT}),
        (damaged, "tiny/figures/ranking.png", {DRAWN, REPORT}),
        (emptied, "tiny/figures/ranking.txt", {DRAWN, REPORT}),
        (damaged, "tiny/tables/*.csv", {DRAWN, REPORT}),
        (emptied, "tiny/shown.sha256", {DRAWN, REPORT}),
        (lost, "claims.csv", {CLAIMS, REPORT}),
        (damaged, "report.html", {REPORT}),
    ],
)
def test_what_is_lost_or_damaged_is_made_again(
    copy: Workspace, harm: Harm, output: str, planned: set[str]
) -> None:
    harm(next(copy.results.glob(output)))
    assert copy.planned() == planned


def test_everything_is_whole_again(finished: Workspace, copy: Workspace) -> None:
    for harm, output in (
        (damaged, "tiny/prepared/*.nc"),
        (emptied, "tiny/runs/*.nc"),
        (lost, "tiny/runs/*.made.json"),
        (damaged, "tiny/study.nc"),
        (lost, "tiny/figures/ranking.csv"),
        (damaged, "report.html"),
    ):
        harm(next(copy.results.glob(output)))
    copy.run()
    assert bits_of_files(copy.results) == bits_of_files(finished.results)
    shown = {path.relative_to(finished.results) for path in finished.results.glob("tiny/*/*.*")}
    assert {path.relative_to(copy.results) for path in copy.results.glob("tiny/*/*.*")} == shown
    assert "Nothing to be done" in copy.run()

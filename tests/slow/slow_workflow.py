"""The workflow, divided and interrupted in other ways: the results have the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.experiments import files
from tests.slow.slow_kinds import AllKinds
from tests.support.workspace import TARGET, Bits, Workspace, bits_of_files


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> dict[str, Bits]:
    """Bits of all datasets of a small configuration."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    workspace.run("results/tiny/figures")
    return bits_of_files(workspace.results)


def test_another_division_of_a_grid_gives_the_same_bits(tmp_path: Path, kernel_cache: Path) -> None:
    ours, theirs = (AllKinds(tmp_path / name, kernel_cache) for name in ("ours", "theirs"))
    theirs.run("results/own-grid/study.nc")
    ours.write(chunk_size=1)
    ours.run("results/own-grid/study.nc", cores=1)
    found = bits_of_files(ours.results)
    assert len([name for name in found if name.endswith(".schedule.nc")]) == 6, "first replicate"
    assert found == bits_of_files(theirs.results)


def test_another_folder_and_division_give_the_same_bits(
    tmp_path: Path, kernel_cache: Path, finished: dict[str, Bits]
) -> None:
    workspace = Workspace(tmp_path / "elsewhere", kernel_cache)
    workspace.write(chunk_size=1)
    workspace.run("results/tiny/figures", cores=1)
    batches = workspace.results / "batches" / "tiny"
    assert len(list(batches.glob("simulate/*.json"))) == 4 + 1, "runs of two workloads, recorded waits of one"
    assert bits_of_files(workspace.results) == finished


def test_batch_that_was_interrupted_goes_on(tmp_path: Path, kernel_cache: Path) -> None:
    workspace = Workspace(tmp_path / "interrupted", kernel_cache)
    # A run writes its schedule, then its measures, each with a sidecar; killed in between it starts again
    measures = f"tiny/runs/{'?' * 16}"
    workspace.run_until(f"results/{measures}.made.json", TARGET)
    written = [path for path in workspace.results.glob(f"{measures}.nc") if files.is_whole(path)]
    done = {path: path.stat().st_mtime_ns for path in written}
    assert done
    workspace.run("--unlock")
    workspace.run(TARGET)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert workspace.missing() == set()

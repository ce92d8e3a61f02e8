"""Files that change under a run, and two runs at once: clear messages, then right results.

Not collected by `pytest`; `make test-faults` runs it: see README.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workspace import TARGET, Workspace, bits_of_files, ended_within, log_lines


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A run to the dataset of the study."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    workspace.run(TARGET)
    return workspace


# --- logs that change -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A run of the longer log."""
    workspace = Workspace(tmp_path_factory.mktemp("changed") / "work", kernel_cache)
    workspace.log.write_text("\n".join(log_lines(80)) + "\n", encoding="utf-8")
    workspace.run(TARGET)
    return workspace


@pytest.mark.parametrize(
    "moment",
    ["results/logs/tiny/prepare/*.log", "results/tiny/prepared/*.nc", "results/logs/tiny/simulate/*.log"],
    ids=["while it is read", "when it was read", "while it is simulated"],
)
def test_log_that_changes_under_the_run(
    tmp_path: Path, kernel_cache: Path, changed: Workspace, moment: str
) -> None:
    workspace = Workspace(tmp_path / "work", kernel_cache)
    process = workspace.start(TARGET)
    while not list(workspace.folder.glob(moment)):
        assert ended_within(process, 0.02) is None, f"ended before there was {moment}"
    workspace.log.write_text("\n".join(log_lines(80)) + "\n", encoding="utf-8")
    output, _ = process.communicate()
    if process.returncode != 0:
        assert "error: logs/own.swf: changed while it was in use; run again" in output
    workspace.run(TARGET)
    ours, theirs = bits_of_files(workspace.results), bits_of_files(changed.results)
    # What was made of the shorter log may still be there
    assert {name: ours[name] for name in theirs} == theirs


# --- two runs -------------------------------------------------------------------------------------


def test_second_run_is_refused_while_the_first_goes_on(
    tmp_path: Path, kernel_cache: Path, finished: Workspace
) -> None:
    workspace = Workspace(tmp_path / "work", kernel_cache)
    first = workspace.start(TARGET)
    while not list(workspace.folder.glob(".snakemake/locks/*")):
        assert ended_within(first, 0.02) is None, "ended before it took a lock"
    assert "Directory cannot be locked" in workspace.run(TARGET, fails=True)
    output, _ = first.communicate()
    assert first.returncode == 0, output
    assert bits_of_files(workspace.results) == bits_of_files(finished.results)


def test_two_runs_that_start_at_the_same_moment(
    tmp_path: Path, kernel_cache: Path, finished: Workspace
) -> None:
    workspace = Workspace(tmp_path / "work", kernel_cache)
    both = [workspace.start(TARGET) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert 0 in [process.returncode for process in both], outputs
    for process, output in zip(both, outputs, strict=True):
        assert process.returncode == 0 or "Directory cannot be locked" in output
    assert bits_of_files(workspace.results) == bits_of_files(finished.results)


def test_two_working_directories_that_share_results(
    tmp_path: Path, kernel_cache: Path, finished: Workspace
) -> None:
    """Locks are those of a working directory; files that are written whole keep such runs from harm."""
    both = [Workspace(tmp_path / name, kernel_cache) for name in ("one", "other")]
    for workspace in both:
        workspace.write(results=str(tmp_path / "results"))
    target = str(tmp_path / TARGET)
    processes = [workspace.start(target) for workspace in both]
    for process in processes:
        process.communicate()
    both[0].run(target)
    assert bits_of_files(tmp_path / "results") == bits_of_files(finished.results)

"""The same bits from Slurm as from this machine alone; mistakes reach the user, interruptions the queue.

Not collected by `pytest`; `make test-slurm` runs it while there is a Slurm: see README.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.support.workspace import TARGET, Workspace, bits_of_files, ended_within

PROFILES = {
    "cluster-generic": ["--seconds-between-status-checks", "1"],
    "slurm": [
        # There are no accounts here
        *("--slurm-no-account", "--slurm-status-command", "squeue"),
        *("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"),
    ],
}
"""Profiles, and what makes them quick on a Slurm that has nothing else to do."""

OWN = {"name": "own", "file": "logs/own.swf"}
JOBS = 5
"""Workflow jobs with one task each: workload, two runs, measures, the dataset."""

ENDED = "CANCELLED,COMPLETED,FAILED,NODE_FAIL,OUT_OF_MEMORY,TIMEOUT"


def queue(states: str) -> list[str]:
    """States of the jobs of Slurm that are in one of these states."""
    command = ["squeue", "--noheader", f"--states={states}", "--format=%T"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def through(profile: str) -> list[str]:
    """Options of a workflow that goes through Slurm."""
    return ["--profile", str(REPOSITORY / "profiles" / profile), *PROFILES[profile]]


def workspace(folder: Path, cache: Path) -> Workspace:
    """A study of one workload, each task in a job of its own."""
    made = Workspace(folder, cache)
    made.write(study={"scenarios": [OWN]}, chunk_size=1)
    return made


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """The study, run on this machine alone."""
    finished = workspace(tmp_path_factory.mktemp("local") / "work", kernel_cache)
    finished.run(TARGET)
    return finished


@pytest.mark.parametrize("profile", PROFILES)
def test_slurm_gives_the_same_bits(
    tmp_path: Path, kernel_cache: Path, local: Workspace, profile: str
) -> None:
    before = len(queue("COMPLETED"))
    through_slurm = workspace(tmp_path / "work", kernel_cache)
    through_slurm.run(TARGET, *through(profile), cores=1)
    assert len(queue("COMPLETED")) == before + JOBS, "not all jobs went through Slurm"
    assert bits_of_files(through_slurm.results) == bits_of_files(local.results)
    assert through_slurm.planned(TARGET) == set()


@pytest.mark.parametrize("profile", PROFILES)
def test_mistake_is_shown_and_ends_the_run(tmp_path: Path, kernel_cache: Path, profile: str) -> None:
    broken = workspace(tmp_path / "work", kernel_cache)
    broken.log.write_text("; MaxProcs: 8\nthis is no job\n", encoding="utf-8")
    before = len(queue("FAILED"))
    assert "error: logs/own.swf:2: " in broken.run(TARGET, *through(profile), cores=1, fails=True)
    assert len(queue("FAILED")) == before + 1
    assert not list(broken.results.rglob("*.nc"))


@pytest.mark.parametrize("profile", PROFILES)
def test_interrupted_run_leaves_nothing_in_the_queue(
    tmp_path: Path, kernel_cache: Path, profile: str
) -> None:
    interrupted = workspace(tmp_path / "work", kernel_cache)
    ended = len(queue(ENDED))
    process = interrupted.start(TARGET, *through(profile), cores=1)
    while not queue("PENDING,RUNNING"):
        assert ended_within(process, 0.1) is None, "ended before it submitted anything"
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0, output
    assert not queue("PENDING,RUNNING,COMPLETING")
    assert len(queue(ENDED)) == ended + 1
    interrupted.run("--unlock")
    assert not (interrupted.folder / TARGET).exists()

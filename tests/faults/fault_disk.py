"""Disks that are full or cannot be written to: a clear message, nothing half done, and then the run goes on.

Not collected by `pytest`; `make test-faults` runs it: see README.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workspace import TARGET, Workspace, bits_of_files, temporary_files

USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


class Disk:
    """A small file system that only the processes in its mount namespace see; it ends with them.

    One process holds the namespace; from outside, files are reached through `/proc`.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        script = f'mount -t tmpfs -o size=60k none "{folder}" && echo mounted && read -r _'
        self._holder = subprocess.Popen(
            ["unshare", "--mount", *USER, "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        self.is_there = self._holder.stdout.readline().strip() == "mounted"
        self._mounted = folder
        self.folder = Path(f"/proc/{self._holder.pid}/root{folder}")
        entered = ["--user", "--preserve-credentials"] if USER else []
        self.prefix = ["nsenter", f"--target={self._holder.pid}", "--mount", *entered]

    def remount(self, options: str) -> None:
        """Change its size or whether it may be written to."""
        subprocess.run([*self.prefix, "mount", "-o", f"remount,{options}", self._mounted], check=True)

    def end(self) -> None:
        """Let it go."""
        self._holder.communicate("\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """An undisturbed run."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    workspace.run(TARGET)
    return workspace


@pytest.fixture
def workspace(tmp_path: Path, kernel_cache: Path) -> Workspace:
    return Workspace(tmp_path / "work", kernel_cache)


@pytest.fixture
def disk(workspace: Workspace) -> Iterator[Disk]:
    """A disk for the results of the workspace."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        pytest.skip("needs unshare and nsenter of util-linux")
    made = Disk(workspace.results)
    if not made.is_there:
        pytest.skip("the system allows no file system of one's own")
    workspace.prefix = made.prefix
    yield made
    made.end()


def test_full_disk(workspace: Workspace, disk: Disk, finished: Workspace) -> None:
    output = workspace.run(TARGET, fails=True)
    said = [line for line in output.splitlines() if line.startswith("gridsched: results/")]
    assert said, output
    assert all("is the disk full" in line or "no space left on device" in line for line in said), said
    assert not (disk.folder / "tiny" / "study.nc").exists()
    assert not temporary_files(disk.folder), "begun files take room"
    disk.remount("size=10m")
    workspace.run(TARGET)
    assert bits_of_files(disk.folder) == bits_of_files(finished.results)


def test_disk_that_may_only_be_read(workspace: Workspace, disk: Disk) -> None:
    disk.remount("ro")
    output = workspace.run(TARGET, fails=True)
    message = f"results: found 'results'; {workspace.results} may not be written to, choose another one"
    assert len([line for line in output.splitlines() if message in line]) == 1, output
    assert "Traceback" not in output


def test_results_that_are_a_file(workspace: Workspace) -> None:
    workspace.results.write_text("mine", encoding="utf-8")
    output = workspace.run(TARGET, fails=True)
    assert f"results: found 'results'; {workspace.results} is no folder, choose another one" in output
    assert workspace.results.read_text(encoding="utf-8") == "mine"

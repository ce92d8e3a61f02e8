"""The workflow is killed at random moments, again and again: it ends with the bits of an undisturbed run.

Not collected by `pytest`; `make test-faults` runs it: see README.md.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workspace import Workspace, bits_of_files, ended_within


def tables(folder: Path) -> dict[str, bytes]:
    """Content of every table in a folder of results."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.csv")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> tuple[Workspace, float]:
    """A run to the report on compiled kernels, and how long it takes [s]."""
    Workspace(tmp_path_factory.mktemp("warm") / "work", kernel_cache).run()
    finished = Workspace(tmp_path_factory.mktemp("undisturbed") / "work", kernel_cache)
    begin = time.monotonic()
    finished.run()
    return finished, time.monotonic() - begin


def interrupted(
    workspace: Workspace, moments: Iterator[tuple[float, bool]]
) -> Iterator[subprocess.Popen[str]]:
    """Processes that were killed, until one of them ends by itself.

    Every moment is a number of seconds, and whether all processes die or Snakemake alone, whose jobs then
    go on beside the next run.
    """
    for seconds, all_of_them in moments:
        process = workspace.start()
        if ended_within(process, seconds) is not None:
            output, _ = process.communicate()
            assert process.returncode == 0, output
            return
        if all_of_them:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        yield process
        workspace.run("--unlock")


def test_killed_workflow_ends_with_the_same_bits(
    tmp_path: Path, kernel_cache: Path, undisturbed: tuple[Workspace, float], request: pytest.FixtureRequest
) -> None:
    kills, seed = (request.config.getoption(name) for name in ("--kills", "--moments"))
    reference, duration = undisturbed
    rng = random.Random(seed)
    moments = ((rng.uniform(0, duration), rng.random() < 0.5) for _ in itertools.count())
    done = 0
    for number in itertools.count():
        if done == kills:
            break
        workspace = Workspace(tmp_path / str(number) / "work", kernel_cache)
        killed = list(itertools.islice(interrupted(workspace, moments), kills - done))
        done += len(killed)
        workspace.run("--unlock")
        workspace.run()
        for process in killed:
            # Ends when jobs that outlived their Snakemake have closed its output
            process.communicate()
        assert bits_of_files(workspace.results) == bits_of_files(reference.results)
        assert tables(workspace.results) == tables(reference.results)
    print(f"killed {done} times")

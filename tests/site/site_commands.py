"""The commands of "in five minutes" are run as they stand on their pages, with clients in other processes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gridsched as gs
from tests.conftest import REPOSITORY
from tests.protocols.test_sockets import free_port
from tests.support.pybatsim import EasyBackfill
from tests.test_docs import blocks

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path, archive_mirror: Path) -> Shell:
    """Runs commands in a folder of their own."""
    program = tmp_path / "bin" / "gridsched"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gridsched "$@"\n')
    program.chmod(0o755)
    folders = (program.parent, Path(sys.executable).parent, os.environ["PATH"])
    settings = {
        "PATH": os.pathsep.join(map(str, folders)),
        "PYTHONPATH": str(REPOSITORY),
        "GRIDSCHED_MIRRORS": str(archive_mirror),
    }

    def run(commands: str) -> subprocess.CompletedProcess[str]:
        started = subprocess.Popen(
            ["bash", "-ec", commands],
            cwd=tmp_path,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, said = started.communicate(timeout=600)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(commands, started.returncode, printed, said)

    return run


def test_with_pybatsim(shell: Shell, tmp_path: Path, archive_mirror: Path) -> None:
    (first, _), (second, _), *_ = blocks("protocols.md", "sh")
    lines = first.splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if line.startswith("gridsched"))
    made = shell("".join(lines[:at]))
    if made.returncode:
        pytest.skip(f"pybatsim cannot be installed: {made.stderr.strip()[-300:]}")
    port = free_port()
    for commands in ("".join(lines[at:]), second.replace("28000", str(port))):
        done = shell(commands)
        assert done.returncode == 0, done.stderr
        assert "jobs COMPLETED_SUCCESSFULLY" in done.stdout
    log = gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")
    jobs = gs.clean(gs.select_window(log, jobs=(0, 2000)))
    wanted = gs.simulate(jobs, 100, EasyBackfill(), kill=True).start_time
    with xr.open_dataset(tmp_path / "run.nc") as run:
        np.testing.assert_array_equal(run.start_time, wanted)
    table = pd.read_csv(tmp_path / "jobs.csv").sort_values("job_id")
    np.testing.assert_array_equal(np.sort(table["starting_time"]), np.sort(wanted))


def test_with_c(shell: Shell, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    page = "protocols-libraries.md"
    (tmp_path / "mine.c").write_text(blocks(page, "c")[0][0])
    done = shell(blocks(page, "sh")[0][0])
    assert done.returncode == 0, done.stderr
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith(("fcfs ", "mine "))]
    assert len(rows) == 2
    assert rows[0] == rows[1]

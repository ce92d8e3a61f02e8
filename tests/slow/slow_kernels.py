"""Kernels interpreted, and compiled with bounds checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_compilation import run
from tests.conftest import REPOSITORY
from tests.support.logs import JOBS, swf


@pytest.mark.parametrize("switch", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_kernels_run_without_jit_and_within_bounds(switch: str, tmp_path: Path) -> None:
    """The conformance cases and a crowded machine, interpreted, and compiled with bounds checks."""
    names = (
        "conformance",
        "policies/test_local.py",
        "systems/superscheduler/test_scheduler.py",
        "systems/ideal/test_ideal.py",
    )
    tests = [f"tests/{name}" for name in names]
    chosen = " or ".join(["conformance", "crowded", "corrections", "user_group", "room", "interrupt"])
    environment = {**os.environ, switch: "1", "GRIDSCHED_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def test_kernels_can_be_compiled_ahead(tmp_path: Path) -> None:
    """Once for every scheduler; a simulation then compiles nothing."""
    environment = {**os.environ, "GRIDSCHED_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "gridsched", "doctor", "--warm"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    stored = sorted(path.name for path in tmp_path.rglob("*.nbi"))
    assert stored
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.rglob("*.nbi")) == stored


def test_the_command_line_says_what_it_compiles_and_only_then(tmp_path: Path) -> None:
    cache, log = tmp_path / "cache", tmp_path / "abacus.swf"
    log.write_text(swf(JOBS))
    fcfs = ("-m", "gridsched", "simulate", log, "--policy", "fcfs,easy")
    first, second = run(cache, *fcfs), run(cache, *fcfs)
    things = [line.split(": ")[1] for line in first.stderr.splitlines()]
    assert things == [f"reading {log.name}", "simulating fcfs", "simulating easy"]
    assert second.stderr == ""
    assert second.stdout == first.stdout

"""What is said while kernels are compiled, and that nothing is said when they are not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gridsched.warming import schedulers, warm


def run(cache: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "GRIDSCHED_CACHE": str(cache)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_a_program_without_a_terminal_is_told_nothing(cache: Path, log: Path) -> None:
    program = "import gridsched as gs; import sys; gs.read_swf(sys.argv[1])"
    assert run(cache, "-c", program, log).stderr == ""


def test_a_program_may_ask_to_be_told(cache: Path, log: Path) -> None:
    program = """
import sys
import gridsched as gs
from gridsched.engine.kernel_cache import telling
for _ in range(2):
    with telling(print):
        gs.read_swf(sys.argv[1])
"""
    told = run(cache, "-c", program, log).stdout.splitlines()
    assert told
    assert set(told) == {"traces._parse"}
    assert run(cache, "-c", program, log).stdout == ""


def test_warming_leaves_nothing_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kernels of the usual cache
    monkeypatch.delenv("GRIDSCHED_CACHE")
    wanted = ["easy", "fcfs"]
    assert set(wanted) < set(schedulers())
    assert {name for name, _ in warm(wanted)} == set(wanted)
    assert [kernels for _, kernels in warm(wanted)] == [0, 0]

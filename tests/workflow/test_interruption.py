"""Ctrl-C: one line says what was interrupted, and the same command continues."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.workspace import TARGET, Workspace, ended_within


def test_interrupted_run_says_so_and_continues(tmp_path: Path, kernel_cache: Path) -> None:
    workspace = Workspace(tmp_path / "work", kernel_cache)
    process = workspace.start(TARGET)
    while not list(workspace.results.glob("logs/tiny/simulate/*.log")):
        assert ended_within(process, 0.02) is None, "ended before it simulated"
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode != 0, output
    (line,) = [line for line in output.splitlines() if line.startswith("gridsched: ")]
    assert line.startswith("gridsched: interrupted during tiny: simulating listed")
    assert "Traceback" not in output
    assert "message: None" not in output
    assert "preparing" not in "".join(workspace.planned(TARGET)), "it starts anew"
    workspace.run(TARGET)

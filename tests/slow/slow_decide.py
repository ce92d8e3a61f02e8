"""EASY as a decision process in another process starts every job of two logs when the engine does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import gridsched as gs


@pytest.mark.parametrize(
    ("trace", "version"),
    [("KTH-SP2-1996-2.1-cln", 4), ("KTH-SP2-1996-2.1-cln", 5), ("HPC2N-2002-2.2-cln", 4)],
)
def test_easy_through_a_socket_is_the_engines(archive_mirror: Path, trace: str, version: int) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / f"{trace}.swf.gz"))
    protocol: Any = f"batsim-{version}"
    command = (sys.executable, "-m", "gridsched", "decide", "easy", "--batsim", str(version))
    scheduler = gs.External(protocol=protocol, command=(*command, "--socket", "{socket}"))
    run = gs.simulate(jobs, None, scheduler)
    gs.verify(run)
    assert run.start_time.equals(gs.simulate(jobs, None, "easy").start_time)

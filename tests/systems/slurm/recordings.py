"""Recorded schedules of a real controller, where there are any."""

from __future__ import annotations

import pytest

from gridsched.systems.slurm.replay import Replay
from tests.conftest import REPOSITORY

RECORDINGS = REPOSITORY.parent / "shared" / "slurm"


def recorded(name: str) -> Replay:
    """A recorded schedule by name; skips the test where it is not at hand."""
    folder = RECORDINGS / name
    if not folder.exists():
        pytest.skip(f"no recording {name} in ../shared/slurm")
    return Replay.of(folder)

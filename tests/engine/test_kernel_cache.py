"""What is compiled of sources that change while they are used stays out of the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

RUN = """
import sys
import numpy as np
from pathlib import Path
from gridsched.engine import reference
if len(sys.argv) > 1:
    Path(sys.argv[1]).touch()
from gridsched.engine.job_lifecycle import DEPENDENT, LIFE, allocate, next_time
lives = allocate(np.zeros(1, LIFE), np.zeros(0, DEPENDENT), np.zeros(2, np.int64))
assert next_time(lives) == 0
"""


@pytest.mark.parametrize(("edited", "saved"), [(False, True), (True, False)])
def test_kernels_of_edited_sources_are_not_saved(edited: bool, saved: bool, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "gridsched", tmp_path / "gridsched")
    cache = tmp_path / "cache"
    source = tmp_path / "gridsched" / "engine" / "nodes" / "records.py"
    subprocess.run(
        [sys.executable, "-c", RUN, *([str(source)] if edited else [])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "GRIDSCHED_CACHE": str(cache)},
        check=True,
    )
    assert bool(list(cache.rglob("*.nbi"))) == saved

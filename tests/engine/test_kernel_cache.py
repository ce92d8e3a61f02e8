"""Compiled kernels are kept, and shared by processes, unless their sources change while they are used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gridsched.engine import kernel_cache
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


KERNEL = """
from typing import Any, NamedTuple
import numpy as np
from gridsched.engine.jit import jit, noinline
from gridsched.engine.reference import by_reference

class Box(NamedTuple):
    first: Any
    second: Any

@noinline
def total(box, k):
    s = 0
    {steps}
    return s

@jit
def kernel(box, k):
    r = by_reference(box)
    return total(r, k) + total(r, k + 1) + total(r, k + 2)
"""

USE = """
import sys
import numpy as np
from mine import Box, kernel
boxes = {
    "flat": Box(np.ones(3, np.int64), np.arange(4)),
    "deep": Box(np.ones((3, 3, 3), np.int64), np.arange(4, dtype=np.int8)),
}
for name in sys.argv[1:]:
    print(kernel(boxes[name], 10))
"""


def test_kernels_from_the_cache_keep_their_helpers(tmp_path: Path) -> None:
    """A helper of another process is told from one that is compiled here, of a bundle of other arrays."""
    steps = "\n    ".join(f"s += (box.second[{n % 4}] * k + {n}) % {n + 7}" for n in range(300))
    (tmp_path / "mine.py").write_text(KERNEL.format(steps=steps))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(tmp_path))),
        "GRIDSCHED_CACHE": str(tmp_path / "cache"),
    }
    printed = [
        subprocess.run(
            [sys.executable, "-c", USE, *names], env=environment, check=True, capture_output=True, text=True
        ).stdout.split()
        for names in (["flat"], ["deep", "flat"])
    ]
    assert len({value for values in printed for value in values}) == 1


def test_one_compiles_while_the_other_waits(tmp_path: Path) -> None:
    index = tmp_path / "kernel.nbi"
    done = threading.Event()

    def compile_too() -> None:
        with kernel_cache._alone(index, "kernel"):
            done.set()

    with kernel_cache._alone(index, "kernel"):
        other = threading.Thread(target=compile_too)
        other.start()
        assert not done.wait(0.2)
    assert done.wait(10)
    other.join()
    index.touch()
    with kernel_cache._alone(index, "kernel"):
        compile_too()

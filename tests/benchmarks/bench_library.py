"""Schedulers in shared libraries: jobs a second on KTH-SP2."""

from __future__ import annotations

from pathlib import Path

import pytest

import gridsched as gs
from gridsched.simulation import simulate
from tests.benchmarks.measure import best_times
from tests.benchmarks.table import Table
from tests.support.libraries import example

LEAST = 100_000.0
"""Jobs a second that are wanted, with all that a simulation needs before and after its decisions."""


@pytest.mark.parametrize("name", ["fcfs", "easy"])
def test_library(name: str, archive_mirror: Path, table: Table, tmp_path: Path) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"))
    scheduler = gs.LibraryScheduler(example(name, tmp_path))
    (best,) = best_times([lambda: simulate(jobs, None, scheduler)])
    speed = len(jobs) / best
    what = f"{name} as a library in C, KTH-SP2"
    table.add_target(what, f"{speed:,.0f} jobs/s", value=speed, at_least=LEAST, unit=" jobs/s")

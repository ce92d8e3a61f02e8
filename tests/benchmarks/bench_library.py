"""Schedulers in shared libraries: jobs a second on KTH-SP2."""

from __future__ import annotations

from pathlib import Path

import pytest

import gridsched as gs
from gridsched.simulation import simulate
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table
from tests.support.libraries import example

LEAST = 100_000.0
"""Jobs a second that are wanted, with all that a simulation needs before and after its decisions."""


@pytest.mark.parametrize("name", ["fcfs", "easy"])
def test_library(name: str, kth: gs.Workload, table: Table, tmp_path: Path) -> None:
    scheduler = gs.LibraryScheduler(example(name, tmp_path))
    best = best_time(lambda: simulate(kth, None, scheduler))
    table.add(f"{name} as a library in C, KTH-SP2", len(kth) / best, "jobs/s", at_least=LEAST)


def test_edc(kth: gs.Workload, table: Table, tmp_path: Path) -> None:
    """The C interface of Batsim 5, with its messages in JSON."""
    scheduler = gs.External(protocol="batsim-5", edc_library=example("edc", tmp_path), abi="rc")
    best = best_time(lambda: simulate(kth, None, scheduler))
    table.add("edc as a library with Batsim's interface in C, KTH-SP2", len(kth) / best, "jobs/s")

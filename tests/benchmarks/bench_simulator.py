"""Schedulers of users: decisions a second in Python and compiled, snapshots, on KTH-SP2."""

from __future__ import annotations

from pathlib import Path

import pytest

import gridsched as gs
from gridsched.simulation import simulate
from tests.benchmarks.measure import best_times
from tests.benchmarks.table import Table
from tests.systems.custom.schedulers import CompiledEasy, CompiledFcfs, Easy, Fcfs

LEAST = {Fcfs: 30_000.0, Easy: 30_000.0, CompiledFcfs: 1_000_000.0, CompiledEasy: 1_000_000.0}
"""Decisions a second that are wanted, with all that a simulation needs before and after them."""


@pytest.mark.parametrize("scheduler", LEAST)
def test_decisions(scheduler: type[gs.CustomScheduler], archive_mirror: Path, table: Table) -> None:
    jobs = gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz"))
    decisions = simulate(jobs, None, scheduler()).attrs["decisions"]
    (best,) = best_times([lambda: simulate(jobs, None, scheduler())])
    speed = decisions / best
    what = f"{scheduler.__name__} as a class of a user, KTH-SP2"
    shown = f"{speed:,.0f} decisions/s"
    table.add_target(what, shown, value=speed, at_least=LEAST[scheduler], unit=" decisions/s")


def test_snapshots(archive_mirror: Path, table: Table) -> None:
    sim = gs.Simulator(gs.clean(gs.read_swf(archive_mirror / "KTH-SP2-1996-2.1-cln.swf.gz")))
    scheduler = Fcfs()
    for _ in range(5_000):
        sim.advance()
        scheduler.decide(sim)
    taken = sim.snapshot()
    for what, action in (("snapshot", sim.snapshot), ("restore", lambda: sim.restore(taken))):
        (best,) = best_times([action])
        table.add(f"{what} of a simulation of KTH-SP2", f"{1e6 * best:,.0f} us")

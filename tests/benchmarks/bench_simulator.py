"""Schedulers of users: decisions a second in Python and compiled, snapshots, on KTH-SP2."""

from __future__ import annotations

import pytest

import gridsched as gs
from gridsched.simulation import simulate
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table
from tests.systems.custom.schedulers import CompiledEasy, Easy, Fcfs

LEAST = {Fcfs: 30_000.0, Easy: 30_000.0, CompiledEasy: 1_000_000.0}
"""Decisions a second that are wanted, with all that a simulation needs before and after them."""


@pytest.mark.parametrize("scheduler", LEAST)
def test_decisions(scheduler: type[gs.CustomScheduler], kth: gs.Workload, table: Table) -> None:
    decisions = simulate(kth, None, scheduler()).attrs["decisions"]
    best = best_time(lambda: simulate(kth, None, scheduler()))
    what = f"{scheduler.__name__} as a class of a user, KTH-SP2"
    table.add(what, decisions / best, "decisions/s", at_least=LEAST[scheduler])


def test_snapshots(kth: gs.Workload, table: Table) -> None:
    sim = gs.Simulator(kth)
    scheduler = Fcfs()
    for _ in range(5_000):
        sim.advance()
        scheduler.decide(sim)
    taken = sim.snapshot()
    for what, action in (("snapshot", sim.snapshot), ("restore", lambda: sim.restore(taken))):
        table.add(f"{what} of a simulation of KTH-SP2", 1e6 * best_time(action), "us")

"""gridsched: simulate, compare and reproduce schedulers of parallel jobs on clusters and grids.

The usual names are here; they are loaded when they are first used, so that importing gridsched is quick.

>>> import gridsched as gs
>>> workload = gs.clean(gs.read_swf("KTH-SP2-1996-2.1-cln.swf.gz"))  # doctest: +SKIP
>>> run = gs.simulate(workload, policy="easy")  # doctest: +SKIP
>>> gs.summarise(run)["bounded_slowdown_mean"]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.comparison import compare
    from gridsched.errors import GridschedError
    from gridsched.explanation import explain
    from gridsched.metrics.grid import summarise_grid
    from gridsched.metrics.jobs import summarise
    from gridsched.platforms import Cluster
    from gridsched.schedulers.jscheduler import JScheduler
    from gridsched.schedulers.local import LocalPolicy
    from gridsched.schedulers.superscheduler import Superscheduler
    from gridsched.simulation.calendars import simulate_calendars
    from gridsched.simulation.clusters import simulate, simulate_grid
    from gridsched.simulation.dynamic_grid import simulate_dynamic_grid
    from gridsched.simulation.ideal import simulate_ideal
    from gridsched.simulation.multicluster import Multicluster, simulate_multicluster
    from gridsched.simulation.self_scheduling import simulate_self_scheduling
    from gridsched.traces import clean, fetch, read_sacct, read_swf, select_window, write_swf
    from gridsched.verification.runs import verify
    from gridsched.workloads import Workload, synthesise

_HOMES: dict[str, str] = {
    "Cluster": "gridsched.platforms",
    "GridschedError": "gridsched.errors",
    "JScheduler": "gridsched.schedulers.jscheduler",
    "LocalPolicy": "gridsched.schedulers.local",
    "Multicluster": "gridsched.simulation.multicluster",
    "Superscheduler": "gridsched.schedulers.superscheduler",
    "Workload": "gridsched.workloads",
    "clean": "gridsched.traces",
    "compare": "gridsched.comparison",
    "explain": "gridsched.explanation",
    "fetch": "gridsched.traces",
    "read_sacct": "gridsched.traces",
    "read_swf": "gridsched.traces",
    "select_window": "gridsched.traces",
    "simulate": "gridsched.simulation.clusters",
    "simulate_calendars": "gridsched.simulation.calendars",
    "simulate_dynamic_grid": "gridsched.simulation.dynamic_grid",
    "simulate_grid": "gridsched.simulation.clusters",
    "simulate_ideal": "gridsched.simulation.ideal",
    "simulate_multicluster": "gridsched.simulation.multicluster",
    "simulate_self_scheduling": "gridsched.simulation.self_scheduling",
    "summarise": "gridsched.metrics.jobs",
    "summarise_grid": "gridsched.metrics.grid",
    "synthesise": "gridsched.workloads",
    "verify": "gridsched.verification.runs",
    "write_swf": "gridsched.traces",
}

__all__ = [
    "Cluster",
    "GridschedError",
    "JScheduler",
    "LocalPolicy",
    "Multicluster",
    "Superscheduler",
    "Workload",
    "clean",
    "compare",
    "explain",
    "fetch",
    "read_sacct",
    "read_swf",
    "select_window",
    "simulate",
    "simulate_calendars",
    "simulate_dynamic_grid",
    "simulate_grid",
    "simulate_ideal",
    "simulate_multicluster",
    "simulate_self_scheduling",
    "summarise",
    "summarise_grid",
    "synthesise",
    "verify",
    "write_swf",
]

__getattr__, __dir__ = attach(__name__, _HOMES)

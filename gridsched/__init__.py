"""gridsched: simulate, compare and reproduce schedulers of parallel jobs on clusters and grids.

The usual names are here; they are loaded when they are first used, so that importing gridsched is quick.

>>> import gridsched as gs
>>> workload = gs.clean(gs.read_swf("KTH-SP2-1996-2.1-cln.swf.gz"))  # doctest: +SKIP
>>> run = gs.simulate(workload, scheduler="easy")  # doctest: +SKIP
>>> gs.summarise(run)["bounded_slowdown_mean"]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched import plot
    from gridsched.comparison import compare, what_if
    from gridsched.errors import GridschedError
    from gridsched.explanation import explain
    from gridsched.forecasting.present import forecast
    from gridsched.platform import Cluster, Platform
    from gridsched.policies.local import LocalPolicy
    from gridsched.simulation import simulate
    from gridsched.summary import summarise
    from gridsched.systems.calendars.scheduler import Calendars
    from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
    from gridsched.systems.ideal.scheduler import Ideal
    from gridsched.systems.jscheduler.scheduler import JScheduler
    from gridsched.systems.multicluster.scheduler import Multicluster
    from gridsched.systems.multiple_requests.scheduler import MultipleRequests
    from gridsched.systems.slurm.differences import explain_against
    from gridsched.systems.slurm.scheduler import Slurm
    from gridsched.systems.slurm.site import read_slurm_site
    from gridsched.systems.superscheduler.scheduler import Superscheduler
    from gridsched.traces import clean, fetch, read_sacct, read_swf, select_window, write_swf
    from gridsched.verification import verify
    from gridsched.workloads import Workload, load_machines, resample, shake, synthesise

_HOMES: dict[str, str] = {
    "Calendars": "gridsched.systems.calendars.scheduler",
    "Cluster": "gridsched.platform",
    "DynamicGrid": "gridsched.systems.dynamic_grid.scheduler",
    "GridschedError": "gridsched.errors",
    "Ideal": "gridsched.systems.ideal.scheduler",
    "JScheduler": "gridsched.systems.jscheduler.scheduler",
    "LocalPolicy": "gridsched.policies.local",
    "Multicluster": "gridsched.systems.multicluster.scheduler",
    "MultipleRequests": "gridsched.systems.multiple_requests.scheduler",
    "Platform": "gridsched.platform",
    "Slurm": "gridsched.systems.slurm.scheduler",
    "Superscheduler": "gridsched.systems.superscheduler.scheduler",
    "Workload": "gridsched.workloads",
    "clean": "gridsched.traces",
    "compare": "gridsched.comparison",
    "explain": "gridsched.explanation",
    "explain_against": "gridsched.systems.slurm.differences",
    "fetch": "gridsched.traces",
    "forecast": "gridsched.forecasting.present",
    "load_machines": "gridsched.workloads",
    "plot": "gridsched.plot",
    "read_sacct": "gridsched.traces",
    "read_slurm_site": "gridsched.systems.slurm.site",
    "read_swf": "gridsched.traces",
    "resample": "gridsched.workloads",
    "select_window": "gridsched.traces",
    "shake": "gridsched.workloads",
    "simulate": "gridsched.simulation",
    "summarise": "gridsched.summary",
    "synthesise": "gridsched.workloads",
    "verify": "gridsched.verification",
    "what_if": "gridsched.comparison",
    "write_swf": "gridsched.traces",
}

__all__ = [
    "Calendars",
    "Cluster",
    "DynamicGrid",
    "GridschedError",
    "Ideal",
    "JScheduler",
    "LocalPolicy",
    "Multicluster",
    "MultipleRequests",
    "Platform",
    "Slurm",
    "Superscheduler",
    "Workload",
    "clean",
    "compare",
    "explain",
    "explain_against",
    "fetch",
    "forecast",
    "load_machines",
    "plot",
    "read_sacct",
    "read_slurm_site",
    "read_swf",
    "resample",
    "select_window",
    "shake",
    "simulate",
    "summarise",
    "synthesise",
    "verify",
    "what_if",
    "write_swf",
]

__getattr__, __dir__ = attach(__name__, _HOMES)

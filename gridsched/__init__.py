"""gridsched: simulate, compare and reproduce schedulers of parallel jobs on clusters and grids.

The usual names are here; they are loaded when they are first used, so that importing gridsched is quick.

>>> import gridsched as gs
>>> workload = gs.clean(gs.read_swf("KTH-SP2-1996-2.1-cln.swf.gz"))  # doctest: +SKIP
>>> run = gs.simulate(workload, policy="easy")  # doctest: +SKIP
>>> gs.summarise(run)["bounded_slowdown_mean"]  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridsched.errors import GridschedError
    from gridsched.metrics import summarise
    from gridsched.platforms import Cluster
    from gridsched.schedulers.local import LocalPolicy
    from gridsched.simulation import simulate
    from gridsched.traces import clean, fetch, read_swf, select_window, write_swf
    from gridsched.verify import verify
    from gridsched.workloads import Workload, synthesise

_HOMES: dict[str, str] = {
    "Cluster": "gridsched.platforms",
    "GridschedError": "gridsched.errors",
    "LocalPolicy": "gridsched.schedulers.local",
    "Workload": "gridsched.workloads",
    "clean": "gridsched.traces",
    "fetch": "gridsched.traces",
    "read_swf": "gridsched.traces",
    "select_window": "gridsched.traces",
    "simulate": "gridsched.simulation",
    "summarise": "gridsched.metrics",
    "synthesise": "gridsched.workloads",
    "verify": "gridsched.verify",
    "write_swf": "gridsched.traces",
}

__all__ = [
    "Cluster",
    "GridschedError",
    "LocalPolicy",
    "Workload",
    "clean",
    "fetch",
    "read_swf",
    "select_window",
    "simulate",
    "summarise",
    "synthesise",
    "verify",
    "write_swf",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gridsched' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

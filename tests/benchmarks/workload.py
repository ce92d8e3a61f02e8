"""Job streams for the benchmarks: synthetic ones with heavy tails, and logs of the archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import JOB
from gridsched.traces import clean, read_swf

PROCESSORS = 4096
"""Size of the cluster of the synthetic jobs."""

_HOUR = 3600
_LONGEST_RUN = 48 * _HOUR
_SERIAL = 0.2
_POWERS_OF_TWO = 0.75
_USUAL_HOURS = (1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48)
_USUAL_LIMITS = np.array([60, 300, 600, 900, 1800, *(_HOUR * hours for hours in _USUAL_HOURS)])


@dataclass(frozen=True, eq=False)
class Stream:
    """Jobs as the engine takes them, and the cluster."""

    name: str
    jobs: NDArray[Any]  # JOB[n]
    processors: int


def synthetic(load: float, number: int = 1_000_000, seed: int = 20) -> Stream:
    """Poisson stream that offers `load` times the work that the cluster can do.

    The same jobs come at every load, only their distances differ.
    """
    random = np.random.default_rng(seed)
    jobs = np.empty(number, JOB)
    jobs["processors"] = _sizes(random, number)
    jobs["run"] = np.clip(np.ceil(random.lognormal(np.log(900), 1.8, number)), 1, _LONGEST_RUN)
    wanted = jobs["run"] * random.uniform(1, 6, number)
    limit = np.searchsorted(_USUAL_LIMITS, np.minimum(wanted, _LONGEST_RUN))
    jobs["estimate"] = _USUAL_LIMITS[limit]
    jobs["submit"] = arrivals(random, number, (jobs["run"] * jobs["processors"]).sum(), load * PROCESSORS)
    return Stream(f"synthetic {load:g}", jobs, PROCESSORS)


def arrivals(random: np.random.Generator, number: int, work: float, busy: float) -> NDArray[np.int64]:
    """Submit times of a Poisson stream of jobs that keeps so many processors busy with its work."""
    gaps = random.exponential(size=number)
    return np.cumsum(gaps * (float(work) / gaps.sum() / busy)).astype(np.int64)


def _sizes(random: np.random.Generator, number: int) -> NDArray[np.int64]:
    """Log-normal sizes, a fifth of them one processor and most others powers of two."""
    exponent = random.normal(4, 2.45, number).clip(0, np.log2(PROCESSORS))
    exponent = np.where(random.random(number) < _POWERS_OF_TWO, np.rint(exponent), exponent)
    sizes = np.rint(2**exponent).astype(np.int64)
    return np.where(random.random(number) < _SERIAL, 1, sizes)


def archive(path: Path) -> Stream:
    """Cleaned log of the workload archive; the estimate is the requested time, else the run time."""
    workload = clean(read_swf(path))
    requested = np.where(workload.requested_time > 0, workload.requested_time, workload.run_time)
    jobs = np.empty(len(workload), JOB)
    jobs["submit"] = workload.submit_time
    jobs["run"] = workload.run_time
    jobs["estimate"] = np.maximum(requested, 1)
    jobs["processors"] = workload.processors
    assert workload.processors_available is not None
    return Stream(workload.name, jobs, workload.processors_available)

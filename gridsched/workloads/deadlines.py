"""Deadlines of jobs: drawn relative to their run times, for all jobs together or by service class.

He et al., "Hybrid performance-based workload management for multiclusters and grids" (IEE Proceedings -
Software 151, 2004), equation (5): the deadline is (1 + dr) times the run time on the slowest cluster after
the submission, with the ratio dr uniform in a range. The submission is missing in the paper's formula. A
service class, section 2 there, is a range of its own: gold has shorter deadlines than silver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError, check_number, check_whole
from gridsched.workloads.table import Workload

_RATIOS, _CLASSES = 0, 1
"""Kinds of random streams; the numbers are part of what a seed means."""


@dataclass(frozen=True, kw_only=True)
class ServiceClass:
    """Jobs that are promised the same.

    Parameters
    ----------
    name : str
        Name in results.
    low, high : float
        Range of the deadline ratio dr.
    share : float
        Share of the jobs, relative to those of the other classes, where classes are drawn.

    Raises
    ------
    WorkloadError
        If a value is out of range.
    """

    name: str = "all"
    low: float = 0.0
    high: float = 5.0
    share: float = 1.0

    def __post_init__(self) -> None:
        check_number(f"service class {self.name}: low", self.low, least=0, error=WorkloadError)
        check_number(f"service class {self.name}: high", self.high, least=self.low, error=WorkloadError)
        check_number(f"service class {self.name}: share", self.share, least=0, error=WorkloadError)


def draw_deadlines(
    workload: Workload,
    classes: Sequence[ServiceClass],
    *,
    seed: int,
    slowest: float = 1.0,
    service_class: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Deadline of each job, equation (5).

    One random number a job is stretched to the range of its class, so that deadlines of several ranges
    keep their order.

    Parameters
    ----------
    workload : Workload
        The jobs, with submit times and run times in whole seconds.
    classes : sequence of ServiceClass
        At least one.
    seed : int
        Seed of the ratios.
    slowest : float
        Speed of the slowest cluster, relative to the machine of the workload.
    service_class : int[n], optional
        Class of each job (see `draw_classes`); all belong to the first if not given.

    Returns
    -------
    int64[n]
        Seconds, on the clock of the submit times.

    Raises
    ------
    WorkloadError
        If there is no class, a class that does not exist, or the speed is not positive.
    """
    if not classes:
        raise WorkloadError("deadlines: there is no service class; give at least one")
    check_number("deadlines: the slowest speed", slowest, above=0, error=WorkloadError)
    given = np.zeros(len(workload), np.int64) if service_class is None else np.asarray(service_class)
    if given.shape != (len(workload),) or (len(given) and not 0 <= given.min() <= given.max() < len(classes)):
        raise WorkloadError(
            f"deadlines: give one of the {len(classes)} classes for each of the {len(workload)} jobs"
        )
    low = np.array([each.low for each in classes])[given]
    high = np.array([each.high for each in classes])[given]
    ratio = low + (high - low) * _stream(seed, _RATIOS).random(len(workload))
    longest = np.ceil(np.asarray(workload.run_time, np.float64) / slowest)
    return np.asarray(workload.submit_time + np.ceil(longest * (1 + ratio)).astype(np.int64))


def draw_classes(jobs: int, classes: Sequence[ServiceClass], *, seed: int) -> NDArray[np.int64]:
    """Class of each of this number of jobs, drawn by the shares.

    Raises
    ------
    WorkloadError
        If no class has a share.
    """
    shares = np.array([each.share for each in classes], np.float64)
    if not shares.sum() > 0:
        raise WorkloadError("service classes: no class has a share; give one of them a positive share")
    edges = np.cumsum(shares)
    drawn = _stream(seed, _CLASSES).random(jobs) * edges[-1]
    index: NDArray[np.int64] = np.searchsorted(edges, drawn, side="right").astype(np.int64)
    return index.clip(max=len(classes) - 1)


def _stream(seed: int, kind: int) -> np.random.Generator:
    seed = check_whole("deadlines and service classes: seed", seed, error=WorkloadError)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(kind,)))

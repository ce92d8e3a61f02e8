"""Synthetic parallel jobs for multiclusters, after section 5 of He et al. (see `deadlines`).

Arrivals are a Poisson process; run times follow a bounded Pareto distribution, equation (4); sizes are
uniform, normal, or such that the probability of a job of fewer than n processors grows as log n. The paper
leaves the exponent of (4) open, here 1 by default, and the parameters of the normal distribution, here the
middle of the range with a sixth of its width as deviation. Each kind of value has a random stream of its own:
another rate stretches the arrivals and changes nothing else, and a longer workload begins with the shorter
one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.workloads.bounded_pareto import BoundedPareto
from gridsched.workloads.table import Workload

SizesName = Literal["uniform", "normal", "log"]

_ARRIVALS, _RUN_TIMES, _SIZES = range(3)
"""Kinds of random streams; the numbers are part of what a seed means."""

UNIT = 1000
"""Seconds that stand for one unit of time of the paper, whose shortest job takes five."""


@dataclass(frozen=True, kw_only=True)
class MulticlusterModel:
    """Distributions of jobs.

    Parameters
    ----------
    run_time : BoundedPareto
        Run times on a cluster of speed 1, in units of time.
    sizes : {"uniform", "normal", "log"}
        Distribution of sizes.
    smallest, largest : int
        Range of sizes, processors.
    unit : int
        Seconds of one unit of time.

    Raises
    ------
    WorkloadError
        If a value is out of range.
    """

    run_time: BoundedPareto = field(default_factory=lambda: BoundedPareto(1.0, 5.0, 100.0))
    sizes: SizesName = "uniform"
    smallest: int = 1
    largest: int = 10
    unit: int = UNIT

    def __post_init__(self) -> None:
        if self.sizes not in get_args(SizesName):
            raise WorkloadError(f"sizes is {self.sizes!r}; use one of {', '.join(get_args(SizesName))}")
        if not 1 <= self.smallest <= self.largest:
            raise WorkloadError(
                f"sizes from {self.smallest} to {self.largest}; use a range that begins at 1 or more"
            )
        if self.unit < 1:
            raise WorkloadError(f"unit is {self.unit}; use 1 or more seconds")

    @property
    def size_distribution(self) -> NDArray[np.float64]:
        """Probability of each size from the smallest to the largest."""
        edges = np.arange(self.smallest, self.largest + 2, dtype=np.float64)
        middle, deviation = (self.smallest + self.largest) / 2, max(self.largest - self.smallest, 1) / 6
        below = {
            "uniform": edges,
            "normal": scipy.special.ndtr((edges - 0.5 - middle) / deviation),
            "log": np.log(edges),
        }[self.sizes]
        share: NDArray[np.float64] = np.diff(below) / (below[-1] - below[0])
        return share

    @property
    def mean_work(self) -> float:
        """Mean of run time x size, units of time."""
        sizes = np.arange(self.smallest, self.largest + 1)
        return self.run_time.mean * float(sizes @ self.size_distribution)


def synthesise_multicluster(
    model: MulticlusterModel, *, jobs: int, rate: float, seed: int, name: str = "multicluster"
) -> Workload:
    """Draw jobs.

    Parameters
    ----------
    model : MulticlusterModel
        Distributions.
    jobs : int
        How many.
    rate : float
        Mean number of arrivals in a unit of time.
    seed : int
        The same seed and parameters give the same workload, bit for bit.
    name : str
        Name of the workload.

    Returns
    -------
    Workload
        In whole seconds: submit times rounded down, run times up. Requested times are the run times.

    Raises
    ------
    WorkloadError
        If a parameter is out of range.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise_multicluster(gs.MulticlusterModel(), jobs=150, rate=0.3, seed=1)
    >>> len(jobs)
    150
    """
    if jobs < 1:
        raise WorkloadError(f"{name}: jobs is {jobs}, it must be at least 1")
    if not (rate > 0 and np.isfinite(rate)):
        raise WorkloadError(f"{name}: rate is {rate}, it must be positive")
    arrivals = np.cumsum(_stream(seed, _ARRIVALS).standard_exponential(jobs)) / rate
    submit_time = np.floor(arrivals * model.unit).astype(np.int64)
    run_time = np.ceil(model.run_time.sample(jobs, _stream(seed, _RUN_TIMES)) * model.unit).astype(np.int64)
    below = np.cumsum(model.size_distribution)[:-1]
    drawn = np.searchsorted(below, _stream(seed, _SIZES).random(jobs), side="right")
    processors = model.smallest + drawn.astype(np.int64)
    described = json.dumps({**asdict(model), "jobs": jobs, "rate": rate, "seed": seed}, sort_keys=True)
    digest = hashlib.sha256(described.encode())
    for column in (submit_time, run_time, processors):
        digest.update(column.astype("<i8").tobytes())
    return Workload(
        name=name,
        submit_time=submit_time,
        run_time=run_time,
        requested_processors=processors,
        requested_time=run_time,
        header=("Synthetic parallel jobs for a multicluster", f"Parameters: {described}"),
        checksum=digest.hexdigest(),
    )


def in_batches(workload: Workload, size: int, *, slowest: float = 1.0) -> Workload:
    """Workload whose jobs are submitted together, so many at a time.

    Between two batches there is as much time as the earlier one takes if its jobs run one after the other on
    the slowest cluster, so that all clusters are idle when a batch comes.

    Parameters
    ----------
    workload : Workload
        The jobs, which keep their order and how long they have until their deadlines.
    size : int
        Jobs of a batch; the last one has what is left.
    slowest : float
        Speed of the slowest cluster.

    Raises
    ------
    WorkloadError
        If the size is below 1.
    """
    if size < 1:
        raise WorkloadError(f"batches: size is {size}, it must be at least 1")
    first = np.arange(0, len(workload), size)
    lasts = np.ceil(np.add.reduceat(workload.run_time / slowest + 1, first)).astype(np.int64)
    submit_time = (np.cumsum(lasts) - lasts)[np.arange(len(workload)) // size]
    digest = hashlib.sha256(f"{workload.checksum} batches {size} {slowest!r}".encode())
    due = None if workload.deadline is None else workload.deadline + submit_time - workload.submit_time
    return replace(workload, submit_time=submit_time, deadline=due, checksum=digest.hexdigest())


def _stream(seed: int, kind: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(kind,)))

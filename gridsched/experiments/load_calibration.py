"""Size exponents at which a simulated cluster makes its jobs wait as long as a published one.

Where a cluster is overloaded its utilisation says little, since it stays below 1 whatever the load; the mean
wait then says more about the load. Table 6 of Shan, Oliker and Biswas (SC 2003) has one such column: M1 in
the heavy workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from gridsched.errors import WorkloadError
from gridsched.platform import Cluster
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import simulate
from gridsched.workloads.size_classes import Fill, Machine, SizeModel
from gridsched.workloads.synthesis import synthesise

EXPONENT_BOUND = 30.0
"""Exponents are sought from minus this to this; beyond, nearly all jobs of a class have the same size."""

_EXPONENT_TOLERANCE = 1e-6
"""Exponents closer than this give the same sizes to nearly every job that is drawn."""


class CalibratedWait(NamedTuple):
    """An exponent of the power law of sizes, and the mean wait in seconds that was simulated with it."""

    exponent: float
    wait_time: float


def calibrate_exponent_to_wait(
    machine: Machine,
    target_wait: float,
    *,
    duration: float,
    seeds: Sequence[int],
    fill: Fill = "powers",
    policy: str | LocalPolicy = "easy",
) -> CalibratedWait:
    """Exponent of the power law of sizes at which a machine's jobs wait as long as wanted, on average.

    Every exponent is tried on the same arrivals, run times and requested times, so that the search sees the
    effect of the sizes alone. The mean wait falls as the exponent rises, since jobs become smaller, but with
    small steps up between: backfilling amplifies small changes. Where several exponents meet the target, the
    search finds one of them; where the wait jumps over it, the nearest one that was tried.

    This calibrates an input, sizes inside the classes, which the paper does not give; it is no result.

    Parameters
    ----------
    machine : Machine
        Its nodes run one job at a time.
    target_wait : float
        Wanted mean wait, s.
    duration : float
        Time in which jobs arrive, s; all of them run to their end.
    seeds : sequence of int
        One replicate each, as in `gridsched.workloads.synthesise`, with its default requested times.
    fill : {"powers", "whole", "partial"}
        As in `SizeModel`.
    policy : str or LocalPolicy
        Local policy, as in `gridsched.simulate`.

    Returns
    -------
    CalibratedWait
        The same arguments give the same, bit for bit.

    Raises
    ------
    WorkloadError
        Where there are no seeds, the target is not a positive number, or no exponent within
        `EXPONENT_BOUND` gives that wait; the message has the range that is possible.
    """
    if not len(seeds):
        raise WorkloadError(f"machine {machine.name}: there are no seeds, give one for each replicate")
    if not (target_wait > 0 and np.isfinite(target_wait)):
        raise WorkloadError(f"machine {machine.name}: target wait is {target_wait} s, it must be positive")

    tried: dict[float, float] = {}

    def excess(exponent: float) -> float:
        sizes = SizeModel(exponent=exponent, fill=fill)
        waits = local_waits(machine, sizes, duration=duration, seeds=seeds, policy=policy)
        tried[exponent] = float(waits.mean())
        return tried[exponent] - target_wait

    most, least = excess(-EXPONENT_BOUND), excess(EXPONENT_BOUND)
    if not least <= 0 <= most:
        raise WorkloadError(
            f"machine {machine.name}: no exponent gives a mean wait of {target_wait:,.0f} s; "
            f"sizes inside the classes allow {least + target_wait:,.0f} to {most + target_wait:,.0f} s"
        )
    scipy.optimize.bisect(excess, -EXPONENT_BOUND, EXPONENT_BOUND, xtol=_EXPONENT_TOLERANCE)
    # Where the mean wait jumps over the target, either side of the jump may be nearer to it.
    nearest = min(tried, key=lambda exponent: abs(tried[exponent] - target_wait))
    return CalibratedWait(nearest, tried[nearest])


def local_waits(
    machine: Machine,
    sizes: SizeModel,
    *,
    duration: float,
    seeds: Sequence[int],
    policy: str | LocalPolicy = "easy",
) -> NDArray[np.float64]:
    """Mean wait of each replicate of a machine's synthetic workload on the cluster alone.

    Parameters
    ----------
    machine : Machine
        Its nodes run one job at a time.
    sizes : SizeModel
    duration, seeds, policy
        As in `calibrate_exponent_to_wait`.

    Returns
    -------
    array of float64
        Mean wait over the jobs of each replicate, s; shape (seeds,).
    """
    cluster = Cluster(
        processors=machine.processors,
        processors_per_node=machine.processors_per_node,
        node_exclusive=True,
        name=machine.name,
    )
    waits = np.empty(len(seeds))
    for replicate, seed in enumerate(seeds):
        run = simulate(synthesise(machine, seed=seed, duration=duration, sizes=sizes), cluster, policy)
        waits[replicate] = float((run["start_time"] - run["submit_time"]).mean())
    return waits

"""From a log to the model of its machine: size classes, and hyper-Erlang distributions for each of them.

The method of Shan, Oliker and Biswas (SC 2003, section 3.1), after Jann et al. (JSSPP 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError, check_choice, check_number
from gridsched.workloads.fitting import (
    MAX_ORDER,
    HyperErlangFit,
    fit_hyper_erlang,
    goodness,
    non_central_moments,
)
from gridsched.workloads.hyper_erlang import HyperErlang
from gridsched.workloads.size_classes import Machine, SizeClass
from gridsched.workloads.table import Workload

MINIMUM_SHARE = 0.02
"""Share of the jobs below which a class is merged with a neighbour."""

Incomplete = Literal["error", "leave-out"]


class ClassBounds(NamedTuple):
    """Smallest and largest number of processors of a class, and its share of the jobs in [0, 1]."""

    low: int
    high: int
    share: float


@dataclass(frozen=True)
class MachineFit:
    """A machine whose workload model was fitted to a log.

    Parameters
    ----------
    machine : Machine
    table : pandas.DataFrame
        One row a class ("low-high"): `low`, `high`, `jobs`, `share`, `served` (jobs whose run time was used),
        `unknown_run_time` and `zero_run_time` (jobs that count as arrivals only), `zero_interarrival` (times
        between arrivals that are 0 s, used as they are); then, with the prefixes `interarrival_` and
        `service_`: `moment_1` to `moment_3`, `order`, `rate_1`, `rate_2`, `p`, `ks_distance`, `matched`,
        `reason`.
    interarrival, service : tuple of HyperErlangFit
        The fits by class.
    """

    machine: Machine
    table: pd.DataFrame
    interarrival: tuple[HyperErlangFit, ...]
    service: tuple[HyperErlangFit, ...]


def size_classes_of(
    processors: ArrayLike,
    processors_per_node: int,
    minimum_share: float = MINIMUM_SHARE,
    largest: int | None = None,
) -> list[ClassBounds]:
    """Group job sizes into classes.

    A class begins as the sizes of one node count. One with less than `minimum_share` of the jobs is merged
    with the smaller of its neighbours.

    Parameters
    ----------
    processors : array_like of int
        Processors of each job, at least 1.
    processors_per_node : int
    minimum_share : float
        In [0, 1).
    largest : int, optional
        Where the last class ends, the processors of the machine; without it the largest job.

    Returns
    -------
    list of ClassBounds
        By size; the classes tile 1 to `largest`.

    Raises
    ------
    WorkloadError
        Where there are no jobs, a size is not from 1 to `largest`, or an option is out of range.

    Notes
    -----
    The paper does not say in which order classes are merged, nor whether the smaller neighbour has smaller
    jobs or fewer of them. Reading taken here: node counts from the smallest on; one that is too rare joins
    the class below it; if the first class is too rare in the end, it joins the next. No ties can occur.
    All published classes begin at node counts that users favour, as they do in this reading; on the log of M3
    it gives five of the six bounds of Table 4 (the last class has 1.1 % of the jobs there), while the reading
    "fewer jobs" gives two, since it ends classes at the favoured counts.
    """
    sizes = np.asarray(processors)
    top = _checked_sizes(sizes, processors_per_node, minimum_share, largest)
    nodes = -(-top // processors_per_node)
    jobs = np.bincount((sizes.astype(np.int64) - 1) // processors_per_node, minlength=nodes) / sizes.size
    first = np.flatnonzero(jobs >= minimum_share)
    first = np.union1d([0], first)
    if len(first) > 1 and jobs[: first[1]].sum() < minimum_share:
        first = np.delete(first, 1)
    lows = first * processors_per_node + 1
    highs = np.append(lows[1:] - 1, top)
    shares = np.add.reduceat(jobs, first)
    return [
        ClassBounds(*bounds) for bounds in zip(lows.tolist(), highs.tolist(), shares.tolist(), strict=True)
    ]


def _checked_sizes(sizes: NDArray[Any], per_node: int, minimum_share: float, largest: int | None) -> int:
    """Largest size of the last class, after checks of the arguments of `size_classes_of`."""
    check_number("size classes: processors per node", per_node, least=1, error=WorkloadError)
    check_number("size classes: minimum share", minimum_share, least=0, below=1, error=WorkloadError)
    if not sizes.size:
        raise WorkloadError("size classes: there are no jobs to group")
    top = int(sizes.max()) if largest is None else largest
    wrong = int(np.count_nonzero(~((sizes >= 1) & (sizes <= top))))
    if wrong:
        raise WorkloadError(
            f"size classes: {wrong:,} of {sizes.size:,} jobs have a size outside 1 to {top}; "
            "clean the log first"
        )
    return top


def fit_machine(
    workload: Workload,
    *,
    nodes: int,
    processors_per_node: int,
    mhz: float,
    name: str | None = None,
    classes: Sequence[tuple[int, int]] | None = None,
    minimum_share: float = MINIMUM_SHARE,
    max_order: int = MAX_ORDER,
    incomplete: Incomplete = "error",
) -> MachineFit:
    """Fit the workload model of a machine to a log.

    Parameters
    ----------
    workload : Workload
        Jobs with known submit times and sizes, in any order.
    nodes, processors_per_node, mhz
        Shape and clock speed of the machine, as in `Machine`.
    name : str, optional
        Name of the machine; without it that of the workload.
    classes : sequence of (int, int), optional
        Bounds of the size classes, both inside, that hold every job; without them `size_classes_of`.
    minimum_share : float
        As in `size_classes_of`.
    max_order : int
        As in `fit_hyper_erlang`.
    incomplete : {"error", "leave-out"}
        What happens to jobs without a positive run time, such as those cancelled while they waited: an error,
        or they count as arrivals but not for the service times; the table counts them.

    Returns
    -------
    MachineFit

    Raises
    ------
    WorkloadError
        Where the workload is empty, a submit time, size or run time cannot be used, or a class has fewer than
        two jobs or none with a run time.

    Notes
    -----
    Times between arrivals are those between jobs of the same class. Logs in whole seconds have some of 0 s:
    they are real and used.
    """
    label = name or workload.name
    _check_jobs(workload, incomplete)
    processors = workload.processors
    bounds = (
        [
            (c.low, c.high)
            for c in _classes_of(workload, nodes * processors_per_node, processors_per_node, minimum_share)
        ]
        if classes is None
        else list(classes)
    )
    _check_bounds(workload.name, bounds, processors)
    rows = [_fit_class(workload, low, high, max_order) for low, high in bounds]
    size_classes = tuple(
        SizeClass(low, high, row.interarrival.distribution, row.service.distribution, row.facts["share"])
        for (low, high), row in zip(bounds, rows, strict=True)
    )
    table = pd.DataFrame([row.facts for row in rows], index=_labels(size_classes))
    return MachineFit(
        Machine(label, nodes, processors_per_node, mhz, size_classes),
        table,
        tuple(row.interarrival for row in rows),
        tuple(row.service for row in rows),
    )


def _labels(classes: Sequence[SizeClass]) -> pd.Index[str]:
    return pd.Index([f"{c.low}-{c.high}" for c in classes], name="processors")


def _classes_of(workload: Workload, largest: int, per_node: int, minimum_share: float) -> list[ClassBounds]:
    """Size classes of a workload, with its name in the errors."""
    try:
        return size_classes_of(workload.processors, per_node, minimum_share, largest)
    except WorkloadError as error:
        raise WorkloadError(f"{workload.name}: {error}") from error


def _check_jobs(workload: Workload, incomplete: Incomplete) -> None:
    """Refuse jobs that cannot be used."""
    check_choice("incomplete", incomplete, get_args(Incomplete), WorkloadError)
    if not len(workload):
        raise WorkloadError(f"{workload.name}: there are no jobs to fit a model to")
    unusable = {"submit time": workload.submit_time < 0, "size": workload.processors < 1}
    for what, wrong in unusable.items():
        if wrong.any():
            raise WorkloadError(
                f"{workload.name}: {np.count_nonzero(wrong):,} jobs have no {what}; clean the log first"
            )
    negative, zero = (int(np.count_nonzero(m)) for m in (workload.run_time < 0, workload.run_time == 0))
    if incomplete == "error" and negative + zero:
        raise WorkloadError(
            f"{workload.name}: {negative:,} jobs have no run time and {zero:,} one of zero; clean the log, "
            "or leave them out of the service times"
        )


def _check_bounds(name: str, bounds: Sequence[tuple[int, int]], processors: NDArray[np.int64]) -> None:
    """Refuse classes that overlap or do not hold every job."""
    for (_, high), (low, _) in pairwise(bounds):
        if low <= high:
            raise WorkloadError(
                f"{name}: size class from {low} begins below the end of the one before, {high}"
            )
    inside = sum(int(np.count_nonzero((processors >= low) & (processors <= high))) for low, high in bounds)
    if inside < len(processors):
        raise WorkloadError(
            f"{name}: {len(processors) - inside:,} jobs are in none of the size classes given"
        )


class _ClassFit(NamedTuple):
    facts: dict[str, Any]
    interarrival: HyperErlangFit
    service: HyperErlangFit


def _fit_class(workload: Workload, low: int, high: int, max_order: int) -> _ClassFit:
    """Fits and row of the table of one class."""
    inside = (workload.processors >= low) & (workload.processors <= high)
    label = f"{workload.name}: size class {low}-{high}"
    jobs = int(np.count_nonzero(inside))
    if jobs < 2:
        raise WorkloadError(
            f"{label} has {jobs} job{'s' if jobs != 1 else ''}, two are needed for a time between arrivals; "
            "use wider classes, a higher minimum share or a longer log"
        )
    between = np.diff(np.sort(workload.submit_time[inside]))
    run_time = workload.run_time[inside]
    served = run_time[run_time > 0]
    arrivals, arrival_facts = _fit_times(
        between, f"{label}: times between arrivals", max_order, "interarrival"
    )
    service, service_facts = _fit_times(served, f"{label}: run times", max_order, "service")
    facts = {
        "low": low,
        "high": high,
        "jobs": jobs,
        "share": jobs / len(workload),
        "served": len(served),
        "unknown_run_time": int(np.count_nonzero(run_time < 0)),
        "zero_run_time": int(np.count_nonzero(run_time == 0)),
        "zero_interarrival": int(np.count_nonzero(between == 0)),
    }
    return _ClassFit(facts | arrival_facts | service_facts, arrivals, service)


def _fit_times(
    times: NDArray[Any], what: str, max_order: int, prefix: str
) -> tuple[HyperErlangFit, dict[str, Any]]:
    """Fit of one kind of times, and its columns of the table."""
    moments = non_central_moments(times, what=what, allow_zero=prefix == "interarrival")
    fit = fit_hyper_erlang(moments, max_order=max_order)
    columns: dict[str, Any] = {f"moment_{k}": moment for k, moment in enumerate(moments.tolist(), start=1)}
    columns |= _parameters(fit.distribution)
    columns |= {"ks_distance": goodness(fit, times).ks_distance, "matched": fit.matched, "reason": fit.reason}
    return fit, {f"{prefix}_{column}": value for column, value in columns.items()}


def _parameters(distribution: HyperErlang) -> dict[str, float]:
    d = distribution
    return {"order": d.order, "rate_1": d.rate_1, "rate_2": d.rate_2, "p": d.p}

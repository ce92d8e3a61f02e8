"""MUSCLE: which cluster of several runs which parallel jobs, so that they can be packed tightly.

He, Jarvis, Spooner, Chen and Nudd, "Hybrid performance-based workload management for multiclusters and grids"
(IEE Proceedings - Software 151, 2004), section 4. Jobs that were collected for a while are listed in a
composition table: row r has sets of jobs that use r resources together (algorithm 1). The cluster with the
least epsilon, equation (3), then gets a set of jobs for the resources that it has free first (algorithms 2
and 3), and so on until all jobs are allocated (algorithm 4). Each cluster's local scheduler, TITAN, starts
from the schedule that results.

The algorithms do not work as they are printed. What is repaired:

Algorithm 1
    A composition that holds job J_i is not joined with J_i: the printed test looks only for jobs that are in
    the row that is filled.
Algorithm 2
    It may call itself forever, or put a job into q twice. Each composition is looked at once for a space and
    row, and jobs that are in q count as allocated, also between calls. It fails if the row of a job has no
    other composition left, not only if it has no other at all.
Algorithm 3
    Step 9 means algorithm 2. After a failure q is emptied. Without a composition in any row it fails.
Algorithm 4
    Step 1 waits while *all* clusters have long work; `scheduler` offers both what is
    printed and waiting for the last cluster. Steps 5 to 9 serve the one cluster with the least epsilon. A
    space that no job left can use merges with the next release of the cluster, and a cluster as a whole free
    that none can use is left out. Epsilon is 0 for a cluster without jobs. A job counts with a slack of at
    least 1 s, since slack may be 0 or, with deadlines that users choose, negative.
Equation (1)
    Each metric has the weight of its name, see `titan`.
Equation (2)
    The best schedule has fitness 1, the worst 0.
Equation (4)
    Alpha is not given (1 in `jobs`).
Equation (5)
    The submission is added to the deadline; `due_from` offers the round instead.
DLL and WRAND
    A cluster may have exactly as many resources as a job needs; the paper asks for more (`fit` of
    `scheduler.Multicluster`).

Decided here: a space is all resources that are free at the time at which the cluster's first become free,
next to each other or not, and jobs take the lowest of them in the order of q. The workload of a cluster in
equation (3) is made of the jobs that it has but has not started, and of those just allocated. Space is
available when the resources have been left by the jobs that the cluster has already, which keep their places.

Where a cluster gives whole nodes to jobs, its resources are nodes, and a job uses as many as hold its
processors. So the size of a job is that on each cluster: there is a composition table for each number of
processors of a node, which counts jobs in such nodes, and the cluster with the least epsilon is filled from
the table for its nodes. What is allocated is so in all tables. Epsilon counts the processors that are taken.

`schedule_queue` does all this once, for any queue and clusters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from gridsched.engine import bundles
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platform import Cluster, Platform
from gridsched.systems.multicluster.kernels import composition, packing
from gridsched.systems.multicluster.kernels.composition import NOWHERE, Allocation
from gridsched.systems.multicluster.titan import (
    Coding,
    Optimised,
    Titan,
    Weights,
    measured,
    optimise,
    packed,
    starts,
    stream,
)

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_TABLE = 10**8
"""Most jobs x rows of a composition table; at about 20 B each it would take 2 GB."""


def composition_table(processors: ArrayLike, rows: int) -> list[list[tuple[int, ...]]]:
    """Composition table of jobs that use so many resources each (algorithm 1).

    Parameters
    ----------
    processors : int[p]
        Resources of each job.
    rows : int
        Size of the largest cluster.

    Returns
    -------
    list of list of tuple
        Row r is the entry r - 1: its compositions in order, each the indices of its jobs.

    Raises
    ------
    ConfigurationError
        If there is no row.
    WorkloadError
        If a job uses no resource.

    Examples
    --------
    >>> import gridsched as gs
    >>> gs.composition_table([2, 1, 4, 3, 1, 2], rows=6)[2]  # row 3, jobs counted from 0
    [(1, 0), (3,), (5, 4)]
    """
    sizes = _sizes(processors, rows)
    table = composition.tables_for(1, len(sizes), rows)
    composition.build(table, 0, sizes)
    first, members = table.first[0], table.members[0]
    return [
        [
            tuple(members[first[k] : first[k + 1]].tolist())
            for k in table.rows[0, row, : table.lengths[0, row]]
        ]
        for row in range(1, rows + 1)
    ]


def _sizes(processors: ArrayLike, rows: int) -> NDArray[np.int64]:
    sizes = np.ascontiguousarray(processors, np.int64)
    if rows < 1:
        raise ConfigurationError(f"composition table: {rows} rows; use the size of the largest cluster")
    if len(sizes) and sizes.min() < 1:
        raise WorkloadError(f"composition table: a job uses {sizes.min()} resources; use at least 1")
    return sizes


class Backlog(NamedTuple):
    """What a cluster has to do before it can run what it is given.

    Parameters
    ----------
    free : int64[m]
        When each of its resources becomes available, seconds.
    jobs, run_time, size, slack : int
        Number, expected run times, processors and slacks (at least 1 s each) of its jobs that wait, each
        summed up.
    unit : int
        Processors of a resource.
    """

    free: NDArray[np.int64]
    jobs: int = 0
    run_time: int = 0
    size: int = 0
    slack: int = 0
    unit: int = 1


def allocate(
    processors: NDArray[np.int64],
    durations: NDArray[np.int64],
    slacks: NDArray[np.int64],
    backlogs: Sequence[Backlog],
    random: NDArray[np.uint64],
) -> Allocation:
    """Allocate collected jobs to clusters (algorithms 1 to 4).

    Parameters
    ----------
    processors : int64[p]
        Processors that each job asks for, in the order in which they were collected.
    durations, slacks : int64[n, p]
        Expected run time of each job on each cluster, and its deadline minus that and its submission,
        seconds.
    backlogs : sequence of Backlog
        State of each of the n clusters.
    random : uint64[2]
        Random numbers for ties of equal clusters, see `titan.stream`.

    Returns
    -------
    Allocation
        In which the decoder of TITAN finds the same starts.

    Raises
    ------
    WorkloadError
        If a job is larger than every cluster.
    """
    clusters = np.zeros(len(backlogs), composition.CLUSTER)
    resources = np.array([len(backlog.free) for backlog in backlogs])
    for name in ("jobs", "run_time", "size", "slack", "unit"):
        clusters[name] = [getattr(backlog, name) for backlog in backlogs]
    clusters["processors"] = resources * clusters["unit"]
    clusters["closed"] = resources == 0
    units, clusters["table"] = np.unique(clusters["unit"], return_inverse=True)
    most, widest = int(resources.max(initial=0)), int(clusters["processors"].max(initial=0))
    wanted = _sizes(processors, most)
    if len(wanted) and wanted.max() > widest:
        job = int(np.argmax(wanted))
        raise WorkloadError(
            f"the job at index {job} uses {wanted[job]} resources, but the largest cluster has {widest}; "
            "leave it out"
        )
    sizes = -(-wanted // units[:, np.newaxis])
    if sizes.size * most > _LARGEST_TABLE:
        raise ConfigurationError(
            f"a composition table of {len(wanted)} jobs and {most} processors is too large; "
            "count nodes instead of processors, or collect fewer jobs"
        )
    free = np.zeros((len(backlogs), most), np.int64)
    for row, backlog in zip(free, backlogs, strict=True):
        row[: len(backlog.free)] = backlog.free
    found = bundles.allocate(Allocation, {"jobs": len(wanted), "words": packing.words(most)})
    composition.allocate(
        *composition.build_tables(sizes, most),
        clusters,
        free,
        sizes,
        np.ascontiguousarray(durations, np.int64),
        np.ascontiguousarray(slacks, np.int64),
        found,
        random,
    )
    return found


# --- live use -------------------------------------------------------------------------------------

_LONG_NAMES: dict[str, tuple[str, str]] = {
    "submit_time": ("submit time", "s"),
    "processors": ("requested processors", "1"),
    "deadline": ("deadline", "s"),
    "cluster_index": ("index of the cluster, -1 for a job that is larger than every cluster", "1"),
    "start_time": ("start time, -1 likewise", "s"),
    "end_time": ("end time, -1 likewise", "s"),
    "run_time": ("expected run time on the cluster, -1 likewise", "s"),
    "order": ("place in the order of the cluster, -1 likewise", "1"),
    "seed_start_time": ("start time in the schedule that MUSCLE hands over, -1 likewise", "s"),
    "resources": ("whether the job runs on the resource", "1"),
    "cluster_processors": ("processors of the cluster", "1"),
    "cluster_speed": ("speed of the cluster, in a unit that all clusters share", "1"),
    "resource_processors": ("processors of a resource of the cluster", "1"),
    "available": ("when the resource becomes available, -1 if the cluster has fewer", "s"),
    "jobs": ("jobs of the cluster", "1"),
    "comprehensive_performance": ("comprehensive performance", "s"),
    "makespan": ("makespan", "s"),
    "idle_time": ("idle time of resources", "s"),
    "over_deadline": ("time over deadlines", "s"),
    "seed_comprehensive_performance": (
        "comprehensive performance of the schedule that MUSCLE hands over",
        "s",
    ),
    "generations": ("generations of the genetic algorithm", "1"),
}

_OF_JOBS = ("cluster_index", "start_time", "end_time", "run_time", "order", "seed_start_time")

_OF_CLUSTERS = np.dtype(
    [
        ("cluster_processors", np.int64),
        ("cluster_speed", np.float64),
        ("jobs", np.int64),
        ("comprehensive_performance", np.float64),
        ("makespan", np.int64),
        ("idle_time", np.int64),
        ("over_deadline", np.int64),
        ("seed_comprehensive_performance", np.float64),
        ("generations", np.int64),
        ("resource_processors", np.int64),
    ]
)
"""What a schedule of the queue says of each job and of each cluster."""

_QUEUE = ("processors", "run_time", "deadline")
"""Columns that a queue must have."""


def schedule_queue(
    jobs: Mapping[str, Any] | pd.DataFrame,
    clusters: Sequence[Cluster],
    *,
    now: int = 0,
    free: Mapping[str, ArrayLike] | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    titan: Titan | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Schedules for the jobs that wait now: MUSCLE allocates them, TITAN improves each cluster's schedule.

    Parameters
    ----------
    jobs : DataFrame, or mapping of column to values
        A table: processors; run_time expected on a cluster of speed 1, and
        deadline, in whole seconds; if known submit_time (now) and job_number (1, 2, ...).
    clusters : sequence of Cluster
        Where the jobs can run.
    now : int
        Present time, seconds.
    free : mapping of cluster name to times, optional
        When each resource of a cluster becomes available, seconds; now where nothing is given. Resources are
        nodes where a cluster gives whole nodes to jobs.
    weights : Weights or a sequence of them, optional
        What all clusters want, or each.
    titan : Titan, optional
        Parameters of the genetic algorithm.
    seed : int
        Seed of all random numbers.

    Returns
    -------
    xarray.Dataset
        On dimension `job`: job_number, submit_time, processors, deadline; cluster_index, start_time,
        end_time, run_time (all there), order (place in the order of its cluster), seed_start_time (of
        MUSCLE's schedule); jobs larger than every cluster have cluster and times -1. resources (job,
        resource): which it runs on. On `cluster`: cluster_processors, cluster_speed, available (cluster,
        resource), jobs, comprehensive_performance, makespan, idle_time, over_deadline,
        seed_comprehensive_performance, generations; resource_processors if a cluster gives whole nodes.

    Raises
    ------
    WorkloadError
        If a column is missing or makes no sense, for instance a deadline before the submission.
    ConfigurationError
        If the clusters, what they have free, and the weights do not go together.

    Examples
    --------
    >>> import gridsched as gs
    >>> clusters = [gs.Cluster(name="C1", processors=20), gs.Cluster(name="C2", processors=16, speed=1.2)]
    >>> queue = {"processors": [20, 16, 4], "run_time": [600, 600, 300], "deadline": [900, 900, 2000]}
    >>> plan = gs.schedule_queue(queue, clusters, titan=gs.Titan(population=20, generations=20), seed=1)
    >>> plan.cluster_index.values
    array([0, 1, 1])
    """
    queue = _queue(jobs, now)
    wanted = weights_of(weights, clusters)
    available = [_available(cluster, free, now) for cluster in clusters]
    _check_clusters(clusters, free)
    sizes = queue["processors"]
    count, widest = len(sizes), max(len(each) for each in available)
    fits = np.flatnonzero(sizes <= max(cluster.processors for cluster in clusters))
    durations = np.stack([np.maximum(cluster.duration(queue["run_time"]), 1) for cluster in clusters])
    slacks = queue["deadline"] - durations - queue["submit_time"]
    allocation = allocate(
        sizes[fits],
        durations[:, fits],
        slacks[:, fits],
        [Backlog(each, unit=cluster.unit) for each, cluster in zip(available, clusters, strict=True)],
        stream(seed, 0, len(clusters)),
    )
    of_jobs = np.full((len(_OF_JOBS), count), NOWHERE, np.int64)
    of_clusters = np.zeros(len(clusters), _OF_CLUSTERS)
    resources = np.zeros((count, widest), np.bool_)
    release = np.full((len(clusters), widest), NOWHERE, np.int64)
    for i, (cluster, ready) in enumerate(zip(clusters, available, strict=True)):
        chosen, width = allocation.of(i), len(ready)
        own = fits[chosen]
        given = Coding.in_turn(np.ascontiguousarray(allocation.masks[chosen, : packing.words(width)]))
        listed = packed(
            durations[i, own], queue["deadline"][own], cluster.allocation(sizes[own]) // cluster.unit
        )
        best = Optimised(given, np.nan, 0)
        if len(own):
            random = stream(seed, 0, i)
            best = optimise(listed, ready, now, wanted[i], titan or Titan(), random, [given], cluster.unit)
        lengths = durations[i, own]
        placed = [starts(coding, lengths, ready, now) for coding in (best.coding, given)]
        metrics, seed_metrics = (
            measured(*each, listed, ready, now, wanted[i], cluster.unit) for each in placed
        )
        place = np.argsort(best.coding.order)
        of_jobs[:, own] = np.broadcast_arrays(
            i, placed[0][0], placed[0][0] + lengths, lengths, place, placed[1][0]
        )
        of_clusters[i] = (
            cluster.processors,
            cluster.speed,
            len(own),
            wanted[i].performance(*metrics),
            *metrics,
            wanted[i].performance(*seed_metrics),
            best.generations,
            cluster.unit,
        )
        resources[own, :width], release[i, :width] = best.coding.resources(width), ready
    shown = list(_OF_CLUSTERS.names or ())
    if max(cluster.unit for cluster in clusters) == 1:
        shown.remove("resource_processors")
    dataset = xr.Dataset(
        {
            **{name: ("job", queue[name]) for name in ("submit_time", "processors", "deadline")},
            **{name: ("job", values) for name, values in zip(_OF_JOBS, of_jobs, strict=True)},
            "resources": (("job", "resource"), resources.astype(np.int8)),
            "available": (("cluster", "resource"), release),
            **{name: ("cluster", of_clusters[name].copy()) for name in shown},
        },
        coords={
            "job_number": ("job", queue["job_number"]),
            "cluster": [cluster.name for cluster in clusters],
        },
        attrs={
            "title": "schedules of MUSCLE and TITAN",
            "now": int(now),
            "jobs_rejected": count - len(fits),
        },
    )
    for name, (long_name, unit) in _LONG_NAMES.items():
        if name in dataset:
            dataset[name].attrs.update(long_name=long_name, units=unit)
    return dataset


def weights_of(weights: Weights | Sequence[Weights] | None, clusters: Sequence[Cluster]) -> list[Weights]:
    """Weights of each cluster.

    Raises
    ------
    ConfigurationError
        If there are not as many as clusters.
    """
    if weights is None or isinstance(weights, Weights):
        return [weights or Weights()] * len(clusters)
    if len(weights) != len(clusters):
        raise ConfigurationError(f"{len(weights)} weights for {len(clusters)} clusters; give one for each")
    return list(weights)


def _queue(jobs: Mapping[str, Any] | pd.DataFrame, now: int) -> dict[str, NDArray[np.int64]]:
    """Columns of the queue as whole numbers, checked."""
    missing = [name for name in _QUEUE if name not in jobs]
    if missing:
        raise WorkloadError(f"queue: no column {missing[0]}; give {', '.join(_QUEUE)}")
    count = len(np.atleast_1d(np.asarray(jobs["processors"])))
    defaults = {"job_number": np.arange(1, count + 1), "submit_time": np.full(count, now)}
    columns: dict[str, NDArray[np.int64]] = {}
    for name in ("job_number", "submit_time", *_QUEUE):
        values = np.asarray(jobs[name] if name in jobs else defaults[name])
        if values.shape != (count,):
            raise WorkloadError(f"queue: column {name} has shape {values.shape}; give {count} values")
        if count and (values.dtype.kind not in "iuf" or not np.array_equal(values, np.floor(values))):
            raise WorkloadError(f"queue: column {name} is not made of whole numbers; round it")
        columns[name] = np.ascontiguousarray(values, np.int64)
    broken = {
        "uses no processor": columns["processors"] < 1,
        "has a negative run time": columns["run_time"] < 0,
        "has a deadline before its submission": columns["deadline"] < columns["submit_time"],
    }
    for what, which in broken.items():
        if which.any():
            number = columns["job_number"][np.argmax(which)]
            raise WorkloadError(
                f"queue: job {number} {what} ({int(which.sum())} jobs in all); fix or leave them out"
            )
    return columns


def _check_clusters(clusters: Sequence[Cluster], free: Mapping[str, ArrayLike] | None) -> None:
    """Refuse clusters that no platform has, and times of clusters that are not there."""
    if not clusters:
        raise ConfigurationError("clusters: there is none; give at least one")
    names = Platform(clusters).names
    for name in free or {}:
        if name not in names:
            raise ConfigurationError(f"free: unknown cluster {name!r}; there are {', '.join(names)}")


def _available(cluster: Cluster, free: Mapping[str, ArrayLike] | None, now: int) -> NDArray[np.int64]:
    """When each resource of a cluster becomes available, not before now."""
    resources = cluster.processors // cluster.unit
    given = np.asarray((free or {}).get(cluster.name, np.full(resources, now)))
    if given.shape != (resources,) or given.dtype.kind not in "iu":
        raise ConfigurationError(
            f"free: give a whole number of seconds for each of the {resources} resources of "
            f"cluster {cluster.name}"
        )
    return np.maximum(np.ascontiguousarray(given, np.int64), now)

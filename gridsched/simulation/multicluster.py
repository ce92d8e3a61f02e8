"""Simulate parallel jobs with deadlines on a multicluster: MUSCLE or a rival, and TITAN on each cluster.

Jobs are collected, and from time to time handed to the clusters: a *round* (step 1 of algorithm 4 in He et
al., see `gridsched.schedulers.muscle`). Collecting goes on while the clusters still have enough to do: while
the expected makespan of the jobs that have not started, from now to the end of the last of them, exceeds a
threshold on every cluster (``any``: the first that falls to it ends the collection, as printed), or on at
least one (``all``: the last ends it). It goes on, too, until there is a job. Jobs that have not started by
the next round stay where they are; the local scheduler plans them anew together with the new ones. Jobs that
have started do not move. The rivals give each job to a cluster when it arrives, but the local schedulers are
told at the rounds, as under MUSCLE; or there is a round whenever a job arrives.

A job may enter at a cluster. It is announced to MUSCLE, after a delay if messages take time, and allocated
like all others.

At one instant jobs end and start, then resources are added and removed, then jobs arrive, then there is a
round. A job that waits on a cluster that has become too small for it is collected again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from gridsched import results
from gridsched.engine import packing
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.metrics.deadlines import mean_performance, performance_balance
from gridsched.platforms import Cluster
from gridsched.schedulers.multicluster import (
    Jobs,
    LoadName,
    LocalName,
    Scheduling,
    SeedingName,
    Site,
    Started,
    least_load,
    weighted_random,
)
from gridsched.schedulers.muscle import allocate, check_platform, weights_of
from gridsched.schedulers.titan import Titan, Weights, stream
from gridsched.simulation.clusters import check_clean, check_limits
from gridsched.workloads.deadlines import ServiceClass, draw_deadlines
from gridsched.workloads.multicluster import MulticlusterModel, synthesise_multicluster
from gridsched.workloads.table import Workload

DispatcherName = Literal["muscle", "dll", "wrand"]
RoundsName = Literal["collected", "arrival"]
EndsName = Literal["any", "all"]

Integers = NDArray[np.int64]

_WORDS: dict[str, tuple[str, ...]] = {
    "dispatcher": get_args(DispatcherName),
    "local": get_args(LocalName),
    "seeding": get_args(SeedingName),
    "rounds": get_args(RoundsName),
    "ends": get_args(EndsName),
    "load": get_args(LoadName),
}


@dataclass(frozen=True, kw_only=True)
class Multicluster:
    """Who allocates jobs to clusters, and how each cluster schedules them.

    Parameters
    ----------
    dispatcher : {"muscle", "dll", "wrand"}
        MUSCLE, dynamic least load, or weighted random.
    local : {"titan", "seed", "easy"}
        What clusters do: the genetic algorithm; the schedule that it would start from, as it is; or EASY
        backfilling of the jobs in the order in which they were allocated.
    seeding : {"muscle", "arrival", "last", "none"}, optional
        What the genetic algorithm starts from besides random schedules, see
        `gridsched.schedulers.multicluster.Scheduling`: by default ``muscle`` with MUSCLE, ``arrival``
        without.
    rounds : {"collected", "arrival"}
        Whether jobs are collected, or handed over when they arrive.
    ends : {"any", "all"}
        Whose expected makespan ends a collection: the first that falls to the threshold, as printed, or the
        last. With ``any`` no cluster stands idle while jobs are collected, but the work that is left over on
        the others adds up: how many jobs are collected then depends on chance more than on the rate of
        arrivals. With ``all`` and no threshold all clusters begin a round without jobs that wait.
    threshold : int
        Expected makespan at which a collection ends, seconds.
    load : {"unfinished", "unstarted"}
        Which jobs of a cluster are its load in equation (6).
    titan : Titan
        Parameters of the genetic algorithm.
    seed : int
        Seed of all random decisions.

    Raises
    ------
    ConfigurationError
        If a value is unknown or out of range, or the values do not go together.
    """

    dispatcher: DispatcherName = "muscle"
    local: LocalName = "titan"
    seeding: SeedingName | None = None
    rounds: RoundsName = "collected"
    ends: EndsName = "all"
    threshold: int = 0
    load: LoadName = "unfinished"
    titan: Titan = field(default_factory=Titan)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seeding is None:
            object.__setattr__(self, "seeding", "muscle" if self.dispatcher == "muscle" else "arrival")
        for key, words in _WORDS.items():
            if getattr(self, key) not in words:
                raise ConfigurationError(f"{key} is {getattr(self, key)!r}; use one of {', '.join(words)}")
        for key in ("threshold", "seed"):
            if not getattr(self, key) >= 0:
                raise ConfigurationError(f"{key} is {getattr(self, key)}; use 0 or more")
        if self.seeding == "muscle" and self.dispatcher != "muscle":
            raise ConfigurationError(
                f"seeding is 'muscle', but dispatcher is {self.dispatcher!r}; use arrival, last or none"
            )
        if self.local == "seed" and self.seeding == "none":
            raise ConfigurationError(
                "seeding is 'none', but local is 'seed'; use another seeding or local titan"
            )

    @property
    def scheme(self) -> str:
        """Name in results, such as ``muscle+titan``."""
        return f"{self.dispatcher}+{self.local}"


class ResourceChange(NamedTuple):
    """From a time on [s], a cluster has so many processors; the highest are added or removed.

    A job that runs on a removed one runs to its end.
    """

    time: int
    cluster: str
    processors: int


def simulate_multicluster(
    workload: Workload,
    clusters: Sequence[Cluster],
    deadlines: ArrayLike,
    policy: Multicluster | None = None,
    *,
    weights: Weights | Sequence[Weights] | None = None,
    entry: ArrayLike | None = None,
    announcement_delay: int = 0,
    changes: Sequence[ResourceChange] = (),
    service_class: ArrayLike | None = None,
    service_classes: Sequence[str] = (),
    threads: int = 1,
    measure: bool = True,
) -> xr.Dataset:
    """Run a workload through a multicluster.

    Run times are as on a cluster of speed 1, requested times (run times where there are none) are the
    predicted run times. A job takes at least 1 s.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    clusters : sequence of Cluster
        The clusters, with the processors that they have at first.
    deadlines : int[n]
        Deadline of each job, seconds, on the clock of the submit times.
    policy : Multicluster, optional
        Who decides; MUSCLE and TITAN with their defaults if not given.
    weights : Weights or a sequence of them, optional
        What all clusters want, or each.
    entry : int[n], optional
        Index of the cluster where each job enters, -1 for MUSCLE, which is the default.
    announcement_delay : int
        After how long MUSCLE knows of a job that enters at a cluster, seconds.
    changes : sequence of ResourceChange
        Resources that are added and removed. Jobs must fit on the largest cluster at every time, else they
        are rejected.
    service_class : int[n], optional
        Service class of each job, to be kept in the result.
    service_classes : sequence of str
        Names of the classes.
    threads : int
        Clusters whose schedules are improved beside each other; does not change the result.
    measure : bool
        Whether every round is measured on every cluster, also where nothing was planned anew. Without, the
        schedule is the same and found in half the time where every arrival is a round.

    Returns
    -------
    xarray.Dataset
        A run dataset, see `gridsched.results.run_dataset`, whose segments have the resources
        (segment_resources, as bits) besides. On `job`: deadline, round (-1 if rejected), entry_cluster. On
        `round`: round_time, round_collected, and if measured mcp, pb. On (`round`, `cluster`), if measured:
        comprehensive_performance, round_jobs, round_makespan, round_idle_time, round_over_deadline,
        round_generations. Besides queue_mean and waiting_mean: jobs collected and not started, averaged from
        the first to the last submission; reach_processors.

    Raises
    ------
    WorkloadError
        If the workload is not clean, or a deadline lies before the submission.
    ConfigurationError
        If the parts do not go together.
    """
    policy = policy or Multicluster()
    check_clean(workload)
    names = check_platform(clusters)
    wanted = weights_of(weights, clusters)
    due = _checked_deadlines(workload, deadlines)
    entries = _entries(entry, len(workload), len(clusters))
    if announcement_delay < 0 or threads < 1:
        raise ConfigurationError(
            f"announcement_delay is {announcement_delay} and threads is {threads}; use 0 and 1, or more"
        )
    ordered = _checked_changes(changes, names)
    reach = _reach(clusters, ordered)
    predicted = np.where(workload.requested_time > 0, workload.requested_time, workload.run_time)
    actual = np.stack([np.maximum(cluster.duration(workload.run_time), 1) for cluster in clusters])
    expected = np.stack([np.maximum(cluster.duration(predicted), 1) for cluster in clusters])
    for i, cluster in enumerate(clusters):
        check_limits(workload, cluster, actual[i], expected[i])
    accepted = np.flatnonzero(workload.processors <= reach)
    jobs = Jobs(
        np.ascontiguousarray(workload.submit_time[accepted]),
        np.ascontiguousarray(due[accepted]),
        np.ascontiguousarray(workload.processors[accepted]),
        np.ascontiguousarray(actual[:, accepted]),
        np.ascontiguousarray(expected[:, accepted]),
    )
    announced = jobs.submit + np.where(entries[accepted] >= 0, int(announcement_delay), 0)
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        run = _Run(jobs, announced, clusters, wanted, policy, ordered, pool, measure)
        run.execute()
    dataset = _dataset(workload, clusters, policy, accepted, run, actual, expected)
    extra: dict[str, tuple[Any, ...]] = {
        "deadline": ("job", due, "deadline", "s"),
        "entry_cluster": ("job", entries, "index of the cluster where the job entered, -1 for MUSCLE", "1"),
        "reach_processors": (
            "job",
            np.full(len(workload), reach),
            "processors of the largest cluster at the time when that is smallest",
            "1",
        ),
    }
    if service_class is not None:
        classes = np.asarray(service_class, np.int64)
        extra["service_class"] = ("job", classes, "index of the service class", "1")
        dataset.attrs["service_classes"] = ", ".join(service_classes)
    for name, (dims, values, long_name, units) in extra.items():
        dataset[name] = (dims, values, {"long_name": long_name, "units": units})
    ran = dataset["segment_job"].to_numpy()
    moved = (entries[ran] >= 0) & (entries[ran] != dataset["segment_cluster"].to_numpy())
    dataset.attrs.update(
        weights=json.dumps([asdict(each) for each in wanted]),
        announcement_delay=int(announcement_delay),
        changes=json.dumps([list(change) for change in ordered]),
        jobs_transferred=int(moved.sum()),
        jobs_without_requested_time=int((workload.requested_time <= 0).sum()),
        jobs_lengthened=int((workload.run_time < 1).sum()),
    )
    return dataset


# --- what is given --------------------------------------------------------------------------------


def _checked_deadlines(workload: Workload, deadlines: ArrayLike) -> Integers:
    due = np.asarray(deadlines)
    if due.shape != (len(workload),) or due.dtype.kind not in "iu":
        raise WorkloadError(
            f"{workload.name}: deadlines of shape {due.shape} and type {due.dtype}; "
            f"give whole seconds for each of the {len(workload)} jobs"
        )
    early = due < workload.submit_time
    if early.any():
        job = int(np.argmax(early))
        raise WorkloadError(
            f"{workload.name}: job {workload.job_number[job]} has its deadline at {due[job]} s, before its "
            f"submission at {workload.submit_time[job]} s ({int(early.sum())} jobs in all); mend them"
        )
    return due.astype(np.int64)


def _entries(entry: ArrayLike | None, jobs: int, clusters: int) -> Integers:
    entries = np.full(jobs, -1) if entry is None else np.asarray(entry)
    if entries.shape != (jobs,) or (jobs and not -1 <= entries.min() <= entries.max() < clusters):
        raise ConfigurationError(
            f"entry: give -1 or the index of one of the {clusters} clusters for each job"
        )
    return entries.astype(np.int64)


def _checked_changes(changes: Sequence[ResourceChange], names: Sequence[str]) -> list[ResourceChange]:
    for change in changes:
        if change.cluster not in names:
            raise ConfigurationError(
                f"changes: unknown cluster {change.cluster!r}; there are {', '.join(names)}"
            )
        if change.processors < 0:
            raise ConfigurationError(
                f"changes: cluster {change.cluster} has {change.processors} processors "
                f"from {change.time} s on; use 0 or more"
            )
    return sorted((ResourceChange(*change) for change in changes), key=lambda change: change.time)


def _reach(clusters: Sequence[Cluster], changes: Sequence[ResourceChange]) -> int:
    """Processors of the largest cluster, at the time when that is smallest."""
    present = {cluster.name: cluster.processors for cluster in clusters}
    reach = max(present.values())
    for k, change in enumerate(changes):
        present[change.cluster] = change.processors
        if k + 1 == len(changes) or changes[k + 1].time > change.time:
            reach = min(reach, max(present.values()))
    if reach < 1:
        raise ConfigurationError("changes: at some time no cluster has processors; leave one some")
    return reach


# --- the run --------------------------------------------------------------------------------------


class _Round(NamedTuple):
    """What is recorded of a round: lists have one entry a cluster."""

    time: int
    collected: int
    jobs: list[int]
    metrics: list[tuple[int, int, int]]
    generations: list[int]


class _Run:
    """State of a simulation: the clusters, and the jobs that are not allocated yet."""

    def __init__(
        self,
        jobs: Jobs,
        announced: Integers,
        clusters: Sequence[Cluster],
        weights: Sequence[Weights],
        policy: Multicluster,
        changes: Sequence[ResourceChange],
        pool: ThreadPoolExecutor | None,
        measured: bool,
    ) -> None:
        assert policy.seeding is not None
        count = len(jobs.submit)
        most = {cluster.name: cluster.processors for cluster in clusters}
        for change in changes:
            most[change.cluster] = max(most[change.cluster], change.processors)
        scheduling = Scheduling(policy.local, policy.seeding, policy.titan, policy.seed)
        self.jobs, self.policy = jobs, policy
        self.widest = most
        self.sites = [
            Site(i, cluster.processors, most[cluster.name], jobs, weights[i], scheduling)
            for i, cluster in enumerate(clusters)
        ]
        self._names = [cluster.name for cluster in clusters]
        self._speeds = [cluster.speed for cluster in clusters]
        self._order = np.argsort(announced, kind="stable")
        self._announced = announced[self._order]
        self._announced_at = announced
        self._seen = 0
        self._changes = list(changes)
        self._pool = pool
        self.measured = measured
        generator = np.random.default_rng(np.random.SeedSequence(policy.seed, spawn_key=(len(clusters),)))
        self._drawn = generator.random(count) if policy.dispatcher == "wrand" else np.empty(0)
        self.cluster, self.start, self.round = np.full((3, count), -1, np.int64)
        self.handed_over = np.zeros(count, np.int64)
        self.masks = np.zeros((count, packing.words(max(most.values(), default=1))), np.uint64)
        self.rounds: list[_Round] = []

    def execute(self) -> None:
        """Run to the start of the last job."""
        now = self._next_round(np.iinfo(np.int64).min)
        while now is not None:
            self._hold_round(now)
            now = self._next_round(now)
        for site in self.sites:
            self._note(site, site.advance(np.iinfo(np.int64).max))

    def _next_round(self, now: int) -> int | None:
        """Time of the next round; None if all jobs are allocated and nothing changes that concerns them."""
        arrival = int(self._announced[self._seen]) if self._seen < len(self._announced) else None
        time = None
        if arrival is not None:
            collects = self.policy.rounds == "collected"
            time = max(self._collection_ends(now), arrival) if collects else arrival
        if not self._changes or (time is not None and time < self._changes[0].time):
            return time
        if time is None and all(site.falls_to(0, now) <= now for site in self.sites):
            return None
        return max(self._changes[0].time, now)

    def _collection_ends(self, now: int) -> int:
        choose: Callable[[list[int]], int] = min if self.policy.ends == "any" else max
        return choose([site.falls_to(self.policy.threshold, now) for site in self.sites if site.processors])

    def _hold_round(self, now: int) -> None:
        for site in self.sites:
            self._note(site, site.advance(now))
        resized, handed_back = self._change_resources(now)
        end = int(np.searchsorted(self._announced, now, side="right"))
        arrived = np.concatenate([handed_back, self._order[self._seen : end]])
        self._seen = end
        given = self._allocate(arrived, now)
        number = len(self.rounds)
        all_again = self.policy.rounds == "collected"

        def plan(site: Site) -> None:
            new, masks = given[site.index]
            if site.processors and (all_again or len(new) or site.index in resized):
                site.plan(new, masks, now, number)
            elif self.measured:
                site.measure(now)

        list((self._pool.map if self._pool else map)(plan, self.sites))
        self.round[arrived] = number
        self.handed_over[arrived] = now
        self.rounds.append(
            _Round(
                now,
                len(arrived),
                [len(site.waiting) for site in self.sites],
                [site.metrics for site in self.sites],
                [site.generations for site in self.sites],
            )
        )

    def _note(self, site: Site, started: Started) -> None:
        self.cluster[started.jobs] = site.index
        self.start[started.jobs] = started.start
        self.masks[started.jobs, : started.masks.shape[1]] = started.masks

    def _change_resources(self, now: int) -> tuple[set[int], Integers]:
        """Clusters whose resources change now, and the jobs that become too large for them."""
        resized: set[int] = set()
        handed_back = [np.empty(0, np.int64)]
        while self._changes and self._changes[0].time <= now:
            change = self._changes.pop(0)
            site = self.sites[self._names.index(change.cluster)]
            handed_back.append(site.resize(change.processors, now))
            resized.add(site.index)
        return resized, np.concatenate(handed_back)

    def _allocate(self, arrived: Integers, now: int) -> list[tuple[Integers, NDArray[np.uint64] | None]]:
        """Jobs that each cluster is given, and their resources if MUSCLE has chosen them."""
        if not len(arrived):
            return [(arrived, np.empty((0, self.masks.shape[1]), np.uint64))] * len(self.sites)
        if self.policy.dispatcher != "muscle":
            chosen = self._dispatch(arrived)
            return [(arrived[chosen == site.index], None) for site in self.sites]
        jobs = self.jobs
        durations = jobs.expected[:, arrived]
        done = allocate(
            jobs.processors[arrived],
            durations,
            jobs.deadline[arrived] - durations - jobs.submit[arrived],
            [site.backlog(now) for site in self.sites],
            stream(self.policy.seed, len(self.rounds), len(self.sites)),
        )
        return [(arrived[done.of(site.index)], done.masks[done.of(site.index)]) for site in self.sites]

    def _dispatch(self, arrived: Integers) -> Integers:
        if self.policy.dispatcher == "wrand":
            return weighted_random(self.jobs, arrived, self.sites, self._speeds, self._drawn[arrived])
        return least_load(self.jobs, arrived, self._announced_at[arrived], self.sites, self.policy.load)


# --- the result -----------------------------------------------------------------------------------

_OF_ROUNDS: dict[str, tuple[str, str]] = {
    "comprehensive_performance": ("comprehensive performance of the jobs that have not started", "s"),
    "round_jobs": ("jobs that have not started", "1"),
    "round_makespan": ("makespan of the jobs that have not started", "s"),
    "round_idle_time": ("idle time of resources", "s"),
    "round_over_deadline": ("time over deadlines of the jobs that have not started", "s"),
    "round_generations": ("generations of the genetic algorithm", "1"),
}


def _dataset(
    workload: Workload,
    clusters: Sequence[Cluster],
    policy: Multicluster,
    accepted: Integers,
    run: _Run,
    actual: Integers,
    expected: Integers,
) -> xr.Dataset:
    cluster, start, number = np.full((3, len(workload)), -1, np.int64)
    cluster[accepted], start[accepted], number[accepted] = run.cluster, run.start, run.round
    column = np.arange(len(workload))
    largest = [
        Cluster(processors=max(run.widest[each.name], 1), speed=each.speed, name=each.name)
        for each in clusters
    ]
    dataset = results.run_dataset(
        workload,
        largest,
        cluster=cluster,
        start_time=start,
        run_time=np.where(cluster >= 0, actual[cluster, column], workload.run_time),
        estimate=np.where(cluster >= 0, expected[cluster, column], workload.requested_time),
        allocated=workload.processors,
        attributes={
            "scheme": policy.scheme,
            **{key: getattr(policy, key) for key in (*_WORDS, "threshold", "seed")},
            "titan": json.dumps(asdict(policy.titan)),
        },
    )
    dataset["round"] = (
        "job",
        number,
        {"long_name": "round in which the job was allocated last", "units": "1"},
    )
    dataset = dataset.rename({"round": "job_round"})
    ran = accepted[run.start >= 0]
    assert np.array_equal(ran, dataset["segment_job"].to_numpy())
    dataset["segment_resources"] = (
        ("segment", "word"),
        run.masks[run.start >= 0],
        {"long_name": "resources of the segment as bits, the lowest first", "units": "1"},
    )
    measured = _metrics_of_rounds(run) if run.measured else {}
    return dataset.assign({**_rounds(run), **measured, **_queues(run)})


def _rounds(run: _Run) -> dict[str, Any]:
    time = np.array([each.time for each in run.rounds], np.int64)
    collected = np.array([each.collected for each in run.rounds], np.int64)
    return {
        "round_time": ("round", time, {"long_name": "time of the round", "units": "s"}),
        "round_collected": (
            "round",
            collected,
            {"long_name": "jobs that the clusters were given", "units": "1"},
        ),
    }


def _metrics_of_rounds(run: _Run) -> dict[str, Any]:
    shape = (len(run.rounds), len(run.sites))
    jobs = np.array([each.jobs for each in run.rounds], np.int64).reshape(shape)
    found = np.array([each.metrics for each in run.rounds], np.int64).reshape(*shape, 3)
    values = {
        "comprehensive_performance": np.stack(
            [site.weights.performance(*found[:, i].T.astype(np.float64)) for i, site in enumerate(run.sites)],
            axis=1,
        ),
        "round_jobs": jobs,
        "round_makespan": found[..., 0],
        "round_idle_time": found[..., 1],
        "round_over_deadline": found[..., 2],
        "round_generations": np.array([each.generations for each in run.rounds], np.int64).reshape(shape),
    }
    variables: dict[str, Any] = {
        name: (("round", "cluster"), values[name], {"long_name": long_name, "units": units})
        for name, (long_name, units) in _OF_ROUNDS.items()
    }
    performance = values["comprehensive_performance"]
    for name, series, long_name in (
        ("mcp", mean_performance(performance, jobs), "mean comprehensive performance"),
        ("pb", performance_balance(performance, jobs), "performance balance factor"),
    ):
        variables[name] = ("round", series, {"long_name": long_name, "units": "s"})
    return variables


def _queues(run: _Run) -> Mapping[str, Any]:
    """Mean numbers of jobs that are collected, and that have not started, while jobs arrive."""
    submit = run.jobs.submit
    last = int(submit.max(initial=0))
    window = last - int(submit.min(initial=last))
    until = {"queue_mean": run.handed_over, "waiting_mean": run.start}
    names = {
        "queue_mean": "jobs collected for the next round, mean from the first to the last submission",
        "waiting_mean": "jobs that have not started, mean from the first to the last submission",
    }
    return {
        name: (
            (),
            float((np.minimum(times, last) - submit).sum() / window) if window else np.nan,
            {"long_name": names[name], "units": "1"},
        )
        for name, times in until.items()
    }


# --- workload levels ------------------------------------------------------------------------------

_FIRST_LOADS = (0.6, 0.8, 0.9, 1.0, 1.2, 1.6, 2.5, 5.0, 20.0)
"""Work that arrives relative to what the clusters can do: tried one by one until the queue is long enough."""

_SHORTEST_QUEUE = 1e-3
"""Shorter queues count as this, so that they have a logarithm."""


class CalibratedRate(NamedTuple):
    """Arrivals in a unit of time, and the mean number of collected jobs that was simulated with them."""

    rate: float
    queue: float


def calibrate_rates(
    levels: Sequence[float],
    model: MulticlusterModel,
    clusters: Sequence[Cluster],
    *,
    jobs: int,
    seeds: Sequence[int],
    classes: Sequence[ServiceClass] | None = None,
    policy: Multicluster | None = None,
    weights: Weights | Sequence[Weights] | None = None,
    tolerance: float = 0.05,
    evaluations: int = 8,
) -> list[CalibratedRate]:
    """Arrival rates at which so many jobs are collected for the next round, on average over time.

    This sets the workload levels of a study, by MUSCLE as a rule; other policies then replay the same jobs.
    Every rate is tried on the same jobs, whose arrivals it stretches alone, and the mean is taken over the
    seeds. The queue grows with the rate, though not smoothly, since a small change of arrivals can change all
    later rounds: a search by false position in logarithms ends when a queue differs from the level by no more
    than the tolerance, or after so many further rates; the nearest of all counts.

    Parameters
    ----------
    levels : sequence of float
        Wanted mean numbers of collected jobs.
    model : MulticlusterModel
        Distributions of the jobs.
    clusters : sequence of Cluster
        The clusters.
    jobs : int
        Jobs of a workload; the queue of a crowded multicluster grows with it.
    seeds : sequence of int
        Seeds of the workloads and deadlines.
    classes : sequence of ServiceClass, optional
        Range of the deadlines, the first of them; the default range if not given.
    policy : Multicluster, optional
        By which the levels are set.
    weights : Weights or a sequence of them, optional
        What all clusters want, or each.
    tolerance : float
        Relative deviation from a level that is good enough.
    evaluations : int
        Most rates that are tried for a level between two that enclose it.

    Returns
    -------
    list of CalibratedRate
        One for each level. The same arguments give the same, bit for bit.

    Raises
    ------
    WorkloadError
        If a level is not positive, there is no seed, or no rate gives such a queue.
    """
    for level in levels:
        if not (level > 0 and np.isfinite(level)):
            raise WorkloadError(f"workload level is {level}; give a positive number of jobs")
    if not len(seeds):
        raise WorkloadError("workload levels: there are no seeds; give one for each replicate")
    slowest = min(cluster.speed for cluster in clusters)
    capacity = sum(cluster.processors * cluster.speed for cluster in clusters) / model.mean_work
    promised = list(classes or [ServiceClass(name="all")])[:1]

    @cache
    def queue(load: float) -> float:
        queues = []
        for seed in seeds:
            workload = synthesise_multicluster(model, jobs=jobs, rate=load * capacity, seed=seed)
            due = draw_deadlines(workload, promised, seed=seed, slowest=slowest)
            run = simulate_multicluster(workload, clusters, due, policy, weights=weights)
            queues.append(float(run["queue_mean"]))
        return float(np.mean(queues))

    tried = {0.0: 0.0}
    found = []
    for level in levels:
        load = _load_of(level, queue, tried, tolerance, evaluations, jobs)
        found.append(CalibratedRate(load * capacity, tried[load]))
    return found


def _load_of(
    level: float,
    queue: Callable[[float], float],
    tried: dict[float, float],
    tolerance: float,
    evaluations: int,
    jobs: int,
) -> float:
    """The tried load whose queue is nearest to a level, after a search that adds to what was tried."""

    def excess(load: float) -> float:
        tried[load] = queue(load) if load else 0.0
        return float(np.log(max(tried[load], _SHORTEST_QUEUE) / level))

    for load in _FIRST_LOADS:
        if max(tried.values()) >= level:
            break
        excess(load)
    else:
        if max(tried.values()) < level:
            raise WorkloadError(
                f"no rate of arrivals lets {level:g} of {jobs} jobs be collected on average; "
                f"the most is {max(tried.values()):.3g}: use more jobs"
            )
    high = min(load for load in tried if tried[load] >= level)
    low = max(load for load in tried if load < high)
    _false_position(excess, low, high, tolerance, evaluations)
    return min(tried, key=lambda load: abs(excess(load)))


def _false_position(
    excess: Callable[[float], float], low: float, high: float, tolerance: float, evaluations: int
) -> None:
    """Look for a zero of a function between two points of different sign (regula falsi, Illinois variant)."""
    below, above = excess(low), excess(high)
    found = min(abs(below), abs(above))
    side = 0
    for _ in range(evaluations):
        if abs(found) <= np.log1p(tolerance):
            return
        middle = (low * above - high * below) / (above - below)
        found = excess(middle)
        if found > 0:
            high, above = middle, found
            below = below / 2 if side > 0 else below
            side = 1
        else:
            low, below = middle, found
            above = above / 2 if side < 0 else above
            side = -1

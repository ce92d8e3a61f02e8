"""The stages of a study of imprecise calendars up to its runs: each task calls one of these functions.

Runs are simulated, verified and measured at once: what is kept are measures. Every schedule follows, bit for
bit, from the workloads of its case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import measured_run
from gridsched.experiments.machines import ended, fates_of, machines
from gridsched.experiments.parts import label_of
from gridsched.experiments.prepare import derived_seed, make_workload, selected_jobs
from gridsched.experiments.schedulers import scheduler_made
from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.submission import EstimateName
from gridsched.systems.base import Scheduler
from gridsched.systems.calendars.kernels.bookings import NOWHERE
from gridsched.systems.calendars.measures import AGGREGATES, LENGTHS, VARIABLES, JobOutcomes, measure
from gridsched.systems.calendars.planning import COUNTS
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.study.config import (
    CalendarStudy,
    CaseConfig,
    PartitionsConfig,
    ReservationsConfig,
)
from gridsched.traces import clean, merge_workloads
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import UNKNOWN, add_counts

LoadedClusters = Sequence[tuple[Workload, Cluster]]
Integers = NDArray[np.int64]

RUN = ("case", "scheduler", "estimates")
"""What runs differ in."""

HORIZON = 4_000_000
"""Seconds that 100,000 slots of 40 s cover, the finest calendar of the paper."""

NO_CPU_TIME = "no CPU time"
"""Why a job is left out, or has its wall-clock time as run time."""

# --- cases ----------------------------------------------------------------------------------------


def prepare_case(case: CaseConfig, seed: int, logs: Mapping[str, str | Path], target: str | Path) -> None:
    """Make the workloads of all clusters of a case and write them with their clusters.

    Parameters
    ----------
    case : CaseConfig
        The case.
    seed : int
        Seed of the whole configuration.
    logs : mapping of workload name to path
        SWF files of the workloads that are read from a log.
    target : path
        Dataset to write.
    """
    if case.partitions is not None:
        loaded = partition(case.partitions, logs[case.partitions.workload.name])
    else:
        loaded = [
            make_workload(workload, derived_seed(seed, workload.name), logs.get(workload.name))
            for workload in case.workloads
        ]
    whole = results.grids_dataset({0: [_scaled(*pair, case.scale) for pair in loaded]})
    whole.attrs["case"] = case.name
    files.write(whole, target)


def _scaled(workload: Workload, cluster: Cluster, factor: int) -> tuple[Workload, Cluster]:
    """Workload and cluster with so many times more processors."""
    if factor == 1:
        return workload, cluster
    larger = {
        name: np.where(column > 0, column * factor, column)
        for name in ("requested_processors", "allocated_processors")
        for column in [getattr(workload, name)]
    }
    return workload.select(slice(None), **larger), Cluster(
        processors=cluster.processors * factor, speed=cluster.speed, name=cluster.name
    )


def partition(partitions: PartitionsConfig, log: str | Path) -> LoadedClusters:
    """Divide the jobs of a log among partitions by their size.

    The workload of the first partition tells what was left out or changed of the whole log.
    """
    sizes = np.array([cluster.processors for cluster in partitions.clusters])
    made = selected_jobs(partitions.workload, log)
    if partitions.run_time == "cpu":
        made = _with_cpu_time(made, partitions.unknown)
    statuses = frozenset(partitions.workload.leave_out_status)
    made = clean(made, processors=int(sizes.max()), statuses=statuses)
    place = divide(made.processors, made.user, sizes, by_user=partitions.alike == "users")
    loaded = []
    for index, cluster in enumerate(partitions.clusters):
        counts: dict[str, Any] = {} if index == 0 else {"left_out": {}, "repaired": {}}
        part = made.select(place == index, name=cluster.name, **counts)
        loaded.append((part, Cluster(processors=int(sizes[index]), name=cluster.name)))
    return loaded


def _with_cpu_time(workload: Workload, unknown: str) -> Workload:
    """Workload whose run times are average CPU times."""
    cpu_time = workload.average_cpu_time
    known = cpu_time >= 0
    run_time = np.where(known, np.ceil(cpu_time), workload.run_time).astype(np.int64)
    count = {NO_CPU_TIME: int((~known).sum())}
    if unknown == "wall":
        repaired = add_counts(workload.repaired, count)
        return workload.select(slice(None), run_time=run_time, repaired=repaired)
    changed = workload.select(slice(None), run_time=np.where(known, run_time, UNKNOWN))
    return changed.select(known, left_out=add_counts(workload.left_out, count))


def divide(processors: Integers, user: Integers, sizes: Integers, *, by_user: bool) -> Integers:
    """Index of the partition of each job: the smallest that can hold it.

    Partitions of the same size take turns: job by job, or user by user in the order in which they come.

    Parameters
    ----------
    processors, user : int64[n]
        Of each job, in order of submission; none is larger than the largest partition.
    sizes : int64[m]
        Processors of each partition.
    by_user : bool
        Whether all jobs of a user go to the same one of several partitions of the same size.
    """
    place = np.empty(len(processors), np.int64)
    different = np.unique(sizes)
    needed = different[np.searchsorted(different, processors)]
    for size in different:
        alike = np.flatnonzero(sizes == size)
        jobs = np.flatnonzero(needed == size)
        turn = np.arange(len(jobs))
        if by_user:
            _, first, whose = np.unique(user[jobs], return_index=True, return_inverse=True)
            turn = np.argsort(np.argsort(first))[whose]
        place[jobs] = alike[turn % len(alike)]
    return place


# --- simulations ----------------------------------------------------------------------------------


def simulate_run(
    study: CalendarStudy,
    seed: int,
    case: str | Path,
    target: str | Path,
    *,
    largest_share: float = 0.0,
) -> None:
    """Simulate, verify and measure the only run of a study.

    Parameters
    ----------
    study : CalendarStudy
        The study.
    seed : int
        Seed of the whole configuration.
    case : path
        Result of `prepare_case`.
    target : path
        Dataset to write.
    largest_share : float
        Largest share of jobs with a reservation in any run of the whole study: the jobs that have none in any
        are those whose cost is compared.
    """
    (conditions,), (written,), (estimates,) = study.scenarios, study.schedulers, study.estimates
    (loaded,) = results.grids_from_dataset(files.shared(case)).values()
    # A seed of 64 bits would have a type of its own, for which the kernel would be compiled once more
    drawn = derived_seed(seed, f"{study.name}\n{conditions.name}") >> 1
    stream = _Stream.of(_equipped(loaded, conditions, seed), conditions, drawn)
    done, fates = _outcome(stream, study, scheduler_made(written), estimates, largest_share)
    labels = {"case": conditions.name, "scheduler": label_of(written), "estimates": estimates}
    own = {
        "aggregate": list(AGGREGATES),
        "job_class": list(LENGTHS),
        "cluster": [cluster.name for cluster in stream.clusters],
    }
    measured = measured_run(measure(done), VARIABLES, labels, own)
    files.write(measured.merge(fates, combine_attrs="override"), target)


def _equipped(loaded: LoadedClusters, conditions: CaseConfig, seed: int) -> LoadedClusters:
    """Workloads and clusters, these with their nodes and failures, by the clock of the stream."""
    align = conditions.time_alignment
    workloads = [workload for workload, _ in loaded]
    first = int(merge_workloads(workloads, align=align)[0].submit_time[0])
    made = machines(loaded, conditions.machines, align, seed, origin=first)
    return list(zip(workloads, made, strict=True))


@dataclass(frozen=True, eq=False)
class _Stream:
    """All jobs of a case in order of submission.

    Parameters
    ----------
    loaded : sequence of (Workload, Cluster)
        As prepared.
    jobs : Workload
        All jobs; the first is submitted at 0, except where clocks say otherwise.
    home : int64[n]
        Index of the cluster of each job.
    block : int64[n]
        Block of time of the submission, from 0.
    draw : float64[n]
        A random number of each job; those below a share ask for a reservation.
    lead : float64[n]
        Another one, which says how late the reservation is.
    conditions : CaseConfig
    seed : int
    """

    loaded: LoadedClusters
    jobs: Workload
    home: Integers
    block: Integers
    draw: NDArray[np.float64]
    lead: NDArray[np.float64]
    conditions: CaseConfig
    seed: int

    @classmethod
    def of(cls, loaded: LoadedClusters, conditions: CaseConfig, seed: int) -> _Stream:
        jobs, home = merge_workloads([workload for workload, _ in loaded], align=conditions.time_alignment)
        submit = jobs.submit_time - jobs.submit_time[0]
        changed = {"submit_time": submit}
        if jobs.gives_up_time is not None:
            patient = jobs.gives_up_time == UNKNOWN
            changed["gives_up_time"] = np.where(patient, UNKNOWN, jobs.gives_up_time - jobs.submit_time[0])
        jobs = jobs.select(slice(None), **changed)
        draw, lead = np.random.default_rng(seed).random((2, len(jobs)))
        return cls(loaded, jobs, home, submit // conditions.block, draw, lead, conditions, seed)

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters."""
        return tuple(cluster for _, cluster in self.loaded)

    def own(self, cluster: int) -> Workload:
        """Jobs submitted to a cluster, by the clock of all."""
        return self.jobs.select(self.home == cluster, name=self.clusters[cluster].name)

    def asked(self, reservations: ReservationsConfig | None, step: int) -> Integers:
        """Start time that each job asks for, a multiple of the fundamental slot, or -1."""
        if reservations is None:
            return np.full(len(self.jobs), NOWHERE, np.int64)
        first, last = reservations.lead
        lead = first + np.floor(self.lead * (last - first + 1)).astype(np.int64)
        start = -(-(self.jobs.submit_time + lead) // step) * step
        return np.where(self.draw < reservations.share, start, NOWHERE)

    def outcome(self, largest_share: float, **known: Any) -> JobOutcomes:
        """Outcome of a run on these jobs."""
        return JobOutcomes(
            submit_time=self.jobs.submit_time,
            processors=self.jobs.processors,
            home=self.home,
            block=self.block,
            blocks=int(self.block[-1]) + 1,
            other=self.draw >= largest_share,
            nodes=np.array([cluster.processors for cluster in self.clusters]),
            **known,
        )


def _outcome(
    stream: _Stream, study: CalendarStudy, scheduler: Scheduler, estimates: EstimateName, largest_share: float
) -> tuple[JobOutcomes, xr.Dataset]:
    """What becomes of the jobs under a scheduler; calendars without managers have each cluster by itself."""
    calendars = scheduler if isinstance(scheduler, Calendars) else None
    step = 1 if calendars is None else calendars.slots.fundamental
    asked = stream.asked(next(iter(study.reservations.values()), None), step)
    everything = np.arange(len(stream.jobs))
    parts = [(tuple(range(len(stream.clusters))), everything)]
    if calendars is not None and calendars.levels == ():
        parts = [((k,), everything[stream.home == k]) for k in range(len(stream.clusters))]
    columns = {name: np.full(len(stream.jobs), NOWHERE, np.int64) for name in _JOB_COLUMNS}
    trade = {name: np.zeros(len(stream.clusters)) for name in _TRADE}
    moved = np.zeros(len(stream.jobs), np.bool_)
    counts: dict[str, int] = {}
    runs = []
    for clusters, jobs in parts:
        if not len(jobs):
            continue
        done = simulate(
            [replace(stream.own(index), reserved_start=asked[stream.home == index]) for index in clusters],
            tuple(stream.clusters[index] for index in clusters),
            scheduler,
            seed=stream.seed,
            estimates=estimates,
            align="none",
            times="home" if calendars is None else "unit",
            overrun=study.overrun if calendars is None else "doubling",
        )
        verify(done)
        runs.append(done)
        for name, column in columns.items():
            column[jobs] = done[name].values if name in done else NOWHERE
        columns["start_time"][jobs[~ended(done)]] = NOWHERE
        job, place = jobs[done["segment_job"].values], np.array(clusters)[done["segment_cluster"].values]
        work = (done["segment_processors"] * (done["segment_end"] - done["segment_start"])).values
        home = stream.home[job]
        away = home != place
        for name, index, chosen in zip(_TRADE, (place, home, home), (away, away, ~away), strict=True):
            np.add.at(trade[name], index[chosen], work[chosen])
        moved[job[away]] = True
        if calendars is not None:
            counts = _with_counts(counts, done.attrs)
    earliest = columns.pop("earliest_time")
    outcome = stream.outcome(
        largest_share,
        **columns,
        **trade,
        moved=moved,
        postponed=(earliest - asked)[earliest >= 0].astype(np.float64),
        counts=counts,
    )
    return outcome, fates_of(*runs)


_TRADE = ("supplied", "consumed", "local")
"""Work for jobs of other clusters, of own jobs on other clusters, and of own jobs at home."""

_JOB_COLUMNS = ("start_time", "end_time", "run_time", "earliest_time")


def _with_counts(counts: Mapping[str, int], more: Mapping[str, Any]) -> dict[str, int]:
    """Counts of several simulations together; the number of slots is that of the longest calendar."""
    return {
        name: max(counts.get(name, 0), int(more[name]))
        if name == "slots_max"
        else counts.get(name, 0) + int(more[name])
        for name in COUNTS
    }

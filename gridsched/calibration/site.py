"""A site as calibration sees it: jobs with recorded waits, and what the first half of its log shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.platform import Cluster
from gridsched.submission import runtime_estimates
from gridsched.traces.cleaning import never_ran
from gridsched.traces.outages import infer_outages
from gridsched.workloads.clock import zone_or_utc
from gridsched.workloads.table import Workload
from gridsched.workloads.usage import peaks

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

QUEUED = 600
"""A recorded wait of more seconds is queueing ..."""

FEWEST_QUEUED = 100
"""... of which the first half has to show so many jobs."""

_WEEK = 7 * 86400
_MONDAY = 3 * 86400
"""Seconds from a Monday to Unix time 0, a Thursday."""

_COLUMNS = ("submit", "run", "estimate", "processors", "user", "queue", "recorded")


@dataclass(frozen=True, eq=False, kw_only=True)
class LoggedSite:
    """Jobs of a log with the waits that it recorded, in order of submission.

    Parameters
    ----------
    name : str
        Of the log.
    size : int
        Processors that the log says the site has.
    submit, run, estimate, processors : int64[n]
        Seconds, and processors.
    user, queue : int64[n]
        From 0, in the order of the numbers of the log.
    queue_numbers : int64
        Number of each queue in the log.
    recorded : int64[n]
        Recorded wait [s], -1 if unknown.
    week : int
        Seconds from Monday, 0 h local time, to time 0. Summer time is not followed.
    outages : int64[m, 3]
        Start, end and processors of the outages that the log shows.
    on_nodes : (Workload, Cluster), optional
        The jobs, and the cluster on whose nodes they are replayed; by default on one pool of processors.
    """

    name: str
    size: int
    submit: Integers
    run: Integers
    estimate: Integers
    processors: Integers
    user: Integers
    queue: Integers
    queue_numbers: Integers
    recorded: Integers
    week: int
    outages: Integers
    on_nodes: tuple[Workload, Cluster] | None = None

    def __len__(self) -> int:
        return len(self.submit)

    @cached_property
    def second(self) -> NDArray[np.bool_]:
        """Jobs of the second half of the log, by number."""
        return np.arange(len(self)) >= len(self) // 2

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Jobs whose wait was recorded."""
        return self.recorded >= 0

    @property
    def split(self) -> int:
        """Submission of the first job of the second half [s]."""
        return int(self.submit[len(self) // 2])

    @cached_property
    def history(self) -> History:
        """What the first half shows."""
        return self.learnt("first")

    def learnt(self, half: str) -> History:
        """What a half ("first" or "second") shows."""
        return self._histories[half]

    @cached_property
    def _histories(self) -> dict[str, History]:
        return {
            half: History(self, self._shown(mine))
            for half, mine in (("first", ~self.second), ("second", self.second))
        }

    def folds(self, half: str) -> tuple[Fold, ...]:
        """The quarters of a half: each is judged by what the other shows."""
        return self._folds[half]

    @cached_property
    def _folds(self) -> dict[str, tuple[Fold, ...]]:
        found: dict[str, tuple[Fold, ...]] = {}
        for half, mine in (("first", ~self.second), ("second", self.second)):
            jobs = np.flatnonzero(mine)
            early, late = np.array_split(jobs, 2)
            learnt = []
            for part in (early, late):
                chosen = np.zeros(len(self), np.bool_)
                chosen[part] = True
                learnt.append(History(self, self._shown(chosen)))
            found[half] = (Fold(early, early, learnt[1]), Fold(jobs, late, learnt[0]))
        return found

    def _shown(self, jobs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of some jobs that started before later ones were submitted."""
        after = np.flatnonzero(jobs).max(initial=-1) + 1
        if after >= len(self):
            return jobs
        return np.asarray(jobs & (self.submit + self.recorded <= self.submit[after]))

    def dataset(self) -> xr.Dataset:
        """The site as a dataset, see `from_dataset`."""
        return xr.Dataset(
            {
                **{name: ("job", getattr(self, name)) for name in _COLUMNS},
                "queue_number": ("queues", self.queue_numbers),
                "outage": (("outages", "what"), self.outages),
            },
            attrs={"name": self.name, "size": self.size, "week": self.week},
        )


def from_dataset(stored: xr.Dataset) -> LoggedSite:
    """Site that was stored."""
    columns: dict[str, Any] = {name: stored[name].values.astype(np.int64) for name in _COLUMNS}
    return LoggedSite(
        name=str(stored.attrs["name"]),
        size=int(stored.attrs["size"]),
        week=int(stored.attrs["week"]),
        queue_numbers=stored["queue_number"].values.astype(np.int64),
        outages=stored["outage"].values.astype(np.int64).reshape(-1, 3),
        **columns,
    )


def site_of(workload: Workload, processors: int | Cluster, *, seen_outages: bool = True) -> LoggedSite:
    """Site of a clean workload.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    processors : int or Cluster
        Processors of the cluster; or the cluster itself, if jobs are to be replayed on its nodes.
    seen_outages : bool
        Whether to look for outages that the log shows, see `gridsched.traces.outages`. They are those of the
        whole log, as an operator knows them; one counts only where at least two jobs waited at once, and none
        where jobs are replayed on nodes, whose events the cluster has.

    Raises
    ------
    ConfigurationError
        If groups have limits on the nodes, since replays have queue orders in their place.
    WorkloadError
        If the first half holds no queueing: without waits there is nothing to calibrate.
    """
    run = np.asarray(workload.run_time, np.int64)
    started = (workload.wait_time >= 0) & ~never_ran(workload)
    recorded = np.where(started, workload.wait_time, -1).astype(np.int64)
    first = recorded[: len(recorded) // 2]
    queued = int(np.count_nonzero(first > QUEUED))
    if queued < FEWEST_QUEUED:
        raise WorkloadError(
            f"{workload.name}: its first half holds no queueing ({queued:,} of {len(first):,} jobs waited "
            f"more than {QUEUED // 60} minutes, at least {FEWEST_QUEUED} are needed); give a longer log"
        )
    queues, queue = np.unique(workload.queue, return_inverse=True)
    on_nodes = None
    if isinstance(processors, Cluster):
        if any(limit.by == "group" for limit in processors.limits):
            raise ConfigurationError(
                "a calibration does not go with limits of groups; leave them out (--without limits)"
            )
        on_nodes, processors, seen_outages = (workload, processors), processors.processors, False
    spells = infer_outages(workload, processors) if seen_outages else []
    outages = [
        (spell.start, spell.end, processors if spell.idle else spell.processors)
        for spell in spells
        if spell.jobs >= 2
    ]
    return LoggedSite(
        name=workload.name,
        size=processors,
        submit=np.asarray(workload.submit_time, np.int64),
        run=run,
        estimate=runtime_estimates(run, np.asarray(workload.requested_time, np.int64), "requested"),
        processors=np.asarray(workload.processors, np.int64),
        user=np.unique(workload.user, return_inverse=True)[1].reshape(-1).astype(np.int64),
        queue=queue.reshape(-1).astype(np.int64),
        queue_numbers=queues.astype(np.int64),
        recorded=recorded,
        week=_week(workload),
        outages=np.array(outages, np.int64).reshape(-1, 3),
        on_nodes=on_nodes,
    )


def _week(workload: Workload) -> int:
    """Seconds from Monday, 0 h local time, to time 0 of a log; in UTC where it does not say its zone."""
    origin = workload.unix_start_time or 0
    offset = datetime.fromtimestamp(origin, zone_or_utc(workload.time_zone)).utcoffset()
    local = origin + (0 if offset is None else int(offset.total_seconds()))
    return (local + _MONDAY) % _WEEK


class Fold(NamedTuple):
    """A quarter of a log that is judged by what another one shows."""

    replayed: Integers  # jobs that are replayed, by number
    judged: Integers  # those of them whose waits count
    history: History


class History:
    """What a part of a log shows of its users, queues and hours; the other jobs are not looked at.

    Parameters
    ----------
    site : LoggedSite
        The log.
    jobs : bool[n]
        Its jobs that are looked at, as far as their waits are known.
    """

    def __init__(self, site: LoggedSite, jobs: NDArray[np.bool_]) -> None:
        self.site = site
        start = site.submit + site.recorded
        self.jobs = jobs & site.known
        self.start = start[self.jobs]
        self.end = self.start + site.run[self.jobs]
        self.users = int(site.user.max()) + 1
        self.queues = len(site.queue_numbers)

    def of(self, values: Any) -> Any:
        """Values of these jobs."""
        return values[self.jobs]

    @cached_property
    def queue_processors(self) -> Integers:
        """Most processors that jobs of each queue had at once."""
        return peaks(
            self.start, self.end, self.of(self.site.processors), self.of(self.site.queue), self.queues
        )

    @cached_property
    def waiting(self) -> int:
        """Most of these jobs that waited at once."""
        times = np.concatenate([self.of(self.site.submit), self.start])
        change = np.repeat([1, -1], len(self.start))
        return int(np.cumsum(change[np.lexsort((change, times))]).max(initial=0))

    @cached_property
    def large_queues(self) -> Integers:
        """Queues with at least 1 % of the jobs."""
        counts = np.bincount(self.of(self.site.queue), minlength=self.queues)
        return np.flatnonzero(counts >= 0.01 * counts.sum())

    @cached_property
    def queue_wait(self) -> Floats:
        """Mean wait of the jobs of each queue [s], 0 where there are none."""
        queue = self.of(self.site.queue)
        counts = np.bincount(queue, minlength=self.queues)
        return np.bincount(queue, self.of(self.site.recorded), minlength=self.queues) / np.maximum(counts, 1)

    @cached_property
    def apart(self) -> NDArray[np.bool_]:
        """Queues whose jobs start at once: at least 50, of which 95 % waited a minute or less."""
        queue = self.of(self.site.queue)
        counts = np.bincount(queue, minlength=self.queues)
        prompt = np.bincount(queue, self.of(self.site.recorded) <= 60, minlength=self.queues)
        return (counts >= 50) & (prompt >= 0.95 * counts)

    def short_waits(self, quantile: float) -> Integers:
        """Wait [s] of jobs that waited less than ten minutes, by like jobs: user, queue and size.

        Where fewer than 20 are similar, those of queue and size, or all of them.
        """
        site, size = self.site, doublings(self.site.processors)
        keys = (site.queue * 64 + size, (site.user * self.queues + site.queue) * 64 + size)
        return _like(site.recorded, self.jobs & (site.recorded < QUEUED), keys, quantile)

    def idle_waits(self, quantile: float) -> Integers:
        """Wait [s] while enough processors were free, by like jobs: user, queue, size and requested time.

        Where fewer than 20 are similar, those of any requested time; of any user; of neither; or all of them.
        """
        site, size, time = self.site, doublings(self.site.processors), kinds(self.site.estimate)
        like = (site.queue * 64 + size) * KINDS + time
        keys = (
            site.queue * 64 + size,
            like,
            (site.user * self.queues + site.queue) * 64 + size,
            site.user * (like.max() + 1) + like,
        )
        return _like(self.idle, self.jobs, keys, quantile)

    @cached_property
    def idle(self) -> Integers:
        """Seconds for which each job waited while at least its processors were free; of these jobs only."""
        site = self.site
        times = np.concatenate([self.end, self.start])
        size = self.of(site.processors)
        order = np.argsort(times, kind="stable")
        times = times[order]
        free = site.size - np.cumsum(np.concatenate([-size, size])[order])
        found = np.zeros(len(site), np.int64)
        for each in np.unique(size).tolist():
            mine = np.flatnonzero(self.jobs & (site.processors == each))
            fits = np.concatenate([[0], np.cumsum(np.diff(times) * (free[:-1] >= each))]).astype(np.float64)
            begin, end = site.submit[mine], site.submit[mine] + site.recorded[mine]
            found[mine] = np.interp(end, times, fits) - np.interp(begin, times, fits)
        return found


def _like(
    values: Integers, shown: NDArray[np.bool_], keys: tuple[Integers, ...], quantile: float
) -> Integers:
    """Quantile of values of shown jobs with the key of each job, by the last key that 20 of them have."""
    if not shown.any():
        return np.zeros(len(values), np.int64)
    found = np.full(len(values), np.quantile(values[shown], quantile))
    for key in keys:
        codes = np.unique(key, return_inverse=True)[1].reshape(-1)
        mine = codes[shown]
        order = np.lexsort((values[shown], mine))
        there, first, count = np.unique(mine[order], return_index=True, return_counts=True)
        enough = count >= 20
        place = first[enough] + np.floor(quantile * (count[enough] - 1)).astype(np.int64)
        own = np.full(codes.max() + 1, -1.0)
        own[there[enough]] = values[shown][order][place]
        found = np.where(own[codes] >= 0, own[codes], found)
    return found.astype(np.int64)


_BORDERS = (900, 3600, 2 * 3600, 3 * 3600, 4 * 3600, 8 * 3600, 15 * 3600, 24 * 3600)
KINDS = len(_BORDERS) + 1


def kinds(estimate: Integers) -> Integers:
    """Classes of requested time: up to 15 min, 1, 2, 3, 4, 8, 15 and 24 h, and more."""
    return np.searchsorted(_BORDERS, estimate, side="left").astype(np.int64)


def doublings(values: Integers) -> Integers:
    """Logarithm of base 2, rounded up."""
    return np.ceil(np.log2(np.maximum(values, 1))).astype(np.int64)


def steps(site: LoggedSite, processors: int, lost: Integers) -> tuple[Integers, Integers]:
    """When the number of processors changes, and to how many, given (start, end, processors) of outages."""
    before = int(site.submit[0]) - 1 if len(site) else 0
    times = np.concatenate([[before], lost[:, 0], lost[:, 1]])
    change = np.concatenate([[processors], -lost[:, 2], lost[:, 2]])
    when, place = np.unique(np.maximum(times, before), return_inverse=True)
    capacity = np.cumsum(np.bincount(place.reshape(-1), change, minlength=len(when)))
    return when.astype(np.int64), np.maximum(capacity, 0).astype(np.int64)

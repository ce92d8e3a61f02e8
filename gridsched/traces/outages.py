"""Spells in which a cluster was out, inferred from a log: idle, or far below what waiting jobs could use.

A log says when jobs were submitted, started and ended, so that it is known at every instant how many
processors were free, and how many of them jobs could use that waited and were not larger than what was free.
Where these processors are at least a share `unused` of the cluster, or where hardly anything runs although a
job waits that would fit, something kept jobs from starting. A spell of this that lasts is taken for an
outage.

Several causes cannot be distinguished: announced maintenance, failures, a scheduler that stood still,
a cluster that was reserved or kept empty for a wide job, and jobs that waited for others or were held. A log
without waits says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError, check_choice, check_number
from gridsched.nodes import EventName, NodeEvent, NodeType
from gridsched.workloads.table import Workload
from gridsched.workloads.usage import steps

__all__ = ["InferredOutage", "infer_outages", "outage_events"]

Integers = NDArray[np.int64]

OutageKind = Literal["maintenance", "drain", "down"]
_ENDS: dict[str, EventName] = {"drain": "resume", "down": "up"}
"""Event that ends what another begins."""

NOTICE = 7 * 86400
"""Seconds for which maintenance is known before it begins."""

IDLE = 0.02
"""Share of the processors that may be in use where a cluster counts as idle."""


@dataclass(frozen=True, kw_only=True)
class InferredOutage:
    """A spell in which processors were out of use though jobs waited for them.

    Parameters
    ----------
    start, end : int
        When it began and ended [s], on the clock of the submit times.
    processors : int
        Processors that nobody used during all of it; all of them, if the cluster was idle.
    idle : bool
        Whether the cluster was idle.
    jobs : int
        Most jobs that waited at once and would have fit into the free processors, each alone.
    wanted : int
        Most processors that these could have used.
    """

    start: int
    end: int
    processors: int
    idle: bool
    jobs: int
    wanted: int


def infer_outages(
    workload: Workload,
    processors: int,
    *,
    unused: float = 0.9,
    shortest: int = 3600,
    gap: int = 600,
) -> list[InferredOutage]:
    """Outages that a log shows, see the module.

    Parameters
    ----------
    workload : Workload
        As read from a log, or clean.
    processors : int
        Processors of the cluster.
    unused : float
        Share of the processors that waiting jobs could have used and did not get, above 0 and at most 1.
    shortest : int
        Shortest spell that counts [s].
    gap : int
        Longest interruption of a spell [s].

    Returns
    -------
    list of InferredOutage
        By time.

    Raises
    ------
    WorkloadError
        If the log recorded the waits of fewer than half of its jobs.
    ConfigurationError
        If a number is out of range.

    Examples
    --------
    >>> import gridsched as gs
    >>> window = gs.NodeEvent(time=0, kind="maintenance", start=50_000, end=65_000)
    >>> cluster = gs.Cluster(processors=1152, events=[window])
    >>> jobs = gs.synthesise("M3", jobs=400, seed=1, load_scale=1.5)
    >>> gs.write_swf(gs.simulate(jobs, cluster), "log.swf")
    >>> log = gs.clean(gs.read_swf("log.swf"))
    >>> outages = gs.infer_outages(log, 1152)
    >>> outages[-1].end
    65000
    """
    check_number("unused", unused, above=0, most=1)
    check_number("processors", processors, least=1)
    check_number("shortest", shortest, least=1)
    check_number("gap", gap, least=0)
    size = workload.processors
    queued = (workload.submit_time >= 0) & (workload.wait_time >= 0) & (size > 0)
    if 2 * np.count_nonzero(queued) < len(workload) or not len(workload):
        raise WorkloadError(
            f"{workload.name}: waits of {np.count_nonzero(queued):,} of {len(workload):,} jobs are recorded, "
            "too few to distinguish outages from a cluster without work; give a log with waits"
        )
    submit = np.floor(workload.submit_time[queued]).astype(np.int64)
    start = np.floor(workload.submit_time[queued] + workload.wait_time[queued]).astype(np.int64)
    end = start + np.ceil(np.maximum(workload.run_time[queued], 0)).astype(np.int64)
    waiting = _Waiting(submit, start, size[queued])
    nothing = np.zeros(len(submit), np.int64)
    moments = np.concatenate([start, end, submit])
    times, busy = steps(moments, np.concatenate([size[queued], -size[queued], nothing]))
    free = processors - busy
    little = busy <= IDLE * processors
    looked = np.flatnonzero((free >= unused * processors) | little)
    jobs, wanted = np.zeros(len(times), np.int64), np.zeros(len(times), np.int64)
    jobs[looked], wanted[looked] = waiting.that_fit(times[looked], free[looked])
    spells = _spells(times, little & (jobs > 0), shortest, gap)
    idle = np.zeros(len(times), np.bool_)
    for inside, last in spells:
        idle[inside[0] : last] = True
    spells += _spells(times, (wanted >= unused * processors) & ~idle, shortest, gap)
    found = [
        InferredOutage(
            start=int(times[inside[0]]),
            end=int(times[last]),
            processors=processors if idle[inside[0]] else max(processors - int(busy[inside].max()), 0),
            idle=bool(idle[inside[0]]),
            jobs=int(jobs[inside].max()),
            wanted=int(wanted[inside].max()),
        )
        for inside, last in spells
    ]
    return sorted(found, key=lambda outage: outage.start)


def outage_events(
    outages: Iterable[InferredOutage], nodes: Sequence[NodeType], *, kind: OutageKind = "maintenance"
) -> list[NodeEvent]:
    """Events that take nodes away: all where the cluster was idle, else as many as stayed free.

    The last nodes are out, as many as have no more processors than were out: which ones it was is not known.

    Parameters
    ----------
    outages : iterable of InferredOutage
        Of `infer_outages`.
    nodes : sequence of NodeType
        Nodes of the cluster: `Cluster.node_types`.
    kind : {"maintenance", "drain", "down"}
        Maintenance is announced a week before, so that schedulers let nodes run empty; a drained node lets
        its jobs end; one that is down kills them. Run times of a log are what jobs took with its outages, so
        that killing them once more repeats work that nobody lost.

    Raises
    ------
    ConfigurationError
        If the kind is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> window = gs.NodeEvent(time=0, kind="maintenance", start=50_000, end=65_000)
    >>> cluster = gs.Cluster(processors=1152, events=[window])
    >>> jobs = gs.synthesise("M3", jobs=400, seed=1, load_scale=1.5)
    >>> gs.write_swf(gs.simulate(jobs, cluster), "log.swf")
    >>> log = gs.clean(gs.read_swf("log.swf"))
    >>> outages = gs.infer_outages(log, 1152)
    >>> events = gs.outage_events(outages, [gs.NodeType(count=144, cores=8)])
    >>> {event.kind for event in events}
    {'maintenance'}
    """
    check_choice("kind", kind, get_args(OutageKind))
    events: list[NodeEvent] = []
    names = [(name, each.cores) for each in nodes for name in each.nodes][::-1]
    together = np.cumsum([cores for _, cores in names])
    for outage in outages:
        start, end = outage.start, outage.end
        count = int(np.searchsorted(together, outage.processors, side="right"))
        whole = outage.idle or count == len(names)
        for name in ["*"] if whole else [name for name, _ in names[:count]]:
            if kind == "maintenance":
                known = max(0, start - NOTICE)
                events.append(NodeEvent(time=known, node=name, kind=kind, start=start, end=end))
            else:
                events.append(NodeEvent(time=start, node=name, kind=kind))
                events.append(NodeEvent(time=end, node=name, kind=_ENDS[kind]))
    return sorted(events, key=lambda event: event.time)


@dataclass(frozen=True, eq=False)
class _Waiting:
    """Jobs that wait from `submit` until `until`, each for so many processors."""

    submit: Integers
    until: Integers
    size: Integers

    def that_fit(self, times: Integers, free: Integers) -> tuple[Integers, Integers]:
        """Jobs that wait at each time and would fit, each alone; free processors that they could use."""
        jobs, processors = np.zeros(len(times), np.int64), np.zeros(len(times), np.int64)
        for size in np.unique(self.size).tolist():
            mine = self.size == size
            came = np.searchsorted(np.sort(self.submit[mine]), times, side="right")
            went = np.searchsorted(np.sort(self.until[mine]), times, side="right")
            count = np.where(size <= free, came - went, 0)
            jobs += count
            processors += count * size
        return jobs, np.minimum(processors, free)


def _spells(times: Integers, out: NDArray[np.bool_], shortest: int, gap: int) -> list[tuple[Integers, int]]:
    """Spells that last: the instants from which on the cluster was out, and the one at which it ended."""
    places = np.flatnonzero(out[:-1])
    if not len(places):
        return []
    begin, end = times[places], times[places + 1]
    groups = np.split(places, 1 + np.flatnonzero(begin[1:] - end[:-1] > gap))
    return [
        (group, int(group[-1]) + 1) for group in groups if times[group[-1] + 1] - times[group[0]] >= shortest
    ]

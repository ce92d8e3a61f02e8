"""Who may preempt whom on a cluster, and how: input of the controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import RecordArray
from gridsched.systems.slurm import kernels
from gridsched.systems.slurm.accounts import Quality
from gridsched.systems.slurm.kernels import KEPT, KILLED, SUSPENDED, NoPreemption, Preemption
from gridsched.systems.slurm.parameters import PreemptMode, SlurmParameters

Integers = NDArray[np.int64]

MODES: tuple[str, ...] = get_args(PreemptMode)
OFF, REQUEUE, CANCEL, SUSPEND = range(len(MODES))

_WAYS = np.array([KEPT, KILLED, KILLED, SUSPENDED])

PREEMPTION = np.dtype([("job", np.int64), ("by", np.int64), ("time", np.int64), ("mode", np.int64)])
"""A job gave way to another one at a time [ticks], in a mode: a place in `MODES`."""


def preemption_arrays(
    parameters: SlurmParameters,
    nodes: int,
    *,
    group: Integers,
    may: NDArray[np.uint8],
    level: Integers,
    mode: Integers,
    exempt: Integers,
) -> Preemption:
    """Arrays for passes on so many nodes.

    Parameters
    ----------
    parameters : SlurmParameters
        Parameters of the scheduler: how nodes are selected, the order of candidates, and how long a job waits
        until it has others killed once more.
    nodes : int
        How many nodes there are.
    group : int64[n]
        Group of each job: its partition, or its quality of service.
    may : uint8[g, g]
        Whether jobs of one group preempt those of another.
    level : int64[n]
        PriorityTier of the partition of each job, or priority of its quality of service.
    mode : int64[n]
        Treatment of each job that is preempted: a place in `MODES`.
    exempt : int64[n]
        Seconds that each job runs at least before it gives way.
    """
    jobs = len(group)
    settings = (
        parameters.preempt_youngest_first,
        parameters.preempt_strict_order,
        parameters.preempt_reorder_count,
        parameters.kill_wait + parameters.message_timeout,
    )
    return Preemption(
        group=np.ascontiguousarray(group, np.int64),
        may=np.ascontiguousarray(may, np.uint8),
        level=np.ascontiguousarray(level, np.int64),
        mode=np.ascontiguousarray(mode, np.int64),
        way=_WAYS[mode],
        exempt=np.ascontiguousarray(exempt, np.int64),
        settings=np.array(settings, np.int64),
        suspended=np.zeros(jobs, np.uint8),
        again=np.zeros(jobs, np.int64),
        killed=np.zeros(jobs, np.int64),
        candidates=np.zeros(jobs, np.int64),
        overlap=np.zeros(jobs, np.int64),
        chosen=np.zeros(nodes, np.int64),
        victims=np.zeros(jobs, np.int64),
        by=np.zeros(jobs, np.int64),
        counts=np.zeros(3, np.int64),
    )


NOBODY = NoPreemption(nothing=np.zeros(0, np.int64))
"""Nobody is preempted."""


def preemption_of(
    parameters: SlurmParameters,
    nodes: int,
    partition: Integers,
    tier: Integers,
    modes: Sequence[PreemptMode],
    quality: Sequence[str],
) -> Preemption | NoPreemption:
    """Who preempts whom on so many nodes.

    Parameters
    ----------
    parameters : SlurmParameters
        Parameters of the scheduler.
    nodes : int
        How many nodes there are.
    partition : int64[n]
        Place of the partition of each job.
    tier : int64[p]
        PriorityTier of each partition.
    modes : sequence of str
        PreemptMode of each partition.
    quality : sequence of str
        Name of the quality of service of each job.
    """
    if parameters.preempt_type == "none":
        return NOBODY
    longest = parameters.preempt_exempt_time
    if parameters.preempt_type == "partition_prio":
        group, level = partition.astype(np.int64), tier
        may = tier[:, None] > tier[None, :]
        ways: list[str] = list(modes)
        exempt = [longest] * len(tier)
    else:
        qualities = {} if parameters.accounting is None else dict(parameters.accounting.qualities)
        names = [*qualities, *sorted(set(quality) - set(qualities))]
        known = [qualities.get(name, Quality(name=name)) for name in names]
        group = np.array([names.index(name) for name in quality], np.int64)
        level = np.minimum(np.array([each.priority for each in known], np.int64), 0xFFFF)
        may = np.array([[other in each.preempts for other in names] for each in known])
        np.fill_diagonal(may, False)
        ways = [each.preempt_mode or parameters.preempt_mode for each in known]
        exempt = [longest if each.preempt_exempt_time is None else each.preempt_exempt_time for each in known]
    if parameters.preempt_type != "partition_prio" or not parameters.is_since("26.05"):
        exempt = [0 if way == "suspend" else time for way, time in zip(ways, exempt, strict=True)]
    return preemption_arrays(
        parameters,
        nodes,
        group=group,
        may=may.astype(np.uint8),
        level=level[group],
        mode=np.array([MODES.index(each) for each in ways], np.int64)[group],
        exempt=np.array(exempt, np.int64)[group],
    )


def resumable(tables: kernels.Tables, suspended: Sequence[int], job: int, cores: Integers) -> bool:
    """Whether a suspended job has its cores to itself again.

    Parameters
    ----------
    tables : Tables
        The cluster.
    suspended : sequence of int
        All suspended jobs, this one among them.
    job : int
        The job.
    cores : int64[m]
        Cores of each node.
    """
    mine, jobs = nodes_of(tables, job), tables.jobs
    running: RecordArray = tables.running[: tables.counts[0]]
    awake = [other for other in running.tolist() if other not in set(suspended)]
    rivals = [other for other in awake if np.isin(nodes_of(tables, other), mine).any()]
    if rivals and (jobs["whole"][job] or jobs["whole"][rivals].any()):
        return False
    taken = np.zeros(len(cores), np.int64)
    for other in [job, *rivals]:
        taken[nodes_of(tables, other)] += jobs["cores"][other]
    return bool((taken <= cores)[mine].all())


def nodes_of(tables: kernels.Tables, job: int) -> Integers:
    """Nodes of a running job."""
    record = tables.jobs[job]
    placed: Integers = tables.placed[record["first"] : record["first"] + record["nodes"]]
    return placed

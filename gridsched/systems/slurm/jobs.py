"""Jobs and nodes of a cluster as the controller wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.nodes.records import EventKind
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.submission import Submission
from gridsched.systems.job_outcomes import lifecycles_of
from gridsched.systems.node_records import (
    OVER_LIMIT,
    REASONS,
    column_of,
    constraint_numbers,
    constraint_sets,
    constraints_of,
    events_of,
    groups_of,
    limits_of,
    partition_sets,
    partitions_of,
    typed_nodes,
)
from gridsched.systems.slurm.accounts import Owner
from gridsched.systems.slurm.controller import (
    SlurmCluster,
    Tickets,
    chain_tasks,
    job_records,
    suits_of,
)
from gridsched.systems.slurm.kernels import EVERYWHERE, EXCLUSIVE, WINDOW
from gridsched.systems.slurm.limits import LimitsOfJobs, limits_of_jobs, unlimited
from gridsched.systems.slurm.parameters import PartitionRules, SlurmParameters
from gridsched.workloads.table import Workload, add_counts

Integers = NDArray[np.int64]

_KIBIBYTES = 1024


WHY_REJECTED = (
    *(f"{why}, association or QOS" if why == OVER_LIMIT else why for why in REASONS),
    "not admitted to its partition",
    "more licences than there are",
    "a component of the same heterogeneous job is rejected",
)
"""Why Slurm rejects a job."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterJobs:
    """The jobs of one cluster, and what they run on.

    Parameters
    ----------
    machine, tickets : SlurmCluster, Tickets
        For the controller.
    rejected : int64[jobs]
        Why a job is rejected, from 1 on of `WHY_REJECTED`; 0 for those that are not.
    limits, limited
        Limits of groups and job arrays, and those that each job is subject to.
    outages : int64[..., 5]
        When which node was out.
    shared_gpus : int
        Jobs that ask for a part of a GPU, and get a whole one.
    keeps : bool[...], optional
        Rows of limits of which what was used does not decay; none where no limit is of minutes.
    limit_keys : list of tuple of str
        Keys of the last of the limits, which are those of associations and qualities of service.
    """

    machine: SlurmCluster
    tickets: Tickets
    rejected: Integers
    limits: RecordArray
    limited: Integers
    outages: Integers
    shared_gpus: int = 0
    keeps: NDArray[np.bool_] | None = None
    limit_keys: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, int]:
        """How many jobs were rejected why."""
        return add_counts(
            {}, {text: int((self.rejected == k).sum()) for k, text in enumerate(WHY_REJECTED, 1)}
        )

    def why_rejected(self, job: int) -> str:
        """Why a job was rejected; empty if it was not."""
        return ("", *WHY_REJECTED)[int(self.rejected[job])]


def cluster_jobs(
    submission: Submission,
    own: Integers,
    cluster: Cluster,
    *,
    parameters: SlurmParameters,
) -> ClusterJobs:
    """Jobs of a cluster in Slurm's terms: nodes, and what each of them gives.

    A job that names a number of nodes spreads over so many. Any other one gets the fewest that can hold its
    processors and GPUs.

    Parameters
    ----------
    submission : Submission
        The jobs of all clusters.
    own : int64[n]
        Those of this one.
    cluster : Cluster
        The cluster.
    parameters : SlurmParameters
        What is given to jobs, and what accounts, users and partitions may have.
    """
    linear, safe = parameters.select_type == "linear", parameters.safe_limits
    accounting = parameters.accounting if parameters.enforce_limits else None
    rules = parameters.partition_rules or {}
    workload = submission.workload.select(own)
    nodes = typed_nodes(cluster)
    names = cluster.node_names
    of, where = _rows(workload, cluster, parameters.partition_lists or {})
    by_job, workload = workload, _repeated(workload, of)
    reach = partition_sets(cluster, names).astype(np.uint8)
    sets = (reach, constraint_sets(cluster, names), constraint_numbers(cluster))
    records = _records(
        workload,
        nodes,
        reach,
        of,
        where,
        has_nodes=cluster.has_nodes,
        whole=_whole(workload, cluster, where, rules, linear),
        memory_is_consumed=parameters.memory_is_consumed or linear,
    )
    records["least"] = column_of(workload, "least_time")
    held = _licences(by_job, parameters)[of]
    owners = owners_of(workload)
    records["of"] = of
    records["limit"] = submission.estimate[own][of]
    records["features"] = constraints_of(workload, cluster)
    if by_job.array is not None:
        array = np.asarray(by_job.array, np.int64)
        chain_tasks(records, array, column_of(by_job, "array_limit"))
    parts = np.full(len(by_job), -1) if by_job.component_of is None else np.asarray(by_job.component_of)
    records["hetjob"] = np.where(parts >= 0, np.unique(parts, return_inverse=True)[1].reshape(-1), -1)[of]
    limits, table, limited = _limits(workload, cluster)
    over, keeps = np.zeros(len(workload), np.bool_), None
    limit_keys: list[tuple[str, ...]] = []
    if accounting is not None:
        qualities = parameters.partition_qualities or {}
        of_partition = [qualities.get(each.number, "") for each in cluster.partitions] or [""]
        of_jobs = limits_of_jobs(accounting, owners, [of_partition[k] for k in where.tolist()])
        limit_keys = list(of_jobs.keys)
        if of_jobs.has_minutes:
            keeps = np.concatenate([np.zeros(len(table), np.bool_), of_jobs.keeps])
        limits, table, limited = _with_limits(of_jobs, limits, table, limited, safe)
        over = _over(of_jobs, records, workload, safe)
    reason = _rejected(records, workload, cluster, nodes, sets, over, rules)
    reason = np.where((reason == 0) & ~_admitted(owners, where, cluster, rules), len(REASONS) + 1, reason)
    total = np.array(list((parameters.licences or {}).values()), np.int64)
    together = _held_together(held, records["hetjob"], len(by_job))
    reason = np.where((reason == 0) & (together > total).any(axis=1), len(REASONS) + 2, reason)
    if parameters.every_partition_admits:
        _reject_by_one(records, reason, reach)
    rows = _possible(records, reason)
    records, limited, rejected = records[rows], limited[rows], reason[rows[: len(by_job)]]
    apart = (rejected == 0) & np.isin(parts, parts[(rejected > 0) & (parts >= 0)])
    rejected = np.where(apart, len(REASONS) + 3, rejected)
    # the controller wants a column, if only an empty one
    subject = limited if limited.shape[1] else np.full((len(records), 1), -1, np.int64)
    priority = np.array([each.priority for each in cluster.partitions] or [1], np.int64)
    singles, of_nodes, outages = events_of(cluster)
    events, windows, reserved = _reservations(singles, of_nodes, len(names))
    return ClusterJobs(
        machine=SlurmCluster(
            nodes=nodes,
            lines=np.repeat(np.arange(len(cluster.node_types)), [kind.count for kind in cluster.node_types]),
            reach=reach,
            featured=sets[1],
            numbers=sets[2],
            tier=priority,
            limits=table,
            events=events,
            windows=windows,
            reserved=reserved,
            licences=total,
            requeue=cluster.requeue,
            checkpoints=(cluster.checkpoint_interval, cluster.checkpoint_cost),
        ),
        tickets=Tickets(
            jobs=records,
            run=submission.run_time[own],
            limited=subject,
            licences=held[rows],
            lifecycles=lifecycles_of(replace(submission, workload=by_job), rejected > 0),
        ),
        rejected=rejected,
        limits=limits,
        limited=limited[: len(by_job)],
        outages=outages,
        shared_gpus=int((column_of(by_job, "gpu_share") > 0).sum()) if cluster.has_nodes else 0,
        keeps=keeps,
        limit_keys=limit_keys,
    )


def _rows(
    workload: Workload, cluster: Cluster, lists: Mapping[int, Sequence[int]]
) -> tuple[Integers, Integers]:
    """Jobs once for each of their partitions: the job, and the place of the partition.

    The first rows are the jobs, each in the first of its partitions; the others follow, by job.
    """
    first = partitions_of(workload, cluster)
    of = np.arange(len(workload))
    if workload.partitions is None or not lists:
        return of, first
    places = {each.number: place for place, each in enumerate(cluster.partitions)}
    more_of, more = [], []
    for number, listed in lists.items():
        known = [places[each] for each in dict.fromkeys(listed) if each in places]
        jobs = np.flatnonzero(workload.partitions == number)
        if len(known) > 1 and len(jobs):
            first[jobs] = known[0]
            more_of.append(np.repeat(jobs, len(known) - 1))
            more.append(np.tile(known[1:], len(jobs)))
    if not more:
        return of, first
    others = np.concatenate(more_of)
    order = np.argsort(others, kind="stable")
    return np.append(of, others[order]), np.append(first, np.concatenate(more)[order])


def _repeated(workload: Workload, of: Integers) -> Workload:
    """A workload of the jobs of some rows."""
    if len(of) == len(workload):
        return workload
    return replace(workload, dependencies=None).select(of)


def _reject_by_one(records: RecordArray, reason: Integers, reach: NDArray[np.uint8]) -> None:
    """Let jobs be rejected in all of their partitions if one of them does not admit them.

    Source: `_valid_job_part` and `_select_nodes_parts_resvs` of slurmctld (job_mgr.c), Slurm 22.05: nodes
    that its features do not allow are no reason.
    """
    not_admitted = len(REASONS) + 1
    beyond = records["nodes"] > reach.sum(axis=1)[records["partition"]]
    refused = records["of"][np.isin(reason, (1, not_admitted)) | beyond]
    reason[(reason == 0) & np.isin(records["of"], refused)] = not_admitted


def _possible(records: RecordArray, reason: Integers) -> Integers:
    """Rows that are kept: one of each job, which is the first that can run, and others that can."""
    of = records["of"]
    count = int(of.max(initial=-1)) + 1
    if count == len(records):
        return np.arange(count)
    order = np.lexsort((np.arange(len(of)), reason > 0, of))
    is_first = np.append(True, np.diff(of[order]) > 0)
    others = order[~is_first]
    found: Integers = np.append(order[is_first], np.sort(others[reason[others] == 0]))
    return found


def _whole(
    workload: Workload,
    cluster: Cluster,
    where: Integers,
    rules: Mapping[int, PartitionRules],
    linear: bool,
) -> Integers:
    """Jobs whose nodes run nothing else, and why."""
    exclusive = [each.number in rules and rules[each.number].exclusive for each in cluster.partitions]
    asked = column_of(workload, "whole_nodes") > 0 if cluster.has_nodes else np.zeros(len(where), np.bool_)
    only_there = np.array(exclusive or [False])[where] & (not linear)
    everywhere = asked | linear | cluster.node_exclusive
    whole: Integers = EVERYWHERE * everywhere.astype(np.int64) + EXCLUSIVE * only_there.astype(np.int64)
    return whole


def _admitted(
    owners: Sequence[Owner], where: Integers, cluster: Cluster, rules: Mapping[int, PartitionRules]
) -> NDArray[np.bool_]:
    """Which jobs may run in their partitions, by account, user and quality of service."""
    admitted = np.ones(len(owners), np.bool_)
    for place, each in enumerate(cluster.partitions):
        if each.number in rules:
            mine = np.flatnonzero(where == place)
            known = {owners[row] for row in mine.tolist()}
            allowed = {owner for owner in known if rules[each.number].admits(*owner)}
            if len(allowed) < len(known):
                admitted[mine] = [owners[row] in allowed for row in mine.tolist()]
    return admitted


def _licences(workload: Workload, parameters: SlurmParameters) -> Integers:
    """Licences that jobs hold, of each kind that there is."""
    kinds = list(parameters.licences or {})
    held = np.zeros((len(workload), len(kinds)), np.int64)
    if workload.licences is not None:
        for number, listed in (parameters.licence_lists or {}).items():
            held[workload.licences == number] = [listed.get(kind, 0) for kind in kinds]
    if workload.component_of is not None and parameters.is_since("23.02"):
        # of a heterogeneous job only the first component holds any
        parts = np.asarray(workload.component_of)
        first = np.zeros(len(parts), np.bool_)
        first[np.unique(parts, return_index=True)[1]] = True
        held[(parts >= 0) & ~first] = 0
    return held


def _held_together(held: Integers, hetjob: Integers, jobs: int) -> Integers:
    """Licences that jobs hold, with those of the other components, which start at the same time.

    Rows behind the first so many are of further partitions of the jobs.
    """
    sums = np.zeros((int(hetjob.max(initial=-1)) + 1, held.shape[1]), np.int64)
    parts = hetjob >= 0
    own = np.flatnonzero(parts[:jobs])
    np.add.at(sums, hetjob[own], held[own])
    together = held.copy()
    together[parts] = sums[hetjob[parts]]
    return together


def _reservations(
    singles: RecordArray, of_nodes: RecordArray, nodes: int
) -> tuple[list[tuple[int, EventKind, int]], RecordArray, NDArray[np.uint8]]:
    """Events of nodes where maintenance of several nodes at one time is one reservation."""
    announced = {each["window"]: each["time"] for each in singles if each["kind"] == EventKind.ANNOUNCE}
    places: dict[tuple[int, int, int], int] = {}
    of_window = []
    for k, window in enumerate(of_nodes):
        key = (int(announced[k]), int(window["start"]), int(window["end"]))
        of_window.append(places.setdefault(key, len(places)))
    events: dict[tuple[int, EventKind, int], None] = {}
    for each in singles:
        single = each["window"] < 0
        which = int(each["node"]) if single else of_window[each["window"]]
        events[int(each["time"]), EventKind(int(each["kind"])), which] = None
    windows = np.array([(begin, end) for _, begin, end in places], WINDOW)
    reserved = np.zeros((len(places), nodes), np.uint8)
    for window, place in zip(of_nodes, of_window, strict=True):
        reserved[place, window["node"]] = 1
    return list(events), windows, reserved


def _records(
    workload: Workload,
    nodes: RecordArray,
    reach: NDArray[np.uint8],
    of: Integers,
    where: Integers,
    *,
    has_nodes: bool,
    whole: Integers,
    memory_is_consumed: bool,
) -> RecordArray:
    """What each job asks for."""
    size = np.maximum(np.asarray(workload.processors, np.int64), 1)
    records = job_records(len(workload))
    records["partition"] = where
    records["whole"] = whole
    records["user"] = np.unique(workload.user, return_inverse=True)[1].reshape(-1)
    asked_for = {
        name: column_of(workload, name) if has_nodes else np.zeros_like(size)
        for name in ("requested_gpus", "gpu_share", "requested_memory", "requested_nodes")
    }
    gpus = asked_for["requested_gpus"] + (asked_for["gpu_share"] > 0)
    per_processor = asked_for["requested_memory"] * memory_is_consumed
    spread = np.minimum(asked_for["requested_nodes"], size)
    asked = np.stack([size, gpus, per_processor, spread, where], axis=1)
    kinds, which = np.unique(asked, axis=0, return_inverse=True)
    shapes = np.array([_shape(kind.tolist(), nodes, reach) for kind in kinds], np.int64)
    for k, name in enumerate(("nodes", "cores", "memory", "gpus")):
        # a job is divided among nodes in one way in all of its partitions
        records[name] = shapes[which.reshape(-1)[of], k]
    records["processors_alone"] = shapes[which.reshape(-1), 4]
    records["wanted"] = size
    records["processors"] = np.where(whole > 0, records["processors_alone"], size)
    return records


def _shape(
    asked: Sequence[int], nodes: RecordArray, reach: NDArray[np.uint8]
) -> tuple[int, int, int, int, int]:
    """Nodes of a job; processors, memory [KiB] and GPUs of each; processors of all if they are whole."""
    size, gpus, per_processor, spread, where = asked
    mine = nodes[reach[where] != 0]
    tries = [spread] if spread else []
    if not spread:
        for cores in np.unique(mine["cores"])[::-1].tolist():
            most = int(mine["gpus"][mine["cores"] >= cores].max(initial=0))
            tries.append(max(-(-size // cores), -(-gpus // most) if most else 1))
    for count in tries:
        cores, devices = -(-size // count), -(-gpus // count)
        memory = per_processor * cores
        fits = (mine["cores"] >= cores) & (mine["memory"] >= memory) & (mine["gpus"] >= devices)
        shape = (count, cores, memory, devices, count * int(mine["cores"][fits].max(initial=cores)))
        if fits.sum() >= count:
            break
    return shape


def _rejected(
    records: RecordArray,
    workload: Workload,
    cluster: Cluster,
    nodes: RecordArray,
    sets: tuple[NDArray[np.uint8], Integers, Integers],
    over_limit: NDArray[np.bool_],
    rules: Mapping[int, PartitionRules],
) -> Integers:
    """Why rows of jobs can never run: the place of the reason in `REASONS`, from 1 on; else 0."""
    over_partition = np.zeros(len(records), np.bool_)
    for index, each in enumerate(cluster.partitions):
        mine = records["partition"] == index
        for values, most in (
            (np.asarray(workload.requested_time, np.int64), each.time_limit),
            (np.asarray(workload.processors, np.int64), each.most_processors),
            (records["nodes"], each.most_nodes),
        ):
            if most is not None:
                over_partition |= mine & (values > most)
        if each.number in rules:
            over_partition |= mine & (records["nodes"] < rules[each.number].least_nodes)
    suits, kind, choices, numbers = suits_of(records, nodes, *sets)
    there = suits.sum(axis=1)
    of_best = np.array([there[first : first + count].max() for first, count in choices.tolist()])
    named = np.zeros(len(choices), np.int64)
    for k, (first, count) in enumerate(choices.tolist()):
        wanted = numbers[first : first + count]
        if wanted.any():  # parts, of which each needs its own
            of_best[k] = there[k] if (there[first : first + count] >= wanted).all() else 0
            named[k] = wanted.sum()
    too_large = (of_best[kind] < records["nodes"]) | (named[kind] > records["nodes"])
    for limit in cluster.limits:
        if limit.processors is not None:
            over_limit = over_limit | (groups_of(workload, limit) >= 0) & (
                records["processors"] > limit.processors
            )
    against: Integers = np.select([over_partition, too_large, over_limit], [1, 2, 3], 0)
    return against


def _limits(workload: Workload, cluster: Cluster) -> tuple[RecordArray, RecordArray, Integers]:
    """Limits of groups and job arrays, also as the controller wants them, and those of each job.

    Raises
    ------
    ConfigurationError
        If a limit is on processor-minutes, which the controller does not know.
    """
    for limit in cluster.limits:
        if limit.processor_minutes is not None:
            raise ConfigurationError(
                f"cluster {cluster.name}: slurm limits processor_minutes of accounts and qualities of "
                "service only; give GrpTRESRunMins in its accounting, or use another scheduler"
            )
    limits, limited = limits_of(workload, cluster.limits)
    table = unlimited(len(limits))
    table["jobs"], table["processors"] = limits["jobs"], limits["cores"]
    return limits, table, limited


def owners_of(workload: Workload) -> list[Owner]:
    """Account, user and quality of service of each job, by number."""
    columns = (workload.group, workload.user, workload.queue)
    return [(str(a), str(u), str(q)) for a, u, q in zip(*(each.tolist() for each in columns), strict=True)]


def _with_limits(
    of_jobs: LimitsOfJobs, limits: RecordArray, table: RecordArray, limited: Integers, safe: bool
) -> tuple[RecordArray, RecordArray, Integers]:
    """Limits with those of associations and qualities of service behind them."""
    more = of_jobs.table(safe=safe, mebibyte=_KIBIBYTES)
    checked = np.zeros(len(more), limits.dtype)
    checked["jobs"], checked["cores"] = more["jobs"], more["processors"]
    checked["seconds"] = FOREVER
    own = of_jobs.limited
    rows = own + len(table) * np.sign(own + 1)
    return (
        np.concatenate([limits, checked]),
        np.concatenate([table, more]),
        np.ascontiguousarray(np.hstack([limited, rows])),
    )


def _over(of_jobs: LimitsOfJobs, records: RecordArray, workload: Workload, safe: bool) -> NDArray[np.bool_]:
    """Which jobs ask for more than any one of them may have, or together with none beside them."""
    asked = {
        "jobs": np.ones(len(records)),
        "processors": records["processors"],
        "nodes": records["nodes"],
        "memory": records["memory"] * records["nodes"] / _KIBIBYTES,
        "gpus": records["gpus"] * records["nodes"],
        "wall": np.asarray(workload.requested_time),
    }
    over = of_jobs.too_much(asked)
    minutes = -(-records["limit"] // 60)
    for row, most in enumerate(of_jobs.rows):
        mine = (of_jobs.limited == row).any(axis=1)
        for what, number in most.items():
            way, _, resource = what.rpartition(" ")
            # who is killed when the minutes are used up may ask for more of them, unless there are none
            if way and (way != "used" or safe or not number):
                over |= mine & (asked[resource] * minutes > number)
    return np.asarray(over, np.bool_)

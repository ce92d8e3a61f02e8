"""How every system reports the outcomes of jobs that may fail to run: one form, for all runs that need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine import job_lifecycle
from gridsched.engine.job_lifecycle import COMPLETED, DEPENDENT, LIFE, LOST, STARVED, Fate
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.errors import WorkloadError
from gridsched.nodes import Outage
from gridsched.platform import Cluster
from gridsched.results import Variable, described
from gridsched.submission import Submission
from gridsched.workloads.dependencies import DEPENDENCY, FAILED_STATUS, KINDS
from gridsched.workloads.table import NOTICES, Workload

Integers = NDArray[np.int64]

_NOTICE_WORDS = {
    "response_limit": ("response from which on its user has gone away, -1 for any", "s"),
    "returns_at": ("an instant at the time of the day at which its user is back then", "s"),
    "away_days": ("full days by which that is later", "d"),
}
"""Meaning and unit of the columns of workloads that say when users notice that a job has ended."""

_FATES = ", ".join(f"{fate.value} {fate.name.lower().replace('_', ' ')}" for fate in Fate)


@dataclass(frozen=True, kw_only=True, eq=False)
class JobOutcome:
    """Outcomes of n jobs.

    Parameters
    ----------
    fate : int64[n]
        Values of `gridsched.engine.job_lifecycle.Fate`.
    killed : int64[n]
        How often each was killed by a failing node.
    extra_work : int64[n]
        Processor-seconds that were lost or spent on checkpoints. Of a job that was lost, or that still waits
        after it was killed, its run time times its processors is taken off: it is work that was not done.
    eligible_time : int64[n]
        First time [s] at which each could have started, by its submission and its dependencies.
    """

    fate: Integers
    killed: Integers
    extra_work: Integers
    eligible_time: Integers


def needs_lifecycles(clusters: Any, workload: Workload) -> bool:
    """Whether nodes fail, users give up, or jobs wait for others, so that a run has to tell fates."""
    asked = (workload.gives_up_time, workload.dependencies)
    return any(cluster.events for cluster in clusters) or any(column is not None for column in asked)


def outcome_variables(workload: Workload, outcomes: JobOutcome) -> tuple[dict[str, Variable], dict[str, int]]:
    """Variables and counters of a run that with the outcomes of its jobs."""
    variables: dict[str, Variable] = {
        "fate": ("job", outcomes.fate, f"job outcome: {_FATES}", "1"),
        "killed": ("job", outcomes.killed, "how often the job was killed by a failing node", "1"),
        "extra_work": ("job", outcomes.extra_work, "work that was lost, and checkpoints", "s"),
        "eligible_time": ("job", outcomes.eligible_time, "first time at which it could have started", "s"),
    }
    if workload.gives_up_time is not None:
        variables["gives_up_time"] = (
            "job",
            np.asarray(workload.gives_up_time, np.int64),
            "when its user gives up if it still waits, -1 for never",
            "s",
        )
    if workload.dependencies is not None:
        for name in DEPENDENCY.names or ():
            text = f"{name} of a dependency; kinds are {KINDS}"
            variables[f"dependency_{name}"] = ("dependency", workload.dependencies[name].copy(), text, "1")
        fails = np.isin(workload.status, FAILED_STATUS).astype(np.int64)
        variables["fails"] = ("job", fails, "whether it ends badly of itself, by its status", "1")
        for name, column in _notices(workload).items():
            variables[name] = ("job", np.asarray(column, np.int64), *_NOTICE_WORDS[name])
    told = (Fate.GAVE_UP, Fate.NEVER_ELIGIBLE, Fate.LOST, Fate.STARVED)
    counters = {f"jobs_{fate.name.lower()}": int((outcomes.fate == fate).sum()) for fate in told}
    return variables, {**counters, "executions_killed": int(outcomes.killed.sum())}


def outcomes_of(lives: NDArray[Any], done: NDArray[np.bool_], extra_work: Integers) -> JobOutcome:
    """Outcomes of jobs by their lifecycles (LIFE[n]), and which of them are `done`: the others starve."""
    return JobOutcome(
        fate=np.where((lives["fate"] == COMPLETED) & ~done, STARVED, lives["fate"]),
        killed=lives["killed"].copy(),
        extra_work=extra_work,
        eligible_time=lives["eligible"].copy(),
    )


def outcomes_on_nodes(
    lives: NDArray[Any], jobs: RecordArray, size: Integers, requests: int = 1
) -> JobOutcome:
    """Outcomes of jobs on nodes.

    Parameters
    ----------
    lives : LIFE[n]
        The jobs as their users see them.
    jobs : JOB[n * requests]
        As of `gridsched.engine.nodes.records`; only one of the requests of a job has run.
    size : int64[n]
        Processors.
    """

    def of_jobs(values: Any) -> Integers:
        return np.asarray(values.reshape(-1, requests).sum(axis=1).astype(np.int64))

    done = of_jobs(jobs["done"]) > 0
    # of who was killed and is lost, or still waits, there is work that was not done
    left = of_jobs(np.where(jobs["killed"] > 0, jobs["work"], 0))
    unfinished = ~done & np.isin(lives["fate"], (COMPLETED, LOST))
    return outcomes_of(lives, done, (of_jobs(jobs["extra"]) - np.where(unfinished, left, 0)) * size)


def dependents_of(
    table: NDArray[Any], jobs: int, notices: Mapping[str, NDArray[Any]] | None = None
) -> tuple[NDArray[Any], Integers]:
    """Who depends on each job, one job after the other, and where those of each begin.

    Parameters
    ----------
    table : DEPENDENCY[...]
        The dependencies.
    jobs : int
        How many jobs there are.
    notices : mapping of name to int64[n], optional
        Columns of a workload that say when users notice ends; they do at once without.
    """
    by_other = table[np.lexsort((table["job"], table["on"]))]
    found = np.zeros(len(table), DEPENDENT)
    for name in ("job", "kind", "delay"):
        found[name] = by_other[name]
    found["limit"] = FOREVER
    if notices:
        limit = notices["response_limit"][by_other["on"]]
        found["limit"] = np.where(limit >= 0, limit, FOREVER)
        found["returns"] = notices["returns_at"][by_other["on"]]
        found["away"] = notices["away_days"][by_other["on"]]
    return found, np.searchsorted(by_other["on"], np.arange(jobs + 1)).astype(np.int64)


def dependents_in(workload: Workload) -> tuple[NDArray[Any], Integers]:
    """Who depends on each job of a workload, as `dependents_of`."""
    table = np.empty(0, DEPENDENCY) if workload.dependencies is None else workload.dependencies
    return dependents_of(table, len(workload), _notices(workload))


def _notices(workload: Workload) -> dict[str, NDArray[Any]]:
    """Columns that say when users notice ends, of a workload that has them."""
    extra = workload.extra
    if NOTICES[0] not in extra:
        return {}
    missing = [name for name in NOTICES if name not in extra]
    if missing:
        raise WorkloadError(
            f"{workload.name}: column {NOTICES[0]} without {missing[0]}; give when users are back"
        )
    return {name: extra[name] for name in NOTICES}


def lifecycles_of(submission: Submission, rejected: NDArray[np.bool_]) -> job_lifecycle.Lifecycles:
    """The lifecycles of all jobs of a submission, for systems that schedule processors, not nodes.

    Parameters
    ----------
    submission : Submission
        The n jobs.
    rejected : bool[n]
        Those that no cluster can ever run.
    """
    workload = submission.workload
    dependents, first_dependent = dependents_in(workload)
    jobs = np.zeros(len(workload), LIFE)
    jobs["submit"] = workload.submit_time
    gives_up = workload.gives_up_time
    jobs["gives_up"] = FOREVER if gives_up is None else np.where(gives_up >= 0, gives_up, FOREVER)
    jobs["unmet"] = 1 + np.bincount(dependents["job"], minlength=len(jobs))
    jobs["failed"] = np.isin(workload.status, FAILED_STATUS)
    jobs["fate"] = np.where(rejected, int(Fate.REJECTED), int(Fate.COMPLETED))
    return job_lifecycle.allocate(jobs, dependents, first_dependent)


# --- outages of clusters that are numbers of processors -------------------------------------------

OUTAGE = np.dtype(
    [
        ("cluster", np.int64),
        ("first", np.int64),  # the lowest of its processors that is out
        ("end", np.int64),  # the processor after the highest one
        ("start", np.int64),
        ("until", np.int64),
        ("announced", np.int64),  # when it is known that it comes: at its start, for a failure
        ("drained", np.int64),  # whether jobs go on there to their end
    ]
)
"""A time in which some neighbouring processors of a cluster are down, drained or in maintenance."""


def named_nodes(cluster: Cluster, wanted: Iterable[str]) -> NDArray[np.bool_]:
    """Nodes of a cluster that are named by their own names or that of their type; all if none is named."""
    names, chosen = cluster.node_names, set(wanted)
    kinds = [kind.name for kind in cluster.node_types for _ in range(kind.count)]
    if not chosen or "*" in chosen:
        return np.ones(len(names), np.bool_)
    return np.array([name in chosen or kind in chosen for name, kind in zip(names, kinds, strict=True)])


_BEGINS = {"down": Outage.DOWN, "drain": Outage.DRAINED}
_ENDS = {"up": Outage.DOWN, "resume": Outage.DRAINED}
"""Events that begin and end an outage of a kind."""


def times_out(cluster: Cluster) -> list[tuple[int, int, int, int, int]]:
    """When which node is out: the node, start, end, kind (value of `Outage`), and since when it is known.

    Nodes that nobody brings back are out until `FOREVER`.
    """
    out: list[tuple[int, int, int, int, int]] = []
    since: dict[tuple[int, int], int] = {}
    for event in sorted(cluster.events, key=lambda event: event.time):
        for node in np.flatnonzero(named_nodes(cluster, (event.node,))).tolist():
            if event.kind == "maintenance":
                out.append((node, event.start, event.end, int(Outage.MAINTENANCE), event.time))
            elif event.kind in _BEGINS:
                since.setdefault((node, int(_BEGINS[event.kind])), event.time)
            elif (ended := (node, int(_ENDS[event.kind]))) in since:
                begin = since.pop(ended)
                out.append((node, begin, event.time, ended[1], begin))
    return out + [(node, begin, FOREVER, kind, begin) for (node, kind), begin in since.items()]


def outages_of(clusters: Sequence[Cluster]) -> NDArray[Any]:
    """Outages of clusters whose nodes have `processors_per_node` processors each, by start.

    A cluster's node k has the processors from k x processors_per_node on.
    """
    rows = [
        (index, node * size, (node + 1) * size, start, end, announced, int(kind == Outage.DRAINED))
        for index, cluster in enumerate(clusters)
        for size in [cluster.processors_per_node]
        for node, start, end, kind, announced in times_out(cluster)
    ]
    rows.sort(key=lambda row: (row[3], row[0], row[1]))
    return np.array(rows, OUTAGE)


OUTAGE_EVENT = np.dtype([("time", np.int64), ("kind", np.int64), ("outage", np.int64)])
"""Something that happens to the processors of an outage; what kinds there are is a matter of the system."""


def outage_events(*times: Integers) -> NDArray[Any]:
    """Events of each kind at their times, one for each outage, FOREVER for none; by time, kind and outage."""
    events = np.zeros(np.shape(times), OUTAGE_EVENT)
    events["kind"], events["outage"] = np.indices(events.shape)
    events["time"] = times
    return np.sort(events[events["time"] < FOREVER], order=["time", "kind", "outage"])


def outage_variables(outages: NDArray[Any]) -> dict[str, Variable]:
    """Variables of a run that say which processors were out when; drained ones are left aside."""
    return described("closure", _CLOSURE, outages[outages["drained"] == 0], "closure_")


_CLOSURE = {
    "cluster": ("index of the cluster of which processors were out", "1"),
    "first": ("the lowest processor that was out", "1"),
    "end": ("the processor after the highest one that was out", "1"),
    "start": ("start of an outage", "s"),
    "until": ("end of an outage", "s"),
}

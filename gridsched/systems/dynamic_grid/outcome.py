"""What a run of a dynamic grid says: the outcomes of each job, cluster and proxy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.job_lifecycle import Fate, Lifecycles
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.platform import Cluster
from gridsched.results import Schedule, Variable, of_tasks
from gridsched.submission import Submission
from gridsched.systems.dynamic_grid.kernels import state as dynamic_state
from gridsched.systems.dynamic_grid.membership import Membership
from gridsched.systems.dynamic_grid.planning import DynamicSchedule, as_local_jobs, checkpoints_of, paces_of
from gridsched.systems.job_outcomes import JobOutcome, outage_variables, outages_of, outcome_variables

if TYPE_CHECKING:
    from gridsched.systems.dynamic_grid.scheduler import DynamicGrid

OUTCOMES: tuple[str, ...] = ("rejected", "finished", "stopped", "stranded", "left")
"""What the numbers of the variable `outcome` mean."""

REJECTED, FINISHED, STOPPED, STRANDED, LEFT = range(len(OUTCOMES))

_JOB_VARIABLES: dict[str, tuple[str, str]] = {
    "outcome": (
        "outcome: 0 rejected, 1 finished, 2 stopped, 3 stranded, 4 left (see fate)",
        "1",
    ),
    "reach_processors": ("processors of the largest clique that the job may use", "1"),
    "sent_time": ("time when the job came to the grid scheduler, -1 if never", "s"),
    "head_time": ("time when its local scheduler first found that it cannot start, -1 if never", "s"),
    "yield_time": ("time when grid jobs were first asked to make place for it, -1 if never", "s"),
    "suspensions": ("times that the job was given back to the grid scheduler", "1"),
    "migrations": ("times that tasks of the job moved to neighbours", "1"),
    "tasks_moved": ("tasks that moved to neighbours", "1"),
    "multi_site_time": ("time executed on several clusters", "s"),
    "extra_work": ("processor-seconds executed beyond run time x processors", "s"),
    "lost_work": ("processor-seconds executed and lost", "s"),
    "kept_from": ("what was executed before this time was lost, -1 if nothing was", "s"),
}

_CLUSTER_VARIABLES: dict[str, tuple[str, str]] = {
    "sent": ("local jobs sent to the grid scheduler", "1"),
    "evictions": ("parts of grid jobs that had to leave", "1"),
    "tasks_out": ("tasks that moved to neighbours", "1"),
    "tasks_in": ("tasks that came from neighbours", "1"),
    "suspensions": ("evictions for which no neighbour had processors", "1"),
    "inquiries": ("neighbours asked for processors", "1"),
    "asked": ("confirmations that the grid scheduler asked for", "1"),
    "refused": ("confirmations refused", "1"),
}

_EVENT_VARIABLES: dict[str, tuple[str, str]] = {
    "time": ("time of the event", "s"),
    "cluster": ("index of the cluster", "1"),
    "kind": ("0 joins, 1 renews its lease, 2 leaves", "1"),
    "lease": ("end of the lease, -1 without", "s"),
    "done": ("time when a cluster that left had no grid job any more, -1 if it came back before", "s"),
}

_PROXY_VARIABLES: dict[str, tuple[str, str]] = {
    "job": ("index of the job", "1"),
    "cluster": ("index of the cluster that tasks left", "1"),
    "tasks": ("tasks that left", "1"),
    "begin": ("time when they left", "s"),
    "end": ("time when the job ended or was suspended", "s"),
}


def outcome(
    submission: Submission,
    jobs: RecordArray,
    entry: NDArray[np.int64],
    options: DynamicGrid,
    done: DynamicSchedule,
    lifecycles: Lifecycles | None = None,
) -> Schedule:
    """The schedule of a run, with what happened to each job, cluster and proxy.

    Parameters
    ----------
    submission : Submission
        The jobs, as at speed 1.
    jobs : JOB[n]
        The jobs as they were scheduled.
    entry : int64[n]
        Cluster to whose local scheduler each was submitted, or `planning.GRID`.
    options : DynamicGrid
        Parameters.
    done : DynamicSchedule
        What happened.
    lifecycles : Lifecycles, optional
        Further events of the jobs, if nodes failed, users gave up or jobs waited for others.
    """
    home, clusters, progress = submission.home, submission.clusters, done.progress
    segments = _segments(home, jobs, clusters, done)
    estimate = as_local_jobs(jobs["estimate"], entry, clusters)
    whole_run = as_local_jobs(jobs["run"], entry, clusters)
    mixed = paces_of([cluster.speed for cluster in clusters]) is not None
    if mixed:
        run_time = _run_time_at_speeds(whole_run, estimate, options, progress)
    else:
        run_time = _run_time(jobs, options, progress)
    stopped = _is_stopped(jobs, whole_run, estimate, options, progress)
    became = _outcome(stopped, progress)
    if lifecycles is not None:
        became[np.isin(lifecycles.jobs["fate"], _LEFT)] = LEFT
    executed = progress["single"] + progress["multi"] + _local_time(segments, progress)
    started = progress["start"] >= 0
    columns = {
        "outcome": became,
        "reach_processors": _reach(home, jobs, clusters, became, done),
        "sent_time": progress["sent"],
        "head_time": progress["headed"],
        "yield_time": progress["yielded"],
        "suspensions": progress["suspensions"],
        "migrations": progress["migrations"],
        "tasks_moved": progress["tasks_moved"],
        "multi_site_time": progress["multi"],
        "extra_work": np.where(started, (executed - run_time) * jobs["processors"], 0),
        "lost_work": _lost_work(segments, progress, clusters, options),
        "kept_from": progress["kept_from"],
    }
    messages = _messages(done)
    fates: dict[str, Variable] = {}
    counts: dict[str, int] = {}
    if lifecycles is not None:
        fates, counts = _fates(submission, lifecycles, done, columns, segments)
    return Schedule(
        start_time=progress["start"],
        end_time=_end_time(segments, progress),
        run_time=run_time,
        estimate=estimate,
        segments=segments,
        variables={
            "segment_held": (
                "segment",
                segments["held"],
                "whether processors are held without execution: tasks move",
                "1",
            ),
            **(of_tasks(segments["tasks"].copy()) if any(each.unit > 1 for each in clusters) else {}),
            **fates,
            **_described("", "job", _JOB_VARIABLES, columns),
            **(_work_time(jobs, stopped, options) if mixed else {}),
            **_of_clusters(done),
        },
        counters={
            "membership": _as_text(submission.platform.membership),
            "jobs_rejected": int((became == REJECTED).sum()),
            "jobs_sent": int(done.clusters["sent"].sum()),
            "jobs_stopped": int((became == STOPPED).sum()),
            "jobs_stranded": int((became == STRANDED).sum()),
            "cliques": done.cliques,
            "cliques_cut_off": int(done.cut_off),
            "largest_clique": done.largest_clique,
            "corrections": done.corrections,
            **{name: count for name, count in messages.items() if name != "messages"},
            **counts,
        },
        messages=float(messages["messages"]),
    )


_LEFT = (int(Fate.GAVE_UP), int(Fate.NEVER_ELIGIBLE), int(Fate.LOST))
"""Fates of jobs that neither ended nor wait."""


def _fates(
    submission: Submission,
    lifecycles: Lifecycles,
    done: DynamicSchedule,
    columns: dict[str, NDArray[Any]],
    segments: RecordArray,
) -> tuple[dict[str, Variable], dict[str, int]]:
    """Variables and counters that with the outcomes of jobs and nodes, and how work was saved."""
    fate = np.where(columns["outcome"] == STRANDED, int(Fate.STARVED), lifecycles.jobs["fate"])
    variables, counters = outcome_variables(
        submission.workload,
        JobOutcome(
            fate=fate,
            killed=done.killed,
            extra_work=columns["extra_work"],
            eligible_time=lifecycles.jobs["eligible"].copy(),
        ),
    )
    interval, pause = checkpoints_of(submission.clusters)
    variables |= {
        "segment_killed": (
            "segment",
            segments["killed"].copy(),
            "whether a failing node ended it",
            "1",
        ),
        "cluster_checkpoint_interval": ("cluster", interval, "work between checkpoints, 0 without", "s"),
        "cluster_checkpoint_cost": ("cluster", pause, "time that a checkpoint takes", "s"),
        **outage_variables(outages_of(tuple(submission.clusters))),
    }
    return variables, counters


def _as_text(membership: Membership | None) -> str:
    """Stays in JSON, for the attributes of a run."""
    stays = {
        name: [[int(stay.begin), stay.end if stay.end is None else int(stay.end)] for stay in own]
        for name, own in (membership or {}).items()
    }
    return json.dumps(stays, sort_keys=True)


def _described(
    prefix: str, dimension: str, names: dict[str, tuple[str, str]], columns: Any
) -> dict[str, Variable]:
    """Variables of one dimension with their long names and units."""
    return {
        f"{prefix}{name}": (dimension, np.asarray(columns[name]), long_name, units)
        for name, (long_name, units) in names.items()
    }


def _segments(
    home: NDArray[np.int64], jobs: RecordArray, clusters: Sequence[Cluster], done: DynamicSchedule
) -> RecordArray:
    """Segments of all jobs, in order of job, start and cluster."""
    local = np.flatnonzero((done.progress["sent"] < 0) & (done.starts >= 0))
    own = np.zeros(len(local), dynamic_state.SEGMENT)
    own["job"] = local
    own["cluster"] = home[local]
    own["tasks"] = jobs["processors"][local]
    for i, cluster in enumerate(clusters):
        here = own["cluster"] == i
        own["processors"][here] = cluster.allocation(own["tasks"][here])
    own["start"] = done.starts[local]
    own["end"] = done.progress["finish"][local]
    segments = np.concatenate([own, done.segments])
    return segments[np.lexsort((segments["held"], segments["cluster"], segments["start"], segments["job"]))]


def _run_time(jobs: RecordArray, options: DynamicGrid, progress: RecordArray) -> NDArray[np.int64]:
    """Seconds that each job runs on one cluster; of one that is stranded, whole seconds done and kept."""
    run = options.stopped_at(jobs["run"], jobs["estimate"])
    scale = round(options.overhead * dynamic_state.UNIT)
    left = -(-progress["left"] // scale)
    return np.where(
        (progress["state"] == dynamic_state.GRID_QUEUE) & (progress["start"] >= 0), run - left, run
    )


def _run_time_at_speeds(
    run: NDArray[np.int64], estimate: NDArray[np.int64], options: DynamicGrid, progress: RecordArray
) -> NDArray[np.int64]:
    """Seconds that each job ran where speeds differ; of a grid job without overhead and what was lost.

    Of a job that did not run, those at its home, or at speed 1.
    """
    scale = round(options.overhead * dynamic_state.UNIT)
    finished = progress["state"] == dynamic_state.FINISHED
    served = np.where(finished, -(-progress["served"] // scale), progress["served"] // scale)
    in_grid = (progress["sent"] >= 0) & (progress["start"] >= 0)
    return np.where(in_grid, served, options.stopped_at(run, estimate))


def _is_stopped(
    jobs: RecordArray,
    run: NDArray[np.int64],
    estimate: NDArray[np.int64],
    options: DynamicGrid,
    progress: RecordArray,
) -> NDArray[np.bool_]:
    """Whether each job is stopped if it runs, as a grid job or as a local one."""
    as_grid_job = options.stopped_at(jobs["run"], jobs["estimate"]) < jobs["run"]
    as_local_job = options.stopped_at(run, estimate) < run
    return np.where(progress["sent"] >= 0, as_grid_job, as_local_job)


def _work_time(jobs: RecordArray, stopped: NDArray[np.bool_], options: DynamicGrid) -> dict[str, Variable]:
    """Run times as at speed 1, up to where jobs are stopped.

    In whole seconds of its own cluster a local job may end before it is stopped, and at speed 1 be stopped.
    """
    run = np.where(stopped, options.stopped_at(jobs["run"], jobs["estimate"]), jobs["run"])
    return {"work_time": ("job", run, "run time as at speed 1", "s")}


def _outcome(stopped: NDArray[np.bool_], progress: RecordArray) -> NDArray[np.int64]:
    """Outcome of each job."""
    ended = np.where(stopped, STOPPED, FINISHED)
    outcome = np.where(progress["state"] == dynamic_state.FINISHED, ended, STRANDED)
    return np.where(progress["state"] == dynamic_state.REJECTED, REJECTED, outcome).astype(np.int64)


def _reach(
    home: NDArray[np.int64],
    jobs: RecordArray,
    clusters: Sequence[Cluster],
    outcome: NDArray[np.int64],
    done: DynamicSchedule,
) -> NDArray[np.int64]:
    """Processors of the largest clique that each job may use.

    Of a job whose cluster was not in the grid when it was rejected, those of the cluster; of stranded ones,
    those that were left in the end.
    """
    processors = np.array([cluster.processors for cluster in clusters], np.int64)
    reach = np.where(outcome == STRANDED, done.remaining, done.largest_clique)
    alone = (outcome == REJECTED) & (jobs["processors"] <= done.largest_clique)
    return np.where(alone, processors[home], reach)


def _local_time(segments: RecordArray, progress: RecordArray) -> NDArray[np.int64]:
    """Seconds that each job was executed as a local job."""
    sent = progress["sent"][segments["job"]]
    local = (sent < 0) | (segments["start"] < sent)
    total = np.zeros(len(progress), np.int64)
    np.add.at(total, segments["job"][local], (segments["end"] - segments["start"])[local])
    return total


def _lost_work(
    segments: RecordArray, progress: RecordArray, clusters: Sequence[Cluster], options: DynamicGrid
) -> NDArray[np.int64]:
    """Processor-seconds of each job that were executed and lost, those since its last checkpoint included."""
    seconds = segments["end"] - segments["start"]
    lost = segments["start"] < progress["kept_from"][segments["job"]]
    if not options.checkpoint:
        # of what it was as a local job, too
        lost |= segments["start"] < progress["sent"][segments["job"]]
    killed = segments["killed"] != 0
    since = np.where(killed, seconds - _saved(segments, killed, clusters), 0)
    work = np.where(segments["held"] == 0, np.where(lost, seconds, since), 0) * segments["tasks"]
    total = np.zeros(len(progress), np.int64)
    np.add.at(total, segments["job"], work)
    return total


def _saved(
    segments: RecordArray, killed: NDArray[np.bool_], clusters: Sequence[Cluster]
) -> NDArray[np.int64]:
    """Seconds of each killed segment that the last checkpoint has; its clusters save a spell together."""
    interval, pause = checkpoints_of(clusters)
    spells: dict[tuple[int, int], list[int]] = {}
    for k in np.flatnonzero(killed).tolist():
        spells.setdefault((int(segments["job"][k]), int(segments["start"][k])), []).append(k)
    saved = np.zeros(len(segments), np.int64)
    for rows in spells.values():
        there = segments["cluster"][rows]
        often = interval[there][interval[there] > 0]
        if len(often):
            length = int(segments["end"][rows[0]] - segments["start"][rows[0]])
            saved[rows] = often.min() * (length // (often.min() + pause[there].max()))
    return saved


def _end_time(segments: RecordArray, progress: RecordArray) -> NDArray[np.int64]:
    """Last end of the segments of each job."""
    end = np.full(len(progress), results.NO_TIME, np.int64)
    np.maximum.at(end, segments["job"], segments["end"])
    return end


def _messages(done: DynamicSchedule) -> dict[str, int]:
    """Messages of each kind between clusters and the grid scheduler, and all together."""
    clusters, progress = done.clusters, done.progress
    counts = {
        "messages_reports": done.reports,
        "messages_confirmations": int(clusters["asked"].sum()),
        "messages_dispatches": done.dispatches,
        "messages_inquiries": int(clusters["inquiries"].sum()),
        "messages_returns": int(progress["suspensions"].sum()),
        "messages_sent_jobs": int(clusters["sent"].sum()),
        "messages_membership": len(done.events),
    }
    return {
        **counts,
        "messages": sum(counts.values()),
        "confirmations_refused": int(clusters["refused"].sum()),
    }


def _of_clusters(done: DynamicSchedule) -> dict[str, Variable]:
    """What is known of clusters, the graph, members and proxies."""
    events = done.events.copy()
    events["lease"][events["lease"] == FOREVER] = -1
    return {
        **_described("cluster_", "cluster", _CLUSTER_VARIABLES, done.clusters),
        "adjacent": (
            ("cluster", "neighbour"),
            done.adjacent.astype(np.int8),
            "whether two clusters are neighbours",
            "1",
        ),
        **_described("event_", "event", _EVENT_VARIABLES, events),
        **_described("proxy_", "proxy", _PROXY_VARIABLES, done.proxies),
    }

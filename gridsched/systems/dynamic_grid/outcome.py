"""What a run of a dynamic grid says: the outcomes of each job, cluster and proxy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridsched import results
from gridsched.engine.job_lifecycle import GAVE_UP, LOST, NEVER_ELIGIBLE
from gridsched.engine.records import FOREVER, RecordArray
from gridsched.results import Schedule, Variable, described, of_tasks
from gridsched.submission import Submission
from gridsched.systems.dynamic_grid.kernels import state
from gridsched.systems.dynamic_grid.membership import Membership
from gridsched.systems.dynamic_grid.planning import DynamicSchedule, checkpoints_of
from gridsched.systems.job_outcomes import (
    needs_lifecycles,
    outage_variables,
    outages_of,
    outcome_variables,
    outcomes_of,
)

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
) -> Schedule:
    """The schedule of a run, with what happened to each job, cluster and proxy.

    Parameters
    ----------
    submission : Submission
        The jobs.
    jobs : WORK[n]
        The jobs as they were scheduled.
    entry : int64[n]
        Cluster to whose local scheduler each was submitted, or `planning.GRID`.
    options : DynamicGrid
        Parameters.
    done : DynamicSchedule
        What happened.
    """
    clusters, grid = submission.clusters, done.grid
    progress, requests = grid.progress, grid.requests
    by = [grid.segments[name] for name in ("held", "cluster", "start", "job")]
    segments = grid.segments[np.lexsort(by)]
    run, estimate = jobs["home_run"], jobs["home_estimate"]
    local_run = options.stopped_at(run, estimate)
    mixed = done.options.work != done.options.scale
    run_time = _run_time(local_run, done, mixed)
    stopped = np.where(progress["sent"] >= 0, requests["run"] < jobs["run"], local_run < run)
    became = _outcome(stopped, done)
    extra_work = np.where(progress["start"] >= 0, progress["executed"] - run_time, 0) * jobs["processors"]
    columns = {
        "outcome": became,
        "reach_processors": _reach(submission.home, became, done),
        "sent_time": progress["sent"],
        "head_time": progress["headed"],
        "yield_time": progress["yielded"],
        "multi_site_time": progress["multi"],
        "extra_work": extra_work,
        "lost_work": (progress["executed"] - progress["kept"]) * jobs["processors"],
        **{name: progress[name] for name in ("suspensions", "migrations", "tasks_moved", "kept_from")},
    }
    end_time = np.full(len(jobs), results.NO_TIME, np.int64)
    np.maximum.at(end_time, segments["job"], segments["end"])
    variables, counters = _fates(submission, done, became, extra_work, segments)
    held = "whether processors are held without execution: tasks move"
    variables = {
        "segment_held": ("segment", segments["held"].copy(), held, "1"),
        **(of_tasks(segments["tasks"].copy()) if any(each.unit > 1 for each in clusters) else {}),
        **variables,
        **described("job", _JOB_VARIABLES, columns),
        **_of_clusters(done),
    }
    if mixed:
        # In whole seconds of its own cluster a local job may end before it is stopped, and at speed 1 be so
        work = np.where(stopped, requests["run"], jobs["run"])
        variables["work_time"] = ("job", work, "run time as at speed 1", "s")
    messages = _messages(done)
    return Schedule(
        start_time=progress["start"],
        end_time=end_time,
        run_time=run_time,
        estimate=estimate,
        segments=segments,
        variables=variables,
        counters={
            "membership": _as_text(submission.platform.membership),
            **{f"jobs_{name}": int((became == OUTCOMES.index(name)).sum()) for name in _COUNTED},
            "jobs_sent": messages["messages_sent_jobs"],
            "cliques": len(grid.clique_ends) - 1,
            "cliques_cut_off": int(done.cliques.cut_off),
            "largest_clique": done.options.reach,
            "corrections": _corrections(done),
            **messages,
            **counters,
        },
        messages=float(sum(messages.values()) - messages["confirmations_refused"]),
    )


_COUNTED = ("rejected", "stopped", "stranded")
"""Outcomes of which a run counts the jobs."""

_LEFT = (GAVE_UP, NEVER_ELIGIBLE, LOST)
"""Fates of jobs that neither ended nor wait."""


def _fates(
    submission: Submission,
    done: DynamicSchedule,
    became: NDArray[np.int64],
    extra_work: NDArray[np.int64],
    segments: RecordArray,
) -> tuple[dict[str, Variable], dict[str, int]]:
    """Variables and counters with the outcomes of jobs and nodes, for runs in which there are such."""
    if not needs_lifecycles(submission.clusters, submission.workload):
        return {}, {}
    outcomes = outcomes_of(done.grid.lifecycles.jobs, became != STRANDED, extra_work)
    variables, counters = outcome_variables(submission.workload, outcomes)
    interval, pause = checkpoints_of(submission.clusters)
    killed = segments["killed"].copy()
    variables |= {
        "segment_killed": ("segment", killed, "whether a failing node ended it", "1"),
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


def _run_time(local_run: NDArray[np.int64], done: DynamicSchedule, mixed: bool) -> NDArray[np.int64]:
    """Seconds that each job runs on one cluster; of one that is stranded, whole seconds done and kept.

    Where speeds are `mixed`, those that each ran; of a grid job without overhead and what was lost, of a job
    that did not run those at its home, or at speed 1.
    """
    progress, scale = done.grid.progress, done.options.scale
    in_grid = (progress["sent"] >= 0) & (progress["start"] >= 0)
    counted = in_grid & (mixed | (progress["state"] == state.GRID_QUEUE))
    # the last second of a job that has ended counts in full
    spare = np.where(progress["state"] == state.FINISHED, scale - 1, 0)
    return np.where(counted, (progress["served"] + spare) // scale, local_run)


def _outcome(stopped: NDArray[np.bool_], done: DynamicSchedule) -> NDArray[np.int64]:
    """Outcome of each job."""
    ended = np.where(stopped, STOPPED, FINISHED)
    states, fates = done.grid.progress["state"], done.grid.lifecycles.jobs["fate"]
    found = [np.isin(fates, _LEFT), states == state.REJECTED, states == state.FINISHED]
    return np.select(found, [LEFT, REJECTED, ended], STRANDED).astype(np.int64)


def _reach(home: NDArray[np.int64], became: NDArray[np.int64], done: DynamicSchedule) -> NDArray[np.int64]:
    """Processors of the largest clique that each job may use.

    Of a job whose cluster was not in the grid when it was rejected, those of the cluster; of stranded ones,
    those that were left in the end.
    """
    largest = done.options.reach
    reach = np.where(became == STRANDED, done.remaining, largest)
    alone = (became == REJECTED) & (done.grid.requests["processors"] <= largest)
    return np.where(alone, done.grid.clusters["processors"][home], reach)


def _corrections(done: DynamicSchedule) -> int:
    """How often estimates were exceeded, where local schedulers look at expected ends."""
    count = done.grid.clock["corrections"].sum() + done.grid.state["corrections"].sum()
    return int(count) if done.options.looks else 0


def _reports(done: DynamicSchedule) -> int:
    """Reports that clusters sent until the last job ended, whether or not they contained anything new."""
    period, events = done.options.status_period, done.grid.events
    if period == 0:
        return int(done.grid.clusters["changes"].sum())
    last = done.grid.progress["finish"].max(initial=-1) + 1
    joins, leaves = events["kind"] == state.JOIN, events["kind"] == state.LEAVE
    # reports of all before a time are at multiples of the period
    before = -(-np.minimum(events["time"], last) // period)
    regular = before[leaves].sum() - before[joins].sum() - (-last // period) * (joins.sum() - leaves.sum())
    return int(regular + (joins & (events["time"] < last) & (events["time"] % period != 0)).sum())


def _messages(done: DynamicSchedule) -> dict[str, int]:
    """Messages of each kind between clusters and the grid scheduler, and how many were refused."""
    clusters = done.grid.clusters
    return {
        "messages_reports": _reports(done),
        "messages_confirmations": int(clusters["asked"].sum()),
        "messages_dispatches": int(done.grid.clock["dispatches"][0]),
        "messages_inquiries": int(clusters["inquiries"].sum()),
        "messages_returns": int(done.grid.progress["suspensions"].sum()),
        "messages_sent_jobs": int(clusters["sent"].sum()),
        "messages_membership": len(done.grid.events),
        "confirmations_refused": int(clusters["refused"].sum()),
    }


def _of_clusters(done: DynamicSchedule) -> dict[str, Variable]:
    """What is known of clusters, the graph, members and proxies."""
    events, adjacent = done.grid.events.copy(), done.grid.adjacent.astype(np.int8)
    events["lease"][events["lease"] == FOREVER] = -1
    return {
        **described("cluster", _CLUSTER_VARIABLES, done.grid.clusters, "cluster_"),
        "adjacent": (("cluster", "neighbour"), adjacent, "whether two clusters are neighbours", "1"),
        **described("event", _EVENT_VARIABLES, events, "event_"),
        **described("proxy", _PROXY_VARIABLES, done.grid.proxies, "proxy_"),
    }

"""Runs of local policies on one cluster, as the commands that simulate share them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridsched.cli.logs import Log
from gridsched.cli.printing import counts, jobs
from gridsched.errors import ConfigurationError, WorkloadError

if TYPE_CHECKING:
    import xarray as xr

    from gridsched.nodes import NodeEvent
    from gridsched.platform import Cluster
    from gridsched.policies.local import LocalPolicy
    from gridsched.workloads import Workload

SCORE = "score"
"""Name of the policy whose queue order is the user's own function."""


def named_policies(names: str, score: str | None) -> list[LocalPolicy]:
    """Policies that are named on the command line, each once, and the user's own."""
    from gridsched.policies import scores
    from gridsched.policies.local import POLICIES, LocalPolicy, named_policy

    wanted = [name for part in names.split(",") for name in (POLICIES if part == "all" else [part.strip()])]
    own = {}
    if score is not None:
        own[SCORE] = LocalPolicy(name=SCORE, order=scores.SCORE.load(score), backfilling="easy")
    elif SCORE in wanted:
        raise ConfigurationError(f"policy {SCORE!r} is your own function: name it with --score")
    return [own.get(name) or named_policy(name) for name in dict.fromkeys([*wanted, *own])]


def prepared(log: Log, options: argparse.Namespace) -> tuple[Workload, Cluster]:
    """Clean jobs of the window and partitions, and the cluster that replays them."""
    from gridsched.platform import Cluster
    from gridsched.traces import clean, select_window
    from gridsched.workloads.dependencies import with_preceding_jobs

    workload = _of_partitions(log, options.partition)
    processors = options.processors or workload.processors_available or _most_in_use(workload, options)
    cluster = Cluster(
        processors=processors,
        processors_per_node=options.processors_per_node,
        node_exclusive=options.node_exclusive,
        speed=options.speed,
        name=workload.name,
        events=_events(workload, options),
        requeue=options.requeue,
    )
    window = select_window(workload, month=options.month, jobs=options.jobs)
    made = clean(window, processors=processors, cancelled=options.cancelled)
    return with_preceding_jobs(made) if options.preceding else made, cluster


def _events(workload: Workload, options: argparse.Namespace) -> list[NodeEvent]:
    """Events of nodes, on the clock of the log."""
    from gridsched.nodes import read_events

    if not options.events:
        return []
    return read_events(options.events, unix_start_time=workload.unix_start_time, time_zone=workload.time_zone)


def _of_partitions(log: Log, names: str | None) -> Workload:
    """Jobs of the partitions that are named, or all."""
    import numpy as np

    from gridsched.workloads.table import add_counts

    if names is None:
        return log.workload
    numbers = [log.number("partition", name.strip()) for name in names.split(",")]
    mask = np.isin(log.workload.partition, numbers)
    if not mask.any():
        raise WorkloadError(
            f"{log.path}: no job in partition {names}; name another, or leave --partition out"
        )
    others = {"in another partition": int(np.count_nonzero(~mask))}
    return log.workload.select(mask, left_out=add_counts(log.workload.left_out, others))


def _most_in_use(workload: Workload, options: argparse.Namespace) -> int:
    """Processors that the log shows in use at once, in whole nodes."""
    from gridsched.comparison import recorded_peak

    most = recorded_peak(workload)
    if most is None:
        raise WorkloadError(
            f"{workload.name}: the log does not say how many processors its cluster has; use --processors"
        )
    node: int = options.processors_per_node
    return -(-most // node) * node


def preparation(workload: Workload, cluster: Cluster, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What is simulated, and what cleaning did to get there."""
    nodes = f" in nodes of {cluster.processors_per_node}" if cluster.processors_per_node > 1 else ""
    exclusive = ", one job a node" if cluster.node_exclusive else ""
    speed = f", speed {cluster.speed:g}" if cluster.speed != 1 else ""
    facts = [
        ("workload", workload.name),
        *counts(workload),
        ("jobs", f"{len(workload):,}"),
        ("cluster", f"{cluster.processors:,} processors{nodes}{exclusive}{speed}"),
        *_about_size(workload, cluster, options),
        ("estimates", options.estimates),
    ]
    unknown = workload.requested_time <= 0
    overrun = ~unknown & (workload.run_time > workload.requested_time)
    if unknown.any() and options.estimates != "actual":
        facts.append(("no requested time", f"{jobs(int(unknown.sum()))}, whose run time is taken"))
    if overrun.any() and options.kill:
        facts.append(("killed", f"{jobs(int(overrun.sum()))}, at their requested time"))
    if workload.dependencies is not None:
        waiting = len(set(workload.dependencies["job"].tolist()))
        facts.append(("dependencies", f"{jobs(waiting)} waiting for others"))
    if cluster.events:
        facts.append(("events of nodes", f"{len(cluster.events):,}"))
    if getattr(options, "score", None):
        facts.append(
            (f"policy {SCORE}", f"queue order by {options.score}, largest first, with EASY backfilling")
        )
    if workload.acknowledgement:
        facts.append(("acknowledgement", workload.acknowledgement))
    return facts


FATES = {
    "jobs_gave_up": "users gave up waiting",
    "jobs_never_eligible": "waited for a job that did not end well",
    "executions_killed": "killed by failing nodes",
    "jobs_lost": "lost with their nodes",
    "jobs_starved": "waited for nodes that never came back",
}
"""What may become of jobs, by attribute of a run."""


def fates(runs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What became of jobs that did not run once to their end, by policy; nothing where all did."""
    facts = []
    for attribute, what in FATES.items():
        told = [f"{name} {found[attribute]:,}" for name, found in runs.items() if found.get(attribute)]
        if told:
            facts.append((what, ", ".join(told)))
    return facts


def _about_size(workload: Workload, cluster: Cluster, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What the log tells of the size of the cluster, where it was guessed or is too small."""
    from gridsched.comparison import recorded_peak

    if not (options.processors or workload.processors_available):
        return [("", "the most that the log shows in use; name the cluster's with --processors")]
    most = recorded_peak(workload)
    if most is None or most <= cluster.processors:
        return []
    return [("", f"fewer than the {most:,} that the log shows in use at once: is that the cluster?")]


def run_policy(
    workload: Workload, cluster: Cluster, policy: LocalPolicy, options: argparse.Namespace
) -> xr.Dataset:
    """Verified run of one policy."""
    from gridsched.simulation import simulate
    from gridsched.verification import verify

    run = simulate(
        workload,
        cluster,
        policy,
        estimates=options.estimates,
        kill=options.kill,
        overrun=options.overrun,
        passes=options.passes,
    )
    verify(run)
    return run

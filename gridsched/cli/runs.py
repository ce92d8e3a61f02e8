"""Runs of local policies on one cluster, as the commands that simulate share them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridsched.cli.clusters import Setting, cluster_of
from gridsched.cli.logs import Log, cancelled
from gridsched.cli.options import names_of_aspects
from gridsched.cli.printing import counts, jobs, quantity, share, share_of
from gridsched.errors import ConfigurationError, WorkloadError
from gridsched.units import duration

if TYPE_CHECKING:
    import xarray as xr

    from gridsched.platform import Cluster
    from gridsched.policies.local import LocalPolicy
    from gridsched.systems.base import Scheduler
    from gridsched.workloads import Workload

SCORE = "score"
"""Name of the policy whose queue order is the user's own function."""


def named_schedulers(names: str, score: str | None) -> dict[str, LocalPolicy | Scheduler]:
    """Policies, classes and libraries of users that are named on the command line, by their labels."""
    from gridsched.systems.registry import is_in_file, is_library, scheduler_of

    given = [name.strip() for name in names.split(",")]
    own = [name for name in given if is_in_file(name) or is_library(name)]
    policies = [name for name in given if name not in own]
    chosen: dict[str, LocalPolicy | Scheduler] = {}
    if policies or score is not None:
        chosen |= {policy.name: policy for policy in named_policies(",".join(policies), score)}
    for name in own:
        scheduler = scheduler_of(name)
        # a library of the name of a policy goes by its place
        chosen[name if scheduler.label in chosen else scheduler.label] = scheduler
    return chosen


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


def one_policy(options: argparse.Namespace, command: str) -> LocalPolicy:
    """The policy of a command that takes a single one."""
    policies = named_policies(options.policy, None)
    if len(policies) != 1:
        raise ConfigurationError(f"--policy {options.policy}: {command} takes one policy")
    return policies[0]


def refuse_beside(option: str, given: Mapping[str, object]) -> None:
    """Refuse other options beside one, given their values or whether they differ from what is usual."""
    for other, value in given.items():
        if value:
            raise ConfigurationError(f"{option}: not with {other}; leave that out, or {option}")


_USUAL = {"estimates": "requested", "kill": False, "overrun": "doubling", "passes": "instant"}


def unusual(options: argparse.Namespace, *names: str) -> dict[str, bool]:
    """Which of the options that say how jobs are simulated are not as they are by default."""
    return {f"--{name}": getattr(options, name) != _USUAL[name] for name in names or _USUAL}


def prepared(log: Log, options: argparse.Namespace, configured: Cluster | None = None) -> Setting:
    """Clean jobs of the window and partitions, and the cluster that replays them, maybe as configured."""
    from gridsched.aspects import aspects_of, without
    from gridsched.traces import clean, select_window
    from gridsched.workloads import fit_patience, with_patience
    from gridsched.workloads.dependencies import with_preceding_jobs

    workload = _of_partitions(log, options.partition)
    cluster, notes = cluster_of(log, workload, options, configured)
    chosen = cancelled(options, accounting=log.accounting is not None)
    waiting: Any = "wait" if chosen == "patience" else chosen
    model = None
    if chosen == "patience":
        # all of the log tells of patience, not only a window of it
        model = fit_patience(clean(workload, processors=cluster.processors, cancelled=waiting))
    window = select_window(workload, month=options.month, jobs=options.jobs)
    made = clean(window, processors=cluster.processors, cancelled=waiting)
    if model is not None:
        made = with_patience(made, model, seed=options.seed)
    if options.preceding:
        made = with_preceding_jobs(made)
    made, cluster = without(made, cluster, names_of_aspects(options.without))
    used = aspects_of(made, cluster)
    if used and options.passes != "instant":
        raise ConfigurationError(
            f"--passes {options.passes}: not with {', '.join(used)}; leave these out with --without "
            f"{','.join(used)}"
        )
    if used:
        notes = [("information used", ", ".join(used)), *notes]
    if "memory" in used:
        notes = [*notes, *doubtful_memory(log, made)]
    return Setting(made, cluster, notes)


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


def preparation(setting: Setting, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What is simulated, and what cleaning did to get there."""
    workload, cluster = setting.workload, setting.cluster
    nodes = f" in nodes of {cluster.processors_per_node}" if cluster.processors_per_node > 1 else ""
    exclusive = ", one job a node" if cluster.node_exclusive else ""
    speed = f", speed {cluster.speed:g}" if cluster.speed != 1 else ""
    facts = [
        ("workload", workload.name),
        *counts(workload),
        ("jobs", f"{len(workload):,}"),
        ("cluster", f"{cluster.processors:,} processors{nodes or _node_types(cluster)}{exclusive}{speed}"),
        *_about_size(workload, cluster, options),
        *setting.notes,
        ("estimates", options.estimates),
    ]
    unknown = workload.requested_time <= 0
    if unknown.any() and options.estimates != "actual":
        facts.append(("no requested time", f"{jobs(int(unknown.sum()))}, whose run time is used"))
    facts += beyond_request(workload, estimates=options.estimates, overrun=options.overrun, kill=options.kill)
    facts += cancelled_in_queue(workload, options)
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


_OVERRUN = {
    "doubling": "a simulation doubles their expected run time whenever it is exceeded",
    "increments": "a simulation moves their expected end by fixed increments",
}
"""What is said of the rule for exceeded estimates, by value of --overrun."""


def beyond_request(
    workload: Workload, *, estimates: str = "requested", overrun: str = "doubling", kill: bool = False
) -> list[tuple[str, str]]:
    """What is said of jobs that ran longer than they requested, and of the rule for them."""
    known = workload.requested_time > 0
    late = int((known & (workload.run_time > workload.requested_time)).sum())
    if not late:
        return []
    if kill:
        return [("killed", f"{jobs(late)}, at their requested time")]
    rule = (
        f"{_OVERRUN[overrun]}; see --overrun, --kill"
        if estimates == "requested"
        else "their run time is the estimate; see --kill"
    )
    return [("beyond their request", f"{share(late, int(known.sum()))}: {rule}")]


def cancelled_in_queue(workload: Workload, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What is said of jobs that never started by the log, and of their waits."""
    from gridsched.traces.cleaning import wait_until_cancelled

    waited = wait_until_cancelled(workload)
    waits = waited[waited >= 0]
    if not len(waits):
        return []
    mean = duration(waits.mean()) if options.human else f"{quantity(waits.mean())} s"
    told = f"{share(len(waits), len(workload))}, after {mean} on average"
    return [("cancelled in the queue", f"{told}; not among the recorded waits")]


_USUAL_MEMORY, _MOST_MEMORY = 2**26, 2**30
"""KiB a processor that half of the jobs, and that any job, may request without doubt: 64 GiB and 1 TiB."""


def doubtful_memory(log: Log, workload: Workload) -> list[tuple[str, str]]:
    """What is said of requested memory that no machine has, in a log without a unit of its own."""
    import numpy as np

    asked = workload.requested_memory[workload.requested_memory > 0]
    if log.format != "swf" or not len(asked):
        return []
    median, most = float(np.median(asked)), float(asked.max())
    if median <= _USUAL_MEMORY and most <= _MOST_MEMORY:
        return []
    told = f"up to {most / 2**20:,.0f} GiB a processor, median {median / 2**20:,.0f} GiB"
    remedy = "divide field 10 by 1,024, or leave memory out with --without memory"
    return [("memory in bytes?", f"{told}, if read as KiB; {remedy}")]


_REASON = "rejected: "


def fates(runs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Outcomes of jobs that did not run once to their end, by policy; empty if all did."""
    from gridsched.comparison import FATES

    facts = []
    for attribute, what in FATES.items():
        told = [f"{name} {found[attribute]:,}" for name, found in runs.items() if found.get(attribute)]
        if told:
            facts.append((what, ", ".join(told)))
    reasons = dict.fromkeys(key for found in runs.values() for key in found if key.startswith(_REASON))
    for reason in reasons:
        told = [f"{name} {found[reason]:,}" for name, found in runs.items() if found.get(reason)]
        facts.append((reason, ", ".join(told)))
    return facts


_MAX_TYPES = 4


def _node_types(cluster: Cluster) -> str:
    """How many nodes of which sizes a cluster has; nothing of one without nodes of its own."""
    if not cluster.nodes:
        return ""
    kinds: dict[tuple[int, int | None, int], int] = {}
    for kind in cluster.nodes:
        size = (kind.cores, kind.memory, kind.gpus)
        kinds[size] = kinds.get(size, 0) + kind.count
    order = sorted(kinds.items(), key=lambda each: -each[1])
    told = [f"{count:,} of {_size(*size)}" for size, count in order[:_MAX_TYPES]]
    more = f", and {len(kinds) - _MAX_TYPES:,} other sizes" if len(kinds) > _MAX_TYPES else ""
    return f" on {sum(kinds.values()):,} nodes: {'; '.join(told)}{more}"


def _size(cores: int, memory: int | None, gpus: int) -> str:
    """What a node has."""
    parts = [f"{cores:,} cores", *([] if memory is None else [f"{memory:,} MiB"])]
    return ", ".join([*parts, *([f"{gpus} GPUs"] if gpus else [])])


def _about_size(workload: Workload, cluster: Cluster, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What the log tells of the size of the cluster, where it was guessed or is too small."""
    from gridsched.comparison import recorded_excess, recorded_peak

    if cluster.nodes:
        return []
    if not (options.processors or workload.processors_available or options.nodes or options.node_type):
        return [("", "the most that the log shows in use; name the cluster's with --processors")]
    most = recorded_peak(workload)
    if most is None or most <= cluster.processors:
        return []
    excess = recorded_excess(workload, cluster.processors)
    told = (
        f"fewer than the {most:,} that the log shows in use at once (more for {share_of(excess)} of the time)"
    )
    return [("", f"{told}: is that the cluster?")]


def run_policy(
    workload: Workload, cluster: Cluster, policy: LocalPolicy | Scheduler, options: argparse.Namespace
) -> xr.Dataset:
    """Verified run of one policy, or of a user's scheduler."""
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

"""`gridsched forecast`: when the jobs that wait will start."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gridsched.cli.logs import Log, find_trace, moment, read_log
from gridsched.cli.options import (
    add_command,
    add_human,
    add_policy,
    add_simulation,
    add_trace,
    names_of_aspects,
    policies_given,
    positive_integer,
    whole_number,
)
from gridsched.cli.printing import (
    UNKNOWN_TEXT,
    Times,
    counts,
    counts_of,
    facts_table,
    jobs,
    print_blocks,
    progress,
    table,
)
from gridsched.cli.runs import one_policy, prepared, refuse_beside, run_policy, unusual
from gridsched.cli.sites import OF_SLURM_ALONE, add_site_file, configured, use_site
from gridsched.errors import ConfigurationError, WorkloadError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gridsched.aspects import Pool
    from gridsched.cli.clusters import Setting
    from gridsched.forecasting.history import MethodName
    from gridsched.forecasting.scenarios import Replayed
    from gridsched.forecasting.snapshot import Snapshot, Timeline
    from gridsched.platform import Cluster
    from gridsched.policies.local import LocalPolicy
    from gridsched.workloads import Workload

_SCORED: tuple[tuple[MethodName, str], ...] = (
    ("learned", "as it goes"),
    ("futures", "raw"),
    ("null model", "raw"),
    ("null model", "as it goes"),
)
"""Predictors that are scored, with their corrections; the last is what the others are compared with."""

_WITHIN, _FUTURES = 3600, 100
"""Seconds within which a start is asked for, and futures, by default."""

_LATER = "later"
"""Stands for a start beyond all that was simulated."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "forecast",
        "Forecast when the jobs that wait will start: quantiles from simulated futures and earlier waits.",
        "gridsched forecast KTH-SP2-1996 --at 1997-03-12T14:00 --human",
        "gridsched forecast KTH-SP2-1996 --at 1997-03-12T14:00 --calibrate",
        "gridsched forecast KTH-SP2-1996 --score --human",
        "gridsched forecast SDSC-SP2-1998 --at 10000000 --simulated --job 4711",
        "gridsched forecast --site our-site.yaml --adjust 60 --human",
        "gridsched forecast queue.txt --processors 512 --history our-export.txt --timezone Europe/Rome",
    )
    add_trace(parser, needed=False)
    group = parser.add_argument_group("forecast")
    group.add_argument(
        "--at",
        metavar="TIME",
        help="the time, a date like 2024-05-01T10:00 on the clock of the log, or seconds since its start "
        "(default for a queue: the last end in the history)",
    )
    group.add_argument(
        "--simulated",
        action="store_true",
        help="the queue that the policy makes of the log, instead of the recorded one",
    )
    group.add_argument(
        "--history",
        metavar="TRACE",
        help="log of the preceding period, if TRACE is a queue as squeue prints it (docs/forecast.md)",
    )
    group.add_argument(
        "--job",
        type=positive_integer,
        action="append",
        metavar="N",
        help="only this job; may be repeated (default: all waiting jobs)",
    )
    group.add_argument(
        "--within",
        type=positive_integer,
        default=_WITHIN,
        metavar="S",
        help=f"seconds within which the probability of a start is given (default: {_WITHIN})",
    )
    group.add_argument(
        "--futures",
        type=positive_integer,
        default=_FUTURES,
        metavar="N",
        help=f"futures (default: {_FUTURES})",
    )
    group.add_argument(
        "--adjust",
        type=whole_number,
        metavar="N",
        help="learn from forecasts at N earlier times and their outcomes; 0 gives the simulated futures as "
        "they are (default: 600 where there is a history, 200 on nodes)",
    )
    group.add_argument(
        "--score",
        action="store_true",
        help="score forecasts of the past of a log: share of starts in intervals of 80 %%, interval score "
        "and error, beside those of a null model",
    )
    group.add_argument(
        "--calibrate",
        action="store_true",
        help="simulate futures under a present policy that is fitted to the known part of the log, see "
        "docs/calibration.md",
    )
    add_human(group)
    add_policy(parser, several=False)
    add_site_file(parser.add_argument_group("site"))
    add_simulation(parser, measured=False)
    parser.set_defaults(command=_forecast)


@dataclass(frozen=True, kw_only=True)
class _Part:
    """What is forecast by itself: a cluster, or partitions that share no node with others."""

    state: Timeline | Snapshot
    now: int | None = None
    log: Log | None = None
    workload: Workload | None = None
    notes: dict[str, str] = field(default_factory=dict)
    names: str = ""
    cluster: Cluster | None = None
    """Where futures are on its nodes."""
    nodes: int = 0
    """Nodes that are known and not simulated."""


def _of_site(options: argparse.Namespace) -> None:
    """Take queue and history from the files of a site."""
    whole = options.trace is None
    use_site(options)
    queue = getattr(options, "squeue", None)
    if whole and queue is not None:
        options.trace, options.history = str(queue), options.history or options.trace


def _forecast(options: argparse.Namespace) -> None:
    from gridsched.forecasting.present import forecast
    from gridsched.forecasting.queues import is_queue
    from gridsched.warming import usable_cores

    _of_site(options)
    if options.score:
        _score(options)
        return
    local = one_policy(options, "forecast")
    if not is_queue(find_trace(options.trace)):
        parts = _past(options, local)
    elif options.history is not None:
        parts = _continued(options)
    else:
        parts = [_lone_queue(options)]
    _refuse_unused(options, is_lone=parts[0].workload is None)
    asked = _asked(parts, options)
    for number, part in enumerate(asked):
        policy = _policy(part, local, options, part.now)
        with progress("learning from earlier forecasts" if options.adjust != 0 else "simulating futures"):
            told = forecast(
                part.state,
                part.now,
                policy=policy,
                within=options.within,
                futures=options.futures,
                adjust=options.adjust,
                seed=options.seed,
                threads=usable_cores(),
            )
        notes = part.notes | _about_slurm(options) | _about_size(told, part.state)
        facts = [*_facts(told, part, notes, options), *_aside(part)]
        head = [f"{_heading(part)}:"] if part.names else []
        if number:
            print()
        print_blocks(*head, facts_table(facts), *_starts(_chosen(told, options), part.log, options))
    idle = [part.names for part in parts if part not in asked and not options.job]
    if idle:
        print()
        print_blocks(f"No job waits in {', '.join(idle)}.")


def _refuse_unused(options: argparse.Namespace, *, is_lone: bool) -> None:
    """Refuse options that have no effect: recorded waits are not simulated, a queue alone is no log."""
    kind, unused = "recorded waits (without --simulated)", dict[str, object]()
    if not options.simulated:
        unused = unusual(options) | {"--speed": options.speed != 1, "--preceding": options.preceding}
    if is_lone:
        kind = "a queue without --history"
        unused |= {"--nodes": options.nodes, "--node-type": options.node_type}
        unused |= {"--month": options.month, "--jobs": options.jobs, "--timezone": options.time_zone}
    for option, given in unused.items():
        if given:
            raise ConfigurationError(f"{option}: has no effect on forecasts of {kind}; leave it out")


def _heading(part: _Part) -> str:
    return f"Partition{'s' if ', ' in part.names else ''} {part.names}"


def _asked(parts: Sequence[_Part], options: argparse.Namespace) -> list[_Part]:
    """Parts in which somebody waits, or the jobs that are asked for do; the first one if nobody does."""
    from gridsched.forecasting.snapshot import Snapshot

    waiting: list[set[int]] = []
    for part in parts:
        state = part.state
        if not isinstance(state, Snapshot):
            assert part.now is not None
            if not (state.jobs["submit"] <= part.now).any():
                waiting.append(set())  # nobody has come to this one yet
                continue
            state = state.at(part.now)
        waiting.append(set(state.past["number"][state.waiting].tolist()))
    everyone = set[int]().union(*waiting)
    for number in options.job or ():
        if number not in everyone:
            raise ConfigurationError(
                f"--job {number}: is not among those that wait then, {jobs(len(everyone))}"
            )
    wanted = everyone.intersection(options.job or everyone)
    return [part for part, own in zip(parts, waiting, strict=True) if own & wanted] or list(parts[:1])


def _by_pools(setting: Setting, log: Log) -> list[tuple[str, Pool]]:
    """Partitions that share nodes, and what they have; one without a name where there is one only."""
    from gridsched.aspects import pools_of

    column = setting.cluster.partition_of
    found = [
        (", ".join(each.name or log.name(column, each.number) for each in pool.partitions), pool)
        for pool in pools_of(setting.workload, setting.cluster)
        if pool.jobs.any()
    ]
    return found if len(found) > 1 else [("", pool) for _, pool in found]


_MOST_NODES = 256
"""With more nodes a future on them takes seconds, and futures are on them only if --adjust is given."""


def _are_on_nodes(cluster: Cluster, options: argparse.Namespace) -> bool:
    """Whether futures are on the nodes of a cluster."""
    few = options.adjust is not None or len(cluster.node_names) <= _MOST_NODES
    return bool(cluster.nodes) and few


def _unused_nodes(setting: Setting, cluster: Cluster | None) -> int:
    """Nodes that are known where futures are of processors, and not of the nodes of a cluster."""
    return len(setting.cluster.node_names) if cluster is None and setting.cluster.nodes else 0


def _on_nodes(
    workload: Workload, setting: Setting, pool: Pool, options: argparse.Namespace
) -> tuple[Workload, Cluster | None]:
    """Jobs of a pool that its nodes can hold, and the cluster with its partitions; none if counted."""
    from gridsched.forecasting.on_nodes import held_by

    if not _are_on_nodes(setting.cluster, options):
        return workload, None
    cluster = replace(setting.cluster, partitions=pool.partitions)
    return held_by(workload, cluster), cluster


def _score(options: argparse.Namespace) -> None:
    """Forecast the past of a log, and print how good the forecasts of its second half were."""
    from gridsched.forecasting.queues import is_queue

    if is_queue(find_trace(options.trace)):
        raise ConfigurationError(f"{options.trace}: --score is for logs; give the log of the cluster")
    beside = {"--at": options.at, "--job": options.job, "--adjust 0": options.adjust == 0}
    unused = {"--futures": options.futures != _FUTURES, "--within": options.within != _WITHIN}
    refuse_beside("--score", beside | unused)
    local = one_policy(options, "forecast")
    told, idle = [], []
    for part in _past(options, local):
        if blocks := _score_of(part, local, options):
            told.append(blocks)
        else:
            idle.append(part.names)
    if not told:
        raise ConfigurationError(
            f"{options.trace}: nobody waits in its second half, so that nothing is scored"
        )
    for number, blocks in enumerate(told):
        if number:
            print()
        print_blocks(*blocks)
    if idle:
        print()
        print_blocks(f"Nobody waited in the second half of {', '.join(idle)}: nothing is scored there.")


def _score_of(part: _Part, local: LocalPolicy, options: argparse.Namespace) -> list[Any]:
    """Scores of the forecasts of one part, as printed; nothing if nobody waits who could be forecast."""
    from gridsched.forecasting.adjustment import LEAST
    from gridsched.forecasting.history import make_forecasts
    from gridsched.forecasting.judging import judge, second_half
    from gridsched.forecasting.present import JOBS, effort_for
    from gridsched.forecasting.snapshot import Timeline
    from gridsched.policies.local import Conventions
    from gridsched.warming import usable_cores

    timeline, workload = part.state, part.workload
    assert isinstance(timeline, Timeline)
    assert workload is not None
    if not timeline.has_waited(int(timeline.jobs["submit"].max(initial=0))):
        return []
    policy = _policy(part, local, options, None)
    instants, futures = effort_for(policy)
    with progress("forecasting the past"):
        made = make_forecasts(
            timeline,
            policy,
            Conventions(),
            instants=options.adjust or instants,
            jobs=JOBS,
            futures=futures,
            seed=options.seed,
            methods=[name for name, _ in _SCORED],
            threads=usable_cores(),
        )
        judged = judge(made)
    if judged.empty:
        return []
    before = int((made.now < second_half(made)).sum())
    few = f": fewer than {LEAST}, so that the first ones scored have learned nothing" * (before < LEAST)
    facts = [
        ("scored", f"{int(judged['forecasts'].max()):,} forecasts of the second half"),
        ("from", moment(workload, second_half(made))),
        ("policy", policy.name),
        ("information used", _used(part)),
        ("known before", f"{before:,} forecasts of the first half{few}"),
    ]
    head = [f"{_heading(part)}:"] if part.names else []
    return [*head, facts_table([fact for fact in facts if fact[1]]), _scores(judged, Times(options.human))]


def _scores(judged: pd.DataFrame, times: Times) -> Any:
    """Table of the scores of each predictor."""
    from gridsched.forecasting.history import METHODS
    from gridsched.forecasting.judging import CORRECTION_LABELS, RANGES

    of_all = judged[judged["range"] == RANGES[0]].itertuples()
    whole: dict[Any, Any] = {(row.predictor, row.correction): row for row in of_all}
    null = whole[_SCORED[-1]]
    columns = ["forecast", "in 80 %", times.header("width"), times.header("interval score"), "of null"]
    columns += [times.header("median error"), "of null"]
    rows = []
    for method, correction in _SCORED:
        one = whole[method, correction]
        rows.append(
            [
                f"{METHODS[method]}, {CORRECTION_LABELS[correction]}",
                f"{one.coverage:.1%}",
                times.text(one.width),
                times.text(one.score),
                _share(one.score, null.score),
                times.text(one.error),
                _share(one.error, null.error),
            ]
        )
    return table(columns, rows)


def _share(value: float, whole: float) -> str:
    """A share of another number, or that there is none."""
    return f"{value / whole:.0%}" if math.isfinite(value) and whole > 0 else UNKNOWN_TEXT


def _past(options: argparse.Namespace, policy: LocalPolicy) -> list[_Part]:
    """What happened according to a log, or in the simulation of it."""
    from gridsched.forecasting.snapshot import recorded_timeline, timeline_of_run
    from gridsched.platform import Cluster
    from gridsched.traces.schedule_log import schedule_log

    if options.history is not None:
        raise ConfigurationError(f"--history: {options.trace} is a log and no queue; leave it out")
    if options.at is None and not options.score:
        raise ConfigurationError("--at: give a time of the log, or --score to score forecasts of all of it")
    log = read_log(options)
    setting = prepared(log, options, configured(options, log))
    now = None if options.at is None else _time(options.at, setting.workload)
    parts, timelines = [], []
    for names, pool in _by_pools(setting, log):
        workload, cluster = _on_nodes(setting.workload.select(pool.jobs), setting, pool, options)
        run = None
        if options.simulated:
            with progress(f"simulating {policy.name}"):
                counted = Cluster(processors=pool.processors, name=workload.name)
                there = counted if setting.cluster.nodes else setting.cluster
                run = run_policy(workload, cluster or there, policy, options)
        if run is not None and cluster is not None:
            workload, run = replace(workload, wait_time=schedule_log(run).wait_time), None
        state = recorded_timeline(workload, pool.processors) if run is None else timeline_of_run(run)
        timelines.append(state)
        nodes = _unused_nodes(setting, cluster)
        parts.append(
            _Part(state=state, now=now, log=log, workload=workload, names=names, cluster=cluster, nodes=nodes)
        )
    if now is not None:
        _check_time(now, timelines, setting.workload)
    return parts


def _policy(
    part: _Part, local: LocalPolicy, options: argparse.Namespace, now: int | None
) -> LocalPolicy | Replayed:
    """What futures follow: the policy, on nodes where they are known, or what is fitted to the log."""
    from gridsched.forecasting.calibrated import calibrate
    from gridsched.forecasting.on_nodes import PolicyOnNodes

    workload, cluster = part.workload, part.cluster
    if workload is None:
        return local
    if not options.calibrate:
        return local if cluster is None else PolicyOnNodes(workload, cluster, local)
    beside = {"--simulated": options.simulated, "--policy": policies_given(options)}
    refuse_beside("--calibrate", beside | unusual(options, "estimates", "overrun"))
    size = part.state.processors if cluster is None else cluster
    try:
        with progress("calibrating") as report:
            return calibrate(workload, size, now=now, seed=options.seed, report=report)
    except WorkloadError as error:
        raise WorkloadError(f"{error}, or leave out --calibrate") from None


def _lone_queue(options: argparse.Namespace) -> _Part:
    """A queue from a file, of which nothing is known before."""
    import gridsched as gs
    from gridsched.forecasting.queues import read_queue

    for option, given in (
        ("--at", options.at),
        ("--adjust", options.adjust),
        ("--calibrate", options.calibrate),
    ):
        if given:
            raise ConfigurationError(
                f"{options.trace}: {option} is for logs; give one with --history, or leave it out"
            )
    cluster = None if options.slurm_conf is None else gs.read_slurm_site(options.slurm_conf).cluster
    processors = _size(options, None if cluster is None else cluster.processors)
    notes = {} if cluster is None else {"cluster": "processors are counted; nodes need a --history"}
    return _Part(state=read_queue(options.trace, processors, partitions=_partitions(options)), notes=notes)


def _size(options: argparse.Namespace, known: int | None) -> int:
    """Processors for a queue in a file, of which more is known where nodes are."""
    if options.simulated:
        raise ConfigurationError(f"{options.trace}: --simulated is for logs; leave it out for a queue")
    size: int | None = options.processors or known
    if size is None:
        raise ConfigurationError(
            f"{options.trace}: --processors: give the processors of the cluster; a queue has no such number"
        )
    return size


def _continued(options: argparse.Namespace) -> list[_Part]:
    """A queue from a file behind the log of what was before, and what there is to say of facts."""
    from gridsched.aspects import without
    from gridsched.forecasting.queues import ELSEWHERE, column_in, continue_log
    from gridsched.forecasting.snapshot import recorded_timeline
    from gridsched.workloads.table import add_counts

    queue = find_trace(options.trace)
    log = _with_names_of_queue(
        read_log(argparse.Namespace(**{**vars(options), "trace": options.history})), options
    )
    setting = prepared(log, options, configured(options, log))
    history = setting.workload
    size = _size(options, setting.cluster.processors if setting.cluster.nodes else None)
    last = recorded_timeline(history, size).last_end
    now = last if options.at is None else _time(options.at, history)
    notes = {}
    if options.at is None:
        notes["time"] = "the last end in the history; give the time of the queue with --at"
    if now - last > _LONG_GAP:
        days = f"{(now - last) / 86400:,.1f} days before the queue"
        notes["history"] = f"it ends {days}: arrivals are drawn as if none came in between"
    if _are_on_nodes(setting.cluster, options) and not column_in(queue, "tres"):
        notes["waiting"] = "their memory and GPUs are not known: the queue has no column TRES_ALLOC"
    pools = _by_pools(setting, log)
    rows, given = Counter(column_in(queue, "partition")), _partitions(options)
    column = setting.cluster.partition_of
    known = {each.name or log.name(column, each.number) for each in setting.cluster.partitions}
    parts: list[_Part] = []
    for names, pool in pools:
        # jobs of partitions that nobody knows are in the first pool, as those of the history are
        others = [] if parts else [name for name in rows if not known.intersection(name.split(","))]
        own = [*names.split(", "), *others] if names else []
        workload = continue_log(
            history.select(pool.jobs),
            options.trace,
            pool.processors if setting.cluster.nodes else size,
            now=now,
            names=log.names,
            partitions=[name for name in own if not given or name in given] or given,
        )
        if names and not given:
            elsewhere = {} if parts else {_NO_HISTORY: sum(rows[name] for name in known - _named(pools))}
            kept = {why: count for why, count in workload.left_out.items() if why != ELSEWHERE}
            workload = replace(workload, left_out=add_counts(kept, elsewhere))
        workload = replace(workload, repaired=_partitions_told(workload, setting.cluster, options, now))
        workload, _ = without(workload, setting.cluster, names_of_aspects(options.without))
        workload, cluster = _on_nodes(workload, setting, pool, options)
        state = recorded_timeline(workload, pool.processors if setting.cluster.nodes else size)
        parts.append(
            _Part(
                state=state,
                now=now,
                log=log,
                workload=workload,
                notes=notes,
                names=names,
                cluster=cluster,
                nodes=_unused_nodes(setting, cluster),
            )
        )
    return parts


def _partitions_told(
    workload: Workload, cluster: Cluster, options: argparse.Namespace, now: int
) -> dict[str, int]:
    """What was changed in a log that goes on with a queue, with what holds of partitions on nodes."""
    import numpy as np

    from gridsched.forecasting.queues import OF_SEVERAL, ONE_POOL, recorded_ends
    from gridsched.workloads.table import add_counts

    if not cluster.partitions:
        return dict(workload.repaired)
    apart = _are_on_nodes(cluster, options) and "partitions" not in names_of_aspects(options.without)
    untrue = ONE_POOL if apart else OF_SEVERAL
    said = {why: count for why, count in workload.repaired.items() if not why.endswith(untrue)}
    asked = getattr(workload, cluster.partition_of)
    strange = ~np.isin(asked, [each.number for each in cluster.partitions]) & (recorded_ends(workload) > now)
    where = cluster.partitions[0].name or cluster.partitions[0].number
    return add_counts(said, {f"of a partition that there is not, taken as of {where}": int(strange.sum())})


def _with_names_of_queue(log: Log, options: argparse.Namespace) -> Log:
    """The log with numbers for the constraints and partitions that only the queue has."""
    from gridsched.forecasting.queues import column_in, constraints_in

    queue = find_trace(options.trace)
    asked = {
        "constraint": constraints_in(queue),
        "partition": [name.strip() for text in column_in(queue, "partition") for name in text.split(",")],
    }
    names = {**log.names}
    # a log without names has numbers for partitions, and so has its queue
    for kind in asked if log.names.get("partition") else ("constraint",):
        names[kind] = tuple(dict.fromkeys((*log.names.get(kind, ()), *asked[kind])))
    return replace(log, names={kind: names[kind] for kind in names if names[kind]})


_NO_HISTORY = "in a partition without history"


def _named(pools: Sequence[tuple[str, Pool]]) -> set[str]:
    """All partitions of some pools."""
    return {name for names, _ in pools for name in names.split(", ")}


_LONG_GAP = 86400
"""Seconds from the end of the history to the queue of which nothing is said."""


def _partitions(options: argparse.Namespace) -> list[str]:
    """Partitions that are named; none if all are meant."""
    return [] if options.partition is None else [name.strip() for name in options.partition.split(",")]


def _aside(part: _Part) -> list[tuple[str, str]]:
    """Jobs that were left out or changed, of a log and of a queue."""
    of_log = [] if part.workload is None else counts(part.workload)
    counted = f"nodes, memory, GPUs and limits: {part.nodes:,} nodes are simulated only with --adjust"
    aside = [("left out", counted)] if part.nodes else []
    return [*of_log, *counts_of(part.state.left_out, getattr(part.state, "repaired", {})), *aside]


def _about_slurm(options: argparse.Namespace) -> dict[str, str]:
    """What is said of futures of a Slurm site, which do not follow its Slurm."""
    if options.slurm_conf is None:
        return {}
    unused = [name for name in OF_SLURM_ALONE if getattr(options, name, None)]
    left = f"; not used: {', '.join(unused)}" if unused else ""
    return {"policy": f"without Slurm's priorities, limits and passes{left}"}


def _about_size(told: xr.Dataset, state: Timeline | Snapshot) -> dict[str, str]:
    """What is said of a cluster that had more processors in use than it is said to have."""
    taken = told.attrs["processors"]
    if taken <= state.processors:
        return {}
    return {"cluster": f"{taken:,} in place of {state.processors:,}, since so many are in use then"}


def _time(text: str, workload: Workload) -> int:
    """Seconds on the clock of a log."""
    from gridsched.nodes import seconds_on_clock
    from gridsched.workloads.clock import zone_or_utc

    return seconds_on_clock(text, "--at", workload.unix_start_time, zone_or_utc(workload.time_zone))


def _check_time(now: int, timelines: Sequence[Timeline], workload: Workload) -> None:
    """Refuse a time at which nobody has come yet, or all are gone."""
    first = min(int(timeline.jobs["submit"][0]) for timeline in timelines)
    last = max(timeline.last_end for timeline in timelines)
    if not first <= now <= last:
        raise ConfigurationError(
            f"--at: {moment(workload, now)} is not within the log; its first job is submitted at "
            f"{moment(workload, first)}, and the last one ends at {moment(workload, last)}"
        )


def _chosen(told: xr.Dataset, options: argparse.Namespace) -> xr.Dataset:
    """The jobs that are asked for."""
    import numpy as np

    if options.job is None:
        return told
    return told.isel(job=np.flatnonzero(np.isin(told["job_number"].to_numpy(), options.job)))


def _facts(
    told: xr.Dataset, part: _Part, notes: Mapping[str, str], options: argparse.Namespace
) -> list[tuple[str, str]]:
    """What was known, each with its note."""
    facts = told.attrs
    now = f"{facts['now']:,} s" if part.workload is None else moment(part.workload, facts["now"])
    in_use = facts["processors"] - facts["processors_free"]
    said = [
        ("time", now),
        (
            "cluster",
            f"{in_use:,} of {facts['processors']:,} processors in use by {jobs(facts['jobs_running'])}",
        ),
        ("waiting", jobs(facts["jobs_waiting"])),
        ("policy", facts["policies"]),
        ("information used", _used(part)),
        ("", _moved(facts.get("jobs_moved", 0))),
        ("history", _history(facts["jobs_finished"])),
        ("futures", f"{facts['futures']:,}"),
    ]
    said.append(("learned from", _lessons(facts["learned_from"], options)))
    if facts["weight"] < 1:
        rest = f"{1 - facts['weight']:g}"
        said.append(("", f"weight {facts['weight']:g}, and {rest} of the futures as they are: best in these"))
    held = "unknown: no earlier forecasts with a known outcome"
    if facts["checked"]:
        held = f"held {facts['held']:.0%} of the starts of {facts['checked']:,} earlier forecasts like these"
    said.append(("intervals of 80 %", held))
    return [line for name, text in said for line in ((name, text), ("", notes.get(name, ""))) if line[1]]


def _used(part: _Part) -> str:
    """What futures on nodes take into account."""
    from gridsched.aspects import aspects_of
    from gridsched.forecasting.on_nodes import for_futures

    if part.cluster is None or part.workload is None:
        return ""
    return ", ".join(aspects_of(*for_futures(part.workload, part.cluster)))


def _moved(count: int) -> str:
    if not count:
        return ""
    return f"{jobs(count)} of those that run start later in futures, for want of room beside the others"


def _lessons(outcomes: int, options: argparse.Namespace) -> str:
    """What a forecast has learned from."""
    from gridsched.forecasting.adjustment import LEAST

    if outcomes:
        return f"{outcomes:,} earlier forecasts with a known outcome"
    why = "as asked" if options.adjust == 0 else f"fewer than {LEAST} earlier forecasts have a known outcome"
    return f"nothing ({why}): quantiles are those of simulated futures"


def _history(finished: int) -> str:
    if not finished:
        return "none: run times are anywhere up to the requested time, and no jobs arrive"
    return f"{jobs(finished)}, finished before"


def _starts(told: xr.Dataset, log: Log | None, options: argparse.Namespace) -> list[Any]:
    """Table of the jobs, with the time until their starts."""
    times = Times(options.human)
    if not told.sizes["job"]:
        return ["No job waits."]
    now = told.attrs["now"]
    soon = f"within {Times(human=True).text(options.within)}"
    levels = [f"{level:.0%}" for level in told["quantile"].to_numpy().tolist()]
    columns = ["job", "user", "processors", times.header("requested"), times.header("waited")]
    columns += [times.header(f"starts in, {level}") for level in levels]
    rows = []
    for job in range(told.sizes["job"]):
        one = told.isel(job=job)
        user = int(one["user"])
        cells = [str(int(one["job_number"])), _user(user, log), f"{int(one['processors']):,}"]
        cells += [times.text(int(one["estimate"])), times.text(now - int(one["submit_time"]))]
        cells += [
            times.text(start - now) if start >= 0 else _LATER for start in one["start"].to_numpy().tolist()
        ]
        rows.append(
            [*cells, f"{float(one['probability']):.0%}", times.text(int(one["expected_start"]) - now)]
        )
    return [table([*columns, soon, times.header("with exact estimates")], rows)]


def _user(number: int, log: Log | None) -> str:
    """Name of a user; nothing of one whom the history does not know."""
    if number < 0:
        return "-"
    return str(number) if log is None else log.name("user", number)

"""What another policy would have done to the jobs of a log: waits that were recorded beside simulated ones.

The schedule that the log recorded counts as a scheme of its own. Differences are those of the same jobs;
their intervals come from blocks of consecutive jobs, see `gridsched.inference`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import inference
from gridsched.aspects import aspects_of, without
from gridsched.calibration.measures import UNKNOWN, WIDEST_RATIOS, explained, readings
from gridsched.errors import ConfigurationError, check_number
from gridsched.metrics.jobs import RECORDED, batch_means, job_metrics, recorded, relaxations, utilisation
from gridsched.platform import Cluster, Platform, platform_of
from gridsched.policies.local import LocalPolicy, OverrunName, PassName, named_policy
from gridsched.results import provenance
from gridsched.simulation import simulate
from gridsched.submission import EstimateName
from gridsched.systems.base import Scheduler, Site
from gridsched.traces.cleaning import NEVER_RAN, never_ran
from gridsched.traces.sacct import COMMAND_LINE, WITHOUT_COMMAND_LINES, AccountingLog
from gridsched.verification import verify
from gridsched.workloads.dependencies import preceding_jobs
from gridsched.workloads.table import Workload
from gridsched.workloads.usage import Steps, steps

QUANTILES = (0.5, 0.9, 0.95, 0.99)
"""Quantiles of waits."""

FATES: dict[str, str] = {
    "jobs_rejected": "rejected",
    "jobs_gave_up": "users gave up waiting",
    "jobs_never_eligible": "waited for a job that did not end well",
    "executions_killed": "killed by failing nodes",
    "jobs_lost": "lost with their nodes",
    "jobs_starved": "waited without end: nodes never returned, or the scheduler started none",
    "executions_requeued": "preempted and requeued",
    "executions_cancelled": "preempted and cancelled",
    "executions_suspended": "preempted and suspended, later resumed",
    "executions_without_minutes": "killed since the minutes of their group were used up",
}
"""Possible outcomes of jobs, by variable of a comparison."""

_BY_SCHEDULER = {
    "executions_requeued": "preempted: requeued",
    "executions_cancelled": "preempted: cancelled",
    "executions_suspended": "preempted: suspended",
    "executions_without_minutes": "killed: minutes used up",
}
"""Those that a scheduler decides, with the attribute of a run that counts them."""

EXPLAINED: dict[str, str] = {
    "ratio": "mean simulated wait over mean recorded wait",
    "correlation": "rank correlation of simulated and recorded waits",
    "near": "share of jobs whose simulated wait is near the recorded one",
}
"""Measures of simulated waits beside recorded ones, see `gridsched.calibration.measures`."""

NO_EFFECT_ALONE = "a difference from recorded waits is also the error of the simulation"
"""Why differences between simulated and recorded waits have no interval."""

NO_WIDTH = "the same value in all blocks of the log"
"""Why an interval that would have no width is not stated."""

REPLAYS, REPLAYED = 24, 100_000
"""Replays of each configuration in `what_if`, and jobs that they have at most."""

FEWEST_REPLAYS = 8
"""Replays of which an interval is made; of logs with more jobs it is made of blocks of the log."""

EVERYTHING = "nothing"
"""What is left out where nothing is."""

_HOUR = 3600
_DIMENSIONS = {"user": "user", "group": "group"}
_SHOWN = {"wait_time": ("wait time", "s"), "bounded_slowdown": ("bounded slowdown", "1")}

Floats = NDArray[np.float64]


def fates_of(run: xr.Dataset) -> dict[str, int]:
    """Counts of `FATES` in a run: what a scheduler killed on purpose is not put down to failing nodes."""
    counts = {fate: int(run.attrs.get(_BY_SCHEDULER.get(fate, fate), 0)) for fate in FATES}
    lost = counts["executions_cancelled"] + counts["executions_without_minutes"]
    counts["jobs_lost"] -= lost
    counts["executions_killed"] -= lost + counts["executions_requeued"]
    return counts


def recorded_peak(workload: Workload, held: NDArray[np.int64] | None = None) -> int | None:
    """Most processors that were in use at once, as the log recorded it; None if waits are unknown.

    Of another resource, if `held` says how much of it each job held.
    """
    started = _recorded_starts(workload)
    if started is None:
        return None
    size = (workload.processors if held is None else held)[started]
    # A job that ran no time at all still had its processors.
    return int(max(_recorded_use(workload, started, size).value.max(), size.max()))


def recorded_excess(workload: Workload, processors: int) -> float:
    """Share of the time, from the first start to the last end of the log, in which it has more in use.

    NaN if waits are unknown.
    """
    started = _recorded_starts(workload)
    if started is None:
        return np.nan
    use = _recorded_use(workload, started, workload.processors[started])
    seconds = np.diff(use.time)
    return float(seconds[use.value[:-1] > processors].sum() / max(seconds.sum(), 1))


def _recorded_starts(workload: Workload) -> NDArray[np.bool_] | None:
    """Jobs whose start and end the log recorded; None if those of most are unknown."""
    never = never_ran(workload)
    known = (workload.wait_time >= 0) & (workload.run_time >= 0) & (workload.processors > 0) & ~never
    few = not known.any() or 2 * np.count_nonzero(known) < len(workload) - np.count_nonzero(never)
    return None if few else np.asarray(known, np.bool_)


def _recorded_use(workload: Workload, jobs: NDArray[np.bool_], size: NDArray[np.int64]) -> Steps:
    """What some jobs held over time, as the log recorded it."""
    start = (workload.submit_time + workload.wait_time)[jobs]
    end = start + workload.run_time[jobs]
    return steps(np.concatenate([start, end]), np.concatenate([size, -size]))


def compare(
    workload: Workload,
    cluster: Cluster | int,
    policies: Sequence[str | LocalPolicy],
    *,
    estimates: EstimateName = "requested",
    kill: bool = False,
    overrun: OverrunName = "doubling",
    passes: PassName = "instant",
    warm_up: float = 0.0,
    names: Mapping[str, Sequence[str]] | None = None,
    report: Callable[[str], Any] = lambda _: None,
) -> xr.Dataset:
    """Simulate a workload under several policies and set the waits beside those of its log.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    cluster : Cluster or int
        The cluster, or its number of processors.
    policies : sequence of str or LocalPolicy
        What to simulate, names or policies, each once; every schedule is verified.
    estimates, kill, overrun, passes
        See `gridsched.simulate`.
    warm_up : float
        Fraction of the jobs, at the beginning, that are simulated but not measured.
    names : mapping of str to sequence of str, optional
        Names of "user" and "group" by number; the numbers if not given.
    report : callable
        Called with a description of the current step.

    Returns
    -------
    xarray.Dataset
        Dimension `scheme`: "recorded", where the log recorded the waits of half the jobs, then the policies.
        `wait_time_mean`, `bounded_slowdown_mean` and their `_difference` from the first scheme, with bounds
        `_low` and `_high`, which are NaN where there is no valid interval (`_reason` says why), as for every
        difference from recorded waits; `explained_ratio`, `_correlation` and `_near` (see `EXPLAINED`);
        `wait_time_quantile`; `utilisation`; the counts
        of `FATES`. Waits are counted from submission, also where jobs wait for others.
        Dimensions `user` and `group`, by number of jobs: `user_jobs`, `user_work` (processor-hours),
        `user_wait_time_mean`, `user_wait_time_change` (hours in all), and the same of groups.

    Raises
    ------
    ConfigurationError
        If a policy is unknown or given twice, none is given, or there is more than one cluster.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=400, seed=1, load_scale=1.5)
    >>> gs.write_swf(gs.simulate(jobs, scheduler="easy"), "log.swf")
    >>> log = gs.clean(gs.read_swf("log.swf"))
    >>> compared = gs.compare(log, 1152, ["easy", "fcfs"])
    >>> compared.scheme.values
    array(['recorded', 'easy', 'fcfs'], dtype='<U8')
    """
    cluster = _only(platform_of(cluster))
    setups = [(policy.name, cluster, policy) for policy in _each_once(policies)]
    compared, _ = _beside_the_log(
        workload,
        setups,
        {"estimates": estimates, "kill": kill, "overrun": overrun, "passes": passes},
        title=f"policies on {workload.name}",
        warm_up=warm_up,
        names=names,
        report=report,
    )
    return compared


def what_if(
    workload: Workload,
    sites: Mapping[str, Site],
    *,
    estimates: EstimateName = "requested",
    kill: bool = False,
    overrun: OverrunName = "doubling",
    passes: PassName = "instant",
    seed: int = 0,
    warm_up: float = 0.0,
    names: Mapping[str, Sequence[str]] | None = None,
    report: Callable[[str], Any] = lambda _: None,
) -> xr.Dataset:
    r"""Simulate a workload on a site as it is, and as it would be, beside the waits of its log.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    sites : mapping of str to Site
        The site as it is, then with changes, by the names that they have in results; see
        `gridsched.read_slurm_site`. Every schedule is verified.
    estimates, kill, overrun, passes, seed
        See `gridsched.simulate`; all draw with the same seed.
    warm_up, names, report
        See `compare`.

    Returns
    -------
    xarray.Dataset
        As that of `compare`, but differences are those from the site as it is. Those of mean waits have an
        interval that holds the change in three readings (`gridsched.calibration.measures.readings`), beside
        the waits that were recorded, and how much a further run of each would differ: of logs of up to
        12,500 jobs that comes from replays with other phases of Slurm's periodic work, and with run times
        that are up to a second longer, since accounts have whole seconds (attribute `replays`). There is none
        where the mean wait on the site as it is is less than half or more than twice the recorded one.

    Raises
    ------
    ConfigurationError
        If a site has no cluster, or is the same as it is without its changes.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> lines = [
    ...     "ClusterName=lab",
    ...     "SchedulerType=sched/backfill",
    ...     "NodeName=n[1-4] CPUs=16 RealMemory=64000",
    ...     "PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0",
    ... ]
    >>> _ = Path("slurm.conf").write_text("\n".join(lines))
    >>> changed = gs.read_slurm_site("slurm.conf", changes=["SchedulerParameters=bf_window=2880"])
    >>> sites = {"now": gs.read_slurm_site("slurm.conf"), "longer window": changed}
    >>> jobs = gs.Workload(
    ...     name="lab",
    ...     submit_time=[0, 5, 6],
    ...     run_time=[50, 60, 20],
    ...     requested_time=[100, 60, 20],
    ...     requested_processors=[60, 64, 1],
    ...     wait_time=[0, 45, 0],
    ... )
    >>> answer = gs.what_if(jobs, sites)
    >>> answer.scheme.values
    array(['recorded', 'now', 'longer window'], dtype='<U13')
    """
    if not sites:
        raise ConfigurationError("no site; give it as it is, and with changes")
    first, *others = sites.values()
    for name, site in zip(list(sites)[1:], others, strict=True):
        if (site.cluster, site.scheduler) == (first.cluster, first.scheduler):
            why = site.unchanged or "the run has other nodes and partitions than the configuration"
            raise ConfigurationError(f"{name} changes nothing: {why}; leave it out")
    setups = []
    for name, site in sites.items():
        if site.cluster is None:
            raise ConfigurationError(f"{name}: the configuration has no nodes; give the site a cluster")
        setups.append((name, site.cluster, site.scheduler))
    options = {"estimates": estimates, "kill": kill, "overrun": overrun, "passes": passes, "seed": seed}
    compared, measured = _beside_the_log(
        workload,
        setups,
        options,
        title=f"configurations on {workload.name}",
        reference=next(iter(sites)) if others else None,
        warm_up=warm_up,
        names=names,
        report=report,
    )
    return _with_error(compared, measured, workload, setups, options, report) if others else compared


def _with_error(
    compared: xr.Dataset,
    measured: NDArray[np.bool_],
    workload: Workload,
    setups: Sequence[tuple[str, Cluster, LocalPolicy | Scheduler]],
    options: Mapping[str, Any],
    report: Callable[[str], Any],
) -> xr.Dataset:
    """Differences of mean waits with an interval for a further run, and for the error of the simulation."""
    compared = compared.copy(deep=True)
    parts = ("", "_low", "_high", "_reason")
    value, low, high, reason = (compared[f"wait_time_difference{part}"].values for part in parts)
    reason = reason.astype(object)
    means = compared["wait_time_mean"].values
    known = compared["scheme"].values[0] == RECORDED
    first = int(known)
    replays = min(REPLAYS, REPLAYED // max(len(workload), 1))
    if replays >= FEWEST_REPLAYS:
        runs = [_replayed(workload, measured, setup, options, replays, report) for setup in setups]
        means = np.array([*means[:first], *(each.mean() for each in runs)])
        compared.attrs["replays"] = replays
    for place in range(first + 1, len(means)):
        if str(reason[place]).startswith(inference.IDENTICAL):
            continue
        if replays >= FEWEST_REPLAYS:
            estimate = inference.next_difference(runs[place - first], runs[0])
            value[place], low[place], high[place] = estimate
            reason[place] = ""
        if not known:
            continue
        ratio = means[first] / means[0] if means[0] > 0 else np.nan
        if not WIDEST_RATIOS[0] <= ratio <= WIDEST_RATIOS[1]:
            low[place] = high[place] = np.nan
            held = f"{compared['scheme'].values[first]} has {ratio:.2g} times the recorded mean wait"
            unknown = "nobody waited in the log" if means[0] == 0 else "no job is measured"
            reason[place] = held if np.isfinite(ratio) else unknown
            continue
        found = readings(means[first], means[place], means[0])
        low[place] += min(found) - found[0]
        high[place] += max(found) - found[0]
    compared["wait_time_difference_reason"] = compared["wait_time_difference_reason"].copy(
        data=reason.astype(np.str_)
    )
    return compared


def _replayed(
    workload: Workload,
    measured: NDArray[np.bool_],
    setup: tuple[str, Cluster, LocalPolicy | Scheduler],
    options: Mapping[str, Any],
    replays: int,
    report: Callable[[str], Any],
) -> Floats:
    """Mean wait in replays of a setup, of the jobs that are measured."""
    name, cluster, scheduler = setup
    found = []
    for number in range(replays):
        report(f"simulating {name}, replay {number + 1} of {replays}")
        longer = np.random.default_rng(number).integers(0, 2, len(workload))
        shaken = replace(workload, run_time=workload.run_time + longer)
        run = simulate(shaken, cluster, scheduler, **{**options, "seed": options["seed"] + number})
        waits = job_metrics(run.drop_vars("eligible_time", errors="ignore"))["wait_time"]
        known = waits[measured & ~np.isnan(waits)]
        found.append(float(known.mean()) if len(known) else np.nan)
    return np.array(found)


def _beside_the_log(
    workload: Workload,
    setups: Sequence[tuple[str, Cluster, LocalPolicy | Scheduler]],
    options: Mapping[str, Any],
    *,
    title: str,
    reference: str | None = None,
    warm_up: float,
    names: Mapping[str, Sequence[str]] | None,
    report: Callable[[str], Any],
) -> tuple[xr.Dataset, NDArray[np.bool_]]:
    """Simulate setups of a name, a cluster and a scheduler, and set the waits beside those of the log.

    Differences are those from the reference, by default the first scheme. Returns also which jobs are
    measured.
    """
    check_number("warm_up", warm_up, least=0, below=1)
    if any(name == RECORDED for name, *_ in setups):
        raise ConfigurationError(
            f"{RECORDED!r} is what the log recorded; give what is simulated another name"
        )
    found: dict[str, _Measured] = {}
    shared: dict[str, Any] = {}
    share: dict[str, Any] = {}
    own: dict[str, Any] = {}
    left = never_ran(workload)
    processors = setups[0][1].processors
    for name, cluster, scheduler in setups:
        report(f"simulating {name}")
        run = simulate(workload, cluster, scheduler, **options)
        verify(run)
        of_run = {key: value for key, value in run.attrs.items() if key not in _PER_RUN}
        # what is not the same in all runs says nothing of all of them
        shared = (
            of_run if not found else {key: shared[key] for key in shared if shared[key] == of_run.get(key)}
        )
        if not found:
            history = recorded_run(run, workload)
            if history is not None:
                same = processors == workload.processors_available
                found[RECORDED] = _measured(
                    history,
                    {**dict.fromkeys(FATES, 0), "jobs_gave_up": int(left.sum())},
                    used=same or not _is_known(workload),
                )
                share = {"recorded_share": history.attrs["recorded_share"]}
        found[name] = _measured(run, fates_of(run))
        own |= {f"{name}: {key}": count for key, count in of_run.items() if key.startswith("rejected: ")}
    report("comparing")
    measured = np.arange(len(workload)) >= int(warm_up * len(workload))
    values = {name: np.stack([getattr(each, name) for each in found.values()]) for name in _SHOWN}
    # Only jobs that every scheme ran can be compared.
    measured &= ~np.isnan(values["wait_time"]).any(axis=0)
    values = {name: matrix[:, measured] for name, matrix in values.items()}
    jobs = workload.select(measured)
    schemes = [*found]
    base = 0 if reference is None else schemes.index(reference)
    simulated = np.array([scheme != RECORDED for scheme in schemes])
    memory = np.array([each.memory for each in found.values()])
    variables = _of_schemes(values, memory, base, simulated)
    if RECORDED in found:
        beside = [explained(row, values["wait_time"][0]) for row in values["wait_time"][1:]]
        for name, text in EXPLAINED.items():
            numbers = [getattr(each, name) for each in (UNKNOWN, *beside)]
            variables[f"explained_{name}"] = ("scheme", numbers, {"long_name": text, "units": "1"})
    variables["utilisation"] = (
        "scheme",
        np.array([each.utilisation for each in found.values()]),
        {"long_name": "share of the processors allocated to jobs", "units": "1"},
    )
    for fate, text in FATES.items():
        counts = np.array([each.fates[fate] for each in found.values()])
        variables[fate] = ("scheme", counts, {"long_name": text, "units": "1"})
    coordinates: dict[str, Any] = {"scheme": schemes, "quantile": [*QUANTILES]}
    for kind in _DIMENSIONS:
        labels, by_name = _of_names(kind, jobs, values["wait_time"], (names or {}).get(kind, ()), base)
        coordinates[kind] = labels
        variables |= by_name
    attributes = {
        **shared,
        # why each scheme rejects jobs
        **own,
        **share,
        "title": title,
        "reference": schemes[base],
        "shown": schemes[-1] if reference is not None else schemes[min(1, len(schemes) - 1)],
        "jobs_measured": int(np.count_nonzero(measured)),
        "jobs_not_measured": int(np.count_nonzero(~measured)),
        "warm_up": warm_up,
        "processors": processors,
        **provenance(),
    }
    return xr.Dataset(variables, coordinates, attributes), measured


def _only(platform: Platform) -> Cluster:
    if len(platform.clusters) != 1:
        raise ConfigurationError(f"{len(platform.clusters)} clusters; give the one that has the jobs' log")
    return platform.clusters[0]


def _each_once(policies: Sequence[str | LocalPolicy]) -> list[LocalPolicy]:
    """Policies of names and policies."""
    if isinstance(policies, str):
        raise ConfigurationError(f"policies is {policies!r}; give a list, such as [{policies!r}]")
    chosen = [named_policy(policy) for policy in policies]
    labels = [policy.name for policy in chosen]
    repeated = [label for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if repeated or not chosen:
        raise ConfigurationError(
            f"policy {repeated[0]!r} is given twice; give each once, with a name of its own"
            if repeated
            else "no policy; give at least one"
        )
    return chosen


_PER_RUN = ("scheme", "title", "corrections", *FATES, *_BY_SCHEDULER.values())


def what_each_changes(
    workload: Workload,
    cluster: Cluster,
    policy: str | LocalPolicy,
    *,
    estimates: EstimateName = "requested",
    kill: bool = False,
    overrun: OverrunName = "doubling",
    passes: PassName = "instant",
    warm_up: float = 0.0,
    report: Callable[[str], Any] = lambda _: None,
) -> xr.Dataset:
    """Simulate a workload with all that a simulation takes into account, and with each of it left out.

    Parameters
    ----------
    workload : Workload
        Clean jobs in order of submission.
    cluster : Cluster
        The cluster, with its nodes and all else that is known of it.
    policy : str or LocalPolicy
        What to simulate; every schedule is verified.
    estimates, kill, overrun, passes, warm_up, report
        See `compare`.

    Returns
    -------
    xarray.Dataset
        Dimension `left_out`: "nothing", then those names of `gridsched.aspects.ASPECTS` that these jobs and
        this cluster have. `wait_time_mean`, `wait_time_difference` from the first, `wait_time_95`,
        `bounded_slowdown_mean`, over the jobs that started in all of these runs and by the log;
        `utilisation`; the counts of `FATES`.

    Examples
    --------
    >>> import gridsched as gs
    >>> from gridsched.comparison import what_each_changes
    >>> jobs = gs.synthesise("M3", jobs=200, seed=1, load_scale=1.5)
    >>> impatient = gs.with_patience(jobs, gs.Weibull(scale=7200, shape=1.0), seed=1)
    >>> what_each_changes(impatient, gs.Cluster(processors=1152), "easy").left_out.values
    array(['nothing', 'cancellations'], dtype='<U13')
    """
    check_number("warm_up", warm_up, least=0, below=1)
    chosen = named_policy(policy)
    movable = not any(event.node != "*" for event in cluster.events)
    names = [name for name in aspects_of(workload, cluster) if name != "nodes" or movable]
    left = never_ran(workload)
    found: list[_Measured] = []
    wait, slowdown = np.full((2, 1 + len(names), len(workload)), np.nan)
    for row, name in enumerate((EVERYTHING, *names)):
        report(f"simulating {chosen.name}" + (f" without {name}" if name != EVERYTHING else ""))
        jobs, where = without(workload, cluster, [] if name == EVERYTHING else [name])
        run = simulate(jobs, where, chosen, estimates=estimates, kill=kill, overrun=overrun, passes=passes)
        verify(run)
        found.append(_measured(run, fates_of(run)))
        there = np.isin(workload.job_number, jobs.job_number)
        wait[row, there], slowdown[row, there] = found[-1].wait_time, found[-1].bounded_slowdown
    wait[:, left] = np.nan
    measured = (np.arange(len(workload)) >= int(warm_up * len(workload))) & ~np.isnan(wait).any(axis=0)
    wait, slowdown = wait[:, measured], slowdown[:, measured]
    means = _mean(wait)
    tail = np.quantile(wait, 0.95, axis=1) if wait.shape[1] else means
    variables: dict[str, Any] = {
        "wait_time_mean": (means, "mean wait time", "s"),
        "wait_time_difference": (means - means[0], "mean wait time less that with everything", "s"),
        "wait_time_95": (tail, "wait time, 95% quantile", "s"),
        "bounded_slowdown_mean": (_mean(slowdown), "mean bounded slowdown", "1"),
        "utilisation": (
            np.array([each.utilisation for each in found]),
            "share of the processors allocated to jobs",
            "1",
        ),
        **{fate: (np.array([each.fates[fate] for each in found]), text, "1") for fate, text in FATES.items()},
    }
    return xr.Dataset(
        {
            name: ("left_out", values, {"long_name": text, "units": unit})
            for name, (values, text, unit) in variables.items()
        },
        {"left_out": [EVERYTHING, *names]},
        {
            "title": f"{chosen.name} on {workload.name}",
            "policy": chosen.name,
            "jobs_measured": int(measured.sum()),
        },
    )


def _mean(values: Floats) -> Floats:
    """Mean of each row; NaN without columns."""
    return values.mean(axis=1) if values.shape[1] else np.full(len(values), np.nan)


def recorded_run(run: xr.Dataset, workload: Workload) -> xr.Dataset | None:
    """What the log recorded of the jobs of a run, see `gridsched.metrics.jobs.recorded`.

    Run times are those of the log, and jobs that never started by the log did not.
    """
    start = np.where(never_ran(workload), -1, run["start_time"].values)
    return recorded(
        run.assign(run_time=("job", workload.run_time), start_time=("job", start, run["start_time"].attrs))
    )


def _is_known(workload: Workload) -> bool:
    return workload.processors_available is not None


@dataclass(frozen=True)
class _Measured:
    """What is measured of one run: two metrics of each job, and of all of it the rest."""

    wait_time: Floats
    bounded_slowdown: Floats
    utilisation: float
    memory: float
    fates: Mapping[str, int]


def _measured(run: xr.Dataset, fates: Mapping[str, int], *, used: bool = True) -> _Measured:
    """Measure a run; jobs that ran on another cluster used no share of this one."""
    # as logs do, from submission, not from when a job could have started first
    metrics = job_metrics(run.drop_vars("eligible_time", errors="ignore"))
    share = utilisation(run) if used else np.nan
    return _Measured(metrics["wait_time"], metrics["bounded_slowdown"], share, relaxations(run), fates)


def _of_schemes(
    values: dict[str, Floats], memory: Floats, base: int, simulated: NDArray[np.bool_]
) -> dict[str, Any]:
    """Means and quantiles of each scheme, and how they differ from those of one of them.

    `memory` says how many times the memory of its queue each run holds, see `relaxations`.
    """
    mixed = simulated != simulated[base]
    variables: dict[str, Any] = {}
    for name, matrix in values.items():
        label, unit = _SHOWN[name]
        blocks = [batch_means(row) for row in matrix]
        means, numbers = (np.stack(part) for part in zip(*blocks, strict=True))
        own = inference.mean(means, numbers, serial=True, relaxations=memory)
        apart = inference.compare(
            means,
            means[base],
            "difference",
            numbers,
            serial=True,
            relaxations=memory,
            reference_relaxations=memory[base],
            comparisons=max(int(np.count_nonzero(~mixed)) - 1, 1),
        )
        for suffix, estimate, text in (
            ("mean", own, f"mean {label}"),
            ("difference", apart, f"mean {label} less that of the reference"),
        ):
            alone = ~mixed | (estimate is own)
            flat = alone & (estimate.low == estimate.high)
            bounds = {"": estimate.value}
            for end in ("low", "high"):
                bounds[f"_{end}"] = np.where(alone & ~flat, getattr(estimate, end), np.nan)
            for bound, numbers_of in bounds.items():
                about = text if not bound else f"{text}, {bound[1:]} end of the 95% interval"
                attributes = {"long_name": about, "units": unit}
                variables[f"{name}_{suffix}{bound}"] = ("scheme", numbers_of, attributes)
            why = {"long_name": f"{text}, why there is no interval"}
            reason = np.where(alone, estimate.reason.astype(np.str_), NO_EFFECT_ALONE)
            reason = np.where(flat & (reason == ""), NO_WIDTH, reason)
            variables[f"{name}_{suffix}_reason"] = ("scheme", reason, why)
    quantiles = (
        np.quantile(values["wait_time"], QUANTILES, axis=1)
        if values["wait_time"].shape[1]
        else np.full((len(QUANTILES), len(values["wait_time"])), np.nan)
    )
    variables["wait_time_quantile"] = (
        ("quantile", "scheme"),
        quantiles,
        {"long_name": "wait time, quantiles", "units": "s"},
    )
    return variables


def _of_names(
    kind: str, jobs: Workload, waits: Floats, names: Sequence[str], base: int
) -> tuple[list[str], dict[str, Any]]:
    """What each user or group has, those with most jobs first; jobs without one are left aside."""
    numbers = getattr(jobs, kind)
    known = numbers >= 0
    found, codes = np.unique(numbers[known], return_inverse=True)
    count = np.bincount(codes, minlength=len(found))
    order = np.argsort(-count, kind="stable")

    def total(values: NDArray[Any]) -> Floats:
        sums = np.bincount(codes, weights=values[known], minlength=len(found))[order]
        return sums.astype(np.float64)

    sums = np.stack([total(row) for row in waits])
    work = total(jobs.processors * jobs.run_time.astype(np.float64)) / _HOUR
    labels = [names[number] if number < len(names) else str(number) for number in found[order].tolist()]
    columns = {
        "jobs": (kind, count[order], "jobs", "1"),
        "work": (kind, work, "processor-hours", "h"),
        "wait_time_mean": (("scheme", kind), sums / np.maximum(count[order], 1), "mean wait time", "s"),
        "wait_time_change": (
            ("scheme", kind),
            (sums - sums[base]) / _HOUR,
            "waiting of all jobs less that in the reference",
            "h",
        ),
    }
    return labels, {
        f"{kind}_{name}": (dims, values, {"long_name": f"{text} of each {kind}", "units": unit})
        for name, (dims, values, text, unit) in columns.items()
    }


# --- what a simulation does not know --------------------------------------------------------------


REQUESTS = "requests"

_REQUESTED = {
    "partitions": "jobs may run in several partitions, and do in that of the log",
    "licences": "jobs hold licences",
    "whole_nodes": "jobs have nodes of their own",
    "least_time": "jobs accept a shorter time limit",
}
"""What is said of columns that only Slurm's scheduler knows."""


def _requests(workload: Workload) -> str:
    """What jobs request and a policy does not know."""
    counts = {
        text: int((workload.extra[name] >= 0).sum())
        for name, text in _REQUESTED.items()
        if name in workload.extra
    }
    return ", ".join(f"{count:,} {text}" for text, count in counts.items() if count)


def left_aside(
    workload: Workload, accounting: AccountingLog | None = None, cluster: Cluster | None = None
) -> list[tuple[str, str]]:
    """What shaped the recorded waits and a simulation does not know, as far as the log tells.

    Parameters
    ----------
    workload : Workload
        The jobs that are simulated.
    accounting : AccountingLog, optional
        The export that they are from.
    cluster : Cluster, optional
        Where they run: its nodes, partitions and events are used. By default it is a
        pool of processors.

    Returns
    -------
    list of (str, str)
        A word, and what there is of it.
    """
    flags: dict[str, int] = {}
    hours = 0.0
    if accounting is not None:
        rows = accounting.rows(workload)
        flags = {name: int(np.count_nonzero(flag[rows])) for name, flag in accounting.flags.items()}
        hours = float(accounting.suspended[rows].sum()) / _HOUR

    def some(*reasons: str) -> str:
        return ", ".join(f"{flags[reason]:,} {_FLAGS[reason]}" for reason in reasons if flags.get(reason))

    used = aspects_of(workload, Cluster(processors=1) if cluster is None else cluster)
    suspended = some("suspended")
    without_zone = accounting is not None and accounting.without_zone
    without_lines = accounting is not None and accounting.without_command_lines
    found = [
        (
            "partitions",
            ""
            if "partitions" in used
            else _kinds(workload.partition, "one pool of processors for all; see --partition, --nodes"),
        ),
        ("constraints", "" if "constraints" in used else _constrained(workload)),
        ("queues, QOS", _kinds(workload.queue, "none has limits or priorities of its own")),
        ("fair-share", "the policy alone determines the order of the queue"),
        ("dependencies", _waiting_for_others(workload, accounting, used)),
        ("cancellations", _cancellations(workload, used)),
        ("arrays, parts", some("array task", "component of a heterogeneous job")),
        ("memory, GPUs", _resources(workload, used, some)),
        (REQUESTS, _requests(workload)),
        (COMMAND_LINE, WITHOUT_COMMAND_LINES if without_lines else ""),
        (
            "nodes",
            some("more processors than requested")
            or ("" if "nodes" in used else "processors are interchangeable; see --nodes, --node-exclusive"),
        ),
        ("suspension", suspended and f"{suspended}, {hours:,.0f} h in all, not part of the run times"),
        ("runs again", some("requeued", "preempted", "resized")),
        (
            "outages",
            some("reservation")
            if cluster is not None and cluster.events
            else some("node failure", "reservation")
            or "all processors are available all the time; see --events",
        ),
        ("before", "the cluster is empty when the first job is submitted; see --warm-up"),
        ("time zone", "times are read as UTC; name the site's with --timezone" if without_zone else ""),
        ("clock", some(*_OF_CLOCK)),
    ]
    unknown = int(np.count_nonzero(workload.requested_time <= 0))
    if unknown:
        found.append(
            (
                "time limits",
                f"{unknown:,} of {len(workload):,} jobs have none; their run time is the estimate",
            )
        )
    return [(word, text) for word, text in found if text]


_FLAGS = {
    "eligible after submission": "jobs became eligible only after they were submitted (a dependency, begin "
    "time, hold or array limit); see --from",
    "array task": "jobs are tasks of arrays",
    "component of a heterogeneous job": "are parts of heterogeneous jobs, which start apart here",
    "generic resources": "jobs held GPUs or other generic resources",
    "out of memory": "ran out of memory",
    "more processors than requested": "jobs got more processors than they requested, also here",
    "suspended": "jobs were suspended",
    "requeued": "runs were put back into the queue",
    "preempted": "were preempted",
    "resized": "changed their size",
    "node failure": "jobs ended with a node",
    "reservation": "ran in reservations",
    "time that the clock showed twice": "jobs with a time that the clock showed twice",
    "time that the clock never showed": "with a time that the clock never showed: is it the right time zone?",
    "elapsed time other than from start to end": "that did not run from start to end; the elapsed "
    "time counts",
}
"""What is said of this number of jobs with a flag of `AccountingLog`."""

_OF_CLOCK = (
    "time that the clock showed twice",
    "time that the clock never showed",
    "elapsed time other than from start to end",
)


def _kinds(numbers: NDArray[Any], then: str) -> str:
    kinds = len(np.unique(numbers[numbers >= 0]))
    return f"{kinds} of them; {then}" if kinds > 1 else ""


def _resources(workload: Workload, used: Sequence[str], some: Callable[..., str]) -> str:
    """What is said of memory and GPUs."""
    # with GPUs the other generic resources are left, which are rare
    said = [] if "gpus" in used else [some("generic resources")]
    gpus = [column for column in (workload.requested_gpus, workload.gpu_share) if column is not None]
    asked = int(np.count_nonzero(np.any([column > 0 for column in gpus], axis=0))) if gpus else 0
    if "gpus" not in used and asked and not said[0]:
        said = [f"{asked:,} jobs request GPUs"]
    if "memory" not in used and (workload.requested_memory > 0).any():
        said.append(f"{int((workload.requested_memory > 0).sum()):,} jobs request memory")
    said.append(some("out of memory"))
    alone = not {"memory", "gpus"} & set(used)
    return ", ".join(filter(None, said)) or ("only processors are allocated" if alone else "")


def _cancellations(workload: Workload, used: Sequence[str]) -> str:
    """What is said of jobs that were left out since they never started."""
    count = workload.left_out.get(NEVER_RAN, 0)
    return (
        ""
        if "cancellations" in used or not count
        else f"{count:,} jobs were cancelled before they started; they do not wait here"
    )


def _constrained(workload: Workload) -> str:
    """What is said of jobs that ask for features of nodes where these do not count."""
    count = 0 if workload.constraint is None else int((workload.constraint >= 0).sum())
    return f"{count:,} jobs ask for features of nodes, which are not known" if count else ""


def _waiting_for_others(workload: Workload, accounting: AccountingLog | None, used: Sequence[str]) -> str:
    """What is said of jobs that could not start when they were submitted."""
    late = np.zeros(len(workload), np.bool_)
    if accounting is not None and "eligible after submission" in accounting.flags:
        late = accounting.flags["eligible after submission"][accounting.rows(workload)].copy()
    if "dependencies" not in used:
        count = int(np.count_nonzero(late))
        return f"{count:,} {_FLAGS['eligible after submission']}" if count else _dependencies(workload)
    if workload.dependencies is not None:
        late[workload.dependencies["job"]] = False
    count = int(np.count_nonzero(late))
    why = "became eligible after their submission without a known dependency; see --from"
    return f"{count:,} jobs {why}" if count else ""


def _dependencies(workload: Workload) -> str:
    following, _, wrong = preceding_jobs(workload)
    told = [f"{len(following):,} of the jobs follow another job, for which they do not wait here"]
    return "; ".join(
        [*told[: len(following)], *(f"{count:,} not taken: {why}" for why, count in wrong.items() if count)]
    )

"""The stages of a study of local policies, from a log to its dataset: each task calls one of these functions.

Every stage reads files, calls the library and writes its result whole or not at all. Equal
configuration gives equal bits; what differs from one execution to the next (host, time, command) goes to a
sidecar beside the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, interval_variables
from gridsched.experiments.machines import ended, fates_of, machine
from gridsched.experiments.parts import ResamplingConfig, ShakingConfig
from gridsched.experiments.prepare import derived_seed, sources
from gridsched.experiments.schedulers import scheduler_made
from gridsched.metrics import jobs as metrics
from gridsched.metrics.users import USER_MEASURES, user_measures
from gridsched.replication import (
    difference_interval,
    holm,
    mean_interval,
    ratio_interval,
    times_interval,
    times_significance,
)
from gridsched.simulation import simulate
from gridsched.systems.local.study.config import RECORDED, LocalScenario, LocalStudy
from gridsched.verification import verify
from gridsched.workloads import Workload
from gridsched.workloads.characterisation import characterise
from gridsched.workloads.feedback import continuation_by_user, continuation_of

# --- workloads ------------------------------------------------------------------------------------


def characterise_workload(workload: str | Path, target: str | Path) -> None:
    """Write what a prepared workload looks like."""
    made, _ = results.workload_from_dataset(results.read(workload))
    files.write(characterise(made), target)


# --- simulations ----------------------------------------------------------------------------------


def simulate_run(study: LocalStudy, workload: str | Path, target: str | Path, *, seed: int = 0) -> None:
    """Simulate the only run of a study, verify its schedule and write it.

    Parameters
    ----------
    study : LocalStudy
        The study.
    workload : path
        Result of `prepare_workload`.
    target : path
        The run.
    seed : int
        Seed of the whole configuration, where failures are drawn.
    """
    jobs, cluster = results.workload_from_dataset(files.shared(workload))
    run = simulate(
        jobs,
        machine(jobs, cluster, study.scenarios[0], seed),
        scheduler_made(study.schedulers[0]),
        estimates=study.estimates[0],
        kill=study.kill,
        overrun=study.overrun,
        passes=study.passes,
    )
    verify(run)
    run.attrs.update(study=study.name, verified=1, **_reacting(study.scenarios[0]))
    files.write(run, target)


def simulate_replicates(
    study: LocalStudy,
    workload: str | Path,
    target: str | Path,
    *,
    seed: int,
    resampling: ResamplingConfig | None = None,
    shaking: ShakingConfig | None = None,
) -> None:
    """Simulate, verify and measure the only run of a study on replicates of its log.

    Replicate k of two runs of a scenario has the same jobs, so that runs can be compared.

    Parameters
    ----------
    study : LocalStudy
        The study.
    workload : path
        Result of `prepare_workload`.
    target : path
        Means of the metrics of jobs, on replicate and job class, and measures of the system, on replicate.
    seed : int
        Seed of the whole configuration.
    resampling, shaking : ResamplingConfig, ShakingConfig, optional
        How replicates differ from the log; one of them.
    """
    jobs, cluster = results.workload_from_dataset(files.shared(workload))
    (scenario,), variation = study.scenarios, resampling or shaking
    assert variation is not None
    measured = []
    for replicate in range(variation.replicates):
        own = derived_seed(seed, f"{scenario.name}\n{replicate}")
        made = variation.made(jobs, own)
        run = simulate(
            made,
            machine(made, cluster, scenario, own),
            scheduler_made(study.schedulers[0]),
            estimates=study.estimates[0],
            kill=study.kill,
            overrun=study.overrun,
            passes=study.passes,
        )
        verify(run)
        run.attrs.update(_reacting(scenario))
        own_names = [*(f"{name}_mean" for name in metrics.METRICS), *SYSTEM]
        summary = _summary(run, study)
        measured.append(summary[[*own_names, *(name for name in USER_MEASURES if name in summary)]])
    whole = xr.concat(measured, dim=pd.RangeIndex(len(measured), name="replicate"), combine_attrs="drop")
    whole.attrs = {"study": study.name, "verified": 1, **results.provenance()}
    files.write(whole, target)


def _reacting(scenario: LocalScenario) -> dict[str, Any]:
    """Attributes of runs whose users react."""
    if scenario.feedback is None:
        return {}
    return {"feedback": scenario.feedback.sessions, "think_time": scenario.feedback.think_time}


SYSTEM = ("jobs", "utilisation", "queue_length_mean", "rejected")
"""Further measures of each replicate."""


# --- aggregation ----------------------------------------------------------------------------------


def summarise_workload(study: LocalStudy, runs: Sequence[str | Path], target: str | Path) -> None:
    """Condense all runs of one workload, in the order of the study, to one dataset."""
    summaries: dict[tuple[str, str], xr.Dataset] = {}
    for (estimate, label), path in zip(product(study.estimates, study.labels), runs, strict=True):
        run = results.read(path)
        summaries[estimate, label] = _summary(run, study)
        if (estimate, RECORDED) not in summaries:
            # submissions that follow a simulation are not those of the log
            history = None if "feedback" in run.attrs else metrics.recorded(run)
            if history is not None:
                summaries[estimate, RECORDED] = _summary(history, study)
    schemes = [scheme for scheme in (*study.labels, RECORDED) if (study.estimates[0], scheme) in summaries]
    rows = [
        xr.concat(
            [summaries[estimate, scheme] for scheme in schemes],
            dim=pd.Index(schemes, name="scheme"),
            join="exact",
            combine_attrs="drop_conflicts",
        )
        for estimate in study.estimates
    ]
    whole = xr.concat(
        rows, dim=pd.Index(study.estimates, name="estimate"), join="exact", combine_attrs="drop_conflicts"
    )
    files.write(whole, target)


def _summary(run: xr.Dataset, study: LocalStudy) -> xr.Dataset:
    """Metrics of one run as the study wants them; counts of the run become variables."""
    settings = study.metrics
    summary = metrics.summarise(
        run,
        warm_up=settings.warm_up,
        cool_down=settings.cool_down,
        batches=settings.batches,
        bins=settings.bins,
        long_run_time=settings.classes.long,
        wide_processors=settings.classes.wide,
        since=_since(run),
    )
    if "feedback" in run.attrs:
        told = user_measures(run, think_time=run.attrs["think_time"])
        if run.attrs["feedback"] != "leave":
            # a session that begins by a clock goes on from one that lasted until then
            told["jobs_per_session"] = np.nan
        for name, value in told.items():
            summary[name] = ((), value, attrs_of(*USER_MEASURES[name]))
    for name, long_name in (
        ("corrections", "estimates that were outrun"),
        ("jobs_killed", "jobs that ended at their requested time"),
    ):
        summary[name] = ((), run.attrs.get(name, 0), {"long_name": long_name, "units": "1"})
    if run.attrs["scheme"] == RECORDED:
        return summary
    fates = fates_of(run)
    return summary.merge(fates.drop_vars([name for name in fates if name in summary]))


def _since(run: xr.Dataset) -> metrics.SinceName:
    """What waits count from: where users react, when their jobs became eligible."""
    return "eligible" if "feedback" in run.attrs else "submit"


CONDITIONED = ("response_time", "bounded_slowdown")
"""Metrics that are set against those under other conditions."""


def compare_conditions(
    study: LocalStudy, runs: Mapping[str, Sequence[str | Path]], target: str | Path
) -> None:
    """Set the runs of scenarios of the same jobs against those of the first, by the jobs that all share.

    Shared are jobs of one number and run time that end in all of these runs, and whose users never give up
    waiting: who does and when differs from policy to policy. Intervals come from batches of consecutive jobs.

    Parameters
    ----------
    study : LocalStudy
        The study with these scenarios alone.
    runs : mapping of scenario to paths
        Results of `simulate_run` for each scenario, the baseline first, by estimates and scheduler.
    target : path
        The comparison, on dimensions workload (the scenarios), estimate and scheme: `{metric}_shared`, the
        mean of the shared jobs; `{metric}_effect`, relative to that in the baseline; `{metric}_against`,
        relative to that of the reference policy in the same scenario; `{metric}_ahead_of`, who surely has a
        larger one; how many jobs are shared.
    """
    found = {name: [results.read(path) for path in paths] for name, paths in runs.items()}
    every = [run for own in found.values() for run in own]
    shared = _shared_jobs(every)
    batches = study.metrics.batches
    batch = np.arange(len(shared)) * batches // max(len(shared), 1)
    shape = (len(found), len(study.estimates), len(study.labels))
    dims = ("workload", "estimate", "scheme")
    variables: dict[str, Any] = {}
    places = [_places(run, shared) for run in every]
    for metric in CONDITIONED:
        values = [metrics.job_metrics(run)[metric][place] for run, place in zip(every, places, strict=True)]
        sums = np.array([np.bincount(batch, each, batches) for each in values]).reshape(*shape, batches)
        label, unit = metrics.METRICS[metric]
        mean = sums.sum(axis=-1) / max(len(shared), 1)
        variables[f"{metric}_shared"] = (dims, mean, attrs_of(f"mean {label} of the shared jobs", unit))
        own = study.labels.index(study.reference_label)
        for name, base, what in (
            ("effect", sums[:1], "in the baseline"),
            ("against", sums[:, :, own : own + 1], "under the reference policy"),
        ):
            interval = times_interval(sums, base)
            text = f"mean {label} of the shared jobs relative to that {what}"
            variables |= interval_variables(f"{metric}_{name}", dims, interval, text, "1")
        variables[f"{metric}_ahead_of"] = (
            dims,
            _ahead_of(sums, study.labels),
            {"long_name": f"policies whose mean {label} is surely larger, each behind a semicolon"},
        )
    baseline = next(iter(found))
    variables["baseline"] = ("workload", [baseline] * len(found), {"long_name": "scenario compared with"})
    variables["jobs_shared"] = (
        "workload",
        [float(len(shared))] * len(found),
        attrs_of("jobs that are the same in all scenarios, and end in all", "1"),
    )
    labels = {"workload": list(found), "estimate": list(study.estimates), "scheme": study.labels}
    files.write(xr.Dataset(variables, labels), target)


def _ahead_of(sums: NDArray[np.float64], labels: Sequence[str]) -> NDArray[Any]:
    """Labels whose sums are surely larger than those of each one, by the interval of the ratio of the two."""
    high = times_interval(sums[:, :, :, np.newaxis], sums[:, :, np.newaxis]).high
    found = np.empty(high.shape[:-1], dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = ";".join(label for label, bound in zip(labels, high[place], strict=True) if bound < 1)
    return found


def _shared_jobs(runs: Sequence[xr.Dataset]) -> NDArray[np.int64]:
    """Numbers of the jobs that all runs have alike and bring to their end, in order of submission."""
    kept: pd.Index[Any] | None = None
    for run in runs:
        alike = ended(run)
        if "gives_up_time" in run:
            alike &= run["gives_up_time"].to_numpy() < 0
        jobs = pd.MultiIndex.from_arrays(
            [run["job_number"].to_numpy()[alike], run["run_time"].to_numpy()[alike]]
        )
        kept = jobs if kept is None else kept[kept.isin(jobs)]
    assert kept is not None
    return kept.get_level_values(0).to_numpy(np.int64)


def _places(run: xr.Dataset, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the jobs of some numbers are in a run."""
    places: NDArray[np.int64] = pd.Index(run["job_number"].to_numpy()).get_indexer(numbers).astype(np.int64)
    return places


def aggregate_study(
    study: LocalStudy,
    summaries: Mapping[str, str | Path],
    workloads: Mapping[str, str | Path],
    comparisons: Sequence[str | Path],
    target: str | Path,
    *,
    replicates: Mapping[str, Sequence[str | Path]] | None = None,
) -> None:
    """Put the summaries of all workloads into the dataset of the study, with paired differences.

    Parameters
    ----------
    study : LocalStudy
        The study.
    summaries, workloads : mapping of workload name to path
        Results of `summarise_workload` and `prepare_workload`.
    comparisons : sequence of paths
        Results of `compare_conditions`.
    target : path
        The dataset.
    replicates : mapping of workload name to paths, optional
        Results of `simulate_replicates` for workloads that have some, by estimates and scheduler.
    """
    parts = [results.read(path) for path in summaries.values()]
    whole = xr.concat(
        parts, dim=pd.Index(list(summaries), name="workload"), join="outer", combine_attrs="drop_conflicts"
    )
    order = [scheme for scheme in (*study.labels, RECORDED) if scheme in whole["scheme"].values]
    whole = whole.sel(scheme=order)
    whole = whole.merge(metrics.difference(whole, whole.sel(scheme=study.reference_label, drop=True)))
    logs = {name: results.workload_from_dataset(results.read(path))[0] for name, path in workloads.items()}
    whole = whole.merge(sources(logs, "workload"))
    whole = whole.merge(_going_on(study, logs))
    if study.pairs:
        whole = whole.merge(_pairs(whole, study.reference_label))
    if comparisons:
        together = xr.concat([results.read(path) for path in comparisons], dim="workload")
        whole = whole.merge(together.reindex(workload=whole["workload"], scheme=whole["scheme"]))
    if replicates:
        own = [_varied(study, name, paths) for name, paths in replicates.items()]
        varied = xr.concat(own, dim="workload", join="outer")
        whole = whole.merge(varied.reindex(workload=whole["workload"], scheme=whole["scheme"]))
        said = {each.name: "resampling" if each.resampling else "shaking" for each in study.scenarios}
        whole["variation"] = (
            "workload",
            [said[name] if name in replicates else "" for name in summaries],
            {"long_name": "what makes the replicates of the log"},
        )
    whole.attrs = {
        **{key: value for key, value in whole.attrs.items() if key not in ("title", "workload")},
        **study.attributes(),
        "kill": int(study.kill),
        "passes": study.passes,
    }
    files.write(whole, target)


def _going_on(study: LocalStudy, logs: Mapping[str, Workload]) -> xr.Dataset:
    """How often the sessions of each log go on after a response, where users leave after long ones."""
    found = []
    for name, log in logs.items():
        if log.recorded_submit is None:
            continue
        feedback = study.scenario(name).feedback
        as_recorded = replace(log, submit_time=log.recorded_submit, dependencies=None)
        as_recorded = as_recorded.select(np.argsort(log.recorded_submit, kind="stable"))
        batches, continued = continuation_by_user(as_recorded, think_time=feedback.think_time)
        share = ratio_interval(continued.T, batches.T)
        fitted = continuation_of(as_recorded, think_time=feedback.think_time)
        dims = ("response",)
        text = "share of batches after which the session goes on, intervals over users"
        own = xr.Dataset(
            {
                "going_on_batches": (dims, fitted.batches, attrs_of("batches of jobs", "1")),
                **interval_variables("going_on", dims, share, text, "1"),
                "going_on_share": (dims, fitted.share, attrs_of("the share, falling with the response", "1")),
            },
            {"response": ("response", np.append(0, fitted.limit), attrs_of("shortest response", "s"))},
        )
        found.append(own.expand_dims(workload=[name]))
    return xr.concat(found, dim="workload").reindex(workload=list(logs)) if found else xr.Dataset()


def _pairs(whole: xr.Dataset, reference: str) -> xr.Dataset:
    """Every two policies on each workload, by batches of the same jobs.

    For each metric of `CONDITIONED`: `{metric}_ratio` with the bounds of its interval, relative to the
    reference policy, and `{metric}_beats`, the policies whose mean is surely larger. Sure is what has a
    probability below 5 % without a difference, after Holm's correction for all pairs of a workload, estimate
    and metric.
    """
    variables: dict[str, Any] = {}
    own = whole.sel(job_class="all", scheme=[each for each in whole["scheme"].values if each != RECORDED])
    dims = ("workload", "estimate", "scheme")
    schemes = [str(each) for each in own["scheme"].values]
    first, second = np.triu_indices(len(schemes), 1)
    for metric in CONDITIONED:
        batches = own[f"{metric}_batch"].transpose(*dims, "batch").values
        base = batches[:, :, schemes.index(reference)][:, :, np.newaxis]
        label = metrics.METRICS[metric][0]
        text = f"mean {label} relative to that under the reference policy"
        variables |= interval_variables(f"{metric}_ratio", dims, times_interval(batches, base), text, "1")
        beats = np.full(batches.shape[:3], "", dtype=object)
        for place in np.ndindex(batches.shape[:2]):
            values = batches[place]
            sure = holm(times_significance(values[first], values[second])) < 1 - CONFIDENCE
            smaller = np.nanmean(values, axis=-1)
            for one, other in zip(first[sure], second[sure], strict=True):
                better, worse = (one, other) if smaller[one] < smaller[other] else (other, one)
                beats[(*place, better)] += f"{schemes[worse]};"
        what = f"policies whose mean {label} is surely larger, each with a semicolon behind it"
        variables[f"{metric}_beats"] = (dims, beats, {"long_name": what})
    made = xr.Dataset(variables, {name: own[name].values for name in dims})
    return made.reindex(scheme=whole["scheme"], fill_value={f"{metric}_beats": "" for metric in CONDITIONED})


CONFIDENCE = 0.95
"""Confidence at which one policy is surely better than another."""


CONDITIONED_BY_USERS = ("wait_time", "bounded_slowdown")
"""Metrics that are set beside what users got done."""


def _varied(study: LocalStudy, name: str, paths: Sequence[str | Path]) -> xr.Dataset:
    """What the replicates of a workload say together: means with intervals, paired differences, spread."""
    runs = iter([results.read(path) for path in paths])
    rows = [
        xr.concat([next(runs) for _ in study.labels], dim=pd.Index(study.labels, name="scheme"))
        for _ in study.estimates
    ]
    runs_of = xr.concat(rows, dim=pd.Index(study.estimates, name="estimate")).transpose(..., "replicate")
    dims = ("estimate", "scheme", "job_class")
    own = study.labels.index(study.reference_label)
    found: dict[str, Any] = {}
    for metric, (label, unit) in metrics.METRICS.items():
        values = runs_of[f"{metric}_mean"].transpose(*dims, "replicate").to_numpy()
        text = f"mean {label} of a replicate of the log"
        found[f"{metric}_replicates"] = ((*dims, "replicate"), values, attrs_of(text, unit))
        mean = mean_interval(values)
        found |= interval_variables(f"{metric}_varied", dims, mean, f"{text}, mean of all", unit)
        against = difference_interval(values, values[:, own : own + 1])
        text = f"{text}, difference from the reference"
        found |= interval_variables(f"{metric}_varied_difference", dims, against, text, unit)
        low, high = np.quantile(values, (0.025, 0.975), axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.where(high > low, (high - low) / mean.mean, 0.0)
        text = f"middle 95 % of the replicates of the mean {label}, relative to their mean"
        found[f"{metric}_spread"] = (dims, np.where(np.isnan(mean.mean), np.nan, spread), attrs_of(text, "1"))
    for each in (name for name in USER_MEASURES if name in runs_of):
        values = runs_of[each].transpose("estimate", "scheme", "replicate").to_numpy()
        ratio = times_interval(values, values[:, own : own + 1])
        text = f"{USER_MEASURES[each][0]}, of a replicate of the log, relative to the reference"
        found |= interval_variables(f"{each}_varied_ratio", dims[:2], ratio, text, "1")
    for metric in CONDITIONED_BY_USERS if "productivity" in runs_of else ():
        means = runs_of[f"{metric}_mean"].sel(job_class="all")
        values = means.transpose("estimate", "scheme", "replicate").to_numpy()
        ratio = times_interval(values, values[:, own : own + 1])
        text = f"mean {metrics.METRICS[metric][0]} of a replicate of the log, relative to the reference"
        found |= interval_variables(f"{metric}_varied_ratio", dims[:2], ratio, text, "1")
    for each in (*SYSTEM, *(name for name in USER_MEASURES if name in runs_of)):
        variable = runs_of[each]
        long_name = f"{variable.attrs.get('long_name', each)}, of a replicate"
        found[f"{each}_replicates"] = (variable.dims, variable.to_numpy(), attrs_of(long_name, "1"))
    labels = {
        "estimate": list(study.estimates),
        "scheme": study.labels,
        "job_class": list(metrics.JOB_CLASSES),
        "replicate": runs_of["replicate"].to_numpy(),
    }
    return xr.Dataset(found, labels).expand_dims(workload=[name])


def means_table(study: xr.Dataset) -> pd.DataFrame:
    """One row for each workload, estimate, scheme and job class that has jobs, with means and intervals."""
    names = [
        f"{metric}_{part}"
        for metric in metrics.METRICS
        for part in ("mean", "mean_low", "mean_high", "difference", "difference_low", "difference_high")
    ]
    by_run = ["utilisation", "makespan", "queue_length_mean", "queue_length_max"]
    if "variation" in study:
        ends = ("_varied", "_varied_low", "_varied_high", "_spread")
        names += [
            *(f"{metric}{end}" for metric in metrics.METRICS for end in ends),
            *(
                f"{metric}_varied_difference{end}"
                for metric in metrics.METRICS
                for end in ("", "_low", "_high")
            ),
        ]
    keys = ["workload", "estimate", "scheme", "job_class"]
    frame = study[[*names, *by_run, "jobs"]].to_dataframe(dim_order=keys).reset_index()
    frame = frame[frame["wait_time_mean"].notna()]
    return frame[[*keys, "jobs", *names, *by_run]]

"""The stages of a study of grids, from machines to its dataset: each rule calls one of these functions.

Runs are simulated and measured at once: what is kept are measures of every run, and start times and machines
of all jobs of the replicates that the study names. Every other schedule follows, bit for bit, from the
workloads, which are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.metrics.grid import offered_loads, summarise_grid, summarise_ideal
from gridsched.platforms import Cluster
from gridsched.replication import difference_interval, mean_interval, ratio_interval
from gridsched.schedulers.local import LocalPolicy
from gridsched.simulation.clusters import simulate_grid
from gridsched.simulation.ideal import simulate_ideal
from gridsched.study import files
from gridsched.study.config import GridStudy
from gridsched.study.parts import ScenarioConfig, SchemeConfig, label_of, local_policy, scheme_of
from gridsched.study.prepare import derived_seed, make_workload
from gridsched.study.runs import grid_run_table
from gridsched.verification.runs import verify
from gridsched.workloads import Workload
from gridsched.workloads.table import add_counts

Machines = Sequence[tuple[Workload, Cluster]]

_RUN = ("policy", "scheme", "replicate")
"""Dimensions along which the runs of a scenario differ."""

# --- machines -------------------------------------------------------------------------------------


def prepare_grids(
    scenario: ScenarioConfig,
    replicates: Sequence[int],
    seed: int,
    logs: Mapping[str, str | Path],
    target: str | Path,
) -> None:
    """Make the workloads of all machines for some replicates and write them with their clusters.

    A synthetic workload depends on the seed, the name of its machine and the replicate, not on the scenario:
    the same machine in two scenarios has the same draws, so that scenarios can be compared.

    Parameters
    ----------
    scenario : ScenarioConfig
        The machines.
    replicates : sequence of int
        Numbers of the replicates, from 0.
    seed : int
        Seed of the whole configuration.
    logs : mapping of machine name to path
        SWF files of the machines that replay a log.
    target : path
        Dataset to write.
    """
    grids = {replicate: _machines(scenario, replicate, seed, logs) for replicate in replicates}
    whole = results.grids_dataset(grids)
    whole.attrs["scenario"] = scenario.name
    files.write(whole, target)


def _machines(
    scenario: ScenarioConfig, replicate: int, seed: int, logs: Mapping[str, str | Path]
) -> Machines:
    return [
        make_workload(
            machine,
            derived_seed(seed, f"{machine.name}\n{replicate}"),
            logs.get(machine.name),
            in_grid=True,
        )
        for machine in scenario.machines
    ]


# --- simulations ----------------------------------------------------------------------------------


def simulate_grids(
    study: GridStudy, scenario: str, grids: str | Path, target: str | Path, *, schedules: str | Path
) -> None:
    """Simulate, verify and measure every scheme under every policy on some replicates of a scenario.

    Parameters
    ----------
    study : GridStudy
        The study.
    scenario : str
        Name of the scenario.
    grids : path
        Result of `prepare_grids`.
    target, schedules : path
        Measures of all runs; start time and machine of each job in the runs whose schedules are kept.
    """
    machines = results.grids_from_dataset(results.read(grids))
    summaries: dict[tuple[str, str, int], xr.Dataset] = {}
    kept: list[xr.Dataset] = []
    for replicate, pairs in machines.items():
        for policy, scheme in product(study.policies, study.schemes):
            run = _simulate(study, scenario, pairs, local_policy(policy), scheme_of(scheme))
            place = label_of(policy), label_of(scheme), replicate
            summaries[place] = summarise_ideal(run) if scheme_of(scheme).is_ideal else summarise_grid(run)
            if study.schedules == "all" or (study.schedules == "first" and replicate == 0):
                kept.append(_schedule(run, *place))
    whole = _stack(summaries, (study.policy_labels, study.scheme_labels, list(machines)))
    whole = whole.merge(_submitted(machines, study.scenario(scenario)))
    whole.attrs = {"study": study.name, "scenario": scenario, "verified": 1, **results.provenance()}
    files.write(_schedules(kept, scenario), schedules)
    files.write(whole, target)


def _simulate(
    study: GridStudy, scenario: str, machines: Machines, policy: LocalPolicy, scheme: SchemeConfig
) -> xr.Dataset:
    """One verified run."""
    conditions = study.scenario(scenario)
    workloads, clusters = [pair[0] for pair in machines], [pair[1] for pair in machines]
    if scheme.is_ideal:
        return simulate_ideal(workloads, clusters, scheme.ideal_form, align=conditions.align)
    run = simulate_grid(
        workloads,
        clusters,
        scheme.superscheduler(),
        policy,
        estimates=conditions.estimates,
        align=conditions.align,
        overrun=study.overrun,
    )
    verify(run)
    return run


def _submitted(machines: Mapping[int, Machines], scenario: ScenarioConfig) -> xr.Dataset:
    """What is submitted to each machine, replicate by replicate, and the machines themselves."""
    loads = [offered_loads(*zip(*pairs, strict=True), align=scenario.align) for pairs in machines.values()]
    whole = xr.concat(loads, dim=pd.Index(list(machines), name="replicate"), combine_attrs="drop_conflicts")
    clusters = [cluster for _, cluster in next(iter(machines.values()))]
    whole["cluster_processors"] = (
        "cluster",
        [float(cluster.processors) for cluster in clusters],
        {"long_name": "processors of the machine", "units": "1"},
    )
    whole["cluster_speed"] = (
        "cluster",
        [cluster.speed for cluster in clusters],
        {"long_name": "speed of the machine, in a unit that all share", "units": "1"},
    )
    return whole


def _schedule(run: xr.Dataset, policy: str, scheme: str, replicate: int) -> xr.Dataset:
    """Start time and machine of each job of a run."""
    jobs = run.sizes["job"]
    machine = np.full(jobs, -1, np.int16)
    if "segment_job" in run:
        machine[run["segment_job"].values] = run["segment_cluster"].values
    return xr.Dataset(
        {
            "home": ("job", run["home_cluster"].values.astype(np.int16)),
            "job_number": ("job", run["job_number"].values),
            "submit_time": ("job", run["submit_time"].values),
            "start_time": ("job", run["start_time"].values.astype(np.float64)),
            "end_time": ("job", run["end_time"].values.astype(np.float64)),
            "machine": ("job", machine),
        },
        attrs={"policy": policy, "scheme": scheme, "replicate": replicate},
    )


def _schedules(kept: Sequence[xr.Dataset], scenario: str) -> xr.Dataset:
    """Schedules of several runs on the same jobs or others, one after the other."""
    if not kept:
        return xr.Dataset(attrs={"title": "no schedules are kept of these runs", "scenario": scenario})
    whole = xr.concat(kept, dim="job", combine_attrs="drop")
    lengths = [part.sizes["job"] for part in kept]
    whole["run"] = ("job", np.repeat(np.arange(len(kept)), lengths).astype(np.int32))
    for name in _RUN:
        whole[f"run_{name}"] = ("scheduled_run", [part.attrs[name] for part in kept])
    explanations = {
        "home": "index of the machine where the job was submitted",
        "machine": "index of the machine that ran the job, -1 for none or an ideal one",
        "start_time": "start time, s, -1 for a rejected job",
        "end_time": "end time, s, -1 for a rejected job",
        "run": "index along scheduled_run",
    }
    for name, text in explanations.items():
        whole[name].attrs["long_name"] = text
    whole.attrs = {"title": f"schedules of {scenario}", "scenario": scenario, **results.provenance()}
    return whole


def _stack(
    summaries: Mapping[tuple[str, str, int], xr.Dataset], labels: tuple[list[str], list[str], list[int]]
) -> xr.Dataset:
    """Summaries of single runs on the dimensions of `_RUN`; what a run does not have is NaN."""
    fullest = max(summaries.values(), key=lambda summary: len(summary.data_vars))
    sizes = [len(names) for names in labels]
    variables = {}
    for name, like in fullest.data_vars.items():
        absent = np.full(like.shape, np.nan)
        values = [summary[name].values if name in summary else absent for summary in summaries.values()]
        # Runs come replicate by replicate
        block = np.stack(values).reshape(sizes[2], sizes[0], sizes[1], *like.shape)
        variables[name] = ((*_RUN, *like.dims), np.moveaxis(block, 0, 2).astype(np.float64), like.attrs)
    coordinates = {name: fullest[name] for name in fullest.coords}
    return xr.Dataset(variables, {**coordinates, **dict(zip(_RUN, labels, strict=True))})


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_grid_study(
    study: GridStudy,
    measures: Sequence[str | Path],
    grids: Sequence[str | Path],
    chunk_size: int,
    target: str | Path,
    *,
    means: str | Path,
    runs: str | Path,
) -> None:
    """Put all scenarios and replicates into the dataset of the study.

    Parameters
    ----------
    study : GridStudy
        The study.
    measures, grids : sequence of paths
        Results of `simulate_grids` and `prepare_grids`.
    chunk_size : int
        Runs of one scenario in one dataset.
    target, means, runs : path
        The dataset; its means and intervals, and the table of runs, as CSV.
    """
    chunks: dict[str, list[xr.Dataset]] = {scenario.name: [] for scenario in study.scenarios}
    for path in measures:
        chunk = results.read(path)
        chunks[chunk.attrs["scenario"]].append(chunk)
    scenarios = [
        xr.concat(parts, dim="replicate", data_vars="minimal", combine_attrs="drop_conflicts").sortby(
            "replicate"
        )
        for parts in chunks.values()
    ]
    fixed = xr.merge(
        [part[_FIXED] for part in scenarios], join="outer", compat="no_conflicts", combine_attrs="drop"
    )
    whole = xr.concat(
        [part.drop_vars(_FIXED) for part in scenarios],
        dim=pd.Index(list(chunks), name="scenario"),
        join="outer",
        combine_attrs="drop_conflicts",
    ).merge(fixed)
    # Joining sorts labels; the study has an order of its own
    whole = whole.sel(policy=study.policy_labels, scheme=study.scheme_labels)
    whole = whole.merge(workload_facts([scenario.name for scenario in study.scenarios], grids))
    whole.attrs = {
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "reference": study.reference_scheme,
        "configuration_hash": study.checksum(),
        "overrun": study.overrun,
        "verified": 1,
        **results.provenance(),
    }
    files.write_table(means_table(whole), means)
    files.write_table(grid_run_table(study, chunk_size), runs)
    files.write(whole, target)


_FIXED = ["cluster_processors", "cluster_speed"]
"""Variables that a machine has in every scenario."""


def workload_facts(scenarios: Sequence[str], grids: Sequence[str | Path]) -> xr.Dataset:
    """What was left out or repaired on each machine, over all replicates, and where its jobs come from."""
    counts: dict[str, dict[tuple[str, str], dict[str, int]]] = {"left_out": {}, "repaired": {}}
    checksums: dict[tuple[str, str], list[str]] = {}
    acknowledgements: dict[tuple[str, str], str] = {}
    for path in grids:
        chunk = results.read(path)
        for machines in results.grids_from_dataset(chunk).values():
            for workload, cluster in machines:
                place = chunk.attrs["scenario"], cluster.name
                checksums.setdefault(place, []).append(workload.checksum)
                acknowledgements[place] = workload.acknowledgement
                for kind, table in counts.items():
                    table[place] = add_counts(table.get(place, {}), getattr(workload, kind))
    names = list(dict.fromkeys(home for _, home in checksums))
    places = [[(scenario, home) for home in names] for scenario in scenarios]
    facts = xr.Dataset(
        {
            "workload_checksum": (
                ("scenario", "home"),
                [[" ".join(dict.fromkeys(checksums.get(place, []))) for place in row] for row in places],
                {"long_name": "SHA-256 of the workloads of all replicates, in their order"},
            ),
            "acknowledgement": (
                ("scenario", "home"),
                [[acknowledgements.get(place, "") for place in row] for row in places],
            ),
        },
        coords={"scenario": scenarios, "home": names},
    )
    for kind, table in counts.items():
        reasons = sorted({reason for found in table.values() for reason in found})
        values = [
            [[table.get(place, {}).get(reason, 0) for reason in reasons] for place in row] for row in places
        ]
        facts[kind] = (
            ("scenario", "home", f"{kind}_reason"),
            np.array(values, np.int64).reshape(len(places), len(names), len(reasons)),
            {"long_name": f"jobs {kind.replace('_', ' ')}, over all replicates", "units": "1"},
        )
        facts = facts.assign_coords({f"{kind}_reason": np.array(reasons, dtype=object)})
    return facts


COMPARED = ("wait_time_mean", "response_time_mean", "wait_time_deviation", "bounded_slowdown_mean")
"""Measures that are set against the reference."""

MEASURED = (
    *COMPARED,
    "wait_time_std",
    "grid_efficiency",
    "transferred",
    "makespan",
    "jobs",
    "rejected",
    "queries",
)
"""Measures of a run in the table of means."""


def means_table(study: xr.Dataset) -> pd.DataFrame:
    """One row for each scenario, policy, scheme and measure that has values, with intervals over replicates.

    Measures of `COMPARED` have the ratio to the reference scheme and the paired difference from it besides.
    """
    rows = []
    reference = study.sel(scheme=study.attrs["reference"])
    for scenario in study["scenario"].values:
        for policy in study["policy"].values:
            for scheme in study["scheme"].values:
                place = {"scenario": scenario, "policy": policy}
                for name in MEASURED:
                    values = study[name].sel(place | {"scheme": scheme}).values
                    if np.isnan(values).all():
                        continue
                    row = {**place, "scheme": scheme, "measure": name, "unit": study[name].attrs["units"]}
                    row |= {"replicates": int((~np.isnan(values)).sum())}
                    row |= _columns("", mean_interval(values))
                    if name in COMPARED:
                        other = reference[name].sel(place).values
                        row |= _columns("ratio_", ratio_interval(values, other))
                        row |= _columns("difference_", difference_interval(values, other))
                    rows.append(row)
    return pd.DataFrame(rows)


def _columns(prefix: str, interval: Any) -> dict[str, float]:
    return {
        f"{prefix}{name}": float(value) for name, value in zip(("mean", "low", "high"), interval, strict=True)
    }

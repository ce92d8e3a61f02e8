"""What the workflow has to know before anything runs: which files a study consists of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from gridsched.io import checksum, resource
from gridsched.study.arena_config import SelfSchedulingContender
from gridsched.study.calendar_runs import calendar_chunks
from gridsched.study.config import (
    ArenaStudy,
    CalendarStudy,
    DynamicGridStudy,
    GridStudy,
    LocalStudy,
    ModelStudy,
    MulticlusterStudy,
    SelfSchedulingStudy,
    Study,
)
from gridsched.study.dynamic_runs import dynamic_chunks
from gridsched.study.multicluster_config import PointConfig
from gridsched.study.multicluster_runs import point_chunks
from gridsched.study.parts import PolicyConfig, WorkloadConfig, scheme_of
from gridsched.study.runs import Run, chunks, expand, replicate_chunks, self_scheduling_chunks
from gridsched.traces import find_log

SMALL = 40
"""Most jobs of a workload whose schedules are drawn as Gantt charts."""


def log_file(workload: WorkloadConfig, results: str) -> list[str]:
    """SWF file that a workload is read from; none if it is synthetic."""
    if workload.archive is not None:
        return [f"{results}/archive/{find_log(workload.archive).file}"]
    return [workload.file] if workload.file is not None else []


@cache
def _checksum(path: str) -> str:
    """SHA-256 of a file as it was when this was first asked; empty without a file."""
    return checksum(path) if Path(path).is_file() else ""


def own_checksums(paths: Iterable[str], results: str) -> list[str]:
    """Checksums of files that the workflow does not make, for the parameters of rules.

    Times do not tell all changes: Snakemake gives an output the time at which it notes the job down as done,
    and then a change that came just before looks older.
    """
    return [_checksum(path) for path in paths if not path.startswith(f"{results}/")]


def score_files(study: LocalStudy | GridStudy | ArenaStudy) -> list[str]:
    """Python files with the users' scores and costs of a study."""
    policies = (study.policy,) if isinstance(study, ArenaStudy) else study.policies
    costs = [
        each.metric
        for each in (study.contenders if isinstance(study, ArenaStudy) else ())
        if isinstance(each, SelfSchedulingContender)
    ]
    orders = [
        order
        for policy in policies
        if isinstance(policy, PolicyConfig)
        for order in (policy.order, policy.backfill_order)
    ]
    return sorted({place.rpartition(":")[0] for place in [*orders, *costs] if ":" in place})


def chunk_files(study: LocalStudy, workload: str, chunk_size: int, results: str) -> list[str]:
    """Datasets with the runs of a workload."""
    number = len(chunks(study, workload, chunk_size))
    return [f"{results}/{study.name}/runs/{workload}/{chunk}.nc" for chunk in range(number)]


def chunk_of_run(study: LocalStudy, identifier: str, chunk_size: int, results: str) -> str:
    """Dataset that holds a run."""
    run = find_run(study, identifier)
    for chunk, runs in enumerate(chunks(study, run.workload, chunk_size)):
        if run in runs:
            return f"{results}/{study.name}/runs/{run.workload}/{chunk}.nc"
    raise KeyError(identifier)


def find_run(study: LocalStudy, identifier: str) -> Run:
    """The run of an identifier."""
    return next(run for run in expand(study) if run.identifier == identifier)


def run_labels(study: LocalStudy, identifier: str) -> dict[str, str]:
    """Labels of a run in the report of Snakemake."""
    run = find_run(study, identifier)
    return {"figure": f"{run.workload}, {run.scheme}, {run.estimate} run times"}


def workload_files(study: LocalStudy, stage: str, results: str) -> list[str]:
    """Datasets of one stage, one for each workload."""
    return [f"{results}/{study.name}/{stage}/{workload.name}.nc" for workload in study.workloads]


def machine_logs(study: GridStudy | ArenaStudy, scenario: str, results: str) -> dict[str, str]:
    """SWF files of the machines of a scenario that replay a log, by name of the machine."""
    return {
        machine.name: log
        for machine in study.scenario(scenario).machines
        for log in log_file(machine, results)
    }


def grid_files(study: GridStudy, stage: str, scenario: str, chunk_size: int, results: str) -> list[str]:
    """Datasets of one stage of a scenario, one for each chunk of replicates."""
    number = len(replicate_chunks(study, chunk_size))
    return [f"{results}/{study.name}/{stage}/{scenario}/{chunk}.nc" for chunk in range(number)]


def centre_files(study: SelfSchedulingStudy, stage: str, results: str) -> list[str]:
    """Datasets of one stage, one for each centre whose log is used."""
    return [f"{results}/{study.name}/{stage}/{centre.name}.nc" for centre in study.centres]


def stream_files(study: SelfSchedulingStudy, results: str) -> list[str]:
    """Datasets with the stream of all jobs, one for each reading of the CPU factor."""
    return [f"{results}/{study.name}/streams/{factor}.nc" for factor in study.factors]


def self_scheduling_files(study: SelfSchedulingStudy, chunk_size: int, results: str) -> list[str]:
    """Datasets with the measures of all runs."""
    numbers = ((factor, len(self_scheduling_chunks(study, factor, chunk_size))) for factor in study.factors)
    return _chunked(f"{results}/{study.name}/measures", numbers)


def _chunked(folder: str, numbers: Iterable[tuple[str, int]]) -> list[str]:
    """Datasets of the parts of a study, given with their numbers of chunks."""
    return [f"{folder}/{part}/{chunk}.nc" for part, number in numbers for chunk in range(number)]


def arena_files(study: ArenaStudy, results: str) -> dict[str, str]:
    """Datasets with machines and workloads of an arena, by scenario."""
    return {scenario.name: f"{results}/{study.name}/arena/{scenario.name}.nc" for scenario in study.scenarios}


def play_files(study: ArenaStudy, results: str) -> dict[str, list[str]]:
    """Datasets with what each contender made of a scenario, by scenario."""
    return {
        scenario.name: [
            f"{results}/{study.name}/plays/{scenario.name}/{contender}.nc"
            for contender in range(len(study.contenders))
        ]
        for scenario in study.scenarios
    }


def case_logs(study: CalendarStudy, case: str, results: str) -> dict[str, str]:
    """SWF files of the workloads of a case that are read from a log, by name of the workload."""
    return {
        workload.name: log for workload in study.case(case).workloads for log in log_file(workload, results)
    }


def case_files(study: CalendarStudy, results: str) -> list[str]:
    """Datasets with the clusters and workloads of all cases."""
    return [f"{results}/{study.name}/cases/{case.name}.nc" for case in study.cases]


def calendar_files(study: CalendarStudy, chunk_size: int, results: str) -> list[str]:
    """Datasets with the measures of all runs."""
    numbers = ((case.name, len(calendar_chunks(study, case.name, chunk_size))) for case in study.cases)
    return _chunked(f"{results}/{study.name}/measures", numbers)


def alone_files(study: DynamicGridStudy, results: str) -> list[str]:
    """Datasets with every site on its own, one for each local policy."""
    return [f"{results}/{study.name}/alone/{policy}.nc" for policy in study.policies]


def dynamic_files(study: DynamicGridStudy, chunk_size: int, results: str) -> list[str]:
    """Datasets with the measures of all runs of a study of dynamic grids."""
    number = len(dynamic_chunks(study, chunk_size))
    return [f"{results}/{study.name}/cases/{chunk}.nc" for chunk in range(number)]


def departure_files(study: DynamicGridStudy, results: str) -> list[str]:
    """Dataset of the site that leaves; none if the study has none."""
    return [f"{results}/{study.name}/departure.nc"] if study.departure is not None else []


def rate_file(point: PointConfig, results: str) -> list[str]:
    """Dataset with the rate of arrivals of a point; none if the rate is given."""
    return [f"{results}/rates/{point.calibration_key}.nc"] if point.calibration_key else []


def point_log(point: PointConfig, results: str) -> list[str]:
    """SWF file of a point; none if its jobs are drawn."""
    return [] if point.jobs.log is None else log_file(point.jobs.log, results)


def point_jobs(study: MulticlusterStudy, results: str) -> list[str]:
    """Datasets with the jobs of all points."""
    return [f"{results}/{study.name}/jobs/{point.name}.nc" for point in study.points]


def point_measures(study: MulticlusterStudy, chunk_size: int, results: str) -> list[str]:
    """Datasets with the measures of all runs, point by point."""
    numbers = ((point.name, len(point_chunks(study, point.name, chunk_size))) for point in study.points)
    return _chunked(f"{results}/{study.name}/measures", numbers)


def example_file(study: MulticlusterStudy, results: str) -> list[str]:
    """Dataset of the worked example; none if the study does not show it."""
    return [f"{results}/{study.name}/example.nc"] if study.worked_example else []


EXAMPLE_FIGURES: tuple[str, ...] = ("example_handed_over", "example_improved")
"""Figures of the worked example of a study of a multicluster."""

PREDICTION_FIGURES: tuple[str, ...] = ("prediction_quality", "prediction_intervals")
"""Figures of the predictions of a study of self-scheduling."""


def study_figures(study: Study) -> list[str]:
    """Figures of the whole study."""
    return _FIGURES[type(study)](study)


def _grid_figures(study: GridStudy) -> list[str]:
    """A variant of a scheme has a comma in its label: "r-i, delta 0.5"."""
    has_variants = any("," in label for label in study.scheme_labels)
    figures = ["grid_sensitivity"] if has_variants else ["grid_overview"]
    if len(study.policies) > 1:
        figures.append("grid_policies")
    return figures


def _self_scheduling_figures(study: SelfSchedulingStudy) -> list[str]:
    """What has nothing to compare is not drawn."""
    estimates = {name for sweep in study.sweeps for name in sweep.estimates}
    figures = ["improvement_bounded_slowdown", "improvement_wait_time", "offered_loads", "centre_table"]
    if len(estimates - {"retrained"}) > 1:
        figures.append("prediction_worth")
    if len({sweep.predictions for sweep in study.sweeps}) > 1:
        figures.append("plan_and_exact")
    if "retrained" in estimates:
        figures.append("retraining_effect")
    return figures


def _arena_figures(study: ArenaStudy) -> list[str]:
    """What was not varied is not drawn."""
    figures = ["arena_ranking", "arena_cost"]
    if len(study.loads) > 1:
        figures.append("arena_loads")
    if len(study.estimate_errors) > 1:
        figures.append("arena_estimates")
    return figures


def _calendar_figures(study: CalendarStudy) -> list[str]:
    """What has nothing to compare is not drawn."""
    schedulers = study.schedulers
    figures = ["calendar_delays"] if len(study.cases) <= _MOST_CASES else []
    if len({each.slots for each in schedulers if each.slots}) > 1:
        figures.append("calendar_cost")
    if len({each.share for each in schedulers}) > 1:
        figures.append("calendar_reservations")
    if len({each.period for each in schedulers}) > 1:
        figures.append("calendar_staleness")
    if len({each.threshold for each in schedulers}) > 1 or len({each.low_water for each in schedulers}) > 1:
        figures.append("calendar_options")
    return figures


def case_figures(study: CalendarStudy) -> list[tuple[str, str]]:
    """Figures of single cases, each with the name of the case; none where there are many cases."""
    if len(study.cases) > _MOST_CASES:
        return []
    named = [
        (case.name, ["calendar_classes"] if len(case.cluster_names) == 1 else _CLUSTER_FIGURES)
        for case in study.cases
    ]
    return [(figure, case) for case, figures in named for figure in figures]


_MOST_CASES = 6
"""Cases that one figure can show with all their schedulers."""

_CLUSTER_FIGURES = ["calendar_clusters", "calendar_trade"]


def _dynamic_figures(study: DynamicGridStudy) -> list[str]:
    """What has nothing to show is not drawn."""
    factors = {sweep.factor for sweep in study.sweeps}
    figures = ["dynamic_map", "dynamic_sites"]
    if "without" in factors:
        figures.append("dynamic_joining")
    if "overhead" in factors:
        figures.append("dynamic_overhead")
    if factors & {"mean_stay", "lease", "mean_absence"}:
        figures.append("dynamic_churn")
    if factors - {"without", "overhead", "mean_stay", "lease", "mean_absence"}:
        figures += ["dynamic_sweeps", "dynamic_variants"]
    if study.departure is not None:
        figures.append("dynamic_departure")
    return figures


def _multicluster_figures(study: MulticlusterStudy) -> list[str]:
    """Curves against the axis; rows of points where there is none; schemes where a point has variants."""
    figures = ["multicluster_curves", "multicluster_advantage", "multicluster_queues"]
    if study.axis == "none":
        figures = ["multicluster_points"] if len(study.points) > 1 else []
    if any(set(label) & set(",+") for point in study.points for label in study.schemes_at(point.name)):
        figures.append("multicluster_schemes")
    return figures


def scenario_figures(study: GridStudy) -> list[str]:
    """Figures of each scenario of a study that has few enough schemes to show them machine by machine."""
    if any("," in label for label in study.scheme_labels):
        return []
    moving = any(scheme_of(scheme).scheme != "local" for scheme in study.schemes)
    return ["grid_waits", "grid_utilisation", *(["grid_flows"] if moving else [])]


def _local_figures(study: LocalStudy) -> list[str]:
    """Figures of local policies: small workloads have no statistics, only logs have recorded waits."""
    if all(_is_small(workload) for workload in study.workloads):
        return ["policies_means"]
    figures = ["policies_means", "policies_differences", "policies_distribution", "policies_classes"]
    if any(workload.is_log for workload in study.workloads):
        figures.append("recorded_waits")
    return figures


WORKLOAD_FIGURES: tuple[str, ...] = ("load", "workload")
"""Figures that are drawn for each workload that is not small."""


def large_workloads(study: LocalStudy) -> list[str]:
    """Names of the workloads that are shown by statistics, not job by job."""
    return [workload.name for workload in study.workloads if not _is_small(workload)]


def gantt_runs(study: LocalStudy) -> list[Run]:
    """Runs whose schedules are small enough to be drawn job by job."""
    large = large_workloads(study)
    return [run for run in expand(study) if run.workload not in large]


def _is_small(workload: WorkloadConfig) -> bool:
    return _known_size(workload) <= SMALL


def _known_size(workload: WorkloadConfig) -> float:
    """Jobs of a workload as far as the configuration says."""
    if workload.synthetic is not None and workload.synthetic.jobs is not None:
        return workload.synthetic.jobs
    if workload.jobs is not None:
        return len(workload.jobs)
    if workload.window is not None and workload.window.jobs is not None:
        return workload.window.jobs[1]
    return float("inf")


def _model_figures(study: ModelStudy) -> list[str]:
    """All of them, whatever the study says."""
    return ["model_shares", "model_quantiles", "size_spread"]


_FIGURES: dict[type[Study], Callable[[Any], list[str]]] = {
    LocalStudy: _local_figures,
    GridStudy: _grid_figures,
    ModelStudy: _model_figures,
    SelfSchedulingStudy: _self_scheduling_figures,
    CalendarStudy: _calendar_figures,
    MulticlusterStudy: _multicluster_figures,
    DynamicGridStudy: _dynamic_figures,
    ArenaStudy: _arena_figures,
}
"""Figures of the whole study, by its kind."""


def _figures_of_parts(study: Study) -> list[str]:
    """Figures of the workloads, scenarios, cases or examples of a study."""
    if isinstance(study, GridStudy):
        return [f"{kind}-{part.name}" for kind in scenario_figures(study) for part in study.scenarios]
    if isinstance(study, LocalStudy):
        names = [f"{kind}-{name}" for kind in WORKLOAD_FIGURES for name in large_workloads(study)]
        return names + [f"gantt-{run.identifier}" for run in gantt_runs(study)]
    if isinstance(study, CalendarStudy):
        return [f"{figure}-{case}" for figure, case in case_figures(study)]
    if isinstance(study, SelfSchedulingStudy) and study.evaluate:
        return list(PREDICTION_FIGURES)
    if isinstance(study, MulticlusterStudy) and study.worked_example:
        return list(EXAMPLE_FIGURES)
    return []


_TABLES: dict[type[Study], tuple[str, ...]] = {
    ModelStudy: ("table_four",),
    SelfSchedulingStudy: ("means", "table_two"),
    ArenaStudy: ("means", "comparisons"),
    CalendarStudy: ("means", "clusters"),
}
"""Tables that a study ends with, by its kind; of other kinds only the means."""


def study_results(study: Study, results: str) -> list[str]:
    """Files that a study ends with."""
    folder = f"{results}/{study.name}"
    figures = [*study_figures(study), *_figures_of_parts(study)]
    tables = _TABLES.get(type(study), ("means",))
    return [
        f"{folder}/study.nc",
        *(f"{folder}/{name}.csv" for name in tables),
        *(f"{folder}/figures/{name}.svg" for name in figures),
    ]


def figure_showing(study: Study, variable: str, labels: Collection[str]) -> str | None:
    """Figure of a study that shows a variable, the one of a labelled part where there is one.

    Parameters
    ----------
    study : Study
        The study.
    variable : str
        Variable of its dataset.
    labels : collection of str
        What of it is looked for: names of scenarios, cases, schemes...

    Returns
    -------
    str or None
        Name of the figure's files without ending; None where only the dataset and its tables have numbers.
    """
    shown = [name for name in _figures_of_parts(study) if name.partition("-")[2] in labels]
    shown += [*study_figures(study), *_figures_of_parts(study)]
    return next((name for name in shown if variable in _shown_by(name.partition("-")[0])), None)


def _shown_by(kind: str) -> list[str]:
    """Variables that a figure of this kind shows."""
    return cast(list[str], _captions()[kind].get("shows", []))


def caption(kind: str) -> dict[str, str]:
    """Title and text of the caption of a figure or table."""
    entry = _captions()[kind]
    return {"title": str(entry["title"]), "text": str(entry["text"])}


@cache
def _captions() -> dict[str, dict[str, str | list[str]]]:
    text = resource("reports", "captions.yaml").read_text(encoding="utf-8")
    return cast(dict[str, dict[str, str | list[str]]], yaml.safe_load(text))

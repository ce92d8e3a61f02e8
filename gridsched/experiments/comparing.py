"""Studies that compare schedulers: every scheduler in every scenario, replicated, measured in one way.

Kinds of study that simulate schedulers derive from `ComparisonStudy`, which makes tasks, the table of
measures and the usual figures; a kind adds keys of its own, and figures of what its system alone measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import labelled
from gridsched.experiments.inputs import event_files, expected_jobs, plain, prepared_grid
from gridsched.experiments.machines import machines
from gridsched.experiments.measuring import BLOCKS, Measuring, measured
from gridsched.experiments.parts import MetricsConfig, WorkloadConfig, label_of
from gridsched.experiments.prepare import derived_seed, workload_facts
from gridsched.experiments.schedulers import (
    AnyScheduler,
    Written,
    policy_made,
    scheduler_made,
)
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import Replicates, SchedulerStudy, function_files
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.metrics import jobs as metrics
from gridsched.metrics.grid import offered_loads
from gridsched.platform import Platform
from gridsched.simulation import simulate
from gridsched.verification import verify
from gridsched.workloads import Workload

SMALL = 40
"""Most jobs of a scenario whose schedules are drawn as Gantt charts."""

_HERE = "gridsched.experiments.comparing"

TABLES = (StudyTable("measures", "gridsched.experiments.collection:measures_table", "measures"),)
"""Tables of every study that compares schedulers."""


@dataclass(frozen=True)
class ComparedRun:
    """A scheduler in a scenario under some estimates, with all replicates.

    Parameters
    ----------
    scenario : object
        The scenario of the study.
    policy, scheduler : str or SchedulerConfig
        Local policy of clusters that a scheduler leaves open, and the scheduler.
    estimates : str
        Runtime estimates.
    load : float
        Load relative to that of the workloads.
    label : str
        Name of the scenario under this policy and load.
    """

    scenario: Any
    policy: Written | None
    scheduler: Written
    estimates: str
    load: float
    label: str


class ComparisonStudy(SchedulerStudy):
    """What every study says that compares schedulers on simulated workloads."""

    replicates: Replicates = 10
    """How often synthetic workloads are drawn. A log is replayed once, in blocks of consecutive jobs,
    unless its scenario has `resampling` or `shaking`, which say how many replicates there are."""
    metrics: MetricsConfig = MetricsConfig()
    """How runs are measured."""
    schedules: Literal["first", "none"] = "first"
    """Whether the schedule of the first replicate of each run is kept, job by job."""

    shows_series: ClassVar[bool] = False
    """Whether time series of queues and utilisation are kept."""

    # --- runs -----------------------------------------------------------------------------------------

    def draws(self, scenario: Any) -> int:
        """How many replicates a scenario has."""
        if scenario.variation is not None:
            return int(scenario.variation.replicates)
        return self.replicates if any(each.synthetic is not None for each in scenario.workloads) else 1

    def replicates_are(self, scenario: Any) -> str:
        """What the replicates of a scenario are."""
        if scenario.variation is not None:
            return "resampled logs" if scenario.resampling is not None else "shaken logs"
        if any(each.synthetic is not None for each in scenario.workloads):
            return "draws"
        return "blocks" if any(each.is_log for each in scenario.workloads) else "the workload itself"

    @property
    def local_policies(self) -> Sequence[Written | None]:
        """Local policies of clusters; none where each cluster says its own."""
        return getattr(self, "policies", (None,))

    @property
    def all_loads(self) -> Sequence[float]:
        """Loads relative to those of the workloads."""
        return getattr(self, "loads", (1.0,))

    @property
    def runs(self) -> list[ComparedRun]:
        """Every run of the study."""
        return list(self._runs())

    def _runs(self) -> Iterator[ComparedRun]:
        for scenario, policy, load in product(self.scenarios, self.local_policies, self.all_loads):
            label = self.scenario_label(scenario.name, policy, load)
            for estimates, name in product(self.estimates_in(scenario), self.labels_in(scenario)):
                yield ComparedRun(scenario, policy, self.scheduler(name), estimates, load, label)

    def scenario_label(self, name: str, policy: Written | None, load: float) -> str:
        """Name of a scenario under a local policy and a load.

        Which stand in it where several are compared.
        """
        parts = [name]
        if policy is not None and len(self.local_policies) > 1:
            parts.append(label_of(policy))
        if load != 1.0:
            parts.append(f"load {load:g}")
        return ", ".join(parts)

    @property
    def scenario_labels(self) -> list[str]:
        """Labels of the scenarios in the dataset."""
        return list(dict.fromkeys(run.label for run in self._runs()))

    @property
    def all_estimates(self) -> list[str]:
        """Kinds of estimates of all scenarios."""
        return list(dict.fromkeys(run.estimates for run in self._runs()))

    def measuring(self, scenario: Any) -> Measuring:
        """How the runs of a scenario are measured."""
        own, classes = self.metrics, self.metrics.classes
        reacting = [each.feedback for each in scenario.workloads if each.feedback is not None]
        return Measuring(
            warm_up=own.warm_up,
            cool_down=own.cool_down,
            blocks=BLOCKS if self.replicates_are(scenario) == "blocks" else 0,
            bins=own.bins if self.shows_series else 0,
            long_run_time=classes.long,
            wide_processors=classes.wide,
            think_time=reacting[0].think_time if reacting else 0,
            sessions=reacting[0].sessions if reacting else "clock",
        )

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        grids = {
            each.name: prepared_grid(self.name, each, range(self.draws(each)), seed)
            for each in self.scenarios
        }
        runs = {run: self._task(run, grids[run.scenario.name], seed) for run in self._runs()}
        tasks = [*runs.values(), *self.further_tasks(grids, seed)]
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function=f"{_HERE}:collect",
            arguments={
                "runs": tasks,
                "labels": {
                    "scenario": self.scenario_labels,
                    "scheduler": self.dataset_labels,
                    "estimates": self.all_estimates,
                },
                "grids": list(grids.values()),
                "attributes": self.facts(seed),
            },
            memory=3000,
        )
        return Experiment(
            datasets=[study],
            figures=self._figures(study, runs, grids),
            tables=list(TABLES),
        )

    def _figures(
        self, study: Task, runs: Mapping[ComparedRun, Task], grids: Mapping[str, Task]
    ) -> list[Figure]:
        """All figures; of studies that can be followed job by job the schedules first."""
        drawn, charts = self.drawn(study), self.gantt_charts(runs)
        first, second = (charts, drawn) if self.small else (drawn, charts)
        return [*first, *second, *self.further_figures(study, grids)]

    @property
    def dataset_labels(self) -> list[str]:
        """Labels of the schedulers in the dataset."""
        return self.labels

    def further_tasks(self, grids: Mapping[str, Task], seed: int) -> list[Task]:
        """Tasks that measure something besides the runs of schedulers."""
        return []

    def further_figures(self, study: Task, grids: Mapping[str, Task]) -> list[Figure]:
        """Figures that are not of the table of measures."""
        return []

    def _task(self, run: ComparedRun, grid: Task, seed: int) -> Task:
        """Simulation of all replicates of a run; what it does not depend on is as by default."""
        scenario = run.scenario
        draws, jobs = self.draws(scenario), sum(map(expected_jobs, scenario.workloads))
        labels = {"scenario": run.label, "scheduler": label_of(run.scheduler), "estimates": run.estimates}
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{', '.join(labels.values())} run times",
            function=f"{_HERE}:run_scheduler",
            arguments={
                "labels": labels,
                "grid": grid,
                "clusters": [plain(each) for each in scenario.clusters],
                "scheduler": written_out(run.scheduler),
                "policy": None if run.policy is None else written_out(run.policy),
                "conventions": self.conventions_of(run),
                "how": _plain_measuring(self.measuring(scenario)),
                "parameters": {
                    **({"policy": label_of(run.policy)} if run.policy is not None else {}),
                    **({"load": run.load} if len(self.all_loads) > 1 else {}),
                    **({"baseline": self._baseline(run)} if self._baseline(run) else {}),
                },
                "replicates_are": self.replicates_are(scenario),
                "seed": seed,
            },
            also={
                "files": [
                    *function_files(*(each for each in (run.scheduler, run.policy) if each)),
                    *event_files(scenario.clusters),
                ]
            },
            labels=labels,
            outputs=("schedule",) if self.schedules == "first" else (),
            cost=0.2 + draws * _slowness(run) * jobs / 200_000,
            memory=3000,
        )

    def _baseline(self, run: ComparedRun) -> str:
        """Label of the scenario that this one is compared with; itself where it is a baseline."""
        own = getattr(run.scenario, "baseline", None)
        named = {getattr(each, "baseline", None) for each in self.scenarios}
        name = own or (run.scenario.name if run.scenario.name in named else "")
        return self.scenario_label(name, run.policy, run.load) if name else ""

    def conventions_of(self, run: ComparedRun) -> dict[str, Any]:
        """Keyword arguments of `gridsched.simulate` that say how a run is simulated."""
        overrun = "doubling" if "overrun" in scheduler_made(run.scheduler).cannot else self.overrun
        given = {
            "align": getattr(run.scenario, "align", "start"),
            "overrun": overrun,
            "kill": getattr(self, "kill", False),
            "passes": getattr(self, "passes", "instant"),
            "load": run.load,
            "estimates": run.estimates,
        }
        return {key: value for key, value in given.items() if value != _DEFAULTS.get(key)}

    # --- figures --------------------------------------------------------------------------------------

    @property
    def small(self) -> bool:
        """Whether every scenario is small enough to be followed job by job."""
        return all(sum(map(expected_jobs, each.workloads)) <= SMALL for each in self.scenarios)

    @property
    def specifications(self) -> list[Specification]:
        """Figures of the whole study, the one that says most first."""
        if self.small:
            return [
                Specification(
                    name="means",
                    form="ranking",
                    title="Waits and slowdowns of this workload",
                    measures=("wait_time_mean", "bounded_slowdown_mean"),
                    reference="",
                )
            ]
        found = [self.main_specification, *self.effects, *self.responses]
        return [*found, *self.details]

    @property
    def main_specification(self) -> Specification:
        """The figure that ranks the schedulers."""
        return Specification(
            name="ranking",
            form="ranking",
            title="Schedulers compared",
            measures=("response_time_mean",),
        )

    @property
    def effects(self) -> list[Specification]:
        """Scenarios against their baselines, where some have one."""
        if not any(getattr(each, "baseline", None) for each in self.scenarios):
            return []
        return [
            Specification(
                name="effects",
                form="ranking",
                title="Effect of other conditions",
                measures=("response_time_mean",),
                hue="scenario",
                facets="estimates",
                lanes="scheduler",
                reference="scenario",
                caption="Each row is a scenario, relative to its baseline under the same scheduler.",
            )
        ]

    @property
    def responses(self) -> list[Specification]:
        """Measures over the parameters that the study varies."""
        found = []
        if len(self.all_loads) > 1:
            found.append(
                Specification(
                    name="loads",
                    form="response",
                    title="Response to the load",
                    measures=("response_time_mean",),
                    x="load",
                    facets="",
                )
            )
        return [*found, *(self._swept(key) for key in self.swept)]

    @property
    def swept(self) -> list[str]:
        """Parameters of which some scheduler has several numeric values."""
        values: dict[str, set[float]] = {}
        for each in self.schedulers:
            for key, value in given_parameters(each).items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    values.setdefault(key, set()).add(value)
        return [key for key, found in values.items() if len(found) > 2]

    def _swept(self, key: str) -> Specification:
        return Specification(
            name=f"response-{key}",
            form="response",
            title=f"Response to {key.replace('_', ' ')}",
            measures=("response_time_mean",),
            x=key,
            hue="system",
        )

    @property
    def details(self) -> list[Specification]:
        """Further figures: other measures, distributions, job classes."""
        found = [
            Specification(
                name="means",
                form="ranking",
                title="Mean wait time and bounded slowdown",
                measures=("wait_time_mean", "bounded_slowdown_mean"),
                reference="",
            ),
            Specification(
                name="distribution",
                form="distribution",
                title="Distribution of wait times",
                measures=("wait_time_quantile",),
                where={"estimates": self.all_estimates[0]},
                reference="",
            ),
            Specification(
                name="classes",
                form="ranking",
                title="Bounded slowdown by job class",
                measures=("bounded_slowdown_mean",),
                lanes="group",
                where={"estimates": self.all_estimates[0], "group": list(metrics.JOB_CLASSES[1:])},
                reference="scheduler",
            ),
        ]
        grids = [scenario for scenario in self.scenarios if len(scenario.machines) > 1]
        clusters = dict.fromkeys(each.name for scenario in grids for each in scenario.machines)
        if clusters:
            found.append(
                Specification(
                    name="users",
                    form="ranking",
                    title="Effect on the users of each cluster",
                    measures=("response_time_mean",),
                    lanes="group",
                    where={"group": [f"users of {name}" for name in clusters]},
                )
            )
            found.append(
                Specification(
                    name="utilisation",
                    form="ranking",
                    title="Utilisation by cluster",
                    measures=("utilisation",),
                    lanes="group",
                    where={"group": [f"cluster {name}" for name in clusters]},
                    reference="",
                )
            )
        return found

    def gantt_charts(self, runs: Mapping[ComparedRun, Task]) -> list[Figure]:
        """Schedules of scenarios that are small enough to be drawn job by job."""
        found = []
        for number, (run, task) in enumerate(runs.items(), start=1):
            if sum(map(expected_jobs, run.scenario.workloads)) > SMALL or not task.outputs:
                continue
            title = ", ".join(map(str, task.labels.values()))
            specification = Specification(
                name=f"gantt-{run.scenario.name}-{number}",
                form="schedule",
                title=f"Schedule: {title} run times",
                own="gridsched.figures.gantt:gantt_of_run",
                finding="gridsched.presentation.findings:schedule",
            )
            found.append(
                Figure(
                    name=specification.name,
                    dataset=task,
                    output="schedule",
                    specification=specification.values(),
                    part="Schedules",
                    title=title,
                )
            )
        return found

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        own = self.metrics
        trimmed = f"The first {own.warm_up:.0%} and the last {own.cool_down:.0%} of the jobs enter no mean."
        return [
            "Every schedule is verified: no processor twice, no start before submission, every job once.",
            _PASSES[getattr(self, "passes", "instant")],
            "Jobs end at their requested time."
            if getattr(self, "kill", False)
            else "Jobs that outrun their estimate keep running; the estimate "
            + ("doubles." if self.overrun == "doubling" else "grows by fixed increments."),
            *([trimmed] if own.warm_up or own.cool_down else []),
            f"Long jobs run more than {own.classes.long} s, wide jobs use more than "
            f"{own.classes.wide} processors; bounded slowdown has a threshold of 10 s.",
            *(f"{name}: {kind}." for name, kind in _kinds(self).items()),
        ]


def _kinds(study: ComparisonStudy) -> dict[str, str]:
    """What replicates of scenarios are, those that are the same together."""
    found: dict[str, list[str]] = {}
    for each in study.scenarios:
        kind = study.replicates_are(each)
        number = BLOCKS if kind == "blocks" else study.draws(each)
        text = {
            "draws": f"{number} independent draws of the workload",
            "the workload itself": "the workload as it is",
            "blocks": f"{number} blocks of the log, joined where they depend on each other",
            "resampled logs": f"{number} logs resampled by users",
            "shaken logs": f"{number} logs with shaken submit times",
        }[kind]
        found.setdefault(text, []).append(each.name)
    return {", ".join(names): text for text, names in found.items()}


_PASSES: dict[str, str] = {
    "instant": "A scheduling pass follows all events of an instant.",
    "event": "A scheduling pass follows each single event.",
    "arrivals-first": "A scheduling pass follows each single event; at one instant submissions come first.",
}

_DEFAULTS = {"align": "start", "overrun": "doubling", "kill": False, "passes": "instant", "load": 1.0}


def _slowness(run: ComparedRun) -> float:
    """How much longer than a plain local policy a run takes."""
    made = scheduler_made(run.scheduler)
    asks = any(each.asks_for for each in run.scenario.machines)
    moving = made.system not in ("local", "ideal")
    return (8 if moving else 1) * (5 if "conservative" in str(run.scheduler) else 1) * (5 if asks else 1)


def written_out(scheduler: Written) -> Any:
    """A scheduler as plain values, for the arguments of a task."""
    return scheduler if isinstance(scheduler, str) else scheduler.model_dump(mode="json")


def _plain_measuring(how: Measuring) -> dict[str, Any]:
    """What differs from the default, as plain values."""
    return {key: value for key, value in vars(how).items() if value != getattr(Measuring(), key)}


def given_parameters(written: Written) -> dict[str, Any]:
    """Parameters of a scheduler as a study file gives them: numbers and texts."""
    if isinstance(written, str):
        return {}
    keys = written.model_fields_set - {"name", "scheduler"}
    values = {key: getattr(written, key) for key in type(written).model_fields if key in keys}
    return {key: value for key, value in values.items() if isinstance(value, int | float | str)}


# --- tasks ----------------------------------------------------------------------------------------


def run_scheduler(
    labels: Mapping[str, str],
    grid: str | Path,
    clusters: Sequence[WorkloadConfig],
    scheduler: AnyScheduler,
    policy: AnyScheduler | None,
    conventions: Mapping[str, Any],
    how: Mapping[str, Any],
    parameters: Mapping[str, Any],
    replicates_are: str,
    seed: int,
    target: str | Path,
    *,
    schedule: str | Path | None = None,
) -> None:
    """Simulate, verify and measure all replicates of one scheduler in one scenario.

    Parameters
    ----------
    labels : mapping
        Scenario, scheduler and estimates.
    grid : path
        Result of `gridsched.experiments.prepare.prepare_grids` for all replicates.
    clusters : sequence of WorkloadConfig
        What the study says of each cluster: its nodes and failures.
    scheduler, policy : str or SchedulerConfig
        The scheduler, and the local policy of clusters where the study gives one.
    conventions : mapping
        Keyword arguments of `gridsched.simulate`, and `load`.
    how : mapping
        Parameters of `Measuring`.
    parameters : mapping
        Of the scenario.
    replicates_are : str
        What the replicates are.
    seed : int
        Seed of the whole configuration; what schedulers draw depends on the scenario and the replicate too,
        but not on the scheduler.
    target, schedule : path
        The measures; the run of the first replicate.
    """
    made = scheduler_made(scheduler)
    options = {**_DEFAULTS, "estimates": "requested", **conventions}
    load = options.pop("load")
    parts: list[xr.Dataset] = []
    for replicate, pairs in results.grids_from_dataset(files.shared(grid)).items():
        loaded = [(under_load(workload, load), cluster) for workload, cluster in pairs]
        platform = Platform(machines(loaded, clusters, options["align"], seed, replicate))
        jobs = [workload for workload, _ in loaded]
        platform = platform if policy is None else platform.with_policy(policy_made(policy))
        why = made.incompatibility(platform, workload=jobs[0] if len(jobs) == 1 else None)
        if why:
            parts = [xr.Dataset(attrs={"unfit": why})]
            break
        run = simulate(
            jobs if len(jobs) > 1 else jobs[0],
            platform,
            made,
            seed=derived_seed(seed, f"{labels['scenario']}\n{replicate}") % 2**31,
            **options,
        )
        verify(run)
        own = measured(run, Measuring(**how))
        if len(jobs) > 1:
            offered = offered_loads(jobs, platform.clusters, align=options["align"])
            own["offered_load"] = (
                (),
                float((offered["offered_load"] * _capacity(platform)).sum() / _capacity(platform).sum()),
            )
        parts.append(own)
        if schedule is not None and replicate == 0:
            run.attrs.update(verified=1, **labels)
            files.write(run, schedule)
    if schedule is not None and not Path(schedule).exists():
        files.write(xr.Dataset(attrs={"unfit": parts[0].attrs.get("unfit", "")}), schedule)
    whole = (
        parts[0]
        if len(parts) == 1
        else xr.concat(
            parts, dim=pd.RangeIndex(len(parts), name="replicate"), join="outer", combine_attrs="drop"
        )
    )
    unfit = str(parts[0].attrs.get("unfit", ""))
    done = labelled(
        whole,
        scenario=labels["scenario"],
        scheduler=labels["scheduler"],
        estimates=labels["estimates"],
        scenario_parameters=parameters,
        scheduler_parameters={"system": made.system, **given_parameters(scheduler)},
        replicates_are=replicates_are,
    )
    done.attrs["unfit"] = unfit
    files.write(done, target)


def _capacity(platform: Platform) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([each.processors * each.speed for each in platform.clusters], np.float64)


def under_load(workload: Workload, load: float) -> Workload:
    """Jobs whose times between submissions are divided by a load."""
    if load == 1.0 or not len(workload):
        return workload
    first = int(workload.submit_time.min())
    submit = first + np.round((workload.submit_time - first) / load).astype(np.int64)
    return replace(workload, submit_time=submit)


def collect(
    runs: Sequence[str | Path],
    labels: Mapping[str, Sequence[str]],
    grids: Sequence[str | Path],
    attributes: Mapping[str, Any],
    target: str | Path,
) -> None:
    """Put the measures of all runs, and what is known of the workloads, into the dataset of a study.

    Parameters
    ----------
    runs : sequence of paths
        Results of `run_scheduler`.
    labels : mapping
        Labels of scenarios, schedulers and estimates, in the order of the study.
    grids : sequence of paths
        Results of `gridsched.experiments.prepare.prepare_grids`.
    attributes : mapping
        Of the dataset.
    target : path
        The dataset.
    """
    from gridsched.experiments.collection import table_of_runs

    measured_runs = [results.read(path) for path in runs]
    able = [run for run in measured_runs if run.data_vars]
    whole = table_of_runs(able, labels)
    facts = workload_facts([str(each) for each in dict.fromkeys(_scenario_of(path) for path in grids)], grids)
    whole = whole.merge(facts.rename(scenario="prepared"))
    reasons = {
        f"{run['scenario'].item()}, {run['scheduler'].item()}": str(run.attrs["unfit"])
        for run in measured_runs
        if run.attrs.get("unfit")
    }
    whole.attrs = {**attributes, "verified": 1, **results.provenance()}
    if reasons:
        whole.attrs["cannot"] = "; ".join(f"{who}: {why}" for who, why in reasons.items())
    files.write(whole, target)


def _scenario_of(path: str | Path) -> str:
    return str(results.read(path).attrs["scenario"])

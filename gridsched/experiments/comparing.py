"""Studies that compare schedulers: every scheduler in every scenario, replicated, measured in one way.

Kinds of study that simulate schedulers derive from `ComparisonStudy`, which makes tasks, the table of
measures and the usual figures; a kind adds keys of its own, and figures of what its system alone measures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import labelled, replicated
from gridsched.experiments.inputs import (
    event_files,
    expected_jobs,
    failure_seed,
    plain,
    prepared_grid,
)
from gridsched.experiments.machines import machines
from gridsched.experiments.measuring import BLOCKS, Measuring, measured
from gridsched.experiments.parts import ClusterConfig, MetricsConfig, WorkloadConfig, label_of
from gridsched.experiments.prepare import derived_seed, scheduler_seed
from gridsched.experiments.schedulers import (
    AnyScheduler,
    Written,
    policy_made,
    scheduler_made,
)
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import ReplicatedStudy, function_files
from gridsched.experiments.tasks import Experiment, Figure, Task, function_at
from gridsched.metrics import jobs as metrics
from gridsched.metrics.grid import offered_loads
from gridsched.platform import Cluster, Platform
from gridsched.simulation import simulate
from gridsched.submission import AlignName
from gridsched.traces import merge_workloads
from gridsched.verification import verify
from gridsched.warming import usable_cores
from gridsched.workloads import Workload
from gridsched.workloads.estimates import with_prediction_errors

WITHOUT = "without"
"""What names coordinates of what is left of a label without a parameter: scenario_without_load."""

SMALL = 40
"""Most jobs of a scenario whose schedules are drawn as Gantt charts."""

_HERE = "gridsched.experiments.comparing"


@dataclass(frozen=True, eq=False)
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


class ComparisonStudy(ReplicatedStudy):
    """What every study says that compares schedulers on simulated workloads."""

    metrics: MetricsConfig = MetricsConfig()
    """How runs are measured."""
    schedules: Literal["first", "none"] = "first"
    """Whether the schedule of the first replicate of each run is kept, job by job."""

    shows_series: ClassVar[bool] = False
    """Whether time series of queues and utilisation are kept."""

    # --- runs -----------------------------------------------------------------------------------------

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
        return [
            ComparedRun(
                scenario,
                policy,
                self.scheduler(name),
                estimates,
                load,
                self.scenario_label(scenario.name, policy, load),
            )
            for scenario, policy, load in product(self.scenarios, self.local_policies, self.all_loads)
            for estimates, name in product(self.estimates_in(scenario), self.labels_in(scenario))
        ]

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
    def usual(self) -> dict[str, Any]:
        """Labels that figures of details show: workloads as they are, the first kind of estimates of each."""
        usual = [run.label for run in self.runs if run.load == 1.0]
        where: dict[str, Any] = {"scenario": list(dict.fromkeys(usual)) or self.scenario_labels}
        several = any(len(self.estimates_in(each)) > 1 for each in self.scenarios)
        return {**where, **({"estimates": self.first_estimates} if several else {})}

    @property
    def scenario_labels(self) -> list[str]:
        """Labels of the scenarios in the dataset."""
        return list(dict.fromkeys(run.label for run in self.runs))

    @property
    def all_estimates(self) -> list[str]:
        """Kinds of estimates of all scenarios."""
        return list(dict.fromkeys(run.estimates for run in self.runs))

    @property
    def first_estimates(self) -> str | dict[str, str]:
        """First kind of estimates of the scenarios; by their labels where they begin with different ones."""
        first = {run.label: self.estimates_in(run.scenario)[0] for run in self.runs}
        return first if len(set(first.values())) > 1 else self.all_estimates[0]

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
            think_time=reacting[0].think_time if reacting else None,
            sessions=reacting[0].sessions if reacting else "clock",
        )

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        grids = {each.name: self.prepared(each, seed) for each in self.scenarios}
        runs = {run: self._task(run, grids[run.scenario.name], seed) for run in self.runs}
        tasks = [*runs.values(), *self.further_tasks(grids, seed)]
        charts = self.gantt_charts(runs)
        return self.collected(
            {
                "runs": tasks,
                "labels": {
                    "scenario": self.scenario_labels,
                    "scheduler": self.dataset_labels,
                    "estimates": self.all_estimates,
                },
                "coordinates": self.coordinates,
                "grids": list(grids.values()),
                "attributes": self.facts(seed),
            },
            memory=3000,
            before=charts if self.small else (),
            after=[*(() if self.small else charts), *self.further_figures(grids)],
        )

    @property
    def dataset_labels(self) -> list[str]:
        """Labels of the schedulers in the dataset."""
        return self.labels

    def prepared(self, scenario: Any, seed: int) -> Task:
        """Task that prepares the clusters of a scenario with their workloads, for all replicates."""
        return prepared_grid(self.name, scenario, range(self.draws(scenario)), seed)

    def extension_of(self, run: ComparedRun, seed: int) -> tuple[str, dict[str, Any]]:
        """Place of a class like `Extension` for a run, and its parameters; none by default."""
        return "", {}

    def parameters_of(self, run: ComparedRun) -> dict[str, Any]:
        """Numbers and texts by which the scheduler of a run differs from others, by name."""
        return given_parameters(run.scheduler)

    def further_tasks(self, grids: Mapping[str, Task], seed: int) -> list[Task]:
        """Tasks that measure something besides the runs of schedulers."""
        return []

    def further_figures(self, grids: Mapping[str, Task]) -> list[Figure]:
        """Figures that are not of the table of measures."""
        return []

    def _task(self, run: ComparedRun, grid: Task, seed: int) -> Task:
        """Simulation of all replicates of a run; what it does not depend on is as by default."""
        scenario = run.scenario
        draws, jobs = self.draws(scenario), sum(map(expected_jobs, scenario.workloads))
        labels = {"scenario": run.label, "scheduler": label_of(run.scheduler), "estimates": run.estimates}
        extension, extended = self.extension_of(run, seed)
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{', '.join(labels.values())} run times",
            function=f"{_HERE}:run_scheduler",
            arguments={
                "labels": labels,
                "grid": grid,
                "clusters": [plain(each) for each in scenario.machines],
                "scheduler": written_out(run.scheduler),
                "policy": None if run.policy is None else written_out(run.policy),
                "conventions": self.conventions_of(run),
                "how": plain_measuring(self.measuring(scenario)),
                "parameters": {
                    **({"policy": label_of(run.policy)} if run.policy is not None else {}),
                    **({"load": run.load} if len(self.all_loads) > 1 else {}),
                    **({"baseline": self._baseline(run)} if self._baseline(run) else {}),
                },
                "scheduler_parameters": self.parameters_of(run),
                "replicates_are": self.replicates_are(scenario),
                "seed": self._seed_of(run, seed),
                **({"extension": extension, "extended": extended} if extension else {}),
            },
            also={
                "files": [
                    *function_files(*(each for each in (run.scheduler, run.policy) if each)),
                    *event_files(scenario.machines),
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
        if own or run.scenario.name in named:
            return self.scenario_label(own or run.scenario.name, run.policy, run.load)
        if len(self.local_policies) > 1:
            return self.scenario_label(run.scenario.name, self.local_policies[0], run.load)
        return ""

    def _seed_of(self, run: ComparedRun, seed: int) -> int:
        """The seed where something is drawn in a run; others do not depend on it."""
        errors = self.estimate_errors(run.scenario, run.estimates)
        random = any(each.placement == "random" for each in run.scenario.machines)
        # estimates are drawn for all schedulers alike
        if random or scheduler_made(run.scheduler).draws or (errors is not None and errors.deviation):
            return seed
        return failure_seed(run.scenario.machines, seed).get("seed", 0)

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
        errors = self.estimate_errors(run.scenario, run.estimates)
        if errors is not None:
            given |= {"estimates": "requested", "errors": errors.model_dump(exclude_none=True)}
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
        found = [self.main_specification, *self.effects, *self.responses, *self.effects_of_estimates]
        return [*found, *self.details]

    @property
    def main_specification(self) -> Specification:
        """The figure that ranks the schedulers."""
        return Specification(
            name="ranking",
            form="ranking",
            title="Schedulers compared",
            measures=("response_time_mean",),
            where=self.usual,
        )

    @property
    def effects(self) -> list[Specification]:
        """Scenarios against their baselines, where some have one."""
        changed = dict.fromkeys(run.label for run in self.runs if self._baseline(run) not in ("", run.label))
        if not changed:
            return []
        rows, lanes = (
            ("scheduler", "scenario") if len(self.labels) > len(changed) else ("scenario", "scheduler")
        )
        return [
            Specification(
                name="effects",
                form="ranking",
                title="Effect of other conditions",
                measures=("response_time_mean",),
                hue=rows,
                facets="estimates",
                lanes=lanes,
                reference="scenario",
                caption="Each scenario is relative to its baseline under the same scheduler, by the means "
                "over the jobs that started in each.",
                finding="gridsched.presentation.grids:effects",
            )
        ]

    @property
    def effects_of_estimates(self) -> list[Specification]:
        """Other estimates against the first kind, where a scenario has it and others."""
        kinds = {run.label: self.estimates_in(run.scenario) for run in self.runs}
        having = {label: own for label, own in kinds.items() if self.all_estimates[0] in own}
        if all(len(own) == 1 for own in having.values()):
            return []
        return [
            Specification(
                name="estimates",
                form="ranking",
                title="Effect of estimates",
                measures=("response_time_mean",),
                where={"scenario": [label for label in self.usual["scenario"] if label in having]},
                reference="estimates",
                caption=f"Relative to the estimates {self.all_estimates[0]!r} under the same scheduler.",
                finding="gridsched.presentation.grids:effects",
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
                    facets=f"scenario_{WITHOUT}_load",
                    where={key: value for key, value in self.usual.items() if key != "scenario"},
                )
            )
        return [*found, *(self._swept(key, lines) for key, lines in self.swept.items())]

    @property
    def swept(self) -> dict[str, dict[str, list[str]]]:
        """Parameters of which a scheduler has more than two values, see `lines_of`."""
        keys = dict.fromkeys(key for each in self.schedulers for key in given_parameters(each))
        found = {key: lines_of(self.schedulers, key) for key in keys}
        return {key: lines for key, lines in found.items() if any(len(each) > 2 for each in lines.values())}

    @property
    def coordinates(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Coordinates along scenarios and schedulers by which responses are drawn: values by label."""
        made: dict[str, dict[str, dict[str, Any]]] = {"scenario": {}, "scheduler": {}}
        if len(self.all_loads) > 1:
            made["scenario"][f"scenario_{WITHOUT}_load"] = {
                run.label: self.scenario_label(run.scenario.name, run.policy, 1.0) for run in self.runs
            }
        for key, lines in self.swept.items():
            names = {label: line for line, labels in lines.items() for label in labels}
            made["scheduler"][key] = {label: parameter_of(self.scheduler(label), key) for label in names}
            made["scheduler"][f"scheduler_{WITHOUT}_{key}"] = names
        return made

    def _swept(self, key: str, lines: Mapping[str, Sequence[str]]) -> Specification:
        return Specification(
            name=f"response-{key}",
            form="response",
            title=f"Response to {key.replace('_', ' ')}",
            measures=("response_time_mean",),
            x=key,
            hue=f"scheduler_{WITHOUT}_{key}",
            where={**self.usual, "scheduler": [label for labels in lines.values() for label in labels]},
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
                where={"estimates": self.first_estimates},
                reference="",
            ),
            Specification(
                name="classes",
                form="ranking",
                title="Bounded slowdown by job class",
                measures=("bounded_slowdown_mean",),
                lanes="group",
                where={"estimates": self.first_estimates, "group": list(metrics.JOB_CLASSES[1:])},
                reference="scheduler",
            ),
        ]
        return [*found, *self.by_cluster]

    @property
    def by_cluster(self) -> list[Specification]:
        """What users and clusters of grids have of it."""
        found = []
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
                    where={**self.usual, "group": [f"users of {name}" for name in clusters]},
                    finding="gridsched.presentation.grids:of_users",
                )
            )
            found.append(
                Specification(
                    name="utilisation",
                    form="ranking",
                    title="Utilisation by cluster",
                    measures=("utilisation",),
                    lanes="group",
                    where={**self.usual, "group": [f"cluster {name}" for name in clusters]},
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
        ends = {"first": own.warm_up, "last": own.cool_down}
        cut = " and the ".join(f"{end} {100 * share:.3g}%" for end, share in ends.items() if share)
        return [
            "Every schedule is verified: no processor twice, no start before submission, every job once.",
            _PASSES[getattr(self, "passes", "instant")],
            "Jobs end at their requested time."
            if getattr(self, "kill", False)
            else "Jobs that outrun their estimate keep running; the estimate "
            + ("doubles." if self.overrun == "doubling" else "grows by fixed increments."),
            *([f"The {cut} of the jobs enter no mean."] if cut else []),
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
            "blocks": f"up to {number} blocks of the log, joined where they depend on each other",
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

_DEFAULTS = {
    "align": "start",
    "overrun": "doubling",
    "kill": False,
    "passes": "instant",
    "load": 1.0,
    "errors": None,
}


def _slowness(run: ComparedRun) -> float:
    """How much longer than a plain local policy a run takes."""
    made = scheduler_made(run.scheduler)
    asks = any(each.asks_for for each in run.scenario.machines)
    moving = made.system not in ("local", "ideal")
    return (2 if moving else 1) * (5 if "conservative" in str(run.scheduler) else 1) * (5 if asks else 1)


def written_out(scheduler: Written) -> Any:
    """A scheduler as plain values, for the arguments of a task."""
    return scheduler if isinstance(scheduler, str) else scheduler.model_dump(mode="json")


def plain_measuring(how: Measuring) -> dict[str, Any]:
    """What differs from the default, as plain values."""
    return {key: value for key, value in vars(how).items() if value != getattr(Measuring(), key)}


def given_parameters(written: Written) -> dict[str, Any]:
    """Parameters of a scheduler as a study file gives them: numbers and texts."""
    if isinstance(written, str):
        return {}
    keys = written.model_fields_set - {"name", "scheduler"}
    values = {key: getattr(written, key) for key in type(written).model_fields if key in keys}
    return {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in values.items()
        if isinstance(value, int | float | str)
    }


def parameter_of(written: Written, key: str) -> float | None:
    """Value of a numeric parameter of a scheduler, as it is given or by default; none where it has none."""
    given = given_parameters(written)
    value = given[key] if key in given else getattr(scheduler_made(written), key, None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def lines_of(schedulers: Sequence[Written], key: str) -> dict[str, list[str]]:
    """Labels of schedulers that differ in nothing but a numeric parameter, by what their labels share."""
    found: dict[str, list[Written]] = {}
    for each in schedulers:
        if parameter_of(each, key) is not None:
            given = {"scheduler": each} if isinstance(each, str) else written_out(each)
            same = {name: value for name, value in given.items() if name not in ("name", key)}
            found.setdefault(json.dumps(same, sort_keys=True), []).append(each)
    lines = {}
    for several in found.values():
        labels = [label_of(each) for each in several]
        if len({parameter_of(each, key) for each in several}) > 1:
            shared = [
                re.sub(f"(?i){re.escape(f', {key} {given_parameters(each).get(key)}')}(?=,|$)", "", label)
                for label, each in zip(labels, several, strict=True)
            ]
            lines[min(shared, key=len)] = labels
    return lines


# --- tasks ----------------------------------------------------------------------------------------


class Extension:
    """What a kind of study does besides in each run; this one does nothing."""

    def loaded(
        self, pairs: Sequence[tuple[Workload, Cluster]], align: AlignName, replicate: int
    ) -> Sequence[tuple[Workload, Cluster]]:
        """Workloads and clusters of a replicate, changed."""
        return pairs

    def groups(self, run: xr.Dataset, replicate: int) -> dict[str, NDArray[np.bool_]]:
        """Further groups of jobs, as flags."""
        return {}

    def summaries(self, run: xr.Dataset) -> Sequence[xr.Dataset]:
        """Further measures of the run as a whole, which `collection.grouped` takes."""
        return ()


def run_scheduler(
    labels: Mapping[str, str],
    grid: str | Path,
    clusters: Sequence[WorkloadConfig | ClusterConfig],
    scheduler: AnyScheduler,
    policy: AnyScheduler | None,
    conventions: Mapping[str, Any],
    how: Mapping[str, Any],
    parameters: Mapping[str, Any],
    scheduler_parameters: Mapping[str, Any],
    replicates_are: str,
    seed: int,
    target: str | Path,
    *,
    extension: str = "",
    extended: Mapping[str, Any] | None = None,
    schedule: str | Path | None = None,
) -> None:
    """Simulate, verify and measure all replicates of one scheduler in one scenario.

    Parameters
    ----------
    labels : mapping
        Scenario, scheduler and estimates.
    grid : path
        Result of `gridsched.experiments.prepare.prepare_grids` for all replicates.
    clusters : sequence of WorkloadConfig or ClusterConfig
        What the study says of each cluster: its nodes and failures.
    scheduler, policy : str or SchedulerConfig
        The scheduler, and the local policy of clusters where the study gives one.
    conventions : mapping
        Keyword arguments of `gridsched.simulate`, and `load` and `errors`, see `under`.
    how : mapping
        Parameters of `Measuring`.
    parameters, scheduler_parameters : mapping
        Of the scenario and of the scheduler.
    replicates_are : str
        What the replicates are.
    seed : int
        Seed of the whole configuration; what schedulers draw depends on the scenario and the replicate too,
        but not on the scheduler.
    target, schedule : path
        The measures; the run of the first replicate.
    extension, extended : str, mapping
        Place of a class like `Extension`, and its parameters.
    """
    made = scheduler_made(scheduler)
    more: Extension = function_at(extension)(**(extended or {})) if extension else Extension()
    options = {**_DEFAULTS, "estimates": "requested", **conventions}
    load, errors = options.pop("load"), options.pop("errors") or {}
    log = Path(target).parents[2] / "logs" / Path(target).parent.parent.name / "external"

    def part(replicate: int, pairs: Sequence[tuple[Workload, Cluster]]) -> xr.Dataset:
        draws = [derived_seed(seed, f"estimates\n{replicate}\n{place}") for place in range(len(pairs))]
        loaded = [
            (under(workload, load, **errors, seed=draw), cluster)
            for draw, (workload, cluster) in zip(draws, pairs, strict=True)
        ]
        loaded = list(more.loaded(loaded, options["align"], replicate))
        platform = Platform(machines(loaded, clusters, options["align"], seed, replicate))
        jobs = [workload for workload, _ in loaded]
        platform = platform if policy is None else platform.with_policy(policy_made(policy))
        merged, _ = merge_workloads(jobs, align=options["align"])
        why = made.incompatibility(platform, workload=merged)
        if why:
            return xr.Dataset(attrs={"unfit": why})
        run = simulate(
            # Of one log, too, times are by the clock of the nodes and their failures
            jobs if len(jobs) > 1 else replace(merged, name=jobs[0].name),
            platform,
            made.logged(log / f"{Path(target).stem}-{replicate}.txt"),
            seed=scheduler_seed(seed, labels["scenario"], replicate),
            **options,
        )
        verify(run)
        submitted = _submitted(jobs, platform, options["align"])
        summaries, groups = (submitted, *more.summaries(run)), more.groups(run, replicate)
        if schedule is not None and replicate == 0:
            run.attrs.update(verified=1, **labels)
            files.write(run, schedule)
        return measured(run, Measuring(**how), *summaries, groups=groups)

    drawn = results.grids_from_dataset(files.shared(grid))
    with ThreadPoolExecutor(usable_cores() if made.has_process else 1) as pool:
        parts = list(pool.map(part, drawn, drawn.values()))
    parts = next(([each] for each in parts if "unfit" in each.attrs), parts)
    if schedule is not None and not Path(schedule).exists():
        files.write(xr.Dataset(attrs={"unfit": parts[0].attrs.get("unfit", "")}), schedule)
    unfit = str(parts[0].attrs.get("unfit", ""))
    done = labelled(
        replicated(parts),
        scenario=labels["scenario"],
        scheduler=labels["scheduler"],
        estimates=labels["estimates"],
        scenario_parameters=parameters,
        scheduler_parameters={"system": made.system, **scheduler_parameters},
        replicates_are=replicates_are,
    )
    done.attrs["unfit"] = unfit
    files.write(done, target)


def _submitted(jobs: Sequence[Workload], platform: Platform, align: Any) -> xr.Dataset:
    """What is submitted at each cluster of a grid and what clusters are, whoever schedules."""
    if len(jobs) < 2:
        return xr.Dataset()
    found = offered_loads(jobs, platform.clusters, align=align)
    found["cluster_processors"] = ("cluster", [float(each.processors) for each in platform.clusters])
    found["cluster_speed"] = ("cluster", [each.speed for each in platform.clusters])
    capacity = found["cluster_processors"] * found["cluster_speed"]
    whole = {
        "offered_load": (found["offered_load"] * capacity).sum() / capacity.sum(),
        "jobs_submitted": found["jobs_submitted"].sum(),
    }
    named = found.rename({name: f"{name}_by_cluster" for name in whole})
    return named.assign(whole)


def under(
    workload: Workload, load: float = 1.0, *, share: float = 1.0, deviation: float = 0.0, seed: int = 0
) -> Workload:
    """The jobs under another load, with other estimates.

    Parameters
    ----------
    workload : Workload
        The jobs.
    load : float
        Times between submissions are divided by this.
    share : float
        Share of the difference between requested times and run times that is left. Jobs without a requested
        time have none.
    deviation : float
        Standard deviation of the logarithm of drawn requested times over run times; 0 draws none.
    seed : int
        Seed of what is drawn.
    """
    if load != 1.0 and len(workload):
        first = int(workload.submit_time.min())
        submit = first + np.round((workload.submit_time - first) / load).astype(np.int64)
        moved: dict[str, Any] = workload.moved_times(submit - workload.submit_time)
        workload = replace(workload, submit_time=submit, **moved)
    if deviation:
        return with_prediction_errors(workload, deviation, seed=seed)
    if share != 1.0:
        run, requested = workload.run_time, workload.requested_time
        estimate = np.ceil(run + share * (requested - run)).astype(np.int64)
        workload = replace(
            workload, requested_time=np.where(requested > 0, np.maximum(estimate, 1), requested)
        )
    return workload

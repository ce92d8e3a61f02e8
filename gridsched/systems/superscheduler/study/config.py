"""Studies of grids: every scheduler under every local policy on every scenario, with replicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from gridsched.experiments.inputs import event_files, expected_jobs, failure_seed, prepared_grid
from gridsched.experiments.parts import GridConfig, label_of
from gridsched.experiments.schedulers import Policies, Written, scheduler_made
from gridsched.experiments.study import FROM_SUBMISSION, Replicates, SchedulerStudy, function_files
from gridsched.experiments.tasks import Experiment, Figure, StudyTable, Task
from gridsched.experiments.validation import Fraction, suggestion, unique

_STAGES = "gridsched.systems.superscheduler.study.stages"

_FIGURES = "gridsched.systems.superscheduler.figures.overview"


class GridStudy(SchedulerStudy):
    """A study of grids: every scheduler under every local policy on every scenario, with replicates."""

    catalogue = f"{_FIGURES}:GRID_FIGURES"
    view = "gridsched.systems.superscheduler.report:grid_view"
    refuses: ClassVar[Mapping[str, str]] = {"feedback": FROM_SUBMISSION}
    main_figure = "grid_overview"

    kind: Literal["grid"]
    """What is studied."""
    scenarios: Annotated[tuple[GridConfig, ...], Field(min_length=1)]
    """The scenarios: clusters with their workloads. Each has one kind of estimates."""
    policies: Policies = ("easy",)
    """Local policies; each is that of all clusters in its runs."""
    replicates: Replicates = 1
    """How often synthetic workloads, failures, and what schedulers draw are drawn. A log is the same in every
    replicate, unless its scenario has `resampling` or `shaking`, which say how many replicates there are. A
    scenario in which nothing is drawn is run once."""
    warm_up: Fraction = 0.0
    """Share of the jobs, in order of submission, left out of means over jobs."""
    schedules: Literal["first", "all", "none"] = "first"
    """Replicates whose start times and clusters are kept, job by job; measured are all."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique("policies", self.policy_labels)
        for scenario in self.scenarios:
            if len(self.estimates_in(scenario)) > 1:
                raise ValueError(f"scenarios[{scenario.name}].estimates: give one, here or for all scenarios")
            self._check_partners(scenario)
        if self.replicates > 1 and not any(
            each.variation or self._has_chance(each) for each in self.scenarios
        ):
            raise ValueError(
                f"replicates: found {self.replicates}; nothing is drawn in any scenario, so that all "
                "replicates would be one run: leave replicates out, or give scenarios resampling or shaking"
            )
        return self

    def _check_partners(self, scenario: GridConfig) -> None:
        clusters = [cluster.name for cluster in scenario.clusters]
        for scheduler in self.schedulers:
            partners = getattr(scheduler, "partners", None) or {}
            for name in (name for home, others in partners.items() for name in (home, *others)):
                if name not in clusters:
                    raise ValueError(
                        f"schedulers: partners of {label_of(scheduler)!r}: scenario {scenario.name} has no "
                        f"cluster {name!r}; {suggestion(name, clusters)}"
                    )

    def draws(self, scenario: GridConfig) -> int:
        """How many replicates a scenario has: one if they would all be the same."""
        if scenario.variation is not None:
            return scenario.variation.replicates
        return self.replicates if self._has_chance(scenario) else 1

    def _has_chance(self, scenario: GridConfig) -> bool:
        """Whether anything is drawn in a scenario: jobs, failures, or what schedulers decide."""
        drawn = any(cluster.synthetic is not None for cluster in scenario.clusters)
        return drawn or any(self._seed_of(scenario, label, 0) for label in self.labels_in(scenario))

    def _seed_of(self, scenario: GridConfig, label: str, seed: int) -> dict[str, int]:
        """The seed as an argument of runs in which something is drawn; others do not depend on it."""
        draws = scheduler_made(self.scheduler(label)).draws
        random = any(cluster.placement == "random" for cluster in scenario.clusters)
        return {"seed": seed} if draws or random else failure_seed(scenario.clusters, seed)

    @property
    def most_replicates(self) -> int:
        """Replicates of the scenario that has most."""
        return max(map(self.draws, self.scenarios))

    @property
    def policy_labels(self) -> list[str]:
        """Labels of the local policies."""
        return [label_of(policy) for policy in self.policies]

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        grids = {
            scenario.name: [
                prepared_grid(self.name, scenario, [replicate], seed)
                for replicate in range(self.draws(scenario))
            ]
            for scenario in self.scenarios
        }
        runs = [
            run
            for scenario in self.scenarios
            for policy, label in product(self.policies, self.labels_in(scenario))
            for run in self._runs(scenario, policy, self.scheduler(label), grids[scenario.name], seed)
        ]
        study = self.study_task(
            f"{_STAGES}:aggregate_grid_study",
            arguments={"runs": runs, "grids": [grid for own in grids.values() for grid in own]},
        )
        return Experiment(
            datasets=[study],
            figures=[
                *self.drawn(study),
                *(
                    Figure(
                        name=f"{kind}-{scenario.name}",
                        catalogue=f"{_FIGURES}:SCENARIO_FIGURES",
                        dataset=study,
                        parameters={"scenario": scenario.name},
                        part="Scenarios",
                        title=scenario.name,
                    )
                    for kind in self.scenario_figures
                    for scenario in self.scenarios
                ),
            ],
            tables=[StudyTable("means", f"{_STAGES}:means_table", "grid_means")],
        )

    def _runs(
        self, scenario: GridConfig, policy: Written, scheduler: Written, grids: Sequence[Task], seed: int
    ) -> Iterator[Task]:
        """Simulations of the replicates of a run; what they do not depend on is as by default."""
        estimates = tuple(self.estimates_in(scenario))
        own = self.of_run(
            scenario, scheduler, policies=(policy,), estimates=estimates, replicates=1, schedules="all"
        )
        asking = 1 if label_of(scheduler) == "local" or not scheduler_made(scheduler).names_clusters else 4
        for replicate, grid in enumerate(grids):
            labels = {
                "scenario": scenario.name,
                "policy": label_of(policy),
                "scheduler": label_of(scheduler),
                "replicate": replicate,
            }
            kept = self.schedules == "all" or (self.schedules == "first" and replicate == 0)
            yield Task(
                stage="simulate",
                study=self.name,
                name=", ".join([*map(str, labels.values())][:-1]) + f", replicate {replicate}",
                function=f"{_STAGES}:simulate_run",
                arguments={"study": own, "grid": grid, **self._seed_of(scenario, label_of(scheduler), seed)},
                also={"files": [*function_files(scheduler, policy), *event_files(scenario.clusters)]},
                labels=labels,
                outputs=("schedule",) if kept else (),
                cost=0.1 + asking * sum(map(expected_jobs, scenario.clusters)) / 300_000,
                memory=3000,
            )

    @property
    def study_figures(self) -> list[str]:
        """Figures of the whole study. A variant of a scheduler has a comma in its label: "r-i, delta 0.5"."""
        figures = ["grid_sensitivity"] if self._has_variants else ["grid_overview"]
        if len(self.policies) > 1:
            figures.append("grid_policies")
        return figures

    @property
    def scenario_figures(self) -> list[str]:
        """Figures of each scenario, if there are few enough schedulers to show them cluster by cluster."""
        if self._has_variants:
            return []
        moving = any(scheduler_made(scheduler).label != "local" for scheduler in self.schedulers)
        return ["grid_waits", "grid_utilisation", *(["grid_flows"] if moving else [])]

    @property
    def _has_variants(self) -> bool:
        return any("," in label for label in self.labels)

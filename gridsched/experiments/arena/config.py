"""What studies of the arena are made of: schedulers of all systems with their parameters."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gridsched.experiments.arena.grids import IDEAL_MACHINE
from gridsched.experiments.inputs import event_files, expected_jobs, prepared_grid
from gridsched.experiments.parts import BaselineConfig, BlocksConfig, GridConfig
from gridsched.experiments.schedulers import AnyScheduler, Policies, Written, scheduler_made
from gridsched.experiments.study import Replicates, SchedulerStudy, asked_of, families, function_files
from gridsched.experiments.tasks import Experiment, StudyTable, Task
from gridsched.experiments.validation import Number, unique

_STAGES = "gridsched.experiments.arena.stages"


def system_of(written: Written) -> str:
    """System that a scheduler belongs to; ideal machines are none."""
    made = scheduler_made(written)
    return made.system if made.names_clusters else IDEAL_MACHINE


class ArenaScenario(GridConfig, BlocksConfig, BaselineConfig):
    """Clusters of a grid with what their users submit, and how days go together in comparisons."""

    schedulers: None = None
    """All schedulers of an arena meet in every scenario."""


class ArenaStudy(SchedulerStudy):
    """A study of the arena: schedulers of all systems on the same clusters, jobs and estimates."""

    catalogue = "gridsched.experiments.arena.figures:ARENA_FIGURES"
    view = "gridsched.experiments.arena.report:arena_view"
    refuses_the_unable = False
    main_figure = "arena_ranking"
    leads = True

    kind: Literal["arena"]
    """What is studied."""
    scenarios: Annotated[tuple[ArenaScenario, ...], Field(min_length=1)]
    """The scenarios: clusters with their workloads."""
    schedulers: Annotated[tuple[AnyScheduler, ...], Field(min_length=2)]
    """Schedulers: names, or names with parameters. A list of values where a parameter takes one makes a
    scheduler of each, with all combinations where there are several lists."""
    policies: Annotated[Policies, Field(max_length=1)] = ("easy",)
    """The local policy of all clusters, where a scheduler leaves it open."""
    replicates: Replicates = 1
    """How often synthetic workloads are drawn; only scenarios of synthetic workloads alone, or with
    `resampling` or `shaking`, which say it themselves, have several."""
    loads: Annotated[tuple[Annotated[Number, Field(ge=0.01, le=100)], ...], Field(min_length=1)] = (1.0,)
    """Loads, relative to the workloads as they are: times between submissions are divided by this."""
    estimate_errors: Annotated[tuple[Annotated[Number, Field(ge=0, le=100)], ...], Field(min_length=1)] = (
        1.0,
    )
    """Share of the difference between requested times and run times that is left in estimates: 0 for perfect
    estimates, 1 for requested times."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("loads", "estimate_errors"):
            unique(key, [str(value) for value in getattr(self, key)])
            if 1.0 not in getattr(self, key):
                raise ValueError(f"{key}: give 1 too, which the others are compared with")
        if any(self.estimates_in(scenario) != ("requested",) for scenario in self.scenarios):
            raise ValueError("estimates: all are requested times in an arena; vary estimate_errors")
        return self

    def draws(self, scenario: str) -> int:
        """How many replicates a scenario has: one if it replays a log as it is."""
        conditions = self.scenario(scenario)
        if conditions.variation is not None:
            return int(conditions.variation.replicates)
        drawn = all(cluster.synthetic is not None for cluster in conditions.clusters)
        return self.replicates if drawn else 1

    @property
    def tells_fates(self) -> bool:
        """Whether nodes fail, users give up or jobs wait for others in some scenario."""
        return any(set(asked_of(each)) - {"nodes"} for each in self.scenarios)

    @property
    def has_feedback(self) -> bool:
        """Whether users react in some scenario."""
        return any(each.feedback is not None for each in self.all_workloads)

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        grids = {
            each.name: prepared_grid(self.name, each, range(self.draws(each.name)), seed)
            for each in self.scenarios
        }
        study = self.study_task(
            f"{_STAGES}:aggregate_arena_study",
            arguments={
                "seed": seed,
                "runs": {
                    scenario.name: [
                        self._runs(scenario, label, grids[scenario.name], seed) for label in self.labels
                    ]
                    for scenario in self.scenarios
                },
                "grids": grids,
            },
            memory=3000,
        )
        return Experiment(
            datasets=[study],
            figures=self.drawn(study),
            tables=[
                StudyTable("means", f"{_STAGES}:means_table", "arena_means"),
                StudyTable("comparisons", f"{_STAGES}:pair_table", "arena_comparisons"),
            ],
        )

    def _runs(self, scenario: ArenaScenario, label: str, grid: Task, seed: int) -> Task:
        """Runs of one scheduler on one scenario: all replicates under all loads and estimates."""
        written = self.scheduler(label)
        # An arena has two schedulers at least
        rival = next(name for name in ("local", "central") if name != label)
        own: dict[str, Any] = {"schedulers": (written, rival), "replicates": 1}
        runs = len(self.loads) * len(self.estimate_errors) * self.draws(scenario.name)
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{scenario.name}, {label}",
            function=f"{_STAGES}:run_scheduler",
            arguments={
                "study": self.of_run(scenario, written, **own),
                "scenario": scenario.name,
                "label": label,
                "grids": grid,
                "seed": seed,
            },
            also={"files": [*function_files(written, *self.policies), *event_files(scenario.clusters)]},
            labels={"scenario": scenario.name, "scheduler": label},
            cost=0.5 + runs * sum(map(expected_jobs, scenario.clusters)) / 3_000,
            memory=3000,
        )

    @property
    def study_figures(self) -> list[str]:
        """Figures of the study; what was not varied is not drawn."""
        figures = ["arena_ranking", "arena_cost"]
        if families(self.scenarios):
            figures.append("arena_effects")
        if len(self.loads) > 1:
            figures.append("arena_loads")
        if len(self.estimate_errors) > 1:
            figures.append("arena_estimates")
        return figures

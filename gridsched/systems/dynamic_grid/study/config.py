"""What studies of dynamic grids say: clusters, graphs, the default case, and what is changed in it.

A *case* is a scenario with a scheduler. The default case is run, and each sweep changes one factor of it;
other factors may be crossed with it. The label of a case says how it differs from the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictBool, ValidationError, create_model, model_validator

from gridsched.errors import GridschedError
from gridsched.experiments.derived import keys
from gridsched.experiments.inputs import event_files, expected_jobs, failure_seed, prepared_workload
from gridsched.experiments.parts import ScenarioConfig, WorkloadConfig
from gridsched.experiments.schedulers import AnyScheduler, combinations, labelled, scheduler_made
from gridsched.experiments.study import FROM_SUBMISSION, Replicates, SchedulerStudy
from gridsched.experiments.tasks import Experiment, StudyTable, Task
from gridsched.experiments.validation import (
    ConfigModel,
    Count,
    Instant,
    Number,
    Slug,
    Whole,
    suggestion,
    unique,
    unique_files,
)
from gridsched.io import shown
from gridsched.policies.local import OverrunName
from gridsched.submission import EstimateName
from gridsched.systems.dynamic_grid.graphs import graph_of_edges, grid_graph
from gridsched.systems.dynamic_grid.measures import GRID_USERS
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid

PolicyName = Literal["fcfs", "easy"]
"""Local policies that a study compares: that of the paper, and EASY, which protects a job that waits."""

_STUDY = "gridsched.systems.dynamic_grid.study"


CLUSTER_USERS, ALL_USERS = "sites", "all"
"""Labels of the users of all clusters, and of them and those of the grid."""

GROUPS = (GRID_USERS, CLUSTER_USERS, ALL_USERS)
"""Labels that no cluster can have."""

NAMED_GRAPHS = ("isolated", "ring", "complete")
"""Graphs that need nothing but the clusters."""

DYNAMIC: Literal["dynamic-grid"] = "dynamic-grid"

Value = StrictBool | Whole | Number | str | None
"""Value of a factor."""


_ONE_STREAM = (
    "cases are compared job by job with each cluster on its own, on the same submissions; use a study of "
    "kind arena, which runs the dynamic grid on replicates of logs"
)


class ConditionsConfig(ConfigModel):
    """Which clusters are neighbours, and when they are in the grid."""

    graph: str = "ring"
    """Which clusters are neighbours: isolated, ring, complete, or a name of `graphs`."""
    without: str | None = None
    """Cluster that never joins the grid and serves its own users alone."""
    mean_stay: Count | None = None
    """Mean time for which a cluster stays in the grid, seconds; all stay for good by default."""
    mean_absence: Count = 14_400
    """Mean time until a cluster that has left comes back, seconds."""
    lease: Count | None = None
    """Length of the leases, seconds; without leases nobody knows when a cluster leaves."""

    @model_validator(mode="after")
    def _leases_end(self) -> Self:
        if self.lease is not None and self.mean_stay is None:
            raise ValueError("lease: clusters that stay for good need none; give mean_stay")
        return self


class _Case(ConditionsConfig):
    """A case: conditions, and a scheduler with its parameters."""

    scheduler: Literal["dynamic-grid", "s-i", "r-i", "sy-i"] = DYNAMIC
    """The grid scheduler: that of the model, or, on the same jobs, a superscheduler, which moves jobs between
    neighbours before they start and never runs one on several clusters."""
    stream: StrictBool = True
    """Whether the jobs of the grid's own users are there."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""

    def options(self) -> DynamicGrid:
        """Parameters of the model."""
        return DynamicGrid(**{key: getattr(self, key) for key in _PARAMETERS})

    @property
    def local(self) -> PolicyName:
        """Local policy of all clusters."""
        policy: PolicyName | None = getattr(self, "policy", None)
        return policy or "easy"

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            options = self.options()
        except GridschedError as error:
            raise ValueError(str(error)) from None
        if self.scheduler != DYNAMIC and (options.grid_share or self.without or self.mean_stay):
            raise ValueError(
                "scheduler: a superscheduler knows no grid_share, without or mean_stay; leave them out"
            )
        return self


_PARAMETERS = tuple(field.name for field in fields(DynamicGrid) if field.name != "graph")

_FIELDS: dict[str, Any] = {
    key: (kind, default) for key, kind, default in keys(DynamicGrid, frozenset({"graph"}))
}
DynamicCase: Any = create_model("DynamicCase", __base__=_Case, **_FIELDS)
"""A case, whose parameters are those of the scheduler."""

_FIRST = ("scheduler", "policy", "graph", "stream", "grid_share", "without")
_LAST = ("mean_stay", "mean_absence", "lease", "heed_leases", "overrun")
CASE_KEYS = (*_FIRST, *(key for key in _PARAMETERS if key not in (*_FIRST, *_LAST)), *_LAST)
"""Keys of a case in the order of labels and tables."""


class DynamicGraphConfig(ConfigModel):
    """Which clusters are neighbours."""

    alternatives = ("mean_degree", "edges")

    name: Slug
    """Name of the graph."""
    mean_degree: Number | None = Field(None, ge=0)
    """Mean number of neighbours of a cluster, whose edges are drawn at random."""
    edges: tuple[tuple[str, str], ...] | None = None
    """Pairs of clusters."""

    @model_validator(mode="after")
    def _free_name(self) -> Self:
        if self.name in NAMED_GRAPHS:
            raise ValueError(f"name: {self.name!r} is a graph that is always there; choose another")
        return self


class DynamicSweepConfig(ConfigModel):
    """Values of one factor of the default case, perhaps for several values of other factors."""

    name: Slug
    """Name of the sweep."""
    factor: str
    """Key of the default case that is changed."""
    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    """Its values. That of the default case is run in any case, as what the others are compared with."""
    among: dict[str, Annotated[tuple[Value, ...], Field(min_length=1)]] = Field({})
    """Other keys of the default case with their values, all of which are combined."""

    @model_validator(mode="after")
    def _known_keys(self) -> Self:
        known = list(CASE_KEYS)
        for where, key in (("factor", self.factor), *(("among", key) for key in self.among)):
            if key not in known:
                raise ValueError(f"{where}: unknown key {key!r}; {suggestion(key, known)}")
        if self.factor in self.among:
            raise ValueError(f"among: {self.factor!r} is the factor itself; leave it out")
        return self


class DepartureConfig(ConfigModel):
    """A cluster that leaves the grid of the default case once, to be looked at closely."""

    site: str
    """The cluster."""
    time: Instant
    """When it leaves, seconds after the first submission."""
    absence: Count = 43_200
    """Seconds until it comes back."""
    margin: Count = 7200
    """Seconds before and after that are shown."""


class DynamicScenario(ScenarioConfig, ConditionsConfig):
    """Clusters, the jobs that are submitted to the grid, and which clusters are neighbours."""

    stream: WorkloadConfig | None = None
    """Jobs that are submitted to the grid scheduler; its cluster is what they are compared with."""
    graphs: tuple[DynamicGraphConfig, ...] = ()
    """Graphs besides isolated, ring and complete."""

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn, that of the grid's own users last."""
        return (*self.clusters, *([self.stream] if self.stream is not None else []))


@dataclass(frozen=True)
class DynamicGridRun:
    """A case in a replicate."""

    case: str
    replicate: int

    @property
    def title(self) -> str:
        """Name for people."""
        return f"{self.case}, replicate {self.replicate}"


class DynamicGridStudy(SchedulerStudy):
    """A study of a dynamic grid: one factor of a default case after another; against clusters alone."""

    catalogue = "gridsched.systems.dynamic_grid.figures.overview:DYNAMIC_FIGURES"
    view = "gridsched.systems.dynamic_grid.report:dynamic_view"
    main_figure = "dynamic_sites"
    refuses: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("resampling", "shaking"), _ONE_STREAM),
        "feedback": FROM_SUBMISSION,
    }

    kind: Literal["dynamic-grid"]
    """What is studied."""
    scenarios: Annotated[tuple[DynamicScenario, ...], Field(min_length=1, max_length=1)]
    """The scenario of the default case."""
    schedulers: Annotated[tuple[AnyScheduler, ...], Field(min_length=1, max_length=1)]
    """The scheduler of the default case, `dynamic-grid` with its parameters."""
    estimates: Annotated[tuple[EstimateName, ...], Field(min_length=1, max_length=1)] = ("requested",)
    """Runtime estimates of the schedulers."""
    sweeps: tuple[DynamicSweepConfig, ...] = ()
    """What is changed in the default case."""
    replicates: Replicates = 1
    """How often cases with chance in them are run: random graphs, shares, churn."""
    departure: DepartureConfig | None = None
    """A cluster that leaves once, to be looked at closely."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if scheduler_made(self.schedulers[0]).system != "dynamic_grid":
            raise ValueError(f"schedulers: give {DYNAMIC} with its parameters; others are values of a sweep")
        self._check_clusters()
        unique("graphs", [graph.name for graph in self.grid.graphs])
        for graph in self.grid.graphs:
            try:
                self.graph_of(graph.name, 0)
            except GridschedError as error:
                raise ValueError(f"graphs[{graph.name}]: {error}") from None
        unique("sweeps", [sweep.name for sweep in self.sweeps])
        self._check_case(f"scenarios[{self.grid.name}]", self.default)
        for sweep in self.sweeps:
            for _, case in self.points_of(sweep):
                self._check_case(f"sweeps[{sweep.name}]", case)
        if self.departure is not None and self.departure.site not in self.cluster_names:
            raise ValueError(
                f"departure.site: found {shown(self.departure.site)}; "
                f"{suggestion(self.departure.site, self.cluster_names)}"
            )
        return self

    def _check_clusters(self) -> None:
        everybody = self.grid.workloads
        unique_files("clusters, stream", [cluster.name for cluster in everybody])
        speeds = {cluster.speed or 1.0 for cluster in everybody}
        if len(speeds) > 1:
            raise ValueError("clusters: their speeds differ; in this study all processors are equal")
        for cluster in everybody:
            if cluster.name in GROUPS:
                raise ValueError(f"clusters: the name {cluster.name!r} stands for users; choose another")
            exclusive = cluster.node_exclusive
            if exclusive or (exclusive is None and cluster.synthetic is not None):
                raise ValueError(
                    f"clusters: a node of {cluster.name} runs one job only, but in this study jobs share "
                    "nodes; write node_exclusive: false"
                )

    def _check_case(self, where: str, case: _Case) -> None:
        graphs = [*NAMED_GRAPHS, *(graph.name for graph in self.grid.graphs)]
        if case.graph not in graphs:
            raise ValueError(f"{where}: graph: found {shown(case.graph)}; {suggestion(case.graph, graphs)}")
        if case.without is not None and case.without not in self.cluster_names:
            raise ValueError(
                f"{where}: without: found {shown(case.without)}; "
                f"{suggestion(case.without, self.cluster_names)}"
            )

    @property
    def grid(self) -> DynamicScenario:
        """The scenario."""
        return self.scenarios[0]

    @property
    def default(self) -> Any:
        """The default case."""
        made: Any = scheduler_made(self.schedulers[0])
        given = {key: getattr(made, key) for key in _PARAMETERS}
        conditions = {key: getattr(self.grid, key) for key in ConditionsConfig.model_fields}
        return DynamicCase(**given, **conditions, overrun=self.overrun)

    @property
    def cluster_names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in self.grid.clusters]

    def graph_of(self, name: str, seed: int) -> Any:
        """Graph of a name; the seed is for the edges of a random one."""
        if name in NAMED_GRAPHS:
            kind: Any = name
            return grid_graph(self.cluster_names, kind)
        graph = next(graph for graph in self.grid.graphs if graph.name == name)
        if graph.edges is not None:
            return graph_of_edges(self.cluster_names, graph.edges)
        return grid_graph(self.cluster_names, "random", mean_degree=graph.mean_degree, seed=seed)

    def has_chance(self, case: _Case) -> bool:
        """Whether a case depends on random numbers."""
        drawn = any(graph.name == case.graph and graph.mean_degree is not None for graph in self.grid.graphs)
        homes = case.scheduler != DYNAMIC and case.stream and self.grid.stream is not None
        return drawn or homes or case.mean_stay is not None or 0 < case.options().grid_share < 1

    def changed_case(self, where: str, **changes: Value) -> Any:
        """The default case with other values of some keys."""
        try:
            return DynamicCase.model_validate({**self.default.model_dump(), **changes})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"])) or "values"
            found = f"found {shown(first['input'])}; " if first["loc"] else ""
            message = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"{where}: {key}: {found}{message[0].lower()}{message[1:]}") from None

    def points_of(self, sweep: DynamicSweepConfig) -> Iterator[tuple[dict[str, Value], Any]]:
        """Cases of a sweep with the values of the other factors, the one of the default value first."""
        where = f"sweeps[{sweep.name}]"
        for others in combinations(sweep.among):
            base = getattr(self.default, sweep.factor)
            cases = [
                self.changed_case(where, **others, **{sweep.factor: value})
                for value in (base, *(value for value in sweep.values if value != base))
            ]
            yield from ((others, case) for case in dict.fromkeys(cases))

    def label_of(self, case: _Case) -> str:
        """How a case differs from the default."""
        default = self.default
        different = {
            key: getattr(case, key) for key in CASE_KEYS if getattr(case, key) != getattr(default, key)
        }
        return labelled(different, shown_value) or "default"

    @property
    def cases(self) -> dict[str, Any]:
        """Every case by its label, the default first."""
        every = [self.default, *(case for sweep in self.sweeps for _, case in self.points_of(sweep))]
        return {self.label_of(case): case for case in every}

    @property
    def policies(self) -> list[PolicyName]:
        """Local policies of all cases."""
        return list(dict.fromkeys(case.local for case in self.cases.values()))

    # --- what is made ---------------------------------------------------------------------------------

    @property
    def runs(self) -> list[DynamicGridRun]:
        """Every run, case by case; cases without chance have one replicate."""
        return [
            DynamicGridRun(label, replicate)
            for label, case in self.cases.items()
            for replicate in range(self.replicates if self.has_chance(case) else 1)
        ]

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        workloads = {each.name: prepared_workload(self.name, each, seed) for each in self.all_workloads}
        alone = {policy: self._alone(policy, workloads, seed) for policy in self.policies}
        cases = self.cases
        study = self.study_task(
            f"{_STUDY}.aggregation:aggregate_dynamic_study",
            arguments={
                "seed": seed,
                "runs": [self._run(run, cases[run.case], seed, workloads, alone) for run in self.runs],
                "alone": alone,
                "workloads": workloads,
                "departure": self._departure(seed, workloads) if self.departure is not None else None,
            },
        )
        return Experiment(
            datasets=[study],
            figures=self.drawn(study),
            tables=[StudyTable("means", f"{_STUDY}.aggregation:means_table", "dynamic_means")],
        )

    def _basis(self) -> dict[str, Any]:
        """As much of the study as runs depend on besides their own parameters."""
        conditions = {key: field.default for key, field in ConditionsConfig.model_fields.items()}
        return self.without_words(
            scenarios=(self.grid.model_copy(update=conditions),),
            schedulers=(DYNAMIC,),
            overrun="doubling",
            sweeps=(),
            replicates=1,
            reference=None,
            departure=None,
        ).values()

    @property
    def _cost(self) -> float:
        """Expected time of a run [CPU s]."""
        return 0.2 + sum(map(expected_jobs, self.all_workloads)) / 50_000

    def _alone(self, policy: PolicyName, workloads: Mapping[str, Task], seed: int) -> Task:
        """Every cluster on its own."""
        return Task(
            stage="simulate",
            study=self.name,
            name=f"every cluster on its own, {policy}",
            function=f"{_STUDY}.stages:simulate_alone",
            arguments={
                "study": {**self._basis(), "overrun": self.overrun},
                "policy": policy,
                "workloads": dict(workloads),
                **failure_seed(self.grid.clusters, seed),
            },
            also={"files": event_files(self.grid.clusters)},
            cost=self._cost / 4,
        )

    def _run(
        self,
        run: DynamicGridRun,
        case: _Case,
        seed: int,
        workloads: Mapping[str, Task],
        alone: Mapping[PolicyName, Task],
    ) -> Task:
        """Simulation of one run."""
        values = case.model_dump(mode="json")
        return Task(
            stage="simulate",
            study=self.name,
            name=run.title,
            function=f"{_STUDY}.stages:simulate_run",
            arguments={
                "study": self._basis(),
                "case": run.case,
                "values": case.model_dump(mode="json", exclude_defaults=True),
                "replicate": run.replicate,
                "seed": seed,
                "workloads": dict(workloads),
                "alone": alone[case.local],
            },
            also={"files": event_files(self.grid.clusters)},
            labels={"case": run.case, "replicate": run.replicate, **{key: values[key] for key in CASE_KEYS}},
            cost=self._cost,
            memory=1500,
        )

    def _departure(self, seed: int, workloads: Mapping[str, Task]) -> Task:
        """The cluster that leaves, looked at closely."""
        return Task(
            stage="simulate",
            study=self.name,
            name="a cluster that leaves",
            function=f"{_STUDY}.stages:simulate_departure",
            arguments={
                "study": self.without_words(sweeps=(), replicates=1, reference=None).values(),
                "seed": seed,
                "workloads": dict(workloads),
            },
            cost=self._cost,
            memory=1500,
        )

    @property
    def study_figures(self) -> list[str]:
        """Figures of the study; what has nothing to show is not drawn."""
        factors = {sweep.factor for sweep in self.sweeps}
        figures = ["dynamic_map", "dynamic_sites"]
        if "without" in factors:
            figures.append("dynamic_joining")
        if "overhead" in factors:
            figures.append("dynamic_overhead")
        if factors & {"mean_stay", "lease", "mean_absence"}:
            figures.append("dynamic_churn")
        if factors - {"without", "overhead", "mean_stay", "lease", "mean_absence"}:
            figures += ["dynamic_sweeps", "dynamic_variants"]
        if self.departure is not None:
            figures.append("dynamic_departure")
        return figures


def shown_value(value: Value) -> str:
    """Value of a factor as labels show it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)

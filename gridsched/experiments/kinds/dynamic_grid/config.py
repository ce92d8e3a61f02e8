"""What studies of dynamic grids say: clusters, graphs, the default case, and what is changed in it.

A *case* is a scenario with a scheduler. The default case is run, and each sweep changes one factor of it;
other factors may be crossed with it. The label of a case says how it differs from the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import xarray as xr
from pydantic import Field, StrictBool, create_model, model_validator

from gridsched.derived import MadeConfig, keys
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.experiments.collection import ALL
from gridsched.experiments.comparing import WITHOUT
from gridsched.experiments.inputs import event_files, expected_jobs, failure_seed, plain, prepared_grid
from gridsched.experiments.measuring import BLOCKS
from gridsched.experiments.parts import ScenarioConfig, WorkloadConfig
from gridsched.experiments.schedulers import AnyScheduler, combinations, labelled, scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import FROM_SUBMISSION, ReplicatedStudy, Replicates
from gridsched.experiments.tasks import Experiment, Figure, Stage, Task
from gridsched.policies.local import OverrunName
from gridsched.submission import EstimateName
from gridsched.systems.dynamic_grid.graphs import graph_of_edges, grid_graph
from gridsched.systems.dynamic_grid.measures import GRID_USERS
from gridsched.systems.dynamic_grid.scheduler import DynamicGrid
from gridsched.validation import (
    ConfigModel,
    Count,
    Different,
    Instant,
    Number,
    Slug,
    Whole,
    check_known,
    suggestion,
    unique_files,
    validated,
)

_HERE = "gridsched.experiments.kinds.dynamic_grid"


GROUPS = (GRID_USERS, "sites", "all")
"""Names of groups of users, which no cluster can have."""

NAMED_GRAPHS = ("isolated", "ring", "complete")
"""Graphs that need nothing but the clusters."""

DYNAMIC: Literal["dynamic-grid"] = "dynamic-grid"

Value = StrictBool | Whole | Number | str | None
"""Value of a factor."""


ALONE = "alone"
"""Label of every cluster on its own, which cases are compared with."""

MOST_CASES = 16
"""Most cases that are ranked; of more, those that differ in their graph or scheduler alone."""


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


class _Case(ConditionsConfig, MadeConfig):
    """A case: conditions, and a scheduler with its parameters."""

    scheduler: Literal["dynamic-grid", "s-i", "r-i", "sy-i"] = DYNAMIC
    """The grid scheduler: that of the model, or, on the same jobs, a superscheduler, which moves jobs between
    neighbours before they start and never runs one on several clusters."""
    stream: StrictBool = True
    """Whether the jobs of the grid's own users are there."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""

    def made(self) -> DynamicGrid:
        """The scheduler of the model with the parameters of the case."""
        return DynamicGrid(**{key: getattr(self, key) for key in _PARAMETERS})

    @property
    def local(self) -> str:
        """Local policy of all clusters."""
        return self.made().policy or "easy"

    @model_validator(mode="after")
    def _known_to_its_scheduler(self) -> Self:
        if self.scheduler != DYNAMIC and (self.made().grid_share or self.without or self.mean_stay):
            raise ValueError(
                "scheduler: a superscheduler knows no grid_share, without or mean_stay; leave them out"
            )
        return self


_PARAMETERS = tuple(field.name for field in fields(DynamicGrid) if field.name != "graph")

_FIELDS: dict[str, Any] = {**keys(DynamicGrid, {"graph"})}
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

    def made(self, clusters: Sequence[str], seed: int) -> Any:
        """The graph between clusters; the seed is for the edges of a random one."""
        if self.edges is not None:
            return graph_of_edges(clusters, self.edges)
        return grid_graph(clusters, "random", mean_degree=self.mean_degree, seed=seed)


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
        for where, key in (("factor", self.factor), *(("among", key) for key in self.among)):
            if key not in CASE_KEYS:
                raise ValueError(f"{where}: unknown key {key!r}; {suggestion(key, CASE_KEYS)}")
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
    graphs: Annotated[tuple[DynamicGraphConfig, ...], Different] = ()
    """Graphs besides isolated, ring and complete."""

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn, that of the grid's own users last."""
        return (*self.clusters, *([self.stream] if self.stream is not None else []))


class DynamicGridStudy(ReplicatedStudy):
    """A study of a dynamic grid: one factor of a default case after another; against clusters alone."""

    refuses: ClassVar[Mapping[str, str]] = {"feedback": FROM_SUBMISSION}

    kind: Literal["dynamic-grid"]
    """What is studied."""
    scenarios: Annotated[tuple[DynamicScenario, ...], Field(min_length=1, max_length=1)]
    """The scenario of the default case."""
    schedulers: Annotated[tuple[AnyScheduler, ...], Field(min_length=1, max_length=1)]
    """The scheduler of the default case, `dynamic-grid` with its parameters."""
    estimates: Annotated[tuple[EstimateName, ...], Field(min_length=1, max_length=1)] = ("requested",)
    """Runtime estimates of the schedulers."""
    sweeps: Annotated[tuple[DynamicSweepConfig, ...], Different] = ()
    """What is changed in the default case."""
    replicates: Replicates = 10
    """How often synthetic workloads are drawn, and with them random graphs, shares and leaves. A log is
    replayed once, in blocks of consecutive jobs, unless its scenario has `resampling` or `shaking`, which say
    how many replicates there are."""
    departure: DepartureConfig | None = None
    """A cluster that leaves once, to be looked at closely."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if scheduler_made(self.schedulers[0]).system != "dynamic_grid":
            raise ValueError(f"schedulers: give {DYNAMIC} with its parameters; others are values of a sweep")
        if self.labels[0] == ALONE:
            raise ValueError(f"schedulers: {ALONE!r} stands for clusters without a grid; choose another name")
        self._check_clusters()
        for graph in self.grid.graphs:
            try:
                graph.made(self.cluster_names, 0)
            except GridschedError as error:
                raise ValueError(f"graphs[{graph.name}]: {error}") from None
        self._check_case(f"scenarios[{self.grid.name}]", self.default)
        for sweep in self.sweeps:
            for case in self.cases_of(sweep):
                self._check_case(f"sweeps[{sweep.name}]", case)
        if self.departure is not None:
            check_known("departure.site", self.departure.site, self.cluster_names)
        return self

    def _check_clusters(self) -> None:
        everybody = self.grid.workloads
        unique_files("clusters, stream", [cluster.name for cluster in everybody])
        if len({cluster.speed or 1.0 for cluster in everybody}) > 1:
            raise ValueError("clusters: their speeds differ; in this study all processors are equal")
        for cluster in everybody:
            if cluster.name in GROUPS:
                raise ValueError(f"clusters: the name {cluster.name!r} stands for users; choose another")
            if cluster.node_exclusive or (cluster.node_exclusive is None and cluster.synthetic is not None):
                raise ValueError(
                    f"clusters: a node of {cluster.name} runs one job only, but in this study jobs share "
                    "nodes; write node_exclusive: false"
                )

    def _check_case(self, where: str, case: _Case) -> None:
        own = (graph.name for graph in self.grid.graphs)
        check_known(f"{where}: graph", case.graph, (*NAMED_GRAPHS, *own))
        if case.without is not None:
            check_known(f"{where}: without", case.without, self.cluster_names)

    # --- cases ----------------------------------------------------------------------------------------

    @property
    def grid(self) -> DynamicScenario:
        """The scenario."""
        return self.scenarios[0]

    @property
    def cluster_names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in self.grid.clusters]

    @property
    def default(self) -> Any:
        """The default case."""
        made = scheduler_made(self.schedulers[0])
        given = {key: getattr(made, key) for key in _PARAMETERS}
        conditions = self.grid.model_dump(include=set(ConditionsConfig.model_fields))
        return DynamicCase(**given, **conditions, overrun=self.overrun)

    def cases_of(self, sweep: DynamicSweepConfig) -> list[Any]:
        """Cases of a sweep: with each combination of other factors first that of the default value."""
        default = self.default.model_dump()
        base = default[sweep.factor]
        values = [base, *(value for value in sweep.values if value != base)]
        try:
            cases = [
                validated(DynamicCase, {**default, **changes}, f"sweeps[{sweep.name}]: values")
                for changes in combinations({**sweep.among, sweep.factor: values})
            ]
        except ConfigurationError as error:
            raise ValueError(str(error)) from None
        return list(dict.fromkeys(cases))

    def _changes(self, case: _Case) -> dict[str, Value]:
        """What a case has other than the default, apart from what its scenario says."""
        default = self.default
        return {
            key: getattr(case, key)
            for key in CASE_KEYS
            if key not in _OF_SCENARIOS and getattr(case, key) != getattr(default, key)
        }

    def label_of(self, case: _Case) -> str:
        """How a case differs from the default in what is not said by its scenario."""
        return labelled(self._changes(case), shown_value) or self.labels[0]

    def scenario_of(self, case: _Case) -> str:
        """Label of the scenario of a case: local policy and jobs, where they differ from the default."""
        policy = [case.local] if case.local != self.default.local else []
        return ", ".join([self.grid.name, *policy, *([] if case.stream else ["without grid users"])])

    @property
    def cases(self) -> dict[tuple[str, str], Any]:
        """Every case by its labels, scenario and scheduler, the default first."""
        every = [self.default, *(case for sweep in self.sweeps for case in self.cases_of(sweep))]
        return {(self.scenario_of(case), self.label_of(case)): case for case in every}

    @property
    def reference_label(self) -> str:
        """What cases are compared with: every cluster on its own."""
        return self.reference or ALONE

    @property
    def runs(self) -> dict[tuple[str, str], Any]:
        """Every run by its labels: every cluster on its own in each scenario, then the cases."""
        cases = self.cases
        alone = {
            (scenario, ALONE): DynamicCase.model_validate(
                {"policy": case.local, "stream": case.stream, "overrun": self.overrun}
            )
            for (scenario, _), case in cases.items()
        }
        return {**alone, **cases}

    def replicates_are(self, scenario: Any) -> str:
        """What replicates are; also jobs that are written out are measured in blocks."""
        kind = super().replicates_are(scenario)
        return "blocks" if kind == "the workload itself" else kind

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        everybody = self.grid.model_copy(update={"clusters": self.grid.workloads})
        grid = prepared_grid(self.name, everybody, range(self.draws(self.grid)), seed)
        scenarios, schedulers = (list(dict.fromkeys(labels)) for labels in zip(*self.runs, strict=True))
        closely = [] if self.departure is None else [plain(self.departure)]
        departure = [
            self._task("collect", "departure", self.default, grid, departure=given, seed=seed)
            for given in closely
        ]
        figures = [
            Figure(name="departure", dataset=task, specification=_DEPARTURE.values(), part="Departure")
            for task in departure
        ]
        return self.collected(
            {
                "runs": [self._run(*labels, case, grid, seed) for labels, case in self.runs.items()],
                "labels": {
                    "scenario": scenarios,
                    "scheduler": schedulers,
                    "estimates": list(self.estimates),
                },
                "coordinates": {"scheduler": self._lines},
                "grids": [grid],
                "attributes": self.facts(seed),
            },
            memory=3000,
            after=figures,
            further=departure,
        )

    def _run(self, scenario: str, label: str, case: Any, grid: Task, seed: int) -> Task:
        """Simulation of all replicates of a run."""
        drawn = {"seed": seed} if label != ALONE and self._draws_in(case) else {}
        return self._task(
            "simulate",
            f"{scenario}, {label}",
            case,
            grid,
            labels={"scenario": scenario, "scheduler": label},
            scheduler_parameters={} if label == ALONE else self._parameters(case),
            replicates_are=self.replicates_are(self.grid),
            **{"seed": 0, **failure_seed(self.grid.clusters, seed), **drawn},
        )

    def _draws_in(self, case: _Case) -> bool:
        """Whether something is drawn in a case."""
        drawn = any(graph.name == case.graph and graph.mean_degree is not None for graph in self.grid.graphs)
        homes = case.scheduler != DYNAMIC and case.stream and self.grid.stream is not None
        return drawn or homes or case.mean_stay is not None or case.made().draws

    def _task(self, stage: Stage, name: str, case: Any, grid: Task, **arguments: Any) -> Task:
        """A task that simulates a case: all replicates, or the departure of a cluster."""
        jobs = sum(map(expected_jobs, self.grid.workloads))
        return Task(
            stage=stage,
            study=self.name,
            name=name,
            function=f"{_HERE}.stages:{'run_case' if stage == 'simulate' else 'simulate_departure'}",
            arguments={
                "grid": grid,
                "clusters": [plain(each) for each in self.grid.clusters],
                "case": plain(case),
                "graph": next((plain(graph) for graph in self.grid.graphs if graph.name == case.graph), None),
                "align": self.grid.align,
                "estimates": self.estimates[0],
                **arguments,
            },
            also={"files": event_files(self.grid.clusters)},
            labels=arguments.get("labels", {}),
            cost=0.2 + self.draws(self.grid) * jobs / 50_000,
            memory=2000,
        )

    def _parameters(self, case: _Case) -> dict[str, Any]:
        """What is varied of a case: numbers and texts by their names."""
        keys = dict.fromkeys(key for sweep in self.sweeps for key in (sweep.factor, *sweep.among))
        values = {key: getattr(case, key) for key in keys if key not in (*_OF_SCENARIOS, "scheduler")}
        return {
            "system": case.scheduler,
            **{
                key: value if _is_number(value) else shown_value(value)
                for key, value in values.items()
                if value is not None
            },
        }

    # --- figures --------------------------------------------------------------------------------------

    @property
    def _responses(self) -> list[DynamicSweepConfig]:
        """Sweeps with enough numbers for lines."""
        return [
            sweep
            for sweep in self.sweeps
            if sum(map(_is_number, {getattr(case, sweep.factor) for case in self.cases_of(sweep)})) > 2
        ]

    @property
    def _lines(self) -> dict[str, dict[str, str]]:
        """Coordinate of each sweep that has lines: what a case has besides the factor, by label."""
        return {
            _line_of(sweep): {
                self.label_of(case): self.label_of(
                    case.model_copy(update={sweep.factor: getattr(self.default, sweep.factor)})
                )
                for case in self.cases_of(sweep)
            }
            for sweep in self._responses
        }

    def _differing_in(self, *keys: str) -> list[str]:
        """Labels of cases that differ from the default in these alone, the default first."""
        found = (label for (_, label), case in self.cases.items() if self._changes(case).keys() <= {*keys})
        return list(dict.fromkeys(found))

    @property
    def specifications(self) -> list[Specification]:
        """Figures of the study; what has nothing to show is not drawn."""
        default, names = self.labels[0], self._differing_in(*CASE_KEYS)
        of_users = [f"users of {name}" for name in self.cluster_names]
        of_grid = [f"users of {GRID_USERS}"] if self.grid.stream is not None else []
        scenarios = list(dict.fromkeys(label for (label, _), case in self.cases.items() if case.stream))
        main = self._differing_in("graph", "scheduler") if len(names) > MOST_CASES else names
        without, lines = self._differing_in("without")[1:], self._lines
        drawn = {*without, *(label for labels in lines.values() for label in labels)}
        variants = [label for label in names if label not in drawn]

        ranking = Specification(
            name="ranking",
            form="ranking",
            title="Cases compared",
            measures=("response_time_mean",),
            where={"scenario": scenarios, "scheduler": [ALONE, *main]},
        )

        def where(*schedulers: str, **labels: Any) -> dict[str, Any]:
            return {"scenario": scenarios, "scheduler": [*schedulers], **labels}

        found = [
            replace(
                ranking,
                name="users",
                title="Effect of the grid on its users",
                hue="group",
                lanes="scheduler",
                where=where(
                    *(ALONE, default, *(name for name in names if name == "graph complete")),
                    group=[ALL, "users of sites", *of_grid, *of_users],
                ),
                against=ALONE,
                finding=f"{_HERE}.findings:of_users",
                caption="The grid's own users are compared with the cluster of their workload.",
            ),
            ranking,
            replace(
                ranking,
                name="joining",
                title="Effect of a cluster that stays out",
                hue="group",
                facets="scheduler",
                lanes="scenario",
                where=where(default, *without, group=[*of_users, *of_grid]),
                against=default,
                finding=f"{_HERE}.findings:joining",
            ),
            *(
                replace(
                    ranking,
                    name=f"response-{sweep.name}",
                    form="response",
                    title=f"Response to {sweep.factor.replace('_', ' ')}",
                    x=sweep.factor,
                    hue=_line_of(sweep),
                    where=where(ALONE, *lines[_line_of(sweep)]),
                )
                for sweep in self._responses
            ),
            replace(
                ranking,
                name="variants",
                title="Other rules and conditions",
                where=where(default, *variants),
                against=default,
            ),
            replace(
                ranking,
                name="making-place",
                title="Grid jobs that make place",
                measures=("yield_wait_mean", "suspensions"),
                where=where(*main),
                reference="",
            ),
            Specification(
                name="map",
                form="map",
                title="Where work is done",
                own=f"{_HERE}.drawing:grid_map",
                finding=f"{_HERE}.findings:flows",
                parameters={
                    "scenario": scenarios[0],
                    "cases": self._differing_in("graph")[:MOST_MAPS],
                    "names": self.cluster_names,
                },
            ),
        ]
        shown = {"joining": bool(without), "variants": len(variants) > 1 and names != main}
        return [each for each in found if shown.get(each.name, True)]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        kind, draws = self.replicates_are(self.grid), self.draws(self.grid)
        replicates = {
            "draws": f"{draws} independent draws of all workloads and of what is random in a case",
            "blocks": f"up to {BLOCKS} blocks of consecutive jobs, joined where they depend on each other; "
            "random graphs, shares and leaves are drawn once",
        }.get(kind, f"{draws} {kind}")
        return [
            "Every schedule is verified against the rules of the model.",
            f"{ALONE}: every cluster serves its own users; those of the grid have a cluster, too.",
            f"Default case: graph {self.default.graph}, local policy {self.default.local}, overhead "
            f"{self.default.overhead:g}; other cases differ in what they are named after.",
            "Jobs that a local scheduler sends to the grid count for the users of their cluster.",
            "Means are over jobs that ran; the grid rejects jobs larger than every clique of clusters.",
            f"Replicates: {replicates}.",
        ]


MOST_MAPS = 4

_OF_SCENARIOS = ("policy", "stream")
"""Keys of cases that make scenarios."""


def _line_of(sweep: DynamicSweepConfig) -> str:
    """Coordinate of what cases of a sweep have besides its factor."""
    return f"scheduler_{WITHOUT}_{sweep.factor}_{sweep.name}".replace("-", "_")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_DEPARTURE = Specification(
    name="departure",
    form="series",
    title="A cluster leaves the grid",
    own=f"{_HERE}.drawing:departure",
    finding=f"{_HERE}.findings:departure",
)
"""The figure of a cluster that leaves."""


def shown_value(value: Value) -> str:
    """Value of a factor as labels show it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)

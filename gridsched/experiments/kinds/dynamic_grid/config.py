"""What studies of dynamic grids say: clusters, graphs, the default case, and what is changed in it.

A *case* is a scenario with a scheduler. The default case is run, and each sweep changes one factor of it;
other factors may be crossed with it. The label of a case says how it differs from the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, Self

import xarray as xr
from pydantic import Field, StrictBool, ValidationError, create_model, model_validator

from gridsched.errors import GridschedError
from gridsched.experiments.collection import ALL
from gridsched.experiments.comparing import TABLES, WITHOUT
from gridsched.experiments.derived import keys
from gridsched.experiments.inputs import event_files, expected_jobs, failure_seed, plain, prepared_grid
from gridsched.experiments.measuring import BLOCKS
from gridsched.experiments.parts import ScenarioConfig, WorkloadConfig
from gridsched.experiments.schedulers import AnyScheduler, combinations, labelled, scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import FROM_SUBMISSION, Replicates, SchedulerStudy
from gridsched.experiments.tasks import Experiment, Figure, Task
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


def made_graph(clusters: Sequence[str], name: str, config: DynamicGraphConfig | None, seed: int) -> Any:
    """Graph of a name between clusters; the seed is for the edges of a random one."""
    if config is None:
        kind: Any = name
        return grid_graph(clusters, kind)
    if config.edges is not None:
        return graph_of_edges(clusters, config.edges)
    return grid_graph(clusters, "random", mean_degree=config.mean_degree, seed=seed)


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
    """A case with all replicates; every cluster on its own where there is no case.

    Parameters
    ----------
    scenario, scheduler : str
        Labels.
    policy : {"fcfs", "easy"}
        Local policy of all clusters.
    stream : bool
        Whether the jobs of the grid's own users are there.
    case : DynamicCase, optional
        The case.
    """

    scenario: str
    scheduler: str
    policy: PolicyName
    stream: bool
    case: Any = None


class DynamicGridStudy(SchedulerStudy):
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
    sweeps: tuple[DynamicSweepConfig, ...] = ()
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
        unique("graphs", [graph.name for graph in self.grid.graphs])
        for graph in self.grid.graphs:
            try:
                made_graph(self.cluster_names, graph.name, graph, 0)
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

    def graph_named(self, name: str) -> DynamicGraphConfig | None:
        """What the study says of a graph; nothing of one that is always there."""
        return next((graph for graph in self.grid.graphs if graph.name == name), None)

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
        """How a case differs from the default in what is not said by its scenario."""
        default = self.default
        different = {
            key: getattr(case, key)
            for key in CASE_KEYS
            if key not in _OF_SCENARIOS and getattr(case, key) != getattr(default, key)
        }
        return labelled(different, shown_value) or self.labels[0]

    def scenario_of(self, case: _Case) -> str:
        """Label of the scenario of a case: local policy and jobs, where they differ from the default."""
        default, parts = self.default, [self.grid.name]
        if case.local != default.local:
            parts.append(case.local)
        if case.stream != default.stream:
            parts.append("with grid users" if case.stream else "without grid users")
        return ", ".join(parts)

    @property
    def cases(self) -> dict[tuple[str, str], Any]:
        """Every case by its labels, scenario and scheduler, the default first."""
        every = [self.default, *(case for sweep in self.sweeps for _, case in self.points_of(sweep))]
        return {(self.scenario_of(case), self.label_of(case)): case for case in every}

    @property
    def case_labels(self) -> list[str]:
        """Labels of all cases, the default first."""
        return list(dict.fromkeys(label for _, label in self.cases))

    @property
    def reference_label(self) -> str:
        """What cases are compared with: every cluster on its own."""
        return self.reference or ALONE

    @property
    def runs(self) -> list[DynamicGridRun]:
        """Every run: in each scenario every cluster on its own, then the cases."""
        found: dict[tuple[str, str], DynamicGridRun] = {}
        for (scenario, label), case in self.cases.items():
            conditions = (case.local, case.stream and self.grid.stream is not None)
            found.setdefault((scenario, ALONE), DynamicGridRun(scenario, ALONE, *conditions))
            found[scenario, label] = DynamicGridRun(scenario, label, *conditions, case)
        return list(found.values())

    # --- replicates -----------------------------------------------------------------------------------

    @property
    def replicates_are(self) -> str:
        """What replicates are."""
        if self.grid.variation is not None:
            return "resampled logs" if self.grid.resampling is not None else "shaken logs"
        drawn = any(each.synthetic is not None for each in self.grid.workloads)
        return "draws" if drawn else "blocks"

    @property
    def draws(self) -> int:
        """How many replicates are simulated."""
        if self.grid.variation is not None:
            return int(self.grid.variation.replicates)
        return self.replicates if self.replicates_are == "draws" else 1

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        everybody = self.grid.model_copy(update={"clusters": self.grid.workloads})
        grid = prepared_grid(self.name, everybody, range(self.draws), seed)
        departure = [] if self.departure is None else [self._departure(seed, grid)]
        study = Task(
            stage="collect",
            study=self.name,
            name="study",
            function="gridsched.experiments.comparing:collect",
            arguments={
                "runs": [self._run(run, seed, grid) for run in self.runs],
                "labels": {
                    "scenario": list(dict.fromkeys(run.scenario for run in self.runs)),
                    "scheduler": [ALONE, *self.case_labels],
                    "estimates": list(self.estimates),
                },
                "coordinates": {"scheduler": self._lines},
                "grids": [grid],
                "attributes": self.facts(seed),
            },
            memory=3000,
        )
        return Experiment(
            datasets=[study, *departure],
            figures=[*self.drawn(study), *map(_departure_figure, departure)],
            tables=list(TABLES),
        )

    @property
    def _cost(self) -> float:
        """Expected time of a run with all replicates [CPU s]."""
        return 0.2 + self.draws * sum(map(expected_jobs, self.grid.workloads)) / 50_000

    def _common(self, grid: Task, case: _Case | None) -> dict[str, Any]:
        """Arguments that runs and the departure have."""
        graph = None if case is None else self.graph_named(case.graph)
        return {
            "grid": grid,
            "clusters": [plain(each) for each in self.grid.clusters],
            "case": None if case is None else case.model_dump(mode="json", exclude_defaults=True),
            "graph": None if graph is None else plain(graph),
            "align": self.grid.align,
            "estimates": self.estimates[0],
        }

    def _run(self, run: DynamicGridRun, seed: int, grid: Task) -> Task:
        """Simulation of all replicates of a run."""
        labels = {"scenario": run.scenario, "scheduler": run.scheduler}
        case = run.case
        drawn = {"seed": seed} if case is not None and self.has_chance(case) else {}
        return Task(
            stage="simulate",
            study=self.name,
            name=", ".join(labels.values()),
            function=f"{_HERE}.stages:run_case",
            arguments={
                "labels": labels,
                **self._common(grid, case),
                "policy": run.policy,
                "stream": run.stream,
                "overrun": self.overrun,
                "parameters": {"policy": run.policy},
                "scheduler_parameters": {} if case is None else self._parameters(case),
                "replicates_are": self.replicates_are,
                **{"seed": 0, **failure_seed(self.grid.clusters, seed), **drawn},
            },
            also={"files": event_files(self.grid.clusters)},
            labels=labels,
            cost=self._cost / (4 if case is None else 1),
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

    def _departure(self, seed: int, grid: Task) -> Task:
        """The cluster that leaves, looked at closely."""
        assert self.departure is not None
        return Task(
            stage="collect",
            study=self.name,
            name="departure",
            function=f"{_HERE}.stages:simulate_departure",
            arguments={**self._common(grid, self.default), "departure": plain(self.departure), "seed": seed},
            also={"files": event_files(self.grid.clusters)},
            cost=self._cost,
            memory=1500,
        )

    # --- figures --------------------------------------------------------------------------------------

    @property
    def _lines(self) -> dict[str, dict[str, str]]:
        """Coordinate of each sweep that has lines: what a case has besides the factor, by label."""
        return {
            _line_of(sweep): {
                self.label_of(case): self.label_of(self.changed_case("", **others))
                for others, case in self.points_of(sweep)
            }
            for sweep in self.sweeps
            if self._is_response(sweep)
        }

    def _is_response(self, sweep: DynamicSweepConfig) -> bool:
        """Whether a sweep has enough numbers for lines."""
        values = {getattr(case, sweep.factor) for _, case in self.points_of(sweep)}
        return sum(map(_is_number, values)) > 2

    def _differing_in(self, *keys: str) -> list[str]:
        """Labels of cases that differ from the default in these alone, the default first."""
        fixed = [key for key in CASE_KEYS if key not in (*keys, *_OF_SCENARIOS)]
        found = (
            label
            for (_, label), case in self.cases.items()
            if all(getattr(case, key) == getattr(self.default, key) for key in fixed)
        )
        return list(dict.fromkeys(found))

    @property
    def specifications(self) -> list[Specification]:
        """Figures of the study; what has nothing to show is not drawn."""
        default, names = self.labels[0], self.case_labels
        of_users = [f"users of {name}" for name in self.cluster_names]
        others = ["users of sites", *([f"users of {GRID_USERS}"] if self.grid.stream is not None else [])]
        scenarios = list(
            dict.fromkeys(
                label for (label, _), case in self.cases.items() if case.stream == self.default.stream
            )
        )
        where = {"scenario": scenarios}
        main = self._differing_in("graph", "scheduler") if len(names) > MOST_CASES else names
        found = [
            Specification(
                name="users",
                form="ranking",
                title="Effect of the grid on its users",
                measures=("response_time_mean",),
                hue="group",
                lanes="scheduler",
                where={
                    **where,
                    "scheduler": [ALONE, *(name for name in (default, "graph complete") if name in names)],
                    "group": [ALL, *others, *of_users],
                },
                against=ALONE,
                finding=f"{_HERE}.findings:of_users",
                caption="The grid's own users are compared with the cluster of their workload.",
            ),
            Specification(
                name="ranking",
                form="ranking",
                title="Cases compared",
                measures=("response_time_mean",),
                where={**where, "scheduler": [ALONE, *main]},
            ),
        ]
        without = self._differing_in("without")[1:]
        if without:
            found.append(
                Specification(
                    name="joining",
                    form="ranking",
                    title="Effect of a cluster that stays out",
                    measures=("response_time_mean",),
                    hue="group",
                    facets="scheduler",
                    lanes="scenario",
                    where={
                        **where,
                        "scheduler": [default, *without],
                        "group": [*of_users, *others[1:]],
                    },
                    against=default,
                    finding=f"{_HERE}.findings:joining",
                )
            )
        responses = [sweep for sweep in self.sweeps if self._is_response(sweep)]
        found += [self._response(sweep, where) for sweep in responses]
        drawn = {label for sweep in responses for label in self._lines[_line_of(sweep)]}
        variants = [label for label in names if label not in {*drawn, *without}]
        if len(variants) > 1 and names != main:
            found.append(
                Specification(
                    name="variants",
                    form="ranking",
                    title="Other rules and conditions",
                    measures=("response_time_mean",),
                    where={**where, "scheduler": [default, *variants]},
                    against=default,
                )
            )
        maps = self._differing_in("graph")[:MOST_MAPS]
        return [
            *found,
            Specification(
                name="making-place",
                form="ranking",
                title="Grid jobs that make place",
                measures=("yield_wait_mean", "suspensions"),
                where={**where, "scheduler": main},
                reference="",
            ),
            Specification(
                name="map",
                form="map",
                title="Where work is done",
                own=f"{_HERE}.drawing:grid_map",
                finding=f"{_HERE}.findings:flows",
                parameters={"scenario": scenarios[0], "cases": maps, "names": self.cluster_names},
            ),
        ]

    def _response(self, sweep: DynamicSweepConfig, where: Mapping[str, Any]) -> Specification:
        return Specification(
            name=f"response-{sweep.name}",
            form="response",
            title=f"Response to {sweep.factor.replace('_', ' ')}",
            measures=("response_time_mean",),
            x=sweep.factor,
            hue=_line_of(sweep),
            where={**where, "scheduler": [ALONE, *self._lines[_line_of(sweep)]]},
        )

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        number = BLOCKS if self.replicates_are == "blocks" else self.draws
        kinds = {
            "draws": f"{number} independent draws of all workloads and of what is random in a case.",
            "blocks": f"{number} blocks of consecutive jobs, joined where they depend on each other; random "
            "graphs, shares and leaves are drawn once.",
        }
        return [
            "Every schedule is verified against the rules of the model.",
            f"{ALONE}: every cluster serves its own users; those of the grid have a cluster, too.",
            f"Default case: graph {self.default.graph}, local policy {self.default.local}, overhead "
            f"{self.default.overhead:g}; other cases differ in what they are named after.",
            "Jobs that a local scheduler sends to the grid count for the users of their cluster.",
            "Means are over jobs that ran; the grid rejects jobs larger than every clique of clusters.",
            "Replicates: " + kinds.get(self.replicates_are, f"{number} {self.replicates_are}."),
        ]


MOST_MAPS = 4

_OF_SCENARIOS = ("policy", "stream")
"""Keys of cases that make scenarios."""


def _line_of(sweep: DynamicSweepConfig) -> str:
    """Coordinate of what cases of a sweep have besides its factor."""
    return f"scheduler_{WITHOUT}_{sweep.factor}_{sweep.name}".replace("-", "_")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _departure_figure(task: Task) -> Figure:
    specification = Specification(
        name="departure",
        form="series",
        title="A cluster leaves the grid",
        own=f"{_HERE}.drawing:departure",
        finding=f"{_HERE}.findings:departure",
    )
    return Figure(
        name=specification.name, dataset=task, specification=specification.values(), part="Departure"
    )


def shown_value(value: Value) -> str:
    """Value of a factor as labels show it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)

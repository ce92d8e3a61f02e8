"""What studies of dynamic grids say: sites, graphs, the default case, and what is changed in it.

A *case* is a set of parameters. The default case is run, and each sweep changes one factor of it; other
factors may be crossed with it. The label of a case says how it differs from the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, ValidationError, model_validator

from gridsched.errors import GridschedError
from gridsched.io import shown
from gridsched.metrics.dynamic_grid import GRID_USERS
from gridsched.schedulers.dynamic_grid import (
    DynamicGrid,
    NewJobsName,
    OffersName,
    PlacementName,
    PolicyName,
    PreferName,
    PriorityName,
    ReleaseName,
    VictimsName,
)
from gridsched.schedulers.grid_graphs import MOST_CLIQUES, graph_of_edges, grid_graph
from gridsched.schedulers.local import OverrunName
from gridsched.simulation.clusters import EstimateName
from gridsched.study.parts import WorkloadConfig
from gridsched.study.validation import (
    Count,
    Duration,
    Instant,
    Model,
    Number,
    Slug,
    Whole,
    suggestion,
    unique,
    unique_files,
)

SITE_USERS, ALL_USERS = "sites", "all"
"""Labels of the users of all sites, and of them and those of the grid."""

GROUPS = (GRID_USERS, SITE_USERS, ALL_USERS)
"""Labels that no site can have."""

NAMED_GRAPHS = ("isolated", "ring", "complete")
"""Graphs that need nothing but the sites."""

DYNAMIC, SUPERSCHEDULER = "dynamic-grid", "superscheduler"

Value = StrictBool | Whole | Number | str | None
"""Value of a factor."""


class DynamicCaseConfig(Model):
    """Parameters of a run of a dynamic grid."""

    scheme: Literal["dynamic-grid", "superscheduler"] = "dynamic-grid"
    """The grid scheduler: that of the model, or, on the same jobs, a sender-initiated superscheduler, which
    moves jobs between neighbours before they start and never runs one on several clusters."""
    policy: PolicyName = "fcfs"
    """Local policy; the paper has the first, EASY backfilling is an extension."""
    graph: str = "ring"
    """Which sites are neighbours: isolated, ring, complete, or a name of `graphs`."""
    stream: StrictBool = True
    """Whether the jobs of the grid's own users are there."""
    share: Number = Field(0.0, ge=0, le=1)
    """Share of the jobs of each site that its users submit to the grid scheduler, drawn at random."""
    without: str | None = None
    """Site that never joins the grid and serves its own users alone."""
    overhead: Number = 1.25
    """Factor by which running over several clusters stretches a job, in thousandths, 1 or more."""
    delta_t: Duration | None = 600
    """How long a local job may wait as the first of its queue, seconds; null is without limit."""
    superstep: Count = 10
    """Seconds between the times when a grid job can be stopped."""
    migration_cost: Number = 0.1
    """Seconds that it takes to move a task, in thousandths."""
    resume_cost: Number | None = None
    """The same for the tasks of a job that was suspended; by default as `migration_cost`."""
    status_period: Duration = 60
    """Seconds between reports; 0 if every change is known at once."""
    stop_factor: Number | None = None
    """Jobs that run for longer than this times their estimate are stopped; none by default."""
    migration: StrictBool = True
    """Whether tasks move to neighbours."""
    checkpoint: StrictBool = True
    """Whether a suspended job keeps what it has done."""
    prefer: PreferName = "wait"
    """What is tried first for a local job that does not fit: wait, or let grid jobs migrate."""
    victims: VictimsName = "fitting"
    """Which grid jobs make place: as few as possible, or those that came last."""
    placement: PlacementName = "tightest"
    """Whether the cluster with the fewest processors that suffice is chosen, or that with the most."""
    new_jobs: NewJobsName = "any"
    """Whether any new job is a candidate, or the first only."""
    priority: PriorityName = "blocked"
    """Whether new jobs are looked at if the first suspended one has no place, or only while none waits."""
    offers: OffersName = "unclaimed"
    """Whether a cluster offers nothing while a local job waits, or all idle processors."""
    release: ReleaseName = "suspended"
    """When the processors that tasks leave are free: once the tasks are suspended, or have moved."""
    most_sites: Count | None = None
    """Clusters over which a job can run; any number by default."""
    most_cliques: Count = MOST_CLIQUES
    """Maximal cliques that are looked for."""
    mean_stay: Count | None = None
    """Mean time for which a cluster stays in the grid, seconds; all stay for good by default."""
    mean_absence: Count = 14_400
    """Mean time until a cluster that has left comes back, seconds."""
    lease: Count | None = None
    """Length of the leases, seconds; without leases nobody knows when a cluster leaves."""
    heed_leases: StrictBool = False
    """Whether a job is sent only where leases last for its estimate."""
    overrun: OverrunName = "doubling"
    """Expected end of a job that outruns its estimate: estimates double, or grow by increments."""

    def options(self) -> DynamicGrid:
        """Parameters of the model."""
        own = set(type(self).model_fields) & set(DynamicGrid.__dataclass_fields__)
        return DynamicGrid(**{key: getattr(self, key) for key in own})

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.options()
        except GridschedError as error:
            raise ValueError(str(error)) from None
        if self.lease is not None and self.mean_stay is None:
            raise ValueError("lease: clusters that stay for good need none; give mean_stay")
        if self.scheme == SUPERSCHEDULER and (self.share or self.without or self.mean_stay):
            raise ValueError("scheme: a superscheduler knows no share, without or mean_stay; leave them out")
        return self


class DynamicGraphConfig(Model):
    """Which sites are neighbours."""

    alternatives = ("mean_degree", "edges")

    name: Slug
    """Name of the graph."""
    mean_degree: Number | None = Field(None, ge=0)
    """Mean number of neighbours of a site, whose edges are drawn at random."""
    edges: tuple[tuple[str, str], ...] | None = None
    """Pairs of sites."""

    @model_validator(mode="after")
    def _free_name(self) -> Self:
        if self.name in NAMED_GRAPHS:
            raise ValueError(f"name: {self.name!r} is a graph that is always there; choose another")
        return self


class DynamicSweepConfig(Model):
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
        known = list(DynamicCaseConfig.model_fields)
        for where, key in (("factor", self.factor), *(("among", key) for key in self.among)):
            if key not in known:
                raise ValueError(f"{where}: unknown key {key!r}; {suggestion(key, known)}")
        if self.factor in self.among:
            raise ValueError(f"among: {self.factor!r} is the factor itself; leave it out")
        return self

    def crossed(self) -> Iterator[dict[str, Value]]:
        """Each combination of values of the other factors."""
        for values in product(*self.among.values()):
            yield dict(zip(self.among, values, strict=True))


class DepartureConfig(Model):
    """A site that leaves the grid of the default case once, to be looked at closely."""

    site: str
    """The site."""
    time: Instant
    """When it leaves, seconds after the first submission."""
    absence: Count = 43_200
    """Seconds until it comes back."""
    margin: Count = 7200
    """Seconds before and after that are shown."""


class DynamicGridParts(Model):
    """What a study of dynamic grids says besides its name."""

    kind: Literal["dynamic-grid"]
    """What is studied."""
    sites: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1, max_length=1000)]
    """The sites: clusters, each with the jobs that its own users submit."""
    stream: WorkloadConfig | None = None
    """Jobs that are submitted to the grid scheduler; its machine is what they are compared with."""
    estimates: EstimateName = "requested"
    """What the schedulers believe of run times."""
    align: Literal["start", "clock", "none"] = "start"
    """How submit times go together: all begin at once, by the clock of the logs, or as they are written."""
    graphs: tuple[DynamicGraphConfig, ...] = ()
    """Graphs besides isolated, ring and complete."""
    default: DynamicCaseConfig = DynamicCaseConfig()
    """The default case."""
    sweeps: tuple[DynamicSweepConfig, ...] = ()
    """What is changed in it."""
    replicates: Annotated[Whole, Field(ge=1, le=10_000)] = 1
    """How often cases with chance in them are run: random graphs, shares, churn."""
    departure: DepartureConfig | None = None
    """A site that leaves once, to be looked at closely."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check_sites()
        unique("graphs", [graph.name for graph in self.graphs])
        for graph in self.graphs:
            try:
                self.graph_of(graph.name, 0)
            except GridschedError as error:
                raise ValueError(f"graphs[{graph.name}]: {error}") from None
        unique("sweeps", [sweep.name for sweep in self.sweeps])
        self._check_case("default", self.default)
        for sweep in self.sweeps:
            for _, case in self.points_of(sweep):
                self._check_case(f"sweeps[{sweep.name}]", case)
        if self.departure is not None and self.departure.site not in self.site_names:
            raise ValueError(
                f"departure.site: found {shown(self.departure.site)}; "
                f"{suggestion(self.departure.site, self.site_names)}"
            )
        return self

    def _check_sites(self) -> None:
        everybody = [*self.sites, *([self.stream] if self.stream else [])]
        unique_files("sites, stream", [site.name for site in everybody])
        speeds = {site.cluster.speed or 1.0 for site in everybody}
        if len(speeds) > 1:
            raise ValueError("sites: their speeds differ; in a dynamic grid all processors are equal")
        for site in everybody:
            if site.name in GROUPS:
                raise ValueError(f"sites: the name {site.name!r} stands for users; choose another")
            exclusive = site.cluster.node_exclusive
            if exclusive or (exclusive is None and site.synthetic is not None):
                raise ValueError(
                    f"sites: a node of {site.name} runs one job only, but in a dynamic grid jobs share "
                    "nodes; write cluster: {node_exclusive: false}"
                )

    def _check_case(self, where: str, case: DynamicCaseConfig) -> None:
        graphs = [*NAMED_GRAPHS, *(graph.name for graph in self.graphs)]
        if case.graph not in graphs:
            raise ValueError(f"{where}: graph: found {shown(case.graph)}; {suggestion(case.graph, graphs)}")
        if case.without is not None and case.without not in self.site_names:
            raise ValueError(
                f"{where}: without: found {shown(case.without)}; {suggestion(case.without, self.site_names)}"
            )

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study, that of the grid's own users last."""
        return (*self.sites, *([self.stream] if self.stream is not None else []))

    @property
    def site_names(self) -> list[str]:
        """Names of the sites."""
        return [site.name for site in self.sites]

    def graph_of(self, name: str, seed: int) -> Any:
        """Graph of a name; the seed is for the edges of a random one."""
        if name in NAMED_GRAPHS:
            kind: Any = name
            return grid_graph(self.site_names, kind)
        graph = next(graph for graph in self.graphs if graph.name == name)
        if graph.edges is not None:
            return graph_of_edges(self.site_names, graph.edges)
        return grid_graph(self.site_names, "random", mean_degree=graph.mean_degree, seed=seed)

    def has_chance(self, case: DynamicCaseConfig) -> bool:
        """Whether a case depends on random numbers."""
        drawn = any(graph.name == case.graph and graph.mean_degree is not None for graph in self.graphs)
        homes = case.scheme == SUPERSCHEDULER and case.stream and self.stream is not None
        return drawn or homes or case.mean_stay is not None or 0 < case.share < 1

    def changed_case(self, where: str, **changes: Value) -> DynamicCaseConfig:
        """The default case with other values of some keys."""
        try:
            return DynamicCaseConfig.model_validate({**self.default.model_dump(), **changes})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"])) or "values"
            found = f"found {shown(first['input'])}; " if first["loc"] else ""
            message = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"{where}: {key}: {found}{message[0].lower()}{message[1:]}") from None

    def points_of(self, sweep: DynamicSweepConfig) -> Iterator[tuple[dict[str, Value], DynamicCaseConfig]]:
        """Cases of a sweep with the values of the other factors, the one of the default value first."""
        where = f"sweeps[{sweep.name}]"
        for others in sweep.crossed():
            base = getattr(self.default, sweep.factor)
            cases = [
                self.changed_case(where, **others, **{sweep.factor: value})
                for value in (base, *(value for value in sweep.values if value != base))
            ]
            yield from ((others, case) for case in dict.fromkeys(cases))

    def label_of(self, case: DynamicCaseConfig) -> str:
        """How a case differs from the default."""
        different = [
            f"{key} {shown_value(getattr(case, key))}"
            for key in type(case).model_fields
            if getattr(case, key) != getattr(self.default, key)
        ]
        return ", ".join(different) or "default"

    @property
    def cases(self) -> dict[str, DynamicCaseConfig]:
        """Every case by its label, the default first."""
        every = [self.default, *(case for sweep in self.sweeps for _, case in self.points_of(sweep))]
        return {self.label_of(case): case for case in every}

    @property
    def policies(self) -> list[PolicyName]:
        """Local policies of all cases."""
        return list(dict.fromkeys(case.policy for case in self.cases.values()))


def shown_value(value: Value) -> str:
    """Value of a factor as labels show it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)

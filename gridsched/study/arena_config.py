"""What studies of the arena are made of: contenders of all systems with their parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, model_validator

from gridsched.arena import (
    IDEAL_MACHINE,
    Brokered,
    Calendared,
    Contender,
    Dynamic,
    Packed,
    Pooled,
    SelfScheduled,
)
from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.schedulers.calendars import CalendarOptions, PlacementName, SlotPlan
from gridsched.schedulers.costs import COST
from gridsched.schedulers.dynamic_grid import DynamicGrid, PolicyName
from gridsched.schedulers.grid_graphs import GraphName
from gridsched.schedulers.jscheduler import JScheduler, MetricName, PredictionsName
from gridsched.schedulers.multicluster import LocalName
from gridsched.schedulers.titan import Titan
from gridsched.simulation.multicluster import DispatcherName, EndsName, Multicluster, RoundsName
from gridsched.study.parts import SCHEMES, SchemeConfig, scheme_of
from gridsched.study.validation import (
    BY_NAME,
    BY_PARTS,
    Count,
    Duration,
    Label,
    Model,
    Number,
    Whole,
    suggestion,
)
from gridsched.workloads.deadlines import ServiceClass

Name = Annotated[Label, Field(max_length=60)]
Times = Annotated[Number, Field(ge=1, le=1000)]


class ContenderConfig(Model):
    """What every contender says of itself."""

    name: Name
    """Label in figures and tables."""

    @abstractmethod
    def contender(self) -> Contender:
        """The contender that this describes."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.contender()
        except GridschedError as error:
            raise ValueError(str(error)) from None
        return self


def _known_metric(name: str) -> str:
    """Name of a metric, or place of a function."""
    if ":" not in name and name not in get_args(MetricName):
        raise ValueError(
            f"unknown metric; {suggestion(name, get_args(MetricName))}, or path/to/file.py:function"
        )
    return name


class SelfSchedulingContender(ContenderConfig):
    """Self-scheduling: jobs choose among some machines, whatever their home."""

    system: Literal["self-scheduling"]
    """The system."""
    metric: Annotated[str, AfterValidator(_known_metric)] = "wait"
    """What jobs want smallest: wait, slowdown, response, queued-jobs, work-left, or a cost of one's own,
    path/to/file.py:function (see `config/costs/example.py`)."""
    k: Count = 4
    """Machines that a job asks."""
    predictions: PredictionsName = "exact"
    """How waits are predicted: by simulating the local policy on, or from a conservative plan."""

    def contender(self) -> Contender:
        """The contender that this describes."""
        metric = COST.load(self.metric) if ":" in self.metric else cast(MetricName, self.metric)
        return SelfScheduled(jscheduler=JScheduler(metric=metric, k=self.k, predictions=self.predictions))


class MulticlusterContender(ContenderConfig):
    """MUSCLE or a rival, with the local scheduler below it."""

    system: Literal["multicluster"]
    """The system."""
    dispatcher: DispatcherName = "muscle"
    """Who allocates jobs to machines: MUSCLE, dynamic least load, or weighted random."""
    local: LocalName = "titan"
    """Local scheduler: the genetic algorithm, the schedule that it would start from, or EASY."""
    rounds: RoundsName = "collected"
    """Whether jobs are collected, or handed over when they arrive."""
    ends: EndsName = "all"
    """Whose queue ends a collection: that of the first machine or of the last."""
    threshold: Duration = 0
    """Expected makespan of what waits, in seconds, at which a collection ends."""
    population: Annotated[Count, Field(ge=2, le=10_000)] = 50
    """Schedules of a generation of the genetic algorithm."""
    generations: Annotated[Whole, Field(ge=0, le=100_000)] = 100
    """Most generations."""
    deadlines: tuple[Number, Number] = (0.0, 5.0)
    """Range of the deadlines, as multiples of the run time that are added to it."""

    def contender(self) -> Contender:
        """The contender that this describes."""
        low, high = self.deadlines
        return Packed(
            multicluster=Multicluster(
                dispatcher=self.dispatcher,
                local=self.local,
                rounds=self.rounds,
                ends=self.ends,
                threshold=self.threshold,
                titan=Titan(population=self.population, generations=self.generations),
            ),
            deadlines=ServiceClass(name="all", low=low, high=high),
        )


class CalendarContender(ContenderConfig):
    """Imprecise calendars on two levels."""

    system: Literal["calendars"]
    """The system."""
    slots: Annotated[tuple[tuple[Count | None, Count], ...], Field(min_length=1)] | None = None
    """Numbers and durations in seconds of the slots, finest first, the last with null for as many as needed;
    by default 120 of each duration from a minute on, which doubles seven times."""
    promote_share: Annotated[Number, Field(ge=0, le=1)] = 1 / 3
    """A job goes up if it asks for more than this share of the processors of its machine."""
    promote_duration: Annotated[Duration, Field(le=LARGEST)] = 43_200
    """A job goes up if its estimate is so many seconds or more."""
    placement: PlacementName = "unbiased"
    """Which of several machines with equally early places gets a job: the first, or any."""

    def contender(self) -> Contender:
        """The contender that this describes."""
        parts: dict[str, Any] = {}
        if self.slots is not None:
            parts["options"] = CalendarOptions(slots=SlotPlan(levels=self.slots))
        return Calendared(
            promote_share=self.promote_share,
            promote_duration=self.promote_duration,
            placement=self.placement,
            **parts,
        )


class DynamicContender(ContenderConfig):
    """A dynamic grid of neighbours."""

    system: Literal["dynamic-grid"]
    """The system."""
    graph: GraphName = "complete"
    """Which machines are neighbours."""
    overhead: Times = 1.25
    """Factor by which running over several machines stretches a job."""
    delta_t: Duration | None = 600
    """How long a local job may wait before grid jobs leave for it, seconds; null: as long as it takes."""
    migration_cost: Annotated[Number, Field(ge=0, le=1e6)] = 0.1
    """Seconds that it takes to move a task."""
    policy: PolicyName = "easy"
    """Local policy."""

    def contender(self) -> Contender:
        """The contender that this describes."""
        options = DynamicGrid(
            overhead=self.overhead,
            delta_t=self.delta_t,
            migration_cost=self.migration_cost,
            policy=self.policy,
        )
        return Dynamic(graph=self.graph, options=options)


SYSTEMS: dict[str, type[ContenderConfig]] = {
    "self-scheduling": SelfSchedulingContender,
    "multicluster": MulticlusterContender,
    "calendars": CalendarContender,
    "dynamic-grid": DynamicContender,
}
"""Systems besides superschedulers and ideal machines, which are written as in studies of grids."""


def _way_of_writing(value: Any) -> Hashable:
    """Tag of the model that is meant, so that an error speaks of that one."""
    if isinstance(value, BaseModel):
        system = getattr(value, "system", None)
    elif isinstance(value, dict):
        system = value.get("system")
    else:
        return BY_NAME
    return f"by {system}" if isinstance(system, str) and system in SYSTEMS else BY_PARTS


def _known_scheme(name: str) -> str:
    """Name of a scheme with its default parameters."""
    if name not in SCHEMES:
        raise ValueError(f"unknown contender; {suggestion(name, SCHEMES)}, or parts with a system")
    return name


AnyContender = Annotated[
    Annotated[str, AfterValidator(_known_scheme), Tag(BY_NAME)]
    | Annotated[SchemeConfig, Tag(BY_PARTS)]
    | Annotated[SelfSchedulingContender, Tag("by self-scheduling")]
    | Annotated[MulticlusterContender, Tag("by multicluster")]
    | Annotated[CalendarContender, Tag("by calendars")]
    | Annotated[DynamicContender, Tag("by dynamic-grid")],
    Discriminator(_way_of_writing),
]
"""A contender: name of a scheme, a scheme with parameters, or another system."""


def contender_of(written: str | SchemeConfig | ContenderConfig) -> Contender:
    """Contender of a study's configuration."""
    if isinstance(written, ContenderConfig):
        return written.contender()
    scheme = scheme_of(written)
    if scheme.is_ideal:
        return Pooled(form=scheme.ideal_form)
    return Brokered(superscheduler=scheme.superscheduler())


def system_of(written: str | SchemeConfig | ContenderConfig) -> str:
    """System that a contender belongs to."""
    if isinstance(written, ContenderConfig):
        return str(getattr(written, "system", ""))
    return IDEAL_MACHINE if scheme_of(written).is_ideal else "superscheduler"

"""What studies of multiclusters are made of: points with clusters and jobs, and schemes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from gridsched.errors import GridschedError
from gridsched.platforms import Cluster
from gridsched.schedulers.multicluster import LoadName, LocalName, SeedingName
from gridsched.schedulers.titan import IdleName, Titan, Weights
from gridsched.simulation.multicluster import (
    DispatcherName,
    EndsName,
    Multicluster,
    ResourceChange,
    RoundsName,
)
from gridsched.study.parts import WorkloadConfig
from gridsched.study.validation import (
    BY_NAME,
    BY_PARTS,
    Count,
    Duration,
    Factor,
    Instant,
    Label,
    Model,
    Number,
    Slug,
    Whole,
    suggestion,
    unique,
    way_of_writing,
)
from gridsched.workloads.bounded_pareto import BoundedPareto
from gridsched.workloads.deadlines import ServiceClass
from gridsched.workloads.multicluster import MulticlusterModel, SizesName

AxisName = Literal["level", "deadlines", "clusters", "none"]

Share = Annotated[Number, Field(ge=0, le=1)]
Weight = Annotated[Number, Field(ge=0, le=1e9)]
Processors = Annotated[Whole, Field(ge=0, le=2**15 - 1)]
"""Processors that a cluster has, maybe none for a while."""


def _checked(make: Any, **values: Any) -> Any:
    """What is made of the values; a mistake of theirs is one of the configuration."""
    try:
        return make(**values)
    except GridschedError as error:
        raise ValueError(str(error).partition(": ")[2] or str(error)) from None


class WeightsConfig(Model):
    """What a cluster wants of its schedules, equation (1); only the ratios matter."""

    over_deadline: Weight = 4.0
    """Weight of the time over deadlines."""
    makespan: Weight = 3.0
    """Weight of the makespan."""
    idle: Weight = 1.0
    """Weight of the idle time."""
    idle_time: IdleName = "holes"
    """Up to when the idle time of a processor counts: its last job, or the makespan."""

    def weights(self) -> Weights:
        """The weights."""
        return Weights(**self.model_dump())

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        _checked(Weights, **self.model_dump())
        return self


class MemberConfig(Model):
    """A cluster of a multicluster."""

    name: Slug
    """Name in figures."""
    processors: Annotated[Whole, Field(ge=1, le=2**15 - 1)]
    """Processors at first."""
    speed: Number = Field(1.0, ge=0.001, le=1_000_000)
    """Speed relative to the machine of the jobs."""
    weights: WeightsConfig | None = None
    """What the cluster wants; by default what all want."""

    def cluster(self) -> Cluster:
        """The cluster."""
        return Cluster(name=self.name, processors=self.processors, speed=self.speed)


class ServiceClassConfig(Model):
    """Jobs that are promised the same: deadlines are (1 + ratio) times the longest run time."""

    name: Annotated[Slug, Field(max_length=30)] = "all"
    """Name in tables."""
    low: Number = Field(0.0, ge=0, le=1e6)
    """Smallest deadline ratio."""
    high: Number = Field(5.0, ge=0, le=1e6)
    """Largest deadline ratio."""
    share: Weight = 1.0
    """Share of the jobs, relative to those of the other classes."""

    def service_class(self) -> ServiceClass:
        """The class."""
        return ServiceClass(**self.model_dump())

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        _checked(ServiceClass, **self.model_dump())
        return self


class ChangeConfig(Model):
    """From a time on, a cluster has another number of processors; the highest are added or removed."""

    time: Instant
    """Seconds after the first submission."""
    cluster: Slug
    """Name of the cluster."""
    processors: Processors
    """Processors from then on, 0 if it is gone."""

    def change(self) -> ResourceChange:
        """The change."""
        return ResourceChange(self.time, self.cluster, self.processors)


class JobsConfig(Model):
    """Jobs that are submitted: drawn, or those of a log. Give one of level, load and log."""

    count: Annotated[Whole, Field(ge=1, le=10_000_000)] = 20_000
    """Number of jobs that are drawn."""
    level: Number | None = Field(None, gt=0, le=1e6)
    """Mean number of collected jobs: the rate of arrivals is set so that a scheme meets it, see the guide."""
    level_of: DispatcherName = "muscle"
    """The scheme that meets the level."""
    load: Number | None = Field(None, gt=0, le=1000)
    """Work that arrives relative to what the clusters can do."""
    log: WorkloadConfig | None = None
    """A log; its machine holds the largest jobs that are not left out, by default the largest cluster."""
    speed_up: Factor = 1.0
    """Times between submissions of a log are divided by this."""
    alpha: Number = Field(1.0, gt=0, le=100)
    """Exponent of the bounded Pareto distribution of run times."""
    shortest: Number = Field(5.0, gt=0, le=1e9)
    """Shortest run time on a cluster of speed 1, units of time."""
    longest: Number = Field(100.0, gt=0, le=1e9)
    """Longest run time on a cluster of speed 1, units of time."""
    unit: Annotated[Whole, Field(ge=1, le=1_000_000)] = 1000
    """Seconds of a unit of time."""
    sizes: SizesName = "uniform"
    """Distribution of sizes: uniform, normal, or such that the probability of fewer than n grows as log n."""
    smallest: Count = 1
    """Smallest size, processors."""
    largest: Count = 10
    """Largest size, processors."""
    prediction_error: Number = Field(0.0, ge=0, le=10)
    """Standard deviation of the logarithm of predicted over actual run times."""
    at_clusters: Share = 0.0
    """Share of the jobs that enter at a cluster, each drawn, and not at the grid scheduler."""
    announcement_delay: Duration = 0
    """Seconds after which a job that enters at a cluster is known to the grid scheduler."""

    def model(self) -> MulticlusterModel:
        """Distributions of jobs that are drawn."""
        return MulticlusterModel(
            run_time=BoundedPareto(self.alpha, self.shortest, self.longest),
            sizes=self.sizes,
            smallest=self.smallest,
            largest=self.largest,
            unit=self.unit,
        )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        _checked(BoundedPareto, shape=self.alpha, low=self.shortest, high=self.longest)
        if self.smallest > self.largest:
            raise ValueError(f"smallest: {self.smallest} is more than {self.largest}, which is largest")
        return self


class ConditionsConfig(Model):
    """What is the same for all schemes: clusters, jobs and their deadlines, when jobs are handed over."""

    clusters: tuple[MemberConfig, ...] = ()
    """The clusters."""
    weights: WeightsConfig = WeightsConfig()
    """What all clusters want that have no weights of their own."""
    jobs: JobsConfig = JobsConfig()
    """What is submitted."""
    classes: Annotated[tuple[ServiceClassConfig, ...], Field(min_length=1)] = (ServiceClassConfig(),)
    """Deadlines, by service class."""
    resources: tuple[ChangeConfig, ...] = ()
    """Processors that are added and removed."""
    ends: EndsName = "all"
    """Jobs are collected until the clusters have no more to do than `threshold`: all of them, or any, as the
    paper has it."""
    threshold: Duration = 0
    """Expected makespan of the jobs that wait at a cluster at which it has no more to do, seconds."""

    def platform(self) -> list[Cluster]:
        """The clusters."""
        return [member.cluster() for member in self.clusters]

    def all_weights(self) -> list[Weights]:
        """What each cluster wants."""
        return [(member.weights or self.weights).weights() for member in self.clusters]

    def service_classes(self) -> list[ServiceClass]:
        """Classes of the jobs."""
        return [each.service_class() for each in self.classes]

    @property
    def capacity(self) -> float:
        """Work that the clusters can do in a unit of time."""
        return sum(member.processors * member.speed for member in self.clusters)


class PointConfig(ConditionsConfig):
    """A point of a study: what it does not say itself is as in `common`."""

    name: Slug
    """Name in figures and file names."""
    schemes: tuple[Label, ...] | None = None
    """Labels of the schemes that are run here; by default those without comma and + in their label."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [member.name for member in self.clusters]
        if not names:
            raise ValueError("clusters: give at least one, here or in common")
        unique("clusters", names)
        given = [key for key in ("level", "load", "log") if getattr(self.jobs, key) is not None]
        if len(given) != 1:
            raise ValueError(f"jobs: give one of level, load, log (found {', '.join(given) or 'none'})")
        if self.jobs.log is not None and not self.jobs.log.is_log:
            raise ValueError("jobs.log: give an archive or a file; other jobs are drawn without it")
        most = max(member.processors for member in self.clusters)
        if self.jobs.log is None and self.jobs.largest > most:
            raise ValueError(
                f"jobs.largest: {self.jobs.largest}, but the largest cluster has {most} processors"
            )
        unique("classes", [each.name for each in self.classes])
        if not sum(each.share for each in self.classes) > 0:
            raise ValueError("classes: no class has a share; give one of them a positive share")
        for change in self.resources:
            if change.cluster not in names:
                raise ValueError(
                    f"resources: no cluster {change.cluster!r}; {suggestion(change.cluster, names)}"
                )
        return self

    def calibration(self) -> dict[str, Any] | None:
        """What the rate of arrivals at a level depends on; None where it is given.

        All clusters have the default weights and deadlines the default range there, so that points which
        differ in these alone have the same jobs.
        """
        if self.jobs.level is None:
            return None
        keys = ("count", "level", "alpha", "shortest", "longest", "unit", "sizes", "smallest", "largest")
        return {
            "clusters": [[member.processors, member.speed] for member in self.clusters],
            **{key: getattr(self.jobs, key) for key in keys},
            "ends": self.ends,
            "threshold": self.threshold,
            # not said of MUSCLE, so that rates which were found for it before stay valid
            **({} if self.jobs.level_of == "muscle" else {"level_of": self.jobs.level_of}),
        }

    @property
    def calibration_key(self) -> str | None:
        """Short name of the calibration; None where the rate is given."""
        values = self.calibration()
        return None if values is None else key_of(values)


def key_of(calibration: Mapping[str, Any]) -> str:
    """Short name that is the same whenever a calibration says the same."""
    return hashlib.sha256(json.dumps(calibration, sort_keys=True).encode()).hexdigest()[:12]


# --- schemes --------------------------------------------------------------------------------------


class TitanConfig(Model):
    """Parameters of TITAN, the genetic algorithm of a cluster."""

    population: Annotated[Whole, Field(ge=2, le=100_000)] = 50
    """Schedules of a generation."""
    generations: Annotated[Whole, Field(ge=0, le=1_000_000)] = 100
    """Most generations after the first."""
    crossover: Share = 0.8
    """Probability that a child has two parents instead of one."""
    swap: Annotated[Number, Field(ge=0, lt=1)] = 0.3
    """Probability that two jobs of a child change places in its order, and of each further such change."""
    move: Annotated[Number, Field(ge=0, lt=1)] = 0.3
    """Probability that one job of a child changes one of its resources, and of each further such change."""
    window: Count = 30
    """Generations over which the improvement of the best schedule is looked at."""
    threshold: Annotated[Number, Field(ge=0, lt=1)] | None = 0.001
    """It stops once the best schedule has improved over a window by less than this share; never with null."""

    def titan(self) -> Titan:
        """The parameters."""
        return Titan(**self.model_dump())


class DispatchConfig(Model):
    """Who allocates jobs to clusters, and how clusters schedule them."""

    name: Annotated[Label, Field(max_length=60)]
    """Label in figures."""
    dispatcher: DispatcherName
    """`muscle`, `dll` (dynamic least load) or `wrand` (weighted random)."""
    local: LocalName = "titan"
    """What clusters do: `titan`; `seed`, the schedule that TITAN would start from; or `easy` backfilling."""
    seeding: SeedingName | None = None
    """What TITAN starts from besides random schedules: the schedule of MUSCLE, all jobs by arrival, new jobs
    by arrival behind the last plan, or nothing. By default muscle with MUSCLE, else arrival."""
    rounds: RoundsName = "collected"
    """Whether jobs are collected, or handed over when they arrive."""
    load: LoadName = "unfinished"
    """Which jobs of a cluster are its load for `dll`."""
    titan: TitanConfig = TitanConfig()
    """Parameters of TITAN."""

    def policy(self, conditions: ConditionsConfig, seed: int) -> Multicluster:
        """The policy at a point, with a seed."""
        parts = self.model_dump(exclude={"name", "titan"})
        return Multicluster(
            **parts,
            titan=self.titan.titan(),
            ends=conditions.ends,
            threshold=conditions.threshold,
            seed=seed,
        )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.policy(ConditionsConfig(), 0)
        except GridschedError as error:
            raise ValueError(str(error)) from None
        return self


DISPATCHES: tuple[str, ...] = (
    *get_args(DispatcherName),
    *(f"{name}+{local}" for name in get_args(DispatcherName) for local in get_args(LocalName)),
)
"""Names of schemes with default parameters; without a local scheduler that is TITAN."""


def _known_dispatch(name: str) -> str:
    """Name of a scheme with its default parameters."""
    if name not in DISPATCHES:
        raise ValueError(f"unknown scheme; {suggestion(name, DISPATCHES)}")
    return name


Dispatch = Annotated[
    Annotated[str, AfterValidator(_known_dispatch), Tag(BY_NAME)] | Annotated[DispatchConfig, Tag(BY_PARTS)],
    Discriminator(way_of_writing),
]


def dispatch_of(scheme: str | DispatchConfig) -> DispatchConfig:
    """Scheme of a study's configuration with all its parameters."""
    if isinstance(scheme, DispatchConfig):
        return scheme
    dispatcher, _, local = scheme.partition("+")
    return DispatchConfig.model_validate(
        {"name": scheme, "dispatcher": dispatcher, "local": local or "titan"}
    )


# --- points ---------------------------------------------------------------------------------------


def completed(values: Any) -> Any:
    """Values of a study whose points have what `common` says and they do not."""
    if not isinstance(values, dict) or not isinstance(values.get("common"), dict):
        return values
    points = values.get("points")
    if not isinstance(points, list | tuple):
        return values
    common = values["common"]
    full = [_merged(common, point) if isinstance(point, dict) else point for point in points]
    return {**values, "points": full}


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings; what the second says holds, key by key also inside of what both say."""
    both = {key: value for key, value in common.items() if key in own}
    inside = {
        key: _merged(value, own[key])
        for key, value in both.items()
        if isinstance(value, dict) and isinstance(own[key], dict) and key != "log"
    }
    return {**common, **own, **inside}


def checked_points(
    points: tuple[PointConfig, ...], schemes: list[str], reference: str, axis: AxisName
) -> None:
    """Refuse points that do not fit together, or name schemes that are not there."""
    for point in points:
        chosen = list(point.schemes or ())
        unique(f"points[{point.name}].schemes", chosen)
        for name in chosen:
            if name not in schemes:
                raise ValueError(
                    f"points[{point.name}].schemes: no scheme {name!r}; {suggestion(name, schemes)}"
                )
        if point.schemes is not None and reference not in chosen:
            raise ValueError(f"points[{point.name}].schemes: {reference} is missing, the others' reference")
        if axis == "level" and point.jobs.level is None:
            raise ValueError(f"points[{point.name}].jobs.level: missing, but the axis is level")

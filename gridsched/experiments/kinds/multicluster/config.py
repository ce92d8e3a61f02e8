"""What studies of multiclusters are made of: points with clusters, jobs, deadlines and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import xarray as xr
from pydantic import Field, StrictBool, ValidationError, create_model, model_validator

from gridsched.derived import MadeConfig, keys, object_of, part_model
from gridsched.errors import GridschedError
from gridsched.experiments.comparing import written_out
from gridsched.experiments.inputs import (
    event_files,
    expected_jobs,
    failure_seed,
    log_of,
    plain,
    varied_keys,
    without_machine,
)
from gridsched.experiments.kinds.multicluster.levels import LevelName
from gridsched.experiments.parts import (
    LogConfig,
    ScenarioChoice,
    SizedCluster,
    WorkloadConfig,
    label_of,
)
from gridsched.experiments.schedulers import Written, scheduler_made, scheduler_models
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import FROM_SUBMISSION, Replicates, SchedulerStudy, alone
from gridsched.experiments.tasks import Experiment, Figure, Task
from gridsched.platform import Cluster
from gridsched.systems.multicluster.jobs import MulticlusterModel
from gridsched.systems.multicluster.muscle import weights_of
from gridsched.systems.multicluster.scheduler import Multicluster
from gridsched.validation import (
    Different,
    Factor,
    Instant,
    Number,
    Slug,
    Whole,
    check_known,
    suggestion,
)
from gridsched.workloads.deadlines import ServiceClass

_HERE = "gridsched.experiments.kinds.multicluster"

_EXAMPLES = [
    Specification(
        name=name,
        form="schedule",
        title=f"Worked example: schedules {words}",
        own=f"{_HERE}.drawing:{name}",
        finding=f"{_HERE}.drawing:example_finding",
    )
    for name, words in (
        ("example_handed_over", "that MUSCLE hands over"),
        ("example_improved", "after TITAN"),
    )
]
"""Figures of the worked example: what MUSCLE hands over, and what TITAN makes of it."""

_AXES: dict[str, str] = {"level": "level", "deadlines": "largest_ratio", "clusters": "cluster_count"}
"""Parameter of scenarios that each axis is about."""

Processors = Annotated[Whole, Field(ge=0, le=2**15 - 1)]
"""Processors that a cluster has, maybe none for a while."""

ServiceClassConfig: Any = part_model(ServiceClass)
"""Jobs that are promised the same."""


class _Jobs(MadeConfig):
    """Jobs that are submitted: drawn, or those of a log."""

    count: Annotated[Whole, Field(ge=1, le=10_000_000)] = 20_000
    """Number of jobs that are drawn."""
    level: Number | None = Field(None, gt=0, le=1e6)
    """Mean number of jobs in the queue: the rate of arrivals is set so that a scheduler meets it, see the
    guide."""
    level_of: Literal["muscle", "dll", "wrand", "each"] = "muscle"
    """The scheduler that meets the level, or each: then every scheduler has the same jobs at a rate of its
    own."""
    level_counts: LevelName | Literal["batch"] = "collected"
    """The queue at a level: jobs that are collected (mean over time), handed over in a round (mean over
    rounds), or waiting, collected or at a cluster (mean over time). With batch no rate is set: as many jobs
    are submitted together, the next ones when these have ended."""
    load: Number | None = Field(None, gt=0, le=1000)
    """Work that arrives relative to what the clusters can do."""
    speed_up: Factor = 1.0
    """Times between submissions of a log are divided by this."""
    at_clusters: Annotated[Number, Field(ge=0, le=1)] = 0.0
    """Share of the jobs that enter at a cluster, each drawn, and not at the grid scheduler."""

    @model_validator(mode="after")
    def _whole_batches(self) -> Self:
        if self.level_counts == "batch" and not float(self.level or 1).is_integer():
            raise ValueError(f"level: {self.level:g}, but a batch has a whole number of jobs")
        return self

    @property
    def batch(self) -> int | None:
        """Jobs that are submitted together; none if each has a time of its own."""
        return int(self.level) if self.level is not None and self.level_counts == "batch" else None

    def made(self) -> MulticlusterModel:
        """Distributions of jobs that are drawn."""
        return MulticlusterModel(**{key: object_of(getattr(self, key)) for key in _DRAWN})


_DRAWN: dict[str, Any] = {**keys(MulticlusterModel)}
"""Distributions of jobs that are drawn: type and default, by key."""

JobsConfig: Any = create_model("JobsConfig", __base__=_Jobs, __doc__=_Jobs.__doc__, **_DRAWN)
"""Jobs that are submitted, with the distributions of those that are drawn."""


class PointConfig(ScenarioChoice):
    """Clusters, what is submitted to all of them, and deadlines."""

    clusters: Annotated[tuple[SizedCluster, ...], Field(min_length=1, max_length=1000), Different]
    """The clusters, with their processors; speeds are relative to the cluster of the jobs."""
    stream: LogConfig | None = None
    """A log that is submitted; its cluster holds the largest jobs that are not left out, by default the
    largest cluster."""
    jobs: JobsConfig = JobsConfig()
    """What is submitted. Give one of level and load, or a log as `stream`."""
    classes: Annotated[tuple[ServiceClassConfig, ...], Field(min_length=1), Different] = (
        ServiceClassConfig(),
    )
    """Deadlines, by service class: (1 + ratio) times the longest run time."""
    changes: tuple[tuple[Instant, Slug, Processors], ...] = ()
    """Processors that are added and removed: seconds after the first submission, cluster, and its processors
    from then on, 0 if it is gone."""
    parameters: dict[str, Any] = Field({})
    """Parameters of all schedulers that hold here."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [
            *(f"jobs.{key}" for key in ("level", "load") if getattr(self.jobs, key) is not None),
            *(["stream"] if self.stream is not None else []),
        ]
        if len(given) != 1:
            raise ValueError(
                f"give one of jobs.level, jobs.load, stream (found {', '.join(given) or 'none'})"
            )
        largest, most = self.jobs.made().largest, self.largest.processors
        if self.stream is None and largest > most:
            raise ValueError(f"jobs.largest: {largest}, but the largest cluster has {most} processors")
        if not sum(each.share for each in self.classes) > 0:
            raise ValueError("classes: no class has a share; give one of them a positive share")
        for _, name, _ in self.changes:
            check_known("changes", name, [cluster.name for cluster in self.clusters])
        return self

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read."""
        return () if self.stream is None else (self.stream,)

    @property
    def replicates_are(self) -> str:
        """What replicates are; of a log as it is the draws of its deadlines."""
        if self.variation is None:
            return "draws"
        return "shaken logs" if self.resampling is None else "resampled logs"

    @property
    def platform(self) -> list[Cluster]:
        """The clusters."""
        return [each.cluster(Cluster(name=each.name, processors=each.size or 1)) for each in self.clusters]

    @property
    def largest(self) -> Cluster:
        """The first of the clusters with most processors."""
        return max(self.platform, key=lambda cluster: cluster.processors)

    @property
    def slowest(self) -> float:
        """Speed of the slowest cluster."""
        return min(cluster.speed for cluster in self.platform)

    @property
    def capacity(self) -> float:
        """Work that the clusters can do in a unit of time."""
        return sum(cluster.processors * cluster.speed for cluster in self.platform)

    def scheduler(self, written: Written) -> Written:
        """A scheduler with the parameters that hold here."""
        given = {"scheduler": written} if isinstance(written, str) else written.model_dump(mode="json")
        model = scheduler_models()[given["scheduler"]]
        return model.model_validate({**given, "name": label_of(written), **self.parameters})

    def calibration(self, dispatcher: str) -> PointConfig | None:
        """What the rate of arrivals at a level depends on, as a point; None where the rate is given.

        Where each scheduler is to meet the level itself, it is the rate of a dispatcher. All clusters have
        the default weights and deadlines the default range there, so that points which differ in these alone
        have the same jobs.
        """
        if self.jobs.level is None or self.jobs.batch is not None:
            return None
        drawn = {"count", "level", "level_of", "level_counts", *_DRAWN}
        return PointConfig.model_validate(
            {
                "name": "level",
                "clusters": [
                    {
                        "name": f"C{number}",
                        "processors": each.processors,
                        "speed": each.speed,
                        # of a cluster where jobs take whole nodes
                        **(
                            {"processors_per_node": each.unit, "node_exclusive": True}
                            if each.unit > 1
                            else {}
                        ),
                    }
                    for number, each in enumerate(self.platform, start=1)
                ],
                "jobs": {
                    **self.jobs.model_dump(mode="json", include=drawn, exclude_defaults=True),
                    **({"level_of": dispatcher} if self.jobs.level_of == "each" else {}),
                },
                "parameters": {
                    key: value for key, value in self.parameters.items() if key in ("ends", "threshold")
                },
            }
        )


# --- the study ------------------------------------------------------------------------------------


class MulticlusterStudy(SchedulerStudy):
    """A study of a multicluster: every scheduler on every point, with replicates."""

    refuses: ClassVar[Mapping[str, str]] = {"feedback": FROM_SUBMISSION}

    kind: Literal["multicluster"]
    """What is studied."""
    scenarios: Annotated[tuple[PointConfig, ...], Field(min_length=1)]
    """The points: clusters with what is submitted to all of them."""
    replicates: Replicates = 10
    """How often jobs and deadlines are drawn; the jobs of a log are the same in every replicate, unless it is
    resampled or shaken."""
    axis: Literal["level", "deadlines", "clusters", "none"] = "none"
    """What figures have on their horizontal axis: workload level, largest deadline ratio, number of clusters,
    or nothing, if points have nothing of the kind in common."""
    worked_example: StrictBool = False
    """Whether the report shows the worked example of the paper besides."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for scheduler in self.schedulers:
            if scheduler_made(scheduler).system != "multicluster":
                raise ValueError(f"schedulers: {label_of(scheduler)!r} is none of a multicluster")
        for point in self.scenarios:
            where = f"scenarios[{point.name}]"
            if self.reference_label not in self.labels_in(point):
                raise ValueError(
                    f"{where}.schedulers: {self.reference_label} is missing, the others' reference"
                )
            if len(self.estimates_in(point)) != 1:
                raise ValueError(f"{where}.estimates: give one; other estimates are a scenario of their own")
            if point.variation is not None and point.variation.replicates != self.replicates:
                raise ValueError(
                    f"{where}: {'resampling' if point.resampling else 'shaking'}.replicates: found "
                    f"{point.variation.replicates}; all points have the replicates of the study, "
                    f"{self.replicates}"
                )
            if self.axis == "level" and point.jobs.level is None:
                raise ValueError(f"{where}.jobs.level: missing, but the axis is level")
            for label in self.labels_in(point):
                self._check_parameters(f"{where}.parameters", point, label)
        return self

    def _check_parameters(self, where: str, point: PointConfig, label: str) -> None:
        known = [field.name for field in fields(Multicluster)]
        for key in point.parameters:
            if key not in known:
                raise ValueError(f"{where}.{key}: unknown key; {suggestion(key, known)}")
        try:
            weights_of(self.made(point, label).weights, point.platform)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
            raise ValueError(f"{where}: {label}: {place}: {first['msg']}") from None
        except GridschedError as error:
            raise ValueError(f"{where}: {label}: {error}") from None

    def made(self, point: PointConfig, label: str) -> Multicluster:
        """The scheduler of a label at a point."""
        return cast(Multicluster, scheduler_made(point.scheduler(self.scheduler(label))))

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        replicates = range(self.replicates)
        runs = [
            self._run(point, label, replicate, seed)
            for point in self.scenarios
            for label, replicate in product(self.labels_in(point), replicates)
        ]
        example = Task(
            stage="collect", study=self.name, name="example", function=f"{_HERE}.example:write_example"
        )
        examples = [
            Figure(name=each.name, dataset=example, specification=each.values(), part="Worked example")
            for each in _EXAMPLES
        ]
        return self.collected(
            {
                "runs": runs,
                "labels": {
                    "scenario": [point.name for point in self.scenarios],
                    "scheduler": self.labels,
                    "estimates": list(dict.fromkeys(run.arguments["estimates"] for run in runs)),
                },
                "attributes": self.facts(seed),
                "jobs": {
                    point.name: [
                        self._jobs(point, self.labels_in(point)[0], replicate, seed)
                        for replicate in replicates
                    ]
                    for point in self.scenarios
                },
                "example": example if self.worked_example else None,
            },
            f"{_HERE}.stages:collect",
            memory=2000,
            after=examples if self.worked_example else (),
            further=[example] if self.worked_example else (),
        )

    @property
    def specifications(self) -> list[Specification]:
        """Rankings at each point, responses to the axis, queues and deadlines."""
        x = _AXES.get(self.axis, "")
        response: dict[str, Any] = {"form": "response", "x": x, "facets": ""}
        names = ("mcp_mean", "pb_mean")
        responses = [
            Specification(
                name="response", title=f"Response to {x.replace('_', ' ')}", measures=names, **response
            ),
            Specification(
                name="queues",
                title="Jobs in the queue",
                measures=("queue_mean", "queue_growth"),
                reference="",
                **response,
            ),
        ]
        return [
            Specification(name="ranking", form="ranking", title="Schedulers compared", measures=names),
            *(responses if x else []),
            Specification(
                name="deadlines",
                form="ranking",
                title="Jobs that miss their deadline",
                measures=("late", "over_deadline_mean"),
                reference="",
            ),
            Specification(
                name="waits",
                form="ranking",
                title="Mean wait and response time",
                measures=("wait_time_mean", "response_time_mean"),
                reference="",
            ),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        kinds: dict[str, list[str]] = {}
        for point in self.scenarios:
            kinds.setdefault(self._drawn_in(point), []).append(point.name)
        return [
            *(f"{', '.join(names)}: {kind}, the same for all schedulers." for kind, names in kinds.items()),
            "Time is in units of the model; run times are those on a cluster of speed 1.",
            "MCP and PB are means over the rounds in which jobs are handed to clusters; less is better.",
            "A queue grows where later submissions find more collected jobs than earlier ones.",
        ]

    def _drawn_in(self, point: PointConfig) -> str:
        """What differs from replicate to replicate of a point."""
        if point.stream is None:
            return f"jobs and deadlines are drawn {self.replicates} times"
        if point.variation is None:
            return f"the log as it is, whose deadlines are drawn {self.replicates} times"
        return f"{self.replicates} {point.replicates_are} with deadlines that are drawn"

    def _jobs(self, point: PointConfig, label: str, replicate: int, seed: int) -> Task:
        """Jobs of a point for a scheduler in one replicate, as a rule the same for all."""
        calibration = point.calibration(self.made(point, label).dispatcher)
        rate = (
            None
            if calibration is None
            else Task(
                stage="prepare",
                study="rates",  # which points of all studies share
                name=f"rate of arrivals at level {calibration.jobs.level:g}",
                function=f"{_HERE}.stages:calibrate_level",
                arguments={"point": plain(calibration), "seed": seed},
                cost=5 + calibration.jobs.count / 2000,
            )
        )
        errors = self.estimate_errors(point, self.estimates_in(point)[0])
        return Task(
            stage="prepare",
            study=self.name,
            name=f"jobs of {point.name}, replicate {replicate}",
            function=f"{_HERE}.stages:prepare_point",
            arguments={
                "point": _plain(point, changes=(), clusters=tuple(map(without_machine, point.clusters))),
                "replicate": replicate,
                "seed": seed,
                "rate": rate,
                "log": None if point.stream is None else log_of(point.stream),
                "errors": {} if errors is None else errors.model_dump(exclude_none=True),
                **varied_keys(point),
            },
            cost=0.1 + self._count(point) / 200_000,
        )

    def _run(self, point: PointConfig, label: str, replicate: int, seed: int) -> Task:
        """Simulation of a scheduler in one replicate; what it does not depend on is as by default."""
        made = self.made(point, label)
        genetic = 100 if made.rounds == "arrival" else 5 if made.local == "titan" else 1
        labels = {"scenario": point.name, "scheduler": label, "replicate": replicate}
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{point.name}, {label}, replicate {replicate}",
            function=f"{_HERE}.stages:simulate_run",
            arguments={
                "point": _plain(point),
                "scheduler": written_out(point.scheduler(self.scheduler(label))),
                "labels": labels,
                "estimates": self.estimates_in(point)[0],
                "jobs": self._jobs(point, label, replicate, seed),
                "parameters": {
                    **({"level": point.jobs.level} if point.jobs.level is not None else {}),
                    "largest_ratio": max(each.high for each in point.classes),
                    "cluster_count": len(point.clusters),
                },
                **failure_seed(point.clusters, seed),
                **({"replicates_are": point.replicates_are} if point.stream is not None else {}),
            },
            also={"files": event_files(point.clusters)},
            labels=labels,
            cost=0.2 + genetic * self._count(point) / 150_000,
        )

    @staticmethod
    def _count(point: PointConfig) -> float:
        """Expected number of jobs."""
        return float(point.jobs.count) if point.stream is None else expected_jobs(point.stream)


def _plain(point: PointConfig, **changes: Any) -> dict[str, Any]:
    """A point as plain values, without what is in the tasks by itself: parameters, whose level it is."""
    jobs = point.jobs.model_copy(update={"level_of": "muscle"})
    return plain(alone(point), parameters={}, jobs=jobs, **changes)

"""What studies of imprecise calendars are made of: cases, slots, schedulers, managers, reservations."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.platforms import Cluster
from gridsched.schedulers.calendars import (
    CalendarOptions,
    Manager,
    OverrunName,
    PlacementName,
    RefusedName,
    SlotPlan,
)
from gridsched.schedulers.local import POLICIES, named_policy
from gridsched.study.parts import WorkloadConfig
from gridsched.study.validation import (
    BY_NAME,
    BY_PARTS,
    Count,
    Duration,
    Label,
    Model,
    Number,
    Slug,
    Whole,
    suggestion,
    unique,
    unique_files,
    way_of_writing,
)

BeliefName = Literal["actual", "requested"]
"""What schedulers believe of run times."""

TableName = Literal["figure-3-october", "figure-3-november", "figure-7", "figure-9"]
"""Tables of the paper in `resources/calendars.yaml`."""

# --- slots ----------------------------------------------------------------------------------------


class Doubling(Model):
    """Slots whose duration doubles every 2k slots."""

    first: Count
    """Duration of the fundamental slot, seconds."""
    k: Annotated[Whole, Field(ge=1, le=100_000)]
    """Half the number of slots of each duration."""
    levels: Annotated[Whole, Field(ge=1, le=24)]
    """Number of durations; the last has as many slots as needed."""


SlotLevels = Annotated[tuple[tuple[Count | None, Count], ...], Field(min_length=1, max_length=32)]
Slots = Annotated[
    Annotated[SlotLevels, Tag(BY_NAME)] | Annotated[Doubling, Tag(BY_PARTS)], Discriminator(way_of_writing)
]
"""Slots as a list of [number, duration in seconds], null for as many as needed, or by a rule."""


def slot_plan(slots: Any) -> SlotPlan:
    """The slots that a configuration describes."""
    if isinstance(slots, Doubling):
        return SlotPlan.doubling(slots.first, slots.k, slots.levels)
    return SlotPlan(levels=slots)


# --- schedulers -----------------------------------------------------------------------------------


class ManagerConfig(Model):
    """Rules of all managers of one level."""

    children: Annotated[Whole, Field(ge=1, le=LARGEST)] | None = None
    """How many managers of the level below each one has, in order; all by default. Not for the first level,
    whose managers have a cluster each."""
    promote_processors: Duration | None = None
    """Jobs that ask for more processors go up to the level above."""
    promote_duration: Duration | None = None
    """Jobs with an estimate of so many seconds or more go up."""
    bump: Duration | None = None
    """Jobs whose first fit is later than so many seconds from now go up if there is an earlier place."""
    borrow_limit: Annotated[Whole, Field(ge=0, le=2**61)] | None = None
    """Processor-seconds that a cluster may have consumed elsewhere, net, before its jobs stay at home. For
    the first level only."""
    period: Duration = 0
    """Seconds between updates of the shadow calendars; 0: they are always fresh. Not for the first level."""
    placement: PlacementName = "lowest"
    """Which of several equally early clusters gets a job: the first, or the first in a random order. Not for
    the first level."""

    def rules(self, *keys: str) -> dict[str, Any]:
        """Some of the rules by name."""
        return {key: getattr(self, key) for key in keys}

    def changed(self, *keys: str) -> list[str]:
        """Which of the rules are not as by default."""
        fields = type(self).model_fields
        return [key for key in keys if getattr(self, key) != fields[key].default]


_UPWARD = ("promote_processors", "promote_duration", "bump")
_DOWNWARD = ("period", "placement")


class ReservationsConfig(Model):
    """Which jobs ask for a reservation, drawn at random."""

    share: Annotated[Number, Field(ge=0, le=1)]
    """Share of the jobs. With a larger share the same jobs ask, and more."""
    lead: tuple[Duration, Duration] = (3600, 86400)
    """From how many to how many seconds after its submission a job is to start, all equally probable;
    rounded up to a multiple of the fundamental slot."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.lead[0] > self.lead[1]:
            raise ValueError("lead: the second must not be less than the first")
        return self


def _known_policy(name: str) -> str:
    """Name of a local policy."""
    try:
        return named_policy(name).name
    except GridschedError:
        raise ValueError(f"unknown policy; {suggestion(name, [*POLICIES, 'easy(r)'])}") from None


class SchedulerConfig(Model):
    """A scheduler: imprecise calendars, or a local policy on each cluster by itself."""

    alternatives = ("policy", "slots")

    name: Annotated[Label, Field(max_length=40)]
    """Label in figures."""
    policy: Annotated[str, AfterValidator(_known_policy)] | None = None
    """Local policy by name (fcfs, easy, conservative ...)."""
    slots: str | None = None
    """Calendars with these slots, by name in the slots of the study."""
    low_water: Annotated[Number, Field(ge=0, lt=1)] = 0.5
    """Share of the slots of a level at which one of the level above is split."""
    threshold: Annotated[Number, Field(gt=0, le=1)] = 1.0
    """Largest share of the processors that jobs together may take in advance in a slot that is not
    fundamental."""
    overrun: OverrunName = "suspend"
    """What happens to a job that is not done when its slots are over, and for which there is no room."""
    refused: RefusedName = "reject"
    """What happens to a job whose reservation is refused: it is not run, or it becomes an ordinary job."""
    managers: tuple[ManagerConfig, ...] = ()
    """Levels of managers, from those of the clusters up to the one above all. Without any, every cluster is
    by itself."""
    reservations: ReservationsConfig | None = None
    """Which jobs ask for a reservation; none by default."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        fields = type(self).model_fields
        of_calendars = [key for key in fields if key not in ("name", "policy", "slots")]
        changed = [key for key in of_calendars if getattr(self, key) != fields[key].default]
        if self.policy is not None and changed:
            raise ValueError(f"{', '.join(changed)}: only calendars have this, not a local policy")
        self._check_managers()
        return self

    def _check_managers(self) -> None:
        if len(self.managers) == 1:
            raise ValueError("managers: one level has nobody above it; give two or more, or none")
        for level, manager in enumerate(self.managers):
            first, last = level == 0, level + 1 == len(self.managers)
            wrong = manager.changed("children", *_DOWNWARD) if first else manager.changed("borrow_limit")
            wrong += manager.changed(*_UPWARD) if last else []
            wrong += ["children"] if last and manager.children is not None else []
            if wrong:
                who = "first" if first else "last" if last else "middle"
                raise ValueError(f"managers: {wrong[0]}: the {who} level does not have this")

    @property
    def share(self) -> float:
        """Share of the jobs that ask for a reservation."""
        return 0.0 if self.reservations is None else self.reservations.share

    @property
    def period(self) -> int:
        """Longest time between updates of shadow calendars, seconds."""
        return max((manager.period for manager in self.managers), default=0)

    def options(self, slots: SlotPlan) -> CalendarOptions:
        """What holds for all calendars."""
        keys = ("low_water", "threshold", "overrun", "refused")
        return CalendarOptions(slots=slots, **{key: getattr(self, key) for key in keys})

    def tree(self, clusters: tuple[Cluster, ...]) -> Manager | Cluster:
        """The managers of these clusters; a single cluster needs none."""
        if len(clusters) == 1:
            return clusters[0]
        below, *above = self.managers
        own = below.rules(*_UPWARD, "borrow_limit")
        nodes = [Manager(name=cluster.name, children=[cluster], **own) for cluster in clusters]
        for level, rules in enumerate(above, start=2):
            size = rules.children or len(nodes)
            own = rules.rules(*_UPWARD, *_DOWNWARD)
            groups = [nodes[first : first + size] for first in range(0, len(nodes), size)]
            nodes = [
                # A manager of one cluster would be taken for its local one
                group[0]
                if len(group) == 1
                else Manager(name=f"level {level}, {number}", children=group, **own)
                for number, group in enumerate(groups, start=1)
            ]
        return nodes[0]


# --- cases ----------------------------------------------------------------------------------------


class PartitionConfig(Model):
    """A partition of a machine."""

    name: Slug
    """Name in figures."""
    processors: Count
    """Its processors."""


class PartitionsConfig(Model):
    """A machine divided into partitions: a job of its log goes to the smallest that can hold it."""

    workload: WorkloadConfig
    """The log of the machine."""
    clusters: Annotated[tuple[PartitionConfig, ...], Field(min_length=1, max_length=1000)]
    """The partitions."""
    alike: Literal["turns", "users"] = "turns"
    """Which of several partitions of the same size a job goes to: they take turns, job by job or user by
    user."""
    run_time: Literal["wall", "cpu"] = "wall"
    """Run time of a job: its wall-clock time, or its average CPU time (field 6 of the format)."""
    unknown: Literal["leave-out", "wall"] = "leave-out"
    """What to do with a job whose CPU time is not known: leave it out, or take its wall-clock time."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("clusters", [cluster.name for cluster in self.clusters])
        if not self.workload.is_log:
            raise ValueError("workload: only a log (archive or file) can be divided")
        if self.unknown != "leave-out" and self.run_time == "wall":
            raise ValueError("unknown: wall-clock times are always known; give it with run_time: cpu")
        return self


class PaperConfig(Model):
    """What the paper printed for a case."""

    table: TableName
    """Table that the report shows beside ours."""
    alone: str | None = None
    """Scheduler that stands for clusters by themselves in the table."""
    together: str | None = None
    """Scheduler that stands for clusters under managers."""


class CaseConfig(Model):
    """Clusters with what their users submit."""

    alternatives = ("clusters", "partitions")

    name: Slug
    """Name in figures and file names."""
    clusters: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1, max_length=1000)] | None = None
    """The clusters, each with its own workload. Jobs larger than their cluster are left out."""
    partitions: PartitionsConfig | None = None
    """Or partitions of one machine, among which its log is divided by job size."""
    align: Literal["start", "clock", "none"] = "start"
    """How submit times of several workloads go together: all begin at once, by the clock of the logs, or as
    they are written. Partitions of one machine keep those of their log."""
    scale: Annotated[Whole, Field(ge=1, le=1_000_000)] = 1
    """How many times more processors clusters and jobs have than configured."""
    block: Count = 86400
    """Seconds of submissions that are left out together for intervals: the intervals of ratios come from
    leaving out one block at a time."""
    schedulers: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Names of the schedulers that run; all by default."""
    paper: PaperConfig | None = None
    """What the paper printed for this case."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("clusters", self.cluster_names)
        if self.partitions is not None and self.align != "start":
            raise ValueError("align: partitions keep the submit times of their log; leave it out")
        return self

    @property
    def workloads(self) -> tuple[WorkloadConfig, ...]:
        """Workloads that are read or drawn."""
        return self.clusters or ((self.partitions.workload,) if self.partitions else ())

    @property
    def cluster_names(self) -> list[str]:
        """Names of the clusters."""
        return [cluster.name for cluster in (self.partitions.clusters if self.partitions else self.workloads)]

    @property
    def time_alignment(self) -> Literal["start", "clock", "none"]:
        """How submit times go together."""
        return "none" if self.partitions else self.align


# --- the study ------------------------------------------------------------------------------------


class CalendarKeys(Model):
    """Keys of a study of imprecise calendars."""

    kind: Literal["calendars"]
    """What is studied."""
    slots: Annotated[dict[str, Slots], Field(min_length=1)]
    """Slots of calendars, by name of the configuration."""
    cases: Annotated[tuple[CaseConfig, ...], Field(min_length=1)]
    """The cases: clusters with what their users submit."""
    schedulers: Annotated[tuple[SchedulerConfig, ...], Field(min_length=1)]
    """The schedulers that are compared."""
    estimates: Annotated[tuple[BeliefName, ...], Field(min_length=1)] = ("actual",)
    """What schedulers believe of run times: the actual or the requested ones."""
    reference: str | None = None
    """Scheduler that the others are compared with; the first one by default."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("cases", [case.name for case in self.cases])
        unique("schedulers", self.scheduler_names)
        unique("estimates", list(self.estimates))
        for name, slots in self.slots.items():
            try:
                slot_plan(slots)
            except GridschedError as error:
                raise ValueError(f"slots.{name}: {str(error).removeprefix('slots: ')}") from None
        for scheduler in self.schedulers:
            if scheduler.slots is not None and scheduler.slots not in self.slots:
                raise ValueError(
                    f"schedulers[{scheduler.name}].slots: found {scheduler.slots!r}; "
                    f"{suggestion(scheduler.slots, self.slots)}"
                )
        self._check_references()
        return self

    def _check_references(self) -> None:
        """Refuse names of schedulers that do not exist."""
        named = {"reference": [self.reference]}
        for case in self.cases:
            named[f"cases[{case.name}].schedulers"] = list(case.schedulers or ())
            unique(f"cases[{case.name}].schedulers", list(case.schedulers or ()))
            if case.paper is not None:
                for key in ("alone", "together"):
                    named[f"cases[{case.name}].paper.{key}"] = [getattr(case.paper, key)]
        for key, names in named.items():
            for name in names:
                if name is not None and name not in self.scheduler_names:
                    raise ValueError(f"{key}: found {name!r}; {suggestion(name, self.scheduler_names)}")

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return tuple(workload for case in self.cases for workload in case.workloads)

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        case = next(case for case in self.cases if workload in case.workloads)
        return f"cases[{case.name}]: {workload.name}"

    @property
    def scheduler_names(self) -> list[str]:
        """Names of the schedulers."""
        return [scheduler.name for scheduler in self.schedulers]

    @property
    def reference_scheduler(self) -> str:
        """The scheduler that the others are compared with."""
        return self.reference or self.scheduler_names[0]

    @property
    def largest_share(self) -> float:
        """Largest share of jobs that ask for a reservation in any run."""
        return max(scheduler.share for scheduler in self.schedulers)

    def case(self, name: str) -> CaseConfig:
        """The case of a name."""
        return next(case for case in self.cases if case.name == name)

    def scheduler(self, name: str) -> SchedulerConfig:
        """The scheduler of a name."""
        return next(scheduler for scheduler in self.schedulers if scheduler.name == name)

    def schedulers_of(self, case: str) -> list[str]:
        """Names of the schedulers that run in a case."""
        chosen = self.case(case).schedulers
        return [name for name in self.scheduler_names if chosen is None or name in chosen]

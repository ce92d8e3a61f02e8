"""What studies are made of: workloads, clusters, policies, ways to measure."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, StrictBool, Tag, model_validator

from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.platforms import Cluster
from gridsched.schedulers.local import POLICIES, BackfillingName, LocalPolicy, named_policy
from gridsched.schedulers.scores import SCORE
from gridsched.schedulers.superscheduler import (
    BusyName,
    NoGainName,
    PredictionsName,
    StandingName,
    Superscheduler,
    TransfersName,
)
from gridsched.simulation.clusters import EstimateName
from gridsched.study.validation import (
    BY_NAME,
    BY_PARTS,
    Count,
    Duration,
    Factor,
    Fraction,
    Instant,
    Label,
    Model,
    Month,
    Number,
    PathText,
    Slug,
    Whole,
    suggestion,
    unique_files,
    way_of_writing,
)
from gridsched.traces import find_log
from gridsched.workloads import Machine, load_machines

MovingName = Literal["local", "central", "s-i", "r-i", "sy-i"]
"""Schemes that run on real machines."""

IdealName = Literal["ideal-fcfs", "ideal-srpt"]
"""Schemes that are ideal machines."""


def _known_log(name: str) -> str:
    """Name of a log that the registry knows."""
    try:
        find_log(name)
    except GridschedError as error:
        raise ValueError(str(error)) from None
    return name


def _known_machine(name: str) -> str:
    """Name of a machine that has workload models."""
    if name not in _machines():
        raise ValueError(f"unknown machine; {suggestion(name, _machines())}")
    return name


@cache
def _machines() -> dict[str, Machine]:
    return load_machines()


MachineName = Annotated[str, AfterValidator(_known_machine)]


class Window(Model):
    """Part of a log."""

    alternatives = ("month", "months", "interval", "jobs", "first_months")

    month: Month | None = None
    """Calendar month in the log's own time zone, such as 1996-10."""
    months: tuple[Month, Month] | None = None
    """First and last of several consecutive months."""
    interval: tuple[Number, Number] | None = None
    """Start and end in seconds since the start of the log."""
    jobs: tuple[Instant, Count] | None = None
    """Index of the first job, from 0, and number of jobs."""
    first_months: Annotated[Whole, Field(ge=1, le=1200)] | None = None
    """Number of months from the first job on."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.interval and self.interval[0] >= self.interval[1]:
            raise ValueError("interval: the end must come after the start")
        if self.months and self.months[0] > self.months[1]:
            raise ValueError("months: the last must not come before the first")
        return self


class Estimates(Model):
    """Model of requested times for synthetic jobs."""

    model: Literal["modal", "f-model", "multiple"] = "modal"
    """`modal` (Tsafrir et al. 2005: few round values), `f-model` (uniform between the run time and f + 1
    times it, Mu'alem and Feitelson 2001), or `multiple` (f times the run time)."""
    f: Number = Field(1.0, ge=0, le=1000)
    """The factor of `f-model` and `multiple`; at least 1 for `multiple`."""
    max_estimate: Count | None = None
    """Longest requested time of `modal`, seconds; by default the longest run time in full hours."""
    longer: Literal["cut", "raise", "exempt"] = "exempt"
    """What `modal` does with jobs that run longer than `max_estimate`: cut their run time, raise the
    limit, or let them request what they run."""

    @model_validator(mode="after")
    def _upper_bound(self) -> Self:
        if self.model == "multiple" and self.f < 1:
            raise ValueError("f: at least 1 for the model `multiple`")
        return self


class Sizes(Model):
    """Spread of job sizes inside a size class."""

    weighting: Literal["power-law", "log-uniform", "uniform"] = "power-law"
    """Weight of a number of nodes: a negative power of it, its inverse, or the same for all."""
    exponent: Number | None = Field(None, ge=-30, le=30)
    """Exponent of the power law; by default the one at which the offered load meets `utilisation`."""
    utilisation: Number | None = Field(None, gt=0, le=10)
    """Offered load that a power law is to meet; by default the local utilisation that the paper states for
    the machine over six months."""
    fill: Literal["powers", "whole", "partial"] = "powers"
    """Processors within the last node: powers of two in jobs of one node and whole nodes beyond, whole
    nodes always, or any number."""

    @model_validator(mode="after")
    def _one_aim(self) -> Self:
        if self.exponent is not None and self.utilisation is not None:
            raise ValueError("exponent, utilisation: give one of them, the other follows")
        if self.utilisation is not None and self.weighting != "power-law":
            raise ValueError(f"utilisation: the weighting {self.weighting!r} has nothing to adjust")
        return self


class Synthetic(Model):
    """A workload drawn from the hyper-Erlang models of `resources/superscheduler.yaml`."""

    alternatives = ("jobs", "duration")

    machine: MachineName = "M3"
    """Machine whose models are used."""
    jobs: Whole | None = Field(None, ge=1, le=100_000_000)
    """Number of jobs to draw."""
    duration: Number | None = Field(None, gt=0, le=1e10)
    """Seconds during which jobs arrive."""
    load_scale: Factor = 1.0
    """Inter-arrival times are divided by this."""
    sizes: Sizes = Sizes()
    """Spread of sizes inside the classes."""
    estimates: Estimates = Estimates()
    """Model of the requested times."""


class ClusterConfig(Model):
    """The machine that replays a workload; what is not given is taken from the log or the model."""

    processors: Count | None = None
    """Processors that jobs can use."""
    processors_per_node: Count | None = None
    """Processors of one node."""
    node_exclusive: StrictBool | None = None
    """Whether a node runs one job only."""
    speed: Number | None = Field(None, ge=0.001, le=1_000_000)
    """Speed. For a single machine relative to that of the workload, 1 by default. In a grid in any unit that
    all machines share; by default the clock speed of the model in MHz, or 1 for a log."""

    def cluster(self, default: Cluster) -> Cluster:
        """The cluster, with what is not configured taken from `default`."""
        given = self.model_dump(exclude_none=True)
        known = {
            key: getattr(default, key)
            for key in ("processors", "processors_per_node", "node_exclusive", "speed")
        }
        return Cluster(name=default.name, **{**known, **given})


class WorkloadConfig(Model):
    """A workload and the machine that replays it."""

    alternatives = ("archive", "file", "synthetic", "jobs")

    name: Slug
    """Name in figures and file names."""
    archive: Annotated[str, AfterValidator(_known_log)] | None = None
    """Log of the Parallel Workloads Archive, by name (see `resources/archive.yaml`)."""
    file: PathText | None = None
    """Path of an SWF file of one's own, plain or compressed."""
    synthetic: Synthetic | None = None
    """Model to draw the workload from."""
    jobs: tuple[tuple[Instant, Duration, Duration, Count], ...] | None = Field(None, min_length=1)
    """Jobs written out, in order of submission: submit time, run time, requested time (seconds),
    processors."""
    window: Window | None = None
    """Part of the log to use; all of it by default."""
    leave_out_status: tuple[Annotated[Whole, Field(ge=-1, le=5)], ...] = ()
    """SWF status codes of jobs to leave out (0 failed, 5 cancelled)."""
    leave_out_queue: tuple[Annotated[Whole, Field(ge=-1, le=LARGEST)], ...] = ()
    """Queue numbers of jobs to leave out."""
    cluster: ClusterConfig = ClusterConfig()
    """Machine that replays the workload."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.is_log:
            for key in ("window", "leave_out_status", "leave_out_queue"):
                if getattr(self, key):
                    raise ValueError(f"{key}: only a log (archive or file) has one")
        if self.jobs and self.cluster.processors is None:
            raise ValueError("cluster: give the processors of the machine for jobs that are written out")
        self._check_nodes()
        return self

    def _check_nodes(self) -> None:
        """Processors in whole nodes, as far as they are known before the log is read."""
        machine = _machines()[self.synthetic.machine] if self.synthetic else None
        processors = self.cluster.processors or (machine.processors if machine else None)
        per_node = self.cluster.processors_per_node or (machine.processors_per_node if machine else 1)
        if processors is not None and processors % per_node:
            raise ValueError(
                f"cluster: {processors} processors are not whole nodes of {per_node}; "
                "mend processors or processors_per_node"
            )

    @property
    def is_log(self) -> bool:
        """Whether the workload is read from an SWF file."""
        return self.archive is not None or self.file is not None


class PolicyConfig(Model):
    """A local policy composed of its parts."""

    name: Annotated[Label, Field(max_length=40)]
    """Label in figures."""
    order: str = "fcfs"
    """Queue order: fcfs, shortest, smallest, smallest_area, lxf, lxwf, or path/to/file.py:function."""
    backfilling: BackfillingName = "none"
    """What happens once the first waiting job does not fit."""
    reservations: Count = 1
    """Number of waiting jobs that EASY protects from delay."""
    backfill_order: str = "queue"
    """Order in which later jobs are tried: queue, or as `order` (but not one that changes with time)."""

    def policy(self) -> LocalPolicy:
        """The policy, with score functions loaded from their files."""
        parts = self.model_dump()
        for key in ("order", "backfill_order"):
            if ":" in parts[key]:
                parts[key] = SCORE.load(parts[key])
        return LocalPolicy(**parts)

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        try:
            self.policy()
        except GridschedError as error:
            raise ValueError(str(error)) from None
        return self


def _known_policy(name: str) -> str:
    """Name of a policy."""
    try:
        named_policy(name)
    except GridschedError:
        raise ValueError(f"unknown policy; {suggestion(name, [*POLICIES, 'easy(r)'])}") from None
    return name


Policy = Annotated[
    Annotated[str, AfterValidator(_known_policy), Tag(BY_NAME)] | Annotated[PolicyConfig, Tag(BY_PARTS)],
    Discriminator(way_of_writing),
]


class JobClasses(Model):
    """Borders of the job classes (short and long, narrow and wide)."""

    long: Count = 3600
    """A job that runs longer than so many seconds is long."""
    wide: Count = 8
    """A job of more than so many processors is wide."""


class Metrics(Model):
    """How runs are measured."""

    warm_up: Fraction = 0.0
    """Fraction of jobs, in order of submission, left out of job metrics at the beginning."""
    cool_down: Fraction = 0.0
    """Fraction left out at the end."""
    batches: Whole = Field(30, ge=2, le=100_000)
    """Number of batches of consecutive jobs for the intervals of means."""
    bins: Whole = Field(200, ge=1, le=100_000)
    """Number of time bins of the series of utilisation and queue length."""
    classes: JobClasses = JobClasses()
    """Borders of the job classes."""


class SchemeConfig(Model):
    """A grid scheduler with its parameters."""

    name: Annotated[Label, Field(max_length=60)]
    """Label in figures."""
    scheme: MovingName | IdealName
    """`local`, `central`, `s-i` (sender-initiated), `r-i` (receiver-initiated), `sy-i` (symmetrically
    initiated), or an ideal machine: `ideal-fcfs`, `ideal-srpt`."""
    phi: Annotated[Whole, Field(ge=1, le=LARGEST)] = 60
    """A job that would wait less than so many seconds at home stays there."""
    sigma: Count = 300
    """Seconds between checks of how busy the machines are."""
    delta: Number = Field(0.7, gt=0, le=1)
    """A machine that is less busy than this share volunteers."""
    epsilon: Number = Field(0.0, ge=0, le=LARGEST)
    """Turnaround times that differ by no more seconds count as equal."""
    partners: dict[str, tuple[str, ...]] | None = None
    """Machines that a home may deal with, by name of the home; all others by default."""
    predictions: PredictionsName = "exact"
    """How waits are predicted: by simulating the local policy on, or from a conservative plan, which is
    faster."""
    message_delay: Duration = 0
    """Seconds that a grid scheduler waits for the answers to a request."""
    migration_delay: Duration = 0
    """Seconds that a job is in transit to another machine."""
    silent: dict[str, tuple[tuple[Instant, Instant], ...]] | None = None
    """When the grid scheduler of a machine neither answers nor volunteers: pairs of seconds, by name."""
    transfers: TransfersName = "one"
    """How many jobs a volunteer takes until the next check."""
    no_gain: NoGainName = "wait"
    """What a job of `sy-i` does where there are volunteers but none is better than home: wait, or ask all."""
    busy: BusyName = "now"
    """Whether a machine is as busy as at that moment, or as on average since the last check."""
    standing: StandingName = "until-check"
    """How long volunteers are known: until the next check, or only to jobs decided at the check itself."""

    @property
    def is_ideal(self) -> bool:
        """Whether it is an ideal machine, which has no parameters."""
        return self.scheme in get_args(IdealName)

    @property
    def ideal_form(self) -> Literal["fcfs", "srpt"]:
        """Which ideal machine it is."""
        return "srpt" if self.scheme == "ideal-srpt" else "fcfs"

    def _is_changed(self, key: str) -> bool:
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    def superscheduler(self) -> Superscheduler:
        """The superscheduler that this describes."""
        return Superscheduler(**self.model_dump(exclude={"name"}))

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        fields = type(self).model_fields
        changed = [key for key in fields if key not in ("name", "scheme") and self._is_changed(key)]
        if self.is_ideal and changed:
            raise ValueError(f"{', '.join(changed)}: an ideal machine has no parameters")
        if not self.is_ideal:
            try:
                self.superscheduler()
            except GridschedError as error:
                raise ValueError(str(error)) from None
        return self


def _known_scheme(name: str) -> str:
    """Name of a scheme with its default parameters."""
    if name not in SCHEMES:
        raise ValueError(f"unknown scheme; {suggestion(name, SCHEMES)}")
    return name


SCHEMES: tuple[str, ...] = (*get_args(MovingName), *get_args(IdealName))
"""Names of the grid schedulers."""

Scheme = Annotated[
    Annotated[str, AfterValidator(_known_scheme), Tag(BY_NAME)] | Annotated[SchemeConfig, Tag(BY_PARTS)],
    Discriminator(way_of_writing),
]


class ScenarioConfig(Model):
    """Machines of a grid with what their users submit."""

    name: Slug
    """Name in figures and file names."""
    machines: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1, max_length=1000)]
    """The machines, each with the workload that is submitted to it."""
    estimates: EstimateName = "requested"
    """What the schedulers believe of run times."""
    align: Literal["start", "clock", "none"] = "start"
    """How submit times go together: all begin at once, by the clock of the logs, or as they are written."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_files("machines", [machine.name for machine in self.machines])
        drawn = any(machine.synthetic for machine in self.machines)
        for machine in self.machines:
            if drawn and not machine.synthetic and machine.cluster.speed is None:
                raise ValueError(
                    f"machines: {machine.name} has no cluster.speed; give its clock speed in MHz, "
                    "which is the speed of the synthetic machines"
                )
        return self


def scheme_of(scheme: str | SchemeConfig) -> SchemeConfig:
    """Scheme of a study's configuration with all its parameters."""
    return SchemeConfig(name=scheme, scheme=scheme) if isinstance(scheme, str) else scheme


def label_of(part: str | PolicyConfig | SchemeConfig) -> str:
    """Label of a policy or a scheme in figures."""
    return part if isinstance(part, str) else part.name


def local_policy(policy: str | PolicyConfig) -> LocalPolicy:
    """Policy of a study's configuration."""
    return named_policy(policy) if isinstance(policy, str) else policy.policy()

"""What studies are made of: clusters, workloads, scenarios, ways to measure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    Tag,
    model_validator,
)
from pydantic_core import CoreSchema

from gridsched.derived import part_model, with_lists
from gridsched.engine.records import LARGEST
from gridsched.errors import GridschedError
from gridsched.nodes import NodeType, PlacementName, RequeueName
from gridsched.platform import Cluster
from gridsched.submission import AlignName, EstimateName
from gridsched.traces import find_log
from gridsched.validation import (
    BY_NAME,
    ConfigModel,
    Count,
    DifferentFiles,
    Duration,
    Factor,
    Fraction,
    Instant,
    Label,
    Month,
    Number,
    PathText,
    Slug,
    Whole,
    suggestion,
)
from gridsched.workloads import Machine, load_machines
from gridsched.workloads.feedback import THINK_TIME, SessionName, with_feedback
from gridsched.workloads.resampling import TEMPORARY_WEEKS, resample, squeezed
from gridsched.workloads.shaking import shake
from gridsched.workloads.table import Workload


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


class Window(ConfigModel):
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


class EstimatesConfig(ConfigModel):
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


class EstimateErrors(ConfigModel):
    """Runtime estimates with errors of a given size."""

    alternatives = ("share", "deviation")

    share: Number | None = Field(None, gt=0, le=100)
    """Share of the difference between requested times and run times that is left: 0.5 halves it."""
    deviation: Number | None = Field(None, gt=0, le=10)
    """Standard deviation of the logarithm of estimated over actual run times, drawn for every job."""

    @model_validator(mode="after")
    def _errors(self) -> Self:
        if self.share == 1:
            raise ValueError("share: 1 stands for requested times; write requested")
        return self

    @property
    def label(self) -> str:
        """Name in datasets, tables and figures."""
        if self.share is not None:
            return f"requested, {self.share:g} of the error"
        return f"actual, errors with deviation {self.deviation:g}"


_Estimate = Annotated[
    Annotated[EstimateName, Tag(BY_NAME)] | Annotated[EstimateErrors, Tag("by errors")],
    Discriminator(lambda value: "by errors" if isinstance(value, dict | EstimateErrors) else BY_NAME),
]
EstimateKeys = Annotated[tuple[_Estimate, ...], Field(min_length=1)]
"""Runtime estimates: names, or errors that they have."""


class Sizes(ConfigModel):
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
        for key in ("exponent", "utilisation"):
            if getattr(self, key) is not None and self.weighting != "power-law":
                raise ValueError(f"{key}: the weighting {self.weighting!r} has nothing to adjust")
        return self


class Synthetic(ConfigModel):
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
    requested_times: EstimatesConfig = EstimatesConfig()
    """Model of the requested times."""


class FailuresConfig(ConfigModel):
    """Failures of nodes, drawn or from a file, and what becomes of their jobs."""

    alternatives = ("mean_time_between", "events")

    mean_time_between: Number | None = Field(None, gt=0, le=1e12)
    """Mean time from the end of a repair of a node to its next failure, seconds; what follows is drawn."""
    events: PathText | None = None
    """Path of a CSV file of failures, repairs and maintenance; times are by the clock of the submit times."""
    mean_repair: Number = Field(3600, gt=0, le=1e12)
    """Mean time of a repair, seconds, exponentially distributed."""
    shape: Number = Field(1.0, gt=0, le=100)
    """Shape of the Weibull distribution of times between failures; 1 is exponential."""
    rack: Count = 1
    """Nodes that fail together."""
    seed: Annotated[Whole, Field(ge=0, le=2**31)] = 0
    """Seed of what is drawn, besides that of the configuration: the nodes of clusters of one name fail at the
    same times in all scenarios of one seed."""
    requeue: RequeueName = "place"
    """What becomes of a job whose node fails: it waits again at its place in the queue, or at the end, or it
    is lost."""
    checkpoint_interval: Annotated[Whole, Field(ge=0, le=10**9)] = 0
    """Seconds of work between checkpoints; 0 for none."""
    checkpoint_cost: Annotated[Whole, Field(ge=0, le=10**9)] = 0
    """Seconds that a checkpoint takes."""

    @model_validator(mode="after")
    def _drawn_or_given(self) -> Self:
        if self.events is not None:
            for key in ("mean_repair", "shape", "rack", "seed"):
                if getattr(self, key) != type(self).model_fields[key].default:
                    raise ValueError(f"{key}: the failures of a file are not drawn; leave it out")
        return self


NodesConfig: Any = part_model(NodeType)
"""Nodes that are alike."""


class ClusterConfig(ConfigModel):
    """A cluster; what is not given is taken from the log or the model of its workload."""

    name: Slug
    """Name in figures and file names."""
    processors: Count | None = None
    """Processors that jobs can use."""
    processors_per_node: Count | None = None
    """Processors of one node."""
    node_exclusive: StrictBool | None = None
    """Whether a node runs one job only."""
    speed: Number | None = Field(None, ge=0.001, le=1_000_000)
    """Speed. Of a cluster by itself relative to that of the workload, 1 by default. In a grid in any unit
    that all clusters share; by default the clock speed of the model in MHz, or 1 for a log."""
    nodes: tuple[NodesConfig, ...] = ()
    """Nodes with cores, memory and GPUs, which are then the processors; by default processors are counted."""
    placement: PlacementName = "first_fit"
    """Which nodes jobs get."""
    failures: FailuresConfig | None = None
    """Failures of its nodes; none by default."""

    @model_validator(mode="after")
    def _of_nodes(self) -> Self:
        if not self.nodes:
            return self
        if self.processors is not None or self.processors_per_node is not None:
            raise ValueError("processors, processors_per_node: the nodes say them; leave them out")
        Cluster(nodes=[each.made() for each in self.nodes])
        return self

    @property
    def size(self) -> int | None:
        """Its processors, as far as they are configured."""
        return sum(each.count * each.cores for each in self.nodes) if self.nodes else self.processors

    @property
    def asks_for(self) -> dict[str, str]:
        """Capabilities that its schedulers need, with the key that asks for each."""
        return {
            **({"nodes": "nodes"} if self.nodes else {}),
            **({"failures": "failures"} if self.failures is not None else {}),
        }

    def cluster(self, default: Cluster) -> Cluster:
        """The cluster, with what is not configured taken from `default`.

        Its nodes and their failures are added for each run, see `gridsched.experiments.machines`.
        """
        keys = ("processors", "processors_per_node", "node_exclusive", "speed")
        given = {key: getattr(self, key) for key in keys}
        if self.nodes:
            given |= {"processors": self.size, "processors_per_node": 1}
        known = {key: getattr(default, key) if value is None else value for key, value in given.items()}
        return Cluster(name=default.name, **known)


def _check_whole_nodes(processors: int, per_node: int) -> None:
    if processors % per_node:
        raise ValueError(
            f"processors: {processors} are not whole nodes of {per_node}; "
            "fix processors or processors_per_node"
        )


def _sized(cluster: ClusterConfig) -> ClusterConfig:
    if cluster.size is None:
        raise ValueError("processors: missing")
    _check_whole_nodes(cluster.size, cluster.processors_per_node or 1)
    return cluster


SizedCluster = Annotated[ClusterConfig, AfterValidator(_sized)]
"""A cluster whose processors are given."""


class FeedbackConfig(ConfigModel):
    """Users who submit jobs some time after earlier ones ended (Shmueli and Feitelson 2006)."""

    think_time: Duration = THINK_TIME
    """Longest time between the end of a batch and the next one of the same session, seconds."""
    sessions: SessionName = "clock"
    """When sessions begin: when the log says, but not before the session before has ended (`clock`); as long
    after that as in the log (`think`); or as in the log after a response that is too long for the user, who
    else goes on (`leave`)."""
    seed: Annotated[Whole, Field(ge=0, le=2**31)] = 0
    """Seed of what is drawn with `leave`: how long users stay, think times and breaks that the log lacks. The
    seed of the configuration has no part in it."""

    @model_validator(mode="after")
    def _drawn(self) -> Self:
        if self.seed and self.sessions != "leave":
            raise ValueError("seed: only users who leave are drawn; leave it out")
        return self

    def made(self, workload: Workload) -> Workload:
        """The workload whose submissions follow the ends of earlier jobs."""
        return with_feedback(workload, think_time=self.think_time, sessions=self.sessions, seed=self.seed)


class WorkloadConfig(ClusterConfig):
    """A cluster and the workload that its users submit, which is replayed on it."""

    alternatives = ("archive", "file", "synthetic", "jobs")

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
    leave_out_incomplete: StrictBool = False
    """Whether jobs that took no time, or requested none, are left out of a log, as in the simulator pyss."""
    cancelled: Literal["recorded", "wait"] = "recorded"
    """Jobs of a log that were cancelled before they ran: as they are recorded (left out, or of no length), or
    waiting until their users gave up."""
    preceding: StrictBool = False
    """Whether jobs wait for the preceding jobs that their log names (SWF fields 17 and 18)."""
    feedback: FeedbackConfig | None = None
    """Users react: a batch of jobs is submitted some time after the one before it has ended; by default
    jobs are submitted when the log says."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.is_log:
            for key in (
                "window",
                "leave_out_status",
                "leave_out_queue",
                "leave_out_incomplete",
                "preceding",
                "feedback",
            ):
                if getattr(self, key):
                    raise ValueError(f"{key}: only a log (archive or file) has one")
            if self.cancelled != "recorded":
                raise ValueError("cancelled: only a log (archive or file) says when users gave up")
        if self.feedback is not None and self.cancelled == "wait":
            raise ValueError("feedback, cancelled: users who react do not give up yet; give one of them")
        if self.jobs and self.size is None:
            raise ValueError("processors: missing; give those of the cluster for jobs that are written out")
        self._check_nodes()
        return self

    def _check_nodes(self) -> None:
        """Processors in whole nodes, as far as they are known before the log is read."""
        if self.nodes:
            return
        machine = _machines()[self.synthetic.machine] if self.synthetic else None
        processors = self.processors or (machine.processors if machine else None)
        per_node = self.processors_per_node or (machine.processors_per_node if machine else 1)
        if processors is not None:
            _check_whole_nodes(processors, per_node)

    @property
    def is_log(self) -> bool:
        """Whether the workload is read from an SWF file."""
        return self.archive is not None or self.file is not None

    @property
    def asks_for(self) -> dict[str, str]:
        """Capabilities that its schedulers need, with the key that asks for each."""
        return {
            **super().asks_for,
            **({"cancellations": "cancelled"} if self.cancelled == "wait" else {}),
            **({"dependencies": "feedback"} if self.feedback is not None else {}),
            **({"dependencies": "preceding"} if self.preceding else {}),
        }


def _log(workload: WorkloadConfig) -> WorkloadConfig:
    if not workload.is_log:
        raise ValueError("only a log (archive or file) can be used here")
    return workload


LogConfig = Annotated[WorkloadConfig, AfterValidator(_log)]
"""A workload that is a log."""


class JobClasses(ConfigModel):
    """Borders of the job classes (short and long, narrow and wide)."""

    long: Count = 3600
    """A job that runs longer than so many seconds is long."""
    wide: Count = 8
    """A job of more than so many processors is wide."""


class MetricsConfig(ConfigModel):
    """How runs are measured."""

    warm_up: Fraction = 0.0
    """Fraction of jobs, in order of submission, left out of job metrics at the beginning."""
    cool_down: Fraction = 0.0
    """Fraction left out at the end."""
    bins: Whole = Field(200, ge=1, le=100_000)
    """Number of time bins of the series of utilisation and queue length."""
    classes: JobClasses = JobClasses()
    """Borders of the job classes."""


class ResamplingConfig(ConfigModel):
    """Logs put together anew from the histories of their users (Zakay and Feitelson 2014)."""

    replicates: Annotated[Whole, Field(ge=2, le=10_000)] = 10
    """How many resampled logs."""
    weeks: Count | None = None
    """Weeks of each; by default as many as the log has in full."""
    users: Factor = 1.0
    """Users relative to the log: the load grows with their number, while hours of the day and think times
    stay."""
    squeeze: Factor = 1.0
    """Times between submissions are divided by this, to see what that does beside more users: days become
    shorter and users faster."""
    temporary_weeks: Count = TEMPORARY_WEEKS
    """Users whose jobs lie within so many consecutive weeks are temporary and come at random; the others are
    always there."""

    def made(self, workload: Workload, seed: int) -> Workload:
        """A resampled workload."""
        made = resample(
            workload,
            seed=seed,
            weeks=self.weeks,
            users=self.users,
            temporary_weeks=self.temporary_weeks,
        )
        return made if self.squeeze == 1 else squeezed(made, self.squeeze)


class ShakingConfig(ConfigModel):
    """Logs with small random changes of their submit times (Tsafrir, Ouaknine and Feitelson 2007)."""

    replicates: Annotated[Whole, Field(ge=2, le=10_000)] = 30
    """How many shaken logs."""
    seconds: Duration = 60
    """Each submission moves by a random time of at most so many seconds, either way."""

    def made(self, workload: Workload, seed: int) -> Workload:
        """A shaken workload."""
        return shake(workload, seed=seed, seconds=self.seconds)


class VariedConfig(ConfigModel):
    """What makes several workloads of one log."""

    resampling: ResamplingConfig | None = None
    """Replicates are resampled logs; by default a log is replayed as it is."""
    shaking: ShakingConfig | None = None
    """Replicates are shaken logs; by default a log is replayed as it is."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.resampling is not None and self.shaking is not None:
            raise ValueError("resampling, shaking: give one of them, or a scenario for each")
        return self

    @property
    def variation(self) -> ResamplingConfig | ShakingConfig | None:
        """How replicates differ from the log; none where it is replayed as it is."""
        return self.resampling or self.shaking

    @property
    def machines(self) -> Sequence[ClusterConfig]:
        """The clusters that are configured here."""
        return tuple(getattr(self, "clusters", ()))


class ScenarioChoice(VariedConfig):
    """A scenario by name, and which runs of the study there are in it."""

    name: Slug
    """Name in figures and file names."""
    schedulers: Annotated[tuple[Label, ...], Field(min_length=1)] | None = None
    """Names of the schedulers that run here; all by default."""
    estimates: EstimateKeys | None = None
    """Runtime estimates of the schedulers here; by default as the study says."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Schema in which a list may stand for a value, and what is common to all scenarios is left out."""
        schema = handler.resolve_ref_schema(super().__get_pydantic_json_schema__(core_schema, handler))
        whole = with_lists(cls, schema, ["name"])
        # What is not given may be common to all scenarios
        for value in whole["properties"].values():
            value.setdefault("default", None)
        return {**whole, "required": ["name"]}


_FOR_ALL = ("failures", "cancelled", "preceding", "feedback")
"""Keys of clusters that a scenario may say for all of them."""


class ScenarioConfig(ScenarioChoice):
    """Clusters with what their users submit."""

    clusters: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1, max_length=1000), DifferentFiles]
    """The clusters, each with the workload that is submitted to it."""
    align: AlignName = "start"
    """How submit times go together: all begin at once, by the clock of the logs, or as they are written."""
    failures: FailuresConfig | None = None
    """Failures of the nodes of all clusters that do not say their own."""
    cancelled: Literal["recorded", "wait"] | None = None
    """What becomes of cancelled jobs on all clusters that do not say it themselves."""
    preceding: StrictBool | None = None
    """Whether jobs wait for preceding jobs on all clusters that do not say it themselves."""
    feedback: FeedbackConfig | None = None
    """How users react on all clusters that do not say it themselves."""

    @model_validator(mode="before")
    @classmethod
    def _say_it_for_all(cls, values: Any) -> Any:
        """Values in which each cluster says itself what is said for all."""
        clusters = values.get("clusters") if isinstance(values, dict) else None
        if not isinstance(clusters, list | tuple):
            return values
        shared = {key: values[key] for key in _FOR_ALL if values.get(key) is not None}
        told = [{**shared, **each} if isinstance(each, dict) else each for each in clusters]
        return {**{key: value for key, value in values.items() if key not in shared}, "clusters": told}

    @model_validator(mode="after")
    def _clusters_go_together(self) -> Self:
        for key in _FOR_ALL:
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: there are no clusters to say it for; give it to single ones")
        return self

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn."""
        return self.clusters


class GridConfig(ScenarioConfig):
    """Clusters of a grid with what their users submit."""

    @model_validator(mode="after")
    def _one_unit_of_speed(self) -> Self:
        drawn = any(cluster.synthetic for cluster in self.clusters)
        for cluster in self.clusters:
            if drawn and not cluster.synthetic and cluster.speed is None:
                raise ValueError(
                    f"clusters: {cluster.name} has no speed; give its clock speed in MHz, "
                    "which is the speed of the synthetic clusters"
                )
        return self


class BaselineConfig(ConfigModel):
    """What a scenario is set against."""

    baseline: Slug | None = None
    """Scenario of the same jobs under other conditions: how much longer jobs take here than there is
    measured, by the means over the jobs that started in each."""


def label_of(part: Any) -> str:
    """Label of a scheduler in figures: a name, or what it is named."""
    return str(getattr(part, "name", part))

"""Messages of Batsim 4: ``{"now": ..., "events": [{"timestamp": ..., "type": ..., "data": {...}}]}``.

Source: docs/protocol.rst and src/protocol.cpp of Batsim 4; where they differ, what Batsim writes and what it
asserts. A decision with a field that is not in the table of the protocol is refused, and so are those that
gridsched does not have (`Unsupported`). Fields that a simulator writes in addition are passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Union

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gridsched.errors import ProtocolError
from gridsched.protocols import messages as m
from gridsched.protocols.messages import Decision, Event
from gridsched.protocols.wire import Direction, JsonCodec, Strict, unsupported
from gridsched.traces.batsim import Labels

NAME = "batsim-4"


class _Event(Struct, frozen=True, gc=False, tag_field="type"):
    """What the simulator says."""

    timestamp: float


class _Decision(Struct, frozen=True, gc=False, tag_field="type", forbid_unknown_fields=True):
    """What the decision process says."""

    timestamp: float


# --- data of events -------------------------------------------------------------------------------


class _Resource(Struct, frozen=True):
    id: int
    name: str
    state: str = "idle"
    properties: dict[str, str] = {}
    zone_properties: dict[str, str] = {}


class _Beginning(Struct, frozen=True, rename={"profiles_of": "profiles"}):
    nb_resources: int
    nb_compute_resources: int
    compute_resources: list[_Resource]
    nb_storage_resources: int = 0
    allow_compute_sharing: bool = False
    allow_storage_sharing: bool = True
    storage_resources: list[_Resource] = []
    config: dict[str, Any] = {}
    workloads: dict[str, str] = {}
    profiles_of: dict[str, dict[str, Any]] = {}


class _Job(Struct, frozen=True, gc=False):
    id: str
    res: int
    profile: str
    walltime: float | UnsetType = UNSET
    subtime: float | UnsetType = UNSET
    # fields of the workload, see `Labels`
    user: Any = UNSET
    group: Any = UNSET
    executable: Any = UNSET
    queue: Any = UNSET
    partition: Any = UNSET


class _Profile(Struct, frozen=True, gc=False, omit_defaults=True):
    type: str | UnsetType = UNSET
    delay: float | UnsetType = UNSET


class _Submission(Struct, frozen=True, gc=False):
    job_id: str
    job: _Job
    profile: _Profile | UnsetType = UNSET


class _Completion(Struct, frozen=True, gc=False):
    job_id: str
    job_state: m.FinalState
    return_code: int = 0
    alloc: str = ""


class _Progress(Struct, frozen=True, gc=False):
    profile_name: str = ""
    progress: float = 0.0


class _Killing(Struct, frozen=True):
    job_ids: list[str]
    job_progress: dict[str, _Progress] = {}


class _States(Struct, frozen=True, gc=False):
    resources: str
    state: str | int


class _Notice(Struct, frozen=True, gc=False, omit_defaults=True):
    type: str
    resources: str = ""


class _Nothing(Struct, frozen=True, gc=False):
    pass


class _Begins(_Event, frozen=True, tag="SIMULATION_BEGINS"):
    data: _Beginning


class _Ends(_Event, frozen=True, tag="SIMULATION_ENDS"):
    data: _Nothing


class _Submitted(_Event, frozen=True, tag="JOB_SUBMITTED"):
    data: _Submission


class _Completed(_Event, frozen=True, tag="JOB_COMPLETED"):
    data: _Completion


class _Killed(_Event, frozen=True, tag="JOB_KILLED"):
    data: _Killing


class _Changed(_Event, frozen=True, tag="RESOURCE_STATE_CHANGED"):
    data: _States


class _Called(_Event, frozen=True, tag="REQUESTED_CALL"):
    data: _Nothing


class _Notified(_Event, frozen=True, tag="NOTIFY"):
    data: _Notice


class _Happened(Struct, frozen=True):
    now: float
    events: list[_Begins | _Ends | _Submitted | _Completed | _Killed | _Changed | _Called | _Notified]


# --- data of decisions ----------------------------------------------------------------------------


class _Allocation(Strict, frozen=True):
    job_id: str
    alloc: str
    mapping: msgspec.Raw | UnsetType = UNSET
    storage_mapping: msgspec.Raw | UnsetType = UNSET
    additional_io_job: msgspec.Raw | UnsetType = UNSET


class _OfJob(Strict, frozen=True):
    job_id: str


class _OfJobs(Strict, frozen=True):
    job_ids: list[str]


class _At(Strict, frozen=True):
    timestamp: float


class _Text(Strict, frozen=True):
    job_id: str
    metadata: str


class _Registration(Strict, frozen=True):
    type: Literal["registration_finished", "continue_registration"]


class _Execute(_Decision, frozen=True, tag="EXECUTE_JOB"):
    data: _Allocation


class _Reject(_Decision, frozen=True, tag="REJECT_JOB"):
    data: _OfJob


class _Kill(_Decision, frozen=True, tag="KILL_JOB"):
    data: _OfJobs


class _Call(_Decision, frozen=True, tag="CALL_ME_LATER"):
    data: _At


class _Set(_Decision, frozen=True, tag="SET_RESOURCE_STATE"):
    data: _States


class _Metadata(_Decision, frozen=True, tag="SET_JOB_METADATA"):
    data: _Text


class _Notify(_Decision, frozen=True, tag="NOTIFY"):
    data: _Registration


_UNSUPPORTED = unsupported(
    _Decision,
    "data",
    "REGISTER_JOB",
    "REGISTER_PROFILE",
    "CHANGE_JOB_STATE",
    "QUERY",
    "ANSWER",
    "TO_JOB_MSG",
    "RESOURCES_ADDED",
    "RESOURCES_REMOVED",
)
_SUPPORTED = (_Execute, _Reject, _Kill, _Call, _Set, _Metadata, _Notify)
_ANY: Any = Union.__getitem__((*_SUPPORTED, *_UNSUPPORTED))

_Decided = msgspec.defstruct(
    "_Decided",
    [("now", float), ("events", list[_ANY])],
    frozen=True,
    forbid_unknown_fields=True,
)


# --- events there and back ------------------------------------------------------------------------

_NO_MORE_JOBS, _NO_MORE_EVENTS = "no_more_static_job_to_submit", "no_more_external_event_to_occur"
_CONFIGURATION = {
    "redis-enabled": False,
    "redis-hostname": "127.0.0.1",
    "redis-port": 6379,
    "redis-prefix": "default",
    "profiles-forwarded-on-submission": False,
    "dynamic-jobs-enabled": False,
    "dynamic-jobs-acknowledged": False,
    "profile-reuse-enabled": False,
    "forward-unknown-events": False,
}
"""What clients look up in the configuration of the simulator."""

_AVAILABLE, _UNAVAILABLE = "event_machine_available", "event_machine_unavailable"


def _begins(e: m.SimulationBegins) -> _Begins:
    resources = [
        _Resource(host.id, host.name, zone_properties={"cores": str(host.cores)} if host.cores > 1 else {})
        for host in e.hosts
    ]
    number = len(resources)
    workloads = e.workloads
    profiles: dict[str, dict[str, Any]] = {name: {} for name in workloads}
    for name, run_time in e.profiles.items():
        workload, _, profile = name.partition("!")
        profiles.setdefault(workload, {})[profile] = {"type": "delay", "delay": run_time}
    config = {**_CONFIGURATION, **e.configuration}
    data = _Beginning(number, number, resources, config=config, workloads=workloads, profiles_of=profiles)
    return _Begins(e.timestamp, data)


def _submitted(e: m.JobSubmitted) -> _Submitted:
    walltime = UNSET if e.walltime is None else e.walltime
    job = _Job(e.job_id, e.hosts, e.profile, walltime, e.submit_time, *msgspec.structs.astuple(e.labels))
    profile = UNSET if e.run_time is None else _Profile("delay", e.run_time)
    return _Submitted(e.timestamp, _Submission(e.job_id, job, profile))


def _killed(e: m.JobsKilled) -> _Killed:
    progress = {job: _Progress(e.profiles.get(job, ""), done) for job, done in e.progress.items()}
    return _Killed(e.timestamp, _Killing(list(e.job_ids), progress))


_NOTHING = _Nothing()

_WRITE_EVENT: dict[type, Callable[[Any], _Event]] = {
    m.SimulationBegins: _begins,
    m.SimulationEnds: lambda e: _Ends(e.timestamp, _NOTHING),
    m.JobSubmitted: _submitted,
    m.JobCompleted: lambda e: _Completed(e.timestamp, _Completion(e.job_id, e.state, e.return_code, e.hosts)),
    m.JobsKilled: _killed,
    m.RequestedCall: lambda e: _Called(e.timestamp, _NOTHING),
    m.AllJobsSubmitted: lambda e: _Notified(e.timestamp, _Notice(_NO_MORE_JOBS)),
    m.AllEventsInjected: lambda e: _Notified(e.timestamp, _Notice(_NO_MORE_EVENTS)),
    m.HostsChanged: lambda e: _Notified(
        e.timestamp, _Notice(_AVAILABLE if e.available else _UNAVAILABLE, e.hosts)
    ),
    m.HostStateChanged: lambda e: _Changed(
        e.timestamp, _States(e.hosts, e.state if e.as_number else str(e.state))
    ),
}


def _read_begins(w: _Begins) -> m.SimulationBegins:
    hosts = tuple(
        m.Host(each.id, each.name, int(each.zone_properties.get("cores", "1")))
        for each in w.data.compute_resources
    )
    profiles = {
        f"{workload}!{name}": float(profile["delay"])
        for workload, each in w.data.profiles_of.items()
        for name, profile in each.items()
        if isinstance(profile, dict) and isinstance(profile.get("delay"), int | float)
    }
    return m.SimulationBegins(w.timestamp, hosts, w.data.workloads, w.data.config, profiles)


def _read_submitted(w: _Submitted) -> m.JobSubmitted:
    job, profile = w.data.job, w.data.profile
    limit = None if isinstance(job.walltime, UnsetType) or job.walltime < 0 else job.walltime
    submit = w.timestamp if isinstance(job.subtime, UnsetType) else job.subtime
    run = None
    if isinstance(profile, _Profile) and isinstance(profile.delay, float):
        run = profile.delay
    labels = Labels(job.user, job.group, job.executable, job.queue, job.partition)
    return m.JobSubmitted(w.timestamp, w.data.job_id, job.res, limit, submit, job.profile, run, labels)


def _read_killed(w: _Killed) -> m.JobsKilled:
    progress = {job: each.progress for job, each in w.data.job_progress.items()}
    profiles = {job: each.profile_name for job, each in w.data.job_progress.items()}
    return m.JobsKilled(w.timestamp, tuple(w.data.job_ids), progress, profiles)


def _read_notified(w: _Notified) -> Event:
    kind, hosts = w.data.type, w.data.resources
    if kind == _NO_MORE_JOBS:
        return m.AllJobsSubmitted(w.timestamp)
    if kind == _NO_MORE_EVENTS:
        return m.AllEventsInjected(w.timestamp)
    if kind in (_AVAILABLE, _UNAVAILABLE):
        return m.HostsChanged(w.timestamp, hosts, kind == _AVAILABLE)
    raise ProtocolError(f"NOTIFY of type {kind!r} at {w.timestamp:g} s: not one of {NAME}")


_READ_EVENT: dict[type, Callable[[Any], Event]] = {
    _Begins: _read_begins,
    _Ends: lambda w: m.SimulationEnds(w.timestamp),
    _Submitted: _read_submitted,
    _Completed: lambda w: m.JobCompleted(
        w.timestamp, w.data.job_id, w.data.job_state, w.data.return_code, w.data.alloc
    ),
    _Killed: _read_killed,
    _Changed: lambda w: m.HostStateChanged(
        w.timestamp, w.data.resources, _state(w), isinstance(w.data.state, int)
    ),
    _Called: lambda w: m.RequestedCall(w.timestamp),
    _Notified: _read_notified,
}

# --- decisions there and back ---------------------------------------------------------------------


def _state(w: _Changed | _Set) -> int:
    """Number of a power state, which is a text there."""
    text = str(w.data.state)
    if not (text.isascii() and text.isdigit()):
        raise ProtocolError(f'state {text!r} at {w.timestamp:g} s: a number is wanted, such as "42"')
    return int(text)


def _read_execute(w: _Execute) -> Decision:
    # how executors are mapped to hosts of the job does not matter to a job that takes a given time
    for name in ("storage_mapping", "additional_io_job"):
        if getattr(w.data, name) is not UNSET:
            return m.Unsupported(w.timestamp, f"EXECUTE_JOB with {name}")
    return m.ExecuteJob(w.timestamp, w.data.job_id, w.data.alloc)


_READ_DECISION: dict[type, Callable[[Any], Decision]] = {
    _Execute: _read_execute,
    _Reject: lambda w: m.RejectJob(w.timestamp, w.data.job_id),
    _Kill: lambda w: m.KillJobs(w.timestamp, tuple(w.data.job_ids)),
    _Call: lambda w: m.CallLater(w.timestamp, w.data.timestamp),
    _Set: lambda w: m.SetHostState(w.timestamp, w.data.resources, _state(w)),
    _Metadata: lambda w: m.SetMetadata(w.timestamp, w.data.job_id, w.data.metadata),
    _Notify: lambda w: m.FinishRegistration(w.timestamp),
    **{
        kind: lambda w: m.Unsupported(w.timestamp, str(type(w).__struct_config__.tag))
        for kind in _UNSUPPORTED
    },
}


def _call(d: m.CallLater) -> _Call:
    if d.period > 0:
        raise ProtocolError(f"periodic calls, asked for at {d.timestamp:g} s: {NAME} has none")
    return _Call(d.timestamp, _At(d.time))


_WRITE_DECISION: dict[type, Callable[[Any], _Decision]] = {
    m.ExecuteJob: lambda d: _Execute(d.timestamp, _Allocation(d.job_id, d.hosts)),
    m.RejectJob: lambda d: _Reject(d.timestamp, _OfJob(d.job_id)),
    m.KillJobs: lambda d: _Kill(d.timestamp, _OfJobs(list(d.job_ids))),
    m.CallLater: _call,
    m.SetHostState: lambda d: _Set(d.timestamp, _States(d.hosts, str(d.state))),
    m.SetMetadata: lambda d: _Metadata(d.timestamp, _Text(d.job_id, d.metadata)),
    m.FinishRegistration: lambda d: _Notify(d.timestamp, _Registration("registration_finished")),
}


_PLACES: dict[type, tuple[str, dict[str, str]]] = {
    m.ExecuteJob: ("EXECUTE_JOB", {"hosts": "alloc"}),
    m.RejectJob: ("REJECT_JOB", {}),
    m.KillJobs: ("KILL_JOB", {}),
    m.CallLater: ("CALL_ME_LATER", {"time": "timestamp"}),
    m.SetHostState: ("SET_RESOURCE_STATE", {"hosts": "resources"}),
    m.SetMetadata: ("SET_JOB_METADATA", {}),
    m.FinishRegistration: ("NOTIFY", {}),
}


class Batsim4(JsonCodec):
    """Codec of version 4."""

    name = NAME
    content = "data"
    places = _PLACES
    labels = "data.job"
    events = Direction(_Happened, msgspec.json.Decoder(_Happened), _WRITE_EVENT, _READ_EVENT)
    decisions = Direction(_Decided, msgspec.json.Decoder(_Decided), _WRITE_DECISION, _READ_DECISION)

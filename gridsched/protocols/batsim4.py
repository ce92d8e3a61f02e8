"""Messages of Batsim 4: ``{"now": ..., "events": [{"timestamp": ..., "type": ..., "data": {...}}]}``.

Source: docs/protocol.rst and src/protocol.cpp of Batsim 4; where they differ, what Batsim writes and what it
asserts. A decision with a field that is not in the table of the protocol is refused, and so are those that
gridsched does not have (`Unsupported`). Fields that a simulator writes in addition are passed over.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gridsched.errors import ProtocolError
from gridsched.protocols import messages as m
from gridsched.protocols.messages import Decision, Event
from gridsched.protocols.wire import (
    NOTHING,
    Codec,
    Direction,
    Form,
    Nothing,
    OfJob,
    OfJobs,
    Strict,
    Written,
    unsupported,
)
from gridsched.traces.batsim import Labels

NAME = "batsim-4"


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


# --- data of decisions ----------------------------------------------------------------------------


class _Allocation(Strict, frozen=True):
    job_id: str
    alloc: str
    mapping: msgspec.Raw | UnsetType = UNSET
    storage_mapping: msgspec.Raw | UnsetType = UNSET
    additional_io_job: msgspec.Raw | UnsetType = UNSET


class _At(Strict, frozen=True):
    timestamp: float


class _Text(Strict, frozen=True):
    job_id: str
    metadata: str


class _Registration(Strict, frozen=True):
    type: Literal["registration_finished", "continue_registration"]


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


def _begins(e: m.SimulationBegins) -> _Beginning:
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
    return _Beginning(number, number, resources, config=config, workloads=workloads, profiles_of=profiles)


def _submitted(e: m.JobSubmitted) -> _Submission:
    walltime = UNSET if e.walltime is None else e.walltime
    job = _Job(e.job_id, e.hosts, e.profile, walltime, e.submit_time, *msgspec.structs.astuple(e.labels))
    profile = UNSET if e.run_time is None else _Profile("delay", e.run_time)
    return _Submission(e.job_id, job, profile)


def _killed(e: m.JobsKilled) -> _Killing:
    progress = {job: _Progress(e.profiles.get(job, ""), done) for job, done in e.progress.items()}
    return _Killing(list(e.job_ids), progress)


_WRITE_EVENT: Written = {
    m.SimulationBegins: ("SIMULATION_BEGINS", _begins),
    m.SimulationEnds: ("SIMULATION_ENDS", lambda e: NOTHING),
    m.JobSubmitted: ("JOB_SUBMITTED", _submitted),
    m.JobCompleted: ("JOB_COMPLETED", lambda e: _Completion(e.job_id, e.state, e.return_code, e.hosts)),
    m.JobsKilled: ("JOB_KILLED", _killed),
    m.RequestedCall: ("REQUESTED_CALL", lambda e: NOTHING),
    m.AllJobsSubmitted: ("NOTIFY", lambda e: _Notice(_NO_MORE_JOBS)),
    m.AllEventsInjected: ("NOTIFY", lambda e: _Notice(_NO_MORE_EVENTS)),
    m.HostsChanged: ("NOTIFY", lambda e: _Notice(_AVAILABLE if e.available else _UNAVAILABLE, e.hosts)),
    m.HostStateChanged: (
        "RESOURCE_STATE_CHANGED",
        lambda e: _States(e.hosts, e.state if e.as_number else str(e.state)),
    ),
}


def _read_begins(timestamp: float, data: _Beginning) -> Event:
    hosts = tuple(
        m.Host(each.id, each.name, int(each.zone_properties.get("cores", "1")))
        for each in data.compute_resources
    )
    profiles = {
        f"{workload}!{name}": float(profile["delay"])
        for workload, each in data.profiles_of.items()
        for name, profile in each.items()
        if isinstance(profile, dict) and isinstance(profile.get("delay"), int | float)
    }
    return m.SimulationBegins(timestamp, hosts, data.workloads, data.config, profiles)


def _read_submitted(timestamp: float, data: _Submission) -> Event:
    job, profile = data.job, data.profile
    limit = None if isinstance(job.walltime, UnsetType) or job.walltime < 0 else job.walltime
    submit = timestamp if isinstance(job.subtime, UnsetType) else job.subtime
    run = None
    if isinstance(profile, _Profile) and isinstance(profile.delay, float):
        run = profile.delay
    labels = Labels(job.user, job.group, job.executable, job.queue, job.partition)
    return m.JobSubmitted(timestamp, data.job_id, job.res, limit, submit, job.profile, run, labels)


def _read_killed(timestamp: float, data: _Killing) -> Event:
    progress = {job: each.progress for job, each in data.job_progress.items()}
    profiles = {job: each.profile_name for job, each in data.job_progress.items()}
    return m.JobsKilled(timestamp, tuple(data.job_ids), progress, profiles)


def _read_notified(timestamp: float, data: _Notice) -> Event:
    kind, hosts = data.type, data.resources
    if kind == _NO_MORE_JOBS:
        return m.AllJobsSubmitted(timestamp)
    if kind == _NO_MORE_EVENTS:
        return m.AllEventsInjected(timestamp)
    if kind in (_AVAILABLE, _UNAVAILABLE):
        return m.HostsChanged(timestamp, hosts, kind == _AVAILABLE)
    raise ProtocolError(f"NOTIFY of type {kind!r} at {timestamp:g} s: not one of {NAME}")


def _state(timestamp: float, data: _States) -> int:
    """Number of a power state, which is a text there."""
    text = str(data.state)
    if not (text.isascii() and text.isdigit()):
        raise ProtocolError(f'state {text!r} at {timestamp:g} s: a number is wanted, such as "42"')
    return int(text)


_EVENTS = {
    "SIMULATION_BEGINS": Form(_Beginning, _read_begins),
    "SIMULATION_ENDS": Form(Nothing, lambda t, _: m.SimulationEnds(t)),
    "JOB_SUBMITTED": Form(_Submission, _read_submitted),
    "JOB_COMPLETED": Form(
        _Completion,
        lambda t, data: m.JobCompleted(t, data.job_id, data.job_state, data.return_code, data.alloc),
    ),
    "JOB_KILLED": Form(_Killing, _read_killed),
    "RESOURCE_STATE_CHANGED": Form(
        _States,
        lambda t, data: m.HostStateChanged(t, data.resources, _state(t, data), isinstance(data.state, int)),
    ),
    "REQUESTED_CALL": Form(Nothing, lambda t, _: m.RequestedCall(t)),
    "NOTIFY": Form(_Notice, _read_notified),
}

# --- decisions there and back ---------------------------------------------------------------------


def _read_execute(timestamp: float, data: _Allocation) -> Decision:
    # how executors are mapped to hosts of the job does not matter to a job that takes a given time
    for name in ("storage_mapping", "additional_io_job"):
        if getattr(data, name) is not UNSET:
            return m.Unsupported(timestamp, f"EXECUTE_JOB with {name}")
    return m.ExecuteJob(timestamp, data.job_id, data.alloc)


_DECISIONS = {
    "EXECUTE_JOB": Form(_Allocation, _read_execute),
    "REJECT_JOB": Form(OfJob, lambda t, data: m.RejectJob(t, data.job_id)),
    "KILL_JOB": Form(OfJobs, lambda t, data: m.KillJobs(t, tuple(data.job_ids))),
    "CALL_ME_LATER": Form(_At, lambda t, data: m.CallLater(t, data.timestamp)),
    "SET_RESOURCE_STATE": Form(_States, lambda t, data: m.SetHostState(t, data.resources, _state(t, data))),
    "SET_JOB_METADATA": Form(_Text, lambda t, data: m.SetMetadata(t, data.job_id, data.metadata)),
    "NOTIFY": Form(_Registration, lambda t, _: m.FinishRegistration(t)),
    **unsupported(
        "REGISTER_JOB",
        "REGISTER_PROFILE",
        "CHANGE_JOB_STATE",
        "QUERY",
        "ANSWER",
        "TO_JOB_MSG",
        "RESOURCES_ADDED",
        "RESOURCES_REMOVED",
    ),
}


def _call(d: m.CallLater) -> _At:
    if d.period > 0:
        raise ProtocolError(f"periodic calls, asked for at {d.timestamp:g} s: {NAME} has none")
    return _At(d.time)


_WRITE_DECISION: Written = {
    m.ExecuteJob: ("EXECUTE_JOB", lambda d: _Allocation(d.job_id, d.hosts)),
    m.RejectJob: ("REJECT_JOB", lambda d: OfJob(d.job_id)),
    m.KillJobs: ("KILL_JOB", lambda d: OfJobs(list(d.job_ids))),
    m.CallLater: ("CALL_ME_LATER", _call),
    m.SetHostState: ("SET_RESOURCE_STATE", lambda d: _States(d.hosts, str(d.state))),
    m.SetMetadata: ("SET_JOB_METADATA", lambda d: _Text(d.job_id, d.metadata)),
    m.FinishRegistration: ("NOTIFY", lambda d: _Registration("registration_finished")),
}


class Batsim4(Codec):
    """Codec of version 4."""

    name = NAME
    content = "data"
    places: ClassVar = {
        m.ExecuteJob: {"hosts": "alloc"},
        m.CallLater: {"time": "timestamp"},
        m.SetHostState: {"hosts": "resources"},
    }
    labels = "data.job"
    events = Direction("type", content, _EVENTS, _WRITE_EVENT)
    decisions = Direction("type", content, _DECISIONS, _WRITE_DECISION, strict=True)

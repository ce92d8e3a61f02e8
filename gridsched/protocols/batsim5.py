"""Messages of Batsim 5 as JSON, and the handshake that comes before them.

``{"now": ..., "events": [{"timestamp": ..., "event_type": ..., "event": {...}}]}`` and a NUL byte: the JSON
form of the tables in batprotocol.fbs. Binary messages are refused, since their schema is not published with
the release candidates.

Two handshakes have been published. That of the release candidates (`rc`): the simulator sends the size of
some data and the data, the decision process answers with the format of messages and an EDCHelloEvent; the
first message of the simulator has SimulationBeginsEvent. That of the versions before (`dev`): the simulator
sends format, size and data and gets an empty answer, then BatsimHelloEvent, which EDCHelloEvent answers.

Sources: batprotocol.fbs, message_builder.cpp, docs/protocol.rst, src/edc.cpp and src/protocol.cpp of Batsim
5, and what pybatsim reads.
"""

from __future__ import annotations

import struct
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
    workload_of,
)
from gridsched.traces.batsim import NO_LABELS, labels_in

NAME = "batsim-5"

Handshake = Literal["rc", "dev"]
"""That of the release candidates, or of the versions before them."""

BINARY, JSON = 1, 2
"""Formats of messages."""

PROTOCOL_VERSION = "1.0.0"
"""Version of batprotocol."""


# --- data of events -------------------------------------------------------------------------------


class _Hello(Struct, frozen=True):
    batprotocol_version: str
    batsim_version: str
    batsim_commit: str = ""


class _HostData(Struct, frozen=True):
    id: int
    name: str
    pstate: int = 0
    pstate_count: int = 1
    state: str = "IDLE"
    properties: list[dict[str, str]] = []
    zone_properties: list[dict[str, str]] = []
    core_count: int = 1
    computation_speed: tuple[float, ...] = (1.0,)


class _Workload(Struct, frozen=True):
    name: str
    filename: str


class _Delay(Struct, frozen=True, gc=False):
    delay: float | UnsetType = UNSET


class _Profile(Struct, frozen=True, gc=False):
    id: str
    profile_type: str
    profile: _Delay


class _Beginning(Struct, frozen=True):
    host_number: int
    computation_host_number: int
    computation_hosts: list[_HostData]
    storage_host_number: int = 0
    storage_hosts: list[_HostData] = []
    batsim_arguments: list[str] = []
    batsim_execution_context_json: str = "{}"
    workloads: list[_Workload] = []
    profiles: list[_Profile] = []


class _HostNumber(Struct, frozen=True, gc=False):
    host_number: int


class _Job(Struct, frozen=True, gc=False):
    resource_request: int | UnsetType = UNSET
    walltime: float = -1.0
    extra_data: str = ""
    rigid: bool = True
    profile_id: str = ""
    computation_resource_request: _HostNumber | UnsetType = UNSET


class _Submission(Struct, frozen=True, gc=False):
    job_id: str
    job: _Job
    submission_time: float = 0.0
    profile: _Profile | UnsetType = UNSET


class _Completion(Struct, frozen=True, gc=False):
    job_id: str
    state: m.FinalState
    return_code: int = 0


class _Atomic(Struct, frozen=True, gc=False):
    profile_id: str = ""
    progress: float = 0.0


class _Wrapper(Struct, frozen=True, gc=False):
    kill_progress_type: str
    kill_progress: _Atomic


class _Progress(Struct, frozen=True, gc=False):
    job_id: str
    wrapper: _Wrapper


class _Killing(Struct, frozen=True):
    job_ids: list[str]
    progresses: list[_Progress] = []
    profiles: list[Any] = []


class _Calling(Struct, frozen=True, gc=False):
    call_me_later_id: str
    last_periodic_call: bool = False


# --- data of decisions ----------------------------------------------------------------------------


class _Constraints(Strict, frozen=True):
    compute_sharing: bool = False
    storage_sharing: bool = True
    job_allocation_validation_strategy: str = ""


class _SchedulerHello(Strict, frozen=True):
    decision_component_name: str
    decision_component_version: str
    decision_component_commit: str | None = None
    batprotocol_version: str | None = None
    requested_simulation_features: dict[str, bool] = msgspec.field(default_factory=dict)
    scheduling_constraints: _Constraints = _Constraints()


class _Allocation(Strict, frozen=True):
    host_allocation: str
    executor_placement_type: str | UnsetType = UNSET
    executor_placement: Any | UnsetType = UNSET


class _Execution(Strict, frozen=True):
    job_id: str
    allocation: _Allocation
    profile_allocation_override: list[Any] | None = None
    storage_placement: list[Any] | None = None


Unit = Literal["Second", "Millisecond"]


class _OneShot(Strict, frozen=True):
    time: float
    time_unit: Unit = "Second"


class _Mode(Strict, frozen=True):
    nb_periods: int = 0


class _Periodic(Strict, frozen=True):
    period: float
    offset: float = 0.0
    start_time: float = 0.0
    time_unit: Unit = "Second"
    mode_type: Literal["Infinite", "FinitePeriodNumber"] = "Infinite"
    mode: _Mode = _Mode()


class _When(Strict, frozen=True, tag_field="when_type"):
    call_me_later_id: str


class _Once(_When, frozen=True, tag="OneShot"):
    when: _OneShot


class _Often(_When, frozen=True, tag="Periodic"):
    when: _Periodic


class _OfCall(Strict, frozen=True):
    call_me_later_id: str


# --- events there and back ------------------------------------------------------------------------

_ATOMIC = "KillProgressAtomicProfile"


def _begins(e: m.SimulationBegins) -> _Beginning:
    hosts = [_HostData(host.id, host.name, core_count=host.cores) for host in e.hosts]
    context = msgspec.json.encode(e.configuration).decode()
    workloads = [_Workload(name, file) for name, file in e.workloads.items()]
    return _Beginning(
        len(hosts),
        len(hosts),
        hosts,
        batsim_arguments=["gridsched"],
        batsim_execution_context_json=context,
        workloads=workloads,
        profiles=[_delay(name, run_time) for name, run_time in e.profiles.items()],
    )


def _delay(name: str, run_time: float) -> _Profile:
    """A profile that takes a given time."""
    return _Profile(name, "DelayProfile", _Delay(run_time))


def _submitted(e: m.JobSubmitted) -> _Submission:
    name = workload_of(e.job_id) + e.profile
    labels = "" if e.labels is NO_LABELS else msgspec.json.encode(e.labels).decode()
    job = _Job(e.hosts, -1.0 if e.walltime is None else e.walltime, labels, profile_id=name)
    profile = UNSET if e.run_time is None else _delay(name, e.run_time)
    return _Submission(e.job_id, job, e.submit_time, profile)


def _killed(e: m.JobsKilled) -> _Killing:
    progresses = [
        _Progress(job, _Wrapper(_ATOMIC, _Atomic(workload_of(job) + e.profiles.get(job, ""), done)))
        for job, done in e.progress.items()
    ]
    return _Killing(list(e.job_ids), progresses)


_WRITE_EVENT: Written = {
    m.SimulatorHello: ("BatsimHelloEvent", lambda e: _Hello(PROTOCOL_VERSION, e.version)),
    m.SimulationBegins: ("SimulationBeginsEvent", _begins),
    m.SimulationEnds: ("SimulationEndsEvent", lambda e: NOTHING),
    m.JobSubmitted: ("JobSubmittedEvent", _submitted),
    m.JobCompleted: (
        "JobCompletedEvent",
        # a return code is 32 bits without sign, and -1 where the walltime was reached
        lambda e: _Completion(e.job_id, e.state, e.return_code % 2**32),
    ),
    m.JobsKilled: ("JobsKilledEvent", _killed),
    m.RequestedCall: ("RequestedCallEvent", lambda e: _Calling(e.call_id, e.last)),
    m.AllJobsSubmitted: ("AllStaticJobsHaveBeenSubmittedEvent", lambda e: NOTHING),
    m.AllEventsInjected: ("AllStaticExternalEventsHaveBeenInjectedEvent", lambda e: NOTHING),
}


def _read_begins(timestamp: float, event: _Beginning) -> Event:
    hosts = tuple(m.Host(each.id, each.name, each.core_count) for each in event.computation_hosts)
    workloads = {each.name: each.filename for each in event.workloads}
    context = _context(event.batsim_execution_context_json)
    profiles = {
        each.id: each.profile.delay for each in event.profiles if isinstance(each.profile.delay, float)
    }
    return m.SimulationBegins(timestamp, hosts, workloads, context, profiles)


def _context(text: str) -> dict[str, Any]:
    """What the simulator was started with, where it says so as an object."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _read_submitted(timestamp: float, event: _Submission) -> Event:
    job, profile = event.job, event.profile
    asked = job.resource_request
    if isinstance(asked, UnsetType):
        if isinstance(job.computation_resource_request, UnsetType):
            raise ProtocolError(f"job {event.job_id!r} at {timestamp:g} s has no resource_request")
        asked = job.computation_resource_request.host_number
    run = None
    if isinstance(profile, _Profile) and isinstance(profile.profile.delay, float):
        run = profile.profile.delay
    return m.JobSubmitted(
        timestamp,
        event.job_id,
        asked,
        None if job.walltime < 0 else job.walltime,
        event.submission_time,
        job.profile_id.removeprefix(workload_of(event.job_id)),
        run,
        labels_in(job.extra_data),
    )


def _read_killed(timestamp: float, event: _Killing) -> Event:
    found = {each.job_id: each.wrapper.kill_progress for each in event.progresses}
    progress = {job: each.progress for job, each in found.items()}
    profiles = {job: each.profile_id.removeprefix(workload_of(job)) for job, each in found.items()}
    return m.JobsKilled(timestamp, tuple(event.job_ids), progress, profiles)


def _signed(code: int) -> int:
    """A return code that was written without sign."""
    return code - 2**32 if code >= 2**31 else code


_EVENTS = {
    "BatsimHelloEvent": Form(_Hello, lambda t, event: m.SimulatorHello(t, event.batsim_version)),
    "SimulationBeginsEvent": Form(_Beginning, _read_begins),
    "SimulationEndsEvent": Form(Nothing, lambda t, _: m.SimulationEnds(t), NOTHING),
    "JobSubmittedEvent": Form(_Submission, _read_submitted),
    "JobCompletedEvent": Form(
        _Completion,
        lambda t, event: m.JobCompleted(t, event.job_id, event.state, _signed(event.return_code)),
    ),
    "JobsKilledEvent": Form(_Killing, _read_killed),
    "RequestedCallEvent": Form(
        _Calling, lambda t, event: m.RequestedCall(t, event.call_me_later_id, event.last_periodic_call)
    ),
    "AllStaticJobsHaveBeenSubmittedEvent": Form(Nothing, lambda t, _: m.AllJobsSubmitted(t), NOTHING),
    "AllStaticExternalEventsHaveBeenInjectedEvent": Form(
        Nothing, lambda t, _: m.AllEventsInjected(t), NOTHING
    ),
}

# --- decisions there and back ---------------------------------------------------------------------


def _read_hello(timestamp: float, hello: _SchedulerHello) -> Decision:
    if hello.scheduling_constraints.compute_sharing:
        return m.Unsupported(timestamp, "compute_sharing of EDCHelloEvent")
    wanted = tuple(name for name, value in hello.requested_simulation_features.items() if value)
    return m.SchedulerHello(
        timestamp,
        hello.decision_component_name,
        hello.decision_component_version,
        hello.decision_component_commit or "",
        hello.batprotocol_version or "",
        wanted,
    )


def _read_execute(timestamp: float, event: _Execution) -> Decision:
    for name in ("profile_allocation_override", "storage_placement"):
        if getattr(event, name):
            return m.Unsupported(timestamp, f"ExecuteJobEvent with {name}")
    return m.ExecuteJob(timestamp, event.job_id, event.allocation.host_allocation)


def _read_call(timestamp: float, call: _Once | _Often) -> Decision:
    scale = 1000.0 if call.when.time_unit == "Millisecond" else 1.0
    if isinstance(call, _Once):
        return m.CallLater(timestamp, call.when.time / scale, call.call_me_later_id)
    when = call.when
    if when.period <= 0:
        raise ProtocolError(
            f"CallMeLaterEvent {call.call_me_later_id!r} at {timestamp:g} s: its period is {when.period:g}"
        )
    finite = when.mode_type == "FinitePeriodNumber"
    if finite and when.mode.nb_periods < 1:
        raise ProtocolError(
            f"CallMeLaterEvent {call.call_me_later_id!r} at {timestamp:g} s: "
            f"its number of periods is {when.mode.nb_periods}"
        )
    count = when.mode.nb_periods if finite else 0
    begin = max(when.offset, when.start_time) / scale
    return m.CallLater(timestamp, begin, call.call_me_later_id, when.period / scale, count)


_DECISIONS = {
    "EDCHelloEvent": Form(_SchedulerHello, _read_hello),
    "ExternalDecisionComponentHelloEvent": Form(_SchedulerHello, _read_hello),
    "ExecuteJobEvent": Form(_Execution, _read_execute),
    "RejectJobEvent": Form(OfJob, lambda t, event: m.RejectJob(t, event.job_id)),
    "KillJobsEvent": Form(OfJobs, lambda t, event: m.KillJobs(t, tuple(event.job_ids))),
    "CallMeLaterEvent": Form(_Once | _Often, _read_call),
    "StopCallMeLaterEvent": Form(_OfCall, lambda t, event: m.StopCall(t, event.call_me_later_id)),
    "FinishRegistrationEvent": Form(Nothing, lambda t, _: m.FinishRegistration(t), NOTHING),
    **unsupported(
        "ForceSimulationStopEvent",
        "RegisterJobEvent",
        "RegisterProfileEvent",
        "CreateProbeEvent",
        "StopProbeEvent",
        "TriggerProbeEvent",
        "ResetProbeEvent",
        "ChangeHostPStateEvent",
        "ChangeHostsPStateEvent",
        "TurnOnOffHostsEvent",
    ),
}


def _hello(d: m.SchedulerHello) -> _SchedulerHello:
    features = dict.fromkeys(d.features, True)
    version = d.protocol_version or PROTOCOL_VERSION
    return _SchedulerHello(d.name, d.version, d.commit, version, features)


def _execute(d: m.ExecuteJob) -> _Execution:
    placement = {"strategy": "SpreadOverHostsFirst"}
    allocation = _Allocation(d.hosts, "PredefinedExecutorPlacementStrategyWrapper", placement)
    return _Execution(d.job_id, allocation, [], [])


def _call(d: m.CallLater) -> _Once | _Often:
    if not d.call_id:
        raise ProtocolError(
            f"a call at {d.time:g} s, asked for at {d.timestamp:g} s, needs a call_id in {NAME}"
        )
    if d.period <= 0:
        return _Once(d.call_id, _OneShot(d.time))
    mode: Any = "FinitePeriodNumber" if d.count else "Infinite"
    return _Often(d.call_id, _Periodic(d.period, offset=d.time, mode_type=mode, mode=_Mode(d.count)))


_WRITE_DECISION: Written = {
    m.SchedulerHello: ("EDCHelloEvent", _hello),
    m.ExecuteJob: ("ExecuteJobEvent", _execute),
    m.RejectJob: ("RejectJobEvent", lambda d: OfJob(d.job_id)),
    m.KillJobs: ("KillJobsEvent", lambda d: OfJobs(list(d.job_ids))),
    m.CallLater: ("CallMeLaterEvent", _call),
    m.StopCall: ("StopCallMeLaterEvent", lambda d: _OfCall(d.call_id)),
    m.FinishRegistration: ("FinishRegistrationEvent", lambda d: NOTHING),
}


class Batsim5(Codec):
    """Codec of version 5; its messages end with a NUL byte, with or without which they are read."""

    name = NAME
    content = "event"
    places: ClassVar = {
        m.ExecuteJob: {"hosts": "allocation.host_allocation"},
        m.CallLater: {"time": "when.time", "call_id": "call_me_later_id"},
        m.StopCall: {"call_id": "call_me_later_id"},
    }
    labels = "event.job.extra_data"
    events = Direction("event_type", content, _EVENTS, _WRITE_EVENT, instead="; use batsim-4")
    decisions = Direction("event_type", content, _DECISIONS, _WRITE_DECISION, strict=True, may_be_empty=True)
    ending = b"\0"


# --- handshake ------------------------------------------------------------------------------------


def write_init(data: bytes, handshake: Handshake) -> bytes:
    """First message of the simulator on a socket: data for the decision process, such as its options."""
    size = struct.pack("=I", len(data)) + data
    return size if handshake == "rc" else struct.pack("=I", JSON) + size


def read_init(message: bytes, handshake: Handshake) -> bytes:
    """Data for the decision process in the first message of a simulator.

    Raises
    ------
    ProtocolError
        If it has another form, or wants binary messages.
    """
    begin = 4 if handshake == "rc" else 8
    sizes = struct.unpack_from(f"={begin // 4}I", message) if len(message) >= begin else ()
    if not sizes or sizes[-1] != len(message) - begin:
        raise ProtocolError(
            f"first message of {len(message):,} bytes: not "
            + ("size and data" if handshake == "rc" else "format, size and data")
            + f" of the handshake {handshake!r} of {NAME}; try the other"
        )
    if handshake == "dev":
        check_format(sizes[0])
    return message[begin:]


def write_init_reply(hello: bytes) -> bytes:
    """Answer to the first message in the handshake `rc`, from the message with a `SchedulerHello`."""
    return struct.pack("=I", JSON) + hello


def read_init_reply(reply: bytes) -> bytes:
    """Message with a `SchedulerHello` in the answer to the first message in the handshake `rc`.

    Raises
    ------
    ProtocolError
        If it is too short, or wants binary messages.
    """
    if len(reply) < 4 or reply.startswith(b"{"):
        raise ProtocolError(
            f"answer of {len(reply)} bytes to the first message, {reply[:20]!r}: the format of messages in 4 "
            f"bytes and an EDCHelloEvent are wanted; a decision process of an earlier {NAME} needs the "
            "handshake 'dev'"
        )
    check_format(struct.unpack_from("=I", reply)[0])
    return reply[4:]


def check_format(flags: int) -> None:
    """Refuse messages that are not JSON.

    Raises
    ------
    ProtocolError
        If they are not.
    """
    if flags != JSON:
        kind = "binary messages" if flags == BINARY else "messages of an unknown format"
        raise ProtocolError(f"format {flags}: {kind} are not supported; use JSON ({JSON})")

"""What a simulator and a decision process send each other, whatever the version of the protocol.

An `Event` notifies the decision process of what happened; a `Decision` is what it answers. Codecs
(`batsim4`, `batsim5`) turn both into bytes and back, so that either side can be played with either version.
Times are seconds. Jobs are named as `workload!job`. Sets of hosts are texts such as ``0-3 5``, see `hosts`.

Sources: docs/protocol.rst of Batsim 4 and 5, batprotocol.fbs (schema of version 5).
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from gridsched.traces.batsim import NO_LABELS, Labels

FinalState = Literal[
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED",
    "REJECTED",
]
"""Final state of a job."""


class Event(Struct, frozen=True, gc=False):
    """Something that happened; `timestamp` is when."""

    timestamp: float


class Host(Struct, frozen=True, gc=False):
    """A resource that jobs are given: its number in sets of hosts, its name and cores."""

    id: int
    name: str
    cores: int = 1


class SimulatorHello(Event, frozen=True):
    """The simulator says who it is (version 5 only, in its `dev` handshake)."""

    version: str


class SimulationBegins(Event, frozen=True):
    """First event: the hosts, names and files of workloads, and what the simulator was started with.

    `profiles` are run times of delay profiles by `workload!profile`, where those are sent.
    """

    hosts: tuple[Host, ...]
    workloads: dict[str, str] = {}
    configuration: dict[str, Any] = {}
    profiles: dict[str, float] = {}


class SimulationEnds(Event, frozen=True):
    """Last event: all jobs have ended or been rejected, and no call is outstanding."""


class JobSubmitted(Event, frozen=True):
    """A job waits: how many hosts it asks for, and its walltime (None for no limit).

    `profile` is the name of what it runs, without that of the workload; `run_time` is how long that is,
    where it is sent. Labels that a log does not know of a job are -1 there, as in SWF.
    """

    job_id: str
    hosts: int
    walltime: float | None
    submit_time: float
    profile: str = ""
    run_time: float | None = None
    labels: Labels = NO_LABELS


class JobCompleted(Event, frozen=True):
    """A job ran to its end, or as far as it got; `hosts` are those that it had, where that is sent."""

    job_id: str
    state: FinalState
    return_code: int = 0
    hosts: str = ""


class JobsKilled(Event, frozen=True):
    """All jobs of a `KillJobs` have ended.

    `progress` [0, 1] and `profiles` are of those that it killed, without those that had ended before.
    """

    job_ids: tuple[str, ...]
    progress: dict[str, float] = {}
    profiles: dict[str, str] = {}


class RequestedCall(Event, frozen=True):
    """The time of a `CallLater` has come; whether it is the last of a periodic one."""

    call_id: str = ""
    last: bool = False


class AllJobsSubmitted(Event, frozen=True):
    """The workload has no more jobs."""


class AllEventsInjected(Event, frozen=True):
    """No more hosts will fail or come back."""


class HostsChanged(Event, frozen=True):
    """Hosts have become available or unavailable."""

    hosts: str
    available: bool


class HostStateChanged(Event, frozen=True):
    """Hosts have reached the power state that a `SetHostState` wanted.

    Version 4 writes it as a text; `as_number` writes it as a number.
    """

    hosts: str
    state: int
    as_number: bool = False


class Decision(Struct, frozen=True, gc=False):
    """Something that is to be done; `timestamp` is when."""

    timestamp: float


class SchedulerHello(Decision, frozen=True):
    """The decision process says who it is, and which features it wants (version 5 only)."""

    name: str
    version: str
    commit: str = ""
    protocol_version: str = ""
    features: tuple[str, ...] = ()


class ExecuteJob(Decision, frozen=True):
    """Start a job on hosts."""

    job_id: str
    hosts: str


class RejectJob(Decision, frozen=True):
    """Let a job that waits never run."""

    job_id: str


class KillJobs(Decision, frozen=True):
    """Kill jobs that run."""

    job_ids: tuple[str, ...]


class CallLater(Decision, frozen=True):
    """Be called at `time`, or `count` times at multiples of `period` from `time` on; 0 for without end."""

    time: float
    call_id: str = ""
    period: float = 0.0
    count: int = 1


class StopCall(Decision, frozen=True):
    """End a periodic call."""

    call_id: str


class SetHostState(Decision, frozen=True):
    """Let hosts go to a power state."""

    hosts: str
    state: int


class SetMetadata(Decision, frozen=True):
    """Attach a text to a job, for the table of jobs."""

    job_id: str
    metadata: str


class FinishRegistration(Decision, frozen=True):
    """The decision process will register no more jobs of its own."""


class Unsupported(Decision, frozen=True):
    """A decision that the protocol has and gridsched has not, by its name there."""

    name: str


class Events(Struct, frozen=True):
    """A message to the decision process."""

    now: float
    events: tuple[Event, ...]


class Decisions(Struct, frozen=True):
    """A message from the decision process; from `now` on it can be notified of events again."""

    now: float
    decisions: tuple[Decision, ...]

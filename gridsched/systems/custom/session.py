"""A simulation that is driven by a decision process in another process or library.

At each instant the peer is notified of what happened, and what it decides is done. As in Batsim, nothing is
sent while it still decides: an answer with a time `now` that is later than the present lets time pass
until then, and what happens in between is in the next message. A decision that is dated later than the
present is carried out then. The engine has whole seconds: times with fractions are rounded up, and counted.

What happens at one instant is sent in this order: jobs that end, hosts that fail or come back, calls, jobs
that are submitted.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import UNSET

from gridsched.errors import ConfigurationError, ProtocolError, ScheduleError
from gridsched.platform import Cluster
from gridsched.protocols import messages as m
from gridsched.protocols.hosts import read_hosts, write_hosts
from gridsched.protocols.messages import Decision, Event
from gridsched.protocols.wire import Codec
from gridsched.results import Variable
from gridsched.systems.custom.simulator import Simulator
from gridsched.traces.batsim import Labels
from gridsched.workloads.table import UNKNOWN, Workload

WORKLOAD = "w0"
"""Name of the workload, before the ``!`` in names of jobs."""

_LATEST = 2**52
"""Times from which on a float does not distinguish one second from the next [s]."""

_FUTURE, _WAITING, _RUNNING, _ENDED = range(4)
_STATES = ("has not been submitted", "waits", "runs", "has ended or been rejected")
"""What a job does, and how that is said."""

_PROFILES_AT_START, _PROFILES_AT_SUBMISSION = (
    "forward_profiles_on_simulation_begins",
    "forward_profiles_on_job_submission",
)
_FEATURES = frozenset(
    (
        _PROFILES_AT_START,
        _PROFILES_AT_SUBMISSION,
        "forward_profiles_on_jobs_killed",  # they always are
        # of jobs and profiles that are registered, and of external events: of both there are none
        "profile_reuse",
        "acknowledge_dynamic_jobs",
        "forward_unknown_external_events",
    )
)
"""Features that a decision process may ask for in its hello."""


class Peer(Protocol):
    """A decision process: what it receives and what it answers, as bytes."""

    def exchange(self, message: bytes) -> bytes:
        """Its answer to a message.

        Raises
        ------
        ProtocolError
            If there is none in time.
        """


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What simulator and decision process agree on besides the version of the protocol.

    Parameters
    ----------
    job_ids, profiles : sequence of str
        Names of the jobs, and of what they run, by their place in the workload; without that of the workload.
    source : str
        File of the workload, as sent to the peer.
    names : mapping of str to sequence of str
        Texts of users, groups, executables, queues and partitions by their numbers; the numbers are sent of
        those without.
    forward_profiles : bool
        Whether the peer receives the run times of jobs.
    sleep_state : int
        Number of the power state in which hosts take no jobs; -1 for hosts without power states.
    state_as_number : bool
        Whether power states are sent as numbers, not as texts.
    """

    job_ids: Sequence[str]
    profiles: Sequence[str]
    source: str = ""
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    forward_profiles: bool = False
    sleep_state: int = -1
    state_as_number: bool = False


@dataclass
class Counts:
    """What happened how often between simulator and decision process."""

    protocol_messages: int = 0
    protocol_events: int = 0
    protocol_decisions: int = 0
    times_rounded_up: int = 0
    power_state_requests: int = 0
    power_state_changes: int = 0


class _Due(NamedTuple):
    """A decision that is carried out at a time; each has a number of its own, and a place in its answer."""

    time: int
    number: int
    place: int
    decision: Decision


@dataclass(order=True)
class _Call:
    """A time at which the peer wants to be called."""

    time: int
    number: int
    call_id: str = field(compare=False)
    period: float = field(compare=False, default=0.0)
    multiple: int = field(compare=False, default=0)
    left: int = field(compare=False, default=1)


def hosts_of(cluster: Cluster) -> tuple[list[str], int]:
    """Names of the hosts that a cluster is to a decision process, and processors of each.

    Hosts are the nodes, where these have one core or take one job each; else processors that are
    interchangeable.

    Raises
    ------
    ConfigurationError
        If jobs share nodes of several cores, or ask for more than processors.
    """
    asked = {
        "memory or GPUs of nodes": any(kind.memory is not None or kind.gpus for kind in cluster.nodes),
        "partitions": bool(cluster.partitions),
        "limits of groups": bool(cluster.limits),
        "constraints of nodes": bool(cluster.constraints),
    }
    wrong = [name for name, there in asked.items() if there]
    if wrong:
        raise ConfigurationError(
            f"cluster {cluster.name}: the protocol does not have {', '.join(wrong)}; leave it out"
        )
    if not cluster.has_nodes:
        return [f"host{k}" for k in range(cluster.processors // cluster.unit)], cluster.unit
    cores = {kind.cores for kind in cluster.node_types}
    if len(cores) > 1 or (not cluster.node_exclusive and cores != {1}):
        raise ConfigurationError(
            f"cluster {cluster.name}: a decision process gives jobs whole hosts, and nodes have "
            f"{', '.join(map(str, sorted(cores)))} cores; give nodes of one core, or equal nodes that are "
            "exclusive (--node-exclusive)"
        )
    return cluster.node_names, cores.pop()


def _labels_of(workload: Workload, names: Mapping[str, Sequence[str]]) -> list[Labels]:
    """What the protocol has no words for and schedulers of real machines know, of each job."""
    known: list[list[Any]] = []
    for name in Labels.__struct_fields__:
        column = np.asarray(getattr(workload, name), np.int64)
        texts: dict[Any, str] = dict(enumerate(names.get(name, ())))
        numbers = column.tolist() if (column != UNKNOWN).any() else [UNSET] * len(column)
        known.append([texts.get(number, number) for number in numbers])
    return [Labels(*each) for each in zip(*known, strict=True)]


class Session:
    """A simulator and a decision process from the first message to the last.

    Parameters
    ----------
    sim : Simulator
        The simulation at its beginning, of one cluster.
    codec : Codec
        Version of the protocol.
    peer : Peer
        The decision process.
    terms : Terms
        Names, and what else is agreed on.

    Raises
    ------
    ConfigurationError
        If there are several clusters, or hosts are not enough to say what jobs get.
    """

    def __init__(self, sim: Simulator, codec: Codec, peer: Peer, terms: Terms) -> None:
        if len(sim.clusters) != 1:
            raise ConfigurationError(
                f"a decision process has one cluster, and the platform has {len(sim.clusters)}"
            )
        self.sim, self.codec, self.peer, self.terms = sim, codec, peer, terms
        self.counts = Counts()
        self._metadata: dict[int, str] = {}
        self._allocations: dict[int, str] = {}
        self._final: dict[int, str] = {}
        workload, cluster = sim.workload, sim.clusters[0]
        names, unit = hosts_of(cluster)
        self._host_names, self._on_nodes = names, cluster.has_nodes
        self._failing = bool(cluster.events)
        self._last_event = max((max(each.time, each.end) for each in cluster.events), default=None)
        self._cores = unit
        self._sizes = (-(-np.asarray(workload.processors, np.int64) // unit)).tolist()
        self._walltimes = sim.submission.estimate.astype(float).tolist()
        self._submits = np.asarray(workload.submit_time, float).tolist()
        self._runs = sim.submission.run_time.astype(float).tolist()
        requested = np.asarray(workload.requested_time, np.int64)
        reached = (requested > 0) & (sim.submission.run_time >= requested)
        self._reaches_walltime = (reached & (sim.submission.killed is not None)).tolist()
        self._labels = _labels_of(workload, terms.names)
        self._fails = (np.asarray(workload.status, np.int64) == 0).tolist()
        self._ids = [f"{WORKLOAD}!{name}" for name in terms.job_ids]
        self._jobs = {job_id: job for job, job_id in enumerate(self._ids)}
        # as the peer knows them: with the attempt where a failure has killed them
        self._names = list(self._ids)
        self._state = [_FUTURE] * len(workload)
        self._attempts: dict[int, int] = {}
        self._running: dict[int, list[int]] = {}
        self._starts: dict[int, int] = {}
        self._idle = set(range(len(names)))
        self._asleep: set[int] = set()
        self._out: set[int] = set()
        self._to_come = self._expected()
        self._entered = 0
        self._events: list[Event] = []
        self._due: list[_Due] = []
        self._calls: list[_Call] = []
        self._wanted: set[int] = set()
        self._ready = 0
        self._now = 0
        self._number = 0
        self._forward = terms.forward_profiles

    def _expected(self) -> int:
        """Jobs that the peer will be notified of, without those that are larger than the cluster."""
        processors = np.asarray(self.sim.workload.processors, np.int64)
        return int((self.sim.clusters[0].allocation(processors) <= self.sim.clusters[0].processors).sum())

    # --- the course of a session --------------------------------------------------------------------

    def run(self, features: Sequence[str] = ()) -> None:
        """Simulate to the end.

        Parameters
        ----------
        features : sequence of str
            What the decision process has asked for in its hello (version 5).

        Raises
        ------
        ProtocolError
            If the peer breaks the protocol or does not answer, or jobs are left that nothing will start.
        """
        self._begin(features)
        while self.sim.advance():
            self._now = self.sim.now
            self._see_ends()
            if self._failing:
                self._see_hosts()
            self._see_calls()
            self._see_submissions()
            self._decide()
        self._end()

    def variables(self) -> dict[str, Variable]:
        """What is known of jobs besides their schedule: names, hosts, final states, texts."""
        number = len(self._ids)
        texts = {
            "job_id": (self._ids, "name of the job for the decision process"),
            "profile": (list(self.terms.profiles), "name of what the job runs for the decision process"),
            "hosts": (
                [self._allocations.get(job, "") for job in range(number)],
                "hosts that the job had last, as a set of intervals",
            ),
            "final_state": (
                [self._final.get(job, "REJECTED") for job in range(number)],
                "final state of the job in the protocol",
            ),
        }
        if self._metadata:
            texts["metadata"] = (
                [self._metadata.get(job, "") for job in range(number)],
                "text that the decision process attached to the job",
            )
        sizes = np.array(self._sizes, np.int64)
        # of one length they would all be as long as the longest
        return {
            "hosts_requested": ("job", sizes, "hosts that the job asks for", "1"),
            **{
                name: ("job", np.array(values, object), words, "1") for name, (values, words) in texts.items()
            },
        }

    def _begin(self, features: Sequence[str]) -> None:
        """Tell the peer what there is."""
        for name in features:
            if name not in _FEATURES:
                raise ProtocolError(f"{self.codec.name}: {name[:80]!r} of EDCHelloEvent is not supported")
        self._forward = self._forward or _PROFILES_AT_SUBMISSION in features
        profiles: dict[str, float] = {}
        if self.terms.forward_profiles or _PROFILES_AT_START in features:
            profiles = {
                f"{WORKLOAD}!{name}": run for name, run in zip(self.terms.profiles, self._runs, strict=True)
            }
        hosts = tuple(m.Host(k, name, self._cores) for k, name in enumerate(self._host_names))
        configuration = {"profiles-forwarded-on-submission": self._forward}
        workloads = {WORKLOAD: self.terms.source}
        self._events.append(m.SimulationBegins(0.0, hosts, workloads, configuration, profiles))
        self._decide()

    def _end(self) -> None:
        """Carry out what is left when no job waits or runs, and end the session."""
        waiting = [job for job, state in enumerate(self._state) if state == _WAITING]
        if waiting:
            raise ProtocolError(
                f"{self.codec.name}: {len(waiting)} jobs wait at {self._now} s (first: "
                f"{self._names[waiting[0]]!r}), nothing else will happen, and the decision process starts "
                "none"
            )
        # those without end would never stop
        self._calls = [call for call in self._calls if call.left > 0]
        heapq.heapify(self._calls)
        while self._due or self._calls or self._events:
            times = [self._due[0].time] if self._due else []
            times += [self._calls[0].time] if self._calls else []
            times += [self._ready] if self._events else []
            self._now = max(self._now, min(times))
            self._see_calls()
            self._decide()
        self._now = max(self._now, self._ready)
        self._events.append(m.SimulationEnds(float(self._now)))
        self._exchange()
        for due in self._due:
            if not isinstance(due.decision, m.SetMetadata | m.FinishRegistration):
                raise self._refused(due, "", "the simulation has ended")
            self._carry_out(due)

    # --- what happened ------------------------------------------------------------------------------

    def _see_ends(self) -> None:
        """Tell of jobs that run no longer."""
        running = self.sim.running
        if len(running) == len(self._running):
            return
        left = set(running["job"].tolist())
        for job in [job for job in self._running if job not in left]:
            failed = self._failing and self.sim.times_killed(job) > self._attempts.get(job, 0)
            if failed:
                self._finish(job, "COMPLETED_FAILED", 1)
                self._see_restart(job)
            elif self._reaches_walltime[job]:
                self._finish(job, "COMPLETED_WALLTIME_REACHED", -1)
            elif self._fails[job]:
                self._finish(job, "COMPLETED_FAILED", 1)
            else:
                self._finish(job, "COMPLETED_SUCCESSFULLY", 0)

    def _finish(self, job: int, state: m.FinalState, code: int) -> None:
        """Let a job have ended."""
        self._idle.update(self._running.pop(job))
        self._idle.difference_update(self._out)
        self._state[job] = _ENDED
        self._final[job] = state
        self._events.append(
            m.JobCompleted(float(self._now), self._names[job], state, code, self._allocations[job])
        )

    def _see_restart(self, job: int) -> None:
        """Submit a job that a failure has killed under another name, unless it is lost."""
        self._attempts[job] = self._attempts.get(job, 0) + 1
        self._names[job] = f"{self._ids[job]}#{self._attempts[job]}"
        if self.sim.clusters[0].requeue == "lost":
            return
        if self.sim.clusters[0].requeue == "end":
            self._entered += 1
        self._jobs[self._names[job]] = job
        self._submit(job)

    def _see_hosts(self) -> None:
        """Tell of hosts that have failed or come back."""
        nodes = self.sim.nodes()
        if self._last_event is not None and self._now >= self._last_event:
            self._last_event = None
            self._events.append(m.AllEventsInjected(float(self._now)))
        takes_none = (nodes["down"] != 0) | (nodes["drained"] != 0) | (nodes["windows"] > 0)
        out = set(np.flatnonzero(takes_none).tolist())
        if out == self._out:
            return
        for available, changed in ((False, out - self._out), (True, self._out - out)):
            if changed:
                self._events.append(m.HostsChanged(float(self._now), write_hosts(changed), available))
        self._asleep -= out ^ self._out
        self._idle |= self._out.difference(out, *self._running.values())
        self._idle -= out
        self._out = out

    def _see_calls(self) -> None:
        """Tell of calls whose time has come."""
        while self._calls and self._calls[0].time <= self._now:
            call = heapq.heappop(self._calls)
            call.left -= 1
            last = bool(call.period) and call.left == 0
            self._events.append(m.RequestedCall(float(self._now), call.call_id, last))
            if call.period and call.left:
                call.multiple += 1
                call.time = self._whole(call.multiple * call.period)
                self._push_call(call)

    def _see_submissions(self) -> None:
        """Tell of jobs that have come to the end of the queue."""
        new = self.sim.entered - self._entered
        if not new:
            return
        self._entered += new
        for job in self.sim.queue["job"][-new:].tolist():
            self._submit(job)
        self._to_come -= new
        if self._to_come == 0:
            self._events.append(m.AllJobsSubmitted(float(self._now)))

    def _submit(self, job: int) -> None:
        """Let a job wait."""
        self._state[job] = _WAITING
        self._events.append(
            m.JobSubmitted(
                float(self._now),
                self._names[job],
                self._sizes[job],
                self._walltimes[job],
                self._submits[job],
                self.terms.profiles[job],
                self._runs[job] if self._forward else None,
                self._labels[job],
            )
        )

    # --- what is decided ----------------------------------------------------------------------------

    def _decide(self) -> None:
        """Carry out what is due, and ask for more as long as there is something to send."""
        while True:
            while self._due and self._due[0].time <= self._now:
                self._carry_out(heapq.heappop(self._due))
            if not self._events:
                break
            if self._ready > self._now:
                self._wake_at(self._ready)
                break
            self._exchange()

    def _exchange(self) -> None:
        """Tell the peer what happened, and note what it decides."""
        now = self._now
        message = self.codec.encode_events(float(now), self._events)
        self.counts.protocol_messages += 1
        self.counts.protocol_events += len(self._events)
        self._events.clear()
        try:
            answer = self.codec.decode_decisions(self.peer.exchange(message))
        except ProtocolError as error:
            raise ProtocolError(f"{self.codec.name}, at {now} s: {error}") from None
        decisions = answer.decisions
        if answer.now < now:
            raise ProtocolError(f"{self.codec.name}, at {now} s: $.now is {answer.now:.16g}, which is past")
        self.counts.protocol_decisions += len(decisions)
        self._ready = self._whole(answer.now) if answer.now > now else now
        for index, decision in enumerate(decisions):
            self._number += 1
            due = _Due(now, self._number, index, decision)
            if decision.timestamp != now:
                if decision.timestamp < now:
                    raise self._refused(due, "timestamp", "that is past")
                due = due._replace(time=self._whole(decision.timestamp))
                self._wake_at(due.time)
            heapq.heappush(self._due, due)

    def _whole(self, time: float) -> int:
        """Whole seconds of a time, rounded up."""
        if not time < _LATEST:
            raise ProtocolError(
                f"{self.codec.name}, at {self._now} s: the time {time:g} s is beyond {_LATEST:g} s"
            )
        whole = math.ceil(time)
        self.counts.times_rounded_up += whole != time
        return whole

    def _wake_at(self, time: int) -> None:
        """Let the simulation stop at a time."""
        if time > self.sim.now and time not in self._wanted:
            self._wanted.add(time)
            self.sim.call_at(time)

    def _refused(self, due: _Due, name: str, why: str) -> ProtocolError:
        """Error of a decision, with where it stood."""
        what, place = self.codec.place(due.decision, name)
        return ProtocolError(
            f"{self.codec.name}, at {self._now} s: $.events[{due.place}]"
            + (f".{place if name != 'timestamp' else name}" if name else "")
            + f" of {what} for {due.decision.timestamp:.16g} s: {why}"
        )

    def _carry_out(self, due: _Due) -> None:
        """Do what was decided."""
        decision = due.decision
        if isinstance(decision, m.ExecuteJob):
            self._execute(due, decision)
        elif isinstance(decision, m.RejectJob):
            job = self._job(due, decision.job_id, _WAITING)
            self.sim.reject(job)
            self._state[job], self._final[job] = _ENDED, "REJECTED"
        elif isinstance(decision, m.KillJobs):
            self._kill_jobs(due, decision)
        elif isinstance(decision, m.CallLater):
            self._call_later(due, decision)
        elif isinstance(decision, m.StopCall):
            self._stop_call(due, decision)
        elif isinstance(decision, m.SetHostState):
            self._set_state(due, decision)
        elif isinstance(decision, m.SetMetadata):
            self._metadata[self._job(due, decision.job_id)] = decision.metadata
        elif not isinstance(decision, m.FinishRegistration):
            raise self._refused(due, "", "not supported, see docs/protocols.md")

    def _job(self, due: _Due, job_id: str, state: int | None = None, *, name: str = "job_id") -> int:
        """The job that a decision names in a field, which has to be in a state."""
        job = self._jobs.get(job_id)
        if job is None or (self._names[job] != job_id and state is not None):
            raise self._refused(due, name, f"there is no job {job_id[:80]!r}")
        if state is not None and self._state[job] != state:
            raise self._refused(due, name, f"job {job_id!r} {_STATES[self._state[job]]}")
        return job

    def _execute(self, due: _Due, decision: m.ExecuteJob) -> None:
        """Start a job."""
        job = self._job(due, decision.job_id, _WAITING)
        hosts = self._hosts(due, decision.hosts)
        if len(hosts) != self._sizes[job]:
            raise self._refused(
                due,
                "hosts",
                f"{len(hosts)} hosts for job {decision.job_id!r}, which asks for {self._sizes[job]}",
            )
        if not self._idle.issuperset(hosts):
            host = next(host for host in hosts if host not in self._idle)
            raise self._refused(due, "hosts", f"host {host} {self._use_of(host)}")
        try:
            self.sim.start(job, nodes=hosts if self._on_nodes else None)
        except ScheduleError as error:
            raise self._refused(due, "hosts", str(error)) from None
        self._idle.difference_update(hosts)
        self._state[job] = _RUNNING
        self._running[job] = hosts
        self._starts[job] = self._now
        self._allocations[job] = write_hosts(hosts)

    def _hosts(self, due: _Due, text: str) -> list[int]:
        """Hosts of a set."""
        try:
            return read_hosts(text, len(self._host_names))
        except ProtocolError as error:
            raise self._refused(due, "hosts", str(error)) from None

    def _use_of(self, host: int) -> str:
        """What a host does that takes no job."""
        for job, hosts in self._running.items():
            if host in hosts:
                return f"runs job {self._names[job]!r}"
        return "sleeps" if host in self._asleep else "is not available"

    def _kill_jobs(self, due: _Due, decision: m.KillJobs) -> None:
        """Kill jobs, and say so; what has ended before is left as it is."""
        progress: dict[str, float] = {}
        profiles: dict[str, str] = {}
        for job_id in decision.job_ids:
            job = self._job(due, job_id, name="job_ids")
            if self._state[job] not in (_RUNNING, _ENDED):
                raise self._refused(due, "job_ids", f"job {job_id!r} {_STATES[self._state[job]]}")
            if self._state[job] == _RUNNING and job_id == self._names[job]:
                done = (self._now - self._starts[job]) / max(self._runs[job], 1)
                progress[job_id], profiles[job_id] = done, self.terms.profiles[job]
                self.sim.kill(job)
                self._finish(job, "COMPLETED_KILLED", -1)
        self._events.append(m.JobsKilled(float(self._now), decision.job_ids, progress, profiles))

    def _call_later(self, due: _Due, decision: m.CallLater) -> None:
        """Note a call."""
        self._number += 1
        if not decision.period:
            if decision.time <= self._now:
                raise self._refused(due, "time", f"a call at {decision.time:.16g} s is not in the future")
            time = self._whole(decision.time)
            self._push_call(_Call(time, self._number, decision.call_id))
            return
        if any(call.call_id == decision.call_id and call.period for call in self._calls):
            raise self._refused(due, "call_id", f"{decision.call_id!r} is in use")
        multiple = max(
            math.floor(self._now / decision.period) + 1, math.ceil(decision.time / decision.period)
        )
        time = self._whole(multiple * decision.period)
        left = decision.count or -1
        self._push_call(_Call(time, self._number, decision.call_id, decision.period, multiple, left))

    def _push_call(self, call: _Call) -> None:
        """Let the simulation stop for a call."""
        heapq.heappush(self._calls, call)
        self._wake_at(call.time)

    def _stop_call(self, due: _Due, decision: m.StopCall) -> None:
        """End a periodic call."""
        before = len(self._calls)
        self._calls = [c for c in self._calls if not (c.period and c.call_id == decision.call_id)]
        if len(self._calls) == before:
            raise self._refused(due, "call_id", f"{decision.call_id!r} is no periodic call")
        heapq.heapify(self._calls)

    def _set_state(self, due: _Due, decision: m.SetHostState) -> None:
        """Let hosts sleep or wake up, which takes no time."""
        if self.terms.sleep_state < 0:
            raise self._refused(
                due, "", "power states are refused unless sleep_state (--sleep-state) is given"
            )
        asleep = decision.state == self.terms.sleep_state
        hosts = self._hosts(due, decision.hosts)
        self.counts.power_state_requests += 1
        self.counts.power_state_changes += len(hosts)
        busy = set().union(*self._running.values()).intersection(hosts)
        if busy and asleep:
            host = min(busy)
            raise self._refused(due, "hosts", f"host {host} {self._use_of(host)}, and cannot sleep")
        able = (self._idle | self._asleep).intersection(hosts)
        self._idle -= able
        self._asleep -= able
        (self._asleep if asleep else self._idle).update(able)
        self._events.append(
            m.HostStateChanged(float(self._now), decision.hosts, decision.state, self.terms.state_as_number)
        )

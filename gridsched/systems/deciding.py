"""A scheduler as the decision process of another simulator, which speaks the protocol of Batsim.

Each host takes one job, and jobs get the free hosts with the smallest numbers. Schedulers count in whole
seconds: times are rounded down, walltimes up. A job without walltime is expected to run forever. A job that
asks for more hosts than there are is rejected. Users, groups and queues are those that the workload names.
"""

from __future__ import annotations

import heapq
import math
from importlib.metadata import version
from typing import Any

from msgspec import UNSET

from gridsched.engine.records import LARGEST
from gridsched.errors import ProtocolError
from gridsched.policies.local import Conventions
from gridsched.policies.online import FIRST_TEXT, LABELS, Decided, NewJob, Online
from gridsched.protocols import batsim5
from gridsched.protocols import messages as m
from gridsched.protocols.batsim5 import Handshake
from gridsched.protocols.hosts import write_hosts
from gridsched.protocols.messages import Decision, Event, Events
from gridsched.protocols.wire import Codec
from gridsched.systems.base import Scheduler
from gridsched.workloads.table import UNKNOWN

_SOON = LARGEST // 2
"""Seconds within which a call is worth being asked for: beyond are the ends of jobs without walltime."""


class DecisionProcess:
    """Answers the messages of a simulator.

    Parameters
    ----------
    scheduler : Scheduler
        Who decides.
    codec : Codec
        Version of the protocol.
    conventions : Conventions, optional
        What becomes of walltimes that are exceeded.
    handshake : {"rc", "dev"}, optional
        How a session of version 5 on a socket begins, see `gridsched.protocols.batsim5`; none for version 4.

    Examples
    --------
    >>> from gridsched.protocols.batsim4 import Batsim4
    >>> from gridsched.systems.registry import scheduler_of
    >>> process, codec = DecisionProcess(scheduler_of("easy"), Batsim4()), Batsim4()
    >>> begin = m.SimulationBegins(0.0, tuple(m.Host(k, f"host{k}") for k in range(4)))
    >>> job = m.JobSubmitted(0.0, "w0!1", 3, 60.0, 0.0)
    >>> codec.decode_decisions(process.answer(codec.encode_events(0.0, [begin, job]))).decisions[0]
    ExecuteJob(timestamp=0.0, job_id='w0!1', hosts='0-2')
    """

    def __init__(
        self,
        scheduler: Scheduler,
        codec: Codec,
        conventions: Conventions | None = None,
        *,
        handshake: Handshake | None = None,
    ) -> None:
        self.scheduler, self.codec = scheduler, codec
        self.ended = False
        self.counts = {"messages": 0, "jobs": 0, "started": 0, "rejected": 0, "killed": 0}
        self._handshake = handshake
        self._conventions = conventions or Conventions()
        self._online: Online | None = None
        self._now = 0
        self._hosts = 0
        self._free: list[int] = []
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._sizes: list[int] = []
        self._texts: dict[tuple[str, str], int] = {}
        self._running: dict[int, list[int]] = {}
        self._killed: set[int] = set()
        self._calls: list[int] = []
        self._calls_so_far = 0

    def answer(self, message: bytes) -> bytes:
        """What is decided about what a message of the simulator says.

        Raises
        ------
        ProtocolError
            If the message breaks the protocol, or has an event that is not supported.
        GridschedError
            If the scheduler cannot decide this.
        """
        if self._handshake is not None:
            return self._greet(message, self._handshake)
        self.counts["messages"] += 1
        try:
            events = self.codec.decode_events(message)
            return self.codec.encode_decisions(events.now, self._decisions(events))
        except ProtocolError as error:
            where = f"message {self.counts['messages']:,}, at {self._now} s"
            raise ProtocolError(f"{self.codec.name}, {where}: {error}") from None

    def _greet(self, message: bytes, handshake: Handshake) -> bytes:
        """Answer to the first message of a simulator of version 5."""
        self._handshake = None
        batsim5.read_init(message, handshake)
        if handshake == "dev":
            return b""
        return batsim5.write_init_reply(self.codec.encode_decisions(0.0, [self._hello(0.0)]))

    def _decisions(self, events: Events) -> list[Decision]:
        """What is decided about some events."""
        now = math.floor(events.now)
        if now < self._now:
            raise ProtocolError(f"$.now is {events.now:g}, and was {self._now} or later before")
        self._now = now
        decisions: list[Decision] = []
        submitted: list[NewJob] = []
        ended: list[int] = []
        for event in events.events:
            self._take(event, events.now, decisions, submitted, ended)
        if self._online is not None and not self.ended:
            decided = self._online.decide(now, submitted, ended)
            decisions += self._starts(events.now, decided)
            decisions += self._others(events.now, decided)
        return decisions

    def _take(
        self, event: Event, now: float, decisions: list[Decision], submitted: list[NewJob], ended: list[int]
    ) -> None:
        """Take notice of an event."""
        if isinstance(event, m.SimulationBegins):
            self._begin(event)
        elif isinstance(event, m.SimulatorHello):
            decisions.append(self._hello(now))
        elif isinstance(event, m.SimulationEnds):
            self.ended = True
        elif self._online is None:
            raise ProtocolError(f"{type(event).__name__} at {event.timestamp:g} s before SimulationBegins")
        elif isinstance(event, m.JobSubmitted):
            self.counts["jobs"] += 1
            if event.hosts > self._hosts:
                self.counts["rejected"] += 1
                decisions.append(m.RejectJob(now, event.job_id))
            else:
                submitted.append(self._submit(event))
        elif isinstance(event, m.JobCompleted):
            ended += self._end(event.job_id, event.timestamp)
        elif isinstance(event, m.JobsKilled):
            ended += [job for job_id in event.job_ids for job in self._end(job_id, event.timestamp)]
        elif isinstance(event, m.HostsChanged):
            raise ProtocolError(
                f"hosts {event.hosts!r} at {event.timestamp:g} s: hosts that fail or come back are not "
                "supported; simulate without events of hosts"
            )

    def _begin(self, event: m.SimulationBegins) -> None:
        """Begin a simulation on so many hosts."""
        if self._online is not None:
            raise ProtocolError(f"SimulationBegins at {event.timestamp:g} s: it has begun already")
        self._free = sorted(host.id for host in event.hosts)
        self._hosts = len(self._free)
        if not self._hosts:
            raise ProtocolError("SimulationBegins: there are no hosts")
        self._online = self.scheduler.online(self._hosts, self._conventions)
        self._texts.update(self._online.names)

    def _submit(self, event: m.JobSubmitted) -> NewJob:
        """Note a job."""
        if event.job_id in self._numbers:
            raise ProtocolError(f"job {event.job_id!r} at {event.timestamp:g} s: it was submitted before")
        if event.hosts < 1:
            raise ProtocolError(
                f"job {event.job_id!r} at {event.timestamp:g} s: asks for {event.hosts} hosts"
            )
        self._numbers[event.job_id] = len(self._names)
        self._names.append(event.job_id)
        self._sizes.append(event.hosts)
        wall = event.walltime
        estimate = LARGEST if wall is None or wall >= LARGEST else max(math.ceil(wall), 1)
        run = event.run_time
        known = {name: self._number(name, getattr(event.labels, name)) for name in LABELS}
        known["run_time"] = None if run is None else math.ceil(min(run, LARGEST))
        given = {name: number for name, number in known.items() if number is not None}
        if self._online is not None and (lacking := sorted(self._online.needs - given.keys())):
            name = lacking[0]
            place = "delay of its profile" if name == "run_time" else f"{self.codec.labels}.{name}"
            found = getattr(event.labels, name, UNSET)
            said = "not sent" if found is UNSET else f"{str(found)[:40]}, no whole number or text"
            raise ProtocolError(
                f"job {event.job_id!r} at {event.timestamp:g} s: {place} is {said}, and "
                f"{self.scheduler.label} looks at it; let the simulator send it, or use another policy"
            )
        return NewJob(math.floor(event.submit_time), estimate, event.hosts, **given)

    def _number(self, name: str, label: Any) -> int | None:
        """Number of who is named, None where nobody is; texts get one as they come."""
        if isinstance(label, str):
            return self._texts.setdefault((name, label), FIRST_TEXT + len(self._texts))
        return label if type(label) is int and UNKNOWN <= label < FIRST_TEXT else None

    def _end(self, job_id: str, time: float) -> list[int]:
        """Let a job have ended; a job that was to be killed may be reported twice."""
        job = self._numbers.get(job_id, -1)
        hosts = self._running.pop(job, None)
        if hosts is None:
            if job in self._killed:
                return []
            raise ProtocolError(f"job {job_id!r} ends at {time:g} s, and does not run")
        for host in hosts:
            heapq.heappush(self._free, host)
        return [job]

    def _starts(self, now: float, decided: Decided) -> list[Decision]:
        """Jobs that start, with their hosts."""
        found: list[Decision] = []
        self.counts["started"] += len(decided.started)
        for job in decided.started:
            hosts = [heapq.heappop(self._free) for _ in range(self._sizes[job])]
            self._running[job] = hosts
            found.append(m.ExecuteJob(now, self._names[job], write_hosts(hosts)))
        return found

    def _others(self, now: float, decided: Decided) -> list[Decision]:
        """What is decided besides: jobs that never run or are killed, and a call where one is needed."""
        found: list[Decision] = [m.RejectJob(now, self._names[job]) for job in decided.rejected]
        self.counts["rejected"] += len(decided.rejected)
        self.counts["killed"] += len(decided.killed)
        if decided.killed:
            self._killed.update(decided.killed)
            found.append(m.KillJobs(now, tuple(self._names[job] for job in decided.killed)))
        while self._calls and self._calls[0] <= self._now:
            heapq.heappop(self._calls)
        soonest = self._calls[0] if self._calls else self._now + _SOON
        if decided.ask_again < soonest:
            heapq.heappush(self._calls, decided.ask_again)
            self._calls_so_far += 1
            found.append(m.CallLater(now, float(decided.ask_again), f"call{self._calls_so_far}"))
        return found

    def _hello(self, now: float) -> m.SchedulerHello:
        """Who decides."""
        return m.SchedulerHello(now, f"gridsched {self.scheduler.label}", version("gridsched"))

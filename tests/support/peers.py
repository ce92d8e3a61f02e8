"""Decision processes for tests and benchmarks, which know nothing of the engine.

`python -m tests.support.peers ADDRESS VERSION POLICY` is one in a process of its own.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

import xarray as xr
import zmq

import gridsched as gs
from gridsched import External
from gridsched.protocols import batsim5
from gridsched.protocols import messages as m
from gridsched.protocols.batsim4 import Batsim4
from gridsched.protocols.batsim5 import Batsim5
from gridsched.protocols.hosts import read_hosts, write_hosts
from gridsched.protocols.messages import Decision, Event
from gridsched.protocols.wire import Codec

CODECS: dict[str, Codec] = {"4": Batsim4(), "5": Batsim5()}


class Scripted:
    """Answers with what a function makes of the time and the events of each message."""

    def __init__(
        self, codec: Codec, decide: Callable[[float, Sequence[Event]], Sequence[Decision] | bytes]
    ) -> None:
        self.codec, self.decide = codec, decide
        self.told: list[m.Events] = []

    def exchange(self, message: bytes) -> bytes:
        """Its answer."""
        if self.codec.name == "batsim-5" and not self.told and b"event_type" not in message:
            hello = self.codec.encode_decisions(0.0, [m.SchedulerHello(0.0, "scripted", "1")])
            return batsim5.write_init_reply(hello)
        told = self.codec.decode_events(message)
        self.told.append(told)
        answer = self.decide(told.now, told.events)
        return answer if isinstance(answer, bytes) else self.codec.encode_decisions(told.now, answer)


@dataclass(frozen=True)
class Inside(External):
    """A decision process that is in this process."""

    peer: Any = field(default=None, repr=False)

    @contextmanager
    def _peer(self) -> Iterator[Any]:
        yield self.peer


def simulated(
    jobs: gs.Workload,
    cluster: gs.Cluster | int,
    decide: Callable[[float, Sequence[Event]], Sequence[Decision] | bytes],
    version: str = "4",
    **parameters: Any,
) -> tuple[xr.Dataset, list[m.Events]]:
    """Verified run under what a function decides, and what it was told."""
    peer = Scripted(CODECS[version], decide)
    scheduler = Inside(protocol=f"batsim-{version}", peer=peer, **parameters)  # type: ignore[arg-type]
    run = gs.simulate(jobs, cluster, scheduler, kill=True)
    gs.verify(run)
    return run, peer.told


class Queue:
    """First come, first served or EASY backfilling on the hosts with the smallest numbers.

    Expected ends are kept as what `number` makes of them.
    """

    def __init__(self, policy: str, number: Callable[[float], Any] = float) -> None:
        self.backfill = policy == "easy"
        self.number = number
        self.free: list[int] = []
        self.waiting: dict[str, m.JobSubmitted] = {}
        self.running: dict[str, tuple[float, list[int]]] = {}

    def __call__(self, now: float, events: Sequence[Event]) -> list[Decision]:
        """What to start now."""
        for event in events:
            if isinstance(event, m.JobSubmitted):
                self.waiting[event.job_id] = event
            elif isinstance(event, m.JobCompleted):
                for host in self.running.pop(event.job_id)[1]:
                    heappush(self.free, host)
            elif isinstance(event, m.HostsChanged):
                # hosts on which jobs run are not seen here: those that fail lose their jobs before
                changed = set(read_hosts(event.hosts, 10**9))
                kept = set(self.free) | changed if event.available else set(self.free) - changed
                self.free = sorted(kept)
            elif isinstance(event, m.SimulationBegins):
                self.free = [host.id for host in event.hosts]
                heapify(self.free)
        return self._starts(now)

    def _starts(self, now: float) -> list[Decision]:
        starts: list[Decision] = []
        for job in list(self.waiting.values()) if self.free else ():
            if job.hosts > len(self.free):
                break
            starts.append(self._start(now, job))
        if self.backfill and len(self.waiting) > 1 and self.free:
            starts += self._backfilled(now)
        return starts

    def _start(self, now: float, job: m.JobSubmitted) -> Decision:
        del self.waiting[job.job_id]
        hosts = [heappop(self.free) for _ in range(job.hosts)]
        self.running[job.job_id] = (self._end(now, job), hosts)
        return m.ExecuteJob(now, job.job_id, write_hosts(hosts))

    def _end(self, now: float, job: m.JobSubmitted) -> Any:
        """When a job is expected to end that starts now."""
        return self.number(now + (job.walltime or 0.0))

    def _backfilled(self, now: float) -> list[Decision]:
        head, *others = self.waiting.values()
        ends: list[tuple[float, int]] = []
        for end, hosts in self.running.values():
            insort(ends, (end, len(hosts)))
        shadow, extra = now, len(self.free) - head.hosts
        for end, count in ends:
            if extra >= 0 and end > shadow:
                break
            shadow, extra = end, extra + count
        starts = []
        for job in others:
            in_time = self._end(now, job) <= shadow
            if job.hosts <= len(self.free) and (in_time or job.hosts <= extra):
                extra -= 0 if in_time else job.hosts
                starts.append(self._start(now, job))
        return starts


def serve(address: str, version: str, policy: str) -> None:
    """Answer on a socket until the simulation ends."""
    codec = CODECS[version]
    peer = Scripted(codec, Queue(policy))
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.bind(address)
        ended = False
        while not ended:
            message = socket.recv()
            socket.send(peer.exchange(message))
            ended = bool(peer.told) and isinstance(peer.told.pop().events[-1], m.SimulationEnds)


if __name__ == "__main__":
    serve(*sys.argv[1:])

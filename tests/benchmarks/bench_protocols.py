"""A scheduler in another process: jobs a second through a socket, first come first served, on KTH-SP2."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import gridsched as gs
from gridsched.nodes import NodeType
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table
from tests.benchmarks.yardstick import compiler
from tests.conftest import REPOSITORY
from tests.support.peers import CODECS, Inside, Queue, Scripted

LEAST = 10_000.0
"""Jobs a second that are wanted through a socket, with a peer that takes little time itself."""

PEERS = {"in C++": "", "in Python": f"{shlex.quote(sys.executable)} -m tests.support.peers {{socket}} 4 fcfs"}


class Replayed:
    """Gives the answers that another peer gave to the same messages."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = iter(answers)

    def exchange(self, message: bytes) -> bytes:
        return next(self.answers)


class Recorded(Scripted):
    """Keeps what it answers."""

    answers: list[bytes]

    def exchange(self, message: bytes) -> bytes:
        answer = super().exchange(message)
        self.told.clear()
        self.answers.append(answer)
        return answer


def simulated(jobs: gs.Workload, scheduler: gs.External) -> Any:
    return gs.simulate(jobs, gs.Cluster(nodes=[NodeType(count=100, cores=1)]), scheduler, kill=True)


@pytest.mark.parametrize("kind", PEERS)
def test_socket(
    kind: str, kth: gs.Workload, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wall time, since two processes take turns: what else the machine does is in it."""
    monkeypatch.chdir(REPOSITORY)
    command, program = PEERS[kind], compiler()
    if not command:
        if program is None:
            pytest.skip("no C++ compiler")
        source, made = Path(__file__).with_name("peer.cpp"), tmp_path / "peer"
        subprocess.run([program, "-O3", "-std=c++17", str(source), "-o", str(made)], check=True)
        command = f"{made} {{socket}}"
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        run = simulated(kth, gs.External(command=command))
        times.append(time.perf_counter() - begin)
    assert bool((run.start_time == gs.simulate(kth, None, "fcfs", kill=True).start_time).all())
    note = f", {1e6 * min(times) / run.attrs['protocol_messages']:.0f} us a message"
    what = f"Batsim 4 through a socket, KTH-SP2, FCFS {kind}, with its start"
    least = LEAST if kind == "in C++" else None
    table.add(what, len(kth) / min(times), "jobs/s", at_least=least, note=note)


@pytest.mark.parametrize("version", CODECS)
def test_session(version: str, kth: gs.Workload, table: Table) -> None:
    """What the simulator's side costs: the answers are there already."""
    peer = Recorded(CODECS[version], Queue("fcfs"))
    peer.answers = []
    protocol: Any = f"batsim-{version}"
    simulated(kth, Inside(protocol=protocol, peer=peer))
    best = best_time(lambda: simulated(kth, Inside(protocol=protocol, peer=Replayed(peer.answers))))
    note = f", {1e6 * best / len(peer.answers):.0f} us a message"
    table.add(f"Batsim {version}, the simulator's side alone, KTH-SP2", len(kth) / best, "jobs/s", note=note)

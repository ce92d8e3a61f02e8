"""Decision processes on sockets: the schedule is that of the engine, and whatever a peer does ends soon."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import zmq

import gridsched as gs
from gridsched.errors import ConfigurationError, ProtocolError
from gridsched.nodes import NodeType
from gridsched.protocols import sockets
from tests.conftest import REPOSITORY
from tests.protocols.test_session import SMALL, hosts

OWN = f"{shlex.quote(sys.executable)} -m tests.support.peers {{socket}}"


@pytest.fixture(autouse=True)
def in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(("version", "policy"), [("4", "easy"), ("5", "fcfs")])
@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_as_the_engine(version: str, policy: str, transport: str) -> None:
    made = gs.synthesise("M3", jobs=200, seed=2)
    address = f"tcp://*:{free_port()}" if transport == "tcp" else ""
    peer = gs.External(
        protocol=f"batsim-{version}",  # type: ignore[arg-type]
        command=f"{OWN} {version} {policy}",
        socket=address,
    )
    cluster = gs.Cluster(nodes=[NodeType(count=1152, cores=1)])
    run = gs.simulate(made, cluster, peer, kill=True)
    gs.verify(run)
    wanted = gs.simulate(made, 1152, policy, kill=True)
    np.testing.assert_array_equal(run.start_time, wanted.start_time)
    assert run.attrs["scheme"] == Path(sys.executable).name


@contextmanager
def peer(act: Callable[[zmq.Socket[bytes]], None]) -> Iterator[str]:
    """Address of a peer in a thread."""
    with zmq.Context() as context, context.socket(zmq.REP) as bound:
        bound.setsockopt(zmq.LINGER, 0)
        port = bound.bind_to_random_port("tcp://127.0.0.1")
        thread = threading.Thread(target=act, args=(bound,))
        thread.start()
        yield f"tcp://127.0.0.1:{port}"
        thread.join()


def answering(*answers: bytes) -> Callable[[zmq.Socket[bytes]], None]:
    """A peer that gives these answers, and closes its socket."""

    def act(bound: zmq.Socket[bytes]) -> None:
        for answer in answers:
            bound.recv()
            bound.send(answer)
        bound.recv()
        bound.close(0)

    return act


def refused(address: str, timeout: float = 20.0) -> str:
    """Why a simulation with a peer fails."""
    with pytest.raises(ProtocolError) as raised:
        gs.simulate(SMALL, hosts(2), gs.External(socket=address, timeout=timeout), kill=True)
    return str(raised.value)


EMPTY = b'{"now": 0, "events": []}'


def test_a_peer_that_goes_away() -> None:
    with peer(answering(EMPTY)) as address:
        assert "at 0 s: no answer" in refused(address)


def test_a_peer_that_does_not_answer() -> None:
    done = threading.Event()

    def act(bound: zmq.Socket[bytes]) -> None:
        bound.recv()
        done.wait()

    with peer(act) as address:
        try:
            assert "within 0.2 s" in refused(address, 0.2)
        finally:
            done.set()
    assert "within 0.2 s" in refused(f"tcp://127.0.0.1:{free_port()}", 0.2)


def test_a_machine_that_does_not_exist() -> None:
    assert "the machine of tcp://no-such.invalid:28000 is not known" in refused("tcp://no-such.invalid:28000")


def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "LARGEST_MESSAGE", 1_000_000)
    with peer(answering(b" " * 1_000_001)) as address:
        with pytest.raises(ProtocolError, match="1,000,001 bytes"):
            gs.simulate(SMALL, hosts(2), gs.External(socket=address), kill=True)
        # so that the thread ends
        with zmq.Context() as context, context.socket(zmq.REQ) as client:
            client.setsockopt(zmq.LINGER, 0)
            client.connect(address)
            client.send(b"")
            client.poll(100)


GREETING = b"\xff" + bytes(8) + b"\x7f\3\0NULL" + bytes(48)
READY = b"\4\x19\5READY\x0bSocket-Type\0\0\0\3REP"
HALF = b"\1\0\0\x20half"


def test_half_an_answer_of_a_command() -> None:
    script = (
        "import socket, sys, time; bound = socket.socket(socket.AF_UNIX); bound.bind(sys.argv[1][6:]); "
        f"bound.listen(); peer, _ = bound.accept(); peer.sendall({GREETING + READY!r}); "
        f"peer.recv({len(GREETING + READY) + 1}, socket.MSG_WAITALL); peer.sendall({HALF!r}); "
        "time.sleep(float(sys.argv[2]))"
    )
    for seconds, timeout, words in ((0, 20.0, "', which ended with code 0"), (60, 3.0, "it is connected")):
        command = shlex.join([sys.executable, "-c", script, "{socket}", str(seconds)])
        with pytest.raises(ProtocolError, match="at 0 s: only 4 of 32 bytes from") as raised:
            gs.simulate(SMALL, hosts(2), gs.External(command=command, timeout=timeout), kill=True)
        assert words in str(raised.value)


def test_commands_without_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def act() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(GREETING + READY)
                while True:
                    connection.sendall(b"\4\4PING" * 100)

        thread = threading.Thread(target=act)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ProtocolError, match=r"no answer .* within 1 s: it sends commands only"):
            gs.simulate(SMALL, hosts(2), gs.External(socket=address, timeout=1.0), kill=True)
        thread.join()


def test_half_an_answer_and_one_of_a_gigabyte() -> None:
    for frames, words in (
        (HALF, "at 0 s: only 4 of 32 bytes from tcp:"),
        (b"\1\0\2" + (2**30).to_bytes(8, "big"), "1,073,741,824 bytes"),
        (b"\0\2{}", "not that of a socket REP"),
    ):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def act(server: socket.socket = server, frames: bytes = frames) -> None:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(GREETING + READY)
                    connection.recv(len(GREETING + READY), socket.MSG_WAITALL)
                    connection.sendall(frames)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass

            thread = threading.Thread(target=act)
            thread.start()
            assert words in refused(f"tcp://127.0.0.1:{server.getsockname()[1]}")
            thread.join()


def test_an_answer_in_parts() -> None:
    def act(bound: zmq.Socket[bytes]) -> None:
        bound.recv()
        bound.send_multipart([EMPTY, EMPTY])

    with peer(act) as address:
        assert "several parts" in refused(address)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 64, b"\xff\0\0\0"])
def test_what_does_not_speak_zeromq(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def act() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(said)
                connection.recv(10)

        thread = threading.Thread(target=act)
        thread.start()
        line = refused(f"tcp://127.0.0.1:{server.getsockname()[1]}", 2.0)
        assert any(
            words in line for words in ("does not speak ZeroMQ", "no answer", "bytes from", "security")
        )
        thread.join()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python -c 'import sys; sys.exit(\"out of {{memory}}\")' {socket}", ["code 1", "out of {{memory}}"]),
        (f"{OWN} 4", ["code 1", "Error"]),
        (f"{OWN} 6 fcfs", ["code 1", "KeyError"]),
    ],
)
def test_a_command_that_ends_at_once(command: str, words: list[str]) -> None:
    if command.startswith("python "):
        command = command.replace("python", shlex.quote(sys.executable), 1)
    with pytest.raises(ProtocolError) as raised:
        gs.simulate(SMALL, hosts(2), gs.External(command=command), kill=True)
    assert all(word in str(raised.value) for word in ("at 0 s", *words))


def test_what_a_command_prints_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "print('hello', flush=True); import sys; from tests.support.peers import *; serve(*sys.argv[1:])"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} {{socket}} 4 fcfs"
    gs.simulate(SMALL, hosts(2), gs.External(command=command, log=str(log)), kill=True)
    assert log.read_text() == "hello\n"


_PATIENCE = 120.0
"""Seconds after which a process of a test has failed."""


def heard(pipe: int) -> bytes:
    """What is written to a pipe next; nothing once nobody can write to it any more."""
    assert select.select([pipe], [], [], _PATIENCE)[0], "nothing was written"
    return os.read(pipe, 100)


SERVED = """
import gridsched as gs
from tests.protocols.test_session import *
gs.simulate(SMALL, hosts(2), gs.External(command={command!r}), kill=True)
"""

INTERRUPTED = """
import os, signal, subprocess
start = subprocess.Popen.__init__
def interrupted(self, *arguments, **options):
    start(self, *arguments, **options)
    print(self.pid, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen.__init__ = interrupted
"""


def test_a_command_ends_with_this_process(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = "import sys; pipe = open(sys.argv[2], 'w'); print('here', file=pipe, flush=True)"
    script += "; import signal; signal.pause()"
    command = shlex.join([sys.executable, "-c", script, "{socket}", str(pipe)])
    told = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([sys.executable, "-c", SERVED.format(command=command)]) as process:
        try:
            assert heard(told) == b"here\n"
            process.terminate()
            assert process.wait(_PATIENCE) == 128 + signal.SIGTERM
            # until the last process that can write to it has ended
            assert heard(told) == b""
        finally:
            process.kill()
            os.close(told)


def test_a_command_that_starts_when_this_process_is_to_end_ends_too() -> None:
    command = shlex.join([sys.executable, "-c", "import signal; signal.pause()", "{socket}"])
    script = INTERRUPTED + SERVED.format(command=command)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    assert done.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"command": "no-such-program-here {socket}"},
        {"command": "true"},
        {"command": "'{socket}"},
        {"socket": "http://localhost:1"},
        {"socket": "tcp://*"},
        {"socket": "tcp://*:65536"},
        {"timeout": 0.0, "socket": "tcp://*:1"},
        {"protocol": "batsim-6", "socket": "tcp://*:1"},
    ],
)
def test_what_cannot_be_started(parameters: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        gs.simulate(SMALL, hosts(2), gs.External(**parameters), kill=True)  # type: ignore[arg-type]

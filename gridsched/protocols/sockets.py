"""A decision process on a socket of ZeroMQ: the simulator asks (REQ), the decision process answers (REP).

The simulator connects, as Batsim does, and the decision process binds. It may be started here, with a
command. Every answer has a time limit; a process that ends and a connection that is closed are noticed at
once.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from gridsched.errors import ConfigurationError, ProtocolError

LARGEST_MESSAGE = 64 * 2**20
"""Bytes that an answer may have."""

_SPIN = 200e-6
"""Seconds for which an answer is looked for before the operating system is asked to wait for it."""

_LOOK = 0.5
"""Seconds after which it is seen whether a process is still there."""

_FAREWELL = 5.0
"""Seconds that a process has to end by itself after the last message."""

_SHOWN = 400
"""Letters of what a process said that errors show."""

_BROKEN = {
    int(zmq.EVENT_DISCONNECTED): "closed the connection",
    int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL): "does not speak ZeroMQ",
    int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL): "does not speak ZeroMQ",
    int(zmq.EVENT_HANDSHAKE_FAILED_AUTH): "refuses the connection",
}


def address_of(socket: str) -> str:
    """Where to connect to a decision process that binds to an address: ``*`` is this machine.

    Raises
    ------
    ConfigurationError
        If it is no address.

    Examples
    --------
    >>> address_of("tcp://*:28000")
    'tcp://127.0.0.1:28000'
    """
    transport, mark, rest = socket.partition("://")
    if not mark or not rest or transport not in ("tcp", "ipc"):
        raise ConfigurationError(
            f"socket {socket!r}: give an address such as tcp://*:28000 or ipc:///tmp/peer"
        )
    if transport == "tcp" and not rest.rpartition(":")[2].isdigit():
        raise ConfigurationError(f"socket {socket!r}: the port is missing; give for example tcp://*:28000")
    return f"tcp://127.0.0.1:{rest[2:]}" if transport == "tcp" and rest.startswith("*:") else socket


class Process:
    """A decision process that was started with a command, and is ended with all that it started.

    What it writes goes to the log; without one, only what it says of errors is kept, as long as it is there.
    """

    def __init__(self, command: Sequence[str], log: Path | None) -> None:
        self.command = shlex.join(command)
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        said = tempfile.TemporaryFile() if log is None else log.open("w+b")  # noqa: SIM115
        self._said: IO[bytes] = said
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if log is None else self._said,
                stderr=self._said,
                start_new_session=True,
            )
        except OSError as error:
            self._said.close()
            raise ConfigurationError(
                f"command {self.command!r}: cannot be started ({error.strerror or error})"
            ) from None

    def has_ended(self) -> bool:
        """Whether it is there no more."""
        return self._process.poll() is not None

    def last_words(self) -> str:
        """How it ended, and the end of what it wrote; empty if it wrote nothing."""
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _SHOWN))
        text = " ".join(self._said.read().decode(errors="replace").split())
        said = "".join(letter if letter.isprintable() else "?" for letter in text)
        code = self._process.poll()
        ended = "" if code is None else f", which ended with code {code}"
        return f"{ended}; its last words: {said!r}" if said else ended

    def end(self, patience: float) -> int | None:
        """Let it end by itself, else end it; its exit code, None where it had to be ended."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(patience)
        # what it has started may still be there
        for wish in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, wish)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        self._said.close()
        return code


class SocketPeer:
    """A decision process that is asked through a socket.

    Parameters
    ----------
    socket : str
        Address to which it binds.
    timeout : float
        Seconds within which each answer has to come.
    process : Process, optional
        The process, where it was started here.
    largest : int
        Bytes that an answer may have.
    """

    def __init__(
        self,
        socket: str,
        *,
        timeout: float,
        process: Process | None = None,
        largest: int = LARGEST_MESSAGE,
    ) -> None:
        self._address, self._timeout, self._process, self._largest = socket, timeout, process, largest
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, largest)
        self._events: Any = self._socket.get_monitor_socket(sum(_BROKEN))
        self._socket.connect(address_of(socket))

    def exchange(self, message: bytes) -> bytes:
        """Its answer to a message.

        Raises
        ------
        ProtocolError
            If there is none in time, it is too long, or the process is gone.
        """
        self._socket.send(message)
        answer = self._soon()
        if answer is None:
            answer = self._later()
        if self._socket.getsockopt(zmq.RCVMORE):
            raise ProtocolError(f"the answer from {self._address} has several parts; one is wanted")
        return answer

    def _soon(self) -> bytes | None:
        """An answer that comes within a moment."""
        end = time.perf_counter() + _SPIN
        while True:
            try:
                return self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                if time.perf_counter() > end:
                    return None

    def _later(self) -> bytes:
        """An answer that comes within the time limit."""
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._events, zmq.POLLIN)
        end = time.monotonic() + self._timeout
        while True:
            left = end - time.monotonic()
            ready = dict(poller.poll(1000 * min(max(left, 0.0), _LOOK)))
            if self._socket in ready:
                return self._socket.recv(zmq.NOBLOCK)
            if self._events in ready:
                self._look_at_connection()
            if self._process is not None and self._process.has_ended():
                raise ProtocolError(f"no answer from {self._process.command!r}{self._process.last_words()}")
            if left <= 0:
                raise ProtocolError(
                    f"no answer from {self._address} within {self._timeout:g} s{self._words()}"
                )

    def _look_at_connection(self) -> None:
        """Refuse to wait for a peer that will not answer any more."""
        event = recv_monitor_message(self._events)["event"]
        if self._process is not None:
            # it has a moment to end, so that what it says of that can be shown
            end = time.monotonic() + _LOOK
            while time.monotonic() < end and not self._process.has_ended():
                time.sleep(0.01)
        if event in _BROKEN:
            raise ProtocolError(
                f"no answer from {self._address}: the peer {_BROKEN[event]}, or its answer has more than "
                f"{self._largest:,} bytes{self._words()}"
            )

    def _words(self) -> str:
        """What is known of a process that was started here."""
        return f" ({self._process.command!r}{self._process.last_words()})" if self._process else ""

    def close(self) -> None:
        """Close the connection."""
        self._socket.disable_monitor()
        self._socket.close(0)
        self._context.destroy(0)


def _free_port() -> int:
    """A port of this machine at which nothing listens."""
    with zmq.Context() as context, context.socket(zmq.REP) as taken:
        return int(taken.bind_to_random_port("tcp://127.0.0.1"))


@contextlib.contextmanager
def connected(
    socket: str, command: Sequence[str], *, timeout: float, log: Path | None = None
) -> Iterator[SocketPeer]:
    """A decision process on a socket, started with a command if there is one, for as long as it is needed.

    Parameters
    ----------
    socket : str
        Address to which it binds; empty for one of its own in a temporary folder.
    command : sequence of str
        How to start it; ``{socket}`` in it becomes the address, ``{port}`` a free port. Empty for a process
        that is there already.
    timeout : float
        Seconds within which each answer has to come.
    log : path, optional
        File for what the process writes.

    Raises
    ------
    ConfigurationError
        If the command cannot be started, or there is neither command nor socket.
    """
    if not socket and not command:
        raise ConfigurationError("a decision process needs a socket, or a command that starts it")
    text = shlex.join(command)
    if command and not ("{socket}" in text or "{port}" in text or socket):
        raise ConfigurationError(
            f"command {text!r}: write {{socket}} where it takes the address of its socket, or {{port}} where "
            "it takes a port of this machine"
        )
    with tempfile.TemporaryDirectory(prefix="gridsched-") as folder:
        port = _free_port() if "{port}" in text and not socket else 0
        address = socket or (f"tcp://127.0.0.1:{port}" if port else f"ipc://{folder}/peer")
        address_of(address)
        words = [word.replace("{socket}", address).replace("{port}", str(port)) for word in command]
        process = Process(words, log) if words else None
        patience = 0.0
        try:
            peer = SocketPeer(address, timeout=timeout, process=process)
            try:
                yield peer
                patience = _FAREWELL
            finally:
                peer.close()
        finally:
            if process is not None:
                process.end(patience)

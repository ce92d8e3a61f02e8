"""A decision process on a socket of ZeroMQ: the simulator asks (REQ), the decision process answers (REP).

The simulator connects, as Batsim does, and the decision process binds. It may be started here, with a
command. Every answer has a time limit; a process that ends and a connection that is closed are noticed soon.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import zmq
from zmq.utils.monitor import parse_monitor_message

from gridsched.errors import ConfigurationError, ProtocolError

LARGEST_MESSAGE = 64 * 2**20
"""Bytes that an answer may have."""

_LOOK, _RETRY = 100, 20
"""Milliseconds after which it is seen whether a peer is still there, and whether it has bound its socket."""

_FAREWELL = 5.0
"""Seconds that a process has to end by itself after the last message."""

_SHOWN = 400
"""Letters of what a process said that errors show."""

_REFUSED: dict[int, str] = {
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "the peer does not speak ZeroMQ",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the peer does not speak ZeroMQ, or its socket is not REP",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the peer wants a security mechanism; use none",
}
"""What ends a connection before the first message, and how that is said."""


def address_of(address: str) -> str:
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
    transport, mark, rest = address.partition("://")
    if not mark or not rest or transport not in ("tcp", "ipc"):
        raise ConfigurationError(
            f"socket {address!r}: give an address such as tcp://*:28000 or ipc:///tmp/peer"
        )
    port = rest.rpartition(":")[2]
    if transport == "tcp" and not (port.isdecimal() and 0 < int(port) < 65536):
        raise ConfigurationError(
            f"socket {address!r}: a port of 1 to 65535 is missing; give for example tcp://*:28000"
        )
    return f"tcp://127.0.0.1:{rest[2:]}" if transport == "tcp" and rest.startswith("*:") else address


class Process:
    """A decision process that was started with a command, and is ended with all that it started.

    What it writes goes to the log; without one, only what it says of errors is kept, as long as it is there.
    """

    def __init__(self, command: Sequence[str], log: Path | None) -> None:
        self.command, self._logged = shlex.join(command), log is not None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        # open as long as the process: `end` closes it
        self._said: IO[bytes] = tempfile.TemporaryFile() if log is None else log.open("w+b")  # noqa: SIM115
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

    def wait(self, patience: float) -> None:
        """Wait for its end, not longer than that."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)

    def last_words(self) -> str:
        """How it ended, and the end of what it wrote, as far as this is known."""
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _SHOWN))
        text = " ".join(self._said.read().decode(errors="replace").split())
        said = "".join(letter if letter.isprintable() else "?" for letter in text)
        code = self._process.poll()
        ended = "" if code is None else f", which ended with code {code}"
        if said:
            return f"{ended}; its last words: {said!r}"
        return f"{ended}; a log (--log) keeps what it prints" if ended and not self._logged else ended

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
    """A decision process that is asked through a socket of the kind REQ.

    Parameters
    ----------
    address : str
        Address to which it binds.
    timeout : float
        Seconds within which each answer has to come.
    process : Process, optional
        The process, where it was started here.

    Raises
    ------
    ConfigurationError
        If ZeroMQ does not take the address.
    """

    def __init__(self, address: str, *, timeout: float, process: Process | None = None) -> None:
        self._address, self._timeout, self._process = address_of(address), timeout, process
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._met, self._answered, self._end = False, False, 0.0
        for option, value in (
            (zmq.LINGER, 0),
            (zmq.MAXMSGSIZE, LARGEST_MESSAGE),
            (zmq.RECONNECT_IVL, _RETRY),
            (zmq.RCVTIMEO, _LOOK),
        ):
            self._socket.setsockopt(option, value)
        wanted = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | sum(_REFUSED)
        self._monitor = self._socket.get_monitor_socket(wanted)
        try:
            self._socket.connect(self._address)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigurationError(f"socket {self._address!r}: {error}") from None

    def exchange(self, message: bytes) -> bytes:
        """Its answer to a message.

        Raises
        ------
        ProtocolError
            If there is none in time, it is too long, or the process is gone.
        """
        self._end = time.monotonic() + self._timeout
        try:
            self._socket.send(message)
        except zmq.ZMQError:
            # what is left of the last answer has to be read before the next request
            raise ProtocolError(
                f"the last answer from {self._address} has several parts; one is wanted"
            ) from None
        answer = self._received()
        self._answered = True
        return answer

    def _received(self) -> bytes:
        """An answer; it is looked for once more when there is no hope left."""
        why = ""
        while True:
            try:
                return self._socket.recv()
            except zmq.Again:
                if why:
                    raise ProtocolError(why) from None
                why = self._no_hope()

    def _no_hope(self) -> str:
        """Why no answer will come in time; empty if one still may."""
        broken = ""
        while self._monitor.poll(0):
            event = parse_monitor_message(self._monitor.recv_multipart())["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._met = True
            else:
                closed = "the peer closed the connection, or its answer has more than"
                broken = _REFUSED.get(event, f"{closed} {LARGEST_MESSAGE:,} bytes")
        hint = "; it may speak another version of the protocol" if self._met and not self._answered else ""
        if self._process is not None:
            # it has a moment to end, so that what it says of that can be shown
            self._process.wait(_FAREWELL / 10 if broken else 0.0)
            if self._process.has_ended():
                return f"no answer from {self._process.command!r}{self._process.last_words()}{hint}"
        words = f"no answer from {self._address}"
        if broken:
            return f"{words}: {broken}{hint}{self._said()}"
        if time.monotonic() < self._end:
            return ""
        silent = "it is connected" if self._met else "no scheduler is bound to this address"
        return f"{words} within {self._timeout:g} s: {silent}{hint}{self._said()}"

    def _said(self) -> str:
        """What is known of a process that was started here."""
        return f" ({self._process.command!r}{self._process.last_words()})" if self._process else ""

    def close(self) -> None:
        """Close the connection."""
        self._context.destroy(linger=0)


def _free_port() -> int:
    """A port of this machine at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def check_command(bound: str, command: Sequence[str]) -> None:
    """Refuse a command that has no place for an address, where none is given.

    Raises
    ------
    ConfigurationError
        If it has none.
    """
    text = shlex.join(command)
    if command and not ("{socket}" in text or "{port}" in text or bound):
        raise ConfigurationError(
            f"command {text!r}: write {{socket}} where it takes the address of its socket, or {{port}} where "
            "it takes a port of this machine"
        )


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM be an exception, so that what this process has started ends with it."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def connected(
    bound: str, command: Sequence[str], *, timeout: float, log: Path | None = None
) -> Iterator[SocketPeer]:
    """A decision process on a socket, started with a command if there is one, for as long as it is needed.

    Parameters
    ----------
    bound : str
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
    if not bound and not command:
        raise ConfigurationError("a decision process needs a socket, or a command that starts it")
    text = shlex.join(command)
    with _ended_in_order(), tempfile.TemporaryDirectory(prefix="gridsched-") as folder:
        port = _free_port() if "{port}" in text and not bound else 0
        address = bound or (f"tcp://127.0.0.1:{port}" if port else f"ipc://{folder}/peer")
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

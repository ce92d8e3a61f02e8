"""A decision process on a socket of ZeroMQ: the simulator asks (REQ), the decision process answers (REP).

The simulator connects, as Batsim does, and the decision process binds. It may be started here, with a
command. Every answer has a time limit; a process that ends and a connection that is closed are noticed soon.
"""

from __future__ import annotations

import contextlib
import os
import select
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
from typing import IO, Any

from gridsched.errors import ConfigurationError, ProtocolError

LARGEST_MESSAGE = 64 * 2**20
"""Bytes that an answer may have."""

_SPIN = 200e-6
"""Seconds for which an answer is looked for before the operating system is asked to wait for it."""

_LOOK, _RETRY = 0.1, 0.02
"""Seconds after which it is seen whether a process is still there, and whether it has bound its socket."""

_FAREWELL = 5.0
"""Seconds that a process has to end by itself after the last message."""

_SHOWN = 400
"""Letters of what a process said that errors show."""

_AT_ONCE = 1 << 20
"""Bytes that are read at once."""

_MORE, _LONG, _COMMAND = 1, 2, 4
"""Flags of a frame."""

_GREETING = b"\xff" + bytes(8) + b"\x7f\3\0" + b"NULL".ljust(20, b"\0") + bytes(32)
"""Signature, version 3.0, no security; the side of the client."""

_PROPERTIES = b"\5READY\x0bSocket-Type\0\0\0\3REQ"
_READY = bytes((_COMMAND, len(_PROPERTIES))) + _PROPERTIES
"""Command that says which kind of socket this is."""


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
        raise ConfigurationError(f"socket {address!r}: give a port from 1 to 65535, as in tcp://*:28000")
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
    """A decision process that is asked through a socket.

    This is the side that asks (REQ) of ZMTP 3.0 without security, the protocol of ZeroMQ. It is written out
    here for its speed: pyzmq, whose threads have to be woken for each message, takes more than twice as long
    (KTH-SP2 on two cores, with the peer of the benchmark: 6,000 for 15,000 jobs/s). It also sees lengths and
    ends of connections, so that errors say what happened.

    Parameters
    ----------
    address : str
        Address to which it binds.
    timeout : float
        Seconds within which each answer has to come.
    process : Process, optional
        The process, where it was started here.

    Notes
    -----
    Source: ZMTP 3.0, https://rfc.zeromq.org/spec/23/, and for the frames of a request
    https://rfc.zeromq.org/spec/28/.
    """

    def __init__(self, address: str, *, timeout: float, process: Process | None = None) -> None:
        self._address, self._timeout, self._process = address_of(address), timeout, process
        self._socket: socket.socket | None = None
        self._hint = ""
        self._unread, self._wanted = b"", 0
        self._end = 0.0

    def exchange(self, message: bytes) -> bytes:
        """Its answer to a message.

        Raises
        ------
        ProtocolError
            If there is none in time, it is too long, or the process is gone.
        """
        self._end = time.monotonic() + self._timeout
        if self._socket is None:
            self._connect()
        self._send(_frame(b"", more=True) + _frame(message))
        more, body = self._frame()
        if body or not more:
            raise ProtocolError(f"the answer from {self._address} is not that of a socket REP of ZeroMQ")
        more, body = self._frame()
        if more:
            raise ProtocolError(f"the answer from {self._address} has several parts; one is wanted")
        self._hint = ""
        return body

    def _connect(self) -> None:
        """Connect as soon as the peer is there, and agree on the protocol."""
        while self._socket is None:
            try:
                self._socket = self._dial()
            except socket.gaierror as error:
                why = error.strerror or error
                raise ProtocolError(f"the machine of {self._address} is not known ({why})") from None
            except OSError as error:
                if time.monotonic() > self._end:
                    why = f"no scheduler is bound to this address ({error.strerror or error})"
                    raise self._late(why) from None
                self._look_at_process()
                time.sleep(_RETRY)
        self._send(_GREETING)
        greeting = self._read(len(_GREETING))
        if (greeting[0], greeting[9] & 1) != (0xFF, 1) or greeting[10] < 3:
            raise ProtocolError(f"the peer at {self._address} does not speak ZeroMQ (ZMTP 3){self._words()}")
        if greeting[12:32].rstrip(b"\0") != b"NULL":
            raise ProtocolError(f"the peer at {self._address} wants a security mechanism; use none")
        self._send(_READY)
        flags, body = self._raw_frame()
        if not flags & _COMMAND or not body.startswith(b"\5READY"):
            raise ProtocolError(f"the peer at {self._address} refuses the connection{self._words()}")
        self._hint = "; it may speak another version of the protocol"

    def _dial(self) -> socket.socket:
        """A connection."""
        transport, _, rest = self._address.partition("://")
        left = max(0.01, self._end - time.monotonic())
        if transport == "ipc":
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                made.settimeout(left)
                made.connect(rest)
            except OSError:
                made.close()
                raise
        else:
            host, _, port = rest.rpartition(":")
            made = socket.create_connection((host.strip("[]"), int(port)), left)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setblocking(False)
        return made

    def _send(self, content: bytes) -> None:
        """Send bytes, however many the connection takes at a time."""
        assert self._socket is not None
        rest = memoryview(content)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                self._wait(write=True)
            except OSError as error:
                raise self._broken(error.strerror or str(error)) from None

    def _frame(self) -> tuple[bool, bytes]:
        """Whether more frames follow, and what is in the next one; commands are passed over."""
        while True:
            flags, body = self._raw_frame()
            if not flags & _COMMAND:
                return bool(flags & _MORE), body
            if time.monotonic() > self._end:
                raise self._late("it sends commands only")

    def _raw_frame(self) -> tuple[int, bytes]:
        """Flags and content of the next frame."""
        head = self._read(2)
        flags, size = head[0], head[1]
        if flags & _LONG:
            size = int.from_bytes(head[1:] + self._read(7), "big")
        if size > LARGEST_MESSAGE:
            raise ProtocolError(
                f"the answer from {self._address} has {size:,} bytes; at most {LARGEST_MESSAGE:,} are taken"
            )
        return flags, self._read(size)

    def _read(self, size: int) -> bytes:
        """So many bytes."""
        self._wanted = size
        while len(self._unread) < size:
            more = self._receive()
            if not more:
                raise self._broken("the peer closed the connection")
            self._unread += more
        found, self._unread, self._wanted = self._unread[:size], self._unread[size:], 0
        return found

    def _receive(self) -> bytes:
        """What has come, at least one byte; none if the connection is closed."""
        assert self._socket is not None
        spin = time.perf_counter() + _SPIN
        while True:
            try:
                return self._socket.recv(_AT_ONCE)
            except BlockingIOError:
                if time.perf_counter() > spin:
                    self._wait()
                else:
                    # the peer may need this core
                    os.sched_yield()
            except OSError as error:
                raise self._broken(error.strerror or str(error)) from None

    def _wait(self, *, write: bool = False) -> None:
        """Wait until bytes can be read or written."""
        assert self._socket is not None
        here = [self._socket]
        while True:
            left = self._end - time.monotonic()
            ready = select.select(
                [] if write else here, here if write else [], [], min(max(left, 0.0), _LOOK)
            )
            if ready[0] or ready[1]:
                return
            self._look_at_process()
            if left <= 0:
                raise self._late("it is connected, and silent")

    def _late(self, why: str) -> ProtocolError:
        """Error of an answer that does not come in time."""
        return ProtocolError(
            f"{self._heard()} from {self._address} within {self._timeout:g} s: "
            f"{why}{self._hint}{self._words()}"
        )

    def _broken(self, why: str) -> ProtocolError:
        """Error of a connection that has ended."""
        if self._process is not None:
            # it has a moment to end, so that what it says of that can be shown
            self._process.wait(_FAREWELL / 10)
            self._look_at_process()
        return ProtocolError(f"{self._heard()} from {self._address}: {why}{self._hint}{self._words()}")

    def _look_at_process(self) -> None:
        """Refuse to wait for a process that has ended."""
        if self._process is not None and self._process.has_ended():
            raise ProtocolError(
                f"{self._heard()} from {self._process.command!r}{self._process.last_words()}{self._hint}"
            )

    def _heard(self) -> str:
        """How much has come of what is awaited."""
        if not (self._unread and self._wanted):
            return "no answer"
        return f"only {len(self._unread):,} of {self._wanted:,} bytes"

    def _words(self) -> str:
        """What is known of a process that was started here."""
        return f" ({self._process.command!r}{self._process.last_words()})" if self._process else ""

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()


def _frame(content: bytes, *, more: bool = False) -> bytes:
    """A frame with its flags and length."""
    size = len(content)
    head = bytes((more, size)) if size < 256 else bytes((more | _LONG,)) + size.to_bytes(8, "big")
    return head + content


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


class _Ending:
    """What SIGTERM does: an exception once, so that what this process has started ends with it."""

    def __init__(self) -> None:
        self._came, self._held = 0, False

    def __call__(self, number: int, _: Any) -> None:
        """End this process, unless it ends already, or starts another one."""
        first, self._came = not self._came, number
        if first and not self._held:
            sys.exit(128 + number)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let SIGTERM wait until it is known what was started."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._came:
                sys.exit(128 + self._came)


@contextlib.contextmanager
def _ended_in_order() -> Iterator[_Ending]:
    """Let SIGTERM end what this process has started, where nobody else looks after it."""
    ending = _Ending()
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield ending
        return
    signal.signal(signal.SIGTERM, ending)
    try:
        yield ending
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
    with _ended_in_order() as ending, tempfile.TemporaryDirectory(prefix="gridsched-") as folder:
        port = _free_port() if "{port}" in text and not bound else 0
        address = bound or (f"tcp://127.0.0.1:{port}" if port else f"ipc://{folder}/peer")
        address_of(address)
        words = [word.replace("{socket}", address).replace("{port}", str(port)) for word in command]
        process, patience = None, 0.0
        try:
            if words:
                with ending.held():
                    process = Process(words, log)
            peer = SocketPeer(address, timeout=timeout, process=process)
            try:
                yield peer
                patience = _FAREWELL
            finally:
                peer.close()
        finally:
            if process is not None:
                with ending.held():
                    process.end(patience)

"""The side of a decision process on a socket of ZeroMQ: it binds, and answers each message (REP)."""

from __future__ import annotations

from collections.abc import Callable

import zmq

from gridsched.errors import ConfigurationError, ProtocolError

_FAREWELL = 5000
"""Milliseconds that the last answer has to leave this process."""

_LONGEST = 2**31 - 1
"""Milliseconds for which ZeroMQ waits at most."""


def answer_all(
    socket: str, answer: Callable[[bytes], bytes], goes_on: Callable[[], bool], *, timeout: float
) -> None:
    """Answer messages until the session ends.

    Parameters
    ----------
    socket : str
        Address to bind to, such as ``tcp://*:28000``.
    answer : callable
        Answer to a message.
    goes_on : callable
        Whether more messages are awaited.
    timeout : float
        Seconds within which each message has to come.

    Raises
    ------
    ConfigurationError
        If the address cannot be bound to.
    ProtocolError
        If no message comes in time.
    """
    with zmq.Context() as context, context.socket(zmq.REP) as reply:
        reply.setsockopt(zmq.LINGER, _FAREWELL)
        try:
            reply.bind(socket)
        except zmq.ZMQError as error:
            raise ConfigurationError(f"socket {socket!r}: cannot be bound to ({error.strerror})") from None
        while goes_on():
            if not reply.poll(min(round(1000 * timeout), _LONGEST)):
                raise ProtocolError(f"no message on {socket} within {timeout:g} s")
            parts = reply.recv_multipart()
            if len(parts) > 1:
                raise ProtocolError(f"a message on {socket} has {len(parts)} parts; one is wanted")
            reply.send(answer(parts[0]))

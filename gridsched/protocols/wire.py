"""What codecs share: messages that are checked while they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gridsched.errors import ProtocolError

DAMAGED = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What msgspec raises for bytes that are no message."""


def read(decoder: Any, message: bytes, protocol: str) -> Any:
    """A message as the decoder wants it.

    Raises
    ------
    ProtocolError
        If it is no JSON, or something else; with the path of the field.
    """
    try:
        return decoder.decode(message)
    except DAMAGED as error:
        # it may quote the message
        why = "".join(letter if letter.isprintable() else "?" for letter in str(error))
        raise ProtocolError(f"message of {len(message):,} bytes is not of {protocol}: {why:.300}") from None


def check_order(now: float, timestamps: Sequence[float]) -> None:
    """Refuse a message whose events are not in chronological order, or after its own time.

    Raises
    ------
    ProtocolError
        If there is such an event.
    """
    before = -math.inf
    for index, timestamp in enumerate(timestamps):
        if not before <= timestamp <= now:
            raise ProtocolError(
                f"$.events[{index}].timestamp is {timestamp:g}: events are in chronological order"
                + (f", and this follows {before:g}" if timestamp < before else f", until now, {now:g}")
            )
        before = timestamp


def convert(event: Any, table: dict[type, Callable[[Any], Any]]) -> Any:
    """An event in its other form."""
    return table[type(event)](event)


def workload_of(name: str) -> str:
    """What stands before the name of a job or profile in `workload!name`, with the mark; empty if nothing."""
    before, mark, _ = name.partition("!")
    return before + mark if mark else ""

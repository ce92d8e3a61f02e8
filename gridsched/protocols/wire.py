"""What codecs share: messages that are checked while they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from gridsched.errors import ProtocolError
from gridsched.protocols.messages import Decision, Decisions, Event, Events, Unsupported

_ENCODE = msgspec.json.Encoder().encode

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


class Strict(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Data of a decision."""


def unsupported(base: type[msgspec.Struct], content: str, *names: str) -> tuple[Any, ...]:
    """Decisions that the protocol has and gridsched has not, whatever they say."""
    return tuple(
        msgspec.defstruct(
            f"_{name}", [(content, msgspec.Raw, msgspec.Raw())], bases=(base,), tag=name, frozen=True
        )
        for name in names
    )


class Direction(NamedTuple):
    """Messages of one side: their form as JSON, how each event is written, and how it is read."""

    form: Callable[[float, list[Any]], Any]
    decoder: Any
    written: Mapping[type, Callable[[Any], Any]]
    read: Mapping[type, Callable[[Any], Any]]


class JsonCodec:
    """What the codecs of all versions do; see `gridsched.protocols.messages.Codec`."""

    name: ClassVar[str]
    content: ClassVar[str]
    """Field of an event with what it says."""
    places: ClassVar[Mapping[type, tuple[str, Mapping[str, str]]]]
    """Name of each decision, and of its fields where they have others than here."""
    labels: ClassVar[str]
    """Where `Labels` are in the event of a job."""
    events: ClassVar[Direction]
    decisions: ClassVar[Direction]
    ending: ClassVar[bytes] = b""
    """Bytes after a message, with or without which it is read."""

    def place(self, decision: Decision, field: str) -> tuple[str, str]:
        """Name of a decision, and where a field of it is, see `Codec`."""
        if isinstance(decision, Unsupported):
            return decision.name, self.content
        name, fields = self.places[type(decision)]
        return name, f"{self.content}.{fields.get(field, field)}"

    def encode_events(self, now: float, events: Sequence[Event]) -> bytes:
        """Message of the simulator, see `Codec`."""
        return self._encoded(self.events, now, events)

    def decode_events(self, message: bytes) -> Events:
        """What a message of the simulator says, see `Codec`."""
        return Events(*self._decoded(self.events, message))

    def encode_decisions(self, now: float, decisions: Sequence[Decision]) -> bytes:
        """Message of the decision process, see `Codec`."""
        return self._encoded(self.decisions, now, decisions)

    def decode_decisions(self, message: bytes) -> Decisions:
        """What a message of the decision process says, see `Codec`."""
        return Decisions(*self._decoded(self.decisions, message))

    def _encoded(self, direction: Direction, now: float, events: Sequence[Any]) -> bytes:
        made = direction.form(now, [direction.written[type(each)](each) for each in events])
        return _ENCODE(made) + self.ending

    def _decoded(self, direction: Direction, message: bytes) -> tuple[float, tuple[Any, ...]]:
        found = read(direction.decoder, message.removesuffix(self.ending), self.name)
        check_order(found.now, [each.timestamp for each in found.events])
        return found.now, tuple([direction.read[type(each)](each) for each in found.events])


def workload_of(name: str) -> str:
    """What stands before the name of a job or profile in `workload!name`, with the mark; empty if nothing."""
    before, mark, _ = name.partition("!")
    return before + mark if mark else ""

"""What codecs share: messages that are checked while they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Union

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


class OfJob(Strict, frozen=True):
    """Data of a decision about a job."""

    job_id: str


class OfJobs(Strict, frozen=True):
    """Data of a decision about jobs."""

    job_ids: list[str]


class Nothing(msgspec.Struct, frozen=True, gc=False):
    """Data of what says nothing but its name."""


NOTHING = Nothing()


class Form(NamedTuple):
    """What an event says, and how it is read, given its time and that; it may say nothing with a default."""

    content: Any
    read: Callable[[float, Any], Any]
    default: Any = msgspec.NODEFAULT


def unsupported(*names: str) -> dict[str, Form]:
    """Decisions that the protocol has and gridsched has not, whatever they say."""
    return {name: Form(msgspec.Raw, partial(_unsupported, name), msgspec.Raw()) for name in names}


def _unsupported(name: str, timestamp: float, _: msgspec.Raw) -> Unsupported:
    return Unsupported(timestamp, name)


Written = Mapping[type, tuple[str, Callable[[Any], Any]]]
"""Name of each event, and what it says of it."""


class Direction:
    """Messages of one side.

    Parameters
    ----------
    name, content : str
        Fields with the name of an event, and with what it says.
    forms : mapping of str to Form
        Events by their names.
    written : mapping
        How events of here are written.
    strict : bool
        Whether unknown fields are refused.
    may_be_empty : bool
        Whether a message may have no events, without saying so.
    instead : str
        What is said of an event that cannot be written.
    """

    def __init__(
        self,
        name: str,
        content: str,
        forms: Mapping[str, Form],
        written: Written,
        *,
        strict: bool = False,
        may_be_empty: bool = False,
        instead: str = "",
    ) -> None:
        made = {
            tag: msgspec.defstruct(
                f"_{tag}",
                [
                    ("timestamp", float),
                    ("says", form.content, msgspec.field(default=form.default, name=content)),
                ],
                tag_field=name,
                tag=tag,
                frozen=True,
                gc=False,
                forbid_unknown_fields=strict,
            )
            for tag, form in forms.items()
        }
        any_of: Any = Union.__getitem__(tuple(made.values()))
        empty: Any = [] if may_be_empty else msgspec.NODEFAULT
        self._message = msgspec.defstruct(
            "_Message",
            [("now", float), ("events", list[any_of], msgspec.field(default=empty))],
            frozen=True,
            forbid_unknown_fields=strict,
        )
        self._decoder = msgspec.json.Decoder(self._message)
        self._read = {made[tag]: form.read for tag, form in forms.items()}
        self._made, self._instead = made, instead
        self.written = written

    def encoded(self, protocol: str, now: float, events: Sequence[Any]) -> bytes:
        """Message of some events.

        Raises
        ------
        ProtocolError
            If the protocol does not have one of them.
        """
        written = []
        for each in events:
            if type(each) not in self.written:
                raise ProtocolError(
                    f"{type(each).__name__} at {each.timestamp:g} s: {protocol} has no such message"
                    f"{self._instead}"
                )
            name, says = self.written[type(each)]
            written.append(self._made[name](each.timestamp, says(each)))
        return _ENCODE(self._message(now, written))

    def decoded(self, protocol: str, message: bytes) -> tuple[float, tuple[Any, ...]]:
        """Time of a message, and its events.

        Raises
        ------
        ProtocolError
            If it breaks the protocol.
        """
        found = read(self._decoder, message, protocol)
        check_order(found.now, [each.timestamp for each in found.events])
        return found.now, tuple([self._read[type(each)](each.timestamp, each.says) for each in found.events])


class Codec:
    """One version of the protocol as JSON, for both sides."""

    name: ClassVar[str]
    """Name of the protocol, such as batsim-4."""
    content: ClassVar[str]
    """Field of an event with what it says."""
    places: ClassVar[Mapping[type, Mapping[str, str]]]
    """Names of fields of decisions that have others than here."""
    labels: ClassVar[str]
    """Where labels of a job are in its event; for errors."""
    events: ClassVar[Direction]
    decisions: ClassVar[Direction]
    ending: ClassVar[bytes] = b""
    """Bytes after a message, with or without which it is read."""

    def place(self, decision: Decision, field: str) -> tuple[str, str]:
        """Name of a decision in the protocol, and where a field of it is in its event; for errors."""
        if isinstance(decision, Unsupported):
            return decision.name, self.content
        name, _ = self.decisions.written[type(decision)]
        return name, f"{self.content}.{self.places.get(type(decision), {}).get(field, field)}"

    def encode_events(self, now: float, events: Sequence[Event]) -> bytes:
        """Message of the simulator.

        Raises
        ------
        ProtocolError
            If the protocol does not have an event.
        """
        return self.events.encoded(self.name, now, events) + self.ending

    def decode_events(self, message: bytes) -> Events:
        """What a message of the simulator says.

        Raises
        ------
        ProtocolError
            If it breaks the protocol; the error names the field.
        """
        return Events(*self.events.decoded(self.name, message.removesuffix(self.ending)))

    def encode_decisions(self, now: float, decisions: Sequence[Decision]) -> bytes:
        """Message of the decision process.

        Raises
        ------
        ProtocolError
            If the protocol does not have a decision.
        """
        return self.decisions.encoded(self.name, now, decisions) + self.ending

    def decode_decisions(self, message: bytes) -> Decisions:
        """What a message of the decision process says.

        Raises
        ------
        ProtocolError
            If it breaks the protocol; the error names the field.
        """
        return Decisions(*self.decisions.decoded(self.name, message.removesuffix(self.ending)))


def workload_of(name: str) -> str:
    """What stands before the name of a job or profile in `workload!name`, with the mark; empty if nothing."""
    before, mark, _ = name.partition("!")
    return before + mark if mark else ""

"""Cases that a hunt has found: random tests try them again each time."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path

from hypothesis.database import ExampleDatabase

EXAMPLES = Path(__file__).parent.parent / "examples.json"
"""Seeds by the name of a test, choices of hypothesis (base 64) by its name with its parameters."""


def stored() -> dict[str, list[int | str]]:
    found: dict[str, list[int | str]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return found


def store(test: str, examples: Iterable[int | str]) -> None:
    """Add examples of a test to the file."""
    known = stored()
    known[test] = sorted({*known.get(test, []), *examples}, key=str)
    EXAMPLES.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


class StoredExamples(ExampleDatabase):
    """What hypothesis tries first: stored examples, and in this process also what it finds."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[bytes, set[bytes]] = {}

    def fetch(self, key: bytes) -> Iterable[bytes]:
        yield from (b64decode(str(each)) for each in stored().get(key.decode(), []))
        yield from list(self.found.get(key, ()))

    def save(self, key: bytes, value: bytes) -> None:
        self.found.setdefault(key, set()).add(value)

    def delete(self, key: bytes, value: bytes) -> None:
        self.found.get(key, set()).discard(value)

    def smallest(self, key: str) -> list[str]:
        """What made a test fail in this process, at its smallest."""
        return [b64encode(each).decode() for each in self.found.get(key.encode(), ())]

"""Errors whose messages say what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gridsched.errors import GridschedError


@contextmanager
def refused(*parts: str, error: type[Exception] = GridschedError, one_line: bool = False) -> Iterator[None]:
    """What is done inside ends in an error of this kind, with a message that has all parts."""
    with pytest.raises(error) as caught:
        yield
    says(str(caught.value), *parts)
    assert not (one_line and "\n" in str(caught.value))


def says(text: str, *parts: str) -> None:
    """A message, page or output has all parts."""
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in:\n{text}"


def each_refused(*cases: tuple[type[Exception], str, Callable[[], object]]) -> None:
    """Each call ends in an error of its kind, whose message matches."""
    for error, message, call in cases:
        with pytest.raises(error, match=message):
            call()

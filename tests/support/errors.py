"""What a user is told about a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gridsched.errors import ConfigurationError


@contextmanager
def refused(
    *parts: str, error: type[Exception] = ConfigurationError
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an error whose message has all of the parts."""
    with pytest.raises(error) as caught:
        yield caught
    message = str(caught.value)
    assert not [part for part in parts if part not in message], message

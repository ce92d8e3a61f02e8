"""Errors that a user can fix. The command line prints them as one line, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GridschedError(Exception):
    """An error in what the user gave: the message names it, says what was found and what to do."""


class TraceError(GridschedError):
    """A workload log that cannot be read or fetched."""


class WorkloadError(GridschedError):
    """A workload that cannot be simulated, or parameters from which none can be made."""


class ConfigurationError(GridschedError):
    """A configuration, study or policy that does not make sense."""


class ScheduleError(GridschedError):
    """A simulated schedule that breaks a rule which every schedule must keep."""


class ProtocolError(GridschedError):
    """A peer that does not answer, or whose message breaks the protocol that both speak."""


def meant(wrong: str, known: Iterable[str]) -> str:
    """What was probably meant by an unknown name, to be put behind it; empty where nothing is like it."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(wrong.lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""

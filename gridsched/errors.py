"""Errors that a user can fix. The command line prints them as one line, without a traceback."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Collection, Iterable


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


def check_choice(
    what: str, value: object, allowed: Collection[object], error: type[GridschedError] = ConfigurationError
) -> None:
    """Refuse a value that is none of those that are allowed."""
    if value not in allowed:
        raise error(f"{what} is {value!r}; use one of {', '.join(map(str, allowed))}")


def check_number(
    what: str,
    value: float | None,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    error: type[GridschedError] = ConfigurationError,
) -> None:
    """Refuse a number that is not finite or not within bounds; None stands for a number that is not given."""
    bounds = (
        (least, operator.ge, "at least"),
        (above, operator.gt, "above"),
        (most, operator.le, "at most"),
        (below, operator.lt, "below"),
    )
    given = [(bound, holds, words) for bound, holds, words in bounds if bound is not None]
    if value is None or (math.isfinite(value) and all(holds(value, bound) for bound, holds, _ in given)):
        return
    asked = " and ".join(f"{words} {bound:.10g}" for bound, _, words in given) or "finite"
    raise error(f"{what} is {value}; it must be {asked}")


def check_whole(
    what: str,
    value: float,
    *,
    least: int = 0,
    most: int | None = None,
    error: type[GridschedError] = ConfigurationError,
) -> int:
    """The whole number that a value is, 1000 for 1e3; refuse one that is none, or out of bounds."""
    above = most is not None and value > most
    if not math.isfinite(value) or value != int(value) or value < least or above:
        bounds = f"from {least} on" if most is None else f"from {least} to {most}"
        raise error(f"{what} is {value}; it must be a whole number {bounds}")
    return int(value)

"""Sets of hosts as texts: closed intervals such as ``0-3 5 7-9``, in any order and overlapping.

Source: docs/interval-set.rst of Batsim. Intervals are separated by spaces (version 4, and pybatsim) or
commas (the default of the library of intervals that batsim-cpp and Batsim's R scripts use). The canonical
form, which is written, has disjoint intervals as large as possible in ascending order, separated by spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from gridsched.errors import ProtocolError

_INTERVAL = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_LONGER = 20
"""More letters than an interval has."""


@lru_cache(1 << 14)
def _interval(text: str) -> range:
    """Hosts of an interval; empty if it is none."""
    match = _INTERVAL.fullmatch(text)
    return range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)


def read_hosts(text: str, number: int) -> list[int]:
    """Hosts of a set in ascending order.

    Parameters
    ----------
    text : str
        The intervals.
    number : int
        How many hosts there are; they are called 0, 1 and so on.

    Raises
    ------
    ProtocolError
        If it is no set of intervals, or names a host that there is not.

    Examples
    --------
    >>> read_hosts("5 0-2", 8)
    [0, 1, 2, 5]
    """
    intervals = []
    for part in text.replace(",", " ").split():
        interval = _interval(part[:_LONGER])
        if not interval:
            raise ProtocolError(f"hosts {text[:80]!r}: {part[:40]!r} is no interval such as 4 or 0-3")
        if interval.stop > number:
            raise ProtocolError(
                f"hosts {text[:80]!r}: there is no host {interval.stop - 1}; they are 0 to {number - 1}"
            )
        intervals.append(interval)
    return sorted(set().union(*intervals))


def write_hosts(hosts: Iterable[int]) -> str:
    """The canonical text of a set of hosts.

    Examples
    --------
    >>> write_hosts([5, 0, 1, 2])
    '0-2 5'
    """
    intervals: list[list[int]] = []
    for host in sorted(set(hosts)):
        if intervals and host == intervals[-1][1] + 1:
            intervals[-1][1] = host
        else:
            intervals.append([host, host])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in intervals)

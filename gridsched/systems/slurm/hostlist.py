"""Lists of hosts as Slurm writes them: `n[01-03,7],gpu1` are n01, n02, n03, n7 and gpu1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from gridsched.errors import ConfigurationError

_PART = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_NUMBER = re.compile(r"\d+$")
_MOST = 2**20


def split_hosts(text: str) -> list[str]:
    """The parts of a list of hosts, with their brackets: commas inside brackets do not separate."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    parts.append(current)
    return [part.strip() for part in parts if part.strip()]


def expand_hosts(text: str, where: str = "host list") -> list[str]:
    """Names of the hosts of a list, in its order.

    Parameters
    ----------
    text : str
        The list.
    where : str
        File, line and key, for messages.

    Raises
    ------
    ConfigurationError
        If brackets do not match, or what they hold is no number or range.
    """
    hosts: list[str] = []
    for part in split_hosts(text):
        if not _PART.fullmatch(part):
            raise ConfigurationError(f"{where}: {part!r} has brackets that do not match; correct it")
        hosts += _expand(part, where)
    if len(hosts) > _MOST:
        raise ConfigurationError(f"{where}: {len(hosts)} hosts; at most {_MOST} can be simulated")
    return hosts


def compress_hosts(hosts: Iterable[str]) -> str:
    """The list of some hosts: n01, n02 and n04 are n[01-02,04]."""
    groups: dict[tuple[str, int], list[int]] = {}
    for host in hosts:
        number = _NUMBER.search(host)
        digits = number[0] if number else ""
        groups.setdefault((host[: len(host) - len(digits)], len(digits)), []).append(int(digits or 0))
    parts = []
    for (prefix, width), numbers in groups.items():
        # numbers that follow each other are all as far from their places
        ordered = groupby(enumerate(sorted(numbers)), key=lambda each: each[1] - each[0])
        runs = [[number for _, number in run] for _, run in ordered]
        pieces = [f"{run[0]:0{width}d}" + (f"-{run[-1]:0{width}d}" if len(run) > 1 else "") for run in runs]
        inside = ",".join(pieces) if width else ""
        parts.append(f"{prefix}[{inside}]" if len(numbers) > 1 and width else f"{prefix}{inside}")
    return ",".join(parts)


def _expand(part: str, where: str) -> list[str]:
    """Hosts of one part, the numbers of the last bracket fastest."""
    opening = part.find("[")
    if opening < 0:
        return [part]
    closing = part.index("]", opening)
    before, inside, after = part[:opening], part[opening + 1 : closing], part[closing + 1 :]
    numbers: list[str] = []
    for piece in inside.split(","):
        first, _, last = piece.strip().partition("-")
        last = last or first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last) < int(first) + _MOST):
            raise ConfigurationError(f"{where}: {piece!r} in {part!r} is no range; give it as 01-16")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return [before + number + rest for number in numbers for rest in _expand(after, where)]

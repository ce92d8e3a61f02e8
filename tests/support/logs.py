"""Logs of the tests of the command line, and what is read from its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KTH = "KTH-SP2-1996-2.1-cln.swf.gz"
HEADER = "; Computer: Abacus\n; MaxProcs: 4\n; UnixStartTime: 0\n; TimeZoneString: Europe/Rome\n"
JOBS = [(0, 100, 2, 200), (10, 50, 4, 60), (20, 30, 2, 30), (20, 10, 1, -1), (40, 500, 3, 400)]
"""Submit time, run time, processors and requested time."""


def swf(jobs: Iterable[tuple[int, int, int, int]], header: str = HEADER) -> str:
    lines = (
        f"{number} {submit} -1 {run} {size} -1 -1 {size} {requested} -1 1 {number % 2} 1 1 1 1 -1 -1\n"
        for number, (submit, run, size, requested) in enumerate(jobs, start=1)
    )
    return header + "".join(lines)


def row(text: str, name: str) -> list[str]:
    """Cells of the first line that begins with a name, without thousands separators."""
    line = next(line for line in text.splitlines() if line.startswith(f"{name} "))
    return line.removeprefix(name).replace(",", "").split()


def assert_rows(text: str, expected: Mapping[str, Sequence[Any]]) -> None:
    """Lines that begin with these names have these cells; where `...` follows there may be more of them."""
    for name, cells in expected.items():
        known = [cell for cell in cells if cell is not ...]
        found = row(text, name)
        assert found[: len(known) if ... in cells else None] == known, (name, found)

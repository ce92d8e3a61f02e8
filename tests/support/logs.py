"""Logs of the tests of the command line, and what is read from its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridsched.traces import write_swf
from gridsched.workloads import Workload

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


def odd_log(path: Path, **changes: Any) -> Path:
    """A log of 4 processors, 6 of which are in use for 50 of 200 s, whose jobs ended in all ways."""
    columns: dict[str, Any] = {
        "submit_time": [0, 10, 20, 20, 30, 160],
        "wait_time": [0, 500, 80, 80, 200, 0],
        "run_time": [100, 0, 60, 50, -1, 40],
        "requested_processors": [4, 1, 2, 4, 1, 1],
        "requested_time": [100, 50, 40, 2**31 - 1, 2**31 - 1, 60],
        "status": [1, 5, 5, 0, 5, -1],
    }
    write_swf(Workload(name="odd", processors_available=4, **{**columns, **changes}), path)
    return path


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

"""What the comment lines of a log say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gridsched.errors import WorkloadError
from gridsched.workloads.table import Workload

_LABELLED = re.compile(r"\s*;+\s*([A-Za-z]+)\s*:\s*(.*?)\s*$", re.DOTALL)
_WHOLE_NUMBER = re.compile(r"[-+]?\d{1,18}")

_LABELS = {
    "processors_available": ("MaxProcs", "MaxNodes"),
    "unix_start_time": ("UnixStartTime",),
    "time_zone": ("TimeZoneString", "TimeZone"),
    "acknowledgement": ("Acknowledge",),
}
"""Labels of the lines that give a fact, the one that is written first."""


@dataclass(frozen=True)
class HeaderFacts:
    """The header fields that a `Workload` keeps, None where the header is silent."""

    processors_available: int | None
    unix_start_time: int | None
    time_zone: str | None
    acknowledgement: str


def parse_header(lines: Iterable[str]) -> HeaderFacts:
    """Facts from header lines like `; MaxProcs: 64`; labels in any case, the first of several counts.

    Standard Workload Format, version 2.2, "Header Comments". The processors are `MaxProcs`, else
    `MaxNodes`. The time zone is `TimeZoneString`, else the deprecated `TimeZone` (seconds east of
    UTC) if it is a whole number of hours. Several `Acknowledge` lines are joined with "; ".
    """
    found: dict[str, list[str]] = {}
    for line in lines:
        if match := _LABELLED.match(line):
            found.setdefault(match[1].lower(), []).append(match[2])
    sizes = (_first_number(found.get(label, ())) for label in ("maxprocs", "maxnodes"))
    start = _first_number(found.get("unixstarttime", ()))
    return HeaderFacts(
        processors_available=next((size for size in sizes if size and size > 0), None),
        unix_start_time=start if start is not None and start >= 0 else None,
        time_zone=_time_zone(found),
        acknowledgement="; ".join(text for text in found.get("acknowledge", ()) if text),
    )


def header_lines(workload: Workload) -> list[str]:
    """Header that says what the workload knows: its own lines, after those that must be added.

    Lines of facts that the workload does not have, or has otherwise, are left out.

    Raises
    ------
    WorkloadError
        If a header line is not a comment of one line.
    """
    for line in workload.header:
        if not line.lstrip().startswith(";") or "\n" in line:
            raise WorkloadError(
                f"{workload.name}: header line {line!r:.60} is not one comment line; begin it with ';'"
            )
    given = parse_header(workload.header)
    added, wrong = [], set()
    for name, labels in _LABELS.items():
        mine = getattr(workload, name)
        if mine != getattr(given, name):
            wrong |= {label.lower() for label in labels}
            added += [f"; {labels[0]}: {_one_line(mine)}"] if mine not in ("", None) else []
    own = [line for line in workload.header if _label(line) not in wrong]
    if workload.header:
        return [*added, *own]
    return [
        "; Version: 2.2",
        f"; Computer: {_one_line(workload.name)}",
        *added,
        "; Note: written by gridsched",
    ]


def _label(line: str) -> str:
    """Label of a header line in small letters; empty where it has none."""
    match = _LABELLED.match(line)
    return match[1].lower() if match else ""


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def _first_number(texts: Iterable[str]) -> int | None:
    for text in texts:
        if match := _WHOLE_NUMBER.search(text):
            return int(match[0])
    return None


def _time_zone(found: dict[str, list[str]]) -> str | None:
    for text in found.get("timezonestring", ()):
        if words := text.split():
            return words[0]
    seconds = _first_number(found.get("timezone", ()))
    if seconds is None or seconds % 3600 or not -12 <= seconds // 3600 <= 14:
        return None
    # The zones named Etc/GMT count their hours westwards.
    return f"Etc/GMT{-seconds // 3600:+d}" if seconds else "Etc/GMT"

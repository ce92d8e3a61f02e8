"""The log that a command works on."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gridsched.cli.printing import printable, progress
from gridsched.errors import ConfigurationError, TraceError

if TYPE_CHECKING:
    from gridsched.traces.sacct import AccountingLog
    from gridsched.workloads import Workload


@dataclass(frozen=True)
class Log:
    """A log that was read; an export of Slurm's accounting has names besides."""

    path: Path
    workload: Workload
    accounting: AccountingLog | None = None

    def name(self, kind: str, number: int) -> str:
        """Name of a user, group, queue or partition, or its number."""
        names = self.accounting.names[kind] if self.accounting else ()
        return printable(names[number]) if 0 <= number < len(names) else str(number)

    def number(self, kind: str, name: str) -> int:
        """Number of a user, group, queue or partition that is given by name, or by number in an SWF log."""
        names = self.accounting.names[kind] if self.accounting else ()
        if name in names:
            return names.index(name)
        if self.accounting is None and name.isascii() and name.isdigit():
            return int(name)
        known = f"it has {', '.join(map(printable, names[:20]))}" if names else "name it by its number"
        raise ConfigurationError(f"{self.path}: no {kind} {name!r} in this log; {known}")


def read_log(options: argparse.Namespace) -> Log:
    """Log that is named on the command line: in the Standard Workload Format, or an export of sacct."""
    from gridsched.traces import read_swf
    from gridsched.traces.sacct import is_sacct, read_accounting

    path = find_trace(options.trace)
    chosen = {"--timezone": options.time_zone, "--unit": options.unit, "--from": options.begin}
    with progress(f"reading {path.name}"):
        if is_sacct(path):
            if options.extra_fields is not None:
                raise ConfigurationError(
                    f"{path}: --extra-fields is for SWF logs; leave it out for this export"
                )
            accounting = read_accounting(
                path,
                time_zone=options.time_zone,
                unit=options.unit or "cpus",
                begin=options.begin or "submit",
            )
            return Log(path, accounting.workload, accounting)
        workload = read_swf(path, extra_fields=options.extra_fields or "refuse")
    given = [option for option, value in chosen.items() if value is not None]
    if given:
        raise ConfigurationError(f"{path}: {given[0]} is for exports of sacct; leave it out for this log")
    return Log(path, workload)


_ENDINGS = (".swf", ".swf.gz", "cln")
"""Endings that names and files of the archive's logs have."""


def find_trace(trace: str) -> Path:
    """Path of a log that is given as a path, or by the name of a log that was fetched."""
    from gridsched.traces import archive_folder, find_log

    path = Path(trace)
    if path.exists() or path.name != trace:
        return path
    if path.suffix and not trace.lower().endswith(_ENDINGS):
        raise TraceError(f"{trace}: no such file; give the path of a log, or the name of one of the archive")
    try:
        log = find_log(trace)
    except TraceError as error:
        raise TraceError(f"{trace}: no such file, and {error}") from None
    fetched = archive_folder() / log.file
    if not fetched.is_file():
        raise TraceError(
            f"{trace}: no such file, and the archive's log {log.name} is not in {archive_folder()}; "
            f"get it with: gridsched fetch {log.name}"
        )
    return fetched


def moment(workload: Workload, seconds: float) -> str:
    """Date and time of seconds since the start of a log, in its time zone; UTC if that is not known."""
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    if workload.unix_start_time is None:
        return f"{seconds:,.0f} s"
    try:
        # The errors of unknown zones are KeyErrors, ValueErrors and OSErrors.
        zone = ZoneInfo(workload.time_zone) if workload.time_zone else UTC
    except (KeyError, ValueError, OSError):
        zone = UTC
    try:
        return (
            f"{datetime.fromtimestamp(workload.unix_start_time + float(seconds), zone):%Y-%m-%d %H:%M:%S %Z}"
        )
    except (OverflowError, ValueError, OSError):
        return f"{seconds:,.0f} s after the start"

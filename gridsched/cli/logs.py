"""The log that a command works on."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.cli.options import names_of_aspects
from gridsched.cli.printing import printable, progress
from gridsched.errors import ConfigurationError, TraceError

if TYPE_CHECKING:
    from gridsched.traces.formats import FormatName
    from gridsched.traces.sacct import AccountingLog
    from gridsched.workloads import Workload


@dataclass(frozen=True)
class Log:
    """A log that was read, with the names that its numbers stand for where it has any.

    Accounting of Slurm, from an export or a table, has more besides.
    """

    path: Path
    workload: Workload
    accounting: AccountingLog | None = None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    format: str = "swf"

    def name(self, kind: str, number: int) -> str:
        """Name of a user, group, queue or partition, or its number."""
        names = self.names.get(kind, ())
        return printable(names[number]) if 0 <= number < len(names) else str(number)

    def number(self, kind: str, name: str) -> int:
        """Number of a user, group, queue or partition that is given by name, or by number without names."""
        names = self.names.get(kind, ())
        if name in names:
            return list(names).index(name)
        if not names and name.isascii() and name.isdigit():
            return int(name)
        known = f"it has {', '.join(map(printable, names[:20]))}" if names else "name it by its number"
        raise ConfigurationError(f"{self.path}: no {kind} {name!r} in this log; {known}")


_OPTIONS: dict[str, tuple[str, tuple[FormatName, ...]]] = {
    "--extra-fields": ("extra_fields", ("swf",)),
    "--timezone": ("time_zone", ("sacct", "slurm-table", "gpu-jobs")),
    "--unit": ("unit", ("sacct", "slurm-table")),
    "--from": ("begin", ("sacct",)),
}
"""Options of reading, and the formats that they are for."""


def read_log(options: argparse.Namespace) -> Log:
    """Log that is named on the command line, in the format that it has or is said to have."""
    from gridsched.traces.formats import FORMATS, recognise

    kind: FormatName
    path = find_trace(options.trace)
    with progress(f"reading {path.name}"):
        kind = options.format or recognise(path)
        for option, (name, formats) in _OPTIONS.items():
            if getattr(options, name) is not None and kind not in formats:
                what = " and ".join(FORMATS[each] for each in formats)
                raise ConfigurationError(f"{path}: {option} is for {what}; leave it out for {FORMATS[kind]}")
        return _read(path, kind, options)


def _read(path: Path, kind: FormatName, options: argparse.Namespace) -> Log:
    from gridsched import traces

    if kind == "swf":
        workload = traces.read_swf(path, extra_fields=options.extra_fields or "refuse")
        return Log(path, workload)
    if kind == "batsim":
        batsim = traces.read_batsim(path)
        return Log(path, batsim.workload, names=batsim.names, format=kind)
    if kind in ("gpu-pods", "gpu-jobs"):
        log = (
            traces.read_gpu_pod_log(path)
            if kind == "gpu-pods"
            else traces.read_gpu_job_log(path, time_zone=options.time_zone)
        )
        return Log(path, log.workload, names=log.names, format=kind)
    waiting: Any = "recorded" if cancelled(options, accounting=True) == "recorded" else "wait"
    unit: Any = options.unit or "cpus"
    zone = options.time_zone
    accounting = (
        traces.read_accounting(
            path, time_zone=zone, unit=unit, begin=options.begin or "submit", cancelled=waiting
        )
        if kind == "sacct"
        else traces.read_slurm_table(path, time_zone=zone, unit=unit, cancelled=waiting)
    )
    return Log(path, accounting.workload, accounting, accounting.names, kind)


def cancelled(options: argparse.Namespace, *, accounting: bool) -> str:
    """Treatment of jobs that were cancelled before they ran."""
    if "cancellations" in names_of_aspects(getattr(options, "without", None)):
        return "recorded"
    # a command that simulates nothing has no such option
    chosen = getattr(options, "cancelled", "recorded")
    return str(chosen or ("wait" if accounting else "recorded"))


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
    from gridsched.workloads import clock

    return clock.moment(seconds, workload.unix_start_time, workload.time_zone)

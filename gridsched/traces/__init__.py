"""Logs of parallel jobs, from the file to a workload that can be simulated.

`read_swf` and `write_swf` know the Standard Workload Format; `fetch` gets a verified log of the Parallel
Workloads Archive, which `registry` and `find_log` describe; `read_sacct` and `read_accounting` know what
Slurm's accounting prints; `clean` leaves out and repairs jobs, with
counts; `select_window` takes a month (`by_month`, `months`), the first months (`by_first_months`), an
interval (`by_interval`) or a number of jobs (`by_count`) of a log.
"""

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.traces.archive import ArchiveLog, archive_folder, fetch, find_log, registry
    from gridsched.traces.cleaning import clean
    from gridsched.traces.merging import merge_workloads
    from gridsched.traces.sacct import AccountingLog, read_accounting, read_sacct
    from gridsched.traces.swf import read_swf, write_swf
    from gridsched.traces.windows import (
        by_count,
        by_first_months,
        by_interval,
        by_month,
        months,
        select_window,
    )

_HOMES: dict[str, str] = {
    "AccountingLog": "gridsched.traces.sacct",
    "ArchiveLog": "gridsched.traces.archive",
    "archive_folder": "gridsched.traces.archive",
    "by_count": "gridsched.traces.windows",
    "by_first_months": "gridsched.traces.windows",
    "by_interval": "gridsched.traces.windows",
    "by_month": "gridsched.traces.windows",
    "clean": "gridsched.traces.cleaning",
    "fetch": "gridsched.traces.archive",
    "find_log": "gridsched.traces.archive",
    "merge_workloads": "gridsched.traces.merging",
    "months": "gridsched.traces.windows",
    "read_accounting": "gridsched.traces.sacct",
    "read_sacct": "gridsched.traces.sacct",
    "read_swf": "gridsched.traces.swf",
    "registry": "gridsched.traces.archive",
    "select_window": "gridsched.traces.windows",
    "write_swf": "gridsched.traces.swf",
}

__all__ = [
    "AccountingLog",
    "ArchiveLog",
    "archive_folder",
    "by_count",
    "by_first_months",
    "by_interval",
    "by_month",
    "clean",
    "fetch",
    "find_log",
    "merge_workloads",
    "months",
    "read_accounting",
    "read_sacct",
    "read_swf",
    "registry",
    "select_window",
    "write_swf",
]

__getattr__, __dir__ = attach(__name__, _HOMES)

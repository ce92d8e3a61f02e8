"""Reading tables of jobs that sites make from Slurm's accounting and publish: CSV or Parquet, a row a job.

What is a job, and the treatment of the others, is as in `gridsched.traces.sacct`, with which this module
shares all but the reading. The columns are those of the jobs of Eagle, a cluster of a national laboratory;
columns that are not named here are left aside:

- *job_id*: a number, perhaps with _ and the number of an array task behind it. Each row is a job: rows of the
  same number are the tasks of an array, even where they are equal in everything.
- *submit_time, start_time, end_time*: what the clock of the site showed, or Unix times; a job without a start
  never ran. There is end_time, or run_time [s], or both.
- *state*: as Slurm names it.
- *processors_req, nodes_req, gpus_req, mem_req* [MiB]: of the whole job; memory of 0 is not known.
- *wallclock_req* [s]: the requested time.
- *user, account, partition, qos*: names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import TraceError, check_choice
from gridsched.traces._slurm_values import UNKNOWN_TIME, leading_numbers, parse_state
from gridsched.traces._tables import Table, read_table
from gridsched.traces.sacct import AccountingLog, Cancelled, Records, Unit, log_of, zone_of
from gridsched.workloads.table import UNKNOWN

__all__ = ["read_slurm_table"]

_NEEDED = ("job_id", "submit_time", "start_time", "state")
_ALSO = (
    "end_time",
    "run_time",
    "processors_req",
    "nodes_req",
    "gpus_req",
    "mem_req",
    "wallclock_req",
    "user",
    "account",
    "partition",
    "qos",
)
_SIZES: dict[Unit, str] = {"cpus": "processors_req", "nodes": "nodes_req"}
_NAMED = {"user": "user", "group": "account", "partition": "partition", "queue": "qos"}
"""Columns of the workload whose numbers stand for names, and the columns here that have the names."""

_KIB_PER_MIB = 1024


def read_slurm_table(
    path: str | os.PathLike[str],
    *,
    time_zone: str | None = None,
    unit: Unit = "cpus",
    cancelled: Cancelled = "recorded",
    name: str | None = None,
    max_bytes: int | None = None,
) -> AccountingLog:
    """Read a table of Slurm jobs, one row a job, with names and all that the jobs asked for.

    Parameters
    ----------
    path : path-like
        CSV, plain or compressed, or Parquet where the name ends in .parquet.
    time_zone : str, optional
        IANA name of the site's zone; without it the times are read as if they were UTC.
    unit : {"cpus", "nodes"}
        What a processor of the workload is.
    cancelled : {"recorded", "wait"}
        Treatment of jobs that were cancelled before they started, see `read_accounting`.
    name : str, optional
        Name of the workload; the file name without suffixes if not given.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Returns
    -------
    AccountingLog
        Jobs that ran, in order of submission, and those that were cancelled before, where they are asked for.
        Sizes are those that were asked for, GPUs too, since the table has no others. Other jobs that never
        started are counted in `left_out` of the workload.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, or a value is none; the message names the line.
    ConfigurationError
        If the time zone, the unit or `cancelled` is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> import pandas as pd
    >>> table = pd.DataFrame(
    ...     {
    ...         "job_id": [1, 2],
    ...         "submit_time": ["2024-05-06 10:00:00", "2024-05-06 11:00:00"],
    ...         "start_time": ["2024-05-06 10:00:30", "2024-05-06 11:10:00"],
    ...         "run_time": [60, 90],
    ...         "state": "COMPLETED",
    ...         "processors_req": [4, 8],
    ...         "user": "ada",
    ...     }
    ... )
    >>> table.to_csv("jobs.csv", index=False)
    >>> log = gs.read_slurm_table("jobs.csv", time_zone="UTC")
    >>> log.workload.wait_time
    array([ 30, 600])
    """
    check_choice("unit", unit, get_args(Unit))
    check_choice("cancelled", cancelled, get_args(Cancelled))
    file, zone = Path(path), zone_of(time_zone)
    table = read_table(file, needed=(*_NEEDED, _SIZES[unit]), also=_ALSO, max_bytes=max_bytes)
    if not {"end_time", "run_time"} & set(table.columns):
        raise TraceError(f"{file}:1: no column end_time, nor run_time; add one")
    columns, names = _columns(table)
    return log_of(
        Records(columns, names, zone, unit),
        file,
        cancelled=cancelled,
        name=table.name if name is None else name,
        time_zone=time_zone or "UTC",
        checksum=table.checksum,
    )


def _columns(table: Table) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
    """Columns as records of accounting have them, and the names that stand behind numbers."""
    identifiers = np.array([text.encode() for text in table.texts("job_id")], np.bytes_)
    numbers, digits = leading_numbers(identifiers)
    task = pd.Series(identifiers).groupby(identifiers).cumcount().to_numpy(np.int64)
    alike = np.asarray(pd.Series(identifiers).duplicated(keep=False))
    wrong = (digits == 0) | (np.char.find(identifiers, b".") >= 0)
    if wrong.any():
        problem = "no job ID such as 123 or 123_4; fix this line, or leave out the steps of jobs"
        raise table.mistake(int(np.argmax(wrong)), "job_id", problem)
    columns: dict[str, NDArray[Any]] = {
        "line": np.asarray(table.lines),
        "identifier": identifiers,
        "number": numbers,
        "unnamed task": task,
        "array task": alike | (np.char.find(identifiers, b"_") >= 0),
        "component": np.char.find(identifiers, b"+") >= 0,
    }
    for key in ("submit", "start", "end"):
        times = table.times(f"{key}_time")
        columns[key], columns[f"{key} local"] = times.seconds, times.local
    for key, column in (
        ("elapsed_seconds", "run_time"),
        ("limit", "wallclock_req"),
        ("requested_cpus", "processors_req"),
        ("requested_nodes", "nodes_req"),
        ("asked nodes", "nodes_req"),
        ("asked gpus", "gpus_req"),
        ("gpus", "gpus_req"),
    ):
        if column in table:
            columns[key] = table.wholes(column, missing=UNKNOWN_TIME)
    if "mem_req" in table:
        memory = table.numbers("mem_req", missing=0.0)
        if (memory < 0).any():
            problem = "no memory from 0 on [MiB]; fix this line"
            raise table.mistake(int(np.argmax(memory < 0)), "mem_req", problem)
        columns["asked memory"] = np.where(memory > 0, memory * _KIB_PER_MIB, UNKNOWN).astype(np.int64)
    names = {}
    for key, column in {"state": "state", **_NAMED}.items():
        if column in table:
            texts = table.texts(column)
            states = [parse_state(text) for text in texts] if key == "state" else texts
            columns[key], found = pd.factorize(np.array(states, object))
            names[key] = tuple(found.tolist())
    return columns, names

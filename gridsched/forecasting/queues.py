"""A queue from a table: who runs and since when, who waits, as ``squeue`` prints it or as a site has it."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridsched.errors import ConfigurationError, TraceError
from gridsched.forecasting.snapshot import RECORD, Snapshot, recorded_timeline
from gridsched.workloads.table import Workload

COLUMNS: dict[str, tuple[str, ...]] = {
    "job": ("job", "jobid"),
    "state": ("state", "st"),
    "elapsed": ("elapsed", "time"),
    "processors": ("processors", "cpus"),
    "time_limit": ("time_limit", "timelimit"),
    "user": ("user",),
    "waited": ("waited",),
}
"""Columns of a queue, with the names that they may have; the last two need not be there."""

_NEEDED = ("job", "state", "elapsed", "processors", "time_limit")
_RUNNING = frozenset({"r", "running", "cg", "completing", "cf", "configuring"})
_WAITING = frozenset({"pd", "pending"})
_CLOCK = re.compile(r"(?:(?:(\d{1,5})-)?(\d{1,5}):)?(\d{1,5}):(\d{2})", re.ASCII)
_DAYS_HOURS = re.compile(r"(\d{1,5})-(\d{1,2})", re.ASCII)
_STRANGER = -2
_WAITS = -(2**40)
"""Stands for the start of a job that waits while times are relative to now."""


def read_queue(
    table: pd.DataFrame | str | os.PathLike[str],
    processors: int,
    *,
    now: int | None = None,
    history: Workload | None = None,
    users: Sequence[str] = (),
) -> Snapshot:
    """The present queue of a cluster from a table of its jobs.

    Parameters
    ----------
    table : pandas.DataFrame or path
        One row a job, the waiting ones in order of the queue: columns job, state (running or pending, or as
        ``squeue`` writes them), elapsed (since the start), processors, time_limit, and if known user and
        waited (since the submission). Times are seconds or written like 1-02:03:04, as of Slurm. A file is
        CSV, or has its fields between ``|`` as those of ``squeue -o "%i|%T|%M|%C|%l|%u"``.
    processors : int
        Processors of the cluster.
    now : int, optional
        The time on the clock of the history, seconds. By default when its last job ended.
    history : Workload, optional
        A clean log with recorded waits, from which run times and jobs to come are drawn. Without it, run
        times are anywhere between 0 and the time limit, and no jobs come.
    users : sequence of str
        Names of the users of the history, in the order of their numbers; without them the queue has their
        numbers.

    Returns
    -------
    Snapshot
        The queue, for `gridsched.forecast`.

    Raises
    ------
    TraceError
        If a file cannot be read as a table, lacks a column, or a value is none; the line and column are
        named.
    ConfigurationError
        If the running jobs have more processors than there are, or a job is larger than the cluster.
    """
    named = "queue"
    if not isinstance(table, pd.DataFrame):
        named = str(table)
        table = _read(Path(table))
    rows, oldest = _rows(table, named, {name: number for number, name in enumerate(users)})
    past = np.empty(0, RECORD)
    instant = oldest if now is None else int(now)
    if history is not None:
        whole = recorded_timeline(history, processors)
        instant = int(whole.jobs["end"].max()) if now is None else int(now)
        before = whole.at(instant)
        past = before.past[before.finished]
    if instant < oldest:
        raise ConfigurationError(
            f"{named}: a job came {oldest} s ago, before time 0 of the clock; now is {instant}, give a "
            "later time"
        )
    rows["submit"] += instant
    rows["start"] += np.where(rows["start"] > _WAITS, instant, 0)
    rows["start"] = np.maximum(rows["start"], -1)
    too_large = np.flatnonzero(rows["processors"] > processors)
    if len(too_large):
        job = rows[too_large[0]]
        raise ConfigurationError(
            f"{named}: job {job['number']} has {job['processors']} processors, the cluster {processors}; "
            "say how many it has"
        )
    used = int(rows["processors"][rows["start"] >= 0].sum())
    if used > processors:
        raise ConfigurationError(
            f"{named}: {used} processors are in use, the cluster has {processors}; say how many it has"
        )
    together = np.concatenate([past, rows])
    return Snapshot(instant, processors, together[np.argsort(together["submit"], kind="stable")])


def _read(path: Path) -> pd.DataFrame:
    """Table of a file, all as text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise TraceError(f"{path}: is no text; give a table of the queue as CSV") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise TraceError(f"{path}: is empty; give a table of the queue with a line of column names")
    rows = list(csv.reader(lines, delimiter="|" if "|" in lines[0] else ","))
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise TraceError(
                f"{path}: row {number} has {len(row)} fields, the first one {len(rows[0])}; repair the table"
            )
    return pd.DataFrame(rows[1:], columns=[name.strip() for name in rows[0]])


def _rows(table: pd.DataFrame, named: str, users: dict[str, int]) -> tuple[Any, int]:
    """The jobs of a queue with times relative to now, and how long ago the first of them came."""
    columns = _columns(table, named)
    rows = np.zeros(len(table), RECORD)
    strangers: dict[str, int] = {}
    for place in range(len(table)):

        def value(key: str, place: int = place) -> Any:
            return table[columns[key]].iloc[place]

        def refused(key: str, remedy: str, place: int = place) -> TraceError:
            found = table[columns[key]].iloc[place]
            return TraceError(f"{named}: row {place + 1}, column {columns[key]}: found {found!r}; {remedy}")

        state = str(value("state")).strip().lower()
        if state not in _RUNNING | _WAITING:
            raise refused("state", "give RUNNING or PENDING, and leave out jobs that do neither")
        runs = state in _RUNNING
        times: dict[str, int] = {}
        for key in ("elapsed", "time_limit", "waited"):
            if key in columns and (key == "time_limit" or (key == "elapsed") == runs):
                seconds = _seconds(value(key))
                if seconds is None:
                    raise refused(key, "give seconds, or a time like 1-02:03:04")
                times[key] = seconds
        size = _whole(value("processors"))
        if not size:
            raise refused("processors", "give a whole number from 1 on")
        row = rows[place]
        row["number"] = _number(value("job"), place)
        row["start"] = -times["elapsed"] if runs else _WAITS
        row["submit"] = -(times["elapsed"] if runs else times.get("waited", 0))
        row["end"] = -1
        row["estimate"] = max(times["time_limit"], 1)
        row["processors"] = size
        row["user"] = _user(value("user"), users, strangers) if "user" in columns else -1
        row["group"] = row["queue"] = -1
    return rows, int(-rows["submit"].min(initial=0))


def _columns(table: pd.DataFrame, named: str) -> dict[str, str]:
    """Name in the table of each column that it has."""
    own = {str(name).strip().lower(): str(name) for name in table.columns}
    found = {key: own[name] for key, names in COLUMNS.items() for name in names if name in own}
    absent = [key for key in _NEEDED if key not in found]
    if absent:
        present = ", ".join(map(str, table.columns))
        raise TraceError(
            f"{named}: no column {', '.join(absent)} (it has {present:.200}); give "
            'the output of squeue -o "%i|%T|%M|%C|%l|%u"'
        )
    return found


def _seconds(value: Any) -> int | None:
    """Seconds of a number, or of a time as Slurm writes it."""
    text = str(value).strip()
    clock, days = _CLOCK.fullmatch(text), _DAYS_HOURS.fullmatch(text)
    if clock:
        parts = [int(part or 0) for part in clock.groups()]
        return ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]
    if days:
        return (int(days[1]) * 24 + int(days[2])) * 3600
    return _whole(value)


def _whole(value: Any) -> int | None:
    """Whole number from 0 on, of at most 9 digits."""
    text = str(value).strip().removesuffix(".0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _number(value: Any, place: int) -> int:
    """Number that the ID of a job begins with, as of a job array; that of its row if there is none."""
    digits = re.match(r"\d{1,18}", str(value).strip(), re.ASCII)
    return int(digits[0]) if digits else place + 1


def _user(value: Any, users: dict[str, int], strangers: dict[str, int]) -> int:
    """Number of a user; those whom the history does not know have negative ones."""
    text = str(value).strip()
    if text in users:
        return users[text]
    number = None if users else _whole(value)
    return strangers.setdefault(text, _STRANGER - len(strangers)) if number is None else number


def is_queue(path: Path) -> bool:
    """Whether the first line of a file names columns of a queue; an export of sacct has submit times too."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline(10_000).lower()
    except (OSError, UnicodeDecodeError):
        return False
    names = {name.strip() for name in first.split("|" if "|" in first else ",")}
    return "submit" not in names and all(names & set(COLUMNS[key]) for key in ("job", "state"))

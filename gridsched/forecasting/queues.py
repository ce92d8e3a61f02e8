"""A queue from a table: who runs and since when, who waits, as ``squeue`` prints it or as a site has it."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, TraceError
from gridsched.forecasting.snapshot import RECORD, Snapshot, recorded_places, recorded_timeline
from gridsched.nodes import seconds_on_clock
from gridsched.submission import check_clean
from gridsched.traces._slurm_values import parse_gpus, parse_memory, parse_nodes, per_processor
from gridsched.traces.cleaning import LONGEST_LIMIT, without_limit
from gridsched.workloads.clock import zone_or_utc
from gridsched.workloads.table import EXTRA_FIELDS, UNKNOWN, Workload, add_counts

_NO_NAMES: Mapping[str, Sequence[str]] = MappingProxyType({})

COLUMNS: dict[str, tuple[str, ...]] = {
    "job": ("job", "jobid"),
    "state": ("state", "st"),
    "elapsed": ("elapsed", "time"),
    "processors": ("processors", "cpus"),
    "time_limit": ("time_limit", "timelimit"),
    "user": ("user",),
    "partition": ("partition",),
    "queue": ("queue", "qos"),
    "waited": ("waited",),
    "submit_time": ("submit_time",),
    "reason": ("reason", "nodelist(reason)"),
    "priority": ("priority",),
    "tres": ("tres_alloc", "tres"),
    "constraint": ("features", "constraint"),
}
"""Columns of a queue, with the names that they may have; those from user on need not be there."""

_NEEDED = ("job", "state", "elapsed", "processors", "time_limit")
_NAMED = ("user", "partition", "queue", "constraint")
_ASKED = ("memory", "gpus", "nodes")
"""What the column of trackable resources gives: of the whole job, memory in KiB."""
_RUNNING = frozenset({"r", "running", "cg", "completing", "cf", "configuring"}) | {
    *("rs", "resizing", "si", "signaling", "so", "stage_out")
}
_WAITING = frozenset({"pd", "pending"})
_NEITHER = (
    " s suspended st stopped se special_exit rq requeued rf requeue_fed rh requeue_hold rd resv_del_hold "
    "ca cancelled cd completed f failed to timeout nf node_fail pr preempted bf boot_fail dl deadline "
    "oom out_of_memory rv revoked "
)
"""States, short and long, of jobs that neither run nor may start: forecasts leave them out."""
_NO_LIMIT = frozenset({"", "unlimited", "infinite", "not_set", "partition_limit", "invalid", "n/a"})
_NOTHING = frozenset({"", "(null)", "n/a", "none", "nan"})
_HELD = "held in the queue"
_BEYOND = "array tasks beyond the limit of their array"
_NOT_ELIGIBLE = {
    "jobhelduser": _HELD,
    "jobheldadmin": _HELD,
    "jobholdmaxrequeue": _HELD,
    "launchfailedrequeuedheld": _HELD,
    "dependency": "waiting for other jobs in the queue",
    "dependencyneversatisfied": "waiting for other jobs in the queue",
    "begintime": "to begin later in the queue",
    "jobarraytasklimit": _BEYOND,
    **dict.fromkeys(
        (
            "partitionnodelimit",
            "partitiontimelimit",
            "partitiondown",
            "partitioninactive",
            "badconstraints",
            "invalidaccount",
            "invalidqos",
        ),
        "refused by its partition or account, says the queue",
    ),
}
"""Reasons of squeue for which a job cannot start whatever is free, without blanks, and their names here."""
ELSEWHERE = "in another partition of the queue"
ONE_POOL = "partitions of the queue, taken as one pool"
OF_SEVERAL = "may start in several partitions, taken as of the first one"
_MOST_TASKS = 1_000_000
_TASKS = re.compile(r"(\d{1,18})_\[([\d,:.-]+)(?:%(\d{1,9}))?\]", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_CLOCK = re.compile(r"(?:(?:(\d{1,5})-)?(\d{1,5}):)?(\d{1,5}):(\d{2})", re.ASCII)
_DAYS_HOURS = re.compile(r"(\d{1,5})-(\d{1,2})", re.ASCII)
_STRANGER = -2
_ROW = np.dtype([*RECORD.descr, *((name, np.int64) for name in ("partition", "constraint", *_ASKED))])
"""A job of a queue; times are relative to now, and the start of one that waits is `_WAITS`."""
_WAITS = -(2**40)


@dataclass(frozen=True)
class _Queue:
    """Jobs of a table, what the table is called, and the jobs that were left out or changed, by reason."""

    rows: NDArray[np.void]
    named: str
    left_out: dict[str, int]
    repaired: dict[str, int]


def read_queue(
    table: pd.DataFrame | str | os.PathLike[str],
    processors: int,
    *,
    now: int | None = None,
    history: Workload | None = None,
    names: Mapping[str, Sequence[str]] = _NO_NAMES,
    partitions: Collection[str] = (),
) -> Snapshot:
    """The present queue of a cluster from a table of its jobs.

    Parameters
    ----------
    table : pandas.DataFrame or path
        One row a job, the waiting ones in order of the queue: columns job, state (running or pending, or as
        ``squeue`` writes them), elapsed (since the start), processors, time_limit, and if known user,
        partition, queue (the QOS), reason, priority, tres (like cpu=4,mem=8G,node=1,gres/gpu=2), constraint
        (features of nodes), and waited (since the submission) or submit_time. Times are seconds or written
        like 1-02:03:04, as of Slurm; submit_time is a date, or seconds on the clock of the history (without
        one, now is taken to be the last of them). A file is CSV, or has its fields between ``|`` as those of
        ``squeue -o "%i|%T|%M|%C|%l|%u|%P|%q|%V|%r|%Q"``.
        Jobs that cannot start are left out: held ones (reason, or priority 0), those that wait for others or
        begin later, array tasks beyond the limit of their array, and those larger than the cluster. A row of
        several array tasks is as many jobs. A job without a time limit has the longest one of queue and
        history, and one of several partitions is in the first of them that is read.
    processors : int
        Processors of the cluster.
    now : int, optional
        The time on the clock of the history, seconds. By default when its last job ended.
    history : Workload, optional
        A clean log with recorded waits, from which run times and jobs to come are drawn. Without it, run
        times are anywhere between 0 and the time limit, and no jobs come.
    names : mapping of str to sequence of str
        Names of users, partitions and queues of the history ("user", "partition", "queue"), in the order of
        their numbers; without them the table has their numbers.
    partitions : collection of str
        Partitions of the table whose jobs are read; all if empty.

    Returns
    -------
    Snapshot
        The queue, for `gridsched.forecast`, with counts of the jobs that were left out or changed.

    Raises
    ------
    TraceError
        If a file cannot be read as a table, lacks a column, or a value is none; the line and column are
        named.
    ConfigurationError
        If the running jobs have more processors than there are.

    Examples
    --------
    >>> import gridsched as gs
    >>> import pandas as pd
    >>> queue = pd.DataFrame(
    ...     {
    ...         "job": [1, 2],
    ...         "state": ["RUNNING", "PENDING"],
    ...         "elapsed": ["1:00:00", "0:00"],
    ...         "processors": [48, 32],
    ...         "time_limit": ["8:00:00", "2:00:00"],
    ...     }
    ... )
    >>> present = gs.forecasting.read_queue(queue, 64)
    >>> gs.forecast(present, futures=10).start.sizes["job"]
    1
    """
    if history is not None:
        log = continue_log(history, table, processors, now=now, names=names, partitions=partitions)
        instant = recorded_timeline(history, processors).last_end if now is None else int(now)
        made = recorded_timeline(log, processors).at(instant)
        return replace(made, left_out=log.left_out, repaired=log.repaired)
    queue = _checked(table, processors, names, partitions)
    rows = queue.rows
    instant = int(-rows["submit"].min(initial=0)) if now is None else int(now)
    _check_clock(queue, instant)
    rows["submit"] += instant
    rows["start"] = np.where(rows["start"] > _WAITS, np.maximum(rows["start"] + instant, -1), -1)
    past = rows[list(RECORD.names or ())].astype(RECORD)
    past = past[np.argsort(past["submit"], kind="stable")]
    return Snapshot(instant, processors, past, left_out=queue.left_out, repaired=queue.repaired)


def continue_log(
    history: Workload,
    table: pd.DataFrame | str | os.PathLike[str],
    processors: int,
    *,
    now: int | None = None,
    names: Mapping[str, Sequence[str]] = _NO_NAMES,
    partitions: Collection[str] = (),
) -> Workload:
    """A log that goes on with the present queue.

    Forecasts of it are corrected by the outcomes of earlier ones (`adjust` of `gridsched.forecast`), and a
    present policy can be fitted to it (`gridsched.forecasting.calibrate`).

    Parameters
    ----------
    history : Workload
        A clean log with recorded waits. Its jobs that have not ended now are left out, since those of the
        queue are in the table.
    table, processors, now, names, partitions
        As of `read_queue`.

    Returns
    -------
    Workload
        Finished jobs of the history and those of the queue, in order of submission. A job that runs has its
        time limit as run time, or a second more than it has run; a job that waits starts a second after now.
        Neither is known now, so that no forecast and no fit of this time uses them. Counts of the jobs of the
        queue that were left out or changed are added to those of the history.

    Raises
    ------
    TraceError, ConfigurationError
        As of `read_queue`.
    WorkloadError
        If the history is not clean, or has no recorded waits.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=400, seed=1, load_scale=1.5)
    >>> gs.write_swf(gs.simulate(jobs, scheduler="easy"), "log.swf")
    >>> import pandas as pd
    >>> log = gs.clean(gs.read_swf("log.swf"))
    >>> queue = pd.DataFrame(
    ...     {
    ...         "job": [1, 2],
    ...         "state": ["RUNNING", "PENDING"],
    ...         "elapsed": ["1:00:00", "0:00"],
    ...         "processors": [48, 32],
    ...         "time_limit": ["8:00:00", "2:00:00"],
    ...     }
    ... )
    >>> longer = gs.forecasting.continue_log(log, queue, 1152, now=200_000)
    >>> len(longer) - len(log)
    2
    """
    check_clean(history)
    instant = recorded_timeline(history, processors).last_end if now is None else int(now)
    zone = zone_or_utc(history.time_zone)

    def since(text: str) -> int:
        return instant - seconds_on_clock(text, "submit_time", history.unix_start_time, zone)

    requested = history.requested_time[~without_limit(history)]
    queue = _checked(table, processors, names, partitions, since, int(requested.max(initial=0)))
    rows = queue.rows
    _check_clock(queue, instant)
    kept = recorded_places(history, processors)
    kept = kept[recorded_ends(history)[kept] <= instant]
    waits = rows["start"] == _WAITS
    ran = np.where(waits, 0, -rows["start"])
    columns = {
        "job_number": rows["number"],
        "submit_time": rows["submit"] + instant,
        "wait_time": np.where(waits, 1, rows["start"]) - rows["submit"],
        "run_time": np.where(waits, rows["estimate"], np.maximum(rows["estimate"], ran + 1)),
        "requested_processors": rows["processors"],
        "requested_time": rows["estimate"],
        **{name: rows[name] for name in ("user", "group", "queue", "partition", "constraint")},
        "requested_memory": per_processor(rows["memory"], rows["processors"]),
        "requested_gpus": rows["gpus"],
        "requested_nodes": rows["nodes"],
    }
    unknown = np.full(len(kept), UNKNOWN)
    before = {name: getattr(history, name) for name in columns}
    past = {name: unknown if column is None else column[kept] for name, column in before.items()}
    past["requested_processors"] = history.processors[kept]
    together = {name: np.concatenate([past[name], columns[name]]) for name in columns}
    order = np.argsort(together["submit_time"], kind="stable")
    in_order: dict[str, Any] = {
        name: column[order].astype(np.int64)
        for name, column in together.items()
        if name not in EXTRA_FIELDS or (column != UNKNOWN).any()
    }
    return Workload(
        name=history.name,
        processors_available=history.processors_available,
        unix_start_time=history.unix_start_time,
        time_zone=history.time_zone,
        acknowledgement=history.acknowledgement,
        left_out=add_counts(history.left_out, queue.left_out),
        repaired=add_counts(history.repaired, queue.repaired),
        **in_order,
    )


def recorded_ends(history: Workload) -> NDArray[np.int64]:
    """Recorded end of each job of a log [s]."""
    return np.asarray(history.submit_time + np.maximum(history.wait_time, 0) + history.run_time, np.int64)


def _checked(
    table: pd.DataFrame | str | os.PathLike[str],
    processors: int,
    names: Mapping[str, Sequence[str]],
    partitions: Collection[str],
    since: Callable[[str], int] | None = None,
    longest: int = 0,
) -> _Queue:
    """Jobs of a table that the cluster can hold, with times relative to now; `longest` is a limit [s]."""
    named = "queue"
    if not isinstance(table, pd.DataFrame):
        named = str(table)
        table = _read(Path(table))
    queue = _rows(table, named, names, partitions, since or _since_the_last(table))
    rows = queue.rows
    endless = rows["estimate"] < 0
    if endless.any():
        limit = max(longest, int(rows["estimate"].max())) if longest or not endless.all() else LONGEST_LIMIT
        rows["estimate"][endless] = limit
        queue.repaired[f"no time limit in the queue, taken as {limit:,} s"] = int(endless.sum())
    waits = rows["start"] == _WAITS
    used = int(rows["processors"][~waits].sum())
    if used > processors:
        raise ConfigurationError(
            f"{named}: {used} processors are in use, the cluster has {processors}; say how many it has"
        )
    too_large = waits & (rows["processors"] > processors)
    why = {f"larger than the {processors:,} processors there are": int(too_large.sum())}
    return replace(queue, rows=rows[~too_large], left_out=add_counts(queue.left_out, why))


def _check_clock(queue: _Queue, now: int) -> None:
    """Refuse a time at which the first job of the queue had not come yet."""
    oldest = int(-queue.rows["submit"].min(initial=0))
    if now < oldest:
        raise ConfigurationError(
            f"{queue.named}: a job came {oldest} s ago, before time 0 of the clock; now is {now}, give a "
            "later time"
        )


def _read(path: Path) -> pd.DataFrame:
    """Table of a file, all as text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise TraceError(f"{path}: is no text; give a table of the queue as CSV") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise TraceError(f"{path}: is empty; give a table of the queue with a line of column names")
    delimiter = "|" if "|" in lines[0] else ","
    rows = list(csv.reader(lines, delimiter=delimiter))
    width = len(rows[0])
    if delimiter == "|" and rows[0][-1].strip().lower() in COLUMNS["constraint"]:
        # squeue quotes nothing, and constraints have this character, too
        rows = [[*row[: width - 1], "|".join(row[width - 1 :])] if len(row) > width else row for row in rows]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise TraceError(
                f"{path}: row {number} has {len(row)} fields, the first one {len(rows[0])}; repair the table"
            )
    return pd.DataFrame(rows[1:], columns=[name.strip() for name in rows[0]])


def _since_the_last(table: pd.DataFrame) -> Callable[[str], int]:
    """How many seconds a date was before the last submission of a table, which is now without a clock."""
    zone = zone_or_utc(None)

    def seconds(text: str) -> int:
        return seconds_on_clock(text, "submit_time", 0, zone)

    last = 0
    for name in table.columns:
        if str(name).strip().lower() in COLUMNS["submit_time"]:
            for text in table[name].astype(str).str.strip():
                with suppress(ConfigurationError):
                    last = max(last, seconds(text))
    return lambda text: last - seconds(text)


def _rows(
    table: pd.DataFrame,
    named: str,
    names: Mapping[str, Sequence[str]],
    partitions: Collection[str],
    since: Callable[[str], int],
) -> _Queue:
    """The jobs of a queue with times relative to now; `since` is how many seconds ago a date was.

    The estimate of a job without time limit is -1.
    """
    columns = _columns(table, named)
    if partitions and "partition" not in columns:
        raise TraceError(f"{named}: no column partition; print it with %P, or name no partition")
    rows = np.zeros(len(table), _ROW)
    why = np.full(len(table), "", object)
    tasks, most = np.ones(len(table), np.int64), np.full(len(table), -1)
    also, several = np.zeros((2, len(table)), np.bool_)
    labels = {name: _Labels(names.get(name, ())) for name in _NAMED}
    for place in range(len(table)):

        def value(key: str, place: int = place) -> Any:
            return table[columns[key]].iloc[place]

        def refused(key: str, remedy: str, place: int = place) -> TraceError:
            found = table[columns[key]].iloc[place]
            return TraceError(f"{named}: row {place + 1}, column {columns[key]}: found {found!r}; {remedy}")

        state = str(value("state")).strip().lower()
        if state and f" {state} " in _NEITHER:
            why[place] = f"neither running nor pending ({str(value('state')).strip()})"
            continue
        if state not in _RUNNING | _WAITING:
            raise refused("state", "give a state of squeue, such as RUNNING or PENDING")
        runs = state in _RUNNING
        times: dict[str, int] = {}
        for key in ("elapsed", "time_limit", "waited"):
            if key in columns and (key == "time_limit" or (key == "elapsed") == runs):
                seconds = _limit(value(key)) if key == "time_limit" else _seconds(value(key))
                if seconds is None:
                    raise refused(key, "give seconds, or a time like 1-02:03:04")
                times[key] = seconds
        ago = times["elapsed"] if runs else times.get("waited", 0)
        if "submit_time" in columns:
            try:
                submitted = since(str(value("submit_time")).strip())
            except ConfigurationError:
                raise refused("submit_time", "give a date like 2024-05-01T10:00:00") from None
            if submitted < 0:
                raise refused("submit_time", "that is later than now; give the time of the queue (--at)")
            ago = max(ago, submitted)
        size = _whole(value("processors"))
        if not size:
            raise refused("processors", "give a whole number from 1 on")
        row = rows[place]
        row["number"] = _number(value("job"), place)
        row["start"] = -times["elapsed"] if runs else _WAITS
        row["submit"] = -ago
        row["end"] = -1
        row["estimate"] = times["time_limit"] or 1
        row["processors"] = row["requested"] = size
        row["group"] = -1
        mine = [name.strip() for name in str(value("partition")).split(",")] if "partition" in columns else []
        inside = [name for name in mine if name in partitions] if partitions else mine
        for name in _NAMED:
            row[name] = labels[name].number(value(name)) if name in columns else -1
        if inside:
            row["partition"] = labels["partition"].number(inside[0])
        if "constraint" in columns and str(value("constraint")).strip().lower() in _NOTHING:
            row["constraint"] = -1
        row["gpus"] = row["nodes"] = row["memory"] = UNKNOWN
        if "tres" in columns:
            tres = str(value("tres")).strip().encode()
            memory = parse_memory(tres)
            if memory is None:
                raise refused("tres", "give resources like cpu=4,mem=8G,node=1,gres/gpu=2")
            row["gpus"], row["nodes"] = parse_gpus(tres) or UNKNOWN, parse_nodes(tres)
            row["memory"] = memory
        told = {key: str(value(key)).strip().lower() for key in ("reason", "priority") if key in columns}
        also[place] = len(inside) < len(mine) and not runs
        several[place] = len(inside) > 1 and not runs
        if partitions and not inside:
            why[place] = ELSEWHERE
        elif not runs:
            reason = re.sub(r"[\s()_]", "", told.get("reason", ""))
            why[place] = _NOT_ELIGIBLE.get(reason, _HELD if _is_zero(told.get("priority", "")) else "")
            tasks[place], most[place] = _array_tasks(str(value("job")).strip())
            if tasks[place] > _MOST_TASKS:
                raise refused("job", f"give at most {_MOST_TASKS:,} tasks in a row")
    waits, there = rows["start"] == _WAITS, np.flatnonzero(why != ELSEWHERE)
    identifiers = table[columns["job"]].astype(str).str.strip()
    why[there[_listed_before(identifiers.iloc[there], waits[there])]] = "listed twice in the queue"
    keep = why == ""
    array = np.unique(rows["number"], return_inverse=True)[1].reshape(-1)
    running = np.bincount(array, weights=keep & ~waits)[array] if len(rows) else 0
    may_start = np.where(most < 0, tasks, np.clip(most - running, 0, tasks)).astype(np.int64)
    asked = table[columns["partition"]][keep] if "partition" in columns else ()
    chosen = {name.strip() for text in asked for name in str(text).split(",")}
    used = len(chosen.intersection(partitions) if partitions else chosen)
    cut = keep & identifiers.str.contains("...", regex=False).to_numpy(bool)
    left_out = {str(reason): int(tasks[why == reason].sum()) for reason in dict.fromkeys(why[~keep])}
    left_out[_BEYOND] = left_out.get(_BEYOND, 0) + int((tasks - may_start)[keep].sum())
    repaired = {
        "lists of array tasks cut short, set SLURM_BITSTR_LEN=0": int(cut.sum()),
        "array tasks in one row of the queue": int(may_start[keep & (tasks != 1)].sum()),
        "may start in a partition that is not forecast here too": int(may_start[keep & also].sum()),
        OF_SEVERAL: int(may_start[keep & several].sum()),
        f"in {used} {ONE_POOL}": int(used > 1) * int(may_start[keep].sum()),
    }
    rows = np.repeat(rows[keep], may_start[keep])
    return _Queue(rows, named, add_counts({}, left_out), add_counts({}, repaired))


def _listed_before(identifiers: pd.Series, waits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows of a job that has another row, which comes first, or says that it runs."""
    order = np.argsort(waits, kind="stable")
    texts = identifiers.iloc[order]
    repeated = np.zeros(len(identifiers), np.bool_)
    repeated[order] = texts.duplicated() & ~texts.str.lower().isin(("", "nan", "none", "<na>"))
    return repeated


def _array_tasks(identifier: str) -> tuple[int, int]:
    """Tasks that a row names, and how many of them may run at once; -1 for any number."""
    match = _TASKS.fullmatch(identifier)
    if match is None:
        return 1, -1
    count = 0
    for part in filter(None, match[2].split(",")):
        span = _RANGE.fullmatch(part)
        if span:
            first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
            count += max(0, (last - first) // max(step, 1) + 1)
    return max(count, 1), -1 if match[3] is None else int(match[3])


def _is_zero(text: str) -> bool:
    """Whether a priority is none; text that is no number says nothing."""
    return bool(re.fullmatch(r"0+(\.0*)?", text))


def _limit(value: Any) -> int | None:
    """Seconds of a time limit; -1 if there is none, or one that is longer than any."""
    text = str(value).strip().lower()
    seconds = _seconds(value)
    if text in _NO_LIMIT or (seconds or 0) > LONGEST_LIMIT or re.fullmatch(r"\d{10,}", text, re.ASCII):
        return -1
    return seconds


def _columns(table: pd.DataFrame, named: str) -> dict[str, str]:
    """Name in the table of each column that it has."""
    own = {str(name).strip().lower(): str(name) for name in table.columns}
    found = {key: own[name] for key, names in COLUMNS.items() for name in names if name in own}
    absent = [key for key in _NEEDED if key not in found]
    if absent and own.keys() & (_RUNNING | _WAITING):
        raise TraceError(
            f"{named}: the first row is a job; give a row with the names of the columns before it, as squeue "
            "prints it without --noheader"
        )
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


class _Labels:
    """Numbers of names; those that the history does not know have negative ones."""

    def __init__(self, names: Sequence[str]) -> None:
        self._known = {name: number for number, name in enumerate(names)}
        self._strangers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        """Number of a name, or of what is a number itself where the history has no names."""
        text = str(value).strip()
        if text in self._known:
            return self._known[text]
        number = None if self._known else _whole(value)
        return (
            self._strangers.setdefault(text, _STRANGER - len(self._strangers)) if number is None else number
        )


def column_in(path: Path, key: str) -> list[str]:
    """Texts of a column, a key of `COLUMNS`, of a queue in a file, one a row; none without such a column."""
    table = _read(path)
    column = _columns(table, str(path)).get(key)
    return [] if column is None else table[column].str.strip().tolist()


def constraints_in(path: Path) -> list[str]:
    """Constraints that a queue in a file names, each once."""
    return [text for text in dict.fromkeys(column_in(path, "constraint")) if text.lower() not in _NOTHING]


def is_queue(path: Path) -> bool:
    """Whether the first line of a file names columns of a queue; an export of sacct has submit times too."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline(10_000).lower()
    except (OSError, UnicodeDecodeError):
        return False
    # columns that blanks separate, as squeue has them by default, are refused as those of a queue
    separator = next((each for each in "|," if each in first), None)
    fields = [name.strip() for name in first.split(separator)]
    names = set(fields)
    if len(fields) >= len(_NEEDED) and names & (_RUNNING | _WAITING) and not first.startswith(";"):
        return True  # without names of columns, and refused as such
    return "submit" not in names and all(names & set(COLUMNS[key]) for key in ("job", "state"))

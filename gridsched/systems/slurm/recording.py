"""Schedules that a real Slurm controller made: what was submitted, when it worked, and what it started."""

from __future__ import annotations

import csv
import gzip
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import TraceError
from gridsched.systems.slurm.controller import BACKFILL, MAIN
from gridsched.systems.slurm.hostlist import expand_hosts

Integers = NDArray[np.int64]

_LINE = re.compile(r"\[(\S+)\] (.*)")
_PRIORITY = re.compile(r"Job (\d+) priority: .* = ([\d.]+)")
_INITIAL = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)")


@dataclass(frozen=True, kw_only=True)
class RecordedJob:
    """A job of a recording; times in milliseconds of Unix time, the limit in seconds."""

    number: int
    name: str
    user: str
    account: str
    partition: str
    qos: str
    nodes: int
    cores: int
    memory: int
    gpus: int
    limit: int
    submit: int
    start: int
    end: int
    by: int
    where: tuple[str, ...]
    initial_priority: float


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What a controller did.

    Parameters
    ----------
    folder : Path
        Where it was read.
    jobs : list of RecordedJob
        In order of submission.
    passes : list of (int, int)
        Instant [ms] and kind of each pass.
    priorities : list of (int, int, float)
        Instant [ms], number of a job, and the priority that it was given.
    priorities_since : int, optional
        Instant [ms] at which priority/multifactor began; it calculates all priorities each period from then.
    """

    folder: Path
    jobs: list[RecordedJob]
    passes: list[tuple[int, int]]
    priorities: list[tuple[int, int, float]]
    priorities_since: int | None = None


def milliseconds(stamp: str) -> int:
    """Unix time of a time stamp of a log, which names no time zone and is in UTC."""
    moment = datetime.fromisoformat(stamp)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def read_recording(folder: str | Path) -> Recording:
    """Read `outcome.csv`, `slurmctld.log` or `.gz` and, if there is one, `submissions.csv` of a folder.

    Raises
    ------
    TraceError
        If a file or a column is missing.
    """
    folder = Path(folder)
    asked = {row["jobid"]: row for row in _rows(folder / "submissions.csv", missing_ok=True)}
    passes: list[tuple[int, int]] = []
    priorities: list[tuple[int, int, float]] = []
    since = None
    for stamp, text in _log_lines(folder):
        if "Running job scheduler for" in text:
            passes.append((milliseconds(stamp), MAIN))
        elif "_attempt_backfill: beginning" in text:
            passes.append((milliseconds(stamp), BACKFILL))
        elif "Priority MULTIFACTOR plugin loaded" in text:
            since = milliseconds(stamp)
        elif found := _PRIORITY.search(text) or _INITIAL.search(text):
            priorities.append((milliseconds(stamp), int(found[1]), float(int(float(found[2])))))
    jobs = []
    for row in _rows(folder / "outcome.csv"):
        try:
            jobs.append(_job_of(row, asked.get(row["jobid"], {})))
        except (KeyError, ValueError) as error:
            raise TraceError(f"{folder / 'outcome.csv'}: job {row.get('jobid')}: {error!r}") from None
    jobs.sort(key=lambda job: (job.submit, job.number))
    return Recording(folder=folder, jobs=jobs, passes=passes, priorities=priorities, priorities_since=since)


def _job_of(row: dict[str, str], asked: dict[str, str]) -> RecordedJob:
    start = _instant(row["start_ms"], -1)
    return RecordedJob(
        number=int(row["jobidraw"]),
        name=row.get("name") or row["jobid"],
        user=row.get("user", ""),
        account=row.get("account", ""),
        partition=row.get("partition", ""),
        qos=row.get("qos", ""),
        nodes=int(row["nnodes"]),
        cores=int(asked.get("cpus_per_task") or 0),
        memory=int(asked.get("mem_mb") or 0),
        gpus=int(asked.get("gpus") or 0),
        limit=60 * int(row["time_limit_min"]),
        submit=_instant(row["submit_ms"], -1),
        start=start,
        # a job that was cut at the end of the recording was to run as long as planned
        end=_instant(row["done_ms"], start + _instant(row.get("planned_runtime", ""), 0)),
        by=BACKFILL if row.get("by") == "backfill" else MAIN,
        where=tuple(expand_hosts(row["nodelist"])) if start >= 0 else (),
        initial_priority=float(row.get("prio_submit") or 0),
    )


def _instant(text: str, otherwise: int) -> int:
    return round(float(text) * 1000) if text else otherwise


def _rows(path: Path, *, missing_ok: bool = False) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            return []
        raise TraceError(f"{path}: cannot be read ({error})") from None


def _log_lines(folder: Path) -> list[tuple[str, str]]:
    """Time stamps and texts of the controller's log."""
    for name, opener in (("slurmctld.log.gz", gzip.open), ("slurmctld.log", open)):
        if (folder / name).exists():
            with opener(folder / name, "rt", encoding="utf-8", errors="replace") as file:
                return [(found[1], found[2]) for line in file if (found := _LINE.match(line))]
    raise TraceError(f"{folder}: no slurmctld.log or slurmctld.log.gz; keep the controller's log")

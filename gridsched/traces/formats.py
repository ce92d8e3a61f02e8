"""Which format a log has, recognised by its first line; the columns of each are in docs/formats.md."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Literal

from gridsched.errors import TraceError
from gridsched.traces._delimited import read_lines, without_mark
from gridsched.traces._tables import parquet_columns
from gridsched.traces.sacct import is_sacct

__all__ = ["FORMATS", "FormatName", "recognise"]

FormatName = Literal["swf", "sacct", "slurm-table", "gpu-pods", "gpu-jobs", "batsim"]

FORMATS: dict[FormatName, str] = {
    "swf": "logs in the Standard Workload Format",
    "sacct": "exports of sacct",
    "slurm-table": "tables of Slurm jobs",
    "gpu-pods": "lists of pods with GPUs",
    "gpu-jobs": "tables of GPU jobs",
    "batsim": "workloads of Batsim",
}
"""Formats of logs by name, in words."""

_TABLES: dict[FormatName, set[str]] = {
    "slurm-table": {"job_id", "submit_time", "start_time", "state"},
    "gpu-pods": {"cpu_milli", "num_gpu", "gpu_milli"},
    "gpu-jobs": {"timestamp", "duration", "num_gpus"},
}
"""Columns by which a table is known."""


def recognise(path: str | os.PathLike[str]) -> FormatName:
    """Format of a log; the Standard Workload Format where it is none of the others.

    Raises
    ------
    TraceError
        If it is a Parquet file with columns of no known table, or pyarrow is not installed.
    """
    file = Path(path)
    is_parquet = file.suffix.lower() == ".parquet"
    columns = parquet_columns(file) if is_parquet else _columns(file)
    if any(name.startswith("{") for name in columns):
        return "batsim"
    for name, needed in _TABLES.items():
        if needed <= columns:
            return name
    if is_parquet:
        found = ", ".join(sorted(columns))
        raise TraceError(f"{file}: a table of no known format ({found:.300}); see docs/formats.md")
    return "sacct" if is_sacct(file) else "swf"


def _columns(file: Path) -> set[str]:
    """Lower-case names in the first line of a file, as if it were a CSV table; none if it cannot be read."""
    try:
        _, text = next(read_lines(file, None, hashlib.sha256()))
    except (StopIteration, TraceError):
        return set()
    first = without_mark(text)[:4096].partition(b"\n")[0].decode("latin-1")
    return {name.strip().strip('"').lower() for name in first.split(",")}

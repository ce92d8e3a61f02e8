"""Small logs for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gridsched.workloads.table import Workload

HEADER = """\
; Version: 2.2
; Computer: Abacus
; Acknowledge: Ada
;   acknowledge: Charles
; MaxNodes: 32 (dual)
;   MaxProcs: 64 (2, 62)
; UnixStartTime: 843480031
;TimeZone: -18000
;TimeZoneString: Europe/Stockholm  # CET
;
"""
JOB = "1 0 5 10 4 9 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1"


def job_line(**fields: object) -> str:
    """A job line with some of its first five fields, or its status, replaced."""
    values: dict[str, object] = dict(
        zip(("number", "submit", "wait", "run", "size"), JOB.split()[:5], strict=True)
    )
    values.update(fields)
    return " ".join([*map(str, values.values()), *JOB.split()[5:]])


def write(folder: Path, text: str | bytes, name: str = "log.swf") -> Path:
    """File with this content."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def workload(**changes: Any) -> Workload:
    """Workload of as many jobs as the submit times, each of one processor for 10 s, unless said otherwise."""
    jobs = len(changes.get("submit_time", range(4)))
    columns: dict[str, Any] = {
        "name": "example",
        "submit_time": np.arange(jobs),
        "run_time": np.full(jobs, 10),
        "requested_processors": np.ones(jobs, np.int64),
    }
    columns.update({k: np.asarray(v) if isinstance(v, list) else v for k, v in changes.items()})
    return Workload(**columns)

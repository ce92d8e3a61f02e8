"""Datasets as files: written whole or not at all, with a sidecar that says how this copy was made."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.io import atomic_write


def write(dataset: xr.Dataset, target: str | Path) -> None:
    """Write a dataset and, before it, its sidecar: the dataset is what says that a stage is done."""
    with atomic_write(sidecar(target)) as temporary:
        temporary.write_text(json.dumps(_circumstances(), indent=1) + "\n", encoding="utf-8")
    results.write(dataset, target)


def write_table(table: pd.DataFrame, target: str | Path) -> None:
    """Write a table as CSV."""
    with atomic_write(target) as temporary:
        table.to_csv(temporary, index=False)


def sidecar(target: str | Path) -> Path:
    """File beside a dataset that says how this copy was made."""
    return Path(target).with_suffix(".made.json")


def _circumstances() -> dict[str, str]:
    """What may differ between two executions of the same stage."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "command": " ".join(sys.argv),
        "commit": _commit(),
    }


def _commit() -> str:
    """Commit of the checkout that gridsched runs from, if it is one."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return answer.stdout.strip()

"""Datasets as files: written whole or not at all, with a sidecar that says how this copy was made.

The sidecar has the checksum of its dataset, which `results.read` looks at: damage is found before it spreads.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.io import atomic_write, checksum
from gridsched.results import sidecar as sidecar


def write(dataset: xr.Dataset, target: str | Path) -> None:
    """Write a dataset and, before it, its sidecar: the dataset is what says that a stage is done."""

    def write_sidecar(written: Path) -> None:
        made = {**_circumstances(), "sha256": checksum(written)}
        with atomic_write(sidecar(target)) as temporary:
            temporary.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")

    results.write(dataset, target, before=write_sidecar)


def write_table(table: pd.DataFrame, target: str | Path) -> None:
    """Write a table as CSV."""
    with atomic_write(target) as temporary:
        table.to_csv(temporary, index=False)


def check_folder(path: str | Path) -> None:
    """Refuse a folder of results that cannot be made or written to, before anything runs.

    Raises
    ------
    ConfigurationError
        If the folder, or the nearest one above it that is there, is no folder or may not be written to.
    """
    folder = Path(path).absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise ConfigurationError(f"results: found {str(path)!r}; {folder} is no folder, choose another one")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results: found {str(path)!r}; {folder} may not be written to, choose another one"
        )


@contextlib.contextmanager
def unchanged(*paths: str | Path) -> Iterator[None]:
    """Refuse results of files that change while a block works with them.

    The result of an older content would look newer than the file, and would never be made again.

    Raises
    ------
    GridschedError
        If a file was changed or replaced; names it.
    """
    before = {path: _state(path) for path in paths}
    yield
    for path, state in before.items():
        if _state(path) != state:
            raise GridschedError(f"{path}: changed while it was in use; run again")


def _state(path: str | Path) -> tuple[int, ...]:
    """What differs once a file was written to or replaced."""
    try:
        facts = Path(path).stat()
    except FileNotFoundError:
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


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

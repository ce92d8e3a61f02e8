"""Datasets as files: written whole or not at all, with a sidecar that says how this copy was made.

The sidecar has the checksum of its dataset, which `results.read` looks at: damage is found before it spreads.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.io import atomic_write, checksum
from gridsched.results import sidecar as sidecar


def write(dataset: xr.Dataset, target: str | Path) -> None:
    """Write a dataset and, before it, its sidecar: the dataset is what says that a stage is done."""

    def write_sidecar(written: Path) -> None:
        made = {**_costs(), **_circumstances(), "sha256": checksum(written)}
        with atomic_write(sidecar(target)) as temporary:
            temporary.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")

    results.write(dataset, target, before=write_sidecar)


def write_table(table: pd.DataFrame, target: str | Path) -> None:
    """Write a table as CSV."""
    with atomic_write(target) as temporary:
        table.to_csv(temporary, index=False)


def is_whole(path: str | Path) -> bool:
    """Whether a dataset with its sidecar is there and is what was written."""
    try:
        made = json.loads(sidecar(path).read_text(encoding="utf-8"))
        return bool(made["sha256"] == checksum(path))
    except (OSError, ValueError, TypeError, KeyError):
        return False


def seal(record: str | Path, outputs: Iterable[str | Path]) -> None:
    """Record the checksums of finished outputs, in the form of `sha256sum`.

    Parameters
    ----------
    record : path
        File to write; paths in it are relative to its folder.
    outputs : iterable of paths
        Files, and folders for all files in them.
    """
    folder = Path(record).parent
    found = [[each] if each.is_file() else each.rglob("*") for each in map(Path, outputs)]
    paths = sorted(chain.from_iterable(found))
    lines = [f"{checksum(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    with atomic_write(record) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def is_sealed(record: str | Path) -> bool:
    """Whether all outputs of which `seal` recorded the checksums are there and are what was written."""
    try:
        lines = [line.split("  ", 1) for line in Path(record).read_text(encoding="utf-8").splitlines()]
        return bool(lines) and all(checksum(Path(record).parent / path) == known for known, path in lines)
    except (OSError, ValueError):
        return False


def shared(path: str | Path) -> xr.Dataset:
    """Dataset that several tasks of a process read one after the other; nobody may change it."""
    return _shared(str(path), _state(path))


@lru_cache(maxsize=8)
def _shared(path: str, state: tuple[int, ...]) -> xr.Dataset:
    return results.read(path)


_BEGUN: list[tuple[str, str, float, float]] = []
"""The task of this process, if it carries one out: study, name, and when it began by clock and CPU time."""


@contextlib.contextmanager
def making(study: str, task: str) -> Iterator[None]:
    """Let the sidecars of datasets that a block writes say which task made them, and what it took."""
    _BEGUN.append((study, task, time.perf_counter(), time.process_time()))
    try:
        yield
    finally:
        _BEGUN.pop()


def _costs() -> dict[str, Any]:
    """What the task has taken so far, and the most memory that its process ever held."""
    if not _BEGUN:
        return {}
    study, task, began, cpu_began = _BEGUN[-1]
    return {
        "study": study,
        "task": task,
        "elapsed": round(time.perf_counter() - began, 3),
        "cpu_time": round(time.process_time() - cpu_began, 3),
        "memory": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


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


@cache
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

"""Files that commands write."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from gridsched.errors import ConfigurationError, GridschedError


def check_targets(options: argparse.Namespace, trace: Path, tables: Sequence[str] = ("csv",)) -> None:
    """Refuse files that cannot be written before anything takes its time.

    `tables` are the options, besides --output, that name files for tables. A --log, where the command has
    one, is text of any name.
    """
    targets = {name: getattr(options, name, None) for name in ("output", *tables, "log")}
    named: dict[str, str] = {}
    for name, target in targets.items():
        if target is None:
            continue
        before = named.setdefault(os.path.realpath(target), name)
        if before != name:
            both = " and ".join(f"--{each.replace('_', '-')}" for each in (before, name))
            raise ConfigurationError(f"{target}: named by both {both}; use two names")
        if target.is_dir():
            raise ConfigurationError(f"{target}: is a folder; name a file in it")
        # Files are replaced, and a device must not be.
        if target.exists() and not target.is_file():
            raise ConfigurationError(f"{target}: is no regular file; name one")
        if target.exists() and trace.exists() and target.samefile(trace):
            raise ConfigurationError(f"{target}: is the log itself; choose another name")
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=target.parent).close()
        suffixes = (".nc", ".nc4", ".cdf") if name == "output" else (".csv",)
        if name != "log" and target.suffix.lower() not in ("", *suffixes):
            what = "netCDF" if suffixes[0] == ".nc" else "CSV"
            raise ConfigurationError(f"{target}: {what} is written; name a file that ends in {suffixes[0]}")


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Name the file in errors of writing; they would name a temporary one."""
    try:
        yield
    except OSError as error:
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a file is where a folder should be" if in_the_way else error.strerror or error
        raise GridschedError(f"{target}: cannot be written ({why}); choose another place") from error


def check_folder(folder: Path, names: Collection[str]) -> None:
    """Refuse a folder that cannot be written, or that holds other files than those that are written again."""
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder}: is no folder; name one")
    if folder.is_symlink():
        raise ConfigurationError(f"{folder}: is a link; name the folder itself")
    with writing(folder):
        others = (
            sorted(path.name for path in folder.iterdir() if path.name not in names)
            if folder.exists()
            else []
        )
        if others:
            raise ConfigurationError(f"{folder}: holds other files, such as {others[0]}; name a new folder")
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder.absolute().parent).close()


@contextlib.contextmanager
def writing_folder(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """Give a temporary folder that replaces `folder` when the block ends without an error."""
    place = folder.absolute()
    with writing(folder):
        temporary = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name[:60]}-"))
        try:
            new, old = temporary / "new", temporary / "old"
            new.mkdir()
            yield new
            check_folder(folder, names)
            if place.exists():
                place.rename(old)
            new.rename(place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

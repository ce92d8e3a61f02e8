"""Logs of the Parallel Workloads Archive: what is known of each, and fetching with verification."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

import pooch
import yaml
from platformdirs import user_cache_path

from gridsched.errors import TraceError
from gridsched.io import atomic_write, resource
from gridsched.traces._bytes import byte_limit, stream
from gridsched.traces.swf import read_swf

MIRRORS_VARIABLE = "GRIDSCHED_MIRRORS"
"""Environment variable with folders and addresses of mirrors, separated by commas."""

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_TIMEOUT = 30
"""Seconds that a server may be silent."""

_TOO_MANY_REQUESTS = 429
_NOT_FOUND = 404
_SERVER_ERROR = 500


@dataclass(frozen=True, kw_only=True)
class ArchiveLog:
    """Information about a log in `resources/archive.yaml`; None and "" where there is none.

    Parameters
    ----------
    name : str
        Name of the log in the archive, such as KTH-SP2-1996.
    file, url : str
        File name in the archive, and where the archive holds it.
    jobs, processors : int, optional
        Job lines of the file; processors of the cluster.
    period : str
        Time of the first and the last job.
    bytes : int, optional
        Size of the compressed file.
    sha256_gz, sha256_content : str
        SHA-256 of the compressed file and of the uncompressed log.
    acknowledgement : str
        Whom the log's header asks to acknowledge.
    """

    name: str
    file: str
    url: str
    jobs: int | None = None
    processors: int | None = None
    period: str = ""
    bytes: int | None = None
    sha256_gz: str = ""
    sha256_content: str = ""
    acknowledgement: str = ""


class _NotThereError(TraceError):
    """A place that does not hold the file, which is nothing to warn about."""


@cache
def _registry() -> dict[str, ArchiveLog]:
    entries = yaml.safe_load(resource("resources", "archive.yaml").read_text(encoding="utf-8"))
    return {name: ArchiveLog(name=name, **entry) for name, entry in entries.items()}


def registry() -> dict[str, ArchiveLog]:
    """All logs of the registry, by name."""
    return dict(_registry())


def find_log(name: str) -> ArchiveLog:
    """Log of the archive by its name or its file name, in any case, with or without .swf.gz.

    Raises
    ------
    TraceError
        If there is none; the message names those that are written like it.

    Examples
    --------
    >>> import gridsched as gs
    >>> gs.find_log("kth-sp2-1996").file
    'KTH-SP2-1996-2.1-cln.swf.gz'
    """
    names = {alias: log for log in _registry().values() for alias in _aliases(log)}
    wanted = name.strip().lower()
    if wanted in names:
        return names[wanted]
    close = difflib.get_close_matches(wanted, names, n=3)
    known = dict.fromkeys(names[alias].name for alias in close)
    hint = f"did you mean {' or '.join(known)}?" if known else "gridsched fetch --list shows those there are"
    raise TraceError(f"{name!r} is no log of the archive: {hint}")


def _aliases(log: ArchiveLog) -> tuple[str, ...]:
    file = log.file.lower()
    return log.name.lower(), file, file.removesuffix(".gz"), file.removesuffix(".swf.gz")


def archive_folder() -> Path:
    """Folder of fetched logs: `archive` in `GRIDSCHED_CACHE`, else in the user's cache folder."""
    chosen = os.environ.get("GRIDSCHED_CACHE")
    return (Path(chosen) if chosen else user_cache_path("gridsched")) / "archive"


def fetch(
    log: str | ArchiveLog,
    *,
    folder: str | os.PathLike[str] | None = None,
    mirrors: Iterable[str | os.PathLike[str]] = (),
    progress: bool = True,
    retries: int = 3,
    backoff: float = 1.0,
) -> Path:
    """Path of a verified copy of a log; it is fetched unless the folder holds it already.

    The places are tried in this order: `mirrors`, those in the environment variable `GRIDSCHED_MIRRORS`
    (separated by commas), the archive itself. A copy is used only if the checksum of the compressed
    file, or else of the log in it, is the registered one. A log of unknown checksum is used if it can be
    read, with a warning; its checksum is then kept in a file beside it, named with `.sha256` at the end,
    and counts from then on.

    Parameters
    ----------
    log : str or ArchiveLog
        Name or file name of a log of the archive, or an entry of one's own.
    folder : path-like, optional
        Where the copy is kept; see `archive_folder` for the default.
    mirrors : iterable of str or path-like
        Folders, or addresses of folders (file://, https://, http://), with files named as in the archive.
    progress : bool
        Whether to show a progress bar for downloads.
    retries : int
        Times that a server is asked while it does not answer or answers that it cannot serve now.
    backoff : float
        Seconds to wait before the second time; doubled before each further time.

    Raises
    ------
    TraceError
        If no place has a good copy; the message names every place and what was wrong with it.

    Examples
    --------
    >>> import gridsched as gs
    >>> path = gs.fetch("KTH-SP2-1996")  # doctest: +SKIP
    >>> log = gs.clean(gs.read_swf(path))  # doctest: +SKIP
    """
    entry = find_log(log) if isinstance(log, str) else log
    target = _target(entry, archive_folder() if folder is None else Path(folder))
    if target.exists():
        try:
            _accept(target, entry, target)
            return target
        except TraceError as error:
            warnings.warn(f"{error}; it is fetched again", stacklevel=2)
    failures = []
    for place in (*_places(entry, mirrors), entry.url):
        get = _getter(place, progress=progress, retries=retries, backoff=backoff)
        try:
            with atomic_write(target) as temporary:
                get(temporary)
                _accept(temporary, entry, target)
        except _NotThereError as error:
            failures.append(f"{place} ({error})")
        except (TraceError, OSError) as error:
            failures.append(f"{place} ({error})")
            warnings.warn(f"{entry.name}: {failures[-1]}", stacklevel=2)
        else:
            return target
    raise TraceError(
        f"{entry.name}: no good copy found; tried {'; '.join(failures)}; "
        f"put {entry.file} in a folder and name that folder in {MIRRORS_VARIABLE}"
    )


def _target(entry: ArchiveLog, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from error
    return folder / entry.file


def _places(entry: ArchiveLog, mirrors: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Where each mirror would hold the file: a path or an address."""
    named = [mirrors] if isinstance(mirrors, str | os.PathLike) else list(mirrors)
    named += [text.strip() for text in os.environ.get(MIRRORS_VARIABLE, "").split(",") if text.strip()]
    return [
        f"{mirror.rstrip('/')}/{quote(entry.file)}"
        if isinstance(mirror, str) and _ADDRESS.match(mirror)
        else str(Path(mirror).expanduser() / entry.file)
        for mirror in named
    ]


def _getter(place: str, *, progress: bool, retries: int, backoff: float) -> Callable[[Path], None]:
    """Function that copies the file at a path or an address to a path."""
    scheme = _ADDRESS.match(place)
    match scheme and scheme[1].lower():
        case "http" | "https":
            return lambda target: _download(place, target, progress, retries, backoff)
        case "file":
            return lambda target: _copy(Path(url2pathname(urlsplit(place).path)), target)
        case None:
            return lambda target: _copy(Path(place), target)
        case other:
            return lambda _: _refuse(
                f"{other}:// is not supported; use a folder, file://, http:// or https://"
            )


def _refuse(reason: str) -> None:
    raise TraceError(reason)


class _BoundedFile:
    """Open file that does not grow beyond the bound on the size of logs."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._room = byte_limit(None)

    def write(self, data: bytes) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise TraceError(
                f"more than {byte_limit(None):,} bytes; set GRIDSCHED_MAX_BYTES higher if that is right"
            )
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise _NotThereError("no such file")
    with source.open("rb") as content, target.open("wb") as file:
        shutil.copyfileobj(content, _BoundedFile(file))


def _download(url: str, target: Path, progress: bool, retries: int, backoff: float) -> None:
    """Download with as many tries as allowed; the errors of the HTTP library are OSErrors."""
    # Servers must not compress the compressed file once more, nor mark it as compressed in transit.
    headers = {"Accept-Encoding": "identity"}
    get = pooch.HTTPDownloader(progressbar=progress, chunk_size=1 << 16, timeout=_TIMEOUT, headers=headers)
    for attempt in range(1, retries + 1):
        try:
            with target.open("wb") as file:
                get(url, _BoundedFile(file), None)
            return
        except OSError as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if status == _NOT_FOUND:
                raise _NotThereError("404: no such file") from error
            lasting = status is not None and status < _SERVER_ERROR and status != _TOO_MANY_REQUESTS
            if lasting or attempt == retries:
                raise TraceError(" ".join(str(error).split())) from error
            time.sleep(backoff * 2 ** (attempt - 1))


def _accept(path: Path, entry: ArchiveLog, target: Path) -> None:
    """Check the copy of a log at `path`, which is or becomes `target`."""
    try:
        _verify(path, entry, target)
    except TraceError as error:
        raise TraceError(str(error).replace(str(path), str(target))) from error


def _verify(path: Path, entry: ArchiveLog, target: Path) -> None:
    compressed = pooch.file_hash(str(path), alg="sha256")
    if entry.sha256_gz and compressed == entry.sha256_gz:
        return
    record = target.with_name(f"{target.name}.sha256")
    expected = entry.sha256_content or _recorded(record)
    if expected:
        found = _content_checksum(path)
        if found != expected:
            raise TraceError(f"{path}: SHA-256 of the log is {found}, expected {expected}")
    elif entry.sha256_gz:
        raise TraceError(f"{path}: SHA-256 of the file is {compressed}, expected {entry.sha256_gz}")
    else:
        found = read_swf(path).checksum
        with atomic_write(record) as temporary:
            temporary.write_text(f"{found}  {target.name.removesuffix('.gz')}\n", encoding="utf-8")
        warnings.warn(
            f"{entry.name}: its checksum is not known, it is used unverified; SHA-256 of the log is {found}",
            stacklevel=2,
        )


def is_good_copy(path: Path, entry: ArchiveLog) -> bool | None:
    """Whether a file is the log that it is named after; None if no checksum is known to tell."""
    if entry.sha256_gz and pooch.file_hash(str(path), alg="sha256") == entry.sha256_gz:
        return True
    expected = entry.sha256_content or _recorded(path.with_name(f"{path.name}.sha256"))
    if not expected:
        return False if entry.sha256_gz else None
    try:
        return _content_checksum(path) == expected
    except TraceError:
        return False


def _recorded(record: Path) -> str:
    """Checksum that was recorded when the log was first fetched, "" if there is none."""
    return record.read_text(encoding="utf-8").partition(" ")[0] if record.is_file() else ""


def _content_checksum(path: Path) -> str:
    digest = hashlib.sha256()
    for chunk in stream(path):
        digest.update(chunk)
    return digest.hexdigest()

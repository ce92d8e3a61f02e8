"""Logs of workflow jobs: what a script prints, and why it failed, in the file that the rule names."""

from __future__ import annotations

import contextlib
import errno
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from gridsched.errors import GridschedError

_REMEDIES = {
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some space and run again",
    errno.EFBIG: "allow larger files and run again",
    errno.EROFS: "choose another folder for the results",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EIO: "check the disk and run again",
}
"""What to do about errors of the operating system that are no defects."""

_INTERRUPTED = 128 + signal.SIGINT
"""Exit code of an interrupted process, as shells report it."""


@contextlib.contextmanager
def logged(path: str | Path) -> Iterator[None]:
    """Send output and errors of a block to a log file; end the process if it fails.

    A mistake of the user's, or a full disk, is one line in the log; anything else is a defect and leaves its
    traceback. The message goes to standard error too, since there may be no room for a log.
    """
    message = ""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with (
            Path(path).open("w", encoding="utf-8") as log,
            contextlib.redirect_stdout(log),
            contextlib.redirect_stderr(log),
        ):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("default")
                    yield
            except Exception as error:
                message = reason(error) or f"{type(error).__name__}: {error}"
                if reason(error):
                    print(_begun("error: ", message), file=log)
                else:
                    traceback.print_exc(file=log)
            except KeyboardInterrupt:
                # The workflow itself says so, once
                print("interrupted", file=log)
                sys.exit(_INTERRUPTED)
    except OSError as error:
        message = message or reason(error) or f"{path}: {error}"
    if message:
        sys.exit(_begun("gridsched: ", message))


def _begun(start: str, message: str) -> str:
    """A message of which every line has the same beginning: one for each task that failed."""
    return "\n".join(f"{start}{line}" for line in message.splitlines())


def reason(error: Exception) -> str:
    """What the user can fix; empty for a defect."""
    if isinstance(error, GridschedError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{(error.strerror or str(error)).lower()}; {_REMEDIES[error.errno]}"
    return ""

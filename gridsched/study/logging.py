"""Logs of workflow jobs: what a script prints, and why it failed, in the file that the rule names."""

from __future__ import annotations

import contextlib
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from gridsched.errors import GridschedError


@contextlib.contextmanager
def logged(path: str | Path) -> Iterator[None]:
    """Send output and errors of a block to a log file; end the process if it fails.

    A mistake of the user's is one line in the log; anything else is a defect and leaves its traceback.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", encoding="utf-8") as log:
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("default")
                    yield
                return
            except GridschedError as error:
                print(f"error: {error}", file=log)
                message = str(error)
            except Exception as error:
                traceback.print_exc(file=log)
                message = f"{type(error).__name__}: {error}"
        sys.exit(f"gridsched: {message}")

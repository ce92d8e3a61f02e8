"""Where the logs of studies come from: each log that was used, and whom to thank for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gridsched.errors import TraceError
from gridsched.experiments.config import Study
from gridsched.experiments.tasks import ArchiveFile, OwnFile
from gridsched.traces import find_log
from gridsched.traces._bytes import stream
from gridsched.traces._header import parse_header

_NO_LOGS = (".py", ".yaml", ".yml")
"""Files of the user's that hold functions and configurations."""


@dataclass(frozen=True)
class LogSource:
    """A log that studies use.

    Parameters
    ----------
    name : str
        Name of a log of the archive, path of any other file.
    url : str
        Where the archive holds it; empty for a file of the user's own.
    acknowledgement : str
        Whom its header asks to acknowledge.
    """

    name: str
    url: str
    acknowledgement: str


def sources(studies: Iterable[Study]) -> list[LogSource]:
    """Every log that studies use, each once: those of the archive first, by name."""
    # Which files are used does not depend on the seed
    used = [file for study in studies for task in study.experiment(0).tasks for file in task.inputs]
    archived = {file.name for file in used if isinstance(file, ArchiveFile)}
    own = {file.file for file in used if isinstance(file, OwnFile) and not file.file.endswith(_NO_LOGS)}
    logs = [find_log(name) for name in sorted(archived)]
    return [
        *(LogSource(log.name, log.url, log.acknowledgement) for log in logs),
        *(LogSource(path, "", _acknowledgement(path)) for path in sorted(own)),
    ]


def _acknowledgement(path: str) -> str:
    """Whom the header of a file asks to acknowledge; empty without a header."""
    try:
        beginning = next(stream(Path(path)), b"").decode("utf-8", errors="replace")
    except TraceError:
        return ""
    return parse_header(beginning.splitlines()).acknowledgement

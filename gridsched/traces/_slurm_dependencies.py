"""Dependencies as Slurm writes them, and the jobs of an export that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.traces._slurm_options import options_of
from gridsched.workloads.dependencies import DEPENDENCY, KINDS

_UNREAD = b"unread"
"""Stands for what a command line asks for, where it cannot be read."""

_NONE = (b"", b"(null)", b"none", b"n/a", b"unknown", _UNREAD)
_KIND = {
    "after": "after",
    "afterany": "afterany",
    "afterok": "afterok",
    "afternotok": "afternotok",
    "aftercorr": "afterok",
    "afterburstbuffer": "afterany",
}
_CORRESPONDING = "aftercorr"
_SINGLETON = "singleton"
_PART = re.compile(r"([a-z]+)((?::\d{1,18}(?:[_+](?:\d{1,9}|\*))?(?:\+\d{1,9})?(?:\([a-z]+\))?)+)", re.ASCII)
_JOB = re.compile(r":(\d+)(_\d+|_\*)?(?:\+(\d+))?(?:\([a-z]+\))?", re.ASCII)
_OPTION = re.compile(rb"(?:^|\s)(?:--dependency(?:=|\s+)|-d\s*=?\s*)[\"']?([^\s\"']+)")

ANY = "depends on any of several jobs, taken as independent"
ABSENT = "depends on a job that is not in the log, which counts as ended well"
UNREAD = "asks on its command line for a dependency that cannot be read, taken as independent"
"""What is said of dependencies that are not as they were."""


class NamedJob(NamedTuple):
    """A dependency: kind by Slurm's name, number of the job, task of its array or none, seconds of delay."""

    kind: str
    number: int
    task: str
    delay: int


def submitted_dependency(line: bytes) -> bytes:
    """Dependency that a command line of sbatch asks for; empty without one that can be read."""
    if b"-d" not in line:
        return b""
    options = options_of(line.decode("latin-1"))
    own = [options[name].strip("\"'").encode("latin-1") for name in ("d", "dependency") if name in options]
    # those behind the name of the script are its own; a short one may be that of a command which is run
    sure = "dependency" in options or any(text and is_dependency(text) for text in own)
    found = own if sure else _OPTION.findall(line)
    if not found:
        return b""
    if parse_dependency(found[-1]) is not None:
        return bytes(found[-1])
    return _UNREAD if b"--dependency" in line else b""


def parse_dependency(text: bytes) -> list[NamedJob] | None:
    """What a text like afterok:12:13,singleton asks for, all of it; None for what is no dependency.

    Where any one of several dependencies would do (a text with question marks) nothing is given.
    """
    if text.strip().lower() in _NONE:
        return []
    asked = []
    parts = re.split(r"[,?]", text.decode("latin-1").strip())
    for part in parts:
        if re.fullmatch(rf"{_SINGLETON}(\([a-z]+\))?", part):
            asked.append(NamedJob(_SINGLETON, 0, "", 0))
            continue
        match = _PART.fullmatch(part)
        if not match or match[1] not in _KIND:
            return None
        asked += [
            NamedJob(match[1], int(number), (task or "").replace("_*", ""), 60 * int(minutes or 0))
            for number, task, minutes in _JOB.findall(match[2])
        ]
    return [] if b"?" in text else asked


def is_dependency(text: bytes) -> bool:
    """Whether a text is a dependency, or that there is none."""
    return parse_dependency(text) is not None


def needs_any(text: bytes) -> bool:
    """Whether one of several dependencies would do."""
    return b"?" in text


class Jobs:
    """Places of jobs by what dependencies call them: job, task of an array, or all tasks of one.

    Parameters
    ----------
    identifiers : bytes[n]
        Job IDs such as 123, 123_4 and 123+1; of a job that ran several times the last counts.
    numbers : int64[n]
        Numbers of the jobs, of tasks and components too.
    """

    def __init__(self, identifiers: NDArray[np.bytes_], numbers: NDArray[np.int64]) -> None:
        self._single: dict[str, int] = {}
        self._all: dict[int, dict[str, int]] = {}
        self._raw = {int(number): place for place, number in enumerate(numbers.tolist())}
        for place, identifier in enumerate(identifiers.tolist()):
            text = identifier.decode("latin-1")
            number = int(re.split(r"[_+]", text)[0])
            self._single[text] = place
            self._all.setdefault(number, {})[text] = place

    def named(self, asked: NamedJob, waiting: str) -> Sequence[int]:
        """Places of the jobs that a job waits for; `waiting` is its own ID."""
        if asked.kind == _CORRESPONDING and "_" in waiting:
            own = f"{asked.number}_{waiting.partition('_')[2]}"
            if own in self._single:
                return [self._single[own]]
        if asked.task:
            place = self._single.get(f"{asked.number}{asked.task}")
            return [] if place is None else [place]
        if asked.number in self._all:
            return list(self._all[asked.number].values())
        raw = self._raw.get(asked.number)
        return [] if raw is None else [raw]


def dependencies_of(
    texts: Sequence[bytes], identifiers: NDArray[np.bytes_], numbers: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.bool_], dict[str, int]]:
    """Dependencies of jobs among each other.

    Parameters
    ----------
    texts : sequence of bytes
        What each job asks for.
    identifiers, numbers
        See `Jobs`.

    Returns
    -------
    DEPENDENCY[...], bool[n], dict of str to int
        The dependencies; jobs that run one at a time with those of the same name and user; how many jobs ask
        for what is not kept, by reason.
    """
    jobs = Jobs(identifiers, numbers)
    rows: list[tuple[int, int, int, int]] = []
    single = np.zeros(len(texts), np.bool_)
    counts = {ANY: 0, ABSENT: 0, UNREAD: 0}
    for job, text in enumerate(texts):
        if not text:
            continue
        counts[ANY] += needs_any(text)
        counts[UNREAD] += text == _UNREAD
        absent = False
        for asked in parse_dependency(text) or ():
            if asked.kind == _SINGLETON:
                single[job] = True
                continue
            places = jobs.named(asked, identifiers[job].decode("latin-1"))
            absent |= not places
            rows += [(job, on, KINDS[_KIND[asked.kind]], asked.delay) for on in places]
        counts[ABSENT] += absent
    return np.array(rows, DEPENDENCY), single, counts

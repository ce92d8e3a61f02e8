"""Reading workloads of Batsim: jobs and profiles as JSON.

A profile says how long a job runs. Only delay profiles do so by themselves; other types depend on the
network and the computers of a platform that SimGrid simulates, and are refused.

Source: docs/input-workload.rst of Batsim 4 and 5.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from numpy.typing import NDArray

from gridsched.errors import TraceError
from gridsched.traces._bytes import stream
from gridsched.workloads.table import UNKNOWN, Workload

__all__ = ["BatsimLog", "read_batsim"]

_DELAY = ("delay", "DelayProfile")
"""Type of profiles that take a given time, in versions 4 and 5."""

_LATEST = 2**53
"""Seconds from which on a float does not tell one from the next."""


_NAMED = ("user", "group", "queue", "partition")
"""Labels that become columns; `executable` is the profile."""


class Labels(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a workload may say of a job besides: numbers or texts in fields of the job, or in `extra_data`.

    Batsim does not look at them, and forwards them to decision processes: in version 4 all fields of a job,
    in version 5 `extra_data`, a text that is an object of JSON by recommendation.
    """

    user: Any = UNSET
    group: Any = UNSET
    executable: Any = UNSET
    queue: Any = UNSET
    partition: Any = UNSET


NO_LABELS = Labels()


def labels_in(extra_data: Any) -> Labels:
    """Labels in `extra_data`, an object or a text that is one; none where it is neither."""
    if isinstance(extra_data, dict):
        return msgspec.convert(extra_data, Labels)
    if not isinstance(extra_data, str) or not extra_data:
        return NO_LABELS
    try:
        return msgspec.json.decode(extra_data, type=Labels)
    except msgspec.DecodeError:
        return NO_LABELS


class _Job(Labels, frozen=True, gc=False, kw_only=True):
    id: str | int
    subtime: float
    res: int
    profile: str | int
    walltime: float | None = None
    extra_data: Any = ""


class _Profile(Struct, frozen=True, gc=False):
    type: str
    delay: float | UnsetType = UNSET
    ret: int = 0


class _File(Struct, frozen=True):
    jobs: list[_Job]
    profiles: dict[str, _Profile]
    nb_res: int = 0


@dataclass(frozen=True)
class BatsimLog:
    """A workload of Batsim.

    Parameters
    ----------
    workload : Workload
        The jobs in order of submission. The number of a job is its place in the file, from 1 on; the column
        `executable` has the number of its profile.
    names : mapping of str to sequence of str
        ``job``: identifiers, in the order of the file; ``executable``: names of profiles by their numbers;
        ``user``, ``group``, ``queue`` and ``partition`` by their numbers, where these are texts.
    """

    workload: Workload
    names: Mapping[str, Sequence[str]]


def read_batsim(
    path: str | os.PathLike[str], *, name: str | None = None, max_bytes: int | None = None
) -> BatsimLog:
    """Jobs of a workload file of Batsim, all of whose profiles are delays.

    Parameters
    ----------
    path : path-like
        The file, plain or compressed.
    name : str, optional
        Name of the workload; the file name without suffixes if not given.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Returns
    -------
    BatsimLog
        Times with fractions of seconds are rounded up, and such jobs counted in `Workload.repaired`. A job
        whose profile returns something else than 0 has failed (status 0).

    Raises
    ------
    TraceError
        If the file cannot be read, is no such workload, or a job has a profile that is no delay.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.json"
    >>> job = {"id": "a", "subtime": 0.5, "res": 2, "profile": "short", "walltime": 60}
    >>> workload = {"nb_res": 4, "jobs": [job], "profiles": {"short": {"type": "delay", "delay": 20}}}
    >>> _ = file.write_text(json.dumps(workload))
    >>> log = read_batsim(file)
    >>> log.workload.submit_time.tolist(), log.workload.run_time.tolist(), log.names["job"]
    ([1], [20], ['a'])
    """
    file = Path(path)
    content = b"".join(stream(file, max_bytes))
    try:
        found = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        slurm = "; give what sacct --parsable2 prints, not --json" if b'"job_id"' in content else ""
        raise TraceError(f"{file}: no workload of Batsim: {error}{slurm}") from None
    if not found.jobs:
        raise TraceError(f"{file}: $.jobs is empty; give a workload with jobs")
    first: dict[str, int] = {}
    for index, job in enumerate(found.jobs):
        if first.setdefault(str(job.id), index) != index:
            raise TraceError(
                f"{file}: $.jobs[{index}] has the id {job.id!r} of $.jobs[{first[str(job.id)]}]; rename one"
            )
    profiles = {name: number for number, name in enumerate(found.profiles)}
    numbers = [_profile_of(file, found, index, profiles) for index in range(len(found.jobs))]
    kinds = list(found.profiles.values())
    times: dict[str, NDArray[np.float64]] = {
        "submit_time": np.array([job.subtime for job in found.jobs]),
        "run_time": np.array([kinds[number].delay for number in numbers], np.float64),
        "requested_time": np.array([_walltime(job) for job in found.jobs]),
    }
    for column, values in times.items():
        wrong = ~(np.abs(values) < _LATEST)
        if wrong.any():
            raise TraceError(f"{file}: $.jobs[{int(np.argmax(wrong))}]: its {column} is too large")
    order = np.argsort(times["submit_time"], kind="stable")
    labels, names, unusable = _labels(found.jobs)
    fractions = np.any([values % 1 > 0 for values in times.values()], axis=0)
    columns: dict[str, Any] = {
        **{column: np.ceil(values).astype(np.int64)[order] for column, values in times.items()},
        **{column: np.array(values, np.int64)[order] for column, values in labels.items()},
        "job_number": order + 1,
        "requested_processors": np.array([job.res for job in found.jobs], np.int64)[order],
        "executable": np.array(numbers, np.int64)[order],
        "status": np.array([int(kinds[number].ret == 0) for number in numbers], np.int64)[order],
    }
    repaired = {
        "times rounded up to whole seconds": int(fractions.sum()),
        "users, groups, queues and partitions that are neither numbers nor texts": unusable,
    }
    workload = Workload(
        name=name or file.name.partition(".")[0],
        processors_available=found.nb_res if found.nb_res > 0 else None,
        checksum=hashlib.sha256(content).hexdigest(),
        repaired={what: count for what, count in repaired.items() if count},
        **columns,
    )
    names |= {"job": [str(job.id) for job in found.jobs], "executable": list(profiles)}
    return BatsimLog(workload, names)


def _labels(jobs: Sequence[_Job]) -> tuple[dict[str, list[int]], dict[str, Sequence[str]], int]:
    """Columns of labels, names by number where these are texts, and how many labels are something else."""
    columns: dict[str, list[int]] = {}
    names: dict[str, Sequence[str]] = {}
    unusable = 0
    extra = [labels_in(job.extra_data) for job in jobs]
    for column in _NAMED:
        said = [getattr(job, column) for job in jobs]
        said = [getattr(extra[k], column) if each is UNSET else each for k, each in enumerate(said)]
        known = [isinstance(each, str) or (type(each) is int and each >= 0) for each in said]
        unusable += sum(
            not good and each not in (UNSET, None, UNKNOWN) for each, good in zip(said, known, strict=True)
        )
        if any(isinstance(each, str) for each in said):
            number = {
                text: k for k, text in enumerate(dict.fromkeys(str(said[k]) for k in np.flatnonzero(known)))
            }
            names[column] = list(number)
            said = [number.get(str(each)) for each in said]
        columns[column] = [each if good else UNKNOWN for each, good in zip(said, known, strict=True)]
    return columns, names, unusable


def _walltime(job: _Job) -> float:
    """Walltime of a job; UNKNOWN where it has none."""
    return job.walltime if job.walltime is not None and job.walltime > 0 else UNKNOWN


def _profile_of(file: Path, found: _File, index: int, numbers: Mapping[str, int]) -> int:
    """Number of the profile of a job.

    Raises
    ------
    TraceError
        If there is none, or it is no delay.
    """
    job, name = found.jobs[index], str(found.jobs[index].profile)
    where = f"{file}: $.jobs[{index}] (id {job.id!r})"
    if name not in numbers:
        raise TraceError(f"{where}: its profile {name!r} is not in $.profiles")
    profile = found.profiles[name]
    if profile.type not in _DELAY:
        raise TraceError(
            f"{where}: its profile {name!r} is of type {profile.type!r}, which needs a simulated network; "
            f"only {' and '.join(_DELAY)} are supported"
        )
    if isinstance(profile.delay, UnsetType) or profile.delay < 0:
        raise TraceError(f"{where}: its profile {name!r} has no delay of 0 or more")
    return numbers[name]

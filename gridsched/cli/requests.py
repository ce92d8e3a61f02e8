"""What the jobs of an export request and a simulation does not know: columns and command lines tell."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridsched.traces._delimited import read_lines, without_mark
from gridsched.traces._sacct_table import with_alternatives
from gridsched.traces._slurm_options import options_of
from gridsched.traces.sacct import COMMAND_LINE

if TYPE_CHECKING:
    from gridsched.traces.sacct import AccountingLog

Mask = NDArray[np.bool_]
Options = Mapping[str, str]

_COLUMNS = ("JobID", COMMAND_LINE, "Constraints", "ReqTRES", "Partition")


def _has(*names: str) -> Callable[[Options], bool]:
    return lambda options: any(name in options for name in names)


def _holds(text: str, *names: str) -> Callable[[Options], bool]:
    """Whether one of some options has a value in which a pattern is found."""
    pattern = re.compile(text)
    return lambda options: any(pattern.search(options[name]) for name in names if name in options)


SEVERAL, LICENCES, ALONE = "several partitions", "licences", "whole nodes (--exclusive)"
LEAST, COMPONENTS = "shortest time limits (--time-min)", "heterogeneous jobs: their parts start apart"
OF_SLURM = {
    SEVERAL: "partitions",
    LICENCES: "licences",
    ALONE: "whole_nodes",
    LEAST: "least_time",
    COMPONENTS: "component_of",
}
"""What Slurm's model takes into account, and the columns of the workload that say for which jobs."""

_REQUESTS: dict[str, Callable[[Options], bool]] = {
    SEVERAL: _holds(",", "p", "partition", "Partition"),
    LICENCES: lambda options: _has("L", "licenses")(options) or "license/" in options.get("ReqTRES", ""),
    "features (--constraint), without the column Constraints": lambda options: (
        _has("C", "constraint")(options) and not options["Constraints"]
    ),
    ALONE: _has("exclusive"),
    "named or excluded nodes": _has("w", "nodelist", "x", "exclude"),
    "ranges of numbers of nodes": _holds(r"\d-\d", "N", "nodes"),
    "tasks per node": _has("ntasks-per-node"),
    LEAST: _has("time-min"),
    "begin times and holds": _has("b", "begin", "H", "hold"),
    "deadlines": _has("deadline"),
    "nice values": _has("nice"),
    "switches, contiguous nodes": _has("switches", "contiguous"),
    "models of GPUs": lambda options: (
        _holds("gpu:[A-Za-z]", "gres")(options) or _holds("^[A-Za-z]", "G", "gpus", "gpus-per-node")(options)
    ),
    "resources other than GPUs (--gres)": _holds(r"(?:^|,)(?!gpu\b)(?:gres/)?(?!gpu\b)[a-z]", "gres"),
}
"""What jobs may request and is not modelled, or not read of an export."""

_OF_EXPORT = {
    "component of a heterogeneous job": COMPONENTS,
    "eligible after submission": "eligible later than submitted, without a known dependency",
    "reservation": "ran in reservations",
    "suspended": "suspended",
    "requeued": "requeued: each run is a job",
    "preempted": "preempted: each run is a job",
    "resized": "changed their size",
}
"""Flags of `AccountingLog` for what a simulation does not know."""


def requests_of(path: Path, accounting: AccountingLog, *, whole_nodes: bool) -> dict[str, Mask]:
    """Jobs that request something that is not modelled, by what it is.

    Parameters
    ----------
    path : Path
        The export.
    accounting : AccountingLog
        What was read of it.
    whole_nodes : bool
        Whether all jobs get whole nodes, so that it does not matter which request them.
    """
    rows = _rows_of(path)
    asked = np.array(
        [rows.get(each.decode("latin-1"), 0) for each in accounting.identifiers.tolist()], np.int64
    )
    found = {
        name: (asked >> place) & 1 == 1
        for place, name in enumerate(_REQUESTS)
        if not (whole_nodes and "exclusive" in name)
    }
    independent = np.ones(len(asked), np.bool_)
    if accounting.workload.dependencies is not None:
        independent[accounting.workload.dependencies["job"]] = False
    for flag, text in _OF_EXPORT.items():
        mask = accounting.flags.get(flag, np.zeros(len(asked), np.bool_))
        found[text] = mask & independent if "dependency" in text else mask
    return {name: mask for name, mask in found.items() if mask.any()}


def _rows_of(path: Path) -> dict[str, int]:
    """What each job ID requests, as bits in the order of `_REQUESTS`."""
    lines = (
        line.rstrip("\r")
        for _, block in read_lines(path, None, hashlib.sha256())
        for line in block.decode("latin-1").split("\n")
    )
    header = without_mark(next(filter(str.strip, lines)).encode("latin-1")).decode("latin-1")
    delimiter = header.lstrip(string.ascii_letters)[:1]
    names = [name.strip().lower() for name in header.split(delimiter)]
    places = {name: names.index(name.lower()) for name in _COLUMNS if name.lower() in names}
    rows: dict[str, int] = {}
    if "JobID" not in places:  # a table of jobs in other columns
        return rows
    for line in lines:
        if delimiter == "|" and line.count(delimiter) >= len(names):
            line = with_alternatives(line.encode("latin-1"), names).decode("latin-1")
        fields = line.split(delimiter)
        if len(fields) == len(names) and "." not in fields[places["JobID"]]:
            of_job = {name: fields[places[name]] if name in places else "" for name in _COLUMNS}
            options = {**options_of(of_job[COMMAND_LINE]), **of_job}
            asked = sum(asks(options) << place for place, asks in enumerate(_REQUESTS.values()))
            rows[of_job["JobID"]] = asked
    return rows

"""The columns of an export of Slurm's accounting, read block by block; see `gridsched.traces.sacct`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import TraceError
from gridsched.traces._delimited import LineBlock, split, without_mark
from gridsched.traces._slurm_dependencies import is_dependency, submitted_dependency
from gridsched.traces._slurm_nodes import has_nodes, is_node_list
from gridsched.traces._slurm_options import asked_on
from gridsched.traces._slurm_values import (
    leading_numbers,
    parse_duration,
    parse_gpus,
    parse_memory,
    parse_nodes,
    parse_number,
    parse_state,
    parse_times,
)

COMMAND = (
    "sacct --allusers --allocations --duplicates --parsable2 --starttime 2024-01-01 --endtime 2024-02-01 "
    "--format JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,Suspended,State,"
    "Timelimit,AllocCPUS,ReqCPUS,NNodes,Reservation,AllocTRES,ReqTRES,NodeList,Constraints"
)
"""Command that exports all that is used, but for dependencies, which SubmitLine has."""

_COLUMNS: dict[str, tuple[str, ...]] = {
    "identifier": ("jobid", "jobidraw"),
    "number": ("jobidraw",),
    "submit": ("submit",),
    "eligible": ("eligible",),
    "start": ("start",),
    "end": ("end",),
    "state": ("state",),
    "elapsed_seconds": ("elapsedraw",),
    "elapsed": ("elapsed",),
    "suspended": ("suspended",),
    "limit": ("timelimit",),
    "limit_minutes": ("timelimitraw",),
    "cpus": ("alloccpus", "ncpus"),
    "requested_cpus": ("reqcpus",),
    "nodes": ("allocnodes", "nnodes"),
    "allocated_nodes": ("allocnodes",),
    "requested_nodes": ("reqnodes",),
    "user": ("user", "uid"),
    "group": ("account", "group", "gid"),
    "partition": ("partition",),
    "queue": ("qos",),
    "constraint": ("constraints",),
    "resources": ("alloctres", "reqtres"),
    "requested_resources": ("reqtres",),
    "reservation": ("reservation",),
    "node_list": ("nodelist",),
    "dependency": ("dependency", "submitline"),
    "command_line": ("submitline",),
    "executable": ("jobname",),
}
"""What is read, and the columns of sacct that give it, the first that is there."""

NAMED = ("user", "group", "partition", "queue", "constraint")
"""Columns of the workload whose numbers stand for names."""

TEXTS = ("node_list", "dependency", "executable", "partitions", "licences")
"""Columns of texts of any length, by number in order of first appearance; the first is that of no text."""

LISTS = ("partitions", "licences")
"""Those of them that are names of what jobs ask for."""

TIMES = ("submit", "eligible", "start", "end")
_NUMBERS = (
    "elapsed_seconds",
    "limit_minutes",
    "cpus",
    "requested_cpus",
    "nodes",
    "allocated_nodes",
    "requested_nodes",
)
_DURATIONS = ("elapsed", "suspended", "limit")

_LONGEST_IDENTIFIER = 64
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_RESERVED = " .,:+-_%()[]"
"""Characters that stand in times, durations and job numbers, and cannot delimit them."""

_LICENCE = re.compile(rb"license/([^,]+)")

STEPS = "step of a job"
HEADERS = "repeated header"
WAITING_TASKS = "array tasks that had not started"


_OR = b"\x1f"
"""What stands for `|` in constraints, which delimits columns elsewhere."""

_WITH_OR = ("constraints", "submitline")
"""Columns that may have alternatives such as std|ib."""

_READS: dict[str, re.Pattern[bytes]] = {
    **dict.fromkeys(TIMES, re.compile(rb"\s*(\d{4}-\d\d-\d\dT[\d:]+|\d*|Unknown|None)\s*")),
    "submitline": re.compile(rb"(\S*/)?(sbatch|srun|salloc|scrontab)\b.*|", re.DOTALL),
}
"""What fields of other columns look like."""


def with_alternatives(text: bytes, names: list[str]) -> bytes:
    """Lines in which `|` of constraints, and of command lines that name them, does not end a column.

    How many belong to which column is known by what others look like. Lines that fit in no way, or in
    several, stay as they are.
    """
    bearers = [place for place, name in enumerate(names) if name in _WITH_OR]
    if not bearers or text.count(b"|") <= text.count(b"\n") * (len(names) - 1):
        return text
    known = [(place, _READS[name]) for place, name in enumerate(names) if name in _READS]
    return b"\n".join(_joined(row, len(names), bearers, known) for row in text.split(b"\n"))


def _joined(
    row: bytes, columns: int, bearers: list[int], known: list[tuple[int, re.Pattern[bytes]]]
) -> bytes:
    """A line with `_OR` for those of its delimiters that are none."""
    fields = row.split(b"|")
    surplus = len(fields) - columns
    if surplus <= 0:
        return row
    found = []
    for first in range(surplus + 1) if len(bearers) > 1 else [surplus]:
        whole = list(fields)
        for place, more in zip(bearers, (first, surplus - first), strict=False):
            whole[place : place + more + 1] = [_OR.join(whole[place : place + more + 1])]
        if len(whole) == columns and all(reads.fullmatch(whole[place]) for place, reads in known):
            found.append(b"|".join(whole))
    return found[0] if len(found) == 1 else row


class AccountingTable:
    """Columns that grow block by block."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.left_out: dict[str, int] = {}
        self.waiting_tasks: list[bytes] = []
        self._delimiter = "|"
        self._header: tuple[str, ...] = ()
        self._places: dict[str, int] = {}
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._codes: dict[str, dict[bytes, int]] = {}

    def add(self, line: int, text: bytes) -> None:
        """Take the lines of one block, of which the first has this number."""
        if not self._header and not text.strip(b"\r\n"):
            return
        if not self._header:
            line, text = self._read_header(line, without_mark(text))
        if self._delimiter == "|":
            text = with_alternatives(text, [name.strip().lower() for name in self._header])
        block = split(self.file, line, text, self._delimiter, len(self._header))
        if not len(block):
            return
        block = self._jobs_only(block)
        if not len(block):
            return
        self._append("line", block.line)
        self._add_identifiers(block)
        for key in TIMES:
            if key in self._places:
                self._add_times(block, key)
        for key, parse in (
            *((key, parse_number) for key in _NUMBERS),
            *((key, parse_duration) for key in _DURATIONS),
        ):
            if key in self._places:
                self._append(key, self._parsed(block, key, parse))
        for key in ("state", *NAMED):
            if key in self._places:
                self._append(key, self._numbered(block, key))
        if "resources" in self._places:
            self._append("resources", block.contains(self._places["resources"], b"gres/"))
            self._append("gpus", self._gpus(block))
            self._add_resources(block)
        if "reservation" in self._places:
            self._append("reservation", block.fields[:, self._places["reservation"]] != b"")
        self._add_texts(block)
        self._add_command_lines(block)

    def _read_header(self, line: int, text: bytes) -> tuple[int, bytes]:
        """Learn the columns; what comes behind their line."""
        before = len(text) - len(text.lstrip(b"\r\n"))
        line, text = line + text[:before].count(b"\n"), text[before:]
        first, _, rest = text.partition(b"\n")
        header = first.rstrip(b"\r").decode("latin-1")
        where = f"{self.file}:{line}"
        if header.startswith("sacct:"):
            raise TraceError(f"{where}: an error of sacct: {header!r:.120}; export again")
        match = _NAME.match(header)
        delimiter = header[match.end() : match.end() + 1] if match else ""
        if not delimiter or delimiter in _RESERVED or delimiter.isalnum():
            raise TraceError(
                f"{where}: no header of columns with a delimiter: {header!r:.60}; export as UTF-8, without "
                f"--noheader: {COMMAND}"
            )
        self._delimiter = delimiter
        self._header = tuple(header.split(delimiter))
        known = [name.strip().lower() for name in self._header]
        for key, names in _COLUMNS.items():
            found = next((name for name in names if name in known), None)
            if found:
                self._places[key] = known.index(found)
        for key, column in (
            ("identifier", "JobID"),
            ("submit", "Submit"),
            ("start", "Start"),
            ("state", "State"),
        ):
            if key not in self._places:
                raise self._lacks(column)
        if not {"end", "elapsed", "elapsed_seconds"} & set(self._places):
            raise self._lacks("End")
        if "dependency" not in self._places:
            # the names of jobs are for dependencies on jobs of the same name
            self._places.pop("executable", None)
        return line + 1, rest

    def _lacks(self, column: str) -> TraceError:
        """What is said of an export without a column that is needed."""
        given = ", ".join(name for name in self._header if name) if self._header else "no header"
        return TraceError(f"{self.file}: no column {column} ({given:.300}); export with: {COMMAND}")

    def _jobs_only(self, block: LineBlock) -> LineBlock:
        """Leave out repeated headers, steps, and lines of array tasks that have not started."""
        place = self._places["identifier"]
        name = self._header[place].encode("latin-1")
        header = block.fields[:, place] == name
        step = block.contains(place, b".")
        waiting = block.contains(place, b"[") & ~step
        self._count(HEADERS, header)
        self._count(STEPS, step)
        self._count(WAITING_TASKS, waiting)
        self.waiting_tasks += block.fields[waiting, place].tolist()
        return block.select(~(header | step | waiting))

    def _count(self, reason: str, lines: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(lines))
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count

    def _append(self, key: str, values: NDArray[Any]) -> None:
        self._parts.setdefault(key, []).append(values)

    def _add_identifiers(self, block: LineBlock) -> None:
        texts = block.texts(self._places["identifier"], _LONGEST_IDENTIFIER)
        numbers, digits = leading_numbers(texts)
        rows = texts.view(np.uint8).reshape(len(texts), -1)
        after = np.append(rows, np.zeros((len(rows), 1), np.uint8), axis=1)[np.arange(len(rows)), digits]
        wrong = (digits == 0) | ~np.isin(after, np.frombuffer(b"\0_+", np.uint8))
        self._check(block, "identifier", wrong, "no job ID such as 123, 123_4 or 123+1")
        self._append("identifier", texts)
        self._append("array task", after == ord("_"))
        self._append("component", after == ord("+"))
        if "number" in self._places:
            raw, digits = leading_numbers(block.texts(self._places["number"], _LONGEST_IDENTIFIER))
            numbers = np.where(digits > 0, raw, numbers)
        self._append("number", numbers)

    def _add_times(self, block: LineBlock, key: str) -> None:
        times = parse_times(block.texts(self._places[key]))
        self._check(
            block,
            key,
            times.bad,
            "no time; export with SLURM_TIME_FORMAT=standard, or =%s for Unix times",
        )
        self._append(key, times.seconds)
        self._append(f"{key} local", times.local)

    def _parsed(self, block: LineBlock, key: str, parse: Callable[[str], int | None]) -> NDArray[np.int64]:
        """Values of a column, each distinct text parsed once."""
        codes, texts = _distinct(block.texts(self._places[key]))
        values = [parse(text.decode("latin-1")) for text in texts]
        wrong = np.array([value is None for value in values], np.bool_)[codes]
        wanted = "a duration like 1-12:00:00 (minutes are TimelimitRaw); fix this line"
        if parse is parse_number:
            wanted = "a whole number; export with --noconvert, or fix this line"
        self._check(block, key, wrong, f"not {wanted}")
        return np.array([value or 0 for value in values], np.int64)[codes]

    def _numbered(self, block: LineBlock, key: str) -> NDArray[np.int64]:
        """Number of each name, in order of first appearance; of a list of partitions that of the first."""
        known = self._codes.setdefault(key, {})
        texts = block.texts(self._places[key])
        lists = self._partition_lists(block) if key == "partition" else []
        if any(lists):
            texts = np.array(
                [each.partition(b",")[0] or text for text, each in zip(texts.tolist(), lists, strict=True)]
            )
        codes, distinct = _distinct(texts)
        return np.array([known.setdefault(text, len(known)) for text in distinct], np.int64)[codes]

    def _partition_lists(self, block: LineBlock) -> list[bytes]:
        """Lists in the column of partitions; a job that has run on nodes is in one, whatever it is called."""
        place, nodes = self._places.get("partition"), self._places.get("node_list")
        if place is None or not block.contains(place, b",").any():
            return [b""] * len(block)
        ran = [False] * len(block) if nodes is None else [has_nodes(text) for text in block.column(nodes)]
        return [
            text.strip() if b"," in text and not on else b""
            for text, on in zip(block.column(place), ran, strict=True)
        ]

    def _gpus(self, block: LineBlock) -> NDArray[np.int64]:
        """GPUs of each line."""
        codes, distinct = _distinct(block.fields[:, self._places["resources"]])
        return np.array([parse_gpus(text) for text in distinct], np.int64)[codes]

    def _add_resources(self, block: LineBlock) -> None:
        """Memory, nodes and GPUs that each line says it held, or asked for where it says nothing of that."""
        held, asked = self._places["resources"], self._places.get("requested_resources")
        filled = block.fields[:, held] != b""
        fallback = block.fields[:, held if asked is None else asked]
        codes, distinct = _distinct(np.where(filled, block.fields[:, held], fallback))
        memory = [parse_memory(text) for text in distinct]
        wrong = np.array([value is None for value in memory], np.bool_)[codes]
        problem = "mem= is no amount like 4000M; export with --noconvert, or fix this line"
        for key, here in (("resources", filled), ("requested_resources", ~filled)):
            if key in self._places:
                self._check(block, key, wrong & here, problem)
        for key, values in (
            ("asked memory", [value or 0 for value in memory]),
            ("asked nodes", [parse_nodes(text) for text in distinct]),
            ("asked gpus", [parse_gpus(text) for text in distinct]),
        ):
            self._append(key, np.array(values, np.int64)[codes])

    def _add_texts(self, block: LineBlock) -> None:
        """Nodes, dependencies and names of jobs, as numbers of their texts."""
        for key, right, problem in (
            ("node_list", is_node_list, "no list of nodes like cn[001-004],gpu1; fix this line"),
            ("dependency", is_dependency, "no dependency like afterok:123,afterany:456; fix this line"),
            ("executable", lambda _: True, ""),
        ):
            if key not in self._places:
                continue
            place = self._places[key]
            known = self._codes.setdefault(key, {b"": 0})
            texts = [text.strip() for text in block.column(place)]
            if key == "dependency" and self._header[place].strip().lower() == "submitline":
                texts = [submitted_dependency(text) for text in texts]
            new = {text for text in texts if text not in known}
            bad = {text for text in new if not right(text)}
            if bad:
                self._check(block, key, np.array([text in bad for text in texts]), problem)
            self._append(key, np.array([known.setdefault(text, len(known)) for text in texts], np.int64))

    def _add_command_lines(self, block: LineBlock) -> None:
        """What jobs ask for on their command lines; other columns may have licences and partitions instead.

        The partition of a job without nodes may be the list that it asks for.
        """
        lines, held = self._places.get("command_line"), self._places.get("resources")
        if lines is None and held is None and "partition" not in self._places:
            return
        texts = [b""] * len(block) if lines is None else block.column(lines)
        asked = [asked_on(text) for text in texts]
        licences = [each.licences for each in asked]
        for row, text in enumerate(block.column(held) if held is not None else ()):
            if b"license/" in text:
                licences[row] = b",".join(_LICENCE.findall(text))
        lists = self._partition_lists(block)
        partitions = [each.partitions or text for each, text in zip(asked, lists, strict=True)]
        for key, texts in (("partitions", partitions), ("licences", licences)):
            known = self._codes.setdefault(key, {b"": 0})
            self._append(key, np.array([known.setdefault(text, len(known)) for text in texts], np.int64))
        for key, values in (
            ("tasks", [each.tasks for each in asked]),
            ("least", [each.least for each in asked]),
            ("exclusive", [each.exclusive for each in asked]),
        ):
            self._append(key, np.array(values, np.int64))

    def _check(self, block: LineBlock, key: str, wrong: NDArray[np.bool_], problem: str) -> None:
        if not wrong.any():
            return
        job = int(np.argmax(wrong))
        place = self._places[key]
        text = block.fields[job, place].decode("utf-8", "replace")
        count = int(np.count_nonzero(wrong))
        more = f" ({count:,} such lines here)" if count > 1 else ""
        raise TraceError(
            f"{self.file}:{block.line[job]}: {self._header[place]} is {text!r:.60}{more}: {problem}"
        )

    def has(self, key: str) -> bool:
        """Whether the export has the column of a key."""
        return key in self._places

    def columns(self, *, needed: str) -> dict[str, NDArray[Any]]:
        """All columns, whole; an error where there is none of the processors that are needed."""
        if not self._header:
            raise TraceError(f"{self.file}: the file is empty; export with: {COMMAND}")
        if not {needed, f"requested_{needed}"} & set(self._places):
            raise self._lacks("AllocCPUS" if needed == "cpus" else "NNodes")
        if not self._parts:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items())
            raise TraceError(f"{self.file}: no job, only {counts or 'a header'}; export another time")
        columns = {}
        for key in list(self._parts):
            columns[key] = np.concatenate(self._parts.pop(key))
        self._merge_states(columns)
        return columns

    def _merge_states(self, columns: dict[str, NDArray[Any]]) -> None:
        """States without what follows them."""
        states = [parse_state(text.decode("utf-8", "replace")) for text in self._codes["state"]]
        known = {state: code for code, state in enumerate(dict.fromkeys(states))}
        columns["state"] = np.array([known[state] for state in states], np.int64)[columns["state"]]
        self._codes["state"] = {state.encode(): code for state, code in known.items()}

    def names(self) -> dict[str, tuple[str, ...]]:
        """Names by number of each column that has them."""
        return {
            key: tuple(text.replace(_OR, b"|").decode("utf-8", "replace") for text in codes)
            for key, codes in self._codes.items()
        }


def _distinct(texts: NDArray[Any]) -> tuple[NDArray[np.int64], list[bytes]]:
    """Code of each text, and the texts by code."""
    codes, distinct = pd.factorize(texts.astype(object))
    return codes.astype(np.int64), distinct.tolist()

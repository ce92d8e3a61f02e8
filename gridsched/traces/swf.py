"""Reading and writing logs in the Standard Workload Format (SWF).

The format is that of the Parallel Workloads Archive, version 2.2: a line a job with 18 numbers, -1
for what is not known, and comments from ';' to the end of the line.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr
import zstandard
from numpy.typing import NDArray

from gridsched.errors import TraceError, WorkloadError, check_choice
from gridsched.io import atomic_write
from gridsched.traces._bytes import read_bytes
from gridsched.traces._header import header_lines, parse_header
from gridsched.traces._parse import FIELDS, ParsedText, parse
from gridsched.traces.schedule_log import schedule_log
from gridsched.workloads.table import SWF_FIELDS, Workload, add_counts

ExtraFields = Literal["refuse", "ignore"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SUFFIXES = re.compile(r"(\.swf|\.txt|\.gz|\.zst|\.bz2)+$", re.IGNORECASE)
_ROWS_WRITTEN_AT_ONCE = 100_000


def read_swf(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    max_bytes: int | None = None,
    extra_fields: ExtraFields = "refuse",
) -> Workload:
    """Read a log in the Standard Workload Format, plain or compressed (gzip, bzip2, Zstandard).

    Columns are int64; a column with a decimal point or an exponent in any value is float64. Fields may be
    separated by any white space, comments may stand anywhere; those that have a line of their own are
    kept in `Workload.header`. Nothing is cleaned: see `gridsched.traces.clean`.

    Parameters
    ----------
    path : path-like
        The log. Its compression is recognised by its first bytes, not by its name.
    name : str, optional
        Name of the workload; the file name without suffixes if not given.
    max_bytes : int, optional
        Largest uncompressed size; `GRIDSCHED_MAX_BYTES` from the environment, else 4 GiB, if not given.
    extra_fields : {"refuse", "ignore"}
        Treatment of fields after the 18 of the format, which some logs have. Jobs whose further fields
        are ignored are counted in `Workload.repaired`.

    Raises
    ------
    TraceError
        If the file cannot be read, or a line is not a job; the message names the line.
    ConfigurationError
        If the option is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=400, seed=1, load_scale=1.5)
    >>> gs.write_swf(gs.simulate(jobs, scheduler="easy"), "log.swf")
    >>> gs.read_swf("log.swf")
    Workload 'log': 400 jobs submitted over 38.5 h, 1 to 656 processors, cluster of 1,152, load 0.972
    """
    check_choice("extra_fields", extra_fields, get_args(ExtraFields))
    file = Path(path)
    text = read_bytes(file, max_bytes)
    if text.size == 1:
        raise TraceError(f"{file}: the file is empty; give a log")
    checksum = hashlib.sha256(text[:-1].data).hexdigest()
    if text[:3].tobytes() == _BYTE_ORDER_MARK:
        text = text[3:]
    if not text.all():
        line = 1 + int(np.count_nonzero(text[: int(np.argmin(text))] == ord("\n")))
        raise TraceError(f"{file}:{line}: a zero byte: this is a binary file; give a log")
    parsed = parse(text, ignore_extra=extra_fields == "ignore")
    if parsed.malformed:
        raise TraceError(_describe_malformed(file, text, parsed))
    if not len(parsed.columns[0]):
        raise TraceError(f"{file}: no job line, only comments or blanks; give a log that has jobs")
    header = tuple(parsed.header)
    facts = parse_header(header)
    columns: dict[str, Any] = dict(zip(SWF_FIELDS, parsed.columns, strict=True))
    return Workload(
        name=_SUFFIXES.sub("", file.name) if name is None else name,
        **columns,
        processors_available=facts.processors_available,
        unix_start_time=facts.unix_start_time,
        time_zone=facts.time_zone,
        header=header,
        acknowledgement=facts.acknowledgement,
        checksum=checksum,
        repaired=add_counts({}, {"more than 18 fields, the others ignored": parsed.longer}),
    )


def write_swf(workload: Workload | xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a workload, or the schedule of a run, as a log in the Standard Workload Format.

    `read_swf` reads a workload back unchanged, except for columns that the format does not have (`extra`,
    `dependencies`). The header lines come first, as they are, then a line a job with one blank between its
    fields. Facts that the header does not give (processors, start, time zone, acknowledgement) are put before
    it, and its lines about those that it gives otherwise are left out. The file is compressed if its name
    ends in .gz, .bz2 or .zst, with the same bytes each time.

    Parameters
    ----------
    workload : Workload or xarray.Dataset
        The jobs; or a run of `gridsched.simulate`, which is written as the cluster would have recorded it.
        Wait times are those of the simulation, run times from the first start to the last end, requested
        times what the scheduler took for run times, partitions the clusters where there are several (1 is the
        first). The status is 1 for a job that completed; 0 for one that was rejected, lost with its node or
        killed; 5 for one whose user gave up (its wait is until then) or that never became eligible; -1 for
        one that still waits. Jobs that did not run have a run time of -1.
    path : path-like
        Where; a file that is there is replaced.

    Raises
    ------
    WorkloadError
        If the workload has no jobs, a number that is not finite, or a header line that is no comment.
    ConfigurationError
        If the dataset is no run.
    TraceError
        If the file cannot be written.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=100, seed=1), scheduler="easy")
    >>> gs.write_swf(run, "easy.swf")
    >>> bool((gs.read_swf("easy.swf").wait_time == run.start_time - run.submit_time).all())
    True
    """
    if not isinstance(workload, Workload):
        workload = schedule_log(workload)
    if not len(workload):
        raise WorkloadError(f"{workload.name}: no jobs to write; an SWF log has at least one")
    for name, column in workload.columns.items():
        if not np.isfinite(column).all():
            raise WorkloadError(
                f"{workload.name}: {name} has values that are not finite; SWF has only numbers"
            )
    lines = header_lines(workload)
    try:
        with atomic_write(path) as temporary, _compressed(temporary) as file:
            file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
            table = pd.DataFrame(workload.columns, copy=False)
            table.to_csv(
                file,
                mode="wb",
                sep=" ",
                header=False,
                index=False,
                lineterminator="\n",
                chunksize=_ROWS_WRITTEN_AT_ONCE,
            )
    except OSError as error:
        raise TraceError(f"{path}: cannot be written ({error.strerror}); choose another place") from error


@contextlib.contextmanager
def _compressed(path: Path) -> Iterator[Any]:
    """Binary file that compresses as its suffix says, without names or times in the result."""
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(path.open("wb"))
        match path.suffix.lower():
            case ".gz":
                file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
            case ".bz2":
                file = stack.enter_context(bz2.BZ2File(file, "wb"))
            case ".zst":
                file = stack.enter_context(zstandard.ZstdCompressor(write_checksum=True).stream_writer(file))
        yield file


def _describe_malformed(file: Path, text: NDArray[np.uint8], parsed: ParsedText) -> str:
    """One line on the malformed lines: number, what is wrong, and how many there are."""
    (first, problem), *others = parsed.problems.items()
    problems = [f"{file}:{first}: {problem}", *(f"line {line}: {text}" for line, text in others)]
    total = f" ({parsed.malformed:,} malformed lines in all)" if parsed.malformed > 1 else ""
    fields = _fields_of_every_line(text)
    if fields and fields > FIELDS and all(f": {fields} fields" in problem for problem in problems):
        return (
            f"{file}:{first}: {fields} fields instead of {FIELDS}, as every job line has{total}; to read the "
            f"first {FIELDS} and ignore the others, use --extra-fields ignore (in Python, "
            'extra_fields="ignore")'
        )
    if not len(parsed.columns[0]) and ": field 1 " in problems[0]:
        return (
            f"{problems[0]}{total}; no line is a job: give a log in the Standard Workload Format, or an "
            "export of sacct --parsable2"
        )
    return (
        f"{'; '.join(problems)}{total}; a job line has {FIELDS} numbers, -1 for unknown: "
        "fix these lines or make them comments with ';'"
    )


def _fields_of_every_line(text: NDArray[np.uint8]) -> int | None:
    """Number of fields that all job lines have; none if they differ."""
    found: int | None = None
    for line in io.BytesIO(text.tobytes()):
        fields = len(line.partition(b";")[0].split())
        if fields and found not in (None, fields):
            return None
        found = fields or found
    return found

"""Answers of a simulator, as CSV files, against the stored schedules of the conformance cases.

A case of one cluster is answered with one line a job: `job`, and its start time in one column for each policy
and convention (`easy:instant`), or for each policy, or for one policy alone. A case of several clusters is
answered with one line for each part of a job: `variant`, `job`, `cluster`, `start_time`, `end_time`, and
where they are known `processors` and `earliest_time`. A job that does not run has a line without cluster,
with times of -1. The order of columns and lines does not matter, and other columns are not looked at.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gridsched.conformance.cases import (
    NONE,
    PASSES,
    POLICIES,
    Case,
    CaseSchedule,
    Part,
    normalised,
    schedule_path,
)
from gridsched.errors import ConfigurationError

START_TIME = "start_time"

NEEDED = ("job", "cluster", "start_time", "end_time")
"""Columns of answers to cases of several clusters, besides `variant`."""


@dataclass(frozen=True)
class Difference:
    """The first job of a column that a simulator places otherwise."""

    column: str
    job: int
    expected: str
    found: str


@dataclass(frozen=True)
class CaseVerdict:
    """Outcome of a case.

    Parameters
    ----------
    case : Case
        The case.
    skipped : str
        Why it was not looked at; empty if it was.
    passed, missing : int
        Columns that are as they should be, and that the answers do not have.
    differences : list of Difference
        Columns that are not.
    unknown : list of str
        What the answers do not say, and was not compared.
    """

    case: Case
    skipped: str = ""
    passed: int = 0
    missing: int = 0
    differences: list[Difference] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """What is compared: policies or variants by name (all if none), and conventions (any if None)."""

    policies: Collection[str] = ()
    passes: str | None = None
    overrun: str | None = None

    def columns_of(self, case: Case) -> list[str]:
        """Columns of a case that are compared."""
        columns = []
        for column in case.columns:
            policy, _, passes = column.partition(":")
            fits = not passes or self.passes in (None, passes)
            if fits and (not self.policies or policy in self.policies):
                columns.append(column)
        return columns


def check_answers(cases: Collection[Case], folder: Path, asked: Asked) -> list[CaseVerdict]:
    """Compare the answers `folder/NAME.csv` with the schedules of cases.

    Raises
    ------
    ConfigurationError
        If there is no folder, a policy is unknown, or a file is no table of answers.
    """
    if folder.is_file():
        raise ConfigurationError(f"{folder}: is a file; name the folder of the answers")
    if not folder.is_dir():
        raise ConfigurationError(f"{folder}: no such folder; make it with gridsched conformance export")
    known = {column.partition(":")[0] for case in cases for column in case.columns}
    for policy in asked.policies:
        if policy not in known:
            raise ConfigurationError(f"unknown policy {policy!r}; the cases have {', '.join(sorted(known))}")
    return [check_case(case, folder / f"{case.name}.csv", asked) for case in cases]


def check_case(case: Case, path: Path, asked: Asked) -> CaseVerdict:
    """Compare the answers of one file with the schedules of a case."""
    columns = asked.columns_of(case)
    if not columns:
        return CaseVerdict(case, skipped="not asked for")
    if asked.overrun not in (None, case.overrun) and case.kind == "cluster" and case.outruns:
        return CaseVerdict(case, skipped=f"jobs outrun their estimates, with {case.overrun}")
    if not path.exists():
        return CaseVerdict(case, skipped="no file", missing=len(columns))
    table = _Table.read(path)
    given = table.starts(case, asked) if case.kind == "cluster" else table.parts(case, asked)
    return _compare(case, columns, given, table)


def read_schedules(case: Case) -> dict[str, CaseSchedule]:
    """The stored schedules of a case, by column."""
    table = _Table.read(schedule_path(case.name))
    return table.starts(case, Asked()) if case.kind == "cluster" else table.parts(case, Asked())


# --- comparing ------------------------------------------------------------------------------------


def _compare(case: Case, columns: list[str], given: dict[str, CaseSchedule], table: _Table) -> CaseVerdict:
    stored = read_schedules(case)
    optional = {
        "processors": case.kind != "cluster",
        "earliest_time": any(schedule.earliest for schedule in stored.values()),
    }
    lacking = {name for name, matters in optional.items() if matters and name not in table.header}
    answered = [column for column in columns if column in given]
    found = [_first_difference(case, each, stored[each], given[each], lacking) for each in answered]
    differences = [each for each in found if each is not None]
    return CaseVerdict(
        case,
        passed=len(answered) - len(differences),
        missing=len(columns) - len(answered),
        differences=differences,
        unknown=sorted(lacking),
    )


def _first_difference(
    case: Case, column: str, expected: CaseSchedule, found: CaseSchedule, lacking: set[str]
) -> Difference | None:
    for job in expected.parts:
        wanted = _shown(case, expected, job, lacking)
        answer = _shown(case, found, job, lacking) if job in found.parts else "no line"
        if wanted != answer:
            return Difference(column, job, wanted, answer)
    return None


def _shown(case: Case, schedule: CaseSchedule, job: int, lacking: set[str]) -> str:
    """A job's part of a schedule as a reader sees it, and as it is compared."""
    parts = schedule.parts[job]
    if case.kind == "cluster":
        return str(parts[0].start_time)
    if not parts:
        time = schedule.earliest.get(job, NONE)
        return "does not run" + ("" if time == NONE or "earliest_time" in lacking else f" (earliest {time})")
    texts = []
    for part in parts:
        processors = "" if "processors" in lacking else f"{part.processors} on "
        texts.append(f"{processors}{part.cluster} from {part.start_time} to {part.end_time}")
    time = schedule.earliest.get(job, NONE)
    refused = [] if time == NONE or "earliest_time" in lacking else [f"earliest {time}"]
    return ", ".join([*texts, *refused])


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """A CSV file: its columns, and its lines with their numbers."""

    path: Path
    header: list[str]
    lines: list[tuple[int, dict[str, str]]]

    @classmethod
    def read(cls, path: Path) -> _Table:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
            raise ConfigurationError(f"{path}: cannot be read ({reason}); give a CSV file") from None
        reader = csv.reader(text.splitlines())
        try:
            numbered = [(reader.line_num, [each.strip() for each in fields]) for fields in reader]
        except csv.Error as error:
            raise ConfigurationError(f"{path}:{reader.line_num}: is no CSV ({error}); fix the line") from None
        header = numbered[0][1] if numbered else []
        if "job" not in header:
            raise ConfigurationError(
                f"{path}:1: no column 'job'; the columns are {', '.join(header) or 'none'}"
            )
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise ConfigurationError(f"{path}:1: the column {twice[0]!r} is there twice; name it otherwise")
        lines = []
        for number, fields in numbered[1:]:
            if not any(fields):
                continue
            if len(fields) != len(header):
                raise ConfigurationError(
                    f"{path}:{number}: {len(fields)} fields instead of {len(header)}; fix the line"
                )
            lines.append((number, dict(zip(header, fields, strict=True))))
        return cls(path, header, lines)

    def number(self, line: int, row: dict[str, str], name: str) -> int:
        """A whole number of a line, which may be written as 10.0."""
        text = row[name]
        try:
            value = int(text) if text.lstrip("-").isdigit() else float(text)
            if value != int(value):
                raise ValueError
        except (ValueError, OverflowError):
            raise ConfigurationError(
                f"{self.path}:{line}: {name} is {text!r}; give whole seconds, -1 for a job that does not run"
                if name != "job"
                else f"{self.path}:{line}: job is {text!r}; give the number of a job"
            ) from None
        return int(value)

    def job(self, case: Case, line: int, row: dict[str, str]) -> int:
        """The job of a line."""
        number = self.number(line, row, "job")
        if number not in {job.number for job in case.jobs}:
            raise ConfigurationError(
                f"{self.path}:{line}: there is no job {number}; {case.name} has 1 to {len(case.jobs)}"
            )
        return number

    def starts(self, case: Case, asked: Asked) -> dict[str, CaseSchedule]:
        """Answers to a case of one cluster, by `policy:passes`."""
        columns: dict[str, str] = {}
        for column, name in self._named(asked):
            if column in columns:
                raise ConfigurationError(
                    f"{self.path}:1: the columns {columns[column]!r} and {name!r} both have starts of "
                    f"{column}; leave one"
                )
            columns[column] = name
        schedules = {column: CaseSchedule({}, {}) for column in columns}
        for line, row in self.lines:
            job = self.job(case, line, row)
            for column, name in columns.items():
                if job in schedules[column].parts:
                    raise ConfigurationError(f"{self.path}:{line}: job {job} is there twice; leave one line")
                start = self.number(line, row, name)
                schedules[column].parts[job] = (Part("", 0, start, NONE),)
        return schedules

    def _named(self, asked: Asked) -> Iterator[tuple[str, str]]:
        """Columns of start times: `policy:passes`, and their names in the file."""
        for name in self.header:
            policy, _, passes = name.partition(":")
            # A column that nobody filled in is as good as none.
            if not any(row[name] for _, row in self.lines):
                continue
            if name == START_TIME:
                if len(asked.policies) != 1:
                    raise ConfigurationError(
                        f"{self.path}:1: a column 'start_time' does not say of which policy; "
                        "name one by --policy"
                    )
                (policy,) = asked.policies
            if policy not in POLICIES or passes not in ("", *PASSES):
                continue
            if not passes and asked.passes is None:
                raise ConfigurationError(
                    f"{self.path}:1: the column {name!r} does not say when passes are made; call it "
                    f"{' or '.join(f'{policy}:{each}' for each in PASSES)}, or give --passes"
                )
            yield f"{policy}:{passes or asked.passes}", name

    def parts(self, case: Case, asked: Asked) -> dict[str, CaseSchedule]:
        """Answers to a case of several clusters, by variant."""
        alone = list(asked.policies) if len(asked.policies) == 1 else list(case.variants)
        needed = NEEDED if len(alone) == 1 else ("variant", *NEEDED)
        for name in needed:
            if name not in self.header:
                raise ConfigurationError(
                    f"{self.path}:1: no column {name!r}; answers to {case.name} need {', '.join(needed)}"
                )
        parts: dict[str, dict[int, list[Part]]] = defaultdict(lambda: defaultdict(list))
        earliest: dict[str, dict[int, int]] = defaultdict(dict)
        for line, row in self.lines:
            if not row["start_time"]:
                continue
            variant = row.get("variant") or (alone[0] if len(alone) == 1 else "")
            if not variant:
                raise ConfigurationError(
                    f"{self.path}:{line}: variant is empty; give one of {', '.join(alone)}, or name one by "
                    "--policy"
                )
            if variant not in case.variants:
                raise ConfigurationError(
                    f"{self.path}:{line}: there is no variant {variant!r}; "
                    f"{case.name} has {', '.join(case.variants)}"
                )
            job = self.job(case, line, row)
            own = parts[variant][job]
            if self.number(line, row, "start_time") != NONE:
                own.append(self._part(case, line, row))
            if row.get("earliest_time") and self.number(line, row, "earliest_time") != NONE:
                earliest[variant][job] = self.number(line, row, "earliest_time")
        return {
            variant: CaseSchedule({job: normalised(own) for job, own in jobs.items()}, earliest[variant])
            for variant, jobs in parts.items()
        }

    def _part(self, case: Case, line: int, row: dict[str, str]) -> Part:
        if row["cluster"] not in case.clusters:
            raise ConfigurationError(
                f"{self.path}:{line}: there is no cluster {row['cluster']!r}; "
                f"{case.name} has {', '.join(case.clusters)}"
            )
        processors = self.number(line, row, "processors") if row.get("processors") else 0
        return Part(
            row["cluster"],
            processors,
            self.number(line, row, "start_time"),
            self.number(line, row, "end_time"),
        )

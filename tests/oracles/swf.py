"""A slow, plain reader of the Standard Workload Format: the oracle of the compiled one."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WHITE_SPACE = " \t\r\v\f"


def naive_parse(text: str) -> tuple[list[list[int | float]], list[str], list[int]]:
    """Rows of jobs, comment lines without line ends, and numbers of the malformed lines."""
    rows: list[list[int | float]] = []
    comments: list[str] = []
    malformed: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip(_WHITE_SPACE).startswith(";"):
            comments.append(line.rstrip("\r"))
            continue
        fields = re.split(f"[{_WHITE_SPACE}]+", line.partition(";")[0].strip(_WHITE_SPACE))
        if fields == [""]:
            continue
        values = [_value(field) for field in fields]
        known = [value for value in values if value is not None]
        if len(known) == len(fields) == 18:
            rows.append(known)
        else:
            malformed.append(number)
    return rows, comments, malformed


def _value(field: str) -> int | float | None:
    """Number that a field stands for, if it is one that can be kept."""
    if not _NUMBER.fullmatch(field) or len(field) > 64:
        return None
    if set(field) & set(".eE"):
        value = float(field)
        return value if abs(value) != float("inf") else None
    whole = int(field)
    return whole if abs(whole) < 2**63 else None

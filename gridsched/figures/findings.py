"""What a figure shows of its data, in one or two sentences made from its numbers.

Beside each catalogue of figures stands a mapping `FINDINGS` by kind. Sentences that always hold are captions,
see `gridsched.experiments.captions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

Finding = Callable[[pd.DataFrame, Mapping[str, Any]], str]
"""Sentences on the numbers of a figure, given with the attributes of its dataset; plain text."""

NOTHING = "Nothing to compare: no run of this kind has a value."

_MAX_NAMES = 4
_LONGEST_NAME = 44


# --- words ----------------------------------------------------------------------------------------


def name(label: object) -> str:
    """A label on one line, shortened where it is long."""
    line = " ".join(str(label).split())
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def listed(labels: Iterable[object], most: int = _MAX_NAMES) -> str:
    """Labels as a list in words: "a, b and c"; of many the first ones and how many more."""
    names = [name(label) for label in dict.fromkeys(labels)]
    if len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def percent(share: float) -> str:
    """A share in per cent with at most one digit after the point."""
    size = abs(100 * share)
    text = f"{100 * share:.0f}" if size >= 10 or size == 0 else f"{100 * share:.2g}"
    if 99 < size < 100:  # nearly all is not all
        text = f"{np.sign(share) * min(size, 99.9):.1f}"
    return f"{text} %".replace("-", "\N{MINUS SIGN}")


def counted(count: int, what: str) -> str:
    """A count with its noun."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def sentences(*parts: str) -> str:
    """Parts that are not empty, one after the other."""
    return " ".join(part for part in parts if part)


def detail(text: str) -> str:
    """Sentences that the first screen of a report leaves to the section of the figure: indented lines."""
    return f"\n  {' '.join(text.split())}\n" if text else ""


# --- tables ---------------------------------------------------------------------------------------


def known(numbers: pd.DataFrame, column: str = "mean") -> pd.DataFrame:
    """Rows with a finite value."""
    if column not in numbers:
        return numbers.iloc[:0]
    finite = np.isfinite(numbers[column].to_numpy(np.float64))
    return numbers.iloc[np.flatnonzero(finite)]


def records(numbers: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as mappings from names of columns."""
    return [{str(key): value for key, value in row.items()} for row in numbers.to_dict("records")]


def highest(numbers: pd.DataFrame, column: str = "mean") -> dict[str, Any]:
    """The first row with the largest value of a column, of a table with rows."""
    return records(numbers.sort_values(column, kind="stable", ascending=False).iloc[:1])[0]

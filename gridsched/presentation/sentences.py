"""Sentences of findings: numbers with units and intervals, lists of names, comparisons.

One sentence makes one comparison: who, which measure, how much, with which interval. "Significantly" stands
only where the test of that very comparison, corrected for all that are shown with it, excludes no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridsched.measures import measures
from gridsched.metrics.measure import Measure
from gridsched.units import duration, number

Attributes = Mapping[str, Any]
"""Information about a dataset for forms and findings, see `gridsched.presentation.showing.attributes_of`."""

Row = Mapping[Any, Any]
"""A row of the numbers of a figure."""

MOST_NAMES = 4
_LONGEST_NAME = 44

_COUNTS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def first_measure(numbers: pd.DataFrame) -> tuple[pd.DataFrame, Measure]:
    """Rows of the first measure of a figure, which sentences speak of."""
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]]
    return own, known_measure(str(own["measure"].iloc[0]).removesuffix("_series"))


def known_measure(name: str) -> Measure:
    """The measure of a name; one without better direction for a variable that is none."""
    return measures().get(name) or Measure(name, name.removesuffix("_series").replace("_", " "))


def value_text(value: float, unit: str = "1", *, share: bool = False) -> str:
    """A value with its unit: a duration, per cent of a share, or a number."""
    if not np.isfinite(value):
        return "unknown"
    if share:
        return percent(value)
    if unit == "s":
        return duration(value)
    return number(value) if unit == "1" else f"{number(value)} {unit}"


def percent(share: float) -> str:
    """A share in per cent with at most one digit after the point."""
    size = abs(100 * share)
    text = f"{100 * share:.0f}" if size >= 10 or size == 0 else f"{100 * share:.2g}"
    if 99 < size < 100:  # nearly all is not all
        text = f"{np.sign(share) * min(size, 99.9):.1f}"
    return f"{text} %".replace("-", "\N{MINUS SIGN}")


def interval_text(low: float, high: float, unit: str = "1", *, share: bool = False) -> str:
    """An interval in brackets with one unit, nothing where it is unknown: "[0.39, 0.63]", "[1.2, 3.4] h"."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return ""
    shown, of = _written(low, high, unit, share=share)
    return f"[{shown(low)}, {shown(high)}]" + ("" if of == "1" else f" {of}")


def _written(low: float, high: float, unit: str, *, share: bool) -> tuple[Callable[[float], str], str]:
    """How an estimate is written next to its interval, and in which unit."""
    if share:
        return lambda value: f"{100 * value:.3g}", "%"
    if unit != "s":
        return number, unit
    largest = max(abs(low), abs(high))
    units = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0))
    of, length = next((each for each in units if largest >= each[1]), ("s", 1.0))
    return lambda value: number(value / length), of


def estimate_text(row: Row, unit: str = "1", *, share: bool = False, of: str = "") -> str:
    """A value with its interval, in one unit: "0.49 [0.39, 0.63]".

    Parameters
    ----------
    row : mapping
        With `value`, `low` and `high`, or the names that begin with `of` and an underscore.
    unit : str
        Unit of the value.
    share : bool
        Whether it is a share.
    of : str
        "ratio" for the comparison of a row.
    """
    names = (of, f"{of}_low", f"{of}_high") if of else ("value", "low", "high")
    value, low, high = (float(row.get(name, np.nan)) for name in names)
    bounds = interval_text(low, high, unit, share=share)
    if not bounds:
        return value_text(value, unit, share=share)
    return f"{_written(low, high, unit, share=share)[0](value)} {bounds}"


def extremes(
    rows: pd.DataFrame,
    shown: Callable[[Row], str],
    label: Callable[[Row], str] = lambda row: name(row["scheduler"]),
) -> str:
    """First and last of rows in order, each with its label: "2 (a) to 5 (b)"."""
    ends = (rows.iloc[place].to_dict() for place in (0, -1))
    return " to ".join(f"{shown(row)} ({label(row)})" for row in ends)


def name(label: object) -> str:
    """A label on one line, shortened where it is long."""
    line = " ".join(str(label).split())
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def listed(labels: Iterable[object], most: int = MOST_NAMES) -> str:
    """Labels as a list in words: "a, b and c"; of many the first ones and how many more."""
    names = [name(label) for label in dict.fromkeys(labels)]
    if len(names) > most + 1:
        names = [*names[:most], f"{len(names) - most} more"]
    return joined(names)


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Parts of a sentence as a list in words, whole; with semicolons where parts have commas themselves."""
    if len(parts) > 2 and any(", " in part for part in parts):
        return f"{'; '.join(parts[:-1])}; {word} {parts[-1]}"
    return f" {word} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def count(number_of: int, what: str = "") -> str:
    """A small count in words, with its noun: "two schedulers"."""
    text = _COUNTS[number_of] if 0 <= number_of < len(_COUNTS) else f"{number_of:,}"
    return f"{text} {what}{'' if number_of == 1 else 's'}" if what else text


def spanned(counts: Collection[int]) -> str:
    """Counts as one, or from the smallest to the largest: "60", "1 to 4"; nothing without any."""
    return " to ".join(f"{each:,}" for each in sorted({min(counts), max(counts)})) if counts else ""


def capital(text: str) -> str:
    """Text that begins with a capital letter, as a sentence of measures does; names keep theirs."""
    return text[:1].upper() + text[1:]

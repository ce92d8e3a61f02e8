"""What a figure shows of its data, in one or two sentences made from its numbers.

Beside each catalogue of figures stands a mapping `FINDINGS` by kind. A finding names the best and the worst,
by how much, and whether that is sure: "surely" stands only where a 95 % interval excludes the value that is
compared with. Sentences that always hold are captions, see `gridsched.experiments.captions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridsched.figures.style import duration, number

Finding = Callable[[pd.DataFrame, Mapping[str, Any]], str]
"""Sentences on the numbers of a figure, given with the attributes of its dataset; plain text."""

Form = Callable[[float], str]
"""How a number is written."""

NOTHING = "Nothing to compare: no run of this kind has a value."
NO_INTERVALS = "This figure has no intervals: small differences may be chance."

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


def shown(row: Mapping[str, Any], form: Form = number) -> str:
    """A mean with its interval, if it has one: "0.42 (0.31 to 0.55)"."""
    text, low, high = form(row["mean"]), row.get("low", np.nan), row.get("high", np.nan)
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        return text
    return f"{text} ({form(low)} to {form(high)})"


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


def lowest(numbers: pd.DataFrame, column: str = "mean") -> dict[str, Any]:
    """The first row with the smallest value of a column, of a table with rows."""
    return records(numbers.sort_values(column, kind="stable").iloc[:1])[0]


def highest(numbers: pd.DataFrame, column: str = "mean") -> dict[str, Any]:
    """The first row with the largest value of a column, of a table with rows."""
    return records(numbers.sort_values(column, kind="stable", ascending=False).iloc[:1])[0]


def has_intervals(numbers: pd.DataFrame) -> bool:
    """Whether some row has an interval of positive width."""
    if not {"low", "high"} <= set(numbers.columns):
        return False
    low, high = (numbers[side].to_numpy(np.float64) for side in ("low", "high"))
    return bool((np.isfinite(low) & np.isfinite(high) & (high > low)).any())


def is_below(row: Mapping[str, Any], value: float) -> bool:
    """Whether the interval of a row lies below a value."""
    return bool(row.get("high", np.nan) < value)


def is_above(row: Mapping[str, Any], value: float) -> bool:
    """Whether the interval of a row lies above a value."""
    return bool(row.get("low", np.nan) > value)


def overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two intervals are not apart; one that is unknown is apart from none."""
    return not is_above(one, other.get("high", np.nan)) and not is_below(one, other.get("low", np.nan))


def is_open(row: Mapping[str, Any], value: float) -> bool:
    """Whether neither is sure."""
    return not is_below(row, value) and not is_above(row, value)


# --- sentences ------------------------------------------------------------------------------------


def extremes(
    numbers: pd.DataFrame,
    label: str | Sequence[str],
    what: str,
    form: Form = number,
    *,
    highest_first: bool = False,
) -> str:
    """Lowest and highest mean of a table, and which intervals overlap with that of the first.

    Parameters
    ----------
    numbers : DataFrame
        Columns mean, low and high if known, and the labels.
    label : str or sequence of str
        Columns that name a row.
    what : str
        What the means are, as it follows "the lowest".
    form : function
        How they are written.
    highest_first : bool
        Whether more is better.

    Returns
    -------
    str
        One to three sentences; says so where there is nothing, one row, or where all are the same.
    """
    rows = records(known(numbers).sort_values("mean", kind="stable", ascending=not highest_first))
    if not rows:
        return NOTHING
    best, worst = rows[0], rows[-1]
    if len(rows) == 1:
        return f"{_label(best, label)} alone has a {what}: {shown(best, form)}."
    if _same(best["mean"], worst["mean"], form):
        return f"All {len(rows)} have the same {what}: {form(best['mean'])}."
    first, last = ("highest", "lowest") if highest_first else ("lowest", "highest")
    ties = [row for row in rows if _same(row["mean"], best["mean"], form)]
    text = (
        f"The {first} {what} is {shown(best, form)}, under {listed(_label(row, label) for row in ties)}; "
        f"the {last} {shown(worst, form)}, under {_label(worst, label)}."
    )
    return sentences(text, _overlap(rows[len(ties) :], best, label))


def _overlap(others: Sequence[Mapping[str, Any]], best: Mapping[str, Any], label: str | Sequence[str]) -> str:
    """Who cannot be told from the best by intervals; nothing where none is known."""
    if not np.isfinite(best.get("low", np.nan)) or not np.isfinite(best.get("high", np.nan)):
        return ""
    near = [row for row in others if overlap(row, best)]
    if not near:
        return f"The interval of {_label(best, label)} lies apart from all others."
    those = "that" if len(near) == 1 else "those"
    which = listed(_label(row, label) for row in near)
    return f"The interval of {_label(best, label)} overlaps with {those} of {which}."


def against(
    numbers: pd.DataFrame,
    label: str | Sequence[str],
    what: str,
    neutral: float,
    form: Form = number,
    *,
    highest_first: bool = False,
    word: str = "under",
) -> str:
    """Lowest and highest of numbers that compare with something, and for whom the side is sure.

    Parameters
    ----------
    numbers : DataFrame
        Columns mean, low, high and the labels.
    label : str or sequence of str
        Columns that name a row.
    what : str
        What is compared, as it follows "the lowest": "mean wait relative to easy".
    neutral : float
        Value that says that there is no difference: 1 for ratios, 0 for differences.
    form : function
        How numbers are written.
    highest_first : bool
        Whether more is better.
    word : str
        What stands before a label: a mean is under a scheme, an advantage over one.

    Returns
    -------
    str
        As of `extremes`; then whether the intervals of these two overlap, and how many are surely below and
        above the neutral value.
    """
    rows = records(known(numbers).sort_values("mean", kind="stable", ascending=not highest_first))
    if not rows:
        return NOTHING
    best, worst = rows[0], rows[-1]
    first, last = ("highest", "lowest") if highest_first else ("lowest", "highest")
    if len(rows) == 1:
        text = f"The {what} is {_sided(best, neutral, form)} {word} {_label(best, label)}."
    else:
        text = (
            f"The {first} {what} is {_sided(best, neutral, form)}, {word} {_label(best, label)}; "
            f"the {last} {_sided(worst, neutral, form)}, {word} {_label(worst, label)}."
        )
    if not has_intervals(numbers):
        return sentences(text, NO_INTERVALS)
    if len(rows) > 1 and overlap(best, worst):
        text = sentences(text, detail("These two intervals overlap, so their order is not sure."))
    if len(rows) < 3:
        return text
    below = sum(is_below(row, neutral) for row in rows)
    above = sum(is_above(row, neutral) for row in rows)
    counts = {
        f"surely below {form(neutral)}": below,
        f"surely above {form(neutral)}": above,
        "not sure": len(rows) - below - above,
    }
    tally = [f"{'all' if count == len(rows) else count} {side}" for side, count in counts.items() if count]
    return sentences(text, f"Of {len(rows)}: {', '.join(tally)}.")


def _sided(row: Mapping[str, Any], neutral: float, form: Form) -> str:
    """A number with its interval, and whether its side of the neutral value is sure."""
    if not np.isfinite(row.get("low", np.nan)):
        return shown(row, form)
    return f"{shown(row, form)}{'' if not is_open(row, neutral) else ', not sure'}"


def _label(row: Mapping[str, Any], label: str | Sequence[str]) -> str:
    columns = [label] if isinstance(label, str) else label
    return name(", ".join(str(row[column]) for column in columns if str(row[column])))


def _same(one: float, other: float, form: Form) -> bool:
    """Whether two values read the same."""
    return form(one) == form(other)


def missing(numbers: pd.DataFrame, label: str, why: str = "no value") -> str:
    """Who has no value at all."""
    without = [each for each in dict.fromkeys(numbers[label]) if known(numbers[numbers[label] == each]).empty]
    return f"{listed(without)}: {why}." if without else ""


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[:4] in ("The ", "All ") else text


def durations(row: Mapping[str, Any]) -> str:
    """A duration with its interval."""
    return shown(row, duration)

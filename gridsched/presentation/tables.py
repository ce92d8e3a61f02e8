"""Tables of the page: who ranks where, and the numbers of a figure where the page is too narrow for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gridsched.experiments.specification import Specification
from gridsched.presentation.numbers import units_word
from gridsched.presentation.sentences import estimate_text, known_measure, name

MOST_SCENARIOS = 3
"""Scenarios with columns of their own in a ranking table."""

MOST_ROWS = 40
"""Rows of the table that stands for a figure on a narrow page."""


@dataclass(frozen=True)
class PageTable:
    """A table of texts.

    Parameters
    ----------
    caption : str
        What it shows.
    header : list of str
        Names of the columns.
    rows : list of list of str
        The first cell of a row is its name.
    marked : int
        Row of the reference; -1 for none.
    in_words : bool
        Whether most cells are words, which are broken into lines.
    """

    caption: str
    header: list[str]
    rows: list[list[str]]
    marked: int = -1
    in_words: bool = False


def ranking_table(
    numbers: pd.DataFrame, specification: Specification, knows: Mapping[str, str], reference: str
) -> PageTable | None:
    """Schedulers from the best to the worst: value, ratio to the reference with its interval, replicates.

    Parameters
    ----------
    numbers : DataFrame
        Numbers of a ranking.
    specification : Specification
        The ranking.
    knows : mapping
        What each scheduler has to know to decide.
    reference : str
        Label of the reference.

    Returns
    -------
    PageTable or None
        None where schedulers are not what is ranked.
    """
    if specification.form != "ranking" or specification.hue != "scheduler" or "scheduler" not in numbers:
        return None
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]]
    if specification.lanes in own and own[specification.lanes].nunique() > 1:
        own = own[own[specification.lanes] == own[specification.lanes].iloc[0]]
    known = known_measure(str(own["measure"].iloc[0]))
    scenarios = list(dict.fromkeys(own.get("scenario", ["all"])))[:MOST_SCENARIOS]
    compared = specification.reference == "scheduler" and specification.relation in own
    by = own.set_index("scheduler")
    order = own[own["scenario"] == scenarios[0]] if "scenario" in own else own
    order = order.sort_values("value", ascending=known.better != "higher", kind="stable")
    labels = [str(each) for each in dict.fromkeys([*order["scheduler"], *own["scheduler"]])]
    header = ["scheduler"]
    for scenario in scenarios:
        place = f", {scenario}" if len(scenarios) > 1 else ""
        header += [f"{known.words}{place}", *([f"relative to {reference}{place}"] if compared else [])]
    header += [units_word(own), *(["has to know"] if any(knows.values()) else [])]
    rows = []
    for label in labels:
        cells = [label]
        number = ""
        for scenario in scenarios:
            row = _row(by, label, scenario)
            cells.append("" if row is None else estimate_text(row, known.unit, share=known.share))
            if row is not None:
                number = f"{int(row['number']):,}"
            if compared:
                cells.append(
                    "" if row is None or label == reference else _relative(row, specification.relation)
                )
        rows.append([*cells, number, *([knows.get(label, "")] if any(knows.values()) else [])])
    more = (
        f"; {own['scenario'].nunique() - len(scenarios)} more scenarios in the numbers"
        if "scenario" in own and own["scenario"].nunique() > len(scenarios)
        else ""
    )
    caption = f"{known.words[:1].upper()}{known.words[1:]} by scheduler{more}"
    return PageTable(caption, header, rows, labels.index(reference) if reference in labels else -1)


def _row(by: pd.DataFrame, label: str, scenario: str) -> dict[Any, Any] | None:
    if label not in by.index:
        return None
    rows = by.loc[[label]]
    rows = rows[rows["scenario"] == scenario] if "scenario" in rows else rows
    return rows.iloc[0].to_dict() if len(rows) else None


def _relative(row: dict[Any, Any], relation: str) -> str:
    """A comparison with its interval, or why there is none."""
    text = estimate_text(row, of=relation)
    reason = str(row[f"{relation}_reason"]) if row.get(f"{relation}_reason") else ""
    if reason.startswith("identical"):
        return f"{text} (identical)"
    return f"{text}{' (not estimable)' if reason else '' if row['significant'] else ' (n.s.)'}"


def narrow_table(numbers: pd.DataFrame, specification: Specification) -> PageTable | None:
    """The numbers of a figure as a table, for pages that are too narrow for it; none of drawings by hand."""
    if specification.own or numbers.empty or specification.form in ("distribution", "series"):
        return None
    axes = [specification.facets, specification.hue, specification.lanes, specification.x]
    columns = [axis for axis in dict.fromkeys(axes) if axis in numbers and numbers[axis].nunique() > 1]
    several = numbers["measure"].nunique() > 1
    rows = []
    for row in numbers.head(MOST_ROWS).to_dict("records"):
        known = known_measure(str(row["measure"]))
        compared = (
            specification.reference
            and specification.relation in row
            and pd.notna(row[specification.relation])
        )
        text = (
            estimate_text(row, of=specification.relation)
            if compared
            else estimate_text(row, known.unit, share=known.share)
        )
        first = ", ".join(name(row[column]) for column in columns) or known.words
        rows.append([first, *([known.words] if several else []), text])
    header = [", ".join(columns) or "measure", *(["measure"] if several else []), "value"]
    return PageTable(specification.title, header, rows)

"""Tables of the page: who ranks where, and the numbers of a figure where the page is too narrow for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gridsched.experiments.specification import Specification
from gridsched.inference import IDENTICAL
from gridsched.metrics.measure import Measure
from gridsched.presentation.numbers import units_word
from gridsched.presentation.sentences import (
    capital,
    estimate_text,
    first_measure,
    known_measure,
    name,
    spanned,
)

MOST_SCENARIOS = 3
"""Scenarios with columns of their own in a ranking table; two where they have a comparison each."""

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
) -> PageTable:
    """Schedulers from the best to the worst: value, ratio to the reference with its interval, replicates.

    Few schedulers in many scenarios have a row for each scenario instead.

    Parameters
    ----------
    numbers : DataFrame
        Numbers of a ranking of schedulers.
    specification : Specification
        The ranking.
    knows : mapping
        What each scheduler has to know to decide.
    reference : str
        Label of the reference.
    """
    own, known = first_measure(numbers)
    own = own if "scenario" in own else own.assign(scenario="all")
    own = _first_lanes(own, specification)
    scenarios = list(dict.fromkeys(own["scenario"]))
    compared = specification.reference == "scheduler" and specification.relation in own
    order = own[own["scenario"] == scenarios[0]]
    order = order.sort_values("value", ascending=known.better != "higher", kind="stable")
    labels = [str(each) for each in dict.fromkeys([*order["scheduler"], *own["scheduler"]])]
    to = f"{'difference from' if specification.relation == 'difference' else 'relative to'} {reference}"
    by = {(row["scheduler"], row["scenario"]): row for row in reversed(own.to_dict("records"))}

    def value(label: str, scenario: Any) -> str:
        row = by.get((label, scenario))
        return estimate_text(row, known.unit, share=known.share) if row else ""

    def relative(label: str, scenario: Any) -> str:
        row = by.get((label, scenario))
        return _relative(row, specification.relation, known) if row and label != reference else ""

    if len(scenarios) > MOST_SCENARIOS and compared and len(labels) <= MOST_SCENARIOS and reference in labels:
        others = [label for label in labels if label != reference]
        return PageTable(
            f"{capital(known.words)} by scenario",
            [
                "scenario",
                f"{known.words}, {reference}",
                *(f"{each}, {to}" for each in others),
            ],
            [
                [name(each), value(reference, each), *(relative(other, each) for other in others)]
                for each in scenarios
            ],
        )
    noted = any(knows.values())
    header, rows = ["scheduler"], []
    shown = MOST_SCENARIOS - compared
    more = len(scenarios) - shown
    scenarios = scenarios[:shown]
    for scenario in scenarios:
        place = f", {scenario}" if len(scenarios) > 1 else ""
        header += [f"{known.words}{place}", *([f"{to}{place}"] if compared else [])]
    header += [units_word(own), *(["has to know"] if noted else [])]
    for label in labels:
        cells, counts = [label], []
        for scenario in scenarios:
            row = by.get((label, scenario))
            counts += [int(row["number"])] if row else []
            cells += [value(label, scenario), *([relative(label, scenario)] if compared else [])]
        rows.append([*cells, spanned(counts), *([knows.get(label, "")] if noted else [])])
    further = f"; {more} more scenario{'s' * (more > 1)} in the numbers" if more > 0 else ""
    marked = labels.index(reference) if reference in labels else -1
    return PageTable(f"{capital(known.words)} by scheduler{further}", header, rows, marked)


def _first_lanes(numbers: pd.DataFrame, specification: Specification) -> pd.DataFrame:
    """Rows of the first lane of each panel, which scenarios name where it is not the same of all."""
    axis = specification.lanes
    if axis not in numbers or numbers[axis].nunique() < 2:
        return numbers
    facets = numbers[specification.facets] if specification.facets in numbers else numbers["measure"]
    own = numbers[numbers[axis] == numbers.groupby(facets)[axis].transform("first")]
    if own[axis].nunique() == 1:
        return own
    return own.assign(scenario=own["scenario"].astype(str) + " (" + own[axis].astype(str) + ")")


def _relative(row: Mapping[Any, Any], relation: str, known: Measure) -> str:
    """A comparison with its interval, or why there is none."""
    note = "" if row["significant"] else " (n.s.)"
    if str(row.get(f"{relation}_reason") or "").startswith(IDENTICAL):
        note = " (identical)"
    elif pd.isna(row["probability"]):
        note = " (not estimable)"
    unit, share = _unit(relation, known)
    return f"{estimate_text(row, unit, share=share, of=relation)}{note}"


def _unit(relation: str, known: Measure) -> tuple[str, bool]:
    """Unit of a comparison, and whether it is one of shares: a ratio has none."""
    return ("1", False) if relation == "ratio" else (known.unit, known.share)


def narrow_table(numbers: pd.DataFrame, specification: Specification) -> PageTable | None:
    """The numbers of a figure as a table, for pages that are too narrow for it; none of drawings by hand."""
    if specification.own or numbers.empty or specification.form in ("distribution", "series"):
        return None
    relation = specification.relation if specification.reference else ""
    axes = [specification.facets, specification.hue, specification.lanes, specification.x]
    columns = [axis for axis in dict.fromkeys(axes) if axis in numbers and numbers[axis].nunique() > 1]
    several = numbers["measure"].nunique() > 1
    rows = []
    for row in numbers.head(MOST_ROWS).to_dict("records"):
        known = known_measure(str(row["measure"]))
        compared = pd.notna(row.get(relation))
        labels = [name(row[column]) for column in columns if pd.notna(row[column])]
        first = ", ".join(labels) or known.words
        words = [known.words] if several else []
        of = relation if compared else ""
        unit, share = _unit(of, known)
        rows.append([first, *words, estimate_text(row, unit, share=share, of=of)])
    header = [", ".join(columns) or "measure", *(["measure"] if several else []), "value"]
    return PageTable(specification.title, header, rows)

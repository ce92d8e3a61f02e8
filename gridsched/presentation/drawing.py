"""Figures and findings of specifications: the form of each does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from gridsched.experiments.specification import FormName, Specification
from gridsched.experiments.tasks import function_at
from gridsched.figures import style
from gridsched.presentation import findings, forms, grids

_FORMS: dict[FormName, tuple[Callable[..., Figure], Callable[..., list[str]]]] = {
    "ranking": (forms.ranking, findings.ranking),
    "response": (forms.response, findings.response),
    "distribution": (forms.distribution, findings.distribution),
    "series": (forms.series, findings.series),
    "composition": (forms.composition, findings.composition),
    "map": (grids.flow_map, grids.flows),
}


@style.styled
def draw(
    specification: Specification, numbers: pd.DataFrame, attributes: Mapping[str, Any] | None = None
) -> style.Drawing:
    """The figure of a specification, with its numbers.

    Parameters
    ----------
    specification : Specification
        What is shown.
    numbers : DataFrame
        See `gridsched.presentation.numbers`.
    attributes : mapping, optional
        Of the dataset of the study, for the name of the reference.
    """
    if numbers.empty or not numbers["value"].notna().any():
        figure = style.new_figure(1.0)
        style.no_data(figure.subplots(), "no values")
        return figure, numbers
    return _FORMS[specification.form][0](numbers, specification, attributes or {}), numbers


def finding(
    specification: Specification, numbers: pd.DataFrame, attributes: Mapping[str, Any] | None = None
) -> list[str]:
    """What a figure shows: sentences, the first of which is its headline."""
    if specification.finding:
        found: Callable[..., list[str]] = function_at(specification.finding)
    elif specification.form in _FORMS:
        found = _FORMS[specification.form][1]
    else:
        return []
    return found(numbers, specification, attributes or {})

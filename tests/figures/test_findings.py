"""Findings of figures with a catalogue: captions, lists of names, tables without rows."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.experiments.captions import caption
from gridsched.experiments.tasks import function_at
from gridsched.figures import findings

CATALOGUES = ("gridsched.experiments.calibration.figures:CALIBRATION_FIGURES",)


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_every_kind_of_figure_has_a_finding_and_a_caption(catalogue: str) -> None:
    kinds = set(function_at(catalogue))
    assert kinds <= set(function_at(f"{catalogue.partition(':')[0]}:FINDINGS"))
    assert all(caption(kind)["text"] for kind in kinds)


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=9))
def test_lists_of_names_are_short_and_on_one_line(labels: list[str]) -> None:
    text = findings.listed(labels)
    assert "\n" not in text
    assert len(text) < 6 * 60


@given(st.floats(0, 1).filter(lambda share: 0 < share < 1))
def test_nearly_all_is_not_all(share: float) -> None:
    assert findings.percent(share) != findings.percent(1.0)


EMPTY: dict[str, tuple[str, ...]] = {
    "model_shares": ("quantity", "size_class", "source", "value"),
    "model_quantiles": ("kind", "size_class", "source", "quantile", "value", "ks"),
    "size_spread": ("quantity", "machine", "spread", "nodes", "value"),
    "calibration_overview": ("workload", "layers", "half", "ratio", "correlation", "near"),
    "calibration_layers": ("workload", "layers", "half", "ratio", "correlation", "near"),
}
"""Columns of the numbers of each kind of figure."""


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_figures_without_data_have_a_sentence(catalogue: str) -> None:
    for kind in function_at(catalogue):
        finding = function_at(f"{catalogue.partition(':')[0]}:FINDINGS")[kind]
        empty = pd.DataFrame({column: [] for column in EMPTY[kind]})
        text = finding(empty, {"reference": "easy"})
        assert text.endswith("."), kind
        assert "nan" not in text.lower(), kind

"""Findings: the right best, nothing sure where intervals overlap, words for tables with nothing to tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.experiments.captions import caption
from gridsched.experiments.tasks import function_at
from gridsched.figures import findings

NAN = float("nan")

CATALOGUES = (
    "gridsched.experiments.calibration.figures:CALIBRATION_FIGURES",
    "gridsched.experiments.models.figures:MODEL_FIGURES",
)


def told(
    catalogue: str, kind: str, numbers: pd.DataFrame, attributes: Mapping[str, Any] | None = None
) -> str:
    place = next(each for each in CATALOGUES if each.partition(":")[0].endswith(catalogue))
    finding: findings.Finding = function_at(f"{place.partition(':')[0]}:FINDINGS")[kind]
    return finding(numbers, attributes or {"reference": "easy"})


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_every_kind_of_figure_has_a_finding_and_a_caption(catalogue: str) -> None:
    kinds = set(function_at(catalogue))
    assert kinds <= set(function_at(f"{catalogue.partition(':')[0]}:FINDINGS"))
    assert all(caption(kind)["text"] for kind in kinds)


def rows(*values: tuple[str, float, float, float], **more: Any) -> pd.DataFrame:
    """Schemes with mean, low and high."""
    return pd.DataFrame(values, columns=["scheme", "mean", "low", "high"]).assign(**more)


# --- what all share -------------------------------------------------------------------------------


def test_the_best_is_named_and_is_sure_only_where_its_interval_lies_apart() -> None:
    apart = findings.extremes(rows(("b", 5, 4, 6), ("a", 1, 0.5, 2)), "scheme", "wait")
    assert apart.startswith("The lowest wait is 1 (0.5 to 2), under a; the highest 5 (4 to 6), under b.")
    assert "apart from all others" in apart
    near = findings.extremes(rows(("b", 5, 4, 6), ("a", 3, 1, 4.5)), "scheme", "wait")
    assert "The interval of a overlaps with that of b." in near
    assert "apart" not in near


def test_tables_of_one_of_none_and_of_the_same() -> None:
    assert findings.extremes(rows(), "scheme", "wait") == findings.NOTHING
    assert findings.extremes(rows(("a", NAN, NAN, NAN)), "scheme", "wait") == findings.NOTHING
    assert findings.extremes(rows(("a", 2, NAN, NAN)), "scheme", "wait") == "a alone has a wait: 2."
    same = findings.extremes(rows(("a", 2, 1, 3), ("b", 2, 1, 3)), "scheme", "wait")
    assert same == "All 2 have the same wait: 2."
    assert findings.against(rows(), "scheme", "ratio", 1.0) == findings.NOTHING


def test_sides_of_a_comparison_are_counted() -> None:
    table = rows(("a", 0.5, 0.4, 0.6), ("b", 0.9, 0.7, 1.1), ("c", 2, 1.5, 3))
    text = findings.against(table, "scheme", "ratio", 1.0)
    assert "is 0.5 (0.4 to 0.6), under a; the highest 2 (1.5 to 3), under c." in text
    assert "Of 3: 1 surely below 1, 1 surely above 1, 1 not sure." in text
    best = findings.against(table, "scheme", "ratio", 1.0, highest_first=True)
    assert best.startswith("The highest ratio is 2")


def test_without_intervals_nothing_is_sure() -> None:
    text = findings.against(rows(("a", 0.5, NAN, NAN), ("b", 2, NAN, NAN)), "scheme", "ratio", 1.0)
    assert findings.NO_INTERVALS in text
    assert "surely" not in text


@given(
    st.lists(
        st.tuples(st.floats(0.01, 100), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=8,
    )
)
def test_a_claim_of_certainty_has_an_interval_that_says_so(values: list[tuple[float, float, float]]) -> None:
    table = rows(*((f"s{i}", mean, mean * (1 - a), mean * (1 + b)) for i, (mean, a, b) in enumerate(values)))
    text = findings.against(table, "scheme", "ratio", 1.0)
    below, above = int((table["high"] < 1).sum()), int((table["low"] > 1).sum())
    assert ("surely below" in text) == (below > 0 and len(table) > 2 and findings.has_intervals(table))
    assert ("surely above" in text) == (above > 0 and len(table) > 2 and findings.has_intervals(table))
    lowest = findings.lowest(table)["scheme"]
    assert f"under {lowest}" in text


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=9))
def test_lists_of_names_are_short_and_on_one_line(labels: list[str]) -> None:
    text = findings.listed(labels)
    assert "\n" not in text
    assert len(text) < 6 * 60


# --- other conditions -----------------------------------------------------------------------------


def ranking(scenario: str, *values: tuple[str, float, str]) -> pd.DataFrame:
    """Means of policies in a scenario, and who is surely behind each."""
    table = pd.DataFrame(values, columns=["scheme", "mean", "ahead_of"])
    return table.assign(workload=scenario, baseline="log", metric="response_time", low=NAN, high=NAN)


# --- local policies -------------------------------------------------------------------------------


def waits(*values: tuple[str, float, float, float], **more: Any) -> pd.DataFrame:
    return rows(*values, workload="log", estimate="requested", metric="wait_time", **more)


@given(st.floats(0, 1).filter(lambda share: 0 < share < 1))
def test_nearly_all_is_not_all(share: float) -> None:
    assert findings.percent(share) != findings.percent(1.0)


def queue(*lengths: float) -> pd.DataFrame:
    return pd.DataFrame({"queue_length": lengths}).assign(
        workload="log", scheme="fcfs", estimate="requested", utilisation=0.5
    )


# --- JScheduler ------------------------------------------------------------------------------------


EMPTY: dict[str, tuple[str, ...]] = {
    "conditions_effects": ("baseline", "workload", "scheme", "metric", "mean", "low", "high", "killed"),
    "conditions_ranking": ("baseline", "workload", "scheme", "metric", "mean", "low", "high", "ahead_of"),
    "policies_ranking": ("baseline", "workload", "scheme", "metric", "mean", "low", "high", "value", "beats"),
    "resampled_means": ("workload", "scheme", "metric", "mean", "low", "high"),
    "users_going_on": ("workload", "response", "mean", "low", "high", "share"),
    "users_productivity": ("workload", "scheme", "metric", "mean", "low", "high"),
    "policies_means": ("workload", "scheme", "estimate", "metric", "mean", "low", "high"),
    "policies_differences": ("workload", "scheme", "estimate", "metric", "mean", "low", "high"),
    "policies_distribution": ("workload", "scheme", "estimate", "metric", "quantile", "value", "beyond"),
    "policies_classes": ("workload", "scheme", "estimate", "metric", "job_class", "mean", "jobs"),
    "recorded_waits": ("workload", "scheme", "estimate", "metric", "statistic", "value"),
    "load": ("workload", "scheme", "estimate", "bin_time", "utilisation", "queue_length"),
    "workload": ("variable", "label", "value"),
    "gantt": ("cluster", "job_number", "first_processor", "processors", "start_time", "end_time"),
    "calendar_delays": ("case", "scheduler", "estimates", "aggregate", "mean", "asks"),
    "calendar_classes": ("scheduler", "aggregate", "job_class", "mean"),
    "calendar_clusters": ("scheduler", "aggregate", "job_class", "cluster", "mean", "drawn"),
    "calendar_trade": ("scheduler", "cluster", "measure", "mean"),
    "calendar_cost": ("case", "scheduler", "measure", "mean"),
    "calendar_reservations": ("case", "scheduler", "value", "measure", "aggregate", "mean", "low", "high"),
    "calendar_staleness": ("case", "scheduler", "value", "measure", "aggregate", "mean", "low", "high"),
    "calendar_options": ("case", "scheduler", "parameter", "value", "aggregate", "mean", "low", "high"),
    "multicluster_curves": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_advantage": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_queues": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_points": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "multicluster_schemes": ("point", "scheme", "measure", "group", "x", "mean", "low", "high"),
    "example_handed_over": ("cluster", "job_number", "start_time", "end_time", "late"),
    "example_improved": ("cluster", "job_number", "start_time", "end_time", "late"),
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
        assert "surely shorter" not in text, kind

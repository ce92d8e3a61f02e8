"""What the figures of a study of readings show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.figures import findings
from gridsched.figures.findings import Finding, counted, detail, listed, records, sentences


def claims(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """How many claims are robust, contingent and contradicted, and of those that the default misses."""
    if numbers.empty:
        return findings.NOTHING
    count = numbers["robustness"].value_counts()
    robust, open_, never = (int(count.get(name, 0)) for name in ("robust", "contingent", "contradicted"))
    missed = numbers[numbers["default"] == "not"]
    kinds = missed["robustness"].value_counts()
    told = ", ".join(f"{int(kinds.get(name, 0))} {name}" for name in ("robust", "contingent", "contradicted"))
    return sentences(
        f"Of {counted(len(numbers), 'claim')}, {robust} are robust, {open_} contingent and {never} "
        "contradicted.",
        f"Of the {len(missed)} that the default reading does not reproduce: {told}." if len(missed) else "",
        detail(_lost(numbers)),
    )


def _lost(numbers: pd.DataFrame) -> str:
    """Claims that the default reading reproduces although few readings do."""
    lucky = numbers[(numbers["default"] == "reproduced") & (numbers["robustness"] != "robust")]
    if lucky.empty:
        return "All that the default reading reproduces is robust."
    last = records(lucky.sort_values("mean", kind="stable"))[0]
    return (
        f"{counted(len(lucky), 'claim')} that the default reading reproduces hang on it; the least robust is "
        f"{last['claim']}, which {findings.percent(last['mean'])} of the readings reproduce."
    )


def choices(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which choices surely decide most claims."""
    if numbers.empty:
        return "No claim is contingent: no choice decides any."
    sure = numbers.assign(sure=numbers["low"] > 0).groupby("choice", sort=False)["sure"].sum()
    ranked = sure.sort_values(ascending=False, kind="stable")
    told = [f"{name} ({int(count)})" for name, count in ranked.items() if count]
    none = [name for name, count in ranked.items() if not count]
    return sentences(
        f"Choices that are surely important for contingent claims, with how many: {listed(told, 12)}."
        if told
        else "No choice is surely important for any claim.",
        f"For none: {listed(none, 12)}." if none else "",
    )


FINDINGS: dict[str, Finding] = {"readings_claims": claims, "readings_choices": choices}
"""Findings by kind of figure."""

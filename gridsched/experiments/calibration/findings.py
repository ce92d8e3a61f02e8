"""What the figures of a study of calibration show of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from gridsched.calibration.measures import LEAST_CORRELATION, RATIOS
from gridsched.experiments.calibration.stages import ALL, MEAN, NULL, PLAIN, WITHOUT
from gridsched.figures import findings
from gridsched.figures.findings import Finding, counted, detail, listed, name, records, sentences

_SEEN = 0.005
"""Smallest change of a rank correlation that is told."""


def overview(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """For how many logs the waits are explained, and where the null model does better."""
    second = numbers[numbers["half"] == "second"].dropna(subset=["ratio", "correlation"])
    after = second[second["layers"] == ALL]
    if after.empty:
        return findings.NOTHING
    ranked = after[after["correlation"] >= LEAST_CORRELATION]
    good = ranked[ranked["ratio"].between(*RATIOS)]
    low, high = RATIOS
    before = second[second["layers"] == PLAIN].set_index("workload")["correlation"]
    null = second[second["layers"] == NULL].set_index("workload")["correlation"]
    told = [
        f"{name(row['workload'])} {before.get(row['workload'], float('nan')):.2f} to {row['correlation']:.2f}"
        f" (ratio {row['ratio']:.2f})"
        for row in records(after)
    ]
    ahead = [
        str(row["workload"])
        for row in records(after)
        if null.get(row["workload"], float("-inf")) > row["correlation"]
    ]
    return sentences(
        f"On the second half a rank correlation of at least {LEAST_CORRELATION} is reached for "
        f"{len(ranked)} of {counted(len(after), 'log')}, together with a ratio from {low} to {high} "
        f"for {len(good)}.",
        f"Rank correlation before and after: {'; '.join(told)}.",
        f"The null model, told recorded waits up to each submission, ranks jobs better on {listed(ahead)}."
        if ahead
        else "The null model ranks jobs better on none.",
    )


def layers(numbers: pd.DataFrame, attributes: Mapping[str, Any]) -> str:
    """Which layer alone explains most on the second half, and which one is missed most."""
    second = numbers[numbers["half"] == "second"].dropna(subset=["correlation"])
    by_name = {str(row["layers"]): row for row in records(second)}
    if ALL not in by_name or PLAIN not in by_name:
        return findings.NOTHING
    alone = {
        key: row["correlation"]
        for key, row in by_name.items()
        if key not in (ALL, PLAIN, NULL, MEAN) and not key.startswith(WITHOUT)
    }
    missed = {
        key.removeprefix(WITHOUT): by_name[ALL]["correlation"] - row["correlation"]
        for key, row in by_name.items()
        if key.startswith(WITHOUT)
    }
    whole, plain = by_name[ALL], by_name[PLAIN]
    parts = [
        f"The rank correlation on the second half is {plain['correlation']:.2f} under EASY and "
        f"{whole['correlation']:.2f} calibrated, the ratio {plain['ratio']:.2f} and {whole['ratio']:.2f}."
    ]
    if alone:
        best = max(alone, key=lambda key: alone[key])
        parts.append(f"Alone {name(best)} reaches most, {alone[best]:.2f}.")
    if missed:
        most = max(missed, key=lambda key: missed[key])
        parts.append(
            detail(f"Without {name(most)} the rank correlation falls by {missed[most]:.2f}.")
            if missed[most] >= _SEEN
            else detail(
                "No layer that was taken is missed on the second half: without any one it is as high."
            )
        )
    return sentences(*parts)


FINDINGS: dict[str, Finding] = {"calibration_overview": overview, "calibration_layers": layers}
"""Findings by kind of figure."""

"""Counts of intervals that hold the truth, of statements with the wrong sign, and of false pages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched import inference
from tests.coverage.sources import Draws

Floats = NDArray[np.float64]

UNITS = 10
"""Replicates of a study."""


class Held(NamedTuple):
    """Of one kind of interval: how many there could be, are shown, and hold the truth; the worst of them."""

    redraws: int
    shown: float
    held: float
    least: float


def held(estimate: inference.Estimate, truth: Floats) -> Held:
    """Count intervals; the last axis of an estimate holds the redraws of a study."""
    shown = estimate.reason == ""
    inside = shown & (estimate.low <= truth[..., np.newaxis]) & (truth[..., np.newaxis] <= estimate.high)
    each = inside.sum(axis=-1) / np.maximum(shown.sum(axis=-1), 1)
    enough = shown.sum(axis=-1) >= 100
    return Held(
        shown.shape[-1],
        float(shown.mean()),
        float(inside.sum() / shown.sum()) if shown.sum() >= 100 else np.nan,
        float(each[enough].min()) if enough.any() else np.nan,
    )


def studies(draws: Draws) -> Floats:
    """Values in studies of `UNITS` draws: [measures, schedulers, studies, units]."""
    count = draws.values.shape[-1] // UNITS
    return draws.values[..., : count * UNITS].reshape(*draws.values.shape[:2], count, UNITS)


def measured(name: str, draws: Draws) -> list[dict[str, Any]]:
    """Rows of the table for one source."""
    options: list[dict[str, Any]] = [{}, {}]
    if draws.memory is None:
        values = studies(draws)
    else:
        values = draws.values
        options = [
            {"serial": True, "relaxations": draws.memory},
            {"serial": True, "relaxations": draws.memory[1:], "reference_relaxations": draws.memory[:1]},
        ]
    truth, others = draws.truth, draws.truth[:, 1:]
    reference = values[:, :1]
    kinds = {
        "mean": (inference.mean(values, **options[0]), truth),
        "difference": (
            inference.difference(values[:, 1:], reference, **options[1]),
            others - truth[:, :1],
        ),
        "ratio": (inference.ratio(values[:, 1:], reference, **options[1]), others / truth[:, :1]),
    }
    rows = [
        {"source": name, "interval": kind, **held(estimate, wanted)._asdict()}
        for kind, (estimate, wanted) in kinds.items()
    ]
    # statements of one page each, one study and measure a page
    wrong = made = 0
    for measure in range(len(values)):
        for study in range(values.shape[2]):
            more: dict[str, Any] = {}
            if draws.memory is not None:
                own = draws.memory[:, study]
                more = {"serial": True, "relaxations": own[1:], "reference_relaxations": own[0]}
            page = inference.compare(values[measure, 1:, study], values[measure, 0, study], **more)
            sign = np.sign(others[measure] - truth[measure, 0])
            wrong += int(((page.significant != 0) & (page.significant != sign)).sum())
            made += page.significant.size
    rows[-1] |= {"wrong": wrong / made}
    return rows


def false_pages(name: str, draws: Draws) -> list[dict[str, Any]]:
    """Share of pages with a significant difference where nothing differs, against one and over all pairs."""
    pages = studies(draws)[0].swapaxes(0, 1)
    against = np.mean([inference.compare(page[1:], page[0]).significant.any() for page in pages])
    pairs = np.mean([inference.compare_pairs(page).significant.any() for page in pages])
    return [
        {"source": name, "interval": kind, "redraws": len(pages), "wrong": float(wrong)}
        for kind, wrong in (("page of ratios to the first", against), ("page of all pairs", pairs))
    ]


def as_markdown(table: pd.DataFrame) -> str:
    """The table as it stands in the docs."""

    def percent(value: float) -> str:
        return "" if np.isnan(value) else f"{100 * value:.1f}"

    lines = [
        "| truth | interval | redraws | not estimable, % | held, % | least, % | wrong, % |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in table.to_dict("records"):
        shares = (1 - row["shown"], row["held"], row["least"], row["wrong"])
        cells = " | ".join(percent(float(share)) for share in shares)
        lines.append(f"| {row['source']} | {row['interval']} | {row['redraws']:,} | {cells} |")
    return "\n".join(lines)

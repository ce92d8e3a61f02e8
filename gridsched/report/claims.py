"""Claims of the papers as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gridsched.figures.style import number


@dataclass(frozen=True)
class ClaimView:
    """One claim beside what we found."""

    where: str
    claim: str
    paper_value: str
    our_value: str
    interval: str
    difference: str
    verdict: str
    why: str
    study: str


@dataclass(frozen=True)
class PaperView:
    """The claims of one paper, and how many of them came out how."""

    paper: str
    verdicts: list[tuple[str, int]]
    claims: list[ClaimView]


def claims_view(table: str | Path) -> list[PaperView]:
    """Claims of each paper, from the CSV that `gridsched.study.claim_stages.evaluate_claims` wrote."""
    frame = pd.read_csv(table, keep_default_na=False, dtype=str)
    return [_paper(str(paper), claims) for paper, claims in frame.groupby("paper", sort=False)]


def _paper(paper: str, claims: pd.DataFrame) -> PaperView:
    counts = claims["verdict"].value_counts(sort=False)
    return PaperView(
        paper=paper,
        verdicts=[(str(verdict), int(count)) for verdict, count in counts.items()],
        claims=[_claim(row) for _, row in claims.iterrows()],
    )


def _claim(row: pd.Series[str]) -> ClaimView:
    low, high = _shown(row["low"]), _shown(row["high"])
    return ClaimView(
        where=row["where"],
        claim=row["claim"],
        paper_value=_shown(row["paper_value"]),
        our_value=_shown(row["our_value"]),
        interval=f"{low} to {high}" if low and high else "",
        difference=_shown(row["difference"]),
        verdict=row["verdict"],
        why=row["why"],
        study=row["study"],
    )


def _shown(text: str) -> str:
    """A number with at least three significant digits; other text as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}" if abs(value) >= 100 else number(value)

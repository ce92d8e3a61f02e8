"""Claims of the papers as the page shows them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from gridsched.experiments.claims import citations
from gridsched.figures.style import number
from gridsched.presentation.sections import anchor

JUDGED = ("reproduced", "partly", "not")
"""Verdicts of claims with a result of ours."""
VERDICTS = (*JUDGED, "not testable", "input", "not run")
"""All verdicts, in the order of the page."""
ROBUSTNESS = ("robust", "contingent", "contradicted")
"""What claims are called over all readings of a paper."""

_GROUPS = (*reversed(JUDGED), *VERDICTS[len(JUDGED) :])
"""Verdicts in the order of the claims of a paper: those that did not come out first."""

_LONG = 260
"""Characters of a reason that the table shows whole."""


def claims_view(table: str | Path) -> list[dict[str, Any]]:
    """Claims of each paper, from the CSV that `gridsched.experiments.claim_stages.evaluate_claims` wrote."""
    frame = pd.read_csv(table, keep_default_na=False, dtype=str)
    return [_paper(str(paper), claims) for paper, claims in frame.groupby("paper", sort=False)]


def _paper(paper: str, table: pd.DataFrame) -> dict[str, Any]:
    """The claims of one paper by verdict, and how many came out how."""
    claims = [_claim(row) for row in table.to_dict("records")]
    judged = [claim for claim in claims if claim["verdict"] in JUDGED]
    counts, over_readings = (Counter(claim[key] for claim in claims) for key in ("verdict", "robustness"))
    # claims with a result of ours that no other reading was tried for
    untried = Counter(claim["verdict"] == "reproduced" for claim in judged if not claim["robustness"])
    by_verdict = {name: [claim for claim in claims if claim["verdict"] == name] for name in _GROUPS}
    return {
        "paper": paper,
        "citation": citations().get(paper, ""),
        "total": len(claims),
        "evaluated": len(judged),
        "counts": counts,
        "verdicts": {name: counts[name] for name in VERDICTS if counts[name]},
        "groups": {name: found for name, found in by_verdict.items() if found},
        "over_readings": {name: over_readings[name] for name in ROBUSTNESS if over_readings[name]},
        "after_readings": {
            **{name: over_readings[name] for name in ROBUSTNESS},
            "tried nowhere": untried[True],
            "open": untried[False],
        },
    }


def _claim(row: dict[Any, str]) -> dict[Any, str]:
    """A row of the table, in the words of the page."""
    low, high, ours = (_shown(row[key]) for key in ("low", "high", "our_value"))
    found = re.fullmatch(r"(-?[0-9][0-9.e+-]*) (\S+)", row["paper_value"])
    paper, unit = found.groups() if found else (row["paper_value"], "")
    first, end, others = row["why"].partition(". ")
    is_folded = bool(end) and len(row["why"]) > _LONG
    figure = PurePosixPath(row["figure"])  # study/figures/name.svg
    share = f"{100 * float(row['share']):.0f} % of {int(float(row['readings'])):,}" if row["share"] else ""
    return row | {
        "paper_value": f"{_shown(paper)} {unit}".strip(),
        "our_value": f"{ours} {unit}".strip() if ours else "",
        "interval": f"{low} to {high}" if low and high and low != high else "",
        "difference": _shown(row["difference"]),
        "why": f"{first}." if is_folded else row["why"],
        "more": others if is_folded else "",
        "figure_anchor": anchor(figure.parts[0], figure.stem) if row["figure"] else "",
        "share": share,
    }


def _shown(text: str) -> str:
    """A number with at least three significant digits; other text as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}") if abs(value) >= 100 else number(value)

"""Claims of the papers as the page shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from gridsched.experiments.claims import citations
from gridsched.figures.style import number
from gridsched.presentation.sections import anchor


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
    """Why it differs, or the first sentence of that."""
    more: str
    """The other sentences, where they are long."""
    study: str
    paper: str
    variable: str
    dataset: str
    figure_anchor: str
    robustness: str
    """What the claim is called over all readings of the paper; empty where there are none."""
    share: str
    """Share of the readings that reproduce it, with their number."""
    condition: str
    """When it holds."""


@dataclass(frozen=True)
class PaperView:
    """The claims of one paper by verdict, those that did not come out first, and how many came out how."""

    paper: str
    citation: str
    verdicts: list[tuple[str, int]]
    groups: list[tuple[str, list[ClaimView]]]

    @property
    def judged(self) -> bool:
        """Whether some claim has a result of ours."""
        return bool(self.over_readings) or any(name in JUDGED for name, _ in self.verdicts)

    @property
    def evaluated(self) -> int:
        """Number of claims with a result of ours."""
        return sum(map(self.count, JUDGED))

    @property
    def over_readings(self) -> list[tuple[str, int]]:
        """How many claims are called what over all readings of the paper."""
        names = [claim.robustness for _, claims in self.groups for claim in claims]
        return [(name, names.count(name)) for name in ROBUSTNESS if name in names]

    @property
    def after_readings(self) -> dict[str, int]:
        """Claims with a result of ours, by what is known of them besides the verdict.

        What they are called over all readings; of those that no reading was tried for, `tried nowhere` are
        reproduced and `open` are not, or partly.
        """
        counts = dict.fromkeys((*ROBUSTNESS, "tried nowhere", "open"), 0)
        for verdict, claims in self.groups:
            for claim in claims:
                if claim.robustness:
                    counts[claim.robustness] += 1
                elif verdict in JUDGED:
                    counts["tried nowhere" if verdict == "reproduced" else "open"] += 1
        return counts

    @property
    def total(self) -> int:
        """Number of all claims."""
        return self.count()

    def count(self, verdict: str | None = None) -> int:
        """Number of claims with a verdict, or of all."""
        return sum(number for name, number in self.verdicts if verdict in (None, name))


JUDGED = ("reproduced", "partly", "not")
"""Verdicts of claims with a result of ours."""
VERDICTS = (*JUDGED, "not testable", "input", "not run")
"""All verdicts, in the order of the page."""
ROBUSTNESS = ("robust", "contingent", "contradicted")
"""What claims are called over all readings of a paper."""


def claims_view(table: str | Path) -> list[PaperView]:
    """Claims of each paper, from the CSV that `gridsched.experiments.claim_stages.evaluate_claims` wrote."""
    frame = pd.read_csv(table, keep_default_na=False, dtype=str)
    return [_paper(str(paper), claims) for paper, claims in frame.groupby("paper", sort=False)]


def _paper(paper: str, table: pd.DataFrame) -> PaperView:
    claims = [_claim(row) for _, row in table.iterrows()]
    by_verdict = {name: [claim for claim in claims if claim.verdict == name] for name in VERDICTS}
    return PaperView(
        paper=paper,
        citation=citations().get(paper, ""),
        verdicts=[(name, len(found)) for name, found in by_verdict.items() if found],
        groups=[
            (name, by_verdict[name])
            for name in (*reversed(JUDGED), *VERDICTS[len(JUDGED) :])
            if by_verdict[name]
        ],
    )


def _claim(row: pd.Series[str]) -> ClaimView:
    low, high = _shown(row["low"]), _shown(row["high"])
    paper, unit = _number_and_unit(row["paper_value"])
    ours = _shown(row["our_value"])
    why, more = _folded(row["why"])
    return ClaimView(
        where=row["where"],
        claim=row["claim"],
        paper_value=f"{_shown(paper)} {unit}".strip(),
        our_value=f"{ours} {unit}".strip() if ours else "",
        interval=f"{low} to {high}" if low and high and low != high else "",
        difference=_shown(row["difference"]),
        verdict=row["verdict"],
        why=why,
        more=more,
        study=row["study"],
        paper=row["paper"],
        variable=row["variable"],
        dataset=row["dataset"],
        figure_anchor=_anchor(row["figure"]),
        robustness=row["robustness"],
        share=f"{_shown_share(row['share'])} of {int(float(row['readings'])):,}" if row["share"] else "",
        condition=row["condition"],
    )


def _shown_share(text: str) -> str:
    """A share in whole per cent."""
    return f"{100 * float(text):.0f} %"


def _anchor(path: str) -> str:
    """Where the page has the figure of a file, `study/figures/name.svg`."""
    place = PurePosixPath(path)
    return anchor(place.parts[0], place.stem) if path else ""


_LONG = 260
"""Characters of a reason that the table shows whole."""


def _folded(why: str) -> tuple[str, str]:
    """A reason, or of a long one its first sentence and the others."""
    first, end, others = why.partition(". ")
    return (f"{first}.", others) if end and len(why) > _LONG else (why, "")


def _number_and_unit(text: str) -> tuple[str, str]:
    """Parts of a number with its unit; other text has none."""
    found = re.fullmatch(r"(-?[0-9][0-9.e+-]*) (\S+)", text)
    return (found[1], found[2]) if found else (text, "")


def _shown(text: str) -> str:
    """A number with at least three significant digits; other text as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}") if abs(value) >= 100 else number(value)

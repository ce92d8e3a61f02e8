"""What figures show of their data, in sentences that their numbers support.

Each form has a function that makes sentences of the numbers of a figure; the first is the headline. A
comparison is stated only where `gridsched.inference` tested that very pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gridsched.experiments.specification import Specification
from gridsched.inference import IDENTICAL
from gridsched.metrics.measure import Measure
from gridsched.presentation.sentences import (
    Attributes,
    Row,
    capital,
    count,
    estimate_text,
    extremes,
    first_measure,
    joined,
    known_measure,
    listed,
    name,
    percent,
    value_text,
)

NOTHING = ["No run has a value."]

MAX_FACETS = 2
"""Scenarios that sentences speak of one by one."""

MAX_LANES = 2
"""Kinds of estimates, or other lanes of a ranking, that sentences speak of."""


# --- what findings share --------------------------------------------------------------------------


def without_bounds(numbers: pd.DataFrame, attributes: Attributes, *others: Any) -> pd.DataFrame:
    """Rows of schedulers: without ideal machines, which are bounds, and without others."""
    if "scheduler" not in numbers:
        return numbers
    return numbers[~numbers["scheduler"].isin([*attributes.get("bounds", []), *others])]


def facets_of(numbers: pd.DataFrame, specification: Specification) -> list[tuple[str, pd.DataFrame]]:
    """Rows of each panel, with its label."""
    if specification.facets not in numbers:
        return [("", numbers)]
    return [(str(label), part) for label, part in numbers.groupby(specification.facets, sort=False)]


def _shown(row: Row, known: Measure) -> str:
    return estimate_text(row, known.unit, share=known.share)


def _value(value: float, known: Measure) -> str:
    return value_text(value, known.unit, share=known.share)


# --- rankings -------------------------------------------------------------------------------------


def ranking(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The best of each scenario against the reference, who does not differ from it, how many differ."""
    if not specification.reference or specification.relation not in numbers:
        return plain_ranking(numbers, specification)
    own, known = first_measure(numbers)
    lanes = list(dict.fromkeys(own[specification.lanes])) if specification.lanes in own else [""]
    found = []
    for lane in lanes[:MAX_LANES]:
        several = len(lanes) > 1
        part = own[own[specification.lanes] == lane] if several else own
        words = f"{known.words} ({name(lane)})" if several else known.words
        ranked = {
            facet: _Ranking(rows, known, words, specification, attributes)
            for facet, rows in facets_of(part, specification)
        }
        found.append(_several(ranked) if len(ranked) > 1 else next(iter(ranked.values())).sentences())
    # the headlines of all, then what more there is to say of the first
    return [*(lines[0] for lines in found), *found[0][1:]]


class _Ranking:
    """What one scenario says of its schedulers."""

    def __init__(
        self,
        part: pd.DataFrame,
        known: Measure,
        words: str,
        specification: Specification,
        attributes: Attributes,
    ) -> None:
        self.part, self.known, self.words, self.specification = part, known, words, specification
        self.hue, self.relation = specification.hue, specification.relation
        self.better = 1 if known.better == "higher" else -1
        self.sides = ("lower", "higher") if self.better < 0 else ("higher", "lower")
        self.most = "lowest" if self.better < 0 else "highest"
        self.reference, self.aside = "the baseline", ""
        rivals = part
        if specification.reference == "scheduler":
            self.reference = name(attributes.get("reference", ""))
            rivals = without_bounds(part, attributes, attributes.get("reference"))
            if len(without_bounds(part, attributes)) < len(part):
                self.aside = " (ideal bounds aside)"
        elif "baseline" in part:
            rivals = part[part["scenario"] != part["baseline"]]
        self.compared = rivals[rivals[self.relation].notna()]
        self.tested = self.compared[self.compared["probability"].notna()]
        order = self.tested.sort_values(self.relation, ascending=self.better < 0, kind="stable")
        self.best: Row | None = None if order.empty else order.iloc[0].to_dict()
        self.winner, self.equal = "", list[Any]()
        # whether all others differ from the winner, and whether one that was not compared has a better value
        self.stands_out = self.is_beaten = False
        if self.best is not None and self.best["significant"] == self.better:
            first, rows = self.best[self.hue], self.tested.to_dict("records")
            self.winner = name(first)
            others = [row for row in rows if row[self.hue] != first]
            values = rivals.drop(self.tested.index)["value"] * self.better
            self.is_beaten = bool((values > self.best["value"] * self.better).any())
            self.equal = [row[self.hue] for row in others if row.get("best")]
            self.stands_out = len(others) == len(rivals) - 1 and all(row.get("apart") for row in others)

    def against(self, side: str) -> str:
        """How somebody differs from the reference who does so significantly."""
        return f"significantly {side} {self.words} than {self.reference}"

    def sentences(self) -> list[str]:
        """Sentences, the headline first."""
        if self.compared.empty:
            return plain_ranking(self.part, self.specification)
        reasons = self.compared[f"{self.relation}_reason"].astype(str)
        if self.best is None or reasons.str.startswith(IDENTICAL).all():
            return [self.not_estimable(self.compared)]
        ahead, behind = (int((self.tested["significant"] == s).sum()) for s in (self.better, -self.better))
        missing = self.compared[self.compared["probability"].isna()]
        lines = [
            self.headline(self.best, behind),
            self.equals(),
            self.tally(ahead, behind) if len(self.tested) > 1 and ahead + behind else "",
            self.not_estimable(missing, of=f" of {listed(missing[self.hue])}") if len(missing) else "",
        ]
        return [line for line in lines if line]

    def headline(self, best: Row, behind: int) -> str:
        """Who is best, if anybody is significantly better than the reference."""
        if self.winner:
            if self.relation == "ratio":
                size = f"{estimate_text(best, of='ratio')} of that of"
            else:
                known = self.known
                size = f"{estimate_text(best, known.unit, share=known.share, of='difference')} against"
            who = f"Of those that can be compared, {self.winner}" if self.is_beaten else self.winner
            return f"{who} has the {self.most} {self.words}{self.aside}: {size} {self.reference}."
        if behind:
            return f"No scheduler has a {self.against(self.sides[0])}."
        return f"No scheduler differs significantly from {self.reference} in {self.words}."

    def equals(self) -> str:
        """Who does not differ significantly from the best."""
        if not self.winner or len(self.tested) < 2:
            return ""
        if self.stands_out:
            return (
                f"All other schedulers differ significantly from {self.winner} in {self.words}{self.aside}."
            )
        if not self.equal:
            return ""
        do = "does" if len(self.equal) == 1 else "do"
        return f"{listed(self.equal, 3)} {do} not differ significantly from {self.winner} in {self.words}."

    def tally(self, ahead: int, behind: int) -> str:
        """How many are significantly better and worse than the reference, how many do not differ."""
        told = [(number, side) for number, side in zip((ahead, behind), self.sides, strict=True) if number]
        what = "schedulers" if self.hue == "scheduler" else "scenarios"
        rest = len(self.tested) - ahead - behind
        number, side = told[0]
        first = f"{'has' if number == 1 else 'have'} a {self.against(side)}"
        if len(told) == 1 and not rest:
            return f"{'Both' if number == 2 else f'All {count(number)}'} {what} {first}."
        parts = [f"{count(number)} {first}", *(f"{count(more)} a {word} one" for more, word in told[1:])]
        if rest:
            parts.append(f"{count(rest)} {'does' if rest == 1 else 'do'} not differ significantly")
        return f"Of {count(len(self.tested))} {what}, {joined(parts)}."

    def not_estimable(self, rows: pd.DataFrame, *, of: str = "") -> str:
        """Why no comparison can be made."""
        reasons = [str(each) for each in rows[f"{self.relation}_reason"] if each] or ["no intervals"]
        if all(reason.startswith(IDENTICAL) for reason in reasons):
            return f"The {self.words}{of} is identical to that of {self.reference} in all replicates."
        return f"The difference{of} from {self.reference} in {self.words} is not estimable: {reasons[0]}."


def _several(ranked: Mapping[str, _Ranking]) -> list[str]:
    """Sentences on several scenarios: who is best where, then the first ones in detail."""
    some = next(iter(ranked.values()))
    better = some.against(some.sides[0])
    winners: dict[str, list[str]] = {}
    for facet, each in ranked.items():
        if each.winner:
            winners.setdefault(each.winner, []).append(facet)
    unknown = [facet for facet, each in ranked.items() if each.best is None]
    neither = [facet for facet, each in ranked.items() if each.best is not None and not each.winner]
    equal = [label for each in ranked.values() for label in each.equal]
    unsure = f", not everywhere significantly {some.sides[0]} than {listed(equal, 3)}" if equal else ""
    lines = []
    if len(winners) == 1 and not neither and not unknown:
        everywhere = "both" if len(ranked) == 2 else f"all {count(len(ranked))}"
        best = f"{next(iter(winners))} has the {some.most} {some.words}"
        lines.append(f"{best} in {everywhere} scenarios{some.aside}{unsure}.")
    elif winners:
        parts = [f"{who} in {listed(where, 2)}" for who, where in winners.items()]
        lines.append(f"Best in {some.words}{some.aside}: {joined(parts)}{unsure}.")
    elif neither:
        lines.append(f"No scheduler has a {better}.")
        lines += [f"{name(facet)}: {ranked[facet].sentences()[-1]}" for facet in neither[:MAX_FACETS]]
    else:
        lines.append(f"No difference in {some.words} from {some.reference} is estimable.")
    won = [facet for facet, each in ranked.items() if each.winner][:MAX_FACETS]
    lines += [f"{name(facet)}: {ranked[facet].sentences()[0].replace(some.aside, '')}" for facet in won]
    if winners and neither:
        lines.append(f"In {listed(neither, 3)} no scheduler has a {better}.")
    if unknown and (winners or neither):
        lines.append(f"In {listed(unknown, 3)} no difference is estimable.")
    return lines


def plain_ranking(numbers: pd.DataFrame, specification: Specification) -> list[str]:
    """Lowest and highest value of a figure without comparisons; without intervals, of this run only."""
    if numbers.empty:
        return NOTHING
    own, known = first_measure(numbers)
    own = own[own["value"].notna()].sort_values("value", kind="stable")
    if own.empty:
        return NOTHING
    low, high = own.iloc[0].to_dict(), own.iloc[-1].to_dict()
    if _value(low["value"], known) == _value(high["value"], known):
        return [f"The {known.words} is {_shown(low, known)} throughout."]
    ends = extremes(own, lambda row: _shown(row, known), lambda row: _who(row, own, specification))
    text = f"{known.words} ranges from {ends}."
    return [capital(text) if own["low"].notna().any() else f"In this run, {text}"]


def _who(row: Row, numbers: pd.DataFrame, specification: Specification) -> str:
    """Labels of a row on the axes of which there are several."""
    spec = specification
    axes = dict.fromkeys(axis for axis in (spec.facets, spec.hue, spec.lanes, spec.x) if axis)
    labels = [str(row[axis]) for axis in axes if axis in numbers and numbers[axis].nunique() > 1]
    return ", ".join(map(name, labels)) or "the only one"


# --- other forms ----------------------------------------------------------------------------------


def response(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Between which values a measure lies as a parameter grows, for the line that changes most."""
    own, known = first_measure(numbers)
    own = without_bounds(own[pd.to_numeric(own[specification.x], errors="coerce").notna()], attributes)
    compares = bool(specification.reference) and specification.relation in own
    column, shown = (specification.relation, Measure("", "")) if compares else ("value", known)
    parameter = specification.x.replace("_", " ")
    lines = []
    facets = facets_of(own, specification)
    for facet, part in facets[:MAX_FACETS]:
        for who, first, last in _largest_change(part, specification, column):
            ends = [f"{_value(row[column], shown)} at {row[specification.x]:g}" for row in (first, last)]
            of = f" of {name(who)}" if str(who) else ""
            words = f"{known.words}{of}{', relative to the reference,' if compares else ''}"
            text = f"{words} is {ends[0]} and {ends[1]} ({parameter})."
            lines.append(f"{name(facet)}: {text}" if len(facets) > 1 else capital(text))
    return lines or plain_ranking(own, specification)


def _largest_change(
    part: pd.DataFrame, specification: Specification, column: str
) -> list[tuple[Any, Row, Row]]:
    """The line whose ends differ most in proportion, with its ends; none where no line has two."""
    found: list[tuple[float, Any, Row, Row]] = []
    for who, line in part.sort_values(specification.x).groupby(specification.hue, sort=False):
        known = line[line[column] > 0]
        if known[specification.x].nunique() > 1:
            first, last = known.iloc[0].to_dict(), known.iloc[-1].to_dict()
            found.append((abs(float(np.log(last[column] / first[column]))), who, first, last))
    return [max(found, key=lambda each: each[0])[1:]] if found else []


def distribution(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Between which values medians and 99th percentiles of the first scenario lie."""
    own, _ = first_measure(numbers)
    known = known_measure(str(own["measure"].iloc[0]).removesuffix("_quantile") + "_mean")
    words = known.words.removeprefix("mean ")
    facets = facets_of(own, specification)
    place = f"{name(facets[0][0])}: the" if len(facets) > 1 else "The"
    lines = []
    for share, text in ((0.5, "median"), (0.99, "99th percentile")):
        at = facets[0][1]
        at = at[np.isclose(at["quantile"], share)].sort_values("value")
        if at.empty:
            continue
        what = f"{place} {text} of the {words}"
        if at["value"].iloc[0] < at["value"].iloc[-1]:
            ends = extremes(
                at, lambda row: _value(row["value"], known), lambda row: name(row[specification.hue])
            )
            lines.append(f"{what} ranges from {ends}.")
        else:
            lines.append(f"{what} is {_value(at['value'].iloc[0], known)}{' for all' * (len(at) > 1)}.")
    return lines or NOTHING


def series(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The highest point of a time series, and whose it is."""
    if numbers.empty:
        return NOTHING
    own, known = first_measure(numbers)
    own = own[own["value"].notna()]
    if own.empty:
        return NOTHING
    top = own.iloc[int(own["value"].to_numpy().argmax())].to_dict()  # the first one of several
    # the time is said with the value
    who = _who(top, own.drop(columns=specification.x), specification)
    day = f"{top[specification.x] / 86_400:.3g}"
    return [f"The highest {known.words} is {_value(top['value'], known)}, on day {day} ({who})."]


def composition(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The largest part of all rows together."""
    own, known = first_measure(numbers)
    total = own["value"].sum()
    if not total > 0:
        return NOTHING
    parts = own.groupby(specification.lanes, sort=False)["value"].sum().sort_values()
    return [f"{name(parts.index[-1])} has {percent(parts.iloc[-1] / total)} of all {known.words}."]


def schedule(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """When the last job of a Gantt chart ends, and how busy the processors are that jobs have at all."""
    if numbers.empty:
        return ["No job ran."]
    first, last = int(numbers["start_time"].min()), int(numbers["end_time"].max())
    work = float((numbers["processors"] * (numbers["end_time"] - numbers["start_time"])).sum())
    sizes = (numbers["first_processor"] + numbers["processors"]).groupby(numbers["cluster"]).max().sum()
    busy = percent(work / (float(sizes) * (last - first))) if last > first else "all"
    who = f"{name(attributes['scheduler'])}: all" if "scheduler" in attributes else "All"
    jobs = f"{numbers['job_number'].nunique()} jobs end within {value_text(last - first, 's')}"
    return [f"{who} {jobs}; the processors that they use are busy for {busy} of it."]


def workload(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which jobs make most of the work of a workload, and its busiest hour."""
    lines = []
    work, jobs = _values(numbers, "work_share"), _values(numbers, "size_share")
    if work:
        most = max(work, key=work.__getitem__)
        share = f" ({percent(jobs[most])} of the jobs)" if most in jobs else ""
        lines.append(f"Jobs of {most} processors{share} have {percent(work[most])} of the work.")
    hours = _values(numbers, "arrivals_hour")
    mean = sum(hours.values()) / max(len(hours), 1)
    if hours and max(hours.values()) > 1.25 * mean:
        busiest = max(hours, key=hours.__getitem__)
        lines.append(f"The busiest hour begins at {busiest} h, {hours[busiest] / mean:.3g} times the mean.")
    return lines or ["The log does not say what the panels would show."]


def _values(numbers: pd.DataFrame, variable: str) -> dict[str, float]:
    """Known values of a variable of a workload, by label."""
    own = numbers[(numbers["variable"] == variable) & numbers["value"].notna()]
    return dict(zip(own["label"].astype(str), own["value"].astype(float), strict=True))

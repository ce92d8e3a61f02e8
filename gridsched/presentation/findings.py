"""What figures show of their data, in sentences that their numbers support.

Each form has a function that makes sentences of the numbers of a figure; the first is the headline. A comparison
is stated only where `gridsched.inference` tested that very pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gridsched.experiments.specification import Specification
from gridsched.measures import Measure
from gridsched.presentation.sentences import (
    count,
    estimate_text,
    interval_text,
    known_measure,
    listed,
    name,
    percent,
    sentence,
    value_text,
)

Attributes = Mapping[str, Any]

NOTHING = ["No run has a value."]

MOST_FACETS = 2
"""Scenarios that sentences speak of one by one."""


def _facets(numbers: pd.DataFrame, specification: Specification) -> list[tuple[str, pd.DataFrame]]:
    if specification.facets not in numbers:
        return [("", numbers)]
    return [(str(label), part) for label, part in numbers.groupby(specification.facets, sort=False)]


def _compared(part: pd.DataFrame, specification: Specification, attributes: Attributes) -> pd.DataFrame:
    """Rows that are compared with the reference: schedulers of clusters other than itself."""
    own = part[part[specification.relation].notna()] if specification.relation in part else part.iloc[:0]
    if specification.reference == "scheduler":
        own = own[own["scheduler"] != attributes.get("reference")]
        return own[~own["scheduler"].isin(attributes.get("bounds", []))]
    return own[own["scenario"] != own["baseline"]] if "baseline" in own else own


def ranking(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The best of each scenario against the reference, who does not differ from it, and how many differ."""
    if not specification.reference or specification.relation not in numbers:
        return plain_ranking(numbers, specification)
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]]
    if specification.lanes in own and own[specification.lanes].nunique() > 1:
        own = own[own[specification.lanes] == own[specification.lanes].iloc[0]]
    known = known_measure(str(own["measure"].iloc[0]))
    facets = _facets(own, specification)
    if len(facets) == 1:
        return _one_ranking(facets[0][1], known, specification, attributes)
    return _several_rankings(facets, known, specification, attributes)


def _reference_name(specification: Specification, attributes: Attributes) -> str:
    return (
        name(attributes.get("reference", "the reference"))
        if specification.reference == "scheduler"
        else "the baseline"
    )


def _one_ranking(
    part: pd.DataFrame, known: Measure, specification: Specification, attributes: Attributes
) -> list[str]:
    """Sentences on one scenario."""
    compared, hue = _compared(part, specification, attributes), specification.hue
    reference = _reference_name(specification, attributes)
    if compared.empty:
        return plain_ranking(part, specification)
    tested = compared[compared["probability"].notna()]
    if tested.empty:
        return [_not_estimable(compared, known, reference)]
    better = -1 if known.better != "higher" else 1
    best = tested.sort_values(specification.relation, ascending=better < 0, kind="stable").iloc[0]
    ahead, behind = (
        int((tested["significant"] == better).sum()),
        int((tested["significant"] == -better).sum()),
    )
    word = "lowest" if better < 0 else "highest"
    lines = []
    if best["significant"] == better:
        lines.append(
            f"{name(best[hue])} has the {word} {known.words}: {estimate_text(best, of=specification.relation)} "
            f"of that of {reference}."
            if specification.relation == "ratio"
            else f"{name(best[hue])} has the {word} {known.words}: {_difference(best, known)} against {reference}."
        )
        equal = [row for row in tested.to_dict("records") if row.get("best") and row[hue] != best[hue]]
        if equal:
            who = listed((row[hue] for row in equal), 3)
            lines.append(
                sentence(
                    f"{who} {'does' if len(equal) == 1 else 'do'} not differ significantly from {name(best[hue])}"
                )
            )
        elif len(tested) > 1:
            lines.append(f"All other schedulers differ significantly from {name(best[hue])}.")
    elif behind:
        lines.append(
            f"No scheduler has a significantly {'lower' if better < 0 else 'higher'} {known.words} than {reference}."
        )
    else:
        lines.append(f"No scheduler differs significantly from {reference} in {known.words}.")
    if len(tested) > 1 and (ahead or behind):
        lines.append(_tally(len(tested), ahead, behind, reference, better))
    missing = compared[compared["probability"].isna()]
    if len(missing):
        lines.append(_not_estimable(missing, known, reference, of=listed(missing[hue])))
    return lines


def _difference(row: Mapping[str, Any], known: Measure) -> str:
    value, low, high = (float(row[f"difference{end}"]) for end in ("", "_low", "_high"))
    bounds = interval_text(low, high, known.unit, share=known.share)
    return f"{value_text(value, known.unit, share=known.share)} {bounds}".strip()


def _tally(total: int, ahead: int, behind: int, reference: str, better: int) -> str:
    """How many are significantly better and worse than the reference, and how many do not differ."""
    sides = ("lower", "higher") if better < 0 else ("higher", "lower")
    parts = [
        f"{count(number)} {'is' if number == 1 else 'are'} significantly {side}"
        for number, side in ((ahead, sides[0]), (behind, sides[1]))
        if number
    ]
    rest = total - ahead - behind
    if rest:
        parts.append(f"{count(rest)} {'does' if rest == 1 else 'do'} not differ from {reference}")
    return f"Of {count(total)} schedulers, {listed(parts)}."


def _not_estimable(rows: pd.DataFrame, known: Measure, reference: str, *, of: str = "") -> str:
    """Why no comparison can be made."""
    reasons = [str(each) for each in rows.filter(regex="_reason$").iloc[:, 0] if each] or ["no intervals"]
    who = f" of {of}" if of else ""
    if all(reason.startswith("identical") for reason in reasons):
        return f"The {known.words}{who} is identical to that of {reference} in all replicates."
    return f"The difference{who} from {reference} in {known.words} is not estimable: {reasons[0]}."


def _several_rankings(
    facets: list[tuple[str, pd.DataFrame]],
    known: Measure,
    specification: Specification,
    attributes: Attributes,
) -> list[str]:
    """Sentences on several scenarios: who is best where, then the first ones in detail."""
    reference, hue = _reference_name(specification, attributes), specification.hue
    better = -1 if known.better != "higher" else 1
    winners: dict[str, list[str]] = {}
    neither, unknown = [], []
    for facet, part in facets:
        compared = _compared(part, specification, attributes)
        tested = compared[compared["probability"].notna()]
        if tested.empty:
            unknown.append(facet)
            continue
        best = tested.sort_values(specification.relation, ascending=better < 0, kind="stable").iloc[0]
        if best["significant"] == better:
            winners.setdefault(str(best[hue]), []).append(facet)
        else:
            neither.append(facet)
    word = "lowest" if better < 0 else "highest"
    total = len(facets)
    lines = []
    if len(winners) == 1 and not neither and not unknown:
        lines.append(
            f"{name(next(iter(winners)))} has the {word} {known.words} in all {count(total)} scenarios."
        )
    elif winners:
        parts = [f"{name(who)} in {listed(where, 2)}" for who, where in winners.items()]
        lines.append(f"The {word} {known.words}: {listed(parts, 3)}.")
    elif neither:
        lines.append(
            f"No scheduler has a significantly {'lower' if better < 0 else 'higher'} {known.words} than {reference}."
        )
    else:
        lines.append(f"No difference in {known.words} is estimable.")
    if winners and neither:
        lines.append(f"In {listed(neither, 3)} no scheduler is significantly better than {reference}.")
    if unknown:
        part = dict(facets)[unknown[0]]
        lines.append(
            f"{listed(unknown, 3)}: {_not_estimable(_compared(part, specification, attributes), known, reference)}"
            if len(_compared(part, specification, attributes))
            else f"{listed(unknown, 3)}: nothing is compared."
        )
    for facet, part in facets[:MOST_FACETS]:
        if facet not in unknown and facet not in neither:
            lines.append(f"{name(facet)}: {_one_ranking(part, known, specification, attributes)[0]}")
    return lines


def plain_ranking(numbers: pd.DataFrame, specification: Specification) -> list[str]:
    """Lowest and highest value of a figure without comparisons; values without intervals are of this run only."""
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]] if len(numbers) else numbers
    own = own[own["value"].notna()]
    if own.empty:
        return NOTHING
    known = known_measure(str(own["measure"].iloc[0]))
    ordered = own.sort_values("value", kind="stable")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    if value_text(low["value"], known.unit) == value_text(high["value"], known.unit):
        return [f"The {known.words} is {estimate_text(low, known.unit, share=known.share)} throughout."]
    once = "" if own["low"].notna().any() else "In this run, the "
    text = (
        f"{known.words} ranges from {estimate_text(low, known.unit, share=known.share)} ({_who(low, own, specification)}) "
        f"to {estimate_text(high, known.unit, share=known.share)} ({_who(high, own, specification)})."
    )
    return [f"{once}{text}" if once else text[:1].upper() + text[1:]]


def _who(row: Mapping[str, Any], numbers: pd.DataFrame, specification: Specification) -> str:
    axes = dict.fromkeys(
        axis
        for axis in (specification.facets, specification.hue, specification.lanes, specification.x)
        if axis
    )
    told = [str(row[axis]) for axis in axes if axis in numbers and numbers[axis].nunique() > 1]
    return ", ".join(map(name, told)) or "the only one"


def response(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """How a measure changes from the lowest to the highest value of a parameter, line by line."""
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]]
    own = own[pd.to_numeric(own[specification.x], errors="coerce").notna()]
    known = known_measure(str(own["measure"].iloc[0]))
    compares = specification.reference and specification.relation in own
    column = specification.relation if compares else "value"
    words = specification.x.replace("_", " ")
    lines = []
    for facet, part in _facets(own, specification)[:MOST_FACETS]:
        table = part.sort_values(specification.x).groupby(specification.hue, sort=False)
        ends = table.agg(
            first=(column, "first"),
            last=(column, "last"),
            low=(specification.x, "first"),
            high=(specification.x, "last"),
        )
        ends = ends[
            (ends["low"] < ends["high"]) & ends["first"].notna() & ends["last"].notna() & (ends["first"] > 0)
        ]
        if ends.empty:
            continue
        change = (ends["last"] / ends["first"]).sort_values()
        who = (
            change.index[0]
            if abs(np.log(change.iloc[0])) > abs(np.log(change.iloc[-1]))
            else change.index[-1]
        )
        row = ends.loc[who]
        unit = "1" if compares else known.unit
        place = f"{name(facet)}: " if facet and own[specification.facets].nunique() > 1 else ""
        lines.append(
            f"{place}{known.words} of {name(who)} goes from {value_text(row['first'], unit, share=known.share and not compares)} to "
            f"{value_text(row['last'], unit, share=known.share and not compares)} as {words} goes from {row['low']:g} to {row['high']:g}."
        )
    lines = [line[:1].upper() + line[1:] for line in lines]
    return lines or plain_ranking(own, specification) if len(own) else NOTHING


def distribution(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Medians and 99th percentiles: the widest spread of a facet."""
    own = numbers[numbers["measure"] == numbers["measure"].iloc[0]]
    known = known_measure(str(own["measure"].iloc[0]).removesuffix("_quantile") + "_mean")
    words = known.words.removeprefix("mean ")
    facet, part = _facets(own, specification)[0]
    lines = []
    for share, text in ((0.5, "median"), (0.99, "99th percentile")):
        at = part[np.isclose(part["quantile"], share)].sort_values("value")
        if len(at) > 1 and at["value"].iloc[0] < at["value"].iloc[-1]:
            low, high = at.iloc[0], at.iloc[-1]
            lines.append(
                f"The {text} of the {words} ranges from {value_text(low['value'], known.unit)} ({name(low[specification.hue])}) to "
                f"{value_text(high['value'], known.unit)} ({name(high[specification.hue])})."
            )
    return lines or [f"The {words} has the same distribution throughout."]


def series(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The highest point of a time series, and whose it is."""
    own = numbers[(numbers["measure"] == numbers["measure"].iloc[0]) & numbers["value"].notna()]
    if own.empty:
        return NOTHING
    known = known_measure(str(own["measure"].iloc[0]))
    top = own.sort_values("value").iloc[-1]
    day = f"{top[specification.x] / 86_400:.3g}"
    return [
        f"The highest {known.words} is {value_text(top['value'], known.unit, share=known.share)}, on day {day} under {name(top[specification.hue])}."
    ]


def composition(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """The largest part of all rows together, and where it is largest."""
    own = numbers[(numbers["measure"] == numbers["measure"].iloc[0]) & numbers["value"].notna()]
    total = own["value"].sum()
    if own.empty or not total:
        return NOTHING
    parts = own.groupby(specification.lanes, sort=False)["value"].sum().sort_values()
    known = known_measure(str(own["measure"].iloc[0]))
    return [f"{name(parts.index[-1])} has {percent(parts.iloc[-1] / total)} of all {known.words}."]


def schedule(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """When the last job of a Gantt chart ends, and how full the cluster is until then."""
    if numbers.empty:
        return ["No job ran."]
    first, last = int(numbers["start_time"].min()), int(numbers["end_time"].max())
    work = float((numbers["processors"] * (numbers["end_time"] - numbers["start_time"])).sum())
    sizes = (numbers["first_processor"] + numbers["processors"]).groupby(numbers["cluster"]).max().sum()
    full = percent(work / (float(sizes) * (last - first))) if last > first else "all"
    jobs = numbers["job_number"].nunique()
    return [
        f"All {jobs} jobs end within {value_text(last - first, 's')}; {full} of the processor time is used."
    ]


def workload(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> list[str]:
    """Which jobs make most of the work of a workload, and its busiest hour."""
    values = {
        name: own[own["value"].notna()].set_index("label")["value"]
        for name, own in numbers.groupby("variable")
    }
    work, jobs, hours = (
        values.get(each, pd.Series(dtype=float)) for each in ("work_share", "size_share", "arrivals_hour")
    )
    lines = []
    if len(work):
        most = work.idxmax()
        share = f" ({percent(float(jobs[most]))} of the jobs)" if most in jobs else ""
        lines.append(f"Jobs of {most} processors{share} have {percent(float(work[most]))} of the work.")
    if len(hours) and hours.max() > hours.mean() * 1.25:
        lines.append(
            f"The busiest hour begins at {hours.idxmax()} h, {hours.max() / hours.mean():.3g} times the mean."
        )
    return lines or ["The log does not say what the panels would show."]

"""The stages of a study of readings: claims judged under one reading, and all readings together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import inference, results
from gridsched.experiments import files
from gridsched.experiments.claims import (
    Claim,
    InputClaim,
    Outcome,
    UntestableClaim,
    evaluate,
    load_claims,
    studies_of,
)
from gridsched.experiments.collection import attrs_of
from gridsched.experiments.kinds.readings import analysis, findings
from gridsched.experiments.kinds.readings.choices import (
    ClaimLabels,
    belongs,
    can_matter,
    on_what_is_kept,
    read_as,
)
from gridsched.experiments.kinds.readings.config import ReadingsStudy
from gridsched.io import checksum
from gridsched.measures import measure

CODES: dict[Outcome, int] = {
    "not": analysis.NOT,
    "partly": analysis.PARTLY,
    "reproduced": analysis.REPRODUCED,
    "not run": analysis.UNKNOWN,
}
"""Outcomes as numbers."""


def judge_claims(
    claims: str | Path,
    labels: ClaimLabels,
    datasets: Mapping[str, str | Path],
    target: str | Path,
    *,
    partial: bool = False,
) -> None:
    """Judge the claims about some studies under a reading, with the code that judges the ledger.

    Parameters
    ----------
    claims : path
        File of the claims.
    labels : ClaimLabels
        Labels that the reading means.
    datasets : mapping of study to path
        The datasets of the studies under the reading.
    target : path
        Dataset to write: on `claim` the outcome as a number of `CODES`, our value, whether the claim
        belongs to the reading, and for which labels it is judged if not for all that it is about.
    partial : bool
        Whether claims about several labels are judged on those that the studies have.
    """
    read = {name: files.shared(path) for name, path in datasets.items()}
    own = [
        claim
        for claim in _claims(str(claims), checksum(claims))
        if not isinstance(claim, InputClaim | UntestableClaim) and set(studies_of(claim)) == set(datasets)
    ]
    known = {
        name: {str(place): set(values.values.tolist()) for place, values in dataset.coords.items()}
        for name, dataset in (read.items() if partial else ())
    }
    meant = [on_what_is_kept(read_as(claim, labels), known) for claim in own]
    verdicts = evaluate([claim for claim, _ in meant], read)
    whole = xr.Dataset(
        {
            "outcome": ("claim", np.array([CODES[verdict.verdict] for verdict in verdicts], np.int8)),
            "our_value": ("claim", np.array([verdict.our_value for verdict in verdicts], np.float64)),
            "belongs": ("claim", np.array([belongs(claim, labels) for claim in own], np.int8)),
            "only_on": ("claim", np.array([text for _, text in meant], dtype=object)),
        },
        {"claim": [claim.id for claim in own]},
        results.provenance(),
    )
    files.write(whole, target)


@lru_cache(maxsize=1)
def _claims(file: str, content: str) -> list[Claim]:
    """Claims of a file with this checksum, which many tasks of a process read."""
    return load_claims([file])


# --- all readings ---------------------------------------------------------------------------------


def aggregate_readings_study(
    study: ReadingsStudy,
    readings: Sequence[Sequence[int]],
    parts: Sequence[Sequence[str | Path]],
    target: str | Path,
) -> None:
    """Put the verdicts of all readings together, with the analysis of claims, choices and readings.

    Parameters
    ----------
    study : ReadingsStudy
        The study.
    readings : sequence of sequences of int
        Place of the value of each choice, the default reading first.
    parts : sequence of sequences of paths
        Results of `judge_claims` by reading.
    target : path
        The dataset.
    """
    known = {claim.id: claim for claims in study.judged.values() for claim in claims}
    rows = [
        xr.concat([files.shared(path) for path in paths], "claim", combine_attrs="drop_conflicts")
        for paths in parts
    ]
    raw = xr.concat(rows, "reading", combine_attrs="drop_conflicts")
    # In the order of the ledger, without claims that the studies cannot answer as they are kept
    answered = raw["claim"].values[(raw["outcome"].values != analysis.UNKNOWN).any(axis=0)]
    order = [name for name in known if name in set(answered.tolist())]
    raw = raw.sel(claim=order)
    raw["only_on"] = raw["only_on"].isel(reading=0)
    design = np.array(readings, np.int64)
    whole = xr.merge(
        [
            _design(study, design),
            raw.assign_coords(reading=range(len(design))),
            _of_claims(study, design, raw, [known[name] for name in order]),
            _of_readings(design, raw, [known[name] for name in order]),
        ]
    )
    whole = whole.merge(_counts(whole))
    labels = [choice.name for choice in study.paper.choices]
    for name, (text, units) in _MEANINGS.items():
        whole[name].attrs = attrs_of(text, units)
    for name in ("claims", "claims_missed", "claims_decided"):
        whole[name].attrs = attrs_of(measure(name).words, measure(name).unit)
    whole.attrs = {
        **study.described(paper=study.paper.paper, seed=study.seed),
        "claims_left_out": len(known) - len(order),
        "most_important": findings.most_important(
            dict(zip(labels, whole["claims_decided"].values[:, 0].tolist(), strict=True)),
            int(whole["claims"].sel(robustness_class="contingent").sum()),
        ),
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


_MEANINGS: dict[str, tuple[str, str]] = {
    "place": ("place of the value among those of the choice", "1"),
    "outcome": ("verdict on the claim: 0 not, 1 partly, 2 reproduced, -1 not judged", "1"),
    "our_value": ("our value, in the unit of the claim", ""),
    "belongs": ("whether the claim belongs to the interpretation", "1"),
    "share": ("share of the interpretations drawn that reproduce the claim", "1"),
    "share_low": ("share of the interpretations drawn that reproduce the claim, lower bound", "1"),
    "share_high": ("share of the interpretations drawn that reproduce the claim, upper bound", "1"),
    "partly_share": ("share of the interpretations drawn that reproduce the claim at least partly", "1"),
    "partly_share_low": ("share of the interpretations drawn that do so at least partly, lower bound", "1"),
    "partly_share_high": ("share of the interpretations drawn that do so at least partly, upper bound", "1"),
    "importance": ("decrease of the accuracy of predicted outcomes when the choice is permuted", "1"),
    "importance_low": ("importance of the choice, lower bound", "1"),
    "importance_high": ("importance of the choice, upper bound", "1"),
    "agreement": ("share of the claims of the table that the interpretation reproduces", "1"),
    "agreement_mean": ("mean over tables of the share of claims that the interpretation reproduces", "1"),
    "first_half": ("whether the table is in the first half", "1"),
    "not_dominated": ("whether no other interpretation agrees at least as well with every table", "1"),
    "pair_expected": ("interpretations that would reproduce both claims if these were independent", "1"),
    "pair_readings": ("interpretations that reproduce each of two claims that none reproduces together", "1"),
    "chosen_reading": ("interpretation that agrees best with a half of the tables", "1"),
    "chosen_on": ("mean share of claims reproduced, on the tables on which it was chosen", "1"),
    "judged_on": ("mean share of claims reproduced, on the other tables", "1"),
    "judged_default": ("mean share of claims reproduced on them by the default interpretation", "1"),
    "judged_average": ("mean share of claims reproduced on them over all interpretations", "1"),
    "judged_best": ("mean share of claims reproduced on them by the best interpretation for them", "1"),
}


def _design(study: ReadingsStudy, design: np.ndarray) -> xr.Dataset:
    """Readings and choices."""
    choices = study.paper.choices
    names = [[value.name for value in choice.values] for choice in choices]
    values = [[own[place] for own, place in zip(names, row, strict=True)] for row in design.tolist()]
    return xr.Dataset(
        {
            "place": (("reading", "choice"), design.astype(np.int16)),
            "value": (("reading", "choice"), np.array(values, dtype=object)),
        },
        {"reading": range(len(design)), "choice": [choice.name for choice in choices]},
    )


def _of_claims(
    study: ReadingsStudy, design: np.ndarray, raw: xr.Dataset, claims: Sequence[Claim]
) -> xr.Dataset:
    """How robust each claim is, which choices matter for it, and when it holds."""
    outcome, ours = raw["outcome"].values[1:], raw["our_value"].values[1:]
    judged = outcome != analysis.UNKNOWN
    share = inference.share((outcome == analysis.REPRODUCED).sum(axis=0), judged.sum(axis=0))
    partly = inference.share((outcome >= analysis.PARTLY).sum(axis=0), judged.sum(axis=0))
    classes = [analysis.robustness(each) for each in share.value]
    # Claims with the same outcomes have the same analysis
    keys = [
        (column.tobytes(), tuple(can_matter(choice, claim) for choice in study.paper.choices))
        for column, claim in zip(outcome.T, claims, strict=True)
    ]
    found = {
        key: _analysed(design[1:], outcome[:, place], np.flatnonzero(key[1]))
        for place, key in enumerate(keys)
        if classes[place] == "contingent"
    }
    is_significant = dict(zip(found, analysis.significant([each[1] for each in found.values()]), strict=True))
    unknown = analysis.Importance(*np.full((3, design.shape[1]), np.nan))
    weights = [found[key][0] if key in found else unknown for key in keys]
    texts = []
    for place, (claim, key) in enumerate(zip(claims, keys, strict=True)):
        text = ""
        if key in found:
            holding = found[key][1] if is_significant[key] else None
            text = findings.condition_text(holding, weights[place], study.paper.choices)
        elif classes[place] == "contradicted":
            text = findings.contradicted_text(claim, ours[judged[:, place], place])
        only_on = str(raw["only_on"].values[place])
        texts.append(f"Judged for {only_on} only. {text}".strip() if only_on else text)
    columns: dict[str, Any] = {
        **_with_bounds("share", share),
        **_with_bounds("partly_share", partly),
        "robustness": np.array(classes, dtype=object),
        "condition": np.array(texts, dtype=object),
        "where": np.array([claim.where for claim in claims], dtype=object),
        "statement": np.array([claim.statement for claim in claims], dtype=object),
    }
    own = [[each[bound] for each in weights] for bound in range(3)]
    names = ("importance", "importance_low", "importance_high")
    return xr.Dataset(
        {name: ("claim", column) for name, column in columns.items()}
        | {name: (("claim", "choice"), np.array(each)) for name, each in zip(names, own, strict=True)}
    )


def _with_bounds(name: str, estimate: inference.Estimate) -> dict[str, Any]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _analysed(
    design: np.ndarray, outcome: np.ndarray, able: np.ndarray
) -> tuple[analysis.Importance, analysis.ClaimCondition | None]:
    """Importance of choices for a claim, and when it holds; of those that can matter for it."""
    judged = outcome != analysis.UNKNOWN
    whole = np.full((3, design.shape[1]), np.nan)
    if not len(able):
        return analysis.Importance(*whole), None
    part, holds = design[np.ix_(judged, able)], outcome[judged] == analysis.REPRODUCED
    whole[:, able] = analysis.importance(part, holds)
    found = analysis.condition(part, holds)
    if found is not None:
        parts = tuple((int(able[choice]), places) for choice, places in found.parts)
        found = replace(found, parts=parts)
    return analysis.Importance(*whole), found


def _counts(whole: xr.Dataset) -> xr.Dataset:
    """Numbers of claims: by table and class, and by choice and how much that matters for them."""
    where, called = whole["where"].values, whole["robustness"].values
    missed = whole["outcome"].values[0] == analysis.NOT
    cells = np.array(
        [
            [(where == table) & (called == name) for name in analysis.CLASSES]
            for table in whole["table"].values
        ]
    )
    weights, is_significant = whole["importance"].values, whole["importance_low"].values > 0
    highest = np.nan_to_num(weights, nan=-np.inf)
    first = is_significant & (highest == highest.max(axis=1, keepdims=True))
    effects = (first, is_significant & ~first, np.isfinite(weights) & ~is_significant)
    own = ("table", "robustness_class")
    return xr.Dataset(
        {
            "claims": (own, cells.sum(axis=-1)),
            "claims_missed": (own, (cells & missed).sum(axis=-1)),
            "claims_decided": (("choice", "effect"), np.sum(effects, axis=1).T),
        },
        {"robustness_class": list(analysis.CLASSES), "effect": list(findings.EFFECTS)},
    )


def _of_readings(design: np.ndarray, raw: xr.Dataset, claims: Sequence[Claim]) -> xr.Dataset:
    """Which readings agree with most tables, and which claims no reading reproduces together."""
    outcome = raw["outcome"].values
    reproduced = outcome == analysis.REPRODUCED
    counts = (raw["belongs"].values == 1) & (outcome != analysis.UNKNOWN)
    tables, shares = analysis.agreement(reproduced, counts, [claim.where for claim in claims])
    sizes = [sum(claim.where == table for claim in claims) for table in tables]
    first = analysis.halves(sizes)
    chosen = analysis.choose(shares, first).rename_axis("direction").to_xarray().drop_vars("direction")
    pairs = analysis.contradictions(reproduced[1:], counts[1:])
    names = [claim.id for claim in claims]
    return xr.Dataset(
        {
            "agreement": (("reading", "table"), shares),
            "agreement_mean": ("reading", np.nanmean(shares, axis=1)),
            "first_half": ("table", first.astype(np.int8)),
            "not_dominated": ("reading", analysis.not_dominated(shares).astype(np.int8)),
            "pair_claims": (
                ("pair", "side"),
                np.array([[names[pair.one], names[pair.other]] for pair in pairs], dtype=object).reshape(
                    -1, 2
                ),
            ),
            "pair_expected": ("pair", np.array([pair.expected for pair in pairs], np.float64)),
            "pair_readings": (
                ("pair", "side"),
                np.array([pair.alone for pair in pairs], np.int64).reshape(-1, 2),
            ),
        },
        {"table": tables},
    ).merge(chosen)

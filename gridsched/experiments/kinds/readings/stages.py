"""The stages of a study of readings: claims judged under one reading, and all readings together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import inference, results
from gridsched.experiments import files
from gridsched.experiments.claims import Claim, Outcome, evaluate, load_claims, studies_of
from gridsched.experiments.collection import attrs_of
from gridsched.experiments.kinds.readings import analysis, findings
from gridsched.experiments.kinds.readings.choices import (
    ClaimLabels,
    TestableClaim,
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
        if isinstance(claim, TestableClaim) and set(studies_of(claim)) == set(datasets)
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
    raw = xr.concat(
        [xr.concat(map(files.shared, paths), "claim", combine_attrs="drop_conflicts") for paths in parts],
        "reading",
        combine_attrs="drop_conflicts",
    )
    # In the order of the ledger, without claims that the studies cannot answer as they are kept
    answered = raw["claim"].values[(raw["outcome"].values != analysis.UNKNOWN).any(axis=0)].tolist()
    claims = {name: claim for name, claim in known.items() if name in answered}
    raw = raw.sel(claim=list(claims)).assign_coords(reading=range(len(readings)))
    raw["only_on"] = raw["only_on"].isel(reading=0)
    whole = xr.merge(
        [
            _design(study, readings),
            raw,
            _of_claims(study, np.array(readings[1:], np.int64), raw, list(claims.values())),
            _of_readings(raw, list(claims.values())),
        ]
    )
    whole = whole.merge(_counts(whole))
    counted = {name: (measure(name).words, measure(name).unit) for name in _COUNTED}
    for name, (words, unit) in (_MEANINGS | counted).items():
        whole[name].attrs = attrs_of(words, unit)
    facts = {
        **study.described(paper=study.paper.paper, seed=study.seed),
        "claims_left_out": len(known) - len(claims),
        "most_important": findings.most_important(
            whole["claims_decided"].sel(effect=findings.EFFECTS[0]).to_series().to_dict(),
            int(whole["claims"].sel(robustness_class="contingent").sum()),
        ),
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole.assign_attrs(facts), target)


_COUNTED = ("claims", "claims_missed", "claims_decided")
"""Measures of the study, which have their words elsewhere."""

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


def _design(study: ReadingsStudy, readings: Sequence[Sequence[int]]) -> xr.Dataset:
    """Readings and choices."""
    values = [[value.name for value in study.paper.values(reading)] for reading in readings]
    return xr.Dataset(
        {
            "place": (("reading", "choice"), np.array(readings, np.int16)),
            "value": (("reading", "choice"), np.array(values, dtype=object)),
        },
        {"reading": range(len(readings)), "choice": [choice.name for choice in study.paper.choices]},
    )


def _of_claims(
    study: ReadingsStudy, design: np.ndarray, raw: xr.Dataset, claims: Sequence[TestableClaim]
) -> xr.Dataset:
    """How robust each claim is, which choices matter for it, and when it holds, by the readings drawn."""
    choices = study.paper.choices
    outcome, ours = raw["outcome"].values[1:].T, raw["our_value"].values[1:].T
    judged = outcome != analysis.UNKNOWN
    share, partly = (
        inference.share((outcome >= least).sum(axis=1), judged.sum(axis=1))
        for least in (analysis.REPRODUCED, analysis.PARTLY)
    )
    classes = analysis.robustness(share.value)
    # Claims with the same outcomes, for which the same choices can matter, have the same analysis
    keys = [
        (row.tobytes(), tuple(can_matter(choice, claim) for choice in choices))
        for row, claim in zip(outcome, claims, strict=True)
    ]
    found = {
        key: _analysed(design[judged[place]], outcome[place, judged[place]], np.array(key[1]))
        for place, key in enumerate(keys)
        if classes[place] == "contingent"
    }
    is_significant = dict(zip(found, analysis.significant([each[1] for each in found.values()]), strict=True))
    weights = np.full((3, len(claims), len(choices)), np.nan)
    texts = [f"Judged for {only_on} only." if only_on else "" for only_on in raw["only_on"].values]
    for place, key in enumerate(keys):
        if key in found:
            weights[:, place], holding = found[key]
            shown = holding if is_significant[key] else None
            texts[place] += f" {findings.condition_text(shown, weights[:, place], choices)}"
        elif classes[place] == "contradicted":
            texts[place] += f" {findings.contradicted_text(claims[place], ours[place, judged[place]])}"
    columns = {
        "robustness": classes,
        "condition": [text.strip() for text in texts],
        "where": [claim.where for claim in claims],
        "statement": [claim.statement for claim in claims],
    }
    return xr.Dataset(
        _with_bounds("share", "claim", share)
        | _with_bounds("partly_share", "claim", partly)
        | {name: ("claim", np.array(column, dtype=object)) for name, column in columns.items()}
        | _with_bounds("importance", ("claim", "choice"), weights)
    )


def _with_bounds(name: str, dims: str | tuple[str, ...], estimate: Iterable[Any]) -> dict[str, Any]:
    """Variables of an estimate: value, lower and upper bound."""
    return {f"{name}{end}": (dims, part) for end, part in zip(("", "_low", "_high"), estimate, strict=False)}


def _analysed(
    design: np.ndarray, outcome: np.ndarray, able: np.ndarray
) -> tuple[np.ndarray, analysis.ClaimCondition | None]:
    """Importance of the choices that can matter for a claim, and when it holds."""
    holds = outcome == analysis.REPRODUCED
    weights = np.full((3, len(able)), np.nan)
    if able.any():
        weights[:, able] = analysis.importance(design[:, able], holds)
    # A choice with one value is in no condition
    return weights, analysis.condition(np.where(able, design, 0), holds)


def _counts(whole: xr.Dataset) -> xr.Dataset:
    """Numbers of claims: by table and class, and by choice and how much that matters for them."""
    claims = whole[["where", "robustness"]].to_dataframe()
    missed = claims[whole["outcome"].values[0] == analysis.NOT]
    cells = [
        pd.crosstab(own["where"], own["robustness"])
        .reindex(index=whole["table"].values, columns=analysis.CLASSES, fill_value=0)
        .astype(np.int64)
        for own in (claims, missed)
    ]
    weights, is_significant = whole["importance"].values, whole["importance_low"].values > 0
    first = is_significant & (weights == np.fmax.reduce(weights, axis=1, keepdims=True))
    effects = (first, is_significant & ~first, np.isfinite(weights) & ~is_significant)
    return xr.Dataset(
        {
            "claims": (("table", "robustness_class"), cells[0]),
            "claims_missed": (("table", "robustness_class"), cells[1]),
            "claims_decided": (("choice", "effect"), np.sum(effects, axis=1).T),
        },
        {"robustness_class": list(analysis.CLASSES), "effect": list(findings.EFFECTS)},
    )


def _of_readings(raw: xr.Dataset, claims: Sequence[TestableClaim]) -> xr.Dataset:
    """Which readings agree with most tables, and which claims no reading reproduces together."""
    outcome, where = raw["outcome"].values, [claim.where for claim in claims]
    reproduced = outcome == analysis.REPRODUCED
    counts = (raw["belongs"].values == 1) & (outcome != analysis.UNKNOWN)
    tables, shares = analysis.agreement(reproduced, counts, where)
    first = analysis.halves([where.count(table) for table in tables])
    pairs = analysis.contradictions(reproduced[1:], counts[1:])
    chosen = analysis.choose(shares, first).rename_axis("direction").to_xarray().drop_vars("direction")
    return xr.Dataset(
        {
            "agreement": (("reading", "table"), shares),
            "agreement_mean": ("reading", np.nanmean(shares, axis=1)),
            "first_half": ("table", first.astype(np.int8)),
            "not_dominated": ("reading", analysis.not_dominated(shares).astype(np.int8)),
            "pair_claims": (
                ("pair", "side"),
                raw["claim"].values.astype(object)[pairs[["one", "other"]].to_numpy()],
            ),
            "pair_expected": ("pair", pairs["expected"].to_numpy()),
            "pair_readings": (("pair", "side"), pairs[["one_alone", "other_alone"]].to_numpy()),
        },
        {"table": tables},
    ).merge(chosen)

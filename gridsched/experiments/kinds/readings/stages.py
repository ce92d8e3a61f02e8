"""The stages of a study of readings: claims judged under one reading, and all readings together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
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
from gridsched.experiments.kinds.readings import analysis
from gridsched.experiments.kinds.readings.choices import ClaimLabels, belongs, can_matter, on_what_is_kept, read_as
from gridsched.experiments.kinds.readings.config import ReadingsStudy
from gridsched.experiments.kinds.readings.words import condition_text, contradicted_text
from gridsched.io import checksum

CODES: dict[Outcome, int] = {
    "not": analysis.NOT,
    "partly": analysis.PARTLY,
    "reproduced": analysis.REPRODUCED,
    "not run": analysis.UNKNOWN,
}
"""Outcomes as numbers."""

WORDS = {code: word for word, code in CODES.items()}
"""Outcomes by number."""


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
        belongs to the reading, and on which labels it is judged if not on all that it is about.
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
    """Put the verdicts of all readings together, with what they say of claims, choices and readings.

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
    for name, (text, units) in _MEANINGS.items():
        whole[name].attrs = {"long_name": text, "units": units}
    whole.attrs = {
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "paper": study.paper.paper,
        "configuration_hash": study.checksum(),
        "seed": study.seed,
        "claims_left_out": len(known) - len(order),
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


_MEANINGS: dict[str, tuple[str, str]] = {
    "place": ("place of the value among those of the choice", "1"),
    "outcome": ("verdict on the claim: 0 not, 1 partly, 2 reproduced, -1 not judged", "1"),
    "our_value": ("our value, in the unit of the claim", ""),
    "belongs": ("whether the claim belongs to the reading", "1"),
    "share": ("share of the readings drawn that reproduce the claim", "1"),
    "share_low": ("share of the readings drawn that reproduce the claim, lower bound", "1"),
    "share_high": ("share of the readings drawn that reproduce the claim, upper bound", "1"),
    "partly_share": ("share of the readings drawn that reproduce the claim at least partly", "1"),
    "importance": ("fall of the accuracy with which the claim is told, without the choice", "1"),
    "importance_low": ("importance of the choice, lower bound", "1"),
    "importance_high": ("importance of the choice, upper bound", "1"),
    "agreement": ("share of the claims of the table that the reading reproduces", "1"),
    "agreement_mean": ("mean over tables of the share of their claims that the reading reproduces", "1"),
    "first_half": ("whether the table is in the first half", "1"),
    "not_dominated": ("whether no other reading agrees at least as well with every table", "1"),
    "pair_expected": ("readings that would meet both claims if these were independent", "1"),
    "pair_readings": ("readings that meet each of two claims which none meets together", "1"),
    "chosen_reading": ("reading that agrees best with a half of the tables", "1"),
    "chosen_on": ("mean share of claims reproduced, on the tables on which the reading was chosen", "1"),
    "judged_on": ("mean share of claims reproduced, on the other tables", "1"),
    "judged_default": ("mean share of claims reproduced on them by the default reading", "1"),
    "judged_average": ("mean share of claims reproduced on them over all readings", "1"),
    "judged_best": ("mean share of claims reproduced on them by the reading that is best for them", "1"),
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
    """How robust each claim is, what decides it, and a sentence of that."""
    drawn, outcome = design[1:], raw["outcome"].values[1:]
    ours = raw["our_value"].values[1:]
    columns: dict[str, list[Any]] = {name: [] for name in ("share", "low", "high", "partly", "class", "text")}
    weights = []
    # Claims with the same outcomes are told by the same forest
    told: dict[Any, tuple[analysis.Importance, analysis.ClaimCondition | None]] = {}
    for place, claim in enumerate(claims):
        judged = outcome[:, place] != analysis.UNKNOWN
        holds = outcome[judged, place] == analysis.REPRODUCED
        partly = outcome[judged, place] >= analysis.PARTLY
        share, low, high = analysis.share_interval(int(holds.sum()), int(judged.sum()))
        name = analysis.robustness(share)
        unknown = np.full(design.shape[1], np.nan)
        decided = analysis.Importance(unknown, unknown, unknown)
        text = ""
        if name == "contingent":
            able = tuple(i for i, choice in enumerate(study.paper.choices) if can_matter(choice, claim))
            key = holds.tobytes(), judged.tobytes(), able
            if key not in told:
                told[key] = _decided(drawn[judged], holds, able)
            decided, found = told[key]
            text = condition_text(found, decided, study.paper.choices)
        elif name == "contradicted":
            text = contradicted_text(claim, ours[judged, place], int(holds.sum()), int(partly.sum()))
        if only_on := str(raw["only_on"].values[place]):
            text = f"Judged on {only_on} only. {text}".strip()
        weights.append(decided)
        for column, value in zip(
            columns.values(), (share, low, high, float(partly.mean()), name, text), strict=True
        ):
            column.append(value)
    own = ("claim", "choice")
    return xr.Dataset(
        {
            "share": ("claim", columns["share"]),
            "share_low": ("claim", columns["low"]),
            "share_high": ("claim", columns["high"]),
            "partly_share": ("claim", columns["partly"]),
            "robustness": ("claim", np.array(columns["class"], dtype=object)),
            "condition": ("claim", np.array(columns["text"], dtype=object)),
            "where": ("claim", np.array([claim.where for claim in claims], dtype=object)),
            "statement": ("claim", np.array([claim.statement for claim in claims], dtype=object)),
            "importance": (own, np.array([each.mean for each in weights])),
            "importance_low": (own, np.array([each.low for each in weights])),
            "importance_high": (own, np.array([each.high for each in weights])),
        }
    )


def _decided(
    design: np.ndarray, holds: np.ndarray, able: Sequence[int]
) -> tuple[analysis.Importance, analysis.ClaimCondition | None]:
    """What decides a claim among the choices that can matter for it, and when it holds."""
    if not able:
        unknown = np.full(design.shape[1], np.nan)
        return analysis.Importance(unknown, unknown, unknown), None
    part = design[:, list(able)]
    whole = []
    for bound in analysis.importance(part, holds):
        values = np.full(design.shape[1], np.nan)
        values[list(able)] = bound
        whole.append(values)
    found = analysis.condition(part, holds)
    if found is not None:
        parts = tuple((able[choice], places) for choice, places in found.parts)
        found = replace(found, parts=parts)
    return analysis.Importance(*whole), found


def _of_readings(design: np.ndarray, raw: xr.Dataset, claims: Sequence[Claim]) -> xr.Dataset:
    """Which readings agree with most tables, and which claims no reading meets together."""
    outcome = raw["outcome"].values
    reproduced = outcome == analysis.REPRODUCED
    counts = (raw["belongs"].values == 1) & (outcome != analysis.UNKNOWN)
    tables, shares = analysis.agreement(reproduced, counts, [claim.where for claim in claims])
    sizes = [sum(claim.where == table for claim in claims) for table in tables]
    first = analysis.halves(sizes)
    chosen = analysis.choose(shares, first)
    pairs = analysis.contradictions(reproduced[1:], counts[1:])
    names = [claim.id for claim in claims]
    return xr.Dataset(
        {
            "agreement": (("reading", "table"), shares),
            "agreement_mean": ("reading", np.nanmean(shares, axis=1)),
            "first_half": ("table", first.astype(np.int8)),
            "not_dominated": ("reading", analysis.not_dominated(shares).astype(np.int8)),
            "chosen_reading": ("direction", [each.reading for each in chosen]),
            "chosen_on": ("direction", [each.chosen_on for each in chosen]),
            "judged_on": ("direction", [each.judged_on for each in chosen]),
            "judged_default": ("direction", [each.default for each in chosen]),
            "judged_average": ("direction", [each.average for each in chosen]),
            "judged_best": ("direction", [each.best for each in chosen]),
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
    )


# --- tables ---------------------------------------------------------------------------------------


def claims_of_readings(whole: xr.Dataset) -> pd.DataFrame:
    """One row a claim: how many readings reproduce it, what it is called, when it holds."""
    names = [
        "where",
        "statement",
        "robustness",
        "share",
        "share_low",
        "share_high",
        "partly_share",
        "condition",
    ]
    table = whole[names].to_dataframe().reset_index()
    default = whole["outcome"].sel(reading=0).values.tolist()
    table.insert(4, "default", [WORDS[code] for code in default])
    return table


def readings_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row a reading, those that agree most with the paper first: agreement and values."""
    values = pd.DataFrame(
        whole["value"].values, columns=whole["choice"].values.tolist(), index=whole["reading"].values
    )
    agree = whole[["agreement_mean", "not_dominated"]].to_dataframe()
    table = pd.concat([agree, values], axis=1).rename_axis("reading")
    return table.sort_values("agreement_mean", ascending=False, kind="stable").reset_index()


def verdicts_table(whole: xr.Dataset) -> pd.DataFrame:
    """What the ledger says beside its verdicts: one row a claim, with its paper."""
    table = claims_of_readings(whole).rename(columns={"claim": "id"})
    table.insert(0, "paper", whole.attrs["paper"])
    table["readings"] = (whole["outcome"].values[1:] != analysis.UNKNOWN).sum(axis=0)
    return table[["paper", "id", "robustness", "share", "readings", "condition"]]

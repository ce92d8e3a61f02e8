"""Tables of a study of readings: as files, in the ledger and on the page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from gridsched.experiments.kinds.readings import analysis
from gridsched.experiments.kinds.readings.choices import ChoiceValue, PaperReadings
from gridsched.experiments.kinds.readings.findings import EFFECTS
from gridsched.presentation.sentences import interval_text, percent
from gridsched.presentation.tables import PageTable

OUTCOMES = {
    analysis.NOT: "not",
    analysis.PARTLY: "partly",
    analysis.REPRODUCED: "reproduced",
    analysis.UNKNOWN: "not judged",
}
"""Outcomes by their number."""

_PAIRS = 12
"""Contradictions that the page shows; the dataset has all."""

_READINGS = 8
"""Readings that the page shows."""


# --- files ----------------------------------------------------------------------------------------


def claims_of_readings(whole: xr.Dataset) -> pd.DataFrame:
    """One row a claim: how many readings reproduce it, what it is called, when it holds."""
    shares = [f"{name}{end}" for name in ("share", "partly_share") for end in ("", "_low", "_high")]
    table = whole[["where", "statement", "robustness", *shares, "condition"]].to_dataframe().reset_index()
    table["default"] = [OUTCOMES[code] for code in whole["outcome"].sel(reading=0).values.tolist()]
    return table[["claim", "where", "statement", "robustness", "default", *shares, "condition"]]


def importance_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each contingent claim and choice that can matter for it: importance with its interval."""
    names = ["importance", "importance_low", "importance_high"]
    return whole[names].to_dataframe(dim_order=["claim", "choice"]).dropna().reset_index()


def readings_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row a reading, those that agree most with the paper first: agreement and values."""
    agree = whole[["agreement_mean", "not_dominated"]].to_dataframe()
    values = pd.DataFrame(whole["value"].values, agree.index, whole["choice"].values.tolist())
    return agree.join(values).sort_values("agreement_mean", ascending=False, kind="stable").reset_index()


def verdicts_table(whole: xr.Dataset) -> pd.DataFrame:
    """What the ledger shows next to its verdicts: one row a claim, with its paper."""
    judged = (whole["outcome"].values[1:] != analysis.UNKNOWN).sum(axis=0)
    table = claims_of_readings(whole).assign(
        id=whole["claim"].values, paper=whole.attrs["paper"], readings=judged
    )
    return table[["paper", "id", "robustness", "share", "readings", "condition"]]


# --- page -----------------------------------------------------------------------------------------


def of_tables(whole: xr.Dataset) -> PageTable:
    """Claims of each table of the paper by class, and which share of them readings reproduce."""
    shares = whole["agreement"].to_numpy()
    columns = (shares[0], shares[np.argmax(whole["agreement_mean"].to_numpy())], np.nanmax(shares, axis=0))
    counts = whole["claims"].astype(int).to_pandas()
    rows = [
        [
            str(name),
            f"{own.sum()}",
            *map(str, own),
            *("" if np.isnan(each) else percent(each) for each in agree),
        ]
        for (name, own), agree in zip(counts.iterrows(), np.transpose(columns), strict=True)
    ]
    return PageTable(
        "Claims by table of the paper, and the share that single interpretations reproduce",
        ["table", "claims", *analysis.CLASSES, "by default", "by the best", "by the best for the table"],
        rows,
    )


def choices(paper: PaperReadings, whole: xr.Dataset) -> PageTable:
    """What the paper leaves open, and for how many claims each choice matters."""
    weights = importance_table(whole).sort_values("importance", ascending=False).drop_duplicates("choice")
    largest = {
        row["choice"]: f"{100 * row['importance']:.3g} "
        f"{interval_text(row['importance_low'], row['importance_high'], share=True)} ({row['claim']})"
        for row in weights.to_dict("records")
    }
    rows = [
        [
            choice.name,
            choice.question,
            choice.where,
            "; ".join(_value(value, choice.default) for value in choice.values),
            *map(str, own[:2]),
            largest.get(choice.name, ""),
        ]
        for choice, own in zip(paper.choices, whole["claims_decided"].astype(int).values, strict=True)
    ]
    return PageTable(
        "What the paper leaves open, and the number of contingent claims for which each choice matters",
        [
            *("choice", "question", "where", "values"),
            *(f"claims, {each}" for each in EFFECTS[:2]),
            "largest of all",
        ],
        rows,
        in_words=True,
    )


def _value(value: ChoiceValue, default: str) -> str:
    """A value with what it means."""
    name = f"{value.name} (default)" if value.name == default else value.name
    text = f"{value.meaning} {value.likelier}".strip().removesuffix(".")
    return f"{name}: {text}" if text else name


def best(whole: xr.Dataset) -> PageTable:
    """The readings that agree most, and the default one."""
    table = readings_table(whole)
    shown = table[(table.index < _READINGS) | (table["reading"] == 0)].drop(columns="not_dominated")
    return PageTable(
        f"Interpretations of highest agreement; {table['not_dominated'].sum():.0f} of {len(table)} are "
        "exceeded by no other on all tables",
        ["interpretation", "claims reproduced, mean over tables", *map(str, whole["choice"].values)],
        [[_name(row[0]), percent(row[1]), *row[2:]] for row in shown.itertuples(index=False)],
        in_words=True,
    )


def _name(reading: int) -> str:
    return "default" if reading == 0 else str(reading)


def directions(whole: xr.Dataset) -> PageTable:
    """What a reading that was chosen on half of the tables is worth on the other half."""
    chosen = whole[["chosen_reading", *analysis.CHOSEN]].to_dataframe()
    return PageTable(
        "Interpretation of highest agreement on one half of the tables, judged on the other half",
        [
            "interpretation",
            "claims reproduced there",
            "on the other half",
            "default",
            "mean of all",
            "best one of that half",
        ],
        [[_name(int(row[0])), *map(percent, row[1:])] for row in chosen.itertuples(index=False)],
    )


def pairs(whole: xr.Dataset) -> PageTable:
    """Claims that no reading reproduces together."""
    said = whole["statement"].to_series()
    columns = (whole[f"pair_{name}"].values[:_PAIRS] for name in ("claims", "readings", "expected"))
    rows = [
        [*(f"{said[claim]} ({claim})" for claim in claims), " and ".join(map(str, alone)), f"{expected:.0f}"]
        for claims, alone, expected in zip(*columns, strict=True)
    ]
    return PageTable(
        f"Claims that no interpretation reproduces together ({whole.sizes['pair']} pairs)",
        ["one", "other", "interpretations that reproduce each", "expected for both if independent"],
        rows,
        in_words=True,
    )

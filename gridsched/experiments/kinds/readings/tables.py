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
    names = ["where", "statement", "robustness", *shares, "condition"]
    table = whole[names].to_dataframe().reset_index()[["claim", *names]]
    default = whole["outcome"].sel(reading=0).values.tolist()
    table.insert(4, "default", [OUTCOMES[code] for code in default])
    return table


def importance_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each contingent claim and choice that can matter for it: importance with its interval."""
    names = ["importance", "importance_low", "importance_high"]
    table = whole[names].to_dataframe(dim_order=["claim", "choice"]).dropna().reset_index()
    return table[["claim", "choice", *names]]


def readings_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row a reading, those that agree most with the paper first: agreement and values."""
    values = pd.DataFrame(
        whole["value"].values, columns=whole["choice"].values.tolist(), index=whole["reading"].values
    )
    agree = whole[["agreement_mean", "not_dominated"]].to_dataframe()
    table = pd.concat([agree, values], axis=1).rename_axis("reading")
    return table.sort_values("agreement_mean", ascending=False, kind="stable").reset_index()


def verdicts_table(whole: xr.Dataset) -> pd.DataFrame:
    """What the ledger shows next to its verdicts: one row a claim, with its paper."""
    table = claims_of_readings(whole).rename(columns={"claim": "id"})
    table.insert(0, "paper", whole.attrs["paper"])
    table["readings"] = (whole["outcome"].values[1:] != analysis.UNKNOWN).sum(axis=0)
    return table[["paper", "id", "robustness", "share", "readings", "condition"]]


# --- page -----------------------------------------------------------------------------------------


def page_tables(paper: PaperReadings, whole: xr.Dataset) -> list[PageTable]:
    """Claims by table of the paper, choices, readings that agree most, contradictions."""
    return [
        _of_tables(whole),
        _choices(paper, whole),
        _best(whole),
        _directions(whole),
        *([_pairs(whole)] if whole.sizes["pair"] else []),
    ]


def _of_tables(whole: xr.Dataset) -> PageTable:
    """Claims of each table of the paper by class, and which share of them readings reproduce."""
    shares = whole["agreement"].to_numpy()
    columns = (shares[0], shares[np.argmax(whole["agreement_mean"].to_numpy())], np.nanmax(shares, axis=0))
    counts = whole["claims"].astype(int).to_pandas()
    rows = [
        [str(name), f"{own.sum()}", *(f"{number}" for number in own), *map(_share, agree)]
        for (name, own), agree in zip(counts.iterrows(), np.transpose(columns), strict=True)
    ]
    header = ["table", "claims", *analysis.CLASSES, "by default", "by the best", "by the best for the table"]
    caption = "Claims by table of the paper, and the share that single interpretations reproduce"
    return PageTable(caption, header, rows)


def _share(share: float) -> str:
    return "" if np.isnan(share) else percent(float(share))


def _choices(paper: PaperReadings, whole: xr.Dataset) -> PageTable:
    """What the paper leaves open, and for how many claims each choice matters."""
    weights = importance_table(whole).sort_values("importance", ascending=False).drop_duplicates("choice")
    largest = {
        row["choice"]: f"{100 * row['importance']:.3g} "
        f"{interval_text(row['importance_low'], row['importance_high'], share=True)} ({row['claim']})"
        for row in weights.to_dict("records")
    }
    counts = whole["claims_decided"].astype(int).values
    rows = [
        [
            choice.name,
            choice.question,
            choice.where,
            "; ".join(_value(value, choice.default) for value in choice.values),
            *(str(number) for number in own[:2]),
            largest.get(choice.name, ""),
        ]
        for choice, own in zip(paper.choices, counts, strict=True)
    ]
    header = ["choice", "question", "where", "values", *(f"claims, {each}" for each in EFFECTS[:2])]
    caption = "What the paper leaves open, and the number of contingent claims for which each choice matters"
    return PageTable(caption, [*header, "largest of all"], rows, in_words=True)


def _value(value: ChoiceValue, default: str) -> str:
    """A value with what it means."""
    name = f"{value.name} (default)" if value.name == default else value.name
    text = f"{value.meaning} {value.likelier}".strip().removesuffix(".")
    return f"{name}: {text}" if text else name


def _best(whole: xr.Dataset) -> PageTable:
    """The readings that agree most, and the default one."""
    table = readings_table(whole)
    shown = table[(table.index < _READINGS) | (table["reading"] == 0)].drop(columns="not_dominated")
    rows = [[_name(row[0]), percent(row[1]), *row[2:]] for row in shown.itertuples(index=False)]
    header = ["interpretation", "claims reproduced, mean over tables", *map(str, whole["choice"].values)]
    caption = (
        f"Interpretations of highest agreement; {table['not_dominated'].sum():.0f} of {len(table)} are "
        "exceeded by no other on all tables"
    )
    return PageTable(caption, header, rows, in_words=True)


def _name(reading: int) -> str:
    return "default" if reading == 0 else str(reading)


def _directions(whole: xr.Dataset) -> PageTable:
    """What a reading that was chosen on half of the tables is worth on the other half."""
    names = ("chosen_on", "judged_on", "judged_default", "judged_average", "judged_best")
    rows = [
        [_name(reading), *(percent(float(whole[name].values[place])) for name in names)]
        for place, reading in enumerate(whole["chosen_reading"].values.tolist())
    ]
    header = ["interpretation", "claims reproduced there", "on the other half", "default", "mean of all"]
    caption = "Interpretation of highest agreement on one half of the tables, judged on the other half"
    return PageTable(caption, [*header, "best one of that half"], rows)


def _pairs(whole: xr.Dataset) -> PageTable:
    """Claims that no reading reproduces together."""
    said = dict(zip(whole["claim"].values.tolist(), whole["statement"].values.tolist(), strict=True))
    rows = [
        [
            *(f"{said[claim]} ({claim})" for claim in whole["pair_claims"].values[place]),
            " and ".join(f"{int(number)}" for number in whole["pair_readings"].values[place]),
            f"{whole['pair_expected'].values[place]:.0f}",
        ]
        for place in range(min(whole.sizes["pair"], _PAIRS))
    ]
    caption = f"Claims that no interpretation reproduces together ({whole.sizes['pair']} pairs)"
    header = ["one", "other", "interpretations that reproduce each", "expected for both if independent"]
    return PageTable(caption, header, rows, in_words=True)

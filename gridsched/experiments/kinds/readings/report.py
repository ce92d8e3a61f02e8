"""Studies of readings as the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments.kinds.readings.config import ReadingsStudy
from gridsched.figures.findings import percent
from gridsched.presentation.views import figures, heading, labels

_PAIRS = 12
"""Contradictions that the page shows; the dataset has all."""

_READINGS = 8
"""Readings that the page shows."""


def readings_view(study: ReadingsStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of readings."""
    dataset = results.read(folder / "study.nc")
    return {
        **heading(study, dataset),
        "template": "readings.html.j2",
        "facts": _facts(dataset),
        "choices": _choices(study, dataset),
        "names": labels(dataset, "choice"),
        "best": _best(dataset),
        "directions": _directions(dataset),
        "pareto": f"{int(dataset['not_dominated'].sum())} of {dataset.sizes['reading']}",
        "tables": _tables(dataset),
        "pairs": _pairs(dataset),
        "pair_count": dataset.sizes["pair"],
        "figures": figures(folder, study.study_figures),
    }


def _facts(dataset: xr.Dataset) -> str:
    left = int(dataset.attrs["claims_left_out"])
    return (
        f"{dataset.sizes['reading'] - 1} readings and the default one, {dataset.sizes['claim']} claims"
        f"{f'; {left} more about what was left out of the studies' if left else ''}"
    )


def _choices(study: ReadingsStudy, dataset: xr.Dataset) -> list[dict[str, Any]]:
    """The open choices, with how many claims each surely matters for."""
    sure = (dataset["importance_low"] > 0).sum("claim").values.tolist()
    return [
        {
            "name": choice.name,
            "question": choice.question,
            "where": choice.where,
            "values": [
                {
                    "name": value.name,
                    "is_default": value.name == choice.default,
                    "text": " ".join(text for text in (value.meaning, value.likelier) if text),
                }
                for value in choice.values
            ],
            "claims": int(count),
        }
        for choice, count in zip(study.paper.choices, sure, strict=True)
    ]


def _best(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """The readings that agree most, and the default one."""
    mean = dataset["agreement_mean"].to_numpy()
    order = [*np.argsort(-mean, kind="stable")[:_READINGS].tolist()]
    return [
        {
            "name": "default" if place == 0 else f"{place}",
            "mean": percent(float(mean[place])),
            "values": dataset["value"].values[place].tolist(),
        }
        for place in dict.fromkeys([*order, 0])
    ]


def _directions(dataset: xr.Dataset) -> list[dict[str, str]]:
    """What a reading that was chosen on half of the tables is worth on the other half."""
    names = ("chosen_on", "judged_on", "judged_default", "judged_average", "judged_best")
    return [
        {
            "reading": "default" if number == 0 else str(number),
            **{name: percent(float(dataset[name].values[place])) for name in names},
        }
        for place, number in enumerate(dataset["chosen_reading"].values.tolist())
    ]


def _tables(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """Robustness of the claims of each table, and what the best reading reproduces."""
    robust, where = dataset["robustness"].values, dataset["where"].values
    shares = dataset["agreement"].to_numpy()
    best = int(np.argmax(dataset["agreement_mean"].to_numpy()))
    rows = []
    for place, table in enumerate(labels(dataset, "table")):
        own = robust[where == table]
        rows.append(
            {
                "name": table,
                "claims": len(own),
                **{name: int((own == name).sum()) for name in ("robust", "contingent", "contradicted")},
                "default": _share(shares[0, place]),
                "best": _share(shares[best, place]),
                "most": _share(np.nanmax(shares[:, place])),
            }
        )
    return rows


def _share(share: float) -> str:
    return "" if np.isnan(share) else percent(float(share))


def _pairs(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """Claims that no reading meets together."""
    said = dict(zip(labels(dataset, "claim"), dataset["statement"].values.tolist(), strict=True))
    rows = zip(
        dataset["pair_claims"].values.tolist(),
        dataset["pair_readings"].values.tolist(),
        dataset["pair_expected"].values.tolist(),
        strict=True,
    )
    return [
        {
            "one": said[one],
            "one_id": one,
            "other": said[other],
            "other_id": other,
            "readings": f"{int(alone[0])} and {int(alone[1])}",
            "expected": f"{expected:.0f}",
        }
        for (one, other), alone, expected in list(rows)[:_PAIRS]
    ]

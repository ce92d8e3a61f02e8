"""Studies of workload models as the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from gridsched import results
from gridsched.experiments.models.config import ModelStudy
from gridsched.figures.style import number
from gridsched.presentation.views import figure, heading


def models_view(study: ModelStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of workload models."""
    dataset = results.read(folder / "study.nc")
    table = pd.read_csv(folder / "tables" / "table_four.csv")
    return {
        **heading(study, dataset),
        "template": "models.html.j2",
        "machine": study.machine,
        "header": [_COLUMNS.get(name, name) for name in table.columns],
        "rows": [[_shown(value) for value in row] for row in table.itertuples(index=False)],
        "figures": [figure(folder, name, name) for name in study.study_figures],
        "checksum": dataset.attrs["workload_checksum"],
    }


_COLUMNS = {
    "low": "processors from",
    "high": "to",
    "source": "model of",
    "percent_of_jobs": "% of the jobs",
    "interarrival_n": "arrivals: n",
    "interarrival_lambda_1": "\N{GREEK SMALL LETTER LAMDA}\N{SUBSCRIPT ONE} [1/s]",
    "interarrival_lambda_2": "\N{GREEK SMALL LETTER LAMDA}\N{SUBSCRIPT TWO} [1/s]",
    "interarrival_rho": "\N{GREEK SMALL LETTER RHO}",
    "service_n": "run times: n",
    "service_lambda_1": "\N{GREEK SMALL LETTER LAMDA}\N{SUBSCRIPT ONE} [1/s]",
    "service_lambda_2": "\N{GREEK SMALL LETTER LAMDA}\N{SUBSCRIPT TWO} [1/s]",
    "service_rho": "\N{GREEK SMALL LETTER RHO}",
}
"""What columns of the table are called on the page."""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return "" if pd.isna(value) else number(float(value))

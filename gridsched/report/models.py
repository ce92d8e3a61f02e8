"""Studies of workload models as the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from gridsched import results
from gridsched.figures.style import number
from gridsched.report.parts import figure
from gridsched.study import plan
from gridsched.study.config import ModelStudy


def models_view(study: ModelStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of workload models."""
    dataset = results.read(folder / "study.nc")
    table = pd.read_csv(folder / "table_four.csv")
    return {
        "template": "models.html.j2",
        "name": study.name,
        "title": study.title,
        "description": study.description,
        "machine": study.machine,
        "header": list(table.columns),
        "rows": [[_shown(value) for value in row] for row in table.itertuples(index=False)],
        "figures": [figure(folder, name, name) for name in plan.study_figures(study)],
        "configuration_hash": dataset.attrs["configuration_hash"],
        "checksum": dataset.attrs["workload_checksum"],
        "acknowledgements": [(study.workload.name, dataset.attrs["acknowledgement"])]
        if dataset.attrs["acknowledgement"]
        else [],
    }


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else number(float(value))

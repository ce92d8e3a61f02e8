"""Studies of calibration as the page shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gridsched import results
from gridsched.calibration.layers import LAYERS
from gridsched.experiments.calibration.config import CalibrationStudy
from gridsched.experiments.calibration.stages import layers_table
from gridsched.report.parts import figure, figures, heading


def calibration_view(study: CalibrationStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of calibration."""
    dataset = results.read(folder / "study.nc")
    logs: dict[str, list[dict[str, str]]] = {}
    for row in layers_table(dataset).to_dict("records"):
        told = {key: f"{value:.2f}" if isinstance(value, float) else str(value) for key, value in row.items()}
        logs.setdefault(str(row["workload"]), []).append({str(key): text for key, text in told.items()})
    return {
        **heading(study, dataset),
        "template": "calibration.html.j2",
        "logs": [
            {"name": name, "rows": rows, "jobs": f"{int(dataset['jobs'].sel(workload=name)):,}"}
            for name, rows in logs.items()
        ],
        "layers": [{"name": layer, "text": LAYERS[layer].text} for layer in study.layers],
        "figures": [
            *figures(folder, ["calibration_overview"]),
            *(
                figure(folder, f"calibration_layers-{each.name}", "calibration_layers", each.name)
                for each in study.workloads
            ),
        ],
        "acknowledgements": [
            (name, text) for name, text in json.loads(dataset.attrs["acknowledgements"]).items() if text
        ],
    }

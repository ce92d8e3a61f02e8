"""Studies of calibration as the page shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.calibration.layers import LAYERS
from gridsched.calibration.measures import Explained
from gridsched.experiments.calibration.config import CalibrationStudy
from gridsched.experiments.calibration.stages import HALVES, layers_table
from gridsched.report.parts import figure, figures, heading

_MADE_OF = {
    "prompt": "jobs: those that waited a minute at most",
    "idle": "waited seconds: those in which enough processors were free for the job",
    "user": "waited seconds: those of the user who waited most",
    "own": "jobs that waited more than ten minutes: those started within five after one of their user ended",
    "any": "jobs that waited more than ten minutes: those started within five after one of anybody ended",
}


def _measures(part: xr.Dataset, suffix: str) -> dict[str, str]:
    """Measures on both halves as text, empty where there are none."""
    found = {}
    for measure in Explained._fields:
        for half in HALVES:
            value = float(part[f"{measure}{suffix}"].sel(half=half))
            found[f"{measure}_{half}"] = "" if np.isnan(value) else f"{value:.2f}"
    return found


def _log(part: xr.Dataset, name: str, rows: list[dict[str, str]]) -> dict[str, Any]:
    """What the page says of a log."""
    made = part["made_of"]
    return {
        "name": name,
        "rows": rows,
        "jobs": f"{int(part['jobs']):,}",
        "beside": [
            {"name": each, **_measures(part.sel(beside=each), "_beside")}
            for each in part["beside"].values.tolist()
        ],
        "swapped": _measures(part.sel(fitted="second"), "_fitted") if "second" in part["fitted"] else {},
        "made_of": [
            {
                "text": text,
                **{half: f"{100 * float(made.sel(made=each, half=half)):.0f} %" for half in HALVES},
            }
            for each, text in _MADE_OF.items()
        ],
    }


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
        "logs": [_log(dataset.sel(workload=name), name, rows) for name, rows in logs.items()],
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

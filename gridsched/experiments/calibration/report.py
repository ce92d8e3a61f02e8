"""Studies of calibration as the page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.calibration.layers import LAYERS
from gridsched.calibration.measures import Explained
from gridsched.calibration.words import described
from gridsched.experiments.calibration.config import CalibrationStudy
from gridsched.experiments.calibration.stages import HALVES, WITHOUT, layers_table
from gridsched.presentation.views import figure, figures, heading

_MADE_OF = {
    "prompt": "jobs: those that waited a minute at most",
    "idle": "waited seconds: those in which enough processors were free for the job",
    "user": "waited seconds: those of the user who waited most",
    "own": "jobs that waited more than ten minutes: those started within five after one of their user ended",
    "any": "jobs that waited more than ten minutes: those started within five after one of anybody ended",
}


def _measured(row: Mapping[str, str]) -> list[str]:
    """Keys of the measures of a row."""
    return [key for key in row if key.startswith(Explained._fields)]


def _measures(part: xr.Dataset, suffix: str) -> dict[str, str]:
    """Measures on both halves as text, empty where there are none."""
    found = {}
    for measure in Explained._fields:
        for half in HALVES:
            value = float(part[f"{measure}{suffix}"].sel(half=half))
            found[f"{measure}_{half}"] = "" if np.isnan(value) else f"{value:.2f}"
    return found


def _said(layers: str, calibration: Mapping[str, float], *, idle: bool) -> str:
    """What the layers of a row say in words; that without a layer says what is said above."""
    if idle:
        return "changes nothing in this log"
    if layers.startswith(WITHOUT):
        return ""
    told = described(calibration)
    return "; ".join(text if layers in LAYERS else f"{layer}: {text}" for layer, text in told)


def _log(part: xr.Dataset, name: str, rows: list[dict[str, str]]) -> dict[str, Any]:
    """What the page says of a log."""
    made = part["made_of"]
    return {
        "name": name,
        "rows": rows,
        "jobs": f"{int(part['jobs']):,}",
        "days": f"{float(part['days']):,.0f}",
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
    calibrations = json.loads(dataset.attrs["calibrations"])
    logs: dict[str, list[dict[str, str]]] = {}
    easy: dict[str, Mapping[Any, Any]] = {}  # the first row of each log
    for row in layers_table(dataset).to_dict("records"):
        told = {
            str(key): f"{value:.2f}" if isinstance(value, float) else str(value) for key, value in row.items()
        }
        workload, layers = told["workload"], told["layers"]
        rows = logs.setdefault(workload, [])
        easy[workload] = easy.get(workload, row)
        idle = layers in LAYERS and all(row[key] == easy[workload][key] for key in _measured(told))
        told["says"] = _said(layers, calibrations[workload].get(layers, {}), idle=idle)
        rows.append(told)
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
    }

"""The stages of a study of calibration: sites, fits of one layer, batches of candidates, what is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.calibration.fitting import (
    FEW,
    MOST_ALIKE,
    RUNGS,
    Fitted,
    band,
    best_of,
    candidates,
    evaluated,
    fit,
)
from gridsched.calibration.layers import Calibration, judged, layers_in, simulated_waits, without_layer
from gridsched.calibration.measures import Explained, explained
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import LoggedSite, from_dataset, site_of
from gridsched.experiments import files
from gridsched.experiments.calibration.config import CalibrationStudy
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.prepare import make_workload

PLAIN = "EASY"
ALL = "all"
WITHOUT = "all but "
NULL = "null model"
HALVES = ("first", "second")


def prepare_site(workload: Mapping[str, Any], log: str | Path, target: str | Path) -> None:
    """Read a log and look for outages; write the site, see `gridsched.calibration.site`.

    Parameters
    ----------
    workload : mapping
        Of the study.
    log : path
        The log.
    target : path
        Dataset to write.
    """
    made, cluster = make_workload(WorkloadConfig.model_validate(workload), 0, log)
    stored = site_of(made, cluster.processors).dataset()
    stored.attrs |= {"acknowledgement": made.acknowledgement or "", **results.provenance()}
    files.write(stored, target)


def fit_one_layer(site: str | Path, layer: str, seed: int, target: str | Path) -> None:
    """Fit one layer on the first half of a site and write the candidates of the last rung.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    layer : str
        Key of `gridsched.calibration.layers.LAYERS`.
    seed : int
        Of what is drawn.
    target : path
        Dataset to write.
    """
    _write_fitted(fit(_site(site), [layer], FEW, seed=seed), target)


def fit_batch(
    site: str | Path,
    layers: Sequence[str],
    number: int,
    batch: int,
    batches: int,
    seed: int,
    before: Sequence[str | Path],
    target: str | Path,
) -> None:
    """Try a share of the candidates of a rung.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    layers : sequence of str
        Layers that are fitted.
    number : int
        Number of the rung in `gridsched.calibration.fitting.RUNGS`.
    batch, batches : int
        Which share, of how many.
    seed : int
        Of what is drawn.
    before : sequence of path
        Results of all batches of the rung before.
    target : path
        Dataset to write.
    """
    place, rung = _site(site), RUNGS[number]
    earlier = [each for path in before for each in _fitted(path)]
    mine = candidates(place, layers, rung, earlier, number, seed)[batch::batches]
    _write_fitted([Fitted(evaluated(place, rung, each), each) for each in mine], target)


def judge(
    site: str | Path,
    alone: Mapping[str, str | Path],
    together: Sequence[str | Path],
    seed: int,
    target: str | Path,
) -> None:
    """Judge layers alone and together, and the null model, on both halves of a site.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    alone : mapping of layer to path
        Results of `fit_one_layer`.
    together : sequence of path
        Results of the last rung of `fit_batch`.
    seed : int
        Of the null model.
    target : path
        Dataset to write: measures of `gridsched.calibration.measures.Explained` on `layers` and `half`, and
        on `alike` and `half` for the calibrations that fit about as well as the best.
    """
    place = _site(site)
    alike = band([each for path in together for each in _fitted(path)])
    best = alike[0].calibration
    chosen: dict[str, Calibration] = {
        PLAIN: {},
        **{layer: best_of(_fitted(path))[0].calibration for layer, path in alone.items()},
        ALL: best,
        **{f"{WITHOUT}{layer}": without_layer(best, layer) for layer in layers_in(best)},
    }
    rows = {name: _judged(place, each) for name, each in chosen.items()}
    rows[NULL] = [_null(place, half, seed) for half in HALVES]
    others = [_judged(place, each.calibration) for each in alike]
    variables: dict[str, Any] = {}
    for index, name in enumerate(Explained._fields):
        about = {"long_name": _MEASURES[name], "units": "1"}
        values = np.array([[half[index] for half in row] for row in rows.values()])
        variables[name] = (("layers", "half"), values, about)
        variables[f"{name}_alike"] = (
            ("alike", "half"),
            np.array([[half[index] for half in row] for row in others]),
            about,
        )
    whole = xr.Dataset(
        variables,
        {"layers": list(rows), "half": list(HALVES)},
        {
            "calibrations": json.dumps({name: dict(each) for name, each in chosen.items()}),
            "jobs": len(place),
            "recorded_mean": [
                float(place.recorded[place.known & ~place.second].mean()),
                float(place.recorded[place.known & place.second].mean()),
            ],
            "days": float((place.submit[-1] - place.submit[0]) / 86400),
            "acknowledgement": str(results.read(site).attrs["acknowledgement"]),
            **results.provenance(),
        },
    )
    files.write(whole, target)


_MEASURES = {
    "ratio": "mean simulated wait over mean recorded wait",
    "correlation": "rank correlation of simulated and recorded waits",
    "near": "share of jobs within five minutes or a factor of two of the recorded wait",
}


def _site(path: str | Path) -> LoggedSite:
    return from_dataset(results.read(path))


def _judged(site: LoggedSite, calibration: Calibration) -> list[Explained]:
    """Measures on both halves."""
    waits = simulated_waits(site, calibration)
    return [judged(site, waits, half) for half in HALVES]


def _null(site: LoggedSite, half: str, seed: int) -> Explained:
    """Measures of the null model on a half."""
    mine = site.known & (site.second if half == "second" else ~site.second)
    return explained(null_waits(site, seed=seed)[mine], site.recorded[mine])


def _write_fitted(fitted: Sequence[Fitted], target: str | Path) -> None:
    """Write candidates with their losses."""
    dataset = xr.Dataset(
        {"loss": ("candidate", np.array([each.loss for each in fitted]), {"units": "1"})},
        attrs={
            "calibrations": json.dumps([each.calibration for each in fitted]),
            **results.provenance(),
        },
    )
    files.write(dataset, target)


def _fitted(path: str | Path) -> list[Fitted]:
    """Candidates that were written."""
    stored = results.read(path)
    losses = stored["loss"].values.tolist()
    return [
        Fitted(loss, each)
        for loss, each in zip(losses, json.loads(stored.attrs["calibrations"]), strict=True)
    ]


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_calibration_study(
    study: CalibrationStudy, judged: Mapping[str, str | Path], target: str | Path
) -> None:
    """Put what was judged of all logs into the dataset of the study.

    Parameters
    ----------
    study : CalibrationStudy
        The study.
    judged : mapping of workload to path
        Results of `judge`.
    target : path
        The dataset: measures on `workload`, `layers` and `half`, NaN for layers that a calibration of all
        does without; and on `workload`, `alike` and `half`, NaN where fewer fit about as well.
    """
    parts = [results.read(path) for path in judged.values()]
    names = [
        PLAIN,
        *study.layers,
        ALL,
        *(f"{WITHOUT}{layer}" for layer in study.layers),
        NULL,
    ]
    whole = xr.concat(
        [
            part.assign_coords(alike=np.arange(part.sizes["alike"])).reindex(
                layers=names, alike=np.arange(MOST_ALIKE)
            )
            for part in parts
        ],
        dim=pd.Index(list(judged), name="workload"),
        join="outer",
        combine_attrs="drop",
    )
    for name, text in _MEASURES.items():
        for variable in (name, f"{name}_alike"):
            whole[variable].attrs = {"long_name": text, "units": "1"}
    whole["jobs"] = ("workload", [part.attrs["jobs"] for part in parts], {"long_name": "jobs", "units": "1"})
    whole["days"] = (
        "workload",
        [part.attrs["days"] for part in parts],
        {"long_name": "days from the first submission to the last", "units": "d"},
    )
    whole["recorded_mean"] = (
        ("workload", "half"),
        np.array([part.attrs["recorded_mean"] for part in parts]),
        {"long_name": "mean recorded wait", "units": "s"},
    )
    whole.attrs = {
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "configuration_hash": study.checksum(),
        "calibrations": json.dumps(
            {name: json.loads(part.attrs["calibrations"]) for name, part in zip(judged, parts, strict=True)}
        ),
        "acknowledgements": json.dumps(
            {name: str(part.attrs["acknowledgement"]) for name, part in zip(judged, parts, strict=True)}
        ),
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


def layers_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each log and set of layers, with the measures on both halves."""
    calibrations = json.loads(whole.attrs["calibrations"])
    rows = []
    for workload in whole["workload"].values.tolist():
        for name in whole["layers"].values.tolist():
            part = whole.sel(workload=workload, layers=name)
            if np.isnan(part["ratio"]).all():
                continue
            row: dict[str, Any] = {"workload": workload, "layers": name}
            for half in HALVES:
                for measure in Explained._fields:
                    row[f"{measure}_{half}"] = float(part[measure].sel(half=half))
            given = calibrations[workload].get(name, {})
            row["parameters"] = ", ".join(f"{key} {value:.3g}" for key, value in given.items())
            rows.append(row)
    return pd.DataFrame(rows)

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
from gridsched.calibration import ceiling
from gridsched.calibration.composition import Composition, composition
from gridsched.calibration.fitting import (
    MAX_ALIKE,
    USUAL,
    Fitted,
    Trial,
    all_fitted,
    band,
    chosen,
    tried,
    tried_next,
)
from gridsched.calibration.layers import (
    Calibration,
    judged,
    layers_in,
    simulated_waits,
    verify_waits,
    without_layer,
)
from gridsched.calibration.measures import UNKNOWN, Explained, explained
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import LoggedSite, from_dataset, site_of
from gridsched.experiments import files
from gridsched.experiments.calibration.config import CalibrationStudy
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.prepare import make_workload

PLAIN = "EASY"
ALL = "calibrated"
WITHOUT = "calibrated without "
NULL = "null model"
MEAN = "calibrated, mean of shaken"
HALVES = ("first", "second")

DAILY, WEEKLY = "restarted every day", "restarted every week"
SELF_RUNS, SELF_DAY = "itself, run times shaken", "itself, without the first day"
SECONDS = "the log, a minute alike"
BESIDE = (DAILY, WEEKLY, SELF_RUNS, SELF_DAY, SECONDS)
"""What stands beside the calibration of all layers: how far it is right, and how far it could be."""


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


def fit_round(
    site: str | Path,
    layers: Sequence[str],
    half: str,
    batch: int,
    batches: int,
    seed: int,
    before: Sequence[Sequence[str | Path]],
    target: str | Path,
) -> None:
    """Try a share of the layers that are tried in a round, and write what was found.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    layers : sequence of str
        Layers that are fitted.
    half : {"first", "second"}
        Half of the log that is fitted.
    batch, batches : int
        Which share, of how many.
    seed : int
        Of what is drawn.
    before : sequence of sequences of path
        Results of all batches of each round before.
    target : path
        Dataset to write.
    """
    place, rounds = _site(site), _rounds(before)
    names = tried_next(layers, rounds, USUAL)[batch::batches]
    base = chosen(place, rounds, half) if names else None
    steps = [] if base is None else [tried(place, each, base, USUAL, half=half, seed=seed) for each in names]
    _write_steps(steps, target)


def judge(
    site: str | Path,
    fitted: Mapping[str, Sequence[Sequence[str | Path]]],
    seed: int,
    target: str | Path,
) -> None:
    """Judge layers alone and together, and what stands beside them, on both halves of a site.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    fitted : mapping of half to sequence of sequences of path
        Results of `fit_round`, by the half that was fitted and the round.
    seed : int
        Of the null model.
    target : path
        Dataset to write: measures of `gridsched.calibration.measures.Explained` on `half` and each of
        `layers`; `alike`, the calibrations that fit about as well as the best; `beside` (`BESIDE`); `fitted`,
        the half that was fitted. `made_of` has what recorded waits consist of.
    """
    place = _site(site)
    rounds = {half: _rounds(paths) for half, paths in fitted.items()}
    alike = {half: band(all_fitted(place, each, half)) for half, each in rounds.items()}
    best = alike["first"][0].calibration
    sets: dict[str, Calibration] = {
        PLAIN: {},
        **{step.layer: step.fitted[0].calibration if step.fitted else {} for step in rounds["first"][0]},
        ALL: best,
        **{f"{WITHOUT}{layer}": without_layer(best, layer) for layer in layers_in(best)},
    }
    rows = {name: _judged(place, each) for name, each in sets.items()}
    mean = ceiling.mean_of_shaken(place, best, seed=seed)
    rows[MEAN] = [judged(place, mean, half) for half in HALVES]
    rows[NULL] = [_null(place, half, seed) for half in HALVES]
    others = [_judged(place, each.calibration) for each in alike["first"]]
    swapped = [_judged(place, each[0].calibration, half) for half, each in alike.items()]
    beside = _beside(place, best, seed)
    variables: dict[str, Any] = {}
    for index, name in enumerate(Explained._fields):
        about = {"long_name": _MEASURES[name], "units": "1"}

        def put(dimension: str, values: Any, index: int = index, about: Any = about) -> Any:
            return ((dimension, "half"), np.array([[half[index] for half in row] for row in values]), about)

        variables[name] = put("layers", rows.values())
        variables[f"{name}_alike"] = put("alike", others)
        variables[f"{name}_beside"] = put("beside", beside)
        variables[f"{name}_fitted"] = put("fitted", swapped)
    variables["made_of"] = (
        ("made", "half"),
        np.transpose([composition(place, half) for half in HALVES]),
        {"long_name": "share of jobs or of recorded waits", "units": "1"},
    )
    whole = xr.Dataset(
        variables,
        {
            "layers": list(rows),
            "half": list(HALVES),
            "beside": list(BESIDE),
            "fitted": list(alike),
            "made": list(Composition._fields),
        },
        {
            "calibrations": json.dumps({name: dict(each) for name, each in sets.items()}),
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


def _beside(site: LoggedSite, best: Calibration, seed: int) -> list[list[Explained]]:
    """Measures of `BESIDE` on both halves; restarts are of the second only."""
    restarted = [ceiling.restarted_waits(site, best, period) for period in (ceiling.DAY, ceiling.WEEK)]
    return [
        *([UNKNOWN, judged(site, waits, "second")] for waits in restarted),
        *(
            [ceiling.shaken(site, best, shake, half, seed=seed) for half in HALVES]
            for shake in ("run times", "first day")
        ),
        [ceiling.granular(site, half) for half in HALVES],
    ]


_MEASURES = {
    "ratio": "mean simulated wait over mean recorded wait",
    "correlation": "rank correlation of simulated and recorded waits",
    "near": "share of jobs within five minutes or a factor of two of the recorded wait",
}


def _site(path: str | Path) -> LoggedSite:
    return from_dataset(results.read(path))


def _judged(site: LoggedSite, calibration: Calibration, half: str = "first") -> list[Explained]:
    """Measures on both halves of a calibration that takes its history from one of them; it is verified."""
    history = site.learnt(half)
    waits = simulated_waits(site, calibration, history=history)
    verify_waits(site, calibration, waits, history)
    return [judged(site, waits, each) for each in HALVES]


def _null(site: LoggedSite, half: str, seed: int) -> Explained:
    """Measures of the null model on a half."""
    mine = site.known & (site.second if half == "second" else ~site.second)
    return explained(null_waits(site, seed=seed)[mine], site.recorded[mine])


def _write_steps(steps: Sequence[Trial], target: str | Path) -> None:
    """Write what layers saved, with their candidates."""
    told = [
        {"layer": each.layer, "gain": each.gain, "fitted": [list(one) for one in each.fitted]}
        for each in steps
    ]
    dataset = xr.Dataset(
        {"gain": ("layer", np.array([each.gain for each in steps], np.float64), {"units": "1"})},
        attrs={"steps": json.dumps(told), **results.provenance()},
    )
    files.write(dataset, target)


def _rounds(before: Sequence[Sequence[str | Path]]) -> list[list[Trial]]:
    """What was found in each round, of those in which anything was tried."""
    found = []
    for paths in before:
        told = [each for path in paths for each in json.loads(results.read(path).attrs["steps"])]
        found.append(
            [
                Trial(
                    each["layer"],
                    each["gain"],
                    [Fitted(tuple(losses), dict(given)) for losses, given in each["fitted"]],
                )
                for each in told
            ]
        )
    return [steps for steps in found if steps]


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
        does without; on `workload`, `alike` and `half`, NaN where fewer fit about as well; and as `judge`
        writes them.
    """
    parts = [results.read(path) for path in judged.values()]
    names = [
        PLAIN,
        *study.layers,
        ALL,
        *(f"{WITHOUT}{layer}" for layer in study.layers),
        MEAN,
        NULL,
    ]
    whole = xr.concat(
        [
            part.assign_coords(alike=np.arange(part.sizes["alike"])).reindex(
                layers=names, alike=np.arange(MAX_ALIKE)
            )
            for part in parts
        ],
        dim=pd.Index(list(judged), name="workload"),
        join="outer",
        combine_attrs="drop_conflicts",
    )
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

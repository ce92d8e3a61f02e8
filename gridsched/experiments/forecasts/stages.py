"""The stages of a study of forecasts: one log, judged by every method, and all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.forecasts.config import ForecastStudy, TruthName
from gridsched.forecasting.calibrated import CALIBRATED, calibrate
from gridsched.forecasting.judging import CORRECTIONS, METHODS, RANGES, judge, make_forecasts
from gridsched.forecasting.snapshot import recorded_timeline, timeline_of_run
from gridsched.policies.local import Conventions, named_policy
from gridsched.simulation import simulate
from gridsched.verification import verify

_MEASURES = {
    "forecasts": ("forecasts that are judged", "1"),
    "coverage": ("share of starts in the interval of 80 %", "1"),
    "coverage_low": ("lower bound of its 95 % interval, over ten parts of the time", "1"),
    "coverage_high": ("upper bound of its 95 % interval", "1"),
    "low_misses": ("share of starts before the interval", "1"),
    "high_misses": ("share of starts after the interval", "1"),
    "width": ("mean width of the interval of 80 %", "s"),
    "median_width": ("median width of the interval of 80 %", "s"),
    "score": ("mean interval score: width, and ten times how far starts lie outside", "s"),
    "error": ("median absolute error of the median forecast", "s"),
    "early": ("share of starts before the median forecast", "1"),
}


def run_forecasts(
    workload: str | Path,
    truth: TruthName,
    policy: str,
    calibrated: bool,
    instants: int,
    jobs: int,
    futures: int,
    seed: int,
    target: str | Path,
) -> None:
    """Forecast a log by all methods and judge the second half.

    Parameters
    ----------
    workload : path
        Result of `gridsched.experiments.prepare.prepare_workload`.
    truth : {"simulated", "recorded"}
        What is forecast.
    policy : str
        Name of the local policy.
    calibrated : bool
        Whether recorded starts are forecast under a policy that is fitted to the first half of the log.
    instants, jobs, futures : int
        How many, see `gridsched.forecasting.make_forecasts`.
    seed : int
        Of everything that is drawn.
    target : path
        Dataset to write: measures on `predictor`, `correction` and `range`, and how many forecasts were made.
    """
    made, cluster = results.workload_from_dataset(results.read(workload))
    if truth == "simulated":
        run = simulate(made, cluster, policy)
        verify(run)
        timeline = timeline_of_run(run)
    else:
        timeline = recorded_timeline(made, cluster.processors)
    forecasts = make_forecasts(
        timeline,
        calibrate(made, cluster.processors, seed=seed) if calibrated else named_policy(policy),
        Conventions(),
        instants=instants,
        jobs=jobs,
        futures=futures,
        seed=seed,
    )
    table = judge(forecasts).set_index(["predictor", "correction", "range"])
    index = pd.MultiIndex.from_product([METHODS, CORRECTIONS, RANGES], names=table.index.names)
    shape = (len(METHODS), len(CORRECTIONS), len(RANGES))
    whole = xr.Dataset(
        {
            name: (
                list(table.index.names),
                table.reindex(index)[name].to_numpy(np.float64).reshape(shape),
                {"long_name": long_name, "units": units},
            )
            for name, (long_name, units) in _MEASURES.items()
        },
        coords={"predictor": list(METHODS), "correction": list(CORRECTIONS), "range": list(RANGES)},
    )
    for name, value, text in (
        ("made", len(forecasts.now), "forecasts that were made"),
        ("instants", len(np.unique(forecasts.now)), "times at which they were made"),
        (
            "left_out",
            sum(timeline.left_out.values()),
            "jobs without recorded start, or larger than the cluster",
        ),
    ):
        whole[name] = ((), value, {"long_name": text, "units": "1"})
    whole["acknowledgement"] = ((), made.acknowledgement)
    whole.attrs = {"truth": truth, "seed": seed, **results.provenance()}
    files.write(whole, target)


# --- aggregation ----------------------------------------------------------------------------------


def aggregate_forecast_study(
    study: ForecastStudy, runs: Mapping[str, Sequence[str | Path]], target: str | Path
) -> None:
    """Put all logs into the dataset of the study.

    Parameters
    ----------
    study : ForecastStudy
        The study.
    runs : mapping of workload to paths
        Results of `run_forecasts`, in the order of the truths.
    target : path
        The dataset: variables of the runs on `workload` and `truth`.
    """
    rows = [
        _together([results.read(path) for path in paths], "truth", study.truths) for paths in runs.values()
    ]
    whole = _together(rows, "workload", list(runs))
    whole.attrs = {
        "title": study.title,
        "study": study.name,
        "description": study.description,
        "configuration_hash": study.checksum(),
        "policy": CALIBRATED if study.calibrate else study.policy,
        "verified": 1,
        **results.provenance(),
    }
    files.write(whole, target)


def _together(parts: Sequence[xr.Dataset], dimension: str, labels: Sequence[str]) -> xr.Dataset:
    """Parts along a new dimension."""
    return xr.concat(parts, dim=pd.Index(list(labels), name=dimension), combine_attrs="drop_conflicts")


def coverage_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each log, truth, predictor, correction and range of horizons that has forecasts."""
    names = ["workload", "truth", "predictor", "correction", "range"]
    frame = whole[list(_MEASURES)].to_dataframe().reset_index()
    return frame.dropna(subset=["coverage"])[[*names, *_MEASURES]].reset_index(drop=True)

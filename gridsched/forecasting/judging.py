"""How good forecasts are: how many jobs start in the forecast interval, and how wide it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched import inference
from gridsched.forecasting.adjustment import (
    HIGH,
    LOW,
    MEDIAN,
    IssuedForecasts,
    follow,
    interval_score,
)
from gridsched.forecasting.history import METHODS, NULL, Forecasts
from gridsched.forecasting.learning import followed

HORIZONS = (600, 3600, 6 * 3600, 86400)
"""Bounds of the ranges of median forecasts that are judged apart, seconds until the start."""

RANGES = ("all", "up to 10 min", "10 min to 1 h", "1 h to 6 h", "6 h to 1 d", "over 1 d")
"""All forecasts, and those of each range."""

CORRECTIONS = ("raw", "first half", "as it goes")
"""Forecasts as they are, corrected by the first half, and by all whose outcome is known by then."""

CORRECTION_LABELS = dict(zip(CORRECTIONS, ("uncorrected", "corrected once", "corrected online"), strict=True))
"""Corrections as labels have them."""

RENEWALS = 75
"""How often the correction is recomputed as it goes."""

_PARTS = 10


def corrected(forecasts: Forecasts, method: str, half: int) -> dict[str, NDArray[np.float64]]:
    """Quantiles for the second half: as they are, corrected by the first half, and corrected as it goes.

    Parameters
    ----------
    forecasts : Forecasts
        In order of time.
    method : str
        Key of `METHODS`.
    half : int
        When the second half begins, seconds.

    Returns
    -------
    mapping of str to float64[n, 19]
        "raw" (not of "combined"), "first half" (not of "learned") and "as it goes", of the forecasts made
        from `half` on; where "learned" had too little to learn from, those of the futures. The second looks
        at outcomes that were known at that time; the last, see
        `gridsched.forecasting.adjustment.follow`, at those that were known at the time of each forecast.
    """
    later = np.flatnonzero(forecasts.now >= half)
    if method == "learned":
        learned, known = forecasts.remaining[method], np.isfinite(forecasts.remaining[method][:, 0])
        moving, _ = followed(forecasts.now, learned, forecasts.truth, forecasts.end)
        told = (
            np.where(known[:, np.newaxis], each, forecasts.remaining["futures"]) for each in (learned, moving)
        )
        return {name: each[later] for name, each in zip((CORRECTIONS[0], CORRECTIONS[-1]), told, strict=True)}
    mixed = method == "combined"
    issued = IssuedForecasts(
        forecasts.now,
        forecasts.remaining["futures" if mixed else method],
        forecasts.truth,
        forecasts.remaining[NULL] if mixed else None,
    )
    moving, _ = follow(issued, forecasts.end, renewals=RENEWALS)
    made = {
        "first half": issued.apply(issued.fit(half, len(forecasts.now)), later),
        "as it goes": moving[later],
    }
    return made if mixed else {"raw": issued.remaining[later], **made}


def second_half(forecasts: Forecasts) -> int:
    """When the half that is judged begins: that of the time or of the jobs, whichever is later [s]."""
    return max((forecasts.begin + forecasts.end) // 2, forecasts.middle)


def judge(forecasts: Forecasts, *, parts: int = 0) -> pd.DataFrame:
    """Coverage and width of the 80 % intervals in the second half: of the time and of the jobs.

    Parameters
    ----------
    forecasts : Forecasts
        In order of time.
    parts : int
        Consecutive parts of the forecasts that are judged each by itself; 0 judges all together.

    Returns
    -------
    pandas.DataFrame
        One row for each way to tell, correction and range of its median forecast: `forecasts`;
        `coverage`, with a 95 % interval over ten parts of the time, `coverage_low` and `coverage_high`;
        `low_misses` and `high_misses`; `width` (mean, s); `median_width` (s); `score` (mean of
        `gridsched.forecasting.adjustment.interval_score`, s); `error` (median of the absolute error of the
        median forecast, s); `early` (share of starts before the median). With `parts` also `part`, from 0.

    Examples
    --------
    >>> import gridsched as gs
    >>> from gridsched.forecasting.snapshot import timeline_of_run
    >>> jobs = gs.synthesise("M3", jobs=1500, seed=1, load_scale=1.5)
    >>> timeline = timeline_of_run(gs.simulate(jobs, scheduler="easy"))
    >>> easy = gs.LocalPolicy(name="easy", order="fcfs", backfilling="easy")
    >>> forecasts = gs.forecasting.make_forecasts(
    ...     timeline, easy, gs.Conventions(), instants=8, jobs=4, futures=10, seed=1
    ... )
    >>> judged = gs.forecasting.judge(forecasts)
    >>> sorted(judged.columns)[:3]
    ['correction', 'coverage', 'coverage_high']
    """
    half = second_half(forecasts)
    later = forecasts.now >= half
    truth = forecasts.truth[later]
    several = parts or _PARTS
    part = np.minimum(several * np.arange(len(truth)) // max(len(truth), 1), several - 1)
    rows = []
    for method in (name for name in METHODS if name in forecasts.methods):
        for correction, quantiles in corrected(forecasts, method, half).items():
            ranges = np.searchsorted(HORIZONS, quantiles[:, MEDIAN], "right") + 1
            for place, name in enumerate(RANGES):
                own = np.ones(len(truth), bool) if place == 0 else ranges == place
                labels = {"predictor": method, "correction": correction, "range": name}
                if own.any() and not parts:
                    rows.append(labels | _worth(quantiles[own], truth[own], part[own]))
                for each in np.unique(part[own]).tolist() if parts else ():
                    inside = own & (part == each)
                    worth = _worth(quantiles[inside], truth[inside], part[inside])
                    rows.append({**labels, "part": each, **worth})
    return pd.DataFrame(rows)


def _worth(
    quantiles: NDArray[np.float64], truth: NDArray[np.float64], part: NDArray[np.int64]
) -> dict[str, float]:
    """Measures of some forecasts."""
    low, high = quantiles[:, LOW], quantiles[:, HIGH]
    inside = (truth >= low) & (truth <= high)
    shares = np.array([inside[part == each].mean() for each in np.unique(part)])
    interval = inference.mean(shares, largest=1.0)
    return {
        "forecasts": len(truth),
        "coverage": float(inside.mean()),
        "coverage_low": float(interval.low),
        "coverage_high": float(interval.high),
        "low_misses": float((truth < low).mean()),
        "high_misses": float((truth > high).mean()),
        "width": float((high - low).mean()),
        "median_width": float(np.median(high - low)),
        "score": float(interval_score(quantiles, truth).mean()),
        "error": float(np.median(abs(quantiles[:, MEDIAN] - truth))),
        "early": float((truth < quantiles[:, MEDIAN]).mean()),
    }

"""How good forecasts are: how many jobs start in the forecast interval, and how wide it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched import inference
from gridsched.errors import ConfigurationError
from gridsched.forecasting.adjustment import (
    HIGH,
    LEVELS,
    LOW,
    MEDIAN,
    IssuedForecasts,
    follow,
    interval_score,
)
from gridsched.forecasting.calibrated import CalibratedPolicy
from gridsched.forecasting.predictors import fit_log_uniform, residual_waits, wait_bounds
from gridsched.forecasting.present import quantiles_of, waiting_instants
from gridsched.forecasting.scenarios import Scenarios
from gridsched.forecasting.snapshot import Timeline
from gridsched.policies.local import Conventions, LocalPolicy
from gridsched.prediction.lifetimes import LEVELS as PARTS

NULL = "null model"
"""The predictor that knows waits alone; tables read `null` as a missing value."""

METHODS: dict[str, str] = {
    "futures": "simulated futures",
    "combined": "futures and residual waits",
    NULL: "residual waits of similar jobs",
    "estimates": "squeue --start: estimates only",
    "smith": "predicted run times (Smith et al. 1999)",
    "downey": "log-uniform run times (Downey 1997)",
    "qbets": "bounds of waits (QBETS 2007)",
}
"""Ways to forecast, see `gridsched.forecasting.predictors`."""

DRAWN = ("futures", NULL, "estimates", "smith", "downey")
"""Those of them that are asked at each instant."""

HORIZONS = (600, 3600, 6 * 3600, 86400)
"""Bounds of the ranges of median forecasts that are judged apart, seconds until the start."""

RANGES = ("all", "up to 10 min", "10 min to 1 h", "1 h to 6 h", "6 h to 1 d", "over 1 d")
"""All forecasts, and those of each range."""

CORRECTIONS = ("raw", "first half", "as it goes")
"""Forecasts as they are, corrected by the first half, and by all whose outcome is known by then."""

RENEWALS = 75
"""How often the correction is recomputed as it goes."""

_MIDDLE = PARTS // 2
_PARTS = 10


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of some jobs at some instants, and their outcomes.

    Parameters
    ----------
    now, submit, start : int64[n]
        When the forecast was made; when the job was submitted and did start, seconds.
    remaining : mapping of str to float64[n, 19]
        By method, quantiles of the time from the forecast to the start, seconds, at `LEVELS`.
    begin, middle, end : int
        When the timeline begins, half of its jobs have been submitted, and it ends, seconds.
    """

    now: NDArray[np.int64]
    submit: NDArray[np.int64]
    start: NDArray[np.int64]
    remaining: dict[str, NDArray[np.float64]]
    begin: int
    middle: int
    end: int

    @property
    def truth(self) -> NDArray[np.float64]:
        """Time from the forecast to the start, seconds."""
        return (self.start - self.now).astype(np.float64)


def make_forecasts(
    timeline: Timeline,
    policy: LocalPolicy | CalibratedPolicy,
    conventions: Conventions,
    *,
    instants: int,
    jobs: int,
    futures: int,
    seed: int,
) -> Forecasts:
    """Forecast waiting jobs by all methods at instants of a timeline at which somebody waits.

    Parameters
    ----------
    timeline : Timeline
        What happened.
    policy, conventions
        What futures go on with.
    instants : int
        How many, drawn evenly over the time in which somebody waits.
    jobs : int
        Most jobs of an instant, drawn among those that wait.
    futures : int
        Futures of each.
    seed : int
        Of everything that is drawn.

    Raises
    ------
    ConfigurationError
        If nobody ever waits.

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
    >>> type(forecasts).__name__
    'Forecasts'
    """
    begin, end = int(timeline.jobs["submit"][0]), int(timeline.jobs["submit"][-1])
    rng = np.random.default_rng([seed, 2])
    moments = waiting_instants(timeline, begin, end, instants, rng)
    if not len(moments):
        raise ConfigurationError(f"{timeline.name}: no job ever waits, so that there is nothing to forecast")
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in DRAWN}
    places, times = [], []
    for moment in moments.tolist():
        snapshot = timeline.at(moment)
        waiting = snapshot.waiting
        chosen = np.sort(rng.choice(len(waiting), min(jobs, len(waiting)), replace=False))
        present = Scenarios(snapshot, policy, conventions)
        drawn = present.starts(futures, seed, asked=chosen).T - moment
        parts["futures"].append(quantiles_of(np.sort(drawn, axis=1), LEVELS))
        parts[NULL].append(residual_waits(snapshot, waiting[chosen]))
        parts["estimates"].append(_point(present.expected[chosen] - moment))
        parts["smith"].append(_point(_predicted(present)[chosen] - moment))
        finished = snapshot.past[snapshot.finished]
        law = fit_log_uniform(finished["end"] - finished["start"])
        alone = Scenarios(snapshot, policy, conventions, law, arrivals=False)
        drawn = alone.starts(futures, seed, asked=chosen).T - moment
        parts["downey"].append(quantiles_of(np.sort(drawn, axis=1), LEVELS))
        places.append(waiting[chosen])
        times.append(np.full(len(chosen), moment))
    place, now = np.concatenate(places), np.concatenate(times)
    asked = timeline.jobs[place]
    wanted = np.zeros(len(timeline.jobs), bool)
    wanted[place] = True
    elapsed = (now - asked["submit"])[:, np.newaxis]
    remaining = {name: np.concatenate(found) for name, found in parts.items()}
    remaining["qbets"] = np.maximum(wait_bounds(timeline, wanted)[place] - elapsed, 0.0)
    middle = int(timeline.jobs["submit"][len(timeline.jobs) // 2])
    return Forecasts(now, asked["submit"], asked["start"], remaining, begin, middle, end)


def _point(seconds: NDArray[np.int64]) -> NDArray[np.float64]:
    """A distribution of one point."""
    return np.repeat(seconds[:, np.newaxis].astype(np.float64), len(LEVELS), axis=1)


def _predicted(present: Scenarios) -> NDArray[np.int64]:
    """Starts if every job runs as long as is likely at the median, and nobody comes."""
    snapshot = present.snapshot
    past, known = snapshot.past, present.known
    found = []
    for places, age in (
        (snapshot.waiting, np.full(len(snapshot.waiting), -1, np.int64)),
        (snapshot.running, snapshot.now - past["start"][snapshot.running]),
    ):
        median = known.quantiles(past["user"][places], past["estimate"][places], age)[:, _MIDDLE]
        found.append(np.maximum(np.ceil(median).astype(np.int64), age + 1))
    return present.starts_with(found[0], found[1])


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
        "raw" (not of "combined"), "first half" and "as it goes", of the forecasts made from `half` on. The
        second looks at outcomes that were known at that time; the last, see
        `gridsched.forecasting.adjustment.follow`, at those that were known at the time of each forecast.
    """
    mixed = method == "combined"
    issued = IssuedForecasts(
        forecasts.now,
        forecasts.remaining["futures" if mixed else method],
        forecasts.truth,
        forecasts.remaining[NULL] if mixed else None,
    )
    later = np.flatnonzero(forecasts.now >= half)
    moving, _ = follow(issued, forecasts.end, renewals=RENEWALS)
    made = {
        "first half": issued.apply(issued.fit(half, len(forecasts.now)), later),
        "as it goes": moving[later],
    }
    return made if mixed else {"raw": issued.remaining[later], **made}


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
    half = max((forecasts.begin + forecasts.end) // 2, forecasts.middle)
    later = forecasts.now >= half
    truth = forecasts.truth[later]
    several = parts or _PARTS
    part = np.minimum(several * np.arange(len(truth)) // max(len(truth), 1), several - 1)
    rows = []
    for method in METHODS:
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
    interval = inference.mean(np.array([inside[part == each].mean() for each in np.unique(part)]))
    return {
        "forecasts": len(truth),
        "coverage": float(inside.mean()),
        "coverage_low": float(interval.low),
        "coverage_high": min(float(interval.high), 1.0),
        "low_misses": float((truth < low).mean()),
        "high_misses": float((truth > high).mean()),
        "width": float((high - low).mean()),
        "median_width": float(np.median(high - low)),
        "score": float(interval_score(quantiles, truth).mean()),
        "error": float(np.median(abs(quantiles[:, MEDIAN] - truth))),
        "early": float((truth < quantiles[:, MEDIAN]).mean()),
    }

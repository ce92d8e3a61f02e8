"""Forecasts at many times of what happened, by several methods: to learn from, and to judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.forecasting.adjustment import LEVELS
from gridsched.forecasting.features import features
from gridsched.forecasting.learning import walk
from gridsched.forecasting.predictors import fit_log_uniform, residual_waits, wait_bounds
from gridsched.forecasting.scenarios import Replayed, Scenarios
from gridsched.forecasting.snapshot import Timeline
from gridsched.policies.local import Conventions, LocalPolicy
from gridsched.prediction.lifetimes import LEVELS as PARTS

NULL: Final = "null model"
"""The predictor that knows waits alone; tables read `null` as a missing value."""

MethodName = Literal["learned", "futures", "combined", "null model", "estimates", "smith", "downey", "qbets"]

METHODS: dict[MethodName, str] = {
    "learned": "learned from earlier forecasts",
    "futures": "simulated futures",
    "combined": "futures and residual waits",
    NULL: "residual waits of similar jobs",
    "estimates": "squeue --start: estimates only",
    "smith": "predicted run times (Smith et al. 1999)",
    "downey": "log-uniform run times (Downey 1997)",
    "qbets": "bounds of waits (QBETS 2007)",
}
"""Ways to forecast, see `gridsched.forecasting.learning` and `gridsched.forecasting.predictors`."""

COMPARED: tuple[MethodName, ...] = tuple(name for name in METHODS if name != "learned")
"""Those that do not learn from earlier forecasts."""

_PARTS_OF = {"combined": ("futures", NULL), "learned": ("futures",)}
"""Forecasts that others are made of."""

_MIDDLE = PARTS // 2


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of some jobs at some instants, and their outcomes.

    Parameters
    ----------
    now, submit, start : int64[n]
        When the forecast was made; when the job was submitted and did start, seconds.
    remaining : mapping of str to float64[n, 19]
        By method, quantiles of the time from the forecast to the start, seconds, at `LEVELS`. Those of
        "learned" are not numbers where too little was known to learn from.
    begin, middle, end : int
        When the timeline begins, half of its jobs have been submitted, and it ends, seconds.
    matrix : float64[n, m]
        What "learned" learns from, see `gridsched.forecasting.features`; without columns if it is not asked.
    of_forests : float64[n, 19]
        What "learned" says without simulated futures beside it; empty if it is not asked.
    methods : tuple of str
        What was asked: keys of `METHODS`.
    """

    now: NDArray[np.int64]
    submit: NDArray[np.int64]
    start: NDArray[np.int64]
    remaining: dict[str, NDArray[np.float64]]
    begin: int
    middle: int
    end: int
    matrix: NDArray[np.float64]
    of_forests: NDArray[np.float64]
    methods: tuple[str, ...]

    @property
    def truth(self) -> NDArray[np.float64]:
        """Time from the forecast to the start, seconds."""
        return (self.start - self.now).astype(np.float64)


def make_forecasts(
    timeline: Timeline,
    policy: LocalPolicy | Replayed,
    conventions: Conventions,
    *,
    instants: int,
    jobs: int,
    futures: int,
    seed: int,
    methods: Sequence[str] = COMPARED,
    until: int | None = None,
    threads: int = 1,
) -> Forecasts:
    """Forecast waiting jobs by several methods at instants of a timeline at which somebody waits.

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
    methods : sequence of str
        Keys of `METHODS`; what others are made of is added.
    until : int, optional
        The instants are before this time, seconds; by default the last submission.
    threads : int
        Threads that simulate futures. Results do not depend on it.

    Raises
    ------
    ConfigurationError
        If nobody waits between the first submission and the end of the instants.

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
    if until is not None:
        end = max(begin, until)
    rng = np.random.default_rng([seed, 2])
    moments = waiting_instants(timeline, begin, end, instants, rng)
    if not len(moments):
        last = "the last one" if until is None else f"second {end}"
        raise ConfigurationError(
            f"{timeline.name}: no job waits between the first submission and {last}; "
            "there is nothing to forecast"
        )
    asked_for = {part for name in methods for part in _PARTS_OF.get(name, (name,))}
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in METHODS if name in asked_for}
    matrix, places, times = [], [], []
    for moment in moments.tolist():
        snapshot = timeline.at(moment)
        waiting = snapshot.waiting
        chosen = np.sort(rng.choice(len(waiting), min(jobs, len(waiting)), replace=False))
        present = Scenarios(snapshot, policy, conventions)
        if "futures" in parts:
            parts["futures"].append(drawn_quantiles(present, futures, seed, chosen, threads))
        if NULL in parts:
            parts[NULL].append(residual_waits(snapshot, waiting[chosen]))
        if "estimates" in parts:
            parts["estimates"].append(_point(present.expected[chosen] - moment))
        if "smith" in parts:
            parts["smith"].append(_point(_predicted(present)[chosen] - moment))
        if "downey" in parts:
            finished = snapshot.past[snapshot.finished]
            law = fit_log_uniform(finished["end"] - finished["start"])
            alone = Scenarios(snapshot, policy, conventions, law, arrivals=False)
            parts["downey"].append(drawn_quantiles(alone, futures, seed, chosen, threads))
        matrix.append(
            feature_matrix(present, chosen, parts["futures"][-1])
            if "learned" in methods
            else np.empty((len(chosen), 0))
        )
        places.append(waiting[chosen])
        times.append(np.full(len(chosen), moment))
    place, now = np.concatenate(places), np.concatenate(times)
    asked = timeline.jobs[place]
    remaining = {name: np.concatenate(found) for name, found in parts.items() if found}
    if "qbets" in parts:
        wanted = np.zeros(len(timeline.jobs), bool)
        wanted[place] = True
        elapsed = (now - asked["submit"])[:, np.newaxis]
        remaining["qbets"] = np.maximum(wait_bounds(timeline, wanted)[place] - elapsed, 0.0)
    whole, of_forests = np.concatenate(matrix), np.empty((0, len(LEVELS)))
    if "learned" in methods:
        truth = (asked["start"] - now).astype(np.float64)
        remaining["learned"], of_forests = walk(now, whole, remaining["futures"], truth)
    middle = int(timeline.jobs["submit"][len(timeline.jobs) // 2])
    return Forecasts(
        now, asked["submit"], asked["start"], remaining, begin, middle, end, whole, of_forests, tuple(methods)
    )


def drawn_quantiles(
    present: Scenarios, futures: int, seed: int, chosen: NDArray[np.int64], threads: int
) -> NDArray[np.float64]:
    """Quantiles of the time until the starts of some waiting jobs in simulated futures, at `LEVELS`."""
    drawn = present.starts(futures, seed, asked=chosen, threads=threads).T - present.snapshot.now
    return quantiles_of(np.sort(drawn, axis=1), LEVELS)


def feature_matrix(
    present: Scenarios, chosen: NDArray[np.int64], futures: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Features of some waiting jobs, one column each."""
    known = features(present.snapshot, chosen, futures, present.expected[chosen])
    return np.column_stack(list(known.values()))


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


def quantiles_of(ensemble: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of sorted draws, k of n standing for the level k / (n + 1).

    Parameters
    ----------
    ensemble : float64[n, f]
        Sorted draws; infinite ones are the last.
    levels : float64[k]
        Levels.

    Returns
    -------
    float64[n, k]
        Interpolated between draws; infinite where one of both is.
    """
    count = ensemble.shape[1]
    place = np.clip(levels * (count + 1) - 1, 0, count - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, count - 1)
    part = place - low
    with np.errstate(invalid="ignore"):
        between = ensemble[:, low] + part * (ensemble[:, high] - ensemble[:, low])
    return np.asarray(np.where((part == 0) | ~np.isfinite(ensemble[:, low]), ensemble[:, low], between))


def probability_within(ensemble: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    """Probability of at most so many seconds by quantiles, k of n being that of the level k / (n + 1).

    Between two of them it is interpolated; beyond the last one, or before the first, halfway to 1 or 0.

    Parameters
    ----------
    ensemble : float64[n, f]
        Sorted quantiles; infinite ones are the last.
    seconds : float

    Returns
    -------
    float64[n]
    """
    count = ensemble.shape[1]
    below = (ensemble <= seconds).sum(axis=1)
    rows = np.arange(len(ensemble))
    low, high = ensemble[rows, np.maximum(below - 1, 0)], ensemble[rows, np.minimum(below, count - 1)]
    inside = (below > 0) & (below < count) & np.isfinite(high)
    part = np.where(inside, (seconds - low) / np.where(inside, high - low, 1.0), 0.5)
    return np.asarray((below + part) / (count + 1))


def waiting_instants(
    timeline: Timeline, begin: int, end: int, count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Instants of a period at which somebody waits, drawn evenly over the time in which somebody does.

    Parameters
    ----------
    timeline : Timeline
        What happened.
    begin, end : int
        The period, seconds; its end is not in it.
    count : int
        How many at most; none if nobody ever waits.
    rng : numpy.random.Generator
        What they are drawn by.

    Returns
    -------
    int64[k]
        In order, each once.
    """
    jobs = timeline.jobs
    waited = jobs["start"] > jobs["submit"]
    first = np.clip(jobs["submit"][waited], begin, end)
    last = np.clip(jobs["start"][waited], begin, end)
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate(last[order])
    # Spans in which somebody waits: a new one begins behind all that came before.
    new = np.ones(len(first), bool)
    new[1:] = first[1:] > reach[:-1]
    opened = np.flatnonzero(new)
    begins, ends = first[opened], np.append(reach[opened[1:] - 1], reach[-1:])
    lengths = np.cumsum(ends - begins)
    if not len(lengths) or not lengths[-1]:
        return np.empty(0, np.int64)
    drawn = np.unique(rng.integers(0, lengths[-1], count))
    place = np.searchsorted(lengths, drawn, "right")
    return np.asarray(begins[place] + drawn - np.where(place > 0, lengths[place - 1], 0))

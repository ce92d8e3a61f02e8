"""When waiting jobs will start: quantiles from simulated futures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.forecasting.adjustment import LEVELS, Adjustment, IssuedForecasts, follow
from gridsched.forecasting.calibrated import CalibratedPolicy
from gridsched.forecasting.predictors import residual_waits
from gridsched.forecasting.scenarios import Scenarios
from gridsched.forecasting.snapshot import (
    Snapshot,
    Timeline,
    policy_of_run,
    recorded_timeline,
    timeline_of_run,
)
from gridsched.policies.local import Conventions, LocalPolicy, OverrunName, PassName, named_policy
from gridsched.workloads.table import Workload

QUANTILES = (0.1, 0.5, 0.9)

_NOT_YET = -1
"""A start beyond the horizon."""

_JOBS_AN_INSTANT = 20
_RENEWALS = 20
_WEEKS_BACK = 8 * 7 * 86400


def forecast(
    queue: xr.Dataset | Workload | Timeline | Snapshot,
    now: int | None = None,
    *,
    policy: str | LocalPolicy | CalibratedPolicy | None = None,
    quantiles: Sequence[float] = QUANTILES,
    within: int = 3600,
    futures: int = 100,
    adjust: int = 0,
    seed: int = 0,
    threads: int = 1,
) -> xr.Dataset:
    """Quantiles of the start of every job that waits.

    Futures are simulated from the present queue on: run times are drawn from those of earlier jobs of the
    same user, given how long a job has run; jobs to come are drawn from the weeks before; the policy does the
    rest. Nothing is used that was not known at the time: no later start, end or submission.

    Parameters
    ----------
    queue : xarray.Dataset, Workload, Timeline or Snapshot
        A run of one cluster; a clean log with recorded waits, whose queue was what it says; or a queue that
        `gridsched.forecasting.read_queue` has read.
    now : int, optional
        The time, seconds, after everything that happens then. A snapshot has its own.
    policy : str, LocalPolicy or CalibratedPolicy, optional
        The policy that goes on from there; by default that of the run, else EASY backfilling. For a log also
        what `gridsched.forecasting.calibrate` has fitted to it.
    quantiles : sequence of float
        Levels above 0 and below 1.
    within : int
        Seconds for the probability to start soon.
    futures : int
        How many are simulated.
    adjust : int
        How many earlier instants, of the last eight weeks, are forecast first to correct the quantiles by
        the outcomes of these forecasts, see `gridsched.forecasting.adjustment`; and to find out how much
        the waits of like jobs say beside the queue. 0: none.
    seed : int
        Of everything that is drawn.
    threads : int
        Threads that simulate futures. Results do not depend on it.

    Returns
    -------
    xarray.Dataset
        For each waiting job, in order of submission: `start` (job, quantile), seconds, -1 where it is beyond
        all that was simulated; `probability`, to start within the time; `expected_start`, if all estimates
        were right and nobody came; submit_time, processors, estimate, user. Attributes say what was known.

    Raises
    ------
    ConfigurationError
        If nobody has submitted anything yet, the run is no run of counted processors under a local policy, or
        an option makes no sense.
    WorkloadError
        If a log has no recorded waits, or is not clean.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=800, seed=1, load_scale=1.5), scheduler="easy")
    >>> when = int(run.submit_time[600])
    >>> forecast = gs.forecast(run, when, futures=20)
    >>> bool((forecast.start.sel(quantile=0.9) >= forecast.start.sel(quantile=0.1)).all())
    True
    """
    levels = np.array(sorted(quantiles), np.float64)
    if not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise ConfigurationError(f"quantiles are {list(quantiles)}; give levels above 0 and below 1")
    for key, value, least in (
        ("futures", futures, 1),
        ("adjust", adjust, 0),
        ("within", within, 0),
        ("threads", threads, 1),
    ):
        if value < least:
            raise ConfigurationError(f"{key} is {value}; give {least} or more")
    chosen, conventions = _rules(queue, policy)
    timeline, snapshot = _state(queue, now)
    correction = None
    if adjust:
        if timeline is None:
            raise ConfigurationError("adjust: a queue alone has no earlier forecasts; give a run or a log")
        correction = earlier_forecasts(
            timeline,
            snapshot.now,
            chosen,
            conventions,
            instants=adjust,
            futures=futures,
            seed=seed,
            threads=threads,
        )
    made = Scenarios(snapshot, chosen, conventions)
    ensemble = np.sort(made.starts(futures, seed, threads=threads).T - snapshot.now, axis=1)
    if correction is not None:
        others = residual_waits(snapshot, snapshot.waiting)
        ensemble = correction.apply(quantiles_of(ensemble, LEVELS), others)
    return _dataset(snapshot, chosen, made, ensemble, levels, within, futures, seed, correction)


def _rules(
    queue: xr.Dataset | Workload | Timeline | Snapshot, policy: str | LocalPolicy | CalibratedPolicy | None
) -> tuple[LocalPolicy | CalibratedPolicy, Conventions]:
    """Policy and conventions of the futures."""
    if isinstance(policy, CalibratedPolicy):
        if isinstance(queue, xr.Dataset):
            raise ConfigurationError(
                "policy: a calibrated policy continues from recorded queues; leave it out for a run"
            )
        return policy, Conventions()
    if not isinstance(queue, xr.Dataset):
        return named_policy("easy" if policy is None else policy), Conventions()
    conventions = Conventions(
        cast(OverrunName, str(queue.attrs["overrun"])), cast(PassName, str(queue.attrs["passes"]))
    )
    if policy is None:
        policy = policy_of_run(queue)
    return named_policy(policy), conventions


def _state(
    queue: xr.Dataset | Workload | Timeline | Snapshot, now: int | None
) -> tuple[Timeline | None, Snapshot]:
    """The queue at the time, and what it is cut from."""
    if isinstance(queue, Snapshot):
        if now is not None and now != queue.now:
            raise ConfigurationError(f"now is {now}; the queue is that of {queue.now}, leave it out")
        return None, queue
    if now is None:
        raise ConfigurationError("now: say at which time, in seconds")
    if isinstance(queue, xr.Dataset):
        queue = timeline_of_run(queue)
    elif isinstance(queue, Workload):
        queue = recorded_timeline(queue)
    return queue, queue.at(int(now))


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


def _dataset(
    snapshot: Snapshot,
    policy: LocalPolicy | CalibratedPolicy,
    made: Scenarios,
    ensemble: NDArray[np.float64],
    levels: NDArray[np.float64],
    within: int,
    futures: int,
    seed: int,
    correction: Adjustment | None,
) -> xr.Dataset:
    """Dataset of a forecast."""
    waiting = snapshot.past[snapshot.waiting]
    starts = snapshot.now + quantiles_of(ensemble, levels)
    whole = np.where(np.isfinite(starts), np.round(starts), _NOT_YET).astype(np.int64)
    soon = (ensemble <= within).mean(axis=1) if ensemble.shape[1] else np.zeros(len(waiting))
    expected = made.expected if len(waiting) else np.empty(0, np.int64)
    return xr.Dataset(
        {
            "start": (("job", "quantile"), whole, _attributes("start, -1 beyond all futures", "s")),
            "probability": ("job", soon, _attributes(f"probability to start within {within} s", "1")),
            "expected_start": ("job", expected, _attributes("start if all estimates were right", "s")),
            "submit_time": ("job", waiting["submit"], _attributes("submit time", "s")),
            "processors": ("job", waiting["processors"], _attributes("processors", "1")),
            "estimate": ("job", waiting["estimate"], _attributes("estimated run time", "s")),
            "user": ("job", waiting["user"], _attributes("user number", "1")),
        },
        coords={"quantile": levels, "job_number": ("job", waiting["number"])},
        attrs={
            "title": "when waiting jobs will start",
            "now": snapshot.now,
            "policies": policy.name,
            "processors": snapshot.processors,
            "processors_free": snapshot.free,
            "jobs_running": len(snapshot.running),
            "jobs_waiting": len(waiting),
            "jobs_finished": len(snapshot.finished),
            "futures": futures,
            "seed": seed,
            "adjusted_by": 0 if correction is None else correction.forecasts,
            "weight": 1.0 if correction is None else correction.weight,
        },
    )


def _attributes(long_name: str, units: str) -> dict[str, Any]:
    return {"long_name": long_name, "units": units}


def earlier_forecasts(
    timeline: Timeline,
    now: int,
    policy: LocalPolicy | CalibratedPolicy,
    conventions: Conventions,
    *,
    instants: int,
    futures: int,
    seed: int,
    threads: int = 1,
) -> Adjustment:
    """Correction by forecasts at earlier instants, as far as their outcome was known at a time.

    Raises
    ------
    ConfigurationError
        If nobody waited in the eight weeks before.
    """
    rng = np.random.default_rng([seed, 1])
    begin, end = max(now - _WEEKS_BACK, int(timeline.jobs["submit"][0])), now
    moments = waiting_instants(timeline, begin, max(begin, end), instants, rng)
    if not len(moments):
        raise ConfigurationError(
            f"{timeline.name}: nobody waited in the eight weeks before, so that no forecast can be "
            "corrected; leave adjust out"
        )
    made, true, others, times = [], [], [], []
    for moment in moments.tolist():
        snapshot = timeline.at(moment)
        starts = timeline.starts(snapshot)
        chosen = np.sort(rng.choice(len(starts), min(len(starts), _JOBS_AN_INSTANT), replace=False))
        drawn = Scenarios(snapshot, policy, conventions).starts(futures, seed, asked=chosen, threads=threads)
        made.append(quantiles_of(np.sort(drawn.T - moment, axis=1), LEVELS))
        # Nobody knows later starts than now.
        true.append(np.where(starts[chosen] <= now, starts[chosen] - moment, np.inf))
        others.append(residual_waits(snapshot, snapshot.waiting[chosen]))
        times.append(np.full(len(chosen), moment))
    issued = IssuedForecasts(
        np.concatenate(times), np.concatenate(made), np.concatenate(true), np.concatenate(others)
    )
    return follow(issued, now, renewals=_RENEWALS)[1]


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

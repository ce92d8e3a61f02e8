"""How long users wait before they give up: fitted to a log in which some did, drawn where it is not known.

A job that was cancelled before it ran shows how long its user waited. One that started shows only that its
user would have waited longer: its wait is a censored observation. `fit_patience` estimates the distribution
of the time from submission until a user gives up from both, as Kaplan and Meier do ("Nonparametric
estimation from incomplete observations", Journal of the American Statistical Association 53(282), 1958) or by
the likelihood of a Weibull distribution with censoring (Lawless, "Statistical models and methods for lifetime
data", 2nd edition, 2003, section 5.2). `with_patience` draws from it.

Both take starts to say nothing of patience: jobs that start late have users like those that start early. All
users have one distribution, whatever their jobs request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import WorkloadError, check_choice, check_number, check_whole
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

__all__ = ["KaplanMeier", "Patience", "Weibull", "fit_patience", "patience_sample", "with_patience"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ModelName = Literal["kaplan-meier", "weibull", "exponential"]

_LARGEST = 2.0**40
"""Seconds that are never over."""

_SHAPES = (1e-3, 1e3)
"""Shapes of a Weibull distribution among which the likeliest is sought."""


@dataclass(frozen=True)
class KaplanMeier:
    """Patience as a log shows it: a step function that falls where a user gave up.

    Parameters
    ----------
    times : float64[n]
        Times from submission [s] at which users gave up, increasing.
    survival : float64[n]
        Share of the users who are still patient after each; the last one is the share of those who never give
        up, as far as the log can tell.
    """

    times: Floats
    survival: Floats

    def still_patient(self, wait: ArrayLike) -> Floats:
        """Share of the users who are patient for longer than so many seconds."""
        place = np.searchsorted(self.times, np.asarray(wait, np.float64), side="right")
        return np.append(1.0, self.survival)[place]

    def inverse(self, share: ArrayLike) -> Floats:
        """Seconds after which no more than this share is patient; infinity if it stays larger."""
        # the survival falls, so that its negative is in order
        place = np.searchsorted(-self.survival, -np.asarray(share, np.float64), side="left")
        return np.append(self.times, np.inf)[place]


@dataclass(frozen=True)
class Weibull:
    """Patience with a Weibull distribution: the share exp(-(t / scale) ** shape) waits longer than t.

    Parameters
    ----------
    scale : float
        Time [s] after which a share of 1/e is still patient.
    shape : float
        1 is exponential; below 1, who has waited long will wait longer.

    Raises
    ------
    ConfigurationError
        If a parameter is not positive.
    """

    scale: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        for key in ("scale", "shape"):
            check_number(f"patience: {key}", getattr(self, key), above=0)

    def still_patient(self, wait: ArrayLike) -> Floats:
        """Share of the users who are patient for longer than so many seconds."""
        return np.exp(-((np.maximum(np.asarray(wait, np.float64), 0.0) / self.scale) ** self.shape))

    def inverse(self, share: ArrayLike) -> Floats:
        """Seconds after which this share is patient; infinity for a share of 0."""
        with np.errstate(divide="ignore", over="ignore"):
            seconds: Floats = self.scale * (-np.log(np.asarray(share, np.float64))) ** (1 / self.shape)
        return seconds


Patience = KaplanMeier | Weibull


def patience_sample(workload: Workload) -> tuple[Floats, NDArray[np.bool_]]:
    """Waits of the jobs that tell of patience, and which of them ended since a user gave up.

    Jobs with `gives_up_time` gave up then; the others with a known wait started after it.
    """
    gave_up = _gave_up(workload)
    until = np.where(gave_up, _gives_up_time(workload) - workload.submit_time, workload.wait_time)
    known = gave_up | (workload.wait_time >= 0)
    return np.maximum(until[known], 0).astype(np.float64), gave_up[known]


def fit_patience(workload: Workload, model: ModelName = "kaplan-meier") -> Patience:
    """Distribution of the time until users give up.

    Parameters
    ----------
    workload : Workload
        Jobs with waits, some of which have `gives_up_time`: `gridsched.clean(..., cancelled="wait")`.
    model : {"kaplan-meier", "weibull", "exponential"}
        See the module.

    Raises
    ------
    WorkloadError
        If no user gave up in this workload.
    ConfigurationError
        If the model is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=500, seed=1, load_scale=1.5)
    >>> impatient = gs.with_patience(jobs, gs.Weibull(scale=7200, shape=1.0), seed=1)
    >>> gs.write_swf(gs.simulate(impatient, scheduler="fcfs"), "log.swf")
    >>> log = gs.clean(gs.read_swf("log.swf"), cancelled="wait")
    >>> fitted = gs.fit_patience(log, "weibull")
    >>> 3600 < fitted.scale < 14400
    True
    """
    check_choice("model", model, get_args(ModelName))
    waits, gave_up = patience_sample(workload)
    if not gave_up.any():
        raise WorkloadError(
            f"{workload.name}: no job waited until it was cancelled, so that nothing is known of its users' "
            'patience; clean a log that has such jobs with cancelled="wait", or give a model'
        )
    if model == "kaplan-meier":
        return _kaplan_meier(waits, gave_up)
    return _weibull(waits, gave_up, None if model == "weibull" else 1.0)


def with_patience(workload: Workload, model: Patience | None = None, *, seed: int = 0) -> Workload:
    """The workload with times at which users give up, for all jobs of which they are not known.

    A job that started after a wait, by the log, gives up later than that: its patience is drawn from the part
    of the distribution beyond its wait. One without a wait has a patience of any length. Under a policy that
    lets nobody wait longer than recorded, nobody gives up who did not by the log.

    Parameters
    ----------
    workload : Workload
        Clean jobs; known `gives_up_time` stay.
    model : KaplanMeier or Weibull, optional
        By default that of Kaplan and Meier, fitted to these jobs.
    seed : int
        Of what is drawn.

    Returns
    -------
    Workload
        With the column `gives_up_time`, -1 for users who never give up; `repaired` counts those drawn.

    Raises
    ------
    WorkloadError
        If no model is given and no user gave up in this workload, or the seed is no whole number from 0 on.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=500, seed=1, load_scale=1.5)
    >>> impatient = gs.with_patience(jobs, gs.Weibull(scale=7200, shape=1.0), seed=1)
    >>> run = gs.simulate(impatient, scheduler="fcfs")
    >>> run.attrs["jobs_gave_up"] > 0
    True
    """
    chosen = fit_patience(workload) if model is None else model
    known = _gives_up_time(workload)
    waited = np.maximum(workload.wait_time, 0).astype(np.float64)
    seed = check_whole(f"{workload.name}: seed", seed, error=WorkloadError)
    drawn = np.random.default_rng(seed).random(len(workload))
    # 1 - u lies in (0, 1], so that a share of 0 is not asked for
    beyond = np.where(workload.wait_time >= 0, chosen.still_patient(waited), 1.0)
    patience = chosen.inverse((1.0 - drawn) * beyond)
    gives_up = np.isfinite(patience) & (patience < _LARGEST)
    until = workload.submit_time + np.ceil(np.where(gives_up, patience, 0.0)).astype(np.int64)
    made = np.where(known >= 0, known, np.where(gives_up, until, UNKNOWN))
    counts: Mapping[str, int] = {
        "time at which the user gives up, drawn": int(np.count_nonzero((known < 0) & gives_up))
    }
    return replace(workload, gives_up_time=made, repaired=add_counts(workload.repaired, counts))


def _gives_up_time(workload: Workload) -> Integers:
    known = workload.gives_up_time
    return np.full(len(workload), UNKNOWN) if known is None else np.asarray(known, np.int64)


def _gave_up(workload: Workload) -> NDArray[np.bool_]:
    return _gives_up_time(workload) >= 0


def _kaplan_meier(waits: Floats, gave_up: NDArray[np.bool_]) -> KaplanMeier:
    """Product over the times t at which users gave up of 1 - those who did / those still waiting at t."""
    times, count = np.unique(waits[gave_up], return_counts=True)
    waiting = len(waits) - np.searchsorted(np.sort(waits), times, side="left")
    survival = np.cumprod(1.0 - count / waiting).astype(np.float64)
    return KaplanMeier(times, survival)


def _weibull(waits: Floats, gave_up: NDArray[np.bool_], shape: float | None) -> Weibull:
    """Most likely scale and shape; waits of 0 s count as 1 s."""
    from scipy.optimize import brentq  # takes longer to load than a small fit

    spans = np.maximum(waits, 1.0)
    logs = np.log(spans)
    events = int(gave_up.sum())
    centre = float(logs[gave_up].mean())

    def slope(exponent: float) -> float:
        """Derivative of the log-likelihood, with the best scale, by the shape, divided by the events."""
        weights = np.exp(exponent * (logs - logs.max()))
        return 1.0 / exponent + centre - float(weights @ logs / weights.sum())

    if shape is None:
        low, high = _SHAPES
        # where all gave up at one time no shape is large enough
        shape = high if slope(high) > 0 else float(brentq(slope, low, high, xtol=1e-10))
    largest = float(logs.max())
    total = float(np.exp(shape * (logs - largest)).sum())
    return Weibull(scale=float(np.exp(largest + np.log(total / events) / shape)), shape=shape)

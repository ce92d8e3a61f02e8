"""Other ways to tell when waiting jobs will start, to be compared with simulated futures.

``estimates``
    What ``squeue --start`` does: a simulation in which all estimates are right and nobody comes.
``smith``
    Smith, Taylor and Foster, "Using run-time predictions to estimate queue wait times and improve scheduler
    performance", JSSPP 1999: the same with predicted run times. The prediction here is the median of the
    distribution that futures are drawn from, in place of their templates.
``downey``
    Downey, "Predicting queue times on space-sharing parallel computers", IPPS 1997: run times are log-uniform
    between bounds that are fitted to all finished jobs, given how long a job has run; nobody comes. The paper
    gives a point for first come, first served; here futures are drawn from its distributions under the policy
    at hand.
``qbets``
    Nurmi, Brevik and Wolski, "QBETS: queue bounds estimation from time series", JSSPP 2007: bounds of
    quantiles of the waits of jobs of about as many processors, by the binomial distribution, made when the
    job is submitted. After three misses in a row the history is cut to its end, since something has changed.
    Confidence is 95 %, levels above 1/2 are bounded from above, those below from below.
``null model``
    Quantiles of what was still to be waited by jobs of about as many processors and about the same estimate
    that had waited as long: no queue, no policy.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.forecasting.adjustment import LEVELS
from gridsched.forecasting.snapshot import Snapshot, Timeline
from gridsched.prediction.lifetimes import LEVELS as PARTS
from gridsched.prediction.lifetimes import size_class

HISTORY = 5000
"""How many of the last jobs that have started the null model looks at."""

_ALIKE = 30
_CONFIDENCE = 1.645  # normal quantile of 95 %
_MISSES = 3
_SHORTEST = 59  # jobs that a bound of the 95 % quantile with 95 % confidence needs at least


@dataclass(frozen=True)
class LogUniform:
    """Run times whose logarithm is uniform.

    Parameters
    ----------
    shortest, longest : float
        Bounds, seconds.
    """

    shortest: float
    longest: float

    def quantiles(
        self, user: NDArray[np.int64], estimate: NDArray[np.int64], age: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Quantiles of run times given ages, see `gridsched.prediction.lifetimes.Lifetimes.quantiles`."""
        low = np.maximum(age, self.shortest)[:, np.newaxis]
        # Beyond the longest that was seen, a life may be twice as long as it has been.
        high = np.where(low < self.longest, self.longest, 2 * low)
        return np.asarray(low * (high / low) ** ((np.arange(PARTS) + 0.5) / PARTS))


def fit_log_uniform(run_time: NDArray[np.int64]) -> LogUniform:
    """Least-squares line through the distribution function of the logarithms of run times.

    Parameters
    ----------
    run_time : int64[n]
        Seconds; less than one counts as one.
    """
    times = np.log(np.maximum(np.sort(run_time), 1))
    if len(times) < 2 or times[0] == times[-1]:
        only = float(np.exp(times[0])) if len(times) else 1.0
        return LogUniform(only, 2 * only)
    slope, level = np.polyfit(times, (np.arange(len(times)) + 0.5) / len(times), 1)
    return LogUniform(max(1.0, float(np.exp(-level / slope))), float(np.exp((1 - level) / slope)))


def last_started(snapshot: Snapshot) -> NDArray[np.int64]:
    """Places in the past of the last `HISTORY` jobs that have started, in order of their starts."""
    start = snapshot.past["start"]
    started = np.flatnonzero(start >= 0)
    return np.asarray(started[np.argsort(start[started], kind="stable")][-HISTORY:])


def residual_waits(snapshot: Snapshot, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Quantiles of what was still to be waited by jobs like some that had waited as long.

    Parameters
    ----------
    snapshot : Snapshot
        The present.
    jobs : int64[n]
        Places of waiting jobs in its past.

    Returns
    -------
    float64[n, 19]
        Seconds, at `gridsched.forecasting.adjustment.LEVELS`. 0 where nobody has ever waited as long.
    """
    past = snapshot.past
    started = last_started(snapshot)
    waits = past["start"][started] - past["submit"][started]
    size, length = size_class(past["processors"][started]), size_class(past["estimate"][started])
    own_size, own_length = size_class(past["processors"][jobs]), size_class(past["estimate"][jobs])
    made = np.zeros((len(jobs), len(LEVELS)))
    for row, job in enumerate(jobs):
        elapsed = snapshot.now - past["submit"][job]
        longer = waits > elapsed
        alike = longer & (size == own_size[row])
        for kind in (alike & (length == own_length[row]), alike, longer):
            if np.count_nonzero(kind) >= _ALIKE or kind is longer:
                if kind.any():
                    made[row] = np.quantile(waits[kind] - elapsed, LEVELS)
                break
    return made


class _Bounds:
    """Bounds of quantiles of the waits of one category of jobs."""

    def __init__(self) -> None:
        self.recent: deque[int] = deque()
        self.ordered: list[int] = []
        self.misses = 0

    def bounds(self) -> NDArray[np.float64]:
        """Bounds at all levels; nothing before there is any history."""
        count = len(self.ordered)
        if not count:
            return np.zeros(len(LEVELS))
        side = np.sign(LEVELS - 0.5)
        place = count * LEVELS + side * _CONFIDENCE * np.sqrt(count * LEVELS * (1 - LEVELS))
        rank = np.clip(np.where(side > 0, np.ceil(place), np.floor(place)), 1, count).astype(np.int64) - 1
        return np.array(self.ordered, np.float64)[rank]

    def add(self, wait: int, bound: float) -> None:
        """Take a wait into the history, that was said to be below a bound."""
        self.recent.append(wait)
        insort(self.ordered, wait)
        self.misses = self.misses + 1 if wait > bound else 0
        if self.misses >= _MISSES and len(self.recent) > _SHORTEST:
            self.recent = deque(list(self.recent)[-_SHORTEST:])
            self.ordered = sorted(self.recent)
            self.misses = 0


def wait_bounds(timeline: Timeline, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Bounds of quantiles of waits as they were at the submission of jobs.

    Parameters
    ----------
    timeline : Timeline
        What happened. Waits are known from the starts of jobs on.
    wanted : bool[n]
        The jobs whose bounds are wanted.

    Returns
    -------
    float64[n, 19]
        Seconds, at `gridsched.forecasting.adjustment.LEVELS`; 0 for the others.
    """
    jobs = timeline.jobs
    kind = size_class(jobs["processors"])
    categories = [_Bounds() for _ in range(int(kind.max()) + 1)]
    made = np.zeros((len(jobs), len(LEVELS)))
    top = np.zeros(len(jobs))
    count = len(jobs)
    # Starts of an instant come before submissions, as far as the jobs were submitted before.
    times = np.concatenate([jobs["submit"], np.maximum(jobs["start"], jobs["submit"] + 1)])
    order = np.lexsort((np.concatenate([np.ones(count), np.zeros(count)]), times))
    for event in order.tolist():
        job = event % count
        category = categories[kind[job]]
        if event < count:
            bounds = category.bounds()
            top[job] = bounds[-1]
            if wanted[job]:
                made[job] = bounds
        else:
            category.add(int(jobs["start"][job] - jobs["submit"][job]), top[job])
    return made

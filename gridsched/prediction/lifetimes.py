"""How long jobs run that wait or run now, as distributions: from jobs of the same user that have finished.

A job is like some that have finished, and the distribution of its run time is a mixture of three:

* run times of the last jobs of its user that had the same runtime estimate;
* its estimate times the accuracy, run time over estimate, of the last jobs of its user;
* its estimate times the accuracy of the last jobs of all users with about the same estimate, a factor of 2.

With n jobs of a kind, it has n / (n + 4) of the weight that those before it have left; the last has the rest.
A job that runs already is known to run longer than it has run: the distribution is that of the mixture beyond
this age. Where no job like it has lived so long, the end is anywhere between now and the estimate, and beyond
that, by the log-uniform law of Downey ("Predicting queue times on space-sharing parallel computers", IPPS
1997), before its age has doubled.

Without any history the accuracy is uniform between 0 and 1, which is about what the histograms of logs look
like (Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling
the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.jit import inline, jit
from gridsched.workloads.table import UNKNOWN

LEVELS = 64
"""Quantiles that stand for a distribution, each for the middle of an equal part of it."""

OWN_JOBS = 50
"""How many of the last jobs of a user count."""

HISTORY = 20_000
"""How many of the last jobs are looked at in all."""

CLASS_JOBS = 2000
"""How many of the last jobs of a class of estimates count."""

PRIOR = 4.0
"""So many jobs of a kind weigh as much as all less specific kinds together."""

_CLASSES = 33


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """What is known of the run times of jobs that have finished.

    Parameters
    ----------
    run_time, estimate : int64[k]
        Of the jobs, in order of their ends; seconds.
    previous : int64[k]
        The job of the same user that ended before each, -1 for the first.
    last : int64[u]
        The last job of each user, -1 where a user has none.
    users : int64[u]
        Numbers of the users, increasing.
    accuracy : float64[33, 64]
        Quantiles of run time over estimate by class: floor of the binary logarithm of the estimate.
    """

    run_time: NDArray[np.int64]
    estimate: NDArray[np.int64]
    previous: NDArray[np.int64]
    last: NDArray[np.int64]
    users: NDArray[np.int64]
    accuracy: NDArray[np.float64]

    def quantiles(
        self, user: NDArray[np.int64], estimate: NDArray[np.int64], age: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Quantiles of the run times of jobs.

        Parameters
        ----------
        user, estimate : int64[n]
            Number of the user and runtime estimate [s] of each job.
        age : int64[n]
            How long each job has run, seconds; -1 for one that has not started.

        Returns
        -------
        float64[n, 64]
            Seconds, at levels (i + 1/2) / 64; all above the age.
        """
        made = np.empty((len(user), LEVELS))
        place = np.searchsorted(self.users, user)
        inside = place < len(self.users)
        known = np.zeros(len(user), bool)
        known[inside] = self.users[place[inside]] == user[inside]
        last = np.full(len(user), -1, np.int64)
        last[known] = self.last[place[known]]
        age = np.ascontiguousarray(age, np.int64)
        estimate = np.ascontiguousarray(estimate, np.int64)
        _quantiles(self.run_time, self.estimate, self.previous, last, self.accuracy, estimate, age, made)
        return made


def learn(
    run_time: NDArray[np.int64], estimate: NDArray[np.int64], user: NDArray[np.int64], end: NDArray[np.int64]
) -> Lifetimes:
    """Learn from the last jobs that have finished.

    Parameters
    ----------
    run_time, estimate : int64[k]
        Seconds; estimates of at least 1.
    user : int64[k]
        Numbers of users, -1 where one is not known.
    end : int64[k]
        When each job ended.
    """
    order = np.argsort(end, kind="stable")[-HISTORY:]
    run_time, estimate, user = run_time[order], estimate[order], user[order]
    users, inverse = np.unique(user, return_inverse=True)
    by_user = np.argsort(inverse, kind="stable")
    previous = np.full(len(order), -1, np.int64)
    same = (inverse[by_user[1:]] == inverse[by_user[:-1]]) & (user[by_user[1:]] != UNKNOWN)
    previous[by_user[1:][same]] = by_user[:-1][same]
    last = np.full(len(users), -1, np.int64)
    last[inverse] = np.arange(len(order))  # of equal places the last value stays
    last[users == UNKNOWN] = -1
    levels = (np.arange(LEVELS) + 0.5) / LEVELS
    share = run_time / estimate
    everyone = levels if not len(share) else np.quantile(share[-CLASS_JOBS:], levels)
    accuracy = np.broadcast_to(everyone, (_CLASSES, LEVELS)).copy()
    classes = size_class(estimate)
    for each in np.unique(classes):
        own = share[classes == each][-CLASS_JOBS:]
        if len(own) >= LEVELS:
            accuracy[each] = np.quantile(own, levels)
    return Lifetimes(
        run_time=np.ascontiguousarray(run_time, np.int64),
        estimate=np.ascontiguousarray(estimate, np.int64),
        previous=previous,
        last=last,
        users=users.astype(np.int64),
        accuracy=accuracy,
    )


def size_class(estimate: NDArray[np.int64]) -> NDArray[np.int64]:
    """Floor of the binary logarithm of estimates of at least 1."""
    return np.asarray(np.frexp(np.asarray(estimate, np.float64))[1] - 1, np.int64)


@inline
def _insert(values: Any, weights: Any, count: int, value: float, weight: float) -> int:
    """Put a value with its weight among `count` values in order; return how many there are then."""
    place = count
    while place > 0 and values[place - 1] > value:
        values[place] = values[place - 1]
        weights[place] = weights[place - 1]
        place -= 1
    values[place] = value
    weights[place] = weight
    return count + 1


@inline
def _write_levels(values: Any, weights: Any, count: int, total: float, made: Any) -> None:
    """Quantiles of weighted values in order."""
    place = 0
    sum_up_to = weights[0]
    for level in range(LEVELS):
        wanted = total * (level + 0.5) / LEVELS
        while place < count - 1 and sum_up_to < wanted:
            place += 1
            sum_up_to += weights[place]
        made[level] = values[place]


@jit
def _quantiles(
    run_time: Any,
    known_estimate: Any,
    previous: Any,
    last: Any,
    accuracy: Any,
    estimate: Any,
    age: Any,
    made: Any,
) -> None:
    """Fill in the quantiles of each job; see `Lifetimes.quantiles`."""
    room = LEVELS + 2 * OWN_JOBS
    values = np.empty(room)
    weights = np.empty(room)
    for job in range(len(estimate)):
        own = 0
        equal = 0
        at = last[job]
        while at >= 0 and own < OWN_JOBS:
            own += 1
            if known_estimate[at] == estimate[job]:
                equal += 1
            at = previous[at]
        first_share = equal / (equal + PRIOR)
        second_share = (1.0 - first_share) * own / (own + PRIOR)
        third_share = 1.0 - first_share - second_share
        count = 0
        total = 0.0
        at = last[job]
        for _ in range(own):
            if known_estimate[at] == estimate[job] and run_time[at] > age[job]:
                count = _insert(values, weights, count, float(run_time[at]), first_share / equal)
                total += first_share / equal
            value = estimate[job] * run_time[at] / known_estimate[at]
            if value > age[job]:
                count = _insert(values, weights, count, value, second_share / own)
                total += second_share / own
            at = previous[at]
        kind = 0
        while kind < len(accuracy) - 1 and estimate[job] >> (kind + 1) > 0:
            kind += 1
        for level in range(LEVELS):
            value = estimate[job] * accuracy[kind, level]
            if value > age[job]:
                count = _insert(values, weights, count, value, third_share / LEVELS)
                total += third_share / LEVELS
        if count > 0:
            _write_levels(values, weights, count, total, made[job])
            continue
        for level in range(LEVELS):
            part = (level + 0.5) / LEVELS
            if age[job] < estimate[job]:
                made[job, level] = age[job] + part * (estimate[job] - age[job])
            else:
                made[job, level] = age[job] * 2.0**part

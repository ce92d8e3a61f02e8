"""Scores of waiting jobs: the queue order as a function. The largest score is first in the queue.

A score is a plain Python function of any of these parameters, by name: `now`, `submit_time`, `estimate`
(seconds), `processors`, `user`, `group`, `queue`. One that does not take `now` never changes, so it is
evaluated once a job and the fast kernel is used; one that does is evaluated for every waiting job at
every scheduling pass.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.policies.callbacks import Function, Kind

Score = Function

PARAMETERS: tuple[str, ...] = ("now", "submit_time", "estimate", "processors", "user", "group", "queue")
"""What a score may look at, in the order in which the kernels pass it."""

SCORE = Kind("score", PARAMETERS)

SECONDS_PER_HOUR = 3600.0


def largest_expansion_factor(now: int, submit_time: int, estimate: int) -> float:
    """Expansion factor that the job would have if it started now: (wait + estimate) / estimate."""
    return (now - submit_time + estimate) / estimate


def largest_expansion_factor_and_wait(now: int, submit_time: int, estimate: int) -> float:
    """Expansion factor plus 0.02 an hour of waiting.

    LXF&W of Chiang, Arpaci-Dusseau and Vernon, "The impact of more accurate requested runtimes on
    production job scheduling performance", JSSPP 2002; the weight is quoted from memory.
    """
    wait = now - submit_time
    return (wait + estimate) / estimate + 0.02 * wait / SECONDS_PER_HOUR


_PATIENCE = 0.05
"""How fast users lose patience, for each minute of a response."""


def critical(now: int, submit_time: int, estimate: int) -> float:
    """Loss of the chance that the user goes on with the session, by a minute more, and the days of waiting.

    After CREASY of Shmueli and Feitelson, "On simulation and design of parallel-systems schedulers: are we
    doing the right thing?", IEEE TPDS 20(7), 2009: jobs go first for which the probability that their users
    go on falls fastest, 0.8 / (0.05 r + 1) for a response of r minutes, and jobs that have waited long are
    not left behind. The paper was not at hand: form and weights are ours. With the response that the job
    would have if it started now, the loss is 1 / (0.05 r + 1)^2 of what it is for a response of nothing.
    """
    wait = now - submit_time
    stays = 1.0 / (_PATIENCE * (wait + estimate) / 60.0 + 1.0)
    return stays * stays + wait / (24 * SECONDS_PER_HOUR)


_LEAST = 0.1
"""An estimate of nothing counts as so many seconds for the fitted scores; the engine's are 1 s at least."""

_TINY = 1e-15
"""Keeps UNICEP finite: jobs of one processor, whose logarithm is 0, come far ahead of all others."""


def wfp3(now: int, submit_time: int, estimate: int, processors: int) -> float:
    """Cube of wait over estimate, times processors: large jobs that have waited long for what they ask.

    Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", CLUSTER
    2009.
    """
    return ((now - submit_time) / estimate) ** 3 * processors


def unicep(now: int, submit_time: int, estimate: int, processors: int) -> float:
    """Wait over the estimate times the logarithm of the processors: small jobs turn over fast.

    From the same paper; also written UNICEF.
    """
    return (now - submit_time + _TINY) / (math.log2(processors + _TINY) * estimate)


def f1(submit_time: Any, estimate: Any, processors: Any) -> Any:
    """First of four scores that were fitted to simulations, smallest first.

    Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and machine
    learning", SC 2017; so are `f2` to `f4`. They age with the logarithm of the absolute submit time, so that
    they depend on when the log begins.
    """
    return -(np.log10(np.maximum(estimate, _LEAST)) * processors + 870 * np.log10(np.maximum(submit_time, 1)))


def f2(submit_time: Any, estimate: Any, processors: Any) -> Any:
    """Second of four fitted scores, see `f1`."""
    return -(np.sqrt(estimate) * processors + 25_600 * np.log10(np.maximum(submit_time, 1)))


def f3(submit_time: Any, estimate: Any, processors: Any) -> Any:
    """Third of four fitted scores, see `f1`."""
    return -(estimate * processors + 6_860_000 * np.log10(np.maximum(submit_time, 1)))


def f4(submit_time: Any, estimate: Any, processors: Any) -> Any:
    """Fourth of four fitted scores, see `f1`."""
    return -(estimate * np.sqrt(processors) + 530_000 * np.log10(np.maximum(submit_time, 1)))


def changes_with_time(score: Score) -> bool:
    """Whether a score looks at the present time."""
    return "now" in SCORE.parameters_of(score)


def check_order(score: Score, state: NDArray[Any]) -> None:
    """Refuse a score that was not a finite number for some job, by the states of clusters after a simulation.

    Raises
    ------
    ConfigurationError
        With the number of the job and the time.
    """
    failed = np.flatnonzero(state["unordered"])
    if len(failed):
        first = failed[np.argmin(state["unordered_at"].flat[failed])]
        job, now = (int(state[name].flat[first]) for name in ("unordered", "unordered_at"))
        raise SCORE.not_finite(score, f"job {job - 1} at {now} s")


@cache
def _universal(score: Score, parameters: int) -> Any:
    """Compiled score of whole columns."""
    return numba.vectorize([types.float64(*[types.int64] * parameters)])(score)


def evaluate_once(
    score: Score, values: dict[str, NDArray[Any]], number: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Value of a score that does not look at the time, for each job.

    Parameters
    ----------
    score : function
        The score.
    values : dict of str to int64[n]
        What it may look at, by name.
    number : int64[n]
        Numbers of the jobs.

    Raises
    ------
    ConfigurationError
        If the score cannot be compiled, raises an error, or is not a finite number for some job.
    """
    names = SCORE.parameters_of(score)
    if not names:
        raise ConfigurationError(f"{SCORE.named(score)}: takes no parameter, so it cannot order jobs")
    columns = [values[name] for name in names]
    try:
        compiled = _universal(score, len(names))
    except Exception as error:
        raise SCORE.cannot_compile(score, error) from None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(compiled(*columns), dtype=np.float64)
    except Exception as error:
        raise ConfigurationError(f"{SCORE.named(score)}: fails with {error!r}; return a number") from error
    if not np.isfinite(result).all():
        job = int(np.flatnonzero(~np.isfinite(result))[0])
        found = ", ".join(f"{name}={values[name][job]}" for name in names)
        raise SCORE.not_finite(score, f"job {number[job]} ({found})")
    return result

"""Scores of waiting jobs: the queue order as a function. The largest score is first in the queue.

A score is a plain Python function of any of these parameters, by name: `now`, `submit_time`, `estimate`
(seconds), `processors`, `user`, `group`, `queue`. One that does not take `now` never changes, so it is
evaluated once a job and the fast kernel is used; one that does is evaluated for every waiting job at
every scheduling pass.
"""

from __future__ import annotations

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


def changes_with_time(score: Score) -> bool:
    """Whether a score looks at the present time."""
    return "now" in SCORE.parameters_of(score)


def evaluate_once(score: Score, values: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Value of a score that does not look at the time, for each job.

    Raises
    ------
    ConfigurationError
        If the score cannot be compiled, raises an error, or is not a number for some job.
    """
    names = SCORE.parameters_of(score)
    if not names:
        raise ConfigurationError(f"{SCORE.named(score)}: takes no parameter, so it cannot order jobs")
    columns = [values[name] for name in names]
    try:
        universal = numba.vectorize([types.float64(*[types.int64] * len(names))])(score)
        with np.errstate(all="ignore"):
            result = np.asarray(universal(*columns), dtype=np.float64)
    except numba.core.errors.NumbaError as error:
        raise SCORE.cannot_compile(score, error) from None
    except Exception as error:
        raise ConfigurationError(f"{SCORE.named(score)}: fails with {error!r}; return a number") from error
    if np.isnan(result).any():
        job = int(np.flatnonzero(np.isnan(result))[0])
        found = ", ".join(f"{name}={values[name][job]}" for name in names)
        raise SCORE.not_a_number(score, found)
    return result

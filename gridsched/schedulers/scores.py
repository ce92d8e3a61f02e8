"""Scores of waiting jobs: the queue order as a function. The largest score is first in the queue.

A score is a plain Python function of any of these parameters, by name: `now`, `submit_time`, `estimate`
(seconds), `processors`, `user`, `group`, `queue`. One that does not take `now` never changes, so it is
evaluated once a job and the fast kernel is used; one that does is evaluated for every waiting job at
every scheduling pass.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gridsched.engine.jit import compile_callback
from gridsched.errors import ConfigurationError

Score = Callable[..., float]

PARAMETERS: tuple[str, ...] = ("now", "submit_time", "estimate", "processors", "user", "group", "queue")
"""What a score may look at, in the order in which the kernels pass it."""

SIGNATURE = types.float64(*[types.int64] * len(PARAMETERS))

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
    return "now" in parameters(score)


def parameters(score: Score) -> list[str]:
    """Names of a score's parameters.

    Raises
    ------
    ConfigurationError
        If it is not a plain function, or a parameter is not one of `PARAMETERS`.
    """
    if not inspect.isfunction(score):
        raise ConfigurationError(f"score {score!r}: give a plain Python function")
    names = list(inspect.signature(score).parameters)
    unknown = [name for name in names if name not in PARAMETERS]
    if unknown:
        raise ConfigurationError(
            f"score {_name(score)}: unknown parameter {unknown[0]!r}; "
            f"a score may take {', '.join(PARAMETERS)}"
        )
    return names


def _name(score: Score) -> str:
    return getattr(score, "__name__", repr(score))


def evaluate_once(score: Score, values: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Value of a score that does not look at the time, for each job.

    Raises
    ------
    ConfigurationError
        If the score cannot be compiled, raises an error, or is not a number for some job.
    """
    names = parameters(score)
    if not names:
        raise ConfigurationError(f"score {_name(score)}: takes no parameter, so it cannot order jobs")
    columns = [values[name] for name in names]
    try:
        universal = numba.vectorize([types.float64(*[types.int64] * len(names))])(score)
        with np.errstate(all="ignore"):
            result = np.asarray(universal(*columns), dtype=np.float64)
    except numba.core.errors.NumbaError as error:
        raise _cannot_compile(score, error) from None
    except Exception as error:
        raise ConfigurationError(f"score {_name(score)}: fails with {error!r}; return a number") from error
    if np.isnan(result).any():
        job = int(np.flatnonzero(np.isnan(result))[0])
        found = ", ".join(f"{name}={values[name][job]}" for name in names)
        raise not_a_number(score, found)
    return result


def not_a_number(score: Score, found: str) -> ConfigurationError:
    """What is said of a score that cannot order some job."""
    return ConfigurationError(f"score {_name(score)}: not a number for {found}; return a finite float")


@cache
def compile_score(score: Score) -> Any:
    """Compiled function of all `PARAMETERS`, for the kernels; compiled once for each score.

    Raises
    ------
    ConfigurationError
        If the score cannot be compiled.
    """
    names = parameters(score)
    # a division by zero gives infinity or NaN, as in NumPy: an error could not leave the kernel
    compiled = score if numba.config.DISABLE_JIT else numba.njit(score, error_model="numpy")
    # Numba knows no *args in callbacks; the source is made of names of PARAMETERS alone
    source = f"def adapter({', '.join(PARAMETERS)}):\n    return float(score({', '.join(names)}))"
    namespace: dict[str, Any] = {"score": compiled}
    exec(source, namespace)
    try:
        return compile_callback(namespace["adapter"], SIGNATURE)
    except numba.core.errors.NumbaError as error:
        raise _cannot_compile(score, error) from None


def _cannot_compile(score: Score, error: Exception) -> ConfigurationError:
    reason = next((line for line in str(error).splitlines() if line.strip()), "")
    return ConfigurationError(
        f"score {_name(score)}: Numba cannot compile it ({reason.strip()}); "
        "use numbers and functions of math only"
    )


def load_score(location: str) -> Score:
    """Score named as `path/to/file.py:function`.

    Raises
    ------
    ConfigurationError
        If there is no such file or function, or the file fails to load.
    """
    path, separator, name = location.rpartition(":")
    if not separator or not name.isidentifier():
        raise ConfigurationError(f"score {location!r}: write it as path/to/file.py:function")
    if not Path(path).is_file():
        raise ConfigurationError(f"score {location!r}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"gridsched_user_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"score {location!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"score {location!r}: {path} fails to load: {error!r}") from error
    score = getattr(module, name, None)
    if not inspect.isfunction(score):
        raise ConfigurationError(f"score {location!r}: {path} has no function {name}; write one with def")
    parameters(score)
    return score

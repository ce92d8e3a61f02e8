"""CPU times that compare well on a busy machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

MAX_ROUNDS = 50
SHORTEST = 0.03
"""Seconds that a measurement should last; the clock of the CPU time can be off by a millisecond."""


def best_time(function: Callable[[], Any], seconds: float = 2.0, rounds: int = 5) -> float:
    """Least CPU time of a function [s]."""
    return best_times([function], seconds, rounds)[0]


def best_times(functions: Sequence[Callable[[], Any]], seconds: float = 2.0, rounds: int = 5) -> list[float]:
    """Least CPU time of each function [s].

    The functions take turns, for so many seconds but at least so many rounds: a slow phase of the machine
    meets all of them, and the least time is the one that was disturbed least. Short functions are called
    several times in each turn. Each function is called twice before, to load or compile what it needs.
    """
    for function in functions:
        function()
    calls = math.ceil(SHORTEST / max(min(_seconds(function, 1) for function in functions), 1e-6))
    best = [math.inf] * len(functions)
    begin = time.process_time()
    for done in range(MAX_ROUNDS):
        if done >= rounds and time.process_time() - begin > seconds:
            break
        for k, function in enumerate(functions):
            best[k] = min(best[k], _seconds(function, calls))
    return best


def _seconds(function: Callable[[], Any], calls: int) -> float:
    """CPU time of a call, on average over some calls."""
    before = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - before) / calls

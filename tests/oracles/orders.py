"""Queue orders, corrections of estimates and checkpoints, in plain form: part of most oracles."""

from __future__ import annotations

import math
from collections.abc import Callable

Score = Callable[[int, int, int, int], float]
"""`score(now, submit_time, estimate, processors)`: the waiting job with the highest goes first."""

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds that successive corrections add (Tsafrir, Etsion, Feitelson 2007)."""


def rank(order: str | Score, now: int, submit: int, estimate: int, size: int) -> float:
    """What a queue is sorted by, smallest first, but for `fcfs`; submit times of papers count from 1."""
    if callable(order):
        return -order(now, submit, estimate, size)
    wait, age = now - submit, math.log10(max(submit, 1))
    expansion = (wait + estimate) / estimate
    stays = 1 / (0.05 * (wait + estimate) / 60 + 1)
    ranks: dict[str, float] = {
        "shortest": estimate,
        "smallest": size,
        "smallest_area": estimate * size,
        "lxf": -expansion,
        "lxwf": -(expansion + 0.02 * wait / 3600),
        "critical": -(stays * stays + wait / 86400),
        "wfp3": -((wait / estimate) ** 3) * size,
        "unicep": -(wait + 1e-15) / (math.log2(size + 1e-15) * estimate),
        "f1": math.log10(estimate) * size + 870 * age,
        "f2": math.sqrt(estimate) * size + 25_600 * age,
        "f3": estimate * size + 6_860_000 * age,
        "f4": estimate * math.sqrt(size) + 530_000 * age,
    }
    return ranks[order]


def corrected(length: int, elapsed: int, overrun: str) -> int:
    """How long a job is expected to run that has run so long already [s]."""
    count, expected = 0, length
    while expected <= elapsed:
        expected += expected if overrun == "doubling" else INCREMENTS[min(count, len(INCREMENTS) - 1)]
        count += 1
    return expected


def lengthened(work: int, interval: int, cost: int) -> int:
    """Seconds that work takes with a checkpoint after each interval, but not at its end."""
    return work + cost * len(range(interval, work, interval)) if interval else work


def saved(elapsed: int, interval: int, cost: int) -> int:
    """Seconds of work before the last whole checkpoint of a job that is killed."""
    return interval * (elapsed // (interval + cost)) if interval else 0


def worked(elapsed: int, interval: int, cost: int) -> int:
    """Seconds of work in a time in which checkpoints are taken, counted one by one."""
    return sum(not interval or second % (interval + cost) < interval for second in range(elapsed))

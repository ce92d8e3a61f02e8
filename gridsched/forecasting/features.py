"""What is known about a waiting job at an instant, as numbers that waits can be learned from.

State of the queue, the job, its user, the waits of jobs like it, and what simulated futures say. All of it
comes from a `gridsched.forecasting.snapshot.Snapshot`, which holds nothing that was not known at its time:
a wait is known from the start of its job on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.forecasting.adjustment import HIGH, LOW, MEDIAN, logarithm
from gridsched.forecasting.predictors import last_started
from gridsched.forecasting.snapshot import Snapshot
from gridsched.prediction.lifetimes import size_class

DAY = 86400
SPANS = {"6 h": DAY // 4, "day": DAY, "week": 7 * DAY}
"""Spans of the past whose starts are counted, seconds."""

UNKNOWN = -1.0
"""Stands for the mean of nothing; logarithms of times are larger."""

_FUTURES = {"low": LOW, "quarter": 4, "median": MEDIAN, "three quarters": 14, "high": HIGH}


def features(
    snapshot: Snapshot,
    chosen: NDArray[np.int64],
    futures: NDArray[np.float64],
    expected: NDArray[np.int64],
) -> dict[str, NDArray[np.float64]]:
    """Features of some waiting jobs.

    Parameters
    ----------
    snapshot : Snapshot
        The present.
    chosen : int64[n]
        Which of the waiting jobs, by place among them.
    futures : float64[n, 19]
        Quantiles of the time until their starts in simulated futures, seconds.
    expected : int64[n]
        Their starts if all estimates are right and nobody comes, seconds.

    Returns
    -------
    mapping of str to float64[n]
        By name. Processors and work are shares of the cluster, times are
        `gridsched.forecasting.adjustment.logarithm` of seconds.
    """
    past, now = snapshot.past, snapshot.now
    waiting, running = past[snapshot.waiting], past[snapshot.running]
    jobs = waiting[chosen]
    size = snapshot.processors
    work = waiting["processors"] * waiting["estimate"].astype(np.float64)
    left = np.maximum(running["start"] + running["estimate"] - now, 0)
    age = now - waiting["submit"]
    started = past[last_started(snapshot)]
    waits = _log(started["start"] - started["submit"])
    found: dict[str, Any] = {
        "free": snapshot.free / size,
        "waiting jobs": len(waiting),
        "waiting processors": waiting["processors"].sum() / size,
        "waiting work": _log(work.sum() / size),
        "running work left": _log((left * running["processors"]).sum() / size),
        "median age": _log(np.median(age)),
        "largest age": _log(age.max()),
        "since last start": _log(now - started["start"][-1]) if len(started) else UNKNOWN,
    }
    for name, span in SPANS.items():
        recent = started["start"] > now - span
        found[f"waits, {name}"] = _mean(waits[recent])
        found[f"starts, {name}"] = recent.sum()
        found[f"started processors, {name}"] = started["processors"][recent].sum() / size
    for name, span in (("hour", 3600), ("day", DAY)):
        first = np.searchsorted(past["submit"], now - span, "right")
        found[f"submissions, {name}"] = len(past) - first
        found[f"submitted processors, {name}"] = past["processors"][first:].sum() / size
    phase = 2 * np.pi * (now % DAY) / DAY
    found |= {
        "hour, sine": np.sin(phase),
        "hour, cosine": np.cos(phase),
        "day of the week": now // DAY % 7,
        "day": now / DAY,
        "processors": jobs["processors"] / size,
        "estimate": _log(jobs["estimate"]),
        "elapsed": _log(now - jobs["submit"]),
        "queue": jobs["queue"],
        "jobs ahead": chosen,
        "jobs ahead, share": chosen / len(waiting),
        "processors ahead": _before(waiting["processors"] / size)[chosen],
        "work ahead": _log(_before(work / size)[chosen]),
        "room by estimates": _log(_room(snapshot.free, left, running["processors"], jobs["processors"])),
        "expected": _log(expected - now),
    }
    found |= {f"futures, {name}": logarithm(futures[:, level]) for name, level in _FUTURES.items()}
    own = [
        _own(snapshot, int(place), job, waiting, running, started, waits)
        for place, job in zip(chosen, jobs, strict=True)
    ]
    found |= {name: np.array([each[name] for each in own], np.float64) for name in (own[0] if own else ())}
    return {name: np.broadcast_to(np.asarray(value, np.float64), len(jobs)) for name, value in found.items()}


def _own(
    snapshot: Snapshot,
    place: int,
    job: np.void,
    waiting: NDArray[np.void],
    running: NDArray[np.void],
    started: NDArray[np.void],
    waits: NDArray[np.float64],
) -> dict[str, float]:
    """Features of one job: who overtook it, its user, and the waits of jobs like it."""
    past, now, ahead = snapshot.past, snapshot.now, waiting[:place]
    later = past[np.searchsorted(past["submit"], job["submit"], "right") :]
    overtook, as_large = later["start"] >= 0, later["processors"] >= job["processors"]
    user = started["user"] == job["user"]
    alike = size_class(started["processors"]) == size_class(job["processors"])
    length = size_class(started["estimate"]) == size_class(job["estimate"])
    larger = started["start"][started["processors"] >= job["processors"]]
    return {
        "overtaken by": overtook.sum(),
        "overtaken by, share": _mean(overtook),
        "overtaken by as large": (overtook & as_large).sum(),
        "overtaken by as large, share": _mean(overtook[as_large]),
        "as large ahead": (ahead["processors"] >= job["processors"]).sum(),
        "of its queue ahead": (ahead["queue"] == job["queue"]).sum(),
        "user, last wait": _mean(waits[user][-1:]),
        "user, waits": _mean(waits[user][-10:]),
        "user, waiting jobs": (waiting["user"] == job["user"]).sum(),
        "user, running processors": running["processors"][running["user"] == job["user"]].sum()
        / snapshot.processors,
        "waits, its size": _mean(waits[alike][-10:]),
        "waits, its size and length": _mean(waits[alike & length][-10:]),
        "waits, its queue": _mean(waits[started["queue"] == job["queue"]][-20:]),
        "since last start as large": _log(now - larger[-1]) if len(larger) else UNKNOWN,
    }


def _room(
    free: int, left: NDArray[np.int64], taken: NDArray[np.int64], wanted: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Seconds until enough processors are free by estimates, if nobody else took them."""
    order = np.argsort(left, kind="stable")
    room = free + _before(np.append(taken[order], 0))
    times = np.append(0, left[order])
    return np.asarray(times[np.minimum(np.searchsorted(room, wanted), len(times) - 1)])


def _before(values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of all that come before each."""
    return np.asarray(np.cumsum(values) - values, np.float64)


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else UNKNOWN


def _log(seconds: NDArray[np.float64] | NDArray[np.int64] | float) -> NDArray[np.float64]:
    return logarithm(np.asarray(seconds, np.float64))

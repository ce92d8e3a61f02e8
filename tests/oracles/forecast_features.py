"""Features of a waiting job, one job after the other, from tuples; shares no code with the package."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

DAY = 86400


def log(seconds: float) -> float:
    return math.log(min(seconds, 1e9) + 60)


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else -1.0


def naive_features(
    past: Sequence[dict[str, int]],
    now: int,
    size: int,
    chosen: int,
    futures: Sequence[float],
    expected: int,
) -> dict[str, float]:
    """Features of the waiting job with the number `chosen` among those that wait.

    A job has submit, start and end (-1 where not known), estimate, processors, user and queue; `past` is in
    order of submission, `futures` has the 19 quantiles.
    """
    waiting = [job for job in past if job["start"] < 0]
    running = [job for job in past if job["start"] >= 0 > job["end"]]
    started = sorted((job for job in past if job["start"] >= 0), key=lambda job: job["start"])[-5000:]
    own = waiting[chosen]
    ahead = waiting[:chosen]
    left = [max(job["start"] + job["estimate"] - now, 0) for job in running]
    ages = sorted(now - job["submit"] for job in waiting)
    middle = (ages[len(ages) // 2] + ages[(len(ages) - 1) // 2]) / 2
    free = size - sum(job["processors"] for job in running)

    def wait(job: dict[str, int]) -> float:
        return log(job["start"] - job["submit"])

    def room() -> int:
        have, when = free, 0
        for ends, job in sorted(zip(left, running, strict=True), key=lambda pair: pair[0]):
            if have >= own["processors"]:
                break
            have, when = have + job["processors"], ends
        return when

    def recent(key: Any, count: int) -> float:
        return mean([wait(job) for job in started if key(job)][-count:])

    def work(jobs: Iterable[dict[str, int]]) -> float:
        return log(sum(job["processors"] * job["estimate"] for job in jobs) / size)

    later = [job for job in past if job["submit"] > own["submit"]]
    large = [job for job in later if job["processors"] >= own["processors"]]
    larger = [job for job in started if job["processors"] >= own["processors"]]
    found: dict[str, float] = {
        "free": free / size,
        "waiting jobs": len(waiting),
        "waiting processors": sum(job["processors"] for job in waiting) / size,
        "waiting work": work(waiting),
        "running work left": log(
            sum(time * job["processors"] for time, job in zip(left, running, strict=True)) / size
        ),
        "median age": log(middle),
        "largest age": log(ages[-1]),
        "since last start": log(now - started[-1]["start"]) if started else -1.0,
        "hour, sine": math.sin(2 * math.pi * (now % DAY) / DAY),
        "hour, cosine": math.cos(2 * math.pi * (now % DAY) / DAY),
        "day of the week": now // DAY % 7,
        "day": now / DAY,
        "processors": own["processors"] / size,
        "estimate": log(own["estimate"]),
        "elapsed": log(now - own["submit"]),
        "queue": own["queue"],
        "jobs ahead": len(ahead),
        "jobs ahead, share": len(ahead) / len(waiting),
        "processors ahead": sum(job["processors"] for job in ahead) / size,
        "work ahead": work(ahead),
        "room by estimates": log(room()),
        "expected": log(expected - now),
        "overtaken by": sum(job["start"] >= 0 for job in later),
        "overtaken by, share": mean(job["start"] >= 0 for job in later),
        "overtaken by as large": sum(job["start"] >= 0 for job in large),
        "overtaken by as large, share": mean(job["start"] >= 0 for job in large),
        "as large ahead": sum(job["processors"] >= own["processors"] for job in ahead),
        "of its queue ahead": sum(job["queue"] == own["queue"] for job in ahead),
        "user, last wait": recent(lambda job: job["user"] == own["user"], 1),
        "user, waits": recent(lambda job: job["user"] == own["user"], 10),
        "user, waiting jobs": sum(job["user"] == own["user"] for job in waiting),
        "user, running processors": sum(job["processors"] for job in running if job["user"] == own["user"])
        / size,
        "waits, its size": recent(
            lambda job: job["processors"].bit_length() == own["processors"].bit_length(), 10
        ),
        "waits, its size and length": recent(
            lambda job: (
                job["processors"].bit_length() == own["processors"].bit_length()
                and job["estimate"].bit_length() == own["estimate"].bit_length()
            ),
            10,
        ),
        "waits, its queue": recent(lambda job: job["queue"] == own["queue"], 20),
        "since last start as large": log(now - larger[-1]["start"]) if larger else -1.0,
    }
    for name, span in (("6 h", DAY // 4), ("day", DAY), ("week", 7 * DAY)):
        those = [job for job in started if job["start"] > now - span]
        found[f"waits, {name}"] = mean(map(wait, those))
        found[f"starts, {name}"] = len(those)
        found[f"started processors, {name}"] = sum(job["processors"] for job in those) / size
    for name, span in (("hour", 3600), ("day", DAY)):
        those = [job for job in past if job["submit"] > now - span]
        found[f"submissions, {name}"] = len(those)
        found[f"submitted processors, {name}"] = sum(job["processors"] for job in those) / size
    for name, place in (("low", 1), ("quarter", 4), ("median", 9), ("three quarters", 14), ("high", 17)):
        found[f"futures, {name}"] = log(futures[place])
    return found

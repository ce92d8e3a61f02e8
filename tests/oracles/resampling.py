"""Resampled and shaken workloads, job by job in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

WEEK = 7 * 86_400


def resampled(
    jobs: Sequence[dict[str, Any]], placed: Iterable[tuple[int, int, int, int, int]], weeks: int
) -> list[dict[str, Any]]:
    """Jobs of all placements.

    Parameters
    ----------
    jobs : sequence of dicts
        `clock` (seconds since a Monday, 0:00, which begins week 0 of the log), `user`, `deadline` (-1 for
        none), `on` (indices of the jobs that it depends on).
    placed : (user, shift, first, last, number)
        Parts of histories, and where they are put.
    weeks : int
        Weeks of the new log.

    Returns
    -------
    list of dicts
        `source`, `submit`, `user`, `deadline` and `on` (places in this list) of each job.
    """
    made = []
    for part, (user, shift, first, last, number) in enumerate(placed):
        for source, job in enumerate(jobs):
            week = job["clock"] // WEEK
            if job["user"] != user or not first <= week < last or not 0 <= week + shift < weeks:
                continue
            moved = shift * WEEK
            made.append(
                {
                    "source": source,
                    "submit": job["clock"] + moved,
                    "user": number,
                    "deadline": -1 if job["deadline"] < 0 else job["deadline"] + moved,
                    "part": part,
                }
            )
    made.sort(key=lambda job: job["submit"])
    for job in made:
        job["on"] = sorted(
            place
            for place, other in enumerate(made)
            if other["part"] == job["part"] and other["source"] in jobs[job["source"]]["on"]
        )
    return made

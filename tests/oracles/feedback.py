"""Batches and sessions of one user after the other, and when their jobs are submitted, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence


def batches(
    submit: Sequence[int], end: Sequence[int], user: Sequence[int], think_time: int
) -> list[list[tuple[list[int], int, bool]]]:
    """For each known user the batches: jobs, seconds since the end of all before, whether a session begins.

    Jobs are in order of submission.
    """
    found = []
    for name in sorted({each for each in user if each >= 0}):
        own = [job for job in range(len(submit)) if user[job] == name]
        made: list[tuple[list[int], int, bool]] = []
        for place, job in enumerate(own):
            earlier = own[:place]
            if not earlier:
                made.append(([job], 0, True))
            elif all(end[other] <= submit[job] for other in earlier):
                gap = submit[job] - max(end[other] for other in earlier)
                made.append(([job], gap, gap > think_time))
            else:
                made[-1][0].append(job)
        found.append(made)
    return found


def submissions(
    submit: Sequence[int],
    end: Sequence[int],
    run: Sequence[int],
    user: Sequence[int],
    think_time: int,
    sessions: str,
    wait: Sequence[int],
) -> list[int]:
    """When each job is submitted if every job waits for given seconds."""
    at = list(submit)
    for made in batches(submit, end, user, think_time):
        free = 0
        for number, (jobs, gap, opens) in enumerate(made):
            begin = submit[jobs[0]]
            for job in jobs:
                offset = submit[job] - begin
                if number == 0:
                    at[job] = submit[job]
                elif opens and sessions == "clock":
                    at[job] = max(submit[job], free + offset)
                else:
                    at[job] = free + gap + offset
            free = max(at[job] + wait[job] + run[job] for job in jobs)
    return at

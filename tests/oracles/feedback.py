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


def noticed(end: int, response: int, limit: int, returns: int, away: int) -> int:
    """When a user knows that a batch has ended: at once, or when back if the response reached the limit."""
    if limit < 0 or response < limit:
        return end
    days = -(
        (returns - end) // 86_400
    )  # whole days from the given instant to the first one that is not before
    return returns + (days + away) * 86_400


def falling_shares(hits: Sequence[int], trials: Sequence[int]) -> list[float]:
    """The shares of hits that never rise and are as likely as can be, by the formula of maxima of minima.

    Classes without trials have the share of the class before them, or of the first one with trials.
    """
    some = [k for k in range(len(trials)) if trials[k]]
    if not some:
        return [0.0] * len(trials)

    def together(first: int, last: int) -> float:
        chosen = some[first : last + 1]
        return sum(hits[k] for k in chosen) / sum(trials[k] for k in chosen)

    size = range(len(some))
    found = {some[k]: max(min(together(a, b) for a in range(k + 1)) for b in size if b >= k) for k in size}
    return [found[max([k for k in some if k <= place], default=some[0])] for place in range(len(trials))]

"""Scores of waiting jobs: the job with the largest score is first in the queue.

Name one in a study as `order: config/scores/example.py:patient_shortest`. A score takes any of `now`,
`submit_time`, `estimate` (seconds), `processors`, `user`, `group` and `queue`, by these names, and returns a
number. It is compiled, so it may use arithmetic, conditions and the functions of `math`.
"""

SECONDS_PER_HOUR = 3600.0


def patient_shortest(now: int, submit_time: int, estimate: int) -> float:
    """Shortest estimate first, but an hour of waiting makes up for a quarter of an hour of run time."""
    return 0.25 * (now - submit_time) / SECONDS_PER_HOUR - estimate / SECONDS_PER_HOUR


def largest_area(estimate: int, processors: int) -> float:
    """Most processor-seconds first; without `now` the order never changes, which is faster."""
    return float(estimate * processors)

"""Queue order of jobs whose users are about to stop waiting for them, in the spirit of CREASY.

Shmueli and Feitelson (IEEE Transactions on Parallel and Distributed Systems 20(7), 2009) put jobs first whose
response decides whether their users go on with a session: those for which the probability to go on falls
fastest, besides those that have waited long. The probability is taken as 0.8 / (0.05 r + 1) for a response of
r minutes, and a day of waiting weighs as much as the fall of a job of no length that has just come.
"""

SECONDS_PER_MINUTE = 60.0
SECONDS_PER_HOUR = 3600.0


def critical_first(now: int, submit_time: int, estimate: int) -> float:
    """Jobs first whose users would soon go away, and those that have waited long."""
    response = (now - submit_time + estimate) / SECONDS_PER_MINUTE
    falls = 1.0 / (0.05 * response + 1.0) ** 2
    return falls + (now - submit_time) / SECONDS_PER_HOUR / 24.0

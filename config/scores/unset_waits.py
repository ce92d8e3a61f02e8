"""WFP3 and UNICEP with the waits that a published simulator gave them.

It asks before it has set the start of a job, which is -1 then, so that each wait is minus the submit time,
less 1 (docs/queue-orders.md). The orders do not change with time, and the jobs that came last are preferred.
"""

import math

_TINY = 1e-15


def wfp3(submit_time: int, estimate: int, processors: int) -> float:
    """Cube of what counts as the wait over the estimate, times processors."""
    return ((-1 - submit_time) / estimate) ** 3 * processors


def unicep(submit_time: int, estimate: int, processors: int) -> float:
    """What counts as the wait over the estimate times the logarithm of the processors."""
    return (-1 - submit_time + _TINY) / (math.log2(processors + _TINY) * estimate)

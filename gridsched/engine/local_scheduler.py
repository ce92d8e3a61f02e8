"""Local scheduler of a number of processors for any queue order, from the first submission to the last end.

Two kernels, so that who makes no plans has nothing of conservative backfilling compiled. `score` is a
compiled function of (now, submit_time, estimate, processors, user, group, queue); the waiting job of the
largest score is first in the queue.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine.counted import CountedArrays, CountedOptions, begin, goes_on, process_events
from gridsched.engine.jit import inline, jit
from gridsched.engine.passes import conservative_pass, queue_pass
from gridsched.engine.reference import by_reference


@inline
def advance(c: CountedArrays, options: CountedOptions, score: Any) -> None:
    """Go on to the next event; there must be one."""
    queue_pass(c, process_events(c, options), options, score)


@inline
def advance_with_plans(c: CountedArrays, options: CountedOptions, score: Any) -> None:
    """The same under conservative backfilling."""
    conservative_pass(c, process_events(c, options), options, score)


@jit
def schedule(bundle: CountedArrays, options: CountedOptions, score: Any) -> None:
    """Simulate the cluster to the end of its last job; `starts` is the result."""
    c = by_reference(bundle)
    begin(c, options)
    while goes_on(c):
        advance(c, options, score)


@jit
def schedule_with_plans(bundle: CountedArrays, options: CountedOptions, score: Any) -> None:
    """The same under conservative backfilling."""
    c = by_reference(bundle)
    begin(c, options)
    while goes_on(c):
        advance_with_plans(c, options, score)

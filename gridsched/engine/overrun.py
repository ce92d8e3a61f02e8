"""Expected end of a running job, also after it has outrun its estimate.

The sequence of expected ends of a job is fixed by its start and estimate, so its present member needs
no memory: it is the first one that has not passed.
"""

from __future__ import annotations

from gridsched.engine.jit import inline
from gridsched.engine.records import OVERRUN_DOUBLES

INCREMENTS: tuple[int, ...] = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds added at each correction, the last one again and again: after Tsafrir, Etsion and Feitelson,
"Backfilling using system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007;
quoted from memory, and continued here beyond the last value."""


@inline
def expected_end(start: int, estimate: int, rule: int, not_before: int) -> int:
    """First expected end at or after `not_before` of a job that started at `start`."""
    end = start + estimate
    if end >= not_before:
        return end
    if rule == OVERRUN_DOUBLES:
        length = estimate
        while start + length < not_before:
            length *= 2
        return start + length
    for increment in INCREMENTS:
        end += increment
        if end >= not_before:
            return end
    return end + -(-(not_before - end) // INCREMENTS[-1]) * INCREMENTS[-1]

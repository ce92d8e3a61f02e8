"""Reports of broken rules: a line for the first violation of each, which counts the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray


def report(offending: NDArray[Any], describe: Callable[[int], str], what: str = "") -> Iterator[str]:
    """Yield one line that describes the first of the offending indices and counts the others.

    Parameters
    ----------
    offending : int[...]
        Indices of those that break a rule.
    describe : callable
        What is wrong with one of them.
    what : str
        What they are, in the plural; nothing where the line says it.
    """
    if len(offending):
        others = f" (and {' '.join(filter(None, (f'{len(offending) - 1} more', what)))})"
        yield describe(int(offending[0])) + (others if len(offending) > 1 else "")


def report_jobs(variables: Mapping[str, NDArray[Any]], jobs: NDArray[Any], what: str) -> Iterator[str]:
    """Yield one line that says what is wrong with the first of some jobs, and counts the others."""
    yield from report(jobs, lambda job: f"job {variables['job_number'][job]} {what}")

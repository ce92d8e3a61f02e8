"""How long passes of Slurm's backfill scheduler take, in what `sdiag` printed."""

from __future__ import annotations

import re
from pathlib import Path

from gridsched.errors import ConfigurationError
from gridsched.io import read_text

_PASSES = {
    "cycles": r"Total cycles:\s*(\d+)",
    "mean": r"Mean cycle:\s*(\d+)",
    "longest": r"Max cycle:\s*(\d+)",
    "depth": r"Depth Mean \(try depth\):\s*(\d+)",
    "queue": r"Queue length mean:\s*(\d+)",
}
"""Statistics of the backfill scheduler in the output of sdiag; times are microseconds."""


def read_passes(path: str | Path) -> dict[str, int]:
    """Statistics of backfill passes in what `sdiag` printed: `_PASSES`, as far as it has them.

    Raises
    ------
    ConfigurationError
        If it has none.
    """
    text = read_text(Path(path)).partition("Backfilling stats")[2]
    found = {name: re.search(pattern, text) for name, pattern in _PASSES.items()}
    number = {name: int(match[1]) for name, match in found.items() if match}
    if not {"cycles", "mean"} <= set(number):
        raise ConfigurationError(f"{path}: no backfilling stats with cycles; give what sdiag printed")
    return number

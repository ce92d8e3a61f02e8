"""What is known of a measure besides its values: name, words, unit, better direction, aggregation, source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import xarray as xr

Better = Literal["lower", "higher", ""]
Aggregation = Literal["jobs", "run"]


@dataclass(frozen=True)
class Measure:
    """What is known of a measure.

    Parameters
    ----------
    name : str
        Name of its variable in datasets and of its rows in tables.
    words : str
        What it is called in sentences and on axes, without its unit.
    unit : str
        Its unit; "1" for plain numbers and shares.
    better : {"lower", "higher", ""}
        Which side is better, for rankings; nothing where neither is.
    aggregation : {"jobs", "run"}
        "jobs" for a mean over jobs; "run" for one value a run or part of a platform, which replicates weigh
        equally.
    weight : str
        Variable by which replicates and blocks weigh in a mean over jobs: their number by default.
    share : bool
        Whether it is a share, shown in per cent.
    largest : float
        Largest value that a share can have.
    source : str
        Where it is defined.
    value : callable, optional
        Its value for a run, of a measure that needs nothing else.
    """

    name: str
    words: str
    unit: str = "1"
    better: Better = ""
    aggregation: Aggregation = "run"
    weight: str = "jobs"
    share: bool = False
    largest: float = 1.0
    source: str = ""
    value: Callable[[xr.Dataset], float] | None = None

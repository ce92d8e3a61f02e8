"""What figures with lines share: a line with the band of its intervals, and how far an axis follows bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gridsched.figures import style

_BAND = 0.16
_FARTHEST_BOUND = 2.0
"""An axis follows intervals up to so many times its largest mean, and down to its smallest one by so much."""


def seen(rows: pd.DataFrame) -> list[float]:
    """What an axis has to hold: all means, and intervals as far as they do not press the means together."""
    low = rows["low"].clip(lower=rows["mean"].min() / _FARTHEST_BOUND)
    high = rows["high"].clip(upper=rows["mean"].max() * _FARTHEST_BOUND)
    return [*rows["mean"], *low.dropna(), *high.dropna()]


def curve(axes: Axes, rows: pd.DataFrame, along: str, options: Mapping[str, Any]) -> None:
    """Means against a column as a line, with a band of their intervals that stays inside the panel.

    Parameters
    ----------
    axes : Axes
        With its limits set.
    rows : DataFrame
        Columns mean, low, high and `along`, which increases.
    along : str
    options : mapping
        Keyword arguments of `Axes.plot`, with a colour.
    """
    axes.plot(rows[along], rows["mean"], **options)
    known = rows.dropna(subset=["low", "high"])
    low, high = (known[side].clip(*axes.get_ylim()) for side in ("low", "high"))
    axes.fill_between(known[along], low, high, color=options["color"], alpha=_BAND, linewidth=0)


def band() -> tuple[Patch, str]:
    """Entry of a legend for the intervals."""
    return Patch(color=style.FAINT, alpha=2 * _BAND, linewidth=0), "95 % interval"


def band_entry(numbers: pd.DataFrame) -> list[tuple[Any, str]]:
    """Entry of a legend for the intervals, if any is known."""
    return [band()] if np.isfinite(numbers["low"]).any() else []

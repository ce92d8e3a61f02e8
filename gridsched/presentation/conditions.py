"""What the page says of nodes that fail: how they do, and what that made of the jobs of each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import xarray as xr

from gridsched.experiments.machines import FATES
from gridsched.experiments.parts import ClusterConfig, FailuresConfig
from gridsched.figures.style import duration, number
from gridsched.presentation.tables import PageTable

MAX_ROWS = 60
"""Runs that the page shows; the others are in the dataset of the study."""

_REQUEUED = {
    "place": "A job that is killed waits again at its place in the queue",
    "end": "A job that is killed waits again at the end of the queue",
    "lost": "A job that is killed is lost",
}


def failures_told(study: Any) -> list[str]:
    """One line for each way in which nodes fail: where, how often, and what becomes of jobs; none without."""
    lines = []
    for scenario in getattr(study, "scenarios", ()):
        failing = [each for each in getattr(scenario, "machines", ()) if each.failures is not None]
        for failures in dict.fromkeys(each.failures for each in failing):
            own = [each for each in failing if each.failures == failures]
            lines.append(f"{_where(scenario, own)}: {_how(failures)}")
    return lines


def _where(scenario: Any, failing: Sequence[ClusterConfig]) -> str:
    """The scenario, and which of its clusters fail so if not all do."""
    if len(failing) == len(scenario.machines):
        return str(scenario.name)
    return f"{scenario.name}, {', '.join(each.name for each in failing)}"


def _how(failures: FailuresConfig) -> str:
    """How nodes fail and what becomes of their jobs, in a few sentences."""
    if failures.mean_time_between is None:
        text = f"What happens to nodes is read from {failures.events}."
    else:
        together = f", {failures.rack} together" if failures.rack > 1 else ""
        shape = "" if failures.shape == 1 else f" (Weibull distribution of shape {failures.shape:g})"
        text = (
            f"Nodes fail{together} after {duration(failures.mean_time_between)} on average{shape} and are "
            f"repaired after {duration(failures.mean_repair)}, drawn at random."
        )
    text += f" {_REQUEUED[failures.requeue]}"
    if failures.requeue == "lost":
        return f"{text}."
    if not failures.checkpoint_interval:
        return f"{text}, and starts again from the beginning."
    return (
        f"{text}, and continues from its last checkpoint: one after every "
        f"{duration(failures.checkpoint_interval)} of work, which takes {duration(failures.checkpoint_cost)}."
    )


def outcome_table(dataset: xr.Dataset) -> PageTable | None:
    """Job outcomes of each run where nodes fail, means over replicates; none if the dataset has none."""
    known = [name for name in FATES if name in dataset]
    if not known:
        return None
    means = dataset[known]
    if "replicate" in means.dims:
        means = means.mean("replicate")
    frame = means.to_dataframe()[known].dropna(subset=known[:1])
    if isinstance(frame.index, pd.MultiIndex):
        frame.index = frame.index.remove_unused_levels()
        alike = [
            name for name, level in zip(frame.index.names, frame.index.levels, strict=True) if len(level) == 1
        ]
        frame = frame.droplevel(alike[: frame.index.nlevels - 1])
    shown = [name for name in known if name in _ALWAYS or frame[name].any()]
    more = f"; {len(frame) - MAX_ROWS:,} more runs are in the dataset" if len(frame) > MAX_ROWS else ""
    rows = []
    for place, row in zip(frame.index[:MAX_ROWS], frame[shown].to_dict("records"), strict=False):
        name = ", ".join(map(str, place)) if isinstance(place, tuple) else str(place)
        rows.append([name, *(_text(each, float(row[each])) for each in shown)])
    caption = f"Job outcomes where nodes fail, means over replicates{more}"
    return PageTable(caption, ["run", *(FATES[name] for name in shown)], rows)


_ALWAYS = ("executions_killed", "extra_work_share")
"""What is shown even if it is nothing."""


def _text(name: str, value: float) -> str:
    return f"{value:.1%}" if name.endswith("_share") else number(value)

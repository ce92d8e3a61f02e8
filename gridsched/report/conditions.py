"""What the page says of nodes that fail: how they do, and what that made of the jobs of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from gridsched.experiments.machines import FATES
from gridsched.experiments.parts import ClusterConfig, FailuresConfig
from gridsched.figures.style import duration, number

MAX_ROWS = 60
"""Runs that the page shows; the others are in the dataset of the study."""

_REQUEUED = {
    "place": "A job that is killed waits again at its place in the queue",
    "end": "A job that is killed waits again at the end of the queue",
    "lost": "A job that is killed is lost",
}


@dataclass(frozen=True)
class FateTable:
    """What became of jobs: labels of runs, and numbers of each of `header`."""

    labels: list[str]
    header: list[str]
    rows: list[tuple[list[str], list[str]]]
    left_out: int
    """Runs that are not shown."""


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
        return f"{text}, and begins anew."
    return (
        f"{text}, and goes on from its last checkpoint: one after every "
        f"{duration(failures.checkpoint_interval)} of work, which takes {duration(failures.checkpoint_cost)}."
    )


def fate_table(dataset: xr.Dataset) -> FateTable | None:
    """What became of the jobs of each run, means over replicates; none if the dataset does not say it."""
    known = [name for name in FATES if name in dataset]
    if not known:
        return None
    means = dataset[known]
    if "replicate" in means.dims:
        means = means.mean("replicate")
    dims = [str(dim) for dim in means[known[0]].dims]
    places = [
        place
        for place in product(*(range(means.sizes[dim]) for dim in dims))
        if not np.isnan(means[known[0]].values[place])
    ]
    shown = [name for name in known if name in _ALWAYS or any(means[name].values[place] for place in places)]
    rows = [
        (
            [str(means[dim].values[index]) for dim, index in zip(dims, place, strict=True)],
            [_text(name, float(means[name].values[place])) for name in shown],
        )
        for place in places[:MAX_ROWS]
    ]
    return FateTable(dims, [FATES[name] for name in shown], rows, max(len(places) - MAX_ROWS, 0))


_ALWAYS = ("executions_killed", "extra_work_share")
"""What is shown even if it is nothing."""


def _text(name: str, value: float) -> str:
    return f"{value:.1%}" if name.endswith("_share") else number(value)

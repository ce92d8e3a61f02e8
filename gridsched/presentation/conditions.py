"""What the page says of nodes that fail: how they do, and what that made of the jobs of each run."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from gridsched.experiments.machines import FATES
from gridsched.experiments.parts import FailuresConfig
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
        machines = getattr(scenario, "machines", ())
        for failures in dict.fromkeys(each.failures for each in machines if each.failures is not None):
            own = [each.name for each in machines if each.failures == failures]
            where = "" if len(own) == len(machines) else f", {', '.join(own)}"
            lines.append(f"{scenario.name}{where}: {_how(failures)}")
    return lines


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
    restart = ", and starts again from the beginning."
    if failures.checkpoint_interval:
        restart = (
            f", and continues from its last checkpoint: one after every "
            f"{duration(failures.checkpoint_interval)} of work, which takes "
            f"{duration(failures.checkpoint_cost)}."
        )
    return f"{text} {_REQUEUED[failures.requeue]}{'.' if failures.requeue == 'lost' else restart}"


def outcome_table(dataset: xr.Dataset) -> PageTable | None:
    """Job outcomes of each run where nodes fail, means over replicates; none if the dataset has none."""
    known = [name for name in FATES if name in dataset]
    if not known:
        return None
    means = dataset[known]
    means = means.mean("replicate") if "replicate" in means.dims else means
    frame = means.to_dataframe()[known].dropna(subset=known[:1])
    if isinstance(frame.index, pd.MultiIndex):
        labels = frame.index.to_frame()
        # what all runs have in common does not tell them apart
        several = [name for name in labels if labels[name].nunique() > 1] or [labels.columns[-1]]
        frame.index = [", ".join(map(str, run)) for run in labels[several].itertuples(index=False)]
    shown = [name for name in known if name in _ALWAYS or frame[name].any()]
    rows = [
        [
            str(run),
            *(f"{row[name]:.1%}" if name.endswith("_share") else number(row[name]) for name in shown),
        ]
        for run, row in frame[shown].head(MAX_ROWS).iterrows()
    ]
    more = f"; {len(frame) - MAX_ROWS:,} more runs are in the dataset" if len(frame) > MAX_ROWS else ""
    caption = f"Job outcomes where nodes fail, means over replicates{more}"
    return PageTable(caption, ["run", *(FATES[name] for name in shown)], rows)


_ALWAYS = ("executions_killed", "extra_work_share")
"""What is shown even if it is nothing."""

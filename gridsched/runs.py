"""What every function that takes runs needs: that they are runs, what to call them, where jobs started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError

SEGMENTS = ("segment_job", "segment_cluster", "segment_processors", "segment_start", "segment_end")
"""Variables of a run that says on which clusters its jobs ran."""

_NEEDED = ("submit_time", "run_time", "start_time", "end_time", "processors", "cluster_processors")
_TELLING = ("policies", "estimates", "kill", "overrun", "passes", "seed", "times", "align")
"""Attributes by which runs of the same scheduler are distinguished, after its parameters."""

_POLICY = "parameter_policy"
"""A parameter that the name of the scheduler says already."""


def check_run(run: Any) -> None:
    """Refuse what is no run.

    Raises
    ------
    ConfigurationError
        If it is no dataset, a dataset of something else, or one of several runs.
    """
    if not isinstance(run, xr.Dataset):
        raise ConfigurationError(f"{type(run).__name__} is no run; give what gridsched.simulate returns")
    missing = [name for name in _NEEDED if name not in run]
    if missing or run["start_time"].dims != ("job",):
        what = f"has no {', '.join(missing)}" if missing else "holds several runs"
        raise ConfigurationError(
            f"{name_of_run(run)}: this dataset is no run, it {what}; give what gridsched.simulate returns"
        )


def name_of_run(run: xr.Dataset) -> str:
    """What messages call a run."""
    return str(run.attrs.get("title", "run"))


def names_clusters(run: xr.Dataset) -> bool:
    """Whether a run says on which clusters its jobs ran; ideal schedulers do not."""
    return all(name in run for name in SEGMENTS)


def listed_runs(runs: Iterable[xr.Dataset] | Mapping[str, xr.Dataset]) -> list[xr.Dataset]:
    """Several runs, without their labels.

    Raises
    ------
    ConfigurationError
        If these are not several, or one is no run.
    """
    if isinstance(runs, xr.Dataset):
        raise ConfigurationError("this is one run; give several, as a list or as {label: run}")
    if not isinstance(runs, Iterable):
        raise ConfigurationError(f"{type(runs).__name__} is no list of runs; give a list or {{label: run}}")
    given = [*runs.values()] if isinstance(runs, Mapping) else [*runs]
    for run in given:
        check_run(run)
    return given


def labelled_runs(runs: Iterable[xr.Dataset] | Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Several runs by label: their own, or the scheduler with what else differs.

    Raises
    ------
    ConfigurationError
        If these are not several, one is no run, or they cannot be distinguished.
    """
    given = listed_runs(runs)
    labels = [str(label) for label in runs] if isinstance(runs, Mapping) else _labels(given)
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigurationError(f"two runs have the label {label!r}; give each one of its own")
    return dict(zip(labels, given, strict=True))


def _labels(runs: Sequence[xr.Dataset]) -> list[str]:
    """Label of each run: its scheduler, and the first attributes that distinguish it from others of that."""
    schedulers = [str(run.attrs.get("scheme", "run")) for run in runs]
    labels = schedulers
    names = {str(name) for run in runs for name in run.attrs}
    parameters = sorted(name for name in names if name.startswith("parameter_") and name != _POLICY)
    for attribute in (*parameters, *_TELLING):
        texts = [_text(attribute, run.attrs.get(attribute, "")) for run in runs]
        apart: dict[str, set[str]] = {}
        for label, text in zip(labels, texts, strict=True):
            apart.setdefault(label, set()).add(text)
        labels = [
            f"{label}, {text}" if len(apart[label]) > 1 else label
            for label, text in zip(labels, texts, strict=True)
        ]
    if len(set(labels)) < len(runs):
        raise ConfigurationError(
            f"runs cannot be distinguished: {', '.join(labels)}; give {{label: run}} instead of a list"
        )
    # What is the same for all need not be said.
    shared = f"{schedulers[0]}, " if schedulers else ""
    same = len(set(schedulers)) == 1 and all(label.startswith(shared) for label in labels)
    return [label.removeprefix(shared) for label in labels] if same else labels


def _text(attribute: str, value: Any) -> str:
    """What a label says of an attribute."""
    says_it_all = attribute in _TELLING and isinstance(value, str)
    return str(value) if says_it_all else f"{attribute.removeprefix('parameter_')} {value}"


def first_allocation(run: xr.Dataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cluster (index) and processors of each job at its first start; -1 where the run does not say.

    A job that spans clusters has the processors of all, and the first of the clusters.
    """
    jobs = run.sizes["job"]
    cluster, processors = np.full(jobs, -1, np.int64), np.full(jobs, -1, np.int64)
    if not names_clusters(run):
        return cluster, processors
    job, start = run["segment_job"].to_numpy(), run["segment_start"].to_numpy()
    first = np.flatnonzero(start == run["start_time"].to_numpy()[job])[::-1]
    cluster[job[first]] = run["segment_cluster"].to_numpy()[first]
    taken = np.bincount(job[first], run["segment_processors"].to_numpy()[first], jobs).astype(np.int64)
    return cluster, np.where(cluster >= 0, taken, -1)

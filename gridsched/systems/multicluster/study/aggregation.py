"""The dataset of a study of a multicluster: measures of all runs, and MUSCLE's advantage over each scheme.

The advantage is 1 less the mean of the reference scheme over that of another, for MCP and PB: the share by
which the reference is better. Its interval pairs the replicates, in which all schemes replay the same jobs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import collected, interval_variables
from gridsched.replication import Interval, mean_interval, times_interval
from gridsched.systems.multicluster.measures import VARIABLES
from gridsched.systems.multicluster.study.config import MulticlusterStudy
from gridsched.systems.multicluster.study.example import measures_of

PARAMETERS: tuple[str, ...] = ("point", "scheme", "replicate")
"""Dimensions of the runs."""

COMPARED: dict[str, str] = {
    "mcp": "mean comprehensive performance",
    "pb": "performance balance factor",
}
"""Measures with an advantage."""

WEIGHTS = ("over_deadline", "makespan", "idle")
"""Weights of equation (1)."""


def aggregate_multicluster_study(
    study: MulticlusterStudy,
    runs: Sequence[str | Path],
    jobs: Mapping[str, Sequence[str | Path]],
    target: str | Path,
    *,
    example: str | Path | None = None,
) -> None:
    """Put all points and replicates into the dataset of the study.

    Parameters
    ----------
    study : MulticlusterStudy
        The study.
    runs : sequence of paths
        Results of `study.stages.simulate_run`.
    jobs : mapping of point to paths
        Results of `study.stages.prepare_point`, in the order of the replicates.
    target : path
        The dataset.
    example : path, optional
        Result of `study.example.write_example`.
    """
    whole = _runs(study, [results.read(path) for path in runs])
    whole = whole.merge(_advantages(whole, study.reference_label))
    whole = whole.merge(_facts(study, {name: _submitted(paths) for name, paths in jobs.items()}))
    if example is not None:
        whole = whole.merge(measures_of(results.read(example)), combine_attrs="override")
    whole.attrs = study.attributes(axis=study.axis)
    files.write(whole, target)


def _submitted(paths: Sequence[str | Path]) -> xr.Dataset:
    """What the table of points says of the jobs of all replicates; reasons are those of the first."""
    facts = [results.read(path)[["offered_load", "workload_checksum"]] for path in paths]
    return xr.concat(facts, dim="replicate", combine_attrs="override")


def _runs(study: MulticlusterStudy, runs: Sequence[xr.Dataset]) -> xr.Dataset:
    """Measures of all runs on the dimensions of `PARAMETERS`, NaN where there is no run."""
    points = study.scenarios
    own: dict[str, list[Any]] = {
        "cluster": list(dict.fromkeys(cluster.name for point in points for cluster in point.clusters)),
        "class_name": list(dict.fromkeys(each.name for point in points for each in point.classes)),
    }
    labels: dict[str, list[Any]] = {
        "point": [point.name for point in points],
        "scheme": study.labels,
        "replicate": list(range(study.replicates)),
    }
    return collected(runs, labels, own).assign_coords(own)


def _advantages(whole: xr.Dataset, reference: str) -> xr.Dataset:
    """By which share the reference is better than each scheme, with intervals."""
    variables: dict[str, Any] = {}
    for measure, label in COMPARED.items():
        values = whole[f"{measure}_mean"].transpose("point", "scheme", "replicate")
        own = values.sel(scheme=[reference]).values
        parts = advantage_interval(np.broadcast_to(own, values.shape), values.values)
        is_reference = (whole["scheme"].values == reference)[np.newaxis]
        known = Interval(*(np.where(is_reference, np.nan, part) for part in parts))
        variables |= interval_variables(
            f"{measure}_advantage",
            ("point", "scheme"),
            known,
            f"share by which the {label} of the reference is less",
            "1",
        )
    return xr.Dataset(variables)


def advantage_interval(reference: NDArray[np.float64], other: NDArray[np.float64]) -> Interval:
    """1 less the mean of the reference over that of another scheme, paired, replicates on the last axis.

    The interval is symmetric in the logarithm of the ratio, so that no bound exceeds 1.
    """
    mean, low, high = times_interval(reference, other)
    return Interval(1 - mean, 1 - high, 1 - low)


# --- points ---------------------------------------------------------------------------------------


def _facts(study: MulticlusterStudy, jobs: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """What the points are, and where their jobs come from."""
    described: dict[str, tuple[list[Any], str, str]] = {
        "level": ([_number(point.jobs.level) for point in study.scenarios], "wanted workload level", "1"),
        "calibrated_queue": (
            [float(drawn.attrs["calibrated_queue"]) for drawn in jobs.values()],
            "mean number of jobs in the queue for which the rate was set",
            "1",
        ),
        "rate": (
            [float(drawn.attrs["rate"]) for drawn in jobs.values()],
            "arrivals in a unit of time",
            "1",
        ),
        "largest_ratio": (
            [max(each.high for each in point.classes) for point in study.scenarios],
            "largest deadline ratio",
            "1",
        ),
        "cluster_count": ([len(point.clusters) for point in study.scenarios], "number of clusters", "1"),
        "capacity": ([point.capacity for point in study.scenarios], "processors times speed", "1"),
    }
    whole = xr.Dataset(
        {
            name: ("point", np.array(values, np.float64), {"long_name": long_name, "units": units})
            for name, (values, long_name, units) in described.items()
        },
        {"point": [point.name for point in study.scenarios]},
    )
    reference = study.reference_label
    whole["ends"] = ("point", [study.made(point, reference).ends for point in study.scenarios])
    for name in ("offered_load", "workload_checksum"):
        whole[name] = (
            ("point", "replicate"),
            np.stack([drawn[name].values for drawn in jobs.values()]),
            next(iter(jobs.values()))[name].attrs,
        )
    whole["acknowledgement"] = ("point", [str(drawn.attrs["acknowledgement"]) for drawn in jobs.values()])
    for kind in ("left_out", "repaired"):
        counts = [json.loads(drawn.attrs[kind]) for drawn in jobs.values()]
        reasons = sorted({reason for found in counts for reason in found})
        whole[kind] = (
            ("point", f"{kind}_reason"),
            np.array([[found.get(reason, 0) for reason in reasons] for found in counts], np.int64).reshape(
                len(counts), len(reasons)
            ),
            {"long_name": f"jobs {kind.replace('_', ' ')}", "units": "1"},
        )
        whole = whole.assign_coords({f"{kind}_reason": np.array(reasons, dtype=object)})
    return whole.merge(_members(study))


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _members(study: MulticlusterStudy) -> xr.Dataset:
    """Clusters of each point, NaN for one that a point does not have."""
    points = study.scenarios
    names = list(dict.fromkeys(cluster.name for point in points for cluster in point.clusters))
    sizes, speeds = np.full((2, len(points), len(names)), np.nan)
    weights = np.full((len(points), len(names), len(WEIGHTS)), np.nan)
    for i, point in enumerate(points):
        for cluster, wanted in zip(point.platform, study.weights(point), strict=True):
            k = names.index(cluster.name)
            sizes[i, k], speeds[i, k] = cluster.processors, cluster.speed
            weights[i, k] = [getattr(wanted, key) for key in WEIGHTS]
    return xr.Dataset(
        {
            "cluster_processors": (
                ("point", "cluster"),
                sizes,
                {"long_name": "processors of the cluster", "units": "1"},
            ),
            "cluster_speed": (
                ("point", "cluster"),
                speeds,
                {"long_name": "speed of the cluster", "units": "1"},
            ),
            "cluster_weight": (
                ("point", "cluster", "weight"),
                weights,
                {"long_name": "weight in the comprehensive performance", "units": "1"},
            ),
        },
        {"point": [point.name for point in points], "cluster": names, "weight": list(WEIGHTS)},
    )


# --- tables ---------------------------------------------------------------------------------------


def means_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each point, scheme and measure, with intervals; MCP and PB with advantages."""
    names = [name for name, (dims, _, _) in VARIABLES.items() if not dims]
    rows = []
    for point in whole["point"].values:
        for scheme in whole["scheme"].values:
            place = {"point": point, "scheme": scheme}
            for name in (*names, "queue_growth"):
                values = whole[name].sel(place).values
                if np.isnan(values).all():
                    continue
                row: dict[str, Any] = {**place, "measure": name, "unit": whole[name].attrs["units"]}
                row["replicates"] = int((~np.isnan(values)).sum())
                row |= dict(zip(("mean", "low", "high"), map(float, mean_interval(values)), strict=True))
                compared = name.removesuffix("_mean")
                if compared in COMPARED:
                    row |= {
                        f"advantage{suffix}": float(whole[f"{compared}_advantage{suffix}"].sel(place))
                        for suffix in ("", "_low", "_high")
                    }
                rows.append(row)
    return pd.DataFrame(rows)

"""Studies of placements as the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments.placements.config import PlacementStudy
from gridsched.experiments.placements.figures import FINAL, order_text, placement_text, published_shares
from gridsched.experiments.placements.trace import SOURCE
from gridsched.nodes import PLACEMENTS
from gridsched.replication import mean_interval
from gridsched.report.parts import as_text, figures, heading, interval_text, labels


def placements_view(study: PlacementStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of placements."""
    dataset = results.read(folder / "study.nc")
    orders = labels(dataset, "node_order")
    return {
        **heading(study, dataset),
        "template": "placements.html.j2",
        "orders": [order_text(order) for order in orders],
        "rows": [_row(dataset.sel(placement=name), study.name) for name in labels(dataset, "placement")],
        "facts": _facts(dataset),
        "figures": figures(folder, study.study_figures),
        "source": SOURCE,
    }


def _row(part: xr.Dataset, study: str) -> dict[str, Any]:
    """One placement: what it does, and its share under each order of nodes."""
    name = str(part["placement"].values)
    published = published_shares(study).get(name, np.nan)
    cells = []
    for order in labels(part, "node_order"):
        interval = mean_interval(part[FINAL].sel(node_order=order).values)
        cells.append(
            {
                "mean": _percent(float(interval.mean)),
                "interval": interval_text(interval, _percent),
                "difference": as_text(100 * (float(interval.mean) - published), "{:+.2f} points".format),
            }
        )
    return {
        "name": placement_text(name),
        "meaning": PLACEMENTS[name],
        "published": as_text(published, _percent),
        "cells": cells,
    }


def _percent(share: float) -> str:
    return f"{share:.2%}"


def _facts(dataset: xr.Dataset) -> str:
    """Size of the cluster and of what arrives."""
    pods, count = dataset["pods_arrived"].isel(arrived=-1), dataset.sizes["replicate"]
    return (
        f"{int(dataset['cluster_nodes']):,} nodes with {int(dataset['cluster_gpus']):,} GPUs; "
        f"{int(pods.min()):,} to {int(pods.max()):,} pods in each of {count} replicates, "
        f"until {float(dataset['arrived'][-1]):.0%} of the GPUs were asked for"
    )

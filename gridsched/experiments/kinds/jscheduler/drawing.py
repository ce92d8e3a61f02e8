"""Figure of run time prediction: which intervals of run time methods mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.ticker import PercentFormatter

from gridsched.errors import ConfigurationError
from gridsched.experiments.specification import Specification
from gridsched.figures import style
from gridsched.prediction.methods import CLASSIFICATION, REQUESTED

_COLORS = "YlGnBu"
_EDGE_LABELS = 7


@style.styled
def prediction_intervals(
    dataset: xr.Dataset,
    *,
    workload: str | None = None,
    methods: Sequence[str] = (CLASSIFICATION, REQUESTED),
) -> style.Drawing:
    """Which intervals of run time are predicted for jobs of each actual interval, one panel a method.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of `gridsched.prediction.evaluate` or `gridsched.prediction.stack_workloads`.
    workload : str, optional
        One of the dataset's; if not given, the one with the most jobs that all of the methods predict.
    methods : sequence of str
        Methods of the dataset.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns predictor, actual_interval, predicted_interval, lower, upper (s, of the actual interval),
        jobs, share (of the jobs of the actual interval).

    Raises
    ------
    ConfigurationError
        If the dataset has no such workload or method, or no method is named.
    """
    if not methods:
        raise ConfigurationError("prediction_intervals: no methods; name at least one")
    stacked = (
        dataset if "workload" in dataset.dims else dataset.expand_dims(workload=[dataset.attrs["workload"]])
    )
    names = [_known(stacked, "predictor", name) for name in methods]
    # Requested times are not known everywhere
    jobs = stacked["confusion"].sel(predictor=names).sum(["actual_interval", "predicted_interval"])
    largest = str(jobs.min("predictor").idxmax("workload").item())
    chosen = stacked.sel(workload=_known(stacked, "workload", workload or largest))
    numbers = _shares(chosen, names)
    figure = style.new_figure(1.1 + 6.0 / max(len(names), 2))
    figure.suptitle(style.plain(str(chosen["workload"].item())), x=0.01, ha="left", fontsize=8.5)
    for place, name in enumerate(names, start=1):
        axes = figure.add_subplot(1, max(len(names), 2), place)
        axes.set(title=style.plain(name), ylabel="actual run time")
        _confusion_panel(axes, numbers[numbers["predictor"] == name])
        axes.label_outer()
    figure.colorbar(
        ScalarMappable(Normalize(0, 1), _COLORS),
        ax=figure.axes,
        location="bottom",
        aspect=50,
        shrink=0.6,
        label="share of the jobs of the actual interval",
        format=PercentFormatter(1.0, decimals=0, symbol=" %"),
    )
    return figure, numbers


def _known(stacked: xr.Dataset, dim: str, label: str) -> str:
    """A label that the dataset has."""
    known = [str(each) for each in stacked[dim].values]
    if label not in known:
        raise ConfigurationError(f"{dim}: found {label!r}; known are {', '.join(known)}")
    return label


def _shares(chosen: xr.Dataset, methods: Sequence[str]) -> pd.DataFrame:
    """One row a method and pair of intervals, of the actual intervals that have jobs."""
    jobs = chosen["confusion"].sel(predictor=list(methods))
    total = jobs.sum("predicted_interval")
    table = xr.Dataset(
        {
            "lower": chosen["interval_lower"],
            "upper": chosen["interval_upper"],
            "jobs": jobs,
            "share": jobs / total.where(total > 0),
        }
    )
    keys = ["predictor", "actual_interval", "predicted_interval"]
    rows = table.to_dataframe(dim_order=keys).dropna(subset=["share"]).reset_index()
    return rows[[*keys, "lower", "upper", "jobs", "share"]]


def _confusion_panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Shares as colours, short run times at the lower left; the diagonal is right predictions."""
    if rows.empty:
        style.no_data(axes, "no data")
        return
    intervals = int(rows["actual_interval"].max()) + 1
    table = rows.pivot(index="actual_interval", columns="predicted_interval", values="share").reindex(
        index=range(intervals), columns=range(intervals)
    )
    axes.grid(visible=False)
    axes.pcolormesh(table.to_numpy(), cmap=_COLORS, vmin=0, vmax=1, rasterized=True)
    axes.plot([0, intervals], [0, intervals], color=style.FAINT, lw=0.6, ls=(0, (2, 3)))
    axes.set(aspect="equal", facecolor=style.PALE, xlabel="predicted run time")
    step = -(-intervals // _EDGE_LABELS)
    labelled = rows[rows["actual_interval"] % step == step - 1].drop_duplicates("actual_interval")
    texts = labelled["upper"].map(style.duration)
    axes.set_xticks(labelled["actual_interval"] + 1, texts, rotation=45, ha="right")
    axes.set_yticks(labelled["actual_interval"] + 1, texts)


def interval_finding(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """Share of the jobs whose interval each method predicts, and of those that it overestimates."""
    lines = []
    for method, rows in numbers[numbers["jobs"] > 0].groupby("predictor", sort=False):
        further = rows["predicted_interval"] - rows["actual_interval"]
        right, long = (np.average(own, weights=rows["jobs"]) for own in (further == 0, further > 0))
        lines.append(f"{method}: right interval for {right:.0%} of the jobs, too long for {long:.0%}.")
    return [line[:1].upper() + line[1:] for line in lines] or ["No job has an interval."]

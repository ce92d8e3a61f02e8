"""Load of the cluster over time under the schemes of a study."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from gridsched.errors import ConfigurationError
from gridsched.figures import panels, style
from gridsched.metrics.jobs import RECORDED

_MUCH_LONGER = 10.0
"""Queues that differ by more are shown on a logarithmic axis."""

_DAY = 86400

_MAX_BINS = 100
"""Steps that can be told apart; of more, neighbours are shown together."""


@style.styled
def load_series(
    study: xr.Dataset,
    *,
    workload: str | None = None,
    estimate: str | None = None,
    schemes: list[str] | None = None,
) -> style.Drawing:
    """Utilisation and queue length over time, one row a scheme, the reference scheme as a thin line in each.

    Parameters
    ----------
    study : xarray.Dataset
        A study dataset; its attribute `reference` names the scheme to compare with.
    workload, estimate : str, optional
        Workload and kind of estimates; the first of the study if not given.
    schemes : list of str, optional
        Schemes to show; all that have a series if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns workload, scheme, estimate, bin_time (left edge, s), utilisation, queue_length.
    """
    name = panels.choose(study, "workload", workload)
    kind = panels.choose(study, "estimate", estimate)
    numbers = _series(study, name, kind)
    wanted = panels.schemes_in(study, numbers)
    if schemes is not None:
        wanted = [panels.choose(study, "scheme", scheme) for scheme in schemes]
    if not wanted or numbers.empty:
        raise ConfigurationError(
            f"no scheme of this study has a time series for {name} with {kind} estimates"
        )
    figure = style.new_figure(0.75 + 0.56 * len(wanted), dense=True)
    grid = figure.subplots(len(wanted), 2, sharex=True, sharey="col", squeeze=False)
    figure.suptitle(style.plain(name), x=0.01, ha="left", fontsize=8.5, fontweight="bold")
    reference = numbers[numbers["scheme"] == str(study.attrs.get("reference", ""))]
    styles = style.scheme_styles(panels.labels(study, "scheme"))
    for row, scheme in zip(grid, wanted, strict=True):
        own = numbers[numbers["scheme"] == scheme]
        other = reference[reference["scheme"] != scheme]
        _series_panel(row[0], own, other, "utilisation", styles[scheme])
        _series_panel(row[1], own, other, "queue_length", styles[scheme])
        row[0].set_title(style.plain(scheme), fontweight="normal", fontsize=7.5, pad=2)
    _label(grid, numbers[numbers["scheme"].isin(wanted)])
    if len(reference) and wanted != [str(reference["scheme"].iloc[0])]:
        line = Line2D([], [], color=style.INK, linewidth=0.7)
        text = f"{style.plain(reference['scheme'].iloc[0])}, the reference"
        figure.legend([line], [text], loc="outside upper right")
    return figure, numbers[numbers["scheme"].isin(wanted)]


def _series(study: xr.Dataset, workload: str, estimate: str) -> pd.DataFrame:
    """Rows of the time series of one workload; schemes without one are left out."""
    chosen = study[["bin_time", "utilisation_series", "queue_length_series"]].sel(workload=workload)
    frame = chosen.reset_coords(drop=True).to_dataframe().reset_index()
    frame = frame.rename(
        columns={"utilisation_series": "utilisation", "queue_length_series": "queue_length"}
    ).dropna(subset=["bin_time", "queue_length"])
    frame = frame.sort_values("bin", kind="stable")
    is_recorded = frame["scheme"] == RECORDED
    known = frame[is_recorded].drop_duplicates("bin").assign(estimate="")
    rows = pd.concat([frame[(frame["estimate"] == estimate) & ~is_recorded], known]).assign(workload=workload)
    together = -(-frame["bin"].nunique() // _MAX_BINS)
    means = rows.groupby(["workload", "scheme", "estimate", rows["bin"] // together], sort=False)
    return means.agg(
        bin_time=("bin_time", "first"),
        utilisation=("utilisation", lambda part: part.mean(skipna=False)),
        queue_length=("queue_length", "mean"),
    ).reset_index()[["workload", "scheme", "estimate", "bin_time", "utilisation", "queue_length"]]


def _series_panel(
    axes: Axes, own: pd.DataFrame, reference: pd.DataFrame, column: str, look: style.SchemeStyle
) -> None:
    if not own[column].notna().any():
        axes.text(
            0.5, 0.5, "not known", transform=axes.transAxes, ha="center", va="center", color=style.FAINT
        )
        return
    # The reference stands behind the area: where this hides it, both are the same
    if len(reference):
        axes.stairs(*_steps(reference, column), color=style.INK, linewidth=0.6, baseline=None)
    axes.stairs(*_steps(own, column), fill=True, color=look.color, alpha=0.65, linewidth=0)


def _steps(rows: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and edges [d] of the bins of a scheme."""
    times, values = rows["bin_time"].to_numpy() / _DAY, rows[column].to_numpy()
    width = times[1] - times[0] if len(times) > 1 else 1.0
    return values, np.append(times, times[-1] + width)


def _label(grid: np.ndarray, numbers: pd.DataFrame) -> None:
    """Labels and limits that all rows share."""
    start = numbers["bin_time"].min() / _DAY
    for axes in grid[:, 0]:
        axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        axes.set_ylim(0, max(1.0, numbers["utilisation"].max()) * 1.04)
    longest = numbers.groupby("scheme")["queue_length"].max()
    for axes in grid[:, 1]:
        _label_queue(axes, max(1.0, longest.max()), max(1.0, longest.min()))
    for axes, text in zip(grid[0], ("utilisation", "waiting jobs"), strict=True):
        axes.set_title(text, loc="right", fontweight="normal", fontsize=8, pad=2)
    for axes in grid[-1]:
        axes.set_xlim(left=start)
        axes.set_xlabel("time [d]")


def _label_queue(axes: Axes, longest: float, shortest: float) -> None:
    """Limits and ticks for the longest queues of schemes: logarithmic if the others would not be seen."""
    if longest < _MUCH_LONGER * shortest:
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.set_ylim(0, longest * 1.04)
        return
    axes.set_yscale("symlog", linthresh=1, linscale=0.4)
    decades = np.arange(1, np.log10(longest) + 1e-9, 2 if longest >= 1000 else 1)
    axes.yaxis.set_major_locator(FixedLocator([0, *10.0**decades]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    axes.set_ylim(0, longest * 1.6)

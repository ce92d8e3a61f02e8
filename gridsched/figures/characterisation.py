"""What a workload looks like, on one page."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, PercentFormatter

from gridsched.figures import style

_JOBS, _WORK, _OTHER = (str(color) for color in sns.color_palette("colorblind").as_hex()[0:3])
_SHOWN = (
    "arrivals_hour",
    "arrivals_weekday",
    "size_share",
    "work_share",
    "run_time_quantile",
    "requested_time_quantile",
    "interarrival_quantile",
    "estimate_accuracy_share",
    "jobs_per_week",
)


@style.styled
def workload_characterisation(characterisation: xr.Dataset) -> style.Drawing:
    """Arrivals by hour, weekday and week, sizes, times and accuracy of the estimates of one workload.

    Panels say so where the log has no time zone or no requested times.

    Parameters
    ----------
    characterisation : xarray.Dataset
        As `gridsched.workloads.characterisation.characterise` gives it.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns variable, label (of its dimension), value.
    """
    figure = style.new_figure(6.9)
    grid = figure.subplots(3, 2)
    figure.suptitle(_title(characterisation), x=0.01, ha="left", fontsize=8.5, fontweight="bold")
    _arrivals_hour(grid[0, 0], characterisation)
    _arrivals_weekday(grid[0, 1], characterisation)
    _sizes(grid[1, 0], characterisation)
    _times(grid[1, 1], characterisation)
    _accuracy(grid[2, 0], characterisation)
    _weeks(grid[2, 1], characterisation)
    return figure, _numbers(characterisation)


def _numbers(dataset: xr.Dataset) -> pd.DataFrame:
    parts = []
    for name in _SHOWN:
        values = dataset[name]
        labels = values[values.dims[0]].to_numpy().astype(str)
        parts.append(pd.DataFrame({"variable": name, "label": labels, "value": values.to_numpy()}))
    return pd.concat(parts, ignore_index=True)


def _title(dataset: xr.Dataset) -> str:
    parts = [style.plain(dataset.attrs.get("workload", ""))]
    if "jobs" in dataset.attrs:
        parts.append(f"{dataset.attrs['jobs']:,} jobs".replace(",", "\N{THIN SPACE}"))
    load = float(dataset["offered_load"])
    parts.append(f"offered load {load:.2f}" if np.isfinite(load) else "offered load unknown")
    return " \N{MIDDLE DOT} ".join(parts)


def _clock(dataset: xr.Dataset) -> str:
    """Second line of the label of a time axis: by which clock."""
    clock = style.plain(dataset.attrs.get("clock", "time zone not known"), 90)
    return "\n".join(textwrap.wrap(f"({clock})", 46))


def _bars(axes: Axes, values: xr.DataArray, color: str, width: float = 0.8) -> bool:
    """Bars at 0, 1, 2 ...; False if there is nothing to draw."""
    heights = values.to_numpy()
    if not np.isfinite(heights).any():
        style.no_data(axes, "not known for this log")
        return False
    axes.bar(np.arange(len(heights)), np.nan_to_num(heights), width, color=color)
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    return True


def _arrivals_hour(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Arrivals by hour")
    if _bars(axes, dataset["arrivals_hour"], _JOBS):
        axes.xaxis.set_major_locator(FixedLocator([0, 6, 12, 18, 23]))
        axes.set(xlabel=f"hour of the day\n{_clock(dataset)}", ylabel="jobs an hour")


def _arrivals_weekday(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Arrivals by weekday")
    if _bars(axes, dataset["arrivals_weekday"], _JOBS):
        axes.set_xticks(range(7), [str(day)[:3] for day in dataset["weekday"].to_numpy()])
        axes.set(xlabel=f"day of the week\n{_clock(dataset)}", ylabel="jobs a day")


def _sizes(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Sizes")
    labels = [str(label).replace("-", "\N{EN DASH}") for label in dataset["size_class"].to_numpy()]
    places = np.arange(len(labels))
    shares = (("jobs", "size_share", _JOBS, -0.2, ""), ("work", "work_share", _WORK, 0.2, "////"))
    for label, name, color, shift, hatch in shares:
        heights = np.nan_to_num(dataset[name].to_numpy())
        axes.bar(
            places + shift,
            heights,
            0.4,
            color=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=label,
        )
    crowded = len(labels) > 5
    axes.set_xticks(
        places,
        labels,
        rotation=45 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    axes.tick_params(axis="x", pad=2)
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set(xlabel="processors", ylabel="share")
    axes.legend()
    _note_unknown(axes, dataset, "unknown_size", "size")


def _times(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Times")
    curves = (
        ("run time", "run_time_quantile", _JOBS, "-"),
        ("requested time", "requested_time_quantile", _WORK, (0, (5, 1.5))),
        ("interarrival time", "interarrival_quantile", _OTHER, (0, (1.5, 1.5))),
    )
    known = [curve for curve in curves if np.isfinite(dataset[curve[1]].to_numpy()).any()]
    if not known:
        style.no_data(axes, "not known for this log")
        return
    for label, name, color, dashes in known:
        axes.plot(dataset[name], dataset["quantile"], color=color, linestyle=dashes, label=label)
    everything = np.concatenate([dataset[name].to_numpy() for _, name, _, _ in known])
    style.set_axis(axes.xaxis, everything, "s", log=True, ticks=6)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set(xlabel="time", ylabel="share at or below", ylim=(0, 1.02))
    missing = "requested time" not in [label for label, *_ in known]
    title = "no requested times in this log" if missing else None
    axes.legend(title=title, title_fontsize=7, alignment="left", handlelength=1.8, fontsize=7)


def _accuracy(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Accuracy of the requested times")
    shares = dataset["estimate_accuracy_share"].to_numpy()
    if not np.isfinite(shares).any():
        style.no_data(axes, "no requested times in this log")
        return
    edges = dataset["accuracy_bin"].to_numpy()
    width = edges[1] - edges[0]
    axes.bar(edges[:-1], shares[:-1], 0.9 * width, align="edge", color=_JOBS)
    axes.bar(
        [1 + 2 * width], shares[-1:], 0.9 * width, align="edge", color=_WORK, hatch="////", edgecolor="white"
    )
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1, 1 + 2.45 * width], ["0", "0.25", "0.5", "0.75", "1", ">1"])
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set(xlabel="run time / requested time", ylabel="share of jobs")
    _note_unknown(axes, dataset, "unknown_accuracy", "accuracy")


def _weeks(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Jobs a week")
    if _bars(axes, dataset["jobs_per_week"], _JOBS, 1.0):
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set(xlabel="weeks since the first submission", ylabel="jobs")


def _note_unknown(axes: Axes, dataset: xr.Dataset, name: str, what: str) -> None:
    """Number of the jobs that a panel leaves out."""
    count = int(dataset[name]) if name in dataset else 0
    if count:
        axes.set_xlabel(f"{axes.get_xlabel()}\n(jobs of unknown {what} left out: {count})")

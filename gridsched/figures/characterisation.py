"""What a workload looks like, on one page."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator

from gridsched.figures import style

_JOBS, _WORK, _OTHER = style.COLORS[:3]
_UNKNOWN = "not known for this log"
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
    (hours, weekdays), (sizes, times), (accuracy, weeks) = figure.subplots(3, 2)
    style.headline(figure, _title(characterisation))
    clock = style.plain(characterisation.attrs.get("clock", "time zone not known"), 90)
    by_clock = "\n".join(textwrap.wrap(f"({clock})", 46))
    _bars(hours, characterisation["arrivals_hour"])
    hours.set(title="Arrivals by hour", xlabel=f"hour of the day\n{by_clock}", ylabel="jobs an hour")
    hours.xaxis.set_major_locator(FixedLocator([0, 6, 12, 18, 23]))
    _bars(weekdays, characterisation["arrivals_weekday"])
    weekdays.set(title="Arrivals by weekday", xlabel=f"day of the week\n{by_clock}", ylabel="jobs a day")
    weekdays.set_xticks(range(7), [str(day)[:3] for day in characterisation["weekday"].to_numpy()])
    _sizes(sizes, characterisation)
    _times(times, characterisation)
    _accuracy(accuracy, characterisation)
    _bars(weeks, characterisation["jobs_per_week"], 1.0)
    weeks.set(title="Jobs a week", xlabel="weeks since the first submission", ylabel="jobs")
    weeks.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    shown = {name: characterisation[name] for name in _SHOWN}
    labels = {name: characterisation[values.dims[0]].to_numpy() for name, values in shown.items()}
    tables = [
        pd.DataFrame({"variable": name, "label": labels[name].astype(str), "value": values.to_numpy()})
        for name, values in shown.items()
    ]
    return figure, pd.concat(tables, ignore_index=True)


def _title(dataset: xr.Dataset) -> str:
    jobs, load = dataset.attrs.get("jobs"), float(dataset["offered_load"])
    parts = [
        style.plain(dataset.attrs.get("workload", "")),
        "" if jobs is None else f"{jobs:,} jobs".replace(",", "\N{THIN SPACE}"),
        f"offered load {load:.2f}" if np.isfinite(load) else "offered load unknown",
    ]
    return " \N{MIDDLE DOT} ".join(filter(None, parts))


def _bars(axes: Axes, values: xr.DataArray, width: float = 0.8) -> None:
    """Bars at 0, 1, 2 ..., if anything is known."""
    heights = values.to_numpy()
    if np.isfinite(heights).any():
        axes.bar(np.arange(len(heights)), np.nan_to_num(heights), width, color=_JOBS)
        axes.grid(visible=False, axis="x")
        axes.yaxis.set_major_locator(MaxNLocator(5))
    else:
        style.no_data(axes, _UNKNOWN)


def _sizes(axes: Axes, dataset: xr.Dataset) -> None:
    labels = [str(label).replace("-", "\N{EN DASH}") for label in dataset["size_class"].to_numpy()]
    places = np.arange(len(labels))
    for label, color, shift, hatch in (("jobs", _JOBS, -0.2, ""), ("work", _WORK, 0.2, "////")):
        heights = np.nan_to_num(dataset["size_share" if label == "jobs" else "work_share"].to_numpy())
        looks: dict[str, Any] = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        axes.bar(places + shift, heights, 0.4, label=label, **looks)
    crowded = len(labels) > 5
    turn, side = (45, "right") if crowded else (0, "center")
    axes.set_xticks(places, labels, rotation=turn, ha=side, rotation_mode="anchor")
    axes.tick_params(axis="x", pad=2)
    axes.grid(visible=False, axis="x")
    style.set_percent(axes.yaxis)
    axes.set(title="Sizes", xlabel=f"processors{_left_out(dataset, 'size')}", ylabel="share")
    axes.legend()


def _times(axes: Axes, dataset: xr.Dataset) -> None:
    axes.set_title("Times")
    curves = (
        ("run time", "run_time_quantile", _JOBS, "-"),
        ("requested time", "requested_time_quantile", _WORK, (0, (5, 1.5))),
        ("interarrival time", "interarrival_quantile", _OTHER, (0, (1.5, 1.5))),
    )
    values = {label: dataset[name] for label, name, _, _ in curves}
    known = [curve for curve in curves if values[curve[0]].notnull().any()]
    if not known:
        style.no_data(axes, _UNKNOWN)
        return
    for label, _, color, dashes in known:
        axes.plot(values[label], dataset["quantile"], color=color, linestyle=dashes, label=label)
    style.set_axis(axes.xaxis, np.concatenate([*values.values()]), "s", log=True, ticks=6)
    style.set_percent(axes.yaxis)
    axes.set(xlabel="time", ylabel="share at or below", ylim=(0, 1.02))
    asked = values["requested time"].notnull().any()
    title = None if asked else "no requested times in this log"
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
    above: dict[str, Any] = {"color": _WORK, "hatch": "////", "edgecolor": "white"}
    axes.bar([1 + 2 * width], shares[-1:], 0.9 * width, align="edge", **above)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1, 1 + 2.45 * width], ["0", "0.25", "0.5", "0.75", "1", ">1"])
    axes.grid(visible=False, axis="x")
    style.set_percent(axes.yaxis)
    axes.set(xlabel=f"run time / requested time{_left_out(dataset, 'accuracy')}", ylabel="share of jobs")


def _left_out(dataset: xr.Dataset, what: str) -> str:
    """Line of a label: the number of the jobs that a panel leaves out."""
    count = int(dataset.get(f"unknown_{what}", 0))
    return f"\n(jobs of unknown {what} left out: {count})" if count else ""

"""Figures of a study of workload models: a log beside a published model, and spreads of sizes in classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, PercentFormatter

from gridsched.experiments.models.findings import FINDINGS as FINDINGS
from gridsched.figures import panels, style
from gridsched.workloads.model_comparison import DISTRIBUTIONS, LOG, OBSERVED, PAPER, SOURCES, SPREADS

_KINDS = {"interarrival": "Time between arrivals of the class", "service": "Run time"}
_COLUMNS = 4
_STYLES = {**style.scheme_styles(SOURCES), OBSERVED: style.SchemeStyle(style.INK, "*", ())}
_SPREAD_STYLES = {**style.scheme_styles(SPREADS), OBSERVED: _STYLES[OBSERVED]}
_TARGET_OPTIONS: dict[str, Any] = {
    "color": style.INK,
    "linestyle": "",
    "marker": "|",
    "markeredgewidth": 1.8,
    "markersize": 19,
    "zorder": 1.5,
}
_NAMES = {OBSERVED: "times of the log", LOG: "model fitted to the log", PAPER: "published model"}


@style.styled
def model_quantiles(dataset: xr.Dataset) -> style.Drawing:
    """Distributions of the times in a log beside the model fitted to it and the published one.

    One panel a size class, for times between arrivals and for run times; the Kolmogorov-Smirnov distances of
    the two models from the log stand in each.

    Parameters
    ----------
    dataset : xarray.Dataset
        As `gridsched.workloads.model_comparison.models_dataset` gives it.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns kind, size_class, source ("observed", "log", "paper"), quantile, value (s), ks.
    """
    numbers = pd.concat([_quantiles(dataset, kind) for kind in _KINDS], ignore_index=True)
    labels = panels.labels(dataset, "size_class")
    rows = -(-len(labels) // _COLUMNS)
    figure = style.new_figure(2 * (1.25 * rows + 0.45) + 0.4)
    blocks = figure.subfigures(len(_KINDS), 1, squeeze=False)[:, 0]
    for block, (kind, title) in zip(blocks, _KINDS.items(), strict=True):
        block.suptitle(title, x=0.01, ha="left", fontsize=8.5, fontweight="bold")
        _quantile_block(block, numbers[numbers["kind"] == kind], labels)
    handles = [Line2D([], [], **_curve_options(_STYLES[source])) for source in DISTRIBUTIONS]
    style.legend_below(figure, handles, [_NAMES[source] for source in DISTRIBUTIONS])
    return figure, numbers


def _quantiles(dataset: xr.Dataset, kind: str) -> pd.DataFrame:
    """One row a quantile of one kind of times."""
    values = dataset[f"{kind}_quantile"].rename("value").to_dataframe().reset_index()
    distances = dataset[f"{kind}_ks"].rename("ks").to_dataframe().reset_index()
    values = values.rename(columns={"source2": "source"}).merge(
        distances, how="left", on=["source", "size_class"]
    )
    values.insert(0, "kind", kind)
    columns = ["kind", "size_class", "source", "quantile", "value", "ks"]
    return values[columns].dropna(subset=["value"])


def _quantile_block(block: SubFigure, numbers: pd.DataFrame, labels: Sequence[str]) -> None:
    """Panels of one kind of times, with the same time axis."""
    rows = -(-len(labels) // _COLUMNS)
    grid = block.subplots(rows, _COLUMNS, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(labels):
            axes.set_visible(False)
            continue
        axes.set_title(f"{_range(labels[place])} processors", fontsize=7.5, fontweight="normal")
        _quantile_panel(axes, numbers[numbers["size_class"] == labels[place]], numbers["value"])
        axes.tick_params(labelleft=place % _COLUMNS == 0, labelbottom=place + _COLUMNS >= len(labels))
    block.supylabel("share at or below", fontsize=8)


def _quantile_panel(axes: Axes, numbers: pd.DataFrame, seen: pd.Series[float]) -> None:
    if numbers.empty:
        style.no_data(axes, "no data")
        return
    for source in DISTRIBUTIONS:
        curve = numbers[numbers["source"] == source]
        if len(curve):
            axes.plot(curve["value"], curve["quantile"], **_curve_options(_STYLES[source]))
    style.set_axis(axes.xaxis, seen.clip(lower=1.0), "s", log=True, ticks=5)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    _write_distances(axes, numbers)


def _write_distances(axes: Axes, numbers: pd.DataFrame) -> None:
    """Distances of the models in the corner below the curves, in their colours."""
    known = numbers.dropna(subset=["ks"]).drop_duplicates("source")
    for row, entry in enumerate(panels.each_row(known)):
        axes.text(
            0.97,
            0.19 - 0.15 * row,
            f"KS {entry.ks:.2f}",
            color=_STYLES[entry.source].color,
            fontsize=6.5,
            ha="right",
            transform=axes.transAxes,
        )


@style.styled
def model_shares(dataset: xr.Dataset) -> style.Drawing:
    """Share of the jobs and mean times of each size class, in a log and as published.

    Parameters
    ----------
    dataset : xarray.Dataset
        As `gridsched.workloads.model_comparison.models_dataset` gives it.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns quantity, size_class ("all" for the jobs of all classes), source, value.
    """
    numbers = pd.concat([_by_class(dataset, quantity) for quantity in _QUANTITIES], ignore_index=True)
    labels = [*panels.labels(dataset, "size_class"), _ALL]
    figure = style.new_figure(0.24 * len(labels) + 1.2)
    grid = figure.subplots(1, len(_QUANTITIES), squeeze=False)[0]
    for axes, (quantity, (title, unit)) in zip(grid, _QUANTITIES.items(), strict=True):
        axes.set_title(title)
        _class_panel(axes, numbers[numbers["quantity"] == quantity], labels, unit)
    grid[0].set_ylabel("processors")
    handles = [Line2D([], [], **_source_options(source)) for source in SOURCES]
    style.legend_below(figure, handles, ["log", "published model"])
    return figure, numbers


_ALL = "all"
_QUANTITIES: dict[str, tuple[str, style.Unit]] = {
    "share": ("Share of the jobs", "1"),
    "interarrival_mean": ("Mean time between arrivals", "s"),
    "service_mean": ("Mean run time", "s"),
}


def _by_class(dataset: xr.Dataset, quantity: str) -> pd.DataFrame:
    """One row a class and source, and the jobs of all classes where they have a mean."""
    values = dataset[quantity].rename("value").to_dataframe().reset_index()
    if f"{quantity}_all" in dataset:
        together = dataset[f"{quantity}_all"].rename("value").to_dataframe().reset_index()
        values = pd.concat([values, together.assign(size_class=_ALL)], ignore_index=True)
    values.insert(0, "quantity", quantity)
    return values[["quantity", "size_class", "source", "value"]].dropna(subset=["value"])


def _class_panel(axes: Axes, numbers: pd.DataFrame, labels: list[str], unit: style.Unit) -> None:
    """A row for each class with a marker for each source, joined by a line."""
    places = panels.scheme_rows(axes, labels)
    axes.set_yticks(range(len(labels)), [_range(label) for label in labels])
    axes.tick_params(axis="y", labelleft=panels.is_left(axes))
    if numbers.empty:
        style.no_data(axes, "no data")
        return
    for label, pair in numbers.groupby("size_class"):
        axes.hlines(places[str(label)], pair["value"].min(), pair["value"].max(), color=style.FAINT, lw=1)
    for row in panels.each_row(numbers):
        axes.plot([row.value], [places[row.size_class]], **_source_options(row.source))
    style.set_axis(axes.xaxis, numbers["value"], unit, log=unit == "s", ticks=4, floor=0.0)
    if unit == "1":
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


@style.styled
def size_spread(dataset: xr.Dataset) -> style.Drawing:
    """What the spread of sizes inside the classes does: load of each machine, and sizes of the jobs of one.

    Parameters
    ----------
    dataset : xarray.Dataset
        As `gridsched.workloads.model_comparison.models_dataset` gives it.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns quantity ("offered_load", "target_utilisation", "size_cdf"), machine, spread, nodes (-1 for
        loads), value.
    """
    loads, curves = _loads(dataset), _sizes(dataset)
    machines = panels.labels(dataset, "machine")
    figure = style.new_figure(max(2.9, 0.32 * len(machines) + 1.1))
    left, right = figure.subplots(1, 2)
    _load_panel(left, loads, machines)
    _size_panel(right, curves, style.plain(dataset.attrs["published"]))
    handles = [style.scheme_handle(_SPREAD_STYLES[name]) for name in (*SPREADS, OBSERVED)]
    target = Line2D([], [], **_TARGET_OPTIONS | {"markersize": 11})
    style.legend_below(figure, [*handles, target], [*SPREADS, "sizes of the log", "real utilisation"])
    return figure, pd.concat([loads, curves], ignore_index=True)


def _loads(dataset: xr.Dataset) -> pd.DataFrame:
    """Offered loads by machine and spread, and the published utilisations."""
    parts = [
        dataset["offered_load"].rename("value").to_dataframe().reset_index(),
        _of_machines(dataset, "offered_load_observed").assign(spread=OBSERVED),
    ]
    loads = pd.concat(parts, ignore_index=True).assign(quantity="offered_load")
    targets = _of_machines(dataset, "target_utilisation").assign(quantity="target_utilisation", spread="")
    both = pd.concat([loads, targets], ignore_index=True).assign(nodes=-1)
    return both[["quantity", "machine", "spread", "nodes", "value"]].dropna(subset=["value"])


def _of_machines(dataset: xr.Dataset, name: str) -> pd.DataFrame:
    return dataset[name].rename("value").to_dataframe().reset_index()


def _sizes(dataset: xr.Dataset) -> pd.DataFrame:
    """Cumulative shares of the jobs by nodes."""
    curves = dataset["size_cdf"].rename("value").to_dataframe().reset_index()
    curves = curves.rename(columns={"spread2": "spread"})
    curves = curves.assign(quantity="size_cdf", machine=dataset.attrs["published"])
    return curves[["quantity", "machine", "spread", "nodes", "value"]].dropna(subset=["value"])


def _load_panel(axes: Axes, numbers: pd.DataFrame, machines: list[str]) -> None:
    axes.set_title("Offered load")
    places = panels.scheme_rows(axes, machines)
    shift = dict(zip(_SPREAD_STYLES, panels.offsets(len(_SPREAD_STYLES), 0.45), strict=True))
    for row in panels.each_row(numbers[numbers["quantity"] == "target_utilisation"]):
        axes.plot([row.value], [places[row.machine]], **_TARGET_OPTIONS)
    for row in panels.each_row(numbers[numbers["quantity"] == "offered_load"]):
        y = places[row.machine] + shift[row.spread]
        axes.plot([row.value], [y], **_marker_options(_SPREAD_STYLES[row.spread]))
    style.set_axis(axes.xaxis, numbers["value"], "1", ticks=6, floor=0.0)
    axes.set_xlabel("expected work / capacity")


def _size_panel(axes: Axes, curves: pd.DataFrame, machine: str) -> None:
    axes.set_title(f"Jobs of {machine} by nodes")
    if curves.empty:
        style.no_data(axes, "no data")
        return
    for name, look in _SPREAD_STYLES.items():
        curve = curves[curves["spread"] == name]
        if len(curve):
            axes.step(curve["nodes"], curve["value"], where="post", **_curve_options(look))
    style.set_axis(axes.xaxis, curves["nodes"], "1", log=True, ticks=6)
    low = float(curves["value"].min())
    axes.set_ylim(max(0.0, low - 0.08), 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set(xlabel="nodes", ylabel="share of the jobs at or below")


def _curve_options(look: style.SchemeStyle) -> dict[str, Any]:
    """Keyword arguments of a line without markers."""
    return {**style.line_options(look), "marker": ""}


def _marker_options(look: style.SchemeStyle) -> dict[str, Any]:
    """Keyword arguments of a marker without a line."""
    return {**style.line_options(look), "linestyle": "", "markersize": 5}


def _source_options(source: str) -> dict[str, Any]:
    """Marker of a source; that of the paper is hollow, so that one below it can be seen."""
    options = _marker_options(_STYLES[source])
    return options | {"markerfacecolor": "none", "markersize": 7} if source == PAPER else options


def _range(label: str) -> str:
    return label.replace("-", "\N{EN DASH}")


MODEL_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "model_shares": model_shares,
    "model_quantiles": model_quantiles,
    "size_spread": size_spread,
}
"""Figures of a study of workload models by name."""

"""What the parameters of a grid scheme change: variants of schemes beside their base schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridsched.errors import ConfigurationError
from gridsched.figures import grid_panels, panels, style

_DIMENSIONS = {"scenario", "policy", "scheme", "replicate"}
_KEYS = ["scenario", "policy", "scheme"]
_DIFFERENCE = ["difference", "difference_low", "difference_high"]
_TEXTS = {"wait_time_mean": "mean wait", "response_time_mean": "mean response"}
_BASE_MARKER, _VARIANT_MARKER = "D", "o"

Blocks = dict[str, list[str]]


@style.styled
def grid_sensitivity(
    study: xr.Dataset, *, metric: str = "wait_time_mean", policy: str | None = None
) -> style.Drawing:
    """Variants of schemes beside their base scheme: what a parameter is worth.

    What precedes the first comma of a label names the base scheme: "s-i, epsilon 60 s" is a variant of s-i.
    Each base scheme heads a block of rows, and a line goes down the block at its value. A scenario has two
    panels: the metric as a ratio to the reference scheme, and the fraction of jobs transferred. A marker is
    filled where the paired difference from the base scheme has an interval that excludes zero.

    Parameters
    ----------
    study : xarray.Dataset
        A grid study; its attribute `reference` names the scheme to compare with.
    metric : str
        Variable of the study by scenario, policy, scheme and replicate.
    policy : str, optional
        Local policy; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, policy, scheme, base, metric, relative_to (the reference scheme, or empty), mean,
        low, high, replicates; difference, difference_low, difference_high (from the base scheme, in units
        of the metric; NaN for a base scheme) and clear (whether that interval excludes zero).

    Raises
    ------
    ConfigurationError
        If the study has no such metric or policy, or not the reference scheme.
    """
    known = [str(name) for name in study.data_vars if set(study[name].dims) == _DIMENSIONS]
    if metric not in known:
        raise ConfigurationError(f"the study has no metric {metric!r} by scheme; it has {', '.join(known)}")
    chosen = study.sel(policy=[panels.choose(study, "policy", policy)])
    reference = grid_panels.reference_of(study)
    blocks = _blocks(panels.labels(study, "scheme"), reference)
    parts = [grid_panels.ratios(chosen, metric, reference), grid_panels.means(chosen, "transferred")]
    if not blocks:
        return grid_panels.nothing(f"no scheme besides {style.plain(reference)}"), pd.DataFrame()
    numbers = pd.concat([_compared(chosen, rows, blocks) for rows in parts], ignore_index=True)
    figure, grid = _scenario_pairs(panels.labels(study, "scenario"), sum(map(len, blocks.values())))
    looks = grid_panels.scheme_looks(study)
    for scenario, axes in grid.items():
        rows = numbers[numbers["scenario"] == scenario]
        for panel, relative_to in zip(axes, (reference, ""), strict=True):
            _panel(panel, rows[rows["relative_to"] == relative_to], blocks, looks)
    text = _TEXTS.get(metric, style.plain(study[metric].attrs.get("long_name", metric), 26))
    for left, right in list(grid.values())[-2:]:
        left.set_xlabel(f"{text}\nrelative to {grid_panels.fitting(reference, 0.7)}")
        right.set_xlabel("jobs transferred")
    _legend(figure, numbers)
    return figure, numbers


def _blocks(schemes: Sequence[str], reference: str) -> Blocks:
    """Schemes by base scheme, the base first; the reference stands here only if it has variants."""
    blocks: Blocks = {}
    for scheme in schemes:
        blocks.setdefault(grid_panels.base_of(scheme), []).append(scheme)
    ordered = {base: sorted(block, key=lambda scheme: scheme != base) for base, block in blocks.items()}
    return {base: block for base, block in ordered.items() if block != [reference]}


def _compared(study: xr.Dataset, rows: pd.DataFrame, blocks: Blocks) -> pd.DataFrame:
    """The rows of the blocks, with the paired difference of each variant from its base scheme."""
    base_of = {scheme: base for base, block in blocks.items() for scheme in block}
    rows = rows[rows["scheme"].isin(base_of)]
    rows.insert(len(_KEYS), "base", rows["scheme"].map(base_of))
    differences = [rows.loc[[], _KEYS].assign(**dict.fromkeys(_DIFFERENCE, np.nan))]
    differences += [
        _differences(study.sel(scheme=block), metric, base)
        for metric in rows["metric"].unique()
        for base, block in blocks.items()
        if base in block
    ]
    together = rows.merge(pd.concat(differences), how="left", on=_KEYS)
    clear = (together["difference_low"] > 0) | (together["difference_high"] < 0)
    return together.assign(clear=clear)


def _differences(study: xr.Dataset, metric: str, base: str) -> pd.DataFrame:
    rows = grid_panels.differences(study, metric, base)
    rows = rows.rename(columns=dict(zip(grid_panels.INTERVAL, _DIFFERENCE, strict=False)))
    return rows.loc[rows["scheme"] != base, [*_KEYS, *_DIFFERENCE]]


def _scenario_pairs(scenarios: Sequence[str], rows: int) -> tuple[Figure, dict[str, list[Axes]]]:
    """Two panels a scenario, two scenarios side by side."""
    across = min(len(scenarios), 2)
    down = -(-len(scenarios) // across)
    figure = style.new_figure(down * (0.55 + grid_panels.row_height(1) * max(rows, 2)) + 0.55)
    flat = figure.subplots(down, 2 * across, squeeze=False).reshape(down * across, 2)
    for unused in flat[len(scenarios) :].flat:
        unused.set_visible(False)
    grid = {scenario: list(pair) for scenario, pair in zip(scenarios, flat, strict=False)}
    for scenario, pair in grid.items():
        grid_panels.title_across(pair, scenario, 4.6 / across)
    return figure, grid


def _panel(axes: Axes, rows: pd.DataFrame, blocks: Blocks, looks: Mapping[str, style.SchemeStyle]) -> None:
    """One quantity of one scenario."""
    if rows.empty:
        style.no_data(axes, "no data")
        return
    order = [scheme for block in blocks.values() for scheme in block]
    grid_panels.label_rows(axes, [_text(scheme, blocks) for scheme in order], shaded=False)
    if (rows["relative_to"] == "").all():
        grid_panels.share_axis(axes, rows, 4)
    else:
        grid_panels.ratio_axis(axes, rows, 4)
    _mark_blocks(axes, rows, blocks, looks)
    markers = {
        scheme: replace(look, marker=_BASE_MARKER if scheme in blocks else _VARIANT_MARKER)
        for scheme, look in looks.items()
    }
    shown = rows.assign(clear=rows["clear"] | rows["scheme"].isin(blocks))
    grid_panels.dots(axes, shown, ("scheme", order), ("scheme", markers), one_lane=True)


def _mark_blocks(
    axes: Axes, rows: pd.DataFrame, blocks: Blocks, looks: Mapping[str, style.SchemeStyle]
) -> None:
    """Shade every other block, and lead the number of each base scheme down to its variants."""
    first = 0
    for number, (base, block) in enumerate(blocks.items()):
        end = first + len(block)
        if number % 2:
            grid_panels.shade(axes, first, end)
        for row in panels.each_row(rows[rows["scheme"] == base]) if len(block) > 1 else ():
            color = looks[base].color
            axes.vlines(row.mean, first, end - 0.6, color=color, linewidth=0.8, linestyle=(0, (3, 2)))
        if panels.is_left(axes) and base in block:
            axes.get_yticklabels()[first].set_fontweight("bold")
        first = end


def _text(scheme: str, blocks: Blocks) -> str:
    """Label of a row: of a variant, what follows the name of the base scheme in the row above."""
    base = grid_panels.base_of(scheme)
    variation = scheme.partition(",")[2].strip()
    return style.plain(variation if variation and base in blocks[base] else scheme, 22)


def _legend(figure: Figure, numbers: pd.DataFrame) -> None:
    faces = {
        "base scheme": (_BASE_MARKER, style.FAINT),
        "differs from its base": (_VARIANT_MARKER, style.FAINT),
        "not sure": (_VARIANT_MARKER, "white"),
    }
    entries = [(panels.dot(marker, face), text) for text, (marker, face) in faces.items()]
    entries += grid_panels.interval_entry(numbers)
    style.entries_below(figure, entries)

"""The forms of figures: each draws the numbers of a specification, whatever the study.

Figures are as wide as a page; their smallest text is 11 px where they are shown at full width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from gridsched.experiments.specification import Specification
from gridsched.figures import style
from gridsched.presentation.sentences import Attributes, known_measure

MOST_PANELS = 6
"""Panels of a figure; what they leave out is in its numbers, and a line says so."""

MOST_SMALL_PANELS = 8
"""Panels of distributions, which are read at a glance."""

MOST_MARKERS = 20
"""Points of a line that have a marker each."""

MOST_BANDS = 6
"""Lines of a response that have bands; the bands of more could not be told apart."""

_FEW_VALUES = 6
"""Values of a parameter that have a tick each."""

_DURATIONS = frozenset(
    (
        "delta_t",
        "lease",
        "mean_stay",
        "message_delay",
        "migration_delay",
        "period",
        "phi",
        "sigma",
        "status_period",
        "superstep",
    )
)
"""Parameters of schedulers and platforms that are seconds."""

_LETTER = 0.025
"""Share of the width of a panel that a letter of a label takes, and what is left free beside it."""

_COLUMNS = 2
_ROW = 0.23
"""Height of a row [in]."""

_REST = 0.75
"""Height of a panel beside its rows [in]."""

_FAR = 30.0
"""A ratio further from 1 than this factor stands at the edge, with its number."""


# --- what forms share -----------------------------------------------------------------------------


def _labels(numbers: pd.DataFrame, axis: str) -> list[Any]:
    return list(dict.fromkeys(numbers[axis])) if axis in numbers else [""]


def _panels(
    numbers: pd.DataFrame,
    specification: Specification,
    height: float,
    *,
    row: float = 0.0,
    most: int = MOST_PANELS,
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame, str, list[Any]]]]:
    """A panel for each label of the facets and each measure, with its numbers, its measure and its rows.

    Panels beside each other share the rows in which one of them has a value; `row` is the height of one,
    `height` that of the rest of a panel.
    """
    facets = _labels(numbers, specification.facets)
    places = list(product(facets, _labels(numbers, "measure")))
    shown = places[:most]
    columns = min(_COLUMNS, len(shown))
    parts = [_part(numbers, specification, *place) for place in shown]
    rows = [_rows(numbers, specification, parts[i : i + columns]) for i in range(0, len(parts), columns)]
    heights = [height + row * max(len(each), 3) for each in rows]
    figure = style.new_figure(sum(heights) + 0.5)
    grid = figure.subplots(
        len(rows), columns, squeeze=False, sharey="row" if row else False, height_ratios=heights
    )
    found = []
    for place, (axes, own, (facet, name)) in enumerate(zip(grid.flat, parts, shown, strict=False)):
        # what is measured stands at the axis
        title = style.plain(facet if len(facets) > 1 else known_measure(name).words, 40)
        axes.set_title(fill(title, 30))  # panels beside long names are narrow
        found.append((axes, own, name, rows[place // columns]))
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    left = len(places) - len(shown)
    if left:
        more = f"{left} more panel{'s are' if left > 1 else ' is'} in the numbers"
        figure.suptitle(more, x=0.99, ha="right", fontsize=8.5, color=style.FAINT)
    return figure, found


def _part(numbers: pd.DataFrame, specification: Specification, facet: Any, measure: str) -> pd.DataFrame:
    """The numbers of a panel."""
    own = numbers[numbers["measure"] == measure]
    return own[own[specification.facets] == facet] if specification.facets in own else own


def _rows(numbers: pd.DataFrame, specification: Specification, beside: Sequence[pd.DataFrame]) -> list[Any]:
    """Labels of the rows of panels beside each other."""
    known: set[Any] = set()
    for own in beside:
        if specification.hue in own:
            known.update(own[own[_columns_of(specification, own)[0]].notna()][specification.hue])
    return [label for label in _labels(numbers, specification.hue) if label in known]


def _line_panels(
    numbers: pd.DataFrame,
    specification: Specification,
    attributes: Attributes,
    height: float,
    *keys: str,
    most: int = MOST_PANELS,
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame, str]], dict[Any, dict[str, Any]]]:
    """Panels as `_panels` gives them, the look (by these keys) of the line of each label, and the legend."""
    figure, panels = _panels(numbers, specification, height, most=most)
    styles = looks(_labels(numbers, specification.hue), attributes)
    options = {label: style.line_options(look) for label, look in styles.items()}
    lines = {label: {key: own[key] for key in keys or own} for label, own in options.items()}
    style.entries_below(
        figure, [(Line2D([], [], **look), str(label)) for label, look in lines.items()], columns=4
    )
    return figure, [panel[:3] for panel in panels], lines


def _columns_of(specification: Specification, numbers: pd.DataFrame) -> tuple[str, str, str]:
    """Columns of the drawn value and its bounds: those of the comparison where there is one."""
    name = specification.relation
    if specification.reference and name in numbers and numbers[name].notna().any():
        return name, f"{name}_low", f"{name}_high"
    return "value", "low", "high"


def _axis_label(measure: str, column: str, specification: Specification, attributes: Attributes) -> str:
    known = known_measure(measure)
    if column == "value":
        return known.words if known.unit in ("1", "s") else f"{known.words} [{known.unit}]"
    to = {
        "scheduler": style.plain(attributes.get("reference", ""), 20),
        "estimates": style.plain(attributes.get("first_estimates", ""), 20),
    }.get(specification.reference, "the baseline")
    return f"{known.words},\n{'relative to' if column == 'ratio' else 'difference from'} {to}"


def _set_values(
    axis: Any, values: Any, measure: str, column: str, *, ticks: int = 5, whole: Any = ()
) -> tuple[float, float]:
    """Scale an axis to values; ratios that are too far from 1 are left out, unless they are in `whole`."""
    known = known_measure(measure)
    data = np.asarray(values, np.float64)
    data = data[np.isfinite(data)]
    if column == "ratio":
        data = np.concatenate([np.clip(data, 1 / _FAR, _FAR), [1.0], np.asarray(whole)[np.isfinite(whole)]])
        return style.set_axis(axis, data, "1", log=True, ticks=ticks)
    unit: style.Unit = "s" if known.unit == "s" else "1"
    # what stays below 1, as a correlation, is as readable near 0
    large = column == "value" and not known.share and data.max(initial=0.0) > 1
    log = bool(large and style.needs_log(data, 30) and (data >= 0).all())
    limits = style.set_axis(axis, data, unit, log=log, ticks=ticks)
    if known.share:
        style.set_percent(axis)
    return limits


def looks(labels: Sequence[Any], attributes: Attributes) -> dict[Any, style.SchemeStyle]:
    """Style of each label: schedulers have one by their place in the study, in all its figures."""
    schedulers = attributes.get("schedulers", [])
    known = schedulers if set(labels).intersection(schedulers) else []
    made = style.scheme_styles(dict.fromkeys([*known, *map(str, labels)]))
    return {each: made[str(each)] for each in labels}


# --- ranking --------------------------------------------------------------------------------------


def ranking(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> Figure:
    """Dots with intervals, a row each.

    And the line of the reference; filled where the difference is significant.
    """
    lanes = _labels(numbers, specification.lanes)
    several = len(lanes) > 1
    figure, panels = _panels(numbers, specification, _REST, row=_ROW + 0.07 * (len(lanes) - 1))
    colors = looks(lanes, {})
    apart = 1 / (len(lanes) + 0.6)  # dots of a row are closer to each other than to those of the next one
    for axes, own, measure, rows in panels:
        column, low, high = _columns_of(specification, own)
        marked = specification.lines.get(measure, ())
        # shares are compared from panel to panel
        whole = numbers[numbers["measure"] == measure] if known_measure(measure).share else own
        values = np.append(whole[[column, low, high]], marked)
        limits = _set_values(axes.xaxis, values, measure, column, ticks=4)
        neutral = {"ratio": [1.0], "difference": [0.0]}.get(column, [])
        for band in range(1, len(rows) if several else 0, 2):  # tells rows apart
            axes.axhspan(band - 0.5, band + 0.5, color=style.PALE, alpha=0.4, zorder=0.1, linewidth=0)
        for label, row in own[own[column].notna()].groupby(specification.hue, sort=False):
            # around the middle of the row, whichever lanes it has
            ordered = sorted(row.to_dict("records"), key=lambda each: lanes.index(_lane(each, specification)))
            for place, record in enumerate(ordered):
                y = rows.index(label) + apart * (place - (len(ordered) - 1) / 2)
                _interval(axes, record, (column, low, high), y, colors[_lane(record, specification)], limits)
        for value in (*marked, *neutral):
            axes.axvline(value, color=style.FAINT, linewidth=0.9, zorder=0.5)
        style.label_rows(axes, rows, 34)
        axes.set_xlabel(_axis_label(measure, column, specification, attributes))
    dots = [(_dot(colors[each]), str(each)) for each in lanes if several]
    if "significant" in numbers and specification.reference:
        ink = style.SchemeStyle(style.INK, "o", ())
        dots += [(_dot(ink), "differs significantly"), (_dot(ink, "white"), "does not")]
    if numbers["low"].notna().any():
        dots.append((Line2D([], [], color=style.INK, linewidth=1.4), "95 % interval"))
    style.entries_below(figure, dots)
    return figure


def _lane(record: Mapping[Any, Any], specification: Specification) -> Any:
    return record.get(specification.lanes, "")


def _dot(look: style.SchemeStyle, face: str | None = None) -> Line2D:
    """What stands for a dot in a legend."""
    return Line2D(
        [], [], color=look.color, marker=look.marker, markerfacecolor=face or look.color, linestyle=""
    )


def _interval(
    axes: Axes,
    record: Mapping[Any, Any],
    columns: tuple[str, str, str],
    y: float,
    look: style.SchemeStyle,
    limits: tuple[float, float],
) -> None:
    """A dot with its interval; at the edge, with its number, where it lies outside."""
    value, low, high = (float(record[column]) for column in columns)
    if not np.isfinite(value):
        return
    edge = float(np.clip(value, *limits))
    if value != edge:
        side = "left" if value < edge else "right"
        axes.annotate(style.number(value), (edge, y), va="center", ha=side, color=look.color, fontsize=8.5)
        return
    if np.isfinite(low) and np.isfinite(high) and high > low:
        ends = np.clip([low, high], *limits)
        axes.plot(ends, [y, y], color=look.color, linewidth=1.4, solid_capstyle="butt")
    significant = record.get("significant", 0) != 0 or columns[0] == "value"
    face = look.color if significant else "white"
    axes.plot([value], [y], look.marker, color=look.color, markerfacecolor=face, markersize=5, clip_on=False)


# --- response to a parameter ----------------------------------------------------------------------


def response(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> Figure:
    """Lines over a parameter, with the bands of their intervals."""
    x = specification.x
    known = numbers[pd.to_numeric(numbers[x], errors="coerce").notna()]
    figure, panels, lines = _line_panels(known, specification, attributes, 2.5)
    for axes, own, measure in panels:
        column, low, high = _columns_of(specification, own)
        values = own[x].astype(float)
        unit: style.Unit = "s" if x in _DURATIONS else "1"
        style.set_axis(axes.xaxis, values, unit, log=style.needs_log(values, 30), ticks=6)
        if values.nunique() <= _FEW_VALUES and x not in numbers["measure"].values:
            axes.set_xticks(_legible(axes, sorted(values.unique())))
        # a line goes on to its last value
        _set_values(
            axes.yaxis, own[[column, low, high]], measure, column, whole=own[column].to_numpy(np.float64)
        )
        for label, part in own.groupby(specification.hue, sort=False):
            ordered = part.sort_values(x)
            places, bounds = ordered[x].astype(float), (ordered[low], ordered[high])
            marker = {} if len(ordered) <= MOST_MARKERS else {"marker": ""}
            axes.plot(places, ordered[column], **(lines[label] | marker))
            color = lines[label]["color"]
            if len(ordered) > 1 and len(lines) <= MOST_BANDS:
                axes.fill_between(places, *bounds, color=color, alpha=0.15, linewidth=0)
            elif len(ordered) == 1:
                axes.vlines(places, *bounds, color=color, linewidth=1.2)
        if column == "ratio":
            axes.axhline(1.0, color=style.FAINT, linewidth=0.9)
        axes.set_xlabel(x.replace("_", " "))
        axes.set_ylabel(_axis_label(measure, column, specification, attributes), fontsize=8.5)
    return figure


def _legible(axes: Axes, values: Sequence[float]) -> list[float]:
    """Those of some values in order at which ticks do not overlap."""
    across = (axes.transData + axes.transAxes.inverted()).transform
    label = axes.xaxis.get_major_formatter()
    found: list[float] = []
    end = -np.inf
    for value in values:
        place, half = across((value, 0))[0], _LETTER * len(label(value)) / 2
        if place - half > end:
            found.append(value)
            end = place + half
    return found


# --- distributions and time series ----------------------------------------------------------------


def distribution(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> Figure:
    """Empirical distribution functions: the share of jobs over what it does not exceed.

    On a logarithmic axis.
    """
    figure, panels, lines = _line_panels(
        numbers, specification, attributes, 2.2, "color", "linestyle", most=MOST_SMALL_PANELS
    )
    for axes, own, measure in panels:
        stem = measure.removesuffix("_quantile")
        is_time = "s" in (known_measure(stem).unit, known_measure(f"{stem}_mean").unit)
        style.set_axis(axes.xaxis, own["value"], "s" if is_time else "1", log=True, ticks=5)
        for label, part in own.groupby(specification.hue, sort=False):
            axes.plot(part["value"], part["quantile"], **lines[label])
        axes.set_ylim(0, 1)
        axes.set_xlabel(known_measure(stem).words)
        axes.set_ylabel("share of jobs")
        style.set_percent(axes.yaxis)
    return figure


def series(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> Figure:
    """Steps over time; `x` is the variable of the start of each bin."""
    days = numbers.assign(day=numbers[specification.x] / 86_400)
    figure, panels, lines = _line_panels(days, specification, attributes, 1.9, "color")
    for axes, own, measure in panels:
        style.set_axis(axes.xaxis, own["day"], "1", ticks=6)
        _set_values(axes.yaxis, np.append(own["value"], 0.0), measure, "value")
        for label, part in own.groupby(specification.hue, sort=False):
            axes.step(part["day"], part["value"], where="post", linewidth=1.0, **lines[label])
        axes.set_xlabel("time [d]")
        axes.set_ylabel(known_measure(measure).words)
    return figure


# --- compositions ---------------------------------------------------------------------------------


def composition(numbers: pd.DataFrame, specification: Specification, attributes: Attributes) -> Figure:
    """Stacked bars, a row each, of the parts that `lanes` names, which may be measures."""
    parts = _labels(numbers, specification.lanes)
    by_measure = specification.lanes == "measure"
    named = numbers.assign(part=numbers[specification.lanes])
    if by_measure:
        named["measure"] = numbers["measure"].iloc[0]
    figure, panels = _panels(named, specification, _REST, row=_ROW)
    styles = looks(parts, {})
    for axes, own, measure, rows in panels:
        begin = np.zeros(len(rows))
        for part in parts:
            table = own[own["part"] == part].set_index(specification.hue)["value"]
            width = table[~table.index.duplicated()].reindex(rows).fillna(0.0).to_numpy()
            axes.barh(range(len(rows)), width, left=begin, color=styles[part].color, height=0.7)
            begin += width
        _set_values(axes.xaxis, np.append(begin, 0.0), measure, "composition")
        if (begin == begin.round()).all():
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        style.label_rows(axes, rows, 26)
        unit = known_measure(measure).unit
        words = f"sum [{unit}]" if by_measure else _axis_label(measure, "value", specification, attributes)
        axes.set_xlabel(words)
    names = {each: known_measure(each).words if by_measure else str(each) for each in parts}
    style.entries_below(figure, [(Patch(color=styles[each].color), names[each]) for each in parts], columns=4)
    return figure

"""What all figures share: size, fonts, a style for each scheme, axes of durations and of numbers, and saving.

Figures are 7 inches wide, the width of a page. A scheme has the same colour, marker and dashes in every
figure of a study, so that prints in grey stay readable. Text that comes from a log or a configuration goes
through `plain`, which keeps it from being read as a formula.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib.style
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.scale import SymmetricalLogScale
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from gridsched.figures import hover
from gridsched.io import atomic_write
from gridsched.metrics.jobs import RECORDED

# Names under which figures know them
from gridsched.units import duration as duration
from gridsched.units import number as number

Drawing = tuple[Figure, pd.DataFrame]
"""A figure and the numbers that it shows."""

Unit = Literal["s", "1"]
"""Unit of an axis: seconds, shown as durations, or a plain number."""

Parameters = ParamSpec("Parameters")
Dashes = tuple[float, ...]

_METADATA = ("Creator", "Date", "Format", "Type")
"""What an SVG says of itself unless it is told not to."""

WIDTH = 7.0
INK = "#222222"
FAINT = "#8a8a8a"
PALE = "#e4e4e4"

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.constrained_layout.h_pad": 0.05,
    "figure.constrained_layout.w_pad": 0.05,
    "figure.constrained_layout.wspace": 0.04,
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "patch.linewidth": 0.5,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "gridsched",
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "xtick.major.size": 3,
    "xtick.major.width": 0.6,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
    "ytick.major.size": 3,
    "ytick.major.width": 0.6,
}


def styled(function: Callable[Parameters, Drawing]) -> Callable[Parameters, Drawing]:
    """Let a figure function draw in our style, whatever the user's settings, and fix its layout once."""

    @functools.wraps(function)
    def draw(*arguments: Parameters.args, **options: Parameters.kwargs) -> Drawing:
        with matplotlib.style.context(["default", _STYLE], after_reset=True):
            figure, numbers = function(*arguments, **options)
            if engine := figure.get_layout_engine():
                engine.execute(figure)
            # A later layout would depend on resolution and file format.
            figure.set_layout_engine("none")
        return figure, numbers.reset_index(drop=True)

    return draw


def save(figure: Figure, numbers: pd.DataFrame, stem: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Write a figure as SVG and PNG and its numbers as CSV: `stem.svg`, `stem.png`, `stem.csv`.

    The same figure gives the same bytes again: files carry no dates and no random identifiers. Each file is
    written whole or not at all. The figure keeps their resolution.

    Returns
    -------
    tuple of Path
        The three files.
    """
    base = Path(stem)
    svg, png, csv = (base.with_name(f"{base.name}.{suffix}") for suffix in ("svg", "png", "csv"))
    # Not by `savefig`, which would draw the figure once more to lay it out
    with matplotlib.style.context(["default", _STYLE], after_reset=True):
        with atomic_write(svg) as path:
            texts = hover.prepare(figure)
            figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
            FigureCanvasSVG(figure).print_svg(path, metadata=dict.fromkeys(_METADATA))
            hover.finish(path, texts)
        with atomic_write(png) as path:
            # The SVG has left it at 72
            figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
            FigureCanvasAgg(figure).print_png(path, metadata={"Software": None})
    with atomic_write(csv) as path:
        numbers.to_csv(path, index=False, lineterminator="\n")
    return svg, png, csv


def new_figure(height: float, *, dense: bool = False) -> Figure:
    """Empty figure of page width and `height` inches; the layout keeps texts apart, `dense` just so."""
    layout = ConstrainedLayoutEngine(h_pad=0.02, hspace=0.0) if dense else ConstrainedLayoutEngine()
    return Figure(figsize=(WIDTH, height), layout=layout)


def headline(figure: Figure, text: str) -> None:
    """Title of the whole figure, at the top left."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=8.5, fontweight="bold")


# --- texts ----------------------------------------------------------------------------------------


def plain(text: object, limit: int = 34) -> str:
    """Text as it is, on one line and at most `limit` characters, never read as a formula."""
    line = " ".join(str(text).split())
    printable = "".join(character if character.isprintable() else "\ufffd" for character in line)
    short = printable if len(printable) <= limit else printable[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return short.replace("$", r"\$")


# --- styles of schemes and estimates --------------------------------------------------------------


@dataclass(frozen=True)
class SchemeStyle:
    """How a scheme is drawn in every figure of a study."""

    color: str
    marker: str
    dashes: Dashes


_PALETTE = sns.color_palette("colorblind").as_hex()
# The palette's yellow is too pale for lines on white: olive stands for it. Its light pink comes last.
COLORS: tuple[str, ...] = (*(_PALETTE[i] for i in (0, 1, 2, 3, 4, 9, 5, 7)), "#857c00", _PALETTE[6])
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
_DASHES: tuple[Dashes, ...] = (
    (),
    (5, 1.5),
    (1.5, 1.5),
    (6, 1.5, 1.5, 1.5),
    (8, 2),
    (3, 1, 1, 1, 1, 1),
    (4, 3),
)


def scheme_styles(schemes: Iterable[str]) -> dict[str, SchemeStyle]:
    """Style of each scheme of a study, by its place in the study; recorded waits are always black."""
    looks = map(SchemeStyle, cycle(COLORS), cycle(_MARKERS), cycle(_DASHES))
    simulated = [scheme for scheme in schemes if scheme != RECORDED]
    return {**dict(zip(simulated, looks, strict=False)), RECORDED: SchemeStyle(INK, "*", ())}


def line_options(style: SchemeStyle) -> dict[str, Any]:
    """Keyword arguments of `Axes.plot` for a line of a scheme."""
    linestyle = (0, style.dashes) if style.dashes else "-"
    return {"color": style.color, "linestyle": linestyle, "marker": style.marker, "markersize": 3.5}


# --- axes -----------------------------------------------------------------------------------------

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LINEAR_BELOW: dict[Unit, float] = {"s": 10.0, "1": 1.0}
_LINEAR_SCALE = 0.6
_LINEAR_STEPS = (
    *(factor * unit for unit in (1, _MINUTE) for factor in (1, 2, 5, 10, 20, 30)),
    *(factor * _HOUR for factor in (1, 2, 3, 6, 12)),
    *(factor * 10**power * _DAY for power in range(5) for factor in (1, 2, 5)),
)


# Factors of each unit, from sparse to dense: an axis takes the first that gives it enough labels.
_LOG_DURATIONS = tuple(
    tuple(
        factor * unit for unit, own in zip((1, _MINUTE, _HOUR, _DAY), factors, strict=True) for factor in own
    )
    for factors in (
        ((0.01, 1), (), (1,), (100,)),
        ((0.01, 1), (1,), (1,), (1, 100, 10_000)),
        ((0.01, 1), (1,), (1,), (1, 10, 100, 1000, 10_000)),
        ((0.01, 0.1, 1, 10), (1, 10), (1, 6), (1, 10, 100, 1000, 10_000)),
        ((0.01, 0.1, 0.3, 1, 3, 10), (1, 3, 10), (1, 3, 10), (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)),
        (
            (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
            (1, 3, 10, 30),
            (1, 3, 10),
            (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000),
        ),
        (
            (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30),
            (1, 2, 5, 10, 20, 30),
            (1, 2, 3, 6, 12),
            (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000),
        ),
    )
)
_LOG_NUMBERS = tuple(
    tuple(factor * 10.0**power for power in range(-4, 13, step) for factor in factors)
    for step, factors in (
        (3, (0.1,)),
        (2, (1,)),
        (1, (1,)),
        (1, (1, 3)),
        (1, (1, 2, 5)),
        (1, (1, 1.5, 2, 3, 5, 7)),
        (1, (1, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8)),
    )
)


def needs_log(values: ArrayLike, ratio: float = 10) -> bool:
    """Whether positive values span so much that a linear axis would press most of them into a corner."""
    data = np.asarray(values, np.float64)
    positive = data[np.isfinite(data) & (data > 0)]
    return len(positive) > 1 and bool(positive.max() > ratio * positive.min())


def set_axis(
    axis: XAxis | YAxis,
    values: ArrayLike,
    unit: Unit,
    *,
    log: bool = False,
    ticks: int = 5,
    floor: float | None = None,
) -> tuple[float, float]:
    """Scale, limits and ticks of an axis for these values; returns the limits.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
    values : array_like
        All that is to be seen; NaN and infinite ones do not count.
    unit : {"s", "1"}
        Seconds are labelled as durations, each tick with its unit.
    log : bool
        Logarithmic; with a linear beginning, to 10 s or 1, where there are zeros.
    ticks : int
        For how many labels there is room.
    floor : float, optional
        Lowest possible value, where a linear axis begins.
    """
    data = np.asarray(values, np.float64)
    data = data[np.isfinite(data)]
    low, high = (float(data.min()), float(data.max())) if len(data) else (0.0, 1.0)
    limits, locator = _log(axis, low, high, unit, ticks) if log else _linear(low, high, unit, ticks, floor)
    axis.axes.set(**{f"{axis.axis_name}lim": limits})
    axis.set_major_locator(locator)
    axis.set_major_formatter(_Values(unit))
    axis.set_minor_locator(NullLocator())
    return limits


class _Values(FuncFormatter):
    """Labels of durations or numbers, and the unit of the values themselves."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(lambda value, _: duration(value) if unit == "s" else number(value))
        self.unit = " s" if unit == "s" else ""


def _linear(
    low: float, high: float, unit: Unit, ticks: int, floor: float | None
) -> tuple[tuple[float, float], Locator]:
    """Limits and ticks of a linear axis."""
    begin = low if floor is None else floor
    margin = 0.06 * (high - begin) or 1.0
    limits = (begin - margin if floor is None else floor, high + margin)
    length = limits[1] - limits[0]
    if unit == "1" or length < 2:
        return limits, MaxNLocator(ticks)
    step = next((each for each in _LINEAR_STEPS if length / each <= ticks), _LINEAR_STEPS[-1])
    return limits, FixedLocator(
        (np.arange(np.ceil(limits[0] / step), np.floor(limits[1] / step) + 1) * step).tolist()
    )


def _log(
    axis: XAxis | YAxis, low: float, high: float, unit: Unit, ticks: int
) -> tuple[tuple[float, float], Locator]:
    """Limits and ticks of an axis that becomes logarithmic, with a linear beginning if there are zeros."""
    choices = _LOG_DURATIONS if unit == "s" else _LOG_NUMBERS
    if low > 0:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        margin = max((high / low) ** 0.06, 1.15)
        limits = (low / margin, high * margin)
        return limits, FixedLocator(_log_ticks(*limits, choices, ticks))
    linear = _LINEAR_BELOW[unit]
    scale = SymmetricalLogScale(axis, linthresh=linear, linscale=_LINEAR_SCALE)
    axis.axes.set(**{f"{axis.axis_name}scale": scale})
    end = max(high, linear) * 1.6
    decades = np.log10(end / linear)
    room = ticks * decades / (decades + _LINEAR_SCALE)
    # A label where the linear part ends would touch that at 0.
    return (-0.25 * linear, end), FixedLocator([0.0, *_log_ticks(2 * linear, end, choices, room)])


def _log_ticks(low: float, high: float, choices: Sequence[Sequence[float]], room: float) -> list[float]:
    """The sparsest of the choices that fills half of the room for labels; labels do not touch."""
    closest = 0.8 * np.log(high / low) / room
    best: list[float] = []
    for choice in choices:
        inside = [value for value in choice if low <= value <= high]
        if len(inside) > len(best) and bool(np.all(np.diff(np.log(inside)) >= closest)):
            best = inside
        if len(best) > room / 2:
            break
    return best


def label_rows(axes: Axes, names: Sequence[str], limit: int = 22) -> None:
    """Make the y axis one row a name, of at most `limit` characters, the first at the top."""
    axes.set_yticks(range(len(names)), [plain(name, limit) for name in names])
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def set_percent(axis: Axis) -> None:
    """Label the ticks of shares in per cent, with as many digits as they need."""
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g} %"))


def no_data(axes: Axes, text: str) -> None:
    """Say in an empty panel why it is empty."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=FAINT, wrap=True)


def entries_below(figure: Figure, entries: Sequence[tuple[Any, str]], *, columns: int = 5) -> None:
    """Legend of handles with their texts under all panels, in as many columns as fit, at most `columns`."""
    texts = [plain(text, 34) for _, text in entries]
    if texts:
        widest = 0.42 + 0.06 * max(map(len, texts))
        figure.legend(
            [handle for handle, _ in entries],
            texts,
            loc="outside lower center",
            ncols=max(1, min(columns, len(texts), int(WIDTH / widest))),
        )

"""Values that a figure says of a point when someone points at it: titles inside its SVG.

Browsers show the `<title>` of an element of an SVG by themselves, and screen readers read it. A marked line
says for each marker what its axes say of it; what else should speak is given its texts with `say`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

MOST = 400
"""Points of a line above which none speaks: nobody finds one of them."""

_TEXTS = "_gridsched_texts"
_SVG = "{http://www.w3.org/2000/svg}"
_MARKS = (f"{_SVG}use", f"{_SVG}path")
ElementTree.register_namespace("", _SVG[1:-1])
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def say(artist: Artist, texts: Sequence[str]) -> None:
    """Let each mark of an artist, in the order in which it is drawn, have a text."""
    setattr(artist, _TEXTS, list(texts))


def prepare(figure: Figure) -> dict[str, list[str]]:
    """Name what speaks, so that it is found in the SVG; texts of the marks of each."""
    found: dict[str, list[str]] = {}
    for axes in figure.axes:
        for artist in axes.get_children():
            texts = getattr(artist, _TEXTS, None) or (isinstance(artist, Line2D) and _texts(axes, artist))
            if texts:
                artist.set_gid(f"says-{len(found)}")
                found[f"says-{len(found)}"] = texts
    return found


def finish(path: Path, texts: dict[str, list[str]]) -> None:
    """Give each mark of an SVG that has a text a title, and shorten the file by half, which is as good.

    Coordinates are kept to a hundredth of a point; names of groups, turns by nothing and indentation go.
    """
    tree = ElementTree.parse(path)
    for element in tree.iter():
        element.attrib = {key: re.sub(r"(\d\.\d\d)\d+", r"\1", text) for key, text in element.items()}
        if re.match(r"rotate\(-?0 ", element.get("transform", "")):
            del element.attrib["transform"]
    for group in tree.iter(f"{_SVG}g"):
        own = texts.get(group.attrib.pop("id", ""), [])
        # Before the marks come definitions and the line itself
        marks = [each for each in group.iter() if each.tag in _MARKS][-len(own) :]
        if len(marks) >= len(own):
            for mark, text in zip(marks, own, strict=False):
                ElementTree.SubElement(mark, f"{_SVG}title").text = text
    # Texts, which stand between tags, are kept
    written = ElementTree.tostring(tree.getroot(), "unicode")
    path.write_text(re.sub(r">\s*\n\s*<", ">\n<", written), encoding="utf-8")


# --- what a marker says ---------------------------------------------------------------------------


def _texts(axes: Axes, line: Line2D) -> list[str]:
    """What each marker of a line says; nothing of lines without markers, or in other coordinates."""
    marked = line.get_marker() not in ("None", "none", " ", "", None)
    if not marked or line.get_transform() is not axes.transData or line.get_markevery() is not None:
        return []
    points = np.asarray(line.get_xydata(), np.float64)
    if len(points) > MOST:
        return []
    label = str(line.get_label())
    titles = [axes.get_title(place) for place in ("left", "center", "right")]
    first = [" ".join(text.split()) for text in (*titles, "" if label.startswith("_") else label) if text]
    return [
        "\n".join([*first, *_coordinate(axes.yaxis, y), *_coordinate(axes.xaxis, x)])
        for x, y in points.tolist()
        if not np.isnan([x, y]).any()
    ]


def _coordinate(axis: Axis, value: float) -> Iterator[str]:
    """A coordinate as its axis shows it, or the row or column that it belongs to."""
    category = _category(axis, value)
    shown = axis.get_major_formatter().format_data_short(value).strip() if category is None else category
    if not shown:
        return
    unit = getattr(axis.get_major_formatter(), "unit", "")
    if category is None and ((unit and not shown.endswith(unit)) or shown[-1] in "kMG"):
        shown = f"{shown} ({value:,.0f}{unit})"
    name = " ".join(axis.get_label_text().split())
    yield f"{name}: {shown}" if name else shown


def _category(axis: Axis, value: float) -> str | None:
    """Label of the row or column of a point, where an axis has those; None where it has values."""
    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    if not isinstance(locator, FixedLocator) or hasattr(formatter, "unit"):
        return None
    ticks = np.asarray(axis.get_majorticklocs(), np.float64)
    if not len(ticks):
        return ""
    nearest = int(np.argmin(np.abs(ticks - value)))
    # Rows and columns are numbered, and what stands in one may be moved a little
    room = 0.5 if np.array_equal(ticks, np.round(ticks)) and ticks[0] == 0 else 1e-9
    if abs(ticks[nearest] - value) > room:
        return None
    return " ".join(formatter(ticks[nearest], nearest).split())

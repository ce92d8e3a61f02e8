"""Texts of figures: what a reader sees of them, and whether it can be read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def texts_of(svg: Path) -> list[str]:
    """Texts of an SVG file; a mathematical formula would come as several or none."""
    elements = ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(element.itertext()) for element in elements]


def shown_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Texts of a figure that a reader sees, with the room they take."""
    figure.draw_without_rendering()
    texts: list[Text] = [
        text for legend in figure.legends for text in (*legend.get_texts(), legend.get_title())
    ]
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        inside = axes.get_legend()
        texts += [*(inside.get_texts() if inside else [])]
        texts += [text for text in axes.get_children() if isinstance(text, Text)]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [axis.label, *(tick.label1 for tick in ticks)]
    seen = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in seen]


def assert_legible(figure: Figure) -> None:
    """No text is cut, and none covers another."""
    texts, page = shown_texts(figure), figure.bbox
    assert texts
    for text, room in texts:
        assert min(room.x0, room.y0, page.x1 - room.x1, page.y1 - room.y1) >= -1, text
    for (text, room), (other, next_room) in combinations(texts, 2):
        common = Bbox.intersection(room, next_room)
        assert common is None or min(common.width, common.height) < 1, (text, other)

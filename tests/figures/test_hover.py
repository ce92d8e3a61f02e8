"""Marks of a figure say what they stand for, and those of others say nothing."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from gridsched.figures import hover, style

NUMBERS = pd.DataFrame({"x": [1]})
SPACE = "{http://www.w3.org/2000/svg}"


def titles(path: Path) -> list[str]:
    """What the marks of a figure say, in the order of the file."""
    root = ElementTree.parse(path).getroot()
    parents = [each for each in root.iter() if each is not root]
    return [text for each in parents for text in [each.findtext(f"{SPACE}title")] if text]


def test_a_marker_says_its_row_and_its_value(tmp_path: Path) -> None:
    figure = style.new_figure(2)
    axes = figure.subplots()
    style.set_axis(axes.xaxis, [0, 7200], "s")
    axes.set_xlabel("mean wait")
    axes.set_yticks([0, 1], ["easy <1>", "fcfs"])
    axes.plot([5400], [0.2], "o", label="requested")
    axes.plot([60, 7200], [1, 1], "o-")
    axes.plot([0, 7200], [0, 1])
    svg, _, _ = style.save(figure, NUMBERS, tmp_path / "figure")
    assert titles(svg) == [
        "requested\neasy <1>\nmean wait: 1.5 h (5,400 s)",
        "fcfs\nmean wait: 1 min (60 s)",
        "fcfs\nmean wait: 2 h (7,200 s)",
    ]


def test_shapes_say_what_they_are_told(tmp_path: Path) -> None:
    figure = style.new_figure(2)
    axes = figure.subplots()
    shapes = PatchCollection([Rectangle((0, 0), 1, 1), Rectangle((1, 0), 1, 2), Rectangle((3, 0), 1, 2)])
    hover.say(shapes, ["job 1", "job 2", "job 3"])
    axes.add_collection(shapes)
    axes.plot([0.5], [0.5], "o", transform=axes.transAxes)
    svg, _, _ = style.save(figure, NUMBERS, tmp_path / "figure")
    assert titles(svg) == ["job 1", "job 2", "job 3"]


@pytest.mark.parametrize(("points", "said"), [(hover.MOST, hover.MOST), (hover.MOST + 1, 0)])
def test_crowds_say_nothing(tmp_path: Path, points: int, said: int) -> None:
    figure = style.new_figure(2)
    figure.subplots().plot(range(points), range(points), "o")
    svg, _, _ = style.save(figure, NUMBERS, tmp_path / "figure")
    found = re.findall("<title>([^<]*)</title>", svg.read_text(encoding="utf-8"))
    assert len(found) == said
    assert all(unescape(text) for text in found)


def test_missing_values_have_no_mark_and_say_nothing(tmp_path: Path) -> None:
    figure = style.new_figure(2)
    axes = figure.subplots()
    style.set_axis(axes.yaxis, [0, 3], "1")
    axes.plot([0.5, 1.5, 2.5], [1.0, float("nan"), 3.0], "o")
    svg, _, _ = style.save(figure, NUMBERS, tmp_path / "figure")
    first, second = titles(svg)
    assert first.startswith("1\n")
    assert second.startswith("3\n")

"""Figures of every form: drawn from numbers, legible, with the same look for the same scheduler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from gridsched import presentation
from gridsched.experiments.specification import FormName, Specification
from gridsched.presentation import forms
from tests.support.fields import assert_fields

SMALLEST = 8.0
"""Points of the smallest text: 11 px where a figure is shown at its full width of 7 inches."""


def numbers(form: FormName) -> pd.DataFrame:
    """Numbers of three schedulers in two scenarios."""
    rows = []
    for scenario in ("heavy", "light"):
        for i, scheduler in enumerate(("easy", "fcfs", "sjbf")):
            for x in range(3):
                value = (i + 1.0) * (x + 1)
                rows.append(
                    {
                        "measure": "queue_length_series" if form == "series" else "wait_time_mean",
                        "scenario": scenario,
                        "scheduler": scheduler,
                        "estimates": ("requested", "actual", "0.5")[x] if form == "ranking" else "requested",
                        "x": float(x),
                        "quantile": (0.1, 0.5, 0.99)[x],
                        "part": f"part {x}",
                        "value": value,
                        "low": 0.8 * value,
                        "high": 1.2 * value,
                        "number": 10,
                        "reason": "",
                        "ratio": value / (x + 1),
                        "ratio_low": 0.8 * value,
                        "ratio_high": 1.2 * value,
                        "ratio_reason": "",
                        "probability": 0.01,
                        "significant": int(i > 0),
                    }
                )
    return pd.DataFrame(rows)


def specification(form: FormName, **more: Any) -> Specification:
    """A figure of a form."""
    return Specification(name=form, form=form, title=form, measures=("wait_time_mean",), **more)


SPECIFICATIONS: dict[FormName, Specification] = {
    "ranking": specification("ranking"),
    "response": specification("response", x="x"),
    "distribution": specification("distribution", reference=""),
    "series": specification("series", x="x", reference=""),
    "composition": specification("composition", lanes="part", reference=""),
}


@pytest.mark.parametrize("form", SPECIFICATIONS)
def test_every_form_draws_a_panel_for_each_scenario(form: FormName) -> None:
    chosen = SPECIFICATIONS[form]
    figure, drawn = presentation.draw(chosen, numbers(form), {"reference": "easy"})
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == ["heavy", "light"]
    assert len(drawn) == len(numbers(form))
    sentences = presentation.finding(chosen, numbers(form), {"reference": "easy"})
    assert sentences
    assert all(len(sentences[0].split()) < 30 for _ in sentences)


@pytest.mark.parametrize("form", SPECIFICATIONS)
def test_text_is_legible(form: FormName) -> None:
    figure, _ = presentation.draw(SPECIFICATIONS[form], numbers(form), {"reference": "easy"})
    texts = [each for each in figure.findobj(Text) if each.get_text().strip() and each.get_visible()]
    assert texts
    assert min(float(each.get_fontsize()) for each in texts) >= SMALLEST


def test_parameters_in_seconds_are_labelled_as_durations() -> None:
    known = numbers("response").rename(columns={"x": "status_period"})
    known["status_period"] = known["status_period"].map({0: 0, 1: 60, 2: 3600})
    figure, _ = presentation.draw(specification("response", x="status_period"), known, {"reference": "easy"})
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1 min", "1 h"]


def test_nothing_to_draw_is_said() -> None:
    empty = numbers("ranking").assign(value=np.nan)
    figure, _ = presentation.draw(SPECIFICATIONS["ranking"], empty)
    assert any("no values" in text.get_text() for text in figure.findobj(Text))


def test_panels_have_the_rows_of_their_own_values() -> None:
    ranked = numbers("ranking")
    third = ranked[ranked["scenario"] == "light"].assign(scenario="idle")
    absent = (third["scheduler"] == "fcfs") | (third["estimates"] != "actual")
    columns = ["value", "low", "high", "ratio", "ratio_low", "ratio_high"]
    third[columns] = third[columns].mask(absent)
    figure, _ = presentation.draw(
        SPECIFICATIONS["ranking"], pd.concat([ranked, third]), {"reference": "easy"}
    )
    rows = {
        axes.get_title(loc="left"): [label.get_text() for label in axes.get_yticklabels()]
        for axes in figure.axes
    }
    assert_fields(rows, heavy=["easy", "fcfs", "sjbf"], idle=["easy", "sjbf"])
    idle = next(axes for axes in figure.axes if axes.get_title(loc="left") == "idle")
    assert sorted(_dots(idle)) == [0, 1]
    light = next(axes for axes in figure.axes if axes.get_title(loc="left") == "light")
    of_rows = np.sort(_dots(light)).reshape(3, 3)
    assert of_rows.mean(axis=1) == pytest.approx([0, 1, 2])
    assert np.diff(of_rows, axis=1).max() < np.diff(of_rows.ravel()).max()


def _dots(axes: Axes) -> list[float]:
    """Heights of the dots of a ranking."""
    return [
        float(np.asarray(line.get_ydata())[0]) for line in axes.lines if line.get_marker() in ("o", "s", "^")
    ]


def test_lines_are_drawn_to_their_last_value() -> None:
    falling = numbers("response")
    falling["ratio"] = 1000.0 ** -falling["x"]
    figure, _ = presentation.draw(SPECIFICATIONS["response"], falling, {"reference": "easy"})
    assert figure.axes[0].get_ylim()[0] < falling["ratio"].min()


def test_a_scheduler_has_one_colour_in_all_figures() -> None:
    attributes = {"schedulers": ["a", "b", "c", "d"]}
    some, others = forms.looks(["b", "d"], attributes), forms.looks(["d", "b", "a"], attributes)
    assert_fields(some, b=others["b"], d=others["d"])

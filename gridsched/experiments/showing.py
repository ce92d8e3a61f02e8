"""Figures, findings and tables of a study; apart from its tasks, which need no drawing libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.captions import finding_file
from gridsched.experiments.tasks import function_at
from gridsched.figures.style import Drawing, save
from gridsched.io import atomic_write


def show(
    figures: Sequence[Mapping[str, Any]],
    tables: Mapping[str, str],
    runs: Sequence[Mapping[str, Any]],
    dataset: str | Path,
    *,
    figures_in: str | Path,
    tables_in: str | Path,
    runs_in: str | Path,
) -> None:
    """Draw the figures of a study as SVG, and write its tables.

    Beside a figure stand a PNG, its numbers as CSV, and as text what they show.

    Parameters
    ----------
    figures : sequence of mappings
        See `tasks.Figure.call`.
    tables : mapping of str
        Place of the function of each table of the dataset, by name.
    runs : sequence of mappings
        See `tasks.Experiment.runs`.
    dataset : path
        The dataset of the study.
    figures_in, tables_in : path
        Folders, which are made.
    runs_in : path
        Table of the runs.
    """
    for folder in (figures_in, tables_in):
        Path(folder).mkdir(parents=True, exist_ok=True)
    for figure in figures:
        drawn = files.shared(figure["dataset"])
        drawing: Drawing = function_at(figure["catalogue"])[figure["kind"]](drawn, **figure["parameters"])
        save(*drawing, Path(figures_in) / figure["name"])
        with atomic_write(finding_file(figures_in, figure["name"])) as path:
            path.write_text(finding_of(figure, drawing[1], drawn.attrs) + "\n", encoding="utf-8")
        print(figure["name"], flush=True)
    whole = results.read(dataset)
    for name, place in tables.items():
        files.write_table(function_at(place)(whole), Path(tables_in) / f"{name}.csv")
    files.write_table(pd.DataFrame(runs), runs_in)


def finding_of(figure: Mapping[str, Any], numbers: pd.DataFrame, attributes: Mapping[Any, Any]) -> str:
    """What a figure shows of its data, by the function beside the one that draws it."""
    module = figure["catalogue"].partition(":")[0]
    return str(function_at(f"{module}:FINDINGS")[figure["kind"]](numbers, attributes))

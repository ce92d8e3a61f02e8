"""Figures, findings and tables of a study; apart from its tasks, which need no drawing libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from gridsched import presentation, results
from gridsched.experiments import files
from gridsched.experiments.captions import finding_file
from gridsched.experiments.config import Study
from gridsched.experiments.running import carry_out
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import function_at
from gridsched.figures.style import Drawing, save
from gridsched.io import atomic_write
from gridsched.presentation.numbers import is_bound


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
    specifications = [Specification(**each["specification"]) for each in figures]
    comparing = len({each.comparisons for each in specifications if each.compares})
    for figure, specification in zip(figures, specifications, strict=True):
        drawn = files.shared(figure["dataset"])
        drawing, lines = _made(specification, drawn, max(comparing, 1))
        save(*drawing, Path(figures_in) / figure["name"])
        with atomic_write(finding_file(figures_in, figure["name"])) as path:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(figure["name"], flush=True)
    for name, place in tables.items():
        files.write_table(function_at(place)(files.shared(dataset)), Path(tables_in) / f"{name}.csv")
    files.write_table(pd.DataFrame(runs), runs_in)


def _made(specification: Specification, drawn: xr.Dataset, shared_by: int) -> tuple[Drawing, list[str]]:
    """A figure with its numbers, and what it shows."""
    attributes = attributes_of(drawn)
    if specification.against:
        attributes["reference"] = specification.against
    if specification.own:
        drawing: Drawing = function_at(specification.own)(drawn, **specification.parameters)
    else:
        made = presentation.numbers(specification, drawn, shared_by=shared_by)
        drawing = presentation.draw(specification, made, attributes)
    return drawing, presentation.finding(specification, drawing[1], attributes)


def attributes_of(dataset: xr.Dataset) -> dict[str, Any]:
    """Information about a dataset for forms and findings: attributes, schedulers, those that are bounds."""
    labels = [str(label) for label in dataset["scheduler"].values] if "scheduler" in dataset.dims else []
    return {
        **dataset.attrs,
        "schedulers": labels,
        "first_estimates": str(dataset["estimates"].values[0]) if "estimates" in dataset.dims else "",
        "bounds": [label for label in labels if is_bound(label)],
    }


def run_study(study: Study, folder: str | Path, seed: int, *, figures: bool = True) -> xr.Dataset:
    """Dataset of a study, made in this process in a folder of results as the workflow makes it.

    Parameters
    ----------
    study : Study
        The study; logs of the archive that it needs must be in the folder.
    folder : path
        Folder of results; what is there already is not made again.
    seed : int
        Random numbers are spawned from it.
    figures : bool
        Whether figures are drawn, besides the tables.

    Raises
    ------
    GridschedError
        If a task failed.
    """
    study.check_files()
    experiment, here = study.experiment(seed), str(folder)
    carry_out([task.call(here) for task in experiment.tasks])
    # That of the study, which may use the others, is the first
    carry_out([task.call(here) for task in reversed(experiment.datasets)])
    dataset = experiment.datasets[0].path(here)
    of_study = Path(folder) / study.name
    show(
        [figure.call(here) for figure in experiment.figures] if figures else [],
        {table.name: table.function for table in experiment.tables},
        experiment.runs(),
        dataset,
        figures_in=of_study / "figures",
        tables_in=of_study / "tables",
        runs_in=of_study / "runs.csv",
    )
    return results.read(dataset)

"""What the tests of studies share: small logs, changed configurations and what is wrong with them, pages."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import yaml

from gridsched.errors import ConfigurationError
from gridsched.experiments.config import Study, load_study
from gridsched.presentation import showing
from gridsched.presentation.showing import show
from tests.support.pages import Page


def log_text(seed: int, jobs: int, largest: int, users: int = 5) -> str:
    """A small SWF log of jobs of several users, some of them too large for their centre."""
    rng = random.Random(seed)
    lines = ["; UnixStartTime: 800000000", "; TimeZoneString: Europe/Stockholm", "; Acknowledge: a user"]
    submit = 1000 * seed
    for number in range(1, jobs + 1):
        submit += rng.choice([0, 50, 900, 50_000])
        user = rng.randint(1, users)
        run, size = rng.randint(0, 4000) * user, rng.choice([1, 1, 2, 4, largest])
        requested = run + rng.randint(0, 9000) if rng.random() < 0.9 else -1
        lines.append(f"{number} {submit} 1 {run} {size} -1 -1 {size} {requested} -1 1 {user} 1 1 1 1 -1 -1")
    return "\n".join(lines) + "\n"


def changed(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The values with the one at a path such as sweeps.0.k replaced."""
    copy = deepcopy(values)
    *parents, last = path.split(".")
    inside: Any = copy
    for part in parents:
        inside = inside[int(part)] if part.isdigit() else inside.setdefault(part, {})
    inside[int(last) if last.isdigit() else last] = value
    return copy


def run_study(study: Study, folder: Path, seed: int, *, shown: bool = False) -> xr.Dataset:
    """Dataset of a study, made in a folder of results as the workflow makes it; with figures if wished."""
    return showing.run_study(study, folder, seed, figures=shown)


def study_in(
    folder: Path, study: Callable[[], Study], seed: int, *, results: str = "results", shown: bool = False
) -> Path:
    """Folder of results of a study that is read and made in a working directory."""
    with contextlib.chdir(folder):
        run_study(study(), folder / results, seed, shown=shown)
    return folder / results


def draw(study: Study, folder: Path, seed: int = 1, *, figures: bool = True, tables: bool = False) -> None:
    """Figures and tables of a study whose datasets are in a folder of results."""
    experiment, here = study.experiment(seed), str(folder)
    show(
        [figure.call(here) for figure in experiment.figures] if figures else [],
        {table.name: table.function for table in experiment.tables} if tables else {},
        experiment.runs(),
        experiment.datasets[0].path(here),
        figures_in=folder / study.name / "figures",
        tables_in=folder / study.name / "tables",
        runs_in=folder / study.name / "runs.csv",
    )


def made(folder: Path, task: str) -> Path:
    """Dataset in a folder of results that the task of a name made."""
    for path in folder.rglob("*.made.json"):
        found = path.with_name(path.name.replace(".made.json", ".nc"))
        if json.loads(path.read_text(encoding="utf-8")).get("task") == task and found.stem.count(".") == 0:
            return found
    raise AssertionError(f"nothing in {folder} was made by {task!r}")


def message_about(folder: Path, study: dict[str, Any]) -> str:
    """The message about a study file in a folder, each line of which begins with its name."""
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_study(file)
    message = str(caught.value)
    assert all(line.startswith(f"{file}: ") for line in message.split("\n")), message
    return message


def read_page(file: Path) -> Page:
    """A report page as it is parsed."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    page.close()
    return page

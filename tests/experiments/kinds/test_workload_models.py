"""Studies of workload models: figures show the numbers of the dataset, whatever it lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched import presentation, results
from gridsched.experiments.kinds.workload_models import ModelStudy, nearness
from gridsched.presentation.sentences import count
from gridsched.traces import read_swf, write_swf
from gridsched.workloads import Workload, load_machines, synthesise
from gridsched.workloads.estimates import Multiple
from gridsched.workloads.model_comparison import models_dataset
from tests.support.studies import run_study

MACHINES = load_machines()


def study(log: Path) -> ModelStudy:
    """The study of these tests."""
    written = {"name": "tiny", "kind": "workload-models", "title": "Models"}
    workload = {"name": "own", "file": str(log), "processors": 1152}
    return ModelStudy.model_validate({**written, "workload": workload})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study of 500 drawn jobs, figures too."""
    base = tmp_path_factory.mktemp("models")
    write_swf(synthesise(MACHINES["M3"], seed=1, jobs=500, estimates=Multiple()), base / "own.swf")
    run_study(study(base / "own.swf"), base, 1, shown=True)
    return base


def test_jobs_of_a_status_are_left_out_and_counted(folder: Path, tmp_path: Path) -> None:
    log = read_swf(folder / "own.swf")
    write_swf(replace(log, status=np.where(np.arange(500) < 40, 0, 1)), tmp_path / "own.swf")
    values = study(tmp_path / "own.swf").values()
    values["workload"]["leave_out_status"] = [0]
    attrs = run_study(ModelStudy.model_validate(values), tmp_path, 1).attrs
    assert (attrs["jobs"], attrs["left_out: status 0"]) == (460, 40)


@pytest.fixture
def poor() -> xr.Dataset:
    """A log of two jobs of M2, which has thirteen classes: nearly all of them are empty."""
    log = Workload(
        name="two",
        submit_time=np.array([0, 0]),
        run_time=np.array([5, -1]),
        requested_processors=np.array([1, 9]),
    )
    return models_dataset(log, MACHINES, "M2")


def test_the_finding_counts_what_is_near(folder: Path) -> None:
    dataset = results.read(folder / "tiny" / "study.nc")
    classes = study(folder / "own.swf").specifications[0]
    first, second = nearness(presentation.numbers(classes, dataset), classes, {})
    factors: list[Any] = []
    for measure in classes.measures:
        for size_class in dataset["size_class"].values:
            log, paper = (
                float(dataset[measure].sel(source=source, size_class=size_class))
                for source in ("log", "paper")
            )
            if log > 0 and paper > 0:
                factors.append((max(log / paper, paper / log), measure, size_class))
    near = sum(factor <= 1.25 for factor, _, _ in factors)
    assert first.startswith(count(near).capitalize() if near else "None")
    assert count(len(factors), "number") in first
    assert f"{max(factors)[2]} processors" in second


def test_logs_that_lack_most_classes_can_be_shown(poor: xr.Dataset, tmp_path: Path) -> None:
    for specification in study(tmp_path / "no.swf").specifications:
        numbers = presentation.numbers(specification, poor)
        assert np.isfinite(numbers["value"]).all()
        presentation.draw(specification, numbers, {})
        assert presentation.finding(specification, numbers, {})

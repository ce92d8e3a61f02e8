"""Studies of grids and of workload models through the real workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from gridsched import results
from tests.workflow.workspace import Workspace

GRID: dict[str, Any] = {
    "name": "grid",
    "kind": "grid",
    "title": "A grid",
    "scenarios": [
        {
            "name": "both",
            "machines": [
                {"name": "drawn", "synthetic": {"machine": "M4", "jobs": 40}},
                {"name": "own", "file": "logs/own.swf", "cluster": {"speed": 900}},
            ],
        }
    ],
    "schemes": ["local", "s-i", "ideal-srpt"],
    "policies": ["easy", {"name": "widest", "order": "scores.py:widest", "backfilling": "easy"}],
    "replicates": 3,
}
MODELS: dict[str, Any] = {
    "name": "models",
    "kind": "workload-models",
    "title": "Models",
    "workload": {"name": "own", "file": "logs/own.swf", "window": {"month": "1970-01"}},
}


class GridWorkspace(Workspace):
    """A working directory whose configuration has a study of a grid and one of workload models."""

    def write(self, *, study: dict[str, Any] | None = None, **config: Any) -> None:
        """Write studies and configuration anew, with changes of the keys of the grid study."""
        super().write(**{"studies": ["studies/grid.yaml", "studies/models.yaml"], **config})
        for name, content in (("grid", {**GRID, **(study or {})}), ("models", MODELS)):
            text = yaml.safe_dump(content, sort_keys=False)
            (self.folder / "studies" / f"{name}.yaml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> GridWorkspace:
    workspace = GridWorkspace(tmp_path_factory.mktemp("grid"), kernel_cache)
    workspace.run()
    return workspace


def test_everything_is_there(finished: GridWorkspace) -> None:
    folder = finished.results
    drawn = {path.stem for path in folder.rglob("figures/*.svg")}
    assert drawn == {
        *("grid_overview", "grid_policies", "grid_waits-both", "grid_utilisation-both", "grid_flows-both"),
        *("model_shares", "model_quantiles", "size_spread"),
    }
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.endswith("</html>")
    for text in ("tests what a paper states", "both, local policy widest", "Hyper-Erlang distributions"):
        assert text in page
    assert not list(folder.rglob(".*")), "temporary files are left"
    for log in (folder / "logs").rglob("*.log"):
        assert "rror" not in log.read_text(encoding="utf-8"), log


def test_claims_are_listed_whether_or_not_their_studies_were_run(finished: GridWorkspace) -> None:
    verdicts = pd.read_csv(finished.results / "claims.csv")["verdict"]
    assert set(verdicts) <= {"not run", "input", "not testable"}
    assert len(verdicts) > 50


def test_repeated_run_does_nothing(finished: GridWorkspace) -> None:
    assert "Nothing to be done" in finished.run()


def test_another_chunk_size_gives_the_same_bits(
    tmp_path: Path, kernel_cache: Path, finished: GridWorkspace
) -> None:
    workspace = GridWorkspace(tmp_path / "elsewhere", kernel_cache)
    workspace.write(chunk_size=1)
    workspace.run("results/grid/study.nc", cores=1)
    assert len(list(workspace.results.glob("grid/measures/both/*.nc"))) == 3
    for name in ("grid/study.nc", "grid/schedules/both/0.nc"):
        assert results.read(workspace.results / name).identical(results.read(finished.results / name))


def test_changed_title_simulates_nothing(finished: GridWorkspace) -> None:
    finished.write(study={"title": "Another"})
    assert finished.planned("results/grid/study.nc") == {"grid: putting all scenarios together"}
    finished.write()


def test_changed_scheme_draws_nothing_anew(finished: GridWorkspace) -> None:
    finished.write(study={"schemes": ["local", "r-i"]})
    assert finished.planned("results/grid/study.nc") == {
        "grid: simulating both, chunk 0",
        "grid: putting all scenarios together",
    }
    finished.write()

"""A study of dynamic grids through the real workflow, on logs of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_dynamic_grid_study import STUDY, write_inputs
from tests.workflow.workspace import Workspace

TARGET = "results/tiny/study.nc"
AGAIN = "tiny: putting all cases together"
SMALL: dict[str, Any] = {
    **STUDY,
    "sites": STUDY["sites"][:2],
    "graphs": [],
    "default": {"graph": "complete"},
    "replicates": 1,
    "sweeps": [{"name": "overhead", "factor": "overhead", "values": [1.0, 2.0]}],
}
EVERYTHING = {AGAIN, "tiny: simulating chunk 0", "tiny: letting a site leave"}


class DynamicWorkspace(Workspace):
    """A working directory whose configuration has a study of dynamic grids."""

    def write(self, *, study: dict[str, Any] | None = None, **config: Any) -> None:
        """Write study and configuration anew, with changes of the keys of the study."""
        super().write(**config)
        if not (self.folder / "north.swf").exists():
            write_inputs(self.folder)
        text = yaml.safe_dump({**SMALL, **(study or {})}, sort_keys=False)
        (self.folder / "studies" / "tiny.yaml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> DynamicWorkspace:
    workspace = DynamicWorkspace(tmp_path_factory.mktemp("dynamic-grid"), kernel_cache)
    workspace.run()
    return workspace


def test_everything_is_there(finished: DynamicWorkspace) -> None:
    folder = finished.results
    drawn = {path.stem for path in folder.rglob("figures/*.svg")}
    assert drawn == {"dynamic_map", "dynamic_sites", "dynamic_overhead", "dynamic_departure"}
    assert {path.name for path in (folder / "tiny").glob("*.csv")} == {"means.csv", "runs.csv"}
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert not list(folder.rglob(".*")), "temporary files are left"
    for log in (folder / "logs").rglob("*.log"):
        assert "rror" not in log.read_text(encoding="utf-8"), log


def test_repeated_run_does_nothing(finished: DynamicWorkspace) -> None:
    assert "Nothing to be done" in finished.run()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"study": {"title": "Another"}}, {AGAIN}),
        (
            {"study": {"departure": {**STUDY["departure"], "absence": 5000}}},
            {AGAIN, "tiny: letting a site leave"},
        ),
        (
            {"study": {"sweeps": [{"name": "overhead", "factor": "overhead", "values": [1.0, 3.0]}]}},
            {AGAIN, "tiny: simulating chunk 0"},
        ),
        ({"seed": 2}, EVERYTHING),
    ],
    ids=["words", "departure", "sweep", "seed"],
)
def test_change_repeats_what_depends_on_it(
    finished: DynamicWorkspace, change: dict[str, Any], expected: set[str]
) -> None:
    finished.write(**change)
    planned = finished.planned(TARGET)
    finished.write(seed=1)
    assert planned == expected

"""A study of a multicluster through the real workflow, with a log of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_multicluster_study import QUICK
from tests.workflow.workspace import Workspace

TARGET = "results/clusters/study.nc"
AGAIN = "clusters: putting all points together"
LOADED = {"name": "loaded"}
LOG = {
    "name": "log",
    "jobs": {"load": None, "log": {"name": "own", "file": "logs/own.swf"}},
    "classes": [{"name": "gold", "high": 1}, {"name": "silver", "low": 1}],
}
STUDY: dict[str, Any] = {
    "name": "clusters",
    "kind": "multicluster",
    "title": "Clusters",
    "replicates": 3,
    "worked_example": True,
    "schemes": [
        {"name": "muscle", "dispatcher": "muscle", "titan": QUICK},
        {"name": "dll", "dispatcher": "dll", "local": "easy"},
    ],
    "common": {
        "clusters": [{"name": "C1", "processors": 8}, {"name": "C2", "processors": 5, "speed": 1.3}],
        "jobs": {"count": 60, "load": 0.8, "largest": 5, "unit": 10},
    },
    "points": [LOADED, {"name": "level", "jobs": {"load": None, "level": 3}}, LOG],
}


class MulticlusterWorkspace(Workspace):
    """A working directory whose configuration has a study of a multicluster."""

    def write(self, *, study: dict[str, Any] | None = None, **config: Any) -> None:
        """Write study and configuration anew, with changes of the keys of the study."""
        super().write(**{"studies": ["studies/clusters.yaml"], "chunk_size": 20, **config})
        text = yaml.safe_dump({**STUDY, **(study or {})}, sort_keys=False)
        (self.folder / "studies" / "clusters.yaml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> MulticlusterWorkspace:
    workspace = MulticlusterWorkspace(tmp_path_factory.mktemp("clusters"), kernel_cache)
    workspace.run()
    return workspace


def test_everything_is_there(finished: MulticlusterWorkspace) -> None:
    folder = finished.results
    drawn = {path.stem for path in folder.rglob("figures/*.svg")}
    assert drawn == {"multicluster_points", "example_handed_over", "example_improved"}
    assert len(list((folder / "rates").glob("*.nc"))) == 1, "one point has a workload level"
    assert {path.name for path in (folder / "clusters").glob("*.csv")} == {"means.csv", "runs.csv"}
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert not list(folder.rglob(".*")), "temporary files are left"
    for log in (folder / "logs").rglob("*.log"):
        assert "rror" not in log.read_text(encoding="utf-8"), log


def test_repeated_run_does_nothing(finished: MulticlusterWorkspace) -> None:
    assert "Nothing to be done" in finished.run()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"title": "Another", "points": [LOG, *STUDY["points"][:2]]}, {AGAIN}),
        (
            {"points": [{**LOADED, "classes": [{"high": 2}]}, *STUDY["points"][1:]]},
            {"clusters: drawing the jobs of loaded", "clusters: simulating loaded, chunk 0", AGAIN},
        ),
    ],
    ids=["words", "deadlines"],
)
def test_change_repeats_what_depends_on_it(
    finished: MulticlusterWorkspace, change: dict[str, Any], expected: set[str]
) -> None:
    finished.write(study=change)
    planned = finished.planned(TARGET)
    finished.write()
    assert planned == expected

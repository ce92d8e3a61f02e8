"""A study of self-scheduling through the real workflow, on a platform and logs of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.studies import changed
from tests.test_self_scheduling_study import PLATFORM, STUDY, write_inputs
from tests.workflow.workspace import Workspace

TARGET = "results/tiny/study.nc"
AGAIN = "tiny: putting all runs together"
SWEEPS: list[dict[str, Any]] = [
    {"factors": ["none"], "estimates": ["predicted", "retrained"], "k": {"from": 1, "to": 2}},
    {"factors": ["none"], "predictions": "exact", "k": [2]},
]
SIMULATED = {f"tiny: simulating factor none, chunk {chunk}" for chunk in range(3)}
REPORTED = changed(
    PLATFORM,
    "centres.1.paper",
    {"wait_mean": 9, "wait_p95": 99, "slowdown_mean": 1.5, "slowdown_p95": 15},
)
"""The platform with what a paper measured."""


class SelfSchedulingWorkspace(Workspace):
    """A working directory whose configuration has a study of self-scheduling."""

    def write(
        self, *, study: dict[str, Any] | None = None, platform: dict[str, Any] | None = None, **config: Any
    ) -> None:
        """Write study, platform and configuration anew, with changes of the keys of the study."""
        super().write(**config)
        write_inputs(self.folder)
        for name, content in (
            ("studies/tiny.yaml", {**STUDY, "sweeps": SWEEPS, **(study or {})}),
            ("platform.yaml", platform or PLATFORM),
        ):
            text = yaml.safe_dump(content, sort_keys=False)
            path = self.folder / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> SelfSchedulingWorkspace:
    workspace = SelfSchedulingWorkspace(tmp_path_factory.mktemp("self-scheduling"), kernel_cache)
    workspace.run()
    return workspace


def test_everything_is_there(finished: SelfSchedulingWorkspace) -> None:
    folder = finished.results
    drawn = {path.stem for path in folder.rglob("figures/*.svg")}
    assert drawn == {
        *("improvement_bounded_slowdown", "improvement_wait_time", "offered_loads", "centre_table"),
        *("plan_and_exact", "retraining_effect", "prediction_quality", "prediction_intervals"),
    }
    assert len(list((folder / "tiny" / "measures" / "none").glob("*.nc"))) == 3, "retrained runs stand alone"
    assert {path.name for path in (folder / "tiny").glob("*.csv")} == {
        *("means.csv", "runs.csv", "table_two.csv")
    }
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert not list(folder.rglob(".*")), "temporary files are left"
    for log in (folder / "logs").rglob("*.log"):
        assert "rror" not in log.read_text(encoding="utf-8"), log


def test_repeated_run_does_nothing(finished: SelfSchedulingWorkspace) -> None:
    assert "Nothing to be done" in finished.run()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"study": {"title": "Another", "evaluate": False}, "platform": REPORTED}, {AGAIN}),
        (
            {"study": {"sweeps": [*SWEEPS, {"factors": ["none"], "metrics": ["slowdown"], "k": [1]}]}},
            {"tiny: simulating factor none, chunk 0", AGAIN},
        ),
        (
            {"platform": changed(PLATFORM, "centres.2.policy", "easy")},
            {"tiny: fusing all logs, factor none", AGAIN, *SIMULATED},
        ),
        ({"seed": 2}, {AGAIN, *SIMULATED}),
    ],
    ids=["words", "sweep", "policy", "seed"],
)
def test_change_repeats_what_depends_on_it(
    finished: SelfSchedulingWorkspace, change: dict[str, Any], expected: set[str]
) -> None:
    finished.write(**change)
    planned = finished.planned(TARGET)
    finished.write()
    assert planned == expected

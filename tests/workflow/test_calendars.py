"""A study of imprecise calendars through the real workflow, on logs of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gridsched.engine.jit import cache_root
from tests.studies import changed
from tests.test_calendar_study import STUDY, write_logs
from tests.workflow.workspace import Workspace

TARGET = "results/tiny/study.nc"
AGAIN = "tiny: putting all runs together"
SMALL: dict[str, Any] = {
    **STUDY,
    "schedulers": [STUDY["schedulers"][0], STUDY["schedulers"][1], STUDY["schedulers"][7]],
    "estimates": ["actual"],
}


class CalendarWorkspace(Workspace):
    """A working directory whose configuration has a study of imprecise calendars."""

    def write(self, *, study: dict[str, Any] | None = None, **config: Any) -> None:
        """Write study and configuration anew."""
        super().write(**config)
        write_logs(self.folder)
        text = yaml.safe_dump(study or SMALL, sort_keys=False)
        (self.folder / "studies" / "tiny.yaml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> CalendarWorkspace:
    # Kernels of calendars take long to compile; the tests of the library have done so
    workspace = CalendarWorkspace(tmp_path_factory.mktemp("calendars"), cache_root().parent)
    workspace.run()
    return workspace


def test_everything_is_there(finished: CalendarWorkspace) -> None:
    folder: Path = finished.results
    assert {path.stem for path in folder.rglob("figures/*.svg")} == {
        "calendar_delays",
        *(f"{name}-{case}" for name in ("calendar_clusters", "calendar_trade") for case in ("pair", "parts")),
    }
    assert {path.name for path in (folder / "tiny").glob("*.csv")} == {
        *("means.csv", "runs.csv", "clusters.csv")
    }
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert not list(folder.rglob(".*")), "temporary files are left"
    for log in (folder / "logs").rglob("*.log"):
        assert "rror" not in log.read_text(encoding="utf-8"), log


def test_change_repeats_what_depends_on_it(finished: CalendarWorkspace) -> None:
    simulated = {f"tiny: simulating {case}, chunk 0" for case in ("pair", "parts")}
    for study, expected in (
        (changed(SMALL, "title", "Another"), {AGAIN}),
        (changed(SMALL, "schedulers.1.managers.0.bump", 600), {AGAIN, *simulated}),
        (
            changed(SMALL, "cases.1.partitions.alike", "users"),
            {AGAIN, "tiny: preparing parts", "tiny: simulating parts, chunk 0"},
        ),
    ):
        finished.write(study=study)
        assert finished.planned(TARGET) == expected
    finished.write()

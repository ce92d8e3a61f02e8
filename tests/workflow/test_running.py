"""The workflow from configuration to report: complete, repeatable, interruptible, and no more than needed."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from gridsched import results
from tests.support.fields import assert_fields
from tests.support.workspace import (
    Workspace,
    bits_of_runs,
    temporary_files,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> Workspace:
    """A configuration that ran to the report."""
    workspace = Workspace(tmp_path_factory.mktemp("finished") / "work", kernel_cache)
    output = workspace.run()
    assert "(100%) done" in output
    assert "profile" in output, "the default profile was not found"
    return workspace


def test_everything_is_there(finished: Workspace) -> None:
    folder = finished.results
    assert_fields(
        results.read(folder / "tiny" / "study.nc"),
        scenario=["listed", "own"],
        scheduler=["easy", "widest", "recorded"],
    )
    assert len(bits_of_runs(folder)) == 4
    drawn = {path.stem for path in (folder / "tiny" / "figures").glob("*.svg")}
    assert {"ranking", "load", "gantt-listed-1", "workload-own"} <= drawn
    for figure in (folder / "tiny" / "figures").glob("*.svg"):
        assert figure.with_suffix(".png").stat().st_size
        assert figure.with_suffix(".csv").stat().st_size
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert not temporary_files(folder), "temporary files are left"


def test_every_job_has_a_log_without_an_error(finished: Workspace) -> None:
    logs = list((finished.results / "logs").rglob("*.log"))
    assert len(logs) == 6
    assert not [log for log in logs if "rror" in log.read_text(encoding="utf-8")]


def test_repeated_run_does_nothing(finished: Workspace) -> None:
    assert "Nothing to be done" in finished.run()


def test_report_of_snakemake_is_one_file(finished: Workspace) -> None:
    target = finished.folder / "snakemake-report.html"
    finished.run("--report", str(target))
    page = target.read_text(encoding="utf-8")
    assert "ranking" in page
    assert "measures.csv" not in page

    class Loads(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            loaded = {"script": "src", "img": "src", "link": "href", "iframe": "src"}.get(tag)
            addresses = [value or "" for name, value in attrs if name == loaded]
            assert all(address.startswith(("data:", "#")) for address in addresses), addresses

    Loads().feed(page)

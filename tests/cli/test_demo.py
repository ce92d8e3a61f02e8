"""`gridsched demo`: a study in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gridsched import results


def test_the_first_study_gives_a_page_figures_and_a_dataset(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    folder = tmp_path / "first"
    assert str(folder / "report.html") in printed("demo", "--folder", folder, "--no-open")
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>")
    assert list((folder / "small" / "figures").glob("*.svg"))
    assert results.read(folder / "small" / "study.nc").sizes["scheduler"] == 7


def test_a_folder_that_cannot_be_written(log: Path, mistake: Callable[..., str]) -> None:
    assert "cannot be written" in mistake("demo", "--folder", log / "inside", "--no-open")

"""`gridsched costs`: what a workflow run took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.logs import row

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def benchmark(path: Path, *rows: tuple[float | str, float | str, float | str]) -> None:
    """A benchmark as Snakemake writes it: seconds, megabytes, seconds of processors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{s}\t0:00:01\t{memory}\t1\t1\t1\t1\t1\t50.0\t{cpu}\n" for s, memory, cpu in rows]
    path.write_text(HEADER + "".join(lines))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "benchmarks"
    benchmark(folder / "one" / "runs" / "KTH" / "0.tsv", (60, 1200.4, 30))
    benchmark(folder / "one" / "aggregate.tsv", (120, 300, 120))
    benchmark(folder / "two" / "0.tsv", (5, 50, 5), (6, 70, 6))
    benchmark(folder / "two" / "1.tsv", ("0.1", "NA", "NA"))
    return tmp_path


def test_sums_and_maxima_by_study(results: Path, printed: Callable[..., str]) -> None:
    text = printed("costs", results)
    assert row(text, "one") == ["2", "3.0", "2.5", "120", "s", "1200", "MB"]
    assert row(text, "two") == ["2", "0.1", "0.1", "6", "s", "70", "MB"]
    assert row(text, "all") == ["4", "3.1", "2.6", "120", "s", "1200", "MB"]


def test_folder_without_benchmarks(tmp_path: Path, mistake: Callable[..., str]) -> None:
    assert "no benchmarks" in mistake("costs", tmp_path)


@pytest.mark.parametrize("text", ["", HEADER, "a\tb\n1\t2\n", HEADER.replace("\n", "\nx" + "\t1" * 9 + "\n")])
def test_file_that_is_no_benchmark(results: Path, mistake: Callable[..., str], text: str) -> None:
    (results / "benchmarks" / "two" / "0.tsv").write_text(text)
    message = mistake("costs", results)
    assert "0.tsv: not a benchmark" in message

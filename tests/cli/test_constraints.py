"""Features of nodes that jobs of an export ask for: in comparisons with and without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.logs import row
from tests.traces.test_sacct import COLUMNS, export, line

NODES_FILE = """
nodes:
  - { name: plain, count: 2, cores: 8 }
  - { name: fast, count: 1, cores: 4, features: [ib] }
"""


def test_constraints_that_are_not_modelled_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{line(k)}|{text}" for k, text in enumerate(("ib", "[ib*2&big]", "big&ib*2", ""), 1)]
    export(tmp_path, *rows, header=f"{COLUMNS}|Constraints")
    (tmp_path / "nodes.yaml").write_text(NODES_FILE, encoding="utf-8")
    told = printed("compare", "export.txt", "--timezone", "Europe/Rome", "--nodes", "nodes.yaml")
    assert row(told, "constraints")[:2] == ["2", "jobs"]
    assert "[ib*2&big], big&ib*2" in told


@pytest.mark.parametrize(
    ("options", "used", "wait"),
    [
        ("--nodes nodes.yaml", True, "400"),
        ("--nodes nodes.yaml --without constraints", False, "0"),
        ("--processors 24", False, "0"),
    ],
)
def test_comparisons_hold_jobs_to_features_of_nodes(
    options: str,
    used: bool,
    wait: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    printed: Callable[..., str],
) -> None:
    """Two jobs that need the fast node come together; their constraints hold delimiters of the export."""
    monkeypatch.chdir(tmp_path)
    asked = {1: "ib|moon", 2: "moon|ib", 3: ""}
    rows = [f"{line(k)}|{text}|sbatch -C {text} job.sh" for k, text in asked.items()]
    export(tmp_path, *rows, header=f"{COLUMNS}|Constraints|SubmitLine")
    (tmp_path / "nodes.yaml").write_text(NODES_FILE, encoding="utf-8")
    told = printed("compare", "export.txt", "--timezone", "Europe/Rome", "--policy", "fcfs", *options.split())
    assert row(told, "fcfs")[0] == wait
    if used:
        assert "constraints" in row(told, "information used")
    elif "--processors" in options:
        assert row(told, "constraints")[0] == "2"

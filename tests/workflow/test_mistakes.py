"""Mistakes of the user: nothing runs in vain, the exit code says so, and one line names the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.workspace import TARGET, Workspace


@pytest.fixture
def workspace(tmp_path: Path, kernel_cache: Path) -> Workspace:
    return Workspace(tmp_path / "work", kernel_cache)


def unknown_policy(workspace: Workspace) -> str:
    workspace.write(study={"schedulers": ["esay"]})
    return "studies/tiny.yaml: schedulers[item 1]: found 'esay'; unknown scheduler; did you mean easy?"


def unknown_key(workspace: Workspace) -> str:
    workspace.write(chunksize=3)
    return "config.yaml: chunksize: unknown key; did you mean chunk_size?"


def missing_log(workspace: Workspace) -> str:
    workspace.log.unlink()
    return "studies/tiny.yaml: scenarios[own].file: found 'logs/own.swf'; there is no such file"


def missing_score(workspace: Workspace) -> str:
    (workspace.folder / "scores.py").unlink()
    return "score 'scores.py:widest': there is no file scores.py"


def broken_yaml(workspace: Workspace) -> str:
    (workspace.folder / "studies" / "tiny.yaml").write_text("name: tiny\ntitle: [a\n", encoding="utf-8")
    return "studies/tiny.yaml:3: not YAML"


@pytest.mark.parametrize(
    "mistake",
    [unknown_policy, unknown_key, missing_log, missing_score, broken_yaml],
    ids=lambda f: f.__name__,
)
def test_mistake_in_the_configuration(workspace: Workspace, mistake: Callable[[Workspace], str]) -> None:
    message = mistake(workspace)
    output = workspace.run(fails=True)
    assert len([line for line in output.splitlines() if message in line]) == 1, output
    assert "Traceback" not in output
    assert not workspace.results.exists()


def reasons(output: str, beginning: str) -> list[str]:
    """Lines of the output that begin so."""
    return [line.strip() for line in output.splitlines() if line.strip().startswith(beginning)]


def test_broken_line_of_a_log(workspace: Workspace) -> None:
    lines = workspace.log.read_text(encoding="utf-8").splitlines()
    lines[6] = lines[6].replace(" 8 ", " eight ", 1).replace(" 1 ", " one ", 1)
    workspace.log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    output = workspace.run(TARGET, fails=True)
    (log,) = workspace.results.glob("logs/tiny/prepare/*.log")
    (reason,) = reasons(log.read_text(encoding="utf-8"), "error: ")
    assert reason.startswith("error: logs/own.swf:7: field ")
    assert reason in output
    assert "Traceback" not in output
    missing = workspace.missing()
    assert {"own, replicate 0", "character of own"} <= missing
    assert not {"listed, replicate 0", "character of listed"} & missing, "the others go on"


def test_score_that_cannot_be_compiled(workspace: Workspace) -> None:
    (workspace.folder / "scores.py").write_text(
        "def widest(processors):\n    return open('x').read()\n", encoding="utf-8"
    )
    workspace.write(study={"schedulers": workspace.study["schedulers"][-1:]})
    output = workspace.run(TARGET, fails=True)
    assert "error: score widest: Numba cannot compile it" in output
    assert "Traceback" not in output

"""A log that no mirror has, through the workflow: it is asked for several times, with pauses."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.support.workspace import Workspace
from tests.workflow.test_mistakes import reasons


@pytest.fixture
def workspace(tmp_path: Path, kernel_cache: Path) -> Workspace:
    return Workspace(tmp_path / "work", kernel_cache)


def test_log_that_no_mirror_has(workspace: Workspace) -> None:
    mirror = workspace.folder / "mirror"
    mirror.mkdir()
    (mirror / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(gzip.compress(b"; not the log\n"))
    nowhere = "http://127.0.0.1:9"
    workspace.environment = {
        "GRIDSCHED_MIRRORS": str(mirror),
        **{f"{scheme}_proxy": nowhere for scheme in ("http", "https", "HTTP", "HTTPS")},
        "no_proxy": "",
        "NO_PROXY": "",
    }
    workspace.write(study={"scenarios": [{"name": "KTH", "archive": "KTH-SP2-1996"}]})
    output = workspace.run("results/archive/KTH-SP2-1996-2.1-cln.swf.gz", fails=True)
    log = workspace.results / "logs" / "archive" / "KTH-SP2-1996-2.1-cln.log"
    reason = reasons(log.read_text(encoding="utf-8"), "error: ")
    assert len(reason) == 1
    assert reason[0].startswith("error: KTH-SP2-1996: no good copy found; tried ")
    assert str(mirror) in reason[0]
    assert "GRIDSCHED_MIRRORS" in reason[0]
    assert reason[0] in output
    assert "Traceback" not in output
    assert not list((workspace.results / "archive").glob("*"))

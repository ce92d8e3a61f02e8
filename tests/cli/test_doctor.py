"""`gridsched doctor`: what it looks at, and what it says of what is not right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsched.cli import main
from gridsched.diagnosis import LEAST_DISK
from tests.support.logs import KTH

Looked = Callable[[], tuple[int, dict[str, dict[str, Any]]]]


@pytest.fixture
def looked(capsys: pytest.CaptureFixture[str]) -> Looked:
    """Function that gives the exit code and the checks by name."""

    def run() -> tuple[int, dict[str, dict[str, Any]]]:
        code = main(["doctor", "--json"])
        return code, {check["name"]: check for check in json.loads(capsys.readouterr().out)}

    return run


def test_a_good_installation(looked: Looked, capsys: pytest.CaptureFixture[str]) -> None:
    code, checks = looked()
    assert code == 0
    assert {check["state"] for check in checks.values()} <= {"ok", "warn"}
    for name in ("Python", "gridsched", "numba", "compiler", "figures", "datasets", "kernel cache", "clock"):
        assert checks[name]["state"] == "ok", checks[name]
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in checks)


def test_every_remedy_goes_with_something_that_is_not_right(looked: Looked) -> None:
    _, checks = looked()
    assert all(bool(check["remedy"]) == (check["state"] != "ok") for check in checks.values())


def test_mirrors(
    archive_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked: Looked
) -> None:
    shutil.copy(archive_mirror / KTH, tmp_path / KTH)
    monkeypatch.setenv("GRIDSCHED_MIRRORS", str(tmp_path))
    code, checks = looked()
    assert (code, checks["mirror"]["state"]) == (0, "ok")
    assert "1 logs of the archive, checksums right" in checks["mirror"]["found"]
    (tmp_path / KTH).write_bytes(b"no log")
    monkeypatch.setenv("GRIDSCHED_MIRRORS", f"file://{tmp_path}")
    code, checks = looked()
    assert (code, checks["mirror"]["state"]) == (1, "fail")
    assert KTH in checks["mirror"]["found"]


@pytest.mark.parametrize(
    ("place", "state", "found"),
    [
        ("/nowhere/at/all", "fail", "no such folder"),
        ("ftp://example.org/logs", "fail", "not supported"),
        ("http://127.0.0.1:1/logs", "warn", "does not answer"),
    ],
)
def test_mirrors_that_are_not_there(
    place: str, state: str, found: str, monkeypatch: pytest.MonkeyPatch, looked: Looked
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRIDSCHED_MIRRORS", place)
    code, checks = looked()
    assert (code, checks["mirror"]["state"]) == (int(state == "fail"), state)
    assert found in checks["mirror"]["found"]


def test_a_cache_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked: Looked) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRIDSCHED_CACHE", str(tmp_path / "file"))
    code, checks = looked()
    assert code == 1
    assert checks["kernel cache"]["state"] == "fail"
    assert "GRIDSCHED_CACHE" in checks["kernel cache"]["remedy"]


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, looked: Looked) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=LEAST_DISK - 1))
    code, checks = looked()
    assert code == 1
    assert checks["disk, here"]["state"] == "fail"
    assert "free some space" in checks["disk, here"]["remedy"]

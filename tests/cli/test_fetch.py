"""`gridsched fetch` and `gridsched cache`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.logs import KTH, row


def test_fetching_from_a_mirror_makes_the_log_known_by_name(
    archive_mirror: Path, cache: Path, printed: Callable[..., str], mistake: Callable[..., str]
) -> None:
    assert "gridsched fetch KTH-SP2-1996" in mistake("info", "kth-sp2-1996")
    assert row(printed("fetch", "--list"), "KTH-SP2-1996") == ["28476", "100", "0.4", "known", "no"]
    path = cache / "archive" / KTH
    assert printed("fetch", "--mirror", archive_mirror, "KTH-SP2-1996") == f"{path}\n"
    assert path.read_bytes() == (archive_mirror / KTH).read_bytes()
    assert row(printed("fetch", "--list", "KTH-SP2-1996"), "KTH-SP2-1996")[-1] == "yes"
    assert row(printed("info", "kth-sp2-1996"), "file") == [str(path)]


def test_fetching_several_logs_to_a_folder(
    archive_mirror: Path, tmp_path: Path, printed: Callable[..., str]
) -> None:
    folder = tmp_path / "logs"
    text = printed(
        *("fetch", "KTH-SP2-1996", "NASA-iPSC-1993", "--folder", folder),
        *("--mirror", tmp_path, "--mirror", archive_mirror),
    )
    paths = [Path(line) for line in text.splitlines()]
    assert paths == [folder / KTH, folder / "NASA-iPSC-1993-3.1-cln.swf.gz"]
    assert all(path.is_file() for path in paths)


def test_a_log_that_no_place_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: Callable[..., str]
) -> None:
    # A proxy that does not exist keeps the archive out of this test; nobody waits before trying it again.
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setattr(time, "sleep", lambda _: None)
    message = mistake("fetch", "KTH-SP2-1996", "--mirror", tmp_path)
    assert f"no good copy found; tried {tmp_path / KTH} (no such file)" in message


def test_the_cache_of_kernels_is_shown_and_cleared(cache: Path, printed: Callable[..., str]) -> None:
    kernel = cache / "kernels" / "0123" / "kernel.nbi"
    kernel.parent.mkdir(parents=True)
    kernel.write_bytes(bytes(2_000_000))
    kept = cache / "archive" / KTH
    kept.parent.mkdir()
    kept.write_bytes(b"")
    assert row(printed("cache", "show"), str(cache / "kernels")) == ["compiled", "kernels", "1", "2.0"]
    assert str(cache / "kernels") in printed("cache", "clear")
    assert not (cache / "kernels").exists()
    assert kept.exists()
    assert row(printed("cache", "show"), str(cache / "kernels")) == ["compiled", "kernels", "0", "0.0"]
    printed("cache", "clear")

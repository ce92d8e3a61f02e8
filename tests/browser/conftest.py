"""A browser for the tests, and the reason why there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser, found


def _installed() -> str:
    """Path of Chromium, which is installed from Debian's packages where that is allowed; skips where not."""
    if path := found():
        return path
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("no chromium, and only root on Debian can install it: apt-get install chromium")
    for command in (
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"chromium cannot be installed, {' '.join(command)}: {done.stderr.strip()[-300:]}")
    path = found()
    if path is None:
        pytest.skip("Debian has installed no chromium")
    return path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    with Browser(_installed(), tmp_path_factory.mktemp("profile")) as started:
        yield started

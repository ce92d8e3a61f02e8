"""Shared libraries that tests build from C, where there is a compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gridsched.systems.custom.library import HEADER

SOURCES = Path(__file__).parents[1] / "protocols"
"""Where the examples in C are."""

WARNINGS = ("-std=c11", "-Wall", "-Werror")

HEAD = '#include "gridsched.h"\n'

DECIDE = (
    "int64_t gridsched_decide(int64_t now, const gridsched_queued *queue, int64_t queued, "
    "const gridsched_running *running, int64_t count, const int64_t *idle, int64_t clusters, "
    "const double *parameters, int64_t number, gridsched_action *actions, int64_t room)"
)
"""What a function of decisions begins with."""

ABI = "int64_t gridsched_abi(void) { return GRIDSCHED_ABI; }\n"


def compiled(source: str, target: Path, *options: str) -> Path:
    """Program or library of C source text; the test is skipped without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run(
        [compiler, *WARNINGS, f"-I{HEADER.parent}", *options, "-x", "c", "-", "-o", str(target)],
        input=source,
        text=True,
        check=True,
    )
    return target


def library(source: str, target: Path, *options: str) -> Path:
    """Shared library of C source text."""
    return compiled(source, target, "-O2", "-shared", "-fPIC", *options)


def example(name: str, folder: Path) -> str:
    """Place of the library of an example."""
    return str(library((SOURCES / f"{name}.c").read_text(encoding="utf-8"), folder / f"lib{name}.so"))

"""Every public function has an example, and the examples of docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
REFERENCE = (REPOSITORY / "docs" / "reference.md").read_text(encoding="utf-8")
FUNCTIONS = re.findall(r"^\.\. autofunction:: ([\w.]+)", REFERENCE, re.MULTILINE)


def named(name: str) -> Any:
    """What a public name stands for, such as gridsched.plot.load."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, since examples write files."""
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(named(name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, f"{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=said.append)
    assert not said, "".join(said)

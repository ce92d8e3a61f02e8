"""Random tests draw the same cases in each run of the suite, and try again what a hunt has found."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import REPOSITORY
from tests.support import examples
from tests.support.examples import StoredExamples, store


def test_cases_do_not_depend_on_what_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    @given(st.integers())
    def draw(number: int) -> None:
        seen.append(number)

    draw()
    first = seen.copy()
    numbers = list(range(7_000_000_000, 7_000_000_200))
    (tmp_path / "some_numbers.py").write_text(f"NUMBERS = {numbers}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("some_numbers")
    seen.clear()
    draw()
    assert seen == first


def test_what_is_found_is_tried_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "EXAMPLES", tmp_path / "examples.json")
    (tmp_path / "examples.json").write_text("{}")
    seen: list[int] = []

    def check(database: StoredExamples, *phases: Phase) -> None:
        @given(st.integers(0, 10**6))
        @settings(database=database, phases=phases)
        def small(number: int) -> None:
            seen.append(number)
            assert number < 12_345

        small._hypothesis_internal_database_key = b"test_small"  # type: ignore[attr-defined]
        small()

    database = StoredExamples()
    with pytest.raises(AssertionError):
        check(database, Phase.generate, Phase.shrink)
    store("test_small", database.smallest("test_small"))
    seen.clear()
    with pytest.raises(AssertionError):
        check(StoredExamples(), Phase.reuse)
    assert set(seen) == {12_345}


def test_stored_examples_are_of_tests_that_exist() -> None:
    for test in examples.stored():
        file, name = test.split("[")[0].split("::")
        assert f"def {name}(" in (REPOSITORY / file).read_text(encoding="utf-8"), test

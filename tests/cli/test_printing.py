"""The form of tables."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gridsched.cli.printing import Times, print_blocks, quantity, table, with_interval


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Function that prints a table and gives its lines."""

    def run(columns: list[str], *rows: tuple[str, ...]) -> list[str]:
        print_blocks(table(columns, rows))
        return capsys.readouterr().out.splitlines()

    return run


def test_numbers_stand_to_the_right_and_words_to_the_left(lines: Callable[..., list[str]]) -> None:
    assert lines(
        ["name", "wait [s]", "change", "mean ±95%", "remark"],
        ("a", "1,234", "+1.5 h", "12.0 ±0.5", "none"),
        ("bcd", "-", "-20 min", "9.0 (8.5 to 12.0)", "2 of 3"),
    ) == [
        "name  wait [s]   change          mean ±95%  remark",
        "a        1,234   +1.5 h          12.0 ±0.5  none",
        "bcd          -  -20 min  9.0 (8.5 to 12.0)  2 of 3",
    ]


def test_the_first_column_has_names(lines: Callable[..., list[str]]) -> None:
    assert lines(["job", "n"], ("1", "1"), ("10", "10")) == ["job   n", "1     1", "10   10"]


def test_a_table_without_rows_and_names_that_command_the_terminal(lines: Callable[..., list[str]]) -> None:
    assert lines(["a\x1b[31m", "b"]) == ["a\N{REPLACEMENT CHARACTER}[31m  b"]


def test_times_in_seconds_and_for_people() -> None:
    plain, human = Times(human=False), Times(human=True)
    assert (plain.header("wait"), human.header("wait")) == ("wait [s]", "wait")
    assert (plain.text(5400), human.text(5400)) == ("5,400", "1.5 h")
    assert (plain.change(-5400), human.change(-5400)) == ("-5,400", "-1.5 h")
    assert (plain.change(60), human.change(60)) == ("+60", "+1 min")
    for times in (plain, human):
        assert times.text(math.nan) == times.change(math.nan) == "-"


def test_intervals() -> None:
    assert with_interval("5", 5, 3, 7, quantity) == "5 ±2"
    assert with_interval("5", 5, 4, 7, quantity) == "5 (4 to 7)"
    assert with_interval("5", 5, math.nan, math.nan, quantity) == "5"
    assert with_interval("1 h", 3600, 1800, 5400, Times(human=True).text) == "1 h ±30 min"

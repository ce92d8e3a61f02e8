"""What is printed: tables, facts, numbers, and what takes its time."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from gridsched.workloads import Workload

UNKNOWN_TEXT = "-"
"""What stands for a number that is not known."""

_UNLIMITED_WIDTH = 100_000


def print_blocks(*blocks: Table | str) -> None:
    """Print tables and lines with blank lines between; without a terminal, lines are as long as they must."""
    from rich.console import Console

    width = None if _to_terminal() else _UNLIMITED_WIDTH
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        for block in blocks:
            console.print(block)
            console.print()
    lines = [line if _to_terminal() else line.rstrip() for line in capture.get().splitlines()]
    print(*lines[:-1], sep="\n", flush=True)


def _to_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[str], Any]]:
    """Say on the terminal, besides the output, what takes its time; the function says it of another thing."""
    from rich.console import Console

    with Console(stderr=True, markup=False).status(printable(what)) as status:
        yield lambda other: status.update(printable(other))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = True) -> Table:
    """Table with a name in the first column and numbers in the others, or only names."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD if _to_terminal() else None,
        show_edge=False,
        pad_edge=False,
        collapse_padding=_to_terminal(),
    )
    for index, column in enumerate(columns):
        # In a narrow terminal cells are continued below: numbers must not lose digits.
        table.add_column(column, justify="right" if index and right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Names and what is said of each."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for fact in facts:
        table.add_row(*map(printable, fact))
    return table


def printable(text: str) -> str:
    """Text without control characters, which a log could use to command the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def quantity(value: float, digits: int = 0) -> str:
    """A number with thousands separators, or that it is not known."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else UNKNOWN_TEXT


def with_interval(centre: str, mean: float, low: float, high: float, digits: int = 0) -> str:
    """A mean with half the width of its interval, with both bounds where they are not equally far from it."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return centre
    if math.isclose(mean - low, high - mean, rel_tol=1e-6, abs_tol=1e-9):
        return f"{centre} ±{quantity(high - mean, digits)}"
    return f"{centre} ({quantity(low, digits)} to {quantity(high, digits)})"


def share(part: int, whole: int) -> str:
    """So many jobs of all."""
    return f"{part:,} of {whole:,} jobs ({part / whole:.1%})"


def jobs(number: int) -> str:
    """So many jobs, in words."""
    return f"{number:,} job{'' if number == 1 else 's'}"


def counts(workload: Workload) -> list[tuple[str, str]]:
    """What was left out and repaired."""
    both = (("left out", workload.left_out), ("repaired", workload.repaired))
    return [(f"{kind}: {reason}", f"{count:,}") for kind, counts in both for reason, count in counts.items()]


def size(count: int) -> str:
    """Megabytes."""
    return f"{count / 1e6:,.1f} MB"


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning without the place in the code."""
    say("warning", str(message))


def say(kind: str, message: str) -> None:
    """Print one line about the command on standard error."""
    print(f"gridsched: {kind}: {printable(' '.join(message.splitlines()))}", file=sys.stderr)

"""What is printed: tables, facts, numbers, and what takes its time."""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gridsched.units import duration

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
    """Say on the terminal, besides the output, what takes its time; the function says it of another thing.

    Compilation is reported once for each kernel, also without a terminal.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from gridsched.engine.kernel_cache import compilation, telling

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    console = Console(stderr=True)
    console.quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(printable(what), total=None)
        told: set[str] = set()

        def show(other: str) -> None:
            shown.update(task, description=printable(other))

        def tell(kernel: str) -> None:
            thing = shown.tasks[task].description
            if thing not in told:
                told.add(thing)
                say(thing, compilation(kernel))

        with telling(tell):
            yield show


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """The form of every table: units stand in the header, as in "wait [s]", and numbers to the right."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD if _to_terminal() else None,
        show_edge=False,
        pad_edge=False,
        collapse_padding=_to_terminal(),
    )
    cells = [[printable(cell) for cell in row] for row in rows]
    for index, column in enumerate(columns):
        right = index > 0 and all(_NUMBERS.fullmatch(row[index]) for row in cells)
        # In a narrow terminal cells are continued below: numbers must not lose digits.
        table.add_column(printable(column), justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    return table


_NUMBER = r"[+\-\N{MINUS SIGN}]?\d[\d,.]*[kMG%]?( (s|min|h|d))?"
_NUMBERS = re.compile(rf"-?|{_NUMBER}( {_NUMBER})?( ±{_NUMBER}| \({_NUMBER} to {_NUMBER}\))?")
"""A number, perhaps with a unit and an interval, none, or that it is not known."""


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


def with_interval(centre: str, mean: float, low: float, high: float, text: Callable[[float], str]) -> str:
    """A mean with half the width of its interval, with both bounds where they are not equally far from it."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return centre
    if math.isclose(mean - low, high - mean, rel_tol=1e-6, abs_tol=1e-9):
        return f"{centre} ±{text(high - mean)}"
    return f"{centre} ({text(low)} to {text(high)})"


@dataclass(frozen=True)
class Times:
    """How times are written: in seconds, or in the unit that fits."""

    human: bool

    def header(self, name: str, after: str = "") -> str:
        """Header of a column of times."""
        return f"{name}{'' if self.human else ' [s]'}{after}"

    def text(self, seconds: float, digits: int = 0) -> str:
        """A time, or that it is not known."""
        if not self.human:
            return quantity(seconds, digits)
        return duration(seconds) if math.isfinite(seconds) else UNKNOWN_TEXT

    def change(self, seconds: float, digits: int = 0) -> str:
        """A difference of times, with its sign."""
        sign = "+" if seconds >= 0 else "-"
        return f"{sign}{self.text(abs(seconds), digits)}" if math.isfinite(seconds) else UNKNOWN_TEXT


def share(part: int, whole: int) -> str:
    """A number of jobs out of all."""
    return f"{part:,} of {whole:,} jobs ({part / whole:.1%})"


def share_of(part: float) -> str:
    """A share that is more than nothing."""
    return f"{part:.1%}" if part >= 0.0005 else "less than 0.1%"


def jobs(number: int) -> str:
    """A number of jobs, in words."""
    return f"{number:,} job{'' if number == 1 else 's'}"


def counts(workload: Workload) -> list[tuple[str, str]]:
    """What was left out and repaired."""
    return counts_of(workload.left_out, workload.repaired)


def counts_of(left_out: Mapping[str, int], repaired: Mapping[str, int]) -> list[tuple[str, str]]:
    """Numbers of jobs that were left out and repaired, by reason."""
    both = (("left out", left_out), ("repaired", repaired))
    return [(f"{kind}: {reason}", f"{count:,}") for kind, counts in both for reason, count in counts.items()]


def megabytes(count: int) -> str:
    """Bytes in millions."""
    return f"{count / 1e6:,.1f}"


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning without the place in the code."""
    say("warning", str(message))


def say(kind: str, message: str) -> None:
    """Print one line about the command on standard error."""
    print(f"gridsched: {kind}: {printable(' '.join(message.splitlines()))}", file=sys.stderr)

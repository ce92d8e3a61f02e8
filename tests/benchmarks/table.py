"""The comparison that is printed at the end of a benchmark session."""

from __future__ import annotations

from dataclasses import dataclass, field

HEADINGS = ("what", "ours", "yardstick", "ratio", "target", "met")


@dataclass
class Table:
    """Rows of the comparison, in the order in which they were measured."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, what: str, ours: str, *, yardstick: str = "", ratio: str = "") -> None:
        """Add a row that has no target."""
        self.rows.append((what, ours, yardstick, ratio, "", ""))

    def add_target(
        self,
        what: str,
        ours: str,
        *,
        value: float,
        at_most: float | None = None,
        at_least: float | None = None,
        yardstick: str = "",
        ratio: str = "",
        unit: str = "",
    ) -> None:
        """Add a row whose `value` should be at most or at least what is given."""
        if at_most is not None:
            met, target = value <= at_most, f"<= {at_most:,g}{unit}"
        else:
            assert at_least is not None
            met, target = value >= at_least, f">= {at_least:,g}{unit}"
        self.rows.append((what, ours, yardstick, ratio, target, "yes" if met else "NO"))

    def lines(self) -> list[str]:
        """The rows under their headings, in columns."""
        rows = [HEADINGS, *self.rows]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEADINGS))]
        return [
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in cells
            ).rstrip()
            for cells in (enumerate(zip(row, widths, strict=True)) for row in rows)
        ]

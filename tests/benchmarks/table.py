"""The comparison that is printed at the end of a benchmark session."""

from __future__ import annotations

from dataclasses import dataclass, field

HEADINGS = ("what", "ours", "yardstick", "target", "met")


@dataclass
class Table:
    """Rows of the comparison, in the order in which they were measured."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(
        self,
        what: str,
        value: float,
        unit: str,
        *,
        digits: int = 0,
        at_most: float | None = None,
        at_least: float | None = None,
        note: str = "",
        yardstick: str = "",
    ) -> None:
        """Add a row, whose value should be at most or at least what is given, if anything is."""
        target = met = ""
        if at_most is not None:
            met, target = "yes" if value <= at_most else "NO", f"<= {at_most:,g} {unit}"
        elif at_least is not None:
            met, target = "yes" if value >= at_least else "NO", f">= {at_least:,g} {unit}"
        self.rows.append((what, f"{value:,.{digits}f} {unit}{note}", yardstick, target, met))

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

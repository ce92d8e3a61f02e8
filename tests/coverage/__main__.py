"""Measure all sources, and write the table of docs/statistics.md: `python -m tests.coverage [--write]`.

Takes some ten minutes on one core. Exit code 1 if an interval holds the truth too rarely.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.coverage import sources
from tests.coverage.measuring import as_markdown, false_pages, measured

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
RECORD = Path(__file__).with_name("coverage.csv")
COLUMNS = ["source", "interval", "redraws", "shown", "held", "least", "wrong"]

LEAST = 0.93
"""Share that intervals of nominally 95 % have to hold, within two standard errors of the count."""

BETWEEN = re.compile(r"(<!-- coverage -->\n).*(<!-- end of coverage -->)", re.DOTALL)

SOURCES: dict[str, sources.Source] = {
    "demo, M3": partial(sources.demo, 1.0, 4_000, 100_000),
    "demo, M3-busy": partial(sources.demo, 1.2, 10_000, 100_000),
    "M/M/1, ten logs of 1,000 jobs": partial(sources.queues, 1, 10_000, 1),
    "M/M/4, ten logs of 1,000 jobs": partial(sources.queues, 4, 10_000, 2),
    "Lublin, load 0.5": partial(sources.lublin, 0.5, 3_000, 1_000),
    "Lublin, load 0.7": partial(sources.lublin, 0.7, 3_000, 1_000),
    "Lublin, load 0.9": partial(sources.lublin, 0.9, 3_000, 1_000),
    "resampled log, ten resamples": partial(sources.resampled, 3_000, 50),
    "grid with a random scheduler": partial(sources.random_grid, 3_000, 5),
    "one log of M/M/1, load 0.5, 5,000 jobs": partial(sources.queue_logs, 0.5, 5_000, 1_000, 6),
    "one log of M/M/1, load 0.7, 20,000 jobs": partial(sources.queue_logs, 0.7, 20_000, 1_000, 7),
    "one log of M/M/1, load 0.9, 5,000 jobs": partial(sources.queue_logs, 0.9, 5_000, 1_000, 8),
    "one log of M/M/1, load 0.9, 40,000 jobs": partial(sources.queue_logs, 0.9, 40_000, 500, 9),
    "one log of Lublin, load 0.5, 10,000 jobs": partial(sources.lublin_logs, 0.5, 10_000, 400, 1_000),
    "one log of Lublin, load 0.7, 10,000 jobs": partial(sources.lublin_logs, 0.7, 10_000, 400, 1_000),
    "one log of Lublin, load 0.9, 10,000 jobs": partial(sources.lublin_logs, 0.9, 10_000, 400, 1_000),
}
EQUAL: dict[str, sources.Source] = {
    "six M/M/1 queues": partial(sources.equal_queues, 20_000, 10),
    "six runs of the grid with a random scheduler": partial(sources.random_grid, 4_000, 11, True),
}
"""Where nothing differs."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", help="record the numbers, and write the table")
    options.add_argument("--only", default="", help="sources whose name contains this")
    given = options.parse_args()
    rows: list[dict[str, Any]] = []
    for known, measure in ((SOURCES, measured), (EQUAL, false_pages)):
        for name, source in known.items():
            if given.only in name:
                begin = time.process_time()
                found = measure(name, source())
                rows += found
                seconds = time.process_time() - begin
                print(as_markdown(pd.DataFrame(found, columns=COLUMNS)), f"{seconds:.0f} s", flush=True)
    table = pd.DataFrame(rows, columns=COLUMNS)
    if given.write:
        write(table)
    error = np.sqrt(LEAST * (1 - LEAST) / table["redraws"].astype(np.float64))
    below = table[table["held"] < LEAST - 2 * error]
    if len(below):
        print("Hold the truth too rarely:", as_markdown(below), sep="\n")
    return int(len(below) > 0)


def write(table: pd.DataFrame) -> None:
    """Record these rows in place of older ones of the same sources, and write the table of the docs."""
    if RECORD.exists():
        older = pd.read_csv(RECORD)
        table = pd.concat([older[~older["source"].isin(table["source"])], table])
    order = {name: place for place, name in enumerate([*SOURCES, *EQUAL])}
    table = table[table["source"].isin(order)]
    table = table.sort_values("source", key=lambda names: names.map(order), kind="stable")
    table.to_csv(RECORD, index=False, float_format="%.4f")
    page = PAGE.read_text(encoding="utf-8")
    text = as_markdown(pd.read_csv(RECORD))
    PAGE.write_text(BETWEEN.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

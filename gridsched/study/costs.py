"""What the workflow jobs of a results folder took: time and memory, from the benchmarks of Snakemake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gridsched.errors import GridschedError

_COLUMNS = {"s": "elapsed", "cpu_time": "cpu_time", "max_rss": "memory"}
"""Columns of a benchmark: seconds from begin to end, seconds of processors, megabytes."""


def study_costs(results: str | Path) -> pd.DataFrame:
    """Time and memory by study.

    Parameters
    ----------
    results : path
        Folder of results, with the folder `benchmarks` that the workflow writes.

    Returns
    -------
    DataFrame
        One row a folder in `benchmarks`, which is a study, or "archive" or "rates" for what studies share, in
        the order of their names: jobs; elapsed and cpu_time, summed up, seconds; longest, seconds; memory,
        the most that one job held, MB. A job that was repeated counts with its last execution, drawing and
        the report not at all. What was too short to be measured counts as zero.

    Raises
    ------
    GridschedError
        If there are no benchmarks, or a file is none.
    """
    root = Path(results) / "benchmarks"
    files = sorted(root.rglob("*.tsv"))
    if not files:
        raise GridschedError(f"{root}: no benchmarks; name the folder of results of a workflow run")
    jobs = pd.DataFrame([_benchmark(file) for file in files])
    jobs["study"] = [file.relative_to(root).parts[0] for file in files]
    grouped = jobs.groupby("study")
    return pd.DataFrame(
        {
            "jobs": grouped.size(),
            "elapsed": grouped["elapsed"].sum(),
            "cpu_time": grouped["cpu_time"].sum(),
            "longest": grouped["elapsed"].max(),
            "memory": grouped["memory"].max(),
        }
    )


def _benchmark(file: Path) -> dict[str, float]:
    try:
        table = pd.read_csv(file, sep="\t", na_values="NA")
        values = table[list(_COLUMNS)].astype(np.float64).fillna(0).iloc[-1]
    except (ValueError, KeyError, IndexError) as error:
        raise GridschedError(f"{file}: not a benchmark of Snakemake ({error}); delete it") from None
    return {name: float(values[column]) for column, name in _COLUMNS.items()}

"""What the tasks of a results folder took: time and memory, from the sidecars of what they made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from gridsched.errors import GridschedError

_MEASURED = ("elapsed", "cpu_time", "memory")


def study_costs(results: str | Path) -> pd.DataFrame:
    """Time and memory by study.

    Parameters
    ----------
    results : path
        Folder of results of a workflow run.

    Returns
    -------
    DataFrame
        One row a study, or "rates" for what studies share, in the order of their names: tasks; elapsed and
        cpu_time, summed up, seconds; longest, seconds; memory, the most that a process held when it had made
        a dataset, MB. A task counts with its last execution, also one of an earlier configuration whose
        result is still in the folder; the start of processes, drawing and the report not at all. A run of a
        study that only another study has, such as one of readings, counts for the other one.

    Raises
    ------
    GridschedError
        If no task has left its costs, or a file is damaged.
    """
    files = sorted(Path(results).rglob("*.made.json"))
    others = _runs_for_others(Path(results))
    tasks = pd.DataFrame([costs for file in files if (costs := _costs(file, others))])
    if tasks.empty:
        raise GridschedError(f"{results}: no costs of tasks; name the folder of results of a workflow run")
    # A task may write several datasets; the last one knows what all took
    tasks = tasks.sort_values(["time", "elapsed"]).groupby(["study", "result"], as_index=False).last()
    grouped = tasks.groupby("study")
    return pd.DataFrame(
        {
            "tasks": grouped.size(),
            "elapsed": grouped["elapsed"].sum(),
            "cpu_time": grouped["cpu_time"].sum(),
            "longest": grouped["elapsed"].max(),
            "memory": grouped["memory"].max(),
        }
    )


def _runs_for_others(results: Path) -> dict[Path, str]:
    """Datasets of runs that are in the folder of a study and only in the table of another one: the other."""
    tables = {file.parent.name: _datasets(file, results) for file in sorted(results.glob("*/runs.csv"))}
    return {
        dataset: study
        for study, datasets in tables.items()
        for dataset in datasets
        if dataset not in tables.get(dataset.relative_to(results).parts[0], ())
    }


def _datasets(file: Path, results: Path) -> set[Path]:
    """Datasets of the runs of a study, as its table has them; none where the table is empty."""
    if not file.read_text(encoding="utf-8").strip():
        return set()
    try:
        return {results / dataset for dataset in pd.read_csv(file, usecols=["dataset"])["dataset"]}
    except (ValueError, TypeError) as error:
        raise GridschedError(f"{file}: damaged ({error}); delete it, and run again") from None


def _costs(file: Path, others: dict[Path, str]) -> dict[str, Any]:
    """What a sidecar says of its task; nothing if no task made its dataset."""
    try:
        made = json.loads(file.read_text(encoding="utf-8"))
        if "elapsed" not in made:
            return {}
        result = file.parent / file.name.partition(".")[0]
        return {
            "study": others.get(result.with_suffix(".nc"), str(made["study"])),
            "result": str(result),
            "time": str(made["time"]),
            **{name: float(made[name]) for name in _MEASURED},
        }
    except (ValueError, KeyError, TypeError) as error:
        raise GridschedError(f"{file}: damaged ({error}); delete it and its dataset, and run again") from None

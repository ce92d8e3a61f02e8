"""Carrying out tasks: each that is not done yet, one after the other, in one process."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from gridsched.errors import GridschedError
from gridsched.experiments import files
from gridsched.experiments.logging import reason
from gridsched.experiments.tasks import function_at
from gridsched.io import atomic_write, checksum

Call = Mapping[str, Any]
"""A task as plain values, see `tasks.Task.call`."""


def carry_out(calls: Sequence[Call], stamp: str | Path | None = None) -> None:
    """Make the results of tasks that are not there, or not whole.

    One task that fails does not stop those that do not need it.

    Parameters
    ----------
    calls : sequence of mappings
        The tasks, each after those that it uses.
    stamp : path, optional
        File to write once all results are there.

    Raises
    ------
    GridschedError
        If a task failed; with the reasons of all that did.
    """
    reasons: list[str] = []
    lost: set[str] = set()
    for call in calls:
        if all(files.is_whole(path) for path in call["outputs"]):
            print(f"{call['name']}: is there", flush=True)
            continue
        if lost.intersection(call["inputs"]):
            lost.update(call["outputs"])
            print(f"{call['name']}: left out, something that it needs failed", flush=True)
            continue
        begin = time.perf_counter()
        # where a library ends this process, the log ends with the task
        print(f"{call['name']}: ", end="", flush=True)
        try:
            _make(call)
        except Exception as error:  # whatever it is, the other tasks go on
            lost.update(call["outputs"])
            known = reason(error)
            if not known:
                traceback.print_exc()
            reasons.append(known or f"{call['name']}: {type(error).__name__}: {error}")
            print("failed", flush=True)
        else:
            print(f"{time.perf_counter() - begin:.1f} s", flush=True)
    if reasons:
        raise GridschedError("\n".join(dict.fromkeys(reasons)))
    if stamp is not None:
        with atomic_write(stamp) as temporary:
            text = json.dumps({call["name"]: call["outputs"] for call in calls}, indent=1)
            temporary.write_text(text + "\n", encoding="utf-8")


def _make(call: Call) -> None:
    """Carry out one task on files that are what they were when the work was divided."""
    for path, expected in call["checksums"].items():
        if checksum(path) != expected:
            raise GridschedError(f"{path}: changed while it was in use; run again")
    function = function_at(call["function"])
    with files.unchanged(*call["inputs"]), files.making(call["study"], call["name"]):
        function(**_typed(function, call["arguments"]))


def _typed(function: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values as the parameters of a function want them: configuration models, runs, tuples."""
    hints = get_type_hints(function, include_extras=True)
    return {name: TypeAdapter(hints[name]).validate_python(value) for name, value in values.items()}

"""The teaching page: conformance cases with their jobs, charts and accounts for each policy, and exercises.

The chart shows what happened, the account why: for one cluster each job's start is explained by
`gridsched.explanation`, for several the steps were worked out by hand. Policies and conventions with the same
schedule share a chart, and those with the same account an account.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from gridsched.conformance.cases import NONE, PASSES, Case, Part
from gridsched.conformance.running import run_case, schedule_of
from gridsched.explanation import Explanation, explain
from gridsched.figures import style
from gridsched.figures.gantt import gantt
from gridsched.figures.gantt_nodes import gantt_of_nodes, has_nodes
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.presentation.templates import write_page

_SYSTEMS = {
    "cluster": "one cluster",
    "superscheduler": "superscheduler",
    "self-scheduling": "self-scheduling",
    "calendars": "imprecise calendars",
    "dynamic-grid": "dynamic grid",
    "nodes": "nodes of one cluster",
}


_COLUMNS = {
    "number": "job",
    "submit_time": "submitted",
    "run_time": "run time",
    "requested_time": "requested time",
    "processors": "processors",
    "home": "submitted to",
    "reservation": "reserves",
    "memory": "memory a processor [MiB]",
    "gives_up_time": "cancelled if it waits at",
}
"""Columns of jobs, of which few cases have the last ones."""


def build_lesson(
    cases: Sequence[Case], target: str | Path, *, begin: Callable[[Case], Any] = lambda case: None
) -> None:
    """Write the page.

    Parameters
    ----------
    cases : sequence of Case
        The cases, in the order of the page.
    target : path
        HTML file to write.
    begin : function
        Called with each case before it is drawn.
    """
    views = []
    for case in cases:
        begin(case)
        views.append(case_view(case))
    write_page(target, "lesson.html.j2", cases=views)


def case_view(case: Case) -> dict[str, Any]:
    """Everything the page says of a case."""
    given = [key for key in _COLUMNS if any(getattr(job, key) not in ("", NONE) for job in case.jobs)]
    jobs = [[getattr(job, key) for key in given] for job in case.jobs]
    return {
        "case": case,
        "system": _SYSTEMS[case.kind],
        "platform": _platform(case),
        "header": [_COLUMNS[key] for key in given],
        "rows": [["" if value == NONE else str(value) for value in job] for job in jobs],
        "charts": charts(case),
    }


def _platform(case: Case) -> str:
    """The clusters in words."""
    if case.kind == "cluster":
        (cluster,) = case.clusters.values()
        overrun = f"; overruns: {case.overrun}" if case.outruns else ""
        return f"{_number(cluster.processors, 'processor')}{overrun}"
    clusters = [
        f"{name}: {_number(cluster.processors, 'processor')}"
        + ("" if cluster.memory is None else f", {cluster.memory} MiB")
        + (f", speed {cluster.speed:g}" if any(other.speed != 1 for other in case.clusters.values()) else "")
        for name, cluster in case.clusters.items()
    ]
    links = [f"{one} and {other} are neighbours" for one, other in case.links]
    options = [
        f"{key.replace('_', ' ')} {_shown(value)}" for key, value in case.options.items() if key not in _TOLD
    ]
    happens = [
        _TOLD[key](*(each if isinstance(each, list) else [each]))
        for key in _TOLD
        for each in case.options.get(key, ())
    ]
    return "; ".join([*clusters, *links, *options, *happens])


def _event(time: int, node: str, kind: str, *window: int) -> str:
    if window:
        return f"{kind} of {node} from {window[0]} to {window[1]}, announced at {time}"
    return f"{node} {kind} at {time}"


def _dependency(job: int, on: int, kind: str, delay: int = 0) -> str:
    return f"{job} waits for {on} ({kind}{f', {delay} s later' if delay else ''})"


_TOLD: dict[str, Callable[..., str]] = {
    "events": _event,
    "dependencies": _dependency,
    "failed": "job {} fails".format,
}
"""Options of cases on nodes that are lists, and how each of their entries reads."""


def _shown(value: Any) -> str:
    """An option as text; slots as count x duration."""
    if isinstance(value, list):
        return ", ".join(
            f"{'any number' if count is None else count} x {length} s" for count, length in value
        )
    return "none" if value is None else str(value)


# --- charts ---------------------------------------------------------------------------------------


def charts(case: Case) -> list[dict[str, Any]]:
    """A chart for each different schedule, in the order of the policies."""
    runs = {column: run_case(case, column) for column in case.columns}
    found = []
    for columns in _grouped(runs, lambda column: str(schedule_of(runs[column]))).values():
        run = runs[columns[0]]
        # policies that give one schedule; those with the same account together
        accounts = _grouped(columns, lambda column: tuple(_steps(case, column, runs[column])))
        found.append(
            {
                "labels": _labels(columns),
                "image": _image(run),
                "starts": _starts(case, run),
                "accounts": [{"labels": _labels(same), "steps": steps} for steps, same in accounts.items()],
            }
        )
    return found


def _grouped(columns: Iterable[str], key: Callable[[str], Hashable]) -> dict[Any, list[str]]:
    """Columns with the same key together, in order."""
    groups: dict[Any, list[str]] = {}
    for column in columns:
        groups.setdefault(key(column), []).append(column)
    return groups


_CONVENTIONS = {
    "instant": "a pass an instant",
    "event": "a pass an event",
    "arrivals-first": "a pass an event, arrivals first",
}


def _labels(columns: Sequence[str]) -> str:
    """Policies and variants by name; conventions are named where not all give the schedule."""
    texts = []
    for policy, same in _grouped(columns, lambda column: column.partition(":")[0]).items():
        told = [_CONVENTIONS[passes] for passes in (column.partition(":")[2] for column in same) if passes]
        texts.append(f"{policy} ({' or '.join(told)})" if 0 < len(told) < len(PASSES) else policy)
    return ", ".join(texts)


def _image(run: xr.Dataset) -> str:
    """Gantt chart as an address that holds it."""
    figure, numbers = gantt_of_nodes(run) if has_nodes(run) else gantt(run)
    with tempfile.TemporaryDirectory() as folder:
        svg, _, _ = style.save(figure, numbers, Path(folder) / "chart")
        return f"data:image/svg+xml;base64,{base64.b64encode(svg.read_bytes()).decode()}"


def _starts(case: Case, run: xr.Dataset) -> list[str]:
    """When and where each job ran."""
    schedule = schedule_of(run)
    texts = []
    for job in case.jobs:
        parts = schedule.parts[job.number]
        earliest = schedule.earliest.get(job.number)
        refused = "" if earliest is None else f" (reservation refused, earliest {earliest})"
        ran = ", ".join(_part(part, len(parts) > 1) for part in parts) or "does not run"
        texts.append(f"{job.number}: {ran}{refused}")
    return texts


def _part(part: Part, several: bool) -> str:
    where = f" on {part.cluster}" if part.cluster else ""
    how_many = f" with {part.processors}" if several else ""
    return f"{part.start_time} to {part.end_time}{where}{how_many}"


# --- accounts -------------------------------------------------------------------------------------


def _steps(case: Case, column: str, run: xr.Dataset) -> list[str]:
    if case.kind != "cluster":
        return list(case.variants[column].steps)
    policy = named_policy(column.partition(":")[0])
    told = [explain(run, index, policy) for index in range(run.sizes["job"])]
    numbers = run["job_number"].values.tolist()
    order = sorted(told, key=lambda each: (each.start_time, each.job))
    return [explained(each, policy, numbers) for each in order]


def explained(told: Explanation, policy: LocalPolicy, numbers: Sequence[int]) -> str:
    """Why a job started when it did, in words."""

    def jobs(indices: Iterable[int]) -> str:
        return " and ".join(str(numbers[index]) for index in indices)

    needs = _number(told.processors, "processor")
    asked = f"Job {numbers[told.job]} comes at {told.submit_time}, needs {needs}"
    passed = f", before {jobs(told.passed_over)}, ahead of it" if len(told.passed_over) else ""
    if not told.phases:
        return f"{asked} and starts at once{passed}."
    queue = f"{_number(told.waiting, 'job')} waiting, {told.ahead} of them ahead of it"
    holders = [
        f"{numbers[holder.job]} holds {holder.processors} (expected until {holder.expected_end})"
        for holder in told.holders
    ]
    is_reserved = told.reserved_for is not None and told.reserved_at is not None
    idle = told.seconds(first=False, enough=True)
    kept = {"none": "the first job blocks", "conservative": "others have reservations"}
    why = kept.get(policy.backfilling, "a reservation needs them")
    freed = f" when {jobs(told.freed_by)} ended" if len(told.freed_by) else ""
    sentences = [
        f"{asked}, and finds {told.free} free and {queue if told.waiting else 'nobody waiting'}.",
        f"At {told.reserved_at} it gets a reservation for {told.reserved_for}." if is_reserved else "",
        f"It waits while {' and '.join(holders)}." if holders else "",
        f"{jobs(told.overtaken_by)} behind it started before." if len(told.overtaken_by) else "",
        f"For {idle} s enough processors are free, but {why}." if idle else "",
        f"It starts at {told.start_time}{freed}{passed}.",
    ]
    return " ".join(each for each in sentences if each)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

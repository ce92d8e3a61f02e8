"""The teaching page: conformance cases with their jobs, charts and accounts for each policy, and exercises.

The chart shows what happened, the account why: for one cluster each job's start is explained by
`gridsched.explanation`, for several the steps were worked out by hand. Policies and conventions with the same
schedule share a chart, and those with the same account an account.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from gridsched import results
from gridsched.conformance.cases import NONE, PASSES, Case, Part
from gridsched.conformance.running import run_case, schedule_of
from gridsched.explanation import Explanation, explain_counted
from gridsched.figures import style
from gridsched.figures.gantt import gantt
from gridsched.figures.gantt_nodes import gantt_of_nodes, has_nodes
from gridsched.io import atomic_write, resource
from gridsched.policies.local import LocalPolicy, named_policy
from gridsched.presentation.templates import template

_SYSTEMS = {
    "cluster": "one cluster",
    "superscheduler": "superscheduler",
    "self-scheduling": "self-scheduling",
    "calendars": "imprecise calendars",
    "dynamic-grid": "dynamic grid",
    "nodes": "nodes of one cluster",
}


_FURTHER = {"memory": "memory a processor [MiB]", "gives_up_time": "cancelled if it waits at"}
"""Columns of jobs that few cases have."""


class Account(NamedTuple):
    """What happened step by step, under the policies of which this is true."""

    labels: str
    steps: list[str]


class Chart(NamedTuple):
    """A schedule, and the accounts of it."""

    labels: str
    image: str
    starts: list[str]
    accounts: list[Account]


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
    page = template("lesson.html.j2").render(
        cases=views,
        style=resource("reports", "page.css").read_text(encoding="utf-8"),
        source=results.provenance()["source"],
    )
    with atomic_write(target) as temporary:
        temporary.write_text(page, encoding="utf-8")


def case_view(case: Case) -> dict[str, Any]:
    """Everything the page says of a case."""
    homes = any(job.home for job in case.jobs)
    reservations = any(job.reservation != NONE for job in case.jobs)
    header = ["job", "submitted", "run time", "requested time", "processors"]
    header += [*(["submitted to"] if homes else []), *(["reserves"] if reservations else [])]
    given = {name for name in _FURTHER if any(getattr(job, name) != NONE for job in case.jobs)}
    further = {name: title for name, title in _FURTHER.items() if name in given}
    header += [*further.values()]
    rows = []
    for job in case.jobs:
        row = [str(value) for value in job[:5]]
        row += [job.home] if homes else []
        row += ["" if job.reservation == NONE else str(job.reservation)] if reservations else []
        row += ["" if getattr(job, name) == NONE else str(getattr(job, name)) for name in further]
        rows.append(row)
    return {
        "case": case,
        "system": _SYSTEMS[case.kind],
        "platform": _platform(case),
        "header": header,
        "rows": rows,
        "charts": list(charts(case)),
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


def charts(case: Case) -> Iterable[Chart]:
    """A chart for each different schedule, in the order of the policies."""
    runs = {column: run_case(case, column) for column in case.columns}
    groups: dict[str, list[str]] = {}
    for column, run in runs.items():
        groups.setdefault(str(schedule_of(run)), []).append(column)
    for columns in groups.values():
        run = runs[columns[0]]
        yield Chart(_labels(columns), _image(run), _starts(case, run), _accounts(case, columns, runs))


_CONVENTIONS = {
    "instant": "a pass an instant",
    "event": "a pass an event",
    "arrivals-first": "a pass an event, arrivals first",
}


def _labels(columns: Sequence[str]) -> str:
    """Policies and variants by name; conventions are named where not all give the schedule."""
    policies: dict[str, list[str]] = {}
    for column in columns:
        policy, _, passes = column.partition(":")
        policies.setdefault(policy, []).append(passes)
    return ", ".join(
        policy
        if len(passes) == len(PASSES) or not passes[0]
        else f"{policy} ({' or '.join(_CONVENTIONS[each] for each in passes)})"
        for policy, passes in policies.items()
    )


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


def _accounts(case: Case, columns: Sequence[str], runs: dict[str, xr.Dataset]) -> list[Account]:
    """Accounts of policies that give one schedule; those with the same account together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for column in columns:
        steps = _steps(case, column, runs[column])
        groups.setdefault(tuple(steps), []).append(column)
    return [Account(_labels(same), list(steps)) for steps, same in groups.items()]


def _steps(case: Case, column: str, run: xr.Dataset) -> list[str]:
    if case.kind != "cluster":
        return list(case.variants[column].steps)
    policy = named_policy(column.partition(":")[0])
    told = [explain_counted(run, index, policy) for index in range(run.sizes["job"])]
    numbers = run["job_number"].values.tolist()
    order = sorted(told, key=lambda each: (each.start_time, each.job))
    return [explained(each, policy, numbers) for each in order]


def explained(told: Explanation, policy: LocalPolicy, numbers: Sequence[int]) -> str:
    """Why a job started when it did, in words."""
    name = numbers[told.job]
    asked = f"Job {name} comes at {told.submit_time}, needs {_number(told.processors, 'processor')}"
    if not told.phases:
        passed = _passed(told, numbers)
        return f"{asked} and starts at once{passed}."
    sentences = [f"{asked}, and finds {told.free} free{_queue(told)}."]
    if told.reserved_for is not None and told.reserved_at is not None:
        sentences.append(f"At {told.reserved_at} it gets a reservation for {told.reserved_for}.")
    if told.holders:
        sentences.append(f"It waits while {_holding(told, numbers)}.")
    if len(told.overtaken_by):
        sentences.append(f"{_jobs(told.overtaken_by, numbers)} behind it started before.")
    idle = told.seconds(first=False, enough=True)
    if idle:
        kept = {"none": "the first job blocks", "conservative": "others have reservations"}
        why = kept.get(policy.backfilling, "a reservation needs them")
        sentences.append(f"For {idle} s enough processors are free, but {why}.")
    freed = f" when {_jobs(told.freed_by, numbers)} ended" if len(told.freed_by) else ""
    sentences.append(f"It starts at {told.start_time}{freed}{_passed(told, numbers)}.")
    return " ".join(sentences)


def _queue(told: Explanation) -> str:
    if not told.waiting:
        return " and nobody waiting"
    return f" and {_number(told.waiting, 'job')} waiting, {told.ahead} of them ahead of it"


def _holding(told: Explanation, numbers: Sequence[int]) -> str:
    return " and ".join(
        f"{numbers[holder.job]} holds {holder.processors} (expected until {holder.expected_end})"
        for holder in told.holders
    )


def _passed(told: Explanation, numbers: Sequence[int]) -> str:
    return f", before {_jobs(told.passed_over, numbers)}, ahead of it" if len(told.passed_over) else ""


def _jobs(indices: Iterable[int], numbers: Sequence[int]) -> str:
    return " and ".join(str(numbers[index]) for index in indices)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

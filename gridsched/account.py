"""The account of one job: why it started when it did, in words.

An account is a sequence of blocks: facts, lines and tables. The command line prints them as its own tables,
`str` of an explanation as plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import xarray as xr

from gridsched.explanation import DELAYS, REASONS, Explanation, Phase
from gridsched.policies.local import LocalPolicy
from gridsched.systems.base import QueueReason
from gridsched.workloads.clock import moment

_MAX_HOLDERS = 8
_MAX_NAMED = 8
_MAX_PHASES = 12
_MAX_DELAYING = 4
_SECONDS = {"d": 86400, "h": 3600, "min": 60}


@dataclass(frozen=True)
class Facts:
    """Names, and what is said of each."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Columns:
    """A table: names of columns, and rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = Facts | Columns | str


class Names(Protocol):
    """What jobs, users and times are called."""

    def job(self, index: int) -> str:
        """Name of a job by its index in the run."""

    def user(self, index: int) -> str:
        """Name of the user of a job."""

    def time(self, seconds: int) -> str:
        """Date and time."""


class RunNames:
    """Jobs and users by their numbers, times by the clock that the run states, else in seconds."""

    def __init__(self, run: xr.Dataset) -> None:
        self._jobs, self._users = run["job_number"].to_numpy(), run["user"].to_numpy()
        start = run.attrs.get("unix_start_time")
        self._start = None if start is None else int(start)
        self._zone = run.attrs.get("time_zone")

    def job(self, index: int) -> str:
        """Number of a job."""
        return str(self._jobs[index])

    def user(self, index: int) -> str:
        """Number of the user of a job."""
        return str(self._users[index])

    def time(self, seconds: int) -> str:
        """Date and time, or seconds."""
        return moment(seconds, self._start, self._zone)


def account(
    why: Explanation, run: xr.Dataset, policy: LocalPolicy, names: Names
) -> tuple[Facts, *tuple[Block, ...]]:
    """Blocks of the account of a job: what happened to it, then what it waited for.

    Parameters
    ----------
    why : Explanation
        What is known of the job.
    run : xarray.Dataset
        The run that it is from.
    policy : LocalPolicy
        The policy of the run.
    names : Names
        What jobs, users and times are called.
    """
    facts, waits = (_facts, _waits) if why.counted else (_facts_on_nodes, _waits_on_nodes)
    rows = [*_asked(why, run, policy, names), *facts(why, names), *_recorded(why)]
    others: list[Block] = [*_delays(why, names), *waits(why, names)]
    return Facts(rows), *others


def queue_account(
    why: Explanation, reasons: Sequence[QueueReason], scheduler: str, names: Names
) -> tuple[Facts, *tuple[Block, ...]]:
    """Blocks of the account of a job under a real scheduler, with the reasons that its queue would show.

    Parameters
    ----------
    why : Explanation
        What is known of the job.
    reasons : sequence of QueueReason
        Its waits with their reasons.
    scheduler : str
        What the scheduler is called.
    names : Names
        What jobs, users and times are called.
    """
    job, asked, _ = _asked(why, why.run, why.policy, names)
    preempted = list(_preempted(why, names))
    # the state of a cancelled job is that of one that is lost with its node
    facts = [row for row in _facts_on_nodes(why, names) if not (preempted and row[1] == _LOST)]
    rows = [job, asked, ("scheduler", scheduler), *facts, *preempted, *_recorded(why)]
    by = int(why.run["started_by"].values[why.job]) if "started_by" in why.run else -1
    if by >= 0:
        place = 1 + max(place for place, (name, _) in enumerate(rows) if name == "started")
        rows.insert(place, ("started by", "the backfill scheduler" if by else "the main loop"))
    blocks: list[Block] = []
    if reasons:
        seconds: dict[str, int] = {}
        for each in reasons:
            seconds[each.reason] = seconds.get(each.reason, 0) + each.end - each.start
        ordered = [
            (
                names.time(each.start),
                _span(each.end - each.start),
                each.reason,
                f"{len(each.ahead):,}: {_names_of(each.ahead, names)}" if each.ahead else "",
            )
            for each in reasons
        ]
        blocks = [
            "Reasons that the queue shows (None: no pass has looked at it yet):",
            _shares("reason", sorted(seconds.items(), key=lambda each: -each[1]), why),
            "In order:",
            _in_order(["from", "for", "reason", "ahead of it in its partition then"], ordered),
        ]
    return Facts(rows), *[*blocks, *_delays(why, names)]


_PREEMPTED = ("", "requeued", "cancelled", "suspended")
"""What happens to a preempted job, by the number in a run."""


def _preempted(why: Explanation, names: Names) -> Iterator[tuple[str, str]]:
    """When a job was preempted, for which other, and what happened to it."""
    if "preemption_job" in why.run:
        columns = [why.run[f"preemption_{name}"].values for name in ("job", "by", "time", "mode")]
        for job, by, time, mode in sorted(zip(*columns, strict=True), key=lambda each: int(each[2])):
            if job == why.job:
                yield "preempted", f"{names.time(int(time))} by {names.job(int(by))}, {_PREEMPTED[mode]}"


def as_text(blocks: Sequence[Block]) -> str:
    """Blocks as plain text, with columns below each other."""
    parts = []
    for block in blocks:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, Facts):
            parts.append("\n".join(_aligned(block.rows)))
        else:
            parts.append("\n".join(_aligned([block.columns, *block.rows])))
    return "\n\n".join(parts)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of rows whose cells are as wide as the widest of their column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = len(names) - _MAX_NAMED
    shown = ", ".join(names[:_MAX_NAMED])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _jobs(number: int) -> str:
    return f"{number:,} job{'' if number == 1 else 's'}"


def _names_of(indices: Iterable[int], names: Names) -> str:
    """Some jobs by name, and how many more there are."""
    return listed([names.job(int(index)) for index in indices])


def _asked(why: Explanation, run: xr.Dataset, policy: LocalPolicy, names: Names) -> list[tuple[str, str]]:
    """Which job it is, and what it asks for."""
    asked, estimate, run_time = (
        int(run[name].values[why.job]) for name in ("processors", "estimate", "run_time")
    )
    taken = f", takes {why.processors:,}" if why.counted and why.processors != asked else ""
    return [
        ("job", f"{names.job(why.job)} of user {names.user(why.job)}"),
        ("asks for", f"{asked:,} processors{taken}, {_span(estimate)}; runs for {_span(run_time)}"),
        ("policy", _policy(policy)),
    ]


def _recorded(why: Explanation) -> list[tuple[str, str]]:
    """How long it waited in the log, where that says so."""
    recorded = int(why.run["recorded_wait_time"].values[why.job])
    return [("recorded", f"the log has it wait for {_span(recorded)}")] if recorded >= 0 else []


def _facts(why: Explanation, names: Names) -> list[tuple[str, str]]:
    """What happened to a job of a cluster whose processors are only counted."""
    facts = [
        ("submitted", f"{names.time(why.submit_time)}: {_arrival(why)}"),
        ("expected then", _expected(why, names)),
    ]
    if why.reserved_at is not None and why.reserved_for is not None:
        facts.append(("reservation", _reservation(why, names)))
    elif why.phases and why.policy.backfilling == "easy":
        facts.append(("reservation", "none: it never came close enough to the front of the queue"))
    wait = _span(why.start_time - why.submit_time)
    facts.append(("started", f"{names.time(why.start_time)}, after {wait}: {_start(why, names)}"))
    if len(why.overtaken_by):
        overtakers = f"{_jobs(len(why.overtaken_by))} behind it: {_names_of(why.overtaken_by, names)}"
        facts.append(("overtaken by", overtakers))
    return facts


def _policy(policy: LocalPolicy) -> str:
    """What the policy does."""
    backfilling = {
        "none": "a job that does not fit blocks those behind it",
        "first_fit": "any later job that fits may start, and there are no reservations",
        "easy": "later jobs may start if they delay no reservation, which "
        + ("the first job has" if policy.reservations == 1 else f"the first {policy.reservations} jobs have"),
        "conservative": "every waiting job has a reservation, and none may be delayed",
    }
    return f"{policy.name}: queue order {policy.order}; {backfilling[policy.backfilling]}"


def _arrival(why: Explanation) -> str:
    free = f"{why.free:,} processors free"
    if not why.waiting:
        return f"{free}, no job waiting"
    return f"{free}, {_jobs(why.waiting)} waiting, {why.ahead:,} of them ahead of it"


def _expected(why: Explanation, names: Names) -> str:
    late = why.start_time - why.expected_start
    then = "as it did" if not late else f"it started {_span(abs(late))} {'later' if late > 0 else 'earlier'}"
    return (
        f"start at {names.time(why.expected_start)} without later arrivals and with exact estimates; {then}"
    )


def _reservation(why: Explanation, names: Names) -> str:
    assert why.reserved_at is not None
    assert why.reserved_for is not None
    where = "on arrival" if why.reserved_at == why.submit_time else f"made {names.time(why.reserved_at)}"
    gained = why.reserved_for - why.start_time
    if gained > 0:
        kept = f"it started {_span(gained)} before, since jobs ended earlier than estimated"
    elif gained:
        kept = f"it started {_span(-gained)} after{_held_up(why, why.reserved_for)}"
    else:
        kept = "kept to the second"
    return f"{where}, for {names.time(why.reserved_for)}; {kept}"


def _seconds_of(why: Explanation, since: int) -> dict[str, int]:
    """Seconds from a time on for which others had its place, by kind."""
    seconds = dict.fromkeys(DELAYS, 0)
    for delay in why.delays:
        seconds[delay.kind] += max(0, delay.end - max(since, delay.start))
    return {kind: count for kind, count in seconds.items() if count}


def _held_up(why: Explanation, since: int) -> str:
    """Who had its place from a time on, those who had it longest first."""
    seconds = sorted(_seconds_of(why, since).items(), key=lambda each: -each[1])
    told = [f"{_span(count)} {DELAYS[kind]}" for kind, count in seconds]
    return f"; its place had for {', for '.join(told)}" if told else ""


def _delays(why: Explanation, names: Names) -> list[Block]:
    """Table of who had its place while it waited, and for how long."""
    rows = []
    for kind, seconds in _seconds_of(why, why.submit_time).items():
        longest = list(why.delayed(kind).items())
        told = [f"{names.job(job)} ({_span(count)})" for job, count in longest[:_MAX_DELAYING]]
        rest = len(longest) - _MAX_DELAYING
        more = f" and {rest:,} more" if rest > 0 else ""
        rows.append((DELAYS[kind], _span(seconds), f"{seconds / why.wait_time:.1%}", ", ".join(told) + more))
    return ["Who had its place:", Columns(["had by", "for", "share", "most by"], rows)] if rows else []


def _freed(why: Explanation, names: Names) -> str:
    """Whose end or preemption made a start possible, as the end of a sentence."""
    if not len(why.freed_by):
        return ""
    ended = (why.run["end_time"].values[why.freed_by] <= why.start_time).all()
    return f", when {_names_of(why.freed_by, names)} {'ended' if ended else 'ended or was preempted'}"


def _start(why: Explanation, names: Names) -> str:
    freed = _freed(why, names)
    if len(why.passed_over):
        passed = f"{_jobs(len(why.passed_over))} ahead of it ({_names_of(why.passed_over, names)})"
        return f"backfilled past {passed}{freed}"
    return f"first in the queue{freed}" if why.phases else "at once, on free processors"


def _waits(why: Explanation, names: Names) -> list[Block]:
    """Tables of what it waited for where processors are only counted, and of the jobs that ran."""
    if not why.phases:
        return []
    kinds = [(first, enough) for first in (False, True) for enough in (False, True)]
    sums = [(_kind(*kind, why.policy), why.seconds(first=kind[0], enough=kind[1])) for kind in kinds]
    ordered = [(*_when(phase, names), _kind(phase.first, phase.enough, why.policy)) for phase in why.phases]
    blocks: list[Block] = [
        "Its wait in parts:",
        _shares("waited", sums, why),
        "In order:",
        _in_order(["from", "for", "what"], ordered),
    ]
    return [*blocks, f"Running {_when_held(why)}:", _holders(why, names)] if why.holders else blocks


def _shares(head: str, sums: Iterable[tuple[str, int]], why: Explanation) -> Columns:
    """Table of how long it waited for what, and which share of its wait that was."""
    rows = [(text, _span(seconds), f"{seconds / why.wait_time:.1%}") for text, seconds in sums if seconds]
    return Columns([head, "for", "share"], rows)


def _when(phase: Phase, names: Names) -> tuple[str, str]:
    """When a phase began, and how long it was."""
    return names.time(phase.start), _span(phase.end - phase.start)


def _in_order(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Columns:
    """Table of the phases, the last ones where there are many."""
    hidden = len(rows) - _MAX_PHASES
    if hidden > 0:
        rows = [(f"({hidden:,} earlier ones)", *[""] * (len(columns) - 1)), *rows[hidden:]]
    return Columns(columns, rows)


def _kind(first: bool, enough: bool, policy: LocalPolicy) -> str:
    """What a job waits for in a phase."""
    place = "first in the queue" if first else "behind others"
    if not enough:
        return f"{place}, too few processors free"
    kept = {"none": "the first job blocks", "conservative": "others have reservations for them"}
    return f"{place}, processors free, but {kept.get(policy.backfilling, 'a reservation needs them')}"


def _when_held(why: Explanation) -> str:
    if why.reserved_at is not None and why.reserved_at > why.submit_time:
        return "when its reservation was made"
    return "when it became the first" if why.first_at not in (None, why.submit_time) else "on its arrival"


def _holders(why: Explanation, names: Names) -> Columns:
    """Table of the jobs that ran, with their runtime estimates."""
    rows = []
    for holder in why.holders[:_MAX_HOLDERS]:
        late = holder.end - holder.expected_end
        rows.append(
            (
                names.job(holder.job),
                names.user(holder.job),
                f"{holder.processors:,}",
                names.time(holder.expected_end),
                names.time(holder.end),
                _span(abs(late)) + (" later" if late > 0 else " earlier") if late else "as expected",
            )
        )
    rest = why.holders[_MAX_HOLDERS:]
    if rest:
        held = sum(holder.processors for holder in rest)
        rows.append((f"{len(rest):,} more", "", f"{held:,}", "", "", ""))
    return Columns(["job", "user", "processors", "expected end", "end", "that is"], rows)


# --- on nodes -------------------------------------------------------------------------------------


def _facts_on_nodes(why: Explanation, names: Names) -> list[tuple[str, str]]:
    """What happened to a job where nodes matter, or jobs leave the queue or wait for others."""
    facts = [("submitted", names.time(why.submit_time))]
    on = _names_of(why.depends_on, names)
    if why.depends_on and why.eligible_time >= 0:
        facts.append(("eligible", f"{names.time(why.eligible_time)}, when {on} allowed it"))
    elif why.depends_on:
        facts.append(("eligible", f"never: it waited for {on}"))
    for number, start in enumerate(why.starts):
        freed = _freed(why, names) if number == 0 else ""
        again = "again " if number else ""
        facts.append(("started", f"{again}{names.time(start)}{freed}"))
    if why.nodes:
        nodes = [str(why.run["node_name"].values[node]) for node in why.nodes]
        facts.append(("on", listed(nodes)))
    if why.fate:
        facts.append(("in the end", _FATES[why.fate]))
    return [*facts, ("waited", f"{_span(why.wait_time)} in all")]


_LOST = "it was lost with its node"
_FATES = (
    "",
    "it was rejected",
    "its user gave up waiting",
    "it was never eligible",
    _LOST,
    "it waits for nodes that never return",
)


def _waits_on_nodes(why: Explanation, names: Names) -> list[Block]:
    """Tables of what it waited for: how long for each, and in order."""
    if not why.phases:
        return []
    sums = [(text, why.seconds(reason)) for reason, text in REASONS.items()]
    ordered = []
    for phase in why.phases:
        what = " and ".join(REASONS[reason] for reason in phase.reasons)
        ordered.append((*_when(phase, names), what, _names_of(phase.ahead, names)))
    return [
        "What it waited for:",
        _shares("waited for", sums, why),
        "In order:",
        _in_order(["from", "for", "waits for", "ahead of it"], ordered),
    ]


def _span(seconds: int) -> str:
    """A duration in its two largest units: 3725 -> "1 h 2 min"."""
    parts = []
    rest = seconds
    for unit, length in _SECONDS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}")
    if rest or not parts:
        parts.append(f"{rest} s")
    return " ".join(parts[:2])

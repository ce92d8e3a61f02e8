"""`gridsched explain`: why a job of a simulated schedule started when it did."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gridsched.cli.against import add_against, explain_record
from gridsched.cli.logs import Log, find_trace, moment, read_log
from gridsched.cli.options import (
    add_cluster,
    add_command,
    add_conventions,
    add_happenings,
    add_policy,
    add_trace,
    add_window,
    positive_integer,
)
from gridsched.cli.printing import facts_table, jobs, print_blocks, printable, progress, table
from gridsched.cli.runs import named_policies, prepared, run_policy
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray

    from gridsched.explanation import Explanation
    from gridsched.node_explanation import NodeExplanation
    from gridsched.policies.local import LocalPolicy
    from gridsched.traces.sacct import AccountingLog
    from gridsched.workloads import Workload

_MOST_HOLDERS = 8
_MOST_NAMED = 8
_MOST_PHASES = 12
_NO_JOB = "the log has no such job"
_SECONDS = {"d": 86400, "h": 3600, "min": 60}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "explain",
        "Explain when a job would have started under a policy: what it waited for, and who was before it.",
        "gridsched explain KTH-SP2-1996 1234 --policy easy",
        "gridsched explain our-export.txt 123_4 --timezone Europe/Rome --run 1",
        "gridsched explain SDSC-SP2-1998 4711 --policy easy --cancelled wait --preceding --events events.csv",
        "gridsched explain --against recorded/outcome.csv",
    )
    add_trace(parser, needed=False)
    parser.add_argument(
        "job", nargs="?", metavar="JOB", help="job number of the log, or job ID such as 123_4"
    )
    parser.add_argument(
        "--run",
        type=positive_integer,
        metavar="N",
        help="which run of a job that ran several times, from 1 (default: the last)",
    )
    add_policy(parser, several=False)
    add_cluster(parser.add_argument_group("cluster"))
    add_conventions(parser.add_argument_group("conventions"))
    add_window(parser.add_argument_group("jobs"), measured=False)
    add_happenings(parser.add_argument_group("what happens"))
    add_against(parser)

    def run(options: argparse.Namespace) -> None:
        if options.against is not None:
            if options.job is not None:
                parser.error("--against takes no TRACE")
            explain_record(options.against, options.trace, options)
        elif options.loop is not None or options.latency is not None:
            parser.error("--loop and --latency go with --against")
        elif options.trace is None or options.job is None:
            parser.error("name a TRACE and a JOB, or a record with --against")
        else:
            _explain(options)

    parser.set_defaults(command=run)


def _explain(options: argparse.Namespace) -> None:
    from gridsched.explanation import Explanation, explain

    find_trace(options.trace)
    policies = named_policies(options.policy, None)
    if len(policies) != 1:
        raise ConfigurationError(f"--policy {options.policy}: explain takes one policy")
    log = read_log(options)
    setting = prepared(log, options)
    workload, cluster = setting.workload, setting.cluster
    runs = _find_runs(log, workload, options)
    job = _one_of(runs, options)
    with progress(f"simulating {policies[0].name}"):
        run = run_policy(workload, cluster, policies[0], options)
        told = explain(run, job, policies[0])
    names = _Names(log, workload)
    several = [("run", _which_run(runs, job, workload, names))] if len(runs) > 1 else []
    if not isinstance(told, Explanation):
        print_blocks(
            facts_table([*several, *_facts_on_nodes(told, run, policies[0], names)]),
            *_waits_on_nodes(told, names),
        )
        return
    blocks: list[Any] = [facts_table([*several, *_facts(told, run, policies[0], names)])]
    if told.phases:
        blocks += ["Its wait in parts:", _phases(told, policies[0])]
        blocks += ["In order:", _timeline(told, policies[0], names)]
    if told.holders and told.phases:
        blocks += [f"Running {_when_held(told)}:", _holders(told, names)]
    print_blocks(*blocks)


def _find_runs(log: Log, workload: Workload, options: argparse.Namespace) -> list[int]:
    """Indices of the runs of the job with a number or ID among the jobs that are simulated."""
    import numpy as np

    text: str = options.job
    if log.accounting is None:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise ConfigurationError(f"job {text!r}: give a job number of the log")
        found = np.flatnonzero(workload.job_number == int(text))
        anywhere = bool((log.workload.job_number == int(text)).any())
    else:
        rows = log.accounting.rows(workload)
        wanted = text.encode()
        found = np.flatnonzero(log.accounting.identifiers[rows] == wanted)
        anywhere = bool((log.accounting.identifiers == wanted).any())
    if len(found):
        return [int(job) for job in found]
    if anywhere:
        why = _why_not(log, options)
    else:
        why = _NO_JOB if log.accounting is None else _absence(log.accounting, text)
    raise ConfigurationError(f"job {printable(text)}: not among the jobs that are simulated; {why}")


_PARTS = (
    ("_", "a job array", "name one of its tasks"),
    ("+", "a heterogeneous job", "name one of its components"),
)
"""What follows the number of a job that has parts, what such a job is, and what to do."""


def _absence(accounting: AccountingLog, text: str) -> str:
    """Why an export has no job with this ID that could be explained."""
    absent = [
        (one.decode("latin-1"), reason)
        for reason, lines in accounting.absent.items()
        for one in lines.tolist()
    ]
    reasons = [reason for one, reason in absent if one == text]
    if reasons:
        return f"the export has it, left out: {', '.join(dict.fromkeys(reasons))}"
    there = [one.decode("latin-1") for one in accounting.identifiers.tolist()]
    for separator, what, remedy in _PARTS:
        parts = [one for one in there if one.startswith(f"{text}{separator}")]
        idle = [f"{one} ({reason})" for one, reason in absent if one.startswith(f"{text}{separator}")]
        if parts:
            return f"it is {what}; {remedy}: {_listed(list(dict.fromkeys(parts)))}"
        if idle:
            return f"it is {what} of which nothing ran: {_listed(list(dict.fromkeys(idle)))}"
    return "the export has no such job"


def _listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    shown = ", ".join(map(printable, names[:_MOST_NAMED]))
    return f"{shown} and {more:,} more" if more > 0 else shown


def _one_of(runs: Sequence[int], options: argparse.Namespace) -> int:
    """The run that is wanted, of those of one job."""
    wanted: int = len(runs) if options.run is None else options.run
    if not 1 <= wanted <= len(runs):
        ran = "ran once" if len(runs) == 1 else f"ran {len(runs)} times"
        raise ConfigurationError(f"--run {wanted}: job {printable(options.job)} {ran}; give 1 to {len(runs)}")
    return runs[wanted - 1]


def _which_run(runs: Sequence[int], job: int, workload: Workload, names: _Names) -> str:
    """Which of several runs is explained, and when each was submitted."""
    times = "; ".join(
        f"{number} submitted {names.time(int(workload.submit_time[one]))}"
        for number, one in enumerate(runs, start=1)
    )
    return f"{runs.index(job) + 1} of {len(runs)} ({times}); choose with --run"


def _why_not(log: Log, options: argparse.Namespace) -> str:
    """What may have left out a job that the log has."""
    chosen = {"--month": options.month, "--jobs": options.jobs, "--partition": options.partition}
    given = [option for option, value in chosen.items() if value is not None]
    chosen_by = f"by {', '.join(given)}, or " if given else ""
    return f"it was left out, {chosen_by}by cleaning (see gridsched info {printable(str(log.path))})"


class _Names:
    """Jobs and times as the log writes them."""

    def __init__(self, log: Log, workload: Workload) -> None:
        self._log = log
        self._workload = workload
        self._rows = log.accounting.rows(workload) if log.accounting else None

    def job(self, index: int) -> str:
        """Job number or ID."""
        if self._log.accounting is None or self._rows is None:
            return str(self._workload.job_number[index])
        return str(self._log.accounting.identifiers[self._rows[index]].decode("latin-1"))

    def user(self, index: int) -> str:
        """Name or number of the user."""
        return self._log.name("user", int(self._workload.user[index]))

    def time(self, seconds: int) -> str:
        """Date and time."""
        return moment(self._workload, seconds)

    def jobs(self, indices: NDArray[np.int64]) -> str:
        """Some jobs by name, and how many more there are."""
        return _listed([self.job(index) for index in indices.tolist()])


def _facts(told: Explanation, run: xr.Dataset, policy: LocalPolicy, names: _Names) -> list[tuple[str, str]]:
    """What happened to the job."""
    job = told.job
    one = run.isel(job=job)
    run_time, estimate = int(one["run_time"]), int(one["estimate"])
    recorded = int(one["recorded_wait_time"])
    asked = int(one["processors"])
    taken = f", takes {told.processors:,}" if told.processors != asked else ""
    facts = [
        ("job", f"{names.job(job)} of user {names.user(job)}"),
        ("asks for", f"{asked:,} processors{taken}, {_span(estimate)}; runs for {_span(run_time)}"),
        ("policy", _policy(policy)),
        ("submitted", f"{names.time(told.submit_time)}: {_arrival(told)}"),
        ("expected then", _expected(told, policy, names)),
    ]
    if told.reserved_at is not None and told.reserved_for is not None:
        facts.append(("reservation", _reservation(told, policy, names)))
    elif told.phases and policy.backfilling == "easy":
        facts.append(("reservation", "none: it was never near enough to the front of the queue"))
    wait = _span(told.start_time - told.submit_time)
    facts.append(("started", f"{names.time(told.start_time)}, after {wait}: {_start(told, names)}"))
    if len(told.overtaken_by):
        overtakers = f"{jobs(len(told.overtaken_by))} behind it: {names.jobs(told.overtaken_by)}"
        facts.append(("overtaken by", overtakers))
    if recorded >= 0:
        facts.append(("recorded", f"the log has it wait for {_span(recorded)}"))
    return facts


def _policy(policy: LocalPolicy) -> str:
    """What the policy does."""
    backfilling = {
        "none": "a job that does not fit blocks those behind it",
        "first_fit": "any job behind the first that fits may start, and no place is kept for anyone",
        "easy": "jobs behind may start if they delay no reservation, which "
        + ("the first job has" if policy.reservations == 1 else f"the first {policy.reservations} jobs have"),
        "conservative": "every waiting job has a reservation, and none may be delayed",
    }
    return f"{policy.name}: queue order {policy.order}; {backfilling[policy.backfilling]}"


def _arrival(told: Explanation) -> str:
    free = f"{told.free:,} processors free"
    if not told.waiting:
        return f"{free}, nobody waiting"
    return f"{free}, {jobs(told.waiting)} waiting, {told.ahead:,} of them ahead of it"


def _expected(told: Explanation, policy: LocalPolicy, names: _Names) -> str:
    late = told.start_time - told.expected_start
    then = "as it did" if not late else f"it started {_span(abs(late))} {'later' if late > 0 else 'earlier'}"
    return (
        f"start at {names.time(told.expected_start)} if nothing came after it and all estimates held; {then}"
    )


def _reservation(told: Explanation, policy: LocalPolicy, names: _Names) -> str:
    assert told.reserved_at is not None
    assert told.reserved_for is not None
    where = "on arrival" if told.reserved_at == told.submit_time else f"made {names.time(told.reserved_at)}"
    gained = told.reserved_for - told.start_time
    if gained > 0:
        kept = f"it started {_span(gained)} before, since jobs ended earlier than estimated"
    elif gained:
        kept = f"it started {_span(-gained)} after, since jobs ran longer than estimated"
    else:
        kept = "kept to the second"
    return f"{where}, for {names.time(told.reserved_for)}; {kept}"


def _start(told: Explanation, names: _Names) -> str:
    freed = f", when {names.jobs(told.freed_by)} ended" if len(told.freed_by) else ""
    if len(told.passed_over):
        passed = f"{jobs(len(told.passed_over))} ahead of it ({names.jobs(told.passed_over)})"
        return f"backfilled past {passed}{freed}"
    return f"first in the queue{freed}" if told.phases else "at once, on free processors"


def _phases(told: Explanation, policy: LocalPolicy) -> Any:
    """Table of what it waited for."""
    wait = told.start_time - told.submit_time
    rows = []
    for first in (False, True):
        for enough in (False, True):
            seconds = told.seconds(first=first, enough=enough)
            if seconds:
                rows.append((_kind(first, enough, policy), _span(seconds), f"{seconds / wait:.1%}"))
    return table(["waited", "for", "share"], rows)


def _kind(first: bool, enough: bool, policy: LocalPolicy) -> str:
    """What a job waits for in a phase."""
    place = "first in the queue" if first else "behind others"
    if not enough:
        return f"{place}, too few processors free"
    kept = {"none": "the first job blocks", "conservative": "others have reservations for them"}
    return f"{place}, processors free, but {kept.get(policy.backfilling, 'a reservation needs them')}"


def _timeline(told: Explanation, policy: LocalPolicy, names: _Names) -> Any:
    """Table of the phases, the last ones where there are many."""
    rows = [
        (names.time(phase.start), _span(phase.end - phase.start), _kind(phase.first, phase.enough, policy))
        for phase in told.phases
    ]
    hidden = len(rows) - _MOST_PHASES
    if hidden > 0:
        rows = [(f"({hidden:,} earlier ones)", "", ""), *rows[hidden:]]
    return table(["from", "for", "what"], rows)


def _when_held(told: Explanation) -> str:
    if told.reserved_at is not None and told.reserved_at > told.submit_time:
        return "when its reservation was made"
    return "when it came to be first" if told.first_at not in (None, told.submit_time) else "on its arrival"


def _holders(told: Explanation, names: _Names) -> Any:
    """Table of the jobs that ran, with their runtime estimates."""
    rows = []
    for holder in told.holders[:_MOST_HOLDERS]:
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
    rest = told.holders[_MOST_HOLDERS:]
    if rest:
        held = sum(holder.processors for holder in rest)
        rows.append((f"{len(rest):,} more", "", f"{held:,}", "", "", ""))
    return table(["job", "user", "processors", "expected end", "end", "that is"], rows)


# --- on nodes -------------------------------------------------------------------------------------


def _facts_on_nodes(
    told: NodeExplanation, run: xr.Dataset, policy: LocalPolicy, names: _Names
) -> list[tuple[str, str]]:
    """What happened to a job where nodes matter, or jobs leave the queue or wait for others."""
    one = run.isel(job=told.job)
    asked, estimate, run_time = (int(one[name]) for name in ("processors", "estimate", "run_time"))
    facts = [
        ("job", f"{names.job(told.job)} of user {names.user(told.job)}"),
        ("asks for", f"{asked:,} processors, {_span(estimate)}; runs for {_span(run_time)}"),
        ("policy", _policy(policy)),
        ("submitted", names.time(told.submit_time)),
    ]
    on = _listed([names.job(other) for other in told.depends_on])
    if told.depends_on and told.eligible_time >= 0:
        facts.append(("eligible", f"{names.time(told.eligible_time)}, when {on} had let it"))
    elif told.depends_on:
        facts.append(("eligible", f"never: it waited for {on}"))
    for number, start in enumerate(told.starts):
        freed = ""
        if number == 0 and told.freed_by:
            freed = f", when {_listed([names.job(other) for other in told.freed_by])} ended"
        again = "again " if number else ""
        facts.append(("started", f"{again}{names.time(start)}{freed}"))
    if told.nodes:
        nodes = [str(run["node_name"].values[node]) for node in told.nodes]
        facts.append(("on", _listed(nodes)))
    if told.fate:
        facts.append(("in the end", _FATES[told.fate]))
    facts.append(("waited", f"{_span(told.wait_time)} in all"))
    recorded = int(one["recorded_wait_time"])
    if recorded >= 0:
        facts.append(("recorded", f"the log has it wait for {_span(recorded)}"))
    return facts


_FATES = (
    "",
    "it was rejected",
    "its user gave up waiting",
    "it was never eligible",
    "it was lost with its node",
    "it waits for nodes that never come back",
)


def _waits_on_nodes(told: NodeExplanation, names: _Names) -> list[Any]:
    """Tables of what it waited for: how long for each, and in order."""
    from gridsched.node_explanation import REASONS

    if not told.phases:
        return []
    sums = [(REASONS[reason], told.seconds(reason)) for reason in REASONS if told.seconds(reason)]
    rows = [(text, _span(seconds), f"{seconds / told.wait_time:.1%}") for text, seconds in sums]
    ordered = []
    for phase in told.phases:
        what = " and ".join(REASONS[reason] for reason in phase.reasons)
        ahead = _listed([names.job(other) for other in phase.ahead])
        ordered.append((names.time(phase.start), _span(phase.end - phase.start), what, ahead))
    hidden = len(ordered) - _MOST_PHASES
    if hidden > 0:
        ordered = [(f"({hidden:,} earlier ones)", "", "", ""), *ordered[hidden:]]
    return [
        "What it waited for:",
        table(["waited for", "for", "share"], rows),
        "In order:",
        table(["from", "for", "waits for", "ahead of it"], ordered),
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

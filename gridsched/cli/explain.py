"""`gridsched explain`: why a job of a simulated schedule started when it did."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gridsched.cli.against import add_against, explain_record
from gridsched.cli.logs import Log, find_trace, moment, read_log
from gridsched.cli.options import (
    add_command,
    add_policy,
    add_simulation,
    add_trace,
    policies_given,
    positive_integer,
)
from gridsched.cli.printing import facts_table, print_blocks, printable, progress, table
from gridsched.cli.runs import one_policy, prepared, run_policy
from gridsched.cli.sites import add_accounts, add_groups, add_site_file, configured, sites_of, use_site
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.table import Table

    from gridsched.account import Block
    from gridsched.traces.sacct import AccountingLog
    from gridsched.workloads import Workload

_NO_JOB = "the log has no such job"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "explain",
        "Explain the start of a job under a policy or Slurm: what it waited for, who was ahead of it.",
        "gridsched explain KTH-SP2-1996 1234 --policy easy",
        "gridsched explain our-export.txt 123_4 --timezone Europe/Rome --run 1",
        "gridsched explain SDSC-SP2-1998 4711 --policy easy --cancelled wait --preceding --events events.csv",
        "gridsched explain 123_4 --site our-site.yaml",
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
    site = parser.add_argument_group("site")
    add_site_file(site)
    add_accounts(site)
    add_groups(site)
    add_simulation(parser, measured=False)
    add_against(parser)

    def run(options: argparse.Namespace) -> None:
        if options.against is not None:
            if options.job is not None:
                parser.error("--against takes no TRACE")
            explain_record(options.against, options.trace, options)
        elif options.loop is not None or options.latency is not None:
            parser.error("--loop and --latency go with --against")
        else:
            if options.site is not None and options.job is None:
                options.trace, options.job = None, options.trace
            if options.job is None:
                parser.error("name a TRACE and a JOB, a JOB of a --site, or a record with --against")
            use_site(options)
            _explain(options)

    parser.set_defaults(command=run)


def _explain(options: argparse.Namespace) -> None:
    from gridsched.account import account, queue_account
    from gridsched.explanation import explain, explain_in_queue

    find_trace(options.trace)
    policy = one_policy(options, "explain")
    log = read_log(options)
    setting = prepared(log, options, configured(options, log))
    workload, cluster = setting.workload, setting.cluster
    runs = _find_runs(log, workload, options)
    job = _one_of(runs, options)
    names = LogNames(log, workload)
    if options.slurm_conf is not None and not policies_given(options):
        options.change = []
        ((name, site),) = sites_of(options, log, setting).items()
        chosen: dict[str, Any] = {key: getattr(options, key) for key in ("estimates", "kill", "seed")}
        assert site.cluster is not None
        with progress(f"simulating {name}"):
            why, reasons = explain_in_queue(workload, site.cluster, site.scheduler, job, **chosen)
        facts, *others = queue_account(why, reasons, f"Slurm as in {name}", names)
    else:
        with progress(f"simulating {policy.name}"):
            run = run_policy(workload, cluster, policy, options)
            why = explain(run, job, policy)
        facts, *others = account(why, run, policy, names)
    if len(runs) > 1:
        facts = replace(facts, rows=[("run", _which_run(runs, job, workload, names)), *facts.rows])
    print_blocks(*map(_shown, [facts, *others]))


def _shown(block: Block) -> Table | str:
    """A block of an account as the command line prints it."""
    from gridsched.account import Columns, Facts

    if isinstance(block, Facts):
        return facts_table(block.rows)
    return table(block.columns, block.rows) if isinstance(block, Columns) else block


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


_TASKS = re.compile(r"(?P<job>\d+)_\[(?P<tasks>[^\]%]*)(%\d+)?\]", re.ASCII)
"""Tasks of an array in one line, such as 9000_[1-4,7%2]."""


def _holds(tasks: str, task: int) -> bool:
    """Whether a list of tasks such as 1-4,8-16:2 has one."""
    for part in tasks.split(","):
        named = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip(), re.ASCII)
        if named:
            first, last, step = int(named[1]), int(named[2] or named[1]), int(named[3] or 1)
            if first <= task <= last and (task - first) % step == 0:
                return True
    return False


def _absence(accounting: AccountingLog, text: str) -> str:
    """Why an export has no job with this ID that could be explained."""
    from gridsched.account import listed

    absent = [
        (one.decode("latin-1"), reason)
        for reason, lines in accounting.absent.items()
        for one in lines.tolist()
    ]
    reasons = [reason for one, reason in absent if one == text]
    if reasons:
        return f"the export has it, left out: {', '.join(dict.fromkeys(reasons))}"
    number, _, task = text.partition("_")
    for one, reason in absent:
        tasks = _TASKS.fullmatch(one)
        if tasks and tasks["job"] == number and task.isdigit() and _holds(tasks["tasks"], int(task)):
            return f"the export has it only as one of the tasks {one}, left out: {reason}"
    there = [one.decode("latin-1") for one in accounting.identifiers.tolist()]
    for separator, what, remedy in _PARTS:
        parts = [one for one in there if one.startswith(f"{text}{separator}")]
        idle = [f"{one} ({reason})" for one, reason in absent if one.startswith(f"{text}{separator}")]
        rest = listed(list(dict.fromkeys(idle)))
        if parts:
            others = f"; nothing ran of {rest}" if idle else ""
            return f"it is {what}; {remedy}: {listed(list(dict.fromkeys(parts)))}{others}"
        if idle:
            return f"it is {what} of which nothing ran: {rest}"
    return "the export has no such job"


def _one_of(runs: Sequence[int], options: argparse.Namespace) -> int:
    """The run that is wanted, of those of one job."""
    wanted: int = len(runs) if options.run is None else options.run
    if not 1 <= wanted <= len(runs):
        ran = "ran once" if len(runs) == 1 else f"ran {len(runs)} times"
        raise ConfigurationError(f"--run {wanted}: job {printable(options.job)} {ran}; give 1 to {len(runs)}")
    return runs[wanted - 1]


def _which_run(runs: Sequence[int], job: int, workload: Workload, names: LogNames) -> str:
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


class LogNames:
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

"""`gridsched explain --against`: why a model of a real scheduler departs from what that recorded."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.cli.options import path
from gridsched.cli.printing import facts_table, jobs, print_blocks, printable, progress, table
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    from gridsched.systems.differences import StartDifference, StartDifferences

_MAX_ROWS = 40


def add_against(parser: argparse.ArgumentParser) -> None:
    """A recording, and how it is simulated."""
    group = parser.add_argument_group("a recorded schedule of Slurm (docs/slurm.md)")
    group.add_argument(
        "--against",
        type=path,
        metavar="OUTCOME.csv",
        help="explain every start that differs from this recording, whose folder also has slurm.conf and "
        "slurmctld.log. Do not give TRACE; JOB is optional",
    )
    group.add_argument(
        "--loop",
        choices=("closed", "open"),
        help="at the recorded passes, or at passes of the model's own, whose phase --seed draws "
        "(default: closed)",
    )
    group.add_argument(
        "--latency",
        type=int,
        metavar="MS",
        help="from the end of a job until its nodes can be used (default: those of the log, in open loop 8)",
    )


def explain_record(outcome: Path, job: str | None, options: argparse.Namespace) -> None:
    """Print how a recorded schedule and the model of its scheduler differ."""
    import gridsched as gs

    if options.latency is not None and options.latency < 0:
        raise ConfigurationError(f"--latency {options.latency}: give milliseconds from 0 on")
    with progress("simulating Slurm"):
        told = gs.explain_against(
            outcome, loop=options.loop or "closed", latency=options.latency, seed=options.seed
        )
    if job is None:
        print_blocks(facts_table(_facts(told)), *_differences(told))
        return
    found = [each for each in told.differences if each.job == job]
    if not found and job not in told.jobs:
        raise ConfigurationError(f"job {printable(job)}: {outcome} has no such job")
    if not found:
        print(f"Job {printable(job)} starts when it did, within {told.tolerance:g} s.")
        return
    print_blocks(facts_table(_one(found[0])))


def _facts(told: StartDifferences) -> list[tuple[str, str]]:
    """How many starts are the same."""
    number, different = len(told.jobs), len(told.differences)
    ran = number - told.never
    never = f"; {told.never} others start in neither" if told.never else ""
    facts = [
        ("recording", printable(str(told.folder))),
        ("loop", f"{told.loop}: passes {'as recorded' if told.loop == 'closed' else 'of the model'}"),
        ("same start", f"{ran - different} of {jobs(ran)}, within {told.tolerance:g} s{never}"),
        ("same nodes too", str(told.same_nodes)),
    ]
    if told.differences:
        first = told.differences[0]
        facts.append(("they part at", f"{_moment(first.first)}, with job {first.job}"))
    return facts


def _differences(told: StartDifferences) -> list[Any]:
    """Table of the jobs that differ."""
    if not told.differences:
        return ["No difference is left to explain."]
    rows = [
        (
            each.job,
            _start(each.recorded, each.recorded_by),
            _start(each.predicted, each.predicted_by),
            _later(each),
            each.why,
            ", ".join(each.follows) or "-",
        )
        for each in told.differences[:_MAX_ROWS]
    ]
    more = len(told.differences) - _MAX_ROWS
    return [
        "Jobs that start at another time, by the earlier start:",
        table(["job", "recorded", "here", "later [s]", "what kept it from the earlier start", "after"], rows),
        *([f"and {more} more: name a JOB"] if more > 0 else []),
        "The last column lists causes among the jobs that differ earlier.",
    ]


def _one(difference: StartDifference) -> list[tuple[str, str]]:
    """What is known of one job."""
    return [
        ("job", difference.job),
        ("recorded", _where(difference.recorded, difference.recorded_by, difference.recorded_on)),
        ("here", _where(difference.predicted, difference.predicted_by, difference.predicted_on)),
        ("why", difference.why),
        ("its nodes then", f"those of {', '.join(difference.holders)}" if difference.holders else "free"),
        ("follows from", ", ".join(difference.follows) or "no difference before it"),
    ]


def _where(start: float, by: str, nodes: tuple[str, ...]) -> str:
    on = f" on {', '.join(nodes)}" if nodes else ""
    return f"{_start(start, by)}{on}"


def _start(start: float, by: str) -> str:
    return f"{_moment(start)} {by}" if start >= 0 else "never"


def _later(difference: StartDifference) -> str:
    if min(difference.recorded, difference.predicted) < 0:
        return "-"
    return f"{difference.predicted - difference.recorded:+.3f}"


def _moment(seconds: float) -> str:
    """Time of day [UTC]."""
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S.%f}"[:-3]

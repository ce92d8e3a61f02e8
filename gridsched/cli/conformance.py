"""`gridsched conformance`: small cases with exact schedules, for other simulators and for learners."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from gridsched.cli.options import add_command, completed, path, policy_names, together
from gridsched.cli.printing import facts_table, print_blocks, printable, progress, table
from gridsched.cli.serve import add_peer, peer_of
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    from gridsched.conformance.answers import CaseVerdict
    from gridsched.conformance.cases import Case


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "conformance",
        "Hold another simulator against small cases with exact schedules, or learn from them.",
        "gridsched conformance export cases",
        "gridsched conformance check answers",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = add_command(actions, "list", "Print the cases and the convention that each pins down.")
    listed.set_defaults(command=_list)
    export = add_command(
        actions,
        "export",
        "Write descriptions, workloads (CSV and SWF) and empty answers into a new folder.",
    )
    export.add_argument("folder", metavar="DIR", type=path, help="folder to write")
    export.set_defaults(command=_export)
    _add_check(actions)
    _add_run(actions)
    page = add_command(
        actions, "page", "Write a page with a chart, an account and exercises for each case and policy."
    )
    page.add_argument("target", metavar="FILE.html", type=path, help="file to write")
    page.set_defaults(command=_page)


def _add_check(actions: Any) -> None:
    check = add_command(
        actions,
        "check",
        "Compare answers DIR/NAME.csv with the schedules; exit code 1 if any differs.",
    )
    check.add_argument("folder", metavar="DIR", type=path, help="folder of answers")
    policy = check.add_argument(
        "--policy",
        action=together(),
        metavar="NAME[,NAME...]",
        help="policies, schemes or variants that are compared (default: all that are answered)",
    )
    completed(policy, policy_names)
    check.add_argument(
        "--passes",
        choices=("instant", "event", "arrivals-first"),
        help="when the simulator makes scheduling passes (default: as its columns say)",
    )
    check.add_argument(
        "--overrun",
        choices=("doubling", "increments"),
        help="how it moves the expected end of a job that exceeds its estimate: leave out cases where "
        "jobs do so with the other one",
    )
    check.set_defaults(command=_check)


def _add_run(actions: Any) -> None:
    run = add_command(
        actions,
        "run",
        "Let a scheduler that speaks the protocol of Batsim answer the cases of one cluster; exit code 1 if "
        "any answer differs.",
        'gridsched conformance run answers --policy easy --command "pybatsim -s {socket} easyBackfill"',
        epilog="Jobs are not killed at their walltimes, so that cases in which they exceed them count. The "
        "scheduler is started for each case, and has a log for each: --log peer.log makes peer-CASE.log.",
    )
    run.add_argument("folder", metavar="DIR", type=path, help="folder to write, for its answers")
    policy = run.add_argument("--policy", required=True, metavar="NAME", help="the policy that it is to be")
    completed(policy, policy_names)
    run.add_argument(
        "--passes",
        choices=("instant", "event", "arrivals-first"),
        default="instant",
        help="whether it makes a pass for a whole message, or one for each event of it (default: instant)",
    )
    add_peer(run.add_argument_group("scheduler"))
    run.set_defaults(command=_run, overrun=None)


def _run(options: argparse.Namespace) -> int:
    from gridsched.cli.targets import check_folder, writing_folder
    from gridsched.conformance.cases import read_cases
    from gridsched.conformance.running import answer_case

    check_folder(options.folder, ())
    column = f"{options.policy}:{options.passes}"
    cases = [case for case in read_cases() if case.kind == "cluster" and column in case.columns]
    if not cases:
        raise ConfigurationError(f"no case of one cluster has the policy {options.policy!r}")
    scheduler = peer_of(options)
    with writing_folder(options.folder, ()) as folder, progress("answering"):
        for case in cases:
            if options.log:
                scheduler = scheduler.logged(options.log.with_stem(f"{options.log.stem}-{case.name}"))
            answer_case(case, scheduler, column, folder)
    return _compare(cases, options)


def _list(_: argparse.Namespace) -> None:
    from gridsched.conformance.cases import read_cases

    rows = [(case.name, case.kind, case.convention) for case in read_cases()]
    print_blocks(table(["case", "kind", "convention"], rows))


def _export(options: argparse.Namespace) -> None:
    from gridsched.cli.targets import check_folder, writing_folder
    from gridsched.conformance.cases import read_cases
    from gridsched.conformance.exporting import ENTRIES, export_cases

    check_folder(options.folder, ())
    cases = read_cases()
    with writing_folder(options.folder, ()) as folder:
        export_cases(cases, folder)
    answers = options.folder / "answers"
    print(
        f"wrote {len(cases)} cases to {printable(str(options.folder))} ({', '.join(ENTRIES)}); fill in the "
        f"answers, then: gridsched conformance check {printable(str(answers))}"
    )


def _page(options: argparse.Namespace) -> None:
    from gridsched.cli.targets import writing
    from gridsched.conformance.cases import read_cases
    from gridsched.presentation.lesson import build_lesson

    if options.target.is_dir():
        raise ConfigurationError(f"{options.target}: is a folder; name a file in it")
    with writing(options.target):
        options.target.parent.mkdir(parents=True, exist_ok=True)
    cases = read_cases()
    with progress("drawing") as report, writing(options.target):
        build_lesson(cases, options.target, begin=lambda case: report(f"drawing {case.name}"))
    print(f"wrote {len(cases)} cases to {printable(str(options.target))}")


def _check(options: argparse.Namespace) -> int:
    from gridsched.conformance.cases import read_cases

    return _compare(read_cases(), options)


def _compare(cases: list[Case], options: argparse.Namespace) -> int:
    """Compare the answers of a folder, and print what differs; the exit code."""
    from gridsched.conformance.answers import Asked, check_answers

    named = [name.strip() for name in (options.policy or "").split(",")] if options.policy else []
    verdicts = check_answers(cases, options.folder, Asked(named, options.passes, options.overrun))
    if not any(verdict.passed or verdict.differences for verdict in verdicts):
        raise ConfigurationError(
            f"{options.folder}: no answers to compare; it needs files such as {cases[0].name}.csv with a "
            "column job and columns such as easy:instant"
        )
    blocks: list[Any] = [table(["case", "passed", "failed", "missing", "remark"], map(_row, verdicts))]
    failed = [verdict for verdict in verdicts if verdict.differences]
    if failed:
        rows = [
            (verdict.case.name, each.column, str(each.job), each.expected, each.found)
            for verdict in failed
            for each in verdict.differences
        ]
        blocks += ["First difference of each column:", table(_DIFFERENCE, rows)]
        conventions = [(verdict.case.name, verdict.case.convention) for verdict in failed]
        blocks += ["What these cases pin down:", facts_table(conventions)]
    print_blocks(*blocks, _summary(verdicts))
    return 1 if failed else 0


_DIFFERENCE = ["case", "column", "job", "expected", "found"]


def _row(verdict: CaseVerdict) -> tuple[str, str, str, str, str]:
    remark = verdict.skipped
    if verdict.unknown:
        remark = f"not compared, no column: {', '.join(verdict.unknown)}"
    passed, failed, missing = map(str, (verdict.passed, len(verdict.differences), verdict.missing))
    return verdict.case.name, passed, failed, missing, remark


def _summary(verdicts: list[CaseVerdict]) -> str:
    """All in one line."""
    looked = [verdict for verdict in verdicts if not verdict.skipped]
    passed = sum(not verdict.differences and verdict.passed > 0 for verdict in looked)
    failed = sum(bool(verdict.differences) for verdict in looked)
    columns = sum(verdict.missing for verdict in verdicts)
    return (
        f"{passed} cases pass, {failed} fail, {len(verdicts) - passed - failed} were not compared; "
        f"{columns} columns are missing."
    )

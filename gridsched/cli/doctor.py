"""`gridsched doctor`: whether the installation has what it needs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from gridsched.cli.options import add_command
from gridsched.cli.printing import print_blocks, progress, table


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "doctor",
        "Check versions, compiler, caches, mirrors, disk and clock; the exit code is 1 if something fails.",
        "gridsched doctor",
        "gridsched doctor --json",
        "gridsched doctor --warm",
    )
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument(
        "--warm",
        action="store_true",
        help="compile the kernels of all schedulers ahead, with all cores: some minutes of CPU time, "
        "once for a version of gridsched",
    )
    parser.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    warmed = [_warm()] if options.warm else []
    from gridsched.diagnosis import diagnose

    checks = []
    with progress("looking") as report:
        for check in diagnose():
            report(f"looked at {check.name}")
            checks.append(check)
    failed = sum(check.state == "fail" for check in checks)
    if options.json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
        return min(failed, 1)
    rows = [(check.state, check.name, check.found) for check in checks]
    remedies = [(check.name, check.remedy) for check in checks if check.state != "ok"]
    blocks: list[Any] = [*warmed, table(["state", "what", "found"], rows)]
    if remedies:
        blocks += ["What to do:", table(["what", "remedy"], remedies)]
    else:
        blocks.append("Everything is as it should be.")
    print_blocks(*blocks)
    return min(failed, 1)


def _warm() -> str:
    """Compile ahead, saying how far it is; what was done."""
    from gridsched.warming import schedulers, warm

    wanted = schedulers()
    compiled = 0
    with progress(f"compiling: 0 of {len(wanted)} schedulers are ready") as report:
        for done, (name, kernels) in enumerate(warm(wanted), start=1):
            compiled += kernels > 0
            report(f"compiling: {done} of {len(wanted)} schedulers are ready, the last one {name}")
    return f"All {len(wanted)} schedulers have their kernels; {compiled} of them had to be compiled now."

"""`gridsched costs`: what a workflow run took."""

from __future__ import annotations

import argparse
from typing import Any

from gridsched.cli.options import add_command, add_human
from gridsched.cli.printing import Times, print_blocks, table


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "costs",
        "Print the time and the memory that each study of a workflow run took, without drawing.",
        "gridsched costs results/demo",
    )
    parser.add_argument("results", metavar="RESULTS", help="folder of results of the run")
    add_human(parser)
    parser.set_defaults(command=_costs)


def _costs(options: argparse.Namespace) -> None:
    from gridsched.experiments.costs import study_costs

    costs = study_costs(options.results)
    whole = {
        name: costs[name].max() if name in ("longest", "memory") else costs[name].sum() for name in costs
    }
    times = Times(options.human)
    rows = [_row(str(study), row, times) for study, row in costs.iterrows()]
    rows.append(_row("all", whole, times))
    columns = [
        "study",
        "tasks",
        times.header("time"),
        times.header("CPU time"),
        times.header("longest task"),
        "most memory [MB]",
    ]
    print_blocks(table(columns, rows))


def _row(study: str, cost: Any, times: Times) -> list[str]:
    return [
        study,
        f"{cost['tasks']:,.0f}",
        *(times.text(float(cost[name])) for name in ("elapsed", "cpu_time", "longest")),
        f"{cost['memory']:,.0f}",
    ]

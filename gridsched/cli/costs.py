"""`gridsched costs`: what a workflow run took."""

from __future__ import annotations

import argparse
from typing import Any

from gridsched.cli.options import add_command
from gridsched.cli.printing import print_blocks, table


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "costs",
        "Print the time and the memory that each study of a workflow run took, without drawing.",
        "gridsched costs results/demo",
    )
    parser.add_argument("results", metavar="RESULTS", help="folder of results of the run")
    parser.set_defaults(command=_costs)


def _costs(options: argparse.Namespace) -> None:
    from gridsched.experiments.costs import study_costs

    costs = study_costs(options.results)
    whole = {
        name: costs[name].max() if name in ("longest", "memory") else costs[name].sum() for name in costs
    }
    rows = [_row(str(study), row) for study, row in costs.iterrows()]
    rows.append(_row("all", whole))
    print_blocks(table(["study", "tasks", "minutes", "CPU minutes", "longest task", "most memory"], rows))


def _row(study: str, cost: Any) -> list[str]:
    return [
        study,
        f"{cost['tasks']:,.0f}",
        f"{cost['elapsed'] / 60:,.1f}",
        f"{cost['cpu_time'] / 60:,.1f}",
        f"{cost['longest']:,.0f} s",
        f"{cost['memory']:,.0f} MB",
    ]

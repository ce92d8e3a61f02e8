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
    )
    parser.add_argument("results", metavar="RESULTS", help="folder of results of the run")
    parser.set_defaults(command=_costs)


def _costs(options: argparse.Namespace) -> None:
    from gridsched.study.costs import study_costs

    costs = study_costs(options.results)
    rows = [
        _row(str(study), row["jobs"], row["elapsed"], row["cpu_time"], row["longest"], row["memory"])
        for study, row in costs.iterrows()
    ]
    whole = costs.sum()
    rows.append(
        _row(
            "all",
            whole["jobs"],
            whole["elapsed"],
            whole["cpu_time"],
            costs["longest"].max(),
            costs["memory"].max(),
        )
    )
    print_blocks(table(["study", "jobs", "minutes", "CPU minutes", "longest job", "most memory"], rows))


def _row(
    study: str, jobs: float, elapsed: float, cpu_time: float, longest: float, memory: float
) -> list[str]:
    return [
        study,
        f"{jobs:,.0f}",
        f"{elapsed / 60:,.1f}",
        f"{cpu_time / 60:,.1f}",
        f"{longest:,.0f} s",
        f"{memory:,.0f} MB",
    ]

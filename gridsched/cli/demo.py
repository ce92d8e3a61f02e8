"""`gridsched demo`: a first study, from the jobs to the page."""

from __future__ import annotations

import argparse
import contextlib
import io
from pathlib import Path
from typing import Any

from gridsched.cli.options import add_command, path
from gridsched.cli.printing import facts_table, print_blocks, progress
from gridsched.cli.targets import writing

_SEED = 1


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "demo",
        "Run a first study in this process: twelve jobs under every local policy, with figures and a page. "
        "It takes less than a minute, most of it to compile kernels, once for a version of gridsched.",
        "gridsched demo",
        "gridsched demo --folder first --no-open",
    )
    parser.add_argument(
        "--folder", type=path, default=Path("gridsched-demo"), metavar="DIR", help="default: gridsched-demo"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    parser.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> None:
    import webbrowser

    from gridsched.experiments.config import load_study
    from gridsched.io import resource
    from gridsched.presentation.page import build_report
    from gridsched.presentation.showing import run_study

    file = resource("config", "studies", "small.yaml")
    study = load_study(file)
    page = options.folder / "report.html"
    with writing(options.folder):
        options.folder.mkdir(parents=True, exist_ok=True)
    # What each task prints is of no interest here
    silence = contextlib.redirect_stdout(io.StringIO())
    with writing(options.folder), progress("simulating and drawing"), silence:
        run_study(study, options.folder, _SEED)
        build_report([study], page)
    print_blocks(
        facts_table(
            [
                ("study", str(file)),
                ("page", str(page)),
                ("figures", f"{options.folder / study.name / 'figures'}, each with its numbers as CSV"),
                ("dataset", str(options.folder / study.name / "study.nc")),
                ("next", "copy the study, change its jobs and policies, and name it in a configuration"),
            ]
        )
    )
    if not options.no_open:
        webbrowser.open(page.absolute().as_uri())

"""The program: its parser, and how commands end."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version

from gridsched.cli import (
    cache,
    compare,
    completion,
    conformance,
    costs,
    decide,
    demo,
    doctor,
    explain,
    fetch,
    forecast,
    info,
    serve,
    simulate,
    site,
)
from gridsched.cli.parsing import Parser
from gridsched.cli.printing import say, show_warning
from gridsched.errors import GridschedError

_MISTAKE, _INTERRUPTED, _NO_READER = 2, 130, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after the name of the program; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 after an error of the user, 130 after an interrupt, 1 if nobody reads the output,
        `doctor` found something that fails, or `conformance check` a difference.

    Raises
    ------
    SystemExit
        After `--help`, `--version` and wrong options (code 2), as argparse does.
    """
    if hasattr(sys.stdout, "reconfigure"):
        # Headers of logs may hold characters that the terminal's encoding does not have.
        sys.stdout.reconfigure(errors="replace")
    parser = _parser()
    if completion.ASKED in os.environ:
        completion.propose(parser)
    try:
        code = _run(parser.parse_args(arguments))
    except SystemExit:
        _flush()
        raise
    return code if _flush() else code or _NO_READER


def _run(options: argparse.Namespace) -> int:
    """Carry out a command; every error that a user can fix becomes one line."""
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        # the same words once, from wherever they come
        warnings.simplefilter("once", UserWarning)
        try:
            return options.command(options) or 0
        except GridschedError as error:
            return _fail(str(error))
        except BrokenPipeError:
            return _NO_READER
        except OSError as error:
            return _fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        except KeyboardInterrupt:
            return _INTERRUPTED


def _fail(message: str) -> int:
    say("error", message)
    return _MISTAKE


def _flush() -> bool:
    """Write out what was printed; whether it could be. A reader that went away is nothing to speak of."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _fail(f"standard output cannot be written ({error.strerror})")
        # The interpreter would try again when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="gridsched",
        description="Simulate and compare schedulers of parallel jobs.",
        examples=(
            "gridsched demo                          a first study: one figure, one page",
            "gridsched compare our-export.txt --timezone Europe/Rome --policy easy,conservative",
            "gridsched COMMAND --help                options of a command, with examples",
        ),
    )
    parser.add_argument("--version", action="version", version=f"gridsched {version('gridsched')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    parser.set_defaults(command=lambda _: parser.print_help())
    all_commands = (
        demo,
        info,
        simulate,
        compare,
        explain,
        forecast,
        serve,
        site,
        conformance,
        decide,
        fetch,
        cache,
        costs,
        doctor,
        completion,
    )
    for command in all_commands:
        command.add(commands)
    return parser

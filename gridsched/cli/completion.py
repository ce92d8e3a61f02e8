"""`gridsched completion`: what shells propose when the Tab key is pressed."""

from __future__ import annotations

import argparse
from typing import Any

from gridsched.cli.options import add_command

ASKED = "_ARGCOMPLETE"
"""Variable by which a shell asks the program for proposals instead of running it."""

_SHELLS = ("bash", "zsh", "fish")


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "completion",
        "Print the code that lets a shell complete commands, options, policies and logs.",
        "source <(gridsched completion bash)          in ~/.bashrc",
        "source <(gridsched completion zsh)           in ~/.zshrc, after compinit",
        "gridsched completion fish | source           in ~/.config/fish/config.fish",
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell")
    parser.set_defaults(command=_completion)


def _completion(options: argparse.Namespace) -> None:
    from argcomplete import shellcode

    print(shellcode(["gridsched"], shell=options.shell))


def propose(parser: argparse.ArgumentParser) -> None:
    """Answer the shell that asks for proposals, and end the process."""
    from argcomplete import autocomplete

    autocomplete(parser)

"""The parser of the command line: an error is one line, with what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gridsched.errors import meant

_MISTAKE = 2
_NEEDS_ONE = "needs a value; one that begins with - is written behind =, as in --jobs=-1"
_CHOICE = re.compile(r"invalid choice: '(?P<found>[^']*)' \(choose from (?P<known>.*)\)$", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """Parser that takes no abbreviated options, and says in one line what is wrong."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **details: Any) -> None:
        shown = "\n".join(f"  {example}" for example in examples)
        words = details.pop("epilog", None)
        parts = [_wrapped(words)] if words else []
        epilog = "\n\n".join([*parts, f"examples:\n{shown}"] if examples else parts)
        super().__init__(
            *arguments,
            **{
                "allow_abbrev": False,
                "formatter_class": argparse.RawDescriptionHelpFormatter,
                "epilog": epilog or None,
                **details,
            },
        )
        self.description = _wrapped(self.description or "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Arguments; an unknown option is an error of the command that it stands behind."""
        found, rest = super().parse_known_args(args, namespace)
        for unknown in rest:
            option = unknown.partition("=")[0]
            if option.startswith("-") and not re.fullmatch(r"-\d.*", option):
                self.error(f"unknown option {option}{meant(option, self._option_string_actions)}")
        if rest:
            self.error(f"{rest[0]!r} is one word too many")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """End with one line and exit code 2."""
        choice = _CHOICE.search(message)
        if choice:
            known = re.findall(r"[\w.-]+", choice["known"].replace("'", ""))
            instead = meant(choice["found"], known) or f"; use one of {', '.join(known)}"
            message = f"{message[: choice.start()]}unknown {choice['found']!r}{instead}"
        for word in ("COMMAND", "ACTION"):
            message = message.replace(f"argument {word}: unknown", f"unknown {word.lower()}")
        message = message.removeprefix("argument ").replace("expected one argument", _NEEDS_ONE)
        print(f"gridsched: error: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(_MISTAKE)


def _wrapped(text: str, width: int = 100) -> str:
    """Text in lines; the formatter leaves examples as they are, and would leave this too."""
    import textwrap

    return "\n".join(textwrap.wrap(text, width))

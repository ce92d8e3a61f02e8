"""What jobs ask for on command lines of sbatch, as the column SubmitLine has them."""

from __future__ import annotations

import re
from typing import NamedTuple

from gridsched.traces._slurm_values import parse_time_limit

_FLAGS = (
    " parsable exclusive hold H wait W quiet Q requeue no-requeue no-kill k oversubscribe s contiguous "
    "spread-job overcommit O use-min-nodes verbose v pty nice x11 test-only get-user-env reboot overlap "
    "exact no-shell immediate I label l unbuffered u propagate ignore-pbs "
)
"""Options that may stand without a value before the name of a script or command."""

_ANY = re.compile(
    rb"\s-(?:(?:-partition|p)[\s=]*[^\s,]+,|(?:-array|a)[\s=]*[^\s%]+%|-exclusive\b|-time-min\b|-licenses\b|L)"
)


class CommandLine(NamedTuple):
    """What a command line asks for that other columns do not have.

    `partitions` and `licences` are lists as they were written, `tasks` those of an array that may run at
    once, `least` is the shortest time limit [s]. Empty or 0 where it asks for no such thing.
    """

    partitions: bytes = b""
    licences: bytes = b""
    tasks: int = 0
    least: int = 0
    exclusive: bool = False


_NOTHING = CommandLine()


def asked_on(line: bytes) -> CommandLine:
    """What a command line asks for; what cannot be read is left aside."""
    if not _ANY.search(line):
        return _NOTHING
    options = options_of(line.decode("latin-1"))

    def value(*names: str) -> str:
        return next((options[name] for name in names if name in options), "").strip("\"'")

    partitions, most = value("p", "partition"), value("a", "array").partition("%")[2]
    return CommandLine(
        partitions=partitions.encode("latin-1") if "," in partitions else b"",
        licences=value("L", "licenses").encode("latin-1"),
        tasks=int(most) if most.isascii() and most.isdigit() else 0,
        least=parse_time_limit(value("time-min")),
        exclusive=options.get("exclusive") == "",
    )


def options_of(line: str) -> dict[str, str]:
    """Options of a command line of sbatch by their names without dashes, up to the name of the script."""
    found: dict[str, str] = {}
    # not at other white space: `|` within a word may have become a control character
    words = re.findall(r"[^ \t]+", line)[:0:-1]
    while words and words[-1].startswith("-") and words[-1].strip("-"):
        word = words.pop()
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
        else:
            name, sign, value = word[1], word[2:], word[2:].removeprefix("=")
        if not sign and f" {name} " not in _FLAGS and words and not words[-1].startswith("-"):
            value = words.pop()
        found[name] = value
    return found

"""Options that several commands share, and what their values may be."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gridsched.errors import meant

POLICIES = ("fcfs", "ff", "sjf", "easy", "sjbf", "lxf", "lxwf", "creasy", "conservative")
"""Names of the local policies that "all" stands for; the module that has them takes a second to load."""

PREDICTING = ("easy++",)
"""Names of those that predict run times."""


FORMATS = ("swf", "sacct", "slurm-table", "gpu-pods", "gpu-jobs", "batsim")
"""Names of the formats of logs."""

ASPECTS = ("nodes", "memory", "gpus", "partitions", "constraints", "limits", "cancellations", "dependencies")
"""What a simulation can leave out."""

ALL = "all"


def add_command(
    commands: Any, name: str, summary: str, *examples: str, **details: Any
) -> argparse.ArgumentParser:
    """Parser of a command, with examples of its use for its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary, examples=examples, **details
    )
    return parser


def add_trace(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """The log, and how to read it."""
    parser.add_argument(
        "trace",
        type=_named,
        nargs=None if needed else "?",
        metavar="TRACE",
        help="SWF file, export of sacct --parsable2, or another table of jobs (docs/formats.md), plain or "
        "compressed, or the name of a fetched log",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="format of the file (default: recognised by its first line)",
    )
    parser.add_argument(
        "--extra-fields",
        choices=("refuse", "ignore"),
        help="fields after the 18 of an SWF log (default: refuse)",
    )
    group = parser.add_argument_group("exports of sacct, and tables of jobs")
    group.add_argument(
        "--timezone",
        dest="time_zone",
        metavar="AREA/CITY",
        help="time zone of the times (default: UTC)",
    )
    group.add_argument("--unit", choices=("cpus", "nodes"), help="unit of processors (default: cpus)")
    group.add_argument(
        "--from",
        dest="begin",
        choices=("submit", "eligible"),
        help="time at which a job enters the queue: its submission, or when its dependencies, begin time and "
        "holds allow it (default: submit)",
    )


class _Together(argparse.Action):
    """Names of an option that is given several times add up: a later one must not drop those before it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given = getattr(namespace, f"_{self.dest}_given", None)
        together = values if given is None else f"{given},{values}"
        setattr(namespace, f"_{self.dest}_given", together)
        setattr(namespace, self.dest, together)


def together() -> type[argparse.Action]:
    """Action of an option whose values add up."""
    return _Together


def completed(action: argparse.Action, proposals: Callable[[str], Iterable[str]]) -> None:
    """Let shells propose values of an option or argument that begin with what was typed.

    argcomplete reads the attribute; argparse ignores it.
    """
    action.completer = lambda prefix, **_: proposals(prefix)  # type: ignore[attr-defined] # argcomplete looks for it there


def policy_names(_: str) -> Iterable[str]:
    """Names of the local policies."""
    return (*POLICIES, *PREDICTING)


def _policy_lists(prefix: str) -> list[str]:
    """Lists of policies that begin like this, each with one more name."""
    return _lists(prefix, (*policy_names(prefix), "all"))


def _lists(prefix: str, names: Iterable[str]) -> list[str]:
    """Lists of names that begin like this, each with one more name."""
    before, comma, _ = prefix.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in names if name not in given]


def add_policy(parser: argparse.ArgumentParser, *, several: bool = True, own: bool = False) -> None:
    """The policies, among them classes of the user's `own`, and their runtime estimates."""
    names = ", ".join("easy, easy(R) with R reservations" if name == "easy" else name for name in POLICIES)
    also = ", ".join(PREDICTING)
    policy = parser.add_argument(
        "--policy",
        action=_Together,
        default="easy",
        metavar="NAME[,NAME...]" if several else "NAME",
        help=f"{names}, {also}{f', or all of these but {also}' if several else ''} (default: easy)"
        + ("; FILE.py:CLASS or LIBRARY.so for a scheduler of your own" if own else ""),
    )
    completed(policy, _policy_lists if several else policy_names)
    add_estimates(parser)


def add_estimates(parser: argparse.ArgumentParser) -> None:
    """The runtime estimates that a scheduler has."""
    parser.add_argument(
        "--estimates",
        choices=("requested", "actual", "clairvoyant"),
        default="requested",
        help="runtime estimates of the scheduler: the requested times, the actual run times, or the "
        "larger of both (default: requested)",
    )


def policies_given(options: argparse.Namespace) -> bool:
    """Whether policies were named, not only taken by default."""
    return hasattr(options, "_policy_given")


def add_cluster(group: argparse._ArgumentGroup) -> None:
    """The cluster and its nodes."""
    group.add_argument(
        "--processors",
        type=positive_integer,
        metavar="N",
        help="processors (default: those of the log, else the largest number in use)",
    )
    group.add_argument(
        "--processors-per-node", type=positive_integer, default=1, metavar="N", help="default: 1"
    )
    group.add_argument(
        "--node-exclusive", action="store_true", help="a node runs one job only: jobs take whole nodes"
    )
    _add_nodes(group)
    group.add_argument(
        "--speed",
        type=positive_number,
        default=1.0,
        metavar="F",
        help="speed relative to the cluster of the log (default: 1)",
    )


def _add_nodes(group: argparse._ArgumentGroup) -> None:
    """Nodes of the cluster, and what of them counts."""
    group.add_argument(
        "--nodes",
        type=path,
        metavar="FILE",
        help="nodes, partitions and limits of the cluster as YAML, or the list of nodes of a trace of pods "
        "(default: those of the column NodeList of an export, each with the largest resources that jobs "
        "held there at once; else processors are interchangeable, and memory and GPUs do not count)",
    )
    group.add_argument(
        "--node-type",
        type=_node_type,
        action="append",
        metavar="COUNT,CORES[,MEMORY[,GPUS]]",
        help="equal nodes, with MEMORY in MiB (default: unlimited); may be repeated",
    )
    leave = group.add_argument(
        "--without",
        type=_aspects,
        action=_Together,
        default=None,
        metavar="NAME[,NAME...]",
        help=f"do not use this information of the log: {', '.join(ASPECTS)}, or {ALL}",
    )
    completed(leave, lambda prefix: _lists(prefix, (*ASPECTS, ALL)))


def add_conventions(group: argparse._ArgumentGroup) -> None:
    """What published simulators do differently."""
    group.add_argument("--kill", action="store_true", help="jobs end at their requested time")
    group.add_argument(
        "--overrun",
        choices=("doubling", "increments"),
        default="doubling",
        help="how the expected end of a job that exceeds its estimate is moved (default: doubling)",
    )
    group.add_argument(
        "--passes",
        choices=("instant", "event", "arrivals-first"),
        default="instant",
        help="one scheduling pass after all events of an instant, or after each event, also with the "
        "submissions of an instant before its ends, as in pyss (default: instant)",
    )


def add_events(group: argparse._ArgumentGroup) -> None:
    """Jobs that leave the queue or wait for others, and nodes that fail."""
    group.add_argument(
        "--cancelled",
        choices=("recorded", "wait", "patience"),
        help="jobs that were cancelled before they ran: as they are recorded, waiting until their users gave "
        "up, or this and users of all other jobs who give up after waits drawn from the log (default: wait "
        "for exports of sacct and tables of Slurm, recorded for others)",
    )
    group.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="seed of drawn patience (default: 0)"
    )
    group.add_argument(
        "--preceding",
        action="store_true",
        help="jobs wait for the preceding jobs that the log names (SWF fields 17 and 18)",
    )
    group.add_argument(
        "--events",
        type=path,
        metavar="FILE.csv",
        help="failures and maintenance of the nodes, which are node0, node1 ... where they have no names: a "
        "header and lines of time,node,kind,start,end, where kind is down, up, drain, resume or maintenance, "
        "and times are dates or seconds since the start of the log",
    )
    group.add_argument(
        "--requeue",
        choices=("place", "end", "lost"),
        default="place",
        help="treatment of a job whose node fails: it waits again at its place in the queue or at the "
        "end, or it is lost (default: place)",
    )


def add_window(group: argparse._ArgumentGroup, *, measured: bool = True) -> None:
    """The jobs of the log that are simulated, and measured."""
    windows = group.add_mutually_exclusive_group()
    windows.add_argument(
        "--month", metavar="YYYY-MM", help="jobs submitted in a month, in the log's time zone"
    )
    windows.add_argument(
        "--jobs", type=_range, metavar="FIRST:COUNT", help="COUNT jobs of the log from index FIRST, from 0"
    )
    group.add_argument(
        "--partition",
        metavar="NAME[,NAME...]",
        help="only jobs of these partitions (of an SWF log: their numbers)",
    )
    if measured:
        group.add_argument(
            "--warm-up",
            type=_fraction,
            default=0.0,
            metavar="F",
            help="fraction of the jobs, at the beginning, that are simulated but not measured (default: 0)",
        )


def add_simulation(parser: argparse.ArgumentParser, *, measured: bool = True) -> None:
    """Groups of what is simulated: the cluster, conventions, jobs and what happens."""
    add_cluster(parser.add_argument_group("cluster"))
    add_conventions(parser.add_argument_group("conventions"))
    add_window(parser.add_argument_group("jobs"), measured=measured)
    add_events(parser.add_argument_group("what happens"))


def add_handshake(group: Any) -> None:
    """How sessions of version 5 of Batsim begin."""
    group.add_argument(
        "--handshake",
        choices=("rc", "dev"),
        default="rc",
        help="how version 5 begins: as in its release candidates, or as in the versions before them "
        "(default: rc)",
    )


def add_human(parser: Any) -> None:
    """The unit of times."""
    parser.add_argument(
        "--human", action="store_true", help="times in the unit that fits, such as 1.5 h, instead of seconds"
    )


def _named(text: str) -> str:
    """Name of a file or log; an empty one, as of a variable that is not set, would be this folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def path(text: str) -> Path:
    """Path of a file or folder."""
    return Path(_named(text))


def positive_integer(text: str) -> int:
    """Whole number above 0 that an option is given."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def whole_number(text: str) -> int:
    """Whole number from 0 on that an option is given."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def names_of_aspects(text: str | None) -> list[str]:
    """What is to be left out, each once."""
    given = [name.strip() for name in (text or "").split(",")]
    return list(ASPECTS) if ALL in given else [name for name in ASPECTS if name in given]


def _aspects(text: str) -> str:
    """Names of what can be left out."""
    for name in (part.strip() for part in text.split(",")):
        if name not in (*ASPECTS, ALL):
            instead = meant(name, ASPECTS) or f"; use some of {', '.join(ASPECTS)}, or {ALL}"
            raise argparse.ArgumentTypeError(f"unknown {name!r}{instead}")
    return text


def _node_type(text: str) -> tuple[int | None, ...]:
    """Count, cores, memory [MiB] and GPUs of equal nodes; none where nothing is given."""
    match = re.fullmatch(r"(\d{1,9}),(\d{1,12})(?:,(\d{0,12})(?:,(\d{1,3}))?)?", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not written like 16,64,256000,4 (count, cores, MiB of memory, GPUs)"
        )
    return tuple(None if not part else int(part) for part in match.groups())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def positive_number(text: str) -> float:
    """Number above 0 that an option is given."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def _fraction(text: str) -> float:
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no fraction of the jobs: at least 0 and below 1")
    return number


def fraction_of_processors(text: str) -> float:
    """Share of the processors above 0 that an option is given."""
    number = _number(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share of the processors: above 0 and at most 1")
    return number


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,18}):(\d{1,18})", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not written like 1000:500 (index of the first, count)")
    return int(match[1]), int(match[2])

"""What a cluster consists of and what happens to it: nodes, partitions, limits, failures, maintenance."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, check_choice, check_number
from gridsched.io import atomic_write, read_text

PlacementName = Literal[
    "first_fit",
    "best_fit",
    "worst_fit",
    "packed",
    "spread",
    "weight",
    "random",
    "dot_product",
    "clustered",
    "fragments",
]
RequeueName = Literal["place", "end", "lost"]
EventName = Literal["down", "up", "drain", "resume", "maintenance"]
GroupName = Literal["user", "group", "executable", "queue", "partition"]


UNLIMITED_MEMORY = 2**51
"""Memory [KiB] of a node that does not say how much it has, in runs."""


class Outage(IntEnum):
    """Why a node was out; one that is drained goes on with its jobs."""

    DOWN = 0
    MAINTENANCE = 1
    DRAINED = 2


PLACEMENTS: dict[str, str] = {
    "first_fit": "nodes in the order in which they are given",
    "best_fit": "nodes on which the smallest part of cores and GPUs stays free",
    "worst_fit": "nodes on which the largest part of cores and GPUs stays free",
    "packed": "GPUs in use first, then idle GPUs of nodes in use, then idle nodes",
    "spread": "one part of a job a node, in the order of `worst_fit`, until all have one",
    "weight": "nodes of the smallest weight",
    "random": "nodes drawn at random, by the seed of the run",
    "dot_product": "nodes with the smallest product of what is free and what is asked for",
    "clustered": "nodes whose GPU jobs ask for as many GPUs as this one",
    "fragments": "nodes on which the fewest free GPUs become useless to typical jobs "
    "(fragmentation gradient descent)",
}
"""Which nodes a job gets, by name; ties go to the first node."""


@dataclass(frozen=True, kw_only=True)
class NodeType:
    """Equal nodes.

    Parameters
    ----------
    count : int
        How many there are.
    cores : int
        Processors of each.
    memory : int, optional
        Memory of each [MiB]; by default more than any job asks for.
    gpus : int
        GPUs of each.
    name : str
        The nodes are called `name0`, `name1` ... in results and events.
    weight : float
        Nodes of small weight are taken first under the placement "weight".
    names : sequence of str, optional
        Names of the nodes, where they have their own; their number is the count then.
    features : sequence of str, optional
        Words that constraints of jobs name, see `Cluster.constraints`.

    Raises
    ------
    ConfigurationError
        If a number is out of range.
    """

    count: int = 1
    cores: int
    memory: int | None = None
    gpus: int = 0
    name: str = "node"
    weight: float = 0.0
    names: Sequence[str] = ()
    features: Sequence[str] = ()

    def __post_init__(self) -> None:
        for key in ("names", "features"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        if self.names and self.count not in (1, len(self.names)):
            raise ConfigurationError(
                f"node type {self.name}: count is {self.count}, and it has {len(self.names)} names; "
                "leave count out"
            )
        if self.names:
            object.__setattr__(self, "count", len(self.names))
        for key, low, high in (("count", 1, 2**24), ("cores", 1, 2**31 - 1), ("gpus", 0, 62)):
            check_number(f"node type {self.name}: {key}", getattr(self, key), least=low, most=high)
        check_number(f"node type {self.name}: memory", self.memory, least=0, below=2**40)

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return list(self.names) or [f"{self.name}{index}" for index in range(self.count)]


@dataclass(frozen=True, kw_only=True)
class Partition:
    """Nodes that certain jobs may use, and what these may ask for; partitions may overlap.

    Parameters
    ----------
    number : int
        Number by which jobs name it, see `Cluster.partition_of`.
    nodes : sequence of str
        Names of node types or of single nodes; by default all nodes.
    time_limit : int, optional
        Longest requested time [s] of its jobs.
    most_processors, most_nodes : int, optional
        Most processors, and requested nodes, of a job.
    priority : int
        Jobs of partitions of higher priority come first in the queue.
    name : str
        Name in messages.
    """

    number: int
    nodes: Sequence[str] = ()
    time_limit: int | None = None
    most_processors: int | None = None
    most_nodes: int | None = None
    priority: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        for key in ("time_limit", "most_processors", "most_nodes"):
            check_number(f"partition {self.label}: {key}", getattr(self, key), least=1)

    @property
    def label(self) -> str:
        """Name in messages."""
        return self.name or str(self.number)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What the running jobs of a group may have together.

    Parameters
    ----------
    by : {"user", "group", "executable", "queue", "partition"}
        Column of the workload that makes the groups.
    of : int, optional
        The group that is limited; by default each one.
    jobs : int, optional
        Most running jobs.
    processors : int, optional
        Most processors.
    processor_minutes : int, optional
        Most processors times estimated minutes of the running jobs.
    """

    by: GroupName = "user"
    of: int | None = None
    jobs: int | None = None
    processors: int | None = None
    processor_minutes: int | None = None

    def __post_init__(self) -> None:
        check_choice("limit: by", self.by, get_args(GroupName))
        given = [self.jobs, self.processors, self.processor_minutes]
        if all(value is None for value in given) or any(value is not None and value < 1 for value in given):
            raise ConfigurationError("limit: give jobs, processors or processor_minutes, each 1 or more")


@dataclass(frozen=True, kw_only=True)
class NodeEvent:
    """Something that happens to a node.

    Parameters
    ----------
    time : int
        When [s]; of a maintenance window when it is announced.
    node : str
        Name of the node, or of a node type for all its nodes, or "*" for all nodes.
    kind : {"down", "up", "drain", "resume", "maintenance"}
        A node that is down kills its jobs; a drained one takes no more. During maintenance a node is as if it
        were down, and schedulers plan around it from its announcement on.
    start, end : int
        Of a maintenance window [s].
    """

    time: int
    node: str = "*"
    kind: EventName
    start: int = -1
    end: int = -1

    def __post_init__(self) -> None:
        where = f"event of {self.node} at {self.time} s"
        check_choice(f"{where}: kind", self.kind, get_args(EventName))
        if self.time < 0:
            raise ConfigurationError(f"{where}: give a time from 0 on")
        if self.kind == "maintenance" and not self.time <= self.start < self.end:
            raise ConfigurationError(
                f"{where}: maintenance from {self.start} to {self.end} s; give a window that ends after it "
                "starts and does not start before it is announced"
            )


# --- constraints ----------------------------------------------------------------------------------

_CONSTRAINT_TOKEN = re.compile(r"\s*([&|,()]|[^&|,()\s]+)")
_NUMBERED = re.compile(r"\s*(\([^()]*\)|[^&|,()\[\]*\s]+)\s*\*\s*0*([1-9]\d*)\s*")
_BETWEEN_NUMBERED = re.compile(r"[&,](?![^(]*\))")
_MAX_CHOICES = 62
"""Bits of a whole number."""

MOST_NUMBERED = 5
"""Features with numbers of nodes in one constraint."""


def nodes_with(expression: str, features: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Nodes that a constraint allows.

    Parameters
    ----------
    expression : str
        Names of features with `&` or `,` (and), `|` (or) and parentheses, from left to right; all nodes if it
        is empty. Of what stands once in brackets, `[a|b]`, all nodes of a job must have the same. With
        numbers, `a*2` or `[a*2&(b|c)*1]`, so many nodes have the feature; others of the job may have any, or
        in brackets one of those that are named.
    features : sequence of sequences of str
        The features of each node.

    Returns
    -------
    int64[m]
        1 for each node that it allows, 0 for others. With brackets a bit for each choice: a job may have
        nodes that have one of their bits in common. With numbers a bit for each of them, and one more for
        nodes that none of them is about, see `numbers_in`.

    Raises
    ------
    ConfigurationError
        If it is no such expression.

    Examples
    --------
    >>> from gridsched.nodes import nodes_with
    >>> nodes_with("ib&(big|huge)", [["ib"], ["ib", "big"], ["huge"]]).tolist()
    [0, 1, 0]
    >>> nodes_with("[ib|huge]", [["ib"], ["ib", "huge"], ["huge"], []]).tolist()
    [1, 3, 2, 0]
    >>> nodes_with("[ib*2&huge*1]", [["ib"], ["ib", "huge"], ["huge"], []]).tolist()
    [5, 7, 6, 0]
    """
    bits = np.zeros(len(features), np.int64)
    texts = [text for text, _ in _numbered(expression)]
    if texts:
        texts.append("|".join(texts) if "[" in expression else "")
    for choice, text in enumerate(texts or _choices_of(expression)):
        tokens, allowed = _CONSTRAINT_TOKEN.findall(text), np.ones(len(features), np.bool_)
        if tokens:
            allowed, rest = _nodes_of_either(tokens, [set(each) for each in features], expression)
            if rest:
                raise _wrong_constraint(expression)
        bits |= allowed.astype(np.int64) << choice
    return bits


def numbers_in(expression: str) -> tuple[int, ...]:
    """How many nodes a constraint wants with each of its features; none if it asks for no numbers.

    Examples
    --------
    >>> from gridsched.nodes import numbers_in
    >>> numbers_in("[ib*2&huge*1]"), numbers_in("ib&huge")
    ((2, 1), ())
    """
    return tuple(number for _, number in _numbered(expression))


def _numbered(expression: str) -> list[tuple[str, int]]:
    """The features of a constraint for which it says a number of nodes, and the numbers."""
    if "*" not in expression:
        return []
    text = expression.strip()
    inner = text[1:-1] if text[:1] + text[-1:] == "[]" else text
    found = [_NUMBERED.fullmatch(each) for each in _BETWEEN_NUMBERED.split(inner)]
    numbered = [(each[1], int(each[2])) for each in found if each]
    if len(numbered) < len(found) or (len(found) > 1 and inner is text):
        raise ConfigurationError(
            f"constraint {expression!r} asks for numbers of nodes otherwise than as in a*2 or [a*2&b*1], "
            "with a number for each feature; write it so"
        )
    if len(numbered) > MOST_NUMBERED:
        raise ConfigurationError(
            f"constraint {expression!r} has numbers of nodes for {len(numbered)} features; "
            f"use at most {MOST_NUMBERED}"
        )
    return numbered


def numbered_constraints(texts: Sequence[str]) -> tuple[dict[int, str], list[str]]:
    """Constraints by their numbers in a log, and those that are not modelled: these allow all nodes."""
    known: dict[int, str] = {}
    strange = []
    for number, text in enumerate(texts):
        try:
            nodes_with(text, ())
        except ConfigurationError:
            strange.append(text)
        else:
            known[number] = text
    return known, strange


def _choices_of(expression: str) -> list[str]:
    """A constraint with each of the choices of its brackets in their place; itself without any."""
    before, bracket, rest = expression.partition("[")
    inside, end, after = rest.partition("]")
    if (not bracket and "]" not in before) or not expression.strip():
        return [expression]
    choices, depth = [""], 0
    for sign in inside:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and depth == 0:
            choices.append("")
        else:
            choices[-1] += sign
    if not end or "[" in after or "]" in after:
        raise _wrong_constraint(expression)
    if len(choices) > _MAX_CHOICES:
        raise ConfigurationError(
            f"constraint {expression[:60]!r}... has {len(choices)} choices in brackets; "
            f"use at most {_MAX_CHOICES}"
        )
    return [f"{before}({each}){after}" for each in choices]


def _nodes_of_either(
    tokens: list[str], features: list[set[str]], expression: str
) -> tuple[NDArray[np.bool_], list[str]]:
    """Nodes of the expression at the beginning of some tokens, and the tokens after it."""
    allowed, rest = _nodes_of_one(tokens, features, expression)
    while rest and rest[0] in "&,|":
        other, after = _nodes_of_one(rest[1:], features, expression)
        allowed = allowed | other if rest[0] == "|" else allowed & other
        rest = after
    return allowed, rest


def _nodes_of_one(
    tokens: list[str], features: list[set[str]], expression: str
) -> tuple[NDArray[np.bool_], list[str]]:
    """Nodes of a feature, or of what stands in parentheses."""
    if not tokens or tokens[0] in "&|,)":
        raise _wrong_constraint(expression)
    if tokens[0] != "(":
        return np.array([tokens[0] in each for each in features], np.bool_), tokens[1:]
    allowed, rest = _nodes_of_either(tokens[1:], features, expression)
    if not rest or rest[0] != ")":
        raise _wrong_constraint(expression)
    return allowed, rest[1:]


def _wrong_constraint(expression: str) -> ConfigurationError:
    return ConfigurationError(
        f"constraint {expression!r} cannot be read; use names of features with &, |, parentheses, and "
        "brackets once, for one of several on all nodes"
    )


# --- events ---------------------------------------------------------------------------------------


def read_events(
    path: str | Path, *, unix_start_time: int | None = None, time_zone: str | None = None
) -> list[NodeEvent]:
    r"""Events of nodes from a CSV file with the columns time, node, kind, and start and end of maintenance.

    Parameters
    ----------
    path : path
        The file.
    unix_start_time : int, optional
        Unix time of time 0, so that times may also be dates such as 1998-06-03T12:00.
    time_zone : str, optional
        IANA name of the time zone of dates that name none; UTC if not given.

    Raises
    ------
    ConfigurationError
        If a line cannot be read: the message names file, line and column.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> _ = Path("events.csv").write_text("time,node,kind\n600,n0,down\n4200,n0,up\n")
    >>> [(event.time, event.kind) for event in gs.read_events("events.csv")]
    [(600, 'down'), (4200, 'up')]
    """
    zone = ZoneInfo(time_zone or "UTC")
    reader = csv.DictReader(read_text(path).splitlines())
    try:
        missing = {"time", "node", "kind"} - set(reader.fieldnames or ())
        if missing:
            raise ConfigurationError(f"{path}:1: no column {', '.join(sorted(missing))}; add it")
        return [_event_of(row, f"{path}:{reader.line_num}", unix_start_time, zone) for row in reader]
    except csv.Error as error:
        raise ConfigurationError(f"{path}:{reader.line_num}: is no CSV ({error}); repair it") from None


def write_events(events: Iterable[NodeEvent], path: str | Path) -> None:
    """Write events of nodes to a CSV file that `read_events` reads.

    Examples
    --------
    >>> import gridsched as gs
    >>> gs.write_events([gs.NodeEvent(time=600, node="n0", kind="down")], "events.csv")
    >>> gs.read_events("events.csv")[0].node
    'n0'
    """
    with atomic_write(Path(path)) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["time", "node", "kind", "start", "end"])
        for event in events:
            window = (event.start, event.end) if event.kind == "maintenance" else ("", "")
            writer.writerow([event.time, event.node, event.kind, *window])


def _event_of(row: dict[str, str | None], where: str, origin: int | None, zone: ZoneInfo) -> NodeEvent:
    times: dict[str, int] = {}
    for key in ("time", "start", "end"):
        text = (row.get(key) or "").strip()
        if text or key == "time":
            times[key] = seconds_on_clock(text, f"{where}: {key}", origin, zone)
    kind: Any = (row["kind"] or "").strip()
    try:
        return NodeEvent(node=(row["node"] or "").strip(), kind=kind, **times)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def seconds_on_clock(text: str, where: str, origin: int | None, zone: ZoneInfo) -> int:
    """Seconds on the clock of the submit times, from a number of them or a date; `where` is for messages.

    Raises
    ------
    ConfigurationError
        If it is neither, or the log does not say when it starts.
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{where} is {text!r}; give whole seconds since the start of the log, or a date such as "
            "1998-06-03T12:00"
        ) from None
    if origin is None:
        raise ConfigurationError(f"{where} is a date, and the log does not say when it starts; give seconds")
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()) - origin


def draw_failures(
    nodes: Sequence[str],
    *,
    until: int,
    mean_time_between: float,
    mean_repair: float,
    shape: float = 1.0,
    rack: int = 1,
    seed: int = 0,
) -> list[NodeEvent]:
    """Failures and repairs of nodes that are drawn.

    Parameters
    ----------
    nodes : sequence of str
        Names of the nodes.
    until : int
        Time [s] after which nothing fails.
    mean_time_between : float
        Mean time [s] from the end of a repair to the next failure of a node (of a rack, see `rack`).
    mean_repair : float
        Mean time [s] of a repair, exponentially distributed.
    shape : float
        Shape of the Weibull distribution of the times between failures: 1 is exponential, below 1 failures
        come in bursts.
    rack : int
        Nodes that fail together: so many neighbours in the list.
    seed : int
        Of what is drawn.

    Returns
    -------
    list of NodeEvent
        By time.

    Raises
    ------
    ConfigurationError
        If a number is not positive.

    Examples
    --------
    >>> import gridsched as gs
    >>> cluster = gs.Cluster(nodes=[gs.NodeType(count=4, cores=8)])
    >>> events = gs.draw_failures(
    ...     cluster.node_names, until=86_400, mean_time_between=40_000, mean_repair=3600, seed=1
    ... )
    >>> events[0].kind
    'down'
    """
    for key, value in (
        ("mean_time_between", mean_time_between),
        ("mean_repair", mean_repair),
        ("shape", shape),
        ("rack", rack),
    ):
        check_number(f"failures: {key}", value, above=0)
    scale = mean_time_between / math.gamma(1 + 1 / shape)
    events = []
    for first, stream in zip(
        range(0, len(nodes), rack), np.random.SeedSequence(seed).spawn(-(-len(nodes) // rack)), strict=True
    ):
        rng = np.random.default_rng(stream)
        now = 0.0
        while (now := now + scale * rng.weibull(shape)) < until:
            back = now + rng.exponential(mean_repair)
            for name in nodes[first : first + rack]:
                events.append(NodeEvent(time=int(now), node=name, kind="down"))
                events.append(NodeEvent(time=int(np.ceil(back)), node=name, kind="up"))
            now = back
    return sorted(events, key=lambda event: event.time)

"""Nodes, partitions and limits of a cluster from a file that its operator writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_args

from gridsched.errors import ConfigurationError, meant
from gridsched.io import read_yaml
from gridsched.nodes import Limit, NodeType, Partition, PlacementName, numbered_constraints

__all__ = ["SiteNodes", "read_nodes"]

Made = TypeVar("Made")

_COLUMNS = ("partition", "queue")
_WHOLE = {
    "count",
    "cores",
    "memory",
    "gpus",
    "time_limit",
    "most_processors",
    "most_nodes",
    "priority",
    "jobs",
    "processors",
    "processor_minutes",
}
_TEXTS = {"name", "by"}
_LISTS = {"nodes", "names", "features"}


@dataclass(frozen=True, kw_only=True)
class SiteNodes:
    """What a file says of a cluster, as `gridsched.Cluster` takes it.

    Parameters
    ----------
    nodes : tuple of NodeType
        Its nodes.
    partitions : tuple of Partition
        Partitions of them, with the numbers that jobs have in the column `partition_of`.
    partition_of : {"partition", "queue"}
        Column of the workload that names the partition of a job.
    limits : tuple of Limit
        Limits of groups.
    placement : str
        Which nodes jobs get.
    constraints : mapping of int to str
        Constraints of the log by number, where nodes have features.
    """

    nodes: tuple[NodeType, ...]
    partitions: tuple[Partition, ...] = ()
    partition_of: Any = "partition"
    limits: tuple[Limit, ...] = ()
    placement: PlacementName = "first_fit"
    constraints: Mapping[int, str] = field(default_factory=dict)


def read_nodes(path: str | os.PathLike[str], names: Mapping[str, Sequence[str]] | None = None) -> SiteNodes:
    r"""Read a YAML file with the keys nodes, partitions, partition_of, limits and placement.

    Entries have the parameters of `NodeType`, `Partition` (a name instead of the number) and `Limit`.

    Parameters
    ----------
    path : path-like
        The file.
    names : mapping of str to sequence of str, optional
        Names by number of "user", "group", "queue" and "partition", as `AccountingLog` has them: partitions
        and groups of limits may be called by these. Without names they are called by their numbers.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or a value makes no sense: the message names file and key.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> lines = ["nodes:", "  - { name: thin, count: 8, cores: 16 }", "  - { name: fat, cores: 64, gpus: 4 }"]
    >>> _ = Path("nodes.yaml").write_text("\n".join(lines))
    >>> site = gs.read_nodes("nodes.yaml")
    >>> gs.Cluster(nodes=site.nodes).processors
    192
    """
    file = Path(path)
    return _Reader(file, names or {}).site(read_yaml(file))


class _Reader:
    """Values of one file, and what is said of those that make no sense."""

    def __init__(self, file: Path, names: Mapping[str, Sequence[str]]) -> None:
        self._file = file
        self._names = names

    def site(self, content: Any) -> SiteNodes:
        """What the whole file says."""
        known = tuple(each.name for each in fields(SiteNodes) if each.name != "constraints")
        entries = self._mapping(content, "the file", known)
        column = self._word(entries.get("partition_of", "partition"), "partition_of", _COLUMNS)
        placement: Any = self._word(
            entries.get("placement", "first_fit"), "placement", get_args(PlacementName)
        )
        nodes = tuple(
            self._made(NodeType, entry, key, _keys(NodeType)) for key, entry in self._list(entries, "nodes")
        )
        if not nodes:
            raise self._mistake(
                "nodes", "has no entry; give the nodes of the cluster, such as {count: 8, cores: 64}"
            )
        node_names = [name for kind in nodes for name in kind.nodes]
        if len(set(node_names)) < len(node_names):
            raise self._mistake("nodes", "two nodes have one name; give each type a name of its own")
        partitions = tuple(
            self._partition(entry, key, place, column)
            for place, (key, entry) in enumerate(self._list(entries, "partitions"))
        )
        self._check_partitions(partitions, {*node_names, *(kind.name for kind in nodes)})
        limits = tuple(self._limit(entry, key) for key, entry in self._list(entries, "limits"))
        has_features = any(kind.features for kind in nodes)
        return SiteNodes(
            nodes=nodes,
            partitions=partitions,
            partition_of=column,
            limits=limits,
            placement=placement,
            constraints=numbered_constraints(self._names.get("constraint", ()))[0] if has_features else {},
        )

    def _partition(self, entry: Any, key: str, place: int, column: str) -> Partition:
        """A partition, with the number of its name; one that no job has gets a number that no job has."""
        allowed = _keys(Partition)
        values = self._mapping(entry, key, allowed)
        label = values.get("name")
        if label is None and "number" not in values:
            raise self._mistake(key, "has no name; give that of the log, or a number")
        number = values.pop("number", None)
        if number is None:
            known = self._names.get(column, ())
            number = self._number(column, label)
            number = max(len(known), 1_000_000) + place if number is None else number
        return self._made(Partition, values, key, allowed, number=self._whole(number, f"{key}.number"))

    def _check_partitions(self, partitions: Sequence[Partition], known: set[str]) -> None:
        for place, partition in enumerate(partitions):
            unknown = [name for name in partition.nodes if name not in known]
            if unknown:
                raise self._mistake(
                    f"partitions[{place}].nodes",
                    f"{unknown[0]!r} is no node and no node type of this file{meant(unknown[0], known)}",
                )
        numbers = [partition.number for partition in partitions]
        for place, number in enumerate(numbers):
            if number in numbers[:place]:
                raise self._mistake(f"partitions[{place}]", "has the name or number of another one")

    def _limit(self, entry: Any, key: str) -> Limit:
        """A limit, of one group by its name or number, or of each."""
        values = self._mapping(entry, key, _keys(Limit))
        group = values.pop("of", None)
        column = values.get("by", "user")
        number = None
        if group is not None:
            number = self._number(str(column), group)
            if number is None:
                known = self._names.get(str(column), ())
                raise self._mistake(
                    f"{key}.of", f"{group!r} is no {column} of the log{meant(str(group), known)}"
                )
        return self._made(Limit, values, key, _keys(Limit), of=number)

    def _number(self, column: str, label: Any) -> int | None:
        """Number of a name of a column of the log; a number stands for itself where there are no names."""
        known = self._names.get(column, ())
        if str(label) in known:
            return list(known).index(str(label))
        text = str(label)
        return int(text) if not known and text.isascii() and text.isdigit() else None

    def _made(
        self, kind: Callable[..., Made], entry: Any, key: str, allowed: Sequence[str], **more: Any
    ) -> Made:
        """Object of an entry, whose errors name the key."""
        values = self._mapping(entry, key, allowed)
        checked = {name: self._value(name, value, f"{key}.{name}") for name, value in values.items()}
        try:
            return kind(**checked, **more)
        except (ConfigurationError, TypeError) as error:
            raise self._mistake(key, str(error).replace("NodeType.__init__() ", "")) from None

    def _value(self, name: str, value: Any, key: str) -> Any:
        """A value of the type that it must have."""
        if name in _WHOLE:
            return value if value is None else self._whole(value, key)
        if name in _TEXTS:
            return str(value)
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(each, str | int) for each in value):
                raise self._mistake(key, f"is {value!r:.60}; give a list of names")
            return [str(each) for each in value]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._mistake(key, f"is {value!r:.60}; give a number")
        return value

    def _whole(self, value: Any, key: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._mistake(key, f"is {value!r:.60}; give a whole number")
        return value

    def _word(self, value: Any, key: str, words: Sequence[str]) -> str:
        if value not in words:
            raise self._mistake(key, f"is {value!r:.60}; use one of {', '.join(words)}")
        return str(value)

    def _list(self, entries: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
        """Entries of a list, each with the key that names it."""
        found = entries.get(name) or []
        if not isinstance(found, list):
            raise self._mistake(name, "is no list; begin each entry with -")
        return [(f"{name}[{place}]", entry) for place, entry in enumerate(found)]

    def _mapping(self, value: Any, key: str, allowed: Sequence[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._mistake(key, f"has no keys; give some of {', '.join(allowed)}")
        unknown = [name for name in value if name not in allowed]
        if unknown:
            instead = meant(str(unknown[0]), allowed) or f"; use {', '.join(allowed)}"
            raise self._mistake(key, f"has an unknown key {str(unknown[0])!r}{instead}")
        return dict(value)

    def _mistake(self, key: str, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self._file}: {key}: {problem}")


def _keys(kind: Any) -> tuple[str, ...]:
    """Parameters of a dataclass."""
    return tuple(each.name for each in fields(kind))

"""Nodes, partitions and limits of a cluster from a file that its operator writes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, create_model, model_validator

from gridsched.derived import PartConfig, keys, model_of
from gridsched.errors import ConfigurationError, meant
from gridsched.io import read_yaml
from gridsched.nodes import GroupName, Limit, NodeType, Partition, PlacementName, numbered_constraints
from gridsched.validation import ConfigModel, Whole, check_known, unique, validated

__all__ = ["SiteNodes", "read_nodes"]

_Name = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
"""Names of nodes and partitions may be numbers."""
_Names = tuple[_Name, ...]

_NodeEntry: Any = model_of(
    NodeType,
    PartConfig,
    keys(NodeType) | {"name": (_Name, "node"), "names": (_Names, ()), "features": (_Names, ())},
)


class _Partition(ConfigModel):
    """A partition by the name that jobs have, or by its number; the other keys are those of `Partition`."""

    name: _Name = ""
    number: Whole | None = None
    nodes: _Names = ()


class _Limit(ConfigModel):
    """A limit of a group by its name or number; the other keys are those of `Limit`."""

    by: GroupName = "user"
    of: _Name | None = None


_PARTITION: dict[str, Any] = keys(Partition, set(_Partition.model_fields))
_PartitionEntry: Any = create_model("_PartitionEntry", __base__=_Partition, **_PARTITION)
_LIMIT: dict[str, Any] = keys(Limit, set(_Limit.model_fields))
_LimitEntry: Any = create_model("_LimitEntry", __base__=_Limit, **_LIMIT)


class _NodesFile(ConfigModel):
    """A file of nodes, whose names are those of one cluster."""

    nodes: Annotated[tuple[_NodeEntry, ...], Field(min_length=1)]
    partitions: tuple[_PartitionEntry, ...] = ()
    partition_of: Literal["partition", "queue"] = "partition"
    limits: tuple[_LimitEntry, ...] = ()
    placement: PlacementName = "first_fit"

    @model_validator(mode="after")
    def _known_nodes(self) -> Self:
        types = [each.made() for each in self.nodes]
        names = [name for kind in types for name in kind.nodes]
        unique("nodes", names)
        unique("partitions", [each.name for each in self.partitions if each.name])
        for place, partition in enumerate(self.partitions):
            where = f"partitions[{partition.name or place}]"
            if not partition.name and partition.number is None:
                raise ValueError(f"{where}: has no name; give that of the log, or a number")
            for name in partition.nodes:
                check_known(f"{where}.nodes", name, [*(kind.name for kind in types), *names])
        return self


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
    known = names or {}
    file = validated(_NodesFile, read_yaml(os.fspath(path)), os.fspath(path))
    nodes = tuple(each.made() for each in file.nodes)
    has_features = any(kind.features for kind in nodes)
    column = file.partition_of
    try:
        return SiteNodes(
            nodes=nodes,
            partitions=tuple(
                _partition(each, known.get(column, ()), place) for place, each in enumerate(file.partitions)
            ),
            partition_of=column,
            limits=tuple(_limit(each, known.get(each.by, ())) for each in file.limits),
            placement=file.placement,
            constraints=numbered_constraints(known.get("constraint", ()))[0] if has_features else {},
        )
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _partition(entry: Any, names: Sequence[str], place: int) -> Partition:
    """A partition, with the number of its name; one that no job has gets a number that no job has."""
    number = _number(entry.name, names) if entry.number is None else entry.number
    unused = max(len(names), 1_000_000) + place
    return Partition(**{**dict(entry), "number": unused if number is None else number})


def _limit(entry: Any, names: Sequence[str]) -> Limit:
    """A limit, of one group by its name or number, or of each."""
    number = None if entry.of is None else _number(entry.of, names)
    if entry.of is not None and number is None:
        raise ConfigurationError(
            f"limits: of: {entry.of!r} is no {entry.by} of the log{meant(entry.of, names)}"
        )
    return Limit(**{**dict(entry), "of": number})


def _number(name: str, names: Sequence[str]) -> int | None:
    """Number of a name of a column of the log; a number stands for itself where there are no names."""
    if name in names:
        return list(names).index(name)
    return int(name) if not names and name.isascii() and name.isdigit() else None

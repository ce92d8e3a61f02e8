"""Slots of calendars, and the tree of managers above the clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from gridsched.engine.records import FOREVER, LARGEST
from gridsched.errors import ConfigurationError
from gridsched.platform import Cluster
from gridsched.systems.base import check_choices, check_values, is_whole
from gridsched.systems.calendars.kernels.bookings import NOWHERE

OverrunName = Literal["kill", "suspend"]

RefusedName = Literal["reject", "queue"]

PlacementName = Literal["lowest", "unbiased"]

_MAX_LEVELS = 32


@dataclass(frozen=True, kw_only=True)
class SlotPlan:
    """How many slots of which duration a calendar has, from now on.

    Parameters
    ----------
    levels : sequence of (count, duration)
        From the finest to the coarsest slots, durations in seconds, each a multiple of the one before. The
        count of the last level is None: as many as needed.

    Raises
    ------
    ConfigurationError
        If a number is not positive, durations are not such multiples, or the last level is not open.
    """

    levels: Sequence[tuple[int | None, int]]

    def __post_init__(self) -> None:
        if not 1 <= len(self.levels) <= _MAX_LEVELS:
            raise ConfigurationError(f"slots: {len(self.levels)} levels; use 1 to {_MAX_LEVELS}")
        object.__setattr__(self, "levels", tuple(tuple(level) for level in self.levels))
        for position, level in enumerate(self.levels):
            if len(level) != 2:
                raise ConfigurationError(f"slots: level {position} is {level}; use (count, duration)")
            count, duration = level
            if not is_whole(duration, 1):
                raise ConfigurationError(
                    f"slots: level {position} has slots of {duration!r} s; "
                    f"use whole seconds from 1 to {LARGEST}"
                )
            if position + 1 == len(self.levels):
                if count is not None:
                    raise ConfigurationError(
                        f"slots: the last level has {count!r} slots; use None, for as many as needed"
                    )
            elif not is_whole(count, 1):
                raise ConfigurationError(f"slots: level {position} has {count!r} slots; use 1 or more")
        for (_, below), (_, above) in pairwise(self.levels):
            if above <= below or above % below:
                raise ConfigurationError(
                    f"slots: {above} s are no larger multiple of {below} s, so that slots cannot be split "
                    f"into those; use for instance {max(2, above // below) * below} s"
                )

    @classmethod
    def doubling(cls, first: int, k: int, levels: int) -> SlotPlan:
        """Slots whose duration doubles every 2k slots, with so many levels."""
        counts: list[int | None] = [2 * k] * (levels - 1)
        return cls(levels=tuple((count, first << i) for i, count in enumerate([*counts, None])))

    @property
    def fundamental(self) -> int:
        """Duration of the fundamental slot in seconds."""
        return self.levels[0][1]

    def slots_within(self, horizon: int) -> int:
        """Slots of a new calendar that covers so many seconds."""
        total = 0
        for count, duration in self.levels:
            needed = -(-max(0, horizon) // duration)
            taken = needed if count is None else min(count, needed)
            total += taken
            horizon -= taken * duration
        return total

    def __str__(self) -> str:
        return ", ".join(
            f"<{'*' if count is None else count}, {duration} s>" for count, duration in self.levels
        )


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a manager does with a job, and its information about the clusters below.

    Parameters
    ----------
    promote_processors : int, optional
        Jobs that ask for more go up to the parent.
    promote_duration : int, optional
        Jobs with an estimate, as on its slowest cluster, of at least this number of seconds go up to the
        parent.
    bump : int, optional
        Jobs whose first fit is later than so many seconds from now are bumped up to the parent.
    bump_stretch : int
        With `bump`: only those whose first fit is also later than so many times their estimate, likewise.
    period : int
        Seconds between updates of its shadow calendars; 0: they are always fresh. Not used by local managers.
    placement : {"lowest", "unbiased"}
        Which of several sub-managers with equally early places gets a job: the first, as in the paper, or
        the first of a random permutation for each job. Likewise the order of parts.
    borrow_limit : int, optional
        Of a local manager: net node-seconds consumed elsewhere above which jobs are not promoted or bumped.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """

    promote_processors: int | None = None
    promote_duration: int | None = None
    bump: int | None = None
    bump_stretch: int = 0
    period: int = 0
    placement: PlacementName = "lowest"
    borrow_limit: int | None = None

    def __post_init__(self) -> None:
        name = getattr(self, "name", "")
        who = f"manager {name}: " if name else ""
        optional = ("promote_processors", "promote_duration", "bump", "borrow_limit")
        values = {key: getattr(self, key) for key in optional}
        rules = {
            key: (value is None or is_whole(value, 0, FOREVER - 1), "a whole number from 0 on, or None")
            for key, value in values.items()
        }
        rules["bump_stretch"] = is_whole(self.bump_stretch, 0), f"a whole number from 0 to {LARGEST}"
        rules["period"] = is_whole(self.period, 0), f"whole seconds from 0 to {LARGEST}"
        check_values(self, rules, who)
        alone = self.bump_stretch > 0 and self.bump is None
        check_values(self, {"bump_stretch": (not alone, "bump, too, for instance 0")}, who)
        check_choices(self, who)

    def changed(self) -> dict[str, Any]:
        """Rules that are not as by default."""
        values = ((own, getattr(self, own.name)) for own in fields(Rules))
        return {own.name: value for own, value in values if value != own.default}


@dataclass(frozen=True, kw_only=True)
class Manager(Rules):
    """A manager of clusters. One whose only child is a cluster is the local manager of that cluster.

    A cluster among several children has a local manager without rules of its own. Rules are those of `Rules`.

    Parameters
    ----------
    name : str
        Name in messages; no other manager or cluster has it, but a local manager may be called like its
        cluster.
    children : sequence of Manager or Cluster
        What it manages.

    Raises
    ------
    ConfigurationError
        If there are no children, or a value is out of range.
    """

    name: str
    children: Sequence[Manager | Cluster]

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(self.children))
        if not self.children:
            raise ConfigurationError(f"manager {self.name}: no children; give it clusters or managers")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Level(Rules):
    """Rules of all managers of one level.

    Parameters
    ----------
    children : int, optional
        How many managers of the level below each one has, in order; all if None. Not for the first level,
        whose managers have a cluster each.
    """

    children: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        good = self.children is None or is_whole(self.children, 1)
        check_values(self, {"children": (good, "a whole number from 1 on, or None")})


_UPWARD = ("promote_processors", "promote_duration", "bump", "bump_stretch")
_DOWNWARD = ("period", "placement")


def check_levels(levels: Sequence[Level]) -> None:
    """Refuse levels with rules that managers there do not have.

    Raises
    ------
    ConfigurationError
        If there is a single level, or the first or last one has a rule of the others.
    """
    if len(levels) == 1:
        raise ConfigurationError("levels: one level has nobody above it; give two or more, or none")
    for number, level in enumerate(levels, start=1):
        first, last = number == 1, number == len(levels)
        others = _DOWNWARD if first else ("borrow_limit", *(_UPWARD if last else ()))
        wrong = [key for key in level.changed() if key in others]
        wrong += ["children"] if (first or last) and level.children is not None else []
        if wrong:
            who = "first" if first else "last" if last else "middle"
            raise ConfigurationError(f"levels: {wrong[0]}: the {who} level does not have this")


def tree_of_levels(levels: Sequence[Level], clusters: Sequence[Cluster]) -> Manager:
    """The managers of several clusters, level by level; a single one needs none."""
    below, *above = levels
    nodes = [Manager(name=cluster.name, children=[cluster], **below.changed()) for cluster in clusters]
    for number, level in enumerate(above, start=2):
        size = level.children or len(nodes)
        groups = [nodes[first : first + size] for first in range(0, len(nodes), size)]
        nodes = [
            # A manager of one cluster would be taken for its local one
            group[0]
            if len(group) == 1
            else Manager(name=f"level {number}, {place}", children=group, **level.changed())
            for place, group in enumerate(groups, start=1)
        ]
    return nodes[0]


def clusters_of(root: Manager | Cluster) -> list[Cluster]:
    """The clusters of a tree, in the order of its leaves.

    Raises
    ------
    ConfigurationError
        If two managers or clusters have the same name, the tree has a cycle, or a cluster is too large.
    """
    return [leaf.cluster for leaf in flatten(root) if leaf.cluster is not None]


def reach(root: Manager | Cluster) -> int:
    """Processors of the largest job that a tree can run."""
    return sum(cluster.processors for cluster in clusters_of(root))


def describe(root: Manager | Cluster) -> Iterator[str]:
    """One line a manager, for the attributes of a run."""
    keys = [rule.name for rule in fields(Rules)]
    for flat in flatten(root):
        limits = [f"{key} {flat.rule(key)}" for key in keys if flat.rule(key) not in (None, 0)]
        nodes = "" if flat.cluster is None else f" ({flat.cluster.processors} processors)"
        yield f"{flat.name}{nodes}: {', '.join(limits) or 'no rules'}"


class Flat(NamedTuple):
    """A manager of a tree in preorder."""

    name: str
    parent: int
    depth: int
    rules: Manager | None
    cluster: Cluster | None

    def rule(self, name: str) -> Any:
        """A rule of the manager; None without."""
        return getattr(self.rules, name, None)


def flatten(root: Manager | Cluster) -> list[Flat]:
    """The managers of a tree in preorder; refuses what is no tree."""
    flat: list[Flat] = []
    names: set[str] = set()

    def add(item: Manager | Cluster, parent: int, above: tuple[int, ...]) -> None:
        if id(item) in above:
            raise ConfigurationError(f"manager {item.name}: it is among its own children; fix the tree")
        below = [item] if isinstance(item, Cluster) else item.children
        cluster = below[0] if len(below) == 1 and isinstance(below[0], Cluster) else None
        # A local manager may be called like its cluster
        for name in dict.fromkeys([(cluster or item).name, item.name]):
            if name in names:
                raise ConfigurationError(
                    f"{name}: two managers or clusters have this name; give each its own"
                )
            names.add(name)
        if cluster is not None and cluster.processors > LARGEST:
            raise ConfigurationError(
                f"cluster {cluster.name}: {cluster.processors} processors; at most {LARGEST} can be simulated"
            )
        number = len(flat)
        flat.append(Flat(item.name, parent, len(above), item if isinstance(item, Manager) else None, cluster))
        for child in below if cluster is None else ():
            add(child, number, (*above, id(item)))

    add(root, NOWHERE, ())
    return flat

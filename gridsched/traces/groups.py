"""Users of the groups in AllowGroups of partitions, as `getent` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gridsched.errors import ConfigurationError
from gridsched.io import read_text

_OF_GROUP, _OF_USER = 4, 7
"""Fields of a line of `getent group`, and of `getent passwd`."""


@dataclass(frozen=True)
class Groups:
    """Users by group.

    Parameters
    ----------
    members : mapping of str to frozenset of str
        Users of each group.
    has_primary : bool
        Whether the primary groups of users are known too.
    """

    members: Mapping[str, frozenset[str]]
    has_primary: bool


def read_groups(path: str | Path) -> Groups:
    r"""Read what `getent group` printed, and `getent passwd` below it for the primary groups of users.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    ConfigurationError
        If the file has no group, or a line is neither a group nor a user: the message names file and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gridsched.traces.groups import read_groups
    >>> lines = ["staff:x:50:ada,bob", "ops:x:51:", "eve:x:7:51:Eve:/home/eve:/bin/sh"]
    >>> _ = Path("groups.txt").write_text("\n".join(lines))
    >>> {name: sorted(users) for name, users in read_groups("groups.txt").members.items()}
    {'staff': ['ada', 'bob'], 'ops': ['eve']}
    """
    members: dict[str, set[str]] = {}
    by_number: dict[str, list[str]] = {}
    users: list[tuple[str, str]] = []
    for place, line in enumerate(read_text(path).splitlines(), 1):
        fields = line.strip().split(":")
        if len(fields) == _OF_GROUP:
            name, _, number, listed = fields
            members.setdefault(name, set()).update(user.strip() for user in listed.split(",") if user.strip())
            by_number.setdefault(number, []).append(name)
        elif len(fields) == _OF_USER:
            users.append((fields[0], fields[3]))
        elif line.strip():
            raise ConfigurationError(
                f"{path}:{place}: neither a group nor a user; print groups with getent group, and users with "
                "getent passwd"
            )
    if not members:
        raise ConfigurationError(f"{path}: no group; print the groups with getent group")
    for user, number in users:
        for name in by_number.get(number, ()):
            members[name].add(user)
    return Groups({name: frozenset(found) for name, found in members.items()}, has_primary=bool(users))

"""Changes of a configuration, written as the lines of slurm.conf are.

A change is `Key=value`, or several of them that only make sense together, with spaces between. Options of
SchedulerParameters are changed one by one: the others stay. A partition is changed by its name:
`PartitionName=long MaxTime=2-0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gridsched.errors import ConfigurationError, meant

ALIASES = {"max_job_bf": "bf_max_job_test", "interval": "bf_interval"}
"""Old names of options of SchedulerParameters, and the present ones."""

_OPTIONS, _PARTITION, _NODES = "schedulerparameters", "partitionname", ("nodename", "downnodes")
_NOTHING = ("", "(null)")

_BETWEEN = re.compile(r"(?<=[^\s=])\s+(?=[A-Za-z]\w*\s*=)")
"""What is between two keys with their values."""

Line = tuple[str, str]
"""Where a line stands, and the line."""


def with_changes(lines: Iterable[Line], changes: Sequence[str]) -> list[Line]:
    """Lines of a configuration with changes.

    Parameters
    ----------
    lines : iterable of (str, str)
        Where each line stands, and the line.
    changes : sequence of str
        The changes.

    Raises
    ------
    ConfigurationError
        If a change cannot be read, names a partition that there is not, or contradicts another one.
    """
    changed = list(lines)
    said: dict[tuple[str, str], str] = {}
    for change in changes:
        where = f"change {change!r}"
        for key, value in _settings(change, where):
            name = key.lower()
            parts: Sequence[str] = [""]
            if name in _NODES:
                raise ConfigurationError(
                    f"{where}: nodes are not changed one by one; edit a copy of the file"
                )
            if name == _OPTIONS:
                parts = _options(value)
                changed = _merged(changed, value, where)
            elif name == _PARTITION:
                partition, *pairs = value.split()
                if not pairs:
                    raise ConfigurationError(f"{where}: say what of it, such as {change} MaxTime=2-0")
                parts = [f"{partition} {pair.partition('=')[0].lower()}" for pair in pairs]
                changed = _of_partition(changed, partition, " ".join(pairs), where)
            else:
                changed = [line for line in changed if _key(line[1]) != name] + [(where, f"{key}={value}")]
            for part in parts:
                if (name, part) in said:
                    raise ConfigurationError(
                        f"{where}: {key} {part.partition(' ')[2] or part}".rstrip()
                        + f" is the same key as in change {said[name, part]!r}; give one of them, since all "
                        "changes are also made together"
                    )
                said[name, part] = change
    return changed


def names_in(change: str) -> list[tuple[str, str]]:
    """What a change names: a "key", an "option" of SchedulerParameters, or a key of a "partition"."""
    found = []
    for key, value in _settings(change, f"change {change!r}"):
        if key.lower() == _OPTIONS:
            found += [("option", option) for option in _options(value)]
        elif key.lower() == _PARTITION:
            found += [("partition", pair.partition("=")[0]) for pair in value.split()[1:]]
        else:
            found.append(("key", key))
    return found


def _settings(change: str, where: str) -> list[tuple[str, str]]:
    """Keys and values of a change; what belongs to a partition stays together."""
    whole = change.partition("=")[0].strip().lower() in (_PARTITION, *_NODES)
    pieces = [change] if whole else _BETWEEN.split(change.strip())
    found = [tuple(part.strip() for part in piece.partition("=")) for piece in pieces]
    if any(not all(piece) for piece in found):
        raise ConfigurationError(f"{where}: give it as Key=value, as a line of slurm.conf")
    return [(key, value) for key, _, value in found]


def _key(text: str) -> str:
    return text.partition("=")[0].strip().lower()


def _name(option: str) -> str:
    """Name of an option of SchedulerParameters, the present one where it has changed."""
    name = option.partition("=")[0].strip().lower()
    return ALIASES.get(name, name)


def _options(value: str) -> list[str]:
    return [_name(option) for option in value.split(",")]


def _merged(lines: list[Line], value: str, where: str) -> list[Line]:
    """Lines with some options of SchedulerParameters replaced or added."""
    present = [text.partition("=")[2].strip() for _, text in lines if _key(text) == _OPTIONS]
    options = [option for each in present if each.lower() not in _NOTHING for option in each.split(",")]
    kept = [option for option in options if _name(option) not in _options(value)]
    others = [line for line in lines if _key(line[1]) != _OPTIONS]
    return [*others, (where, f"SchedulerParameters={','.join([*kept, value])}")]


def _of_partition(lines: list[Line], partition: str, pairs: str, where: str) -> list[Line]:
    """Lines with some keys of a partition replaced or added."""
    names = {
        text.partition("=")[2].split()[0]: place
        for place, (_, text) in enumerate(lines)
        if _key(text) == _PARTITION and text.partition("=")[2].strip()
    }
    if partition not in names:
        raise ConfigurationError(f"{where}: the file has no partition {partition}{meant(partition, names)}")
    place = names[partition]
    return [*lines[:place], (where, f"{lines[place][1]} {pairs}"), *lines[place + 1 :]]

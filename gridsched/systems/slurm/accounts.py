"""Accounts, users and qualities of service: shares and limits, as Slurm's accounting keeps them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError
from gridsched.io import read_text

ROOT = "root"
USE_PARENT = -1
"""Shares of those who use the fair share of their account (`fairshare=parent`)."""


def words(text: str) -> frozenset[str]:
    """Words of a text."""
    return frozenset(text.split())


_LARGEST = 10**15
"""A value is smaller; more is an error, and could not be counted."""

_LINE = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*'([^']*)'(.*)")
_OPTION = re.compile(r":\s*([A-Za-z]+)=(?:'([^']*)'|((?:gres/[^:,=]+:|.)*?))(?=:\s*[A-Za-z]+=|$)")
"""Option of a line and its value, in which a colon may stand: gres/gpu:tesla=8."""

RUNNING = {
    "GrpJobs": ("group", "jobs"),
    "MaxJobs": ("user", "jobs"),
    "MaxJobsPerUser": ("user", "jobs"),
    "MaxJobsPU": ("user", "jobs"),
    "MaxJobsPerAccount": ("account", "jobs"),
    "MaxJobsPA": ("account", "jobs"),
}
"""Limits of the number of running jobs: who has them together, and what is limited."""

OF_RESOURCES = {
    "GrpTRES": ("group", ""),
    "MaxTRESPU": ("user", ""),
    "MaxTRESPerUser": ("user", ""),
    "MaxTRESPA": ("account", ""),
    "MaxTRESPerAccount": ("account", ""),
    "GrpTRESMins": ("group", "used "),
    "GrpTRESRunMins": ("group", "running "),
}
"""Limits of what running jobs have together, and of minutes of resources: those that were used, or those
that running jobs may still use. Who has them together, and what stands before the name of the resource."""

RESOURCES = {"cpu": "processors", "node": "nodes", "mem": "memory", "gres/gpu": "gpus"}
"""Resources that are limited and weighed, by Slurm's names."""

_WITHOUT_EFFECT = words(
    "Name Description Organization DefaultAccount DefaultQOS AdminLevel QOS QosLevel Fairshare Priority "
    "Flags Preempt UsageFactor UsageThres PreemptExemptTime PreemptMode Classification WithDefault"
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the jobs of an association or of a quality of service may have.

    Parameters
    ----------
    running : mapping of (who, what) to int
        Who is "group" (all of them), "user" or "account" (each of them); what is "jobs", "processors",
        "nodes", "memory" [MiB] or "gpus". Of a group also minutes, "used processors" (GrpTRESMins) or
        "running processors" (GrpTRESRunMins), and so on.
    job : mapping of str to int
        What one job may have, by the same names, or has to ask for at least, "least processors" and so on;
        "wall" is its time limit [s].
    """

    running: Mapping[tuple[str, str], int] = field(default_factory=dict)
    job: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Association:
    """An account, or a user in an account.

    Parameters
    ----------
    account : str
        Its account.
    user : str
        The user; empty for the account itself.
    parent : str
        Account above; empty for the root.
    shares : int
        Raw shares, `USE_PARENT` for those of the account.
    limits : Limits
        Limits of its jobs.
    """

    account: str
    user: str = ""
    parent: str = ""
    shares: int = 1
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, kw_only=True)
class Quality:
    """A quality of service (QOS).

    Parameters
    ----------
    name : str
        Its name.
    priority : int
        Its priority.
    usage_factor : float
        What its jobs use counts so many times.
    limits : Limits
        Limits of its jobs.
    decays : bool
        Whether what its jobs used decays (not with the flag NoDecay).
    over_partition : bool
        Whether its limits go before those of the quality of service of a partition (flag OverPartQOS).
    preempts : tuple of str
        Qualities of service whose jobs its jobs may preempt.
    preempt_mode : {"off", "requeue", "cancel", "suspend"}, optional
        Treatment of its preempted jobs; by default what the cluster says.
    preempt_exempt_time : int, optional
        Seconds that its jobs run at least before they are preempted; by default what the cluster says.
    """

    name: str
    priority: int = 0
    usage_factor: float = 1.0
    limits: Limits = field(default_factory=Limits)
    decays: bool = True
    over_partition: bool = False
    preempts: tuple[str, ...] = ()
    preempt_mode: str | None = None
    preempt_exempt_time: int | None = None


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """What the accounting knows.

    Parameters
    ----------
    associations : sequence of Association
        The tree, parents before their children.
    qualities : mapping of str to Quality
        By name.
    not_modelled : sequence of str
        What was found and is not modelled.
    usage : mapping of (str, str) to float
        Billed seconds of users in accounts that count at the beginning; none by default.
    """

    associations: tuple[Association, ...] = (Association(account=ROOT),)
    qualities: Mapping[str, Quality] = field(default_factory=dict)
    not_modelled: tuple[str, ...] = ()
    usage: Mapping[tuple[str, str], float] = field(default_factory=dict)


def read_accounting(dump: str | Path, qualities: str | Path | None = None) -> Accounting:
    r"""Read what `sacctmgr dump` wrote and, if given, `sacctmgr show qos --parsable2`.

    Parameters
    ----------
    dump : path
        The dump of a cluster: accounts, users, their shares and limits.
    qualities : path, optional
        The table of the qualities of service; the dump has only their names.

    Raises
    ------
    ConfigurationError
        If a line cannot be read: the message names file and line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gridsched.systems.slurm.accounts import read_accounting
    >>> lines = [
    ...     "Cluster - 'lab':Fairshare=1",
    ...     "Parent - 'root'",
    ...     "Account - 'physics':Fairshare=3",
    ...     "Parent - 'physics'",
    ...     "User - 'ada':DefaultAccount='physics':Fairshare=1",
    ... ]
    >>> _ = Path("dump.cfg").write_text("\n".join(lines))
    >>> accounting = read_accounting("dump.cfg")
    >>> [each.account for each in accounting.associations]
    ['root', 'physics', 'physics']
    """
    associations = {(ROOT, ""): Association(account=ROOT)}
    left: list[str] = []
    parent = ROOT
    for number, line in enumerate(read_text(dump).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        where = f"{dump}:{number}"
        found = _LINE.match(text)
        if not found:
            raise ConfigurationError(f"{where}: {text[:40]!r} is no line of sacctmgr dump; dump it again")
        kind, name, rest = found.groups()
        options = {key: quoted or bare for key, quoted, bare in _OPTION.findall(rest)}
        shares = _shares(options.get("Fairshare", options.get("FairShare", "1")), where)
        limits = _limits(options, where, left)
        if kind == "Cluster" and (limits.running or limits.job):
            left.append("limits of the whole cluster")
        elif kind == "Parent":
            if (name, "") not in associations:
                raise ConfigurationError(f"{where}: parent {name!r} comes before its account; dump it again")
            parent = name
        elif kind == "Account" and name != ROOT:
            associations[name, ""] = Association(account=name, parent=parent, shares=shares, limits=limits)
        elif kind == "User":
            associations[parent, name] = Association(
                account=parent, user=name, parent=parent, shares=shares, limits=limits
            )
    return Accounting(
        associations=tuple(associations.values()),
        qualities={} if qualities is None else _qualities(qualities, left),
        not_modelled=tuple(dict.fromkeys(left)),
    )


def read_usage(path: str | Path, accounting: Accounting) -> Accounting:
    """The accounting with what was used before, as `sshare --all --parsable2` printed it.

    Parameters
    ----------
    path : path
        The table.
    accounting : Accounting
        Accounts and users, as `sacctmgr dump` wrote them.

    Raises
    ------
    ConfigurationError
        If the table has no Account, User and RawUsage, or names a user whom the dump does not have: the
        message names file and line.
    """
    known = {(each.account, each.user) for each in accounting.associations}
    usage: dict[tuple[str, str], float] = {}
    for number, row in enumerate(csv.DictReader(read_text(path).splitlines(), delimiter="|"), 2):
        where = f"{path}:{number}"
        if row.get("RawUsage") is None or row.get("User") is None or row.get("Account") is None:
            raise ConfigurationError(
                f"{where}: no Account, User and RawUsage; print it with sshare --all --parsable2"
            )
        who = row["Account"].strip(), row["User"].strip()
        if not who[1]:
            continue  # what an account used is the sum of its users
        if who not in known:
            raise ConfigurationError(
                f"{where}: user {who[1]} of account {who[0]} is not in the dump; dump the accounts again"
            )
        # a user may have an association for each partition
        usage[who] = usage.get(who, 0.0) + float(_number(row["RawUsage"], f"{where}: RawUsage"))
    return replace(accounting, usage=usage)


def renamed(accounting: Accounting, called: Callable[[str, str], str]) -> Accounting:
    """The accounting with other names.

    Parameters
    ----------
    accounting : Accounting
        What has names.
    called : callable
        The new name of a "group" (account), "user" or "queue" (quality of service), and of nobody.
    """
    return replace(
        accounting,
        associations=tuple(
            replace(
                each,
                account=called("group", each.account),
                user=called("user", each.user),
                parent=called("group", each.parent),
            )
            for each in accounting.associations
        ),
        qualities={
            called("queue", name): replace(
                quality, preempts=tuple(called("queue", other) for other in quality.preempts)
            )
            for name, quality in accounting.qualities.items()
        },
        usage={
            (called("group", account), called("user", user)): amount
            for (account, user), amount in accounting.usage.items()
        },
    )


def _qualities(path: str | Path, left: list[str]) -> dict[str, Quality]:
    rows = list(csv.DictReader(read_text(path).splitlines(), delimiter="|"))
    found = {}
    for number, row in enumerate(rows, 2):
        where = f"{path}:{number}"
        if not row.get("Name"):
            raise ConfigurationError(f"{where}: no Name; export it with sacctmgr show qos --parsable2")
        options = {key: value for key, value in row.items() if key and value}
        flags = options.get("Flags", "").lower().split(",")
        found[row["Name"]] = Quality(
            name=row["Name"],
            priority=_number(options.get("Priority", "0"), where),
            usage_factor=_amount(options.get("UsageFactor", "1"), f"{where}: UsageFactor"),
            limits=_limits({key: value for key, value in options.items() if key != "GraceTime"}, where, left),
            decays="nodecay" not in flags,
            over_partition="overpartqos" in flags,
            preempts=tuple(name for name in options.get("Preempt", "").split(",") if name),
            preempt_mode=_mode(options.get("PreemptMode", ""), f"{where}: PreemptMode"),
            preempt_exempt_time=seconds(options["PreemptExemptTime"], f"{where}: PreemptExemptTime")
            if options.get("PreemptExemptTime", "-1") != "-1"
            else None,
        )
        if options.get("GraceTime", "00:00:00").strip("0:"):
            left.append("GraceTime")
        if "usagefactorsafe" in flags:
            left.append("Flags=UsageFactorSafe")
    known = set(found)
    for quality in found.values():
        if unknown := sorted(set(quality.preempts) - known):
            raise ConfigurationError(
                f"{path}: {quality.name} preempts {unknown[0]}, of which there is no line; print all of them"
            )
    return found


def _mode(text: str, where: str) -> str | None:
    """PreemptMode of a quality of service; none where it is that of the cluster."""
    name = text.lower()
    if name in ("", "cluster"):
        return None
    if name not in ("off", "requeue", "cancel", "suspend"):
        raise ConfigurationError(f"{where} is {text!r}; use cluster, off, requeue, cancel or suspend")
    return name


def _limits(options: Mapping[str, str], where: str, left: list[str]) -> Limits:
    """Limits among the options of a line; names of those that are not modelled go to `left`."""
    running: dict[tuple[str, str], int] = {}
    job: dict[str, int] = {}
    for key, value in options.items():
        if key in RUNNING:
            running[RUNNING[key]] = _number(value, f"{where}: {key}")
        elif key in OF_RESOURCES:
            who, way = OF_RESOURCES[key]
            for what, most in resources(value, f"{where}: {key}", left).items():
                running[who, way + what] = int(most)
        elif key in ("MaxTRES", "MaxTRESPerJob"):
            job |= {what: int(most) for what, most in resources(value, f"{where}: {key}", left).items()}
        elif key in ("MinTRES", "MinTRESPerJob"):
            least = resources(value, f"{where}: {key}", left)
            job |= {f"least {what}": int(number) for what, number in least.items()}
        elif key in ("MaxWall", "MaxWallDurationPerJob"):
            job["wall"] = 60 * minutes(value, f"{where}: {key}")
        elif key not in _WITHOUT_EFFECT:
            left.append(key)
    return Limits(running=running, job=job)


def resources(text: str, where: str, left: list[str] | None = None) -> dict[str, float]:
    """Amounts of resources of a text such as `cpu=24,mem=10G`, by the names of `RESOURCES`."""
    found: dict[str, float] = {}
    for piece in text.split(","):
        name, _, amount = piece.strip().partition("=")
        read = megabytes if name.lower() == "mem" else float
        number = _read(read, amount, f"{where}: {piece!r:.60} is no amount; give it as cpu=24")
        if name.lower() in RESOURCES:
            found[RESOURCES[name.lower()]] = number
        elif left is not None:
            left.append(f"{where.rsplit(': ', 1)[-1]}={name}")
    return found


MEBIBYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""MiB of units of memory."""


def megabytes(text: str) -> float:
    """MiB of an amount of memory such as 10G; without a letter it is MiB."""
    unit = MEBIBYTES.get(text[-1:].upper())
    return float(text) if unit is None else float(text[:-1]) * unit


def minutes(text: str, where: str) -> int:
    """Minutes of a time such as 60, 1:30:00 (hours) or 2-12 (days)."""
    return int(_read(_minutes, text, f"{where}: {text!r:.60} is no time; give minutes, or 1-12:00:00"))


def _minutes(text: str) -> int:
    if text.startswith("-"):
        raise ValueError(text)
    days, _, rest = text.rpartition("-")
    numbers = [int(part) for part in rest.split(":")]
    if not days and len(numbers) < 3:
        numbers.insert(0, 0)
    hours, mins, seconds = [*numbers, 0, 0][:3] if days else [*numbers, 0][:3]
    return int(days or 0) * 1440 + hours * 60 + mins + (1 if seconds else 0)


def seconds(text: str, where: str) -> int:
    """Seconds of a time such as 90 (minutes), 00:01:30 or 1-12:00:00."""
    short = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+)", text)
    if short:
        found = 3600 * int(short[1] or 0) + 60 * int(short[2]) + int(short[3])
        if found < _LARGEST:
            return found
    return 60 * minutes(text, where)


def _shares(text: str, where: str) -> int:
    return USE_PARENT if text.lower() == "parent" else _number(text, f"{where}: Fairshare")


def _number(text: str, where: str) -> int:
    problem = f"{where}: {text!r:.60} is no whole number; give one of at most 15 digits"
    return int(_read(int, text, problem))


def _amount(text: str, where: str) -> float:
    problem = f"{where}: {text!r:.60} is no number; give one from 0 on"
    return _read(float, text, problem, least=0)


def _read(read: Callable[[str], float], text: str, problem: str, least: float = 1 - _LARGEST) -> float:
    """The number that a text stands for; an error that says the problem if it is none, or too large."""
    try:
        number = read(text)
    except ValueError:
        number = math.nan
    if not least <= number < _LARGEST:
        raise ConfigurationError(problem)
    return number


Owner = tuple[str, str, str]
"""Account, user and quality of service of a job."""


def usage_factors(accounting: Accounting | None, owners: Sequence[Owner]) -> NDArray[np.float64]:
    """UsageFactor of the quality of service of each job."""
    factor = {} if accounting is None else {k: each.usage_factor for k, each in accounting.qualities.items()}
    return np.array([factor.get(name, 1.0) for *_, name in owners])

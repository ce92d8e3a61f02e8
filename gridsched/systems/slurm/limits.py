"""What the jobs of associations and of qualities of service may have: the limits of each job.

A limit of a quality of service goes before the same limit of an association, for which such jobs count
without being held to it. Of associations the nearest one counts, from the user to the root, except for what
all of an association may have together.

Source: Slurm's manual ("Resource Limits"), src/slurmctld/acct_policy.c of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.records import FOREVER, RecordArray
from gridsched.systems.slurm.accounts import Accounting, Association, Owner
from gridsched.systems.slurm.kernels import AMOUNTS, LIMIT, RESOURCES, RUNNING, SAFE, SPENT, unchecked
from gridsched.systems.slurm.priority import Shares

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LimitsOfJobs:
    """Limits of n jobs.

    Parameters
    ----------
    rows : list of dict
        What groups of jobs may have together: "jobs", "processors", "nodes", "memory" [MiB] or "gpus"; or
        minutes, such as "used processors" or "running processors".
    limited : int64[n, k]
        Rows that each job is subject to, -1 for none; `unchecked` of those for which it only counts.
    own : dict of str to float64[n]
        What one job may have: also "wall", its time limit [s], and what it has to ask for, "least processors"
        and so on. Infinite without a limit.
    spent : float64[...]
        Seconds of the resource of each row that were used before.
    keeps : bool[...]
        Rows of which what was used does not decay.
    keys : list of tuple of str
        What each row is: "qos", its name, whose jobs count together, and their name; or "association",
        account, user, and whose jobs count together; and what is limited.
    """

    rows: list[dict[str, int]]
    limited: Integers
    own: dict[str, NDArray[np.float64]]
    spent: NDArray[np.float64]
    keeps: NDArray[np.bool_]
    keys: list[tuple[str, ...]]

    @property
    def has_minutes(self) -> bool:
        """Whether some of the limits are of minutes."""
        return any(" " in what for row in self.rows for what in row)

    def too_much(self, asked: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Which jobs ask for more than one of them, or its group, may have, or for less than they have to."""
        over = np.any([asked[what] > most for what, most in self.own.items() if what in asked], axis=0)
        for what in asked.keys() & set(RESOURCES):
            least = self.own[f"least {what}"]
            over |= np.isfinite(least) & (asked[what] < least)
        for row, most in enumerate(self.rows):
            mine = (self.limited == row).any(axis=1)
            for what in most.keys() & asked.keys():
                over |= mine & (asked[what] > most[what])
        return np.asarray(over, np.bool_)

    def table(self, *, safe: bool, mebibyte: int = 1) -> RecordArray:
        """The rows as the controller wants them.

        Parameters
        ----------
        safe : bool
            Whether AccountingStorageEnforce has `safe`.
        mebibyte : int
            Units of memory of the jobs that are one.
        """
        table = unlimited(len(self.rows))
        table["spent"] = self.spent
        for k, row in enumerate(self.rows):
            for what, number in row.items():
                way, _, resource = what.rpartition(" ")
                most = number * (mebibyte if resource == "memory" else 1)
                if way:
                    table[k]["minutes"] = most
                    table[k]["resource"] = RESOURCES.index(resource)
                    table[k]["way"] = RUNNING if way == "running" else SAFE if safe else SPENT
                else:
                    table[k][what] = most
        return table


OF_ONE = (*RESOURCES, "wall", *(f"least {what}" for what in RESOURCES))
"""What one job may have, or has to ask for."""


def limits_of_jobs(
    accounting: Accounting, owners: Sequence[Owner], of_partition: Sequence[str] = ()
) -> LimitsOfJobs:
    """Limits of jobs whose accounts, users and qualities of service are given.

    Parameters
    ----------
    accounting : Accounting
        What has limits.
    owners : sequence of (str, str, str)
        Account, user and quality of service of each job.
    of_partition : sequence of str, optional
        Quality of service of the partition of each job, empty for none. Its limits go before those of the
        job's own, unless this has the flag OverPartQOS.
    """
    keyed = list(zip(owners, of_partition or [""] * len(owners), strict=True))
    tree = {(each.account, each.user): each for each in accounting.associations}
    rows: list[dict[str, int]] = []
    spent: list[float] = []
    keeps: list[bool] = []
    shares = Shares(accounting)
    places: dict[tuple[str, ...], int] = {}
    kinds = {key: k for k, key in enumerate(dict.fromkeys(keyed))}
    of_kind: list[list[int]] = []
    own = {what: np.full(len(kinds), np.inf) for what in OF_ONE}
    for ((account, user, name), partition), k in kinds.items():
        lineage = list(_lineage(tree, account, user))
        holders = {"user": user, "account": account, "group": ""}
        found: dict[tuple[str, ...], int] = {}
        only_counts: set[tuple[str, ...]] = set()
        said: set[tuple[str, str]] = set()
        for one in _in_order(accounting, name, partition):
            quality = accounting.qualities[one]
            for (who, what), number in quality.limits.running.items():
                key: tuple[str, ...] = ("qos", one, who, holders[who], what)
                found[key] = number
                if (who, what) in said:
                    only_counts.add(key)
            said |= set(quality.limits.running)
            for what, number in quality.limits.job.items():
                if np.isinf(own[what][k]):
                    own[what][k] = number
        if ("account", "jobs") in said:
            said.add(("user", "jobs"))  # an association has only one number of jobs for its users
        for each in lineage:
            for (who, what), number in each.limits.running.items():
                # what an account says of one user is about each of its users, unless one says otherwise
                whose = (account, user) if who == "user" else (each.account, each.user)
                key = ("association", *whose, who, what)
                found.setdefault(key, number)
                if (who, what) in said:
                    only_counts.add(key)
            for what, number in each.limits.job.items():
                if np.isinf(own[what][k]):
                    own[what][k] = number
        for key, number in found.items():
            if key not in places:
                places[key] = len(rows)
                rows.append({key[-1]: number})
                # what was used before is known of associations, in processors
                known = key[0] == "association" and key[-1] == "used processors"
                spent.append(float(shares.used[shares.place[key[1], key[2]]]) if known else 0.0)
                keeps.append(key[0] == "qos" and not accounting.qualities[key[1]].decays)
        of_kind.append([unchecked(places[key]) if key in only_counts else places[key] for key in found])
    table = np.full((len(kinds), max(map(len, of_kind), default=0)), -1, np.int64)
    for k, mine in enumerate(of_kind):
        table[k, : len(mine)] = mine
    which = np.array([kinds[key] for key in keyed], np.int64)
    return LimitsOfJobs(
        rows=rows,
        limited=table[which],
        own={what: values[which] for what, values in own.items()},
        spent=np.array(spent, np.float64),
        keeps=np.array(keeps, np.bool_),
        keys=list(places),
    )


def _in_order(accounting: Accounting, name: str, partition: str) -> list[str]:
    """Names of the known qualities of service of a job and its partition, whose limits go first in front."""
    own = accounting.qualities.get(name)
    both = (name, partition) if own is not None and own.over_partition else (partition, name)
    return [each for each in dict.fromkeys(both) if each in accounting.qualities]


def unlimited(count: int) -> RecordArray:
    """A number of rows of limits without effect."""
    table: RecordArray = np.zeros(count, LIMIT)
    for name in (*AMOUNTS, "minutes"):
        table[name] = FOREVER
    table["held"] = -1
    return table


def _lineage(tree: dict[tuple[str, str], Association], account: str, user: str) -> Iterator[Association]:
    """The association of a user in an account, and those above it."""
    here = tree.get((account, user)) or tree.get((account, ""))
    while here is not None:
        yield here
        above = (here.parent, "")
        here = tree.get(above) if above != (here.account, here.user) else None

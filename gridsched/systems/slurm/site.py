"""A site as its Slurm is configured: its nodes and partitions, and the scheduler that runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import cast, get_args

from gridsched.errors import ConfigurationError
from gridsched.nodes import NodeEvent, NodeType, Partition, numbered_constraints
from gridsched.platform import Cluster
from gridsched.systems.base import CONSTRAINT, LICENCE, Site
from gridsched.systems.slurm.accounts import ROOT, Accounting, read_accounting, read_usage, renamed, words
from gridsched.systems.slurm.changes import names_in
from gridsched.systems.slurm.conf import (
    ADMINISTRATION,
    CHANGES_SCHEDULES,
    DEFAULTS,
    NO_EFFECT,
    OF_TIME,
    OTHERS,
    PARTITION_OTHERS,
    WITHOUT_MEANING,
    SlurmConfiguration,
    SlurmPartition,
    licences_of,
    lines_of,
    pairs_of,
    read_configuration,
)
from gridsched.systems.slurm.parameters import PartitionRules, Version, is_since
from gridsched.systems.slurm.scheduler import Slurm
from gridsched.traces.groups import read_groups
from gridsched.traces.sdiag import read_passes

_OF_GROUPS = "allowgroups"

_NO_NUMBER = 1_000_000
"""From here on partitions are numbered that no job of a log has."""

_NOT_MODELLED = {
    "key": CHANGES_SCHEDULES,
    "option": OTHERS,
    "partition": PARTITION_OTHERS | words("state gracetime"),
}
"""What can change a schedule and is not modelled for the jobs of a log, by what a change names."""

_WITHOUT_EFFECT = {
    "key": ADMINISTRATION,
    "option": NO_EFFECT,
    "partition": words(
        "defaulttime defmempercpu defmempernode alloc allocnodes hidden rootonly reqresv disablerootjobs"
    ),
}
"""What does not change when the jobs of a log start here, by what a change names."""

_NO_MEMORY = 1
"""RealMemory [MiB] of a node that does not say how much it has."""


def read_slurm_site(
    configuration: str | Path,
    *,
    changes: Sequence[str] = (),
    accounts: str | Path | None = None,
    qualities: str | Path | None = None,
    usage: str | Path | None = None,
    passes: str | Path | None = None,
    groups: str | Path | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    version: str | None = None,
) -> Site:
    r"""Read the scheduler, nodes and partitions of a cluster from its slurm.conf.

    Parameters
    ----------
    configuration : path
        slurm.conf, or what `scontrol show config` printed, which has no nodes.
    changes : sequence of str
        What it says otherwise: `Key=value`, as a line of slurm.conf. Options of SchedulerParameters are
        changed one by one, the others stay; a partition is changed by its name, such as
        `PartitionName=long MaxTime=2-0`.
    accounts, qualities : path, optional
        What `sacctmgr dump` and `sacctmgr show qos --parsable2` wrote: shares, limits, priorities.
    usage : path, optional
        What `sshare --all --parsable2` printed: what was used before the first job counts in fair shares.
    passes : path, optional
        What `sdiag` printed: how long backfill passes take; no time without it.
    groups : path, optional
        What `getent group` printed, and `getent passwd` below it: who is in the groups of AllowGroups, to
        which partitions are not held without it.
    names : mapping of str to sequence of str, optional
        Names by number of "partition", "group" (account), "user" and "queue" (quality of service), and lists
        of "partitions" such as a,b, as `AccountingLog` has them. Without names those whose names are numbers
        have these.

    version : str, optional
        Release of Slurm whose rules hold, such as 24.05; 22.05 by default.

    Returns
    -------
    Site
        Its first partition is the default one, which jobs of unknown partitions use. Its cluster is none
        where the file has no nodes.

    Raises
    ------
    ConfigurationError
        If the file cannot be read, or a change: one line that names file and line, or the change.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> lines = [
    ...     "ClusterName=lab",
    ...     "SchedulerType=sched/backfill",
    ...     "NodeName=n[1-4] CPUs=16 RealMemory=64000",
    ...     "PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0",
    ... ]
    >>> _ = Path("slurm.conf").write_text("\n".join(lines))
    >>> site = gs.read_slurm_site("slurm.conf")
    >>> site.cluster.processors
    64
    >>> site.not_modelled
    ()
    """
    release = _release(version)
    read = _read(configuration, changes, passes, groups, release)
    names = names or {}
    accounting = _accounting(accounts, qualities, usage, names)
    try:
        scheduler = Slurm(**read.parameters, version=release, accounting=accounting)
    except ConfigurationError as error:
        raise ConfigurationError(f"{configuration}: {error}") from None
    left = [*read.not_modelled, *(() if accounting is None else accounting.not_modelled)]
    licence_lists, unknown = _licence_lists(names.get("licences", ()), read.licences)
    left += [f"{LICENCE}{text}" for text in unknown]
    unchanged = _why_unchanged(_read(configuration, (), passes, groups, release), read, changes)
    assumed = _assumed(read, release)
    empty = [each.name for each in read.partitions if read.nodes and not each.nodes]
    if empty:
        raise ConfigurationError(
            f"{configuration}: partition {empty[0]} has no nodes; leave it out of the file"
        )
    if not read.nodes:
        return Site(
            cluster=None,
            scheduler=scheduler,
            not_modelled=tuple(left),
            unchanged=unchanged,
            assumed=assumed,
        )
    ordered = sorted(read.partitions, key=lambda partition: not partition.default)
    numbers = _numbers([partition.name for partition in ordered], names.get("partition", ()))
    exclusive = [partition.exclusive for partition in ordered]
    constraints, strange = numbered_constraints(names.get("constraint", ()))
    left += [f"{CONSTRAINT}{text}" for text in strange]
    # from 23.02 on the accounts below those that are named are meant too
    below = accounting if scheduler.is_since("23.02") else None
    known = () if accounting is None else accounting.qualities
    left += [
        f"QOS={each.quality} of partition {each.name}, which --qos does not have"
        for each in ordered
        if each.quality and scheduler.enforce_limits and _called(names, "queue", each.quality) not in known
    ]
    factors = {number: each.job_factor for number, each in zip(numbers, ordered, strict=True)}
    return Site(
        cluster=Cluster(
            nodes=_node_types(read, scheduler),
            partitions=[_partition(*each) for each in zip(ordered, numbers, strict=True)],
            constraints=constraints,
            node_exclusive=bool(exclusive) and all(exclusive),
            name=Path(configuration).stem,
            events=[NodeEvent(time=0, node=node.name, kind="drain") for node in read.nodes if node.out],
        ),
        scheduler=replace(
            scheduler,
            partition_factors=factors,
            partition_preempt_modes={
                number: each.preempt_mode
                for number, each in zip(numbers, ordered, strict=True)
                if each.preempt_mode is not None
            }
            or None,
            partition_qualities={
                number: _called(names, "queue", each.quality)
                for number, each in zip(numbers, ordered, strict=True)
                if each.quality
            }
            or None,
            partition_rules={
                number: rules
                for number, each in zip(numbers, ordered, strict=True)
                if (rules := _rules(each, names, below)) != PartitionRules()
            }
            or None,
            billing_weights={
                number: each.billing for number, each in zip(numbers, ordered, strict=True) if each.billing
            }
            or None,
            licences=read.licences or None,
            licence_lists=licence_lists or None,
            partition_lists=_lists(names.get("partitions", ()), [each.name for each in ordered], numbers),
        ),
        not_modelled=tuple(left),
        partly=_partly(configuration, left, dict(zip([each.name for each in ordered], numbers, strict=True))),
        unchanged=unchanged,
        assumed=assumed,
    )


def _assumed(read: SlurmConfiguration, release: Version) -> str:
    """What is said of keys that the configuration does not have, as far as it has to be known."""
    changed = [key for key in DEFAULTS[True] if key in read.defaults]
    own = ", ".join(f"{key}={read.defaults[key]}" for key in changed)
    later = ", ".join(DEFAULTS[True][key] for key in changed)
    since = (
        "the default since 23.11"
        if is_since(release, "23.11")
        else f"the default of {release} (since 23.11 {later}: name the release with --slurm-version)"
    )
    said = [f"{own}, {since}"] if changed else []
    said += [f"{key}={value}, the default" for key, value in read.defaults.items() if key not in changed]
    return "; ".join(said)


def _partly(
    configuration: str | Path, left: Sequence[str], numbers: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Partitions whose lines have what is not modelled, by its name."""
    defaults: dict[str, str] = {}
    found: dict[str, list[int]] = {}
    for where, text in lines_of(configuration):
        line = pairs_of(text, where) if text.lower().startswith("partitionname") else {}
        name = line.get("partitionname", "")
        if name.upper() == "DEFAULT":
            defaults |= line
        for key, value in {**defaults, **line}.items() if name in numbers else ():
            if value.lower() not in WITHOUT_MEANING:
                found.setdefault(f"PartitionName {key}", []).append(numbers[name])
    return {name: tuple(found[name]) for name in left if name in found}


def _release(version: str | None) -> Version:
    """The release of a version such as 23.11.4; the base of the model without one."""
    known = get_args(Version)
    release = known[0] if version is None else ".".join(version.split(".")[:2])
    if release not in known:
        raise ConfigurationError(f"release of Slurm: found {version!r}; use one of {', '.join(known)}")
    return cast(Version, release)


def _read(
    configuration: str | Path,
    changes: Sequence[str],
    passes: str | Path | None,
    groups: str | Path | None,
    version: Version,
) -> SlurmConfiguration:
    """A configuration, with how long a backfill pass takes for a job; without what depends on it if unknown.

    The mean cycle of `sdiag` is without the time for which the pass let others work (`_do_diag_stats`).
    """
    read = _with_members(read_configuration(configuration, changes, version), groups)
    number = {} if passes is None else read_passes(passes)
    if number.get("depth"):
        time = {"bf_time_per_job": max(round(number["mean"] / number["depth"]), 1)}
        return replace(read, parameters={**read.parameters, **time})
    rest = {name: value for name, value in read.parameters.items() if name not in OF_TIME}
    return replace(read, parameters=rest)


def _with_members(read: SlurmConfiguration, groups: str | Path | None) -> SlurmConfiguration:
    """A configuration with users for the groups in AllowGroups; without these keys if nobody knows them.

    Root may run everywhere; a group that does not exist has no members (`validate_group`,
    `get_groups_members` of Slurm 22.05).
    """
    named = {name for each in read.partitions for name in each.admission.get(_OF_GROUPS, ())}
    if not named:
        return read
    left, members = [*read.not_modelled], None
    if groups is None:
        left.append(f"PartitionName {_OF_GROUPS}")
    else:
        known = read_groups(groups)
        members = known.members
        left += [f"group {name} of AllowGroups, not in {groups}" for name in sorted(named - set(members))]
        if not known.has_primary:
            left.append(f"primary groups of users for AllowGroups, not in {groups} (getent passwd)")
    partitions = []
    for each in read.partitions:
        admission = {**each.admission}
        listed = admission.pop(_OF_GROUPS, None)
        if members is not None and listed is not None:
            users = frozenset().union(*(members.get(name, frozenset()) for name in listed))
            admission[_OF_GROUPS] = ("root", *sorted(users))
        partitions.append(replace(each, admission=admission))
    return replace(read, partitions=tuple(partitions), not_modelled=tuple(left))


def _why_unchanged(before: SlurmConfiguration, read: SlurmConfiguration, changes: Sequence[str]) -> str:
    """Why changes leave what is read of a configuration as it is; nothing if they do not."""
    as_read = replace(before, not_modelled=read.not_modelled, defaults=read.defaults)
    if not changes or as_read != read:
        return ""
    rest = [each for change in changes for each in names_in(change)]
    why = []
    for known, text in ((_NOT_MODELLED, "not modelled"), (_WITHOUT_EFFECT, "without effect on starts here")):
        found = [each for each in rest if each[1].lower() in {key.lower() for key in known[each[0]]}]
        rest = [each for each in rest if each not in found]
        if found:
            why.append(f"{', '.join(name for _, name in found)} {'is' if len(found) == 1 else 'are'} {text}")
    named = set(re.findall(r"\w+", " ".join([*before.not_modelled, *read.not_modelled]).lower()))
    for name in [name for _, name in rest if name.lower() in named]:
        rest = [each for each in rest if each[1] != name]
        why.append(f"what {name} says is not modelled")
    if rest:
        why.append(f"{', '.join(name for _, name in rest)}: the configuration says so already")
    return "; ".join(why)


def _lists(
    texts: Sequence[str], partitions: Sequence[str], numbers: Sequence[int]
) -> dict[int, tuple[int, ...]] | None:
    """Numbers of the known partitions in each list of a log."""
    known = dict(zip(partitions, numbers, strict=True))
    listed = {
        place: tuple(known[name] for name in text.split(",") if name in known)
        for place, text in enumerate(texts)
    }
    return {place: each for place, each in listed.items() if len(each) > 1} or None


def _rules(
    partition: SlurmPartition, names: Mapping[str, Sequence[str]], tree: Accounting | None
) -> PartitionRules:
    """What the jobs of a partition must be, and get; with accounts below those that are named in a tree."""

    def called(key: str, kind: str) -> frozenset[str] | None:
        if key not in partition.admission:
            return None
        found = {_called(names, kind, name) for name in partition.admission[key]}
        for each in tree.associations if tree is not None and kind == "group" else ():
            if each.parent in found:  # parents come before their children
                found.add(each.account)
        return frozenset(found)

    return PartitionRules(
        users=called(_OF_GROUPS, "user"),
        accounts=called("allowaccounts", "group"),
        qualities=called("allowqos", "queue"),
        no_accounts=called("denyaccounts", "group") or frozenset(),
        no_qualities=called("denyqos", "queue") or frozenset(),
        least_nodes=partition.least_nodes,
        exclusive=partition.exclusive,
    )


def _licence_lists(
    texts: Sequence[str], known: Mapping[str, int]
) -> tuple[dict[int, dict[str, int]], list[str]]:
    """Licences in each list of a log that there are, and lists that name others or cannot be read."""
    lists, strange = {}, []
    for number, text in enumerate(texts):
        try:
            found = licences_of(text, "")
        except ConfigurationError:
            found = {text: 1}
        lists[number] = {name: count for name, count in found.items() if name in known}
        if len(lists[number]) < len(found):
            strange.append(text)
    return {number: listed for number, listed in lists.items() if listed}, strange


def _number(name: str, known: Sequence[str]) -> int | None:
    """Number of a name in a log; without names numbers stand for themselves."""
    if not known:
        return int(name) if name.isascii() and name.isdigit() else None
    return list(known).index(name) if name in known else None


def _numbers(partitions: Sequence[str], known: Sequence[str]) -> list[int]:
    """Numbers of partitions in a log."""
    found = [_number(name, known) for name in partitions]
    return [_NO_NUMBER + k if number is None else number for k, number in enumerate(found)]


def _called(names: Mapping[str, Sequence[str]], kind: str, name: str) -> str:
    """Number of an account, user or quality of service in a log as text, or what no job has."""
    known = names.get(kind, ())
    if known and kind == "queue":  # of which slurmctld compares names without case
        known, name = [each.lower() for each in known], name.lower()
    number = _number(name, known)
    if not known or not name or (kind, name) == ("group", ROOT):
        return name if number is None else str(number)
    # who has no job must not have the name of one who has
    return f"no job: {name}" if number is None else str(number)


def _accounting(
    accounts: str | Path | None,
    qualities: str | Path | None,
    usage: str | Path | None,
    names: Mapping[str, Sequence[str]],
) -> Accounting | None:
    """Accounts, users and qualities of service by their numbers in a log."""
    if accounts is None:
        for other in (qualities, usage):
            if other is not None:
                raise ConfigurationError(f"{other}: give also the accounts, which sacctmgr dump writes")
        return None
    read = read_accounting(accounts, qualities)
    if usage is not None:
        read = read_usage(usage, read)

    return renamed(read, partial(_called, names))


def _partition(partition: SlurmPartition, number: int) -> Partition:
    return Partition(
        number=number,
        name=partition.name,
        nodes=partition.nodes,
        time_limit=partition.time_limit,
        most_nodes=partition.most_nodes,
        priority=partition.tier,
    )


def _node_types(read: SlurmConfiguration, scheduler: Slurm) -> list[NodeType]:
    """Nodes of a line together; memory only where jobs are held to it."""
    held = scheduler.memory_is_consumed or scheduler.select_type == "linear"
    alike = [list(nodes) for _, nodes in groupby(read.nodes, key=lambda node: node.line)]
    return [
        NodeType(
            name=f"type{place}-",
            names=[node.name for node in nodes],
            cores=nodes[0].cores,
            memory=nodes[0].memory if held and nodes[0].memory > _NO_MEMORY else None,
            gpus=nodes[0].gpus,
            features=nodes[0].features,
            weight=nodes[0].weight,
        )
        for place, nodes in enumerate(alike)
    ]

"""A site as its files say, and as it would be with changes of its slurm.conf."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gridsched as gs
from gridsched.cli.logs import Log, moment
from gridsched.cli.options import names_of_aspects, path
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gridsched.cli.clusters import Setting
    from gridsched.platform import Cluster
    from gridsched.policies.local import LocalPolicy
    from gridsched.systems.base import Site

ALL_CHANGES = "all changes"

OF_SLURM_ALONE = ("sacctmgr", "qos", "sshare", "sdiag", "groups")
"""Files of a site that only simulations of its Slurm use."""


def add_site_file(group: Any) -> None:
    """The files of a site, or its configuration alone."""
    group.add_argument(
        "--site",
        type=path,
        metavar="FILE.yaml",
        help="files of a site by key: accounting (then give no TRACE), slurm_conf, sacctmgr, qos, sshare, "
        "squeue, sdiag, groups, time_zone (config/keys/site.md); options go before them",
    )
    group.add_argument(
        "--slurm-conf",
        type=path,
        metavar="FILE",
        help="the nodes and partitions of this slurm.conf, unless others are given, and its Slurm under "
        "compare and explain; or the output of scontrol show config, which has no nodes",
    )
    add_slurm_version(group)


def add_slurm_version(group: Any) -> None:
    """The release of Slurm."""
    group.add_argument(
        "--slurm-version",
        metavar="RELEASE",
        help="release whose rules hold, of those from 22.05 to 26.05 (default: 22.05)",
    )


def add_site(group: Any) -> None:
    """The files of a site, and changes of its configuration."""
    add_site_file(group)
    add_accounts(group)
    add_groups(group)
    group.add_argument(
        "--change",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="also simulate a change of the file, such as SchedulerParameters=bf_window=2880 (the other "
        "options stay), PriorityWeightAge=500 or 'PartitionName=long MaxTime=2-0'; may be repeated: "
        "each change alone, then all together. Separate keys that only make sense together by spaces",
    )


def add_accounts(group: Any) -> None:
    """Accounts, qualities of service and usage beside a configuration."""
    group.add_argument(
        "--sacctmgr",
        type=path,
        metavar="FILE",
        help="shares and limits of accounts and users, as sacctmgr dump wrote them (default: a share each)",
    )
    group.add_argument(
        "--qos",
        type=path,
        metavar="FILE",
        help="priorities and limits of qualities of service, as sacctmgr show qos --parsable2 printed them",
    )
    group.add_argument(
        "--sshare",
        type=path,
        metavar="FILE",
        help="usage before the first job, as sshare --all --parsable2 printed it (default: none)",
    )
    group.add_argument(
        "--sdiag",
        type=path,
        metavar="FILE",
        help="how long passes of the backfill scheduler take, as sdiag printed it (default: no time)",
    )


def add_groups(group: Any) -> None:
    """Who is in which group."""
    group.add_argument(
        "--groups",
        type=path,
        metavar="FILE",
        help="who is in the groups of AllowGroups, as getent group printed it, with getent passwd below it "
        "(default: AllowGroups does not hold)",
    )


def use_site(options: argparse.Namespace) -> None:
    """Take from the file of a site what the command line does not say; refuse what does not go together."""
    if options.site is not None:
        from gridsched.cli.site_files import FILES, read_site_file

        given = read_site_file(options.site)
        found = {name: Path(given[name]) if name in FILES else given[name] for name in given}
        found["trace"] = given["accounting"]
        for name, value in found.items():
            if getattr(options, name, None) is None:
                setattr(options, name, value)
    if options.trace is None:
        raise ConfigurationError("name a TRACE, or the files of a site with --site")
    if options.slurm_conf is None:
        for name in ("change", *OF_SLURM_ALONE, "slurm_version"):
            if getattr(options, name, None):
                raise ConfigurationError(
                    f"--{name.replace('_', '-')}: give the configuration too, with --slurm-conf"
                )


def configured(options: argparse.Namespace, log: Log) -> Cluster | None:
    """The cluster of the configuration; none where none is given, or it has no nodes."""
    return None if options.slurm_conf is None else site_of(options, log).cluster


def site_of(options: argparse.Namespace, log: Log, changes: Sequence[str] = ()) -> Site:
    """The site with some changes."""
    return gs.read_slurm_site(
        options.slurm_conf,
        changes=changes,
        accounts=getattr(options, "sacctmgr", None),
        qualities=getattr(options, "qos", None),
        usage=getattr(options, "sshare", None),
        passes=getattr(options, "sdiag", None),
        groups=getattr(options, "groups", None),
        names=log.names,
        version=getattr(options, "slurm_version", None),
    )


def sites_of(
    options: argparse.Namespace, log: Log, setting: Setting, policies: Sequence[LocalPolicy] = ()
) -> dict[str, Site]:
    """The site as it is, with each change alone, with all of them, and under policies, by shown names."""
    changes: list[str] = options.change
    base = site_of(options, log)
    own = base.cluster is not None and setting.cluster.nodes == base.cluster.nodes
    chosen: dict[str, Sequence[str]] = {options.slurm_conf.name: ()}
    chosen |= {_short(change): [change] for change in changes}
    if len(changes) > 1:
        # contradictions are found before anything runs
        chosen[ALL_CHANGES] = changes
    sites = {name: site_of(options, log, given) for name, given in chosen.items()}
    placed = {name: _placed(site, setting, options, own=own) for name, site in sites.items()}
    first = next(iter(placed.values()))
    return placed | {policy.name: replace(first, scheduler=policy) for policy in policies}


def _short(change: str) -> str:
    """A change without the key that most of them have."""
    key, _, value = change.partition("=")
    return value.strip() if key.strip().lower() == "schedulerparameters" and value.strip() else change.strip()


def _placed(site: Site, setting: Setting, options: argparse.Namespace, *, own: bool) -> Site:
    """The site on the cluster that is simulated: its own, unless options said otherwise."""
    from gridsched.aspects import without

    cluster = setting.cluster
    if own and site.cluster is not None:
        cluster = replace(
            cluster,
            processors=0,
            nodes=site.cluster.nodes,
            partitions=site.cluster.partitions,
            node_exclusive=options.node_exclusive or site.cluster.node_exclusive,
        )
        _, cluster = without(setting.workload, cluster, names_of_aspects(options.without))
    return replace(site, cluster=cluster)


def told_of(
    sites: Mapping[str, Site], aside: Sequence[tuple[str, str]], setting: Setting, options: argparse.Namespace
) -> list[tuple[str, str]]:
    """What a simulation leaves out, with what it leaves out of the configurations."""
    from gridsched.comparison import REQUESTS
    from gridsched.systems.base import Scheduler

    first = moment(setting.workload, int(setting.workload.submit_time[0]))
    assumed = [
        "" if options.sacctmgr else "every account and user has one share",
        f"what {options.sshare.name} says was used before the first job, {first}"
        if options.sshare
        else "nothing was used before the first job",
    ]
    known = {
        "fair-share": ", and ".join(filter(None, assumed)),
        "memory, GPUs": _allocated(next(iter(sites.values())), setting),
        **({} if options.qos is None else {"queues, QOS": ""}),
        REQUESTS: "",
    }
    # what is said of policies is not so under Slurm
    told = [
        (word, known.get(word, text).replace("start apart here", "start together under Slurm only"))
        for word, text in aside
    ]
    told += [(word, known[word]) for word in known if word not in dict(told)]
    policies = [name for name, site in sites.items() if not isinstance(site.scheduler, Scheduler)]
    if policies:
        without = "on the same nodes, without Slurm's priorities, limits and passes"
        asked = dict(aside).get(REQUESTS)
        told.append((", ".join(policies), f"{without}; {asked}" if asked else without))
    left = dict.fromkeys(name for site in sites.values() for name in site.not_modelled)
    if left:
        told.append(("slurm.conf", f"not modelled: {', '.join(left)}"))
    told.append(("assumed", next(iter(sites.values())).assumed))
    return [(word, text) for word, text in told if text]


def _allocated(site: Site, setting: Setting) -> str:
    """What jobs get of their nodes, as far as the log says what they request."""
    workload, cluster = setting.workload, setting.cluster
    scheduler: Any = site.scheduler
    if not cluster.nodes:
        return "one pool of processors: memory and GPUs do not count"
    select = f"SelectType=select/{scheduler.select_type}"
    if cluster.node_exclusive or scheduler.select_type == "linear":
        return f"{select}: jobs get whole nodes, with all their memory and GPUs"
    asked = {
        "memory": bool((workload.requested_memory > 0).any()),
        "GPUs": workload.requested_gpus is not None and bool((workload.requested_gpus > 0).any()),
    }
    sized = any(kind.memory for kind in cluster.node_types)
    counts = {"memory": scheduler.memory_is_consumed and sized, "GPUs": True}
    got = ", ".join(["processors", *(name for name, given in asked.items() if given and counts[name])])
    left = [
        "memory is no consumable resource (SelectTypeParameters)"
        if asked["memory"] and not scheduler.memory_is_consumed
        else "",
        "no node has a RealMemory: memory does not count"
        if asked["memory"] and scheduler.memory_is_consumed and not sized
        else "",
        *(f"the log says nothing of {name}" for name, given in asked.items() if not given),
    ]
    return "; ".join(filter(None, [f"{select}: jobs get {got}", *left]))

"""`gridsched site check`: what is read of the files of a site, and how much of the load the rest touches."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gridsched as gs
from gridsched.cli.logs import Log, moment, read_log
from gridsched.cli.options import add_command, path
from gridsched.cli.printing import facts_table, print_blocks, printable, progress, table
from gridsched.cli.sites import OF_SLURM_ALONE
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gridsched.systems.base import Site
    from gridsched.workloads import Workload

    Mask = NDArray[np.bool_]

_HOUR = 3600

_WITHOUT = {
    "time_zone": "times are read as UTC",
    "slurm_conf": "nodes are those of the column NodeList, and compare has policies instead of Slurm",
    "sacctmgr": "every account and user has one share, and no limits",
    "qos": "no quality of service has limits or priorities",
    "sshare": "nothing was used before the first job",
    "squeue": "forecast needs --at, a time of the log",
    "sdiag": "how long passes take is not known",
    "groups": "partitions admit every group (AllowGroups)",
}
"""What is assumed without a key."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "site",
        "Check the files of a Slurm site that compare, explain and forecast take with --site: what is read, "
        "what is missing, what is not modelled, and how much of the load that touches.",
        "gridsched site check our-site.yaml",
        "gridsched compare --site our-site.yaml --change SchedulerParameters=bf_window=2880",
    )
    parser.add_argument("action", nargs="?", choices=("check",), default="check", metavar="check")
    parser.add_argument(
        "file", type=path, metavar="FILE.yaml", help="files of the site by key (config/keys/site.md)"
    )
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> None:
    from gridsched.cli.site_files import read_site_file
    from gridsched.traces.sacct import COMMAND_LINE, WITHOUT_COMMAND_LINES

    given = read_site_file(options.file)
    reading = argparse.Namespace(
        trace=given["accounting"],
        time_zone=given.get("time_zone"),
        **dict.fromkeys(("format", "extra_fields", "unit", "begin")),
    )
    log = read_log(reading)
    if log.accounting is None:
        raise ConfigurationError(f"{options.file}: accounting: {log.path} is no export of sacct; name one")
    site = None
    if "slurm_conf" in given:
        site = gs.read_slurm_site(
            given["slurm_conf"],
            accounts=given.get("sacctmgr"),
            qualities=given.get("qos"),
            usage=given.get("sshare"),
            passes=given.get("sdiag"),
            groups=given.get("groups"),
            names=log.names,
            version=given.get("slurm_version"),
        )
    else:
        for name in (*OF_SLURM_ALONE, "slurm_version"):
            if name in given:
                raise ConfigurationError(f"{options.file}: {name}: give slurm_conf too")
    with progress(f"reading requests of {log.path.name}"):
        touched = _touched(log, site)
    missing = [(name, text) for name, text in _WITHOUT.items() if name not in given]
    if site is not None and site.assumed:
        missing.append(("keys of slurm.conf", site.assumed))
    if log.accounting.without_command_lines:
        missing.append((COMMAND_LINE, WITHOUT_COMMAND_LINES))
    print_blocks(
        "Read:",
        facts_table([(name, printable(text)) for name, text in _read(given, log, site)]),
        *(("Not given:", facts_table(missing)) if missing else ()),
        *_load(touched, log.workload),
        *_left(site, log),
    )


# --- what is read ---------------------------------------------------------------------------------


def _read(given: Mapping[str, str], log: Log, site: Site | None) -> Iterator[tuple[str, str]]:
    """What each file has."""
    from gridsched.cli.site_files import SiteConfig

    for name in SiteConfig.model_fields:
        if name in given:
            found = {
                "accounting": lambda: _jobs(log.workload),
                "time_zone": lambda: given["time_zone"],
                "slurm_version": lambda: given["slurm_version"],
                "slurm_conf": lambda: _configuration(site),
                "squeue": lambda: _queue(Path(given["squeue"])),
                "sdiag": lambda: _passes(Path(given["sdiag"])),
                "groups": lambda: _groups(given["groups"]),
            }.get(name, lambda name=name: _accounting(site, name))()
            yield name, found


def _jobs(workload: Workload) -> str:
    first, last = (moment(workload, int(workload.submit_time[place])) for place in (0, -1))
    left = sum(workload.left_out.values())
    told = f"; {left:,} line{'s' * (left > 1)} left out, see gridsched info" if left else ""
    return f"{len(workload):,} jobs submitted from {first} to {last}{told}"


def _configuration(site: Site | None) -> str:
    if site is None or site.cluster is None:
        return "no nodes; those of the column NodeList are used"
    cluster = site.cluster
    names = ", ".join(partition.label for partition in cluster.partitions)
    return f"{len(cluster.node_names):,} nodes, {cluster.processors:,} processors; partitions {names}"


def _accounting(site: Site | None, name: str) -> str:
    """How much of accounts, qualities of service or usage there is."""
    scheduler: Any = None if site is None else site.scheduler
    known: Any = getattr(scheduler, "accounting", None)
    unused = "" if scheduler.enforce_limits else "; no limits of these hold (AccountingStorageEnforce)"
    if name == "sacctmgr":
        users = sum(bool(each.user) for each in known.associations)
        return f"{len(known.associations) - users:,} accounts, {users:,} users in them{unused}"
    if name == "qos":
        return f"{len(known.qualities):,} qualities of service{unused}"
    return f"usage of {len(known.usage):,} users in accounts, taken as that before the first job"


def _queue(file: Path) -> str:
    """How many jobs run and wait."""
    from gridsched.forecasting.queues import column_in, is_queue

    if not is_queue(file):
        raise ConfigurationError(
            f'{file}: no queue; print it with squeue -o "%i|%T|%M|%C|%l|%u|%P|%q|%V" (docs/forecast.md)'
        )
    states = [state.lower() for state in column_in(file, "state")]
    runs, waits = (sum(state in kind for state in states) for kind in (("running", "r"), ("pending", "pd")))
    unknown = "" if column_in(file, "tres") else "; memory and GPUs of jobs are not known (docs/forecast.md)"
    return f"{runs:,} lines of running jobs, {waits:,} of waiting ones{unknown}"


def _passes(file: Path) -> str:
    """How long passes of the backfill scheduler take, and how far they come."""
    from gridsched.traces.sdiag import read_passes

    number = read_passes(file)
    told = f"{number['cycles']:,} backfill passes, {number['mean'] / 1e6:,.3g} s on average"
    if "longest" in number:
        told += f", at most {number['longest'] / 1e6:,.3g} s"
    if {"depth", "queue"} <= set(number):
        told += f"; {number['depth']:,} jobs tested of {number['queue']:,} in the queue"
    if not number.get("depth"):
        return f"{told}; simulated passes take no time"
    return f"{told}; simulated passes take {number['mean'] / number['depth'] / 1e3:,.3g} ms a job"


def _groups(file: str) -> str:
    from gridsched.traces.groups import read_groups

    known = read_groups(file)
    users = len(frozenset().union(*known.members.values()))
    primary = "" if known.has_primary else "; no primary groups (getent passwd)"
    groups = "1 group" if len(known.members) == 1 else f"{len(known.members):,} groups"
    return f"{groups} with {users:,} user{'s' * (users != 1)}{primary}"


# --- what that touches ----------------------------------------------------------------------------


def _touched(log: Log, site: Site | None) -> dict[str, Mask]:
    """Jobs that something touches which is not modelled, by what it is."""
    import numpy as np

    from gridsched.cli.requests import OF_SLURM, requests_of
    from gridsched.systems.base import CONSTRAINT, LICENCE
    from gridsched.traces._slurm_nodes import has_nodes, node_names

    assert log.accounting is not None
    workload = log.workload
    whole = site is not None and (
        getattr(site.scheduler, "select_type", "") == "linear"
        or (site.cluster is not None and site.cluster.node_exclusive)
    )
    found = requests_of(log.path, log.accounting, whole_nodes=whole)
    if site is None:
        return found
    for name, column in OF_SLURM.items():
        if name in found and column in workload.extra:
            found[name] &= workload.extra[column] < 0
    if site.cluster is not None:
        known = [partition.number for partition in site.cluster.partitions]
        first = site.cluster.partitions[0].label if known else ""
        found[f"partitions that slurm.conf does not have: taken as {first}"] = ~np.isin(
            workload.partition, known
        )
        nodes, lists = set(site.cluster.node_names), log.accounting.node_lists
        strange = [has_nodes(text.encode()) and not nodes.issuperset(node_names(text)) for text in lists]
        # the last place is that of jobs without a list
        found["ran on nodes that slurm.conf does not have"] = np.array([*strange, False])[
            log.accounting.node_list
        ]
    accounting: Any = getattr(site.scheduler, "accounting", None)
    if accounting is not None:
        pairs = {(each.account, each.user) for each in accounting.associations}
        owners = zip(workload.group.tolist(), workload.user.tolist(), strict=True)
        found["users or accounts that sacctmgr does not have: one share, no limits"] = np.array(
            [(str(group), str(user)) not in pairs for group, user in owners], np.bool_
        )
        if accounting.qualities:
            names = [int(name) for name in accounting.qualities if name.isdigit()]
            found["qualities of service that qos does not have"] = ~np.isin(workload.queue, names)
    found |= _rejected(log, site)
    for name in site.not_modelled:
        if name in site.partly:
            found[f"slurm.conf: {name}"] = np.isin(workload.partition, site.partly[name])
        elif name.startswith(CONSTRAINT) and workload.constraint is not None:
            number = log.names["constraint"].index(name.removeprefix(CONSTRAINT))
            found[name] = workload.constraint == number
        elif name.startswith(LICENCE) and workload.licences is not None:
            number = log.names["licences"].index(name.removeprefix(LICENCE))
            found[f"{name} that slurm.conf does not have"] = workload.licences == number
    return {name: mask for name, mask in found.items() if mask.any()}


def _rejected(log: Log, site: Site) -> dict[str, Mask]:
    """Jobs that ran, and that Slurm would reject by these files, by the reason."""
    import numpy as np

    from gridsched.platform import platform_of
    from gridsched.policies.local import LocalPolicy
    from gridsched.submission import submit
    from gridsched.traces import clean

    if site.cluster is None or isinstance(site.scheduler, LocalPolicy):
        return {}
    assert log.accounting is not None
    workload = clean(log.workload)
    submission = submit(workload, platform_of(site.cluster))
    rows = log.accounting.rows(workload)
    found = {}
    for reason, mask in site.scheduler.rejects(submission, site.cluster).items():
        rejected = np.zeros(len(log.workload), np.bool_)
        rejected[rows[mask & (workload.run_time > 0)]] = True
        found[f"ran, and would be rejected by these files: {reason}"] = rejected
    return found


def _load(touched: Mapping[str, Mask], workload: Workload) -> list[Any]:
    """Table of what is not modelled, with the load that it touches."""
    import numpy as np

    if not touched:
        return ["No job is known to need anything that is not modelled."]
    work = workload.processors * np.maximum(workload.run_time, 0).astype(np.float64)
    rows = [
        (
            name,
            f"{int(mask.sum()):,}",
            f"{mask.mean():.1%}",
            f"{work[mask].sum() / _HOUR:,.1f}",
            f"{work[mask].sum() / max(work.sum(), 1):.1%}",
        )
        for name, mask in sorted(touched.items(), key=lambda each: -work[each[1]].sum())
    ]
    return [
        "Not modelled, or not as on the site, with the jobs that it touches:",
        table(["what", "jobs", "of all", "processor-hours", "of all"], rows),
    ]


def _left(site: Site | None, log: Log) -> list[Any]:
    """What the configuration says, is not modelled and may touch any job."""
    from gridsched.systems.base import CONSTRAINT, LICENCE

    left = (
        []
        if site is None
        else [
            name
            for name in site.not_modelled
            if name not in site.partly and not name.startswith((CONSTRAINT, LICENCE))
        ]
    )
    return [f"Not modelled of slurm.conf and accounts, may touch any job: {', '.join(left)}."] if left else []

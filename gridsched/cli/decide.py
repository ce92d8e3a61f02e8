"""`gridsched decide`: a scheduler of gridsched as the decision process of a Batsim."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gridsched as gs
from gridsched.cli.options import add_command, add_handshake, completed, path, policy_names, positive_integer
from gridsched.cli.printing import facts_table, print_blocks
from gridsched.cli.sites import add_accounts, add_slurm_version
from gridsched.errors import ConfigurationError

if TYPE_CHECKING:
    from gridsched.systems.base import Scheduler

_PARTS = ("order", "backfilling", "reservations", "backfill_order")
"""Options that are parts of a local policy."""


_OF_SLURM = ("slurm_conf", "slurm_version", "sacctmgr", "qos", "sshare", "sdiag")
"""Options of Slurm's model."""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "decide",
        "Let a policy, Slurm's model or a scheduler of your own decide for Batsim, or another simulator that "
        "speaks its protocol.",
        "gridsched decide easy --batsim 4 --socket tcp://*:28000",
        "gridsched decide easy --order lxf --batsim 5",
        "gridsched decide mine.py:Mine --batsim 5",
        "gridsched decide slurm --slurm-conf slurm.conf --batsim 4",
    )
    policy = parser.add_argument(
        "policy",
        metavar="POLICY",
        help="a local policy, slurm, FILE.py:CLASS, or LIBRARY.so",
    )
    completed(policy, policy_names)
    parser.add_argument(
        "--batsim", type=int, choices=(4, 5), required=True, help="version of Batsim whose protocol is spoken"
    )
    parser.add_argument(
        "--socket",
        default="tcp://*:28000",
        metavar="ADDRESS",
        help="where the simulator connects to (default: port 28000 of this machine)",
    )
    add_handshake(parser)
    parser.add_argument(
        "--timeout",
        type=positive_integer,
        default=600,
        metavar="SECONDS",
        help="how long to wait for each message (default: 600)",
    )
    parser.add_argument(
        "--overrun",
        choices=("doubling", "increments"),
        default="doubling",
        help="how the expected end of a job that exceeds its walltime is moved (default: doubling)",
    )
    parser.add_argument(
        "--slurm-conf",
        type=path,
        metavar="FILE",
        help="parameters of slurm; jobs run on the hosts of the simulator, not on nodes of this file",
    )
    add_slurm_version(parser)
    add_accounts(parser)
    parts = parser.add_argument_group("parts of a local policy that are not as its name says")
    parts.add_argument("--order", metavar="NAME", help="queue order, such as lxf, or FILE.py:FUNCTION")
    parts.add_argument(
        "--backfilling", choices=("none", "first_fit", "easy", "conservative"), help="kind of backfilling"
    )
    parts.add_argument("--reservations", type=int, metavar="N", help="jobs that EASY protects from delay")
    parts.add_argument("--backfill-order", metavar="NAME", help="order in which later jobs are tried")
    parser.set_defaults(command=_decide)


def _decide(options: argparse.Namespace) -> None:
    from gridsched.policies.local import Conventions
    from gridsched.protocols.answering import answer_all
    from gridsched.protocols.batsim4 import Batsim4
    from gridsched.protocols.batsim5 import Batsim5
    from gridsched.protocols.sockets import address_of
    from gridsched.systems.deciding import DecisionProcess

    scheduler, facts = _scheduler(options)
    # what cannot decide is refused before a simulator waits for it
    scheduler.online(1, Conventions(options.overrun))
    address_of(options.socket)
    codec = Batsim4() if options.batsim == 4 else Batsim5()
    if options.batsim == 4 and options.handshake != "rc":
        raise ConfigurationError("--handshake: is of version 5; give --batsim 5, or leave it out")
    handshake = options.handshake if options.batsim == 5 else None
    process = DecisionProcess(scheduler, codec, Conventions(options.overrun), handshake=handshake)
    print(f"{scheduler.label} answers {codec.name} on {options.socket}", flush=True)
    if facts:
        print_blocks(facts_table(facts))
    answer_all(options.socket, process.answer, lambda: not process.ended, timeout=options.timeout)
    print_blocks(facts_table([(name, f"{count:,}") for name, count in process.counts.items()]))


def _scheduler(options: argparse.Namespace) -> tuple[Scheduler, list[tuple[str, str]]]:
    """The scheduler of the options, and what is to be said of it."""
    from gridsched.policies.local import named_policy
    from gridsched.policies.scores import SCORE
    from gridsched.systems.registry import scheduler_of

    given = {name: getattr(options, name) for name in _PARTS if getattr(options, name) is not None}
    scheduler = scheduler_of(options.policy)
    for_slurm = [name for name in _OF_SLURM if getattr(options, name)]
    if for_slurm and (scheduler.system != "slurm" or options.slurm_conf is None):
        name = for_slurm[0].replace("_", "-")
        raise ConfigurationError(f"--{name}: name the policy slurm, and give its --slurm-conf")
    if for_slurm:
        return _configured(options)
    if not given:
        return scheduler, []
    if scheduler.system != "local":
        name = next(iter(given)).replace("_", "-")
        raise ConfigurationError(f"--{name}: {options.policy} is no local policy; name one, such as easy")
    for name in ("order", "backfill_order"):
        if ".py:" in given.get(name, ""):
            given[name] = SCORE.load(given[name])
    policy = replace(named_policy(options.policy), name="", **given)
    return scheduler_of(policy), []


def _configured(options: argparse.Namespace) -> tuple[Scheduler, list[tuple[str, str]]]:
    """Slurm with the parameters of a file, and what of the file is not used."""
    from gridsched.systems.registry import scheduler_of

    site = gs.read_slurm_site(
        options.slurm_conf,
        accounts=options.sacctmgr,
        qualities=options.qos,
        usage=options.sshare,
        passes=options.sdiag,
        version=options.slurm_version,
    )
    left = ", ".join([*(["nodes and partitions"] if site.cluster else []), *site.not_modelled])
    return scheduler_of(site.scheduler), [("not used of slurm.conf", left)] if left else []

"""`gridsched serve`: the jobs of a log under a scheduler in another process, by the protocol of Batsim."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched import protocols
from gridsched.cli.logs import Log, find_trace, read_log
from gridsched.cli.options import (
    add_cluster,
    add_command,
    add_estimates,
    add_events,
    add_handshake,
    add_human,
    add_trace,
    add_window,
    path,
    positive_number,
    whole_number,
)
from gridsched.cli.printing import Times, facts_table, print_blocks, printable, progress, table
from gridsched.cli.runs import fates, preparation, prepared, run_policy
from gridsched.cli.simulate import explanation, summary_columns, summary_row
from gridsched.cli.targets import check_targets, writing

if TYPE_CHECKING:
    import xarray as xr

    from gridsched.platform import Cluster
    from gridsched.workloads import Workload


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "serve",
        "Simulate the jobs of a log under a scheduler in another process, which speaks the protocol of "
        "Batsim.",
        "gridsched serve KTH-SP2-1996 --batsim 4 --socket 'tcp://*:28000'",
        'gridsched serve jobs.json --command "pybatsim -s {socket} fillerSched" --jobs-csv jobs.csv',
        epilog="The scheduler binds to the socket and may be started before or after this command, or by it. "
        "Jobs end at their requested time at the latest, as in Batsim. See docs/protocols.md.",
    )
    add_trace(parser)
    add_peer(parser.add_argument_group("scheduler"))
    add_estimates(parser)
    add_cluster(parser.add_argument_group("cluster"))
    add_window(parser.add_argument_group("jobs"))
    add_events(parser.add_argument_group("what happens"))
    output = parser.add_argument_group("output")
    add_human(output)
    output.add_argument("-o", "--output", type=path, metavar="FILE.nc", help="write the run as netCDF")
    output.add_argument(
        "--jobs-csv", type=path, metavar="FILE.csv", help="write the table of jobs that Batsim writes"
    )
    output.add_argument(
        "--schedule-csv",
        type=path,
        metavar="FILE.csv",
        help="write the row of the schedule that Batsim writes",
    )
    # a waiting job cannot leave the queue by the protocol
    parser.set_defaults(command=_serve, cancelled="recorded", kill=True, overrun="doubling", passes="instant")


def add_peer(group: argparse._ArgumentGroup) -> None:
    """The decision process, and what it speaks."""
    group.add_argument(
        "--batsim",
        choices=("4", "5"),
        help="version of the protocol, as JSON (default: 4, with --edc-library 5)",
    )
    group.add_argument(
        "--socket",
        metavar="ADDRESS",
        help="address to which the scheduler binds (default: port 28000 of this machine, with "
        "--command one of its own)",
    )
    group.add_argument(
        "--command",
        dest="program",
        default="",
        metavar="COMMAND",
        help="start the scheduler with this command, in which {socket} becomes the address",
    )
    group.add_argument(
        "--timeout",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="seconds within which each answer has to come (default: 60)",
    )
    add_handshake(group)
    group.add_argument(
        "--options", default="", metavar="TEXT", help="what the scheduler is given to begin with in version 5"
    )
    group.add_argument(
        "--forward-profiles", action="store_true", help="send the scheduler the run times of jobs"
    )
    group.add_argument(
        "--sleep-state",
        type=whole_number,
        default=-1,
        metavar="N",
        help="let hosts change their power state, in no time; they take no jobs in state N (default: refuse)",
    )
    group.add_argument(
        "--state-as-number",
        action="store_true",
        help="send power states as numbers, as schedulers of pybatsim compare them, not as texts",
    )
    group.add_argument(
        "--edc-library",
        metavar="LIBRARY.so",
        help="a library with the C interface of Batsim 5 decides, instead of a process; needs --abi",
    )
    group.add_argument(
        "--abi",
        choices=("rc", "dev"),
        help="form of that interface: that of the release candidates of version 5, in which batsim_edc_init "
        "writes an answer, or that of the versions before them",
    )
    group.add_argument(
        "--header",
        action="version",
        version=str(Path(protocols.__file__).parent / "gridsched.h"),
        help="print where the header for schedulers in C is, which need no protocol, and end",
    )
    group.add_argument("--log", type=path, metavar="FILE", help="write what the command prints")


def named_external(options: argparse.Namespace, log: Log, workload: Workload) -> Any:
    """The scheduler that the options name, with the names that the log has for the jobs."""
    ids, profiles = log.names.get("job", ()), log.names.get("executable", ())
    named = bool(ids) and log.format == "batsim"
    return peer_of(
        options,
        job_ids=tuple(ids[k - 1] for k in workload.job_number.tolist()) if named else (),
        profiles=tuple(profiles[k] for k in workload.executable.tolist()) if named else (),
        names=log.names,
    )


def peer_of(options: argparse.Namespace, **names: Any) -> Any:
    """The scheduler that the options of `add_peer` name."""
    from gridsched.systems.registry import external

    library = options.edc_library or ""
    here = bool(options.program or library)
    return external(
        protocol=f"batsim-{options.batsim or ('5' if library else '4')}",
        command=options.program,
        socket=options.socket or ("" if here else "tcp://*:28000"),
        edc_library=library,
        abi=options.abi or "",
        timeout=options.timeout,
        handshake=options.handshake,
        options=options.options,
        forward_profiles=options.forward_profiles,
        sleep_state=options.sleep_state,
        state_as_number=options.state_as_number,
        log="" if options.log is None else str(options.log),
        **names,
    )


def with_hosts(cluster: Cluster) -> Cluster:
    """The cluster with nodes where it has only a number of processors, so that allocations are checked."""
    from gridsched.nodes import NodeType

    if cluster.has_nodes:
        return cluster
    hosts = NodeType(count=cluster.processors // cluster.unit, cores=cluster.unit, name="host")
    return replace(cluster, processors=0, processors_per_node=1, nodes=(hosts,))


def _serve(options: argparse.Namespace) -> None:
    check_targets(options, find_trace(options.trace), ("jobs_csv", "schedule_csv"))
    log = read_log(options)
    setting = prepared(log, options)
    workload, cluster = setting.workload, with_hosts(setting.cluster)
    scheduler = named_external(options, log, workload)
    print_blocks(
        facts_table(
            [*preparation(replace(setting, cluster=cluster), options), ("scheduler", _told(scheduler))]
        )
    )
    with progress(f"simulating under {scheduler.label}"):
        run = run_policy(workload, cluster, scheduler, options)
    times, reasons = Times(options.human), dict[str, None]()
    row = summary_row(scheduler.label, run, options.warm_up, times, reasons)
    print()
    print_blocks(
        table(summary_columns(times), [row]),
        explanation(reasons),
        facts_table([*_protocol(run), *fates({scheduler.label: run.attrs})]),
    )
    _write_output(options, run, len(cluster.node_names))


def _told(scheduler: Any) -> str:
    """What decides, and where it is."""
    if scheduler.edc_library:
        return f"{scheduler.edc_library}, C interface of Batsim 5 ({scheduler.abi})"
    where = f"on {scheduler.socket}" if scheduler.socket else "on a socket of its own"
    return f"{scheduler.command or 'a process'} {where}, {scheduler.protocol}"


def _protocol(run: xr.Dataset) -> list[tuple[str, str]]:
    """What went to and fro."""
    found = run.attrs
    facts = [
        ("decision process", printable(str(found["decision_process"])))
        if "decision_process" in found
        else ("", ""),
        (
            "messages",
            f"{found['protocol_messages']:,} with {found['protocol_events']:,} events, "
            f"answered by {found['protocol_decisions']:,} decisions",
        ),
    ]
    if found["times_rounded_up"]:
        facts.append(("times rounded up", f"{found['times_rounded_up']:,}, to whole seconds"))
    states = run["final_state"].to_series().value_counts()
    facts += [(f"jobs {name}", f"{count:,}") for name, count in states.items()]
    return [fact for fact in facts if any(fact)]


def _write_output(options: argparse.Namespace, run: xr.Dataset, hosts: int) -> None:
    from gridsched import results
    from gridsched.protocols.outputs import jobs_table, schedule_table, write_table

    if options.output:
        with writing(options.output), progress(f"writing {options.output}"):
            results.write(run, options.output)
    if options.jobs_csv:
        with writing(options.jobs_csv):
            write_table(jobs_table(run), options.jobs_csv)
    if options.schedule_csv:
        made = f"gridsched {version('gridsched')}"
        with writing(options.schedule_csv):
            write_table(schedule_table(run, hosts, made), options.schedule_csv)

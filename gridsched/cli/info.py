"""`gridsched info`: what a log holds."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gridsched.cli.logs import Log, moment, read_log
from gridsched.cli.options import (
    add_command,
    add_human,
    add_trace,
    fraction_of_processors,
    path,
    positive_integer,
)
from gridsched.cli.printing import (
    UNKNOWN_TEXT,
    Times,
    counts,
    facts_table,
    print_blocks,
    printable,
    quantity,
    share,
    share_of,
    table,
)
from gridsched.errors import GridschedError, WorkloadError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from gridsched.nodes import NodeType
    from gridsched.traces.sacct import AccountingLog
    from gridsched.workloads import Workload

_QUANTILES = (10, 25, 50, 75, 90, 99, 100)
_SECONDS_PER_DAY = 86400


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "info",
        "Show the contents of a log of parallel jobs.",
        "gridsched info KTH-SP2-1996",
        "gridsched info our-export.txt --timezone Europe/Rome",
        "gridsched info KTH-SP2-1996 --outages --write-events outages.csv",
        "gridsched info longer-lines.swf --extra-fields ignore",
    )
    add_trace(parser)
    add_human(parser)
    group = parser.add_argument_group(
        "outages",
        "Periods in which the cluster was idle while jobs waited that would fit, or left most of the "
        "processors unused that waiting jobs could have used. The cause is unknown.",
    )
    group.add_argument("--outages", action="store_true", help="list the outages that the log shows")
    group.add_argument(
        "--unused",
        type=fraction_of_processors,
        default=0.9,
        metavar="F",
        help="share of the processors that waiting jobs could have used and did not get (default: 0.9)",
    )
    group.add_argument(
        "--shortest",
        type=positive_integer,
        default=3600,
        metavar="S",
        help="shortest outage [s] (default: 3600)",
    )
    group.add_argument(
        "--processors", type=positive_integer, metavar="N", help="processors (default: as for simulate)"
    )
    group.add_argument(
        "--processors-per-node", type=positive_integer, default=1, metavar="N", help="default: 1"
    )
    group.add_argument(
        "--write-events",
        type=path,
        metavar="FILE.csv",
        help="write the outages for --events of simulate and compare, as events of the nodes of the column "
        "NodeList, else of node0, node1 ...",
    )
    group.add_argument(
        "--events-are",
        choices=("maintenance", "drain", "down"),
        default="maintenance",
        help="kind of the outages: maintenance announced a week before, nodes that accept no more jobs, or "
        "failures that kill jobs (default: maintenance)",
    )
    parser.set_defaults(command=_info)


def _info(options: argparse.Namespace) -> None:
    log = read_log(options)
    workload = log.workload
    facts = [
        ("file", str(log.path)),
        *_header_facts(workload),
        *_job_facts(workload, options),
        *_cleaning(workload),
    ]
    outages = _outages(log, options) if options.outages or options.write_events else []
    print_blocks(
        facts_table(facts),
        *_of_site(log),
        _distributions(workload, Times(options.human)),
        _months(workload),
        *outages,
    )


def _header_facts(workload: Workload) -> list[tuple[str, str]]:
    """What the log says of itself."""
    available, start = workload.processors_available, workload.unix_start_time
    facts = {
        "computer": _header_field(workload, "Computer"),
        "installation": _header_field(workload, "Installation"),
        "processors": "" if available is None else f"{available:,}",
        "start": "" if start is None else moment(workload, 0),
        "time zone": workload.time_zone or "",
        "acknowledgement": workload.acknowledgement,
    }
    return [(name, value or "not given") for name, value in facts.items()]


def _header_field(workload: Workload, label: str) -> str:
    """Text of the header lines with a label, joined."""
    pattern = re.compile(rf"\s*;+\s*{label}\s*:\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
    matches = [match[1] for line in workload.header if (match := pattern.fullmatch(line))]
    return "; ".join(filter(None, matches))


def _job_facts(workload: Workload, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What the jobs are."""
    import numpy as np

    from gridsched.cli.runs import beyond_request, cancelled_in_queue
    from gridsched.traces.cleaning import without_limit

    started, endless = _waits_of_starts(workload) >= 0, int(without_limit(workload).sum())
    jobs = len(workload)
    submit = workload.submit_time[workload.submit_time >= 0]
    facts = [("jobs", f"{jobs:,}")]
    if len(submit):
        first, last = float(submit.min()), float(submit.max())
        facts += [
            ("first submission", moment(workload, first)),
            ("last submission", moment(workload, last)),
            ("span", f"{(last - first) / _SECONDS_PER_DAY:,.1f} days"),
        ]
    facts += [
        ("users", f"{len(np.unique(workload.user[workload.user >= 0])):,}"),
        ("requested time", share(int((workload.requested_time > 0).sum()), jobs)),
        *([("no time limit", f"{share(endless, jobs)}, which request over 366 days")] if endless else []),
        *beyond_request(workload),
        ("recorded wait", share(int(started.sum()), jobs)),
        *cancelled_in_queue(workload, options),
        ("offered load", quantity(_offered_load(workload), 3)),
        ("most in use", _most_in_use(workload, options.processors)),
    ]
    return facts


def _waits_of_starts(workload: Workload) -> NDArray[Any]:
    """Recorded wait of each job that started; -1 for the others, and where it is not known."""
    import numpy as np

    from gridsched.traces.cleaning import never_ran

    return np.where(never_ran(workload), -1, workload.wait_time)


def _most_in_use(workload: Workload, given: int | None) -> str:
    """The most processors that were in use at once, and how long more were than the cluster has."""
    from gridsched.comparison import recorded_excess, recorded_peak

    most = recorded_peak(workload)
    if most is None:
        return UNKNOWN_TEXT
    size = given or workload.processors_available
    excess = recorded_excess(workload, size) if size and size < most else 0
    return f"{most:,} processors" + (
        f", more than {size:,} for {share_of(excess)} of the time" if excess else ""
    )


def _offered_load(workload: Workload) -> float:
    """Work submitted / (processors x time of submissions), over the jobs whose work is known."""
    submit = workload.submit_time[workload.submit_time >= 0]
    known = (workload.processors > 0) & (workload.run_time >= 0)
    work = float(workload.processors[known] @ workload.run_time[known].astype(float))
    capacity = (workload.processors_available or 0) * float(submit.max() - submit.min() if len(submit) else 0)
    return work / capacity if capacity else math.nan


# --- what not all formats have --------------------------------------------------------------------------


def _of_site(log: Log) -> list[Any]:
    """How jobs ended, what partitions had, GPUs, memory and nodes."""
    from gridsched.cli.runs import doubtful_memory

    states = _endings(log.workload) if log.accounting is None else [_states(log.accounting)]
    told = ["How jobs ended, and what they used:", *states] if states else []
    facts = [*_gpus(log), *_memory(log.workload), *doubtful_memory(log, log.workload), *_nodes(log)]
    return [*told, *_partitions(log), *([facts_table(facts)] if facts else [])]


_ENDS = (
    "completed",
    "failed",
    "part of a job",
    "cancelled after it started",
    "failed or cancelled at its time limit",
    "cancelled before it started",
    "unknown",
)
"""Ends of jobs that the format has, or that follow from its fields."""


def _endings(workload: Workload) -> list[Any]:
    """Jobs by their status; nothing if the log gives none."""
    import numpy as np

    from gridsched.traces.cleaning import CANCELLED, cancelled_unstarted

    status = workload.status
    if not (status >= 0).any():
        return []
    ended_badly = np.isin(status, (0, CANCELLED))
    at_limit = ended_badly & (workload.requested_time > 0) & (workload.run_time >= workload.requested_time)
    # a later condition holds before an earlier one
    conditions = (status == 1, status == 0, np.isin(status, (2, 3, 4)), status == CANCELLED, at_limit)
    end = np.full(len(workload), len(_ENDS) - 1)
    for number, holds in enumerate((*conditions, cancelled_unstarted(workload))):
        end[holds] = number
    used = _jobs_and_shares(workload, end, len(_ENDS))
    rows = [
        (name, f"{jobs:,}", _percent(jobs / len(workload)), _percent(part))
        for name, (jobs, part) in zip(_ENDS, used, strict=True)
        if jobs
    ]
    return [table(["end", "jobs", "jobs [%]", "processor-seconds [%]"], rows)]


def _states(accounting: AccountingLog) -> Table:
    """Jobs by state: those that ran, however they ended, and those that the workload does not have."""
    names, idle = accounting.states, accounting.idle_states
    ran = dict(zip(names, _jobs_and_shares(accounting.workload, accounting.state, len(names)), strict=True))
    order = sorted(names, key=lambda name: -ran[name][0] - idle.get(name, 0))
    rows = [
        (name or "(none)", f"{ran[name][0]:,}", f"{idle.get(name, 0):,}", _percent(ran[name][1]))
        for name in order
        if ran[name][0] or idle.get(name)
    ]
    rows.append(
        ("all", f"{sum(jobs for jobs, _ in ran.values()):,}", f"{sum(idle.values()):,}", _percent(1.0))
    )
    return table(["state", "ran", "left out", "processor-seconds [%]"], rows)


def _partitions(log: Log) -> list[Any]:
    """Jobs and shares of the partitions, if the log names them."""
    import numpy as np

    names = log.names.get("partition", ())
    if not names:
        return []
    partition = log.workload.partition
    number = np.where(partition < 0, len(names), partition)
    used = _jobs_and_shares(log.workload, number, len(names) + 1)
    order = sorted(range(len(used)), key=lambda number: -used[number][1])
    rows = [
        (printable([*names, ""][number]) or "(none)", f"{used[number][0]:,}", _percent(used[number][1]))
        for number in order
        if used[number][0]
    ]
    return [table(["partition", "jobs", "processor-seconds [%]"], rows)]


def _gpus(log: Log) -> list[tuple[str, str]]:
    """Jobs with GPUs, and what they held; nothing if the log does not say."""
    import numpy as np

    from gridsched.comparison import recorded_peak

    workload = log.workload
    gpus = _thousandths(workload) if log.accounting is None else 1000 * np.maximum(log.accounting.gpus, 0)
    known = log.accounting is not None and bool((log.accounting.gpus >= 0).any())
    jobs = int(np.count_nonzero(gpus > 0))
    if not jobs:
        return [("GPUs", "none were allocated")] if known else []
    most = recorded_peak(workload, gpus)
    hours = float(gpus @ np.maximum(workload.run_time, 0).astype(float)) / 3.6e6
    return [
        ("jobs with GPUs", share(jobs, len(workload))),
        ("GPU-hours", quantity(hours, 1)),
        ("most GPUs in use", UNKNOWN_TEXT if most is None else f"{most / 1000:,.10g}"),
    ]


def _thousandths(workload: Workload) -> NDArray[np.int64]:
    """Thousandths of GPUs that each job asks for."""
    import numpy as np

    total = np.zeros(len(workload), np.int64)
    for column, unit in ((workload.requested_gpus, 1000), (workload.gpu_share, 1)):
        if column is not None:
            total += unit * np.maximum(column, 0)
    return total


def _memory(workload: Workload) -> list[tuple[str, str]]:
    """Jobs that say how much memory they hold, and the most that was held; nothing if none does."""
    import numpy as np

    from gridsched.comparison import recorded_peak

    asked = np.maximum(workload.requested_memory, 0) * np.maximum(workload.processors, 0)
    jobs = int(np.count_nonzero(asked > 0))
    if not jobs:
        return []
    most = recorded_peak(workload, np.asarray(asked, np.int64))
    return [
        ("jobs with memory", share(jobs, len(workload))),
        ("most memory in use", UNKNOWN_TEXT if most is None else f"{most / 2**20:,.1f} GiB"),
    ]


def _nodes(log: Log) -> list[tuple[str, str]]:
    """How many nodes jobs ran on; nothing if the log does not say."""
    nodes = _seen_nodes(log)
    return [("nodes", f"jobs ran on {sum(kind.count for kind in nodes):,}")] if nodes else []


def _seen_nodes(log: Log) -> Sequence[NodeType]:
    """Nodes on which jobs ran; none if the log does not say."""
    from gridsched.traces.node_lists import infer_nodes

    if log.accounting is None or not (log.accounting.node_list >= 0).any():
        return ()
    return infer_nodes(log.accounting).nodes


# --- outages ----------------------------------------------------------------------------------------


def _outages(log: Log, options: argparse.Namespace) -> list[Any]:
    """Table of the outages that the log shows; they are written as events where that is asked for."""
    from gridsched.cli.targets import writing
    from gridsched.comparison import recorded_peak
    from gridsched.nodes import write_events
    from gridsched.platform import Cluster
    from gridsched.traces.outages import infer_outages, outage_events

    workload = log.workload
    processors = options.processors or workload.processors_available or recorded_peak(workload)
    if processors is None:
        raise WorkloadError(
            f"{workload.name}: the log does not say how many processors its cluster has; use --processors"
        )
    found = infer_outages(workload, processors, unused=options.unused, shortest=options.shortest)
    if options.write_events:
        with writing(options.write_events):
            nodes = (
                _seen_nodes(log)
                or Cluster(processors=processors, processors_per_node=options.processors_per_node).node_types
            )
            write_events(outage_events(found, nodes, kind=options.events_are), options.write_events)
    if not found:
        return ["No outages: the cluster was never idle for so long while jobs waited that would fit."]
    times = Times(options.human)
    rows = [
        (
            moment(workload, each.start),
            times.text(each.end - each.start),
            "idle" if each.idle else "in part",
            quantity(each.processors),
            quantity(each.jobs),
            quantity(each.wanted),
        )
        for each in found
    ]
    idle = sum(each.end - each.start for each in found if each.idle)
    partly = sum(each.end - each.start for each in found if not each.idle)
    return [
        f"{len(found):,} outages of {processors:,} processors while jobs waited that would fit: idle for "
        f"{idle / 3600:,.1f} h, in part out for {partly / 3600:,.1f} h:",
        table(
            [
                "from",
                times.header("for"),
                "the cluster was",
                "processors out",
                "most jobs",
                "most they could use",
            ],
            rows,
        ),
        *([f"wrote {options.write_events}"] if options.write_events else []),
    ]


def _jobs_and_shares(workload: Workload, number: NDArray[np.int64], count: int) -> list[tuple[int, float]]:
    """Jobs with each number, and their share of the processor-seconds; NaN if there are none."""
    import numpy as np

    work = np.maximum(workload.processors, 0) * np.maximum(workload.run_time, 0).astype(float)
    jobs = np.bincount(number, minlength=count)
    used = np.bincount(number, weights=work, minlength=count)
    whole = float(work.sum()) or math.nan
    return [(int(some), float(part) / whole) for some, part in zip(jobs, used, strict=True)]


def _percent(part: float) -> str:
    return quantity(100 * part, 1)


def _distributions(workload: Workload, times: Times) -> Table:
    """Quantiles of what is known of the jobs."""
    waits = _waits_of_starts(workload)
    samples = {
        times.header("run time"): workload.run_time[workload.run_time >= 0],
        times.header("requested time"): workload.requested_time[workload.requested_time > 0],
        times.header("recorded wait"): waits[waits >= 0],
    }
    columns = ["quantile", *(f"{percent}%" for percent in _QUANTILES[:-1]), "largest"]
    sizes = _quantiles(workload.processors[workload.processors > 0], quantity)
    rows = [(name, *_quantiles(values, times.text)) for name, values in samples.items()]
    return table(columns, [("processors", *sizes), *rows])


def _quantiles(values: NDArray[Any], text: Callable[[float], str]) -> list[str]:
    import numpy as np

    if not len(values):
        return [UNKNOWN_TEXT] * len(_QUANTILES)
    return [text(float(value)) for value in np.percentile(values, _QUANTILES)]


def _cleaning(workload: Workload) -> list[tuple[str, str]]:
    """What was left out and repaired in reading, and what cleaning would do."""
    from gridsched.traces import clean

    reading = counts(workload)
    try:
        cleaning = counts(clean(workload))
    except GridschedError as error:
        return [*reading, ("cleaning", f"fails: {error}")]
    done = [(f"cleaning, {what}", count) for what, count in cleaning if (what, count) not in reading]
    nothing = f"nothing {'more ' if reading else ''}to leave out or repair"
    return [*reading, *(done or [("cleaning", nothing)])]


def _months(workload: Workload) -> Table:
    from gridsched.traces import months

    try:
        rows = [(month, f"{jobs:,}") for month, jobs in months(workload).items()]
    except WorkloadError as error:
        return facts_table([("months", f"not known: {error}")])
    return table(["month", "jobs"], rows)

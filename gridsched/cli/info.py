"""`gridsched info`: what a log holds."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, Any

from gridsched.cli.logs import moment, read_log
from gridsched.cli.options import add_command, add_trace
from gridsched.cli.printing import (
    UNKNOWN_TEXT,
    counts,
    facts_table,
    print_blocks,
    quantity,
    share,
    table,
)
from gridsched.errors import GridschedError, WorkloadError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

    from gridsched.workloads import Workload

_QUANTILES = (10, 25, 50, 75, 90, 99, 100)
_SECONDS_PER_DAY = 86400


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "info",
        "Show what a log of parallel jobs holds.",
        "gridsched info KTH-SP2-1996",
        "gridsched info our-export.txt --timezone Europe/Rome",
        "gridsched info longer-lines.swf --extra-fields ignore",
    )
    add_trace(parser)
    parser.set_defaults(command=_info)


def _info(options: argparse.Namespace) -> None:
    log = read_log(options)
    workload = log.workload
    facts = [("file", str(log.path)), *_header_facts(workload), *_job_facts(workload), *_cleaning(workload)]
    print_blocks(facts_table(facts), _distributions(workload), _months(workload))


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


def _job_facts(workload: Workload) -> list[tuple[str, str]]:
    """What the jobs are."""
    import numpy as np

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
        ("recorded wait", share(int((workload.wait_time >= 0).sum()), jobs)),
        ("offered load", quantity(_offered_load(workload), 3)),
    ]
    return facts


def _offered_load(workload: Workload) -> float:
    """Work submitted / (processors x time of submissions), over the jobs whose work is known."""
    submit = workload.submit_time[workload.submit_time >= 0]
    known = (workload.processors > 0) & (workload.run_time >= 0)
    work = float(workload.processors[known] @ workload.run_time[known].astype(float))
    capacity = (workload.processors_available or 0) * float(submit.max() - submit.min() if len(submit) else 0)
    return work / capacity if capacity else math.nan


def _distributions(workload: Workload) -> Table:
    """Quantiles of what is known of the jobs."""
    samples = {
        "processors": workload.processors[workload.processors > 0],
        "run time [s]": workload.run_time[workload.run_time >= 0],
        "requested time [s]": workload.requested_time[workload.requested_time > 0],
        "recorded wait [s]": workload.wait_time[workload.wait_time >= 0],
    }
    columns = ["quantile", *(f"{percent}%" for percent in _QUANTILES[:-1]), "largest"]
    return table(columns, [(name, *_quantiles(values)) for name, values in samples.items()])


def _quantiles(values: NDArray[Any]) -> list[str]:
    import numpy as np

    if not len(values):
        return [UNKNOWN_TEXT] * len(_QUANTILES)
    return [quantity(float(value)) for value in np.percentile(values, _QUANTILES)]


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

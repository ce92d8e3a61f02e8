"""The command line: describe logs, simulate them, fetch them, and look after the cache.

Every command imports what it needs when it runs, so that help and wrong options are answered at once. A
mistake of the user ends in one line on standard error and exit code 2.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.errors import ConfigurationError, GridschedError, TraceError, WorkloadError

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray
    from rich.table import Table

    from gridsched.platforms import Cluster
    from gridsched.schedulers.local import LocalPolicy
    from gridsched.workloads import Workload

SCORE = "score"
"""Name of the policy whose queue order is the user's own function."""

_MISTAKE, _INTERRUPTED, _NO_READER = 2, 130, 1
_UNLIMITED_WIDTH = 100_000
_UNKNOWN = "-"
_QUANTILES = (10, 25, 50, 75, 90, 99, 100)
_SECONDS_PER_DAY = 86400


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after the name of the program; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 after a mistake of the user, 130 after an interrupt, 1 if nobody reads the output.

    Raises
    ------
    SystemExit
        After `--help`, `--version` and wrong options (code 2), as argparse does.
    """
    if hasattr(sys.stdout, "reconfigure"):
        # Headers of logs may hold characters that the terminal's encoding does not have.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = _run(_parser().parse_args(arguments))
    except SystemExit:
        _flush()
        raise
    return code if _flush() else code or _NO_READER


def _run(options: argparse.Namespace) -> int:
    """Carry out a command; every error that a user can mend becomes one line."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            options.command(options)
        except GridschedError as error:
            return _fail(str(error))
        except BrokenPipeError:
            return _NO_READER
        except OSError as error:
            return _fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        except KeyboardInterrupt:
            return _INTERRUPTED
    return 0


def _fail(message: str) -> int:
    _say("error", message)
    return _MISTAKE


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning without the place in the code."""
    _say("warning", str(message))


def _say(kind: str, message: str) -> None:
    print(f"gridsched: {kind}: {_printable(' '.join(message.splitlines()))}", file=sys.stderr)


def _flush() -> bool:
    """Write out what was printed; whether it could be. A reader that went away is nothing to speak of."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _fail(f"standard output cannot be written ({error.strerror})")
        # The interpreter would try again when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


# --- options --------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gridsched", description="Simulate and compare schedulers of parallel jobs."
    )
    parser.add_argument("--version", action="version", version=f"gridsched {version('gridsched')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_info(commands)
    _add_simulate(commands)
    _add_fetch(commands)
    _add_cache(commands)
    return parser


def _add_command(commands: Any, name: str, summary: str, **details: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary, **details)
    return parser


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace", metavar="TRACE", help="SWF file, plain or compressed, or the name of a log that was fetched"
    )


def _add_info(commands: Any) -> None:
    parser = _add_command(commands, "info", "Show what a log of parallel jobs holds.")
    _add_trace(parser)
    parser.set_defaults(command=_info)


def _add_simulate(commands: Any) -> None:
    parser = _add_command(
        commands,
        "simulate",
        "Simulate the jobs of a log on one cluster under local scheduling policies.",
        epilog=(
            "A score is a function of any of now, submit_time, estimate, processors, user, group and queue; "
            "the waiting job with the largest score is first in the queue."
        ),
    )
    _add_trace(parser)
    parser.add_argument(
        "--policy",
        default="easy",
        metavar="NAME[,NAME...]",
        help="fcfs, ff, sjf, easy, easy(R) with R reservations, sjbf, lxf, lxwf, conservative, "
        "or all of the named ones (default: easy)",
    )
    parser.add_argument(
        "--score",
        metavar="FILE.py:FUNCTION",
        help=f"add the policy '{SCORE}': EASY backfilling with this function as the queue order",
    )
    parser.add_argument(
        "--estimates",
        choices=("requested", "actual", "clairvoyant"),
        default="requested",
        help="run times that the scheduler believes: the requested times, the actual run times, or the "
        "larger of both (default: requested)",
    )
    _add_cluster(parser.add_argument_group("cluster"))
    _add_conventions(parser.add_argument_group("conventions"))
    _add_window(parser.add_argument_group("jobs"))
    output = parser.add_argument_group("output")
    output.add_argument("--output", type=Path, metavar="FILE.nc", help="write all runs as netCDF")
    output.add_argument("--csv", type=Path, metavar="FILE.csv", help="write the start times of the jobs")
    parser.set_defaults(command=_simulate)


def _add_cluster(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--processors", type=_positive_integer, metavar="N", help="processors (default: as the log says)"
    )
    group.add_argument(
        "--processors-per-node", type=_positive_integer, default=1, metavar="N", help="default: 1"
    )
    group.add_argument(
        "--node-exclusive", action="store_true", help="a node runs one job only: jobs take whole nodes"
    )
    group.add_argument(
        "--speed",
        type=_positive_number,
        default=1.0,
        metavar="F",
        help="speed relative to the machine of the log (default: 1)",
    )


def _add_conventions(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--kill", action="store_true", help="jobs end at their requested time")
    group.add_argument(
        "--overrun",
        choices=("doubling", "increments"),
        default="doubling",
        help="how the expected end of a job that outruns its estimate is moved (default: doubling)",
    )
    group.add_argument(
        "--passes",
        choices=("instant", "event"),
        default="instant",
        help="one scheduling pass after all events of an instant, or after each event (default: instant)",
    )


def _add_window(group: argparse._ArgumentGroup) -> None:
    windows = group.add_mutually_exclusive_group()
    windows.add_argument(
        "--month", metavar="YYYY-MM", help="jobs submitted in a month, in the log's time zone"
    )
    windows.add_argument(
        "--jobs", type=_range, metavar="FIRST:COUNT", help="COUNT jobs of the log from index FIRST, from 0"
    )
    group.add_argument(
        "--warm-up",
        type=_fraction,
        default=0.0,
        metavar="F",
        help="fraction of the jobs, at the beginning, that are simulated but not measured (default: 0)",
    )


def _add_fetch(commands: Any) -> None:
    parser = _add_command(
        commands, "fetch", "Fetch logs of the Parallel Workloads Archive, verify them and print their paths."
    )
    parser.add_argument("logs", nargs="*", metavar="LOG", help="name of a log, such as KTH-SP2-1996")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where to keep them (default: the cache)")
    parser.add_argument(
        "--mirror",
        dest="mirrors",
        action="append",
        default=[],
        metavar="PLACE",
        help="folder or address that holds logs, tried before the archive; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="list the known logs, or those named, and stop")
    parser.set_defaults(command=_fetch)


def _add_cache(commands: Any) -> None:
    parser = _add_command(
        commands, "cache", "Show or clear what gridsched keeps; GRIDSCHED_CACHE names another folder."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = _add_command(actions, "show", "Show the folders and how large they are.")
    show.set_defaults(command=_show_cache)
    clear = _add_command(actions, "clear", "Delete the compiled kernels; logs that were fetched stay.")
    clear.set_defaults(command=_clear_cache)


def _positive_integer(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def _positive_number(text: str) -> float:
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


def _fraction(text: str) -> float:
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no fraction of the jobs: at least 0 and below 1")
    return number


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,18}):(\d{1,18})", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not written like 1000:500 (index of the first, count)")
    return int(match[1]), int(match[2])


# --- what is printed ------------------------------------------------------------------------------


def _print(*blocks: Table | str) -> None:
    """Print tables and lines with blank lines between; without a terminal, lines are as long as they must."""
    from rich.console import Console

    width = None if _to_terminal() else _UNLIMITED_WIDTH
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        for block in blocks:
            console.print(block)
            console.print()
    lines = [line if _to_terminal() else line.rstrip() for line in capture.get().splitlines()]
    print(*lines[:-1], sep="\n", flush=True)


def _to_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


@contextlib.contextmanager
def _progress(what: str) -> Iterator[None]:
    """Say on the terminal, besides the output, what takes its time."""
    from rich.console import Console

    with Console(stderr=True, markup=False).status(what):
        yield


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Table with a name in the first column and numbers in the others."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD if _to_terminal() else None,
        show_edge=False,
        pad_edge=False,
        collapse_padding=_to_terminal(),
    )
    for index, column in enumerate(columns):
        # In a narrow terminal cells are continued below: numbers must not lose digits.
        table.add_column(column, justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for fact in facts:
        table.add_row(*map(_printable, fact))
    return table


def _printable(text: str) -> str:
    """Text without control characters, which a log could use to command the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def _quantity(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else _UNKNOWN


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} jobs ({part / whole:.1%})"


def _counts(workload: Workload) -> list[tuple[str, str]]:
    """What was left out and repaired."""
    both = (("left out", workload.left_out), ("repaired", workload.repaired))
    return [(f"{kind}: {reason}", f"{count:,}") for kind, counts in both for reason, count in counts.items()]


# --- gridsched info -------------------------------------------------------------------------------


def _find_trace(trace: str) -> Path:
    """Path of a log that is given as a path, or by the name of a log that was fetched."""
    from gridsched.traces import archive_folder, find_log

    path = Path(trace)
    if path.exists() or path.name != trace:
        return path
    try:
        log = find_log(trace)
    except TraceError as error:
        raise TraceError(f"{trace}: no such file, and {error}") from None
    fetched = archive_folder() / log.file
    if not fetched.is_file():
        raise TraceError(
            f"{trace}: no such file, and the archive's log {log.name} is not in {archive_folder()}; "
            f"get it with: gridsched fetch {log.name}"
        )
    return fetched


def _info(options: argparse.Namespace) -> None:
    from gridsched.traces import read_swf

    path = _find_trace(options.trace)
    with _progress(f"reading {path.name}"):
        workload = read_swf(path)
    facts = [("file", str(path)), *_header_facts(workload), *_job_facts(workload), *_cleaning(workload)]
    _print(_facts_table(facts), _distributions(workload), _months(workload))


def _header_facts(workload: Workload) -> list[tuple[str, str]]:
    """What the log says of itself."""
    available, start = workload.processors_available, workload.unix_start_time
    facts = {
        "computer": _header_field(workload, "Computer"),
        "installation": _header_field(workload, "Installation"),
        "processors": "" if available is None else f"{available:,}",
        "start": "" if start is None else _moment(workload, 0),
        "time zone": workload.time_zone or "",
        "acknowledgement": workload.acknowledgement,
    }
    return [(name, value or "not given") for name, value in facts.items()]


def _header_field(workload: Workload, label: str) -> str:
    """Text of the header lines with a label, joined."""
    pattern = re.compile(rf"\s*;+\s*{label}\s*:\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
    matches = [match[1] for line in workload.header if (match := pattern.fullmatch(line))]
    return "; ".join(filter(None, matches))


def _moment(workload: Workload, seconds: float) -> str:
    """Date and time of seconds since the start of a log, in its time zone; UTC if that is not known."""
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo

    if workload.unix_start_time is None:
        return f"{seconds:,.0f} s"
    try:
        # The errors of unknown zones are KeyErrors, ValueErrors and OSErrors.
        zone = ZoneInfo(workload.time_zone) if workload.time_zone else UTC
    except (KeyError, ValueError, OSError):
        zone = UTC
    try:
        return (
            f"{datetime.fromtimestamp(workload.unix_start_time + float(seconds), zone):%Y-%m-%d %H:%M:%S %Z}"
        )
    except (OverflowError, ValueError, OSError):
        return f"{seconds:,.0f} s after the start"


def _job_facts(workload: Workload) -> list[tuple[str, str]]:
    """What the jobs are."""
    import numpy as np

    jobs = len(workload)
    submit = workload.submit_time[workload.submit_time >= 0]
    facts = [("jobs", f"{jobs:,}")]
    if len(submit):
        first, last = float(submit.min()), float(submit.max())
        facts += [
            ("first submission", _moment(workload, first)),
            ("last submission", _moment(workload, last)),
            ("span", f"{(last - first) / _SECONDS_PER_DAY:,.1f} days"),
        ]
    facts += [
        ("users", f"{len(np.unique(workload.user[workload.user >= 0])):,}"),
        ("requested time", _share(int((workload.requested_time > 0).sum()), jobs)),
        ("recorded wait", _share(int((workload.wait_time >= 0).sum()), jobs)),
        ("offered load", _quantity(_offered_load(workload), 3)),
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
    return _table(columns, [(name, *_quantiles(values)) for name, values in samples.items()])


def _quantiles(values: NDArray[Any]) -> list[str]:
    import numpy as np

    if not len(values):
        return [_UNKNOWN] * len(_QUANTILES)
    return [_quantity(float(value)) for value in np.percentile(values, _QUANTILES)]


def _cleaning(workload: Workload) -> list[tuple[str, str]]:
    """What cleaning would do."""
    from gridsched.traces import clean

    try:
        counts = _counts(clean(workload))
    except GridschedError as error:
        return [("cleaning", f"fails: {error}")]
    return [(f"cleaning, {what}", count) for what, count in counts] or [
        ("cleaning", "nothing to leave out or repair")
    ]


def _months(workload: Workload) -> Table:
    from gridsched.traces import months

    try:
        rows = [(month, f"{jobs:,}") for month, jobs in months(workload).items()]
    except WorkloadError as error:
        return _facts_table([("months", f"not known: {error}")])
    return _table(["month", "jobs"], rows)


# --- gridsched simulate ---------------------------------------------------------------------------


def _simulate(options: argparse.Namespace) -> None:
    from gridsched.traces import read_swf

    path = _find_trace(options.trace)
    _check_targets(options, path)
    policies = _policies(options.policy, options.score)
    with _progress(f"reading {path.name}"):
        workload, cluster = _prepared(read_swf(path), options)
    _print(_facts_table(_preparation(workload, cluster, options)))

    runs: list[xr.Dataset] = []
    rows: list[tuple[str, ...]] = []
    for policy in policies:
        with _progress(f"simulating {policy.name}"):
            run = _run_policy(workload, cluster, policy, options)
        if not runs:
            rows += _recorded_rows(run, workload, cluster, options.warm_up)
        rows.append(_row(policy.name, run, options.warm_up))
        # Of several policies on a large log, only what is written is kept.
        runs.append(run if options.output else run[["start_time"]])
    print()
    _print(
        _table(_COLUMNS, rows),
        "±95%: half width of the 95% confidence interval, from batch means.\n"
        "The schedule of every policy was verified.",
    )
    _write_output(options, runs, [policy.name for policy in policies], workload)


def _check_targets(options: argparse.Namespace, trace: Path) -> None:
    """Refuse files that cannot be written before anything takes its time."""
    targets = [target for target in (options.output, options.csv) if target is not None]
    if len({target.absolute() for target in targets}) < len(targets):
        raise ConfigurationError(f"{targets[0]}: named by both --output and --csv; use two names")
    for target in targets:
        if target.is_dir():
            raise ConfigurationError(f"{target}: is a folder; name a file in it")
        # Files are replaced, and a device must not be.
        if target.exists() and not target.is_file():
            raise ConfigurationError(f"{target}: is no regular file; name one")
        if target.exists() and trace.exists() and target.samefile(trace):
            raise ConfigurationError(f"{target}: is the log itself; choose another name")
        with _writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=target.parent).close()


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Name the file in errors of writing; they would name a temporary one."""
    try:
        yield
    except OSError as error:
        raise GridschedError(
            f"{target}: cannot be written ({error.strerror or error}); choose another place"
        ) from error


def _policies(names: str, score: str | None) -> list[LocalPolicy]:
    """Policies that are named on the command line, each once, and the user's own."""
    from gridsched.schedulers.local import POLICIES, LocalPolicy, named_policy
    from gridsched.schedulers.scores import SCORE as SCORES

    wanted = [name for part in names.split(",") for name in (POLICIES if part == "all" else [part.strip()])]
    own = {}
    if score is not None:
        own[SCORE] = LocalPolicy(name=SCORE, order=SCORES.load(score), backfilling="easy")
    elif SCORE in wanted:
        raise ConfigurationError(f"policy {SCORE!r} is your own function: name it with --score")
    return [own.get(name) or named_policy(name) for name in dict.fromkeys([*wanted, *own])]


def _prepared(workload: Workload, options: argparse.Namespace) -> tuple[Workload, Cluster]:
    """Clean jobs of the window, and the cluster that replays them."""
    from gridsched.platforms import Cluster
    from gridsched.traces import clean, select_window

    processors = options.processors or workload.processors_available
    if processors is None:
        raise WorkloadError(
            f"{workload.name}: the log does not say how many processors its machine has; use --processors"
        )
    cluster = Cluster(
        processors=processors,
        processors_per_node=options.processors_per_node,
        node_exclusive=options.node_exclusive,
        speed=options.speed,
        name=workload.name,
    )
    window = select_window(workload, month=options.month, jobs=options.jobs)
    return clean(window, processors=processors), cluster


def _preparation(workload: Workload, cluster: Cluster, options: argparse.Namespace) -> list[tuple[str, str]]:
    """What is simulated, and what cleaning did to get there."""
    nodes = f" in nodes of {cluster.processors_per_node}" if cluster.processors_per_node > 1 else ""
    exclusive = ", one job a node" if cluster.node_exclusive else ""
    speed = f", speed {cluster.speed:g}" if cluster.speed != 1 else ""
    facts = [
        ("workload", workload.name),
        *_counts(workload),
        ("jobs", f"{len(workload):,}"),
        ("cluster", f"{cluster.processors:,} processors{nodes}{exclusive}{speed}"),
        ("estimates", options.estimates),
    ]
    unknown = workload.requested_time <= 0
    overrun = ~unknown & (workload.run_time > workload.requested_time)
    if unknown.any() and options.estimates != "actual":
        facts.append(("no requested time", f"{int(unknown.sum()):,} jobs, whose run time is taken"))
    if overrun.any() and options.kill:
        facts.append(("killed", f"{int(overrun.sum()):,} jobs, at their requested time"))
    if options.score:
        facts.append(
            (f"policy {SCORE}", f"queue order by {options.score}, largest first, with EASY backfilling")
        )
    if workload.acknowledgement:
        facts.append(("acknowledgement", workload.acknowledgement))
    return facts


def _run_policy(
    workload: Workload, cluster: Cluster, policy: LocalPolicy, options: argparse.Namespace
) -> xr.Dataset:
    """Verified run of one policy."""
    from gridsched.simulation import simulate
    from gridsched.verifier import verify

    run = simulate(
        workload,
        cluster,
        policy,
        estimates=options.estimates,
        kill=options.kill,
        overrun=options.overrun,
        passes=options.passes,
    )
    verify(run)
    return run


_COLUMNS = (
    "policy",
    "mean wait [s] ±95%",
    "median wait [s]",
    "mean bounded slowdown ±95%",
    "utilisation",
    "longest queue",
)


def _row(name: str, run: xr.Dataset, warm_up: float) -> tuple[str, ...]:
    """Cells of one run; means with half the width of their interval, where there are jobs enough for one."""
    from gridsched.metrics import summarise

    summary = summarise(run, warm_up=warm_up, bins=1).sel(job_class="all")

    def value(variable: str) -> float:
        return float(summary[variable])

    def mean(metric: str, digits: int) -> str:
        centre = value(f"{metric}_mean")
        half = centre - value(f"{metric}_mean_low")
        interval = f" ±{_quantity(half, digits)}" if math.isfinite(half) else ""
        return f"{_quantity(centre, digits)}{interval}"

    return (
        name,
        mean("wait_time", 0),
        _quantity(float(summary["wait_time_quantile"].sel(quantile=0.5))),
        mean("bounded_slowdown", 2),
        _quantity(value("utilisation"), 3),
        _quantity(value("queue_length_max")),
    )


def _recorded_rows(
    run: xr.Dataset, workload: Workload, cluster: Cluster, warm_up: float
) -> list[tuple[str, ...]]:
    """Row of what the log recorded, none where it recorded no waits."""
    from gridsched.metrics import RECORDED, recorded

    history = recorded(run.assign(run_time=("job", workload.run_time)))
    if history is None:
        return []
    if cluster.processors != workload.processors_available:
        # These jobs did not run on this cluster, so they used no share of it.
        history = history.isel(segment=slice(0))
    return [_row(RECORDED, history, warm_up)]


def _write_output(
    options: argparse.Namespace, runs: Sequence[xr.Dataset], names: Sequence[str], workload: Workload
) -> None:
    from gridsched import results

    if options.output:
        with _writing(options.output), _progress(f"writing {options.output}"):
            results.write(results.stack_runs(runs, names), options.output)
    if options.csv:
        with _writing(options.csv), _progress(f"writing {options.csv}"):
            starts = {name: run["start_time"].to_numpy() for name, run in zip(names, runs, strict=True)}
            _write_starts(workload, starts, options.csv)


def _write_starts(workload: Workload, starts: dict[str, NDArray[np.int64]], target: Path) -> None:
    """Write a line a job: what it is, and its start time under each policy, in seconds."""
    import pandas as pd

    from gridsched.io import atomic_write

    table = pd.DataFrame(
        {
            "job_number": workload.job_number,
            "submit_time": workload.submit_time,
            "run_time": workload.run_time,
            "processors": workload.processors,
            **{f"start_time {name}": values for name, values in starts.items()},
        }
    )
    with atomic_write(target) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


# --- gridsched fetch ------------------------------------------------------------------------------


def _fetch(options: argparse.Namespace) -> None:
    from gridsched.traces import fetch

    if options.list:
        _list_logs(options)
        return
    if not options.logs:
        raise ConfigurationError("fetch: name at least one log; gridsched fetch --list shows the known ones")
    for log in options.logs:
        path = fetch(log, folder=options.folder, mirrors=options.mirrors, progress=sys.stderr.isatty())
        print(path, flush=True)


def _list_logs(options: argparse.Namespace) -> None:
    from gridsched.traces import archive_folder, find_log, registry

    folder = options.folder or archive_folder()
    logs = [find_log(name) for name in options.logs] or list(registry().values())
    rows = [
        (
            log.name,
            _UNKNOWN if log.jobs is None else f"{log.jobs:,}",
            _UNKNOWN if log.processors is None else f"{log.processors:,}",
            _UNKNOWN if log.bytes is None else _size(log.bytes),
            "known" if log.sha256_gz or log.sha256_content else _UNKNOWN,
            "yes" if (folder / log.file).is_file() else "no",
        )
        for log in logs
    ]
    _print(_table(["log", "jobs", "processors", "size", "checksum", "present"], rows))


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


# --- gridsched cache ------------------------------------------------------------------------------


def _show_cache(_: argparse.Namespace) -> None:
    from gridsched.engine.jit import cache_root
    from gridsched.traces import archive_folder

    folders = {"compiled kernels": cache_root(), "logs": archive_folder()}
    rows = []
    for what, folder in folders.items():
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        rows.append((_printable(str(folder)), what, f"{len(sizes):,}", _size(sum(sizes))))
    _print(_table(["folder", "holds", "files", "size"], rows))


def _clear_cache(_: argparse.Namespace) -> None:
    from gridsched.engine.jit import clear_cache

    folder = clear_cache()
    if folder.exists():
        raise GridschedError(f"{folder}: could not be deleted; check its permissions")
    print(f"deleted {_printable(str(folder))}")

"""`gridsched simulate`: the jobs of a log under local policies."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.cli.logs import find_trace, read_log
from gridsched.cli.options import (
    add_command,
    add_human,
    add_policy,
    add_simulation,
    add_trace,
    path,
)
from gridsched.cli.printing import Times, facts_table, print_blocks, progress, quantity, table, with_interval
from gridsched.cli.runs import SCORE, fates, named_schedulers, preparation, prepared, run_policy
from gridsched.cli.targets import check_targets, writing

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray

    from gridsched.platform import Cluster
    from gridsched.workloads import Workload


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "simulate",
        "Simulate the jobs of a log on one cluster under local scheduling policies.",
        "gridsched simulate KTH-SP2-1996 --policy fcfs,easy --month 1996-10",
        "gridsched simulate log.swf --score order.py:longest_first --output runs.nc",
        epilog=(
            "A score is a function of any of now, submit_time, estimate, processors, user, group and queue; "
            "the waiting job with the largest score is first in the queue."
        ),
    )
    add_trace(parser)
    add_policy(parser, own=True)
    parser.add_argument(
        "--score",
        metavar="FILE.py:FUNCTION",
        help=f"add the policy '{SCORE}': EASY backfilling with this function as the queue order",
    )
    add_simulation(parser)
    output = parser.add_argument_group("output")
    add_human(output)
    output.add_argument("--output", type=path, metavar="FILE.nc", help="write all runs as netCDF")
    output.add_argument("--csv", type=path, metavar="FILE.csv", help="write the start times of the jobs")
    parser.set_defaults(command=_simulate)


def _simulate(options: argparse.Namespace) -> None:
    check_targets(options, find_trace(options.trace))
    policies = named_schedulers(options.policy, options.score)
    setting = prepared(read_log(options), options)
    workload, cluster = setting.workload, setting.cluster
    print_blocks(facts_table(preparation(setting, options)))

    times = Times(options.human)
    runs: list[xr.Dataset] = []
    rows: list[tuple[str, ...]] = []
    reasons: dict[str, None] = {}
    attributes = {}
    for name, policy in policies.items():
        with progress(f"simulating {name}"):
            run = run_policy(workload, cluster, policy, options)
        attributes[name] = run.attrs
        if not runs:
            rows += _recorded_rows(run, workload, cluster, options.warm_up, times, reasons)
        rows.append(summary_row(name, run, options.warm_up, times, reasons))
        # Of several policies on a large log, only what is written is kept.
        runs.append(run if options.output else run[["start_time"]])
    print()
    print_blocks(
        table(summary_columns(times), rows),
        explanation(reasons),
        *outcomes(attributes),
    )
    _write_output(options, runs, list(policies), workload)


def explanation(reasons: Iterable[str]) -> str:
    """What the intervals are, and why means have none."""
    why = "; ".join(reason for reason in reasons if reason)
    return (
        "±95%: half width of the 95% confidence interval, from batch means; in brackets: both bounds, "
        "where they are not equally far from the mean.\n"
        + (f"A mean without one is that of this log alone: {why}.\n" if why else "")
        + "The schedule of every policy was verified."
    )


def outcomes(attributes: dict[str, dict[str, Any]]) -> list[Any]:
    """Table of the outcomes of jobs that did not run once to their end."""
    facts = fates(attributes)
    return [facts_table(facts)] if facts else []


def summary_columns(times: Times) -> tuple[str, ...]:
    """Headers of the table of runs."""
    return (
        "policy",
        times.header("mean wait", " ±95%"),
        times.header("median wait"),
        "mean bounded slowdown ±95%",
        "utilisation",
        "longest queue",
    )


def summary_row(
    name: str, run: xr.Dataset, warm_up: float, times: Times, reasons: dict[str, None]
) -> tuple[str, ...]:
    """Cells of one run, its means with their intervals; why a mean has none is added to the reasons."""
    from gridsched.metrics.jobs import summarise

    summary = summarise(run, warm_up=warm_up, bins=1).sel(job_class="all")

    def value(variable: str) -> float:
        return float(summary[variable])

    def mean(metric: str, text: Callable[[float], str]) -> str:
        centre, low, high = (value(f"{metric}_mean{bound}") for bound in ("", "_low", "_high"))
        reasons.setdefault(str(summary[f"{metric}_mean_reason"].item()))
        return with_interval(text(centre), centre, low, high, text)

    return (
        name,
        mean("wait_time", times.text),
        times.text(float(summary["wait_time_quantile"].sel(quantile=0.5))),
        mean("bounded_slowdown", lambda number: quantity(number, 2)),
        quantity(value("utilisation"), 3),
        quantity(value("queue_length_max")),
    )


def _recorded_rows(
    run: xr.Dataset,
    workload: Workload,
    cluster: Cluster,
    warm_up: float,
    times: Times,
    reasons: dict[str, None],
) -> list[tuple[str, ...]]:
    """Row of what the log recorded, none where it recorded no waits."""
    from gridsched.comparison import recorded_run
    from gridsched.metrics.jobs import RECORDED

    history = recorded_run(run, workload)
    if history is None:
        return []
    if workload.processors_available not in (None, cluster.processors):
        # These jobs did not run on this cluster, so they used no share of it.
        history = history.isel(segment=slice(0))
    return [summary_row(RECORDED, history, warm_up, times, reasons)]


def _write_output(
    options: argparse.Namespace, runs: Sequence[xr.Dataset], names: Sequence[str], workload: Workload
) -> None:
    from gridsched import results

    if options.output:
        with writing(options.output), progress(f"writing {options.output}"):
            results.write(results.stack_runs(runs, names), options.output)
    if options.csv:
        with writing(options.csv), progress(f"writing {options.csv}"):
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

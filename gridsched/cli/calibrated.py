"""Output of `gridsched compare --calibrate`: how well waits are explained, and changes with intervals."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.cli.printing import UNKNOWN_TEXT, Times, facts_table, jobs, progress, quantity, table
from gridsched.cli.runs import refuse_beside, unusual

if TYPE_CHECKING:
    from gridsched.calibration.trust import Trusted
    from gridsched.cli.clusters import Setting
    from gridsched.cli.logs import Log
    from gridsched.policies.local import LocalPolicy

_MAX_NAMES = 5

NOT_CALIBRATED = (
    "Not calibrated: each policy alone, on the whole log. The difference of these waits from the recorded\n"
    "ones is not the effect of a policy: most of it has other causes, see above."
)
"""What stands before the tables that `compare` has without calibration ..."""

CONFIGURED = (
    "Slurm as configured, and each policy on the same nodes, on the whole log. Intervals of the differences\n"
    "include how far Slurm as configured is from the recorded waits."
)
"""... and where Slurm is simulated as configured."""

_NOT_STARTED = "Nothing is measured of a policy in whose simulation more than 1% of the jobs never start."

FILES = {
    "calibration.csv": "change of the mean wait on the calibrated site, with its interval",
    "calibration_users.csv": "the same for every user",
    "calibration_queues.csv": "the same for every queue",
}
"""Files that are written besides."""


def add_calibration(group: Any) -> None:
    """Add the option to a group of a parser."""
    group.add_argument(
        "--calibrate",
        action="store_true",
        help="fit a present policy to the first half of the log, report how well it explains the waits of "
        "the second half, and the change under each policy there, with an interval",
    )


def calibrate(
    setting: Setting, policies: Sequence[LocalPolicy], options: argparse.Namespace, log: Log
) -> Trusted:
    """Calibrate the present policy of a log.

    Raises
    ------
    ConfigurationError
        If an option does not go with it.
    WorkloadError
        If nothing can be calibrated: one line that says why, and what would help.
    """
    from gridsched.aspects import aspects_of, without
    from gridsched.calibration.layers import ORDERS
    from gridsched.calibration.site import site_of
    from gridsched.calibration.trust import calibrated_orders, trusted_changes
    from gridsched.forecasting.on_nodes import held_by

    refuse_beside("--calibrate", unusual(options))
    named = [policy.name for policy in policies]
    orders = calibrated_orders([name for name in named if name in ORDERS] or named)
    workload, cluster = setting.workload, setting.cluster
    if cluster.nodes:
        workload = held_by(workload, cluster)
    else:
        workload, cluster = without(workload, replace(cluster, events=()), aspects_of(workload, cluster))
    site = site_of(workload, cluster if cluster.nodes else cluster.processors)
    with progress("calibrating") as report:
        return trusted_changes(
            site, orders, user=workload.user, report=report, queue=partial(log.name, "queue")
        )


def left_out(setting: Setting) -> str:
    """What a calibration takes into account or leaves out of what is simulated, as the end of a sentence."""
    from gridsched.aspects import aspects_of
    from gridsched.forecasting.on_nodes import held_by

    used = ", ".join(aspects_of(setting.workload, setting.cluster))
    if setting.cluster.nodes:
        others = len(setting.workload) - len(held_by(setting.workload, setting.cluster))
        return f", with {used}" + (f", without {jobs(others)} that the nodes cannot hold" if others else "")
    return f" on one pool of {setting.cluster.processors:,} processors, without {used}" if used else ""


def blocks(
    trusted: Trusted, log: Log, setting: Setting, policies: Sequence[LocalPolicy], times: Times
) -> list[Any]:
    """What is printed of a calibration, before anything else is compared."""
    from gridsched.calibration.measures import EXPLAINED

    others = [policy.name for policy in policies if policy.name not in set(trusted.changes["policy"])]
    is_told = trusted.headline == EXPLAINED
    return [
        f"Recorded waits of the second half of the log are {trusted.headline} by a present policy that\n"
        f"was fitted on the first{left_out(setting)}:",
        table(
            ["present policy", "simulated / recorded mean", "rank correlation", "near"],
            [
                (name, quantity(each.ratio, 2), quantity(each.correlation, 2), quantity(each.near, 2))
                for name, each in trusted.explains.items()
            ],
        ),
        *([] if math.isfinite(trusted.explains["calibrated"].near) else [_NOT_STARTED]),
        "Near: within 5 minutes or a factor of two. The null model draws waits of similar jobs and uses\n"
        "those of the second half up to each submission; a simulation uses none.",
        "The present policy is EASY on requested times and all processors"
        + (", except that" if trusted.layers else "; no layer of the calibration explains more."),
        *([facts_table(trusted.layers)] if trusted.layers else []),
        *([f"Not on the calibrated site: {', '.join(others)}."] if others else []),
        "Change if each policy replaces order and backfilling, and the rest stays. "
        + (_interval(trusted) if is_told else _no_answer()),
        _answers(trusted, times, is_told=is_told),
        *(part for kind in trusted.groups if is_told for part in _groups(trusted, kind, log, times)),
    ]


def _interval(trusted: Trusted) -> str:
    """What the intervals cover, and why some are not there."""
    rows = trusted.changes.to_dict("records")
    missing = [f"{row['policy']}: {row['reason']}" for row in rows if row["reason"]]
    return (
        f"The interval covers\n{_fits(trusted)}, and the error of\nthe fit on these jobs; other "
        "months can differ by more." + (f" No interval: {'; '.join(missing)}." if missing else "")
    )


def _no_answer() -> str:
    """Why nothing is said of the policies."""
    from gridsched.calibration.measures import LEAST_CORRELATION, RATIOS

    return (
        "What it would be\ncannot be said where recorded waits are not explained, which takes a ratio from "
        f"{RATIOS[0]:g} to {RATIOS[1]:g}, and a\nrank correlation of {LEAST_CORRELATION:g} that is not below "
        "the null model's. The figures are those of the simulation alone:"
    )


def _answers(trusted: Trusted, times: Times, *, is_told: bool) -> Any:
    """Table of the policies: changes with intervals, or what was simulated."""
    bounds = ("change", "low", "high") if is_told else ("change",)
    change = [times.header("change"), "from", "to"] if is_told else [times.header("simulated change")]
    dashes = (len(bounds) + 1) * (UNKNOWN_TEXT,)
    return table(
        ["policy", times.header("mean wait"), *change, "jobs wait"],
        [
            ("recorded", times.text(trusted.recorded), *dashes),
            ("present policy", times.text(trusted.present), *dashes),
            *(
                (
                    row["policy"],
                    times.text(row["mean_wait"]),
                    *(times.change(row[key]) for key in bounds),
                    row["verdict"],
                )
                for row in trusted.changes.to_dict("records")
            ),
        ],
    )


def _fits(trusted: Trusted) -> str:
    """How many calibrations an interval is of."""
    if trusted.alike == 1:
        said = "one calibration (no other fits about equally well)"
    else:
        said = f"the {trusted.alike} calibrations that fit about equally well"
    if trusted.given_up:
        said += f"\n(without {trusted.given_up} that leave jobs of the second half waiting forever)"
    return said


def _groups(trusted: Trusted, kind: str, log: Log, times: Times) -> list[Any]:
    """Users or queues with most jobs under the first policy, and how many gain and lose significantly."""
    whole = trusted.groups[kind]
    first = str(trusted.changes["policy"].iloc[0])
    own = whole[whole["policy"] == first]
    why = ", ".join(reason for reason in own["reason"].unique() if reason)
    less, more, neither, unknown = (
        int((own["verdict"] == verdict).sum())
        for verdict in ("less", "more", "not significant", "cannot tell")
    )
    return [
        f"Under {first} {less:,} of {len(own):,} {kind}s wait significantly less and {more:,} more; "
        f"{neither:,} do not differ\nsignificantly."
        + (f" For {unknown:,} it cannot be said ({why})." if unknown else "")
        + "\nThose with most jobs:",
        table(
            [kind, "jobs", times.header("change"), "from", "to", "jobs wait"],
            [
                (
                    log.name(kind, int(row["number"])),
                    quantity(float(row["jobs"])),
                    *(times.change(row[key]) for key in ("change", "low", "high")),
                    row["verdict"],
                )
                for row in own.head(_MAX_NAMES).to_dict("records")
            ],
        ),
    ]


def write(trusted: Trusted, folder: Path, log: Log) -> None:
    """Write the tables into a folder, with the names of users and queues."""
    import pandas as pd

    tables = [trusted.changes]
    for kind in ("user", "queue"):
        rows = trusted.groups.get(kind, pd.DataFrame({"policy": [], "number": []}))
        tables.append(rows.assign(name=[log.name(kind, int(number)) for number in rows["number"]]))
    for name, rows in zip(FILES, tables, strict=True):
        rows.to_csv(folder / name, index=False, lineterminator="\n")

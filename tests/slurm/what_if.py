"""What changes of a configuration do to one plan, by a real controller and as predicted before.

`make what-if` is the long form: a base configuration and five changes, each recorded twice. A prediction
knows the export and configuration of the first recording of the base; no database runs, so that the export is
written from the controller's log, in the columns and whole seconds of `sacct`.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import gridsched as gs
from gridsched.traces.sacct import read_accounting
from tests.slurm.recording import (
    NODES,
    PROCESSORS,
    PlannedJob,
    observed,
    plan_of,
    record,
    write_outcome,
)
from tests.slurm.session import free_ports

SCHEDULING = """\
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=4,sched_interval=20,bf_interval=15,bf_resolution=1,bf_window=120
SelectType=select/linear
PriorityType=priority/multifactor
PriorityCalcPeriod=1
"""
PARTITIONS = """\
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=EXCLUSIVE PriorityTier=1
PartitionName=short Nodes=n[01-08] MaxTime=60 State=UP OverSubscribe=EXCLUSIVE PriorityTier=2
"""
CHANGES = (
    "SchedulerType=sched/builtin",
    "PriorityWeightJobSize=10000",
    "PriorityWeightJobSize=10000 PriorityFavorSmall=YES",
    "SchedulerParameters=bf_max_job_test=3",
    "PartitionName=short PriorityTier=1",
)
BASE = "base"

AT_ONCE = 6
"""Controllers that run at once."""

LONGEST = 540
"""Seconds that a recording may take while others run."""

SMALL = 4
"""Nodes up to which a job may be in the partition of a higher tier, which has half of them."""


def plan_in_partitions(jobs: int, seed: int) -> list[PlannedJob]:
    """A plan of which a part of the small jobs goes to the partition of a higher tier."""
    rng = random.Random(seed)
    return [
        PlannedJob(job.gap, job.nodes, job.limit, job.run, "short")
        if job.nodes <= SMALL and rng.random() < 0.4
        else job
        for job in plan_of(jobs, seed)
    ]


def changed(lines: str, change: str) -> str:
    """Lines of a configuration with a change."""
    if change.startswith("PartitionName="):
        partition, pair = change.split()
        key = pair.partition("=")[0]
        return re.sub(rf"(?m)^({partition} .*){key}=\S+", rf"\1{pair}", lines)
    for pair in change.split():
        key, _, value = pair.partition("=")
        if key == "SchedulerParameters":
            lines = re.sub(rf"(?m)^{key}=.*", rf"\g<0>,{value}", lines)
        else:
            lines = re.sub(rf"(?m)^{key}=.*\n", "", lines) + f"{pair}\n"
    return lines


def record_pairs(
    folder: Path, plan: Sequence[PlannedJob], wanted: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], Path]:
    """Record a plan under changes (`BASE` for none), each so often as it is numbered; where they are."""
    ports = free_ports((NODES + 1) * len(wanted))
    places = {each: folder / f"recording{place}" for place, each in enumerate(wanted)}

    def make(place: int) -> None:
        change = wanted[place][0]
        scheduling, partitions = SCHEDULING, PARTITIONS
        if change.startswith("PartitionName="):
            partitions = changed(partitions, change)
        elif change != BASE:
            scheduling = changed(scheduling, change)
        own = ports[place * (NODES + 1) : (place + 1) * (NODES + 1)]
        here = places[wanted[place]]
        record(here, plan, scheduling, partitions, longest=LONGEST, ports=own)
        write_outcome(here, observed(here / "slurmctld.log"), plan)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(make, range(len(wanted))))
    return places


def mean_wait(recording: Path) -> float:
    """Mean wait of a recording [s]."""
    jobs = pd.read_csv(recording / "outcome.csv")
    return float((jobs["start_ms"] - jobs["submit_ms"]).mean())


def write_export(recording: Path, target: Path) -> None:
    """Write what `sacct --parsable2` would print of a recording."""
    jobs = pd.read_csv(recording / "outcome.csv")
    times = {
        name: [f"{datetime.fromtimestamp(int(each), UTC):%Y-%m-%dT%H:%M:%S}" for each in jobs[column]]
        for name, column in (("Submit", "submit_ms"), ("Start", "start_ms"), ("End", "done_ms"))
    }
    columns: dict[str, Any] = {
        "JobID": jobs["jobid"],
        "Partition": jobs["partition"],
        "NNodes": jobs["nnodes"],
        "NCPUS": PROCESSORS * jobs["nnodes"],
        **times,
        "Timelimit": [f"00:{minutes:02}:00" for minutes in jobs["time_limit_min"]],
        "State": "COMPLETED",
        "ElapsedRaw": jobs["done_ms"].astype(int) - jobs["start_ms"].astype(int),
    }
    pd.DataFrame(columns).to_csv(target, sep="|", index=False)


def predicted(recording: Path, changes: Sequence[str]) -> pd.DataFrame:
    """Changes of the mean wait with their intervals, from export and configuration of the base."""
    write_export(recording, recording / "export.txt")
    log = read_accounting(recording / "export.txt", time_zone="UTC")
    read = partial(gs.read_slurm_site, recording / "slurm.conf", names=log.names)
    sites = {BASE: read(), **{change: read(changes=[change]) for change in changes}}
    found = gs.what_if(gs.clean(log.workload), sites)
    names = {"": "predicted", "_low": "low", "_high": "high"}
    values = {
        text: found[f"wait_time_difference{bound}"].sel(scheme=list(changes)).values
        for bound, text in names.items()
    }
    return pd.DataFrame(values, index=pd.Index(changes, name="change"))


def table(places: Mapping[tuple[str, int], Path], changes: Sequence[str]) -> pd.DataFrame:
    """Predictions beside what the controller did: the mean of its recordings, and how two of them differ."""
    rows = predicted(places[BASE, 1], changes)
    waits = {key: mean_wait(place) for key, place in places.items()}

    def of(change: str) -> list[float]:
        return [wait for (name, _), wait in waits.items() if name == change]

    base = float(np.mean(of(BASE)))
    rows["real"] = [np.mean(of(change)) - base for change in changes]
    pairs = [np.ptp(of(change)) for change in (BASE, *changes) if len(of(change)) > 1]
    rows["noise"] = np.sqrt(np.mean(np.square(pairs)) / 2)
    rows["inside"] = (rows["low"] <= rows["real"]) & (rows["real"] <= rows["high"])
    rows["clear"] = rows["real"].abs() > 2 * rows["noise"]
    rows["right sign"] = rows["predicted"] * rows["real"] > 0
    return rows


def main() -> int:
    """Record everything twice and print the table; 1 if a sign is wrong, or under 90 % are inside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where recordings are put (default: a temporary folder)")
    parser.add_argument("--jobs", type=int, default=70)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    wanted = [(change, number) for number in (1, 2) for change in (BASE, *CHANGES)]
    plan = plan_in_partitions(options.jobs, options.seed)
    with TemporaryDirectory() as temporary:
        places = record_pairs(options.folder or Path(temporary), plan, wanted)
        rows = table(places, CHANGES)
    print(rows.round(1).to_string())
    return int(not (rows["right sign"] | ~rows["clear"]).all() or rows["inside"].mean() < 0.9)


if __name__ == "__main__":
    sys.exit(main())

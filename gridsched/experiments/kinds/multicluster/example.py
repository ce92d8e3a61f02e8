"""The worked example of MUSCLE: Tables 1 and 2 and Figure 3 of its paper, and what TITAN makes of it.

He et al., "Hybrid performance-based workload management for multiclusters and grids" (IEE Proceedings -
Software 151, 2004), sections 4.1 and 4.3.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of
from gridsched.platform import Cluster
from gridsched.systems.multicluster.muscle import Backlog, allocate, composition_table, schedule_queue
from gridsched.systems.multicluster.titan import resources_of, stream

CLUSTERS = (Cluster(name="C1", processors=4), Cluster(name="C2", processors=6))
SIZES, RUN_TIMES, SLACKS = (2, 1, 4, 3, 1, 2), (2, 4, 4, 6, 2, 4), (6, 8, 14, 12, 4, 8)
"""Table 1: jobs J1 to J6, all of which have arrived."""


def worked_example() -> xr.Dataset:
    """Schedules of the example as of `schedule_queue`, with the schedules that MUSCLE hands over and Table 2.

    Returns
    -------
    xarray.Dataset
        Besides: slack; seed_resources (job, resource); seed_makespan and seed_holes (cluster), the time that
        resources of a cluster are idle before their last job in MUSCLE's schedule; compositions (row) as text
        and row_code (row): the numbers of the jobs in a row as digits, with 0 between compositions.
    """
    sizes, lengths, slacks = (np.array(values, np.int64) for values in (SIZES, RUN_TIMES, SLACKS))
    whole = schedule_queue({"processors": sizes, "run_time": lengths, "deadline": lengths + slacks}, CLUSTERS)
    widest = max(cluster.processors for cluster in CLUSTERS)
    seeds = allocate(
        sizes,
        np.stack([lengths] * len(CLUSTERS)),
        np.stack([slacks] * len(CLUSTERS)),
        [Backlog(np.zeros(cluster.processors, np.int64)) for cluster in CLUSTERS],
        stream(0, 0, len(CLUSTERS)),
    )
    resources = resources_of(seeds.masks, widest)
    ends = np.where(resources, (seeds.start + lengths)[:, np.newaxis], 0)
    on_cluster = seeds.cluster == np.arange(len(CLUSTERS))[:, np.newaxis]
    last = (on_cluster[:, :, np.newaxis] * ends).max(axis=1).astype(np.float64)
    rows = composition_table(sizes, widest)
    columns = {
        "slack": ("job", slacks, "slack", "s"),
        "seed_resources": (
            ("job", "resource"),
            resources.astype(np.int8),
            "whether the job runs on the resource in the schedule of MUSCLE",
            "1",
        ),
        "seed_makespan": ("cluster", last.max(axis=1), "makespan of the schedule of MUSCLE", "s"),
        "seed_holes": (
            "cluster",
            last.sum(axis=1) - on_cluster @ (sizes * lengths),
            "idle time of resources before their last job in the schedule of MUSCLE",
            "s",
        ),
        "row_code": (
            "row",
            [float("0".join("".join(str(job + 1) for job in jobs) for jobs in row)) for row in rows],
            "numbers of the jobs in the row as digits, 0 between compositions",
            "1",
        ),
    }
    compositions = ["; ".join(", ".join(f"J{job + 1}" for job in jobs) for jobs in row) for row in rows]
    whole = whole.assign_coords(row=np.arange(1, widest + 1)).assign(compositions=("row", compositions))
    return whole.assign(
        {name: (dims, values, attrs_of(*words)) for name, (dims, values, *words) in columns.items()}
    )


def handed_over(example: xr.Dataset) -> xr.Dataset:
    """The schedules that MUSCLE hands over, in the form of those of TITAN."""
    start = example["seed_start_time"]
    return example.assign(
        start_time=start, end_time=start + example["run_time"], resources=example["seed_resources"]
    )


def write_example(target: str | Path) -> None:
    """Write the worked example as a dataset."""
    files.write(worked_example().assign_attrs(results.provenance()), target)


def measures_of(example: xr.Dataset) -> xr.Dataset:
    """What claims of the paper need of the example, under names that begin so."""
    of_jobs = ["slack", "processors", "run_time", "cluster_index", "seed_start_time"]
    part = example[[*of_jobs, "seed_makespan", "seed_holes", "row_code", "cluster_processors"]]
    part = part.reset_coords(drop=True).assign_coords(
        job=[f"J{number}" for number in example["job_number"].values],
        cluster=example["cluster"].values,
        row=example["row"].values,
    )
    return part.rename({str(name): f"example_{name}" for name in (*part.variables,)})

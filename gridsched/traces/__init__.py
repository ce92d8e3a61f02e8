"""Logs of parallel jobs, from the file to a workload that can be simulated.

`read_swf` and `write_swf` know the Standard Workload Format; `fetch` gets a verified log of the Parallel
Workloads Archive, which `registry` and `find_log` describe; `read_sacct` and `read_accounting` know what
Slurm's accounting prints, `read_slurm_table` the tables that sites make of it; `read_batsim` knows workloads
of Batsim; `read_gpu_nodes`,
`read_gpu_pods` and `read_gpu_jobs` know traces of clusters with GPUs; `recognise` tells which of these a file
is; `read_nodes` reads the nodes of a cluster from a file, `infer_nodes` finds them in an export,
`infer_outages` finds spells in which a cluster was idle though jobs waited; `clean` leaves out and repairs
jobs, with counts; `select_window` takes a month (`by_month`, `months`), the first months
(`by_first_months`), an interval (`by_interval`) or a number of jobs (`by_count`) of a log.
"""

from typing import TYPE_CHECKING

from gridsched.lazy import attach

if TYPE_CHECKING:
    from gridsched.traces.archive import ArchiveLog, archive_folder, fetch, find_log, registry
    from gridsched.traces.batsim import BatsimLog, read_batsim
    from gridsched.traces.cleaning import clean
    from gridsched.traces.formats import recognise
    from gridsched.traces.gpu_clusters import (
        GpuLog,
        gpu_partitions,
        read_gpu_job_log,
        read_gpu_jobs,
        read_gpu_nodes,
        read_gpu_pod_log,
        read_gpu_pods,
    )
    from gridsched.traces.merging import merge_workloads
    from gridsched.traces.node_files import read_nodes
    from gridsched.traces.node_lists import infer_nodes
    from gridsched.traces.outages import infer_outages, outage_events
    from gridsched.traces.sacct import AccountingLog, read_accounting, read_sacct
    from gridsched.traces.slurm_table import read_slurm_table
    from gridsched.traces.swf import read_swf, write_swf
    from gridsched.traces.windows import (
        by_count,
        by_first_months,
        by_interval,
        by_month,
        months,
        select_window,
    )

_HOMES: dict[str, str] = {
    "AccountingLog": "gridsched.traces.sacct",
    "ArchiveLog": "gridsched.traces.archive",
    "BatsimLog": "gridsched.traces.batsim",
    "GpuLog": "gridsched.traces.gpu_clusters",
    "archive_folder": "gridsched.traces.archive",
    "by_count": "gridsched.traces.windows",
    "by_first_months": "gridsched.traces.windows",
    "by_interval": "gridsched.traces.windows",
    "by_month": "gridsched.traces.windows",
    "clean": "gridsched.traces.cleaning",
    "fetch": "gridsched.traces.archive",
    "find_log": "gridsched.traces.archive",
    "gpu_partitions": "gridsched.traces.gpu_clusters",
    "infer_nodes": "gridsched.traces.node_lists",
    "infer_outages": "gridsched.traces.outages",
    "merge_workloads": "gridsched.traces.merging",
    "months": "gridsched.traces.windows",
    "outage_events": "gridsched.traces.outages",
    "read_accounting": "gridsched.traces.sacct",
    "read_batsim": "gridsched.traces.batsim",
    "read_gpu_job_log": "gridsched.traces.gpu_clusters",
    "read_gpu_jobs": "gridsched.traces.gpu_clusters",
    "read_gpu_nodes": "gridsched.traces.gpu_clusters",
    "read_gpu_pod_log": "gridsched.traces.gpu_clusters",
    "read_gpu_pods": "gridsched.traces.gpu_clusters",
    "read_nodes": "gridsched.traces.node_files",
    "read_sacct": "gridsched.traces.sacct",
    "read_slurm_table": "gridsched.traces.slurm_table",
    "read_swf": "gridsched.traces.swf",
    "recognise": "gridsched.traces.formats",
    "registry": "gridsched.traces.archive",
    "select_window": "gridsched.traces.windows",
    "write_swf": "gridsched.traces.swf",
}

__all__ = [
    "AccountingLog",
    "ArchiveLog",
    "BatsimLog",
    "GpuLog",
    "archive_folder",
    "by_count",
    "by_first_months",
    "by_interval",
    "by_month",
    "clean",
    "fetch",
    "find_log",
    "gpu_partitions",
    "infer_nodes",
    "infer_outages",
    "merge_workloads",
    "months",
    "outage_events",
    "read_accounting",
    "read_batsim",
    "read_gpu_job_log",
    "read_gpu_jobs",
    "read_gpu_nodes",
    "read_gpu_pod_log",
    "read_gpu_pods",
    "read_nodes",
    "read_sacct",
    "read_slurm_table",
    "read_swf",
    "recognise",
    "registry",
    "select_window",
    "write_swf",
]

__getattr__, __dir__ = attach(__name__, _HOMES)

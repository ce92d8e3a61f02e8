"""Reading traces of clusters with GPUs: nodes and pods of a Kubernetes cluster, and jobs of deep learning.

Nodes and pods are those of the trace of GPU sharing that Alibaba published (`openb`). A processor is a
thousandth of a core, both on nodes and in pods, so that nothing has to be rounded. Jobs of deep learning are
those of Philly at Microsoft, as a table with one row a job. Tables are CSV, plain or compressed, or Parquet
where the name ends in .parquet.

Conventions of pods:

- *A pod* is a job on one node. It asks for whole GPUs, or for a part of one (`gpu_share`).
- *CPU*: Kubernetes counts a tenth of a core where a pod asks for none; so does the reader, which counts such
  pods.
- *Memory* is shared out among the processors in whole KiB, rounded down: a pod that fits into a node still
  fits.
- *Run time* goes from creation to deletion, so that it has the waiting in it, or from where the pod was
  scheduled. Pods that ran when the trace ended ran longer than it says; they stay, and are counted.
- *Models of GPUs* that a pod may use are a partition: 0 for any, see `GpuLog.names` and `gpu_partitions`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridsched.errors import ConfigurationError, TraceError, check_choice
from gridsched.nodes import NodeType, Partition
from gridsched.traces._slurm_values import SlurmTimes, per_processor, to_unix
from gridsched.traces._tables import Table, read_table
from gridsched.traces.sacct import zone_of
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

__all__ = [
    "GpuLog",
    "gpu_partitions",
    "read_gpu_job_log",
    "read_gpu_jobs",
    "read_gpu_nodes",
    "read_gpu_pod_log",
    "read_gpu_pods",
]

RunsFrom = Literal["creation", "scheduled"]
Integers = NDArray[np.int64]

_NODE = ("sn", "cpu_milli", "memory_mib", "gpu")
_POD = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_POD_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_JOB = ("timestamp", "duration", "num_gpus")

_STATUS = {"Succeeded": 1, "Failed": 0, "Pending": 5}
"""Status of a pod that ended, by its phase; a pod that waited until it was deleted was cancelled."""

_CPU_OF_NONE = 100
"""Thousandths of a core that Kubernetes counts for a pod that asks for none."""

_WHOLE_GPU = 1000
_KIB_PER_MIB = 1024
_MODELS = "|"
"""What stands between the models of GPUs that a pod may use."""


@dataclass(frozen=True, kw_only=True)
class GpuLog:
    """A workload from a trace of GPUs with the names that it has numbers for.

    Parameters
    ----------
    workload : Workload
        The jobs, in order of submission.
    names : mapping of str to tuple of str
        Names by number of the columns "partition" (models of GPUs like A10|T4, "" for any, or virtual
        clusters) and "queue" (classes of service); empty where the trace has no such column.
    identifiers : tuple of str
        Name of each pod, "" where there is none.
    """

    workload: Workload
    names: Mapping[str, tuple[str, ...]]
    identifiers: tuple[str, ...]


# --- nodes ----------------------------------------------------------------------------------------


def read_gpu_nodes(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> tuple[NodeType, ...]:
    r"""Nodes of a cluster with GPUs, from a table with the columns sn, cpu_milli, memory_mib, gpu.

    Parameters
    ----------
    path : path-like
        The table; models of GPUs (column model) are for `gpu_partitions`.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Returns
    -------
    tuple of NodeType
        One a node, in the order of the table, with its name, thousandths of a core, memory in MiB and number
        of GPUs.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, a value is out of range, or a name occurs twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> _ = Path("nodes.csv").write_text(
    ...     "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,262144,8,V100\n"
    ... )
    >>> [(kind.cores, kind.gpus) for kind in gs.read_gpu_nodes("nodes.csv")]
    [(64000, 2), (96000, 8)]
    """
    table = read_table(Path(path), needed=_NODE, max_bytes=max_bytes)
    names = _node_names(table)
    sizes = [table.wholes(column).tolist() for column in _NODE[1:]]
    nodes = []
    for row, (name, cores, memory, gpus) in enumerate(zip(names, *sizes, strict=True)):
        try:
            nodes.append(NodeType(name=name, cores=cores, memory=memory, gpus=gpus))
        except ConfigurationError as error:
            raise TraceError(f"{table.file}:{table.lines[row]}: {error}") from None
    return tuple(nodes)


def gpu_partitions(
    path: str | os.PathLike[str], models: Sequence[str], *, max_bytes: int | None = None
) -> tuple[Partition, ...]:
    r"""Partitions of the nodes of `read_gpu_nodes` whose GPUs are of models that pods may use.

    Parameters
    ----------
    path : path-like
        The table of nodes, with the columns sn and model.
    models : sequence of str
        Sets of models by number of the partition, like A10|T4, "" for all nodes: `GpuLog.names["partition"]`.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Returns
    -------
    tuple of Partition
        One a set, with its place as number.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, or no node has a GPU of the models of a set.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> _ = Path("nodes.csv").write_text(
    ...     "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,262144,8,V100\n"
    ... )
    >>> [sorted(each.nodes) for each in gs.gpu_partitions("nodes.csv", ["", "V100"])]
    [[], ['n1']]
    """
    table = read_table(Path(path), needed=("sn", "model"), max_bytes=max_bytes)
    nodes = list(zip(_node_names(table), table.texts("model"), strict=True))
    partitions = []
    for number, wanted in enumerate(models):
        names = [name for name, model in nodes if wanted and model in wanted.split(_MODELS)]
        if wanted and not names:
            raise TraceError(
                f"{table.file}: no node whose model is {wanted}; take the nodes of the same trace as the pods"
            )
        partitions.append(Partition(number=number, nodes=names, name=wanted))
    return tuple(partitions)


def _node_names(table: Table) -> list[str]:
    """Names of nodes, each there once."""
    names = table.texts("sn")
    repeated = pd.Series(names).duplicated().to_numpy() | np.array([not name for name in names])
    if repeated.any():
        raise table.mistake(int(np.argmax(repeated)), "sn", "no name of its own; give each node one")
    return names


# --- pods -----------------------------------------------------------------------------------------


def read_gpu_pods(
    path: str | os.PathLike[str],
    *,
    run_from: RunsFrom = "creation",
    name: str | None = None,
    max_bytes: int | None = None,
) -> Workload:
    """Workload of a table of pods; see `read_gpu_pod_log`, which also gives the names."""
    return read_gpu_pod_log(path, run_from=run_from, name=name, max_bytes=max_bytes).workload


def read_gpu_pod_log(
    path: str | os.PathLike[str],
    *,
    run_from: RunsFrom = "creation",
    name: str | None = None,
    max_bytes: int | None = None,
) -> GpuLog:
    """Read a table of pods; see the conventions of the module.

    Parameters
    ----------
    path : path-like
        The table. Columns are cpu_milli, memory_mib, num_gpu, gpu_milli; times [s] are creation_time,
        deletion_time and scheduled_time; name, gpu_spec, qos and pod_phase are optional. Where the table has
        no times, all pods are submitted at 0 and their run times are unknown.
    run_from : {"creation", "scheduled"}
        Where run times begin. From where they were scheduled, the time before is the wait, and pods that
        were never scheduled are left out.
    name : str, optional
        Name of the workload; the file name without suffixes if not given.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Returns
    -------
    GpuLog
        A processor is a thousandth of a core.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, or a value is none; the message names the line.
    ConfigurationError
        If `run_from` is unknown.

    Examples
    --------
    >>> import gridsched as gs
    >>> import pandas as pd
    >>> pods = pd.DataFrame(
    ...     {
    ...         "cpu_milli": [4000, 8000],
    ...         "memory_mib": [1024, 2048],
    ...         "num_gpu": [1, 1],
    ...         "gpu_milli": [500, 1000],
    ...         "creation_time": [0, 60],
    ...         "deletion_time": [90, 150],
    ...         "scheduled_time": [0, 60],
    ...     }
    ... )
    >>> pods.to_csv("pods.csv", index=False)
    >>> gs.read_gpu_pod_log("pods.csv").workload.gpu_share
    array([500,  -1])
    """
    check_choice("run_from", run_from, get_args(RunsFrom))
    table = read_table(
        Path(path),
        needed=_POD,
        also=(*_POD_TIMES, "name", "gpu_spec", "qos", "pod_phase"),
        max_bytes=max_bytes,
    )
    times, keep, counted = _pod_times(table, run_from)
    asked = table.wholes("cpu_milli")
    processors = np.where(asked > 0, asked, _CPU_OF_NONE)
    gpus, share = _pod_gpus(table)
    partition, models = _sets_of_models(table.texts("gpu_spec"))
    queue, classes = _numbered(table, "qos")
    phases = table.texts("pod_phase")
    return _log(
        table,
        {
            **times,
            "requested_processors": processors,
            "requested_memory": per_processor(table.wholes("memory_mib") * _KIB_PER_MIB, processors),
            "requested_nodes": np.ones(len(table), np.int64),
            "requested_gpus": gpus,
            "gpu_share": share,
            "partition": partition,
            "queue": queue,
            "status": np.array([_STATUS.get(phase, UNKNOWN) for phase in phases]),
        },
        keep,
        names={"partition": models, "queue": classes},
        name=name,
        left_out={"never scheduled": ~keep},
        repaired={**counted, f"asked for no CPU, taken as {_CPU_OF_NONE} thousandths of a core": asked == 0},
    )


def _pod_times(
    table: Table, run_from: RunsFrom
) -> tuple[dict[str, Integers], NDArray[np.bool_], dict[str, NDArray[np.bool_]]]:
    """Columns of times, which pods are jobs, and what has to be said of their run times."""
    everyone = np.ones(len(table), np.bool_)
    missing = [name for name in _POD_TIMES[:2] if name not in table]
    if len(missing) == 2 and run_from == "creation":
        unknown = {"submit_time": np.zeros(len(table), np.int64), "run_time": np.full(len(table), UNKNOWN)}
        return unknown, everyone, {"no times in the table, submitted at 0 for an unknown time": everyone}
    if run_from == "scheduled" and "scheduled_time" not in table:
        missing.append("scheduled_time")
    if missing:
        raise TraceError(f"{table.file}:1: no column {', '.join(missing)}; add it, or take another table")
    creation, deletion = table.wholes("creation_time"), table.wholes("deletion_time")
    scheduled = table.wholes("scheduled_time", missing=UNKNOWN)
    began = scheduled >= 0
    start = np.where(began, scheduled, creation) if run_from == "scheduled" else creation
    for column, wrong in (("deletion_time", deletion < start), ("scheduled_time", start < creation)):
        if wrong.any():
            problem = "a pod is created, scheduled, then deleted; fix this line"
            raise table.mistake(int(np.argmax(wrong)), column, problem)
    times = {"submit_time": creation, "run_time": deletion - start}
    phases = np.array(table.texts("pod_phase"))
    counted = {"still running when the trace ended, run time up to then": phases == "Running"}
    if run_from == "scheduled":
        return {**times, "wait_time": start - creation}, began, counted
    never = ~began if "scheduled_time" in table else phases == "Pending"
    return times, everyone, {**counted, "never scheduled, run time is how long it waited": never}


def _pod_gpus(table: Table) -> tuple[Integers, Integers]:
    """Whole GPUs of each pod, and thousandths of one; -1 for none."""
    number, share = table.wholes("num_gpu"), table.wholes("gpu_milli")
    wrong = np.where(number == 0, share > 0, (share == 0) | (share > _WHOLE_GPU))
    wrong |= (number > 1) & (share != _WHOLE_GPU)
    if wrong.any():
        row = int(np.argmax(wrong))
        right = ("0", "1 to 1000", "1000")[min(int(number[row]), 2)]
        problem = f"where num_gpu is {number[row]}, {right} thousandths of each are right; fix this line"
        raise table.mistake(row, "gpu_milli", problem)
    partial = (number == 1) & (share < _WHOLE_GPU)
    return np.where((number > 0) & ~partial, number, UNKNOWN), np.where(partial, share, UNKNOWN)


def _sets_of_models(texts: Sequence[str]) -> tuple[Integers, tuple[str, ...]]:
    """Number of each set of models of GPUs, 0 for any, and the sets by number; order does not matter."""
    known = {"": 0}
    sets = {text: _MODELS.join(sorted(filter(None, text.split(_MODELS)))) for text in dict.fromkeys(texts)}
    numbers = [known.setdefault(sets[text], len(known)) for text in texts]
    return np.array(numbers, np.int64), tuple(known)


# --- jobs of deep learning ------------------------------------------------------------------------


def read_gpu_jobs(
    path: str | os.PathLike[str],
    *,
    time_zone: str | None = None,
    name: str | None = None,
    max_bytes: int | None = None,
) -> Workload:
    """Workload of a table of GPU jobs; see `read_gpu_job_log`, which also gives the names."""
    return read_gpu_job_log(path, time_zone=time_zone, name=name, max_bytes=max_bytes).workload


def read_gpu_job_log(
    path: str | os.PathLike[str],
    *,
    time_zone: str | None = None,
    name: str | None = None,
    max_bytes: int | None = None,
) -> GpuLog:
    """Read a table of jobs of which only the GPUs are known.

    A job has one processor for each of its GPUs, so that it runs on a cluster with nodes as well as on a pool
    of as many processors as there are GPUs.

    Parameters
    ----------
    path : path-like
        The table. Columns are timestamp (clock of the site, or Unix time, of the submission), duration [s],
        num_gpus; gpu_time [s] and cluster (virtual cluster, the partition) are optional.
    time_zone : str, optional
        IANA name of the site's zone; without it the times are read as if they were UTC.
    name : str, optional
        Name of the workload; the file name without suffixes if not given.
    max_bytes : int, optional
        Largest uncompressed size, see `read_swf`.

    Returns
    -------
    GpuLog
        Jobs without a submit time, a duration or a GPU are left out, and counted.

    Raises
    ------
    TraceError
        If the file cannot be read, a column is missing, or a value is none; the message names the line.
    ConfigurationError
        If the time zone is unknown.
    """
    zone = zone_of(time_zone)
    table = read_table(Path(path), needed=_JOB, also=("gpu_time", "cluster"), max_bytes=max_bytes)
    duration = table.numbers("duration", missing=UNKNOWN)
    gpus = table.wholes("num_gpus", missing=0)
    times: SlurmTimes = table.times("timestamp")
    submit = to_unix(times, zone).first
    unfit = {"no submit time": times.seconds < 0, "no run time": duration < 0, "no GPU": gpus == 0}
    keep = ~np.any(list(unfit.values()), axis=0)
    if not keep.any():
        raise TraceError(f"{table.file}: no job with timestamp, duration and GPUs; give another table")
    origin = int(submit[keep].min())
    partition, clusters = _numbered(table, "cluster")
    columns = {
        "submit_time": submit - origin,
        "run_time": np.ceil(duration).astype(np.int64),
        "requested_processors": gpus,
        "requested_gpus": gpus,
        "partition": partition,
    }
    repaired = {"run time rounded up to whole seconds": duration % 1 > 0}
    if "gpu_time" in table:
        product = np.abs(table.numbers("gpu_time", missing=0.0) - gpus * duration) > gpus
        repaired["gpu_time other than duration times GPUs, ignored"] = product
    return _log(
        table,
        columns,
        keep,
        names={"partition": clusters},
        name=name,
        left_out=unfit,
        repaired=repaired,
        unix_start_time=origin,
        time_zone=time_zone or "UTC",
    )


# --- both -----------------------------------------------------------------------------------------


def _numbered(table: Table, column: str) -> tuple[Integers, tuple[str, ...]]:
    """Number of each name, in order of first appearance, and the names; unknown without the column."""
    if column not in table:
        return np.full(len(table), UNKNOWN), ()
    codes, names = pd.factorize(np.array(table.texts(column), object))
    return codes.astype(np.int64), tuple(names.tolist())


def _log(
    table: Table,
    columns: Mapping[str, Integers],
    keep: NDArray[np.bool_],
    *,
    names: Mapping[str, tuple[str, ...]],
    name: str | None,
    left_out: Mapping[str, NDArray[np.bool_]],
    repaired: Mapping[str, NDArray[np.bool_]],
    **facts: Any,
) -> GpuLog:
    """Log of the rows that are kept, in order of submission; others count for the first reason that holds."""
    if not keep.any():
        raise TraceError(f"{table.file}: no job is left of {len(table):,} rows; give another table")
    rows = np.flatnonzero(keep)
    rows = rows[np.argsort(columns["submit_time"][rows], kind="stable")]
    counts, open_rows = {}, np.ones(len(table), np.bool_)
    for reason, unfit in left_out.items():
        counts[reason] = int(np.count_nonzero(open_rows & unfit))
        open_rows &= ~unfit
    identifiers = table.texts("name")
    kept: dict[str, Any] = {key: column[rows] for key, column in columns.items()}
    workload = Workload(
        name=table.name if name is None else name,
        job_number=rows + 1,
        **kept,
        checksum=table.checksum,
        left_out=add_counts({}, counts),
        repaired=add_counts({}, {reason: int(which[rows].sum()) for reason, which in repaired.items()}),
        **facts,
    )
    return GpuLog(
        workload=workload, names=names, identifiers=tuple(identifiers[row] for row in rows.tolist())
    )
